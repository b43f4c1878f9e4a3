/* The calibration of scores: Newton steps on the log loss, one per sample at first, then one per STEP
 * samples: a third of the cost, for .003 of log loss where labels arrive in runs.
 *
 * Two classes: (a, b) with a 2 x 2 curvature, then the curve, whose values have one curvature each; a sample
 * moves the two values next to its logit. CURVE_PULL draws the curve to the diagonal: it changes nothing
 * where Platt's sigmoid fits, and levels off where labels are noisy. More classes: the slope a and each
 * offset b_k by a scalar curvature (of b_k: the sum of p_k (1 - p_k)).
 *
 * Invariants: a > 0 and the curve rises, so probabilities keep the order of the scores. A step moves logits
 * by STEP_MAX at most, and a logit beyond LEVERAGE counts as LEVERAGE, so no outlier stiffens the slope.
 * Early curvature comes from a wrong slope; a memory of half the samples seen forgets it.
 *
 * Read in order: the memory, the curve, two classes, more classes, the archive; then the fit to many scores,
 * which shares nothing but the law and LEVERAGE. */
#include "quality/calibrator.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "base/fetch.h"
#include "linalg/exponential.h"
#include "linalg/quads.h"
#include "learner/probability.h"

#define MIN_MEMORY   1000.0 /* samples */
#define RARE         500.0  /* samples of the rarest class that the memory should hold */
#define CURVE_LONGER 3.0    /* memory of the curve, in memories of the slope */
#define BEGIN        30.0   /* samples that count as seen at the start */
#define RIDGE        1e-3   /* curvature of the pull of (a, b) towards their start */
#define TRUST        5.0    /* the same where scores are log odds already */
#define CURVE_PULL   1.0    /* the same for the curve's values, and for the offsets of more classes */
#define DAMP         10.0   /* initial curvature of these */
#define RISE         1e-3   /* least rise of the curve from one value to the next */
#define STEP_MAX     1.0    /* largest move of a logit by a step of (a, b), root mean square */
#define CURVE_STEP   0.5    /* largest move of a value of the curve */
#define LEVERAGE     SVI_LOGIT_PLAIN
#define SPREAD       10.0 /* largest variance of logits, weighted by p (1 - p), in the curvature */
#define MIN_SLOPE    1e-3
#define MAX_SLOPE    1e4
#define MAX_OFFSET   1e4
#define PAIR_SLOPE   2.0 /* a score is 2 p - 1 where p is near 1/2: least squares on targets of 1 and -1 */
#define MORE_SLOPE   1.0
#define STEP         4 /* samples per step, after the first EACH_UNTIL */
#define EACH_UNTIL   128
#define COUNT_MAX    (INT64_MAX / 8)
#define HELD_MAX     (1 << 30)

/* Sums over the samples since the last Newton step of two classes: places in `recent`. */
#define GA        SVI_PAIR_SLOPE_A
#define GB        SVI_PAIR_SLOPE_B
#define HAA       SVI_PAIR_CURVATURE_AA
#define S         SVI_PAIR_SCORES
#define SS        SVI_PAIR_SQUARES
#define PAIR_SUMS SVI_PAIR_SUMS

/* By knot: the value; its curvature; gradient and curvature added since the last step. */
struct calibrator_curve {
    double value[SVS_CURVE], bend[SVS_CURVE], slope[SVS_CURVE], more_bend[SVS_CURVE];
};

struct svi_calibrator {
    int max_classes, classes; /* classes: highest class index seen, plus 1 */
    int64_t count, rarest;    /* labelled samples; those of the rarest class among the classes seen */
    double ridge;             /* RIDGE or TRUST */
    int64_t held[2];          /* samples since the last step: of two classes, of more */
    int64_t *seen;            /* samples by class */
    double pair[5];           /* two classes: a, b; curvature aa, ab, bb */
    double recent[2 * SVI_QUAD];
    /* Samples of two classes that are in neither `recent` nor the curve yet, and the figures to update with
     * their probabilities. */
    double score[STEP], second[STEP];
    int waiting;
    svi_reliability *reliability;
    double slope[2];               /* more classes: a and its curvature */
    struct calibrator_curve two;   /* the curve of two classes */
    struct calibrator_curve *more; /* of more; NULL: no capacity yet for these and what follows */
    double *offset_bend;           /* curvature of the offsets, by class */
    struct svi_classes_law law;    /* of more classes, without the slope; scratch of the last sample scored */
    const double *placed;          /* the probabilities that the scratch belongs to; NULL: none */
    const struct svi_quads *quads;
};

