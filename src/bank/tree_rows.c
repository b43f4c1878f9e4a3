/* The ring of rows for boosted trees.
 *
 * Invariants: rows from `oldest` up to `pushed` are held, at most `kept` of them; row i lies at i modulo
 * `capacity`; their columns from `known` on are 0. A column has its origin from the first row that has the
 * column: rows before it were 0 there, and are set to 0 less the origin then. When columns are added the
 * ring moves to a larger block; the rows keep their places, so nothing that counts them changes.
 *
 * Read in order: sizes, memory, rows, the archive. */
#include "bank/tree_rows.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/kernels.h"

#define KEPT_ROWS   20000   /* at most */
#define KEPT_VALUES 4000000 /* at most: fewer rows with very many columns */
#define MIN_KEPT    256

/* ---- sizes */

static int64_t rows_chunks(int64_t rows) {
    return (rows + SVI_TREE_CHUNK - 1) / SVI_TREE_CHUNK * SVI_TREE_CHUNK;
}

int64_t svi_tree_rows_kept(int d) {
    const int64_t rows = d > 0 ? KEPT_VALUES / d : KEPT_ROWS;
    return rows > KEPT_ROWS ? KEPT_ROWS : rows < MIN_KEPT ? MIN_KEPT : rows;
}

int64_t svi_tree_rows_slack(int d) {
    return svi_tree_rows_kept(d) / 4;
}

static int64_t rows_capacity(int d) {
    return rows_chunks(svi_tree_rows_kept(d) + svi_tree_rows_slack(d));
}

/* The arrays by their bytes a row, for a stride. */
enum { ROW_X, ROW_NUMBER, ROW_TARGET, ROW_WEIGHT, ROW_LABEL, ROW_LIVE, ROW_ARRAYS };
static size_t rows_bytes(int array, int stride) {
    const size_t bytes[ROW_ARRAYS] = {(size_t)stride * sizeof(float),
                                      sizeof(int64_t),
                                      sizeof(float),
                                      sizeof(float),
                                      sizeof(int32_t),
                                      sizeof(uint8_t)};
    return bytes[array];
}

static void rows_arrays(struct svi_tree_rows *r, void *at[ROW_ARRAYS]) {
    void *const now[ROW_ARRAYS] = {r->x, r->number, r->target, r->weight, r->label, r->live};
    memcpy(at, now, sizeof now);
}

double svi_tree_rows_memory(int d) {
    const int stride = svi_round_up(d + d / 2, 8);
    double bytes = 8.0 * stride;
    for (int i = 0; i < ROW_ARRAYS; i++)
        bytes += (double)rows_bytes(i, stride) * (double)rows_capacity(d);
    return bytes;
}

/* ---- the memory of the ring */

static void rows_free(struct svi_tree_rows *r) {
    void *at[ROW_ARRAYS];
    rows_arrays(r, at);
    for (int i = 0; i < ROW_ARRAYS; i++)
        svi_free(at[i]);
    svi_free(r->origin);
}

static svs_code rows_alloc(struct svi_tree_rows *r, svs_error *err) {
    const size_t n = (size_t)r->capacity;
    r->origin = svi_alloc_array((size_t)r->stride, sizeof *r->origin);
    r->x = svi_alloc_array(n, rows_bytes(ROW_X, r->stride));
    r->number = svi_alloc_array(n, sizeof *r->number);
    r->target = svi_alloc_array(n, sizeof *r->target);
    r->weight = svi_alloc_array(n, sizeof *r->weight);
    r->label = svi_alloc_array(n, sizeof *r->label);
    r->live = svi_alloc_array(n, sizeof *r->live);
    if (r->origin && r->x && r->number && r->target && r->weight && r->label && r->live)
        return SVS_OK;
    rows_free(r);
    return svi_fail_memory(err, "the rows of boosted trees");
}

/* Copies the rows that both rings can hold. */
static void rows_move(const struct svi_tree_rows *from, struct svi_tree_rows *to) {
    memcpy(to->origin, from->origin, (size_t)from->d * sizeof *to->origin);
    for (int64_t i = to->oldest; i < to->pushed; i++) {
        const int64_t a = i % from->capacity, b = i % to->capacity;
        memcpy(to->x + b * to->stride, from->x + a * from->stride, (size_t)from->d * sizeof *to->x);
        to->number[b] = from->number[a];
        to->target[b] = from->target[a];
        to->weight[b] = from->weight[a];
        to->label[b] = from->label[a];
        to->live[b] = from->live[a];
    }
}

svs_code svi_tree_rows_grow(struct svi_tree_rows *r, int d, svs_error *err) {
    const int64_t kept = svi_tree_rows_kept(d);
    struct svi_tree_rows to = *r;
    to.d = d;
    to.kept = kept;
    to.capacity = rows_capacity(d);
    if (to.pushed - to.oldest > kept)
        to.oldest = to.pushed - kept;
    if (d > r->stride || to.capacity != r->capacity || !r->x) {
        /* By half at least, so that columns that are added one by one do not copy the ring each time. */
        to.stride =
            d > r->stride
                ? svi_round_up(r->stride > 0 && d < r->stride + r->stride / 2 ? r->stride + r->stride / 2 : d,
                               8)
                : r->stride;
        if (to.stride == 0)
            to.stride = 8;
        SVI_TRY(rows_alloc(&to, err));
        if (r->x)
            rows_move(r, &to);
        rows_free(r);
    }
    *r = to;
    return SVS_OK;
}

