#include "alerts/alert_severity.h"

#include <stdbool.h>

#define SERIOUS_DISTANCE 3.0
#define WARNING_DISTANCE 1.5
#define FAST_DISTANCE    2.0
#define FAST_GROWTH      2.0         /* of the distance since the first sample */
#define FAST_SECONDS     600.0       /* within which it counts as fast */
#define WARNING_SECONDS  (30 * 60.0) /* to a warning */
#define SERIOUS_SECONDS  (6 * 3600.0)
#define WARNING_RANGES   0.25
#define SERIOUS_RANGES   1.0

const char *svi_alert_severity_name(enum svi_severity severity) {
    static const char *const names[] = {"notice", "warning", "serious"};
    return names[severity];
}

enum svi_severity svi_alert_severity(const struct svi_severity_input *in) {
    const bool fast = in->first > 0 && in->distance >= FAST_DISTANCE &&
                      in->distance >= FAST_GROWTH * in->first && in->seconds <= FAST_SECONDS;
    /* Distance alone, or distance together with time or speed, is serious; time alone is at most a
     * warning. */
    if (in->distance >= SERIOUS_DISTANCE || fast ||
        (in->distance >= WARNING_DISTANCE && in->seconds >= SERIOUS_SECONDS))
        return SVI_SEVERITY_SERIOUS;
    return in->distance >= WARNING_DISTANCE || in->seconds >= WARNING_SECONDS ? SVI_SEVERITY_WARNING
                                                                              : SVI_SEVERITY_NOTICE;
}

enum svi_severity svi_alert_severity_of_seconds(double seconds) {
    return seconds >= WARNING_SECONDS ? SVI_SEVERITY_WARNING : SVI_SEVERITY_NOTICE;
}

enum svi_severity svi_alert_severity_of_ranges(double ranges) {
    return ranges >= SERIOUS_RANGES   ? SVI_SEVERITY_SERIOUS
           : ranges >= WARNING_RANGES ? SVI_SEVERITY_WARNING
                                      : SVI_SEVERITY_NOTICE;
}
