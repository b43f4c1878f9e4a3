#include "cli/novelty_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/kernels.h"
#include "novelty/lags.h"
#include "wire/schema_map.h"

static svs_code novelty_rows_read_table(const struct cli_args *a, const char *path,
                                        const svs_novelty_model *model, struct svi_progress *progress,
                                        struct cli_novelty_rows *r, svs_error *err) {
    struct svi_schema_options schema;
    struct svi_table_options o = cli_table_options(a, &schema, progress);
    o.memory = r->memory = cli_table_memory(a);
    o.task = SVS_CLASSIFY;
    o.unlabelled = o.exact = o.keep_missing = true;
    o.reader.placed = false; /* what is normal is told by a name only */
    if (model && model->schema) {
        const uint8_t *at = model->schema;
        if (svi_schema_decode(&r->schema, model->features, model->d / model->lags, at,
                              at + model->schema_size, err) != SVS_OK)
            return err->code;
        o.model = &r->schema.schema;
        o.exact = false;
        o.features = model->d / model->lags;
    } else if (model) {
        o.names = model->features;
        o.features = o.name_count = model->d / model->lags;
    } else {
        o.fixed = a->settings.features;
    }
    return svi_table_read(&r->table, path, &o, err);
}

/* 0: a label of 0; 1: any other number or word; -1: no label. */
static int8_t novelty_rows_anomaly(const svs_examples *e, int64_t i) {
    if (e->label[i] < 0)
        return -1;
    const svs_value y = e->classes[e->label[i]];
    return y.kind != SVS_INT || y.as.i != 0;
}

static void novelty_rows_take_labels(struct cli_novelty_rows *r) {
    const svs_examples *e = &r->table.examples;
    int64_t last = -1; /* the newest anomalous sample */
    for (int64_t i = 0; i < e->rows.n; i++) {
        const int8_t anomaly = novelty_rows_anomaly(e, i);
        const int64_t row = i - r->skipped;
        last = anomaly == 1 ? i : last;
        if (row < 0)
            continue;
        r->anomaly[row] = anomaly;
        r->touched[row] = last >= row;
        r->normal += anomaly == 0;
        r->anomalous += anomaly == 1;
    }
}

/* Is there memory for all rows once more, dense? */
static svs_code novelty_rows_fit(const struct cli_novelty_rows *r, int64_t stride, svs_error *err) {
    const double held =
        r->table.bytes + (r->joined ? (double)r->rows.n * (double)r->rows.stride * sizeof *r->joined : 0);
    return svi_table_fits(r->memory, held + (double)r->rows.n * (double)stride * sizeof *r->joined, err);
}

/* Rows of `lags` samples, padded and dense. */
static svs_code novelty_rows_join(struct cli_novelty_rows *r, int lags, bool differences, svs_error *err) {
    const svs_rows *in = &r->table.examples.rows;
    struct svi_lags l = {0};
    const int d = in->d * lags, stride = svi_round_up(d, 8);
    if (novelty_rows_fit(r, stride, err) != SVS_OK)
        return err->code;
    double *x = svi_alloc_array((size_t)in->d, sizeof *x);
    r->joined = svi_alloc_array((size_t)r->rows.n, (size_t)stride * sizeof *r->joined);
    svs_code code = x && r->joined ? svi_lags_init(&l, in->d, lags, differences, err)
                                   : svi_fail_memory(err, "the joined rows");
    double *to = r->joined;
    for (int64_t i = 0; i < in->n && code == SVS_OK; i++) {
        svs_rows_copy(in, i, x);
        if (svi_lags_push(&l, x, to))
            to += stride;
    }
    r->rows = (svs_rows){.n = r->rows.n, .d = d, .dense = r->joined, .stride = stride, .padded = true};
    svi_lags_clear(&l);
    svi_free(x);
    return code;
}

