/* bank_report.h: the members of a bank as a table for people; `vote` is a member's share of the votes, the
 * last three columns are its weights in the stacks.
 *
 *     member            recent     vote  stack all stack 1000 stack 200
 *     alsvm-5000         0.132    0.067      0.071      0.071    -0.081
 *     nearest-200        0.171    0.061     -0.024     -0.024     0.065
 *     share of the answer         0.125      0.253      0.311     0.311 */
#ifndef SVI_BANK_REPORT_H
#define SVI_BANK_REPORT_H

#include <stdint.h>
#include <stdio.h>

/* Prints a bank event, or the key `bank` of a reply: a map whose form was checked. Prints nothing if it is
 * not a bank. */
void svi_bank_report(FILE *to, const uint8_t *bank, const uint8_t *end);

#endif
