#include "novelty/model.h"

#include <math.h>
#include <string.h>

#include <cblas.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "novelty/similarity.h"

#define BLOCK 256    /* rows scored together */
#define FAINT 1e-280 /* memberships below this are worked out from the distances */

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
    svi_free(m);
    *model = NULL;
}

static bool copy_names(svs_novelty_model *m, const char *const *names) {
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
        got = (!scale || (m->center && inverse)) && (!names || copy_names(m, names));
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

svs_code svi_novelty_model_member(svs_novelty_model *m, int count, struct svi_member_room *room,
                                  svs_error *err) {
    const size_t n = (size_t)count, stride = (size_t)m->stride;
    if (m->members == SVS_MEMBERS_MAX)
        return svi_fail(err, SVS_LIMIT, "a novelty model has at most %d members", SVS_MEMBERS_MAX);
    room->support = svi_alloc_array(n, (stride + 2) * sizeof(double));
    if (!room->support)
        return svi_fail_memory(err, "the support vectors");
    room->norm2 = room->support + n * stride;
    room->z = room->norm2 + n;
    m->member[m->members++] = (svs_novelty_member){
        .count = count, .support = room->support, .norm2 = room->norm2, .z = room->z, .share = 1};
    return SVS_OK;
}

/* ---- scores */

/* What scoring BLOCK rows needs. */
struct scratch {
    double *points;     /* BLOCK x stride */
    double *norm2;      /* BLOCK */
    double *kernel;     /* most support vectors x BLOCK */
    double *membership; /* BLOCK */
    double *gap;        /* most support vectors */
    double *surprise;   /* BLOCK */
};

static int largest_member(const svs_novelty_model *m) {
    int largest = 1;
    for (int g = 0; g < m->members; g++)
        largest = m->member[g].count > largest ? m->member[g].count : largest;
    return largest;
}

static double *new_scratch(const svs_novelty_model *m, struct scratch *s, svs_error *err) {
    const size_t stride = (size_t)m->stride, most = (size_t)svi_round_up(largest_member(m), 8);
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

static void surprise_of_block(const svs_novelty_model *m, const svs_novelty_member *e, const double *points,
                              int count, const struct scratch *s, double *surprise) {
    const struct svi_similarity similarity = {m->kernel, m->degree, svi_kernels_get(SVS_ISA_BEST)};
    const struct svi_points rows = {points, m->stride, count}, support = {e->support, m->stride, e->count};
    const bool polynomial = m->kernel == SVS_NOVELTY_POLYNOMIAL;
    for (int i = 0; i < count && polynomial; i++)
        s->norm2[i] = similarity.pass->dot(points + (size_t)i * (size_t)m->stride,
                                           points + (size_t)i * (size_t)m->stride, m->stride);
    for (int a = 0; a < e->count; a++) {
        double *k = s->kernel + (size_t)a * BLOCK;
        svi_similarity_gap(&similarity, &rows, 0, count, e->support + (size_t)a * (size_t)m->stride, k);
        svi_similarity_of_gap(&similarity, e->gamma, k, polynomial ? s->norm2 : NULL, e->norm2[a], count, k);
    }
    cblas_dgemv(CblasRowMajor, CblasTrans, e->count, count, 1, s->kernel, BLOCK, e->z, 1, 0, s->membership,
                1);
    for (int i = 0; i < count; i++) {
        surprise[i] = -log(fmax(s->membership[i], FAINT));
        if (s->membership[i] > FAINT || polynomial)
            continue;
        svi_similarity_gap(&similarity, &support, 0, e->count, points + (size_t)i * (size_t)m->stride,
                           s->gap);
        surprise[i] = svi_similarity_surprise(e->gamma, s->gap, e->z, e->count);
    }
}

svs_code svi_novelty_member_surprise(const svs_novelty_model *m, int member, const double *points,
                                     int64_t count, double *surprise, svs_error *err) {
    struct scratch s;
    double *all = new_scratch(m, &s, err);
    if (!all)
        return SVS_NO_MEMORY;
    for (int64_t i = 0; i < count; i += BLOCK)
        surprise_of_block(m, &m->member[member], points + i * m->stride,
                          (int)(count - i < BLOCK ? count - i : BLOCK), &s, surprise + i);
    svi_free(all);
    return SVS_OK;
}

/* The weighted mean of the members' surprises, of one block of rows. */
static void score_block(const svs_novelty_model *m, const svs_rows *rows, int64_t first, int count,
                        const struct scratch *s, double *novelty, double *surprise) {
    const struct svi_coordinates coordinates = svi_novelty_coordinates(m);
    double total[BLOCK] = {0};
    for (int i = 0; i < count; i++) {
        double *point = s->points + (size_t)i * (size_t)m->stride;
        svs_rows_copy(rows, first + i, point);
        svi_coordinates_apply(&coordinates, point, point);
    }
    for (int g = 0; g < m->members; g++) {
        surprise_of_block(m, &m->member[g], s->points, count, s, s->surprise);
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
    struct scratch s;
    if (rows->d != m->d)
        return svi_fail(err, SVS_WRONG_DIMENSION, "the rows have %d features, the model has %d", rows->d,
                        m->d);
    double *all = new_scratch(m, &s, err);
    if (!all)
        return SVS_NO_MEMORY;
    for (int64_t i = 0; i < count; i += BLOCK)
        score_block(m, rows, first + i, (int)(count - i < BLOCK ? count - i : BLOCK), &s,
                    novelty ? novelty + i : NULL, surprise ? surprise + i : NULL);
    svi_free(all);
    return SVS_OK;
}
