/* Kernel models as msgpack. Support vectors are written as CSR, integers as packed doubles.
 *
 * Nothing is trusted when reading. A table of fields is read first into a struct kernel_parts that
 * points into the bytes. Lengths are compared with each other before any memory is allocated.
 * Offsets and columns must ascend, so that no later loop leaves its array. Names of features and
 * the schema of raw rows exist only if the model was trained on more than numbers. They are copied
 * last. Read svi_kernel_decode first. */
#include "formats/kernel_model_file.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "formats/schema_text.h"
#include "solver/kernel_model.h"
#include "svmstream/solver.h"
#include "wire/fields.h"
#include "wire/pack.h"

#define WHAT        "kernel model"
#define CLASSES_MAX 100000
#define COLUMNS_MAX 100000000

const char *const svi_kernel_names[] = {
    [SVS_LINEAR] = "linear", [SVS_POLYNOMIAL] = "polynomial", [SVS_RBF] = "rbf", NULL};
static const char *const decisions[] = {[SVS_ONE_VS_REST] = "rest", [SVS_ONE_VS_ONE] = "pairs", NULL};

/* ---- writing */

/* Writes integers, `wide` or else `narrow`, as packed doubles: exact up to 2^53. */
static svs_code put_integers(struct svi_pack *p, const char *key, const int64_t *wide, const int32_t *narrow,
                             int64_t count) {
    double *copy = svi_alloc_array((size_t)count + 1, sizeof *copy);
    if (!copy)
        return SVS_NO_MEMORY;
    for (int64_t i = 0; i < count; i++)
        copy[i] = wide ? (double)wide[i] : narrow[i];
    svi_put_doubles(p, key, copy, (size_t)count);
    svi_free(copy);
    return SVS_OK;
}

svs_code svi_kernel_encode(const svs_kernel_model *m, struct svi_bytes *out) {
    struct svi_pack p;
    const int64_t n = m->support.n, stored = m->support.start[n];
    svi_pack_begin(&p, out);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_text(&p, "method", m->method);
    svi_put_text(&p, "kernel", svi_kernel_names[m->kernel.kind]);
    svi_put_real(&p, "gamma", m->kernel.gamma);
    svi_put_real(&p, "coef0", m->kernel.coef0);
    svi_put_int(&p, "degree", m->kernel.degree);
    svi_put_text(&p, "decision", decisions[m->decision]);
    svi_put_int(&p, "d", m->support.d);
    svi_put_real(&p, "C", m->C);
    svi_pack_key(&p, "classes");
    svi_pack_values(&p, m->classes, m->class_count);
    svi_put_doubles(&p, "b", m->b, (size_t)m->rows);
    svi_put_doubles(&p, "coef", m->coef, (size_t)m->rows * (size_t)n);
    /* A failure here leaves the map short of keys: the code below reports it, whatever svi_pack_end
     * returns. */
    svs_code code = put_integers(&p, "start", m->support.start, NULL, n + 1);
    if (code == SVS_OK)
        code = put_integers(&p, "column", NULL, m->support.column, stored);
    svi_put_doubles(&p, "value", m->support.value, (size_t)stored);
    if (m->schema) {
        svi_pack_key(&p, "features");
        svi_pack_names(&p, m->features, m->support.d);
        svi_pack_key(&p, "schema");
        svi_pack_raw(&p, m->schema, m->schema_size);
    }
    svi_pack_close(&p, map);
    svs_code end = svi_pack_end(&p);
    return code == SVS_OK ? end : code;
}

/* ---- reading */

struct kernel_parts {
    const uint8_t *method, *classes, *features, *schema; /* features, schema: NULL = absent */
    int kernel, decision;
    double gamma, coef0, degree, d, C;
    struct svi_doubles b, coef, start, column, value;
    int64_t n;         /* number of support vectors */
    svs_value *labels; /* of the classes, owned; their text points into the bytes */
    int class_count;
};

#define OWNER struct kernel_parts

