/* The detector over streams: honest p-values, a bounded and optimal active set whatever the options, policies
 * that do what they say, and no number that is not one. */
#include "support/problem.h"
#include "support/quick.h"
#include "support/stage.h"

#include "alerts/lasting.h"
#include "novelty/detector.h"
#include "novelty/lags.h"

#define WIDEST 20

static struct svi_detector_options defaults(int d) {
    struct svi_settings s;
    svi_settings_default(&s);
    return stage_novelty(&s, d);
}

static svi_detector *start(const struct svi_detector_options *o) {
    svs_error err = {0};
    svi_detector *d = svi_detector_new(o, &err);
    if (!d)
        fail_msg("%s", err.text);
    return d;
}

static void assert_sound(const struct svi_judgement *j) {
    assert_true(!isnan(j->surprise) && j->novelty <= 1 && !isnan(j->novelty));
    assert_true(j->membership >= 0 && !isnan(j->membership));
    assert_true(j->p > 0 && j->p <= 1 && j->tail >= 0 && j->tail <= j->p);
}

static struct svi_judgement feed(svi_detector *d, const double *x, bool labelled,
                                 enum svi_learn_result *lesson) {
    struct svi_judgement j;
    svi_detector_assess(d, x, &j);
    assert_sound(&j);
    const enum svi_learn_result what = svi_detector_learn(d, labelled);
    assert_true(j.calibrates == (what == SVI_LEARN_RESULT_CALIBRATED || what == SVI_LEARN_RESULT_HELD_OUT));
    if (lesson)
        *lesson = what;
    return j;
}

static struct svi_detector_health health(svi_detector *d) {
    struct svi_detector_health h;
    svi_detector_health(d, &h);
    return h;
}

/* ---- the promise */

enum law { NORMAL, CLUSTERS, STUDENT, LOGNORMAL, CUBE, LAWS };

static int dimension(enum law law) {
    return law == CUBE ? WIDEST : law == NORMAL ? 2 : 5;
}

static void draw(enum law law, uint64_t *seed, double *x) {
    const int cluster = (int)(test_random(seed) >> 32) % 3;
    for (int j = 0; j < dimension(law); j++) {
        const double g = test_normal(seed), u = test_uniform(seed);
        x[j] = law == STUDENT     ? g / sqrt(u)
               : law == LOGNORMAL ? exp(g)
               : law == CUBE      ? u
               : law == CLUSTERS  ? (j % 3 == cluster ? 6 : 0) + g
                                  : g;
    }
}

/* Errors: of the samples, and of the half of them that they are held against. */
static void assert_promise(double count, double n, double a, int law) {
    const double error = sqrt(a * (1 - a) * (1 / n + 2 / n)), share = count / n;
    if (share > a + 3 * error || share < a / 2 - 3 * error)
        fail_msg("law %d: %.6f of %.0f samples have p <= %g", law, share, n, a);
}

static void honest_on_exchangeable_samples(void **state) {
    (void)state;
    static const double levels[] = {0.1, 0.01, 0.001};
    const int n = often(60000, 6000), begun = often(4000, 2000);
    for (int law = 0; law < LAWS; law++)
        for (int fosvm = often(1, 1 + law % 2); fosvm <= 2; fosvm += often(1, 2)) {
            struct svi_detector_options o = defaults(dimension((enum law)law));
            double all[3] = {0}, later[3] = {0}, lasting[3] = {0}, x[WIDEST];
            struct svi_lasting evidence;
            uint64_t seed = 1000 + (uint64_t)law;
            o.model.fosvm = fosvm;
            svi_detector *d = start(&o);
            svi_lasting_init(&evidence);
            for (int t = 0; t < n; t++) {
                draw((enum law)law, &seed, x);
                const struct svi_judgement j = feed(d, x, false, NULL);
                svi_lasting_add(
                    &evidence, &(struct svi_lasting_rank){j.above, j.p, j.scores, j.calibrates, j.disturbed});
                for (int a = 0; a < 3; a++) {
                    all[a] += j.p <= levels[a];
                    later[a] += t >= begun && j.p <= levels[a];
                    lasting[a] += svi_lasting_surprise(&evidence) >= a + 1;
                }
            }
            for (int a = 0; a < 3; a++) {
                assert_promise(all[a], n, levels[a], law);
                assert_promise(later[a], n - begun, levels[a], law);
                if (lasting[a] / n > levels[a]) /* a third of it, mostly */
                    fail_msg("law %d: %.6f of %d samples have a lasting surprise of %d", law, lasting[a] / n,
                             n, a + 1);
            }
            svi_detector_free(&d);
        }
}

