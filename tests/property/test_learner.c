/* After any sequence of calls the model equals a fresh solve on what is held: random walks over every kind of
 * learner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "learner/learner_internal.h"
#include "linalg/cholesky.h"
#include "reference.h"
#include "support/ring.h"

#define MAX_D 40

struct script {
    const char *name;
    svs_options o;
    int d, classes, steps;
    double spread; /* raw scales differ by up to this */
    bool weights, late, forgets, grows;
    double tolerance;
};

static svs_options options(int64_t window) {
    svs_options o;
    svs_options_default(&o);
    o.window = window;
    return o;
}

static svs_value label_of(const struct script *s, int k, double x) {
    static const char *const names[] = {"red", "green", "blue", "black", "white", "grey"};
    if (s->o.task == SVS_REGRESS)
        return svs_real(x);
    return k % 2 ? svs_int(k) : svs_str(names[k]);
}

static void draw(const struct script *s, uint64_t *seed, int d, int k, double *x) {
    for (int j = 0; j < d; j++)
        x[j] = pow(s->spread, (double)j / MAX_D) * (ref_gauss(seed) + 0.4 * k * (j % 3) + 5);
}

static void walk(const struct script *s) {
    svs_error err = {0};
    svs_step step;
    uint64_t seed = 11;
    int d = s->grows ? 1 : s->d, forgotten = 0, joined = 0;
    svs_learner *l = svs_learner_new(&s->o, d, &err);
    assert_non_null(l);
    double worst = 0, x[MAX_D];
    for (int i = 0; i < s->steps; i++) {
        if (s->grows && d < s->d && i % 7 == 6)
            assert_int_equal(svs_learner_grow(l, ++d, &err), SVS_OK);
        int k = (int)(ref_uniform(&seed) * (1 + (s->classes - 1) * fmin(1, 3.0 * i / s->steps)));
        draw(s, &seed, d, k, x);
        bool late = s->late && ref_uniform(&seed) < 0.3;
        svs_sample sample = {x, d, svs_int(i % 97), late ? svs_none() : label_of(s, k, x[0]),
                             s->weights ? 0.1 + ref_uniform(&seed) : 1};
        assert_int_equal(svs_learner_step(l, &sample, i, &step, &err), SVS_OK);
        assert_int_equal(step.waiting, late);
        if (s->late && i % 3 == 0 &&
            svs_learner_label(l, svs_int((i - 5) % 97), label_of(s, k, 1), i, &step, &err) == SVS_OK)
            joined++;
        if (s->forgets && i % 5 == 0 &&
            svs_learner_forget(l, svs_int((i * 31) % 97), i, NULL, &err) == SVS_OK)
            forgotten++;
        assert_null(ring_check(&l->window));
        assert_null(ring_check(&l->waiting));
        if (i % 9 == 0 || i > s->steps - 20)
            worst = fmax(worst, svs_learner_check(l));
    }
    print_message("%-28s worst %.1e, rebuilds %lld, alarms %lld\n", s->name, worst,
                  (long long)l->health.rebuilds, (long long)l->health.alarms);
    assert_true(worst < s->tolerance);
    assert_true(!s->forgets || forgotten > s->steps / 50);
    assert_true(!s->late || joined > s->steps / 50);
    svs_learner_free(&l);
}

