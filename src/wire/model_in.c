/* The payload of a `model.` event -> a model that owns everything it points to.
 *
 * The payload is copied once; strings stay in the copy, moved one byte towards their header so that a NUL
 * fits behind them. Only bytes that were read already are overwritten. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "learner/model_owned.h"
#include "svmstream/model.h"
#include "wire/cursor.h"
#include "wire/decode.h"

#define EXT_FLOAT64  2
#define FEATURES_MAX 1000000
#define CLASSES_MAX  100000

/* The model being read; `text` is the copy of the payload. */
struct owner {
    struct svi_owned_model owned;
    int weights, names; /* elements of W and features, before they are held against d and rows */
};

struct reading {
    const uint8_t *at, *end;
    struct owner *o;
    svs_error *err;
};

typedef svs_code reader(struct reading *r, const struct svi_item *item, const char *key);

static svs_code wrong_type(const struct reading *r, const struct svi_item *item, const char *key,
                           const char *wanted) {
    return svi_fail(r->err, SVS_WRONG_TYPE, "the model's %s is %s: it must be %s", key, svi_item_name(item),
                    wanted);
}

/* The string as a C string inside the copy; NULL if it has a NUL or is not UTF-8. */
static const char *string_in_copy(struct reading *r, const struct svi_item *item) {
    char *s = (char *)r->o->owned.text + (item->body - (const uint8_t *)r->o->owned.text) - 1;
    if (!svi_utf8_valid((const char *)item->body, item->length) || memchr(item->body, 0, item->length))
        return NULL;
    memmove(s, s + 1, item->length);
    s[item->length] = '\0';
    return s;
}

static svs_code take_count(struct reading *r, const struct svi_item *item, const char *key, int64_t *out) {
    if (item->type != SVI_INT || item->i < 0)
        return wrong_type(r, item, key, "an integer from 0");
    *out = item->i;
    return SVS_OK;
}

static svs_code take_version(struct reading *r, const struct svi_item *item, const char *key) {
    if (item->type != SVI_HUGE_INT && (item->type != SVI_INT || item->i < 0))
        return wrong_type(r, item, key, "an integer from 0");
    r->o->owned.model.version = (uint64_t)item->i;
    return SVS_OK;
}

static svs_code take_window(struct reading *r, const struct svi_item *item, const char *key) {
    return take_count(r, item, key, &r->o->owned.model.window);
}

static svs_code take_seen(struct reading *r, const struct svi_item *item, const char *key) {
    return take_count(r, item, key, &r->o->owned.model.seen);
}

static svs_code take_learned(struct reading *r, const struct svi_item *item, const char *key) {
    return take_count(r, item, key, &r->o->owned.model.learned);
}

static svs_code take_d(struct reading *r, const struct svi_item *item, const char *key) {
    int64_t d = 0;
    svs_code code = take_count(r, item, key, &d);
    if (code == SVS_OK && d > FEATURES_MAX)
        return svi_fail(r->err, SVS_LIMIT, "the model has %lld features, at most %d are taken", (long long)d,
                        FEATURES_MAX);
    r->o->owned.model.d = (int)d;
    return code;
}

static svs_code take_method(struct reading *r, const struct svi_item *item, const char *key) {
    if (item->type != SVI_STRING)
        return wrong_type(r, item, key, "a string");
    r->o->owned.model.method = string_in_copy(r, item);
    return r->o->owned.model.method
               ? SVS_OK
               : svi_fail(r->err, SVS_WRONG_TYPE, "the model's method is not valid text");
}

static svs_code take_task(struct reading *r, const struct svi_item *item, const char *key) {
    static const char *const tasks[] = {[SVS_CLASSIFY] = "classify", [SVS_REGRESS] = "regress"};
    for (int t = 0; t < 2 && item->type == SVI_STRING; t++)
        if (item->length == strlen(tasks[t]) && memcmp(item->body, tasks[t], item->length) == 0) {
            r->o->owned.model.task = (svs_task)t;
            return SVS_OK;
        }
    return wrong_type(r, item, key, "the string classify or regress");
}

static svs_code take_C(struct reading *r, const struct svi_item *item, const char *key) {
    if (!svi_item_number(item, &r->o->owned.model.C) || !isfinite(r->o->owned.model.C))
        return wrong_type(r, item, key, "a finite number");
    return SVS_OK;
}