static svs_code novelty_rows_prepare(struct cli_novelty_rows *r, const char *path, int lags, bool differences,
                                     svs_error *err) {
    const svs_examples *e = &r->table.examples;
    if (e->rows.n < lags)
        return svi_fail(err, SVS_WRONG_DIMENSION, "%.100s has %lld samples: fewer than the %d lags", path,
                        (long long)e->rows.n, lags);
    r->skipped = lags - 1;
    r->rows = e->rows;
    r->rows.n = e->rows.n - r->skipped;
    r->width = e->rows.d;
    r->ts = r->table.ts ? r->table.ts + r->skipped : NULL;
    r->anomaly = svi_alloc_array((size_t)r->rows.n, sizeof *r->anomaly);
    r->touched = svi_alloc_array((size_t)r->rows.n, sizeof *r->touched);
    if (!r->anomaly || !r->touched)
        return svi_fail_memory(err, "the rows of a file");
    novelty_rows_take_labels(r);
    return lags > 1 ? novelty_rows_join(r, lags, differences, err) : SVS_OK;
}

svs_code cli_novelty_read(const struct cli_args *a, const char *path, const svs_novelty_model *model,
                          int lags, bool differences, struct svi_progress *progress,
                          struct cli_novelty_rows *out, svs_error *err) {
    *out = (struct cli_novelty_rows){0};
    svs_code code = novelty_rows_read_table(a, path, model, progress, out, err);
    out->names = model ? model->features : out->table.examples.features;
    return code == SVS_OK ? novelty_rows_prepare(out, path, lags, differences, err) : code;
}

void cli_novelty_clear(struct cli_novelty_rows *r) {
    svi_free(r->joined);
    svi_free(r->anomaly);
    svi_free(r->touched);
    svi_table_clear(&r->table);
    svi_model_schema_clear(&r->schema);
}

svs_code cli_novelty_keep_normal(struct cli_novelty_rows *r, svs_error *err) {
    const int64_t all = r->rows.n, stride = svi_round_up(r->rows.d, 8);
    if (novelty_rows_fit(r, stride, err) != SVS_OK)
        return err->code;
    double *kept = svi_alloc_array((size_t)all, (size_t)stride * sizeof *kept);
    int64_t n = 0;
    if (!kept)
        return svi_fail_memory(err, "the normal rows");
    for (int64_t i = 0; i < all; i++)
        if (!r->touched[i])
            svs_rows_copy(&r->rows, i, kept + n++ * stride);
    r->rows = (svs_rows){.n = n, .d = r->rows.d, .dense = kept, .stride = stride, .padded = true};
    svi_free(r->joined);
    r->joined = kept;
    return n >= 2 ? SVS_OK
                  : svi_fail(err, SVS_INVALID,
                             "%lld of %lld rows are labelled 0 throughout: --normals-only needs two at least",
                             (long long)n, (long long)all);
}

/* ---- how well scores tell anomalous rows from normal ones */

struct labelled {
    double surprise;
    bool anomalous;
};

static int novelty_rows_falling(const void *a, const void *b) {
    const double x = ((const struct labelled *)a)->surprise, y = ((const struct labelled *)b)->surprise;
    return (x < y) - (x > y);
}

/* From the highest score down, equal scores at once. */
static void novelty_rows_walk(const struct labelled *l, int64_t n, double normal, double anomalous,
                              double *auc, double *precision) {
    double found = 0, taken = 0;
    *auc = *precision = 0;
    for (int64_t i = 0; i < n;) {
        double hits = 0, misses = 0;
        const double level = l[i].surprise;
        for (; i < n && l[i].surprise == level; i++)
            if (l[i].anomalous)
                hits++;
            else
                misses++;
        *auc += misses * (found + hits / 2);
        found += hits;
        taken += hits + misses;
        *precision += hits * found / taken;
    }
    *auc /= normal * anomalous;
    *precision /= anomalous;
}

svs_code cli_novelty_quality(const struct cli_novelty_rows *r, const double *surprise, double *auc,
                             double *precision) {
    struct labelled *l = svi_alloc_array((size_t)(r->normal + r->anomalous), sizeof *l);
    int64_t n = 0;
    if (!l)
        return SVS_NO_MEMORY;
    for (int64_t i = 0; i < r->rows.n; i++)
        if (r->anomaly[i] >= 0)
            l[n++] = (struct labelled){surprise[i], r->anomaly[i] == 1};
    qsort(l, (size_t)n, sizeof *l, novelty_rows_falling);
    novelty_rows_walk(l, n, (double)r->normal, (double)r->anomalous, auc, precision);
    svi_free(l);
    return SVS_OK;
}
