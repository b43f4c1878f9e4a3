/* sealed.h: what journals and checkpoints are made of: msgpack objects whose last item is a check, XXH3 (64
 * bits) of the object's bytes before that item, as a uint 64. Part of the store. */
#ifndef SVI_SEALED_H
#define SVI_SEALED_H

#include "wire/cursor.h"
#include "wire/pack.h"

#define SVI_CHECK_SIZE 9 /* bytes of the item */

#define SVI_LEAD_UINT64 0xcf
#define SVI_LEAD_BIN32  0xc6

/* A lead byte and 64 bits. */
static inline uint8_t *svi_put_word(uint8_t *to, uint8_t lead, uint64_t bits) {
    *to = lead;
    bits = htobe64(bits);
    memcpy(to + 1, &bits, sizeof bits);
    return to + 9;
}

/* Appends the check of what stands behind `start`; returns it. A map gets its key from the caller. */
uint64_t svi_seal(struct svi_pack *p, size_t start, uint64_t seed);

/* A uint 64 whatever its value is, so that headers have a fixed size. */
void svi_pack_word(struct svi_pack *p, uint64_t bits);

/* ---- a sealed map, read by its keys in any order */

enum svi_head_state { SVI_HEAD_SOUND, SVI_HEAD_BAD, SVI_HEAD_LATER };

struct svi_head {
    const uint8_t *bytes;
    size_t size; /* of the object */
    bool sound;  /* every key that was asked for was there, in its type and range */
};

/* One complete map with a check stands at the beginning of these bytes. */
bool svi_head_open(struct svi_head *h, const uint8_t *bytes, size_t size);
uint64_t svi_head_uint(struct svi_head *h, const char *key);
void svi_head_text(struct svi_head *h, const char *key, char *out, size_t size);
bool svi_head_find(const struct svi_head *h, const char *key, struct svi_item *item);

/* Check (*check: what it must be), format and version; only a map whose check is right can be of a later
 * version. */
enum svi_head_state svi_head_state(struct svi_head *h, const char *format, uint64_t version, uint64_t seed,
                                   uint64_t *check);

#endif
