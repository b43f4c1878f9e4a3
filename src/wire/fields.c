/* The keys of a msgpack map are read by a table (fields.h). The bytes were checked before: headers are
 * trusted here. Read svi_fields_read, fields_take, field_value. */
#include "wire/fields.h"

#include <math.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/text.h"

bool svi_item_is(const struct svi_item *item, const char *text) {
    return item->type == SVI_STRING && item->length == strlen(text) &&
           memcmp(item->body, text, item->length) == 0;
}

bool svi_item_label(const struct svi_item *item, svs_value *out) {
    if (item->type == SVI_INT)
        *out = svs_int(item->i);
    else if (item->type == SVI_STRING && svi_utf8_valid((const char *)item->body, item->length))
        *out = (svs_value){.kind = SVS_STR, .length = item->length, .as.s = (const char *)item->body};
    else
        return false;
    return true;
}

/* ---- one field */

bool svi_item_doubles(const struct svi_item *item, struct svi_doubles *out) {
    if (item->type != SVI_EXT || item->ext != SVI_EXT_FLOAT64 || item->length % sizeof(double) != 0)
        return false;
    *out = (struct svi_doubles){item->body, item->length / (int64_t)sizeof(double)};
    return true;
}

/* Stores the value if it has the field's type and range; false: it does not, and nothing is stored. */
static bool field_value(const struct svi_field *f, const uint8_t *at, const struct svi_item *item,
                        void *out) {
    double number;
    switch (f->type) {
    case SVI_FIELD_INTEGER: /* compared as doubles: a bound of 2^63 has no int64_t */
        if (item->type != SVI_INT || (double)item->i < f->low || (double)item->i > f->high)
            return false;
        *(int64_t *)out = item->i;
        return true;
    case SVI_FIELD_UINT: /* item->i has the bits of a huge integer too */
        if (item->type != SVI_HUGE_INT && (item->type != SVI_INT || item->i < 0))
            return false;
        *(uint64_t *)out = (uint64_t)item->i;
        return true;
    case SVI_FIELD_REAL:
        if (!svi_item_number(item, &number) || !isfinite(number) || number < f->low || number > f->high)
            return false;
        *(double *)out = number;
        return true;
    case SVI_FIELD_WORD:
        for (int i = 0; f->words[i]; i++)
            if (svi_item_is(item, f->words[i])) {
                *(int *)out = i;
                return true;
            }
        return false;
    /* `high` is the size of the destination, its NUL included: the length must be below it. */
    case SVI_FIELD_TEXT:
        if (item->type != SVI_STRING || item->length >= f->high || memchr(item->body, '\0', item->length))
            return false;
        memcpy(out, item->body, item->length);
        ((char *)out)[item->length] = '\0';
        return true;
    case SVI_FIELD_DOUBLES:
        return svi_item_doubles(item, out);
    default:
        *(const uint8_t **)out = at;
        return true;
    }
}

/* Describes the type and range of a field for an error text: "an integer from 1 to 20". */
static void describe_field(const struct svi_field *f, char *out, size_t size) {
    static const char *const kinds[] = {"anything", "an integer", "an integer from 0",     "a finite number",
                                        "one of",   "a string",   "packed float64 (ext 2)"};
    size_t n = (size_t)snprintf(out, size, "%s", kinds[f->type]);
    const bool ranged = f->type == SVI_FIELD_INTEGER || (f->type == SVI_FIELD_REAL && f->low > -HUGE_VAL);
    if (ranged)
        n += (size_t)snprintf(out + n, size - n, " from %.10g", f->low);
    if (ranged && f->high < SVI_FIELD_UNLIMITED)
        n += (size_t)snprintf(out + n, size - n, " to %.10g", f->high);
    if (f->type == SVI_FIELD_TEXT)
        n += (size_t)snprintf(out + n, size - n, " of at most %.0f bytes without NUL", f->high - 1);
    for (int i = 0; f->words && f->words[i] && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s %s", i ? "," : "", f->words[i]);
}

/* ---- the map */

struct map_reading {
    const char *what;
    const struct svi_field *fields;
    size_t count;
    uint64_t seen; /* bit k: field k was present */
    uint8_t *to;
    svs_error first; /* the first failure */
};

static void fields_take(struct map_reading *r, size_t k, const uint8_t *at) {
    const struct svi_field *f = &r->fields[k];
    struct svi_item item;
    char wanted[128];
    svi_item_read(at, &item);
    /* nil means absent, except for a required field of any type, whose value may be nil. */
    if (item.type == SVI_NIL && (f->optional || f->type != SVI_FIELD_ANY))
        return;
    if (r->seen >> k & 1) {
        svi_fail(&r->first, SVS_DUPLICATE_KEY, "the %s has the key %s twice", r->what, f->name);
        return;
    }
    r->seen |= UINT64_C(1) << k; /* also if the value is bad: the field is then wrong, not absent */
    if (field_value(f, at, &item, r->to + f->to) || r->first.code != SVS_OK)
        return;
    describe_field(f, wanted, sizeof wanted);
    svi_fail(&r->first, SVS_WRONG_TYPE, "the %s's %s is %s: it must be %s", r->what, f->name,
             svi_item_name(&item), wanted);
}

svs_code svi_fields_read(const char *what, const struct svi_field *fields, size_t count, const uint8_t *map,
                         const uint8_t *end, void *to, svs_error *err) {
    struct map_reading r = {.what = what, .fields = fields, .count = count, .to = to};
    struct svi_item item, key;
    const uint8_t *at = svi_item_read(map, &item);
    if (item.type != SVI_MAP)
        return svi_fail(err, SVS_WRONG_TYPE, "the %s is %s: it must be a map", what, svi_item_name(&item));
    /* Reading continues after a failure: a damaged header still yields its readable fields. */
    for (uint32_t i = 0; i < item.length; i++) {
        const uint8_t *value = at;
        svi_walk(&value, end, SVI_DEPTH_MAX);
        svi_item_read(at, &key);
        if (key.type != SVI_STRING && r.first.code == SVS_OK)
            svi_fail(&r.first, SVS_WRONG_TYPE, "a key of the %s is %s: keys are strings", what,
                     svi_item_name(&key));
        size_t k = 0; /* linear: a table has a dozen rows, and nothing here runs for each sample */
        while (k < count && !svi_item_is(&key, fields[k].name))
            k++;
        if (k < count)
            fields_take(&r, k, value);
        at = value;
        svi_walk(&at, end, SVI_DEPTH_MAX);
    }
    for (size_t k = 0; k < count && r.first.code == SVS_OK; k++)
        if (!fields[k].optional && !(r.seen >> k & 1))
            svi_fail(&r.first, SVS_WRONG_TYPE, "the %s has no %s", what, fields[k].name);
    if (err && r.first.code != SVS_OK)
        *err = r.first;
    return r.first.code;
}

/* ---- packed doubles */

double svi_doubles_get(const struct svi_doubles *d, int64_t i) {
    return svi_load_double(d->body + (int64_t)sizeof(double) * i);
}

svs_code svi_doubles_copy(const struct svi_doubles *d, int64_t from, int64_t count, double *out,
                          const char *what, const char *name, svs_error *err) {
    for (int64_t i = 0; i < count; i++) {
        out[i] = svi_doubles_get(d, from + i);
        if (!isfinite(out[i]))
            return svi_fail(err, SVS_NOT_FINITE, "%s[%lld] of the %s is not finite", name,
                            (long long)(from + i), what);
    }
    return SVS_OK;
}
