/* What is seen again and again stays usual while points grow old and leave, for every kernel, and equal
 * samples are ties, however the solution has changed between them. */
#include "support/problem.h"

#include "novelty/detector.h"

#define SAMPLES 20000
#define BEGIN   2000 /* samples until both states have their points */
#define WINDOW  500

/* Two states, each half of the time, at `where` and at the origin; now and then, when `rare`, a third. */
static void check_states(svs_novelty_kernel kernel, int fosvm, double where, bool rare) {
    svs_error err;
    struct svi_judgement j;
    uint64_t seed = 5;
    struct svi_detector_options o = {.window = WINDOW,
                                     .calibration = 500,
                                     .p = 0.005,
                                     .clear = 0.05,
                                     .confirm = 10,
                                     .persist = 100,
                                     .d = 2};
    svs_novelty_options_default(&o.model);
    o.model.kernel = kernel;
    o.model.fosvm = fosvm;
    svi_detector *d = svi_detector_new(&o, &err);
    assert_non_null(d);
    for (int i = 0; i < SAMPLES; i++) {
        const bool third = rare && test_uniform(&seed) < 0.01, other = test_uniform(&seed) < 0.5;
        const double x[] = {other ? where : 0, third ? where : 0};
        svi_detector_assess(d, x, &j);
        assert_false(isnan(j.surprise));
        if (i >= BEGIN && !third)
            assert_true(j.p > 0.05 && !j.novel);
        svi_detector_learn(d, false);
    }
    svi_detector_free(&d);
}

static void common_states_stay_usual(void **state) {
    (void)state;
    for (int kernel = SVS_NOVELTY_RBF; kernel <= SVS_NOVELTY_POLYNOMIAL; kernel++)
        for (int rare = 0; rare <= 1; rare++)
            for (int fosvm = 1; fosvm <= 2; fosvm++) {
                check_states((svs_novelty_kernel)kernel, fosvm, 1, rare);
                check_states((svs_novelty_kernel)kernel, fosvm, -40, rare);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(common_states_stay_usual)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
