/* The envelope: one pass says whether a message is well-formed and finds its keys. What the pass accepts is
 * held against the plain check of the form, on messages that are cut, mutated, nested and random; what it
 * finds is held against msgpack-c's own reading. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <msgpack.h>

#include "support/schema.h"
#include "base/text.h"
#include "wire/decode.h"

#define TRIES 200000

static uint64_t draw(uint64_t *state, uint64_t below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % below;
}

static void put_any(msgpack_packer *p, uint64_t *state, int depth) {
    switch (draw(state, depth > 0 ? 9 : 7)) {
    case 0:
        msgpack_pack_nil(p);
        break;
    case 1:
        msgpack_pack_int64(p, (int64_t)draw(state, 1u << 20) - 4);
        break;
    case 2:
        msgpack_pack_double(p, (double)draw(state, 64) / 4);
        break;
    case 3:
        msgpack_pack_true(p);
        break;
    case 4: {
        static const char *const words[] = {"a", "", "hello", "learn", "\xff", "s\0t"};
        const char *word = words[draw(state, 6)];
        const size_t length = word[0] == 's' ? 3 : strlen(word);
        msgpack_pack_str(p, length);
        msgpack_pack_str_body(p, word, length);
        break;
    }
    case 5:
        msgpack_pack_bin(p, 3);
        msgpack_pack_bin_body(p, "bin", 3);
        break;
    case 6:
        msgpack_pack_ext(p, 8, 2);
        msgpack_pack_ext_body(p, "\0\0\0\0\0\0\xf0\x3f", 8);
        break;
    case 7: {
        const size_t n = draw(state, 4);
        msgpack_pack_array(p, n);
        for (size_t i = 0; i < n; i++)
            put_any(p, state, depth - 1);
        break;
    }
    default: {
        const size_t n = draw(state, 3);
        msgpack_pack_map(p, n);
        for (size_t i = 0; i < 2 * n; i++)
            put_any(p, state, depth - 1);
    }
    }
}

static void put_sample(msgpack_packer *p, uint64_t *state) {
    static const char *const keys[] = {"x",  "y",   "id", "ts",    "w",  "stream",
                                       "op", "src", "n",  "other", "at", "reply"};
    const size_t n = draw(state, 8);
    msgpack_pack_map(p, n);
    for (size_t i = 0; i < n; i++) {
        if (draw(state, 12) == 0) {
            put_any(p, state, 1);
        } else {
            const char *key = keys[draw(state, 12)];
            msgpack_pack_str(p, strlen(key));
            msgpack_pack_str_body(p, key, strlen(key));
        }
        put_any(p, state, (int)draw(state, 10));
    }
}

static void put_word(msgpack_packer *p, const char *word) {
    msgpack_pack_str(p, strlen(word));
    msgpack_pack_str_body(p, word, strlen(word));
}

/* {op: message} with some of its keys, now and then one twice or a key that is no string. */
static void put_op_message(msgpack_packer *p, uint64_t *state) {
    static const char *const keys[] = {"src", "n", "reply", "columns", "other", "x", "at"};
    const size_t n = draw(state, 5);
    msgpack_pack_map(p, n + 1);
    for (size_t i = 0; i < n; i++) {
        const uint64_t which = draw(state, 16);
        if (which == 0)
            put_any(p, state, 1);
        else
            put_word(p, keys[which % 7]);
        if (draw(state, 3) == 0)
            put_word(p, "score");
        else
            put_any(p, state, 2);
    }
    put_word(p, "op");
    put_word(p, "message");
}

/* A message, mostly well-formed; `buffer` is replaced. */
static void make_message(msgpack_sbuffer *buffer, uint64_t *state) {
    msgpack_packer p;
    msgpack_sbuffer_clear(buffer);
    msgpack_packer_init(&p, buffer, msgpack_sbuffer_write);
    const uint64_t kind = draw(state, 8);
    if (kind == 0) {
        put_any(&p, state, 3);
    } else if (kind < 4) {
        const size_t n = draw(state, 4);
        const bool about = draw(state, 2);
        msgpack_pack_array(&p, n + about);
        if (about)
            put_op_message(&p, state);
        for (size_t i = 0; i < n; i++)
            put_sample(&p, state);
    } else {
        put_sample(&p, state);
    }
}

static void damage(msgpack_sbuffer *buffer, uint64_t *state) {
    const uint64_t how = draw(state, 6);
    if (buffer->size == 0 || how > 2)
        return;
    if (how == 0)
        buffer->size = draw(state, buffer->size);
    else if (how == 1)
        buffer->data[draw(state, buffer->size)] = (char)draw(state, 256);
    else
        msgpack_sbuffer_write(buffer, "\xc0", 1);
}

