/* class_report.h: precision, recall and F1 of each class as a table for people, and the confusion matrix.
 *
 *     class            precision    recall        f1       rows
 *     ok                  0.9934    0.9981    0.9958      45120
 *     fail                0.7500    0.4286    0.5455        880   positive
 *     macro average       0.8717    0.7133    0.7706      46000
 *     weighted average    0.9887    0.9872    0.9873      46000
 *
 * "-" means not known: the class was never decided for, or had no sample (counts as 0 in an average). */
#ifndef SVI_CLASS_REPORT_H
#define SVI_CLASS_REPORT_H

#include <stdio.h>

#include "wire/class_table.h"

#define SVI_CLASS_REPORT_ROWS 20 /* classes listed, those with most rows; the others are only counted */

/* Prints the table; nothing for fewer than two classes. `positive`: index of the class marked as positive, -1
 * = none. */
void svi_class_report_write(FILE *to, const struct svi_class_table *t, int positive);

/* Prints the confusion matrix: a row for each true class, a column for each decision. Needs t->confusion. */
void svi_class_report_confusion(FILE *to, const struct svi_class_table *t);

#endif
