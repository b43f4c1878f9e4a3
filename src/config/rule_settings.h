/* rule_settings.h: parses the settings of alerts: alert.rules, alert.absent, limits and alert.budget. */
#ifndef SVI_RULE_SETTINGS_H
#define SVI_RULE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svmstream/error.h"

/* The rules that alert.rules accepts: X(CONSTANT, name, "subject of its alerts"). Each is implemented in
 * alerts/rule_NAME.c. */
#define SVI_RULES_CHOSEN(X)                                                                                  \
    X(BEYOND, beyond, "far outside all it ever showed")                                                      \
    X(STUCK, stuck, "unchanged for longer than ever")                                                        \
    X(ABSENT, absent, "no value")                                                                            \
    X(RATE, rate, "changes faster than ever")

/* All rules, in the order in which their alerts of one sample are published. The setting `limits` switches on
 * the first one; the last one, about the whole stream, goes with `absent`. A kept state identifies rules by
 * their position, so the order is part of its layout. */
#define SVI_RULES_ALL(X)                                                                                     \
    X(LIMITS, limits, "outside its limits")                                                                  \
    SVI_RULES_CHOSEN(X)                                                                                      \
    X(SILENT, silent, "no row at all")

#define X(constant, name, about) SVI_RULE_##constant,
enum svi_rule { SVI_RULES_ALL(X) SVI_RULES };
#undef X

const char *svi_rule_name(enum svi_rule rule); /* "limits" */

/* Parses a decimal number of at most 1e100 in magnitude that takes all of `length` bytes. False: it does not.
 */
bool svi_setting_number(const char *text, size_t length, double *value);

/* A delay of a rule: at least that many seconds and rows. */
struct svi_rule_delay {
    bool given;
    double seconds;
    int64_t rows; /* the first row included */
};

struct svi_rule_settings {
    bool on[SVI_RULES];
    struct svi_rule_delay on_delay[SVI_RULES], off_delay[SVI_RULES];
    double absent; /* seconds; 0: auto */
};

/* Parses the texts of alert.rules and alert.absent; whether `limits` is empty decides about its rule.
 * SVS_SETTING: the text that is not a rule, or not a time. */
svs_code svi_rule_settings_read(const char *rules, const char *absent, const char *limits,
                                struct svi_rule_settings *out, svs_error *err);

/* Parses the text of alert.ondelay (off false) or alert.offdelay into `out`. SVS_SETTING: which entry, what
 * is wrong, what to do. */
svs_code svi_rule_delays_read(const char *text, bool off, struct svi_rule_delay out[SVI_RULES],
                              svs_error *err);

/* Reads the entry of `limits` at *at, [KEYS.]COLUMN:LOW..HIGH, and moves *at past it. The last ':' ends the
 * column;
 * an omitted side is infinite. False: no entry is left. The text must have passed svi_limits_check. */
struct svi_limit {
    const char *column; /* in the text, not NUL-terminated; with the pattern of keys before it */
    size_t length;      /* of column, bytes */
    double low, high;
};
bool svi_limit_next(const char **at, struct svi_limit *limit);

/* Where the column begins in limit->column: at 0, or in a stream with keys behind a '.', before which is a
 * pattern of keys. Both may have dots, so it is the longest name that `has` confirms; limit->length: none. */
typedef bool svi_limit_has(const void *user, const char *name, size_t length);
size_t svi_limit_column(const struct svi_limit *limit, bool keyed, svi_limit_has *has, const void *user);

/* Checks `limits`; keyed: entries may name keys. If the setting `features` names the columns, limits may
 * refer to these only; else (NULL or
 * "") to any column, because columns may be added at any time. SVS_SETTING: which entry, what is wrong, what
 * to do. */
svs_code svi_limits_check(const char *limits, const char *features, bool keyed, svs_error *err);

/* Parses alert.budget, the number of novelty alerts that a stream may raise while nothing is wrong: "1/day",
 * "2/week" or "0.5/hour" as alerts a day; "none" as 0. SVS_SETTING: the text is not of this form. */
svs_code svi_settings_alert_budget_read(const char *text, double *a_day, svs_error *err);

#endif
