/* history_alerts.h: the alert events of streams in the history: added once each, grouped by their alert. */
#ifndef HTTP_HISTORY_ALERTS_H
#define HTTP_HISTORY_ALERTS_H

#include "history_store.h"
#include "svmstream/value.h"

/* Adds one alert event, a msgpack map as it was published. One that is known is not added again; one that
 * cannot be read is counted as damaged. */
int http_history_alerts_add(struct history_store *h, const char *stream, const void *event, size_t size);

/* Result of http_history_alerts_take. */
struct history_taken {
    uint64_t epoch, number; /* all events of this epoch up to this number are here now */
    int64_t lost;           /* events that the stream no longer had */
    bool more;              /* the stream has more */
    uint64_t file;          /* of the worker: counts the files that it has begun */
};

/* Adds the events of a reply to the request `alerts`, and notes how far it reaches, in one transaction. A
 * reply that cannot be read is counted as damaged, and *taken is as before. */
int http_history_alerts_take(struct history_store *h, const char *stream, const void *reply, size_t size,
                             struct history_taken *taken);

/* One alert, of an epoch and a key. */
struct history_episode {
    int64_t id;
    uint64_t epoch;
    double first, last; /* seconds since 1970: its first event, its last one that is not a verdict */
    bool closed;
    bool over; /* it is not closed, and will not be: the stream has begun another epoch */
};

/* Which of the alerts that were found: zeros: all. */
struct history_selection {
    bool keyed; /* only those that were published for `key`; "": for none */
    char key[SVS_KEY_MAX + 1];
    int64_t offset; /* left out, the newest first */
};

/* Finds the alerts that were open at some time from `from` to `to` (seconds since 1970), the newest first, at
 * most `limit`. Returns their number in *count. `out` has `limit` elements. */
int http_history_alerts_find(struct history_store *h, const struct history_stream *s, double from, double to,
                             const struct history_selection *which, int limit, struct history_episode *out,
                             int *count);

/* Calls `visit` with its events, a checked msgpack map each, in order. False ends it. */
typedef bool history_event(void *user, const uint8_t *event, size_t size);
int http_history_alerts_events(struct history_store *h, int64_t episode, history_event *visit, void *user);

#endif
