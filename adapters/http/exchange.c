/* What a handler does with a request: it reads texts, and it answers.
 *
 * An answer becomes a response of libmicrohttpd (http_exchange_respond), which takes it only from inside its
 * access handler. So a response is kept here, the connection is resumed if it was suspended, and
 * http_exchange_queue hands it over at the next turn. Every response carries the same headers of safety.
 *
 * Streams: libmicrohttpd calls http_exchange_produce whenever the socket takes bytes. When it takes none,
 * the connection is suspended, so that an idle reader costs nothing; http_exchange_wake resumes it. */
#include "exchange.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "compress.h"
#include "exchange_internal.h"
#include "http_log.h"
#include "http_server.h"
#include "wire/json.h"

#define STREAM_BLOCK 4096 /* bytes asked of a stream at once */

/* Of every answer. The page replaces the policy by its own, which lets its script run. */
static const struct {
    const char *name, *value;
} safe_headers[] = {
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"},
    {"Cache-Control", "no-store"},
};

const char *http_exchange_method(const struct exchange *x) {
    return x->method;
}

const char *http_exchange_segment(const struct exchange *x, int i) {
    return i >= 0 && i < HTTP_SEGMENTS_MAX ? x->named[i] : NULL;
}

const char *http_exchange_query(const struct exchange *x, const char *name) {
    return http_target_query(&x->target, name);
}

const char *http_exchange_header(const struct exchange *x, const char *name) {
    return MHD_lookup_connection_value(x->mhd, MHD_HEADER_KIND, name);
}

const void *http_exchange_body(const struct exchange *x, size_t *size) {
    *size = x->body.size;
    return x->body.data ? (const void *)x->body.data : "";
}

const struct http_principal *http_exchange_principal(const struct exchange *x) {
    return &x->principal;
}

const char *http_exchange_body_type(const struct exchange *x) {
    return x->body_type;
}

const char *http_exchange_accepts(struct exchange *x, const char *types) {
    const char *header = http_exchange_header(x, MHD_HTTP_HEADER_ACCEPT);
    return http_accept_choose(header, types, x->accepted, sizeof x->accepted) ? x->accepted : NULL;
}

void http_exchange_add(struct exchange *x, const char *name, const char *value) {
    if (x->headers == HTTP_HEADERS_MAX || strlen(value) >= sizeof x->header[0].value) {
        http_log("the header %s of an answer is left out: it is too long, or one too many", name);
        return;
    }
    x->header[x->headers].name = name;
    strcpy(x->header[x->headers++].value, value);
}

static bool http_exchange_has(const struct exchange *x, const char *name) {
    for (int i = 0; i < x->headers; i++)
        if (strcasecmp(x->header[i].name, name) == 0)
            return true;
    return false;
}

void http_exchange_suspend(struct exchange *x) {
    x->suspended = true;
    MHD_suspend_connection(x->mhd);
}

void http_exchange_resume(struct exchange *x) {
    if (!x->suspended)
        return;
    x->suspended = false;
    MHD_resume_connection(x->mhd);
    http_server_resumed(x);
}

/* Takes the response over; NULL: there was no memory for it, and the connection ends without an answer. */
static void http_exchange_respond(struct exchange *x, int status, struct MHD_Response *response,
                                  const char *type) {
    if (response && type)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    for (int i = 0; response && i < x->headers; i++)
        MHD_add_response_header(response, x->header[i].name, x->header[i].value);
    for (size_t i = 0; response && i < sizeof safe_headers / sizeof safe_headers[0]; i++)
        if (!http_exchange_has(x, safe_headers[i].name))
            MHD_add_response_header(response, safe_headers[i].name, safe_headers[i].value);
    x->response = response;
    x->status = status;
    /* From here on a client or a deadline that ends the exchange is no business of the handler. */
    x->closed = NULL;
    x->phase = HTTP_ANSWERED;
    http_server_answered(x);
    http_exchange_resume(x);
}

