/* merge_solve.h: one model of all parts of a merge that can be joined.
 *
 * A solution is made from the records that are held and nothing else, in the order of the parts'
 * names. So it has the same bits whatever the order of arrival was, and however often records
 * arrived. The model after a part is dropped is the model as if that part had never been there.
 *
 * Parts that cannot be joined are left out, with the reason. The largest group of parts with one
 * task, one kind of rows and (dense) one set of names is joined. Dropped parts do not count. Among
 * equally large groups the one of the first name is joined. Within the group, a part that
 * contradicts one before it is left out (part_join.h). If the union cannot be solved, parts whose
 * sums cannot be those of any samples are left out of all this. */
#ifndef SVI_MERGE_SOLVE_H
#define SVI_MERGE_SOLVE_H

#include "merge/merge.h"

#define SVI_METHOD_MERGED "merged" /* key `method` of its models */

/* Solves, and replaces `model`, whose version rises. On failure the last model stays, and `failure` says why:
 * SVS_EMPTY (no part holds a sample), SVS_SETTING (C or scale differ), SVS_NUMERIC, SVS_NO_MEMORY. */
svs_code svi_merge_solve(struct svi_merge *m);

#endif
