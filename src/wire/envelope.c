/* The only place that looks for keys in incoming messages.
 *
 * svi_element_read walks over one map, with bounds checked at each step, and notes where the values of the
 * known keys are; the values are only skipped (svi_skip). That is the whole parse of a message with
 * one sample: one pass over the bytes checks the form and finds the keys. In a batch, the first element is
 * read this way and the others are only checked; the same function reads their keys when it is their turn
 * (decode.c).
 *
 * The fast pass only decides whether the form is valid. If it is not, svi_msgpack_check goes over the message
 * again for the error code and the byte that the error text names. Reading order: svi_envelope_read,
 * envelope_scan, svi_element_read. */
#include "wire/envelope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/limits.h"
#include "base/text.h"
#include "wire/fields.h"

static const char *const key_names[SVI_KEY_COUNT + 1] = {
    "x", "y", "id", "ts", "w", "stream", "op", "src", "n", "columns", "missing", "key", "reply", "at", ""};

const char *svi_key_name(enum svi_key key) {
    return key_names[key];
}

static enum svi_key key_of_one(uint8_t c) {
    return c == 'x'   ? SVI_KEY_X
           : c == 'y' ? SVI_KEY_Y
           : c == 'w' ? SVI_KEY_W
           : c == 'n' ? SVI_KEY_N
                      : SVI_KEY_UNKNOWN;
}

static enum svi_key key_of_two(const uint8_t *s) {
    switch (s[0] << 8 | s[1]) {
    case 'i' << 8 | 'd':
        return SVI_KEY_ID;
    case 't' << 8 | 's':
        return SVI_KEY_TS;
    case 'o' << 8 | 'p':
        return SVI_KEY_OP;
    case 'a' << 8 | 't':
        return SVI_KEY_AT;
    default:
        return SVI_KEY_UNKNOWN;
    }
}

/* Compares by length first: every message comes through here once for each key. */
static enum svi_key key_of(const uint8_t *s, uint32_t length) {
    if (length == 1)
        return key_of_one(s[0]);
    if (length == 2)
        return key_of_two(s);
    if (length == 3)
        return memcmp(s, "src", 3) == 0   ? SVI_KEY_SRC
               : memcmp(s, "key", 3) == 0 ? SVI_KEY_KEY
                                          : SVI_KEY_UNKNOWN;
    if (length == 7)
        return memcmp(s, "columns", 7) == 0   ? SVI_KEY_COLUMNS
               : memcmp(s, "missing", 7) == 0 ? SVI_KEY_MISSING
                                              : SVI_KEY_UNKNOWN;
    if (length == 6)
        return memcmp(s, "stream", 6) == 0 ? SVI_KEY_STREAM : SVI_KEY_UNKNOWN;
    return length == 5 && memcmp(s, "reply", 5) == 0 ? SVI_KEY_REPLY : SVI_KEY_UNKNOWN;
}

/* Reads the head of a map or an array. Returns its first element, or NULL: another item, or it claims more
 * elements than bytes remain. */
static const uint8_t *container_head(const uint8_t *at, const uint8_t *end, struct svi_item *item) {
    if (at >= end)
        return NULL;
    const uint8_t lead = *at;
    const bool short_form = lead >= 0x80 && lead <= 0x9f, long_form = lead >= 0xdc && lead <= 0xdf;
    const ptrdiff_t head = short_form ? 1 : lead & 1 ? 5 : 3; /* 0xdc, 0xde: 16 bits; 0xdd, 0xdf: 32 bits */
    if (!(short_form || long_form) || end - at < head)
        return NULL;
    const uint8_t *first = svi_item_read(at, item);
    const uint64_t elements = (uint64_t)item->length * (item->type == SVI_MAP ? 2 : 1);
    return elements <= (uint64_t)(end - first) ? first : NULL;
}

