/* Messages from the input socket, a turn at a time: received, parsed, judged, written ahead, applied,
 * answered.
 *
 * Each message is parsed once, when it is received (svi_envelope_read; JSON becomes msgpack before, in a
 * buffer of the batch); the verdict on it (may its sender send it, does it only ask) and all that follows
 * work on that envelope. Nothing takes effect before it is written, and one write serves for a turn, which is
 * bounded in messages, bytes and time so that the control socket has its turn.
 *
 * Where every commit is synced, two batches alternate (settle_flow): while the first takes effect, the second
 * is received and the disk works on it; it is begun as late as the disk allows, for small batches mean more
 * syncs. On a full disk, messages with replies are declined; others wait in the first batch (`held`) for
 * room.
 *
 * Read svi_ingest_zmq_turn first, then settle_all. */
#include "server/intake.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/fnv.h"
#include "engine/sources.h"
#include "state/write_ahead.h"
#include "server/router.h"
#include "wire/json.h"

/* One turn takes at most this, so that the control socket has its turn well within 100 ms. */
#define QUEUE         1000 /* messages of a producer, and bytes */
#define QUEUE_BYTES   (64 * 1024 * 1024)
#define QUEUE_LEAST   16
#define TURN_MESSAGES 512
#define TURN_BYTES    (1024 * 1024)
#define TURN_SECONDS  0.01
#define FIRST_COST    1e-7 /* seconds a byte, before anything was measured */
#define OVERHEAD      256  /* bytes of a message besides its own, in a queue or a journal */
#define PIECE         8    /* messages between two looks at the socket */
#define PIECE_OF_KEYS 128  /* with keys on several threads, which wait for each other then */
#define RETRY_SECONDS 0.25 /* with a full disk */
#define ROOM_SECONDS  3.0  /* for which all fits, until the disk is full no more */
#define AHEAD         1.25 /* times as long as a recent sync, it is begun before it is waited for */

/* What is to be done with a message. */
enum verdict {
    APPLY = 0,
    ANSWER,       /* it changes nothing: a question */
    FORBIDDEN,    /* its sender has lost the right */
    WRONG_SOURCE, /* its sender may not use this src */
    OVER_QUOTA,   /* its sender has as many sources as it may have */
    NOT_ITS_OWN,  /* bye to the source of another key */
    UNNUMBERED,   /* exactly-once needs src and n */
    UNREADABLE    /* JSON that is none: its envelope has the reason and no bytes */
};

svs_code svi_ingest_zmq_new(struct svi_ingest_zmq *in, svs_error *err) {
    bool good = true;
    for (int i = 0; i < 2; i++) {
        struct svi_batch *b = &in->batch[i];
        b->queue = svi_alloc_array(TURN_MESSAGES, sizeof *b->queue);
        b->envelope = svi_alloc_array(TURN_MESSAGES, sizeof *b->envelope);
        b->verdict = svi_alloc(TURN_MESSAGES);
        b->owner = svi_alloc_array(TURN_MESSAGES, sizeof *b->owner);
        b->place = svi_alloc_array(TURN_MESSAGES, sizeof *b->place);
        good = good && b->queue && b->envelope && b->verdict && b->owner && b->place;
    }
    in->replies = svi_alloc_array(TURN_MESSAGES, sizeof *in->replies);
    in->later = svi_alloc_array(TURN_MESSAGES, sizeof *in->later);
    good = good && in->replies && in->later;
    in->first = &in->batch[0];
    in->second = &in->batch[1];
    in->cost = FIRST_COST;
    return good ? SVS_OK : svi_fail_memory(err, "the messages of a turn");
}

static void ingest_zmq_clear(struct svi_batch *b) {
    for (int i = 0; i < b->count; i++)
        svi_request_close(&b->queue[i]);
    b->count = b->done = 0;
    b->bytes = 0;
    b->converted.size = 0;
}

