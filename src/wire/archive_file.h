/* archive_file.h: archives as bytes, in a named and a packed form.
 *
 * Named, for files: a section is one msgpack map {field name: value}, with the fields in the order in which
 * the module archives them. Single numbers are int and float64. Blocks are ext 2 (float64), ext 3 (int32),
 * ext 4 (int64), ext 5 (float32) or bin. The content of an ext is little-endian, msgpack's own numbers are
 * big-endian. A block above SVI_ARCHIVE_PIECE bytes is split over consecutive fields of the same name.
 *
 * Packed, for the many states of keys: the same values without names or types, which the reader knows. An
 * integer is a varint (7 bits a byte, least significant first, zigzag: the sign is the lowest bit); a double
 * and the elements of a block are their bytes, little-endian. */
#ifndef SVI_ARCHIVE_FILE_H
#define SVI_ARCHIVE_FILE_H

#include "base/archive.h"
#include "base/bytes.h"

#define SVI_ARCHIVE_PIECE ((int64_t)1 << 31) /* lengths have 32 bits */

struct svi_archive_out {
    struct svi_archive archive; /* first: the forms cast it back; pass this to the modules */
    struct svi_bytes *bytes;    /* destination, not owned; NULL: only the size is computed */
    size_t size;                /* bytes of this section so far */
    /* Named form only. */
    size_t start;    /* where the section begins in `bytes` */
    uint32_t fields; /* number so far */
    int64_t piece;   /* SVI_ARCHIVE_PIECE; tests set less */
};

/* Begins a section that is appended to `bytes` (NULL: only o->size is computed). `section` and `err` must
 * outlive it; err is cleared. */
void svi_archive_out_begin(struct svi_archive_out *o, struct svi_bytes *bytes, const char *section,
                           svs_error *err);

/* Ends the section. SVS_OK, or the first failure: `bytes` is then as before the section. */
svs_code svi_archive_out_end(struct svi_archive_out *o);

struct svi_archive_in {
    struct svi_archive archive;
    const uint8_t *at, *end; /* the bytes that are left */
};

/* Begins reading a section from exactly these bytes, which must outlive it. */
void svi_archive_in_begin(struct svi_archive_in *i, const void *bytes, size_t size, const char *section,
                          svs_error *err);

/* Ends reading. SVS_OK, or the first failure; bytes that were not read are a failure. */
svs_code svi_archive_in_end(struct svi_archive_in *i);

/* The packed form: appends to `bytes`. It needs no end; failures are in err. */
void svi_packed_out_begin(struct svi_archive_out *o, struct svi_bytes *bytes, const char *section,
                          svs_error *err);

/* Begins reading the packed form from exactly these bytes; svi_archive_in_end ends it. */
void svi_packed_in_begin(struct svi_archive_in *i, const void *bytes, size_t size, const char *section,
                         svs_error *err);

/* Appends `size` bytes to `out` with runs of zeros shortened: a run of 3 to 128 zeros takes one byte, up to
 * 128 other bytes take one more. SVS_NO_MEMORY. */
svs_code svi_pack_zeros(const uint8_t *bytes, size_t size, struct svi_bytes *out);

/* Reverses svi_pack_zeros and replaces the content of `out`. SVS_DAMAGED: the bytes are not of
 * svi_pack_zeros, or the result exceeds `max_size` bytes; SVS_NO_MEMORY. */
svs_code svi_unpack_zeros(const uint8_t *bytes, size_t size, size_t max_size, struct svi_bytes *out);

#endif
