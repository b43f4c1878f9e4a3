/* joins.h: a join for each key, found by its name; without keys there is one, of key "".
 *
 * A key is begun by its first message. There are --keys of them at most, so that invented topics
 * take no more memory than that. When there is no place for a new key, it replaces the one that has
 * been silent longest, if that is longer than an hour. The last values of the replaced key are
 * forgotten. Periods end in the order in which they are due, whatever the number of keys. */
#ifndef MQTT_JOINS_H
#define MQTT_JOINS_H

#include "join.h"

#define MQTT_JOINS_SILENT 3600.0 /* seconds */

struct joins {
    struct join_plan plan;
    void *tree;                /* by key */
    struct join *first, *last; /* in the order of their last use */
    int64_t count, limit;
    struct join **due; /* a heap: due[0] ends first */
    int64_t pending, capacity;
};

/* As mqtt_join_plan. mqtt_joins_clear in any case. */
int mqtt_joins_open(struct joins *all, const struct options *o, struct counters *c, join_sample *sample,
                    void *context);
void mqtt_joins_clear(struct joins *all);

/* The join of that key. NULL: it is not known. */
struct join *mqtt_joins_find(const struct joins *all, const char *key);

/* The same for a message of the key at that time (svi_monotonic): it is made if none exists. NULL: there
 * are `limit`. */
struct join *mqtt_joins_use(struct joins *all, const char *key, double now);

/* Its period has begun, ended, or ends at another time. */
void mqtt_joins_note(struct joins *all, struct join *j);

/* Seconds until the clock ends a period; negative: nothing to wait for. */
double mqtt_joins_wait(const struct joins *all);

/* Ends those that are over; at the end, what waits is sent (mqtt_join_flush). */
void mqtt_joins_clock(struct joins *all);
void mqtt_joins_flush(struct joins *all);

#endif
