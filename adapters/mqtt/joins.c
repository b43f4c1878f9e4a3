/* The joins of all keys: a tree by key (tsearch), a list in the order of last use, and a heap of those whose
 * period is open. A join is in the tree and the list, and in the heap while mqtt_join_pending says so (place
 * > 0). */
#include "joins.h"

#include <math.h>
#include <search.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "log.h"

static int mqtt_joins_order(const void *a, const void *b) {
    return strcmp(((const struct join *)a)->key, ((const struct join *)b)->key);
}

int mqtt_joins_open(struct joins *all, const struct options *o, struct counters *c, join_sample *sample,
                    void *context) {
    all->limit = o->keys;
    return mqtt_join_plan(&all->plan, o, c, sample, context);
}

static void mqtt_joins_forget(void *join) {
    (void)join; /* the list owns it */
}

/* The tree refers to joins that the list owns, so it is taken down first and frees none of them. */
void mqtt_joins_clear(struct joins *all) {
    tdestroy(all->tree, mqtt_joins_forget);
    for (struct join *j = all->first, *after; j; j = after) {
        after = j->after;
        mqtt_join_free(&j);
    }
    svi_free(all->due);
    svi_free(all->plan.name);
    *all = (struct joins){0};
}

static void mqtt_joins_unlink(struct joins *all, struct join *j) {
    *(j->before ? &j->before->after : &all->first) = j->after;
    *(j->after ? &j->after->before : &all->last) = j->before;
}

static void mqtt_joins_append(struct joins *all, struct join *j) {
    j->before = all->last;
    j->after = NULL;
    *(all->last ? &all->last->after : &all->first) = j;
    all->last = j;
}

/* Removes the key that has been silent longest, if there must be a place and it may be removed: silent for
 * an hour, and with no period open. The list is in the order of last use, so that key is the first. */
static bool mqtt_joins_reserve(struct joins *all, double now) {
    struct join *j = all->first;
    if (all->count < all->limit)
        return true;
    if (now - j->used < MQTT_JOINS_SILENT || j->place)
        return false;
    tdelete(j, &all->tree, mqtt_joins_order);
    mqtt_joins_unlink(all, j);
    mqtt_join_free(&j);
    all->count--;
    return true;
}

struct join *mqtt_joins_find(const struct joins *all, const char *key) {
    struct join sought;
    strcpy(sought.key, key);
    struct join **found = tfind(&sought, &all->tree, mqtt_joins_order);
    return found ? *found : NULL;
}

/* A new key takes its place only after the message was accepted (main.c): topics that somebody makes up take
 * none. */
struct join *mqtt_joins_use(struct joins *all, const char *key, double now) {
    struct join *j = mqtt_joins_find(all, key);
    if (!j && !mqtt_joins_reserve(all, now))
        return NULL;
    if (j) {
        mqtt_joins_unlink(all, j);
    } else {
        j = mqtt_join_new(&all->plan, key);
        if (!tsearch(j, &all->tree, mqtt_joins_order))
            mqtt_no_memory(sizeof *j);
        all->count++;
    }
    j->used = now;
    mqtt_joins_append(all, j);
    return j;
}

/* ---- which period ends first */

static void mqtt_joins_place(struct joins *all, int64_t at, struct join *j) {
    all->due[at] = j;
    j->place = at + 1;
}

/* Moves the one at `at` up or down to where it belongs: its time may have changed either way. */
static void mqtt_joins_sift(struct joins *all, int64_t at) {
    struct join *j = all->due[at];
    for (; at > 0 && all->due[(at - 1) / 2]->due > j->due; at = (at - 1) / 2)
        mqtt_joins_place(all, at, all->due[(at - 1) / 2]);
    for (int64_t child; (child = 2 * at + 1) < all->pending; at = child) {
        child += child + 1 < all->pending && all->due[child + 1]->due < all->due[child]->due;
        if (all->due[child]->due >= j->due)
            break;
        mqtt_joins_place(all, at, all->due[child]);
    }
    mqtt_joins_place(all, at, j);
}

/* Called after each message of a key: its period may have begun, moved or ended. The last of the heap takes
 * the place of one that leaves. */
void mqtt_joins_note(struct joins *all, struct join *j) {
    if (mqtt_join_pending(j)) {
        if (!j->place && !svi_grow(&all->due, all->pending, &all->capacity, 16, sizeof *all->due))
            mqtt_no_memory(sizeof *all->due);
        if (!j->place)
            mqtt_joins_place(all, all->pending++, j);
        mqtt_joins_sift(all, j->place - 1);
    } else if (j->place) {
        const int64_t at = j->place - 1;
        struct join *last = all->due[--all->pending];
        j->place = 0;
        if (last == j)
            return;
        mqtt_joins_place(all, at, last);
        mqtt_joins_sift(all, at);
    }
}

/* Negative where no period is open: only messages can change that. */
double mqtt_joins_wait(const struct joins *all) {
    return all->pending ? fmax(0, all->due[0]->due - svi_monotonic()) : -1;
}

void mqtt_joins_clock(struct joins *all) {
    const double now = svi_monotonic();
    /* mqtt_join_close ends the period, so mqtt_joins_note takes it out of the heap and the loop ends. */
    while (all->pending && all->due[0]->due <= now) {
        struct join *j = all->due[0];
        mqtt_join_close(j);
        mqtt_joins_note(all, j);
    }
}

void mqtt_joins_flush(struct joins *all) {
    for (struct join *j = all->first; j; j = j->after)
        mqtt_join_flush(j);
}
