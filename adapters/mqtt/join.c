#include "join.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct sensor *find(const struct join *j, const char *name) {
    for (int i = 0; i < j->sensors; i++)
        if (strcmp(j->sensor[i].name, name) == 0)
            return &j->sensor[i];
    return NULL;
}

static struct sensor *add(struct join *j, const char *name) {
    struct sensor *s = &j->sensor[j->sensors++];
    strcpy(s->name, name);
    return s;
}

static int read_list(struct join *j, const char *list) {
    for (const char *at = list; at;) {
        size_t length = strcspn(at, ",");
        char name[NAME_BYTES + 1];
        if (length == 0 || length > NAME_BYTES || j->sensors == FEATURES_MAX) {
            say("--features %.100s: names have 1 to 64 bytes, and there are 1024 at most", list);
            return 2;
        }
        memcpy(name, at, length);
        name[length] = '\0';
        if (find(j, name)) {
            say("--features has %s twice", name);
            return 2;
        }
        add(j, name);
        at = at[length] ? at + length + 1 : NULL;
    }
    return 0;
}

int join_open(struct join *j, const struct options *o, struct counters *c, join_sample *sample,
              void *context) {
    *j = (struct join){.mode = o->join_mode,
                       .period = o->join_seconds,
                       .stale = o->stale,
                       .listed = o->features,
                       .learning = o->join_mode == JOIN_ALL && !o->features,
                       .newest = -HUGE_VAL,
                       .sample = sample,
                       .context = context,
                       .counters = c};
    j->sensor = need(FEATURES_MAX, sizeof *j->sensor);
    return read_list(j, o->features);
}

void join_close(struct join *j) {
    free(j->sensor);
    j->sensor = NULL;
}

bool join_current(const struct join *j, const struct sensor *s, double ts, double *value) {
    *value = s->value;
    return s->seen && !s->missing && (j->stale <= 0 || ts - s->at <= j->stale);
}

static void emit(struct join *j) {
    j->sample(j->context, j, j->newest, &j->id);
    for (int i = 0; i < j->sensors; i++)
        j->sensor[i].fresh = false;
    j->fresh = 0;
    j->newest = -HUGE_VAL;
    j->id.kind = ID_NONE;
}

/* A sensor that comes again ends the round in which the sensors become known. */
static bool ends_first_round(const struct join *j, const char *const *names, int count) {
    for (int i = 0; i < count; i++) {
        const struct sensor *s = find(j, names[i]);
        if (s && s->fresh)
            return true;
    }
    return false;
}

void join_begin(struct join *j, double ts, bool has_ts, bool retained, const char *const *names, int count) {
    if (retained)
        return;
    if (j->learning && ends_first_round(j, names, count)) {
        j->learning = false;
        emit(j);
    }
    if (j->mode != JOIN_PERIOD)
        return;
    int64_t number = (int64_t)floor(ts / j->period);
    if (j->fresh > 0 && number > j->number)
        emit(j);
    if (j->fresh == 0)
        j->number = number;
    /* Times of the sender's own may run at another pace than our clock: then silence ends a period. */
    double left = (double)(j->number + 1) * j->period - ts;
    if (has_ts || j->fresh == 0)
        j->due = clock_steady() + (has_ts ? j->period : left);
}

bool join_value(struct join *j, const char *name, const struct field *f, double ts, bool retained,
                const char **reason) {
    struct sensor *s = find(j, name);
    *reason = NULL;
    if (!s && j->listed)
        return false;
    if (!s && j->sensors == FEATURES_MAX) {
        *reason = "there are 1024 features already";
        return false;
    }
    s = s ? s : add(j, name);
    if (!retained) {
        j->counters->overwritten += s->fresh;
        j->fresh += !s->fresh;
        s->fresh = true;
        j->newest = fmax(j->newest, ts);
    }
    s->seen = true;
    s->missing = f->missing;
    s->value = f->value;
    s->at = ts;
    return true;
}

/* Nobody is waited for: each sensor is fresh, or stale. */
static bool complete(const struct join *j, double ts) {
    if (j->fresh == j->sensors)
        return true;
    for (int i = 0; i < j->sensors; i++) {
        const struct sensor *s = &j->sensor[i];
        if (!s->fresh && !(s->seen && j->stale > 0 && ts - s->at > j->stale))
            return false;
    }
    return true;
}

void join_end(struct join *j, const struct sample_id *id, double ts, bool retained) {
    if (retained || j->fresh == 0)
        return;
    if (id->kind != ID_NONE)
        j->id = *id;
    if (j->mode == JOIN_EACH || (j->mode == JOIN_ALL && !j->learning && complete(j, ts)))
        emit(j);
}

double join_wait(const struct join *j) {
    if (j->mode != JOIN_PERIOD || j->fresh == 0)
        return -1;
    return fmax(0, j->due - clock_steady());
}

void join_clock(struct join *j) {
    if (join_wait(j) == 0)
        emit(j);
}

void join_flush(struct join *j) {
    if (j->fresh > 0 && (j->mode == JOIN_PERIOD || j->learning))
        emit(j);
}
