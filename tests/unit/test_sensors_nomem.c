/* The judges of sensors when memory runs out, and how much they take. Linked with --wrap for svi_alloc and
 * svi_realloc. */
#include "support/archived.h"
#include "support/problem.h"

#include "alerts/forecast.h"
#include "support/nomem.h"
#include "support/sensors.h"

static void feed(svi_sensors *s, int d, int rows, uint64_t *seed) {
    double x[64];
    struct svi_moment at;
    struct svi_evidence f[SVI_DETECTORS] = {{0}};
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < d; j++)
            x[j] = test_normal(seed);
        svi_context_moment(NULL, 1.7e9 + 60.0 * i, &at);
        sensors_step(s, x, &at, f);
    }
}

static void archive_sensors(struct svi_archive *a, void *of) {
    svi_sensor_detectors.archive(a, of);
}

/* Without room for a wider copy the narrow one is as it was. */
static void a_refusal_changes_nothing(void **state) {
    (void)state;
    struct svi_bytes before = {0}, after = {0};
    svs_error err = {0};
    uint64_t seed = 3;
    svi_sensors *s = NULL;
    svs_code code = SVS_NO_MEMORY;
    int refused = 0;
    for (; !s; refused++) {
        left = refused;
        s = sensors_open(3, 1, false, &err);
        left = -1;
        assert_true(s || strstr(err.text, "sensors"));
    }
    assert_int_equal(refused, 10);
    feed(s, 3, 300, &seed);
    assert_int_equal(archived_save(archive_sensors, s, &before, &err), SVS_OK);
    for (refused = 0; code != SVS_OK; refused++) {
        left = refused;
        code = sensors_widen(&s, 40, &err);
        left = -1;
        if (code == SVS_OK)
            continue;
        assert_int_equal(archived_save(archive_sensors, s, &after, &err), SVS_OK);
        assert_true(archived_same(&before, &after));
    }
    assert_int_equal(refused, 10);
    sensors_close(s);
    svi_bytes_clear(&before);
    svi_bytes_clear(&after);
}

static void judges_of_the_row_are_refused(void **state) {
    (void)state;
    const struct svi_detector_shape shape = {.columns = 1};
    void *rows = NULL;
    for (int n = 0; n < 3; n++) {
        left = n;
        assert_int_equal(svi_row_detectors.reserve(&rows, &shape, NULL), SVS_NO_MEMORY);
        left = -1;
        assert_null(rows); /* nothing is held */
    }
    assert_int_equal(svi_row_detectors.reserve(&rows, &shape, NULL), SVS_OK);
    svi_row_detectors.drop(rows);
}

/* And no row takes any. */
static void memory_is_as_stated(void **state) {
    (void)state;
    static const int widths[] = {1, 2, 38, 64, 65, SVI_SENSORS_MAX};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int context = 0; context < 2; context++) {
            uint64_t seed = 1;
            int contexts = 0;
            taken = 0;
            svi_sensors *s = sensors_open(widths[i], context, false, NULL);
            assert_non_null(s);
            assert_true(taken == sensors_memory(widths[i], 0));
            while (svi_sensors_set_context(s, contexts))
                contexts += contexts + 1 < widths[i];
            contexts = context ? (widths[i] < SVI_CONTEXT_COLUMNS ? widths[i] : SVI_CONTEXT_COLUMNS) : 0;
            assert_int_equal(svi_sensors_reserve_context(s, NULL), SVS_OK);
            if (contexts > 0) /* the block that it left */
                taken -= svi_forecast_memory(SVI_CONTEXT_TIME, widths[i]);
            assert_true(taken == sensors_memory(widths[i], contexts));
            if (widths[i] <= 64)
                feed(s, widths[i], 200, &seed);
            assert_true(taken == sensors_memory(widths[i], contexts));
            sensors_close(s);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_changes_nothing),
        cmocka_unit_test(judges_of_the_row_are_refused),
        cmocka_unit_test(memory_is_as_stated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
