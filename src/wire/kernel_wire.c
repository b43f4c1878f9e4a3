#include "wire/kernel_wire.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "solver/kernel_model.h"
#include "svmstream/solver.h"
#include "wire/fields.h"
#include "wire/pack.h"

#define CLASSES_MAX 100000
#define COLUMNS_MAX 100000000

static const char *const kernels[] = {
    [SVS_LINEAR] = "linear", [SVS_POLYNOMIAL] = "polynomial", [SVS_RBF] = "rbf"};
static const char *const decisions[] = {[SVS_ONE_VS_REST] = "rest", [SVS_ONE_VS_ONE] = "pairs"};

/* Integers as packed doubles: exact up to 2^53. */
static svs_code pack_integers(struct svi_pack *p, const int64_t *wide, const int32_t *narrow, int64_t count) {
    double *copy = svi_alloc_array((size_t)count + 1, sizeof *copy);
    if (!copy)
        return SVS_NO_MEMORY;
    for (int64_t i = 0; i < count; i++)
        copy[i] = wide ? (double)wide[i] : narrow[i];
    svi_pack_doubles(p, copy, (size_t)count);
    svi_free(copy);
    return SVS_OK;
}

static void put_scalars(struct svi_pack *p, const svs_kernel_model *m) {
    svi_pack_key(p, "method");
    svi_pack_text(p, m->method);
    svi_pack_key(p, "kernel");
    svi_pack_text(p, kernels[m->kernel.kind]);
    svi_pack_key(p, "gamma");
    svi_pack_real(p, m->kernel.gamma);
    svi_pack_key(p, "coef0");
    svi_pack_real(p, m->kernel.coef0);
    svi_pack_key(p, "degree");
    svi_pack_int(p, m->kernel.degree);
    svi_pack_key(p, "decision");
    svi_pack_text(p, decisions[m->decision]);
    svi_pack_key(p, "d");
    svi_pack_int(p, m->support.d);
    svi_pack_key(p, "C");
    svi_pack_real(p, m->C);
    svi_pack_key(p, "classes");
    svi_pack_array(p, (size_t)m->class_count);
    for (int k = 0; k < m->class_count; k++)
        svi_pack_value(p, m->classes[k]);
}

svs_code svi_kernel_encode(const svs_kernel_model *m, struct svi_bytes *out) {
    struct svi_pack p;
    const int64_t n = m->support.n, stored = m->support.start[n];
    svi_pack_begin(&p, out);
    svi_pack_map(&p, 14);
    put_scalars(&p, m);
    svi_pack_key(&p, "b");
    svi_pack_doubles(&p, m->b, (size_t)m->rows);
    svi_pack_key(&p, "coef");
    svi_pack_doubles(&p, m->coef, (size_t)m->rows * (size_t)n);
    svi_pack_key(&p, "start");
    svs_code code = pack_integers(&p, m->support.start, NULL, n + 1);
    svi_pack_key(&p, "column");
    if (code == SVS_OK)
        code = pack_integers(&p, NULL, m->support.column, stored);
    svi_pack_key(&p, "value");
    svi_pack_doubles(&p, m->support.value, (size_t)stored);
    svs_code end = svi_pack_end(&p);
    return code == SVS_OK ? end : code;
}

enum key {
    METHOD,
    KERNEL,
    GAMMA,
    COEF0,
    DEGREE,
    DECISION,
    D,
    C,
    CLASSES,
    B,
    COEF,
    START,
    COLUMN,
    VALUE,
    KEYS
};

static const char *const key_names[KEYS] = {"method",   "kernel", "gamma",  "coef0",   "degree",
                                            "decision", "d",      "C",      "classes", "b",
                                            "coef",     "start",  "column", "value"};

struct parts {
    const uint8_t *b, *coef, *start, *column, *value;
    int64_t rows, n, stored;
    svs_value *classes;
    int class_count;
    int kernel, decision;
    double gamma, coef0, degree, d, C;
};

static svs_code take_classes(struct svi_fields *f, struct parts *p) {
    struct svi_item array, item;
    const uint8_t *at = svi_item_read(f->at[CLASSES], &array);
    if (array.type != SVI_ARRAY || array.length < 2 || array.length > CLASSES_MAX)
        return svi_fail(f->err, SVS_WRONG_TYPE,
                        "the kernel model's classes must be an array of two labels or more");
    p->class_count = (int)array.length;
    p->classes = svi_alloc_array(array.length, sizeof *p->classes);
    if (!p->classes)
        return svi_fail_memory(f->err, "the classes of a model");
    for (int k = 0; k < p->class_count; k++) {
        at = svi_item_read(at, &item);
        if (item.type == SVI_INT)
            p->classes[k] = svs_int(item.i);
        else if (item.type == SVI_STRING && item.length <= SVS_NAME_MAX &&
                 svi_utf8_valid((const char *)item.body, item.length))
            p->classes[k] =
                (svs_value){.kind = SVS_STR, .length = item.length, .as.s = (const char *)item.body};
        else
            return svi_fail(f->err, SVS_WRONG_TYPE,
                            "classes[%d] of the kernel model is neither an integer nor a short string", k);
    }
    return SVS_OK;
}

