#include "alerts/budget_pool.h"

#include <math.h>

#define POOL_RANKS    16 /* from which findings are extrapolated */
#define POOL_OVER     0.01
#define POOL_TOGETHER 0.05 /* of the time of one alert */
#define POOL_MOST     2.0  /* extrapolated at most, times the largest seen */

void svi_budget_pool_pass(struct svi_budget_pool *p, double days, double desks) {
    p->days += days / fmax(1, desks);
}

static void pool_keep(struct svi_budget_pool *p, double found, double day) {
    const bool full = p->count == SVI_BUDGET_POOL;
    if (full && p->found[SVI_BUDGET_POOL - 1] >= found)
        return;
    int at = full ? SVI_BUDGET_POOL - 1 : p->count++;
    for (; at > 0 && p->found[at - 1] < found; at--) {
        p->found[at] = p->found[at - 1];
        p->at[at] = p->at[at - 1];
    }
    p->found[at] = found;
    p->at[at] = day;
}

/* Those that count as one have come. */
static void pool_settle(struct svi_budget_pool *p, double a_day) {
    if (!(p->now > 0) || p->days - p->since < POOL_TOGETHER / a_day)
        return;
    pool_keep(p, p->now, p->since);
    p->now = 0;
}

void svi_budget_pool_find(struct svi_budget_pool *p, double found, double a_day) {
    pool_settle(p, a_day);
    if (!(p->now > 0))
        p->since = p->days;
    p->now = fmax(p->now, found);
}

static void pool_drop(struct svi_budget_pool *p, double before) {
    int kept = 0;
    for (int i = 0; i < p->count; i++)
        if (p->at[i] >= before) {
            p->found[kept] = p->found[i];
            p->at[kept++] = p->at[i];
        }
    p->count = kept;
}

static double pool_extrapolate(const struct svi_budget_pool *p, double m) {
    const int k = p->count < POOL_RANKS ? p->count : POOL_RANKS, h = k / 4;
    if (h < 1)
        return 0;
    const double high = p->found[h - 1], low = p->found[k - 1];
    return fmin(high + (high - low) / log((double)k / h) * log(h / m), POOL_MOST * p->found[0]);
}

double svi_budget_pool_factor(struct svi_budget_pool *p, double a_day) {
    const double memory = fmin(SVI_BUDGET_MEMORY, SVI_BUDGET_POOL / 2 / a_day);
    const double m = SVI_BUDGET_SPENT * a_day * fmin(p->days, memory);
    pool_settle(p, a_day);
    pool_drop(p, p->days - memory);
    if (!(m >= 1))
        return 0;
    const int rank = (int)fmin(m, SVI_BUDGET_POOL);
    const double order = rank <= p->count ? p->found[rank - 1] + POOL_OVER : 1;
    return fmax(1, m < SVI_BUDGET_FEW ? fmax(order, pool_extrapolate(p, m)) : order);
}

void svi_budget_pool_archive(struct svi_archive *a, struct svi_budget_pool *p) {
    svi_archive_finite(a, "pool days", &p->days, 1);
    svi_archive_int(a, "pool", &p->count, 0, SVI_BUDGET_POOL);
    svi_archive_finite(a, "found", p->found, p->count);
    svi_archive_finite(a, "found at", p->at, p->count);
    svi_archive_finite(a, "found now", &p->now, 1);
    svi_archive_finite(a, "found since", &p->since, 1);
}
