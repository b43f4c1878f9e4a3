/* load_record.h: an older state to which a stream returns, as a record of the journal (SVI_RECORD_LOAD) that
 * holds all of it. */
#ifndef SVI_LOAD_RECORD_H
#define SVI_LOAD_RECORD_H

#include "fleet/stream.h"

/* The older state. Zero-initialised is empty. */
struct svi_load {
    svi_stream *then;            /* owned; NULL = empty */
    int64_t relearned;           /* samples after the checkpoint that it contains */
    char reason[SVS_ERROR_TEXT]; /* text of the published event */
};
void svi_load_clear(struct svi_load *l);

/* Writes the payload of the record into *out. SVS_TOO_LARGE: a record cannot hold it; SVS_NO_MEMORY. */
svs_code svi_load_pack(struct svi_load *l, struct svi_bytes *out, svs_error *err);

/* Reads such a payload into the empty *l, with the settings of `stream` where the record has none.
 * SVS_DAMAGED, SVS_NO_MEMORY, SVS_SETTING, SVS_UNAVAILABLE. */
svs_code svi_load_unpack(struct svi_load *l, const svi_stream *stream, const void *bytes, size_t size,
                         svs_error *err);

/* Puts the stream into the older state. *s: the settings of the process, which follow. *l stays to be
 * cleared. */
void svi_load_apply(struct svi_load *l, svi_stream *stream, struct svi_settings *s, double now);

#endif
