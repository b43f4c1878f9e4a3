#include "store/segment.h"

#include <xxhash.h>

#define FORMAT     "svmstream-journal"
#define HEAD_PAIRS 10
#define SECRET     "secret"
#define AGAIN                                                                                                \
    "\xa5"                                                                                                   \
    "again\xcf"
/* A short text is packed with one byte before it, as many as end it in C. */
#define SECRET_AT (1 + sizeof "format" + sizeof FORMAT + sizeof "v" + 1 + sizeof SECRET + 1)

svs_code svi_segment_header_write(struct svi_segment_header *h, struct svi_bytes *out) {
    struct svi_pack p;
    svi_pack_begin(&p, out);
    svi_pack_map(&p, HEAD_PAIRS);
    svi_pack_key(&p, "format");
    svi_pack_text(&p, FORMAT);
    svi_pack_key(&p, "v");
    svi_pack_uint(&p, SVI_JOURNAL_VERSION);
    svi_pack_key(&p, SECRET);
    svi_pack_word(&p, h->secret);
    svi_pack_key(&p, "program");
    svi_pack_text(&p, h->program);
    svi_pack_key(&p, "stream");
    svi_pack_text(&p, h->stream);
    svi_pack_key(&p, "epoch");
    svi_pack_word(&p, h->epoch);
    svi_pack_key(&p, "first");
    svi_pack_word(&p, h->first);
    svi_pack_key(&p, "chain");
    svi_pack_word(&p, h->chain);
    svi_pack_key(&p, "again");
    svi_pack_word(&p, h->secret);
    svi_pack_key(&p, "check");
    h->check = svi_seal(&p, p.start, h->chain);
    h->size = out->size - p.start;
    return svi_pack_end(&p);
}

/* The copies of the secret, wherever the header is damaged otherwise. */
static void find_secrets(struct svi_segment_header *h, const uint8_t *bytes, size_t size) {
    const size_t key = sizeof AGAIN - 1;
    const uint8_t *again = memmem(bytes, size, AGAIN, key);
    if (size >= SECRET_AT + 8)
        h->secret = h->again = svi_load64(bytes + SECRET_AT);
    if (again && size - (size_t)(again - bytes) >= key + 8)
        h->again = svi_load64(again + key);
}

enum svi_head_state svi_segment_header_read(struct svi_segment_header *h, const uint8_t *bytes, size_t size) {
    struct svi_head head;
    *h = (struct svi_segment_header){0};
    find_secrets(h, bytes, size);
    if (!svi_head_open(&head, bytes, size))
        return SVI_HEAD_BAD;
    h->size = head.size;
    h->chain = svi_head_uint(&head, "chain");
    enum svi_head_state state = svi_head_state(&head, FORMAT, SVI_JOURNAL_VERSION, h->chain, &h->check);
    if (state != SVI_HEAD_SOUND)
        return state;
    svi_head_text(&head, "program", h->program, sizeof h->program);
    svi_head_text(&head, "stream", h->stream, sizeof h->stream);
    h->epoch = svi_head_uint(&head, "epoch");
    h->first = svi_head_uint(&head, "first");
    h->secret = svi_head_uint(&head, "v") > 1 ? svi_head_uint(&head, SECRET) : 0; /* version 1 had none */
    return head.sound ? SVI_HEAD_SOUND : SVI_HEAD_BAD;
}

void svi_record_write(uint8_t *to, const struct svi_record *record, uint64_t secret, uint64_t *chain) {
    uint8_t *at = to;
    uint64_t now;
    uint32_t size = htobe32((uint32_t)record->size);
    memcpy(&now, &record->now, sizeof now);
    *at++ = SVI_RECORD_LEAD;
    at = svi_put_word(at, SVI_LEAD_UINT64, record->number);
    *at++ = (uint8_t)record->kind;
    at = svi_put_word(at, SVI_LEAD_DOUBLE, now);
    at = svi_put_word(at, SVI_LEAD_UINT64, record->durable);
    *at++ = SVI_LEAD_BIN32;
    memcpy(at, &size, sizeof size);
    at += sizeof size;
    if (record->size > 0)
        memcpy(at, record->payload, record->size);
    *chain = XXH3_64bits_withSeed(to, SVI_RECORD_HEAD + record->size, svi_record_seed(*chain, secret));
    svi_put_word(at + record->size, SVI_LEAD_UINT64, *chain);
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
    return record->durable <= record->number && record->size <= SVI_PAYLOAD_MAX;
}

bool svi_record_sound(const uint8_t *at, struct svi_record *record, uint64_t secret, uint64_t *chain) {
    if (!svi_record_head(at, record))
        return false;
    const uint8_t *end = at + SVI_RECORD_HEAD + record->size;
    uint64_t seed = svi_record_seed(*chain, secret);
    uint64_t check = XXH3_64bits_withSeed(at, SVI_RECORD_HEAD + record->size, seed);
    if (*end != SVI_LEAD_UINT64 || svi_load64(end + 1) != check)
        return false;
    *chain = check;
    record->payload = at + SVI_RECORD_HEAD;
    return true;
}
