/* Logistic regressions by online Newton steps, in the recursion of the engine.
 *
 * A step of the recursion (learner/recursion.h) with weight s and target t changes w by P x s (t - w'x) with
 * P after the step. So the Newton step with curvature s = v h and gradient v (y - p) x is the one with
 * t = w'x + (y - p) / h, which needs no kernel of its own. Several classes add the curvature of the classes
 * with t = w'x, which leaves w as it is, and that of the true class last, with t = w'x + 1 / p(y): its
 * centred row is the gradient.
 *
 * The sums fade by `keep`. Between two refreshes P is not scaled; new samples weigh more instead, by
 * growth = keep^-n, and the factor cancels in the change of w. A refresh makes P of the sums and the ridge
 * again. The matrix `gram` is in the units of the last refresh too.
 *
 * Invariants: u is zero beyond the inputs; |w| <= MAX_WEIGHT, else the regression starts again. */
#include "bank/logistic_stack.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "learner/recursion.h"

#define REFRESH       64     /* samples between two refreshes */
#define MOMENTS       10000. /* memory of mean and deviation, in samples */
#define MAX_SCORE     1e6    /* bound of a score in the moments */
#define MIN_DEVIATION 1e-9   /* a member with less says nothing */
#define MIN_CURVATURE 1e-5   /* of a sample, p (1 - p) or p: keeps (y - p) / h exact to ten digits */
#define MIN_CLASS     0.005  /* classes less probable than this add no curvature */
#define MAX_WEIGHT    1e3
#define MIN_SAMPLE    1e-3 /* bounds of the weight of a sample */
#define MAX_SAMPLE    1e3

enum { ROWS, MEMBERS, INPUTS, PADDED, DIMS };

struct logistic_sums {
    double *gram; /* inputs x inputs, lower triangle: sum of v h u u', times growth since the last refresh */
};

static const struct svi_array sums_table[] = {
    SVI_ARRAY(struct logistic_sums, gram, "curvature", SVI_AXIS(INPUTS), SVI_AXIS(INPUTS)),
};
static const struct svi_arrays sums_arrays = SVI_ARRAYS_ALIGNED(sums_table, "a logistic stack");

struct logistic {
    svs_alsvm *m;
    struct logistic_sums sums;
    double growth; /* keep^-n, n samples after the last refresh */
};

struct svi_logistic {
    struct svi_logistic_options o;
    int32_t dims[DIMS];
    int rows;      /* of the current row */
    int64_t count; /* samples since the reset */
    struct logistic of[SVI_LOGISTIC_MAX];
    double *mean, *variance, *scale; /* by member; scale: 1 / deviation, or 0 */
    double *scores;                  /* rows x members, of the current row */
    double *u;                       /* rows x padded: standardised, 1, zeros */
    double *center, *solve, *zero;   /* scratch: padded; inputs x inputs; inputs, always 0 */
};

static const struct svi_array table[] = {
#define OWNER svi_logistic
    SVI_ARRAY(struct OWNER, mean, "means", SVI_AXIS(MEMBERS)),
    SVI_ARRAY(struct OWNER, variance, "variances", SVI_AXIS(MEMBERS)),
    SVI_ARRAY(struct OWNER, scale, NULL, SVI_AXIS(MEMBERS)),
    SVI_ARRAY(struct OWNER, scores, NULL, SVI_AXIS(ROWS), SVI_AXIS(MEMBERS)),
    SVI_ARRAY(struct OWNER, u, NULL, SVI_AXIS(ROWS), SVI_AXIS(PADDED)),
    SVI_ARRAY(struct OWNER, center, NULL, SVI_AXIS(PADDED)),
    SVI_ARRAY(struct OWNER, solve, NULL, SVI_AXIS(INPUTS), SVI_AXIS(INPUTS)),
    SVI_ARRAY(struct OWNER, zero, NULL, SVI_AXIS(INPUTS)),
#undef OWNER
};
static const struct svi_arrays logistic_arrays = SVI_ARRAYS_ALIGNED(table, "the logistic stacks of a bank");

static void logistic_dims(const struct svi_logistic_options *o, int32_t *dims) {
    dims[ROWS] = o->rows_max;
    dims[MEMBERS] = o->members;
    dims[INPUTS] = o->members + 1;
    dims[PADDED] = svi_round_up(o->members + 1, 8);
}

/* Row r of the current one. */
static double *logistic_inputs(const svi_logistic *l, int r) {
    return l->u + (size_t)r * (size_t)l->dims[PADDED];
}

static svs_code logistic_build(svi_logistic *l, svs_error *err) {
    SVI_TRY(svi_arrays_alloc(&logistic_arrays, l, l->dims, err));
    for (int i = 0; i < l->o.count; i++) {
        if (!(l->of[i].m = svs_alsvm_new(l->dims[INPUTS], 1, l->o.ridge, l->o.isa, err)))
            return SVS_NO_MEMORY;
        SVI_TRY(svi_arrays_alloc(&sums_arrays, &l->of[i].sums, l->dims, err));
    }
    return SVS_OK;
}

