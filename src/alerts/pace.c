#include "alerts/pace.h"

#include <math.h>

#include "alerts/block_tails.h"

#define WEEK  604800.0
#define FIRST 32 /* rows before the memory is looked at */

void svi_pace_init(struct svi_pace *p) {
    *p = (struct svi_pace){.memory = SVI_PACE_LEAST};
}

bool svi_pace_row(struct svi_pace *p, double time) {
    p->since = p->rows == 0 ? time : p->since;
    p->rows++;
    if (p->rows < FIRST || (p->rows & (p->rows - 1)) != 0 || !(time > p->since))
        return false;
    p->memory = fmax(SVI_PACE_LEAST, fmin((double)p->rows / (time - p->since) * WEEK, SVI_PACE_MOST));
    return true;
}

int64_t svi_pace_block(const struct svi_pace *p) {
    int64_t rows = SVI_BLOCK_LEAST;
    while ((double)rows * 2 * SVI_BLOCKS <= 4 * p->memory)
        rows *= 2;
    return rows;
}

void svi_pace_archive(struct svi_archive *a, struct svi_pace *p) {
    svi_archive_int64(a, "rows", &p->rows, 0, INT64_MAX / 4);
    svi_archive_finite(a, "since", &p->since, 1);
    svi_archive_finite(a, "memory", &p->memory, 1);
    svi_archive_check(a, p->memory >= SVI_PACE_LEAST && p->memory <= SVI_PACE_MOST,
                      "the memory of the judges is out of range");
}