/* ---- any options, any walk */

/* A stream that drifts, jumps, stands still and repeats itself. */
struct walk {
    uint64_t seed;
    double at[WIDEST], before[WIDEST];
};

static const double *step(struct walk *w, int d) {
    const double what = test_uniform(&w->seed);
    memcpy(w->before, w->at, sizeof w->before);
    for (int j = 0; j < d; j++) {
        if (what < 0.7)
            w->at[j] += 0.05 * test_normal(&w->seed);
        else if (what > 0.995)
            w->at[j] = 20 * test_normal(&w->seed);
        else if (what > 0.8)
            w->at[j] += test_normal(&w->seed) - 0.1 * w->at[j];
    }
    return w->at;
}

static struct svi_detector_options any_options(uint64_t *seed) {
    struct svi_detector_options o = defaults(1 + (int)(test_random(seed) % 6));
    o.model.fosvm = 1 + (int)(test_random(seed) % 2);
    o.model.kernel = (svs_novelty_kernel)(test_random(seed) % 3);
    o.model.gamma_rule = (svs_gamma_rule)(test_random(seed) % 4);
    o.model.gamma = 0.01 + test_uniform(seed);
    o.model.theta = 0.01 + 0.4 * test_uniform(seed);
    o.model.trim = 0.4 * test_uniform(seed);
    o.model.scale = test_random(seed) % 4 != 0;
    o.model.max = 2 + (int)(test_random(seed) % 60);
    o.window = (int64_t)(test_random(seed) % 5 * 150);
    o.calibration = 1 + (int)(test_random(seed) % 300);
    o.learn = (enum svi_novelty_learn)(test_random(seed) % 4);
    o.p = 0.001 + 0.2 * test_uniform(seed);
    o.clear = o.p + 0.2 * test_uniform(seed);
    o.confirm = 1 + (int)(test_random(seed) % 20);
    o.persist = (int64_t)(test_random(seed) % 40);
    return o;
}

static void bounded_and_optimal_on_any_walk(void **state) {
    (void)state;
    const int walks = often(60, 6), length = 1500;
    for (int k = 0; k < walks; k++) {
        uint64_t seed = 500 + (uint64_t)k;
        struct walk w = {.seed = 900 + (uint64_t)k};
        const struct svi_detector_options o = any_options(&seed);
        svi_detector *d = start(&o);
        for (int t = 0; t < length; t++) {
            feed(d, step(&w, o.d), test_random(&seed) % 3 == 0, NULL);
            if (t % 50 != 49)
                continue;
            const struct svi_detector_health h = health(d);
            assert_int_equal(h.seen, t + 1);
            assert_true(h.points >= 0 && h.points <= o.model.max && h.calibration <= o.calibration);
            assert_true(h.joined - h.left == h.points);
            if (!(h.violation <= 1e-6) && o.model.kernel != SVS_NOVELTY_POLYNOMIAL)
                fail_msg("walk %d, sample %d: violation %g", k, t, h.violation);
        }
        svi_detector_free(&d);
    }
}

