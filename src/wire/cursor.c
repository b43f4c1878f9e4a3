#include "wire/cursor.h"

/* What a lead byte says of its item: its bytes in all, and above them the elements that follow it; 0 = a
 * length field comes first, or the byte is 0xc1. One look-up costs less than branches on ranges. */
#define ITEM(span, elements) ((span) | (elements) << 8)
#define MAP_OF(n)            ITEM(1, 2 * (n))
#define ARRAY_OF(n)          ITEM(1, n)
#define STRING_OF(n)         ITEM(1 + (n), 0)
#define FOUR(item)           item, item, item, item
#define SIXTEEN(item)        FOUR(item), FOUR(item), FOUR(item), FOUR(item)
#define COUNT4(item, n)      item(n), item((n) + 1), item((n) + 2), item((n) + 3)
#define COUNT16(item, n)     COUNT4(item, n), COUNT4(item, (n) + 4), COUNT4(item, (n) + 8), COUNT4(item, (n) + 12)

static const uint16_t leads[256] = {
    SIXTEEN(1),
    SIXTEEN(1),
    SIXTEEN(1),
    SIXTEEN(1), /* positive fixint */
    SIXTEEN(1),
    SIXTEEN(1),
    SIXTEEN(1),
    SIXTEEN(1),
    COUNT16(MAP_OF, 0),
    COUNT16(ARRAY_OF, 0),
    COUNT16(STRING_OF, 0),
    COUNT16(STRING_OF, 16),
    1,
    0,
    1,
    1,
    0,
    0,
    0,
    0,
    0,
    0,
    5,
    9,
    2,
    3,
    5,
    9, /* nil, -, bools, bin, ext, floats, uints */
    2,
    3,
    5,
    9,
    3,
    4,
    6,
    10,
    18,
    0,
    0,
    0,
    0,
    0,
    0,
    0, /* ints, fixexts, str, array, map */
    SIXTEEN(1),
    SIXTEEN(1), /* negative fixint */
};

/* The items with a length field, 0xc0 to 0xdf: bytes of the field (0 = none of them), bytes between it and
 * the body, and how many elements each count stands for (0 = it counts bytes). */
static const struct sized {
    uint8_t field, extra, times;
} sized[32] = {
    [0xc4 - 0xc0] = {1, 0, 0}, [0xc5 - 0xc0] = {2, 0, 0}, [0xc6 - 0xc0] = {4, 0, 0}, /* bin */
    [0xc7 - 0xc0] = {1, 1, 0}, [0xc8 - 0xc0] = {2, 1, 0}, [0xc9 - 0xc0] = {4, 1, 0}, /* ext */
    [0xd9 - 0xc0] = {1, 0, 0}, [0xda - 0xc0] = {2, 0, 0}, [0xdb - 0xc0] = {4, 0, 0}, /* str */
    [0xdc - 0xc0] = {2, 0, 1}, [0xdd - 0xc0] = {4, 0, 1},                            /* array */
    [0xde - 0xc0] = {2, 0, 2}, [0xdf - 0xc0] = {4, 0, 2},                            /* map */
};

static uint32_t load_length(const uint8_t *p, int size) {
    return size == 1 ? *p : size == 2 ? svi_load16(p) : svi_load32(p);
}

/* The same for an item with a length field. False for 0xc1. A field that does not fit into `room` gives a
 * span that does not fit either. */
static bool measure_sized(const uint8_t *p, uint64_t room, uint64_t *span, uint64_t *elements) {
    struct sized s = sized[*p - 0xc0];
    *span = 1u + s.field + s.extra;
    if (s.field == 0 || room < *span)
        return s.field != 0;
    uint64_t n = load_length(p + 1, s.field);
    *elements = n * s.times;
    if (s.times == 0)
        *span += n;
    return true;
}

/* Passes at most `count` doubles, by far the most frequent items; returns how many there were. */
static inline uint64_t pass_doubles(const uint8_t *p, const uint8_t *end, uint64_t count) {
    uint64_t room = (uint64_t)(end - p) / 9, most = count < room ? count : room, n = 0;
    const uint8_t lead = SVI_LEAD_DOUBLE;
    for (; n + 4 <= most; n += 4, p += 36) /* one branch for four */
        if ((p[0] ^ lead) | (p[9] ^ lead) | (p[18] ^ lead) | (p[27] ^ lead))
            break;
    for (; n < most && *p == lead; n++)
        p += 9;
    return n;
}

svs_code svi_walk(const uint8_t **at, const uint8_t *end, int depth) {
    uint64_t outer[SVI_WALK_MAX]; /* elements to come in the containers around this one */
    uint64_t count = 1;           /* and in this one */
    int level = 0;
    for (const uint8_t *p = *at;;) {
        while (count == 0 && level > 0)
            count = outer[--level];
        *at = p;
        if (count == 0)
            return SVS_OK;
        if (p >= end)
            return SVS_TRUNCATED;
        uint64_t room = (uint64_t)(end - p), span = leads[*p] & 0xff, elements = leads[*p] >> 8;
        if (span == 0 && !measure_sized(p, room, &span, &elements))
            return SVS_NOT_MSGPACK;
        if (span > room || elements > room - span)
            return SVS_TRUNCATED;
        p += span;
        count--;
        if (elements == 0)
            continue;
        if (level >= depth)
            return SVS_TOO_DEEP;
        uint64_t doubles = *p == SVI_LEAD_DOUBLE ? pass_doubles(p, end, elements) : 0;
        p += 9 * doubles;
        outer[level++] = count;
        count = elements - doubles;
    }
}

