/* Sums of samples in twice the precision (prior_sums.h).
 *
 * A sample touches the whole triangle of its coordinates, as a step of the recursion does. Rows are
 * therefore padded, with values that mean nothing, and the kernels know no ends of loops. The lower
 * halves are added up as they come, and are put in order when they are moved or read. What they
 * lose lies 30 digits below the sum. A label's name is a block of its own.
 *
 * Invariants: The sum of what entered minus what left is exact to some 1e-30 of the largest that
 * was ever in (`peak`), so removal leaves nothing behind. Coordinate 0 is the constant 1. A feature
 * keeps its coordinate until the sums are cleared.
 *
 * Read svi_prior_sums_add first, then svi_prior_sums_move (parts into all) and svi_prior_sums_inexact. */
#include "learner/prior_sums.h"

#include <math.h>
#include <string.h>

#include <xxhash.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "linalg/double_double.h"
#include "learner/owned_model.h"

#define FIRST_CAPACITY       16
#define LABEL_FIRST          2
#define SQUARES_MAX          1e250
#define MAX_CANCELLATION     1e16 /* of 32 digits: the others are right */
#define MAX_KEY_CANCELLATION 1e8

/* Where row i begins: rows of i + 1 values are padded to whole cache lines. */
static size_t sums_row(int i) {
    const size_t lines = (size_t)i / 8, rest = (size_t)i % 8;
    return 32 * lines * (lines + 1) + 8 * rest * (lines + 1);
}

enum { TRIANGLE, CAPACITY, NAMES, LABELS, SUMS, OF_KEYS, OF_PEAKS, DIMS };
static const struct svi_array sums_table[] = {
#define OWNER struct svi_prior_sums
    SVI_ARRAY_WITH(OWNER, high, "products", SVI_ARRAY_ANY, 0, SVI_AXIS(TRIANGLE)),
    SVI_ARRAY_WITH(OWNER, low, "their rest", SVI_ARRAY_ANY, 0, SVI_AXIS(TRIANGLE)),
    SVI_ARRAY_WITH(OWNER, by_label, "of labels", SVI_ARRAY_ANY, 0, SVI_AXIS(SUMS), SVI_AXIS(CAPACITY)),
    SVI_ARRAY_WITH(OWNER, by_low, "their rest", SVI_ARRAY_ANY, 0, SVI_AXIS(SUMS), SVI_AXIS(CAPACITY)),
    SVI_ARRAY_WITH(OWNER, by_key, "of keys", SVI_ARRAY_ANY, 0, SVI_AXIS(OF_KEYS), SVI_AXIS(CAPACITY)),
    SVI_ARRAY_WITH(OWNER, by_key_low, "their rest", SVI_ARRAY_ANY, 0, SVI_AXIS(OF_KEYS), SVI_AXIS(CAPACITY)),
    SVI_ARRAY_WITH(OWNER, peak, "largest", SVI_ARRAY_ANY, 0, SVI_AXIS(OF_PEAKS)),
    SVI_ARRAY_WITH(OWNER, key_peak, "largest of keys", SVI_ARRAY_ANY, 0, SVI_AXIS(OF_PEAKS)),
    SVI_ARRAY_WITH(OWNER, x, NULL, SVI_ARRAY_ANY, 0,
                   SVI_AXIS(CAPACITY)), /* svi_prior_sums_empty clears what stands before it */
    SVI_ARRAY_WITH(OWNER, identity, "identity", SVI_ARRAY_ANY, 0, SVI_AXIS(NAMES)),
    SVI_ARRAY_WITH(OWNER, label, NULL, SVI_ARRAY_ANY, 0, SVI_AXIS(LABELS)),
#undef OWNER
};
static const struct svi_arrays sums_arrays = SVI_ARRAYS_ALIGNED(sums_table, "the sums of all keys");

