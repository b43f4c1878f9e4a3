/* The plain rules: how often they speak when nothing is wrong, what they find, that nothing flaps, and what
 * holds after any row. */
#include "support/archived.h"
#include "support/problem.h"

#include <string.h>

#include "alerts/rules.h"
#include "base/random.h"
#include "config/settings.h"
#include "support/quick.h"

#define MINUTE 60.0
#define START  1.7e9
#define WIDE   38

/* ---- laws */

typedef double law(uint64_t *seed);

static double unit(uint64_t *seed) {
    struct svi_random r = {*seed};
    const uint64_t bits = svi_random_next(&r);
    *seed = r.state;
    return (double)(bits >> 11) * 0x1p-53;
}

static double normal(uint64_t *seed) {
    return sqrt(-2 * log(1 - unit(seed))) * cos(2 * M_PI * unit(seed));
}

static double student(uint64_t *seed) {
    const double z = normal(seed);
    double chi = 0;
    for (int i = 0; i < 3; i++) {
        const double n = normal(seed);
        chi += n * n;
    }
    return z / sqrt(chi / 3);
}

static double exponential(uint64_t *seed) {
    return -log(1 - unit(seed));
}

static double discrete(uint64_t *seed) {
    return floor(3 * exponential(seed));
}

static double lognormal(uint64_t *seed) {
    return exp(normal(seed));
}

static law *const laws[] = {normal, student, exponential, unit, discrete, lognormal};
static const char *const law_names[] = {"normal",  "Student t (3)", "exponential",
                                        "uniform", "discrete",      "lognormal"};

/* ---- rules on their own */

static void rules_open(struct svi_rules *r, const char *rules, const char *absent, int d) {
    struct svi_settings s;
    svi_settings_default(&s);
    assert_int_equal(svi_settings_set(&s, "alert.rules", rules, NULL), SVS_OK);
    assert_int_equal(svi_settings_set(&s, "alert.absent", absent, NULL), SVS_OK);
    svi_rules_init(r, false);
    svi_rules_configure(r, &s);
    assert_int_equal(svi_rules_reserve(r, d, NULL), SVS_OK);
    for (int j = 0; j < d; j++)
        svi_rules_bind(r, j, SVI_RULES_JUDGED | SVI_RULES_MISSED, 0, 0);
    svi_rules_bound(r, d);
}

struct heard {
    int opened[SVI_RULES], updated[SVI_RULES], closed[SVI_RULES];
    int64_t number; /* of the last that opened */
    int64_t open[64];
    int count;
};

/* Says what there is to say, and holds it against what was said before: closes follow opens, an open alert
 * has sensors, and a sensor is in one alert of a rule at most. */
static void hear(struct svi_rules *r, struct heard *h) {
    const struct svi_rules_member *top[SVI_RULES_TOP];
    struct svi_rules_alert *a;
    enum svi_rule rule;
    int count;
    while ((a = svi_rules_next(r, &rule, top, &count)) != NULL) {
        if (a->change == SVI_ALERT_OPEN) {
            a->number = ++h->number;
            h->open[h->count++] = a->number;
            h->opened[rule]++;
        }
        int at = 0;
        while (at < h->count && h->open[at] != a->number)
            at++;
        assert_true(at < h->count);
        assert_true(a->members >= (a->change != SVI_ALERT_CLOSE) && a->members <= a->total);
        h->updated[rule] += a->change == SVI_ALERT_UPDATE;
        if (a->change == SVI_ALERT_CLOSE) {
            h->open[at] = h->open[--h->count];
            h->closed[rule]++;
        }
        svi_rules_reported(a);
    }
    assert_int_equal(svi_rules_open(r), h->count);
    for (int i = 0; i < r->open_count; i++)
        for (int k = 0; k < i; k++)
            assert_false(r->open[i].rule == r->open[k].rule && r->open[i].feature == r->open[k].feature);
}

static void row_at(struct svi_rules *r, struct heard *h, const double *x, const uint8_t *gaps, int d,
                   double time) {
    svi_rules_row(r, x, gaps, d, time, time);
    hear(r, h);
}

static void row(struct svi_rules *r, struct heard *h, const double *x, const uint8_t *gaps, int d, int i) {
    svi_rules_row(r, x, gaps, d, START + MINUTE * i, START + MINUTE * i);
    hear(r, h);
}

/* ---- the promise */

/* Exchangeable rows of six laws: beyond, and steps, speak 0.1 log(rows / 512) times a stream at most; stuck
 * and absent not at all. */
