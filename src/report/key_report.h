/* key_report.h: the list of keys as a table for people. */
#ifndef SVI_KEY_REPORT_H
#define SVI_KEY_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "svmstream/error.h"

/* Field width in bytes for a key in the first column of a table, which has 24 characters; a longer key shifts
 * its line. */
int svi_key_width(const char *name);

/* Prints the reply to the request `keys` (to = NULL: only checks it): a line for each key, in the reply's
 * order; then how many there are, if not all are shown, and how many rows have no key. An error reply: its
 * text, with its code; otherwise SVS_WRONG_TYPE. */
svs_code svi_key_report(FILE *to, const uint8_t *reply, const uint8_t *end, svs_error *err);

#endif
