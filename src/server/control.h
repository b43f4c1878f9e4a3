/* control.h: the control operations, without any socket: a request's bytes in, a reply's bytes out.
 * Operations are rows of one table (control.c). */
#ifndef SVI_CONTROL_H
#define SVI_CONTROL_H

#include "engine/engine.h"

struct svi_write_ahead;

struct svi_control {
    svi_engine *engine;
    struct svi_settings *settings;       /* `config` may change them */
    double started;                      /* arrival clock at start */
    bool stop;                           /* set by `stop` */
    struct svi_write_ahead *write_ahead; /* NULL: the state is not kept */
    bool text_rows; /* rows of text come in, whose columns have their places: features and classes stay */
    bool failed;    /* the state cannot be kept any more: the process must end, for this reason */
    svs_error failure;
};

/* Always leaves a complete reply in `out` (replaced): {ok: true, ...} or {error, code}. SVS_NO_MEMORY only.
 */
svs_code svi_control_handle(struct svi_control *c, const void *request, size_t length, double now,
                            struct svi_bytes *out);

#endif
