/* The desk: a stream in which nothing is wrong stays within its budget, whatever the law of its surprises and
 * however they hang together; episodes follow their rules; what is kept goes on bit for bit. */
#include "support/problem.h"

#include "alerts/alert_policy.h"
#include "support/archived.h"

#define MINUTE 60.0
#define DAY    (1440 * MINUTE)

/* ---- streams of surprises */

enum law { HONEST, HEAVY, HANGS_TOGETHER, SLOW_AND_HEAVY, RARE_BURSTS, LAWS };

static const char *const law_names[LAWS] = {"honest", "heavy", "hangs together", "slow and heavy",
                                            "rare bursts"};

struct source {
    enum law law;
    double z, left;
};

/* -log10 of a p-value of |z|, about. */
static double of_normal(double z) {
    return -log10(fmax(1e-300, erfc(fabs(z) / sqrt(2))));
}

static double surprise(struct source *s, uint64_t *seed) {
    const double keep = s->law == HANGS_TOGETHER ? 0.9 : 0.995;
    switch (s->law) {
    case HEAVY: /* Pareto-like: estimates of p that are far too small */
        return 0.5 / pow(test_uniform(seed), 0.4) - 0.5;
    case HANGS_TOGETHER:
    case SLOW_AND_HEAVY:
        s->z = keep * s->z + sqrt(1 - keep * keep) * test_normal(seed);
        return of_normal(s->z) * (s->law == SLOW_AND_HEAVY ? 4 : 1);
    case RARE_BURSTS: /* a normal transient, three times a day */
        s->left = test_uniform(seed) < 3.0 / 1440 ? 10 : s->left - 1;
        return s->left > 0 ? 6 + 3 * test_uniform(seed) : -log10(test_uniform(seed));
    default:
        return -log10(test_uniform(seed));
    }
}

struct outcome {
    double early, late; /* episodes a day: in the first three days, after them */
};

static struct outcome live(enum law law, int judges, double a_day, double interval, int days, uint64_t seed) {
    const struct svi_alert_policy_options o = {.a_day = a_day, .group = 60, .clear = 0.05, .warmup = 100};
    struct svi_alert_policy *d = malloc(sizeof *d);
    struct svi_alert a = {.closed = 0};
    struct source source[SVI_DETECTORS];
    double opened[2] = {0};
    svi_alert_policy_init(d, &o);
    for (int i = 0; i < SVI_DETECTORS; i++)
        source[i] = (struct source){.law = law};
    const int rows = (int)(days * DAY / interval);
    for (int t = 0; t < rows; t++) {
        struct svi_evidence f[SVI_DETECTORS] = {{0}};
        for (int i = 0; i < judges; i++)
            f[i] = (struct svi_evidence){.surprise = surprise(&source[i], &seed), .feature = i};
        opened[t * interval >= 3 * DAY] +=
            svi_alert_policy_step(d, &a, f, t * interval, true) == SVI_ALERT_OPEN;
    }
    svi_alert_policy_clear(d);
    free(d);
    return (struct outcome){opened[0] / 3, opened[1] / (days - 3)};
}

static void stays_within_its_budget(void **state) {
    (void)state;
    for (int law = 0; law < LAWS; law++)
        for (int judges = 1; judges <= SVI_DETECTORS; judges += SVI_DETECTORS - 1) {
            struct outcome sum = {0};
            for (uint64_t seed = 1; seed <= 5; seed++) {
                const struct outcome o = live((enum law)law, judges, 1, MINUTE, 28, seed);
                sum.early += o.early / 5;
                sum.late += o.late / 5;
            }
            print_message("%-16s %d judges: %.2f alerts a day in the first 3 days, %.2f after them\n",
                          law_names[law], judges, sum.early, sum.late);
            assert_true(sum.late <= 1.1); /* of 125 days */
            assert_true(sum.early <= 4);  /* six judges, each with records of its own */
            if (law == HONEST)
                assert_true(sum.late >= 0.5 && sum.late <= 1.05);
        }
}

static void policy_archive(struct svi_archive *a, void *policy) {
    svi_alert_policy_archive(a, policy);
}

/* ---- streams that drift: no past is like the future */

enum drift { WALK, AUTOREGRESSIVE, DRIFTS };

