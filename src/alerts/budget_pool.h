/* budget_pool.h: what the policies that share a budget have found so far, all together, and by which factor
 * their levels have to be higher for that.
 *
 * Each policy alone would find `a_day` alerts a day, several together a multiple of their budget.
 * In T days of past SVI_BUDGET_SPENT x a_day x T evidence of all of them may have been alerts: m. The factor
 * lies above the evidence of rank m, rounded down, by surprise over the level that the policy would have
 * alone; while m < SVI_BUDGET_FEW it is extrapolated besides, as levels are (budget.h). So it is set by what
 * the keys of this stream have shown, and not by a worst case, and what one key does not need is for the
 * others. Before m is 1 it is not known.
 *
 * What comes within a twentieth of the time of one alert (72 minutes at 1 a day) counts as one, the largest:
 * else one disturbance of all keys at once would raise the factor for weeks. Of evidence that are independent
 * those that matter are far more rare than that. A function of the calls alone. */
#ifndef SVI_BUDGET_POOL_H
#define SVI_BUDGET_POOL_H

#include "alerts/budget.h"

#define SVI_BUDGET_POOL 128 /* evidence kept, the largest */

struct svi_budget_pool {
    double days; /* so far, a policy */
    struct svi_budget_peak peaks[SVI_BUDGET_POOL];
    int count;
    double now;   /* the largest of those that count as one, not in the list yet; 0: none */
    double since; /* the day of the first of them */
};

/* One of `policies` has gone through that many days more; it has found this. */
void svi_budget_pool_pass(struct svi_budget_pool *p, double days, double policies);
void svi_budget_pool_find(struct svi_budget_pool *p, double found, double a_day);

/* At least 1; 0: it is not known yet. What is too old goes. */
double svi_budget_pool_factor(struct svi_budget_pool *p, double a_day);

void svi_budget_pool_archive(struct svi_archive *a, struct svi_budget_pool *p);

#endif
