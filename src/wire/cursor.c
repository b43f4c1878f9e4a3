/* msgpack, item by item: a walk that checks the form, and a reader that trusts checked bytes.
 *
 * The walk, svi_walk, needs no recursion: it counts the elements left in each enclosing container.
 * One table look-up decodes a lead byte, and runs of doubles are passed four at a time. A header
 * that claims more elements than bytes are left is refused before anyone allocates by it, since an
 * element has at least one byte. The reader, svi_item_read, runs over the same bytes afterwards and
 * checks nothing. */
#include "wire/cursor.h"

#include "base/fail.h"

/* The meaning of each lead byte (svi_leads in cursor.h): size of the item and number of elements; 0: a length
 * field follows, or the byte is 0xc1. One lookup costs less than branches on ranges. */
#define ITEM(span, elements) ((span) | (elements) << 8)
#define MAP_OF(n)            ITEM(1, 2 * (n))
#define ARRAY_OF(n)          ITEM(1, n)
#define STRING_OF(n)         ITEM(1 + (n), 0)
#define FOUR(item)           item, item, item, item
#define SIXTEEN(item)        FOUR(item), FOUR(item), FOUR(item), FOUR(item)
#define COUNT4(item, n)      item(n), item((n) + 1), item((n) + 2), item((n) + 3)
#define COUNT16(item, n)     COUNT4(item, n), COUNT4(item, (n) + 4), COUNT4(item, (n) + 8), COUNT4(item, (n) + 12)
#define FIXINTS              SIXTEEN(1), SIXTEEN(1), SIXTEEN(1), SIXTEEN(1) /* positive ones: 64 of 128 */
#define SHORT_CONTAINERS     COUNT16(MAP_OF, 0), COUNT16(ARRAY_OF, 0)
#define SHORT_STRINGS        COUNT16(STRING_OF, 0), COUNT16(STRING_OF, 16)
#define NIL_TO_EXT           1, 0, 1, 1, FOUR(0), 0, 0         /* 0xc0: nil, -, bools, bin, ext */
#define NUMBERS              5, 9, 2, 3, 5, 9, 2, 3, 5, 9      /* 0xca: floats, uints, ints */
#define FIXEXT_TO_MAP        3, 4, 6, 10, 18, FOUR(0), 0, 0, 0 /* 0xd4: fixexts, str, array, map */

const uint16_t svi_leads[256] = {FIXINTS, FIXINTS,       SHORT_CONTAINERS, SHORT_STRINGS, NIL_TO_EXT,
                                 NUMBERS, FIXEXT_TO_MAP, SIXTEEN(1),       SIXTEEN(1) /* negative fixint */};

/* The items 0xc0 to 0xdf with a length field, and fixext. field: bytes of the length field (0: none); extra:
 * bytes between it and the body; times: elements for each count (0: it counts bytes). */
static const struct sized {
    enum svi_item_type type;
    uint8_t field, extra, times;
} sized[32] = {
    [0xc4 - 0xc0] = {SVI_BIN, 1, 0, 0},    [0xc5 - 0xc0] = {SVI_BIN, 2, 0, 0},
    [0xc6 - 0xc0] = {SVI_BIN, 4, 0, 0},    [0xc7 - 0xc0] = {SVI_EXT, 1, 1, 0},
    [0xc8 - 0xc0] = {SVI_EXT, 2, 1, 0},    [0xc9 - 0xc0] = {SVI_EXT, 4, 1, 0},
    [0xd4 - 0xc0] = {SVI_EXT, 0, 1, 0},    [0xd5 - 0xc0] = {SVI_EXT, 0, 1, 0},
    [0xd6 - 0xc0] = {SVI_EXT, 0, 1, 0},    [0xd7 - 0xc0] = {SVI_EXT, 0, 1, 0},
    [0xd8 - 0xc0] = {SVI_EXT, 0, 1, 0},    [0xd9 - 0xc0] = {SVI_STRING, 1, 0, 0},
    [0xda - 0xc0] = {SVI_STRING, 2, 0, 0}, [0xdb - 0xc0] = {SVI_STRING, 4, 0, 0},
    [0xdc - 0xc0] = {SVI_ARRAY, 2, 0, 1},  [0xdd - 0xc0] = {SVI_ARRAY, 4, 0, 1},
    [0xde - 0xc0] = {SVI_MAP, 2, 0, 2},    [0xdf - 0xc0] = {SVI_MAP, 4, 0, 2},
};

