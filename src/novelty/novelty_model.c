/* A novelty model: its memory, its scores, and the explanation of a score.
 *
 * Scoring takes BLOCK rows at a time: coordinates first, then for each member the kernel values with its
 * support vectors and one product with z. A membership too small for that gets its -log from the distances,
 * where it stays exact, so surprise orders even rows whose kernel values all underflow.
 *
 * An explanation takes one row. For each member: the weights (share of each support vector in the
 * membership), their centre, and the gradient of the surprise; feature j adds |gradient_j| (x_j - centre_j).
 * The detector explains its own view of itself as a model, so svi_explain must not allocate; only the public
 * calls do. */
#include "novelty/novelty_model.h"

#include <math.h>
#include <string.h>

#include <cblas.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "novelty/coordinates.h"
#include "novelty/similarity.h"

#define BLOCK 256 /* rows scored together */
#define WEAK                                                                                                 \
    1e-13 /* weights below this share are left out of an explanation: they cost as much as the others */
#define FLAT 1e-12 /* memberships of polynomial kernels may vanish; divisors are at least this */

const char *const svi_novelty_kernels[] = {"rbf", "laplacian", "polynomial", NULL};

/* A member's arrays are one allocation, which begins at `support`. */
void svs_novelty_free(svs_novelty_model **model) {
    svs_novelty_model *m = *model;
    if (!m)
        return;
    for (int j = 0; m->features && j < m->d; j++)
        svi_free((void *)m->features[j]);
    for (int g = 0; g < m->members; g++)
        svi_free((void *)m->member[g].support);
    svi_free((void *)m->features);
    svi_free((void *)m->center);
    svi_free((void *)m->inverse);
    svi_free((void *)m->schema);
    svi_free(m);
    *model = NULL;
}

static bool novelty_model_copy_names(svs_novelty_model *m, const char *const *names) {
    const char **copies = svi_alloc_array((size_t)m->d, sizeof *copies);
    m->features = copies;
    for (int j = 0; copies && j < m->d; j++) {
        const size_t size = strlen(names[j]) + 1;
        char *copy = svi_alloc(size);
        if (!copy)
            return false;
        memcpy(copy, names[j], size);
        copies[j] = copy;
    }
    return copies;
}

/* A failure half-way is cleaned up by svs_novelty_free, which accepts partial models. */
svs_novelty_model *svi_novelty_model_new(int d, bool scale, const char *const *names, svs_error *err) {
    svs_novelty_model *m = svi_alloc(sizeof *m);
    bool got = m;
    if (got) {
        double *inverse = scale ? svi_alloc_array((size_t)d, sizeof *inverse) : NULL;
        m->d = d;
        m->stride = svi_round_up(d, 8);
        m->lags = 1;
        m->center = scale ? svi_alloc_array((size_t)d, sizeof *m->center) : NULL;
        m->inverse = inverse;
        got = (!scale || (m->center && inverse)) && (!names || novelty_model_copy_names(m, names));
        for (int j = 0; got && scale && j < d; j++)
            inverse[j] = 1;
    }
    if (got)
        return m;
    svs_novelty_free(&m);
    svi_fail_memory(err, "the novelty model");
    return NULL;
}

void svi_novelty_model_place(svs_novelty_model *m, const double *center, const double *inverse) {
    if (!m->center)
        return;
    memcpy((double *)m->center, center, (size_t)m->d * sizeof *center);
    memcpy((double *)m->inverse, inverse, (size_t)m->d * sizeof *inverse);
}

svs_code svi_novelty_model_describe(svs_novelty_model *m, const void *schema, size_t size, svs_error *err) {
    void *copy = svi_alloc(size);
    if (!copy)
        return svi_fail_memory(err, "the columns of a novelty model");
    memcpy(copy, schema, size);
    m->schema = copy;
    m->schema_size = size;
    return SVS_OK;
}

svs_code svi_novelty_model_member(svs_novelty_model *m, int count, struct svi_member_slot *slot,
                                  svs_error *err) {
    const size_t n = (size_t)count, stride = (size_t)m->stride;
    if (m->members == SVS_MEMBERS_MAX)
        return svi_fail(err, SVS_LIMIT, "a novelty model has at most %d members", SVS_MEMBERS_MAX);
    slot->support = svi_alloc_array(n, (stride + 2) * sizeof(double));
    if (!slot->support)
        return svi_fail_memory(err, "the support vectors");
    slot->norm2 = slot->support + n * stride;
    slot->z = slot->norm2 + n;
    m->member[m->members++] = (svs_novelty_member){
        .count = count, .support = slot->support, .norm2 = slot->norm2, .z = slot->z, .share = 1};
    return SVS_OK;
}

