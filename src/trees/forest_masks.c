#include "trees/forest_internal.h"

#include <float.h>
#include <math.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/kernels.h"

void svi_forest_masks_free(struct svi_forest_masks **m) {
    if (*m) {
        svi_free((*m)->missing);
        svi_free((*m)->used);
        svi_free((*m)->tree);
    }
    svi_free(*m);
    *m = NULL;
}

static bool forest_masks_fit(const struct svi_forest *f) {
    const struct svi_kernels *k = svi_kernels_get(SVS_ISA_BEST);
    for (int t = 0; t < f->trees; t++)
        if (f->first[t + 1] - f->first[t] > 2 * SVI_FOREST_LANES - 1)
            return false;
    return f->columns > 0 && k && k->isa == SVS_ISA_AVX512;
}

/* Preorder: the pattern of a node's parent side is known when the node comes. */
static uint16_t forest_masks_tree(const struct svi_forest *f, int t, struct svi_forest_mask *m) {
    const int32_t begin = f->first[t], end = f->first[t + 1];
    uint16_t care[2 * SVI_FOREST_LANES] = {0}, want[2 * SVI_FOREST_LANES] = {0}, missing = 0;
    int inner = 0, leaf = 0;
    for (int i = 0; i < SVI_FOREST_LANES; i++) {
        m->threshold[i] = FLT_MAX;
        m->want[i] = 1;
    }
    for (int32_t i = begin; i < end; i++) {
        const struct svi_forest_node *n = &f->node[i];
        const int32_t at = i - begin;
        if (n->word & SVI_FOREST_LEAF) {
            m->value[leaf] = (int32_t)ldexp(n->value, -f->exponent);
            m->care[leaf] = care[at];
            m->want[leaf++] = want[at];
            continue;
        }
        const uint16_t bit = (uint16_t)(1u << inner);
        const int32_t right = at + (int32_t)n->right;
        m->column[inner] = (int32_t)(n->word & SVI_FOREST_COLUMN);
        m->threshold[inner++] = n->value;
        missing |= n->word & SVI_FOREST_LEFT ? 0 : bit;
        care[at + 1] = care[right] = care[at] | bit;
        want[at + 1] = want[at];
        want[right] = want[at] | bit;
    }
    return missing;
}

/* Where rows have more values than registers hold and the nodes use few of them, masks refer to these.
 * False: no memory. */
static bool forest_masks_use(const struct svi_forest *f, struct svi_forest_masks *m) {
    m->count = f->columns;
    if (f->columns <= SVI_FOREST_PICKED)
        return true;
    int32_t *place = svi_alloc_array((size_t)f->columns, sizeof *place), count = 0;
    if (!place || !(m->used = svi_alloc_array((size_t)f->columns, sizeof *m->used))) {
        svi_free(place);
        return false;
    }
    for (int32_t i = 0; i < f->count; i++)
        if (!(f->node[i].word & SVI_FOREST_LEAF))
            place[f->node[i].word & SVI_FOREST_COLUMN] = 1;
    for (int32_t j = 0; j < f->columns; j++)
        if (place[j]) {
            m->used[count] = j;
            place[j] = count++;
        }
    if (count <= SVI_FOREST_PICKED) {
        for (int t = 0; t < f->trees; t++)
            for (int i = 0; i < SVI_FOREST_LANES; i++)
                m->tree[t].column[i] = place[m->tree[t].column[i]];
        m->count = count;
    } else {
        svi_free(m->used);
        m->used = NULL;
    }
    svi_free(place);
    return true;
}

svs_code svi_forest_masks_make(struct svi_forest *f, svs_error *err) {
    svi_forest_masks_free(&f->masks);
    if (!forest_masks_fit(f))
        return SVS_OK;
    struct svi_forest_masks *m = svi_alloc(sizeof *m);
    if (m) {
        m->missing = svi_alloc_array((size_t)f->trees, sizeof *m->missing);
        m->tree = svi_alloc_array((size_t)f->trees, sizeof *m->tree);
    }
    if (!m || !m->missing || !m->tree) {
        svi_forest_masks_free(&m);
        return svi_fail_memory(err, "the trees");
    }
    m->unit = ldexp(1, f->exponent);
    for (int t = 0; t < f->trees; t++)
        m->missing[t] = forest_masks_tree(f, t, &m->tree[t]);
    if (!forest_masks_use(f, m)) {
        svi_forest_masks_free(&m);
        return svi_fail_memory(err, "the trees");
    }
    f->masks = m;
    return SVS_OK;
}

void svi_forest_masks_score(const struct svi_forest *f, const float *x, double *scores) {
    const struct svi_forest_masks *m = f->masks;
    float picked[SVI_FOREST_PICKED];
    if (m->used) {
        for (int32_t k = 0; k < m->count; k++)
            picked[k] = x[m->used[k]];
        x = picked;
    }
    for (int r = 0; r < f->rows; r++)
        scores[r] = f->base[r] + m->unit * (double)svi_forest_masks_sum(f, r, x);
}

double svi_forest_masks_memory(const struct svi_forest *f) {
    return f->masks ? (double)sizeof *f->masks + (double)f->trees * (sizeof *f->masks->tree + 2.0) +
                          (f->masks->used ? 4.0 * f->columns : 0)
                    : 0;
}