/* Reads one key, nearly always a short string. Returns the address after it, or NULL if the form is bad. */
static const uint8_t *element_read_key(const uint8_t *at, const uint8_t *end, int depth,
                                       struct svi_item *key) {
    if (at < end && (*at & 0xe0) == 0xa0) {
        key->type = SVI_STRING;
        key->length = *at & 0x1fu;
        key->body = at + 1;
        return end - key->body >= (ptrdiff_t)key->length ? key->body + key->length : NULL;
    }
    const uint8_t *value = at;
    if (svi_walk(&value, end, depth) != SVS_OK)
        return NULL;
    svi_item_read(at, key);
    return value;
}

/* Notes one key. Keys after a bad one are not decoded (`ordered` ends), but their values still count for src,
 * n and op: a refused sample uses up its sequence number too. */
static void element_note(struct svi_element *el, const struct svi_item *key, const uint8_t *at,
                         const uint8_t *value) {
    const enum svi_key known = key->type == SVI_STRING ? key_of(key->body, key->length) : SVI_KEY_UNKNOWN;
    if (!el->bad_key) {
        if (key->type != SVI_STRING || (known < SVI_KEY_COUNT && el->seen >> known & 1)) {
            el->bad_key = at;
            el->repeated = (uint8_t)known;
        } else if (known < SVI_KEY_COUNT) {
            el->ordered[el->count] = value;
            el->keys[el->count++] = (uint8_t)known;
        }
    }
    if (known < SVI_KEY_COUNT) {
        el->value[known] = value;
        el->seen |= 1u << known;
    }
}

const uint8_t *svi_element_read(const uint8_t *at, const uint8_t *end, int depth, struct svi_element *el) {
    struct svi_item item;
    el->at = el->end = at;
    /* value, ordered and keys are not cleared: only what `seen` and `count` state is read. */
    el->count = 0;
    el->bad_key = NULL;
    el->is_map = at < end && ((*at & 0xf0) == 0x80 || *at == 0xde || *at == 0xdf);
    el->seen = 0;
    if (!el->is_map) {
        if (svi_walk(&at, end, depth) != SVS_OK)
            return NULL;
        return el->end = at;
    }
    uint32_t pairs = *at & 0x0fu; /* of a short head, the normal case */
    if ((*at & 0xf0) == 0x80)
        at++;
    else if ((at = container_head(at, end, &item)))
        pairs = item.length;
    if (!at || (pairs > 0 && depth < 1)) /* an empty container does not nest, as in svi_walk */
        return NULL;
    for (; pairs > 0; pairs--) {
        struct svi_item key;
        const uint8_t *key_at = at;
        const uint8_t *value = element_read_key(at, end, depth - 1, &key);
        /* The value is only skipped here: whether it is right is decided when its turn comes, after
         * everything that precedes it in the message. */
        at = value;
        if (!value || !svi_skip(&at, end, depth - 1))
            return NULL;
        element_note(el, &key, key_at, value);
    }
    return el->end = at;
}

/* svi_walk for one element of a batch, faster for a short map. Returns its end; NULL: its form is bad. */
static const uint8_t *element_pass(const uint8_t *at, const uint8_t *end, int depth) {
    if (at >= end || (*at & 0xf0) != 0x80 || depth < 1)
        return svi_walk(&at, end, depth) == SVS_OK ? at : NULL;
    bool good = true;
    for (unsigned left = 2 * (*at++ & 0x0fu); good && left > 0; left--)
        good = svi_skip(&at, end, depth - 1);
    return good ? at : NULL;
}

/* ---- the message */

/* Checks the form of the whole message and reads the keys of its first element. True: the form is valid. */
static bool envelope_scan(struct svi_envelope *e) {
    const uint8_t *at = e->bytes, *end = at + e->size;
    struct svi_item head = {.type = SVI_MAP};
    /* One level of the depth is the array of a batch, so its elements have one less. */
    const bool batch = e->batch = e->size > 0 && ((*at & 0xf0) == 0x90 || *at == 0xdc || *at == 0xdd);
    e->left = 1;
    if (batch) {
        if (!(at = container_head(at, end, &head)))
            return false;
        e->left = head.length;
    }
    if (e->left > 0)
        at = svi_element_read(at, end, SVI_DEPTH_MAX - batch, &e->first);
    /* The count is compared with SVI_BATCH_MAX later (svi_envelope_read): container_head has bounded it by
     * the bytes of the message. */
    for (int64_t i = 1; at && i < e->left; i++)
        at = element_pass(at, end, SVI_DEPTH_MAX - 1);
    return at && at == end;
}

