/* tls.h: certificate and key of the server. Both files may be replaced while connections are open: each
 * connection holds those that it began with. */
#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include <gnutls/gnutls.h>

#include "http_options.h"

#define HTTP_TLS_BYTES (256 * 1024) /* of each file */

struct http_tls {
    char *cert, *key; /* PEM texts, owned */
    gnutls_certificate_credentials_t credentials;
    int holders; /* freed with the last */
};

/* Reads both files and checks that they belong together. The key must be readable by its owner alone. The
 * caller is the first holder. NULL: the reason was logged. */
struct http_tls *http_tls_read(const struct http_options *o);

/* Makes a session that has not begun use these, and returns them with one more holder. NULL: it could not. */
struct http_tls *http_tls_hold(struct http_tls *t, gnutls_session_t session);
void http_tls_release(struct http_tls *t); /* NULL is allowed; the last holder's wipes the key */

#endif
