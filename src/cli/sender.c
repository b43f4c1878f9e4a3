#include "cli/sender.h"

#include <errno.h>
#include <string.h>

#include "base/fail.h"
#include "cli/object.h"
#include "cli/progress.h"
#include "engine/transport.h"
#include "wire/pack.h"

#define QUEUE     1000
#define LINGER_MS 120000 /* a process that learns slowly is given this long for the last messages */
#define WINDOW    256    /* messages under way */

static long milliseconds(double seconds) {
    return (long)(1000 * seconds);
}

static bool ready(const struct sender *s, short events) {
    zmq_pollitem_t item = {s->socket, 0, events, 0};
    while (zmq_poll(&item, 1, milliseconds(s->timeout)) < 0 && zmq_errno() == EINTR)
        ;
    return (item.revents & events) != 0;
}

static int code_by_name(const char *name) {
    for (int c = 0; c < SVS_CODE_COUNT; c++)
        if (strcmp(name, svs_code_name((svs_code)c)) == 0)
            return c;
    return SVS_INVALID;
}

/* {ok, next | n, credit} or {error, code, n, next, final}: only a refusal that is not final stops the sender.
 */
static svs_code judge(struct sender *s, const msgpack_object *reply, svs_error *err) {
    char text[160], name[40];
    const msgpack_object *error = cli_key(reply, "error"), *final = cli_key(reply, "final");
    int64_t credit = cli_key_integer(reply, "credit", WINDOW);
    s->window = credit < 1 ? 1 : credit < WINDOW ? credit : WINDOW;
    s->next = cli_key_integer(reply, "next", s->next);
    if (!error) {
        s->acked++;
        return SVS_OK;
    }
    svs_code code = (svs_code)code_by_name(cli_key_text(reply, "code", name, sizeof name));
    cli_scalar(error, text, sizeof text);
    if (!final || final->type != MSGPACK_OBJECT_BOOLEAN || !final->via.boolean)
        return svi_fail(err, code, "%s refuses: %s (%s)", s->address, text, name);
    svi_fail(&s->refusal, code, "%s (%s)", text, name);
    s->refused++;
    return SVS_OK;
}

static svs_code take_reply(struct sender *s, svs_error *err) {
    msgpack_unpacked u;
    zmq_msg_t m;
    if (!ready(s, ZMQ_POLLIN))
        return svi_fail(err, SVS_IO, "%s does not answer: does a process with in.mode router listen there?",
                        s->address);
    zmq_msg_init(&m);
    svs_code code =
        svi_last_frame(s->socket, &m) ? SVS_OK : svi_fail(err, SVS_IO, "no reply: %s", zmq_strerror(errno));
    if (code == SVS_OK) {
        code = cli_unpack(&u, zmq_msg_data(&m), zmq_msg_size(&m), err);
        if (code == SVS_OK)
            code = judge(s, &u.data, err);
        msgpack_unpacked_destroy(&u);
        s->under_way--;
    }
    zmq_msg_close(&m);
    return code;
}

static svs_code hello(struct sender *s, svs_error *err) {
    struct svi_bytes request = {0};
    struct svi_pack p;
    svi_pack_begin(&p, &request);
    svi_pack_map(&p, 2);
    svi_pack_text(&p, "op");
    svi_pack_text(&p, "hello");
    svi_pack_text(&p, "src");
    svi_pack_text(&p, s->src);
    svs_code code = svi_pack_end(&p);
    if (code != SVS_OK)
        svi_fail_memory(err, "a request");
    else if (zmq_send(s->socket, request.data, request.size, ZMQ_DONTWAIT) < 0)
        code = svi_fail(err, SVS_IO, "cannot send to %s: %s", s->address, zmq_strerror(errno));
    svi_bytes_clear(&request);
    s->under_way++;
    if (code == SVS_OK)
        code = take_reply(s, err);
    s->acked = 0;
    return code;
}

static svs_code connect_socket(struct sender *s, svs_error *err) {
    const struct svi_socket_plan plan = {
        "in", s->acknowledged ? ZMQ_DEALER : ZMQ_PUSH, false, QUEUE, LINGER_MS, -1};
    int immediate = 1, timeout = (int)milliseconds(s->timeout);
    if (!(s->context = zmq_ctx_new()))
        return svi_fail(err, SVS_IO, "ZeroMQ cannot start: %s", zmq_strerror(errno));
    if (!(s->socket = svi_socket_new(s->context, &plan, err)))
        return err->code;
    /* Nothing is queued for somebody who is not there: being able to send then means that somebody listens.
     */
    zmq_setsockopt(s->socket, ZMQ_IMMEDIATE, &immediate, sizeof immediate);
    zmq_setsockopt(s->socket, ZMQ_SNDTIMEO, &timeout, sizeof timeout);
    if (svi_socket_secure(s->socket, &plan, s->identity, err) != SVS_OK)
        return err->code;
    return svi_socket_attach(s->socket, &plan, s->address, NULL, err);
}

svs_code sender_open(struct sender *s, svs_error *err) {
    s->window = WINDOW;
    svs_code code = connect_socket(s, err);
    if (code != SVS_OK)
        return code;
    if (!ready(s, ZMQ_POLLOUT))
        return svi_fail(err, SVS_IO, "nobody listens at %.80s: is `svmstream run` running with this `in`%s?",
                        s->address, s->identity->on ? ", and is our key in its allow file" : "");
    return s->acknowledged ? hello(s, err) : SVS_OK;
}

svs_code sender_send(struct sender *s, const void *bytes, size_t length, svs_error *err) {
    zmq_msg_t m;
    while (s->acknowledged && s->under_way >= s->window) {
        svs_code code = take_reply(s, err);
        if (code != SVS_OK)
            return code;
    }
    if (zmq_msg_init_size(&m, length) != 0)
        return svi_fail_memory(err, "a message");
    memcpy(zmq_msg_data(&m), bytes, length);
    int sent;
    while ((sent = zmq_msg_send(&m, s->socket, 0)) < 0 && zmq_errno() == EINTR)
        ;
    if (sent < 0) {
        zmq_msg_close(&m);
        return svi_fail(err, SVS_IO, "%s takes no more: it is gone, or stands still for more than %g seconds",
                        s->address, s->timeout);
    }
    s->under_way += s->acknowledged;
    return SVS_OK;
}

svs_code sender_finish(struct sender *s, svs_error *err) {
    svs_code code = SVS_OK;
    while (s->under_way > 0 && code == SVS_OK)
        code = take_reply(s, err);
    return code;
}

svs_code sender_close(struct sender *s, svs_error *err) {
    int none = 0;
    double start = cli_now();
    if (s->socket && s->acknowledged) /* every reply is here, or waiting has failed */
        zmq_setsockopt(s->socket, ZMQ_LINGER, &none, sizeof none);
    svi_socket_close(&s->socket);
    if (s->context)
        while (zmq_ctx_term(s->context) != 0 && zmq_errno() == EINTR)
            ;
    s->context = NULL;
    if (1000 * (cli_now() - start) < LINGER_MS) /* libzmq does not tell whether it gave up */
        return SVS_OK;
    return svi_fail(err, SVS_IO, "%s did not take the last messages within %d s: up to %d of them are lost",
                    s->address, LINGER_MS / 1000, QUEUE);
}
