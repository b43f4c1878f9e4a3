/* Alerts of a stream with keys. One cause over many keys is one alert that names them: each alert of a key
 * goes out as its own or is part of one other; whatever the number of threads, how many keys are in memory,
 * and when the state is written and taken up again, the same bytes go out. The budget is that of all keys
 * together. */
#include "support/engine.h"
#include "support/quick.h"

#include "base/random.h"
#include "fleet/fleet_internal.h"

#define KEYS  14
#define EVERY 5.0 /* seconds, from row to row of a key */

/* One alert of a key, as it was told. */
struct told {
    char key[8];
    int64_t alert;
    int opened, closed; /* events */
    int64_t keys;       /* as last told */
    bool named[KEYS];
};

struct play {
    struct svi_settings s;
    svi_stream *e;
    struct svi_random random;
    struct svi_bytes bytes, event, batch;
    struct told *told;
    int count, capacity, opens, updates;
    uint64_t seq[KEYS], number;
    double now;
    int wrong[KEYS], silent[KEYS]; /* turns that it lasts */
    int batched;
    bool drops, silences;
};

static int key_number(const char *key) {
    return key[0] ? atoi(key + 1) : 0;
}

static struct told *told_of(struct play *p, const struct svi_event *event) {
    const struct svi_alert_event *a = &event->as.alert;
    for (int i = 0; i < p->count; i++)
        if (p->told[i].alert == a->alert && strcmp(p->told[i].key, event->key) == 0)
            return &p->told[i];
    if (p->count == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 256;
        p->told = realloc(p->told, (size_t)p->capacity * sizeof *p->told);
        assert_non_null(p->told);
    }
    p->told[p->count] = (struct told){.alert = a->alert};
    snprintf(p->told[p->count].key, sizeof p->told->key, "%s", event->key);
    return &p->told[p->count++];
}

static void play_sink(void *user, const struct svi_event *event) {
    struct play *p = user;
    const struct svi_alert_event *a = &event->as.alert;
    if (event->topic == SVI_TOPIC_ERROR)
        fail_msg("%s", event->as.error.reason);
    if (event->topic != SVI_TOPIC_ALERT)
        return;
    assert_int_equal(svi_event_encode(event, &p->event), SVS_OK);
    assert_int_equal(svi_bytes_append(&p->bytes, p->event.data, p->event.size), SVS_OK);
    struct told *t = told_of(p, event);
    assert_int_equal(a->number, ++p->number); /* over all keys, whatever is loaded or dropped */
    assert_int_equal(event->seq, p->seq[key_number(event->key)]++); /* none is missing */
    t->opened += strcmp(a->state, "open") == 0;
    t->closed += strcmp(a->state, "close") == 0;
    p->opens += strcmp(a->state, "open") == 0;
    p->updates += strcmp(a->state, "update") == 0;
    assert_int_equal(t->opened, 1);
    assert_true(t->closed <= 1);
    assert_true(p->drops || a->keys == 0 || a->keys >= t->keys);
    t->keys = a->keys;
    for (int i = 0; i < a->named_count; i++)
        t->named[key_number(a->named[i])] = true;
    if (a->keys > 0) {
        assert_int_equal(a->named_count, a->keys); /* there are fewer than are named at most */
        assert_string_equal(a->named[0], event->key);
        assert_int_equal(a->alerts[0], a->alert);
        assert_non_null(strstr(a->text, " keys: "));
    }
}

static void play_set(struct svi_settings *s, const char *const *more) {
    const char *const given[] = {
        "key",    "key",     "method",       "none", "scores",   "0",   "novelty",         "none",
        "limits", "0:-5..5", "alert.absent", "40",   "ts.ahead", "1e9", "publish.seconds", "0",
        NULL};
    svs_error err = {0};
    svi_settings_default(s);
    for (int i = 0; given[i]; i += 2)
        if (svi_settings_set(s, given[i], given[i + 1], &err) != SVS_OK)
            fail_msg("%s", err.text);
    for (; *more; more += 2)
        if (svi_settings_set(s, more[0], more[1], &err) != SVS_OK)
            fail_msg("%s", err.text);
}

static void play_begin(struct play *p) {
    svs_error err = {0};
    p->e = svi_stream_new(&p->s, 77, play_sink, p, &err);
    if (!p->e)
        fail_msg("%s", err.text);
    svi_stream_use_threads(p->e);
    svi_stream_leave_open(p->e, true);
    svi_stream_encode(p->e, 0);
}