static svs_code take_scalars(struct svi_fields *f, struct parts *p) {
    svs_code code = svi_field_word(f, KERNEL, kernels, 3, &p->kernel);
    if (code == SVS_OK)
        code = svi_field_word(f, DECISION, decisions, 2, &p->decision);
    if (code == SVS_OK)
        code = svi_field_number(f, GAMMA, 0, 1e300, &p->gamma);
    if (code == SVS_OK)
        code = svi_field_number(f, COEF0, -1e300, 1e300, &p->coef0);
    if (code == SVS_OK)
        code = svi_field_number(f, DEGREE, 0, 20, &p->degree);
    if (code == SVS_OK)
        code = svi_field_number(f, D, 1, COLUMNS_MAX, &p->d);
    if (code == SVS_OK)
        code = svi_field_number(f, C, 0, 1e300, &p->C);
    return code == SVS_OK ? take_classes(f, p) : code;
}

/* Do the lengths belong together? */
static svs_code take_lengths(struct svi_fields *f, struct parts *p) {
    int64_t coef, column, start;
    p->rows = svi_field_packed(f, B, &p->b);
    coef = svi_field_packed(f, COEF, &p->coef);
    start = svi_field_packed(f, START, &p->start);
    column = svi_field_packed(f, COLUMN, &p->column);
    p->stored = svi_field_packed(f, VALUE, &p->value);
    if (p->rows < 0 || coef < 0 || start < 0 || column < 0 || p->stored < 0)
        return SVS_WRONG_TYPE;
    int64_t k = p->class_count, wanted = p->decision == SVS_ONE_VS_ONE ? k * (k - 1) / 2 : k == 2 ? 1 : k;
    p->n = start - 1;
    if (p->rows != wanted || start < 1 || coef != p->rows * p->n || column != p->stored)
        return svi_fail(f->err, SVS_WRONG_TYPE,
                        "the lengths of the kernel model's arrays contradict each other");
    return SVS_OK;
}

static svs_code take_rows(struct svi_fields *f, const struct parts *p, struct svi_owned_kernel *o) {
    for (int64_t i = 0; i <= p->n; i++) {
        double at = svi_packed_double(p->start, i), least = i > 0 ? (double)o->start[i - 1] : 0;
        if (!(at >= least && at <= (double)p->stored) || (i == 0 && at != 0) ||
            (i == p->n && at != (double)p->stored))
            return svi_fail(f->err, SVS_WRONG_TYPE,
                            "the offsets of the kernel model's rows are not ascending");
        o->start[i] = (int64_t)at;
    }
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t k = o->start[i]; k < o->start[i + 1]; k++) {
            double column = svi_packed_double(p->column, k),
                   least = k > o->start[i] ? o->column[k - 1] + 1.0 : 0;
            if (!(column >= least && column < p->d))
                return svi_fail(f->err, SVS_WRONG_TYPE,
                                "the columns of the kernel model's rows are not ascending below d");
            o->column[k] = (int32_t)column;
        }
    return SVS_OK;
}

static svs_code fill(struct svi_fields *f, const struct parts *p, struct svi_owned_kernel *o) {
    svs_code code = take_rows(f, p, o);
    if (code == SVS_OK)
        code = svi_field_doubles(f, B, p->b, p->rows, o->b);
    if (code == SVS_OK)
        code = svi_field_doubles(f, COEF, p->coef, p->rows * p->n, o->coef);
    if (code == SVS_OK)
        code = svi_field_doubles(f, VALUE, p->value, p->stored, o->value);
    svi_kernel_model_norms(o);
    o->model.kernel = (svs_kernel){(svs_kernel_kind)p->kernel, p->gamma, p->coef0, (int)p->degree};
    o->model.decision = (svs_decision)p->decision;
    o->model.C = p->C;
    o->model.method = "kernel";
    return code;
}

svs_kernel_model *svi_kernel_decode(const void *bytes, size_t length, svs_error *err) {
    struct svi_fields f = {.what = "kernel model", .names = key_names, .count = KEYS, .err = err};
    struct parts p = {0};
    svs_kernel_model *m = NULL;
    svs_code code = svi_fields_find(&f, bytes, (const uint8_t *)bytes + length);
    if (code == SVS_OK)
        code = take_scalars(&f, &p);
    if (code == SVS_OK)
        code = take_lengths(&f, &p);
    struct svi_owned_kernel *o = code == SVS_OK ? svi_kernel_model_new((int)p.rows, p.n, (int)p.d, p.stored,
                                                                       p.classes, p.class_count, err)
                                                : NULL;
    if (o) {
        m = &o->model;
        struct svi_item method;
        svi_item_read(f.at[METHOD], &method);
        if (fill(&f, &p, o) != SVS_OK)
            svs_kernel_model_free(&m);
        else
            for (int s = 0; s < SVS_SOLVER_COUNT; s++)
                if (svi_item_is(&method, svs_solver_name((svs_solver)s)))
                    o->model.method = svs_solver_name((svs_solver)s);
    }
    svi_free(p.classes);
    return m;
}
