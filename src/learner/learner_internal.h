/* learner_internal.h: the structure of an svs_learner and the functions that its files share.
 *
 *  - learner.c: the operations (step, label, forget, grow, reset), the model in raw units, health
 *  - learner_slide.c: the group of operations of a step: add one sample, remove those that leave
 *  - learner_rebuild.c: the guard: when and how P and w are rebuilt
 *  - learner_ridge.c: the ridge, which fades and is renewed with forgetting
 *  - learner_features.c: added features, which of them are unscaled, and which take part already
 *  - learner_renew.c: reassigns a feature that no held sample has
 *  - learner_configure.c: new options: rebuilds the model from the samples held
 *  - learner_refine.c: corrects w by the residual of the rows, where P has lost digits
 *  - learner_held.c: the samples held: numbers, the newest row, means
 *  - scratch.c: the memory in which a learner works, alone or in turns with others
 *  - learner_classes.c: labels and class indices, rows of W
 *  - learner_weights.c: the factors by which the samples of a class count
 *  - learner_check.c: compares w and P with a fresh solve
 *  - learner_archive.c: saves and loads the state
 *  - learner_prior.c: the samples of other learners as a part of the ridge
 *  - leave_one_out.c: scores each sample held by the model without it, for a grid of C
 *
 * Weights "in hats": with forgetting, a sample learned when `order` samples had been learned before weighs
 * s forget^-(order - base) instead of decaying everything else; true weight = hat / svi_hat(1, now). */
#ifndef SVI_LEARNER_INTERNAL_H
#define SVI_LEARNER_INTERNAL_H

#include "base/exact_sum.h"
#include "learner/scratch.h"
#include "learner/snapshot.h"
#include "learner/plain_sums.h"
#include "learner/prior.h"
#include "svmstream/learner.h"
#include "learner/gram.h"
#include "learner/recursion.h"
#include "learner/ring.h"
#include "learner/scaler.h"

/* Sums of single features over the window, for their means; only of features whose mean was requested. */
struct svi_kept_sums {
    struct svi_kept_sum {
        int feature;
        struct svi_exact_sum sum;
    } * of;
    int count;
    int64_t capacity;
    int32_t *place; /* by feature: index in `of` plus 1, 0 = none; `places` entries; NULL before the first */
    int places;
};

/* Weight of a sample: the producer's, and the factor of its class. The sample counts with their product. */
struct svi_weight {
    double own, factor;
};

#define SVI_REFINE_ROWS 32

struct svi_learner_scratch {
    svs_learner *owner; /* the learner whose state is here; NULL: none */
    svs_alsvm *m;       /* its P and W; NULL: not allocated yet */
    struct svi_energy energy;
    int32_t capacity[3];            /* of vectors and energies, of rows of W, of features + 1 */
    size_t used;                    /* entries of vectors and energies that may differ from 0 */
    double *from;                   /* padded */
    double *vector[4];              /* padded */
    double *target[2], *scores, *b; /* one value for each row of W */
    double *W, *gram_copy;          /* rows x (features + 1), (features + 1)^2 */
    double *residual;               /* one padded vector for each row of W */
    struct svi_gram gram;
};

/* See learner_prior.h. */
struct svi_learner_prior {
    struct svi_prior_sums *sums;
    struct svi_prior *const *newest; /* *newest NULL: no prior yet */
    struct svi_prior *in;            /* the prior that P contains; NULL: none */
    double worth;                    /* samples as which it counts */
    int placed, capacity;            /* features with an identity; capacity for them */
    bool centered;                   /* `center` is computed from samples */
    bool lent;                       /* its samples are not counted, and it owns `key` */
    int32_t mean_of;                 /* samples whose mean is counted; 0: none is */
    struct svi_prior_key *key; /* its description for the other learners, as of the last assessment of its
                                * samples, and the bounds by which these were assessed */
    double *center, *mean;     /* by feature: the center of the samples; the mean that is counted */
    uint16_t *from;            /* by feature: its coordinate in `in`; that in the sums is in `key` */
};

/* Estimated loss of accuracy of w since the last pass over the rows, which computes its residual
 * (learner_refine.c). */
