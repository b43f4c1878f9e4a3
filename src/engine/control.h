/* control.h: the control operations, without any socket: a request's bytes in, a reply's bytes out.
 * Operations are rows of one table (control.c): status, config, model, forget, label, reset, stop, publish;
 * refit, save and load answer `unavailable` until they are there. */
#ifndef SVI_CONTROL_H
#define SVI_CONTROL_H

#include "engine/engine.h"

struct svi_control {
    svi_engine *engine;
    const struct svi_settings *settings;
    double started; /* arrival clock at start */
    bool stop;      /* set by `stop` */
};

/* Always leaves a complete reply in `out` (replaced): {ok: true, ...} or {error, code}. SVS_NO_MEMORY only.
 */
svs_code svi_control_handle(struct svi_control *c, const void *request, size_t length, double now,
                            struct svi_bytes *out);

/* A router-mode input message: hello, or samples with or without src/n; the reply into `out` (replaced). */
svs_code svi_router_handle(struct svi_control *c, const void *request, size_t length, double now,
                           struct svi_bytes *out);

#endif
