/* Entries of a log on their way to a process.
 *
 * An entry becomes a message without being decoded: an element {op: message} with the source, the number and
 * the place in the log precedes its elements, which stay the bytes that they are. If the entry begins
 * with such an element itself, that one is replaced, and the columns that it names are kept.
 *
 * The number is written when the message is sent, at a fixed place and with a fixed length, because an entry
 * that the process refuses as a whole uses up no number: those after it move up.
 *
 * In JSON only the commas between elements are counted. The process parses the text, and may refuse it. */
#include "partition_entries.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "wire/envelope.h"
#include "wire/json.h"
#include "wire/json_message.h"
#include "wire/pack.h"

#define JSON_DIGITS 20 /* places for the number, blanks included */
#define LEAD_UINT64 0xcf

/* Makes an entry of three parts, of which the second is what the log had. */
static struct partition_entry *entry_join(const struct svi_bytes *head, const void *body, size_t size,
                                          const char *tail, svs_error *err) {
    const size_t closing = strlen(tail), whole = head->size + size + closing;
    struct partition_entry *e = svi_alloc_plain(sizeof *e + whole);
    if (!e) {
        svi_fail_memory(err, "an entry of the log");
        return NULL;
    }
    *e = (struct partition_entry){.size = whole};
    memcpy(e->bytes, head->data, head->size);
    memcpy(e->bytes + head->size, body, size);
    memcpy(e->bytes + head->size + size, tail, closing);
    return e;
}

/* ---- msgpack */

/* The array of all elements and the first of them. *number: offset of the 8 bytes of the number. */
static svs_code entry_head(int64_t count, const uint8_t *columns, const uint8_t *end, const void *at,
                           size_t at_size, size_t *number, struct svi_bytes *head) {
    struct svi_pack p;
    uint8_t word[9];
    svi_pack_begin(&p, head);
    svi_pack_array(&p, (size_t)count + 1);
    svi_pack_map(&p, 3u + (at_size > 0) + (columns != NULL));
    svi_put_text(&p, "op", "message");
    svi_put_text(&p, "src", PARTITION_SOURCE);
    svi_pack_key(&p, "n");
    *number = head->size + 1;
    svi_pack_store_word(word, LEAD_UINT64, 0);
    svi_pack_raw(&p, word, sizeof word);
    if (at_size > 0)
        svi_pack_key(&p, "at");
    if (at_size > 0 && svi_utf8_valid(at, at_size))
        svi_pack_string(&p, at, at_size);
    else if (at_size > 0)
        svi_pack_bin(&p, at, at_size);
    if (columns) {
        const uint8_t *after = columns;
        svi_walk(&after, end, SVI_DEPTH_MAX); /* its form was checked */
        svi_pack_key(&p, "columns");
        svi_pack_raw(&p, columns, (size_t)(after - columns));
    }
    return svi_pack_end(&p);
}

static struct partition_entry *entry_of_msgpack(const void *bytes, size_t size, const void *at,
                                                size_t at_size, struct svi_bytes *head, svs_error *err) {
    struct svi_envelope env;
    struct svi_item item;
    size_t number;
    if (svi_envelope_read(&env, bytes, size) != SVS_OK) {
        *err = env.form;
        return NULL;
    }
    if (env.left == 0) {
        svi_fail(err, SVS_EMPTY, "the entry has no sample");
        return NULL;
    }
    svi_item_read(bytes, &item);
    const bool headed = env.batch && item.body != env.first.at; /* by an {op: message} of its own */
    const uint8_t *end = env.bytes + size;
    if (entry_head(env.left, headed ? env.columns : NULL, end, at, at_size, &number, head) != SVS_OK) {
        svi_fail_memory(err, "an entry of the log");
        return NULL;
    }
    struct partition_entry *e = entry_join(head, env.first.at, (size_t)(end - env.first.at), "", err);
    if (e) {
        e->count = env.left;
        e->number = number;
    }
    return e;
}

/* ---- JSON */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Elements of the text after the bracket of an array, up to the end of that array: the commas at its own
 * depth. 0: it is empty. */
static int64_t entry_elements(const char *text, size_t size) {
    int64_t commas = 0;
    int depth = 0;
    bool quoted = false, any = false;
    for (size_t i = 0; i < size; i++) {
        const char c = text[i];
        if (quoted) {
            i += c == '\\'; /* what is escaped ends no string */
            quoted = c != '"';
            continue;
        }
        quoted = c == '"';
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        if (depth < 0)
            break;
        commas += c == ',' && depth == 0;
        any = any || !is_blank(c);
    }
    return any ? commas + 1 : 0;
}

/* Is the first element of the array {op: message}? *inside: offset after its bracket. */
static bool entry_headed(const char *text, size_t size, size_t *inside) {
    static const char *const tokens[] = {"\"op\"", ":", "\"message\""};
    size_t i = 0;
    int depth = 0, found = 0;
    while (i < size && is_blank(text[i]))
        i++;
    if (i == size || text[i] != '{')
        return false;
    *inside = i + 1;
    for (; i < size && found < 3; i++) {
        const size_t length = strlen(tokens[found]);
        if (is_blank(text[i]))
            continue;
        if (depth == 1 && size - i >= length && memcmp(text + i, tokens[found], length) == 0) {
            found++;
            i += length - 1;
            continue;
        }
        found = 0;
        if (text[i] == '"') /* to the end of another string */
            for (i++; i < size && text[i] != '"'; i++)
                i += text[i] == '\\';
        depth += i < size ? (text[i] == '{' || text[i] == '[') - (text[i] == '}' || text[i] == ']') : 0;
        if (depth == 0)
            return false;
    }
    return found == 3;
}

