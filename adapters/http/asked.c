/* Requests that one question to the stream answers: status, keys, bank, model, mutes and verdicts.
 *
 * Each part is a handler (http_asked_) and the function that answers; read the handler first. A handler
 * checks all parameters, keeps what its answer will need in a block of its own, writes the request, and hands
 * both to the relay. The relay turns refusals and silence into problems, so that an answer sees successes
 * only.
 *
 * Requests are built key by key from checked values, never copied as text: nothing that a client sends can
 * become another request. Answers walk msgpack that http_asks has checked as a whole, so the walks cannot
 * fail.
 *
 * A handler answers exactly once. After asked_send the exchange may have ended, so nothing may touch it
 * there. Everything runs on the main thread. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "handlers.h"
#include "relay.h"
#include "svmstream/model.h"
#include "wire/fields.h"
#include "wire/json.h"
#include "wire/json_value.h"
#include "wire/pack.h"

#define KEYS_MAX  10000 /* that a stream lists at once */
#define JSON      "application/json"
#define MSGPACK   "application/msgpack"
#define LIBLINEAR "text/plain"

/* A request under construction. */
struct asked {
    struct svi_bytes bytes;
    struct svi_pack pack;
    struct svi_open_map map;
};

static void asked_begin(struct asked *a, const char *op) {
    a->bytes = (struct svi_bytes){0};
    svi_pack_begin(&a->pack, &a->bytes);
    a->map = svi_pack_open(&a->pack);
    svi_put_text(&a->pack, "op", op);
}

/* A text of the query under the name that the stream gives it. */
static void asked_query(struct asked *a, const struct exchange *x, const char *name) {
    const char *text = http_exchange_query(x, name);
    if (text)
        svi_put_text(&a->pack, name, text);
}

/* Ends and sends the request, or answers with the problem. Owns `user` from here on, as the relay does. */
static void asked_send(struct asked *a, struct exchange *x, struct http_stream *s, http_relay_answer *answer,
                       void *user) {
    svi_pack_close(&a->pack, a->map);
    if (svi_pack_end(&a->pack) == SVS_OK) {
        http_relay(x, s, &a->bytes, answer, user);
    } else {
        /* The relay would have freed it. */
        svi_free(user);
        http_exchange_problem(x, 503, "no_memory", "no memory for the request");
    }
    svi_bytes_clear(&a->bytes);
}

/* The answer of most requests: the reply as it is. */
static void asked_whole(struct exchange *x, struct http_stream *s, struct svi_view reply, void *user) {
    (void)s, (void)user;
    http_relay_value(x, 200, reply);
}

/* ---- status, bank, mutes */

/* A request whose only parameter is the key. */
static void asked_plain(struct exchange *x, struct http_app *app, const char *op, http_relay_answer *answer) {
    struct http_stream *s = http_relay_stream(x, app->streams, true);
    struct asked a;
    if (!s)
        return;
    asked_begin(&a, op);
    asked_query(&a, x, "key");
    asked_send(&a, x, s, answer, NULL);
}

void http_asked_status(struct exchange *x, struct http_app *app) {
    asked_plain(x, app, "status", asked_whole);
}

void http_asked_mutes(struct exchange *x, struct http_app *app) {
    asked_plain(x, app, "mutes", asked_whole);
}

/* `names` ends in NULL. */
static bool asked_is_among(const struct svi_item *name, const char *const *names) {
    bool found = false;
    for (int k = 0; names[k]; k++)
        found = found || svi_item_is(name, names[k]);
    return found;
}

