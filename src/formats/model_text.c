/* Models in the text formats of others: JSON, LIBLINEAR, LIBSVM.
 *
 * LIBLINEAR's and LIBSVM's files are lines of a word and its values up to "w" or "SV", then one line a
 * feature or a support vector. They are read with one cursor that knows its line, for error texts. Nothing
 * is trusted: what a header announces is compared with the bytes that follow before memory is allocated
 * for it, so support vectors are read twice, first to measure. Both formats mean the first label by a
 * positive decision, ours means classes[1]: two classes swap places when reading and writing; LIBSVM's
 * pairs keep their order. Numbers are written in the C locale, whatever the program has set.
 *
 * Read in order: JSON, the cursor, LIBLINEAR, LIBSVM, writing. */
#include "formats/model_file_internal.h"

#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/number.h"
#include "formats/kernel_model_file.h"
#include "learner/owned_model.h"
#include "solver/kernel_model.h"
#include "svmstream/model.h"
#include "wire/json.h"

#define CLASSES_MAX  10000
#define FEATURES_MAX 100000000

/* ---- JSON */

/* Calls `write` with numbers as in the C locale, also in a program that has set one with a decimal comma.
 * The locale is the thread's, so other threads are not affected. */
static svs_code write_plain(svs_code (*write)(const struct svi_machine *m, FILE *to),
                            const struct svi_machine *m, FILE *to, svs_error *err) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    svs_code code = SVS_NO_MEMORY;
    if (plain != (locale_t)0) {
        const locale_t before = uselocale(plain);
        code = write(m, to);
        freelocale(uselocale(before));
    }
    if (code != SVS_OK)
        return svi_fail_memory(err, "a model as text");
    if (ferror(to) || fflush(to) != 0)
        return svi_fail(err, SVS_IO, "the model could not be written: is the disk full?");
    return SVS_OK;
}

/* A model as one line of JSON. Text goes to `to` directly; strings are built in `scratch`. `code` keeps
 * the first failure. */
struct model_json {
    FILE *to;
    struct svi_bytes scratch;
    svs_code code;
};

/* 17 digits, which reproduce the double, and always a mark that it is not an integer: "1.0", "1e20". What
 * JSON cannot hold becomes null. */
static void model_json_real(struct model_json *j, double r) {
    char text[40];
    snprintf(text, sizeof text, "%.17g", r);
    /* printf writes e+20 or e-05: the exponent is printed again, short. */
    const size_t digits = strcspn(text, "e");
    const int exponent = text[digits] ? atoi(text + digits + 1) : 0;
    if (!isfinite(r))
        fputs("null", j->to);
    else if (text[digits])
        fprintf(j->to, "%.*se%d", (int)digits, text, exponent);
    else
        fprintf(j->to, "%s%s", text, strchr(text, '.') ? "" : ".0");
}

/* Bytes that are not UTF-8 are written as \xHH. */
static void model_json_value(struct model_json *j, svs_value v) {
    char text[4 * SVS_NAME_MAX + 4];
    if (v.kind == SVS_REAL) {
        model_json_real(j, v.as.r);
        return;
    }
    if (v.kind == SVS_STR && !svi_utf8_valid(v.as.s, v.length))
        v = svs_str(svs_value_text(v, text, sizeof text));
    j->scratch.size = 0;
    if (j->code == SVS_OK)
        j->code = svi_json_value(&j->scratch, v);
    if (j->code == SVS_OK)
        fwrite(j->scratch.data, 1, j->scratch.size, j->to);
}

static void model_json_reals(struct model_json *j, const double *v, int count) {
    for (int i = 0; i < count; i++) {
        fputs(i > 0 ? "," : "[", j->to);
        model_json_real(j, v[i]);
    }
    fputs(count > 0 ? "]" : "[]", j->to);
}

/* A number for one row, else a list: as in a `model.` event. */
static void model_json_rows(struct model_json *j, const double *v, int rows) {
    if (rows == 1)
        model_json_real(j, v[0]);
    else
        model_json_reals(j, v, rows);
}

