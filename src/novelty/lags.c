#include "novelty/lags.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

svs_code svi_lags_init(struct svi_lags *l, int d, int lags, bool differences, svs_error *err) {
    *l = (struct svi_lags){.d = d, .lags = lags, .differences = differences};
    if (d < 1 || lags < 1 || lags > SVI_LAGS_MAX)
        return svi_fail(err, SVS_INVALID, "lags are 1 to %d, not %d", SVI_LAGS_MAX, lags);
    l->ring = svi_alloc_array((size_t)lags, (size_t)d * sizeof *l->ring);
    return l->ring ? SVS_OK : svi_fail_memory(err, "the last samples");
}

void svi_lags_clear(struct svi_lags *l) {
    svi_free(l->ring);
    *l = (struct svi_lags){0};
}

void svi_lags_empty(struct svi_lags *l) {
    l->held = 0;
}

/* Writes the sample into the ring; once full, the row is the ring unrolled from the newest on: two copies. */
bool svi_lags_push(struct svi_lags *l, const double *x, double *out) {
    const size_t d = (size_t)l->d, bytes = d * sizeof *x;
    /* The ring is filled backwards, so that older samples follow newer ones. */
    l->newest = l->newest > 0 ? l->newest - 1 : l->lags - 1;
    memcpy(l->ring + (size_t)l->newest * d, x, bytes);
    l->held += l->held < l->lags;
    if (l->held < l->lags)
        return false;
    const size_t first = (size_t)(l->lags - l->newest), rest = (size_t)l->newest;
    memcpy(out, l->ring + (size_t)l->newest * d, first * bytes);
    memcpy(out + first * d, l->ring, rest * bytes);
    /* From the oldest on, so that each difference is taken before its newer value becomes one; the newest
     * stays a level. */
    for (size_t j = (size_t)l->lags * d; l->differences && j-- > d;)
        out[j] = out[j - d] - out[j];
    return true;
}

void svi_lags_widen(double *to, int wide, const double *from, int narrow, int64_t rows) {
    for (int64_t part = 0; part < rows; part++)
        memcpy(to + part * wide, from + part * narrow, (size_t)narrow * sizeof *to);
}

void svi_lags_renew(double *parts, int d, int64_t rows, int feature) {
    for (double *v = parts + feature; rows-- > 0; v += d)
        *v = isnan(*v) ? *v : 0;
}

char *svi_lags_name(const char *const *names, int d, bool differences, int j, char *out, size_t size) {
    char plain[24];
    snprintf(plain, sizeof plain, "x%d", j % d + 1);
    const char *name = names && names[j % d] ? names[j % d] : plain;
    if (j < d)
        snprintf(out, size, "%s", name);
    else if (differences)
        snprintf(out, size, "%s step[-%d]", name, j / d);
    else
        snprintf(out, size, "%s[-%d]", name, j / d);
    return out;
}

/* The sample that is `back` samples older than the newest. */
static double *lags_row(const struct svi_lags *l, int back) {
    return l->ring + (size_t)((l->newest + back) % l->lags) * (size_t)l->d;
}

/* Samples are stored oldest first, so the archive does not depend on where the ring begins. */
void svi_lags_archive(struct svi_archive *a, struct svi_lags *l) {
    const size_t bytes = (size_t)l->d * sizeof(double);
    svi_archive_int(a, "lags held", &l->held, 0, l->lags);
    if (!svi_archive_ok(a) || l->held == 0)
        return;
    double *rows = svi_alloc((size_t)l->held * bytes);
    if (!rows) {
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the last samples");
        return;
    }
    for (int i = 0; i < l->held && !svi_archive_loading(a); i++)
        memcpy(rows + (size_t)i * (size_t)l->d, lags_row(l, l->held - 1 - i), bytes);
    svi_archive_known(a, "lags", rows, (int64_t)l->held * l->d);
    if (svi_archive_loading(a))
        l->newest = 0;
    for (int i = 0; i < l->held && svi_archive_loading(a); i++)
        memcpy(lags_row(l, l->held - 1 - i), rows + (size_t)i * (size_t)l->d, bytes);
    svi_free(rows);
}
