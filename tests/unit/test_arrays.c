/* Arrays by their table (base/arrays.h): entries keep their indices through growth, one column starts again
 * alone, and what is archived does not depend on how much room there is. Held against indices that are worked
 * out here entry by entry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "support/archived.h"

#include "base/arrays.h"
#include "base/random.h"

struct thing {
    double *matrix, *side, *scratch;
    int64_t *count;
    float *cube;
    uint8_t *flag;
};

enum { FEATURES, CLASSES, BLOCKS, DIMS };

static const struct svi_array table[] = {
    SVI_ARRAY(struct thing, matrix, "matrix", SVI_AXIS_TRIANGLE(FEATURES)),
    SVI_ARRAY_WITH(struct thing, side, "side", SVI_ARRAY_KNOWN, 7, SVI_AXIS_SUM(CLASSES, FEATURES),
                   SVI_AXIS(FEATURES)),
    SVI_ARRAY(struct thing, scratch, NULL, SVI_AXIS(FEATURES)),
    SVI_ARRAY_WITH(struct thing, count, "count", SVI_ARRAY_COUNT, 0, SVI_AXIS(CLASSES)),
    SVI_ARRAY_WITH(struct thing, cube, "cube", SVI_ARRAY_LOWEST, -INFINITY, SVI_AXIS_LENGTH(3),
                   SVI_AXIS(FEATURES), SVI_AXIS(BLOCKS)),
    SVI_ARRAY(struct thing, flag, "flag", SVI_AXIS(FEATURES)),
};
static const struct svi_arrays arrays = SVI_ARRAYS(table, "a thing");

static size_t cube_at(const int32_t *dims, int i, int j, int k) {
    return ((size_t)i * (size_t)dims[FEATURES] + (size_t)j) * (size_t)dims[BLOCKS] + (size_t)k;
}

static size_t side_at(const int32_t *dims, int row, int j) {
    return (size_t)row * (size_t)dims[FEATURES] + (size_t)j;
}

/* A value of its own for each set of indices; classes count from below, features from above. */
static double value(int a, int b, int c) {
    return 1 + a * 10000 + b * 100 + c;
}

static void fill(struct thing *t, const int32_t *d) {
    for (int i = 0; i < d[FEATURES]; i++) {
        for (int j = 0; j <= i; j++)
            t->matrix[i * (i + 1) / 2 + j] = value(i, j, 0);
        t->flag[i] = (uint8_t)(1 + i);
        for (int k = 0; k < d[CLASSES]; k++)
            t->side[side_at(d, k, i)] = value(k, i, 1);
        for (int k = 0; k < d[FEATURES]; k++)
            t->side[side_at(d, d[CLASSES] + k, i)] = value(k, i, 2);
        for (int p = 0; p < 3; p++)
            for (int k = 0; k < d[BLOCKS]; k++)
                t->cube[cube_at(d, p, i, k)] = (float)value(p, i, k);
    }
    for (int k = 0; k < d[CLASSES]; k++)
        t->count[k] = 1 + k;
}

/* All is as `fill` left it for dimensions `had`, but for feature `gone` (-1: none); the rest is empty. */
static void assert_filled(const struct thing *t, const int32_t *d, const int32_t *had, int gone) {
    for (int i = 0; i < d[FEATURES]; i++) {
        const bool in = i < had[FEATURES] && i != gone;
        for (int j = 0; j <= i; j++)
            assert_true(t->matrix[i * (i + 1) / 2 + j] == (in && j != gone ? value(i, j, 0) : 0));
        assert_int_equal(t->flag[i], in ? 1 + i : 0);
        for (int k = 0; k < d[CLASSES]; k++)
            assert_true(t->side[side_at(d, k, i)] == (in && k < had[CLASSES] ? value(k, i, 1) : 7));
        for (int k = 0; k < d[FEATURES]; k++) {
            const bool both = in && k < had[FEATURES] && k != gone;
            assert_true(t->side[side_at(d, d[CLASSES] + k, i)] == (both ? value(k, i, 2) : 7));
        }
        for (int p = 0; p < 3; p++)
            for (int k = 0; k < d[BLOCKS]; k++)
                assert_true(t->cube[cube_at(d, p, i, k)] ==
                            (in && k < had[BLOCKS] ? (float)value(p, i, k) : -INFINITY));
    }
    for (int k = 0; k < d[CLASSES]; k++)
        assert_int_equal(t->count[k], k < had[CLASSES] ? 1 + k : 0);
}

