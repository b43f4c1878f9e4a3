/* Two levels. A member is FOSVM for one gamma (struct svi_member_fit): an active set, solved
 * exactly. The row furthest outside is added until no row is outside. FOSVM1 tests all rows, block
 * by block, in repeated sweeps. FOSVM2 tests m rows drawn at random. It ends after consecutive
 * draws without a row outside, enough of them to bound the probability that the model leaves more
 * than epsilon outside. Kernel values of a block with the active set are computed once and extended
 * while rows of the block join.
 *
 * Training prepares what the members share: coordinates from a sample of rows and the gamma of the
 * rule. It trims, by moving the rows of lowest density to the end. It then makes a fit per multiple
 * of gamma, and shares that weigh the members alike. All randomness comes from one generator, in a
 * fixed order.
 *
 * Order: memory, points of the active set, the two algorithms, then training from options to model. */
#include "novelty/fosvm.h"

#include <math.h>
#include <string.h>

#include <cblas.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/statistics.h"
#include "linalg/sparse_rows.h"
#include "novelty/coordinates.h"
#include "novelty/novelty_model.h"

#define BLOCK          512  /* rows tested together */
#define FIRST_CAPACITY 64   /* points */
#define DRAWN          2048 /* rows drawn first by FOSVM1, so that its sweeps find little left to do */
#define SWEEPS_MAX     100
#define ROUNDS_MAX     1000000
#define SAMPLE         4096 /* rows by which quantiles, variances and spreads are estimated */
#define PAIRS          4000 /* pairs of rows for the median distance */
#define KERNELS        256  /* rows whose kernels sum to the density for trimming */

/* Consecutive rows in memory. */
struct fit_block {
    struct svi_points points;
    const double *norm2;
};

void svi_member_fit_clear(struct svi_member_fit *f) {
    void *const grown[] = {f->support, f->support_norm2, f->kernel, f->row};
    svi_active_set_clear(&f->set);
    for (size_t i = 0; i < sizeof grown / sizeof *grown; i++)
        svi_free(grown[i]);
    svi_pool_free(&f->pool);
}

/* Rows per draw: m of FOSVM2, or the one large first draw of FOSVM1. */
static int64_t fit_draw_size(const struct svi_member_fit *f) {
    const int64_t wanted = f->options->fosvm == 2 ? f->options->m : DRAWN;
    return wanted < f->rows.count ? wanted : f->rows.count;
}

/* Arrays of points grow with the set; the set itself is last, so its capacity is what all of them have. */
static svs_code fit_reserve(struct svi_member_fit *f, int capacity, svs_error *err) {
    const size_t old = (size_t)f->set.capacity, n = (size_t)capacity, stride = (size_t)f->rows.stride;
    if (!svi_grow_doubles(&f->support, old * stride, n * stride) ||
        !svi_grow_doubles(&f->support_norm2, old, n) || !svi_grow_doubles(&f->row, old, n + 1) ||
        !svi_grow_doubles(&f->kernel, old * BLOCK, n * BLOCK))
        return svi_fail_memory(err, "the active set of the one-class model");
    return svi_active_set_reserve(&f->set, capacity, err);
}

static svs_code fit_prepare(struct svi_member_fit *f, svs_error *err) {
    const size_t draw = (size_t)fit_draw_size(f);
    f->member_of = svi_pool_doubles(&f->pool, BLOCK);
    f->picked = svi_pool_doubles(&f->pool, draw * (size_t)f->rows.stride);
    f->picked_norm2 = svi_pool_doubles(&f->pool, draw);
    f->stuck = svi_pool_take(&f->pool, BLOCK, sizeof *f->stuck);
    svs_code code = svi_pool_code(&f->pool, "the work space of the one-class model", err);
    return code == SVS_OK ? fit_reserve(f, FIRST_CAPACITY, err) : code;
}

/* ---- points of the active set */

/* Kernel values of a point with the rows of a block, computed in place of the gaps. */
static void fit_kernel_row(struct svi_member_fit *f, const struct fit_block *b, int point) {
    double *k = f->kernel + (size_t)point * BLOCK;
    const double *x = f->support + (size_t)point * (size_t)f->rows.stride;
    svi_similarity_gap(&f->similarity, &b->points, 0, b->points.count, x, k);
    svi_similarity_of_gap(&f->similarity, f->gamma, k, b->norm2, f->support_norm2[point], b->points.count, k);
}

