/* The calibration of scores, one Newton step a sample.
 *
 * Two classes: (a, b) by a 2 x 2 curvature; behind it the curve, whose values have a curvature each, so that
 * a sample moves the two between which its logit lies. The curve sees the logit as it was when the sample was
 * scored, and is pulled back to the diagonal by PULL, as if by that much curvature of samples on it: where
 * Platt's sigmoid fits it changes nothing, where labels are noisy it levels off as they do. More classes: the
 * slope a by its own curvature, the offsets b_k by theirs (its diagonal p_k alone, which is never too small).
 *
 * Invariants: a stays above 0 and the curve rises, so at any time probabilities are in the order of the
 * scores; no step moves a logit by more than STEP_MAX; a score whose logit is beyond LEVERAGE counts as if it
 * were there, so that no outlier stiffens the slope. Early curvature is made with a wrong slope: memory grows
 * with what was seen (half of it), which forgets that.
 *
 * Read in order: the memory, two classes, more classes, the archive. */
#include "stats/calibrator.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/probability.h"

#define MEMORY_LEAST 1000.0 /* samples */
#define RARE         500.0  /* samples of the rarest class that are to be remembered */
#define CURVE_LONGER 3.0    /* times the memory of the slope */
#define BEGIN        30.0   /* samples that count as seen at the start */
#define RIDGE        1e-3   /* curvature of the pull of (a, b) to where they began */
#define CURVE_PULL   1.0    /* the same of the curve's values, and of the offsets of more classes */
#define DAMP         10.0   /* curvature that they have from the start */
#define RISE         1e-3   /* of the curve from one value to the next, at least */
#define STEP_MAX     1.0
#define CURVE_STEP   0.5
#define LEVERAGE     12.0
#define SLOPE_LEAST  1e-2
#define SLOPE_MOST   1e4
#define OFFSET_MOST  1e4
#define PAIR_SLOPE   2.0 /* a score is 2 p - 1 where p is near 1/2: least squares on targets of 1 and -1 */
#define MORE_SLOPE   1.0
#define COUNT_MAX    (INT64_MAX / 8)

struct svi_calibrator {
    int max_classes;
    int64_t count, rarest; /* samples with a label; of the class with the fewest, of those that came */
    int64_t *seen;         /* by class */
    double pair[5];        /* two classes: a, b; curvature aa, ab, bb */
    double slope[2];       /* more classes: a and its curvature */
    struct calibrator_curve {
        double value[SVS_CURVE], bend[SVS_CURVE];
    } curve[2]; /* of two, of more */
    double *offset, *offset_bend;
    double *logit, *proba; /* scratch */
};

void svi_calibrator_free(svi_calibrator **pc) {
    svi_calibrator *c = *pc;
    if (!c)
        return;
    svi_free(c->seen);
    svi_free(c->offset);
    svi_free(c);
    *pc = NULL;
}

svi_calibrator *svi_calibrator_new(int max_classes, svs_error *err) {
    svi_calibrator *c = svi_alloc(sizeof *c);
    const size_t n = (size_t)max_classes;
    if (c) {
        c->max_classes = max_classes;
        c->seen = svi_alloc_array(n, sizeof *c->seen);
        c->offset = svi_alloc_array(4 * n, sizeof *c->offset);
    }
    if (!c || !c->seen || !c->offset) {
        svi_calibrator_free(&c);
        svi_fail_memory(err, "the calibration of scores");
        return NULL;
    }
    c->offset_bend = c->offset + n;
    c->logit = c->offset_bend + n;
    c->proba = c->logit + n;
    svi_calibrator_reset(c);
    return c;
}

void svi_calibrator_reset(svi_calibrator *c) {
    const size_t n = (size_t)c->max_classes;
    c->count = c->rarest = 0;
    memset(c->seen, 0, n * sizeof *c->seen);
    memset(c->offset, 0, 4 * n * sizeof *c->offset);
    memcpy(c->pair, (const double[]){PAIR_SLOPE, 0, 1, 0, 1}, sizeof c->pair);
    for (int i = 0; i < 2; i++) {
        memcpy(c->curve[i].value, svi_logit_knots, sizeof c->curve[i].value);
        memset(c->curve[i].bend, 0, sizeof c->curve[i].bend);
    }
    c->slope[0] = MORE_SLOPE;
    c->slope[1] = 1;
}

svs_calibration svi_calibrator_law(const svi_calibrator *c, int class_count) {
    return class_count == 2 ? (svs_calibration){c->pair[0], &c->pair[1], c->curve[0].value}
                            : (svs_calibration){c->slope[0], c->offset, c->curve[1].value};
}

/* ---- the memory */

static void calibrator_count(svi_calibrator *c, int truth) {
    const int64_t before = c->seen[truth]++;
    c->count++;
    if (before > 0 && before > c->rarest)
        return;
    c->rarest = INT64_MAX;
    for (int k = 0; k < c->max_classes; k++)
        if (c->seen[k] > 0 && c->seen[k] < c->rarest)
            c->rarest = c->seen[k];
}