static void growth_keeps_indices(void **state) {
    (void)state;
    struct svi_random random = {3};
    for (int walk = 0; walk < 300; walk++) {
        int32_t from[DIMS], to[DIMS];
        struct thing t, copy;
        for (int i = 0; i < DIMS; i++) {
            from[i] = (int32_t)svi_random_below(&random, 6);
            to[i] = from[i] + (int32_t)svi_random_below(&random, 4);
        }
        assert_int_equal(svi_arrays_alloc(&arrays, &t, from, NULL), SVS_OK);
        assert_int_equal(svi_arrays_alloc(&arrays, &copy, to, NULL), SVS_OK);
        assert_filled(&t, from, (int32_t[DIMS]){0}, -1);
        fill(&t, from);
        svi_arrays_copy(&arrays, &copy, to, &t, from);
        assert_filled(&copy, to, from, -1);
        assert_int_equal(svi_arrays_resize(&arrays, &t, from, to, NULL), SVS_OK);
        assert_filled(&t, to, from, -1);
        const int32_t less[DIMS] = {from[0] / 2, from[1] / 2, from[2] / 2};
        assert_int_equal(svi_arrays_resize(&arrays, &t, to, less, NULL), SVS_OK);
        assert_filled(&t, less, less, -1);
        svi_arrays_free(&arrays, &t);
        svi_arrays_free(&arrays, &copy);
        svi_arrays_free(&arrays, &t);
    }
}

static void a_forgotten_feature_is_empty(void **state) {
    (void)state;
    const int32_t dims[DIMS] = {5, 3, 4};
    for (int gone = 0; gone < 5; gone++) {
        struct thing t;
        assert_int_equal(svi_arrays_alloc(&arrays, &t, dims, NULL), SVS_OK);
        fill(&t, dims);
        svi_arrays_forget(&arrays, &t, dims, FEATURES, gone);
        assert_filled(&t, dims, dims, gone);
        svi_arrays_free(&arrays, &t);
    }
}

struct aligned {
    float *vector;
    uint8_t *byte;
    uint16_t *word;
    struct svi_axis *of;
};

static const struct svi_array aligned_table[] = {
    SVI_ARRAY(struct aligned, byte, NULL, SVI_AXIS(FEATURES)),
    SVI_ARRAY(struct aligned, vector, NULL, SVI_AXIS(FEATURES), SVI_AXIS(CLASSES)),
    SVI_ARRAY(struct aligned, word, NULL, SVI_AXIS(FEATURES), SVI_AXIS_LENGTH(2)),
    SVI_ARRAY(struct aligned, of, NULL, SVI_AXIS(FEATURES)),
};
static const struct svi_arrays aligned_arrays = SVI_ARRAYS_ALIGNED(aligned_table, "an aligned thing");

static void aligned_arrays_begin_at_cache_lines(void **state) {
    (void)state;
    const int32_t dims[DIMS] = {5, 3, 0};
    struct aligned t, from;
    assert_int_equal(svi_arrays_alloc(&aligned_arrays, &t, dims, NULL), SVS_OK);
    assert_true((uintptr_t)t.vector % 64 == 0 && (uintptr_t)t.word % 64 == 0 && (uintptr_t)t.of % 64 == 0);
    assert_ptr_equal(t.vector, t.byte + 64);
    assert_ptr_equal(t.word, t.vector + 16);
    assert_int_equal(svi_arrays_bytes(&aligned_arrays, dims), 192 + 5 * sizeof *t.of);
    svi_arrays_view(&aligned_arrays, &from, &t, dims, 2);
    assert_true(from.byte == t.byte + 2 && from.vector == t.vector + 6 && from.word == t.word + 4 &&
                from.of == t.of + 2);
    svi_arrays_free(&aligned_arrays, &t);
}

