/* http_options.h: the command line. One table makes parser, defaults and help. */
#ifndef HTTP_OPTIONS_H
#define HTTP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define HTTP_STREAMS_MAX 64
#define HTTP_NAMES_MAX   16

/* One --stream, or the default one. Texts are owned by the options; NULL: not given. */
struct http_stream_option {
    char *in, *out, *ctl; /* `ctl` is never NULL; the others come from the reply to `status` */
    char *curve;          /* file with the own CURVE keys */
    char *server;         /* public key of the stream, or the file that holds it */
};

/* Texts belong to argv or are constants, but for those marked as owned. */
struct http_options {
    const char *listen; /* HOST:PORT as given */
    const char *name[HTTP_NAMES_MAX];
    int names;
    struct http_stream_option stream[HTTP_STREAMS_MAX]; /* owned */
    int streams;                                        /* at least 1 after http_options_read */
    const char *history;                                /* file; NULL: in memory */
    double history_days;                                /* alerts and figures older than this go; 0: never */
    const char *tls_cert, *tls_key, *tokens;            /* NULL: not given */
    double stale;                                       /* seconds; 0: a stream may be idle for ever */
    int64_t body;                                       /* bytes of a request's body, inflated */
    bool quiet;
    /* made of the above */
    char host[64]; /* numeric address to listen at */
    int64_t port;  /* 0: the system picks one */
    bool loopback; /* `host` can be reached from this machine only */
};

/* 0; 2: the command line is wrong, which is reported. http_options_clear in any case. *done: --help or
 * --version was answered, and nothing is to be run. */
int http_options_read(struct http_options *o, int argc, char *const *argv, bool *done);
void http_options_clear(struct http_options *o);

#endif