static void random_walks(void **state) {
    (void)state;
    struct script all[] = {
        {"binary", options(50), 5, 2, 600, 1, .tolerance = 1e-11},
        {"binary, raw", options(50), 5, 2, 600, 1e6, .tolerance = 1e-9},
        {"six classes", options(60), 8, 6, 900, 10, .tolerance = 1e-10},
        {"six classes, raw", options(60), 8, 6, 900, 1e4, .tolerance = 1e-9},
        {"regression", options(40), 6, 3, 500, 100, .tolerance = 1e-9},
        {"weights, forget by id", options(64), 7, 3, 800, 1, true, false, true, .tolerance = 1e-9},
        {"late labels", options(64), 7, 4, 900, 1, false, true, true, .tolerance = 1e-9},
        {"falsvm", options(50), 5, 2, 900, 1, false, true, true, .tolerance = 1e-9},
        {"falsvm, classes", options(50), 5, 5, 900, 1, .tolerance = 1e-9},
        {"growing", options(40), 33, 4, 500, 10, false, true, true, true, .tolerance = 1e-8},
        {"growing, raw", options(40), 33, 4, 500, 100, true, true, true, true, .tolerance = 1e-8},
        {"by time", options(100), 6, 2, 700, 1, false, true, true, .tolerance = 1e-9},
        {"fading", options(100), 6, 3, 900, 1, true, true, true, .tolerance = 1e-9},
        {"fading fast", options(100), 6, 2, 900, 1, .tolerance = 1e-8},
        {"fading, raw", options(80), 20, 2, 900, 1, true, false, false, true, .tolerance = 1e-8},
        {"fewer samples than features", options(12), 30, 3, 300, 1, .tolerance = 1e-8},
        {"one held", options(1), 4, 2, 200, 1, .tolerance = 1e-9},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct script *s = &all[i];
        if (strstr(s->name, "raw"))
            s->o.scale = SVS_SCALE_NONE;
        if (strstr(s->name, "falsvm"))
            s->o.rule = SVS_FALSVM;
        if (strstr(s->name, "regression"))
            s->o.task = SVS_REGRESS;
        if (strstr(s->name, "time"))
            s->o.window_seconds = 30;
        if (strstr(s->name, "fading"))
            s->o.forget = strstr(s->name, "fast") ? 0.7 : 0.98;
        walk(s);
    }
}

/* Large samples enter and leave: exact at once, no matter how large. */
static void jumps_leave_no_trace(void **state) {
    (void)state;
    for (int scale = 0; scale < 2; scale++)
        for (double size = 1e2; size < 1e13; size *= 100) {
            svs_options o = options(60);
            svs_error err;
            svs_step step;
            o.scale = scale ? SVS_SCALE_STANDARD : SVS_SCALE_NONE;
            svs_learner *l = svs_learner_new(&o, 6, &err);
            uint64_t seed = 4;
            double x[6], clean = 0, dirty = 0;
            for (int i = 0; i < 600; i++) {
                bool jump = i >= 200 && i < 212;
                for (int j = 0; j < 6; j++)
                    x[j] = ref_gauss(&seed) * (jump ? size : 1);
                svs_sample s = {x, 6, svs_none(), svs_int(x[0] + x[1] > 0), 1};
                assert_int_equal(svs_learner_step(l, &s, i, &step, &err), SVS_OK);
                double e = svs_learner_check(l);
                if (i >= 200 && i < 272)
                    dirty = fmax(dirty, e);
                else
                    clean = fmax(clean, e);
            }
            print_message("jump of %.0e (%s): %.1e inside, %.1e outside\n", size, scale ? "standard" : "none",
                          dirty, clean);
            assert_true(clean < 1e-10);
            if (scale ||
                size <= 1e6) /* raw, beyond: a condition above 1e12 inside the jump, no digits to be had */
                assert_true(dirty < (scale ? 1e-8 : 1e-6));
            svs_learner_free(&l);
        }
}

/* Without a window: the answer of all samples, equal to one with a window that never fills. */
static void no_window_equals_wide_window(void **state) {
    (void)state;
    svs_error err;
    svs_step a, b;
    svs_options none = options(0), wide = options(5000);
    none.scale = wide.scale = SVS_SCALE_NONE;
    svs_learner *l = svs_learner_new(&none, 5, &err), *m = svs_learner_new(&wide, 5, &err);
    uint64_t seed = 8;
    double x[5];
    for (int i = 0; i < 3000; i++) {
        int k = (int)(ref_uniform(&seed) * 4);
        for (int j = 0; j < 5; j++)
            x[j] = 1000 + 10 * ref_gauss(&seed) + k * j;
        svs_sample s = {x, 5, svs_none(), svs_int(k), 1};
        assert_int_equal(svs_learner_step(l, &s, i, &a, &err), SVS_OK);
        assert_int_equal(svs_learner_step(m, &s, i, &b, &err), SVS_OK);
        for (int r = 0; r < a.rows; r++)
            assert_float_equal(a.scores[r], b.scores[r], 1e-6);
    }
    svs_learner_free(&l);
    svs_learner_free(&m);
}