static void model_json_names(struct model_json *j, const svs_model *m) {
    for (int k = 0; k < m->d && m->features; k++) {
        fputs(k > 0 ? "," : "[", j->to);
        model_json_value(j, svs_str(m->features[k]));
    }
    fputs(!m->features ? "null" : m->d > 0 ? "]" : "[]", j->to);
}

static void model_json_schema(struct model_json *j, const svs_model *m) {
    if (!m->schema)
        return;
    fputs(",\"schema\":", j->to);
    j->scratch.size = 0;
    if (j->code == SVS_OK)
        j->code = svi_json_msgpack(&j->scratch, m->schema, m->schema_size, NULL);
    if (j->code == SVS_OK)
        fwrite(j->scratch.data, 1, j->scratch.size, j->to);
}

static void model_json_calibration(struct model_json *j, const svs_model *m) {
    const svs_calibration *c = &m->calibration;
    if (!(c->a > 0))
        return;
    fputs(",\"calibration\":{\"a\":", j->to);
    model_json_real(j, c->a);
    fputs(",\"b\":", j->to);
    model_json_rows(j, c->b, m->rows);
    if (c->curve) {
        fputs(",\"curve\":", j->to);
        model_json_reals(j, c->curve, SVS_CURVE);
    }
    fputs("}", j->to);
}

static svs_code write_json(const struct svi_machine *machine, FILE *to) {
    const svs_model *m = machine->linear;
    struct model_json json = {.to = to}, *j = &json;
    /* Keys and order of a `model.` event. Failures of `to` are found at the end by ferror. */
    fprintf(j->to, "{\"version\":%" PRId64 ",\"method\":", (int64_t)m->version);
    model_json_value(j, svs_str(m->method));
    fprintf(j->to, ",\"task\":\"%s\",\"d\":%d,\"features\":", m->task == SVS_REGRESS ? "regress" : "classify",
            m->d);
    model_json_names(j, m);
    fputs(",\"classes\":[", j->to);
    for (int k = 0; k < m->class_count; k++) {
        fputs(k > 0 ? "," : "", j->to);
        model_json_value(j, m->classes[k]);
    }
    fputs("],\"W\":[", j->to);
    for (int k = 0; k < m->rows; k++) {
        fputs(k > 0 ? "," : "", j->to);
        model_json_reals(j, m->W + (size_t)k * (size_t)m->d, m->d);
    }
    fputs("],\"b\":", j->to);
    model_json_rows(j, m->b, m->rows);
    fputs(",\"C\":", j->to);
    model_json_real(j, m->C);
    fprintf(j->to, ",\"window\":%" PRId64 ",\"seen\":%" PRId64 ",\"learned\":%" PRId64, m->window, m->seen,
            m->learned);
    model_json_calibration(j, m);
    model_json_schema(j, m);
    fputs("}\n", j->to);
    svi_bytes_clear(&j->scratch);
    return j->code;
}

svs_code svs_model_write_json(const svs_model *m, FILE *to, svs_error *err) {
    const struct svi_machine machine = {.linear = (svs_model *)m};
    return write_plain(write_json, &machine, to, err);
}

/* ---- a cursor over the text, which ends in a NUL */

struct text {
    const char *at, *end;
    int line;
    svs_error *err;
};

static svs_code text_bad(const struct text *t, const char *what) {
    return svi_fail(t->err, SVS_INVALID, "line %d: %s", t->line, what);
}

static void text_skip_blanks(struct text *t) {
    /* A carriage return counts as a blank: files with CRLF are read too. */
    while (*t->at == ' ' || *t->at == '\t' || *t->at == '\r')
        t->at++;
}

static bool at_line_end(struct text *t) {
    text_skip_blanks(t);
    return *t->at == '\n' || *t->at == '\0';
}

static void text_next_line(struct text *t) {
    t->at += strcspn(t->at, "\n");
    if (*t->at == '\n') {
        t->at++;
        t->line++;
    }
}

/* Reads the next word of the line and keeps at most size - 1 bytes of it. */
static void text_word(struct text *t, char *out, size_t size) {
    text_skip_blanks(t);
    size_t length = strcspn(t->at, " \t\r\n"), kept = length < size - 1 ? length : size - 1;
    memcpy(out, t->at, kept);
    out[kept] = 0;
    t->at += length;
}

