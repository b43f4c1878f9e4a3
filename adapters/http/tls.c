#include "tls.h"

#include <string.h>

#include <gnutls/gnutls.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "http_log.h"
#include "net/guarded_file.h"

static svs_code http_tls_load(char **text, const char *path, bool secret, svs_error *err) {
    size_t length;
    *text = http_log_need(HTTP_TLS_BYTES, 1);
    return svi_guarded_read(path, secret, *text, HTTP_TLS_BYTES, &length, err);
}

/* libmicrohttpd would only say that it cannot start. */
static const char *http_tls_pair(const struct http_tls *t) {
    gnutls_certificate_credentials_t both;
    const gnutls_datum_t cert = {(unsigned char *)t->cert, (unsigned)strlen(t->cert)},
                         key = {(unsigned char *)t->key, (unsigned)strlen(t->key)};
    int code = gnutls_certificate_allocate_credentials(&both);
    if (code == GNUTLS_E_SUCCESS) {
        code = gnutls_certificate_set_x509_key_mem(both, &cert, &key, GNUTLS_X509_FMT_PEM);
        gnutls_certificate_free_credentials(both);
    }
    return code >= 0 ? NULL : gnutls_strerror(code);
}

int http_tls_read(struct http_tls *t, const struct http_options *o) {
    svs_error err;
    *t = (struct http_tls){0};
    if (!o->tls_cert)
        return 0;
    if (http_tls_load(&t->cert, o->tls_cert, false, &err) != SVS_OK ||
        http_tls_load(&t->key, o->tls_key, true, &err) != SVS_OK) {
        http_log("%s", err.text);
        return 1;
    }
    const char *why = http_tls_pair(t);
    if (why)
        http_log("--tls-cert %s and --tls-key %s are not a certificate and its key in PEM: %s", o->tls_cert,
                 o->tls_key, why);
    return why ? 1 : 0;
}

void http_tls_clear(struct http_tls *t) {
    if (t->key)
        explicit_bzero(t->key, HTTP_TLS_BYTES);
    svi_free(t->cert);
    svi_free(t->key);
    *t = (struct http_tls){0};
}
