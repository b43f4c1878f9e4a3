#include "learner/window_sums.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

svs_code svi_window_sums_shape(struct svi_window_sums *s, int d, int classes, svs_error *err) {
    double *block = s->block;
    size_t capacity = s->capacity;
    *s = (struct svi_window_sums){.block = block, .capacity = capacity};
    if (d > SVI_SUMS_FEATURES_MAX || classes > SVI_SUMS_CLASSES_MAX)
        return svi_fail(err, SVS_LIMIT, "sums of %d features and %d classes: at most %d and %d fit", d,
                        classes, SVI_SUMS_FEATURES_MAX, SVI_SUMS_CLASSES_MAX);
    const size_t wide = (size_t)d, groups = (size_t)classes;
    /* center, sum and target_sum; one more, so that no array is NULL. */
    const size_t needed = 3 * wide + svi_sums_packed(d) + groups + groups * wide + 1;
    if (needed > capacity) {
        svi_window_sums_clear(s);
        if (!(block = svi_alloc_array(needed, sizeof *block)))
            return svi_fail_memory(err, "the sums of a window");
        s->block = block;
        s->capacity = needed;
    } else {
        memset(block, 0, needed * sizeof *block);
    }
    s->d = d;
    s->classes = classes;
    s->center = block;
    s->sum = s->center + wide;
    s->target_sum = s->sum + wide;
    s->square = s->target_sum + wide;
    s->class_weight = s->square + svi_sums_packed(d);
    s->class_sum = s->class_weight + groups;
    return SVS_OK;
}

void svi_window_sums_clear(struct svi_window_sums *s) {
    svi_free(s->block);
    *s = (struct svi_window_sums){0};
}