const uint8_t *svi_element_columns(const struct svi_element *el, const uint8_t *before) {
    struct svi_item item;
    if (!(el->seen >> SVI_KEY_COLUMNS & 1))
        return before;
    svi_item_read(el->value[SVI_KEY_COLUMNS], &item);
    return item.type == SVI_NIL ? before : el->value[SVI_KEY_COLUMNS];
}

static void envelope_read_reply(struct svi_envelope *e) {
    struct svi_item item;
    svi_item_read(e->first.value[SVI_KEY_REPLY], &item);
    if (item.type == SVI_NIL)
        return;
    e->asked = e->first.value[SVI_KEY_REPLY];
    e->reply = svi_item_is(&item, "score") ? SVI_REPLY_SCORE : SVI_REPLY_UNKNOWN;
}

/* What the element in e->first says of the whole message. Called for {op: message}, and then for the first
 * sample: what the former states stays. */
static void envelope_read_source(struct svi_envelope *e) {
    const uint8_t *const *value = e->first.value;
    const unsigned seen = e->first.seen;
    struct svi_item item;
    double real;
    if (seen >> SVI_KEY_SRC & 1 && !e->has_src) {
        svi_item_read(value[SVI_KEY_SRC], &item);
        e->has_src = item.type != SVI_NIL;
        /* A src of another type still counts as given: a message with n is then refused for its src. */
        if (item.type == SVI_STRING) {
            e->src = (const char *)item.body;
            e->src_length = item.length;
            e->src_good = item.length >= 1 && item.length <= SVS_NAME_MAX &&
                          !memchr(e->src, 0, item.length) && svi_utf8_valid(e->src, item.length);
        }
    }
    if (seen >> SVI_KEY_N & 1 && !e->has_n) {
        svi_item_read(value[SVI_KEY_N], &item);
        e->has_n = item.type != SVI_NIL;
        /* JSON clients may send 3.0: an integral real is a number as long as it is exact. */
        e->n = item.type == SVI_INT && item.i >= 0 ? item.i : -1;
        if (item.type == SVI_REAL && svi_item_number(&item, &real) && real == trunc(real) && real >= 0 &&
            real < SVI_EXACT_MAX)
            e->n = (int64_t)real;
    }
    if (seen >> SVI_KEY_REPLY & 1 && !e->asked)
        envelope_read_reply(e);
    if (seen >> SVI_KEY_AT & 1 && !e->cursor) {
        svi_item_read(value[SVI_KEY_AT], &item);
        e->cursor = item.type == SVI_NIL ? NULL : value[SVI_KEY_AT];
    }
    e->columns = svi_element_columns(&e->first, e->columns);
    /* hello and bye are whole messages: in a batch (first.at lies after its head) they are unknown
     * operations. */
    if ((seen >> SVI_KEY_OP & 1) && e->first.at == e->bytes) {
        svi_item_read(value[SVI_KEY_OP], &item);
        e->hello = svi_item_is(&item, "hello");
        e->bye = svi_item_is(&item, "bye");
    }
}

/* Consumes {op: message} at the start of a batch: it is no sample and uses up no number. Afterwards e->first
 * is the first sample, as in a message without it. */
static void envelope_pass_message(struct svi_envelope *e) {
    const uint8_t *next = e->first.end;
    if (e->first.bad_key)
        svi_fail(&e->form, e->first.repeated != SVI_KEY_UNKNOWN ? SVS_DUPLICATE_KEY : SVS_WRONG_TYPE,
                 "the element {op: message} has a key that is %s",
                 e->first.repeated != SVI_KEY_UNKNOWN ? "a duplicate" : "not a string");
    envelope_read_source(e);
    if (--e->left > 0) /* its form was checked, so this cannot fail */
        svi_element_read(next, e->bytes + e->size, SVI_DEPTH_MAX - 1, &e->first);
}