static void play_resume(struct play *p) {
    struct svi_checkpoint c = {0};
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    svs_error err = {0};
    assert_int_equal(svi_stream_hash(p->e, before, &err), SVS_OK);
    assert_int_equal(svi_stream_save(p->e, &c, &err), SVS_OK);
    svi_stream_free(&p->e);
    play_begin(p);
    if (svi_stream_load(p->e, &c, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(svi_stream_hash(p->e, after, &err), SVS_OK);
    assert_string_equal(before, after);
    svi_checkpoint_clear(&c);
}

static void play_drop(struct play *p, int k) {
    struct svi_bytes frame = {0};
    struct svi_command c;
    struct svi_pack pack;
    char key[8];
    svs_error err;
    snprintf(key, sizeof key, "k%d", k);
    svi_pack_begin(&pack, &frame);
    svi_pack_map(&pack, 2);
    svi_put_text(&pack, "op", "drop");
    svi_put_text(&pack, "key", key);
    assert_int_equal(svi_pack_end(&pack), SVS_OK);
    assert_int_equal(svi_command_read(&c, frame.data, frame.size, &err), SVS_OK);
    if (svi_stream_command(p->e, &c, &p->s, p->now, NULL, &err) == SVS_OK) {
        p->seq[k] = 0; /* it begins from 0 */
        for (int i = 0; i < p->count; i++)
            if (strcmp(p->told[i].key, key) == 0) { /* another speaks for a group of it */
                assert_true(p->told[i].closed == 1 || p->told[i].keys > 1);
                p->told[i].key[0] = 'x';
            }
    }
    svi_bytes_clear(&frame);
}

static void play_row(struct play *p, int k, double x) {
    char key[8] = "";
    if (k > 0)
        snprintf(key, sizeof key, "k%d", k);
    const struct svi_message m = {.has_x = true,
                                  .kind = SVI_DENSE,
                                  .d = 1,
                                  .x = &x,
                                  .ts = NAN,
                                  .weight = 1,
                                  .n = -1,
                                  .key = svs_str(key)};
    assert_int_equal(svi_message_encode(&m, NULL, false, &p->batch), SVS_OK);
    p->batched++;
}

static void play_send(struct play *p) {
    struct svi_bytes whole = {0};
    struct svi_envelope env;
    struct svi_pack pack;
    svi_pack_begin(&pack, &whole);
    svi_pack_array(&pack, (size_t)p->batched);
    assert_int_equal(svi_pack_end(&pack), SVS_OK);
    assert_int_equal(svi_bytes_append(&whole, p->batch.data, p->batch.size), SVS_OK);
    assert_int_equal(svi_envelope_read(&env, whole.data, whole.size), SVS_OK);
    svi_stream_apply_later(p->e, &env, p->now, false, NULL);
    svi_bytes_clear(&whole);
    p->batch.size = 0;
    p->batched = 0;
    p->now += 0.1; /* messages are on their way together */
}

/* What becomes of the keys, and what each of them shows. */
static void play_turn(struct play *p) {
    const int what = (int)svi_random_below(&p->random, 60);
    const int lasts = 4 + (int)svi_random_below(&p->random, 40);
    for (int k = 0; k < KEYS; k++) {
        const bool some = svi_random_below(&p->random, 3) == 0;
        p->wrong[k] +=
            what == 0 && some && p->wrong[k] == 0 ? lasts + (int)svi_random_below(&p->random, 8) : 0;
        p->silent[k] += what == 1 && p->silences && some && p->silent[k] == 0 ? 2 * lasts : 0;
        p->silent[k] += what == 2 && p->silences && p->silent[k] == 0 ? lasts + 5 : 0; /* the link is down */
        p->wrong[k] -= p->wrong[k] > 0;
        p->silent[k] -= p->silent[k] > 0;
    }
    const int one = (int)svi_random_below(&p->random, KEYS);
    p->wrong[one] += what == 3 && p->wrong[one] == 0 ? lasts : 0;
    for (int k = 0; k < KEYS; k++) {
        const double x = (svi_random_below(&p->random, 2001) - 1000.0) / 500;
        if (p->silent[k] == 0)
            play_row(p, k, p->wrong[k] > 0 && svi_random_below(&p->random, 2) ? 20 + x : x);
        if (p->batched > 0 && svi_random_below(&p->random, 4) == 0)
            play_send(p);
    }
}

struct course {
    const char *threads, *memory, *group, *novelty;
    int resumes, drops; /* once in that many turns; 0: never */
};

static void play_all(struct play *p, const struct course *c, uint64_t seed, int turns) {
    const char *const more[] = {"threads", c->threads, "keys.memory",  c->memory, "alert.group", c->group,
                                "novelty", c->novelty, "alert.budget", "8/hour",  NULL};
    struct svi_random other = {seed + 1000}; /* not of the input */
    *p = (struct play){
        .random = {seed}, .now = NOW, .drops = c->drops, .silences = strcmp(c->novelty, "none") == 0};
    play_set(&p->s, more);
    play_begin(p);
    for (int i = 0; i < turns; i++) {
        p->now += EVERY;
        for (double due = svi_stream_deadline(p->e); due <= p->now; due = svi_stream_deadline(p->e))
            svi_stream_pass(p->e, due);
        play_turn(p);
        if (p->batched > 0)
            play_send(p);
        svi_stream_settle(p->e);
        if (c->resumes && svi_random_below(&other, (uint32_t)c->resumes) == 0)
            play_resume(p);
        if (c->drops && i % c->drops == c->drops - 1)
            play_drop(p, 1 + i / c->drops % (KEYS - 1));
    }
}

/* What is kept are the bytes that went out, in their order. */
static void play_check_kept(struct play *p) {
    struct svi_bytes reply = {0};
    struct svi_pack pack;
    svi_pack_begin(&pack, &reply);
    const struct svi_open_map map = svi_pack_open(&pack);
    svi_kept_alerts_put(svi_stream_alerts(p->e), &(struct svi_alert_query){0, NULL, SVI_KEPT_ANSWER_MAX},
                        &pack);
    svi_pack_close(&pack, map);
    assert_int_equal(svi_pack_end(&pack), SVS_OK);
    assert_true(p->bytes.size > 0 && p->number < SVI_KEPT_ANSWER_MAX);
    assert_non_null(memmem(reply.data, reply.size, p->bytes.data, p->bytes.size));
    svi_bytes_clear(&reply);
}

static void play_end(struct play *p) {
    svi_stream_free(&p->e);
    svi_bytes_clear(&p->bytes);
    svi_bytes_clear(&p->event);
    svi_bytes_clear(&p->batch);
    free(p->told);
}

static void same_bytes(const char *novelty, uint64_t seed) {
    const bool budget = strcmp(novelty, "none") != 0;
    const int turns = often(1500, 400), drops = budget ? 0 : 150;
    const struct course courses[] = {{"1", "100", "60", novelty, 0, drops},
                                     {"2", "100", "60", novelty, 0, drops},
                                     {"2", budget ? "12" : "5", "60", novelty, budget ? 300 : 20, drops},
                                     {"3", "4", "60", novelty, 0, drops},
                                     {"1", "2", "60", novelty, 30, drops}};
    struct play first;
    play_all(&first, &courses[0], seed, turns);
    assert_true(first.opens > turns / 60 && first.updates > turns / 60);
    if (budget && !quick()) /* what they ask of each other matters */
        assert_true(svi_fleet_of(first.e)->asked > 1);
    for (int i = 1; i < (budget ? 3 : 5);
         i++) { /* those out of memory most of the time take long with judges */
        struct play p;
        play_all(&p, &courses[i], seed, turns);
        assert_int_equal(p.bytes.size, first.bytes.size);
        assert_memory_equal(p.bytes.data, first.bytes.data, first.bytes.size);
        if (!budget) /* no histories, of which only the newest are kept */
            play_check_kept(&p);
        play_end(&p);
    }
    play_end(&first);
}

static void test_same_bytes(void **state) {
    (void)state;
    same_bytes("none", 1);
    same_bytes("none", 2);
    same_bytes("fosvm1", 3); /* under a budget that they share */
}

/* Held against the same stream without groups. */
static void test_each_once(void **state) {
    (void)state;
    static const struct course with = {"1", "100", "60", "none", 0, 0},
                               without = {"1", "100", "0", "none", 0, 0};
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct play grouped, bare;
        int missing = 0;
        play_all(&grouped, &with, seed, often(1500, 400));
        play_all(&bare, &without, seed, often(1500, 400));
        for (int i = 0; i < bare.count; i++) {
            const struct told *b = &bare.told[i];
            int own = 0, named = 0;
            for (int k = 0; k < grouped.count; k++) {
                const struct told *g = &grouped.told[k];
                const bool same = g->alert == b->alert && strcmp(g->key, b->key) == 0;
                own += same;
                named += !same && g->named[key_number(b->key)];
                assert_true(!same || b->closed >= g->closed);
            }
            assert_true(own == 1 || named > 0);
            missing += own == 0;
        }
        assert_true(missing > 0);
        assert_int_equal(grouped.opens + missing, bare.opens);
        assert_true(grouped.opens < bare.opens / 2);
        play_end(&grouped);
        play_end(&bare);
    }
}

/* ---- the budget */

#define FLEET  12
#define DAYS   4
#define MINUTE 60.0
#define FAULTY 7 /* for an hour, from 12 hours before the end on */

struct fleet {
    svi_stream *e;
    double now, fault;
    int falsely, found;
    double delay;
};

static void fleet_sink(void *user, const struct svi_event *event) {
    struct fleet *f = user;
    if (event->topic != SVI_TOPIC_ALERT || strcmp(event->as.alert.state, "open") != 0)
        return;
    if (atoi(event->key) != FAULTY || event->ts < f->fault)
        f->falsely++;
    else if (f->found++ == 0)
        f->delay = event->ts - f->fault;
}

static double fleet_normal(struct svi_random *r) {
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += svi_random_below(r, 1 << 20) / (double)(1 << 20);
    return sum;
}

static void fleet_minute(struct fleet *f, struct svi_random *r, struct svi_bytes *frame) {
    struct svi_envelope env;
    struct svi_pack pack;
    const bool fault = f->now >= f->fault && f->now < f->fault + 60 * MINUTE;
    svi_pack_begin(&pack, frame);
    frame->size = 0;
    svi_pack_array(&pack, FLEET);
    assert_int_equal(svi_pack_end(&pack), SVS_OK);
    for (int k = 0; k < FLEET; k++) {
        double x[2] = {k + fleet_normal(r), fleet_normal(r)};
        x[1] += fault && k == FAULTY ? 9 : 0;
        const struct svi_message m = {.has_x = true,
                                      .kind = SVI_DENSE,
                                      .d = 2,
                                      .x = x,
                                      .ts = f->now,
                                      .weight = 1,
                                      .n = -1,
                                      .key = svs_int(k)};
        assert_int_equal(svi_message_encode(&m, NULL, false, frame), SVS_OK);
    }
    assert_int_equal(svi_envelope_read(&env, frame->data, frame->size), SVS_OK);
    svi_stream_apply_later(f->e, &env, f->now, false, NULL);
    svi_stream_settle(f->e);
}

/* With nothing wrong, all keys together have no more alerts than the budget gives, and a fault in one of them
 * is told. */
static void test_budget(void **state) {
    (void)state;
    const char *const more[] = {"alert.rules", "none",   "alert.absent", "none", "limits",       "",
                                "novelty",     "fosvm1", "threads",      "2",    "alert.budget", "1/day",
                                NULL};
    struct fleet f = {.now = 1.7e9};
    struct svi_random r = {3};
    struct svi_bytes frame = {0};
    struct svi_settings s;
    svs_error err = {0};
    const int days = often(DAYS, 3); /* in its first days a key knows too little for 9 deviations */
    f.fault = f.now + (days - 0.5) * 1440 * MINUTE;
    play_set(&s, more);
    f.e = svi_stream_new(&s, 77, fleet_sink, &f, &err);
    if (!f.e)
        fail_msg("%s", err.text);
    svi_stream_use_threads(f.e);
    svi_stream_leave_open(f.e, true);
    for (int i = 0; i < days * 1440; i++, f.now += MINUTE)
        fleet_minute(&f, &r, &frame);
    assert_in_range(f.falsely, 0, days);
    assert_true(f.found > 0);
    assert_true(f.delay <= 10 * MINUTE);
    svi_stream_free(&f.e);
    svi_bytes_clear(&frame);
}

/* Keys that come one after another, each with 32 rows at once: from its first levels on, after 16 rows, each
 * has no more than the share that the keys so far leave it. */
static void test_first_rows(void **state) {
    (void)state;
    const char *const more[] = {"alert.rules", "none",   "alert.absent", "none", "limits",       "",
                                "novelty",     "fosvm1", "threads",      "2",    "alert.budget", "1/day",
                                NULL};
    struct play p = {.random = {4}, .now = NOW};
    play_set(&p.s, more);
    play_begin(&p);
    for (int k = 1; k < KEYS; k++) {
        char name[8];
        snprintf(name, sizeof name, "k%d", k);
        for (int i = 0; i < 32; i++)
            play_row(&p, k, svi_random_below(&p.random, 1000) / 500.0);
        play_send(&p);
        svi_stream_settle(p.e);
        const struct svi_key_entry *entry = svi_key_table_find(svi_fleet_of(p.e)->table, name, strlen(name));
        const struct svi_budget *b = &entry->engine->novelty->policy.budget;
        assert_true(b->rows >= 16 && b->share.policies >= k);
        assert_true(k == 1 || b->share.factor > 1);
        for (int i = 0; i < SVI_DETECTORS; i++)
            assert_true(b->detector[i].level >= b->share.factor * SVI_BUDGET_MIN_LEVEL);
    }
    play_end(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_first_rows), cmocka_unit_test(test_same_bytes),
                                       cmocka_unit_test(test_each_once), cmocka_unit_test(test_budget)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
