/* event_record.h: events that are kept until another thread sends them: each with what its receivers look at,
 * and where it is asked for with its payload. Models, banks, scores and stats have their payload alone;
 * alerts and errors all that they say. */
#ifndef SVI_EVENT_RECORD_H
#define SVI_EVENT_RECORD_H

#include "base/bytes.h"
#include "wire/event.h"

/* Appends the event. `encode`: with its payload. `room` is for the payload while it is made. SVS_NO_MEMORY:
 * nothing was appended. */
svs_code svi_event_record(const struct svi_event *e, bool encode, struct svi_bytes *buffer,
                          struct svi_bytes *out);

/* The event at *at, which moves on; false at the end. What it points to lies in `from`, which stays as it is
 * meanwhile. */
struct svi_recorded {
    struct svi_event event;
    struct svi_bytes payload; /* event.payload points to it, where there is one */
};
bool svi_event_recorded(const struct svi_bytes *from, size_t *at, struct svi_recorded *out);

#endif
