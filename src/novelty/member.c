#include "novelty/member.h"

#include <math.h>
#include <string.h>

#include <cblas.h>

#include "base/alloc.h"
#include "base/fail.h"

#define BLOCK       512  /* rows looked at together */
#define FIRST_ROOM  64   /* points */
#define SAMPLE      2048 /* rows drawn first, so that the sweeps over all find little left to do */
#define SWEEPS_MAX  100
#define ROUNDS_MAX  1000000
#define CHECKED_MAX 4096 /* rows of FOSVM2's certificate */

/* Some rows that lie together, and which ones they are. */
struct block {
    struct svi_points points;
    const double *norm2;
    int64_t first;        /* row of the first ... */
    const int64_t *index; /* ... or the row of each */
};

static int64_t row_of(const struct block *b, int64_t i) {
    return b->index ? b->index[i] : b->first + i;
}

void svi_member_clear(struct svi_member_fit *f) {
    svi_hull_clear(&f->hull);
    svi_free(f->active);
    svi_free(f->support);
    svi_free(f->support_norm2);
    svi_free(f->kernel);
    svi_free(f->member_of);
    svi_free(f->row);
    svi_free(f->picked);
    svi_free(f->picked_norm2);
    svi_free(f->picks);
}

static int64_t draw_size(const struct svi_member_fit *f) {
    const int64_t wanted = f->options->fosvm == 2 ? f->options->m : SAMPLE;
    return wanted < f->rows.count ? wanted : f->rows.count;
}

/* One array more, grown from `from` to `to` elements. */
static svs_code grow(void **array, size_t from, size_t to, size_t element, svs_error *err) {
    void *more = svi_realloc(*array, from * element, to * element);
    if (!more)
        return svi_fail_memory(err, "the active set of the one-class model");
    *array = more;
    return SVS_OK;
}

static svs_code reserve(struct svi_member_fit *f, int room, svs_error *err) {
    const size_t old = f->active ? (size_t)f->hull.room : 0, stride = (size_t)f->rows.stride;
    const size_t n = (size_t)room;
    svs_code code = grow((void **)&f->active, old, n, sizeof *f->active, err);
    if (code == SVS_OK)
        code = grow((void **)&f->support, old * stride, n * stride, sizeof *f->support, err);
    if (code == SVS_OK)
        code = grow((void **)&f->support_norm2, old, n, sizeof *f->support_norm2, err);
    if (code == SVS_OK)
        code = grow((void **)&f->row, old, n + 1, sizeof *f->row, err);
    if (code == SVS_OK)
        code = grow((void **)&f->kernel, old * BLOCK, n * BLOCK, sizeof *f->kernel, err);
    if (code == SVS_OK)
        code = f->hull.room ? svi_hull_reserve(&f->hull, room, err) : svi_hull_init(&f->hull, room, err);
    return code;
}

static svs_code prepare(struct svi_member_fit *f, svs_error *err) {
    const size_t draw = (size_t)draw_size(f);
    f->member_of = svi_alloc_array(BLOCK, sizeof *f->member_of);
    f->picked = svi_alloc_array(draw * (size_t)f->rows.stride, sizeof *f->picked);
    f->picked_norm2 = svi_alloc_array(draw, sizeof *f->picked_norm2);
    f->picks = svi_alloc_array(draw, sizeof *f->picks);
    if (!f->member_of || !f->picked || !f->picked_norm2 || !f->picks)
        return svi_fail_memory(err, "the work space of the one-class model");
    return reserve(f, FIRST_ROOM, err);
}

/* ---- points of the active set */

static int64_t block_size(const struct block *b) {
    return b->points.count;
}

static void kernel_row(struct svi_member_fit *f, const struct block *b, int point) {
    double *k = f->kernel + (size_t)point * BLOCK;
    const double *x = f->support + (size_t)point * (size_t)f->rows.stride;
    svi_similarity_gap(&f->similarity, &b->points, 0, block_size(b), x, k);
    svi_similarity_of_gap(&f->similarity, f->gamma, k, b->norm2, f->support_norm2[point], block_size(b), k);
}

