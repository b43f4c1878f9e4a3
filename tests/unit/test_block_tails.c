/* Block maxima and their tails: which rows they cover, that they say what they are defined to say, what is
 * promised on independent rows of six laws, a series that comes late, one gross event, and that they are kept
 * and widened at any row, also while series wait for their maxima. */
#include "support/archived.h"
#include "support/laws.h"
#include "support/quick.h"

#include "alerts/block_tails.h"

#define SERIES 150 /* most wait for their maxima when a block ends */

static struct svi_block_tails begin(int series, double least, int64_t longest) {
    struct svi_block_tails t;
    assert_int_equal(
        svi_block_tails_init(&t, series % 2 ? 1 : 2, series % 2 ? series : series / 2, false, least, NULL),
        SVS_OK);
    t.longest = longest;
    return t;
}

/* ---- what they cover */

/* The largest of what rows first to first + length counted as. */
static float largest(const float *counted, int64_t first, int64_t length) {
    float most = -INFINITY;
    for (int64_t i = first; i < first + length; i++)
        most = fmaxf(most, counted[i]);
    return most;
}

/* A series that waits for its turn has the blocks of before; the last one waits with it. */
static void check_cover(const struct svi_block_tails *t, int series, const float *counted, int64_t rows) {
    const bool waits = series >= t->done;
    const struct svi_block_shape *shape = waits ? &t->before : &t->shape;
    const int64_t over = rows - t->row, ended = over - (waits ? shape->length : 0);
    const int next = waits ? t->place : t->at;
    assert_int_equal(over % t->shape.length, 0);
    assert_true(shape->count == SVI_BLOCKS ||
                shape->count * shape->length == ended); /* all, while there is room */
    for (int back = 1; back <= shape->count; back++) {
        const int place = (next - back + 2 * SVI_BLOCKS) % SVI_BLOCKS;
        const float block = largest(counted, ended - back * shape->length, shape->length);
        assert_true(t->maxima[series * SVI_BLOCKS + place] == block);
    }
    if (waits)
        assert_true(t->last[series] == largest(counted, ended, shape->length));
    assert_true(t->now[series] == largest(counted, over, t->row));
}

/* Of 50 series 18 take their maxima one row after the others. */
static void blocks_cover_all_rows(void **state) {
    (void)state;
    enum { MANY = 50, ROWS = 12000 };
    static const int looked_at[] = {0, 31, 32, MANY - 1};
    static float counted[MANY][ROWS];
    struct svi_block_tails t = begin(MANY, 0, SVI_BLOCK_MIN_ROWS);
    uint64_t seed = 5;
    int waited = 0;
    for (int i = 0; i < ROWS; i++) {
        float v[MANY];
        for (int j = 0; j < MANY; j++)
            v[j] = j % 2 == 0                  ? (float)test_normal(&seed)
                   : test_uniform(&seed) < 0.7 ? -INFINITY
                                               : (float)(i % 97);
        if (i == 1000)
            t.longest = 128;
        for (int j = 0; j < MANY; j++)
            counted[j][i] = fminf(v[j], t.most[j]);
        svi_block_tails_add(&t, v);
        waited += t.done < MANY;
        for (size_t k = 0; k < 4 && (i % 13 == 0 || t.row < 2); k++)
            check_cover(&t, looked_at[k], counted[looked_at[k]], i + 1);
    }
    assert_true(t.shape.length == 128 && waited > ROWS / 128);
    svi_block_tails_clear(&t);
}

/* ---- what they say */

