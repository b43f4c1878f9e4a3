/* alert_budget.h: the setting alert.budget: how many alerts of novelty a stream may have while nothing is
 * wrong. */
#ifndef SVI_ALERT_BUDGET_H
#define SVI_ALERT_BUDGET_H

#include "svmstream/error.h"

/* "1/day", "2/week", "0.5/hour" as alerts a day; "none" is 0. SVS_SETTING: the text is none of these. */
svs_code svi_alert_budget_read(const char *text, double *a_day, svs_error *err);

#endif
