/* learner_internal.h: the inside of an svs_learner and what its files share.
 *
 *  - learner.c: the verbs (step, label, forget, grow, reset), the model in raw units, health
 *  - learner_slide.c: one sample in, what leaves out: the group of operations of a step
 *  - learner_rebuild.c: the guard: when and how P and w are rebuilt
 *  - learner_ridge.c: the ridge, which fades and is renewed with forgetting
 *  - learner_features.c: more features, which of them are unscaled, and which are not in yet
 *  - learner_renew.c: a feature that no held sample has becomes a new one
 *  - learner_configure.c: other options: the model made again from what is held
 *  - learner_refine.c: w corrected by the residual of the rows, where P has lost digits
 *  - learner_held.c: what is held: numbers, the newest row, means
 *  - scratch.c: where a learner works, alone or in turns with others
 *  - learner_classes.c: labels and class indices, rows of W
 *  - learner_weights.c: the factors by which the samples of a class count
 *  - learner_check.c: w and P against a fresh solve
 *  - learner_archive.c: the state as bytes, and back
 *  - learner_prior.c: the samples of others as a part of the ridge
 *  - leave_one_out.c: how each sample held would be scored without it, for a grid of C
 *
 * Weights "in hats": with forgetting, a sample learned when `order` samples had been learned before weighs
 * s forget^-(order - base) instead of decaying everything else; true weight = hat / svi_hat(1, now). */
#ifndef SVI_LEARNER_INTERNAL_H
#define SVI_LEARNER_INTERNAL_H

#include "base/exact_sum.h"
#include "learner/scratch.h"
#include "learner/snapshot.h"
#include "learner/prior.h"
#include "svmstream/learner.h"
#include "learner/gram.h"
#include "learner/recursion.h"
#include "learner/ring.h"
#include "learner/scaler.h"

/* Sums of single features over the window, for their means; only of those that were asked for. */
struct svi_kept_sums {
    struct svi_kept_sum {
        int feature;
        struct svi_exact_sum sum;
    } * of;
    int count;
    int64_t capacity;
    int32_t *place; /* of each of `places` features: 0, or its place + 1; NULL until something is asked for */
    int places;
};

/* Of a sample: its producer's, and the factor of its class. It counts their product. */
struct svi_weight {
    double own, factor;
};

#define SVI_REFINE_ROWS 32

struct svi_learner_scratch {
    svs_learner *owner; /* the learner that is in; NULL: none */
    svs_alsvm *m;       /* its P and W; NULL: no room was taken so far */
    struct svi_energy energy;
    int32_t capacity[3];            /* of vectors and energies, of rows of W, of features + 1 */
    size_t used;                    /* entries of vectors and energies that may not be 0 */
    double *from;                   /* padded */
    double *vector[4];              /* padded */
    double *target[2], *scores, *b; /* a value for each row of W */
    double *W, *gram_copy;          /* rows x (features + 1), (features + 1)^2 */
    double *residual;               /* of each row of W, padded */
    struct svi_gram gram;
};

/* See learner_prior.h. */
struct svi_learner_prior {
    struct svi_prior_sums *sums;
    struct svi_prior *const *newest; /* *newest NULL: there is none yet */
    struct svi_prior *in;            /* what P holds; NULL: none */
    double worth;
    int placed, capacity;      /* features known, of which there is room */
    bool centered;             /* `center` is that of the samples */
    bool lent;                 /* it is not counted, and `key` is its own */
    int32_t mean_of;           /* samples whose mean is counted; 0: it is not */
    struct svi_prior_key *key; /* what it is among others, as of the last look at what it holds, and what
                                * that makes of its samples */
    double *center, *mean;     /* of each: where it lies; the mean that is counted */
    uint16_t *from;            /* its place in `in`; that in the sums is in `key` */
};

/* What w may have lost since the last look at the residual of the rows (learner_refine.c). */
struct svi_refine {
    double lost;       /* by removals, and what was left at the last look: relative to w */
    double residual;   /* of the bias's equation at the last measure, for a sample of weight 1 */
    double now, worst; /* the condition at the last measure, and at the worst since the last look */
    double off, gone;  /* at the last measure: the relative error of P, and how far w has come */
    int64_t looked;    /* arrivals at the last look or rebuild */
    int64_t looks;     /* since the last rebuild */
    int64_t wait;      /* changes until the next measure */
    bool fresh;        /* P is new and the system ill-conditioned: a look is due */
};

