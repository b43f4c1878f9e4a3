#include "tls.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "http_log.h"
#include "net/guarded_file.h"

static svs_code http_tls_load(char **text, const char *path, bool secret, svs_error *err) {
    size_t length;
    if (!(*text = svi_alloc(HTTP_TLS_BYTES)))
        return svi_fail_memory(err, "certificate and key");
    /* The reader would advise how keys of CURVE are made. */
    if (access(path, F_OK) != 0)
        return svi_fail_path(err, SVS_IO, path, "%s; --tls-cert and --tls-key name files in PEM",
                             strerror(errno));
    return svi_guarded_read(path, secret, *text, HTTP_TLS_BYTES, &length, err);
}

/* libmicrohttpd would only say that it cannot start. */
static const char *http_tls_pair(struct http_tls *t) {
    const gnutls_datum_t cert = {(unsigned char *)t->cert, (unsigned)strlen(t->cert)},
                         key = {(unsigned char *)t->key, (unsigned)strlen(t->key)};
    int code = gnutls_certificate_allocate_credentials(&t->credentials);
    if (code == GNUTLS_E_SUCCESS)
        code = gnutls_certificate_set_x509_key_mem(t->credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
    return code >= 0 ? NULL : gnutls_strerror(code);
}

struct http_tls *http_tls_read(const struct http_options *o) {
    struct http_tls *t = svi_alloc(sizeof *t);
    const char *why = NULL;
    svs_error err;
    if (!t)
        return http_log("no memory for certificate and key"), NULL;
    t->holders = 1;
    if (http_tls_load(&t->cert, o->tls_cert, false, &err) != SVS_OK ||
        http_tls_load(&t->key, o->tls_key, true, &err) != SVS_OK)
        http_log("%s", err.text);
    else if ((why = http_tls_pair(t)))
        http_log("--tls-cert %s and --tls-key %s are not a certificate and its key in PEM: %s", o->tls_cert,
                 o->tls_key, why);
    else
        return t;
    http_tls_release(t);
    return NULL;
}

struct http_tls *http_tls_hold(struct http_tls *t, gnutls_session_t session) {
    if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, t->credentials) != GNUTLS_E_SUCCESS)
        return NULL;
    t->holders++;
    return t;
}

void http_tls_release(struct http_tls *t) {
    if (!t || --t->holders > 0)
        return;
    if (t->credentials)
        gnutls_certificate_free_credentials(t->credentials);
    if (t->key)
        explicit_bzero(t->key, HTTP_TLS_BYTES);
    svi_free(t->cert);
    svi_free(t->key);
    svi_free(t);
}
