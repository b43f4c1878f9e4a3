#include "store/sealed.h"

#include <xxhash.h>

uint64_t svi_seal(struct svi_pack *p, size_t start, uint64_t seed) {
    uint64_t check = 0;
    if (!p->failed)
        check = XXH3_64bits_withSeed(p->out->data + start, p->out->size - start, seed);
    svi_pack_word(p, check);
    return check;
}

void svi_pack_word(struct svi_pack *p, uint64_t bits) {
    uint8_t item[9];
    svi_put_word(item, SVI_LEAD_UINT64, bits);
    svi_pack_raw(p, item, sizeof item);
}

bool svi_head_open(struct svi_head *h, const uint8_t *bytes, size_t size) {
    const uint8_t *end = bytes;
    struct svi_item map;
    *h = (struct svi_head){.bytes = bytes};
    if (svi_walk(&end, bytes + size, 2) != SVS_OK)
        return false;
    svi_item_read(bytes, &map);
    h->size = (size_t)(end - bytes);
    h->sound = map.type == SVI_MAP && h->size > SVI_CHECK_SIZE && end[-SVI_CHECK_SIZE] == SVI_LEAD_UINT64;
    return h->sound;
}

bool svi_head_find(const struct svi_head *h, const char *key, struct svi_item *item) {
    struct svi_item map, name;
    const uint8_t *at = svi_item_read(h->bytes, &map), *end = h->bytes + h->size;
    for (uint32_t i = 0; i < map.length; i++) {
        svi_item_read(at, &name);
        svi_walk(&at, end, 2);
        svi_item_read(at, item);
        svi_walk(&at, end, 2);
        if (name.type == SVI_STRING && name.length == strlen(key) && memcmp(name.body, key, name.length) == 0)
            return true;
    }
    return false;
}

uint64_t svi_head_uint(struct svi_head *h, const char *key) {
    struct svi_item item;
    if (svi_head_find(h, key, &item) && (item.type == SVI_HUGE_INT || (item.type == SVI_INT && item.i >= 0)))
        return (uint64_t)item.i;
    h->sound = false;
    return 0;
}

void svi_head_text(struct svi_head *h, const char *key, char *out, size_t size) {
    struct svi_item item;
    bool fits = svi_head_find(h, key, &item) && item.type == SVI_STRING && item.length < size &&
                !memchr(item.body, '\0', item.length);
    h->sound = h->sound && fits;
    if (!fits)
        item.length = 0;
    else
        memcpy(out, item.body, item.length);
    out[item.length] = '\0';
}

enum svi_head_state svi_head_state(struct svi_head *h, const char *format, uint64_t version, uint64_t seed,
                                   uint64_t *check) {
    char said[32];
    *check = XXH3_64bits_withSeed(h->bytes, h->size - SVI_CHECK_SIZE, seed);
    svi_head_text(h, "format", said, sizeof said);
    uint64_t v = svi_head_uint(h, "v");
    if (!h->sound || strcmp(said, format) != 0 || svi_load64(h->bytes + h->size - 8) != *check)
        return SVI_HEAD_BAD;
    return v > version ? SVI_HEAD_LATER : SVI_HEAD_SOUND;
}
