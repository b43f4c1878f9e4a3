/* The last target of a regression, as a member: the forecast "the same as before". */
#include "bank/member_ops.h"

static void last_score(const struct svi_member_part *p, double *scores) {
    scores[0] = p->c->last;
}

const struct svi_member_ops svi_member_last = {.score = last_score};
