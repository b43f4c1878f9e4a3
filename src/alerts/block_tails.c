/* Block maxima and their tails. Parts: what fits share, arrays, one fit, the surprise of a value, blocks,
 * columns and archive.
 *
 * Layout: the maxima of one series are adjacent, by the place of the block. What each row reads (how high a
 * value must be to count, how much it may count) is adjacent over all series, so that loops run along a row.
 *
 * A block that ends is not taken over at once. Its maxima wait in `last`, and some series a row store theirs,
 * so that no row pays for all fits. Series below `done` have stored it and go by `shape`; the others still go
 * by `before`. All have stored it before the next block ends, so one `last` is enough.
 *
 * A fit is made only where the upper maxima have changed. The mixture over shapes, which is dear, is
 * evaluated only for a value beyond the tail of the lightest shape, and cached until the maxima change. */
#include "alerts/block_tails.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "base/wide.h"
#include "novelty/tail.h"

#define MIN_BLOCKS 4 /* blocks before anything is beyond them */
#define SHAPES     SVI_BLOCK_SHAPES
/* Series that store their maximum in one row; more where a block would end before all have. */
#define AT_ONCE 32

/* k, the number of the n maxima that make the tail. */
static int tails_top(int n) {
    return n >= 16 ? n / 4 : n >= 8 ? 4 : n / 2;
}

/* The lightest shape bounds the surprise from above: with xi -> 0, an excess of b mean excesses has
 * probability k / n (1 + b / k)^-k. Returns the b at which that is p. */
static double tails_excess_at(double p, int k, int n) {
    const double share = (double)k / n;
    return p >= share ? 0 : k * (pow(share / p, 1.0 / k) - 1);
}

/* What all fits to `count` blocks of `length` rows share. Below MIN_BLOCKS there is no fit. */
static struct svi_block_shape tails_shape_of(const struct svi_block_tails *t, int count, int64_t length) {
    const int k = count >= MIN_BLOCKS ? tails_top(count) : 0;
    struct svi_block_shape shape = {.count = count, .length = length};
    if (k < 1)
        return shape;
    /* `begins`: log probability that a row exceeds u. `telling`: where the surprise may reach `least`; the
     * probability of a row is converted to that of a block. `most`: a value counts in a maximum at most as
     * one that occurs once in 4 n blocks (block_tails.h, ONE EVENT DOES NOT BLIND). */
    shape.begins = log((double)k / (count + 1) / (double)length);
    shape.over = NAN;
    shape.telling = (float)tails_excess_at(-expm1(-pow(10, -t->least) * (double)length), k, count + 1);
    shape.most = (float)tails_excess_at(0.25 / count, k, count);
    return shape;
}

/* ---- what it consists of */

enum { PARTS, COLUMNS, BLOCKS, DIMS };

#define A_SERIES SVI_AXIS(PARTS), SVI_AXIS(COLUMNS)

static const struct svi_array arrays[] = {
    SVI_ARRAY_WITH(struct svi_block_tails, maxima, "maxima", SVI_ARRAY_LOWEST, 0, A_SERIES, SVI_AXIS(BLOCKS)),
    SVI_ARRAY_WITH(struct svi_block_tails, now, "now", SVI_ARRAY_LOWEST, -INFINITY, A_SERIES),
    SVI_ARRAY_WITH(struct svi_block_tails, last, "last", SVI_ARRAY_LOWEST, -INFINITY, A_SERIES),
    SVI_ARRAY_WITH(struct svi_block_tails, above, NULL, SVI_ARRAY_ANY, INFINITY, A_SERIES),
    SVI_ARRAY_WITH(struct svi_block_tails, most, NULL, SVI_ARRAY_ANY, INFINITY, A_SERIES),
    SVI_ARRAY_WITH(struct svi_block_tails, telling, NULL, SVI_ARRAY_ANY, INFINITY, A_SERIES),
    SVI_ARRAY(struct svi_block_tails, excess, NULL, A_SERIES),
    SVI_ARRAY(struct svi_block_tails, held, NULL, A_SERIES),
};
static const struct svi_arrays tails_arrays = SVI_ARRAYS(arrays, "the tails of the sensors");

