/* rule_text.h: an alert of a rule as the line that a person reads:
 *
 *     pump1 temp 93 above its limit 90, since 10:42 UTC
 *     pump1 temp 140 above all it ever showed (12 to 61), since 10:42 UTC
 *     pump1 vibration stuck at 0.412 for 25 min (25 rows, never more than 2 before), since 10:42 UTC
 *     pump1 flow absent (a value usually every 60 s), since 10:42 UTC
 *     pump1 all 5 sensors absent, since 10:42 UTC
 *     pump1 temp moved by 30 in one row (never by more than 2.1 before), since 10:42 UTC
 *     pump1 the stream is silent (a row usually every 60 s), since 10:42 UTC
 *     pump1 m7 absent (a row usually every 60 s), since 10:42 UTC
 *     pump1 temp within its limits again after 12 min, since 10:42 UTC */
#ifndef SVI_RULE_TEXT_H
#define SVI_RULE_TEXT_H

#include "alerts/alert_text.h"
#include "alerts/rules.h"

/* A sensor that is reported. */
struct svi_rule_sensor {
    const char *name; /* as in svi_alert_feature */
    int column;
    const char *unit;
    double value, low, high, rows, since, usual; /* as in svi_rules_member; seconds, NAN = not known */
};

struct svi_rule_line {
    enum svi_rule rule;
    enum svi_alert_change state;
    bool settled;
    const char *stream;
    bool key;                          /* of the stream, which is absent then */
    const struct svi_rule_sensor *top; /* `count`; of an alert that closes the first that it had */
    int count;
    int members, sensors; /* that are reported, or have been; of the stream */
    double since, time;   /* seconds */
};

/* Writes the line, valid UTF-8 and ended by a NUL; sensors that do not fit are left out whole. Returns its
 * length. */
size_t svi_rule_text(char out[SVI_ALERT_TEXT], const struct svi_rule_line *line);

#endif
