/* join.h: values of several sensors become samples; where samples have keys, those of one key.
 *
 * each: every message makes a sample, with the last values of the other sensors.
 * all: a sample when every sensor has a new value. Which sensors there are is known from the list, or from
 * the first round: it ends when a sensor comes for the second time. With `stale`, sensors that fell silent
 * are not waited for. period: one sample for each period in which a value arrived; it holds the newest
 * values. A period ends with the first value of a later one or, when none comes, by the clock.
 *
 * A sample's time is that of the newest value that arrived since the last one. Values of sensors that have
 * not come yet (listed ones) or are stale are missing. Retained messages fill in values and make no sample.
 */
#ifndef MQTT_JOIN_H
#define MQTT_JOIN_H

#include "mqtt_options.h"
#include "payload.h"
#include "log.h"

struct sensor {
    char name[NAME_BYTES + 1];
    bool seen, fresh,
        missing;      /* fresh: since the last sample; missing: it reported itself that it has no value */
    bool valued;      /* it has had a value */
    bool left_out;    /* listed: no sample holds it before it has one */
    double value, at; /* seconds since 1970 */
};

struct join;
typedef void join_sample(void *context, const struct join *j, double ts, const struct sample_id *id);

/* How values are joined: the same for all keys. */
struct join_plan {
    enum join_mode mode;
    double period, stale;         /* seconds */
    char (*name)[NAME_BYTES + 1]; /* of listed features, `listed` of them; 0: any are taken */
    int listed;
    join_sample *sample;
    void *context;
    struct counters *counters;
};

struct join {
    const struct join_plan *plan;
    struct sensor *sensor; /* owned; listed ones first, in their order */
    int sensors;
    int64_t capacity;
    bool learning; /* all: the first round, in which sensors become known */
    int fresh;
    double newest;               /* time of the newest value since the last sample */
    int64_t number;              /* of the period that these belong to */
    double due;                  /* svi_monotonic: the period ends, if anything arrived */
    struct sample_id id;         /* the last one since the last sample */
    struct join *before, *after; /* for joins.c: in the order of their last use, ... */
    double used;                 /* ... svi_monotonic */
    int64_t place;               /* among those whose periods end, from 1; 0: nothing is due */
    char key[SVS_KEY_MAX + 1];
};

/* The list (NULL: any) is checked: 2 and a line on standard error when it has a name twice or too long. Owner
 * of `name` (svi_free): the caller. */
int mqtt_join_plan(struct join_plan *p, const struct options *o, struct counters *c, join_sample *sample,
                   void *context);

/* Owner: the caller. */
struct join *mqtt_join_new(const struct join_plan *plan, const char *key);
void mqtt_join_free(struct join **j);

/* One message: begin gives its time (it may complete what arrived before), value each of its values, end
 * makes the sample that is due. value: false when the feature is not taken (not listed: reason NULL; or a
 * reason).
 */
void mqtt_join_begin(struct join *j, double ts, bool has_ts, bool retained, const char *const *names,
                     int count);
bool mqtt_join_value(struct join *j, const char *name, const struct field *f, double ts, bool retained,
                     const char **reason);
void mqtt_join_end(struct join *j, const struct sample_id *id, double ts, bool retained);

/* Does the clock end a period, at j->due? Then this does. */
bool mqtt_join_pending(const struct join *j);
void mqtt_join_close(struct join *j);

/* At the end: what waits is sent, but for an unfinished round of `all`. */
void mqtt_join_flush(struct join *j);

/* Is it in the samples? A sensor that has never had a value is so only when it is listed: svmstream may have
 * a value of it from before, to carry over. */
bool mqtt_join_takes(const struct join *j, const struct sensor *s);

/* svmstream has none, it says in `text`: sensors that are named there are left out until they have a value.
 */
void mqtt_join_leave_out(struct join *j, const char *text);

/* The value that a sample at `ts` holds. False: missing. */
bool mqtt_join_current(const struct join *j, const struct sensor *s, double ts, double *value);

#endif
