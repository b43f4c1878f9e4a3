/* The messages of an intake, a turn at a time: taken, parsed, judged, written ahead, applied, answered. What
 * becomes of a message is said here for all intakes; theirs are its bytes, its sender and the way back.
 *
 * Each message is parsed once, when it is taken (svi_envelope_read; JSON becomes msgpack before, in a buffer
 * of the batch); the verdict on it (may its sender send it, does it only ask) and all that follows work on
 * that envelope. Nothing takes effect before it is written, and one write serves for a turn, which is bounded
 * in messages, bytes and time so that the control socket has its turn.
 *
 * Where every commit is synced, two batches alternate (settle_flow): while the first takes effect, the second
 * is taken and the disk works on it. On a full disk, messages with replies are declined; others wait in the
 * first batch (`held`) until they fit. Rows are no batch: each is written and applied by itself
 * (svi_intake_apply). Read svi_intake_turn first, then settle_some and settle_flow. */
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
#define TURN_MESSAGES 512
#define TURN_BYTES    (1024 * 1024)
#define TURN_SECONDS  0.01
#define FIRST_COST    1e-7 /* seconds a byte, before anything was measured */
#define OVERHEAD      256  /* bytes of a message besides its own, in a journal */
#define QUEUED        128  /* likewise in a queue */
#define PIECE         8    /* messages between two looks at the socket */
#define PIECE_OF_KEYS 128  /* with keys on several threads, which wait for each other then */
#define RETRY_SECONDS 0.25 /* with a full disk */
#define SPACE_SECONDS 3.0  /* for which all fits, until the disk is full no more */
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

struct intake_message {
    struct svi_envelope envelope;
    uint64_t owner; /* of the source that it may make; 0 = it makes none */
    size_t place;   /* in the batch's `converted`, of what came as JSON */
};

/* Messages that are written down together; what an intake keeps of each is in its slot. */
struct svi_batch {
    uint8_t *slots;
    struct intake_message *message;
    uint8_t *verdict;           /* on each */
    struct svi_bytes converted; /* what came as JSON, as msgpack */
    int count, done;            /* of them are settled */
    size_t bytes;
    double now, began; /* arrival clock, monotonic */
    bool full;         /* they could not be written down */
};

/* A reply that goes out when the events of its samples have. */
struct svi_held_reply {
    int message; /* in its batch */
    size_t at, size;
    uint64_t after; /* svi_stream_published */
};

/* A message whose samples are at work on other threads. */
struct svi_later_reply {
    int message; /* in its batch */
    struct svi_receipt receipt;
};

/* ---- the table, and the life of one */

#define X(constant, name, word, binds, replies, text) extern const struct svi_intake_ops svi_intake_##name;
SVI_INTAKES(X)
#undef X

static const struct svi_intake_ops *intake_ops(const struct svi_settings *s) {
#define X(constant, name, word, binds, replies, text) [constant] = &svi_intake_##name,
    static const struct svi_intake_ops *const all[] = {SVI_INTAKES(X)};
#undef X
    return all[svi_settings_intake(s).mode];
}

/* The envelope of a message points into its slot, or into `converted`: both stay until the batch is cleared.
 */
static void *intake_slot(const struct svi_intake *in, const struct svi_batch *b, int i) {
    return b->slots + (size_t)i * in->ops->slot;
}

static struct svi_batch *intake_new_batch(size_t slot) {
    struct svi_batch *b = svi_alloc(sizeof *b);
    if (b) {
        b->slots = svi_alloc_array(TURN_MESSAGES, slot);
        b->message = svi_alloc_array(TURN_MESSAGES, sizeof *b->message);
        b->verdict = svi_alloc(TURN_MESSAGES);
    }
    return b;
}

static bool intake_has_batch(const struct svi_batch *b) {
    return b && b->slots && b->message && b->verdict;
}

