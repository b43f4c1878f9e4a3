/* Training: coordinates, gamma, trimming, one fit for each member, and what becomes of it: a model. */
#include "svmstream/novelty.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/statistics.h"
#include "novelty/coordinates.h"
#include "novelty/member.h"
#include "novelty/model.h"

#define VALUE_MAX 1e100
#define SAMPLE    4096 /* rows by which quantiles, variances and spreads are estimated */
#define PAIRS     4000 /* of rows, for the median distance */
#define KERNELS   256  /* rows whose kernels make up the density that trimming goes by */

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

struct training {
    svs_novelty_options o;
    struct svi_coordinates coordinates;
    struct svi_similarity similarity;
    int64_t n, kept;
    double *points;   /* n x stride, in coordinates; the kept ones first */
    double *norm2;    /* polynomial */
    double *sample;   /* SAMPLE raw rows, then scratch of as many values */
    double *surprise; /* of SAMPLE rows */
    struct svi_random random;
    struct svs_novelty_model *model;
};

static void clear(struct training *t) {
    svi_coordinates_clear(&t->coordinates);
    svi_free(t->points);
    svi_free(t->norm2);
    svi_free(t->sample);
    svi_free(t->surprise);
    svs_novelty_free(&t->model);
}

static svs_code invalid(svs_error *err, const char *what) {
    return svi_fail(err, SVS_INVALID, "%s", what);
}

static svs_code check(const svs_rows *rows, const svs_novelty_options *o, svs_error *err) {
    if (rows->n < 2)
        return svi_fail(err, SVS_INVALID, "a one-class model needs two rows at least, there are %lld",
                        (long long)rows->n);
    if (o->fosvm != 1 && o->fosvm != 2)
        return invalid(err, "fosvm must be 1 or 2");
    if (!(o->theta > 0 && o->theta < 1))
        return invalid(err, "theta must lie between 0 and 1");
    if (o->fosvm == 2 && !(o->epsilon > 0 && o->epsilon < 1))
        return invalid(err, "epsilon must lie between 0 and 1");
    if (o->gamma_rule == SVS_GAMMA_GIVEN && !(o->gamma > 0 && isfinite(o->gamma)))
        return invalid(err, "gamma must be a positive number");
    if (o->kernel == SVS_NOVELTY_POLYNOMIAL && (o->degree < 1 || o->degree > 20))
        return invalid(err, "degree must be 1 to 20");
    if (!(o->trim >= 0 && o->trim <= 0.5))
        return invalid(err, "trim must lie between 0 and 0.5");
    if (o->m < 0 || o->max < 0 || o->max == 1)
        return invalid(err, "m must not be negative, max must be 0 or at least 2");
    return svs_rows_check(rows, err);
}

/* ---- the rows in coordinates */

static int64_t sample_size(const struct training *t) {
    return t->n < SAMPLE ? t->n : SAMPLE;
}

/* Evenly spread over the rows: the i-th of the sample. */
static int64_t sample_row(const struct training *t, int64_t i) {
    return t->n <= SAMPLE ? i : (int64_t)((double)i * (double)t->n / SAMPLE);
}

/* Without scaling the coordinates are the values themselves, whose squares must not overflow. */
static svs_code check_size(const struct training *t, int64_t row, const double *point, svs_error *err) {
    for (int j = 0; j < t->coordinates.d; j++)
        if (fabs(point[j]) > VALUE_MAX)
            return svi_fail(
                err, SVS_TOO_LARGE,
                "row %lld has %g in column %d: values beyond 1e100 cannot be computed with unless "
                "columns are scaled",
                (long long)row, point[j], j);
    return SVS_OK;
}