static void forget_point(struct svi_member_fit *f, int i) {
    const int last = f->hull.count - 1;
    const size_t stride = (size_t)f->rows.stride;
    svi_hull_remove(&f->hull, i);
    if (i == last)
        return;
    f->active[i] = f->active[last];
    f->support_norm2[i] = f->support_norm2[last];
    memcpy(f->support + (size_t)i * stride, f->support + (size_t)last * stride, stride * sizeof *f->support);
    memcpy(f->kernel + (size_t)i * BLOCK, f->kernel + (size_t)last * BLOCK, BLOCK * sizeof *f->kernel);
}

/* Points without weight count for nothing; should one be missed later, it is found again. */
static void forget_idle(struct svi_member_fit *f) {
    for (int i = f->hull.count - 1; i >= 0; i--)
        if (f->hull.z[i] == 0)
            forget_point(f, i);
}

static bool is_full(const struct svi_member_fit *f) {
    return f->options->max > 0 && f->hull.support >= f->options->max;
}

/* Row i of the block joins the active set, and the small problem is solved again. */
static svs_code join(struct svi_member_fit *f, const struct block *b, int64_t i, svs_error *err) {
    const size_t stride = (size_t)f->rows.stride;
    svs_code code = f->hull.count == f->hull.room ? reserve(f, 2 * f->hull.room, err) : SVS_OK;
    if (code != SVS_OK)
        return code;
    const int n = f->hull.count;
    for (int a = 0; a < n; a++)
        f->row[a] = f->kernel[(size_t)a * BLOCK + (size_t)i];
    f->row[n] = 1;
    f->active[n] = row_of(b, i);
    f->support_norm2[n] = b->norm2 ? b->norm2[i] : 0;
    memcpy(f->support + (size_t)n * stride, b->points.x + i * b->points.stride, stride * sizeof *f->support);
    svi_hull_add(&f->hull, f->row);
    kernel_row(f, b, n);
    svi_hull_solve(&f->hull);
    f->rounds++;
    return SVS_OK;
}

/* Memberships of the block's rows; returns the row with the smallest. */
static int64_t worst_of(struct svi_member_fit *f, const struct block *b) {
    const int n = (int)block_size(b);
    int64_t worst = 0;
    cblas_dgemv(CblasRowMajor, CblasTrans, f->hull.count, n, 1, f->kernel, BLOCK, f->hull.z, 1, 0,
                f->member_of, 1);
    for (int64_t i = 1; i < n; i++)
        if (f->member_of[i] < f->member_of[worst])
            worst = i;
    return worst;
}

/* Lets the worst row of the block join until none is outside (or `joins` have). */
static svs_code take_block(struct svi_member_fit *f, const struct block *b, int64_t joins, int64_t *joined,
                           svs_error *err) {
    const double edge = 1 - f->options->theta;
    svs_code code = SVS_OK;
    for (int a = 0; a < f->hull.count; a++)
        kernel_row(f, b, a);
    int64_t worst = worst_of(f, b);
    for (; joins > 0 && f->member_of[worst] < edge && !is_full(f) && code == SVS_OK; joins--) {
        code = join(f, b, worst, err);
        ++*joined;
        const int64_t before = worst;
        worst = worst_of(f, b);
        if (worst == before && f->member_of[worst] < edge) { /* it depends on the others to the last digit, or
                                                              * lies opposite to them (polynomial kernels) */
            --*joined;
            break;
        }
    }
    if (f->member_of[worst] < f->worst)
        f->worst = f->member_of[worst];
    for (int64_t i = 0; i < block_size(b); i++)
        f->outside += f->member_of[i] < edge;
    return code;
}

static struct block rows_block(const struct svi_member_fit *f, int64_t first) {
    const int64_t left = f->rows.count - first;
    struct block b = {.points = f->rows, .first = first};
    b.points.x += first * b.points.stride;
    b.points.count = left < BLOCK ? left : BLOCK;
    b.norm2 = f->norm2 ? f->norm2 + first : NULL;
    return b;
}

static void tell(const struct svi_member_fit *f) {
    if (f->options->progress)
        f->options->progress(f->options->user, f->member, f->members, f->hull.count, f->worst);
}

/* ---- the two algorithms */

static void draw(struct svi_member_fit *f, int64_t count) {
    const size_t stride = (size_t)f->rows.stride;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = (int64_t)(svi_random_next(&f->random) % (uint64_t)f->rows.count);
        f->picks[i] = row;
        memcpy(f->picked + (size_t)i * stride, f->rows.x + (size_t)row * stride, stride * sizeof *f->picked);
        f->picked_norm2[i] = f->norm2 ? f->norm2[row] : 0;
    }
}

