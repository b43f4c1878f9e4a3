/* Extremes hold, per feature, the two highest and two lowest values and the normal quantiles; rows and other
 * extremes can be added to them. The range combines four: a row goes to `now` and `all`, a row of a
 * suspicious run to `run` first.
 *
 * Invariants: `all` equals `now` and `before` merged. Every calibration row with an excess against the others
 * is in `far`, with hardly any others: each of them holds an extreme, so there are at most 2 d. New rows only
 * widen ranges and lower the excess of others; wherever widths or ranges change otherwise, range_find_far
 * runs. Archives contain neither `all` nor `far`: both are rebuilt. */
#include "novelty/range.h"

#include <math.h>
#include <string.h>

#include "base/arrays.h"
#include "base/fail.h"
#include "base/statistics.h"
#include "novelty/lags.h"

/* ---- extremes */

/* Infinite values of the other sign: the first real value replaces them in any comparison. */
static void extremes_empty(struct svi_extremes *e, int d) {
    static const bool highest[SVI_EXTREMES] = {
        [SVI_HIGH] = true, [SVI_HIGH_2] = true, [SVI_NORMAL_HIGH] = true};
    for (int k = 0; k < SVI_EXTREMES; k++)
        for (int j = 0; j < d; j++)
            e->value[k][j] = highest[k] ? -INFINITY : INFINITY;
    e->rows = 0;
}

/* Adds v as a candidate for the two highest values. NaN compares false and changes nothing. */
static void extremes_raise(struct svi_extremes *e, int j, double v) {
    if (!(v > e->value[SVI_HIGH_2][j]))
        return;
    e->value[SVI_HIGH_2][j] = fmin(v, e->value[SVI_HIGH][j]);
    e->value[SVI_HIGH][j] = fmax(v, e->value[SVI_HIGH][j]);
}

static void extremes_lower(struct svi_extremes *e, int j, double v) {
    if (!(v < e->value[SVI_LOW_2][j]))
        return;
    e->value[SVI_LOW_2][j] = fmax(v, e->value[SVI_LOW][j]);
    e->value[SVI_LOW][j] = fmin(v, e->value[SVI_LOW][j]);
}

/* Does x leave the extremes as they are? This is the common case. Missing values (NaN) change nothing. */
static bool extremes_hold(const struct svi_extremes *e, const double *x, int d) {
    const double *high = e->value[SVI_HIGH_2], *low = e->value[SVI_LOW_2];
    int j = 0;
    while (j < d && !(x[j] > high[j]) && !(x[j] < low[j]))
        j++;
    return j == d;
}

/* Adds a row. */
static void extremes_add(struct svi_extremes *e, const double *x, int d) {
    for (int j = 0; j < d; j++) {
        extremes_raise(e, j, x[j]);
        extremes_lower(e, j, x[j]);
    }
}

/* Extends the normal quantiles of feature j; fmin and fmax ignore NaN. */
static void extremes_widen(struct svi_extremes *e, int j, double low, double high) {
    e->value[SVI_NORMAL_LOW][j] = fmin(e->value[SVI_NORMAL_LOW][j], low);
    e->value[SVI_NORMAL_HIGH][j] = fmax(e->value[SVI_NORMAL_HIGH][j], high);
}

/* Adds both highest and both lowest values, since the second ones may still be extremes of the sum. */
static void extremes_merge(struct svi_extremes *to, const struct svi_extremes *from, int d) {
    for (int j = 0; j < d; j++) {
        extremes_raise(to, j, from->value[SVI_HIGH][j]);
        extremes_raise(to, j, from->value[SVI_HIGH_2][j]);
        extremes_lower(to, j, from->value[SVI_LOW][j]);
        extremes_lower(to, j, from->value[SVI_LOW_2][j]);
        extremes_widen(to, j, from->value[SVI_NORMAL_LOW][j], from->value[SVI_NORMAL_HIGH][j]);
    }
    to->rows += from->rows;
}

/* ---- the range */

enum { FEATURES, ROWS, DIMS };

#define A_PART SVI_AXIS_LENGTH(SVI_EXTREMES), SVI_AXIS(FEATURES)

