/* Kept state when memory runs out while it is saved or loaded: told, and nothing leaks. Linked with --wrap
 * for svi_alloc and svi_realloc. */
#include "support/archived.h"
#include "support/nomem.h"
#include "support/problem.h"

#include "data/shape.h"
#include "features/units.h"
#include "refit/refit_policy.h"
#include "engine/sources.h"
#include "support/stage.h"

/* One kind of object: made, filled, archived, freed. */
struct kind {
    void (*make)(void *object);
    void (*fill)(void *object);
    archived_by *archive;
    void (*drop)(void *object);
    int least; /* allocations that loading takes */
};

static struct svi_settings settings;

union any {
    struct svi_alert_stage sentry;
    struct svi_shape shape;
    svi_sources *producers;
    struct svi_refit_policy beside;
    struct svi_units units;
};

/* ---- novelty */

static void make_sentry(void *object) {
    stage_open(object, &settings);
}

static void fill_sentry(void *object) {
    uint64_t seed = 3;
    for (int t = 0; t < 300; t++) {
        double x[2] = {test_normal(&seed), test_normal(&seed)};
        const struct svi_alert_sample sample = {.d = 2, .x = x, .time = t, .timed = true};
        stage_judge(object, &sample, false);
        svi_alert_stage_learn(object, &sample);
    }
}

static void archive_sentry(struct svi_archive *a, void *object) {
    svi_alert_stage_archive(a, object);
}

static void drop_sentry(void *object) {
    svi_alert_stage_free(object);
}

/* ---- shape */

static void make_shape(void *object) {
    assert_int_equal(svi_shape_init(object, 64, NULL, NULL), SVS_OK);
}

static void fill_shape(void *object) {
    struct svi_shape *s = object;
    for (int j = 0; j < 40; j++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", j);
        svs_features_add(s->names, name, strlen(name), NULL);
    }
    svi_shape_commit(s, &(struct svi_message){.has_x = true, .kind = SVI_NAMED, .d = 40});
}

static void archive_shape(struct svi_archive *a, void *object) {
    svi_shape_archive(a, object);
}

static void drop_shape(void *object) {
    svi_shape_clear(object);
}

/* ---- sources */

static void make_producers(void *object) {
    *(svi_sources **)object = svi_sources_new(64, NULL);
}

static void fill_producers(void *object) {
    for (int j = 0; j < 40; j++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", j);
        svi_sources_add(*(svi_sources **)object, name, strlen(name), 0, 0, NULL);
    }
}

static void archive_producers(struct svi_archive *a, void *object) {
    svi_sources_archive(a, *(svi_sources **)object);
}

static void drop_producers(void *object) {
    svi_sources_free(object);
}

/* ---- refits */

static void make_beside(void *object) {
    assert_int_equal(svi_refit_policy_new(object, &settings, NULL), SVS_OK);
}

static void fill_beside(void *object) {
    struct svi_refit_policy *b = object;
    assert_int_equal(svi_refit_policy_reserve(b, 3, 20, NULL), SVS_OK);
    b->have = true;
    b->model = (svs_model){
        .method = "dcd", .d = 20, .rows = 3, .class_count = 3, .W = b->W, .b = b->b, .C = 1, .refit = true};
}

static void archive_beside(struct svi_archive *a, void *object) {
    svi_refit_policy_archive(a, object);
}

static void drop_beside(void *object) {
    svi_refit_policy_free(object);
}

/* ---- units */

static void make_units(void *object) {
    *(struct svi_units *)object = (struct svi_units){0};
}

static void fill_units(void *object) {
    for (int j = 0; j < 10; j++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", j);
        assert_int_equal(svi_units_set(object, name, "bar", 64, NULL), SVS_OK);
    }
}

static void archive_units(struct svi_archive *a, void *object) {
    svi_units_archive(a, object, 64);
}

static void drop_units(void *object) {
    svi_units_clear(object);
}

static const struct kind kinds[] = {{make_sentry, fill_sentry, archive_sentry, drop_sentry, 15},
                                    {make_shape, fill_shape, archive_shape, drop_shape, 40},
                                    {make_producers, fill_producers, archive_producers, drop_producers, 4},
                                    {make_beside, fill_beside, archive_beside, drop_beside, 1},
                                    {make_units, fill_units, archive_units, drop_units, 2}};

static void loading(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const struct kind *of = &kinds[k];
        union any a, b;
        struct svi_bytes kept = {0}, again = {0};
        svs_error err;
        bool used = true;
        of->make(&a);
        of->fill(&a);
        assert_int_equal(archived_save(of->archive, &a, &kept, &err), SVS_OK);
        for (int n = 0; used; n++) {
            of->make(&b);
            left = n;
            const svs_code code = archived_load(of->archive, &b, kept.data, kept.size, &err);
            used = left < 0;
            left = -1;
            assert_int_equal(code, used ? SVS_NO_MEMORY : SVS_OK);
            assert_true(used || n >= of->least);
            if (!used) {
                assert_int_equal(archived_save(of->archive, &b, &again, &err), SVS_OK);
                assert_true(archived_same(&kept, &again));
            }
            of->drop(&b);
        }
        of->drop(&a);
        svi_bytes_clear(&kept);
        svi_bytes_clear(&again);
    }
}

/* What is saved stays what it is, and comes out whole at last. */
static void saving(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const struct kind *of = &kinds[k];
        union any a;
        struct svi_bytes whole = {0};
        svs_error err;
        bool used = true;
        of->make(&a);
        of->fill(&a);
        assert_int_equal(archived_save(of->archive, &a, &whole, &err), SVS_OK);
        for (int n = 0; used; n++) {
            struct svi_bytes kept = {0};
            left = n;
            const svs_code code = archived_save(of->archive, &a, &kept, &err);
            used = left < 0;
            left = -1;
            assert_int_equal(code, used ? SVS_NO_MEMORY : SVS_OK);
            assert_true(used ? kept.size == 0 : archived_same(&kept, &whole));
            svi_bytes_clear(&kept);
        }
        of->drop(&a);
        svi_bytes_clear(&whole);
    }
}

static void the_record_of_a_refit(void **state) {
    (void)state;
    struct svi_bytes record = {0};
    double W[6] = {1, 2, 3, 4, 5, 6}, b[3] = {7, 8, 9};
    struct svi_refit done = {.result = {.W = W, .b = b, .d = 2, .class_count = 3, .rows = 3}};
    struct svi_refit *job = svi_refit_new(&settings, NULL);
    bool used = true;
    assert_int_equal(svi_refit_pack(&done, &record), SVS_OK);
    for (int n = 0; used; n++) {
        svs_error err;
        left = n;
        const svs_code code = svi_refit_unpack(job, record.data, record.size, 9, 9, &err);
        used = left < 0;
        left = -1;
        assert_int_equal(code, used ? SVS_NO_MEMORY : SVS_OK);
        assert_true(used ? !job->result.W
                         : job->result.W[5] == 6 && job->result.b[2] == 9 && job->result.rows == 3);
        assert_true(used || n == 1);
    }
    svi_refit_free(&job);
    svi_bytes_clear(&record);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(loading), cmocka_unit_test(saving),
                                       cmocka_unit_test(the_record_of_a_refit)};
    svi_settings_default(&settings);
    settings.novelty = SVI_NOVELTY_FOSVM1;
    settings.novelty_max = 20;
    settings.novelty_lags = 2;
    settings.method = SVI_METHOD_ALSVM;
    settings.window = 100;
    settings.refit = SVS_SOLVER_ALM;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
