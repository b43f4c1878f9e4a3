/* detector.h: FOSVM over a stream: every sample is scored, then perhaps learned, and gets a conformal
 * p-value.
 *
 * There are two kinds of samples, by number alone. Every second one calibrates and is never
 * learned. The others may be learned. Calibration scores therefore belong to samples that the model
 * was not fitted on and that were chosen without looking at their scores. p-values need both
 * (calibration.h). One exception: `confirm` samples in a row with p <= `clear` are not chance
 * (normal samples do this once in clear^-confirm). Calibration samples of such a run are held back
 * until it ends. They count if the run was shorter, and are dropped otherwise. Without this rule a
 * long disturbance would make the next similar one appear normal.
 *
 * The active set (the pool) is shared by the members. A sample that may be learned and lies outside
 * for some member (m < 1 - theta) joins the pool, and every member's small problem is solved again.
 * A point is removed when `window` samples were learned since it joined or was last the nearest one
 * to a sample inside. Recurring states, such as a sensor whose value does not change, therefore
 * stay normal. When the pool is full a new point replaces the oldest, but at most once per window /
 * max learned samples. Points then live one window, and a sample costs `max` kernel values and a
 * bounded share of a solution.
 *
 * p orders samples first by how far a value lies beyond everything its feature ever showed (range.h), then by
 * the surprise.
 *
 * Coordinates and gammas change only at a refresh: at samples 32, 64, 128, ... and when they no longer fit,
 * in slices (struct svi_renewal). A refresh derives them from the calibration rows, solves every problem
 * again and rescores every calibration row. Everything is a function of the calls alone.
 *
 * RULES beyond FOSVM, each justified by measurements on streams against the offline model:
 *
 *  - The pool has a small capacity, and once full it takes a point only now and then. It takes the
 *    sample with the largest surprise among those that waited, not the newest (FOSVM adds the
 *    worst). It does so under `normal` only, since the other policies are meant to learn changes.
 *  - The share `trim` is not excluded before max / 2 samples were learned. Early p-values reflect
 *    what the first rows happened not to contain. A point that is excluded stays outside and would
 *    be excluded again.
 *  - Calibration rows cover the last 4000 samples. A sensor that was quiet for all of them gets a
 *    small scale and dominates when it moves. A refresh therefore keeps at least 0.8 of each scale.
 *
 * A missing value is NaN in raw values and is left out of distances (similarity.h), scales and
 * ranges. A score depends on the sample's own values and on the model alone, whatever is missing.
 * So p stays valid as long as values are missing by the same law in all samples. */
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
    svs_novelty_options model; /* max >= 2; trim: samples with p <= trim are not learned under `normal` and
                                  `persistent` */
    int64_t window;  /* lifetime of a point that is not seen again, in learned samples; 0: no limit */
    int calibration; /* capacity for calibration scores, >= 1 */
    enum svi_novelty_learn learn;
    double p;        /* a sample with a p-value <= p is novel */
    double clear;    /* >= p; a run of samples with p-values <= clear ... */
    int confirm;     /* ... of this length is a disturbance; >= 1 */
    int64_t persist; /* `persistent`: a change is learned once `persist` of the last 5/4 persist samples were
                        novel */
    struct svi_shared_scratch
        *shared; /* NULL: the detector allocates everything at its final size. Otherwise it
                    works in this scratch, its arrays grow, and refreshes run at once */
    int d;       /* features, lags included */
};

typedef struct svi_detector svi_detector;

/* The assessment of a sample. */
struct svi_judgement {
    double surprise; /* -log membership; 0 before there is a model */
    double novelty;  /* 1 - membership */
    double membership;
    double p;        /* p-value; 1 before there are calibration scores */
    double excess;   /* > 0: how far a value lies beyond its feature's range (range.h) ... */
    int feature;     /* ... and of which feature; -1: none. p orders by excess first */
    double above;    /* share of calibration rows strictly above it, below p: see svi_range_place */
    int scores;      /* calibration scores */
    bool disturbed;  /* the samples before it are a disturbance */
    double tail;     /* p with an extrapolated tail: see svi_calibration_tail */
    double extreme;  /* the same, from 30 calibration scores on: see svi_calibration_tail_early */
    bool novel;      /* p <= the options' p */
    bool calibrates; /* by its number: it will not be learned */
    bool unknown;    /* all its values are missing */
};

/* The fate of a sample in svi_detector_learn, for the counters. */
enum svi_learn_result {
    SVI_LEARN_RESULT_CALIBRATED = 0, /* its score joined the calibration, or waits for the end of its run */
    SVI_LEARN_RESULT_HELD_OUT,       /* it would calibrate, but lies in a disturbance or has no values */
    SVI_LEARN_RESULT_INSIDE,         /* nothing to learn: every member contains it already */
    SVI_LEARN_RESULT_JOINED,         /* it is a point of the active set now */
    SVI_LEARN_RESULT_WAITS,          /* outside, but the pool is full and has just changed */
    SVI_LEARN_RESULT_REFUSED         /* the policy does not allow learning it */
};

/* NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_detector *svi_detector_new(const struct svi_detector_options *o, svs_error *err);
void svi_detector_free(svi_detector **d);
void svi_detector_reset(svi_detector *d); /* as new; capacity is kept */

/* is_full: may the next sample need more capacity? Only with shared scratch. reserve: capacity for `more`
 * points and calibration rows beyond the next sample's. SVS_NO_MEMORY: nothing has changed. */
bool svi_detector_is_full(const svi_detector *d);
svs_code svi_detector_reserve(svi_detector *d, int more, svs_error *err);

/* Moves the detector to the scratch of another thread, between two samples. A detector that is packed does
 * not touch the scratch it leaves. SVS_NO_MEMORY: it stays where it was. */
svs_code svi_detector_use_scratch(svi_detector *d, struct svi_shared_scratch *scratch, svs_error *err);

void svi_detector_release_scratch(svi_detector *d); /* packs it; the next call claims the scratch again */

/* Makes the scratch hold this detector's arrays, unpacking them if need be. Most calls do this themselves. */
void svi_detector_claim_scratch(svi_detector *d);

/* More features: each of the `lags` parts of a row gets `features` columns; new ones are 0 in all stored
 * rows. SVS_NO_MEMORY: *d is unchanged. */
svs_code svi_detector_widen(svi_detector **d, int lags, int features, svs_error *err);

/* A column of each of the `lags` parts of a row now belongs to another feature, between two samples: it
 * becomes 0 in all stored rows. Calibration scores stay; points whose value differed from most are removed if
 * they are few. Costs a pass over the calibration rows and a solution of the small problems, at most as much
 * as rebuilding the model from its points. */
void svi_detector_renew(svi_detector *d, int lags, int feature);

/* Marks a column of each of the `lags` parts of a row as a value of a category: 1 in its rows, 0 in others.
 * The next refresh scales it accordingly (coordinates.h). knows_category: is it marked already? */
void svi_detector_category(svi_detector *d, int lags, int feature);
bool svi_detector_knows_category(const svi_detector *d, int lags, int feature);

/* Number of columns that the stream uses, all of them at first; the others are spare and always 0. Distances
 * with missing values are scaled by the former. */
void svi_detector_set_columns(svi_detector *d, int columns);

/* Assesses x (d raw values, NaN = missing); changes nothing that a later assessment depends on. A sample
 * without any value has p 1 and surprise 0, is not learned and does not calibrate. */
void svi_detector_assess(svi_detector *d, const double *x, struct svi_judgement *out);

/* Learns the sample assessed last, or lets it calibrate, or neither. labelled: it has a label. */
enum svi_learn_result svi_detector_learn(svi_detector *d, bool labelled);

/* Instead of that: the sample counts, but is neither learned nor calibrates. */
void svi_detector_pass_over(svi_detector *d);

/* explain: what each feature of the sample assessed last adds to its surprise (svs_novelty_explain), d
 * values. normal_range: the 5 % and 95 % quantiles of a feature over the calibration rows. */
void svi_detector_explain(svi_detector *d, double *adds);
void svi_detector_normal_range(svi_detector *d, int feature, double *low, double *high);

/* The lowest and highest value of a feature, without disturbances and the distant past. False: none yet. */
bool svi_detector_range(const svi_detector *d, int feature, double *low, double *high);

/* The novelty above which p is at most the options' p, by surprise alone; 1 while p cannot be that small. */
double svi_detector_level(const svi_detector *d);

struct svi_detector_health {
    int64_t seen, joined, left, refreshes, held_out;
    int points;      /* in the active set */
    int calibration; /* calibration scores */
    int members;
    double violation; /* largest violation of optimality of any member; costs a product with K each */
};

void svi_detector_health(svi_detector *d, struct svi_detector_health *out);

/* Bytes at most, without the shared scratch. */
double svi_detector_memory(const struct svi_detector_options *o);

/* Novelty and p of x (d raw values) without counting it as a sample, between two samples: no state changes.
 * False: there is no model yet. */
bool svi_detector_peek(svi_detector *d, const double *x, double *novelty, double *p);

/* Between two samples: marks x (d raw values, NaN = missing) as normal, whatever its p. It is learned, or
 * calibrates, and widens the ranges. */
void svi_detector_teach(svi_detector *d, const double *x, bool calibrates);

/* Marks x as not normal: where it is a calibration row, a row of median score replaces it. */
void svi_detector_withdraw(svi_detector *d, const double *x);

/* The arrays whose size depends on confirm and persist. Those for other values are allocated before anything
 * changes. */
struct svi_detector_prepared {
    double *held;   /* `confirm` rows, raw */
    uint8_t *novel; /* ring of flags: 5/4 persist of them, and a spare one */
};

