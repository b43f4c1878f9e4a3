#include "report/moment.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#define SHOWN_LEAST 1e8 /* seconds since 1970: below it, a count of seconds is no date */
#define SHOWN_MOST  253402300799.0

char *svi_moment_text(char out[SVI_MOMENT], double seconds) {
    const double whole = floor(seconds), thousandths = floor((seconds - whole) * 1000 + 0.5);
    const time_t t =
        (time_t)(seconds >= SHOWN_LEAST && seconds < SHOWN_MOST ? whole + (thousandths > 999) : 0);
    struct tm utc;
    if (!(seconds >= SHOWN_LEAST && seconds < SHOWN_MOST)) {
        snprintf(out, SVI_MOMENT, "%.10g s", seconds);
        return out;
    }
    gmtime_r(&t, &utc);
    const size_t n = strftime(out, SVI_MOMENT, "%Y-%m-%d %H:%M:%S", &utc);
    if (thousandths > 0 && thousandths < 1000)
        snprintf(out + n, SVI_MOMENT - n, ".%03.0f", thousandths);
    return out;
}

char *svi_duration_text(char out[SVI_MOMENT], double seconds) {
    const double minutes = floor(seconds / 60 + 0.5), hours = floor(seconds / 3600 + 0.5);
    if (isnan(seconds))
        snprintf(out, SVI_MOMENT, "-");
    else if (seconds > 0 && seconds < 0.1)
        snprintf(out, SVI_MOMENT, "less than 0.1 s");
    else if (seconds < 99.5)
        snprintf(out, SVI_MOMENT, seconds > 0 && seconds < 9.95 ? "%.2g s" : "%.0f s", seconds);
    else if (minutes < 120)
        snprintf(out, SVI_MOMENT, "%.0f min", minutes);
    else if (minutes < 48 * 60)
        snprintf(out, SVI_MOMENT, "%.0f h %.0f min", floor(minutes / 60), fmod(minutes, 60));
    else
        snprintf(out, SVI_MOMENT, "%.0f d %.0f h", floor(hours / 24), fmod(hours, 24));
    return out;
}

char *svi_moment_of(char out[SVI_MOMENT], bool by_rows, double at) {
    if (!by_rows)
        return svi_moment_text(out, at);
    snprintf(out, SVI_MOMENT, "row %.0f", at);
    return out;
}

char *svi_span_of(char out[SVI_MOMENT], bool by_rows, double span) {
    if (!by_rows || isnan(span))
        return svi_duration_text(out, span);
    snprintf(out, SVI_MOMENT, "%.0f row%s", span, span == 1 ? "" : "s");
    return out;
}