struct svi_refine {
    double lost;       /* by removals, plus what the last pass left; relative to w */
    double residual;   /* of the bias's equation at the last measurement, for a sample of weight 1 */
    double now, worst; /* condition at the last measurement, and its maximum since the last pass */
    double off, moved; /* at the last measurement: relative error of P, and distance that w has moved */
    int64_t looked;    /* arrivals at the last pass or rebuild */
    int64_t looks;     /* passes since the last rebuild */
    int64_t wait;      /* changes until the next measurement */
    bool fresh;        /* P is new and the system ill-conditioned: a pass is due */
};

struct svs_learner {
    svs_options o;
    const struct svi_kernels *kernels;
    struct svi_learner_scratch *work;
    bool shared, in;        /* other learners use `work` too; this one is its owner now */
    struct svi_packed form; /* while not in: form of its state in `packed` */
    int packed_rows;        /* rows of W for which `packed` has capacity */
    bool store_inside;      /* the members marked "in store" are in the block of the learner, after it */
    double *packed;         /* in store: energies, then svi_alsvm_pack; NULL if it never shared */
    double nu;
    int d;                /* features that take part; the recursion has d + 1 coordinates */
    int declared;         /* features that exist: those from d on were 0 in every sample so far */
    int feature_capacity; /* features that fit rows, scaler and buffers */
    struct svi_scaler scaler;
    struct svi_ring window, waiting;
    struct svi_snapshot *snapshot; /* of the window, being copied; NULL = none */
    struct svi_gram *own_gram;     /* NULL: it uses the gram of the scratch */
    bool bucket; /* the gram has every sample learned since arrival `bucket_from`, or svi_bucket_gather
                  * will add them */
    int64_t bucket_from;
    struct svi_kept_sums *kept;      /* NULL until a mean is requested */
    struct svi_learner_prior *prior; /* NULL: no prior */
    bool relaxed;                    /* svi_learner_relax */
    bool drifts;                     /* a removal has cost P digits since the last rebuild */
    struct svi_refine refine;

    svs_value *classes; /* in store */
    char *next_name;    /* reserved name of the next class, or NULL; the other classes own theirs */
    int class_capacity; /* of classes and class_held */
    int class_count, last_class;
    svs_class_weight *given; /* copy of o.class_weight, followed by the names; NULL = none */
    double *class_held; /* balanced: number of held samples of each class; without a window, of all samples,
                           reduced by forgetting; class_capacity values, in store. NULL = not balanced */
    double *targets_in; /* total weight by class of the samples in the model; regression: [0] is sum s t; in
                           store */
    double *ridge; /* per coordinate, in hats, in store: the ridge is sum ridge_j v_j v_j' (forget < 1 only;
                      NULL otherwise) */

    /* Pointers into the scratch, valid while `in` (svi_claim). */
    svs_alsvm *m;
    struct svi_gram *gram; /* window 0: all samples; else the bucket before a planned rebuild, and scratch */
    struct svi_energy *energy; /* of the samples in the model */
    double *from;              /* padded: w when it was last known to be exact (learner_refine.c) */
    double **target;           /* 2 vectors, one value for each row of W */
    double **scratch;          /* 4 padded vectors */
    double *scores;
    double *gram_copy; /* (d + 1)^2: destroyed by each solve */
    double *W, *b;     /* rows x (d + 1) and rows: right-hand sides; the model in raw units on request */

    int64_t arrivals;     /* labelled samples so far */
    int64_t next_rebuild; /* number of the arrival after which the next planned rebuild is due */
    int64_t held_learned; /* samples of the window that are in the model */
    int64_t order, base;  /* learned samples; those before the present unit of hats */
    uint64_t version;
    svs_health health;
};

/* ---- learner.c */
/* Checks the options of a learner with d features. SVS_SETTING, with the reason. */
svs_code svi_learner_check_options(const svs_options *o, int d, svs_error *err);

