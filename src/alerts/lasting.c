#include "alerts/lasting.h"

#include <assert.h>
#include <limits.h>
#include <math.h>

#define MAX_EVIDENCE   27.631021115928547 /* ln 1e12 */
#define FALL           6.907755278982137  /* ln 1000 */
#define MAX_LOG_FACTOR 2.0 /* limit of log f in tau: faults must not pass for autocorrelation */
#define MIN_SCORES     8   /* calibration scores below which ranks are ignored */
#define MANY_SCORES    500 /* calibration scores from which it does not matter that ranks share them */
#define BLOCKS         30  /* blocks before a variance counts */
#define MEMORY         512 /* blocks that a scale remembers, about */

void svi_lasting_init(struct svi_lasting *l) {
    *l = (struct svi_lasting){.tau = 1};
}

/* p^0.1 + p^0.3 + p^0.5 + p^0.7, with one power: the exponents are 0.2 apart. */
static double lasting_powers(double p) {
    const double tenth = pow(p, 0.1), fifth = tenth * tenth;
    return tenth * (1 + fifth * (1 + fifth * (1 + fifth)));
}

/* ln of the mean of f (1) between low and high, as the integral of e p^(e-1) is p^e. */
static double lasting_log_evidence(double low, double high) {
    return log((lasting_powers(high) - lasting_powers(low)) / 4 / (high - low));
}

static double scale_variance(const struct svi_lasting_scale *s) {
    const double mean = s->sum / s->blocks;
    return fmax(0, s->squares / s->blocks - mean * mean);
}

/* tau, from the largest ratio of variances over the scales. Each ratio is reduced by one standard error, so
 * that chance does not raise it. The part beyond 1 counts double: at the distance of one effective sample, an
 * autoregression is still correlated by a seventh. */
static double lasting_effective(const struct svi_lasting *l) {
    const double one = scale_variance(&l->scale[0]);
    double largest = 1;
    for (int k = 1; k < SVI_LASTING_SCALES && l->scale[k].blocks >= BLOCKS && one > 0; k++) {
        const double ratio = scale_variance(&l->scale[k]) / (ldexp(1, k) * one);
        largest = fmax(largest, ratio / (1 + sqrt(2 / l->scale[k].blocks)));
    }
    return 1 + 2 * (largest - 1);
}

/* Adds a log f to the sums of all scales. Scale k completes a block every 2^k values: where the low k bits of
 * the count are 0. On average two blocks complete with a value. */
static void lasting_measure(struct svi_lasting *l, double value) {
    for (int k = 0; k < SVI_LASTING_SCALES; k++) {
        struct svi_lasting_scale *s = &l->scale[k];
        s->part += value;
        if (l->counted & ((INT64_C(1) << k) - 1))
            continue;
        const double keep = s->blocks < MEMORY ? 1 : 1 - 1.0 / MEMORY;
        s->blocks = keep * s->blocks + 1;
        s->sum = keep * s->sum + s->part;
        s->squares = keep * s->squares + s->part * s->part;
        s->part = 0;
    }
}

void svi_lasting_add(struct svi_lasting *l, const struct svi_lasting_rank *r) {
    assert(r->low >= 0 && r->low < r->high && r->high <= 1);
    /* Samples with few or shared scores are counted as seen, but their ranks are not independent (lasting.h,
     * FEW SCORES). */
    l->seen++;
    if (r->scores < MIN_SCORES || (r->scores < MANY_SCORES && !r->calibrates))
        return;
    /* Of autocorrelated scores only scores / tau are independent, and every second sample is one: no p is
     * believed below 1 / (1 + that). */
    const double scores = fmin(1, 2 / l->tau) * r->scores;
    const double odd = lasting_log_evidence(r->low, fmax(r->high, 1 / (1 + scores)));
    /* max(1, S) in (1): evidence below 0 is forgotten, and a new run begins at this sample. */
    if (!(l->evidence > 0)) {
        l->since = l->seen - 1;
        l->evidence = l->highest = 0;
    }
    l->evidence = fmin(MAX_EVIDENCE, l->evidence + odd / l->tau);
    /* END: after a fall by 1000 the disturbance is over. */
    l->highest = fmax(l->highest, l->evidence);
    if (l->highest - l->evidence >= FALL)
        l->evidence = 0;
    if (r->disturbed)
        return;
    /* tau is learned last and only from undisturbed samples: no sample is weighted by a tau that
     * it changed. */
    l->counted++;
    lasting_measure(l, fmin(odd, MAX_LOG_FACTOR));
    if (l->counted % 64 == 0)
        l->tau = lasting_effective(l);
}

double svi_lasting_surprise(const struct svi_lasting *l) {
    return fmax(0, l->evidence) / log(10);
}

int svi_lasting_over(const struct svi_lasting *l) {
    const int64_t over = l->evidence > 0 ? l->seen - l->since : 1;
    return over < INT_MAX ? (int)over : INT_MAX;
}

void svi_lasting_archive(struct svi_archive *a, struct svi_lasting *l) {
    char key[SVI_KEY_MAX];
    svi_archive_finite(a, "lasting evidence", &l->evidence, 1);
    svi_archive_finite(a, "lasting highest", &l->highest, 1);
    svi_archive_int64(a, "lasting seen", &l->seen, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "lasting counted", &l->counted, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "lasting since", &l->since, 0, SVI_COUNT_MAX);
    svi_archive_finite(a, "lasting tau", &l->tau, 1);
    for (int k = 0; k < SVI_LASTING_SCALES; k++)
        svi_archive_finite(a, svi_archive_key(key, "lasting scale", k), &l->scale[k].part, 4);
    svi_archive_check(a, l->tau >= 1 && l->since <= l->seen, "the evidence does not add up");
}