void svi_ingest_zmq_free(struct svi_ingest_zmq *in) {
    for (int i = 0; i < 2; i++) {
        ingest_zmq_clear(&in->batch[i]);
        svi_free(in->batch[i].queue);
        svi_free(in->batch[i].envelope);
        svi_free(in->batch[i].verdict);
        svi_free(in->batch[i].owner);
        svi_free(in->batch[i].place);
        svi_bytes_clear(&in->batch[i].converted);
    }
    svi_free(in->replies);
    svi_free(in->later);
    svi_bytes_clear(&in->replies_held);
    svi_bytes_clear(&in->reply);
    svi_bytes_clear(&in->text);
}

static bool ingest_zmq_answers(const struct svi_ingest_zmq *in) {
    return svi_input_mode(in->settings)->replies;
}

/* Who takes the place of a new source: a key, or else a connection, which is a new one when it comes again.
 * Keys are not free to be chosen, and the routing ids of connections are ours. */
static uint64_t owner_of(struct svi_request *r) {
    const char *user = svi_message_user(&r->body), *bytes = user;
    size_t length = strlen(user);
    if (length == 0 && r->route_count > 0) {
        bytes = zmq_msg_data(&r->route[0]);
        length = zmq_msg_size(&r->route[0]);
    }
    const uint64_t h = svi_fnv(SVI_FNV_SEED, bytes, length);
    return user[0] ? h | 1 : h & ~UINT64_C(1);
}

/* The place for the owner of a source that has none yet, or NULL. */
static uint64_t *missing_owner(const struct svi_ingest_zmq *in, const struct svi_envelope *env) {
    uint64_t *kept = svi_entry_owner(svi_stream_entry(in->control->stream), env->src, env->src_length);
    return kept && *kept == 0 ? kept : NULL;
}

/* Does the message make a source, as far as can be known before those in front of it took effect? A hello
 * that comes here brings one back. */
static bool makes_source(const struct svi_ingest_zmq *in, const struct svi_envelope *env) {
    return env->src_good && (env->n == 0 || env->hello) &&
           !svi_entry_owner(svi_stream_entry(in->control->stream), env->src, env->src_length);
}

static int64_t sources_to_come(const struct svi_batch *b, uint64_t owner) {
    int64_t count = 0;
    for (int i = b->done; i < b->count; i++)
        count += b->verdict[i] == APPLY && b->owner[i] == owner;
    return count;
}

static bool is_over_quota(const struct svi_ingest_zmq *in, uint64_t owner, double now) {
    const struct svi_settings *s = in->settings;
    const int64_t quota = s->sources_quota > 0 ? s->sources_quota : (s->max_sources + 1) / 2;
    const int64_t coming = sources_to_come(in->first, owner) + sources_to_come(in->second, owner);
    const svi_sources *sources = svi_stream_entry(in->control->stream)->sources;
    return svi_sources_count(sources) + coming >= quota &&
           svi_sources_owned(sources, owner, now, s->sources_idle) + coming >= quota;
}

/* Of a message whose sender may send: what it does to the table of sources. */
static enum verdict verdict_on_source(const struct svi_ingest_zmq *in, struct svi_request *r,
                                      const struct svi_envelope *env, double now, uint64_t *owner) {
    if (env->hello && !svi_router_changes(in->control, env))
        return ANSWER;
    if (env->bye) {
        const uint64_t *kept =
            svi_entry_owner(svi_stream_entry(in->control->stream), env->src, env->src_length);
        return kept && svi_owner_is_key(*kept) && *kept != owner_of(r) ? NOT_ITS_OWN : APPLY;
    }
    if (!makes_source(in, env)) {
        /* Who began it is in checkpoints alone: after a crash the next message shows it. */
        uint64_t *missing = in->access->authenticator ? missing_owner(in, env) : NULL;
        if (missing)
            *missing = owner_of(r);
        return APPLY;
    }
    *owner = owner_of(r);
    return is_over_quota(in, *owner, now) ? OVER_QUOTA : APPLY;
}

