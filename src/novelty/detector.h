/* detector.h: FOSVM over a stream: every sample is judged, then perhaps learned; conformal p-values come
 * along.
 *
 * Two kinds of samples, by their number alone: every second one calibrates and is never learned, the others
 * may be learned. So the calibration scores are those of samples that the model was not fitted on, chosen
 * without a look at their scores, and p-values keep their promise (calibration.h). One exception: `confirm`
 * samples on end with p <= `clear` are no chance (of normal ones once in clear^-confirm), so calibration
 * samples of such a run are held back until it ends: they count when it was shorter, and are left out
 * otherwise. Else a long disturbance would make the next one like it look usual.
 *
 * The active set (the pool) is shared by the members. A sample that may be learned and lies outside for some
 * member (m < 1 - theta) joins the pool and every member's small problem is solved again; a point leaves
 * `window` learned samples after it joined or was last the nearest to one that lies inside, so that what is
 * seen again and again stays usual: a sensor that stands still, too. When the pool is full the oldest point
 * makes room, but at most one joins for each window / max learned samples: then points live one window, and a
 * sample costs `max` kernel values and a bounded share of a solution.
 *
 * Coordinates and gammas are frozen but for renewals, at samples 32, 64, 128, ... and when they no longer
 * fit: coordinates and gammas come from the calibration rows then, every problem is solved and every
 * calibration row scored afresh. Everything is a function of the calls alone. */
#ifndef SVI_DETECTOR_H
#define SVI_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/novelty.h"

enum svi_novelty_learn { SVI_LEARN_NORMAL = 0, SVI_LEARN_ALL, SVI_LEARN_LABELLED, SVI_LEARN_PERSISTENT };

struct svi_detector_options {
    svs_novelty_options model; /* max >= 2; trim: samples with p <= this are not learned under `normal` and
                                  `persistent` */
    int64_t window;            /* learned samples that a point stays unless it is seen again; 0 = no limit */
    int calibration;           /* scores, >= 1 */
    enum svi_novelty_learn learn;
    double p;        /* a sample with p <= this is novel */
    double clear;    /* p >= o.p; a run of samples with p <= this ... */
    int confirm;     /* ... of so many is a disturbance; >= 1 */
    int64_t persist; /* `persistent`: a change is learned once so many of the last 5/4 as many were novel */
    int d;           /* features, lags included */
};

typedef struct svi_detector svi_detector;

/* What a sample looks like. */
struct svi_judgement {
    double surprise; /* -log membership; 0 before there is a model */
    double novelty;  /* 1 - membership */
    double membership;
    double p;        /* 1 before there are calibration scores */
    double tail;     /* p with its tail extrapolated: see svi_calibration_tail */
    bool novel;      /* p <= the options' p */
    bool calibrates; /* by its number: it will not be learned */
};

/* Why a sample was not learned, for the counters. */
enum svi_lesson {
    SVI_LESSON_CALIBRATED = 0, /* its score joined the calibration, or waits for the end of its run */
    SVI_LESSON_HELD_OUT,       /* it would calibrate, but lies in a disturbance */
    SVI_LESSON_INSIDE,         /* nothing to learn: every member holds it already */
    SVI_LESSON_JOINED,         /* it is a point of the active set now */
    SVI_LESSON_WAITS,          /* outside, but the pool is full and has just changed */
    SVI_LESSON_REFUSED         /* the policy does not let it be learned */
};

svi_detector *svi_detector_new(const struct svi_detector_options *o, svs_error *err);
void svi_detector_free(svi_detector **d);
void svi_detector_reset(svi_detector *d); /* as new */

/* More features: each of the `lags` parts of a row gets `features` columns, the new ones 0 in all that is
 * held. SVS_NO_MEMORY: *d is unchanged. */
svs_code svi_detector_widen(svi_detector **d, int lags, int features, svs_error *err);

/* Judges x (d raw values); changes nothing that a later judgement sees. */
void svi_detector_judge(svi_detector *d, const double *x, struct svi_judgement *out);

/* The sample that was judged last: learned, or not. `labelled`: it has a label. */
enum svi_lesson svi_detector_learn(svi_detector *d, bool labelled);

/* What the features of the sample that was judged last add to its surprise (see svs_novelty_explain), and
 * their usual ranges, the 5 % and 95 % quantiles of the calibration rows: d values each. */
void svi_detector_explain(svi_detector *d, double *adds);
void svi_detector_usual(svi_detector *d, int feature, double *low, double *high);

/* The novelty above which p is at most the options' p; 1 when p cannot get there yet. */
double svi_detector_level(const svi_detector *d);

struct svi_detector_health {
    int64_t seen, joined, left, renewals, held_out;
    int points;      /* in the active set */
    int calibration; /* scores */
    int members;
    double violation; /* of the optimality conditions, the members' largest; costs a product with K each */
};

void svi_detector_health(svi_detector *d, struct svi_detector_health *out);

/* Bytes at most. */
double svi_detector_memory(const struct svi_detector_options *o);

/* Novelty and p of x (d raw values) for who only asks, between two samples: nothing that is kept changes. False:
 * there is no model yet. */
bool svi_detector_peek(svi_detector *d, const double *x, double *novelty, double *p);

/* Other values of p and clear, as in the options. */
void svi_detector_set_levels(svi_detector *d, double p, double clear);

#endif
