/* merger_control.h: control requests to a merge: the bytes of a request in, the bytes of a reply out. */
#ifndef SVI_MERGER_CONTROL_H
#define SVI_MERGER_CONTROL_H

#include "server/merger_state.h"
#include "wire/json_message.h"

/* X(name) */
#define SVI_MERGER_OPS(X) X(status) X(stats) X(model) X(parts) X(publish) X(drop) X(restore) X(stop)

struct svi_merger_control {
    struct svi_merger_state *state;
    bool stop;                  /* `stop` was requested */
    struct svi_json_input json; /* converts requests in JSON */
    struct svi_bytes request;   /* one, as msgpack */
};

void svi_merger_control_clear(struct svi_merger_control *c); /* frees the buffers */

/* Handles one request, msgpack or JSON. `out` is replaced by a complete reply in any case: {ok: true, ...} or
 * {error, code}. SVS_NO_MEMORY only. */
svs_code svi_merger_control_handle(struct svi_merger_control *c, const void *request, size_t length,
                                   struct svi_bytes *out);

/* The reply {error, code}. SVS_NO_MEMORY. */
svs_code svi_merger_control_refuse(const svs_error *why, struct svi_bytes *out);

#endif