static bool text_real(struct text *t, double *out) {
    text_skip_blanks(t);
    const char *next = svi_number(t->at, out);
    /* The number must end where a number of these formats can: 1.5x is an error, 3:1.5 is an index and a
     * value. */
    if (next == t->at || !isfinite(*out) || !strchr(" \t\r\n:", *next))
        return false;
    t->at = next;
    return true;
}

static bool text_integer(struct text *t, int64_t low, int64_t high, int64_t *out) {
    double value;
    if (!text_real(t, &value) || value != floor(value) || value < (double)low || value > (double)high)
        return false;
    *out = (int64_t)value;
    return true;
}

static bool text_reals(struct text *t, double *out, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!text_real(t, &out[i]))
            return false;
    return true;
}

static bool text_labels(struct text *t, svs_value *labels, int64_t count) {
    int64_t value;
    for (int64_t k = 0; k < count; k++) {
        if (!text_integer(t, INT_MIN, INT_MAX, &value))
            return false;
        labels[k] = svs_int(value);
    }
    return true;
}

/* Reads header lines of a word and its values, up to the line of the word `last`. `line` reads the values
 * of one line, or returns why it cannot. */
static svs_code text_header(struct text *t, const char *last,
                            svs_code (*line)(struct text *t, const char *key, void *header), void *header) {
    char key[32];
    for (;; text_next_line(t)) {
        if (*t->at == '\0')
            return text_bad(t, "the file ends before its model");
        text_word(t, key, sizeof key);
        if (strcmp(key, last) == 0)
            break;
        svs_code code = line(t, key, header);
        if (code != SVS_OK)
            return code;
    }
    text_next_line(t);
    return SVS_OK;
}

/* ---- LIBLINEAR */

struct liblinear {
    char solver[32];
    int64_t classes, features;
    double bias;
    svs_value *labels; /* owned; NULL = not read yet */
};

static svs_code liblinear_line(struct text *t, const char *key, void *header) {
    struct liblinear *h = header;
    bool good = true;
    /* Labels are allocated by nr_class, so nr_class must come first and may not change afterwards. */
    if (strcmp(key, "solver_type") == 0)
        text_word(t, h->solver, sizeof h->solver);
    else if (strcmp(key, "nr_class") == 0 && !h->labels) /* their number may not change under them */
        good = text_integer(t, 2, CLASSES_MAX, &h->classes);
    else if (strcmp(key, "nr_feature") == 0)
        good = text_integer(t, 1, FEATURES_MAX, &h->features);
    else if (strcmp(key, "bias") == 0)
        good = text_real(t, &h->bias);
    else if (strcmp(key, "label") == 0 && h->classes > 0 && !h->labels) {
        h->labels = svi_alloc_array((size_t)h->classes, sizeof *h->labels);
        if (!h->labels)
            return svi_fail_memory(t->err, "the labels of a model");
        good = text_labels(t, h->labels, h->classes);
    } else
        good = false;
    return good ? SVS_OK : text_bad(t, "this is not a line of a LIBLINEAR model");
}

/* Reads the weights: one line a feature, one column a class; the last line is the weight of the bias, if
 * there is one. difference: two columns are one model, their difference. */
static svs_code liblinear_weights(struct text *t, const struct liblinear *h, int columns, bool difference,
                                  struct svi_owned_model *m) {
    const int d = m->model.d;
    double line[2], *values = columns <= 2 ? line : svi_alloc_array((size_t)columns, sizeof *values);
    svs_code code = values ? SVS_OK : svi_fail_memory(t->err, "the weights of a model");
    for (int j = 0; j < d + (h->bias >= 0) && code == SVS_OK; j++, text_next_line(t)) {
        if (!text_reals(t, values, columns) || !at_line_end(t)) {
            code = text_bad(t, "a weight is missing, or is not a number");
            break;
        }
        for (int k = 0; k < m->model.rows; k++) {
            /* LIBLINEAR's bias is a feature of that value; here it is multiplied out. */
            double w = difference ? values[0] - values[1] : values[k];
            if (j < d)
                m->W[(size_t)k * (size_t)d + (size_t)j] = w;
            else
                m->b[k] = w * h->bias;
        }
    }
    if (values != line)
        svi_free(values);
    return code;
}

