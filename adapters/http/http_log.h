/* http_log.h: lines on standard error, each beginning with the program's name.
 *
 * Text from the network is escaped by the caller (svi_escape). What may happen often has a limit
 * of its own, a few lines a second; what was left out is counted in the next line. */
#ifndef HTTP_LOG_H
#define HTTP_LOG_H

#include <stddef.h>
#include <stdint.h>

/* Zeros at first. One for each kind of trouble that a client can cause at any rate. */
struct http_log_limit {
    double second; /* svi_monotonic, start of the current one */
    int lines;     /* in it */
    int64_t left_out;
};

/* A line; NULL: without limit. */
void http_log_limited(struct http_log_limit *limit, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define http_log(...) http_log_limited(NULL, __VA_ARGS__)

/* Memory, zeroed, to be freed with svi_free. For what the program cannot start without: it ends with exit
 * code 1 without one. */
void *http_log_need(size_t count, size_t size);

#endif