/* Copies the pairs of a map into one that is open, but those in `left_out`. */
static void asked_copy_pairs(struct svi_pack *p, struct svi_view map, const char *const *left_out) {
    const struct svi_item head = svi_view_item(map);
    const uint8_t *at = head.body;
    for (uint32_t i = 0; head.type == SVI_MAP && i < head.length; i++) {
        const uint8_t *const pair = at;
        struct svi_item name;
        /* The name is read without moving `at`: key and value are then skipped together, and copied as they
         * are. */
        svi_item_read(at, &name);
        svi_walk(&at, map.end, SVI_WALK_MAX);
        svi_walk(&at, map.end, SVI_WALK_MAX);
        if (!asked_is_among(&name, left_out))
            svi_pack_pairs(p, pair, (size_t)(at - pair), 1);
    }
}

static void asked_copy(struct svi_pack *p, struct svi_view map, const char *const *left_out) {
    const struct svi_open_map out = svi_pack_open(p);
    asked_copy_pairs(p, map, left_out);
    svi_pack_close(p, out);
}

/* Every element is written, so the array may have the length of the one that it copies. */
static void asked_copy_array(struct svi_pack *p, struct svi_view array, const char *const *left_out) {
    struct svi_view element;
    int64_t left = -1;
    const struct svi_item head = svi_view_item(array);
    svi_pack_array(p, head.type == SVI_ARRAY ? head.length : 0);
    while (svi_view_next(&array, &left, &element))
        asked_copy(p, element, left_out);
}

/* The bank without what only a program computes with. */
static void asked_bank_brief(struct svi_pack *p, struct svi_view bank) {
    /* Members hold weights, experts and parts of the mixture hold curves; both grow with the features. Fixed
     * names are left out, rather than small ones kept, so that what a newer stream adds is passed on. */
    static const char *const weights[] = {"W", "b", "mean", "scale", "stacks", "logistic", "features", NULL};
    static const char *const curves[] = {"calibration", "counts", NULL};
    static const char *const rest[] = {"members", "experts", "mixture", "mean",
                                       "scale",   "fourier", "trees",   NULL};
    static const char *const parts[] = {"members", "experts", "mixture"};
    const struct svi_open_map map = svi_pack_open(p);
    /* The lists themselves are in `rest`: they follow below in their short form. */
    asked_copy_pairs(p, bank, rest);
    for (int i = 0; i < 3; i++) {
        const struct svi_view part = svi_view_key(bank, parts[i]);
        if (!part.at)
            continue;
        svi_pack_key(p, parts[i]);
        asked_copy_array(p, part, i == 0 ? weights : curves);
    }
    svi_pack_close(p, map);
}

static void asked_bank_answer(struct exchange *x, struct http_stream *s, struct svi_view reply, void *user) {
    const bool *brief = user;
    const struct svi_view bank = svi_view_key(reply, "bank");
    struct svi_bytes out = {0};
    struct svi_pack p;
    (void)s;
    if (!*brief) {
        http_relay_value(x, 200, bank.at ? bank : reply);
        return;
    }
    svi_pack_begin(&p, &out);
    asked_bank_brief(&p, bank);
    http_relay_packed(x, &p, &out);
}

void http_asked_bank(struct exchange *x, struct http_app *app) {
    struct http_stream *s = http_relay_stream(x, app->streams, true);
    /* The answer is made after this function has returned, so the switch needs a block that outlives it. */
    bool brief = false, *kept;
    struct asked a;
    if (!s || !http_relay_switch(x, "brief", &brief))
        return;
    if (!(kept = svi_alloc_plain(sizeof *kept))) {
        http_exchange_problem(x, 503, "no_memory", "no memory for the request");
        return;
    }
    *kept = brief;
    asked_begin(&a, "bank");
    asked_query(&a, x, "key");
    asked_send(&a, x, s, asked_bank_answer, kept);
}

/* ---- the model */

enum asked_format { ASKED_JSON, ASKED_MSGPACK, ASKED_LIBLINEAR };

