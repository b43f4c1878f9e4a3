/* The prior of the keys of several fleets, merged: it is that of all that their keys hold, against sums in
 * long double and against one fleet with all keys, whatever the order of the parts; a part that lies (huge
 * rows, other units, wrong classes, a weight without end) leaves new keys hardly worse off, while honest
 * parts help them; and it is a step of the stream: taken up from the state, and on any number of threads,
 * keys go on with the same bits. */
#include "support/engine.h"

#include "base/random.h"
#include "fleet/fleet_internal.h"
#include "learner/learner_internal.h"
#include "merge/prior_merge.h"
#include "merge/prior_record.h"

#define D     6
#define PARTS 5

struct machine {
    struct svi_random random;
    struct svi_settings s;
    svi_stream *fleet;
    struct svi_bytes frame;
    double now;
    int id;
};

static void silent(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

static void begin(struct machine *m) {
    svs_error err = {0};
    m->fleet = svi_stream_new(&m->s, 5, silent, NULL, &err);
    if (!m->fleet)
        fail_msg("%s", err.text);
    svi_stream_leave_open(m->fleet, true);
}

static void start(struct machine *m, uint64_t seed, const char *task, const char *threads) {
    const char *const settings[] = {
        "key",       "key", "novelty", "none",  "window", "100",  "task",        task,   "method", "alsvm",
        "key.prior", "10",  "merge.from", "tcp://127.0.0.1:9", "threads", threads, "refit",  "none", "alert.rules", "none", NULL};
    svs_error err = {0};
    *m = (struct machine){.random = {seed}, .now = NOW};
    svi_settings_default(&m->s);
    for (int i = 0; settings[i]; i += 2)
        assert_int_equal(svi_settings_set(&m->s, settings[i], settings[i + 1], &err), SVS_OK);
    svi_settings_settle_method(&m->s);
    begin(m);
}

static void end(struct machine *m) {
    svi_stream_free(&m->fleet);
    svi_bytes_clear(&m->frame);
}

static double gauss(struct svi_random *random) {
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (svi_random_below(random, 1000001) - 500000.0) / 1e6;
    return sum;
}

/* How a machine differs from the honest ones. */
struct lie {
    double units, weight, sign, huge;
};
static const struct lie honest = {1, 1, 1, 0};

/* A sample: one law in all keys, at levels of their own. */
static void learn(struct machine *m, int key, const struct lie *lie) {
    static const double law[D] = {1.5, -1, 1, -0.5, 0.7, 0.4};
    double x[D], score = 0.3;
    char name[16];
    struct svi_envelope env;
    for (int j = 0; j < D; j++) {
        x[j] = gauss(&m->random);
        score += law[j] * x[j];
        x[j] = lie->units * (x[j] + 5 * j + key % 7 * 0.5);
    }
    score *= lie->sign;
    if (lie->huge != 0)
        x[(int)svi_random_below(&m->random, D)] = lie->huge;
    struct svi_message msg = {.has_x = true,
                              .kind = SVI_DENSE,
                              .d = D,
                              .x = x,
                              .ts = NAN,
                              .weight = lie->weight,
                              .n = -1,
                              .id = svs_int(m->id++)};
    msg.y = m->s.task == SVS_REGRESS ? svs_real(score) : svs_int(score + 0.5 * gauss(&m->random) > 0);
    snprintf(name, sizeof name, "m%d", key);
    msg.key = svs_str(name);
    m->frame.size = 0;
    assert_int_equal(svi_message_encode(&msg, NULL, false, &m->frame), SVS_OK);
    assert_int_equal(svi_envelope_read(&env, m->frame.data, m->frame.size), SVS_OK);
    svi_stream_apply_later(m->fleet, &env, m->now += 0.25, false, NULL);
}

/* What a worker would publish under the key `prior`. */
static void publish(struct machine *m, struct svi_bytes *out) {
    svs_error err = {0};
    const struct svi_prior_bounds *bounds;
    int64_t keys;
    svi_stream_settle(m->fleet);
    const struct svi_prior_sums *sums = svi_fleet_prior_sums(svi_fleet_of(m->fleet), &bounds, &keys);
    out->size = 0;
    assert_int_equal(svi_prior_record_encode(sums, bounds, keys, out, &err), SVS_OK);
}

static void merge(struct svi_prior_part *parts, int count, bool regress, struct svi_bytes *out) {
    svs_error err = {0};
    out->size = 0;
    if (svi_prior_merge(parts, count, regress, out, &err) != SVS_OK)
        fail_msg("%s", err.text);
}

static void read_record(const struct svi_bytes *map, bool regress, struct svi_prior_record *r) {
    svs_error err = {0};
    *r = (struct svi_prior_record){0};
    if (svi_prior_record_decode(r, regress, map->data, map->size, &err) != SVS_OK)
        fail_msg("%s", err.text);
}

static void near(long double is, long double should, long double size) {
    if (!(fabsl(is - should) <= 1e-12L * (size > 0 ? size : 1)))
        fail_msg("%Lg instead of %Lg, of %Lg", is, should, size);
}

/* ---- the same as of one fleet */

static void compare_priors(const struct svi_prior *a, const struct svi_prior *b) {
    assert_int_equal(a->d, b->d);
    assert_int_equal(a->labels, b->labels);
    near(a->total, b->total, b->total);
    for (int i = 0; i < a->d; i++) {
        const int at = svi_prior_feature(b, a->identity[i], i);
        const double deviation = sqrt(b->spread[svi_triangle(at) + at] / b->total);
        near(a->mean[i], b->mean[at], deviation);
        assert_int_equal(i, at);
        for (int j = 0; j <= i; j++)
            near(a->spread[svi_triangle(i) + j], b->spread[svi_triangle(i) + j],
                 b->total * deviation * deviation);
        for (int k = 0; k < a->labels; k++) {
            const int label = a->regress ? 0 : svi_prior_label(b, a->label[k], k);
            near(a->weight[k], b->weight[label], b->total);
            near(a->sum[k * a->d + i], b->sum[label * b->d + i], b->total * deviation);
        }
    }
}

/* 32 keys of 4 rows, as keys take their center with their first row, before there is a prior. */
static void test_halves(void **state) {
    (void)state;
    for (int regress = 0; regress < 2; regress++) {
        struct machine half[2], whole;
        struct svi_bytes map[2] = {{0}}, merged = {0}, again = {0};
        struct svi_prior_record r;
        struct svi_prior *p = NULL;
        svs_error err;
        const char *task = regress ? "regress" : "classify";
        start(&whole, 3, task, "1");
        for (int h = 0; h < 2; h++)
            start(&half[h], 3, task, "1");
        for (int i = 0; i < 128; i++) {
            const int key = i % 32;
            half[key % 2].random = whole.random;
            learn(&half[key % 2], key, &honest);
            learn(&whole, key, &honest);
        }
        for (int h = 0; h < 2; h++)
            publish(&half[h], &map[h]);
        struct svi_prior_part parts[] = {{.name = "b", .prior = map[1].data, .size = map[1].size},
                                         {.name = "a", .prior = map[0].data, .size = map[0].size}};
        merge(parts, 2, regress, &merged);
        assert_true(parts[0].factor == 1 && parts[1].factor == 1 && parts[0].keys == 16);
        const struct svi_prior_part first = parts[0];
        parts[0] = parts[1];
        parts[1] = first;
        merge(parts, 2, regress, &again);
        assert_int_equal(merged.size, again.size);
        assert_memory_equal(merged.data, again.data, merged.size);
        read_record(&merged, regress, &r);
        assert_int_equal(r.keys, 32);
        assert_int_equal(svi_prior_make(&r.sums, &r.bounds, 1, &p, &err), SVS_OK);
        svi_stream_settle(whole.fleet);
        compare_priors(p, svi_fleet_prior_newest(svi_fleet_of(whole.fleet)));
        svi_prior_release(&p);
        svi_prior_record_clear(&r);
        end(&whole);
        for (int h = 0; h < 2; h++) {
            end(&half[h]);
            svi_bytes_clear(&map[h]);
        }
        svi_bytes_clear(&merged);
        svi_bytes_clear(&again);
    }
}

/* ---- the same as of all that is held */

/* Of fleets whose keys have long taken priors, and centers by them: at an element where they are coupled. */
static void test_held(void **state) {
    struct machine m[3];
    struct svi_bytes map[3] = {{0}}, merged = {0};
    struct svi_prior_part parts[3];
    struct svi_prior_record r;
    static const char *const name[] = {"a", "b", "c"};
    long double all[D + 1][D + 1] = {{0}}, label[2][D + 1] = {{0}};
    (void)state;
    for (int i = 0; i < 3; i++) {
        start(&m[i], 20 + (uint64_t)i, "classify", "1");
        for (int k = 0; k < 1024 * (i + 1); k++)
            learn(&m[i], (int)svi_random_below(&m[i].random, 12), &honest);
        publish(&m[i], &map[i]);
        parts[i] = (struct svi_prior_part){.name = name[i], .prior = map[i].data, .size = map[i].size};
    }
    merge(parts, 3, false, &merged);
    read_record(&merged, false, &r);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 12; k++) {
            char key[8];
            svs_error err;
            snprintf(key, sizeof key, "m%d", k);
            const svs_learner *l = svi_stream_engine(m[i].fleet, key, &err)->learner;
            for (int32_t at = 0, slot; (slot = svi_next_learned(l, &at)) >= 0;) {
                const double *x = svi_ring_row(&l->window, slot);
                long double z[D + 1] = {1};
                for (int j = 0; j < D; j++)
                    z[j + 1] = (long double)x[j] - l->prior->center[j];
                for (int a = 0; a <= D; a++) {
                    for (int b = 0; b <= a; b++)
                        all[a][b] += z[a] * z[b];
                    label[l->classes[svi_ring_label(&l->window, slot)].as.i][a] += z[a];
                }
            }
        }
    for (int a = 0; a <= D; a++) {
        for (int b = 0; b <= a; b++)
            near(svi_prior_sums_at(&r.sums, a, b).high, all[a][b], all[0][0]);
        for (int k = 0; k < 2; k++)
            near(svi_prior_sums_of_label(&r.sums, k).high[a], label[r.sums.label[k].as.i][a], all[0][0]);
    }
    svi_prior_record_clear(&r);
    svi_bytes_clear(&merged);
    for (int i = 0; i < 3; i++) {
        assert_true(parts[i].factor == 1);
        end(&m[i]);
        svi_bytes_clear(&map[i]);
    }
}