/* The model in raw units says what the learner's scores say. */
static void model_in_raw_units(void **state) {
    (void)state;
    svs_error err;
    svs_step step;
    svs_options o = options(100);
    svs_learner *l = svs_learner_new(&o, 4, &err);
    uint64_t seed = 2;
    double x[4], scores[8];
    svs_model m;
    for (int i = 0; i < 500; i++) {
        for (int j = 0; j < 4; j++)
            x[j] = 300 + pow(10, j) * ref_gauss(&seed);
        svs_sample s = {x, 4, svs_none(), svs_int((x[0] > 300) + (x[2] > 320)), 1};
        assert_int_equal(svs_learner_model(l, &m, &err), SVS_OK);
        svs_model_scores(&m, x, scores);
        assert_int_equal(svs_learner_step(l, &s, i, &step, &err), SVS_OK);
        assert_int_equal(step.version, m.version);
        assert_int_equal(step.rows, m.rows);
        for (int k = 0; k < m.rows; k++)
            assert_float_equal(scores[k], step.scores[k], 1e-9 * (1 + fabs(scores[k])));
        assert_int_equal(svs_model_predict(&m, scores), step.predicted);
    }
    svs_learner_free(&l);
}

/* Bursts of large samples at every phase of the guard: an unplanned rebuild must not take a half-filled
 * bucket for the window. */
static void alarms_at_any_phase(void **state) {
    (void)state;
    svs_error err;
    svs_step step;
    svs_health h;
    svs_options o = options(40);
    svs_learner *l = svs_learner_new(&o, 3, &err);
    uint64_t seed = 6;
    double x[3], worst = 0;
    for (int i = 0; i < 3000; i++) {
        for (int j = 0; j < 3; j++)
            x[j] = ref_gauss(&seed) * (i % 71 < 3 ? 300 : 1);
        svs_sample s = {x, 3, svs_none(), svs_int(x[0] > x[1]), 1};
        assert_int_equal(svs_learner_step(l, &s, i, &step, &err), SVS_OK);
        worst = fmax(worst, svs_learner_check(l));
    }
    svs_learner_health(l, &h);
    assert_true(worst < 1e-8);
    assert_true(h.alarms > 20 && h.rebuilds > h.alarms + 10);
    svs_learner_free(&l);
}

static void refusals_change_nothing(void **state) {
    (void)state;
    svs_error err;
    svs_step step;
    svs_options o = options(20);
    o.max_classes = 2;
    svs_learner *l = svs_learner_new(&o, 2, &err);
    double good[2] = {1, 2}, nan[2] = {1, NAN}, huge[2] = {1e200, 0};
    for (int i = 0; i < 9; i++) {
        good[0] = i * i;
        svs_sample s = {good, 2, svs_none(), svs_int(i % 2), 1};
        assert_int_equal(svs_learner_step(l, &s, i, &step, &err), SVS_OK);
    }
    const struct {
        svs_sample s;
        svs_code code;
    } bad[] = {
        {{nan, 2, svs_none(), svs_int(1), 1}, SVS_NOT_FINITE},
        {{huge, 2, svs_none(), svs_int(1), 1}, SVS_TOO_LARGE},
        {{good, 1, svs_none(), svs_int(1), 1}, SVS_WRONG_DIMENSION},
        {{good, 2, svs_none(), svs_int(7), 1}, SVS_LIMIT},
        {{good, 2, svs_none(), svs_real(0.5), 1}, SVS_BAD_LABEL},
        {{good, 2, svs_none(), svs_int(1), 0}, SVS_BAD_WEIGHT},
        {{good, 2, svs_none(), svs_int(1), NAN}, SVS_BAD_WEIGHT},
        {{good, 2, svs_real(1), svs_int(1), 1}, SVS_BAD_ID},
    };
    uint64_t version = svs_learner_version(l);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(svs_learner_step(l, &bad[i].s, 10, &step, &err), bad[i].code);
        assert_int_equal(err.code, bad[i].code);
        assert_true(strlen(err.text) > 10);
    }
    assert_int_equal(svs_learner_label(l, svs_int(5), svs_int(1), 10, &step, &err), SVS_UNKNOWN_ID);
    assert_int_equal(svs_learner_forget(l, svs_int(5), 10, NULL, &err), SVS_UNKNOWN_ID);
    assert_int_equal(svs_learner_grow(l, 5000, &err), SVS_LIMIT);
    assert_int_equal(svs_learner_version(l), version);
    assert_true(svs_learner_check(l) < 1e-12);
    svs_learner_free(&l);
    o.forget = 0;
    assert_null(svs_learner_new(&o, 2, &err));
    assert_int_equal(err.code, SVS_SETTING);
}

