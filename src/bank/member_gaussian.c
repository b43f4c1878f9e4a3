/* Gaussian class densities: each class is a normal distribution of the standardised row, and scores by its
 * log odds (quadratic discriminant analysis: Hastie, Tibshirani, Friedman, The Elements of Statistical
 * Learning, 4.3). Of the two members one has a memory of a few hundred samples a class, one of all.
 *
 * A sample of weight w moves the moments of its class by the gain g = w / W, W <- keep W + w:
 *
 *     u = z - m,   m <- m + g u,   C <- C + g ((1 - g) u u' - C).                                        (1)
 *
 * keep = 1 gives mean and covariance of all samples, a memory of M has keep = 1 - 1 / M. Up to FULL_MAX
 * features C is a whole matrix, beyond only its diagonal. With few samples it is shrunk (2): off the diagonal
 * by n / (n + d), then towards the identity, which standardised rows have as a whole, by n / (n + PRIOR),
 * with n the samples within the memory. Its factor is made again after n / EVERY_SHARE samples, at most
 * MAX_EVERY. Nothing is taken back: a moment does not show which samples made it. */
#include <math.h>
#include <string.h>

#include "bank/member_ops.h"
#include "bank/half_logits.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "linalg/cholesky.h"

extern const struct svi_member_ops svi_member_gaussian; /* its only reader is the table of members.c */

#define MEMBERS     2
#define FULL_MAX    24  /* features with a whole covariance: d^2 / 2 steps a class and sample */
#define PRIOR       2.0 /* samples that the identity counts for */
#define EVERY_SHARE 32
#define MAX_EVERY   16
#define MAX_SCORE   5.0 /* bound of a score, which is half the log odds */
#define HALF        0.5 /* samples that each class counts for in its share */
#define MAX_WEIGHT  1e6 /* cap of a sample's weight: sums stay finite */

/* 1 / M of each member; 0: all samples. */
static const double gaussian_fading[MEMBERS] = {1 / 500.0, 0};

struct gaussian {
    int d, classes;               /* features; classes with capacity */
    int capacity, cells_capacity; /* features; cells of a covariance, see gaussian_cells */
    double *weight;               /* members x classes: W of equation 1 */
    double *share;                /* members x classes: share of the samples, by the same gains */
    double *constant;             /* members x classes: - log det / 2 */
    double *mean;                 /* members x classes x d */
    double *cells;                /* members x classes x cells: lower triangle by rows, or diagonal */
    double *factor;               /* the same shape: L of L L' = C, its diagonal inverted */
    double *u;                    /* d */
    double *square;               /* FULL_MAX x FULL_MAX: a matrix to be factored */
    double *odds;                 /* classes: log densities of a row */
    int64_t *count, *factored;    /* members x classes: samples learned; those at the last factor */
    double total[MEMBERS];        /* W over all classes */
    int64_t samples;
};

enum { CLASSES, FEATURES, CELLS, DIMS };
static const struct svi_array gaussian_table[] = {
#define OWNER struct gaussian
    SVI_ARRAY(OWNER, weight, "gaussian weights", SVI_AXIS_LENGTH(MEMBERS), SVI_AXIS(CLASSES)),
    SVI_ARRAY(OWNER, share, "gaussian shares", SVI_AXIS_LENGTH(MEMBERS), SVI_AXIS(CLASSES)),
    SVI_ARRAY(OWNER, constant, "gaussian constants", SVI_AXIS_LENGTH(MEMBERS), SVI_AXIS(CLASSES)),
    SVI_ARRAY(OWNER, mean, "gaussian means", SVI_AXIS_LENGTH(MEMBERS), SVI_AXIS(CLASSES), SVI_AXIS(FEATURES)),
    SVI_ARRAY(OWNER, cells, "gaussian covariances", SVI_AXIS_LENGTH(MEMBERS), SVI_AXIS(CLASSES),
              SVI_AXIS(CELLS)),
    SVI_ARRAY(OWNER, factor, "gaussian factors", SVI_AXIS_LENGTH(MEMBERS), SVI_AXIS(CLASSES),
              SVI_AXIS(CELLS)),
    SVI_ARRAY(OWNER, u, NULL, SVI_AXIS(FEATURES)),
    SVI_ARRAY(OWNER, square, NULL, SVI_AXIS_LENGTH(FULL_MAX), SVI_AXIS_LENGTH(FULL_MAX)),
    SVI_ARRAY(OWNER, odds, NULL, SVI_AXIS(CLASSES)),
    SVI_ARRAY_WITH(OWNER, count, "gaussian counts", SVI_ARRAY_COUNT, 0, SVI_AXIS_LENGTH(MEMBERS),
                   SVI_AXIS(CLASSES)),
    SVI_ARRAY_WITH(OWNER, factored, "gaussian factored", SVI_ARRAY_COUNT, 0, SVI_AXIS_LENGTH(MEMBERS),
                   SVI_AXIS(CLASSES)),
#undef OWNER
};
static const struct svi_arrays gaussian_arrays = SVI_ARRAYS(gaussian_table, "Gaussian class densities");

