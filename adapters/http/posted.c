/* Replies of a stream to the messages of one request, and the answer made of them.
 *
 * http_posted_replied is the entry; read it first. It runs once for each message, counts what its reply
 * states (posted_add_reply), and after the last one answers and frees the request (posted_finish). Messages
 * go out in order over one connection, so the n-th reply belongs to the n-th message that was sent.
 *
 * An element of `scores` is a duplicate, an error, or accepted. Without scores the stream's own count of
 * refused elements is what is known. Scores stay in the form in which they arrive, JSON or msgpack, and are
 * joined without being decoded: a body may have 262,144 rows.
 *
 * Uncertainty is reported: after a break or a silence nobody knows whether the rows were
 * taken. Only a client that numbers its rows can then send them again without having them twice. */
#include "posted.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/json_in.h"
#include "wire/json.h"
#include "wire/json_value.h"
#include "wire/pack.h"

void http_posted_free(struct posted *p) {
    svi_bytes_clear(&p->scores);
    svi_bytes_clear(&p->no_scores);
    svi_free(p->counts);
    svi_free(p);
}

/* The client has left. The replies are still awaited, as they refer to `p`, but none of them is answered. */
void http_posted_left(void *user) {
    struct posted *p = user;
    p->x = NULL;
}

/* ---- replies */

/* What a reply states, from either form of it. */
struct posted_reply {
    bool ok, has_scores;
    int64_t refused;
    char code[40], reason[400];
};

static void posted_text(struct svi_span raw, char *out, size_t size) {
    struct svi_span text = raw;
    char scratch[400];
    if (!svi_json_unescape(raw, scratch, sizeof scratch, &text))
        text.end = text.at;
    snprintf(out, size, "%.*s", (int)(text.end - text.at), text.at);
}

/* Without memory for them the answer has no scores. */
static void posted_keep(struct posted *p, const void *bytes, size_t size) {
    p->scoreless = p->scoreless || svi_bytes_append(&p->scores, bytes, size) != SVS_OK;
}

/* Counts an element of `scores` by its first key. True: it is the first that is refused. */
static bool posted_count(struct posted *p, const char *key, size_t length) {
    const bool refused = length == 5 && memcmp(key, "error", 5) == 0;
    /* The stream writes `error` and `duplicate` as first keys, so no element has to be searched. */
    if (length == 9 && memcmp(key, "duplicate", 9) == 0)
        p->duplicates++;
    else if (!refused)
        p->accepted++;
    p->refused += refused;
    p->score_count++;
    return refused && p->refused == 1;
}

/* Keeps the text `value` if it is the code or the reason of a refusal. */
static void posted_note_json(struct svi_span key, const char *value, struct posted_reply *r) {
    const size_t length = (size_t)(key.end - key.at);
    struct svi_span raw;
    svi_json_string_at(value, &raw);
    if (length == 4 && memcmp(key.at, "code", 4) == 0)
        posted_text(raw, r->code, sizeof r->code);
    else if (length == 5 && memcmp(key.at, "error", 5) == 0)
        posted_text(raw, r->reason, sizeof r->reason);
}

static void posted_reason_json(const char *object, struct posted_reply *r) {
    for (const char *at = svi_json_first(object); at;) {
        struct svi_span key;
        const char *value = svi_json_key(at, &key);
        if (svi_json_type(value) == SVI_JSON_STRING)
            posted_note_json(key, value, r);
        at = svi_json_next(svi_json_skip(value));
    }
}

/* Returns the end of the array. It is long: each element is walked over once. The reply to op score has
 * reasons in its elements alone. */
static const char *posted_scores_json(struct posted *p, const char *array, struct posted_reply *r) {
    const char *const begin = svi_json_first(array), *end = begin;
    for (const char *e = begin; e; e = svi_json_next(end)) {
        struct svi_span key = {"", ""};
        const char *first = svi_json_type(e) == SVI_JSON_OBJECT ? svi_json_first(e) : NULL;
        if (first)
            svi_json_key(first, &key);
        /* The reply's own code, where it precedes the scores, is more general and stays. */
        if (posted_count(p, key.at, (size_t)(key.end - key.at)) && !*r->code)
            posted_reason_json(e, r);
        end = svi_json_skip(e);
    }
    if (!begin)
        return svi_json_skip(array);
    /* The elements of this reply continue the list of those before it, so its brackets are left out. */
    if (p->scores.size > 0)
        posted_keep(p, ",", 1);
    posted_keep(p, begin, (size_t)(end - begin));
    /* The text was checked: after the last element there is nothing but blanks and the bracket. */
    while (*end != ']')
        end++;
    return end + 1;
}

