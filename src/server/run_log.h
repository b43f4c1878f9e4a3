/* run_log.h: what a run reports to people on its log: where it can be reached at the start; refusals and
 * alerts of sockets meanwhile, a line a second at most, with how many there were of each kind since the line
 * before; what it came to as the last lines. */
#ifndef SVI_RUN_LOG_H
#define SVI_RUN_LOG_H

#include <stdio.h>

#include "fleet/stream.h"

struct svi_run_log {
    FILE *to;    /* NULL = nowhere */
    bool counts; /* refusals and alerts are counted: not of rows, which are reported one by one */
    const struct svi_settings *settings;
    svi_stream *stream;   /* once there is one */
    int64_t seen, errors; /* of the stream when the run began */
    int twins;            /* notices about classes so far */

    int64_t refused[SVS_CODE_COUNT]; /* since the last line */
    int64_t alerts;
    bool due;                    /* there is something to log */
    double logged;               /* svi_monotonic of the last line */
    char reason[SVS_ERROR_TEXT]; /* of the first refusal since then */
    char alert[SVS_ERROR_TEXT];  /* text of the newest alert */
};

/* A line of its own, with its newline. */
void svi_run_log_line(const struct svi_run_log *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* How many keys may be in memory and by what; columns that a kept state does not know. */
void svi_run_log_stream(const struct svi_run_log *l);

/* ---- meanwhile */

/* Takes an event. True: it is an error that refuses no sample, and is logged at once. */
bool svi_run_log_notice(struct svi_run_log *l, const struct svi_event *e);

/* Seconds until a line is due; INFINITY: nothing is to be logged. */
double svi_run_log_wait(const struct svi_run_log *l);

/* Logs what is due; `last`: whatever there is. */
void svi_run_log_turn(struct svi_run_log *l, bool last);

/* ---- the end */

/* What the run came to. */
void svi_run_log_summary(const struct svi_run_log *l, double now);

/* Of so many rows: SVS_OK, or that more than half of them were refused; of more than a tenth a line says so.
 */
svs_code svi_run_log_check(const struct svi_run_log *l, int64_t rows, svs_error *err);

#endif