static bool gaussian_full(int d) {
    return d <= FULL_MAX;
}

/* Cells of a covariance. A triangle by rows only gets longer when features are added. */
static int gaussian_cells(int d) {
    return gaussian_full(d) ? d * (d + 1) / 2 : d;
}

/* Place of a diagonal cell. */
static size_t gaussian_diagonal(int d, int i) {
    return gaussian_full(d) ? (size_t)i * ((size_t)i + 3) / 2 : (size_t)i;
}

static size_t gaussian_of(const struct gaussian *g, int member, int class) {
    return (size_t)member * (size_t)g->classes + (size_t) class;
}

static double *gaussian_matrix(const struct gaussian *g, double *of, size_t at) {
    return of + at * (size_t)g->cells_capacity;
}

/* ---- the factor of a class */

static double gaussian_samples(const struct gaussian *g, int member, size_t at) {
    const double n = (double)g->count[at], memory = gaussian_fading[member];
    return memory > 0 && n * memory > 1 ? 1 / memory : n;
}

/* Factors the shrunk covariance of a class (2). A matrix that rounding leaves without a factor is replaced
 * by its diagonal, which always has one: its entries are at least PRIOR / (n + PRIOR) in exact arithmetic,
 * and a floor keeps them there. */
static void gaussian_factor(struct gaussian *g, int member, int class) {
    const size_t at = gaussian_of(g, member, class), d = (size_t)g->d;
    const double n = gaussian_samples(g, member, at), shrunk = n / (n + PRIOR), off = n / (n + g->d) * shrunk;
    const double *c = gaussian_matrix(g, g->cells, at);
    double *f = gaussian_matrix(g, g->factor, at), product = 1, log_det = 0;
    bool whole = gaussian_full(g->d);
    for (size_t i = 0; i < d && whole; i++)
        for (size_t j = 0; j <= i; j++)
            g->square[i * d + j] = c[i * (i + 1) / 2 + j] * (i == j ? shrunk : off) + (i == j) * (1 - shrunk);
    whole = whole && svi_factor_spd(g->square, g->d);
    if (whole)
        for (size_t i = 0; i < d; i++)
            memcpy(f + i * (i + 1) / 2, g->square + i * d, (i + 1) * sizeof *f);
    else
        memset(f, 0, (size_t)gaussian_cells(g->d) * sizeof *f);
    for (int i = 0; i < g->d; i++) {
        const size_t cell = gaussian_diagonal(g->d, i);
        const double root = whole ? f[cell] : sqrt(c[cell] * shrunk + (1 - shrunk) + 1e-9);
        f[cell] = 1 / root;
        /* One logarithm for eight factors: entries are within 1e-5 and 1e2. */
        product *= root;
        if (i % 8 == 7 || i == g->d - 1) {
            log_det += log(product);
            product = 1;
        }
    }
    g->constant[at] = -log_det;
    g->factored[at] = g->count[at];
}

