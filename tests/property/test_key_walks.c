/* A stream with keys comes, for each of them, to what an engine comes to that has the samples of that key
 * alone, bit for bit: scores, models, alerts, errors, states. Whatever the number of threads, how samples are
 * cut into messages, how many keys are in memory, and when the state is written and taken up again. One that
 * is silent for longer than keys.idle is another engine when it comes again. */
#include "support/engine.h"

#include "base/random.h"

#define KEYS    9
#define ACTIONS 4000
#define EPOCH   1000
#define OPEN    7 /* messages that may be on their way together */

static const char *const names[KEYS] = {"", "a", "b", "pump/7", "\xc3\xa4", "17", "c.d", "e", "f"};

/* What one key had to say. */
struct told {
    struct svi_bytes all;
    int count;
};

struct walk {
    struct svi_random random;
    svi_stream *fleet, *alone[KEYS];
    struct svi_settings with, without;
    struct told of_fleet[KEYS], of_alone[KEYS];
    struct svi_bytes event, frame, batch;
    struct svi_receipt receipt[OPEN];
    int open, elements, sent[KEYS], forgotten;
    double now, heard[KEYS], idle; /* 0: none is forgotten */
};

static int key_of(const char *name) {
    for (int k = 0; k < KEYS; k++)
        if (strcmp(names[k], name) == 0)
            return k;
    fail_msg("an event of key %s", name);
    return -1;
}

/* Of a key that came again it is larger: two bytes after their type. */
static void hide_epoch(uint8_t *bytes, size_t size) {
    const uint8_t *found = memmem(bytes, size,
                                  "\xa5"
                                  "epoch\xcd",
                                  7);
    assert_non_null(found);
    memset(bytes + (found - bytes) + 7, 0, 2);
}

static void note(struct walk *w, struct told *t, const struct svi_event *event) {
    const struct svi_bytes *bytes = event->payload;
    struct svi_event bare = *event;
    if (event->topic == SVI_TOPIC_STATS)
        return;
    if (event->topic == SVI_TOPIC_ERROR) { /* the sample that it shows has a key, or none */
        bare.as.error.sample_size = 0;
        bytes = NULL;
    }
    if (!bytes) {
        assert_int_equal(svi_event_encode(&bare, &w->event), SVS_OK);
        bytes = &w->event;
    }
    const size_t at = t->all.size;
    assert_int_equal(svi_bytes_append(&t->all, bytes->data, bytes->size), SVS_OK);
    hide_epoch(t->all.data + at, bytes->size);
    t->count++;
}

static void fleet_sink(void *user, const struct svi_event *event) {
    struct walk *w = user;
    note(w, &w->of_fleet[key_of(event->key)], event);
}

struct lone {
    struct walk *w;
    int k;
};
static struct lone lone[KEYS];

static void lone_sink(void *user, const struct svi_event *event) {
    const struct lone *l = user;
    struct svi_event keyed = *event;
    keyed.key = names[l->k];
    note(l->w, &l->w->of_alone[l->k], &keyed);
}

static void begin_alone(struct walk *w, int k) {
    svs_error err = {0};
    lone[k] = (struct lone){w, k};
    w->alone[k] = svi_stream_new(&w->without, EPOCH, lone_sink, &lone[k], &err);
    assert_non_null(w->alone[k]);
}

static void begin_fleet(struct walk *w) {
    svs_error err = {0};
    w->fleet = svi_stream_new(&w->with, EPOCH, fleet_sink, w, &err);
    if (!w->fleet)
        fail_msg("%s", err.text);
    svi_stream_use_threads(w->fleet);
    svi_stream_leave_open(w->fleet, true);
}

static void settle(struct walk *w) {
    svi_stream_settle(w->fleet);
    w->open = 0;
}