struct svs_learner {
    svs_options o;
    const struct svi_kernels *kernels;
    struct svi_learner_scratch *work;
    bool shared, in;        /* others use it too; it is its owner */
    struct svi_packed form; /* while it is not in: its state, in `packed` */
    int packed_rows;        /* of W, that there is room for */
    bool store_inside;      /* what is below with "in store" is behind the learner, in its block */
    double *packed;         /* in store: energies, then svi_alsvm_pack; NULL if it never shared */
    double nu;
    int d;                /* features that are in; the recursion has d + 1 */
    int declared;         /* features that there are: those from d on were 0 in every sample so far */
    int feature_capacity; /* features that rows, scaler and buffers have room for */
    struct svi_scaler scaler;
    struct svi_ring window, waiting;
    struct svi_snapshot *snapshot; /* of the window, being copied; NULL = none */
    struct svi_gram *own_gram;     /* NULL: that of the scratch will do */
    bool bucket; /* the gram holds every sample learned since arrival `bucket_from`, or would
                  * (svi_bucket_gather)
                  */
    int64_t bucket_from;
    struct svi_kept_sums *kept;      /* NULL until one is asked for */
    struct svi_learner_prior *prior; /* NULL: it is alone */
    bool relaxed;                    /* svi_learner_relax */
    bool drifts;                     /* a removal has cost P digits since the last rebuild */
    struct svi_refine refine;

    svs_value *classes; /* in store */
    char *next_name;    /* room for that of a class that is to come, or NULL; the others have theirs */
    int class_capacity; /* of classes and class_held */
    int class_count, last_class;
    svs_class_weight *given; /* what o.class_weight points to, the names behind it; NULL = none */
    double *class_held;      /* balanced: samples of each class that are held; without a window, that came, as
                                they have faded; class_capacity values, in store. NULL = not balanced */
    double
        *targets_in; /* what the samples that are in weigh by class; regression: [0] is sum s t; in store */
    double *ridge;   /* per coordinate, in hats, in store: the ridge is sum ridge_j v_j v_j' (forget < 1 only;
                        NULL otherwise) */

    /* Into the scratch, while it is in (svi_claim). */
    svs_alsvm *m;
    struct svi_gram *gram; /* window 0: all samples; else the bucket before a planned rebuild, and scratch */
    struct svi_energy *energy; /* of what is in the model */
    double *from;              /* padded: where w was when it was known to be right (learner_refine.c) */
    double **target;           /* 2, of a value for each row of W */
    double **scratch;          /* 4 padded vectors */
    double *scores;
    double *gram_copy; /* (d + 1)^2: destroyed by each solve */
    double *W, *b;     /* rows x (d + 1) and rows: right-hand sides; the model in raw units on request */

    int64_t arrivals;     /* labelled samples so far */
    int64_t next_rebuild; /* the arrival after which the next planned one comes */
    int64_t held_learned; /* samples of the window that are in the model */
    int64_t order, base;  /* learned samples; those before the present unit of hats */
    uint64_t version;
    svs_health health;
};

/* ---- learner.c */
/* Could there be a learner of d features with these options? SVS_SETTING: what is wrong. */
svs_code svi_learner_check_options(const svs_options *o, int d, svs_error *err);

/* ---- learner_classes.c */
int svi_class_find(svs_learner *l, svs_value y); /* -1: never seen */
int svi_class_add(svs_learner *l, svs_value y);
/* Into the table alone, which has room. */
int svi_class_insert(svs_learner *l, svs_value y);
/* Frees its name. */
void svi_class_forget(svs_value *y);
/* Room, so that adding y cannot fail. */
svs_code svi_class_reserve(svs_learner *l, svs_value y, svs_error *err);
/* Room in the table for a class more, and for its name. */
svs_code svi_class_table_reserve(svs_learner *l, svs_value y, svs_error *err);
/* Room in all parts but the table for `count` classes. */
svs_code svi_class_reserve_parts(svs_learner *l, int count, svs_error *err);
#define SVI_CLASSES_FIRST 2 /* room of the table of a new learner */
/* Rows of W. */
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
/* The rules for classes, as asked for; the given weights are copied. SVS_SETTING, SVS_NO_MEMORY. */
svs_code svi_class_weights_init(svs_learner *l, svs_error *err);
/* Where classes do not count alike: the factor of a sample whose label y comes now; label: of its class, -1 =
 * a new one. SVS_BAD_WEIGHT: out of range with the sample's own weight. Nothing is changed. */
svs_code svi_class_weigh(const svs_learner *l, svs_value y, int label, double own, struct svi_weight *out,
                         svs_error *err);
/* A labelled sample has come, a held one has left. */
void svi_class_count_change(svs_learner *l, const svs_step *out);
void svi_class_left(svs_learner *l, int label);
/* Balanced, with a window: what is held of all but small classes gets the factors of now. P is to be made
 * from the rows then. */
void svi_class_weigh_again(svs_learner *l);
/* The counts from what is held; without a window 0. */
void svi_class_recount(svs_learner *l);
/* Bytes. */
double svi_class_weights_memory(const svs_options *o);