/* *owner: of the source that the message may make; 0 = it makes none. */
static enum verdict verdict_of(struct svi_ingest_zmq *in, struct svi_request *r,
                               const struct svi_envelope *env, double now, uint64_t *owner) {
    *owner = 0;
    if (!svi_access_admits(in->access, SVI_ROLE_INGEST, &r->body))
        return FORBIDDEN;
    if (!svi_access_admits_source(in->access, &r->body, env->src, env->src_length))
        return WRONG_SOURCE;
    if (env->shown && env->size == 0)
        return UNREADABLE;
    const bool greets = env->hello || env->bye;
    if (svi_settings_delivery(in->settings) == SVI_EXACTLY_ONCE && !greets && !svi_envelope_numbered(env))
        return UNNUMBERED;
    return ingest_zmq_answers(in) ? verdict_on_source(in, r, env, now, owner) : APPLY;
}

static bool receive_any(const struct svi_ingest_zmq *in, struct svi_request *r) {
    if (ingest_zmq_answers(in))
        return svi_request_receive(in->socket, r);
    r->route_count = 0;
    zmq_msg_init(&r->body);
    if (svi_last_frame(in->socket, &r->body, &r->frames))
        return true;
    zmq_msg_close(&r->body);
    return false;
}

/* What is too large as a whole is dropped on the way. */
static bool ingest_zmq_receive(struct svi_ingest_zmq *in, struct svi_request *r) {
    bool any;
    while ((any = receive_any(in, r)) && !svi_access_takes(in->access, SVI_ROLE_INGEST, &r->body, &r->frames))
        svi_request_close(r);
    return any;
}

/* The buffer of what came as JSON has moved: the envelopes in it are read again. */
static void batch_read_again(struct svi_batch *b) {
    for (int i = 0; i < b->count; i++) {
        struct svi_envelope *env = &b->envelope[i];
        const void *shown = env->shown;
        const size_t shown_size = env->shown_size;
        if (!shown || env->size == 0)
            continue;
        svi_envelope_read(env, b->converted.data + b->place[i], env->size);
        env->shown = shown;
        env->shown_size = shown_size;
    }
}

/* JSON -> the message that a producer would have sent: the envelope is that one's. */
static void batch_read_json(struct svi_batch *b, struct svi_json_input *json, const void *text, size_t size) {
    struct svi_envelope *env = &b->envelope[b->count];
    const uintptr_t before = (uintptr_t)b->converted.data;
    const size_t at = b->converted.size;
    svs_error err;
    svs_code code = svi_json_message(json, text, size, &b->converted, &err);
    if ((uintptr_t)b->converted.data != before)
        batch_read_again(b);
    b->place[b->count] = at;
    svi_envelope_read(env, code == SVS_OK ? b->converted.data + at : text, b->converted.size - at);
    env->shown = text;
    env->shown_size = size;
    if (code != SVS_OK)
        env->form = err;
}

/* The one parse of this message. */
static void batch_read(struct svi_batch *b, struct svi_json_input *json) {
    struct svi_request *r = &b->queue[b->count];
    const void *bytes = zmq_msg_data(&r->body);
    const size_t size = r->frames.last;
    if (svi_json_begins(bytes, size))
        batch_read_json(b, json, bytes, size);
    else
        svi_envelope_read(&b->envelope[b->count], bytes, size);
}

/* Adds what has come to the batch, up to as much as the last turns say can be done in time; returns its
 * bytes. */
static size_t ingest_zmq_take(struct svi_ingest_zmq *in, struct svi_batch *b, double now) {
    const double room = TURN_SECONDS / in->cost;
    const size_t before = b->bytes, most = room < TURN_BYTES ? (size_t)room : TURN_BYTES;
    b->now = now;
    if (b->count == 0)
        b->began = svi_monotonic();
    while (b->count < TURN_MESSAGES &&
           (b->count == 0 || (b->bytes < most && b->converted.size < TURN_BYTES)) &&
           ingest_zmq_receive(in, &b->queue[b->count])) {
        const size_t size = b->queue[b->count].frames.last;
        b->bytes += size;
        in->largest = size > in->largest ? size : in->largest;
        struct svi_envelope *env = &b->envelope[b->count];
        batch_read(b, &in->control->json);
        b->verdict[b->count] = (uint8_t)verdict_of(in, &b->queue[b->count], env, now, &b->owner[b->count]);
        b->count++;
    }
    return b->bytes - before;
}