/* The library's text of a model, as `svmstream model export` writes it. */
static void asked_model_text(struct exchange *x, struct svi_view payload, enum asked_format format) {
    /* Set before the calls, as a failure of open_memstream sets no error. */
    svs_error err = {SVS_NO_MEMORY, "no memory for the model"};
    char *text = NULL;
    size_t size = 0;
    svs_model *model = svs_model_decode(payload.at, (size_t)(payload.end - payload.at), &err);
    FILE *to = model ? open_memstream(&text, &size) : NULL;
    svs_code code = err.code;
    if (to)
        code = format == ASKED_LIBLINEAR ? svs_model_write_liblinear(model, to, &err)
                                         : svs_model_write_json(model, to, &err);
    /* The stream of memory has its text and size only after it is closed, and may fail only then. */
    if (to && fclose(to) != 0)
        code = SVS_NO_MEMORY;
    svs_model_free(&model);
    if (to && code == SVS_OK)
        http_exchange_answer(x, 200, format == ASKED_LIBLINEAR ? LIBLINEAR : JSON, text, size);
    else
        http_exchange_problem(x, http_relay_status(svs_code_name(code)), svs_code_name(code), "%s", err.text);
    free(text);
}

static void asked_model_answer(struct exchange *x, struct http_stream *s, struct svi_view reply, void *user) {
    const enum asked_format *format = user;
    const struct svi_view model = svi_view_key(reply, "model");
    (void)s;
    if (!model.at)
        http_exchange_problem(x, 409, "unavailable", "the stream has no model yet");
    else if (*format == ASKED_MSGPACK)
        http_exchange_answer(x, 200, MSGPACK, model.at, (size_t)(model.end - model.at));
    else
        asked_model_text(x, model, *format);
}

/* ?format= decides, else Accept. */
static bool asked_model_format(struct exchange *x, enum asked_format *format) {
    static const char *const words[] = {"json", "msgpack", "liblinear"}, *const types[] = {JSON, MSGPACK,
                                                                                           LIBLINEAR};
    /* The order of both lists is that of enum asked_format. */
    const char *word = http_exchange_query(x, "format");
    const char *type = http_exchange_accepts(x, JSON ", " MSGPACK ", " LIBLINEAR);
    for (int i = 0; i < 3; i++)
        if (word ? strcmp(word, words[i]) == 0 : type && strcmp(type, types[i]) == 0) {
            *format = (enum asked_format)i;
            return true;
        }
    /* A wrong word is the client's mistake; an Accept that no format meets is a failed negotiation. */
    if (word)
        http_exchange_problem(x, 400, "invalid", "format=%.60s: it is to be json, msgpack or liblinear",
                              word);
    else
        http_exchange_problem(x, 406, "not_acceptable", "a model is " JSON ", " MSGPACK " or " LIBLINEAR);
    return false;
}

void http_asked_model(struct exchange *x, struct http_app *app) {
    struct http_stream *s = http_relay_stream(x, app->streams, true);
    enum asked_format format, *kept;
    struct asked a;
    if (!s || !asked_model_format(x, &format))
        return;
    if (!(kept = svi_alloc_plain(sizeof *kept))) {
        http_exchange_problem(x, 503, "no_memory", "no memory for the request");
        return;
    }
    *kept = format;
    asked_begin(&a, "model");
    asked_query(&a, x, "key");
    asked_send(&a, x, s, asked_model_answer, kept);
}

/* ---- keys */

struct asked_page {
    int64_t offset, limit;
};

