#include "routes.h"

#include "handlers.h"

#define STREAM                                                                                               \
    { "stream", "string", "name of the stream; needed only where several are shown" }
#define KEY                                                                                                  \
    { "key", "string", "key of a stream that has some" }
#define ROWS                                                                                                 \
    "application/json, application/x-ndjson, application/jsonl, text/csv, application/msgpack, "             \
    "application/x-msgpack"
#define MAP "application/json, application/msgpack, application/x-msgpack"

static const struct http_parameter of_stream[] = {STREAM, {0}};
static const struct http_parameter of_key[] = {STREAM, KEY, {0}};
static const struct http_parameter of_bank[] = {
    STREAM, KEY, {"brief", "boolean", "without what only a program computes with"}, {0}};
static const struct http_parameter of_model[] = {
    STREAM, KEY, {"format", "string", "json, msgpack or liblinear; else Accept decides"}, {0}};
static const struct http_parameter of_weights[] = {
    STREAM,
    {"since", "number", "seconds that the model compared with is older (default 600; as far as one is kept)"},
    {"limit", "integer", "weights listed (default 20, at most 1000)"},
    {0}};
static const struct http_parameter of_keys[] = {
    STREAM,
    {"sort", "string", "quality (default), age, rows, alerts or name"},
    {"like", "string", "part of the name"},
    {"prefix", "string", "begin of the name"},
    {"open", "boolean", "only keys with an open alert"},
    {"silent", "number", "seconds without a sample, at least"},
    {"rows", "integer", "samples seen, at least"},
    {"limit", "integer", "keys listed (default 100; with offset at most 10000)"},
    {"offset", "integer", "keys left out before them"},
    {0}};
static const struct http_parameter of_alerts[] = {
    STREAM,
    {"key", "string", "only alerts that concern this key"},
    {"since", "integer", "only alerts with an event above this number"},
    {"epoch", "integer", "epoch that `since` is of; where it is over, all are listed"},
    {"limit", "integer", "alerts listed (default 100, at most 10000)"},
    {"offset", "integer", "alerts left out before them"},
    {"open", "boolean", "only those that are open"},
    {"events", "boolean", "the plain events in their order, instead of one entry an alert"},
    {0}};
static const struct http_parameter of_events[] = {
    {"stream", "string", "name of a stream; else all"},
    {"kind", "string",
     "kinds, separated by commas: model, bank, score, alert, stats, error, sums, prior; without it "
     "all but score, bank, sums and prior"},
    {"key", "string", "only events of this key"},
    {"last", "string", "as the header Last-Event-ID, for clients that cannot set it"},
    {"comment", "integer", "seconds of silence after which a comment is sent (default 15)"},
    {0}};
#define FROM                                                                                                 \
    { "from", "string", "seconds since 1970, ISO 8601, or before now: -6h; else the oldest" }
#define TO                                                                                                   \
    { "to", "string", "the same; else now" }
static const struct http_parameter of_history[] = {
    STREAM,
    FROM,
    TO,
    {"step", "string",
     "seconds from point to point (or 10min, 1h); else the finest with at most 1500 points"},
    {"figures", "string", "names of figures, separated by commas; else all"},
    {0}};
static const struct http_parameter of_past[] = {
    STREAM,
    FROM,
    TO,
    {"key", "string", "only alerts that were published for this key"},
    {"offset", "integer", "alerts left out before those listed"},
    {0}};

static const struct http_parameter of_changes[] = {
    STREAM,
    {"src", "string", "name of the source whose elements are numbered; with n"},
    {"n", "integer", "number of the first element within src"},
    {0}};
static const struct http_parameter of_samples[] = {
    STREAM,
    {"src", "string", "name of the source whose rows are numbered; with n"},
    {"n", "integer", "number of the first row within src"},
    {"scores", "boolean", "false: no prediction for each row"},
    {0}};

/* Handlers of one subject stand together, in the order of /openapi.json. */
const struct http_route http_routes[] = {
    {"GET", "/", 0, http_page_get, "the page", NULL, NULL, "text/html"},
    {"GET", "/openapi.json", 0, http_openapi_answer, "this description", NULL, NULL, "application/json"},
    {"GET", "/streams", ROLE_WATCH, http_shown_streams,
     "the streams shown, with a sentence about each and about all", NULL, NULL, MAP},
    {"GET", "/readyz", ROLE_WATCH, http_shown_ready,
     "200 while every stream is ready, else 503 with the reasons", NULL, NULL, "text/plain"},
    {"GET", "/errors", ROLE_WATCH, http_shown_errors, "what was refused, by error code", of_stream, NULL,
     MAP},
    {"GET", "/status", ROLE_WATCH, http_asked_status, "counters, quality and figures of the stream", of_key,
     NULL, MAP},
    {"GET", "/keys", ROLE_WATCH, http_asked_keys, "the keys of a stream, the worst first", of_keys, NULL,
     MAP},
    {"GET", "/bank", ROLE_WATCH, http_asked_bank, "the members of `method auto` and their shares", of_bank,
     NULL, MAP},
    {"GET", "/weights", ROLE_WATCH, http_weights_get, "the weights that moved most", of_weights, NULL, MAP},
    {"GET", "/model", ROLE_WATCH, http_asked_model, "the model that scores now", of_model, NULL,
     "application/json, application/msgpack, text/plain"},
    {"GET", "/alerts", ROLE_WATCH, http_alerts_get, "alerts, the newest first", of_alerts, NULL, MAP},
    {"POST", "/alerts/{alert}/verdict", ROLE_CONTROL, http_asked_verdict,
     "a person's verdict on an alert: {\"verdict\": true, \"by\": \"ada\"}", of_stream, "application/json",
     MAP},
    {"GET", "/mutes", ROLE_WATCH, http_asked_mutes, "the mutes that last", of_stream, NULL, MAP},
    {"POST", "/mutes", ROLE_CONTROL, http_asked_mute, "holds back alerts: {\"for\": \"2h\", \"key\": \"m1\"}",
     of_stream, "application/json", MAP},
    {"DELETE", "/mutes/{mute}", ROLE_CONTROL, http_asked_unmute, "ends a mute", of_stream, NULL, MAP},
    {"POST", "/samples", ROLE_SEND, http_samples_post,
     "rows to learn, acknowledged, with the prediction for each made before it was learned", of_samples, ROWS,
     MAP},
    {"POST", "/predict", ROLE_SEND, http_samples_predict, "rows to score; nothing is learned", of_key, ROWS,
     MAP},
    {"POST", "/labels", ROLE_SEND, http_samples_labels,
     "late labels: {\"id\": 7, \"y\": \"ok\"}, or an array of them", of_changes, ROWS, MAP},
    {"POST", "/forget", ROLE_SEND, http_samples_forget,
     "removes samples, exactly: {\"id\": 7}, or an array of them", of_changes, ROWS, MAP},
    {"GET", "/events", ROLE_WATCH, http_events_get, "server-sent events: the lines of `watch --json`",
     of_events, NULL, "text/event-stream"},
    {"GET", "/history", ROLE_WATCH, http_history_get, "figures of the past", of_history, NULL,
     "application/json"},
    {"GET", "/history/alerts", ROLE_WATCH, http_history_get_alerts, "alerts of the past, the newest first",
     of_past, NULL, "application/json"},
    {"GET", "/metrics", ROLE_WATCH, http_metrics_answer,
     "the figures of all streams and of the adapter, for Prometheus", NULL, NULL,
     "application/openmetrics-text, text/plain"},
    {"GET", "/healthz", 0, http_health_answer, "200 while the adapter itself works", NULL, NULL,
     "text/plain"},
    {0},
};
