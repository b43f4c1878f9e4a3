/* POST /samples, /predict, /labels and /forget: rows to the stream, acknowledged as its own delivery level
 * states, or only scored. What the replies make of them is in posted.c.
 *
 * Read the handlers first (http_samples_, each at the end of its part). A handler reads the body,
 * makes a struct posted, finds the source, and dispatches by the stream's in.mode. First
 * posted_send counts the messages and checks that all of them fit, because a request that stops in
 * the middle leaves the client with half its rows. Then it hands all over at once, in order.
 *
 * Rows become one message, or several where they are too many or too large for one. The first
 * element of each message of samples is {op: message}. It asks for the scores, and states `src` and
 * `n` where the client numbers its rows. Labels and removals become elements of msgpack here,
 * whatever the form of the body, and then take the way of samples. Predictions go to ctl, as they
 * change nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <svmstream/svmstream.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "handlers.h"
#include "posted.h"
#include "sample_rows.h"
#include "wire/json.h"
#include "wire/json_value.h"
#include "wire/fields.h"
#include "wire/pack.h"

#define SECONDS    30.0
#define GRACE      2.0
#define ROWS_MAX   65000 /* of a message; a stream takes 65536 elements */
#define PREFIX_MAX 512   /* bytes, without columns */
#define CHANGES    65536 /* labels or removals of a body: each is taken apart here */

/* ---- messages */

/* The element that concerns the message, in front of the rows. */
static svs_code posted_prefix_json(const struct posted *p, const struct http_rows_part *part,
                                   struct svi_bytes *out) {
    char number[40];
    SVI_TRY(svi_json_text(out, "[{\"op\":\"message\""));
    if (p->with_scores)
        SVI_TRY(svi_json_text(out, ",\"reply\":\"score\""));
    if (*p->src) {
        SVI_TRY(svi_json_text(out, ",\"src\":"));
        SVI_TRY(svi_json_string(out, p->src, strlen(p->src)));
        snprintf(number, sizeof number, ",\"n\":%" PRId64, p->n + part->first);
        SVI_TRY(svi_json_text(out, number));
    }
    if (part->columns) {
        SVI_TRY(svi_json_text(out, ",\"columns\":"));
        SVI_TRY(svi_bytes_append(out, part->columns, part->columns_size));
    }
    return svi_json_text(out, "},");
}

static svs_code posted_prefix_msgpack(const struct posted *p, const struct http_rows_part *part,
                                      struct svi_bytes *out) {
    struct svi_pack pack;
    svi_pack_begin(&pack, out);
    /* msgpack states its length in advance: this element and the rows that the caller appends. */
    svi_pack_array(&pack, (size_t)part->count + 1);
    const struct svi_open_map map = svi_pack_open(&pack);
    svi_put_text(&pack, "op", "message");
    if (p->with_scores)
        svi_put_text(&pack, "reply", "score");
    if (*p->src) {
        svi_put_text(&pack, "src", p->src);
        svi_put_int(&pack, "n", p->n + part->first);
    }
    if (part->columns) {
        svi_pack_key(&pack, "columns");
        svi_pack_raw(&pack, part->columns, part->columns_size);
    }
    svi_pack_close(&pack, map);
    return svi_pack_end(&pack);
}

/* A request to score the rows. The rows were checked: they cannot end the array that they are in. {op:
 * message} is needed for columns only. */