/* The arrays of n coordinates; where the sums are empty the names alone, so that a state is short. */
static void sums_dims(int n, int labels, bool touched, int32_t *dims) {
    dims[TRIANGLE] = touched ? (int32_t)sums_row(n) : 0;
    dims[CAPACITY] = dims[NAMES] = n;
    dims[LABELS] = labels;
    dims[SUMS] = touched ? labels : 0;
    dims[OF_KEYS] = touched ? SVI_PRIOR_OF_KEYS : 0;
    dims[OF_PEAKS] = touched ? n : 0;
}

/* The top bit keeps names and numbers apart. */
uint64_t svi_prior_identity(const char *name, int number) {
    const uint64_t named = (uint64_t)1 << 63;
    return name ? XXH3_64bits(name, strlen(name)) | named : (uint64_t)number;
}

uint16_t svi_prior_find(const uint64_t *all, int count, uint64_t identity, int guess) {
    if (guess >= 0 && guess < count && all[guess] == identity)
        return (uint16_t)guess;
    for (int j = 0; j < count; j++)
        if (all[j] == identity)
            return (uint16_t)j;
    return SVI_PRIOR_NONE;
}

void svi_prior_sums_init(struct svi_prior_sums *s, bool regress) {
    *s = (struct svi_prior_sums){.regress = regress, .n = 1, .labels = regress};
}

void svi_prior_sums_clear(struct svi_prior_sums *s) {
    for (int k = 0; s->high && k < s->labels; k++)
        if (s->label[k].kind == SVS_STR)
            svi_free((void *)(uintptr_t)s->label[k].as.s);
    svi_arrays_free(&sums_arrays, s);
    svi_prior_sums_init(s, s->regress);
}

/* ---- room */

/* Whole units, and at least doubled. */
static int sums_capacity_for(int needed, int now, int unit) {
    const int units = (needed + unit - 1) / unit * unit;
    return needed <= now ? now : units > 2 * now ? units : 2 * now;
}

static svs_code sums_reserve(struct svi_prior_sums *s, int n, int labels, svs_error *err) {
    const int capacity = sums_capacity_for(n, s->capacity, 8),
              label_capacity = sums_capacity_for(labels, s->label_capacity, LABEL_FIRST);
    int32_t from[DIMS], to[DIMS];
    sums_dims(s->capacity, s->label_capacity, true, from);
    sums_dims(capacity, label_capacity, true, to);
    if (svi_arrays_resize(&sums_arrays, s, from, to, err) != SVS_OK)
        return SVS_NO_MEMORY;
    s->capacity = capacity;
    s->label_capacity = label_capacity;
    return SVS_OK;
}

size_t svi_prior_sums_bytes(const struct svi_prior_sums *s) {
    int32_t dims[DIMS];
    sums_dims(s->capacity, s->label_capacity, true, dims);
    return svi_arrays_bytes(&sums_arrays, dims);
}

svs_code svi_prior_sums_ready(struct svi_prior_sums *s, svs_error *err) {
    return sums_reserve(s, s->n > FIRST_CAPACITY ? s->n : FIRST_CAPACITY, LABEL_FIRST, err);
}

/* ---- features and labels */

/* The guess is the number that the learner gives the feature: mostly right, as most keys have the same
 * columns. */
svs_code svi_prior_sums_feature(struct svi_prior_sums *s, uint64_t identity, int guess, uint16_t *place,
                                svs_error *err) {
    *place = s->n > 1 ? svi_prior_find(s->identity + 1, s->n - 1, identity, guess - 1) : SVI_PRIOR_NONE;
    *place += *place != SVI_PRIOR_NONE; /* coordinate 0 is the 1 */
    if (*place != SVI_PRIOR_NONE || s->n > SVI_PRIOR_FEATURES)
        return SVS_OK;
    if (sums_reserve(s, s->n + 1, s->labels, err) != SVS_OK)
        return SVS_NO_MEMORY;
    s->identity[s->n] = identity;
    *place = (uint16_t)s->n++;
    return SVS_OK;
}

uint16_t svi_prior_sums_find(const struct svi_prior_sums *s, svs_value label, int guess) {
    const int place = s->regress ? 0 : svi_class_index(s->label, s->labels, label, guess);
    return place < 0 ? SVI_PRIOR_NONE : (uint16_t)place;
}

