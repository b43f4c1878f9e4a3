/* The stack of one stream key over its few members (key_stack.h).
 *
 * Classes: member j gives the logits S_jk, and the answer is p = softmax(sum_j w_j S_jk). A label y moves w
 * by a Newton step on the log loss, with the gradient g_j = sum_k (p_k - y_k) S_jk and the Hessian H_ij =
 * sum_k p_k S_ik S_jk - m_i m_j, m_j = sum_k p_k S_jk. Regression: inputs are differences from the running
 * mean of the targets in units of their deviation, and the loss is half the squared error.
 *
 * w = start.w + delta. The Hessian of a key begins with that of an average row of the fleet times
 * PRIOR_ROWS: so the key moves away from the start as if that had been learned from that many own rows.
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
#define MAX_ROWS    20000 /* rows that the start remembers */
#define MIN_PROBA   1e-6
#define RIDGE       0.5
#define MAX_LOSSES  5000 /* rows whose losses of experts are remembered, of all keys */
#define LOSS_ROWS   150  /* rows of a key that these count for */
#define LOSS_SHARP  1000 /* rows at most that weigh the experts: exp(-rows * loss) */
#define VALUE_SHARP 10   /* of a regression, by losses relative to the least */
#define ALONE       1.4  /* slope of the learner alone: its scores are about -1 and 1 */
#define GROWN       50   /* rows after which the learner of all counts half */
#define RATE_ROWS   5    /* rows that each class counts for at first */
#define MIN_TARGETS 5    /* before that the deviation of targets is a guess */

enum { HOST, WHOLE, RATE, LAST, SHARED };
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

/* ---- solving M equations */

/* Solves A v = b for a symmetric positive definite A by Cholesky; both are destroyed, b becomes v. */
static bool key_stack_solve(double A[M][M], double *b) {
    for (int j = 0; j < M; j++) {
        for (int k = 0; k < j; k++)
            A[j][j] -= A[j][k] * A[j][k];
        if (!(A[j][j] > 0))
            return false;
        A[j][j] = sqrt(A[j][j]);
        for (int i = j + 1; i < M; i++) {
            for (int k = 0; k < j; k++)
                A[i][j] -= A[i][k] * A[j][k];
            A[i][j] /= A[j][j];
        }
        for (int k = 0; k < j; k++)
            b[j] -= A[j][k] * b[k];
        b[j] /= A[j][j];
    }
    for (int j = M - 1; j >= 0; j--) {
        for (int i = j + 1; i < M; i++)
            b[j] -= A[i][j] * b[i];
        b[j] /= A[j][j];
    }
    return true;
}

/* w -= H^-1 g, where that can be computed. */
static void stack_step(double *w, double H[M][M], const double *g) {
    double v[M];
    memcpy(v, g, sizeof v);
    if (key_stack_solve(H, v))
        for (int j = 0; j < M; j++)
            w[j] -= v[j];
}

/* ---- the start */

void svi_stack_start_init(struct svi_stack_start *s) {
    static const double begin[M] = {[HOST] = 1.5, [WHOLE] = 0.1, [RATE] = 0.1, [LAST] = 0, [SHARED] = 0.2};
    *s = (struct svi_stack_start){.rows = 1, .loss = {14, 16, 15}, .losses = 50};
    memcpy(s->w, begin, sizeof begin);
    for (int j = 0; j < M; j++)
        s->H[j][j] = 10;
}

void svi_stack_start_archive(struct svi_archive *a, struct svi_stack_start *s) {
    svi_archive_finite(a, "start weights", s->w, M);
    svi_archive_finite(a, "start information", &s->H[0][0], M * M);
    svi_archive_finite(a, "start rows", &s->rows, 1);
    svi_archive_finite(a, "start losses", s->loss, E);
    svi_archive_finite(a, "start loss rows", &s->losses, 1);
    svi_archive_check(a, s->rows >= 1 && s->losses >= 0, "the stack of new keys has no rows");
}

/* Each part began as a copy of *s: its information is that of *s and what it has learned since, and the
 * same holds of H w. The sums of both give the weights of all. */
