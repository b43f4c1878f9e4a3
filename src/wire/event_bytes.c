#include "wire/event_bytes.h"

#include "wire/cursor.h"
#include "wire/fields.h"

static size_t event_bytes_head(const uint8_t *map) {
    struct svi_item item;
    return (size_t)(svi_item_read(map, &item) - map);
}

/* The heads of the maps may differ in length: from 16 pairs on it is longer. */
size_t svi_event_bytes_added(const struct svi_bytes *plain, const struct svi_bytes *whole) {
    return (whole->size - event_bytes_head(whole->data)) - (plain->size - event_bytes_head(plain->data));
}

void svi_event_bytes_put(struct svi_pack *p, const uint8_t *map, size_t size, const uint8_t *pair,
                         size_t pair_size) {
    struct svi_item item;
    const uint8_t *body = svi_item_read(map, &item);
    const size_t pairs = item.length + (pair_size > 0);
    svi_pack_map(p, pairs);
    svi_pack_promise(p, pairs); /* raw pairs are not counted as they are put */
    svi_pack_raw(p, body, size - (size_t)(body - map));
    svi_pack_raw(p, pair, pair_size);
}

static bool event_bytes_lists(const struct svi_item *names, const uint8_t *end, const char *key) {
    const uint8_t *at = names->body;
    struct svi_item name;
    for (uint32_t i = 0; names->type == SVI_ARRAY && i < names->length; i++) {
        svi_item_read(at, &name);
        if (svi_item_is(&name, key))
            return true;
        svi_walk(&at, end, SVI_WALK_MAX);
    }
    return false;
}

/* `key` stands near the begin of the map, `keys` near its end: other values are passed over. */
bool svi_event_bytes_concern(const uint8_t *map, size_t size, const char *key) {
    const uint8_t *end = map + size;
    struct svi_item item, name, value;
    const uint8_t *at = svi_item_read(map, &item);
    for (uint32_t i = 0; i < item.length; i++) {
        svi_item_read(at, &name);
        svi_walk(&at, end, SVI_WALK_MAX);
        svi_item_read(at, &value);
        svi_walk(&at, end, SVI_WALK_MAX);
        if ((svi_item_is(&name, "key") && svi_item_is(&value, key)) ||
            (svi_item_is(&name, "keys") && event_bytes_lists(&value, end, key)))
            return true;
    }
    return false;
}

static bool event_bytes_pairs(const uint8_t *at, const uint8_t *end, uint32_t pairs) {
    struct svi_item name;
    for (uint32_t i = 0; i < pairs; i++) {
        const uint8_t *from = at;
        if (svi_walk(&at, end, SVI_WALK_MAX) != SVS_OK || svi_walk(&at, end, SVI_WALK_MAX) != SVS_OK)
            return false;
        svi_item_read(from, &name);
        if (name.type != SVI_STRING)
            return false;
    }
    return at == end;
}

bool svi_event_bytes_good(const uint8_t *bytes, size_t size, bool pair) {
    const uint8_t *end = bytes + size, *at = bytes;
    struct svi_item item;
    if (pair)
        return event_bytes_pairs(bytes, end, 1);
    /* Walked before its head is read: a head may claim more than there is. */
    if (svi_walk(&at, end, SVI_WALK_MAX) != SVS_OK || at != end)
        return false;
    at = svi_item_read(bytes, &item);
    return item.type == SVI_MAP && event_bytes_pairs(at, end, item.length);
}
