/* The plain sums that a fleet keeps for a model of many processes are those of all rows that its keys hold:
 * against fresh sums in long double, while samples are learned, labelled late and forgotten, keys go, leave
 * memory and fall silent, rows of huge values come and leave, settings change, and the whole is taken up from
 * its state. The number of threads and of keys in memory changes no bit of the record.
 *
 * Keys that meet columns and words in any order have one schema by name, with the words of all of them; only
 * keys that contradict each other have none. */
#include "support/engine.h"

#include "base/random.h"
#include "fleet/fleet_internal.h"
#include "learner/learner_internal.h"
#include "learner/learner_prior.h"
#include "wire/schema_map.h"

#define KEYS    9
#define D       4 /* columns; keys of an odd number lack the last */
#define WINDOW  20
#define ACTIONS 4000
#define CLASSES 3

static const char *const columns[D] = {"heat", "speed", "load", "tilt"};

struct walk {
    struct svi_random random;
    struct svi_settings s;
    svi_stream *fleet;
    svs_features *names; /* NULL: dense rows without names */
    bool regress;
    int sent[KEYS];
    struct svi_bytes frame;
    double now;
    int compared, unchanged;
};

static const char *name_of(int k) {
    static char text[8];
    snprintf(text, sizeof text, "m%d", k);
    return text;
}

