/* A block: its arrays, its features, the steps of its heads, its state.
 *
 * f begins with a whole vector (1, 0, ...) and the features follow in an order in which new ones come last:
 * of products, feature j brings z_j (1, z_0, ..., z_j). So nothing moves when d grows, and sums by lanes keep
 * their bits. Padding has f = 0, so its weights stay 0.
 *
 * The state is what was learned, not what the last score left, nor what seed and spread give again. Loaded
 * numbers are held to what rows can lead to (block.h), so that no sum of theirs overflows.
 *
 * Read in order: arrays and capacity, the draws of Fourier features, classes, features and scores, learning,
 * the archive. */
#include "bank/block.h"

#include <math.h>
#include <string.h>

#include "base/arrays.h"
#include "base/fail.h"
#include "base/random.h"
#include "linalg/kernels.h"

#define PAD        SVI_FLOATS_PAD
#define BLOCK_FADE (1 << 20) /* rows after which the products' moments fade */
#define WEIGHT_MAX 1e6       /* of a sample */
#define ERROR_MAX  1e6       /* of a target, in its scale */
#define CERTAIN    1e-3F     /* a chance that is this near to its aim is left there */
#define MAX_WEIGHT 1e20F     /* of a model, loaded */
#define MAX_SUM    1e25F
#define PI         3.14159265358979323846

/* What its arrays go by. Moments are of products, cosines, rows kept and features of Fourier features: else
 * these are 0. */
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

/* Length of f for d features, with the 1 and padding. */
static int block_length(enum svi_block_kind kind, int d) {
    if (kind == SVI_BLOCK_FOURIER)
        return PAD + SVI_FOURIER_COUNT;
    return PAD + svi_round_up(kind == SVI_BLOCK_PRODUCTS ? d * (d + 3) / 2 : d, SVI_FLOATS_PAD);
}

/* The weights of a head's model. */
static float *block_row(const struct svi_block *b, int head, int row) {
    return b->weights + (size_t)(head * b->row_capacity + row) * (size_t)b->stride;
}

/* Heads before this one that are AdaGrad. */
static int block_adagrads(const struct svi_block_options *o, int head) {
    int count = 0;
    for (int h = 0; h < head; h++)
        count += o->head[h].step == SVI_STEP_ADAGRAD;
    return count;
}

/* Its sums, where it is one of them. */
static float *block_sum(const struct svi_block *b, int head, int row) {
    return b->sums + (size_t)(block_adagrads(&b->o, head) * b->row_capacity + row) * (size_t)b->stride;
}

/* Row i of those kept until the Fourier features can be drawn. */
static float *block_kept(const struct svi_block *b, int i) {
    return b->kept + (size_t)i * (size_t)svi_round_up(b->capacity, SVI_FLOATS_PAD);
}

/* Where a head's scores of the last row are. */
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

/* Capacity for d features and that number of models a head, with all that there is. Of one that is unused
 * nothing is copied: most of its pages have never been touched. */
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
    block_dims(&b->o, b->capacity, b->row_capacity, dims);
    memset(b->f, 0, svi_arrays_bytes(&block_arrays, dims)); /* the first of them */
    b->f[0] = 1;
}

/* ---- the draws of Fourier features */

/* In (0, 1). */
static double block_column_uniform(struct svi_random *r) {
    return ((double)(svi_random_next(r) >> 11) + 0.5) * 0x1p-53;
}

/* The generator of a column: seed and number through one step each, so that neighbours share nothing. */
static struct svi_random block_column_random(uint64_t seed, int column) {
    struct svi_random r = {seed};
    r.state = svi_random_next(&r) + (uint64_t)column;
    r.state = svi_random_next(&r);
    return r;
}

