/* Novelty that is kept and taken up again at any moment, whatever the options: every judgement, alert and
 * archive after it is that of a stream that went on. And no bytes harm who loads them. */
#include "support/problem.h"

#include "novelty/detector.h"
#include "support/archived.h"
#include "support/stage.h"

#define WIDEST  20
#define COLUMNS 128 /* with room for more and lags */

static bool quick(void) {
    return getenv("SVMSTREAM_QUICK") != NULL;
}

static void archive(struct svi_archive *a, void *sentry) {
    svi_alert_stage_archive(a, sentry);
    if (svi_archive_ok(a) && svi_alert_stage_has_policy(sentry))
        svi_alert_stage_policy_archive(a, sentry);
    if (svi_archive_ok(a) && svi_alert_stage_has_policy(sentry))
        svi_alert_stage_detectors_archive(a, sentry);
}

/* ---- streams */

/* Drifts, jumps, stands still, repeats itself; columns come now and then. */
struct walk {
    uint64_t seed;
    int d, t;
    double at[WIDEST];
};

static struct svi_alert_sample step(struct walk *w) {
    const double what = test_uniform(&w->seed);
    const bool away = w->t++ / 150 % 3 == 2;
    if (what > 0.997 && w->d < WIDEST)
        w->d++;
    for (int j = 0; j < w->d; j++) {
        if (what < 0.7)
            w->at[j] += 0.05 * test_normal(&w->seed);
        else if (what > 0.995)
            w->at[j] = 20 * test_normal(&w->seed);
        else if (what > 0.8)
            w->at[j] += test_normal(&w->seed) - 0.1 * w->at[j] + (away && what > 0.95 ? 5 : 0);
    }
    return (struct svi_alert_sample){
        .d = w->d, .x = w->at, .timed = true, .labelled = what * 1000 - floor(what * 1000) < 0.3};
}

static struct svi_settings any_settings(uint64_t *seed) {
    static const char *const gammas[] = {"auto", "median", "scale", "0.3"};
    struct svi_settings s;
    svi_settings_default(&s);
    s.novelty = SVI_NOVELTY_FOSVM1 + (int)(test_random(seed) % 2);
    s.novelty_kernel = (int)(test_random(seed) % 3);
    strcpy(s.novelty_gamma, gammas[test_random(seed) % 4]);
    s.novelty_theta = 0.01 + 0.4 * test_uniform(seed);
    s.novelty_epsilon = 0.05 + 0.3 * test_uniform(seed);
    s.novelty_trim = 0.4 * test_uniform(seed);
    s.novelty_max = 2 + (int)(test_random(seed) % 60);
    s.novelty_window = (int64_t)(test_random(seed) % 5 * 150);
    s.novelty_lags = 1 + (int)(test_random(seed) % 4);
    s.novelty_differences = (int)(test_random(seed) % 2);
    s.novelty_calibration = 1 + (int)(test_random(seed) % 400);
    s.novelty_learn = (int)(test_random(seed) % 4);
    s.novelty_confirm = 1 + (int)(test_random(seed) % 20);
    s.novelty_persist = (int64_t)(test_random(seed) % 40);
    s.novelty_warmup = (int64_t)(test_random(seed) % 100);
    s.alert_p = 0.001 + 0.1 * test_uniform(seed);
    s.alert_clear = s.alert_p + 0.2 * test_uniform(seed);
    s.alert_cooldown = (double)(test_random(seed) % 20);
    s.alert_fdr = test_random(seed) % 2 ? 0.2 : 0;
    strcpy(s.alert_budget, s.alert_fdr > 0 && test_random(seed) % 2 ? "300/hour" : "none");
    return s;
}

static void open_sentry(struct svi_alert_stage *s, const struct svi_settings *settings, int walk) {
    stage_open(s, settings);
    s->options.model.scale = walk % 4 != 3;
}

struct judged {
    enum svi_alert_change change;
    double surprise, novelty, membership, p, tail, grade, level, adds[COLUMNS], low, high;
};