enum { CLASSES, MORE, DIMS };

#define OF_MORE SVI_AXIS(MORE), SVI_AXIS(CLASSES)

static const struct svi_array arrays[] = {
    SVI_ARRAY_WITH(struct svi_calibrator, seen, "seen", SVI_ARRAY_COUNT, 0, SVI_AXIS(CLASSES)),
    SVI_ARRAY_STRUCTS(struct svi_calibrator, more, double, "curve of more", SVI_ARRAY_FINITE, SVI_AXIS(MORE)),
    SVI_ARRAY(struct svi_calibrator, law.b, "offset", OF_MORE),
    SVI_ARRAY(struct svi_calibrator, offset_bend, "offset bend", OF_MORE),
    SVI_ARRAY(struct svi_calibrator, law.s, NULL, OF_MORE),
    SVI_ARRAY(struct svi_calibrator, law.z, NULL, OF_MORE),
    SVI_ARRAY(struct svi_calibrator, law.v, NULL, OF_MORE),
    SVI_ARRAY(struct svi_calibrator, law.share, NULL, OF_MORE),
    SVI_ARRAY(struct svi_calibrator, law.p, NULL, OF_MORE),
    SVI_ARRAY(struct svi_calibrator, law.plain, NULL, OF_MORE),
    SVI_ARRAY(struct svi_calibrator, law.line, NULL, OF_MORE),
    SVI_ARRAY_STRUCTS(struct svi_calibrator, law.lines, double, NULL, SVI_ARRAY_ANY, SVI_AXIS(MORE),
                      SVI_AXIS_LENGTH(SVI_KNOTS - 1)),
};
static const struct svi_arrays calibrator_arrays = SVI_ARRAYS(arrays, "the calibration of scores");

void svi_calibrator_free(svi_calibrator **c) {
    if (*c)
        svi_arrays_free(&calibrator_arrays, *c);
    svi_free(*c);
    *c = NULL;
}

/* The identity: every value at its knot, nothing learned. */
static void calibrator_begin_curve(struct calibrator_curve *c) {
    *c = (struct calibrator_curve){0};
    memcpy(c->value, svi_logit_knots, sizeof c->value);
}

/* The law of more classes reads the curve as lines between knots; these follow from its values. */
static void calibrator_draw_lines(svi_calibrator *c) {
    c->quads->lines(c->more->value, c->law.lines);
}

static void calibrator_begin_more(svi_calibrator *c) {
    c->law.line_at = svi_logit_interval;
    c->law.most = SVI_LOGIT_MAX;
    for (int j = 0; j + 1 < SVI_KNOTS; j++)
        c->law.lines[j] = (struct svi_line){.begin = svi_logit_knots[j], .scale = svi_logit_inverse[j]};
    calibrator_begin_curve(c->more);
    calibrator_draw_lines(c);
}

struct calibrator_dims {
    int32_t of[DIMS];
};

static struct calibrator_dims calibrator_dims(int max_classes, bool more) {
    return (struct calibrator_dims){{[CLASSES] = svi_quads_up(max_classes), [MORE] = more}};
}

/* More than two classes get everything at once, for max_classes: the number of classes is then no matter. */
svs_code svi_calibrator_reserve(svi_calibrator *c, int classes, svs_error *err) {
    if (classes < 3 || c->more)
        return SVS_OK;
    const struct calibrator_dims two = calibrator_dims(c->max_classes, false),
                                 more = calibrator_dims(c->max_classes, true);
    const svs_code code = svi_arrays_resize(&calibrator_arrays, c, two.of, more.of, err);
    /* The scratch of the law may have moved, so probabilities that were placed before no longer match it. */
    c->placed = NULL;
    if (code == SVS_OK)
        calibrator_begin_more(c);
    return code;
}

void svi_calibrator_fetch(const svi_calibrator *c) {
    if (c)
        svi_fetch(c, sizeof *c);
}

svi_calibrator *svi_calibrator_new(int max_classes, bool grows, svs_error *err) {
    const struct calibrator_dims dims = calibrator_dims(max_classes, !grows && max_classes > 2);
    svi_calibrator *c = svi_new_plain(sizeof *c, calibrator_arrays.what, err);
    if (!c)
        return NULL;
    c->max_classes = max_classes;
    c->ridge = RIDGE;
    c->quads = svi_quads_get();
    if (svi_arrays_alloc(&calibrator_arrays, c, dims.of, err) == SVS_OK)
        svi_calibrator_reset(c);
    else
        svi_calibrator_free(&c);
    return c;
}

