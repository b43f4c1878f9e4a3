/* alert_groups.h: groups of alerts of several keys with one cause: their members, and what was reported of
 * them.
 *
 * An alert that opens joins an open group of the same cause whose last alert opened within `window` seconds,
 * or begins a new group. A group ends when the last of its alerts has closed. A group of a single key is
 * dropped when the next alert of its cause cannot join it, or when the capacity is needed. The first keys of
 * a group are named, the others counted.
 *
 * Times are those of the events. Results depend on the calls and their order alone. */
#ifndef SVI_ALERT_GROUPS_H
#define SVI_ALERT_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "svmstream/error.h"
#include "svmstream/value.h"

#define SVI_GROUPS        256               /* at most; further alerts are not grouped */
#define SVI_GROUP_MEMBERS (1 << 20)         /* alerts in all groups, likewise */
#define SVI_GROUP_NAMES   16                /* keys of a group that are named */
#define SVI_GROUP_KEY     (SVS_KEY_MAX + 1) /* bytes of a name */
#define SVI_GROUP_WORD    12
#define SVI_GROUP_CAUSES  3 /* most groups by cause that an alert is looked up in */
#define SVI_GROUP_TEXT    400

/* Contents of the first alert, repeated in the events that name further keys. */
struct svi_group_first {
    char kind[SVI_GROUP_WORD], rule[SVI_GROUP_WORD], measure[SVI_GROUP_WORD], judge[SVI_GROUP_WORD];
    double novelty, membership, p, grade, surprise, expected, before, after, since;
    int over, sensors;
    char text[SVI_GROUP_TEXT]; /* without the key */
};

struct svi_alert_group {
    uint64_t number; /* number of groups before it */
    uint64_t cause;
    double last;           /* time of the last alert that opened */
    bool by_arrival;       /* `last`, and the time of the first, are arrivals, not time stamps */
    uint64_t leader;       /* number of the key under whose name the group is reported, ... */
    int64_t alert;         /* ... and its alert */
    int64_t open;          /* open alerts */
    int64_t keys;          /* keys that belong or belonged to it */
    int64_t reported;      /* value of `keys` at the last report */
    double due, due_at;    /* when the next report is due, by arrival or by event time; INFINITY: none */
    double updated;        /* arrival, and ... */
    double updated_at;     /* ... event time of the last report */
    int updates;           /* reports that named further keys */
    int severity;          /* the highest; 0: lowest, or none */
    int severity_reported; /* value at the last report */
    int named;             /* used places of `name` and `alerts` */
    char name[SVI_GROUP_NAMES][SVI_GROUP_KEY]; /* the leader's first */
    int64_t alerts[SVI_GROUP_NAMES];
    struct svi_group_first first;
    uint32_t oldest, newest; /* members, for svi_alert_groups only */
};

typedef struct svi_alert_groups svi_alert_groups;

/* An alert of a key. */
struct svi_group_alert {
    uint64_t key; /* its number */
    const char *name;
    int64_t alert;
    uint64_t cause;
    uint64_t others[SVI_GROUP_CAUSES - 1]; /* further causes that it may join: `other_count` */
    int other_count;
    double time;
};

/* NULL: SVS_NO_MEMORY. */
svi_alert_groups *svi_alert_groups_new(svs_error *err);
void svi_alert_groups_free(svi_alert_groups **g);

/* Number of groups, and group i, from 0, in the order in which they began. */
int svi_alert_groups_count(const svi_alert_groups *g);
struct svi_alert_group *svi_alert_groups_at(svi_alert_groups *g, int i);

/* The group of an open alert; NULL: it is not grouped. */
struct svi_alert_group *svi_alert_groups_of(svi_alert_groups *g, uint64_t key, int64_t alert);

/* An alert opens: returns the group that it joins, one of its cause before one of the others, or a new one
 * (`keys` 1) whose `first` the caller fills in.
 * NULL: no capacity, the alert is not grouped. */
struct svi_alert_group *svi_alert_groups_open(svi_alert_groups *g, const struct svi_group_alert *a,
                                              double window);

/* close: removes an alert from its group, which stays even when empty; end: removes the group. */
void svi_alert_groups_close(svi_alert_groups *g, struct svi_alert_group *group, uint64_t key, int64_t alert);
void svi_alert_groups_end(svi_alert_groups *g, struct svi_alert_group *group);

/* Closes one open alert of a key and returns its group; NULL: the key has no open alert left. */
struct svi_alert_group *svi_alert_groups_drop(svi_alert_groups *g, uint64_t key);

/* The open alert of the group that joined first. The group must have one. */
void svi_alert_groups_oldest(const svi_alert_groups *g, const struct svi_alert_group *group, uint64_t *key,
                             int64_t *alert);

/* forget: removes the name of a key that was removed. set_leader: reports the group under this key, named
 * first. */
void svi_alert_groups_forget(struct svi_alert_group *group, const char *name);
void svi_alert_groups_set_leader(struct svi_alert_group *group, const struct svi_group_alert *leader);

/* All but the arrivals (`due`, `updated`), which clock_archive saves. It loads into the groups that are
 * there. */
void svi_alert_groups_archive(struct svi_archive *a, svi_alert_groups *g);
void svi_alert_groups_clock_archive(struct svi_archive *a, svi_alert_groups *g);

#endif
