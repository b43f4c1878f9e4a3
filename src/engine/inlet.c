#include "engine/inlet.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "engine/keeper.h"
#include "engine/origin.h"
#include "engine/reply.h"

/* One turn takes at most this, so that the control socket has its turn well within 100 ms. */
#define TURN_MESSAGES 512
#define TURN_BYTES    (1024 * 1024)
#define TURN_SECONDS  0.01
#define FIRST_COST    1e-7 /* seconds a byte, before anything was measured */
#define RETRY_SECONDS 0.25 /* with a full disk */

/* What is to be done with a message. */
enum fate {
    APPLY = 0,
    ANSWER,    /* it changes nothing: a question */
    FORBIDDEN, /* its sender has lost the right */
    ALIEN,     /* its sender may not use this src */
    UNNUMBERED /* exactly-once needs src and n */
};

svs_code svi_inlet_new(struct svi_inlet *in, svs_error *err) {
    in->queue = svi_alloc_array(TURN_MESSAGES, sizeof *in->queue);
    in->fate = svi_alloc(TURN_MESSAGES);
    in->cost = FIRST_COST;
    return in->queue && in->fate ? SVS_OK : svi_fail_memory(err, "the messages of a turn");
}

static void drop_queue(struct svi_inlet *in) {
    for (int i = 0; i < in->count; i++)
        svi_request_close(&in->queue[i]);
    in->count = 0;
}

void svi_inlet_free(struct svi_inlet *in) {
    drop_queue(in);
    svi_free(in->queue);
    svi_free(in->fate);
    svi_bytes_clear(&in->reply);
}

static bool answers(const struct svi_inlet *in) {
    return in->settings->in_mode == SVI_IN_ROUTER;
}

static enum fate fate_of(struct svi_inlet *in, zmq_msg_t *m) {
    struct svi_origin origin;
    svs_error ignored;
    if (!svi_door_admits(in->door, SVI_ROLE_INGEST, m))
        return FORBIDDEN;
    if (in->settings->in_mode != SVI_IN_SUB && svi_door_source(in->door, m, &ignored) != SVS_OK)
        return ALIEN; /* who is subscribed to is no client */
    if (answers(in) && svi_router_asks(zmq_msg_data(m), zmq_msg_size(m)))
        return ANSWER;
    if (svi_settings_delivery(in->settings) != SVI_EXACTLY_ONCE)
        return APPLY;
    svi_origin_find(zmq_msg_data(m), zmq_msg_size(m), &origin);
    return origin.src.type == SVI_NIL || origin.n.type == SVI_NIL ? UNNUMBERED : APPLY;
}

static bool receive(struct svi_inlet *in, struct svi_request *r) {
    if (answers(in))
        return svi_request_receive(in->socket, r);
    r->envelope_count = 0;
    zmq_msg_init(&r->body);
    if (svi_last_frame(in->socket, &r->body))
        return true;
    zmq_msg_close(&r->body);
    return false;
}

/* As much as the last turns say can be done in time. */
static size_t take(struct svi_inlet *in) {
    double room = TURN_SECONDS / in->cost;
    size_t bytes = 0, most = room < TURN_BYTES ? (size_t)room : TURN_BYTES;
    while (in->count < TURN_MESSAGES && (in->count == 0 || bytes < most) &&
           receive(in, &in->queue[in->count])) {
        zmq_msg_t *m = &in->queue[in->count].body;
        bytes += zmq_msg_size(m);
        in->fate[in->count++] = (uint8_t)fate_of(in, m);
    }
    return bytes;
}

static svs_code write_ahead(struct svi_inlet *in, double now, svs_error *err) {
    svi_keeper *k = in->control->keeper;
    enum svi_record_kind kind = answers(in) ? SVI_RECORD_SOURCED : SVI_RECORD_FRAME;
    svs_code code = SVS_OK;
    for (int i = 0; k && i < in->count && code == SVS_OK; i++) {
        zmq_msg_t *m = &in->queue[i].body;
        if (in->fate[i] == APPLY)
            code = svi_keeper_note(k, kind, now, zmq_msg_data(m), zmq_msg_size(m), err);
    }
    if (code != SVS_OK)
        svi_keeper_drop(k);
    return k && code == SVS_OK ? svi_keeper_commit(k, err) : code;
}

/* ---- what becomes of each */

