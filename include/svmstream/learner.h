/* learner.h: an exact least-squares SVM of a sliding window, one sample at a time.
 *
 * A sample is scored, then learned, while the samples that leave the window are exactly removed: after every
 * call the model equals a fresh solve on the samples held (alsvm.h has the equations). On top of the bare
 * recursion:
 *
 *  - window: the last `window` labelled arrivals, or those of the last `window_seconds`, or both; or none at
 * all;
 *  - exponential forgetting: each learned sample counts `forget` times less for every sample learned after
 * it. After n learned samples (since the start or a reset) the model is the minimum of
 *
 *        sum_i c_i forget^(age_i) (t_i - w'x_i)^2 + sum_j rho_j w_j^2,
 *        rho_j = nu forget^((n - j) mod T),
 *
 * i the samples learned and still held, c_i their weights, each times the factor of its class (see
 * svs_class_rule), age_i how many were learned after them; j = 0 is
 * the bias, j = 1 .. d the features; T the lesser of the least power of two that is d + 1 or more and
 * log(1/2) / log(forget) rounded down, and 1 at least. So rho_j lies between nu/2 and nu, is nu where forget
 * is 1 or below 0.7, and depends on n, d and forget alone;
 *  - classes of any int or string, which may appear at any time; or regression;
 *  - features that may appear at any time; features are standardised inside (mean and deviation frozen for an
 * epoch and renewed only when P is rebuilt from the window), models are given in raw units;
 *  - FALSVM: a sample is learned only if the current model does not classify it rightly;
 *  - removal of any held sample by id, and labels that come late, joined by id;
 *  - a guard against rounding: P and w are rebuilt from the window at fixed sample numbers (8, 16, 32 ... up
 * to the window, then every 4 windows; balanced classes: see svs_class_rule), and at once when the energy of
 * the window drops 100-fold (of an unscaled feature: where that costs more than 3 digits) or a pivot fails;
 * where a removal or the data's condition costs P digits, w is refined by the residual of the rows held.
 *
 * What is held is stored once, as raw rows. Memory is bounded by the options: see svs_learner_memory. Nothing
 * is allocated in a step except when a feature, a class or a waiting sample appears that needs more room.
 * Results depend on the calls alone, bit for bit on one instruction set. One object, one thread at a time. */
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

/* How much samples of a class count: c_i = w_i f_i, w_i the sample's own weight, f_i the factor of its class.
 * The held f_i are part of the state: what leaves is removed as it was learned, and at any moment the model
 * equals a fresh solve with the held c_i.
 *
 *  - alike: f_i = 1;
 *  - given: f_i is the weight given for its label, 1 for labels without one;
 *  - balanced: f_i = n / (K n_k), n labelled samples held, n_k those of the sample's class, K the classes
 * that some are of. It is set when the sample's label comes: the sample itself is counted, the one that gives
 * it its place in a full window is not, and those that leave by time in the same call still are. With a
 * window it is set again, by the counts of then, for all held samples of classes that 10 or more of the held
 * are of, at the planned rebuilds: these come after 8 labelled arrivals and then each time after a quarter as
 * many as are held, 8 at least. Without a window it stays, and the counts are of all samples so far, each as
 * it has faded by `forget`. */
typedef enum svs_class_rule { SVS_CLASSES_ALIKE = 0, SVS_CLASSES_BALANCED, SVS_CLASSES_GIVEN } svs_class_rule;

typedef struct svs_class_weight {
    svs_value label; /* SVS_INT or SVS_STR, whether or not a sample of it was seen */
    double weight;   /* > 0, at most 1e100 */
} svs_class_weight;

typedef struct svs_options {
    svs_task task;  /* classify */
    svs_rule rule;  /* alsvm: learn every labelled sample; falsvm (classify only): see above */
    double C;       /* 1; penalty of the squared errors, > 0; nu = 1/(2C) */
    int64_t window; /* 1000; labelled samples held at most, 0 = keep none (nothing can be removed then) */
    double window_seconds; /* 0 = no limit; samples held at most this long (needs window > 0) */
    double forget;         /* 1; forgetting factor per learned sample, in (0, 1] */
    svs_scale scale;   /* standard: the ridge penalises weights of standardised features; none: of raw ones */
    int max_features;  /* 1024 */
    int max_classes;   /* 64 */
    double labels_ttl; /* 3600; seconds that a sample with an id waits for its label, 0 = none waits */
    int labels_max;    /* 10,000; samples waiting at most, the oldest leaves when full */
    svs_isa isa;       /* best */
    svs_class_rule class_rule;            /* alike; for classify only */
    const svs_class_weight *class_weight; /* given: one for each label that is not to count as 1, no label
                                             twice; copied by svs_learner_new */
    int class_weight_count;
} svs_options;

/* The defaults above. */
SVS_API void svs_options_default(svs_options *o);