/* |L^-1 (z - m)|^2. */
static double gaussian_distance(const struct gaussian *g, const float *z, size_t at) {
    const double *m = g->mean + at * (size_t)g->capacity, *f = gaussian_matrix(g, g->factor, at);
    double *u = g->u, sum[4] = {0};
    if (!gaussian_full(g->d)) {
        for (int i = 0; i < g->d; i++) {
            const double v = ((double)z[i] - m[i]) * f[i];
            sum[i % 4] += v * v;
        }
        return sum[0] + sum[1] + (sum[2] + sum[3]);
    }
    for (int i = 0; i < g->d; i++, f += i) {
        double v = (double)z[i] - m[i];
        for (int j = 0; j < i; j++)
            v -= f[j] * u[j];
        u[i] = v * f[i];
        sum[0] += u[i] * u[i];
    }
    return sum[0];
}

/* ---- features and classes */

static void gaussian_refactor(struct gaussian *g, int classes) {
    for (int m = 0; m < MEMBERS; m++)
        for (int k = 0; k < classes; k++)
            gaussian_factor(g, m, k);
}

static void gaussian_dims(int classes, int d, int cells, int32_t *dims) {
    dims[CLASSES] = classes;
    dims[FEATURES] = d;
    dims[CELLS] = cells;
}

static svs_code gaussian_init(const struct svi_member_part *p, int d, svs_error *err) {
    struct gaussian *g = p->self;
    int32_t dims[DIMS];
    *g = (struct gaussian){
        .d = d, .classes = p->c->host->max_classes, .capacity = d, .cells_capacity = gaussian_cells(d)};
    gaussian_dims(g->classes, d, g->cells_capacity, dims);
    SVI_TRY(svi_arrays_alloc(&gaussian_arrays, g, dims, err));
    gaussian_refactor(g, g->classes);
    return SVS_OK;
}

static void gaussian_clear(const struct svi_member_part *p) {
    struct gaussian *g = p->self;
    if (p->on)
        return;
    svi_arrays_free(&gaussian_arrays, g);
    *g = (struct gaussian){0};
}

/* Samples of all members and classes are forgotten; the densities are those of standardised rows. */
static void gaussian_reset(const struct svi_member_part *p) {
    struct gaussian *g = p->self;
    const size_t rows = MEMBERS * (size_t)g->classes;
    memset(g->weight, 0, rows * sizeof *g->weight);
    memset(g->share, 0, rows * sizeof *g->share);
    memset(g->count, 0, rows * sizeof *g->count);
    memset(g->total, 0, sizeof g->total);
    g->samples = 0;
    for (size_t i = 0; g->capacity > 0 && i < rows; i++) {
        memset(g->mean + i * (size_t)g->capacity, 0, (size_t)g->capacity * sizeof *g->mean);
        memset(gaussian_matrix(g, g->cells, i), 0, (size_t)g->cells_capacity * sizeof *g->cells);
    }
    gaussian_refactor(g, g->classes);
}

/* A whole covariance becomes its diagonal, in place: diagonal cells move towards the start. */
static void gaussian_keep_diagonal(struct gaussian *g) {
    for (size_t at = 0; at < MEMBERS * (size_t)g->classes; at++) {
        double *c = gaussian_matrix(g, g->cells, at);
        for (int i = 0; i < g->d; i++)
            c[i] = c[gaussian_diagonal(g->d, i)];
        memset(c + g->d, 0, (size_t)(g->cells_capacity - g->d) * sizeof *c);
    }
}

/* New features were 0 so far: mean and covariance 0, as new memory is. */
static svs_code gaussian_grow(const struct svi_member_part *p, int d, svs_error *err) {
    struct gaussian *g = p->self;
    int32_t from[DIMS], to[DIMS];
    if (d <= g->d)
        return SVS_OK;
    const int cells = gaussian_cells(d);
    gaussian_dims(g->classes, g->capacity, g->cells_capacity, from);
    gaussian_dims(g->classes, d > g->capacity ? d + d / 4 : g->capacity,
                  cells > g->cells_capacity ? cells + cells / 4 : g->cells_capacity, to);
    SVI_TRY(svi_arrays_resize(&gaussian_arrays, g, from, to, err));
    g->capacity = to[FEATURES];
    g->cells_capacity = to[CELLS];
    if (gaussian_full(g->d) && !gaussian_full(d))
        gaussian_keep_diagonal(g);
    g->d = d;
    gaussian_refactor(g, g->classes);
    return SVS_OK;
}