void svi_calibrator_trust(svi_calibrator *c, bool log_odds) {
    c->ridge = log_odds ? TRUST : RIDGE;
}

/* As after _new: slopes at their start with curvature 1, curves on the diagonal, nothing seen. */
void svi_calibrator_reset(svi_calibrator *c) {
    const size_t n = (size_t)c->max_classes;
    c->count = c->rarest = c->held[0] = c->held[1] = 0;
    c->waiting = 0;
    c->reliability = NULL;
    c->placed = NULL;
    c->classes = 0;
    memset(c->seen, 0, n * sizeof *c->seen);
    memcpy(c->pair, (const double[]){PAIR_SLOPE, 0, 1, 0, 1}, sizeof c->pair);
    memset(c->recent, 0, sizeof c->recent);
    calibrator_begin_curve(&c->two);
    if (c->more) {
        calibrator_begin_more(c);
        memset(c->law.b, 0, n * sizeof *c->law.b);
        memset(c->offset_bend, 0, n * sizeof *c->offset_bend);
    }
    c->slope[0] = MORE_SLOPE;
    c->slope[1] = 1;
}

svs_calibration svi_calibrator_law(const svi_calibrator *c, int class_count) {
    return class_count == 2
               ? (svs_calibration){c->pair[0], &c->pair[1], c->two.value}
               : (svs_calibration){c->slope[0], c->law.b, c->more ? c->more->value : svi_logit_knots};
}

/* Computes the probabilities and leaves the sample's logits and places on the curve in `law`, where
 * calibrator_learn_more picks them up. */
static void calibrator_place(svi_calibrator *c, const double *scores, int rows, double *proba) {
    c->law.a = c->slope[0];
    c->quads->law(&c->law, scores, rows);
    if (proba != c->law.p)
        memcpy(proba, c->law.p, (size_t)rows * sizeof *proba);
}

void svi_calibrator_probabilities(svi_calibrator *c, const double *scores, int rows, int class_count,
                                  double *proba) {
    if (rows > 1 && c->more && rows <= c->max_classes) {
        c->placed = proba;
        calibrator_place(c, scores, rows, proba);
    } else {
        const svs_calibration law = svi_calibrator_law(c, class_count);
        svi_probabilities(&law, scores, rows, proba);
        c->placed = NULL;
    }
}

/* ---- the memory */

static inline void calibrator_count_class(svi_calibrator *c, int truth) {
    c->seen[truth]++;
    c->count++;
    c->classes = truth >= c->classes ? truth + 1 : c->classes;
}

/* Counts a sample. True: a step is due. */
static inline bool calibrator_count(svi_calibrator *c, int truth, int64_t *held) {
    calibrator_count_class(c, truth);
    ++*held;
    return c->count < EACH_UNTIL || *held >= STEP;
}

static void calibrator_find_rarest(svi_calibrator *c) {
    c->rarest = INT64_MAX;
    for (int k = 0; k < c->classes; k++)
        if (c->seen[k] > 0 && c->seen[k] < c->rarest)
            c->rarest = c->seen[k];
}

/* m = max(MIN_MEMORY, RARE / share of the rarest class), with the share estimated as (rarest + 1) / (count +
 * 2). */
static double calibrator_memory_of(const svi_calibrator *c, int64_t rarest) {
    const double count = (double)c->count, memory = RARE * (count + 2) / ((double)rarest + 1);
    return memory > MIN_MEMORY ? memory : MIN_MEMORY;
}

/* The factor by which curvature fades over `samples` samples: 1 - samples / min(memory, half of those
 * seen). */
static double calibrator_fade(const svi_calibrator *c, double memory, int64_t samples) {
    /* BEGIN samples count as seen, or the first ones would forget each other at once. */
    const double half = ((double)c->count + BEGIN) / 2;
    const double fade = 1 - (double)samples / (memory < half ? memory : half);
    return fade > 0 ? fade : 0;
}

/* A slope within its limits; NaN becomes the smallest. */
static double calibrator_slope(double a) {
    const double least = a > MIN_SLOPE ? a : MIN_SLOPE;
    return least < MAX_SLOPE ? least : MAX_SLOPE;
}

/* ---- the curve */

/* Keeps the curve rising by at least RISE. Two neighbours that fall move towards each other, each in inverse
 * proportion to its curvature, so that the better known value moves less. */
