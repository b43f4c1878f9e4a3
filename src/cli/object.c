#include "cli/object.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "wire/cursor.h"
#include "wire/decode.h"

svs_code cli_unpack(msgpack_unpacked *u, const void *bytes, size_t length, svs_error *err) {
    size_t at = 0;
    msgpack_unpacked_init(u);
    svs_code code = svi_msgpack_check(bytes, length, SVI_WALK_MAX, err);
    if (code != SVS_OK)
        return code;
    if (msgpack_unpack_next(u, bytes, length, &at) != MSGPACK_UNPACK_SUCCESS)
        return svi_fail(err, SVS_NOT_MSGPACK, "the answer is not msgpack");
    return SVS_OK;
}

const msgpack_object *cli_key(const msgpack_object *map, const char *key) {
    if (!map || map->type != MSGPACK_OBJECT_MAP)
        return NULL;
    for (uint32_t i = 0; i < map->via.map.size; i++) {
        const msgpack_object_kv *kv = &map->via.map.ptr[i];
        if (kv->key.type == MSGPACK_OBJECT_STR && kv->key.via.str.size == strlen(key) &&
            memcmp(kv->key.via.str.ptr, key, strlen(key)) == 0)
            return &kv->val;
    }
    return NULL;
}

int64_t cli_key_integer(const msgpack_object *map, const char *key, int64_t otherwise) {
    const msgpack_object *o = cli_key(map, key);
    if (o && (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER || o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER))
        return o->via.i64;
    return otherwise;
}

double cli_key_number(const msgpack_object *map, const char *key, double otherwise) {
    const msgpack_object *o = cli_key(map, key);
    if (o && (o->type == MSGPACK_OBJECT_FLOAT32 || o->type == MSGPACK_OBJECT_FLOAT64))
        return o->via.f64;
    return o && o->type == MSGPACK_OBJECT_POSITIVE_INTEGER   ? (double)o->via.u64
           : o && o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER ? (double)o->via.i64
                                                             : otherwise;
}

char *cli_scalar(const msgpack_object *o, char *out, size_t size) {
    switch (o ? o->type : MSGPACK_OBJECT_NIL) {
    case MSGPACK_OBJECT_BOOLEAN:
        snprintf(out, size, "%s", o->via.boolean ? "true" : "false");
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        snprintf(out, size, "%" PRIu64, o->via.u64);
        break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        snprintf(out, size, "%" PRId64, o->via.i64);
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        snprintf(out, size, "%.4g", o->via.f64);
        break;
    case MSGPACK_OBJECT_STR:
    case MSGPACK_OBJECT_BIN:
        svi_escape(out, size, o->via.str.ptr, o->via.str.size);
        break;
    default:
        snprintf(out, size, "-");
    }
    return out;
}

char *cli_key_text(const msgpack_object *map, const char *key, char *out, size_t size) {
    return cli_scalar(cli_key(map, key), out, size);
}

const void *cli_key_bytes(const void *bytes, size_t length, const char *key, size_t *size) {
    struct svi_item map, name;
    const uint8_t *end = (const uint8_t *)bytes + length, *at = svi_item_read(bytes, &map);
    for (uint32_t i = 0; map.type == SVI_MAP && i < map.length; i++) {
        const uint8_t *value = at, *next;
        if (svi_walk(&value, end, SVI_WALK_MAX) != SVS_OK)
            return NULL;
        svi_item_read(at, &name);
        next = value;
        if (svi_walk(&next, end, SVI_WALK_MAX) != SVS_OK)
            return NULL;
        *size = (size_t)(next - value);
        if (name.type == SVI_STRING && name.length == strlen(key) && memcmp(name.body, key, name.length) == 0)
            return value;
        at = next;
    }
    return NULL;
}
