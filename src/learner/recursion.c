/* The bare recursion (svmstream/alsvm.h): P and W, and what a step does to them (Le et al. 2015, Eq. 6;
 * ALGORITHMS 1). The work of a step is in the kernels (linalg/kernels.h); here are the storage that they
 * want, whatever looks at P as a whole, and the archive.
 *
 * P lies as a packed lower triangle in strips; up to SVI_PENDING_MAX rank-1 changes may still wait in front
 * of it, so that the true P is the stored one + sum cq q'. P's entries are to be read only after
 * alsvm_flush, or with what is pending taken into account (svi_alsvm_inverse_times). cq is q or -q: the
 * products of both halves then round alike. Invariants: both halves of a diagonal block are equal bit for
 * bit (alsvm_set_entry), and everything from `dim` on is zero.
 *
 * Read svi_alsvm_step, svs_alsvm_set and svi_alsvm_pack first. */

/* The last part of this file is the block form of many operations (Eqs. 3 and 7): with A = the samples as
 * rows, S = diag(+-s),
 *
 *     T = A P A',   S^-1 + T = L Delta L' (in the given order, no pivoting),   U = L^-1 (t - A w),
 *
 *     w <- w + V Delta^-1 U,   P <- P - V Delta^-1 V',   V = P A' L^-T,
 *
 * and U_i is the innovation t_i - w'x_i that a one-by-one recursion would have seen, so the score before each
 * sample comes for free, and FALSVM can decide while eliminating. It is the portable reference of the sweeps,
 * and faster than them only without vector instructions at large D. */
#include "learner/recursion.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/pool.h"
#include "linalg/cholesky.h"
#include "linalg/sparse_rows.h"

/* ---- storage */

#define VECTORS (2 * SVI_PENDING_MAX + 2 * SVI_PASS_MAX) /* q, cq, x, y */
#define PARTIAL (SVI_PASS_MAX * 8) /* doubles a column for partial sums: two of the widest vectors */

/* Dimensions that are packed strips of whole cache lines, whatever the strip height. */
static int alsvm_padded(int dim, int strip) {
    return svi_round_up(svi_round_up(dim, strip), 8);
}

/* Bytes of all but w, and of w. */
static size_t alsvm_size(int dim, int strip) {
    const int padded = alsvm_padded(dim, strip);
    return (svi_packed_size(padded, strip) + (size_t)padded * (VECTORS + PARTIAL)) * sizeof(double);
}

/* W has its own block: rows are added to it with each class, while P stays. */
static size_t alsvm_w_size(int dim, int strip, int rows) {
    return (size_t)alsvm_padded(dim, strip) * (size_t)rows * sizeof(double);
}

/* P first, then the vectors, each of `padded` values. */
static void alsvm_lay_out(struct svi_recursion *r, double *memory) {
    r->p = memory;
    double *v = memory + svi_packed_size(r->padded, r->strip);
    double **vectors[] = {r->q, r->cq, r->x, r->y};
    static const int counts[] = {SVI_PENDING_MAX, SVI_PENDING_MAX, SVI_PASS_MAX, SVI_PASS_MAX};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < counts[i]; k++, v += r->padded)
            vectors[i][k] = v;
    r->partial = v;
}

/* Of `dim` features, in the space that there is. */
static void alsvm_shape(svs_alsvm *m, int dim) {
    m->r.dim = dim;
    m->r.strip = m->kernels->strip(dim);
    m->r.padded = alsvm_padded(dim, m->r.strip);
    alsvm_lay_out(&m->r, m->memory);
}

static double *alsvm_at(const svs_alsvm *m, int i, int j) {
    return m->r.p + svi_packed_at(i, j, m->r.strip);
}

/* Sets P[i][j] and, inside a diagonal block, its mirror image. */
static void alsvm_set_entry(svs_alsvm *m, int i, int j, double value) {
    *alsvm_at(m, i, j) = value;
    if (i / m->r.strip == j / m->r.strip)
        *alsvm_at(m, j, i) = value;
}

