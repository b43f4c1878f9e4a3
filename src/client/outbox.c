/* An outbox: samples in, messages out (svmstream/outbox.h explains its purpose; outbox_reply.c processes the
 * replies).
 *
 * Samples wait in a queue (outbox_store.c) in the order in which they are put. Marks divide it (see struct
 * svs_outbox): taken <= sent, and the process may have everything below `reached`. svs_outbox_frame builds
 * the next message from the mark `sent`; svs_outbox_sent moves the mark once the socket has accepted it. A
 * message that the socket rejects is simply built again.
 *
 * The phase decides whether samples are sent (live), a hello comes first (greeting), or nothing is sent for a
 * while (paused). Time advances it in outbox_advance, replies in outbox_reply.c. svi_outbox_check states the
 * invariants. */
#include "svmstream/outbox.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "client/outbox_internal.h"
#include "wire/columns.h"
#include "wire/decode.h"
#include "wire/fields.h"
#include "wire/pack.h"

#define OVERHEAD 96 /* bytes that a message adds: headers, src, n */
#define REPLY    12 /* and `reply` */
#define HEADER   5  /* bytes that each further sample of a batch adds */

void svs_outbox_defaults(svs_outbox_options *o) {
    *o = (svs_outbox_options){.samples = 10000,
                              .bytes = INT64_C(64) << 20,
                              .message = 1 << 20,
                              .batch = 1,
                              .window = 256,
                              .timeout = 1,
                              .pause = 0.05,
                              .pause_max = 2};
}

/* A table, so that every option states its range in the error. Written as !(low <= value <= high), which
 * refuses a NAN too. */
static svs_code outbox_check_options(const svs_outbox_options *o, svs_error *err) {
    const struct {
        const char *name;
        double value, low, high;
    } rows[] = {{"samples", (double)o->samples, 1, 1e8},
                {"bytes", (double)o->bytes, 1024, 0x1p40},
                {"message", (double)o->message, 256, 0x1p30},
                {"batch", o->batch, 1, 1e6},
                {"window", o->window, 1, 1e9},
                {"release", o->release, SVS_OUTBOX_TAKEN, SVS_OUTBOX_SENT},
                {"timeout", o->timeout, 1e-6, 1e9},
                {"pause", o->pause, 1e-6, 1e9},
                {"pause_max", o->pause_max, 1e-6, 1e9}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!(rows[i].value >= rows[i].low && rows[i].value <= rows[i].high))
            return svi_fail(err, SVS_INVALID, "%s of an outbox is %g: it must be from %g to %g", rows[i].name,
                            rows[i].value, rows[i].low, rows[i].high);
    if (o->score && o->release == SVS_OUTBOX_SENT)
        return svi_fail(
            err, SVS_INVALID,
            "scores arrive with replies, which an outbox without acknowledgements does not receive");
    size_t length = o->src ? strlen(o->src) : 0;
    if (length < 1 || length > SVS_NAME_MAX || !svi_utf8_valid(o->src, length))
        return svi_fail(err, SVS_MISSING_SOURCE, "src must be a name of 1 to %d bytes of UTF-8",
                        SVS_NAME_MAX);
    return SVS_OK;
}

svs_outbox *svs_outbox_new(const svs_outbox_options *o, svs_error *err) {
    if (outbox_check_options(o, err) != SVS_OK)
        return NULL;
    svs_outbox *b = svi_new(sizeof *b, "an outbox", err);
    if (!b)
        return NULL;
    b->o = *o;
    strcpy(b->src, o->src);
    b->o.src = b->src;
    b->store.samples = o->samples;
    b->store.bytes = (size_t)o->bytes;
    b->ask = true;
    /* Without replies there is no greeting. */
    if (o->release == SVS_OUTBOX_SENT)
        b->phase = SVI_LIVE, b->met = true;
    /* The fields whose first value is not zero. */
    b->patience = o->timeout;
    b->pause = b->ask_again = o->pause;
    b->greeted = -1;
    b->f.durable = b->f.credit = -1;
    return b;
}

