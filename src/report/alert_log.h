/* alert_log.h: the alerts that a stream would have reported, collected from its events: a line each for
 * people, a map each for programs, and counts.
 *
 *     2015-02-04 17:51:00  #3 open               pump1 vibration 4.1 (usually 0.9 to 1.3), novelty 0.82, ...
 *     2015-02-04 18:03:00  #3 closed after 12 min  pump1 back to normal after 12 min, ...
 *
 * It needs a score event for every sample (svi_stream_score_all), because these count the rows and their
 * time. Its memory does not grow with the rows; at most SVI_ALERT_LOG_EVENTS events are stored for programs.
 */
#ifndef SVI_ALERT_LOG_H
#define SVI_ALERT_LOG_H

#include <stdio.h>

#include "report/alert_plot.h"
#include "report/incidents.h"
#include "report/progress.h"
#include "wire/event.h"
#include "wire/pack.h"

#define SVI_ALERT_LOG_EVENTS 100000
#define SVI_ALERT_LOG_KINDS  16   /* kinds, and detectors or rules, counted separately */
#define SVI_ALERT_LOG_KEYS   4096 /* keys counted separately */

/* An open alert. */
struct svi_alert_episode {
    int64_t alert;  /* its number, unique within its key */
    double opened;  /* seconds since 1970, or row */
    int64_t before; /* index of the incident that it precedes; -1 = none */
    bool outside;   /* belongs to no incident so far */
    bool keyed;     /* `key` is set: the stream has keys */
    char key[SVS_KEY_MAX + 1];
};

struct svi_alert_kind {
    char name[24];
    int64_t count;
};

/* Number of alerts opened for a key. */
struct svi_alert_key {
    uint64_t hash;
    int64_t count;
    int64_t serious, warnings; /* reports of that severity, updates too */
    char name[SVS_KEY_MAX + 1];
};

/* Zero-initialised is empty; the owner fills the first part. */
struct svi_alert_log {
    FILE *lines;                     /* NULL = none */
    struct svi_progress *progress;   /* cleared before a line is printed; may be NULL */
    struct svi_incidents *incidents; /* NULL = none */
    struct svi_alert_plot *plots;    /* [plot_count] */
    int plot_count;
    bool silent;  /* the same rows again: passes repeat no message */
    bool keeps;   /* store events for programs */
    bool by_rows; /* the samples have no times: row numbers stand for them */

    int64_t rows;
    double first, last; /* earliest and latest: seconds since 1970, or rows */
    int64_t alerts, updates, closed;
    int64_t outside;        /* alerts that belong to no incident */
    double longest, lasted; /* durations of closed alerts: the longest, and the sum */
    struct svi_alert_kind kinds[SVI_ALERT_LOG_KINDS], judges[SVI_ALERT_LOG_KINDS];
    struct svi_alert_key *keys; /* in the order of their first report */
    int64_t key_count, key_capacity;
    char first_key[SVS_KEY_MAX + 1]; /* of the first row with a key; "" = no row has one */
    struct svi_alert_episode *open;  /* the open alerts */
    int64_t open_count, open_capacity;
    struct svi_bytes events; /* a msgpack map each */
    int64_t event_count, events_left_out;
    char budget[32]; /* set by svi_preview_end_pass: that of the settings */
    bool failed;     /* memory ran out */
};

/* Takes score and alert events; ignores others. */
void svi_alert_log_take(struct svi_alert_log *l, const struct svi_event *event);

/* The keys whose alerts are the worst, at most `count` of those counted, the worst first: those with most
 * reports that are serious, then with most warnings, then with most alerts. Without alerts the key of the
 * first row. Returns their number, 0 for a stream without keys. */
int svi_alert_log_worst(const struct svi_alert_log *l, const char **keys, int count);

/* Call after the last row: alerts still open stay open. */
void svi_alert_log_end(struct svi_alert_log *l);

/* Forgets all events; the owner's part stays. */
void svi_alert_log_reset(struct svi_alert_log *l);
void svi_alert_log_clear(struct svi_alert_log *l);

#endif