static void extreme_values(void **state) {
    (void)state;
    static const double values[] = {1e100, -1e100, 1e-100, 0, 1, 1e16, -1e-300, 5e99};
    for (int kernel = 0; kernel < 3; kernel++)
        for (int scale = 0; scale < 2; scale++)
            for (int rule = often(0, (kernel + scale) % 2); rule < 4; rule += often(1, 2)) {
                struct svi_detector_options o = defaults(3);
                uint64_t seed = 7;
                double x[3], low, high, adds[3];
                o.model.kernel = (svs_novelty_kernel)kernel;
                o.model.scale = scale;
                o.model.gamma_rule = (svs_gamma_rule)rule;
                o.model.gamma = 1;
                o.model.max = 20;
                o.calibration = 100;
                svi_detector *d = start(&o);
                for (int t = 0; t < 400; t++) {
                    for (int j = 0; j < 3; j++)
                        x[j] = t % 7 == 0 || t > 300 ? values[test_random(&seed) % 8] : test_normal(&seed);
                    feed(d, x, false, NULL);
                    svi_detector_explain(d, adds);
                    svi_detector_normal_range(d, 1, &low, &high);
                    for (int j = 0; j < 3; j++)
                        assert_true(!isnan(adds[j]));
                    assert_true(t < 2 || low <= high);
                    assert_true(svi_detector_level(d) <= 1);
                }
                svi_detector_free(&d);
            }
}

/* A sensor that stands still, for many windows: it stays usual, and a step is novel. */
static void constant_features(void **state) {
    (void)state;
    for (int learn = 0; learn < 2; learn++)
        for (int64_t window = 0; window <= 200; window += 100) {
            struct svi_detector_options o = defaults(2);
            const double usual[] = {5, 0}, step[] = {5, 1};
            o.window = window;
            o.calibration = 1000;
            o.learn = learn ? SVI_LEARN_ALL : SVI_LEARN_NORMAL;
            svi_detector *d = start(&o);
            for (int t = 0; t < 3000; t++) {
                const struct svi_judgement j = feed(d, usual, false, NULL);
                if (j.p < 1)
                    fail_msg("window %d, sample %d: p %g, surprise %g, points %d", (int)window, t, j.p,
                             j.surprise, health(d).points);
            }
            const struct svi_judgement j = feed(d, step, false, NULL);
            assert_true(j.novel && j.novelty > 0.5);
            assert_true(health(d).points >= 1);
            svi_detector_free(&d);
        }
}

/* A switch: both of its positions stay usual although neither is ever outside, and a third one is novel. */
static void two_states(void **state) {
    (void)state;
    for (int fosvm = 1; fosvm <= 2; fosvm++) {
        struct svi_detector_options o = defaults(1);
        uint64_t seed = 8;
        o.model.fosvm = fosvm;
        o.window = 100;
        svi_detector *d = start(&o);
        for (int t = 0; t < 5000; t++) {
            const double x = (double)(test_random(&seed) >> 63);
            const struct svi_judgement j = feed(d, &x, false, NULL);
            if (t > 100 && j.p <= 0.1)
                fail_msg("fosvm%d, sample %d: %g has p %g", fosvm, t, x, j.p);
        }
        const struct svi_judgement j = feed(d, (const double[]){2}, false, NULL);
        assert_true(j.novel);
        svi_detector_free(&d);
    }
}

/* ---- policies */