static svs_code posted_question(const struct posted *p, const struct http_rows_part *part,
                                struct svi_bytes *out) {
    struct svi_pack pack;
    if (p->json) {
        SVI_TRY(svi_json_text(out, "{\"op\":\"score\""));
        if (p->keyed) {
            SVI_TRY(svi_json_text(out, ",\"key\":"));
            SVI_TRY(svi_json_string(out, p->src, strlen(p->src)));
        }
        SVI_TRY(svi_json_text(out, ",\"sample\":["));
        if (part->columns) {
            SVI_TRY(svi_json_text(out, "{\"op\":\"message\",\"columns\":"));
            SVI_TRY(svi_bytes_append(out, part->columns, part->columns_size));
            SVI_TRY(svi_json_text(out, "},"));
        }
        SVI_TRY(svi_bytes_append(out, part->at, part->size));
        return svi_json_text(out, "]}");
    }
    svi_pack_begin(&pack, out);
    const struct svi_open_map map = svi_pack_open(&pack);
    svi_put_text(&pack, "op", "score");
    if (p->keyed)
        svi_put_text(&pack, "key", p->src);
    /* The length is that of the rows, which follow as bytes, and of {op: message} where it is needed. */
    svi_put_array(&pack, "sample", (size_t)part->count + (part->columns != NULL));
    if (part->columns) {
        const struct svi_open_map head = svi_pack_open(&pack);
        svi_put_text(&pack, "op", "message");
        svi_pack_key(&pack, "columns");
        svi_pack_raw(&pack, part->columns, part->columns_size);
        svi_pack_close(&pack, head);
    }
    svi_pack_raw(&pack, part->at, part->size);
    svi_pack_close(&pack, map);
    return svi_pack_end(&pack);
}

/* One message in `out` (replaced). */
static svs_code posted_message(const struct posted *p, const struct http_rows_part *part,
                               struct svi_bytes *out) {
    /* One block for the whole message: the rows are copied once, and the buffer is used again for the next.
     */
    out->size = 0;
    SVI_TRY(svi_bytes_reserve(out, part->size + part->columns_size + PREFIX_MAX));
    if (p->kind == POSTED_PREDICT)
        return posted_question(p, part, out);
    SVI_TRY(p->json ? posted_prefix_json(p, part, out) : posted_prefix_msgpack(p, part, out));
    SVI_TRY(svi_bytes_append(out, part->at, part->size));
    return p->json ? svi_json_text(out, "]") : SVS_OK;
}

/* Rows of a message, so that it stays below what the stream accepts. */
static bool posted_take(const struct posted *p, struct http_rows *rows, struct http_rows_part *part) {
    /* A tiny max.message must not make the difference wrap. Half of it is then given to the rows. */
    const size_t most = http_stream_max_message(p->stream), spare = PREFIX_MAX + rows->columns_size;
    return http_rows_take(rows, most > 2 * spare ? most - spare : most / 2, ROWS_MAX, part);
}

/* in.mode pull: sent, and not acknowledged. */
static void posted_push(struct posted *p, struct http_rows *rows) {
    struct svi_bytes message = {0};
    struct http_rows_part part;
    char text[120];
    int64_t sent = 0;
    bool good = true;
    /* The first failure ends it: rows after a gap would reach the stream out of order. */
    while (good && posted_take(p, rows, &part)) {
        good = posted_message(p, &part, &message) == SVS_OK &&
               http_stream_push(p->stream, message.data, message.size);
        sent += good ? part.count : 0;
    }
    svi_bytes_clear(&message);
    /* 202, not 200: nobody knows yet whether the stream will take the rows. */
    if (good) {
        snprintf(text, sizeof text,
                 "{\"sent\":%" PRId64 ",\"acknowledged\":false,\"delivery\":\"at-most-once\"}\n", sent);
        http_exchange_answer(p->x, 202, "application/json", text, strlen(text));
    } else {
        http_exchange_add(p->x, "Retry-After", "1");
        http_exchange_problem(p->x, 503, "busy",
                              "%" PRId64 " rows were sent; the stream takes no more messages now", sent);
    }
    http_posted_free(p);
}

/* An older program takes {op: message} for a row: it refuses that one, and learns the others under the wrong
 * numbers. True: the stream is one, which was answered. */
static bool posted_is_old(struct exchange *x, const struct http_stream *s) {
    if (s->status.size == 0 || http_stream_reads_message(s))
        return false;
    http_exchange_problem(x, 409, "not_supported",
                          "%s runs an older svmstream, which does not know {op: message}: nothing was sent. "
                          "Restart it with this version (%s), or send rows by svmstream feed",
                          s->name, svs_version());
    return true;
}