static void few_alerts_without_a_fault(void **state) {
    (void)state;
    const int rows = 3000, streams = 6, d = 12;
    int all[SVI_RULES] = {0};
    for (int l = 0; l < 6; l++) {
        struct heard sum = {.count = 0};
        for (int s = 0; s < streams; s++) {
            struct svi_rules r;
            struct heard h = {.count = 0};
            uint64_t seed = (uint64_t)(100 * l + s + 1);
            double x[WIDE];
            uint8_t gaps[WIDE];
            rules_open(&r, "beyond,stuck,absent,rate", "auto", d);
            for (int i = 0; i < rows; i++) {
                for (int j = 0; j < d; j++) {
                    x[j] = laws[l](&seed);
                    gaps[j] = j % 4 == 3 && unit(&seed) < 0.1 * (j / 4 + 1);
                }
                row(&r, &h, x, gaps, d, i);
            }
            for (int k = 0; k < SVI_RULES; k++)
                sum.opened[k] += h.opened[k];
            svi_rules_clear(&r);
        }
        if (getenv("SVMSTREAM_STUDY"))
            printf("# %s: beyond %d, rate %d, stuck %d, absent %d; promised %.2f of each of the first two\n",
                   law_names[l], sum.opened[SVI_RULE_BEYOND], sum.opened[SVI_RULE_RATE],
                   sum.opened[SVI_RULE_STUCK], sum.opened[SVI_RULE_ABSENT],
                   streams * SVI_RECORDS_SHARE * log(rows / 512.0));
        for (int k = 0; k < SVI_RULES; k++)
            all[k] += sum.opened[k];
    }
    const double most = 6 * streams * SVI_RECORDS_SHARE * log(rows / 512.0);
    assert_true(all[SVI_RULE_BEYOND] <= most && all[SVI_RULE_RATE] <= most);
    assert_int_equal(all[SVI_RULE_STUCK] + all[SVI_RULE_ABSENT] + all[SVI_RULE_SILENT], 0);
}

/* ---- a plant's sensors */

enum { TEMP, FLAG, POINT, COUNTER, COARSE, SENSORS };

/* A temperature by the time of day, a flag of the shift, a set point, a counter that rests at night and at
 * weekends, a coarse sensor. */
static void plant(int i, uint64_t *seed, double *x) {
    const double hour = fmod(i / 60.0, 24);
    const int day = i / 1440 % 7, shift = day < 5 && hour >= 6 && hour < 22;
    x[TEMP] = 50 + 5 * sin(2 * M_PI * hour / 24) + 0.5 * normal(seed);
    x[FLAG] = shift;
    x[POINT] = unit(seed) < 1 / 700.0 ? 40 + 10 * floor(4 * unit(seed)) : x[POINT];
    x[COUNTER] += shift && unit(seed) < 0.8;
    x[COARSE] = floor(20 + 2 * sin(i / 200.0) + 0.3 * normal(seed));
}

static void a_plant_without_a_fault_is_quiet(void **state) {
    (void)state;
    struct svi_rules r;
    struct heard h = {.count = 0};
    uint64_t seed = 7;
    double x[SENSORS] = {[POINT] = 50};
    rules_open(&r, "beyond,stuck,absent", "auto", SENSORS);
    for (int i = 0; i < 28 * 1440; i++) {
        plant(i, &seed, x);
        row(&r, &h, x, NULL, SENSORS, i);
    }
    assert_int_equal(h.number, 0);
    svi_rules_clear(&r);
}

/* Rows from the beginning of a fault until an alert of its rule; the fault is in `x` from `from` on. */
static int delay(enum svi_rule rule, int from, int most) {
    struct svi_rules r;
    struct heard h = {.count = 0};
    uint64_t seed = 11;
    double x[SENSORS] = {[POINT] = 50};
    uint8_t gaps[SENSORS] = {0};
    int i = 0;
    rules_open(&r, "beyond,stuck,absent", "auto", SENSORS);
    for (; i < from + most && h.opened[rule] == 0; i++) {
        const double before = x[TEMP];
        plant(i, &seed, x);
        if (i >= from && rule == SVI_RULE_BEYOND)
            x[TEMP] += 100;
        if (i >= from && rule == SVI_RULE_STUCK)
            x[TEMP] = before;
        gaps[TEMP] = i >= from && rule == SVI_RULE_ABSENT;
        row(&r, &h, x, gaps, SENSORS, i);
    }
    assert_int_equal(h.number, 1);
    assert_int_equal(h.opened[rule], 1);
    svi_rules_clear(&r);
    return i - from;
}