static void calibrator_raise(struct calibrator_curve *c) {
    double *value = c->value;
    for (int j = 1; j < SVS_CURVE; j++) {
        const double fallen = value[j - 1] + RISE - value[j];
        if (fallen <= 0)
            continue;
        /* The curvature of both includes DAMP, so a value without any sample still resists. */
        const double lower = c->bend[j - 1] + DAMP, upper = c->bend[j] + DAMP;
        value[j] += fallen * lower / (lower + upper);
        value[j - 1] = value[j] - RISE;
        /* Lowering value j - 1 may break the order further down; lower values follow it without weighing. */
        for (int i = j - 1; i > 0 && value[i - 1] > value[i] - RISE; i--)
            value[i - 1] = value[i] - RISE;
    }
}

/* One Newton step of every value of the curve on what was collected since the last one. `pull` draws the
 * values to their knots, in proportion to what has faded, so that it weighs the same whatever the memory. */
static void calibrator_step_curve(svi_calibrator *c, struct calibrator_curve *curve, double fade) {
    const struct svi_curve_step s = {.knot = svi_logit_knots,
                                     .value = curve->value,
                                     .bend = curve->bend,
                                     .slope = curve->slope,
                                     .more_bend = curve->more_bend,
                                     .fade = fade,
                                     .pull = (1 - fade) * CURVE_PULL,
                                     .damp = DAMP,
                                     .most = CURVE_STEP,
                                     .rise = RISE};
    if (c->quads->curve(&s))
        calibrator_raise(curve);
}

/* ---- two classes */

static inline double calibrator_lesser(double a, double b) {
    return b < a ? b : a;
}

/* One Newton step of (a, b): curvature H <- fade H + H of the recent samples, step H^-1 g with the ridge on
 * the diagonal of H and its pull in g. */
static void calibrator_step_pair(svi_calibrator *c, double fade, double samples) {
    double *a = &c->pair[0], *b = &c->pair[1], *h = &c->pair[2], *r = c->recent;
    const double pull = c->ridge * (1 - fade), ga = r[GA] + pull * (*a - PAIR_SLOPE), gb = r[GB] + pull * *b;
    /* Curvature fades and takes in the recent samples in one go: aa, ab, bb. */
    for (int i = 0; i < 3; i++)
        h[i] = fade * h[i] + r[HAA + i];
    /* The variance of the scores, H_aa - H_ab^2 / H_bb over H_bb, is bounded by SPREAD / a^2: curvature left
     * over from far larger scores must not pin the slope. */
    if (h[2] > 0)
        h[0] = calibrator_lesser(h[0], h[1] * h[1] / h[2] + SPREAD * h[2] / (*a * *a));
    const double aa = h[0] + c->ridge, bb = h[2] + c->ridge, determinant = aa * bb - h[1] * h[1];
    const double da = (bb * ga - h[1] * gb) / determinant, db = (aa * gb - h[1] * ga) / determinant;
    /* The logit of score s moves by da s + db; `square` sums the squares of that over the recent samples. */
    const double square = da * da * r[SS] + 2 * da * db * r[S] + db * db * samples;
    const double mean = square / samples, moved = sqrt(mean > 0 ? mean : 0),
                 t = moved > STEP_MAX ? STEP_MAX / moved : 1;
    /* Sums are cleared whether or not the step is usable: an overflow must not repeat itself in the next
     * one. */
    memset(c->recent, 0, sizeof c->recent);
    if (!(determinant > 0) || !isfinite(da) || !isfinite(db) || !isfinite(moved))
        return;
    *a = calibrator_slope(*a - t * da);
    *b = svi_bounded(*b - t * db, MAX_OFFSET);
}

/* The order of the two steps does not matter: their gradients were collected under the law before both. */
static __attribute__((noinline)) void calibrator_step_two(svi_calibrator *c) {
    calibrator_find_rarest(c);
    const double memory = calibrator_memory_of(c, c->rarest);
    calibrator_step_curve(c, &c->two, calibrator_fade(c, CURVE_LONGER * memory, c->held[0]));
    calibrator_step_pair(c, calibrator_fade(c, memory, c->held[0]), (double)c->held[0]);
    c->held[0] = 0;
}

/* Processes the waiting samples with the law, which has not changed since they arrived. The newest is also
 * passed by value: loading four values right after one of them was stored would stall. */
