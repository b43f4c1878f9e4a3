#include "engine/inlet.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "engine/keeper.h"
#include "engine/origin.h"
#include "engine/reply.h"

/* One turn takes at most this, so that the control socket has its turn well within 100 ms. */
#define TURN_MESSAGES 512
#define TURN_BYTES    (1024 * 1024)
#define TURN_SECONDS  0.01
#define FIRST_COST    1e-7 /* seconds a byte, before anything was measured */
#define OVERHEAD      256  /* bytes of a message beside its own, in a queue or a journal */
#define PIECE         8    /* messages between two looks at the socket */
#define RETRY_SECONDS 0.25 /* with a full disk */
#define AHEAD         1.25 /* times as long as a sync takes, lately, it is begun before it is waited for */

/* What is to be done with a message. */
enum fate {
    APPLY = 0,
    ANSWER,    /* it changes nothing: a question */
    FORBIDDEN, /* its sender has lost the right */
    ALIEN,     /* its sender may not use this src */
    UNNUMBERED /* exactly-once needs src and n */
};

svs_code svi_inlet_new(struct svi_inlet *in, svs_error *err) {
    bool good = true;
    for (int i = 0; i < 2; i++) {
        struct svi_batch *b = &in->batch[i];
        b->queue = svi_alloc_array(TURN_MESSAGES, sizeof *b->queue);
        b->fate = svi_alloc(TURN_MESSAGES);
        good = good && b->queue && b->fate;
    }
    in->first = &in->batch[0];
    in->second = &in->batch[1];
    in->cost = FIRST_COST;
    return good ? SVS_OK : svi_fail_memory(err, "the messages of a turn");
}

static void clear(struct svi_batch *b) {
    for (int i = 0; i < b->count; i++)
        svi_request_close(&b->queue[i]);
    b->count = b->done = 0;
    b->bytes = 0;
}