static void faults_are_found_soon(void **state) {
    (void)state;
    for (int from = 2000; from <= 20000; from += 6000) {
        assert_int_equal(delay(SVI_RULE_BEYOND, from, 10), 1);
        assert_true(delay(SVI_RULE_STUCK, from, 100) <= 60); /* an hour */
        assert_true(delay(SVI_RULE_ABSENT, from, 100) <= 10);
    }
}

/* A value that jumps in and out all the time: one alert; so does one that is there in every second row. */
static void nothing_flaps(void **state) {
    (void)state;
    struct svi_rules r;
    struct heard h = {.count = 0};
    uint64_t seed = 3;
    rules_open(&r, "beyond,stuck,absent", "auto", 2);
    svi_rules_bind(&r, 0, SVI_RULES_JUDGED | SVI_RULES_MISSED | SVI_RULES_LIMITED, -10, 10);
    for (int i = 0; i < 6000; i++) {
        const bool faulty = i >= 4000 && i < 4500;
        double x[2] = {faulty && i % 3 == 0 ? 20 + unit(&seed) : normal(&seed), normal(&seed)};
        const uint8_t gaps[2] = {0, faulty && (i < 4100 || i % 2 == 0)};
        row(&r, &h, x, gaps, 2, i);
    }
    for (int k = 0; k < SVI_RULES; k++) {
        const bool told = k == SVI_RULE_LIMITS || k == SVI_RULE_BEYOND || k == SVI_RULE_ABSENT;
        assert_int_equal(h.opened[k], told);
        assert_int_equal(h.closed[k], told);
        assert_true(h.updated[k] <= 2);
    }
    svi_rules_clear(&r);
}

/* Updates: a value that doubles every few rows, at first within a severity and then beyond, and eight sensors
 * that leave their limits one after another. A row a second, by time or by row_seconds. */
static void updates_are_few(void **state) {
    (void)state;
    for (int timed = 0; timed < 2; timed++) {
        struct svi_rules r;
        struct heard h = {.count = 0};
        rules_open(&r, "absent", "auto", 8);
        for (int j = 0; j < 8; j++)
            svi_rules_bind(&r, j, SVI_RULES_LIMITED, -1e6, 1e6);
        r.row_seconds = timed ? 0 : 1;
        double last = 0;
        int updates = 0;
        for (int i = 0; i < 7200; i++) { /* grows a thousandfold in two hours; a range is 2e6 */
            double x[8] = {1e6 + 100 * exp2(i / 720.0)};
            const int before = h.updated[SVI_RULE_LIMITS];
            row_at(&r, &h, x, NULL, 8, timed ? START + i : START);
            if (h.updated[SVI_RULE_LIMITS] > before) {
                assert_true(i - last >= 1800);
                last = i;
            }
        }
        updates = h.updated[SVI_RULE_LIMITS];
        assert_true(updates >= 2 && updates <= 3);
        double jump[8] = {2e6};
        row_at(&r, &h, jump, NULL, 8, timed ? START + 7200 : START);
        assert_int_equal(h.updated[SVI_RULE_LIMITS], updates + 1); /* a more severe one does not wait */
        svi_rules_clear(&r);
        h = (struct heard){.count = 0};
        rules_open(&r, "absent", "auto", 8);
        r.group = 600;
        r.row_seconds = timed ? 0 : 1;
        for (int j = 0; j < 8; j++)
            svi_rules_bind(&r, j, SVI_RULES_LIMITED, -1, 1);
        for (int i = 0; i < 120; i++) { /* one sensor a second */
            double x[8] = {0};
            for (int j = 0; j < 8 && j <= i; j++)
                x[j] = 1.1;
            row_at(&r, &h, x, NULL, 8, timed ? START + i : START);
            assert_int_equal(h.updated[SVI_RULE_LIMITS], i < 1 ? 0 : i < 61 ? 1 : 2);
        }
        assert_int_equal(r.alerts[SVI_RULE_LIMITS * SVI_RULES_ALERTS].members, 8);
        svi_rules_clear(&r);
    }
}

/* All sensors absent at once are one alert, and those of a stream that goes on. */
static void one_cause_is_one_alert(void **state) {
    (void)state;
    struct svi_rules r;
    struct heard h = {.count = 0};
    uint64_t seed = 5;
    rules_open(&r, "absent", "auto", 5);
    for (int i = 0; i < 500; i++) {
        double x[5];
        uint8_t gaps[5];
        for (int j = 0; j < 5; j++) {
            x[j] = normal(&seed);
            gaps[j] = i >= 200 && i < 300 && j != 4;
        }
        row(&r, &h, x, gaps, 5, i);
        if (i == 250)
            assert_true(r.open_count == 4 && h.count == 1 &&
                        r.alerts[SVI_RULE_ABSENT * SVI_RULES_ALERTS].members == 4);
    }
    assert_int_equal(h.number, 1);
    assert_int_equal(h.count, 0);
    svi_rules_clear(&r);
}

