/* archive_packed.h: archives as few bytes, for the many states of keys: what archive_file.h writes without the
 * names, which the reader knows. An integer is a varint (7 bits a byte, the lowest first, the sign in the
 * lowest bit), a double and the elements of blocks their bytes, little-endian. */
#ifndef SVI_ARCHIVE_PACKED_H
#define SVI_ARCHIVE_PACKED_H

#include "base/archive.h"
#include "base/bytes.h"

struct svi_packed_out {
    struct svi_archive archive; /* hand this to the modules */
    struct svi_bytes *bytes;
};

/* Appends to `bytes`; `section` and `err` must live as long; err is cleared. */
void svi_packed_out_begin(struct svi_packed_out *o, struct svi_bytes *bytes, const char *section,
                          svs_error *err);

struct svi_packed_in {
    struct svi_archive archive;
    const uint8_t *at, *end;
};

/* Reads back from exactly these bytes, which live as long. */
void svi_packed_in_begin(struct svi_packed_in *i, const void *bytes, size_t size, const char *section,
                         svs_error *err);

/* SVS_OK, or the first failure; bytes that were not asked for are one. */
svs_code svi_packed_in_end(struct svi_packed_in *i);

/* Runs of zeros take two bytes: appends `size` bytes so to `out`. SVS_NO_MEMORY. */
svs_code svi_pack_zeros(const uint8_t *bytes, size_t size, struct svi_bytes *out);

/* The other way; into `out`, which is emptied. `most`: bytes that it may come to. SVS_DAMAGED: they are none
 * of svi_pack_zeros, or more; SVS_NO_MEMORY. */
svs_code svi_unpack_zeros(const uint8_t *bytes, size_t size, size_t most, struct svi_bytes *out);

#endif
