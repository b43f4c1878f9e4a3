/* feed.h: samples of sensors to svmstream: an outbox and its link (client/link.h).
 *
 * Samples wait in the outbox, --buffer of them at most, until svmstream has acknowledged them; when it is
 * full the oldest that is not under way is dropped. A process that is restarted without its state gets all
 * that was not acknowledged; what the one before had applied without being able to say so reaches both. With
 * --no-ack they are pushed as fast as a process is connected. */
#ifndef MQTT_FEED_H
#define MQTT_FEED_H

#include "client/link.h"
#include "joins.h"

struct feed {
    const struct options *options;
    struct counters *counters;
    struct joins *joins;
    struct link link;
    svs_outbox_figures figures; /* after the last turn */
    int64_t settled;            /* samples acknowledged, refused or sent on, after the last turn */
    int64_t failed;             /* samples that the outbox did not take */
    int64_t refusals;           /* for mqtt_log_few */
    int64_t complaints;         /* for mqtt_log_few */
    double again;       /* svi_monotonic: a peer that is not svmstream is left alone until then */
    double last_answer; /* svi_monotonic: the last answer, or when none was waited for */
    bool answered;      /* since the last turn */
    bool met;           /* it has answered once */
    bool silent;        /* for longer than PATIENCE, which was reported */
};

/* 0, or 1 and a line on standard error. link_close in any case. */
int mqtt_feed_open(struct feed *f, const struct options *o, struct counters *c, struct joins *j);

/* One more sample, what `j` holds at `ts`: a join_sample, whose context is the struct feed. */
void mqtt_feed_push(void *feed, const struct join *j, double ts, const struct sample_id *id);

/* Samples that wait for svmstream. */
int64_t mqtt_feed_waiting(const struct feed *f);

/* What to wait for: at most LINK_ITEMS items. */
int mqtt_feed_items(const struct feed *f, zmq_pollitem_t *items);

/* Seconds until mqtt_feed_turn has something to do, unless one of them is ready before. */
double mqtt_feed_wait(const struct feed *f);

/* Reads, connects, sends: whatever is possible now. */
void mqtt_feed_turn(struct feed *f);

#endif
