/* apply.h: messages from bytes, for tests that have no socket: parsed as on receipt, then applied or
 * answered. */
#ifndef SVT_APPLY_H
#define SVT_APPLY_H

#include "fleet/stream.h"
#include "server/router.h"

static inline svs_code apply_bytes(svi_stream *e, const void *bytes, size_t size, double now, bool sourced,
                                   struct svi_receipt *r) {
    struct svi_envelope env;
    svi_envelope_read(&env, bytes, size);
    return svi_stream_apply(e, &env, now, sourced, r);
}

static inline svs_code route_bytes(struct svi_control *c, const void *bytes, size_t size, double now,
                                   struct svi_bytes *out) {
    struct svi_envelope env;
    svi_envelope_read(&env, bytes, size);
    return svi_router_handle(c, &env, now, out);
}

#endif
