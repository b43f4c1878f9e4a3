/* A block as fields: what is learned, not what the last score left, nor what seed and spread give again.
 * Loaded numbers are held to what rows can lead to (see block.h), so that no sum of theirs overflows. */
#include <math.h>

#include "bank/block_internal.h"

#define WEIGHT_MOST 1e20F
#define SUM_MOST    1e25F

/* Values of f without padding. */
static int archive_length(const struct svi_block *b) {
    return SVI_FLOATS_PAD + (b->o.kind == SVI_BLOCK_RAW        ? b->d
                             : b->o.kind == SVI_BLOCK_PRODUCTS ? b->d * (b->d + 3) / 2
                                                               : SVI_FOURIER_COUNT);
}

static bool vector_sound(const struct svi_block *b, const float *v, float least, float most) {
    bool within = true;
    for (int i = 0; i < archive_length(b); i++)
        within = within && v[i] >= least && v[i] <= most && (i == 0 || i >= SVI_FLOATS_PAD || v[i] == 0);
    return within;
}

static bool heads_sound(const struct svi_block *b) {
    bool sound = true;
    for (int h = 0; h < b->o.head_count; h++)
        for (int r = 0; r < svi_block_rows(b); r++) {
            sound = sound && vector_sound(b, svi_block_row(b, h, r), -WEIGHT_MOST, WEIGHT_MOST);
            if (b->o.head[h].step == SVI_STEP_ADAGRAD)
                sound = sound && vector_sound(b, svi_block_sum(b, h, r), 0, SUM_MOST);
        }
    if (b->o.kind == SVI_BLOCK_PRODUCTS)
        sound = sound && vector_sound(b, b->mean, -200, 200) && vector_sound(b, b->variance, 0, 1e5F);
    for (int i = 0; i < b->kept_rows; i++)
        for (int j = 0; j < b->d; j++)
            sound = sound && fabsf(svi_block_kept(b, i)[j]) <= SVI_FLOATS_CLIP;
    return sound;
}

static void archive_arrays(struct svi_archive *a, struct svi_block *b) {
    int32_t dims[BLOCK_DIMS], used[BLOCK_DIMS];
    svi_block_dims(&b->o, b->capacity, b->row_capacity, dims);
    svi_block_dims(&b->o, b->d, svi_block_rows(b), used);
    used[BLOCK_LENGTH] = archive_length(b);
    used[BLOCK_MOMENTS] = b->o.kind == SVI_BLOCK_PRODUCTS ? archive_length(b) : 0;
    used[BLOCK_KEPT] = b->kept_rows;
    used[BLOCK_PADDED] = b->d;
    svi_arrays_archive(a, &svi_block_arrays, b, dims, used);
    if (svi_archive_loading(a) && svi_archive_ok(a))
        svi_archive_check(a, heads_sound(b), "a weight, a sum or a row of a block is out of range");
}

static void archive_phi(struct svi_archive *a, struct svi_block *b) {
    if (b->o.kind == SVI_BLOCK_PRODUCTS)
        svi_archive_int64(a, "block learned", &b->learned, 0, BLOCK_FADE);
    if (b->o.kind != SVI_BLOCK_FOURIER)
        return;
    svi_archive_double(a, "block spread", &b->spread);
    svi_archive_int(a, "block kept", &b->kept_rows, 0, SVI_FOURIER_ROWS - 1);
    if (svi_archive_check(a, b->spread == 0 || (b->spread >= 1e-4 && b->spread <= 1e6 && b->kept_rows == 0),
                          "the spread of a block is out of range") &&
        svi_archive_loading(a) && b->spread > 0)
        svi_block_draw(b, 0);
}

static void archive_targets(struct svi_archive *a, struct svi_block *b) {
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
static bool archive_size(struct svi_archive *a, struct svi_block *b, int d, int classes) {
    const int rows = b->o.task == SVS_REGRESS || classes <= 2 ? 1 : classes;
    const int64_t floats = (int64_t)svi_block_length(b->o.kind, d) - 2 * SVI_FLOATS_PAD;
    const int64_t bytes = floats * rows * b->o.head_count * (int64_t)sizeof(float);
    if (!svi_archive_check(a, svi_archive_left(a) >= bytes && svi_archive_left(a) >= rows,
                           "a block announces more than its bytes hold"))
        return false;
    svi_block_empty(b);
    if (svi_block_reserve(b, d, rows, a->err) != SVS_OK)
        return false;
    b->d = d;
    b->classes = classes;
    b->length = svi_block_length(b->o.kind, d);
    return true;
}

void svi_block_archive(struct svi_archive *a, struct svi_block *b, int features_max, int classes_max) {
    int d = b->d, classes = b->classes;
    if (b->o.kind == SVI_BLOCK_PRODUCTS && features_max > SVI_PRODUCTS_MAX)
        features_max = SVI_PRODUCTS_MAX;
    svi_archive_int(a, "block features", &d, 0, features_max);
    svi_archive_int(a, "block classes", &classes, 0, classes_max);
    if (!svi_archive_ok(a) || (svi_archive_loading(a) && !archive_size(a, b, d, classes)))
        return;
    archive_phi(a, b);
    if (b->o.task == SVS_REGRESS)
        archive_targets(a, b);
    archive_arrays(a, b);
}