static void alsvm_flush(svs_alsvm *m) {
    m->kernels->sweep(&m->r, 0);
}

svs_alsvm *svs_alsvm_new(int dim, int rows, double nu, svs_isa isa, svs_error *err) {
    const struct svi_kernels *kernels = svi_kernels_get(isa);
    if (dim < 1 || rows < 1 || !(nu > 0) || !kernels) {
        svi_fail(err, SVS_INVALID,
                 kernels ? "a recursion needs dim >= 1, rows >= 1, nu > 0 (got %d, %d, %g)"
                         : "this machine lacks the requested instruction set",
                 dim, rows, nu);
        return NULL;
    }
    svs_alsvm *m = svi_alloc(sizeof *m);
    if (!m) {
        svi_fail_memory(err, "a recursion");
        return NULL;
    }
    m->kernels = kernels;
    if (svi_alsvm_reserve(m, kernels, dim, rows, err) != SVS_OK) {
        svs_alsvm_free(&m);
        return NULL;
    }
    alsvm_shape(m, dim);
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
    const int strip = kernels ? kernels->strip(dim) : 8;
    return (double)(sizeof(svs_alsvm) + alsvm_size(dim, strip) + alsvm_w_size(dim, strip, rows));
}

/* Memory may move, so the pointers into it are made again. */
svs_code svi_alsvm_reserve(svs_alsvm *m, const struct svi_kernels *kernels, int dim, int rows,
                           svs_error *err) {
    const int strip = kernels->strip(dim);
    const size_t size = alsvm_size(dim, strip), w_size = alsvm_w_size(dim, strip, rows);
    if (size > m->memory_size) {
        double *memory = svi_realloc(m->memory, m->memory_size, size);
        if (!memory)
            return svi_fail_memory(err, "the matrix P");
        m->memory = memory;
        m->memory_size = size;
        if (m->r.dim > 0)
            alsvm_lay_out(&m->r, memory);
    }
    if (w_size > m->w_size) {
        double *w = svi_realloc(m->r.w, m->w_size, w_size);
        if (!w)
            return svi_fail_memory(err, "the weights");
        m->r.w = w;
        m->w_size = w_size;
    }
    return SVS_OK;
}

/* For another learner in the same memory: with another layout all is zero again, which the kernels rely on
 * beyond `dim`; with the same one the caller overwrites all that counts. */
void svi_alsvm_begin(svs_alsvm *m, const struct svi_kernels *kernels, int dim, int rows) {
    struct svi_recursion *r = &m->r;
    m->kernels = kernels;
    if (dim != r->dim || kernels->strip(dim) != r->strip) {
        alsvm_shape(m, dim);
        memset(m->memory, 0, m->memory_size);
        memset(r->w, 0, m->w_size);
    }
    r->rows = rows;
    r->pending = 0;
}

void svi_alsvm_reset(svs_alsvm *m, int rows, double nu) {
    memset(m->memory, 0, m->memory_size);
    memset(m->r.w, 0, m->w_size);
    m->r.pending = 0;
    m->r.rows = rows;
    for (int i = 0; i < m->r.dim; i++)
        alsvm_set_entry(m, i, i, 1 / nu);
}

void svi_alsvm_shrink(svs_alsvm *m, int dim, double nu) {
    alsvm_shape(m, dim);
    svi_alsvm_reset(m, m->r.rows, nu);
}

void svi_alsvm_set_alone(svs_alsvm *m, int j, double nu) {
    alsvm_set_entry(m, j, j, 1 / nu);
}

/* Is pending change k an addition? cq is -q then, zeros included, so the signs of the first entry show. */
static bool alsvm_pending_adds(const struct svi_recursion *r, int k) {
    return !signbit(r->q[k][0]) != !signbit(r->cq[k][0]);
}

