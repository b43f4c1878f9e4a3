/* How an outbox processes the replies of a process.
 *
 * A reply is parsed into a struct svi_answer, which svs_outbox_reply dispatches: the answer to a hello
 * (take_hello), an acknowledgement (take_ack), a final refusal (take_refusal), or a temporary problem
 * (take_trouble). All of them move two marks: `taken`, below which samples are settled, and `first`, below
 * which they are released (outbox_answer_release decides when).
 *
 * Invariant: a number on the wire names only one sample. Numbers change only when a hello is answered
 * (outbox_answer_adopt), and only if no message with an old number can still be in flight (is_trusted). A
 * message without a reply is sent again, however often its connection breaks. Read from the end of the file
 * upwards. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "client/outbox_internal.h"
#include "wire/decode.h"
#include "wire/fields.h"

#define MIN_MESSAGE_BYTES 64 /* a smaller reported limit is ignored as implausible */

/* settling samples */

static void outbox_answer_notify(svs_outbox *b, const svs_outbox_event *e) {
    if (b->o.notify)
        b->o.notify(b->o.user, e);
}

/* Number of stubs among the stored samples from .. to - 1. */
static int64_t outbox_answer_stubs(const svs_outbox *b, int64_t from, int64_t to) {
    int64_t found = 0;
    for (int64_t i = from; i < to; i++)
        found += svi_outbox_store_at(&b->store, i)->stub;
    return found;
}

/* Restores taken <= sent and first + taken <= reached after `taken` has moved. Any progress also ends single
 * sending and shortens the next pause. */
static void outbox_answer_progress(svs_outbox *b) {
    b->pause = b->o.pause;
    b->singly = false;
    b->reached = b->reached > b->first + b->taken ? b->reached : b->first + b->taken;
    b->sent = b->sent > b->taken ? b->sent : b->taken;
    if (b->sent == b->taken)
        b->f.under_way = 0;
}

/* Marks are relative to `first`: all of them move down with it. */
static void outbox_answer_pop(svs_outbox *b, int64_t count) {
    svi_outbox_store_pop(&b->store, count);
    b->first += count;
    b->sent = b->sent > count ? b->sent - count : 0;
    b->taken = b->taken > count ? b->taken - count : 0;
    outbox_answer_progress(b);
}

/* Releases settled samples; if durability is requested, only those on the process's disk. With replay the
 * producer can provide them again, so they need not be kept. */
static void outbox_answer_release(svs_outbox *b) {
    const bool durable =
        b->o.release == SVS_OUTBOX_DURABLE || (b->o.release == SVS_OUTBOX_SAFEST && b->keeps);
    const int64_t count = durable && !b->o.replay ? svi_outbox_on_disk(b) - b->first : b->taken;
    int64_t refused = 0;
    if (count <= 0)
        return;
    for (int64_t i = 0; i < count; i++)
        refused += svi_outbox_store_at(&b->store, i)->refused || svi_outbox_store_at(&b->store, i)->stub;
    const svs_outbox_event e = {
        SVS_OUTBOX_ACKED, b->first, b->first + count - 1, count - refused, "", "", 0, ""};
    /* The event comes last: a callback that asks for figures must see the state after it. */
    outbox_answer_pop(b, count);
    b->f.acked += count - refused;
    b->f.refused += refused;
    if (count > refused)
        outbox_answer_notify(b, &e);
}

/* The process has settled all samples below `at` and refused `refused` of them for the reason in `a`. Which
 * ones is not known: the last ones are marked. A stub was reported when it was given up, so it is not counted
 * here. */
static void outbox_answer_settle(svs_outbox *b, int64_t at, int64_t refused, const struct svi_answer *a) {
    const int64_t from = b->taken, to = at - b->first, whole = to - from - outbox_answer_stubs(b, from, to);
    char key[SVS_KEY_MAX + 1];
    svs_outbox_event e = {SVS_OUTBOX_REFUSED, b->first + from, at - 1, 0, a->code, a->reason, 0, ""};
    e.count = refused < whole ? refused : whole;
    /* Marks backwards from the end, skipping stubs. */
    for (int64_t i = to - 1, left = e.count; left > 0; i--) {
        struct svi_kept *k = svi_outbox_store_at(&b->store, i);
        k->refused = !k->stub;
        left -= k->refused;
    }
    b->taken = to;
    outbox_answer_progress(b);
    const struct svi_kept *last = svi_outbox_store_at(&b->store, to - 1);
    const uint8_t *end = b->store.block + last->at + last->size;
    svi_outbox_set_place(b, last->cursor > 0 ? end - last->cursor + SVI_OUTBOX_AT : NULL, end);
    /* Repeated refusals, of samples sent again after a reconnection, are not reported twice. */
    if (e.count > 0 && at > b->reported) {
        b->reported = at;
        e.key = to == from + 1 ? svi_outbox_key(b, from, key) : "";
        outbox_answer_notify(b, &e);
    }
    outbox_answer_release(b);
}

