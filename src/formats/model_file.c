/* Trained models as files, and the models of `model.` events.
 *
 * svi_machine_read recognises the format by the first bytes and leaves text to model_text.c. Our own
 * format is a checked file (checked_file.h) around one of two maps: a linear model as an event carries it,
 * or a kernel model (kernel_model_file.c).
 *
 * svs_model_decode is also called by subscribers: the payload may come from anybody, so lengths and ranges
 * are checked before they are used. The payload is copied once, without the weights, and the model's
 * strings stay in that copy: each is moved one byte towards its header to make space for a NUL after it.
 * That destroys the header, so the outer map is not walked after copy_parts. The inner maps, of calibration
 * and schema, are walked later: no string is taken from them.
 * The weights, which may be nearly all of the payload, are copied directly to their place. */
#include "formats/model_file.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "formats/checked_file.h"
#include "formats/file_io.h"
#include "formats/kernel_model_file.h"
#include "formats/model_file_internal.h"
#include "formats/schema_text.h"
#include "learner/owned_model.h"
#include "wire/decode.h"
#include "wire/event.h"

#define FORMAT       "svmstream-model"
#define VERSION      1
#define FEATURES_MAX 1000000
#define CLASSES_MAX  100000

/* ---- linear models from bytes */

struct model_parts {
    uint64_t version;
    int64_t d, window, seen, learned;
    int task;
    double C;
    struct svi_doubles W;
    const uint8_t *method, *features, *classes, *b, *schema, *calibration, *serves,
        *reproduces; /* NULL = absent; never for classes and b */
};

static const char *const tasks[] = {[SVS_CLASSIFY] = "classify", [SVS_REGRESS] = "regress", NULL};

#define OWNER struct model_parts