/* Removes points without weight: they do not change the model, and a row that is needed later is found again.
 * Backwards, with the last point taking the free index, as in svi_active_set_remove. */
static void fit_forget_idle(struct svi_member_fit *f) {
    const size_t stride = (size_t)f->rows.stride;
    for (int i = f->set.count - 1; i >= 0; i--) {
        const int last = f->set.count - 1;
        if (f->set.z[i] != 0)
            continue;
        svi_active_set_remove(&f->set, i);
        if (i == last)
            continue;
        f->support_norm2[i] = f->support_norm2[last];
        memcpy(f->support + (size_t)i * stride, f->support + (size_t)last * stride,
               stride * sizeof *f->support);
        memcpy(f->kernel + (size_t)i * BLOCK, f->kernel + (size_t)last * BLOCK, BLOCK * sizeof *f->kernel);
    }
}

/* `max` limits the support, not the set: points without weight do not reach the model. */
static bool fit_is_full(const struct svi_member_fit *f) {
    return f->options->max > 0 && f->set.support >= f->options->max;
}

/* Adds row i of the block to the active set and solves the small problem again. Its kernel values with the
 * other points are known already, as column i of f->kernel. */
static svs_code fit_join(struct svi_member_fit *f, const struct fit_block *b, int64_t i, svs_error *err) {
    const size_t stride = (size_t)f->rows.stride;
    SVI_TRY(f->set.count == f->set.capacity ? fit_reserve(f, 2 * f->set.capacity, err) : SVS_OK);
    const int n = f->set.count;
    for (int a = 0; a < n; a++)
        f->row[a] = f->kernel[(size_t)a * BLOCK + (size_t)i];
    f->row[n] = 1;
    f->support_norm2[n] = b->norm2 ? b->norm2[i] : 0;
    memcpy(f->support + (size_t)n * stride, b->points.x + i * b->points.stride, stride * sizeof *f->support);
    svi_active_set_add(&f->set, f->row);
    fit_kernel_row(f, b, n);
    svi_active_set_solve(&f->set);
    f->rounds++;
    return SVS_OK;
}

/* Computes the memberships of the block's rows, and returns the row with the smallest one that is not stuck;
 * 0 if all are. */
static int64_t fit_worst_row(struct svi_member_fit *f, const struct fit_block *b) {
    const int n = (int)b->points.count;
    int64_t worst = 0;
    cblas_dgemv(CblasRowMajor, CblasTrans, f->set.count, n, 1, f->kernel, BLOCK, f->set.z, 1, 0, f->member_of,
                1);
    for (int64_t i = 1; i < n; i++)
        if (!f->stuck[i] && (f->stuck[worst] || f->member_of[i] < f->member_of[worst]))
            worst = i;
    return worst;
}

/* The row added last stays outside nevertheless: kernel values of rows with missing coordinates need not form
 * a positive definite matrix. Removes it again if it has no weight, and skips it in this block. */
static int64_t fit_give_up(struct svi_member_fit *f, const struct fit_block *b, int64_t row) {
    const int last = f->set.count - 1;
    f->stuck[row] = true;
    if (f->set.z[last] == 0)
        svi_active_set_remove(&f->set, last);
    return fit_worst_row(f, b);
}

/* Adds the worst row of the block until none is outside or `joins` rows were added; *joined counts them. */
static svs_code fit_take_block(struct svi_member_fit *f, const struct fit_block *b, int64_t joins,
                               int64_t *joined, svs_error *err) {
    const double edge = 1 - f->options->theta;
    svs_code code = SVS_OK;
    for (int a = 0; a < f->set.count; a++)
        fit_kernel_row(f, b, a);
    memset(f->stuck, 0, BLOCK * sizeof *f->stuck);
    int64_t worst = fit_worst_row(f, b);
    /* Every join changes all memberships, so the worst row is chosen again each time. */
    for (; joins > 0 && f->member_of[worst] < edge && !f->stuck[worst] && !fit_is_full(f) && code == SVS_OK;
         joins--) {
        code = fit_join(f, b, worst, err);
        ++*joined;
        const int64_t before = worst;
        worst = fit_worst_row(f, b);
        /* The row that joined must be inside now; if it is not, no solution contains it. */
        if (b->points.gaps && code == SVS_OK && f->member_of[before] < edge) {
            --*joined;
            worst = fit_give_up(f, b, before);
            continue;
        }
        if (worst == before && f->member_of[worst] < edge) { /* it depends on the others to the last digit, or
                                                              * lies opposite to them (polynomial kernels) */
            --*joined;
            break;
        }
    }
    /* The certificate of the block under the final model of this call. */
    for (int64_t i = 0; i < b->points.count; i++) {
        f->worst = f->member_of[i] < f->worst ? f->member_of[i] : f->worst;
        f->outside += f->member_of[i] < edge;
    }
    return code;
}