/* ---- parts that lie */

enum lies { NONE, UNITS, UNITS_10, UNITS_SMALL, SIGN, SIGN_HEAVY, WEIGHT, HUGE_ROWS, NEGATIVE, LIES };

static const struct lie lies[LIES] = {
    [NONE] = {1, 1, 1, 0},           [UNITS] = {1000, 1, 1, 0},     [UNITS_10] = {10, 1, 1, 0},
    [UNITS_SMALL] = {0.01, 1, 1, 0}, [SIGN] = {1, 1, -1, 0},        [SIGN_HEAVY] = {1, 1e6, -1, 0},
    [WEIGHT] = {1, 1e9, 1, 0},       [HUGE_ROWS] = {1, 1, 1, 1e12}, [NEGATIVE] = {1, 1, 1, -1e30}};

static void take(struct machine *m, const struct svi_bytes *merged) {
    svs_error err = {0};
    svi_stream_settle(m->fleet);
    if (merged && merged->size > 0 &&
        svi_fleet_merged_take(m->fleet, merged->data, merged->size, &err) != SVS_OK)
        fail_msg("%s", err.text);
}

static int64_t errors_of(struct machine *m, int keys, int rows) {
    struct svi_stream_progress before, after;
    svi_stream_settle(m->fleet);
    svi_stream_progress(m->fleet, &before);
    for (int k = 0; k < keys; k++)
        for (int i = 0; i < rows; i++)
            learn(m, 1000 + k, &honest);
    svi_stream_settle(m->fleet);
    svi_stream_progress(m->fleet, &after);
    return keys * rows - (after.sums.right - before.sums.right);
}

