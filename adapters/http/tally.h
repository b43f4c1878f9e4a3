/* tally.h: what the adapter counts of its own work, for GET /metrics. Belongs to one thread. */
#ifndef HTTP_TALLY_H
#define HTTP_TALLY_H

#include <stdint.h>

/* X(CONSTANT, name as in the label `method`); the last stands for every other method, whose name a client
 * chooses freely and which therefore must not become a label. */
#define HTTP_TALLY_METHODS(X)                                                                                \
    X(GET, "GET")                                                                                            \
    X(HEAD, "HEAD")                                                                                          \
    X(POST, "POST")                                                                                          \
    X(DELETE, "DELETE")                                                                                      \
    X(OPTIONS, "OPTIONS")                                                                                    \
    X(PUT, "PUT")                                                                                            \
    X(OTHER, "other")

enum http_tally_method {
#define X(constant, name) HTTP_TALLY_##constant,
    HTTP_TALLY_METHODS(X)
#undef X
        HTTP_TALLY_METHOD_COUNT
};

extern const char *const http_tally_methods[HTTP_TALLY_METHOD_COUNT];

#define HTTP_TALLY_FIRST 100 /* smallest status */
#define HTTP_TALLY_CODES 500 /* 100 to 599 */

/* Zero-initialised is empty. */
struct http_tally {
    int64_t requests[HTTP_TALLY_METHOD_COUNT][HTTP_TALLY_CODES]; /* answered so far, by status */
    int64_t connections;                                         /* open now */
    int64_t refused;        /* connections that a limit turned away so far */
    int64_t event_readers;  /* responses of GET /events that are open now */
    int64_t events_sent;    /* events written to these so far */
    int64_t events_lost;    /* events that a reader was too slow for, so far */
    int64_t history_errors; /* failed reads and writes of the history so far */
};

/* Counts one answered request. method: as the client sent it; status: 100 to 599, else it is not counted. */
void http_tally_request(struct http_tally *t, const char *method, int status);

#endif
