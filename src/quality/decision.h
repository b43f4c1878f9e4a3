/* decision.h: the class to decide for, when wrong decisions have prices (setting decision.cost).
 *
 * Given probabilities p_k and the price c(k, j) of deciding j where k is the truth, the decision is the j
 * with the least expected price sum_k p_k c(k, j) (Bayes' rule; Elkan 2001). One object, one thread at a
 * time.
 *
 * Prices are a text: `none`, or items separated by commas,
 *
 *     CLASS=PRICE              any other decision where CLASS is the truth
 *     TRUTH>DECISION=PRICE     deciding DECISION where TRUTH is the truth
 *
 * The second form overrides the first. A pair that is not named costs 1. Classes are parsed like labels in a
 * text file (data/cell.h); names with a comma, or with '>' or '=' where these separate, are not possible. */
#ifndef SVI_DECISION_H
#define SVI_DECISION_H

#include "svmstream/value.h"

#define SVI_PRICES_MAX  128
#define SVI_PRICES_TEXT 1024 /* bytes of the list that are read; the rest is ignored */

struct svi_price {
    svs_value truth, decision; /* decision SVS_NONE: any class but the truth */
    double price;              /* 0 to 1e9 */
};

/* Must not be copied or moved: the values of `price` point into `text`. */
struct svi_decision_cost {
    int count; /* 0: no prices, the score decides */
    struct svi_price price[SVI_PRICES_MAX];
    char text[SVI_PRICES_TEXT + 64]; /* zero padding: number parsers read a little beyond the end */
};

/* Parses the setting's text. SVS_SETTING names the item and the expected form. */
svs_code svi_decision_cost_parse(struct svi_decision_cost *c, const char *text, svs_error *err);

struct svi_decision {
    struct svi_decision_cost cost;
    int max_classes, known;       /* known: classes added by svi_decision_know so far */
    int truth[SVI_PRICES_MAX];    /* class index of a price's truth; -1: not seen yet */
    int decision[SVI_PRICES_MAX]; /* of its decision; -1: not seen yet, or any class but the truth */
    double *missed, *expected;    /* by class, max_classes each: price of missing it; scratch */
};

/* Starts without prices. SVS_NO_MEMORY. */
svs_code svi_decision_new(struct svi_decision *d, int max_classes, svs_error *err);
void svi_decision_free(struct svi_decision *d);

/* Sets the value of decision.cost, which was validated before; invalid text counts as `none`. Known classes
 * are forgotten. */
void svi_decision_set(struct svi_decision *d, const char *cost);

static inline bool svi_decision_set_up(const struct svi_decision *d) {
    return d->cost.count > 0;
}

/* Adds the next class index, whose label is `class`: called once per class, in order of index.
 * svi_decision_forget restarts at index 0. */
void svi_decision_know(struct svi_decision *d, svs_value class);
void svi_decision_forget(struct svi_decision *d);

/* The class index with the least expected price for proba[class_count]; all of these classes must be known.
 * by_score: the decision by scores alone, preferred among equal ones; otherwise the lowest index wins. */
int svi_decision_of(const struct svi_decision *d, const double *proba, int class_count, int by_score);

double svi_decision_memory(int max_classes); /* bytes besides the struct */

#endif
