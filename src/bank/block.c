/* A block's arrays, growth and scores.
 *
 * f begins with a whole vector (1, 0, ...)
 * and the features follow in an order in which new ones come last: of products, feature j brings z_j (1, z_0,
 * ..., z_j). So nothing moves when d grows, and sums by lanes keep their bits. Padding has f = 0, so its
 * weights stay 0. */
#include <math.h>
#include <string.h>

#include "bank/block_internal.h"
#include "base/fail.h"

#define PAD SVI_FLOATS_PAD

int svi_block_length(enum svi_block_kind kind, int d) {
    if (kind == SVI_BLOCK_FOURIER)
        return PAD + SVI_FOURIER_COUNT;
    return PAD + svi_round_up(kind == SVI_BLOCK_PRODUCTS ? d * (d + 3) / 2 : d, SVI_FLOATS_PAD);
}

static const struct svi_array block_table[] = {
#define OWNER struct svi_block
    SVI_ARRAY(OWNER, f, NULL, SVI_AXIS(BLOCK_LENGTH)),
    SVI_ARRAY(OWNER, made, NULL, SVI_AXIS_PLUS(BLOCK_MOMENTS, 2 * PAD)),
    SVI_ARRAY(OWNER, scratch, NULL, SVI_AXIS_PLUS(BLOCK_MOMENTS, 2 * PAD)),
    SVI_ARRAY(OWNER, mean, "block mean", SVI_AXIS(BLOCK_MOMENTS)),
    SVI_ARRAY(OWNER, variance, "block variance", SVI_AXIS(BLOCK_MOMENTS)),
    SVI_ARRAY(OWNER, waves, NULL, SVI_AXIS(BLOCK_PADDED), SVI_AXIS(BLOCK_COSINES)),
    SVI_ARRAY(OWNER, shift, NULL, SVI_AXIS(BLOCK_COSINES)),
    SVI_ARRAY(OWNER, kept, "block rows", SVI_AXIS(BLOCK_KEPT), SVI_AXIS(BLOCK_PADDED)),
    SVI_ARRAY(OWNER, scores, NULL, SVI_AXIS(BLOCK_HEADS), SVI_AXIS(BLOCK_PADDED_ROWS)),
    SVI_ARRAY(OWNER, chance, NULL, SVI_AXIS(BLOCK_PADDED_ROWS)),
    SVI_ARRAY(OWNER, weights, "block weights", SVI_AXIS(BLOCK_HEADS), SVI_AXIS(BLOCK_ROWS),
              SVI_AXIS(BLOCK_LENGTH)),
    SVI_ARRAY(OWNER, sums, "block sums", SVI_AXIS(BLOCK_ADAGRADS), SVI_AXIS(BLOCK_ROWS),
              SVI_AXIS(BLOCK_LENGTH)),
#undef OWNER
};
const struct svi_arrays svi_block_arrays = SVI_ARRAYS_ALIGNED(block_table, "a block of first-order members");

void svi_block_dims(const struct svi_block_options *o, int d, int rows, int32_t *dims) {
    const bool fourier = o->kind == SVI_BLOCK_FOURIER;
    dims[BLOCK_LENGTH] = svi_block_length(o->kind, d);
    dims[BLOCK_HEADS] = o->head_count;
    dims[BLOCK_ADAGRADS] = svi_block_adagrads(o, o->head_count);
    dims[BLOCK_ROWS] = rows;
    dims[BLOCK_PADDED_ROWS] = svi_round_up(rows, SVI_FLOATS_PAD);
    dims[BLOCK_MOMENTS] = o->kind == SVI_BLOCK_PRODUCTS ? dims[BLOCK_LENGTH] : 0;
    dims[BLOCK_COSINES] = fourier ? SVI_FOURIER_COUNT : 0;
    dims[BLOCK_KEPT] = fourier ? SVI_FOURIER_ROWS : 0;
    dims[BLOCK_PADDED] = fourier ? svi_round_up(d, SVI_FLOATS_PAD) : 0;
}

/* Models a head. */
static int block_models(const struct svi_block_options *o, int classes) {
    return classes <= 2 || o->task == SVS_REGRESS ? 1 : classes;
}

/* The capacity to grow to when `d` features, or `rows` models a head, do not fit. */
static int block_more_features(const struct svi_block_options *o, int d) {
    const int more = d + d / 4;
    return o->kind == SVI_BLOCK_PRODUCTS && more > SVI_PRODUCTS_MAX ? SVI_PRODUCTS_MAX : more;
}

static int block_more_rows(int rows) {
    return rows > 1 ? rows + rows / 4 : 1;
}

