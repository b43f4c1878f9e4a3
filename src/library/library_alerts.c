/* Alert events of a stream, decoded from the bytes that it keeps of them: none is lost when memory is out at
 * the moment of its row. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "library/library_internal.h"
#include "wire/json.h"
#include "wire/view.h"

void svi_library_alerts_clear(struct svi_library_alerts *list) {
    svi_free(list->of);
    svi_bytes_clear(&list->text);
    *list = (struct svi_library_alerts){0};
}

static svs_code library_alerts_reserve(struct svi_library_alerts *list) {
    if (list->count < list->capacity)
        return SVS_OK;
    const int capacity = list->capacity > 0 ? 2 * list->capacity : 8;
    svs_alert *wider =
        svi_realloc_plain(list->of, (size_t)list->capacity * sizeof *wider, (size_t)capacity * sizeof *wider);
    if (!wider)
        return SVS_NO_MEMORY;
    list->of = wider;
    list->capacity = capacity;
    return SVS_OK;
}

/* Strings are noted as their place in the text, plus 1, until the text no longer moves. */
static svs_code library_note(struct svi_bytes *text, const void *bytes, size_t size, const char **place) {
    *place = (const char *)(text->size + 1);
    const svs_code code = svi_bytes_append(text, bytes, size);
    return code == SVS_OK ? svi_bytes_append(text, "", 1) : code;
}

static svs_code library_note_key(struct svi_bytes *text, struct svi_view event, const char *key,
                                 const char **place) {
    const struct svi_item item = svi_view_item(svi_view_key(event, key));
    *place = NULL;
    return item.type == SVI_STRING ? library_note(text, item.body, item.length, place) : SVS_OK;
}

static svs_code library_decode(const struct svi_bytes *bytes, struct svi_bytes *text, svs_alert *a) {
    const struct svi_view event = svi_view_of(bytes->data, bytes->size);
    const struct {
        const char *key, **to;
    } strings[] = {{"kind", &a->kind}, {"state", &a->state},       {"severity", &a->severity},
                   {"rule", &a->rule}, {"detector", &a->detector}, {"text", &a->text},
                   {"key", &a->key}};
    a->number = svi_view_integer(event, "number", 0);
    a->alert = svi_view_integer(event, "alert", 0);
    a->ts = svi_view_number(event, "ts", NAN);
    a->since = svi_view_number(event, "since", NAN);
    a->p = svi_view_number(event, "p", NAN);
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
        SVI_TRY(library_note_key(text, event, strings[i].key, strings[i].to));
    const char *packed;
    SVI_TRY(library_note(text, bytes->data, bytes->size, &packed));
    a->packed = packed;
    a->packed_size = bytes->size;
    a->json = (const char *)(text->size + 1);
    svs_error unread;
    SVI_TRY(svi_json_msgpack(text, bytes->data, bytes->size, &unread));
    return svi_bytes_append(text, "", 1);
}

static void library_place_string(const struct svi_bytes *text, const char **place) {
    if (*place)
        *place = (const char *)text->data + ((uintptr_t)*place - 1);
}

static void library_place_strings(struct svi_library_alerts *list) {
    for (int i = 0; i < list->count; i++) {
        svs_alert *a = &list->of[i];
        const char **const strings[] = {&a->kind, &a->state,    &a->severity,
                                        &a->rule, &a->detector, &a->text,
                                        &a->key,  &a->json,     (const char **)&a->packed};
        for (size_t k = 0; k < sizeof strings / sizeof strings[0]; k++)
            library_place_string(&list->text, strings[k]);
    }
}

svs_code svi_library_alerts(svs_stream *s, int64_t since, struct svi_library_alerts *list) {
    svs_code code = SVS_OK;
    list->count = 0;
    list->text.size = 0;
    for (int64_t at = since; code == SVS_OK;) {
        at = svi_kept_alerts_next(s->kept, at, &s->event);
        if (at == 0)
            break;
        code = at < 0 ? SVS_NO_MEMORY : library_alerts_reserve(list);
        /* A verdict is kept among the events, but was given by the caller. */
        if (code == SVS_OK &&
            svi_view_is(svi_view_of(s->event.data, s->event.size), "state", SVI_ALERT_VERDICT))
            continue;
        if (code == SVS_OK) {
            list->of[list->count] = (svs_alert){0};
            code = library_decode(&s->event, &list->text, &list->of[list->count]);
        }
        list->count += code == SVS_OK;
    }
    if (code != SVS_OK) {
        list->count = 0;
        return SVS_NO_MEMORY;
    }
    library_place_strings(list);
    return SVS_OK;
}

const svs_alert *svs_stream_alerts(svs_stream *s, int *count) {
    svi_stream_settle(s->stream);
    const svs_code code = svi_library_alerts(s, s->taken, &s->of_all);
    if (code == SVS_OK)
        s->taken = (int64_t)svi_kept_alerts_last(s->kept);
    *count = code == SVS_OK ? s->of_all.count : -1;
    return *count > 0 ? s->of_all.of : NULL;
}
