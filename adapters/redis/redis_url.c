#include "redis_url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

#define SCHEME "redis://"

/* hiredis 0.14 has no TLS. The command can be pasted as it is; the manual has the lines that check the
 * certificate. */
static svs_code url_refuse_tls(const char *text, svs_error *err) {
    char shown[100];
    const char *at = strrchr(text, '@'), *host = at ? at + 1 : text + strlen("rediss://");
    svi_escape(shown, sizeof shown, host, strcspn(host, "/"));
    return svi_fail(
        err, SVS_SETTING,
        "rediss:// is TLS, which stunnel does for this program: printf "
        "'foreground=yes\\n[r]\\nclient=yes\\naccept=127.0.0.1:6380\\nconnect=%s%s\\n' | stunnel4 "
        "-fd 0, then --redis redis://127.0.0.1:6380",
        shown, strrchr(shown, ':') ? "" : ":6379");
}

/* Copies a part, with %XX decoded. */
static bool url_part(char *out, size_t size, const char *from, size_t length) {
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned value = (unsigned char)from[i];
        if (from[i] == '%') {
            if (i + 2 >= length || sscanf(from + i + 1, "%2x", &value) != 1 || value == 0)
                return false;
            i += 2;
        }
        if (n + 1 >= size)
            return false;
        out[n++] = (char)value;
    }
    out[n] = 0;
    return true;
}

/* A number that fills the text up to `end`. */
static bool url_number(const char *text, const char *end, int high, int *value) {
    char *stop;
    const long n = text < end && *text >= '0' && *text <= '9' ? strtol(text, &stop, 10) : -1;
    *value = (int)n;
    return n >= 0 && n <= high && stop == end;
}

static svs_code url_login(struct redis_url *u, const char *from, const char *at, bool secret,
                          svs_error *err) {
    const char *colon = memchr(from, ':', (size_t)(at - from)), *end = colon ? colon : at;
    if (colon && !secret)
        return svi_fail(err, SVS_SETTING,
                        "a password on the command line is visible to every user: put it into a file and "
                        "name that with --password-file, or into the variable SVMSTREAM_REDIS_PASSWORD");
    if (!url_part(u->user, sizeof u->user, from, (size_t)(end - from)) ||
        (colon && !url_part(u->password, sizeof u->password, colon + 1, (size_t)(at - colon - 1))))
        return svi_fail(err, SVS_SETTING,
                        "the user or the password in the address is too long, or has a %% "
                        "that is not followed by two hexadecimal digits");
    return SVS_OK;
}

/* HOST:PORT, [IPV6]:PORT; without a port 6379. */
static bool url_host(struct redis_url *u, const char *from, const char *end) {
    const bool bracket = *from == '[';
    const char *close = bracket ? memchr(from, ']', (size_t)(end - from)) : NULL;
    if (bracket && !close)
        return false;
    const char *host = from + bracket, *rest = close ? close + 1 : from + strcspn(from, ":/");
    const char *host_end = close ? close : rest;
    u->port = 6379;
    if (host_end == host || (size_t)(host_end - host) >= sizeof u->host)
        return false;
    memcpy(u->host, host, (size_t)(host_end - host));
    u->host[host_end - host] = 0;
    return rest == end || (*rest == ':' && url_number(rest + 1, end, 65535, &u->port) && u->port > 0);
}

svs_code redis_url_read(struct redis_url *u, const char *text, bool secret, svs_error *err) {
    char shown[160];
    *u = (struct redis_url){0};
    if (strncmp(text, "rediss://", 9) == 0)
        return url_refuse_tls(text, err);
    const char *from = text + (strncmp(text, SCHEME, strlen(SCHEME)) == 0 ? strlen(SCHEME) : 0);
    const char *at = strrchr(from, '@');
    if (at) {
        SVI_TRY(url_login(u, from, at, secret, err));
        from = at + 1;
    }
    const char *end = from + strcspn(from, "/");
    if (strstr(from, "://") || !url_host(u, from, end) ||
        (*end && end[1] && !url_number(end + 1, end + strlen(end), 1 << 20, &u->database)))
        return svi_fail(err, SVS_SETTING,
                        "%s is not an address of Redis: redis://HOST:PORT, redis://USER@HOST:PORT, or "
                        "redis://HOST:PORT/DATABASE",
                        secret ? "the value" : svi_escape(shown, sizeof shown, text, strlen(text)));
    return SVS_OK;
}

svs_code redis_url_password(struct redis_url *u, const char *path, svs_error *err) {
    FILE *f = fopen(path, "re");
    const bool got = f && fgets(u->password, sizeof u->password, f);
    const int why = errno;
    if (f)
        fclose(f);
    if (!f)
        return svi_fail(err, SVS_IO, "--password-file %.200s: %s", path, strerror(why));
    const size_t n = got ? strcspn(u->password, "\r\n") : 0;
    if (n == 0 || n + 1 >= sizeof u->password)
        return svi_fail(err, SVS_SETTING, "--password-file %.200s: its first line is %s", path,
                        n == 0 ? "empty" : "too long");
    u->password[n] = 0;
    return SVS_OK;
}

void redis_url_wipe(struct redis_url *u) {
    explicit_bzero(u->password, sizeof u->password);
}