static void block_column_draw(struct svi_block *b, int j) {
    const double turns = 2 / b->spread / (2 * PI);
    struct svi_random random = block_column_random(b->o.seed, j);
    for (int i = 0; i < SVI_FOURIER_COUNT; i++) {
        const double radius = sqrt(-2 * log(block_column_uniform(&random)));
        const double normal = radius * cos(2 * PI * block_column_uniform(&random));
        const size_t block = (size_t)(i / SVI_COSINE_BLOCK) * (size_t)b->d + (size_t)j;
        b->waves[block * SVI_COSINE_BLOCK + (size_t)(i % SVI_COSINE_BLOCK)] = (float)(turns * normal);
    }
}

/* The frequencies of the cosines for the d of now and the spread found; those of columns below `from` are
 * there, made when d was `from`. */
static void block_draw(struct svi_block *b, int from) {
    float *waves = b->waves;
    struct svi_random random = block_column_random(b->o.seed, -1);
    const size_t old = (size_t)from * SVI_COSINE_BLOCK, new = (size_t)b->d *SVI_COSINE_BLOCK;
    for (size_t k = SVI_FOURIER_COUNT / SVI_COSINE_BLOCK; k-- > 0;)
        svi_array_copy(waves + k * new, waves + k * old, old * sizeof *waves);
    for (int i = 0; i < SVI_FOURIER_COUNT; i++)
        b->shift[i] = (float)block_column_uniform(&random);
    for (int j = from; j < b->d; j++)
        block_column_draw(b, j);
}

/* The median distance among the rows kept that are not the same; 1 where all are. Each pair's sum is over the
 * features in turn, those of one row in step with each other: `column` has a feature of all rows side by
 * side. */
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

/* The one model speaks for the second class, its mirror image for the first. */
static void block_split(struct svi_block *b) {
    for (int h = 0; h < b->o.head_count; h++) {
        float *score = block_head_scores(b, h);
        float *first = block_row(b, h, 0), *second = block_row(b, h, 1);
        memcpy(second, first, (size_t)b->length * sizeof *first);
        for (int i = 0; i < b->length; i++)
            first[i] = 0 - first[i]; /* 0 stays +0, which is what features that come later begin with */
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
    for (int h = 0; h < b->o.head_count; h++) /* a class that is new has scored 0 */
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
        b->mean[at] = 0;
        b->variance[at] = 1;
    }
}

