/* The messages of an intake, a turn at a time: taken, parsed, checked, written ahead, applied, answered. This
 * file does that for every intake; an intake supplies only the bytes, the sender and the way back.
 *
 * Each message is parsed once, when it is taken (svi_envelope_read; JSON is first converted to msgpack, in a
 * buffer of the batch). The verdict (may its sender send it, does it only ask) and all later steps use that
 * envelope. Nothing takes effect before it is written. One write serves a whole turn, which is bounded in
 * messages, bytes and time so that control requests are not delayed.
 *
 * If every commit is synced, two batches alternate (settle_flow): while the first takes effect, the second is
 * taken and synced. On a full disk, messages with replies are declined; others wait in the first batch
 * (`held`) until they fit. Rows are not batched: each is written and applied by itself (svi_intake_apply).
 * Read svi_intake_turn first, then settle_some and settle_flow. */
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

/* Bounds of one turn: control requests must be answered well within 100 ms. */
#define TURN_MESSAGES 512
#define TURN_BYTES    (1024 * 1024)
#define TURN_SECONDS  0.01
#define FIRST_COST    1e-7      /* seconds a byte until the first measurement */
#define OVERHEAD      256       /* bytes that a journal adds to a message */
#define QUEUED        128       /* bytes that a queue adds to a message */
#define PIECE         8         /* messages between two polls of the socket */
#define PIECE_OF_KEYS 128       /* likewise; threads of keys synchronise after each piece */
#define RETRY_SECONDS 0.25      /* between two attempts on a full disk */
#define SPACE_SECONDS 3.0       /* all writes must succeed this long before "disk full" is over */
#define AHEAD_BYTES   65536     /* expected scores of a message that does not wait for them */
#define REPLY_BYTES   (1 << 20) /* capacity that stays after a large reply */
#define AHEAD         1.25      /* a sync begins this many sync times before it is needed */

/* What is to be done with a message. */
enum verdict {
    APPLY = 0,
    ANSWER,       /* it only asks and changes nothing */
    FORBIDDEN,    /* its sender no longer has the role */
    WRONG_SOURCE, /* its sender may not use this src */
    OVER_QUOTA,   /* its sender owns as many sources as it may */
    NOT_ITS_OWN,  /* it ends the source of another key */
    UNNUMBERED,   /* no src and n, which exactly-once needs */
    UNREADABLE    /* invalid JSON: the envelope has the reason and no bytes */
};

struct intake_message {
    struct svi_envelope envelope;
    uint64_t owner; /* owner of the source that it may create; 0 = it creates none */
    size_t place;   /* offset in the batch's `converted`, if it arrived as JSON */
};

/* Messages that are written together. Private data of the intake for message i is in slot i. */
struct svi_batch {
    uint8_t *slots;
    struct intake_message *message;
    uint8_t *verdict;           /* on each */
    struct svi_bytes converted; /* JSON messages, as msgpack */
    int count, done;            /* messages, and how many of them are settled */
    size_t bytes;
    double now, began; /* arrival clock, monotonic */
    bool full;         /* the disk is full: they are not written */
};

/* A reply that waits until the events of its samples are published. Its bytes are held_bytes[at, at + size).
 */
struct svi_held_reply {
    int message; /* in its batch */
    size_t at, size;
    uint64_t after; /* sent when svi_stream_published reaches this */
    int later;      /* place of its receipt in `later`: it is made with the scores; -1: it has its bytes */
};

/* A message whose samples are being learned on other threads, which fill the receipt, or whose scores wait
 * for their novelty. */
struct svi_later_reply {
    int message; /* in its batch */
    struct svi_receipt receipt;
};

/* the table of intakes; creation and end */

#define X(constant, name, word, binds, replies, text) extern const struct svi_intake_ops svi_intake_##name;
SVI_INTAKES(X)
#undef X

static const struct svi_intake_ops *intake_ops(const struct svi_settings *s) {
#define X(constant, name, word, binds, replies, text) [constant] = &svi_intake_##name,
    static const struct svi_intake_ops *const all[] = {SVI_INTAKES(X)};
#undef X
    return all[svi_settings_intake(s).mode];
}

