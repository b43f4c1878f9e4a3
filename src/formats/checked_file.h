/* checked_file.h: the frame of our own files: one msgpack map {format, v, ..., crc}, whose last key is the
 * CRC-32 (zlib) of all bytes before that key. */
#ifndef SVI_CHECKED_FILE_H
#define SVI_CHECKED_FILE_H

#include "wire/fields.h"
#include "wire/pack.h"

/* Begins the map with format and v. The caller packs further pairs, then calls svi_checked_file_end:
 * SVS_OK, or SVS_NO_MEMORY with nothing left in `out`. */
struct svi_open_map svi_checked_file_begin(struct svi_pack *p, struct svi_bytes *out, const char *format,
                                           int version);
svs_code svi_checked_file_end(struct svi_pack *p, struct svi_open_map map);

struct svi_checked_file {
    char format[32]; /* "" = absent, or nothing that could be ours */
    int64_t v;       /* version; -1 = absent */
    const uint8_t *bytes, *end;
    const uint8_t *crc; /* value of the key crc; NULL = absent */
};

/* True if the first byte begins a msgpack map, as such a file does. */
bool svi_checked_file_looks(const uint8_t *bytes, size_t size);

/* Checks that the bytes are one map, and finds format, v and crc. `bytes` must outlive *c. Codes of
 * svi_msgpack_check, SVS_WRONG_TYPE. */
svs_code svi_checked_file_open(struct svi_checked_file *c, const uint8_t *bytes, size_t size, svs_error *err);

/* Reads the fields of a file whose format is known into *to. The version must be this one
 * (SVS_UNAVAILABLE) and the checksum right (SVS_INVALID); other codes as in svi_fields_read. */
svs_code svi_checked_file_read(const struct svi_checked_file *c, int version, const char *what,
                               const struct svi_field *fields, size_t count, void *to, svs_error *err);

#endif
