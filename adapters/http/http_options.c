/* The command line: one table (rows) makes the parser, the ranges and the help.
 *
 * http_options_take brings a word to its row, which says where in struct http_options the value goes and what
 * it may be. A --stream is a list of its own (NAME=VALUE, separated by commas), read by the same idea:
 * stream_rows. What depends on more than one option is checked after the last word, in
 * http_options_complete: the address to listen at, and whether it may be one that other machines reach.
 *
 * Invariants: a mistake is reported before anything is opened; each stream has an address `ctl`. */
#include "http_options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "http_log.h"

#define BODY_MAX (256 * 1024 * 1024)

enum http_type {
    OPTION_NONE,
    OPTION_TEXT,
    OPTION_WHOLE,
    OPTION_REAL,
    OPTION_FLAG,
    OPTION_NAME,
    OPTION_STREAM
};

/* `type` decides what lies at `at`: TEXT a const char *, WHOLE an int64_t, REAL a double, FLAG a bool; the
 * lists NAME and STREAM ignore it. */
struct http_row {
    const char *name, *argument, *text;
    enum http_type type;
    size_t at; /* in struct http_options */
    double low, high;
};

#define AT(field) offsetof(struct http_options, field)

static const struct http_row http_rows[] = {
    {.text = "The server:"},
    {"listen", "HOST:PORT",
     "address to listen at; port 0: a free one (127.0.0.1:9464)\n                       "
     "one that other machines reach needs --tls-cert, --tls-key and --tokens",
     OPTION_TEXT, AT(listen), 0, 0},
    {"name", "HOST", "a further name that browsers reach this server by; may be repeated", OPTION_NAME, 0, 0,
     0},
    {"tls-cert", "FILE", "certificate (PEM, with its chain), with --tls-key", OPTION_TEXT, AT(tls_cert), 0,
     0},
    {"tls-key", "FILE", "its key, which only its owner may read", OPTION_TEXT, AT(tls_key), 0, 0},
    {"tokens", "FILE", "demand a token with each request; `svmstream-http token` makes them", OPTION_TEXT,
     AT(tokens), 0, 0},
    {"body", "BYTES", "largest body of a request, after decompression (16777216)", OPTION_WHOLE, AT(body),
     1024, BODY_MAX},
    {.text = "svmstream:"},
    {"stream", "LIST",
     "a stream to show; may be repeated (ctl=tcp://127.0.0.1:5557)\n                       "
     "ctl=ADDRESS[,out=ADDRESS][,in=ADDRESS][,curve=FILE,server=KEY]\n                       "
     "out and in: else as the stream reports them; curve: the file of our own\n                       "
     "keys; server: the stream's public key, or the file that holds it",
     OPTION_STREAM, 0, 0, 0},
    {"stale", "SECONDS", "/readyz reports a stream whose last sample is older; 0: never (0)", OPTION_REAL,
     AT(stale), 0, 1e9},
    {.text = "History:"},
    {"history", "FILE", "keep figures and alerts in this file (in memory, the last 24 h)", OPTION_TEXT,
     AT(history), 0, 0},
    {"history.days", "N", "forget what is older; 0: alerts stay for ever (0)", OPTION_REAL, AT(history_days),
     0, 1e6},
    {.text = "Other options:"},
    {"quiet", NULL, "no line about the address at the start (-q)", OPTION_FLAG, AT(quiet), 0, 0},
};
enum { HTTP_ROWS = sizeof http_rows / sizeof http_rows[0] };

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

static const char *const http_before =
    "usage: svmstream-http [options]\n"
    "       svmstream-http token --name NAME --role ROLES [--tokens FILE]\n"
    "       svmstream-http token --revoke NAME --tokens FILE\n\n"
    "Shows running streams in a browser and to programs that speak HTTP: a page, requests in JSON, metrics\n"
    "for Prometheus, server-sent events. Without options: the stream at svmstream's default addresses.\n";

static const char *const http_after =
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

void http_options_help(void) {
    fputs(http_before, stdout);
    for (int i = 0; i < HTTP_ROWS; i++) {
        char head[48];
        snprintf(head, sizeof head, "--%s %s", http_rows[i].name ? http_rows[i].name : "",
                 http_rows[i].argument ? http_rows[i].argument : "");
        if (http_rows[i].name)
            printf("  %-20s %s\n", head, http_rows[i].text);
        else
            printf("\n%s\n", http_rows[i].text);
    }
    printf("  %-20s %s\n  %-20s %s\n", "--help", "this text", "--version",
           "the version of svmstream that it belongs to");
    fputs(http_after, stdout);
}

__attribute__((format(printf, 1, 2))) static int http_options_wrong(const char *format, ...) {
    char text[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    http_log("%s; --help lists the options", text);
    return 2;
}

/* Every high limit of a WHOLE lies far below 2^53, where a double still holds each integer. */
static int http_options_number(const struct http_row *r, const char *text, void *field) {
    char *end;
    errno = 0;
    const double value = strtod(text, &end);
    const bool whole = r->type != OPTION_WHOLE || value == floor(value);
    if (end == text || *end || errno || !isfinite(value) || value < r->low || value > r->high || !whole)
        return http_options_wrong("--%s takes %s from %.0f to %.0f, not %s", r->name,
                                  r->type == OPTION_WHOLE ? "a whole number" : "a number", r->low, r->high,
                                  text);
    if (r->type == OPTION_WHOLE)
        *(int64_t *)field = (int64_t)value;
    else
        *(double *)field = value;
    return 0;
}

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
        if (*field)
            return http_options_wrong("--stream names %s twice", stream_rows[i].name);
        *field = http_options_copy(equals + 1, length - name - 1);
        return 0;
    }
    return http_options_wrong(
        "--stream takes ctl=ADDRESS,out=ADDRESS,in=ADDRESS,curve=FILE,server=KEY, not %.*s", (int)length,
        text);
}

