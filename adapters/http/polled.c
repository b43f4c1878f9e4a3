/* What zmq_poll does, with a fraction of its system calls: those are most of what a small request costs.
 *
 * The descriptor of a socket is signalled once for what arrives, and any call for the socket may take this
 * signal. So a socket is asked for its events right before the wait, which costs a system call or two; but
 * for one that was drained: the last call found nothing, and left the signal for what comes next. */
#include "polled.h"

#include <math.h>
#include <poll.h>

zmq_pollitem_t http_polled_socket(void *socket, bool drained, short events) {
    zmq_pollitem_t item = {socket, -1, events, 0};
    size_t size = sizeof item.fd;
    if (socket && zmq_getsockopt(socket, ZMQ_FD, &item.fd, &size) != 0)
        item.fd = -1;
    if (drained && item.fd >= 0)
        item.socket = NULL;
    return item;
}

void http_polled_wait(zmq_pollitem_t *items, int count, double seconds) {
    struct pollfd fds[HTTP_POLLED_MAX];
    bool ready = false;
    for (int i = 0; i < count; i++) {
        int events = 0;
        size_t size = sizeof events;
        if (items[i].socket && zmq_getsockopt(items[i].socket, ZMQ_EVENTS, &events, &size) == 0)
            items[i].revents = (short)(events & items[i].events);
        ready = ready || items[i].revents;
        fds[i] = (struct pollfd){.fd = items[i].fd, .events = POLLIN};
    }
    if (poll(fds, (nfds_t)count, ready ? 0 : (int)ceil(1000 * seconds)) <= 0)
        return; /* interrupted: another round */
    for (int i = 0; i < count; i++)
        if (fds[i].revents)
            items[i].revents |= ZMQ_POLLIN;
}

bool http_polled_any(const zmq_pollitem_t *items, int count) {
    for (int i = 0; i < count; i++)
        if (items[i].revents)
            return true;
    return false;
}
