/* alert_severity.h: how far an alert is from normal, and how fast somebody must act, after ISA-18.2: the
 * priority of an alarm follows from its consequence and from the time that is left to respond. The one place
 * where severities are decided.
 *
 *     severity   who must act     a detector: distance      a rule: excess in ranges   time
 *     notice     by the day     from 1 on                 all others
 *     warning    in the hour    from 1.5 on               from .25 on                lasts for 30 minutes
 *     serious    at once        from 3 on, or from 2 on   from 1 on                  distance 1.5 for 6 hours
 *                               where it rises fast
 *
 * The distance is a surprise over its level. It rises fast if it has doubled since the alert opened, within
 * ten minutes of the opening. Time alone never makes an alert serious. */
#ifndef SVI_ALERT_SEVERITY_H
#define SVI_ALERT_SEVERITY_H

enum svi_severity { SVI_SEVERITY_NOTICE = 0, SVI_SEVERITY_WARNING, SVI_SEVERITY_SERIOUS };

/* An episode of a detector so far. */
struct svi_severity_input {
    double distance; /* largest surprise over level */
    double first;    /* that of its first sample; 0: unknown, then nothing rises fast */
    double seconds;  /* how long it has lasted */
};

const char *svi_alert_severity_name(enum svi_severity severity);
enum svi_severity svi_alert_severity(const struct svi_severity_input *in);

/* By the distance of a value from the nearest normal value, in widths of the normal range; NAN and below 0:
 * notice. */
enum svi_severity svi_alert_severity_of_ranges(double ranges);

/* Of what has no distance (stuck, absent, silent): by how long it lasts. */
enum svi_severity svi_alert_severity_of_seconds(double seconds);

#endif