svi_logistic *svi_logistic_new(const struct svi_logistic_options *o, svs_error *err) {
    svi_logistic *l = svi_new(sizeof *l, "the logistic stacks of a bank", err);
    if (!l)
        return NULL;
    l->o = *o;
    logistic_dims(o, l->dims);
    if (logistic_build(l, err) != SVS_OK) {
        svi_logistic_free(&l);
        return NULL;
    }
    svi_logistic_reset(l);
    return l;
}

void svi_logistic_free(svi_logistic **pl) {
    svi_logistic *l = *pl;
    if (!l)
        return;
    for (int i = 0; i < l->o.count; i++) {
        svs_alsvm_free(&l->of[i].m);
        svi_arrays_free(&sums_arrays, &l->of[i].sums);
    }
    svi_arrays_free(&logistic_arrays, l);
    svi_free(l);
    *pl = NULL;
}

static void logistic_restart(svi_logistic *l, struct logistic *k) {
    const size_t n = (size_t)l->dims[INPUTS];
    svi_alsvm_reset(k->m, 1, l->o.ridge);
    memset(k->sums.gram, 0, n * n * sizeof *k->sums.gram);
    k->growth = 1;
}

void svi_logistic_reset(svi_logistic *l) {
    const size_t m = (size_t)l->o.members;
    l->count = 0;
    l->rows = 0;
    for (size_t j = 0; j < m; j++)
        l->mean[j] = l->variance[j] = l->scale[j] = 0;
    for (int i = 0; i < l->o.count; i++)
        logistic_restart(l, &l->of[i]);
}

/* ---- the answer */

void svi_logistic_row(svi_logistic *l, const double *scores, int rows) {
    const int m = l->o.members;
    l->rows = rows;
    memcpy(l->scores, scores, (size_t)rows * (size_t)m * sizeof *scores);
    for (int r = 0; r < rows; r++) {
        const double *s = scores + (size_t)r * (size_t)m;
        double *u = logistic_inputs(l, r);
        for (int j = 0; j < m; j++) {
            /* A NAN fails both comparisons, and so does what an infinite score makes of a scale of 0. */
            const double v = (s[j] - l->mean[j]) * l->scale[j];
            const double above = v > -SVI_LOGISTIC_BOUND ? v : -SVI_LOGISTIC_BOUND;
            u[j] = v == v ? (above < SVI_LOGISTIC_BOUND ? above : SVI_LOGISTIC_BOUND) : 0;
        }
        u[m] = 1;
    }
}

void svi_logistic_score(const svi_logistic *l, int i, double *out) {
    const double *w = svi_logistic_weights(l, i);
    for (int r = 0; r < l->rows; r++)
        out[r] = l->of[i].m->kernels->dot(logistic_inputs(l, r), w, l->dims[PADDED]);
}

const double *svi_logistic_weights(const svi_logistic *l, int i) {
    return svs_alsvm_weights(l->of[i].m, 0);
}

const double *svi_logistic_means(const svi_logistic *l) {
    return l->mean;
}

const double *svi_logistic_scales(const svi_logistic *l) {
    return l->scale;
}

/* ---- learning */

/* One sample of the recursion: a row of the inputs, its curvature, and what t - w'x shall be. */
struct logistic_change {
    const double *u;
    double curvature, residual;
};

/* Adds rows less `center` to P and to the sums, one or two in a step. False: P is lost. */
static bool logistic_add(svi_logistic *l, struct logistic *k, const double *center,
                         const struct logistic_change *of, int count) {
    const int n = l->dims[INPUTS];
    struct svi_change change[SVI_PASS_MAX];
    double t[SVI_PASS_MAX];
    for (int i = 0; i < count; i++) {
        const double s = of[i].curvature * k->growth;
        double *x = k->m->r.x[i];
        for (int j = 0; j < n; j++)
            x[j] = of[i].u[j] - center[j];
        /* Of two rows only the last has a residual, so w is the same for both. */
        t[i] = k->m->kernels->dot(x, svs_alsvm_weights(k->m, 0), l->dims[PADDED]) + of[i].residual;
        change[i] = (struct svi_change){&t[i], 1 / s, 0};
        for (int j = 0; j < n; j++)
            k->m->kernels->add_times(k->sums.gram + (size_t)j * (size_t)n, x, s * x[j], j + 1);
    }
    return svi_alsvm_step(k->m, change, count, NULL) == SVS_OK;
}

/* P of the faded sums and the ridge; w stays. */
static bool logistic_refresh(svi_logistic *l, struct logistic *k) {
    const size_t n = (size_t)l->dims[INPUTS];
    const double *w = svs_alsvm_weights(k->m, 0);
    double *kept = l->center;
    bool sound = true;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++)
            l->solve[i * n + j] = k->sums.gram[i * n + j] /= k->growth;
        l->solve[i * n + i] += l->o.ridge;
        sound &= fabs(w[i]) <= MAX_WEIGHT; /* false of a NAN */
    }
    k->growth = 1;
    memcpy(kept, w, n * sizeof *kept);
    if (!sound || svs_alsvm_set(k->m, l->solve, l->zero, NULL) != SVS_OK)
        return false;
    svs_alsvm_set_weights(k->m, 0, kept);
    return true;
}