static const struct svi_field kernel_fields[] = {
    SVI_FIELD(OWNER, method, ANY, 0, 0),
    SVI_FIELD(OWNER, classes, ANY, 0, 0),
    SVI_FIELD_WORDS(OWNER, kernel, svi_kernel_names),
    SVI_FIELD_WORDS(OWNER, decision, decisions),
    SVI_FIELD(OWNER, gamma, REAL, 0, 1e300),
    SVI_FIELD(OWNER, coef0, REAL, -1e300, 1e300),
    SVI_FIELD(OWNER, degree, REAL, 0, 20),
    SVI_FIELD(OWNER, d, REAL, 1, COLUMNS_MAX),
    SVI_FIELD(OWNER, C, REAL, 0, 1e300),
    SVI_FIELD(OWNER, b, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, coef, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, start, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, column, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, value, DOUBLES, 0, 0),
    SVI_FIELD_OPTIONAL(OWNER, features, ANY, 0, 0),
    SVI_FIELD_OPTIONAL(OWNER, schema, ANY, 0, 0),
};

static svs_code kernel_classes(struct kernel_parts *p, svs_error *err) {
    struct svi_item array, item;
    const uint8_t *at = svi_item_read(p->classes, &array);
    if (array.type != SVI_ARRAY || array.length < 2 || array.length > CLASSES_MAX)
        return svi_fail(err, SVS_WRONG_TYPE,
                        "the kernel model's classes must be an array of two labels or more");
    p->class_count = (int)array.length;
    /* An array's length was checked against the bytes (svi_msgpack_check), so memory is in proportion to
     * the file. */
    p->labels = svi_alloc_array(array.length, sizeof *p->labels);
    if (!p->labels)
        return svi_fail_memory(err, "the classes of a model");
    for (int k = 0; k < p->class_count; k++) {
        at = svi_item_read(at, &item);
        if (!svi_item_label(&item, &p->labels[k]) || (item.type == SVI_STRING && item.length > SVS_NAME_MAX))
            return svi_fail(err, SVS_WRONG_TYPE,
                            "classes[%d] of the kernel model is neither an integer nor a short string", k);
    }
    return SVS_OK;
}

/* Compares the lengths: k (k - 1) / 2 decisions for pairs, one for two classes, else k; a coefficient for
 * each decision and vector. */
static svs_code kernel_lengths(struct kernel_parts *p, svs_error *err) {
    int64_t k = p->class_count, rows = p->decision == SVS_ONE_VS_ONE ? k * (k - 1) / 2 : k == 2 ? 1 : k;
    p->n = p->start.count - 1;
    if (p->b.count != rows || p->n < 0 || p->coef.count != rows * p->n || p->column.count != p->value.count)
        return svi_fail(err, SVS_WRONG_TYPE,
                        "the lengths of the kernel model's arrays contradict each other");
    return SVS_OK;
}

/* Offsets and columns of the CSR rows, which are doubles in the file: range and order are checked before
 * each conversion. */
static svs_code kernel_rows(const struct kernel_parts *p, struct svi_owned_kernel *o, svs_error *err) {
    const double stored = (double)p->value.count;
    for (int64_t i = 0; i <= p->n; i++) {
        double at = svi_doubles_get(&p->start, i), low = i > 0 ? (double)o->start[i - 1] : 0;
        if (!(at >= low && at <= stored) || (i == 0 && at != 0) || (i == p->n && at != stored))
            return svi_fail(err, SVS_WRONG_TYPE, "the offsets of the kernel model's rows are not ascending");
        o->start[i] = (int64_t)at;
    }
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t k = o->start[i]; k < o->start[i + 1]; k++) {
            double column = svi_doubles_get(&p->column, k),
                   low = k > o->start[i] ? o->column[k - 1] + 1.0 : 0;
            if (!(column >= low && column < p->d))
                return svi_fail(err, SVS_WRONG_TYPE,
                                "the columns of the kernel model's rows are not ascending below d");
            o->column[k] = (int32_t)column;
        }
    return SVS_OK;
}