/* The envelope of a message points into its slot or into `converted`: both stay in place until the batch is
 * cleared. */
static void *intake_slot(const struct svi_intake *in, const struct svi_batch *b, int i) {
    return b->slots + (size_t)i * in->ops->slot;
}

/* All arrays have the size of a full turn from the start: nothing is allocated between a message and its
 * reply. */
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
    in->quota = svi_reply_quota_new();
    if (intake_has_batch(in->first) && intake_has_batch(in->second) && in->held_reply && in->later &&
        in->quota)
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
    svi_reply_quota_leave(&in->quota);
    for (int i = 0; i < SVI_SCORES_AHEAD; i++)
        svi_reply_scores_clear(&in->asked[i]);
    svi_bytes_clear(&in->held_bytes);
    svi_bytes_clear(&in->reply);
    svi_bytes_clear(&in->scored);
    svi_bytes_clear(&in->text);
}

/* ---- the verdict on a message */

/* Hash of the owner of a source: the authenticated user, or else the peer, which is a new one each time it
 * connects. Bit 0 shows which: 1 for a user (svi_owner_is_key). */
static uint64_t owner_of(const struct svi_intake *in, void *slot) {
    const struct svi_sender from = in->ops->sender(slot);
    const bool known = from.user[0];
    const uint64_t h =
        svi_fnv(SVI_FNV_SEED, known ? from.user : from.peer, known ? strlen(from.user) : from.peer_size);
    return known ? h | 1 : h & ~UINT64_C(1);
}

/* Where the owner of an existing source is stored, if it has none yet; else NULL. */
static uint64_t *missing_owner(const struct svi_intake *in, const struct svi_envelope *env) {
    uint64_t *kept = svi_entry_owner(svi_stream_entry(in->control->stream), env->src, env->src_length);
    return kept && *kept == 0 ? kept : NULL;
}

/* Would the message create a source? Messages queued before it may do so first; sources_to_come counts those.
 * A hello that gets here restores a forgotten source. */
static bool makes_source(const struct svi_intake *in, const struct svi_envelope *env) {
    return env->src_good && (env->n == 0 || env->hello) &&
           !svi_entry_owner(svi_stream_entry(in->control->stream), env->src, env->src_length);
}

/* Sources that queued messages of this owner may still create. Without them a single turn could exceed the
 * quota by as many sources as it has messages. */
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
    /* The cheap count of all sources comes first: counting those of one owner walks the table. */
    return svi_sources_count(sources) + coming >= quota &&
           svi_sources_owned(sources, owner, now, s->sources_idle) + coming >= quota;
}

/* For a message whose sender has the role: what would it do to the table of sources? */
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
        /* Owners are stored in checkpoints only. After a crash a replayed source has none, and the next
         * message of the source supplies it. */
        uint64_t *missing = svi_access_asks(in->access) ? missing_owner(in, env) : NULL;
        if (missing)
            *missing = owner_of(in, slot);
        return APPLY;
    }
    *owner = owner_of(in, slot);
    return is_over_quota(in, *owner, now) ? OVER_QUOTA : APPLY;
}

