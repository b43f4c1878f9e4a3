#include "wire/fields.h"

#include <math.h>

#include "base/fail.h"
#include "wire/decode.h"

#define EXT_FLOAT64 2

bool svi_item_is(const struct svi_item *item, const char *text) {
    return item->type == SVI_STRING && item->length == strlen(text) &&
           memcmp(item->body, text, item->length) == 0;
}

svs_code svi_fields_find(struct svi_fields *f, const uint8_t *bytes, const uint8_t *end) {
    struct svi_item map, key;
    const uint8_t *at = svi_item_read(bytes, &map);
    if (map.type != SVI_MAP)
        return svi_fail(f->err, SVS_WRONG_TYPE, "the %s is %s: it must be a map", f->what,
                        svi_item_name(&map));
    for (uint32_t i = 0; i < map.length; i++) {
        at = svi_item_read(at, &key);
        for (int k = 0; k < f->count; k++)
            if (svi_item_is(&key, f->names[k]))
                f->at[k] = at;
        if (key.type != SVI_STRING || svi_walk(&at, end, SVI_DEPTH_MAX) != SVS_OK)
            return svi_fail(f->err, SVS_WRONG_TYPE, "a key of the %s is no string", f->what);
    }
    for (int k = 0; k < f->count; k++)
        if (!f->at[k])
            return svi_fail(f->err, SVS_WRONG_TYPE, "the %s has no %s", f->what, f->names[k]);
    return SVS_OK;
}

svs_code svi_field_number(struct svi_fields *f, int k, double low, double high, double *out) {
    struct svi_item item;
    svi_item_read(f->at[k], &item);
    if (!svi_item_number(&item, out) || !(*out >= low && *out <= high))
        return svi_fail(f->err, SVS_WRONG_TYPE, "the %s's %s is no number from %g to %g", f->what,
                        f->names[k], low, high);
    return SVS_OK;
}

svs_code svi_field_integer(struct svi_fields *f, int k, int64_t low, int64_t high, int64_t *out) {
    struct svi_item item;
    svi_item_read(f->at[k], &item);
    *out = item.i;
    if (item.type != SVI_INT || item.i < low || item.i > high)
        return svi_fail(f->err, SVS_WRONG_TYPE, "the %s's %s is no whole number from %lld to %lld", f->what,
                        f->names[k], (long long)low, (long long)high);
    return SVS_OK;
}

svs_code svi_field_word(struct svi_fields *f, int k, const char *const *words, int count, int *out) {
    struct svi_item item;
    svi_item_read(f->at[k], &item);
    for (*out = 0; *out < count; ++*out)
        if (svi_item_is(&item, words[*out]))
            return SVS_OK;
    return svi_fail(f->err, SVS_WRONG_TYPE, "the %s's %s is none that is known", f->what, f->names[k]);
}

int64_t svi_field_packed(struct svi_fields *f, int k, const uint8_t **body) {
    struct svi_item item;
    svi_item_read(f->at[k], &item);
    if (item.type != SVI_EXT || item.ext != EXT_FLOAT64 || item.length % 8 != 0) {
        svi_fail(f->err, SVS_WRONG_TYPE, "the %s's %s must be packed float64 (ext 2)", f->what, f->names[k]);
        return -1;
    }
    *body = item.body;
    return item.length / 8;
}

double svi_packed_double(const uint8_t *body, int64_t i) {
    uint64_t bits;
    double value;
    memcpy(&bits, body + 8 * i, sizeof bits);
    bits = le64toh(bits);
    memcpy(&value, &bits, sizeof value);
    return value;
}

svs_code svi_field_doubles(struct svi_fields *f, int k, const uint8_t *body, int64_t count, double *out) {
    for (int64_t i = 0; i < count; i++) {
        out[i] = svi_packed_double(body, i);
        if (!isfinite(out[i]))
            return svi_fail(f->err, SVS_NOT_FINITE, "the %s's %s is not finite", f->what, f->names[k]);
    }
    return SVS_OK;
}
