#include "alerts/discovery.h"

#define SHORTEST 64 /* tests, the mean length of the shortest sequence */

/* Mean length of the geometric sequence `span`, in tests: it spends this part, 1 / length, of its rest a
 * test. */
static double discovery_length(int span) {
    return (double)(SHORTEST << span);
}

/* A coin is divided equally among the sequences. All coins of a sequence fade at the same rate, so one number
 * holds what they have left together. */
static void discovery_deposit(struct svi_discovery *d, double coins) {
    for (int k = 0; k < SVI_DISCOVERY_SPANS; k++)
        d->left[k] += coins / SVI_DISCOVERY_SPANS;
}

void svi_discovery_init(struct svi_discovery *d, double fdr) {
    *d = (struct svi_discovery){.fdr = fdr};
    discovery_deposit(d, 0.5);
}

double svi_discovery_level(const struct svi_discovery *d) {
    /* Without the first term, levels fall without end (discovery.h, ALPHA DEATH). */
    double coins = d->idle >= SVI_DISCOVERY_IDLE ? 1.0 / SVI_DISCOVERY_IDLE : 0;
    for (int k = 0; k < SVI_DISCOVERY_SPANS; k++)
        coins += d->left[k] / discovery_length(k);
    return d->fdr * coins;
}

bool svi_discovery_test(struct svi_discovery *d, double p) {
    /* Order: the level of this test, then what it spends, then what a discovery earns. The deposit is spent
     * from the next test on, as LORD++ requires: a test must not pay for itself. */
    const bool found = p <= svi_discovery_level(d);
    for (int k = 0; k < SVI_DISCOVERY_SPANS; k++)
        d->left[k] -= d->left[k] / discovery_length(k);
    d->tested++;
    d->idle = found ? 0 : d->idle + 1;
    if (found)
        discovery_deposit(d, d->found++ == 0 ? 0.5 : 1);
    return found;
}

void svi_discovery_archive(struct svi_archive *a, struct svi_discovery *d) {
    svi_archive_finite(a, "coins left", d->left, SVI_DISCOVERY_SPANS);
    svi_archive_int64(a, "idle tests", &d->idle, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "tests", &d->tested, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "discoveries", &d->found, 0, SVI_COUNT_MAX);
}