static void gaussian_renew(const struct svi_member_part *p, int feature) {
    struct gaussian *g = p->self;
    for (size_t at = 0; at < MEMBERS * (size_t)g->classes; at++) {
        double *c = gaussian_matrix(g, g->cells, at);
        g->mean[at * (size_t)g->capacity + (size_t)feature] = 0;
        c[gaussian_diagonal(g->d, feature)] = 0;
        for (int i = 0; gaussian_full(g->d) && i < g->d; i++) {
            const size_t row = (size_t)(i > feature ? i : feature),
                         column = (size_t)(i > feature ? feature : i);
            c[row * (row + 1) / 2 + column] = 0;
        }
    }
    gaussian_refactor(g, p->c->classes);
}

/* ---- a sample */

static double gaussian_bounded(double v) {
    return v > MAX_SCORE ? MAX_SCORE : v < -MAX_SCORE ? -MAX_SCORE : v;
}

/* Log of share times density, for each class that the scores have. Fills g->odds. */
static void gaussian_densities(const struct gaussian *g, const struct svi_member_context *c, int member) {
    const double memory = gaussian_fading[member], all = (double)g->samples,
                 n = memory > 0 && all * memory > 1 ? 1 / memory : all;
    for (int k = 0; k < c->class_count; k++) {
        const size_t at = gaussian_of(g, member, k);
        const double share = (g->share[at] * n + HALF) / (n + HALF * c->class_count);
        g->odds[k] = log(share) + g->constant[at] - 0.5 * gaussian_distance(g, c->z, at);
    }
}

/* Half the log odds of the second of two classes, or of each class against all others, bounded. */
static void gaussian_odds(const struct gaussian *g, const struct svi_member_context *c, double *scores) {
    if (c->rows == 1)
        scores[0] = c->class_count > 1 ? gaussian_bounded(0.5 * (g->odds[1] - g->odds[0])) : 0;
    else
        svi_half_logits(g->odds, c->rows, c->rows, MAX_SCORE, scores);
}

static void gaussian_score(const struct svi_member_part *p, double *scores) {
    const struct gaussian *g = p->self;
    for (int m = 0; m < MEMBERS; m++) {
        gaussian_densities(g, p->c, m);
        gaussian_odds(g, p->c, scores + (size_t)m * (size_t)p->c->stride);
    }
}

/* Equation 1. */
static void gaussian_move(struct gaussian *g, const float *z, size_t at, double gain) {
    double *m = g->mean + at * (size_t)g->capacity, *c = gaussian_matrix(g, g->cells, at), *u = g->u;
    const double rest = 1 - gain;
    for (int i = 0; i < g->d; i++) {
        u[i] = (double)z[i] - m[i];
        m[i] += gain * u[i];
    }
    if (!gaussian_full(g->d)) {
        for (int i = 0; i < g->d; i++)
            c[i] += gain * (rest * u[i] * u[i] - c[i]);
        return;
    }
    for (int i = 0; i < g->d; i++) {
        const double v = rest * u[i];
        for (int j = 0; j <= i; j++, c++)
            *c += gain * (v * u[j] - *c);
    }
}

static svs_code gaussian_learn(const struct svi_member_part *p, const struct svi_member_lesson *l,
                               svs_error *err) {
    struct gaussian *g = p->self;
    const double weight = l->held->weight < MAX_WEIGHT ? l->held->weight : MAX_WEIGHT;
    (void)err;
    /* A weight of 0 teaches nothing, and has no gain. */
    if (!(weight > 0))
        return SVS_OK;
    g->samples++;
    for (int m = 0; m < MEMBERS; m++) {
        const double keep = 1 - gaussian_fading[m];
        const size_t at = gaussian_of(g, m, l->held->label);
        g->total[m] = keep * g->total[m] + weight;
        for (int k = 0; k < p->c->classes; k++) {
            double *share = &g->share[gaussian_of(g, m, k)];
            *share += weight / g->total[m] * ((k == l->held->label) - *share);
        }
        g->weight[at] = keep * g->weight[at] + weight;
        gaussian_move(g, p->c->z, at, weight / g->weight[at]);
        const int64_t every =
            ++g->count[at] / EVERY_SHARE < MAX_EVERY ? g->count[at] / EVERY_SHARE : MAX_EVERY;
        if (g->count[at] - g->factored[at] >= every)
            gaussian_factor(g, m, l->held->label);
    }
    return SVS_OK;
}

