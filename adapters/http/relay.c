/* One request of HTTP, one request to a stream. The exchange belongs to the server and may end
 * first, so a relay holds it only until it is answered or closed. The relay itself lives until the
 * stream has replied, the time is over, or the connection broke. http_asks_put guarantees that one
 * of these happens.
 *
 * What a stream refuses keeps its code and its reason. The status follows the cause. It is 422 for
 * what a client should change, and 404 for what does not exist. It is 409 for what the stream is
 * not set up for, and 503 with Retry-After for what passes. */
#include "relay.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/json.h"

#define MSGPACK "application/msgpack"
#define JSON    "application/json"
#define GRACE   2.0 /* seconds that the server waits longer than the stream may take */

struct relay {
    struct exchange *x; /* NULL: it has ended */
    struct http_stream *stream;
    http_relay_answer *answer;
    void *user;
};

/* ---- problems */

static const struct {
    const char *code;
    int status;
} statuses[] = {{"unknown_key", 404}, {"unknown_id", 404},       {"unavailable", 409}, {"not_supported", 409},
                {"not_allowed", 403}, {"disk_full", 503},        {"no_memory", 503},   {"not_json", 400},
                {"truncated", 400},   {"trailing", 400},         {"not_msgpack", 400}, {"empty", 400},
                {"gap", 409},         {"source_forgotten", 409}, {"too_large", 413}};

int http_relay_status(const char *code) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (strcmp(code, statuses[i].code) == 0)
            return statuses[i].status;
    return 422;
}

bool http_relay_temporary(const char *code) {
    return http_relay_status(code) == 503;
}

void http_relay_refused(struct exchange *x, struct svi_view reply) {
    char code[40], reason[1000];
    svi_view_text(reply, "code", code, sizeof code);
    svi_view_text(reply, "error", reason, sizeof reason);
    if (http_relay_temporary(code))
        http_exchange_add(x, "Retry-After", "5");
    http_exchange_problem(x, http_relay_status(code), *code ? code : "invalid", "%s",
                          *reason ? reason : "the stream has refused the request without a reason");
}

void http_relay_failed(struct exchange *x, const struct http_stream *s, const char *why) {
    const bool uncertain = why == http_why_timeout || why == http_why_broken || why == http_why_foreign,
               named = why == http_why_absent && strcmp(s->name, s->option->ctl) != 0;
    if (why == http_why_timeout) {
        http_exchange_problem(x, 504, "no_answer", "%s: %s", s->name, why);
        return;
    }
    http_exchange_add(x, "Retry-After", why == http_why_absent ? "2" : "1");
    http_exchange_problem(x, 503,
                          uncertain                ? "no_answer"
                          : why == http_why_absent ? "not_there"
                                                   : "busy",
                          "%s: %s%s%s%s", s->name, why, named ? " at " : "", named ? s->option->ctl : "",
                          s->ctl.refused ? ": it refuses the key of this program (role control)" : "");
}

