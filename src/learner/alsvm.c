#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/alsvm_state.h"
#include "linalg/cholesky.h"

/* ---- storage ----------------------------------------------------------------------------------------------
 */

#define VECTORS (2 * SVI_PENDING_MAX + 2 * SVI_PASS_MAX) /* q, cq, x, y */
#define PARTIAL (SVI_PASS_MAX * 8) /* doubles a column for partial sums: two of the widest vectors */

static size_t memory_doubles(int padded, int strip) {
    return svi_packed_size(padded, strip) + (size_t)padded * (VECTORS + PARTIAL);
}

/* Dimensions that are packed strips of whole cache lines, whatever the strip height. */
static int padded_dim(int dim, int strip) {
    return svi_round_up(svi_round_up(dim, strip), 8);
}

static void lay_out(struct svi_recursion *r, double *memory) {
    r->p = memory;
    double *v = memory + svi_packed_size(r->padded, r->strip);
    double **vectors[] = {r->q, r->cq, r->x, r->y};
    static const int counts[] = {SVI_PENDING_MAX, SVI_PENDING_MAX, SVI_PASS_MAX, SVI_PASS_MAX};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < counts[i]; k++, v += r->padded)
            vectors[i][k] = v;
    r->partial = v;
}

static double *p_at(const svs_alsvm *m, int i, int j) {
    return m->r.p + svi_packed_at(i, j, m->r.strip);
}

/* Sets P[i][j] and, inside a diagonal block, its mirror image. */
static void p_set(svs_alsvm *m, int i, int j, double value) {
    *p_at(m, i, j) = value;
    if (i / m->r.strip == j / m->r.strip)
        *p_at(m, j, i) = value;
}

static void flush(svs_alsvm *m) {
    m->kernels->sweep(&m->r, 0);
}

/* New storage for `dim` features in the layout that suits it; nothing is copied. */
static svs_code resize(svs_alsvm *m, int dim, int rows, svs_error *err) {
    struct svi_recursion r = {.dim = dim, .rows = rows, .strip = m->kernels->strip(dim)};
    r.padded = padded_dim(dim, r.strip);
    size_t size = memory_doubles(r.padded, r.strip) * sizeof(double);
    size_t w_size = (size_t)r.padded * (size_t)rows * sizeof(double);
    double *memory = svi_alloc(size), *w = svi_alloc(w_size);
    if (!memory || !w) {
        svi_free(memory);
        svi_free(w);
        return svi_fail_memory(err, "the matrix P");
    }
    svi_free(m->memory);
    svi_free(m->r.w);
    lay_out(&r, memory);
    r.w = w;
    m->r = r;
    m->memory = memory;
    m->memory_size = size;
    m->w_size = w_size;
    return SVS_OK;
}

svs_alsvm *svs_alsvm_new(int dim, int rows, double nu, svs_isa isa, svs_error *err) {
    const struct svi_kernels *kernels = svi_kernels_get(isa);
    if (dim < 1 || rows < 1 || !(nu > 0) || !kernels) {
        svi_fail(err, SVS_INVALID,
                 kernels ? "a recursion needs dim >= 1, rows >= 1, nu > 0 (got %d, %d, %g)"
                         : "this machine lacks the instruction set asked for",
                 dim, rows, nu);
        return NULL;
    }
    svs_alsvm *m = svi_alloc(sizeof *m);
    if (!m) {
        svi_fail_memory(err, "a recursion");
        return NULL;
    }
    m->kernels = kernels;
    if (resize(m, dim, rows, err) != SVS_OK) {
        svi_free(m);
        return NULL;
    }
    svi_alsvm_reset(m, rows, nu);
    return m;
}

void svs_alsvm_free(svs_alsvm **m) {
    if (!*m)
        return;
    svi_free((*m)->memory);
    svi_free((*m)->r.w);
    svi_free(*m);
    *m = NULL;
}

double svi_alsvm_memory(int dim, int rows, svs_isa isa) {
    const struct svi_kernels *kernels = svi_kernels_get(isa);
    int strip = kernels ? kernels->strip(dim) : 8, padded = padded_dim(dim, strip);
    return sizeof(svs_alsvm) + 8.0 * ((double)memory_doubles(padded, strip) + (double)padded * rows);
}

void svi_alsvm_reset(svs_alsvm *m, int rows, double nu) {
    memset(m->memory, 0, m->memory_size);
    memset(m->r.w, 0, m->w_size);
    m->r.pending = 0;
    m->r.rows = rows;
    for (int i = 0; i < m->r.dim; i++)
        p_set(m, i, i, 1 / nu);
}

/* ---- what it is
 * --------------------------------------------------------------------------------------------- */

int svs_alsvm_dim(const svs_alsvm *m) {
    return m->r.dim;
}

int svs_alsvm_rows(const svs_alsvm *m) {
    return m->r.rows;
}

static double *weights(const svs_alsvm *m, int k) {
    return m->r.w + (size_t)k * (size_t)m->r.padded;
}

const double *svs_alsvm_weights(const svs_alsvm *m, int k) {
    return weights(m, k);
}

void svs_alsvm_set_weights(svs_alsvm *m, int k, const double *w) {
    memcpy(weights(m, k), w, (size_t)m->r.dim * sizeof *w);
}

void svs_alsvm_scores(const svs_alsvm *m, const double *x, double *scores) {
    for (int k = 0; k < m->r.rows; k++) {
        const double *w = weights(m, k);
        double s = 0;
        for (int j = 0; j < m->r.dim; j++)
            s += w[j] * x[j];
        scores[k] = s;
    }
}

void svs_alsvm_inverse(svs_alsvm *m, double *p) {
    flush(m);
    int n = m->r.dim;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            p[(size_t)i * n + j] = p[(size_t)j * n + i] = *p_at(m, i, j);
}

