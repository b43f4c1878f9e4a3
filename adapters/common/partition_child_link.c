/* The sockets of a process: entries to it, replies and events from it.
 *
 * Replies come in the order of the messages, so each belongs to the first entry under way. An entry
 * may be answered: taken, or refused for good. It may be refused as a whole without a number: it is
 * dropped, and those after it move up. Or it cannot be taken for now, or the process stands
 * elsewhere (a gap). After all but an answer, the numbers of the entries under way no longer fit.
 * So nothing more is sent until all of these have a reply, and then hello asks where the process
 * stands.
 *
 * The answer to a hello decides which queued entries are still valid (link_greeted). If the process
 * stands at the beginning of one of its entries, with the place of the one before it, that entry
 * and all later ones are sent. Otherwise the adapter reads the log again from the place that the
 * process names. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "client/outbox_answer.h"
#include "net/publisher.h"
#include "net/transport.h"
#include "partition_child_internal.h"
#include "wire/cursor.h"
#include "wire/json_message.h"
#include "wire/json_value.h"

#define QUEUE        1000   /* messages that libzmq holds here */
#define EVENTS       200000 /* that may wait for a turn here; then they wait at the process */
#define EVENTS_TURN  5000
#define REPLIES_TURN 1000
#define LATER        0.05 /* seconds before an entry that cannot be taken for now is sent again, doubled up to */
#define LATER_MAX    2.0
#define MARK_SECONDS 2.0  /* without a marker: it is asked for again */
#define SILENCE      60.0 /* seconds without a reply: asked again over new sockets */

static void link_address(const struct partition_child *c, enum partition_file file, char *out, size_t size) {
    snprintf(out, size, "ipc://%s", c->folder.path[file]);
}

static void *link_dealer(const struct partition_child *c, enum partition_file file, const char *setting,
                         svs_error *err) {
    const struct svi_socket_plan plan = {setting, ZMQ_DEALER, false, QUEUE, 0, -1, 0};
    const struct svi_identity plain = {.on = false};
    char address[PARTITION_PATH + 8];
    void *socket = svi_socket_new(c->o.context, &plan, err);
    link_address(c, file, address, sizeof address);
    if (socket && svi_socket_connect(socket, &plan, &plain, address, err) != SVS_OK)
        svi_socket_close(&socket);
    return socket;
}

svs_code partition_child_link_mark(struct partition_child *c, svs_error *err) {
    char topic[] = SVI_TOPIC_MARK "0";
    char *digit = topic + sizeof topic - 2;
    if (c->markers) {
        *digit = c->markers;
        subscription_remove(&c->events, topic, NULL);
    }
    *digit = c->marker = c->markers = c->markers >= '0' && c->markers < '9' ? (char)(c->markers + 1) : '0';
    c->last_reply = svi_monotonic();
    return subscription_add(&c->events, topic, err);
}

svs_code partition_child_link_open(struct partition_child *c, svs_error *err) {
    const struct svi_identity plain = {.on = false};
    char address[PARTITION_PATH + 8], prefix[SVI_TOPIC_MAX];
    if (!(c->in = link_dealer(c, PARTITION_IN, "in", err)) ||
        !(c->ctl = link_dealer(c, PARTITION_CTL, "ctl", err)))
        return err->code;
    link_address(c, PARTITION_OUT, address, sizeof address);
    SVI_TRY(subscription_open(&c->events, c->o.context, address, &plain, EVENTS, err));
    for (int t = 0; t < SVI_TOPIC_COUNT; t++) {
        snprintf(prefix, sizeof prefix, "%s.", svi_topic_name((enum svi_topic)t));
        if (c->o.topics >> t & 1)
            SVI_TRY(subscription_add(&c->events, prefix, err));
    }
    c->markers = 0;
    return partition_child_link_mark(c, err);
}

void partition_child_link_close(struct partition_child *c) {
    svi_socket_close(&c->in);
    svi_socket_close(&c->ctl);
    subscription_close(&c->events);
    c->greeted = c->blocked = c->waiting = false;
    c->marker = 0;
    c->entries.flying = 0;
    c->entries.unsent = c->entries.first;
}

/* ---- events */

/* Those that the process has sent, at most EVENTS_TURN, so that samples need not wait for long. */
static void link_events(struct partition_child *c) {
    const size_t head = sizeof SVI_TOPIC_MARK - 1;
    struct subscription_event e;
    int left = EVENTS_TURN;
    while (left > 0 && subscription_next(&c->events, &e)) {
        left--;
        if (e.kind == SVI_TOPIC_COUNT && e.topic_length == head + 1 &&
            memcmp(e.topic, SVI_TOPIC_MARK, head) == 0)
            c->marker = e.topic[head] == c->marker ? 0 : c->marker;
        else if (e.kind != SVI_TOPIC_COUNT && c->o.calls->event)
            c->o.calls->event(c->o.user, &e);
    }
    c->waiting = left == 0;
}

/* ---- hello */