bool svi_alsvm_renew(svs_alsvm *m, int j, double nu) {
    struct svi_recursion *r = &m->r;
    bool changed = false;
    /* The coordinate is cleared in what is pending as well. The sign of the zero must stay what
     * alsvm_pending_adds reads, which may be this very entry. */
    for (int k = 0; k < r->pending; k++) {
        r->cq[k][j] = alsvm_pending_adds(r, k) ? -0.0 : 0;
        r->q[k][j] = 0;
    }
    for (int i = 0; i < r->dim; i++)
        alsvm_set_entry(m, i > j ? i : j, i > j ? j : i, i == j ? 1 / nu : 0);
    for (int k = 0; k < r->rows; k++) {
        double *w = r->w + (size_t)k * (size_t)r->padded;
        changed |= w[j] != 0;
        w[j] = 0;
    }
    return changed;
}

/* ---- what it is */

int svs_alsvm_dim(const svs_alsvm *m) {
    return m->r.dim;
}

int svs_alsvm_rows(const svs_alsvm *m) {
    return m->r.rows;
}

static double *alsvm_weights(const svs_alsvm *m, int k) {
    return m->r.w + (size_t)k * (size_t)m->r.padded;
}

const double *svs_alsvm_weights(const svs_alsvm *m, int k) {
    return alsvm_weights(m, k);
}

void svs_alsvm_set_weights(svs_alsvm *m, int k, const double *w) {
    memcpy(alsvm_weights(m, k), w, (size_t)m->r.dim * sizeof *w);
}

void svs_alsvm_scores(const svs_alsvm *m, const double *x, double *scores) {
    for (int k = 0; k < m->r.rows; k++)
        scores[k] = svi_dot(alsvm_weights(m, k), x, m->r.dim);
}

void svs_alsvm_inverse(svs_alsvm *m, double *p) {
    alsvm_flush(m);
    int n = m->r.dim;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            p[(size_t)i * n + j] = p[(size_t)j * n + i] = *alsvm_at(m, i, j);
}

double svi_alsvm_trace_inverse(svs_alsvm *m) {
    alsvm_flush(m);
    double trace = 0;
    for (int i = 0; i < m->r.dim; i++)
        trace += *alsvm_at(m, i, i);
    return trace;
}

double svi_alsvm_diagonal(const svs_alsvm *m, int j) {
    double p = *alsvm_at(m, j, j);
    for (int k = 0; k < m->r.pending; k++)
        p += m->r.cq[k][j] * m->r.q[k][j];
    return p;
}

/* P in other units (learner_slide.c): pending changes first, which are in the old ones. */
void svi_alsvm_scale_inverse(svs_alsvm *m, double factor) {
    alsvm_flush(m);
    size_t n = svi_packed_size(m->r.padded, m->r.strip);
    for (size_t i = 0; i < n; i++)
        m->r.p[i] *= factor;
}

/* ---- one or two operations */

svs_code svi_alsvm_step(svs_alsvm *m, struct svi_change *change, int count, svs_error *err) {
    if (m->kernels->step(&m->r, change, count))
        return SVS_OK;
    return svi_fail(err, SVS_NUMERIC,
                    "a pivot has the wrong sign: P is lost to rounding: rebuild it from the samples held");
}

svs_code svs_alsvm_step(svs_alsvm *m, const svs_operation *op, int count, double *leverage, svs_error *err) {
    struct svi_change change[SVI_PASS_MAX];
    if (count < 1 || count > SVI_PASS_MAX)
        return svi_fail(err, SVS_INVALID, "a step takes one or two operations, not %d", count);
    for (int i = 0; i < count; i++) {
        if (!(op[i].weight > 0))
            return svi_fail(err, SVS_INVALID, "the weight of an operation must be positive, not %g",
                            op[i].weight);
        memcpy(m->r.x[i], op[i].x, (size_t)m->r.dim * sizeof(double));
        change[i] =
            (struct svi_change){.t = op[i].t, .inverse_weight = (op[i].remove ? -1 : 1) / op[i].weight};
    }
    svs_code code = svi_alsvm_step(m, change, count, err);
    for (int i = 0; leverage && i < count; i++)
        leverage[i] = change[i].leverage;
    return code;
}

/* ---- the matrix as a whole */

