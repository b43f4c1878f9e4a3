/* The bank that all keys share (`method auto` with key.shared). Its scores, and with them all that keys come
 * to, are the same bits with any number of threads, of keys in memory and of elements in a message, and after
 * restarts. What is dropped or forgotten leaves its windows exactly. A key that floods it, or sends garbage,
 * has a bounded share of it and does not change how new keys begin. Without it each key is a stream of its
 * own. And it is worth having where keys have in common what no line separates; the shares of right answers
 * are those of the plain build alone. */
#include "support/engine.h"
#include "support/quick.h"

#include "base/random.h"
#include "fleet/fleet_internal.h"
#include "fleet/fleet_shared_internal.h"

#define D     4
#define KEYS  20
#define FIRST 30

struct run {
    struct svi_random random;
    struct svi_settings s;
    svi_stream *fleet;
    struct svi_bytes frame, batch, said, event;
    int elements, most, ids[400];
    double now;
};

static void hear(void *user, const struct svi_event *event) {
    struct run *r = user;
    const struct svi_bytes *bytes = event->payload;
    if (event->topic != SVI_TOPIC_SCORE)
        return;
    if (!bytes) {
        assert_int_equal(svi_event_encode(event, &r->event), SVS_OK);
        bytes = &r->event;
    }
    assert_int_equal(svi_bytes_append(&r->said, bytes->data, bytes->size), SVS_OK);
}

static void begin(struct run *r) {
    svs_error err = {0};
    r->fleet = svi_stream_new(&r->s, 5, hear, r, &err);
    if (!r->fleet)
        fail_msg("%s", err.text);
    svi_stream_use_threads(r->fleet);
    svi_stream_encode(r->fleet, 1u << SVI_TOPIC_SCORE);
    svi_stream_leave_open(r->fleet, true);
}

static void set(struct run *r, const char *const *given) {
    svs_error err = {0};
    for (int i = 0; given[i]; i += 2)
        if (svi_settings_set(&r->s, given[i], given[i + 1], &err) != SVS_OK)
            fail_msg("%s", err.text);
}

/* most: elements of a message at most. */
static void start(struct run *r, const char *const *further, int most) {
    static const char *const common[] = {"key",         "key",  "novelty", "none", "method", "auto",
                                         "alert.rules", "none", "scores",  "all",  NULL};
    *r = (struct run){.random = {7}, .now = NOW, .most = most};
    svi_settings_default(&r->s);
    set(r, common);
    set(r, further);
    svi_settings_settle_method(&r->s);
    begin(r);
}

static void end(struct run *r) {
    svi_stream_free(&r->fleet);
    svi_bytes_clear(&r->frame);
    svi_bytes_clear(&r->batch);
    svi_bytes_clear(&r->said);
    svi_bytes_clear(&r->event);
}

static void send_batch(struct run *r) {
    struct svi_envelope env;
    struct svi_pack p;
    if (r->elements == 0)
        return;
    r->frame.size = 0;
    svi_pack_begin(&p, &r->frame);
    svi_pack_array(&p, (size_t)r->elements);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    assert_int_equal(svi_bytes_append(&r->frame, r->batch.data, r->batch.size), SVS_OK);
    assert_int_equal(svi_envelope_read(&env, r->frame.data, r->frame.size), SVS_OK);
    svi_stream_apply_later(r->fleet, &env, r->now, false, NULL);
    r->elements = 0;
    r->batch.size = 0;
}

static void give(struct run *r, struct svi_message *m, int key) {
    char name[16];
    snprintf(name, sizeof name, "m%d", key);
    m->key = svs_str(name);
    assert_int_equal(svi_message_encode(m, NULL, false, &r->batch), SVS_OK);
    if (++r->elements >= r->most)
        send_batch(r);
}

static void settle(struct run *r) {
    send_batch(r);
    svi_stream_settle(r->fleet);
}

static double gauss(struct svi_random *random) {
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (svi_random_below(random, 1000001) - 500000.0) / 1e6;
    return sum;
}

enum law { LINE, CROSS, GARBAGE };

/* A sample of a key. LINE: the same line in each key, at a level of its own; CROSS: the sign of a product, in
 * all keys; GARBAGE: labels that mean nothing, of rows that do. */
