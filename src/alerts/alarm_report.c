#include "alerts/alarm_report.h"

#include <math.h>
#include <stdio.h>

#include "alerts/alert_text.h"

#define NORMAL_90 1.6448536269514722 /* deviations to the 5 % and 95 % quantiles of a normal law */

_Static_assert((int)SVI_ALARM_SHIFTS <= (int)SVI_ALERT_TOP_MAX, "an event holds the features of an alarm");

/* The shifted features twice: as contributions of the event, in `out`, and as features of the line, in
 * `features` (SVI_ALARM_SHIFTS). The normal range of the event is the 90 % range of a normal law around the
 * mean before the change. */
static void alarm_report_top(const struct svi_alarm *s, const struct svi_schema *schema,
                             struct svi_alert_report *out, struct svi_quality_feature *features) {
    for (int i = 0; i < s->count; i++) {
        const struct svi_drift_shift *t = &s->top[i];
        out->top[i] = (struct svi_contribution){.feature = svi_shape_name(&schema->shape, t->feature),
                                                .column = t->feature,
                                                .value = t->after,
                                                .low = t->before - NORMAL_90 * t->deviation,
                                                .high = t->before + NORMAL_90 * t->deviation,
                                                .adds = t->shift};
        features[i] = (struct svi_quality_feature){.name = out->top[i].feature,
                                                   .column = t->feature,
                                                   .unit = svi_schema_unit(schema, t->feature),
                                                   .before = t->before,
                                                   .after = t->after,
                                                   .deviation = t->deviation};
    }
}

/* What all events of an alarm have in common. It is a close without a sample unless the caller fills
 * in more. */
static struct svi_alert_event alarm_report_event(const struct svi_alarm *s,
                                                 const struct svi_alert_report *out) {
    return (struct svi_alert_event){.kind = "quality",
                                    .state = "close",
                                    .id = svs_none(),
                                    .measure = s->regress ? "rmse" : "error",
                                    .before = s->before,
                                    .after = s->after,
                                    .since = s->since,
                                    .top = out->top,
                                    .text = out->text};
}

void svi_alarm_report(const struct svi_alarm *s, svs_value id, const struct svi_schema *schema,
                      const char *stream, double ts, int64_t row, enum svi_alarm_change change,
                      struct svi_alert_report *out) {
    static const enum svi_alert_change states[] = {[SVI_ALARM_OPENED] = SVI_ALERT_OPEN,
                                                   [SVI_ALARM_WORSENED] = SVI_ALERT_UPDATE,
                                                   [SVI_ALARM_CLOSED] = SVI_ALERT_CLOSE};
    struct svi_quality_feature features[SVI_ALARM_SHIFTS];
    alarm_report_top(s, schema, out, features);
    /* The event points into `out`, so a report must stay where it was filled. */
    out->event = alarm_report_event(s, out);
    out->event.state = svi_alert_change_name(states[change]);
    out->event.id = id;
    out->event.count = s->count;
    const struct svi_quality_line line = {.state = states[change],
                                          .regress = s->regress,
                                          .adapted = s->adapted,
                                          .stream = stream,
                                          .zone = schema ? schema->zone : NULL,
                                          .before = s->before,
                                          .after = s->after,
                                          .worst = s->worst,
                                          .rows = s->rows.n,
                                          .wrong = s->rows.wrong,
                                          .rows_before = s->rows_before.n,
                                          .wrong_before = s->rows_before.wrong,
                                          .by_rows = row > 0,
                                          .since = row > 0 ? (double)(s->number + 1) : s->since,
                                          .time = row > 0 ? (double)row : ts,
                                          .number = s->number,
                                          .top = features,
                                          .count = s->count};
    svi_alert_quality_text(out->text, &line);
}

bool svi_alarm_report_end(struct svi_alarm *s, const char *stream, const char *why,
                          struct svi_alert_report *out) {
    if (!svi_alarm_end(s))
        return false;
    out->event = alarm_report_event(s, out);
    svi_alert_ended(out->text, stream, "quality alert", why);
    return true;
}
