/* alert_verdict.h: what a person says of an alert afterwards, true or false; and what of the last episodes is
 * kept for that.
 *
 * Of each of the last SVI_VERDICT_EPISODES episodes up to SVI_VERDICT_ROWS rows are kept: of one that lasts
 * longer each second, fourth ... one; and how far which detector was surprised by which feature. */
#ifndef SVI_ALERT_VERDICT_H
#define SVI_ALERT_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "alerts/alert_policy.h"
#include "alerts/evidence.h"
#include "base/archive.h"
#include "novelty/detector.h"
#include "svmstream/error.h"

#define SVI_VERDICT_EPISODES 8
#define SVI_VERDICT_ROWS     16
#define SVI_VERDICT_PEAKS    12

enum svi_verdict { SVI_VERDICT_NONE = 0, SVI_VERDICT_FALSE, SVI_VERDICT_TRUE };

struct svi_verdict_peak {
    int detector, feature;
    double surprise;
};

struct svi_verdict_episode {
    int64_t tag;    /* svi_alert.opened of it, from 1; 0: none */
    int64_t number; /* of its events */
    int verdict;
    int rows, count;     /* kept; peaks */
    int64_t met, stride; /* rows so far; each `stride`-th of them is kept */
    struct svi_verdict_peak peaks[SVI_VERDICT_PEAKS];
};

struct svi_verdicts {
    int columns;                        /* of a row */
    double *rows[SVI_VERDICT_EPISODES]; /* SVI_VERDICT_ROWS x columns each, by tag; made when first needed */
    struct svi_verdict_episode of[SVI_VERDICT_EPISODES]; /* by tag */
    int64_t marked_true, marked_false;
};

/* Rows have that number of columns; those that were kept are gone, unless they have as many. */
void svi_verdicts_set_columns(struct svi_verdicts *v, int columns);
void svi_verdicts_clear(struct svi_verdicts *v); /* frees; what was said stays */

/* A row of the open episode `tag`, and what a detector finds at it. */
void svi_verdicts_row(struct svi_verdicts *v, int64_t tag, const double *row);
void svi_verdicts_peak(struct svi_verdicts *v, int64_t tag, enum svi_alert_detector detector, int feature,
                       double surprise);

/* The number of the episode in events. */
void svi_verdicts_number(struct svi_verdicts *v, int64_t tag, int64_t number);

/* A person says of the episode of that number whether it was a true one. What was false is learned, and what
 * detectors found at features then is usual for the policy; what was true is taken out of the calibration and
 * of the budget's past. detector: NULL: there is none. SVS_UNAVAILABLE: why nothing can be said of it (any
 * more). */
svs_code svi_verdicts_give(struct svi_verdicts *v, struct svi_alert_policy *d, svi_detector *detector,
                           int64_t number, bool is_true, svs_error *err);

/* A feature belongs to something else now: the rows that are kept are not learned any more. */
void svi_verdicts_renew(struct svi_verdicts *v);

/* True ones of those that were judged, NAN: none was. */
double svi_verdicts_precision(const struct svi_verdicts *v);

double svi_verdicts_memory(int columns); /* bytes */

/* Loading goes into one whose rows have as many columns. */
void svi_verdicts_archive(struct svi_archive *a, struct svi_verdicts *v);

#endif
