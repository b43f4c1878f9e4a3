/* key_report.h: the keys of a stream as lines of a table. */
#ifndef SVI_KEY_REPORT_H
#define SVI_KEY_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "svmstream/error.h"

/* Bytes that a key takes in the first column of a table, which has 24 characters; a longer one moves its
 * line. */
int svi_key_width(const char *name);

/* The reply to the request `keys` (to NULL: nothing is written): a line a key, in its order; then how many
 * there are, where not all are shown, and how many rows have no key. An error reply: its text, with its code;
 * else SVS_WRONG_TYPE. */
svs_code svi_key_report(FILE *to, const uint8_t *reply, const uint8_t *end, svs_error *err);

#endif
