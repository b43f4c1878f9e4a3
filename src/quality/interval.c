/* Order statistics of the last residuals, without sorting all of them.
 *
 * A tail holds the t smallest residuals in order (the upper tail: the t largest, negated), where t is between
 * k, the rank that is needed, and somewhat more. Nearly all residuals lie beyond the tail's last value and do
 * not touch it; those within are inserted when they arrive and deleted when they leave. When fewer than k are
 * left, or too many have gathered, the tail is selected from the ring again: on stationary residuals once in
 * some thousands.
 *
 * Invariant: a tail is exactly the t smallest of the ring. So the ends are those of the ring whatever t is,
 * and the archive holds the ring alone. Read interval_tail_* first, then svi_interval_learn. */
#include "quality/interval.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/statistics.h"
#include "base/stat_ring.h"

#define CAPACITY     SVI_INTERVAL_MAX
#define COMMON_LEVEL 0.998 /* highest level for which SVI_INTERVAL_RESIDUALS suffice */
#define SPARE        24    /* least number of residuals in a tail beyond those needed */
#define ROUNDING     1e-9  /* (n + 1)(1 - level) may round to just below an integer */
#define COUNT_MAX    (INT64_MAX / 8)

enum { OUTSIDE = 0, INSIDE = 1, UNKNOWN = 2 }; /* of a target; 2: there was no interval yet */

struct tail {
    int count;
    double sorted[CAPACITY]; /* ascending */
};

/* The fields that every sample touches are first, to share cache lines. */
struct svi_interval {
    double level;
    int count, at;    /* residuals stored; the slot of `ring` written next */
    int below, above; /* ranks of the ends in their tails, from 1; 0: no interval yet */
    bool skips;       /* the ring is full, and the last residual was skipped */
    double ends[2];   /* valid while the ranks are not 0 */
    int64_t judged, inside;
    double width; /* sum of widths */
    int64_t judged_window, inside_window;
    struct svi_stat_ring places;
    double ring[CAPACITY], scratch[CAPACITY];
    struct tail low, high; /* `high`: of -r */
    uint8_t covered[];     /* ring of the window */
};

/* ---- tails */

/* The first place whose value is not less. No branch depends on a value, because residuals arrive in random
 * order. */
static int interval_tail_place(const struct tail *t, double value) {
    const double *at = t->sorted;
    for (int left = t->count; left > 0;) {
        const int half = (left + 1) / 2;
        at += at[half - 1] < value ? half : 0;
        left -= half;
    }
    return (int)(at - t->sorted);
}

/* A residual beyond the last value belongs to the tail only if the tail holds all residuals (`all`):
 * otherwise values between the two may be missing. */
static void interval_tail_add(struct tail *t, double value, bool all) {
    if (!all && (t->count == 0 || value >= t->sorted[t->count - 1]))
        return;
    const int i = interval_tail_place(t, value);
    memmove(t->sorted + i + 1, t->sorted + i, (size_t)(t->count++ - i) * sizeof value);
    t->sorted[i] = value;
}

/* The value is within the tail exactly if it is not beyond its last value. */
static void interval_tail_remove(struct tail *t, double value) {
    if (t->count == 0 || value > t->sorted[t->count - 1])
        return;
    const int i = interval_tail_place(t, value);
    memmove(t->sorted + i, t->sorted + i + 1, (size_t)(--t->count - i) * sizeof value);
}

/* Sorts what svi_select_rank has moved to the front. Insertion sort is enough for short runs but not for half
 * a ring, so longer runs are halved by the same selection first. */
static void interval_sort(double *v, int n) {
    while (n > 16) {
        const int middle = n / 2;
        svi_select_rank(v, n, middle);
        interval_sort(v, middle);
        v += middle;
        n -= middle;
    }
    for (int i = 1; i < n; i++) {
        const double value = v[i];
        int j = i;
        for (; j > 0 && v[j - 1] > value; j--)
            v[j] = v[j - 1];
        v[j] = value;
    }
}

/* Residuals to select for a rank: an eighth more, so that reselection stays rare at high ranks too. */
static int interval_spare(int rank) {
    return rank + SPARE + rank / 8;
}

/* The number of residuals stored at this level. */
static int interval_max_count(const svi_interval *v) {
    return v->level > COMMON_LEVEL ? SVI_INTERVAL_MAX : SVI_INTERVAL_RESIDUALS;
}

/* The slot of the oldest residual. */
static int interval_oldest(const svi_interval *v) {
    const int at = v->at - v->count;
    return at < 0 ? at + CAPACITY : at;
}

