#include "client/outbox_answer.h"

#include "base/fail.h"
#include "wire/cursor.h"
#include "wire/fields.h"

#define NUMBER_MAX        0x1p60 /* sums and differences of such numbers do not overflow */
#define NUMBER(field)                                                                                        \
    {                                                                                                        \
        .name = #field, .type = SVI_FIELD_INTEGER, .to = offsetof(struct reply_fields, a.field),             \
        .high = NUMBER_MAX, .optional = true                                                                 \
    }
#define OTHER(field)                                                                                         \
    { .name = #field, .to = offsetof(struct reply_fields, field), .optional = true }
#define BITS(field)                                                                                          \
    { .name = #field, .type = SVI_FIELD_UINT, .to = offsetof(struct reply_fields, a.field), .optional = true }

/* A reply as received; texts and booleans still as msgpack. */
struct reply_fields {
    struct svi_answer a;
    const uint8_t *ok, *final, *delivery, *code, *error, *scores, *at;
};

/* Reads a boolean (returns 0 or 1; -1: absent) or a text (into `out`; size 0: none is wanted). */
static int outbox_reply_item(const uint8_t *at, char *out, size_t size) {
    struct svi_item item = {.type = SVI_NIL};
    if (at)
        svi_item_read(at, &item);
    if (item.type == SVI_STRING && size > 0)
        svi_escape(out, size, (const char *)item.body, item.length);
    return item.type == SVI_BOOL ? item.i != 0 : -1;
}

svs_code svi_answer_read(struct svi_answer *a, const void *bytes, size_t length, svs_error *err) {
    static const struct svi_field fields[] = {
        NUMBER(n),           NUMBER(next), NUMBER(credit), NUMBER(durable), NUMBER(applied), NUMBER(refused),
        NUMBER(max_message), OTHER(ok),    OTHER(final),   OTHER(delivery), OTHER(code),     OTHER(error),
        OTHER(scores),       OTHER(at),    BITS(epoch),    BITS(run)};
    struct reply_fields r = {
        .a = {.n = -1, .next = -1, .credit = -1, .durable = -1, .applied = -1, .max_message = -1}};
    /* The whole reply is checked first, so that the field readers need no bounds. */
    svs_code code = svi_msgpack_check(bytes, length, SVI_DEPTH_MAX, err);
    if (code != SVS_OK)
        return code;
    /* A value of another type counts as absent. */
    svi_fields_read("reply", fields, sizeof fields / sizeof fields[0], bytes, (const uint8_t *)bytes + length,
                    &r, NULL);
    *a = r.a;
    a->scores = r.scores;
    a->at = r.at;
    a->end = (const uint8_t *)bytes + length;
    a->ok = outbox_reply_item(r.ok, NULL, 0) > 0;
    a->final = outbox_reply_item(r.final, NULL, 0);
    outbox_reply_item(r.delivery, a->delivery, sizeof a->delivery);
    outbox_reply_item(r.code, a->code, sizeof a->code);
    outbox_reply_item(r.error, a->reason, sizeof a->reason);
    if (a->ok || a->reason[0] || a->code[0])
        return SVS_OK;
    return svi_fail(err, SVS_WRONG_TYPE,
                    "the peer is not svmstream: a reply must be a map with the key ok or error");
}