struct tails_dims {
    int32_t of[DIMS];
};

static struct tails_dims tails_dims(const struct svi_block_tails *t, int capacity) {
    return (struct tails_dims){{t->parts, t->columns, capacity}};
}

svs_code svi_block_tails_init(struct svi_block_tails *t, int parts, int columns, bool grows, double least,
                              svs_error *err) {
    *t = (struct svi_block_tails){.parts = parts,
                                  .columns = columns,
                                  .series = parts * columns,
                                  .capacity = grows ? 0 : SVI_BLOCKS,
                                  .least = least,
                                  .longest = SVI_BLOCK_MIN_ROWS,
                                  .done = parts * columns};
    const struct tails_dims dims = tails_dims(t, t->capacity);
    t->shape = t->before = tails_shape_of(t, 0, SVI_BLOCK_MIN_ROWS);
    svs_code code = svi_arrays_alloc(&tails_arrays, t, dims.of, err);
    if (code == SVS_OK && !grows && !(t->mixtures = svi_alloc_array((size_t)t->series, sizeof *t->mixtures)))
        code = svi_fail_memory(err, "the tails of the sensors");
    if (code != SVS_OK)
        svi_block_tails_clear(t);
    return code;
}

void svi_block_tails_clear(struct svi_block_tails *t) {
    svi_arrays_free(&tails_arrays, t);
    svi_free(t->mixtures);
    *t = (struct svi_block_tails){0};
}

static bool tails_merge(const struct svi_block_tails *t) {
    return t->shape.length != t->before.length;
}

/* Places in use. While pairs are being merged, series that wait still have all SVI_BLOCKS. */
static int tails_blocks(const struct svi_block_tails *t) {
    const int count = t->before.count > t->shape.count ? t->before.count : t->shape.count;
    return tails_merge(t) ? SVI_BLOCKS : count;
}

static svs_code tails_resize(struct svi_block_tails *t, int capacity, svs_error *err) {
    const struct tails_dims from = tails_dims(t, t->capacity), to = tails_dims(t, capacity);
    const svs_code code = svi_arrays_resize(&tails_arrays, t, from.of, to.of, err);
    t->capacity = code == SVS_OK ? capacity : t->capacity;
    return code;
}

bool svi_block_tails_are_full(const struct svi_block_tails *t) {
    return tails_blocks(t) >= t->capacity && t->capacity < SVI_BLOCKS;
}

svs_code svi_block_tails_reserve(struct svi_block_tails *t, svs_error *err) {
    return svi_block_tails_are_full(t) ? tails_resize(t, (tails_blocks(t) + 2) / 2 * 2, err) : SVS_OK;
}

/* Blocks of a series: one that has not stored the last block yet has the number before it. */
static int tails_count(const struct svi_block_tails *t, int series) {
    return (series < t->done ? &t->shape : &t->before)->count;
}

static float *tails_maxima(const struct svi_block_tails *t, int series) {
    return t->maxima + (size_t)series * (size_t)t->capacity;
}

/* The shape that goes with the blocks of a series (tails_count). */
static struct svi_block_shape *tails_shape(struct svi_block_tails *t, int series) {
    return series < t->done ? &t->shape : &t->before;
}

int svi_block_tails_held(const struct svi_block_tails *t, int series) {
    return t->held[series];
}

static void tails_count_held(struct svi_block_tails *t, int series) {
    const float *v = tails_maxima(t, series);
    const int count = tails_count(t, series);
    int held = 0;
    for (int i = 0; i < count; i++)
        held += v[i] != -INFINITY;
    t->held[series] = (uint8_t)held;
}

/* Returns the (k + 1)-th largest of n <= SVI_BLOCKS values, and in over[SVI_BLOCKS] by how much each value
 * exceeds it, 0 for the others. Comparing each pair needs no branch, which beats a selection at this size. */