static svs_code liblinear_model(struct svi_machine *out, struct text *t, const struct liblinear *h) {
    /* The solver's name gives the task. */
    const bool regress = strstr(h->solver, "SVR") != NULL, pairs = h->classes == 2 && !regress;
    /* Crammer and Singer write a column a class even for two classes. */
    const bool crammer = strcmp(h->solver, "MCSVM_CS") == 0;
    if (strcmp(h->solver, "ONECLASS_SVM") == 0)
        return svi_fail(t->err, SVS_UNAVAILABLE, "one-class models of LIBLINEAR are not supported");
    if (h->features == 0 || h->classes == 0 || (!regress && !h->labels))
        return text_bad(t, "nr_class, nr_feature or label is missing before the weights");
    /* A positive decision means label[0] there and classes[1] here. */
    const svs_value two[2] = {pairs ? h->labels[1] : svs_none(), pairs ? h->labels[0] : svs_none()};
    const int rows = regress || pairs ? 1 : (int)h->classes;
    /* a weight takes at least a digit and a blank: nothing is allocated for weights that are not there */
    if (h->features * rows > (t->end - t->at + 1) / 2)
        return text_bad(t, "the file is too short for its nr_feature and nr_class");
    struct svi_owned_model *m =
        svi_model_new(regress ? SVS_REGRESS : SVS_CLASSIFY, (int)h->features, rows, pairs ? two : h->labels,
                      regress ? 0 : (int)h->classes, NULL, t->err);
    if (!m)
        return SVS_NO_MEMORY;
    m->model.method = "liblinear";
    m->model.version = 1;
    out->linear = &m->model;
    return liblinear_weights(t, h, pairs && crammer ? 2 : rows, pairs && crammer, m);
}

svs_code svi_liblinear_read(struct svi_machine *m, const char *text, svs_error *err) {
    struct text t = {text, text + strlen(text), 1, err};
    struct liblinear h = {.bias = -1};
    svs_code code = text_header(&t, "w", liblinear_line, &h);
    if (code == SVS_OK)
        code = liblinear_model(m, &t, &h);
    svi_free(h.labels);
    return code;
}

/* ---- LIBSVM */

struct libsvm {
    svs_kernel kernel;
    int64_t classes, total;
    bool has_rho, has_labels, has_counts;
    double *rho;
    svs_value *labels;
    int64_t *counts; /* number of support vectors of each class */
};

static svs_code libsvm_kernel(struct text *t, struct libsvm *h) {
    char name[32];
    text_word(t, name, sizeof name);
    for (int k = 0; svi_kernel_names[k]; k++)
        if (strcmp(name, svi_kernel_names[k]) == 0) {
            h->kernel.kind = (svs_kernel_kind)k;
            return SVS_OK;
        }
    return svi_fail(t->err, SVS_UNAVAILABLE,
                    "the kernel %s is not supported (linear, polynomial and rbf are)", name);
}

static svs_code libsvm_reserve(struct text *t, struct libsvm *h) {
    const size_t k = (size_t)h->classes;
    h->rho = svi_alloc_array(k * (k - 1) / 2, sizeof *h->rho);
    h->labels = svi_alloc_array(k, sizeof *h->labels);
    h->counts = svi_alloc_array(k, sizeof *h->counts);
    return h->rho && h->labels && h->counts ? SVS_OK : svi_fail_memory(t->err, "the head of a model");
}

/* One header line. Probability lines (probA, probB, prob_density_marks) are skipped: they are not used
 * here. */
