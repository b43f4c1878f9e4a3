/* Evidence that adds up: what it promises on exchangeable samples of six laws, with ties and with few scores;
 * what dependence costs; that small lasting shifts are found, that evidence ends, and that it is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alerts/lasting.h"
#include "base/bytes.h"
#include "base/random.h"
#include "novelty/calibration.h"
#include "support/quick.h"
#include "wire/archive_file.h"

enum law { NORMAL, STUDENT, EXPONENTIAL, UNIFORM, DISCRETE, LOGNORMAL, LAWS };

static double uniform(struct svi_random *r) {
    return ((double)(svi_random_next(r) >> 11) + 0.5) * 0x1p-53;
}

static double gauss(struct svi_random *r) {
    return sqrt(-2 * log(uniform(r))) * cos(6.283185307179586 * uniform(r));
}

static double chi_square(struct svi_random *r) {
    const double g = gauss(r);
    return g * g;
}

static double draw(enum law law, struct svi_random *r) {
    switch (law) {
    case NORMAL:
        return fabs(gauss(r));
    case STUDENT:
        return fabs(gauss(r)) / sqrt((chi_square(r) + chi_square(r) + chi_square(r)) / 3);
    case EXPONENTIAL:
        return -log(uniform(r));
    case UNIFORM:
        return uniform(r);
    case DISCRETE:
        return floor(-3 * log(uniform(r)));
    default:
        return exp(gauss(r));
    }
}

/* A stream of scores, every second one of which calibrates, and the evidence in it. */
struct stream {
    struct svi_calibration calibration;
    struct svi_lasting lasting;
    int64_t samples;
};

static void begin(struct stream *s, int capacity) {
    assert_int_equal(svi_calibration_init(&s->calibration, capacity, capacity, NULL), SVS_OK);
    svi_lasting_init(&s->lasting);
    s->samples = 0;
}

static void end(struct stream *s) {
    svi_calibration_clear(&s->calibration);
}

/* Returns the surprise. `learned`: the sample may calibrate. */
static double feed(struct stream *s, double score, bool learned) {
    const struct svi_calibration *c = &s->calibration;
    const double p = svi_calibration_p(c, score), all = 1.0 + c->ring.filled;
    const struct svi_lasting_rank rank = {svi_calibration_above(c, score, (int)rint(p * all) - 1) / all, p,
                                          c->ring.filled, s->samples % 2 == 1, !learned};
    svi_lasting_add(&s->lasting, &rank);
    if (s->samples++ % 2 && learned)
        svi_calibration_add(&s->calibration, score);
    return svi_lasting_surprise(&s->lasting);
}

/* ---- the promise */

#define LEVELS 4

struct tally {
    double samples, above[LEVELS], alarms[LEVELS], squares[LEVELS]; /* at surprises of 1, 2, 3, 4 */
};

static void run_stream(struct tally *t, enum law law, uint64_t seed, int capacity, int samples, double rho) {
    struct svi_random r = {seed};
    struct stream s;
    double z = gauss(&r), before = 0, above[LEVELS] = {0};
    begin(&s, capacity);
    for (int i = 0; i < samples; i++) {
        z = rho * z + sqrt(1 - rho * rho) * gauss(&r);
        const double surprise = feed(&s, rho > 0 ? fabs(z) : draw(law, &r), true);
        for (int k = 0; k < LEVELS; k++) {
            above[k] += surprise >= k + 1;
            t->alarms[k] += surprise >= k + 1 && before < k + 1;
        }
        before = surprise;
    }
    for (int k = 0; k < LEVELS; k++) {
        t->above[k] += above[k];
        t->squares[k] += above[k] * above[k];
    }
    t->samples += samples;
    end(&s);
}

/* P(surprise >= k) <= 10^-k for samples of streams of any length: short ones show the time of few scores. */
static void each_surprise_is_as_rare_as_it_says(void **state) {
    static const struct {
        int capacity, samples, streams;
    } kinds[] = {{2000, 300, 500}, {2000, 5000, 20}, {100, 3000, 20}};
    (void)state;
    for (int law = 0; law < LAWS; law++)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            struct tally t = {0};
            const int streams = often(kinds[i].streams, kinds[i].streams / 20);
            for (int k = 0; k < streams; k++)
                run_stream(&t, (enum law)law, 77 + 1000 * (uint64_t)k, kinds[i].capacity, kinds[i].samples,
                           0);
            for (int k = 0; k < LEVELS; k++) {
                const double most = pow(10, -k - 1), error = sqrt(t.squares[k]) / t.samples;
                if (t.above[k] / t.samples > most + 3 * error)
                    fail_msg("law %d, room %d, %d samples: %g are at %d", law, kinds[i].capacity,
                             kinds[i].samples, t.above[k] / t.samples, k + 1);
                assert_true(t.alarms[k] <= t.above[k]);
            }
            assert_true(t.above[0] / t.samples > 0.01); /* nor is it idle */
        }
}