/* The stream lists the first `offset` + `limit` keys; here the first `offset` of them are left out. */
static void asked_keys_answer(struct exchange *x, struct http_stream *s, struct svi_view reply, void *user) {
    const struct asked_page *page = user;
    struct svi_view keys = svi_view_key(reply, "keys"), key;
    int64_t left = -1, shown = 0;
    struct svi_bytes out = {0};
    struct svi_pack p;
    (void)s;
    const struct svi_item head = svi_view_item(keys);
    const int64_t listed = head.type == SVI_ARRAY ? head.length : 0;
    svi_pack_begin(&p, &out);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_int(&p, "count", svi_view_integer(reply, "count", 0));
    svi_put_int(&p, "matching", svi_view_integer(reply, "matching", 0));
    svi_put_int(&p, "unkeyed", svi_view_integer(reply, "unkeyed", 0));
    svi_put_int(&p, "offset", page->offset);
    char measure[40];
    svi_put_text(&p, "measure", svi_view_text(reply, "measure", measure, sizeof measure));
    svi_put_array(&p, "keys", (size_t)(listed > page->offset ? listed - page->offset : 0));
    while (svi_view_next(&keys, &left, &key))
        if (shown++ >= page->offset)
            svi_pack_raw(&p, key.at, (size_t)(key.end - key.at));
    svi_pack_close(&p, map);
    http_relay_packed(x, &p, &out);
}

void http_asked_keys(struct exchange *x, struct http_app *app) {
    struct http_stream *s = http_relay_stream(x, app->streams, true);
    struct asked_page page = {0, 100}, *kept;
    int64_t rows = 0;
    double silent = 0;
    bool open = false;
    struct asked a;
    if (!s || !http_relay_integer(x, "offset", 0, KEYS_MAX, &page.offset) ||
        !http_relay_integer(x, "limit", 0, KEYS_MAX, &page.limit) ||
        !http_relay_integer(x, "rows", 0, INT64_MAX, &rows) ||
        !http_relay_number(x, "silent", 0, 1e12, &silent) || !http_relay_switch(x, "open", &open))
        return;
    /* The stream has no offset. It lists everything up to the end of the page, so the sum is what costs. */
    if (page.offset + page.limit > KEYS_MAX) {
        http_exchange_problem(
            x, 400, "limit", "offset + limit is at most %d: narrow the list with like= or prefix=", KEYS_MAX);
        return;
    }
    if (!(kept = svi_alloc_plain(sizeof *kept))) {
        http_exchange_problem(x, 503, "no_memory", "no memory for the request");
        return;
    }
    *kept = page;
    asked_begin(&a, "keys");
    asked_query(&a, x, "sort");
    asked_query(&a, x, "like");
    asked_query(&a, x, "prefix");
    svi_put_int(&a.pack, "limit", page.offset + page.limit);
    svi_put_int(&a.pack, "rows", rows);
    svi_put_real(&a.pack, "silent", silent);
    svi_put_bool(&a.pack, "open", open);
    asked_send(&a, x, s, asked_keys_answer, kept);
}

/* ---- requests with a body: one JSON object whose known keys are passed on */

/* The body as a msgpack map in `out`. False: it was answered with the problem. */
static bool asked_body(struct exchange *x, struct svi_bytes *out) {
    svs_error err;
    struct svi_pack p;
    size_t size;
    const void *body = http_exchange_body(x, &size);
    /* The parser needs a NUL at the end. A body with a NUL inside would be read in part, and is refused. */
    char *text = svi_alloc_plain(size + 1);
    svs_code code = text ? SVS_OK : SVS_NO_MEMORY;
    svi_pack_begin(&p, out);
    if (text) {
        memcpy(text, body, size);
        text[size] = '\0';
        code = strlen(text) == size ? svi_pack_json(&p, text, &err) : SVS_NOT_JSON;
        if (strlen(text) != size)
            snprintf(err.text, sizeof err.text, "the body contains a NUL");
        if (code == SVS_OK)
            code = svi_pack_end(&p);
    }
    svi_free(text);
    /* Three causes, three answers: our memory, text that is not JSON, JSON that is no object. */
    if (code == SVS_NO_MEMORY)
        http_exchange_problem(x, 503, "no_memory", "no memory for the request");
    else if (code != SVS_OK)
        http_exchange_problem(x, 400, svs_code_name(code), "the body: %s", err.text);
    else if (svi_view_item(svi_view_of(out->data, out->size)).type == SVI_MAP)
        return true;
    else
        http_exchange_problem(x, 400, "wrong_type", "the body is to be a JSON object");
    svi_bytes_clear(out);
    return false;
}

