/* C judged by leaving out each sample, against long double: each held sample is taken out, the rest solved
 * afresh for each C, and the sample scored by that. With scale none the fresh solves are in raw units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "learner/leave_one_out.h"
#include "support/learner_walk.h"

#define MOST_HELD 120
#define MOST_ROWS 8

/* What a fresh solve sees of the held: n values a sample, and what it counts. */
struct held {
    int n, rows, count;
    long double z[MOST_HELD][WALK_MAX_D + 1], s[MOST_HELD], ridge[WALK_MAX_D + 1], total;
    double t[MOST_HELD][MOST_ROWS];
    int label[MOST_HELD];
};

static void hold(svs_learner *l, struct held *h) {
    const bool standard = l->o.scale == SVS_SCALE_STANDARD;
    h->n = l->d + 1;
    h->rows = svi_rows(l);
    h->count = 0;
    h->total = 0;
    for (int32_t i = 0, at; (at = svi_next_learned(l, &i)) >= 0; h->count++) {
        const double *x = svi_ring_row(&l->window, at);
        const struct svi_slot slot = svi_ring_slot(&l->window, at);
        assert_true(h->count < MOST_HELD && h->rows <= MOST_ROWS);
        h->z[h->count][0] = 1;
        for (int j = 0; j < l->d; j++)
            h->z[h->count][1 + j] =
                standard ? ((long double)x[j] - l->scaler.mean[j]) * l->scaler.inverse[j] : x[j];
        h->s[h->count] =
            (long double)slot.weight * slot.factor * powl(l->o.forget, l->order - 1 - slot.order);
        h->total += h->s[h->count];
        svi_targets(l, slot.label, slot.target, h->t[h->count]);
        h->label[h->count] = slot.label;
    }
    for (int j = 0; j < h->n; j++)
        h->ridge[j] = l->ridge ? (long double)l->ridge[j] / svi_hat(l, 1, l->order - 1) : l->nu;
}

/* The scores of sample `out` by the model of the others. */
static void leave_out(const struct held *h, long double share, int out, double *scores) {
    static long double g[(WALK_MAX_D + 1) * (WALK_MAX_D + 1)], copy[(WALK_MAX_D + 1) * (WALK_MAX_D + 1)],
        r[WALK_MAX_D + 1], w[WALK_MAX_D + 1];
    const int n = h->n;
    memset(g, 0, sizeof g);
    for (int j = 0; j < n; j++)
        g[j * n + j] = share * h->ridge[j];
    for (int i = 0; i < h->count; i++)
        for (int a = 0; a < n && i != out; a++)
            for (int b = 0; b <= a; b++)
                g[a * n + b] += h->s[i] * h->z[i][a] * h->z[i][b];
    for (int k = 0; k < h->rows; k++) {
        long double score = 0;
        memset(r, 0, sizeof r);
        for (int i = 0; i < h->count; i++)
            for (int a = 0; a < n && i != out; a++)
                r[a] += h->s[i] * h->t[i][k] * h->z[i][a];
        memcpy(copy, g, sizeof g);
        ref_solve(copy, r, n, w);
        for (int a = 0; a < n; a++)
            score += w[a] * h->z[out][a];
        scores[k] = (double)score;
    }
}

static bool is_wrong(const svs_learner *l, const double *scores, int label) {
    int best = 0;
    if (l->class_count == 2)
        return (scores[0] > 0) != label;
    for (int k = 1; k < l->class_count; k++)
        best = scores[k] > scores[best] ? k : best;
    return best != label;
}

/* Both losses of one C, and of each sample the one that counts. */
static void judge(const svs_learner *l, const struct held *h, double C, svs_tuning_row *row, double *loss) {
    long double squared = 0, wrong = 0;
    double scores[MOST_ROWS];
    for (int i = 0; i < h->count; i++) {
        long double own = 0;
        leave_out(h, l->o.C / (long double)C, i, scores);
        for (int k = 0; k < h->rows; k++)
            own += (long double)(h->t[i][k] - scores[k]) * (h->t[i][k] - scores[k]) / h->rows;
        squared += h->s[i] / h->total * own;
        wrong += h->s[i] / h->total * is_wrong(l, scores, h->label[i]);
        loss[i] = l->o.task == SVS_REGRESS ? (double)own : is_wrong(l, scores, h->label[i]);
    }
    *row = (svs_tuning_row){.C = C, .squared = (double)squared, .wrong = (double)wrong};
}

