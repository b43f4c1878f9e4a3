/* Events stored for another thread of the same process: the structure itself, then the data that it points
 * to, in one order that recording and reading share. An entry begins with the sizes of its parts. Each part
 * begins at a multiple of 16 bytes, so that contributions can be used in place. */
#include "wire/event_record.h"

#include "base/fail.h"
#include <string.h>

enum { PART_PAYLOAD, PART_KEY, PART_ONE, PART_TWO, PART_TOP, PART_HISTORY, PARTS };

struct record_head {
    size_t size;        /* bytes of the whole entry */
    size_t part[PARTS]; /* bytes of each part, without padding; 0: absent */
    struct svi_event event;
};

static size_t record_aligned(size_t n) {
    return (n + 15) & ~(size_t)15;
}

/* The strings of an alert, in the order in which they are stored, each with its NUL. NULL is stored as an
 * empty string, and an empty string is read as NULL. */
#define ALERT_TEXTS 9
static void record_texts(struct svi_alert_event *a, const char **text[ALERT_TEXTS]) {
    const char **const all[ALERT_TEXTS] = {&a->kind, &a->state, &a->judge, &a->severity, &a->measure,
                                           &a->rule, &a->lead,  &a->text,  &a->by};
    memcpy(text, all, sizeof all);
}

static svs_code record_text(struct svi_bytes *out, const char *text) {
    return svi_bytes_append(out, text ? text : "", text ? strlen(text) + 1 : 1);
}

/* Stores the strings of an alert and of its contributions, then the id if it is a string. */
static svs_code record_alert(const struct svi_alert_event *alert, struct svi_bytes *out) {
    struct svi_alert_event a = *alert;
    const char **text[ALERT_TEXTS];
    record_texts(&a, text);
    for (int i = 0; i < ALERT_TEXTS; i++)
        SVI_TRY(record_text(out, *text[i]));
    for (int i = 0; i < a.count; i++)
        SVI_TRY(record_text(out, a.top[i].feature));
    if (a.id.kind == SVS_STR)
        SVI_TRY(svi_bytes_append(out, a.id.as.s, a.id.length));
    return SVS_OK;
}

/* The structures, then the times and values of each. */
static svs_code record_history(const struct svi_alert_event *a, struct svi_bytes *out) {
    SVI_TRY(svi_bytes_append(out, a->history, (size_t)a->history_count * sizeof *a->history));
    for (int i = 0; i < a->history_count; i++) {
        const size_t size = (size_t)a->history[i].count * sizeof(double);
        SVI_TRY(svi_bytes_append(out, a->history[i].times, size));
        SVI_TRY(svi_bytes_append(out, a->history[i].values, size));
    }
    return SVS_OK;
}

static void recorded_history(struct svi_alert_event *a, struct svi_feature_history *history) {
    const double *at = (const double *)(const void *)(history + a->history_count);
    for (int i = 0; i < a->history_count; i++) {
        history[i].times = at;
        history[i].values = at += history[i].count;
        at += history[i].count;
    }
    a->history = history;
}

static const char *recorded_text(const char **at) {
    const char *text = *at;
    *at += strlen(text) + 1;
    return *text ? text : NULL;
}

static void recorded_alert(struct svi_alert_event *a, const char *at, struct svi_contribution *top) {
    const char **text[ALERT_TEXTS];
    record_texts(a, text);
    for (int i = 0; i < ALERT_TEXTS; i++)
        *text[i] = recorded_text(&at);
    a->top = top;
    for (int i = 0; i < a->count; i++)
        top[i].feature = recorded_text(&at);
    if (a->id.kind == SVS_STR)
        a->id.as.s = at;
}

/* Ends the part that began at `from`: notes its size and pads it to the alignment. */
static svs_code record_end(struct svi_bytes *out, size_t from, size_t *part) {
    static const uint8_t zeros[16];
    *part = out->size - from;
    return svi_bytes_append(out, zeros, record_aligned(*part) - *part);
}

