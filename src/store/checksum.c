#include "store/checksum.h"

#include <inttypes.h>
#include <string.h>

#include <xxhash.h>

#include "store/io.h"
#include "store/state_dir.h"

uint64_t svi_check_append(struct svi_pack *p, size_t start, uint64_t seed) {
    uint8_t item[SVI_CHECK_SIZE];
    uint64_t check = p->failed ? 0 : XXH3_64bits_withSeed(p->out->data + start, p->out->size - start, seed);
    svi_pack_store_word(item, SVI_LEAD_UINT64, check);
    svi_pack_raw(p, item, sizeof item);
    return check;
}

void svi_put_word(struct svi_pack *p, const char *key, uint64_t bits) {
    uint8_t item[9];
    svi_pack_store_word(item, SVI_LEAD_UINT64, bits);
    svi_pack_text(p, key);
    svi_pack_raw(p, item, sizeof item);
}

bool svi_header_open(struct svi_header *h, const uint8_t *bytes, size_t size, const struct svi_field *fields,
                     size_t count, void *to) {
    static const struct svi_field common[] = {SVI_FIELD_STRING(struct svi_header, format),
                                              SVI_FIELD(struct svi_header, v, UINT, 0, 0)};
    const uint8_t *end = bytes;
    struct svi_item map;
    *h = (struct svi_header){.bytes = bytes};
    if (svi_walk(&end, bytes + size, 2) != SVS_OK)
        return false;
    svi_item_read(bytes, &map);
    h->size = (size_t)(end - bytes);
    if (map.type != SVI_MAP || h->size <= SVI_CHECK_SIZE || end[-SVI_CHECK_SIZE] != SVI_LEAD_UINT64)
        return false;
    /* Both tables are read even if the first fails: the check of a segment's header is seeded with a field of
     * the second (`chain`), and the reader needs its value for a damaged header too. */
    h->complete = svi_fields_read("header", SVI_FIELDS(common), bytes, end, h, NULL) == SVS_OK;
    h->complete &= svi_fields_read("header", fields, count, bytes, end, to, NULL) == SVS_OK;
    return true;
}

enum svi_header_state svi_header_check(const struct svi_header *h, const char *format, uint64_t seed,
                                       uint64_t *check) {
    const size_t size = h->size - SVI_CHECK_SIZE;
    *check = XXH3_64bits_withSeed(h->bytes, size, seed);
    if (strcmp(h->format, format) != 0 || !svi_check_is(h->bytes + size, *check))
        return SVI_HEADER_BAD;
    if (h->v != SVI_STATE_LAYOUT)
        return SVI_HEADER_LAYOUT;
    return h->complete ? SVI_HEADER_SOUND : SVI_HEADER_INCOMPLETE;
}

svs_code svi_fail_layout(svs_error *err, const char *dir, const char *name, uint64_t layout) {
    return svi_fail_file(err, SVS_UNAVAILABLE, dir, name,
                         "has layout %" PRIu64
                         "; this program reads layout %d: start with an empty state.dir, "
                         "or use the program that wrote it",
                         layout, SVI_STATE_LAYOUT);
}