/* ---- learner_classes.c */
int svi_class_find(svs_learner *l, svs_value y); /* index of a class; -1: unknown */
int svi_class_add(svs_learner *l, svs_value y);  /* its index; capacity must have been reserved */
/* Adds a class to the table alone, which has capacity. */
int svi_class_insert(svs_learner *l, svs_value y);
/* Frees the name of a class. */
void svi_class_forget(svs_value *y);
/* Reserves, so that adding y cannot fail. SVS_NO_MEMORY; likewise the next two. */
svs_code svi_class_reserve(svs_learner *l, svs_value y, svs_error *err);
/* Capacity in the table for one more class, and for its name. */
svs_code svi_class_table_reserve(svs_learner *l, svs_value y, svs_error *err);
/* Capacity for `count` classes in all parts but the table. */
svs_code svi_class_reserve_parts(svs_learner *l, int count, svs_error *err);
#define SVI_CLASSES_FIRST 2 /* capacity of the table of a new learner */
/* Number of rows of W. */
static inline int svi_rows(const svs_learner *l) {
    return svi_rows_of(l->class_count);
}
/* The +-1 targets of a class, or the regression target. */
static inline void svi_targets(const svs_learner *l, int label, double target, double *t) {
    static const double side[] = {-1, 1};
    const int rows = svi_rows(l);
    if (rows == 1) {
        t[0] = l->o.task == SVS_REGRESS ? target : side[label == 1]; /* one row: the second class */
        return;
    }
    for (int k = 0; k < rows; k++)
        t[k] = side[label == k];
}

/* ---- learner_weights.c */
/* Sets up the class weights of the options; the given weights are copied. SVS_SETTING, SVS_NO_MEMORY. */
svs_code svi_class_weights_init(svs_learner *l, svs_error *err);
/* With class weights: the weight of a sample labelled y now, with its own weight `own`; label: index of its
 * class, -1 = a new one. SVS_BAD_WEIGHT: the product is out of range. Changes nothing. */
svs_code svi_class_weigh(const svs_learner *l, svs_value y, int label, double own, struct svi_weight *out,
                         svs_error *err);
/* Counts a labelled sample that was added, and a held one that was removed. */
void svi_class_count_change(svs_learner *l, const svs_step *out);
void svi_class_left(svs_learner *l, int label);
/* Balanced, with a window: gives the samples held, except those of small classes, the present factors. P must
 * then be rebuilt from the rows. */
void svi_class_weigh_again(svs_learner *l);
/* Counts the samples held again; without a window, sets the counts to 0. */
void svi_class_recount(svs_learner *l);
/* Bytes. */
double svi_class_weights_memory(const svs_options *o);

/* ---- learner_features.c */
/* Declares d features and reserves for them; those that take part stay as they are. SVS_NO_MEMORY. */
svs_code svi_learner_features_declare(svs_learner *l, int d, svs_error *err);
/* Excludes all features until their first value; only if nothing was learned and nothing waits. */
void svi_learner_features_wait(svs_learner *l);
/* Lets the first d declared features take part from now on. SVS_NO_MEMORY. */
svs_code svi_learner_features_widen(svs_learner *l, int d, svs_error *err);
/* Before a row is learned or waits: lets the features up to its last value take part. *widened: the recursion
 * has grown, which loses the content of its input 0. SVS_NO_MEMORY. */
svs_code svi_learner_features_wake(svs_learner *l, const double *x, bool *widened, svs_error *err);

static inline size_t svi_learner_features_vector_capacity(int features) {
    return (size_t)svi_round_up(features + 1, 48);
}

/* ---- learner_store.c */
/* Capacity in the store for this number of features, rows of W (to be packed) and classes. If the packed
 * state has to move it is not copied, so the learner must be in then. SVS_NO_MEMORY. */
svs_code svi_learner_store_reserve(svs_learner *l, int features, int rows, int classes, bool packs,
                                   svs_error *err);
/* A new learner with these options and otherwise zeros, and its store in the same block; NULL: no memory. */
svs_learner *svi_learner_store_learner(const svs_options *o, int features, bool packs);
/* Moves the store to its own block, so that another learner can take it over. SVS_NO_MEMORY. */
svs_code svi_learner_store_apart(svs_learner *l, svs_error *err);
void svi_learner_store_free(svs_learner *l);
double svi_learner_store_bytes(const svs_learner *l);
double svi_learner_store_memory(const svs_options *o, int d, int classes); /* bytes at most */
/* Doubles of `packed`. */
static inline size_t svi_packed_capacity(int features, int rows) {
    return svi_alsvm_packed(features + 1, rows) + 5 * ((size_t)features + 1);
}

