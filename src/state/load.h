/* load.h: prepares the return of a stream to a kept checkpoint. The older state is built as a second stream
 * and written to the journal as one record (SVI_RECORD_LOAD) that holds all of it, so that a recovery needs
 * neither the checkpoint nor the records that were learned again. */
#ifndef SVI_LOAD_H
#define SVI_LOAD_H

#include "state/load_record.h"
#include "store/state_dir.h"

struct svi_load_options {
    uint64_t checkpoint; /* its number: records before it */
    bool relearn;        /* apply the samples, labels and forgets after it again */
    const char *without; /* leave out those of this source (not NUL-terminated); NULL = none */
    size_t without_length;
};

/* Builds the older state in *l; the stream does not change. `end`: number of the next record of the journal.
 * The caller clears *l (svi_load_clear); after a failure it is empty. SVS_UNAVAILABLE: no such checkpoint
 * (the text lists the kept ones), or records to be learned again were removed; SVS_DAMAGED, SVS_NO_MEMORY,
 * SVS_SETTING. */
svs_code svi_load_prepare(struct svi_load *l, const struct svi_state_dir *dir, const svi_stream *stream,
                          const struct svi_load_options *o, uint64_t end, svs_error *err);

#endif