svs_code svi_prior_sums_label(struct svi_prior_sums *s, svs_value label, int guess, uint16_t *place,
                              svs_error *err) {
    *place = svi_prior_sums_find(s, label, guess);
    if (*place != SVI_PRIOR_NONE || s->labels == SVI_PRIOR_LABELS)
        return SVS_OK;
    if (sums_reserve(s, s->n, s->labels + 1, err) != SVS_OK)
        return SVS_NO_MEMORY;
    if (label.kind == SVS_STR) {
        char *name = svi_alloc(label.length + 1u);
        if (!name)
            return svi_fail_memory(err, "the name of a class");
        label.as.s = memcpy(name, label.as.s, label.length);
    }
    s->label[s->labels] = label;
    *place = (uint16_t)s->labels++;
    return SVS_OK;
}

struct svi_prior_row svi_prior_sums_products(const struct svi_prior_sums *s, int i) {
    return (struct svi_prior_row){s->high + sums_row(i), s->low + sums_row(i)};
}

struct svi_prior_row svi_prior_sums_of_label(const struct svi_prior_sums *s, int k) {
    const size_t at = (size_t)k * (size_t)s->capacity;
    return (struct svi_prior_row){s->by_label + at, s->by_low + at};
}

struct svi_prior_row svi_prior_sums_of_keys(const struct svi_prior_sums *s, int k) {
    const size_t at = (size_t)k * (size_t)s->capacity;
    return (struct svi_prior_row){s->by_key + at, s->by_key_low + at};
}

struct svi_dd svi_prior_sums_at(const struct svi_prior_sums *s, int i, int j) {
    const size_t at = sums_row(i) + (size_t)j;
    return svi_two_sum(s->high[at], s->low[at]);
}

/* ---- samples */

/* Puts the row, moved to the center of its key, into s->x by coordinates; false: it is left out. Nothing is
 * in the sums before the verdict is clear. */
static bool sums_insert(struct svi_prior_sums *s, const struct svi_prior_trait *trait, const double *center,
                        int d, const double *x, double weight, double target) {
    double squares = s->regress ? 1 + target * target : 1;
    memset(s->x, 0, (size_t)s->n * sizeof *s->x);
    s->x[0] = 1;
    for (int j = 0; j < d; j++)
        if (trait[j].place < s->n && trait[j].limit > 0) {
            const double y = s->x[trait[j].place] = x[j] - center[j];
            if (fabs(y) > (double)trait[j].limit)
                return false;
            squares += y * y;
        }
    return fabs(weight) * squares < SQUARES_MAX;
}

/* Only what enters sets a peak; a removal takes out what has set one before. */
static void sums_note_peaks(struct svi_prior_sums *s, double weight, double target) {
    for (int i = 0; i < s->n; i++) {
        const double one = weight * s->x[i] * s->x[i];
        s->peak[i] = one > s->peak[i] ? one : s->peak[i];
    }
    s->target_peak = s->regress ? fmax(s->target_peak, weight * target * target) : 0;
}

/* high + low += a x, of `count` values or some more. */
static void sums_add_row(const struct svi_kernels *k, double *high, double *low, const double *x,
                         struct svi_dd a, int count) {
    const int padded = svi_round_up(count, 8);
    k->exact_add(high, low, x, a.high, padded);
    if (a.low != 0)
        k->exact_add(high, low, x, a.low, padded);
}

/* The row in s->x. The product weight x_i is split into two doubles without error (svi_two_product), and so
 * are its products with the row, in the kernel. Rows of which x_i is 0 add nothing. */
