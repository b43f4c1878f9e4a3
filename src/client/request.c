/* One request, one reply, over a socket that lives only for it. The monitor tells apart what a timeout could
 * not: nobody listens (the user is informed, and the wait continues), our key is refused (it ends at once),
 * or the process is slow.
 *
 * A request that rebuilds a model may take minutes, and has a timeout to match. That timeout holds once a
 * process is there: where no process listens, `connecting` ends the wait after seconds. */
#include "client/request.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "client/outbox_internal.h"
#include "net/transport.h"
#include "wire/columns.h"
#include "wire/fields.h"
#include "wire/pack.h"

#define LINGER_MS   100
#define ASK_SECONDS 1.0 /* timeout of the question about columns */

/* Waits until the reply is readable, the handshake is refused, or the timeout is over (0). Negative: polling
 * failed. After SVI_WAITING seconds without a connection it calls `waiting`, once. */
static int request_poll(void *socket, void *monitor, const char *address, const struct client_question *q) {
    zmq_pollitem_t items[2] = {{socket, 0, ZMQ_POLLIN, 0}, {monitor, 0, ZMQ_POLLIN, 0}};
    const double start = svi_monotonic();
    bool patient = !q->waiting; /* no (further) notice: none wanted, already given, or a process is there */
    double timeout = q->connecting > 0 ? fmin(q->timeout, q->connecting) : q->timeout;
    /* Each round polls up to the next point in time that matters: the notice, or the timeout. */
    for (double passed = 0; passed < timeout; passed = svi_monotonic() - start) {
        const double until = patient ? timeout : fmin(timeout, SVI_WAITING);
        int event = 0, value;
        const int ready = zmq_poll(items, 2, 1 + (long)(1000 * fmax(0, until - passed)));
        if (ready < 0 || items[0].revents)
            return ready;
        /* Any event but a connection is a refusal, or the end of the process. */
        if (items[1].revents && svi_monitor_next(monitor, &event, &value) && event != ZMQ_EVENT_CONNECTED)
            return ready;
        if (ready == 0 && !patient)
            q->waiting(q->user, address);
        patient = patient || ready == 0 || event == ZMQ_EVENT_CONNECTED;
        timeout = event == ZMQ_EVENT_CONNECTED ? q->timeout : timeout;
    }
    return 0;
}

static svs_code request_converse(void *socket, void *monitor, bool secured, const char *address,
                                 const struct client_question *q, struct svi_bytes *reply, svs_error *err) {
    svs_code code = SVS_OK;
    zmq_msg_t m;
    reply->size = 0;
    if (zmq_send(socket, q->request->data, q->request->size, 0) < 0 ||
        request_poll(socket, monitor, address, q) < 0)
        return svi_fail(err, SVS_IO, "cannot talk to %.100s: %s", address, zmq_strerror(errno));
    zmq_msg_init(&m);
    /* No reply, for whatever reason the poll ended: advice depends on whether keys are in use. */
    if (!svi_last_frame(socket, &m, NULL))
        code = svi_fail(
            err, SVS_IO, "no answer from %.60s: check that `svmstream run` runs with this `ctl`%s", address,
            secured ? ", that curve.server is its key, and its allow file has yours with the role control"
                    : " and without CURVE (else give --curve and --curve.server)");
    else if (svi_bytes_append(reply, zmq_msg_data(&m), zmq_msg_size(&m)) != SVS_OK)
        code = svi_fail_memory(err, "the reply");
    zmq_msg_close(&m);
    return code;
}

/* Waits until the process has closed the connection; it closes its listening addresses before that. */
static void await_end(void *events, double end) {
    zmq_pollitem_t item = {events, 0, ZMQ_POLLIN, 0};
    int event = 0, value;
    for (double left = end - svi_monotonic(); left > 0 && event != ZMQ_EVENT_DISCONNECTED;
         left = end - svi_monotonic())
        if (!svi_monitor_next(events, &event, &value) && zmq_poll(&item, 1, 1 + (long)(1000 * left)) < 0)
            return;
}

/* Was the request granted? A process that refused to stop keeps the connection open. */
static bool is_granted(const struct svi_bytes *reply) {
    struct svi_answer answer;
    return svi_answer_read(&answer, reply->data, reply->size, NULL) == SVS_OK && answer.ok;
}

