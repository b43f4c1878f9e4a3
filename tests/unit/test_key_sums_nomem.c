/* The sums of all keys, and a merged prior, whose allocations fail anywhere: a record is made whole or not at
 * all, a sample that finds no memory leaves the sums those of the rows that are held, and a merged prior is
 * taken whole, or the state is the one before. Linked with --wrap. */
#include "support/engine.h"
#include "support/nomem.h"

#include "base/random.h"
#include "fleet/fleet_internal.h"
#include "learner/learner_internal.h"
#include "merge/prior_merge.h"
#include "merge/prior_record.h"
#include "support/apply.h"

#define KEYS 5

static void say_nothing(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

static svi_stream *begin(struct svi_settings *s, svs_error *err) {
    const char *const given[] = {
        "key", "key",         "method", "alsvm",        "novelty", "none",       "window",
        "20",  "alert.rules", "none",   "publish.sums", "10",      "merge.from", "tcp://127.0.0.1:9",
        NULL};
    svi_settings_default(s);
    for (int i = 0; given[i]; i += 2)
        assert_int_equal(svi_settings_set(s, given[i], given[i + 1], err), SVS_OK);
    svi_settings_settle_method(s);
    return svi_stream_new(s, 77, say_nothing, NULL, err);
}

/* Element i, of some key: columns and classes are added as it goes on. */
static void apply(svi_stream *e, int i, struct svi_random *random, long failing) {
    struct speaker f = {0};
    char row[600] = "";
    size_t at = 0;
    for (int j = 0; j < 2 + i / 20; j++)
        at += (size_t)snprintf(row + at, sizeof row - at, "%s'f%d':%d", j ? "," : "", j,
                               (int)svi_random_below(random, 90));
    snprintf(row + at, sizeof row - at, ",'word':'w%d'", (int)svi_random_below(random, 5));
    speaker_build(&f, "{'x':{%s},'y':'class %d','id':%d,'key':'k%d'}", row,
                  (int)svi_random_below(random, (uint32_t)(2 + i / 60)), i,
                  (int)svi_random_below(random, KEYS));
    left = failing;
    apply_bytes(e, f.frame.data, f.frame.size, NOW + i, false, NULL);
    left = -1;
    svi_bytes_clear(&f.frame);
}

static int64_t held(svi_stream *e) {
    int64_t rows = 0;
    svs_error err;
    svi_stream_settle(e);
    for (int k = 0; k < KEYS; k++) {
        char name[8];
        snprintf(name, sizeof name, "k%d", k);
        const svi_engine *of = svi_stream_engine(e, name, &err);
        rows += of ? of->learner->held_learned : 0;
    }
    return rows;
}

/* Each allocation of a record, and of the samples before it. */
static void test_record(void **state) {
    struct svi_settings s;
    struct svi_random random = {7};
    svs_error err = {0};
    int failures = 0;
    svi_stream *e = begin(&s, &err);
    (void)state;
    assert_non_null(e);
    for (int i = 0; i < 300; i++) {
        /* Names are met first: a column whose only sample found no memory has none, and the record says so.
         */
        apply(e, i, &random, i % 3 && i % 20 && i > 20 ? (long)svi_random_below(&random, 12) : -1);
        if (i < 20 || i % 20)
            continue;
        struct svi_sums r = {0};
        svs_code code = SVS_NO_MEMORY;
        for (int n = 0; n < 1000 && code != SVS_OK; n++, failures++) {
            left = n;
            code = svi_stream_sums(e, &r, &err);
            left = -1;
            if (code != SVS_OK) {
                assert_int_equal(code, SVS_NO_MEMORY);
                svi_sums_clear(&r);
            }
        }
        assert_int_equal(code, SVS_OK);
        assert_int_equal(r.sums.n, held(e));
        assert_non_null(r.schema);
        svi_sums_clear(&r);
    }
    assert_true(failures > 30);
    svi_stream_free(&e);
}

static void test_merged(void **state) {
    struct svi_settings s;
    struct svi_random random = {9};
    struct svi_bytes map = {0}, merged = {0};
    const struct svi_prior_bounds *bounds;
    svs_error err = {0};
    int64_t keys;
    svi_stream *e = begin(&s, &err);
    (void)state;
    for (int i = 0; i < 200; i++)
        apply(e, i, &random, -1);
    svi_stream_settle(e);
    const struct svi_prior_sums *sums = svi_fleet_prior_sums(svi_fleet_of(e), &bounds, &keys);
    assert_int_equal(svi_prior_record_encode(sums, bounds, keys, &map, &err), SVS_OK);
    struct svi_prior_part part = {.name = "a", .prior = map.data, .size = map.size};
    assert_int_equal(svi_prior_merge(&part, 1, false, &merged, &err), SVS_OK);
    svs_code code = SVS_NO_MEMORY;
    int failures = 0;
    for (int n = 0; n < 200 && code != SVS_OK; n++, failures++) {
        left = n;
        code = svi_fleet_merged_take(e, merged.data, merged.size, &err);
        left = -1;
        assert_true(code == SVS_OK || code == SVS_NO_MEMORY);
        assert_non_null(svi_fleet_prior_newest(svi_fleet_of(e)));
        apply(e, 200 + n, &random, -1);
    }
    assert_int_equal(code, SVS_OK);
    assert_true(failures > 5);
    assert_true(svi_fleet_merged_taken(svi_fleet_of(e)));
    svi_bytes_clear(&map);
    svi_bytes_clear(&merged);
    svi_stream_free(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_record), cmocka_unit_test(test_merged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
