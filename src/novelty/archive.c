/* The small parts: fits, alerts, histories. */
#include "novelty/archive.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

#define MOST (INT64_MAX / 4) /* of what is counted: sums of two stay in range */

void svi_tail_archive(struct svi_archive *a, struct svi_tail *t) {
    svi_archive_int(a, "tail count", &t->count, 0, INT32_MAX);
    svi_archive_double(a, "tail threshold", &t->threshold);
    svi_archive_double(a, "tail share", &t->share);
    svi_archive_doubles(a, "tail slope", t->slope, SVI_TAIL_PARTS);
    svi_archive_doubles(a, "tail total", t->total, SVI_TAIL_PARTS);
    svi_archive_doubles(a, "tail weight", t->weight, SVI_TAIL_PARTS);
    for (int i = 0; i < SVI_TAIL_PARTS; i++)
        svi_archive_check(a, t->weight[i] >= 0 && t->share >= 0, "a probability is negative");
}

void svi_discovery_archive(struct svi_archive *a, struct svi_discovery *d) {
    svi_archive_finite(a, "coins left", d->left, SVI_DISCOVERY_SPANS);
    svi_archive_int64(a, "idle tests", &d->idle, 0, MOST);
    svi_archive_int64(a, "tests", &d->tested, 0, MOST);
    svi_archive_int64(a, "discoveries", &d->found, 0, MOST);
}

void svi_alert_archive(struct svi_archive *a, struct svi_alert *alert) {
    svi_archive_bool(a, "alert open", &alert->open);
    svi_archive_finite(a, "alert since", &alert->since, 1);
    svi_archive_finite(a, "alert closed", &alert->closed, 1);
    svi_archive_int64(a, "alert lasted", &alert->lasted, 0, MOST);
    svi_archive_finite(a, "alert grade", &alert->grade, 1);
    svi_archive_finite(a, "alert worst", &alert->worst, 1);
    svi_archive_int64(a, "alert seen", &alert->seen, 0, MOST);
    svi_archive_int64(a, "alerts opened", &alert->opened, 0, MOST);
    svi_archive_int64(a, "alerts suppressed", &alert->suppressed, 0, MOST);
    if (alert->o.fdr > 0)
        svi_discovery_archive(a, &alert->discovery);
}

/* The place in the ring of the sample that came `back` before the newest. */
static double *held_row(const struct svi_lags *l, int back) {
    return l->ring + (size_t)((l->newest + back) % l->lags) * (size_t)l->d;
}

/* Where the ring begins is of no matter to what comes out. */
void svi_lags_archive(struct svi_archive *a, struct svi_lags *l) {
    const size_t bytes = (size_t)l->d * sizeof(double);
    svi_archive_int(a, "lags held", &l->held, 0, l->lags);
    if (!svi_archive_ok(a) || l->held == 0)
        return;
    double *rows = svi_alloc((size_t)l->held * bytes);
    if (!rows) {
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the last samples");
        return;
    }
    for (int i = 0; i < l->held && !svi_archive_loading(a); i++)
        memcpy(rows + (size_t)i * (size_t)l->d, held_row(l, l->held - 1 - i), bytes);
    svi_archive_finite(a, "lags", rows, (int64_t)l->held * l->d);
    if (svi_archive_loading(a))
        l->newest = 0;
    for (int i = 0; i < l->held && svi_archive_loading(a); i++)
        memcpy(held_row(l, l->held - 1 - i), rows + (size_t)i * (size_t)l->d, bytes);
    svi_free(rows);
}
