/* The adapter's joins by key, against a plain list: found by their names, forgotten when they must be, and
 * their periods end in the order in which they are due. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../adapters/mqtt/joins.h"
#include "base/clock.h"
#include "base/random.h"

#define KEYS 200

struct heard {
    int samples;
    char last[SVS_KEY_MAX + 1];
};

static void hear_sample(void *context, const struct join *j, double ts, const struct sample_id *id) {
    struct heard *h = context;
    (void)ts;
    (void)id;
    h->samples++;
    strcpy(h->last, j->key);
}

static void joins_begin(struct joins *all, const struct options *o, struct counters *c, struct heard *h) {
    *all = (struct joins){0};
    *h = (struct heard){0};
    assert_int_equal(mqtt_joins_open(all, o, c, hear_sample, h), 0);
}

static void give(struct joins *all, struct join *j, double value) {
    const struct field f = {.value = value};
    const struct sample_id none = {.value = svs_none()};
    const char *name = "a", *reason;
    mqtt_join_begin(j, 0, false, false, &name, 1);
    assert_true(mqtt_join_value(j, name, &f, 0, false, &reason));
    mqtt_join_end(j, &none, 0, false);
    mqtt_joins_note(all, j);
}

/* Of keys beyond the limit the one that has been silent longest goes, after an hour and not before. */
static void test_limit(void **unused) {
    (void)unused;
    const struct options o = {.keys = 3, .join_mode = JOIN_EACH};
    struct counters c = {0};
    struct heard h;
    struct joins all;
    joins_begin(&all, &o, &c, &h);
    struct join *a = mqtt_joins_use(&all, "a", 0);
    assert_non_null(a);
    assert_non_null(mqtt_joins_use(&all, "b", 10));
    assert_non_null(mqtt_joins_use(&all, "c", 20));
    assert_ptr_equal(mqtt_joins_use(&all, "a", 30), a);
    assert_null(mqtt_joins_use(&all, "d", 3609));
    assert_non_null(mqtt_joins_use(&all, "d", 3610)); /* b was silent for an hour */
    assert_null(mqtt_joins_find(&all, "b"));
    assert_ptr_equal(mqtt_joins_find(&all, "a"), a);
    assert_null(mqtt_joins_use(&all, "b", 3611)); /* c has said something at 20 */
    assert_non_null(mqtt_joins_use(&all, "b", 3620));
    assert_null(mqtt_joins_find(&all, "c"));
    assert_int_equal(all.count, 3);
    mqtt_joins_clear(&all);
}

/* One whose values wait for the end of their period stays. */
static void test_limit_waits(void **unused) {
    (void)unused;
    const struct options o = {.keys = 1, .join_mode = JOIN_PERIOD, .join_seconds = 1e6};
    struct counters c = {0};
    struct heard h;
    struct joins all;
    joins_begin(&all, &o, &c, &h);
    give(&all, mqtt_joins_use(&all, "a", 0), 1);
    assert_null(mqtt_joins_use(&all, "b", 1e5));
    mqtt_joins_flush(&all);
    assert_int_equal(h.samples, 1);
    assert_string_equal(h.last, "a");
    mqtt_joins_clear(&all);
}

/* Is the heap one, and are those in it that wait? */
static void check_due(const struct joins *all) {
    int64_t waiting = 0;
    for (int64_t i = 0; i < all->pending; i++) {
        assert_int_equal(all->due[i]->place, i + 1);
        assert_true(all->due[(i - 1) / 2]->due <= all->due[i]->due);
    }
    for (const struct join *j = all->first; j; j = j->after) {
        assert_true(mqtt_join_pending(j) == (j->place > 0));
        waiting += j->place > 0;
    }
    assert_int_equal(waiting, all->pending);
}

static void test_periods(void **unused) {
    (void)unused;
    const struct options o = {.keys = KEYS, .join_mode = JOIN_PERIOD, .join_seconds = 1e6};
    struct counters c = {0};
    struct heard h;
    struct joins all;
    struct svi_random random = {.state = 5};
    joins_begin(&all, &o, &c, &h);
    const double now = svi_monotonic();
    for (int step = 0; step < 5000; step++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", (int)svi_random_below(&random, KEYS));
        struct join *j = mqtt_joins_use(&all, key, now);
        assert_non_null(j);
        if (!mqtt_join_pending(j))
            give(&all, j, step);
        if (svi_random_below(&random, 10) < 3) {
            mqtt_join_close(j);
        } else { /* later or sooner, and some are over */
            j->due = now + 1e4 * ((int)svi_random_below(&random, 1000) - 9.5);
        }
        mqtt_joins_note(&all, j);
        check_due(&all);
        if (step % 100 == 99) {
            mqtt_joins_clock(&all);
            check_due(&all);
            assert_true(all.pending == 0 || all.due[0]->due > now);
        }
    }
    assert_true(all.pending > KEYS / 2 && h.samples > 1000);
    const int before = h.samples;
    const int64_t pending = all.pending;
    mqtt_joins_flush(&all);
    assert_int_equal(h.samples - before, pending);
    mqtt_joins_clear(&all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_limit_waits),
        cmocka_unit_test(test_periods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
