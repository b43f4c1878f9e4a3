/* event_record.h: events stored until another thread sends them: with the fields that receivers read and, on
 * request, with the payload. Of models, banks, scores, stats and sums only the payload survives; alerts and errors
 * are stored completely. */
#ifndef SVI_EVENT_RECORD_H
#define SVI_EVENT_RECORD_H

#include "base/bytes.h"
#include "wire/event.h"

/* Appends the event to `out`; `encode`: with its payload, which is made in `buffer`. SVS_NO_MEMORY: nothing
 * was appended. */
svs_code svi_event_record(const struct svi_event *e, bool encode, struct svi_bytes *buffer,
                          struct svi_bytes *out);

/* Reads the event at *at and moves *at past it; false at the end. The event points into `from`, which must
 * not change while it is used. */
struct svi_recorded {
    struct svi_event event;
    struct svi_bytes payload; /* event.payload points to it, if the event has one */
};
bool svi_event_recorded(const struct svi_bytes *from, size_t *at, struct svi_recorded *out);

#endif