void svi_novelty_model_mark(const svs_novelty_model *m, const struct svi_member_slot *slot, int count) {
    for (int i = 0; i < count; i++)
        if (svi_count_missing(slot->support + (size_t)i * (size_t)m->stride, m->d) > 0)
            slot->norm2[i] = NAN;
}

/* ---- scores */

/* Scratch for scoring BLOCK rows, one allocation. */
struct score_scratch {
    double *points;     /* BLOCK x stride */
    double *norm2;      /* BLOCK */
    double *kernel;     /* largest number of support vectors x BLOCK */
    double *membership; /* BLOCK */
    double *gap;        /* largest number of support vectors */
    double *surprise;   /* BLOCK */
};

/* The model's coordinates, borrowed. */
static struct svi_coordinates novelty_model_coordinates(const svs_novelty_model *m) {
    return (struct svi_coordinates){.d = m->d,
                                    .stride = m->stride,
                                    .center = (double *)m->center,
                                    .inverse = (double *)m->inverse,
                                    .pass = svi_kernels_get(SVS_ISA_BEST),
                                    .fill = m->kernel == SVS_NOVELTY_POLYNOMIAL};
}

/* The kernels of the model; the gap of rows without a common coordinate follows from its first gamma. */
static struct svi_similarity novelty_model_similarity(const svs_novelty_model *m) {
    struct svi_similarity similarity = svi_similarity_of(m->kernel, m->degree, m->d);
    if (m->members > 0)
        similarity.nothing = svi_gap_of_nothing(m->kernel, m->members, m->member[0].gamma);
    return similarity;
}

/* The support vectors of a member as points. NaN in norm2 marks those with missing coordinates. */
static struct svi_points novelty_model_support(const svs_novelty_model *m, const svs_novelty_member *e) {
    return (struct svi_points){.x = e->support,
                               .stride = m->stride,
                               .count = e->count,
                               .gaps = svi_count_missing(e->norm2, e->count) > 0};
}

static int novelty_model_largest_member(const svs_novelty_model *m) {
    int largest = 1;
    for (int g = 0; g < m->members; g++)
        largest = m->member[g].count > largest ? m->member[g].count : largest;
    return largest;
}

/* Allocates the scratch; returns the block to free. Sizes are multiples of 8 doubles, which keeps parts
 * aligned. */
static double *scratch_new(const svs_novelty_model *m, struct score_scratch *s, svs_error *err) {
    const size_t stride = (size_t)m->stride, most = (size_t)svi_round_up(novelty_model_largest_member(m), 8);
    double *all = svi_alloc_array(BLOCK * (stride + 3) + most * (BLOCK + 1), sizeof *all);
    if (!all) {
        svi_fail_memory(err, "scoring");
        return NULL;
    }
    s->points = all;
    s->norm2 = s->points + BLOCK * stride;
    s->membership = s->norm2 + BLOCK;
    s->surprise = s->membership + BLOCK;
    s->gap = s->surprise + BLOCK;
    s->kernel = s->gap + most;
    return all;
}