static struct block drawn_block(const struct svi_member_fit *f, int64_t first, int64_t count) {
    const int64_t left = count - first;
    return (struct block){
        .points = {f->picked + first * f->rows.stride, f->rows.stride, left < BLOCK ? left : BLOCK},
        .norm2 = f->norm2 ? f->picked_norm2 + first : NULL,
        .index = f->picks + first};
}

static svs_code take_drawn(struct svi_member_fit *f, int64_t joins, int64_t *joined, svs_error *err) {
    const int64_t count = draw_size(f);
    svs_code code = SVS_OK;
    draw(f, count);
    f->worst = 1;
    f->outside = 0;
    for (int64_t first = 0; first < count && code == SVS_OK; first += BLOCK) {
        const struct block b = drawn_block(f, first, count);
        code = take_block(f, &b, joins, joined, err);
    }
    return code;
}

/* One block; what is known of the `clean` blocks before holds on only if no row of it joins. Returns how many
 * blocks on end the present model was held against. */
static int64_t visit(struct svi_member_fit *f, int64_t block, int64_t joins, int64_t clean, svs_code *code,
                     svs_error *err) {
    const struct block b = rows_block(f, block * BLOCK);
    const double worst = f->worst;
    const int64_t outside = f->outside;
    int64_t joined = 0;
    f->worst = 1;
    f->outside = 0;
    *code = take_block(f, &b, joins, &joined, err);
    if (joined > 0)
        return 1;
    f->worst = fmin(f->worst, worst);
    f->outside += outside;
    return clean + 1;
}

/* The worst of all rows joins, block after block, round and round; done when the model has not changed for as
 * many blocks as there are. On the last round that there may be it is only looked at. */
static svs_code fit_all(struct svi_member_fit *f, svs_error *err) {
    const int64_t blocks = (f->rows.count + BLOCK - 1) / BLOCK, last = (SWEEPS_MAX - 1) * blocks;
    int64_t joined = 0, clean = 0;
    svs_code code = take_drawn(f, INT64_MAX, &joined, err);
    f->worst = 1;
    f->outside = 0;
    for (int64_t i = 0; clean < blocks && code == SVS_OK; i++) {
        clean = visit(f, i % blocks, i < last ? INT64_MAX : 0, clean, &code, err);
        if ((i + 1) % blocks == 0) {
            forget_idle(f);
            tell(f);
        }
    }
    forget_idle(f);
    tell(f);
    return code;
}

/* Rows that must be drawn on end with none outside before the fit is done. A model that leaves more than
 * epsilon outside passes m of them with probability e^(-m epsilon), but it is put to this test after every
 * round r, and passing once would do: with ln((r + 1)(r + 2)) / epsilon rows more all tests together are
 * passed by such a model with probability e^(-m epsilon) sum 1 / ((r + 1)(r + 2)) = e^(-m epsilon) at most.
 */
static double rows_to_pass(const struct svi_member_fit *f) {
    const double r = (double)f->rounds;
    return (double)draw_size(f) + log((r + 1) * (r + 2)) / f->options->epsilon;
}

/* The worst of m drawn rows joins, until so many rows held none outside. */
static svs_code fit_drawn(struct svi_member_fit *f, svs_error *err) {
    double passed = 0, worst = 1;
    svs_code code = SVS_OK;
    for (int64_t i = 0; i < ROUNDS_MAX && passed < rows_to_pass(f) && !is_full(f) && code == SVS_OK; i++) {
        int64_t joined = 0;
        const bool first = passed == 0;
        code = take_drawn(f, 1, &joined, err);
        passed = joined > 0 ? 0 : passed + (double)draw_size(f);
        worst = joined > 0 || first ? f->worst : fmin(worst, f->worst);
        if (i % 64 == 0)
            tell(f);
    }
    f->worst = worst;
    forget_idle(f);
    return code;
}

svs_code svi_member_fit(struct svi_member_fit *f, svs_error *err) {
    svs_code code = prepare(f, err);
    if (code != SVS_OK)
        return code;
    struct block b = rows_block(f, 0);
    b.points.count = 1;
    f->worst = 1;
    code = join(f, &b, 0, err);
    if (code == SVS_OK && f->rows.count > 1)
        code = f->options->fosvm == 2 ? fit_drawn(f, err) : fit_all(f, err);
    return code;
}
