#include "cli/print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "wire/json.h"

#define TEXT 120 /* bytes shown of one value */

enum svi_topic cli_topic_kind(const char *topic, size_t length) {
    for (int t = 0; t < SVI_TOPIC_COUNT; t++) {
        const char *name = svi_topic_name((enum svi_topic)t);
        size_t n = strlen(name);
        if (length > n && memcmp(topic, name, n) == 0 && topic[n] == '.')
            return (enum svi_topic)t;
    }
    return SVI_TOPIC_COUNT;
}

/* " key=value" for each of the keys that the map has with a value. */
static void print_keys(FILE *to, const msgpack_object *map, const char *const *keys) {
    char text[TEXT];
    for (; *keys; keys++) {
        const msgpack_object *o = cli_key(map, *keys);
        if (o && o->type != MSGPACK_OBJECT_NIL)
            fprintf(to, " %s=%s", *keys, cli_scalar(o, text, sizeof text));
    }
}

static void print_array(FILE *to, const char *key, const msgpack_object *o) {
    char text[TEXT];
    if (!o || o->type != MSGPACK_OBJECT_ARRAY)
        return;
    fprintf(to, " %s=", key);
    uint32_t shown = o->via.array.size < 8 ? o->via.array.size : 8;
    for (uint32_t i = 0; i < shown; i++)
        fprintf(to, "%s%s", i ? "," : "", cli_scalar(&o->via.array.ptr[i], text, sizeof text));
    if (o->via.array.size > shown)
        fputs(",...", to);
}

static const char *const quality[] = {"accuracy", "accuracy.w", "kappa", "kappa_t", "f1",
                                      "mae",      "rmse",       "r2",    NULL};

static void print_model(FILE *to, const msgpack_object *m) {
    print_keys(to, m, (const char *const[]){"version", "method", "d", NULL});
    print_array(to, "classes", cli_key(m, "classes"));
    print_keys(to, m, (const char *const[]){"seen", "learned", "serves", NULL});
    if (cli_key(m, "gap")) /* a refit */
        print_keys(to, m,
                   (const char *const[]){"at", "objective", "gap", "iterations", "milliseconds", NULL});
    print_keys(to, cli_key(m, "quality"), quality);
}

static bool same(const msgpack_object *a, const msgpack_object *b) {
    return a && b && msgpack_object_equal(*a, *b);
}

static void print_score(FILE *to, const msgpack_object *m) {
    const msgpack_object *y = cli_key(m, "y"), *yhat = cli_key(m, "yhat");
    print_keys(to, m, (const char *const[]){"id", "yhat", "y", NULL});
    if (y && yhat && yhat->type != MSGPACK_OBJECT_FLOAT64)
        fputs(same(y, yhat) ? " right" : " wrong", to);
    print_array(to, "scores", cli_key(m, "scores"));
    print_keys(to, m, (const char *const[]){"novelty", "p", "model", NULL});
}

static void print_stats(FILE *to, const msgpack_object *m) {
    print_keys(to, m, (const char *const[]){"seen", "learned", "errors", "rate", NULL});
    print_keys(to, m, quality);
    print_keys(to, m, (const char *const[]){"latency_p99", NULL});
}

static void print_error(FILE *to, const msgpack_object *m) {
    char code[TEXT], count[TEXT], reason[400];
    fprintf(to, " %s (%s): %s", cli_key_text(m, "code", code, sizeof code),
            cli_key_text(m, "count", count, sizeof count), cli_key_text(m, "reason", reason, sizeof reason));
}

static void print_alert(FILE *to, const msgpack_object *m) {
    char text[400];
    print_keys(to, m, (const char *const[]){"state", "id", "novelty", "p", "grade", NULL});
    fprintf(to, " %s", cli_key_text(m, "text", text, sizeof text));
}

void cli_print_event(FILE *to, enum svi_topic kind, const msgpack_object *payload) {
    static void (*const printers[SVI_TOPIC_COUNT])(FILE *, const msgpack_object *) = {
        [SVI_TOPIC_MODEL] = print_model,
        [SVI_TOPIC_SCORE] = print_score,
        [SVI_TOPIC_ALERT] = print_alert,
        [SVI_TOPIC_STATS] = print_stats,
        [SVI_TOPIC_ERROR] = print_error};
    char stream[TEXT];
    if (kind == SVI_TOPIC_COUNT)
        return;
    fprintf(to, "%s %s", svi_topic_name(kind), cli_key_text(payload, "stream", stream, sizeof stream));
    printers[kind](to, payload);
    fputc('\n', to);
}

svs_code cli_event_json(const char *topic, size_t topic_length, const void *payload, size_t length,
                        struct svi_bytes *line, svs_error *err) {
    line->size = 0;
    svs_code code = svi_json_text(line, "{\"topic\":");
    if (code == SVS_OK)
        code = svi_json_string(line, topic, topic_length);
    size_t brace = line->size;
    if (code == SVS_OK)
        code = svi_json_msgpack(line, payload, length, err);
    if (code != SVS_OK)
        return code;
    if (line->data[brace] != '{') /* no event: they are maps */
        line->size = 0;
    else
        line->data[brace] = line->size > brace + 2 ? ',' : ' '; /* the payload's own keys follow the topic */
    return line->size > 0 ? svi_json_text(line, "\n") : SVS_OK;
}

svs_code cli_print_json(FILE *to, const char *topic, size_t topic_length, const void *payload, size_t length,
                        struct svi_bytes *line, svs_error *err) {
    svs_code code = cli_event_json(topic, topic_length, payload, length, line, err);
    if (code != SVS_OK)
        return code;
    fwrite(line->data, 1, line->size, to);
    return ferror(to) ? SVS_IO : SVS_OK;
}