/* Share of errors in the first 100 rows of new keys, of a machine that has some keys, or none; `merged`:
 * NULL, or a record. */
static double first_errors(bool some, const struct svi_bytes *merged) {
    struct machine m;
    int64_t errors = 0;
    const int machines = some ? 1 : 60, keys = some ? 60 : 1, rows = 100;
    for (int i = 0; i < machines; i++) {
        start(&m, 77 + (uint64_t)i, "classify", "1");
        for (int k = 0; k < 400 && some; k++)
            learn(&m, k % 10, &honest);
        take(&m, merged);
        errors += errors_of(&m, keys, rows);
        end(&m);
    }
    return (double)errors / (machines * keys * rows);
}

static void parts_of(enum lies kind, int honest_parts, int hostile_rows, struct svi_bytes *merged) {
    struct svi_bytes map[PARTS] = {{0}};
    struct svi_prior_part parts[PARTS];
    static const char *const name[PARTS] = {"a", "b", "c", "d", "e"};
    const int count = honest_parts + (kind != NONE);
    for (int i = 0; i < count; i++) {
        struct machine m;
        const bool lies_here = i == honest_parts;
        start(&m, 50 + (uint64_t)i, "classify", "1");
        for (int k = 0; k < (lies_here ? hostile_rows : 1024); k++)
            learn(&m, (int)svi_random_below(&m.random, 20), lies_here ? &lies[kind] : &honest);
        publish(&m, &map[i]);
        end(&m);
        parts[i] = (struct svi_prior_part){.name = name[i], .prior = map[i].data, .size = map[i].size};
    }
    svs_error err = {0};
    merged->size = 0;
    const svs_code code = svi_prior_merge(parts, count, false, merged, &err);
    assert_true(code == SVS_OK || (code == SVS_EMPTY && honest_parts == 0));
    for (int i = 0; i < count; i++)
        svi_bytes_clear(&map[i]);
}