/* The value of a key of an element, the last one if it is there twice; NULL: it is not there. */
static const msgpack_object *value_at(const msgpack_object *o, uint32_t element, const char *key) {
    const msgpack_object *found = NULL;
    if (o->type == MSGPACK_OBJECT_ARRAY)
        o = element < o->via.array.size ? &o->via.array.ptr[element] : NULL;
    if (!o || o->type != MSGPACK_OBJECT_MAP)
        return NULL;
    for (uint32_t i = 0; i < o->via.map.size; i++) {
        const msgpack_object *k = &o->via.map.ptr[i].key;
        if (k->type == MSGPACK_OBJECT_STR && k->via.str.size == strlen(key) &&
            memcmp(k->via.str.ptr, key, k->via.str.size) == 0)
            found = &o->via.map.ptr[i].val;
    }
    return found;
}

static bool is_text(const msgpack_object *o, const char *text) {
    return o && o->type == MSGPACK_OBJECT_STR && o->via.str.size == strlen(text) &&
           memcmp(o->via.str.ptr, text, strlen(text)) == 0;
}

/* Does a batch begin with {op: message}? */
static uint32_t is_about(const msgpack_object *o) {
    return o->type == MSGPACK_OBJECT_ARRAY && is_text(value_at(o, 0, "op"), "message");
}

/* What a message says of itself: in {op: message}, else in the first sample. */
static const msgpack_object *value_of(const msgpack_object *o, const char *key) {
    const msgpack_object *own = value_at(o, 0, key);
    return is_about(o) && (!own || own->type == MSGPACK_OBJECT_NIL) ? value_at(o, 1, key) : own;
}

/* A cursor is bin or UTF-8; what is neither is refused. */
static void check_cursor(const struct svi_envelope *e, const msgpack_object *at) {
    const uint8_t *bytes;
    size_t size;
    bool text;
    svs_error err;
    const bool given = at && at->type != MSGPACK_OBJECT_NIL,
               is_text = given && at->type == MSGPACK_OBJECT_STR;
    assert_int_equal(e->cursor != NULL, given);
    const svs_code code = svi_envelope_cursor(e, &bytes, &size, &text, &err);
    if (given && !(is_text && svi_utf8_valid(at->via.str.ptr, at->via.str.size)) &&
        at->type != MSGPACK_OBJECT_BIN) {
        assert_int_equal(code, SVS_BAD_CURSOR);
        return;
    }
    assert_int_equal(code, SVS_OK);
    assert_int_equal(text, is_text);
    assert_int_equal(size, given ? at->via.bin.size : 0); /* of a string it is at the same place */
    assert_true(size == 0 || memcmp(bytes, at->via.bin.ptr, size) == 0);
}

