/* figures.h: the figures in a stream's status as metrics. figures_table.c has a row for each key of stats and
 * status that is a number, and figures.c reads a status by these rows and writes what it found.
 *
 * A counter is a figure that never falls while the epoch lasts; everything else is a gauge. Figures over the
 * window (keys ending in .w) are metrics of their own, as neither their sum nor their mean with the totals
 * has a meaning. No stream key ever becomes a label. */
#ifndef HTTP_FIGURES_H
#define HTTP_FIGURES_H

#include <stdint.h>

#include "exposition.h"
#include "svmstream/error.h"

#define HTTP_CLASSES_MAX 32 /* a stream with more classes has no figures by class, as in its stats */
#define HTTP_CLASS_BYTES 160
#define HTTP_BOUNDS_MAX  64 /* a histogram with more buckets is not taken */
#define HTTP_TEXT_BYTES  80

/* One row: a key and its metric. */
struct http_figure {
    const char *key; /* as in the status, with .w for the window */
    double scale;    /* metric = figure * scale */
    struct http_family family;
};

extern const struct http_figure http_figures_table[];   /* pairs of a status; a row without a key ends it */
extern const struct http_figure http_figures_classes[]; /* of an entry of by_class, likewise */
extern const char *const http_figures_others[];         /* keys that have no row; ends in NULL */
extern const struct http_family http_figures_latency;

#define HTTP_FIGURES_MAX       160 /* rows of the first table */
#define HTTP_CLASS_FIGURES_MAX 10  /* of the second */

struct http_class_figures {
    char label[HTTP_CLASS_BYTES];
    double value[HTTP_CLASS_FIGURES_MAX]; /* NAN: absent */
};

struct http_latency {
    double bounds[HTTP_BOUNDS_MAX], buckets[HTTP_BOUNDS_MAX + 1], sum;
    int bounds_count; /* 0: no histogram */
};

/* What a status says. */
struct http_figures {
    double value[HTTP_FIGURES_MAX];
    bool known[HTTP_FIGURES_MAX];       /* a gauge may be NAN and known */
    double refused[SVS_CODE_COUNT + 1]; /* by code, the last of all codes that are not known here */
    struct http_class_figures classes[HTTP_CLASSES_MAX];
    int class_count;
    struct http_latency latency;
    char version[HTTP_TEXT_BYTES], serving[HTTP_TEXT_BYTES];
    const char *task;                  /* "classify", "regress", or "" */
    bool refit_failed, novelty_failed; /* there is a text that says why */
    int unknown; /* pairs that no row takes: of a stream newer than this program, or not of the form expected
                  */
};

/* Reads a status, one msgpack map. False: it is not one, and *f is not valid. */
bool http_figures_read(struct http_figures *f, const void *status, size_t size);

/* A stream as /metrics shows it. */
struct http_shown {
    const char *stream;                 /* its name, unique among all streams */
    bool up;                            /* it answers */
    double age;                         /* seconds since its last answer; NAN: none so far */
    const struct http_figures *figures; /* NULL: it does not answer, and its last figures are not repeated */
};

/* Writes all families of streams. */
void http_figures_write(struct http_exposition *x, const struct http_shown *shown, int count);

#endif