/* Several classes: the curvature of the others first, the true one last. */
static bool logistic_add_classes(svi_logistic *l, struct logistic *k, const double *proba, int truth,
                                 double weight) {
    const int n = l->dims[INPUTS];
    struct logistic_change change[SVI_PASS_MAX];
    bool good = true;
    int count = 0;
    memset(l->center, 0, (size_t)n * sizeof *l->center);
    for (int r = 0; r < l->rows; r++)
        k->m->kernels->add_times(l->center, logistic_inputs(l, r), proba[r], n);
    for (int r = 0; r < l->rows && good; r++) {
        if (r == truth || proba[r] < MIN_CLASS)
            continue;
        change[count++] = (struct logistic_change){logistic_inputs(l, r), weight * proba[r], 0};
        if (count == SVI_PASS_MAX) {
            good = logistic_add(l, k, l->center, change, count);
            count = 0;
        }
    }
    const double h = fmax(proba[truth], MIN_CURVATURE);
    change[count++] = (struct logistic_change){logistic_inputs(l, truth), weight * h, 1 / h};
    return good && logistic_add(l, k, l->center, change, count);
}

void svi_logistic_learn(svi_logistic *l, int i, const double *proba, int truth, double weight) {
    struct logistic *k = &l->of[i];
    const double v = fmin(fmax(weight, MIN_SAMPLE), MAX_SAMPLE);
    bool good;
    k->growth /= l->o.keep[i];
    if (l->rows == 1) {
        const double h = fmax(proba[0] * proba[1], MIN_CURVATURE);
        const struct logistic_change change = {l->u, v * h, ((truth == 1) - proba[1]) / h};
        good = logistic_add(l, k, l->zero, &change, 1);
    } else {
        good = logistic_add_classes(l, k, proba, truth, v);
    }
    if (good && l->count % REFRESH == REFRESH - 1)
        good = logistic_refresh(l, k);
    /* It cannot fail while curvatures are within their bounds; a regression that did would start again. */
    if (!good)
        logistic_restart(l, k);
}

static void logistic_scale(svi_logistic *l) {
    for (int j = 0; j < l->o.members; j++) {
        const double deviation = sqrt(l->variance[j]);
        l->scale[j] = deviation > MIN_DEVIATION ? 1 / deviation : 0;
    }
}

void svi_logistic_end(svi_logistic *l) {
    const int m = l->o.members;
    const double plain = 1 / (double)++l->count,
                 share = (plain > 1 / MOMENTS ? plain : 1 / MOMENTS) / l->rows;
    /* The rows of a sample share its weight. */
    for (int r = 0; r < l->rows; r++) {
        const double *s = l->scores + (size_t)r * (size_t)m;
        for (int j = 0; j < m; j++) {
            const double above = s[j] > -MAX_SCORE ? s[j] : -MAX_SCORE;
            const double value = s[j] == s[j] ? (above < MAX_SCORE ? above : MAX_SCORE) : l->mean[j];
            const double change = value - l->mean[j];
            l->mean[j] += share * change;
            l->variance[j] += share * (change * (value - l->mean[j]) - l->variance[j]);
        }
    }
    logistic_scale(l);
}

/* ---- the archive */

void svi_logistic_archive(struct svi_archive *a, svi_logistic *l) {
    svi_archive_int64(a, "samples", &l->count, 0, INT64_MAX / 2);
    svi_arrays_archive(a, &logistic_arrays, l, l->dims, l->dims);
    bool sound = true;
    for (int j = 0; j < l->o.members && svi_archive_ok(a); j++)
        sound &= l->variance[j] >= 0 && fabs(l->mean[j]) <= MAX_SCORE;
    for (int i = 0; i < l->o.count && svi_archive_ok(a); i++) {
        svi_archive_finite(a, "growth", &l->of[i].growth, 1);
        svi_archive_check(a, l->of[i].growth >= 1 && l->of[i].growth <= 2, "a growth is out of range");
        svi_arrays_archive(a, &sums_arrays, &l->of[i].sums, l->dims, l->dims);
        svi_alsvm_archive(a, l->of[i].m, l->solve);
    }
    if (a->loading && svi_archive_ok(a) &&
        svi_archive_check(a, sound, "what is known of the members' scores is out of range"))
        logistic_scale(l);
}

double svi_logistic_memory(const struct svi_logistic_options *o) {
    int32_t dims[DIMS];
    logistic_dims(o, dims);
    return (double)sizeof(svi_logistic) + (double)svi_arrays_bytes(&logistic_arrays, dims) +
           o->count *
               (svi_alsvm_memory(dims[INPUTS], 1, o->isa) + (double)svi_arrays_bytes(&sums_arrays, dims));
}