static svs_code libsvm_line(struct text *t, const char *key, void *header) {
    struct libsvm *h = header;
    char kind[32];
    int64_t degree;
    bool good = true;
    if (strcmp(key, "svm_type") == 0) {
        text_word(t, kind, sizeof kind);
        if (strcmp(kind, "c_svc") != 0 && strcmp(kind, "nu_svc") != 0)
            return svi_fail(t->err, SVS_UNAVAILABLE,
                            "models of type %s are not supported (c_svc and nu_svc are)", kind);
    } else if (strcmp(key, "kernel_type") == 0) {
        return libsvm_kernel(t, h);
    } else if (strcmp(key, "degree") == 0) {
        good = text_integer(t, 1, 20, &degree);
        h->kernel.degree = good ? (int)degree : 0;
    } else if (strcmp(key, "gamma") == 0) {
        good = text_real(t, &h->kernel.gamma) && h->kernel.gamma >= 0;
    } else if (strcmp(key, "coef0") == 0) {
        good = text_real(t, &h->kernel.coef0);
    } else if (strcmp(key, "nr_class") == 0 && h->classes == 0) {
        good = text_integer(t, 2, 1000, &h->classes);
        return good ? libsvm_reserve(t, h) : text_bad(t, "nr_class is not a number from 2 to 1000");
    } else if (strcmp(key, "total_sv") == 0) {
        good = text_integer(t, 0, t->end - t->at, &h->total);
    } else if (strcmp(key, "rho") == 0 && h->rho) {
        good = h->has_rho = text_reals(t, h->rho, h->classes * (h->classes - 1) / 2);
    } else if (strcmp(key, "label") == 0 && h->labels) {
        good = h->has_labels = text_labels(t, h->labels, h->classes);
    } else if (strcmp(key, "nr_sv") == 0 && h->counts) {
        for (int64_t k = 0; k < h->classes && good; k++)
            good = text_integer(t, 0, INT_MAX, &h->counts[k]);
        h->has_counts = good;
    } else if (strncmp(key, "prob", 4) != 0) {
        good = false;
    }
    return good ? SVS_OK : text_bad(t, "this is not a line of a LIBSVM model");
}

/* Reads index:value pairs up to the end of the line, with ascending indices from 1; column and value may
 * be NULL to count only. */
static bool libsvm_pairs(struct text *t, int32_t *column, double *value, int64_t *count, int64_t *widest) {
    int64_t index, last = 0;
    double x;
    /* text_integer with last + 1 as lower bound makes indices ascend. */
    for (*count = 0; !at_line_end(t); ++*count) {
        if (!text_integer(t, last + 1, FEATURES_MAX, &index) || *t->at != ':')
            return false;
        t->at++;
        if (!text_real(t, &x))
            return false;
        if (column) {
            column[*count] = (int32_t)(index - 1);
            value[*count] = x;
        }
        last = index;
        *widest = index > *widest ? index : *widest;
    }
    return true;
}

/* First pass, with a copy of the cursor: checks all support vectors, counts their values (*stored) and
 * finds the largest index (*d, at least 1). */
static svs_code libsvm_measure(struct text t, const struct libsvm *h, int64_t *stored, int64_t *d) {
    double coef;
    int64_t count;
    *stored = 0;
    *d = 1;
    for (int64_t i = 0; i < h->total; i++, text_next_line(&t)) {
        for (int64_t k = 0; k < h->classes - 1; k++)
            if (!text_real(&t, &coef))
                return text_bad(&t, "a coefficient of a support vector is not a number");
        if (!libsvm_pairs(&t, NULL, NULL, &count, d))
            return text_bad(&t, "a support vector is not a list of ascending index:value pairs");
        *stored += count;
    }
    return SVS_OK;
}

/* A vector of class c has k - 1 coefficients, one for each pair (c, other) in the order of the others;
 * here they go to the rows of these pairs, and other rows keep 0. */
static void spread_coefficients(struct svi_owned_kernel *o, int64_t classes, int64_t c, int64_t i,
                                const double *coef) {
    int64_t row = 0;
    for (int64_t a = 0; a < classes; a++)
        for (int64_t b = a + 1; b < classes; b++, row++) {
            double *to = &o->coef[row * o->model.support.n + i];
            /* Others above c are shifted by one, because c itself has none. */
            if (a == c)
                *to = coef[b - 1];
            else if (b == c)
                *to = coef[a];
        }
}

