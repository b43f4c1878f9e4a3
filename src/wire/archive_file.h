/* archive_file.h: archives as bytes, with the names of the fields or packed.
 *
 * Named: one section is one msgpack map {field name: value}, fields in the order
 * in which the module names them; doubles are float64 or ext 2, integers int, ext 3 (int32) and ext 4
 * (int64), other bytes bin. What is in ext is little-endian, msgpack's own numbers big-endian as ever. A
 * block of more than SVI_ARCHIVE_PIECE bytes is several fields of its name, one after another.
 *
 * Packed, for the many states of keys: the same without the names, which the reader knows. An integer is a
 * varint (7 bits a byte, the lowest first, the sign in the lowest bit), a double and the elements of blocks
 * their bytes, little-endian. */
#ifndef SVI_ARCHIVE_FILE_H
#define SVI_ARCHIVE_FILE_H

#include "base/archive.h"
#include "base/bytes.h"

#define SVI_ARCHIVE_PIECE ((int64_t)1 << 31) /* lengths have 32 bits */

struct svi_archive_out {
    struct svi_archive archive; /* hand this to the modules */
    struct svi_bytes *bytes;
    size_t size; /* of this section */
    /* Of the named form. */
    size_t start; /* of the section in `bytes` */
    uint32_t fields;
    int64_t piece; /* SVI_ARCHIVE_PIECE; tests set less */
};

/* Appends a section to `bytes` (NULL: its size is found, nothing else). `section` and `err` must live as
 * long; err is cleared. */
void svi_archive_out_begin(struct svi_archive_out *o, struct svi_bytes *bytes, const char *section,
                           svs_error *err);

/* SVS_OK, or the first failure with nothing left of the section in `bytes`. */
svs_code svi_archive_out_end(struct svi_archive_out *o);

struct svi_archive_in {
    struct svi_archive archive;
    const uint8_t *at, *end;
};

/* Reads a section back from exactly these bytes, which live as long. */
void svi_archive_in_begin(struct svi_archive_in *i, const void *bytes, size_t size, const char *section,
                          svs_error *err);

/* SVS_OK, or the first failure; a field that was not asked for is one. */
svs_code svi_archive_in_end(struct svi_archive_in *i);

/* The packed form: appends to `bytes`; it has no end but the code of err. */
void svi_packed_out_begin(struct svi_archive_out *o, struct svi_bytes *bytes, const char *section,
                          svs_error *err);

/* Reads back from exactly these bytes; ended by svi_archive_in_end. */
void svi_packed_in_begin(struct svi_archive_in *i, const void *bytes, size_t size, const char *section,
                         svs_error *err);

/* Runs of zeros take two bytes: appends `size` bytes so to `out`. SVS_NO_MEMORY. */
svs_code svi_pack_zeros(const uint8_t *bytes, size_t size, struct svi_bytes *out);

/* The other way; into `out`, which is emptied. `most`: bytes that it may come to. SVS_DAMAGED: they are none
 * of svi_pack_zeros, or more; SVS_NO_MEMORY. */
svs_code svi_unpack_zeros(const uint8_t *bytes, size_t size, size_t most, struct svi_bytes *out);

#endif