/* Takes back `taken` and the refusals after it: the process has lost those results. */
static void outbox_answer_take_back(svs_outbox *b, int64_t taken) {
    for (int64_t i = taken; i < b->taken; i++)
        svi_outbox_store_at(&b->store, i)->refused = false;
    b->taken = taken;
}

/* Notes what is on disk, in our numbers; `known`: what was known before, since a late reply must not take it
 * back. */
static void note_disk(svs_outbox *b, int64_t durable, int64_t known) {
    const int64_t before = b->f.durable, at = durable + b->shift + 1;
    b->f.durable = !b->keeps ? -1 : at > known ? at : known;
    if (b->f.durable > before)
        b->ask_again = b->o.pause;
}

/* Hands over the scores of a message that ends before sample `at`, by our numbers. Duplicates, refusals and
 * commands have none. A message of duplicates alone does not end there, and has no score either. */
static void outbox_answer_scores(const svs_outbox *b, const struct svi_answer *a, int64_t at) {
    struct svi_item array, map, key;
    const uint8_t *next = svi_item_read(a->scores, &array);
    /* What is no reply of ours may have any value here. */
    if (array.type != SVI_ARRAY || array.length > at)
        return;
    for (int64_t i = at - array.length; i < at; i++) {
        const uint8_t *map_at = next, *first = svi_item_read(map_at, &map);
        svi_walk(&next, a->end, SVI_DEPTH_MAX);
        if (map.type != SVI_MAP || map.length == 0)
            continue;
        svi_item_read(first, &key);
        if (svi_item_is(&key, "id"))
            b->o.score(b->o.user, i, map_at, (size_t)(next - map_at));
    }
}

/* {ok, n}: all samples up to n are settled; `refused` of the last message were refused. */
static void take_ack(svs_outbox *b, const struct svi_answer *a) {
    const int64_t at = a->n + b->shift + 1, from = b->first + b->taken, applied = a->applied + b->shift + 1;
    if (at > b->reached) {
        if (b->phase == SVI_LIVE)
            /* we never sent these: greet to find out */
            svi_outbox_greet(b);
        return;
    }
    if (b->o.score && a->scores)
        outbox_answer_scores(b, a, at);
    if (a->credit >= 0)
        b->f.credit = a->credit;
    /* A number of an earlier numbering may be below 0 after the shift. */
    if (a->applied >= 0)
        b->f.applied = applied > 0 ? applied : 0;
    b->keeps = b->keeps || a->durable >= 0;
    note_disk(b, a->durable, b->f.durable > 0 ? b->f.durable : 0);
    /* Stubs are refused by design; the rest of `refused` are real. */
    if (at > from) {
        int64_t others = a->refused - outbox_answer_stubs(b, b->taken, at - b->first);
        struct svi_answer some = *a;
        if (!some.reason[0])
            strcpy(some.reason, "some samples of a batch were refused; the error topic names them");
        outbox_answer_settle(b, at, others > 0 ? others : 0, &some);
    } else {
        b->f.duplicates += b->phase == SVI_LIVE;
        outbox_answer_release(b);
    }
}

/* {error, n, next, final}: the message n .. next - 1 was refused and its numbers are used up. The samples
 * before it were accepted, since the process takes them in order. */
static void take_refusal(svs_outbox *b, const struct svi_answer *a) {
    const int64_t at = a->n + b->shift;
    int64_t end = a->next > a->n ? a->next + b->shift : at + 1;
    /* A late reply: the message is settled already, or was never sent. */
    if (at < b->first + b->taken || at >= b->reached)
        return;
    end = end < b->reached ? end : b->reached;
    if (at > b->first + b->taken)
        outbox_answer_settle(b, at, 0, a);
    outbox_answer_settle(b, end, end - at, a);
}

static void outbox_answer_later(svs_outbox *b, const char *code, const char *reason, double now) {
    /* The oldest unsettled sample stands for all that wait. */
    const int64_t at = b->first + b->taken;
    double wait = svi_outbox_pause(b, now);
    outbox_answer_notify(b, &(svs_outbox_event){SVS_OUTBOX_LATER, at, at, 0, code, reason, wait, ""});
}

/* Was a message unreadable for the process? Its reply has no number then; replies come in order, so it
 * concerns the oldest one in flight. */
static bool is_unreadable(const svs_outbox *b, const struct svi_answer *a) {
    static const svs_code codes[] = {SVS_EMPTY,    SVS_NOT_MSGPACK, SVS_TRUNCATED, SVS_TRAILING,
                                     SVS_TOO_DEEP, SVS_TOO_LARGE,   SVS_WRONG_TYPE};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(a->code, svs_code_name(codes[i])) == 0)
            return a->n < 0 && a->final < 0 && b->sent > b->taken;
    return false;
}

