/* detector.h: FOSVM over a stream: every sample is judged, then perhaps learned; conformal p-values come
 * along.
 *
 * Two kinds of samples, by their number alone: every second one calibrates and is never learned, the others
 * may be learned. So the calibration scores are those of samples that the model was not fitted on, chosen
 * without a look at their scores, and p-values keep their promise (calibration.h). One exception: `confirm`
 * samples in a row with p <= `clear` are not chance (of normal ones once in clear^-confirm), so calibration
 * samples of such a run are held back until it ends: they count when it was shorter, and are left out
 * otherwise. Else a long disturbance would make the next one like it look usual.
 *
 * The active set (the pool) is shared by the members. A sample that may be learned and lies outside for some
 * member (m < 1 - theta) joins the pool and every member's small problem is solved again; a point leaves
 * `window` learned samples after it joined or was last the nearest to one that lies inside, so that what is
 * seen again and again stays usual: a sensor whose value does not change, too. When the pool is full the
 * oldest point makes room, but at most one joins for each window / max learned samples: then points live one
 * window, and a sample costs `max` kernel values and a bounded share of a solution.
 *
 * p goes by the surprise and, before it, by how far a value lies beyond all that its feature ever showed
 * (range.h).
 *
 * Coordinates and gammas change only when the detector is refreshed: at samples 32, 64, 128, ... and when
 * they no longer fit, and then in slices (struct svi_renewal). They come from the calibration rows then;
 * every problem is solved and every calibration row scored again. Everything is a function of the calls
 * alone.
 *
 * RULES beyond FOSVM, each for a reason that was measured on streams beside their offline model:
 * - the pool has room for few, and takes one now and then once it is full: of those that waited the one that
 *   surprised most, not the one that came just then (FOSVM adds the worst); under `normal` alone, as the
 * others are to learn what has changed;
 * - before max / 2 samples were learned the share `trim` is not left out: p then says what the first rows
 * happened not to show, and what is left out for that stays outside and is left out again;
 * - the calibration rows show the last 4000 samples: a sensor that was quiet so long gets a small scale and
 * drowns the others when it moves, so at a refresh a scale keeps 0.8 of what it was.
 *
 * A missing value is NaN wherever raw values are, and left out of distances (similarity.h), scales and
 * ranges. What a sample scores depends on its own values and on the model alone, whatever is missing where;
 * so p keeps its promise as long as values are missing after the same law in all samples. */
#ifndef SVI_DETECTOR_H
#define SVI_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "base/shared_scratch.h"
#include "novelty/active_set.h"
#include "novelty/calibration.h"
#include "novelty/coordinates.h"
#include "novelty/range.h"
#include "novelty/similarity.h"
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
    int confirm;     /* ... of this many samples is a disturbance; >= 1 */
    int64_t persist; /* `persistent`: a change is learned once `persist` of the last 5/4 persist samples were
                        novel */
    struct svi_shared_scratch *shared; /* NULL: it has arrays of its own for all that it may come to hold.
                                       Else it works there, refreshes at once, and its arrays grow */
    int d;                             /* features, lags included */
};

typedef struct svi_detector svi_detector;

/* What a sample looks like. */
struct svi_judgement {
    double surprise; /* -log membership; 0 before there is a model */
    double novelty;  /* 1 - membership */
    double membership;
    double p;        /* 1 before there are calibration scores */
    double excess;   /* > 0: how far a value lies beyond its feature's range, see range.h ... */
    int feature;     /* ... and which feature's: p goes by that first */
    double above;    /* share of the calibration that is above it, below p: see svi_range_place */
    int scores;      /* of the calibration */
    bool disturbed;  /* the samples before it are a disturbance */
    double tail;     /* p with its tail extrapolated: see svi_calibration_tail */
    double extreme;  /* the same, from 30 calibration scores on: see svi_calibration_tail_early */
    bool novel;      /* p <= the options' p */
    bool calibrates; /* by its number: it will not be learned */
    bool unknown;    /* all its values are missing */
};

/* Why a sample was not learned, for the counters. */
enum svi_learn_result {
    SVI_LEARN_RESULT_CALIBRATED = 0, /* its score joined the calibration, or waits for the end of its run */
    SVI_LEARN_RESULT_HELD_OUT,       /* it would calibrate, but lies in a disturbance or says nothing */
    SVI_LEARN_RESULT_INSIDE,         /* nothing to learn: every member holds it already */
    SVI_LEARN_RESULT_JOINED,         /* it is a point of the active set now */
    SVI_LEARN_RESULT_WAITS,          /* outside, but the pool is full and has just changed */
    SVI_LEARN_RESULT_REFUSED         /* the policy does not let it be learned */
};