/* The reply was made by the stream's own writer; it is checked all the same, as whatever a socket delivers.
 */
static bool posted_read_json(struct posted *p, const void *reply, size_t size, struct posted_reply *r) {
    static const char zeros[32];
    struct svi_bytes copy = {0};
    svs_error err;
    /* The checks look at bytes after the text, so the copy ends in zeros. They come first: the walk below has
     * no bounds of its own. */
    bool good = svi_bytes_append(&copy, reply, size) == SVS_OK &&
                svi_bytes_append(&copy, zeros, sizeof zeros) == SVS_OK;
    const char *text = (const char *)copy.data;
    good = good &&
           svi_json_check_value((struct svi_span){text, text + size}, SVI_JSON_DEPTH, &err) == SVS_OK &&
           svi_json_type(text) == SVI_JSON_OBJECT;
    for (const char *at = good ? svi_json_first(text) : NULL; at;) {
        struct svi_span key;
        /* `end` spares the long array of scores a second walk. */
        const char *value = svi_json_key(at, &key), *end = NULL;
        const size_t length = (size_t)(key.end - key.at);
        const enum svi_json_type type = svi_json_type(value);
        if (type == SVI_JSON_STRING)
            posted_note_json(key, value, r);
        if (length == 2 && memcmp(key.at, "ok", 2) == 0)
            r->ok = type == SVI_JSON_TRUE;
        else if (length == 7 && memcmp(key.at, "refused", 7) == 0 && type == SVI_JSON_NUMBER)
            r->refused = strtoll(value, NULL, 10);
        else if (length == 6 && memcmp(key.at, "scores", 6) == 0 && type == SVI_JSON_ARRAY) {
            r->has_scores = true;
            end = posted_scores_json(p, value, r);
        } else if (length == 9 && memcmp(key.at, "no_scores", 9) == 0 && p->no_scores.size == 0)
            svi_bytes_append(&p->no_scores, value, (size_t)(svi_json_skip(value) - value));
        at = svi_json_next(end ? end : svi_json_skip(value));
    }
    svi_bytes_clear(&copy);
    return good;
}

/* To a message in JSON it can be no more than a refusal: scores are passed on in their form. */
static bool posted_read_msgpack(struct posted *p, const void *reply, size_t size, struct posted_reply *r) {
    const struct svi_view map = svi_view_of(reply, size), none = svi_view_key(map, "no_scores");
    struct svi_view scores = svi_view_key(map, "scores"), element;
    int64_t left = -1;
    if (p->json && (scores.at || none.at))
        return false;
    r->ok = svi_view_true(map, "ok");
    r->refused = svi_view_integer(map, "refused", 0);
    svi_view_text(map, "code", r->code, sizeof r->code);
    svi_view_text(map, "error", r->reason, sizeof r->reason);
    r->has_scores = scores.at;
    while (svi_view_next(&scores, &left, &element)) {
        struct svi_item head = svi_view_item(element), key = {.type = SVI_NIL};
        if (head.type == SVI_MAP && head.length > 0)
            svi_item_read(head.body, &key);
        if (posted_count(p, (const char *)key.body, key.type == SVI_STRING ? key.length : 0) && !*r->code) {
            svi_view_text(element, "code", r->code, sizeof r->code);
            svi_view_text(element, "error", r->reason, sizeof r->reason);
        }
        posted_keep(p, element.at, (size_t)(element.end - element.at));
    }
    if (none.at && p->no_scores.size == 0)
        svi_bytes_append(&p->no_scores, none.at, (size_t)(none.end - none.at));
    return true;
}

/* ---- the answer */

/* The counts and scores as JSON text or msgpack, in the form of the messages. */
static const char *posted_list(const struct posted *p) {
    return p->kind == POSTED_CHANGES ? "results" : "scores";
}

