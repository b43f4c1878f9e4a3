#include "judges/deviations.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/wide.h"
#include "judges/floats_move.h"

#define HALF   (SVI_CONTEXT_BINS / 2)
#define VISITS 90          /* rows that a bin remembers */
#define MOST   25          /* squared deviations that one residual counts as, but for ... */
#define EARLY  (1.0f / 64) /* ... as long as its share is above this */

size_t svi_deviations_room(int series) {
    return (size_t)(SVI_CONTEXT_BINS + 2) * (size_t)series;
}

void svi_deviations_place(struct svi_deviations *v, float *block) {
    v->square = block;
    v->overall = v->square + (size_t)SVI_CONTEXT_BINS * (size_t)v->series;
    v->now = v->overall + v->series;
}

svs_code svi_deviations_init(struct svi_deviations *v, int series, svs_error *err) {
    *v = (struct svi_deviations){.series = series, .bin = -1};
    v->square = svi_alloc_array(SVI_CONTEXT_BINS + 2, (size_t)series * sizeof *v->square);
    if (!v->square)
        return svi_fail_memory(err, "the deviations of the sensors");
    svi_deviations_place(v, v->square);
    return SVS_OK;
}

void svi_deviations_move(struct svi_deviations *v, const uint8_t *skip, char **at, bool out) {
    for (int b = 0; b < SVI_CONTEXT_BINS; b++)
        if (v->visits[b] > 0)
            svi_floats_move(v->square + (size_t)b * (size_t)v->series, v->series, skip, at, out);
    svi_floats_move(v->overall, v->series, skip, at, out);
    svi_floats_move(v->now, v->series, skip, at, out);
    for (int j = 0; !out && skip && v->bin >= 0 && j < v->series; j++)
        v->now[j] = skip[j] ? 1 : v->now[j];
}

int svi_deviations_bins(const struct svi_deviations *v) {
    int bins = 0;
    for (int b = 0; b < SVI_CONTEXT_BINS; b++)
        bins += v->visits[b] > 0;
    return bins;
}

size_t svi_deviations_packed(int series, int bins) {
    return (size_t)(bins + 2) * (size_t)series * sizeof(float);
}

void svi_deviations_clear(struct svi_deviations *v) {
    svi_free(v->square);
    *v = (struct svi_deviations){0};
}

void svi_deviations_turn_to(struct svi_deviations *v, int bin) {
    const int first = bin / HALF * HALF, n = v->series;
    const int before = first + (bin - first + HALF - 1) % HALF, after = first + (bin - first + 1) % HALF;
    const float *b = v->square + (size_t)before * (size_t)n, *at = v->square + (size_t)bin * (size_t)n,
                *a = v->square + (size_t)after * (size_t)n;
    const float rows = SVI_DEVIATION_STEADY + v->visits[bin] + (v->visits[before] + v->visits[after]) / 2;
    for (int j = 0; j < n; j++) {
        const float square = (SVI_DEVIATION_STEADY * v->overall[j] + at[j] + (b[j] + a[j]) / 2) / rows;
        v->now[j] = v->overall[j] > 0 ? fmaxf(SVI_DEVIATION_LEAST, sqrtf(square)) : 1;
    }
    v->bin = bin;
}

/* A series that comes late: as if it had always had the deviation 1, or that would grow for thousands of rows
 * from nothing, and what it showed meanwhile be far beyond all that follows. */
static void deviations_begin(struct svi_deviations *v, int j) {
    v->overall[j] = v->now[j] = 1;
    for (size_t b = 0; b < SVI_CONTEXT_BINS; b++)
        v->square[b * (size_t)v->series + (size_t)j] = v->visits[b];
}

/* Squares count up to MOST times those of now or of all times, but for the first rows. */
SVI_WIDE
static void deviations_add(float *restrict sum, float *restrict overall, const float *restrict now,
                           const float *restrict residual, float keep, float share, int n) {
    const bool early = share > EARLY;
    for (int j = 0; j < n; j++) {
        const float square = residual[j] * residual[j], a = MOST * now[j] * now[j], b = MOST * overall[j];
        const float most = early ? INFINITY : a > b ? a : b;
        const float counted = square < most ? square : most;
        sum[j] = sum[j] * keep + counted;
        overall[j] += share * (counted - overall[j]);
    }
}

void svi_deviations_learn(struct svi_deviations *v, int bin, const float *residual, float share) {
    const float keep = v->visits[bin] >= VISITS ? 1 - 1.0f / VISITS : 1;
    for (int j = 0; j < v->series && share <= EARLY; j++)
        if (v->overall[j] == 0 && residual[j] != 0)
            deviations_begin(v, j);
    v->visits[bin] = v->visits[bin] * keep + 1;
    deviations_add(v->square + (size_t)bin * (size_t)v->series, v->overall, v->now, residual, keep, share,
                   v->series);
}

void svi_deviations_forget(struct svi_deviations *v, int parts, int column) {
    for (int j = column; j < v->series; j += v->series / parts) {
        for (size_t b = 0; b < SVI_CONTEXT_BINS; b++)
            v->square[b * (size_t)v->series + (size_t)j] = 0;
        v->overall[j] = 0;
        v->now[j] = 1;
    }
}

void svi_deviations_widen(struct svi_deviations *to, const struct svi_deviations *from, int parts) {
    const size_t narrow = (size_t)(from->series / parts), wide = (size_t)(to->series / parts);
    for (size_t i = 0; i < (size_t)(SVI_CONTEXT_BINS + 2) * (size_t)parts; i++)
        memcpy(to->square + i * wide, from->square + i * narrow, narrow * sizeof *to->square);
    for (int j = 0; j < to->series; j++)
        to->now[j] = to->now[j] > 0 ? to->now[j] : 1;
    memcpy(to->visits, from->visits, sizeof to->visits);
    to->bin = from->bin;
}

void svi_deviations_archive(struct svi_archive *a, struct svi_deviations *v) {
    svi_archive_floats(a, "squares", v->square, (int64_t)(SVI_CONTEXT_BINS + 2) * v->series);
    svi_archive_floats(a, "visits", v->visits, SVI_CONTEXT_BINS);
    svi_archive_int(a, "bin", &v->bin, -1, SVI_CONTEXT_BINS - 1);
}

double svi_deviations_memory(int series) {
    return (double)(SVI_CONTEXT_BINS + 2) * series * sizeof(float);
}