static double calibrator_memory_of(const svi_calibrator *c, int64_t rarest) {
    const double count = (double)c->count, memory = RARE * (count + 2) / ((double)rarest + 1);
    return memory > MEMORY_LEAST ? memory : MEMORY_LEAST;
}

/* The factor by which what is remembered fades with a sample. */
static double calibrator_fade(const svi_calibrator *c, double memory) {
    const double half = ((double)c->count + BEGIN) / 2;
    return 1 - 1 / (memory < half ? memory : half);
}

/* ---- the curve */

/* Keeps the curve rising: two neighbours that fall meet where their curvature says. */
static void calibrator_raise(struct calibrator_curve *c) {
    double *value = c->value;
    for (int j = 1; j < SVS_CURVE; j++) {
        const double fallen = value[j - 1] + RISE - value[j];
        if (fallen <= 0)
            continue;
        const double lower = c->bend[j - 1] + DAMP, upper = c->bend[j] + DAMP;
        value[j] += fallen * lower / (lower + upper);
        value[j - 1] = value[j] - RISE;
        for (int i = j - 1; i > 0 && value[i - 1] > value[i] - RISE; i--)
            value[i - 1] = value[i] - RISE;
    }
}

/* A probability p for what came (y 1) or not (0), at the logits z before the curve. Newton's step of each
 * value by its own curvature. */
static void calibrator_learn_curve(struct calibrator_curve *c, const double *z, const double *p, int count,
                                   int truth, double fade) {
    double slope[SVS_CURVE] = {0};
    for (int j = 0; j < SVS_CURVE; j++)
        c->bend[j] *= fade;
    for (int k = 0; k < count; k++) {
        double share, beyond;
        const int j = svi_logit_place(z[k], &share, &beyond);
        const double bend = p[k] * (1 - p[k]), off = p[k] - (k == truth);
        c->bend[j] += bend * (1 - share);
        c->bend[j + 1] += bend * share;
        slope[j] += off * (1 - share);
        slope[j + 1] += off * share;
    }
    for (int j = 0; j < SVS_CURVE; j++) {
        const double pull = (1 - fade) * CURVE_PULL * (c->value[j] - svi_logit_knots[j]);
        c->value[j] -= svi_bounded((slope[j] + pull) / (c->bend[j] + DAMP), CURVE_STEP);
    }
    calibrator_raise(c);
}

/* ---- two classes */

static double calibrator_sigmoid(double z) {
    return 1 / (1 + exp(-z));
}

static void calibrator_learn_pair(svi_calibrator *c, double score, double y, double fade) {
    double *a = &c->pair[0], *b = &c->pair[1], *h = &c->pair[2];
    const double z = svi_bounded(*a * score + *b, LEVERAGE), s = (z - *b) / *a, p = calibrator_sigmoid(z),
                 bend = p * (1 - p), pull = RIDGE * (1 - fade);
    h[0] = fade * h[0] + bend * s * s;
    h[1] = fade * h[1] + bend * s;
    h[2] = fade * h[2] + bend;
    const double ga = (p - y) * s + pull * (*a - PAIR_SLOPE), gb = p - y + pull * *b;
    const double aa = h[0] + RIDGE, bb = h[2] + RIDGE, determinant = aa * bb - h[1] * h[1];
    const double da = (bb * ga - h[1] * gb) / determinant, db = (aa * gb - h[1] * ga) / determinant;
    const double moved = fabs(da * s + db), t = moved > STEP_MAX ? STEP_MAX / moved : 1;
    if (!(determinant > 0) || !isfinite(da) || !isfinite(db))
        return;
    *a = fmin(fmax(*a - t * da, SLOPE_LEAST), SLOPE_MOST);
    *b = svi_bounded(*b - t * db, OFFSET_MOST);
}

/* ---- more classes */

/* Scores of huge size in their proportion: the law sees differences of logits up to SVI_LOGIT_MAX alone. */
static double calibrator_shrink(const svi_calibrator *c, const double *scores, int rows) {
    double most = 0;
    for (int k = 0; k < rows; k++)
        most = fmax(most, fabs(c->slope[0] * svi_bounded(scores[k], 1e100)));
    return most > LEVERAGE ? LEVERAGE / most : 1;
}

