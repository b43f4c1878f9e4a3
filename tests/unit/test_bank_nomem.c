/* An engine with a bank whose allocations fail anywhere: it says so, a refused sample leaves nothing, and
 * when there is memory again all members have the features and classes of the host. Linked with --wrap. */
#include "support/engine.h"
#include "support/nomem.h"
#include "support/quick.h"

#include "bank/describe.h"
#include "bank/stack.h"
#include "base/random.h"
#include "engine/engine_internal.h"
#include "fleet/fleet.h"
#include "store/checkpoint_file.h"
#include "support/apply.h"

static void quiet_sink(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

static void open_quiet(struct speaker *f, const char *const *settings) {
    svs_error err = {0};
    speaker_open(f, settings);
    svi_stream_free(&f->e);
    f->e = svi_stream_new(&f->s, 77, quiet_sink, NULL, &err);
    assert_non_null(f->e);
    f->control.stream = f->e;
}

static void build_row(struct speaker *f, struct svi_random *random, int i) {
    char row[1000] = "";
    size_t at = 0;
    const int d = 1 + i / 12;
    for (int j = 0; j < d && at < 900; j++)
        at += (size_t)snprintf(row + at, sizeof row - at, "%s'f%d':%d", j ? "," : "", j,
                               (int)(svi_random_next(random) % 90));
    const int k = (int)(svi_random_next(random) % (unsigned)(1 + i / 25));
    if (f->s.task == SVS_REGRESS)
        speaker_build(f, "{'x':{%s},'y':%d.5,'id':%d}", row, k, i % 20);
    else
        speaker_build(f, "{'x':{%s},'y':'class %d','id':%d}", row, k, i % 20);
}

/* At any time weights are reported in raw units only where all features have a mean and a deviation. */
static void assert_told_weights_have_scales(struct speaker *f, struct svi_bank_weights *w, int *scaleless) {
    struct svi_bank_description t;
    svs_error err;
    if (svi_bank_describe(svi_stream_root(f->e)->bank, svi_stream_root(f->e)->learner, w, &t, &err) != SVS_OK)
        return;
    *scaleless += !t.scale;
    for (int i = 0; i < t.count; i++) /* members with a window have models in raw units of their own */
        if (strcmp(t.member[i].kind, "pa") == 0 || strcmp(t.member[i].kind, "adagrad") == 0 ||
            strcmp(t.member[i].kind, "nlms") == 0)
            assert_true(!t.member[i].W || t.scale);
}

/* The standardiser grows last: refused there, the blocks have features that it has not. */
static void what_is_told_has_scales(void **unused) {
    (void)unused;
    static const char *const tasks[] = {"classify", "regress"};
    for (int task = 0; task < 2; task++) {
        int scaleless = 0;
        bool failed = true;
        for (int n = 0; failed; n++) {
            struct speaker f;
            struct svi_bank_weights w = {0};
            open_quiet(&f, (const char *[]){"method", "auto", "novelty", "none", "task", tasks[task], NULL});
            for (int i = 0; i < 6; i++) {
                speaker_build(&f, "{'x':{'a':%d},'y':%d}", i * 5 % 7, i % 2);
                apply_bytes(f.e, f.frame.data, f.frame.size, NOW, false, NULL);
            }
            speaker_build(&f, "{'x':{'a':1,'b':2,'c':3,'d':4,'e':5,'f':6,'g':7,'h':8,'i':9},'y':1}");
            left = n;
            from_then_on = true; /* the bank tries again in the same step */
            apply_bytes(f.e, f.frame.data, f.frame.size, NOW, false, NULL);
            failed = left == 0;
            left = -1;
            from_then_on = false;
            assert_told_weights_have_scales(&f, &w, &scaleless);
            svi_bank_weights_clear(&w);
            speaker_close(&f);
        }
        assert_true(scaleless > 0);
    }
}

/* How many allocations failed. */
static int learn_without_memory(const char *const *settings, uint64_t seed) {
    struct speaker f;
    struct svi_random random = {seed};
    open_quiet(&f, settings);
    int failed = 0;
    for (int i = 0; i < 300; i++) {
        if (i % 9 == 8)
            speaker_build(&f, "{'op':'forget','id':%d}", i % 20);
        else
            build_row(&f, &random, i);
        const bool fails = i % 3 && i < 280;
        left = fails ? (long)(svi_random_next(&random) % (i % 12 ? 2 : 12)) : -1;
        apply_bytes(f.e, f.frame.data, f.frame.size, NOW, false, NULL);
        failed += fails && left < 0;
        left = -1;
    }
    const char *wrong = svi_bank_check(svi_stream_root(f.e)->bank, svi_stream_root(f.e)->learner, 1e-8);
    if (wrong)
        fail_msg("%s", wrong);
    assert_true(svi_stream_out_of_memory(f.e) == (failed > 0));
    speaker_close(&f);
    return failed;
}

static void members_follow_when_memory_is_back(void **unused) {
    (void)unused;
    static const char *const classes[] = {"method", "auto", "novelty", "none", "labels.max", "10", NULL};
    static const char *const targets[] = {"method", "auto", "novelty", "none", "task", "regress", NULL};
    int failed = 0;
    for (uint64_t seed = 1; seed <= (uint64_t)often(12, 4); seed++) {
        failed += learn_without_memory(classes, seed);
        failed += learn_without_memory(targets, seed);
    }
    assert_true(failed > 10);
}

/* Each allocation of a prune, a change of settings, and a state that is loaded fails once. */
static void commands_are_all_or_nothing(void **unused) {
    (void)unused;
    static const char *const settings[] = {"method", "auto", "novelty", "none", "max.classes", "12", NULL};
    struct speaker f;
    struct svi_random random = {4};
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    svs_error err;
    open_quiet(&f, settings);
    for (int i = 0; i < 150; i++) {
        build_row(&f, &random, i);
        apply_bytes(f.e, f.frame.data, f.frame.size, NOW, false, NULL);
    }
    struct svi_checkpoint c = {0};
    assert_int_equal(svi_stream_save(f.e, &c, &err), SVS_OK);
    bool done = false;
    for (int n = 0; !done; n += every(3)) {
        svi_stream *again = svi_stream_new(&f.s, 77, quiet_sink, NULL, &err);
        left = n;
        done = svi_stream_load(again, &c, &err) == SVS_OK;
        left = -1;
        assert_true(done || err.code == SVS_NO_MEMORY);
        svi_stream_free(&again);
    }
    speaker_build(&f, "{'op':'forget','id':%d}", 3);
    apply_bytes(f.e, f.frame.data, f.frame.size, NOW, false, NULL);
    struct svi_settings *s = malloc(sizeof *s);
    *s = f.s;
    assert_int_equal(svi_settings_set(s, "class.weight", "balanced", &err), SVS_OK);
    svs_code code = SVS_NO_MEMORY;
    for (int n = 0; code != SVS_OK && !svi_stream_out_of_memory(f.e); n += every(5)) {
        svi_stream_hash(f.e, before, NULL);
        left = n;
        code = svi_stream_configure(f.e, s, NOW, NULL, &err);
        left = -1;
        svi_stream_hash(f.e, after, NULL);
        assert_true(code == SVS_OK || (code == SVS_NO_MEMORY && strcmp(before, after) == 0));
    }
    assert_null(svi_bank_check(svi_stream_root(f.e)->bank, svi_stream_root(f.e)->learner, 1e-8));
    for (int n = 0;; n += every(3)) {
        for (int i = 0; i < 20; i++) {
            speaker_build(&f, "{'op':'forget','id':%d}", i);
            apply_bytes(f.e, f.frame.data, f.frame.size, NOW, false, NULL);
            speaker_build(&f, "{'x':{'f%d':1,'f0':%d},'y':%d,'id':%d}", i % 4, i, i % 3, i);
            apply_bytes(f.e, f.frame.data, f.frame.size, NOW, false, NULL);
        }
        left = n;
        code = svi_engine_prune(svi_stream_root(f.e), &err);
        const bool failed = left < 0;
        left = -1;
        assert_true(code == SVS_OK || code == SVS_NO_MEMORY);
        speaker_build(&f, "{'x':{'f0':2,'f1':3},'y':0}");
        apply_bytes(f.e, f.frame.data, f.frame.size, NOW, false, NULL);
        const char *wrong =
            svi_bank_check(svi_stream_root(f.e)->bank, svi_stream_root(f.e)->learner, INFINITY);
        if (wrong)
            fail_msg("allocation %d of prune: %s", n, wrong);
        if (!failed)
            break;
    }
    svi_checkpoint_clear(&c);
    free(s);
    speaker_close(&f);
}

static void stacks_without_memory(void **unused) {
    (void)unused;
    const struct svi_stacks_options o = {
        .members = 3, .count = 2, .windows = {0, 2000}, .ridge = 1, .rows_max = 4000, .isa = SVS_ISA_BEST};
    svs_error err;
    svi_stacks *s = NULL;
    for (int n = 0; !s; n++) {
        left = n;
        s = svi_stacks_new(&o, &err);
        left = -1;
    }
    for (int i = 0; i < 1500; i++) {
        const double x[3] = {i % 3 - 1, i % 5 / 2.0 - 1, i % 2}, t = i % 2 ? 1 : -1;
        svs_code code = SVS_NO_MEMORY;
        for (int n = 0; code != SVS_OK; n++) {
            left = n;
            code = svi_stacks_learn(s, x, &t, 1, 1, i, &err);
            left = -1;
            assert_true(code == SVS_OK || !svi_stacks_holds(s, i));
        }
        if (i % 200 == 0)
            assert_true(svi_stacks_check(s, 0) < 1e-9 && svi_stacks_check(s, 1) < 1e-9);
    }
    svi_stacks_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_has_scales),
        cmocka_unit_test(members_follow_when_memory_is_back),
        cmocka_unit_test(commands_are_all_or_nothing),
        cmocka_unit_test(stacks_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