static svs_code place(struct training *t, const svs_rows *rows, svs_error *err) {
    const int64_t count = sample_size(t), d = rows->d;
    const size_t stride = (size_t)t->coordinates.stride;
    const bool polynomial = t->o.kernel == SVS_NOVELTY_POLYNOMIAL;
    t->sample = svi_alloc_array((size_t)(count * d + count + d), sizeof *t->sample);
    t->surprise = svi_alloc_array((size_t)count, sizeof *t->surprise);
    t->points = svi_alloc_array((size_t)t->n * stride, sizeof *t->points);
    t->norm2 = polynomial ? svi_alloc_array((size_t)t->n, sizeof *t->norm2) : NULL;
    if (!t->sample || !t->surprise || !t->points || (polynomial && !t->norm2))
        return svi_fail_memory(err, "the rows to train on");
    for (int64_t i = 0; i < count; i++)
        svs_rows_copy(rows, sample_row(t, i), t->sample + i * d);
    svi_coordinates_fit(&t->coordinates, t->sample, d, count, t->sample + count * d);
    double *raw = t->sample + count * d + count;
    svs_code code = SVS_OK;
    for (int64_t i = 0; i < t->n && code == SVS_OK; i++) {
        double *to = t->points + (size_t)i * stride;
        svs_rows_copy(rows, i, raw);
        svi_coordinates_apply(&t->coordinates, raw, to);
        code = check_size(t, i, to, err);
        if (polynomial)
            t->norm2[i] = t->similarity.pass->dot(to, to, (int)stride);
    }
    return code;
}

/* ---- gamma */

static double scale_gamma(const struct training *t) {
    struct svi_moments m = {0};
    const int64_t count = sample_size(t);
    for (int64_t i = 0; i < count; i++)
        for (int j = 0; j < t->coordinates.d; j++)
            svi_moments_add(&m, t->points[(size_t)(sample_row(t, i) * t->coordinates.stride + j)]);
    return svi_gamma_of_spread(&m, t->coordinates.d);
}

/* Over pairs of different rows: 1 / their median distance; equal rows are passed over. */
static double median_gamma(struct training *t) {
    const int stride = t->coordinates.stride;
    double gaps[PAIRS];
    int count = 0;
    for (int i = 0; i < PAIRS; i++) {
        const int64_t a = (int64_t)(svi_random_next(&t->random) % (uint64_t)t->n),
                      b = (int64_t)(svi_random_next(&t->random) % (uint64_t)t->n);
        const struct svi_points p = {t->points + a * stride, stride, 1};
        svi_similarity_gap(&t->similarity, &p, 0, 1, t->points + b * stride, &gaps[count]);
        count += gaps[count] > 0;
    }
    return svi_gamma_of_gaps(gaps, count);
}

static double base_gamma(struct training *t) {
    const bool scale = t->o.gamma_rule == SVS_GAMMA_SCALE || t->o.kernel == SVS_NOVELTY_POLYNOMIAL;
    if (t->o.gamma_rule == SVS_GAMMA_GIVEN)
        return t->o.gamma;
    return scale ? scale_gamma(t) : median_gamma(t);
}

/* ---- trimming */