static void sums_enter(struct svi_prior_sums *s, const struct svi_kernels *k, double weight, uint16_t label,
                       double target) {
    s->touched = true;
    if (weight > 0)
        sums_note_peaks(s, weight, target);
    for (int i = 0; i < s->n; i++)
        if (s->x[i] != 0)
            sums_add_row(k, s->high + sums_row(i), s->low + sums_row(i), s->x,
                         svi_two_product(weight, s->x[i]), i + 1);
    if (label == SVI_PRIOR_NONE)
        return;
    const struct svi_dd a = s->regress ? svi_two_product(weight, target) : (struct svi_dd){weight, 0};
    sums_add_row(k, s->by_label + (size_t)label * (size_t)s->capacity,
                 s->by_low + (size_t)label * (size_t)s->capacity, s->x, a, s->n);
}

bool svi_prior_sums_add(struct svi_prior_sums *s, const struct svi_kernels *k,
                        const struct svi_prior_trait *trait, const double *center, int d, const double *x,
                        double weight, uint16_t label, double target) {
    const bool in = sums_insert(s, trait, center, d, x, weight, target);
    if (in)
        sums_enter(s, k, weight, label, target);
    return in;
}

/* A row of which a feature has no place would be summed without it: such a row is left out as a whole. */
bool svi_prior_sums_add_plain(struct svi_prior_sums *s, const struct svi_kernels *k,
                              const struct svi_prior_trait *trait, int d, const double *x, double weight,
                              uint16_t label, double target) {
    double squares = s->regress ? 1 + target * target : 1;
    bool in = label != SVI_PRIOR_NONE;
    memset(s->x, 0, (size_t)s->n * sizeof *s->x);
    s->x[0] = 1;
    for (int j = 0; j < d; j++) {
        in &= trait[j].place < s->n || x[j] == 0;
        if (trait[j].place < s->n)
            s->x[trait[j].place] = x[j];
        squares += x[j] * x[j];
    }
    in &= fabs(weight) * squares < SQUARES_MAX;
    if (in)
        sums_enter(s, k, weight, label, target);
    else
        svi_prior_sums_leave_out(s, weight < 0 ? -1 : 1);
    return in;
}

void svi_prior_sums_leave_out(struct svi_prior_sums *s, int sign) {
    s->touched = true;
    s->out += sign;
}

/* The high half by an exact sum of two; its error and the low half are collected apart. */
static void sums_add_one(struct svi_prior_sums *s, int row, uint16_t place, struct svi_dd v, int sign) {
    const size_t at = (size_t)row * (size_t)s->capacity + place;
    const struct svi_dd sum = svi_two_sum(s->by_key[at], sign * v.high);
    s->by_key[at] = sum.high;
    s->by_key_low[at] += sum.low + sign * v.low;
}

void svi_prior_sums_key(struct svi_prior_sums *s, const struct svi_prior_trait *trait, const double *mean,
                        int d, double n, int sign) {
    s->touched = true;
    for (int j = 0; j < d; j++) {
        const uint16_t at = trait[j].place;
        if (at >= s->n || !(trait[j].flags & SVI_PRIOR_LEVEL) || !(fabs(mean[j]) <= 1e100))
            continue;
        s->key_peak[at] = fmax(s->key_peak[at], mean[j] * mean[j]);
        sums_add_one(s, SVI_PRIOR_KEYS, at, (struct svi_dd){1, 0}, sign);
        sums_add_one(s, SVI_PRIOR_INVERSE, at, (struct svi_dd){1 / n, 0}, sign);
        sums_add_one(s, SVI_PRIOR_MEAN, at, (struct svi_dd){mean[j], 0}, sign);
        sums_add_one(s, SVI_PRIOR_SQUARE, at, svi_two_product(mean[j], mean[j]), sign);
    }
}

/* ---- from one to another */

/* `factor` is a power of 2, so that the product is exact. */
static void sums_move_one(double *to, double *to_low, const double *from, const double *from_low,
                          double factor) {
    const struct svi_dd sum =
        svi_dd_add(svi_two_sum(*to, *to_low), svi_two_sum(factor * *from, factor * *from_low));
    *to = sum.high;
    *to_low = sum.low;
}

