/* Means and squared deviations by bucket of errors, and the raw rows of the samples that are in none.
 *
 * What happens to the buckets is not decided here: the detector notes in its event which slot took the oldest
 * rows and which slots became one, and this follows (svi_drift_moments_step). Squared deviations are about
 * the mean of their own stretch, so that a feature like a time stamp, whose mean is a billion deviations,
 * keeps its digits. What moved is looked for at an alarm only.
 */
#include "quality/drift_moments.h"

#include <math.h>
#include <string.h>

#include "base/arrays.h"
#include "base/statistics.h"

#define TOGETHER        8    /* columns, as quads take them; room is a multiple of it */
#define LEAST_DEVIATION 1e-9 /* of the mean's size: below it is rounding */

enum { FEATURES };

static const struct svi_array arrays[] = {
    SVI_ARRAY(struct svi_drift_moments, bucket, NULL, SVI_AXIS_LENGTH(2 * SVI_DRIFT_BUCKETS),
              SVI_AXIS(FEATURES)),
    SVI_ARRAY(struct svi_drift_moments, recent, NULL, SVI_AXIS_LENGTH(SVI_DRIFT_RECENT), SVI_AXIS(FEATURES)),
};
static const struct svi_arrays moments_arrays = SVI_ARRAYS(arrays, "the moments of the features");

static double *moments_of(const struct svi_drift_moments *m, int slot) {
    return m->bucket + (size_t)slot * 2 * (size_t)m->room;
}

static double *moments_row(const struct svi_drift_moments *m, int64_t place) {
    return m->recent + (size_t)(place & (SVI_DRIFT_RECENT - 1)) * (size_t)m->room;
}

void svi_drift_moments_free(struct svi_drift_moments *m) {
    svi_arrays_free(&moments_arrays, m);
    *m = (struct svi_drift_moments){0};
}

static int32_t moments_room(int d) {
    int room = TOGETHER;
    while (room < d)
        room *= 2;
    return room < SVI_DRIFT_FEATURES ? room : SVI_DRIFT_FEATURES;
}

svs_code svi_drift_moments_reserve(struct svi_drift_moments *m, int d, svs_error *err) {
    const int32_t room = moments_room(d);
    if (d <= m->room || m->off)
        return SVS_OK;
    if (d > SVI_DRIFT_FEATURES) {
        svi_drift_moments_free(m);
        m->off = true;
        return SVS_OK;
    }
    const svs_code code = svi_arrays_resize(&moments_arrays, m, &m->room, &room, err);
    m->room = code == SVS_OK ? room : m->room;
    m->quads = m->quads ? m->quads : svi_quads_get();
    return code;
}

/* The block of rows that begins at `place` into a slot. */
static void moments_fold(struct svi_drift_moments *m, int slot, int64_t place) {
    double *mean = moments_of(m, slot), *squares = mean + m->room;
    const int columns = (m->d + TOGETHER - 1) / TOGETHER * TOGETHER;
    memset(mean, 0, 2 * (size_t)m->room * sizeof *mean);
    m->quads->moments(m->recent, SVI_DRIFT_RECENT, place, SVI_DRIFT_BLOCK, m->room, columns, mean, squares);
}

static void moments_join(struct svi_drift_moments *m, int into, int64_t n_into, int from, int64_t n_from) {
    double *mean = moments_of(m, into), *squares = mean + m->room;
    const double *mean_from = moments_of(m, from), *squares_from = mean_from + m->room;
    const double share = (double)n_from / (double)(n_into + n_from), both = (double)n_into * share;
    for (int j = 0; j < m->d; j++) {
        const double gap = mean_from[j] - mean[j];
        mean[j] += gap * share;
        squares[j] += squares_from[j] + gap * gap * both;
    }
}

/* Rows that went into buckets, and buckets that became one. On its own: few samples have any. */
static __attribute__((noinline)) void moments_follow(struct svi_drift_moments *m, const struct svi_drift *d) {
    const struct svi_drift_event *e = &d->event;
    if (e->slot >= 0)
        moments_fold(m, e->slot, d->pushed - 1 - SVI_DRIFT_RECENT);
    for (int i = 0; i < e->merges; i++)
        moments_join(m, e->merge[i].into, e->merge[i].n_into, e->merge[i].from, e->merge[i].n_from);
}

void svi_drift_moments_step(struct svi_drift_moments *m, const struct svi_drift *d, const double *x,
                            int features) {
    if (features > m->room || m->room == 0 || d->pushed == 0)
        return;
    m->d = features > m->d ? features : m->d;
    if (d->event.slot >= 0) /* merges come with a slot alone */
        moments_follow(m, d);
    double *row = moments_row(m, d->pushed - 1);
    if (!x && m->d > 0 && d->pushed == 1) /* there is no row before */
        memset(row, 0, (size_t)m->d * sizeof *row);
    else if (!x && m->d > 0)
        memcpy(row, moments_row(m, d->pushed + SVI_DRIFT_RECENT - 2), (size_t)m->d * sizeof *row);
    if (!x)
        return;
    memcpy(row, x, (size_t)features * sizeof *x);
    if (features < m->d)
        memset(row + features, 0, (size_t)(m->d - features) * sizeof *x);
}

