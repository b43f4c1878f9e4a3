#include "store/journal_internal.h"

#include <xxhash.h>

#define FORMAT     "svmstream-journal"
#define HEAD_PAIRS 10
#define SECRET     "secret"
#define AGAIN                                                                                                \
    "\xa5"                                                                                                   \
    "again\xcf" /* its second copy: the key and the lead byte */
/* The byte at which the first copy of the secret stands, found without parsing. Before it are the
 * head of the map, the pair `format`, the pair `v`, the key `secret` and the lead byte of a uint
 * 64. The value of `v` has one byte as long as SVI_STATE_LAYOUT is below 128. A text below 32 bytes
 * packs with one lead byte, so sizeof (with its NUL) is its packed size. */
#define SECRET_AT (1 + sizeof "format" + sizeof FORMAT + sizeof "v" + 1 + sizeof SECRET + 1)

svs_code svi_segment_header_write(struct svi_segment_header *h, struct svi_bytes *out) {
    struct svi_pack p;
    svi_pack_begin(&p, out);
    svi_pack_map(&p, HEAD_PAIRS);
    svi_put_text(&p, "format", FORMAT);
    svi_put_uint(&p, "v", SVI_STATE_LAYOUT);
    svi_put_word(&p, SECRET, h->secret);
    svi_put_text(&p, "program", h->program);
    svi_put_text(&p, "stream", h->stream);
    svi_put_word(&p, "epoch", h->epoch);
    svi_put_word(&p, "first", h->first);
    svi_put_word(&p, "chain", h->chain);
    svi_put_word(&p, "again", h->secret);
    svi_pack_key(&p, "check");
    h->check = svi_check_append(&p, p.start, h->chain);
    h->size = out->size - p.start;
    return svi_pack_end(&p);
}

/* Finds the copies of the secret in a header that may be damaged anywhere, also in the msgpack around them:
 * the first by its fixed place, the second by the bytes before it. */
static void find_secrets(struct svi_segment_header *h, const uint8_t *bytes, size_t size) {
    const size_t key = sizeof AGAIN - 1;
    const uint8_t *again = memmem(bytes, size, AGAIN, key);
    /* Without the second copy, both are the first: the reader then tries one secret only. */
    if (size >= SECRET_AT + 8)
        h->secret = h->again = svi_load64(bytes + SECRET_AT);
    if (again && size - (size_t)(again - bytes) >= key + 8)
        h->again = svi_load64(again + key);
}

#define OWNER struct svi_segment_header

enum svi_header_state svi_segment_header_read(struct svi_segment_header *h, const uint8_t *bytes,
                                              size_t size) {
    static const struct svi_field fields[] = {SVI_FIELD_STRING(struct svi_segment_header, program),
                                              SVI_FIELD_STRING(struct svi_segment_header, stream),
                                              SVI_FIELD(OWNER, epoch, UINT, 0, 0),
                                              SVI_FIELD(OWNER, first, UINT, 0, 0),
                                              SVI_FIELD(OWNER, chain, UINT, 0, 0),
                                              SVI_FIELD(OWNER, secret, UINT, 0, 0)};
    struct svi_header map;
    *h = (struct svi_segment_header){0};
    find_secrets(h, bytes, size);
    const uint64_t first_copy = h->secret;
    if (!svi_header_open(&map, bytes, size, SVI_FIELDS(fields), h))
        return SVI_HEADER_BAD;
    h->size = map.size;
    h->layout = map.v;
    enum svi_header_state state = svi_header_check(&map, FORMAT, h->chain, &h->check);
    /* The table above may have filled `secret` from a damaged map: the copy at the fixed place is what the
     * reader tries first. */
    if (state != SVI_HEADER_SOUND)
        h->secret = first_copy;
    return state;
}

uint64_t svi_segment_layout(const uint8_t *bytes, size_t size) {
    struct svi_segment_header h;
    return svi_segment_header_read(&h, bytes, size < SVI_HEADER_MAX ? size : SVI_HEADER_MAX) ==
                   SVI_HEADER_LAYOUT
               ? h.layout
               : SVI_STATE_LAYOUT;
}

void svi_record_write(uint8_t *to, const struct svi_record *record, uint64_t secret, uint64_t *chain) {
    uint8_t *at = to;
    uint64_t now;
    uint32_t size = htobe32((uint32_t)record->size);
    memcpy(&now, &record->now, sizeof now);
    /* The order of svi_record_head's offsets. An int below 128 is one byte in msgpack: the kind. */
    *at++ = SVI_RECORD_LEAD;
    at = svi_pack_store_word(at, SVI_LEAD_UINT64, record->number);
    *at++ = (uint8_t)record->kind;
    at = svi_pack_store_word(at, SVI_LEAD_DOUBLE, now);
    at = svi_pack_store_word(at, SVI_LEAD_UINT64, record->durable);
    *at++ = SVI_LEAD_BIN32;
    memcpy(at, &size, sizeof size);
    at += sizeof size;
    if (record->size > 0)
        memcpy(at, record->payload, record->size);
    *chain = XXH3_64bits_withSeed(to, SVI_RECORD_HEAD + record->size, svi_record_seed(*chain, secret));
    svi_pack_store_word(at + record->size, SVI_LEAD_UINT64, *chain);
}

bool svi_record_head(const uint8_t *at, struct svi_record *record) {
    uint64_t now = svi_load64(at + 12);
    if (at[0] != SVI_RECORD_LEAD || at[1] != SVI_LEAD_UINT64 || at[10] > 127 || at[11] != SVI_LEAD_DOUBLE ||
        at[20] != SVI_LEAD_UINT64 || at[29] != SVI_LEAD_BIN32)
        return false;
    record->number = svi_load64(at + 2);
    record->kind = at[10];
    memcpy(&record->now, &now, sizeof now);
    record->durable = svi_load64(at + 21);
    record->payload = NULL;
    record->size = svi_load32(at + 30);
    /* A record cannot declare itself durable: random bytes rarely pass this. */
    return record->durable <= record->number && record->size <= SVI_PAYLOAD_MAX;
}

bool svi_record_sound(const uint8_t *at, struct svi_record *record, uint64_t secret, uint64_t *chain) {
    if (!svi_record_head(at, record))
        return false;
    const uint8_t *end = at + SVI_RECORD_HEAD + record->size;
    uint64_t seed = svi_record_seed(*chain, secret);
    uint64_t check = XXH3_64bits_withSeed(at, SVI_RECORD_HEAD + record->size, seed);
    if (!svi_check_is(end, check))
        return false;
    *chain = check;
    record->payload = at + SVI_RECORD_HEAD;
    return true;
}
