#include "wire/json_value.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/json_in.h"
#include "data/number.h"

static void json_value_string(struct svi_pack *p, struct svi_span raw, char *scratch, size_t size) {
    struct svi_span text;
    /* `scratch` is as long as the whole text, and unescaping never lengthens a string. */
    svi_json_unescape(raw, scratch, size, &text);
    svi_pack_string(p, text.at, (size_t)(text.end - text.at));
}

static void json_value_number(struct svi_pack *p, const char *at) {
    int64_t whole;
    double real = 0;
    const char *end = svi_number(at, &real);
    if (svi_integer(at, &whole) == end)
        svi_pack_int(p, whole);
    else
        svi_pack_real(p, real);
}

/* Packs a value of a checked text, whose depth bounds the recursion. `scratch`: `size` bytes, at least the
 * length of the text. */
static void json_value_pack(struct svi_pack *p, const char *at, char *scratch, size_t size) {
    const enum svi_json_type type = svi_json_type(at);
    const bool object = type == SVI_JSON_OBJECT;
    struct svi_span raw;
    size_t count = 0;
    if (type == SVI_JSON_STRING) {
        svi_json_string_at(at, &raw);
        json_value_string(p, raw, scratch, size);
    } else if (type == SVI_JSON_NUMBER) {
        json_value_number(p, at);
    } else if (type == SVI_JSON_TRUE || type == SVI_JSON_FALSE) {
        svi_pack_bool(p, type == SVI_JSON_TRUE);
    } else if (type < SVI_JSON_ARRAY) { /* null, and numbers that are not finite */
        svi_pack_nil(p);
    } else {
        const size_t hole = svi_pack_hole(p);
        for (const char *e = svi_json_first(at); e; e = svi_json_next(svi_json_skip(e)), count++) {
            if (object) {
                e = svi_json_key(e, &raw);
                json_value_string(p, raw, scratch, size);
            }
            json_value_pack(p, e, scratch, size);
        }
        svi_pack_fill(p, hole, count, object);
    }
}

svs_code svi_pack_json(struct svi_pack *p, const char *text, svs_error *err) {
    const size_t length = strlen(text), capacity = length + 1 + SVI_NUMBER_PAD;
    char *copy = svi_alloc(2 * capacity); /* the padded text (zeroed after its end), then scratch */
    if (!copy)
        return svi_fail_memory(err, "a JSON text");
    memcpy(copy, text, length);
    svs_code code = svi_json_check_value((struct svi_span){copy, copy + length}, SVI_JSON_DEPTH, err);
    if (code == SVS_OK)
        json_value_pack(p, copy + strspn(copy, " \t\r\n"), copy + capacity, capacity);
    svi_free(copy);
    return code;
}
