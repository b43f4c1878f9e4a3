/* Stacks over one ring of rows (bank/stack.h): the weights are those of a fresh solve on the samples that the
 * windows hold, whatever came and went. */
#include "reference.h"
#include "support/problem.h"
#include "support/archived.h"
#include "support/quick.h"

#include "bank/share.h"
#include "bank/stack.h"

enum { MEMBERS = 7, ROWS = 6, SAMPLES = 2500 };

struct sample {
    double x[ROWS * MEMBERS], t[ROWS], weight;
    int rows;
    bool live;
};

struct walk {
    struct svi_stacks_options o;
    svi_stacks *s;
    struct sample *of; /* by number */
    int64_t count;     /* numbers used */
    int64_t begin;     /* of what was learned since the last reset */
    uint64_t seed;
};

static void stack_walk_archive(struct svi_archive *a, void *s) {
    svi_stacks_archive(a, s);
}

static struct walk walk_begin(int rows_max, uint64_t seed) {
    struct walk w = {.o = {.members = MEMBERS,
                           .count = 3,
                           .windows = {0, 90, 30},
                           .ridge = 1,
                           .rows_max = rows_max,
                           .isa = SVS_ISA_BEST},
                     .seed = seed};
    w.s = svi_stacks_new(&w.o, NULL);
    w.of = calloc(SAMPLES, sizeof *w.of);
    assert_true(w.s && w.of);
    return w;
}

static void walk_end(struct walk *w) {
    svi_stacks_free(&w->s);
    free(w->of);
}

/* Of `rows` classes, the constant members and those that say nothing among them. */
static void walk_learn(struct walk *w, int rows, bool wide) {
    const int64_t number = w->count + (int64_t)(ref_uniform(&w->seed) * 2); /* some are missing */
    struct sample *s = &w->of[number];
    const int own = (int)(ref_uniform(&w->seed) * rows);
    assert_in_range(number, 0, SAMPLES - 1);
    *s = (struct sample){.rows = rows, .live = true, .weight = 0.5 + ref_uniform(&w->seed)};
    if (wide)
        s->weight = pow(10, 8 * ref_uniform(&w->seed) - 4);
    for (int r = 0; r < rows; r++) {
        s->t[r] = rows == 1 ? (ref_uniform(&w->seed) < 0.5 ? 1 : -1) : r == own ? 1 : -1;
        for (int j = 0; j < MEMBERS; j++) {
            const double v = s->t[r] * (j % 3) + test_normal(&w->seed);
            s->x[r * MEMBERS + j] = (double)(float)(j == 5 ? 0 : v > 2 ? 2 : v < -2 ? -2 : v);
        }
    }
    w->count = number + 1;
    assert_int_equal(svi_stacks_learn(w->s, s->x, s->t, rows, s->weight, number, NULL), SVS_OK);
}

/* In long double, from the samples of the last `window` numbers. */
static double walk_distance(const struct walk *w, int i) {
    enum { N = MEMBERS + 1 };
    long double g[N * N] = {0}, r[N] = {0}, x[N];
    const int64_t window = w->o.windows[i];
    for (int64_t n = w->begin; n < w->count; n++) {
        const struct sample *s = &w->of[n];
        if (!s->live || (window && n < w->count - window))
            continue;
        for (int row = 0; row < s->rows; row++) {
            double z[N];
            memcpy(z, s->x + row * MEMBERS, MEMBERS * sizeof *z);
            z[MEMBERS] = 1;
            ref_add(g, r, N, z, s->t[row], fmin(fmax(s->weight, 1e-3), 1e3));
        }
    }
    for (int j = 0; j < N; j++)
        g[j * N + j] += (long double)w->o.ridge;
    ref_solve(g, r, N, x);
    return ref_distance(svi_stacks_weights(w->s, i), x, N);
}

static void walk_check(const struct walk *w, double most) {
    for (int i = 0; i < w->o.count; i++) {
        const double distance = walk_distance(w, i), own = svi_stacks_check(w->s, i);
        if (!(distance <= most) || !(own <= most))
            fail_msg("stack %d after %d: %.2e from the samples, %.2e from its rows", i, (int)w->count,
                     distance, own);
    }
}

/* A sample that the shorter windows have let go is taken out of the others as long as the ring has it. */
static void walk_forget(struct walk *w) {
    const int64_t number = w->count - 1 - (int64_t)(ref_uniform(&w->seed) * 80);
    if (number < w->begin)
        return;
    const bool held = svi_stacks_holds(w->s, number);
    assert_true(held == w->of[number].live);
    svi_stacks_forget(w->s, number);
    assert_false(svi_stacks_holds(w->s, number));
    w->of[number].live = false;
}

