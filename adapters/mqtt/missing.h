/* missing.h: values that no sample can hold (null, nan, beyond what is computed with): counted by topic, and
 * reported on standard error.
 *
 * A topic that has such a value for the first time is reported within a second; what lasts is reported at
 * pauses that double, an hour at most. One line a second at most, however many topics there are. */
#ifndef MQTT_MISSING_H
#define MQTT_MISSING_H

#include "payload.h"

#define MISSING_PLACES 256 /* topics that are counted singly */

struct missing_place {
    char topic[120]; /* escaped, with the key of a value in an object */
    char last[24];   /* what it reported */
    int64_t count, reported;
};

/* Zero-initialised: nothing has happened. */
struct missing {
    struct missing_place place[MISSING_PLACES];
    int places;
    int64_t others;          /* values of further topics */
    bool news;               /* a topic that was never reported */
    double last_line, pause; /* svi_monotonic of the last line; seconds until the next one without news */
};

/* One more such value. */
void mqtt_missing_note(struct missing *m, const char *topic, const struct field *f);

/* Reports what is due. */
void mqtt_missing_turn(struct missing *m, double now);

#endif