static const svs_error reasons[] = {
    [FORBIDDEN] = {SVS_NOT_ALLOWED, "this key, or its role, was removed from the allow file"},
    [WRONG_SOURCE] = {SVS_NOT_ALLOWED,
                      "this key is bound to other names than this src (curve allow --role source:NAME)"},
    [OVER_QUOTA] = {SVS_LIMIT,
                    "this key or connection has as many sources as sources.quota allows: use fewer "
                    "names, and end those that are done with bye"},
    [NOT_ITS_OWN] = {SVS_NOT_ALLOWED, "bye to a source that another key began: that key may end it"},
    [UNNUMBERED] = {SVS_NO_SOURCE, "delivery exactly-once accepts numbered samples only: give src and n"},
};

static const svs_error *reason_of(const struct svi_envelope *env, enum verdict verdict) {
    return verdict == UNREADABLE ? &env->form : &reasons[verdict];
}

static void ingest_zmq_refuse(const struct svi_ingest_zmq *in, const struct svi_envelope *env,
                              const svs_error *why, double now) {
    svi_stream_refuse(in->control->stream, why->code, why->text, env->shown ? env->shown : env->bytes,
                      env->shown ? env->shown_size : env->size, now);
}

typedef svs_code commit(svi_write_ahead *w, svs_error *err);

/* A full disk is reported by b->full. */
static svs_code ingest_zmq_write_ahead(struct svi_ingest_zmq *in, struct svi_batch *b, commit *how,
                                       svs_error *err) {
    svi_write_ahead *w = in->control->write_ahead;
    enum svi_record_kind kind = ingest_zmq_answers(in) ? SVI_RECORD_SOURCED : SVI_RECORD_FRAME;
    svs_code code = SVS_OK;
    for (int i = 0; w && i < b->count && code == SVS_OK; i++) {
        const struct svi_envelope *env = &b->envelope[i];
        const svs_error *why = reason_of(env, (enum verdict)b->verdict[i]);
        if (b->verdict[i] == APPLY)
            code = svi_write_ahead_append(w, kind, b->now, env->bytes, env->size, &in->why);
        else if (b->verdict[i] == UNNUMBERED || b->verdict[i] == UNREADABLE)
            code = svi_write_ahead_append_refusal(w, why->code, why->text, b->now, &in->why);
    }
    if (code != SVS_OK)
        svi_write_ahead_abort(w);
    else if (w)
        code = how(w, &in->why);
    b->full = code == SVS_DISK_FULL || code == SVS_NO_MEMORY;
    return code == SVS_OK || b->full ? SVS_OK : svi_fail(err, code, "%s", in->why.text);
}

/* ---- what becomes of each */

static bool ingest_zmq_send(struct svi_ingest_zmq *in, void *socket, struct svi_request *r,
                            const uint8_t *reply, size_t size, svs_code code) {
    if (code == SVS_OK && svi_json_begins(zmq_msg_data(&r->body), r->frames.last)) {
        in->text.size = 0;
        code = svi_json_msgpack(&in->text, reply, size, NULL);
        reply = in->text.data;
        size = in->text.size;
    }
    bool sent = code == SVS_OK && svi_request_reply(socket, r, reply, size);
    in->replies_lost += !sent;
    return sent;
}

bool svi_ingest_zmq_reply(struct svi_ingest_zmq *in, void *socket, struct svi_request *r, svs_code code) {
    return ingest_zmq_send(in, socket, r, in->reply.data, in->reply.size, code);
}

/* Who has the reply finds the events of his samples on their way: where these wait, it does. */
static void ingest_zmq_send_held(struct svi_ingest_zmq *in, const struct svi_batch *b) {
    const uint64_t told = svi_stream_published(in->control->stream);
    while (in->replies_first < in->replies_count && in->replies[in->replies_first].after <= told) {
        const struct svi_held_reply *h = &in->replies[in->replies_first++];
        ingest_zmq_send(in, in->socket, &b->queue[h->message], in->replies_held.data + h->at, h->size,
                        SVS_OK);
    }
    if (in->replies_first == in->replies_count)
        in->replies_first = in->replies_count = (int)(in->replies_held.size = 0);
}

