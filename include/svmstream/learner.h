/* learner.h: an exact least-squares SVM of a sliding window, one sample at a time.
 *
 * A sample is scored, then learned, and the samples that leave the window are removed exactly: after every
 * call the model equals a fresh solve on the held samples (alsvm.h has the equations). In addition to the
 * bare recursion there are:
 *
 *  - a window: the last `window` labelled arrivals, or those of the last `window_seconds`, or both; or none;
 *
 *  - exponential forgetting: each learned sample loses the factor `forget` with every sample learned after
 * it. After n learned samples (since the start or a reset) the model minimises
 *
 *        sum_i c_i forget^(age_i) (t_i - w'x_i)^2 + sum_j rho_j w_j^2,
 *        rho_j = nu forget^((n - j) mod T).
 *
 *    i: the samples learned and still held; c_i: their weights times the factors of their classes (see
 *    svs_class_rule); age_i: the number of samples learned after i; j = 0 is the bias, j = 1 .. d the
 * features. T is the smaller of two numbers, and at least 1: the least power of two that is d + 1 or more,
 * and log(1/2) / log(forget) rounded down. So rho_j lies between nu/2 and nu, is nu where forget is 1 or
 * below 0.7, and depends on n, d and forget alone;
 *
 *  - classes named by any integer or string, which may appear at any time; or regression;
 *
 *  - features that may appear at any time. They are standardised inside (mean and deviation are frozen for an
 *    epoch and renewed only when P is rebuilt from the window); models are in raw units;
 *
 *  - FALSVM: a sample is learned only if the current model does not classify it correctly;
 *
 *  - removal of any held sample by id, and late labels, joined by id;
 *
 *  - a guard against rounding: P and w are rebuilt from the window at fixed sample numbers: 8, 16, 32 ... up
 *    to the window, then every 4 windows (balanced classes: see svs_class_rule). They are rebuilt at once
 * when a pivot fails, or when the energy of the window drops 100-fold (of an unscaled feature: when that
 * costs more than 3 digits). When a removal or the condition of the data costs P digits, w is refined by the
 * residual of the held rows.
 *
 * Held samples are stored once, as raw rows. The options bound the memory: see svs_learner_memory. A step
 * allocates only when a new feature, class or waiting sample needs more capacity. Results depend on the calls
 * alone, bit for bit on one instruction set. Use one object from one thread at a time. */
#ifndef SVMSTREAM_LEARNER_H
#define SVMSTREAM_LEARNER_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/alsvm.h"
#include "svmstream/model.h"
#include "svmstream/value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum svs_rule { SVS_ALSVM = 0, SVS_FALSVM } svs_rule;
typedef enum svs_scale { SVS_SCALE_NONE = 0, SVS_SCALE_STANDARD } svs_scale;

/* The weight of the samples of a class: c_i = w_i f_i, with the sample's weight w_i and the factor f_i of its
 * class. The held f_i are part of the state: a sample is removed with the factor with which it was learned,
 * and at any moment the model equals a fresh solve with the held c_i.
 *
 *  - alike: f_i = 1.
 *
 *  - given: f_i is the weight given for its label, 1 for other labels.
 *
 *  - balanced: f_i = n / (K n_k) with n held labelled samples, n_k of them of the sample's class, and K
 * classes with held samples. f_i is set when the label arrives. The counts then include the sample itself and
 * those that leave by time in the same call, but not the one that it replaces in a full window. With a
 * window, f_i is set again by the current counts at the planned rebuilds, for all held samples of classes
 * with at least 10 of them. These rebuilds follow after 8 labelled arrivals, and then each time after a
 * quarter of the number held, at least 8. Without a window f_i stays, and the counts are of all samples so
 * far, each faded by `forget`. */
typedef enum svs_class_rule { SVS_CLASSES_ALIKE = 0, SVS_CLASSES_BALANCED, SVS_CLASSES_GIVEN } svs_class_rule;

