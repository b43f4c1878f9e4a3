/* incidents.h: faults that somebody marked in a log, and what alerts made of them: found or missed, how soon,
 * and how many alerts belong to none.
 *
 * The file is a CSV whose first line names its columns: start, end and, if wanted, name and key, in any
 * order. Times are those of a ts column: ISO 8601 text, or seconds, milliseconds, microseconds or nanoseconds
 * since 1970 by their size; of a log without times they are numbers of its rows, from 1. An empty end: only
 * the start is known. Where there is a column key, an incident is one of that key of the stream, and alerts
 * of others have nothing to do with it.
 *
 * With the tolerance T, an alert belongs to an incident when it is opened, or updated, from T before its
 * start to T after its end. An incident is found by the first report (an alert that opens or is updated) from
 * its start to T after its end, or, with no delay, by an alert that was reported up to T before its start and
 * is still open then. An alert that is opened where it belongs to no incident is a false one. */
#ifndef SVI_INCIDENTS_H
#define SVI_INCIDENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/error.h"
#include "svmstream/value.h"

#define SVI_INCIDENTS_MAX 100000
#define SVI_INCIDENT_NAME 64

struct svi_incident {
    double start, end;            /* seconds since 1970, or rows; end NAN: only the start is known */
    char name[SVI_INCIDENT_NAME]; /* printable */
    char key[SVS_KEY_MAX + 1];    /* that it is of, where they have keys */
    int64_t line;                 /* of the file, from 1 */
    double first;                 /* report from the start on, NAN = none came */
    int64_t alerts;               /* opened where they belong to it */
    bool during;                  /* it began while an alert was open that had opened before */
    int64_t early;                /* alerts that were reported before the start and are open */
};

struct svi_incidents {
    struct svi_incident *of; /* by their keys, then by their starts; no two of a key overlap */
    int64_t count;
    bool text;        /* their times are ISO 8601 text */
    bool keyed;       /* there is a column key */
    double tolerance; /* seconds or rows */
};

/* Reads the file. `tolerance` NAN: none was given, it is 0, and every incident must have an end. SVS_SETTING,
 * SVS_INVALID (which line, what is wrong, what to do), SVS_TOO_LARGE, and codes of svi_file_read. */
svs_code svi_incidents_read(struct svi_incidents *in, const char *path, double tolerance, svs_error *err);
void svi_incidents_clear(struct svi_incidents *in);

/* Nothing was reported yet. */
void svi_incidents_reset(struct svi_incidents *in);

/* An alert of that key (NULL: the stream has none) is reported: opened, or else updated. Returns whether it
 * belongs to an incident. *before: the incident before whose start that is, by its place; -1 = none. A place
 * is to be given to svi_incidents_close when that alert closes. */
bool svi_incidents_report(struct svi_incidents *in, const char *key, double at, bool opened, int64_t *before);
void svi_incidents_close(struct svi_incidents *in, int64_t place, double at);

/* An alert was open from `opened` to `closed`. */
void svi_incidents_during(struct svi_incidents *in, const char *key, double opened, double closed);

/* Against rows from `first` to `last`, in the unit of the incidents. */
struct svi_incident_figures {
    int64_t count;   /* incidents of which some part lies there */
    int64_t outside; /* the others */
    int64_t found;
    int64_t during;      /* missed, but they began while an alert was open */
    double median_delay; /* of those found, NAN = none */
};

/* SVS_NO_MEMORY. */
svs_code svi_incidents_figures(const struct svi_incidents *in, double first, double last,
                               struct svi_incident_figures *f, svs_error *err);

/* Does some part of it lie there? And how long after its start, or after `first` if that is later, it was
 * found; NAN: it was missed. */
bool svi_incident_inside(const struct svi_incident *i, double first, double last);
double svi_incident_delay(const struct svi_incident *i, double first);

/* Does an incident cover a part of `from` to `to`? */
bool svi_incidents_cover(const struct svi_incidents *in, double from, double to);

#endif
