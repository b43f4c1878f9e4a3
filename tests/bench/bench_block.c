/* What a row costs the first-order members of the bank: standardising, and one step (score and learn) of each
 * block with its heads; Gaussian rows, best of many rounds. Prints; judges nothing. */
#include <stdio.h>

#include "bench/bench.h"

#include "bank/block.h"
#include "base/alloc.h"

enum { ROWS = 2048 };

static int rounds(void) {
    return bench_pick(3, 20, 30);
}

struct rows {
    int d, padded, classes;
    double *x;
    float *z;
    int *label;
};

static struct rows rows_of(int d, int classes) {
    struct rows r = {.d = d, .padded = (d + SVI_FLOATS_PAD - 1) / SVI_FLOATS_PAD * SVI_FLOATS_PAD};
    uint64_t seed = 1;
    r.classes = classes;
    r.x = calloc((size_t)ROWS * (size_t)d, sizeof *r.x);
    r.z = svi_alloc((size_t)ROWS * (size_t)r.padded * sizeof *r.z);
    r.label = calloc(ROWS, sizeof *r.label);
    for (int i = 0; i < ROWS; i++) {
        double sum = bench_gauss(&seed);
        for (int j = 0; j < d; j++) {
            const double v = bench_gauss(&seed);
            r.x[i * d + j] = v;
            r.z[i * r.padded + j] = (float)v;
            sum += j % 3 == 0 ? v : 0;
        }
        const int k = (int)((sum / 4 + 1) / 2 * classes);
        r.label[i] = k < 0 ? 0 : k >= classes ? classes - 1 : k;
    }
    return r;
}

static void rows_free(struct rows *r) {
    free(r->x);
    svi_free(r->z);
    free(r->label);
}

static double standard_cost(const struct rows *r) {
    struct svi_standardiser s;
    double best = 1;
    if (svi_standardiser_init(&s, SVS_ISA_BEST, NULL) != SVS_OK ||
        svi_standardiser_grow(&s, r->d, NULL) != SVS_OK)
        bench_die("no memory");
    for (int k = 0; k < rounds(); k++) {
        const double start = bench_now();
        for (int i = 0; i < ROWS; i++) {
            svi_standardiser_row(&s, r->x + i * r->d, r->z + i * r->padded);
            svi_standardiser_take(&s, r->x + i * r->d);
        }
        const double cost = (bench_now() - start) / ROWS;
        best = cost < best ? cost : best;
    }
    svi_standardiser_clear(&s);
    return best;
}

static double block_cost(const struct rows *r, const struct svi_block_options *o) {
    struct svi_block b;
    double best = 1, *scores = calloc((size_t)o->head_count * (size_t)r->classes, sizeof *scores);
    if (svi_block_init(&b, o, NULL) != SVS_OK || svi_block_grow(&b, r->d, NULL) != SVS_OK ||
        svi_block_reserve_classes(&b, r->classes, NULL) != SVS_OK)
        bench_die("no memory");
    for (int k = 0; k < rounds(); k++) {
        const double start = bench_now();
        for (int i = 0; i < ROWS; i++) {
            svi_block_score(&b, r->z + i * r->padded, scores);
            svi_block_learn(&b, r->label[i], 1);
        }
        const double cost = (bench_now() - start) / ROWS;
        best = cost < best && k > 1 ? cost : best;
    }
    svi_block_clear(&b);
    free(scores);
    return best;
}

int main(void) {
    static const struct svi_block_options blocks[] = {
        {.kind = SVI_BLOCK_RAW,
         .head_count = 3,
         .head = {{SVI_STEP_PA, 1, 0}, {SVI_STEP_PA, 0.01F, 0}, {SVI_STEP_ADAGRAD, 0.3F, 0.999F}},
         .isa = SVS_ISA_BEST},
        {.kind = SVI_BLOCK_PRODUCTS,
         .head_count = 1,
         .head = {{SVI_STEP_ADAGRAD, 0.3F, 0}},
         .isa = SVS_ISA_BEST},
        {.kind = SVI_BLOCK_PRODUCTS,
         .head_count = 2,
         .head = {{SVI_STEP_ADAGRAD, 0.3F, 0}, {SVI_STEP_ADAGRAD, 0.03F, 0}},
         .isa = SVS_ISA_BEST},
        {.kind = SVI_BLOCK_FOURIER,
         .head_count = 3,
         .head = {{SVI_STEP_ADAGRAD, 0.3F, 0}, {SVI_STEP_ADAGRAD, 0.05F, 0}, {SVI_STEP_PA, 0.001F, 0}},
         .isa = SVS_ISA_BEST}};
    static const char *const names[] = {"raw (3)", "products (1)", "products (2)", "Fourier (3)"};
    static const int shapes[][2] = {{8, 2}, {54, 2}, {27, 10}, {8, 10}};
    double cost[4][5];
    printf("us a row           standardise       raw (3)  products (1)  products (2)   Fourier (3)\n");
    for (int k = 0; k < 4; k++) {
        struct rows r = rows_of(shapes[k][0], shapes[k][1]);
        cost[k][4] = 1e6 * standard_cost(&r);
        printf("d = %2d, %2d classes  %12.3f", shapes[k][0], shapes[k][1], cost[k][4]);
        for (int i = 0; i < 4; i++) {
            cost[k][i] = 1e6 * block_cost(&r, &blocks[i]);
            printf("  %12.3f", cost[k][i]);
        }
        printf("\n");
        rows_free(&r);
    }
    for (int i = 0; i < 4; i++)
        bench_row((struct bench_row){.ours = cost[1][i], .unit = "us"}, "first-order block %s, d 54, a row",
                  names[i]);
    return bench_end();
}
