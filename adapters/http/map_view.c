#include "map_view.h"

#include <string.h>

#include "wire/fields.h"

struct http_view http_view_of(const void *bytes, size_t size) {
    return (struct http_view){bytes, (const uint8_t *)bytes + size};
}

struct svi_item http_view_item(struct http_view v) {
    struct svi_item item = {.type = SVI_NIL};
    if (v.at)
        svi_item_read(v.at, &item);
    return item;
}

struct http_view http_view_key(struct http_view map, const char *key) {
    const struct svi_item head = http_view_item(map);
    const uint8_t *at = head.body;
    struct svi_item name;
    for (uint32_t i = 0; head.type == SVI_MAP && i < head.length; i++) {
        const uint8_t *value = at;
        svi_item_read(at, &name);
        svi_walk(&value, map.end, SVI_WALK_MAX);
        at = value;
        svi_walk(&at, map.end, SVI_WALK_MAX);
        if (svi_item_is(&name, key))
            return (struct http_view){value, at};
    }
    return (struct http_view){NULL, NULL};
}

bool http_view_next(struct http_view *next, int64_t *left, struct http_view *element) {
    if (*left < 0) {
        const struct svi_item head = http_view_item(*next);
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

double http_view_number(struct http_view map, const char *key, double other) {
    const struct svi_item item = http_view_item(http_view_key(map, key));
    double r;
    return svi_item_number(&item, &r) ? r : other;
}

int64_t http_view_integer(struct http_view map, const char *key, int64_t other) {
    const struct svi_item item = http_view_item(http_view_key(map, key));
    return item.type == SVI_INT ? item.i : other;
}

uint64_t http_view_unsigned(struct http_view map, const char *key, uint64_t other) {
    const struct http_view value = http_view_key(map, key);
    const struct svi_item item = http_view_item(value);
    if (item.type == SVI_HUGE_INT)
        return svi_load64(value.at + 1);
    return item.type == SVI_INT && item.i >= 0 ? (uint64_t)item.i : other;
}

bool http_view_true(struct http_view map, const char *key) {
    const struct svi_item item = http_view_item(http_view_key(map, key));
    return item.type == SVI_BOOL && item.i != 0;
}

char *http_view_text(struct http_view map, const char *key, char *out, size_t size) {
    const struct svi_item item = http_view_item(http_view_key(map, key));
    const size_t length = item.type == SVI_STRING ? item.length < size ? item.length : size - 1 : 0;
    memcpy(out, length > 0 ? (const char *)item.body : "", length);
    out[length] = '\0';
    return out;
}

bool http_view_is(struct http_view map, const char *key, const char *text) {
    const struct svi_item item = http_view_item(http_view_key(map, key));
    return svi_item_is(&item, text);
}
