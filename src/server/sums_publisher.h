/* sums_publisher.h: publishes the sums record of a stream (setting publish.sums).
 *
 * A publication is no part of the stream: it is neither journaled nor part of a state, and moves no bit of
 * it. So its events have numbers of their own, which begin with the process: their `epoch` is its start. */
#ifndef SVI_SUMS_PUBLISHER_H
#define SVI_SUMS_PUBLISHER_H

#include "fleet/stream.h"
#include "net/publisher.h"
#include "server/run_log.h"

struct svi_sums_publisher {
    svi_stream *stream;
    const struct svi_settings *settings;
    const struct svi_run_log *log;
    uint64_t epoch, seq;
    double at, took;              /* monotonic: end of the last publication, and seconds that it took */
    double interval;              /* publish.sums then; another one holds at once */
    uint64_t mark;                /* of the stream when `pairs` was made */
    struct svi_bytes pairs;       /* of the last record; empty: none yet */
    size_t count;                 /* their number */
    char trouble[SVS_ERROR_TEXT]; /* why no record can be made, as it was logged; "": one can */
};

/* Begins with the stream, which may have been recovered; `now` is the wall clock. */
void svi_sums_publisher_begin(struct svi_sums_publisher *p, svi_stream *s,
                              const struct svi_settings *settings, const struct svi_run_log *log, double now);
void svi_sums_publisher_clear(struct svi_sums_publisher *p); /* frees */

/* Bytes at most, those of the publisher's buffers included. */
double svi_sums_publisher_memory(const struct svi_settings *s, int d, int classes);

/* Seconds until a record is due; INFINITY: publish.sums is 0. */
double svi_sums_publisher_wait(const struct svi_sums_publisher *p);

/* Publishes the record of now. The window is summed up only if it has changed since the last record; else
 * that one is published again, as a sign of life. The gauge sums_milliseconds is the time of the last
 * pass. A record that cannot be made is reported in the log, once for each reason. `now`: arrival clock. */
void svi_sums_publisher_publish(struct svi_sums_publisher *p, svi_publisher *to, double now);

#endif
