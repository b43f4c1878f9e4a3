/* Groups stand in the order in which they began.
 *
 * The alerts of all groups are in one pool (`member`). Each is in two lists, linked by places in the pool, 0
 * being none: `next`, those of its group in the order in which they joined, and `alike`, those whose keys
 * have the same bucket. Alerts that have closed stay until the group ends, so that a key that comes again is
 * not counted twice. Places that were given back are used again, the last one first: no result depends on
 * which place an alert has.
 *
 * Invariants: group->open is the number of its open members, group->keys the number of different keys that
 * are or were in it, and group->reported of these were reported. A key has at most one open alert in a group.
 * Read svi_alert_groups_open first. */
#include "fleet/alert_groups.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

#define BUCKETS_FIRST 64 /* a power of 2 */

struct group_member {
    uint64_t key;
    int64_t alert;
    struct svi_alert_group *group;
    uint32_t alike, next; /* of the same hash; of the group: 0: none */
    bool open;
};

struct svi_alert_groups {
    struct svi_alert_group *at[SVI_GROUPS];
    int count;
    uint64_t begun;
    struct group_member *member; /* from place 1 on */
    uint32_t *bucket;
    uint32_t capacity, used, spare; /* places; begun so far; the first of those given back */
    uint32_t members;
};

svi_alert_groups *svi_alert_groups_new(svs_error *err) {
    svi_alert_groups *g = svi_alloc(sizeof *g);
    if (!g)
        svi_fail_memory(err, "the groups of alerts");
    return g;
}

void svi_alert_groups_free(svi_alert_groups **g) {
    if (!*g)
        return;
    for (int i = 0; i < (*g)->count; i++)
        svi_free((*g)->at[i]);
    svi_free((*g)->member);
    svi_free((*g)->bucket);
    svi_free(*g);
    *g = NULL;
}

int svi_alert_groups_count(const svi_alert_groups *g) {
    return g->count;
}

struct svi_alert_group *svi_alert_groups_at(svi_alert_groups *g, int i) {
    return g->at[i];
}

/* ---- members */

/* Multiplication by 2^64 / golden ratio spreads numbers that follow each other; the high half is the better
 * one. */
static uint32_t *group_bucket(const svi_alert_groups *g, uint64_t key) {
    return &g->bucket[(key * 0x9e3779b97f4a7c15u >> 32) & (g->capacity - 1)];
}

/* Pool and buckets double together, to a limit. The pool has no free places then, so every used one is
 * hashed again. */
static bool groups_reserve(svi_alert_groups *g) {
    if (g->spare > 0 || g->used + 1 < g->capacity)
        return true;
    const uint32_t capacity = g->capacity ? 2 * g->capacity : BUCKETS_FIRST;
    if (capacity > 2 * SVI_GROUP_MEMBERS)
        return false;
    uint32_t *bucket = svi_alloc_array(capacity, sizeof *bucket);
    struct group_member *more =
        bucket ? svi_realloc(g->member, g->capacity * sizeof *more, capacity * sizeof *more) : NULL;
    if (!more) {
        svi_free(bucket);
        return false;
    }
    svi_free(g->bucket);
    g->bucket = bucket;
    g->member = more;
    g->capacity = capacity;
    for (uint32_t i = 1; i <= g->used; i++) { /* none was given back */
        uint32_t *b = group_bucket(g, g->member[i].key);
        g->member[i].alike = *b;
        *b = i;
    }
    return true;
}

/* room is 0 before the first member. */
static struct group_member *member_find(const svi_alert_groups *g, uint64_t key, int64_t alert) {
    uint32_t i = g->capacity ? *group_bucket(g, key) : 0;
    while (i && !(g->member[i].key == key && g->member[i].alert == alert))
        i = g->member[i].alike;
    return i ? &g->member[i] : NULL;
}

static bool member_add(svi_alert_groups *g, struct svi_alert_group *group, uint64_t key, int64_t alert,
                       bool open) {
    if (g->members == SVI_GROUP_MEMBERS || !groups_reserve(g))
        return false;
    /* A place that was given back, or the next one that was never used. */
    const uint32_t i = g->spare ? g->spare : g->used + 1;
    struct group_member *m = &g->member[i];
    if (g->spare)
        g->spare = m->next;
    else
        g->used++;
    uint32_t *b = group_bucket(g, key);
    *m = (struct group_member){.key = key, .alert = alert, .group = group, .alike = *b, .open = open};
    *b = i;
    *(group->newest ? &g->member[group->newest].next : &group->oldest) = i;
    group->newest = i;
    group->open += open;
    g->members++;
    return true;
}

