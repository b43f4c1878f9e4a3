/* What one hostile row, or one key in other units, leaves in the model of all keys: nothing. While it is
 * there new keys begin as well as without it; when it has left (by the window, forget, drop, kill and
 * restart) the model of all keys is that of what is held, against fresh sums in long double. A fleet that
 * never saw a hostile key comes to the same. And the number of threads, of keys in memory, and a restart in
 * between change no bit. */
#include "support/engine.h"
#include "support/quick.h"

#include "base/random.h"
#include "fleet/fleet_internal.h"
#include "learner/learner_internal.h"

#define D      3
#define KEYS   20
#define WINDOW 50
#define FIRST  30 /* samples of a new key that are compared */
#define NEW    150

struct run {
    struct svi_random random;
    struct svi_settings s;
    svi_stream *fleet;
    struct svi_bytes frame;
    double now;
    int64_t taken;
    double spread; /* of all features, in usual ones */
    int id[400];
};

static void silent(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

static void begin(struct run *r) {
    svs_error err = {0};
    r->fleet = svi_stream_new(&r->s, 5, silent, NULL, &err);
    if (!r->fleet)
        fail_msg("%s", err.text);
    svi_stream_leave_open(r->fleet, true);
}

static void start(struct run *r, const char *task, const char *threads, const char *memory) {
    const char *const settings[] = {"key",       "key",   "novelty", "none", "window",      "50",
                                    "method",    "alsvm", "task",    task,   "alert.rules", "none",
                                    "threads",   threads, "refit",   "none", "keys.memory", memory,
                                    "key.prior", "10",    NULL};
    svs_error err = {0};
    *r = (struct run){.random = {7}, .now = NOW, .spread = 1};
    svi_settings_default(&r->s);
    for (int i = 0; settings[i]; i += 2)
        assert_int_equal(svi_settings_set(&r->s, settings[i], settings[i + 1], &err), SVS_OK);
    svi_settings_settle_method(&r->s);
    begin(r);
}

static void end(struct run *r) {
    svi_stream_free(&r->fleet);
    svi_bytes_clear(&r->frame);
}

static void give(struct run *r, struct svi_message *m, int key) {
    struct svi_envelope env;
    char name[16];
    snprintf(name, sizeof name, "m%d", key);
    m->key = key >= 0 ? svs_str(name) : svs_str("");
    m->id = m->op == SVI_LEARN && key >= 0 ? svs_int(r->id[key]++) : m->id;
    r->frame.size = 0;
    assert_int_equal(svi_message_encode(m, NULL, false, &r->frame), SVS_OK);
    assert_int_equal(svi_envelope_read(&env, r->frame.data, r->frame.size), SVS_OK);
    svi_stream_apply_later(r->fleet, &env, r->now += 0.25, false, NULL);
    r->taken++;
}

static double gauss(struct svi_random *random) {
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (svi_random_below(random, 1000001) - 500000.0) / 1e6;
    return sum;
}

/* A sample: the same law in each key, at levels of their own. times: in other units. */
static void learn(struct run *r, int key, double times, double weight, double value) {
    double x[D], score = 0;
    static const double law[D] = {1, -2, 1};
    for (int j = 0; j < D; j++) {
        x[j] = gauss(&r->random);
        score += law[j] * x[j];
        x[j] = times * (r->spread * x[j] + (j + 1) * 10 + key % 7 * 0.5);
        x[j] = value != 0 ? value : x[j];
    }
    const bool regress = r->s.task == SVS_REGRESS;
    struct svi_message m = {
        .has_x = true, .kind = SVI_DENSE, .d = D, .x = x, .ts = NAN, .weight = weight, .n = -1};
    m.y =
        regress ? svs_real(value != 0 ? value : times * score) : svs_int(score + 0.5 * gauss(&r->random) > 0);
    give(r, &m, key);
}

static int some_key(struct run *r) {
    return (int)svi_random_below(&r->random, KEYS);
}

static void drop(struct run *r, int key) {
    char name[16];
    svs_error err;
    snprintf(name, sizeof name, "m%d", key);
    svi_stream_settle(r->fleet);
    assert_int_equal(svi_fleet_drop(svi_fleet_of(r->fleet), name, &err), SVS_OK);
}

static void resume(struct run *r) {
    struct svi_checkpoint c = {0};
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    svs_error err = {0};
    svi_stream_settle(r->fleet);
    assert_int_equal(svi_stream_hash(r->fleet, before, &err), SVS_OK);
    assert_int_equal(svi_stream_save(r->fleet, &c, &err), SVS_OK);
    svi_stream_free(&r->fleet);
    begin(r);
    if (svi_stream_load(r->fleet, &c, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(svi_stream_hash(r->fleet, after, &err), SVS_OK);
    assert_string_equal(before, after);
    svi_checkpoint_clear(&c);
}

static double figure(struct run *r, const char *name) {
    const struct svi_figure *f;
    const int count = svi_stream_figures(r->fleet, NULL, r->now, &f);
    return svi_figure_value(f, count, name);
}

/* Up to where keys are coupled next. */
static void couple(struct run *r) {
    do
        learn(r, some_key(r), 1, 1, 0);
    while (r->taken % 1024 != 0);
    svi_stream_settle(r->fleet);
}

/* ---- the prior, again */

static svs_learner *learner_of(struct run *r, int key) {
    char name[16];
    svs_error err;
    snprintf(name, sizeof name, "m%d", key);
    svi_stream_settle(r->fleet);
    svi_engine *e = svi_stream_engine(r->fleet, name, &err);
    return e ? e->learner : NULL;
}

static const struct svi_prior *newest(struct run *r) {
    return *learner_of(r, 0)->prior->newest;
}

struct fresh {
    long double all[D + 1][D + 1], label[4][D + 1];
    int labels;
};

/* Of all that the keys hold: no bound is looked at. */
static void add_up(struct run *r, int keys, const struct svi_prior *p, struct fresh *f) {
    *f = (struct fresh){.labels = p->labels};
    for (int k = 0; k < keys; k++) {
        svs_learner *l = learner_of(r, k);
        for (int32_t i = 0, slot; l && (slot = svi_next_learned(l, &i)) >= 0;) {
            const double *x = svi_ring_row(&l->window, slot);
            long double z[D + 1] = {1}, t = svi_ring_target(&l->window, slot);
            const int label = svi_ring_label(&l->window, slot);
            const int at = p->regress ? 0 : svi_prior_label(p, l->classes[label], -1);
            for (int j = 0; j < D; j++)
                z[j + 1] = (long double)x[j] - (long double)l->prior->center[j];
            for (int a = 0; a <= D; a++) {
                for (int b = 0; b <= D; b++)
                    f->all[a][b] += z[a] * z[b];
                f->label[at][a] += (p->regress ? t : 1) * z[a];
            }
        }
    }
}

static void near(long double is, long double should, long double size) {
    if (!(fabsl(is - should) <= 1e-10L * (size > 0 ? size : 1)))
        fail_msg("%Lg instead of %Lg, of %Lg", is, should, size);
}

/* What the prior holds is what keys hold. */
static void compare(struct run *r, int keys) {
    const struct svi_prior *p = newest(r);
    struct fresh f;
    assert_non_null(p);
    assert_int_equal(p->d, D);
    add_up(r, keys, p, &f);
    const long double n = f.all[0][0];
    near(p->total, n, n);
    for (int i = 0; i < D; i++) {
        const long double m = p->mean[i], deviation = sqrtl(f.all[i + 1][i + 1] / n);
        near(m, f.all[0][i + 1] / n, deviation);
        for (int j = 0; j <= i; j++) {
            const long double mj = p->mean[j];
            near(p->spread[svi_triangle(i) + j],
                 f.all[i + 1][j + 1] - m * f.all[0][j + 1] - mj * f.all[0][i + 1] + m * mj * n,
                 sqrtl(f.all[i + 1][i + 1] * f.all[j + 1][j + 1]));
        }
        for (int k = 0; k < p->labels; k++)
            near(p->sum[k * D + i], f.label[k][i + 1] - m * f.label[k][0], n * deviation);
    }
    for (int k = 0; k < p->labels; k++)
        near(p->weight[k], f.label[k][0], n);
}

/* ---- while it is there */

enum hostile {
    NOTHING,
    ROW_1E20,
    ROW_1E17,
    ROWS_1E20,
    EARLY_ROW,
    UNITS,
    UNITS_SILENT,
    UNITS_10,
    UNITS_SMALL,
    FIRST_UNITS,
    WEIGHT,
    ROW_WEIGHT,
    KINDS
};

static void send_hostile(struct run *r, enum hostile kind, int i) {
    if (kind == FIRST_UNITS && i < 300)
        learn(r, KEYS, 1000, 1, 0);
    if (kind == EARLY_ROW && i == 30)
        learn(r, 3, 1, 1, 1e20);
    if ((kind == ROW_1E20 || kind == ROW_1E17) && i == 1500)
        learn(r, 3, 1, 1, kind == ROW_1E20 ? 1e20 : 1e17);
    if (kind == ROW_WEIGHT && i == 1500)
        learn(r, 3, 1, 1e9, 0);
    if (kind == ROWS_1E20 && i >= 1200 && i < 1400)
        learn(r, some_key(r), 1, 1, 1e20);
    if (((kind == UNITS || kind == UNITS_10 || kind == UNITS_SMALL) && i % 10 == 0) ||
        (kind == UNITS_SILENT && i > 500 && i < 600))
        learn(r, KEYS, kind == UNITS_10 ? 10 : kind == UNITS_SMALL ? 0.01 : 1000, 1, 0);
    if (kind == WEIGHT && i % 10 == 0)
        learn(r, KEYS, 1, 1e9, 0);
}

/* Share of the first samples of new keys that are right. */
static double new_keys(enum hostile kind) {
    struct run r;
    struct svi_stream_progress before, after;
    start(&r, "classify", "1", "1000");
    for (int i = 0; i < 2000; i++) {
        send_hostile(&r, kind, i);
        learn(&r, some_key(&r), 1, 1, 0);
    }
    r.random = (struct svi_random){99}; /* the same in each run */
    int64_t right = 0;
    for (int k = 0; k < NEW; k++)
        for (int i = 0; i < FIRST; i++) {
            svi_stream_progress(r.fleet, &before);
            learn(&r, KEYS + 1 + k, 1, 1, 0);
            svi_stream_progress(r.fleet, &after);
            right += after.sums.right - before.sums.right;
        }
    const bool far = kind >= ROW_1E20 && kind != EARLY_ROW && kind < UNITS_10 && kind != NOTHING;
    assert_true(!far || figure(&r, "prior_rows_excluded") > 0);
    print_message("# hostile %d: %.4f right; keys out %g, rows out %g\n", kind, (double)right / (NEW * FIRST),
                  figure(&r, "prior_keys_excluded"), figure(&r, "prior_rows_excluded"));
    end(&r);
    return (double)right / (NEW * FIRST);
}

static void test_new_keys(void **state) {
    (void)state;
    const double without = new_keys(NOTHING);
    for (enum hostile kind = NOTHING + 1; kind < KINDS; kind++)
        assert_true(fabs(new_keys(kind) - without) < 0.01);
}

/* ---- when it has left */

static void forget(struct run *r, int key, int id) {
    struct svi_message m = {.op = SVI_FORGET, .id = svs_int(id), .ts = NAN, .weight = 1, .n = -1};
    give(r, &m, key);
}

/* The models of all keys are made again of what they hold. */
static void change_window(struct run *r, const char *window) {
    svs_error err = {0};
    assert_int_equal(svi_settings_set(&r->s, "window", window, &err), SVS_OK);
    assert_int_equal(svi_stream_configure(r->fleet, &r->s, r->now, NULL, &err), SVS_OK);
}

/* What comes in a walk: rows, and a key, far outside, that are forgotten at times; with a restart or not. */
static void suffer(struct run *r, bool restart) {
    static const double value[] = {1e20, -1e17, 1e17, 1e30};
    for (int i = 0; i < 3000; i++) {
        const int key = some_key(r), what = (int)svi_random_below(&r->random, 60);
        if (what < 4)
            learn(r, key, 1, 1, value[what]);
        if (what == 3)
            forget(r, key, r->id[key] - 1);
        if (what == 4)
            learn(r, key, 1, 1e9, 0);
        if (what > 40)
            learn(r, KEYS, what > 50 ? 1000 : 1, what > 50 ? 1 : 1e9, 0);
        if (i == 1777)
            drop(r, key);
        if (i == 2222)
            change_window(r, "40");
        if (restart && i % 1000 == 500)
            resume(r);
        learn(r, some_key(r), 1, 1, 0);
    }
    drop(r, KEYS);
}

static void leave(const char *task, const char *memory) {
    struct run r;
    start(&r, task, "1", memory);
    suffer(&r, true);
    assert_true(figure(&r, "prior_rows_excluded") > 0);
    for (int i = 0; i < 4000; i++)
        learn(&r, some_key(&r), 1, 1, 0);
    couple(&r);
    assert_true(figure(&r, "prior_rows_excluded") == 0 && figure(&r, "prior_keys_excluded") == 0);
    compare(&r, KEYS);
    resume(&r);
    for (int i = 0; i < 100; i++)
        learn(&r, some_key(&r), 1, 1, 0);
    couple(&r);
    compare(&r, KEYS);
    end(&r);
}

static void test_leaves_nothing(void **state) {
    (void)state;
    leave("classify", "1000");
    leave("classify", "4");
    leave("regress", "1000");
}

/* One key and another alone: nobody can tell which of them is right, so all enters; and leaves. */
static void test_few_keys(void **state) {
    struct run r;
    (void)state;
    start(&r, "classify", "1", "1");
    for (int i = 0; i < 1024; i++)
        learn(&r, i % 2, 1, 1, i % 100 == 99 && i < 700 ? 1e20 : 0);
    svi_stream_settle(r.fleet);
    compare(&r, 2);
    end(&r);
}

/* What all keys come to is what they have in common, however far from what it was: once it fills their
 * windows it is let in again, long before their next planned rebuild. */
static void test_all_change(void **state) {
    struct run r;
    (void)state;
    start(&r, "classify", "1", "1000");
    for (int k = 0; k < 2; k++) {
        r.spread = k ? 100 : 1;
        for (int i = 0; i < 1500; i++)
            learn(&r, i % KEYS, 1, 1, 0);
        couple(&r);
        assert_true(figure(&r, "prior_rows_excluded") == 0 && figure(&r, "prior_keys_excluded") == 0);
        compare(&r, KEYS);
    }
    end(&r);
}

/* ---- a fleet that never saw it */

static void twin(bool hostile, bool silent_key, struct svi_prior *copy, double *values) {
    struct run r;
    start(&r, "classify", "1", "1000");
    for (int i = 0; i < 30000; i++) {
        const bool there = i < 6000 && (!silent_key || i < 700);
        if (there && i % 7 == 0)
            learn(&r, hostile ? KEYS : -1, 1000, i % 2 ? 1 : 1e9, 0);
        if (i == 8000 && hostile)
            drop(&r, KEYS);
        learn(&r, some_key(&r), 1, 1, 0);
    }
    couple(&r);
    compare(&r, KEYS);
    *copy = *newest(&r);
    for (int i = 0; i < D; i++) {
        values[i] = copy->mean[i];
        values[D + i] = copy->level[i];
        values[2 * D + i] = copy->between[i];
        for (int j = 0; j <= i; j++)
            values[3 * D + svi_triangle(i) + j] = copy->spread[svi_triangle(i) + j] / copy->total;
    }
    end(&r);
}

static void test_twin(void **state) {
    (void)state;
    for (int silent_key = 0; silent_key < often(2, 1); silent_key++) {
        struct svi_prior with, without;
        double a[3 * D + D * (D + 1) / 2], b[3 * D + D * (D + 1) / 2];
        twin(true, silent_key, &with, a);
        twin(false, silent_key, &without, b);
        near(with.total, without.total, without.total);
        for (int i = 0; i < 3 * D + D * (D + 1) / 2; i++)
            near(a[i], b[i], fmax(1, fabs(b[i])));
    }
}

/* ---- the same bits */

static void bits(const char *task, const char *threads, const char *memory, bool restart, char *hash) {
    struct run r;
    svs_error err;
    start(&r, task, threads, memory);
    suffer(&r, restart);
    svi_stream_settle(r.fleet);
    assert_int_equal(svi_stream_hash(r.fleet, hash, &err), SVS_OK);
    end(&r);
}

static void test_same_bits(void **state) {
    char one[SVI_HASH_TEXT], other[SVI_HASH_TEXT];
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *task = i ? "regress" : "classify";
        bits(task, "1", "1000", false, one);
        bits(task, "2", "1000", false, other);
        assert_string_equal(one, other);
        bits(task, "3", "4", false, other);
        assert_string_equal(one, other);
        bits(task, "1", "4", true, other);
        assert_string_equal(one, other);
    }
}

int main(void) {
    /* The first has several threads; the others have no races to be found. */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits),      cmocka_unit_test(test_new_keys),
                                       cmocka_unit_test(test_leaves_nothing), cmocka_unit_test(test_few_keys),
                                       cmocka_unit_test(test_all_change),     cmocka_unit_test(test_twin)};
    const struct CMUnitTest threads[] = {tests[0]};
    return races() ? cmocka_run_group_tests(threads, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
}
