/* What an outbox makes of replies. */
#include <stdio.h>
#include <string.h>

#include "wire/outbox_state.h"

static void tell(svs_outbox *b, const svs_outbox_event *e) {
    if (b->o.tell)
        b->o.tell(b->o.user, e);
}

static int64_t stubs(const svs_outbox *b, int64_t count) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++)
        found += svi_store_at(&b->store, i)->stub;
    return found;
}

static void pop(svs_outbox *b, int64_t count) {
    svi_store_pop(&b->store, count);
    b->first += count;
    b->sent = b->sent > count ? b->sent - count : 0;
    b->reached = b->reached > b->first ? b->reached : b->first;
    if (b->sent == 0)
        b->f.under_way = 0;
    b->pause = b->o.pause;
    b->fruitless = 0;
}

/* The process has answered for all samples below `at`, and refused `refused` of them for the reason in `a`. A
 * stub was told when the sample was given up. */
static void settle(svs_outbox *b, int64_t at, int64_t refused, const struct svi_answer *a) {
    const int64_t count = at - b->first, given_up = stubs(b, count), whole = count - given_up;
    svs_outbox_event e = {
        .kind = SVS_OUTBOX_REFUSED, .first = b->first, .last = at - 1, .code = "", .reason = ""};
    refused = refused < whole ? refused : whole;
    pop(b, count);
    b->f.acked += whole - refused;
    b->f.refused += refused + given_up;
    if (refused > 0) {
        e.count = refused;
        e.code = a->code;
        e.reason = a->reason;
        tell(b, &e);
    }
    if (whole > refused)
        tell(b, &(svs_outbox_event){SVS_OUTBOX_ACKED, e.first, e.last, whole - refused, "", "", 0});
}

static void note_positions(svs_outbox *b, const struct svi_answer *a) {
    if (a->credit >= 0)
        b->f.credit = a->credit;
    if (a->n < 0)
        return;
    const int64_t applied = a->applied + b->shift + 1, durable = a->durable + b->shift + 1;
    if (a->applied >= 0)
        b->f.applied = applied > 0 ? applied : 0;
    b->f.durable = a->durable < 0 ? -1 : durable > 0 ? durable : 0;
}

/* {ok, n}: all up to n are taken, unless `refused` says that some of the last message's are not. */
static void take_ack(svs_outbox *b, const struct svi_answer *a) {
    const int64_t at = a->n + b->shift + 1;
    if (at > b->reached) {
        if (b->phase == SVI_LIVE)
            svi_outbox_greet(b); /* it cannot have these from here */
        return;
    }
    note_positions(b, a);
    if (at > b->first) {
        int64_t others = a->refused - stubs(b, at - b->first);
        struct svi_answer some = *a;
        if (!some.reason[0])
            strcpy(some.reason, "some samples of a batch were refused; the error topic says which");
        settle(b, at, others > 0 ? others : 0, &some);
    } else if (b->phase == SVI_LIVE) {
        b->f.duplicates++;
    }
}

/* {error, n, next, final}: the message n .. next - 1 is refused and its numbers are used up. */
static void take_refusal(svs_outbox *b, const struct svi_answer *a) {
    const int64_t at = a->n + b->shift;
    int64_t end = a->next > a->n ? a->next + b->shift : at + 1;
    if (at < b->first || at >= b->reached)
        return;
    end = end < b->reached ? end : b->reached;
    if (at > b->first)
        settle(b, at, 0, a);
    settle(b, end, end - at, a);
}

/* Nothing is wrong with the sample as far as it is known here, and yet it cannot be got through: its number
 * is used up by a sample without features, which the process refuses for good. */
static void give_up(svs_outbox *b, const char *code, const char *reason) {
    struct svi_kept *k = svi_store_at(&b->store, 0);
    if (!k->stub)
        tell(b, &(svs_outbox_event){SVS_OUTBOX_REFUSED, b->first, b->first, 1, code, reason, 0});
    k->stub = true;
    b->fruitless = 0;
}