static svs_code posted_make_json(const struct posted *p, struct svi_bytes *out) {
    char text[300], delivery[24];
    /* With this capacity nothing below can fail. */
    SVI_TRY(svi_bytes_reserve(out, p->scores.size + p->no_scores.size + 4096));
    if (p->kind == POSTED_PREDICT) {
        snprintf(text, sizeof text, "{\"scored\":%" PRId64 ",\"refused\":%" PRId64, p->accepted, p->refused);
        svi_json_text(out, text);
    } else {
        snprintf(text, sizeof text,
                 "{\"accepted\":%" PRId64 ",\"refused\":%" PRId64 ",\"duplicates\":%" PRId64
                 ",\"acknowledged\":true,\"delivery\":",
                 p->accepted, p->refused, p->duplicates);
        svi_json_text(out, text);
        http_stream_delivery(p->stream, delivery);
        svi_json_string(out, delivery, strlen(delivery));
    }
    if (*p->code) {
        svi_json_text(out, ",\"code\":");
        svi_json_string(out, p->code, strlen(p->code));
        svi_json_text(out, ",\"error\":");
        svi_json_string(out, p->reason, strlen(p->reason));
    }
    if (p->scored && !p->scoreless) {
        snprintf(text, sizeof text, ",\"%s\":[", posted_list(p));
        svi_json_text(out, text);
        svi_bytes_append(out, p->scores.data, p->scores.size);
        svi_json_text(out, "]");
    }
    if (p->no_scores.size > 0) {
        svi_json_text(out, ",\"no_scores\":");
        svi_bytes_append(out, p->no_scores.data, p->no_scores.size);
    } else if (p->scoreless)
        svi_json_text(out, ",\"no_scores\":{\"error\":\"no memory for them\",\"code\":\"no_memory\"}");
    return svi_json_text(out, "}\n");
}

static svs_code posted_make_msgpack(const struct posted *p, struct svi_bytes *out) {
    struct svi_pack pack;
    char delivery[24];
    svi_pack_begin(&pack, out);
    const struct svi_open_map map = svi_pack_open(&pack);
    svi_put_int(&pack, p->kind == POSTED_PREDICT ? "scored" : "accepted", p->accepted);
    svi_put_int(&pack, "refused", p->refused);
    if (p->kind != POSTED_PREDICT) {
        svi_put_int(&pack, "duplicates", p->duplicates);
        svi_put_bool(&pack, "acknowledged", true);
        svi_put_text(&pack, "delivery", http_stream_delivery(p->stream, delivery));
    }
    if (*p->code) {
        svi_put_text(&pack, "code", p->code);
        svi_put_text(&pack, "error", p->reason);
    }
    if (p->scored && !p->scoreless) {
        svi_put_array(&pack, posted_list(p), (size_t)p->score_count);
        svi_pack_raw(&pack, p->scores.data, p->scores.size);
    }
    if (p->no_scores.size > 0) {
        svi_pack_key(&pack, "no_scores");
        svi_pack_raw(&pack, p->no_scores.data, p->no_scores.size);
    } else if (p->scoreless) {
        svi_pack_key(&pack, "no_scores");
        const struct svi_open_map none = svi_pack_open(&pack);
        svi_put_text(&pack, "error", "no memory for them");
        svi_put_text(&pack, "code", "no_memory");
        svi_pack_close(&pack, none);
    }
    svi_pack_close(&pack, map);
    return svi_pack_end(&pack);
}

/* The messages and their replies are JSON or msgpack, as the body was; the client may want the other. */
void http_posted_answer(struct posted *p) {
    const char *type =
        http_exchange_accepts(p->x, "application/json, application/msgpack, application/x-msgpack");
    /* No acceptable type at all still gets JSON: the rows were taken, which an answer 406 would hide. */
    const bool wants_json = !type || strcmp(type, "application/json") == 0;
    struct svi_bytes out = {0}, other = {0};
    struct svi_pack pack;
    /* The answer is made in the form of the scores first, and converted as a whole where the client wants the
     * other one. */
    svs_code code = p->json ? posted_make_json(p, &out) : posted_make_msgpack(p, &out);
    if (code == SVS_OK && p->json && !wants_json) {
        svi_pack_begin(&pack, &other);
        code = svi_bytes_append(&out, "", 1);
        if (code == SVS_OK)
            code = svi_pack_json(&pack, (const char *)out.data, NULL);
        if (code == SVS_OK)
            code = svi_pack_end(&pack);
    } else if (code == SVS_OK && !p->json && wants_json) {
        code = svi_json_msgpack(&other, out.data, out.size, NULL);
    }
    const struct svi_bytes *text = p->json != wants_json ? &other : &out;
    /* The problem says that the rows were taken: a client that repeats them would have them twice. */
    if (code == SVS_OK)
        http_exchange_answer(p->x, 200, type ? type : "application/json", text->data, text->size);
    else
        http_exchange_problem(p->x, 503, "no_memory",
                              "the rows were taken; there is no memory for the answer");
    svi_bytes_clear(&out);
    svi_bytes_clear(&other);
}

/* What to do where it is not known whether rows were taken. */
static const char *posted_advice(const struct posted *p) {
    return p->kind == POSTED_PREDICT ? "there is no prediction; ask again"
           : p->n >= 0
               ? "it is not known whether they were taken; send all again with the same src and n: "
                 "what was taken is not taken twice"
               : "it is not known whether they were taken; rows that are numbered (?src=NAME&n=0) can "
                 "be sent again safely";
}