static void swap_rows(struct training *t, int64_t a, int64_t b) {
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

/* Sum of the kernels of KERNELS rows at each row. */
static void densities(const struct training *t, double gamma, double *density, double *k) {
    const struct svi_points p = {t->points, t->coordinates.stride, t->n};
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

/* Moves the rows of lowest density behind the others. */
static svs_code trim(struct training *t, double gamma, svs_error *err) {
    const int64_t drop = (int64_t)(t->o.trim * (double)t->n);
    t->kept = t->n;
    if (drop < 1 || t->n - drop < 2)
        return SVS_OK;
    double *density = svi_alloc_array((size_t)(2 * t->n + SAMPLE), sizeof *density);
    if (!density)
        return svi_fail_memory(err, "the densities by which rows are trimmed");
    double *sorted = density + t->n;
    densities(t, gamma, density, sorted + t->n);
    memcpy(sorted, density, (size_t)t->n * sizeof *density);
    const double least = svi_select_rank(sorted, t->n, drop);
    t->kept = 0;
    for (int64_t i = 0; i < t->n; i++)
        if (density[i] >= least)
            swap_rows(t, t->kept++, i);
    svi_free(density);
    return SVS_OK;
}

/* ---- members */

static svs_code copy_member(struct training *t, const struct svi_member_fit *f, svs_error *err) {
    struct svi_member_room room;
    const size_t n = (size_t)f->hull.count;
    svs_code code = svi_novelty_model_member(t->model, f->hull.count, &room, err);
    if (code != SVS_OK)
        return code;
    memcpy(room.support, f->support, n * (size_t)t->coordinates.stride * sizeof *room.support);
    memcpy(room.norm2, f->support_norm2, n * sizeof *room.norm2);
    memcpy(room.z, f->hull.z, n * sizeof *room.z);
    svs_novelty_member *m = &t->model->member[t->model->members - 1];
    m->gamma = f->gamma;
    m->rho = svi_hull_rho(&f->hull);
    m->worst = f->worst;
    m->outside = f->outside;
    m->violation = svi_hull_violation(&f->hull);
    m->rounds = f->rounds;
    return SVS_OK;
}

static svs_code fit_member(struct training *t, double gamma, int members, svs_error *err) {
    svs_novelty_options o = t->o;
    o.max = o.max > 0 ? (o.max / members > 2 ? o.max / members : 2) : 0;
    struct svi_member_fit f = {.options = &o,
                               .similarity = t->similarity,
                               .rows = {t->points, t->coordinates.stride, t->kept},
                               .norm2 = t->norm2,
                               .gamma = gamma,
                               .random = t->random,
                               .member = t->model->members,
                               .members = members};
    svs_code code = svi_member_fit(&f, err);
    if (code == SVS_OK)
        code = copy_member(t, &f, err);
    t->random = f.random;
    svi_member_clear(&f);
    return code;
}

/* Members are weighed by 1 / the deviation of their surprise over (a sample of) the fitted rows, so that none
 * drowns the others. */
static svs_code weigh(struct training *t, svs_error *err) {
    svs_novelty_model *m = t->model;
    const size_t stride = (size_t)t->coordinates.stride;
    const int64_t count = t->kept < SAMPLE ? t->kept : SAMPLE;
    svs_code code = SVS_OK;
    double sum = 0, *sample = m->members > 1 ? svi_alloc_array((size_t)count * stride, sizeof *sample) : NULL;
    if (m->members > 1 && !sample)
        return svi_fail_memory(err, "the rows by which the members are weighed");
    for (int64_t i = 0; i < count && sample; i++)
        memcpy(sample + (size_t)i * stride, t->points + (size_t)(i * t->kept / count) * stride,
               stride * sizeof *sample);
    for (int g = 0; g < m->members && sample && code == SVS_OK; g++) {
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

static svs_code train(struct training *t, const svs_rows *rows, svs_error *err) {
    double multiples[SVS_MEMBERS_MAX];
    const int members = svi_gamma_multiples(&t->o, multiples);
    svs_code code = svi_coordinates_init(&t->coordinates, rows->d, t->o.scale, err);
    if (code == SVS_OK)
        code = place(t, rows, err);
    if (code != SVS_OK)
        return code;
    const double gamma = base_gamma(t);
    code = trim(t, gamma, err);
    for (int g = 0; g < members && code == SVS_OK; g++)
        code = fit_member(t, gamma * multiples[g], members, err);
    return code == SVS_OK ? weigh(t, err) : code;
}

svs_code svs_novelty_train(const svs_rows *rows, const char *const *names, const svs_novelty_options *o,
                           svs_novelty_model **out, svs_error *err) {
    struct training t = {.o = *o, .n = rows->n, .random = {o->seed}};
    svs_code code = check(rows, o, err);
    if (code != SVS_OK)
        return code;
    if (o->fosvm == 2 && o->m == 0)
        t.o.m = (int64_t)ceil(log(20) / o->epsilon);
    t.similarity = (struct svi_similarity){o->kernel, o->degree, svi_kernels_get(SVS_ISA_BEST)};
    t.model = svi_novelty_model_new(rows->d, o->scale, names, err);
    code = t.model ? train(&t, rows, err) : SVS_NO_MEMORY;
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
    clear(&t);
    return code;
}