/* ---- silence */

static void silence_is_told_by_the_clock(void **state) {
    (void)state;
    struct svi_rules r;
    struct heard h = {.count = 0};
    const double x[1] = {0};
    rules_open(&r, "absent", "auto", 1);
    assert_true(isinf(svi_rules_deadline(&r)));
    for (int i = 0; i < 60; i++)
        row(&r, &h, x, NULL, 1, i);
    const double last = START + MINUTE * 59, due = svi_rules_deadline(&r);
    assert_true(due > last + 60 && due <= last + 600);
    svi_rules_pass(&r, due - 0.001);
    hear(&r, &h);
    assert_int_equal(h.count, 0);
    svi_rules_pass(&r, due);
    hear(&r, &h);
    assert_int_equal(h.opened[SVI_RULE_SILENT], 1);
    assert_true(isinf(svi_rules_deadline(&r)));
    for (int i = 200; i < 230; i++)
        row(&r, &h, x, NULL, 1, i);
    assert_int_equal(h.closed[SVI_RULE_SILENT], 1);
    svi_rules_begin(&r, START + MINUTE * 1000); /* a process that was down for long */
    assert_true(svi_rules_deadline(&r) > START + MINUTE * 1000 + 60);
    svi_rules_pause(&r);
    assert_true(isinf(svi_rules_deadline(&r)));
    svi_rules_clear(&r);
}

/* ---- walks */

static void archive_both(struct svi_archive *a, void *of) {
    svi_rules_archive(a, of);
    if (svi_archive_ok(a))
        svi_rules_silence_archive(a, of);
}

/* Faults of all kinds at random; what goes on from an archive says the same. */
static void walks_say_the_same_from_any_archive(void **state) {
    (void)state;
    for (uint64_t walk = 1; walk <= 12; walk++) {
        struct svi_rules r, later;
        struct heard h = {.count = 0}, g = {.count = 0};
        struct svi_bytes bytes = {0};
        svs_error err;
        uint64_t seed = walk;
        const int from = 600 + (int)(900 * unit(&seed));
        bool kept = false;
        double x[6] = {0};
        uint8_t gaps[6] = {0};
        int fault = -1, ends = 0;
        rules_open(&r, "beyond,stuck,absent,rate", walk % 2 ? "auto" : "600", 6);
        for (int i = 0; i < 2500; i++) {
            if (i >= ends && unit(&seed) < 0.01) {
                fault = (int)(30 * unit(&seed));
                ends = i + (int)(150 * unit(&seed));
            }
            for (int j = 0; j < 6; j++) {
                const bool now = i < ends && j == fault % 6;
                const double fresh = normal(&seed);
                x[j] = now && fault / 6 == 0 ? 60 + fresh : now && fault / 6 == 1 ? x[j] : fresh;
                gaps[j] = now && fault / 6 == 2;
            }
            if (i == from) {
                assert_int_equal(archived_save(archive_both, &r, &bytes, &err), SVS_OK);
                rules_open(&later, "beyond,stuck,absent,rate", walk % 2 ? "auto" : "600", 6);
                if (archived_load(archive_both, &later, bytes.data, bytes.size, &err) != SVS_OK)
                    fail_msg("%s", err.text);
                g = h;
                kept = true;
            }
            row(&r, &h, x, gaps, 6, i);
            if (kept) {
                row(&later, &g, x, gaps, 6, i);
                assert_memory_equal(&g, &h, sizeof g);
            }
        }
        assert_true(h.number > 0);
        svi_rules_clear(&r);
        svi_rules_clear(&later);
        svi_bytes_clear(&bytes);
    }
}

/* ---- the kernels */

/* Of WIDE values each: those of struct svi_column_seen in its order, the sides of what is beyond and of what
 * is highest now; then what counts and x. */
enum { SEEN_BEYOND = 9, SEEN_NOW = 12, SEEN_COUNTS = 15, SEEN_X, SEEN_ALL };

static struct svi_column_seen seen_of(double (*a)[WIDE]) {
    return (struct svi_column_seen){a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], WIDE};
}

