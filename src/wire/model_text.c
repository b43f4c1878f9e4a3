#include <jansson.h>
#include <limits.h>
#include <locale.h>
#include <stdbool.h>

#include "base/fail.h"
#include "svmstream/model.h"

/* NULL only when memory is short: what JSON cannot hold (a number that is not finite) becomes null. */
static json_t *real(double r) {
    json_t *j = json_real(r);
    return j ? j : json_null();
}

static json_t *value(svs_value v) {
    char text[4 * SVS_NAME_MAX + 4];
    if (v.kind == SVS_INT)
        return json_integer(v.as.i);
    if (v.kind == SVS_REAL)
        return real(v.as.r);
    if (v.kind != SVS_STR)
        return json_null();
    json_t *j = json_stringn(v.as.s, v.length);
    return j ? j : json_string(svs_value_text(v, text, sizeof text));
}

static json_t *reals(const double *v, int count) {
    json_t *array = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(array, real(v[i]));
    return array;
}

static json_t *weights(const svs_model *m) {
    json_t *array = json_array();
    for (int k = 0; k < m->rows; k++)
        json_array_append_new(array, reals(m->W + (size_t)k * (size_t)m->d, m->d));
    return array;
}

static json_t *classes(const svs_model *m) {
    json_t *array = json_array();
    for (int k = 0; k < m->class_count; k++)
        json_array_append_new(array, value(m->classes[k]));
    return array;
}

static json_t *names(const svs_model *m) {
    if (!m->features)
        return json_null();
    json_t *array = json_array();
    for (int j = 0; j < m->d; j++)
        json_array_append_new(array, value(svs_str(m->features[j])));
    return array;
}

/* jansson's setters fail on NULL, be it the object or the value: a failure anywhere leaves `failed` set. */
static void set(json_t *object, const char *key, json_t *j, bool *failed) {
    *failed |= json_object_set_new(object, key, j) != 0;
}

static json_t *object_of(const svs_model *m, bool *failed) {
    json_t *o = json_object();
    set(o, "version", json_integer((json_int_t)m->version), failed);
    set(o, "method", value(svs_str(m->method)), failed);
    set(o, "task", json_string(m->task == SVS_REGRESS ? "regress" : "classify"), failed);
    set(o, "d", json_integer(m->d), failed);
    set(o, "features", names(m), failed);
    set(o, "classes", classes(m), failed);
    set(o, "W", weights(m), failed);
    set(o, "b", m->rows == 1 ? real(m->b[0]) : reals(m->b, m->rows), failed);
    set(o, "C", real(m->C), failed);
    set(o, "window", json_integer(m->window), failed);
    set(o, "seen", json_integer(m->seen), failed);
    set(o, "learned", json_integer(m->learned), failed);
    return o;
}

svs_code svs_model_write_json(const svs_model *m, FILE *to, svs_error *err) {
    bool failed = false;
    json_t *o = object_of(m, &failed);
    svs_code code = SVS_OK;
    if (failed)
        code = svi_fail_memory(err, "a model as JSON");
    else if (json_dumpf(o, to, JSON_COMPACT | JSON_REAL_PRECISION(17)) != 0 || fputc('\n', to) == EOF ||
             fflush(to) != 0)
        code = svi_fail(err, SVS_IO, "the model could not be written as JSON: is the disk full?");
    json_decref(o);
    return code;
}

static svs_code holds(const svs_model *m, svs_error *err) {
    char text[4 * SVS_NAME_MAX + 4];
    if (m->task == SVS_CLASSIFY && m->class_count == 0)
        return svi_fail(err, SVS_UNAVAILABLE, "no class is known yet: there is no model to write");
    for (int k = 0; k < m->class_count; k++) {
        svs_value c = m->classes[k];
        if (c.kind == SVS_INT && c.as.i >= INT_MIN && c.as.i <= INT_MAX)
            continue;
        return svi_fail(err, SVS_UNAVAILABLE,
                        "a LIBLINEAR file holds 32-bit integers as labels only, not %.100s: use JSON",
                        svs_value_text(c, text, sizeof text));
    }
    return SVS_OK;
}

/* LIBLINEAR takes a positive decision for the first label, we for classes[1]. */
static void write_labels(const svs_model *m, FILE *to) {
    fputs("label", to);
    for (int k = 0; k < m->class_count; k++) {
        int i = m->class_count == 2 ? 1 - k : k;
        fprintf(to, " %d", (int)m->classes[i].as.i);
    }
    fputc('\n', to);
}

static void write_weights(const svs_model *m, FILE *to) {
    for (int j = 0; j <= m->d; j++) {
        for (int k = 0; k < m->rows; k++)
            fprintf(to, "%.17g ", j < m->d ? m->W[(size_t)k * (size_t)m->d + (size_t)j] : m->b[k]);
        fputc('\n', to);
    }
}

static void write_all(const svs_model *m, FILE *to) {
    bool regress = m->task == SVS_REGRESS;
    fprintf(to, "solver_type %s\n", regress ? "L2R_L2LOSS_SVR" : "L2R_L2LOSS_SVC");
    fprintf(to, "nr_class %d\n", regress ? 2 : m->class_count); /* LIBLINEAR writes 2 for regression too */
    if (!regress)
        write_labels(m, to);
    fprintf(to, "nr_feature %d\nbias 1\nw\n", m->d);
    write_weights(m, to);
}

svs_code svs_model_write_liblinear(const svs_model *m, FILE *to, svs_error *err) {
    svs_code code = holds(m, err);
    if (code != SVS_OK)
        return code;
    locale_t plain =
        newlocale(LC_ALL_MASK, "C", (locale_t)0); /* a program may have set one with a decimal comma */
    if (plain == (locale_t)0)
        return svi_fail_memory(err, "a model as text");
    locale_t before = uselocale(plain);
    write_all(m, to);
    uselocale(before);
    freelocale(plain);
    if (ferror(to) || fflush(to) != 0)
        return svi_fail(err, SVS_IO, "the model could not be written: is the disk full?");
    return SVS_OK;
}
