/* A second thread for novelty that finds no memory: samples are judged on the first, with the same events. */
#include "support/engine.h"
#include "support/nomem.h"

#include "base/fnv.h"
#include "engine/engine_internal.h"
#include "fleet/fleet.h"

#define SAMPLES  300
#define ATTEMPTS 7 /* the queue, its places (two), the thread; rows, gaps, scores */

struct listener {
    struct speaker f;
    uint64_t told; /* of all that was said */
};

static void listen_sink(void *user, const struct svi_event *event) {
    struct listener *l = user;
    const long before = left;
    left = -1;
    assert_int_equal(svi_event_encode(event, &l->f.event), SVS_OK);
    left = before;
    l->told = svi_fnv(l->told, l->f.event.data, l->f.event.size);
}

static void listener_open(struct listener *l) {
    static const char *const settings[] = {"refit", "none", "publish.every", "0", NULL};
    svs_error err;
    memset(l, 0, sizeof *l);
    speaker_open(&l->f, settings);
    svi_stream_free(&l->f.e);
    l->f.e = svi_stream_new(&l->f.s, 77, listen_sink, l, &err);
    assert_non_null(l->f.e);
    l->told = SVI_FNV_SEED;
}

/* Allocation `n` of the sample that finds the detector made fails. */
static void listener_feed(struct listener *l, long n) {
    for (int i = 0; i < SAMPLES; i++) {
        speaker_build(&l->f, "{'x': [%d, %d, %d], 'y': %d}", i * 37 % 101, i * 91 % 103, i * 53 % 107, i % 2);
        left = i == 20 ? n : -1;
        if (i == 20 && n >= 0)
            svi_stream_use_threads(l->f.e);
        apply_bytes(l->f.e, l->f.frame.data, l->f.frame.size, NOW, false, NULL);
        assert_true(i != 20 || n < 0 || n >= ATTEMPTS || left == -1); /* it was asked for */
        left = -1;
    }
    svi_stream_settle(l->f.e);
}

static void test_events_are_the_same(void **state) {
    struct listener one, two;
    int threads = 0;
    (void)state;
    listener_open(&one);
    listener_feed(&one, -1);
    for (long n = 0; n <= ATTEMPTS; n++) {
        listener_open(&two);
        svi_stream_leave_open(two.f.e, true);
        listener_feed(&two, n);
        assert_true(one.told == two.told && svi_stream_root(two.f.e)->seq[SVI_TOPIC_ERROR] == 0);
        threads += svi_stream_root(two.f.e)->queue != NULL;
        speaker_close(&two.f);
    }
    speaker_close(&one.f);
    assert_int_equal(threads,
                     ATTEMPTS + 1 - 4); /* with a thread and no room for rows, the next sample asks again */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_events_are_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
