/* http_listen.h: the socket that clients connect to. */
#ifndef HTTP_LISTEN_H
#define HTTP_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

#include "http_options.h"

/* Binds and listens. `url` (`size` bytes) receives the address as a browser takes it, with the port that the
 * system chose. Returns the descriptor; -1: the reason was logged. */
int http_listen(const struct http_options *o, bool tls, char *url, size_t size);

#endif
