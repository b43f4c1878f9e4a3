/* A block's memory, growth and scores.
 *
 * Everything lies in one piece of memory, so that growth either happens or leaves the block as it was:
 * `layout_of` says where, `svi_block_reserve` copies what there is. f begins with a whole vector (1, 0, ...)
 * and the features follow in an order in which new ones come last: of products, feature j brings z_j (1, z_0,
 * ..., z_j). So nothing moves when d grows, and sums by lanes keep their bits. Padding has f = 0, so its
 * weights stay 0. */
#include <math.h>
#include <string.h>

#include "bank/block_internal.h"
#include "base/alloc.h"
#include "base/fail.h"

#define PAD SVI_FLOATS_PAD

int svi_block_length(enum svi_block_kind kind, int d) {
    if (kind == SVI_BLOCK_FOURIER)
        return PAD + SVI_FOURIER_COUNT;
    return PAD + svi_block_padded(kind == SVI_BLOCK_PRODUCTS ? d * (d + 3) / 2 : d);
}

static size_t layout_take(struct svi_block_layout *l, size_t floats) {
    const size_t at = l->size;
    l->size += (floats + PAD - 1) / PAD * PAD;
    return at;
}

static struct svi_block_layout layout_of(const struct svi_block_options *o, int d, int rows) {
    struct svi_block_layout l = {.d = d, .rows = rows, .length = svi_block_length(o->kind, d)};
    const size_t length = (size_t)l.length, models = (size_t)rows, heads = (size_t)o->head_count;
    l.features = layout_take(&l, length);
    if (o->kind == SVI_BLOCK_PRODUCTS) {
        l.products = layout_take(&l, length + PAD);
        l.scratch = layout_take(&l, (size_t)svi_block_padded(d) + 2 * PAD);
        l.mean = layout_take(&l, length);
        l.variance = layout_take(&l, length);
    }
    if (o->kind == SVI_BLOCK_FOURIER) {
        l.waves = layout_take(&l, (size_t)d * SVI_FOURIER_COUNT);
        l.shift = layout_take(&l, SVI_FOURIER_COUNT);
        l.kept = layout_take(&l, (size_t)svi_block_padded(d) * SVI_FOURIER_ROWS);
    }
    l.scores = layout_take(&l, heads * (size_t)svi_block_padded(rows));
    l.chance = layout_take(&l, (size_t)svi_block_padded(rows));
    for (size_t h = 0; h < heads; h++) {
        l.weights[h] = layout_take(&l, models * length);
        l.sums[h] = o->head[h].step == SVI_STEP_ADAGRAD ? layout_take(&l, models * length) : 0;
    }
    return l;
}

static void floats_copy(struct svi_block *to, size_t to_at, const struct svi_block *from, size_t from_at,
                        int n) {
    memcpy(to->memory + to_at, from->memory + from_at, (size_t)n * sizeof(float));
}

static void block_move_heads(struct svi_block *to, const struct svi_block *from) {
    const int rows = svi_block_rows(from);
    for (int h = 0; h < from->o.head_count; h++) {
        memcpy(svi_block_scores(to, h), svi_block_scores(from, h), (size_t)rows * sizeof(float));
        for (int r = 0; r < rows; r++) {
            const size_t new = (size_t)r *(size_t)to->at.length, old = (size_t)r *(size_t)from->at.length;
            floats_copy(to, to->at.weights[h] + new, from, from->at.weights[h] + old, from->length);
            if (from->o.head[h].step == SVI_STEP_ADAGRAD)
                floats_copy(to, to->at.sums[h] + new, from, from->at.sums[h] + old, from->length);
        }
    }
}

static void block_move(struct svi_block *to, const struct svi_block *from) {
    floats_copy(to, to->at.features, from, from->at.features, from->length);
    if (from->o.kind == SVI_BLOCK_PRODUCTS) {
        floats_copy(to, to->at.products, from, from->at.products, from->length);
        floats_copy(to, to->at.mean, from, from->at.mean, from->length);
        floats_copy(to, to->at.variance, from, from->at.variance, from->length);
    }
    if (from->o.kind == SVI_BLOCK_FOURIER) {
        for (int i = 0; i < SVI_FOURIER_ROWS; i++)
            memcpy(svi_block_kept(to, i), svi_block_kept(from, i), (size_t)from->d * sizeof(float));
        floats_copy(to, to->at.shift, from, from->at.shift, SVI_FOURIER_COUNT);
        floats_copy(to, to->at.waves, from, from->at.waves, from->d * SVI_FOURIER_COUNT);
    }
    block_move_heads(to, from);
}

svs_code svi_block_reserve(struct svi_block *b, int d, int rows, svs_error *err) {
    struct svi_block more = *b;
    if (b->memory && d <= b->at.d && rows <= b->at.rows)
        return SVS_OK;
    d = d > b->at.d ? d + d / 4 : b->at.d;
    rows = rows > b->at.rows ? (rows > 1 ? rows + rows / 4 : 1) : b->at.rows;
    if (b->o.kind == SVI_BLOCK_PRODUCTS && d > SVI_PRODUCTS_MAX)
        d = SVI_PRODUCTS_MAX;
    more.at = layout_of(&b->o, d, rows);
    more.memory = svi_alloc_array(more.at.size, sizeof *more.memory);
    if (!more.memory)
        return svi_fail_memory(err, "a block of first-order members");
    more.memory[more.at.features] = 1;
    if (b->memory)
        block_move(&more, b);
    svi_free(b->memory);
    *b = more;
    return SVS_OK;
}

