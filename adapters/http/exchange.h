/* exchange.h: one request and its answer, as handlers see them.
 *
 * An exchange is owned by the server. It is valid until it is answered or closed. A handler answers once: by
 * http_exchange_answer, http_exchange_problem or http_exchange_stream, at once or (after
 * http_exchange_later) from the same thread at another time. All texts of the request are decoded, valid
 * UTF-8 without NUL, and untrusted. */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "principal.h"

struct exchange;

const char *http_exchange_method(const struct exchange *x); /* "GET" (of a HEAD, too), "POST", "DELETE" */
const char *http_exchange_segment(const struct exchange *x, int i); /* of the i-th {name} of the path */
const char *http_exchange_query(const struct exchange *x, const char *name);  /* NULL: absent */
const char *http_exchange_header(const struct exchange *x, const char *name); /* NULL: absent */
const void *http_exchange_body(const struct exchange *x, size_t *size);       /* whole, inflated */
const struct http_principal *http_exchange_principal(const struct exchange *x);

/* The media type of the body, in lower case and without parameters: one of those that the route lists, the
 * first of them where the client names none; "" without a body. */
const char *http_exchange_body_type(const struct exchange *x);

/* The one of the media types "a/b, c/d" that the header Accept prefers; the first of equals. NULL: it accepts
 * none of them. Valid until the next call. */
const char *http_exchange_accepts(struct exchange *x, const char *types);

/* Adds a header to the answer, before it is given. */
void http_exchange_add(struct exchange *x, const char *name, const char *value);

/* Answers with a copy of `bytes`, compressed where the client takes that. */
void http_exchange_answer(struct exchange *x, int status, const char *type, const void *bytes, size_t size);

/* Answers with a problem document of RFC 9457; `code` is a name of svs_code_name, or one of ours. */
void http_exchange_problem(struct exchange *x, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The handler will answer later. `closed` is called once if the client or the deadline (`timeout`, seconds)
 * ends the exchange before that; after it x is invalid. */
void http_exchange_later(struct exchange *x, double timeout, void (*closed)(void *user), void *user);

/* Answers with a body that is produced in pieces. `more` fills at most `size` bytes and returns how many; 0:
 * nothing now, the connection sleeps until http_exchange_wake; -1: the end. `end` is called once, after which
 * x is invalid. */
void http_exchange_stream(struct exchange *x, const char *type,
                          ssize_t (*more)(void *user, void *bytes, size_t size), void (*end)(void *user),
                          void *user);
void http_exchange_wake(struct exchange *x);

#endif