static svs_code take_features(struct reading *r, const struct svi_item *array, const char *key) {
    struct owner *o = r->o;
    if (array->type != SVI_ARRAY)
        return wrong_type(r, array, key, "nil or an array of names");
    if (array->length > FEATURES_MAX)
        return svi_fail(r->err, SVS_LIMIT, "the model names %u features, at most %d are taken", array->length,
                        FEATURES_MAX);
    o->names = (int)array->length;
    o->owned.features = svi_alloc_array(array->length + 1, sizeof *o->owned.features);
    if (!o->owned.features)
        return svi_fail_memory(r->err, "the names of a model");
    for (uint32_t j = 0; j < array->length; j++) {
        struct svi_item name;
        r->at = svi_item_read(r->at, &name);
        o->owned.features[j] = name.type == SVI_STRING ? string_in_copy(r, &name) : NULL;
        if (!o->owned.features[j])
            return svi_fail(r->err, SVS_WRONG_TYPE, "features[%u] of the model is not a string of valid text",
                            j);
    }
    return SVS_OK;
}

static bool class_of(const struct svi_item *item, svs_value *out) {
    if (item->type == SVI_INT)
        *out = svs_int(item->i);
    else if (item->type == SVI_STRING && svi_utf8_valid((const char *)item->body, item->length))
        *out = (svs_value){.kind = SVS_STR, .length = item->length, .as.s = (const char *)item->body};
    else
        return false;
    return true;
}

static svs_code take_classes(struct reading *r, const struct svi_item *array, const char *key) {
    struct owner *o = r->o;
    if (array->type != SVI_ARRAY)
        return wrong_type(r, array, key, "an array of labels");
    if (array->length > CLASSES_MAX)
        return svi_fail(r->err, SVS_LIMIT, "the model has %u classes, at most %d are taken", array->length,
                        CLASSES_MAX);
    o->owned.model.class_count = (int)array->length;
    o->owned.classes = svi_alloc_array(array->length + 1, sizeof *o->owned.classes);
    if (!o->owned.classes)
        return svi_fail_memory(r->err, "the classes of a model");
    for (uint32_t k = 0; k < array->length; k++) {
        struct svi_item label;
        r->at = svi_item_read(r->at, &label);
        if (!class_of(&label, &o->owned.classes[k]))
            return svi_fail(r->err, SVS_WRONG_TYPE,
                            "classes[%u] of the model is %s: a label is an integer or a string", k,
                            svi_item_name(&label));
    }
    return SVS_OK;
}

static svs_code take_doubles(struct reading *r, const struct svi_item *ext, const char *key, double **out,
                             int *count) {
    if (ext->type != SVI_EXT || ext->ext != EXT_FLOAT64 || ext->length % 8 != 0)
        return wrong_type(r, ext, key, "packed float64 (ext 2)");
    *count = (int)(ext->length / 8);
    *out = svi_alloc_array((size_t)*count + 1, sizeof **out);
    if (!*out)
        return svi_fail_memory(r->err, "the weights of a model");
    for (int i = 0; i < *count; i++) {
        uint64_t bits;
        memcpy(&bits, ext->body + 8 * (size_t)i, sizeof bits);
        bits = le64toh(bits);
        memcpy(&(*out)[i], &bits, sizeof bits);
        if (!isfinite((*out)[i]))
            return svi_fail(r->err, SVS_NOT_FINITE, "%s[%d] of the model is not finite", key, i);
    }
    return SVS_OK;
}

static svs_code take_W(struct reading *r, const struct svi_item *item, const char *key) {
    return take_doubles(r, item, key, &r->o->owned.W, &r->o->weights);
}

static svs_code take_b(struct reading *r, const struct svi_item *item, const char *key) {
    struct owner *o = r->o;
    double b;
    if (!svi_item_number(item, &b))
        return take_doubles(r, item, key, &o->owned.b, &o->owned.model.rows);
    if (!isfinite(b))
        return svi_fail(r->err, SVS_NOT_FINITE, "b of the model is not finite");
    o->owned.model.rows = 1;
    o->owned.b = svi_alloc(sizeof *o->owned.b);
    if (!o->owned.b)
        return svi_fail_memory(r->err, "the weights of a model");
    *o->owned.b = b;
    return SVS_OK;
}