/* The mean over all places that a sample may have is 1, ties or not. */
static void the_mean_of_the_evidence_is_1(void **state) {
    static const int ties[] = {1, 7, 50, 100, 3, 250, 89};
    double from = 0, mean = 0;
    (void)state;
    for (size_t i = 0; i < sizeof ties / sizeof *ties; i++) {
        struct svi_lasting l;
        const double to = fmin(1, from + ties[i] / 500.0);
        svi_lasting_init(&l);
        l.evidence = 1; /* so that what makes it less shows */
        svi_lasting_add(&l, &(struct svi_lasting_rank){from, to, 499, true, false});
        mean += (to - from) * exp(l.evidence - 1);
        from = to;
    }
    assert_true(from == 1 && fabs(mean - 1) < 1e-12);
}

/* Nothing is promised for rows that hang together; what was measured holds (guarantees.md). */
static void dependence_is_measured_and_damps(void **state) {
    static const double rho[] = {0.9, 0.99}, most[] = {2, 40};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tally t = {0};
        for (int k = 0; k < often(20, 1); k++)
            run_stream(&t, NORMAL, 5 + 999 * (uint64_t)k, 2000, 20000, rho[i]);
        const double times = 1000 * t.above[2] / t.samples;
        if (!quick() && times > most[i])
            fail_msg("rho %g: a surprise of 3 comes %g times as often as it says", rho[i], times);
    }
}

/* ---- what it finds, and that it ends */

static int found_after(double shift, int before, double level) {
    struct svi_random r = {9};
    struct stream s;
    int samples = 0;
    begin(&s, 2000);
    for (int i = 0; i < before; i++)
        feed(&s, draw(NORMAL, &r), true);
    while (feed(&s, fabs(gauss(&r) + shift), false) < level && samples < 10000)
        samples++;
    end(&s);
    return samples;
}

static void small_shifts_that_last_are_found(void **state) {
    (void)state;
    assert_true(found_after(1, 8000, 6) < 400); /* no single row of these stands out */
    assert_true(found_after(2, 8000, 6) < 40);
    assert_true(found_after(4, 200, 6) < 60); /* with 100 scores: p is never below 0.01 */
    assert_true(found_after(4, 8000, 6) < 8);
}

static void evidence_of_what_is_over_goes(void **state) {
    struct svi_random r = {3};
    struct stream s;
    int left = 0;
    (void)state;
    begin(&s, 2000);
    for (int i = 0; i < 6000; i++)
        feed(&s, draw(NORMAL, &r), true);
    const int64_t before = s.samples;
    for (int i = 0; i < 1000; i++)
        feed(&s, 10, false);
    assert_true(svi_lasting_surprise(&s.lasting) <= 12.001);
    assert_in_range(svi_lasting_over(&s.lasting), 1000, s.samples - before + 50);
    while (feed(&s, draw(NORMAL, &r), true) > 3 && left < 1000)
        left++;
    assert_true(left < 200);
    assert_true(svi_lasting_over(&s.lasting) < 1300);
    end(&s);
}

/* ---- kept */

static void kept_evidence_goes_on_as_it_was(void **state) {
    struct svi_random r = {4};
    struct svi_bytes bytes = {0};
    struct svi_archive_out out;
    struct svi_archive_in in;
    struct stream s;
    svs_error err = {0};
    (void)state;
    begin(&s, 100);
    for (int i = 0; i < 777; i++)
        feed(&s, draw(NORMAL, &r), true);
    svi_archive_out_begin(&out, &bytes, "lasting", &err);
    svi_lasting_archive(&out.archive, &s.lasting);
    assert_int_equal(svi_archive_out_end(&out), SVS_OK);
    struct svi_lasting other;
    svi_lasting_init(&other);
    svi_archive_in_begin(&in, bytes.data, bytes.size, "lasting", &err);
    svi_lasting_archive(&in.archive, &other);
    assert_int_equal(svi_archive_in_end(&in), SVS_OK);
    assert_memory_equal(&other, &s.lasting, sizeof other);
    other.tau = 0.5;
    bytes.size = 0;
    svi_archive_out_begin(&out, &bytes, "lasting", &err);
    svi_lasting_archive(&out.archive, &other);
    assert_int_equal(svi_archive_out_end(&out), SVS_OK);
    svi_archive_in_begin(&in, bytes.data, bytes.size, "lasting", &err);
    svi_lasting_archive(&in.archive, &other);
    assert_int_equal(svi_archive_in_end(&in), SVS_DAMAGED);
    svi_bytes_clear(&bytes);
    end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_surprise_is_as_rare_as_it_says),
                                       cmocka_unit_test(the_mean_of_the_evidence_is_1),
                                       cmocka_unit_test(dependence_is_measured_and_damps),
                                       cmocka_unit_test(small_shifts_that_last_are_found),
                                       cmocka_unit_test(evidence_of_what_is_over_goes),
                                       cmocka_unit_test(kept_evidence_goes_on_as_it_was)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
