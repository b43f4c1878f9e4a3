/* The command line: one table, http_rows, makes the parser, the ranges and the help (adapter_options).
 *
 * What the table cannot hold is here. A --name or a --stream adds to a list (http_options_add); a --stream is
 * itself a list of NAME=VALUE, separated by commas, whose names are in stream_rows. What depends on more than
 * one option is checked after the last word, in http_options_complete: the address to listen at, TLS, and
 * whether other machines may reach the address, for which certificate and tokens are demanded.
 *
 * Invariants: a mistake is reported before anything is opened; each stream has an address `ctl`; texts belong
 * to argv, but those of a stream, which are cut out of its list and freed by http_options_clear. */
#include "http_options.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../common/adapter_options.h"
#include "base/alloc.h"
#include "http_log.h"

#define BODY_MAX (256 * 1024 * 1024)

#define AT(field) offsetof(struct http_options, field)

static const struct adapter_option http_rows[] = {
    {.text = "The server:"},
    {"listen", "HOST:PORT",
     "address to listen at; port 0: a free one (127.0.0.1:9464)\n                       an address that "
     "other machines reach needs --tls-cert, --tls-key and --tokens",
     OPTION_TEXT, AT(listen), 0, 0},
    {"name", "HOST", "another name by which browsers reach this server; may be repeated", OPTION_OWN, 0, 0,
     0},
    {"tls-cert", "FILE", "certificate (PEM, with its chain), with --tls-key", OPTION_TEXT, AT(tls_cert), 0,
     0},
    {"tls-key", "FILE", "its key, which only its owner may read", OPTION_TEXT, AT(tls_key), 0, 0},
    {"tokens", "FILE", "require a token with each request; `svmstream-http token` makes tokens", OPTION_TEXT,
     AT(tokens), 0, 0},
    {"body", "BYTES", "largest body of a request, after decompression (16777216)", OPTION_WHOLE, AT(body),
     1024, BODY_MAX},
    {.text = "svmstream:"},
    {"stream", "LIST",
     "stream to show; may be repeated (ctl=tcp://127.0.0.1:5557)\n"
     "                       ctl=ADDRESS[,out=ADDRESS][,in=ADDRESS][,curve=FILE,server=KEY]\n"
     "                       out and in: else as the stream reports them; curve: the file of this server's\n"
     "                       keys; server: the stream's public key, or the file that holds it",
     OPTION_OWN, 0, 0, 0},
    {"stale", "SECONDS", "/readyz reports a stream whose last sample is older; 0: never (0)", OPTION_REAL,
     AT(stale), 0, 1e9},
    {.text = "History:"},
    {"history", "FILE", "keep figures and alerts in this file (in memory, the last 24 h)", OPTION_TEXT,
     AT(history), 0, 0},
    {"history.days", "N", "forget what is older; 0: alerts stay for ever (0)", OPTION_REAL, AT(history_days),
     0, 1e6},
    {.text = "Other options:"},
    {"quiet", NULL, "do not print the address at the start (-q)", OPTION_FLAG, AT(quiet), 0, 0},
};

static const struct {
    const char *name;
    size_t at; /* in struct http_stream_option: a char * */
} stream_rows[] = {
    {"in", offsetof(struct http_stream_option, in)},
    {"out", offsetof(struct http_stream_option, out)},
    {"ctl", offsetof(struct http_stream_option, ctl)},
    {"curve", offsetof(struct http_stream_option, curve)},
    {"server", offsetof(struct http_stream_option, server)},
};
enum { STREAM_ROWS = sizeof stream_rows / sizeof stream_rows[0] };

static const char http_before[] =
    "usage: svmstream-http [options]\n"
    "       svmstream-http token --name NAME --role ROLES [--tokens FILE]\n"
    "       svmstream-http token --revoke NAME --tokens FILE\n"
    "\n"
    "Serves running streams over HTTP: a page for browsers, requests in JSON, metrics for Prometheus and\n"
    "server-sent events. Without options: the stream at svmstream's default addresses.\n";

static const char http_after[] =
    "\n"
    "Examples:\n"
    "  svmstream-http\n"
    "  svmstream-http --stream ctl=tcp://10.0.0.5:5557,curve=panel.key,server=svmstream.key.pub\n"
    "  svmstream-http --listen 0.0.0.0:9464 --tls-cert cert.pem --tls-key key.pem --tokens tokens\n"
    "  curl -H 'Content-Type: application/json' -d '{\"x\":{\"a\":1}}' http://127.0.0.1:9464/samples\n"
    "\n"
    "`svmstream help http` describes all of it. SIGHUP reads tokens, certificate and key again.\n"
    "Ends on SIGINT and SIGTERM.\n"
    "Exit codes: 0 ended by a signal, 1 failed, 2 usage.\n";

/* The mistakes in a command line all end in exit code 2. */
#define http_options_wrong(...) adapter_options_wrong("svmstream-http", __VA_ARGS__)

static char *http_options_copy(const char *text, size_t length) {
    char *copy = http_log_need(length + 1, 1);
    memcpy(copy, text, length);
    return copy;
}

/* One NAME=VALUE of a --stream. */
static int http_options_part(struct http_stream_option *s, const char *text, size_t length) {
    const char *equals = memchr(text, '=', length);
    const size_t name = equals ? (size_t)(equals - text) : length;
    for (int i = 0; i < STREAM_ROWS && equals && name + 1 < length; i++) {
        char **field = (char **)(void *)((char *)s + stream_rows[i].at);
        if (strlen(stream_rows[i].name) != name || memcmp(stream_rows[i].name, text, name) != 0)
            continue;
        /* The later one would hide the other. */
        if (*field)
            return http_options_wrong("--stream names %s twice", stream_rows[i].name);
        *field = http_options_copy(equals + 1, length - name - 1);
        return 0;
    }
    return http_options_wrong(
        "--stream: '%.*s' is not of the form ctl=ADDRESS,out=ADDRESS,in=ADDRESS,curve=FILE,server=KEY",
        (int)length, text);
}