/* Counts the messages that the rows need. False: they cannot be sent, which was answered. */
/* Takes `rows` by value: it cuts a copy, so that posted_send cuts the same messages from the start. */
static bool posted_fits(struct posted *p, struct http_rows rows) {
    const size_t most = http_stream_max_message(p->stream), under_way = *p->stream->ctl.bytes;
    struct http_rows_part part;
    size_t total = 0;
    for (; posted_take(p, &rows, &part); p->messages++) {
        total += part.size + part.columns_size + PREFIX_MAX;
        /* A part above the limit is always a single row, since http_rows_take never joins rows beyond it. */
        if (part.size + PREFIX_MAX > most && part.count == 1) {
            http_exchange_problem(p->x, 413, "too_large",
                                  "row %" PRId64
                                  " has %zu bytes; the stream takes messages of %zu (max.message)",
                                  part.first + 1, part.size, most);
            return false;
        }
        if (part.columns && posted_is_old(p->x, p->stream))
            return false;
    }
    /* A body that can never fit is refused for good; one that does not fit now may be sent again. */
    if (total > HTTP_ASKS_BYTES)
        http_exchange_problem(
            p->x, 413, "too_large",
            "the rows have %zu bytes, and at most %u can be under way: send fewer at a time", total,
            HTTP_ASKS_BYTES);
    else if (under_way + total > HTTP_ASKS_BYTES)
        http_posted_refuse(p, http_why_full);
    else if (!(p->counts = svi_alloc_array((size_t)p->messages, sizeof *p->counts)))
        http_exchange_problem(p->x, 503, "no_memory", "no memory for the request");
    else
        return true;
    return false;
}

/* All messages are handed over at once: they are bounded with those of all other requests. After the first
 * that cannot be sent none is: the rows keep their order. */
static void posted_send(struct posted *p, struct http_rows *rows) {
    struct svi_bytes message = {0};
    struct http_rows_part part;
    int64_t i = 0;
    if (!posted_fits(p, *rows)) {
        http_posted_free(p);
        return;
    }
    const int64_t messages = p->messages;
    /* The exchange outlasts the requests by GRACE: their timeouts say more than one of the exchange would. */
    http_exchange_later(p->x, SECONDS + GRACE, http_posted_left, p);
    while (i < messages && posted_take(p, rows, &part)) {
        p->counts[i++] = part.count;
        /* The last reply frees p, and cannot come before the last message was sent. */
        if (p->unsent == 0 && posted_message(p, &part, &message) == SVS_OK)
            (p->kind == POSTED_PREDICT ? http_stream_ask : http_stream_send)(
                p->stream, message.data, message.size, SECONDS, http_posted_replied, p);
        else
            http_posted_replied(p, NULL, 0, http_why_full);
    }
    svi_bytes_clear(&message);
}

/* ---- the source */

/* The source: of the query, else of the first row. A principal that is bound to sources must use one of
 * them. False: it was answered with the problem. */
static bool posted_source(struct posted *p, const struct http_rows *rows) {
    const struct http_principal *who = http_exchange_principal(p->x);
    const char *src = http_exchange_query(p->x, "src");
    svs_error err;
    /* The row is read first and the query overwrites it: what the address states is meant for this request.
     */
    if (http_rows_source(rows, p->src, &p->n, &err) != SVS_OK) {
        http_exchange_problem(p->x, 422, svs_code_name(err.code), "row 1: %s", err.text);
        return false;
    }
    if (src)
        snprintf(p->src, sizeof p->src, "%s", src);
    if (!http_relay_integer(p->x, "n", 0, INT64_MAX / 2, &p->n))
        return false;
    if (src && (!*src || strlen(src) > SVS_NAME_MAX))
        http_exchange_problem(p->x, 422, "missing_source", "src= is to be a name of 1 to %d bytes",
                              SVS_NAME_MAX);
    else if (*p->src ? p->n < 0 : p->n >= 0)
        http_exchange_problem(p->x, 422, "missing_source",
                              "rows are numbered by src and n together: ?src=NAME&n=0 for the first one");
    /* Checked last, on the source that will be used, and before any row is sent. */
    else if (!http_principal_may_send_as(who, p->src, strlen(p->src)))
        http_exchange_problem(p->x, 403, "not_allowed",
                              "this token may send under the sources %s only: give one as ?src=NAME&n=NUMBER",
                              who->sources);
    else
        return true;
    return false;
}

static void posted_refuse_body(struct exchange *x, const svs_error *err) {
    const int status = err->code == SVS_NO_MEMORY ? 503 : err->code == SVS_LIMIT ? 413 : 400;
    http_exchange_problem(x, status, svs_code_name(err->code), "%s", err->text);
}