/* Unlinks the member from its bucket. The list of its group is not repaired: only the end of the whole group
 * frees members. */
static void member_free(svi_alert_groups *g, uint32_t i) {
    struct group_member *m = &g->member[i];
    uint32_t *b = group_bucket(g, m->key);
    while (*b != i)
        b = &g->member[*b].alike;
    *b = m->alike;
    *m = (struct group_member){.next = g->spare};
    g->spare = i;
    g->members--;
}

/* ---- groups */

struct svi_alert_group *svi_alert_groups_of(svi_alert_groups *g, uint64_t key, int64_t alert) {
    struct group_member *m = member_find(g, key, alert);
    return m && m->open ? m->group : NULL;
}

void svi_alert_groups_end(svi_alert_groups *g, struct svi_alert_group *group) {
    for (uint32_t i = group->oldest, next; i; i = next) {
        next = g->member[i].next;
        member_free(g, i);
    }
    int at = 0;
    while (g->at[at] != group)
        at++;
    memmove(g->at + at, g->at + at + 1, (size_t)(g->count - at - 1) * sizeof *g->at);
    g->count--;
    svi_free(group);
}

/* Groups of one key that nobody can join any more end, so that their places serve others. Only those of this
 * cause are looked at, as another cause may have a larger window; where there is no place left, all of them.
 * The negated comparison ends a group whose time is NAN. */
static void groups_tidy(svi_alert_groups *g, uint64_t cause, double time, double window) {
    const bool full = g->count == SVI_GROUPS;
    for (int i = g->count; i-- > 0;)
        if ((full || g->at[i]->cause == cause) && g->at[i]->keys == 1 &&
            !(fabs(time - g->at[i]->last) <= window))
            svi_alert_groups_end(g, g->at[i]);
}

static struct svi_alert_group *groups_add(svi_alert_groups *g) {
    struct svi_alert_group *group = g->count < SVI_GROUPS ? svi_alloc(sizeof *group) : NULL;
    if (!group)
        return NULL;
    group->number = g->begun++;
    group->due = group->due_at = INFINITY;
    return g->at[g->count++] = group;
}

static void group_name(struct svi_alert_group *group, const struct svi_group_alert *a) {
    if (group->named == SVI_GROUP_NAMES)
        return;
    snprintf(group->name[group->named], SVI_GROUP_KEY, "%s", a->name);
    group->alerts[group->named++] = a->alert;
}

/* Has or had the key an alert in this group (returned), and is one of them open (*open)? */
static bool group_knows(const svi_alert_groups *g, const struct svi_alert_group *group, uint64_t key,
                        bool *open) {
    bool knows = false;
    *open = false;
    for (uint32_t i = g->capacity ? *group_bucket(g, key) : 0; i; i = g->member[i].alike)
        if (g->member[i].key == key && g->member[i].group == group) {
            knows = true;
            *open = *open || g->member[i].open;
        }
    return knows;
}

/* The newest group of this cause whose last alert is within the window. A group in which the key has an open
 * alert is passed over: two alerts of one key are two things, whatever their cause. */
static struct svi_alert_group *groups_match(const svi_alert_groups *g, const struct svi_group_alert *a,
                                            uint64_t cause, double window, bool *knows) {
    for (int i = g->count; i-- > 0;) {
        bool open;
        if (g->at[i]->cause != cause || !(fabs(a->time - g->at[i]->last) <= window))
            continue;
        *knows = group_knows(g, g->at[i], a->key, &open);
        if (!open)
            return g->at[i];
    }
    *knows = false;
    return NULL;
}

/* The key had an alert in this group that has closed: the new one takes its place, and the key is not
 * counted again. */
static bool member_again(svi_alert_groups *g, struct svi_alert_group *group,
                         const struct svi_group_alert *a) {
    for (uint32_t i = *group_bucket(g, a->key); i; i = g->member[i].alike) {
        struct group_member *m = &g->member[i];
        if (m->key != a->key || m->group != group || m->open)
            continue;
        m->alert = a->alert;
        m->open = true;
        group->open++;
        return true;
    }
    return false;
}