svs_code client_ask(const struct svi_settings *s, const struct client_question *q, struct svi_bytes *reply,
                    svs_error *err) {
    const struct svi_socket_plan plan = {"ctl", ZMQ_REQ, false, 10, LINGER_MS, -1, 0};
    struct svi_identity id;
    svs_error local;
    err = err ? err : &local;
    svs_code code = svi_identity_load(s, true, &id, err);
    if (code != SVS_OK)
        return code;
    const double end = svi_monotonic() + q->timeout;
    /* Failed handshakes matter only with keys: without, a failing peer is retried until the timeout. */
    const int events = ZMQ_EVENT_CONNECTED | (id.on ? SVI_HANDSHAKE_FAILED : 0) |
                       (q->until_closed ? ZMQ_EVENT_DISCONNECTED : 0);
    void *context = zmq_ctx_new(), *monitor = NULL;
    if (!context)
        svi_fail(err, SVS_IO, "cannot start ZeroMQ: %s", zmq_strerror(errno));
    void *socket = context ? svi_socket_new(context, &plan, err) : NULL;
    if (socket && !(monitor = svi_monitor_new(context, socket, events)))
        svi_fail(err, SVS_IO, "cannot monitor the connection: %s", zmq_strerror(errno));
    code = monitor ? svi_socket_connect(socket, &plan, &id, s->ctl, err) : err->code;
    if (code == SVS_OK)
        code = request_converse(socket, monitor, id.on, s->ctl, q, reply, err);
    /* The same deadline covers the answer and the end of the process. */
    if (code == SVS_OK && q->until_closed && is_granted(reply))
        await_end(monitor, end);
    /* The monitor before its socket; the context last, which waits LINGER_MS at most for the request. */
    svi_monitor_free(&monitor, socket);
    svi_socket_close(&socket);
    svi_identity_wipe(&id);
    if (context)
        zmq_ctx_term(context);
    return code;
}

svs_code client_alerts_request(const struct client_alerts *a, struct svi_bytes *request) {
    struct svi_pack p;
    request->size = 0;
    svi_pack_begin(&p, request);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_text(&p, "op", "alerts");
    svi_put_uint(&p, "since", a->since);
    if (a->known)
        svi_put_uint(&p, "epoch", a->epoch);
    if (a->key)
        svi_put_text(&p, "key", a->key);
    svi_pack_close(&p, map);
    return svi_pack_end(&p);
}

svs_code client_model_request(const char *key, struct svi_bytes *request) {
    struct svi_pack p;
    request->size = 0;
    svi_pack_begin(&p, request);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_text(&p, "op", "model");
    svi_put_bool(&p, "loo", true);
    if (key)
        svi_put_text(&p, "key", key);
    svi_pack_close(&p, map);
    return svi_pack_end(&p);
}

svs_code client_keys_request(const struct client_keys *k, struct svi_bytes *request) {
    const char *const texts[][2] = {{"sort", k->sort}, {"like", k->like}, {"prefix", k->prefix}};
    struct svi_pack p;
    request->size = 0;
    svi_pack_begin(&p, request);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_text(&p, "op", "keys");
    svi_put_int(&p, "limit", k->limit);
    svi_put_real(&p, "silent", k->silent);
    svi_put_int(&p, "rows", k->rows);
    svi_put_bool(&p, "open", k->open);
    /* Absent texts leave the default to the process. */
    for (int i = 0; i < 3; i++)
        if (texts[i][1])
            svi_put_text(&p, texts[i][0], texts[i][1]);
    svi_pack_close(&p, map);
    return svi_pack_end(&p);
}

/* Builds a score request with these columns, all values missing, and with a key if the row has one: the
 * process checks them as it would check a sample, and learns nothing. */
static svs_code request_of_columns(const struct svi_message *row, struct svi_bytes *request) {
    struct svi_pack p;
    svi_pack_begin(&p, request);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_text(&p, "op", "score");
    if (row->key.kind != SVS_NONE)
        svi_put_text(&p, "key", "");
    svi_put_map(&p, "sample", 3);
    svi_put_text(&p, "missing", "zero");
    svi_columns_pack_cells(&p, row);
    svi_put_array(&p, "x", (size_t)row->cell_count);
    for (int i = 0; i < row->cell_count; i++)
        svi_pack_nil(&p);
    svi_pack_close(&p, map);
    return svi_pack_end(&p);
}

svs_code client_ask_columns(const struct svi_settings *s, const struct svi_message *row, svs_error *err) {
    static const svs_code refusals[] = {SVS_WRONG_COLUMNS, SVS_BAD_KEY};
    struct svi_bytes request = {0}, reply = {0};
    struct svi_answer answer;
    svs_code code = SVS_OK;
    /* `in` was given without `ctl`: the default `ctl` may belong to another process. */
    if (svi_settings_chosen(s, "in") && !svi_settings_chosen(s, "ctl"))
        return SVS_OK;
    if (request_of_columns(row, &request) != SVS_OK)
        code = svi_fail_memory(err, "the columns");
    else if (client_ask(s, &(struct client_question){.request = &request, .timeout = ASK_SECONDS}, &reply,
                        NULL) == SVS_OK &&
             svi_answer_read(&answer, reply.data, reply.size, NULL) == SVS_OK)
        for (size_t i = 0; i < sizeof refusals / sizeof *refusals && code == SVS_OK; i++)
            if (strcmp(answer.code, svs_code_name(refusals[i])) == 0)
                code = svi_fail(err, refusals[i], "%s", answer.reason);
    svi_bytes_clear(&request);
    svi_bytes_clear(&reply);
    return code;
}