static bool posted_read(struct exchange *x, struct http_rows *rows) {
    enum http_rows_form form = HTTP_ROWS_JSON;
    svs_error err;
    size_t size;
    const void *body = http_exchange_body(x, &size);
    http_rows_form(http_exchange_body_type(x), &form);
    /* `rows` may hold a part of the body after a failure, and the callers clear it on success only. */
    if (http_rows_read(rows, form, body, size, &err) == SVS_OK)
        return true;
    posted_refuse_body(x, &err);
    http_rows_clear(rows);
    return false;
}

/* A request under way. NULL: it was answered with the problem. */
static struct posted *posted_new(struct exchange *x, struct http_stream *s, enum posted_kind kind,
                                 const struct http_rows *rows) {
    struct posted *p = svi_alloc_plain(sizeof *p);
    if (p)
        *p = (struct posted){
            .x = x, .stream = s, .kind = kind, .json = rows->json, .rows = rows->count, .n = -1};
    else
        http_exchange_problem(x, 503, "no_memory", "no memory for the request");
    return p;
}

/* Over the socket that takes samples. */
static void posted_dispatch(struct posted *p, struct http_rows *rows) {
    const struct http_stream *s = p->stream;
    /* No rows make no message, and no reply would ever answer them. */
    if (rows->count == 0) {
        http_posted_answer(p);
        http_posted_free(p);
    } else if (posted_is_old(p->x, s)) {
        http_posted_free(p);
    } else if (s->in_mode == HTTP_IN_PULL) {
        posted_push(p, rows);
    } else if (s->in_mode == HTTP_IN_ROUTER) {
        posted_send(p, rows);
    } else {
        /* An absent stream may return, so the client is asked to try again. A mode that takes no samples
         * stays. */
        if (s->status.size == 0 || s->config.size == 0)
            http_relay_failed(p->x, s, http_why_absent);
        else
            http_exchange_problem(
                p->x, 409, "unavailable",
                "%s takes no samples from here: its input is no socket of in.mode router or "
                "pull, or its address is not known (--stream in=ADDRESS)",
                s->name);
        http_posted_free(p);
    }
}

void http_samples_post(struct exchange *x, struct http_app *app) {
    struct http_stream *s = http_relay_stream(x, app->streams, true);
    struct http_rows rows = {0};
    struct posted *p;
    bool scores = true;
    if (!s || !http_relay_switch(x, "scores", &scores) || !posted_read(x, &rows))
        return;
    if ((p = posted_new(x, s, POSTED_SAMPLES, &rows))) {
        /* A pull socket has no replies, so scores cannot be asked for. */
        p->with_scores = scores && s->in_mode == HTTP_IN_ROUTER;
        if (posted_source(p, &rows))
            posted_dispatch(p, &rows);
        else
            http_posted_free(p);
    }
    http_rows_clear(&rows);
}

void http_samples_predict(struct exchange *x, struct http_app *app) {
    struct http_stream *s = http_relay_stream(x, app->streams, true);
    const char *key = http_exchange_query(x, "key");
    struct http_rows rows = {0};
    struct posted *p;
    if (!s)
        return;
    if (key && strlen(key) > SVS_KEY_MAX) {
        http_exchange_problem(x, 400, "bad_key", "key= has more than %d bytes", SVS_KEY_MAX);
        return;
    }
    if (!posted_read(x, &rows))
        return;
    if ((p = posted_new(x, s, POSTED_PREDICT, &rows))) {
        /* A prediction has no source: `src` holds the key instead. */
        p->keyed = key;
        snprintf(p->src, sizeof p->src, "%s", key ? key : "");
        if (rows.count > 0) {
            posted_send(p, &rows);
        } else {
            http_posted_answer(p);
            http_posted_free(p);
        }
    }
    http_rows_clear(&rows);
}

/* ---- labels and removals */

/* Appends an element of the wire made of the map `row`: its `known` keys, and the operation. SVS_WRONG_TYPE:
 * it is no map, or another key is in it. */
