/* snapshot.h: the window at one moment, copied a few rows at a time so that no sample waits for it.
 *
 * svi_snapshot_begin fixes which samples belong to it. Each step of the learner then copies a few of them,
 * the oldest first; before a sample that is not copied yet is removed, all remaining ones are copied. Later
 * rows do not belong to it. The rows are raw; mean and scale of that moment are stored with them. */
#ifndef SVI_SNAPSHOT_H
#define SVI_SNAPSHOT_H

#include "svmstream/learner.h"

#define SVI_SNAPSHOT_ROWS 64 /* copied in one step */

struct svi_snapshot {
    bool active;   /* rows are still to be copied */
    int d, stride; /* stride: d rounded up to 8; zero from d on */
    int class_count;
    int64_t next, end; /* numbers of the ring: those from next to end - 1 are not copied yet */
    int64_t order;     /* learned samples at that moment */
    int64_t count;
    int32_t capacity[3];    /* rows, stride, features */
    double *rows;           /* count x stride, aligned, in order of arrival */
    int32_t *label;         /* class index */
    double *weight;         /* with the factor of its class, as it had decayed */
    int64_t *number;        /* ascending; names a sample for as long as it is held, and no other ever */
    double *mean, *inverse; /* d: of the scaler; 0 and 1 when nothing is scaled */
};

/* Capacity for n rows of d features; discards the content. SVS_NO_MEMORY: it is empty. */
svs_code svi_snapshot_reserve(struct svi_snapshot *s, int64_t n, int d, svs_error *err);

/* Begins a snapshot of the samples that `l` holds now, and reserves for it; the learner keeps a pointer to *s
 * until it is complete or dropped. SVS_NO_MEMORY: nothing was begun. */
svs_code svi_snapshot_begin(struct svi_snapshot *s, svs_learner *l, svs_error *err);

/* Copies up to `rows` further rows; called by each step of the learner. */
void svi_snapshot_copy(struct svi_snapshot *s, svs_learner *l, int64_t rows);

/* Abandons an incomplete snapshot. */
void svi_snapshot_drop(struct svi_snapshot *s, svs_learner *l);

void svi_snapshot_clear(struct svi_snapshot *s); /* frees */

/* Continues the versions of l after `version`, which another learner of the same stream has reached. */
void svi_learner_pass_version(svs_learner *l, uint64_t version);

/* Bytes for n rows of d features. */
double svi_snapshot_memory(int64_t n, int d);

/* Takes a version number that no other model of the learner has or will have. */
uint64_t svi_learner_take_version(svs_learner *l);

#endif