static double seen_value(uint64_t *seed) {
    static const double some[] = {0, -0.0, NAN, INFINITY, -INFINITY, 1, 1};
    const double u = unit(seed);
    return u < 0.3 ? some[(int)(u / 0.3 * 7)] : 4 * u - 2;
}

/* Column by column, as it is defined. */
static bool seen_stirs(double (*a)[WIDE], int d, int sides) {
    const struct svi_column_seen c = seen_of(a);
    bool stirs = false;
    for (int j = 0; j < d; j++) {
        const double v = a[SEEN_X][j], step = fabs(v - c.last[j]);
        stirs |= v > a[SEEN_BEYOND][j] || -v > a[SEEN_BEYOND + 1][j] || v < c.low[j] || v > c.high[j];
        stirs |= (v == c.last[j] && c.run[j] >= c.patient[j]) || (sides > 2 && step > a[SEEN_BEYOND + 2][j]);
    }
    return stirs;
}

static void seen_plainly(double (*a)[WIDE], const double *seen, double time, int d, int sides) {
    const struct svi_column_seen c = seen_of(a);
    for (int j = 0; j < d; j++) {
        const double v = a[SEEN_X][j], of[3] = {seen[j], -seen[j], fabs(seen[j] - c.last[j])};
        for (int side = 0; side < sides; side++)
            a[SEEN_NOW + side][j] = of[side] > a[SEEN_NOW + side][j] ? of[side] : a[SEEN_NOW + side][j];
        if (isnan(v))
            continue;
        const bool other = v != c.last[j];
        c.longest[j] = other && c.run[j] > c.longest[j] ? c.run[j] : c.longest[j];
        c.run[j] = (other ? 0 : c.run[j]) + 1;
        c.changed_at[j] = other ? time : c.changed_at[j];
        c.last[j] = v;
        c.runs[j] += other;
        c.values[j]++;
    }
}

static void test_kernels_are_the_definition(void **state) {
    static const svs_isa sets[] = {SVS_ISA_GENERIC, SVS_ISA_AVX2, SVS_ISA_AVX512};
    uint64_t seed = 11;
    int stirred = 0;
    (void)state;
    for (int round = 0; round < 4000; round++) {
        double begin[SEEN_ALL][WIDE], passed[SEEN_ALL][WIDE], plain[SEEN_ALL][WIDE], fast[SEEN_ALL][WIDE];
        const int d = 1 + round % WIDE, sides = 2 + round / WIDE % 2;
        for (int k = 0; k < SEEN_ALL; k++)
            for (int j = 0; j < WIDE; j++) /* low, high, what is beyond and patient: mostly wide enough */
                begin[k][j] = k == 0                                         ? -1.9
                              : k == 1 || (k >= SEEN_BEYOND && k < SEEN_NOW) ? 1.99
                              : k == 6                                       ? 9
                              : k >= 4 && k < SEEN_BEYOND                    ? (int)(10 * unit(&seed))
                                                                             : seen_value(&seed);
        memcpy(plain, begin, sizeof begin);
        memcpy(passed, begin, sizeof begin);
        const bool stirs = seen_stirs(begin, d, sides);
        stirred += stirs;
        seen_plainly(plain, plain[SEEN_COUNTS], 77, d, sides);
        if (!stirs)
            seen_plainly(passed, passed[SEEN_X], 77, d, sides);
        for (int i = 0; i < 3; i++) {
            const struct svi_kernels *k = svi_kernels_get(sets[i]);
            if (!k)
                continue;
            const struct svi_column_seen f = seen_of(fast);
            memcpy(fast, begin, sizeof begin);
            k->columns_seen(&f, fast[SEEN_NOW], fast[SEEN_COUNTS], fast[SEEN_X], 77, d, sides);
            assert_memory_equal(fast, plain, sizeof plain);
            memcpy(fast, begin, sizeof begin);
            assert_int_equal(
                k->columns_pass(&f, fast[SEEN_BEYOND], fast[SEEN_NOW], fast[SEEN_X], 77, d, sides), !stirs);
            assert_memory_equal(fast, passed, sizeof passed);
        }
    }
    assert_true(stirred > 100 && stirred < 3900);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_are_the_definition),
        cmocka_unit_test(few_alerts_without_a_fault),
        cmocka_unit_test(a_plant_without_a_fault_is_quiet),
        cmocka_unit_test(faults_are_found_soon),
        cmocka_unit_test(nothing_flaps),
        cmocka_unit_test(updates_are_few),
        cmocka_unit_test(one_cause_is_one_alert),
        cmocka_unit_test(silence_is_told_by_the_clock),
        cmocka_unit_test(walks_say_the_same_from_any_archive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