static const struct svi_array arrays[] = {
    SVI_ARRAY(struct svi_range, of[SVI_RANGE_NOW].value[0], NULL, A_PART),
    SVI_ARRAY(struct svi_range, of[SVI_RANGE_BEFORE].value[0], NULL, A_PART),
    SVI_ARRAY(struct svi_range, of[SVI_RANGE_RUN].value[0], NULL, A_PART),
    SVI_ARRAY(struct svi_range, of[SVI_RANGE_ALL].value[0], NULL, A_PART),
    SVI_ARRAY(struct svi_range, width, NULL, SVI_AXIS(FEATURES)),
    SVI_ARRAY(struct svi_range, far, NULL, SVI_AXIS(ROWS)),
};
static const struct svi_arrays range_arrays = SVI_ARRAYS(arrays, "the ranges of the features");

svs_code svi_range_reserve(struct svi_range *r, int rows, svs_error *err) {
    const int32_t from[DIMS] = {r->d, r->capacity}, to[DIMS] = {r->d, rows};
    svs_code code = rows > r->capacity ? svi_arrays_resize(&range_arrays, r, from, to, err) : SVS_OK;
    if (code != SVS_OK || rows <= r->capacity)
        return code;
    /* Each part is one block of SVI_EXTREMES rows of d values. */
    for (int i = 0; i < SVI_RANGE_PARTS; i++)
        for (int k = 1; k < SVI_EXTREMES; k++)
            r->of[i].value[k] = r->of[i].value[0] + (size_t)k * (size_t)r->d;
    r->capacity = rows;
    return SVS_OK;
}

svs_code svi_range_init(struct svi_range *r, int d, int rows, int64_t span, svs_error *err) {
    *r = (struct svi_range){.d = d, .span = span};
    SVI_TRY(svi_range_reserve(r, rows, err));
    svi_range_empty(r);
    return SVS_OK;
}

void svi_range_clear(struct svi_range *r) {
    svi_arrays_free(&range_arrays, r);
    *r = (struct svi_range){0};
}

void svi_range_empty(struct svi_range *r) {
    for (int i = 0; i < SVI_RANGE_PARTS; i++)
        extremes_empty(&r->of[i], r->d);
    memset(r->width, 0, (size_t)r->d * sizeof *r->width);
    r->far_count = 0;
    r->counts = false;
}

double svi_range_memory(int d, int rows) {
    const int32_t dims[DIMS] = {d, rows};
    return (double)svi_arrays_bytes(&range_arrays, dims);
}

double svi_range_excess(const struct svi_range *r, const double *x, int *feature) {
    const double *high = r->of[SVI_RANGE_ALL].value[SVI_HIGH], *low = r->of[SVI_RANGE_ALL].value[SVI_LOW];
    /* Only a row with a value beyond the second extremes can lie beyond the first ones. */
    double most = SVI_RANGE_MIN_WIDTH;
    int at = -1;
    /* Nearly every row ends here, with two comparisons per feature. */
    const bool may = r->counts && !extremes_hold(&r->of[SVI_RANGE_ALL], x, r->d);
    for (int j = 0; j < (may ? r->d : 0); j++) {
        const double beyond = x[j] > high[j] ? x[j] - high[j] : low[j] - x[j];
        if (r->width[j] > 0 && beyond > most * r->width[j] && beyond < INFINITY) {
            most = beyond / r->width[j];
            at = j;
        }
    }
    if (feature)
        *feature = at;
    return at < 0 ? 0 : most;
}

/* The excess of a calibration row against all other rows and x (NULL: without x). Where the row itself holds
 * the extreme, the second one is the extreme of the others. */
static double range_own_excess(const struct svi_range *r, const double *row, const double *x) {
    double *const *all = r->of[SVI_RANGE_ALL].value;
    double most = SVI_RANGE_MIN_WIDTH;
    bool counts = false;
    const bool may = !extremes_hold(&r->of[SVI_RANGE_ALL], row, r->d);
    for (int j = 0; j < (may ? r->d : 0); j++) {
        /* A row that ties with another at the extreme has the same value as second extreme, so its excess is
         * 0. */
        double high = all[row[j] == all[SVI_HIGH][j] ? SVI_HIGH_2 : SVI_HIGH][j];
        double low = all[row[j] == all[SVI_LOW][j] ? SVI_LOW_2 : SVI_LOW][j];
        high = x ? fmax(high, x[j]) : high;
        low = x ? fmin(low, x[j]) : low;
        const double beyond = row[j] > high ? row[j] - high : low - row[j];
        if (beyond > most * r->width[j] && r->width[j] > 0 && beyond < INFINITY) {
            most = beyond / r->width[j];
            counts = true;
        }
    }
    return counts ? most : 0;
}

bool svi_range_of(const struct svi_range *r, int feature, double *low, double *high) {
    *high = r->of[SVI_RANGE_ALL].value[SVI_HIGH][feature];
    *low = r->of[SVI_RANGE_ALL].value[SVI_LOW][feature];
    return *low <= *high;
}

