#include "solver/kernel_model.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/owned_model.h"
#include "linalg/sparse_rows.h"

/* By squaring: exact for small integers, and the same on every machine, which pow is not. */
static double kernel_model_power(double base, int exponent) {
    double result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        result *= exponent & 1 ? base : 1;
    return result;
}

double svs_kernel_value(const svs_kernel *k, double xz, double xx, double zz) {
    if (k->kind == SVS_LINEAR)
        return xz;
    if (k->kind == SVS_POLYNOMIAL)
        return kernel_model_power(k->gamma * xz + k->coef0, k->degree);
    double distance = xx + zz - 2 * xz;
    /* |x|^2 + |z|^2 - 2 x'z can fall below 0 by rounding when x and z are nearly equal. */
    return exp(-k->gamma * (distance > 0 ? distance : 0));
}

/* Spreads row x over a full row of zeros, of the model's width, so that support vectors are met by index.
 * Returns |x|^2, which counts columns beyond the width too. */
static double kernel_model_spread(const svs_rows *x, int64_t row, int d, double *to) {
    const struct svi_entries e = svi_row_entries(x, row);
    double square = 0;
    for (int64_t k = 0; k < e.count; k++) {
        const int64_t j = e.column ? e.column[k] : k;
        square += e.value[k] * e.value[k];
        if (j < d)
            to[j] = e.value[k];
    }
    return square;
}

/* Makes the full row zero again, by the entries of x alone: a wide row costs what it holds. */
static void kernel_model_wipe(const svs_rows *x, int64_t row, int d, double *to) {
    const struct svi_entries e = svi_row_entries(x, row);
    for (int64_t k = 0; k < e.count; k++) {
        const int64_t j = e.column ? e.column[k] : k;
        if (j < d)
            to[j] = 0;
    }
}

void svi_kernel_scores(const svs_kernel_model *m, const svs_rows *x, int64_t row, double *work, double *out) {
    const svs_rows *s = &m->support;
    double *full = work + s->n, xx = kernel_model_spread(x, row, s->d, full);
    for (int64_t i = 0; i < s->n; i++) {
        double dot = 0;
        for (int64_t k = s->start[i]; k < s->start[i + 1]; k++)
            dot += s->value[k] * full[s->column[k]];
        work[i] = svs_kernel_value(&m->kernel, dot, xx, m->norm2[i]);
    }
    kernel_model_wipe(x, row, s->d, full);
    /* All decision functions share the kernel values in `work`. */
    for (int r = 0; r < m->rows; r++) {
        const double *coef = m->coef + (size_t)r * (size_t)s->n;
        double sum = m->b[r];
        for (int64_t i = 0; i < s->n; i++)
            sum += coef[i] * work[i];
        out[r] = sum;
    }
}

void svs_kernel_scores(const svs_kernel_model *m, const svs_rows *x, int64_t row, double *work, double *out) {
    memset(work + m->support.n, 0, (size_t)m->support.d * sizeof *work);
    svi_kernel_scores(m, x, row, work, out);
}

/* Does the machine of the classes i and j vote for i? The pairs stand in the order (0,1), (0,2), ... */
static bool kernel_model_votes_for(const svs_kernel_model *m, const double *scores, int64_t i, int64_t j) {
    const int64_t low = i < j ? i : j, high = i < j ? j : i;
    return (scores[low * (2 * m->class_count - low - 1) / 2 + (high - low - 1)] > 0) == (i == low);
}

int svs_kernel_predict(const svs_kernel_model *m, const double *scores) {
    int best = 0, most = -1;
    /* Without one against one the largest score decides; with it K (K - 1) / 2 machines vote. On a tie it is
     * the class that was seen first. */
    if (m->decision != SVS_ONE_VS_ONE)
        return svi_predicted(SVS_CLASSIFY, m->class_count, scores);
    for (int k = 0; k < m->class_count; k++) {
        int votes = 0;
        for (int other = 0; other < m->class_count; other++)
            votes += other != k && kernel_model_votes_for(m, scores, k, other);
        if (votes > most) {
            best = k;
            most = votes;
        }
    }
    return best;
}

struct svi_owned_kernel *svi_kernel_model_new(int rows, int64_t n, int d, int64_t stored,
                                              const svs_value *classes, int class_count, svs_error *err) {
    struct svi_owned_kernel *o = svi_alloc(sizeof *o);
    svs_kernel_model *m = o ? &o->model : NULL;
    if (!o) {
        svi_fail_memory(err, "a kernel model");
        return NULL;
    }
    o->coef = svi_pool_doubles(&o->pool, (size_t)rows * (size_t)n);
    o->b = svi_pool_doubles(&o->pool, (size_t)rows);
    o->norm2 = svi_pool_doubles(&o->pool, (size_t)n);
    o->start = svi_pool_take(&o->pool, (size_t)n + 1, sizeof *o->start);
    o->column = svi_pool_take(&o->pool, (size_t)stored, sizeof *o->column);
    o->value = svi_pool_doubles(&o->pool, (size_t)stored);
    char *text = svi_pool_take(&o->pool, svi_classes_text(classes, class_count), 1);
    svs_value *copies = svi_pool_take(&o->pool, (size_t)class_count, sizeof *copies);
    if (svi_pool_code(&o->pool, "a kernel model", err) != SVS_OK) {
        svs_kernel_model_free(&m);
        return NULL;
    }
    svi_classes_copy(copies, classes, class_count, text);
    *m = (svs_kernel_model){
        .support = {.n = n, .d = d, .start = o->start, .column = o->column, .value = o->value},
        .norm2 = o->norm2,
        .rows = rows,
        .coef = o->coef,
        .b = o->b,
        .class_count = class_count,
        .classes = copies,
        .method = ""};
    return o;
}

void svi_kernel_model_norms(struct svi_owned_kernel *o) {
    for (int64_t i = 0; i < o->model.support.n; i++)
        for (int64_t k = o->start[i]; k < o->start[i + 1]; k++)
            o->norm2[i] += o->value[k] * o->value[k];
}

void svs_kernel_model_free(svs_kernel_model **m) {
    struct svi_owned_kernel *o = (struct svi_owned_kernel *)*m;
    if (!o)
        return;
    svi_pool_free(&o->pool);
    svi_free(o);
    *m = NULL;
}
