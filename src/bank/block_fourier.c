/* Random Fourier features: their draws. */
#include <math.h>
#include <string.h>

#include "bank/block_internal.h"
#include "base/random.h"
#include "base/statistics.h"

#define PI 3.14159265358979323846

/* In (0, 1). */
static double column_uniform(struct svi_random *r) {
    return ((double)(svi_random_next(r) >> 11) + 0.5) * 0x1p-53;
}

/* The generator of a column: seed and number through one step each, so that neighbours share nothing. */
static struct svi_random column_random(uint64_t seed, int column) {
    struct svi_random r = {seed};
    r.state = svi_random_next(&r) + (uint64_t)column;
    r.state = svi_random_next(&r);
    return r;
}

static void column_draw(struct svi_block *b, int j) {
    const double turns = 2 / b->spread / (2 * PI);
    struct svi_random random = column_random(b->o.seed, j);
    for (int i = 0; i < SVI_FOURIER_COUNT; i++) {
        const double radius = sqrt(-2 * log(column_uniform(&random)));
        const double normal = radius * cos(2 * PI * column_uniform(&random));
        const size_t block = (size_t)(i / SVI_COSINE_BLOCK) * (size_t)b->d + (size_t)j;
        b->waves[block * SVI_COSINE_BLOCK + (size_t)(i % SVI_COSINE_BLOCK)] = (float)(turns * normal);
    }
}

void svi_block_draw(struct svi_block *b, int from) {
    float *waves = b->waves;
    struct svi_random random = column_random(b->o.seed, -1);
    const size_t old = (size_t)from * SVI_COSINE_BLOCK, new = (size_t)b->d *SVI_COSINE_BLOCK;
    for (size_t k = SVI_FOURIER_COUNT / SVI_COSINE_BLOCK; k-- > 0;)
        svi_array_copy(waves + k * new, waves + k * old, old * sizeof *waves);
    for (int i = 0; i < SVI_FOURIER_COUNT; i++)
        b->shift[i] = (float)column_uniform(&random);
    for (int j = from; j < b->d; j++)
        column_draw(b, j);
}

/* Each pair's sum is over the features in turn, those of one row in step with each other: `column` has a
 * feature of all rows side by side. */
double svi_block_spread(const struct svi_block *b) {
    double distance[SVI_FOURIER_ROWS * (SVI_FOURIER_ROWS - 1) / 2];
    float column[SVI_FOURIER_ROWS];
    int64_t count = 0, same = 0;
    memset(distance, 0, sizeof distance);
    for (int j = 0; j < b->d; j++) {
        double *sum = distance;
        for (int i = 0; i < b->kept_rows; sum += i++) {
            column[i] = svi_block_kept(b, i)[j];
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
