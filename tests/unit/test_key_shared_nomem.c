/* The bank that all keys share, whose allocations fail anywhere: it begins whole or not at all, a sample that
 * finds no memory leaves nothing wrong, and when there is memory again its members have the features and
 * classes of their host. A state loads whole or not at all. Linked with --wrap. */
#include "support/engine.h"
#include "support/nomem.h"
#include "support/quick.h"

#include "base/random.h"
#include "fleet/fleet_internal.h"
#include "support/apply.h"

#define KEYS 5

static void say_nothing(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

static void settle_settings(struct svi_settings *s, const char *task) {
    const char *const given[] = {"key", "key",         "method", "auto",      "novelty", "none", "task",
                                 task,  "alert.rules", "none",   "key.prior", "0",       NULL};
    svs_error err = {0};
    svi_settings_default(s);
    for (int i = 0; given[i]; i += 2)
        assert_int_equal(svi_settings_set(s, given[i], given[i + 1], &err), SVS_OK);
    svi_settings_settle_method(s);
}

/* Element i, of some key: columns and classes are added as it goes on. */
static void apply(svi_stream *e, const struct svi_settings *s, int i, struct svi_random *random,
                  long failing) {
    struct speaker f = {0};
    char row[600] = "";
    size_t at = 0;
    const int key = (int)svi_random_below(random, KEYS),
              k = (int)svi_random_below(random, (uint64_t)(2 + i / 40));
    for (int j = 0; j < 2 + i / 12; j++)
        at += (size_t)snprintf(row + at, sizeof row - at, "%s'f%d':%d", j ? "," : "", j,
                               (int)svi_random_below(random, 90));
    if (i % 9 == 8)
        speaker_build(&f, "{'op':'forget','id':%d,'key':'k%d'}", i - 1 - i % 5, key);
    else if (s->task == SVS_REGRESS)
        speaker_build(&f, "{'x':{%s},'y':%d.5,'id':%d,'key':'k%d'}", row, k, i, key);
    else
        speaker_build(&f, "{'x':{%s},'y':'class %d','id':%d,'key':'k%d'}", row, k, i, key);
    left = failing;
    apply_bytes(e, f.frame.data, f.frame.size, NOW + i, false, NULL);
    left = -1;
    svi_bytes_clear(&f.frame);
}

static void check(svi_stream *e) {
    svi_stream_settle(e);
    const char *wrong = svi_fleet_shared_check(svi_fleet_of(e), 1e-6);
    if (wrong)
        fail_msg("%s", wrong);
}

static svi_stream *begin(const struct svi_settings *s) {
    svs_error err = {0};
    svi_stream *e = svi_stream_new(s, 77, say_nothing, NULL, &err);
    if (!e)
        assert_int_equal(err.code, SVS_NO_MEMORY);
    return e;
}

static int learn_without_memory(const char *task, uint64_t seed) {
    struct svi_settings s;
    struct svi_random random = {seed};
    int count = 0;
    settle_settings(&s, task);
    svi_stream *e = begin(&s);
    for (int i = 0; i < 150; i++) {
        const bool fails = i % 3 && i < 140;
        failed = false;
        apply(e, &s, i, &random, fails ? (long)svi_random_below(&random, i % 12 ? 2 : 12) : -1);
        count += failed;
        if (i % 30 == 29 && !fails)
            check(e);
    }
    check(e);
    assert_true(svi_fleet_shared_held(svi_fleet_of(e)) > 60);
    assert_true(svi_stream_out_of_memory(e) || count == 0);
    svi_stream_free(&e);
    return count;
}

static void members_follow_when_memory_is_back(void **state) {
    (void)state;
    int count = 0;
    for (uint64_t seed = 1; seed <= (uint64_t)often(12, 3); seed++)
        count += learn_without_memory("classify", seed) + learn_without_memory("regress", seed);
    assert_true(count > 100);
}

static void it_begins_whole_or_not_at_all(void **state) {
    (void)state;
    struct svi_settings s;
    struct svi_random random = {5};
    svi_stream *e = NULL;
    settle_settings(&s, "classify");
    int tries = 0;
    for (; !e; tries++) {
        left = tries;
        e = begin(&s);
        left = -1;
    }
    assert_true(tries > 10);
    for (int i = 0; i < 20; i++)
        apply(e, &s, i, &random, -1);
    check(e);
    svi_stream_free(&e);
}

static void a_state_loads_whole_or_not_at_all(void **state) {
    (void)state;
    struct svi_settings s;
    struct svi_random random = {6};
    struct svi_checkpoint c = {0};
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    svs_error err = {0};
    settle_settings(&s, "classify");
    svi_stream *e = begin(&s);
    for (int i = 0; i < 60; i++)
        apply(e, &s, i, &random, -1);
    assert_int_equal(svi_stream_hash(e, before, &err), SVS_OK);
    assert_int_equal(svi_stream_save(e, &c, &err), SVS_OK);
    svi_stream_free(&e);
    bool done = false;
    for (int n = 0; !done; n += often(1, 7)) {
        e = begin(&s);
        left = n;
        done = svi_stream_load(e, &c, &err) == SVS_OK;
        left = -1;
        assert_true(done || err.code == SVS_NO_MEMORY);
        if (done) {
            assert_int_equal(svi_stream_hash(e, after, &err), SVS_OK);
            assert_string_equal(before, after);
            check(e);
        }
        svi_stream_free(&e);
    }
    svi_checkpoint_clear(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(members_follow_when_memory_is_back),
                                       cmocka_unit_test(it_begins_whole_or_not_at_all),
                                       cmocka_unit_test(a_state_loads_whole_or_not_at_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
