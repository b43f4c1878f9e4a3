/* The stack of one stream key over its few members (key_stack.h).
 *
 * Classes: member j gives the logits S_jk, and the answer is p = softmax(sum_j w_j S_jk). A label y moves w
 * by a Newton step on the log loss, with the gradient g_j = sum_k (p_k - y_k) S_jk and the Hessian H_ij =
 * sum_k p_k S_ik S_jk - m_i m_j, m_j = sum_k p_k S_jk. Regression: inputs are differences from the running
 * mean of the targets in units of their deviation, and the loss is half the squared error.
 *
 * w = start.w + delta. The Hessian of a key begins with that of an average row of the fleet times
 * PRIOR_ROWS: so the key moves away from the start as if PRIOR_ROWS rows of its own had taught that.
 * Inputs are bounded, and a key teaches the start by its first TEACHES rows only: its influence on how other
 * keys begin is bounded, whatever it sends.
 *
 * Read svi_key_stack_score, then svi_key_stack_learn. */
#include "bank/key_stack.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/owned_model.h"

#define M           SVI_STACK_MEMBERS
#define E           SVI_STACK_EXPERTS
#define MAX_INPUT   4.0
#define MAX_ERROR   5.0   /* of a regression, in deviations */
#define KEEP        0.998 /* of a key's own information, a row */
#define KEEP_COUNT  0.99  /* of the counts of classes, and the figures of targets */
#define PRIOR_ROWS  300   /* rows of its own that the start counts for */
#define TEACHES     200   /* rows of a key that teach the start */
#define MIN_PROBA   1e-6
#define RIDGE       0.5
#define LOSS_ROWS   150  /* rows of a key that these count for */
#define LOSS_SHARP  1000 /* rows at most that weigh the experts: exp(-rows * loss) */
#define VALUE_SHARP 10   /* of a regression, by losses relative to the least */
#define ALONE       1.4  /* slope of the learner alone: its scores are about -1 and 1 */
#define GROWN       50   /* rows after which the learner of all counts half */
#define RATE_ROWS   5    /* rows that each class counts for at first */
#define MIN_TARGETS 5    /* before that the deviation of targets is a guess */
#define CONSTANT    30   /* equal targets, after which the key's is taken for constant */

enum { ALONE_HOST, ALONE_SHARED, STACK };

struct svi_key_stack {
    bool regress;
    int max_classes, classes; /* with counts */
    int last;                 /* class of the last label; -1: none */
    int64_t learned;
    double delta[M], H[M][M]; /* H: without what it begins with */
    double mean, spread, last_target;
    double loss[E], losses; /* as in struct svi_stack_start, fading */
    float *count;           /* by class */
};

/* ---- one stack */

struct svi_key_stack *svi_key_stack_new(bool regress, int max_classes, svs_error *err) {
    struct svi_key_stack *s = svi_alloc(sizeof *s);
    if (!s) {
        svi_fail_memory(err, "the stack of a key");
        return NULL;
    }
    s->regress = regress;
    s->max_classes = regress ? 1 : max_classes;
    if (!(s->count = svi_alloc_array((size_t)s->max_classes, sizeof *s->count))) {
        svi_fail_memory(err, "the stack of a key");
        svi_key_stack_free(&s);
        return NULL;
    }
    svi_key_stack_reset(s);
    return s;
}

void svi_key_stack_free(struct svi_key_stack **s) {
    if (*s)
        svi_free((*s)->count);
    svi_free(*s);
    *s = NULL;
}

void svi_key_stack_reset(struct svi_key_stack *s) {
    memset(s->count, 0, (size_t)s->max_classes * sizeof *s->count);
    memset(s->delta, 0, sizeof s->delta);
    memset(s->H, 0, sizeof s->H);
    memset(s->loss, 0, sizeof s->loss);
    s->losses = 0;
    s->last = -1;
    s->classes = 0;
    s->learned = 0;
    s->mean = s->spread = s->last_target = 0;
}

double svi_key_stack_memory(int classes) {
    return sizeof(struct svi_key_stack) + classes * (double)sizeof(float);
}

int svi_key_stack_inputs(int max_classes) {
    return (M + E + 1) * (max_classes < 2 ? 2 : max_classes) + 2;
}

static double stack_bounded(double v) {
    return v > MAX_INPUT ? MAX_INPUT : v >= -MAX_INPUT ? v : v < -MAX_INPUT ? -MAX_INPUT : 0;
}