/* Copies the names into the model's pool. */
static svs_code kernel_names(const struct kernel_parts *p, struct svi_owned_kernel *o, svs_error *err) {
    struct svi_item array, name;
    const uint8_t *at = svi_item_read(p->features, &array);
    if (array.type != SVI_ARRAY || array.length != (uint32_t)o->model.support.d)
        return svi_fail(err, SVS_WRONG_TYPE, "the kernel model's features must be an array of %d names",
                        o->model.support.d);
    /* The pool remembers a failed allocation: one check at the end. */
    const char **names = svi_pool_take(&o->pool, array.length, sizeof *names);
    for (uint32_t j = 0; names && j < array.length; j++) {
        at = svi_item_read(at, &name);
        if (name.type != SVI_STRING || memchr(name.body, 0, name.length))
            return svi_fail(err, SVS_WRONG_TYPE, "features[%u] of the kernel model is no name", j);
        char *copy = svi_pool_take(&o->pool, (size_t)name.length + 1, 1);
        names[j] = copy;
        if (copy)
            memcpy(copy, name.body, name.length);
    }
    o->model.features = names;
    return svi_pool_code(&o->pool, "the names of a model", err);
}

static svs_code kernel_schema(const struct kernel_parts *p, const uint8_t *end, struct svi_owned_kernel *o,
                              svs_error *err) {
    svs_kernel_model *m = &o->model;
    svs_code code = p->features ? kernel_names(p, o, err) : SVS_OK;
    if (code == SVS_OK && p->schema)
        code = svi_schema_measure(m->features, m->support.d, p->schema, end, &m->schema_size, err);
    if (code != SVS_OK || !p->schema)
        return code;
    void *copy = svi_pool_take(&o->pool, m->schema_size, 1);
    m->schema = copy;
    if (copy)
        memcpy(copy, p->schema, m->schema_size);
    return svi_pool_code(&o->pool, "the schema of a model", err);
}

static svs_code kernel_fill(const struct kernel_parts *p, struct svi_owned_kernel *o, svs_error *err) {
    struct svi_item method;
    svs_code code;
    /* CSR first: norms run over start, column and value. */
    if ((code = kernel_rows(p, o, err)) != SVS_OK ||
        (code = svi_doubles_copy(&p->b, 0, p->b.count, o->b, WHAT, "b", err)) != SVS_OK ||
        (code = svi_doubles_copy(&p->coef, 0, p->coef.count, o->coef, WHAT, "coef", err)) != SVS_OK ||
        (code = svi_doubles_copy(&p->value, 0, p->value.count, o->value, WHAT, "value", err)) != SVS_OK)
        return code;
    svi_kernel_model_norms(o);
    o->model.kernel = (svs_kernel){(svs_kernel_kind)p->kernel, p->gamma, p->coef0, (int)p->degree};
    o->model.decision = (svs_decision)p->decision;
    o->model.C = p->C;
    o->model.method = "kernel";
    /* The method must be a static string: a known solver's name, else "kernel". */
    svi_item_read(p->method, &method);
    for (int s = 0; s < SVS_SOLVER_COUNT; s++)
        if (svi_item_is(&method, svs_solver_name((svs_solver)s)))
            o->model.method = svs_solver_name((svs_solver)s);
    return SVS_OK;
}

svs_kernel_model *svi_kernel_decode(const void *bytes, size_t length, svs_error *err) {
    struct kernel_parts p = {0};
    struct svi_owned_kernel *o = NULL;
    svs_code code =
        svi_fields_read(WHAT, SVI_FIELDS(kernel_fields), bytes, (const uint8_t *)bytes + length, &p, err);
    /* Each check uses what the one before has read: fields, number of classes, lengths; the model is
     * allocated only then. */
    if (code == SVS_OK)
        code = kernel_classes(&p, err);
    if (code == SVS_OK)
        code = kernel_lengths(&p, err);
    if (code == SVS_OK)
        o = svi_kernel_model_new((int)p.b.count, p.n, (int)p.d, p.value.count, p.labels, p.class_count, err);
    /* Copied into the model by svi_kernel_model_new. */
    svi_free(p.labels);
    svs_kernel_model *m = o ? &o->model : NULL;
    const uint8_t *end = (const uint8_t *)bytes + length;
    if (o && (kernel_fill(&p, o, err) != SVS_OK || kernel_schema(&p, end, o, err) != SVS_OK))
        svs_kernel_model_free(&m);
    return m;
}
