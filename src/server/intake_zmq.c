/* Messages over ZeroMQ: a socket that producers push to (pull), one that answers each message (router), or
 * one that subscribes to a publisher (sub). Everything in which the three differ is in this file. */
#include "server/intake.h"

#include <string.h>

#include "base/fail.h"
#include "base/fnv.h"

#define QUEUE         1000 /* messages queued for one producer, and the bytes they may take */
#define QUEUE_BYTES   (64 * 1024 * 1024)
#define MIN_QUEUE     16
#define QUEUE_REPLIES 4096 /* to one producer; libzmq counts in halves, and the credit is 1024 */
#define LINGER_MS     2000 /* how long closing waits for replies that are still being sent */

static int intake_zmq_queue(const struct svi_settings *s) {
    const int64_t queue = QUEUE_BYTES / s->max_message; /* libzmq limits messages, not bytes */
    return queue > QUEUE ? QUEUE : queue < MIN_QUEUE ? MIN_QUEUE : (int)queue;
}

static svs_code intake_zmq_open(struct svi_intake *in, svs_error *err) {
    static const int types[] = {
        [SVI_IN_PULL] = ZMQ_PULL, [SVI_IN_ROUTER] = ZMQ_ROUTER, [SVI_IN_SUB] = ZMQ_SUB};
    struct svi_settings *s = in->settings;
    const struct svi_intake_mode mode = svi_settings_intake(s);
    const struct svi_socket_plan plan = {"in",      types[mode.mode], mode.binds, intake_zmq_queue(s),
                                         LINGER_MS, s->max_message,   0};
    const int replies = QUEUE_REPLIES;
    if (!(in->own = svi_access_socket(in->access, &plan, err)))
        return err->code;
    if (mode.replies && zmq_setsockopt(in->own, ZMQ_SNDHWM, &replies, sizeof replies) != 0)
        return svi_fail(err, SVS_IO, "cannot allocate replies: %s", zmq_strerror(zmq_errno()));
    if (plan.type == ZMQ_SUB && zmq_setsockopt(in->own, ZMQ_SUBSCRIBE, s->in_topic, strlen(s->in_topic)) != 0)
        return svi_fail(err, SVS_IO, "cannot subscribe to in.topic: %s", zmq_strerror(zmq_errno()));
    /* Last: a peer that connects must find all options in effect. */
    return svi_socket_attach(in->own, &plan, s->in, s->in, err);
}

static void intake_zmq_close(struct svi_intake *in) {
    svi_socket_close(&in->own);
}

static void intake_zmq_poll(const struct svi_intake *in, zmq_pollitem_t *item) {
    item->socket = in->own;
}

/* A ROUTER keeps the return path; other sockets have none, so only the last frame matters. */
static bool intake_zmq_receive(const struct svi_intake *in, struct svi_request *r) {
    if (in->replies)
        return svi_request_receive(in->own, r);
    r->route_count = 0;
    zmq_msg_init(&r->body);
    if (svi_last_frame(in->own, &r->body, &r->frames))
        return true;
    zmq_msg_close(&r->body);
    return false;
}

/* Takes the next message; those that are too large as a whole are dropped here. */
static bool intake_zmq_take(struct svi_intake *in, void *slot, const void **bytes, size_t *size) {
    struct svi_request *r = slot;
    do {
        if (!intake_zmq_receive(in, r))
            return false;
        if (svi_access_takes(in->access, SVI_ROLE_INGEST, &r->body, &r->frames))
            break;
        svi_request_close(r);
    } while (true);
    *bytes = zmq_msg_data(&r->body);
    *size = r->frames.last;
    return true;
}

/* Both identities are safe from forgery: the user is the authenticated key, and routing ids are assigned by
 * our socket. */
static struct svi_sender intake_zmq_sender(void *slot) {
    struct svi_request *r = slot;
    struct svi_sender from = {.user = svi_message_user(&r->body),
                              .connection = svi_message_connection(&r->body)};
    if (r->route_count > 0) {
        from.peer = zmq_msg_data(&r->route[0]);
        from.peer_size = zmq_msg_size(&r->route[0]);
    }
    return from;
}

/* By routing id. A peer may choose its own, and then share the part of another: the whole stays bounded. */
static uint64_t intake_zmq_peer(void *slot) {
    struct svi_request *r = slot;
    return r->route_count > 0 ? svi_fnv(SVI_FNV_SEED, zmq_msg_data(&r->route[0]), zmq_msg_size(&r->route[0]))
                              : 0;
}

static __attribute__((noinline)) bool intake_zmq_reply_large(struct svi_intake *in, void *slot,
                                                             const void *bytes, size_t size) {
    return svi_reply_quota_send(in->quota, intake_zmq_peer(slot), in->own, slot, bytes, size);
}

static bool intake_zmq_reply(struct svi_intake *in, void *slot, const void *bytes, size_t size) {
    return size <= SVI_REPLY_SMALL ? svi_request_reply(in->own, slot, bytes, size)
                                   : intake_zmq_reply_large(in, slot, bytes, size);
}

static bool intake_zmq_admits(const struct svi_intake *in, void *slot) {
    return svi_reply_quota_admits(in->quota, intake_zmq_peer(slot));
}

static void intake_zmq_release(void *slot) {
    svi_request_close(slot);
}

const struct svi_intake_ops svi_intake_zmq = {.open = intake_zmq_open,
                                              .close = intake_zmq_close,
                                              .poll = intake_zmq_poll,
                                              .slot = sizeof(struct svi_request),
                                              .take = intake_zmq_take,
                                              .sender = intake_zmq_sender,
                                              .reply = intake_zmq_reply,
                                              .admits = intake_zmq_admits,
                                              .release = intake_zmq_release,
                                              .queue = intake_zmq_queue};