/* ---- learner_features.c */
/* There are d features, with room for them; what is in stays as it is. */
svs_code svi_features_declare(svs_learner *l, int d, svs_error *err);
/* Nothing was learned and nothing waits: no feature takes part any more, until its first value. */
void svi_features_wait(svs_learner *l);
/* The first d features, which are declared, are in from now on. */
svs_code svi_features_widen(svs_learner *l, int d, svs_error *err);
/* Before the row is learned or waits: those up to its last value are in. True in *widened: input 0 is lost.
 */
svs_code svi_features_wake(svs_learner *l, const double *x, bool *widened, svs_error *err);

static inline size_t svi_features_vector_room(int features) {
    return (size_t)svi_round_up(features + 1, 48);
}

/* ---- learner_store.c */
/* Room in the store for so many features, rows of W (to be packed) and classes. What is packed is kept only
 * if its room stays: else the learner is in. */
svs_code svi_store_reserve(svs_learner *l, int features, int rows, int classes, bool packs, svs_error *err);
/* A new learner of zeros but for its options, with its store behind it; NULL: no memory. */
svs_learner *svi_store_learner(const svs_options *o, int features, bool packs);
/* In a block of its own, so that another learner can have it. */
svs_code svi_store_apart(svs_learner *l, svs_error *err);
void svi_store_free(svs_learner *l);
double svi_store_bytes(const svs_learner *l);
double svi_store_memory(const svs_options *o, int d, int classes); /* bytes at most */
/* Doubles of `packed`. */
static inline size_t svi_packed_room(int features, int rows) {
    return svi_alsvm_packed(features + 1, rows) + 5 * ((size_t)features + 1);
}

/* ---- scratch.c */
/* The state as it is; from a new learner. */
void svi_learner_restore_state(svs_learner *l);
void svi_learner_restore_empty(svs_learner *l);
/* Before anything is read or changed that lies in a scratch. */
static inline void svi_claim(svs_learner *l) {
    if (!l->in)
        svi_learner_restore_state(l);
}
/* Room to work with so many features, rows of W and sums of classes; the learner is in. */
svs_code svi_learner_reserve(svs_learner *l, int features, int rows, int groups, svs_error *err);
/* It will not come back: its own scratch goes. */
void svi_learner_disown_scratch(svs_learner *l);
/* Sums that cannot be made again from rows. */
static inline bool svi_gram_lasts(const svs_options *o) {
    return o->window == 0 || o->forget < 1;
}
/* Are samples gathered one by one? */
static inline bool svi_gathers(const svs_learner *l) {
    return l->o.window == 0 || (l->bucket && (!l->shared || l->own_gram));
}

/* ---- learner_slide.c */
/* Learns a sample whose raw row is x (not inside the window ring), whose z is in input 0 already and whose
 * label or target is in *out, and removes what leaves. Everything is reserved. Its weight comes as two
 * numbers: a pair is put down as two and taken up as one, for which the processor waits. */
void svi_slide(svs_learner *l, const double *x, const svs_value *id, double own, double factor, double time,
               svs_step *out);
/* What the window is to keep of a sample, but for its time; a label that is new gets the next index. */
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
/* Removes what is older than window_seconds. */
int svi_expire(svs_learner *l, double time);
/* Takes one live slot of the window out of the model and kills it. */
void svi_remove_slot(svs_learner *l, int32_t slot);
/* The weight of a sample in hats, relative to base. */
double svi_hat(const svs_learner *l, double weight, int64_t order);
/* z = T (1, x) into input buffer i of the recursion; |z|^2. */
double svi_transform_into(svs_learner *l, int i, const double *x);
/* The scores of the sample in input 0. */
void svi_scores_now(const svs_learner *l, double *scores);

/* The columns that its window has from the start. */
unsigned svi_learner_columns(const svs_options *o);

/* ---- learner_held.c */
/* A row has come into the window, or leaves it. */
void svi_kept_add(struct svi_kept_sums *k, const double *x, int sign);
/* Nothing is kept any more, until it is asked for again. */
void svi_kept_clear(svs_learner *l);

/* ---- learner_rebuild.c */
void svi_rebuild(svs_learner *l, bool planned);
/* P and w again from the rows, in the coordinates of the present epoch: only last digits change. */
void svi_heal(svs_learner *l);
/* Window 0: P and w again from the sums, in the coordinates of the present epoch: for another ridge. */
void svi_solve_sums(svs_learner *l);
/* The bucket, where its samples were not gathered one by one. */
void svi_bucket_gather(svs_learner *l);
/* Nothing is in: P and w from the ridge, in the coordinates of now. */
void svi_solve_empty(svs_learner *l);
/* After the l->arrivals-th labelled arrival: planned work at fixed sample numbers. */
void svi_guard(svs_learner *l);
/* r_k of each row of W, from the sums of the gram. */
void svi_right_hand_sides(const svs_learner *l, double *r);