struct svi_alert_group *svi_alert_groups_open(svi_alert_groups *g, const struct svi_group_alert *a,
                                              double window) {
    bool knows;
    groups_tidy(g, a->cause, a->time, window);
    struct svi_alert_group *group = groups_match(g, a, a->cause, window, &knows);
    for (int i = 0; !group && i < a->other_count; i++)
        group = groups_match(g, a, a->others[i], window, &knows);
    const bool joins = group;
    if (!joins && !(group = groups_add(g)))
        return NULL;
    if (!(knows && member_again(g, group, a)) && !member_add(g, group, a->key, a->alert, true)) {
        /* A group of its own without a member must not stay. */
        if (!joins)
            svi_alert_groups_end(g, group);
        return NULL;
    }
    if (!joins) {
        group->cause = a->cause;
        group->leader = a->key;
        group->alert = a->alert;
    }
    group->last = a->time;
    group->keys += !knows;
    if (!knows)
        group_name(group, a);
    return group;
}

void svi_alert_groups_close(svi_alert_groups *g, struct svi_alert_group *group, uint64_t key, int64_t alert) {
    struct group_member *m = member_find(g, key, alert);
    group->open--;
    m->open = false;
}

/* One alert a call: the caller publishes what follows from it before it asks for the next. */
struct svi_alert_group *svi_alert_groups_drop(svi_alert_groups *g, uint64_t key) {
    for (uint32_t i = g->capacity ? *group_bucket(g, key) : 0; i; i = g->member[i].alike)
        if (g->member[i].key == key && g->member[i].open) {
            svi_alert_groups_close(g, g->member[i].group, key, g->member[i].alert);
            return g->member[i].group;
        }
    return NULL;
}

/* `next` is in the order of joining, and the group has an open member. */
void svi_alert_groups_oldest(const svi_alert_groups *g, const struct svi_alert_group *group, uint64_t *key,
                             int64_t *alert) {
    uint32_t i = group->oldest;
    while (!g->member[i].open)
        i = g->member[i].next;
    *key = g->member[i].key;
    *alert = g->member[i].alert;
}

static void group_forget_name(struct svi_alert_group *group, const char *name) {
    int kept = 0;
    for (int i = 0; i < group->named; i++)
        if (strcmp(group->name[i], name) != 0) {
            memmove(group->name[kept], group->name[i], SVI_GROUP_KEY);
            group->alerts[kept++] = group->alerts[i];
        }
    group->named = kept;
}

/* What was reported cannot exceed what is left: else the next key that joins would not be reported. */
void svi_alert_groups_forget(struct svi_alert_group *group, const char *name) {
    group_forget_name(group, name);
    group->keys--;
    group->reported = group->reported > group->keys ? group->keys : group->reported;
}

/* The leader's name moves to the front, whether or not it was among those named; the last name falls off if
 * there is no place. */
void svi_alert_groups_set_leader(struct svi_alert_group *group, const struct svi_group_alert *leader) {
    group_forget_name(group, leader->name);
    const int shift = group->named < SVI_GROUP_NAMES - 1 ? group->named : SVI_GROUP_NAMES - 1;
    memmove(group->name[1], group->name[0], (size_t)shift * SVI_GROUP_KEY);
    memmove(group->alerts + 1, group->alerts, (size_t)shift * sizeof *group->alerts);
    snprintf(group->name[0], SVI_GROUP_KEY, "%s", leader->name);
    group->alerts[0] = group->alert = leader->alert;
    group->named = shift + 1;
    group->leader = leader->key;
}

/* ---- archive */

#define MAX_COUNT (INT64_MAX / 4)

static void group_archive_first(struct svi_archive *a, struct svi_group_first *f) {
    svi_archive_text(a, "kind", f->kind, sizeof f->kind);
    svi_archive_text(a, "rule", f->rule, sizeof f->rule);
    svi_archive_text(a, "measure", f->measure, sizeof f->measure);
    svi_archive_text(a, "judge", f->judge, sizeof f->judge);
    svi_archive_double(a, "novelty", &f->novelty);
    svi_archive_double(a, "membership", &f->membership);
    svi_archive_double(a, "p", &f->p);
    svi_archive_double(a, "grade", &f->grade);
    svi_archive_double(a, "surprise", &f->surprise);
    svi_archive_double(a, "expected", &f->expected);
    svi_archive_double(a, "before", &f->before);
    svi_archive_double(a, "after", &f->after);
    svi_archive_double(a, "since", &f->since);
    svi_archive_int(a, "over", &f->over, 0, INT32_MAX);
    svi_archive_int(a, "sensors", &f->sensors, 0, INT32_MAX);
    svi_archive_text(a, "text", f->text, sizeof f->text);
}

