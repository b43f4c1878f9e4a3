/* mutes.h: silence on purpose, as during maintenance. A mute covers the alerts of stream keys and sensors for
 * some time: their events are held back, and rows under it are not learned as normal. Assessment continues:
 * alerts open, change and close as always and have their numbers.
 *
 * HELD BACK is, of each alert, the last event. When the mute ends, an alert that opened under it and is still
 * open is published as an open; of an alert that was published before, the last update or the close. An alert
 * that opened and closed under it is only in the list of what was found. An alert that another mute covers
 * stays held back.
 *
 * One list serves all engines of a stream. Engines only read it, possibly on other threads; it is changed
 * while they are idle, except for what they do not read (`ended`, figures, held alerts). An ended mute
 * therefore stays in the list until svi_mutes_tidy, and no result depends on threads. */
#ifndef SVI_MUTES_H
#define SVI_MUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "alerts/alert_text.h"
#include "base/archive.h"
#include "svmstream/error.h"
#include "svmstream/value.h"
#include "wire/event.h"

#define SVI_MUTES_MAX     64             /* mutes at once */
#define SVI_MUTES_HELD    1024           /* alerts held back at once; further ones are published */
#define SVI_MUTES_LONGEST (30 * 86400.0) /* seconds that a mute may last */
#define SVI_MUTE_LISTED   3              /* alerts named in the line of its end */
#define SVI_MUTE_REASON   161            /* bytes, the NUL included */
#define SVI_MUTE_WHO      65             /* likewise */

struct svi_mute {
    int64_t id;                    /* from 1, over the life of the stream */
    char key[SVS_KEY_MAX + 1];     /* stream keys: a pattern, in which * is any bytes; "": all */
    char sensor[SVS_NAME_MAX + 1]; /* name of a column, or its number if it has none; "": all */
    double since, until;           /* engine time, seconds */
    double due;                    /* arrival clock: when it ends even if no row arrives */
    bool by_arrival;               /* engine time was the arrival clock when it began */
    bool learn;                    /* rows under it are learned */
    char reason[SVI_MUTE_REASON], who[SVI_MUTE_WHO];

    bool ended;                                 /* it has been reported, and holds nothing back */
    int64_t found;                              /* alerts that opened under it */
    int64_t held;                               /* events held back */
    char line[SVI_MUTE_LISTED][SVI_ALERT_TEXT]; /* the first of these alerts, without the stream's name */
};

struct svi_muted_alert;

struct svi_mutes {
    struct svi_mute *at[SVI_MUTES_MAX]; /* owned; in the order of their ids */
    int count;
    int64_t begun;        /* mutes so far */
    double time, arrived; /* latest engine time of all engines (-INFINITY: none yet), and when it arrived */
    struct svi_muted_alert *held[SVI_MUTES_HELD]; /* owned, in the order in which they were first held back */
    int held_count;
};

/* Columns that a row does not teach. */
struct svi_unlearned {
    bool all;
    int count; /* of `column`, if not all */
    int column[SVI_MUTES_MAX];
};

static inline bool svi_unlearned_has(const struct svi_unlearned *u, int column) {
    bool has = u && u->all;
    for (int i = 0; u && i < u->count; i++)
        has = has || u->column[i] == column;
    return has;
}

struct svi_mutes *svi_mutes_new(svs_error *err); /* NULL: SVS_NO_MEMORY */
void svi_mutes_free(struct svi_mutes **m);

/* Adds a copy of *m with the next id, which is returned. NULL: SVS_LIMIT (there are SVI_MUTES_MAX),
 * SVS_NO_MEMORY. */
struct svi_mute *svi_mutes_add(struct svi_mutes *m, const struct svi_mute *mute, svs_error *err);
struct svi_mute *svi_mutes_find(struct svi_mutes *m, int64_t id); /* NULL: none, or it has ended */
int svi_mutes_active(const struct svi_mutes *m);                  /* number that have not ended */

/* Removes mutes that have ended; all engines must be idle. */
void svi_mutes_tidy(struct svi_mutes *m);

/* Is a row of that key (NULL: none) at that engine time under a mute that lasts? */
bool svi_mutes_cover(const struct svi_mutes *m, const char *key, double time);

/* Fills in the columns that such a row does not teach; `name` gives those of `user`'s d columns, NULL for a
 * column without one. False: it teaches all. */
bool svi_mutes_unlearned(const struct svi_mutes *m, const char *key, double time, int d,
                         const char *(*name)(const void *user, int column), const void *user,
                         struct svi_unlearned *out);

/* The first mute that has not ended and whose time is up by the engine time; NULL: none. */
struct svi_mute *svi_mutes_due(struct svi_mutes *m, double time);
double svi_mutes_deadline(const struct svi_mutes *m); /* the earliest `due`; INFINITY: none */

/* Holds an alert event back (true), or says what is to be published: the event, which becomes an open if its
 * alert was held back so far and is not covered any more. Mutes that are due were ended before. Without
 * memory, or beyond SVI_MUTES_HELD alerts, events are published. */
bool svi_mutes_hold(struct svi_mutes *m, struct svi_event *event);

/* The line of the end: "press-1 temp: mute ended after 2 h: 3 alerts while muted: ...". Returns the number of
 * its alerts that are still open. */
int64_t svi_mutes_line(const struct svi_mutes *m, const struct svi_mute *mute, const char *stream,
                       double time, char out[SVI_MUTE_LISTED * SVI_ALERT_TEXT + SVI_ALERT_TEXT]);

/* After a mute has ended: the next event that it held back and that no other mute covers; false: none is
 * left. The event points into *m until the next call; stream, epoch and seq are the caller's to fill in. */
bool svi_mutes_release(struct svi_mutes *m, int64_t mute, struct svi_event *event);

/* A key is removed: the next close of it that was held back, of an alert published before. */
bool svi_mutes_drop(struct svi_mutes *m, const char *key, struct svi_event *event);

/* The arrival clock was moved by `step` and shows `now`. */
void svi_mutes_move_clock(struct svi_mutes *m, double step, double now);

/* Mutes and what they hold back; and the engine time, which may be arrival. Load into a new object. */
void svi_mutes_archive(struct svi_archive *a, struct svi_mutes *m);
void svi_mutes_time_archive(struct svi_archive *a, struct svi_mutes *m);

#endif