/* A client often learns a request from its refusals, so this one lists what the request has. */
static void asked_unknown(struct exchange *x, const struct svi_item *name, const char *const *known) {
    const bool shown = name->type == SVI_STRING && name->length < 60;
    char list[200] = "";
    for (int k = 0; known[k]; k++)
        svi_list_add(list, sizeof list, known[k], strlen(known[k]));
    http_exchange_problem(x, 400, "invalid", "%.*s is not a key of this request, which are: %s",
                          shown ? (int)name->length : 1, shown ? (const char *)name->body : "?", list);
}

/* Passes on the pairs of `body` whose keys are in `known`. False: another key is in it, which was answered.
 */
static bool asked_pairs(struct asked *a, struct exchange *x, struct svi_view body, const char *const *known) {
    const struct svi_item head = svi_view_item(body);
    const uint8_t *at = head.body;
    for (uint32_t i = 0; i < head.length; i++) {
        const uint8_t *const pair = at;
        struct svi_item name;
        svi_item_read(at, &name);
        svi_walk(&at, body.end, SVI_WALK_MAX);
        svi_walk(&at, body.end, SVI_WALK_MAX);
        /* An unknown key is refused here: passed on, it could turn this request into another one. */
        if (!asked_is_among(&name, known)) {
            asked_unknown(x, &name, known);
            return false;
        }
        svi_pack_pairs(&a->pack, pair, (size_t)(at - pair), 1);
    }
    return true;
}

/* The path of all requests with a body. `number`: the key of the number in the path, or NULL. */
static void asked_posted(struct exchange *x, struct http_app *app, const char *op, const char *const *known,
                         const char *number, int64_t value) {
    struct http_stream *s = http_relay_stream(x, app->streams, true);
    struct svi_bytes body = {0};
    struct asked a;
    if (!s || !asked_body(x, &body))
        return;
    asked_begin(&a, op);
    if (number)
        svi_put_int(&a.pack, number, value);
    /* A refused body leaves the request half written. Only asked_send would have freed it. */
    if (asked_pairs(&a, x, svi_view_of(body.data, body.size), known))
        asked_send(&a, x, s, asked_whole, NULL);
    else
        svi_bytes_clear(&a.bytes);
    svi_bytes_clear(&body);
}

void http_asked_mute(struct exchange *x, struct http_app *app) {
    static const char *const known[] = {"for", "key", "sensor", "name", "reason", "who", "learn", NULL};
    asked_posted(x, app, "mute", known, NULL, 0);
}

/* The number in the path. False: it was answered with the problem. */
static bool asked_number(struct exchange *x, const char *what, int64_t *value) {
    const char *text = http_exchange_segment(x, 0);
    char *end;
    *value = strtoll(text, &end, 10);
    /* strtoll clamps: its largest value may stand for any number above, which no alert has. */
    if (*text && !*end && *value > 0 && *value < INT64_MAX)
        return true;
    http_exchange_problem(x, 404, "unavailable", "%.60s is not the number of %s", text, what);
    return false;
}

void http_asked_verdict(struct exchange *x, struct http_app *app) {
    static const char *const known[] = {"verdict", "by", "key", NULL};
    int64_t alert;
    if (asked_number(x, "an alert", &alert))
        asked_posted(x, app, "alert", known, "alert", alert);
}

void http_asked_unmute(struct exchange *x, struct http_app *app) {
    struct http_stream *s;
    struct asked a;
    int64_t mute;
    if (!asked_number(x, "a mute", &mute) || !(s = http_relay_stream(x, app->streams, true)))
        return;
    asked_begin(&a, "unmute");
    svi_put_int(&a.pack, "mute", mute);
    asked_send(&a, x, s, asked_whole, NULL);
}