/* `now` holds fewer rows than `all`, so a row that leaves `now` unchanged leaves `all` unchanged as well. */
void svi_range_add(struct svi_range *r, const double *x) {
    r->of[SVI_RANGE_NOW].rows++;
    r->of[SVI_RANGE_ALL].rows++;
    if (extremes_hold(&r->of[SVI_RANGE_NOW], x, r->d)) /* then `all` is unchanged too */
        return;
    extremes_add(&r->of[SVI_RANGE_NOW], x, r->d);
    extremes_add(&r->of[SVI_RANGE_ALL], x, r->d);
}

void svi_range_hold(struct svi_range *r, const double *x) {
    r->of[SVI_RANGE_RUN].rows++;
    extremes_add(&r->of[SVI_RANGE_RUN], x, r->d);
}

void svi_range_release(struct svi_range *r) {
    if (r->of[SVI_RANGE_RUN].rows == 0)
        return;
    extremes_merge(&r->of[SVI_RANGE_NOW], &r->of[SVI_RANGE_RUN], r->d);
    extremes_merge(&r->of[SVI_RANGE_ALL], &r->of[SVI_RANGE_RUN], r->d);
    extremes_empty(&r->of[SVI_RANGE_RUN], r->d);
}

void svi_range_drop(struct svi_range *r) {
    if (r->of[SVI_RANGE_RUN].rows > 0)
        extremes_empty(&r->of[SVI_RANGE_RUN], r->d);
}

/* ---- calibration rows and p-values */

static const double *range_row(const struct svi_range *r, const double *rows, int place) {
    return rows + (size_t)place * (size_t)r->d;
}

/* Removes from `far` the row of this place, and rows that are no longer far. */
static void range_sift(struct svi_range *r, const double *rows, int place) {
    int kept = 0;
    for (int i = 0; i < r->far_count; i++) {
        const double *row = range_row(r, rows, r->far[i]);
        if (r->far[i] != place && range_own_excess(r, row, NULL) > 0)
            r->far[kept++] = r->far[i];
    }
    r->far_count = kept;
}

/* A new row may also be the one that ends the excess of others, so `far` is sifted first. */
void svi_range_put(struct svi_range *r, const double *rows, int place) {
    const double *row = range_row(r, rows, place);
    range_sift(r, rows, place);
    if (r->counts && range_own_excess(r, row, NULL) > 0)
        r->far[r->far_count++] = place;
}

/* Derives widths and far rows from scratch. */
static void range_find_far(struct svi_range *r, const double *rows, int count) {
    const struct svi_extremes *all = &r->of[SVI_RANGE_ALL];
    r->counts = r->counts || all->rows >= SVI_RANGE_ROWS;
    for (int j = 0; j < r->d; j++)
        r->width[j] = fmax(0, all->value[SVI_NORMAL_HIGH][j] - all->value[SVI_NORMAL_LOW][j]);
    r->far_count = 0;
    for (int i = 0; i < count; i++)
        svi_range_put(r, rows, i);
}

void svi_range_normal(const double *rows, int d, int count, int feature, double *column, double *low,
                      double *high) {
    const int shown = count < SVI_RANGE_SHOWN ? count : SVI_RANGE_SHOWN;
    int known = 0;
    for (int i = 0; i < shown; i++) {
        column[known] = rows[(int64_t)i * count / shown * d + feature];
        known += !isnan(column[known]);
    }
    svi_normal_range(column, known, low, high);
}

void svi_range_renew(struct svi_range *r, const double *rows, int count, double *column) {
    for (int j = 0; j < r->d; j++) {
        double low, high;
        svi_range_normal(rows, r->d, count, j, column, &low, &high);
        extremes_widen(&r->of[SVI_RANGE_NOW], j, low, high);
        extremes_widen(&r->of[SVI_RANGE_ALL], j, low, high);
    }
    range_find_far(r, rows, count);
}

/* The two halves: `now` becomes `before`, and `all` is rebuilt from it, because extremes cannot be
 * subtracted. */
void svi_range_forget(struct svi_range *r, const double *rows, int count, double *column) {
    struct svi_extremes *now = &r->of[SVI_RANGE_NOW];
    if (r->span == 0 || now->rows < r->span)
        return;
    extremes_empty(&r->of[SVI_RANGE_BEFORE], r->d);
    extremes_empty(&r->of[SVI_RANGE_ALL], r->d);
    extremes_merge(&r->of[SVI_RANGE_BEFORE], now, r->d);
    extremes_merge(&r->of[SVI_RANGE_ALL], now, r->d);
    extremes_empty(now, r->d);
    svi_range_renew(r, rows, count, column);
}

