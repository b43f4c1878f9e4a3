#include "wire/model_text_in.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/number.h"
#include "learner/model_owned.h"
#include "solver/kernel_model.h"

#define CLASSES_MAX  10000
#define FEATURES_MAX 100000000

/* A cursor over the text; the end is its NUL. */
struct text {
    const char *at, *end;
    int line;
    svs_error *err;
};

static svs_code bad(const struct text *t, const char *what) {
    return svi_fail(t->err, SVS_INVALID, "line %d: %s", t->line, what);
}

static void skip_blanks(struct text *t) {
    while (*t->at == ' ' || *t->at == '\t' || *t->at == '\r')
        t->at++;
}

static bool at_line_end(struct text *t) {
    skip_blanks(t);
    return *t->at == '\n' || *t->at == '\0';
}

static void next_line(struct text *t) {
    t->at += strcspn(t->at, "\n");
    if (*t->at == '\n') {
        t->at++;
        t->line++;
    }
}

/* The next word of the line, at most size - 1 bytes of it. */
static void word(struct text *t, char *out, size_t size) {
    skip_blanks(t);
    size_t length = strcspn(t->at, " \t\r\n"), kept = length < size - 1 ? length : size - 1;
    memcpy(out, t->at, kept);
    out[kept] = 0;
    t->at += length;
}

static bool real(struct text *t, double *out) {
    skip_blanks(t);
    const char *next = svi_number(t->at, out);
    if (next == t->at || !isfinite(*out) || !strchr(" \t\r\n:", *next))
        return false;
    t->at = next;
    return true;
}

static bool integer(struct text *t, int64_t low, int64_t high, int64_t *out) {
    double value;
    if (!real(t, &value) || value != floor(value) || value < (double)low || value > (double)high)
        return false;
    *out = (int64_t)value;
    return true;
}

static bool reals(struct text *t, double *out, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!real(t, &out[i]))
            return false;
    return true;
}

/* ---- LIBLINEAR */

struct liblinear {
    char solver[32];
    int64_t classes, features;
    double bias;
    svs_value label[2], *labels; /* `labels` is owned */
};

static bool take_labels(struct text *t, svs_value *labels, int64_t count) {
    int64_t value;
    for (int64_t k = 0; k < count; k++) {
        if (!integer(t, INT_MIN, INT_MAX, &value))
            return false;
        labels[k] = svs_int(value);
    }
    return true;
}

static svs_code liblinear_header(struct text *t, struct liblinear *h) {
    char key[32];
    for (;; next_line(t)) {
        bool good = true;
        if (*t->at == '\0')
            return bad(t, "the file ends before its weights");
        word(t, key, sizeof key);
        if (strcmp(key, "w") == 0)
            break;
        if (strcmp(key, "solver_type") == 0)
            word(t, h->solver, sizeof h->solver);
        else if (strcmp(key, "nr_class") == 0 && !h->labels) /* which are as many */
            good = integer(t, 2, CLASSES_MAX, &h->classes);
        else if (strcmp(key, "nr_feature") == 0)
            good = integer(t, 1, FEATURES_MAX, &h->features);
        else if (strcmp(key, "bias") == 0)
            good = real(t, &h->bias);
        else if (strcmp(key, "label") == 0 && h->classes > 0 && !h->labels) {
            h->labels = svi_alloc_array((size_t)h->classes, sizeof *h->labels);
            if (!h->labels)
                return svi_fail_memory(t->err, "the labels of a model");
            good = take_labels(t, h->labels, h->classes);
        } else
            good = false;
        if (!good)
            return bad(t, "not understood as a line of a LIBLINEAR model");
    }
    next_line(t);
    return SVS_OK;
}