static void group_archive(struct svi_archive *a, struct svi_alert_group *group) {
    svi_archive_uint64(a, "number", &group->number);
    svi_archive_uint64(a, "cause", &group->cause);
    svi_archive_double(a, "last", &group->last);
    svi_archive_bool(a, "by arrival", &group->by_arrival);
    svi_archive_uint64(a, "leader", &group->leader);
    svi_archive_int64(a, "alert", &group->alert, 0, MAX_COUNT);
    svi_archive_int64(a, "keys", &group->keys, 1, MAX_COUNT);
    svi_archive_int64(a, "reported", &group->reported, 0, MAX_COUNT);
    svi_archive_double(a, "due at", &group->due_at);
    svi_archive_double(a, "updated at", &group->updated_at);
    svi_archive_int(a, "updates", &group->updates, 0, INT32_MAX / 2);
    svi_archive_int(a, "severity", &group->severity, 0, 2);
    svi_archive_int(a, "severity reported", &group->severity_reported, 0, 2);
    svi_archive_int(a, "named", &group->named, 0, SVI_GROUP_NAMES);
    for (int i = 0; i < group->named && svi_archive_ok(a); i++) {
        svi_archive_text(a, "name", group->name[i], SVI_GROUP_KEY);
        svi_archive_int64(a, "its alert", &group->alerts[i], 0, MAX_COUNT);
    }
    group_archive_first(a, &group->first);
    svi_archive_check(a, group->leader == UINT64_MAX || (group->named > 0 && group->name[0][0]),
                      "a group has no leader");
}

static void group_archive_members(struct svi_archive *a, svi_alert_groups *g, struct svi_alert_group *group) {
    const bool loading = svi_archive_loading(a);
    int64_t count = 0;
    for (uint32_t i = group->oldest; i; i = g->member[i].next)
        count++;
    svi_archive_int64(a, "members", &count, 1, SVI_GROUP_MEMBERS);
    uint32_t at = group->oldest;
    for (int64_t i = 0; i < count && svi_archive_ok(a); i++) {
        struct group_member m = loading ? (struct group_member){0} : g->member[at];
        at = loading ? 0 : m.next;
        svi_archive_uint64(a, "key", &m.key);
        svi_archive_int64(a, "alert", &m.alert, 0, MAX_COUNT);
        svi_archive_bool(a, "open", &m.open);
        if (!loading || !svi_archive_ok(a) ||
            !svi_archive_check(a, !member_find(g, m.key, m.alert), "an alert is in a group twice"))
            continue;
        if (!member_add(g, group, m.key, m.alert, m.open))
            svi_archive_fail(a, SVS_NO_MEMORY, "no memory for groups of alerts");
    }
    svi_archive_check(a, group->open > 0, "a group has no open alert");
}

void svi_alert_groups_archive(struct svi_archive *a, svi_alert_groups *g) {
    int count = g->count;
    svi_archive_uint64(a, "begun", &g->begun);
    svi_archive_int(a, "groups", &count, 0, SVI_GROUPS);
    for (int i = 0; i < count && svi_archive_ok(a); i++) {
        struct svi_alert_group *group = svi_archive_loading(a) ? groups_add(g) : g->at[i];
        if (!group) {
            svi_archive_fail(a, SVS_NO_MEMORY, "no memory for groups of alerts");
            return;
        }
        /* groups_add counts a group as begun; those of the state are in the number that was read. */
        g->begun -= svi_archive_loading(a);
        group_archive(a, group);
        group_archive_members(a, g, group);
    }
}

void svi_alert_groups_clock_archive(struct svi_archive *a, svi_alert_groups *g) {
    for (int i = 0; i < g->count && svi_archive_ok(a); i++) {
        svi_archive_double(a, "due", &g->at[i]->due);
        svi_archive_double(a, "updated", &g->at[i]->updated);
        svi_archive_check(a, !isnan(g->at[i]->due) && !isnan(g->at[i]->updated), "a time is not valid");
    }
}
