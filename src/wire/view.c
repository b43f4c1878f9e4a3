#include "wire/view.h"

#include <string.h>

#include "wire/fields.h"

struct svi_view svi_view_of(const void *bytes, size_t size) {
    return (struct svi_view){bytes, (const uint8_t *)bytes + size};
}

struct svi_item svi_view_item(struct svi_view v) {
    struct svi_item item = {.type = SVI_NIL};
    if (v.at)
        svi_item_read(v.at, &item);
    return item;
}

struct svi_view svi_view_key(struct svi_view map, const char *key) {
    const struct svi_item head = svi_view_item(map);
    const uint8_t *at = head.body;
    struct svi_item name;
    for (uint32_t i = 0; head.type == SVI_MAP && i < head.length; i++) {
        const uint8_t *value = at;
        svi_item_read(at, &name);
        svi_walk(&value, map.end, SVI_WALK_MAX);
        at = value;
        svi_walk(&at, map.end, SVI_WALK_MAX);
        if (svi_item_is(&name, key))
            return (struct svi_view){value, at};
    }
    return (struct svi_view){NULL, NULL};
}

bool svi_view_next(struct svi_view *next, int64_t *left, struct svi_view *element) {
    if (*left < 0) {
        const struct svi_item head = svi_view_item(*next);
        *left = head.type == SVI_ARRAY ? head.length : 0;
        next->at = head.body;
    }
    if (*left == 0)
        return false;
    element->at = next->at;
    svi_walk(&next->at, next->end, SVI_WALK_MAX);
    element->end = next->at;
    --*left;
    return true;
}

double svi_view_number(struct svi_view map, const char *key, double other) {
    const struct svi_item item = svi_view_item(svi_view_key(map, key));
    double r;
    return svi_item_number(&item, &r) ? r : other;
}

int64_t svi_view_integer(struct svi_view map, const char *key, int64_t other) {
    const struct svi_item item = svi_view_item(svi_view_key(map, key));
    return item.type == SVI_INT ? item.i : other;
}

uint64_t svi_view_unsigned(struct svi_view map, const char *key, uint64_t other) {
    const struct svi_view value = svi_view_key(map, key);
    const struct svi_item item = svi_view_item(value);
    if (item.type == SVI_HUGE_INT)
        return svi_load64(value.at + 1);
    return item.type == SVI_INT && item.i >= 0 ? (uint64_t)item.i : other;
}

bool svi_view_true(struct svi_view map, const char *key) {
    const struct svi_item item = svi_view_item(svi_view_key(map, key));
    return item.type == SVI_BOOL && item.i != 0;
}

char *svi_view_text(struct svi_view map, const char *key, char *out, size_t size) {
    const struct svi_item item = svi_view_item(svi_view_key(map, key));
    const size_t length = item.type == SVI_STRING ? item.length < size ? item.length : size - 1 : 0;
    memcpy(out, length > 0 ? (const char *)item.body : "", length);
    out[length] = '\0';
    return out;
}

bool svi_view_is(struct svi_view map, const char *key, const char *text) {
    const struct svi_item item = svi_view_item(svi_view_key(map, key));
    return svi_item_is(&item, text);
}
