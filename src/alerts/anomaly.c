#include "alerts/anomaly.h"

#include <math.h>

#define BINS_A_FACTOR 4     /* bins to a factor of 2 */
#define LOWEST        0.125 /* strength of the lowest edge; the highest is 4096 times that */

/* The place of a strength among the bins, 0 to SVI_ANOMALY_BINS: that of its bin, and how far within it. */
static double anomaly_place(double strength) {
    const double place = BINS_A_FACTOR * log2(fmax(strength, LOWEST) / LOWEST);
    return fmin(place, SVI_ANOMALY_BINS);
}

static int anomaly_bin(double place) {
    return place < SVI_ANOMALY_BINS ? (int)place : SVI_ANOMALY_BINS - 1;
}

/* The share q of rows of at least this strength. Like a conformal p-value it counts the row itself. */
static double anomaly_share(const struct svi_anomaly *s, double strength) {
    const double place = anomaly_place(strength);
    const int bin = anomaly_bin(place);
    int above = 0;
    for (int i = bin + 1; i < SVI_ANOMALY_BINS; i++)
        above += s->count[i];
    return (1 + above + (bin + 1 - place) * s->count[bin]) / (1.0 + s->rows);
}

double svi_anomaly_score(const struct svi_anomaly *s, double p, double strength) {
    return strength > 0 ? 1 - cbrt(p * p * anomaly_share(s, strength)) : 1 - p;
}

void svi_anomaly_add(struct svi_anomaly *s, double strength) {
    if (!(strength > 0))
        return;
    s->count[anomaly_bin(anomaly_place(strength))]++;
    s->rows++;
    if (s->rows < SVI_ANOMALY_MAX_ROWS)
        return;
    /* From the top down, a remainder passes to the next bin: the few rows of the highest bins do not all
     * disappear at once, and the sum is halved exactly. */
    int left = 0;
    s->rows = 0;
    for (int i = SVI_ANOMALY_BINS - 1; i >= 0; i--) {
        left += s->count[i];
        s->count[i] = (uint16_t)(left / 2);
        s->rows += left / 2;
        left %= 2;
    }
}

void svi_anomaly_archive(struct svi_archive *a, struct svi_anomaly *s) {
    int32_t count[SVI_ANOMALY_BINS];
    int rows = 0;
    for (int i = 0; i < SVI_ANOMALY_BINS; i++)
        count[i] = s->count[i];
    svi_archive_ints(a, "strengths", count, SVI_ANOMALY_BINS, 0, SVI_ANOMALY_MAX_ROWS - 1);
    for (int i = 0; i < SVI_ANOMALY_BINS && svi_archive_ok(a); i++)
        rows += count[i];
    if (!svi_archive_check(a, rows < SVI_ANOMALY_MAX_ROWS, "there are more strengths than the past holds"))
        return;
    for (int i = 0; i < SVI_ANOMALY_BINS; i++)
        s->count[i] = (uint16_t)count[i];
    s->rows = rows;
}
