/* control.h: the control operations, without any socket: a request's bytes in, a reply's bytes out.
 * Operations are rows of one table (control.c). */
#ifndef SVI_CONTROL_H
#define SVI_CONTROL_H

#include "fleet/stream.h"
#include "wire/json_message.h"

struct svi_write_ahead;

struct svi_control {
    svi_stream *stream;
    struct svi_settings *settings; /* `config` may change them */
    double started;                /* arrival clock at start; moves with the clock */
    uint64_t run; /* changes with every start: within one nothing is lost that was acknowledged */
    bool stop;    /* set by `stop` */
    struct svi_write_ahead *write_ahead; /* NULL: the state is not kept */
    bool text_rows; /* rows of text come in, whose columns have their places: features and classes stay */
    bool failed;    /* the state cannot be kept any more: the process must end, for this reason */
    svs_error failure;
    struct svi_json_input json; /* for all messages that come as JSON, those of the input too */
    struct svi_bytes request;   /* one in JSON, as msgpack */
};

/* Frees what it owns: buffers. */
void svi_control_clear(struct svi_control *c);

/* The request is msgpack or JSON, the reply always msgpack.
 *
 * Always leaves a complete reply in `out` (replaced): {ok: true, ...} or {error, code}. SVS_NO_MEMORY only.
 */
svs_code svi_control_handle(struct svi_control *c, const void *request, size_t length, double now,
                            struct svi_bytes *out);

/* The same for a request of the process itself, without a reply: the error of the request. */
svs_code svi_control_do(struct svi_control *c, const void *request, size_t length, double now,
                        svs_error *err);

#endif