static svs_code record_parts(const struct svi_event *e, bool encode, struct svi_bytes *buffer,
                             struct svi_bytes *out, struct record_head *h) {
    svs_code code = encode ? svi_event_encode(e, buffer) : SVS_OK;
    /* Every part is ended, also an absent one of size 0: reading walks over all of them in this order. */
    for (int i = 0; i < PARTS && code == SVS_OK; i++) {
        const size_t from = out->size;
        if (i == PART_PAYLOAD && encode)
            code = svi_bytes_append(out, buffer->data, buffer->size);
        else if (i == PART_KEY && e->key)
            code = record_text(out, e->key);
        else if (i == PART_ONE && e->topic == SVI_TOPIC_ALERT)
            code = record_alert(&e->as.alert, out);
        else if (i == PART_ONE && e->topic == SVI_TOPIC_ERROR)
            code = record_text(out, e->as.error.reason);
        else if (i == PART_TWO && e->topic == SVI_TOPIC_ERROR)
            code = svi_bytes_append(out, e->as.error.sample, e->as.error.sample_size);
        else if (i == PART_TOP && e->topic == SVI_TOPIC_ALERT)
            code =
                svi_bytes_append(out, e->as.alert.top, (size_t)e->as.alert.count * sizeof *e->as.alert.top);
        else if (i == PART_HISTORY && e->topic == SVI_TOPIC_ALERT)
            code = record_history(&e->as.alert, out);
        if (code == SVS_OK)
            code = record_end(out, from, &h->part[i]);
    }
    return code;
}

svs_code svi_event_record(const struct svi_event *e, bool encode, struct svi_bytes *buffer,
                          struct svi_bytes *out) {
    struct record_head h = {.event = *e};
    const size_t before = out->size;
    /* Space for the head, which is written last: the sizes of the parts are not known before. */
    svs_code code = svi_bytes_reserve(out, record_aligned(sizeof h));
    out->size += code == SVS_OK ? record_aligned(sizeof h) : 0;
    if (code == SVS_OK)
        code = record_parts(e, encode, buffer, out, &h);
    if (code != SVS_OK) {
        out->size = before;
        return code;
    }
    h.size = out->size - before;
    memcpy(out->data + before, &h, sizeof h);
    return SVS_OK;
}

bool svi_event_recorded(const struct svi_bytes *from, size_t *at, struct svi_recorded *out) {
    struct record_head h;
    uint8_t *part[PARTS];
    if (*at >= from->size)
        return false;
    /* Not validated: the bytes never leave the process. */
    memcpy(&h, from->data + *at, sizeof h);
    uint8_t *next = from->data + *at + record_aligned(sizeof h);
    *at += h.size;
    for (int i = 0; i < PARTS; i++) {
        part[i] = next;
        next += record_aligned(h.part[i]);
    }
    /* The stored structure holds the pointers of the recording thread: each one that receivers read is
     * replaced; the others are described by the payload and must not be used. */
    out->event = h.event;
    out->payload = (struct svi_bytes){part[PART_PAYLOAD], h.part[PART_PAYLOAD], h.part[PART_PAYLOAD]};
    out->event.payload = h.part[PART_PAYLOAD] > 0 ? &out->payload : NULL;
    if (h.part[PART_KEY] > 0)
        out->event.key = (const char *)part[PART_KEY];
    if (h.event.topic == SVI_TOPIC_ALERT) {
        recorded_alert(&out->event.as.alert, (const char *)part[PART_ONE],
                       (struct svi_contribution *)(void *)part[PART_TOP]);
        recorded_history(&out->event.as.alert, (struct svi_feature_history *)(void *)part[PART_HISTORY]);
    }
    if (h.event.topic == SVI_TOPIC_ERROR) {
        out->event.as.error.reason = (const char *)part[PART_ONE];
        out->event.as.error.sample = part[PART_TWO];
    }
    return true;
}