/* A sweep with one input applies what is pending on the way. */
void svs_alsvm_apply(svs_alsvm *m, const double *v, double *out) {
    memcpy(m->r.x[0], v, (size_t)m->r.dim * sizeof *v);
    m->kernels->sweep(&m->r, 1);
    memcpy(out, m->r.y[0], (size_t)m->r.dim * sizeof *out);
}

/* For a P that must not change by being read: what is pending stays pending, so that the bits of a stream do
 * not depend on when it is read. */
void svi_alsvm_inverse_times(const svs_alsvm *m, const double *v, double *out) {
    const struct svi_recursion *r = &m->r;
    memset(out, 0, (size_t)r->dim * sizeof *out);
    for (int i = 0; i < r->dim; i++)
        for (int j = 0; j <= i; j++) {
            double p = *alsvm_at(m, i, j);
            out[i] += p * v[j];
            out[j] += i == j ? 0 : p * v[i];
        }
    for (int k = 0; k < r->pending; k++) {
        const double s = svi_dot(r->cq[k], v, r->dim);
        for (int j = 0; j < r->dim; j++)
            out[j] += s * r->q[k][j];
    }
}

static void alsvm_set_matrix(svs_alsvm *m, const double *p) {
    for (int i = 0; i < m->r.dim; i++)
        for (int j = 0; j <= i; j++)
            alsvm_set_entry(m, i, j, p[(size_t)i * m->r.dim + j]);
}

/* w_k = P r_k. */
void svi_alsvm_set_inverse(svs_alsvm *m, const double *p, const double *r) {
    int n = m->r.dim;
    m->r.pending = 0;
    alsvm_set_matrix(m, p);
    for (int k = 0; k < m->r.rows; k++)
        svs_alsvm_apply(m, r + (size_t)k * n, alsvm_weights(m, k));
}

svs_code svs_alsvm_set(svs_alsvm *m, double *gram, const double *r, svs_error *err) {
    int n = m->r.dim;
    if (!svi_invert_spd(gram, n))
        return svi_fail(err, SVS_NUMERIC,
                        "the Gram matrix (%d x %d) is not positive definite in floating point", n, n);
    svi_alsvm_set_inverse(m, gram, r);
    return SVS_OK;
}

/* w = P r of the new row (ALGORITHMS 1). */
svs_code svs_alsvm_add_row(svs_alsvm *m, const double *r, svs_error *err) {
    SVI_TRY(svi_alsvm_reserve(m, m->kernels, m->r.dim, m->r.rows + 1, err));
    memset(alsvm_weights(m, m->r.rows), 0, (size_t)m->r.padded * sizeof(double));
    svs_alsvm_apply(m, r, alsvm_weights(m, m->r.rows));
    m->r.rows++;
    return SVS_OK;
}

/* Moves to a larger layout, with the old content in its corner. What was reserved stays so: a capacity once
 * taken must not be lost. */
static svs_code alsvm_move(svs_alsvm *m, int dim, svs_error *err) {
    const int strip = m->kernels->strip(dim);
    const size_t size = alsvm_size(dim, strip), w_size = alsvm_w_size(dim, strip, m->r.rows);
    svs_alsvm wider = {.kernels = m->kernels,
                       .r.rows = m->r.rows,
                       .memory_size = size > m->memory_size ? size : m->memory_size,
                       .w_size = w_size > m->w_size ? w_size : m->w_size};
    wider.memory = svi_alloc(wider.memory_size);
    wider.r.w = svi_alloc(wider.w_size);
    if (!wider.memory || !wider.r.w) {
        svi_free(wider.memory);
        svi_free(wider.r.w);
        return svi_fail_memory(err, "the matrix P");
    }
    alsvm_shape(&wider, dim);
    alsvm_flush(m); /* only now: a failure changes not even what is pending */
    for (int i = 0; i < m->r.dim; i++)
        for (int j = 0; j <= i; j++)
            alsvm_set_entry(&wider, i, j, *alsvm_at(m, i, j));
    for (int k = 0; k < m->r.rows; k++)
        memcpy(alsvm_weights(&wider, k), alsvm_weights(m, k), (size_t)m->r.dim * sizeof(double));
    svi_free(m->memory);
    svi_free(m->r.w);
    *m = wider;
    return SVS_OK;
}

