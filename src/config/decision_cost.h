/* decision_cost.h: the setting decision.cost as a list of prices: `none`, or items separated by commas,
 *
 *     CLASS=PRICE              of deciding otherwise where CLASS is the truth
 *     TRUTH>DECISION=PRICE     of deciding DECISION where TRUTH is the truth
 *
 * where the second form goes before the first, and what is not named costs 1. Classes are read as labels of a
 * text are (data/cell.h); a name with a comma, or with '>' or '=' where these would be read, cannot be given.
 */
#ifndef SVI_DECISION_COST_H
#define SVI_DECISION_COST_H

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

#endif