static struct judged feed(struct svi_alert_stage *s, const struct svi_alert_sample *m, int t) {
    struct judged j;
    struct svi_alert_sample sample = *m;
    sample.time = t;
    memset(&j, 0, sizeof j); /* gaps, too: it is compared as bytes */
    if (t % 331 == 330)
        svi_alert_stage_gap(s);
    j.change = stage_judge(s, &sample, true);
    if (s->judged) {
        j.surprise = s->judgement.surprise;
        j.novelty = s->judgement.novelty;
        j.membership = s->judgement.membership;
        j.p = s->judgement.p;
        j.tail = s->judgement.tail;
        j.grade = s->grade;
        j.level = svi_detector_level(s->detector);
        if (s->rows.d * s->lags <= COLUMNS && t % 7 == 0) {
            svi_detector_explain(s->detector, j.adds);
            svi_detector_normal_range(s->detector, m->d - 1, &j.low, &j.high);
        }
    }
    svi_alert_stage_learn(s, m);
    return j;
}

/* ---- the same for ever */

/* What states were saved in. */
static struct {
    int ready, unready, renewed, held, runs, alerts, full, candidates, flags, tails, widened, nothing, calm,
        ranges, far, waits, budgets, refreshing;
} met;

static void note(const struct svi_alert_stage *s, int first) {
    const struct svi_detector *d = s->detector;
    met.nothing += !d;
    met.alerts += s->alert.open;
    met.budgets += s->alert.open && svi_alert_policy_is_on(&s->policy);
    met.calm += !s->alert.open && s->alert.opened > 0;
    if (!d)
        return;
    met.ready += d->ready;
    met.unready += !d->ready;
    met.renewed += d->now.refreshes > 3;
    met.held += d->now.held_count > 0;
    met.runs += d->now.run > 0;
    met.refreshing += d->renewal->on && d->renewal->due > 0 && d->renewal->changed > 0;
    met.full += d->calibration.ring.filled == d->calibration.ring.window && d->calibration.ring.slot > 0;
    met.candidates += d->now.candidates > 0;
    met.flags += d->now.novel_count > (d->o.persist + d->o.persist / 4);
    met.tails += d->calibration.stale > 0 && d->calibration.tail.count > 0;
    met.widened += s->rows.d > first;
    met.ranges += d->range.counts;
    met.far += d->range.far_count > 0;
    met.waits += d->range.of[SVI_RANGE_RUN].rows > 0;
}

static void save(struct svi_alert_stage *s, struct svi_bytes *to) {
    svs_error err;
    if (archived_save(archive, s, to, &err) != SVS_OK)
        fail_msg("%s", err.text);
}

static void load(struct svi_alert_stage *s, const struct svi_bytes *from) {
    svs_error err;
    if (archived_load(archive, s, from->data, from->size, &err) != SVS_OK)
        fail_msg("%s", err.text);
}

static void assert_same_state(struct svi_alert_stage *a, struct svi_alert_stage *b, const char *when, int t) {
    struct svi_bytes one = {0}, other = {0};
    save(a, &one);
    save(b, &other);
    if (!archived_same(&one, &other))
        fail_msg("%s sample %d the archives differ", when, t);
    svi_bytes_clear(&one);
    svi_bytes_clear(&other);
}

/* What is reported the two besides judgements. */
static void assert_same_figures(struct svi_alert_stage *a, struct svi_alert_stage *b) {
    struct svi_detector_health one = {0}, other = {0};
    const struct svi_alert *x = &a->alert, *y = &b->alert;
    if (a->detector) {
        svi_detector_health(a->detector, &one);
        svi_detector_health(b->detector, &other);
    }
    assert_true(one.seen == other.seen && one.joined == other.joined && one.left == other.left);
    assert_true(one.refreshes == other.refreshes && one.held_out == other.held_out);
    assert_true(one.points == other.points && one.calibration == other.calibration);
    assert_true(one.violation == other.violation);
    assert_true(x->open == y->open && x->since == y->since && x->closed == y->closed);
    assert_true(x->lasted == y->lasted && x->grade == y->grade && x->worst == y->worst);
    assert_true(x->seen == y->seen && x->opened == y->opened && x->suppressed == y->suppressed);
    assert_memory_equal(&x->discovery, &y->discovery, sizeof x->discovery);
    assert_true(a->refused == b->refused && a->on == b->on);
    assert_string_equal(a->reason, b->reason);
}

