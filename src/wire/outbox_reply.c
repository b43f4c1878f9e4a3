#include "wire/outbox_reply.h"

#include <string.h>

#include "base/fail.h"
#include "wire/cursor.h"
#include "wire/decode.h"

#define NUMBER_MAX (INT64_C(1) << 60) /* sums and differences of such numbers are numbers */

enum form { TRUTH, NUMBER, HUGE_NUMBER, TEXT };

static const struct {
    const char *key;
    enum form form;
    size_t at, size;
} keys[] = {
    {"ok", TRUTH, offsetof(struct svi_answer, ok), 0},
    {"final", TRUTH, offsetof(struct svi_answer, final), 0},
    {"n", NUMBER, offsetof(struct svi_answer, n), 0},
    {"next", NUMBER, offsetof(struct svi_answer, next), 0},
    {"credit", NUMBER, offsetof(struct svi_answer, credit), 0},
    {"durable", NUMBER, offsetof(struct svi_answer, durable), 0},
    {"applied", NUMBER, offsetof(struct svi_answer, applied), 0},
    {"refused", NUMBER, offsetof(struct svi_answer, refused), 0},
    {"epoch", HUGE_NUMBER, offsetof(struct svi_answer, epoch), 0},
    {"delivery", TEXT, offsetof(struct svi_answer, delivery), sizeof((struct svi_answer *)0)->delivery},
    {"code", TEXT, offsetof(struct svi_answer, code), sizeof((struct svi_answer *)0)->code},
    {"error", TEXT, offsetof(struct svi_answer, reason), sizeof((struct svi_answer *)0)->reason},
};

static int row_of(const struct svi_item *key) {
    for (int i = 0; key->type == SVI_STRING && i < (int)(sizeof keys / sizeof keys[0]); i++)
        if (key->length == strlen(keys[i].key) && memcmp(key->body, keys[i].key, key->length) == 0)
            return i;
    return -1;
}

/* A value of another type is as good as none. */
static void take(struct svi_answer *a, int row, const struct svi_item *v) {
    char *to = (char *)a + keys[row].at;
    uint64_t epoch = v->type == SVI_INT || v->type == SVI_HUGE_INT ? (uint64_t)v->i : 0;
    if (keys[row].form == NUMBER && v->type == SVI_INT && v->i >= 0 && v->i <= NUMBER_MAX)
        memcpy(to, &v->i, sizeof v->i);
    else if (keys[row].form == HUGE_NUMBER)
        memcpy(to, &epoch, sizeof epoch);
    else if (keys[row].form == TEXT && v->type == SVI_STRING)
        svi_escape(to, keys[row].size, (const char *)v->body, v->length);
    else if (keys[row].at == offsetof(struct svi_answer, ok))
        a->ok = v->type == SVI_BOOL && v->i;
    else if (keys[row].at == offsetof(struct svi_answer, final) && v->type == SVI_BOOL)
        a->final = v->i != 0;
}

svs_code svi_answer_read(struct svi_answer *a, const void *bytes, size_t length, svs_error *err) {
    struct svi_item map, key, value;
    *a = (struct svi_answer){.final = -1, .n = -1, .next = -1, .credit = -1, .durable = -1, .applied = -1};
    svs_code code = svi_msgpack_check(bytes, length, SVI_DEPTH_MAX, err);
    if (code != SVS_OK)
        return code;
    const uint8_t *at = svi_item_read(bytes, &map), *end = (const uint8_t *)bytes + length;
    for (uint32_t i = 0; map.type == SVI_MAP && i < map.length; i++) {
        const uint8_t *behind = at;
        svi_item_read(at, &key);
        svi_walk(&behind, end, SVI_DEPTH_MAX);
        svi_item_read(behind, &value);
        int row = row_of(&key);
        if (row >= 0)
            take(a, row, &value);
        at = behind;
        svi_walk(&at, end, SVI_DEPTH_MAX);
    }
    if (map.type == SVI_MAP && (a->ok || a->reason[0] || a->code[0]))
        return SVS_OK;
    return svi_fail(err, SVS_WRONG_TYPE,
                    "what answers is not svmstream: a reply is a map with the key ok or error");
}
