/* calendar.h: features of the time of a sample: its position in the day and in the week, in a time zone.
 *
 * A zone is "UTC" (also NULL or ""), "+01:00", or the name of a file of the system's time zones
 * ("Europe/Berlin"). Of a name the C library knows the clock, for one zone at a time: TZ of the process. The
 * others leave the process as it is. An unknown name counts as UTC. */
#ifndef SVI_CALENDAR_H
#define SVI_CALENDAR_H

#include <stdbool.h>

#include "svmstream/error.h"

#define SVI_CALENDAR_MAX 5 /* features */

/* Parses "day", "week", both separated by a comma, or nothing (NULL or ""). SVS_SETTING. */
svs_code svi_calendar_parse(const char *text, bool *day, bool *week, svs_error *err);

/* Of a name: sets TZ, unless it has that value. Not safe while other threads read the time zone; a later use
 * of the same zone only reads it. SVS_SETTING: unknown; SVS_NO_MEMORY. */
svs_code svi_calendar_set_zone(const char *zone, svs_error *err);

/* Seconds since 1970 on the local clock of the zone: UTC seconds plus the zone's offset at that time. */
double svi_calendar_local(const char *zone, double time);

/* Sets names and values of the features, in their order; returns their count, 0 to SVI_CALENDAR_MAX. `time`:
 * seconds since 1970. day.sin and day.cos of the time of day, week.sin and week.cos of the time since Monday,
 * weekend 1 or 0. values may be NULL. */
int svi_calendar_features(const char *zone, bool day, bool week, double time,
                          const char *names[SVI_CALENDAR_MAX], double values[SVI_CALENDAR_MAX]);

/* Writes a moment in the zone: "03:12 CET", with the date where it is not the day of `now`: "Tue
 * 2026-11-24 03:12 CET". Both in seconds since 1970, 0 to the year 9999. */
#define SVI_CALENDAR_MOMENT 48 /* bytes */
void svi_calendar_moment(char out[SVI_CALENDAR_MOMENT], const char *zone, double time, double now);

#endif