/* A big-endian number of 1, 2, 4 or 8 bytes. */
static uint64_t load_bits(const uint8_t *p, int size) {
    return size == 1 ? *p : size == 2 ? svi_load16(p) : size == 4 ? svi_load32(p) : svi_load64(p);
}

/* Size and elements of an item with a length field. False for 0xc1. If the field itself exceeds `capacity`,
 * so does *span, and the caller reports the item as truncated. */
static bool measure_sized(const uint8_t *p, uint64_t capacity, uint64_t *span, uint64_t *elements) {
    struct sized s = sized[*p - 0xc0];
    *span = 1u + s.field + s.extra;
    if (s.field == 0 || capacity < *span)
        return s.field != 0;
    uint64_t n = load_bits(p + 1, s.field);
    *elements = n * s.times;
    if (s.times == 0)
        *span += n;
    return true;
}

/* Passes up to `count` doubles, by far the most frequent items; returns how many were there. */
static inline uint64_t pass_doubles(const uint8_t *p, const uint8_t *end, uint64_t count) {
    uint64_t capacity = (uint64_t)(end - p) / 9, limit = count < capacity ? count : capacity, n = 0;
    const uint8_t lead = SVI_LEAD_DOUBLE;
    for (; n + 4 <= limit; n += 4, p += 36) /* one branch for four items of 9 bytes */
        if ((p[0] ^ lead) | (p[9] ^ lead) | (p[18] ^ lead) | (p[27] ^ lead))
            break;
    for (; n < limit && *p == lead; n++)
        p += 9;
    return n;
}

svs_code svi_walk(const uint8_t **at, const uint8_t *end, int depth) {
    uint64_t outer[SVI_WALK_MAX]; /* elements left in each enclosing container */
    uint64_t count = 1;           /* elements left in the innermost one; first: the object itself */
    int level = 0;
    /* Every turn consumes at least one byte, so the loop is bounded by the bytes, whatever headers claim. */
    for (const uint8_t *p = *at;;) {
        while (count == 0 && level > 0) /* leaves the containers that end here */
            count = outer[--level];
        *at = p;
        if (count == 0)
            return SVS_OK;
        if (p >= end)
            return SVS_TRUNCATED;
        uint64_t capacity = (uint64_t)(end - p), span = svi_leads[*p] & 0xff, elements = svi_leads[*p] >> 8;
        if (span == 0 && !measure_sized(p, capacity, &span, &elements))
            return SVS_NOT_MSGPACK;
        if (span > capacity || elements > capacity - span)
            return SVS_TRUNCATED;
        p += span;
        count--;
        if (elements == 0)
            continue;
        if (level >= depth)
            return SVS_TOO_DEEP;
        /* elements > 0 and elements <= bytes left: *p is inside. Doubles at the beginning of the container
         * are passed at once; the others take their turns. */
        uint64_t doubles = *p == SVI_LEAD_DOUBLE ? pass_doubles(p, end, elements) : 0;
        p += 9 * doubles;
        outer[level++] = count;
        count = elements - doubles;
    }
}

/* The end of an ext of at most 65,535 bytes with a length field (ext 8 or 16); NULL: another item, or
 * truncated. */
static const uint8_t *past_ext(const uint8_t *p, const uint8_t *end) {
    const int field = *p - 0xc6; /* bytes of the length: 1 for 0xc7, 2 for 0xc8 */
    if ((field != 1 && field != 2) || end - p < 2 + field)
        return NULL;
    const ptrdiff_t size = field == 1 ? p[1] : svi_load16(p + 1);
    return end - p - 2 - field >= size ? p + 2 + field + size : NULL;
}

/* The number of elements of the container at p (at most 65,535 elements or pairs); *at: the first one. 0:
 * another item, truncated, or empty. */
static uint64_t container_elements(const uint8_t *p, const uint8_t *end, const uint8_t **at) {
    const unsigned lead = *p;
    if (lead >= 0x80 && lead < 0xa0) {
        *at = p + 1;
        return lead < 0x90 ? 2 * (lead & 0x0f) : lead & 0x0f;
    }
    if ((lead != 0xdc && lead != 0xde) || end - p < 3)
        return 0;
    *at = p + 3;
    return (uint64_t)svi_load16(p + 1) << (lead == 0xde);
}

