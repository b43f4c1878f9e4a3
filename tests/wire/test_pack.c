/* What the encoders write is what msgpack-c writes: every item at the bounds of its forms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <msgpack.h>

#include "wire/pack.h"

struct pair {
    struct svi_bytes bytes;
    struct svi_pack ours;
    msgpack_sbuffer buffer;
    msgpack_packer theirs;
};

static void begin(struct pair *p) {
    p->bytes.size = 0;
    svi_pack_begin(&p->ours, &p->bytes);
    msgpack_sbuffer_clear(&p->buffer);
    msgpack_packer_init(&p->theirs, &p->buffer, msgpack_sbuffer_write);
}

static void assert_same(struct pair *p) {
    assert_int_equal(svi_pack_end(&p->ours), SVS_OK);
    assert_int_equal(p->bytes.size, p->buffer.size);
    assert_memory_equal(p->bytes.data, p->buffer.data, p->buffer.size);
}

static void pair_clear(struct pair *p) {
    svi_bytes_clear(&p->bytes);
    msgpack_sbuffer_destroy(&p->buffer);
}

static void test_integers(void **state) {
    struct pair p = {0};
    (void)state;
    for (int bit = 0; bit < 64; bit++)
        for (int near = -2; near <= 2; near++) {
            const uint64_t u = (UINT64_C(1) << bit) + (uint64_t)near;
            begin(&p);
            svi_pack_uint(&p.ours, u);
            svi_pack_int(&p.ours, (int64_t)u);
            svi_pack_int(&p.ours, (int64_t)(0 - u));
            msgpack_pack_uint64(&p.theirs, u);
            msgpack_pack_int64(&p.theirs, (int64_t)u);
            msgpack_pack_int64(&p.theirs, (int64_t)(0 - u));
            assert_same(&p);
        }
    pair_clear(&p);
}

static void test_reals_and_words(void **state) {
    static const double reals[] = {0, -0.0, 1.5, -1e308, 5e-324, INFINITY, -INFINITY};
    struct pair p = {0};
    (void)state;
    begin(&p);
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        svi_pack_real(&p.ours, reals[i]);
        msgpack_pack_double(&p.theirs, reals[i]);
    }
    svi_pack_real(&p.ours, NAN);
    svi_pack_nil(&p.ours);
    svi_pack_bool(&p.ours, true);
    svi_pack_bool(&p.ours, false);
    msgpack_pack_nil(&p.theirs);
    msgpack_pack_nil(&p.theirs);
    msgpack_pack_true(&p.theirs);
    msgpack_pack_false(&p.theirs);
    assert_same(&p);
    pair_clear(&p);
}

/* Strings, bytes, packed numbers and heads, of as many bytes or elements as the bounds of their forms. */
static void test_lengths(void **state) {
    static const size_t lengths[] = {0,  1,  2,  3,   4,   5,   8,   15,    16,    17,
                                     31, 32, 33, 254, 255, 256, 257, 65535, 65536, 65537};
    double *content = calloc(65537, sizeof *content);
    struct pair p = {0};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const size_t n = lengths[i];
        begin(&p);
        svi_pack_string(&p.ours, content, n);
        svi_pack_bin(&p.ours, content, n);
        svi_pack_doubles(&p.ours, content, n);
        svi_pack_map(&p.ours, n);
        svi_pack_array(&p.ours, n);
        msgpack_pack_str_with_body(&p.theirs, content, n);
        msgpack_pack_bin_with_body(&p.theirs, content, n);
        msgpack_pack_ext_with_body(&p.theirs, content, 8 * n, 2);
        msgpack_pack_map(&p.theirs, n);
        msgpack_pack_array(&p.theirs, n);
        assert_same(&p);
    }
    pair_clear(&p);
    free(content);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_integers),
                                       cmocka_unit_test(test_reals_and_words),
                                       cmocka_unit_test(test_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
