/* alert_groups.h: alerts of several keys that have one cause: who belongs to whom, and what has been said of
 * it.
 *
 * An alert that opens begins a group of its own, or joins one that is open, of the same cause, whose last
 * alert opened within `window` seconds of it. A group ends when the last of its alerts has closed. One of a
 * single key is forgotten when the next alert of its cause cannot join it, or for want of room. Of each group
 * the first keys are named, the others counted.
 *
 * Times are those of the events. Nothing depends on anything but the calls in their order. */
#ifndef SVI_ALERT_GROUPS_H
#define SVI_ALERT_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "svmstream/error.h"
#include "svmstream/value.h"

#define SVI_GROUPS        256               /* at once; what opens beyond is on its own */
#define SVI_GROUP_MEMBERS (1 << 20)         /* alerts in groups, likewise */
#define SVI_GROUP_NAMES   16                /* keys named of a group */
#define SVI_GROUP_KEY     (SVS_KEY_MAX + 1) /* bytes of a name */
#define SVI_GROUP_WORD    12
#define SVI_GROUP_TEXT    400

/* What the first alert reported, for the events that name the other keys. */
struct svi_group_first {
    char kind[SVI_GROUP_WORD], rule[SVI_GROUP_WORD], measure[SVI_GROUP_WORD], judge[SVI_GROUP_WORD];
    double novelty, membership, p, grade, surprise, expected, before, after, since;
    int over, sensors;
    char text[SVI_GROUP_TEXT]; /* without whom it is about */
};

struct svi_alert_group {
    uint64_t number; /* of groups before it */
    uint64_t cause;
    double last;       /* time of the last alert that opened */
    bool by_arrival;   /* it, and that of the first, are arrivals, not time stamps */
    uint64_t leader;   /* the key (its number) in whose name it is reported, ... */
    int64_t alert;     /* ... and its alert */
    int64_t open;      /* alerts */
    int64_t keys;      /* that it is or was of */
    int64_t told;      /* of them when it was reported last */
    double due;        /* arrival clock: when it is due to be reported again; INFINITY: it is not */
    int severity;      /* the highest; 0: lowest, or none */
    int severity_told; /* likewise */
    int named;
    char name[SVI_GROUP_NAMES][SVI_GROUP_KEY]; /* the leader's first */
    int64_t alerts[SVI_GROUP_NAMES];
    struct svi_group_first first;
    uint32_t oldest, newest; /* members; of the structure alone */
};

typedef struct svi_alert_groups svi_alert_groups;

/* An alert of a key. */
struct svi_group_alert {
    uint64_t key; /* its number */
    const char *name;
    int64_t alert;
    uint64_t cause;
    double time;
};

/* NULL: SVS_NO_MEMORY. */
svi_alert_groups *svi_alert_groups_new(svs_error *err);
void svi_alert_groups_free(svi_alert_groups **g);

/* Groups, in the order in which they began; from 0. */
int svi_alert_groups_count(const svi_alert_groups *g);
struct svi_alert_group *svi_alert_groups_at(svi_alert_groups *g, int i);

/* That of an open alert; NULL: it is on its own. */
struct svi_alert_group *svi_alert_groups_of(svi_alert_groups *g, uint64_t key, int64_t alert);

/* An alert opens. The group that it joins, or its own (`keys` 1), for which `first` is still to be filled in.
 * NULL: no room, it is on its own. */
struct svi_alert_group *svi_alert_groups_open(svi_alert_groups *g, const struct svi_group_alert *a,
                                              double window);

/* It closes: the group stays until svi_alert_groups_end. */
void svi_alert_groups_close(svi_alert_groups *g, struct svi_alert_group *group, uint64_t key, int64_t alert);
void svi_alert_groups_end(svi_alert_groups *g, struct svi_alert_group *group);

/* A group in which a key has an open alert, which is closed by this call; NULL: there is none left. */
struct svi_alert_group *svi_alert_groups_drop(svi_alert_groups *g, uint64_t key);

/* The one of its open alerts that joined first; there is one. */
void svi_alert_groups_oldest(const svi_alert_groups *g, const struct svi_alert_group *group, uint64_t *key,
                             int64_t *alert);

/* A key of it is no more; another speaks for it, and is named first. */
void svi_alert_groups_forget(struct svi_alert_group *group, const char *gone);
void svi_alert_groups_set_leader(struct svi_alert_group *group, const struct svi_group_alert *leader);

void svi_alert_groups_archive(struct svi_archive *a, svi_alert_groups *g);

#endif