/* Labels that never come, and more waiting samples than there is room for: counted. */
static void waiting_ends(void **state) {
    (void)state;
    svs_error err;
    svs_step step;
    svs_options o = options(20);
    o.labels_ttl = 10;
    o.labels_max = 5;
    svs_learner *l = svs_learner_new(&o, 1, &err);
    double x = 1;
    for (int i = 0; i < 8; i++) {
        svs_sample s = {&x, 1, svs_int(i), svs_none(), 1};
        assert_int_equal(svs_learner_step(l, &s, i, &step, &err), SVS_OK);
    }
    svs_health h;
    svs_learner_health(l, &h);
    assert_int_equal(h.labels_evicted, 3);
    assert_int_equal(h.waiting, 5);
    assert_int_equal(svs_learner_label(l, svs_int(0), svs_int(1), 8, &step, &err), SVS_UNKNOWN_ID);
    assert_int_equal(svs_learner_label(l, svs_int(7), svs_int(1), 8, &step, &err), SVS_OK);
    assert_int_equal(svs_learner_label(l, svs_int(7), svs_int(1), 8, &step, &err), SVS_UNKNOWN_ID);
    assert_int_equal(svs_learner_label(l, svs_int(3), svs_int(1), 13.5, &step, &err), SVS_UNKNOWN_ID);
    svs_learner_health(l, &h);
    assert_int_equal(h.labels_expired, 1);
    assert_int_equal(h.labels_joined, 1);
    assert_int_equal(h.waiting, 3);
    svs_learner_free(&l);
}

/* ---- at every sample as exact as a fresh solve */

struct exact {
    int64_t window;
    int d;
    double C;
    bool factor;    /* one factor and little noise: a condition of 1e4 or more */
    double outlier; /* size of one sample in three windows */
    int steps;
};

/* What a plain solve in doubles has for an error: the sums, Cholesky, both compared with long double. */
static void errors_now(svs_learner *l, double *ours, double *fresh) {
    int n = l->d + 1;
    long double *g = calloc((size_t)(n * (n + 2)), sizeof *g), *r = g + n * n, *x = r + n;
    double *plain = calloc((size_t)(n * (n + 1)), sizeof *plain), *w = plain + n * n;
    struct svi_learned row;
    for (int32_t i = 0; svi_next_row(l, &i, &row);) {
        ref_add(g, r, n, row.z, row.target, row.s);
        for (int a = 0; a < n; a++) {
            for (int b = 0; b <= a; b++)
                plain[a * n + b] += row.s * row.z[a] * row.z[b];
            w[a] += row.s * row.target * row.z[a];
        }
    }
    for (int j = 0; j < n; j++) {
        g[j * n + j] += l->nu;
        plain[j * n + j] += l->nu;
    }
    ref_solve(g, r, n, x);
    assert_true(svi_factor_spd(plain, n));
    svi_solve_factor(plain, n, w);
    *ours = ref_distance(svs_alsvm_weights(l->m, 0), x, n);
    *fresh = ref_distance(w, x, n);
    free(g);
    free(plain);
}

