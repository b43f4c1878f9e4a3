/* Every allocation of a change of settings fails once: the engine is as it was, and says so; or it has the
 * change. Linked with --wrap. */
#include "support/engine.h"
#include "support/nomem.h"
#include "support/problem.h"

#include "engine/engine_internal.h"
#include "store/checkpoint_file.h"

static void hash_of(struct speaker *f, char *hash) {
    assert_int_equal(svi_stream_hash(f->e, hash, NULL), SVS_OK);
}

static void change_fails(const char *const *settings) {
    struct speaker f;
    uint64_t random = 4;
    svs_error err;
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    speaker_open(&f,
                 (const char *const[]){"window", "60", "refit.every", "20", "publish.seconds", "0", NULL});
    for (int i = 0; i < 90; i++)
        say(&f, "{'x': {'a': %.17g, 'b': %.17g}, 'y': %d, 'id': 'n%d'}", test_normal(&random),
            test_normal(&random), i % 2, i);
    say(&f, "{'x': {'a': 1}, 'id': 'w'}");
    struct svi_settings to = f.s;
    for (; settings[0]; settings += 2)
        assert_int_equal(svi_settings_set(&to, settings[0], settings[1], &err), SVS_OK);
    long n = 0;
    hash_of(&f, before);
    svi_stream_mute(f.e, true); /* who listens takes memory, too */
    for (bool whole = false; !whole; n++) {
        left = n;
        const svs_code code = svi_stream_configure(f.e, &to, NOW, NULL, &err);
        whole = left >= 0;
        left = -1;
        hash_of(&f, after);
        if (code != SVS_OK) {
            assert_int_equal(code, SVS_NO_MEMORY);
            assert_true(strlen(err.text) > 8);
            assert_string_equal(before, after);
        } else { /* what is left out then comes later: a refit that cannot begin, events of a model */
            assert_string_not_equal(before, after);
            break;
        }
    }
    assert_true(n >= 3);
    speaker_close(&f);
}

static void test_all_or_nothing(void **unused) {
    (void)unused;
    change_fails((const char *const[]){"C", "4", "window", "200", "missing", "carry", NULL});
    change_fails(
        (const char *const[]){"novelty.persist", "9", "novelty.confirm", "80", "refit", "none", NULL});
    change_fails((const char *const[]){"novelty.max", "20", "refit.tol", "0.1", "scale", "none", NULL});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_or_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