static void check_found(const struct svi_envelope *e, const msgpack_object *o) {
    const msgpack_object *src = value_of(o, "src"), *n = value_of(o, "n");
    const msgpack_object *reply = value_of(o, "reply");
    const bool batch = o->type == MSGPACK_OBJECT_ARRAY;
    assert_int_equal(e->left, batch ? o->via.array.size - is_about(o) : 1);
    assert_int_equal(e->reply, !reply || reply->type == MSGPACK_OBJECT_NIL ? SVI_REPLY_PLAIN
                               : is_text(reply, "score")                   ? SVI_REPLY_SCORE
                                                                           : SVI_REPLY_UNKNOWN);
    assert_int_equal(e->asked != NULL, e->reply != SVI_REPLY_PLAIN);
    check_cursor(e, value_of(o, "at"));
    assert_int_equal(e->has_src, src && src->type != MSGPACK_OBJECT_NIL);
    assert_int_equal(e->has_n, n && n->type != MSGPACK_OBJECT_NIL);
    const bool text = src && src->type == MSGPACK_OBJECT_STR;
    assert_int_equal(e->src_length, text ? src->via.str.size : 0);
    assert_true(!text || memcmp(e->src, src->via.str.ptr, src->via.str.size) == 0);
    assert_int_equal(e->hello, !batch && is_text(value_of(o, "op"), "hello"));
    if (n && n->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
        assert_int_equal(e->n, (int64_t)n->via.u64);
    else if (n && n->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
        assert_int_equal(e->n, -1);
}

/* All elements can be decoded or refused, one after the other, to the last byte. */
static void check_elements(struct svi_envelope *e, const uint8_t *end) {
    struct svi_schema shape;
    struct svi_message m;
    svs_error err;
    assert_int_equal(schema_open(&shape, 64, NULL, NULL), SVS_OK);
    const uint8_t *after = e->left > 0 ? NULL : end;
    while (e->left > 0) {
        const svs_code code = svi_envelope_next(e, &shape, &m, &err);
        assert_true(code == SVS_OK || err.code == code);
        svi_schema_restore(&shape);
        after = e->element + e->element_size;
        assert_ptr_equal(after, e->next);
    }
    assert_ptr_equal(after, end);
    svi_schema_clear(&shape);
}

static void test_one_pass_is_the_check(void **unused) {
    (void)unused;
    msgpack_sbuffer buffer;
    uint64_t state = 20;
    int good = 0, bad = 0, wrong = 0;
    msgpack_sbuffer_init(&buffer);
    for (int i = 0; i < TRIES; i++) {
        struct svi_envelope e;
        make_message(&buffer, &state);
        damage(&buffer, &state);
        uint8_t *copy = malloc(buffer.size + 1); /* of exactly that size: a sanitizer sees reads beyond it */
        assert_non_null(copy);
        uint8_t *bytes = realloc(copy, buffer.size > 0 ? buffer.size : 1);
        assert_non_null(bytes);
        if (buffer.size > 0)
            memcpy(bytes, buffer.data, buffer.size);
        svs_error err = {SVS_OK, ""};
        const svs_code form = svi_msgpack_check(bytes, buffer.size, SVI_DEPTH_MAX, &err);
        const svs_code code = svi_envelope_read(&e, bytes, buffer.size);
        e.order = NULL; /* the caller's */
        if (form != SVS_OK) {
            assert_int_equal(code, form);
            assert_string_equal(e.form.text, err.text);
            assert_false(e.has_src || e.has_n || e.hello || e.left > 0);
            bad++;
        } else {
            const bool container =
                (bytes[0] >= 0x80 && bytes[0] <= 0x9f) || (bytes[0] >= 0xdc && bytes[0] <= 0xdf);
            /* A key that is wrong in {op: message} refuses the message; it is counted here, not found. */
            if (code == SVS_DUPLICATE_KEY || (container && code == SVS_WRONG_TYPE)) {
                assert_non_null(strstr(e.form.text, "the element {op: message} has a key"));
                assert_false(e.has_src || e.has_n || e.hello || e.left > 0 || e.asked);
                wrong++;
            } else
                assert_int_equal(code, container ? SVS_OK : SVS_WRONG_TYPE);
            msgpack_unpacked u;
            msgpack_unpacked_init(&u);
            if (code == SVS_OK &&
                msgpack_unpack_next(&u, (const char *)bytes, buffer.size, NULL) == MSGPACK_UNPACK_SUCCESS)
                check_found(&e, &u.data);
            msgpack_unpacked_destroy(&u);
            if (code == SVS_OK)
                check_elements(&e, bytes + buffer.size);
            good++;
        }
        free(bytes);
    }
    msgpack_sbuffer_destroy(&buffer);
    assert_true(good > TRIES / 4 && bad > TRIES / 20 && wrong > TRIES / 200);
}

/* Every depth up to the limit is accepted, alone and in a batch, and one more is not. */
static void test_depth(void **unused) {
    (void)unused;
    for (int batch = 0; batch < 2; batch++)
        for (int depth = 0; depth < 12; depth++) {
            uint8_t bytes[64];
            size_t size = 0;
            struct svi_envelope e;
            if (batch)
                bytes[size++] = 0x91;
            bytes[size++] = 0x81;
            bytes[size++] = 0xa1;
            bytes[size++] = 'k';
            for (int i = 0; i < depth; i++)
                bytes[size++] = 0x91;
            bytes[size++] = 1;
            assert_int_equal(svi_envelope_read(&e, bytes, size),
                             batch + 1 + depth <= SVI_DEPTH_MAX ? SVS_OK : SVS_TOO_DEEP);
        }
}

/* A batch that is too large is refused whole; access control still sees whose it is, and nothing else is set.
 */
static void test_too_large(void **unused) {
    (void)unused;
    static const uint8_t first[] = {0xdd, 0, 1, 0, 1, 0x82, 0xa3, 's', 'r', 'c', 0xa1, 'a', 0xa1, 'n', 7};
    static uint8_t bytes[sizeof first + SVI_BATCH_MAX];
    struct svi_envelope e;
    memcpy(bytes, first, sizeof first);
    memset(bytes + sizeof first, 0x80, SVI_BATCH_MAX);
    assert_int_equal(svi_envelope_read(&e, bytes, sizeof bytes), SVS_TOO_LARGE);
    assert_true(e.src_length == 1 && e.src[0] == 'a');
    assert_false(e.has_src || e.has_n || e.src_good || e.hello || e.left > 0);
    assert_int_equal(svi_envelope_read(&e, NULL, 0), SVS_EMPTY);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_pass_is_the_check),
                                       cmocka_unit_test(test_depth), cmocka_unit_test(test_too_large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
