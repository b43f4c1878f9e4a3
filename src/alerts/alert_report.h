/* alert_report.h: an alert of novelty as the event that goes out: here alone it meets the names of columns
 * and the form of events. */
#ifndef SVI_ALERT_REPORT_H
#define SVI_ALERT_REPORT_H

#include "alerts/alert_stage.h"
#include "alerts/alert_text.h"
#include "features/schema.h"
#include "wire/event.h"

#define SVI_ALERT_TOP_MAX 5 /* features named in an alert event */

/* An alert event with what it points to. */
struct svi_alert_report {
    struct svi_alert_event event;
    struct svi_contribution top[SVI_ALERT_TOP_MAX];
    char text[SVI_ALERT_TEXT];
};

/* What a report needs besides the stage. */
struct svi_alert_subject {
    const struct svi_schema *schema; /* names and units of the columns */
    const char *stream;              /* as a line begins with it */
    svs_value id;                    /* of the sample */
    double ts;                       /* likewise */
};

/* Fills the report of that change by that sample. Where novelty has gone off, an open alert ends. False:
 * there is nothing to report. */
bool svi_alert_report_change(struct svi_alert_stage *s, const struct svi_alert_sample *sample,
                             const struct svi_alert_subject *subject, enum svi_alert_change change,
                             struct svi_alert_report *out);

/* An alert that is open ends without a sample: reset, or no novelty any more. False: none was open. */
bool svi_alert_report_end(struct svi_alert_stage *s, const char *stream, const char *why,
                          struct svi_alert_report *out);

#endif
