/* merger_state.h: what a merge holds and publishes, without any socket but the publisher: its parts, its
 * model as an event, figures, and what is reported of parts. */
#ifndef SVI_MERGER_STATE_H
#define SVI_MERGER_STATE_H

#include <stdio.h>

#include "config/settings.h"
#include "merge/merge.h"
#include "net/publisher.h"

#define SVI_MERGER_SILENCE                                                                                   \
    "each worker needs publish.sums, and each address must be the `out` of one that is running"

#define SVI_MERGER_PARTS_SHOWN 100 /* of those that are not joined, in stats and status */

/* The figures of stats and status; texts point into the state. */
struct svi_merger_figures {
    struct svi_figure figure[24 + SVS_CODE_COUNT];
    char code[SVS_CODE_COUNT][48]; /* "refused.CODE" */
    int count;
};

struct svi_merger_state {
    const struct svi_settings *settings;
    struct svi_merge merge;
    svi_publisher *out; /* NULL: nothing is published */
    FILE *log, *errors; /* NULL: nowhere */
    uint64_t epoch;     /* start of the process, microseconds since 1970 */
    uint64_t seq[SVI_TOPIC_COUNT];
    int64_t refused[SVS_CODE_COUNT]; /* records, by code */
    double started;                  /* monotonic */
    double solved_at, solve_seconds; /* monotonic, of the last solution; how long it took */
    double connections, handshakes_refused;
    svs_error failure;     /* the last one that was reported */
    int classes;           /* of the model, when labels of two kinds were looked for */
    bool ended;            /* standard input has ended: a failure of the last solution is the result */
    int64_t lines, silent; /* refusals printed so far; not printed since the last line */
    double line_at;        /* monotonic, of the last line */
    int64_t left;          /* lines about parts that are left out */
    struct svi_bytes parts;
    struct svi_bytes prior; /* pairs of the last prior event */
};

/* Takes a record; one that is refused is counted and reported, and the merge continues. */
void svi_merger_take(struct svi_merger_state *s, const void *payload, size_t size);

/* Counts and reports a failure that is not of a record: a peer that was cut. */
void svi_merger_refuse(struct svi_merger_state *s, const svs_error *why, const void *sample, size_t size);

/* Monotonic time from which the next solution is allowed: publish.seconds after the last one, and never so
 * soon that solving takes more than a fifth of the time. INFINITY: nothing has changed. */
double svi_merger_due(const struct svi_merger_state *s);

/* Solves if anything has changed; reports parts that have joined or were refused since, and a failure. True:
 * the model is new. */
bool svi_merger_solve(struct svi_merger_state *s);

/* Marks silent parts. True: a mark has changed. */
bool svi_merger_mark(struct svi_merger_state *s);

/* Publish the last model, if there is one; and the figures. */
void svi_merger_publish_model(struct svi_merger_state *s);
void svi_merger_publish_stats(struct svi_merger_state *s);

/* The model as an event; SVS_UNAVAILABLE with the reason: there is no model yet. Encodes it into `out`. */
svs_code svi_merger_encode_model(struct svi_merger_state *s, struct svi_bytes *out, svs_error *err);

/* Fills *f; valid until the next call, or change. */
void svi_merger_figures(struct svi_merger_state *s, struct svi_merger_figures *f);

/* Puts the array of all parts, with the reason of each that is refused. */
void svi_merger_put_parts(const struct svi_merger_state *s, struct svi_pack *p);

/* At the end: how many were refused, by code. */
void svi_merger_summary(const struct svi_merger_state *s);

/* Prints how many parts and rows the last model is of; there must be one. */
void svi_merger_end(const struct svi_merger_state *s, FILE *to);

void svi_merger_clear(struct svi_merger_state *s);

#endif