/* 4000 normal samples, then 600 far away, one in three labelled. */
static void policies_do_what_they_say(void **state) {
    (void)state;
    for (int learn = 0; learn < 4; learn++) {
        struct svi_detector_options o = defaults(2);
        uint64_t seed = 3;
        int joined_there = 0, novel_late = 0;
        double x[2];
        o.learn = (enum svi_novelty_learn)learn;
        o.window = 1000;
        svi_detector *d = start(&o);
        for (int t = 0; t < 4600; t++) {
            const bool there = t >= 4000, labelled = t % 3 == 0;
            enum svi_learn_result lesson;
            x[0] = test_normal(&seed) + (there ? 30 : 0);
            x[1] = test_normal(&seed);
            const struct svi_judgement j = feed(d, x, labelled, &lesson);
            joined_there += there && lesson == SVI_LEARN_RESULT_JOINED;
            novel_late += t >= 4400 && j.novel;
            if (j.calibrates)
                continue;
            if (learn == SVI_LEARN_ALL)
                assert_true(lesson != SVI_LEARN_RESULT_REFUSED);
            if (learn == SVI_LEARN_LABELLED)
                assert_true((lesson == SVI_LEARN_RESULT_REFUSED) == !labelled);
            if (learn == SVI_LEARN_NORMAL && t >= 300) /* max / 2 were learned */
                assert_true((lesson == SVI_LEARN_RESULT_REFUSED) == (j.p <= o.model.trim));
        }
        if (learn == SVI_LEARN_NORMAL)
            assert_true(joined_there == 0 && novel_late == 200);
        else
            assert_true(joined_there > 0 && novel_late < 100);
        svi_detector_free(&d);
    }
}

/* The active set forgets: a point leaves when `window` samples were learned after it. */
static void points_follow_the_window(void **state) {
    (void)state;
    struct svi_detector_options o = defaults(2);
    uint64_t seed = 3;
    double x[2];
    o.learn = SVI_LEARN_ALL;
    o.window = 300;
    svi_detector *d = start(&o);
    const int moved = often(1500, 600);
    for (int t = 0; t < 2 * moved; t++) {
        x[0] = test_normal(&seed) + (t >= moved ? 30 : 0);
        x[1] = test_normal(&seed);
        feed(d, x, false, NULL);
    }
    x[0] = 0; /* usual once */
    struct svi_judgement j;
    svi_detector_assess(d, x, &j);
    assert_true(j.novelty > 0.9);
    assert_true(health(d).left > 0);
    svi_detector_free(&d);
}

/* ---- the same again */

struct record {
    struct svi_judgement j;
    enum svi_learn_result lesson;
};

static void record(svi_detector *d, const struct svi_detector_options *o, struct record *to, int n) {
    struct walk w = {.seed = 77};
    memset(to, 0, (size_t)n * sizeof *to);
    for (int t = 0; t < n; t++) {
        struct svi_judgement j = feed(d, step(&w, o->d), t % 3 == 0, &to[t].lesson);
        to[t].j.surprise = j.surprise;
        to[t].j.novelty = j.novelty;
        to[t].j.p = j.p;
        to[t].j.tail = j.tail;
    }
}

static void same_calls_same_bytes(void **state) {
    (void)state;
    enum { LENGTH = 1500 };
    struct record *a = calloc(LENGTH, sizeof *a), *b = calloc(LENGTH, sizeof *b);
    for (int k = 0; k < often(12, 5); k++) {
        uint64_t seed = 40 + (uint64_t)k;
        const struct svi_detector_options o = any_options(&seed);
        svi_detector *d = start(&o), *e = start(&o);
        record(d, &o, a, LENGTH);
        record(e, &o, b, LENGTH);
        assert_memory_equal(a, b, LENGTH * sizeof *a);
        svi_detector_reset(d); /* as new */
        assert_int_equal(health(d).points, 0);
        record(d, &o, b, LENGTH);
        assert_memory_equal(a, b, LENGTH * sizeof *a);
        svi_detector_free(&d);
        svi_detector_free(&e);
        svi_detector_free(&e);
    }
    free(a);
    free(b);
}

/* Only what is learned counts. */
static void judging_changes_nothing(void **state) {
    (void)state;
    struct svi_detector_options o = defaults(3);
    uint64_t seed = 5;
    o.calibration = 200;
    svi_detector *d = start(&o), *e = start(&o);
    for (int t = 0; t < 2000; t++) {
        double x[3], other[3];
        struct svi_judgement a, b, c;
        for (int j = 0; j < 3; j++) {
            x[j] = test_normal(&seed);
            other[j] = 9 * test_normal(&seed);
        }
        svi_detector_assess(d, x, &a);
        svi_detector_assess(d, other, &c);
        svi_detector_assess(d, x, &c);
        svi_detector_assess(e, x, &b);
        assert_true(a.surprise == b.surprise && a.p == b.p && a.tail == b.tail && c.surprise == a.surprise);
        assert_int_equal(svi_detector_learn(d, false), svi_detector_learn(e, false));
    }
    svi_detector_free(&d);
    svi_detector_free(&e);
}