/* A row of values of coordinates, of which some have no place. */
static void sums_move_row(double *to, double *to_low, const double *from, const double *from_low,
                          const uint16_t *place, int n, double factor) {
    for (int j = 0; j < n; j++)
        if (place[j] != SVI_PRIOR_NONE)
            sums_move_one(to + place[j], to_low + place[j], from + j, from_low + j, factor);
}

/* All of it, what pads rows and what found no place too: a state has nothing of sums that are empty. */
void svi_prior_sums_empty(struct svi_prior_sums *s) {
    if (s->high)
        memset(s->high, 0, (size_t)((char *)s->x - (char *)s->high)); /* one array behind the other */
    s->touched = false;
    s->target_peak = 0;
    s->out = 0;
}

/* Part by part into the sums of all. The coordinates of the part are mapped by identity; a pair of
 * coordinates may stand the other way round in the triangle. */
svs_code svi_prior_sums_join(struct svi_prior_sums *to, const struct svi_prior_sums *from, double factor,
                             svs_error *err) {
    uint16_t place[SVI_PRIOR_FEATURES + 1] = {0}, label[SVI_PRIOR_LABELS];
    if (!from->touched)
        return SVS_OK;
    /* All that can fail comes first; from the first addition on the move is completed. */
    for (int j = 1; j < from->n; j++)
        SVI_TRY(svi_prior_sums_feature(to, from->identity[j], j, &place[j], err));
    for (int k = 0; k < from->labels; k++)
        SVI_TRY(svi_prior_sums_label(to, from->label[k], k, &label[k], err));
    /* A part without features and labels has reserved nothing so far: `to` may have no arrays yet. */
    SVI_TRY(sums_reserve(to, to->n, to->labels, err));
    /* The triangle: entry (i, j) of the part belongs to (place_i, place_j), which may stand the other way
     * round. */
    for (int i = 0; i < from->n; i++)
        for (int j = 0; j <= i; j++) {
            const size_t at = sums_row(i) + (size_t)j;
            const int a = place[i] > place[j] ? place[i] : place[j], b = place[i] + place[j] - a;
            if (place[i] != SVI_PRIOR_NONE && place[j] != SVI_PRIOR_NONE)
                sums_move_one(to->high + sums_row(a) + b, to->low + sums_row(a) + b, from->high + at,
                              from->low + at, factor);
        }
    /* Sums by label, then by key: rows of coordinates, each row at the place of its label. What is counted
     * by key is the number of keys and their means, which no weight scales. */
    for (int k = 0; k < from->labels; k++) {
        const size_t at = (size_t)k * (size_t)from->capacity, into = (size_t)label[k] * (size_t)to->capacity;
        if (label[k] != SVI_PRIOR_NONE)
            sums_move_row(to->by_label + into, to->by_low + into, from->by_label + at, from->by_low + at,
                          place, from->n, factor);
    }
    for (int k = 0; k < SVI_PRIOR_OF_KEYS; k++) {
        const size_t at = (size_t)k * (size_t)from->capacity, into = (size_t)k * (size_t)to->capacity;
        sums_move_row(to->by_key + into, to->by_key_low + into, from->by_key + at, from->by_key_low + at,
                      place, from->n, 1);
    }
    for (int j = 0; j < from->n; j++)
        if (place[j] != SVI_PRIOR_NONE) {
            to->peak[place[j]] = fmax(to->peak[place[j]], factor * from->peak[j]);
            to->key_peak[place[j]] = fmax(to->key_peak[place[j]], from->key_peak[j]);
        }
    to->target_peak = fmax(to->target_peak, factor * from->target_peak);
    to->out += from->out;
    to->touched = true;
    return SVS_OK;
}

svs_code svi_prior_sums_move(struct svi_prior_sums *to, struct svi_prior_sums *from, svs_error *err) {
    SVI_TRY(svi_prior_sums_join(to, from, 1, err));
    if (from->touched)
        svi_prior_sums_empty(from);
    return SVS_OK;
}

