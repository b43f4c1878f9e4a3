/* alarm_report.h: the alert event of a change of the quality alarm (quality/alarm.h). */
#ifndef SVI_ALARM_REPORT_H
#define SVI_ALARM_REPORT_H

#include "alerts/alert_report.h"
#include "quality/alarm.h"

/* Fills `out` for that change, which is not SVI_ALARM_NONE. id, ts: of the sample, ts in seconds. row: its
 * number in the stream, for a line that counts rows; 0: rows have times. The event points into `out` and to
 * the names of the schema. */
void svi_alarm_report(const struct svi_alarm *s, svs_value id, const struct svi_schema *schema,
                      const char *stream, double ts, int64_t row, enum svi_alarm_change change,
                      struct svi_alert_report *out);

/* Ends an open alarm without a sample; `why` completes the line. False: no alarm was open. */
bool svi_alarm_report_end(struct svi_alarm *s, const char *stream, const char *why,
                          struct svi_alert_report *out);

#endif