svs_code svi_intake_new(struct svi_intake *in, svs_error *err) {
    in->ops = intake_ops(in->settings);
    in->replies = svi_settings_intake(in->settings).replies;
    in->cost = FIRST_COST;
    if (!in->ops->take)
        return SVS_OK;
    in->first = intake_new_batch(in->ops->slot);
    in->second = intake_new_batch(in->ops->slot);
    in->held_reply = svi_alloc_array(TURN_MESSAGES, sizeof *in->held_reply);
    in->later = svi_alloc_array(TURN_MESSAGES, sizeof *in->later);
    if (intake_has_batch(in->first) && intake_has_batch(in->second) && in->held_reply && in->later)
        return SVS_OK;
    return svi_fail_memory(err, "the messages of a turn");
}

void svi_intake_close(struct svi_intake *in) {
    if (in->own)
        in->ops->close(in);
}

static void intake_clear(const struct svi_intake *in, struct svi_batch *b) {
    for (int i = 0; i < b->count; i++)
        in->ops->release(intake_slot(in, b, i));
    b->count = b->done = 0;
    b->bytes = 0;
    b->converted.size = 0;
}

static void intake_free_batch(const struct svi_intake *in, struct svi_batch *b) {
    if (!b)
        return;
    intake_clear(in, b);
    svi_free(b->slots);
    svi_free(b->message);
    svi_free(b->verdict);
    svi_bytes_clear(&b->converted);
    svi_free(b);
}

void svi_intake_free(struct svi_intake *in) {
    svi_intake_close(in);
    intake_free_batch(in, in->first);
    intake_free_batch(in, in->second);
    svi_free(in->held_reply);
    svi_free(in->later);
    svi_bytes_clear(&in->held_bytes);
    svi_bytes_clear(&in->reply);
    svi_bytes_clear(&in->text);
}

/* ---- the verdict on a message */

/* The owner of a new source: a user, or else a peer, which is a new one when it connects again. */
static uint64_t owner_of(const struct svi_intake *in, void *slot) {
    const struct svi_sender from = in->ops->sender(slot);
    const bool known = from.user[0];
    const uint64_t h =
        svi_fnv(SVI_FNV_SEED, known ? from.user : from.peer, known ? strlen(from.user) : from.peer_size);
    return known ? h | 1 : h & ~UINT64_C(1);
}

/* The place for the owner of a source that has none yet, or NULL. */
static uint64_t *missing_owner(const struct svi_intake *in, const struct svi_envelope *env) {
    uint64_t *kept = svi_entry_owner(svi_stream_entry(in->control->stream), env->src, env->src_length);
    return kept && *kept == 0 ? kept : NULL;
}

/* Does the message make a source, as far as can be known before those in front of it took effect? A hello
 * that comes here brings one back. */
static bool makes_source(const struct svi_intake *in, const struct svi_envelope *env) {
    return env->src_good && (env->n == 0 || env->hello) &&
           !svi_entry_owner(svi_stream_entry(in->control->stream), env->src, env->src_length);
}

static int64_t sources_to_come(const struct svi_batch *b, uint64_t owner) {
    int64_t count = 0;
    for (int i = b->done; i < b->count; i++)
        count += b->verdict[i] == APPLY && b->message[i].owner == owner;
    return count;
}

static bool is_over_quota(const struct svi_intake *in, uint64_t owner, double now) {
    const struct svi_settings *s = in->settings;
    const int64_t quota = s->sources_quota > 0 ? s->sources_quota : (s->max_sources + 1) / 2;
    const int64_t coming = sources_to_come(in->first, owner) + sources_to_come(in->second, owner);
    const svi_sources *sources = svi_stream_entry(in->control->stream)->sources;
    return svi_sources_count(sources) + coming >= quota &&
           svi_sources_owned(sources, owner, now, s->sources_idle) + coming >= quota;
}

