/* bank_report.h: the members of a bank as a table for people; `votes` is a member's share of the votes, the
 * columns behind it are its weights in the stacks, for classes in the two logistic ones too. "rate 0.05" is
 * the share of a base rate; the number after "logistic" is a memory, in samples.
 *
 *     member                recent     votes  stack all stack 1000  stack 200   logistic   logistic
 *     alsvm-5000             0.132     0.067      0.071      0.071     -0.081       0.12       0.21
 *     nearest-200            0.171     0.061     -0.024     -0.024      0.065      0.014      0.033
 *     share of the combination         0.125      0.253      0.311      0.311
 *     share of the answer: combined 0.5, logistic 5000 0.3, logistic 500 0.1, rate 0.05, rate 0.05 */
#ifndef SVI_BANK_REPORT_H
#define SVI_BANK_REPORT_H

#include <stdint.h>
#include <stdio.h>

/* Prints a bank event, or the key `bank` of a reply: a map whose form was checked. Prints nothing if it is
 * not a bank. */
void svi_bank_report(FILE *to, const uint8_t *bank, const uint8_t *end);

#endif
