#include "novelty/explain.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "novelty/model.h"
#include "novelty/similarity.h"

#define FAINT 1e-13 /* weights below this share are left out: they cost as much as the others */
#define LEAST 1e-12 /* memberships of polynomial kernels may vanish; slopes end here */

/* The sample in the model's coordinates and what one member says about it. */
struct view {
    const svs_novelty_model *m;
    struct svi_similarity similarity;
    double *u;        /* stride */
    double *centre;   /* stride: weighted mean of the support vectors */
    double *gradient; /* stride, in coordinates */
    double *weight;   /* of each support vector: gaps at first */
};

static int largest_member(const svs_novelty_model *m) {
    int largest = 0;
    for (int e = 0; e < m->members; e++)
        largest = m->member[e].count > largest ? m->member[e].count : largest;
    return largest;
}

size_t svi_explain_room(const svs_novelty_model *m) {
    return 3 * (size_t)m->stride + (size_t)largest_member(m);
}

static void add(double *to, double scale, const double *x, int n) {
    for (int j = 0; j < n; j++)
        to[j] += scale * x[j];
}

static const double *vector(const struct view *v, const svs_novelty_member *e, int i) {
    return e->support + (size_t)i * (size_t)v->m->stride;
}

/* The gaps become weights of sum 1, which stay exact where every kernel value underflows. Points without
 * weight in the membership have none here, however near they are. */
static void weigh(const struct view *v, const svs_novelty_member *e) {
    double least = INFINITY, sum = 0;
    for (int i = 0; i < e->count; i++)
        if (e->z[i] > 0 && v->weight[i] < least)
            least = v->weight[i];
    for (int i = 0; i < e->count; i++)
        sum += v->weight[i] = e->z[i] > 0 ? e->z[i] * exp(-e->gamma * (v->weight[i] - least)) : 0;
    for (int i = 0; i < e->count; i++)
        v->weight[i] = v->weight[i] > FAINT * sum ? v->weight[i] / sum : 0;
}

static void find_centre(const struct view *v, const svs_novelty_member *e) {
    memset(v->centre, 0, (size_t)v->m->stride * sizeof *v->centre);
    for (int i = 0; i < e->count; i++)
        if (v->weight[i] > 0)
            add(v->centre, v->weight[i], vector(v, e, i), v->m->d);
}

static void slope_rbf(const struct view *v, const svs_novelty_member *e) {
    weigh(v, e);
    find_centre(v, e);
    for (int j = 0; j < v->m->d; j++)
        v->gradient[j] = 2 * e->gamma * (v->u[j] - v->centre[j]);
}

static void slope_laplacian(const struct view *v, const svs_novelty_member *e) {
    weigh(v, e);
    find_centre(v, e);
    for (int i = 0; i < e->count; i++) {
        const double *x = vector(v, e, i), step = e->gamma * v->weight[i];
        if (step > 0)
            v->similarity.pass->signs_add(v->u, x, step, v->m->stride, v->gradient);
    }
}

/* b = (1 + gamma u'x) / sqrt((1 + gamma u'u) (1 + gamma x'x)). */
static void slope_polynomial(const struct view *v, const svs_novelty_member *e) {
    const int d = v->m->d, p = v->m->degree;
    double membership = 0, weights = 0, own = 1, along = 0;
    for (int j = 0; j < d; j++)
        own += e->gamma * v->u[j] * v->u[j];
    for (int i = 0; i < e->count; i++) {
        const double norm = sqrt(own) * sqrt(1 + e->gamma * e->norm2[i]);
        const double b = (1 + e->gamma * v->weight[i]) / norm, k = pow(b, p), slope = p * pow(b, p - 1);
        membership += e->z[i] * k;
        along += e->z[i] * slope * b;
        add(v->gradient, -e->z[i] * slope * e->gamma / norm, vector(v, e, i), d);
        weights += v->weight[i] = e->z[i] * fabs(k);
    }
    add(v->gradient, along * e->gamma / own, v->u, d);
    for (int j = 0; j < d; j++)
        v->gradient[j] /= fmax(membership, LEAST);
    for (int i = 0; i < e->count; i++)
        v->weight[i] /= fmax(weights, LEAST);
    find_centre(v, e);
}

static void look(const struct view *v, const svs_novelty_member *e) {
    static void (*const slopes[])(const struct view *,
                                  const svs_novelty_member *) = {[SVS_NOVELTY_RBF] = slope_rbf,
                                                                 [SVS_NOVELTY_LAPLACIAN] = slope_laplacian,
                                                                 [SVS_NOVELTY_POLYNOMIAL] = slope_polynomial};
    const struct svi_points points = {e->support, v->m->stride, e->count};
    memset(v->gradient, 0, (size_t)v->m->stride * sizeof *v->gradient);
    svi_similarity_gap(&v->similarity, &points, 0, e->count, v->u, v->weight);
    slopes[v->m->kernel](v, e);
}

/* Of coordinate j at x, in raw units: see coordinates.h. */
static double slope(const svs_novelty_model *m, double x, int j) {
    if (!m->inverse)
        return 1;
    const double u = (x - m->center[j]) * m->inverse[j];
    const double bent = u / SVI_SQUASH_BEND;
    return m->inverse[j] * (1 / sqrt(1 + bent * bent) + (fabs(u) > SVI_SQUASH_FAR));
}

void svi_explain(const svs_novelty_model *m, const double *x, double *work, double *gradient, double *adds) {
    const struct view v = {.m = m,
                           .similarity = {m->kernel, m->degree, svi_kernels_get(SVS_ISA_BEST)},
                           .u = work,
                           .centre = work + m->stride,
                           .gradient = work + 2 * (size_t)m->stride,
                           .weight = work + 3 * (size_t)m->stride};
    const struct svi_coordinates coordinates = svi_novelty_coordinates(m);
    svi_coordinates_apply(&coordinates, x, v.u);
    for (int j = 0; j < m->d; j++) {
        if (gradient)
            gradient[j] = 0;
        if (adds)
            adds[j] = 0;
    }
    for (int e = 0; e < m->members; e++) {
        const double share = m->member[e].share;
        look(&v, &m->member[e]);
        for (int j = 0; j < m->d; j++) {
            if (gradient)
                gradient[j] += share * v.gradient[j] * slope(m, x[j], j);
            if (adds)
                adds[j] += share * fabs(v.gradient[j]) * (v.u[j] - v.centre[j]);
        }
    }
}

svs_code svs_novelty_explain(const svs_novelty_model *m, const double *x, double *out, svs_error *err) {
    double *work = svi_alloc_array(svi_explain_room(m), sizeof *work);
    if (!work)
        return svi_fail_memory(err, "the explanation of a sample");
    svi_explain(m, x, work, NULL, out);
    svi_free(work);
    return SVS_OK;
}