/* Handles a reply that is neither success nor a final refusal. */
static void take_trouble(svs_outbox *b, const struct svi_answer *a, double now) {
    /* Also the hello itself can be refused for now, for instance by a full disk. */
    if (b->phase == SVI_GREETING && a->n < 0) {
        outbox_answer_later(b, a->code, a->reason, now);
    } else if (b->phase != SVI_LIVE) {
        return;
    } else if (strcmp(a->code, "gap") == 0 || strcmp(a->code, "source_forgotten") == 0) {
        b->f.gaps += a->code[0] == 'g';
        /* the answer to hello distinguishes a process that forgot us from another process */
        svi_outbox_greet(b);
    } else if (is_unreadable(b, a)) {
        if (b->o.batch == 1 || b->singly)
            svi_outbox_give_up(b, b->taken, a->code, a->reason);
        b->singly = b->o.batch > 1 && !b->singly; /* one sample of the batch is unreadable, or the batch as a
                                                     whole: single sending finds out */
        svi_outbox_greet(b);
    } else {
        outbox_answer_later(b, a->code, a->reason, now);
    }
}

/* ---- hello */

/* The process wants a sample that is not stored, or has another numbering. Returns how many acknowledged
 * samples it has lost. Without replay what is lost stays lost: the oldest stored sample simply gets the
 * number `next`. */
static int64_t outbox_answer_adopt(svs_outbox *b, int64_t next) {
    const int64_t at = next + b->shift, first = b->first;
    int64_t lowest = at > 0 ? at : 0;
    /* Nothing that was settled under the old position can be relied on. */
    outbox_answer_take_back(b, 0);
    if (b->o.replay) { /* the producer provides the samples from `next` on: drop the stored ones before it */
        const int64_t count = at > first && at - first < b->store.count ? at - first : b->store.count;
        b->f.dropped += count;
        outbox_answer_pop(b, count);
        b->first = at;
    } else {
        b->shift = first - next;
    }
    /* Under the new numbering nothing has been sent yet. */
    b->reached = b->first;
    return lowest < first ? first - lowest : 0;
}

/* Reports samples that the process lost although it had acknowledged them. `first`: the oldest stored sample.
 */
static void report_loss(svs_outbox *b, bool other, int64_t first, int64_t count) {
    static const char *const why[] = {
        "a power cut lost them before they were on the process's disk: set delivery durable there to "
        "acknowledge only after that",
        "the process was restarted without a kept state: set state.dir there to keep one"};
    outbox_answer_notify(b, &(svs_outbox_event){SVS_OUTBOX_RESTARTED, first - count, first - 1, count,
                                                count == 0 ? ""
                                                : other    ? "no_state"
                                                           : "power_cut",
                                                count ? why[other] : "", 0, ""});
}

/* The trusted answer to a hello: resume from the process's position `next`. Four cases, in this order: the
 * first contact without replay (its number defines `shift`), the first with replay (its number defines
 * `first`), a position among the stored samples (settle or take back), and one outside of them (adopt). */
static void outbox_answer_resume(svs_outbox *b, const struct svi_answer *a, double now) {
    /* A new epoch means another state: of another process, or of one that kept nothing. */
    const bool other = b->met && a->epoch != b->f.epoch;
    const int64_t first = b->first, from = first + b->taken, at = a->next + b->shift;
    int64_t forgotten = 0;
    char reason[200];
    if (!b->met && !b->o.replay)
        b->shift = -a->next;
    else if (!b->met)
        b->first = b->reached = at;
    else if (at > from && at <= b->reached) /* stored and sent before, or next in line; likewise below */
        outbox_answer_settle(b, at, 0, a);
    else if (at >= first && at <= b->reached)
        /* Nothing is lost: these samples are still stored, and are sent again. */
        outbox_answer_take_back(b, at - first);
    else {
        snprintf(reason, sizeof reason,
                 "the process has samples from %s that this producer did not send: check that no other "
                 "producer uses this name",
                 b->src);
        if (at > b->reached && !b->o.replay)
            outbox_answer_notify(
                b, &(svs_outbox_event){SVS_OUTBOX_LATER, from, from, 0, "missing_source", reason, 0, ""});
        forgotten = outbox_answer_adopt(b, a->next);
    }
    /* Another process may have another limit, or report none. */
    if (a->max_message >= MIN_MESSAGE_BYTES || other)
        b->message_max = a->max_message >= MIN_MESSAGE_BYTES ? a->max_message : 0;
    /* What was in flight is sent again: its replies are lost or belong to an earlier connection. */
    b->sent = b->taken;
    b->f.under_way = 0;
    svi_outbox_set_place(b, a->at, a->end); /* the process wants sample first + taken */
    b->met = true;
    b->f.epoch = a->epoch;
    b->run = a->run;
    b->f.restarts += other;
    b->f.forgotten += forgotten;
    b->f.lost += b->o.replay ? 0 : forgotten;
    b->phase = SVI_LIVE;
    b->greeted = -1;
    b->last_reply = now;
    /* The disk before this release, which depends on it; the one in outbox_answer_settle went by the former
     * mark. */
    note_disk(b, a->durable, 0);
    outbox_answer_release(b);
    if (other || forgotten > 0)
        report_loss(b, other, first, forgotten);
}