/* The verdict on a message. *owner: owner of the source that it may create; 0 = none. */
static enum verdict verdict_of(const struct svi_intake *in, void *slot, const struct svi_envelope *env,
                               double now, uint64_t *owner) {
    *owner = 0;
    if (svi_access_asks(in->access)) { /* only then: looking up the sender costs more than all the rest */
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
    [WRONG_SOURCE] =
        {SVS_NOT_ALLOWED,
         "this key may not use this src: admit it with `svmstream curve allow --role source:NAME`"},
    [OVER_QUOTA] = {SVS_LIMIT, "this key or connection has reached sources.quota: use fewer names, and end "
                               "the finished ones with bye"},
    [NOT_ITS_OWN] = {SVS_NOT_ALLOWED, "another key began this source: only that key may end it with bye"},
    [UNNUMBERED] = {SVS_MISSING_SOURCE,
                    "delivery exactly-once accepts numbered samples only: give src and n"},
};

static const svs_error *reason_of(const struct svi_envelope *env, enum verdict verdict) {
    return verdict == UNREADABLE ? &env->form : &reasons[verdict];
}

/* ---- taken and parsed */

/* The buffer of converted messages has moved: the envelopes that point into it are parsed again. */
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

/* Converts JSON into the message that a producer would have sent, and parses that. If it is invalid, the
 * envelope has no bytes and `form` states the reason. */
static void batch_read_json(struct svi_batch *b, struct svi_json_input *json, const void *text, size_t size) {
    struct svi_envelope *env = &b->message[b->count].envelope;
    const uintptr_t before = (uintptr_t)b->converted.data;
    const size_t at = b->converted.size;
    svs_error err;
    svs_code code = svi_json_message(json, text, size, &b->converted, &err);
    /* Envelopes point into the buffer; growing may have moved it. */
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

/* Adds queued messages to the batch, as many bytes as recent turns processed within TURN_SECONDS, and at
 * least one message. Returns the bytes added. */
static size_t intake_take(struct svi_intake *in, struct svi_batch *b, double now) {
    const double free_bytes = TURN_SECONDS / in->cost;
    const size_t before = b->bytes, limit = free_bytes < TURN_BYTES ? (size_t)free_bytes : TURN_BYTES;
    const void *bytes;
    size_t size;
    b->now = now;
    if (b->count == 0)
        b->began = svi_monotonic();
    while (b->count < TURN_MESSAGES &&
           (b->count == 0 || (b->bytes < limit && b->converted.size < TURN_BYTES)) &&
           in->ops->take(in, intake_slot(in, b, b->count), &bytes, &size)) {
        const int i = b->count;
        b->bytes += size;
        in->largest = size > in->largest ? size : in->largest;
        /* The verdict is reached before count is raised: sources_to_come must not count this message. */
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
    /* Refusals that the replay cannot derive from a message are recorded as such, so that counters agree
     * after a restart. Questions and messages of the wrong sender leave no trace in the state. */
    for (int i = 0; w && i < b->count && code == SVS_OK; i++) {
        const struct svi_envelope *env = &b->message[i].envelope;
        const svs_error *why = reason_of(env, (enum verdict)b->verdict[i]);
        if (b->verdict[i] == APPLY)
            code = svi_write_ahead_append(w, kind, b->now, env->bytes, env->size, &in->why);
        else if (b->verdict[i] == UNNUMBERED || b->verdict[i] == UNREADABLE)
            code = svi_write_ahead_append_refusal(w, why->code, why->text, b->now, &in->why);
    }
    /* All or nothing: a batch that cannot be collected completely is not written at all. */
    if (code != SVS_OK)
        svi_write_ahead_abort(w);
    else if (w)
        code = how(w, &in->why);
    b->full = code == SVS_DISK_FULL || code == SVS_NO_MEMORY;
    return code == SVS_OK || b->full ? SVS_OK : svi_fail(err, code, "%s", in->why.text);
}

/* ---- what becomes of each */

/* Sends the reply to message i in the format of the message: JSON to JSON, else msgpack. */
static void intake_send(struct svi_intake *in, const struct svi_batch *b, int i, const void *reply,
                        size_t size, svs_code code) {
    if (code == SVS_OK && b->message[i].envelope.shown)
        code = svi_json_reply(&in->text, &reply, &size);
    in->replies_lost += code != SVS_OK || !in->ops->reply(in, intake_slot(in, b, i), reply, size);
}

/* The reply to a message whose scores are complete. */
static void intake_send_later(struct svi_intake *in, const struct svi_batch *b,
                              const struct svi_later_reply *l) {
    const svs_code code =
        svi_router_reply(in->control, &b->message[l->message].envelope, &l->receipt, &in->scored);
    const struct svi_reply_scores *scores = l->receipt.scores;
    if (scores && scores->count > 0)
        in->score_bytes = fmax(in->score_bytes, (double)scores->maps.size / (double)scores->count);
    intake_send(in, b, l->message, in->scored.data, in->scored.size, code);
}

/* Sends the held replies whose events are published. A client that has its reply may rely on the events of
 * its samples being on their way; a reply therefore waits until they are. */
static void intake_send_held(struct svi_intake *in, const struct svi_batch *b) {
    const uint64_t published = svi_stream_published(in->control->stream);
    while (in->held_first < in->held_count && in->held_reply[in->held_first].after <= published) {
        const struct svi_held_reply *h = &in->held_reply[in->held_first++];
        if (h->later >= 0)
            intake_send_later(in, b, &in->later[h->later]);
        else
            intake_send(in, b, h->message, in->held_bytes.data + h->at, h->size, SVS_OK);
    }
    if (in->held_first < in->held_count)
        return;
    in->held_first = in->held_count = (int)(in->held_bytes.size = 0);
    in->asked_count = in->later_count > 0 ? in->asked_count : 0;
}

/* Replies leave in the order of the messages: held ones first. If all events of this message are out, its
 * reply follows at once; if they are still with the novelty thread, it is held. An error, or no memory to
 * hold it, forces the slow way: settle the stream, then send. */
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
    in->held_reply[in->held_count++] = (struct svi_held_reply){i, at, in->reply.size, taken, -1};
}

/* A message that was written but not applied for lack of memory would be applied by a restart. No reply is
 * sent for it: any answer could turn out wrong. */
static bool out_of_memory(const struct svi_intake *in) {
    return in->control->write_ahead && svi_stream_out_of_memory(in->control->stream);
}

/* The message has created its source: store the owner. */
static void intake_note_owner(const struct svi_intake *in, const struct intake_message *m) {
    uint64_t *missing = m->owner != 0 ? missing_owner(in, &m->envelope) : NULL;
    if (missing)
        *missing = m->owner;
}

/* Where the scores of a message go that need not be waited for: few enough, so that those of all messages
 * under way stay small. NULL: the stream has to settle after this message. */
static struct svi_reply_scores *intake_scores(struct svi_intake *in, const struct svi_envelope *env) {
    if (in->asked_count == SVI_SCORES_AHEAD || (double)env->left * fmax(in->score_bytes, 4096) > AHEAD_BYTES)
        return NULL;
    struct svi_reply_scores *scores = &in->asked[in->asked_count++];
    svi_reply_scores_begin(scores);
    return scores;
}

/* Applies a message that asked for its scores. Where these wait for their novelty, its reply is held, and the
 * next message is learned meanwhile. False: it is to be settled at once (another kind, too many under way, or
 * many scores). */
static bool intake_ask(struct svi_intake *in, const struct svi_batch *b, int i) {
    struct svi_envelope *env = &b->message[i].envelope;
    if (env->reply != SVI_REPLY_SCORE || env->hello || env->bye ||
        svi_stream_has_threads(in->control->stream))
        return false;
    struct svi_reply_scores *scores = intake_scores(in, env);
    if (!scores)
        return false;
    struct svi_later_reply *later = &in->later[in->asked_count - 1];
    later->message = i;
    svi_stream_ask(in->control->stream, scores);
    svi_stream_apply_later(in->control->stream, env, b->now, true, &later->receipt);
    svi_stream_ask(in->control->stream, NULL);
    intake_note_owner(in, &b->message[i]);
    if (out_of_memory(in))
        return true;
    in->held_reply[in->held_count++] = (struct svi_held_reply){
        i, in->held_bytes.size, 0, svi_stream_taken(in->control->stream), in->asked_count - 1};
    intake_send_held(in, b);
    return true;
}

/* Scores may make a reply of up to 64 MiB: that memory is not kept for replies of a hundred bytes. */
static void intake_tidy(struct svi_bytes *b) {
    if (b->capacity > REPLY_BYTES)
        svi_bytes_clear(b);
}

/* Applies or refuses one message and answers it. A message is declined, not refused, if the disk is full: it
 * may be sent again. Only refusals of this file are published here; access has reported its own, and a full
 * disk is reported once, by check_space. */
static void intake_settle(struct svi_intake *in, struct svi_batch *b, int i) {
    struct svi_envelope *env = &b->message[i].envelope;
    const enum verdict verdict = (enum verdict)b->verdict[i];
    const bool declined = verdict == APPLY && b->full;
    const svs_error *why = verdict > ANSWER ? reason_of(env, verdict) : declined ? &in->why : NULL;
    const bool reported = verdict == FORBIDDEN || verdict == WRONG_SOURCE; /* reported by access */
    if (verdict > ANSWER && !reported && !b->full) /* check_space reports a full disk */
        intake_refuse(in, env, why, b->now);
    in->declined += declined;
    if (!why && verdict == APPLY && intake_ask(in, b, i))
        return;
    /* Three outcomes: declined with a reason, answered without a change, or applied. */
    svs_code code = why                 ? svi_router_decline(in->control, env, why, &in->reply)
                    : verdict == ANSWER ? svi_router_answer(in->control, env, &in->reply)
                                        : svi_router_handle(in->control, env, b->now, &in->reply);
    if (!why)
        intake_note_owner(in, &b->message[i]);
    if (!out_of_memory(in))
        intake_answer(in, b, i, code);
    intake_tidy(&in->reply);
    intake_tidy(&in->text);
}

/* Applies one message of an intake without replies; a refusal becomes an event. */
static void intake_apply(struct svi_intake *in, const struct svi_batch *b, int i) {
    struct svi_envelope *env = &b->message[i].envelope;
    if (b->verdict[i] == APPLY)
        svi_stream_apply_later(in->control->stream, env, b->now, false, NULL);
    else if (b->verdict[i] == UNREADABLE)
        intake_refuse(in, env, &env->form, b->now);
}

/* Waits for the samples that other threads are learning, then answers their messages in order. */
static void intake_answer_later(struct svi_intake *in, struct svi_batch *b) {
    svi_stream_settle(in->control->stream);
    for (int k = 0; k < in->later_count && !out_of_memory(in); k++) {
        intake_note_owner(in, &b->message[in->later[k].message]);
        intake_send_later(in, b, &in->later[k]);
    }
    in->later_count = in->asked_count = 0;
}

/* With keys on several threads, samples are distributed first and answered together. False: the message is of
 * another kind (a greeting, a refusal, one with more scores than can be under way) and is settled here. */
static bool intake_hand_out(struct svi_intake *in, struct svi_batch *b, int i) {
    struct svi_envelope *env = &b->message[i].envelope;
    if (!svi_stream_has_threads(in->control->stream) || b->verdict[i] != APPLY || b->full || env->hello ||
        env->bye)
        return false;
    struct svi_reply_scores *scores = NULL;
    if (env->reply == SVI_REPLY_SCORE && !(scores = intake_scores(in, env)))
        return false;
    struct svi_later_reply *later = &in->later[in->later_count++];
    later->message = i;
    svi_stream_ask(in->control->stream, scores);
    svi_stream_apply_later(in->control->stream, env, b->now, true, &later->receipt);
    svi_stream_ask(in->control->stream, NULL);
    return true;
}

/* A sender that does not read its replies gets no scores. */
static void intake_withhold(const struct svi_intake *in, const struct svi_batch *b, int i) {
    struct svi_envelope *env = &b->message[i].envelope;
    if (env->reply == SVI_REPLY_SCORE && !in->ops->admits(in, intake_slot(in, b, i)))
        env->reply = SVI_REPLY_WITHHELD;
}

/* Settles up to `limit` more messages of the batch; true: all of it is done.
 *
 * The stream stays open in between, so that novelty can be scored on its thread while the next message is
 * learned. A message that cannot be distributed first waits for those that were: effects stay in order. */
static bool settle_some(struct svi_intake *in, struct svi_batch *b, int limit) {
    svi_stream_leave_open(in->control->stream, true);
    for (; b->done < b->count && limit > 0 && !out_of_memory(in); b->done++, limit--) {
        if (in->replies)
            intake_withhold(in, b, b->done);
        /* Distributed messages are answered together, later; this loop continues. */
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
    /* The stream is closed again, so every event is out and no held reply is left: the slots can be released.
     */
    intake_send_held(in, b);
    if (b->done < b->count)
        return false;
    /* The whole batch is settled: its messages waited since it was begun. */
    const double seconds = svi_monotonic() - b->began;
    svi_latency_add(in->latency, seconds, b->count);
    svi_latency_bucket(in->buckets, seconds, b->count);
    intake_clear(in, b);
    return true;
}

/* One line of the log about the disk. */
static void log_disk_state(const struct svi_intake *in, const char *what, const char *why) {
    if (!in->log)
        return;
    fprintf(in->log, "state: %s%s\n", what, why);
    fflush(in->log);
}

/* Reports a full disk once when it begins; log_space_again reports the end. If there are no replies the
 * batch is held, and the intake takes nothing until it fits: senders then block on their queues. */
static void check_space(struct svi_intake *in, const struct svi_batch *b) {
    in->held = b->full && !in->replies;
    in->retry = svi_monotonic() + RETRY_SECONDS;
    in->fits = !b->full && in->blocked && in->fits == 0 ? svi_monotonic() : b->full ? 0 : in->fits;
    if (!b->full || in->blocked)
        return;
    in->blocked = true;
    log_disk_state(in, "not accepting samples: ", in->why.text);
    svi_stream_refuse(in->control->stream, in->why.code, in->why.text, NULL, 0, b->now);
}

/* Seconds until the end of "disk full" can be reported; INFINITY: nothing to report. */
static double space_report_wait(const struct svi_intake *in) {
    return in->blocked && in->fits > 0 ? fmax(0, in->fits + SPACE_SECONDS - svi_monotonic()) : INFINITY;
}

/* Close to a full disk small messages fit and larger ones do not. That is one episode, which ends when all
 * writes have succeeded for SPACE_SECONDS. */
static void log_space_again(struct svi_intake *in) {
    if (space_report_wait(in) > 0)
        return;
    in->blocked = false;
    in->fits = 0;
    log_disk_state(in, "accepting samples again", "");
}

/* Threads of keys synchronise after each piece, so pieces are larger with them. */
static int piece_of(const struct svi_intake *in) {
    return svi_stream_has_threads(in->control->stream) ? PIECE_OF_KEYS : PIECE;
}

/* Is it time to write the second batch? If too early, the batch is small and the disk must sync more often.
 * If too late, the stream waits for the disk, since the question is asked again only after the next piece. If
 * senders wait for replies, half of the first batch is answered before: they can then send more for the
 * second. */
static bool is_time(const struct svi_intake *in, const struct svi_batch *a, const struct svi_batch *b) {
    /* seconds of work left when this is asked next */
    const double left = (a->count - a->done - piece_of(in)) * in->each;
    const bool last = left <= AHEAD * svi_write_ahead_sync_seconds(in->control->write_ahead);
    return b->count >= a->count || (last && (a->done == 0 || 2 * a->done >= a->count));
}

/* Pipeline for synced commits: while the first batch takes effect, the second is gathered, written, and
 * synced in the background. Invariants: nothing of the second batch takes effect before its sync has ended;
 * once its sync has begun, nothing is added to it. After TURN_SECONDS no more is gathered, so the loop ends;
 * it returns with both batches empty unless the disk is full, memory ran out or an error occurred. */
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
        /* A full disk is not fed further, and a batch whose sync has begun is closed. */
        if (!begun && !a->full && spent < TURN_SECONDS)
            *bytes += intake_take(in, b, now + spent);
        if (!begun && b->count > 0 && is_time(in, a, b)) {
            code = intake_write_ahead(in, b, svi_write_ahead_begin, err);
            begun = true;
        }
        if (code != SVS_OK || !settle_some(in, a, piece_of(in)))
            continue;
        /* Running mean of the cost of a message; is_time predicts the remaining work with it. */
        in->each = 0.5 * (in->each + (svi_monotonic() - since) / count);
        if (b->count == 0)
            break;
        /* The first batch was done before is_time held: the sync starts now, and nothing overlaps it. */
        if (!begun)
            code = intake_write_ahead(in, b, svi_write_ahead_begin, err);
        if (code == SVS_OK)
            code = svi_write_ahead_end(w, err);
        /* The second batch is durable now (or full) and becomes the first. */
        check_space(in, b);
        in->first = b;
        in->second = a;
        begun = false;
        since = svi_monotonic();
    }
    return code;
}

/* Logs once which column of flat JSON rows was taken for the label, since it was found by its name, and
 * which one has the name of an identifier and is a feature. */
static void intake_log_columns(struct svi_intake *in) {
    const struct svi_json_input *json = &in->control->json;
    if (in->columns_reported || !json->looked)
        return;
    in->columns_reported = true;
    if (in->log && json->label[0])
        fprintf(in->log, "JSON rows: label %s, by its name (--label sets another one, '' no label)\n",
                json->label);
    if (in->log && json->id[0])
        fprintf(in->log,
                "JSON rows: %s is a feature and identifies no row; set --id %s if labels follow later, "
                "--ignore %s if not\n",
                json->id, json->id, json->id);
}

/* One turn of an intake of messages: take, write, settle. A held batch is written again before anything new
 * is taken, so that the order of messages never changes. */
static svs_code intake_messages_turn(struct svi_intake *in, double now, bool *took, svs_error *err) {
    log_space_again(in);
    if (in->held && in->retry > svi_monotonic())
        return SVS_OK;
    const double began = svi_monotonic();
    size_t bytes = in->held ? 0 : intake_take(in, in->first, now);
    *took = in->first->count > 0;
    if (!*took)
        return SVS_OK;
    in->first->now = now; /* also for a held batch: it arrives, for the stream, when it is written */
    SVI_TRY(intake_write_ahead(in, in->first, svi_write_ahead_commit, err));
    check_space(in, in->first);
    if (in->held)
        return SVS_OK;
    svs_code code = SVS_OK;
    /* read now, as settle_flow clears it: declined messages do not show the cost */
    const bool full = in->first->full;
    if (in->control->write_ahead && svi_write_ahead_syncs(in->control->write_ahead))
        code = settle_flow(in, &bytes, err);
    else
        settle_some(in, in->first, TURN_MESSAGES);
    /* The journal has a message that was not applied. The process ends with the reason; a restart applies it.
     */
    if (code == SVS_OK && out_of_memory(in) &&
        (code = svi_stream_lost_key(in->control->stream, err)) == SVS_OK)
        code = svi_fail(err, SVS_NO_MEMORY,
                        "out of memory for a sample that is already in the journal: restart the process, "
                        "which then applies it");
    if (bytes > 0 && !full)
        in->cost = 0.5 * (in->cost + (svi_monotonic() - began) / (double)bytes);
    return code;
}

svs_code svi_intake_turn(struct svi_intake *in, bool ready, double now, bool *took, svs_error *err) {
    *took = false;
    const svs_code code =
        in->ops->turn ? in->ops->turn(in, ready, now, err) : intake_messages_turn(in, now, took, err);
    intake_log_columns(in);
    return code;
}

/* The order of one row: written, parsed, applied. The mark lets its score event find the row. */
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
    return fmin(fmin(own, again), space_report_wait(in));
}

int svi_intake_stranded(const struct svi_intake *in) {
    return in->held ? in->first->count : 0;
}

/* memory and gauges */

double svi_intake_batch_memory(const struct svi_settings *s) {
    return TURN_BYTES + (double)s->max_message + TURN_MESSAGES * OVERHEAD;
}

/* Two full batches, and the arrays of held and later replies. */
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