/* Recursion is bounded by `depth`. Anything without a fast path goes to svi_walk, which decides. */
bool svi_skip_long(const uint8_t **at, const uint8_t *end, int depth) {
    const uint8_t *p = *at;
    const uint8_t *past = p < end ? past_ext(p, end) : NULL;
    uint64_t left = p < end && !past && depth > 0 ? container_elements(p, end, &p) : 0;
    if (past) {
        *at = past;
        return true;
    }
    if (left == 0)
        return svi_walk(at, end, depth) == SVS_OK;
    if (p < end && *p == SVI_LEAD_DOUBLE) {
        const uint64_t doubles = pass_doubles(p, end, left);
        p += 9 * doubles;
        left -= doubles;
    }
    bool good = true;
    for (; good && left > 0; left--)
        good = svi_skip(&p, end, depth - 1);
    *at = p;
    return good;
}

static const uint8_t *read_sized(const uint8_t *at, struct svi_item *item) {
    const struct sized s = sized[*at - 0xc0];
    item->type = s.type;
    item->length = s.field ? (uint32_t)load_bits(at + 1, s.field) : 1u << (*at - 0xd4);
    item->body = at + 1 + s.field + s.extra;
    if (s.extra)
        item->ext = (int8_t)item->body[-1];
    return s.times ? item->body : item->body + item->length;
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

/* 0xca to 0xd3: float 32, float 64, uint 8 to 64, int 8 to 64. The two lowest bits of the lead byte are the
 * logarithm of the size: 1, 2, 4 or 8 bytes. */
static const uint8_t *read_number(const uint8_t *at, struct svi_item *item) {
    const int size = 1 << (*at & 3), unused = 64 - 8 * size;
    const uint64_t bits = load_bits(at + 1, size);
    const uint32_t half = (uint32_t)bits;
    float f;
    /* All interpretations are computed without branches; the type decides which one counts. */
    memcpy(&f, &half, sizeof f);
    memcpy(&item->r, &bits, sizeof bits);
    item->i = *at < 0xd0 ? (int64_t)bits : (int64_t)(bits << unused) >> unused;
    item->type = *at <= SVI_LEAD_DOUBLE ? SVI_REAL : SVI_INT;
    if (*at == 0xca)
        item->r = f;
    else if (*at == 0xcf && bits > INT64_MAX) {
        item->type = SVI_HUGE_INT;
        item->r = (double)bits;
    }
    return at + 1 + size;
}

const uint8_t *svi_item_read(const uint8_t *at, struct svi_item *item) {
    uint8_t b = *at;
    if (b < 0x80 || b >= 0xe0) {
        item->type = SVI_INT;
        item->i = (int8_t)b;
        return at + 1;
    }
    if (b < 0xc0)
        return read_short_container(at, item);
    if (b >= 0xca && b <= 0xd3)
        return read_number(at, item);
    if (b >= 0xc4)
        return read_sized(at, item);
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

static svs_code refuse_form(svs_code code, size_t at, size_t length, int depth, svs_error *err) {
    if (code == SVS_TRUNCATED)
        return svi_fail(err, code, "the message has %zu bytes; what begins at byte %zu announces more",
                        length, at);
    if (code == SVS_TOO_DEEP)
        return svi_fail(err, code, "arrays and maps are nested more than %d deep at byte %zu", depth, at);
    return svi_fail(err, code, "byte %zu is 0xc1, with which no value of msgpack begins", at);
}

svs_code svi_msgpack_check(const void *bytes, size_t length, int depth, svs_error *err) {
    if (length == 0)
        return svi_fail(err, SVS_EMPTY, "the message has no bytes");
    const uint8_t *start = bytes, *at = start;
    if (depth > SVI_WALK_MAX)
        depth = SVI_WALK_MAX;
    svs_code code = svi_walk(&at, start + length, depth);
    size_t end = (size_t)(at - start);
    if (code != SVS_OK)
        return refuse_form(code, end, length, depth, err);
    if (end != length)
        return svi_fail(err, SVS_TRAILING, "the object ends after %zu bytes, but the message has %zu", end,
                        length);
    return SVS_OK;
}