static void link_hello(struct partition_child *c) {
    static const char hello[] = "\x82\xa2op\xa5hello\xa3src\xa3" PARTITION_SOURCE;
    c->greeted = zmq_send(c->in, hello, sizeof hello - 1, ZMQ_DONTWAIT) >= 0;
    c->last_reply = svi_monotonic();
}

static void link_place(struct partition_child *c, const void *at, size_t size, int64_t next) {
    c->at_size = size < sizeof c->at ? size : sizeof c->at;
    if (c->at_size > 0)
        memcpy(c->at, at, c->at_size);
    c->next = next;
}

/* Removes the entries before number `next`, whose replies were lost. False: the process does not stand at the
 * beginning of an entry that it was sent, or it is there by another way. */
static bool link_keep(struct partition_child *c, const struct svi_answer *a, const struct svi_item *at) {
    if (a->epoch != c->epoch || c->next < 0)
        return false;
    while (c->entries.first && c->entries.first->n < a->next) {
        struct partition_entry *e = partition_entries_pop(&c->entries);
        link_place(c, e->at, e->at_size, e->n + e->count);
        svi_free(e);
    }
    return c->next == a->next && c->at_size == at->length &&
           (c->at_size == 0 || memcmp(c->at, at->body, c->at_size) == 0);
}

/* The answer to a hello. */
static void link_greeted(struct partition_child *c, const struct svi_answer *a) {
    struct svi_item at = {.type = SVI_NIL};
    c->greeted = false;
    if (!a->ok || a->next < 0) { /* it is refused for now, by a full disk for instance */
        c->phase = PHASE_DRAIN;
        c->due = svi_monotonic() + LATER_MAX;
        partition_child_log(c, "the stream does not answer a hello: %s (%s)", a->reason, a->code);
        return;
    }
    if (a->at)
        svi_item_read(a->at, &at);
    if (at.type != SVI_STRING && at.type != SVI_BIN)
        at.length = 0;
    if (link_keep(c, a, &at)) {
        partition_entries_rewind(&c->entries, a->next);
    } else {
        partition_entries_clear(&c->entries, a->next);
        link_place(c, at.body, at.length, a->next);
        c->generation++;
    }
    c->epoch = a->epoch;
    c->largest = a->max_message > 0 ? a->max_message : 0;
    c->credit = a->credit > 0 ? a->credit : 1;
    c->answered = true;
    c->phase = PHASE_LIVE;
}

/* ---- replies */

static void link_drain(struct partition_child *c, double pause) {
    c->phase = PHASE_DRAIN;
    c->due = svi_monotonic() + pause;
}

static void link_refused(const struct partition_child *c, const struct partition_entry *e, int64_t count,
                         const struct svi_answer *a) {
    if (c->o.calls->refused)
        c->o.calls->refused(c->o.user, count, a->code, a->reason, e->at, e->at_size);
}

/* The first entry is answered for good; the process stands at number `next`. */
static void link_settle(struct partition_child *c, const struct svi_answer *a, int64_t next,
                        int64_t refused) {
    struct partition_entry *e = partition_entries_pop(&c->entries);
    link_place(c, e->at, e->at_size, next);
    c->later = 0;
    c->pause = PARTITION_PAUSE;
    if (refused > 0)
        link_refused(c, e, refused, a);
    /* Elements are counted by the process: should it count others, the later numbers are wrong. */
    if (next != e->n + e->count)
        link_drain(c, 0);
    svi_free(e);
}

/* Refusals that pass: the same entry is taken later. */
static bool is_for_now(const char *code) {
    static const svs_code codes[] = {SVS_DISK_FULL,   SVS_NO_MEMORY,   SVS_LIMIT,
                                     SVS_UNAVAILABLE, SVS_NOT_ALLOWED, SVS_IO};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(code, svs_code_name(codes[i])) == 0)
            return true;
    return false;
}

/* The reply to the oldest message under way. */
static void link_answer(struct partition_child *c, const struct svi_answer *a) {
    const bool gap = strcmp(a->code, svs_code_name(SVS_GAP)) == 0 ||
                     strcmp(a->code, svs_code_name(SVS_SOURCE_FORGOTTEN)) == 0;
    if (c->entries.flying == 0) /* to no message of ours */
        return;
    if (c->phase == PHASE_DRAIN) { /* hello will say which of these it has */
        c->entries.flying--;
    } else if (a->ok && a->n >= 0) {
        link_settle(c, a, a->n + 1, a->refused > 0 ? a->refused : 0);
    } else if (a->final > 0 && a->next >= 0) {
        link_settle(c, a, a->next, c->entries.first->count);
    } else if (gap) {
        c->entries.flying--;
        link_drain(c, 0);
    } else if (is_for_now(a->code)) {
        c->entries.flying--;
        c->later = fmin(fmax(LATER, 2 * c->later), LATER_MAX);
        partition_child_log(c, "the stream takes nothing for now: %s (%s); tried again in %.2f s", a->reason,
                            a->code, c->later);
        link_drain(c, c->later);
    } else { /* refused as a whole, whenever it is sent: it has used up no number */
        struct partition_entry *e = partition_entries_pop(&c->entries);
        link_refused(c, e, e->count, a);
        svi_free(e);
        link_drain(c, 0);
    }
}

