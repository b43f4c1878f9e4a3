/* member.h: FOSVM for one gamma: the active set grown from the rows until none is left outside. */
#ifndef SVI_MEMBER_H
#define SVI_MEMBER_H

#include "base/random.h"
#include "novelty/hull.h"
#include "novelty/similarity.h"

struct svi_member_fit {
    const svs_novelty_options *options;
    struct svi_similarity similarity;
    struct svi_points rows; /* to fit, in coordinates */
    const double *norm2;    /* rows.count squared lengths; polynomial alone, else NULL */
    double gamma;
    struct svi_random random;
    int member, members; /* for progress */

    struct svi_hull hull; /* out */
    int64_t *active;      /* out: row of each point of the hull; room of the hull */
    double *support;      /* out: those rows, rows.stride apart */
    double *support_norm2;
    double worst; /* out: see svs_novelty_member */
    int64_t rounds, outside;

    double *kernel;    /* scratch: points x block */
    double *member_of; /* scratch: block */
    double *row;       /* scratch: room of the hull + 1 */
    double *picked;    /* scratch: copies of rows drawn at random */
    double *picked_norm2;
    int64_t *picks;
};

/* The options, rows, similarity, gamma and random of `f` are set, all else zero. SVS_NO_MEMORY. Clear in any
 * case. */
svs_code svi_member_fit(struct svi_member_fit *f, svs_error *err);
void svi_member_clear(struct svi_member_fit *f);

#endif