/* Selects a tail from the ring; sign -1 gives the upper one. O(count). */
static void interval_tail_pick(svi_interval *v, struct tail *t, int rank, double sign) {
    /* With few residuals the tail holds all of them, which interval_tail_add recognises by the equal
     * counts. */
    const int wanted = interval_spare(rank), count = wanted < v->count ? wanted : v->count;
    for (int i = 0, at = interval_oldest(v); i < v->count; i++, at = at + 1 == CAPACITY ? 0 : at + 1)
        v->scratch[i] = sign * v->ring[at];
    if (count < v->count)
        svi_select_rank(v->scratch, v->count, count - 1);
    interval_sort(v->scratch, count);
    memcpy(t->sorted, v->scratch, (size_t)count * sizeof *t->sorted);
    t->count = count;
}

/* Does the tail reach the rank, and has it not grown so far that insertion gets expensive? */
static bool interval_tail_good(const svi_interval *v, const struct tail *t, int rank) {
    const int most = interval_spare(rank) + SPARE + rank / 8;
    return (t->count >= rank || t->count == v->count) && t->count <= most;
}

static void interval_find_ends(svi_interval *v) {
    if (!interval_tail_good(v, &v->low, v->below))
        interval_tail_pick(v, &v->low, v->below, 1);
    if (!interval_tail_good(v, &v->high, v->above))
        interval_tail_pick(v, &v->high, v->above, -1);
    if (v->below == 0)
        return;
    v->ends[0] = v->low.sorted[v->below - 1];
    v->ends[1] = -v->high.sorted[v->above - 1];
}

/* m = floor((n + 1)(1 - level)) ranks are outside: floor(m / 2) below, the rest above (interval.h). */
static void interval_rank(svi_interval *v) {
    const int outside = (int)((v->count + 1) * (1 - v->level) + ROUNDING);
    const bool known = v->level > 0 && outside >= 2;
    v->below = known ? outside / 2 : 0;
    v->above = known ? outside - outside / 2 : 0;
}

/* ---- the object */

/* The ring of outcomes follows the struct: one byte per sample of the window. */
svi_interval *svi_interval_new(int64_t window, svs_error *err) {
    svi_interval *v = svi_new(sizeof *v + (size_t)window, "the residuals of intervals", err);
    if (!v)
        return NULL;
    v->places.window = window;
    return v;
}

void svi_interval_free(svi_interval **v) {
    svi_free(*v);
    *v = NULL;
}

double svi_interval_memory(int64_t window) {
    return (double)sizeof(struct svi_interval) + (double)window;
}

void svi_interval_reset(svi_interval *v) {
    const double level = v->level;
    const int64_t window = v->places.window;
    memset(v, 0, sizeof *v);
    v->level = level;
    v->places.window = window;
}

/* Copies residuals and tails; the ring of outcomes stays *v's own, so its counts restart. */
void svi_interval_take_over(svi_interval *v, const svi_interval *of) {
    const struct svi_stat_ring places = v->places;
    *v = *of;
    v->places = places;
    v->judged_window = v->inside_window = 0;
}

/* Adapts everything to the present level: drops the oldest residuals beyond its number, then derives ranks,
 * tails and ends. Reducing `count` drops the oldest because they are found by counting back from `at`. */
static void interval_settle(svi_interval *v) {
    const int most = v->level > 0 ? interval_max_count(v) : 0;
    v->count = v->count < most ? v->count : most;
    v->low.count = v->high.count = 0;
    interval_rank(v);
    interval_tail_pick(v, &v->low, v->below, 1);
    interval_tail_pick(v, &v->high, v->above, -1);
    interval_find_ends(v);
}

void svi_interval_set_level(svi_interval *v, double level) {
    if (v->level == level)
        return;
    v->level = level;
    interval_settle(v);
}

bool svi_interval_ends(const svi_interval *v, double *ends) {
    ends[0] = v->ends[0];
    ends[1] = v->ends[1];
    return v->below > 0;
}

static void interval_count(svi_interval *v, bool known, bool inside, double width) {
    /* Coverage over the window: the oldest outcome is subtracted before its slot is overwritten. Counts are
     * integers, so this is exact. */
    const uint8_t now = (uint8_t)(!known ? UNKNOWN : inside ? INSIDE : OUTSIDE);
    uint8_t *covered = &v->covered[v->places.slot];
    if (svi_stat_ring_full(&v->places)) {
        v->judged_window -= *covered != UNKNOWN;
        v->inside_window -= *covered == INSIDE;
    }
    *covered = now;
    svi_stat_ring_advance(&v->places);
    v->judged += known;
    v->inside += now == INSIDE;
    v->width += known ? width : 0;
    v->judged_window += known;
    v->inside_window += now == INSIDE;
}