static void compare_gains(const struct held *h, const double *now, const double *loss, svs_tuning_row *row) {
    long double gain = 0, spread = 0;
    for (int i = 0; i < h->count; i++)
        gain += h->s[i] / h->total * (now[i] - loss[i]);
    for (int i = 0; i < h->count; i++) {
        const long double p = h->s[i] / h->total, d = now[i] - loss[i] - gain;
        spread += p * p * d * d;
    }
    row->gain = (double)gain;
    row->noise = (double)sqrtl(spread);
}

static void assert_near(double a, double b, double size, double tolerance) {
    if (!(fabs(a - b) <= tolerance * size))
        fail_msg("%.17g is not %.17g (to %g of %g)", a, b, tolerance, size);
}

static void assert_equals_fresh_solves(svs_learner *l, double tolerance) {
    static struct held h;
    static double loss[SVS_TUNING_MAX][MOST_HELD];
    svs_tuning t;
    svs_tuning_row row[SVS_TUNING_MAX];
    svs_error err = {0};
    hold(l, &h);
    if (svs_learner_tune(l, &t, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(t.samples, h.count);
    assert_int_equal(t.skipped, 0);
    for (int g = 0; g < t.count; g++)
        judge(l, &h, t.row[g].C, &row[g], loss[g]);
    int best = t.present;
    for (int g = 0; g < t.count; g++) {
        compare_gains(&h, loss[t.present], loss[g], &row[g]);
        assert_near(t.row[g].squared, row[g].squared, row[g].squared, tolerance);
        if (l->o.task == SVS_REGRESS)
            assert_true(isnan(t.row[g].wrong));
        else
            assert_near(t.row[g].wrong, row[g].wrong, 1, tolerance);
        assert_near(t.row[g].gain, row[g].gain, 1 + row[t.present].squared, tolerance);
        assert_near(t.row[g].noise, row[g].noise, 1 + row[t.present].squared, sqrt(tolerance));
        best = row[g].gain > row[best].gain + tolerance ? g : best;
    }
    assert_true(row[t.best].gain >= row[best].gain - tolerance * (1 + row[t.present].squared));
    assert_int_equal(t.better, t.row[t.best].gain > 2 * t.row[t.best].noise);
    assert_true(t.row[t.present].C == l->o.C && t.row[t.present].gain == 0 && t.row[t.present].noise == 0);
}

static struct walk a_walk(int classes, uint64_t seed) {
    struct walk w = {.d = 6, .most = 6, .classes = classes, .spread = 1, .ids = WALK_INTS, .seed = seed};
    svs_options_default(&w.o);
    w.o.window = 60;
    return w;
}

static void walk_and_compare(struct walk w, double tolerance) {
    svs_learner *l = walk_far(&w, 200);
    assert_non_null(l);
    assert_equals_fresh_solves(l, tolerance);
    svs_learner_free(&l);
}

static void classes_and_targets(void **unused) {
    (void)unused;
    for (int classes = 1; classes <= 5; classes++) {
        struct walk w = a_walk(classes, 3 + (uint64_t)classes);
        w.forgets = w.late = w.weights = classes % 2;
        walk_and_compare(w, 1e-9);
        w.o.task = SVS_REGRESS;
        walk_and_compare(w, 1e-9);
    }
}

/* Few rows of many features, and as many as are held at most. */
static void wide_and_long(void **unused) {
    (void)unused;
    struct walk w = a_walk(3, 17);
    w.d = w.most = 40;
    w.o.window = 20;
    walk_and_compare(w, 1e-9);
    w = a_walk(2, 18);
    w.o.window = 117; /* no multiple of a block */
    walk_and_compare(w, 1e-9);
}

static void ridges_of_all_kinds(void **unused) {
    (void)unused;
    const double forget[] = {1, 0.98, 0.8};
    for (int i = 0; i < 3; i++)
        for (int none = 0; none < 2; none++) {
            struct walk w = a_walk(3 + i, 40 + (uint64_t)i);
            w.o.forget = forget[i];
            w.o.scale = none ? SVS_SCALE_NONE : SVS_SCALE_STANDARD;
            w.d = 2;
            w.most = 9;
            walk_and_compare(w, 1e-9);
            w.spread = 1e60; /* to 20 digits at 50 features: a thousand at 8 */
            w.o.task = SVS_REGRESS;
            walk_and_compare(w, 1e-9);
        }
}

static void weights_of_classes(void **unused) {
    (void)unused;
    const svs_class_weight given[] = {{svs_str("red"), 20}, {svs_int(-2), 0.3}};
    struct walk w = a_walk(4, 71);
    w.weights = true;
    w.o.class_rule = SVS_CLASSES_BALANCED;
    walk_and_compare(w, 1e-9);
    w.o.class_rule = SVS_CLASSES_GIVEN;
    w.o.class_weight = given;
    w.o.class_weight_count = 2;
    walk_and_compare(w, 1e-9);
}

/* Plain columns of words: one in every row of what is held, one in none, and one that is still to come. */
static void unscaled_features(void **unused) {
    (void)unused;
    svs_options o;
    svs_error err = {0};
    svs_step out;
    uint64_t seed = 5;
    double x[7] = {0};
    svs_options_default(&o);
    o.window = 50;
    for (int none = 0; none < 2; none++) {
        o.scale = none ? SVS_SCALE_NONE : SVS_SCALE_STANDARD;
        svs_learner *l = svs_learner_new(&o, 0, &err);
        for (int j = 2; j < 7; j++)
            svs_learner_unscaled(l, j);
        assert_int_equal(svs_learner_grow(l, 7, &err), SVS_OK);
        for (int i = 0; i < 130; i++) {
            x[0] = 1e5 + ref_gauss(&seed);
            x[1] = 3; /* constant */
            x[2] = 1;
            x[3] = i < 40;
            x[4] = i % 3 == 0;
            x[5] = i % 3 == 1;
            const double y = x[0] - 1e5 + x[4] + ref_gauss(&seed);
            svs_sample s = {x, 7, svs_none(), svs_int(y > 0.5), 1};
            assert_int_equal(svs_learner_step(l, &s, i, &out, &err), SVS_OK);
        }
        assert_equals_fresh_solves(l, 1e-9);
        svs_learner_free(&l);
    }
}

/* Far from the grid the range of C costs digits: the root of it times rounding. */
static void any_present_c(void **unused) {
    (void)unused;
    const double C[] = {1e-9, 1 / 1024.0, 0.3, 4, 1024, 1e4, 1e12};
    for (size_t i = 0; i < sizeof C / sizeof *C; i++) {
        struct walk w = a_walk(3, 90 + i);
        w.o.C = C[i];
        walk_and_compare(w, C[i] > 1e4 || C[i] < 1e-4 ? 1e-5 : 1e-9);
    }
}

/* The state as bytes, before and after. */
static void nothing_changes(void **unused) {
    (void)unused;
    struct svi_bytes before = {0}, after = {0};
    svs_tuning t, again;
    svs_error err;
    struct walk w = a_walk(4, 8);
    w.o.forget = 0.99;
    svs_learner *l = walk_far(&w, 150);
    assert_int_equal(walk_save(l, &before, &err), SVS_OK);
    assert_int_equal(svs_learner_tune(l, &t, &err), SVS_OK);
    assert_int_equal(svs_learner_tune(l, &again, &err), SVS_OK);
    assert_memory_equal(&t, &again, sizeof t);
    assert_int_equal(walk_save(l, &after, &err), SVS_OK);
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.data, after.data, after.size);
    svi_bytes_clear(&before);
    svi_bytes_clear(&after);
    svs_learner_free(&l);
}

/* A sample that outweighs all others cannot be predicted from what rounding leaves of them. */
static void a_giant_is_counted_apart(void **unused) {
    (void)unused;
    svs_tuning t;
    svs_error err = {0};
    svs_step out;
    struct walk w = a_walk(2, 12);
    svs_learner *l = walk_far(&w, 100);
    svs_sample s = {w.x, w.d, svs_none(), svs_int(-2), 1e14};
    assert_int_equal(svs_learner_step(l, &s, w.time, &out, &err), SVS_OK);
    assert_int_equal(svs_learner_tune(l, &t, &err), SVS_OK);
    assert_int_equal(t.skipped, 1);
    assert_int_equal(t.samples, 59);
    for (int g = 0; g < t.count; g++)
        assert_true(isfinite(t.row[g].squared) && t.row[g].wrong >= 0 && t.row[g].wrong <= 1);
    svs_learner_free(&l);
}

static void assert_refused(struct walk w, int steps, svs_code code, const char *text) {
    svs_tuning t;
    svs_error err = {0};
    svs_learner *l = walk_far(&w, steps);
    assert_int_equal(svs_learner_tune(l, &t, &err), code);
    if (!strstr(err.text, text))
        fail_msg("'%s' does not say '%s'", err.text, text);
    assert_int_equal(t.count, 0);
    svs_learner_free(&l);
}

static void refusals_say_why(void **unused) {
    (void)unused;
    struct walk w = a_walk(2, 1);
    assert_refused(w, 0, SVS_UNAVAILABLE, "nothing is learned");
    assert_refused(w, 1, SVS_UNAVAILABLE, "only one sample");
    w.o.rule = SVS_FALSVM;
    assert_refused(w, 50, SVS_UNAVAILABLE, "falsvm");
    w.o.rule = SVS_ALSVM;
    w.o.window = 0;
    assert_refused(w, 50, SVS_UNAVAILABLE, "window 0");
}

/* Noise of 40 columns beside one that tells: less C is better, and clearly so. */
static void a_better_c_is_found(void **unused) {
    (void)unused;
    svs_options o;
    svs_error err = {0};
    svs_step out;
    svs_tuning t;
    uint64_t seed = 77;
    double x[40];
    svs_options_default(&o);
    o.window = 100;
    o.C = 1024;
    o.task = SVS_REGRESS;
    svs_learner *l = svs_learner_new(&o, 40, &err);
    for (int i = 0; i < 100; i++) {
        for (int j = 0; j < 40; j++)
            x[j] = ref_gauss(&seed);
        svs_sample s = {x, 40, svs_none(), svs_real(0.2 * x[0] + ref_gauss(&seed)), 1};
        assert_int_equal(svs_learner_step(l, &s, i, &out, &err), SVS_OK);
    }
    assert_int_equal(svs_learner_tune(l, &t, &err), SVS_OK);
    assert_true(t.better && t.row[t.best].C < 1);
    const double alone[] = {t.row[t.best].C, 1024};
    svs_tuning two;
    assert_int_equal(svi_leave_one_out(l, alone, 2, 1, &two, &err), SVS_OK);
    assert_true(two.best == 0 && two.better && fabs(two.row[0].gain - t.row[t.best].gain) < 1e-9);
    o.C = t.row[t.best].C;
    assert_int_equal(svs_learner_configure(l, &o, &err), SVS_OK);
    assert_int_equal(svs_learner_tune(l, &t, &err), SVS_OK);
    assert_true(!t.better && t.best == t.present && t.count == 11);
    svs_learner_free(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_and_targets), cmocka_unit_test(wide_and_long),
        cmocka_unit_test(ridges_of_all_kinds), cmocka_unit_test(weights_of_classes),
        cmocka_unit_test(unscaled_features),   cmocka_unit_test(any_present_c),
        cmocka_unit_test(nothing_changes),     cmocka_unit_test(a_giant_is_counted_apart),
        cmocka_unit_test(refusals_say_why),    cmocka_unit_test(a_better_c_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