/* Surprises of Gumbel size, whose scale drifts by the law. */
static double drifting(enum drift law, double *log_scale, uint64_t *seed) {
    const double step = 0.005 * test_normal(seed);
    *log_scale = law == WALK ? *log_scale + step : 0.999 * *log_scale + 2 * step;
    *log_scale = fmax(-1, fmin(*log_scale, 1)); /* the surprises of a detector have some size */
    return -log10(test_uniform(seed)) * exp(*log_scale);
}

/* Alerts over the budget, by the time that one alert takes, after the first FIRST. */
static void drifts_use_what_the_budget_grants(void **state) {
    (void)state;
    enum { FIRST = 10, PERIODS = 100, ROWS = 1440 };
    for (int law = 0; law < DRIFTS; law++) {
        double sum = 0;
        for (uint64_t walk = 1; walk <= 5; walk++) {
            const struct svi_alert_policy_options o = {.a_day = 1, .group = 60, .clear = 0.05, .warmup = 100};
            struct svi_alert_policy *d = malloc(sizeof *d), *e = malloc(sizeof *e);
            struct svi_alert a = {.closed = 0}, b;
            struct svi_bytes one = {0}, two = {0};
            svs_error err = {0};
            uint64_t seed = walk;
            double scale[SVI_DETECTORS] = {0};
            int opened = 0;
            svi_alert_policy_init(d, &o);
            svi_alert_policy_init(e, &o);
            for (int t = 0; t < (FIRST + PERIODS) * ROWS; t++) {
                struct svi_evidence f[SVI_DETECTORS];
                for (int i = 0; i < SVI_DETECTORS; i++)
                    f[i] = (struct svi_evidence){.surprise = drifting((enum drift)law, &scale[i], &seed),
                                                 .feature = i};
                if (t == (FIRST + PERIODS / 2) * ROWS + 7) { /* in the middle of it: kept, and both go on */
                    assert_int_equal(archived_save(policy_archive, d, &one, &err), SVS_OK);
                    assert_int_equal(archived_load(policy_archive, e, one.data, one.size, &err), SVS_OK);
                    b = a;
                }
                const enum svi_alert_change c = svi_alert_policy_step(d, &a, f, t * MINUTE, true);
                opened += t >= FIRST * ROWS && c == SVI_ALERT_OPEN;
                if (t >= (FIRST + PERIODS / 2) * ROWS + 7)
                    assert_int_equal(c, svi_alert_policy_step(e, &b, f, t * MINUTE, true));
            }
            assert_int_equal(archived_save(policy_archive, d, &one, &err), SVS_OK);
            assert_int_equal(archived_save(policy_archive, e, &two, &err), SVS_OK);
            assert_true(archived_same(&one, &two));
            print_message("drift %d, walk %d: %.2f of the budget\n", law, (int)walk,
                          opened / (double)PERIODS);
            assert_true(opened <= 1.05 * PERIODS);
            sum += opened / (double)PERIODS / 5;
            svi_bytes_clear(&one);
            svi_bytes_clear(&two);
            svi_alert_policy_clear(d);
            svi_alert_policy_clear(e);
            free(d);
            free(e);
        }
        assert_true(sum >= 0.5 && sum <= 1);
    }
}

/* A verdict true takes the alert from the counts and lowers all that follows from them. */
static void a_true_alert_leaves_the_past(void **state) {
    (void)state;
    const struct svi_alert_policy_options o = {.a_day = 1, .group = 60, .clear = 0.05, .warmup = 100};
    int verdicts = 0, lower = 0;
    for (uint64_t walk = 1; walk <= 10; walk++) {
        struct svi_alert_policy *d = malloc(sizeof *d);
        struct svi_alert a = {.closed = 0};
        uint64_t seed = walk;
        svi_alert_policy_init(d, &o);
        for (int t = 0; t < 20 * 1440; t++) {
            struct svi_evidence f[SVI_DETECTORS];
            for (int i = 0; i < SVI_DETECTORS; i++)
                f[i] = (struct svi_evidence){.surprise = -log10(test_uniform(&seed)), .feature = i};
            const enum svi_alert_change c = svi_alert_policy_step(d, &a, f, t * MINUTE, true);
            if (c != SVI_ALERT_CLOSE || test_random(&seed) % 4 > 0)
                continue;
            const struct svi_budget before = d->budget;
            struct svi_budget without = before; /* the verdict: only its levels are set */
            svi_budget_leave_out(&without, 0);
            svi_budget_leave_out(&d->budget, a.opened);
            for (int i = 0; i < SVI_DETECTORS; i++)
                assert_true(d->budget.detector[i].level <= without.detector[i].level * (1 + 1e-9));
            for (int k = 0; k < SVI_BUDGET_LEVELS; k++) {
                const float left = d->budget.counts.opened[k], had = without.counts.opened[k];
                assert_true(left >= 0 && left <= had && had - left <= 1);
                lower += left < had;
            }
            assert_true(d->budget.balance <= fmax(0, before.balance)); /* not below where a floor decides */
            /* Once only. */
            const struct svi_budget after = d->budget;
            svi_budget_leave_out(&d->budget, a.opened);
            assert_memory_equal(&after.counts, &d->budget.counts, sizeof after.counts);
            assert_true(after.balance == d->budget.balance);
            verdicts++;
        }
        svi_alert_policy_clear(d);
        free(d);
    }
    print_message("%d verdicts, %d counts lower\n", verdicts, lower);
    assert_true(verdicts > 50 && lower > verdicts);
}