/* Logits of a learner's scores. */
static void stack_learner(const double *scores, int rows, int classes, double *out) {
    for (int k = 0; k < classes; k++)
        out[k] = rows > 1 ? scores[k] : k == 1 ? scores[0] : -scores[0];
}

/* A learner of the key may know the classes in another order than the bank of all keys. A class that the
 * bank does not know gets its least value. */
static void stack_shared(const struct svi_stack_row *r, int classes, double *out) {
    const struct svi_shared_score *s = r->shared;
    double least = 0;
    for (int k = 0; k < s->class_count; k++)
        least = fmin(least, s->value[k]);
    for (int k = 0; k < classes; k++) {
        const int at = svi_class_index(s->classes, s->class_count, r->classes[k], k);
        out[k] = at >= 0 ? s->value[at] : least;
    }
}

/* Logits are centred, since a constant in all classes means nothing, and bounded. */
static void stack_center(double *S, int classes) {
    double mean = 0;
    for (int k = 0; k < classes; k++)
        mean += S[k] / classes;
    for (int k = 0; k < classes; k++)
        S[k] = stack_bounded(S[k] - mean);
}

static void stack_inputs(const struct svi_key_stack *s, const struct svi_stack_row *r, double *S) {
    const int K = r->class_count;
    double total = 0;
    for (int k = 0; k < K; k++)
        total += (double)s->count[k];
    stack_learner(r->host, r->rows, K, S + SVI_STACK_HOST * K);
    stack_learner(r->whole, r->rows, K, S + SVI_STACK_WHOLE * K);
    /* A young learner knows little: its weight grows with its rows. */
    const double grown = (double)s->learned / ((double)s->learned + GROWN);
    for (int k = 0; k < K; k++) {
        S[SVI_STACK_WHOLE * K + k] *= grown;
        S[SVI_STACK_RATE * K + k] = log(((double)s->count[k] + RATE_ROWS) / (total + RATE_ROWS * K));
        S[SVI_STACK_LAST * K + k] = k == s->last;
        S[SVI_STACK_SHARED * K + k] = 0;
    }
    if (r->shared && r->shared->known && r->shared->class_count > 1)
        stack_shared(r, K, S + SVI_STACK_SHARED * K);
    for (int j = 0; j < M; j++)
        stack_center(S + j * K, K);
}

static void stack_softmax(const double *w, const double *S, int K, double *p) {
    double most = -INFINITY, sum = 0;
    for (int k = 0; k < K; k++) {
        p[k] = 0;
        for (int j = 0; j < M; j++)
            p[k] += w[j] * S[j * K + k];
        most = fmax(most, p[k]);
    }
    for (int k = 0; k < K; k++)
        sum += p[k] = exp(p[k] - most);
    for (int k = 0; k < K; k++)
        p[k] /= sum;
}

static void stack_weights(const struct svi_key_stack *s, const struct svi_stack_start *start, double *w) {
    for (int j = 0; j < M; j++)
        w[j] = start->w[j] + s->delta[j];
}

/* Center and unit of the values of a regression. Before the first target the center is the value that the
 * others predict. */
static void stack_values(const struct svi_key_stack *s, const struct svi_stack_row *r, double *u) {
    const bool shared = r->shared && r->shared->known;
    const double predicted = shared ? r->shared->value[0] : r->host[0];
    const double center = s->learned > 0 ? s->mean : predicted, deviation = sqrt(s->spread);
    const double unit = deviation > 0 ? deviation : fabs(center) > 0 ? fabs(center) : 1;
    const double value[M] = {[SVI_STACK_HOST] = r->host[0],
                             [SVI_STACK_WHOLE] = s->learned > 0 ? r->whole[0] : center,
                             [SVI_STACK_RATE] = center,
                             [SVI_STACK_LAST] = s->learned > 0 ? s->last_target : center,
                             [SVI_STACK_SHARED] = shared ? r->shared->value[0] : center};
    /* A constant leaves nothing to explain, and no information by which the weights could become 0. */
    const bool constant = s->learned >= CONSTANT && deviation == 0;
    for (int j = 0; j < M; j++)
        u[j] = constant ? 0 : stack_bounded((value[j] - center) / unit);
    u[M] = center;
    u[M + 1] = unit;
}