void svs_outbox_free(svs_outbox **b) {
    if (!*b)
        return;
    svi_outbox_store_clear(&(*b)->store);
    svi_bytes_clear(&(*b)->frame);
    svi_bytes_clear(&(*b)->scratch);
    svi_bytes_clear(&(*b)->columns);
    svi_bytes_clear(&(*b)->cursor);
    svi_free(*b);
    *b = NULL;
}

/* ---- in */

/* With replay the process decides where to start, so nothing is wanted before the first greeting. */
int64_t svs_outbox_wanted(const svs_outbox *b) {
    return b->o.replay && !b->met ? -1 : b->first + b->store.count;
}

static size_t outbox_overhead(const svs_outbox *b) {
    return OVERHEAD + (b->o.score ? REPLY : 0) + b->columns.size;
}

static svs_code outbox_keep(svs_outbox *b, const void *body, size_t size, uint32_t pairs, svs_error *err) {
    const size_t cursor = b->cursor.size;
    if (svs_outbox_wanted(b) < 0)
        return svi_fail(err, SVS_UNAVAILABLE, "the process has not reported yet which sample it needs");
    if (cursor > 0) { /* the store takes one piece */
        b->scratch.size = body == b->scratch.data ? size : 0;
        if ((b->scratch.size == 0 && svi_bytes_append(&b->scratch, body, size) != SVS_OK) ||
            svi_bytes_append(&b->scratch, b->cursor.data, cursor) != SVS_OK)
            return svi_fail_memory(err, "one more sample of an outbox");
        body = b->scratch.data;
        size += cursor;
    }
    /* The columns go with every message, so a single sample must fit together with them. */
    if (size + outbox_overhead(b) > (size_t)b->o.message)
        return svi_fail(err, SVS_TOO_LARGE,
                        "the sample has %zu bytes and the names of its columns %zu, but a message at most "
                        "%lld: raise max.message",
                        size, b->columns.size, (long long)b->o.message);
    if (size > b->store.bytes)
        return svi_fail(err, SVS_TOO_LARGE, "the sample has %zu bytes, more than the outbox may keep", size);
    svs_code code = svi_outbox_store_push(&b->store, body, size, pairs);
    if (code == SVS_LIMIT)
        return svi_fail(err, code, "the outbox is full: %lld samples wait for the process",
                        (long long)b->store.count);
    if (code != SVS_OK)
        return svi_fail_memory(err, "one more sample of an outbox");
    svi_outbox_store_at(&b->store, b->store.count - 1)->cursor = (uint8_t)cursor;
    b->cursor.size = 0;
    b->f.put++;
    return SVS_OK;
}

svs_code svs_outbox_put(svs_outbox *b, const void *bytes, size_t length, svs_error *err) {
    const uint8_t *end = (const uint8_t *)bytes + length;
    struct svi_item map, key;
    /* one level less: a batch nests one deeper */
    svs_code code = svi_msgpack_check(bytes, length, SVI_DEPTH_MAX - 1, err);
    if (code != SVS_OK)
        return code;
    const uint8_t *at = svi_item_read(bytes, &map);
    if (map.type != SVI_MAP)
        return svi_fail(err, SVS_WRONG_TYPE, "a sample is a map, not %s", svi_item_name(&map));
    /* Only top-level names are checked: numbering is the outbox's task, and a second `src` would make every
     * message invalid. */
    for (uint32_t i = 0; i < map.length; i++) {
        svi_item_read(at, &key);
        if (svi_item_is(&key, "src") || svi_item_is(&key, "n"))
            return svi_fail(err, SVS_DUPLICATE_KEY, "the outbox sets src and n: leave them out");
        if (svi_item_is(&key, "at"))
            return svi_fail(err, SVS_DUPLICATE_KEY, "svs_outbox_cursor sets at, the cursor: leave it out");
        if (b->o.score && svi_item_is(&key, "reply"))
            return svi_fail(err, SVS_DUPLICATE_KEY,
                            "an outbox that asks for scores sets reply: leave it out");
        svi_walk(&at, end, SVI_DEPTH_MAX);
        svi_walk(&at, end, SVI_DEPTH_MAX);
    }
    return outbox_keep(b, map.body, (size_t)(end - map.body), map.length, err);
}

