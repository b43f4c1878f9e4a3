/* alert_log.h: what a stream would have reported, taken from its events: a line each for people, the same for
 * programs, and counts.
 *
 *     2015-02-04 17:51:00  #3 open               pump1 vibration 4.1 (usual 0.9 to 1.3), novelty 0.82, ...
 *     2015-02-04 18:03:00  #3 closed after 12 min  pump1 back to normal after 12 min, ...
 *
 * It needs a score event of every sample (svi_stream_score_all), for that is what counts rows and their time.
 * Its memory does not grow with the rows; of events for programs at most SVI_ALERT_LOG_EVENTS are kept. */
#ifndef SVI_ALERT_LOG_H
#define SVI_ALERT_LOG_H

#include <stdio.h>

#include "report/alert_plot.h"
#include "report/incidents.h"
#include "report/progress.h"
#include "wire/event.h"
#include "wire/pack.h"

#define SVI_ALERT_LOG_EVENTS 100000
#define SVI_ALERT_LOG_KINDS  16   /* kinds, and judges or rules, that are counted on their own */
#define SVI_ALERT_LOG_KEYS   4096 /* likewise keys */

/* An alert that is open. */
struct svi_alert_episode {
    int64_t alert;  /* its number, of its key */
    double opened;  /* where */
    int64_t before; /* incidents.h */
    bool outside;   /* it belongs to no incident so far */
    bool keyed;     /* the stream has keys: */
    char key[SVS_KEY_MAX + 1];
};

struct svi_alert_kind {
    char name[24];
    int64_t count;
};

/* Alerts that opened in the name of a key. */
struct svi_alert_key {
    uint64_t hash;
    int64_t count;
    char name[SVS_KEY_MAX + 1];
};

/* Zero-initialised is empty; the first part is the owner's to fill. */
struct svi_alert_log {
    FILE *lines;                     /* NULL = none */
    struct svi_progress *progress;   /* makes way for a line; may be NULL */
    struct svi_incidents *incidents; /* NULL = none */
    struct svi_alert_plot *plot;     /* NULL = none */
    bool keeps;                      /* events for programs */
    bool by_rows; /* the samples have no times: the number of a row stands in the place of one */

    int64_t rows;
    double first, last; /* the earliest and the latest of them: seconds since 1970, or rows */
    int64_t alerts, updates, closed;
    int64_t outside;        /* alerts that belong to no incident */
    double longest, lasted; /* of those that closed; all together */
    struct svi_alert_kind kinds[SVI_ALERT_LOG_KINDS], judges[SVI_ALERT_LOG_KINDS];
    struct svi_alert_key *keys; /* in the order of their first report */
    int64_t key_count, key_room;
    struct svi_alert_episode *open; /* those that are */
    int64_t open_count, open_capacity;
    struct svi_bytes events; /* a map each */
    int64_t event_count, events_left_out;
    char budget[32]; /* that of the settings; svi_preview_end_pass */
    bool failed;     /* memory ran out */
};

/* Takes score and alert events; others are none of its business. */
void svi_alert_log_take(struct svi_alert_log *l, const struct svi_event *event);

/* All rows are in: what is open stays so. */
void svi_alert_log_end(struct svi_alert_log *l);

/* Forgets what it has taken. */
void svi_alert_log_reset(struct svi_alert_log *l);
void svi_alert_log_clear(struct svi_alert_log *l);

#endif
