#include "alerts/rule_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

#define NAME   SVI_ALERT_NAME
#define NUMBER SVI_ALERT_NUMBER
#define UNIT   SVI_ALERT_UNIT
#define PART   (NAME + UNIT + 4 * NUMBER + 60)
#define SHOWN  3 /* sensors in a line */

static void rule_value_text(char out[PART], enum svi_rule rule, const struct svi_rule_sensor *s,
                            const char *name) {
    char v[NUMBER + UNIT], unit[UNIT], low[NUMBER], high[NUMBER];
    const bool above = s->value > s->high;
    const double bound = above ? s->high : s->low;
    svi_alert_number(v, s->value, s->value - bound, 3);
    strcat(v, svi_alert_unit(unit, s->unit));
    if (rule == SVI_RULE_LIMITS)
        snprintf(out, PART, "%s %s %s its limit %s", name, v, above ? "above" : "below",
                 svi_alert_number(low, bound, 0, 3));
    else if (rule == SVI_RULE_RATE)
        snprintf(out, PART, "%s moved by %s in one row (never by more than %s before)", name, v,
                 svi_alert_number(high, s->high, 0, 3));
    else
        snprintf(out, PART, "%s %s %s all it ever showed (%s to %s)", name, v, above ? "above" : "below",
                 svi_alert_number(low, s->low, s->high - s->low, 3),
                 svi_alert_number(high, s->high, s->high - s->low, 3));
}

static void rule_sensor_text(char out[PART], const struct svi_rule_line *l, const struct svi_rule_sensor *s) {
    char name[NAME], v[NUMBER], lasts[NUMBER], every[NUMBER + 32] = "", unit[UNIT];
    svi_alert_name(name, s->name, s->column);
    if (isfinite(s->usual))
        snprintf(every, sizeof every, " (a %s usually every %s)",
                 l->rule == SVI_RULE_SILENT ? "row" : "value", svi_alert_duration(v, s->usual));
    if (l->rule == SVI_RULE_STUCK)
        snprintf(out, PART, "%s stuck at %s%s for %s (%.0f rows, never more than %.0f before)", name,
                 svi_alert_number(v, s->value, 0, 3), svi_alert_unit(unit, s->unit),
                 svi_alert_duration(lasts, l->time - s->since), s->rows, s->high);
    else if (l->rule == SVI_RULE_ABSENT)
        snprintf(out, PART, "%s absent%s", name, every);
    else if (l->rule == SVI_RULE_SILENT)
        snprintf(out, PART, "%s%s", l->key ? "absent" : "the stream is silent", every);
    else
        rule_value_text(out, l->rule, s, name);
}

static void rule_end_text(char out[PART], const struct svi_rule_line *l) {
    static const char *const again[SVI_RULES] = {
        [SVI_RULE_LIMITS] = "within limits again",  [SVI_RULE_BEYOND] = "within what was seen before again",
        [SVI_RULE_STUCK] = "moving again",          [SVI_RULE_ABSENT] = "back",
        [SVI_RULE_RATE] = "moving as before again", [SVI_RULE_SILENT] = "back"};
    char name[NAME] = "the stream", lasted[NUMBER], more[NUMBER] = "";
    if (l->rule != SVI_RULE_SILENT && l->count > 0)
        svi_alert_name(name, l->top[0].name, l->top[0].column);
    if (l->rule == SVI_RULE_SILENT && l->key) {
        snprintf(out, PART, "back after %s", svi_alert_duration(lasted, l->time - l->since));
        return;
    }
    if (l->members > 1)
        snprintf(more, sizeof more, " and %d more", l->members - 1);
    snprintf(out, PART, "%s%s %s after %s", name, more, l->settled ? "taken as usual" : again[l->rule],
             svi_alert_duration(lasted, l->time - l->since));
}

size_t svi_rule_text(char out[SVI_ALERT_TEXT], const struct svi_rule_line *l) {
    char part[PART], more[NUMBER], end[2 * NUMBER], moment[NUMBER];
    const bool all = l->members > 1 && l->members >= l->sensors &&
                     (l->rule == SVI_RULE_ABSENT || l->rule == SVI_RULE_STUCK);
    snprintf(end, sizeof end, ", since %s", svi_alert_moment(moment, l->since, l->time));
    size_t at = svi_alert_begin(out, l->stream);
    at = svi_alert_append(out, at, " ", 0);
    if (l->state == SVI_ALERT_CLOSE) {
        rule_end_text(part, l);
        at = svi_alert_append(out, at, part, 0);
    } else if (all) {
        snprintf(part, PART, "all %d sensors %s", l->members, svi_rule_name(l->rule));
        at = svi_alert_append(out, at, part, 0);
    } else {
        int shown = 0;
        for (; shown < l->count && shown < SHOWN; shown++) {
            rule_sensor_text(part, l, &l->top[shown]);
            at = svi_alert_append(out, at, shown > 0 ? ", " : "", 0);
            at = svi_alert_append(out, at, part, 2 * NUMBER + sizeof end);
        }
        snprintf(more, sizeof more, " and %d more", l->members - shown);
        at = svi_alert_append(out, at, l->members > shown ? more : "", 0);
    }
    return svi_alert_append(out, at, end, 0);
}
