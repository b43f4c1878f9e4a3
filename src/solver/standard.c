#include "solver/standard.h"

#include "base/fail.h"
#include <math.h>
#include <string.h>

#include "linalg/sparse_rows.h"

/* In two passes, the mean first, so that large offsets do not cancel. */
static void standard_measure(struct svi_standard *s, const svs_rows *r) {
    const double n = (double)r->n;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < r->n; i++) {
            const struct svi_entries e = svi_row_entries(r, i);
            for (int64_t k = 0; k < e.count; k++) {
                int64_t j = e.column ? e.column[k] : k;
                double x = e.value[k] - s->mean[j];
                if (pass == 0 && r->dense)
                    s->mean[j] += e.value[k] / n; /* sums to no more than the largest value: no overflow */
                else if (pass == 1)
                    s->inverse[j] += x * x / n;
            }
        }
}

/* Squares to factors. The rounded mean of a constant column leaves a deviation that is nothing but rounding:
 * factor 0, or it would be blown up to 1 and pass for a feature. */
static void standard_invert(struct svi_standard *s, const svs_rows *r) {
    for (int j = 0; j < s->d; j++) {
        int64_t i = r->dense ? 1 : 0; /* ends at the first value that differs */
        while (r->dense && i < r->n && r->dense[i * r->stride + j] == r->dense[j])
            i++;
        s->inverse[j] = s->inverse[j] == 0 || i >= r->n ? 0 : 1 / sqrt(s->inverse[j]);
    }
}

svs_code svi_standard_make(struct svi_standard *s, const svs_rows *rows, bool scale, const uint8_t *unscaled,
                           svs_error *err) {
    const int64_t stride = (rows->d + 7) / 8 * 8;
    int64_t kept = rows->dense ? rows->n * stride : 1;
    *s = (struct svi_standard){.rows = *rows, .d = rows->d};
    if (!scale)
        return SVS_OK;
    SVI_POOL_DOUBLES(&s->pool, (size_t)rows->d, &s->mean, &s->inverse);
    /* of sparse rows as many values as lie before the furthest end, so that offsets stay */
    for (int64_t i = 0; i < rows->n && !rows->dense; i++)
        kept = svi_row_span(rows, i)[1] >= kept ? svi_row_span(rows, i)[1] + 1 : kept;
    s->values = svi_pool_doubles(&s->pool, (size_t)kept);
    SVI_TRY(svi_pool_code(&s->pool, "the scaled rows", err));
    standard_measure(s, rows);
    standard_invert(s, rows);
    for (int j = 0; unscaled && j < rows->d; j++)
        if (unscaled[j]) {
            s->mean[j] = 0;
            s->inverse[j] = 1;
        }
    for (int64_t i = 0; i < rows->n && rows->dense; i++)
        for (int j = 0; j < rows->d; j++)
            s->values[i * stride + j] = (rows->dense[i * rows->stride + j] - s->mean[j]) * s->inverse[j];
    for (int64_t i = 0; i < rows->n && !rows->dense; i++)
        for (int64_t k = svi_row_span(rows, i)[0]; k < svi_row_span(rows, i)[1]; k++)
            s->values[k] = rows->value[k] * s->inverse[rows->column[k]];
    if (rows->dense) {
        s->rows.dense = s->values;
        s->rows.stride = stride;
        s->rows.padded = true;
    } else {
        s->rows.value = s->values;
    }
    return SVS_OK;
}

void svi_standard_back(const struct svi_standard *s, const double *w, double b, double *W, double *out_b) {
    *out_b = b;
    for (int j = 0; j < s->d; j++) {
        W[j] = s->inverse ? w[j] * s->inverse[j] : w[j];
        if (s->mean)
            *out_b -= W[j] * s->mean[j];
    }
}