svs_code svi_envelope_read(struct svi_envelope *e, const void *bytes, size_t size) {
    /* Field by field: `first` is large and not cleared, because the scan fills it. */
    e->bytes = bytes;
    e->size = size;
    e->form.code = SVS_OK;
    e->form.text[0] = '\0';
    e->has_src = e->has_n = e->src_good = e->hello = e->bye = e->array = false;
    e->src = "";
    e->src_length = 0;
    e->n = -1;
    e->next = e->element = e->columns = e->asked = e->cursor = NULL;
    e->reply = SVI_REPLY_PLAIN;
    e->element_size = 0;
    e->shown = NULL;
    e->shown_size = 0;
    e->left = 0;
    const bool scanned = envelope_scan(e);
    if (scanned && e->batch && e->left > 0 && svi_element_is(&e->first, SVI_KEY_OP, "message"))
        envelope_pass_message(e);
    if (!scanned) {
        /* Both passes must agree; should they not, the message is refused all the same. */
        if (svi_msgpack_check(bytes, size, SVI_DEPTH_MAX, &e->form) == SVS_OK)
            svi_fail(&e->form, SVS_NOT_MSGPACK, "the message cannot be read");
    } else if (e->left == 1 && !e->first.is_map && e->first.at == e->bytes) {
        struct svi_item item;
        svi_item_read(e->bytes, &item);
        svi_fail(&e->form, SVS_WRONG_TYPE, "the message is %s: a sample is a map, a batch an array of maps",
                 svi_item_name(&item));
    } else if (e->left > SVI_BATCH_MAX)
        svi_fail(&e->form, SVS_TOO_LARGE, "a batch of %lld elements: at most %d are accepted at once",
                 (long long)e->left, SVI_BATCH_MAX);
    /* Only where the form is valid was `first` read to its end. */
    const bool found = e->form.code == SVS_OK || e->form.code == SVS_TOO_LARGE;
    if (found && e->left > 0 && e->first.is_map)
        envelope_read_source(e);
    if (e->form.code == SVS_OK)
        return SVS_OK;
    /* src itself stays set for a batch that is too large: access control still knows the sender. */
    e->has_src = e->has_n = e->src_good = e->hello = e->bye = false;
    e->n = -1;
    e->left = 0;
    e->columns = e->asked = e->cursor = NULL;
    e->reply = SVI_REPLY_PLAIN;
    return e->form.code;
}

svs_code svi_envelope_check_source(const struct svi_envelope *e, svs_error *err) {
    if (!e->has_src && !e->has_n && !e->cursor)
        return SVS_OK;
    if (!e->has_src && !e->has_n)
        return svi_fail(err, SVS_MISSING_SOURCE,
                        "the message has at but neither src nor n: a cursor is kept with its source");
    if (!svi_envelope_numbered(e))
        return svi_fail(err, SVS_MISSING_SOURCE, "the sample has %s: acknowledged input needs both",
                        e->has_src ? "src but no n" : "n but no src");
    if (!e->src_good)
        return svi_fail(err, SVS_MISSING_SOURCE, "src must be a name of 1 to %d bytes of UTF-8",
                        SVS_NAME_MAX);
    if (e->n < 0)
        return svi_fail(err, SVS_MISSING_SOURCE, "n must be a whole number from 0");
    return SVS_OK;
}

svs_code svi_envelope_cursor(const struct svi_envelope *e, const uint8_t **bytes, size_t *size, bool *text,
                             svs_error *err) {
    struct svi_item item;
    *size = 0;
    *text = false;
    if (!e->cursor)
        return SVS_OK;
    svi_item_read(e->cursor, &item);
    *text = item.type == SVI_STRING;
    if (!*text && item.type != SVI_BIN)
        return svi_fail(err, SVS_BAD_CURSOR, "at is %s: it must be bin or a string", svi_item_name(&item));
    if (item.length > SVS_NAME_MAX)
        return svi_fail(err, SVS_BAD_CURSOR, "at has %u bytes: at most %d are allowed", item.length,
                        SVS_NAME_MAX);
    if (*text && !svi_utf8_valid((const char *)item.body, item.length))
        return svi_fail(err, SVS_BAD_CURSOR, "at is a string that is not UTF-8: send it as bin");
    *bytes = item.body;
    *size = item.length;
    return SVS_OK;
}

