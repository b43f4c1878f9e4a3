#include "kafka_seen.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "wire/fields.h"

struct seen_event {
    uint64_t epoch, seq;
    size_t length;
    const char *topic; /* behind the struct, except in a key to search for */
};

static int seen_compare(const void *a, const void *b) {
    const struct seen_event *x = a, *y = b;
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return memcmp(x->topic, y->topic, x->length);
}

static bool seen_read(const void *payload, size_t size, struct seen_event *out) {
    static const struct svi_field fields[] = {SVI_FIELD(struct seen_event, epoch, UINT, 0, 0),
                                              SVI_FIELD(struct seen_event, seq, UINT, 0, 0)};
    svs_error err;
    return payload && svi_msgpack_check(payload, size, SVI_WALK_MAX, &err) == SVS_OK &&
           svi_fields_read("event", SVI_FIELDS(fields), payload, (const uint8_t *)payload + size, out,
                           &err) == SVS_OK;
}

svs_code kafka_seen_note(struct kafka_seen *s, const char *topic, size_t length, const void *payload,
                         size_t size, svs_error *err) {
    struct seen_event key = {.length = length, .topic = topic};
    if (!topic || !seen_read(payload, size, &key))
        return SVS_OK;
    void *found = tfind(&key, &s->tree, seen_compare);
    struct seen_event *e;
    if (!found) {
        if (!(e = svi_alloc_plain(sizeof *e + length)))
            return svi_fail_memory(err, "the events that are published");
        *e = key;
        e->topic = memcpy(e + 1, topic, length);
        if (!tsearch(e, &s->tree, seen_compare)) {
            svi_free(e);
            return svi_fail_memory(err, "the events that are published");
        }
        s->count++;
        return SVS_OK;
    }
    e = *(struct seen_event **)found;
    if (key.epoch > e->epoch || (key.epoch == e->epoch && key.seq > e->seq)) {
        e->epoch = key.epoch;
        e->seq = key.seq;
    }
    return SVS_OK;
}

bool kafka_seen_has(const struct kafka_seen *s, const char *topic, size_t length, const void *payload,
                    size_t size) {
    struct seen_event key = {.length = length, .topic = topic};
    void *found = s->tree && seen_read(payload, size, &key) ? tfind(&key, &s->tree, seen_compare) : NULL;
    const struct seen_event *e = found ? *(struct seen_event **)found : NULL;
    return e && (key.epoch < e->epoch || (key.epoch == e->epoch && key.seq <= e->seq));
}

void kafka_seen_clear(struct kafka_seen *s) {
    tdestroy(s->tree, svi_free);
    *s = (struct kafka_seen){0};
}
