/* model.h: how a novelty model is put together, by training and by the reader of model files. */
#ifndef SVI_NOVELTY_MODEL_H
#define SVI_NOVELTY_MODEL_H

#include "novelty/coordinates.h"
#include "svmstream/novelty.h"

/* Room of a new member, to be filled. */
struct svi_member_room {
    double *support; /* count x stride, zeroed */
    double *norm2, *z;
};

/* A model of d features without members: center 0 and inverse 1 when `scale`, NULL otherwise; names (may be
 * NULL) are copied; lags 1, the rest is zero. NULL: no memory. Free with svs_novelty_free. */
svs_novelty_model *svi_novelty_model_new(int d, bool scale, const char *const *names, svs_error *err);

/* Fills center and inverse of a scaled model. */
void svi_novelty_model_place(svs_novelty_model *m, const double *center, const double *inverse);

/* Appends a member of `count` support vectors; its other figures are the caller's to set. SVS_LIMIT,
 * SVS_NO_MEMORY. */
svs_code svi_novelty_model_member(svs_novelty_model *m, int count, struct svi_member_room *room,
                                  svs_error *err);

/* The model's coordinates: a view. */
static inline struct svi_coordinates svi_novelty_coordinates(const svs_novelty_model *m) {
    return (struct svi_coordinates){m->d, m->stride, (double *)m->center, (double *)m->inverse,
                                    svi_kernels_get(SVS_ISA_BEST)};
}

/* Surprise of `count` rows that are in coordinates already, of one member alone. SVS_NO_MEMORY. */
svs_code svi_novelty_member_surprise(const svs_novelty_model *m, int member, const double *points,
                                     int64_t count, double *surprise, svs_error *err);

#endif
