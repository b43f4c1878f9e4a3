/* rise_budget.h: how large a rise of the error must be to be reported, so that quality alerts keep to their
 * part of alert.budget. Real errors come in bursts, which pass any test of independent ones.
 *
 * As for novelty (alerts/budget.h), the level follows from the stream's own past. In T days, m =
 * SVI_RISE_PART x a_day x T rises may have been reported. A rise must be larger than the one of
 * rank m, rounded down. m is at least SVI_RISE_GRANT, so that a young stream reports its first
 * rises. With N rises of one law so far it has reported about m (1 + ln(N / m)). A rise is measured
 * by its likelihood ratio over its threshold. Days are those of the samples, in which a gap counts
 * as 20 mean intervals at most. */
#ifndef SVI_RISE_BUDGET_H
#define SVI_RISE_BUDGET_H

#include <stdbool.h>

#include "base/archive.h"

#define SVI_RISE_GRANT  2.0  /* smallest m */
#define SVI_RISE_PART   0.2  /* of the budget; novelty may have used three quarters */
#define SVI_RISE_KEPT   32   /* rises kept, the largest */
#define SVI_RISE_MEMORY 28.0 /* days of the past that count */

struct svi_rise {
    double size, at; /* at: day */
};

struct svi_rise_budget {
    double a_day; /* 0: every rise is reported */
    int64_t rows;
    double days, last;      /* last: time of the last sample, seconds */
    struct svi_rise *rises; /* SVI_RISE_KEPT, descending by size; the owner's */
    int count;
};

/* A sample at that time; row_seconds: what it counts as, 0 = by its time. */
void svi_rise_budget_row(struct svi_rise_budget *b, double time, double row_seconds);

/* May a rise of that size be reported? It is compared with the past, which _keep adds it to. */
bool svi_rise_budget_allows(const struct svi_rise_budget *b, double size);
void svi_rise_budget_keep(struct svi_rise_budget *b, double size);

void svi_rise_budget_archive(struct svi_archive *a, struct svi_rise_budget *b);

#endif