typedef struct svs_sample {
    const double
        *x; /* d raw values, finite, each at most 1e100 in size; missing trailing features are not allowed */
    int d;  /* features: at most the learner's; svs_learner_grow first when there are more */
    svs_value id; /* SVS_NONE, SVS_INT or SVS_STR (1 to SVS_NAME_MAX bytes); copied when the sample is held */
    svs_value y;  /* SVS_NONE: score only. classify: SVS_INT or SVS_STR; regress: SVS_REAL or SVS_INT */
    double weight; /* > 0; 1 is usual */
} svs_sample;

/* What became of one sample. Pointers are valid until the next call on the learner. */
typedef struct svs_step {
    const double *scores; /* `rows` values, made BEFORE the sample was learned */
    int rows;             /* as in svs_model */
    int class_count;      /* known when the scores were made */
    int predicted;        /* class index by those scores; -1: regression, or no class known yet */
    int label;            /* class index of y (perhaps new), -1: no label, or regression */
    double target;        /* regression: y; NAN otherwise */
    uint64_t version;     /* of the model that made the scores */
    double leverage;      /* x'Px before it was learned, by the weights that samples have then; 0 if it was
                             not learned */
    bool learned;         /* a FALSVM sample may be held without being learned */
    bool waiting;         /* it has an id and no label and now waits for one */
    int removed;          /* samples that left the window in this step */
} svs_step;

/* Counters and numerical health; times never enter. */
typedef struct svs_health {
    int64_t learned;        /* samples added so far, never lowered */
    int64_t held;           /* labelled samples in the window now */
    int64_t waiting;        /* samples that wait for a label now */
    int64_t labels_joined;  /* late labels that found their sample */
    int64_t labels_expired; /* samples whose label never came in time */
    int64_t labels_evicted; /* samples that stopped waiting because labels_max was reached */
    int64_t forgotten;      /* samples taken out by id */
    int64_t rebuilds;       /* of P from the window, planned or not */
    int64_t alarms;         /* unplanned ones: energy dropped or a pivot failed */
    int64_t window_reads;   /* passes over the window to see how exact w is, and to correct it */
    double residual;  /* |G (P v) - v| / |v| for a fixed +-1 vector v, just before the last planned rebuild */
    double condition; /* trace(P) trace(G) / D^2 right after the last rebuild: a lower bound's estimate */
} svs_health;

typedef struct svs_learner svs_learner;

/* A learner with `d` features at the start (0 is fine: svs_learner_grow). NULL on failure: SVS_SETTING with
 * the reason, SVS_NO_MEMORY. Owner: the caller. */
SVS_API svs_learner *svs_learner_new(const svs_options *o, int d, svs_error *err);
SVS_API void svs_learner_free(svs_learner **l);

/* More features: exact, held samples had 0 there. With forgetting T may change, and with it model and
 * version. SVS_LIMIT over max_features, SVS_NO_MEMORY. */
SVS_API svs_code svs_learner_grow(svs_learner *l, int d, svs_error *err);
SVS_API int svs_learner_dimension(const svs_learner *l); /* d, without the bias */

/* From now on the feature is not standardised: its mean counts as 0 and its deviation as 1 in every epoch,
 * and the ridge penalises its raw weight; so a category is the same as its columns of 0 and 1. It stays so
 * through growth, reset and the archive, and with scale none nothing changes. Call it before a sample has a
 * value other than 0 there; best before the svs_learner_grow that brings the feature. A feature that was
 * scaled before becomes plain by a rebuild from what is held: another model, and another version. `feature`
 * beyond max_features: nothing.
 *
 * Where a feature is unscaled, features that come after it was said so have no part in the model (weight 0)
 * until a sample has a value other than 0 in them or in a later one: so a stream that has all of its columns
 * from the start and one whose columns come with their values have the same model, bit for bit. Said before
 * the first sample, that holds for all features. d in the rule of the ridge above is without those at the end
 * that had no value yet. */
SVS_API void svs_learner_unscaled(svs_learner *l, int feature);

/* One sample at time `time` (seconds, never decreasing; it drives window_seconds and labels_ttl only): scores
 * it, learns it if it has a label, lets it wait for one if it has an id, removes what leaves the window.
 * Failing (nothing is changed): SVS_WRONG_DIMENSION, SVS_BAD_LABEL, SVS_BAD_WEIGHT (also: times the factor
 * of its class it is 0 or above 1e100), SVS_BAD_ID, SVS_NOT_FINITE, SVS_TOO_LARGE, SVS_LIMIT (a class too
 * many), SVS_NO_MEMORY. */
SVS_API svs_code svs_learner_step(svs_learner *l, const svs_sample *s, double time, svs_step *out,
                                  svs_error *err);

/* A late label for the newest waiting sample of that id. out->scores, version and predicted are those made at
 * its arrival. SVS_UNKNOWN_ID, and as svs_learner_step. */
SVS_API svs_code svs_learner_label(svs_learner *l, svs_value id, svs_value y, double time, svs_step *out,
                                   svs_error *err);

/* Takes every held or waiting sample of that id out, exactly. *count (may be NULL): how many. SVS_UNKNOWN_ID
 * when none. */
