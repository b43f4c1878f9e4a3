/* tuning_report.h: leave-one-out results for values of C, for people.
 *
 *              C      wrong    squared       gain      noise
 *           0.25      0.211     0.6681      0.004     0.0017   best
 *              1      0.215     0.6699          0          0   now
 *              4      0.216     0.6705     -0.001     0.0012
 *     1000 samples, each left out once
 *     C 0.25 is better than C 1 by more than twice the noise:
 *       svmstream ctl config C=0.25 */
#ifndef SVI_TUNING_REPORT_H
#define SVI_TUNING_REPORT_H

#include <stdio.h>
#include <stdint.h>

/* Prints a reply to `tune`, or the same of a model in one line: "leave-one-out wrong 0.215; with C 0.25
 * 0.211, within the noise". Both take maps whose form was checked, and print nothing if these have no such
 * figures. */
void svi_tuning_report(FILE *to, const uint8_t *reply, const uint8_t *end);
void svi_tuning_line(FILE *to, const uint8_t *model, const uint8_t *end);

#endif
