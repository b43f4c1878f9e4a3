#include "wire/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/fail.h"
#include "base/text.h"
#include "wire/cursor.h"
#include "wire/decode.h"

/* Failures stick: after the first one nothing more is added, and callers check `code` once, at the end. */
struct json {
    struct svi_bytes *out;
    svs_code code;
    const uint8_t *end; /* of the msgpack that is converted */
};

static void json_add(struct json *j, const void *bytes, size_t length) {
    if (j->code == SVS_OK)
        j->code = svi_bytes_append(j->out, bytes, length);
}

__attribute__((format(printf, 2, 3))) static void json_format(struct json *j, const char *format, ...) {
    char text[40];
    va_list arguments;
    va_start(arguments, format);
    json_add(j, text, (size_t)vsnprintf(text, sizeof text, format, arguments));
    va_end(arguments);
}

/* Writes the escape of the first character of `text` to `out` and returns its length; 0: the character needs
 * none. *size: bytes of the character. */
static int json_escape(const char *text, size_t left, bool utf8, char out[8], size_t *size) {
    const uint8_t byte = (uint8_t)text[0];
    *size = utf8 ? svi_utf8_length(text, left) : 1;
    const int control = svi_text_control(text, *size);
    if (byte == '"' || byte == '\\')
        return snprintf(out, 8, "\\%c", byte);
    if (byte == '\n')
        return snprintf(out, 8, "\\n");
    if (control >= 0)
        return snprintf(out, 8, "\\u%04x", (unsigned)control & 0xffff);
    return byte > 0x7f && !utf8 ? snprintf(out, 8, "\\u%04x", byte) : 0;
}

static void json_string(struct json *j, const void *bytes, size_t length) {
    const char *text = bytes;
    /* Decided for the whole string: a name in Latin-1 must not be half decoded. */
    const bool utf8 = svi_utf8_valid(text, length);
    size_t plain = 0; /* start of the run that needs no escape and is added at once */
    json_add(j, "\"", 1);
    for (size_t i = 0, size; i < length; i += size) {
        char escape[8];
        int n = json_escape(text + i, length - i, utf8, escape, &size);
        if (n == 0)
            continue;
        json_add(j, text + plain, i - plain);
        json_add(j, escape, (size_t)n);
        plain = i + size;
    }
    json_add(j, text + plain, length - plain);
    json_add(j, "\"", 1);
}

static void json_number(struct json *j, double r, bool single) {
    char text[SVI_DECIMAL_MAX];
    if (isfinite(r))
        json_add(j, text, (size_t)svi_decimal_shortest(text, r, single));
    else
        json_add(j, "null", 4);
}

/* Packed numbers as an array; a rest shorter than a number is dropped. */
static void json_packed(struct json *j, const struct svi_item *e) {
    const bool single = e->ext == SVI_EXT_FLOAT32;
    const size_t size = single ? sizeof(float) : sizeof(double);
    json_add(j, "[", 1);
    for (size_t i = 0; i < e->length / size; i++) {
        const uint8_t *at = e->body + i * size;
        json_add(j, ",", i > 0);
        json_number(j, single ? (double)svi_load_float(at) : svi_load_double(at), single);
    }
    json_add(j, "]", 1);
}

static const uint8_t *json_item(struct json *j, const uint8_t *at);

/* JSON keys are strings: an integer key becomes its digits in quotes, a key of another type "". */
static const uint8_t *json_key(struct json *j, const uint8_t *at) {
    struct svi_item key;
    svi_item_read(at, &key);
    if (key.type == SVI_STRING)
        return json_item(j, at);
    json_add(j, "\"", 1);
    if (key.type == SVI_INT || key.type == SVI_HUGE_INT)
        json_item(j, at);
    json_add(j, "\"", 1);
    svi_walk(&at, j->end, SVI_WALK_MAX);
    return at;
}

/* Writes an array or a map; returns the address after it. */
static const uint8_t *json_container(struct json *j, const struct svi_item *c) {
    const bool map = c->type == SVI_MAP;
    const uint8_t *at = c->body;
    json_add(j, map ? "{" : "[", 1);
    for (uint32_t i = 0; i < c->length; i++) {
        json_add(j, ",", i > 0);
        if (map) {
            at = json_key(j, at);
            json_add(j, ":", 1);
        }
        at = json_item(j, at);
    }
    json_add(j, map ? "}" : "]", 1);
    return at;
}

/* Writes one item of checked msgpack; returns the address after it. Recursion is bounded by SVI_WALK_MAX, the
 * depth that svi_json_msgpack has checked. */
static const uint8_t *json_item(struct json *j, const uint8_t *at) {
    struct svi_item item;
    at = svi_item_read(at, &item);
    if (item.type == SVI_BOOL)
        json_format(j, "%s", item.i ? "true" : "false");
    else if (item.type == SVI_INT)
        json_format(j, "%" PRId64, item.i);
    else if (item.type == SVI_HUGE_INT)
        json_format(j, "%" PRIu64, (uint64_t)item.i);
    else if (item.type == SVI_REAL)
        json_number(j, item.r, false);
    else if (item.type == SVI_EXT && (item.ext == SVI_EXT_FLOAT32 || item.ext == SVI_EXT_FLOAT64))
        json_packed(j, &item);
    else if (item.type == SVI_STRING || item.type == SVI_BIN || item.type == SVI_EXT)
        json_string(j, item.body, item.length);
    else if (item.type == SVI_ARRAY || item.type == SVI_MAP)
        at = json_container(j, &item);
    else
        json_format(j, "null");
    return at;
}

svs_code svi_json_text(struct svi_bytes *out, const char *text) {
    return svi_bytes_append(out, text, strlen(text));
}

svs_code svi_json_string(struct svi_bytes *out, const char *bytes, size_t length) {
    struct json j = {.out = out};
    json_string(&j, bytes, length);
    return j.code;
}

svs_code svi_json_value(struct svi_bytes *out, svs_value v) {
    struct json j = {.out = out};
    if (v.kind == SVS_INT)
        json_format(&j, "%" PRId64, v.as.i);
    else if (v.kind == SVS_REAL)
        json_number(&j, v.as.r, false);
    else if (v.kind == SVS_STR)
        json_string(&j, v.as.s, v.length);
    else
        json_format(&j, "null");
    return j.code;
}

svs_code svi_json_msgpack(struct svi_bytes *out, const void *bytes, size_t length, svs_error *err) {
    struct json j = {.out = out, .end = (const uint8_t *)bytes + length};
    SVI_TRY(svi_msgpack_check(bytes, length, SVI_WALK_MAX, err));
    json_item(&j, bytes);
    return j.code == SVS_OK ? SVS_OK : svi_fail_memory(err, "a line of JSON");
}

svs_code svi_json_reply(struct svi_bytes *text, const void **reply, size_t *size) {
    text->size = 0;
    /* The reply is of our own encoders, so only memory can fail. */
    svs_code code = svi_json_msgpack(text, *reply, *size, NULL);
    *reply = text->data;
    *size = text->size;
    return code;
}