static int descending(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The surprise by block_tails.h, from the maxima themselves. */
static double by_definition(const struct svi_block_tails *t, int series, float v) {
    const struct svi_block_shape *s = series < t->done ? &t->shape : &t->before;
    const int n = svi_block_tails_held(t, series), k = n >= 16 ? n / 4 : n >= 8 ? 4 : n / 2;
    float top[SVI_BLOCKS]; /* those it does not have come last */
    double weight[SVI_BLOCK_SHAPES], p[SVI_BLOCK_SHAPES], mean = 0, most = -INFINITY, sum = 0, all = 0;
    memcpy(top, t->maxima + (size_t)series * SVI_BLOCKS, (size_t)s->count * sizeof *top);
    qsort(top, (size_t)s->count, sizeof *top, descending);
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

/* Laws of several weights; coarse ones have ties. One of four series comes late. */
static void draw_all(float *v, int row, uint64_t *seed) {
    for (int j = 0; j < SERIES; j++) {
        const double u = test_uniform(seed) + 0x1p-54;
        const double x = j % 3 == 0 ? -log(u) : j % 3 == 1 ? pow(u, -0.3) : floor(-4 * log(u));
        const bool none = test_uniform(seed) < 0.02 || (j % 4 == 3 && row < 8 * j);
        v[j] = none ? -INFINITY : (float)x;
    }
}

/* Whatever was asked for before. */
static void says_what_it_is_defined_to_say(void **state) {
    (void)state;
    struct svi_block_tails t = begin(SERIES, 1, 64);
    uint64_t seed = 7;
    int asked = 0;
    for (int row = 0; row < 9000; row++) {
        float v[SERIES];
        draw_all(v, row, &seed);
        svi_block_tails_add(&t, v);
        const int j = (int)(test_random(&seed) % SERIES);
        if (row < 100 || !(t.excess[j] > 0) || !isfinite(t.above[j]))
            continue;
        const float far = t.telling[j] + t.excess[j] * (float)(test_random(&seed) % 1000) / 10;
        const double full = svi_block_tails_surprise(&t, j, far, 0), over = 8 * test_uniform(&seed);
        const double beyond = svi_block_tails_surprise(&t, j, far, over);
        if (!(far > t.telling[j])) {
            assert_true(full == 0 && beyond == 0);
            continue;
        }
        asked++;
        assert_true(fabs(full - by_definition(&t, j, far)) <= 1e-5 * (1 + full));
        assert_true(beyond == full || (beyond == 0 && full <= over + 1e-5));
    }
    assert_true(asked > 4000);
    svi_block_tails_clear(&t);
}

/* ---- what is promised */

/* Rows from the first on; those of one stream are held against the same tail, so there are many. */
static void each_surprise_is_as_rare_as_it_says(void **state) {
    (void)state;
    const int streams = often(60, 2), rows = often(6000, 3000);
    double hits[LAWS][5] = {{0}};
    for (int s = 0; s < streams; s++) {
        struct svi_block_tails t = begin(LAWS, 1, 64);
        uint64_t seed = 77 + 1000003 * (uint64_t)s;
        for (int i = 0; i < rows; i++) {
            float v[LAWS];
            for (int law = 0; law < LAWS; law++) {
                v[law] = (float)law_draw((enum law)law, &seed);
                const double surprise = svi_block_tails_surprise(&t, law, v[law], 0);
                for (int k = 2; k <= 4; k++)
                    hits[law][k] += surprise >= k;
            }
            svi_block_tails_add(&t, v);
        }
        svi_block_tails_clear(&t);
    }
    for (int law = 0; law < LAWS; law++)
        for (int k = 2; k <= 4; k++) {
            /* t3 and the lognormal: what one event counts at most makes their tail a little shorter */
            const double price = law == STUDENT || law == LOGNORMAL ? 1.5 : 1;
            const double p = price * pow(10, -k), n = (double)streams * rows;
            if (law_tail(n, p, hits[law][k]) < 1e-4)
                fail_msg("%s: %g of %g rows have a surprise of %d", law_names[law], hits[law][k], n, k);
        }
}

/* The blocks in which a series had no value do not count as its past. */
static void a_series_that_comes_late_begins_anew(void **state) {
    (void)state;
    const int late = 16 * SVI_BLOCKS; /* then blocks are longer */
    struct svi_block_tails t = begin(2, 0, SVI_BLOCK_MIN_ROWS), fresh = begin(1, 0, SVI_BLOCK_MIN_ROWS);
    uint64_t seed = 9;
    for (int i = 0; i < late; i++)
        svi_block_tails_add(&t, (float[]){(float)test_normal(&seed), -INFINITY});
    for (int i = 0; i < 60 * SVI_BLOCK_MIN_ROWS; i++) {
        const float v = (float)test_normal(&seed), other = (float)test_normal(&seed);
        for (float far = 1; far < 10; far += 2)
            assert_true(svi_block_tails_surprise(&t, 1, far, 0) ==
                        svi_block_tails_surprise(&fresh, 0, far, 0));
        if (i == 500) { /* and one that starts again is as new */
            svi_block_tails_forget(&t, 1);
            svi_block_tails_clear(&fresh);
            fresh = begin(1, 0, SVI_BLOCK_MIN_ROWS);
            while (fresh.row != t.row)
                svi_block_tails_add(&fresh, (float[]){-INFINITY});
        }
        svi_block_tails_add(&t, (float[]){other, v});
        svi_block_tails_add(&fresh, &v);
    }
    svi_block_tails_clear(&t);
    svi_block_tails_clear(&fresh);
}

/* One gross event is far beyond all, and again when it comes a second time; the eighth is less so. */
static void one_event_does_not_blind(void **state) {
    (void)state;
    struct svi_block_tails t = begin(1, 0, 64);
    uint64_t seed = 3;
    double surprise[8];
    for (int i = 0, event = 0; event < 8; i++) {
        float v = (float)test_normal(&seed);
        if (i % 300 == 299 && i > 3000) {
            v = 1000;
            surprise[event++] = svi_block_tails_surprise(&t, 0, v, 0);
        }
        svi_block_tails_add(&t, &v);
    }
    assert_true(surprise[0] > 6 && surprise[1] > 6 && surprise[7] < surprise[0] - 1);
    svi_block_tails_clear(&t);
}

static void alike_and_few(void **state) {
    (void)state;
    struct svi_block_tails t = begin(1, 0, SVI_BLOCK_MIN_ROWS);
    const float one = 1;
    for (int i = 0; i < 4 * SVI_BLOCK_MIN_ROWS; i++) {
        assert_true(svi_block_tails_surprise(&t, 0, 1e9f, 0) == 0); /* too few blocks */
        svi_block_tails_add(&t, &one);
    }
    assert_true(svi_block_tails_surprise(&t, 0, 1, 0) == 0);
    assert_true(svi_block_tails_surprise(&t, 0, 2, 0) == log10(5 * SVI_BLOCK_MIN_ROWS));
    assert_true(svi_block_tails_surprise(&t, 0, -INFINITY, 0) == 0);
    svi_block_tails_clear(&t);
}

/* A bound that cannot be reached costs nothing and hides nothing. */
static void over_hides_nothing(void **state) {
    (void)state;
    struct svi_block_tails t = begin(1, 1, 64);
    uint64_t seed = 4;
    for (int i = 0; i < 5000; i++) {
        const float v = (float)law_draw((enum law)(i / 1000), &seed);
        const double all = svi_block_tails_surprise(&t, 0, v, 0);
        for (double over = 0.5; over < 8; over++) {
            const double told = svi_block_tails_surprise(&t, 0, v, over);
            assert_true(told == all || (told == 0 && all <= over));
        }
        svi_block_tails_add(&t, &v);
    }
    svi_block_tails_clear(&t);
}

/* ---- kept */

static void archive_tails(struct svi_archive *a, void *of) {
    svi_block_tails_archive(a, of);
}

/* Maxima, fits and mixtures. */
static void same_tails(struct svi_block_tails *a, struct svi_block_tails *b) {
    const size_t row = (size_t)a->series * sizeof(float);
    const float *const of_a[] = {a->now, a->above, a->excess, a->most, a->telling, a->last};
    const float *const of_b[] = {b->now, b->above, b->excess, b->most, b->telling, b->last};
    assert_int_equal(a->series, b->series);
    assert_memory_equal(a->maxima, b->maxima, SVI_BLOCKS * row);
    for (size_t i = 0; i < sizeof of_a / sizeof *of_a; i++)
        assert_memory_equal(of_a[i], of_b[i], row);
    for (int j = 0; j < a->series; j++)
        for (float far = 2; far < 100; far *= 3)
            assert_true(svi_block_tails_surprise(a, j, far, 0) == svi_block_tails_surprise(b, j, far, 0));
}

static void kept_tails_go_on_bit_for_bit(void **state) {
    (void)state;
    static const int late[LAWS] = {0, 0, 0, 64, 244, 2500};
    int waited = 0;
    struct svi_block_tails t = begin(SERIES, 1, 64);
    struct svi_bytes bytes = {0}, again = {0};
    uint64_t seed = 8;
    svs_error err = {0};
    for (int i = 0; i < often(6000, 3000); i++) {
        float v[SERIES];
        for (int j = 0; j < SERIES; j++)
            v[j] = i < late[j % LAWS] ? -INFINITY : (float)law_draw((enum law)(j % LAWS), &seed);
        svi_block_tails_add(&t, v);
        if (test_random(&seed) % (t.row < 4 ? 5 : 50))
            continue;
        waited += t.done < SERIES;
        struct svi_block_tails other = begin(SERIES, 1, SVI_BLOCK_MIN_ROWS);
        assert_int_equal(archived_save(archive_tails, &t, &bytes, &err), SVS_OK);
        assert_int_equal(archived_load(archive_tails, &other, bytes.data, bytes.size, &err), SVS_OK);
        assert_int_equal(archived_save(archive_tails, &other, &again, &err), SVS_OK);
        assert_true(archived_same(&bytes, &again));
        same_tails(&other, &t);
        svi_block_tails_clear(&t);
        t = other;
    }
    assert_true(waited > 20);
    struct svi_block_tails other = begin(SERIES, 1, SVI_BLOCK_MIN_ROWS);
    t.row = t.shape.length; /* overdue */
    assert_int_equal(archived_save(archive_tails, &t, &bytes, &err), SVS_OK);
    assert_int_equal(archived_load(archive_tails, &other, bytes.data, bytes.size, &err), SVS_DAMAGED);
    svi_block_tails_clear(&other);
    svi_bytes_clear(&bytes);
    svi_bytes_clear(&again);
    svi_block_tails_clear(&t);
}

/* Series of three sensors in two parts, then of five: those that are new have no past. */
static void wider_tails_keep_all(void **state) {
    (void)state;
    struct svi_block_tails t = begin(6, 1, 64), wide = begin(10, 1, 16), all = begin(10, 1, 64);
    uint64_t seed = 12;
    for (int i = 0; i < 3000; i++) {
        float v[6], w[10];
        for (int j = 0; j < 10; j++)
            w[j] = -INFINITY;
        for (int j = 0; j < 6; j++)
            v[j] = w[j / 3 * 5 + j % 3] = (float)law_draw((enum law)j, &seed);
        svi_block_tails_add(&t, v);
        svi_block_tails_add(&all, w);
    }
    assert_int_equal(svi_block_tails_widen(&wide, &t, NULL), SVS_OK);
    same_tails(&wide, &all);
    assert_true(wide.shape.length == all.shape.length && wide.shape.count == all.shape.count);
    assert_true(wide.at == all.at && wide.done == all.done);
    svi_block_tails_clear(&t);
    svi_block_tails_clear(&wide);
    svi_block_tails_clear(&all);
}

/* Those that wait for their maxima have them at once, as those that were not widened have them some rows
 * later, also where blocks become twice as long. */
static void widening_ends_the_wait(void **state) {
    (void)state;
    enum { MANY = 100, WIDE = 150 };
    struct svi_block_tails t = begin(MANY, 1, 64);
    float v[MANY], none[WIDE];
    uint64_t seed = 13;
    int waited = 0, merged = 0;
    for (int j = 0; j < WIDE; j++)
        none[j] = -INFINITY;
    for (int i = 0; i < 5000; i++) {
        for (int j = 0; j < MANY; j++)
            v[j] = (float)law_draw((enum law)(j % LAWS), &seed);
        svi_block_tails_add(&t, v);
        if (t.done == MANY)
            continue;
        struct svi_block_tails soon = begin(WIDE, 1, 16), later = begin(WIDE, 1, 16);
        waited++;
        merged += t.shape.length != t.before.length;
        assert_int_equal(svi_block_tails_widen(&soon, &t, NULL), SVS_OK);
        while (t.done < MANY) { /* rows without values */
            svi_block_tails_add(&t, none);
            svi_block_tails_add(&soon, none);
        }
        assert_int_equal(svi_block_tails_widen(&later, &t, NULL), SVS_OK);
        same_tails(&soon, &later);
        svi_block_tails_clear(&soon);
        svi_block_tails_clear(&later);
    }
    assert_true(waited > 50 && merged > 1);
    svi_block_tails_clear(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_cover_all_rows),
        cmocka_unit_test(says_what_it_is_defined_to_say),
        cmocka_unit_test(each_surprise_is_as_rare_as_it_says),
        cmocka_unit_test(a_series_that_comes_late_begins_anew),
        cmocka_unit_test(one_event_does_not_blind),
        cmocka_unit_test(alike_and_few),
        cmocka_unit_test(over_hides_nothing),
        cmocka_unit_test(kept_tails_go_on_bit_for_bit),
        cmocka_unit_test(wider_tails_keep_all),
        cmocka_unit_test(widening_ends_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
