/* alert_list.h: the alerts of each stream, one entry an episode: its opening event, and what later events and
 * verdicts have made of it.
 *
 * They come from `ctl alerts`, page by page, so that none is missing after a restart of the stream or of this
 * program; published events keep the list current. What the stream no longer keeps leaves it, except what is
 * still open. Its memory is bounded: beyond it the oldest leave. */
#ifndef HTTP_ALERT_LIST_H
#define HTTP_ALERT_LIST_H

#include "streams.h"

struct http_alert {
    char key[SVS_KEY_MAX + 1]; /* "": of the stream itself */
    uint64_t epoch;
    int64_t alert;   /* number of the episode, within key and epoch */
    uint64_t number; /* of its newest event */
    uint64_t first;  /* of its first event that is known */
    int64_t updates;
    bool open, muted; /* muted: held back by a mute so far */
    int verdict;      /* -1: none, 0: false, 1: true */
    char by[SVS_NAME_MAX + 1];
    char severity[12];         /* the newest; "": it has none */
    double opened, closed, ts; /* times of its events, seconds since 1970; closed NAN: it is open */
    char *text;                /* of the newest event but the closing one; owned */
    char *closing;             /* of the closing event; NULL: none; owned */
    size_t size;               /* of the opening event */
    uint8_t *event;            /* the opening event (the first that is known), a msgpack map; owned */
};

struct http_alert_list {
    struct http_stream *stream;
    struct http_alert **list; /* [count] by `first`, ascending */
    int64_t count, capacity;
    size_t bytes;
    void *tree;                  /* of the same, by key, epoch and alert */
    bool known;                  /* a whole answer was taken at least once; the next three are then known */
    uint64_t epoch, first, last; /* of the stream; numbers that it keeps */
    uint64_t next;               /* all events up to this number are in the list */
    int64_t open;                /* of them, now */
};

struct http_alerts;

/* Listens to `all`, which must outlive it. NULL: SVS_NO_MEMORY. Owner: the caller. */
struct http_alerts *http_alerts_open(struct http_streams *all, svs_error *err);
void http_alerts_close(struct http_alerts **a);

const struct http_alert_list *http_alerts_of(const struct http_alerts *a, const struct http_stream *s);

/* Asks the stream for what is new and calls `done` once, perhaps before this returns. why NULL: the list is
 * complete as of now; else as for http_reply, and the list is as it was. */
typedef void http_alerts_done(void *user, const char *why);
void http_alerts_refresh(struct http_alerts *a, struct http_stream *s, http_alerts_done *done, void *user);

/* The most severe of those that are open, of these the one that is open longest. NULL: none is open. */
const struct http_alert *http_alerts_worst(const struct http_alert_list *log);

/* Rank of a severity: 0 without, 1 notice, 2 warning, 3 serious. */
int http_alert_rank(const char *severity);

/* Does the alert concern the key: published in its name, or naming it? */
bool http_alert_concerns(const struct http_alert *alert, const char *key);

#endif