double svi_alsvm_trace_inverse(svs_alsvm *m) {
    flush(m);
    double trace = 0;
    for (int i = 0; i < m->r.dim; i++)
        trace += *p_at(m, i, i);
    return trace;
}

void svi_alsvm_scale_inverse(svs_alsvm *m, double factor) {
    flush(m);
    size_t n = svi_packed_size(m->r.padded, m->r.strip);
    for (size_t i = 0; i < n; i++)
        m->r.p[i] *= factor;
}

/* ---- one or two operations
 * ----------------------------------------------------------------------------------- */

svs_code svi_alsvm_step(svs_alsvm *m, struct svi_change *change, int count, svs_error *err) {
    if (m->kernels->step(&m->r, change, count))
        return SVS_OK;
    return svi_fail(err, SVS_NUMERIC,
                    "a pivot has the wrong sign: P is lost to rounding, rebuild it from the samples held");
}

static void put_sample(svs_alsvm *m, int i, const double *x) {
    memcpy(m->r.x[i], x, (size_t)m->r.dim * sizeof *x);
}

static double inverse_weight(const svs_operation *op) {
    return op->remove ? -1 / op->weight : 1 / op->weight;
}

svs_code svs_alsvm_step(svs_alsvm *m, const svs_operation *op, int count, double *leverage, svs_error *err) {
    struct svi_change change[SVI_PASS_MAX];
    if (count < 1 || count > SVI_PASS_MAX)
        return svi_fail(err, SVS_INVALID, "a step takes one or two operations, not %d", count);
    for (int i = 0; i < count; i++) {
        if (!(op[i].weight > 0))
            return svi_fail(err, SVS_INVALID, "the weight of an operation must be positive, not %g",
                            op[i].weight);
        put_sample(m, i, op[i].x);
        change[i] = (struct svi_change){.t = op[i].t, .inverse_weight = inverse_weight(&op[i])};
    }
    svs_code code = svi_alsvm_step(m, change, count, err);
    for (int i = 0; leverage && i < count; i++)
        leverage[i] = change[i].leverage;
    return code;
}

/* ---- the matrix as a whole
 * ------------------------------------------------------------------------------------- */

void svs_alsvm_apply(svs_alsvm *m, const double *v, double *out) {
    put_sample(m, 0, v);
    m->kernels->sweep(&m->r, 1);
    memcpy(out, m->r.y[0], (size_t)m->r.dim * sizeof *out);
}

void svi_alsvm_set_inverse(svs_alsvm *m, const double *p, const double *r) {
    int n = m->r.dim;
    m->r.pending = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            p_set(m, i, j, p[(size_t)i * n + j]);
    for (int k = 0; k < m->r.rows; k++)
        svs_alsvm_apply(m, r + (size_t)k * n, weights(m, k));
}

svs_code svs_alsvm_set(svs_alsvm *m, double *gram, const double *r, svs_error *err) {
    int n = m->r.dim;
    if (!svi_invert_spd(gram, n))
        return svi_fail(err, SVS_NUMERIC,
                        "the Gram matrix (%d x %d) is not positive definite in floating point", n, n);
    svi_alsvm_set_inverse(m, gram, r);
    return SVS_OK;
}

svs_code svi_alsvm_reserve_rows(svs_alsvm *m, int rows, svs_error *err) {
    size_t row = (size_t)m->r.padded * sizeof(double);
    if ((size_t)rows * row <= m->w_size)
        return SVS_OK;
    double *w = svi_realloc(m->r.w, m->w_size, (size_t)rows * row);
    if (!w)
        return svi_fail_memory(err, "the weights of a new class");
    m->r.w = w;
    m->w_size = (size_t)rows * row;
    return SVS_OK;
}

svs_code svs_alsvm_add_row(svs_alsvm *m, const double *r, svs_error *err) {
    svs_code code = svi_alsvm_reserve_rows(m, m->r.rows + 1, err);
    if (code != SVS_OK)
        return code;
    memset(weights(m, m->r.rows), 0, (size_t)m->r.padded * sizeof(double));
    svs_alsvm_apply(m, r, weights(m, m->r.rows));
    m->r.rows++;
    return SVS_OK;
}

/* A larger layout with the old content in its corner. */
static svs_code move(svs_alsvm *m, int dim, svs_error *err) {
    svs_alsvm old = *m;
    m->memory = NULL;
    m->r.w = NULL;
    svs_code code = resize(m, dim, old.r.rows, err);
    if (code != SVS_OK) {
        *m = old;
        return code;
    }
    flush(&old); /* only now: a failure changes not even what is pending */
    for (int i = 0; i < old.r.dim; i++)
        for (int j = 0; j <= i; j++)
            p_set(m, i, j, *p_at(&old, i, j));
    for (int k = 0; k < old.r.rows; k++)
        memcpy(weights(m, k), weights(&old, k), (size_t)old.r.dim * sizeof(double));
    svi_free(old.memory);
    svi_free(old.r.w);
    return SVS_OK;
}

svs_code svs_alsvm_grow(svs_alsvm *m, int dim, double nu_new, svs_error *err) {
    int old = m->r.dim;
    if (dim < old || !(nu_new > 0))
        return svi_fail(err, SVS_INVALID,
                        "a model of %d features cannot shrink to %d, and nu must be positive", old, dim);
    if (m->kernels->strip(dim) != m->r.strip || padded_dim(dim, m->r.strip) > m->r.padded) {
        svs_code code = move(m, dim, err);
        if (code != SVS_OK)
            return code;
    } else {
        flush(m);
    }
    m->r.dim = dim;
    for (int i = old; i < dim; i++)
        p_set(m, i, i, 1 / nu_new);
    return SVS_OK;
}