static svs_code changes_element(struct svi_pack *p, struct svi_view row, const char *op,
                                const char *const *known, svs_error *err) {
    const struct svi_item head = svi_view_item(row);
    const uint8_t *at = head.body;
    if (head.type != SVI_MAP)
        return svi_fail(err, SVS_WRONG_TYPE, "it is %s: each is to be an object", svi_item_name(&head));
    /* One pair more than the row has: the operation. Its key `op` is not in `known`, so no row can state
     * another. */
    svi_pack_map(p, head.length + 1);
    svi_put_text(p, "op", op);
    for (uint32_t i = 0; i < head.length; i++) {
        const uint8_t *const pair = at;
        struct svi_item name;
        bool good = false;
        svi_item_read(at, &name);
        svi_walk(&at, row.end, SVI_WALK_MAX);
        svi_walk(&at, row.end, SVI_WALK_MAX);
        for (int k = 0; known[k]; k++)
            good = good || svi_item_is(&name, known[k]);
        if (!good)
            return svi_fail(err, SVS_WRONG_TYPE, "a key is not id, key%s", known[2] ? " or y" : "");
        svi_pack_raw(p, pair, (size_t)(at - pair));
    }
    return SVS_OK;
}

/* The body, of any form, as msgpack elements of one operation in `out`. */
static svs_code changes_read(const struct http_rows *rows, const char *op, const char *const *known,
                             struct http_rows *out, svs_error *err) {
    struct svi_bytes parsed = {0};
    struct svi_pack p;
    const uint8_t *at = rows->bytes.data, *end = at + rows->size;
    svs_code code = SVS_OK;
    svi_pack_begin(&p, &parsed);
    /* JSON is parsed into msgpack first, and so both forms pass the same check below. */
    if (rows->json) {
        struct svi_item array;
        if ((code = svi_pack_json(&p, (const char *)rows->bytes.data, err)) == SVS_OK)
            code = svi_pack_end(&p);
        if (code == SVS_OK) {
            end = parsed.data + parsed.size;
            at = svi_item_read(parsed.data, &array);
        }
    }
    svi_pack_begin(&p, &out->bytes);
    /* One bad element refuses the body before anything is sent: labels in part would be hard to find again.
     */
    for (int64_t i = 0; i < rows->count && code == SVS_OK; i++) {
        struct svi_view row = {at, at};
        char text[SVS_ERROR_TEXT];
        svi_walk(&row.end, end, SVI_WALK_MAX);
        at = row.end;
        if ((code = changes_element(&p, row, op, known, err)) != SVS_OK) {
            snprintf(text, sizeof text, "%s", err->text);
            svi_fail(err, code, "element %lld: %.200s", (long long)i + 1, text);
        }
    }
    if (code == SVS_OK)
        code = svi_pack_end(&p);
    out->size = out->bytes.size;
    out->count = rows->count;
    svi_bytes_clear(&parsed);
    return code;
}

static void changes_post(struct exchange *x, struct http_app *app, const char *op, const char *const *known) {
    struct http_stream *s = http_relay_stream(x, app->streams, true);
    struct http_rows rows = {.most = CHANGES}, changes = {0};
    struct posted *p;
    svs_error err = {SVS_NO_MEMORY, "no memory for the request"};
    if (!s || !posted_read(x, &rows))
        return;
    /* The source is taken from `changes`: what was refused there cannot be read as one. */
    if (changes_read(&rows, op, known, &changes, &err) != SVS_OK) {
        http_exchange_problem(x, err.code == SVS_NO_MEMORY ? 503 : 422, svs_code_name(err.code), "%s",
                              err.text);
    } else if ((p = posted_new(x, s, POSTED_CHANGES, &changes))) {
        p->with_scores = s->in_mode == HTTP_IN_ROUTER;
        if (posted_source(p, &changes))
            posted_dispatch(p, &changes);
        else
            http_posted_free(p);
    }
    http_rows_clear(&rows);
    http_rows_clear(&changes);
}

void http_samples_labels(struct exchange *x, struct http_app *app) {
    static const char *const known[] = {"id", "key", "y", NULL};
    changes_post(x, app, "label", known);
}

void http_samples_forget(struct exchange *x, struct http_app *app) {
    static const char *const known[] = {"id", "key", NULL};
    changes_post(x, app, "forget", known);
}
