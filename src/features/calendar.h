/* calendar.h: what the time of a sample says: where in the day and in the week it lies, in a time zone. */
#ifndef SVI_CALENDAR_H
#define SVI_CALENDAR_H

#include <stdbool.h>

#include "svmstream/error.h"

#define SVI_CALENDAR_MAX 5 /* features */

/* "day", "week", both separated by a comma, or nothing. SVS_SETTING. */
svs_code svi_calendar_parse(const char *text, bool *day, bool *week, svs_error *err);

/* Takes a zone for the whole process: "UTC", "+01:00", or the name of a file of the system's time zones
 * ("Europe/Berlin"). NULL or "" = UTC. SVS_SETTING: unknown. */
svs_code svi_calendar_set_zone(const char *zone, svs_error *err);

/* Seconds since 1970 as clocks in the zone show them. */
double svi_calendar_local(double time);

/* The names and values of the features, in their order; returns their count. day.sin and day.cos of the time
 * of day, week.sin and week.cos of that of the week (from Monday), weekend 1 or 0. values may be NULL. */
int svi_calendar_features(bool day, bool week, double time, const char *names[SVI_CALENDAR_MAX],
                          double values[SVI_CALENDAR_MAX]);

/* A moment in the zone that was taken: "03:12 CET", with the day where it is not that of `now`: "Tue
 * 2026-11-24 03:12 CET". Both in seconds since 1970, 0 to the year 9999. */
#define SVI_CALENDAR_MOMENT 48 /* bytes */
void svi_calendar_moment(char out[SVI_CALENDAR_MOMENT], double time, double now);

#endif