static const uint8_t *read_sized(const uint8_t *at, enum svi_item_type type, int size,
                                 struct svi_item *item) {
    item->type = type;
    item->length = load_length(at + 1, size);
    item->body = at + 1 + size;
    return type == SVI_ARRAY || type == SVI_MAP ? item->body : item->body + item->length;
}

static const uint8_t *read_ext(const uint8_t *type, uint32_t length, struct svi_item *item) {
    item->type = SVI_EXT;
    item->ext = (int8_t)*type;
    item->length = length;
    item->body = type + 1;
    return item->body + length;
}

static const uint8_t *read_int(const uint8_t *next, int64_t i, struct svi_item *item) {
    item->type = SVI_INT;
    item->i = i;
    return next;
}

static const uint8_t *read_uint64(const uint8_t *at, struct svi_item *item) {
    uint64_t u = svi_load64(at + 1);
    item->type = u > INT64_MAX ? SVI_HUGE_INT : SVI_INT;
    item->i = (int64_t)u;
    item->r = (double)u;
    return at + 9;
}

static const uint8_t *read_float(const uint8_t *at, struct svi_item *item) {
    uint32_t bits = svi_load32(at + 1);
    float f;
    memcpy(&f, &bits, sizeof f);
    item->type = SVI_REAL;
    item->r = f;
    return at + 5;
}

static const uint8_t *read_double(const uint8_t *at, struct svi_item *item) {
    uint64_t bits = svi_load64(at + 1);
    memcpy(&item->r, &bits, sizeof bits);
    item->type = SVI_REAL;
    return at + 9;
}

static const uint8_t *read_short_container(const uint8_t *at, struct svi_item *item) {
    uint8_t b = *at;
    item->body = at + 1;
    if (b >= 0xa0) {
        item->type = SVI_STRING;
        item->length = b & 0x1fu;
        return item->body + item->length;
    }
    item->type = b < 0x90 ? SVI_MAP : SVI_ARRAY;
    item->length = b & 0x0fu;
    return item->body;
}

static const uint8_t *read_number(const uint8_t *at, struct svi_item *item) {
    switch (*at) {
    case 0xca:
        return read_float(at, item);
    case 0xcb:
        return read_double(at, item);
    case 0xcc:
        return read_int(at + 2, at[1], item);
    case 0xcd:
        return read_int(at + 3, svi_load16(at + 1), item);
    case 0xce:
        return read_int(at + 5, svi_load32(at + 1), item);
    case 0xcf:
        return read_uint64(at, item);
    case 0xd0:
        return read_int(at + 2, (int8_t)at[1], item);
    case 0xd1:
        return read_int(at + 3, (int16_t)svi_load16(at + 1), item);
    case 0xd2:
        return read_int(at + 5, (int32_t)svi_load32(at + 1), item);
    default:
        return read_int(at + 9, (int64_t)svi_load64(at + 1), item);
    }
}

static const uint8_t *read_sized_any(const uint8_t *at, struct svi_item *item) {
    uint8_t b = *at;
    if (b >= 0xdc)
        return read_sized(at, b < 0xde ? SVI_ARRAY : SVI_MAP, b & 1 ? 4 : 2, item);
    if (b >= 0xd9)
        return read_sized(at, SVI_STRING, 1 << (b - 0xd9), item);
    if (b >= 0xd4)
        return read_ext(at + 1, 1u << (b - 0xd4), item);
    int size = 1 << (b - (b >= 0xc7 ? 0xc7 : 0xc4));
    if (b >= 0xc7)
        return read_ext(at + 1 + size, load_length(at + 1, size), item);
    return read_sized(at, SVI_BIN, size, item);
}

const uint8_t *svi_item_read(const uint8_t *at, struct svi_item *item) {
    uint8_t b = *at;
    if (b < 0x80 || b >= 0xe0)
        return read_int(at + 1, (int8_t)b, item);
    if (b < 0xc0)
        return read_short_container(at, item);
    if (b >= 0xca && b <= 0xd3)
        return read_number(at, item);
    if (b >= 0xc4)
        return read_sized_any(at, item);
    item->type = b == 0xc0 ? SVI_NIL : SVI_BOOL;
    item->i = b == 0xc3;
    return at + 1;
}

const char *svi_item_name(const struct svi_item *item) {
    static const char *const names[SVI_ITEM_TYPE_COUNT] = {
        "nil",          "a bool",   "an integer", "an integer above 2^63", "a float", "a string", "bytes",
        "an extension", "an array", "a map"};
    return names[item->type];
}

bool svi_item_number(const struct svi_item *item, double *r) {
    if (item->type == SVI_INT)
        *r = (double)item->i;
    else if (item->type == SVI_REAL || item->type == SVI_HUGE_INT)
        *r = item->r;
    else
        return false;
    return true;
}