/* Surprises of one member for a block of rows in coordinates. */
static void novelty_model_surprise(const svs_novelty_model *m, const svs_novelty_member *e,
                                   const double *points, int count, const struct score_scratch *s,
                                   double *surprise) {
    /* Gaps are computed per support vector over all rows of the block, which keeps the vector in cache. */
    const struct svi_similarity similarity = novelty_model_similarity(m);
    const struct svi_points support = novelty_model_support(m, e);
    const struct svi_points rows = {points, m->stride, count,
                                    svi_count_missing(points, count * m->stride) > 0};
    const bool polynomial = m->kernel == SVS_NOVELTY_POLYNOMIAL;
    for (int i = 0; i < count && polynomial; i++)
        s->norm2[i] = similarity.pass->dot(points + (size_t)i * (size_t)m->stride,
                                           points + (size_t)i * (size_t)m->stride, m->stride);
    for (int a = 0; a < e->count; a++) {
        double *k = s->kernel + (size_t)a * BLOCK;
        svi_similarity_gap(&similarity, &rows, 0, count, e->support + (size_t)a * (size_t)m->stride, k);
        svi_similarity_of_gap(&similarity, e->gamma, k, polynomial ? s->norm2 : NULL, e->norm2[a], count, k);
    }
    /* memberships = K' z: kernel rows are support vectors, columns the rows of the block. */
    cblas_dgemv(CblasRowMajor, CblasTrans, e->count, count, 1, s->kernel, BLOCK, e->z, 1, 0, s->membership,
                1);
    for (int i = 0; i < count; i++) {
        surprise[i] = -log(fmax(s->membership[i], SVI_FAINT));
        if (rows.gaps && svi_count_missing(points + (size_t)i * (size_t)m->stride, m->d) == m->d)
            surprise[i] = 0; /* a row without any value */
        else if (!(s->membership[i] > SVI_FAINT || polynomial)) {
            svi_similarity_gap(&similarity, &support, 0, e->count, points + (size_t)i * (size_t)m->stride,
                               s->gap);
            surprise[i] = svi_similarity_surprise(e->gamma, s->gap, e->z, e->count);
        }
    }
}

svs_code svi_novelty_member_surprise(const svs_novelty_model *m, int member, const double *points,
                                     int64_t count, double *surprise, svs_error *err) {
    struct score_scratch s;
    double *all = scratch_new(m, &s, err);
    if (!all)
        return SVS_NO_MEMORY;
    for (int64_t i = 0; i < count; i += BLOCK)
        novelty_model_surprise(m, &m->member[member], points + i * m->stride,
                               (int)(count - i < BLOCK ? count - i : BLOCK), &s, surprise + i);
    svi_free(all);
    return SVS_OK;
}

/* Scores one block of raw rows: the weighted mean of the members' surprises, and novelty 1 - exp(-surprise).
 * Either output may be NULL. */
static void novelty_model_score_block(const svs_novelty_model *m, const svs_rows *rows, int64_t first,
                                      int count, const struct score_scratch *s, double *novelty,
                                      double *surprise) {
    const struct svi_coordinates coordinates = novelty_model_coordinates(m);
    /* Coordinates are computed in place: the raw row is copied to where they belong. */
    double total[BLOCK] = {0};
    for (int i = 0; i < count; i++) {
        double *point = s->points + (size_t)i * (size_t)m->stride;
        svs_rows_copy(rows, first + i, point);
        svi_coordinates_apply(&coordinates, point, point);
    }
    for (int g = 0; g < m->members; g++) {
        novelty_model_surprise(m, &m->member[g], s->points, count, s, s->surprise);
        for (int i = 0; i < count; i++)
            total[i] += m->member[g].share * s->surprise[i];
    }
    for (int i = 0; i < count && surprise; i++)
        surprise[i] = total[i];
    for (int i = 0; i < count && novelty; i++)
        novelty[i] = -expm1(-total[i]);
}

svs_code svs_novelty_score(const svs_novelty_model *m, const svs_rows *rows, int64_t first, int64_t count,
                           double *novelty, double *surprise, svs_error *err) {
    struct score_scratch s;
    if (rows->d != m->d)
        return svi_fail(err, SVS_WRONG_DIMENSION, "the rows have %d features, the model has %d", rows->d,
                        m->d);
    double *all = scratch_new(m, &s, err);
    if (!all)
        return SVS_NO_MEMORY;
    for (int64_t i = 0; i < count; i += BLOCK)
        novelty_model_score_block(m, rows, first + i, (int)(count - i < BLOCK ? count - i : BLOCK), &s,
                                  novelty ? novelty + i : NULL, surprise ? surprise + i : NULL);
    svi_free(all);
    return SVS_OK;
}

/* ---- explanations */

/* The sample in the model's coordinates, and the results for one member at a time. */
struct explain_view {
    const svs_novelty_model *m;
    struct svi_similarity similarity;
    double *u;        /* stride */
    double *centre;   /* stride: weighted mean of the support vectors */
    double *gradient; /* stride, in coordinates */
    double *weight;   /* by support vector: first its gap, then its weight */
};

