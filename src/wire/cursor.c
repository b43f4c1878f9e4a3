#include "wire/cursor.h"

/* How the bytes after a lead byte are laid out. */
enum layout {
    FIXED,    /* `size` bytes in all */
    BODY,     /* a length field of `size` bytes, then `extra` bytes, then the body */
    ARRAY,    /* a count field of `size` bytes, then elements */
    MAP,      /* the same with pairs */
    NOT_USED, /* 0xc1 */
};

struct lead {
    uint8_t layout, size, extra;
};

/* The lead bytes 0xc0 to 0xdf; all others carry their length themselves (see lead_of). */
static const struct lead leads[32] = {
    {FIXED, 1, 0},  {NOT_USED, 0, 0}, {FIXED, 1, 0}, {FIXED, 1, 0}, /* nil, unused, false, true */
    {BODY, 1, 0},   {BODY, 2, 0},     {BODY, 4, 0},                 /* bin */
    {BODY, 1, 1},   {BODY, 2, 1},     {BODY, 4, 1},                 /* ext */
    {FIXED, 5, 0},  {FIXED, 9, 0},                                  /* float */
    {FIXED, 2, 0},  {FIXED, 3, 0},    {FIXED, 5, 0}, {FIXED, 9, 0}, /* uint */
    {FIXED, 2, 0},  {FIXED, 3, 0},    {FIXED, 5, 0}, {FIXED, 9, 0}, /* int */
    {FIXED, 3, 0},  {FIXED, 4, 0},    {FIXED, 6, 0},                /* fixext 1, 2, 4 */
    {FIXED, 10, 0}, {FIXED, 18, 0},                                 /* fixext 8, 16 */
    {BODY, 1, 0},   {BODY, 2, 0},     {BODY, 4, 0},                 /* str */
    {ARRAY, 2, 0},  {ARRAY, 4, 0},    {MAP, 2, 0},   {MAP, 4, 0},
};

static uint32_t load_length(const uint8_t *p, int size) {
    return size == 1 ? *p : size == 2 ? svi_load16(p) : svi_load32(p);
}

/* What the walk needs of the item at `at`: the bytes to pass (its body included) and the elements that
 * follow. False: the bytes end before the header does, or the lead byte is 0xc1 (*span 0). */
static inline bool measure(const uint8_t *at, size_t left, uint64_t *span, uint64_t *elements) {
    uint8_t b = at[0];
    *span = 1;
    *elements = 0;
    if (b < 0x80 || b >= 0xe0)
        return true;
    if (b < 0xc0) {
        if (b >= 0xa0)
            *span = 1 + (b & 0x1fu);
        else
            *elements = b < 0x90 ? 2 * (b & 0x0fu) : (b & 0x0fu);
        return true;
    }
    struct lead lead = leads[b - 0xc0];
    if (lead.layout == FIXED || lead.layout == NOT_USED) {
        *span = lead.size;
        return lead.layout == FIXED;
    }
    *span = 1u + lead.size + lead.extra;
    if (left < *span)
        return true; /* the caller sees that it does not fit */
    uint64_t n = load_length(at + 1, lead.size);
    if (lead.layout == BODY)
        *span += n;
    else
        *elements = lead.layout == MAP ? 2 * n : n;
    return true;
}

/* Passes a run of doubles, by far the most frequent items; returns how many are left of `count`. */
static inline uint64_t pass_doubles(const uint8_t **at, const uint8_t *end, uint64_t count) {
    const uint8_t *p = *at;
    while (count > 0 && end - p >= 9 && *p == SVI_LEAD_DOUBLE) {
        p += 9;
        count--;
    }
    *at = p;
    return count;
}

svs_code svi_walk(const uint8_t **at, const uint8_t *end, int depth) {
    uint64_t left[SVI_WALK_MAX + 1]; /* elements to come at each level */
    int level = 0;
    left[0] = 1;
    for (;;) {
        left[level] = pass_doubles(at, end, left[level]);
        while (left[level] == 0) {
            if (level == 0)
                return SVS_OK;
            level--;
        }
        if (*at >= end)
            return SVS_TRUNCATED;
        uint64_t span, elements, room = (uint64_t)(end - *at);
        if (!measure(*at, (size_t)room, &span, &elements))
            return SVS_NOT_MSGPACK;
        if (span > room || elements > room - span)
            return SVS_TRUNCATED;
        *at += span;
        left[level]--;
        if (elements == 0)
            continue;
        if (level >= depth)
            return SVS_TOO_DEEP;
        left[++level] = elements;
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
