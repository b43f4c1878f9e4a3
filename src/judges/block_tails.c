/* Block maxima and their tails.
 *
 * Of each series the maxima of the blocks stand together, by the place of the block; what is looked at in
 * each row (how high a value must be to tell anything, how much it may count) stands in rows of all series.
 * When a block ends its maxima wait in `last`; some series a row take theirs over, so that no row pays for
 * all, and a fit is made only where the upper maxima have changed. The mixture over shapes is worked out when
 * a value lies beyond the tail of the lightest shape, which is rare; what it needs of the maxima is kept
 * until they change.
 */
#include "judges/block_tails.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/wide.h"
#include "judges/floats_move.h"

#define LEAST  4 /* blocks before anything is beyond them */
#define SHAPES SVI_BLOCK_SHAPES
#define ROWS   6 /* of series, beside the maxima */
/* Series that take over their maxima in a row, or more: all have before the block ends. */
#define AT_ONCE 32

/* k of n maxima make the tail. */
static int tails_top(int n) {
    return n >= 16 ? n / 4 : n >= 8 ? 4 : n / 2;
}

/* A law without a heavy tail says at most how surprising a value is: k / n (1 + b / k)^-k for an excess of b
 * mean ones. The b at which that is p. */
static double tails_excess_at(double p, int k, int n) {
    const double share = (double)k / n;
    return p >= share ? 0 : k * (pow(share / p, 1.0 / k) - 1);
}

/* What all fits to that number of blocks share. */
static struct svi_block_shape tails_shape_of(const struct svi_block_tails *t, int count, int64_t length) {
    const int k = count >= LEAST ? tails_top(count) : 0;
    struct svi_block_shape shape = {.count = count, .length = length};
    if (k < 1)
        return shape;
    shape.begins = log((double)k / (count + 1) / (double)length);
    shape.over = NAN;
    shape.telling = (float)tails_excess_at(-expm1(-pow(10, -t->least) * (double)length), k, count + 1);
    shape.most = (float)tails_excess_at(0.25 / count, k, count);
    return shape;
}

size_t svi_block_tails_room(int series) {
    return (size_t)(SVI_BLOCKS + ROWS) * (size_t)series;
}

void svi_block_tails_place(struct svi_block_tails *t, float *block) {
    t->maxima = block;
    t->now = t->maxima + (size_t)SVI_BLOCKS * (size_t)t->series;
    t->above = t->now + t->series;
    t->excess = t->above + t->series;
    t->most = t->excess + t->series;
    t->telling = t->most + t->series;
    t->last = t->telling + t->series;
}

void svi_block_tails_begin(struct svi_block_tails *t, int series, double least, float *block) {
    *t = (struct svi_block_tails){
        .series = series, .least = least, .longest = SVI_BLOCK_LEAST, .done = series};
    t->shape = t->before = tails_shape_of(t, 0, SVI_BLOCK_LEAST);
    if (!block)
        return;
    svi_block_tails_place(t, block);
    for (int j = 0; j < series; j++) {
        t->now[j] = t->last[j] = -INFINITY;
        t->above[j] = t->most[j] = t->telling[j] = INFINITY;
    }
}

svs_code svi_block_tails_init(struct svi_block_tails *t, int series, double least, svs_error *err) {
    float *block = svi_alloc_array(svi_block_tails_room(series), sizeof *block);
    svi_block_tails_begin(t, series, least, block);
    if (!block)
        return svi_fail_memory(err, "the tails of the sensors");
    t->mixtures = svi_alloc_array((size_t)series, sizeof *t->mixtures);
    if (!t->mixtures) {
        svi_block_tails_clear(t);
        return svi_fail_memory(err, "the tails of the sensors");
    }
    return SVS_OK;
}

int svi_block_tails_blocks(const struct svi_block_tails *t) {
    return t->before.count > t->shape.count ? t->before.count : t->shape.count;
}