/* A new coordinate is independent of the others: 1 / nu on the diagonal, and zeros, which are there already.
 */
svs_code svs_alsvm_grow(svs_alsvm *m, int dim, double nu_new, svs_error *err) {
    int old = m->r.dim;
    if (dim < old || !(nu_new > 0))
        return svi_fail(err, SVS_INVALID,
                        "a model of %d features cannot shrink to %d, and nu must be positive", old, dim);
    if (m->kernels->strip(dim) != m->r.strip || alsvm_padded(dim, m->r.strip) > m->r.padded) {
        svs_code code = alsvm_move(m, dim, err);
        if (code != SVS_OK)
            return code;
    } else {
        alsvm_flush(m);
    }
    m->r.dim = dim;
    for (int i = old; i < dim; i++)
        alsvm_set_entry(m, i, i, 1 / nu_new);
    return SVS_OK;
}

/* ---- the archive */

/* P <-> its lower triangle, row by row. */
static void alsvm_move_triangle(svs_alsvm *m, double *scratch, bool out) {
    for (int i = 0; i < m->r.dim; i++)
        for (int j = 0; j <= i; j++, scratch++)
            if (out)
                *scratch = *alsvm_at(m, i, j);
            else
                alsvm_set_entry(m, i, j, *scratch);
}

/* The most changes that wait between two steps: more than a step's own only where P is far larger than the
 * first-level cache. */
static int alsvm_pending_most(int dim) {
    return dim <= 64 ? SVI_PASS_MAX : SVI_PENDING_MAX;
}

size_t svi_alsvm_packed(int dim, int rows) {
    return (size_t)svi_triangle(dim) + (size_t)(rows + alsvm_pending_most(dim)) * (size_t)dim;
}

static inline double *alsvm_copy(double *restrict to, const double *restrict from, int n) {
    for (int i = 0; i < n; i++)
        to[i] = from[i];
    return to + n;
}

/* Column by column of each strip, what lies on the diagonal and below: long runs of memory on both sides.
 * The mirror images in diagonal blocks are left out, and of what is pending the signs are bits. */
void svi_alsvm_pack(svs_alsvm *m, struct svi_packed *to, double *values) {
    struct svi_recursion *r = &m->r;
    if (r->pending > alsvm_pending_most(r->dim)) /* never between two steps of ours */
        /* Never between two steps of ours. Packing may not change a bit otherwise. */
        alsvm_flush(m);
    *to = (struct svi_packed){.pending = (uint8_t)r->pending};
    for (int row = 0; row < r->dim; row += r->strip) {
        const int end = row + r->strip < r->dim ? row + r->strip : r->dim;
        for (int j = 0; j < end; j++) {
            const int first = j > row ? j : row;
            values = alsvm_copy(values, alsvm_at(m, first, j), end - first);
        }
    }
    for (int k = 0; k < r->pending; k++) {
        to->adds |= (uint8_t)(alsvm_pending_adds(r, k) << k);
        values = alsvm_copy(values, r->q[k], r->dim);
    }
    for (int k = 0; k < r->rows; k++)
        values = alsvm_copy(values, alsvm_weights(m, k), r->dim);
}

void svi_alsvm_unpack(svs_alsvm *m, const struct svi_packed *from, const double *values) {
    struct svi_recursion *r = &m->r;
    for (int row = 0; row < r->dim; row += r->strip) {
        const int end = row + r->strip < r->dim ? row + r->strip : r->dim;
        for (int j = 0; j < end; j++) {
            const int first = j > row ? j : row;
            alsvm_copy(alsvm_at(m, first, j), values, end - first);
            for (int i = first; j >= row && i < end; i++)
                *alsvm_at(m, j, i) = values[i - first];
            values += end - first;
        }
    }
    r->pending = from->pending;
    for (int k = 0; k < r->pending; k++, values += r->dim) {
        const bool adds = from->adds >> k & 1;
        alsvm_copy(r->q[k], values, r->dim);
        for (int j = 0; j < r->dim; j++)
            r->cq[k][j] = adds ? -values[j] : values[j];
    }
    for (int k = 0; k < r->rows; k++, values += r->dim)
        alsvm_copy(alsvm_weights(m, k), values, r->dim);
}

