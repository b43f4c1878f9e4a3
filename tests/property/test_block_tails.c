/* Tails of blocks: what they say is the mixture of their definition, whatever was asked for before; and kept
 * at any row, also while series wait for their maxima, they go on as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "judges/block_tails.h"
#include "base/bytes.h"
#include "base/random.h"
#include "wire/archive_file.h"

enum { SERIES = 150, LONGEST = 64 };

/* Laws of several weights; coarse ones have ties. */
static float draw(struct svi_random *r, int series) {
    const double u = ((double)(svi_random_next(r) >> 11) + 0.5) * 0x1p-53;
    const double v = series % 3 == 0 ? -log(u) : series % 3 == 1 ? pow(u, -0.3) : floor(-4 * log(u));
    return svi_random_below(r, 50) == 0 ? -INFINITY : (float)v;
}

static void feed(struct svi_block_tails *t, struct svi_random *r) {
    float v[SERIES];
    for (int j = 0; j < SERIES; j++)
        v[j] = draw(r, j);
    svi_block_tails_add(t, v);
}

static void begin(struct svi_block_tails *t) {
    svs_error err;
    assert_int_equal(svi_block_tails_init(t, SERIES, 1, &err), SVS_OK);
    t->longest = LONGEST;
}

static int descending(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The surprise by block_tails.h, from the maxima themselves. */
static double by_definition(const struct svi_block_tails *t, int series, float v) {
    const struct svi_block_shape *s = series < t->done ? &t->shape : &t->before;
    const int n = s->count, k = n >= 16 ? n / 4 : n >= 8 ? 4 : n / 2;
    float top[SVI_BLOCKS];
    double weight[SVI_BLOCK_SHAPES], p[SVI_BLOCK_SHAPES], mean = 0, most = -INFINITY, sum = 0, all = 0;
    memcpy(top, t->maxima + (size_t)series * SVI_BLOCKS, (size_t)n * sizeof *top);
    qsort(top, (size_t)n, sizeof *top, descending);
    for (int i = 0; i < k; i++)
        mean += (double)(top[i] - top[k]) / k;
    for (int i = 0; i < SVI_BLOCK_SHAPES; i++) {
        const double xi = (i + 0.5) / SVI_BLOCK_SHAPES, b = xi / ((1 - xi) * mean);
        double total = 0;
        for (int j = 0; j < k; j++)
            total += log1p(b * (double)(top[j] - top[k]));
        weight[i] = k * log(b / total) - total;
        p[i] = -k * log1p(log1p(b * (double)(v - top[k])) / total);
        most = fmax(most, weight[i]);
    }
    for (int i = 0; i < SVI_BLOCK_SHAPES; i++) {
        sum += exp(weight[i] - most + p[i]);
        all += exp(weight[i] - most);
    }
    const double even = 1 - (double)(v - top[k]) / (2 * mean), block = fmax(sum / all, even) * k / (n + 1);
    return -log10(-log1p(-block) / (double)s->length);
}

static void says_what_it_is_defined_to_say(void **state) {
    struct svi_random r = {7};
    struct svi_block_tails t;
    int asked = 0;
    (void)state;
    begin(&t);
    for (int row = 0; row < 9000; row++) {
        feed(&t, &r);
        const int j = (int)svi_random_below(&r, SERIES);
        if (row < 100 || !(t.excess[j] > 0) || !isfinite(t.above[j]))
            continue;
        const float v = t.telling[j] + t.excess[j] * (float)svi_random_below(&r, 1000) / 10;
        const double full = svi_block_tails_surprise(&t, j, v, 0), over = svi_random_below(&r, 80) / 10.0;
        const double beyond = svi_block_tails_surprise(&t, j, v, over);
        if (!(v > t.telling[j])) {
            assert_true(full == 0 && beyond == 0);
            continue;
        }
        asked++;
        assert_true(fabs(full - by_definition(&t, j, v)) <= 1e-5 * (1 + full));
        assert_true(beyond == full || (beyond == 0 && full <= over + 1e-5));
    }
    assert_true(asked > 4000);
    svi_block_tails_clear(&t);
}

static void reload(struct svi_block_tails *t, struct svi_bytes *bytes) {
    struct svi_archive_out out;
    struct svi_archive_in in;
    struct svi_block_tails other;
    svs_error err = {0};
    bytes->size = 0;
    svi_archive_out_begin(&out, bytes, "tails", &err);
    svi_block_tails_archive(&out.archive, t);
    assert_int_equal(svi_archive_out_end(&out), SVS_OK);
    begin(&other);
    svi_archive_in_begin(&in, bytes->data, bytes->size, "tails", &err);
    svi_block_tails_archive(&in.archive, &other);
    assert_int_equal(svi_archive_in_end(&in), SVS_OK);
    svi_block_tails_clear(t);
    *t = other;
}

static void kept_ones_go_on_as_they_were(void **state) {
    struct svi_random r = {8}, again = {8}, when = {9};
    struct svi_block_tails t, kept;
    struct svi_bytes bytes = {0};
    int waiting = 0;
    (void)state;
    begin(&t);
    begin(&kept);
    for (int row = 0; row < 8000; row++) {
        feed(&t, &r);
        feed(&kept, &again);
        if (svi_random_below(&when, 9) == 0) {
            waiting += kept.done < SERIES;
            reload(&kept, &bytes);
        }
        const size_t size = SERIES * sizeof(float);
        assert_memory_equal(t.telling, kept.telling, size);
        assert_memory_equal(t.most, kept.most, size);
        assert_memory_equal(t.above, kept.above, size);
        assert_memory_equal(t.excess, kept.excess, size);
        const int j = (int)svi_random_below(&when, SERIES);
        assert_true(svi_block_tails_surprise(&t, j, 50, 0) == svi_block_tails_surprise(&kept, j, 50, 0));
    }
    assert_true(waiting > 50 && t.shape.length == LONGEST && t.shape.count == SVI_BLOCKS);
    svi_bytes_clear(&bytes);
    svi_block_tails_clear(&t);
    svi_block_tails_clear(&kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(says_what_it_is_defined_to_say),
                                       cmocka_unit_test(kept_ones_go_on_as_they_were)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