void svi_stack_start_merge(struct svi_stack_start *s, struct svi_stack_start *part, int parts) {
    struct svi_stack_start sum = *s;
    double right[M] = {0}, A[M][M];
    for (int p = -1; p < parts; p++)
        for (int i = 0; i < M; i++)
            for (int j = 0; j < M; j++) {
                const double before = p < 0 ? 0 : s->H[i][j];
                const double *w = p < 0 ? s->w : part[p].w;
                const double now = p < 0 ? s->H[i][j] : part[p].H[i][j];
                right[i] += now * w[j] - before * s->w[j];
                sum.H[i][j] += p < 0 ? 0 : now - before;
            }
    for (int p = 0; p < parts; p++)
        sum.rows += part[p].rows - s->rows;
    for (int p = 0; p < parts; p++) {
        sum.losses += part[p].losses - s->losses;
        for (int i = 0; i < E; i++)
            sum.loss[i] += part[p].loss[i] - s->loss[i];
    }
    const double fade = sum.losses > MAX_LOSSES ? MAX_LOSSES / sum.losses : 1;
    for (int i = 0; i < E; i++)
        s->loss[i] = sum.loss[i] *= fade;
    s->losses = sum.losses *= fade;
    memcpy(A, sum.H, sizeof A);
    if (sum.rows > s->rows && key_stack_solve(A, right)) {
        const double keep = sum.rows > MAX_ROWS ? MAX_ROWS / sum.rows : 1;
        *s = sum;
        memcpy(s->w, right, sizeof s->w);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < M; j++)
                s->H[i][j] *= keep;
        s->rows *= keep;
    }
    for (int p = 0; p < parts; p++)
        part[p] = *s;
}

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
    stack_learner(r->host, r->rows, K, S + HOST * K);
    stack_learner(r->whole, r->rows, K, S + WHOLE * K);
    /* A young learner knows little: its weight grows with its rows. */
    const double grown = (double)s->learned / ((double)s->learned + GROWN);
    for (int k = 0; k < K; k++) {
        S[WHOLE * K + k] *= grown;
        S[RATE * K + k] = log(((double)s->count[k] + RATE_ROWS) / (total + RATE_ROWS * K));
        S[LAST * K + k] = k == s->last;
        S[SHARED * K + k] = 0;
    }
    if (r->shared && r->shared->known && r->shared->class_count > 1)
        stack_shared(r, K, S + SHARED * K);
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
 * others say. */
static void stack_values(const struct svi_key_stack *s, const struct svi_stack_row *r, double *u) {
    const bool shared = r->shared && r->shared->known;
    const double said = shared ? r->shared->value[0] : r->host[0];
    const double center = s->learned > 0 ? s->mean : said, deviation = sqrt(s->spread);
    const double unit = deviation > 0 ? deviation : fabs(center) > 0 ? fabs(center) : 1;
    const double value[M] = {[HOST] = r->host[0],
                             [WHOLE] = s->learned > 0 ? r->whole[0] : center,
                             [RATE] = center,
                             [LAST] = s->learned > 0 ? s->last_target : center,
                             [SHARED] = shared ? r->shared->value[0] : center};
    for (int j = 0; j < M; j++)
        u[j] = stack_bounded((value[j] - center) / unit);
    u[M] = center;
    u[M + 1] = unit;
}

/* Weights of each expert as members' weights: experts are stacks, too, with fixed weights. */
static void stack_expert(const double *w, int expert, double *of) {
    for (int j = 0; j < M; j++)
        of[j] = expert == STACK ? w[j] : 0;
    if (expert == ALONE_HOST)
        of[HOST] = ALONE;
    if (expert == ALONE_SHARED)
        of[SHARED] = 1;
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
            of[HOST] = 1;
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

static void stack_teach(struct svi_stack_start *part, const double *g, double H[M][M]) {
    double A[M][M];
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++)
            A[i][j] = part->H[i][j] += H[i][j];
    part->rows++;
    stack_step(part->w, A, g);
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
    stack_step(s->delta, A, pulled);
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
            stack_teach(part, g, H);
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
    if (svi_archive_ok(a))
        svi_archive_floats(a, "counts", s->count, s->classes);
}
