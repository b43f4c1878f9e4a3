#include "guard.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "http_log.h"

#define ADDRESSES     256  /* whose failures are remembered: the latest */
#define FAILURES_MAX  10   /* of one address in */
#define FAILURES_TIME 60.0 /* seconds */

struct http_failures {
    unsigned char address[16];
    int count;
    double since; /* svi_monotonic; 0: the place is free */
};

struct http_guard {
    const char *path; /* belongs to the options */
    struct http_tokens tokens;
    struct http_failures failed[ADDRESSES];
    struct http_log_limit refusals;
};

struct http_guard *http_guard_open(const char *path) {
    struct http_guard *g = http_log_need(1, sizeof *g);
    svs_error err;
    g->path = path;
    if (http_tokens_load(&g->tokens, path, &err) == SVS_OK)
        return g;
    http_log("%s", err.text);
    http_guard_close(g);
    return NULL;
}

void http_guard_close(struct http_guard *g) {
    if (!g)
        return;
    http_tokens_clear(&g->tokens);
    svi_free(g);
}

void http_guard_reload(struct http_guard *g) {
    svs_error err;
    if (http_tokens_load(&g->tokens, g->path, &err) == SVS_OK)
        http_log("%d tokens are in force", g->tokens.count);
    else
        http_log("%s; the previous tokens stay in force", err.text);
}

/* The failures of an address; its place replaces that of the one whose first failure is the longest ago. */
static struct http_failures *http_guard_failures(struct http_guard *g, const unsigned char address[16]) {
    struct http_failures *oldest = &g->failed[0];
    for (int i = 0; i < ADDRESSES; i++) {
        if (g->failed[i].since > 0 && memcmp(g->failed[i].address, address, 16) == 0)
            return &g->failed[i];
        if (g->failed[i].since < oldest->since)
            oldest = &g->failed[i];
    }
    *oldest = (struct http_failures){0};
    memcpy(oldest->address, address, 16);
    return oldest;
}

static enum http_verdict http_guard_failed(struct http_guard *g, const unsigned char address[16]) {
    struct http_failures *f = http_guard_failures(g, address);
    const double now = svi_monotonic();
    if (f->since <= 0 || now - f->since > FAILURES_TIME) {
        f->since = now;
        f->count = 0;
    }
    http_log_limited(&g->refusals, "a request with an unknown token is refused");
    return ++f->count > FAILURES_MAX ? HTTP_TOO_MANY : HTTP_NO_TOKEN;
}

enum http_verdict http_guard_check(struct http_guard *g, const char *authorization, unsigned role,
                                   const unsigned char address[16], const struct http_token **token) {
    *token = NULL;
    if (!authorization)
        return HTTP_NO_TOKEN;
    if (strncasecmp(authorization, "Bearer ", 7) == 0) {
        const char *text = authorization + 7 + strspn(authorization + 7, " ");
        *token = http_tokens_find(&g->tokens, text, strcspn(text, " \t"));
    }
    if (!*token)
        return http_guard_failed(g, address);
    return (role & ~(*token)->roles) == 0 ? HTTP_ADMITTED : HTTP_ROLE_MISSING;
}

const struct http_token *http_guard_find(const struct http_guard *g,
                                         const unsigned char hash[HTTP_HASH_BYTES]) {
    return http_tokens_by_hash(&g->tokens, hash);
}