/* Nothing has come that its arrays would hold. */
static bool block_unused(const struct svi_block *b) {
    return b->classes == 0 && b->kept_rows == 0 && b->learned == 0 && !(b->target.n > 0);
}

/* Of one that is unused nothing is copied: most of its pages have never been touched. */
svs_code svi_block_reserve(struct svi_block *b, int d, int rows, svs_error *err) {
    int32_t from[BLOCK_DIMS] = {0}, to[BLOCK_DIMS];
    if (d <= b->capacity && rows <= b->row_capacity)
        return SVS_OK;
    d = d > b->capacity ? block_more_features(&b->o, d) : b->capacity;
    rows = rows > b->row_capacity ? block_more_rows(rows) : b->row_capacity;
    if (b->f && !block_unused(b))
        svi_block_dims(&b->o, b->capacity, b->row_capacity, from);
    svi_block_dims(&b->o, d, rows, to);
    if (svi_arrays_resize(&svi_block_arrays, b, from, to, err) != SVS_OK)
        return SVS_NO_MEMORY;
    b->f[0] = 1;
    b->capacity = d;
    b->row_capacity = rows;
    b->stride = to[BLOCK_LENGTH];
    return SVS_OK;
}

double svi_block_memory(const struct svi_block_options *o, int d, int classes) {
    int32_t dims[BLOCK_DIMS];
    svi_block_dims(o, block_more_features(o, d), block_more_rows(block_models(o, classes)), dims);
    return (double)svi_arrays_bytes(&svi_block_arrays, dims);
}

static bool head_fits(const struct svi_block_options *o, const struct svi_head *h) {
    const bool nlms = h->step == SVI_STEP_NLMS;
    return h->keep >= 0 && h->keep <= 1 && h->rate > 0 && h->rate <= (nlms ? 1 : 1e6F) &&
           nlms == (o->task == SVS_REGRESS);
}

svs_code svi_block_init(struct svi_block *b, const struct svi_block_options *o, svs_error *err) {
    *b = (struct svi_block){.o = *o, .kernels = svi_floats_get(o->isa), .scale = 1};
    if (!b->kernels)
        return svi_fail(err, SVS_UNAVAILABLE, "this machine lacks the instruction set that is asked for");
    if (o->head_count < 1 || o->head_count > SVI_HEADS_MAX)
        return svi_fail(err, SVS_INVALID, "a block has 1 to %d heads, not %d", SVI_HEADS_MAX, o->head_count);
    for (int h = 0; h < o->head_count; h++)
        if (!head_fits(o, &o->head[h]))
            return svi_fail(err, SVS_INVALID,
                            "head %d of the block: its step does not fit the task, or its rate is not in "
                            "(0, 1e6], of NLMS in (0, 1]",
                            h);
    b->length = svi_block_length(o->kind, 0);
    return svi_block_reserve(b, 0, 1, err);
}

void svi_block_clear(struct svi_block *b) {
    svi_arrays_free(&svi_block_arrays, b);
    *b = (struct svi_block){0};
}

void svi_block_empty(struct svi_block *b) {
    int32_t dims[BLOCK_DIMS];
    b->classes = b->kept_rows = 0;
    b->learned = 0;
    b->spread = 0;
    b->target = (struct svi_moments){0};
    b->scale = 1;
    svi_block_dims(&b->o, b->capacity, b->row_capacity, dims);
    memset(b->f, 0, svi_arrays_bytes(&svi_block_arrays, dims)); /* the first of them */
    b->f[0] = 1;
}

svs_code svi_block_grow(struct svi_block *b, int d, svs_error *err) {
    if (d <= b->d)
        return SVS_OK;
    if (b->o.kind == SVI_BLOCK_PRODUCTS && d > SVI_PRODUCTS_MAX)
        return svi_fail(err, SVS_LIMIT, "products are made of at most %d features, not of %d",
                        SVI_PRODUCTS_MAX, d);
    if (svi_block_reserve(b, d, b->row_capacity, err) != SVS_OK)
        return SVS_NO_MEMORY;
    const int from = b->d;
    b->d = d;
    b->length = svi_block_length(b->o.kind, d);
    if (b->o.kind == SVI_BLOCK_FOURIER && b->spread > 0)
        svi_block_draw(b, from);
    return SVS_OK;
}

svs_code svi_block_reserve_classes(struct svi_block *b, int classes, svs_error *err) {
    return svi_block_reserve(b, b->d, block_models(&b->o, classes), err);
}

