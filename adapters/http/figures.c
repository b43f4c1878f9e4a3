/* From a status to samples, in two passes: this file reads the status of each stream into a struct
 * http_figures, and figures_write.c writes family by family the samples of all streams.
 *
 * A status comes from another process and may hold anything: its form is checked first (wire/cursor.h), every
 * array is bounded, and what does not fit is counted in `unknown` instead of spoiling the page. No two
 * samples may have the same labels, or a scraper refuses the page: classes that read alike (the number 1 and
 * the text "1") are therefore numbered. */
#include "figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "wire/cursor.h"

static bool item_is(const struct svi_item *item, const char *text) {
    return item->type == SVI_STRING && item->length == strlen(text) &&
           memcmp(item->body, text, item->length) == 0;
}

/* Moves past one item of checked bytes. */
static const uint8_t *item_skip(const uint8_t *at, const uint8_t *end) {
    svi_skip(&at, end, SVI_WALK_MAX);
    return at;
}

/* The row of a key, or -1. A status has the keys in the order of the table, so the search begins behind the
 * row found last. */
static int row_of(const struct http_figure *table, const struct svi_item *key, int from) {
    for (int i = from; table[i].key; i++)
        if (item_is(key, table[i].key))
            return i;
    for (int i = 0; i < from; i++)
        if (item_is(key, table[i].key))
            return i;
    return -1;
}

/* A counter may be neither negative nor NAN; a gauge may be anything. */
static bool value_fits(const struct http_figure *row, double value) {
    return row->family.type != HTTP_COUNTER || (value >= 0 && isfinite(value));
}

/* The value of a row. False: it does not fit. A nil is a figure that is not known yet: nothing is wrong. */
static bool row_take(const struct http_figure *row, const struct svi_item *item, double *value, bool *known) {
    double number;
    if (item->type == SVI_NIL)
        return true;
    if (!svi_item_number(item, &number) || !value_fits(row, number))
        return false;
    *value = number * row->scale;
    *known = true;
    return true;
}

static void text_take(const struct svi_item *item, char out[HTTP_TEXT_BYTES]) {
    if (item->type == SVI_STRING)
        svi_escape(out, HTTP_TEXT_BYTES, (const char *)item->body, item->length);
}

/* refused.CODE; codes of a newer stream are added up as one. */
static bool refused_take(struct http_figures *f, const struct svi_item *key, const struct svi_item *item) {
    static const char prefix[] = "refused.";
    char name[40];
    double number;
    const size_t length = sizeof prefix - 1;
    if (key->type != SVI_STRING || key->length <= length || memcmp(key->body, prefix, length) != 0)
        return false;
    if (!svi_item_number(item, &number) || !(number >= 0) || isinf(number))
        return false;
    snprintf(name, sizeof name, "%.*s", (int)(key->length - length), (const char *)key->body + length);
    const svs_code code = svi_code_by_name(name);
    const bool known = strcmp(svs_code_name(code), name) == 0;
    f->refused[known ? (int)code : SVS_CODE_COUNT] += number;
    return true;
}

/* ---- by_class */

static void class_label(const struct svi_item *item, char out[HTTP_CLASS_BYTES]) {
    if (item->type == SVI_STRING)
        svi_escape(out, HTTP_CLASS_BYTES, (const char *)item->body, item->length);
    else if (item->type == SVI_INT)
        snprintf(out, HTTP_CLASS_BYTES, "%lld", (long long)item->i);
    else if (item->type == SVI_BOOL)
        strcpy(out, item->i ? "true" : "false");
    else if (item->type == SVI_REAL || item->type == SVI_HUGE_INT)
        http_exposition_number(item->r, out);
    else
        strcpy(out, "?");
}

static bool class_named(const struct http_figures *f, const char *label) {
    for (int i = 0; i < f->class_count; i++)
        if (strcmp(f->classes[i].label, label) == 0)
            return true;
    return false;
}

/* Makes a label that an earlier class has as well a new one. At most HTTP_CLASSES_MAX numbers are in use. */
static void class_distinguish(const struct http_figures *f, char label[HTTP_CLASS_BYTES]) {
    char first[HTTP_CLASS_BYTES - 16]; /* leaves what the number takes */
    memcpy(first, label, sizeof first - 1);
    first[sizeof first - 1] = '\0';
    for (int number = 2; class_named(f, label); number++)
        snprintf(label, HTTP_CLASS_BYTES, "%s (%d)", first, number);
}

/* One entry: a map. Returns the address after it. */
static const uint8_t *class_take(struct http_figures *f, const uint8_t *at, const uint8_t *end) {
    struct svi_item map, key, item;
    struct http_class_figures *c = &f->classes[f->class_count];
    bool named = false, known;
    const uint8_t *p = svi_item_read(at, &map);
    *c = (struct http_class_figures){.label = "?"};
    for (int i = 0; i < HTTP_CLASS_FIGURES_MAX; i++)
        c->value[i] = NAN;
    for (uint32_t i = 0, row = 0; map.type == SVI_MAP && i < map.length; i++) {
        svi_item_read(p, &key);
        p = item_skip(p, end);
        svi_item_read(p, &item);
        p = item_skip(p, end);
        const int found = row_of(http_figures_classes, &key, (int)row);
        if (item_is(&key, "class")) {
            class_label(&item, c->label);
            named = true;
        } else if (found < 0 || !row_take(&http_figures_classes[found], &item, &c->value[found], &known)) {
            f->unknown++;
        } else {
            row = (uint32_t)found;
        }
    }
    if (named) {
        class_distinguish(f, c->label);
        f->class_count++;
    }
    f->unknown += !named;
    return item_skip(at, end);
}

