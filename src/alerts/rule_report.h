/* rule_report.h: the rules of each column of a stream, and the event of a rule's alert, with a line for a
 * person:
 *
 *     pump1 temp 93 above its limit 90, since 10:42 UTC
 *     pump1 temp 140 above its highest so far (61), since 10:42 UTC
 *     pump1 vibration stuck at 0.412 for 25 min (25 rows, never more than 2 before), since 10:42 UTC
 *     vibration stuck at 0.412 for 25 rows (never more than 2 before), since row 1310
 *     pump1 flow: no values since 10:42 UTC (usually one every 60 s)
 *     pump1 flow, temp, load and 2 more: no values since 10:42 UTC
 *     pump1 all 5 sensors: no values since 10:42 UTC
 *     pump1 temp moved by 30 in one row (never more than 2.1 before), since 10:42 UTC
 *     pump1: no rows since 10:42 UTC (usually one every 60 s)
 *     plant m7: no rows since 10:42 UTC (usually one every 60 s)
 *     pump1 temp within limits again after 12 min (began at 10:42 UTC) */
#ifndef SVI_RULE_REPORT_H
#define SVI_RULE_REPORT_H

#include "alerts/alert_text.h"
#include "alerts/rules.h"
#include "features/schema.h"
#include "wire/event.h"

/* Sets the rules of the first d columns, for which there is capacity. Numeric columns are judged unless they
 * are in `context`; columns of words and of the calendar have no rules; in a sparse row no value counts as
 * missing. Limits are matched by the name of a column, or by its number where it has none, and by the key
 * that the stream is one of (NULL: none). */
void svi_rules_follow(struct svi_rules *r, const struct svi_settings *s, const struct svi_schema *schema,
                      const char *key, int d);

/* An event and the memory it points to. Do not copy. */
struct svi_rule_report {
    struct svi_alert_event event;
    struct svi_contribution top[SVI_RULES_TOP];
    char text[SVI_ALERT_TEXT];
};

/* The stream, the sample and the time of a report. */
struct svi_rule_about {
    const char *name;  /* of the stream, for the line */
    bool key;          /* it is one key of a stream: its event has the rule `absent` instead of `silent` */
    svs_value id;      /* of the sample */
    double ts;         /* of the sample, seconds */
    int64_t row;       /* its number in the stream, for a line that counts rows; 0: rows have times */
    const char *ended; /* reason why alerts are ended from outside; NULL: they close by themselves */
};

/* Fills `out` with the next change of an alert. *count: number of the last alert of the stream, incremented
 * when one opens. False: nothing to report. */
bool svi_rule_report(struct svi_rules *r, const struct svi_schema *schema, const struct svi_rule_about *about,
                     int64_t *count, struct svi_rule_report *out);

#endif
