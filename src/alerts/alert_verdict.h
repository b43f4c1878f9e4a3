/* alert_verdict.h: verdicts of a person on past alerts (true or false), and what is kept for them.
 *
 * Of each of the last SVI_VERDICT_EPISODES episodes, up to SVI_VERDICT_ROWS rows are kept (every second,
 * fourth,
 * ... one if it lasts longer), and the largest surprise of each detector at each feature. */
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
    int detector, feature; /* enum svi_alert_detector; column, or -1: the row */
    double surprise;       /* the largest, -log10 p */
};

struct svi_verdict_episode {
    int64_t tag;         /* svi_alert.opened when it opened, from 1; 0: the place is empty */
    int64_t number;      /* of the alert in events */
    int verdict;         /* enum svi_verdict */
    int rows, count;     /* rows kept; peaks */
    int64_t met, stride; /* rows of the episode so far; every `stride`-th is kept */
    struct svi_verdict_peak peaks[SVI_VERDICT_PEAKS];
};

struct svi_verdicts {
    int columns;                        /* of a row: features x lags */
    double *rows[SVI_VERDICT_EPISODES]; /* SVI_VERDICT_ROWS x columns each, owned; NULL until needed */
    struct svi_verdict_episode of[SVI_VERDICT_EPISODES]; /* as `rows`, in place tag % SVI_VERDICT_EPISODES */
    int64_t marked_true, marked_false;                   /* verdicts so far */
};

/* Sets the width of rows. Another width drops the rows that are kept. */
void svi_verdicts_set_columns(struct svi_verdicts *v, int columns);
void svi_verdicts_clear(struct svi_verdicts *v); /* frees; the numbers of verdicts stay */

/* Adds a row (`columns` values) of the open episode `tag`, and what a detector found in it. Out of memory:
 * the row is not kept. */
void svi_verdicts_row(struct svi_verdicts *v, int64_t tag, const double *row);
void svi_verdicts_peak(struct svi_verdicts *v, int64_t tag, enum svi_alert_detector detector, int feature,
                       double surprise);

/* Sets the number by which events name the episode. */
void svi_verdicts_number(struct svi_verdicts *v, int64_t tag, int64_t number);

/* The number of the last alert that accepts a verdict; 0: none. */
int64_t svi_verdicts_last(const struct svi_verdicts *v);

/* A person marks the alert of that number true or false. The rows of a false one are learned, and its peaks
 * are marked normal in the policy. The rows of a true one leave the calibration, and its excursions leave the
 * past of the budget. detector: may be NULL. SVS_UNAVAILABLE: `err` says why no verdict is possible (any
 * more). */
svs_code svi_verdicts_give(struct svi_verdicts *v, struct svi_alert_policy *d, svi_detector *detector,
                           int64_t number, bool is_true, svs_error *err);

/* A feature has been reused for something else: drops the rows that are kept, which have its old meaning. */
void svi_verdicts_renew(struct svi_verdicts *v);

/* Share of the verdicts that were true, 0 to 1; NAN: there is no verdict. */
double svi_verdicts_precision(const struct svi_verdicts *v);

double svi_verdicts_memory(int columns); /* bytes besides the struct, once all rows are kept */

/* Load into one with the same number of columns. */
void svi_verdicts_archive(struct svi_archive *a, struct svi_verdicts *v);

#endif