/* The block of rows that begins at `first`; the last one is shorter. */
static struct fit_block fit_rows_block(const struct svi_member_fit *f, int64_t first) {
    const int64_t left = f->rows.count - first;
    struct fit_block b = {.points = f->rows};
    b.points.x += first * b.points.stride;
    b.points.count = left < BLOCK ? left : BLOCK;
    b.norm2 = f->norm2 ? f->norm2 + first : NULL;
    return b;
}

static void fit_report(const struct svi_member_fit *f) {
    if (f->options->progress)
        f->options->progress(f->options->user, f->member, f->members, f->set.count, f->worst);
}

/* ---- the two algorithms */

/* Tests rows drawn at random, with replacement; they are copied so that they form blocks. */
static svs_code fit_take_drawn(struct svi_member_fit *f, int64_t joins, int64_t *joined, svs_error *err) {
    const int64_t count = fit_draw_size(f), stride = f->rows.stride;
    svs_code code = SVS_OK;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = (int64_t)(svi_random_next(&f->random) % (uint64_t)f->rows.count);
        memcpy(f->picked + i * stride, f->rows.x + row * stride, (size_t)stride * sizeof *f->picked);
        f->picked_norm2[i] = f->norm2 ? f->norm2[row] : 0;
    }
    /* `worst` and `outside` are reset with every draw: they describe the model that was tested last. */
    f->worst = 1;
    f->outside = 0;
    for (int64_t first = 0; first < count && code == SVS_OK; first += BLOCK) {
        const int64_t left = count - first < BLOCK ? count - first : BLOCK;
        const struct fit_block b = {
            .points = {f->picked + first * stride, f->rows.stride, left, f->rows.gaps},
            .norm2 = f->norm2 ? f->picked_norm2 + first : NULL};
        code = fit_take_block(f, &b, joins, joined, err);
    }
    return code;
}

/* Tests one block. The results of the `clean` blocks before it remain valid only if no row of this one joins.
 * Returns the number of consecutive blocks that the present model was tested against. */
static int64_t fit_visit_block(struct svi_member_fit *f, int64_t block, int64_t joins, int64_t clean,
                               svs_code *code, svs_error *err) {
    const struct fit_block b = fit_rows_block(f, block * BLOCK);
    const double worst = f->worst;
    const int64_t outside = f->outside;
    int64_t joined = 0;
    f->worst = 1;
    f->outside = 0;
    *code = fit_take_block(f, &b, joins, &joined, err);
    if (joined > 0)
        return 1;
    f->worst = fmin(f->worst, worst);
    f->outside += outside;
    return clean + 1;
}

/* FOSVM1: sweeps over all blocks until the model has not changed for a full sweep. The last sweep allowed
 * adds nothing, so that `worst` and `outside` are those of the returned model in any case. */
static svs_code fit_fosvm1(struct svi_member_fit *f, svs_error *err) {
    const int64_t blocks = (f->rows.count + BLOCK - 1) / BLOCK, last = (SWEEPS_MAX - 1) * blocks;
    int64_t joined = 0, clean = 0;
    /* Random rows first find most of the support cheaply, before every row is visited. */
    svs_code code = fit_take_drawn(f, INT64_MAX, &joined, err);
    f->worst = 1;
    f->outside = 0;
    for (int64_t i = 0; clean < blocks && code == SVS_OK; i++) {
        clean = fit_visit_block(f, i % blocks, i < last ? INT64_MAX : 0, clean, &code, err);
        if ((i + 1) % blocks == 0) {
            fit_forget_idle(f);
            fit_report(f);
        }
    }
    fit_forget_idle(f);
    fit_report(f);
    return code;
}

/* Number of consecutive rows drawn without one outside that ends the fit. A model that leaves more than
 * epsilon outside passes m draws with probability e^(-m epsilon), but it is tested after every round r, and
 * passing once suffices. With ln((r + 1)(r + 2)) / epsilon further rows, the probability that such a model
 * passes any test is at most e^(-m epsilon) sum_r 1 / ((r + 1)(r + 2)) = e^(-m epsilon). */