svs_code svs_outbox_cursor(svs_outbox *b, const void *cursor, size_t size, svs_error *err) {
    struct svi_pack p;
    if (size > SVS_NAME_MAX)
        return svi_fail(err, SVS_BAD_CURSOR, "the cursor has %zu bytes: at most %d are allowed", size,
                        SVS_NAME_MAX);
    b->cursor.size = 0;
    if (size == 0 || b->o.release == SVS_OUTBOX_SENT)
        return SVS_OK;
    svi_pack_begin(&p, &b->cursor);
    svi_pack_key(&p, "at");
    svi_pack_bin(&p, cursor, size);
    if (svi_pack_end(&p) == SVS_OK)
        return SVS_OK;
    b->cursor.size = 0;
    return svi_fail_memory(err, "the cursor of a sample");
}

const void *svs_outbox_place(const svs_outbox *b, size_t *size) {
    struct svi_item item;
    svi_item_read(b->place, &item);
    *size = item.type == SVI_STRING || item.type == SVI_BIN ? item.length : 0;
    return *size > 0 ? item.body : NULL;
}

void svi_outbox_set_place(svs_outbox *b, const uint8_t *value, const uint8_t *end) {
    const uint8_t *behind = value;
    b->place[0] = 0;
    if (value && svi_walk(&behind, end, SVI_DEPTH_MAX) == SVS_OK &&
        (size_t)(behind - value) <= sizeof b->place)
        memcpy(b->place, value, (size_t)(behind - value));
}

/* Three forms: a map by name, an array, or one packed block of doubles. */
static void pack_x(struct svi_pack *p, const svs_outbox_sample *s) {
    svi_pack_key(p, "x");
    if (s->names)
        svi_pack_map(p, (size_t)s->d);
    else if (!s->packed)
        svi_pack_array(p, (size_t)s->d);
    else
        svi_pack_doubles(p, s->x, (size_t)s->d);
    for (int j = 0; j < s->d && (s->names || !s->packed); j++) {
        if (s->names)
            svi_pack_text(p, s->names[j]);
        svi_pack_real(p, s->x[j]);
    }
}

svs_code svs_outbox_pack(svs_outbox *b, const svs_outbox_sample *s, svs_error *err) {
    const struct {
        const char *key;
        svs_value value;
    } rows[] = {{"id", s->id},
                {"y", s->y},
                {"ts", s->has_ts || s->ts != 0 ? svs_real(s->ts) : svs_none()},
                {"w", s->weight != 0 ? svs_real(s->weight) : svs_none()},
                {"key", s->key && s->key[0] ? svs_str(s->key) : svs_none()}};
    struct svi_pack p;
    uint32_t pairs = 1;
    /* All checks come before packing: a sample that would be refused for its form never gets a number. */
    if (!s->x || s->d < 1)
        return svi_fail(err, SVS_INVALID, "a sample needs x, and d from 1");
    if (s->key && (strlen(s->key) > SVS_KEY_MAX || !svi_utf8_valid(s->key, strlen(s->key))))
        return svi_fail(err, SVS_BAD_KEY, "the key of a sample is not UTF-8 of up to %d bytes", SVS_KEY_MAX);
    for (int j = 0; j < s->d; j++)
        if (isinf(s->x[j]))
            return svi_fail(err, SVS_NOT_FINITE, "x[%d] is infinite", j);
        else if (isnan(s->x[j]) && s->packed && !s->names)
            return svi_fail(err, SVS_MISSING_VALUE, "x[%d] is missing: packed samples have all values", j);
    b->scratch.size = 0;
    svi_pack_begin(&p, &b->scratch);
    pack_x(&p, s);
    /* Absent values are left out, as in a message written by hand. */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].value.kind != SVS_NONE) {
            svi_put_value(&p, rows[i].key, rows[i].value);
            pairs++;
        }
    if (svi_pack_end(&p) != SVS_OK)
        return svi_fail_memory(err, "a sample");
    return outbox_keep(b, b->scratch.data, b->scratch.size, pairs, err);
}

