/* envelope.h: the outside of our model files: one msgpack map {format, v, ..., crc}, whose last key is the
 * CRC-32 (zlib) of all bytes before that key; written atomically, read whole. */
#ifndef SVI_ENVELOPE_H
#define SVI_ENVELOPE_H

#include <stdio.h>

#include "wire/cursor.h"
#include "wire/pack.h"

/* Begins the map with format and v; `more` further pairs are to be packed, then svi_envelope_end: SVS_OK, or
 * SVS_NO_MEMORY with nothing left in `out`. */
void svi_envelope_begin(struct svi_pack *p, struct svi_bytes *out, const char *format, int version,
                        size_t more);
svs_code svi_envelope_end(struct svi_pack *p);

struct svi_envelope {
    struct svi_item format; /* SVI_NIL = there is none */
    int64_t version;        /* -1 = none */
    bool sound;             /* the checksum is there, last, and right */
    const uint8_t *bytes, *end;
};

/* Checks that the bytes are one map and looks for format, v and crc. Codes of svi_msgpack_check,
 * SVS_WRONG_TYPE. */
svs_code svi_envelope_open(struct svi_envelope *e, const uint8_t *bytes, size_t size, svs_error *err);

/* The version is one that this program reads and the checksum is right: SVS_UNAVAILABLE, SVS_INVALID. */
svs_code svi_envelope_check(const struct svi_envelope *e, int version, svs_error *err);

/* ---- files */

/* Lets `body` write PATH.tmp, syncs it and renames it to PATH; on failure PATH stays as it was. "-" =
 * standard output. SVS_IO and what `body` returns. */
svs_code svi_file_write(const char *path, svs_code (*body)(void *user, FILE *to, svs_error *err), void *user,
                        svs_error *err);

/* All of a file ("-" = standard input) with a NUL and, behind it, the bytes that the reader of numbers may
 * look at: to be freed with svi_free in any case. SVS_IO, SVS_TOO_LARGE (2 GiB), SVS_NO_MEMORY. */
svs_code svi_file_read(const char *path, char **bytes, size_t *size, svs_error *err);

#endif