static void classes_take(struct http_figures *f, const struct svi_item *array, const uint8_t *end) {
    const uint8_t *at = array->body;
    f->class_count = 0;
    if (array->type != SVI_ARRAY || array->length > HTTP_CLASSES_MAX) {
        f->unknown += array->type != SVI_ARRAY;
        return;
    }
    for (uint32_t i = 0; i < array->length; i++)
        at = class_take(f, at, end);
}

/* ---- latency_buckets: {bounds, counts, sum}, counts by bucket of `le`, the last of all messages */

/* Numbers of an array that do not fall. Returns how many, -1: not of this form. */
static int rising_take(const struct svi_item *array, const uint8_t *end, double *out, int most) {
    struct svi_item item;
    const uint8_t *at = array->body;
    if (array->type != SVI_ARRAY || array->length > (uint32_t)most)
        return -1;
    for (uint32_t i = 0; i < array->length; i++) {
        svi_item_read(at, &item);
        at = item_skip(at, end);
        if (!svi_item_number(&item, &out[i]) || !isfinite(out[i]) || out[i] < (i > 0 ? out[i - 1] : 0))
            return -1;
    }
    return (int)array->length;
}

static bool bounds_ascend(const struct http_latency *l) {
    for (int i = 1; i < l->bounds_count; i++)
        if (l->bounds[i] <= l->bounds[i - 1])
            return false;
    return true;
}

static bool latency_take(struct http_latency *l, const struct svi_item *map, const uint8_t *end) {
    struct svi_item key, item;
    const uint8_t *at = map->body;
    int buckets = -1;
    *l = (struct http_latency){.bounds_count = -1, .sum = NAN};
    for (uint32_t i = 0; map->type == SVI_MAP && i < map->length; i++) {
        svi_item_read(at, &key);
        at = item_skip(at, end);
        svi_item_read(at, &item);
        at = item_skip(at, end);
        if (item_is(&key, "bounds"))
            l->bounds_count = rising_take(&item, end, l->bounds, HTTP_BOUNDS_MAX);
        else if (item_is(&key, "counts"))
            buckets = rising_take(&item, end, l->buckets, HTTP_BOUNDS_MAX + 1);
        else if (item_is(&key, "sum"))
            svi_item_number(&item, &l->sum);
    }
    const bool good = l->bounds_count > 0 && buckets == l->bounds_count + 1 && bounds_ascend(l) &&
                      l->sum >= 0 && isfinite(l->sum);
    l->bounds_count = good ? l->bounds_count : 0;
    return good;
}

/* ---- a status */

/* Keys that are read by name. False: another key. */
static bool pair_take_named(struct http_figures *f, const struct svi_item *key, const struct svi_item *item,
                            const uint8_t *end) {
    if (item_is(key, "version"))
        text_take(item, f->version);
    else if (item_is(key, "serving"))
        text_take(item, f->serving);
    else if (item_is(key, "refit_error"))
        f->refit_failed = true;
    else if (item_is(key, "novelty_error"))
        f->novelty_failed = true;
    else if (item_is(key, "by_class"))
        classes_take(f, item, end);
    else if (item_is(key, "latency_buckets"))
        f->unknown += !latency_take(&f->latency, item, end);
    else
        return refused_take(f, key, item);
    return true;
}

static bool key_is_other(const struct svi_item *key) {
    for (const char *const *other = http_figures_others; *other; other++)
        if (item_is(key, *other))
            return true;
    return false;
}

static void pair_take(struct http_figures *f, const struct svi_item *key, const struct svi_item *item,
                      const uint8_t *end, int *last) {
    const int row = row_of(http_figures_table, key, *last);
    if (row >= 0) {
        *last = row;
        f->unknown += !row_take(&http_figures_table[row], item, &f->value[row], &f->known[row]);
    } else if (!pair_take_named(f, key, item, end) && !key_is_other(key)) {
        f->unknown++;
    }
    /* The measures of quality differ by task; a status has them from the start, as nil. */
    if (item_is(key, "accuracy") || item_is(key, "rmse"))
        f->task = item_is(key, "rmse") ? "regress" : "classify";
}

bool http_figures_read(struct http_figures *f, const void *status, size_t size) {
    struct svi_item map, key, item;
    const uint8_t *at = status, *const end = at + size;
    int last = 0;
    *f = (struct http_figures){.task = ""};
    if (svi_msgpack_check(status, size, SVI_WALK_MAX, NULL) != SVS_OK)
        return false;
    at = svi_item_read(at, &map);
    for (uint32_t i = 0; map.type == SVI_MAP && i < map.length; i++) {
        svi_item_read(at, &key);
        at = item_skip(at, end);
        svi_item_read(at, &item);
        at = item_skip(at, end);
        pair_take(f, &key, &item, end, &last);
    }
    return map.type == SVI_MAP;
}
