/* class_figures.h: averages over classes of what each class has by itself.
 *
 * Macro averages take the classes that were labels or decisions alike; a share that is not known (nothing was
 * decided for the class, or no sample was of it) counts as 0. Weighted ones weigh a class by its labels; the
 * weighted recall is the accuracy. Balanced accuracy and G-mean are the arithmetic and the geometric mean of
 * the recalls of the classes that were labels. */
#ifndef SVI_CLASS_FIGURES_H
#define SVI_CLASS_FIGURES_H

#include "wire/class_table.h"

struct svi_class_averages {
    int64_t n, hits; /* labels; of these right */
    int commonest;   /* the class with most labels, the first of several; -1 = there is no label */
    double precision, recall, f1; /* macro; NAN: n is 0, as all that follow */
    double weighted_precision, weighted_f1;
    double balanced_accuracy, gmean;
};
struct svi_class_averages svi_class_averages(const struct svi_class_count *c, int classes);

#endif