/* Counts rows not below x: the calibration's count by surprise, with a correction for the few far
 * rows. If x has no excess, every far row is above x, also those with a lower surprise. If x has
 * excess, only far rows can be above. */
double svi_range_place(const struct svi_range *r, const struct svi_calibration *c, const double *rows,
                       const double *x, double surprise, double excess, double *above) {
    const double p = svi_calibration_p(c, surprise), all = 1.0 + c->ring.filled;
    const int level = (int)rint(p * all) - 1; /* calibration scores >= surprise */
    double not_before = 1, behind = 0;
    if (!(excess > 0)) {
        not_before += level;
        behind = svi_calibration_above(c, surprise, level);
    }
    for (int i = 0; i < r->far_count; i++) {
        /* Far rows are few, so each is compared in full, with x as part of the range. */
        const double score = c->scores[r->far[i]];
        if (!(excess > 0) && score > surprise) /* counted already, far or not: the common case */
            continue;
        const double own = range_own_excess(r, range_row(r, rows, r->far[i]), x);
        not_before += excess > 0 ? own >= excess : own > 0 && score < surprise;
        behind += excess > 0 ? own > excess : own > 0 && score <= surprise;
    }
    if (above)
        *above = behind / all;
    return r->far_count == 0 && !(excess > 0) ? p : not_before / all;
}

/* ---- other features, and the archive */

/* Empty parts keep their infinite values; in the others new features have been 0 in every row. */
void svi_range_widen(struct svi_range *to, const struct svi_range *from, int lags) {
    for (int i = 0; i < SVI_RANGE_PARTS; i++) {
        to->of[i].rows = from->of[i].rows;
        if (from->of[i == SVI_RANGE_RUN ? i : SVI_RANGE_ALL].rows == 0)
            continue; /* empty: its values stay infinite */
        memset(to->of[i].value[0], 0, SVI_EXTREMES * (size_t)to->d * sizeof *to->of[i].value[0]);
        svi_lags_widen(to->of[i].value[0], to->d / lags, from->of[i].value[0], from->d / lags,
                       (int64_t)SVI_EXTREMES * lags);
    }
    svi_lags_widen(to->width, to->d / lags, from->width, from->d / lags, lags);
    memcpy(to->far, from->far, (size_t)from->far_count * sizeof *to->far);
    to->far_count = from->far_count;
    to->counts = from->counts;
}

void svi_range_renew_feature(struct svi_range *r, int lags, int feature, const double *rows) {
    const int d = r->d / lags;
    for (int i = 0; i < SVI_RANGE_PARTS; i++)
        for (int l = 0; l < SVI_EXTREMES * lags && r->of[i == SVI_RANGE_RUN ? i : SVI_RANGE_ALL].rows > 0;
             l++)
            r->of[i].value[0][l * d + feature] = 0;
    svi_lags_renew(r->width, d, lags, feature);
    range_sift(r, rows, -1); /* by the other features, each row is as far as before */
}

static void range_archive_part(struct svi_archive *a, struct svi_range *r, int part) {
    static const char *const rows[] = {"now rows", "before rows", "run rows"};
    static const char *const values[] = {"now", "before", "run"};
    struct svi_extremes *e = &r->of[part];
    const int64_t count = SVI_EXTREMES * (int64_t)r->d;
    svi_archive_int64(a, rows[part], &e->rows, 0, SVI_COUNT_MAX);
    if (!svi_archive_ok(a) || (part == SVI_RANGE_RUN && e->rows == 0))
        return;
    svi_archive_doubles(a, values[part], e->value[0], count);
    for (int64_t i = 0; svi_archive_ok(a) && i < count; i++)
        svi_archive_check(a, !isnan(e->value[0][i]), "an extreme is not a number");
}

void svi_range_archive(struct svi_archive *a, struct svi_range *r, const double *rows, int count) {
    for (int part = SVI_RANGE_NOW; part <= SVI_RANGE_RUN; part++)
        range_archive_part(a, r, part);
    svi_archive_bool(a, "counts", &r->counts);
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    extremes_merge(&r->of[SVI_RANGE_ALL], &r->of[SVI_RANGE_BEFORE], r->d);
    extremes_merge(&r->of[SVI_RANGE_ALL], &r->of[SVI_RANGE_NOW], r->d);
    if (r->counts)
        range_find_far(r, rows, count);
}
