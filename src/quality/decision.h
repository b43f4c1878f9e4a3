/* decision.h: the class to decide for, when wrong decisions have prices (setting decision.cost).
 *
 * With probabilities p_k and the price c(k, j) of deciding j where k is the truth, it is the j of least
 * expected price sum_k p_k c(k, j) (Bayes' rule; Elkan 2001). One object, one thread at a time. */
#ifndef SVI_DECISION_H
#define SVI_DECISION_H

#include "config/decision_cost.h"

struct svi_decision {
    struct svi_decision_cost cost;
    int max_classes, known;       /* classes whose names were looked up */
    int truth[SVI_PRICES_MAX];    /* class index of a price's truth; -1: it has not come */
    int decision[SVI_PRICES_MAX]; /* the same; -1 also where any other one is meant */
    double *missed, *expected;    /* by class: price of missing it; scratch */
};

/* Decides nothing until it has prices. SVS_NO_MEMORY. */
svs_code svi_decision_new(struct svi_decision *d, int max_classes, svs_error *err);
void svi_decision_free(struct svi_decision *d);

/* The value of decision.cost, which has been checked: what cannot be parsed is none. */
void svi_decision_set(struct svi_decision *d, const char *cost);

static inline bool svi_decision_set_up(const struct svi_decision *d) {
    return d->cost.count > 0;
}

/* Class `index` is `class`: called once for each, in order; svi_decision_forget begins again. */
void svi_decision_know(struct svi_decision *d, svs_value class);
void svi_decision_forget(struct svi_decision *d);

/* The index of the class for proba[class_count], all of them known. Of equal ones `usual` if it is among
 * them, else the first. */
int svi_decision_of(const struct svi_decision *d, const double *proba, int class_count, int usual);

double svi_decision_memory(int max_classes); /* bytes besides the struct */

#endif