typedef struct svs_class_weight {
    svs_value label; /* SVS_INT or SVS_STR; it need not have occurred yet */
    double weight;   /* > 0, at most 1e100 */
} svs_class_weight;

typedef struct svs_options {
    svs_task task;  /* classify */
    svs_rule rule;  /* alsvm: learn every labelled sample; falsvm (classify only): see above */
    double C;       /* 1; penalty of the squared errors, > 0; nu = 1/(2C) */
    int64_t window; /* 1000; limit of held labelled samples, 0 = hold none (nothing can be removed then) */
    double window_seconds; /* 0 = no limit; longest time that a sample is held (needs window > 0) */
    double forget;         /* 1; forgetting factor per learned sample, in (0, 1] */
    svs_scale scale;   /* standard: the ridge penalises weights of standardised features; none: of raw ones */
    int max_features;  /* 1024 */
    int max_classes;   /* 64 */
    double labels_ttl; /* 3600; seconds that a sample with an id waits for its label, 0 = no waiting */
    int labels_max;    /* 10,000; limit of waiting samples; the oldest is dropped when full */
    svs_isa isa;       /* best */
    svs_class_rule class_rule;            /* alike; for classify only */
    const svs_class_weight *class_weight; /* given: one for each label with a factor other than 1, no label
                                             twice; copied by svs_learner_new */
    int class_weight_count;
} svs_options;

/* The defaults above. */
SVS_API void svs_options_default(svs_options *o);

typedef struct svs_sample {
    const double
        *x; /* d raw values, finite, each at most 1e100 in size; missing trailing features are not allowed */
    int d;  /* features: at most the learner's; call svs_learner_grow first when there are more */
    svs_value id; /* SVS_NONE, SVS_INT or SVS_STR (1 to SVS_NAME_MAX bytes); copied when the sample is held */
    svs_value y;  /* SVS_NONE: score only. classify: SVS_INT or SVS_STR; regress: SVS_REAL or SVS_INT */
    double weight; /* > 0, normally 1 */
} svs_sample;

/* The result of one sample. Pointers are valid until the next call on the learner. */
typedef struct svs_step {
    const double *scores; /* `rows` values, computed BEFORE the sample was learned */
    int rows;             /* as in svs_model */
    int class_count;      /* classes known when the scores were computed */
    int predicted;        /* class index by those scores; -1: regression, or no class known yet */
    int label;            /* class index of y (maybe new), -1: no label, or regression */
    double target;        /* regression: y; NAN otherwise */
    uint64_t version;     /* of the model that computed the scores */
    double leverage;      /* x'Px before it was learned, with the current weights of the samples; 0 if it was
                             not learned */
    bool learned;         /* a FALSVM sample may be held without being learned */
    bool waiting;         /* it has an id but no label, and now waits for one */
    int removed;          /* samples that left the window in this step */
} svs_step;

/* Counters and numerical health. No member depends on measured time. */
typedef struct svs_health {
    int64_t learned;        /* samples added so far, never decreases */
    int64_t held;           /* labelled samples in the window now */
    int64_t waiting;        /* samples waiting for a label now */
    int64_t labels_joined;  /* late labels that found their sample */
    int64_t labels_expired; /* samples whose label did not arrive in time */
    int64_t labels_evicted; /* samples that stopped waiting because labels_max was reached */
    int64_t forgotten;      /* samples removed by id */
    int64_t rebuilds;       /* of P from the window, planned or not */
    int64_t alarms;         /* unplanned rebuilds: the energy dropped or a pivot failed */
    int64_t window_reads;   /* passes over the window to check the accuracy of w, and to correct it */
    double residual;  /* |G (P v) - v| / |v| for a fixed +-1 vector v, just before the last planned rebuild */
    double condition; /* trace(P) trace(G) / D^2 right after the last rebuild: a lower bound's estimate */
} svs_health;

typedef struct svs_learner svs_learner;