size_t svi_explain_doubles(const svs_novelty_model *m) {
    return 3 * (size_t)m->stride + (size_t)novelty_model_largest_member(m);
}

static void explain_add(double *to, double scale, const double *x, int n) {
    for (int j = 0; j < n; j++)
        to[j] += scale * x[j];
}

static const double *explain_vector(const struct explain_view *v, const svs_novelty_member *e, int i) {
    return e->support + (size_t)i * (size_t)v->m->stride;
}

/* The mean of the support vectors by weight. Nearly all weights are 0. */
static void explain_centre(const struct explain_view *v, const svs_novelty_member *e) {
    memset(v->centre, 0, (size_t)v->m->stride * sizeof *v->centre);
    for (int i = 0; i < e->count; i++)
        if (v->weight[i] > 0)
            explain_add(v->centre, v->weight[i], explain_vector(v, e, i), v->m->d);
}

/* Turns gaps into weights w_i = z_i k_i / sum z k. Kernel values are taken relative to the nearest point, so
 * the weights stay exact where every kernel value underflows. Points with z = 0 get weight 0, however
 * near. */
static void explain_weigh(const struct explain_view *v, const svs_novelty_member *e) {
    double least = INFINITY, sum = 0;
    for (int i = 0; i < e->count; i++)
        if (e->z[i] > 0 && v->weight[i] < least)
            least = v->weight[i];
    for (int i = 0; i < e->count; i++)
        sum += v->weight[i] = e->z[i] > 0 ? e->z[i] * exp(-e->gamma * (v->weight[i] - least)) : 0;
    for (int i = 0; i < e->count; i++)
        v->weight[i] = v->weight[i] > WEAK * sum ? v->weight[i] / sum : 0;
    explain_centre(v, e);
}

/* rbf: the gradient points from the centre to x. */
static void explain_rbf(const struct explain_view *v, const svs_novelty_member *e) {
    explain_weigh(v, e);
    for (int j = 0; j < v->m->d; j++)
        v->gradient[j] = 2 * e->gamma * (v->u[j] - v->centre[j]);
}

/* laplacian: each support vector adds the sign of its side, by weight. */
static void explain_laplacian(const struct explain_view *v, const svs_novelty_member *e) {
    explain_weigh(v, e);
    for (int i = 0; i < e->count; i++) {
        const double *x = explain_vector(v, e, i), step = e->gamma * v->weight[i];
        if (step > 0)
            v->similarity.pass->signs_add(v->u, x, step, v->m->stride, v->gradient);
    }
}

/* k = b^p with b = (1 + gamma u'x) / sqrt((1 + gamma u'u) (1 + gamma x'x)), and db/du = gamma x / norm - b
 * gamma u / (1 + gamma u'u). The second part is the same direction for all i, so its factors are summed in
 * `along`. */
static void explain_polynomial(const struct explain_view *v, const svs_novelty_member *e) {
    const int d = v->m->d, p = v->m->degree;
    double membership = 0, weights = 0, own = 1, along = 0;
    for (int j = 0; j < d; j++)
        own += e->gamma * v->u[j] * v->u[j];
    for (int i = 0; i < e->count; i++) {
        const double norm = sqrt(own) * sqrt(1 + e->gamma * e->norm2[i]);
        const double b = (1 + e->gamma * v->weight[i]) / norm, k = pow(b, p), slope = p * pow(b, p - 1);
        membership += e->z[i] * k;
        along += e->z[i] * slope * b;
        explain_add(v->gradient, -e->z[i] * slope * e->gamma / norm, explain_vector(v, e, i), d);
        weights += v->weight[i] = e->z[i] * fabs(k);
    }
    explain_add(v->gradient, along * e->gamma / own, v->u, d);
    for (int j = 0; j < d; j++)
        v->gradient[j] /= fmax(membership, FLAT);
    for (int i = 0; i < e->count; i++)
        v->weight[i] /= fmax(weights, FLAT);
    explain_centre(v, e);
}

/* rbf and laplacian with missing coordinates: each support vector contributes to the coordinates that it
 * shares with x only, scaled by d / their number like its gap. */