static __attribute__((noinline)) void calibrator_fold(svi_calibrator *c, double newest, double second) {
    /* The law that scored these samples: a step follows only after they are processed. */
    const struct svi_pair_law law = {.a = c->pair[0],
                                     .b = c->pair[1],
                                     .value = c->two.value,
                                     .knot = svi_logit_knots,
                                     .scale = svi_logit_inverse,
                                     .interval_at = svi_logit_interval,
                                     .most = SVI_LOGIT_MAX,
                                     .counts = LEVERAGE};
    struct svi_pair_lesson lesson = {.score = c->score,
                                     .second = c->second,
                                     .newest = newest,
                                     .newest_second = second,
                                     .slope = c->two.slope,
                                     .more_bend = c->two.more_bend,
                                     .sums = c->recent};
    c->quads->pairs(&law, &lesson, c->waiting);
    if (c->reliability)
        svi_reliability_add_pairs(c->reliability, c->quads, lesson.p[0], lesson.p[1], c->second, c->waiting);
    c->waiting = 0;
}

void svi_calibrator_settle(svi_calibrator *c) {
    if (c->waiting > 0)
        calibrator_fold(c, c->score[c->waiting - 1], c->second[c->waiting - 1]);
}

void svi_calibrator_learn_pair(svi_calibrator *c, double score, int truth, svi_reliability *reliability) {
    /* Waiting samples belong to the figures that they arrived with. */
    if (c->reliability != reliability) {
        svi_calibrator_settle(c);
        c->reliability = reliability;
    }
    const double bounded = svi_bounded(score, 1e100), second = truth;
    c->score[c->waiting] = bounded;
    c->second[c->waiting++] = second;
    /* Nothing reads the law's sums before a step is due, so the samples can wait for it. */
    if (!calibrator_count(c, truth, &c->held[0]))
        return;
    calibrator_fold(c, bounded, second);
    calibrator_step_two(c);
}

/* ---- more classes */

/* One Newton step of the slope: gradient sum_k p_k s_k - s_truth, curvature the variance of the scores under
 * p. A step moves logits by at most STEP_MAX standard deviations of the score. */
static void calibrator_step_slope(svi_calibrator *c, const struct svi_classes_lesson *lesson, double fade) {
    /* The curvature fades by one sample, since this step is taken with every one. */
    double *a = &c->slope[0], *h = &c->slope[1];
    *h = fade * *h + lesson->square;
    const double pull = RIDGE * (1 - fade) * (*a - MORE_SLOPE);
    const double da = (lesson->mean - lesson->at_truth + pull) / (*h + RIDGE);
    const double moved = fabs(da) * sqrt(lesson->square), t = moved > STEP_MAX ? STEP_MAX / moved : 1;
    *a = calibrator_slope(*a - t * da);
}

/* Slope and offsets step with every sample, because with several rows the learner itself costs more; the
 * curve steps when one is due. Huge scores are scaled down together: the law limits differences of logits to
 * SVI_LOGIT_MAX anyway. */
static void calibrator_learn_more(svi_calibrator *c, int rows, int truth) {
    c->placed = NULL; /* the law changes from here on */
    const bool due = calibrator_count(c, truth, &c->held[1]);
    /* `rarest` is refreshed with the steps only; in between the memory grows with the count alone. */
    if (due)
        calibrator_find_rarest(c);
    const double memory = calibrator_memory_of(c, c->rarest), count = (double)c->count;
    struct svi_classes_lesson lesson = {.truth = truth,
                                        .slope = c->more->slope,
                                        .more_bend = c->more->more_bend,
                                        .bend = c->offset_bend,
                                        .seen = c->seen,
                                        .rare = RARE,
                                        .samples = count + 2,
                                        .least = MIN_MEMORY,
                                        .half = (count + BEGIN) / 2,
                                        .pull = CURVE_PULL,
                                        .damp = DAMP,
                                        .step = STEP_MAX,
                                        .most = MAX_OFFSET,
                                        .scores = LEVERAGE};
    if (truth >= rows)
        return; /* a class without a score yet is counted but teaches nothing */
    /* The offsets step inside `learn`; the slope, which all classes share, after it. */
    c->quads->learn(&c->law, &lesson, rows);
    calibrator_step_slope(c, &lesson, calibrator_fade(c, memory, 1));
    if (!due)
        return;
    calibrator_step_curve(c, c->more, calibrator_fade(c, CURVE_LONGER * memory, c->held[1]));
    calibrator_draw_lines(c);
    c->held[1] = 0;
}

void svi_calibrator_learn(svi_calibrator *c, const double *scores, int rows, int class_count, int truth,
                          const double *proba) {
    if (truth < 0 || truth >= c->max_classes || class_count < 2 || rows > c->max_classes)
        return;
    if ((rows > 1 || truth > 1) && !c->more)
        return; /* svi_calibrator_reserve was not called */
    if (rows == 1 && truth > 1) {
        calibrator_count_class(c, truth); /* a class without a score yet */
    } else if (rows == 1) {
        svi_calibrator_learn_pair(c, scores[0], truth, NULL);
    } else {
        /* The step reads the sample's scratch in `law`, so that must belong to these very probabilities. */
        if (!proba || proba != c->placed)
            svi_calibrator_probabilities(c, scores, rows, class_count, c->law.p);
        calibrator_learn_more(c, rows, truth);
    }
}