SVI_WIDE
static float tails_largest_but(const float *restrict v, int n, int k, float *restrict over) {
    float all[SVI_BLOCKS], threshold = INFINITY;
    int greater[SVI_BLOCKS] = {0};
    for (int i = 0; i < SVI_BLOCKS; i++)
        all[i] = i < n ? v[i] : -INFINITY;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < SVI_BLOCKS; i++)
            greater[i] += all[j] > all[i];
    for (int i = 0; i < SVI_BLOCKS; i++)
        threshold = greater[i] <= k && all[i] < threshold ? all[i] : threshold;
    for (int i = 0; i < SVI_BLOCKS; i++)
        over[i] = all[i] > threshold ? all[i] - threshold : 0;
    return threshold;
}

/* The shape for the blocks in which the series had values. A series that started late has fewer than the
 * others. Late series mostly have the same number, so one cached shape serves them. */
static struct svi_block_shape *tails_own_shape(struct svi_block_tails *t, int series) {
    struct svi_block_shape *shape = tails_shape(t, series);
    const int held = t->held[series];
    if (held == shape->count)
        return shape;
    if (t->late.count != held || t->late.length != shape->length)
        t->late = tails_shape_of(t, held, shape->length);
    return &t->late;
}

/* The levels of a series from its fit (u and the mean excess) and the shape of its blocks. */
static void tails_levels(struct svi_block_tails *t, int series, const struct svi_block_shape *shape) {
    const float threshold = t->above[series], mean = t->excess[series];
    t->telling[series] = threshold + mean * shape->telling;
    t->most[series] = mean > 0 ? threshold + mean * shape->most : INFINITY;
}

/* Fits the tail of a series: u is the (k + 1)-th largest maximum, the excesses are over it. With too few
 * blocks everything is infinite: no value counts as surprising, and none is limited. */
static void tails_fit(struct svi_block_tails *t, int series) {
    float over[SVI_BLOCKS], sum = 0;
    const int n = tails_shape(t, series)->count, held = t->held[series];
    const int k = held >= MIN_BLOCKS ? tails_top(held) : 0;
    const float threshold = k > 0 ? tails_largest_but(tails_maxima(t, series), n, k, over) : -INFINITY;
    if (t->mixtures)
        t->mixtures[series].known = false;
    t->excess[series] = 0;
    t->above[series] = t->telling[series] = t->most[series] = INFINITY;
    if (threshold == -INFINITY) /* too few blocks with values */
        return;
    for (int i = 0; i < n; i++)
        sum += over[i];
    t->excess[series] = sum / (float)k;
    t->above[series] = threshold;
    tails_levels(t, series, tails_own_shape(t, series));
}

/* Natural logarithms of SHAPES numbers from 1 to 2^1000, in place. x = 2^e m with m near 1, and log
 * m = 2 atanh((m - 1) / (m + 1)) by its series. The result is accurate to a few units of 1e-16.
 * These loops become vector code, calls of log do not. */
static inline __attribute__((always_inline)) void tails_logs(double *restrict x) {
    uint64_t bits[SHAPES], power[SHAPES];
    double m[SHAPES], e[SHAPES];
    memcpy(bits, x, sizeof bits);
    for (int i = 0; i < SHAPES; i++) {
        power[i] = (bits[i] - UINT64_C(0x3fe6a09e667f3bcd)) >> 52; /* so that m lies in [sqrt 1/2, sqrt 2) */
        bits[i] -= power[i] << 52;
        power[i] |= UINT64_C(0x4330000000000000); /* 2^52 + e */
    }
    memcpy(m, bits, sizeof m);
    memcpy(e, power, sizeof e);
    for (int i = 0; i < SHAPES; i++) {
        const double s = (m[i] - 1) / (m[i] + 1), t = s * s;
        double p = 1.0 / 21;
        for (int k = 19; k > 0; k -= 2)
            p = p * t + 1.0 / k;
        x[i] = (e[i] - 0x1p52) * M_LN2 + 2 * s * p;
    }
}