static void explain_shared(const struct explain_view *v, const svs_novelty_member *e) {
    const int d = v->m->d;
    explain_weigh(v, e);
    for (int i = 0; i < e->count; i++) {
        /* A weight covers the shared coordinates only, so it is scaled like the gap it is made of. */
        int shared = 0;
        for (int j = 0; j < d; j++)
            shared += !isnan(v->u[j] - explain_vector(v, e, i)[j]);
        v->weight[i] = shared > 0 ? v->weight[i] * d / shared : 0;
    }
    /* Per coordinate, the mean gap to the support vectors that have it gives the centre. */
    for (int j = 0; j < d; j++) {
        double mass = 0, moment = 0, slope = 0;
        for (int i = 0; i < e->count; i++) {
            const double gap = v->u[j] - explain_vector(v, e, i)[j];
            if (isnan(gap))
                continue;
            mass += v->weight[i];
            moment += v->weight[i] * gap;
            slope += v->weight[i] * (v->m->kernel == SVS_NOVELTY_RBF ? 2 * gap : (gap > 0) - (gap < 0));
        }
        v->gradient[j] = e->gamma * slope;
        v->centre[j] = mass > 0 ? v->u[j] - moment / mass : v->u[j];
    }
}

/* Weights, centre and gradient of one member. */
static void explain_member(const struct explain_view *v, const svs_novelty_member *e) {
    static void (*const slopes[])(const struct explain_view *, const svs_novelty_member *) = {
        [SVS_NOVELTY_RBF] = explain_rbf,
        [SVS_NOVELTY_LAPLACIAN] = explain_laplacian,
        [SVS_NOVELTY_POLYNOMIAL] = explain_polynomial};
    const struct svi_points points = novelty_model_support(v->m, e);
    const bool shared =
        v->m->kernel != SVS_NOVELTY_POLYNOMIAL && (points.gaps || svi_count_missing(v->u, v->m->d) > 0);
    memset(v->gradient, 0, (size_t)v->m->stride * sizeof *v->gradient);
    svi_similarity_gap(&v->similarity, &points, 0, e->count, v->u, v->weight);
    if (shared)
        explain_shared(v, e);
    else
        slopes[v->m->kernel](v, e);
}

/* The derivative of coordinate j with respect to the raw value x_j (coordinates.h): 1 / sqrt(1 + (u/3)^2),
 * plus 1 beyond the limit, times the inverse scale. */
static double explain_slope(const svs_novelty_model *m, double x, int j) {
    if (!m->inverse)
        return 1;
    const double u = (x - m->center[j]) * m->inverse[j];
    const double bent = u / SVI_SQUASH_BEND;
    return m->inverse[j] * (1 / sqrt(1 + bent * bent) + (fabs(u) > SVI_SQUASH_LIMIT));
}

/* In coordinates per member, then back to raw units for the gradient (chain rule). `adds` has no unit, so the
 * scales cancel there. */
void svi_explain(const svs_novelty_model *m, const double *x, double *work, double *gradient, double *adds) {
    const struct explain_view v = {.m = m,
                                   .similarity = novelty_model_similarity(m),
                                   .u = work,
                                   .centre = work + m->stride,
                                   .gradient = work + 2 * (size_t)m->stride,
                                   .weight = work + 3 * (size_t)m->stride};
    const struct svi_coordinates coordinates = novelty_model_coordinates(m);
    svi_coordinates_apply(&coordinates, x, v.u);
    for (int j = 0; j < m->d; j++) {
        if (gradient)
            gradient[j] = 0;
        if (adds)
            adds[j] = 0;
    }
    for (int e = 0; e < m->members; e++) {
        const double share = m->member[e].share;
        /* Gradients and centres are combined by the members' shares, like their surprises. */
        explain_member(&v, &m->member[e]);
        for (int j = 0; j < m->d; j++) {
            if (isnan(x[j])) /* a missing value adds nothing */
                continue;
            if (gradient)
                gradient[j] += share * v.gradient[j] * explain_slope(m, x[j], j);
            if (adds)
                adds[j] += share * fabs(v.gradient[j]) * (v.u[j] - v.centre[j]);
        }
    }
}

svs_code svs_novelty_explain(const svs_novelty_model *m, const double *x, double *out, svs_error *err) {
    double *work = svi_alloc_array(svi_explain_doubles(m), sizeof *work);
    if (!work)
        return svi_fail_memory(err, "the explanation of a sample");
    svi_explain(m, x, work, NULL, out);
    svi_free(work);
    return SVS_OK;
}