struct kept {
    struct thing t;
    int32_t capacity[DIMS], used[DIMS];
};

static void archive_kept(struct svi_archive *a, void *of) {
    struct kept *k = of;
    svi_arrays_archive(a, &arrays, &k->t, k->capacity, k->used);
}

static void archives_do_not_show_room(void **state) {
    (void)state;
    struct svi_random random = {5};
    for (int walk = 0; walk < 100; walk++) {
        struct kept a = {.used = {4, 2, 3}}, b = a;
        struct svi_bytes first = {0}, again = {0};
        svs_error err = {0};
        for (int i = 0; i < DIMS; i++) {
            a.capacity[i] = a.used[i] + (int32_t)svi_random_below(&random, 3);
            b.capacity[i] = b.used[i] + (int32_t)svi_random_below(&random, 3);
        }
        assert_int_equal(svi_arrays_alloc(&arrays, &a.t, a.capacity, NULL), SVS_OK);
        assert_int_equal(svi_arrays_alloc(&arrays, &b.t, b.capacity, NULL), SVS_OK);
        struct thing small;
        assert_int_equal(svi_arrays_alloc(&arrays, &small, a.used, NULL), SVS_OK);
        fill(&small, a.used);
        small.cube[1] = -INFINITY;
        small.side[0] = NAN;
        svi_arrays_copy(&arrays, &a.t, a.capacity, &small, a.used);
        assert_int_equal(archived_save(archive_kept, &a, &first, &err), SVS_OK);
        assert_int_equal(archived_load(archive_kept, &b, first.data, first.size, &err), SVS_OK);
        assert_int_equal(archived_save(archive_kept, &b, &again, &err), SVS_OK);
        assert_true(archived_same(&first, &again));
        assert_true(b.t.cube[cube_at(b.capacity, 0, 0, 1)] == -INFINITY && isnan(b.t.side[0]));
        svi_bytes_clear(&first);
        svi_bytes_clear(&again);
        svi_arrays_free(&arrays, &small);
        svi_arrays_free(&arrays, &a.t);
        svi_arrays_free(&arrays, &b.t);
    }
}

static void what_is_not_finite_is_refused(void **state) {
    (void)state;
    struct kept a = {.capacity = {2, 1, 1}, .used = {2, 1, 1}}, b = a;
    struct svi_bytes bytes = {0};
    svs_error err = {0};
    assert_int_equal(svi_arrays_alloc(&arrays, &a.t, a.capacity, NULL), SVS_OK);
    assert_int_equal(svi_arrays_alloc(&arrays, &b.t, b.capacity, NULL), SVS_OK);
    a.t.count[0] = -1;
    assert_int_equal(archived_save(archive_kept, &a, &bytes, &err), SVS_OK);
    assert_int_equal(archived_load(archive_kept, &b, bytes.data, bytes.size, &err), SVS_DAMAGED);
    a.t.count[0] = 0;
    a.t.matrix[1] = NAN;
    bytes.size = 0;
    err = (svs_error){0};
    assert_int_equal(archived_save(archive_kept, &a, &bytes, &err), SVS_OK);
    assert_int_equal(archived_load(archive_kept, &b, bytes.data, bytes.size, &err), SVS_DAMAGED);
    svi_bytes_clear(&bytes);
    svi_arrays_free(&arrays, &a.t);
    svi_arrays_free(&arrays, &b.t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growth_keeps_indices),
        cmocka_unit_test(a_forgotten_feature_is_empty),
        cmocka_unit_test(aligned_arrays_begin_at_cache_lines),
        cmocka_unit_test(archives_do_not_show_room),
        cmocka_unit_test(what_is_not_finite_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