/* Of a message whose sender may send: what it does to the table of sources. */
static enum verdict verdict_on_source(const struct svi_intake *in, void *slot, const struct svi_envelope *env,
                                      double now, uint64_t *owner) {
    if (env->hello && !svi_router_changes(in->control, env))
        return ANSWER;
    if (env->bye) {
        const uint64_t *kept =
            svi_entry_owner(svi_stream_entry(in->control->stream), env->src, env->src_length);
        return kept && svi_owner_is_key(*kept) && *kept != owner_of(in, slot) ? NOT_ITS_OWN : APPLY;
    }
    if (!makes_source(in, env)) {
        /* Who began it is in checkpoints alone: after a crash the next message shows it. */
        uint64_t *missing = svi_access_asks(in->access) ? missing_owner(in, env) : NULL;
        if (missing)
            *missing = owner_of(in, slot);
        return APPLY;
    }
    *owner = owner_of(in, slot);
    return is_over_quota(in, *owner, now) ? OVER_QUOTA : APPLY;
}

/* *owner: of the source that the message may make; 0 = it makes none. */
static enum verdict verdict_of(const struct svi_intake *in, void *slot, const struct svi_envelope *env,
                               double now, uint64_t *owner) {
    *owner = 0;
    if (svi_access_asks(in->access)) { /* looking up the sender costs more than all that follows */
        const struct svi_sender from = in->ops->sender(slot);
        if (!svi_access_admits(in->access, SVI_ROLE_INGEST, &from))
            return FORBIDDEN;
        if (!svi_access_admits_source(in->access, from.user, env->src, env->src_length))
            return WRONG_SOURCE;
    }
    if (env->shown && env->size == 0)
        return UNREADABLE;
    const bool greets = env->hello || env->bye;
    if (svi_settings_delivery(in->settings) == SVI_EXACTLY_ONCE && !greets && !svi_envelope_numbered(env))
        return UNNUMBERED;
    return in->replies ? verdict_on_source(in, slot, env, now, owner) : APPLY;
}

static const svs_error reasons[] = {
    [FORBIDDEN] = {SVS_NOT_ALLOWED, "this key, or its role, was removed from the allow file"},
    [WRONG_SOURCE] = {SVS_NOT_ALLOWED,
                      "this key is bound to other names than this src (curve allow --role source:NAME)"},
    [OVER_QUOTA] = {SVS_LIMIT,
                    "this key or connection has as many sources as sources.quota allows: use fewer "
                    "names, and end those that are done with bye"},
    [NOT_ITS_OWN] = {SVS_NOT_ALLOWED, "bye to a source that another key began: that key may end it"},
    [UNNUMBERED] = {SVS_MISSING_SOURCE,
                    "delivery exactly-once accepts numbered samples only: give src and n"},
};

static const svs_error *reason_of(const struct svi_envelope *env, enum verdict verdict) {
    return verdict == UNREADABLE ? &env->form : &reasons[verdict];
}

/* ---- taken and parsed */

/* The buffer of what came as JSON has moved: the envelopes in it are read again. */
static void batch_read_again(struct svi_batch *b) {
    for (int i = 0; i < b->count; i++) {
        struct svi_envelope *env = &b->message[i].envelope;
        const void *shown = env->shown;
        const size_t shown_size = env->shown_size;
        if (!shown || env->size == 0)
            continue;
        svi_envelope_read(env, b->converted.data + b->message[i].place, env->size);
        env->shown = shown;
        env->shown_size = shown_size;
    }
}

/* JSON -> the message that a producer would have sent: the envelope is that one's. */
static void batch_read_json(struct svi_batch *b, struct svi_json_input *json, const void *text, size_t size) {
    struct svi_envelope *env = &b->message[b->count].envelope;
    const uintptr_t before = (uintptr_t)b->converted.data;
    const size_t at = b->converted.size;
    svs_error err;
    svs_code code = svi_json_message(json, text, size, &b->converted, &err);
    if ((uintptr_t)b->converted.data != before)
        batch_read_again(b);
    b->message[b->count].place = at;
    svi_envelope_read(env, code == SVS_OK ? b->converted.data + at : text, b->converted.size - at);
    env->shown = text;
    env->shown_size = size;
    if (code != SVS_OK)
        env->form = err;
}

