/* Rows some of whose values are missing: p keeps its promise, faults are found in what is there, a missing
 * value is no reason for anything, and nothing changes where none is missing. */
#include "support/problem.h"
#include "support/quick.h"

#include "formats/novelty_file.h"
#include "novelty/detector.h"
#include "novelty/novelty_model.h"
#include "support/archived.h"
#include "support/stage.h"

#define SENSORS 4

static struct svi_detector_options options(int d, int kernel) {
    struct svi_settings s;
    svi_settings_default(&s);
    struct svi_detector_options o = stage_novelty(&s, d);
    o.model.kernel = (svs_novelty_kernel)kernel;
    o.calibration = 500;
    return o;
}

static svi_detector *start(const struct svi_detector_options *o) {
    svs_error err = {0};
    svi_detector *d = svi_detector_new(o, &err);
    if (!d)
        fail_msg("%s", err.text);
    return d;
}

static struct svi_judgement feed(svi_detector *d, const double *x) {
    struct svi_judgement j;
    svi_detector_assess(d, x, &j);
    assert_true(isfinite(j.surprise) && isfinite(j.novelty) && isfinite(j.membership));
    assert_true(j.p > 0 && j.p <= 1 && j.tail >= 0 && j.tail <= j.p);
    svi_detector_learn(d, false);
    return j;
}

/* Sensors that follow one load, two by two. */
static void draw(uint64_t *seed, int d, double *x) {
    const double load = test_normal(seed), other = test_uniform(seed) < 0.3 ? 4 : 0;
    for (int j = 0; j < d; j++)
        x[j] = 10 * j + (j % 2 ? load : other) + 0.3 * test_normal(seed);
}

static void lose(uint64_t *seed, int d, double share, double *x) {
    for (int j = 0; j < d; j++)
        x[j] = test_uniform(seed) < share ? NAN : x[j];
}

/* ---- the promise */

static void honest_with_gaps(void **state) {
    (void)state;
    static const double levels[] = {0.1, 0.02, 0.004}, shares[] = {0.1, 0.5};
    const int n = often(24000, 2500), begun = often(2500, 1000);
    for (int k = 0; k < 6; k++) {
        const double share = shares[k % 2];
        const struct svi_detector_options o = options(SENSORS, k / 2);
        svi_detector *d = start(&o);
        uint64_t seed = 31 + (uint64_t)k;
        double x[SENSORS], small[3] = {0};
        for (int t = 0; t < n; t++) {
            draw(&seed, SENSORS, x);
            lose(&seed, SENSORS, share, x);
            const double p = feed(d, x).p;
            for (int a = 0; a < 3; a++)
                small[a] += t >= begun && p <= levels[a];
        }
        for (int a = 0; a < 3; a++) {
            const double error = sqrt(levels[a] * (1 - levels[a]) / (n - begun) * (1 + n / 500.0));
            const double found = small[a] / (n - begun);
            if (found > levels[a] + 3 * error)
                fail_msg("kernel %d, %g missing: %g have p <= %g", k / 2, share, found, levels[a]);
        }
        svi_detector_free(&d);
    }
}

/* ---- what is found, and what is not */

static void fill_usual(svi_detector *d, uint64_t *seed, double share, int n) {
    double x[SENSORS];
    for (int t = 0; t < n; t++) {
        draw(seed, SENSORS, x);
        lose(seed, SENSORS, share, x);
        feed(d, x);
    }
}

static void faults_are_found_beside_gaps(void **state) {
    (void)state;
    for (int kernel = 0; kernel < 2; kernel++) {
        const struct svi_detector_options o = options(SENSORS, kernel);
        svi_detector *d = start(&o);
        uint64_t seed = 5 + (uint64_t)kernel;
        int found = 0, named = 0, novel = 0;
        fill_usual(d, &seed, 0.1, 3000);
        for (int i = 0; i < 200; i++) {
            double x[SENSORS], novelty, p, adds[SENSORS];
            struct svi_judgement j;
            draw(&seed, SENSORS, x);
            x[0] = NAN;
            assert_true(svi_detector_peek(d, x, &novelty, &p));
            novel += p <= 0.05;
            x[1] += 8;
            svi_detector_assess(d, x, &j);
            svi_detector_explain(d, adds);
            assert_true(adds[0] == 0 && j.feature != 0);
            found += j.p <= 0.01;
            named += adds[1] > adds[2] && adds[1] > adds[3];
        }
        if (found < 195 || named < 150 || novel > 20)
            fail_msg("kernel %d: of 200 %d found, %d named, %d called novel for a gap", kernel, found, named,
                     novel);
        svi_detector_free(&d);
    }
}