static void learn(struct run *r, int key, enum law law, double times, bool labelled) {
    double x[D];
    for (int j = 0; j < D; j++)
        x[j] = gauss(&r->random);
    const double score = law == CROSS  ? 3 * x[0] * x[1]
                         : law == LINE ? x[0] - 2 * x[1] + x[2]
                                       : gauss(&r->random);
    for (int j = 0; j < D; j++)
        x[j] = times * (x[j] + (law == LINE ? key * (j + 3) % 7 * 0.5 : 0));
    struct svi_message m = {
        .has_x = true, .kind = SVI_DENSE, .d = D, .x = x, .ts = NAN, .weight = 1, .n = -1};
    const bool right = score + 0.3 * gauss(&r->random) > 0;
    m.id = svs_int(r->ids[key]++);
    if (labelled)
        m.y = r->s.task == SVS_REGRESS ? svs_real(score) : svs_int(right);
    give(r, &m, key);
}

static void about(struct run *r, int key, enum svi_op op, int id) {
    struct svi_message m = {.op = op, .ts = NAN, .weight = 1, .n = -1, .id = svs_int(id)};
    if (op == SVI_LABEL)
        m.y = r->s.task == SVS_REGRESS ? svs_real(0.5) : svs_int(id % 3 == 0);
    give(r, &m, key);
}

static void command(struct run *r, const char *op, int key) {
    struct svi_pack p;
    struct svi_command c;
    svs_error err;
    char name[16];
    snprintf(name, sizeof name, "m%d", key);
    settle(r);
    r->frame.size = 0;
    svi_pack_begin(&p, &r->frame);
    svi_pack_map(&p, 2);
    svi_put_text(&p, "op", op);
    svi_put_text(&p, "key", name);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    assert_int_equal(svi_command_read(&c, r->frame.data, r->frame.size, &err), SVS_OK);
    if (svi_stream_command(r->fleet, &c, &r->s, r->now, NULL, &err) != SVS_OK)
        fail_msg("%s", err.text);
}

