/* load_record.h: a state to which a stream goes back, as a record of the journal (SVI_RECORD_LOAD) that holds
 * all of it. */
#ifndef SVI_LOAD_RECORD_H
#define SVI_LOAD_RECORD_H

#include "fleet/stream.h"

/* What it goes back to. Zero-initialised is empty. */
struct svi_load {
    svi_stream *then;
    int64_t relearned;           /* samples */
    char reason[SVS_ERROR_TEXT]; /* as it is published */
};
void svi_load_clear(struct svi_load *l);

/* The payload of its record into *out. SVS_TOO_LARGE: a record cannot hold it; SVS_NO_MEMORY. */
svs_code svi_load_pack(struct svi_load *l, struct svi_bytes *out, svs_error *err);

/* From such a payload. SVS_DAMAGED, SVS_NO_MEMORY, SVS_SETTING, SVS_UNAVAILABLE. */
svs_code svi_load_unpack(struct svi_load *l, const svi_stream *stream, const void *bytes, size_t size,
                         svs_error *err);

/* `e` goes back; *s: the settings of the process. */
void svi_load_apply(struct svi_load *l, svi_stream *stream, struct svi_settings *s, double now);

#endif
