/* load.h: the stream goes back to a checkpoint that is kept. What it goes back to is made beside the stream
 * and written to the journal as one record (SVI_RECORD_LOAD) that holds all of it, so that a recovery needs
 * neither the checkpoint nor the records that were learned again. */
#ifndef SVI_LOAD_H
#define SVI_LOAD_H

#include "state/load_record.h"
#include "store/state_dir.h"

struct svi_load_options {
    uint64_t checkpoint; /* its number: records in it */
    bool relearn;        /* the samples, labels and forgets after it are applied again */
    const char *without; /* but not those of this source; NULL = of all */
    size_t without_length;
};

/* Makes it; `e` does not change. `end`: number of the record that comes next. SVS_UNAVAILABLE: no such
 * checkpoint (the text has those that there are), or records that are to be learned again are gone;
 * SVS_DAMAGED, SVS_NO_MEMORY, SVS_SETTING. */
svs_code svi_load_prepare(struct svi_load *l, const struct svi_state_dir *dir, const svi_stream *stream,
                          const struct svi_load_options *o, uint64_t end, svs_error *err);

#endif