/* ---- the archive */

/* Whether loaded moments are numbers that rows can lead to: the bytes are not trusted. */
static bool gaussian_sound(const struct gaussian *g, int classes) {
    bool good = true;
    for (int m = 0; m < MEMBERS; m++) {
        good &= g->total[m] >= 0;
        for (int k = 0; k < classes; k++) {
            const size_t at = gaussian_of(g, m, k);
            const double *c = gaussian_matrix(g, g->cells, at), *f = gaussian_matrix(g, g->factor, at);
            good &= g->weight[at] >= 0 && g->share[at] >= 0 && g->share[at] <= 1.000001;
            good &= fabs(g->constant[at]) <= 1e6 && g->factored[at] <= g->count[at];
            for (int i = 0; i < gaussian_cells(g->d); i++)
                good &= fabs(c[i]) <= 401 && fabs(f[i]) <= 1e6;
            for (int i = 0; i < g->d; i++)
                good &= c[gaussian_diagonal(g->d, i)] >= 0 && f[gaussian_diagonal(g->d, i)] > 0 &&
                        fabs(g->mean[at * (size_t)g->capacity + (size_t)i]) <= 11;
        }
    }
    return good;
}

static void gaussian_archive(struct svi_archive *a, const struct svi_member_part *p) {
    struct gaussian *g = p->self;
    int d = g->d;
    if (!p->on)
        return;
    svi_archive_int(a, "gaussian features", &d, 0, p->c->d);
    if (!svi_archive_ok(a) || (a->loading && gaussian_grow(p, d, a->err) != SVS_OK))
        return;
    int32_t dims[DIMS], used[DIMS];
    gaussian_dims(g->classes, g->capacity, g->cells_capacity, dims);
    gaussian_dims(p->c->classes, d, gaussian_cells(d), used);
    svi_archive_int64(a, "gaussian samples", &g->samples, 0, INT64_MAX / 2);
    svi_archive_finite(a, "gaussian totals", g->total, MEMBERS);
    svi_arrays_archive(a, &gaussian_arrays, g, dims, used);
    if (a->loading && svi_archive_ok(a))
        svi_archive_check(a, d == g->d && gaussian_sound(g, p->c->classes),
                          "a Gaussian class is out of range");
}

static bool gaussian_fits(const struct svi_member_part *p) {
    const struct gaussian *g = p->self;
    return g->d == p->c->d;
}

static double gaussian_bytes(const struct svi_member_part *p) {
    int32_t dims[DIMS];
    /* Twice a quarter more than needed: growth by single features passes through its largest triangle. */
    const int d = p->c->d + p->c->d / 4,
              full = p->c->d < FULL_MAX ? gaussian_cells(p->c->d) : gaussian_cells(FULL_MAX);
    gaussian_dims(p->c->host->max_classes, d, (full > d ? full : d) * 5 / 4 + 1, dims);
    return p->c->regress ? 0 : (double)svi_arrays_bytes(&gaussian_arrays, dims);
}

const struct svi_member_ops svi_member_gaussian = {
    .size = sizeof(struct gaussian),
    .init = gaussian_init,
    .clear = gaussian_clear,
    .reset = gaussian_reset,
    .grow = gaussian_grow,
    .renew = gaussian_renew,
    .score = gaussian_score,
    .learn = gaussian_learn,
    .archive = gaussian_archive,
    .fits = gaussian_fits,
    .bytes = gaussian_bytes,
};
