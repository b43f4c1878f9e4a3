/* What an outbox makes of replies. */
#include <stdio.h>
#include <string.h>

#include "wire/outbox_state.h"

static void tell(svs_outbox *b, const svs_outbox_event *e) {
    if (b->o.tell)
        b->o.tell(b->o.user, e);
}

/* Of the kept samples from .. to - 1. */
static int64_t stubs(const svs_outbox *b, int64_t from, int64_t to) {
    int64_t found = 0;
    for (int64_t i = from; i < to; i++)
        found += svi_store_at(&b->store, i)->stub;
    return found;
}

static void progress(svs_outbox *b) {
    b->pause = b->o.pause;
    b->fruitless = 0;
    b->reached = b->reached > b->first + b->taken ? b->reached : b->first + b->taken;
    b->sent = b->sent > b->taken ? b->sent : b->taken;
    if (b->sent == b->taken)
        b->f.under_way = 0;
}

static void pop(svs_outbox *b, int64_t count) {
    svi_store_pop(&b->store, count);
    b->first += count;
    b->sent = b->sent > count ? b->sent - count : 0;
    b->taken = b->taken > count ? b->taken - count : 0;
    progress(b);
}

static bool waits_for_disk(const svs_outbox *b) {
    return !b->o.replay &&
           (b->o.release == SVS_OUTBOX_DURABLE || (b->o.release == SVS_OUTBOX_SAFEST && b->keeps));
}

/* Lets go of what is answered for, and on disk where that is asked for. */
static void release(svs_outbox *b) {
    const int64_t count = waits_for_disk(b) ? svi_outbox_on_disk(b) - b->first : b->taken;
    int64_t refused = 0;
    if (count <= 0)
        return;
    for (int64_t i = 0; i < count; i++)
        refused += svi_store_at(&b->store, i)->refused || svi_store_at(&b->store, i)->stub;
    const svs_outbox_event e = {SVS_OUTBOX_ACKED, b->first, b->first + count - 1, count - refused, "", "", 0};
    pop(b, count);
    b->f.acked += count - refused;
    b->f.refused += refused;
    if (count > refused)
        tell(b, &e);
}

/* The process has answered for all samples below `at`, and refused `refused` of them for the reason in `a`:
 * which ones is not known, the last ones are taken for them. A stub was told when the sample was given up. */
static void settle(svs_outbox *b, int64_t at, int64_t refused, const struct svi_answer *a) {
    const int64_t from = b->taken, to = at - b->first, whole = to - from - stubs(b, from, to);
    svs_outbox_event e = {SVS_OUTBOX_REFUSED, b->first + from, at - 1, 0, a->code, a->reason, 0};
    e.count = refused < whole ? refused : whole;
    for (int64_t i = to - 1, left = e.count; left > 0; i--) {
        struct svi_kept *k = svi_store_at(&b->store, i);
        k->refused = !k->stub;
        left -= k->refused;
    }
    b->taken = to;
    progress(b);
    if (e.count > 0 && at > b->told) {
        b->told = at;
        tell(b, &e);
    }
    release(b);
}

/* The process has lost its answers for all but the first `taken` kept samples. */
static void take_back(svs_outbox *b, int64_t taken) {
    for (int64_t i = taken; i < b->taken; i++)
        svi_store_at(&b->store, i)->refused = false;
    b->taken = taken;
}

/* What is on disk, in our numbers; `known` was true before. */
static void note_disk(svs_outbox *b, int64_t durable, int64_t known) {
    const int64_t before = b->f.durable, at = durable + b->shift + 1;
    b->f.durable = !b->keeps ? -1 : at > known ? at : known;
    if (b->f.durable > before)
        b->ask_again = b->o.pause;
}

/* {ok, n}: all up to n are taken, unless `refused` says that some of the last message's are not. */
static void take_ack(svs_outbox *b, const struct svi_answer *a) {
    const int64_t at = a->n + b->shift + 1, from = b->first + b->taken, applied = a->applied + b->shift + 1;
    if (at > b->reached) {
        if (b->phase == SVI_LIVE)
            svi_outbox_greet(b); /* it cannot have these from here */
        return;
    }
    if (a->credit >= 0)
        b->f.credit = a->credit;
    if (a->applied >= 0)
        b->f.applied = applied > 0 ? applied : 0;
    b->keeps = b->keeps || a->durable >= 0;
    note_disk(b, a->durable, b->f.durable > 0 ? b->f.durable : 0);
    if (at > from) {
        int64_t others = a->refused - stubs(b, b->taken, at - b->first);
        struct svi_answer some = *a;
        if (!some.reason[0])
            strcpy(some.reason, "some samples of a batch were refused; the error topic says which");
        settle(b, at, others > 0 ? others : 0, &some);
    } else {
        b->f.duplicates += b->phase == SVI_LIVE;
        release(b);
    }
}