/* The one model speaks for the second class, its mirror image for the first. */
static void block_split(struct svi_block *b) {
    for (int h = 0; h < b->o.head_count; h++) {
        float *score = svi_block_scores(b, h);
        float *first = svi_block_row(b, h, 0), *second = svi_block_row(b, h, 1);
        memcpy(second, first, (size_t)b->length * sizeof *first);
        for (int i = 0; i < b->length; i++)
            first[i] = 0 - first[i]; /* 0 stays +0, which is what features that come later begin with */
        if (b->o.head[h].step == SVI_STEP_ADAGRAD)
            memcpy(svi_block_sum(b, h, 1), svi_block_sum(b, h, 0), (size_t)b->length * sizeof *first);
        score[1] = score[0];
        score[0] = -score[0];
    }
}

void svi_block_add_classes(struct svi_block *b, int classes) {
    if (classes <= b->classes)
        return;
    if (b->classes <= 2 && classes > 2)
        block_split(b);
    for (int h = 0; h < b->o.head_count; h++) /* a class that is new has scored 0 */
        for (int r = b->classes > 2 ? b->classes : 2; r < classes; r++)
            svi_block_scores(b, h)[r] = 0;
    b->classes = classes;
}

static void weights_forget(struct svi_block *b, int at) {
    for (int h = 0; h < b->o.head_count; h++)
        for (int r = 0; r < svi_block_rows(b); r++) {
            svi_block_row(b, h, r)[at] = 0;
            if (b->o.head[h].step == SVI_STEP_ADAGRAD)
                svi_block_sum(b, h, r)[at] = 0;
        }
    if (b->o.kind == SVI_BLOCK_PRODUCTS) {
        b->mean[at] = 0;
        b->variance[at] = 1;
    }
}

void svi_block_renew(struct svi_block *b, int j) {
    if (b->o.kind == SVI_BLOCK_RAW)
        weights_forget(b, PAD + j);
    if (b->o.kind != SVI_BLOCK_PRODUCTS)
        return;
    for (int i = 0; i < j + 2; i++)
        weights_forget(b, PAD + j * (j + 3) / 2 + i);
    for (int k = j + 1; k < b->d; k++)
        weights_forget(b, PAD + k * (k + 3) / 2 + 1 + j);
}

static void block_features(struct svi_block *b, const float *z) {
    float *f = b->f + PAD;
    const int n = b->length - PAD, padded = svi_round_up(b->d, SVI_FLOATS_PAD);
    if (b->o.kind == SVI_BLOCK_RAW) {
        svi_array_copy(f, z, (size_t)padded * sizeof *f);
    } else if (b->o.kind == SVI_BLOCK_PRODUCTS) {
        b->kernels->products(z, b->d, n, b->made, b->scratch);
        b->kernels->normalise(b->made, b->mean + PAD, b->variance + PAD, SVI_PRODUCTS_CLIP, n, f);
    } else if (b->spread > 0) {
        b->kernels->cosines(b->waves, b->shift, z, b->d, n, f);
    } else {
        svi_array_copy(svi_block_kept(b, b->kept_rows), z, (size_t)padded * sizeof *f);
    }
}

void svi_block_score(struct svi_block *b, const float *z, double *scores) {
    const int rows = svi_block_rows(b);
    block_features(b, z);
    for (int h = 0; h < b->o.head_count; h++) {
        float *s = svi_block_scores(b, h);
        b->kernels->dots(b->f, svi_block_row(b, h, 0), (size_t)b->stride, rows, b->length, s);
        for (int r = 0; r < rows; r++)
            scores[h * rows + r] =
                b->o.task == SVS_REGRESS ? b->target.mean + b->scale * (double)s[r] : (double)s[r];
    }
}

const float *svi_block_features(const struct svi_block *b, int *count) {
    *count = b->o.kind == SVI_BLOCK_RAW        ? b->d
             : b->o.kind == SVI_BLOCK_PRODUCTS ? b->d * (b->d + 3) / 2
             : b->spread > 0                   ? SVI_FOURIER_COUNT
                                               : 0;
    return b->f + PAD;
}

double svi_block_weights(const struct svi_block *b, int head, int row, const struct svi_standardiser *s,
                         double *w) {
    const float *weight = svi_block_row(b, head, row);
    const double scale = b->o.task == SVS_REGRESS ? b->scale : 1;
    double bias = scale * (double)weight[0] + (b->o.task == SVS_REGRESS ? b->target.mean : 0);
    for (int j = 0; j < b->d; j++) {
        w[j] = scale * (double)weight[PAD + j] * s->moments.inverse[j];
        bias -= w[j] * s->moments.mean[j];
    }
    return bias;
}