/* What was gathered goes out as one message. */
static void send_batch(struct walk *w) {
    struct svi_bytes whole = {0};
    struct svi_envelope env;
    struct svi_pack p;
    if (w->elements == 0)
        return;
    svi_pack_begin(&p, &whole);
    svi_pack_array(&p, (size_t)w->elements);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    assert_int_equal(svi_bytes_append(&whole, w->batch.data, w->batch.size), SVS_OK);
    assert_int_equal(svi_envelope_read(&env, whole.data, whole.size), SVS_OK);
    svi_stream_apply_later(w->fleet, &env, w->now, false, &w->receipt[w->open++]);
    svi_bytes_clear(&whole); /* nothing looks at it any more */
    w->elements = 0;
    w->batch.size = 0;
    if (w->open == OPEN)
        settle(w);
}

/* The message without its key, to the engine that has this key alone; and with it, to the fleet. */
static void give(struct walk *w, struct svi_message *m, int k) {
    struct svi_envelope env;
    struct svi_receipt receipt;
    m->key = svs_str("");
    w->frame.size = 0;
    assert_int_equal(svi_message_encode(m, NULL, false, &w->frame), SVS_OK);
    assert_int_equal(svi_envelope_read(&env, w->frame.data, w->frame.size), SVS_OK);
    if (!w->alone[k])
        begin_alone(w, k);
    svi_stream_apply(w->alone[k], &env, w->now, false, &receipt);
    w->heard[k] = receipt.accepted > 0 ? w->now : w->heard[k];
    m->key = svs_str(names[k]);
    assert_int_equal(svi_message_encode(m, NULL, false, &w->batch), SVS_OK);
    w->elements++;
    if (svi_random_below(&w->random, 3) == 0)
        send_batch(w);
}

static void learn(struct walk *w, int k) {
    double x[3];
    const int i = w->sent[k]++;
    for (int j = 0; j < 3; j++)
        x[j] = (svi_random_below(&w->random, 2001) - 1000.0) / 500 + k;
    const bool waits = svi_random_below(&w->random, 3) == 0;
    struct svi_message m = {
        .has_x = true, .kind = SVI_DENSE, .d = 3, .x = x, .ts = NAN, .weight = 1, .n = -1};
    m.id = svs_int(i);
    m.y = waits ? svs_none() : svs_int(x[0] + x[1] > 2 * k);
    if (svi_random_below(&w->random, 50) == 0 && i > 0) /* refused */
        m.d = 2;
    give(w, &m, k);
}

static void label(struct walk *w, int k, enum svi_op op) {
    struct svi_message m = {.op = op, .ts = NAN, .weight = 1, .n = -1};
    m.id = svs_int(w->sent[k] - 1 - (int)svi_random_below(&w->random, 12));
    m.y = op == SVI_LABEL ? svs_int((int)svi_random_below(&w->random, 2)) : svs_none();
    give(w, &m, k);
}

static void drop(struct walk *w, int k) {
    struct svi_pack p;
    struct svi_command c;
    svs_error err;
    send_batch(w);
    w->frame.size = 0;
    svi_pack_begin(&p, &w->frame);
    svi_pack_map(&p, 2);
    svi_put_text(&p, "op", "drop");
    svi_put_text(&p, "key", names[k]);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    assert_int_equal(svi_command_read(&c, w->frame.data, w->frame.size, &err), SVS_OK);
    const svs_code code = svi_stream_command(w->fleet, &c, &w->with, w->now, NULL, &err);
    assert_int_equal(code, w->alone[k] ? SVS_OK : SVS_UNKNOWN_KEY);
    svi_stream_free(&w->alone[k]);
    w->sent[k] = 0;
}

static void forget_idle(struct walk *w) {
    for (int k = 1; k < KEYS && w->idle > 0; k++)
        if (w->alone[k] && w->now - w->heard[k] > w->idle) {
            svi_stream_free(&w->alone[k]);
            w->sent[k] = 0;
            w->forgotten++;
        }
}

