/* How values of sensors become samples (join.h), for one key.
 *
 * Each message passes through mqtt_join_begin (what it ends is emitted first), mqtt_join_value for each of
 * its values, and mqtt_join_end; periods without a message are ended by mqtt_join_close.
 *
 * Invariant: `fresh` is the number of sensors with a value since the last sample, and `newest` the time of
 * the newest of these, -HUGE_VAL while none exists. */
#include "join.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"

static struct sensor *mqtt_join_find(const struct join *j, const char *name) {
    for (int i = 0; i < j->sensors; i++)
        if (strcmp(j->sensor[i].name, name) == 0)
            return &j->sensor[i];
    return NULL;
}

/* The list of --features, checked once; its order is that of the columns. */
static int read_list(struct join_plan *p, const char *list) {
    size_t names = 1;
    for (const char *at = list; at && *at; at++)
        names += *at == ',';
    p->name = mqtt_need(names, sizeof *p->name);
    for (const char *at = list; at;) {
        size_t length = strcspn(at, ",");
        char *name = p->name[p->listed];
        if (length == 0 || length > NAME_BYTES || p->listed == FEATURES_MAX) {
            mqtt_log("--features %.100s: up to 1024 names of 1 to 64 bytes are allowed", list);
            return 2;
        }
        memcpy(name, at, length);
        name[length] = '\0';
        for (int i = 0; i < p->listed; i++)
            if (strcmp(p->name[i], name) == 0) {
                mqtt_log("--features: duplicate name %s", name);
                return 2;
            }
        p->listed++;
        at = at[length] ? at + length + 1 : NULL;
    }
    return 0;
}

int mqtt_join_plan(struct join_plan *p, const struct options *o, struct counters *c, join_sample *sample,
                   void *context) {
    *p = (struct join_plan){.mode = o->join_mode,
                            .period = o->join_seconds,
                            .stale = o->stale,
                            .sample = sample,
                            .context = context,
                            .counters = c};
    return read_list(p, o->features);
}

/* Sensors keep the order in which they arrived: it is that of the columns. */
static struct sensor *mqtt_join_add(struct join *j, const char *name) {
    if (!svi_grow(&j->sensor, j->sensors, &j->capacity, 4, sizeof *j->sensor))
        mqtt_no_memory(sizeof *j->sensor);
    struct sensor *s = &j->sensor[j->sensors++];
    strcpy(s->name, name);
    return s;
}

struct join *mqtt_join_new(const struct join_plan *plan, const char *key) {
    struct join *j = mqtt_need(1, sizeof *j);
    j->plan = plan;
    /* Without a list `all` does not know how many sensors there are: a first round shows them, until one
     * comes for the second time. */
    j->learning = plan->mode == JOIN_ALL && !plan->listed;
    j->newest = -HUGE_VAL;
    strcpy(j->key, key);
    for (int i = 0; i < plan->listed; i++)
        mqtt_join_add(j, plan->name[i]);
    return j;
}

void mqtt_join_free(struct join **j) {
    if (*j)
        svi_free((*j)->sensor);
    svi_free(*j);
    *j = NULL;
}

/* A listed feature has a column from the start. Any other gets one with its first value: a column without
 * any value would show svmstream nothing but its name. */
bool mqtt_join_takes(const struct join *j, const struct sensor *s) {
    return s->valued || (j->plan->listed && !s->left_out);
}

/* `text` is svmstream's reason, in which features stand as ('name'). */
void mqtt_join_leave_out(struct join *j, const char *text) {
    char quoted[NAME_BYTES + 20], name[NAME_BYTES + 16];
    for (int i = 0; i < j->sensors; i++) {
        struct sensor *s = &j->sensor[i];
        snprintf(quoted, sizeof quoted, "('%s')", svi_escape(name, sizeof name, s->name, strlen(s->name)));
        if (!strstr(text, quoted))
            continue;
        s->left_out = true; /* until its next value: its earlier values are not known there any more */
        s->valued = false;
    }
}

bool mqtt_join_current(const struct join *j, const struct sensor *s, double ts, double *value) {
    *value = s->value;
    return s->seen && !s->missing && (j->plan->stale <= 0 || ts - s->at <= j->plan->stale);
}