/* Creates a learner with `d` features (0 is allowed, see svs_learner_grow). NULL on failure: SVS_SETTING with
 * the reason, SVS_NO_MEMORY. Owner: the caller. */
SVS_API svs_learner *svs_learner_new(const svs_options *o, int d, svs_error *err);
SVS_API void svs_learner_free(svs_learner **l);

/* Raises the number of features to d. Exact: held samples have 0 in the new ones. With forgetting T may
 * change, and with it model and version. SVS_LIMIT over max_features, SVS_NO_MEMORY. */
SVS_API svs_code svs_learner_grow(svs_learner *l, int d, svs_error *err);
SVS_API int svs_learner_dimension(const svs_learner *l); /* d, without the bias */

/* Stops standardising a feature: its mean counts as 0 and its deviation as 1 in every epoch, and the ridge
 * penalises its raw weight; so a category equals its columns of 0 and 1. This survives growth, reset and the
 * archive; with scale none it changes nothing. Call it before a sample has a value other than 0 there, best
 * before the svs_learner_grow that adds the feature. A feature that was scaled before is converted by a
 * rebuild from the held samples, which gives another model and another version. `feature` beyond
 * max_features: ignored.
 *
 * Once a feature is unscaled, features added after this call take no part in the model (weight 0) until a
 * sample has a value other than 0 in them or in a later one. So a stream that has all of its columns from the
 * start and a stream whose columns appear with their values have the same model, bit for bit. Called before
 * the first sample, that holds for all features. d in the rule of the ridge above then excludes the features
 * at the end that had no value yet. */
SVS_API void svs_learner_unscaled(svs_learner *l, int feature);

/* Processes one sample: scores it, learns it if it has a label, and removes the samples that leave the
 * window. Without a label it waits for one if it has an id. `time`: seconds, never decreasing; used for
 * window_seconds and labels_ttl only. Failures, which change nothing: SVS_WRONG_DIMENSION, SVS_BAD_LABEL,
 * SVS_BAD_WEIGHT (also when weight times class factor is 0 or above 1e100), SVS_BAD_ID, SVS_NOT_FINITE,
 * SVS_TOO_LARGE, SVS_LIMIT (too many classes), SVS_NO_MEMORY. */
SVS_API svs_code svs_learner_step(svs_learner *l, const svs_sample *s, double time, svs_step *out,
                                  svs_error *err);

/* Joins a late label to the newest waiting sample of that id. out->scores, version and predicted are those of
 * its arrival. SVS_UNKNOWN_ID, and codes of svs_learner_step. */
SVS_API svs_code svs_learner_label(svs_learner *l, svs_value id, svs_value y, double time, svs_step *out,
                                   svs_error *err);

/* Removes every held or waiting sample of that id, exactly. *count (may be NULL): the number removed.
 * SVS_UNKNOWN_ID: no sample has that id. */
SVS_API svs_code svs_learner_forget(svs_learner *l, svs_value id, double time, int *count, svs_error *err);

/* Drops model, window and waiting samples; options, classes and features stay. Version and counters continue.
 */
SVS_API void svs_learner_reset(svs_learner *l);

/* Changes options: C, window, window_seconds, forget, scale, rule, labels_ttl, labels_max. The model is
 * rebuilt from the held samples. It equals, bit for bit, that of a new learner that was given the held
 * labelled samples in their order, with their times, ids and weights. The new learner has these options, the
 * same features (the same ones unscaled) and the same classes in their order. So a smaller window keeps the
 * newest samples, and a larger one fills up as samples arrive. Waiting samples keep waiting, with their
 * scores. If there are more than labels_max, the newest stay. Version and counters continue.
 *
 * Window 0 holds no samples: after a change from a window to 0, all held samples are learned and stay for
 * good. With window 0 only C, scale and labels_ttl (not to or from 0) can change, exactly, because the sums
 * suffice for these; other options of the model can change only while it is empty (svs_learner_reset). The
 * call costs as much as learning the samples, and needs the memory of a second learner meanwhile.
 *
 * Failures, which change nothing: SVS_SETTING (options that contradict each other; another task,
 * max_features, max_classes or isa), SVS_UNAVAILABLE (window 0, see above), SVS_NO_MEMORY, and codes of
 * svs_learner_step (a sample that cannot be computed together with the others that remain). */
