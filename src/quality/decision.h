/* decision.h: the class to decide for, when wrong decisions have prices (setting decision.cost).
 *
 * With probabilities p_k and the price c(k, j) of deciding j where k is the truth, it is the j of least
 * expected price sum_k p_k c(k, j) (Bayes' rule; Elkan 2001). One object, one thread at a time.
 *
 * Prices are a text: `none`, or items separated by commas,
 *
 *     CLASS=PRICE              of deciding otherwise where CLASS is the truth
 *     TRUTH>DECISION=PRICE     of deciding DECISION where TRUTH is the truth
 *
 * where the second form goes before the first, and what is not named costs 1. Classes are read as labels of a
 * text are (data/cell.h); a name with a comma, or with '>' or '=' where these would be read, cannot be given.
 */
#ifndef SVI_DECISION_H
#define SVI_DECISION_H

#include "svmstream/value.h"

#define SVI_PRICES_MAX  128
#define SVI_PRICES_TEXT 1024 /* bytes of the list, at most; the rest is not looked at */

struct svi_price {
    svs_value truth, decision; /* decision SVS_NONE: any other than the truth */
    double price;              /* 0 to 1e9 */
};

/* Not to be moved: values are views of its text. */
struct svi_decision_cost {
    int count; /* 0: none, decide by the score */
    struct svi_price price[SVI_PRICES_MAX];
    char text[SVI_PRICES_TEXT + 64]; /* readers of numbers look a little beyond the end */
};

/* SVS_SETTING with the item and what it should be. */
svs_code svi_decision_cost_parse(struct svi_decision_cost *c, const char *text, svs_error *err);

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
