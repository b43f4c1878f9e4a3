/* Blocks of any size as bytes: those that are too large for msgpack's lengths are kept in pieces, and come
 * back as they were; pieces that do not add up are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "wire/archive_file.h"

#define MOST 40

struct blocks {
    int count;
    double reals[MOST];
    int32_t ints[MOST];
    int64_t longs[MOST];
    uint8_t bytes[MOST];
};

static void archive(struct svi_archive *a, struct blocks *b) {
    svi_archive_int(a, "count", &b->count, 0, MOST);
    svi_archive_doubles(a, "reals", b->reals, b->count);
    svi_archive_ints(a, "ints", b->ints, b->count, INT32_MIN, INT32_MAX);
    svi_archive_int64s(a, "longs", b->longs, b->count, INT64_MIN, INT64_MAX);
    svi_archive_bytes(a, "bytes", b->bytes, b->count);
}

static void fill(struct blocks *b, int count) {
    *b = (struct blocks){.count = count};
    for (int i = 0; i < count; i++) {
        b->reals[i] = 1.5 * i - 7;
        b->ints[i] = 1 << (i % 31);
        b->longs[i] = -((int64_t)1 << i);
        b->bytes[i] = (uint8_t)(3 * i);
    }
}

/* How many fields that made. */
static uint32_t save(struct blocks *b, int64_t piece, struct svi_bytes *out) {
    struct svi_archive_out to;
    svs_error e;
    out->size = 0;
    svi_archive_out_begin(&to, out, "test", &e);
    assert_int_equal(to.piece, SVI_ARCHIVE_PIECE);
    to.piece = piece;
    archive(&to.archive, b);
    assert_int_equal(svi_archive_out_end(&to), SVS_OK);
    return to.fields;
}

static svs_code load(struct blocks *b, const struct svi_bytes *bytes, svs_error *e) {
    struct svi_archive_in from;
    *b = (struct blocks){0};
    svi_archive_in_begin(&from, bytes->data, bytes->size, "test", e);
    archive(&from.archive, b);
    return svi_archive_in_end(&from);
}

static void test_pieces(void **state) {
    struct blocks b, back;
    struct svi_bytes bytes = {0};
    svs_error e;
    (void)state;
    for (int count = 0; count <= MOST; count++) {
        fill(&b, count);
        assert_int_equal(save(&b, SVI_ARCHIVE_PIECE, &bytes), 5);
        for (int64_t piece = 8; piece < 400; piece += 3) {
            uint32_t fields = save(&b, piece, &bytes), expected = 1;
            static const int64_t sizes[] = {8, 4, 8, 1};
            for (int k = 0; k < 4; k++) {
                int64_t whole = piece / sizes[k]; /* no element is cut */
                expected += count ? (uint32_t)((count - 1) / whole + 1) : 1;
            }
            assert_int_equal(fields, expected);
            if (load(&back, &bytes, &e) != SVS_OK)
                fail_msg("%s", e.text);
            assert_memory_equal(&b, &back, sizeof b);
        }
    }
    svi_bytes_clear(&bytes);
}

/* The map with another count of fields in front. */
static void test_wrong_pieces(void **state) {
    struct blocks b, back;
    struct svi_bytes bytes = {0};
    svs_error e;
    (void)state;
    fill(&b, 10);
    for (int extra = -1; extra <= 1; extra++) {
        struct svi_archive_out to;
        int64_t left = 10 + extra;
        bytes.size = 0;
        svi_archive_out_begin(&to, &bytes, "test", &e);
        svi_archive_int(&to.archive, "count", &b.count, 0, MOST);
        for (int64_t n = 4; left > 0; left -= n) {
            n = n < left ? n : left;
            svi_archive_doubles(&to.archive, "reals", b.reals, n);
        }
        svi_archive_ints(&to.archive, "ints", b.ints, 10, INT32_MIN, INT32_MAX);
        svi_archive_int64s(&to.archive, "longs", b.longs, 10, INT64_MIN, INT64_MAX);
        svi_archive_bytes(&to.archive, "bytes", b.bytes, 10);
        assert_int_equal(svi_archive_out_end(&to), SVS_OK);
        assert_int_equal(load(&back, &bytes, &e), extra ? SVS_DAMAGED : SVS_OK);
        if (extra)
            assert_non_null(strstr(e.text, "reals"));
    }
    struct svi_archive_out to; /* an empty piece, which could go on forever */
    bytes.size = 0;
    svi_archive_out_begin(&to, &bytes, "test", &e);
    svi_archive_int(&to.archive, "count", &b.count, 0, MOST);
    svi_archive_doubles(&to.archive, "reals", b.reals, 0);
    svi_archive_doubles(&to.archive, "reals", b.reals, 10);
    assert_int_equal(svi_archive_out_end(&to), SVS_OK);
    assert_int_equal(load(&back, &bytes, &e), SVS_DAMAGED);
    assert_non_null(strstr(e.text, "another type or length"));
    svi_bytes_clear(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces), cmocka_unit_test(test_wrong_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