SVS_API svs_code svs_learner_configure(svs_learner *l, const svs_options *o, svs_error *err);

/* Checks whether svs_learner_configure would accept these options, as far as that is known without trying:
 * SVS_OK, or one of its codes. */
SVS_API svs_code svs_learner_configurable(const svs_learner *l, const svs_options *o, svs_error *err);

/* Scores a raw row of d values without learning it; scores receives svs_learner_rows values. */
SVS_API void svs_learner_scores(svs_learner *l, const double *x, double *scores);
SVS_API int svs_learner_rows(const svs_learner *l);
SVS_API uint64_t svs_learner_version(const svs_learner *l);
SVS_API int svs_learner_class_count(const svs_learner *l);
SVS_API svs_value svs_learner_class(const svs_learner *l, int index);

/* The current model in raw units. Fills *m with pointers into buffers of the learner, valid until the next
 * call on it; `seen` and `features` are left 0 and NULL for the caller to fill. */
SVS_API svs_code svs_learner_model(svs_learner *l, svs_model *m, svs_error *err);

/* Fills *h with the current counters and figures. */
SVS_API void svs_learner_health(const svs_learner *l, svs_health *h);

/* The largest relative difference between w and a fresh solve (long double) on the held samples: 1e-10 is
 * good, 1e-6 is not. Slow: O(window d^2 + d^3) in plain loops, for tests and diagnosis. With window 0: -1 (no
 * samples to solve from). */
SVS_API double svs_learner_check(svs_learner *l);

/* The quality of one C: each held sample is predicted by the model of all others. All means are weighted as
 * in the model: by the weights of the samples, the factors of their classes and forgetting. */
typedef struct svs_tuning_row {
    double C;
    double squared; /* mean of (t - score)^2, also over the rows of W; targets of classes are +-1 */
    double wrong;   /* share of samples that are predicted wrongly; NAN: regression */
    double gain;    /* reduction of `wrong` (regression: of `squared`) against the current C */
    double noise;   /* standard error of `gain`, from the differences sample by sample */
} svs_tuning_row;

#define SVS_TUNING_MAX 12

typedef struct svs_tuning {
    svs_tuning_row row[SVS_TUNING_MAX]; /* by ascending C */
    int count, present, best; /* rows; that of the current C; the largest gain, ties by least `squared` */
    bool better;              /* the gain of `best` is more than twice its noise */
    int64_t samples;          /* samples left out, one at a time */
    int64_t skipped;          /* held samples not counted, as they determine their own score: 1 - h < 1e-9 */
} svs_tuning;

/* Rates C by leaving out each held sample, for C = 2^-10, 2^-8 ... 2^10 and the current one. The error is
 * e_i / (1 - h_i) in closed form, with the residual e_i and the leverage h_i of the model of all samples
 * (Allen 1974). It equals fresh solves without the sample, with the current standardisation and ridge.
 * Changes nothing; needs about 4 D^2 + 64 (2 D + 12 K) + 24 K D values while it runs, D = d + 1, and costs
 * O(D^3 + n D (D + 12 K)). SVS_UNAVAILABLE: window 0, falsvm, fewer than two samples held; SVS_NUMERIC;
 * SVS_NO_MEMORY; SVS_LIMIT (d of 30,000 or more). */
SVS_API svs_code svs_learner_tune(svs_learner *l, svs_tuning *out, svs_error *err);

/* An upper bound in bytes of the memory of a learner with these options, d features and `classes` classes. */
SVS_API double svs_learner_memory(const svs_options *o, int d, int classes);

#ifdef __cplusplus
}
#endif
#endif
