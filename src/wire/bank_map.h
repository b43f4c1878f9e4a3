/* bank_map.h: what a bank of learners (`method auto`) tells of itself, as msgpack: its members, those that
 * are linear with weights in raw units, how they did recently, and the weights by which their scores become
 * one answer. */
#ifndef SVI_BANK_MAP_H
#define SVI_BANK_MAP_H

#include "learner/bank_description.h"
#include "wire/pack.h"

/* The pairs of a bank, into an open map. */
void svi_put_bank(struct svi_pack *p, const struct svi_bank_description *t);

/* The value of the key `members` of a score. */
void svi_put_members(struct svi_pack *p, const struct svi_member_scores *m);

#endif