SVS_API svs_code svs_learner_forget(svs_learner *l, svs_value id, double time, int *count, svs_error *err);

/* Drops model, window and waiting samples; options, classes and features stay. Version and counters go on. */
SVS_API void svs_learner_reset(svs_learner *l);

/* Other options, from now on: C, window, window_seconds, forget, scale, rule, labels_ttl, labels_max. The
 * model is made again from what is held: bit for bit as a new learner with these options, the same features
 * (of them the same unscaled) and the same classes in their order would have it, to which the labelled
 * samples held were given in their order, with their times, ids and weights. So of a smaller window the
 * newest stay, and a larger one fills up as samples come. Samples that wait go on waiting, with the scores
 * that they have; of more than labels_max the newest. Version and counters go on.
 *
 * Window 0 holds no samples: from a window to 0 all that is held is learned, and stays for good. With window
 * 0 only C and scale can change, exactly, for which the sums are enough; everything else of the model once
 * nothing is in it (svs_learner_reset). Costs what learning the samples cost, and as long as it takes the
 * memory of a second learner.
 *
 * Failing (nothing is changed): SVS_SETTING (options that contradict each other; other task, max_features,
 * max_classes or isa), SVS_UNAVAILABLE (window 0, see above), SVS_NO_MEMORY, and codes of svs_learner_step
 * (a sample that cannot be computed with among the others that are left). */
SVS_API svs_code svs_learner_configure(svs_learner *l, const svs_options *o, svs_error *err);

/* Could they be had now, as far as is known without trying? SVS_OK, or a code of svs_learner_configure. */
SVS_API svs_code svs_learner_configurable(const svs_learner *l, const svs_options *o, svs_error *err);

/* Scores a raw row without learning it; scores: room for svs_learner_rows values. x: d values. */
SVS_API void svs_learner_scores(svs_learner *l, const double *x, double *scores);
SVS_API int svs_learner_rows(const svs_learner *l);
SVS_API uint64_t svs_learner_version(const svs_learner *l);
SVS_API int svs_learner_class_count(const svs_learner *l);
SVS_API svs_value svs_learner_class(const svs_learner *l, int index);

/* The current model in raw units. Fills *m with pointers into buffers of the learner, valid until the next
 * call on it; `seen` and `features` are left 0 and NULL for the caller to fill. */
SVS_API svs_code svs_learner_model(svs_learner *l, svs_model *m, svs_error *err);

/* Fills *h with the counters and figures of now. */
SVS_API void svs_learner_health(const svs_learner *l, svs_health *h);

/* The worst relative difference between w and a fresh solve (long double) on what is held: 1e-10 is fine,
 * 1e-6 is not. Slow: O(window d^2 + d^3) plain loops; a checker for tests and for doubt. With window 0: -1
 * (nothing is held to solve from). */
SVS_API double svs_learner_check(svs_learner *l);

/* How well the samples held are predicted for one C, each by the model of all the others. All means are
 * weighted as the model weighs the samples: by their weights, factors of their classes and, with forgetting,
 * as they have faded. */
typedef struct svs_tuning_row {
    double C;
    double squared; /* mean of (t - score)^2, over the rows of W too; targets of classes are +-1 */
    double wrong;   /* share of samples that another class than theirs is predicted for; NAN: regression */
    double gain;    /* what `wrong` (regression: `squared`) is less than with the present C */
    double noise;   /* standard error of `gain`, by the differences sample by sample */
} svs_tuning_row;

#define SVS_TUNING_MAX 12

typedef struct svs_tuning {
    svs_tuning_row row[SVS_TUNING_MAX]; /* C rising */
    int count, present, best; /* rows; that of C now; of the greatest gain, of equal ones least `squared` */
    bool better;              /* the gain of `best` is more than twice its noise */
    int64_t samples;          /* left out, one at a time */
    int64_t skipped;          /* others held whose weight makes their own score: for some C 1 - h < 1e-9 */
} svs_tuning;

/* C judged by leaving out each of the samples held, for C = 2^-10, 2^-8 ... 2^10 and the present one: in
 * closed form, e_i / (1 - h_i) with the residual e_i and the leverage h_i of the model of all (Allen 1974),
 * equal to fresh solves without the sample, with the standardisation and the ridge of now. Changes nothing;
 * holds some 4 D^2 + 64 (2 D + 12 K) + 24 K D values while it runs, D = d + 1, and costs O(D^3 + n D (D + 12
 * K)). SVS_UNAVAILABLE: window 0, falsvm, fewer than two samples held; SVS_NUMERIC; SVS_NO_MEMORY; SVS_LIMIT
 * (d of 30,000 or more). */
SVS_API svs_code svs_learner_tune(svs_learner *l, svs_tuning *out, svs_error *err);

/* Bytes that a learner with these options and d features will hold at most. */
SVS_API double svs_learner_memory(const svs_options *o, int d, int classes);

#ifdef __cplusplus
}
#endif
#endif