/* Rows every 5 ms, every second, every hour; budgets of all sizes. */
static void whatever_the_pace(void **state) {
    (void)state;
    static const struct {
        double a_day, interval;
        int days;
    } cases[] = {{1, 3600, 200}, {24, MINUTE, 20}, {2.0 / 7, MINUTE, 60}, {240, 5, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int law = HEAVY; law <= SLOW_AND_HEAVY; law++) {
            double late = 0;
            for (uint64_t seed = 1; seed <= 3; seed++)
                late +=
                    live((enum law)law, SVI_DETECTORS, cases[i].a_day, cases[i].interval, cases[i].days, seed)
                        .late /
                    3;
            print_message("%g a day, a row in %g s, %s: %.2f\n", cases[i].a_day, cases[i].interval,
                          law_names[law], late);
            assert_true(late <= cases[i].a_day * 1.1);
        }
}

/* One judge's heavy surprises raise its own level alone. */
static void no_judge_masks_another(void **state) {
    (void)state;
    const struct svi_alert_policy_options o = {.a_day = 1, .group = 60, .clear = 0.05, .warmup = 100};
    struct svi_alert_policy *d = malloc(sizeof *d);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t random = seed;
        struct svi_alert a = {.closed = 0};
        struct source heavy = {.law = SLOW_AND_HEAVY};
        int found = 0;
        svi_alert_policy_init(d, &o);
        for (int t = 0; t < 15 * 1440; t++) {
            struct svi_evidence f[SVI_DETECTORS] = {{0}};
            f[SVI_DETECTOR_ROW].surprise = surprise(&heavy, &random);
            f[SVI_DETECTOR_LEVEL].surprise = -log10(test_uniform(&random));
            if (t >= 14 * 1440 && t < 14 * 1440 + 360)
                f[SVI_DETECTOR_LEVEL].surprise = 7;
            const enum svi_alert_change c = svi_alert_policy_step(d, &a, f, t * MINUTE, true);
            found += t >= 14 * 1440 && t < 14 * 1440 + 5 && c != SVI_ALERT_NONE &&
                     d->detector == SVI_DETECTOR_LEVEL;
        }
        assert_true(found > 0);
        svi_alert_policy_clear(d);
    }
    free(d);
}

/* ---- walks */

struct walk_state {
    double surprise[SVI_DETECTORS];
    double time;
};

static void walk_step(struct walk_state *w, struct svi_evidence *f, uint64_t *seed) {
    for (int i = 0; i < SVI_DETECTORS; i++) {
        const double u = test_uniform(seed);
        w->surprise[i] =
            u < 0.02 ? 12 * test_uniform(seed) : 0.8 * w->surprise[i] - 0.2 * log10(test_uniform(seed));
        f[i] = (struct svi_evidence){.surprise = w->surprise[i], .feature = (int)(test_random(seed) % 4) - 1};
    }
    w->time += test_random(seed) % 50 ? 10 : 5000;
}

/* oldest: the first row that a record is compared with. */
static bool window_record(double (*past)[SVI_DETECTORS], int t, int oldest, int judge) {
    for (int k = t - 1; k >= oldest; k--)
        if (past[k][judge] > past[t][judge])
            return false;
    return true;
}

/* Opens when a level is reached by a record, changes in their order, as the alarm says; and what was kept at
 * any moment goes on as the other does. */
