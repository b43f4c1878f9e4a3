/* checksum.h: what journals and checkpoints are made of: msgpack objects whose last item is a check, XXH3 (64
 * bits) of the object's bytes before that item, as a uint 64. Part of the store. */
#ifndef SVI_CHECKSUM_H
#define SVI_CHECKSUM_H

#include "wire/fields.h"
#include "wire/pack.h"

#define SVI_CHECK_SIZE 9 /* bytes of the item */

#define SVI_LEAD_UINT64 0xcf
#define SVI_LEAD_BIN32  0xc6

/* Appends the check of what was packed from `start` on; returns it. A map gets its key from the caller. */
uint64_t svi_check_append(struct svi_pack *p, size_t start, uint64_t seed);

/* The item at `at` is this check. */
static inline bool svi_check_is(const uint8_t *at, uint64_t check) {
    return *at == SVI_LEAD_UINT64 && svi_load64(at + 1) == check;
}

/* A uint 64 whatever its value is, so that headers have a fixed size. */
void svi_put_word(struct svi_pack *p, const char *key, uint64_t bits);

/* ---- headers: a map with the keys format and v, and a check */

enum svi_header_state {
    SVI_HEADER_SOUND,
    SVI_HEADER_BAD,        /* of another format, or its check is wrong */
    SVI_HEADER_LAYOUT,     /* of another layout (state_dir.h) */
    SVI_HEADER_INCOMPLETE, /* a field is missing, or not what it must be */
};

struct svi_header {
    const uint8_t *bytes;
    size_t size; /* of the object */
    char format[32];
    uint64_t v;
    bool complete; /* every field is there, in its type and range */
};

/* One complete map with a check begins these bytes; its fields go to `to`, also those of a damaged one as far
 * as they can be read. False: there is no such map. */
bool svi_header_open(struct svi_header *h, const uint8_t *bytes, size_t size, const struct svi_field *fields,
                     size_t count, void *to);

/* What it is worth; *check: what its check must be. Only a right check makes it one of another layout. */
enum svi_header_state svi_header_check(const struct svi_header *h, const char *format, uint64_t seed,
                                       uint64_t *check);

/* SVS_UNAVAILABLE: the file has this layout, and not SVI_STATE_LAYOUT. */
svs_code svi_fail_layout(svs_error *err, const char *dir, const char *name, uint64_t layout);

#endif
