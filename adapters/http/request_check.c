/* The checks of a request, in the order of their cost and of what they protect: first that its framing means
 * one thing only (request smuggling), then where it comes from (DNS rebinding, other sites), then what it
 * asks for. Each failure is a problem document; after one of framing the connection ends, as nobody can know
 * where the next request begins. Where a common client makes the same mistake by default, the document says
 * how it is called instead. */
#include "request_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "app.h"
#include "base/text.h"
#include "framing.h"
#include "guard.h"
#include "http_connections.h"
#include "http_options.h"
#include "origin.h"

static bool http_request_framed(struct exchange *x, const char *version) {
    const struct http_framing *f = &x->framing;
    const char *why = f->problem;
    int status = 400;
    if (!why && strcmp(version, MHD_HTTP_VERSION_1_1) != 0 && strcmp(version, MHD_HTTP_VERSION_1_0) != 0) {
        status = 505;
        why = "this server speaks HTTP/1.1 and HTTP/1.0";
    }
    if (!why && f->bytes > HTTP_HEADERS_BYTES) {
        status = 431;
        why = "the headers are larger than 16,384 bytes";
    }
    if (!why)
        return true;
    http_exchange_add(x, "Connection", "close");
    http_exchange_problem(x, status, status == 431 ? "too_large" : "bad_request", "%s", why);
    return false;
}

static bool http_request_target(struct exchange *x) {
    const bool is_long = x->target_error && strstr(x->target_error, "longer than");
    if (x->target_error)
        http_exchange_problem(x, is_long ? 414 : 400, is_long ? "too_large" : "bad_request",
                              "the target of the request is not valid: %s", x->target_error);
    return !x->target_error;
}

static bool http_request_parameters(struct exchange *x) {
    const char *known[HTTP_QUERY_LIMIT + 1];
    for (int i = 0; i < x->target.queries; i++) {
        int n = 0;
        bool found = false;
        for (const struct http_parameter *p = x->route->query; p && p->name && n < HTTP_QUERY_LIMIT; p++) {
            known[n++] = p->name;
            found = found || strcmp(p->name, x->target.query[i].name) == 0;
        }
        known[n] = NULL;
        if (found)
            continue;
        const char *near = svi_nearest(x->target.query[i].name, known);
        http_exchange_problem(x, 400, "unknown_parameter", "%s has no parameter '%s'%s%s%s", x->route->path,
                              x->target.query[i].name, near ? "; did you mean '" : "", near ? near : "",
                              near ? "'?" : "");
        return false;
    }
    return true;
}

/* OPTIONS answers by itself; everything else needs a row of the table. */
static bool http_request_route(struct exchange *x, const struct http_app *app, const char *method) {
    char allow[200];
    x->head = strcmp(method, "HEAD") == 0;
    x->route = http_route_find(app->routes, x->head ? "GET" : method, x->target.segment, x->target.segments,
                               x->named, allow, sizeof allow);
    if (x->route) {
        x->method = x->route->method;
        return http_request_parameters(x);
    }
    const bool options = strcmp(method, "OPTIONS") == 0 && (allow[0] || x->target.any);
    if (allow[0] || x->target.any)
        http_exchange_add(x, "Allow", allow[0] ? allow : "GET, HEAD, POST, DELETE, OPTIONS");
    if (options)
        http_exchange_answer(x, 204, NULL, "", 0);
    else if (allow[0])
        http_exchange_problem(x, 405, "wrong_method", "%s takes %s, not %s", x->target.path, allow, method);
    else
        http_exchange_problem(x, 404, "unknown_path",
                              "there is no such path; did you mean %s? /openapi.json lists all of them",
                              http_route_nearest(app->routes, x->target.path));
    return false;
}

/* Without --tokens everybody has every right, on this machine. */
static bool http_request_allowed(struct exchange *x, const struct http_app *app) {
    static const char *const words[] = {
        [ROLE_WATCH] = "watch", [ROLE_SEND] = "send", [ROLE_CONTROL] = "control"};
    const char *authorization = http_exchange_header(x, MHD_HTTP_HEADER_AUTHORIZATION);
    const struct http_token *token;
    x->principal = (struct http_principal){"", "", ROLE_WATCH | ROLE_SEND | ROLE_CONTROL};
    if (!app->guard || !x->route->role)
        return true;
    const enum http_verdict v =
        http_guard_check(app->guard, authorization, x->route->role, x->connection->address, &token);
    if (v == HTTP_ADMITTED) {
        x->token = *token;
        x->principal = (struct http_principal){x->token.name, x->token.sources, x->token.roles};
        return true;
    }
    if (v == HTTP_TOO_MANY) {
        http_exchange_add(x, "Retry-After", "60");
        http_exchange_problem(x, 429, "too_many_tries",
                              "too many unknown tokens from this address; wait a minute");
    } else if (v == HTTP_ROLE_MISSING)
        http_exchange_problem(x, 403, "not_allowed", "the token %s lacks the role %s", token->name,
                              words[x->route->role]);
    else {
        http_exchange_add(x, "WWW-Authenticate", "Bearer realm=\"svmstream\"");
        http_exchange_problem(x, 401, "not_allowed",
                              authorization
                                  ? "this token is not known; the header is `Authorization: Bearer TOKEN`"
                                  : "a token is needed: `Authorization: Bearer TOKEN`");
    }
    return false;
}