/* A row at the middle of all that lacks a value, whichever; and one that lacks all. */
static void a_gap_is_no_reason(void **state) {
    (void)state;
    for (int kernel = 0; kernel < 3; kernel++)
        for (int share = 0; share < 2; share++) {
            const struct svi_detector_options o = options(SENSORS, kernel);
            svi_detector *d = start(&o);
            uint64_t seed = 50 + (uint64_t)kernel;
            double x[SENSORS], novelty, p;
            fill_usual(d, &seed, 0.3 * share, 3000);
            for (int gone = 0; gone < SENSORS; gone++) {
                draw(&seed, SENSORS, x);
                for (int j = 0; j < SENSORS; j++)
                    x[j] = j == gone ? NAN : 10 * j;
                assert_true(svi_detector_peek(d, x, &novelty, &p));
                if (p <= 0.05)
                    fail_msg("kernel %d: p %g without sensor %d", kernel, p, gone);
            }
            for (int j = 0; j < SENSORS; j++)
                x[j] = NAN;
            assert_true(svi_detector_peek(d, x, &novelty, &p));
            assert_true(novelty == 0 && p == 1);
            svi_detector_free(&d);
        }
}

/* ---- half of all values missing, for long, in any options */

static struct svi_detector_options any_options(uint64_t *seed) {
    struct svi_detector_options o = options(1 + (int)(test_random(seed) % 6), (int)(test_random(seed) % 3));
    o.model.fosvm = 1 + (int)(test_random(seed) % 2);
    o.model.gamma_rule = (svs_gamma_rule)(test_random(seed) % 4);
    o.model.gamma = 0.01 + test_uniform(seed);
    o.model.theta = 0.01 + 0.4 * test_uniform(seed);
    o.model.trim = 0.4 * test_uniform(seed);
    o.model.scale = test_random(seed) % 4 != 0;
    o.model.max = 2 + (int)(test_random(seed) % 60);
    o.window = (int64_t)(test_random(seed) % 5 * 150);
    o.calibration = 1 + (int)(test_random(seed) % 300);
    o.learn = (enum svi_novelty_learn)(test_random(seed) % 4);
    o.confirm = 1 + (int)(test_random(seed) % 20);
    o.persist = (int64_t)(test_random(seed) % 40);
    return o;
}

static int count_lacking(const svi_detector *d) {
    int count = 0;
    for (int i = 0; i < d->now.points; i++)
        count += svi_count_missing(d->raw + (size_t)i * (size_t)d->o.d, d->o.d) > 0;
    return count;
}

static void bounded_on_any_walk_with_gaps(void **state) {
    (void)state;
    for (int k = 0; k < often(60, 8); k++) {
        uint64_t seed = 700 + (uint64_t)k;
        const struct svi_detector_options o = any_options(&seed);
        const double share = k % 4 == 3 ? 0.95 : 0.5;
        svi_detector *d = start(&o);
        double at[8] = {0}, adds[8], low, high;
        for (int t = 0; t < 1200; t++) {
            double x[8];
            const bool jump = test_uniform(&seed) > 0.99;
            for (int j = 0; j < o.d; j++)
                x[j] = at[j] += (jump ? 5 : 0.1) * test_normal(&seed);
            lose(&seed, o.d, t % 400 < 30 ? 0 : share, x);
            feed(d, x);
            if (t % 20)
                continue;
            struct svi_detector_health h;
            svi_detector_health(d, &h);
            assert_true(h.points <= o.model.max && isfinite(h.violation));
            svi_detector_explain(d, adds);
            svi_detector_normal_range(d, 0, &low, &high);
            for (int j = 0; j < o.d; j++)
                assert_true(isnan(x[j]) ? adds[j] == 0 : isfinite(adds[j]));
            assert_true(isnan(low) == isnan(high) && !(low > high));
            if (d->ready && o.model.kernel != SVS_NOVELTY_POLYNOMIAL)
                assert_int_equal(d->m.lacking, count_lacking(d));
        }
        svi_detector_free(&d);
    }
}

