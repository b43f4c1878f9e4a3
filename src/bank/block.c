/* A block: its arrays, its features, the steps of its heads, its state.
 *
 * f begins with a whole vector (1, 0, ...), and the features follow in an order in which new ones come
 * last: for products, feature j appends z_j (1, z_0, ..., z_j). So growing d moves nothing, and sums by
 * vector lanes keep their bits. Padding has f = 0, so its weights stay 0; svi_block_archive relies on
 * that.
 *
 * The state holds what was learned: neither what the last score left, nor the Fourier frequencies, which
 * seed and spread reproduce. Loaded numbers must lie within what rows can lead to (block.h), so that no
 * sum of them overflows.
 *
 * Read in order: arrays and capacity, the draws of Fourier features, features and classes that are added,
 * features and scores, learning, the archive. */
#include "bank/block.h"

#include <math.h>
#include <string.h>

#include "base/arrays.h"
#include "base/fail.h"
#include "base/random.h"
#include "linalg/kernels.h"

#define PAD        SVI_FLOATS_PAD
#define BLOCK_FADE (1 << 20) /* rows after which the products' moments fade */
#define WEIGHT_MAX 1e6       /* cap of a sample's weight */
#define ERROR_MAX  1e6       /* cap of a target's error, in its scale */
#define CERTAIN    1e-3F     /* a probability this near to its aim takes no step */
#define MAX_WEIGHT 1e20F     /* bounds of loaded weights and AdaGrad sums */
#define MAX_SUM    1e25F
#define PI         3.14159265358979323846

/* Dimensions of the arrays. MOMENTS is 0 except for products; COSINES, KEPT and PADDED are 0 except for
 * Fourier features. */
enum {
    BLOCK_LENGTH,
    BLOCK_HEADS,
    BLOCK_ADAGRADS,
    BLOCK_ROWS,
    BLOCK_PADDED_ROWS,
    BLOCK_MOMENTS,
    BLOCK_COSINES,
    BLOCK_KEPT,
    BLOCK_PADDED,
    BLOCK_DIMS
};

/* ---- arrays and capacity */

/* Length of f for d features, with the leading vector and padding. Fourier features do not depend on d. */
static int block_length(enum svi_block_kind kind, int d) {
    if (kind == SVI_BLOCK_FOURIER)
        return PAD + SVI_FOURIER_COUNT;
    return PAD + svi_round_up(kind == SVI_BLOCK_PRODUCTS ? d * (d + 3) / 2 : d, SVI_FLOATS_PAD);
}

/* The weights of one model of a head. */
static float *block_row(const struct svi_block *b, int head, int row) {
    return b->weights + (size_t)(head * b->row_capacity + row) * (size_t)b->stride;
}

/* How many heads before this one are AdaGrad: the place of its sums. */
static int block_adagrads(const struct svi_block_options *o, int head) {
    int count = 0;
    for (int h = 0; h < head; h++)
        count += o->head[h].step == SVI_STEP_ADAGRAD;
    return count;
}

/* The AdaGrad sums of that model; only of a head that is AdaGrad. */
static float *block_sum(const struct svi_block *b, int head, int row) {
    return b->sums + (size_t)(block_adagrads(&b->o, head) * b->row_capacity + row) * (size_t)b->stride;
}

/* Row i of those collected until the Fourier features can be drawn. */
static float *block_kept(const struct svi_block *b, int i) {
    return b->kept + (size_t)i * (size_t)svi_round_up(b->capacity, SVI_FLOATS_PAD);
}

