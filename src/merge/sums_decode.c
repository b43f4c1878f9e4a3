/* Reads sums records, which may come from anybody, and trusts nothing.
 *
 * The form of the whole payload is checked first, then types and ranges, from the table of fields,
 * then sizes. Every array has exactly the size that d and the number of classes give, so a header
 * cannot ask for more memory than its payload has bytes. Names and labels are copied to one block,
 * behind the arrays that point to them. They must differ, because joining looks them up by name.
 * Numbers are finite, and weights and squares are not negative. What the sums mean together (is the
 * matrix positive definite?) is not checked here, because only a solution shows it. */
#include "merge/sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "merge/sums_internal.h"
#include "wire/fields.h"

#define WHAT "sums record"

/* The pairs as they stand in the payload: pointers into it, and nothing that was compared yet. */
struct sums_parts {
    char part[SVI_PART_MAX + 1];
    uint64_t part_epoch, schema_hash;
    int64_t offset, n, window, d;
    int task, kind, scale;
    double C, weight, target_weight, target_square;
    struct svi_doubles center, sum, square, class_weight, class_sum, target_sum;
    const uint8_t *features, *unscaled, *classes, *schema, *prior; /* NULL: absent */
};

/* The arrays of words and numbers among them; of length 0 where they are absent. */
struct sums_lists {
    struct svi_item features, unscaled, classes;
};

#define OWNER struct sums_parts

