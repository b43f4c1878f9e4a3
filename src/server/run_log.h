/* event_log.h: refusals and alerts on the log of a process with sockets: a line a second at most, with how
 * many there were of each kind since the line before. */
#ifndef SVI_EVENT_LOG_H
#define SVI_EVENT_LOG_H

#include <stdio.h>

#include "wire/event.h"

struct svi_event_log {
    FILE *to;                        /* NULL = nowhere */
    int64_t refused[SVS_CODE_COUNT]; /* since the last line */
    int64_t alerts;
    bool due;                    /* there is something to log */
    double logged;               /* svi_monotonic of the last line */
    char reason[SVS_ERROR_TEXT]; /* of the first refusal since then */
    char alert[SVS_ERROR_TEXT];  /* text of the newest alert */
};

/* Counts an event; those that are neither an error nor an alert are none of its business. */
void svi_event_log_count(struct svi_event_log *l, const struct svi_event *e);

/* Seconds until a line is due; INFINITY: nothing is to be logged. */
double svi_event_log_wait(const struct svi_event_log *l);

/* Logs what is due; `last`: whatever there is. */
void svi_event_log_turn(struct svi_event_log *l, bool last);

#endif