void svi_drift_moments_clear(struct svi_drift_moments *m, int feature) {
    if (feature < m->d)
        svi_arrays_forget(&moments_arrays, m, &m->room, FEATURES, feature);
}

/* ---- what moved */

/* Feature j over buckets from .. to - 1 and the recent samples from the `newest` + `count` -th last on. */
static struct svi_moments moments_sum(const struct svi_drift_moments *m, const struct svi_drift *d, int j,
                                      int from, int to, int newest, int count) {
    struct svi_moments sum = {0};
    for (int i = from; i < to; i++) {
        const double *of = moments_of(m, d->bucket[i].slot);
        svi_moments_merge(&sum, (struct svi_moments){(double)d->bucket[i].of.n, of[j], of[m->room + j]});
    }
    for (int i = newest + count - 1; i >= newest; i--)
        svi_moments_add(&sum, moments_row(m, d->pushed - 1 - i)[j]);
    return sum;
}

static struct svi_drift_shift moments_shift(const struct svi_drift_moments *m, const struct svi_drift *d,
                                            const struct svi_drift_found *f, int j) {
    const struct svi_moments b =
        moments_sum(m, d, j, 0, f->bucket, f->recent, f->bucket < d->buckets ? 0 : d->recent - f->recent);
    const struct svi_moments a = moments_sum(m, d, j, f->bucket, d->buckets, 0, f->recent);
    const double pooled = sqrt((b.squares + a.squares) / (b.n + a.n)), gap = a.mean - b.mean,
                 least = LEAST_DEVIATION * fmax(fabs(a.mean), fabs(b.mean));
    return (struct svi_drift_shift){.feature = j,
                                    .before = b.mean,
                                    .after = a.mean,
                                    .deviation = sqrt(b.squares / b.n),
                                    .shift = fabs(gap) > least ? gap / fmax(pooled, least) : 0};
}

int svi_drift_moments_top(const struct svi_drift_moments *m, const struct svi_drift *d,
                          const struct svi_drift_found *found, int most, struct svi_drift_shift *out) {
    int count = 0;
    if (found->before.n < 1 || found->after.n < 1)
        return 0;
    /* the largest of d normal values, and two more of their deviations */
    const double chance =
        (sqrt(2 * log(fmax(1, m->d))) + 2) * sqrt(1 / (double)found->before.n + 1 / (double)found->after.n);
    for (int j = 0; j < m->d; j++) {
        const struct svi_drift_shift s = moments_shift(m, d, found, j);
        int at = count;
        if (!(fabs(s.shift) > chance))
            continue;
        while (at > 0 && fabs(s.shift) > fabs(out[at - 1].shift))
            at--;
        if (at == most)
            continue;
        count += count < most;
        memmove(out + at + 1, out + at, (size_t)(count - 1 - at) * sizeof *out);
        out[at] = s;
    }
    return count;
}

/* ---- archive */

void svi_drift_moments_archive(struct svi_archive *a, struct svi_drift_moments *m,
                               const struct svi_drift *d) {
    int features = m->d;
    svi_archive_bool(a, "too many features", &m->off);
    svi_archive_int(a, "features", &features, 0, SVI_DRIFT_FEATURES);
    if (!svi_archive_check(a, !m->off || features == 0, "moments of too many features") || features == 0)
        return;
    if (svi_archive_loading(a)) {
        const int64_t values = (int64_t)features * (2 * d->buckets + d->recent);
        if (!svi_archive_check(a, values <= svi_archive_left(a) / (int64_t)sizeof(double),
                               "the moments of the features are truncated") ||
            svi_drift_moments_reserve(m, features, a->err) != SVS_OK)
            return;
        m->d = features;
    }
    for (int i = 0; i < d->buckets; i++) {
        svi_archive_known(a, "means", moments_of(m, d->bucket[i].slot), m->d);
        svi_archive_known(a, "squares", moments_of(m, d->bucket[i].slot) + m->room, m->d);
    }
    for (int i = d->recent - 1; i >= 0; i--)
        svi_archive_finite(a, "row", moments_row(m, d->pushed - 1 - i), m->d);
}

double svi_drift_moments_memory(int d) {
    const int32_t room = moments_room(d);
    return d > SVI_DRIFT_FEATURES ? 0 : (double)svi_arrays_bytes(&moments_arrays, &room);
}