/* A message in JSON gets its reply in JSON. */
static svs_code link_unpack(const void *bytes, size_t size, struct svi_bytes *text,
                            struct svi_bytes *packed) {
    struct svi_pack p;
    text->size = packed->size = 0;
    SVI_TRY(svi_bytes_append(text, bytes, size));
    SVI_TRY(svi_bytes_append(text, "", 1));
    svi_pack_begin(&p, packed);
    SVI_TRY(svi_pack_json(&p, (const char *)text->data, NULL));
    return svi_pack_end(&p);
}

static void link_replies(struct partition_child *c) {
    struct svi_bytes text = {0}, packed = {0};
    zmq_msg_t m;
    zmq_msg_init(&m);
    for (int i = 0; i < REPLIES_TURN && svi_last_frame(c->in, &m, NULL); i++) {
        const void *bytes = zmq_msg_data(&m);
        size_t size = zmq_msg_size(&m);
        struct svi_answer a = {.ok = false};
        c->last_reply = svi_monotonic();
        if (svi_json_begins(bytes, size) && link_unpack(bytes, size, &text, &packed) == SVS_OK) {
            bytes = packed.data;
            size = packed.size;
        }
        /* What cannot be read still answers the oldest message: hello then asks where the process stands. */
        if (svi_answer_read(&a, bytes, size, NULL) != SVS_OK)
            a = (struct svi_answer){.n = -1, .next = -1, .final = -1, .code = "gap"};
        if (c->greeted)
            link_greeted(c, &a);
        else
            link_answer(c, &a);
    }
    zmq_msg_close(&m);
    svi_bytes_clear(&text);
    svi_bytes_clear(&packed);
}

/* ---- turns */

static void link_send(struct partition_child *c) {
    const struct partition_entry *e;
    c->blocked = false;
    while (!c->blocked && c->entries.flying < c->credit && (e = partition_entries_ready(&c->entries))) {
        if (c->entries.flying == 0)
            c->last_reply = svi_monotonic();
        c->blocked = zmq_send(c->in, e->bytes, e->size, ZMQ_DONTWAIT) < 0;
        if (!c->blocked)
            partition_entries_sent(&c->entries);
    }
}

static void link_connect(struct partition_child *c) {
    svs_error err;
    if (c->phase != PHASE_START || !partition_folder_served(&c->folder))
        return;
    if (partition_child_link_open(c, &err) == SVS_OK)
        return;
    partition_child_log(c, "%s", err.text);
    partition_child_link_close(c);
}

/* Over ipc a connection ends with its process only, but the process may cut it (a flood), or be stopped. */
static void link_look_for_silence(struct partition_child *c) {
    const double silent = svi_monotonic() - c->last_reply;
    const bool waits = c->greeted || (c->phase != PHASE_START && c->entries.flying > 0);
    if (c->marker && silent > MARK_SECONDS)
        partition_child_link_mark(c, NULL);
    if (!waits || silent < SILENCE)
        return;
    partition_child_log(
        c, "the stream has answered nothing for %.0f s: it is asked again over new connections", silent);
    partition_child_save_end(c, "the stream does not answer");
    partition_child_link_close(c);
    c->phase = PHASE_START;
}

void partition_child_link_turn(struct partition_child *c) {
    if (!c->in) {
        link_connect(c);
        return;
    }
    link_events(c);
    link_replies(c);
    const bool asks = c->phase == PHASE_START
                          ? !c->marker
                          : c->phase == PHASE_DRAIN && c->entries.flying == 0 && svi_monotonic() >= c->due;
    if (asks && !c->greeted)
        link_hello(c);
    if (c->phase == PHASE_LIVE)
        link_send(c);
    if (c->phase != PHASE_END)
        link_look_for_silence(c);
}

/* ---- entries */

bool partition_child_takes(const struct partition_child *c) {
    const bool ready = c->phase == PHASE_LIVE || c->phase == PHASE_DRAIN;
    return ready && (c->step == SAVE_NONE || c->step == SAVE_EXPORTS) && c->entries.count < c->o.unanswered &&
           (c->entries.count == 0 || c->entries.bytes < c->o.bytes);
}

svs_code partition_child_send(struct partition_child *c, const void *entry, size_t size, const void *at,
                              size_t at_size, svs_error *err) {
    if (!partition_child_takes(c))
        return svi_fail(err, SVS_LIMIT, "the stream has enough entries to answer");
    struct partition_entry *e = partition_entry_new(entry, size, at, at_size, c->largest, err);
    if (!e)
        return err->code;
    partition_entries_add(&c->entries, e);
    if (c->phase == PHASE_LIVE)
        link_send(c);
    return SVS_OK;
}
