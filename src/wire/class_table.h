/* class_table.h: what is known of each class: counts, the shares that follow from them, and the map that
 * tells them. */
#ifndef SVI_CLASS_TABLE_H
#define SVI_CLASS_TABLE_H

#include <math.h>
#include <stdint.h>

#include "svmstream/value.h"

struct svi_class_count {
    int64_t support, predicted, hits; /* labels, decisions for it, both at once */
};

/* Of all that were taken for the class, the share that were of it. NAN: it was never decided for. */
static inline double svi_class_precision(const struct svi_class_count *c) {
    return c->predicted > 0 ? (double)c->hits / (double)c->predicted : NAN;
}

/* Of all that were of the class, the share that were taken for it. NAN: there was none. */
static inline double svi_class_recall(const struct svi_class_count *c) {
    return c->support > 0 ? (double)c->hits / (double)c->support : NAN;
}

/* The harmonic mean of both, 0 where only one is known. NAN: neither is. */
static inline double svi_class_f1(const struct svi_class_count *c) {
    const int64_t both = c->support + c->predicted;
    return both > 0 ? 2.0 * (double)c->hits / (double)both : NAN;
}

/* `count` classes; over all that was judged, and over the window. A matrix has count x count entries, rows
 * the truth, columns the decision; NULL: it is not kept (more than SVI_CONFUSION_MAX classes, see
 * quality/confusion.h) or not asked for. */
struct svi_class_table {
    int count;
    const svs_value *classes;
    const struct svi_class_count *all, *window; /* window: NULL = there is none */
    const int64_t *confusion, *confusion_window;
};

/* Puts the pairs `by_class`, and `confusion` and `confusion.w` where they are known, into an open map; with
 * count 0 none. */
struct svi_pack;
void svi_put_class_table(struct svi_pack *p, const struct svi_class_table *t);

#endif