static void walks_follow_the_rules(void **state) {
    (void)state;
    enum { LENGTH = 3000 };
    static double past[LENGTH][SVI_DETECTORS];
    struct svi_alert_policy *d = malloc(sizeof *d), *e = malloc(sizeof *e);
    int opened = 0, updates = 0, closed = 0;
    for (uint64_t walk = 1; walk <= 20; walk++) {
        uint64_t seed = walk;
        const struct svi_alert_policy_options o = {.a_day = walk % 3 ? 100 : 2000,
                                                   .interval = walk % 4 ? 0 : 60,
                                                   .group = walk % 2 ? 0 : 200,
                                                   .clear = 0.05,
                                                   .warmup = 50};
        struct svi_alert a = {.closed = 0}, b = {.closed = 0};
        struct walk_state w = {{0}, 1000};
        int oldest = 0;
        struct svi_bytes kept = {0};
        svs_error err;
        svi_alert_policy_init(d, &o);
        svi_alert_policy_init(e, &o);
        for (int t = 0; t < LENGTH; t++) {
            struct svi_evidence f[SVI_DETECTORS];
            double level[SVI_DETECTORS];
            const bool was_open = a.open, timed = test_random(&seed) % 3 > 0;
            const enum svi_severity severity_before = d->severity;
            const double reported_at = d->reported_at, joined_at = d->joined_at;
            const int features = d->features_reported;
            bool reached = false, holds = false;
            if (test_random(&seed) % 100 == 0) {
                assert_int_equal(archived_save(policy_archive, e, &kept, &err), SVS_OK);
                svi_alert_policy_clear(e);
                assert_int_equal(archived_load(policy_archive, e, kept.data, kept.size, &err), SVS_OK);
            }
            walk_step(&w, f, &seed);
            assert_true(d->budget.apart > 0 && d->budget.apart <= SVI_BUDGET_APART);
            /* A row that was out of a record's span once stays out when the span grows. */
            if (oldest < t - d->budget.apart + 1)
                oldest = t - d->budget.apart + 1;
            for (int i = 0; i < SVI_DETECTORS; i++) {
                past[t][i] = svi_evidence_known(f[i].surprise, t + 1);
                level[i] = d->budget.detector[i].level;
                const bool record = past[t][i] >= level[i] && window_record(past, t, oldest, i);
                reached = reached || record;
                holds = holds || (record && past[t][i] >= -log10(o.clear)); /* else it holds no alert open */
            }
            const enum svi_alert_change c = svi_alert_policy_step(d, &a, f, w.time, timed);
            assert_int_equal(c, svi_alert_policy_step(e, &b, f, w.time, timed));
            assert_true(d->alarm == e->alarm && memcmp(d->ratio, e->ratio, sizeof d->ratio) == 0);
            assert_true(t < 50 ? d->alarm <= SVI_POLICY_BELOW : (d->alarm >= 1) == reached);
            if (t >= 50 && !was_open)
                assert_int_equal(c, reached ? SVI_ALERT_OPEN : SVI_ALERT_NONE);
            assert_true(t >= 50 || c == SVI_ALERT_NONE);
            assert_true(was_open ? c != SVI_ALERT_OPEN : c <= SVI_ALERT_OPEN);
            assert_true(a.open == (was_open ? c != SVI_ALERT_CLOSE : c == SVI_ALERT_OPEN));
            assert_true(c != SVI_ALERT_CLOSE || !holds);
            const struct svi_severity_input reported = {.distance = d->reported};
            assert_true(!a.open || (d->reported <= d->worst && d->severity >= svi_alert_severity(&reported)));
            /* An update has one of three reasons. */
            const double since = 86400 * (d->budget.days - reported_at);
            const double since_joined = 86400 * (d->budget.days - joined_at);
            assert_true(c != SVI_ALERT_UPDATE || d->severity > severity_before || since >= 1799 ||
                        (d->features_reported > features &&
                         (since_joined >= 59 || d->quiet_rows >= SVI_POLICY_QUIET_ROWS)));
            assert_true(c != SVI_ALERT_CLOSE || d->feature_count == d->features_reported);
            opened += c == SVI_ALERT_OPEN;
            updates += c == SVI_ALERT_UPDATE;
            closed += c == SVI_ALERT_CLOSE;
        }
        svi_bytes_clear(&kept);
        svi_alert_policy_clear(d);
        svi_alert_policy_clear(e);
    }
    print_message("%d opened, %d updates, %d closed\n", opened, updates, closed);
    assert_true(opened > 100 && updates > 100 && closed > 100);
    free(d);
    free(e);
}

