/* origin.h: does a request come from where it may come from? */
#ifndef HTTP_ORIGIN_H
#define HTTP_ORIGIN_H

#include "exchange_internal.h"
#include "http_options.h"

/* The Host must be one of ours: a page of another site whose name was pointed at this address (DNS rebinding)
 * sends that site's name. An Origin must be the Host, and what changes something must not come from another
 * site. False: the answer is made. */
bool http_origin_check(struct exchange *x, const struct http_options *o, const char *method);

/* Is HOST[:PORT] a name of this server? The port is free: a tunnel may lead here from any. */
bool http_origin_is_ours(const struct http_options *o, const char *host);

#endif
