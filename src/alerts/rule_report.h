/* rule_report.h: which columns of a stream have which rules, and an alert of a rule as the event that goes
 * out, with the line that a person reads:
 *
 *     pump1 temp 93 above its limit 90, since 10:42 UTC
 *     pump1 temp 140 above all it ever showed (12 to 61), since 10:42 UTC
 *     pump1 vibration stuck at 0.412 for 25 min (25 rows, never more than 2 before), since 10:42 UTC
 *     pump1 flow absent (a value usually every 60 s), since 10:42 UTC
 *     pump1 all 5 sensors absent, since 10:42 UTC
 *     pump1 temp moved by 30 in one row (never by more than 2.1 before), since 10:42 UTC
 *     pump1 the stream is silent (a row usually every 60 s), since 10:42 UTC
 *     pump1 m7 absent (a row usually every 60 s), since 10:42 UTC
 *     pump1 temp within limits again after 12 min, since 10:42 UTC */
#ifndef SVI_RULE_REPORT_H
#define SVI_RULE_REPORT_H

#include "alerts/alert_text.h"
#include "alerts/rules.h"
#include "features/schema.h"
#include "wire/event.h"

/* The rules become those of these d columns, for which there is room: numbers are judged, but for those of
 * `context`; words and the calendar are not; a sparse row says of none that it is missing. Limits are found
 * by the name of a column, or its number where it has none. */
void svi_rules_follow(struct svi_rules *r, const struct svi_settings *s, const struct svi_schema *schema,
                      int d);

struct svi_rule_report {
    struct svi_alert_event event;
    struct svi_contribution top[SVI_RULES_TOP];
    char text[SVI_ALERT_TEXT];
};

/* Of whom, because of which sample, and when. */
struct svi_rule_about {
    const char *name; /* of the stream, for the line */
    bool key;         /* it is of one of its keys: that is absent where a stream is silent */
    svs_value id;
    double ts;
    const char *ended; /* why alerts end that would not have; NULL: they do by themselves */
};

/* The next change of an alert. *count: the number of the last alert of the stream, which goes up when one
 * opens. False: there is none. */
bool svi_rule_report(struct svi_rules *r, const struct svi_schema *schema, const struct svi_rule_about *about,
                     int64_t *count, struct svi_rule_report *out);

#endif