/* The array of all elements and, up to its last key or closed, the first of them. *number: offset of the
 * blanks for the number. */
static svs_code entry_begin_json(bool headed, const char *at, size_t at_size, size_t *number,
                                 struct svi_bytes *head) {
    SVI_TRY(svi_json_text(head, headed ? "[{" : "[{\"op\":\"message\","));
    SVI_TRY(svi_json_text(head, "\"src\":\"" PARTITION_SOURCE "\",\"n\":"));
    *number = head->size;
    SVI_TRY(svi_json_text(head, "                    ")); /* JSON_DIGITS */
    if (at_size > 0) {
        SVI_TRY(svi_json_text(head, ",\"at\":"));
        SVI_TRY(svi_json_string(head, at, at_size));
    }
    return svi_json_text(head, headed ? "," : "},");
}

static struct partition_entry *entry_of_json(const char *text, size_t size, const char *at, size_t at_size,
                                             struct svi_bytes *head, svs_error *err) {
    size_t number, inside = 0;
    while (size > 0 && is_blank(*text)) {
        text++;
        size--;
    }
    const bool batch = *text == '[', headed = batch && entry_headed(text + 1, size - 1, &inside);
    const int64_t count = entry_elements(text + batch, size - batch) - headed;
    if (count == 0 || !svi_utf8_valid(at, at_size)) {
        svi_fail(err, count == 0 ? SVS_EMPTY : SVS_BAD_CURSOR,
                 count == 0 ? "the entry has no sample" : "the place of an entry in JSON must be UTF-8");
        return NULL;
    }
    if (entry_begin_json(headed, at, at_size, &number, head) != SVS_OK) {
        svi_fail_memory(err, "an entry of the log");
        return NULL;
    }
    const size_t skipped = batch + inside * headed;
    struct partition_entry *e = entry_join(head, text + skipped, size - skipped, batch ? "" : "]", err);
    if (e) {
        e->count = count;
        e->number = number;
        e->json = true;
    }
    return e;
}

struct partition_entry *partition_entry_new(const void *bytes, size_t size, const void *at, size_t at_size,
                                            int64_t largest, svs_error *err) {
    struct svi_bytes head = {0};
    if (at_size > SVS_NAME_MAX) {
        svi_fail(err, SVS_BAD_CURSOR, "the place of an entry has %zu bytes: at most %d are allowed", at_size,
                 SVS_NAME_MAX);
        return NULL;
    }
    struct partition_entry *e = svi_json_begins(bytes, size)
                                    ? entry_of_json(bytes, size, at, at_size, &head, err)
                                    : entry_of_msgpack(bytes, size, at, at_size, &head, err);
    svi_bytes_clear(&head);
    if (e && largest > 0 && e->size > (uint64_t)largest) {
        svi_fail(err, SVS_TOO_LARGE,
                 "the entry has %zu bytes as a message, and the stream takes %" PRId64
                 " (max.message): larger entries need a larger max.message",
                 e->size, largest);
        svi_free(e);
        return NULL;
    }
    if (!e)
        return NULL;
    e->at_size = (unsigned char)at_size;
    if (at_size > 0)
        memcpy(e->at, at, at_size);
    return e;
}

/* ---- the queue */

void partition_entries_add(struct partition_entries *q, struct partition_entry *e) {
    e->following = NULL;
    e->n = q->next;
    q->next += e->count;
    *(q->last ? &q->last->following : &q->first) = e;
    q->last = e;
    q->unsent = q->unsent ? q->unsent : e;
    q->count++;
    q->bytes += e->size;
}

const struct partition_entry *partition_entries_ready(struct partition_entries *q) {
    struct partition_entry *e = q->unsent;
    if (e && e->json) {
        char digits[JSON_DIGITS + 1];
        snprintf(digits, sizeof digits, "%-*" PRId64, JSON_DIGITS, e->n);
        memcpy(e->bytes + e->number, digits, JSON_DIGITS);
    } else if (e) {
        const uint64_t bits = htobe64((uint64_t)e->n);
        memcpy(e->bytes + e->number, &bits, sizeof bits);
    }
    return e;
}

void partition_entries_sent(struct partition_entries *q) {
    q->unsent = q->unsent->following;
    q->flying++;
}

struct partition_entry *partition_entries_pop(struct partition_entries *q) {
    struct partition_entry *e = q->first;
    if (q->unsent == e)
        q->unsent = e->following;
    else
        q->flying--;
    q->first = e->following;
    if (!q->first)
        q->last = NULL;
    q->count--;
    q->bytes -= e->size;
    return e;
}

void partition_entries_rewind(struct partition_entries *q, int64_t n) {
    q->unsent = q->first;
    q->flying = 0;
    for (struct partition_entry *e = q->first; e; e = e->following) {
        e->n = n;
        n += e->count;
    }
    q->next = n;
}

void partition_entries_clear(struct partition_entries *q, int64_t n) {
    while (q->first)
        svi_free(partition_entries_pop(q));
    *q = (struct partition_entries){.next = n};
}
