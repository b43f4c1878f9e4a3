#include "reply.h"

#include <string.h>

#include "say.h"

const msgpack_object *map_find(const msgpack_object *map, const char *key) {
    size_t length = strlen(key);
    for (uint32_t i = 0; map->type == MSGPACK_OBJECT_MAP && i < map->via.map.size; i++) {
        const msgpack_object *k = &map->via.map.ptr[i].key;
        if (k->type == MSGPACK_OBJECT_STR && k->via.str.size == length &&
            memcmp(k->via.str.ptr, key, length) == 0)
            return &map->via.map.ptr[i].val;
    }
    return NULL;
}

uint64_t map_number(const msgpack_object *map, const char *key, uint64_t otherwise) {
    const msgpack_object *v = map_find(map, key);
    return v && v->type == MSGPACK_OBJECT_POSITIVE_INTEGER ? v->via.u64 : otherwise;
}

static int64_t number(const msgpack_object *map, const char *key) {
    uint64_t n = map_number(map, key, UINT64_MAX);
    return n <= INT64_MAX ? (int64_t)n : -1;
}

static bool truth(const msgpack_object *map, const char *key) {
    const msgpack_object *v = map_find(map, key);
    return v && v->type == MSGPACK_OBJECT_BOOLEAN && v->via.boolean;
}

static void text(const msgpack_object *map, const char *key, char *out, size_t size) {
    const msgpack_object *v = map_find(map, key);
    out[0] = '\0';
    if (v && v->type == MSGPACK_OBJECT_STR)
        shown(out, size, v->via.str.ptr, v->via.str.size);
}

bool reply_read(struct reply *r, const void *bytes, size_t length) {
    msgpack_unpacked u;
    msgpack_unpacked_init(&u);
    bool good = msgpack_unpack_next(&u, bytes, length, NULL) == MSGPACK_UNPACK_SUCCESS;
    const msgpack_object *map = &u.data;
    good = good && map->type == MSGPACK_OBJECT_MAP;
    if (good) {
        r->ok = truth(map, "ok");
        r->final = truth(map, "final");
        r->n = number(map, "n");
        r->next = number(map, "next");
        r->credit = number(map, "credit");
        r->epoch = map_number(map, "epoch", 0);
        text(map, "error", r->error, sizeof r->error);
        text(map, "code", r->code, sizeof r->code);
        good = r->ok || r->error[0];
    }
    msgpack_unpacked_destroy(&u);
    return good;
}
