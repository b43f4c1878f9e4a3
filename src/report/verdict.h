/* verdict.h: conclusions from the figures of a run, in plain lines for people: the learner is no better than
 * a trivial baseline, the background refit is ahead, a class was never found.
 *
 *     accuracy 0.990 is no better than always saying ok (0.990)
 *     accuracy 0.788 is no better than "the same as before" (0.853)
 *     the refit is 11 points ahead: --serve best
 *     class fail: none of 512 found: see --class.weight and --decision.cost
 *     class.weight names failx, a class that never occurred
 *     rmse 0.61 is no better than "the same as before" (0.42)
 *
 * "No better": not by more than two standard errors, samples taken as independent; "ahead": by more than that
 * and a point. A class of fewer than SVI_VERDICT_ROWS rows may be missed. */
#ifndef SVI_VERDICT_H
#define SVI_VERDICT_H

#include <stdio.h>

#include "fleet/stream.h"

#define SVI_VERDICT_ROWS    10 /* labelled samples required for a statement, and for calling a class missed */
#define SVI_VERDICT_CLASSES 3  /* missed classes listed by name; the others are counted */

/* Prints the lines that apply; nothing if all is well. `now`: as for svi_stream_figures. */
void svi_verdict_write(svi_stream *stream, double now, FILE *to);

#endif