/* Did a process of the same run forget this source? It still has the samples that it acknowledged, so the
 * next hello states our position instead of starting over. */
static bool is_forgotten(const svs_outbox *b, const struct svi_answer *a) {
    return b->met && a->next == 0 && a->run != 0 && a->run == b->run && a->epoch == b->f.epoch &&
           b->first + b->taken > b->shift;
}

/* Does the process keep its state? Its delivery level decides; if it reports none, its `durable` does. */
static bool keeps_its_state(const svs_outbox *b, const struct svi_answer *a) {
    static const char *const levels[] = {"at-least-once", "durable", "exactly-once"};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (strcmp(a->delivery, levels[i]) == 0)
            return true;
    return !a->delivery[0] && (a->durable >= 0 || (b->keeps && a->epoch == b->f.epoch));
}

/* May the answer be trusted for renumbering? No message with an old number may still be in flight, since it
 * could be taken for another sample. So this must be the answer to the last hello. If several hellos are
 * unanswered, as many answers must agree, because an earlier one may be late. At the very first contact,
 * messages from an earlier life of this producer may still be queued in the process: at least two answers
 * must agree. */
static bool is_trusted(svs_outbox *b, const struct svi_answer *a) {
    const int64_t at = a->next + b->shift;
    if (b->o.replay || (b->met && at >= b->first && at <= b->reached))
        return true; /* the numbering does not change */
    if (b->ask)
        return false; /* another hello is due: this answers an earlier one */
    if (b->greeted == a->next && b->greeted_epoch == a->epoch)
        return --b->doubts <= 0;
    /* A different answer starts the count of agreeing ones again. */
    b->greeted = a->next;
    b->greeted_epoch = a->epoch;
    b->doubts = b->hellos > 0 || b->met ? b->hellos : 1;
    return b->doubts == 0;
}

static void take_hello(svs_outbox *b, const struct svi_answer *a, double now) {
    const bool live = b->phase == SVI_LIVE, returned = b->returns && a->next > 0;
    if (a->credit >= 0)
        b->f.credit = a->credit;
    /* Counted even if the answer is ignored below: is_trusted depends on the number in flight. */
    b->hellos -= b->hellos > 0;
    if (b->phase == SVI_LIVE && a->epoch != b->f.epoch)
        svi_outbox_greet(b); /* a late answer from a process that is not the present one */
    if (b->phase != SVI_GREETING || live)
        return;
    /* Decided by every greeting, since a restarted process may run with other settings. */
    b->keeps = keeps_its_state(b, a);
    if (b->o.release == SVS_OUTBOX_DURABLE && !b->keeps)
        outbox_answer_later(b, "not_durable",
                            "the process keeps no state: start it with --state.dir, and with --delivery "
                            "durable against power cuts",
                            now);
    else if ((b->returns = is_forgotten(b, a)) || !is_trusted(b, a))
        b->ask = true;
    else {
        b->f.returned += returned;
        outbox_answer_resume(b, a, now);
    }
}

svs_code svs_outbox_reply(svs_outbox *b, const void *bytes, size_t length, double now, svs_error *err) {
    struct svi_answer a;
    svs_code code = svi_answer_read(&a, bytes, length, err);
    if (code != SVS_OK || b->o.release == SVS_OUTBOX_SENT)
        return code;
    /* Only the answer to a hello has `next` without `n`. */
    const bool hello = a.ok && a.n < 0 && a.next >= 0;
    if (b->leaving >= SVI_SENT_BYE) { /* any other reply is late */
        b->leaving = hello || a.n >= 0 ? b->leaving : SVI_LEFT;
        return SVS_OK;
    }
    /* Each reply but the one to hello settles one message in flight. */
    if (b->phase == SVI_LIVE && !hello) {
        b->last_reply = now;
        b->f.under_way -= b->f.under_way > 0;
    }
    if (hello)
        take_hello(b, &a, now);
    else if (a.ok && a.n >= 0)
        take_ack(b, &a);
    else if (!a.ok && a.final > 0 && a.n >= 0)
        take_refusal(b, &a);
    else if (!a.ok)
        take_trouble(b, &a, now);
    return SVS_OK;
}