/* ---- archive */

_Static_assert(sizeof(struct calibrator_curve) == 4 * SVS_CURVE * sizeof(double), "a curve is doubles");

static bool calibrator_is_slope(double a) {
    return a >= MIN_SLOPE && a <= MAX_SLOPE;
}

/* Was anything learned about more than two classes? If not, the archive leaves that part out. */
static bool calibrator_uses_more(const svi_calibrator *c) {
    struct calibrator_curve begin;
    calibrator_begin_curve(&begin);
    bool uses = c->more && memcmp(c->more, &begin, sizeof begin) != 0;
    for (int k = 0; c->more && k < c->max_classes && !uses; k++)
        uses = c->law.b[k] != 0 || c->offset_bend[k] != 0;
    return uses;
}

/* The number of classes up to the last one with a sample or an offset. */
static int calibrator_used_classes(const svi_calibrator *c) {
    int n = c->max_classes;
    while (n > 0 && c->seen[n - 1] == 0 && (!c->more || (c->law.b[n - 1] == 0 && c->offset_bend[n - 1] == 0)))
        n--;
    return n;
}

static void calibrator_check_offsets(struct svi_archive *a, const svi_calibrator *c) {
    for (int k = 0; k < c->max_classes && svi_archive_ok(a); k++)
        svi_archive_check(a, fabs(c->law.b[k]) <= MAX_OFFSET && c->offset_bend[k] >= 0,
                          "an offset is out of range");
}

static void calibrator_check_curve(struct svi_archive *a, const struct calibrator_curve *c) {
    for (int j = 0; j < SVS_CURVE && svi_archive_ok(a); j++)
        svi_archive_check(a, c->bend[j] >= 0 && c->more_bend[j] >= 0,
                          "the curvature of probabilities is negative");
    for (int j = 1; j < SVS_CURVE && svi_archive_ok(a); j++)
        svi_archive_check(a, c->value[j] > c->value[j - 1], "the curve of probabilities falls");
}

void svi_calibrator_archive(struct svi_archive *a, svi_calibrator *c) {
    /* Waiting samples are not part of the archive. The sizes are taken before the reset; when loading, they
     * are read. */
    svi_calibrator_settle(c);
    int used = calibrator_used_classes(c);
    bool more = calibrator_uses_more(c);
    if (svi_archive_loading(a))
        svi_calibrator_reset(c);
    /* Sizes first: the arrays that follow need their capacity before they can be read. */
    svi_archive_int64(a, "calibrated", &c->count, 0, COUNT_MAX);
    svi_archive_int64(a, "rarest", &c->rarest, 0, COUNT_MAX);
    svi_archive_int(a, "calibrated classes", &used, 0, c->max_classes);
    svi_archive_bool(a, "more than two", &more);
    if (!svi_archive_ok(a) || svi_calibrator_reserve(c, more ? 3 : 2, a->err) != SVS_OK)
        return;
    const struct calibrator_dims dims = calibrator_dims(c->max_classes, c->more != NULL);
    const int32_t in_use[DIMS] = {used, more};
    svi_archive_finite(a, "pair", c->pair, 5);
    svi_archive_finite(a, "slope", c->slope, 2);
    svi_archive_int64s(a, "held", c->held, 2, 0, HELD_MAX);
    svi_archive_finite(a, "recent", c->recent, PAIR_SUMS);
    svi_archive_finite(a, "curve", c->two.value, 4 * SVS_CURVE);
    svi_arrays_archive(a, &calibrator_arrays, c, dims.of, in_use);
    /* `classes` and the lines of the curve are derived, and rebuilt here. */
    for (int k = 0; k < used && svi_archive_ok(a); k++)
        c->classes = c->seen[k] > 0 ? k + 1 : c->classes;
    svi_archive_check(a,
                      calibrator_is_slope(c->pair[0]) && calibrator_is_slope(c->slope[0]) &&
                          fabs(c->pair[1]) <= MAX_OFFSET && c->pair[2] >= 0 && c->pair[4] >= 0 &&
                          c->slope[1] >= 0,
                      "a slope is out of range");
    calibrator_check_curve(a, &c->two);
    if (c->more) {
        calibrator_check_offsets(a, c);
        calibrator_check_curve(a, c->more);
        calibrator_draw_lines(c);
    }
}