/* ---- the stage: gaps become missing coordinates, in lags, too; and a run with them is kept */

static void archive(struct svi_archive *a, void *stage) {
    svi_alert_stage_archive(a, stage);
}

static void open_stage(struct svi_alert_stage *s, int lags, int kernel) {
    struct svi_settings settings;
    svi_settings_default(&settings);
    strcpy(settings.alert_budget,
           "none"); /* by p: what judges and the desk keep is no part of this archive */
    settings.novelty_lags = lags;
    settings.novelty_differences = lags > 2;
    settings.novelty_kernel = kernel;
    settings.novelty_calibration = 150;
    settings.novelty_max = 30;
    stage_open(s, &settings);
}

static struct svi_judgement step(struct svi_alert_stage *s, double *x, const uint8_t *gaps, int t) {
    const struct svi_alert_sample sample = {.d = SENSORS, .x = x, .gaps = gaps, .time = t, .timed = true};
    stage_judge(s, &sample, false);
    svi_alert_stage_learn(s, &sample);
    return s->judgement;
}

static void reload(struct svi_alert_stage *s, int lags, int kernel) {
    struct svi_bytes kept = {0}, again = {0};
    svs_error err;
    if (archived_save(archive, s, &kept, &err) != SVS_OK)
        fail_msg("%s", err.text);
    svi_alert_stage_free(s);
    open_stage(s, lags, kernel);
    if (archived_load(archive, s, kept.data, kept.size, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(archived_save(archive, s, &again, &err), SVS_OK);
    assert_true(archived_same(&kept, &again));
    svi_bytes_clear(&kept);
    svi_bytes_clear(&again);
}

static void goes_on_from_an_archive_with_gaps(void **state) {
    (void)state;
    for (int k = 0; k < 6; k++) {
        const int lags = 1 + k / 3 * 2, kernel = k % 3;
        struct svi_alert_stage a, b, plain;
        uint64_t seed = 91 + (uint64_t)k;
        int told = 0;
        open_stage(&a, lags, kernel);
        open_stage(&b, lags, kernel);
        open_stage(&plain, lags, kernel); /* is not told of gaps */
        for (int t = 0; t < 1500; t++) {
            double x[SENSORS];
            uint8_t gaps[SENSORS];
            draw(&seed, SENSORS, x);
            for (int j = 0; j < SENSORS; j++)
                gaps[j] = test_uniform(&seed) < 0.3;
            if (t % 1000 > 700 && t % 1000 < 720)
                x[1] += 20;
            if (t % 97 == 31)
                reload(&b, lags, kernel);
            const struct svi_judgement one = step(&a, x, gaps, t), other = step(&b, x, gaps, t);
            told += one.surprise != step(&plain, x, NULL, t).surprise;
            assert_memory_equal(&one.surprise, &other.surprise, sizeof one.surprise);
            assert_true(one.p == other.p && one.excess == other.excess && a.grade == b.grade);
            for (int j = 0; j < SENSORS && t > lags; j++)
                assert_true(!isnan(a.rows.row[j]) == !gaps[j]);
        }
        assert_true(told > 1000);
        svi_alert_stage_free(&a);
        svi_alert_stage_free(&b);
        svi_alert_stage_free(&plain);
    }
}

/* Flags of which none is set change nothing. */
static void no_gap_no_difference(void **state) {
    (void)state;
    struct svi_alert_stage a, b;
    uint64_t seed = 17;
    static const uint8_t none[SENSORS];
    open_stage(&a, 1, SVS_NOVELTY_LAPLACIAN);
    open_stage(&b, 1, SVS_NOVELTY_LAPLACIAN);
    for (int t = 0; t < 600; t++) {
        double x[SENSORS];
        draw(&seed, SENSORS, x);
        const double one = step(&a, x, none, t).surprise, other = step(&b, x, NULL, t).surprise;
        assert_memory_equal(&one, &other, sizeof one);
    }
    svi_alert_stage_free(&a);
    svi_alert_stage_free(&b);
}

/* ---- a feature changes hands */

#define VALUES  5 /* of a category, each a feature of its own */
#define RENEWED (SENSORS + 2)
#define WIDE    (SENSORS + VALUES)
#define ROOM    16 /* columns of a stage to which more may come */

/* Sensors and one of VALUES values; `rare`: the share of rows with one of them. */
static void draw_category(uint64_t *seed, double rare, double *x) {
    const double what = test_uniform(seed);
    const int value = (int)(4 * test_uniform(seed));
    draw(seed, SENSORS, x);
    memset(x + SENSORS, 0, VALUES * sizeof *x);
    x[SENSORS + value + (value >= RENEWED - SENSORS)] = what >= rare;
    x[RENEWED] = what < rare;
}

static struct svi_judgement step_wide(struct svi_alert_stage *s, double *x, int t) {
    const struct svi_alert_sample sample = {.d = WIDE, .x = x, .time = t, .timed = true};
    stage_judge(s, &sample, true);
    svi_alert_stage_learn(s, &sample);
    return s->judgement;
}

/* Everything that follows from the raw values that are held is what they say. */
static void assert_consistent(const svi_detector *d) {
    const svs_novelty_model *v = &d->m.view;
    double *const u = aligned_alloc(64, (size_t)d->stride * sizeof *u);
    for (int i = 0; i < d->now.points && d->ready; i++) {
        const struct svi_points all = {d->m.at, d->stride, d->now.points, d->m.lacking > 0};
        svi_coordinates_apply(&d->m.coordinates, d->raw + (size_t)i * (size_t)d->o.d, u);
        for (int j = 0; j < d->stride; j++)
            assert_true(u[j] == d->m.at[i * d->stride + j] ||
                        (isnan(u[j]) && isnan(d->m.at[i * d->stride + j])));
        for (int g = 0; g < d->members; g++) {
            double k[256];
            const struct svi_active_set *h = &d->m.set[g];
            assert_int_equal(h->count, d->now.points);
            assert_true(h->z == v->member[g].z && v->member[g].count == h->count);
            svi_similarity_gap(&d->m.similarity, &all, 0, all.count, u, k);
            svi_similarity_of_gap(&d->m.similarity, v->member[g].gamma, k, d->m.norm2, d->m.norm2[i],
                                  all.count, k);
            for (int b = 0; b < h->count; b++)
                assert_true(b == i || fabs(h->k[i * h->capacity + b] - k[b]) <= 1e-12);
        }
    }
    assert_int_equal(d->ready && d->o.model.kernel != SVS_NOVELTY_POLYNOMIAL ? d->m.lacking : 0,
                     d->ready && d->o.model.kernel != SVS_NOVELTY_POLYNOMIAL ? count_lacking(d) : 0);
    assert_true(d->now.joined - d->now.left == d->now.points);
    free(u);
}

static void assert_says_nothing(const struct svi_alert_stage *s, int feature) {
    const svi_detector *d = s->detector;
    double low, high;
    for (int column = feature; column < d->o.d; column += s->rows.d) {
        for (int i = 0; i < d->calibration.ring.filled; i++)
            assert_true(!(d->rows[i * d->o.d + column] != 0) || isnan(d->rows[i * d->o.d + column]));
        for (int i = 0; i < d->now.points; i++)
            assert_true(!(d->raw[i * d->o.d + column] != 0) || isnan(d->raw[i * d->o.d + column]));
        assert_true(d->range.width[column] == 0);
        assert_true(!svi_detector_range(d, column, &low, &high) || (low == 0 && high == 0));
    }
}

static void consistent_after_any_renewal(void **state) {
    (void)state;
    for (int k = 0; k < often(24, 6); k++) {
        const int lags = 1 + k / 3 % 3 * 2, kernel = k % 3;
        struct svi_alert_stage a, b;
        uint64_t seed = 300 + (uint64_t)k;
        open_stage(&a, lags, kernel);
        open_stage(&b, lags, kernel);
        for (int t = 0; t < 1400; t++) {
            double x[WIDE];
            for (int j = SENSORS; j < WIDE && t > 20 && k % 2; j++) {
                svi_alert_stage_category(&a, j);
                svi_alert_stage_category(&b, t < 700 ? j : SENSORS); /* it is kept */
            }
            draw_category(&seed, 0.05, x);
            lose(&seed, WIDE, k % 2 ? 0.1 : 0, x);
            if (test_uniform(&seed) < 0.03) {
                const int feature = (int)(test_random(&seed) % WIDE);
                svi_alert_stage_renew(&a, feature);
                svi_alert_stage_renew(&b, feature);
                if (a.detector && t % 5 == 0) {
                    struct svi_detector_health h;
                    assert_says_nothing(&a, feature);
                    assert_consistent(a.detector);
                    svi_detector_health(a.detector, &h);
                    assert_true(k % 2 || kernel == SVS_NOVELTY_POLYNOMIAL || h.violation <= 1e-6);
                }
                if (t % 7 == 0)
                    reload(&b, lags, kernel);
            }
            const struct svi_judgement one = step_wide(&a, x, t), other = step_wide(&b, x, t);
            assert_true(isfinite(one.surprise) && (!a.judged || (one.p > 0 && one.p <= 1)));
            assert_memory_equal(&one.surprise, &other.surprise, sizeof one.surprise);
            assert_true(one.p == other.p && one.excess == other.excess);
        }
        svi_alert_stage_free(&a);
        svi_alert_stage_free(&b);
    }
}

/* Of a feature that was never set renewal changes nothing; and one that was often set is as new after it as
 * that. */
static void a_renewed_feature_is_new(void **state) {
    (void)state;
    for (int kernel = 0; kernel < 2; kernel++) {
        struct svi_alert_stage never, same, was;
        uint64_t seed = 41, again = 41;
        double x[ROOM] = {0}, y[ROOM] = {0}, before, novelty[2], p, usual;
        int suspicious = 0;
        open_stage(&never, 1, kernel);
        open_stage(&same, 1, kernel);
        open_stage(&was, 1, kernel);
        for (int t = 0; t < 3000; t++) {
            draw_category(&seed, 0, x);
            draw_category(&again, t < 2500 ? 0.05 : 0, y);
            if (t % 300 == 299)
                svi_alert_stage_renew(&same, RENEWED);
            const struct svi_judgement one = step_wide(&never, x, t), other = step_wide(&same, x, t);
            assert_memory_equal(&one.surprise, &other.surprise, sizeof one.surprise);
            assert_true(one.p == other.p);
            step_wide(&was, y, t);
        }
        memset(x, 0, sizeof x);
        for (int j = 0; j < SENSORS; j++)
            x[j] = 10 * j;
        x[RENEWED] = 1;
        assert_true(svi_detector_peek(was.detector, x, &before, &p));
        svi_alert_stage_renew(&was, RENEWED);
        assert_true(svi_detector_peek(was.detector, x, &novelty[0], &p));
        assert_true(svi_detector_peek(never.detector, x, &novelty[1], &p));
        x[RENEWED] = 0;
        x[RENEWED - 1] = 1;
        assert_true(svi_detector_peek(was.detector, x, &usual, &p));
        if (fabs(novelty[0] - novelty[1]) > 0.1 || novelty[0] < before + 0.1 || novelty[0] < usual + 0.1)
            fail_msg("novelty %g where it was %g, of a new feature %g, of a usual row %g", novelty[0], before,
                     novelty[1], usual);
        for (int t = 0; t < 1000; t++) { /* ten renewals later usual rows are usual */
            draw_category(&again, 0, y);
            if (t % 100 == 50)
                svi_alert_stage_renew(&was, RENEWED);
            suspicious += step_wide(&was, y, t).p <= 0.05;
        }
        assert_true(suspicious < 100);
        svi_alert_stage_free(&never);
        svi_alert_stage_free(&same);
        svi_alert_stage_free(&was);
    }
}

/* ---- categories beside sensors */

#define MACHINES 8
#define COLUMNS  (3 + MACHINES + 3 + 4)

/* Three sensors of one load; three categories, some of whose values come in less than a row of a hundred.
 * Returns whether there is one of these. */
static bool draw_machine(uint64_t *seed, double *x) {
    static const double share[] = {0.3, 0.2, 0.2, 0.1, 0.1, 0.07, 0.025, 0.005};
    const double load = test_normal(seed), kind = test_uniform(seed);
    double which = test_uniform(seed);
    int machine = 0;
    memset(x, 0, COLUMNS * sizeof *x);
    while (machine < MACHINES - 1 && which > share[machine])
        which -= share[machine++];
    for (int j = 0; j < 3; j++)
        x[j] = 10 + load + 0.5 * test_normal(seed);
    x[3 + machine] = 1;
    x[3 + MACHINES + (int)(3 * test_uniform(seed))] = 1;
    x[6 + MACHINES + (kind > 0.9) + (kind > 0.99) + (kind > 0.999)] = 1;
    return machine == MACHINES - 1 || kind > 0.99;
}

static void categories_drown_no_sensor(void **state) {
    (void)state;
    for (int kernel = 0; kernel < 2; kernel++) {
        struct svi_detector_options o = options(COLUMNS, kernel);
        uint64_t seed = 61;
        double x[COLUMNS], novelty, p;
        int rare = 0, called = 0, found = 0;
        o.calibration = 1000;
        svi_detector *d = start(&o);
        for (int j = 3; j < COLUMNS; j++)
            svi_detector_category(d, 1, j);
        for (int t = 0; t < 8000; t++) {
            const bool is = draw_machine(&seed, x);
            const struct svi_judgement j = feed(d, x);
            rare += t >= 3000 && is;
            called += t >= 3000 && is && j.p <= 0.01;
        }
        for (int i = 0; i < 500; i++) {
            draw_machine(&seed, x);
            x[0] += 4.5;
            assert_true(svi_detector_peek(d, x, &novelty, &p));
            found += p <= 0.01;
        }
        if (called > rare / 5 || found < 400)
            fail_msg("kernel %d: %d of %d rows of rare values have a p <= 0.01, of 500 faults %d were found",
                     kernel, called, rare, found);
        svi_detector_free(&d);
    }
}

/* ---- distances */

/* By its words: over the coordinates that both have, times d / their number. */
static double plain_distance(const double *a, const double *b, int d, bool absolute, double nothing) {
    double sum = 0;
    int shared = 0;
    for (int j = 0; j < d; j++)
        if (!isnan(a[j]) && !isnan(b[j])) {
            shared++;
            sum += absolute ? fabs(a[j] - b[j]) : (a[j] - b[j]) * (a[j] - b[j]);
        }
    return shared > 0 ? sum * d / shared : nothing;
}

static void distances_leave_out_what_is_missing(void **state) {
    (void)state;
    enum { N = 7, STRIDE = 24 };
    _Alignas(64) double x[N * STRIDE], v[STRIDE];
    for (int isa = 0; isa < 3; isa++)
        for (int d = 1; d <= STRIDE; d++)
            for (int k = 0; k < 8; k++) {
                static const svs_isa isas[] = {SVS_ISA_GENERIC, SVS_ISA_AVX2, SVS_ISA_AVX512};
                const struct svi_kernels *pass = svi_kernels_get(isas[isa]);
                uint64_t seed = 1 + (uint64_t)(100 * d + k);
                double one[N], all[N];
                memset(x, 0, sizeof x);
                memset(v, 0, sizeof v);
                if (!pass)
                    continue;
                for (int i = 0; i <= N; i++)
                    for (int j = 0; j < d; j++)
                        (i < N ? x + i * STRIDE : v)[j] =
                            test_uniform(&seed) < 0.2 * (k / 2) ? NAN : test_normal(&seed);
                (k % 2 ? pass->rows_l1_shared : pass->rows_l2_shared)(x, STRIDE, N, STRIDE, v, d, 5, one);
                (k % 2 ? pass->rows_l1 : pass->rows_l2)(x, STRIDE, N, STRIDE, v, all);
                for (int i = 0; i < N; i++) {
                    const double plain = plain_distance(x + i * STRIDE, v, d, k % 2, 5);
                    assert_true(fabs(one[i] - plain) <= 1e-12 * (1 + plain));
                }
                if (k < 2)
                    assert_memory_equal(one, all, sizeof one);
            }
}

/* What else a score is made of, of every instruction set: coordinates and sums of kernel values. */
static void coordinates_and_sums(void **state) {
    (void)state;
    enum { N = 23 };
    static const svs_isa isas[] = {SVS_ISA_GENERIC, SVS_ISA_AVX2, SVS_ISA_AVX512};
    for (int isa = 0; isa < 3; isa++)
        for (int n = 0; n <= N && svi_kernels_get(isas[isa]); n++) {
            const struct svi_kernels *pass = svi_kernels_get(isas[isa]);
            double x[N], center[N], inverse[N], to[N + 1], z[SVI_DECAY_MAX][N], sum[SVI_DECAY_MAX];
            const double *at[SVI_DECAY_MAX];
            uint64_t seed = 5 + (uint64_t)n;
            for (int j = 0; j < n; j++) {
                x[j] = test_normal(&seed) * exp(4 * test_normal(&seed));
                center[j] = j % 3 ? test_normal(&seed) : x[j];
                inverse[j] = j % 5 == 4 ? 1e300 : exp(test_normal(&seed));
                for (int g = 0; g < SVI_DECAY_MAX; g++)
                    z[g][j] = test_uniform(&seed);
            }
            to[n] = 7;
            pass->squash(x, center, inverse, n, to);
            assert_true(to[n] == 7);
            for (int j = 0; j < n; j++) {
                const double u = (x[j] - center[j]) * inverse[j], size = fmin(fabs(u), 1e150);
                const double bent = SVI_SQUASH_BEND * asinh(size / SVI_SQUASH_BEND);
                const double should = copysign(bent + fmax(0, size - SVI_SQUASH_LIMIT), u);
                assert_true(fabs(to[j] - should) <= 1e-15 * fabs(should) + 1e-15);
                x[j] = fabs(x[j]); /* distances */
            }
            for (int count = 1; count <= SVI_DECAY_MAX; count++) {
                const double gamma = 0.3 / (double)(n + 1);
                for (int g = 0; g < count; g++)
                    at[g] = z[g];
                pass->decay_dots(x, gamma, n, at, count, sum);
                for (int g = 0; g < count; g++) {
                    double should = 0;
                    for (int j = 0; j < n; j++)
                        should += z[g][j] * exp(-ldexp(gamma, 2 * g) * x[j]);
                    assert_true(fabs(sum[g] - should) <= 1e-13 * should);
                }
            }
        }
}

/* ---- files */

static svs_rows view(const double *x, int64_t n, int d) {
    return (svs_rows){.n = n, .d = d, .dense = x, .stride = d};
}

/* full: it has as many points as it may and not as many as it wants. */
static void assert_sound_model(const svs_novelty_model *m, const double *x, int n, bool full) {
    double *surprise = malloc((size_t)n * sizeof *surprise), adds[SENSORS];
    const svs_rows r = view(x, n, SENSORS);
    int outside = 0;
    assert_int_equal(svs_novelty_score(m, &r, 0, n, NULL, surprise, NULL), SVS_OK);
    for (int i = 0; i < n; i++) {
        assert_true(isfinite(surprise[i]));
        outside += surprise[i] > 0.7;
    }
    assert_true(full || outside < n / 4);
    assert_int_equal(svs_novelty_explain(m, x, adds, NULL), SVS_OK);
    for (int j = 0; j < SENSORS; j++)
        assert_true(isnan(x[j]) ? adds[j] == 0 : isfinite(adds[j]));
    free(surprise);
}

static void rows_of_files_lack_values(void **state) {
    (void)state;
    const int n = often(1500, 400);
    double *x = malloc((size_t)n * SENSORS * sizeof *x);
    for (int k = 0; k < 12; k++) {
        svs_novelty_options o;
        svs_novelty_model *m = NULL, *read;
        svs_error err = {0};
        uint64_t seed = 3 + (uint64_t)k;
        svs_novelty_options_default(&o);
        o.kernel = (svs_novelty_kernel)(k % 3);
        o.fosvm = 1 + k / 3 % 2;
        o.max = k < 6 ? 200 : 0;
        for (int i = 0; i < n; i++) {
            draw(&seed, SENSORS, x + i * SENSORS);
            lose(&seed, SENSORS, k < 6 ? 0.5 : 0.15, x + i * SENSORS);
        }
        x[1] = NAN;
        const svs_rows r = view(x, n, SENSORS);
        if (svs_novelty_train(&r, NULL, &o, &m, &err) != SVS_OK)
            fail_msg("%s", err.text);
        assert_sound_model(m, x, n, k < 6);
        assert_int_equal(svi_novelty_file_write(m, "gaps.novelty", &err), SVS_OK);
        read = svi_novelty_file_read("gaps.novelty", &err);
        if (!read)
            fail_msg("%s", err.text);
        double before[50], after[50];
        assert_int_equal(svs_novelty_score(m, &r, 0, 50, NULL, before, NULL), SVS_OK);
        assert_int_equal(svs_novelty_score(read, &r, 0, 50, NULL, after, NULL), SVS_OK);
        assert_memory_equal(before, after, sizeof before);
        svs_novelty_free(&m);
        svs_novelty_free(&read);
    }
    remove("gaps.novelty");
    free(x);
}

/* A model of whole rows: what is missing is left out, and another sensor's fault is seen. */
static void whole_models_score_rows_with_gaps(void **state) {
    (void)state;
    enum { N = 600 };
    static double x[N * SENSORS];
    uint64_t seed = 8;
    svs_novelty_options o;
    svs_novelty_model *m = NULL;
    for (int i = 0; i < N; i++)
        draw(&seed, SENSORS, x + i * SENSORS);
    const svs_rows all = view(x, N, SENSORS);
    svs_novelty_options_default(&o);
    assert_int_equal(svs_novelty_train(&all, NULL, &o, &m, NULL), SVS_OK);
    double rows[3 * SENSORS] = {0, 0, 20, 0, NAN, 0, 20, 0, NAN, 9, 20, 0}, surprise[3];
    for (int i = 0; i < 3; i++) {
        rows[i * SENSORS + 1] += 10;
        rows[i * SENSORS + 3] += 30;
    }
    const svs_rows r = view(rows, 3, SENSORS);
    assert_int_equal(svs_novelty_score(m, &r, 0, 3, NULL, surprise, NULL), SVS_OK);
    assert_true(fabs(surprise[0]) < 1 && fabs(surprise[1] - surprise[0]) < 1 && surprise[2] > 3);
    svs_novelty_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(honest_with_gaps),
        cmocka_unit_test(faults_are_found_beside_gaps),
        cmocka_unit_test(a_gap_is_no_reason),
        cmocka_unit_test(bounded_on_any_walk_with_gaps),
        cmocka_unit_test(goes_on_from_an_archive_with_gaps),
        cmocka_unit_test(no_gap_no_difference),
        cmocka_unit_test(consistent_after_any_renewal),
        cmocka_unit_test(a_renewed_feature_is_new),
        cmocka_unit_test(categories_drown_no_sensor),
        cmocka_unit_test(distances_leave_out_what_is_missing),
        cmocka_unit_test(coordinates_and_sums),
        cmocka_unit_test(rows_of_files_lack_values),
        cmocka_unit_test(whole_models_score_rows_with_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
