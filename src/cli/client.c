#include "cli/client.h"

#include <errno.h>

#include "base/fail.h"
#include "engine/transport.h"
#include "wire/pack.h"

#define LINGER_MS 100

/* What may be wrong when nobody answers who was spoken to with our key. */
static const char *hint(bool curve) {
    return curve ? ", with this curve.server, and our key in its allow file with the role control?"
                 : ", and without CURVE (else give --curve and --curve.server)?";
}

static svs_code receive(void *socket, const char *address, bool curve, struct svi_bytes *reply,
                        svs_error *err) {
    zmq_msg_t m;
    svs_code code = SVS_OK;
    zmq_msg_init(&m);
    if (!svi_last_frame(socket, &m))
        code = svi_fail(err, SVS_IO, "nobody answers at %.60s: is `svmstream run` running with this `ctl`%s",
                        address, hint(curve));
    else if (svi_bytes_append(reply, zmq_msg_data(&m), zmq_msg_size(&m)) != SVS_OK)
        code = svi_fail_memory(err, "the reply");
    zmq_msg_close(&m);
    return code;
}

/* Waits for the reply, or until the other end has refused us. */
static svs_code converse(void *socket, void *refusals, const char *address, const struct svi_bytes *request,
                         double timeout, struct svi_bytes *reply, svs_error *err) {
    zmq_pollitem_t items[2] = {{socket, 0, ZMQ_POLLIN, 0}, {refusals, 0, ZMQ_POLLIN, 0}};
    svs_code code = SVS_OK;
    reply->size = 0;
    if (zmq_send(socket, request->data, request->size, 0) < 0 ||
        zmq_poll(items, refusals ? 2 : 1, (long)(1000 * timeout)) < 0)
        code = svi_fail(err, SVS_IO, "cannot talk to %.100s: %s", address, zmq_strerror(errno));
    else
        code = receive(socket, address, refusals != NULL, reply, err);
    return code;
}

static svs_code ask(void *context, const struct svi_settings *s, const struct svi_identity *id,
                    const struct svi_bytes *request, double timeout, struct svi_bytes *reply,
                    svs_error *err) {
    const struct svi_socket_plan plan = {"ctl", ZMQ_REQ, false, 10, LINGER_MS, -1};
    void *socket = svi_socket_new(context, &plan, err);
    if (!socket)
        return err->code;
    void *refusals = id->on ? svi_refusals_new(context, socket) : NULL;
    svs_code code = svi_socket_secure(socket, &plan, id, err);
    if (code == SVS_OK)
        code = svi_socket_attach(socket, &plan, s->ctl, NULL, err);
    if (code == SVS_OK)
        code = converse(socket, refusals, s->ctl, request, timeout, reply, err);
    svi_refusals_free(&refusals, socket);
    svi_socket_close(&socket);
    return code;
}

svs_code cli_ask(const struct svi_settings *s, const struct svi_bytes *request, double timeout,
                 struct svi_bytes *reply, svs_error *err) {
    struct svi_identity id;
    svs_error local;
    err = err ? err : &local;
    svs_code code = svi_identity_load(s, true, &id, err);
    if (code != SVS_OK)
        return code;
    void *context = zmq_ctx_new();
    if (context)
        code = ask(context, s, &id, request, timeout, reply, err);
    else
        code = svi_fail(err, SVS_IO, "ZeroMQ cannot start: %s", zmq_strerror(errno));
    svi_identity_wipe(&id);
    if (context)
        zmq_ctx_term(context);
    return code;
}

svs_code cli_operation(const char *name, struct svi_bytes *request) {
    struct svi_pack p;
    request->size = 0;
    svi_pack_begin(&p, request);
    svi_pack_map(&p, 1);
    svi_pack_text(&p, "op");
    svi_pack_text(&p, name);
    return svi_pack_end(&p);
}