svs_code svi_prior_sums_follow(struct svi_prior_sums *to, const struct svi_prior_sums *from, svs_error *err) {
    uint16_t place;
    for (int j = to->n; j < from->n; j++)
        SVI_TRY(svi_prior_sums_feature(to, from->identity[j], -1, &place, err));
    for (int k = to->labels; k < from->labels; k++)
        SVI_TRY(svi_prior_sums_label(to, from->label[k], -1, &place, err));
    return SVS_OK;
}

void svi_prior_sums_map(const struct svi_prior_sums *all, const struct svi_prior_sums *from, uint16_t *up) {
    up[0] = 0;
    for (int j = 1; j <= SVI_PRIOR_FEATURES; j++) {
        /* A coordinate beyond those of the part, or one that never reached the sums, has no place. */
        const bool known = j < from->n && all->n > 1;
        up[j] =
            known ? svi_prior_find(all->identity + 1, all->n - 1, from->identity[j], j - 1) : SVI_PRIOR_NONE;
        up[j] += up[j] != SVI_PRIOR_NONE;
    }
}

/* Has subtraction cost digits that count? A sum keeps about 32 digits of the largest that was ever in it; it
 * is worn where what is left is smaller by more than MAX_CANCELLATION, since then fewer than 16 digits of it
 * are right. Means of keys need fewer (MAX_KEY_CANCELLATION). */
bool svi_prior_sums_inexact(const struct svi_prior_sums *s, double target) {
    for (int i = 0; s->touched && i < s->n; i++) {
        const size_t square = (size_t)SVI_PRIOR_SQUARE * (size_t)s->capacity + (size_t)i;
        if (s->peak[i] > MAX_CANCELLATION * fmax(0, svi_prior_sums_at(s, i, i).high) ||
            s->key_peak[i] > MAX_KEY_CANCELLATION * fmax(0, s->by_key[square]))
            return true;
    }
    return s->touched && s->target_peak > MAX_CANCELLATION * s->high[0] * target * target;
}

/* ---- the archive */

/* Loading adds the label like any other; it must become the k-th, or the rows of sums would belong to
 * others. */
static void archive_label(struct svi_archive *a, struct svi_prior_sums *s, int k) {
    char capacity[SVS_NAME_MAX];
    svs_value label = svi_archive_loading(a) ? svs_none() : s->label[k];
    uint16_t place = 0;
    svi_archive_value(a, "label", &label, capacity);
    if (!svi_archive_loading(a) || !svi_archive_ok(a) ||
        !svi_archive_check(a, label.kind == SVS_INT || label.kind == SVS_STR, "a label is not valid"))
        return;
    if (svi_prior_sums_label(s, label, -1, &place, a->err) == SVS_OK)
        svi_archive_check(a, place == k, "two labels are the same");
}

void svi_prior_sums_archive(struct svi_archive *a, struct svi_prior_sums *s) {
    int n = s->n, labels = s->labels;
    svi_archive_int(a, "coordinates", &n, 1, SVI_PRIOR_FEATURES + 1);
    svi_archive_int(a, "labels", &labels, s->regress, s->regress ? 1 : SVI_PRIOR_LABELS);
    svi_archive_bool(a, "touched", &s->touched);
    svi_archive_double(a, "largest target", &s->target_peak);
    svi_archive_check(a, s->target_peak >= 0, "a square is below 0");
    svi_archive_int64(a, "samples left out", &s->out, INT64_MIN / 4, INT64_MAX / 4);
    const int64_t values = (int64_t)sums_row(n) + (int64_t)n * labels;
    if (!svi_archive_check(a, values <= svi_archive_left(a) / 16 || !s->touched, "sums are truncated") ||
        (svi_archive_loading(a) && sums_reserve(s, n, labels, a->err) != SVS_OK))
        return;
    s->n = n;
    for (int k = 0; k < labels && !s->regress; k++)
        archive_label(a, s, k);
    int32_t dims[DIMS], used[DIMS];
    sums_dims(s->capacity, s->label_capacity, true, dims);
    sums_dims(n, labels, s->touched, used);
    if (s->touched || n > 1) /* else there may be no arrays yet */
        svi_arrays_archive(a, &sums_arrays, s, dims, used);
}