static void later(svs_outbox *b, const struct svi_answer *a, double now) {
    double wait = svi_outbox_pause(b, now);
    tell(b, &(svs_outbox_event){SVS_OUTBOX_LATER, b->first, b->first, 0, a->code, a->reason, wait});
}

/* A message that the process cannot read: its reply tells no number. Replies come in order, so it is the
 * oldest one. */
static bool is_unreadable(const svs_outbox *b, const struct svi_answer *a) {
    static const svs_code codes[] = {SVS_EMPTY,    SVS_NOT_MSGPACK, SVS_TRUNCATED, SVS_TRAILING,
                                     SVS_TOO_DEEP, SVS_TOO_LARGE,   SVS_WRONG_TYPE};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(a->code, svs_code_name(codes[i])) == 0)
            return a->n < 0 && a->final < 0 && b->sent > 0;
    return false;
}

/* What is not refused for good. */
static void take_trouble(svs_outbox *b, const struct svi_answer *a, double now) {
    if (b->phase == SVI_GREETING && a->n < 0) {
        later(b, a, now);
    } else if (b->phase != SVI_LIVE) {
        return;
    } else if (strcmp(a->code, "gap") == 0) {
        b->f.gaps++;
        svi_outbox_greet(b);
    } else if (is_unreadable(b, a)) {
        give_up(b, a->code, a->reason);
        svi_outbox_greet(b);
    } else {
        later(b, a, now);
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
    tell(b, &(svs_outbox_event){SVS_OUTBOX_LATER, b->first, b->first, 0, "no_source", reason, 0});
}

/* A turn in which nothing came through, though there is somebody who answers: perhaps it is the sample. */
static void count_turn(svs_outbox *b, bool same) {
    if (!same)
        b->fruitless = 0;
    else if (b->tried && !b->answered)
        b->fruitless++;
    b->tried = b->answered = false;
    if (b->fruitless >= 2 * SVI_OUTBOX_PROBES && b->store.count > 0)
        give_up(b, "peer_cut",
                "the process ends the connection at this sample each time: is it larger than max.message?");
}

static void resume(svs_outbox *b, const struct svi_answer *a, double now) {
    const bool other = b->met && a->epoch != b->f.epoch;
    int64_t at = a->next + b->shift, first = b->first, forgotten = 0;
    if (!b->met && !b->o.replay)
        b->shift = -a->next;
    else if (!b->met)
        b->first = b->reached = at;
    else if (at >= first && at <= b->reached) {
        if (at > first)
            settle(b, at, 0, a);
    } else {
        if (at > b->reached && !b->o.replay)
            tell_other_user(b);
        forgotten = adopt(b, a->next);
    }
    count_turn(b, b->met && !other && at == first);
    b->sent = b->f.under_way = 0;
    b->met = true;
    b->f.epoch = a->epoch;
    b->f.restarts += other;
    b->f.forgotten += forgotten;
    b->phase = SVI_LIVE;
    b->heard = now;
    if (other || forgotten > 0)
        tell(b,
             &(svs_outbox_event){SVS_OUTBOX_RESTARTED, first - forgotten, first - 1, forgotten, "", "", 0});
}

/* Messages of an earlier life of this producer may still wait in the process when the first hello is
 * answered, and would use up numbers: they are through when two answers agree. Where numbers say which sample
 * is meant this does no harm. */
static void take_hello(svs_outbox *b, const struct svi_answer *a, double now) {
    note_positions(b, a);
    if (b->phase == SVI_GREETING && !b->met && !b->o.replay && b->greeted != a->next) {
        b->greeted = a->next;
        b->ask = true;
    } else if (b->phase == SVI_GREETING) {
        resume(b, a, now);
    } else if (b->phase == SVI_LIVE && a->epoch != b->f.epoch) {
        svi_outbox_greet(b); /* an answer to an earlier hello, of a process that is not the present one */
    }
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
