/* engine.h: an engine that takes JSON (single quotes will do) and keeps its events. */
#ifndef TEST_SUPPORT_ENGINE_H
#define TEST_SUPPORT_ENGINE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "fleet/fleet.h"
#include "server/control.h"
#include "wire/json.h"
#include "wire/pack.h"
#include "support/apply.h"
#include "store/checkpoint_file.h"

#define NOW 1000000.0 /* arrival clock of the tests, unless they turn it */

struct speaker {
    struct svi_settings s;
    svi_stream *e;
    struct svi_control control;
    double now;
    struct svi_bytes deeds; /* every model and score event's bytes, in order */
    struct svi_bytes event; /* the last event */
    struct svi_bytes frame; /* being built */
    int count[SVI_TOPIC_COUNT];
    json_t *last[SVI_TOPIC_COUNT]; /* payloads */
    svs_code error;                /* of the last error event */
};

static inline void speaker_sink(void *user, const struct svi_event *event) {
    struct speaker *f = user;
    assert_int_equal(svi_event_encode(event, &f->event), SVS_OK);
    if (event->topic == SVI_TOPIC_MODEL || event->topic == SVI_TOPIC_SCORE)
        assert_int_equal(svi_bytes_append(&f->deeds, f->event.data, f->event.size), SVS_OK);
    if (event->topic == SVI_TOPIC_ERROR)
        f->error = event->as.error.code;
    if (!event->key)
        assert_int_equal(event->seq, f->count[event->topic]);
    f->count[event->topic]++;
    struct svi_bytes text = {0};
    assert_int_equal(svi_json_msgpack(&text, f->event.data, f->event.size, NULL), SVS_OK);
    json_decref(f->last[event->topic]);
    f->last[event->topic] = json_loadb((const char *)text.data, text.size, JSON_ALLOW_NUL, NULL);
    assert_non_null(f->last[event->topic]);
    svi_bytes_clear(&text);
}

/* settings: "key value" pairs as svi_settings_set takes them, ended by NULL; `window` and its like mean
 * alsvm, as on a command line. */
static inline void speaker_open(struct speaker *f, const char *const *settings) {
    svs_error err = {0};
    memset(f, 0, sizeof *f);
    svi_settings_default(&f->s);
    svi_settings_set(&f->s, "method", "alsvm", &err);      /* unless it is among them */
    svi_settings_set(&f->s, "alert.budget", "none", &err); /* likewise: alerts go by alert.p */
    for (; settings && settings[0]; settings += 2)
        if (svi_settings_set(&f->s, settings[0], settings[1], &err) != SVS_OK)
            fail_msg("%s", err.text);
    svi_settings_settle_method(&f->s);
    f->now = NOW;
    f->e = svi_stream_new(&f->s, 77, speaker_sink, f, &err);
    if (!f->e)
        fail_msg("%s", err.text);
    f->control = (struct svi_control){.stream = f->e, .settings = &f->s, .started = NOW, .run = 1};
}

/* The engine saved, and a new one loaded from that in its place. */
static inline void speaker_take_up_again(struct speaker *f) {
    struct svi_checkpoint c = {0};
    svs_error err = {0};
    assert_int_equal(svi_stream_save(f->e, &c, &err), SVS_OK);
    svi_stream *again = svi_stream_new(&f->s, 77, speaker_sink, f, &err);
    assert_non_null(again);
    if (svi_stream_load(again, &c, &err) != SVS_OK)
        fail_msg("%s", err.text);
    svi_stream_free(&f->e);
    f->e = f->control.stream = again;
    svi_checkpoint_clear(&c);
}

static inline void speaker_close(struct speaker *f) {
    svi_control_clear(&f->control);
    svi_stream_free(&f->e);
    assert_null(f->e);
    svi_bytes_clear(&f->deeds);
    svi_bytes_clear(&f->event);
    svi_bytes_clear(&f->frame);
    for (int t = 0; t < SVI_TOPIC_COUNT; t++)
        json_decref(f->last[t]);
}

