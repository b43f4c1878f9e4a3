/* A block as fields: what is learned, not what the last score left, nor what seed and spread give again.
 * Loaded numbers are held to what rows can lead to (see block.h), so that no sum of theirs overflows. */
#include <math.h>

#include "bank/block_internal.h"

#define WEIGHT_MOST 1e20F
#define SUM_MOST    1e25F

static void archive_vector(struct svi_archive *a, struct svi_block *b, const char *name, float *v,
                           float least, float most) {
    const int features = b->o.kind == SVI_BLOCK_RAW        ? b->d
                         : b->o.kind == SVI_BLOCK_PRODUCTS ? b->d * (b->d + 3) / 2
                                                           : SVI_FOURIER_COUNT;
    bool within = true;
    svi_archive_floats(a, name, v, SVI_FLOATS_PAD + features);
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    for (int i = 0; i < SVI_FLOATS_PAD + features; i++)
        within = within && v[i] >= least && v[i] <= most && (i == 0 || i >= SVI_FLOATS_PAD || v[i] == 0);
    svi_archive_check(a, within, "a weight or a sum of a block is out of range");
}

static void archive_heads(struct svi_archive *a, struct svi_block *b) {
    char key[SVI_KEY_MAX];
    const int rows = svi_block_rows(b);
    for (int k = 0; k < b->o.head_count * rows; k++) {
        const int h = k / rows;
        svi_archive_key(key, "block weights", k);
        archive_vector(a, b, key, svi_block_row(b, b->at.weights[h], k % rows), -WEIGHT_MOST, WEIGHT_MOST);
        svi_archive_key(key, "block sums", k);
        if (b->o.head[h].step == SVI_STEP_ADAGRAD)
            archive_vector(a, b, key, svi_block_row(b, b->at.sums[h], k % rows), 0, SUM_MOST);
    }
}

static void archive_phi(struct svi_archive *a, struct svi_block *b) {
    if (b->o.kind == SVI_BLOCK_PRODUCTS) {
        svi_archive_int64(a, "block learned", &b->learned, 0, BLOCK_FADE);
        archive_vector(a, b, "block mean", svi_block_at(b, b->at.mean), -200, 200);
        archive_vector(a, b, "block variance", svi_block_at(b, b->at.variance), 0, 1e5F);
    }
    if (b->o.kind != SVI_BLOCK_FOURIER)
        return;
    svi_archive_double(a, "block spread", &b->spread);
    svi_archive_int(a, "block kept", &b->kept, 0, SVI_FOURIER_ROWS - 1);
    if (!svi_archive_check(a, b->spread == 0 || (b->spread >= 1e-4 && b->spread <= 1e6 && b->kept == 0),
                           "the spread of a block is out of range"))
        return;
    for (int i = 0; i < b->kept && svi_archive_ok(a); i++) {
        char key[SVI_KEY_MAX];
        svi_archive_floats(a, svi_archive_key(key, "block row", i), svi_block_kept(b, i), b->d);
        for (int j = 0; svi_archive_loading(a) && svi_archive_ok(a) && j < b->d; j++)
            svi_archive_check(a, fabsf(svi_block_kept(b, i)[j]) <= SVI_FLOATS_CLIP,
                              "a row of a block is not clipped");
    }
    if (svi_archive_loading(a) && svi_archive_ok(a) && b->spread > 0)
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
    archive_heads(a, b);
}