double svi_calibrator_memory(int max_classes, int classes) {
    const struct calibrator_dims dims = calibrator_dims(max_classes, classes > 2);
    return (double)sizeof(svi_calibrator) + (double)svi_arrays_bytes(&calibrator_arrays, dims.of);
}

/* ---- many scores at once */

#define FIT_ROUNDS    200
#define FIT_HALVES    30
#define FIT_TOLERANCE 1e-9 /* of the mean loss: less is gained */
#define FIT_RIDGE     1e-9 /* of the mean curvature */
#define FIT_SLOPE_MIN 1e-6 /* of scores whose median size is 1 */

struct calibrator_fit {
    const double *scores; /* divided by their median size, so that the scale of a model is no matter */
    const int32_t *label;
    int64_t n;
    int rows, class_count;
    double a, *b;
    double *target;          /* class_count: target of a row's own class */
    double *proba;           /* class_count: scratch */
    double *gradient, *bend; /* 1 + rows: first of the slope, then of the offsets */
    double cross;            /* mixed second derivative of slope and offset; used with one row */
};

/* The target probability of class k for a row of class `own`. */
static double calibrator_fit_target(const struct calibrator_fit *f, int own, int k) {
    return k == own ? f->target[own] : (1 - f->target[own]) / (f->class_count - 1);
}

/* The factor that brings the largest logit of a row down to LEVERAGE: one score far beyond all others must
 * not pin the slope. */
static double calibrator_fit_shrink(const double *s, int rows, double a) {
    double most = 0;
    for (int k = 0; k < rows; k++)
        most = fmax(most, fabs(a * s[k]));
    return most > LEVERAGE ? LEVERAGE / most : 1;
}

/* The mean loss at (a, b). With `slopes` also its gradient and the diagonal of its curvature: of the slope
 * the variance of the scores under p, of offset k p_k (1 - p_k). */
static double calibrator_fit_loss(struct calibrator_fit *f, double a, const double *b, bool slopes) {
    const svs_calibration law = {a, b, NULL};
    double loss = 0;
    if (slopes) {
        memset(f->gradient, 0, 2 * (1 + (size_t)f->rows) * sizeof *f->gradient);
        f->cross = 0;
    }
    /* Loss and derivatives are summed in one pass over the rows, in their order. */
    for (int64_t i = 0; i < f->n; i++) {
        const double *s = f->scores + i * f->rows;
        const double shrink = slopes ? calibrator_fit_shrink(s, f->rows, a) : 1;
        double mean = 0, wanted = 0, square = 0;
        /* One row stands for two classes: its score belongs to the second. */
        svi_probabilities(&law, s, f->rows, f->proba);
        for (int k = 0; k < f->class_count; k++)
            loss -= calibrator_fit_target(f, f->label[i], k) * log(f->proba[k]);
        for (int k = 0; slopes && k < f->rows; k++) {
            const int class = f->rows == 1 ? 1 : k;
            const double p = f->proba[class], t = calibrator_fit_target(f, f->label[i], class),
                         x = shrink * s[k];
            mean += p * x;
            wanted += t * x;
            square += p * x * x;
            f->gradient[1 + k] += p - t;
            f->bend[1 + k] += p * (1 - p);
            f->cross += p * (1 - p) * x;
        }
        if (slopes) {
            f->gradient[0] += mean - wanted;
            f->bend[0] += square - mean * mean;
        }
    }
    for (int k = 0; slopes && k <= f->rows; k++) {
        f->gradient[k] /= (double)f->n;
        f->bend[k] = f->bend[k] / (double)f->n + FIT_RIDGE;
    }
    f->cross /= slopes ? (double)f->n : 1;
    return loss / (double)f->n;
}

/* Moves the slope by -da and the offsets by -db, with the step halved until the loss falls; without a fall
 * nothing moves. Returns the loss. */
static double calibrator_fit_move(struct calibrator_fit *f, double loss, double da, const double *db,
                                  double *tried) {
    for (int half = 0; half < FIT_HALVES; half++) {
        const double share = ldexp(1, -half), a = f->a - share * da;
        for (int k = 0; k < f->rows; k++)
            tried[k] = f->b[k] - share * db[k];
        const double now = a >= FIT_SLOPE_MIN ? calibrator_fit_loss(f, a, tried, false) : INFINITY;
        if (now < loss) {
            f->a = a;
            memcpy(f->b, tried, (size_t)f->rows * sizeof *f->b);
            return now;
        }
    }
    return loss;
}