/* ---- renewals, units, lags */

/* Other units and another zero: the same judgements. */
static void units_do_not_matter(void **state) {
    (void)state;
    const struct svi_detector_options o = defaults(3);
    static const double by[] = {1e-3, 1, 1e4}, plus[] = {2, 0, -1e4};
    svi_detector *d = start(&o), *e = start(&o);
    uint64_t seed = 11;
    for (int t = 0; t < 3000; t++) {
        double x[3], y[3];
        for (int j = 0; j < 3; j++) {
            x[j] = test_normal(&seed);
            y[j] = by[j] * x[j] + plus[j];
        }
        const struct svi_judgement a = feed(d, x, false, NULL), b = feed(e, y, false, NULL);
        assert_true(fabs(a.surprise - b.surprise) < 1e-6 * (1 + a.surprise));
    }
    svi_detector_free(&d);
    svi_detector_free(&e);
}

static void renews_when_due(void **state) {
    (void)state;
    const struct svi_detector_options o = defaults(2);
    svi_detector *d = start(&o);
    uint64_t seed = 11;
    int64_t renewals = 0;
    for (int t = 1; t <= often(3000, 1500); t++) {
        const double x[] = {test_normal(&seed), test_normal(&seed)};
        feed(d, x, false, NULL);
        const bool due = t >= 32 && (t & (t - 1)) == 0;
        renewals += due;
        assert_int_equal(health(d).refreshes + d->renewal->on, renewals);
        assert_true(!d->renewal->on || d->renewal->slices < 100);
    }
    for (int t = 0; t < often(5000, 2500); t++) { /* far out of its coordinates */
        const double x[] = {1e4 + test_normal(&seed), 1e3 * test_normal(&seed)};
        feed(d, x, false, NULL);
    }
    assert_true(health(d).refreshes > renewals); /* one was due at a power of two, and may be under way */
    svi_detector_free(&d);
}

/* The model that a refresh in slices comes to is that of a refresh at once by the same rows and points; what
 * came meanwhile is scored by it, and no slice changes what is judged before. */
static void slices_come_to_the_model_at_once(void **state) {
    (void)state;
    enum { D = 5 };
    struct svi_detector_options o = defaults(D);
    svi_detector *d = start(&o), *e = start(&o);
    uint64_t seed = 5;
    double x[D], peek[2], p[2];
    for (int t = 0; t < 1024; t++) {
        for (int j = 0; j < D; j++)
            x[j] = test_normal(&seed);
        feed(d, x, false, NULL);
        feed(e, x, false, NULL);
    }
    assert_true(d->renewal->on && e->renewal->on && d->renewal->due == 0);
    svi_detector_category(e, 1, 0); /* ends it */
    e->category[0] = 0;
    e->m.coordinates.category = NULL;
    assert_true(!e->renewal->on && e->now.refreshes == d->now.refreshes + 1);
    const struct svi_detector_health before = health(d);
    for (int t = 0; d->renewal->on; t++) {
        assert_true(t < 100);
        for (int j = 0; j < D; j++)
            x[j] = test_normal(&seed);
        feed(d, x, false, NULL);
    }
    assert_true(health(d).joined == before.joined && d->now.refreshes == e->now.refreshes);
    assert_memory_equal(d->m.coordinates.center, e->m.coordinates.center, D * sizeof(double));
    assert_memory_equal(d->m.coordinates.inverse, e->m.coordinates.inverse, D * sizeof(double));
    for (int g = 0; g < d->members; g++) {
        assert_true(d->m.view.member[g].gamma == e->m.view.member[g].gamma);
        assert_true(d->m.view.member[g].share == e->m.view.member[g].share);
        assert_memory_equal(d->m.set[g].z, e->m.set[g].z, (size_t)d->now.points * sizeof(double));
    }
    assert_true(svi_detector_peek(d, x, &peek[0], &p[0]) && svi_detector_peek(e, x, &peek[1], &p[1]));
    assert_true(peek[0] == peek[1]);
    for (int i = 0; i < d->calibration.ring.filled; i += 7) { /* new rows as well */
        assert_true(svi_detector_peek(d, d->rows + (size_t)i * D, &peek[0], &p[0]));
        assert_true(fabs(peek[0] + expm1(-d->calibration.scores[i])) < 1e-12);
    }
    svi_detector_free(&d);
    svi_detector_free(&e);
}