static void check_exact(const struct exact *e) {
    svs_options o = options(e->window);
    svs_error err;
    svs_step step;
    o.C = e->C;
    o.task = SVS_REGRESS;
    svs_learner *l = svs_learner_new(&o, e->d, &err);
    uint64_t seed = 7;
    double x[MAX_D], truth[MAX_D], mix[MAX_D];
    for (int j = 0; j < e->d; j++) {
        truth[j] = ref_gauss(&seed);
        mix[j] = ref_gauss(&seed);
    }
    for (int i = 0; i < e->steps; i++) {
        double t = 0.3 * ref_gauss(&seed), factor = ref_gauss(&seed), ours, fresh;
        bool outlier = i % (3 * e->window + 7) == 3 * e->window + 1;
        for (int j = 0; j < e->d; j++) {
            x[j] = e->factor ? factor * mix[j] + 0.01 * ref_gauss(&seed) : ref_gauss(&seed);
            t += x[j] * truth[j] / sqrt(e->d);
            x[j] *= outlier ? e->outlier : 1;
        }
        svs_sample s = {x, e->d, svs_int(i), svs_real(t), 1};
        assert_int_equal(svs_learner_step(l, &s, i, &step, &err), SVS_OK);
        if (i % 11 == 10)
            assert_int_equal(svs_learner_forget(l, svs_int(i - 3), i, NULL, &err), SVS_OK);
        errors_now(l, &ours, &fresh);
        if (!(ours <= fmax(1e-12, 10 * fresh)))
            fail_msg("window %d, d %d, C %g, sample %d: %.1e, a fresh solve has %.1e", (int)e->window, e->d,
                     e->C, i, ours, fresh);
    }
    svs_learner_free(&l);
}