/* The one parse of this message. */
static void batch_read(struct svi_batch *b, struct svi_json_input *json, const void *bytes, size_t size) {
    if (svi_json_begins(bytes, size))
        batch_read_json(b, json, bytes, size);
    else
        svi_envelope_read(&b->message[b->count].envelope, bytes, size);
}

/* Adds what has come to the batch, up to as much as the last turns say can be done in time; returns its
 * bytes. */
static size_t intake_take(struct svi_intake *in, struct svi_batch *b, double now) {
    const double free_bytes = TURN_SECONDS / in->cost;
    const size_t before = b->bytes, most = free_bytes < TURN_BYTES ? (size_t)free_bytes : TURN_BYTES;
    const void *bytes;
    size_t size;
    b->now = now;
    if (b->count == 0)
        b->began = svi_monotonic();
    while (b->count < TURN_MESSAGES &&
           (b->count == 0 || (b->bytes < most && b->converted.size < TURN_BYTES)) &&
           in->ops->take(in, intake_slot(in, b, b->count), &bytes, &size)) {
        const int i = b->count;
        b->bytes += size;
        in->largest = size > in->largest ? size : in->largest;
        batch_read(b, &in->control->json, bytes, size);
        struct intake_message *m = &b->message[i];
        b->verdict[i] = (uint8_t)verdict_of(in, intake_slot(in, b, i), &m->envelope, now, &m->owner);
        b->count++;
    }
    return b->bytes - before;
}

static void intake_refuse(const struct svi_intake *in, const struct svi_envelope *env, const svs_error *why,
                          double now) {
    svi_stream_refuse(in->control->stream, why->code, why->text, env->shown ? env->shown : env->bytes,
                      env->shown ? env->shown_size : env->size, now);
}

typedef svs_code commit(svi_write_ahead *w, svs_error *err);

