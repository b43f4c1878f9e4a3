/* outliers.h: detects gross errors in the values of a stream: values so far beyond the previous ones of their
 * column that learning them would harm the model (the setting `outlier`).
 *
 * Each column keeps SVI_OUTLIER_SAMPLES values, from sampled rows: one of 4 at first, then one of 32. Their
 * median is the center, and the distance within which three quarters of them lie is the deviation. A value is
 * an outlier if it is more than SVI_OUTLIER_DEVIATIONS deviations from the center; it is clipped to one
 * deviation.
 *
 * Raw values are sampled, clipped or not. Up to seven outliers among the 32 change almost nothing, so a burst
 * of errors does no harm; with the eighth, after about 250 rows, the column has a new level and its values
 * are accepted again.
 *
 * The result is a function of the accepted rows alone. It takes comparisons, choices and products only, so
 * the bits are the same on all machines. */
#ifndef SVI_OUTLIERS_H
#define SVI_OUTLIERS_H

#include "base/archive.h"
#include "config/settings.h"
#include "linalg/quads.h"

#define SVI_OUTLIER_SAMPLES    32
#define SVI_OUTLIER_BEGIN      128 /* rows until the first samples are complete: no outliers before that */
#define SVI_OUTLIER_DEVIATIONS 1e6 /* distance from the center, in deviations */

struct svi_outliers {
    const struct svi_quads *quads;
    int64_t rows, next;     /* rows so far; the row, from 1, that is sampled next */
    int d, capacity;        /* columns */
    double *sample;         /* SVI_OUTLIER_SAMPLES values of each column */
    double *center, *bound; /* by column: |x - center| > bound may be an outlier */
    double *deviation;      /* by column, the one used for the bound; 0: not known */
    double *clipped;        /* the last clipped row */
};

/* Do these settings need outlier detection? */
bool svi_outliers_wanted(const struct svi_settings *s);

struct svi_outliers *svi_outliers_new(svs_error *err); /* NULL: SVS_NO_MEMORY; owner: the caller */
void svi_outliers_free(struct svi_outliers **o);
void svi_outliers_reset(struct svi_outliers *o); /* to the state of a new one */

/* Capacity for rows of d columns. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_outliers_reserve(struct svi_outliers *o, int d, svs_error *err);

/* May a value of the row be an outlier? False is certain; after true, svi_outliers_clip decides. NaN is not
 * an outlier. */
static inline bool svi_outliers_far(const struct svi_outliers *o, const double *x, int d) {
    return o->quads->beyond(x, o->center, o->bound, d < o->d ? d : o->d);
}

/* A copy of the row with its outliers clipped, valid until the next call, and the first of them in *first.
 * NULL: no outliers, or only numbers too large to compute with, which the learner refuses. Nothing else
 * changes. */
struct svi_outlier {
    int column;
    double center, deviation, limit;
};
double *svi_outliers_clip(struct svi_outliers *o, const double *x, int d, struct svi_outlier *first);

/* note: counts an accepted row, unclipped, and samples it if it is due; capacity must have been reserved. */
void svi_outliers_due(struct svi_outliers *o, const double *x, int d);
static inline void svi_outliers_note(struct svi_outliers *o, const double *x, int d) {
    if (++o->rows == o->next || d > o->d)
        svi_outliers_due(o, x, d);
}

/* renew: the feature is reassigned to another value and starts without samples. prune: removes the columns
 * that are not flagged. */
void svi_outliers_renew(struct svi_outliers *o, int feature);
void svi_outliers_prune(struct svi_outliers *o, const bool *keep);

/* Load into a new one. */
void svi_outliers_archive(struct svi_archive *a, struct svi_outliers *o);

double svi_outliers_memory(int d); /* bytes */

#endif