static double fit_rows_to_pass(const struct svi_member_fit *f) {
    const double r = (double)f->rounds;
    return (double)fit_draw_size(f) + log((r + 1) * (r + 2)) / f->options->epsilon;
}

/* FOSVM2: adds the worst of m drawn rows, until fit_rows_to_pass rows had none outside. `worst` covers the
 * draws that tested the final model. */
static svs_code fit_fosvm2(struct svi_member_fit *f, svs_error *err) {
    double passed = 0, worst = 1;
    svs_code code = SVS_OK;
    for (int64_t i = 0; i < ROUNDS_MAX && passed < fit_rows_to_pass(f) && !fit_is_full(f) && code == SVS_OK;
         i++) {
        int64_t joined = 0;
        const bool first = passed == 0;
        code = fit_take_drawn(f, 1, &joined, err);
        passed = joined > 0 ? 0 : passed + (double)fit_draw_size(f);
        worst = joined > 0 || first ? f->worst : fmin(worst, f->worst);
        if (i % 64 == 0)
            fit_report(f);
    }
    f->worst = worst;
    fit_forget_idle(f);
    return code;
}

/* Fits one member; what was fitted is in f->set and f->support even after an error, for the caller to
 * clear. */
svs_code svi_member_fit(struct svi_member_fit *f, svs_error *err) {
    SVI_TRY(fit_prepare(f, err));
    /* The first row starts the set: with one point it has weight 1, and everything else is measured against
     * it. */
    struct fit_block b = fit_rows_block(f, 0);
    b.points.count = 1;
    f->worst = 1;
    SVI_TRY(fit_join(f, &b, 0, err));
    if (f->rows.count > 1)
        SVI_TRY(f->options->fosvm == 2 ? fit_fosvm2(f, err) : fit_fosvm1(f, err));
    return SVS_OK;
}

/* ---- training */

void svs_novelty_options_default(svs_novelty_options *o) {
    *o = (svs_novelty_options){.fosvm = 1,
                               .kernel = SVS_NOVELTY_LAPLACIAN,
                               .gamma_rule = SVS_GAMMA_AUTO,
                               .degree = 3,
                               .theta = 0.05,
                               .epsilon = 0.05,
                               .trim = 0.2,
                               .scale = true,
                               .max = 200,
                               .seed = 1};
}

/* The state of one training run. */
struct training {
    svs_novelty_options o;
    struct svi_coordinates coordinates;
    struct svi_similarity similarity;
    int64_t n, kept;
    struct svi_pool pool;
    double *points;   /* n x stride, in coordinates; the kept ones first */
    double *norm2;    /* polynomial */
    double *sample;   /* up to SAMPLE raw rows, then a column of as many values, then one raw row */
    double *surprise; /* of up to SAMPLE rows */
    bool gaps;        /* a value is missing */
    struct svi_random random;
    struct svs_novelty_model *model;
};

/* Rejects options that cannot work, before anything is allocated. */
static svs_code training_check(const svs_rows *rows, const svs_novelty_options *o, svs_error *err) {
    if (rows->n < 2)
        return svi_fail(err, SVS_INVALID, "a one-class model needs two rows at least, there are %lld",
                        (long long)rows->n);
    /* One row per rule: adding an option means adding a row. */
    const struct {
        bool wrong;
        const char *text;
    } rules[] = {
        {o->fosvm != 1 && o->fosvm != 2, "fosvm must be 1 or 2"},
        {!(o->theta > 0 && o->theta < 1), "theta must lie between 0 and 1"},
        {o->fosvm == 2 && !(o->epsilon > 0 && o->epsilon < 1), "epsilon must lie between 0 and 1"},
        {o->gamma_rule == SVS_GAMMA_GIVEN && !(o->gamma > 0 && isfinite(o->gamma)),
         "gamma must be a positive number"},
        {o->kernel == SVS_NOVELTY_POLYNOMIAL && (o->degree < 1 || o->degree > 20), "degree must be 1 to 20"},
        {!(o->trim >= 0 && o->trim <= 0.5), "trim must lie between 0 and 0.5"},
        {o->m < 0 || o->max < 0 || o->max == 1, "m must not be negative, max must be 0 or at least 2"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].wrong)
            return svi_fail(err, SVS_INVALID, "%s", rules[i].text);
    return svi_rows_check_known(rows, err);
}

