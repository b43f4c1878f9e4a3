/* Any bytes as what an HTTP client or a person gives the adapter: a request target, a body in pieces (plain
 * or gzip), a tokens file, a header Accept. Whatever is taken holds what the headers promise: texts are UTF-8
 * without NUL, no body exceeds its limit, and all memory is given back.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../adapters/http/body.h"
#include "../../adapters/http/compress.h"
#include "../../adapters/http/principal.h"
#include "../../adapters/http/target.h"
#include "../../adapters/http/tokens.h"
#include "base/alloc.h"
#include "base/text.h"

#define LIMIT  2000 /* bytes of a body */
#define BUDGET (200 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

static void fuzz_target(const char *text) {
    struct http_target t;
    const char *why = http_target_read(&t, text);
    if (!why && !t.any) {
        must(t.path[0] == '/' && t.segments >= 1 && t.segments <= HTTP_SEGMENT_LIMIT);
        for (int i = 0; i < t.segments; i++)
            must(svi_utf8_valid(t.segment[i], strlen(t.segment[i])));
        for (int i = 0; i < t.queries; i++) {
            must(svi_utf8_valid(t.query[i].value, strlen(t.query[i].value)));
            must(http_target_query(&t, t.query[i].name) == t.query[i].value);
        }
    }
    http_target_clear(&t);
}

/* In pieces of `step` bytes, and in one: the same body. */
static enum http_body_state fuzz_body(const uint8_t *data, size_t size, size_t step, bool gzip,
                                      uint8_t out[LIMIT], size_t *length) {
    struct http_body_budget budget = {0, BUDGET};
    struct http_body b;
    enum http_body_state state = HTTP_BODY_GOOD;
    http_body_begin(&b, &budget, LIMIT, gzip);
    for (size_t at = 0; at < size && state == HTTP_BODY_GOOD; at += step) {
        state = http_body_add(&b, data + at, size - at < step ? size - at : step);
        must(budget.used <= budget.limit);
    }
    if (state == HTTP_BODY_GOOD)
        state = http_body_end(&b);
    *length = state == HTTP_BODY_GOOD ? b.size : 0;
    must(*length <= LIMIT);
    if (*length)
        memcpy(out, b.data, *length);
    http_body_clear(&b);
    must(budget.used == 0);
    return state;
}

static void fuzz_bodies(const uint8_t *data, size_t size, size_t step, bool gzip) {
    uint8_t one[LIMIT], two[LIMIT];
    size_t n, m;
    const enum http_body_state whole = fuzz_body(data, size, size ? size : 1, gzip, one, &n),
                               parts = fuzz_body(data, size, step, gzip, two, &m);
    must(whole == parts && n == m && memcmp(one, two, n) == 0);
    must(gzip || (whole == HTTP_BODY_GOOD) == (size <= LIMIT));
    must(gzip || whole != HTTP_BODY_GOOD || (n == size && memcmp(one, data, n) == 0));
}

/* What is packed is inflated to the same bytes again. */
static void fuzz_round_trip(const uint8_t *data, size_t size, size_t step) {
    uint8_t out[LIMIT];
    size_t packed, n;
    uint8_t *file = http_compress(data, size, &packed);
    if (!file)
        return;
    const enum http_body_state state = fuzz_body(file, packed, step, true, out, &n);
    must(state == (size <= LIMIT ? HTTP_BODY_GOOD : HTTP_BODY_TOO_LARGE));
    must(state != HTTP_BODY_GOOD || (n == size && memcmp(out, data, n) == 0));
    svi_free(file);
}

static void fuzz_tokens(const char *text, size_t size) {
    struct http_tokens all = {0};
    svs_error err = {SVS_OK, ""};
    const svs_code code = http_tokens_parse(&all, "fuzz", text, size, &err);
    must(code == SVS_OK || (all.count == 0 && err.text[0] && strlen(err.text) < sizeof err.text));
    for (int i = 0; i < all.count; i++) {
        const struct http_token *t = &all.token[i];
        const struct http_principal p = {t->name, t->sources, t->roles};
        must(http_tokens_by_hash(&all, t->hash) == t && t->name[0]);
        must(!t->sources[0] || (t->roles & ROLE_SEND));
        must(!http_principal_may_send_as(&p, "", 0) ||
             http_principal_may_send_as(&p, "pump1", 5)); /* bound, or free */
    }
    http_tokens_clear(&all);
}

static void fuzz_accept(const char *text) {
    static const char types[] = "application/json, text/csv, application/msgpack";
    char chosen[40];
    const double q = http_accept_quality(text, "text/csv");
    must(q == -1 || (q >= 0 && q <= 1));
    must(!http_accept_choose(text, types, chosen, sizeof chosen) || strstr(types, chosen));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const unsigned what = size ? data[0] % 6 : 0;
    const size_t step = size > 1 ? 1 + data[1] % 64 : 1, left = size > 2 ? size - 2 : 0;
    char *text = calloc(1, left + 1);
    if (!text)
        return 0;
    memcpy(text, data + (left ? 2 : 0), left);
    if (what == 0)
        fuzz_target(text);
    else if (what == 1 || what == 2)
        fuzz_bodies((uint8_t *)text, left, step, what == 1);
    else if (what == 3)
        fuzz_round_trip((uint8_t *)text, left, step);
    else if (what == 4)
        fuzz_tokens(text, left);
    else
        fuzz_accept(text);
    free(text);
    return 0;
}
