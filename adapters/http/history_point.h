/* history_point.h: the figures of a stream over one span of time, and their form in the file.
 *
 * A point begins at a whole second and spans one step. Each figure has a value, its lowest and its highest
 * over the span, and a weight: how many measurements it is made of. Weight 0: not known. Two points of the
 * same span merge into one, in any order, so that a coarse point is the merge of the finer ones in it. */
#ifndef HTTP_HISTORY_POINT_H
#define HTTP_HISTORY_POINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(CONSTANT, name, what two values merge into, kept as its logarithm). A mean is weighted. Probabilities
 * span more powers of ten than a float32 has. */
#define HISTORY_FIGURES(X)                                                                                   \
    X(RATE, rate, MEAN, false)                                                                               \
    X(LEARNED_RATE, learned_rate, MEAN, false)                                                               \
    X(REFUSED_RATE, refused_rate, MEAN, false)                                                               \
    X(LOST_RATE, lost_rate, MEAN, false)                                                                     \
    X(QUALITY, quality, MEAN, false)                                                                         \
    X(NO_CHANGE, no_change, MEAN, false)                                                                     \
    X(MAJORITY, majority, MEAN, false)                                                                       \
    X(LATENCY_P50, latency_p50, MEAN, false)                                                                 \
    X(LATENCY_P99, latency_p99, HIGH, false)                                                                 \
    X(SMALLEST_P, smallest_p, LOW, true)                                                                     \
    X(ALERT_LEVEL, alert_level, MEAN, false)                                                                 \
    X(ALERTS_OPEN, alerts_open, MEAN, false)                                                                 \
    X(MEMORY, memory, MEAN, false)                                                                           \
    X(JOURNAL_BYTES, journal_bytes, MEAN, false)                                                             \
    X(DISK_FREE, disk_free, MEAN, false)                                                                     \
    X(DISK_SIZE, disk_size, MEAN, false)                                                                     \
    X(CONNECTIONS, connections, MEAN, false)                                                                 \
    X(KEYS, keys, MEAN, false)

enum history_figure {
#define X(constant, name, merge, log) HISTORY_##constant,
    HISTORY_FIGURES(X)
#undef X
        HISTORY_FIGURE_COUNT
};

struct history_cell {
    double value, low, high;
    uint32_t weight; /* 0: not known, and the others are not set */
};

struct history_point {
    int64_t t; /* seconds since 1970 at its begin */
    struct history_cell cell[HISTORY_FIGURE_COUNT];
};

const char *http_history_point_name(enum history_figure f);

/* Adds one measurement, unless it is not finite. */
void http_history_point_add(struct history_point *p, enum history_figure f, double value);

/* Merges the figures of another point of the same span. */
void http_history_point_merge(struct history_point *into, const struct history_point *p);

/* The largest weight of its figures; 0: nothing is known. */
uint32_t http_history_point_weight(const struct history_point *p);

#define HISTORY_POINT_BYTES (11 + 14 * HISTORY_FIGURE_COUNT) /* at most, encoded */

/* Encodes the figures in single precision, with a checksum. Returns the number of bytes. */
size_t http_history_point_encode(const struct history_point *p, uint8_t out[HISTORY_POINT_BYTES]);

/* Replaces the figures, not `t`. False: the bytes are damaged; nothing is known of the point then. */
bool http_history_point_decode(struct history_point *p, const void *bytes, size_t size);

#endif