static void resume(struct walk *w) {
    struct svi_checkpoint c = {0};
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    svs_error err = {0};
    send_batch(w);
    assert_int_equal(svi_stream_hash(w->fleet, before, &err), SVS_OK);
    assert_int_equal(svi_stream_save(w->fleet, &c, &err), SVS_OK);
    svi_stream_free(&w->fleet);
    begin_fleet(w);
    if (svi_stream_load(w->fleet, &c, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(svi_stream_hash(w->fleet, after, &err), SVS_OK);
    assert_string_equal(before, after);
    svi_checkpoint_clear(&c);
    w->open = 0;
}

/* watched: with rules and a column of context. */
static void walk(const char *threads, const char *novelty, const char *memory, bool watched, const char *idle,
                 uint64_t seed) {
    struct walk w = {.random = {seed}, .now = NOW, .idle = atof(idle)};
    const char *const settings[] = {"novelty",
                                    novelty,
                                    "window",
                                    "40",
                                    "publish.every",
                                    "25",
                                    "alert.budget",
                                    "none",
                                    "alert.rules",
                                    watched ? "beyond,stuck,rate" : "none",
                                    "context",
                                    watched ? "2" : "",
                                    "key.prior",
                                    "0",
                                    "publish.seconds",
                                    "0",
                                    "ts.ahead",
                                    "1e9",
                                    "alert.group",
                                    "0",
                                    NULL};
    svs_error err = {0};
    svi_settings_default(&w.without);
    for (int i = 0; settings[i]; i += 2)
        assert_int_equal(svi_settings_set(&w.without, settings[i], settings[i + 1], &err), SVS_OK);
    svi_settings_set(&w.without, "key", "key", &err); /* and its samples have none */
    svi_settings_settle_method(&w.without);
    w.with = w.without;
    svi_settings_set(&w.with, "threads", threads, &err);
    svi_settings_set(&w.with, "keys.memory", memory, &err);
    svi_settings_set(&w.with, "keys.idle", idle, &err);
    begin_fleet(&w);
    begin_alone(&w, 0);
    for (int i = 0; i < ACTIONS; i++) {
        const int k = (int)svi_random_below(&w.random, KEYS), what = (int)svi_random_below(&w.random, 400);
        send_batch(&w); /* messages have one time */
        w.now += 0.25;
        forget_idle(&w);
        if (what == 0)
            resume(&w);
        else if (what == 1 && k > 0 && w.idle == 0)
            drop(&w, k);
        else if (what < 60 && w.alone[k])
            label(&w, k, what < 30 ? SVI_LABEL : SVI_FORGET);
        else
            for (int n = (int)svi_random_below(&w.random, 4); n >= 0; n--)
                learn(&w, n ? k : (k + 3) % KEYS);
    }
    send_batch(&w);
    settle(&w);
    for (int k = 0; k < KEYS; k++) {
        assert_true(w.of_alone[k].count > 100);
        assert_int_equal(w.of_fleet[k].count, w.of_alone[k].count);
        assert_int_equal(w.of_fleet[k].all.size, w.of_alone[k].all.size);
        assert_memory_equal(w.of_fleet[k].all.data, w.of_alone[k].all.data, w.of_alone[k].all.size);
        svi_bytes_clear(&w.of_fleet[k].all);
        svi_bytes_clear(&w.of_alone[k].all);
        svi_stream_free(&w.alone[k]);
    }
    assert_true(w.idle == 0 || w.forgotten > 50);
    svi_stream_free(&w.fleet);
    svi_bytes_clear(&w.event);
    svi_bytes_clear(&w.frame);
    svi_bytes_clear(&w.batch);
}

static void test_one_thread(void **state) {
    (void)state;
    walk("1", "none", "100", false, "0", 1);
    walk("1", "fosvm1", "100", false, "0", 2);
    walk("1", "fosvm1", "100", true, "0", 8);
}

static void test_threads(void **state) {
    (void)state;
    walk("2", "none", "100", false, "0", 3);
    walk("3", "fosvm1", "100", true, "0", 4);
}

static void test_out_of_memory(void **state) {
    (void)state;
    walk("1", "none", "1", false, "0", 5);
    walk("1", "fosvm1", "3", true, "0", 6);
    walk("2", "fosvm1", "4", true, "0", 7);
}

static void test_forgotten(void **state) {
    (void)state;
    walk("1", "none", "3", false, "4", 8);
    walk("2", "none", "4", false, "4", 9);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_thread), cmocka_unit_test(test_threads),
                                       cmocka_unit_test(test_out_of_memory),
                                       cmocka_unit_test(test_forgotten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
