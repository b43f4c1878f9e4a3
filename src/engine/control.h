/* control.h: the control operations, without any socket: a request's bytes in, a reply's bytes out.
 * Operations are rows of one table (control.c). */
#ifndef SVI_CONTROL_H
#define SVI_CONTROL_H

#include "engine/engine.h"

struct svi_keeper;

struct svi_control {
    svi_engine *engine;
    struct svi_settings *settings; /* `config` may change them */
    double started;                /* arrival clock at start */
    bool stop;                     /* set by `stop` */
    struct svi_keeper *keeper;     /* NULL: the state is not kept, or what comes is only repeated */
    bool repeating;                /* what comes was done before: that it cannot be done is a failure too */
    bool failed; /* the state cannot be kept any more: the process must end, for this reason */
    svs_error failure;
};

/* Always leaves a complete reply in `out` (replaced): {ok: true, ...} or {error, code}. SVS_NO_MEMORY only.
 */
svs_code svi_control_handle(struct svi_control *c, const void *request, size_t length, double now,
                            struct svi_bytes *out);

/* Does this message of the router's only ask, and change nothing? */
bool svi_router_asks(const void *request, size_t length);

/* The reply to a message that is not looked at further, for this reason. */
svs_code svi_router_decline(struct svi_control *c, const void *request, size_t length, const svs_error *why,
                            struct svi_bytes *out);

/* A router-mode input message: hello, or samples with or without src/n; the reply into `out` (replaced). */
svs_code svi_router_handle(struct svi_control *c, const void *request, size_t length, double now,
                           struct svi_bytes *out);

#endif
