/* Alerts that are kept when memory runs out: an event that finds none has its number all the same, an answer
 * counts it as lost, and the next event is kept. Linked with --wrap for svi_alloc and svi_realloc. */
#include "support/archived.h"
#include "support/problem.h"

#include "fleet/kept_alerts.h"
#include "support/nomem.h"

#define EVENTS 200

static svs_code add(svi_kept_alerts *k, int i) {
    const double times[] = {1, 2, 3}, values[] = {4, 5, 6};
    const struct svi_contribution top = {.feature = "temp"};
    const struct svi_feature_history history = {times, values, 3};
    struct svi_event e = {.topic = SVI_TOPIC_ALERT, .stream = "plant", .epoch = 5, .ts = i};
    e.as.alert = (struct svi_alert_event){.kind = "novelty",
                                          .state = "open",
                                          .id = svs_none(),
                                          .top = &top,
                                          .count = 1,
                                          .text = "plant temp 93",
                                          .history = &history,
                                          .history_count = i % 2};
    const svs_code code = svi_kept_alerts_add(k, &e);
    assert_int_equal(e.as.alert.number, svi_kept_alerts_last(k));
    return code;
}

/* The number that the reply has for a key that stands at its end. */
static int64_t answered(const svi_kept_alerts *k, const char *key, struct svi_bytes *reply) {
    struct svi_pack p;
    reply->size = 0;
    svi_pack_begin(&p, reply);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_kept_alerts_put(k, &(struct svi_alert_query){0, NULL, EVENTS}, &p);
    svi_pack_close(&p, map);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    for (size_t at = reply->size - strlen(key) - 1; at > 0; at--)
        if (memcmp(reply->data + at, key, strlen(key)) == 0)
            return reply->data[at + strlen(key)];
    return -1;
}

static void a_lost_event_is_a_gap(void **state) {
    (void)state;
    struct svi_bytes reply = {0};
    svs_error err;
    int failures = 0;
    svi_kept_alerts *k = svi_kept_alerts_new(&err);
    assert_non_null(k);
    svi_kept_alerts_limit(k, EVENTS);
    /* Each event with the first, second, ... allocation failing, then once more with memory. */
    for (int i = 0; i < EVENTS / 4; i++) {
        left = i % 4;
        const svs_code code = add(k, i);
        left = -1;
        assert_true(code == SVS_OK || code == SVS_NO_MEMORY);
        failures += code != SVS_OK;
        assert_int_equal(add(k, i), SVS_OK);
        assert_int_equal(answered(k, "lost", &reply), failures);
    }
    assert_true(failures >= 4);
    assert_int_equal(svi_kept_alerts_last(k), EVENTS / 2);
    svi_bytes_clear(&reply);
    svi_kept_alerts_free(&k);
}

/* Memory is that of what is kept, as predicted: nothing grows with what has fallen out. */
static void memory_is_as_stated(void **state) {
    (void)state;
    svs_error err;
    for (int keep = 50; keep <= 1000; keep += 950) {
        svi_kept_alerts *k = svi_kept_alerts_new(&err);
        svi_kept_alerts_limit(k, keep);
        taken = 0;
        for (int i = 0; i < 6 * keep + 17; i++) {
            assert_int_equal(add(k, i), SVS_OK);
            /* Besides the first places and the buffers of one event. */
            assert_true(taken <= svi_kept_alerts_memory(k) + 8192);
        }
        assert_true(svi_kept_alerts_memory(k) < 4.0 * 300 * keep + 4.0 * 200 * SVI_KEPT_HISTORIES);
        svi_kept_alerts_free(&k);
    }
}

static void archive_kept(struct svi_archive *a, void *of) {
    svi_kept_alerts_archive(a, of);
}

static void a_load_without_memory_is_refused(void **state) {
    (void)state;
    struct svi_bytes archive = {0};
    svs_error err;
    svi_kept_alerts *k = svi_kept_alerts_new(&err);
    svi_kept_alerts_limit(k, EVENTS);
    for (int i = 0; i < 20; i++)
        assert_int_equal(add(k, i), SVS_OK);
    assert_int_equal(archived_save(archive_kept, k, &archive, &err), SVS_OK);
    int refused = 0;
    for (svs_code code = SVS_NO_MEMORY; code != SVS_OK; refused += code != SVS_OK) {
        svi_kept_alerts_free(&k);
        k = svi_kept_alerts_new(&err);
        left = refused;
        code = archived_load(archive_kept, k, archive.data, archive.size, &err);
        left = -1;
        assert_true(code == SVS_OK || code == SVS_NO_MEMORY);
        assert_true(refused < 100);
    }
    assert_int_equal(refused, 8); /* three arrays and the bytes, of both rings */
    svi_bytes_clear(&archive);
    svi_kept_alerts_free(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_event_is_a_gap),
        cmocka_unit_test(a_load_without_memory_is_refused),
        cmocka_unit_test(memory_is_as_stated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
