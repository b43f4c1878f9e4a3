/* drift_moments.h: mean and deviation of each feature over the same stretches as the errors
 * (quality/drift.h), so that what moved most between before and after a change can be named. */
#ifndef SVI_DRIFT_MOMENTS_H
#define SVI_DRIFT_MOMENTS_H

#include "linalg/quads.h"
#include "quality/drift.h"
#include "svmstream/error.h"

#define SVI_DRIFT_FEATURES 4096 /* a sample of more features tells nothing of them */

/* Zero-initialised is empty. */
struct svi_drift_moments {
    bool off;       /* there were too many features */
    int d;          /* features so far */
    int32_t room;   /* features that there is capacity for */
    double *bucket; /* SVI_DRIFT_BUCKETS x 2 x room: means, then sums of squared deviations, by slot */
    double *recent; /* SVI_DRIFT_RECENT x room: raw rows, by their place in svi_drift's `last` */
    const struct svi_quads *quads; /* set with the room */
};

/* What a feature did: its mean moved by `shift` deviations. */
struct svi_drift_shift {
    int feature;
    double before, after, deviation; /* means; deviation before */
    double shift;
};

/* Makes room for d features; more than SVI_DRIFT_FEATURES: all is dropped, and stays so. SVS_NO_MEMORY:
 * nothing has changed. */
svs_code svi_drift_moments_reserve(struct svi_drift_moments *m, int d, svs_error *err);
void svi_drift_moments_free(struct svi_drift_moments *m);

/* After svi_drift_step took the sample of this row, for which there is room; NULL: the one before stands for
 * it. Where d->pushed is 0 the sample was not taken. */
void svi_drift_moments_step(struct svi_drift_moments *m, const struct svi_drift *d, const double *x,
                            int features);

/* The feature becomes a new one, which was 0 so far. */
void svi_drift_moments_clear(struct svi_drift_moments *m, int feature);

/* The features whose means moved most, at most `most` of them, and none that moved no more than chance moves
 * the most of that many; largest shift first. Returns how many. */
int svi_drift_moments_top(const struct svi_drift_moments *m, const struct svi_drift *d,
                          const struct svi_drift_found *found, int most, struct svi_drift_shift *out);

/* Bit for bit; after svi_drift_archive of d. Loading goes into an empty one. */
void svi_drift_moments_archive(struct svi_archive *a, struct svi_drift_moments *m, const struct svi_drift *d);

double svi_drift_moments_memory(int d); /* bytes */

#endif
