/* incidents.h: faults that somebody marked in a log, and how alerts relate to them: found or missed, how
 * soon, and how many alerts belong to none.
 *
 * The file is a CSV whose first line names its columns: start, end and optionally name and key, in
 * any order. Times are as in a ts column: ISO 8601 text, or seconds, milliseconds, microseconds or
 * nanoseconds since 1970, recognised by their size. For a log without times they are row numbers,
 * from 1. An empty end means that only the start is known. With a column key, an incident belongs
 * to that key of the stream, and alerts of other keys do not count for it.
 *
 * With the tolerance T, an alert belongs to an incident when it is opened, or updated, from T
 * before its start to T after its end. A report is an alert that opens or is updated. The first
 * report from the start of an incident to T after its end finds it. It is also found, with no
 * delay, by an alert that was reported up to T before its start and is still open then. An alert
 * that is opened where it belongs to no incident is a false one. */
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
    char key[SVS_KEY_MAX + 1];    /* its key, if the file has a column of keys */
    int64_t line;                 /* line of the file, from 1 */
    double first;                 /* place of the first report since the start; NAN = none */
    int64_t alerts;               /* alerts opened that belong to it */
    bool during;                  /* it began while an earlier alert was open */
    int64_t early;                /* alerts reported before the start that are still open */
};

struct svi_incidents {
    struct svi_incident *of; /* sorted by key, then by start; no two of a key overlap */
    int64_t count;
    bool text;        /* times are ISO 8601 text */
    bool keyed;       /* the file has a column of keys */
    double tolerance; /* seconds or rows */
};

/* Reads the file. `tolerance` NAN: none was given, so it is 0, and every incident must have an end.
 * SVS_SETTING, SVS_INVALID (with line, problem and remedy), SVS_TOO_LARGE, and codes of svi_file_read. */
svs_code svi_incidents_read(struct svi_incidents *in, const char *path, double tolerance, svs_error *err);
void svi_incidents_clear(struct svi_incidents *in);

/* Forgets all reports; the incidents stay. */
void svi_incidents_reset(struct svi_incidents *in);

/* Reports that an alert of this key (NULL: a stream without keys) was opened, or else updated. Returns
 * whether it belongs to an incident. *before: index of the incident that it precedes; -1 = none. Pass that
 * index to svi_incidents_close when the alert closes. */
bool svi_incidents_report(struct svi_incidents *in, const char *key, double at, bool opened, int64_t *before);
void svi_incidents_close(struct svi_incidents *in, int64_t place, double at);

/* Reports that an alert of this key was open from `opened` to `closed`. */
void svi_incidents_during(struct svi_incidents *in, const char *key, double opened, double closed);

/* Figures over the rows from `first` to `last`, in the unit of the incidents. */
struct svi_incident_figures {
    int64_t count;   /* incidents that overlap the rows */
    int64_t outside; /* the others */
    int64_t found;
    int64_t during;      /* missed, but begun while an alert was open */
    double median_delay; /* of those found; NAN = none */
};

/* SVS_NO_MEMORY. */
svs_code svi_incidents_figures(const struct svi_incidents *in, double first, double last,
                               struct svi_incident_figures *f, svs_error *err);

/* Does the incident overlap [first, last]? And how long after its start, or after `first` if that is later,
 * was it found; NAN: it was missed. */
bool svi_incident_inside(const struct svi_incident *i, double first, double last);
double svi_incident_delay(const struct svi_incident *i, double first);

/* Does an incident overlap [from, to]? key: of this key, if incidents have keys; NULL: any. */
bool svi_incidents_cover(const struct svi_incidents *in, const char *key, double from, double to);

#endif
