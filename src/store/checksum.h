/* checksum.h: the building blocks of journals and checkpoints: msgpack objects whose last item is a check,
 * the XXH3 (64 bits) of the object's bytes before that item, as a uint 64. Part of the store. */
#ifndef SVI_CHECKSUM_H
#define SVI_CHECKSUM_H

#include "wire/fields.h"
#include "wire/pack.h"

#define SVI_CHECK_SIZE 9 /* bytes of the item */

#define SVI_LEAD_UINT64 0xcf
#define SVI_LEAD_BIN32  0xc6

/* Appends the check of the bytes packed since `start` and returns it. In a map, the caller packs its key. */
uint64_t svi_check_append(struct svi_pack *p, size_t start, uint64_t seed);

/* Is the item at `at` (SVI_CHECK_SIZE bytes) this check? */
static inline bool svi_check_is(const uint8_t *at, uint64_t check) {
    return *at == SVI_LEAD_UINT64 && svi_load64(at + 1) == check;
}

/* A pair whose value always takes 9 bytes (uint 64), so that headers have a fixed size. */
void svi_put_word(struct svi_pack *p, const char *key, uint64_t bits);

/* ---- headers: a map with the keys format and v, and a check */

enum svi_header_state {
    SVI_HEADER_SOUND,
    SVI_HEADER_BAD,        /* of another format, or its check is wrong */
    SVI_HEADER_LAYOUT,     /* of another layout (state_dir.h) */
    SVI_HEADER_INCOMPLETE, /* a field is missing, or has a wrong type or range */
};

struct svi_header {
    const uint8_t *bytes;
    size_t size; /* of the object, with its check */
    char format[32];
    uint64_t v;
    bool complete; /* every field is present, in its type and range */
};

/* Reads the header at the start of `bytes`: one complete map that ends in a check. Its fields go to `to`,
 * even from a damaged header as far as they are readable. False: there is no such map. */
bool svi_header_open(struct svi_header *h, const uint8_t *bytes, size_t size, const struct svi_field *fields,
                     size_t count, void *to);

/* Verifies an opened header; *check: the check that its bytes require. Another layout is reported only if the
 * check is right: a damaged version number is damage. */
enum svi_header_state svi_header_check(const struct svi_header *h, const char *format, uint64_t seed,
                                       uint64_t *check);

/* Fills err and returns SVS_UNAVAILABLE: the file has `layout`, not SVI_STATE_LAYOUT. */
svs_code svi_fail_layout(svs_error *err, const char *dir, const char *name, uint64_t layout);

#endif
