/* control.h: the control operations without any socket: the bytes of a request in, the bytes of a reply out.
 * Each operation is a row of one table (control.c). */
#ifndef SVI_CONTROL_H
#define SVI_CONTROL_H

#include "fleet/stream.h"
#include "wire/json_message.h"

struct svi_write_ahead;

struct svi_control {
    svi_stream *stream;
    struct svi_settings *settings; /* `config` may change them */
    double started;                /* arrival clock at start; moves with the clock */
    /* identifies this start of the process: within one run, nothing that was acknowledged is lost */
    uint64_t run;
    bool published; /* a `publish` of the whole stream was accepted; its owner sets it to false */
    bool stop;      /* `stop` was requested */
    struct svi_write_ahead *write_ahead; /* NULL: the state is not kept on disk */
    bool text_rows; /* the input is rows of text, whose columns have fixed places: features and classes must
                       stay */
    bool failed;    /* the state can no longer be kept: the process must end, for the reason in `failure` */
    svs_error failure;
    struct svi_json_input json;     /* converter for all messages in JSON, those of the input too */
    struct svi_bytes request;       /* a JSON request as msgpack */
    struct svi_reply_scores scores; /* of the message at hand, if it asked for them */
};

/* Frees the buffers that it owns. */
void svi_control_clear(struct svi_control *c);

/* Handles one request, msgpack or JSON; `now` is arrival time, seconds since 1970. The reply is always
 * msgpack. `out` is replaced by a complete reply in any case: {ok: true, ...} or {error, code}. Returns
 * SVS_NO_MEMORY only. */
svs_code svi_control_handle(struct svi_control *c, const void *request, size_t length, double now,
                            struct svi_bytes *out);

/* Handles a request of the process itself, which needs no reply. Returns the error of the request. */
svs_code svi_control_do(struct svi_control *c, const void *request, size_t length, double now,
                        svs_error *err);

#endif