static void ingest_zmq_answer(struct svi_ingest_zmq *in, const struct svi_batch *b, int i, svs_code code) {
    const uint64_t taken = svi_stream_taken(in->control->stream);
    ingest_zmq_send_held(in, b);
    const size_t at = in->replies_held.size;
    if (code != SVS_OK || svi_stream_published(in->control->stream) == taken ||
        svi_bytes_append(&in->replies_held, in->reply.data, in->reply.size) != SVS_OK) {
        svi_stream_settle(in->control->stream);
        ingest_zmq_send_held(in, b);
        svi_ingest_zmq_reply(in, in->socket, &b->queue[i], code);
        return;
    }
    in->replies[in->replies_count++] = (struct svi_held_reply){i, at, in->reply.size, taken};
}

/* What was written down and not taken for want of memory would be taken by a restart: no answer goes out. */
static bool out_of_memory(const struct svi_ingest_zmq *in) {
    return in->control->write_ahead && svi_stream_out_of_memory(in->control->stream);
}

static void ingest_zmq_settle(struct svi_ingest_zmq *in, struct svi_batch *b, int i) {
    struct svi_envelope *env = &b->envelope[i];
    const enum verdict verdict = (enum verdict)b->verdict[i];
    const bool declined = verdict == APPLY && b->full;
    const svs_error *why = verdict > ANSWER ? reason_of(env, verdict) : declined ? &in->why : NULL;
    const bool reported = verdict == FORBIDDEN || verdict == WRONG_SOURCE; /* by access */
    if (verdict > ANSWER && !reported && !b->full)                         /* a full disk was reported once */
        ingest_zmq_refuse(in, env, why, b->now);
    in->declined += declined;
    svs_code code = why                 ? svi_router_decline(in->control, env, why, &in->reply)
                    : verdict == ANSWER ? svi_router_answer(in->control, env, &in->reply)
                                        : svi_router_handle(in->control, env, b->now, &in->reply);
    uint64_t *missing = !why && b->owner[i] != 0 ? missing_owner(in, env) : NULL;
    if (missing) /* the message has made its source */
        *missing = b->owner[i];
    if (!out_of_memory(in))
        ingest_zmq_answer(in, b, i, code);
}

/* Where there are no replies: what is refused becomes an event. */
static void ingest_zmq_apply(struct svi_ingest_zmq *in, const struct svi_batch *b, int i) {
    struct svi_envelope *env = &b->envelope[i];
    if (b->verdict[i] == APPLY)
        svi_stream_apply_later(in->control->stream, env, b->now, false, NULL);
    else if (b->verdict[i] == UNREADABLE)
        ingest_zmq_refuse(in, env, &env->form, b->now);
}

/* The replies to those that were at work on other threads. */
static void ingest_zmq_answer_later(struct svi_ingest_zmq *in, struct svi_batch *b) {
    svi_stream_settle(in->control->stream);
    for (int k = 0; k < in->later_count && !out_of_memory(in); k++) {
        const int i = in->later[k].message;
        const struct svi_envelope *env = &b->envelope[i];
        uint64_t *missing = b->owner[i] != 0 ? missing_owner(in, env) : NULL;
        if (missing) /* the message has made its source */
            *missing = b->owner[i];
        const svs_code code = svi_router_reply(in->control, env, &in->later[k].receipt, &in->reply);
        svi_ingest_zmq_reply(in, in->socket, &b->queue[i], code);
    }
    in->later_count = 0;
}

/* With keys on several threads samples are handed out first and answered together. False: the message is of
 * another kind. */
static bool ingest_zmq_hand_out(struct svi_ingest_zmq *in, struct svi_batch *b, int i) {
    struct svi_envelope *env = &b->envelope[i];
    if (!svi_stream_has_threads(in->control->stream) || b->verdict[i] != APPLY || b->full || env->hello ||
        env->bye)
        return false;
    struct svi_later_reply *later = &in->later[in->later_count++];
    later->message = i;
    svi_stream_apply_later(in->control->stream, env, b->now, true, &later->receipt);
    return true;
}

