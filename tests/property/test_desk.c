/* The desk: a stream in which nothing is wrong stays within its budget, whatever the law of its surprises and
 * however they hang together; episodes follow their rules; what is kept goes on bit for bit. */
#include "support/problem.h"

#include "alerts/desk.h"
#include "support/archived.h"

#define MINUTE 60.0
#define DAY    (1440 * MINUTE)

/* ---- streams of surprises */

enum law { HONEST, HEAVY, HANGS_TOGETHER, SLOW_AND_HEAVY, RARE_BURSTS, LAWS };

static const char *const law_names[LAWS] = {"honest", "heavy", "hangs together", "slow and heavy",
                                            "rare bursts"};

struct source {
    enum law law;
    double z, left;
};

/* -log10 of a p-value of |z|, about. */
static double of_normal(double z) {
    return -log10(fmax(1e-300, erfc(fabs(z) / sqrt(2))));
}

static double surprise(struct source *s, uint64_t *seed) {
    const double keep = s->law == HANGS_TOGETHER ? 0.9 : 0.995;
    switch (s->law) {
    case HEAVY: /* Pareto-like: estimates of p that are far too small */
        return 0.5 / pow(test_uniform(seed), 0.4) - 0.5;
    case HANGS_TOGETHER:
    case SLOW_AND_HEAVY:
        s->z = keep * s->z + sqrt(1 - keep * keep) * test_normal(seed);
        return of_normal(s->z) * (s->law == SLOW_AND_HEAVY ? 4 : 1);
    case RARE_BURSTS: /* a normal transient, three times a day */
        s->left = test_uniform(seed) < 3.0 / 1440 ? 10 : s->left - 1;
        return s->left > 0 ? 6 + 3 * test_uniform(seed) : -log10(test_uniform(seed));
    default:
        return -log10(test_uniform(seed));
    }
}

struct outcome {
    double early, late; /* episodes a day: in the first three days, after them */
};

static struct outcome live(enum law law, int judges, double a_day, double interval, int days, uint64_t seed) {
    const struct svi_desk_options o = {.a_day = a_day, .group = 60, .clear = 0.05, .warmup = 100};
    struct svi_desk *d = malloc(sizeof *d);
    struct svi_alert a = {.closed = 0};
    struct source source[SVI_JUDGES];
    double opened[2] = {0};
    svi_desk_init(d, &o);
    for (int i = 0; i < SVI_JUDGES; i++)
        source[i] = (struct source){.law = law};
    const int rows = (int)(days * DAY / interval);
    for (int t = 0; t < rows; t++) {
        struct svi_finding f[SVI_JUDGES] = {{0}};
        for (int i = 0; i < judges; i++)
            f[i] = (struct svi_finding){.surprise = surprise(&source[i], &seed), .feature = i};
        opened[t * interval >= 3 * DAY] += svi_desk_step(d, &a, f, t * interval, true) == SVI_ALERT_OPEN;
    }
    free(d);
    return (struct outcome){opened[0] / 3, opened[1] / (days - 3)};
}

static void stays_within_its_budget(void **state) {
    (void)state;
    for (int law = 0; law < LAWS; law++)
        for (int judges = 1; judges <= SVI_JUDGES; judges += SVI_JUDGES - 1) {
            struct outcome sum = {0};
            for (uint64_t seed = 1; seed <= 5; seed++) {
                const struct outcome o = live((enum law)law, judges, 1, MINUTE, 28, seed);
                sum.early += o.early / 5;
                sum.late += o.late / 5;
            }
            print_message("%-16s %d judges: %.2f alerts a day in the first 3 days, %.2f after them\n",
                          law_names[law], judges, sum.early, sum.late);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stays_within_its_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