svs_code svs_outbox_columns(svs_outbox *b, const char *const *names, int d, svs_error *err) {
    struct svi_pack p;
    if (d < 0 || (d > 0 && !names))
        return svi_fail(err, SVS_INVALID, "%d columns need their names", d);
    for (int j = 0; j < d; j++)
        if (!names[j])
            return svi_fail(err, SVS_INVALID, "column %d has no name", j);
    b->scratch.size = 0;
    svi_pack_begin(&p, &b->scratch);
    if (d > 0)
        svi_columns_pack(&p, names, d);
    /* Reserved before the old names are dropped: on failure they stay in use. */
    if (svi_pack_end(&p) != SVS_OK || svi_bytes_reserve(&b->columns, b->scratch.size) != SVS_OK)
        return svi_fail_memory(err, "the names of columns");
    if (b->scratch.size + 2 * OVERHEAD > (size_t)b->o.message)
        return svi_fail(err, SVS_TOO_LARGE,
                        "the names of the columns have %zu bytes, a message %lld at most: raise max.message",
                        b->scratch.size, (long long)b->o.message);
    b->columns.size = 0;
    return svi_bytes_append(&b->columns, b->scratch.data, b->scratch.size);
}

bool svs_outbox_drop(svs_outbox *b) {
    /* A sample that the process may have keeps its number: only one that was never sent can be dropped
     * without leaving a gap. */
    const int64_t reached = b->reached - b->first, oldest = reached > b->sent ? reached : b->sent;
    if (b->o.replay || oldest >= b->store.count)
        return false;
    svi_outbox_store_remove(&b->store, oldest);
    /* Marks above the dropped sample move down by one with the numbers. */
    b->touched -= b->touched > b->first + oldest;
    b->reported -= b->reported > b->first + oldest;
    b->f.dropped++;
    return true;
}

/* ---- out */

void svi_outbox_greet(svs_outbox *b) {
    b->phase = SVI_GREETING;
    b->ask = true;
    b->patience = b->o.timeout;
}

double svi_outbox_pause(svs_outbox *b, double now) {
    double wait = b->pause;
    b->phase = SVI_PAUSED;
    b->again = now + wait;
    b->pause = fmin(2 * wait, fmax(b->o.pause, b->o.pause_max));
    return wait;
}

/* How many messages may be in flight: the smaller of our window and the process's credit. */
static int64_t outbox_window(const svs_outbox *b) {
    if (b->singly)
        return 1;
    return b->f.credit >= 0 && b->f.credit < b->o.window ? b->f.credit : b->o.window;
}

/* Sending needs samples and a free place in the window. */
static bool can_send(const svs_outbox *b) {
    return b->sent < b->store.count && b->f.under_way < outbox_window(b);
}

/* Some samples are in flight: a reply is expected. */
static bool outbox_expects_reply(const svs_outbox *b) {
    return b->sent > b->taken;
}

/* There are samples, none is in flight, and the credit allows none. */
static bool has_no_credit(const svs_outbox *b) {
    return !outbox_expects_reply(b) && b->sent < b->store.count && outbox_window(b) == 0;
}

int64_t svi_outbox_on_disk(const svs_outbox *b) {
    const int64_t at = b->first + b->taken;
    return b->f.durable < at ? b->f.durable : at;
}

/* Only the process's disk is awaited, and no further reply will report it: a hello has to ask. */
static bool must_ask_about_disk(const svs_outbox *b) {
    return b->o.release != SVS_OUTBOX_TAKEN && b->keeps && b->sent == b->store.count &&
           !outbox_expects_reply(b) && svi_outbox_on_disk(b) < b->first + b->taken;
}