/* Blocks of a series: one that waits for its turn has those of before. */
static int tails_count(const struct svi_block_tails *t, int series) {
    return (series < t->done ? &t->shape : &t->before)->count;
}

/* A series that never had a value. */
static void tails_empty(struct svi_block_tails *t, int j) {
    for (int i = 0; i < tails_count(t, j); i++)
        t->maxima[(size_t)j * SVI_BLOCKS + (size_t)i] = -INFINITY;
    t->now[j] = t->last[j] = -INFINITY;
    t->above[j] = t->most[j] = t->telling[j] = INFINITY;
    t->excess[j] = 0;
}

bool svi_block_tails_empty(const struct svi_block_tails *t, int series) {
    bool empty = t->now[series] == -INFINITY && t->last[series] == -INFINITY &&
                 t->above[series] == INFINITY && t->most[series] == INFINITY &&
                 t->telling[series] == INFINITY && t->excess[series] == 0;
    for (int i = 0; i < tails_count(t, series); i++)
        empty = empty && t->maxima[(size_t)series * SVI_BLOCKS + (size_t)i] == -INFINITY;
    return empty;
}

void svi_block_tails_move(struct svi_block_tails *t, const uint8_t *skip, char **at, bool out) {
    for (int j = 0; j < t->series; j++)
        if (!skip || !skip[j])
            svi_floats_move(t->maxima + (size_t)j * SVI_BLOCKS, tails_count(t, j), NULL, at, out);
        else if (!out)
            tails_empty(t, j);
    for (int i = 0; i < ROWS; i++)
        svi_floats_move(t->now + (size_t)i * (size_t)t->series, t->series, skip, at, out);
}

size_t svi_block_tails_packed(int series, int blocks) {
    return (size_t)series * (size_t)(blocks + ROWS) * sizeof(float);
}

void svi_block_tails_tidy(struct svi_block_tails *t) {
    for (int j = 0; j < t->series; j++)
        memset(t->maxima + (size_t)j * SVI_BLOCKS + tails_count(t, j), 0,
               (size_t)(SVI_BLOCKS - tails_count(t, j)) * sizeof *t->maxima);
}

void svi_block_tails_clear(struct svi_block_tails *t) {
    svi_free(t->maxima);
    svi_free(t->mixtures);
    *t = (struct svi_block_tails){0};
}

/* The blocks that a series has: one that waits for its turn has those of before. */
static struct svi_block_shape *tails_shape(struct svi_block_tails *t, int series) {
    return series < t->done ? &t->shape : &t->before;
}

int svi_block_tails_held(const struct svi_block_tails *t, int series) {
    const float *v = t->maxima + (size_t)series * SVI_BLOCKS;
    const int count = tails_count(t, series);
    int held = 0;
    for (int i = 0; i < count; i++)
        held += v[i] != -INFINITY;
    return held;
}

/* The largest but k of the n <= SVI_BLOCKS values; and what those above it exceed it by, 0 for the others.
 * Each value is compared with each, which takes no branch. */
SVI_WIDE
static float tails_largest_but(const float *restrict v, int n, int k, float *restrict over) {
    float all[SVI_BLOCKS], least = INFINITY;
    int greater[SVI_BLOCKS] = {0};
    for (int i = 0; i < SVI_BLOCKS; i++)
        all[i] = i < n ? v[i] : -INFINITY;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < SVI_BLOCKS; i++)
            greater[i] += all[j] > all[i];
    for (int i = 0; i < SVI_BLOCKS; i++)
        least = greater[i] <= k && all[i] < least ? all[i] : least;
    for (int i = 0; i < SVI_BLOCKS; i++)
        over[i] = all[i] > least ? all[i] - least : 0;
    return least;
}

