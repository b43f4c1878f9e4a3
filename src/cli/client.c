#include "cli/client.h"

#include <errno.h>

#include "base/fail.h"
#include "engine/transport.h"
#include "wire/pack.h"

#define LINGER_MS 100

static svs_code converse(void *socket, const char *address, const struct svi_bytes *request, double timeout,
                         struct svi_bytes *reply, svs_error *err) {
    zmq_pollitem_t item = {socket, 0, ZMQ_POLLIN, 0};
    zmq_msg_t m;
    reply->size = 0;
    zmq_msg_init(&m);
    svs_code code = SVS_OK;
    if (zmq_send(socket, request->data, request->size, 0) < 0 ||
        zmq_poll(&item, 1, (long)(1000 * timeout)) < 0)
        code = svi_fail(err, SVS_IO, "cannot talk to %.100s: %s", address, zmq_strerror(errno));
    else if (!svi_last_frame(socket, &m))
        code = svi_fail(err, SVS_IO, "nobody answers at %.100s: is `svmstream run` running with this `ctl`?",
                        address);
    else if (svi_bytes_append(reply, zmq_msg_data(&m), zmq_msg_size(&m)) != SVS_OK)
        code = svi_fail_memory(err, "the reply");
    zmq_msg_close(&m);
    return code;
}

svs_code cli_ask(const char *address, const struct svi_bytes *request, double timeout,
                 struct svi_bytes *reply, svs_error *err) {
    const struct svi_socket_plan plan = {"ctl", ZMQ_REQ, false, 10, LINGER_MS, -1};
    svs_error local;
    err = err ? err : &local;
    void *context = zmq_ctx_new();
    if (!context)
        return svi_fail(err, SVS_IO, "ZeroMQ cannot start: %s", zmq_strerror(errno));
    void *socket = svi_socket_open(context, &plan, address, NULL, err);
    svs_code code = socket ? converse(socket, address, request, timeout, reply, err) : err->code;
    svi_socket_close(&socket);
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
