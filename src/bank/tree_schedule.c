#include "bank/tree_schedule.h"

#include <math.h>

#define MIN_ROWS     60  /* labelled samples before the first fit */
#define GROWTH       4   /* a fit is due when n has grown by 1 / GROWTH */
#define WORKER_SHARE 0.3 /* of the time of the stream's thread, that fits may take on average */
#define LAG_SHARE    1.0 /* a fit is taken up when the counted work would be done */
#define MAX_SPACING  1e9 /* samples: keeps the numbers in range */

/* The sample after which the next fit of `kind` is due. */
static int64_t schedule_due(const struct svi_tree_schedule *s, int kind,
                            const int64_t rows[SVI_TREES_KINDS]) {
    int64_t from = s->last[kind];
    if (kind == SVI_TREES_ALL && from < rows[SVI_TREES_RECENT])
        from = rows[SVI_TREES_RECENT];
    const int64_t grown = from / GROWTH, step = grown < rows[kind] ? grown : rows[kind];
    const int64_t due = from + (step > 0 ? step : 1);
    return due < MIN_ROWS ? MIN_ROWS : due;
}

int svi_tree_schedule_next(const struct svi_tree_schedule *s, int64_t n,
                           const int64_t rows[SVI_TREES_KINDS]) {
    int64_t due[SVI_TREES_KINDS];
    if (s->due > 0 || n < s->next)
        return -1;
    for (int k = 0; k < SVI_TREES_KINDS; k++)
        due[k] = schedule_due(s, k, rows);
    /* The one that has waited longer is first, so that neither starves the other. */
    const int first = due[SVI_TREES_ALL] < due[SVI_TREES_RECENT] ? SVI_TREES_ALL : SVI_TREES_RECENT;
    return due[first] <= n ? first : -1;
}

static int64_t schedule_samples(double work, double each) {
    const double samples = each > 0 ? ceil(work / each) : MAX_SPACING;
    return samples >= 1 ? (int64_t)fmin(samples, MAX_SPACING) : 1;
}

void svi_tree_schedule_begin(struct svi_tree_schedule *s, int kind, int64_t n, double work, double sample) {
    s->kind = kind;
    s->last[kind] = n;
    s->next = n + schedule_samples(work, WORKER_SHARE * sample);
    s->due = n + schedule_samples(work, LAG_SHARE * sample);
}

void svi_tree_schedule_end(struct svi_tree_schedule *s) {
    s->due = 0;
}

void svi_tree_schedule_archive(struct svi_archive *a, struct svi_tree_schedule *s) {
    svi_archive_int64s(a, "last fits", s->last, SVI_TREES_KINDS, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "next fit", &s->next, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "fit due", &s->due, 0, SVI_COUNT_MAX);
    svi_archive_int(a, "fit kind", &s->kind, 0, SVI_TREES_KINDS - 1);
}