/* A full disk is reported by b->full. */
static svs_code intake_write_ahead(struct svi_intake *in, struct svi_batch *b, commit *how, svs_error *err) {
    svi_write_ahead *w = in->control->write_ahead;
    enum svi_record_kind kind = in->replies ? SVI_RECORD_SOURCED : SVI_RECORD_FRAME;
    svs_code code = SVS_OK;
    for (int i = 0; w && i < b->count && code == SVS_OK; i++) {
        const struct svi_envelope *env = &b->message[i].envelope;
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

/* As JSON where the message was. */
static void intake_send(struct svi_intake *in, const struct svi_batch *b, int i, const void *reply,
                        size_t size, svs_code code) {
    if (code == SVS_OK && b->message[i].envelope.shown)
        code = svi_json_reply(&in->text, &reply, &size);
    in->replies_lost += code != SVS_OK || !in->ops->reply(in, intake_slot(in, b, i), reply, size);
}

/* A client that has the reply finds the events of its samples on their way: where these wait, it does. */
static void intake_send_held(struct svi_intake *in, const struct svi_batch *b) {
    const uint64_t told = svi_stream_published(in->control->stream);
    while (in->held_first < in->held_count && in->held_reply[in->held_first].after <= told) {
        const struct svi_held_reply *h = &in->held_reply[in->held_first++];
        intake_send(in, b, h->message, in->held_bytes.data + h->at, h->size, SVS_OK);
    }
    if (in->held_first == in->held_count)
        in->held_first = in->held_count = (int)(in->held_bytes.size = 0);
}

static void intake_answer(struct svi_intake *in, const struct svi_batch *b, int i, svs_code code) {
    const uint64_t taken = svi_stream_taken(in->control->stream);
    intake_send_held(in, b);
    const size_t at = in->held_bytes.size;
    if (code != SVS_OK || svi_stream_published(in->control->stream) == taken ||
        svi_bytes_append(&in->held_bytes, in->reply.data, in->reply.size) != SVS_OK) {
        svi_stream_settle(in->control->stream);
        intake_send_held(in, b);
        intake_send(in, b, i, in->reply.data, in->reply.size, code);
        return;
    }
    in->held_reply[in->held_count++] = (struct svi_held_reply){i, at, in->reply.size, taken};
}

/* What was written down and not taken for want of memory would be taken by a restart: no answer goes out. */
static bool out_of_memory(const struct svi_intake *in) {
    return in->control->write_ahead && svi_stream_out_of_memory(in->control->stream);
}

/* The message has made its source. */
static void intake_note_owner(const struct svi_intake *in, const struct intake_message *m) {
    uint64_t *missing = m->owner != 0 ? missing_owner(in, &m->envelope) : NULL;
    if (missing)
        *missing = m->owner;
}

static void intake_settle(struct svi_intake *in, struct svi_batch *b, int i) {
    struct svi_envelope *env = &b->message[i].envelope;
    const enum verdict verdict = (enum verdict)b->verdict[i];
    const bool declined = verdict == APPLY && b->full;
    const svs_error *why = verdict > ANSWER ? reason_of(env, verdict) : declined ? &in->why : NULL;
    const bool reported = verdict == FORBIDDEN || verdict == WRONG_SOURCE; /* by access */
    if (verdict > ANSWER && !reported && !b->full)                         /* a full disk was reported once */
        intake_refuse(in, env, why, b->now);
    in->declined += declined;
    svs_code code = why                 ? svi_router_decline(in->control, env, why, &in->reply)
                    : verdict == ANSWER ? svi_router_answer(in->control, env, &in->reply)
                                        : svi_router_handle(in->control, env, b->now, &in->reply);
    if (!why)
        intake_note_owner(in, &b->message[i]);
    if (!out_of_memory(in))
        intake_answer(in, b, i, code);
}

/* Where there are no replies: what is refused becomes an event. */
static void intake_apply(struct svi_intake *in, const struct svi_batch *b, int i) {
    struct svi_envelope *env = &b->message[i].envelope;
    if (b->verdict[i] == APPLY)
        svi_stream_apply_later(in->control->stream, env, b->now, false, NULL);
    else if (b->verdict[i] == UNREADABLE)
        intake_refuse(in, env, &env->form, b->now);
}

/* The replies to those that were at work on other threads. */
static void intake_answer_later(struct svi_intake *in, struct svi_batch *b) {
    svi_stream_settle(in->control->stream);
    for (int k = 0; k < in->later_count && !out_of_memory(in); k++) {
        const int i = in->later[k].message;
        const struct svi_envelope *env = &b->message[i].envelope;
        intake_note_owner(in, &b->message[i]);
        const svs_code code = svi_router_reply(in->control, env, &in->later[k].receipt, &in->reply);
        intake_send(in, b, i, in->reply.data, in->reply.size, code);
    }
    in->later_count = 0;
}

/* With keys on several threads samples are handed out first and answered together. False: the message is of
 * another kind. */
static bool intake_hand_out(struct svi_intake *in, struct svi_batch *b, int i) {
    struct svi_envelope *env = &b->message[i].envelope;
    if (!svi_stream_has_threads(in->control->stream) || b->verdict[i] != APPLY || b->full || env->hello ||
        env->bye)
        return false;
    struct svi_later_reply *later = &in->later[in->later_count++];
    later->message = i;
    svi_stream_apply_later(in->control->stream, env, b->now, true, &later->receipt);
    return true;
}

/* `most` more of the batch; true: all of it is done. */
static bool settle_some(struct svi_intake *in, struct svi_batch *b, int most) {
    svi_stream_leave_open(in->control->stream, true);
    for (; b->done < b->count && most > 0 && !out_of_memory(in); b->done++, most--) {
        if (in->replies && intake_hand_out(in, b, b->done))
            continue;
        if (in->later_count > 0)
            intake_answer_later(in, b);
        if (in->replies)
            intake_settle(in, b, b->done);
        else
            intake_apply(in, b, b->done);
    }
    if (in->later_count > 0)
        intake_answer_later(in, b);
    svi_stream_leave_open(in->control->stream, false);
    intake_send_held(in, b);
    if (b->done < b->count)
        return false;
    svi_latency_add(in->latency, svi_monotonic() - b->began, b->count);
    intake_clear(in, b);
    return true;
}

static void log_capacity(const struct svi_intake *in, const char *what, const char *why) {
    if (!in->log)
        return;
    fprintf(in->log, "state: %s%s\n", what, why);
    fflush(in->log);
}

/* What could not be written is reported, once when that begins and once when it is over for a while
 * (log_space_needed); where there are no replies it waits for room. */
static void check_space(struct svi_intake *in, const struct svi_batch *b) {
    in->held = b->full && !in->replies;
    in->retry = svi_monotonic() + RETRY_SECONDS;
    in->fits = !b->full && in->blocked && in->fits == 0 ? svi_monotonic() : b->full ? 0 : in->fits;
    if (!b->full || in->blocked)
        return;
    in->blocked = true;
    log_capacity(in, "not accepting samples: ", in->why.text);
    svi_stream_refuse(in->control->stream, in->why.code, in->why.text, NULL, 0, b->now);
}

/* Seconds until it is reported that all fits again; INFINITY: it is not to be. */
static double intake_fits_wait(const struct svi_intake *in) {
    return in->blocked && in->fits > 0 ? fmax(0, in->fits + SPACE_SECONDS - svi_monotonic()) : INFINITY;
}

/* At the edge small messages fit and larger ones do not: that is one story, and ends when all of them fit. */
static void log_space_needed(struct svi_intake *in) {
    if (intake_fits_wait(in) > 0)
        return;
    in->blocked = false;
    in->fits = 0;
    log_capacity(in, "accepting samples again", "");
}

static int piece_of(const struct svi_intake *in) {
    return svi_stream_has_threads(in->control->stream) ? PIECE_OF_KEYS : PIECE;
}

/* Is it time to write the second batch down? Too early, and it is small and the disk has to sync more often;
 * too late, and the stream waits for the disk: it is asked again after a piece only. Senders that wait for
 * replies get those to half of the first batch before. */
static bool is_time(const struct svi_intake *in, const struct svi_batch *a, const struct svi_batch *b) {
    const double left = (a->count - a->done - piece_of(in)) * in->each; /* when it is asked next */
    const bool last = left <= AHEAD * svi_write_ahead_sync_seconds(in->control->write_ahead);
    return b->count >= a->count || (last && (a->done == 0 || 2 * a->done >= a->count));
}

/* While a batch takes effect the next one is gathered, and the disk works on it. Ends in time, with nothing
 * begun. */
static svs_code settle_flow(struct svi_intake *in, size_t *bytes, svs_error *err) {
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
            *bytes += intake_take(in, b, now + spent);
        if (!begun && b->count > 0 && is_time(in, a, b)) {
            code = intake_write_ahead(in, b, svi_write_ahead_begin, err);
            begun = true;
        }
        if (code != SVS_OK || !settle_some(in, a, piece_of(in)))
            continue;
        in->each = 0.5 * (in->each + (svi_monotonic() - since) / count);
        if (b->count == 0)
            break;
        if (!begun)
            code = intake_write_ahead(in, b, svi_write_ahead_begin, err);
        if (code == SVS_OK)
            code = svi_write_ahead_end(w, err);
        check_space(in, b);
        in->first = b;
        in->second = a;
        begun = false;
        since = svi_monotonic();
    }
    return code;
}

/* The label of flat rows of JSON was found by its name. */
static void intake_log_label(struct svi_intake *in) {
    const char *label = in->control->json.label;
    if (in->label_reported || !label[0])
        return;
    in->label_reported = true;
    if (in->log)
        fprintf(in->log, "flat rows of JSON: label %s, by its name (--label says otherwise, '' is none)\n",
                label);
}

static svs_code intake_messages_turn(struct svi_intake *in, double now, bool *took, svs_error *err) {
    log_space_needed(in);
    if (in->held && in->retry > svi_monotonic())
        return SVS_OK;
    const double began = svi_monotonic();
    size_t bytes = in->held ? 0 : intake_take(in, in->first, now);
    *took = in->first->count > 0;
    if (!*took)
        return SVS_OK;
    in->first->now = now; /* also of what was held */
    SVI_TRY(intake_write_ahead(in, in->first, svi_write_ahead_commit, err));
    check_space(in, in->first);
    if (in->held)
        return SVS_OK;
    svs_code code = SVS_OK;
    const bool full = in->first->full; /* settle_flow clears the batch: declining is no measure of the cost */
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

svs_code svi_intake_turn(struct svi_intake *in, bool ready, double now, bool *took, svs_error *err) {
    *took = false;
    const svs_code code =
        in->ops->turn ? in->ops->turn(in, ready, now, err) : intake_messages_turn(in, now, took, err);
    intake_log_label(in);
    return code;
}

svs_code svi_intake_apply(struct svi_intake *in, const void *bytes, size_t size, const char *shown,
                          size_t shown_size, double now, svs_error *err) {
    struct svi_envelope env;
    if (in->control->write_ahead)
        SVI_TRY(svi_write_ahead_write(in->control->write_ahead, SVI_RECORD_FRAME, now, bytes, size, err));
    svi_envelope_read(&env, bytes, size);
    env.shown = shown;
    env.shown_size = shown_size;
    svi_stream_mark(in->control->stream, in->rows);
    svi_stream_apply(in->control->stream, &env, now, false, NULL);
    return SVS_OK;
}

double svi_intake_wait(const struct svi_intake *in) {
    const double own = in->own && in->ops->wait ? in->ops->wait(in) : INFINITY;
    const double again = in->held ? fmax(0, in->retry - svi_monotonic()) : INFINITY;
    return fmin(fmin(own, again), intake_fits_wait(in));
}

int svi_intake_stranded(const struct svi_intake *in) {
    return in->held ? in->first->count : 0;
}

/* ---- figures */

double svi_intake_batch_memory(const struct svi_settings *s) {
    return TURN_BYTES + (double)s->max_message + TURN_MESSAGES * OVERHEAD;
}

double svi_intake_memory(const struct svi_settings *s) {
    const struct svi_intake_ops *ops = intake_ops(s);
    const double each = (double)(ops->slot + sizeof(struct intake_message) + sizeof(uint8_t));
    if (!ops->take)
        return 0;
    return 2 * (svi_intake_batch_memory(s) + TURN_MESSAGES * each) +
           TURN_MESSAGES *
               (sizeof(struct svi_held_reply) + sizeof(struct svi_later_reply) + (double)OVERHEAD);
}

double svi_intake_waiting(const struct svi_intake *in, int64_t peers) {
    if (!in->own || !in->ops->take)
        return (double)in->control->json.text.capacity;
    const double each = (double)in->ops->queue(in->settings) * (double)(in->largest + QUEUED);
    const size_t converted = in->first->converted.capacity + in->second->converted.capacity;
    return (double)(peers > 1 ? peers : 1) * each + (double)(converted + in->control->json.text.capacity);
}

void svi_intake_figures(const struct svi_intake *in) {
    svi_stream_set_gauge(in->control->stream, "replies_lost", (double)in->replies_lost);
    svi_stream_set_gauge(in->control->stream, "declined", (double)in->declined);
    if (in->control->write_ahead)
        svi_write_ahead_figures(in->control->write_ahead);
}