/* Everything put is settled, and on disk where that is awaited. */
static bool all_done(const svs_outbox *b) {
    return b->phase == SVI_LIVE && b->taken == b->store.count && !must_ask_about_disk(b);
}

bool svs_outbox_done(const svs_outbox *b) {
    return all_done(b) && (b->leaving == SVI_STAYS || b->leaving == SVI_LEFT);
}

void svs_outbox_leave(svs_outbox *b) {
    /* Without replies there is nobody to take leave of. */
    if (b->leaving == SVI_STAYS && b->o.release != SVS_OUTBOX_SENT)
        b->leaving = SVI_LEAVES;
}

/* Is a bye due now? */
static bool bye_is_due(const svs_outbox *b) {
    return b->leaving == SVI_LEAVES && all_done(b);
}

/* Advances the phase by time. The order matters: a pause that has ended becomes a greeting before the others
 * are checked, and the repetition of an unanswered hello comes last. Waiting times double up to pause_max, so
 * that a process that is down is not flooded. */
static void outbox_advance(svs_outbox *b, double now) {
    if (b->phase == SVI_PAUSED && now >= b->again)
        svi_outbox_greet(b);
    /* A reply is overdue: the greeting finds out what the process has. */
    if (b->phase == SVI_LIVE && outbox_expects_reply(b) && now >= b->last_reply + b->o.timeout)
        svi_outbox_greet(b);
    if (b->phase == SVI_LIVE && has_no_credit(b))
        svi_outbox_pause(b, now);
    if (b->phase == SVI_LIVE && must_ask_about_disk(b) && now >= b->last_reply + b->ask_again) {
        b->ask_again = fmin(2 * b->ask_again, fmax(b->o.pause, b->o.pause_max));
        svi_outbox_greet(b);
    }
    /* A bye is a courtesy: without an answer it counts as sent. */
    if (b->leaving == SVI_SENT_BYE && now >= b->asked + b->o.timeout)
        b->leaving = SVI_LEFT;
    if (b->phase == SVI_GREETING && !b->ask && now >= b->asked + b->patience) {
        b->ask = true;
        b->patience = fmin(2 * b->patience, fmax(b->o.timeout, b->o.pause_max));
    }
}

/* Packs as many of the unsent samples as one message may hold; only the first carries src, n, reply and the
 * cursor, which is the last sample's: the others follow by position. */
static void pack_samples(svs_outbox *b, struct svi_pack *p) {
    int64_t left = b->store.count - b->sent, most = b->singly ? 1 : b->o.batch;
    const int64_t limit = b->message_max > 0 && b->message_max < b->o.message ? b->message_max : b->o.message;
    size_t size = outbox_overhead(b);
    /* First count how many fit, by an upper bound of their bytes, since the length precedes the elements in
     * msgpack. */
    for (b->framed = 0; b->framed < left && b->framed < most; b->framed++) {
        size += svi_outbox_store_at(&b->store, b->sent + b->framed)->size + HEADER;
        if (b->framed > 0 && size > (size_t)limit)
            break;
    }
    if (b->framed > 1)
        svi_pack_array(p, (size_t)b->framed);
    const struct svi_kept *last = svi_outbox_store_at(&b->store, b->sent + b->framed - 1);
    bool names = b->columns.size > 0; /* names still to be packed: into the first sample that is not a stub */
    for (int64_t i = 0; i < b->framed; i++) {
        const struct svi_kept *k = svi_outbox_store_at(&b->store, b->sent + i);
        /* A message of mode pull carries no numbers: nobody would answer. */
        const bool numbered = i == 0 && b->o.release != SVS_OUTBOX_SENT, named = names && !k->stub;
        names = names && !named;
        const struct svi_open_map map = svi_pack_open(p);
        if (named)
            svi_pack_pairs(p, b->columns.data, b->columns.size, 1);
        if (!k->stub)
            svi_pack_pairs(p, b->store.block + k->at, k->size - k->cursor, k->pairs);
        if (numbered) {
            svi_put_text(p, "src", b->src);
            svi_put_int(p, "n", b->first + b->sent - b->shift);
        }
        if (numbered && b->o.score)
            svi_put_text(p, "reply", "score");
        if (numbered && last->cursor > 0)
            svi_pack_pairs(p, b->store.block + last->at + last->size - last->cursor, last->cursor, 1);
        svi_pack_close(p, map);
    }
}

