/* tls.h: certificate and key of the server. */
#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include "http_options.h"

#define HTTP_TLS_BYTES (256 * 1024) /* of each file */

/* PEM texts, owned. */
struct http_tls {
    char *cert, *key;
};

/* Reads both files, if the options name them, and checks that they belong together. The key must be readable
 * by its owner alone. 0; 1: the reason was logged. http_tls_clear in any case. */
int http_tls_read(struct http_tls *t, const struct http_options *o);
void http_tls_clear(struct http_tls *t); /* wipes the key */

#endif
