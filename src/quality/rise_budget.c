#include "quality/rise_budget.h"

#include <math.h>

#define DAY     86400.0
#define MAX_GAP 20 /* mean intervals */

void svi_rise_budget_row(struct svi_rise_budget *b, double time, double row_seconds) {
    const double mean = b->rows > 1 ? b->days * DAY / (double)(b->rows - 1) : 0;
    double seconds = row_seconds > 0 ? row_seconds : b->rows > 0 ? fmax(0, time - b->last) : 0;
    if (b->rows > MAX_GAP && mean > 0)
        seconds = fmin(seconds, MAX_GAP * mean);
    b->last = time;
    b->days += b->rows++ > 0 ? seconds / DAY : 0;
}

bool svi_rise_budget_allows(const struct svi_rise_budget *b, double size) {
    const double m = fmax(SVI_RISE_GRANT, SVI_RISE_PART * b->a_day * fmin(b->days, SVI_RISE_MEMORY));
    int larger = 0;
    /* More than are kept could have been reported: then none is too small. */
    if (!(b->a_day > 0) || m > SVI_RISE_KEPT)
        return true;
    for (int i = 0; i < b->count; i++)
        larger += b->days - b->rises[i].at <= SVI_RISE_MEMORY && b->rises[i].size >= size;
    return larger < (int)m;
}

void svi_rise_budget_keep(struct svi_rise_budget *b, double size) {
    int kept = 0;
    for (int i = 0; i < b->count; i++)
        if (b->days - b->rises[i].at <= SVI_RISE_MEMORY)
            b->rises[kept++] = b->rises[i];
    b->count = kept;
    if (b->count == SVI_RISE_KEPT && b->rises[SVI_RISE_KEPT - 1].size >= size)
        return;
    int at = b->count < SVI_RISE_KEPT ? b->count++ : SVI_RISE_KEPT - 1;
    for (; at > 0 && b->rises[at - 1].size < size; at--)
        b->rises[at] = b->rises[at - 1];
    b->rises[at] = (struct svi_rise){size, b->days};
}

void svi_rise_budget_archive(struct svi_archive *a, struct svi_rise_budget *b) {
    svi_archive_int64(a, "rise rows", &b->rows, 0, SVI_COUNT_MAX);
    svi_archive_finite(a, "rise days", &b->days, 1);
    svi_archive_finite(a, "rise last", &b->last, 1);
    svi_archive_int(a, "rises", &b->count, 0, SVI_RISE_KEPT);
    for (int i = 0; i < b->count && svi_archive_ok(a); i++) {
        svi_archive_finite(a, "rise", &b->rises[i].size, 1);
        svi_archive_finite(a, "rise at", &b->rises[i].at, 1);
    }
}