static void walk_archive(struct walk *w) {
    struct svi_bytes one = {0}, other = {0};
    svi_stacks *again = svi_stacks_new(&w->o, NULL);
    svs_error err = {0};
    assert_int_equal(archived_save(stack_walk_archive, w->s, &one, &err), SVS_OK);
    if (archived_load(stack_walk_archive, again, one.data, one.size, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(archived_save(stack_walk_archive, again, &other, &err), SVS_OK);
    assert_true(archived_same(&one, &other));
    svi_stacks_free(&w->s);
    w->s = again;
    svi_bytes_clear(&one);
    svi_bytes_clear(&other);
}

static void weights_are_those_of_a_fresh_solve(void **unused) {
    (void)unused;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct walk w = walk_begin(65536, seed);
        const bool wide = seed == 3;
        const int steps = often(1400, 300);
        for (int i = 0; i < steps; i++) {
            const double what = ref_uniform(&w.seed);
            if (what < 0.12)
                walk_forget(&w);
            else if (what < 0.125) {
                svi_stacks_reset(w.s);
                w.begin = w.count;
            } else if (what < 0.13)
                walk_archive(&w);
            else
                walk_learn(&w, seed % 2 ? 1 : 3 + (i > 700) * 3, wide);
            if (i % 41 == 0)
                walk_check(&w, wide ? 1e-7 : 1e-9);
        }
        walk_end(&w);
    }
}

/* One that is loaded goes on as the other. */
static void the_archive_goes_on_bit_for_bit(void **unused) {
    (void)unused;
    struct walk a = walk_begin(65536, 9), b = walk_begin(65536, 9);
    for (int i = 0; i < 700; i++) {
        walk_learn(&a, 4, false);
        walk_learn(&b, 4, false);
        if (i % 90 == 7)
            walk_archive(&b);
        for (int k = 0; k < 3; k++)
            assert_memory_equal(svi_stacks_weights(a.s, k), svi_stacks_weights(b.s, k),
                                (MEMBERS + 1) * sizeof(double));
    }
    walk_end(&a);
    walk_end(&b);
}

/* Of many classes the ring has room for fewer samples than the windows: they lose whole ones. */
static void no_more_rows_than_there_may_be(void **unused) {
    (void)unused;
    struct walk w = walk_begin(100, 5);
    for (int i = 0; i < 300; i++) {
        walk_learn(&w, 5, false);
        int held = 0;
        for (int64_t n = 0; n < w.count; n++)
            held += svi_stacks_holds(w.s, n);
        assert_in_range(held, 0, 20);
        for (int k = 0; k < 3; k++)
            assert_true(svi_stacks_check(w.s, k) < 1e-9);
        if (i % 50 == 20)
            walk_archive(&w);
    }
    assert_true(walk_distance(&w, 0) < 1e-9);
    walk_end(&w);
}

static void damaged_bytes_are_refused(void **unused) {
    (void)unused;
    struct walk w = walk_begin(500, 5);
    struct svi_bytes bytes = {0};
    svs_error err;
    int refused = 0;
    for (int i = 0; i < 120; i++)
        walk_learn(&w, 3, false);
    assert_int_equal(archived_save(stack_walk_archive, w.s, &bytes, &err), SVS_OK);
    const int rounds = often(2000, 200);
    for (int i = 0; i < rounds; i++) {
        svi_stacks *again = svi_stacks_new(&w.o, NULL);
        const size_t at = (size_t)(ref_uniform(&w.seed) * (double)bytes.size);
        const uint8_t before = bytes.data[at];
        bytes.data[at] ^= (uint8_t)(1 + ref_uniform(&w.seed) * 254);
        err = (svs_error){0};
        if (archived_load(stack_walk_archive, again, bytes.data, i % 4 ? bytes.size : at, &err) != SVS_OK)
            refused++;
        else /* other numbers of the same kind: it goes on */
            svi_stacks_learn(again, w.of[0].x, w.of[0].t, 1, 1, w.count, &err);
        bytes.data[at] = before;
        svi_stacks_free(&again);
    }
    assert_true(refused > rounds / 4);
    svi_bytes_clear(&bytes);
    walk_end(&w);
}

/* The best expert gets the say, and another one soon after it has become the best. */
static void the_share_follows_the_best(void **unused) {
    (void)unused;
    struct svi_share s, again;
    svi_share_init(&s, 4, 0.3, 0.01);
    for (int i = 0; i < 4; i++)
        assert_true(s.w[i] == 0.25);
    for (int t = 0; t < 400; t++) {
        const int best = t < 200 ? 1 : 2;
        double loss[4] = {1, 1, 1, -1}, sum = 0;
        loss[best] = 0;
        svi_share_learn(&s, loss);
        for (int i = 0; i < 4; i++) {
            assert_true(i == 3 ? s.w[i] == 0 : s.w[i] >= 0.0025); /* the last has no say */
            sum += s.w[i];
        }
        assert_true(fabs(sum - 1) < 1e-12);
        if (t % 200 > 60)
            assert_true(s.w[best] > 0.9);
    }
    struct svi_bytes bytes = {0};
    svs_error err;
    assert_int_equal(archived_save((archived_by *)(void (*)(void))svi_share_archive, &s, &bytes, &err),
                     SVS_OK);
    svi_share_init(&again, 4, 0.3, 0.01);
    assert_int_equal(
        archived_load((archived_by *)(void (*)(void))svi_share_archive, &again, bytes.data, bytes.size, &err),
        SVS_OK);
    assert_memory_equal(s.w, again.w, sizeof s.w);
    svi_bytes_clear(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_of_a_fresh_solve),
        cmocka_unit_test(the_archive_goes_on_bit_for_bit),
        cmocka_unit_test(no_more_rows_than_there_may_be),
        cmocka_unit_test(damaged_bytes_are_refused),
        cmocka_unit_test(the_share_follows_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