/* Hands the sample on, then begins the next: values stay, and are no longer fresh. An id belongs to one
 * sample only. */
static void mqtt_join_emit(struct join *j) {
    j->plan->sample(j->plan->context, j, j->newest, &j->id);
    for (int i = 0; i < j->sensors; i++)
        j->sensor[i].fresh = false;
    j->fresh = 0;
    j->newest = -HUGE_VAL;
    j->id.value = svs_none();
}

/* Before the values of a message are allowed: what they would overwrite, or what a later period ends, is
 * emitted. Retained messages are old news, whose time says nothing. */
void mqtt_join_begin(struct join *j, double ts, bool has_ts, bool retained, const char *const *names,
                     int count) {
    if (retained)
        return;
    for (int i = 0; i < count && j->learning; i++) {
        const struct sensor *s = mqtt_join_find(j, names[i]);
        j->learning = !s || !s->fresh; /* one that comes again ends the round in which they become known */
        if (!j->learning)
            mqtt_join_emit(j);
    }
    if (j->plan->mode != JOIN_PERIOD)
        return;
    /* Periods have numbers by time stamp, so that they begin at the same times in every run. A value with an
     * older time stamp enters the period that is open. */
    int64_t number = (int64_t)floor(ts / j->plan->period);
    if (j->fresh > 0 && number > j->number)
        mqtt_join_emit(j);
    if (j->fresh == 0)
        j->number = number;
    /* Times of the sender's own may run at another pace than our clock: then silence ends a period. */
    double left = (double)(j->number + 1) * j->plan->period - ts;
    if (has_ts || j->fresh == 0)
        j->due = svi_monotonic() + (has_ts ? j->plan->period : left);
}

/* False and no *reason: the value is not in --features, which is counted but is no fault of the message. */
bool mqtt_join_value(struct join *j, const char *name, const struct field *f, double ts, bool retained,
                     const char **reason) {
    struct sensor *s = mqtt_join_find(j, name);
    *reason = NULL;
    if (!s && j->plan->listed)
        return false;
    if (!s && j->sensors == FEATURES_MAX) {
        *reason = "there are 1024 features already";
        return false;
    }
    if (!s)
        s = mqtt_join_add(j, name);
    if (!retained) {
        /* Overwritten: the value before this one is in no sample. */
        j->plan->counters->overwritten += s->fresh;
        j->fresh += !s->fresh;
        s->fresh = true;
        j->newest = fmax(j->newest, ts);
    }
    s->seen = true;
    s->missing = f->missing;
    s->valued = s->valued || !f->missing;
    s->value = f->value;
    s->at = ts;
    return true;
}

/* No sensor is waited for: each one is fresh, or has been silent for longer than --stale. */
static bool mqtt_join_complete(const struct join *j, double ts) {
    for (int i = 0; i < j->sensors; i++) {
        const struct sensor *s = &j->sensor[i];
        if (!s->fresh && !(s->seen && j->plan->stale > 0 && ts - s->at > j->plan->stale))
            return false;
    }
    return true;
}

/* After all values of a message: with `each`, and with `all` when the round is complete, the sample is
 * sent. A period waits for its end. */
void mqtt_join_end(struct join *j, const struct sample_id *id, double ts, bool retained) {
    if (retained || j->fresh == 0)
        return;
    if (id->value.kind != SVS_NONE) {
        j->id = *id;
        if (id->value.kind == SVS_STR)
            j->id.value.as.s = j->id.text;
    }
    if (j->plan->mode == JOIN_EACH ||
        (j->plan->mode == JOIN_ALL && !j->learning && mqtt_join_complete(j, ts)))
        mqtt_join_emit(j);
}

bool mqtt_join_pending(const struct join *j) {
    return j->plan->mode == JOIN_PERIOD && j->fresh > 0;
}

void mqtt_join_close(struct join *j) {
    if (mqtt_join_pending(j))
        mqtt_join_emit(j);
}

/* At the end of the program: a period that is open, and a first round that no sensor has ended, would be
 * lost otherwise. */
void mqtt_join_flush(struct join *j) {
    if (j->fresh > 0 && (j->plan->mode == JOIN_PERIOD || j->learning))
        mqtt_join_emit(j);
}
