/* fosvm.h: FOSVM for one gamma: grows the active set from the rows until none is left outside.
 * svs_novelty_train (svmstream/novelty.h) builds a model from such members. */
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
    double *support;           /* out: coordinates of each point of the set, rows.stride apart */
    double *support_norm2;     /* out: their squared lengths; polynomial alone, else 0 */
    double worst;              /* out: lowest membership of a row; see svs_novelty_member */
    int64_t rounds, outside;   /* out: points added; rows with membership below 1 - theta */

    struct svi_pool pool; /* of the scratch of fixed size */
    double *kernel;       /* scratch: kernel values, points x block */
    double *member_of;    /* scratch: memberships of a block */
    double *row;          /* scratch: capacity of the set + 1 */
    double *picked;       /* scratch: copies of rows drawn at random */
    double *picked_norm2;
    bool *stuck; /* scratch, by row of a block: a row with gaps that stays outside although it joined */
};

/* options, rows, norm2, similarity, gamma and random of `f` must be set, the rest zero. SVS_NO_MEMORY. Call
 * svi_member_fit_clear in any case. */
svs_code svi_member_fit(struct svi_member_fit *f, svs_error *err);
void svi_member_fit_clear(struct svi_member_fit *f);

#endif
