#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static void number(FILE *to, double value) {
    char text[40];
    snprintf(text, sizeof text, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof text, "%.17g", value);
    fputs(isfinite(value) ? text : "null", to);
}

static bool is_utf8(const char *bytes, size_t length) {
    json_t *text = json_stringn(bytes, length); /* refuses what is not */
    json_decref(text);
    return text;
}

static void string(FILE *to, const char *bytes, size_t length) {
    bool utf8 = is_utf8(bytes, length);
    fputc('"', to);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < 0x20 || c == 0x7f || (c > 0x7f && !utf8))
            fprintf(to, "\\u%04x", c);
        else
            fputc(c, to);
    }
    fputc('"', to);
}

static void packed(FILE *to, const msgpack_object_ext *e) {
    const size_t size = e->type == 1 ? sizeof(float) : sizeof(double);
    fputc('[', to);
    for (size_t i = 0; i < e->size / size; i++) {
        float single = 0;
        double value = 0;
        memcpy(e->type == 1 ? (void *)&single : (void *)&value, e->ptr + i * size, size);
        fputs(i ? "," : "", to);
        number(to, e->type == 1 ? (double)single : value);
    }
    fputc(']', to);
}

/* JSON keys are strings. */
static void key(FILE *to, const msgpack_object *o) {
    if (o->type == MSGPACK_OBJECT_STR)
        string(to, o->via.str.ptr, o->via.str.size);
    else if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
        fprintf(to, "\"%" PRIu64 "\"", o->via.u64);
    else if (o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
        fprintf(to, "\"%" PRId64 "\"", o->via.i64);
    else
        fputs("\"\"", to);
}

static void map(FILE *to, const msgpack_object_map *m) {
    fputc('{', to);
    for (uint32_t i = 0; i < m->size; i++) {
        fputs(i ? "," : "", to);
        key(to, &m->ptr[i].key);
        fputc(':', to);
        json_write(to, &m->ptr[i].val);
    }
    fputc('}', to);
}

static void array(FILE *to, const msgpack_object_array *a) {
    fputc('[', to);
    for (uint32_t i = 0; i < a->size; i++) {
        fputs(i ? "," : "", to);
        json_write(to, &a->ptr[i]);
    }
    fputc(']', to);
}

/* msgpack-c itself bounds how deep an object can be nested. */
void json_write(FILE *to, const msgpack_object *o) {
    if (o->type == MSGPACK_OBJECT_MAP)
        map(to, &o->via.map);
    else if (o->type == MSGPACK_OBJECT_ARRAY)
        array(to, &o->via.array);
    else if (o->type == MSGPACK_OBJECT_STR)
        string(to, o->via.str.ptr, o->via.str.size);
    else if (o->type == MSGPACK_OBJECT_BIN)
        string(to, o->via.bin.ptr, o->via.bin.size);
    else if (o->type == MSGPACK_OBJECT_EXT && (o->via.ext.type == 1 || o->via.ext.type == 2))
        packed(to, &o->via.ext);
    else if (o->type == MSGPACK_OBJECT_FLOAT32 || o->type == MSGPACK_OBJECT_FLOAT64)
        number(to, o->via.f64);
    else if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
        fprintf(to, "%" PRIu64, o->via.u64);
    else if (o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
        fprintf(to, "%" PRId64, o->via.i64);
    else if (o->type == MSGPACK_OBJECT_BOOLEAN)
        fputs(o->via.boolean ? "true" : "false", to);
    else
        fputs("null", to);
}