/* Stores a residual. `full`: the oldest makes place for it, and leaves the tails first, while its value still
 * stands in the ring. Ranks change only while the number of residuals grows. */
static void interval_take(svi_interval *v, double residual, bool full) {
    if (full) {
        const double oldest = v->ring[interval_oldest(v)];
        interval_tail_remove(&v->low, oldest);
        interval_tail_remove(&v->high, -oldest);
        v->count--;
    }
    interval_tail_add(&v->low, residual, v->low.count == v->count);
    interval_tail_add(&v->high, -residual, v->high.count == v->count);
    v->ring[v->at] = residual;
    v->at = v->at + 1 == CAPACITY ? 0 : v->at + 1;
    v->count++;
    if (!full)
        interval_rank(v);
    interval_find_ends(v);
}

void svi_interval_learn(svi_interval *v, double score, double leverage, double target) {
    if (!(v->level > 0))
        return;
    /* The interval of this row has the leverage's scale, as it was published. */
    const double error = target - score, scale = sqrt(1 + leverage), low = scale * v->ends[0],
                 high = scale * v->ends[1];
    /* Coverage is prequential: the target is compared with the interval that was valid before its residual is
     * stored. */
    interval_count(v, v->below > 0, low <= error && error <= high, high - low);
    /* A leverage of 1 or more means that the model knew nothing in the row's direction: its residual has
     * another distribution. */
    if (!(leverage < 1) || !isfinite(error))
        return;
    const bool full = v->count == interval_max_count(v);
    /* A full ring takes every second residual only, which doubles the time span it covers. */
    if (full)
        v->skips = !v->skips;
    if (!full || !v->skips)
        interval_take(v, error / scale, full);
}

struct svi_interval_quality svi_interval_quality(const svi_interval *v) {
    const double n = (double)v->judged; /* 0: NAN */
    return (struct svi_interval_quality){.coverage = (double)v->inside / n,
                                         .windowed = (double)v->inside_window / (double)v->judged_window,
                                         .width = v->width / n};
}

/* ---- archive */

/* The window's counts are derived from its outcomes, which may be damaged. */
static void interval_recount(struct svi_archive *a, svi_interval *v) {
    v->judged_window = v->inside_window = 0;
    for (int64_t i = 0; i < v->places.filled; i++) {
        svi_archive_check(a, v->covered[i] <= UNKNOWN, "a sample is neither inside its interval nor outside");
        v->judged_window += v->covered[i] != UNKNOWN;
        v->inside_window += v->covered[i] == INSIDE;
    }
}

/* Residuals in order of arrival, so that the archive does not depend on where the ring begins. */
static void interval_archive_residuals(struct svi_archive *a, svi_interval *v) {
    const bool loading = svi_archive_loading(a);
    svi_archive_int(a, "residuals", &v->count, 0, CAPACITY);
    svi_archive_bool(a, "skips", &v->skips);
    if (!svi_archive_ok(a))
        return;
    /* The oldest residual gets slot 0 when loading, which changes no figure. */
    for (int i = 0, at = interval_oldest(v); i < v->count && !loading;
         i++, at = at + 1 == CAPACITY ? 0 : at + 1)
        v->scratch[i] = v->ring[at];
    svi_archive_finite(a, "residuals in order", v->scratch, v->count);
    if (!loading)
        return;
    memcpy(v->ring, v->scratch, (size_t)v->count * sizeof *v->ring);
    v->at = v->count % CAPACITY;
    if (svi_archive_ok(a))
        interval_settle(v);
}

void svi_interval_archive(struct svi_archive *a, svi_interval *v) {
    if (svi_archive_loading(a))
        svi_interval_reset(v);
    interval_archive_residuals(a, v);
    svi_archive_int64(a, "judged", &v->judged, 0, COUNT_MAX);
    svi_archive_int64(a, "inside", &v->inside, 0, v->judged);
    svi_archive_double(a, "width", &v->width);
    if (!svi_stat_ring_archive(a, &v->places))
        return;
    svi_archive_bytes(a, "covered", v->covered, v->places.filled);
    if (svi_archive_loading(a) && svi_archive_ok(a))
        interval_recount(a, v);
}
