/* record.h: the kinds of records in the journal of a stream, and how a record is applied. A new kind is a
 * constant here and a case in svi_record_apply. */
#ifndef SVI_RECORD_H
#define SVI_RECORD_H

#include "fleet/stream.h"
#include "store/journal.h"

/* Kinds of records, each with its payload. The numbers are in the journals of users and never change. */
enum svi_record_kind {
    SVI_RECORD_FRAME = 1, /* a message as received */
    SVI_RECORD_SOURCED,   /* the same; its src and n are checked for duplicates and gaps */
    SVI_RECORD_CONTROL,   /* a control request */
    SVI_RECORD_REFIT,     /* svi_refit_pack: this refit took effect here */
    SVI_RECORD_REFUSAL,   /* "CODE REASON": a refusal from outside the stream */
    SVI_RECORD_STATS,     /* empty: stats were published */
    SVI_RECORD_START,     /* svi_settings_pack: a process began with these settings */
    SVI_RECORD_STOP,      /* empty: the process ended and published its model */
    SVI_RECORD_CLOCK,     /* svi_record_pack_clock: the arrival clock was moved */
    SVI_RECORD_PUBLISH,   /* empty: publish.seconds had passed; model and stats were published */
    SVI_RECORD_RESET,  /* a control request `reset` that also drops features and classes; with input of text
                          rows, whose columns are fixed, it is SVI_RECORD_CONTROL and keeps them */
    SVI_RECORD_LOAD,   /* svi_load_pack: the stream returned to an older state, which the record holds */
    SVI_RECORD_MODEL,  /* a control request `load` with a model */
    SVI_RECORD_CONFIG, /* a control request `config` */
    SVI_RECORD_TIME,   /* empty: the passing of time changed something (svi_stream_pass) */
    SVI_RECORD_MERGED, /* the payload of a merger's model event, which took effect here */
    SVI_RECORD_PRIOR,  /* the map `prior` of a merger's prior event, likewise */
    SVI_RECORD_KINDS
};

/* Payload of SVI_RECORD_CLOCK; `step` in seconds. SVS_NO_MEMORY. */
svs_code svi_record_pack_clock(double step, struct svi_bytes *out);

/* Applies one record of the journal to the stream, through the functions that applied it the first time. A
 * start may replace *stream by a wider one. *s: the settings of the process; may be NULL for messages, clocks
 * and commands about one sample, which change no settings. The receipt (may be NULL) is filled for messages
 * only. SVS_DAMAGED: the record cannot be applied; SVS_UNAVAILABLE: its kind is of a later version;
 * SVS_NO_MEMORY. */
svs_code svi_record_apply(svi_stream **stream, struct svi_settings *s, const struct svi_record *record,
                          struct svi_receipt *receipt, svs_error *err);

#endif
