#include "solver/standard.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/rows.h"

/* The entries of a row. */
static void entries(const svs_rows *r, int64_t i, int64_t *from, int64_t *to) {
    *from = r->dense ? i * r->stride : svi_row_span(r, i)[0];
    *to = r->dense ? *from + r->d : svi_row_span(r, i)[1];
}

/* In two passes, the mean first, so that large offsets do not cancel. */
static void measure(struct svi_standard *s, const svs_rows *r) {
    const double *values = r->dense ? r->dense : r->value, n = (double)r->n;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0, from, to; i < r->n; i++) {
            entries(r, i, &from, &to);
            for (int64_t k = from; k < to; k++) {
                int64_t j = r->dense ? k - from : r->column[k];
                double x = values[k] - s->mean[j];
                if (pass == 0 && r->dense)
                    s->mean[j] += values[k] / n; /* sums to no more than the largest value: no overflow */
                else if (pass == 1)
                    s->inverse[j] += x * x / n;
            }
        }
}

/* Ends at the first value that differs. */
static bool constant(const svs_rows *r, int j) {
    int64_t i = 1;
    while (i < r->n && r->dense[i * r->stride + j] == r->dense[j])
        i++;
    return i >= r->n;
}

/* Squares to factors. The rounded mean of a constant column leaves a deviation that is nothing but rounding:
 * factor 0, or it would be blown up to 1 and pass for a feature. */
static void invert(struct svi_standard *s, const svs_rows *r) {
    for (int j = 0; j < s->d; j++) {
        bool still = s->inverse[j] == 0 || (r->dense && constant(r, j));
        s->inverse[j] = still ? 0 : 1 / sqrt(s->inverse[j]);
    }
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
    for (int64_t i = 0, from, to; i < r->n; i++) {
        entries(r, i, &from, &to);
        for (int64_t k = from; k < to; k++)
            s->values[k] = r->value[k] * s->inverse[r->column[k]];
    }
    s->rows.value = s->values;
}

/* Values that are kept: with sparse rows as many as lie before the furthest end, so that offsets stay. */
static size_t room(const svs_rows *r, int64_t stride) {
    int64_t end = 0;
    for (int64_t i = 0; i < r->n && !r->dense; i++)
        end = svi_row_span(r, i)[1] > end ? svi_row_span(r, i)[1] : end;
    return r->dense ? (size_t)(r->n * stride) : (size_t)end + 1;
}

svs_code svi_standard_make(struct svi_standard *s, const svs_rows *rows, bool scale, svs_error *err) {
    const int64_t stride = (rows->d + 7) / 8 * 8;
    *s = (struct svi_standard){.rows = *rows, .d = rows->d};
    if (!scale)
        return SVS_OK;
    s->mean = svi_alloc_array((size_t)rows->d, sizeof *s->mean);
    s->inverse = svi_alloc_array((size_t)rows->d, sizeof *s->inverse);
    s->values = svi_alloc_array(room(rows, stride), sizeof *s->values);
    if (!s->mean || !s->inverse || !s->values)
        return svi_fail_memory(err, "the scaled rows");
    measure(s, rows);
    invert(s, rows);
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