/* The names of all streams, for an error text. */
static const char *relay_names(struct http_streams *all, char *out, size_t size) {
    size_t n = 0;
    out[0] = '\0';
    for (int i = 0; i < http_streams_count(all) && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", i > 0 ? ", " : "", http_streams_at(all, i)->name);
    return out;
}

struct http_stream *http_relay_stream(struct exchange *x, struct http_streams *all, bool live) {
    const char *name = http_exchange_query(x, "stream");
    struct http_stream *s = http_streams_find(all, name);
    char names[600];
    if (!s && name)
        http_exchange_problem(x, 404, "unknown_stream", "there is no stream %.100s; shown are: %s", name,
                              relay_names(all, names, sizeof names));
    else if (!s)
        http_exchange_problem(x, 400, "stream_needed", "several streams are shown, add ?stream=NAME: %s",
                              relay_names(all, names, sizeof names));
    else if (live && !s->ctl.connected)
        http_relay_failed(x, s, http_why_absent);
    else
        return s;
    return NULL;
}

/* ---- relays */

static void relay_left(void *user) {
    struct relay *r = user;
    r->x = NULL;
}

static void relay_done(void *user, const void *reply, size_t size, const char *why) {
    struct relay *r = user;
    const struct svi_view view = svi_view_of(reply, size);
    if (r->x && why)
        http_relay_failed(r->x, r->stream, why);
    else if (r->x && svi_view_key(view, "error").at)
        http_relay_refused(r->x, view);
    else if (r->x)
        r->answer(r->x, r->stream, view, r->user);
    svi_free(r->user);
    svi_free(r);
}

void http_relay(struct exchange *x, struct http_stream *s, const struct svi_bytes *request,
                http_relay_answer *answer, void *user) {
    struct relay *r = svi_alloc_plain(sizeof *r);
    if (!r) {
        svi_free(user);
        http_exchange_problem(x, 503, "no_memory", "no memory for the request");
        return;
    }
    *r = (struct relay){x, s, answer, user};
    /* The server's own deadline is the later one: the problem that the stream's silence is should win. */
    http_exchange_later(x, HTTP_RELAY_SECONDS + GRACE, relay_left, r);
    http_stream_ask(s, request->data, request->size, HTTP_RELAY_SECONDS, relay_done, r);
}

/* ---- answers and parameters */

void http_relay_value(struct exchange *x, int status, struct svi_view value) {
    const char *type = http_exchange_accepts(x, JSON ", " MSGPACK ", application/x-msgpack");
    struct svi_bytes text = {0};
    if (type && strcmp(type, JSON) != 0) {
        http_exchange_answer(x, status, type, value.at, (size_t)(value.end - value.at));
        return;
    }
    if (svi_json_msgpack(&text, value.at, (size_t)(value.end - value.at), NULL) == SVS_OK &&
        svi_json_text(&text, "\n") == SVS_OK)
        http_exchange_answer(x, status, JSON, text.data, text.size);
    else
        http_exchange_problem(x, 503, "no_memory", "no memory for the answer");
    svi_bytes_clear(&text);
}

void http_relay_packed(struct exchange *x, struct svi_pack *p, struct svi_bytes *out) {
    /* A writer that ran out of memory continues without effect: only its end reports it. */
    if (svi_pack_end(p) == SVS_OK)
        http_relay_value(x, 200, svi_view_of(out->data, out->size));
    else
        http_exchange_problem(x, 503, "no_memory", "no memory for the answer");
    svi_bytes_clear(out);
}

bool http_relay_number(struct exchange *x, const char *name, double low, double high, double *value) {
    const char *text = http_exchange_query(x, name);
    char *end;
    if (!text)
        return true;
    const double number = strtod(text, &end);
    if (*text && !*end && number >= low && number <= high) {
        *value = number;
        return true;
    }
    http_exchange_problem(x, 400, "invalid", "%s=%.60s: it is to be a number from %.15g to %.15g", name, text,
                          low, high);
    return false;
}

bool http_relay_integer(struct exchange *x, const char *name, int64_t low, int64_t high, int64_t *value) {
    const char *text = http_exchange_query(x, name);
    char *end;
    if (!text)
        return true;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    if (*text && !*end && errno == 0 && number >= low && number <= high) {
        *value = number;
        return true;
    }
    http_exchange_problem(x, 400, "invalid",
                          "%s=%.60s: it is to be a whole number from %" PRId64 " to %" PRId64, name, text,
                          low, high);
    return false;
}

bool http_relay_switch(struct exchange *x, const char *name, bool *value) {
    static const char *const words[] = {"false", "true", "0", "1", "no", "yes"};
    const char *text = http_exchange_query(x, name);
    if (!text)
        return true;
    for (int i = 0; i < 6; i++)
        if (strcmp(text, words[i]) == 0) {
            *value = i % 2;
            return true;
        }
    http_exchange_problem(x, 400, "invalid", "%s=%.60s: it is to be true or false", name, text);
    return false;
}
