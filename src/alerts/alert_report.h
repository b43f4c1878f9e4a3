/* alert_report.h: an alert of the novelty stage as the event that goes out. */
#ifndef SVI_ALERT_REPORT_H
#define SVI_ALERT_REPORT_H

#include "alerts/alert_stage.h"

#define SVI_ALERT_TOP_MAX 5 /* features named in an alert event */

/* An alert event with what it points to. */
struct svi_alert_report {
    struct svi_alert_event event;
    struct svi_contribution top[SVI_ALERT_TOP_MAX];
    char text[SVI_ALERT_TEXT];
};

/* Fills the report of that change; ts: of the sample. Where novelty has gone off, an open alert ends. False:
 * there is nothing to report. */
bool svi_alert_report_change(struct svi_alert_stage *s, const struct svi_message *m,
                             const struct svi_schema *schema, const char *stream, double ts,
                             enum svi_alert_change change, struct svi_alert_report *out);

/* An alert that is open ends without a sample: reset, or no novelty any more. False: none was open. */
bool svi_alert_report_end(struct svi_alert_stage *s, const char *stream, const char *why,
                          struct svi_alert_report *out);

#endif