static void alsvm_archive_pending(struct svi_archive *a, struct svi_recursion *r) {
    char text[SVI_KEY_MAX];
    int pending = r->pending, bits = 0; /* bit k: change k is an addition */
    for (int k = 0; k < r->pending; k++)
        bits |= alsvm_pending_adds(r, k) << k;
    svi_archive_int(a, "pending", &pending, 0, SVI_PENDING_MAX);
    svi_archive_int(a, "signs", &bits, 0, (1 << pending) - 1);
    for (int k = 0; k < pending && svi_archive_ok(a); k++) {
        svi_archive_finite(a, svi_archive_key(text, "q", k), r->q[k], r->dim);
        for (int j = 0; a->loading && j < r->dim; j++)
            r->cq[k][j] = bits >> k & 1 ? -r->q[k][j] : r->q[k][j];
    }
    if (a->loading && svi_archive_ok(a))
        r->pending = pending;
}

void svi_alsvm_archive(struct svi_archive *a, svs_alsvm *m, double *scratch) {
    char text[SVI_KEY_MAX];
    if (!a->loading)
        alsvm_move_triangle(m, scratch, true);
    svi_archive_finite(a, "P", scratch, svi_triangle(m->r.dim));
    if (a->loading && svi_archive_ok(a))
        alsvm_move_triangle(m, scratch, false);
    alsvm_archive_pending(a, &m->r);
    for (int k = 0; k < m->r.rows && svi_archive_ok(a); k++)
        svi_archive_finite(a, svi_archive_key(text, "w", k), alsvm_weights(m, k), m->r.dim);
}

/* ---- many operations at once */

struct alsvm_block {
    struct svi_pool pool;
    int n, dim, rows;
    double *p;     /* dim x dim */
    double *a;     /* n x dim, samples; then unused */
    double *v;     /* n x dim: P A', turned into V row by row */
    double *t;     /* n x n, lower: T, turned into L */
    double *u;     /* n x rows: t - A w, turned into U */
    double *pivot; /* n: Delta, or 0 = skipped */
};

/* T = A P A' and the innovations against the w of before; P is taken as a whole, so one product with each
 * serves all operations. */
static void alsvm_block_fill(struct alsvm_block *b, svs_alsvm *m, const svs_operation *op) {
    svs_alsvm_inverse(m, b->p);
    for (int i = 0; i < b->n; i++) {
        double *u = b->u + (size_t)i * b->rows;
        memcpy(b->a + (size_t)i * b->dim, op[i].x, (size_t)b->dim * sizeof(double));
        svs_alsvm_scores(m, op[i].x, u);
        for (int k = 0; k < b->rows; k++)
            u[k] = op[i].t[k] - u[k];
    }
    cblas_dsymm(CblasRowMajor, CblasRight, CblasLower, b->n, b->dim, 1, b->p, b->dim, b->a, b->dim, 0, b->v,
                b->dim);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, b->n, b->n, b->dim, 1, b->a, b->dim, b->v, b->dim, 0,
                b->t, b->n);
}

/* Row i of the elimination: L_ij, U_i and the row of V, then the pivot Delta_i = S_ii^-1 + T_ii - sum L_ij^2
 * Delta_j. False when the pivot has the wrong sign: an addition's is at least 1 / s, a removal's lies in [-1
 * / s, 0). */
