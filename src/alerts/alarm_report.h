/* alarm_report.h: a change of the quality alarm (quality/alarm.h) as the event that goes out. */
#ifndef SVI_ALARM_REPORT_H
#define SVI_ALARM_REPORT_H

#include "alerts/alert_report.h"
#include "quality/alarm.h"

/* The report of that change, which is not SVI_ALARM_NONE; ts: of the sample. */
void svi_alarm_report(const struct svi_alarm *s, svs_value id, const struct svi_schema *schema,
                      const char *stream, double ts, enum svi_alarm_change change,
                      struct svi_alert_report *out);

/* An open alarm ends without a sample. False: none was open. */
bool svi_alarm_report_end(struct svi_alarm *s, const char *stream, const char *why,
                          struct svi_alert_report *out);

#endif
