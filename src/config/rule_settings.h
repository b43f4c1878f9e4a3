/* rule_settings.h: the settings of alerts, read: alert.rules, alert.absent, limits and alert.budget. */
#ifndef SVI_RULE_SETTINGS_H
#define SVI_RULE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "svmstream/error.h"

/* The rules that alert.rules accepts: constant, name, what it is about. What each does is in
 * alerts/rule_NAME.c. */
#define SVI_RULES_CHOSEN(X)                                                                                  \
    X(BEYOND, beyond, "far outside all it ever showed")                                                      \
    X(STUCK, stuck, "unchanged for longer than ever")                                                        \
    X(ABSENT, absent, "no value")                                                                            \
    X(RATE, rate, "changes faster than ever")

/* All of them, in the order in which their alerts of one sample go out: the first comes with the setting
 * limits, the last, of the stream as a whole, with absent. A state holds rules by their place in it. */
#define SVI_RULES_ALL(X)                                                                                     \
    X(LIMITS, limits, "outside its limits")                                                                  \
    SVI_RULES_CHOSEN(X)                                                                                      \
    X(SILENT, silent, "no row at all")

#define X(constant, name, about) SVI_RULE_##constant,
enum svi_rule { SVI_RULES_ALL(X) SVI_RULES };
#undef X

const char *svi_rule_name(enum svi_rule rule); /* "limits" */

/* A decimal number of at most 1e100 in size, which is all of `length` bytes? */
bool svi_setting_number(const char *text, size_t length, double *value);

struct svi_rule_settings {
    bool on[SVI_RULES];
    double absent; /* seconds; 0 = auto */
};

/* From the texts of alert.rules, alert.absent and limits. SVS_SETTING: what is not a rule, or not a time. */
svs_code svi_rule_settings_read(const char *rules, const char *absent, const char *limits,
                                struct svi_rule_settings *out, svs_error *err);

/* One entry of `limits`, from *at on, which is moved behind it: COLUMN:LOW..HIGH; the last ':' ends the
 * column, and a side that is left out is infinite. False: there is none left. Only of a text that
 * svi_rule_settings_check has seen. */
struct svi_limit {
    const char *column; /* in the text */
    size_t length;
    double low, high;
};
bool svi_limit_next(const char **at, struct svi_limit *limit);

/* Limits. Where the setting features names all columns, they may speak of these alone; else (NULL or "") of
 * any, for columns may come at any time. SVS_SETTING: which entry, what is wrong, what to do. */
svs_code svi_limits_check(const char *limits, const char *features, svs_error *err);

/* alert.budget, how many alerts of novelty a stream may have while nothing is wrong: "1/day", "2/week",
 * "0.5/hour" as alerts a day; "none" is 0. SVS_SETTING: the text is none of these. */
svs_code svi_alert_budget_read(const char *text, double *a_day, svs_error *err);

#endif
