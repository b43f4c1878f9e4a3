#include "net/vacancy.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

#define LOOK_MS 1 /* between two looks */

/* As libzmq binds it: connections of the one before, which may linger, are no obstacle. */
static bool can_be_bound(const struct addrinfo *a) {
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    if (fd < 0)
        return true; /* nothing can be said */
    const bool good = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                      bind(fd, a->ai_addr, a->ai_addrlen) == 0;
    close(fd);
    return good;
}

/* HOST:PORT in numbers, a host of IPv6 in brackets. */
static bool tcp_is_free(const char *address) {
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char host[64];
    const char *colon = strrchr(address, ':');
    const bool brackets = address[0] == '[';
    size_t length = colon ? (size_t)(colon - address) : 0;
    if (length < 3 || length >= sizeof host)
        return true;
    length -= brackets ? 2 : 0;
    memcpy(host, address + brackets, length);
    host[length] = '\0';
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0)
        return true;
    const bool good = can_be_bound(found);
    freeaddrinfo(found);
    return good;
}

/* Its file may stay: the next to bind replaces it. */
static bool ipc_is_free(const char *path) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof to.sun_path)
        return true;
    memcpy(to.sun_path, path, strlen(path));
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool taken =
        fd >= 0 && (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 || errno == EAGAIN);
    if (fd >= 0)
        close(fd);
    return !taken;
}

bool svi_address_is_free(const char *address) {
    if (strncmp(address, "tcp://", 6) == 0)
        return tcp_is_free(address + 6);
    return strncmp(address, "ipc://", 6) != 0 || ipc_is_free(address + 6);
}

void svi_address_await_free(const char *address, double seconds) {
    const double end = svi_monotonic() + seconds;
    while (!svi_address_is_free(address) && svi_monotonic() < end)
        poll(NULL, 0, LOOK_MS);
}