static bool alsvm_block_eliminate(struct alsvm_block *b, int i, const svs_operation *op) {
    double *ti = b->t + (size_t)i * b->n, *ui = b->u + (size_t)i * b->rows, *vi = b->v + (size_t)i * b->dim;
    double d = ti[i] + (op->remove ? -1 : 1) / op->weight;
    for (int j = 0; j < i; j++) {
        const double *tj = b->t + (size_t)j * b->n;
        if (b->pivot[j] == 0)
            continue;
        double s = ti[j]; /* still T_ij minus what the rows before j took */
        for (int k = 0; k < j; k++)
            if (b->pivot[k] != 0)
                s -= ti[k] * tj[k] * b->pivot[k];
        double l = ti[j] = s / b->pivot[j];
        d -= l * l * b->pivot[j];
        for (int k = 0; k < b->rows; k++)
            ui[k] -= l * b->u[(size_t)j * b->rows + k];
        cblas_daxpy(b->dim, -l, b->v + (size_t)j * b->dim, 1, vi, 1);
    }
    b->pivot[i] = d;
    return op->remove ? d < 0 && d >= -1 / op->weight : d >= 1 / op->weight && d < INFINITY;
}

/* Scores are final at row i, before its own change: that is what lets FALSVM decide here. A skipped
 * operation has pivot 0, which drops its column from all later rows. */
static bool alsvm_block_solve(struct alsvm_block *b, const svs_operation *op, bool falsvm, bool *skip,
                              double *scores) {
    for (int i = 0; i < b->n; i++) {
        bool good = alsvm_block_eliminate(b, i, &op[i]);
        const double *u = b->u + (size_t)i * b->rows;
        for (int k = 0; scores && k < b->rows; k++)
            scores[(size_t)i * b->rows + k] = op[i].t[k] - u[k];
        if (skip) /* FALSVM: what is on the right side of the boundary, and removals of what was skipped */
            skip[i] = falsvm && (op[i].remove ? skip[i] : op[i].t[0] * (op[i].t[0] - u[0]) > 0);
        if (skip && skip[i])
            b->pivot[i] = 0;
        else if (!good)
            return false;
    }
    return true;
}

/* P <- P - V Delta^-1 V' on the lower triangle, w <- w + V Delta^-1 U. */
static void alsvm_block_apply(struct alsvm_block *b, svs_alsvm *m) {
    for (int i = 0; i < b->n; i++) {
        if (b->pivot[i] == 0)
            continue;
        const double *v = b->v + (size_t)i * b->dim, *u = b->u + (size_t)i * b->rows;
        cblas_dsyr(CblasRowMajor, CblasLower, b->dim, -1 / b->pivot[i], v, 1, b->p, b->dim);
        for (int k = 0; k < b->rows; k++)
            cblas_daxpy(b->dim, u[k] / b->pivot[i], v, 1, alsvm_weights(m, k), 1);
    }
    alsvm_set_matrix(m, b->p);
}

/* Nothing of m is changed before the elimination has succeeded. */
svs_code svs_alsvm_block(svs_alsvm *m, const svs_operation *op, int count, bool falsvm, bool *skip,
                         double *scores, svs_error *err) {
    struct alsvm_block b = {.n = count, .dim = m->r.dim, .rows = m->r.rows};
    if (count < 1 || (falsvm && (b.rows != 1 || !skip)))
        return svi_fail(err, SVS_INVALID, "a block needs operations; FALSVM blocks one row and a skip array");
    const size_t n = (size_t)count, d = (size_t)b.dim;
    b.p = svi_pool_doubles(&b.pool, d * d);
    SVI_POOL_DOUBLES(&b.pool, n * d, &b.a, &b.v);
    b.t = svi_pool_doubles(&b.pool, n * n);
    b.u = svi_pool_doubles(&b.pool, n * (size_t)b.rows);
    b.pivot = svi_pool_doubles(&b.pool, n);
    svs_code code = svi_pool_code(&b.pool, "a block of operations", err);
    if (code == SVS_OK) {
        alsvm_block_fill(&b, m, op);
        if (alsvm_block_solve(&b, op, falsvm, skip, scores))
            alsvm_block_apply(&b, m);
        else
            code = svi_fail(err, SVS_NUMERIC, "a pivot of the block has the wrong sign; nothing was changed");
    }
    svi_pool_free(&b.pool);
    return code;
}