void svi_inlet_free(struct svi_inlet *in) {
    for (int i = 0; i < 2; i++) {
        clear(&in->batch[i]);
        svi_free(in->batch[i].queue);
        svi_free(in->batch[i].fate);
    }
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

/* Adds what has come to the batch, up to as much as the last turns say can be done in time; returns its
 * bytes. */
static size_t take(struct svi_inlet *in, struct svi_batch *b, double now) {
    const double room = TURN_SECONDS / in->cost;
    const size_t before = b->bytes, most = room < TURN_BYTES ? (size_t)room : TURN_BYTES;
    b->now = now;
    if (b->count == 0)
        b->began = svi_monotonic();
    while (b->count < TURN_MESSAGES && (b->count == 0 || b->bytes < most) &&
           receive(in, &b->queue[b->count])) {
        zmq_msg_t *m = &b->queue[b->count].body;
        b->bytes += zmq_msg_size(m);
        b->fate[b->count++] = (uint8_t)fate_of(in, m);
    }
    return b->bytes - before;
}

static const svs_error reasons[] = {
    [FORBIDDEN] = {SVS_NOT_ALLOWED, "this key was taken from the allow file, or its role was"},
    [ALIEN] = {SVS_NOT_ALLOWED,
               "this key is bound to other names than this src (keys allow --role source:NAME)"},
    [UNNUMBERED] = {SVS_NO_SOURCE, "delivery exactly-once takes numbered samples only: give src and n"},
};

typedef svs_code commit(svi_keeper *k, svs_error *err);

/* A full disk is told by b->full. */
static svs_code write_ahead(struct svi_inlet *in, struct svi_batch *b, commit *how, svs_error *err) {
    svi_keeper *k = in->control->keeper;
    enum svi_record_kind kind = answers(in) ? SVI_RECORD_SOURCED : SVI_RECORD_FRAME;
    svs_code code = SVS_OK;
    for (int i = 0; k && i < b->count && code == SVS_OK; i++) {
        zmq_msg_t *m = &b->queue[i].body;
        const svs_error *why = &reasons[b->fate[i]];
        if (b->fate[i] == APPLY)
            code = svi_keeper_note(k, kind, b->now, zmq_msg_data(m), zmq_msg_size(m), &in->why);
        else if (b->fate[i] == UNNUMBERED)
            code = svi_keeper_note_refusal(k, why->code, why->text, b->now, &in->why);
    }
    if (code != SVS_OK)
        svi_keeper_drop(k);
    else if (k)
        code = how(k, &in->why);
    b->full = code == SVS_DISK_FULL || code == SVS_NO_MEMORY;
    return code == SVS_OK || b->full ? SVS_OK : svi_fail(err, code, "%s", in->why.text);
}

/* ---- what becomes of each */

bool svi_inlet_reply(struct svi_inlet *in, void *socket, struct svi_request *r, svs_code code) {
    bool sent = code == SVS_OK && svi_request_reply(socket, r, in->reply.data, in->reply.size);
    in->replies_lost += !sent;
    return sent;
}

/* What was written down and not taken for want of memory would be taken by a restart: no answer goes out. */
static bool starved(const struct svi_inlet *in) {
    return in->control->keeper && svi_engine_starved(in->control->engine);
}

static void settle(struct svi_inlet *in, struct svi_batch *b, int i) {
    struct svi_request *r = &b->queue[i];
    const void *body = zmq_msg_data(&r->body);
    const size_t length = zmq_msg_size(&r->body);
    const enum fate fate = (enum fate)b->fate[i];
    const bool declined = fate == APPLY && b->full;
    const svs_error *why = fate > ANSWER ? &reasons[fate] : declined ? &in->why : NULL;
    if (fate == UNNUMBERED && !b->full) /* the door tells of the others, a full disk was told once */
        svi_engine_refuse(in->control->engine, why->code, why->text, body, length, b->now);
    in->declined += declined;
    svs_code code = why ? svi_router_decline(in->control, body, length, why, &in->reply)
                        : svi_router_handle(in->control, body, length, b->now, &in->reply);
    if (!starved(in))
        svi_inlet_reply(in, in->socket, r, code);
}

/* `most` more of the batch; true: all of it is done. */
static bool settle_some(struct svi_inlet *in, struct svi_batch *b, int most) {
    for (; b->done < b->count && most > 0 && !starved(in); b->done++, most--) {
        zmq_msg_t *m = &b->queue[b->done].body;
        if (answers(in))
            settle(in, b, b->done);
        else if (b->fate[b->done] == APPLY) /* a refusal becomes an event */
            svi_engine_frame(in->control->engine, zmq_msg_data(m), zmq_msg_size(m), b->now, false, NULL);
    }
    if (b->done < b->count)
        return false;
    svi_latency_add(in->latency, svi_monotonic() - b->began, b->count);
    clear(b);
    return true;
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

/* What could not be written down is told; where nobody answers it waits for room. */
static void look_at_room(struct svi_inlet *in, const struct svi_batch *b) {
    tell_block(in, b->full ? &in->why : NULL, b->now);
    in->held = b->full && !answers(in);
    in->retry = b->now + RETRY_SECONDS;
}

static void swap(struct svi_inlet *in) {
    struct svi_batch *b = in->first;
    in->first = in->second;
    in->second = b;
}

/* Is it time to write the second batch down? Too early, and it is small and the disk has to sync more often;
 * too late, and the stream waits for the disk: it is asked again behind a piece only. Senders that wait for
 * replies get those to half of the first batch before. */
static bool is_time(const struct svi_inlet *in, const struct svi_batch *a, const struct svi_batch *b) {
    const double left = (a->count - a->done - PIECE) * in->each; /* when it is asked next */
    const bool last = left <= AHEAD * svi_keeper_sync_seconds(in->control->keeper);
    return b->count >= a->count || (last && (a->done == 0 || 2 * a->done >= a->count));
}

/* While a batch takes effect the next one is gathered, and the disk works on it. Ends in time, with nothing
 * begun. */
static svs_code settle_flow(struct svi_inlet *in, size_t *bytes, svs_error *err) {
    svi_keeper *k = in->control->keeper;
    const double began = in->first->began, now = in->first->now;
    double since = svi_monotonic();
    bool begun = false;
    svs_code code = SVS_OK;
    while (code == SVS_OK && in->first->count > 0 && !in->held && !starved(in)) {
        struct svi_batch *a = in->first, *b = in->second;
        const int count = a->count;
        const double spent = svi_monotonic() - began;
        if (!begun && !a->full && spent < TURN_SECONDS)
            *bytes += take(in, b, now + spent);
        if (!begun && b->count > 0 && is_time(in, a, b)) {
            code = write_ahead(in, b, svi_keeper_begin, err);
            begun = true;
        }
        if (code != SVS_OK || !settle_some(in, a, PIECE))
            continue;
        in->each = 0.5 * (in->each + (svi_monotonic() - since) / count);
        if (b->count == 0)
            break;
        if (!begun)
            code = write_ahead(in, b, svi_keeper_begin, err);
        if (code == SVS_OK)
            code = svi_keeper_end(k, err);
        look_at_room(in, b);
        swap(in);
        begun = false;
        since = svi_monotonic();
    }
    return code;
}

static svs_code settle_all(struct svi_inlet *in, size_t *bytes, svs_error *err) {
    svi_keeper *k = in->control->keeper;
    svs_code code = SVS_OK;
    if (k && svi_keeper_syncs(k))
        code = settle_flow(in, bytes, err);
    else
        settle_some(in, in->first, TURN_MESSAGES);
    if (code == SVS_OK && starved(in))
        code = svi_fail(err, SVS_NO_MEMORY,
                        "memory ran out for a sample that was written down already: a restart takes it");
    return code;
}

svs_code svi_inlet_turn(struct svi_inlet *in, double now, bool *took, svs_error *err) {
    *took = false;
    if (in->held && svi_inlet_wait(in, now) > 0)
        return SVS_OK;
    const double began = svi_monotonic();
    size_t bytes = in->held ? 0 : take(in, in->first, now);
    *took = in->first->count > 0;
    if (!*took)
        return SVS_OK;
    in->first->now = now; /* also of what was held */
    svs_code code = write_ahead(in, in->first, svi_keeper_commit, err);
    if (code != SVS_OK)
        return code;
    look_at_room(in, in->first);
    if (in->held)
        return SVS_OK;
    const bool full = in->first->full;
    code = settle_all(in, &bytes, err);
    if (bytes > 0 && !full)
        in->cost = 0.5 * (in->cost + (svi_monotonic() - began) / (double)bytes);
    return code;
}

double svi_inlet_wait(const struct svi_inlet *in, double now) {
    if (!in->held)
        return INFINITY;
    return in->retry > now && in->retry < now + RETRY_SECONDS ? in->retry - now : 0;
}

double svi_inlet_batch_memory(const struct svi_settings *s) {
    return TURN_BYTES + (double)s->max_message + TURN_MESSAGES * OVERHEAD;
}

double svi_inlet_memory(const struct svi_settings *s) {
    return 2 * (svi_inlet_batch_memory(s) + TURN_MESSAGES * (sizeof(struct svi_request) + 1.0));
}

void svi_inlet_figures(const struct svi_inlet *in) {
    svi_engine_note(in->control->engine, "replies_lost", (double)in->replies_lost);
    svi_engine_note(in->control->engine, "declined", (double)in->declined);
    if (in->control->keeper)
        svi_keeper_figures(in->control->keeper);
}