/* ---- the rows in coordinates */

static int64_t training_sample_size(const struct training *t) {
    return t->n < SAMPLE ? t->n : SAMPLE;
}

/* The i-th row of the sample, spread evenly over all rows. */
static int64_t training_sample_row(const struct training *t, int64_t i) {
    return t->n <= SAMPLE ? i : (int64_t)((double)i * (double)t->n / SAMPLE);
}

/* Without scaling, coordinates are the values themselves, whose squares must not overflow. */
static svs_code training_check_size(const struct training *t, int64_t row, const double *point,
                                    svs_error *err) {
    for (int j = 0; j < t->coordinates.d; j++)
        if (fabs(point[j]) > SVI_VALUE_MAX)
            return svi_fail(err, SVS_TOO_LARGE,
                            "row %lld has %g in column %d: values beyond 1e100 are too large to compute "
                            "with, unless columns are scaled",
                            (long long)row, point[j], j);
    return SVS_OK;
}

/* Fits the coordinates to a sample of rows and transforms all rows. */
static svs_code training_place(struct training *t, const svs_rows *rows, svs_error *err) {
    const int64_t count = training_sample_size(t), d = rows->d;
    const size_t stride = (size_t)t->coordinates.stride;
    const bool polynomial = t->o.kernel == SVS_NOVELTY_POLYNOMIAL;
    t->sample = svi_pool_doubles(&t->pool, (size_t)(count * d + count + d));
    t->surprise = svi_pool_doubles(&t->pool, (size_t)count);
    t->points = svi_pool_doubles(&t->pool, (size_t)t->n * stride);
    t->norm2 = polynomial ? svi_pool_doubles(&t->pool, (size_t)t->n) : NULL;
    svs_code code = svi_pool_code(&t->pool, "the rows to train on", err);
    if (code != SVS_OK)
        return code;
    /* The scales come from a sample of rows, so that training costs one pass over all of them. */
    for (int64_t i = 0; i < count; i++)
        svs_rows_copy(rows, training_sample_row(t, i), t->sample + i * d);
    svi_coordinates_fit(&t->coordinates, t->sample, d, count, t->sample + count * d, 0, (int)d);
    double *raw = t->sample + count * d + count;
    for (int64_t i = 0; i < t->n && code == SVS_OK; i++) {
        double *to = t->points + (size_t)i * stride;
        svs_rows_copy(rows, i, raw);
        svi_coordinates_apply(&t->coordinates, raw, to);
        code = training_check_size(t, i, to, err);
        t->gaps = t->gaps || svi_count_missing(raw, (int)d) > 0;
        if (polynomial)
            t->norm2[i] = t->similarity.pass->dot(to, to, (int)stride);
    }
    return code;
}

/* ---- gamma */

/* 1 / the median distance of random pairs of rows; equal rows are skipped, since repeated states would make
 * the median 0. */
static double training_median_gamma(struct training *t) {
    const int stride = t->coordinates.stride;
    double gaps[PAIRS];
    int count = 0;
    for (int i = 0; i < PAIRS; i++) {
        const int64_t a = (int64_t)(svi_random_next(&t->random) % (uint64_t)t->n),
                      b = (int64_t)(svi_random_next(&t->random) % (uint64_t)t->n);
        const struct svi_points p = {t->points + a * stride, stride, 1, t->gaps};
        svi_similarity_gap(&t->similarity, &p, 0, 1, t->points + b * stride, &gaps[count]);
        count += gaps[count] > 0;
    }
    return svi_gamma_of_gaps(gaps, count);
}

/* The gamma of the rule, before the members' multiples. */
static double training_gamma(struct training *t) {
    struct svi_moments m = {0};
    const int64_t count = training_sample_size(t);
    if (t->o.gamma_rule == SVS_GAMMA_GIVEN)
        return t->o.gamma;
    if (t->o.gamma_rule != SVS_GAMMA_SCALE && t->o.kernel != SVS_NOVELTY_POLYNOMIAL)
        return training_median_gamma(t);
    for (int64_t i = 0; i < count; i++)
        for (int j = 0; j < t->coordinates.d; j++) {
            const double u = t->points[(size_t)(training_sample_row(t, i) * t->coordinates.stride + j)];
            if (!isnan(u))
                svi_moments_add(&m, u);
        }
    return svi_gamma_of_spread(&m, t->coordinates.d);
}