/* ---- learner_ridge.c */
/* v_j of the ridge, in the present coordinates; its weight. */
void svi_ridge_vector(const svs_learner *l, int j, double *v);
double svi_ridge_weight(const svs_learner *l, int j);
/* out = ridge matrix x u, in hats. */
void svi_ridge_apply(const svs_learner *l, const double *u, double *out);
/* The ridge of n = 0, and P with it; everything else has been reset. */
void svi_ridge_reset(svs_learner *l);
/* After a sample was learned: the coordinates whose turn it is. False: P must be rebuilt. */
bool svi_ridge_refresh(svs_learner *l);
/* Coordinate j becomes a new one: what its ridge counts from now on, which P does not hold yet. */
double svi_ridge_begin_alone(svs_learner *l, int j);
/* After growth from `old` features: that of the new coordinates, and a new period for all if D wants one. */
void svi_ridge_grow(svs_learner *l, int old);

/* ---- learner_prior.c */
/* Entry i, j (0 the bias) of the prior's matrix in the present coordinates, 0 without a prior; out += this
 * matrix x u; r += its right-hand side of row k of W. */
double svi_prior_entry(const svs_learner *l, int i, int j);
void svi_prior_apply(const svs_learner *l, const double *u, double *out);
void svi_prior_right(const svs_learner *l, int k, double *r);
/* There is one to begin with, and the first sample is here: its classes, with a place left where the sample's
 * is new (SVS_NO_MEMORY: again later); then the epoch of n = 0, for row x. */
bool svi_prior_waits(const svs_learner *l);
svs_code svi_prior_begin(svs_learner *l, bool fresh, svs_error *err);
void svi_prior_solve(svs_learner *l, const double *x);
/* Before a rebuild: the newest, and where the samples held lie by it. */
void svi_prior_renew(svs_learner *l);
/* P holds none any more. */
void svi_prior_drop(svs_learner *l);
/* More features or classes are in: P and w again. */
void svi_prior_follow(svs_learner *l);
/* Room to count samples of that label. SVS_NO_MEMORY. */
svs_code svi_prior_reserve(svs_learner *l, svs_value y, svs_error *err);
/* The first sample is going to be learned, without a prior so far. */
void svi_prior_first(svs_learner *l, const double *x);
/* A sample was learned; a slot leaves. */
void svi_prior_add_sample(svs_learner *l, const double *x, double weight, const svs_step *out);
void svi_prior_left(svs_learner *l, int32_t slot);
/* It is held: where half of what is held did not enter, all of it is looked at again. */
void svi_prior_learned(svs_learner *l);
/* A learner that is to take its place goes by the prior that is in now, and is not counted; then it has taken
 * the place of `old`. SVS_NO_MEMORY. */
svs_code svi_prior_lend(svs_learner *fresh, const svs_learner *l, svs_error *err);
void svi_prior_return(svs_learner *l, const svs_learner *old);
/* Only the features that are flagged stay. */
void svi_prior_prune(svs_learner *l, const bool *features);
void svi_prior_free(svs_learner *l);

/* ---- learner_refine.c */
/* After a change of the model: where w may be off, w += P (b - G w), with the residual of the rows held.
 * True: w changed. */
bool svi_refine(svs_learner *l);
/* A removal may have cost w so much, relative to it; P and w are new; the rows of W are others. */
void svi_refine_note_loss(svs_learner *l, double cost);
void svi_refine_begin_epoch(svs_learner *l);
void svi_refine_new_rows(svs_learner *l);
/* After a change: how P stands now. True: the epoch has lost the center of a feature. */
bool svi_refine_watch(svs_learner *l);
/* Is P measured against G, from time to time and at once after a drift? Else a drift makes P again. */
bool svi_refine_probes(const svs_learner *l);
/* The vector by which P is measured: n values, which do not depend on n. */
void svi_refine_way(double *way, int n);
/* b_k - G w_k for all rows of W in one pass over the window, padded, into work->residual. */
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

/* The next slot of the window, from *i on, that is in the model, oldest first; -1 after the last. *i moves
 * on. */
int32_t svi_next_learned(const svs_learner *l, int32_t *i);
bool svi_next_row(svs_learner *l, int32_t *i, struct svi_learned *row);

/* A fixed vector of n values +-1. */
static inline void svi_signs(double *v, int n) {
    for (int j = 0; j < n; j++)
        v[j] = (j * 2654435761u) >> 16 & 1 ? 1 : -1;
}

#endif