/* The shape of a series by itself: one that came late has fewer blocks than others. */
static struct svi_block_shape tails_own_shape(struct svi_block_tails *t, int series) {
    const struct svi_block_shape *shape = tails_shape(t, series);
    const int held = svi_block_tails_held(t, series);
    return held == shape->count ? *shape : tails_shape_of(t, held, shape->length);
}

/* What follows from the fit and the number of blocks. */
static void tails_levels(struct svi_block_tails *t, int series, const struct svi_block_shape *shape) {
    const float least = t->above[series], mean = t->excess[series];
    t->telling[series] = least + mean * shape->telling;
    t->most[series] = mean > 0 ? least + mean * shape->most : INFINITY;
}

static void tails_fit(struct svi_block_tails *t, int series) {
    float over[SVI_BLOCKS], sum = 0;
    const int n = tails_shape(t, series)->count;
    const struct svi_block_shape own = tails_own_shape(t, series);
    const int k = own.count >= LEAST ? tails_top(own.count) : 0;
    const float least =
        k > 0 ? tails_largest_but(t->maxima + (size_t)series * SVI_BLOCKS, n, k, over) : -INFINITY;
    if (t->mixtures)
        t->mixtures[series].known = false;
    t->excess[series] = 0;
    t->above[series] = t->telling[series] = t->most[series] = INFINITY;
    if (least == -INFINITY) /* too few are known */
        return;
    for (int i = 0; i < n; i++)
        sum += over[i];
    t->excess[series] = sum / (float)k;
    t->above[series] = least;
    tails_levels(t, series, &own);
}

/* The natural logarithms of SHAPES numbers from 1 to 2^1000, at once: x = 2^e m with m near 1, log m = 2
 * atanh((m - 1) / (m + 1)) by its series; to a few units in 1e-16. */
