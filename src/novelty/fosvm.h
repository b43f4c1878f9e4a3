/* fosvm.h: FOSVM for one gamma: the active set grown from the rows until none is left outside.
 * svs_novelty_train (svmstream/novelty.h) makes a model of such members. */
#ifndef SVI_FOSVM_H
#define SVI_FOSVM_H

#include "base/pool.h"
#include "base/random.h"
#include "novelty/active_set.h"
#include "novelty/similarity.h"

struct svi_member_fit {
    const svs_novelty_options *options;
    struct svi_similarity similarity;
    struct svi_points rows; /* to fit, in coordinates */
    const double *norm2;    /* rows.count squared lengths; polynomial alone, else NULL */
    double gamma;
    struct svi_random random;
    int member, members; /* for progress */

    struct svi_active_set set; /* out */
    double *support;           /* out: the row of each point of the set, rows.stride apart */
    double *support_norm2;
    double worst; /* out: see svs_novelty_member */
    int64_t rounds, outside;

    struct svi_pool pool; /* of the scratch that does not grow */
    double *kernel;       /* scratch: points x block */
    double *member_of;    /* scratch: block */
    double *row;          /* scratch: room of the set + 1 */
    double *picked;       /* scratch: copies of rows drawn at random */
    double *picked_norm2;
    bool *stuck; /* scratch: block: rows with gaps that stay outside although they joined */
};

/* The options, rows, similarity, gamma and random of `f` are set, all else zero. SVS_NO_MEMORY. Clear in any
 * case. */
svs_code svi_member_fit(struct svi_member_fit *f, svs_error *err);
void svi_member_fit_clear(struct svi_member_fit *f);

#endif
