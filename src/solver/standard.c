#include "solver/standard.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

/* Sums and squares of the columns in two passes: the mean first, so that large offsets do not cancel. */
static void measure(struct svi_standard *s, const svs_rows *r) {
    const bool dense = r->dense != NULL;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < r->n; i++)
            for (int64_t k = dense ? 0 : r->start[i]; k < (dense ? r->d : r->start[i + 1]); k++) {
                double x = dense ? r->dense[i * r->stride + k] : r->value[k];
                int64_t j = dense ? k : r->column[k];
                if (pass == 0)
                    s->mean[j] += dense ? x / (double)r->n : 0;
                else
                    s->inverse[j] += (x - s->mean[j]) * (x - s->mean[j]) / (double)r->n;
            }
    }
    for (int j = 0; j < r->d; j++)
        s->inverse[j] = s->inverse[j] > 0 ? 1 / sqrt(s->inverse[j]) : 1;
}

static void scale_dense(struct svi_standard *s, const svs_rows *r, int64_t stride) {
    for (int64_t i = 0; i < r->n; i++)
        for (int j = 0; j < r->d; j++)
            s->values[i * stride + j] = (r->dense[i * r->stride + j] - s->mean[j]) * s->inverse[j];
    s->rows.dense = s->values;
    s->rows.stride = stride;
    s->rows.padded = true;
}

static void scale_sparse(struct svi_standard *s, const svs_rows *r) {
    for (int64_t k = r->start[0]; k < r->start[r->n]; k++)
        s->values[k] = r->value[k] * s->inverse[r->column[k]];
    s->rows.value = s->values;
}

svs_code svi_standard_make(struct svi_standard *s, const svs_rows *rows, bool scale, svs_error *err) {
    const int64_t stride = (rows->d + 7) / 8 * 8;
    *s = (struct svi_standard){.rows = *rows, .d = rows->d};
    if (!scale)
        return SVS_OK;
    s->mean = svi_alloc_array((size_t)rows->d, sizeof *s->mean);
    s->inverse = svi_alloc_array((size_t)rows->d, sizeof *s->inverse);
    s->values = svi_alloc_array(rows->dense ? (size_t)(rows->n * stride) : (size_t)rows->start[rows->n] + 1,
                                sizeof *s->values);
    if (!s->mean || !s->inverse || !s->values)
        return svi_fail_memory(err, "the scaled rows");
    measure(s, rows);
    if (rows->dense)
        scale_dense(s, rows, stride);
    else
        scale_sparse(s, rows);
    return SVS_OK;
}

void svi_standard_clear(struct svi_standard *s) {
    svi_free(s->mean);
    svi_free(s->inverse);
    svi_free(s->values);
    *s = (struct svi_standard){0};
}

void svi_standard_back(const struct svi_standard *s, const double *w, double b, double *W, double *out_b) {
    *out_b = b;
    for (int j = 0; j < s->d; j++) {
        W[j] = s->inverse ? w[j] * s->inverse[j] : w[j];
        if (s->mean)
            *out_b -= W[j] * s->mean[j];
    }
}