SVI_WIDE
static void tails_logs(double *restrict x) {
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

/* The shapes xi of a series, see novelty/calibration.h: slope, total and weight. */
static void tails_mix(struct svi_block_tails *t, int series, int k, struct svi_block_mixture *m) {
    const double mean = t->excess[series];
    float y[SVI_BLOCKS];
    double weight[SHAPES], most = -INFINITY, all = 0;
    const int n = tails_shape(t, series)->count;
    int held = 0;
    (void)tails_largest_but(t->maxima + (size_t)series * SVI_BLOCKS, n, k, y);
    for (int i = 0; i < n; i++)
        if (y[i] > 0)
            y[held++] = y[i];
    for (int i = 0; i < SHAPES; i++) {
        const double xi = (i + 0.5) / SHAPES, b = xi / ((1 - xi) * mean);
        double product = 1; /* of at most SVI_BLOCKS / 4 numbers that are 1e10 or so at most */
        for (int j = 0; j < held; j++)
            product *= 1 + b * (double)y[j];
        const double total = log(product);
        weight[i] = k * log(b / total) - total;
        most = fmax(most, weight[i]);
        m->slope[i] = b;
        m->each[i] = 1 / total;
    }
    for (int i = 0; i < SHAPES; i++)
        all += m->weight[i] = exp(weight[i] - most);
    for (int i = 0; i < SHAPES; i++)
        m->weight[i] /= all;
    m->known = true;
}

/* Log of the predictive probability of an excess, a mean over shapes. */
static double tails_mixture(const struct svi_block_mixture *m, int k, double excess) {
    double x[SHAPES], sum = 0;
    for (int i = 0; i < SHAPES; i++)
        x[i] = 1 + m->slope[i] * excess;
    tails_logs(x);
    for (int i = 0; i < SHAPES; i++) {
        double base = 1 + x[i] * m->each[i], power = 1;
        for (int left = k; left > 0; left >>= 1, base *= base)
            if (left & 1)
                power *= base;
        sum += m->weight[i] / power;
    }
    return log(sum);
}

double svi_block_tails_surprise(struct svi_block_tails *t, int series, float v, double over) {
    if (!(v > t->telling[series]))
        return 0;
    struct svi_block_shape *shape = tails_shape(t, series), own = tails_own_shape(t, series);
    const int n = own.count + 1, k = tails_top(own.count);
    const double excess = v - t->above[series], mean = t->excess[series];
    if (!(mean > 0)) /* all alike: what is beyond them has a rank and no tail */
        return log10((double)n * (double)own.length);
    const double never = -over * M_LN10 - own.begins;
    if (shape->over != over || own.count != shape->count) {
        shape->over = own.count == shape->count ? over : NAN;
        shape->far = k * expm1(-never / k);
    }
    if (excess <= mean * shape->far) /* not even by the lightest shape */
        return 0;
    struct svi_block_mixture own_mixture = {.known = false},
                             *mixture = t->mixtures ? &t->mixtures[series] : &own_mixture;
    if (!mixture->known)
        tails_mix(t, series, k, mixture);
    const double even = 1 - excess / (2 * mean); /* a law that ends says less of what lies at the beginning */
    const double block = (double)k / n * fmax(exp(tails_mixture(mixture, k, excess)), even);
    return -log10(-log1p(-block) / (double)own.length);
}

static bool tails_merge(const struct svi_block_tails *t) {
    return t->shape.length != t->before.length;
}

/* A series takes over its maximum of the block that is over. */
static void tails_place(struct svi_block_tails *t, int j) {
    float *m = t->maxima + (size_t)j * SVI_BLOCKS;
    m[t->place] = t->last[j];
    for (int i = 0; i < SVI_BLOCKS / 2 && tails_merge(t); i++)
        m[i] = m[2 * i] > m[2 * i + 1] ? m[2 * i] : m[2 * i + 1];
}

/* And so does this one, which keeps its fit if its upper maxima stay what they are, and as many. */
static void tails_take(struct svi_block_tails *t, int j) {
    const bool full = t->before.count == SVI_BLOCKS;
    const float old = t->maxima[(size_t)j * SVI_BLOCKS + (size_t)t->place];
    const bool above = t->last[j] > t->above[j] || (full && old >= t->above[j]);
    const int had = svi_block_tails_held(t, j);
    tails_place(t, j);
    t->done = j + 1;
    const int has = svi_block_tails_held(t, j); /* of its own: one that came late has fewer than others */
    if (above || tails_merge(t) || tails_top(had) != tails_top(has) || t->above[j] == INFINITY) {
        tails_fit(t, j);
    } else if (had != has) {
        const struct svi_block_shape own = tails_own_shape(t, j);
        tails_levels(t, j, &own);
    }
}

static void tails_go_on(struct svi_block_tails *t) {
    const int64_t each = t->series / t->before.length + 1, most = each > AT_ONCE ? each : AT_ONCE;
    const int end = t->series - t->done < most ? t->series : t->done + (int)most;
    while (t->done < end)
        tails_take(t, t->done);
}

/* The present block is over. When all places are filled and blocks are to be longer, pairs become one. */
static void tails_end_block(struct svi_block_tails *t) {
    const bool full = t->shape.count == SVI_BLOCKS;
    const int count = t->shape.count + !full;
    t->before = t->shape;
    t->place = t->at;
    t->at = (t->at + 1) % SVI_BLOCKS;
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

SVI_WIDE
static void tails_raise(float *restrict now, const float *restrict v, const float *restrict most, int n) {
    for (int j = 0; j < n; j++) {
        const float at_most = v[j] < most[j] ? v[j] : most[j];
        now[j] = at_most > now[j] ? at_most : now[j];
    }
}

void svi_block_tails_add(struct svi_block_tails *t, const float *v) {
    tails_raise(t->now, v, t->most, t->series);
    if (++t->row == t->shape.length)
        tails_end_block(t);
    if (t->done < t->series)
        tails_go_on(t);
}

void svi_block_tails_forget(struct svi_block_tails *t, int series) {
    for (int i = 0; i < SVI_BLOCKS; i++)
        t->maxima[(size_t)series * SVI_BLOCKS + (size_t)i] = -INFINITY;
    t->now[series] = t->last[series] = -INFINITY;
    tails_fit(t, series);
}

void svi_block_tails_widen(struct svi_block_tails *to, const struct svi_block_tails *from, int parts) {
    const size_t narrow = (size_t)(from->series / parts), wide = (size_t)(to->series / parts);
    to->longest = from->longest;
    to->row = from->row;
    to->at = from->at;
    to->place = from->place;
    to->shape = from->shape;
    to->before = from->before;
    for (size_t i = 0; i < (size_t)SVI_BLOCKS * (size_t)to->series; i++)
        to->maxima[i] = -INFINITY;
    for (size_t i = 0; i < (size_t)parts; i++) {
        memcpy(to->maxima + i * wide * SVI_BLOCKS, from->maxima + i * narrow * SVI_BLOCKS,
               narrow * SVI_BLOCKS * sizeof *to->maxima);
        memcpy(to->now + i * wide, from->now + i * narrow, narrow * sizeof *to->now);
        memcpy(to->last + i * wide, from->last + i * narrow, narrow * sizeof *to->last);
        for (size_t j = 0; j < narrow; j++) /* those that wait do not any longer */
            if ((int)(i * narrow + j) >= from->done)
                tails_place(to, (int)(i * wide + j));
    }
    to->done = to->series;
    for (int j = 0; j < to->series; j++)
        tails_fit(to, j);
}

/* The floats of an archive are finite: -INFINITY is stored as the lowest of them. */
static void tails_swap(struct svi_block_tails *t, float from, float to) {
    float *const rows[] = {t->maxima, t->now, t->last};
    const size_t count[] = {SVI_BLOCKS * (size_t)t->series, (size_t)t->series, (size_t)t->series};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t i = 0; i < count[r]; i++)
            rows[r][i] = rows[r][i] == from ? to : rows[r][i];
}

static void tails_archive_shape(struct svi_archive *a, const struct svi_block_tails *t,
                                struct svi_block_shape *shape) {
    svi_archive_int64(a, "length", &shape->length, SVI_BLOCK_LEAST, INT64_MAX / 256);
    svi_archive_int(a, "blocks", &shape->count, 0, SVI_BLOCKS);
    if (svi_archive_loading(a) && svi_archive_ok(a))
        *shape = tails_shape_of(t, shape->count, shape->length);
}

void svi_block_tails_archive(struct svi_archive *a, struct svi_block_tails *t) {
    svi_archive_int64(a, "longest", &t->longest, SVI_BLOCK_LEAST, INT64_MAX / 256);
    tails_archive_shape(a, t, &t->shape);
    tails_archive_shape(a, t, &t->before);
    svi_archive_int64(a, "row", &t->row, 0, INT64_MAX / 256);
    svi_archive_int(a, "at", &t->at, 0, SVI_BLOCKS - 1);
    svi_archive_int(a, "place", &t->place, 0, SVI_BLOCKS - 1);
    svi_archive_int(a, "done", &t->done, 0, t->series);
    if (!svi_archive_check(a, t->row < t->shape.length, "a block of rows is overdue"))
        return;
    tails_swap(t, -INFINITY, -FLT_MAX);
    svi_archive_floats(a, "maxima", t->maxima, (int64_t)SVI_BLOCKS * t->series);
    svi_archive_floats(a, "now", t->now, t->series);
    svi_archive_floats(a, "last", t->last, t->series);
    tails_swap(t, -FLT_MAX, -INFINITY);
    if (svi_archive_loading(a) && svi_archive_ok(a))
        for (int j = 0; j < t->series; j++)
            tails_fit(t, j);
}

double svi_block_tails_memory(int series) {
    return (double)series * ((SVI_BLOCKS + ROWS) * sizeof(float) + sizeof(struct svi_block_mixture));
}