/* One Newton step for two classes. For more, the slope steps first and the offsets then step together, from
 * derivatives at the new slope. Returns the loss. */
static double calibrator_fit_round(struct calibrator_fit *f, double *step, double *tried) {
    double loss = calibrator_fit_loss(f, f->a, f->b, true);
    const double *g = f->gradient, *h = f->bend;
    if (f->rows == 1) {
        const double determinant = h[0] * h[1] - f->cross * f->cross;
        step[0] = (h[0] * g[1] - f->cross * g[0]) / determinant;
        return calibrator_fit_move(f, loss, (h[1] * g[0] - f->cross * g[1]) / determinant, step, tried);
    }
    memset(step, 0, (size_t)f->rows * sizeof *step);
    loss = calibrator_fit_move(f, loss, g[0] / h[0], step, tried);
    loss = calibrator_fit_loss(f, f->a, f->b, true);
    for (int k = 0; k < f->rows; k++)
        step[k] = g[1 + k] / h[1 + k];
    return calibrator_fit_move(f, loss, 0, step, tried);
}

/* Softmax does not change when all offsets move together: their mean is set to 0. */
static void calibrator_fit_center(struct calibrator_fit *f) {
    double mean = 0;
    for (int k = 0; k < f->rows; k++)
        mean += f->b[k] / f->rows;
    for (int k = 0; k < f->rows && f->rows > 1; k++)
        f->b[k] -= mean;
}

static int calibrator_fit_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median absolute score; 1 where it is 0. sizes: scratch for `count` values. */
static double calibrator_fit_scale(const double *scores, size_t count, double *sizes) {
    for (size_t i = 0; i < count; i++)
        sizes[i] = fabs(scores[i]);
    qsort(sizes, count, sizeof *sizes, calibrator_fit_compare);
    return count > 0 && sizes[count / 2] > 0 ? sizes[count / 2] : 1;
}

svs_code svi_calibrator_fit(const double *scores, const int32_t *label, int64_t n, int rows, int class_count,
                            double *a, double *b, svs_error *err) {
    const size_t count = (size_t)n * (size_t)rows;
    /* One block for gradient, bend, step, tried (rows + 1 each), target and proba (class_count each). */
    double *work = svi_alloc_array(4 * (size_t)(rows + 1) + 2 * (size_t)class_count, sizeof *work);
    double *scaled = svi_alloc_array(count + 1, sizeof *scaled);
    if (!work || !scaled) {
        svi_free(work);
        svi_free(scaled);
        return svi_fail_memory(err, "the calibration of scores");
    }
    /* `scaled` is scratch of the median first, and gets the scores after it. */
    const double scale = calibrator_fit_scale(scores, count, scaled);
    for (size_t i = 0; i < count; i++)
        scaled[i] = scores[i] / scale;
    struct calibrator_fit f = {
        .scores = scaled, .label = label, .n = n, .rows = rows, .class_count = class_count};
    double *step = work + 2 * (rows + 1), *tried = step + rows + 1;
    f.gradient = work;
    f.bend = work + rows + 1;
    f.target = tried + rows + 1;
    f.proba = f.target + class_count;
    f.b = b;
    /* The slopes begin at 2 and 1, like PAIR_SLOPE and MORE_SLOPE, but of scores of median size 1. */
    f.a = rows == 1 ? 2 : 1;
    memset(b, 0, (size_t)rows * sizeof *b);
    for (int64_t i = 0; i < n; i++)
        f.target[label[i]]++;
    /* `target` holds n_k up to here: (n_k + 1) / (n_k + K). */
    for (int k = 0; k < class_count; k++)
        f.target[k] = (f.target[k] + 1) / (f.target[k] + class_count);
    double loss = INFINITY;
    /* The loss never rises, so a small gain means that the minimum is near; the bound is for cycles of
     * rounding. */
    for (int round = 0; round < FIT_ROUNDS; round++) {
        const double now = calibrator_fit_round(&f, step, tried);
        if (loss - now < FIT_TOLERANCE)
            break;
        loss = now;
    }
    /* Offsets belong to logits and are not rescaled; the slope returns to the scores' own scale. */
    calibrator_fit_center(&f);
    *a = f.a / scale;
    svi_free(work);
    svi_free(scaled);
    return f.a > 2 * FIT_SLOPE_MIN
               ? SVS_OK
               : svi_fail(err, SVS_UNAVAILABLE,
                          "the scores do not separate the classes: no probabilities that rise with them fit");
}