/* Second pass, over bytes that libsvm_measure has checked: results need no check. */
static void libsvm_vectors(struct text *t, const struct libsvm *h, struct svi_owned_kernel *o, double *coef) {
    int64_t i = 0, count, widest = 0;
    for (int64_t c = 0; c < h->classes; c++)
        for (int64_t k = 0; k < h->counts[c]; k++, i++, text_next_line(t)) {
            text_reals(t, coef, h->classes - 1);
            spread_coefficients(o, h->classes, c, i, coef);
            libsvm_pairs(t, o->column + o->start[i], o->value + o->start[i], &count, &widest);
            o->start[i + 1] = o->start[i] + count;
        }
}

static svs_code libsvm_model(struct svi_machine *out, struct text *t, const struct libsvm *h) {
    int64_t stored, d, sum = 0, pairs = h->classes * (h->classes - 1) / 2;
    /* The counts of the classes must add up to the vectors that are measured and read. */
    for (int64_t k = 0; k < h->classes; k++)
        sum += h->counts[k];
    if (!h->has_rho || !h->has_labels || !h->has_counts || sum != h->total)
        return text_bad(t,
                        "nr_class, rho, label, nr_sv or total_sv is missing, or they contradict each other");
    /* Measured in the text itself: nothing is allocated for values that are not there. */
    SVI_TRY(libsvm_measure(*t, h, &stored, &d));
    double *coef = svi_alloc_array((size_t)h->classes, sizeof *coef);
    struct svi_owned_kernel *o =
        coef ? svi_kernel_model_new((int)pairs, h->total, (int)d, stored, h->labels, (int)h->classes, t->err)
             : NULL;
    if (!o) {
        svi_free(coef);
        return svi_fail_memory(t->err, "a kernel model");
    }
    libsvm_vectors(t, h, o, coef);
    svi_free(coef);
    svi_kernel_model_norms(o);
    for (int64_t k = 0; k < pairs; k++)
        /* LIBSVM's decision is sum - rho. */
        o->b[k] = -h->rho[k];
    o->model.kernel = h->kernel;
    o->model.decision = SVS_ONE_VS_ONE;
    o->model.method = "libsvm";
    out->kernel = &o->model;
    return SVS_OK;
}

svs_code svi_libsvm_read(struct svi_machine *m, const char *text, svs_error *err) {
    struct text t = {text, text + strlen(text), 1, err};
    struct libsvm h = {0};
    svs_code code = text_header(&t, "SV", libsvm_line, &h);
    if (code == SVS_OK)
        code = libsvm_model(m, &t, &h);
    svi_free(h.rho);
    svi_free(h.labels);
    svi_free(h.counts);
    return code;
}

/* ---- writing LIBLINEAR's and LIBSVM's */

/* SVS_UNAVAILABLE if a label does not fit; `format` and `instead` are for the text. */
static svs_code check_labels(const svs_value *classes, int count, const char *format, const char *instead,
                             svs_error *err) {
    char text[4 * SVS_NAME_MAX + 4];
    for (int k = 0; k < count; k++)
        if (classes[k].kind != SVS_INT || classes[k].as.i < INT_MIN || classes[k].as.i > INT_MAX)
            return svi_fail(err, SVS_UNAVAILABLE,
                            "a %s file holds 32-bit integers as labels only, not %.100s: use %s", format,
                            svs_value_text(classes[k], text, sizeof text), instead);
    return SVS_OK;
}

static svs_code write_liblinear_text(const struct svi_machine *machine, FILE *to) {
    const svs_model *m = machine->linear;
    bool regress = m->task == SVS_REGRESS;
    fprintf(to, "solver_type %s\n", regress ? "L2R_L2LOSS_SVR" : "L2R_L2LOSS_SVC");
    fprintf(to, "nr_class %d\n", regress ? 2 : m->class_count); /* LIBLINEAR writes 2 for regression too */
    /* A positive decision means the first label there, classes[1] here. */
    for (int k = 0; k < m->class_count && !regress; k++)
        fprintf(to, "%s %d", k ? "" : "label", (int)m->classes[m->class_count == 2 ? 1 - k : k].as.i);
    fprintf(to, "%snr_feature %d\nbias 1\nw\n", regress ? "" : "\n", m->d);
    /* bias 1: its weight, on the last line, is b itself. */
    for (int j = 0; j <= m->d; j++) {
        for (int k = 0; k < m->rows; k++)
            fprintf(to, "%.17g ", j < m->d ? m->W[(size_t)k * (size_t)m->d + (size_t)j] : m->b[k]);
        fputc('\n', to);
    }
    return SVS_OK;
}