/* prepare allocates; SVS_NO_MEMORY. clear frees what svi_detector_configure did not take. */
svs_code svi_detector_prepare(const svi_detector *d, const struct svi_detector_options *o,
                              struct svi_detector_prepared *prepared, svs_error *err);
void svi_detector_prepared_clear(struct svi_detector_prepared *prepared);

/* Applies p, clear, learn, confirm, persist and model.trim, between two samples, and takes the prepared
 * arrays. The new `confirm` holds for the present run too; of the flags of `persistent` the newest are
 * kept. */
void svi_detector_configure(svi_detector *d, const struct svi_detector_options *o,
                            struct svi_detector_prepared *prepared);

/* The state between two samples: after svi_detector_learn, or before the first. Loads into a
 * detector with the same options that has seen nothing. After a failure it may only be freed. The
 * size is about 8 (c (d + 1) + n d + m (n^2 + s^2) / 2) bytes, for c calibration rows of d values,
 * n points and m members. Each member has s points in its support. Loading costs m s^3 / 6
 * products. */
void svi_detector_archive(struct svi_archive *a, svi_detector *d);

/* Completes a refresh that is running in slices. */
void svi_detector_finish_renewal(svi_detector *d);

/* ---- private: for detector.c, and for tests that look inside */

/* Counters and scalars that change with samples. */
struct svi_detector_state {
    int points;                  /* points of the active set */
    int held_count;              /* calibration samples held back in the present run */
    int64_t run;                 /* samples in a row with p <= clear */
    bool run_novel;              /* one of them was novel */
    int64_t candidates;          /* fosvm 2: samples drawn so far, of m; fosvm 1: 1 while one waits */
    double candidate_membership; /* fosvm 2: the lowest of them; fosvm 1: the surprise of the one waiting */
    int64_t novel_count, novel_sum; /* flags written so far; set ones among those stored */
    int64_t seen, learned, joined, left, refreshes, held_out; /* samples; `left`: points removed */
    int64_t next_refresh, next_check;                         /* values of `seen` */
    int64_t last_join;                                        /* value of `learned` */
    struct svi_random random;
};

/* A model of the present points: everything that a refresh rebuilds. */
struct svi_detector_model {
    struct svi_similarity similarity;
    struct svi_coordinates coordinates;
    svs_novelty_model view; /* the model in public form; its pointers lead into what follows */
    double *at, *norm2;     /* o.model.max points: coordinates (stride each); squared lengths, NaN where a
                               coordinate is missing */
    int lacking;            /* points with a missing coordinate */
    struct svi_active_set set[SVS_MEMBERS_MAX];
};

/* A refresh in slices, one per sample; its result takes effect with the last one. It works on the calibration
 * rows and points of its beginning: points do not change until it ends, and former values of calibration rows
 * that change are kept. Its outcome is thus a function of the state at its beginning, whenever the slices
 * run. A checkpoint stores that state alone, and a restart repeats the slices. A refresh that falls due
 * meanwhile is skipped. */
struct svi_renewal {
    bool on;
    int slices, due, done;    /* slices in all; due by now; done */
    int count, columns;       /* calibration rows and similarity.columns at its beginning */
    struct svi_random random; /* at its beginning */
    struct svi_detector_model next;
    double *surprise;      /* members x rows */
    int capacity, changed; /* capacity for changed rows; their number */
    int32_t *place;        /* places of changed rows; those from `count` on are new */
    double *old;           /* their former raw values */
};

struct svi_detector {
    struct svi_detector_options o;
    int stride, members;
    struct svi_renewal *renewal; /* NULL: refreshes run at once */
    struct svi_detector_model m; /* the present model; similarity and coordinates exist before `ready` */
    uint8_t *category; /* o.d flags: columns of categories; coordinates point to them once one is set */
    struct svi_detector_state now;
    bool ready; /* a refresh has built a model */

    double *own;   /* block that holds m, renewal->next and x .. work; NULL: the shared scratch holds them */
    bool in;       /* the arrays of the block are valid: always with `own`, else while it owns the scratch */
    double *x, *u; /* the sample assessed last: raw, in coordinates */
    double *gap, *kernel;              /* max + 1 values each, of the sample to the points */
    double *work;                      /* scratch of explanations and refreshes */
    int point_capacity, rows_capacity; /* capacity for points and calibration rows */
    double *packed;                    /* shared scratch: the state of its arrays while it is not in */
    double *raw;                       /* raw values of the points */
    int64_t *born,
        *used; /* by point: `learned` when it joined; when it was last nearest to a sample inside */

    struct svi_calibration calibration;
    double *rows; /* raw values of the calibration samples, by their place in its ring */
    struct svi_range range;

    struct svi_detector_prepared run; /* calibration samples of the present run; flags, for `persistent` */
    double *candidate; /* raw; fosvm 2: the worst of the samples drawn; fosvm 1: the worst that waits */
    double member_surprise[SVS_MEMBERS_MAX];
    struct svi_judgement judgement;
};

#endif