/* A head's scores of the last row, padded for the vector kernels. */
static float *block_head_scores(const struct svi_block *b, int head) {
    return b->scores + (size_t)head * (size_t)svi_round_up(b->row_capacity, SVI_FLOATS_PAD);
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
static const struct svi_arrays block_arrays =
    SVI_ARRAYS_ALIGNED(block_table, "a block of first-order members");

static void block_dims(const struct svi_block_options *o, int d, int rows, int32_t *dims) {
    const bool fourier = o->kind == SVI_BLOCK_FOURIER;
    /* Arrays that a kind of block does not use have a dimension of 0 and take no memory. */
    dims[BLOCK_LENGTH] = block_length(o->kind, d);
    dims[BLOCK_HEADS] = o->head_count;
    dims[BLOCK_ADAGRADS] = block_adagrads(o, o->head_count);
    dims[BLOCK_ROWS] = rows;
    dims[BLOCK_PADDED_ROWS] = svi_round_up(rows, SVI_FLOATS_PAD);
    dims[BLOCK_MOMENTS] = o->kind == SVI_BLOCK_PRODUCTS ? dims[BLOCK_LENGTH] : 0;
    dims[BLOCK_COSINES] = fourier ? SVI_FOURIER_COUNT : 0;
    dims[BLOCK_KEPT] = fourier ? SVI_FOURIER_ROWS : 0;
    dims[BLOCK_PADDED] = fourier ? svi_round_up(d, SVI_FLOATS_PAD) : 0;
}

/* Models a head, as svi_block_rows. */
static int block_models(const struct svi_block_options *o, int classes) {
    return classes <= 2 || o->task == SVS_REGRESS ? 1 : classes;
}

/* Capacity to grow to when `d` features, or `rows` models a head, do not fit: a quarter more, so that
 * repeated growth copies O(1) times a value. */
static int block_more_features(const struct svi_block_options *o, int d) {
    const int more = d + d / 4;
    return o->kind == SVI_BLOCK_PRODUCTS && more > SVI_PRODUCTS_MAX ? SVI_PRODUCTS_MAX : more;
}

static int block_more_rows(int rows) {
    return rows > 1 ? rows + rows / 4 : 1;
}

/* True while the arrays hold nothing that must survive a resize. */
static bool block_unused(const struct svi_block *b) {
    return b->classes == 0 && b->kept_rows == 0 && b->learned == 0 && !(b->target.n > 0);
}

/* Capacity for d features and this number of models a head; keeps all that was learned. An unused block is
 * allocated again without a copy, because most of its pages have never been touched. */
static svs_code block_reserve(struct svi_block *b, int d, int rows, svs_error *err) {
    int32_t from[BLOCK_DIMS] = {0}, to[BLOCK_DIMS];
    if (d <= b->capacity && rows <= b->row_capacity)
        return SVS_OK;
    d = d > b->capacity ? block_more_features(&b->o, d) : b->capacity;
    rows = rows > b->row_capacity ? block_more_rows(rows) : b->row_capacity;
    if (b->f && !block_unused(b))
        block_dims(&b->o, b->capacity, b->row_capacity, from);
    block_dims(&b->o, d, rows, to);
    if (svi_arrays_resize(&block_arrays, b, from, to, err) != SVS_OK)
        return SVS_NO_MEMORY;
    /* A resize without a copy leaves f zero. */
    b->f[0] = 1;
    b->capacity = d;
    b->row_capacity = rows;
    b->stride = to[BLOCK_LENGTH];
    return SVS_OK;
}

double svi_block_memory(const struct svi_block_options *o, int d, int classes) {
    int32_t dims[BLOCK_DIMS];
    block_dims(o, block_more_features(o, d), block_more_rows(block_models(o, classes)), dims);
    return (double)svi_arrays_bytes(&block_arrays, dims);
}

static bool block_head_fits(const struct svi_block_options *o, const struct svi_head *h) {
    /* A regression has NLMS heads only, classes have the others; ranges as in block.h. */
    const bool nlms = h->step == SVI_STEP_NLMS;
    return h->keep >= 0 && h->keep <= 1 && h->rate > 0 && h->rate <= (nlms ? 1 : 1e6F) &&
           nlms == (o->task == SVS_REGRESS);
}

svs_code svi_block_init(struct svi_block *b, const struct svi_block_options *o, svs_error *err) {
    *b = (struct svi_block){.o = *o, .kernels = svi_floats_get(o->isa), .scale = 1};
    if (!b->kernels)
        return svi_fail(err, SVS_UNAVAILABLE, "this machine lacks the requested instruction set");
    /* Options come from our own tables, so these are checks of the caller, made once and not in each step. */
    if (o->head_count < 1 || o->head_count > SVI_HEADS_MAX)
        return svi_fail(err, SVS_INVALID, "a block has 1 to %d heads, not %d", SVI_HEADS_MAX, o->head_count);
    for (int h = 0; h < o->head_count; h++)
        if (!block_head_fits(o, &o->head[h]))
            return svi_fail(err, SVS_INVALID,
                            "head %d of the block: its step does not fit the task, or its rate is not in "
                            "(0, 1e6], of NLMS in (0, 1]",
                            h);
    b->length = block_length(o->kind, 0);
    return block_reserve(b, 0, 1, err);
}

void svi_block_clear(struct svi_block *b) {
    svi_arrays_free(&block_arrays, b);
    *b = (struct svi_block){0};
}

void svi_block_empty(struct svi_block *b) {
    int32_t dims[BLOCK_DIMS];
    b->classes = b->kept_rows = 0;
    b->learned = 0;
    b->spread = 0;
    b->target = (struct svi_moments){0};
    b->scale = 1;
    /* All arrays lie in one block that begins with f, the first row of the table: one memset clears them. */
    block_dims(&b->o, b->capacity, b->row_capacity, dims);
    memset(b->f, 0, svi_arrays_bytes(&block_arrays, dims));
    b->f[0] = 1;
}

/* ---- the draws of Fourier features */

/* Uniform in (0, 1): never 0, whose log Box-Muller takes. */
static double block_column_uniform(struct svi_random *r) {
    return ((double)(svi_random_next(r) >> 11) + 0.5) * 0x1p-53;
}

/* The generator of a column: seed and number go through one step each, so that neighbouring columns share
 * nothing. */
static struct svi_random block_column_random(uint64_t seed, int column) {
    struct svi_random r = {seed};
    r.state = svi_random_next(&r) + (uint64_t)column;
    r.state = svi_random_next(&r);
    return r;
}

static void block_column_draw(struct svi_block *b, int j) {
    /* Deviation 2 / m of the frequencies; the kernel takes angles in turns (kernels_floats.h), hence 2 pi. */
    const double turns = 2 / b->spread / (2 * PI);
    struct svi_random random = block_column_random(b->o.seed, j);
    for (int i = 0; i < SVI_FOURIER_COUNT; i++) {
        /* Box-Muller; only the cosine is used, so each cosine's draw has a fixed place in the sequence. */
        const double radius = sqrt(-2 * log(block_column_uniform(&random)));
        const double normal = radius * cos(2 * PI * block_column_uniform(&random));
        const size_t block = (size_t)(i / SVI_COSINE_BLOCK) * (size_t)b->d + (size_t)j;
        b->waves[block * SVI_COSINE_BLOCK + (size_t)(i % SVI_COSINE_BLOCK)] = (float)(turns * normal);
    }
}

/* Draws the frequencies of columns `from` to d - 1 for the spread found; those below `from` exist already
 * and are laid out for a d of `from`. */
static void block_draw(struct svi_block *b, int from) {
    float *waves = b->waves;
    struct svi_random random = block_column_random(b->o.seed, -1);
    const size_t old = (size_t)from * SVI_COSINE_BLOCK, new = (size_t)b->d *SVI_COSINE_BLOCK;
    /* A block of cosines has d columns: blocks move apart, the last one first, so that none is
     * overwritten. */
    for (size_t k = SVI_FOURIER_COUNT / SVI_COSINE_BLOCK; k-- > 0;)
        svi_array_copy(waves + k * new, waves + k * old, old * sizeof *waves);
    /* Generator -1 is no column's: the phases are the same for every d. */
    for (int i = 0; i < SVI_FOURIER_COUNT; i++)
        b->shift[i] = (float)block_column_uniform(&random);
    for (int j = from; j < b->d; j++)
        block_column_draw(b, j);
}

/* Median distance among the collected rows, of pairs that are not equal; 1 if all are equal. Column by
 * column: `column` has one feature of all rows side by side, so that the inner loop vectorises, and each
 * pair's sum is over the features in order, whatever the vector length. */
static double block_median_distance(const struct svi_block *b) {
    double distance[SVI_FOURIER_ROWS * (SVI_FOURIER_ROWS - 1) / 2];
    float column[SVI_FOURIER_ROWS];
    int64_t count = 0, same = 0;
    memset(distance, 0, sizeof distance);
    for (int j = 0; j < b->d; j++) {
        double *sum = distance;
        for (int i = 0; i < b->kept_rows; sum += i++) {
            column[i] = block_kept(b, i)[j];
            for (int k = 0; k < i; k++)
                sum[k] += (double)(column[i] - column[k]) * (double)(column[i] - column[k]);
        }
        count = sum - distance;
    }
    for (int64_t i = 0; i < count; i++) {
        /* Pairs of equal rows do not show the scale; a median over them could be 0. */
        same += !(distance[i] > 1e-6);
        distance[i] = sqrt(distance[i]);
    }
    return same < count ? svi_select_rank(distance, count, same + (count - same) / 2) : 1;
}

/* ---- features and classes that are added */

svs_code svi_block_grow(struct svi_block *b, int d, svs_error *err) {
    if (d <= b->d)
        return SVS_OK;
    if (b->o.kind == SVI_BLOCK_PRODUCTS && d > SVI_PRODUCTS_MAX)
        return svi_fail(err, SVS_LIMIT, "products are made of at most %d features, not of %d",
                        SVI_PRODUCTS_MAX, d);
    if (block_reserve(b, d, b->row_capacity, err) != SVS_OK)
        return SVS_NO_MEMORY;
    /* block_draw reads the new d, and moves what was drawn for the old one. */
    const int from = b->d;
    b->d = d;
    b->length = block_length(b->o.kind, d);
    if (b->o.kind == SVI_BLOCK_FOURIER && b->spread > 0)
        block_draw(b, from);
    return SVS_OK;
}

svs_code svi_block_reserve_classes(struct svi_block *b, int classes, svs_error *err) {
    return block_reserve(b, b->d, block_models(&b->o, classes), err);
}

/* From one model to one a class: w for the second class, -w for the first. AdaGrad sums are of squares and
 * are copied. Scores of the row at hand are split likewise, since a learn of it follows. */
static void block_split(struct svi_block *b) {
    for (int h = 0; h < b->o.head_count; h++) {
        float *score = block_head_scores(b, h);
        float *first = block_row(b, h, 0), *second = block_row(b, h, 1);
        memcpy(second, first, (size_t)b->length * sizeof *first);
        for (int i = 0; i < b->length; i++)
            first[i] =
                0 - first[i]; /* never -0: features added later begin with +0, and the bits must match */
        if (b->o.head[h].step == SVI_STEP_ADAGRAD)
            memcpy(block_sum(b, h, 1), block_sum(b, h, 0), (size_t)b->length * sizeof *first);
        score[1] = score[0];
        score[0] = -score[0];
    }
}

void svi_block_add_classes(struct svi_block *b, int classes) {
    if (classes <= b->classes)
        return;
    if (b->classes <= 2 && classes > 2)
        block_split(b);
    for (int h = 0; h < b->o.head_count; h++) /* a new class has scored 0 */
        for (int r = b->classes > 2 ? b->classes : 2; r < classes; r++)
            block_head_scores(b, h)[r] = 0;
    b->classes = classes;
}

static void block_forget_weights(struct svi_block *b, int at) {
    for (int h = 0; h < b->o.head_count; h++)
        for (int r = 0; r < svi_block_rows(b); r++) {
            block_row(b, h, r)[at] = 0;
            if (b->o.head[h].step == SVI_STEP_ADAGRAD)
                block_sum(b, h, r)[at] = 0;
        }
    if (b->o.kind == SVI_BLOCK_PRODUCTS) {
        /* Product of two independent standardised features: mean 0, variance 1. */
        b->mean[at] = 0;
        b->variance[at] = 1;
    }
}

void svi_block_renew(struct svi_block *b, int j) {
    if (b->o.kind == SVI_BLOCK_RAW)
        block_forget_weights(b, PAD + j);
    if (b->o.kind != SVI_BLOCK_PRODUCTS)
        return;
    /* Products of j: its own run z_j (1, z_0, ..., z_j), which begins at j (j + 3) / 2, then z_k z_j in
     * the run of every later k. */
    for (int i = 0; i < j + 2; i++)
        block_forget_weights(b, PAD + j * (j + 3) / 2 + i);
    for (int k = j + 1; k < b->d; k++)
        block_forget_weights(b, PAD + k * (k + 3) / 2 + 1 + j);
}

/* Makes f from z. While the Fourier features are not drawn f stays (1, 0, ...), and the row is put where
 * the next collected one goes; learning it counts it. */
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
        svi_array_copy(block_kept(b, b->kept_rows), z, (size_t)padded * sizeof *f);
    }
}