/* ---- scratch.c */
/* Brings the learner's state into its scratch: the packed one, or that of a new learner. */
void svi_learner_restore_state(svs_learner *l);
void svi_learner_restore_empty(svs_learner *l);
/* Required before anything in the scratch is read or changed. */
static inline void svi_claim(svs_learner *l) {
    if (!l->in)
        svi_learner_restore_state(l);
}
/* Capacity of the scratch for this number of features, rows of W and sums of classes; the learner is in. */
svs_code svi_learner_reserve(svs_learner *l, int features, int rows, int groups, svs_error *err);
/* Leaves the scratch for good; frees it if it is the learner's own. */
void svi_learner_disown_scratch(svs_learner *l);
/* Are the sums part of the state, because rows cannot reproduce them? */
static inline bool svi_gram_lasts(const svs_options *o) {
    return o->window == 0 || o->forget < 1;
}
/* Is each learned sample added to the sums at once? */
static inline bool svi_gathers(const svs_learner *l) {
    return l->o.window == 0 || (l->bucket && (!l->shared || l->own_gram));
}

/* ---- learner_slide.c */
/* Learns a sample with raw row x (not inside the window ring), whose z is in input 0 already and whose label
 * or target is in *out, and removes the samples that leave. Everything has been reserved. The weight is
 * passed as two numbers: as a struct it would be stored in two parts and loaded as one, which stalls the
 * processor. */
void svi_slide(svs_learner *l, const double *x, const svs_value *id, double own, double factor, double time,
               svs_step *out);
/* The slot of a sample for the window, except its time; a new label gets the next index. */
static inline struct svi_slot svi_slot_of(const svs_learner *l, svs_value id, const svs_step *out,
                                          struct svi_weight weight) {
    return (struct svi_slot){.weight = weight.own,
                             .factor = weight.factor,
                             .target = out->target,
                             .order = l->order,
                             .label =
                                 l->o.task == SVS_REGRESS || out->label >= 0 ? out->label : l->class_count,
                             .id = id};
}
/* Removes samples older than window_seconds; returns their number. */
int svi_expire(svs_learner *l, double time);
/* Removes one live slot of the window from the model and marks it dead. */
void svi_remove_slot(svs_learner *l, int32_t slot);
/* The weight of a sample in hats, relative to base. */
double svi_hat(const svs_learner *l, double weight, int64_t order);
/* Writes z = T (1, x) to input buffer i of the recursion; returns |z|^2. */
double svi_transform_into(svs_learner *l, int i, const double *x);
/* The scores of the sample in input 0, one for each row of W. */
void svi_scores_now(const svs_learner *l, double *scores);

/* The columns that the window of a new learner has (SVI_RING_HAS bits). */
unsigned svi_learner_columns(const svs_options *o);

/* ---- learner_held.c */
/* Adds a row of the window to the kept sums (sign 1), or subtracts it (-1). */
void svi_kept_add(struct svi_kept_sums *k, const double *x, int sign);
/* Drops the kept sums until a mean is requested again. */
void svi_kept_clear(svs_learner *l);

/* ---- learner_rebuild.c */
/* Rebuilds P and w in the coordinates of a new epoch. */
void svi_rebuild(svs_learner *l, bool planned);
/* Rebuilds P and w from the rows in the coordinates of the present epoch: only last digits change. */
void svi_heal(svs_learner *l);
/* Window 0: rebuilds P and w from the sums in the coordinates of the present epoch, for another ridge. */
void svi_solve_sums(svs_learner *l);
/* Fills the bucket, if its samples were not added one by one. */
void svi_bucket_gather(svs_learner *l);
/* Without samples in the model: P and w from the ridge, in the present coordinates. */
void svi_solve_empty(svs_learner *l);
/* To be called after the l->arrivals-th labelled arrival: does the work planned for that number. */
void svi_guard(svs_learner *l);
/* The right-hand sides r_k of all rows of W, from the sums of the gram. */
void svi_right_hand_sides(const svs_learner *l, double *r);

/* ---- learner_ridge.c */
/* Vector v_j of the ridge in the present coordinates, and its weight. */
void svi_ridge_vector(const svs_learner *l, int j, double *v);
double svi_ridge_weight(const svs_learner *l, int j);
/* out = ridge matrix x u, in hats. */
void svi_ridge_apply(const svs_learner *l, const double *u, double *out);
/* Sets the ridge and P to those before the first sample; everything else has been reset. */
void svi_ridge_reset(svs_learner *l);
/* After a sample was learned: renews the ridge of the coordinates whose turn it is. False: P must be rebuilt.
 */
bool svi_ridge_refresh(svs_learner *l);
/* Coordinate j becomes a new one: returns the weight of its ridge, which the caller puts into P. */
double svi_ridge_begin_alone(svs_learner *l, int j);
/* After growth from `old` features: sets the ridge of the new coordinates, and a new period if D requires
 * one. */