/* {error, n, next, final}: the message n .. next - 1 is refused and its numbers are used up. */
static void take_refusal(svs_outbox *b, const struct svi_answer *a) {
    const int64_t at = a->n + b->shift;
    int64_t end = a->next > a->n ? a->next + b->shift : at + 1;
    if (at < b->first + b->taken || at >= b->reached)
        return;
    end = end < b->reached ? end : b->reached;
    if (at > b->first + b->taken)
        settle(b, at, 0, a);
    settle(b, end, end - at, a);
}

/* Nothing is wrong with the sample as far as it is known here, and yet it cannot be got through: its number
 * is used up by a sample without features, which the process refuses for good. */
static void give_up(svs_outbox *b, const char *code, const char *reason) {
    struct svi_kept *k = svi_store_at(&b->store, b->taken);
    const int64_t at = b->first + b->taken;
    if (!k->stub)
        tell(b, &(svs_outbox_event){SVS_OUTBOX_REFUSED, at, at, 1, code, reason, 0});
    k->stub = true;
    b->fruitless = 0;
}

static void later(svs_outbox *b, const char *code, const char *reason, double now) {
    const int64_t at = b->first + b->taken;
    double wait = svi_outbox_pause(b, now);
    tell(b, &(svs_outbox_event){SVS_OUTBOX_LATER, at, at, 0, code, reason, wait});
}

/* A message that the process cannot read: its reply tells no number. Replies come in order, so it is the
 * oldest one. */
static bool is_unreadable(const svs_outbox *b, const struct svi_answer *a) {
    static const svs_code codes[] = {SVS_EMPTY,    SVS_NOT_MSGPACK, SVS_TRUNCATED, SVS_TRAILING,
                                     SVS_TOO_DEEP, SVS_TOO_LARGE,   SVS_WRONG_TYPE};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(a->code, svs_code_name(codes[i])) == 0)
            return a->n < 0 && a->final < 0 && b->sent > b->taken;
    return false;
}

/* What is not refused for good. */
static void take_trouble(svs_outbox *b, const struct svi_answer *a, double now) {
    if (b->phase == SVI_GREETING && a->n < 0) {
        later(b, a->code, a->reason, now);
    } else if (b->phase != SVI_LIVE) {
        return;
    } else if (strcmp(a->code, "gap") == 0) {
        b->f.gaps++;
        svi_outbox_greet(b);
    } else if (is_unreadable(b, a)) {
        if (b->o.batch == 1 || b->fruitless >= SVI_OUTBOX_PROBES)
            give_up(b, a->code, a->reason);
        else
            b->fruitless = SVI_OUTBOX_PROBES; /* singly: one of a batch is it, or all of them together */
        svi_outbox_greet(b);
    } else {
        later(b, a->code, a->reason, now);
    }
}

/* ---- hello */

/* Replay: what is kept is of no use, for the process wants other samples. */
static void drop(svs_outbox *b, int64_t count) {
    b->f.dropped += count;
    pop(b, count);
}

/* The process wants a sample that is not kept, or numbers them anew. Returns how many acknowledged ones it
 * has forgotten. */
static int64_t adopt(svs_outbox *b, int64_t next) {
    const int64_t at = next + b->shift, first = b->first;
    int64_t lowest = at > 0 ? at : 0;
    take_back(b, 0);
    if (b->o.replay) {
        drop(b, at > first && at - first < b->store.count ? at - first : b->store.count);
        b->first = at;
    } else {
        b->shift = first - next;
    }
    b->reached = b->first;
    return lowest < first ? first - lowest : 0;
}

static void tell_other_user(svs_outbox *b) {
    char reason[200];
    snprintf(reason, sizeof reason,
             "the process has samples from %s that were not sent from here: does another producer use this "
             "name?",
             b->src);
    const int64_t at = b->first + b->taken;
    tell(b, &(svs_outbox_event){SVS_OUTBOX_LATER, at, at, 0, "no_source", reason, 0});
}

/* A turn in which nothing came through, though there is somebody who answers: perhaps it is the sample. */
static void count_turn(svs_outbox *b, bool same) {
    if (!same)
        b->fruitless = 0;
    else if (b->tried && !b->answered)
        b->fruitless++;
    b->tried = b->answered = false;
    if (b->fruitless >= 2 * SVI_OUTBOX_PROBES && b->store.count > b->taken)
        give_up(b, "peer_cut",
                "the process ends the connection at this sample each time: is it larger than max.message?");
}

/* `first`: the oldest that was kept. */
static void tell_lack(svs_outbox *b, bool other, int64_t first, int64_t count) {
    static const char *const why[] = {
        "a power cut took them from the process before they were on disk: with its setting delivery durable "
        "it "
        "acknowledges only what is",
        "the process was started anew and keeps nothing: with its setting state.dir it does"};
    tell(b, &(svs_outbox_event){SVS_OUTBOX_RESTARTED, first - count, first - 1, count,
                                count == 0 ? ""
                                : other    ? "no_state"
                                           : "power_cut",
                                count ? why[other] : "", 0});
}