/* Fits the mixture of a series (novelty/tail.h) to its k upper maxima. `each` becomes 1 / S(b). Slopes and
 * `scale` are rounded differently from other callers, and tails_mixture uses tails_logs: published bits
 * depend on both, so neither may be unified. All factors share one logarithm: there are at most SVI_BLOCKS /
 * 4 of them, of about 1e10 at most, so their product is finite. */
static void tails_mix(struct svi_block_tails *t, int series, int k, struct svi_block_mixture *m) {
    static const struct svi_tail_form form = {.parts = SHAPES, .denominator = SHAPES, .together = SVI_BLOCKS};
    const double mean = t->excess[series];
    float over[SVI_BLOCKS];
    double excess[SVI_BLOCKS] = {0}; /* equal maxima leave fewer than k excesses; the rest are 0 */
    const int n = tails_shape(t, series)->count;
    int held = 0;
    (void)tails_largest_but(tails_maxima(t, series), n, k, over);
    for (int i = 0; i < n; i++)
        if (over[i] > 0)
            excess[held++] = (double)over[i];
    for (int i = 0; i < SHAPES; i++) {
        const double xi = svi_tail_shape(&form, i);
        m->slope[i] = xi / ((1 - xi) * mean);
    }
    const struct svi_tail_law law = {m->slope, m->each, m->weight};
    const struct svi_tail_seen seen = {excess, k, 0, 1};
    svi_tail_fit(&form, &law, &seen);
    for (int i = 0; i < SHAPES; i++)
        m->each[i] = 1 / m->each[i];
    m->known = true;
}

/* Probability of the next excess, the mean of (1) in novelty/tail.h over shapes. The power k is computed by
 * squaring, for all shapes at once. The result is far above the smallest double, so it never underflows. */
SVI_WIDE
static double tails_mixture(const struct svi_block_mixture *m, int k, double excess) {
    double x[SHAPES], power[SHAPES], sum = 0;
    for (int i = 0; i < SHAPES; i++)
        x[i] = 1 + m->slope[i] * excess;
    tails_logs(x);
    for (int i = 0; i < SHAPES; i++) {
        x[i] = 1 + x[i] * m->each[i];
        power[i] = k & 1 ? x[i] : 1;
    }
    for (int left = k >> 1; left > 0; left >>= 1)
        for (int i = 0; i < SHAPES; i++) {
            x[i] *= x[i];
            power[i] *= left & 1 ? x[i] : 1;
        }
    for (int i = 0; i < SHAPES; i++)
        power[i] = m->weight[i] / power[i];
    for (int i = 0; i < SHAPES; i++)
        sum += power[i];
    return sum;
}

double svi_block_tails_surprise(struct svi_block_tails *t, int series, float v, double over) {
    if (!(v > t->telling[series]))
        return 0;
    struct svi_block_shape *shape = tails_own_shape(t, series);
    const int n = shape->count + 1, k = tails_top(shape->count);
    const double excess = v - t->above[series], mean = t->excess[series];
    if (!(mean > 0)) /* equal maxima have no tail: only the rank of the value counts */
        return log10((double)n * (double)shape->length);
    /* The caller needs only surprises above `over`. The lightest shape gives the excess that such a surprise
     * takes at least; most values are rejected here, without the mixture. NaN compares as different
     * at first. */
    if (shape->over != over) {
        shape->over = over;
        shape->far = k * expm1((over * M_LN10 + shape->begins) / k);
    }
    if (excess <= mean * shape->far)
        return 0;
    /* Without a cache (grows) the mixture is fitted for this value only. */
    struct svi_block_mixture own_mixture = {.known = false},
                             *mixture = t->mixtures ? &t->mixtures[series] : &own_mixture;
    if (!mixture->known)
        tails_mix(t, series, k, mixture);
    const double even = 1 - excess / (2 * mean); /* of a uniform law; larger than the mixture just above u */
    const double block = (double)k / n * fmax(tails_mixture(mixture, k, excess), even);
    /* From the probability of a block to that of a row: -ln(1 - block) / length (block_tails.h, THE TAIL). */
    return -log10(-log1p(-block) / (double)shape->length);
}