static inline void speaker_pack(struct svi_pack *p, const json_t *j) {
    const char *key;
    json_t *value;
    size_t i;
    switch (json_typeof(j)) {
    case JSON_OBJECT:
        svi_pack_map(p, json_object_size(j));
        json_object_foreach((json_t *)(uintptr_t)j, key, value) {
            svi_pack_text(p, key);
            speaker_pack(p, value);
        }
        break;
    case JSON_ARRAY:
        svi_pack_array(p, json_array_size(j));
        json_array_foreach(j, i, value) speaker_pack(p, value);
        break;
    case JSON_STRING:
        msgpack_pack_str(&p->packer, json_string_length(j));
        msgpack_pack_str_body(&p->packer, json_string_value(j), json_string_length(j));
        break;
    case JSON_INTEGER:
        svi_pack_int(p, json_integer_value(j));
        break;
    case JSON_REAL:
        svi_pack_real(p, json_real_value(j));
        break;
    case JSON_NULL:
        svi_pack_nil(p);
        break;
    case JSON_TRUE:
        msgpack_pack_true(&p->packer);
        break;
    default:
        msgpack_pack_false(&p->packer);
    }
}

/* The msgpack bytes of a JSON text, in f->frame. */
static inline void speaker_frame(struct speaker *f, const char *format, va_list arguments) {
    char text[4096];
    int length = vsnprintf(text, sizeof text, format, arguments);
    assert_in_range(length, 1, sizeof text - 1);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json_error_t why;
    json_t *j = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    if (!j)
        fail_msg("%s: %s", text, why.text);
    struct svi_pack p;
    f->frame.size = 0;
    svi_pack_begin(&p, &f->frame);
    speaker_pack(&p, j);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    json_decref(j);
}

static inline void speaker_build(struct speaker *f, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    speaker_frame(f, format, arguments);
    va_end(arguments);
}

/* One frame without acknowledgement. The code of the frame as a whole. */
static inline svs_code say(struct speaker *f, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    speaker_frame(f, format, arguments);
    va_end(arguments);
    return apply_bytes(f->e, f->frame.data, f->frame.size, f->now, false, NULL);
}

static inline json_t *speaker_reply(struct svi_bytes *bytes) {
    struct svi_bytes text = {0};
    assert_int_equal(svi_json_msgpack(&text, bytes->data, bytes->size, NULL), SVS_OK);
    json_t *j = json_loadb((const char *)text.data, text.size, JSON_ALLOW_NUL, NULL);
    assert_non_null(j);
    svi_bytes_clear(&text);
    svi_bytes_clear(bytes);
    return j;
}

/* A control request, or an acknowledged message; the caller decrefs the reply. */
static inline json_t *ask(struct speaker *f, const char *format, ...) {
    struct svi_bytes out = {0};
    va_list arguments;
    va_start(arguments, format);
    speaker_frame(f, format, arguments);
    va_end(arguments);
    assert_int_equal(svi_control_handle(&f->control, f->frame.data, f->frame.size, f->now, &out), SVS_OK);
    return speaker_reply(&out);
}

static inline json_t *route(struct speaker *f, const char *format, ...) {
    struct svi_bytes out = {0};
    va_list arguments;
    va_start(arguments, format);
    speaker_frame(f, format, arguments);
    va_end(arguments);
    assert_int_equal(route_bytes(&f->control, f->frame.data, f->frame.size, f->now, &out), SVS_OK);
    return speaker_reply(&out);
}

/* A number of a map, NAN when it is null or not there. */
static inline double number(const json_t *map, const char *key) {
    const json_t *j = json_object_get(map, key);
    return json_is_number(j) ? json_number_value(j) : NAN;
}

static inline const char *text_of(const json_t *map, const char *key) {
    const char *text = json_string_value(json_object_get(map, key));
    return text ? text : "(none)";
}

/* A figure of the stats topic now. */
static inline double stat(struct speaker *f, const char *name) {
    const struct svi_figure *figures;
    int count = svi_stream_figures(f->e, NULL, f->now, &figures);
    for (int i = 0; i < count; i++)
        if (strcmp(figures[i].name, name) == 0)
            return figures[i].type == SVI_COUNT ? (double)figures[i].as.count : figures[i].as.number;
    return NAN;
}

#endif
