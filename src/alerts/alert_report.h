/* alert_report.h: the event of a novelty alert. Only here do alerts meet the names of columns and the form of
 * events. */
#ifndef SVI_ALERT_REPORT_H
#define SVI_ALERT_REPORT_H

#include "alerts/alert_stage.h"
#include "alerts/alert_text.h"
#include "features/schema.h"
#include "wire/event.h"

#define SVI_ALERT_TOP_MAX 5 /* most features named in an alert event */

/* An alert event and the memory it points to. Do not copy: the event points into its own struct. */
struct svi_alert_report {
    struct svi_alert_event event;
    struct svi_contribution top[SVI_ALERT_TOP_MAX];
    char text[SVI_ALERT_TEXT];
};

/* What a report needs besides the stage. */
struct svi_alert_subject {
    const struct svi_schema *schema; /* names and units of the columns */
    const char *stream;              /* how the line begins */
    svs_value id;                    /* of the sample */
    double ts;                       /* of the sample, seconds */
};

/* Fills the report of that change by that sample. If novelty was switched off, an open alert ends. Uses the
 * scratch of the stage. False: nothing to report. */
bool svi_alert_report_change(struct svi_alert_stage *s, const struct svi_alert_sample *sample,
                             const struct svi_alert_subject *subject, enum svi_alert_change change,
                             struct svi_alert_report *out);

/* Ends an open alert without a sample: after a reset, or without novelty. `why` completes the line. False: no
 * alert was open. */
bool svi_alert_report_end(struct svi_alert_stage *s, const char *stream, const char *why,
                          struct svi_alert_report *out);

#endif