static const struct row {
    const char *key;
    reader *take;
    bool required;
} rows[] = {
    {"version", take_version, false},
    {"method", take_method, false},
    {"task", take_task, true},
    {"d", take_d, true},
    {"features", take_features, false},
    {"classes", take_classes, true},
    {"W", take_W, true},
    {"b", take_b, true},
    {"C", take_C, false},
    {"window", take_window, false},
    {"seen", take_seen, false},
    {"learned", take_learned, false},
};

#define ROW_COUNT (sizeof rows / sizeof *rows)

static size_t row_of(const struct svi_item *key) {
    size_t i = 0;
    while (i < ROW_COUNT &&
           (strlen(rows[i].key) != key->length || memcmp(rows[i].key, key->body, key->length) != 0))
        i++;
    return i;
}

static svs_code take_pair(struct reading *r, unsigned *seen) {
    struct svi_item item;
    r->at = svi_item_read(r->at, &item);
    if (item.type != SVI_STRING)
        return svi_fail(r->err, SVS_WRONG_TYPE, "a key of the model is %s: keys are strings",
                        svi_item_name(&item));
    size_t i = row_of(&item);
    if (i == ROW_COUNT)
        return svi_walk(&r->at, r->end, SVI_DEPTH_MAX);
    if (*seen & 1u << i)
        return svi_fail(r->err, SVS_DUPLICATE_KEY, "the model's key %s is there twice", rows[i].key);
    r->at = svi_item_read(r->at, &item);
    if (item.type == SVI_NIL)
        return SVS_OK;
    *seen |= 1u << i;
    return rows[i].take(r, &item, rows[i].key);
}

/* Do the parts belong together? */
static svs_code check(const struct owner *o, unsigned seen, svs_error *err) {
    const svs_model *m = &o->owned.model;
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].required && !(seen & 1u << i))
            return svi_fail(err, SVS_WRONG_TYPE, "the model has no %s", rows[i].key);
    int expected = m->class_count >= 3 ? m->class_count : 1;
    if (m->rows != expected || (m->task == SVS_REGRESS && m->class_count > 0))
        return svi_fail(err, SVS_WRONG_TYPE, "the model has %d rows for %d classes", m->rows, m->class_count);
    if ((int64_t)o->weights != (int64_t)m->rows * m->d)
        return svi_fail(err, SVS_WRONG_TYPE, "W has %d values, not %d x %d", o->weights, m->rows, m->d);
    if (o->owned.features && o->names != m->d)
        return svi_fail(err, SVS_WRONG_TYPE, "the model names %d features, but has %d", o->names, m->d);
    return SVS_OK;
}

static svs_code take_model(struct reading *r) {
    struct svi_item item;
    unsigned seen = 0;
    r->at = svi_item_read(r->at, &item);
    if (item.type != SVI_MAP)
        return svi_fail(r->err, SVS_WRONG_TYPE, "the payload is %s: a model is a map", svi_item_name(&item));
    for (uint32_t i = 0; i < item.length; i++) {
        svs_code code = take_pair(r, &seen);
        if (code != SVS_OK)
            return code;
    }
    return check(r->o, seen, r->err);
}

static struct owner *new_owner(const void *payload, size_t length, svs_error *err) {
    struct owner *o = svi_alloc(sizeof *o);
    uint8_t *copy = svi_alloc(length);
    if (!o || !copy) {
        svi_free(o);
        svi_free(copy);
        svi_fail_memory(err, "a model");
        return NULL;
    }
    memcpy(copy, payload, length);
    o->owned.text = copy;
    o->owned.model.method = "";
    return o;
}

svs_model *svs_model_decode(const void *payload, size_t length, svs_error *err) {
    if (svi_msgpack_check(payload, length, SVI_DEPTH_MAX, err) != SVS_OK)
        return NULL;
    struct owner *o = new_owner(payload, length, err);
    if (!o)
        return NULL;
    struct reading r = {
        .at = o->owned.text, .end = (const uint8_t *)o->owned.text + length, .o = o, .err = err};
    svs_model *m = &o->owned.model;
    if (take_model(&r) != SVS_OK) {
        svs_model_free(&m);
        return NULL;
    }
    m->W = o->owned.W;
    m->b = o->owned.b;
    m->classes = o->owned.classes;
    m->features = o->owned.features;
    return m;
}
