/* router.h: acknowledged input: every message gets one reply with its outcome and the next number expected.
 * No sockets: an envelope in, the bytes of a reply out. */
#ifndef SVI_ROUTER_H
#define SVI_ROUTER_H

#include "server/control.h"

/* Applies a message (hello, bye, or samples with or without src and n) and writes the reply into `out`
 * (replaced). SVS_NO_MEMORY only. */
svs_code svi_router_handle(struct svi_control *c, struct svi_envelope *env, double now,
                           struct svi_bytes *out);

/* The reply to a message that was applied, from its receipt, whose scores are complete. */
svs_code svi_router_reply(const struct svi_control *c, const struct svi_envelope *env,
                          const struct svi_receipt *r, struct svi_bytes *out);

/* Does the message change the state, so that it must be written ahead? A hello only asks, unless it restores
 * a forgotten source (`n`). */
bool svi_router_changes(const struct svi_control *c, const struct svi_envelope *env);

/* The reply to a hello that only asks; nothing is changed. */
svs_code svi_router_answer(struct svi_control *c, const struct svi_envelope *env, struct svi_bytes *out);

/* The reply to a message that is not applied, with the reason `why`; env: NULL without one. */
svs_code svi_router_decline(struct svi_control *c, const struct svi_envelope *env, const svs_error *why,
                            struct svi_bytes *out);

#endif