static int http_options_stream(struct http_options *o, const char *value) {
    if (o->streams == HTTP_STREAMS_MAX)
        return http_options_wrong("--stream is given more than %d times", HTTP_STREAMS_MAX);
    struct http_stream_option *s = &o->stream[o->streams++];
    for (const char *at = value; at;) {
        const size_t length = strcspn(at, ",");
        const int code = http_options_part(s, at, length);
        if (code)
            return code;
        at = at[length] ? at + length + 1 : NULL;
    }
    if (!s->ctl)
        return http_options_wrong("--stream %s: ctl=ADDRESS is missing (tcp://127.0.0.1:5557 by default)",
                                  value);
    if (!s->curve != !s->server)
        return http_options_wrong("--stream %s: curve and server must be given together", value);
    return 0;
}

static int http_options_set(struct http_options *o, const struct http_row *r, const char *value) {
    void *field = (char *)o + r->at;
    if (!*value)
        return http_options_wrong("--%s needs a value", r->name);
    if (r->type == OPTION_STREAM)
        return http_options_stream(o, value);
    if (r->type == OPTION_NAME && o->names == HTTP_NAMES_MAX)
        return http_options_wrong("--name is given more than %d times", HTTP_NAMES_MAX);
    if (r->type == OPTION_WHOLE || r->type == OPTION_REAL)
        return http_options_number(r, value, field);
    /* Values are not copied: argv outlives the options. */
    *(r->type == OPTION_NAME ? &o->name[o->names++] : (const char **)field) = value;
    return 0;
}

/* One option at argv[*i]; *i is moved to its value. */
static int http_options_take(struct http_options *o, int argc, char *const *argv, int *i) {
    const char *word = strcmp(argv[*i], "-q") == 0 ? "--quiet" : argv[*i], *equals = strchr(word, '=');
    const char *names[HTTP_ROWS + 1];
    char name[64];
    const struct http_row *r = NULL;
    int n = 0;
    if (strncmp(word, "--", 2) != 0)
        return http_options_wrong("%s is not an option", word);
    snprintf(name, sizeof name, "%.*s", (int)(equals ? equals - word - 2 : (long)strlen(word) - 2), word + 2);
    for (int k = 0; k < HTTP_ROWS; k++) {
        if (http_rows[k].name)
            names[n++] = http_rows[k].name;
        if (http_rows[k].name && strcmp(http_rows[k].name, name) == 0)
            r = &http_rows[k];
    }
    names[n] = NULL;
    /* The command line is public to every process listing. */
    if (!r && strcmp(name, "token") == 0)
        return http_options_wrong(
            "a token on the command line is visible to every user; --tokens FILE names the file of their "
            "hashes");
    if (!r)
        return http_options_wrong("--%s is not an option; did you mean --%s?", name,
                                  svi_nearest(name, names));
    if (r->type == OPTION_FLAG && equals)
        return http_options_wrong("--%s takes no value", r->name);
    if (r->type == OPTION_FLAG)
        return *((bool *)o + r->at) = true, 0;
    if (!equals && *i + 1 >= argc)
        return http_options_wrong("--%s needs a value: %s", r->name, r->argument);
    return http_options_set(o, r, equals ? equals + 1 : argv[++*i]);
}

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
        return http_options_wrong("--listen %s is not HOST:PORT, as 127.0.0.1:9464 or [::1]:9464", o->listen);
    snprintf(host, sizeof host, "%.*s", (int)length - 2 * brackets, o->listen + brackets);
    if (strcmp(host, "*") == 0)
        strcpy(host, "0.0.0.0");
    const int code = getaddrinfo(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, NULL, &hints, &found);
    if (code != 0)
        return http_options_wrong("--listen %s: this host is not known (%s)", o->listen, gai_strerror(code));
    o->loopback = http_options_is_loopback(found->ai_addr);
    getnameinfo(found->ai_addr, found->ai_addrlen, o->host, sizeof o->host, NULL, 0, NI_NUMERICHOST);
    freeaddrinfo(found);
    return 0;
}

static int http_options_complete(struct http_options *o) {
    const int code = http_options_listen(o);
    if (code)
        return code;
    if (!o->tls_cert != !o->tls_key)
        return http_options_wrong("--tls-cert and --tls-key must be given together");
    if (!o->loopback && (!o->tls_cert || !o->tokens))
        return http_options_wrong(
            "--listen %s: other machines reach it, so anybody there could read, feed and mute the streams: "
            "give --tls-cert, --tls-key and --tokens, or listen at 127.0.0.1",
            o->listen);
    if (o->streams == 0)
        return http_options_stream(o, "ctl=tcp://127.0.0.1:5557");
    return 0;
}

int http_options_read(struct http_options *o, int argc, char *const *argv, enum http_wish *wish) {
    *o = (struct http_options){.listen = "127.0.0.1:9464", .body = 16 * 1024 * 1024};
    *wish = HTTP_RUN;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            *wish = HTTP_HELP;
        else if (strcmp(argv[i], "--version") == 0)
            *wish = HTTP_VERSION;
        if (*wish != HTTP_RUN)
            return 0;
        const int code = http_options_take(o, argc, argv, &i);
        if (code)
            return code;
    }
    return http_options_complete(o);
}

void http_options_clear(struct http_options *o) {
    for (int i = 0; i < o->streams; i++)
        for (int k = 0; k < STREAM_ROWS; k++)
            svi_free(*(char **)(void *)((char *)&o->stream[i] + stream_rows[k].at));
    *o = (struct http_options){0};
}