/* One sensor with a rhythm: its values stay usual, its rhythm does not. */
static void lags_see_the_rhythm(void **state) {
    (void)state;
    enum { LAGS = 6 };
    struct svi_detector_options o = defaults(LAGS);
    struct svi_lags lags;
    uint64_t seed = 2;
    int novel_before = 0, novel_after = 0;
    double row[LAGS];
    assert_int_equal(svi_lags_init(&lags, 1, LAGS, false, NULL), SVS_OK);
    svi_detector *d = start(&o);
    for (int t = 0; t < 8100; t++) {
        const double turn = t < 8000 ? t * 0.5 : t * 1.6, x = sin(turn) + 0.02 * test_normal(&seed);
        if (!svi_lags_push(&lags, &x, row))
            continue;
        const struct svi_judgement j = feed(d, row, false, NULL);
        novel_before += t >= 4000 && t < 8000 && j.novel;
        novel_after += t >= 8000 + LAGS && j.novel;
    }
    if (novel_before >= 20)
        fail_msg("%d of 4000 usual samples are novel", novel_before);
    assert_true(novel_after > 80);
    svi_detector_free(&d);
    svi_lags_clear(&lags);
}

/* One feature goes far out of what is usual while all others stay: however many they are, it is heard. */
static void one_wild_feature_is_heard(void **state) {
    static const struct {
        int d;
        double push; /* deviations */
    } cases[] = {{3, 10}, {8, 13}, {38, 20}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c += (size_t)often(1, 2)) {
        struct svi_detector_options o = defaults(cases[c].d);
        svi_detector *d = start(&o);
        uint64_t seed = 5;
        int wild = 0, heard = 0;
        for (int i = 0; i < 5000; i++) {
            double x[38];
            for (int j = 0; j < o.d; j++)
                x[j] = test_normal(&seed);
            const bool spike = i > 2500 && i % 40 == 0;
            if (spike)
                x[i / 40 % o.d] += i % 80 ? cases[c].push : -cases[c].push;
            const struct svi_judgement j = feed(d, x, false, NULL);
            wild += spike;
            heard += spike && j.novel;
        }
        assert_true(wild > 50 && heard >= 0.95 * wild);
        svi_detector_free(&d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(honest_on_exchangeable_samples),
        cmocka_unit_test(bounded_and_optimal_on_any_walk),
        cmocka_unit_test(extreme_values),
        cmocka_unit_test(constant_features),
        cmocka_unit_test(two_states),
        cmocka_unit_test(policies_do_what_they_say),
        cmocka_unit_test(points_follow_the_window),
        cmocka_unit_test(same_calls_same_bytes),
        cmocka_unit_test(judging_changes_nothing),
        cmocka_unit_test(units_do_not_matter),
        cmocka_unit_test(renews_when_due),
        cmocka_unit_test(slices_come_to_the_model_at_once),
        cmocka_unit_test(lags_see_the_rhythm),
        cmocka_unit_test(one_wild_feature_is_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