static void resume(struct run *r) {
    struct svi_checkpoint c = {0};
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    svs_error err = {0};
    settle(r);
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

static struct svi_key_entry *entry_of(struct run *r, int key) {
    char name[16];
    snprintf(name, sizeof name, "m%d", key);
    return svi_key_table_find(svi_fleet_of(r->fleet)->table, name, strlen(name));
}

static void check(struct run *r) {
    settle(r);
    const char *wrong = svi_fleet_shared_check(svi_fleet_of(r->fleet), 1e-6);
    if (wrong)
        fail_msg("%s", wrong);
}

static double accuracy(struct run *r, enum law law, int from, int keys) {
    struct svi_stream_progress before, after;
    settle(r);
    svi_stream_progress(r->fleet, &before);
    for (int i = 0; i < FIRST; i++)
        for (int k = 0; k < keys; k++)
            learn(r, from + k, law, 1, true);
    settle(r);
    svi_stream_progress(r->fleet, &after);
    return (double)(after.sums.right - before.sums.right) / (FIRST * keys);
}

/* ---- the same bits */

static void walk(const char *task, const char *threads, const char *memory, int most, bool restart,
                 struct svi_bytes *said, char *hash) {
    const char *const given[] = {"task", task, "threads", threads, "keys.memory", memory, NULL};
    struct run r;
    svs_error err;
    start(&r, given, most);
    for (int i = 0; i < often(1500, 700); i++) {
        const int key = (int)svi_random_below(&r.random, KEYS), what = (int)svi_random_below(&r.random, 40);
        learn(&r, key, what < 20 ? LINE : CROSS, what == 0 ? 1e6 : 1, what > 8);
        if (what < 6)
            about(&r, key, what < 4 ? SVI_LABEL : SVI_FORGET,
                  r.ids[key] - 1 - (int)svi_random_below(&r.random, 5));
        if (i % 300 == 299)
            command(&r, i % 600 == 299 ? "drop" : "reset", (i / 300) % KEYS);
        if (restart && i % 400 == 350)
            resume(&r);
    }
    check(&r);
    assert_int_equal(svi_stream_hash(r.fleet, hash, &err), SVS_OK);
    *said = r.said;
    r.said = (struct svi_bytes){0};
    end(&r);
}

static void compare(const char *task, const char *threads, const char *memory, int most, bool restart,
                    const struct svi_bytes *one, const char *hash) {
    struct svi_bytes other;
    char again[SVI_HASH_TEXT];
    walk(task, threads, memory, most, restart, &other, again);
    assert_int_equal(one->size, other.size);
    assert_memory_equal(one->data, other.data, one->size);
    assert_string_equal(hash, again);
    svi_bytes_clear(&other);
}

static void same_bits(void **state) {
    (void)state;
    for (int i = 0; i < 2; i += every(2)) {
        const char *task = i ? "regress" : "classify";
        struct svi_bytes one;
        char hash[SVI_HASH_TEXT];
        walk(task, "1", "1000", 1, false, &one, hash);
        assert_true(one.size > 10000);
        compare(task, "3", "4", 7, false, &one, hash);
        if (!quick()) {
            compare(task, "1", "1000", 50, false, &one, hash);
            compare(task, "2", "1000", 50, false, &one, hash);
            compare(task, "1", "3", 1, true, &one, hash);
        }
        compare(task, "2", "5", 20, true, &one, hash);
        svi_bytes_clear(&one);
    }
}

/* ---- what leaves it */

static void leaves_exactly(void **state) {
    static const char *const given[] = {NULL};
    struct run r;
    (void)state;
    start(&r, given, 1);
    for (int i = 0; i < 1200; i++)
        learn(&r, i % 5, i % 2 ? LINE : CROSS, 1, i % 7 > 0);
    settle(&r);
    assert_true(svi_fleet_shared_rows(svi_fleet_of(r.fleet), entry_of(&r, 3)) > 100);
    check(&r);
    command(&r, "reset", 3);
    assert_int_equal(svi_fleet_shared_rows(svi_fleet_of(r.fleet), entry_of(&r, 3)), 0);
    check(&r);
    command(&r, "drop", 1);
    check(&r);
    for (int i = 0; i < 40; i++)
        about(&r, 2, SVI_FORGET, i);
    check(&r);
    end(&r);
}

/* The same id in two keys is two samples. */
static void ids_of_keys(void **state) {
    static const char *const given[] = {"key.prior", "0", NULL};
    struct run r;
    (void)state;
    start(&r, given, 1);
    for (int i = 0; i < 100; i++)
        learn(&r, i % 2, LINE, 1, true);
    for (int i = 0; i < 4; i++) {
        settle(&r);
        assert_int_equal(svi_fleet_shared_held(svi_fleet_of(r.fleet)), 100 - (i + 1) / 2);
        about(&r, i / 2, SVI_FORGET, 3); /* twice each: the second finds nothing */
    }
    check(&r);
    end(&r);
}

/* What the engine of its key refuses by its head is not learned: another stream's, ahead of the clock. */
static void refused_not_learned(void **state) {
    static const char *const given[] = {NULL};
    struct run r;
    (void)state;
    start(&r, given, 1);
    for (int i = 0; i < 20; i++)
        learn(&r, i % 2, LINE, 1, true);
    for (int i = 0; i < 3; i++) {
        double x[D] = {1, 2, 3, 4};
        struct svi_message m = {.has_x = true,
                                .kind = SVI_DENSE,
                                .d = D,
                                .x = x,
                                .ts = NAN,
                                .weight = 1,
                                .n = -1,
                                .y = svs_int(1)};
        if (i == 0)
            m.stream = svs_str("another");
        if (i == 1)
            m.ts = NOW + 1e6;
        give(&r, &m, i % 2);
        settle(&r);
        assert_int_equal(svi_fleet_shared_held(svi_fleet_of(r.fleet)), i < 2 ? 20 : 21);
    }
    check(&r);
    end(&r);
}

/* ---- the first rows */

/* A row whose label is 1. */
static void learn_one(struct run *r, int key) {
    double x[D];
    for (int j = 0; j < D; j++)
        x[j] = gauss(&r->random);
    struct svi_message m = {
        .has_x = true, .kind = SVI_DENSE, .d = D, .x = x, .ts = NAN, .weight = 1, .n = -1, .y = svs_int(1)};
    give(r, &m, key);
}

/* The bank learns from the first row of the stream, and a key answers with a class that only others have had:
 * all keys begin with one row, and only the first of them cannot know its class. */
static void first_rows(void **state) {
    static const char *const given[] = {NULL};
    struct run r;
    struct svi_stream_progress p;
    (void)state;
    start(&r, given, 1);
    for (int k = 0; k < 40; k++)
        learn_one(&r, k);
    settle(&r);
    assert_int_equal(svi_fleet_shared_held(svi_fleet_of(r.fleet)), 40);
    svi_stream_progress(r.fleet, &p);
    assert_int_equal(p.sums.right, 39);
    end(&r);
}

/* What keys began with before bounds were known is bounded, too: a weight or a row far from theirs, in the
 * first rows of the stream, is gone at the first coupling. */
static void early_rows(void **state) {
    static const char *const given[] = {NULL};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct run r;
        start(&r, given, 1);
        double x[D] = {1, i ? 1e6 : 2, 3, 4};
        struct svi_message m = {.has_x = true,
                                .kind = SVI_DENSE,
                                .d = D,
                                .x = x,
                                .ts = NAN,
                                .weight = i ? 1 : 1e6,
                                .n = -1,
                                .y = svs_int(1)};
        give(&r, &m, KEYS);
        for (int n = 1; n < 63; n++)
            learn(&r, n % KEYS, LINE, 1, true);
        settle(&r);
        assert_int_equal(svi_fleet_shared_held(svi_fleet_of(r.fleet)), 63);
        for (int n = 0; n < 10; n++)
            learn(&r, n, LINE, 1, true);
        settle(&r);
        assert_in_range(svi_fleet_shared_held(svi_fleet_of(r.fleet)), 1, 10);
        check(&r);
        end(&r);
    }
}

