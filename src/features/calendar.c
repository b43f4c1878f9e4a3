#include "features/calendar.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"

#define DAY     86400.0
#define WEEK    (7 * DAY)
#define MONDAY  (4 * DAY) /* the first Monday after 1970 began, on a Thursday */
#define LONGEST 1e12      /* seconds; the C library's calendar ends far beyond it */

svs_code svi_calendar_parse(const char *text, bool *day, bool *week, svs_error *err) {
    *day = *week = false;
    for (const char *at = text ? text : ""; *at;) {
        const size_t length = strcspn(at, ",");
        const bool is_day = length == 3 && memcmp(at, "day", 3) == 0;
        const bool is_week = length == 4 && memcmp(at, "week", 4) == 0;
        if (!is_day && !is_week)
            return svi_fail(err, SVS_SETTING, "calendar: \"%.*s\" is not day or week", (int)length, at);
        /* A repeated name is harmless. */
        *day |= is_day;
        *week |= is_week;
        at += length + (at[length] == ',');
    }
    return SVS_OK;
}

/* Is the distance from UTC the same at any time? Of "+01:00", "-0330", "+2" and UTC; *seconds: east of it. */
static bool calendar_fixed(const char *zone, int *seconds) {
    int hours = 0, minutes = 0, used = 0;
    *seconds = 0;
    if (!zone || !*zone || strcmp(zone, "UTC") == 0)
        return true;
    if (zone[0] != '+' && zone[0] != '-')
        return false;
    /* From the longest form to the shortest; `used` is where the form ended, and the text must end there too.
     */
    const bool colon = sscanf(zone + 1, "%2d:%2d%n", &hours, &minutes, &used) == 2;
    if (!colon && sscanf(zone + 1, "%2d%2d%n", &hours, &minutes, &used) != 2) {
        minutes = 0;
        if (sscanf(zone + 1, "%2d%n", &hours, &used) != 1)
            return false;
    }
    if (zone[1 + used] || hours < 0 || minutes < 0 || hours > 14 || minutes > 59)
        return false;
    *seconds = (hours * 60 + minutes) * (zone[0] == '-' ? -60 : 60);
    return true;
}

/* Is it a zone file of the system? Paths that leave the directory are refused. */
static bool calendar_has_zone(const char *zone) {
    char path[512];
    snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", zone);
    return !strstr(zone, "..") && zone[0] != '/' && access(path, R_OK) == 0;
}

svs_code svi_calendar_set_zone(const char *zone, svs_error *err) {
    int seconds;
    if (calendar_fixed(zone, &seconds))
        return SVS_OK;
    /* setenv and tzset on every call would cost more than the features, and rows call this. */
    const char *now = getenv("TZ");
    if (now && strcmp(now, zone) == 0)
        return SVS_OK;
    /* The C library takes an unknown name for UTC without an error, so the file is looked up first. */
    if (!calendar_has_zone(zone))
        return svi_fail(err, SVS_SETTING,
                        "zone \"%.60s\" is not known: give UTC, an offset like +01:00, or a name like "
                        "Europe/Berlin; names need the system's time zones (package tzdata)",
                        zone);
    if (setenv("TZ", zone, 1) != 0)
        return svi_fail_memory(err, "the time zone");
    tzset();
    return SVS_OK;
}

/* The clock of the zone at that time. `name`: of a fixed offset, 8 bytes; `out` refers to it. */
static bool calendar_clock(const char *zone, time_t time, struct tm *out, char *name) {
    int seconds;
    svs_error unread;
    if (!calendar_fixed(zone, &seconds) && svi_calendar_set_zone(zone, &unread) == SVS_OK)
        return localtime_r(&time, out) != NULL;
    time += seconds;
    if (!gmtime_r(&time, out))
        return false;
    snprintf(name, 8, "%c%02d%02d", seconds < 0 ? '-' : '+', abs(seconds) / 3600 % 100,
             abs(seconds) / 60 % 60);
    out->tm_gmtoff = seconds;
    out->tm_zone = seconds == 0 && !(zone && (zone[0] == '+' || zone[0] == '-')) ? "UTC" : name;
    return true;
}

double svi_calendar_local(const char *zone, double time) {
    int seconds;
    char name[8];
    struct tm at;
    /* The conversion to time_t is undefined for values that it cannot hold. */
    time = fmax(-LONGEST, fmin(time, LONGEST));
    if (calendar_fixed(zone, &seconds))
        return time + seconds;
    /* tm_gmtoff includes daylight saving time at that moment. */
    return calendar_clock(zone, (time_t)floor(time), &at, name) ? time + (double)at.tm_gmtoff : time;
}

int svi_calendar_features(const char *zone, bool day, bool week, double time,
                          const char *names[SVI_CALENDAR_MAX], double values[SVI_CALENDAR_MAX]) {
    const double local = svi_calendar_local(zone, time);
    /* floor, not fmod, so that times before 1970 lie in [0, DAY) too. */
    const double in_day = local - DAY * floor(local / DAY);
    const double in_week = local - MONDAY - WEEK * floor((local - MONDAY) / WEEK);
    /* Sine and cosine together are continuous at midnight and unique within the period. */
    const double turn_day = 2 * M_PI * in_day / DAY, turn_week = 2 * M_PI * in_week / WEEK;
    const struct {
        bool on;
        const char *name;
        double value;
    } all[] = {{day, "day.sin", sin(turn_day)},
               {day, "day.cos", cos(turn_day)},
               {week, "week.sin", sin(turn_week)},
               {week, "week.cos", cos(turn_week)},
               {week, "weekend", in_week >= 5 * DAY}};
    int count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].on) {
            names[count] = all[i].name;
            if (values)
                values[count] = all[i].value;
            count++;
        }
    return count;
}

void svi_calendar_moment(char out[SVI_CALENDAR_MOMENT], const char *zone, double time, double now) {
    /* Days are those of the local clock, as a reader counts them. */
    const bool today =
        floor(svi_calendar_local(zone, time) / DAY) == floor(svi_calendar_local(zone, now) / DAY);
    char name[8];
    struct tm at;
    if (!calendar_clock(zone, (time_t)floor(time), &at, name) ||
        strftime(out, SVI_CALENDAR_MOMENT, today ? "%H:%M %Z" : "%a %Y-%m-%d %H:%M %Z", &at) == 0)
        snprintf(out, SVI_CALENDAR_MOMENT, "%.0f s", time);
}