/* What lasts for two days is reported less and less often, and a feature that joins at once. */
static void updates_thin_out(void **state) {
    (void)state;
    for (int interval = 1; interval <= 60; interval += 59) {
        const struct svi_alert_policy_options o = {
            .a_day = 1, .interval = interval, .group = 60, .clear = 0.05, .warmup = 0};
        struct svi_alert_policy *d = malloc(sizeof *d);
        struct svi_alert a = {.closed = 0};
        double last = 0, began = 0, reported = 0;
        enum svi_severity severity = SVI_SEVERITY_NOTICE;
        int updates = 0, opened = 0;
        svi_alert_policy_init(d, &o);
        for (int t = 0; t < 2000 + 2 * 86400 / interval; t++) {
            struct svi_evidence f[SVI_DETECTORS] = {{0}};
            for (int i = 0; i < SVI_DETECTORS; i++)
                f[i] = (struct svi_evidence){.surprise = 0.3, .feature = -1};
            f[SVI_DETECTOR_ROW].surprise = t >= 2000 ? 12 : 0.3;
            const enum svi_alert_change c = svi_alert_policy_step(d, &a, f, 0, false);
            const double now = 86400 * d->budget.days;
            assert_true(c != SVI_ALERT_CLOSE);
            if (c == SVI_ALERT_OPEN)
                began = last = now;
            if (c == SVI_ALERT_UPDATE) { /* the severity rises after 30 minutes and after 6 hours */
                /* The longer the past, the more of a surprise counts: it may be worse by that. */
                const double apart = d->reported >= SVI_POLICY_WORSE * reported ? 0 : 3 * (last - began) - 1;
                assert_true(d->severity > severity || now - last >= fmax(1799, apart));
                last = now;
            }
            severity = d->severity;
            reported = d->reported;
            opened += c == SVI_ALERT_OPEN;
            updates += c == SVI_ALERT_UPDATE;
        }
        print_message("rows of %d s: %d updates in two days\n", interval, updates);
        assert_true(opened == 1 && updates >= 3 && updates <= 6);
        /* Six features in as many rows: the first at once, the others together. */
        int joined = 0, named = 0;
        for (int t = 0; t < 120 / interval + 6; t++) {
            struct svi_evidence f[SVI_DETECTORS] = {{0}};
            for (int i = 0; i < SVI_DETECTORS; i++)
                f[i] = (struct svi_evidence){.surprise = 0.3, .feature = -1};
            f[SVI_DETECTOR_ROW].surprise = 12;
            if (t < 6)
                f[SVI_DETECTOR_VALUE] = (struct svi_evidence){.surprise = 12 + t, .feature = t};
            const enum svi_alert_change c = svi_alert_policy_step(d, &a, f, 0, false);
            assert_true(t > 0 || c == SVI_ALERT_UPDATE);
            joined += c == SVI_ALERT_UPDATE && d->news == SVI_POLICY_JOINED;
            named = d->features_reported;
        }
        assert_true(named == 7 && (interval == 60 ? joined == 6 : joined == 2));
        svi_alert_policy_clear(d);
        free(d);
    }
}

/* What flickers is one alert, and so is what comes back within the time that groups. */
static void what_flickers_is_one(void **state) {
    (void)state;
    for (int group = 60; group <= 3600; group += 3540) {
        const struct svi_alert_policy_options o = {.a_day = 1, .group = group, .clear = 0.05, .warmup = 0};
        struct svi_alert_policy *d = malloc(sizeof *d);
        struct svi_alert a = {.closed = 0};
        uint64_t seed = 5;
        int opened = 0;
        svi_alert_policy_init(d, &o);
        for (int t = 0; t < 3000; t++) {
            struct svi_evidence f[SVI_DETECTORS] = {{0}};
            f[0].surprise = -log10(test_uniform(&seed));
            if (t >= 2000 && t < 2300 && t % (group > 60 ? 50 : 9) == 0)
                f[0].surprise = 9 + t * 1e-3;
            opened += svi_alert_policy_step(d, &a, f, t * MINUTE, true) == SVI_ALERT_OPEN && t >= 2000;
        }
        assert_int_equal(opened, 1);
        assert_false(a.open);
        svi_alert_policy_clear(d);
        free(d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stays_within_its_budget),
        cmocka_unit_test(whatever_the_pace),
        cmocka_unit_test(drifts_use_what_the_budget_grants),
        cmocka_unit_test(a_true_alert_leaves_the_past),
        cmocka_unit_test(no_judge_masks_another),
        cmocka_unit_test(walks_follow_the_rules),
        cmocka_unit_test(updates_thin_out),
        cmocka_unit_test(what_flickers_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