void svi_ridge_grow(svs_learner *l, int old);

/* ---- learner_prior.c */
/* The matrix of the prior in the present coordinates (0 is the bias): its entry i, j, 0 without a prior; out
 * += matrix x u; r += the right-hand side of row k of W. */
double svi_prior_entry(const svs_learner *l, int i, int j);
void svi_prior_apply(const svs_learner *l, const double *u, double *out);
void svi_prior_right(const svs_learner *l, int k, double *r);
/* For the first sample x of a learner that has a prior to begin with (waits). begin adds the
 * classes of the prior. If the sample's class is new (`fresh`), it reserves one more.
 * SVS_NO_MEMORY: may be tried again. solve makes the first epoch. */
bool svi_prior_waits(const svs_learner *l);
svs_code svi_prior_begin(svs_learner *l, bool fresh, svs_error *err);
void svi_prior_solve(svs_learner *l, const double *x);
/* Before a rebuild: adopts the newest prior, and the center of the samples held that follows from it. */
void svi_prior_renew(svs_learner *l);
/* Notes that P contains no prior any more. */
void svi_prior_drop(svs_learner *l);
/* After features or classes were added: rebuilds P and w. */
void svi_prior_follow(svs_learner *l);
/* Capacity to count samples with this label. SVS_NO_MEMORY. */
svs_code svi_prior_reserve(svs_learner *l, svs_value y, svs_error *err);
/* Before the first sample is learned, if there is no prior yet. */
void svi_prior_first(svs_learner *l, const double *x);
/* Counts a learned sample; uncounts a slot that is removed. */
void svi_prior_add_sample(svs_learner *l, const double *x, double weight, const svs_step *out);
void svi_prior_left(svs_learner *l, int32_t slot);
/* After a sample was put into the window: if half of the samples held were excluded, assesses all of them
 * again. */
void svi_prior_learned(svs_learner *l);
/* lend: gives `fresh`, which will replace l, the prior that l uses now, without counting its samples.
 * SVS_NO_MEMORY. return: `l` has taken the place of `old` and is counted. */
svs_code svi_prior_lend(svs_learner *fresh, const svs_learner *l, svs_error *err);
void svi_prior_return(svs_learner *l, const svs_learner *old);
/* Keeps only the flagged features. */
void svi_prior_prune(svs_learner *l, const bool *features);
void svi_prior_free(svs_learner *l);

/* ---- learner_refine.c */
/* After a change of the model: if w may be inexact, w += P (b - G w), with the residual of the rows held.
 * True: w has changed. */
bool svi_refine(svs_learner *l);
/* note_loss: a removal may have cost w this much, relative to it. begin_epoch: P and w were rebuilt.
 * new_rows: W has other rows. */
void svi_refine_note_loss(svs_learner *l, double cost);
void svi_refine_begin_epoch(svs_learner *l);
void svi_refine_new_rows(svs_learner *l);
/* After a change: measures P when it is time. True: the samples have moved away from the center of this
 * epoch. */
bool svi_refine_watch(svs_learner *l);
/* Is P measured against G from time to time, and after a drift? If not, a drift rebuilds P. */
bool svi_refine_probes(const svs_learner *l);
/* The vector for measuring P: n values, the first of which do not depend on n. */
void svi_refine_way(double *way, int n);
/* Writes b_k - G w_k for all rows of W, padded, to work->residual, in one pass over the window. */
void svi_residuals(svs_learner *l);

/* out += sum s z (z'v) over the rows of the window. */
void svi_rows_times(svs_learner *l, const double *v, double *out);

/* A learned row of the window in the present coordinates (in scratch[1]). */
struct svi_learned {
    int32_t slot;
    int label;
    double target;
    const double *z;
    double s; /* weight in hats */
};

/* next_learned: the next slot of the window, from *i on, that is in the model, oldest first; -1 after the
 * last; advances *i. next_row: the same with its contents; false after the last. */
int32_t svi_next_learned(const svs_learner *l, int32_t *i);
bool svi_next_row(svs_learner *l, int32_t *i, struct svi_learned *row);

/* A fixed vector of n values +-1. */
static inline void svi_signs(double *v, int n) {
    for (int j = 0; j < n; j++)
        v[j] = (j * 2654435761u) >> 16 & 1 ? 1 : -1;
}

#endif