static bool head_fits(const struct svi_block_options *o, const struct svi_head *h) {
    const bool part = h->features != 0;
    if (!(h->keep >= 0 && h->keep <= 1))
        return false;
    if (!(h->rate > 0 && h->rate <= (h->step == SVI_STEP_NLMS ? 1 : 1e6F)) ||
        (h->step == SVI_STEP_NLMS) != (o->task == SVS_REGRESS))
        return false;
    return !part || (o->kind == SVI_BLOCK_FOURIER && h->features > 0 && h->features <= SVI_FOURIER_COUNT &&
                     h->features % PAD == 0);
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
                            "head %d of the block: its step does not fit the task, its rate is not in (0, "
                            "1e6], of NLMS in (0, 1], "
                            "or it takes a part of features that are not Fourier's",
                            h);
    b->length = svi_block_length(o->kind, 0);
    return svi_block_reserve(b, 0, 1, err);
}

void svi_block_clear(struct svi_block *b) {
    svi_free(b->memory);
    *b = (struct svi_block){0};
}

void svi_block_empty(struct svi_block *b) {
    b->classes = b->kept = 0;
    b->learned = 0;
    b->spread = 0;
    b->target = (struct svi_moments){0};
    b->scale = 1;
    memset(b->memory, 0, b->at.size * sizeof *b->memory);
    b->memory[b->at.features] = 1;
}

svs_code svi_block_grow(struct svi_block *b, int d, svs_error *err) {
    if (d <= b->d)
        return SVS_OK;
    if (b->o.kind == SVI_BLOCK_PRODUCTS && d > SVI_PRODUCTS_MAX)
        return svi_fail(err, SVS_LIMIT, "products are made of at most %d features, not of %d",
                        SVI_PRODUCTS_MAX, d);
    if (svi_block_reserve(b, d, b->at.rows, err) != SVS_OK)
        return SVS_NO_MEMORY;
    const int from = b->d;
    b->d = d;
    b->length = svi_block_length(b->o.kind, d);
    if (b->o.kind == SVI_BLOCK_FOURIER && b->spread > 0)
        svi_block_draw(b, from);
    return SVS_OK;
}

svs_code svi_block_reserve_classes(struct svi_block *b, int classes, svs_error *err) {
    return svi_block_reserve(b, b->d, classes <= 2 || b->o.task == SVS_REGRESS ? 1 : classes, err);
}

/* The one model speaks for the second class, its mirror image for the first. */
static void block_split(struct svi_block *b) {
    for (int h = 0; h < b->o.head_count; h++) {
        float *score = svi_block_scores(b, h);
        float *first = svi_block_row(b, b->at.weights[h], 0), *second = svi_block_row(b, b->at.weights[h], 1);
        memcpy(second, first, (size_t)b->length * sizeof *first);
        for (int i = 0; i < b->length; i++)
            first[i] = 0 - first[i]; /* 0 stays +0, which is what features that come later begin with */
        if (b->o.head[h].step == SVI_STEP_ADAGRAD)
            memcpy(svi_block_row(b, b->at.sums[h], 1), svi_block_row(b, b->at.sums[h], 0),
                   (size_t)b->length * sizeof *first);
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
            svi_block_row(b, b->at.weights[h], r)[at] = 0;
            if (b->o.head[h].step == SVI_STEP_ADAGRAD)
                svi_block_row(b, b->at.sums[h], r)[at] = 0;
        }
    if (b->o.kind == SVI_BLOCK_PRODUCTS) {
        svi_block_at(b, b->at.mean)[at] = 0;
        svi_block_at(b, b->at.variance)[at] = 1;
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
    float *f = svi_block_at(b, b->at.features) + PAD;
    const int n = b->length - PAD, padded = svi_block_padded(b->d);
    if (b->o.kind == SVI_BLOCK_RAW) {
        memcpy(f, z, (size_t)padded * sizeof *f);
    } else if (b->o.kind == SVI_BLOCK_PRODUCTS) {
        float *p = svi_block_at(b, b->at.products);
        b->kernels->products(z, b->d, n, p, svi_block_at(b, b->at.scratch));
        b->kernels->normalise(p, svi_block_at(b, b->at.mean) + PAD, svi_block_at(b, b->at.variance) + PAD,
                              SVI_PRODUCTS_CLIP, n, f);
    } else if (b->spread > 0) {
        b->kernels->cosines(svi_block_at(b, b->at.waves), svi_block_at(b, b->at.shift), z, b->d, n, f);
    } else {
        memcpy(svi_block_kept(b, b->kept), z, (size_t)padded * sizeof *f);
    }
}

void svi_block_score(struct svi_block *b, const float *z, double *scores) {
    const int rows = svi_block_rows(b);
    block_features(b, z);
    for (int h = 0; h < b->o.head_count; h++) {
        float *s = svi_block_scores(b, h);
        b->kernels->dots(svi_block_at(b, b->at.features), svi_block_row(b, b->at.weights[h], 0),
                         (size_t)b->at.length, rows, svi_block_reach(b, h), s);
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
    return svi_block_at(b, b->at.features) + PAD;
}

double svi_block_weights(const struct svi_block *b, int head, int row, const struct svi_standardiser *s,
                         double *w) {
    const float *weight = svi_block_row(b, b->at.weights[head], row);
    const double scale = b->o.task == SVS_REGRESS ? b->scale : 1;
    double bias = scale * (double)weight[0] + (b->o.task == SVS_REGRESS ? b->target.mean : 0);
    for (int j = 0; j < b->d; j++) {
        w[j] = scale * (double)weight[PAD + j] * s->moments.inverse[j];
        bias -= w[j] * s->moments.mean[j];
    }
    return bias;
}

size_t svi_block_memory(const struct svi_block *b) {
    return b->at.size * sizeof *b->memory;
}