/* The second of the two is replaced by what is loaded of it, again and again. */
static void goes_on_as_if_nothing_had_happened(void **state) {
    (void)state;
    const int walks = quick() ? 10 : 100, length = 1300;
    for (int k = 0; k < walks; k++) {
        uint64_t seed = 4000 + (uint64_t)k;
        struct svi_settings settings = any_settings(&seed);
        struct walk w = {.seed = 600 + (uint64_t)k,
                         .d = 1 + (int)(test_random(&seed) % 6) + (k % 3 ? 0 : 12)};
        struct svi_alert_stage a, b;
        struct svi_bytes kept = {0};
        open_sentry(&a, &settings, k);
        open_sentry(&b, &settings, k);
        for (int t = 0; t < length; t++) {
            if (t == 0 || test_random(&seed) % 40 == 0) {
                note(&b, 16);
                save(&b, &kept);
                svi_alert_stage_free(&b);
                open_sentry(&b, &settings, k);
                load(&b, &kept);
                assert_same_state(&a, &b, "before", t);
                assert_same_figures(&a, &b);
            }
            const struct svi_alert_sample m = step(&w);
            const struct judged one = feed(&a, &m, t), other = feed(&b, &m, t);
            if (memcmp(&one, &other, sizeof one) != 0)
                fail_msg("walk %d, sample %d: surprise %a and %a, p %g and %g, change %d and %d", k, t,
                         one.surprise, other.surprise, one.p, other.p, one.change, other.change);
        }
        assert_same_state(&a, &b, "after", length);
        svi_alert_stage_free(&a);
        svi_alert_stage_free(&b);
        svi_bytes_clear(&kept);
    }
    assert_true(met.ready && met.unready && met.renewed && met.runs && met.alerts && met.full && met.nothing);
    assert_true(met.candidates && met.flags && met.calm);
    assert_true(quick() || (met.held && met.tails && met.widened && met.ranges && met.far && met.waits &&
                            met.budgets && met.refreshing));
}

/* ---- what cannot be */

static void put_ints(uint8_t *at, int64_t v) {
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)((uint64_t)v >> (56 - 8 * i));
}

/* One to three bytes, or a whole number somewhere near the beginning. */
static void damage(uint8_t *bytes, size_t size, uint64_t *seed) {
    static const int64_t odd[] = {-1, 0, 1, 2, 7, 255, INT32_MAX, INT64_MAX, INT64_MIN, (int64_t)1 << 60};
    const size_t near = size < 900 ? size : 900;
    const uint64_t what = test_random(seed) % 4;
    for (size_t i = 0; what == 0 && i + 9 < size; i++)
        if (bytes[i] == 0xd3 && test_random(seed) % 25 == 0) {
            put_ints(bytes + i + 1, odd[test_random(seed) % (sizeof odd / sizeof *odd)]);
            return;
        }
    for (uint64_t i = 0; i < what; i++)
        bytes[test_random(seed) % (what == 1 ? near : size)] ^= (uint8_t)(1u << test_random(seed) % 8);
}

/* What cannot be told from a state goes on as one, in every option and policy. */
static void survive(struct svi_alert_stage *s, struct walk w, int from) {
    for (int t = 0; t < 200; t++) {
        const struct svi_alert_sample m = step(&w);
        feed(s, &m, from + t);
    }
    assert_same_state(s, s, "at", from);
}

static void damage_is_refused_or_harmless(void **state) {
    (void)state;
    const int walks = quick() ? 8 : 40, each = quick() ? 12 : 60, lengths[] = {3, 40, 300, 800};
    int refused = 0, taken = 0;
    for (int k = 0; k < walks; k++) {
        uint64_t seed = 70 + (uint64_t)k;
        struct svi_settings settings = any_settings(&seed);
        struct walk w = {.seed = 90 + (uint64_t)k, .d = 2};
        struct svi_alert_stage s;
        struct svi_bytes kept = {0};
        const int length = lengths[k % 4];
        settings.novelty_max = settings.novelty_max / 3 + 2;
        open_sentry(&s, &settings, k);
        for (int t = 0; t < length; t++) {
            const struct svi_alert_sample m = step(&w);
            feed(&s, &m, t);
        }
        save(&s, &kept);
        svi_alert_stage_free(&s);
        for (int i = 0; i < each; i++) {
            svs_error err;
            uint8_t *bad = malloc(kept.size);
            memcpy(bad, kept.data, kept.size);
            damage(bad, kept.size, &seed);
            open_sentry(&s, &settings, k);
            const svs_code code = archived_load(archive, &s, bad, kept.size, &err);
            if (code == SVS_OK)
                survive(&s, w, length);
            else
                assert_true(code == SVS_DAMAGED && strlen(err.text) > 10);
            refused += code != SVS_OK;
            taken += code == SVS_OK;
            svi_alert_stage_free(&s);
            free(bad);
        }
        svi_bytes_clear(&kept);
    }
    assert_true(refused > walks * each / 4 && taken > 0);
}