/* Stores the maximum of a series for the block that has ended, and merges pairs if blocks become longer. */
static void tails_place(struct svi_block_tails *t, int j) {
    float *m = tails_maxima(t, j);
    m[t->place] = t->last[j];
    for (int i = 0; i < SVI_BLOCKS / 2 && tails_merge(t); i++)
        m[i] = m[2 * i] > m[2 * i + 1] ? m[2 * i] : m[2 * i + 1];
}

/* Stores the maximum and refits the series, unless its k upper maxima are unchanged in value and number. */
static void tails_update(struct svi_block_tails *t, int j) {
    const bool full = t->before.count == SVI_BLOCKS;
    const float old = tails_maxima(t, j)[t->place];
    /* The upper maxima change if the new maximum is one of them, or replaces one of them in a full ring. */
    const bool above = t->last[j] > t->above[j] || (full && old >= t->above[j]);
    const int had = t->held[j];
    t->held[j] = (uint8_t)(had + (t->last[j] != -INFINITY) - (full && old != -INFINITY));
    tails_place(t, j);
    /* From here on the series follows `shape`, which the fit below reads. */
    t->done = j + 1;
    if (tails_merge(t))
        tails_count_held(t, j);
    const int has = t->held[j]; /* a series that started late has fewer than the others */
    if (above || tails_merge(t) || tails_top(had) != tails_top(has) || t->above[j] == INFINITY)
        tails_fit(t, j);
    else if (had != has) /* the same fit among more blocks: only the levels move */
        tails_levels(t, j, tails_own_shape(t, j));
}

/* The next series store their maximum: at least AT_ONCE of them, and enough to finish within a block. */
static void tails_advance(struct svi_block_tails *t) {
    const int64_t each = t->series / t->before.length + 1, count = each > AT_ONCE ? each : AT_ONCE;
    const int end = t->series - t->done < count ? t->series : t->done + (int)count;
    while (t->done < end)
        tails_update(t, t->done);
}

/* Ends the current block. Its maxima move to `last`, where series fetch them. When all places are filled and
 * blocks may be longer, the ring restarts with pairs merged into half the places. */
static void tails_end_block(struct svi_block_tails *t) {
    const bool full = t->shape.count == SVI_BLOCKS;
    const int count = t->shape.count + !full;
    t->before = t->shape;
    t->place = t->at;
    t->at = (t->at + 1) % SVI_BLOCKS;
    /* Only when the ring is about to wrap: then place i is older than place i + 1, and pairs are neighbours
     * in time. */
    if (count == SVI_BLOCKS && t->at == 0 && t->shape.length < t->longest) {
        t->at = SVI_BLOCKS / 2;
        t->shape = tails_shape_of(t, SVI_BLOCKS / 2, 2 * t->shape.length);
    } else if (!full) {
        t->shape = tails_shape_of(t, count, t->shape.length);
    }
    memcpy(t->last, t->now, (size_t)t->series * sizeof *t->last);
    for (int j = 0; j < t->series; j++)
        t->now[j] = -INFINITY;
    t->row = 0;
    t->done = 0;
}

/* Raises the maxima of the current block by a row; no value counts for more than its `most`. */
SVI_WIDE
static void tails_raise(float *restrict now, const float *restrict v, const float *restrict limit, int n) {
    for (int j = 0; j < n; j++) {
        const float value = v[j] < limit[j] ? v[j] : limit[j];
        now[j] = value > now[j] ? value : now[j];
    }
}

void svi_block_tails_add(struct svi_block_tails *t, const float *v) {
    tails_raise(t->now, v, t->most, t->series);
    if (++t->row == t->shape.length)
        tails_end_block(t);
    if (t->done < t->series)
        tails_advance(t);
}

/* ---- columns and archive */

void svi_block_tails_forget(struct svi_block_tails *t, int series) {
    for (int i = 0; i < t->capacity; i++)
        tails_maxima(t, series)[i] = -INFINITY;
    t->now[series] = t->last[series] = -INFINITY;
    tails_count_held(t, series);
    tails_fit(t, series);
}

