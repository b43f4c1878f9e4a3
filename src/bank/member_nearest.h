/* member_nearest.h: the members that vote like the nearest of the last rows. */
#ifndef SVI_MEMBER_NEAREST_H
#define SVI_MEMBER_NEAREST_H

#include "bank/member_ops.h"

extern const struct svi_member_ops svi_member_nearest;

/* The standardised row of the host's sample of this number, padded with zeros like the context's z. NULL:
 * it is no longer held. Valid until the part learns. */
const float *svi_member_nearest_row(const struct svi_member_context *c, int64_t number);

#endif