/* Every beginning of an archive is refused. */
static void cut_off(void **state) {
    (void)state;
    uint64_t seed = 5;
    struct svi_settings settings = any_settings(&seed);
    struct walk w = {.seed = 8, .d = 2};
    struct svi_alert_stage s;
    struct svi_bytes kept = {0};
    svs_error err;
    open_sentry(&s, &settings, 0);
    for (int t = 0; t < 200; t++) {
        const struct svi_alert_sample m = step(&w);
        feed(&s, &m, t);
    }
    save(&s, &kept);
    svi_alert_stage_free(&s);
    for (size_t size = 0; size < kept.size; size += 1 + size / 10) {
        open_sentry(&s, &settings, 0);
        assert_int_equal(archived_load(archive, &s, kept.data, size, &err), SVS_DAMAGED);
        svi_alert_stage_free(&s);
    }
    svi_bytes_clear(&kept);
}

/* A state of other options is refused where it cannot fit. */
static void other_options(void **state) {
    (void)state;
    struct svi_settings with, without;
    struct svi_alert_stage s;
    struct svi_bytes kept = {0};
    struct walk w = {.seed = 8, .d = 2};
    svs_error err;
    svi_settings_default(&with);
    with.novelty = SVI_NOVELTY_FOSVM1;
    without = with;
    without.novelty = SVI_NOVELTY_NONE;
    open_sentry(&s, &with, 0);
    for (int t = 0; t < 500; t++) {
        const struct svi_alert_sample m = step(&w);
        feed(&s, &m, t);
    }
    save(&s, &kept);
    svi_alert_stage_free(&s);
    for (int k = 0; k < 4; k++) {
        struct svi_settings other = k == 0 ? without : with;
        other.novelty_calibration = k == 1 ? 20 : other.novelty_calibration;
        other.novelty_max = k == 2 ? 3 : other.novelty_max;
        other.novelty_kernel = k == 3 ? SVS_NOVELTY_POLYNOMIAL : other.novelty_kernel;
        stage_open(&s, &other);
        assert_int_equal(archived_load(archive, &s, kept.data, kept.size, &err), SVS_DAMAGED);
        svi_alert_stage_free(&s);
    }
    svi_bytes_clear(&kept);
}

/* Too many columns: it is off, says why, and stays so. */
static void gone_off(void **state) {
    (void)state;
    static double wide[SVI_ALERT_STAGE_COLUMNS + 1];
    struct svi_settings settings;
    struct svi_alert_stage a, b;
    struct svi_bytes kept = {0};
    struct svi_alert_sample m = {.d = 3, .x = wide, .timed = true};
    svi_settings_default(&settings);
    settings.novelty = SVI_NOVELTY_FOSVM1;
    open_sentry(&a, &settings, 0);
    open_sentry(&b, &settings, 0);
    feed(&a, &m, 0);
    m.d = SVI_ALERT_STAGE_COLUMNS + 1;
    feed(&a, &m, 1);
    assert_false(a.on);
    save(&a, &kept);
    load(&b, &kept);
    assert_same_figures(&a, &b);
    assert_same_state(&a, &b, "after", 2);
    assert_false(b.on);
    assert_int_equal(feed(&b, &m, 2).change, SVI_ALERT_NONE);
    svi_alert_stage_free(&a);
    svi_alert_stage_free(&b);
    svi_bytes_clear(&kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on_as_if_nothing_had_happened), cmocka_unit_test(damage_is_refused_or_harmless),
        cmocka_unit_test(cut_off), cmocka_unit_test(other_options), cmocka_unit_test(gone_off)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
