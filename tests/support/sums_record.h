/* sums_record.h: random sums records for tests, with names and labels of their own. */
#ifndef TEST_SUPPORT_SUMS_RECORD_H
#define TEST_SUPPORT_SUMS_RECORD_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "merge/sums.h"

#define RECORD_MAX 24

struct record_texts {
    char name[RECORD_MAX][24], label[RECORD_MAX][24];
    const char *names[RECORD_MAX];
    svs_value labels[RECORD_MAX];
    int32_t unscaled[RECORD_MAX];
};

static const uint8_t record_map[] = {0x81, 0xa1, 'a', 0x07}; /* {"a": 7}, for schema and prior */

static void record_random(struct svi_sums *r, struct record_texts *t, struct svi_random *random) {
    const bool regress = svi_random_below(random, 4) == 0;
    const int d = (int)svi_random_below(random, 9), k = regress ? 0 : (int)svi_random_below(random, 5);
    svi_sums_clear(r);
    if (svi_window_sums_shape(&r->sums, d, k, NULL) != SVS_OK)
        return;
    snprintf(r->part, sizeof r->part, "part %d", (int)svi_random_below(random, 1000));
    r->part_epoch = svi_random_below(random, 2) ? UINT64_MAX - svi_random_below(random, 9) : 17;
    r->offset = (int64_t)svi_random_below(random, 1000000);
    r->task = regress ? SVS_REGRESS : SVS_CLASSIFY;
    r->kind = (enum svi_sums_kind)svi_random_below(random, 3);
    r->window = (int64_t)svi_random_below(random, 100);
    r->C = svi_random_below(random, 2) ? 1 : .37;
    r->scale = svi_random_below(random, 2) ? SVS_SCALE_STANDARD : SVS_SCALE_NONE;
    for (int j = 0; j < d; j++) {
        snprintf(t->name[j], sizeof t->name[j], "f%d ü", j);
        t->names[j] = t->name[j];
    }
    for (int c = 0; c < k; c++) {
        snprintf(t->label[c], sizeof t->label[c], "label%d", c);
        t->labels[c] = c % 2 ? svs_str(t->label[c]) : svs_int(c - 3);
    }
    r->features = r->kind == SVI_SUMS_NAMED || svi_random_below(random, 2) ? t->names : NULL;
    r->classes = t->labels;
    r->unscaled = t->unscaled;
    for (int j = 0; j < d; j++)
        if (svi_random_below(random, 3) == 0)
            t->unscaled[r->unscaled_count++] = j;
    if (svi_random_below(random, 2)) {
        r->schema = record_map;
        r->schema_size = sizeof record_map;
    }
    if (svi_random_below(random, 2)) {
        r->prior = record_map;
        r->prior_size = sizeof record_map;
    }
    r->sums.n = (int64_t)svi_random_below(random, 50);
    r->sums.weight = r->sums.n ? 1e-3 * (double)svi_random_below(random, 100000) : 0;
    for (size_t i = 0; i < r->sums.capacity - 1; i++) /* squares may not be negative, others may */
        r->sums.block[i] =
            (double)svi_random_next(random) * (r->sums.block + i < r->sums.square ? -0x1p-50 : 0x1p-64);
    if (!regress)
        memset(r->sums.target_sum, 0, (size_t)d * sizeof *r->sums.target_sum);
    r->sums.target_weight = regress ? -2.5 : 0;
    r->sums.target_square = !regress ? 0 : svi_random_below(random, 3) ? 1e9 : NAN;
    r->schema_hash = svi_sums_schema_hash(r);
}

#endif