/* One line a feature, one column a class; the last line is the weight of the bias. */
static svs_code liblinear_weights(struct text *t, const struct liblinear *h, int columns, bool difference,
                                  struct svi_owned_model *m) {
    const int d = m->model.d;
    double line[2], *values = columns <= 2 ? line : svi_alloc_array((size_t)columns, sizeof *values);
    svs_code code = values ? SVS_OK : svi_fail_memory(t->err, "the weights of a model");
    for (int j = 0; j < d + (h->bias >= 0) && code == SVS_OK; j++, next_line(t)) {
        if (!reals(t, values, columns) || !at_line_end(t)) {
            code = bad(t, "a weight is missing, or is no number");
            break;
        }
        for (int k = 0; k < m->model.rows; k++) {
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
    const bool regress = strstr(h->solver, "SVR") != NULL, pairs = h->classes == 2 && !regress;
    const bool crammer = strcmp(h->solver, "MCSVM_CS") == 0;
    if (strcmp(h->solver, "ONECLASS_SVM") == 0)
        return svi_fail(t->err, SVS_UNAVAILABLE, "one-class models of LIBLINEAR are not read here");
    if (h->features == 0 || h->classes == 0 || (!regress && !h->labels))
        return bad(t, "nr_class, nr_feature or label is missing before the weights");
    const svs_value two[2] = {pairs ? h->labels[1] : svs_none(), pairs ? h->labels[0] : svs_none()};
    const int rows = regress || pairs ? 1 : (int)h->classes;
    /* a digit and a blank a weight: nothing is reserved for what is not there */
    if (h->features * rows > (t->end - t->at + 1) / 2)
        return bad(t, "the file is too short for its nr_feature and nr_class");
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
    svs_code code = liblinear_header(&t, &h);
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
    int64_t *counts; /* support vectors of each class */
};

static svs_code libsvm_kernel(struct text *t, struct libsvm *h) {
    static const char *const kinds[] = {
        [SVS_LINEAR] = "linear", [SVS_POLYNOMIAL] = "polynomial", [SVS_RBF] = "rbf"};
    char name[32];
    word(t, name, sizeof name);
    for (int k = 0; k < 3; k++)
        if (strcmp(name, kinds[k]) == 0) {
            h->kernel.kind = (svs_kernel_kind)k;
            return SVS_OK;
        }
    return svi_fail(t->err, SVS_UNAVAILABLE,
                    "the kernel %s is not read here (linear, polynomial and rbf are)", name);
}

static svs_code libsvm_reserve(struct text *t, struct libsvm *h) {
    const size_t k = (size_t)h->classes;
    h->rho = svi_alloc_array(k * (k - 1) / 2, sizeof *h->rho);
    h->labels = svi_alloc_array(k, sizeof *h->labels);
    h->counts = svi_alloc_array(k, sizeof *h->counts);
    return h->rho && h->labels && h->counts ? SVS_OK : svi_fail_memory(t->err, "the head of a model");
}

static svs_code libsvm_line(struct text *t, struct libsvm *h, const char *key) {
    char kind[32];
    int64_t degree;
    bool good = true;
    if (strcmp(key, "svm_type") == 0) {
        word(t, kind, sizeof kind);
        if (strcmp(kind, "c_svc") != 0 && strcmp(kind, "nu_svc") != 0)
            return svi_fail(t->err, SVS_UNAVAILABLE,
                            "models of type %s are not read here (c_svc and nu_svc are)", kind);
    } else if (strcmp(key, "kernel_type") == 0) {
        return libsvm_kernel(t, h);
    } else if (strcmp(key, "degree") == 0) {
        good = integer(t, 1, 20, &degree);
        h->kernel.degree = good ? (int)degree : 0;
    } else if (strcmp(key, "gamma") == 0) {
        good = real(t, &h->kernel.gamma) && h->kernel.gamma >= 0;
    } else if (strcmp(key, "coef0") == 0) {
        good = real(t, &h->kernel.coef0);
    } else if (strcmp(key, "nr_class") == 0 && h->classes == 0) {
        good = integer(t, 2, 1000, &h->classes);
        return good ? libsvm_reserve(t, h) : bad(t, "nr_class is no number from 2 to 1000");
    } else if (strcmp(key, "total_sv") == 0) {
        good = integer(t, 0, t->end - t->at, &h->total);
    } else if (strcmp(key, "rho") == 0 && h->rho) {
        good = h->has_rho = reals(t, h->rho, h->classes * (h->classes - 1) / 2);
    } else if (strcmp(key, "label") == 0 && h->labels) {
        good = h->has_labels = take_labels(t, h->labels, h->classes);
    } else if (strcmp(key, "nr_sv") == 0 && h->counts) {
        for (int64_t k = 0; k < h->classes && good; k++)
            good = integer(t, 0, INT_MAX, &h->counts[k]);
        h->has_counts = good;
    } else if (strncmp(key, "prob", 4) != 0) {
        good = false;
    }
    return good ? SVS_OK : bad(t, "not understood as a line of a LIBSVM model");
}

static svs_code libsvm_header(struct text *t, struct libsvm *h) {
    char key[32];
    for (;; next_line(t)) {
        if (*t->at == '\0')
            return bad(t, "the file ends before its support vectors");
        word(t, key, sizeof key);
        if (strcmp(key, "SV") == 0)
            break;
        svs_code code = libsvm_line(t, h, key);
        if (code != SVS_OK)
            return code;
    }
    next_line(t);
    int64_t sum = 0;
    for (int64_t k = 0; k < h->classes; k++)
        sum += h->counts[k];
    if (!h->has_rho || !h->has_labels || !h->has_counts || sum != h->total)
        return bad(t, "nr_class, rho, label, nr_sv or total_sv is missing, or they contradict each other");
    return SVS_OK;
}

/* index:value pairs up to the end of the line; column and value may be NULL to count only. */
static bool libsvm_pairs(struct text *t, int32_t *column, double *value, int64_t *count, int64_t *widest) {
    int64_t index, last = 0;
    double x;
    for (*count = 0; !at_line_end(t); ++*count) {
        if (!integer(t, last + 1, FEATURES_MAX, &index) || *t->at != ':')
            return false;
        t->at++;
        if (!real(t, &x))
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

static svs_code libsvm_measure(struct text t, const struct libsvm *h, int64_t *stored, int64_t *d) {
    double coef;
    int64_t count;
    *stored = 0;
    *d = 1;
    for (int64_t i = 0; i < h->total; i++, next_line(&t)) {
        for (int64_t k = 0; k < h->classes - 1; k++)
            if (!real(&t, &coef))
                return bad(&t, "a coefficient of a support vector is no number");
        if (!libsvm_pairs(&t, NULL, NULL, &count, d))
            return bad(&t, "a support vector is no list of ascending index:value pairs");
        *stored += count;
    }
    return SVS_OK;
}

/* The k - 1 coefficients of a vector of class c belong to its pairs (c, other), in the order of the others.
 */
static void spread_coefficients(struct svi_owned_kernel *o, int64_t classes, int64_t c, int64_t i,
                                const double *coef) {
    int64_t row = 0;
    for (int64_t a = 0; a < classes; a++)
        for (int64_t b = a + 1; b < classes; b++, row++) {
            double *to = &o->coef[row * o->model.support.n + i];
            if (a == c)
                *to = coef[b - 1];
            else if (b == c)
                *to = coef[a];
        }
}

static void libsvm_vectors(struct text *t, const struct libsvm *h, struct svi_owned_kernel *o, double *coef) {
    int64_t i = 0, count, widest = 0;
    for (int64_t c = 0; c < h->classes; c++)
        for (int64_t k = 0; k < h->counts[c]; k++, i++, next_line(t)) {
            reals(t, coef, h->classes - 1);
            spread_coefficients(o, h->classes, c, i, coef);
            libsvm_pairs(t, o->column + o->start[i], o->value + o->start[i], &count, &widest);
            o->start[i + 1] = o->start[i] + count;
        }
}

static svs_code libsvm_model(struct svi_machine *out, struct text *t, const struct libsvm *h) {
    int64_t stored, d, pairs = h->classes * (h->classes - 1) / 2;
    svs_code code = libsvm_measure(*t, h, &stored, &d);
    if (code != SVS_OK)
        return code;
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
    svs_code code = libsvm_header(&t, &h);
    if (code == SVS_OK)
        code = libsvm_model(m, &t, &h);
    svi_free(h.rho);
    svi_free(h.labels);
    svi_free(h.counts);
    return code;
}

/* ---- LIBSVM, written */

static void write_row(FILE *to, double coef, const svs_rows *s, int64_t i) {
    fprintf(to, "%.17g", coef);
    for (int64_t k = s->start[i]; k < s->start[i + 1]; k++)
        fprintf(to, " %d:%.17g", s->column[k] + 1, s->value[k]);
    fputc('\n', to);
}

static void write_head(FILE *to, const svs_kernel *k, const svs_value *positive, const svs_value *negative,
                       double b, int64_t up, int64_t down) {
    static const char *const kinds[] = {
        [SVS_LINEAR] = "linear", [SVS_POLYNOMIAL] = "polynomial", [SVS_RBF] = "rbf"};
    fprintf(to, "svm_type c_svc\nkernel_type %s\n", kinds[k->kind]);
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

/* Vectors with a positive coefficient come first, as those of the first class. */
static void write_kernel(const svs_kernel_model *m, FILE *to) {
    const int first = m->decision == SVS_ONE_VS_ONE ? 0 : 1; /* whom a positive decision means */
    int64_t up = 0;
    for (int64_t i = 0; i < m->support.n; i++)
        up += m->coef[i] > 0;
    write_head(to, &m->kernel, &m->classes[first], &m->classes[1 - first], m->b[0], up, m->support.n - up);
    for (int sign = 1; sign >= 0; sign--)
        for (int64_t i = 0; i < m->support.n; i++)
            if ((m->coef[i] > 0) == sign)
                write_row(to, m->coef[i], &m->support, i);
}

/* w itself is the one support vector. */
static void write_linear(const svs_model *m, FILE *to) {
    const svs_kernel linear = {.kind = SVS_LINEAR};
    write_head(to, &linear, &m->classes[1], &m->classes[0], m->b[0], 1, 0);
    fputc('1', to);
    for (int j = 0; j < m->d; j++)
        if (m->W[j] != 0)
            fprintf(to, " %d:%.17g", j + 1, m->W[j]);
    fputc('\n', to);
}

svs_code svi_libsvm_write(const struct svi_machine *m, FILE *to, svs_error *err) {
    const int count = m->kernel ? m->kernel->class_count : m->linear->class_count;
    const svs_value *classes = m->kernel ? m->kernel->classes : m->linear->classes;
    if (count != 2)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "LIBSVM's format holds one model for each pair of classes, not one against the rest: "
                        "take the format own");
    for (int k = 0; k < 2; k++)
        if (classes[k].kind != SVS_INT || classes[k].as.i < INT_MIN || classes[k].as.i > INT_MAX)
            return svi_fail(err, SVS_UNAVAILABLE,
                            "a LIBSVM file holds 32-bit integers as labels only: take the format own");
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0)
        return svi_fail_memory(err, "a model as text");
    locale_t before = uselocale(plain);
    if (m->kernel)
        write_kernel(m->kernel, to);
    else
        write_linear(m->linear, to);
    uselocale(before);
    freelocale(plain);
    return ferror(to) ? svi_fail(err, SVS_IO, "the model could not be written: is the disk full?") : SVS_OK;
}