/* A longer labels.ttl holds for the waiting samples of the shared bank, too. */
static void late_ttl(void **state) {
    static const char *const given[] = {"labels.ttl", "5", NULL};
    struct run r;
    svs_error err = {0};
    (void)state;
    for (int raised = 0; raised < 2; raised++) {
        start(&r, given, 1);
        for (int i = 0; i < 600; i++)
            learn(&r, i % KEYS, LINE, 1, true);
        learn(&r, 3, LINE, 1, false);
        settle(&r);
        if (raised) {
            assert_int_equal(svi_settings_set(&r.s, "labels.ttl", "1000", &err), SVS_OK);
            assert_int_equal(svi_stream_configure(r.fleet, &r.s, r.now, NULL, &err), SVS_OK);
        }
        r.now += 100;
        learn(&r, 4, LINE, 1, true);
        settle(&r);
        const int64_t before = svi_fleet_shared_held(svi_fleet_of(r.fleet));
        about(&r, 3, SVI_LABEL, r.ids[3] - 1);
        settle(&r);
        assert_int_equal(svi_fleet_shared_held(svi_fleet_of(r.fleet)), before + raised);
        end(&r);
    }
}

/* ---- only scored */

/* A row that is only scored gets the score that it gets when it is learned next, also where a value is cut:
 * of a column that varies in one key only. */
static void only_scored(void **state) {
    static const char *const given[] = {NULL};
    struct run r;
    (void)state;
    start(&r, given, 1);
    for (int i = 0; i < 900; i++) {
        double x[D] = {gauss(&r.random), gauss(&r.random), gauss(&r.random),
                       i % KEYS == 0 ? i / KEYS % 2 : 0};
        if (i >= 600 && i % 10 == 3)
            x[3] = 40;
        struct svi_message m = {
            .has_x = true, .kind = SVI_DENSE, .d = D, .x = x, .ts = NAN, .weight = 1, .n = -1};
        const bool compare = i >= 600 && (i % 10 == 3 || i % 10 == 4);
        struct svi_shared_score before;
        struct svi_envelope env;
        m.y = svs_int(x[0] > 0);
        if (compare) {
            char name[16];
            snprintf(name, sizeof name, "m%d", i % KEYS);
            settle(&r);
            r.frame.size = 0;
            assert_int_equal(svi_message_encode(&m, NULL, false, &r.frame), SVS_OK);
            assert_int_equal(svi_envelope_read(&env, r.frame.data, r.frame.size), SVS_OK);
            const struct svi_shared_score *peeked = svi_fleet_shared_peek(r.fleet, name, &env);
            assert_non_null(peeked);
            before = *peeked;
        }
        give(&r, &m, i % KEYS);
        if (compare) {
            const struct svi_shared_score *learned = &svi_fleet_of(r.fleet)->shared->score;
            assert_true(learned->known && before.known);
            assert_memory_equal(before.value, learned->value, sizeof before.value[0] * 2);
        }
    }
    settle(&r);
    end(&r);
}

/* ---- hostile keys */

/* A row that is too heavy does not enter by its late label either. */
static void late_weight(void **state) {
    static const char *const given[] = {NULL};
    struct run r;
    (void)state;
    start(&r, given, 1);
    for (int i = 0; i < 600; i++)
        learn(&r, i % KEYS, LINE, 1, true);
    for (int i = 0; i < 2; i++) {
        double x[D] = {1, 2, 3, 4};
        const struct svi_message row = {.has_x = true,
                                        .kind = SVI_DENSE,
                                        .d = D,
                                        .x = x,
                                        .ts = NAN,
                                        .weight = i ? 1e6 : 1,
                                        .n = -1,
                                        .id = svs_int(9000 + i)},
                                 label = {.op = SVI_LABEL,
                                          .ts = NAN,
                                          .weight = 1,
                                          .n = -1,
                                          .id = svs_int(9000 + i),
                                          .y = svs_int(1)};
        settle(&r);
        const int64_t before = svi_fleet_shared_held(svi_fleet_of(r.fleet));
        struct svi_message m = row;
        give(&r, &m, 3);
        m = label;
        give(&r, &m, 3);
        settle(&r);
        assert_int_equal(svi_fleet_shared_held(svi_fleet_of(r.fleet)), before + !i);
    }
    end(&r);
}