/* ---- trimming */

/* Swaps two rows, with their squared lengths. */
static void training_swap_rows(struct training *t, int64_t a, int64_t b) {
    const size_t stride = (size_t)t->coordinates.stride;
    double *x = t->points + (size_t)a * stride, *y = t->points + (size_t)b * stride;
    for (size_t j = 0; j < stride && a != b; j++) {
        const double v = x[j];
        x[j] = y[j];
        y[j] = v;
    }
    if (t->norm2 && a != b) {
        const double v = t->norm2[a];
        t->norm2[a] = t->norm2[b];
        t->norm2[b] = v;
    }
}

/* The density at each row: the sum of the kernels of KERNELS rows, spread evenly. In blocks of SAMPLE rows,
 * so that k stays small. */
static void training_densities(const struct training *t, double gamma, double *density, double *k) {
    const struct svi_points p = {t->points, t->coordinates.stride, t->n, t->gaps};
    const int64_t centers = t->n < KERNELS ? t->n : KERNELS;
    for (int64_t first = 0; first < t->n; first += SAMPLE) {
        const int64_t count = t->n - first < SAMPLE ? t->n - first : SAMPLE;
        for (int64_t c = 0; c < centers; c++) {
            const int64_t at = c * t->n / centers;
            svi_similarity_gap(&t->similarity, &p, first, count, t->points + at * p.stride, k);
            svi_similarity_of_gap(&t->similarity, gamma, k, t->norm2 ? t->norm2 + first : NULL,
                                  t->norm2 ? t->norm2[at] : 0, count, k);
            for (int64_t i = 0; i < count; i++)
                density[first + i] += k[i];
        }
    }
}

/* Moves the share `trim` of rows with the lowest density to the end; the first t->kept are fitted. Outliers
 * would become support vectors and make their surroundings normal. */
static svs_code training_trim(struct training *t, double gamma, svs_error *err) {
    const int64_t drop = (int64_t)(t->o.trim * (double)t->n);
    t->kept = t->n;
    if (drop < 1 || t->n - drop < 2)
        return SVS_OK;
    double *density = svi_alloc_array((size_t)(2 * t->n + SAMPLE), sizeof *density);
    if (!density)
        return svi_fail_memory(err, "the densities by which rows are trimmed");
    double *sorted = density + t->n;
    training_densities(t, gamma, density, sorted + t->n);
    memcpy(sorted, density, (size_t)t->n * sizeof *density);
    const double least = svi_select_rank(sorted, t->n, drop);
    /* Row i is swapped with the first one that is not kept yet, so earlier decisions stand. Rows with equal
     * densities are kept together. */
    t->kept = 0;
    for (int64_t i = 0; i < t->n; i++)
        if (density[i] >= least)
            training_swap_rows(t, t->kept++, i);
    svi_free(density);
    return SVS_OK;
}

/* ---- members */

/* Copies a fitted active set into the model, with its certificate. */
static svs_code training_add_member(struct training *t, const struct svi_member_fit *f, svs_error *err) {
    struct svi_member_slot slot;
    const size_t n = (size_t)f->set.count;
    SVI_TRY(svi_novelty_model_member(t->model, f->set.count, &slot, err));
    memcpy(slot.support, f->support, n * (size_t)t->coordinates.stride * sizeof *slot.support);
    memcpy(slot.norm2, f->support_norm2, n * sizeof *slot.norm2);
    memcpy(slot.z, f->set.z, n * sizeof *slot.z);
    svi_novelty_model_mark(t->model, &slot, f->set.count);
    svs_novelty_member *m = &t->model->member[t->model->members - 1];
    m->gamma = f->gamma;
    m->rho = svi_active_set_rho(&f->set);
    m->worst = f->worst;
    m->outside = f->outside;
    m->violation = svi_active_set_violation(&f->set);
    m->rounds = f->rounds;
    return SVS_OK;
}

/* Fits one member. The limit on points is shared by the members, and the generator passes from one to the
 * next. */