enum MHD_Result http_exchange_queue(struct exchange *x) {
    if (!x->response)
        return MHD_NO;
    x->phase = HTTP_SENT;
    return MHD_queue_response(x->mhd, (unsigned)x->status, x->response);
}

void http_exchange_answer(struct exchange *x, int status, const char *type, const void *bytes, size_t size) {
    struct MHD_Response *response = NULL;
    const char *accepts = http_exchange_header(x, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    size_t packed = 0;
    void *copy = NULL;
    if (http_compress_pays(type, size) && !http_exchange_has(x, MHD_HTTP_HEADER_CONTENT_ENCODING)) {
        if (!http_exchange_has(x, MHD_HTTP_HEADER_VARY))
            http_exchange_add(x, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
        copy = http_compress_accepted(accepts) ? http_compress(bytes, size, &packed) : NULL;
    }
    if (copy)
        http_exchange_add(x, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    else if ((copy = svi_alloc_plain(size ? size : 1)))
        memcpy(copy, bytes, packed = size);
    if (copy)
        response = MHD_create_response_from_buffer_with_free_callback(packed, copy, svi_free);
    if (copy && !response)
        svi_free(copy);
    x->answer_size = packed;
    http_exchange_respond(x, status, response, type);
}

void http_exchange_problem(struct exchange *x, int status, const char *code, const char *format, ...) {
    struct svi_bytes text = {0};
    char detail[SVS_ERROR_TEXT + 512], safe[sizeof detail], head[160];
    const char *path = x->target.path ? x->target.path : "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    svi_escape(safe, sizeof safe, detail, strlen(detail));
    snprintf(head, sizeof head, "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"detail\":",
             MHD_get_reason_phrase_for((unsigned)status), status);
    const bool good =
        svi_json_text(&text, head) == SVS_OK && svi_json_string(&text, safe, strlen(safe)) == SVS_OK &&
        svi_json_text(&text, ",\"code\":") == SVS_OK &&
        svi_json_string(&text, code, strlen(code)) == SVS_OK &&
        svi_json_text(&text, ",\"instance\":") == SVS_OK &&
        svi_json_string(&text, path, strlen(path)) == SVS_OK && svi_json_text(&text, "}\n") == SVS_OK;
    http_exchange_answer(x, status, "application/problem+json", good ? (const void *)text.data : "{}",
                         good ? text.size : 2);
    svi_bytes_clear(&text);
}

void http_exchange_later(struct exchange *x, double timeout, void (*closed)(void *user), void *user) {
    x->closed = closed;
    x->user = user;
    http_server_waits(x, timeout);
}

static ssize_t http_exchange_produce(void *context, uint64_t position, char *bytes, size_t size) {
    struct exchange *x = context;
    (void)position;
    if (x->hung_up)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    const ssize_t n = x->more(x->user, bytes, size);
    if (n == 0)
        http_exchange_suspend(x);
    return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

void http_exchange_stream(struct exchange *x, const char *type,
                          ssize_t (*more)(void *user, void *bytes, size_t size), void (*end)(void *user),
                          void *user) {
    x->more = more;
    x->end = end;
    x->user = user;
    if (strcmp(x->asked, MHD_HTTP_METHOD_HEAD) == 0) {
        /* libmicrohttpd would end a body of unknown size by a last chunk, which the client reads as the
         * beginning of the next answer. */
        http_exchange_answer(x, 200, type, "", 0);
        return;
    }
    http_exchange_respond(
        x, 200,
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, http_exchange_produce, x, NULL),
        type);
    http_server_streams(x);
}

void http_exchange_wake(struct exchange *x) {
    if (x->phase == HTTP_SENT)
        http_exchange_resume(x);
}

void http_exchange_free(struct exchange *x) {
    if (x->closed)
        x->closed(x->user);
    if (x->end)
        x->end(x->user);
    if (x->response)
        MHD_destroy_response(x->response);
    http_body_clear(&x->body);
    http_target_clear(&x->target);
    svi_free(x);
}