/* What became of the rows whose messages were answered, in front of what is wrong with the rest. */
static void posted_known(const struct posted *p, char *out, size_t size) {
    out[0] = '\0';
    if (p->accepted + p->duplicates > 0)
        snprintf(out, size, "%" PRId64 " of %" PRId64 " rows were taken (%" PRId64 " of them before); ",
                 p->accepted + p->duplicates, p->rows, p->duplicates);
}

/* The worst that happened decides: rows of unknown fate, then rows that were not sent, then a refusal. */
static void posted_failed(struct posted *p) {
    char before[120];
    posted_known(p, before, sizeof before);
    const char *rest = *before ? "the other rows" : "the rows";
    if (p->uncertain > 0)
        http_exchange_problem(p->x, p->why == http_why_timeout ? 504 : 503, "no_answer",
                              "%s%s; of %" PRId64 " rows %s", before, p->why, p->uncertain, posted_advice(p));
    else if (p->why) {
        http_exchange_add(p->x, "Retry-After", "1");
        http_exchange_problem(p->x, 503, p->why == http_why_absent ? "not_there" : "busy",
                              "%s%s: %s were not sent", before, p->why, rest);
    } else {
        /* A stream at its limit accepts the same rows later. 503 makes clients repeat them; 4xx would not. */
        const bool later = http_relay_temporary(p->code) || strcmp(p->code, "limit") == 0;
        if (later)
            http_exchange_add(p->x, "Retry-After", "5");
        http_exchange_problem(p->x, later ? 503 : http_relay_status(p->code), p->code,
                              "%s%s were refused: %s", before, rest, p->reason);
    }
}

void http_posted_refuse(struct posted *p, const char *why) {
    p->why = why;
    posted_failed(p);
}

/* One row that was accepted makes the answer a success with counts; a client would repeat all rows otherwise.
 */
static void posted_finish(struct posted *p) {
    if (p->x && (p->why || p->whole))
        posted_failed(p);
    else if (p->x && p->accepted == 0 && p->duplicates == 0 && p->refused > 0)
        http_exchange_problem(p->x, http_relay_status(p->code) == 413 ? 413 : 422, p->code, "%s%s",
                              p->refused > 1 ? "all rows were refused, for example: " : "", p->reason);
    else if (p->x)
        http_posted_answer(p);
    http_posted_free(p);
}

/* A reply that cannot be read leaves as uncertain what was taken as none at all. */
static const char posted_unreadable[] = "the reply of the stream could not be read";

static void posted_add_reply(struct posted *p, int64_t rows, const void *reply, size_t size) {
    struct posted_reply r = {0};
    const uint8_t *bytes = reply;
    /* No map of msgpack begins with these bytes, so the reply itself states its form. */
    const bool json = size > 0 && (*bytes == '{' || *bytes == '[');
    if (!(json ? posted_read_json(p, reply, size, &r) : posted_read_msgpack(p, reply, size, &r))) {
        p->why = posted_unreadable;
        p->uncertain += rows;
        return;
    }
    /* Scores have been counted element by element. A reply without them has counts of its own, or refuses
     * all. */
    const bool whole = !r.has_scores && !r.ok;
    p->scored = p->scored || r.has_scores;
    if (!r.has_scores) {
        p->refused += r.ok ? r.refused : rows;
        p->accepted += r.ok ? rows - r.refused : 0;
    }
    /* Why a whole message was refused says more than why a row was. */
    if (*r.code && (!*p->code || (whole && !p->whole))) {
        snprintf(p->code, sizeof p->code, "%s", r.code);
        snprintf(p->reason, sizeof p->reason, "%s", r.reason);
    }
    p->whole = p->whole || whole;
}

/* A message that could not be sent fails at once, before the replies to those that were. */
void http_posted_replied(void *user, const void *reply, size_t size, const char *why) {
    /* Not sent: no reply is due, and `replied` must not advance, or replies would be matched with wrong rows.
     */
    struct posted *p = user;
    if (why == http_why_full || why == http_why_absent) {
        p->why = p->why ? p->why : why;
        p->unsent++;
    } else {
        const int64_t rows = p->counts[p->replied++];
        /* These three leave open whether the stream took the rows. A reason of that kind replaces a milder
         * one. */
        const bool uncertain = why == http_why_timeout || why == http_why_broken || why == http_why_foreign;
        if (!why)
            posted_add_reply(p, rows, reply, size);
        else if (uncertain || !p->why)
            p->why = p->uncertain > 0 ? p->why : why;
        p->uncertain += uncertain ? rows : 0;
    }
    /* The last message frees `p`: nothing may follow. */
    if (p->replied + p->unsent == p->messages)
        posted_finish(p);
}
