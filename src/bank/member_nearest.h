/* member_nearest.h: the members that vote as the nearest of the last rows do. */
#ifndef SVI_MEMBER_NEAREST_H
#define SVI_MEMBER_NEAREST_H

#include "bank/member_ops.h"

extern const struct svi_member_ops svi_member_nearest;

/* The standardised row of the host's sample of that number, padded with zeros as the context's z. NULL: it is
 * not among those held. Until the part learns. */
const float *svi_member_nearest_row(const struct svi_member_context *c, int64_t number);

#endif
