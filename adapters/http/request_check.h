/* request_check.h: is this a request that we answer? All checks that need no body. */
#ifndef HTTP_REQUEST_CHECK_H
#define HTTP_REQUEST_CHECK_H

#include "exchange_internal.h"

/* Checks request line and headers, and finds the route. False: the answer is made. */
bool http_request_check(struct exchange *x, struct http_app *app, const char *method, const char *version);

bool http_request_is_gzip(const struct exchange *x);

/* Bytes of the body that are still to come, by its Content-Length; 0 where it is chunked. */
size_t http_request_rest(const struct exchange *x);

/* Answers what is wrong with the body. */
void http_request_body_problem(struct exchange *x, enum http_body_state state, int64_t limit);

#endif