static void silent(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

static void begin(struct walk *w) {
    svs_error err = {0};
    w->fleet = svi_stream_new(&w->s, 5, silent, NULL, &err);
    if (!w->fleet)
        fail_msg("%s", err.text);
    svi_stream_leave_open(w->fleet, true);
}

static void start(struct walk *w, const char *threads, const char *memory, const char *task, bool named) {
    const char *const settings[] = {"key",         "key",       "novelty", "none",      "window",
                                    "20",          "task",      task,      "keys.idle", "90",
                                    "alert.rules", "none",      "threads", threads,     "keys.memory",
                                    memory,        "key.prior", "10",      NULL};
    svs_error err = {0};
    *w = (struct walk){.random = {31}, .now = NOW, .regress = strcmp(task, "regress") == 0};
    svi_settings_default(&w->s);
    for (int i = 0; settings[i]; i += 2)
        assert_int_equal(svi_settings_set(&w->s, settings[i], settings[i + 1], &err), SVS_OK);
    w->s.publish_sums = 10;
    svi_settings_settle_method(&w->s);
    w->names = named ? svs_features_new(D, &err) : NULL;
    for (int j = 0; j < D && named; j++)
        assert_int_equal(svs_features_add(w->names, columns[j], strlen(columns[j]), &err), j);
    begin(w);
}

static void end(struct walk *w) {
    svi_stream_free(&w->fleet);
    svs_features_free(&w->names);
    svi_bytes_clear(&w->frame);
}

/* ---- the sums, again */

struct fresh {
    long double n, weight, x[D], xx[D][D], class_weight[CLASSES], class_x[CLASSES][D], t, tt, tx[D];
};

static void add_row(struct fresh *f, const svs_learner *l, int32_t slot, bool regress) {
    const double *x = svi_ring_row(&l->window, slot);
    const long double w = svi_ring_double(&l->window, SVI_RING_WEIGHT, slot, 1),
                      t = regress ? svi_ring_target(&l->window, slot) : 0;
    const int label = regress ? 0 : (int)l->classes[svi_ring_label(&l->window, slot)].as.i;
    f->n++;
    f->weight += w;
    f->class_weight[label] += w;
    f->t += w * t;
    f->tt += w * t * t;
    for (int i = 0; i < l->d; i++) {
        f->x[i] += w * x[i];
        f->class_x[label][i] += w * x[i];
        f->tx[i] += w * t * x[i];
        for (int j = 0; j < l->d; j++)
            f->xx[i][j] += w * (long double)x[i] * x[j];
    }
}

static void add_up(struct walk *w, struct fresh *f) {
    *f = (struct fresh){0};
    for (int k = 0; k < KEYS; k++) {
        svs_error err;
        svi_stream_settle(w->fleet);
        const svi_engine *e = svi_stream_engine(w->fleet, name_of(k), &err);
        for (int32_t i = 0, slot; e && (slot = svi_next_learned(e->learner, &i)) >= 0;)
            add_row(f, e->learner, slot, w->regress);
    }
}

static void near(long double is, long double should, long double size) {
    if (!(fabsl(is - should) <= 1e-11L * (size > 0 ? size : 1)))
        fail_msg("%Lg instead of %Lg, of %Lg", is, should, size);
}

/* The record of the fleet, as it would be published. */
static void record(struct walk *w, struct svi_sums *r) {
    svs_error err = {0};
    *r = (struct svi_sums){0};
    const uint64_t before = svi_stream_sums_mark(w->fleet);
    if (svi_stream_sums(w->fleet, r, &err) != SVS_OK)
        fail_msg("%s", err.text);
    const uint64_t after = svi_stream_sums_mark(w->fleet);
    w->unchanged += before == after;
    assert_true(after == svi_stream_sums_mark(w->fleet));
}

static int place(const struct walk *w, const struct svi_sums *r, const char *name, int number) {
    assert_true((w->names != NULL) == (r->features != NULL) || r->sums.d == 0);
    for (int j = 0; r->features && j < r->sums.d; j++)
        if (strcmp(r->features[j], name) == 0)
            return j;
    return r->features ? -1 : number;
}

static void compare_classes(const struct svi_sums *r, const struct fresh *f, const int *at,
                            const long double *deviation) {
    long double all = 0;
    for (int k = 0; k < r->sums.classes; k++) {
        const int label = (int)r->classes[k].as.i;
        near(r->sums.class_weight[k], f->class_weight[label], f->weight);
        all += r->sums.class_weight[k];
        for (int i = 0; i < D; i++)
            if (at[i] >= 0 && at[i] < r->sums.d)
                near(r->sums.class_sum[k * r->sums.d + at[i]],
                     f->class_x[label][i] - r->sums.center[at[i]] * f->class_weight[label],
                     f->weight * deviation[i]);
    }
    near(all, f->weight, f->weight);
}

static void compare(struct walk *w) {
    struct svi_sums r;
    struct fresh f;
    int at[D];
    long double deviation[D];
    record(w, &r);
    add_up(w, &f);
    near(r.sums.n, f.n, 0);
    near(r.sums.weight, f.weight, f.weight);
    for (int i = 0; i < D; i++)
        at[i] = place(w, &r, columns[i], i);
    for (int i = 0; i < D && f.n > 0; i++) {
        const bool known = at[i] >= 0 && at[i] < r.sums.d;
        const long double c = known ? r.sums.center[at[i]] : 0;
        deviation[i] = sqrtl(fmaxl(f.xx[i][i] - 2 * c * f.x[i] + c * c * f.weight, 0) / f.weight);
        assert_true(known || f.xx[i][i] == 0);
        if (known)
            near(r.sums.sum[at[i]], f.x[i] - c * f.weight, f.weight * deviation[i]);
    }
    for (int i = 0; i < D && f.n > 0; i++)
        for (int j = 0; j < D; j++) {
            const int a = at[i] > at[j] ? at[i] : at[j], b = at[i] + at[j] - a;
            if (b < 0 || a >= r.sums.d)
                continue;
            const long double ci = r.sums.center[at[i]], cj = r.sums.center[at[j]];
            near(r.sums.square[svi_sums_packed(a) + (size_t)b],
                 f.xx[i][j] - ci * f.x[j] - cj * f.x[i] + ci * cj * f.weight,
                 f.weight * deviation[i] * deviation[j]);
        }
    if (w->regress && f.n > 0) {
        near(r.sums.target_weight, f.t, sqrtl(f.tt * f.weight));
        near(r.sums.target_square, f.tt, f.tt);
        for (int i = 0; i < D; i++)
            if (at[i] >= 0 && at[i] < r.sums.d)
                near(r.sums.target_sum[at[i]], f.tx[i] - r.sums.center[at[i]] * f.t,
                     sqrtl(f.tt * f.weight) * deviation[i]);
    } else if (f.n > 0)
        compare_classes(&r, &f, at, deviation);
    w->compared += f.n > 0;
    svi_sums_clear(&r);
}

/* ---- what is done */

static void give(struct walk *w, struct svi_message *m, int k) {
    struct svi_envelope env;
    m->key = svs_str(name_of(k));
    w->frame.size = 0;
    assert_int_equal(svi_message_encode(m, w->names, false, &w->frame), SVS_OK);
    assert_int_equal(svi_envelope_read(&env, w->frame.data, w->frame.size), SVS_OK);
    svi_stream_apply_later(w->fleet, &env, w->now, false, NULL);
}

static void learn(struct walk *w, int k, double huge) {
    double x[D], score = 0;
    for (int j = 0; j < D; j++) {
        x[j] = (svi_random_below(&w->random, 2001) - 1000.0) / 500 + (j == 1 ? 1000 : 0) + k;
        score += (j % 2 ? -1 : 1) * x[j];
    }
    x[0] = huge != 0 ? huge : x[0];
    struct svi_message m = {.has_x = true,
                            .kind = w->names ? SVI_NAMED : SVI_DENSE,
                            .d = D - k % 2,
                            .x = x,
                            .ts = NAN,
                            .weight = 1 + (int)svi_random_below(&w->random, 3),
                            .n = -1};
    const bool later = svi_random_below(&w->random, 10) == 0;
    const svs_value y = w->regress ? svs_real(score) : svs_int(svi_random_below(&w->random, CLASSES));
    m.id = svs_int(w->sent[k]++);
    if (!later)
        m.y = y;
    give(w, &m, k);
    if (later) {
        struct svi_message label = {.op = SVI_LABEL, .id = m.id, .y = y, .ts = NAN, .weight = 1, .n = -1};
        give(w, &label, k);
    }
}

static void forget(struct walk *w, int k) {
    struct svi_message m = {.op = SVI_FORGET, .ts = NAN, .weight = 1, .n = -1};
    m.id = svs_int(w->sent[k] - 1 - (int)svi_random_below(&w->random, 25));
    give(w, &m, k);
}

static void drop(struct walk *w, int k) {
    svs_error err;
    svi_stream_settle(w->fleet);
    (void)svi_fleet_drop(svi_fleet_of(w->fleet), name_of(k), &err);
}

/* Another window: every key is made again of what it holds, when it is next used. */
static void configure(struct walk *w) {
    svs_error err = {0};
    char window[8];
    snprintf(window, sizeof window, "%d", WINDOW - 5 + (int)svi_random_below(&w->random, 10));
    svi_stream_settle(w->fleet);
    assert_int_equal(svi_settings_set(&w->s, "window", window, &err), SVS_OK);
    assert_int_equal(svi_stream_configure(w->fleet, &w->s, w->now, NULL, &err), SVS_OK);
}

/* `forgets`: the state is of a process that did not keep them. */
static void resume(struct walk *w, bool forgets) {
    struct svi_checkpoint c = {0};
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    svs_error err = {0};
    svi_stream_settle(w->fleet);
    if (forgets)
        assert_int_equal(svi_fleet_sums_keep(svi_fleet_of(w->fleet), false, &err), SVS_OK);
    assert_int_equal(svi_stream_hash(w->fleet, before, &err), SVS_OK);
    assert_int_equal(svi_stream_save(w->fleet, &c, &err), SVS_OK);
    svi_stream_free(&w->fleet);
    begin(w);
    if (svi_stream_load(w->fleet, &c, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(svi_stream_hash(w->fleet, after, &err), SVS_OK);
    assert_string_equal(before, after);
    svi_checkpoint_clear(&c);
}

static void act(struct walk *w, int i, bool restarts) {
    const int k = (int)svi_random_below(&w->random, i < 600 ? 3 : KEYS),
              what = (int)svi_random_below(&w->random, 600);
    static const double huge[] = {1e20, -1e9, 3e14, 1e90};
    w->now += what == 9 ? 60 : 0.25;
    if (what <= 1 && restarts)
        resume(w, what == 1);
    else if (what == 3 || what == 4)
        drop(w, k);
    else if (what == 5)
        configure(w);
    else if (what < 60 && w->sent[k] > 0)
        forget(w, k);
    else
        learn(w, k, what >= 592 && i % 1000 > 500 ? huge[what % 4] : 0);
}

static void walk(const char *threads, const char *memory, const char *task, bool named) {
    struct walk w;
    start(&w, threads, memory, task, named);
    for (int i = 0; i < ACTIONS; i++) {
        act(&w, i, true);
        /* While a huge row is held, what it costs the others is no fault: rows of 1 and of 1e20 have no
         * common digits in long double either. */
        if (i % 10 == 0 && i % 1000 < 500 && i % 1000 > 400)
            compare(&w);
    }
    assert_true(w.compared > 20 && w.unchanged > 0);
    end(&w);
}

static void test_sums(void **state) {
    (void)state;
    walk("1", "100", "classify", false);
    walk("1", "2", "classify", true);
    walk("1", "3", "regress", true);
}

/* ---- the same bits */

static void bits(const char *threads, const char *memory, const char *task, struct svi_bytes *out) {
    struct walk w;
    struct svi_sums r;
    start(&w, threads, memory, task, true);
    out->size = 0;
    for (int i = 0; i < ACTIONS / 2; i++) {
        act(&w, i, false);
        if (i % 500 != 499)
            continue;
        record(&w, &r);
        snprintf(r.part, sizeof r.part, "a");
        assert_int_equal(svi_sums_encode(&r, out), SVS_OK);
        svi_sums_clear(&r);
    }
    end(&w);
}

static void test_threads(void **state) {
    struct svi_bytes one = {0}, other = {0};
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *task = i ? "regress" : "classify";
        bits("0", "100", task, &one);
        assert_true(one.size > 1200);
        const char *const others[][2] = {{"2", "100"}, {"4", "2"}, {"1", "3"}};
        for (int k = 0; k < 3; k++) {
            bits(others[k][0], others[k][1], task, &other);
            assert_int_equal(one.size, other.size);
            assert_memory_equal(one.data, other.data, one.size);
        }
    }
    svi_bytes_clear(&one);
    svi_bytes_clear(&other);
}

/* ---- the schema */

#define WORDS 5

/* A word has = and the name of another column in it: names of features alone must still tell them apart. */
static const char *const words[WORDS] = {"low", "high", "=", "heat=1", "(none)"};

struct column {
    const char *name;
    bool category;
    int every, rest; /* keys k with k % every == rest have it */
};

static const struct column mixed[] = {{"heat", false, 1, 0},  {"shift", true, 1, 0}, {"rate=2", false, 2, 1},
                                      {"place", true, 3, 1},  {"load", false, 1, 0}, {"machine", true, 4, 2},
                                      {"weight", false, 5, 3}};
#define MIXED (int)(sizeof mixed / sizeof *mixed)

static void put_cell(struct walk *w, struct svi_pack *p, const struct column *c, bool contrary) {
    const int draw = (int)svi_random_below(&w->random, 1000);
    if (c->category != contrary)
        svi_put_text(p, c->name, words[draw % WORDS]);
    else
        svi_put_int(p, c->name, draw + 1);
}

/* The columns come in another order in each row. `contrary`: the column that has the other kind; -1: none. */
static void learn_cells(struct walk *w, int k, int contrary) {
    struct svi_pack p;
    struct svi_envelope env;
    const int first = (int)svi_random_below(&w->random, MIXED);
    w->frame.size = 0;
    svi_pack_begin(&p, &w->frame);
    const struct svi_open_map all = svi_pack_open(&p);
    svi_put_text(&p, "key", name_of(k));
    svi_put_int(&p, "y", svi_random_below(&w->random, CLASSES));
    svi_pack_key(&p, "x");
    const struct svi_open_map x = svi_pack_open(&p);
    for (int i = 0; i < MIXED; i++) {
        const int c = (first + i) % MIXED;
        if (k % mixed[c].every == mixed[c].rest)
            put_cell(w, &p, mixed + c, c == contrary);
    }
    svi_pack_close(&p, x);
    svi_pack_close(&p, all);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    assert_int_equal(svi_envelope_read(&env, w->frame.data, w->frame.size), SVS_OK);
    svi_stream_apply_later(w->fleet, &env, w->now, false, NULL);
}

/* The column of mixed[] that a feature must belong to, by what was sent. */
static int column_of(const char *feature) {
    char name[64];
    for (int c = 0; c < MIXED; c++)
        for (int v = 0; v < WORDS; v++) {
            snprintf(name, sizeof name, mixed[c].category ? "%s=%s" : "%s", mixed[c].name, words[v]);
            if (strcmp(name, feature) == 0)
                return c;
        }
    fail_msg("nobody sent %s", feature);
    return -1;
}

/* Every feature has the column that was sent, and a column of numbers the mean of all rows. */
static void compare_schema(struct walk *w, int *features) {
    struct svi_sums r;
    struct svi_model_schema m = {0};
    svs_error err = {0};
    record(w, &r);
    *features = r.sums.d;
    assert_non_null(r.schema);
    const uint8_t *at = r.schema;
    if (svi_schema_decode(&m, r.features, r.sums.d, at, at + r.schema_size, &err) != SVS_OK)
        fail_msg("%s", err.text);
    for (int j = 0; j < r.sums.d; j++) {
        const int c = column_of(r.features[j]), owner = m.schema.owner[j];
        assert_true(owner >= 0);
        assert_string_equal(svi_schema_column_name(&m.schema, owner), mixed[c].name);
        assert_int_equal(svi_schema_kind(&m.schema, owner),
                         mixed[c].category ? SVI_COLUMN_CATEGORY : SVI_COLUMN_NUMBER);
        if (!mixed[c].category)
            assert_true(m.mean[j] == r.sums.center[j]);
    }
    svi_model_schema_clear(&m);
    svi_sums_clear(&r);
}

static bool has_schema(struct walk *w) {
    struct svi_sums r;
    record(w, &r);
    const bool has = r.schema != NULL;
    svi_sums_clear(&r);
    return has;
}

static void test_schema(void **state) {
    static const int contraries[] = {0, 1, 3};
    int features = 0;
    (void)state;
    for (int round = 0; round < 40; round++) {
        struct walk w;
        start(&w, "1", round % 2 ? "2" : "100", "classify", false);
        w.random = (struct svi_random){(uint64_t)(100 + round)};
        for (int i = 0; i < 300; i++) {
            learn_cells(&w, (int)svi_random_below(&w.random, KEYS), -1);
            if (i % 40 == 39)
                compare_schema(&w, &features);
            if (i == 150)
                resume(&w, round % 3 == 0);
        }
        assert_int_equal(features, 4 + 3 * WORDS);
        /* One key contradicts the others, until it is dropped. */
        const int contrary = contraries[round % 3], k = contrary == 3 ? KEYS + 1 : KEYS;
        learn_cells(&w, k, contrary);
        assert_false(has_schema(&w));
        learn_cells(&w, 1, -1); /* whichever key was the last */
        assert_false(has_schema(&w));
        drop(&w, k);
        assert_true(has_schema(&w));
        end(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads), cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_schema)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