bool svi_inlet_reply(struct svi_inlet *in, void *socket, struct svi_request *r, svs_code code) {
    bool sent = code == SVS_OK && svi_request_reply(socket, r, in->reply.data, in->reply.size);
    in->replies_lost += !sent;
    return sent;
}

static const svs_error reasons[] = {
    [FORBIDDEN] = {SVS_NOT_ALLOWED, "this key was taken from the allow file, or its role was"},
    [ALIEN] = {SVS_NOT_ALLOWED,
               "this key is bound to other names than this src (keys allow --role source:NAME)"},
    [UNNUMBERED] = {SVS_NO_SOURCE, "delivery exactly-once takes numbered samples only: give src and n"},
};

/* What was written down and not taken for want of memory would be taken by a restart: no answer goes out. */
static bool starved(const struct svi_inlet *in) {
    return in->control->keeper && svi_engine_starved(in->control->engine);
}

static void settle(struct svi_inlet *in, int i, const svs_error *full, double now) {
    struct svi_request *r = &in->queue[i];
    const void *body = zmq_msg_data(&r->body);
    const size_t length = zmq_msg_size(&r->body);
    const enum fate fate = (enum fate)in->fate[i];
    const svs_error *why = fate > ANSWER ? &reasons[fate] : fate == APPLY ? full : NULL;
    if (fate == UNNUMBERED) /* the door tells of the others, a full disk was told once */
        svi_keeper_refuse(in->control->keeper, in->control->engine, why->code, why->text, now);
    in->declined += why == full && why;
    svs_code code = why ? svi_router_decline(in->control, body, length, why, &in->reply)
                        : svi_router_handle(in->control, body, length, now, &in->reply);
    if (!starved(in))
        svi_inlet_reply(in, in->socket, r, code);
}

static void settle_all(struct svi_inlet *in, const svs_error *full, double now) {
    for (int i = 0; i < in->count && !starved(in); i++) {
        zmq_msg_t *m = &in->queue[i].body;
        if (answers(in))
            settle(in, i, full, now);
        else if (in->fate[i] == APPLY) /* a refusal becomes an event */
            svi_engine_frame(in->control->engine, zmq_msg_data(m), zmq_msg_size(m), now, false, NULL);
    }
    drop_queue(in);
}

/* Tells once when it begins and once when it is over. */
static void tell_block(struct svi_inlet *in, const svs_error *why, double now) {
    bool blocked = why != NULL;
    if (blocked == in->blocked)
        return;
    in->blocked = blocked;
    if (in->log) {
        fprintf(in->log, blocked ? "state: no samples are taken: %s\n" : "state: there is room again%s\n",
                blocked ? why->text : "");
        fflush(in->log);
    }
    if (blocked)
        svi_engine_refuse(in->control->engine, why->code, why->text, NULL, 0, now);
}

static double clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

svs_code svi_inlet_turn(struct svi_inlet *in, double now, bool *took, svs_error *err) {
    *took = false;
    if (in->held && svi_inlet_wait(in, now) > 0)
        return SVS_OK;
    const double began = clock_now();
    const size_t bytes = in->held ? 0 : take(in);
    const int count = in->count;
    *took = count > 0;
    if (count == 0)
        return SVS_OK;
    svs_code code = write_ahead(in, now, err);
    const bool full = code == SVS_DISK_FULL || code == SVS_NO_MEMORY;
    if (code != SVS_OK && !full)
        return code;
    tell_block(in, full ? err : NULL, now);
    in->held = full && !answers(in);
    in->retry = now + RETRY_SECONDS;
    if (in->held)
        return SVS_OK;
    settle_all(in, full ? err : NULL, now);
    const double spent = clock_now() - began;
    if (bytes > 0 && !full)
        in->cost = 0.5 * (in->cost + spent / (double)bytes);
    svi_latency_add(in->latency, spent, count);
    if (starved(in))
        return svi_fail(err, SVS_NO_MEMORY,
                        "memory ran out for a sample that was written down already: a restart takes it");
    return SVS_OK;
}

double svi_inlet_wait(const struct svi_inlet *in, double now) {
    if (!in->held)
        return INFINITY;
    return in->retry > now && in->retry < now + RETRY_SECONDS ? in->retry - now : 0;
}

void svi_inlet_figures(const struct svi_inlet *in) {
    svi_engine_note(in->control->engine, "replies_lost", (double)in->replies_lost);
    svi_engine_note(in->control->engine, "declined", (double)in->declined);
    if (in->control->keeper)
        svi_keeper_figures(in->control->keeper);
}
