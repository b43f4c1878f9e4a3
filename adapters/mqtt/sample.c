#include "sample.h"

#include <string.h>

#define NUMBER_BYTES 8 /* of n, behind its type byte: always as long, so that it can be changed in place */

static void text(msgpack_packer *p, const char *t) {
    msgpack_pack_str_with_body(p, t, strlen(t));
}

static void features(msgpack_packer *p, const struct join *j, double ts) {
    text(p, "x");
    msgpack_pack_map(p, (size_t)j->sensors);
    for (int i = 0; i < j->sensors; i++) {
        double value;
        text(p, j->sensor[i].name);
        if (join_current(j, &j->sensor[i], ts, &value))
            msgpack_pack_double(p, value);
        else
            msgpack_pack_nil(p);
    }
}

static void identity(msgpack_packer *p, const struct sample_id *id) {
    if (id->kind == ID_NONE)
        return;
    text(p, "id");
    if (id->kind == ID_NUMBER)
        msgpack_pack_int64(p, id->number);
    else
        text(p, id->text);
}

void sample_encode(msgpack_sbuffer *out, const struct join *j, double ts, const struct sample_id *id,
                   const char *src) {
    msgpack_packer p;
    msgpack_sbuffer_clear(out);
    msgpack_packer_init(&p, out, msgpack_sbuffer_write);
    msgpack_pack_map(&p, (id->kind == ID_NONE ? 2u : 3u) + (src ? 2u : 0u));
    features(&p, j, ts);
    text(&p, "ts");
    msgpack_pack_double(&p, ts);
    identity(&p, id);
    if (src) {
        text(&p, "src");
        text(&p, src);
        text(&p, "n");
        msgpack_pack_fix_uint64(&p, 0);
    }
}

void sample_number(unsigned char *bytes, size_t size, uint64_t n) {
    for (int i = 1; i <= NUMBER_BYTES; i++, n >>= 8)
        bytes[size - (size_t)i] = (unsigned char)n;
}

void hello_encode(msgpack_sbuffer *out, const char *src) {
    msgpack_packer p;
    msgpack_sbuffer_clear(out);
    msgpack_packer_init(&p, out, msgpack_sbuffer_write);
    msgpack_pack_map(&p, 2);
    text(&p, "op");
    text(&p, "hello");
    text(&p, "src");
    text(&p, src);
}