svi_detector *svi_detector_new(const struct svi_detector_options *o, svs_error *err);
void svi_detector_free(svi_detector **d);
void svi_detector_reset(svi_detector *d); /* as new */

/* May the next sample need more capacity than there is? Only in a shared room. Capacity for it, and for that
 * many more points and calibration rows. SVS_NO_MEMORY: nothing has changed. */
bool svi_detector_is_full(const svi_detector *d);
svs_code svi_detector_reserve(svi_detector *d, int more, svs_error *err);

/* It goes on in that room, with another thread: between two samples. One that rests does not look at the room
 * that it leaves. SVS_NO_MEMORY: it stays. */
svs_code svi_detector_use_scratch(svi_detector *d, struct svi_shared_scratch *scratch, svs_error *err);

void svi_detector_release_scratch(svi_detector *d); /* it is in no room until its next call */

/* What it holds is where it works, for the functions that want it so. */
void svi_detector_claim_scratch(svi_detector *d);

/* More features: each of the `lags` parts of a row gets `features` columns, the new ones 0 in all that is
 * held. SVS_NO_MEMORY: *d is unchanged. */
svs_code svi_detector_widen(svi_detector **d, int lags, int features, svs_error *err);

/* A feature of each of the `lags` parts of a row changes hands, between two samples: it is 0 in all that is
 * held, and what comes in it is new. Scores of the calibration stay what they were; points that had another
 * value than most leave, if they are few. Costs a look at the calibration rows and a solution of the small
 * problems; at most as much as a new model of the points. */
void svi_detector_renew(svi_detector *d, int lags, int feature);

/* A feature of each of the `lags` parts of a row belongs to a value of a category: 1 in its rows, 0 in
 * others. The next refresh goes by it (coordinates.h). */
void svi_detector_category(svi_detector *d, int lags, int feature);
bool svi_detector_knows_category(const svi_detector *d, int lags, int feature); /* it was told */

/* So many of the columns are those of the stream, at first all; the others are room for more and hold 0
 * always. What is missing counts against the former. */
void svi_detector_set_columns(svi_detector *d, int columns);

/* Judges x (d raw values, NaN where one is missing); changes nothing that a later judgement sees. A sample
 * all of whose values are missing says nothing: its p is 1, its surprise 0, and it is neither learned nor
 * does it calibrate. */
void svi_detector_assess(svi_detector *d, const double *x, struct svi_judgement *out);

/* The sample that was judged last: learned, or not. `labelled`: it has a label. */
enum svi_learn_result svi_detector_learn(svi_detector *d, bool labelled);

/* What the features of the sample that was judged last add to its surprise (see svs_novelty_explain), and
 * their usual ranges, the 5 % and 95 % quantiles of the calibration rows: d values each. */
void svi_detector_explain(svi_detector *d, double *adds);
void svi_detector_normal_range(svi_detector *d, int feature, double *low, double *high);

/* What a feature has shown at all, but for disturbances and what is long ago. False: nothing yet. */
bool svi_detector_range(const svi_detector *d, int feature, double *low, double *high);

/* The novelty above which p is at most the options' p, by the calibration's surprises alone; 1 when p cannot
 * get there yet. */
double svi_detector_level(const svi_detector *d);

struct svi_detector_health {
    int64_t seen, joined, left, refreshes, held_out;
    int points;      /* in the active set */
    int calibration; /* scores */
    int members;
    double violation; /* of the optimality conditions, the members' largest; costs a product with K each */
};

void svi_detector_health(svi_detector *d, struct svi_detector_health *out);

/* Bytes at most. */
double svi_detector_memory(const struct svi_detector_options *o);

/* Novelty and p of x (d raw values) without counting it as a sample, between two samples: nothing that is
 * kept changes. False: there is no model yet. */
bool svi_detector_peek(svi_detector *d, const double *x, double *novelty, double *p);

/* Between two samples: x (d raw values, NaN where one is missing) is usual, whatever its p says. It is
 * learned, or calibrates, and widens the ranges. */
void svi_detector_teach(svi_detector *d, const double *x, bool calibrates);

/* Likewise: x is not usual. Where it calibrates, a row of median score takes its place. */
void svi_detector_withdraw(svi_detector *d, const double *x);

/* What goes by confirm and persist; room for other values of them is taken before anything changes. */
struct svi_detector_prepared {
    double *held;   /* `confirm` rows, raw */
    uint8_t *novel; /* a ring of flags: 5/4 of `persist`, and one */
};

/* SVS_NO_MEMORY: there is none. `clear` frees what was not used. */
svs_code svi_detector_prepare(const svi_detector *d, const struct svi_detector_options *o,
                              struct svi_detector_prepared *prepared, svs_error *err);