/* Lists of words are ANY here: the table knows no arrays of strings, so check_array looks at them. */
static const struct svi_field sums_fields[] = {
    SVI_FIELD_STRING(OWNER, part),
    SVI_FIELD(OWNER, part_epoch, UINT, 0, 0),
    SVI_FIELD(OWNER, offset, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD(OWNER, n, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD_WORDS(OWNER, task, svi_sums_tasks),
    SVI_FIELD_WORDS(OWNER, kind, svi_sums_kinds),
    SVI_FIELD(OWNER, window, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD(OWNER, C, REAL, 0, HUGE_VAL),
    SVI_FIELD_WORDS(OWNER, scale, svi_sums_scales),
    SVI_FIELD(OWNER, d, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD_OPTIONAL(OWNER, features, ANY, 0, 0),
    SVI_FIELD_OPTIONAL(OWNER, unscaled, ANY, 0, 0),
    SVI_FIELD(OWNER, schema_hash, UINT, 0, 0),
    SVI_FIELD_OPTIONAL(OWNER, schema, ANY, 0, 0),
    SVI_FIELD(OWNER, center, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, weight, REAL, 0, HUGE_VAL),
    SVI_FIELD(OWNER, sum, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, square, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, classes, ANY, 0, 0),
    SVI_FIELD(OWNER, class_weight, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, class_sum, DOUBLES, 0, 0),
    SVI_FIELD_OPTIONAL(OWNER, target_weight, REAL, -HUGE_VAL, HUGE_VAL),
    SVI_FIELD_OPTIONAL(OWNER, target_sum, DOUBLES, 0, 0),
    SVI_FIELD_OPTIONAL(OWNER, target_square, REAL, 0, HUGE_VAL),
    SVI_FIELD_OPTIONAL(OWNER, prior, ANY, 0, 0),
};

static svs_code check_array(const char *name, const uint8_t *at, struct svi_item *array, svs_error *err) {
    svi_item_read(at, array);
    return array->type == SVI_ARRAY
               ? SVS_OK
               : svi_fail(err, SVS_WRONG_TYPE, "the " WHAT "'s %s is %s: it must be an array", name,
                          svi_item_name(array));
}

/* Compares the sizes that the parts must agree on. */
static svs_code sums_check_sizes(const struct sums_parts *p, const struct sums_lists *lists, svs_error *err) {
    const int64_t d = p->d, k = lists->classes.length,
                  packed = d <= SVI_SUMS_FEATURES_MAX ? d * (d + 1) / 2 : 0;
    const bool regress = p->task == SVS_REGRESS;
    if (d > SVI_SUMS_FEATURES_MAX || k > SVI_SUMS_CLASSES_MAX)
        return svi_fail(err, SVS_LIMIT,
                        "the " WHAT " has %lld features and %lld classes, at most %d and %d are taken",
                        (long long)d, (long long)k, SVI_SUMS_FEATURES_MAX, SVI_SUMS_CLASSES_MAX);
    if (p->features && lists->features.length != (uint32_t)d)
        return svi_fail(err, SVS_WRONG_TYPE, "the " WHAT " names %u features, but has %lld",
                        lists->features.length, (long long)d);
    if (!p->features && p->kind == SVI_SUMS_NAMED && d > 0)
        return svi_fail(err, SVS_WRONG_TYPE, "the " WHAT " is of named rows, but names no features");
    if (regress && k > 0)
        return svi_fail(err, SVS_WRONG_TYPE, "the " WHAT " is of a regression, but has %lld classes",
                        (long long)k);
    const struct {
        const char *name;
        int64_t is, must;
    } size[] = {
        {"center", p->center.count, d},           {"sum", p->sum.count, d},
        {"square", p->square.count, packed},      {"class_weight", p->class_weight.count, k},
        {"class_sum", p->class_sum.count, k * d}, {"target_sum", p->target_sum.count, regress ? d : 0}};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        if (size[i].is != size[i].must)
            return svi_fail(err, SVS_WRONG_TYPE, "%s of the " WHAT " has %lld values, not %lld", size[i].name,
                            (long long)size[i].is, (long long)size[i].must);
    if (regress && isnan(p->target_weight))
        return svi_fail(err, SVS_WRONG_TYPE, "the " WHAT " is of a regression, but has no target_weight");
    /* A weight of no samples contradicts itself: such a record is damaged, or made up. */
    if (p->n == 0 && p->weight != 0)
        return svi_fail(err, SVS_WRONG_TYPE, "the " WHAT " has weight %g of no samples", p->weight);
    return SVS_OK;
}

/* The address after the object at `at`, whose form was checked. */
static const uint8_t *sums_object_end(const uint8_t *at, const uint8_t *end) {
    svi_walk(&at, end, SVI_DEPTH_MAX);
    return at;
}

/* The block of text, and how much of it is in use. */
struct text_block {
    uint8_t *at;
    size_t used;
};

static void *text_copy(struct text_block *t, const void *bytes, size_t size, bool ends) {
    uint8_t *copy = t->at + t->used;
    memcpy(copy, bytes, size);
    if (ends) /* svi_alloc has zeroed the block */
        t->used++;
    t->used += size;
    return copy;
}

/* Any total order will do: it only has to bring equal values together. */
static int compare_values(const void *a, const void *b) {
    const svs_value *v = a, *w = b;
    if (v->kind != w->kind)
        return v->kind < w->kind ? -1 : 1;
    if (v->kind == SVS_INT)
        return v->as.i < w->as.i ? -1 : v->as.i > w->as.i;
    if (v->length != w->length)
        return v->length < w->length ? -1 : 1;
    return memcmp(v->as.s, w->as.s, v->length);
}

/* Fails if one of the values appears twice; sorts them. */
static svs_code check_distinct(const char *name, svs_value *v, size_t count, svs_error *err) {
    char text[SVS_NAME_MAX + 1];
    qsort(v, count, sizeof *v, compare_values);
    for (size_t i = 1; i < count; i++)
        if (compare_values(&v[i - 1], &v[i]) == 0)
            return svi_fail(err, SVS_WRONG_TYPE, "%s of the " WHAT " has %s twice", name,
                            svs_value_text(v[i], text, sizeof text));
    return SVS_OK;
}

/* A name of a feature: as the registry of names takes it. */
static bool is_name(const struct svi_item *item) {
    return item->type == SVI_STRING && item->length > 0 && item->length <= SVS_NAME_MAX &&
           svi_utf8_valid((const char *)item->body, item->length) && !memchr(item->body, 0, item->length);
}

static bool is_label(const struct svi_item *item, svs_value *v) {
    return svi_item_label(item, v) && (v->kind != SVS_STR || (v->length > 0 && v->length <= SVS_NAME_MAX));
}

/* Reads the elements of `array` as names (`names` not NULL) or labels (`labels`), and copies their text.
 * `sorted`: scratch of one value an element. */
static svs_code take_words(const char *what, const struct svi_item *array, const char **names,
                           svs_value *labels, svs_value *sorted, struct text_block *text, svs_error *err) {
    const uint8_t *at = array->body;
    for (uint32_t i = 0; i < array->length; i++) {
        struct svi_item item;
        svs_value v = svs_none();
        at = svi_item_read(at, &item);
        if (names ? !is_name(&item) : !is_label(&item, &v))
            return svi_fail(err, SVS_WRONG_TYPE,
                            "%s[%u] of the " WHAT " is %s: it must be %s of 1 to %d bytes", what, i,
                            svi_item_name(&item), names ? "a name" : "an integer, or a label", SVS_NAME_MAX);
        if (names)
            v = (svs_value){.kind = SVS_STR, .length = item.length, .as.s = (const char *)item.body};
        if (v.kind == SVS_STR)
            v.as.s = text_copy(text, v.as.s, v.length, names != NULL);
        if (names)
            names[i] = v.as.s;
        else
            labels[i] = v;
        sorted[i] = v;
    }
    return check_distinct(what, sorted, array->length, err);
}

/* Bytes of the strings in an array, each with a NUL. */
static size_t words_size(const struct svi_item *array) {
    size_t size = 0;
    const uint8_t *at = array->body;
    for (uint32_t i = 0; i < array->length; i++) {
        struct svi_item item;
        at = svi_item_read(at, &item);
        if (item.type == SVI_ARRAY || item.type == SVI_MAP) /* refused later; its elements follow */
            return size;
        if (item.type == SVI_STRING)
            size += item.length + (size_t)1;
    }
    return size;
}

static svs_code check_map(const char *name, const uint8_t *at, svs_error *err) {
    struct svi_item item;
    if (!at)
        return SVS_OK;
    svi_item_read(at, &item);
    return item.type == SVI_MAP ? SVS_OK
                                : svi_fail(err, SVS_WRONG_TYPE, "the " WHAT "'s %s is %s: it must be a map",
                                           name, svi_item_name(&item));
}

/* Numbers of features, each larger than the one before. */
static svs_code take_unscaled(const struct svi_item *array, int64_t d, int32_t *to, svs_error *err) {
    const uint8_t *at = array->body;
    int64_t last = -1;
    for (uint32_t i = 0; i < array->length; i++) {
        struct svi_item item;
        at = svi_item_read(at, &item);
        if (item.type != SVI_INT || item.i <= last || item.i >= d)
            return svi_fail(
                err, SVS_WRONG_TYPE,
                "unscaled[%u] of the " WHAT " must be the number of a feature, above the one before it", i);
        to[i] = (int32_t)(last = item.i);
    }
    return SVS_OK;
}

/* Names, labels and maps, in one block: the arrays first, because they are aligned. */
static svs_code take_texts(struct svi_sums *r, const struct sums_parts *p, const struct sums_lists *lists,
                           const uint8_t *end, svs_error *err) {
    const struct svi_item *features = &lists->features, *classes = &lists->classes;
    const size_t d = features->length, k = classes->length, widest = d > k ? d : k;
    const size_t unscaled = lists->unscaled.length;
    const size_t schema = p->schema ? (size_t)(sums_object_end(p->schema, end) - p->schema) : 0,
                 prior = p->prior ? (size_t)(sums_object_end(p->prior, end) - p->prior) : 0;
    const size_t arrays = d * sizeof(char *) + k * sizeof(svs_value) + unscaled * sizeof(int32_t);
    r->text = svi_alloc(arrays + words_size(features) + words_size(classes) + schema + prior + 1);
    svs_value *sorted = svi_alloc_array(widest + 1, sizeof *sorted);
    if (!r->text || !sorted) {
        svi_free(sorted);
        return svi_fail_memory(err, "the names of a " WHAT);
    }
    /* Labels hold 8-byte numbers, so they come first; names are pointers, and the 4-byte numbers are last. */
    struct text_block text = {r->text, arrays};
    svs_value *labels = (svs_value *)(void *)r->text;
    const char **names = (const char **)(void *)(r->text + k * sizeof(svs_value));
    int32_t *plain = (int32_t *)(void *)(names + d);
    svs_code code = take_words("features", features, names, NULL, sorted, &text, err);
    if (code == SVS_OK)
        code = take_words("classes", classes, NULL, labels, sorted, &text, err);
    svi_free(sorted);
    if (code == SVS_OK)
        code = take_unscaled(&lists->unscaled, p->d, plain, err);
    if (code != SVS_OK)
        return code;
    r->unscaled = plain;
    r->unscaled_count = (int)unscaled;
    r->features = p->features ? names : NULL;
    r->classes = labels;
    if (p->schema)
        r->schema = text_copy(&text, p->schema, schema, false);
    if (p->prior)
        r->prior = text_copy(&text, p->prior, prior, false);
    r->schema_size = schema;
    r->prior_size = prior;
    return SVS_OK;
}

static svs_code take_numbers(struct svi_window_sums *s, const struct sums_parts *p, int classes,
                             svs_error *err) {
    const bool regress = p->task == SVS_REGRESS;
    SVI_TRY(svi_window_sums_shape(s, (int)p->d, classes, err));
    const struct {
        const char *name;
        const struct svi_doubles *from;
        double *to;
    } array[] = {
        {"center", &p->center, s->center},          {"sum", &p->sum, s->sum},
        {"square", &p->square, s->square},          {"class_weight", &p->class_weight, s->class_weight},
        {"class_sum", &p->class_sum, s->class_sum}, {"target_sum", &p->target_sum, s->target_sum}};
    for (size_t i = 0; i < sizeof array / sizeof *array; i++)
        SVI_TRY(
            svi_doubles_copy(array[i].from, 0, array[i].from->count, array[i].to, WHAT, array[i].name, err));
    /* A sum of weighted squares cannot be negative. A record that says so was not summed from rows. */
    for (int i = 0; i < s->d; i++)
        if (s->square[svi_sums_packed(i) + (size_t)i] < 0)
            return svi_fail(err, SVS_WRONG_TYPE, "square of the " WHAT " is negative for feature %d", i);
    for (int k = 0; k < classes; k++)
        if (s->class_weight[k] < 0)
            return svi_fail(err, SVS_WRONG_TYPE, "class_weight[%d] of the " WHAT " is negative", k);
    s->n = p->n;
    s->weight = p->weight;
    s->target_weight = regress ? p->target_weight : 0;
    s->target_square = regress ? p->target_square : 0;
    return SVS_OK;
}

static svs_code take_record(struct svi_sums *r, const uint8_t *map, const uint8_t *end, svs_error *err) {
    struct sums_parts p = {.target_weight = NAN, .target_square = NAN};
    struct sums_lists lists = {0};
    SVI_TRY(svi_fields_read(WHAT, SVI_FIELDS(sums_fields), map, end, &p, err));
    if (!*p.part || !svi_utf8_valid(p.part, strlen(p.part)))
        return svi_fail(err, SVS_WRONG_TYPE, "part of the " WHAT " must be a name of 1 to %d bytes",
                        SVI_PART_MAX);
    if (p.features)
        SVI_TRY(check_array("features", p.features, &lists.features, err));
    if (p.unscaled)
        SVI_TRY(check_array("unscaled", p.unscaled, &lists.unscaled, err));
    SVI_TRY(check_array("classes", p.classes, &lists.classes, err));
    SVI_TRY(check_map("schema", p.schema, err));
    SVI_TRY(check_map("prior", p.prior, err));
    /* Sizes before the first allocation: what follows trusts that the arrays fit together. */
    SVI_TRY(sums_check_sizes(&p, &lists, err));
    memcpy(r->part, p.part, sizeof r->part);
    r->part_epoch = p.part_epoch;
    r->offset = p.offset;
    r->task = (svs_task)p.task;
    r->kind = (enum svi_sums_kind)p.kind;
    r->window = p.window;
    r->C = p.C;
    r->scale = (svs_scale)p.scale;
    r->schema_hash = p.schema_hash;
    SVI_TRY(take_texts(r, &p, &lists, end, err));
    return take_numbers(&r->sums, &p, (int)lists.classes.length, err);
}

svs_code svi_sums_decode(struct svi_sums *r, const void *payload, size_t size, svs_error *err) {
    svi_sums_clear(r);
    SVI_TRY(svi_msgpack_check(payload, size, SVI_DEPTH_MAX, err));
    const svs_code code = take_record(r, payload, (const uint8_t *)payload + size, err);
    if (code != SVS_OK)
        svi_sums_clear(r);
    return code;
}
