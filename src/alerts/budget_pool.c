#include "alerts/budget_pool.h"

#include <math.h>

#define POOL_OVER     0.01
#define POOL_TOGETHER 0.05 /* of the time of one alert */
#define POOL_MOST     2.0  /* extrapolated at most, times the largest seen */

void svi_budget_pool_pass(struct svi_budget_pool *p, double days, double policies) {
    p->days += days / fmax(1, policies);
}

/* Those that count as one have come. */
static void pool_settle(struct svi_budget_pool *p, double a_day) {
    if (!(p->now > 0) || p->days - p->since < POOL_TOGETHER / a_day)
        return;
    const struct svi_budget_peak found = {.surprise = p->now, .at = p->since};
    svi_budget_peak_keep(p->peaks, &p->count, SVI_BUDGET_POOL, found);
    p->now = 0;
}

void svi_budget_pool_find(struct svi_budget_pool *p, double found, double a_day) {
    pool_settle(p, a_day);
    if (!(p->now > 0))
        p->since = p->days;
    p->now = fmax(p->now, found);
}

double svi_budget_pool_factor(struct svi_budget_pool *p, double a_day) {
    const double memory = fmin(SVI_BUDGET_MEMORY, SVI_BUDGET_POOL / 2 / a_day);
    const double m = SVI_BUDGET_SPENT * a_day * fmin(p->days, memory);
    pool_settle(p, a_day);
    p->count = svi_budget_peak_drop(p->peaks, p->count, p->days - memory, 0);
    if (!(m >= 1))
        return 0;
    const int rank = (int)fmin(m, SVI_BUDGET_POOL);
    const double order = rank <= p->count ? p->peaks[rank - 1].surprise + POOL_OVER : 1;
    const double far = svi_budget_peak_extrapolate(p->peaks, p->count, m);
    const double most = p->count > 0 ? POOL_MOST * p->peaks[0].surprise : 0;
    return fmax(1, m < SVI_BUDGET_FEW ? fmax(order, fmin(far, most)) : order);
}

void svi_budget_pool_archive(struct svi_archive *a, struct svi_budget_pool *p) {
    double found[SVI_BUDGET_POOL], at[SVI_BUDGET_POOL];
    for (int i = 0; i < SVI_BUDGET_POOL; i++) {
        found[i] = p->peaks[i].surprise;
        at[i] = p->peaks[i].at;
    }
    svi_archive_finite(a, "pool days", &p->days, 1);
    svi_archive_int(a, "pool", &p->count, 0, SVI_BUDGET_POOL);
    svi_archive_finite(a, "found", found, p->count);
    svi_archive_finite(a, "found at", at, p->count);
    for (int i = 0; svi_archive_ok(a) && i < p->count; i++)
        p->peaks[i] = (struct svi_budget_peak){.surprise = found[i], .at = at[i]};
    svi_archive_finite(a, "found now", &p->now, 1);
    svi_archive_finite(a, "found since", &p->since, 1);
}
