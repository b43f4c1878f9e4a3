/* principal.h: the client of a request and its rights. */
#ifndef HTTP_PRINCIPAL_H
#define HTTP_PRINCIPAL_H

#include <stdbool.h>
#include <stddef.h>

enum http_role { ROLE_WATCH = 1, ROLE_SEND = 2, ROLE_CONTROL = 4 };

/* The client that asks: the name and rights of its token. Without --tokens it has no name and every right. */
struct http_principal {
    const char *name;    /* "": no tokens are in force */
    const char *sources; /* "NAME,PREFIX*": the `src` that it may send under; "": all */
    unsigned roles;      /* of enum http_role */
};

/* May it send samples under this source name (length 0: without one)? */
bool http_principal_may_send_as(const struct http_principal *p, const char *src, size_t length);

#endif