/* `most` more of the batch; true: all of it is done. */
static bool settle_some(struct svi_ingest_zmq *in, struct svi_batch *b, int most) {
    svi_stream_leave_open(in->control->stream, true);
    for (; b->done < b->count && most > 0 && !out_of_memory(in); b->done++, most--) {
        if (ingest_zmq_answers(in) && ingest_zmq_hand_out(in, b, b->done))
            continue;
        if (in->later_count > 0)
            ingest_zmq_answer_later(in, b);
        if (ingest_zmq_answers(in))
            ingest_zmq_settle(in, b, b->done);
        else
            ingest_zmq_apply(in, b, b->done);
    }
    if (in->later_count > 0)
        ingest_zmq_answer_later(in, b);
    svi_stream_leave_open(in->control->stream, false);
    ingest_zmq_send_held(in, b);
    if (b->done < b->count)
        return false;
    svi_latency_add(in->latency, svi_monotonic() - b->began, b->count);
    ingest_zmq_clear(b);
    return true;
}

static void log_room(const struct svi_ingest_zmq *in, const char *what, const char *why) {
    if (!in->log)
        return;
    fprintf(in->log, "state: %s%s\n", what, why);
    fflush(in->log);
}

/* What could not be written is reported, once when that begins and once when it is over for a while
 * (tell_room); where there are no replies it waits for room. */
static void look_at_room(struct svi_ingest_zmq *in, const struct svi_batch *b) {
    in->held = b->full && !ingest_zmq_answers(in);
    in->retry = svi_monotonic() + RETRY_SECONDS;
    in->fits = !b->full && in->blocked && in->fits == 0 ? svi_monotonic() : b->full ? 0 : in->fits;
    if (!b->full || in->blocked)
        return;
    in->blocked = true;
    log_room(in, "not accepting samples: ", in->why.text);
    svi_stream_refuse(in->control->stream, in->why.code, in->why.text, NULL, 0, b->now);
}

double svi_ingest_zmq_room_wait(const struct svi_ingest_zmq *in) {
    return in->blocked && in->fits > 0 ? fmax(0, in->fits + ROOM_SECONDS - svi_monotonic()) : INFINITY;
}

/* At the edge small messages fit and larger ones do not: that is one story, and ends when all of them fit. */
static void tell_room(struct svi_ingest_zmq *in) {
    if (svi_ingest_zmq_room_wait(in) > 0)
        return;
    in->blocked = false;
    in->fits = 0;
    log_room(in, "accepting samples again", "");
}

static int piece_of(const struct svi_ingest_zmq *in) {
    return svi_stream_has_threads(in->control->stream) ? PIECE_OF_KEYS : PIECE;
}

/* Is it time to write the second batch down? Too early, and it is small and the disk has to sync more often;
 * too late, and the stream waits for the disk: it is asked again after a piece only. Senders that wait for
 * replies get those to half of the first batch before. */
static bool is_time(const struct svi_ingest_zmq *in, const struct svi_batch *a, const struct svi_batch *b) {
    const double left = (a->count - a->done - piece_of(in)) * in->each; /* when it is asked next */
    const bool last = left <= AHEAD * svi_write_ahead_sync_seconds(in->control->write_ahead);
    return b->count >= a->count || (last && (a->done == 0 || 2 * a->done >= a->count));
}

/* While a batch takes effect the next one is gathered, and the disk works on it. Ends in time, with nothing
 * begun. */