static svs_code training_fit_member(struct training *t, double gamma, int members, svs_error *err) {
    svs_novelty_options o = t->o;
    /* At least two points for each member, or its model could not enclose anything. */
    o.max = o.max > 0 ? (o.max / members > 2 ? o.max / members : 2) : 0;
    struct svi_member_fit f = {.options = &o,
                               .similarity = t->similarity,
                               .rows = {t->points, t->coordinates.stride, t->kept, t->gaps},
                               .norm2 = t->norm2,
                               .gamma = gamma,
                               .random = t->random,
                               .member = t->model->members,
                               .members = members};
    svs_code code = svi_member_fit(&f, err);
    if (code == SVS_OK)
        code = training_add_member(t, &f, err);
    t->random = f.random;
    svi_member_fit_clear(&f);
    return code;
}

/* Sets the members' shares to 1 / the deviation of their surprise over a sample of the fitted rows, so that
 * none dominates. */
static svs_code training_weigh(struct training *t, svs_error *err) {
    svs_novelty_model *m = t->model;
    const size_t stride = (size_t)t->coordinates.stride;
    const int64_t count = t->kept < SAMPLE ? t->kept : SAMPLE;
    svs_code code = SVS_OK;
    double sum = 0, *sample = m->members > 1 ? svi_alloc_array((size_t)count * stride, sizeof *sample) : NULL;
    /* A single member has share 1 without a sample. */
    if (m->members > 1 && !sample)
        return svi_fail_memory(err, "the rows by which the members are weighed");
    for (int64_t i = 0; i < count && sample; i++)
        memcpy(sample + (size_t)i * stride, t->points + (size_t)(i * t->kept / count) * stride,
               stride * sizeof *sample);
    for (int g = 0; g < m->members && sample && code == SVS_OK; g++) {
        /* The deviation is at least 1e-6: a member with one surprise for all rows must not get all weight. */
        code = svi_novelty_member_surprise(m, g, sample, count, t->surprise, err);
        m->member[g].share = code == SVS_OK ? 1 / fmax(svi_deviation(t->surprise, count), 1e-6) : 1;
    }
    for (int g = 0; g < m->members; g++)
        sum += m->member[g].share;
    for (int g = 0; g < m->members; g++)
        m->member[g].share /= sum;
    svi_free(sample);
    return code;
}

/* The order is fixed: coordinates, gamma measured in them, trimming with that gamma, members, shares. */
static svs_code training_run(struct training *t, const svs_rows *rows, svs_error *err) {
    double multiples[SVS_MEMBERS_MAX];
    const int members = svi_gamma_multiples(&t->o, multiples);
    svs_code code = svi_coordinates_init(&t->coordinates, rows->d, t->o.scale, err);
    t->coordinates.fill = t->o.kernel == SVS_NOVELTY_POLYNOMIAL;
    if (code == SVS_OK)
        code = training_place(t, rows, err);
    if (code != SVS_OK)
        return code;
    const double gamma = training_gamma(t);
    t->similarity.nothing = svi_gap_of_nothing(t->o.kernel, members, gamma * multiples[0]);
    code = training_trim(t, gamma, err);
    for (int g = 0; g < members && code == SVS_OK; g++)
        code = training_fit_member(t, gamma * multiples[g], members, err);
    return code == SVS_OK ? training_weigh(t, err) : code;
}

svs_code svs_novelty_train(const svs_rows *rows, const char *const *names, const svs_novelty_options *o,
                           svs_novelty_model **out, svs_error *err) {
    /* Ownership of the model passes to the caller at the very end; until then any failure frees it. */
    struct training t = {.o = *o, .n = rows->n, .random = {o->seed}};
    svs_code code = training_check(rows, o, err);
    if (code != SVS_OK)
        return code;
    /* m rows miss the worst epsilon part with probability e^(-m epsilon) = 5 %. */
    if (o->fosvm == 2 && o->m == 0)
        t.o.m = (int64_t)ceil(log(20) / o->epsilon);
    t.similarity = svi_similarity_of(o->kernel, o->degree, rows->d);
    t.model = svi_novelty_model_new(rows->d, o->scale, names, err);
    code = t.model ? training_run(&t, rows, err) : SVS_NO_MEMORY;
    if (code == SVS_OK) {
        svi_novelty_model_place(t.model, t.coordinates.center, t.coordinates.inverse);
        t.model->kernel = o->kernel;
        t.model->degree = o->degree;
        t.model->fosvm = o->fosvm;
        t.model->theta = o->theta;
        t.model->trained = t.n;
        t.model->trimmed = t.n - t.kept;
        *out = t.model;
        t.model = NULL;
    }
    svi_coordinates_clear(&t.coordinates);
    svi_pool_free(&t.pool);
    svs_novelty_free(&t.model);
    return code;
}