void svi_tree_rows_clear(struct svi_tree_rows *r) {
    rows_free(r);
    *r = (struct svi_tree_rows){0};
}

void svi_tree_rows_empty(struct svi_tree_rows *r) {
    r->pushed = r->oldest = 0;
    r->known = 0;
    r->target_origin = 0;
}

/* ---- rows */

static float rows_value(double v) {
    return v > FLT_MAX ? FLT_MAX : v >= -FLT_MAX ? (float)v : v < -FLT_MAX ? -FLT_MAX : 0;
}

void svi_tree_rows_convert(const struct svi_tree_rows *r, const double *first, const double *x, float *out) {
    const int shift = first != NULL;
    if (first)
        out[0] = rows_value(*first - r->origin[0]);
    for (int j = shift; j < r->d; j++)
        out[j] = rows_value(x[j - shift] - r->origin[j]);
}

/* The origins of columns that have none yet. Earlier rows had 0 there. */
static void rows_found(struct svi_tree_rows *r, const double *first, const double *x) {
    const int shift = first != NULL;
    for (; r->known < r->d; r->known++) {
        const int j = r->known;
        r->origin[j] = j < shift ? *first : x[j - shift];
        const float before = rows_value(-r->origin[j]);
        for (int64_t i = r->oldest; i < r->pushed; i++)
            r->x[i % r->capacity * r->stride + j] = before;
    }
}

void svi_tree_rows_push(struct svi_tree_rows *r, const struct svi_tree_row *row) {
    const int64_t at = r->pushed % r->capacity;
    if (r->pushed == 0)
        r->target_origin = row->target;
    rows_found(r, row->first, row->x);
    /* Numbers rise; where they start again, the host has no sample of the earlier ones any more. */
    if (r->pushed > r->oldest && r->number[(r->pushed - 1) % r->capacity] >= row->number)
        for (int64_t i = r->oldest; i < r->pushed; i++)
            r->number[i % r->capacity] = -1;
    svi_tree_rows_convert(r, row->first, row->x, r->x + at * r->stride);
    r->number[at] = row->number;
    r->target[at] = rows_value(row->target - r->target_origin);
    r->weight[at] = rows_value(row->weight);
    r->label[at] = row->label;
    r->live[at] = 1;
    r->pushed++;
    if (r->pushed - r->oldest > r->kept)
        r->oldest = r->pushed - r->kept;
}

/* The place of a row by halving: numbers rise, after those that are -1. -1: it is not there. */
static int64_t rows_place(const struct svi_tree_rows *r, int64_t number) {
    int64_t from = r->oldest, to = r->pushed;
    while (from < to) {
        const int64_t middle = from + (to - from) / 2;
        if (r->number[middle % r->capacity] < number)
            from = middle + 1;
        else
            to = middle;
    }
    return from < r->pushed && r->number[from % r->capacity] == number ? from : -1;
}

void svi_tree_rows_remove(struct svi_tree_rows *r, int64_t number) {
    const int64_t i = number >= 0 ? rows_place(r, number) : -1;
    if (i >= 0)
        r->live[i % r->capacity] = 0;
}

bool svi_tree_rows_live(const struct svi_tree_rows *r, int64_t number) {
    const int64_t i = number >= 0 ? rows_place(r, number) : -1;
    return i >= 0 && r->live[i % r->capacity];
}

void svi_tree_rows_renew(struct svi_tree_rows *r, int j) {
    if (j >= r->known)
        return;
    r->origin[j] = 0;
    for (int64_t i = r->oldest; i < r->pushed; i++)
        r->x[i % r->capacity * r->stride + j] = 0;
}

/* ---- the archive */

/* Rows are saved in chunks of places that are multiples of the chunk's size: they lie in one piece, and the
 * bytes do not depend on the capacity of the ring. Strides are not saved; a row is its d values. */
static void rows_archive_chunk(struct svi_archive *a, struct svi_tree_rows *r, int64_t from, int64_t to,
                               int classes) {
    const int64_t at = from % r->capacity, n = to - from;
    for (int64_t i = at; i < at + n && svi_archive_ok(a); i++)
        svi_archive_floats(a, "row", r->x + i * r->stride, r->d);
    svi_archive_int64s(a, "numbers", r->number + at, n, -1, INT64_MAX / 2);
    svi_archive_ints(a, "labels", r->label + at, n, -1, classes - 1);
    svi_archive_floats(a, "weights", r->weight + at, n);
    if (classes == 0)
        svi_archive_floats(a, "targets", r->target + at, n);
    svi_archive_bytes(a, "live", r->live + at, n);
}

void svi_tree_rows_archive(struct svi_archive *a, struct svi_tree_rows *r, int classes) {
    svi_archive_int64(a, "pushed", &r->pushed, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "oldest", &r->oldest, 0, SVI_COUNT_MAX);
    svi_archive_int(a, "known", &r->known, 0, r->d);
    svi_archive_finite(a, "origin", r->origin, r->d);
    svi_archive_finite(a, "target origin", &r->target_origin, 1);
    if (!svi_archive_ok(a) ||
        !svi_archive_check(a, r->oldest <= r->pushed && r->pushed - r->oldest <= r->kept,
                           "it has more rows for trees than it can"))
        return;
    for (int64_t i = r->oldest; i < r->pushed && svi_archive_ok(a);) {
        const int64_t end = i - i % SVI_TREE_CHUNK + SVI_TREE_CHUNK, to = end < r->pushed ? end : r->pushed;
        rows_archive_chunk(a, r, i, to, classes);
        i = to;
    }
}
