/* run_log.h: the log of a run for people: addresses at the start; refusals and alerts of sockets, at most a
 * line a second, with counts by kind since the previous line; the results as the last lines. */
#ifndef SVI_RUN_LOG_H
#define SVI_RUN_LOG_H

#include <stdio.h>

#include "fleet/stream.h"

struct svi_run_log {
    FILE *to;    /* NULL = nowhere */
    bool counts; /* count refusals and alerts; false for rows, which are reported individually */
    const struct svi_settings *settings;
    svi_stream *stream;   /* set once it exists */
    int64_t seen, errors; /* counters of the stream at the start of the run */
    int labels;           /* notices about labels (new ones; 7 and "7") so far */

    int64_t refused[SVS_CODE_COUNT]; /* since the last line */
    int64_t alerts;                  /* their messages: an alert has one when it opens, changes and closes */
    bool due;                        /* a line is to be written */
    double logged;                   /* svi_monotonic of the last line */
    char reason[SVS_ERROR_TEXT];     /* reason of the first refusal since that line */
    char alert[SVS_ERROR_TEXT];      /* text of the latest alert */
};

/* Writes one line; `format` ends in a newline. */
void svi_run_log_line(const struct svi_run_log *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Logs how many keys fit into memory and why, and columns named in settings that a restored state does not
 * have. */
void svi_run_log_stream(const struct svi_run_log *l);

/* ---- meanwhile */

/* Takes an event. True: it is an error that refuses no sample; it is logged at once. */
bool svi_run_log_notice(struct svi_run_log *l, const struct svi_event *e);

/* Seconds until a line is due; INFINITY: nothing is to be logged. */
double svi_run_log_wait(const struct svi_run_log *l);

/* Writes the line if it is due; `last`: whatever is pending. */
void svi_run_log_turn(struct svi_run_log *l, bool last);

/* ---- the end */

/* Writes the final figures. */
void svi_run_log_summary(const struct svi_run_log *l, double now);

/* Checks the refusals among `rows` rows: an error if more than half were refused; more than a tenth adds a
 * line to the log. */
svs_code svi_run_log_check(const struct svi_run_log *l, int64_t rows, svs_error *err);

#endif