static void calibrator_learn_more(svi_calibrator *c, const double *scores, int rows, int truth) {
    const svs_calibration law = svi_calibrator_law(c, rows);
    const double shrink = calibrator_shrink(c, scores, rows),
                 fade = calibrator_fade(c, calibrator_memory_of(c, c->rarest)), pull = RIDGE * (1 - fade);
    double mean = 0, square = 0, at_truth = 0;
    const svs_calibration straight = {law.a, law.b, NULL};
    svi_probabilities(&law, scores, rows, c->proba);
    for (int k = 0; k < rows; k++)
        c->logit[k] = svi_bounded(law.a * svi_bounded(scores[k], 1e100) + law.b[k], SVI_LOGIT_MAX);
    calibrator_learn_curve(&c->curve[1], c->logit, c->proba, rows, truth,
                           calibrator_fade(c, CURVE_LONGER * calibrator_memory_of(c, c->rarest)));
    svi_probabilities(&straight, scores, rows, c->proba);
    for (int k = 0; k < rows; k++) {
        const double s = shrink * svi_bounded(scores[k], 1e100);
        mean += c->proba[k] * s;
        at_truth += k == truth ? s : 0;
    }
    for (int k = 0; k < rows; k++) {
        const double s = shrink * svi_bounded(scores[k], 1e100) - mean;
        square += c->proba[k] * s * s;
    }
    double *a = &c->slope[0], *h = &c->slope[1];
    *h = fade * *h + square;
    const double da = (mean - at_truth + pull * (*a - MORE_SLOPE)) / (*h + RIDGE);
    const double moved = fabs(da) * sqrt(square), t = moved > STEP_MAX ? STEP_MAX / moved : 1;
    *a = fmin(fmax(*a - t * da, SLOPE_LEAST), SLOPE_MOST);
    for (int k = 0; k < rows; k++) {
        const double slow = calibrator_fade(c, calibrator_memory_of(c, c->seen[k]));
        double *b = &c->offset[k], *bend = &c->offset_bend[k];
        *bend = slow * *bend + c->proba[k] * (1 - c->proba[k]);
        const double step = (c->proba[k] - (k == truth) + CURVE_PULL * (1 - slow) * *b) / (*bend + DAMP);
        *b = svi_bounded(*b - svi_bounded(step, STEP_MAX), OFFSET_MOST);
    }
}

void svi_calibrator_learn(svi_calibrator *c, const double *scores, int rows, int class_count, int truth) {
    if (truth < 0 || truth >= c->max_classes || class_count < 2 || rows > c->max_classes)
        return;
    calibrator_count(c, truth);
    if (truth >= class_count) /* it had no score */
        return;
    if (rows > 1) {
        calibrator_learn_more(c, scores, rows, truth);
        return;
    }
    const double memory = calibrator_memory_of(c, c->rarest), score = svi_bounded(scores[0], 1e100),
                 z = svi_bounded(c->pair[0] * score + c->pair[1], SVI_LOGIT_MAX);
    const svs_calibration law = svi_calibrator_law(c, 2);
    svi_probabilities(&law, scores, 1, c->proba);
    /* one logit, of the second class */
    calibrator_learn_curve(&c->curve[0], &z, &c->proba[1], 1, 1 - truth,
                           calibrator_fade(c, CURVE_LONGER * memory));
    calibrator_learn_pair(c, score, truth, calibrator_fade(c, memory));
}

/* ---- archive */

void svi_calibrator_archive(struct svi_archive *a, svi_calibrator *c) {
    int n = c->max_classes;
    while (n > 0 && c->seen[n - 1] == 0 && c->offset[n - 1] == 0 && c->offset_bend[n - 1] == 0)
        n--; /* the others take no room */
    if (svi_archive_loading(a))
        svi_calibrator_reset(c);
    svi_archive_int64(a, "calibrated", &c->count, 0, COUNT_MAX);
    svi_archive_int64(a, "rarest", &c->rarest, 0, COUNT_MAX);
    svi_archive_int(a, "calibrated classes", &n, 0, c->max_classes);
    if (!svi_archive_ok(a))
        return;
    svi_archive_int64s(a, "seen", c->seen, n, 0, COUNT_MAX);
    svi_archive_finite(a, "pair", c->pair, 5);
    svi_archive_finite(a, "slope", c->slope, 2);
    svi_archive_finite(a, "curve", c->curve[0].value, SVS_CURVE);
    svi_archive_finite(a, "curve bend", c->curve[0].bend, SVS_CURVE);
    svi_archive_finite(a, "curve of more", c->curve[1].value, SVS_CURVE);
    svi_archive_finite(a, "curve bend of more", c->curve[1].bend, SVS_CURVE);
    svi_archive_finite(a, "offset", c->offset, n);
    svi_archive_finite(a, "offset bend", c->offset_bend, n);
    svi_archive_check(a, c->pair[0] >= SLOPE_LEAST && c->slope[0] >= SLOPE_LEAST, "a slope is too small");
    for (int j = 1; j < SVS_CURVE && svi_archive_ok(a); j++)
        for (int i = 0; i < 2; i++)
            svi_archive_check(a, c->curve[i].value[j] > c->curve[i].value[j - 1],
                              "the curve of probabilities falls");
}

double svi_calibrator_memory(int max_classes) {
    return sizeof(svi_calibrator) + (double)max_classes * (sizeof(int64_t) + 4 * sizeof(double));
}