static int http_options_stream(struct http_options *o, const char *value) {
    if (o->streams == HTTP_STREAMS_MAX)
        return http_options_wrong("--stream is given more than %d times", HTTP_STREAMS_MAX);
    /* Counted before it is read: what a faulty list leaves in it is freed with the others. */
    struct http_stream_option *s = &o->stream[o->streams++];
    for (const char *at = value; at;) {
        const size_t length = strcspn(at, ",");
        const int code = http_options_part(s, at, length);
        if (code)
            return code;
        at = at[length] ? at + length + 1 : NULL;
    }
    /* The other addresses come from the reply to `status`, which is asked at `ctl`. */
    if (!s->ctl)
        return http_options_wrong("--stream %s: ctl=ADDRESS is missing (tcp://127.0.0.1:5557 by default)",
                                  value);
    if (!s->curve != !s->server)
        return http_options_wrong("--stream %s: curve and server must be given together", value);
    return 0;
}

/* The lists: each --name and each --stream adds to what was given before. */
static int http_options_add(void *options, const struct adapter_option *row, const char *value) {
    struct http_options *o = options;
    if (!*value)
        return http_options_wrong("--%s needs a value", row->name);
    if (strcmp(row->name, "stream") == 0)
        return http_options_stream(o, value);
    if (o->names == HTTP_NAMES_MAX)
        return http_options_wrong("--name is given more than %d times", HTTP_NAMES_MAX);
    o->name[o->names++] = value;
    return 0;
}

static const struct adapter_command http_command = {
    .program = "svmstream-http",
    .options = http_rows,
    .count = sizeof http_rows / sizeof http_rows[0],
    .column = 20,
    .before = http_before,
    .after = http_after,
    .letter = "-q",
    .letter_name = "quiet",
    .secret = "token",
    .secret_text =
        "a token on the command line is visible to every user; --tokens FILE names the file of their hashes",
    .own = http_options_add};

static bool http_options_is_loopback(const struct sockaddr *a) {
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* HOST:PORT, an IPv6 host in brackets, * for every address of this machine. A name is resolved once. */
static int http_options_listen(struct http_options *o) {
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char host[256], *end;
    const char *colon = strrchr(o->listen, ':');
    const size_t length = colon ? (size_t)(colon - o->listen) : 0;
    const bool brackets = length > 2 && o->listen[0] == '[' && o->listen[length - 1] == ']';
    o->port = colon && colon[1] >= '0' && colon[1] <= '9' ? strtol(colon + 1, &end, 10) : -1;
    if (length == 0 || length >= sizeof host || o->port < 0 || *end || o->port > 65535)
        return http_options_wrong("--listen %s is not HOST:PORT: write 127.0.0.1:9464 or [::1]:9464",
                                  o->listen);
    /* The colon that separates the port is the last one; those of an IPv6 host stand within the brackets. */
    snprintf(host, sizeof host, "%.*s", (int)length - 2 * brackets, o->listen + brackets);
    if (strcmp(host, "*") == 0)
        strcpy(host, "0.0.0.0");
    /* localhost may resolve to ::1 first, where a client that was given 127.0.0.1 finds no server. */
    const int code = getaddrinfo(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, NULL, &hints, &found);
    if (code != 0)
        return http_options_wrong("--listen %s: unknown host (%s)", o->listen, gai_strerror(code));
    /* The address decides, not the text: a name may belong to any address. The server then listens at this
     * one, so that what was checked is what is opened. */
    o->loopback = http_options_is_loopback(found->ai_addr);
    getnameinfo(found->ai_addr, found->ai_addrlen, o->host, sizeof o->host, NULL, 0, NI_NUMERICHOST);
    freeaddrinfo(found);
    return 0;
}

static int http_options_complete(struct http_options *o) {
    /* First, as the test of the tokens needs to know which machines reach the address. */
    const int code = http_options_listen(o);
    if (code)
        return code;
    if (!o->tls_cert != !o->tls_key)
        return http_options_wrong("--tls-cert and --tls-key must be given together");
    if (!o->loopback && (!o->tls_cert || !o->tokens))
        return http_options_wrong("--listen %s: anybody on other machines could read, feed and mute the "
                                  "streams: give --tls-cert, --tls-key and --tokens, or listen at 127.0.0.1",
                                  o->listen);
    /* The default is read like one that was given, so that its texts are owned too. */
    if (o->streams == 0)
        return http_options_stream(o, "ctl=tcp://127.0.0.1:5557");
    return 0;
}

int http_options_read(struct http_options *o, int argc, char *const *argv, bool *done) {
    *o = (struct http_options){.listen = "127.0.0.1:9464", .body = 16 * 1024 * 1024};
    const int code = adapter_options_read(&http_command, o, argc, argv, done);
    return code || *done ? code : http_options_complete(o);
}

void http_options_clear(struct http_options *o) {
    for (int i = 0; i < o->streams; i++)
        for (int k = 0; k < STREAM_ROWS; k++)
            svi_free(*(char **)(void *)((char *)&o->stream[i] + stream_rows[k].at));
    *o = (struct http_options){0};
}