void svi_block_renew(struct svi_block *b, int j) {
    if (b->o.kind == SVI_BLOCK_RAW)
        block_forget_weights(b, PAD + j);
    if (b->o.kind != SVI_BLOCK_PRODUCTS)
        return;
    for (int i = 0; i < j + 2; i++)
        block_forget_weights(b, PAD + j * (j + 3) / 2 + i);
    for (int k = j + 1; k < b->d; k++)
        block_forget_weights(b, PAD + k * (k + 3) / 2 + 1 + j);
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

/* |f|^2, 1 at least, which is made when the first head asks for it; 0: it is not known yet. */
static double block_norm(const struct svi_block *b, double *known) {
    float sum;
    if (*known > 0)
        return *known;
    b->kernels->dots(b->f, b->f, 0, 1, b->length, &sum);
    return *known = (double)sum;
}

static void block_learn_passive_aggressive(struct svi_block *b, int h, int label, double weight,
                                           double *norm) {
    const int n = b->length, rows = svi_block_rows(b);
    const float *s = block_head_scores(b, h), *f = b->f;
    int other = label == 0; /* the strongest wrong class */
    for (int r = 0; r < rows; r++)
        other = r != label && s[r] > s[other] ? r : other;
    const double y = label == 1 ? 1 : -1;
    const double loss = 1 - (rows == 1 ? y * (double)s[0] : (double)s[label] - (double)s[other]);
    if (!(loss > 0))
        return;
    const double squares = block_norm(b, norm) * (rows == 1 ? 1 : 2);
    const double t = loss / squares; /* the step after which the loss is none */
    const double step = fmin(t, weight * fmin((double)b->o.head[h].rate, t));
    if (rows == 1) {
        b->kernels->add(block_row(b, h, 0), f, (float)(y * step), n);
    } else {
        b->kernels->add(block_row(b, h, label), f, (float)step, n);
        b->kernels->add(block_row(b, h, other), f, (float)-step, n);
    }
}

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

/* What a row leaves besides weights. True: there are no features yet to learn on. */
static bool block_learn_features(struct svi_block *b) {
    if (b->o.kind == SVI_BLOCK_PRODUCTS) {
        const int pad = SVI_FLOATS_PAD;
        b->learned += b->learned < BLOCK_FADE;
        b->kernels->average(b->made, (float)(1 / (double)b->learned), b->length - pad, b->mean + pad,
                            b->variance + pad);
    }
    if (b->o.kind != SVI_BLOCK_FOURIER || b->spread > 0)
        return false;
    if (++b->kept_rows == SVI_FOURIER_ROWS) {
        b->spread = block_median_distance(b);
        block_draw(b, 0);
        b->kept_rows = 0;
    }
    return true;
}

void svi_block_learn(struct svi_block *b, int label, double weight) {
    double norm = 0;
    svi_block_add_classes(b, label + 1);
    if (block_learn_features(b) || !(weight > 0))
        return;
    for (int h = 0; h < b->o.head_count; h++)
        if (b->o.head[h].step == SVI_STEP_PA)
            block_learn_passive_aggressive(b, h, label, weight, &norm);
        else
            block_learn_adagrad(b, h, label, weight);
}

/* One more target; the scale follows its deviation by powers of two, which change no bit of what the weights
 * say. */
static void block_rescale(struct svi_block *b, double target) {
    svi_moments_add(&b->target, target);
    const double deviation = sqrt(b->target.squares / b->target.n);
    if (!(deviation > 1e-100) || (deviation < 2 * b->scale && deviation >= b->scale / 4))
        return;
    const double scale = exp2(floor(log2(deviation)));
    const float change = (float)fmin(b->scale / scale, 1e30); /* from 1 at first, when weights are 0 */
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
        const double error = (target - b->target.mean) / b->scale - score;
        const double mu = fmin((double)b->o.head[h].rate * weight, fmax(1, (double)b->o.head[h].rate));
        b->kernels->add(block_row(b, h, 0), b->f,
                        (float)(mu * fmax(-ERROR_MAX, fmin(ERROR_MAX, error)) / block_norm(b, &norm)),
                        b->length);
    }
}

/* ---- the archive */

/* Values of f without padding. */
static int block_archive_length(const struct svi_block *b) {
    return SVI_FLOATS_PAD + (b->o.kind == SVI_BLOCK_RAW        ? b->d
                             : b->o.kind == SVI_BLOCK_PRODUCTS ? b->d * (b->d + 3) / 2
                                                               : SVI_FOURIER_COUNT);
}

static bool block_vector_sound(const struct svi_block *b, const float *v, float least, float most) {
    bool within = true;
    for (int i = 0; i < block_archive_length(b); i++)
        within = within && v[i] >= least && v[i] <= most && (i == 0 || i >= SVI_FLOATS_PAD || v[i] == 0);
    return within;
}

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
    for (int i = 0; i < b->kept_rows; i++)
        for (int j = 0; j < b->d; j++)
            sound = sound && fabsf(block_kept(b, i)[j]) <= SVI_FLOATS_CLIP;
    return sound;
}

static void block_archive_arrays(struct svi_archive *a, struct svi_block *b) {
    int32_t dims[BLOCK_DIMS], used[BLOCK_DIMS];
    block_dims(&b->o, b->capacity, b->row_capacity, dims);
    block_dims(&b->o, b->d, svi_block_rows(b), used);
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

/* Loading: room for what is announced, unless its bytes are not there. */
static bool block_archive_size(struct svi_archive *a, struct svi_block *b, int d, int classes) {
    const int rows = b->o.task == SVS_REGRESS || classes <= 2 ? 1 : classes;
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
    block_archive_phi(a, b);
    if (b->o.task == SVS_REGRESS)
        block_archive_targets(a, b);
    block_archive_arrays(a, b);
}
