/* polled.h: the wait of the loop, over descriptors and sockets of ZeroMQ. */
#ifndef HTTP_POLLED_H
#define HTTP_POLLED_H

#include <stdbool.h>

#include <zmq.h>

#define HTTP_POLLED_MAX 400 /* items of one wait */

/* What to poll for a socket (NULL: nothing). `drained`: it was received from until EAGAIN, and nothing else
 * was done with it since. */
zmq_pollitem_t http_polled_socket(void *socket, bool drained, short events);

/* Waits for at most `seconds`. revents is not 0 where something may be there. */
void http_polled_wait(zmq_pollitem_t *items, int count, double seconds);

/* Is something there for one of the items? */
bool http_polled_any(const zmq_pollitem_t *items, int count);

#endif