/* Weights of each expert as members' weights: experts are stacks, too, with fixed weights. */
static void stack_expert(const double *w, int expert, double *of) {
    for (int j = 0; j < M; j++)
        of[j] = expert == STACK ? w[j] : 0;
    if (expert == ALONE_HOST)
        of[SVI_STACK_HOST] = ALONE;
    if (expert == ALONE_SHARED)
        of[SVI_STACK_SHARED] = 1;
}

/* Shares of the experts, by their losses: of the key, and of all keys as if LOSS_ROWS rows of its own had had
 * them. */
static void stack_shares(const struct svi_key_stack *s, const struct svi_stack_start *start, double *share) {
    const double sharp = fmin(LOSS_SHARP, start->losses + s->losses);
    double loss[E], least = INFINITY, sum = 0;
    for (int i = 0; i < E; i++) {
        const double all = start->losses > 0 ? start->loss[i] / start->losses : 0;
        loss[i] = (LOSS_ROWS * all + s->loss[i]) / (LOSS_ROWS + s->losses);
        least = fmin(least, loss[i]);
    }
    for (int i = 0; i < E; i++)
        sum += share[i] = exp(s->regress ? -VALUE_SHARP * (loss[i] - least) / fmax(least, MIN_PROBA)
                                         : -sharp * (loss[i] - least));
    for (int i = 0; i < E; i++)
        share[i] /= sum;
}

/* Probabilities of each expert, E x K; a regression: values in units, E. */
static void stack_experts(const double *w, const double *inputs, bool regress, int K, double *out) {
    double of[M];
    for (int i = 0; i < E; i++) {
        stack_expert(w, i, of);
        if (!regress) {
            stack_softmax(of, inputs, K, out + i * K);
            continue;
        }
        if (i == ALONE_HOST)
            of[SVI_STACK_HOST] = 1;
        out[i] = 0;
        for (int j = 0; j < M; j++)
            out[i] += of[j] * inputs[j];
    }
}

void svi_key_stack_score(const struct svi_key_stack *s, const struct svi_stack_start *start,
                         const struct svi_stack_row *r, double *inputs, double *out) {
    const int K = r->class_count;
    double w[M], share[E], value[E], *p = inputs + M * K, *each = p + K;
    stack_weights(s, start, w);
    stack_shares(s, start, share);
    if (s->regress) {
        double sum = 0;
        stack_values(s, r, inputs);
        stack_experts(w, inputs, true, 1, value);
        for (int i = 0; i < E; i++)
            sum += share[i] * value[i];
        out[0] = inputs[M] + inputs[M + 1] * sum;
        return;
    }
    /* With one class every answer is right. */
    if (K < 2) {
        out[0] = K == 1 ? r->host[0] : 0;
        return;
    }
    stack_inputs(s, r, inputs);
    stack_experts(w, inputs, false, K, each);
    for (int k = 0; k < K; k++) {
        p[k] = 0;
        for (int i = 0; i < E; i++)
            p[k] += share[i] * each[i * K + k];
    }
    if (r->rows == 1)
        out[0] = 0.5 * log(fmax(p[1], MIN_PROBA) / fmax(p[0], MIN_PROBA));
    else
        for (int k = 0; k < K; k++)
            out[k] = log(fmax(p[k], MIN_PROBA));
}

/* Gradient and Hessian of the loss of one row at w. p: K doubles of scratch. */
static void stack_slope(const double *w, const double *S, int K, int label, double *p, double *g,
                        double H[M][M]) {
    double m[M] = {0};
    stack_softmax(w, S, K, p);
    memset(H, 0, sizeof(double[M][M]));
    for (int j = 0; j < M; j++) {
        g[j] = -S[j * K + label];
        for (int k = 0; k < K; k++)
            m[j] += p[k] * S[j * K + k];
        g[j] += m[j];
    }
    for (int i = 0; i < M; i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0;
            for (int k = 0; k < K; k++)
                sum += p[k] * S[i * K + k] * S[j * K + k];
            H[i][j] = H[j][i] = sum - m[i] * m[j];
        }
}

static void stack_slope_value(const double *w, const double *u, double target, double *g, double H[M][M]) {
    double error = -(target - u[M]) / u[M + 1];
    for (int j = 0; j < M; j++)
        error += w[j] * u[j];
    error = error > MAX_ERROR ? MAX_ERROR : error >= -MAX_ERROR ? error : -MAX_ERROR;
    for (int i = 0; i < M; i++) {
        g[i] = error * u[i];
        for (int j = 0; j < M; j++)
            H[i][j] = u[i] * u[j];
    }
}