static const struct svi_field model_fields[] = {
    SVI_FIELD_OPTIONAL(OWNER, version, UINT, 0, 0),
    SVI_FIELD_OPTIONAL(OWNER, method, ANY, 0, 0),
    SVI_FIELD_WORDS(OWNER, task, tasks),
    SVI_FIELD(OWNER, d, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD_OPTIONAL(OWNER, features, ANY, 0, 0),
    SVI_FIELD(OWNER, classes, ANY, 0, 0),
    SVI_FIELD(OWNER, W, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, b, ANY, 0, 0),
    SVI_FIELD_OPTIONAL(OWNER, C, REAL, -HUGE_VAL, HUGE_VAL),
    SVI_FIELD_OPTIONAL(OWNER, window, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD_OPTIONAL(OWNER, seen, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD_OPTIONAL(OWNER, learned, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD_OPTIONAL(OWNER, schema, ANY, 0, 0),
    SVI_FIELD_OPTIONAL(OWNER, calibration, ANY, 0, 0),
    SVI_FIELD_OPTIONAL(OWNER, serves, ANY, 0, 0),
    SVI_FIELD_OPTIONAL(OWNER, reproduces, ANY, 0, 0),
};

struct calibration_parts {
    double a;
    const uint8_t *b;
    struct svi_doubles curve;
};

static const struct svi_field calibration_fields[] = {
    SVI_FIELD(struct calibration_parts, a, REAL, 1e-100, 1e100),
    SVI_FIELD(struct calibration_parts, b, ANY, 0, 0),
    SVI_FIELD_OPTIONAL(struct calibration_parts, curve, DOUBLES, 0, 0)};

/* Turns the string into a C string inside the copy and returns it; NULL if it is not a string, has a NUL,
 * or is not UTF-8. The item's header is overwritten. */
static const char *string_in_copy(struct svi_owned_model *o, const struct svi_item *item) {
    if (item->type != SVI_STRING || !svi_utf8_valid((const char *)item->body, item->length) ||
        memchr(item->body, 0, item->length))
        return NULL;
    char *s = (char *)o->text + (item->body - (const uint8_t *)o->text) - 1;
    memmove(s, s + 1, item->length);
    s[item->length] = '\0';
    return s;
}

static svs_code take_features(struct svi_owned_model *o, const uint8_t *at, svs_error *err) {
    struct svi_item array, name;
    if (!at)
        return SVS_OK;
    at = svi_item_read(at, &array);
    if (array.type != SVI_ARRAY)
        return svi_fail(err, SVS_WRONG_TYPE,
                        "the model's features is %s: it must be nil or an array of names",
                        svi_item_name(&array));
    /* One more than the names: an array of no names is not NULL, which would mean unnamed. */
    o->features = svi_alloc_array(array.length + 1, sizeof *o->features);
    if (!o->features)
        return svi_fail_memory(err, "the names of a model");
    for (uint32_t j = 0; j < array.length; j++) {
        /* The item is read before its string moves, and `at` is past it then. */
        at = svi_item_read(at, &name);
        o->features[j] = string_in_copy(o, &name);
        if (!o->features[j])
            return svi_fail(err, SVS_WRONG_TYPE, "features[%u] of the model is not a string of valid text",
                            j);
    }
    if (array.length != (uint32_t)o->model.d)
        return svi_fail(err, SVS_WRONG_TYPE, "the model names %u features, but has %d", array.length,
                        o->model.d);
    return SVS_OK;
}

static svs_code take_classes(struct svi_owned_model *o, const uint8_t *at, svs_error *err) {
    struct svi_item array, label;
    at = svi_item_read(at, &array);
    if (array.type != SVI_ARRAY)
        return svi_fail(err, SVS_WRONG_TYPE, "the model's classes is %s: it must be an array of labels",
                        svi_item_name(&array));
    if (array.length > CLASSES_MAX)
        return svi_fail(err, SVS_LIMIT, "the model has %u classes, at most %d are allowed", array.length,
                        CLASSES_MAX);
    o->model.class_count = (int)array.length;
    o->classes = svi_alloc_array(array.length + 1, sizeof *o->classes);
    if (!o->classes)
        return svi_fail_memory(err, "the classes of a model");
    for (uint32_t k = 0; k < array.length; k++) {
        at = svi_item_read(at, &label);
        /* Labels that are strings keep pointer and length, and stay where they are. */
        if (!svi_item_label(&label, &o->classes[k]))
            return svi_fail(err, SVS_WRONG_TYPE,
                            "classes[%u] of the model is %s: a label is an integer or a string", k,
                            svi_item_name(&label));
    }
    return SVS_OK;
}

static svs_code take_doubles(const struct svi_doubles *d, const char *name, double **out, svs_error *err) {
    *out = svi_alloc_array((size_t)d->count + 1, sizeof **out);
    if (!*out)
        return svi_fail_memory(err, "the weights of a model");
    return svi_doubles_copy(d, 0, d->count, *out, "model", name, err);
}

/* b is a number for one row, else packed doubles; it determines the number of rows. */
static svs_code take_b(struct svi_owned_model *o, const uint8_t *at, svs_error *err) {
    struct svi_doubles packed;
    struct svi_item item;
    double number;
    svi_item_read(at, &item);
    /* Rows are compared with the classes later (check_model). */
    if (svi_item_doubles(&item, &packed)) {
        o->model.rows = (int)packed.count;
        return take_doubles(&packed, "b", &o->b, err);
    }
    if (!svi_item_number(&item, &number))
        return svi_fail(err, SVS_WRONG_TYPE,
                        "the model's b is %s: it must be a number or packed float64 (ext 2)",
                        svi_item_name(&item));
    if (!isfinite(number))
        return svi_fail(err, SVS_NOT_FINITE, "b of the model is not finite");
    o->model.rows = 1;
    o->b = svi_alloc(sizeof *o->b);
    if (!o->b)
        return svi_fail_memory(err, "the weights of a model");
    *o->b = number;
    return SVS_OK;
}

/* Compares rows, classes and the size of W. */
static svs_code check_model(const svs_model *m, int64_t weights, svs_error *err) {
    /* One row for regression and up to two classes, else one a class. */
    const int expected = m->class_count >= 3 ? m->class_count : 1;
    if (m->rows != expected || (m->task == SVS_REGRESS && m->class_count > 0))
        return svi_fail(err, SVS_WRONG_TYPE, "the model has %d rows for %d classes", m->rows, m->class_count);
    if (weights != (int64_t)m->rows * m->d)
        return svi_fail(err, SVS_WRONG_TYPE, "W has %lld values, not %d x %d", (long long)weights, m->rows,
                        m->d);
    return SVS_OK;
}

static svs_code take_curve(const struct svi_doubles *packed, double *curve, svs_error *err) {
    /* A rising curve keeps the order of scores; any other would make decisions and probabilities disagree. */
    if (packed->count != SVS_CURVE)
        return svi_fail(err, SVS_WRONG_TYPE, "the curve of the model's calibration has %lld values, not %d",
                        (long long)packed->count, SVS_CURVE);
    svs_code code = svi_doubles_copy(packed, 0, SVS_CURVE, curve, "calibration", "curve", err);
    for (int j = 1; j < SVS_CURVE && code == SVS_OK; j++)
        if (!(curve[j] > curve[j - 1]))
            return svi_fail(err, SVS_WRONG_TYPE, "the curve of the model's calibration does not rise");
    return code;
}

static svs_code take_calibration(struct svi_owned_model *o, const uint8_t *at, const uint8_t *end,
                                 svs_error *err) {
    struct calibration_parts p = {0};
    struct svi_doubles packed;
    struct svi_item b;
    svs_model *m = &o->model;
    /* The field reader needs the end of the inner map. */
    const uint8_t *after = at;
    svi_walk(&after, end, SVI_DEPTH_MAX);
    svs_code code = svi_fields_read("calibration", SVI_FIELDS(calibration_fields), at, after, &p, err);
    if (code != SVS_OK)
        return code;
    if (m->class_count < 2)
        return svi_fail(err, SVS_WRONG_TYPE, "the model has a calibration, but less than two classes");
    /* The calibration counts only once a > 0, which is set last: until then a failure leaves none. */
    double *offsets = svi_model_calibrate(m, p.curve.body != NULL, err);
    if (!offsets)
        return SVS_NO_MEMORY;
    svi_item_read(p.b, &b);
    if (svi_item_doubles(&b, &packed) && packed.count == m->rows)
        code = svi_doubles_copy(&packed, 0, m->rows, offsets, "calibration", "b", err);
    else if (m->rows > 1 || !svi_item_number(&b, offsets))
        return svi_fail(err, SVS_WRONG_TYPE, "b of the model's calibration is not %d numbers", m->rows);
    else if (!isfinite(*offsets))
        return svi_fail(err, SVS_NOT_FINITE, "b of the model's calibration is not finite");
    if (code == SVS_OK && p.curve.body)
        code = take_curve(&p.curve, offsets + m->rows, err);
    m->calibration.a = code == SVS_OK ? p.a : 0;
    return code;
}

/* True if the value is a boolean equal to `wanted`; an absent one is not. */
static bool key_holds(const uint8_t *value, bool wanted) {
    struct svi_item item = {.type = SVI_NIL};
    if (value)
        svi_item_read(value, &item);
    return item.type == SVI_BOOL && (item.i != 0) == wanted;
}

/* Copies the payload without its weights, and moves the pointers in *p from the payload into the copy:
 * those after W by the size of the weights. Returns the end of the copy; NULL: no memory. */
static const uint8_t *copy_parts(struct svi_owned_model *o, const uint8_t *map, size_t length,
                                 struct model_parts *p) {
    const uint8_t **const found[] = {&p->method, &p->features,    &p->classes, &p->b,
                                     &p->schema, &p->calibration, &p->serves,  &p->reproduces};
    /* The two pieces before and after the weights, moved together. */
    const size_t weights = (size_t)p->W.count * sizeof(double), before = (size_t)(p->W.body - map);
    uint8_t *copy = o->text = svi_alloc(length - weights);
    if (!copy)
        return NULL;
    memcpy(copy, map, before);
    memcpy(copy + before, p->W.body + weights, length - weights - before);
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        if (*found[i])
            *found[i] = copy + (*found[i] - map) - (*found[i] > p->W.body ? weights : 0);
    return copy + length - weights;
}

static svs_code take_model(struct svi_owned_model *o, const uint8_t *map, size_t length, svs_error *err) {
    struct model_parts p = {0};
    struct svi_item method;
    svs_model *m = &o->model;
    svs_code code = svi_fields_read("model", SVI_FIELDS(model_fields), map, map + length, &p, err);
    if (code == SVS_OK && p.d > FEATURES_MAX)
        code = svi_fail(err, SVS_LIMIT, "the model has %lld features, at most %d are allowed", (long long)p.d,
                        FEATURES_MAX);
    if (code != SVS_OK)
        return code;
    const uint8_t *end = copy_parts(o, map, length, &p);
    if (!end)
        return svi_fail_memory(err, "a model");
    m->version = p.version;
    m->task = (svs_task)p.task;
    m->d = (int)p.d;
    m->C = p.C;
    m->window = p.window;
    m->seen = p.seen;
    m->learned = p.learned;
    /* Served, but not reproduced by these weights: the stream predicts by something that this model does
     * not contain. */
    m->elsewhere = key_holds(p.serves, true) && key_holds(p.reproduces, false);
    if ((code = take_b(o, p.b, err)) != SVS_OK || (code = take_doubles(&p.W, "W", &o->W, err)) != SVS_OK ||
        (code = take_classes(o, p.classes, err)) != SVS_OK ||
        (code = check_model(m, p.W.count, err)) != SVS_OK)
        return code;
    /* The order from here: the calibration needs rows and classes, the schema the features' names. */
    if (p.method) {
        svi_item_read(p.method, &method);
        m->method = string_in_copy(o, &method);
    }
    if (!m->method)
        return svi_fail(err, SVS_WRONG_TYPE, "the model's method is not valid text");
    code = p.calibration ? take_calibration(o, p.calibration, end, err) : SVS_OK;
    code = code == SVS_OK ? take_features(o, p.features, err) : code;
    m->schema = p.schema;
    return code == SVS_OK && p.schema
               ? svi_schema_measure(o->features, m->d, p.schema, end, &m->schema_size, err)
               : code;
}

svs_model *svs_model_decode(const void *payload, size_t length, svs_error *err) {
    if (svi_msgpack_check(payload, length, SVI_DEPTH_MAX, err) != SVS_OK)
        return NULL;
    struct svi_owned_model *o = svi_alloc(sizeof *o);
    svs_model *m = o ? &o->model : NULL;
    if (!o) {
        svi_fail_memory(err, "a model");
        return NULL;
    }
    /* Optional in the payload, and never NULL in a model. */
    m->method = "";
    if (take_model(o, payload, length, err) != SVS_OK) {
        svs_model_free(&m);
        return NULL;
    }
    /* The model's pointers are const; the owner keeps them writable, for freeing. */
    m->W = o->W;
    m->b = o->b;
    m->classes = o->classes;
    m->features = o->features;
    return m;
}

/* ---- writing files */

static const char *const kinds[] = {"linear", "kernel", NULL};

static svs_code write_own(const struct svi_machine *m, const char *path, svs_error *err) {
    struct svi_bytes file = {0};
    struct svi_pack p;
    const struct svi_open_map map = svi_checked_file_begin(&p, &file, FORMAT, VERSION);
    svi_put_text(&p, "kind", kinds[m->kernel != NULL]);
    /* The model's own encoder appends the value of this key. */
    svi_pack_key(&p, "model");
    svs_code code = p.failed    ? SVS_NO_MEMORY
                    : m->linear ? svi_model_encode(m->linear, NULL, 0, &file)
                                : svi_kernel_encode(m->kernel, &file);
    if (code == SVS_OK)
        code = svi_checked_file_end(&p, map);
    code = code == SVS_OK ? svi_file_write_bytes(path, &file, err) : svi_fail_memory(err, "a model file");
    svi_bytes_clear(&file);
    return code;
}

static svs_code write_liblinear(void *user, FILE *to, svs_error *err) {
    return svs_model_write_liblinear(((const struct svi_machine *)user)->linear, to, err);
}

svs_code svi_machine_write(const struct svi_machine *m, const char *path, enum svi_model_format format,
                           svs_error *err) {
    if (format == SVI_FORMAT_OWN)
        return write_own(m, path, err);
    if (format == SVI_FORMAT_LIBLINEAR && m->kernel)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "LIBLINEAR's format holds linear models only: use the format libsvm or own");
    return svi_file_write(path, format == SVI_FORMAT_LIBSVM ? svi_libsvm_write : write_liblinear, (void *)m,
                          err);
}

/* ---- reading files */

struct file_parts {
    int kind;
    const uint8_t *model;
};

static svs_code read_checked(struct svi_machine *m, const struct svi_checked_file *c, svs_error *err) {
    static const struct svi_field fields[] = {SVI_FIELD_WORDS(struct file_parts, kind, kinds),
                                              SVI_FIELD(struct file_parts, model, ANY, 0, 0)};
    struct file_parts p;
    SVI_TRY(svi_checked_file_read(c, VERSION, "model file", SVI_FIELDS(fields), &p, err));
    const uint8_t *after = p.model;
    svi_walk(&after, c->end, SVI_DEPTH_MAX);
    if (p.kind == 1)
        m->kernel = svi_kernel_decode(p.model, (size_t)(after - p.model), err);
    else
        m->linear = svs_model_decode(p.model, (size_t)(after - p.model), err);
    return m->linear || m->kernel ? SVS_OK : err->code;
}

/* `err` is not NULL. */
static svs_code read_own(struct svi_machine *m, const uint8_t *bytes, size_t size, svs_error *err) {
    struct svi_checked_file file;
    SVI_TRY(svi_checked_file_open(&file, bytes, size, err));
    /* By format: ours; a novelty model, which another command reads; else perhaps an event's payload, a
     * map without a format. */
    if (strcmp(file.format, FORMAT) == 0)
        return read_checked(m, &file, err);
    if (strcmp(file.format, "svmstream-novelty") == 0)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "it is a novelty model: `svmstream novelty` shows it and scores with it");
    m->linear = svs_model_decode(bytes, size, err); /* the payload of a `model.` event is a model too */
    return m->linear ? SVS_OK : err->code;
}

svs_code svi_machine_read(struct svi_machine *m, const char *path, svs_error *err) {
    char *bytes;
    size_t size = 0;
    svs_error mine = {0};
    *m = (struct svi_machine){0};
    svs_code code = svi_file_read(path, &bytes, &size, &mine);
    /* The first words of LIBLINEAR's and LIBSVM's files; anything else must be msgpack. */
    if (code == SVS_OK)
        code = strncmp(bytes, "solver_type ", 12) == 0 ? svi_liblinear_read(m, bytes, &mine)
               : strncmp(bytes, "svm_type ", 9) == 0   ? svi_libsvm_read(m, bytes, &mine)
                                                       : read_own(m, (const uint8_t *)bytes, size, &mine);
    /* Models own copies of all they need. */
    svi_free(bytes);
    if (code != SVS_OK) {
        svi_machine_clear(m);
        return svi_fail(err, code, "%.100s: %.150s", path, mine.text);
    }
    return SVS_OK;
}

void svi_machine_clear(struct svi_machine *m) {
    svs_model_free(&m->linear);
    svs_kernel_model_free(&m->kernel);
}

/* ---- a linear model from any file that has one, as the payload of an event */

static svs_code model_any_bytes(const char *path, struct svi_bytes *out, svs_error *err) {
    char *bytes;
    size_t size;
    svs_error why;
    svs_code code = svi_file_read(path, &bytes, &size, &why);
    /* Owned by *out on failure too. */
    *out = (struct svi_bytes){.data = (uint8_t *)bytes, .size = size, .capacity = size};
    return code == SVS_OK ? SVS_OK : svi_fail(err, code, "%.150s: %.300s", path, why.text);
}

/* A file that is not an event's payload: what `train` or LIBLINEAR wrote. The bytes are replaced by the
 * payload of an event with its model. */
static svs_model *model_any_trained(const char *path, struct svi_bytes *bytes, svs_error *err) {
    struct svi_machine machine = {0};
    svs_error why;
    if (svi_machine_read(&machine, path, &why) != SVS_OK) { /* *err says why it is not an event's model */
        if (!svi_checked_file_looks(bytes->data, bytes->size))
            *err = why;
        return NULL;
    }
    bytes->size = 0;
    if (machine.kernel)
        svi_fail(err, SVS_UNAVAILABLE,
                 "%.150s is a kernel model, which has no weights to show: `svmstream predict` uses it", path);
    else if (svi_model_encode(machine.linear, NULL, 0, bytes) != SVS_OK)
        svi_fail_memory(err, "the model");
    else
        return machine.linear;
    svi_machine_clear(&machine);
    return NULL;
}

svs_code svi_model_any_read(const char *path, struct svi_bytes *bytes, svs_model **model, svs_error *err) {
    SVI_TRY(model_any_bytes(path, bytes, err));
    *model = svs_model_decode(bytes->data, bytes->size, err);
    if (!*model && strcmp(path, "-") != 0)
        *model = model_any_trained(path, bytes, err);
    return *model ? SVS_OK : err->code;
}