static void as_exact_as_a_fresh_solve(void **state) {
    (void)state;
    static const struct exact all[] = {
        {20, 40, 100, false, 1, 150},  {20, 40, 1, false, 1, 200},    {20, 40, 1e4, false, 1, 80},
        {50, 40, 1e4, false, 1, 200},  {10, 10, 1, false, 1, 300},    {5, 10, 10, false, 1, 200},
        {200, 10, 1, true, 30, 1300},  {200, 10, 1, true, 100, 1300}, {200, 10, 100, true, 10, 1300},
        {100, 10, 1e3, true, 1, 900},  {50, 5, 1e3, true, 1, 900},    {200, 10, 1, false, 30, 1300},
        {200, 20, 1e4, false, 1, 100}, {200, 10, 1e6, true, 1, 100},  {60, 30, 100, true, 1, 300},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_exact(&all[i]);
}

/* ---- streams that try to fool the estimate of what w has lost (learner_refine.c) */

#define FOOL_D       8
#define FOOL_WINDOW  400
#define CLOSE        1e-3 /* how far apart columns are that nearly say the same */
#define SENSOR_NOISE 0.03

struct fool {
    double x[FOOL_D], target;
    double walk[FOOL_D];
};

/* Means that run away from the center of every epoch. */
static void fool_trend(struct fool *f, int i, uint64_t *seed) {
    f->target = ref_gauss(seed);
    for (int j = 0; j < FOOL_D; j++) {
        f->x[j] = ref_gauss(seed) + (j % 2 ? 0.03 : 0) * i;
        f->target += f->x[j] / (j + 1) - (j % 2 ? 0.03 : 0) * i / (j + 1);
    }
}

/* Three calm windows, in which looks find nothing, then one and a half in which two columns are nearly one.
 */
static void fool_calm(struct fool *f, int i, uint64_t *seed) {
    f->target = ref_gauss(seed);
    for (int j = 0; j < FOOL_D; j++)
        f->target += (f->x[j] = ref_gauss(seed));
    if (i % (9 * FOOL_WINDOW / 2) >= 3 * FOOL_WINDOW)
        f->x[1] = f->x[0] + CLOSE * f->x[1];
}

/* Columns that are nearly one all the time, and a share of the classes that turns. */
static void fool_shares(struct fool *f, int i, uint64_t *seed) {
    f->target = ref_uniform(seed) < (i / FOOL_WINDOW % 2 ? 0.98 : 0.02) ? 1 : -1;
    for (int j = 0; j < FOOL_D; j++)
        f->x[j] = ref_gauss(seed) + (j == 0 ? 0.5 * f->target : 0);
    f->x[1] = f->x[0] + CLOSE * f->x[1];
}

/* Each sample comes again with the other sign: the equation of the bias is always right. */
static void fool_mirror(struct fool *f, int i, uint64_t *seed) {
    f->target = i % 2 ? -f->target : ref_gauss(seed);
    for (int j = 0; j < FOOL_D; j++) {
        f->x[j] = i % 2 ? -f->x[j] : ref_gauss(seed);
        f->target += i % 2 ? 0 : (i / FOOL_WINDOW % 2 ? 3 : -3) * f->x[j];
    }
    f->x[1] = i % 2 ? f->x[1] : f->x[0] + CLOSE * f->x[1];
}

/* Slow sensors, of which some follow from others, as humidity does: their size changes tenfold each two
 * windows, so that P loses digits while they are small and w goes far when they are not. */
static void fool_sensors(struct fool *f, int i, uint64_t *seed) {
    const double size = i / (2 * FOOL_WINDOW) % 2 ? 1 : 10;
    for (int j = 0; j < FOOL_D; j++)
        f->x[j] = f->walk[j] = 0.99 * f->walk[j] + size * ref_gauss(seed);
    f->x[1] = f->x[0] + f->x[2] + SENSOR_NOISE * size * ref_gauss(seed);
    f->x[4] = f->x[3] + SENSOR_NOISE * f->x[4];
    f->target = (i / (FOOL_WINDOW / 3) % 2 ? 1 : -1) * f->walk[1] + 0.1 * ref_gauss(seed);
}

/* 1e-10, or ten times what a plain solve had in the window. */
static void estimates_are_not_fooled(void **state) {
    (void)state;
    static const struct {
        const char *name;
        void (*next)(struct fool *f, int i, uint64_t *seed);
    } all[] = {{"trend", fool_trend},
               {"calm", fool_calm},
               {"shares", fool_shares},
               {"mirror", fool_mirror},
               {"sensors", fool_sensors}};
    for (size_t kind = 0; kind < sizeof all / sizeof *all; kind++) {
        svs_options o = options(FOOL_WINDOW);
        svs_error err;
        svs_step step;
        svs_health h;
        o.task = SVS_REGRESS;
        svs_learner *l = svs_learner_new(&o, FOOL_D, &err);
        struct fool f = {{0}, 0, {0}};
        uint64_t seed = 3;
        double plain = 0, worst = 0;
        for (int i = 0; i < 14 * FOOL_WINDOW; i++) {
            double ours, fresh;
            all[kind].next(&f, i, &seed);
            svs_sample s = {f.x, FOOL_D, svs_none(), svs_real(f.target), 1};
            assert_int_equal(svs_learner_step(l, &s, i, &step, &err), SVS_OK);
            if (i < FOOL_WINDOW || i % 7)
                continue;
            errors_now(l, &ours, &fresh);
            plain = fmax(fresh, plain * exp(-7.0 / FOOL_WINDOW));
            worst = fmax(worst, ours);
            if (!(ours <= fmax(1e-10, 10 * plain)))
                fail_msg("%s, sample %d: %.1e, a fresh solve had %.1e", all[kind].name, i, ours, plain);
        }
        svs_learner_health(l, &h);
        print_message("# %s: at most %.1e; the window was read %.1f times a window\n", all[kind].name, worst,
                      (double)h.window_reads / 14);
        svs_learner_free(&l);
    }
}

/* As many columns as rows, where each row that leaves takes nearly all that P had in its direction: exact,
 * and not by a new P or a look at each of them. */
static void as_many_columns_as_rows(void **state) {
    (void)state;
    enum { SQUARE = 300, STEPS = 3 * SQUARE };
    svs_error err;
    svs_step step;
    svs_health h;
    svs_options o = options(SQUARE);
    double x[SQUARE], worst = 0;
    uint64_t seed = 11;
    svs_learner *l = svs_learner_new(&o, SQUARE, &err);
    for (int i = 1; i <= STEPS; i++) {
        for (int j = 0; j < SQUARE; j++)
            x[j] = ref_gauss(&seed);
        const svs_sample s = {x, SQUARE, svs_int(i), svs_int(x[0] + ref_gauss(&seed) > 0), 1};
        assert_int_equal(svs_learner_step(l, &s, i, &step, &err), SVS_OK);
        if (i > SQUARE && i % 150 == 0)
            worst = fmax(worst, svs_learner_check(l));
    }
    svs_learner_health(l, &h);
    print_message("# %d columns and rows: at most %.1e; %lld rebuilds, %lld reads in %d slides\n", SQUARE,
                  worst, (long long)h.rebuilds, (long long)h.window_reads, STEPS - SQUARE);
    assert_true(worst <= 1e-10);
    assert_true(h.rebuilds <= (STEPS - SQUARE) / 20 && h.window_reads <= (STEPS - SQUARE) / 2);
    svs_learner_free(&l);
}

/* When P is repaired is a matter of rounding; what the model is must not be. */
static void instruction_sets_agree(void **state) {
    (void)state;
    static const svs_isa isas[] = {SVS_ISA_GENERIC, SVS_ISA_AVX2, SVS_ISA_AVX512};
    svs_error err;
    svs_learner *l[3] = {0};
    struct fool f = {0};
    uint64_t seed = 5;
    double worst = 0;
    for (int k = 0; k < 3; k++) {
        svs_options o = options(FOOL_WINDOW);
        o.isa = isas[k];
        l[k] = svi_kernels_get(isas[k]) ? svs_learner_new(&o, FOOL_D, &err) : NULL;
    }
    for (int i = 0; i < 8 * FOOL_WINDOW; i++) {
        fool_sensors(&f, i, &seed);
        for (int k = 0; k < 3; k++) {
            svs_step step;
            const svs_sample s = {f.x, FOOL_D, svs_int(i), svs_int(f.target > 0), 1};
            if (l[k])
                assert_int_equal(svs_learner_step(l[k], &s, i, &step, &err), SVS_OK);
        }
        for (int k = 1; k < 3 && l[k]; k++) {
            const double *a = l[0]->m->r.w, *b = l[k]->m->r.w;
            double off = 0, size = 0;
            for (int j = 0; j <= FOOL_D; j++) {
                off += (a[j] - b[j]) * (a[j] - b[j]);
                size += a[j] * a[j];
            }
            worst = fmax(worst, i > FOOL_WINDOW ? sqrt(off / size) : 0);
        }
    }
    print_message("# instruction sets differ by at most %.1e; %lld, %lld, %lld reads\n", worst,
                  (long long)l[0]->health.window_reads, l[1] ? (long long)l[1]->health.window_reads : -1,
                  l[2] ? (long long)l[2]->health.window_reads : -1);
    assert_true(worst <= 1e-8);
    for (int k = 0; k < 3; k++)
        svs_learner_free(&l[k]);
}

/* The checker itself: a spoilt weight, and a spoilt ring, must be noticed. */
static void checkers_notice(void **state) {
    (void)state;
    svs_error err;
    svs_step step;
    svs_options o = options(20);
    svs_learner *l = svs_learner_new(&o, 1, &err);
    for (int i = 0; i < 30; i++) {
        double x = i * 7 % 5;
        svs_sample s = {&x, 1, svs_int(i), svs_int(i % 2), 1};
        assert_int_equal(svs_learner_step(l, &s, i, &step, &err), SVS_OK);
    }
    assert_true(svs_learner_check(l) < 1e-12);
    l->m->r.w[0] += 1e-3;
    assert_true(svs_learner_check(l) > 1e-6);
    assert_null(ring_check(&l->window));
    *svi_ring_state(&l->window, svi_ring_at(&l->window, 3)) &= (uint8_t)~SVI_SLOT_LIVE;
    assert_non_null(ring_check(&l->window));
    svs_learner_free(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_walks),
        cmocka_unit_test(jumps_leave_no_trace),
        cmocka_unit_test(no_window_equals_wide_window),
        cmocka_unit_test(model_in_raw_units),
        cmocka_unit_test(alarms_at_any_phase),
        cmocka_unit_test(refusals_change_nothing),
        cmocka_unit_test(waiting_ends),
        cmocka_unit_test(as_exact_as_a_fresh_solve),
        cmocka_unit_test(estimates_are_not_fooled),
        cmocka_unit_test(as_many_columns_as_rows),
        cmocka_unit_test(instruction_sets_agree),
        cmocka_unit_test(checkers_notice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
