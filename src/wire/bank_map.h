/* bank_map.h: the description of a bank of learners (`method auto`) as msgpack: its members (linear ones with
 * their weights in raw units), their recent losses, and the weights that combine their scores. */
#ifndef SVI_BANK_MAP_H
#define SVI_BANK_MAP_H

#include "learner/bank_description.h"
#include "wire/pack.h"

/* Puts the pairs of a bank into an open map. */
void svi_put_bank(struct svi_pack *p, const struct svi_bank_description *t);

/* Packs the value of the key `members` of a score: {name: [score for each row]}. */
void svi_put_members(struct svi_pack *p, const struct svi_member_scores *m);

#endif
