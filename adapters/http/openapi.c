/* GET /openapi.json: the table of routes as an OpenAPI 3 document. It is made of the rows alone, so a request
 * that exists is described, and one that does not is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <svmstream/svmstream.h>

#include "handlers.h"

/* {name} of a path pattern: each becomes a parameter. */
static void http_openapi_path(json_t *parameters, const char *path) {
    for (const char *at = path; (at = strchr(at, '{')); at++) {
        json_t *p = json_pack("{s:s%, s:s, s:b, s:{s:s}}", "name", at + 1, strcspn(at + 1, "}"), "in", "path",
                              "required", 1, "schema", "type", "string");
        json_array_append_new(parameters, p);
    }
}

static json_t *http_openapi_parameters(const struct http_route *r) {
    json_t *all = json_array();
    http_openapi_path(all, r->path);
    for (const struct http_parameter *p = r->query; p && p->name; p++)
        json_array_append_new(all,
                              json_pack("{s:s, s:s, s:s, s:{s:s}}", "name", p->name, "in", "query",
                                        "description", p->text ? p->text : "", "schema", "type", p->type));
    return all;
}

/* {"a/b": {}, "c/d": {}} of a list of media types. */
static json_t *http_openapi_content(const char *types) {
    json_t *content = json_object();
    char type[100];
    for (const char *at = types ? types : ""; *at; at += strspn(at, ", ")) {
        const size_t length = strcspn(at, ",");
        snprintf(type, sizeof type, "%.*s", (int)length, at);
        json_object_set_new(content, type, json_object());
        at += length;
    }
    return content;
}

static json_t *http_openapi_operation(const struct http_route *r) {
    static const struct {
        unsigned role;
        const char *word;
    } words[] = {{ROLE_WATCH, "watch"}, {ROLE_SEND, "send"}, {ROLE_CONTROL, "control"}};
    json_t *o =
        json_pack("{s:s, s:o, s:{s:{s:s, s:o}, s:{s:s, s:o}}}", "summary", r->summary, "parameters",
                  http_openapi_parameters(r), "responses", "200", "description", "the answer", "content",
                  http_openapi_content(r->answer), "default", "description", "a problem", "content",
                  json_pack("{s:{s:{s:s}}}", "application/problem+json", "schema", "$ref",
                            "#/components/schemas/problem"));
    if (o && r->body)
        json_object_set_new(o, "requestBody",
                            json_pack("{s:b, s:o}", "required", 1, "content", http_openapi_content(r->body)));
    json_t *scopes = json_array();
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (r->role & words[i].role)
            json_array_append_new(scopes, json_string(words[i].word));
    json_object_set_new(
        o, "security", r->role ? json_pack("[{s:o}]", "token", scopes) : (json_decref(scopes), json_array()));
    return o;
}

static json_t *http_openapi_paths(const struct http_route *table) {
    json_t *paths = json_object();
    for (const struct http_route *r = table; r->method; r++) {
        char method[12];
        size_t i = 0;
        for (; r->method[i] && i + 1 < sizeof method; i++)
            method[i] = (char)(r->method[i] | 0x20);
        method[i] = '\0';
        if (!json_object_get(paths, r->path))
            json_object_set_new(paths, r->path, json_object());
        json_object_set_new(json_object_get(paths, r->path), method, http_openapi_operation(r));
    }
    return paths;
}

/* RFC 9457, with `code` besides. */
static json_t *http_openapi_components(void) {
    json_t *properties = json_object();
    static const char *const keys[] = {"type", "title", "status", "detail", "code", "instance"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        json_object_set_new(
            properties, keys[i],
            json_pack("{s:s}", "type", strcmp(keys[i], "status") == 0 ? "integer" : "string"));
    return json_pack("{s:{s:{s:s, s:[s,s,s,s], s:o}}, s:{s:{s:s, s:s}}}", "schemas", "problem", "type",
                     "object", "required", "title", "status", "detail", "code", "properties", properties,
                     "securitySchemes", "token", "type", "http", "scheme", "bearer");
}

void http_openapi_answer(struct exchange *x, struct http_app *app) {
    json_t *document = json_pack("{s:s, s:{s:s, s:s, s:s}, s:o, s:o}", "openapi", "3.1.0", "info", "title",
                                 "svmstream", "version", SVS_VERSION, "description",
                                 "Streams of svmstream over HTTP: `svmstream help http`.", "paths",
                                 http_openapi_paths(app->routes), "components", http_openapi_components());
    char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
    if (text)
        http_exchange_answer(x, 200, "application/json", text, strlen(text));
    else
        http_exchange_problem(x, 503, "no_memory", "there is no memory for this document");
    json_decref(document);
    free(text);
}