svs_code svi_envelope_check_reply(const struct svi_envelope *e, svs_error *err) {
    struct svi_item item;
    char text[40];
    if (e->reply == SVI_REPLY_WITHHELD)
        return svi_fail(err, SVS_LIMIT, "replies with scores wait to be read: read them first");
    if (e->reply != SVI_REPLY_UNKNOWN)
        return SVS_OK;
    svi_item_read(e->asked, &item);
    if (item.type != SVI_STRING)
        return svi_fail(err, SVS_WRONG_TYPE, "reply is %s: it must be \"score\"", svi_item_name(&item));
    return svi_fail(err, SVS_WRONG_TYPE, "reply is \"%s\": it must be \"score\"",
                    svi_escape(text, sizeof text, (const char *)item.body, item.length));
}

void svi_envelope_peek(struct svi_envelope *e) {
    if (e->next) /* its form was checked, so this cannot fail */
        svi_element_read(e->next, e->bytes + e->size, SVI_DEPTH_MAX - 1, &e->first);
    e->next = NULL;
}

void svi_envelope_pass(struct svi_envelope *e) {
    svi_envelope_peek(e);
    e->columns = svi_element_columns(&e->first, e->columns);
    e->element = e->first.at;
    e->element_size = (size_t)(e->first.end - e->first.at);
    e->next = e->first.end;
    e->left--;
}

svs_code svi_item_key(const struct svi_item *item, char *out, svs_error *err) {
    out[0] = '\0';
    switch (item->type) {
    case SVI_NIL:
        return SVS_OK;
    case SVI_INT:
        snprintf(out, SVS_KEY_MAX + 1, "%lld", (long long)item->i);
        return SVS_OK;
    case SVI_STRING:
        if (item->length > SVS_KEY_MAX)
            return svi_fail(err, SVS_BAD_KEY, "key is a string of %u bytes: at most %d are allowed",
                            item->length, SVS_KEY_MAX);
        if (memchr(item->body, 0, item->length) || !svi_utf8_valid((const char *)item->body, item->length))
            return svi_fail(err, SVS_BAD_KEY, "key is not valid UTF-8 text");
        memcpy(out, item->body, item->length);
        out[item->length] = '\0';
        return SVS_OK;
    default:
        return svi_fail(err, SVS_BAD_KEY, "key is %s: it must be a string or an integer (below 2^63)",
                        svi_item_name(item));
    }
}

/* The value of a key; nil if it is absent. */
static struct svi_item element_item(const struct svi_element *el, enum svi_key key) {
    struct svi_item item = {.type = SVI_NIL};
    if (svi_element_has(el, key))
        svi_item_read(el->value[key], &item);
    return item;
}

bool svi_element_is(const struct svi_element *el, enum svi_key key, const char *text) {
    const struct svi_item item = element_item(el, key);
    return svi_item_is(&item, text);
}

void svi_element_leave_out(struct svi_element *el, enum svi_key key) {
    int kept = 0;
    for (int i = 0; i < el->count; i++) /* the others keep their order, which decides about errors */
        if (el->keys[i] != key) {
            el->ordered[kept] = el->ordered[i];
            el->keys[kept++] = el->keys[i];
        }
    el->count = (uint8_t)kept;
    el->seen &= ~(1u << key);
}

bool svi_element_states(const struct svi_element *el, enum svi_key key) {
    return element_item(el, key).type != SVI_NIL;
}

bool svi_element_only_names(const struct svi_element *el) {
    return svi_element_states(el, SVI_KEY_COLUMNS) && !svi_element_states(el, SVI_KEY_X) &&
           (!svi_element_states(el, SVI_KEY_OP) || svi_element_is(el, SVI_KEY_OP, "learn"));
}

svs_code svi_element_key(const struct svi_element *el, char *out, svs_error *err) {
    const struct svi_item item = element_item(el, SVI_KEY_KEY);
    return svi_item_key(&item, out, err);
}