static svs_code settle_flow(struct svi_ingest_zmq *in, size_t *bytes, svs_error *err) {
    svi_write_ahead *w = in->control->write_ahead;
    const double began = in->first->began, now = in->first->now;
    double since = svi_monotonic();
    bool begun = false;
    svs_code code = SVS_OK;
    while (code == SVS_OK && in->first->count > 0 && !in->held && !out_of_memory(in)) {
        struct svi_batch *a = in->first, *b = in->second;
        const int count = a->count;
        const double spent = svi_monotonic() - began;
        if (!begun && !a->full && spent < TURN_SECONDS)
            *bytes += ingest_zmq_take(in, b, now + spent);
        if (!begun && b->count > 0 && is_time(in, a, b)) {
            code = ingest_zmq_write_ahead(in, b, svi_write_ahead_begin, err);
            begun = true;
        }
        if (code != SVS_OK || !settle_some(in, a, piece_of(in)))
            continue;
        in->each = 0.5 * (in->each + (svi_monotonic() - since) / count);
        if (b->count == 0)
            break;
        if (!begun)
            code = ingest_zmq_write_ahead(in, b, svi_write_ahead_begin, err);
        if (code == SVS_OK)
            code = svi_write_ahead_end(w, err);
        look_at_room(in, b);
        in->first = b;
        in->second = a;
        begun = false;
        since = svi_monotonic();
    }
    return code;
}

svs_code svi_ingest_zmq_turn(struct svi_ingest_zmq *in, double now, bool *took, svs_error *err) {
    *took = false;
    tell_room(in);
    if (in->held && svi_ingest_zmq_wait(in) > 0)
        return SVS_OK;
    const double began = svi_monotonic();
    size_t bytes = in->held ? 0 : ingest_zmq_take(in, in->first, now);
    *took = in->first->count > 0;
    if (!*took)
        return SVS_OK;
    in->first->now = now; /* also of what was held */
    svs_code code = ingest_zmq_write_ahead(in, in->first, svi_write_ahead_commit, err);
    if (code != SVS_OK)
        return code;
    look_at_room(in, in->first);
    if (in->held)
        return SVS_OK;
    const bool full = in->first->full;
    if (in->control->write_ahead && svi_write_ahead_syncs(in->control->write_ahead))
        code = settle_flow(in, &bytes, err);
    else
        settle_some(in, in->first, TURN_MESSAGES);
    if (code == SVS_OK && out_of_memory(in) &&
        (code = svi_stream_lost_key(in->control->stream, err)) == SVS_OK)
        code = svi_fail(err, SVS_NO_MEMORY,
                        "memory ran out for a sample that was written down already: a restart takes it");
    if (bytes > 0 && !full)
        in->cost = 0.5 * (in->cost + (svi_monotonic() - began) / (double)bytes);
    return code;
}

double svi_ingest_zmq_wait(const struct svi_ingest_zmq *in) {
    return in->held ? fmax(0, in->retry - svi_monotonic()) : INFINITY;
}

int svi_ingest_zmq_queue(const struct svi_settings *s) {
    const int64_t queue = QUEUE_BYTES / s->max_message; /* libzmq counts messages alone */
    return queue > QUEUE ? QUEUE : queue < QUEUE_LEAST ? QUEUE_LEAST : (int)queue;
}

double svi_ingest_zmq_batch_memory(const struct svi_settings *s) {
    return TURN_BYTES + (double)s->max_message + TURN_MESSAGES * OVERHEAD;
}

double svi_ingest_zmq_memory(const struct svi_settings *s) {
    return 2 * (svi_ingest_zmq_batch_memory(s) +
                TURN_MESSAGES * (sizeof(struct svi_request) + sizeof(struct svi_envelope) + sizeof(uint64_t) +
                                 sizeof(size_t) + 1.0)) +
           TURN_MESSAGES *
               (sizeof(struct svi_held_reply) + sizeof(struct svi_later_reply) + (double)OVERHEAD);
}

double svi_ingest_zmq_converted(const struct svi_ingest_zmq *in) {
    const size_t batches = in->batch[0].converted.capacity + in->batch[1].converted.capacity;
    return (double)(batches + in->control->json.text.capacity);
}

void svi_ingest_zmq_figures(const struct svi_ingest_zmq *in) {
    svi_stream_set_gauge(in->control->stream, "replies_lost", (double)in->replies_lost);
    svi_stream_set_gauge(in->control->stream, "declined", (double)in->declined);
    if (in->control->write_ahead)
        svi_write_ahead_figures(in->control->write_ahead);
}