/* Walks over the stored pairs, which were checked when they were put, so the walk cannot run out of the
 * entry. */
const char *svi_outbox_key(const svs_outbox *b, int64_t place, char *out) {
    const struct svi_kept *k = svi_outbox_store_at(&b->store, place);
    const uint8_t *at = b->store.block + k->at, *end = at + k->size;
    struct svi_item name, value;
    out[0] = '\0';
    for (uint32_t i = 0; i < k->pairs; i++) {
        svi_item_read(at, &name);
        svi_walk(&at, end, SVI_DEPTH_MAX);
        svi_item_read(at, &value);
        svi_walk(&at, end, SVI_DEPTH_MAX);
        if (svi_item_is(&name, "key") && svi_item_key(&value, out, NULL) != SVS_OK)
            out[0] = '\0';
    }
    return out;
}

void svi_outbox_give_up(svs_outbox *b, int64_t place, const char *code, const char *reason) {
    struct svi_kept *k = svi_outbox_store_at(&b->store, place);
    const int64_t at = b->first + place;
    char key[SVS_KEY_MAX + 1];
    if (!k->stub && b->o.notify)
        b->o.notify(b->o.user, &(svs_outbox_event){SVS_OUTBOX_REFUSED, at, at, 1, code, reason, 0,
                                                 svi_outbox_key(b, place, key)});
    /* The mark also keeps it from being reported twice. */
    k->stub = true;
}

/* Builds the next message of samples. One that exceeds the process's max.message would only end the
 * connection: its first sample is given up, and the message is built again with a stub. Two rounds suffice,
 * since a batch stops before it exceeds the limit. */
static void frame_samples(svs_outbox *b) {
    struct svi_pack p;
    char reason[120];
    for (int i = 0; i < 2; i++) {
        b->frame.size = 0;
        svi_pack_begin(&p, &b->frame);
        pack_samples(b, &p);
        b->out_of_memory = svi_pack_end(&p) != SVS_OK;
        if (b->out_of_memory || b->message_max == 0 || b->frame.size <= (size_t)b->message_max)
            return;
        snprintf(reason, sizeof reason,
                 "a message of %zu bytes is larger than the process's max.message, %lld", b->frame.size,
                 (long long)b->message_max);
        svi_outbox_give_up(b, b->sent, svs_code_name(SVS_TOO_LARGE), reason);
    }
}

/* Builds a hello or bye. A producer that the process has forgotten states its next number, and the run in
 * which it was acknowledged. */
static void frame_greeting(svs_outbox *b, const char *op) {
    struct svi_pack p;
    const bool returns = b->returns && b->phase == SVI_GREETING;
    /* svs_outbox_sent recognises a greeting by its number of samples. */
    b->framed = 0;
    b->frame.size = 0;
    svi_pack_begin(&p, &b->frame);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_text(&p, "op", op);
    svi_put_text(&p, "src", b->src);
    if (returns) {
        svi_put_int(&p, "n", b->first + b->taken - b->shift);
        svi_put_uint(&p, "run", b->run);
        size_t size;
        const uint8_t *end = svs_outbox_place(b, &size);
        if (end) { /* as it arrived: bin, or the string of another program */
            svi_pack_key(&p, "at");
            svi_pack_raw(&p, b->place, (size_t)(end + size - b->place));
        }
    }
    svi_pack_close(&p, map);
    b->out_of_memory = svi_pack_end(&p) != SVS_OK;
}

bool svs_outbox_frame(svs_outbox *b, double now, const void **bytes, size_t *size) {
    outbox_advance(b, now);
    /* A hello precedes everything; a bye waits until all samples are settled. */
    const bool hello = b->phase == SVI_GREETING && b->ask, bye = bye_is_due(b);
    if (!hello && !bye && !(b->phase == SVI_LIVE && can_send(b)))
        return false;
    hello || bye ? frame_greeting(b, bye ? "bye" : "hello") : frame_samples(b);
    *bytes = b->frame.data;
    *size = b->frame.size;
    return !b->out_of_memory;
}

