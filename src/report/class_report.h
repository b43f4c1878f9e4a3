/* class_report.h: precision, recall and F1 of each class as a table for people, and the confusion matrix.
 *
 *     class            precision    recall        f1       rows
 *     ok                  0.9934    0.9981    0.9958      45120
 *     fail                0.7500    0.4286    0.5455        880   positive
 *     macro average       0.8717    0.7133    0.7706      46000
 *     weighted average    0.9887    0.9872    0.9873      46000
 *
 * "-" is not known: nothing was decided for the class, or there was no sample of it (0 in an average). */
#ifndef SVI_CLASS_REPORT_H
#define SVI_CLASS_REPORT_H

#include <stdio.h>

#include "wire/class_table.h"

#define SVI_CLASS_REPORT_ROWS 20 /* classes with most rows, the others are counted */

/* Nothing for fewer than two classes. `positive`: index of the class that is marked so, -1 = none. */
void svi_class_report_write(FILE *to, const struct svi_class_table_reserve *t, int positive);

/* Rows the truth, columns the decision; t->confusion is known. */
void svi_class_report_confusion(FILE *to, const struct svi_class_table_reserve *t);

#endif