/* Adds the losses of the experts: a mistake is 1; a regression's squared error is in units, and capped. */
static void stack_assess(struct svi_key_stack *s, const double *w, const double *inputs, int K, int label,
                         double target, struct svi_stack_start *part) {
    double value[E], *each = s->regress ? value : (double *)inputs + M * K + K;
    stack_experts(w, inputs, s->regress, K, each);
    s->losses = KEEP_COUNT * s->losses + 1;
    for (int i = 0; i < E; i++) {
        double loss = 0;
        if (s->regress) {
            const double error = each[i] - (target - inputs[M]) / inputs[M + 1];
            loss = fmin(error * error, MAX_ERROR * MAX_ERROR);
        } else {
            loss = svi_largest_score(K, each + i * K) != label;
        }
        s->loss[i] = KEEP_COUNT * s->loss[i] + loss;
        if (part)
            part->loss[i] += loss;
    }
    if (part)
        part->losses++;
}

/* The key's own step: its information fades, that of the start does not. */
static void stack_own(struct svi_key_stack *s, const struct svi_stack_start *start, const double *g,
                      double H[M][M]) {
    double A[M][M], pulled[M];
    for (int i = 0; i < M; i++) {
        pulled[i] = g[i];
        for (int j = 0; j < M; j++) {
            s->H[i][j] = KEEP * s->H[i][j] + H[i][j];
            A[i][j] = s->H[i][j] + PRIOR_ROWS * start->H[i][j] / start->rows + (i == j ? RIDGE : 0);
        }
    }
    svi_stack_step(s->delta, A, pulled);
}

/* Counts of classes and figures of targets: as counted so far at first, fading later. */
static void stack_count(struct svi_key_stack *s, int label, double target) {
    const double plain = 1 / (double)(s->learned + 1), rate = plain > 1 - KEEP_COUNT ? plain : 1 - KEEP_COUNT;
    if (s->regress) {
        const double before = target - s->mean;
        s->mean += rate * before;
        s->spread = (1 - rate) * (s->spread + rate * before * before);
        s->last_target = target;
    } else {
        for (int k = 0; k < s->classes; k++)
            s->count[k] *= (float)KEEP_COUNT;
        s->classes = label >= s->classes ? label + 1 : s->classes;
        s->count[label]++;
        s->last = label;
    }
    s->learned++;
}

void svi_key_stack_learn(struct svi_key_stack *s, const struct svi_stack_start *start,
                         struct svi_stack_start *part, const double *inputs, int class_count, int label,
                         double target) {
    const int K = class_count;
    double w[M], g[M], H[M][M], p[M + 1];
    const bool teaches = part && s->learned < TEACHES;
    stack_weights(s, start, w);
    if (s->regress ? s->learned >= MIN_TARGETS : K > 1 && label < K) {
        stack_assess(s, w, inputs, K, label, target, teaches ? part : NULL);
        double *scratch = s->regress ? p : (double *)inputs + M * K;
        if (teaches) {
            if (s->regress)
                stack_slope_value(part->w, inputs, target, g, H);
            else
                stack_slope(part->w, inputs, K, label, scratch, g, H);
            svi_stack_start_teach(part, g, H);
        }
        if (s->regress)
            stack_slope_value(w, inputs, target, g, H);
        else
            stack_slope(w, inputs, K, label, scratch, g, H);
        stack_own(s, start, g, H);
    }
    stack_count(s, label, target);
}

void svi_key_stack_archive(struct svi_archive *a, struct svi_key_stack *s) {
    svi_archive_int(a, "classes", &s->classes, 0, s->max_classes);
    svi_archive_int(a, "last", &s->last, -1, s->max_classes - 1);
    svi_archive_int64(a, "learned", &s->learned, 0, SVI_COUNT_MAX);
    svi_archive_finite(a, "weights", s->delta, M);
    svi_archive_finite(a, "information", &s->H[0][0], M * M);
    svi_archive_finite(a, "losses", s->loss, E);
    svi_archive_finite(a, "loss rows", &s->losses, 1);
    double *const figures[] = {&s->mean, &s->spread, &s->last_target};
    static const char *const names[] = {"mean", "spread", "last target"};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        svi_archive_finite(a, names[i], figures[i], 1);
    svi_archive_check(a, s->losses >= 0 && s->spread >= 0, "the stack of a key is out of range");
    if (svi_archive_ok(a))
        svi_archive_floats(a, "counts", s->count, s->classes);
}