void svi_block_expand(struct svi_block *b, const float *z) {
    block_features(b, z);
}

void svi_block_score(struct svi_block *b, const float *z, double *scores) {
    const int rows = svi_block_rows(b);
    block_features(b, z);
    for (int h = 0; h < b->o.head_count; h++) {
        float *s = block_head_scores(b, h);
        b->kernels->dots(b->f, block_row(b, h, 0), (size_t)b->stride, rows, b->length, s);
        /* A regression's weights are in units of `scale` around the mean target. */
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
    /* z_j = (x_j - mean_j) inverse_j, so w_j = scale weight_j inverse_j, and the means go to the constant. */
    const float *weight = block_row(b, head, row);
    const double scale = b->o.task == SVS_REGRESS ? b->scale : 1;
    double bias = scale * (double)weight[0] + (b->o.task == SVS_REGRESS ? b->target.mean : 0);
    for (int j = 0; j < b->d; j++) {
        w[j] = scale * (double)weight[PAD + j] * s->moments.inverse[j];
        bias -= w[j] * s->moments.mean[j];
    }
    return bias;
}

/* ---- learning */

/* |f|^2 >= 1, made when the first head asks for it and shared by the others; *known 0: not made yet. */
static double block_norm(const struct svi_block *b, double *known) {
    float sum;
    if (*known > 0)
        return *known;
    b->kernels->dots(b->f, b->f, 0, 1, b->length, &sum);
    return *known = (double)sum;
}

/* PA-I (block.h). `norm`: see block_norm. */
static void block_learn_passive_aggressive(struct svi_block *b, int h, int label, double weight,
                                           double *norm) {
    const int n = b->length, rows = svi_block_rows(b);
    const float *s = block_head_scores(b, h), *f = b->f;
    /* Up to two classes: y s with y = +-1. More: the margin between the right class and the strongest
     * wrong one. */
    int other = label == 0; /* the strongest wrong class; starts at any wrong one */
    for (int r = 0; r < rows; r++)
        other = r != label && s[r] > s[other] ? r : other;
    const double y = label == 1 ? 1 : -1;
    const double loss = 1 - (rows == 1 ? y * (double)s[0] : (double)s[label] - (double)s[other]);
    if (!(loss > 0))
        return;
    /* Two models move by +-step, so the margin changes by 2 step |f|^2. */
    const double squares = block_norm(b, norm) * (rows == 1 ? 1 : 2);
    const double t = loss / squares; /* the step after which the loss is 0 */
    /* Not beyond t: a large weight must not overshoot its own aim. */
    const double step = fmin(t, weight * fmin((double)b->o.head[h].rate, t));
    if (rows == 1) {
        b->kernels->add(block_row(b, h, 0), f, (float)(y * step), n);
    } else {
        b->kernels->add(block_row(b, h, label), f, (float)step, n);
        b->kernels->add(block_row(b, h, other), f, (float)-step, n);
    }
}

/* AdaGrad on the logistic loss of each model, one class against the rest; `slope` is d loss / d s. */
static void block_learn_adagrad(struct svi_block *b, int h, int label, double weight) {
    const int n = b->length, rows = svi_block_rows(b), padded = svi_round_up(rows, SVI_FLOATS_PAD);
    const float *s = block_head_scores(b, h);
    const float *p = b->chance, c = (float)fmin(weight, WEIGHT_MAX);
    const float keep = b->o.head[h].keep > 0 ? b->o.head[h].keep : 1;
    b->kernels->logistic(s, padded, b->chance);
    for (int r = 0; r < rows; r++) {
        const float slope = p[r] - (label == (rows == 1 ? 1 : r) ? 1.0F : 0.0F);
        if (fabsf(slope) < CERTAIN)
            continue;
        b->kernels->adagrad(block_row(b, h, r), block_sum(b, h, r), b->f, c * slope, b->o.head[h].rate, keep,
                            n);
    }
}

/* What a row updates besides weights: moments of products, or the rows collected for m. True: Fourier
 * features are not drawn, so there is nothing to learn on yet. */
static bool block_learn_features(struct svi_block *b) {
    if (b->o.kind == SVI_BLOCK_PRODUCTS) {
        const int pad = SVI_FLOATS_PAD;
        /* Plain means up to 2^20 rows, then a constant share. */
        b->learned += b->learned < BLOCK_FADE;
        b->kernels->average(b->made, (float)(1 / (double)b->learned), b->length - pad, b->mean + pad,
                            b->variance + pad);
    }
    if (b->o.kind != SVI_BLOCK_FOURIER || b->spread > 0)
        return false;
    if (++b->kept_rows == SVI_FOURIER_ROWS) {
        /* The collected rows are used once; from the next row on the features exist. */
        b->spread = block_median_distance(b);
        block_draw(b, 0);
        b->kept_rows = 0;
    }
    return true;
}

void svi_block_learn(struct svi_block *b, int label, double weight) {
    double norm = 0;
    /* Also without features: the class counts, and the row is collected. */
    svi_block_add_classes(b, label + 1);
    if (block_learn_features(b) || !(weight > 0))
        return;
    for (int h = 0; h < b->o.head_count; h++)
        if (b->o.head[h].step == SVI_STEP_PA)
            block_learn_passive_aggressive(b, h, label, weight, &norm);
        else
            block_learn_adagrad(b, h, label, weight);
}

/* Adds a target; the scale follows its deviation by powers of two. Dividing all weights and the pending
 * score by such a factor loses no bit, so predictions do not change. */
static void block_rescale(struct svi_block *b, double target) {
    svi_moments_add(&b->target, target);
    const double deviation = sqrt(b->target.squares / b->target.n);
    /* Hysteresis of a factor of 8: a deviation that wavers around a power of two does not rescale each
     * time. */
    if (!(deviation > 1e-100) || (deviation < 2 * b->scale && deviation >= b->scale / 4))
        return;
    const double scale = exp2(floor(log2(deviation)));
    /* Bounded for the first change, from 1, when all weights are 0. */
    const float change = (float)fmin(b->scale / scale, 1e30);
    b->scale = scale;
    for (int h = 0; h < b->o.head_count; h++) {
        float *w = block_row(b, h, 0);
        block_head_scores(b, h)[0] *= change;
        for (int i = 0; i < b->length; i++)
            w[i] *= change;
    }
}

void svi_block_learn_target(struct svi_block *b, double target, double weight) {
    double norm = 0;
    block_rescale(b, target);
    if (block_learn_features(b) || !(weight > 0))
        return;
    for (int h = 0; h < b->o.head_count; h++) {
        const double score = (double)block_head_scores(b, h)[0];
        /* In the new scale and around the new mean; the score was rescaled with the weights. */
        const double error = (target - b->target.mean) / b->scale - score;
        /* mu c, at most 1: a longer step overshoots the target. */
        const double mu = fmin((double)b->o.head[h].rate * weight, fmax(1, (double)b->o.head[h].rate));
        b->kernels->add(block_row(b, h, 0), b->f,
                        (float)(mu * fmax(-ERROR_MAX, fmin(ERROR_MAX, error)) / block_norm(b, &norm)),
                        b->length);
    }
}

/* ---- the archive */

/* Length of f without the padding at its end; what is saved does not depend on the vector length. */
static int block_archive_length(const struct svi_block *b) {
    return SVI_FLOATS_PAD + (b->o.kind == SVI_BLOCK_RAW        ? b->d
                             : b->o.kind == SVI_BLOCK_PRODUCTS ? b->d * (b->d + 3) / 2
                                                               : SVI_FOURIER_COUNT);
}

/* All values within [low, high], and 0 in the rest of the leading vector, where f is 0 and weights never
 * move. */
static bool block_vector_sound(const struct svi_block *b, const float *v, float low, float high) {
    bool within = true;
    for (int i = 0; i < block_archive_length(b); i++)
        within = within && v[i] >= low && v[i] <= high && (i == 0 || i >= SVI_FLOATS_PAD || v[i] == 0);
    return within;
}

/* Whether loaded weights, sums, moments and rows are ones that learning can produce. */
static bool block_heads_sound(const struct svi_block *b) {
    bool sound = true;
    for (int h = 0; h < b->o.head_count; h++)
        for (int r = 0; r < svi_block_rows(b); r++) {
            sound = sound && block_vector_sound(b, block_row(b, h, r), -MAX_WEIGHT, MAX_WEIGHT);
            if (b->o.head[h].step == SVI_STEP_ADAGRAD)
                sound = sound && block_vector_sound(b, block_sum(b, h, r), 0, MAX_SUM);
        }
    if (b->o.kind == SVI_BLOCK_PRODUCTS)
        sound =
            sound && block_vector_sound(b, b->mean, -200, 200) && block_vector_sound(b, b->variance, 0, 1e5F);
    /* The standardiser clips at +-SVI_FLOATS_CLIP. */
    for (int i = 0; i < b->kept_rows; i++)
        for (int j = 0; j < b->d; j++)
            sound = sound && fabsf(block_kept(b, i)[j]) <= SVI_FLOATS_CLIP;
    return sound;
}

static void block_archive_arrays(struct svi_archive *a, struct svi_block *b) {
    int32_t dims[BLOCK_DIMS], used[BLOCK_DIMS];
    block_dims(&b->o, b->capacity, b->row_capacity, dims);
    block_dims(&b->o, b->d, svi_block_rows(b), used);
    /* Saved is the part in use, without padding: neither capacity nor vector length shows in the bytes. */
    used[BLOCK_LENGTH] = block_archive_length(b);
    used[BLOCK_MOMENTS] = b->o.kind == SVI_BLOCK_PRODUCTS ? block_archive_length(b) : 0;
    used[BLOCK_KEPT] = b->kept_rows;
    used[BLOCK_PADDED] = b->d;
    svi_arrays_archive(a, &block_arrays, b, dims, used);
    if (svi_archive_loading(a) && svi_archive_ok(a))
        svi_archive_check(a, block_heads_sound(b), "a weight, a sum or a row of a block is out of range");
}

static void block_archive_phi(struct svi_archive *a, struct svi_block *b) {
    if (b->o.kind == SVI_BLOCK_PRODUCTS)
        svi_archive_int64(a, "block learned", &b->learned, 0, BLOCK_FADE);
    if (b->o.kind != SVI_BLOCK_FOURIER)
        return;
    svi_archive_double(a, "block spread", &b->spread);
    svi_archive_int(a, "block kept", &b->kept_rows, 0, SVI_FOURIER_ROWS - 1);
    if (svi_archive_check(a, b->spread == 0 || (b->spread >= 1e-4 && b->spread <= 1e6 && b->kept_rows == 0),
                          "the spread of a block is out of range") &&
        svi_archive_loading(a) && b->spread > 0)
        block_draw(b, 0);
}

static void block_archive_targets(struct svi_archive *a, struct svi_block *b) {
    int exponent;
    /* Moments of targets of at most 1e100 in size; the scale must be a power of two, or rescaling would
     * lose bits. */
    svi_archive_double(a, "block target count", &b->target.n);
    svi_archive_double(a, "block target mean", &b->target.mean);
    svi_archive_double(a, "block target squares", &b->target.squares);
    svi_archive_double(a, "block target scale", &b->scale);
    svi_archive_check(a,
                      b->target.n >= 0 && b->target.n <= 0x1p60 && fabs(b->target.mean) <= 1e101 &&
                          b->target.squares >= 0 && b->target.squares <= 1e220 && b->scale > 1e-102 &&
                          b->scale <= 1e110 && frexp(b->scale, &exponent) == 0.5,
                      "the targets' moments of a block are out of range");
}

/* Loading: makes the capacity that the bytes announce, but only if as many bytes are left, so that a short
 * damaged file cannot make us allocate much. */
static bool block_archive_size(struct svi_archive *a, struct svi_block *b, int d, int classes) {
    const int rows = b->o.task == SVS_REGRESS || classes <= 2 ? 1 : classes;
    /* A lower bound of what is saved: without the leading vector, and at most one vector of padding. */
    const int64_t floats = (int64_t)block_length(b->o.kind, d) - 2 * SVI_FLOATS_PAD;
    const int64_t bytes = floats * rows * b->o.head_count * (int64_t)sizeof(float);
    if (!svi_archive_check(a, svi_archive_left(a) >= bytes && svi_archive_left(a) >= rows,
                           "a block announces more than its bytes hold"))
        return false;
    svi_block_empty(b);
    if (block_reserve(b, d, rows, a->err) != SVS_OK)
        return false;
    b->d = d;
    b->classes = classes;
    b->length = block_length(b->o.kind, d);
    return true;
}

void svi_block_archive(struct svi_archive *a, struct svi_block *b, int features_max, int classes_max) {
    int d = b->d, classes = b->classes;
    if (b->o.kind == SVI_BLOCK_PRODUCTS && features_max > SVI_PRODUCTS_MAX)
        features_max = SVI_PRODUCTS_MAX;
    svi_archive_int(a, "block features", &d, 0, features_max);
    svi_archive_int(a, "block classes", &classes, 0, classes_max);
    if (!svi_archive_ok(a) || (svi_archive_loading(a) && !block_archive_size(a, b, d, classes)))
        return;
    /* Before the arrays: their used lengths depend on the counts read here. */
    block_archive_phi(a, b);
    if (b->o.task == SVS_REGRESS)
        block_archive_targets(a, b);
    block_archive_arrays(a, b);
}
