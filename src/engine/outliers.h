/* outliers.h: gross errors in the values of a stream: what lies so far beyond the values that a column has
 * had that the model is better off without it (the setting `outlier`).
 *
 * Of each column SVI_OUTLIER_SAMPLES values are kept, those of sampled rows: one of four at first, then one
 * of 32. Their median is the center, and the distance within which three quarters of them lie is the
 * deviation. A value is an outlier where it is further from the center than SVI_OUTLIER_DEVIATIONS
 * deviations; it is clipped to one.
 *
 * Raw values are sampled, clipped or not: up to seven of 32 change next to nothing, so a burst of errors does
 * no harm; with the eighth, after some 250 rows, the column has a new level, and rows are taken as they come
 * again.
 *
 * A function of the accepted rows alone. Comparisons, choices and products: the same bits on all machines. */
#ifndef SVI_OUTLIERS_H
#define SVI_OUTLIERS_H

#include "base/archive.h"
#include "config/settings.h"
#include "linalg/quads.h"

#define SVI_OUTLIER_SAMPLES    32
#define SVI_OUTLIER_BEGIN      128 /* rows in which the first samples are taken: nothing is an outlier there */
#define SVI_OUTLIER_DEVIATIONS 1e6 /* deviations */

struct svi_outliers {
    const struct svi_quads *quads;
    int64_t rows, next;     /* so far; after which of them the next sample is taken */
    int d, capacity;        /* columns */
    double *sample;         /* SVI_OUTLIER_SAMPLES of each column */
    double *center, *bound; /* what rows are compared with */
    double *deviation;      /* that counts for the bound; 0: not known */
    double *clipped;        /* the row that was clipped last */
};

/* Do these settings need one? */
bool svi_outliers_wanted(const struct svi_settings *s);

struct svi_outliers *svi_outliers_new(svs_error *err); /* NULL: SVS_NO_MEMORY */
void svi_outliers_free(struct svi_outliers **o);
void svi_outliers_reset(struct svi_outliers *o); /* as new */

/* Capacity for rows of d columns. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_outliers_reserve(struct svi_outliers *o, int d, svs_error *err);

/* May a value of the row be an outlier? False is certain, true is for svi_outliers_clip to say. NaN is none.
 */
static inline bool svi_outliers_far(const struct svi_outliers *o, const double *x, int d) {
    return o->quads->beyond(x, o->center, o->bound, d < o->d ? d : o->d);
}

/* The row with its outliers clipped, valid until the next call; NULL: there are none, or only numbers beyond
 * what can be computed with, which the learner refuses. Nothing else changes. */
struct svi_outlier {
    int column; /* the first one */
    double center, deviation, limit;
};
double *svi_outliers_clip(struct svi_outliers *o, const double *x, int d, struct svi_outlier *first);

/* An accepted row as it came, for which there is capacity. */
void svi_outliers_due(struct svi_outliers *o, const double *x, int d);
static inline void svi_outliers_note(struct svi_outliers *o, const double *x, int d) {
    if (++o->rows == o->next || d > o->d)
        svi_outliers_due(o, x, d);
}

/* A feature changes hands; features that are not flagged leave. */
void svi_outliers_renew(struct svi_outliers *o, int feature);
void svi_outliers_prune(struct svi_outliers *o, const bool *keep);

/* Between two rows; loading goes into a new one. */
void svi_outliers_archive(struct svi_archive *a, struct svi_outliers *o);

double svi_outliers_memory(int d); /* bytes */

#endif