svs_code svi_block_tails_widen(struct svi_block_tails *to, const struct svi_block_tails *from,
                               svs_error *err) {
    if (to->capacity < from->capacity && tails_resize(to, from->capacity, err) != SVS_OK)
        return SVS_NO_MEMORY;
    const struct tails_dims wide = tails_dims(to, to->capacity), narrow = tails_dims(from, from->capacity);
    to->longest = from->longest;
    to->row = from->row;
    to->at = from->at;
    to->place = from->place;
    to->shape = from->shape;
    to->before = from->before;
    for (size_t i = 0; i < (size_t)to->capacity * (size_t)to->series; i++)
        to->maxima[i] = -INFINITY;
    svi_arrays_copy(&tails_arrays, to, wide.of, from, narrow.of);
    for (int j = from->done; j < from->series; j++) /* series that wait store their maximum now */
        tails_place(to, j / from->columns * to->columns + j % from->columns);
    for (int j = 0; j < to->series; j++) {
        tails_count_held(to, j);
        tails_fit(to, j);
    }
    return SVS_OK;
}

/* Zeroes unused places, which may hold maxima from before a merge: the same past gives the same bytes. */
static void tails_tidy(struct svi_block_tails *t) {
    for (int j = 0; j < t->series; j++)
        for (int i = tails_count(t, j); i < t->capacity; i++)
            tails_maxima(t, j)[i] = 0;
}

static void tails_archive_shape(struct svi_archive *a, const struct svi_block_tails *t,
                                struct svi_block_shape *shape) {
    svi_archive_int64(a, "length", &shape->length, SVI_BLOCK_MIN_ROWS, INT64_MAX / 256);
    svi_archive_int(a, "blocks", &shape->count, 0, SVI_BLOCKS);
    if (svi_archive_loading(a) && svi_archive_ok(a))
        *shape = tails_shape_of(t, shape->count, shape->length);
}

/* A damaged archive must not lead to places outside the ring. */
static bool tails_are_placed(const struct svi_block_tails *t) {
    return t->at <= t->shape.count && (t->done == t->series || t->place < tails_blocks(t));
}

void svi_block_tails_archive(struct svi_archive *a, struct svi_block_tails *t) {
    svi_archive_int64(a, "longest", &t->longest, SVI_BLOCK_MIN_ROWS, INT64_MAX / 256);
    tails_archive_shape(a, t, &t->shape);
    tails_archive_shape(a, t, &t->before);
    svi_archive_int64(a, "row", &t->row, 0, INT64_MAX / 256);
    svi_archive_int(a, "at", &t->at, 0, SVI_BLOCKS - 1);
    svi_archive_int(a, "place", &t->place, 0, SVI_BLOCKS - 1);
    svi_archive_int(a, "done", &t->done, 0, t->series);
    if (!svi_archive_check(a, t->row < t->shape.length, "a block of rows is overdue") ||
        !svi_archive_check(a, tails_are_placed(t), "blocks of rows contradict themselves") ||
        (tails_blocks(t) > t->capacity && tails_resize(t, tails_blocks(t), a->err) != SVS_OK))
        return;
    const struct tails_dims dims = tails_dims(t, t->capacity), used = tails_dims(t, tails_blocks(t));
    if (!svi_archive_loading(a))
        tails_tidy(t);
    svi_arrays_archive(a, &tails_arrays, t, dims.of, used.of);
    /* Fits are not archived; they follow from the maxima. */
    if (svi_archive_loading(a) && svi_archive_ok(a))
        for (int j = 0; j < t->series; j++) {
            tails_count_held(t, j);
            tails_fit(t, j);
        }
}

double svi_block_tails_memory(int parts, int columns, bool grows) {
    const struct svi_block_tails t = {.parts = parts, .columns = columns};
    const struct tails_dims dims = tails_dims(&t, SVI_BLOCKS);
    const double mixtures = (double)parts * columns * sizeof(struct svi_block_mixture);
    return (double)svi_arrays_bytes(&tails_arrays, dims.of) + (grows ? 0 : mixtures);
}