/* What curl sends with -d or -F without a type is a form: the answer names what to write instead. */
static const char *http_request_type_advice(const char *given, const char *types) {
    if (strncasecmp(given, "application/x-www-form-urlencoded", 33) != 0 &&
        strncasecmp(given, "multipart/form-data", 19) != 0)
        return "";
    return strstr(types, "text/csv") ? "; with curl: -H 'Content-Type: text/csv' --data-binary @FILE, "
                                       "or --json '{...}'"
                                     : "; with curl: --json '{...}'";
}

static bool http_request_type(struct exchange *x) {
    const char *header = http_exchange_header(x, MHD_HTTP_HEADER_CONTENT_TYPE), *types = x->route->body;
    const size_t length = header ? strcspn(header, "; \t") : strcspn(types, ",");
    const char *given = header ? header : types;
    for (const char *at = types; *at;) {
        const size_t n = strcspn(at, ",");
        if (n == length && strncasecmp(at, given, n) == 0 && n < sizeof x->body_type) {
            snprintf(x->body_type, sizeof x->body_type, "%.*s", (int)n, at);
            return true;
        }
        at += n;
        at += strspn(at, ", ");
    }
    http_exchange_add(x, "Accept", types);
    http_exchange_problem(x, 415, "wrong_type", "the Content-Type of this body must be %s%s, not %.*s%s",
                          strchr(types, ',') ? "one of " : "", types, (int)(length < 100 ? length : 100),
                          given, http_request_type_advice(given, types));
    return false;
}

bool http_request_is_gzip(const struct exchange *x) {
    const char *header = http_exchange_header(x, MHD_HTTP_HEADER_CONTENT_ENCODING);
    return header && (strcasecmp(header, "gzip") == 0 || strcasecmp(header, "x-gzip") == 0);
}

static bool http_request_body(struct exchange *x, const struct http_app *app) {
    const char *coding = http_exchange_header(x, MHD_HTTP_HEADER_CONTENT_ENCODING);
    const int64_t limit = app->options->body;
    if (!x->framing.has_body)
        return true;
    if (!x->route->body) {
        http_exchange_problem(x, 413, "too_large", "%s %s takes no body", x->method, x->route->path);
        return false;
    }
    if (!http_request_type(x))
        return false;
    if (coding && strcasecmp(coding, "identity") != 0 && !http_request_is_gzip(x)) {
        http_exchange_add(x, "Accept-Encoding", "gzip");
        http_exchange_problem(x, 415, "wrong_type", "the Content-Encoding may be gzip, not %.100s", coding);
        return false;
    }
    if (x->framing.length > (uint64_t)limit) {
        http_request_body_problem(x, HTTP_BODY_TOO_LARGE, limit);
        return false;
    }
    return true;
}

size_t http_request_rest(const struct exchange *x) {
    return x->framing.problem ? SIZE_MAX : (size_t)x->framing.length;
}

bool http_request_check(struct exchange *x, struct http_app *app, const char *method, const char *version) {
    http_framing_read(&x->framing, x->mhd, version);
    return http_request_framed(x, version) && http_request_target(x) &&
           http_origin_check(x, app->options, method) && http_request_route(x, app, method) &&
           http_request_allowed(x, app) && http_request_body(x, app);
}

void http_request_body_problem(struct exchange *x, enum http_body_state state, int64_t limit) {
    if (state == HTTP_BODY_TOO_LARGE)
        http_exchange_problem(
            x, 413, "too_large",
            "the body is larger than %lld bytes, counted after decompression (--body); send "
            "it in parts",
            (long long)limit);
    else if (state == HTTP_BODY_BUSY) {
        http_exchange_add(x, "Retry-After", "1");
        http_exchange_problem(x, 503, "busy", "too many bodies arrive at once; try again");
    } else
        http_exchange_problem(x, 400, "bad_encoding",
                              "the body is not a complete gzip file, though its Content-Encoding says so");
}