svs_code svs_model_write_liblinear(const svs_model *m, FILE *to, svs_error *err) {
    const struct svi_machine machine = {.linear = (svs_model *)m};
    if (m->task == SVS_CLASSIFY && m->class_count == 0)
        return svi_fail(err, SVS_UNAVAILABLE, "no class is known yet: there is no model to write");
    svs_code code = check_labels(m->classes, m->class_count, "LIBLINEAR", "JSON", err);
    return code == SVS_OK ? write_plain(write_liblinear_text, &machine, to, err) : code;
}

static void write_libsvm_head(FILE *to, const svs_kernel *k, const svs_value *positive,
                              const svs_value *negative, double b, int64_t up, int64_t down) {
    fprintf(to, "svm_type c_svc\nkernel_type %s\n", svi_kernel_names[k->kind]);
    if (k->kind == SVS_POLYNOMIAL)
        fprintf(to, "degree %d\n", k->degree);
    if (k->kind != SVS_LINEAR)
        fprintf(to, "gamma %.17g\n", k->gamma);
    if (k->kind == SVS_POLYNOMIAL)
        fprintf(to, "coef0 %.17g\n", k->coef0);
    fprintf(to, "nr_class 2\ntotal_sv %lld\nrho %.17g\nlabel %d %d\nnr_sv %lld %lld\nSV\n",
            (long long)(up + down), -b, (int)positive->as.i, (int)negative->as.i, (long long)up,
            (long long)down);
}

/* LIBSVM groups vectors by class: those with a positive coefficient come first, as the first label's. */
static void write_kernel(const svs_kernel_model *m, FILE *to) {
    const int first = m->decision == SVS_ONE_VS_ONE ? 0 : 1; /* the class that a positive decision means */
    const svs_rows *s = &m->support;
    int64_t up = 0;
    for (int64_t i = 0; i < s->n; i++)
        up += m->coef[i] > 0;
    write_libsvm_head(to, &m->kernel, &m->classes[first], &m->classes[1 - first], m->b[0], up, s->n - up);
    for (int sign = 1; sign >= 0; sign--)
        for (int64_t i = 0; i < s->n; i++) {
            if ((m->coef[i] > 0) != sign)
                continue;
            fprintf(to, "%.17g", m->coef[i]);
            for (int64_t k = s->start[i]; k < s->start[i + 1]; k++)
                fprintf(to, " %d:%.17g", s->column[k] + 1, s->value[k]);
            fputc('\n', to);
        }
}

/* A linear model as a kernel model: w is the only support vector, with coefficient 1. */
static void write_linear(const svs_model *m, FILE *to) {
    const svs_kernel linear = {.kind = SVS_LINEAR};
    write_libsvm_head(to, &linear, &m->classes[1], &m->classes[0], m->b[0], 1, 0);
    fputc('1', to);
    for (int j = 0; j < m->d; j++)
        if (m->W[j] != 0)
            fprintf(to, " %d:%.17g", j + 1, m->W[j]);
    fputc('\n', to);
}

static svs_code write_libsvm_text(const struct svi_machine *m, FILE *to) {
    if (m->kernel)
        write_kernel(m->kernel, to);
    else
        write_linear(m->linear, to);
    return SVS_OK;
}

svs_code svi_libsvm_write(void *machine, FILE *to, svs_error *err) {
    const struct svi_machine *m = machine;
    const int count = m->kernel ? m->kernel->class_count : m->linear->class_count;
    const svs_value *classes = m->kernel ? m->kernel->classes : m->linear->classes;
    if (count != 2)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "LIBSVM's format holds one model for each pair of classes, not one against the rest: "
                        "use the format own");
    svs_code code = check_labels(classes, count, "LIBSVM", "the format own", err);
    return code == SVS_OK ? write_plain(write_libsvm_text, m, to, err) : code;
}
