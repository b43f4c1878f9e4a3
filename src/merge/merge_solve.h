/* merge_solve.h: one model of all parts of a merge that can be joined.
 *
 * A solution is made from the records that are held and nothing else, in the order of the parts' names: so it
 * has the same bits whatever the order of arrival was, and however often records arrived, and a part that is
 * dropped leaves the model of the others as if it had never been there.
 *
 * Parts that cannot be joined are left out, with the reason: of all parts that are not dropped, the largest
 * group with one task, one kind of rows and (dense) one set of names is joined; among equally large ones that
 * of the first name. Within it a part that contradicts one before it is left out (part_join.h). Where their
 * union cannot be solved, parts whose sums cannot be those of any samples are left out of all this. */
#ifndef SVI_MERGE_SOLVE_H
#define SVI_MERGE_SOLVE_H

#include "merge/merge.h"

#define SVI_METHOD_MERGED "merged" /* key `method` of its models */

/* Solves, and replaces `model`, whose version rises. On failure the last model stays, and `failure` says why:
 * SVS_EMPTY (no part holds a sample), SVS_SETTING (C or scale differ), SVS_NUMERIC, SVS_NO_MEMORY. */
svs_code svi_merge_solve(struct svi_merge *m);

#endif
