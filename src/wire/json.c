#include "wire/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <msgpack.h>

#include "base/fail.h"
#include "base/text.h"
#include "wire/decode.h"

#define JSON_DEPTH 32

svs_code svi_json_text(struct svi_bytes *out, const char *text) {
    return svi_bytes_append(out, text, strlen(text));
}

/* The escape of one byte in `out`, or its length 0 when the byte stands for itself. */
static int escape(uint8_t byte, bool utf8, char out[8]) {
    if (byte == '"' || byte == '\\')
        return snprintf(out, 8, "\\%c", byte);
    if (byte == '\n')
        return snprintf(out, 8, "\\n");
    if (byte < 0x20 || byte == 0x7f || (byte > 0x7f && !utf8))
        return snprintf(out, 8, "\\u%04x", byte);
    return 0;
}

svs_code svi_json_string(struct svi_bytes *out, const char *bytes, size_t length) {
    bool utf8 = svi_utf8_valid(bytes, length);
    svs_code code = svi_json_text(out, "\"");
    size_t plain = 0; /* start of the run that needs no escape */
    for (size_t i = 0; i < length && code == SVS_OK; i++) {
        char text[8];
        int n = escape((uint8_t)bytes[i], utf8, text);
        if (n == 0)
            continue;
        code = svi_bytes_append(out, bytes + plain, i - plain);
        if (code == SVS_OK)
            code = svi_bytes_append(out, text, (size_t)n);
        plain = i + 1;
    }
    if (code == SVS_OK)
        code = svi_bytes_append(out, bytes + plain, length - plain);
    return code == SVS_OK ? svi_json_text(out, "\"") : code;
}

svs_code svi_json_integer(struct svi_bytes *out, int64_t i) {
    char text[24];
    return svi_bytes_append(out, text, (size_t)snprintf(text, sizeof text, "%" PRId64, i));
}

svs_code svi_json_number(struct svi_bytes *out, double r) {
    char text[40];
    if (!isfinite(r))
        return svi_json_text(out, "null");
    int n = snprintf(text, sizeof text, "%.15g", r);
    if (strtod(text, NULL) != r)
        n = snprintf(text, sizeof text, "%.17g", r);
    return svi_bytes_append(out, text, (size_t)n);
}

svs_code svi_json_value(struct svi_bytes *out, svs_value v) {
    switch (v.kind) {
    case SVS_INT:
        return svi_json_integer(out, v.as.i);
    case SVS_REAL:
        return svi_json_number(out, v.as.r);
    case SVS_STR:
        return svi_json_string(out, v.as.s, v.length);
    default:
        return svi_json_text(out, "null");
    }
}

static svs_code object(struct svi_bytes *out, const msgpack_object *o);

static svs_code packed(struct svi_bytes *out, const msgpack_object_ext *e) {
    size_t size = e->type == 1 ? sizeof(float) : sizeof(double);
    if (e->type != 1 && e->type != 2)
        return svi_json_string(out, e->ptr, e->size);
    svs_code code = svi_json_text(out, "[");
    for (size_t i = 0; i < e->size / size && code == SVS_OK; i++) {
        float f = 0;
        double r = 0;
        memcpy(e->type == 1 ? (void *)&f : (void *)&r, e->ptr + i * size, size);
        code = i > 0 ? svi_json_text(out, ",") : SVS_OK;
        if (code == SVS_OK)
            code = svi_json_number(out, e->type == 1 ? (double)f : r);
    }
    return code == SVS_OK ? svi_json_text(out, "]") : code;
}

static svs_code array(struct svi_bytes *out, const msgpack_object_array *a) {
    svs_code code = svi_json_text(out, "[");
    for (uint32_t i = 0; i < a->size && code == SVS_OK; i++) {
        code = i > 0 ? svi_json_text(out, ",") : SVS_OK;
        if (code == SVS_OK)
            code = object(out, &a->ptr[i]);
    }
    return code == SVS_OK ? svi_json_text(out, "]") : code;
}

/* JSON keys are strings: others are quoted as they would be written. */
static svs_code key(struct svi_bytes *out, const msgpack_object *o) {
    if (o->type == MSGPACK_OBJECT_STR)
        return object(out, o);
    bool plain = o->type == MSGPACK_OBJECT_POSITIVE_INTEGER || o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER;
    svs_code code = svi_json_text(out, "\"");
    if (code == SVS_OK && plain)
        code = object(out, o);
    return code == SVS_OK ? svi_json_text(out, "\"") : code;
}

static svs_code map(struct svi_bytes *out, const msgpack_object_map *m) {
    svs_code code = svi_json_text(out, "{");
    for (uint32_t i = 0; i < m->size && code == SVS_OK; i++) {
        code = i > 0 ? svi_json_text(out, ",") : SVS_OK;
        if (code == SVS_OK)
            code = key(out, &m->ptr[i].key);
        if (code == SVS_OK)
            code = svi_json_text(out, ":");
        if (code == SVS_OK)
            code = object(out, &m->ptr[i].val);
    }
    return code == SVS_OK ? svi_json_text(out, "}") : code;
}

static svs_code natural(struct svi_bytes *out, uint64_t u) {
    char text[24];
    return svi_bytes_append(out, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, u));
}

static svs_code object(struct svi_bytes *out, const msgpack_object *o) {
    switch (o->type) {
    case MSGPACK_OBJECT_BOOLEAN:
        return svi_json_text(out, o->via.boolean ? "true" : "false");
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        return natural(out, o->via.u64);
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        return svi_json_integer(out, o->via.i64);
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        return svi_json_number(out, o->via.f64);
    case MSGPACK_OBJECT_STR:
        return svi_json_string(out, o->via.str.ptr, o->via.str.size);
    case MSGPACK_OBJECT_BIN:
        return svi_json_string(out, o->via.bin.ptr, o->via.bin.size);
    case MSGPACK_OBJECT_EXT:
        return packed(out, &o->via.ext);
    case MSGPACK_OBJECT_ARRAY:
        return array(out, &o->via.array);
    case MSGPACK_OBJECT_MAP:
        return map(out, &o->via.map);
    default:
        return svi_json_text(out, "null");
    }
}

svs_code svi_json_msgpack(struct svi_bytes *out, const void *bytes, size_t length, svs_error *err) {
    svs_code code = svi_msgpack_check(bytes, length, JSON_DEPTH, err);
    if (code != SVS_OK)
        return code;
    msgpack_unpacked u;
    msgpack_unpacked_init(&u);
    size_t at = 0;
    if (msgpack_unpack_next(&u, bytes, length, &at) != MSGPACK_UNPACK_SUCCESS)
        code = svi_fail(err, SVS_NOT_MSGPACK, "the object cannot be read: not msgpack, or out of memory");
    else if (object(out, &u.data) != SVS_OK)
        code = svi_fail_memory(err, "a line of JSON");
    msgpack_unpacked_destroy(&u);
    return code;
}
