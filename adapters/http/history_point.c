#include "history_point.h"

#include <endian.h>
#include <math.h>
#include <string.h>

#include <zlib.h>

#include "wire/cursor.h"

/* The encoded form: a checksum of all that follows, two bits a figure (enum form), the weight that most
 * figures have, then the figures that are known. All integers and floats are little-endian. */
#define FLAG_BYTES ((HISTORY_FIGURE_COUNT + 3) / 4)
#define HEAD_BYTES (4 + FLAG_BYTES + 2)
#define MAX_WEIGHT UINT16_MAX

_Static_assert(HEAD_BYTES <= 11, "HISTORY_POINT_BYTES counts the head");

enum form {
    FORM_ABSENT = 0,
    FORM_SINGLE, /* value, lowest and highest are the same; the common weight */
    FORM_RANGE,  /* value, lowest, highest; the common weight */
    FORM_OWN     /* the same, and a weight */
};

enum merge { MERGE_MEAN, MERGE_LOW, MERGE_HIGH };

static const struct {
    const char *name;
    enum merge merge;
    bool log;
} point_figures[HISTORY_FIGURE_COUNT] = {
#define X(constant, name, merge, log) {#name, MERGE_##merge, log},
    HISTORY_FIGURES(X)
#undef X
};

const char *http_history_point_name(enum history_figure f) {
    return point_figures[f].name;
}

/* The weighted mean lies between both values; rounding must not lead it out of lowest and highest. */
static void point_merge_cell(struct history_cell *to, const struct history_cell *c, enum merge merge) {
    if (c->weight == 0)
        return;
    if (to->weight == 0) {
        *to = *c;
        return;
    }
    const double a = to->weight, b = c->weight;
    to->low = fmin(to->low, c->low);
    to->high = fmax(to->high, c->high);
    to->weight = a + b > MAX_WEIGHT ? MAX_WEIGHT : to->weight + c->weight;
    if (merge == MERGE_MEAN)
        to->value = fmin(to->high, fmax(to->low, to->value + (c->value - to->value) * (b / (a + b))));
    else
        to->value = merge == MERGE_LOW ? to->low : to->high;
}

void http_history_point_add(struct history_point *p, enum history_figure f, double value) {
    const struct history_cell c = {value, value, value, 1};
    if (isfinite(value))
        point_merge_cell(&p->cell[f], &c, point_figures[f].merge);
}

void http_history_point_merge(struct history_point *into, const struct history_point *p) {
    for (int f = 0; f < HISTORY_FIGURE_COUNT; f++)
        point_merge_cell(&into->cell[f], &p->cell[f], point_figures[f].merge);
}

uint32_t http_history_point_weight(const struct history_point *p) {
    uint32_t most = 0;
    for (int f = 0; f < HISTORY_FIGURE_COUNT; f++)
        most = p->cell[f].weight > most ? p->cell[f].weight : most;
    return most;
}

static float point_to_float(double v, bool log_form) {
    return (float)(log_form ? log(v) : v);
}

static double point_from_float(float v, bool log_form) {
    return log_form ? exp((double)v) : (double)v;
}

static uint8_t *point_put(uint8_t *to, const void *value, size_t size) {
    memcpy(to, value, size);
    return to + size;
}

static uint8_t *point_put_float(uint8_t *to, float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits = htole32(bits);
    return point_put(to, &bits, sizeof bits);
}

static uint8_t *point_put_weight(uint8_t *to, uint32_t weight) {
    const uint16_t w = htole16((uint16_t)(weight > MAX_WEIGHT ? MAX_WEIGHT : weight));
    return point_put(to, &w, sizeof w);
}

size_t http_history_point_encode(const struct history_point *p, uint8_t out[HISTORY_POINT_BYTES]) {
    const uint32_t common = http_history_point_weight(p);
    uint8_t *at = point_put_weight(out + 4 + FLAG_BYTES, common);
    memset(out, 0, 4 + FLAG_BYTES);
    for (int f = 0; f < HISTORY_FIGURE_COUNT; f++) {
        const struct history_cell *c = &p->cell[f];
        const bool log_form = point_figures[f].log;
        if (c->weight == 0)
            continue;
        const float value = point_to_float(c->value, log_form), low = point_to_float(c->low, log_form),
                    high = point_to_float(c->high, log_form);
        const enum form form = c->weight != common ? FORM_OWN : low == high ? FORM_SINGLE : FORM_RANGE;
        out[4 + f / 4] |= (uint8_t)(form << 2 * (f % 4));
        at = point_put_float(at, value);
        if (form != FORM_SINGLE)
            at = point_put_float(point_put_float(at, low), high);
        if (form == FORM_OWN)
            at = point_put_weight(at, c->weight);
    }
    const uint32_t sum = htole32((uint32_t)crc32(0, out + 4, (uInt)(at - out - 4)));
    memcpy(out, &sum, sizeof sum);
    return (size_t)(at - out);
}

static uint32_t point_get_weight(const uint8_t *from) {
    uint16_t w;
    memcpy(&w, from, sizeof w);
    return le16toh(w);
}

bool http_history_point_decode(struct history_point *p, const void *bytes, size_t size) {
    static const size_t sizes[] = {0, 4, 12, 14};
    const uint8_t *data = bytes, *at = data + HEAD_BYTES;
    uint32_t sum;
    memset(p->cell, 0, sizeof p->cell);
    if (size < HEAD_BYTES)
        return false;
    memcpy(&sum, data, sizeof sum);
    if (le32toh(sum) != (uint32_t)crc32(0, data + 4, (uInt)(size - 4)))
        return false;
    for (int f = 0; f < HISTORY_FIGURE_COUNT; f++) {
        const enum form form = (enum form)(data[4 + f / 4] >> 2 * (f % 4) & 3);
        struct history_cell *c = &p->cell[f];
        if (form == FORM_ABSENT)
            continue;
        if ((size_t)(data + size - at) < sizes[form])
            return memset(p->cell, 0, sizeof p->cell), false;
        c->value = point_from_float(svi_load_float(at), point_figures[f].log);
        c->low =
            form == FORM_SINGLE ? c->value : point_from_float(svi_load_float(at + 4), point_figures[f].log);
        c->high =
            form == FORM_SINGLE ? c->value : point_from_float(svi_load_float(at + 8), point_figures[f].log);
        c->weight = point_get_weight(form == FORM_OWN ? at + 12 : data + 4 + FLAG_BYTES);
        at += sizes[form];
    }
    return at == data + size;
}
