/* record.h: what the journal of a stream holds, and how one record is applied to it. A new kind of
 * record is a constant and a case here. */
#ifndef SVI_RECORD_H
#define SVI_RECORD_H

#include "fleet/stream.h"
#include "store/journal.h"

/* Kinds of records, and the payload of each. The numbers are in the journals of users. */
enum svi_record_kind {
    SVI_RECORD_FRAME = 1, /* a message as it came */
    SVI_RECORD_SOURCED,   /* the same, with src and n looked at */
    SVI_RECORD_CONTROL,   /* a control request */
    SVI_RECORD_REFIT,     /* svi_refit_pack: it took effect here */
    SVI_RECORD_REFUSAL,   /* "CODE REASON": a refusal from outside the stream */
    SVI_RECORD_STATS,     /* nothing: stats were published */
    SVI_RECORD_START,     /* svi_settings_pack: a process began with these settings */
    SVI_RECORD_STOP,      /* nothing: it ended, and published its model */
    SVI_RECORD_CLOCK,     /* svi_record_pack_clock: the arrival clock was moved */
    SVI_RECORD_PUBLISH,   /* nothing: publish.seconds were over; model and stats were published */
    SVI_RECORD_RESET,  /* a control request `reset` that drops features and classes, too: where rows of text
                          come in it is kept as SVI_RECORD_CONTROL, and does not */
    SVI_RECORD_LOAD,   /* svi_load_pack: the stream went back to an older state, all of which is in it */
    SVI_RECORD_MODEL,  /* a control request `load` with a model */
    SVI_RECORD_CONFIG, /* a control request `config` */
    SVI_RECORD_TIME,   /* nothing: time passed, and brought something about (svi_stream_pass) */
    SVI_RECORD_KINDS
};

/* By how many seconds. SVS_NO_MEMORY. */
svs_code svi_record_pack_clock(double step, struct svi_bytes *out);

/* Applies one record of the journal to the stream, by the functions that applied it first; a start may put a
 * wider stream in the place of *stream. *s: the settings of the process. The receipt (may be NULL) is filled
 * for a message only. SVS_DAMAGED: it cannot be applied; SVS_NO_MEMORY. */
svs_code svi_record_apply(svi_stream **stream, struct svi_settings *s, const struct svi_record *record,
                          struct svi_receipt *receipt, svs_error *err);

#endif