void svs_outbox_sent(svs_outbox *b, double now) {
    /* No samples: in the live phase only bye is sent without any, in the greeting phase only hello. */
    if (b->framed == 0 && b->phase == SVI_LIVE) {
        b->leaving = SVI_SENT_BYE;
        b->asked = now;
        return;
    }
    if (b->framed == 0) {
        b->ask = false;
        b->hellos++;
        b->asked = now;
        return;
    }
    b->f.sent += b->framed;
    /* Without replies a sample is settled as soon as the socket has it. */
    if (b->o.release == SVS_OUTBOX_SENT) {
        svi_outbox_store_pop(&b->store, b->framed);
        b->first += b->framed;
        b->reached = b->first;
        b->f.acked += b->framed;
        return;
    }
    if (!outbox_expects_reply(b))
        b->last_reply = now;
    b->f.under_way++;
    /* `touched` outlives renumbering, so that samples sent again are counted as such. */
    int64_t from = b->first + b->sent, to = from + b->framed;
    b->sent += b->framed;
    if (from < b->touched)
        b->f.resent += (to < b->touched ? to : b->touched) - from;
    b->touched = to > b->touched ? to : b->touched;
    b->reached = to > b->reached ? to : b->reached;
}

double svs_outbox_wait(const svs_outbox *b, double now) {
    double due = HUGE_VAL;
    if (b->phase == SVI_PAUSED)
        due = b->again;
    else if (b->phase == SVI_GREETING)
        due = b->ask ? now : b->asked + b->patience;
    else if (outbox_expects_reply(b))
        due = b->last_reply + b->o.timeout;
    else if (must_ask_about_disk(b))
        due = b->last_reply + b->ask_again;
    else if (b->leaving == SVI_SENT_BYE)
        due = b->asked + b->o.timeout;
    if ((b->phase == SVI_LIVE && (can_send(b) || has_no_credit(b))) || bye_is_due(b))
        due = now;
    /* Without this the loop would spin on a frame that cannot be built. */
    if (b->out_of_memory)
        due = fmax(due, now + b->o.pause);
    return fmax(0, due - now);
}

void svs_outbox_broken(svs_outbox *b, double now) {
    (void)now;
    /* A paused outbox greets anyway when the pause ends; one that has sent bye only waits for its answer. */
    if (b->phase != SVI_PAUSED && b->o.release != SVS_OUTBOX_SENT && b->leaving < SVI_SENT_BYE)
        svi_outbox_greet(b);
}

void svs_outbox_status(const svs_outbox *b, svs_outbox_figures *f) {
    /* Counters are kept; positions are derived from the marks. */
    *f = b->f;
    f->kept = b->store.count;
    f->taken = b->taken;
    f->unsent = b->store.count - b->sent;
    f->greeted = b->phase == SVI_LIVE;
}

/* In the order of the structure: the marks, the window, what may be taken but not released, and that every
 * sample put is accounted for once. */
bool svi_outbox_check(const svs_outbox *b) {
    const svs_outbox_figures *f = &b->f;
    const int64_t end = b->first + b->store.count;
    return svi_outbox_store_check(&b->store) && b->taken >= 0 && b->taken <= b->sent &&
           b->sent <= b->store.count && b->first >= 0 && b->reached >= b->first + b->sent &&
           b->reached <= end && f->under_way >= 0 && (outbox_expects_reply(b) || f->under_way == 0) &&
           (b->taken == 0 ||
            (b->o.release != SVS_OUTBOX_TAKEN && !b->o.replay && b->f.durable <= b->first)) &&
           (b->o.replay ? b->shift == 0 : b->first == f->acked + f->refused) &&
           f->put == f->acked + f->refused + f->dropped + b->store.count;
}
