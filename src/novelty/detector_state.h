/* detector_state.h: what the detector consists of, for detector.c (samples) and renewal.c (frozen things made
 * anew) alone. */
#ifndef SVI_DETECTOR_STATE_H
#define SVI_DETECTOR_STATE_H

#include <math.h>

#include "base/random.h"
#include "novelty/calibration.h"
#include "novelty/coordinates.h"
#include "novelty/detector.h"
#include "novelty/hull.h"
#include "novelty/similarity.h"

struct svi_detector {
    struct svi_detector_options o;
    int stride, members;
    struct svi_similarity similarity;
    struct svi_coordinates coordinates;
    bool ready;             /* a renewal has made a model */
    svs_novelty_model view; /* the model as others see it; points into what follows */

    int points;               /* of the active set; point i is the same in every hull */
    double *raw, *at, *norm2; /* o.model.max points: raw values (d), coordinates (stride), squared lengths */
    int64_t *born,
        *used; /* learned samples before it joined, and before it was last the nearest to one inside */
    struct svi_hull hull[SVS_MEMBERS_MAX];

    struct svi_calibration calibration;
    double *rows; /* raw values of the calibration samples, by their place in its ring */

    double *held; /* confirm rows at most: calibration samples of the present run, raw */
    int held_count;
    int64_t run;    /* samples on end with p <= clear */
    bool run_novel; /* one of them was novel */

    double *x, *u;     /* the sample judged last: raw, in coordinates */
    double *candidate; /* fosvm 2: the worst sample of the present m, raw */
    double candidate_membership;
    int64_t candidates;
    double *gap, *kernel; /* max values each */
    double *work;         /* see svi_detector_work */
    double member_surprise[SVS_MEMBERS_MAX], least_membership;
    struct svi_judgement judgement;

    uint8_t *novel; /* ring of the last flags, for `persistent` */
    int64_t novel_room, novel_count, novel_sum;

    int64_t seen, learned, joined, left, renewals, held_out;
    int64_t next_renewal, next_check, last_join;
    struct svi_random random;
};

/* Doubles of `work`. */
size_t svi_detector_work(const struct svi_detector_options *o, int stride);

/* A surprise to 1e-9, never -0: where states repeat, scores that differ by the rounding of the last solution
 * would be no ties, and a common state could get a small p. Never NaN either: what cannot be computed is
 * surprising. */
static inline double svi_detector_round(double surprise) {
    return isnan(surprise) ? INFINITY : rint(surprise * 0x1p30) * 0x1p-30 + 0.0;
}

/* Surprises of the members for a point in coordinates; also into d->kernel the last member's kernel values.
 * Returns their weighted mean, rounded. */
double svi_detector_score(struct svi_detector *d, const double *u, double *member_surprise);

/* Coordinates, gammas, solutions, shares and calibration scores made anew from what is held. */
void svi_detector_renew(struct svi_detector *d);

/* Coordinates of the points from their raw values. */
void svi_detector_place(struct svi_detector *d);

/* Points the view to what it shows. */
void svi_detector_show(struct svi_detector *d);

/* Have the features moved out of their coordinates? */
bool svi_detector_outgrown(struct svi_detector *d);

#endif