/* Share of the first rows of new keys that are right, after one key has sent this. */
static double new_keys(enum law law, double times, int flood) {
    static const char *const given[] = {NULL};
    struct run r;
    start(&r, given, 16);
    for (int i = 0; i < often(1500, 150); i++) {
        for (int n = 0; n < flood; n++)
            learn(&r, KEYS, GARBAGE, times, true);
        learn(&r, (int)svi_random_below(&r.random, KEYS), law, 1, true);
    }
    settle(&r);
    /* While the list of rows fills, samples that are exempt from the share come on top of it. */
    if (flood > 0)
        assert_true(svi_fleet_shared_rows(svi_fleet_of(r.fleet), entry_of(&r, KEYS)) <=
                    SVI_SHARE_ROWS * 3 / 4 + often(0, 150 * (flood + 1) / 16));
    r.random = (struct svi_random){99};
    const double right = accuracy(&r, law, KEYS + 1, often(100, 2));
    print_message("# law %d, times %g, flood %d: %.4f right\n", law, times, flood, right);
    end(&r);
    return right;
}

static void hostile(void **state) {
    (void)state;
    if (quick()) {
        for (int i = every(2); i < 3; i++)
            new_keys(CROSS, i == 1 ? 1000 : 1, i == 1 ? 1 : 10);
        return;
    }
    for (enum law law = LINE; law <= CROSS; law++) {
        const double alone = new_keys(law, 1, 0);
        assert_true(new_keys(law, 1000, 1) > alone - 0.02); /* out of bounds: nothing enters */
        assert_true(new_keys(law, 1000, 10) > alone - 0.02);
        assert_true(new_keys(law, 1, 10) > alone - 0.1); /* normal rows with labels at random: its share */
    }
}

/* ---- what it is worth */

static double worth(enum law law, const char *method) {
    const char *const given[] = {"method", method, NULL};
    struct run r;
    start(&r, given, 16);
    for (int i = 0; i < 1500; i++)
        learn(&r, (int)svi_random_below(&r.random, KEYS), law, 1, true);
    const double right = accuracy(&r, law, KEYS, 100);
    print_message("# law %d, method %s: %.4f right\n", law, method, right);
    end(&r);
    return right;
}

static void helps(void **state) {
    (void)state;
    if (quick())
        return;
    assert_true(worth(LINE, "auto") > worth(LINE, "alsvm") - 0.01);
    assert_true(worth(CROSS, "auto") > worth(CROSS, "alsvm") + 0.15);
}

/* ---- without it */

static void off(void **state) {
    static const char *const given[] = {"key.shared", "no", NULL};
    struct run all, alone;
    struct svi_bytes a = {0}, b = {0};
    (void)state;
    start(&all, given, 1);
    start(&alone, given, 1);
    for (int i = 0; i < 600; i++) {
        const struct svi_random before = all.random;
        learn(&all, i % 3, i % 2 ? LINE : CROSS, 1, i % 5 > 0);
        alone.random = before;
        if (i % 3 == 1)
            learn(&alone, 1, i % 2 ? LINE : CROSS, 1, i % 5 > 0);
    }
    settle(&all);
    settle(&alone);
    svs_error err;
    size_t hashed;
    assert_null(svi_fleet_of(all.fleet)->shared);
    assert_int_equal(svi_engine_pack(svi_stream_engine(all.fleet, "m1", &err), &a, &hashed, &err), SVS_OK);
    assert_int_equal(svi_engine_pack(svi_stream_engine(alone.fleet, "m1", &err), &b, &hashed, &err), SVS_OK);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, hashed);
    svi_bytes_clear(&a);
    svi_bytes_clear(&b);
    end(&all);
    end(&alone);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits),   cmocka_unit_test(leaves_exactly),
                                       cmocka_unit_test(ids_of_keys), cmocka_unit_test(refused_not_learned),
                                       cmocka_unit_test(first_rows),  cmocka_unit_test(early_rows),
                                       cmocka_unit_test(late_weight), cmocka_unit_test(late_ttl),
                                       cmocka_unit_test(only_scored), cmocka_unit_test(hostile),
                                       cmocka_unit_test(helps),       cmocka_unit_test(off)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
