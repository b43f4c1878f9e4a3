/* Forests by hand: what is a tree and what is not, scores by descending and from packed nodes, the archive.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "support/archived.h"
#include "trees/forest.h"

#define LEAF SVI_FOREST_LEAF
#define LEFT SVI_FOREST_LEFT

/* x1 <= 2 ? (x0 <= -1 ? 1 : 2) : 4, and a constant 8; missing x1 goes right, missing x0 left. */
static const struct svi_forest_node two_trees[] = {{1, 2, 4},    {0 | LEFT, -1, 2}, {LEAF, 1, 0},
                                                   {LEAF, 2, 0}, {LEAF, 4, 0},      {LEAF, 8, 0}};

static struct svi_forest forest_of(const struct svi_forest_node *node, int count, int first) {
    struct svi_forest f;
    assert_int_equal(svi_forest_alloc(&f, 1, first < count ? 2 : 1, count, NULL), SVS_OK);
    memcpy(f.node, node, (size_t)count * sizeof *node);
    f.first[1] = first;
    f.first[f.trees] = count;
    f.base[0] = 100;
    return f;
}

static double packed_value(const uint8_t *at, const float *x) {
    for (;;) {
        uint32_t word, right;
        float value;
        memcpy(&word, at, 4);
        memcpy(&value, at + 4, 4);
        memcpy(&right, at + 8, 4);
        if (word & LEAF)
            return (double)value;
        const float v = x[word & SVI_FOREST_COLUMN];
        at += SVI_FOREST_NODE * ((isnan(v) ? !(word & LEFT) : v > value) ? right : 1);
    }
}

static void scores_follow_the_nodes(void **unused) {
    (void)unused;
    struct svi_forest f = forest_of(two_trees, 6, 5);
    const float rows[][2] = {{-1, 2},  {-0.5f, 2}, {-2, 2.5f},           {NAN, 0},
                             {0, NAN}, {NAN, NAN}, {-FLT_MAX, -FLT_MAX}, {FLT_MAX, FLT_MAX}};
    const double expected[] = {1, 2, 4, 1, 4, 4, 1, 4};
    uint8_t packed[6 * SVI_FOREST_NODE];
    assert_int_equal(svi_forest_finish(&f, NULL), SVS_OK);
    assert_int_equal(f.columns, 2);
    svi_forest_pack(&f, packed);
    for (int i = 0; i < 8; i++) {
        double s;
        svi_forest_score(&f, rows[i], &s);
        assert_true(s == 108 + expected[i]);
        assert_true(packed_value(packed, rows[i]) == expected[i]);
    }
    svi_forest_clear(&f);
}

/* Each of these is refused: a node that is reached twice or never, a loop, a leaf with a child, a value that
 * is not finite or no whole number of units. */
static void what_is_no_tree_is_refused(void **unused) {
    (void)unused;
    static const struct {
        int at;
        struct svi_forest_node node;
    } wrong[] = {
        {0, {1, 2, 0}},          {0, {1, 2, 1}},       {0, {1, 2, 3}},    {0, {1, 2, 5}},
        {0, {1, 2, 0xffffffff}}, {1, {0, -1, 3}},      {0, {1, NAN, 4}},  {0, {1, INFINITY, 4}},
        {2, {LEAF, NAN, 0}},     {2, {LEAF, 0.5f, 0}}, {2, {LEAF, 1, 1}}, {2, {LEAF | LEFT, 1, 0}},
        {2, {LEAF | 3, 1, 0}},   {2, {LEAF, 3e9f, 0}}, {4, {0, 1, 2}},    {0, {LEAF, 1, 0}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct svi_forest f = forest_of(two_trees, 6, 5);
        f.node[wrong[i].at] = wrong[i].node;
        assert_int_equal(svi_forest_finish(&f, NULL), SVS_DAMAGED);
        svi_forest_clear(&f);
    }
}

static void archive(struct svi_archive *a, void *object) {
    svi_forest_archive(a, object, 1, 2);
}

static void archives_come_back_or_are_refused(void **unused) {
    (void)unused;
    struct svi_bytes bytes = {0}, again = {0};
    svs_error err;
    struct svi_forest f = forest_of(two_trees, 6, 5), empty = {0}, other = {0};
    assert_int_equal(svi_forest_finish(&f, NULL), SVS_OK);
    assert_int_equal(archived_save(archive, &f, &bytes, &err), SVS_OK);
    assert_int_equal(archived_load(archive, &other, bytes.data, bytes.size, &err), SVS_OK);
    assert_int_equal(archived_save(archive, &other, &again, &err), SVS_OK);
    assert_true(archived_same(&bytes, &again));
    for (size_t at = 0; at < bytes.size; at++)
        for (int bit = 1; bit < 8; bit += 3) {
            const float x[2] = {0, 0};
            double s = 0;
            bytes.data[at] ^= (uint8_t)(1 << bit);
            if (archived_load(archive, &other, bytes.data, bytes.size, &err) == SVS_OK && other.rows == 1)
                svi_forest_score(&other, x, &s);
            assert_true(isfinite(s));
            svi_forest_clear(&other);
            bytes.data[at] ^= (uint8_t)(1 << bit);
        }
    assert_int_equal(archived_save(archive, &empty, &bytes, &err), SVS_OK);
    assert_int_equal(archived_load(archive, &f, bytes.data, bytes.size, &err), SVS_OK);
    assert_int_equal(f.rows, 0);
    svi_forest_clear(&f);
    svi_bytes_clear(&bytes);
    svi_bytes_clear(&again);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_follow_the_nodes),
        cmocka_unit_test(what_is_no_tree_is_refused),
        cmocka_unit_test(archives_come_back_or_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