static void test_lies(void **state) {
    struct svi_bytes merged = {0};
    (void)state;
    for (int some = 0; some < 2; some++) {
        const double without = first_errors(some, NULL);
        parts_of(NONE, 4, 0, &merged);
        const double with = first_errors(some, &merged);
        print_message("# %s own keys: %.4f without, %.4f with\n", some ? "some" : "no", without, with);
        assert_true(some ? with < without + 0.005 : with < 0.85 * without);
        for (enum lies kind = NONE + 1; kind < LIES; kind++) {
            parts_of(kind, 4, 1024, &merged);
            const double lied = first_errors(some, &merged);
            print_message("# lie %d: %.4f\n", (int)kind, lied);
            assert_true(lied < with + 0.01);
        }
    }
    svi_bytes_clear(&merged);
}

/* With a single other part, which lies, nothing can be judged but by the keys here: they begin as without. */
static void test_alone(void **state) {
    struct svi_bytes merged = {0};
    (void)state;
    const double without = first_errors(true, NULL);
    for (enum lies kind = NONE + 1; kind < LIES; kind++) {
        parts_of(kind, 0, 1024, &merged);
        const double lied = first_errors(true, &merged);
        print_message("# alone, lie %d: %.4f, %.4f without\n", (int)kind, lied, without);
        assert_true(lied < without + 0.005);
    }
    svi_bytes_clear(&merged);
}

/* ---- a step of the stream */

static void bits(const char *threads, bool resumes, const struct svi_bytes *merged, char *hash) {
    struct machine m;
    svs_error err = {0};
    start(&m, 5, "classify", threads);
    for (int i = 0; i < 3000; i++) {
        if (i == 0 || i == 1500 || i == 1501) {
            svi_stream_settle(m.fleet);
            assert_int_equal(svi_fleet_merged_take(m.fleet, merged->data, merged->size, &err), SVS_OK);
        }
        learn(&m, (int)svi_random_below(&m.random, i < 1000 ? 5 : 40), &honest);
        if (resumes && i % 500 == 250) {
            struct svi_checkpoint c = {0};
            svi_stream_settle(m.fleet);
            assert_int_equal(svi_stream_save(m.fleet, &c, &err), SVS_OK);
            svi_stream_free(&m.fleet);
            begin(&m);
            if (svi_stream_load(m.fleet, &c, &err) != SVS_OK)
                fail_msg("%s", err.text);
            svi_checkpoint_clear(&c);
        }
    }
    svi_stream_settle(m.fleet);
    assert_true(svi_fleet_merged_taken(svi_fleet_of(m.fleet)));
    assert_int_equal(svi_stream_hash(m.fleet, hash, &err), SVS_OK);
    end(&m);
}

static void test_same_bits(void **state) {
    char one[SVI_HASH_TEXT], other[SVI_HASH_TEXT];
    struct svi_bytes merged = {0};
    (void)state;
    parts_of(NONE, 3, 0, &merged);
    bits("1", false, &merged, one);
    bits("1", true, &merged, other);
    assert_string_equal(one, other);
    bits("2", true, &merged, other);
    assert_string_equal(one, other);
    bits("4", false, &merged, other);
    assert_string_equal(one, other);
    svi_bytes_clear(&merged);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_halves), cmocka_unit_test(test_held),
                                       cmocka_unit_test(test_lies), cmocka_unit_test(test_alone),
                                       cmocka_unit_test(test_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
