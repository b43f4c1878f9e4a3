/* block.h: blocks of each kind for the tests of bank/block, random rows for them, and a step. */
#ifndef TEST_SUPPORT_BLOCK_H
#define TEST_SUPPORT_BLOCK_H

#include "support/problem.h"
#include "support/archived.h"
#include "support/quick.h"

#include "bank/block.h"
#include "base/alloc.h"

#define ROW_MAX     96 /* floats of a row */
#define CLASSES_MAX 40
#define SCORES_MAX  (SVI_HEADS_MAX * CLASSES_MAX)

static const svs_isa block_isas[] = {SVS_ISA_GENERIC, SVS_ISA_AVX2, SVS_ISA_AVX512};
#define ISAS ((int)(sizeof block_isas / sizeof *block_isas))

static inline struct svi_block_options block_options(int kind, svs_task task) {
    struct svi_block_options o = {.kind = (enum svi_block_kind)kind,
                                  .task = task,
                                  .head_count = task == SVS_REGRESS ? 2 : 3,
                                  .seed = 7,
                                  .isa = SVS_ISA_BEST};
    static const struct svi_head classes[] = {
        {SVI_STEP_PA, 1, 0}, {SVI_STEP_PA, 0.01F, 0}, {SVI_STEP_ADAGRAD, 0.3F, 0.999F}};
    static const struct svi_head targets[] = {{SVI_STEP_NLMS, 1, 0}, {SVI_STEP_NLMS, 0.1F, 0}};
    memcpy(o.head, task == SVS_REGRESS ? targets : classes,
           task == SVS_REGRESS ? sizeof targets : sizeof classes);
    return o;
}

static inline struct svi_block block_new(const struct svi_block_options *o, int d) {
    struct svi_block b;
    svs_error err;
    assert_int_equal(svi_block_init(&b, o, &err), SVS_OK);
    assert_int_equal(svi_block_grow(&b, d, &err), SVS_OK);
    return b;
}

/* Row number i: d values, then zeros. */
static inline void block_row(int i, int d, float *z) {
    uint64_t seed = (uint64_t)i * 977 + 3;
    memset(z, 0, ROW_MAX * sizeof *z);
    for (int j = 0; j < d; j++) {
        z[j] = (float)(1.3 * test_normal(&seed));
        z[j] = j % 5 == 4 && i % 3 ? 0 : z[j] > 10 ? 10 : z[j] < -10 ? -10 : z[j];
    }
}

/* What row i is: something that its first features decide, mostly. */
static inline int block_label(int i, int classes) {
    float z[ROW_MAX] __attribute__((aligned(64)));
    block_row(i, 3, z);
    const double v = (double)z[0] - 0.7 * (double)z[1] + 0.5 * (double)z[0] * (double)z[2];
    const int k = (int)floor((v + 3) / 6 * classes + (i % 11 == 0));
    return k < 0 ? 0 : k >= classes ? classes - 1 : k;
}

static inline double block_target(int i) {
    float z[ROW_MAX] __attribute__((aligned(64)));
    block_row(i, 3, z);
    return 1000 + 40 * (double)z[0] - 7 * (double)z[1] + (i % 7);
}

/* Scores and learns row i; labels may be classes that are new. */
static inline void block_step(struct svi_block *b, int i, int d, int classes, double *scores) {
    float z[ROW_MAX] __attribute__((aligned(64)));
    block_row(i, d, z);
    svi_block_score(b, z, scores);
    if (b->o.task == SVS_REGRESS) {
        svi_block_learn_target(b, block_target(i), 1);
    } else {
        const int label = block_label(i, classes);
        assert_int_equal(svi_block_reserve_classes(b, label + 1, NULL), SVS_OK);
        svi_block_learn(b, label, i % 4 ? 1 : 0.5);
    }
}

static inline void block_archive(struct svi_archive *a, void *b) {
    svi_block_archive(a, b, ROW_MAX, CLASSES_MAX);
}

/* Each kind with each task. */
#define EACH_BLOCK(kind, task)                                                                               \
    for (int kind = 0; kind <= SVI_BLOCK_FOURIER; kind++)                                                    \
        for (svs_task task = SVS_CLASSIFY; task <= SVS_REGRESS; task++)

#endif