void svi_detector_prepared_clear(struct svi_detector_prepared *prepared);

/* Other values of p, clear, learn, confirm, persist and model.trim, between two samples; the room is used up.
 * A run that is under way is one of the new `confirm`; of the flags of `persistent` the last stay that there
 * is room for. */
void svi_detector_configure(svi_detector *d, const struct svi_detector_options *o,
                            struct svi_detector_prepared *prepared);

/* The state between two samples: after svi_detector_learn, or before the first. Loading goes into a detector
 * made with the same options that has seen nothing; when it fails the detector is fit to be freed, nothing
 * else. Bytes about, for n points of which s are in the support of each of m members, and c calibration rows
 * of d values: 8 (c (d + 1) + n d + m (n^2 + s^2) / 2). Loading costs m s^3 / 6 products. */
void svi_detector_archive(struct svi_archive *a, svi_detector *d);

/* A refresh that goes on in slices is brought to its end. */
void svi_detector_finish_renewal(svi_detector *d);

/* ---- private: for detector.c, and for tests that look inside */

/* What changes with samples, but for the arrays. */
struct svi_detector_state {
    int points;                  /* of the active set */
    int held_count;              /* calibration samples held back in the present run */
    int64_t run;                 /* samples in a row with p <= clear */
    bool run_novel;              /* one of them was novel */
    int64_t candidates;          /* fosvm 2: samples of the present m so far; fosvm 1: 1 when one waits ... */
    double candidate_membership; /* ... and the worst one's; fosvm 1: its surprise */
    int64_t novel_count, novel_sum; /* flags so far; how many of those held are set */
    int64_t seen, learned, joined, left, refreshes, held_out;
    int64_t next_refresh, next_check, last_join;
    struct svi_random random;
};

/* A model of the points that there are: what a refresh makes again. */
struct svi_detector_model {
    struct svi_similarity similarity;
    struct svi_coordinates coordinates;
    svs_novelty_model view; /* the model as others see it; points into what follows */
    double *at, *norm2; /* o.model.max points: coordinates (stride), squared lengths: NaN where a coordinate
                           is missing ... */
    int lacking;        /* ... the number of such points */
    struct svi_active_set set[SVS_MEMBERS_MAX];
};

/* A refresh in slices, one a sample; what it makes takes effect with the last one. It goes by the calibration
 * rows and points of when it began: the points wait for its end, of calibration rows that change the old ones
 * are kept. So its outcome is a function of the state at its begin, whenever slices are done, and a
 * checkpoint needs to hold no more than that: a restart does them again. One that is due meanwhile is left
 * out. */
struct svi_renewal {
    bool on;
    int slices, due, done;    /* in all; of these must be done by now; are done */
    int count, columns;       /* calibration rows and similarity.columns when it began */
    struct svi_random random; /* ... */
    struct svi_detector_model next;
    double *surprise;      /* of each member for each row */
    int capacity, changed; /* for rows that change; rows that did ... */
    int32_t *place;        /* ... their places; those from `count` on are new ... */
    double *old;           /* ... and their raw values before */
};

struct svi_detector {
    struct svi_detector_options o;
    int stride, members;
    struct svi_renewal *renewal; /* NULL: refreshes are done at once */
    struct svi_detector_model m; /* of now; similarity and coordinates are there before a model is */
    uint8_t *category; /* o.d flags: columns of categories; the coordinates know of them once there is one */
    struct svi_detector_state now;
    bool ready; /* a refresh has made a model */

    double
        *own; /* the block of m, of what a refresh makes and of x to work; NULL: it is in the shared room */
    bool in;  /* they are in place: always with `own`, else while it owns the shared room */
    double *x, *u;                     /* the sample judged last: raw, in coordinates */
    double *gap, *kernel;              /* max values each */
    double *work;                      /* scratch of explanations and refreshes */
    int point_capacity, rows_capacity; /* points and calibration rows that there is room for */
    double *packed; /* of one in a shared room: what of the points lies there, while it is not in */
    double *raw;    /* raw values of the points */
    int64_t *born,
        *used; /* learned samples before it joined, and before it was last the nearest to one inside */

    struct svi_calibration calibration;
    double *rows; /* raw values of the calibration samples, by their place in its ring */
    struct svi_range range;

    struct svi_detector_prepared run; /* calibration samples of the present run; flags, for `persistent` */
    double *candidate; /* fosvm 2: the worst sample of the present m; fosvm 1: of those that wait; raw */
    double member_surprise[SVS_MEMBERS_MAX];
    struct svi_judgement judgement;
};

#endif