/* The process wants the sample at `at`, which is kept and was sent, or comes next. */
static void stand_at(svs_outbox *b, int64_t at, const struct svi_answer *a) {
    if (at > b->first + b->taken)
        settle(b, at, 0, a);
    else
        take_back(b, at - b->first);
}

static void resume(svs_outbox *b, const struct svi_answer *a, double now) {
    const bool other = b->met && a->epoch != b->f.epoch;
    const int64_t first = b->first, from = first + b->taken, at = a->next + b->shift;
    int64_t forgotten = 0;
    if (!b->met && !b->o.replay)
        b->shift = -a->next;
    else if (!b->met)
        b->first = b->reached = at;
    else if (at >= first && at <= b->reached)
        stand_at(b, at, a);
    else {
        if (at > b->reached && !b->o.replay)
            tell_other_user(b);
        forgotten = adopt(b, a->next);
    }
    count_turn(b, b->met && !other && at == from);
    b->sent = b->taken;
    b->f.under_way = 0;
    b->met = true;
    b->f.epoch = a->epoch;
    b->f.restarts += other;
    b->f.forgotten += forgotten;
    b->f.lost += b->o.replay ? 0 : forgotten;
    b->phase = SVI_LIVE;
    b->greeted = -1;
    b->heard = now;
    note_disk(b, a->durable, 0);
    release(b);
    if (other || forgotten > 0)
        tell_lack(b, other, first, forgotten);
}

/* Does the process that answers a hello keep its state? Its level says so; the numbers of one that does not
 * tell its level can. */
static bool is_keeper(const svs_outbox *b, const struct svi_answer *a) {
    static const char *const levels[] = {"at-least-once", "durable", "exactly-once"};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (strcmp(a->delivery, levels[i]) == 0)
            return true;
    return !a->delivery[0] && (a->durable >= 0 || (b->keeps && a->epoch == b->f.epoch));
}

/* Where samples get new numbers, no message with old ones may be under way any more: it could be taken for
 * another. Is this the answer to the last hello, behind which there is none? Others may have been answered
 * late: then as many answers as hellos are open must agree. At first messages of an earlier life of this
 * producer may still wait in the process: two answers must agree at least. */
static bool is_sure(svs_outbox *b, const struct svi_answer *a) {
    const int64_t at = a->next + b->shift;
    if (b->o.replay || (b->met && at >= b->first && at <= b->reached))
        return true; /* the numbers stay */
    if (b->ask)
        return false; /* it was to an earlier hello */
    if (b->greeted == a->next && b->greeted_epoch == a->epoch)
        return --b->doubts <= 0;
    b->greeted = a->next;
    b->greeted_epoch = a->epoch;
    b->doubts = b->hellos > 0 || b->met ? b->hellos : 1;
    return b->doubts == 0;
}

static void take_place(svs_outbox *b, const struct svi_answer *a, double now) {
    b->keeps = is_keeper(b, a);
    if (b->o.release == SVS_OUTBOX_DURABLE && !b->keeps) {
        later(b, "not_durable",
              "the process keeps nothing: it needs --state.dir, and --delivery durable against power cuts",
              now);
    } else if (!is_sure(b, a)) {
        b->ask = true;
    } else {
        resume(b, a, now);
    }
}

static void take_hello(svs_outbox *b, const struct svi_answer *a, double now) {
    if (a->credit >= 0)
        b->f.credit = a->credit;
    b->hellos -= b->hellos > 0;
    if (b->phase == SVI_LIVE && a->epoch != b->f.epoch)
        svi_outbox_greet(b); /* an answer to an earlier hello, of a process that is not the present one */
    else if (b->phase == SVI_GREETING)
        take_place(b, a, now);
}

svs_code svs_outbox_reply(svs_outbox *b, const void *bytes, size_t length, double now, svs_error *err) {
    struct svi_answer a;
    svs_code code = svi_answer_read(&a, bytes, length, err);
    if (code != SVS_OK)
        return code;
    if (a.ok && a.n < 0 && a.next >= 0) {
        take_hello(b, &a, now);
        return SVS_OK;
    }
    if (b->phase == SVI_LIVE) {
        b->answered = true;
        b->heard = now;
        b->f.under_way -= b->f.under_way > 0;
    }
    if (a.ok && a.n >= 0)
        take_ack(b, &a);
    else if (!a.ok && a.final > 0 && a.n >= 0)
        take_refusal(b, &a);
    else if (!a.ok)
        take_trouble(b, &a, now);
    return SVS_OK;
}
