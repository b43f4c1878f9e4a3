#include "solver/kernel_model.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

static double power(double base, int exponent) {
    double result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        result *= exponent & 1 ? base : 1;
    return result;
}

double svs_kernel_value(const svs_kernel *k, double xz, double xx, double zz) {
    if (k->kind == SVS_LINEAR)
        return xz;
    if (k->kind == SVS_POLYNOMIAL)
        return power(k->gamma * xz + k->coef0, k->degree);
    double distance = xx + zz - 2 * xz;
    return exp(-k->gamma * (distance > 0 ? distance : 0));
}

/* x into a full row of the model's width; |x|^2 counts columns beyond it too. */
static double spread(const svs_rows *x, int64_t row, int d, double *to) {
    const int width = x->d < d ? x->d : d;
    double square = 0;
    memset(to, 0, (size_t)d * sizeof *to);
    if (x->dense) {
        const double *from = x->dense + row * x->stride;
        memcpy(to, from, (size_t)width * sizeof *to);
        for (int j = 0; j < x->d; j++)
            square += from[j] * from[j];
        return square;
    }
    const int64_t *span = x->start + (x->stride > 1 ? row * x->stride : row);
    for (int64_t k = span[0]; k < span[1]; k++) {
        square += x->value[k] * x->value[k];
        if (x->column[k] < d)
            to[x->column[k]] = x->value[k];
    }
    return square;
}

void svs_kernel_scores(const svs_kernel_model *m, const svs_rows *x, int64_t row, double *work, double *out) {
    const svs_rows *s = &m->support;
    double *full = work + s->n, xx = spread(x, row, s->d, full);
    for (int64_t i = 0; i < s->n; i++) {
        double dot = 0;
        for (int64_t k = s->start[i]; k < s->start[i + 1]; k++)
            dot += s->value[k] * full[s->column[k]];
        work[i] = svs_kernel_value(&m->kernel, dot, xx, m->norm2[i]);
    }
    for (int r = 0; r < m->rows; r++) {
        const double *coef = m->coef + (size_t)r * (size_t)s->n;
        double sum = m->b[r];
        for (int64_t i = 0; i < s->n; i++)
            sum += coef[i] * work[i];
        out[r] = sum;
    }
}

/* Does the machine of the classes i and j vote for i? The pairs stand in the order (0,1), (0,2), ... */
static bool votes_for(const svs_kernel_model *m, const double *scores, int64_t i, int64_t j) {
    const int64_t low = i < j ? i : j, high = i < j ? j : i;
    return (scores[low * (2 * m->class_count - low - 1) / 2 + (high - low - 1)] > 0) == (i == low);
}

static int most_votes(const svs_kernel_model *m, const double *scores) {
    int best = 0, most = -1;
    for (int k = 0; k < m->class_count; k++) {
        int votes = 0;
        for (int other = 0; other < m->class_count; other++)
            votes += other != k && votes_for(m, scores, k, other);
        if (votes > most) {
            best = k;
            most = votes;
        }
    }
    return best;
}

int svs_kernel_predict(const svs_kernel_model *m, const double *scores) {
    if (m->decision == SVS_ONE_VS_ONE)
        return most_votes(m, scores);
    if (m->rows == 1)
        return scores[0] > 0;
    int best = 0;
    for (int k = 1; k < m->rows; k++)
        best = scores[k] > scores[best] ? k : best;
    return best;
}

static size_t text_size(const svs_value *classes, int count) {
    size_t size = 1;
    for (int k = 0; k < count; k++)
        size += classes[k].kind == SVS_STR ? classes[k].length : 0;
    return size;
}

static void copy_classes(struct svi_owned_kernel *o, const svs_value *classes, int count) {
    char *at = o->text;
    for (int k = 0; k < count; k++) {
        o->classes[k] = classes[k];
        if (classes[k].kind != SVS_STR)
            continue;
        memcpy(at, classes[k].as.s, classes[k].length);
        o->classes[k].as.s = at;
        at += classes[k].length;
    }
}

struct svi_owned_kernel *svi_kernel_model_new(int rows, int64_t n, int d, int64_t stored,
                                              const svs_value *classes, int class_count, svs_error *err) {
    struct svi_owned_kernel *o = svi_alloc(sizeof *o);
    svs_kernel_model *m = o ? &o->model : NULL;
    if (o) {
        o->text = svi_alloc(text_size(classes, class_count));
        o->classes = svi_alloc_array((size_t)class_count + 1, sizeof *o->classes);
        o->coef = svi_alloc_array((size_t)rows * (size_t)n + 1, sizeof *o->coef);
        o->b = svi_alloc_array((size_t)rows + 1, sizeof *o->b);
        o->norm2 = svi_alloc_array((size_t)n + 1, sizeof *o->norm2);
        o->start = svi_alloc_array((size_t)n + 1, sizeof *o->start);
        o->column = svi_alloc_array((size_t)stored + 1, sizeof *o->column);
        o->value = svi_alloc_array((size_t)stored + 1, sizeof *o->value);
    }
    if (!o || !o->text || !o->classes || !o->coef || !o->b || !o->norm2 || !o->start || !o->column ||
        !o->value) {
        svs_kernel_model_free(&m);
        svi_fail_memory(err, "a kernel model");
        return NULL;
    }
    copy_classes(o, classes, class_count);
    *m = (svs_kernel_model){
        .support = {.n = n, .d = d, .start = o->start, .column = o->column, .value = o->value},
        .norm2 = o->norm2,
        .rows = rows,
        .coef = o->coef,
        .b = o->b,
        .class_count = class_count,
        .classes = o->classes,
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
    void *const all[] = {o->text, o->classes, o->coef, o->b, o->norm2, o->start, o->column, o->value};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    svi_free(o);
    *m = NULL;
}
