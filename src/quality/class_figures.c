#include "quality/class_figures.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "base/fetch.h"

/* An undefined share counts as 0 in an average. */
static double class_figures_share(double share) {
    return isnan(share) ? 0 : share;
}

/* Sums over the classes first, then the divisions. Macro averages divide by the classes that occurred at all,
 * balanced accuracy and G-mean by those with labels, weighted averages by the samples. */
struct svi_class_averages svi_class_averages(const struct svi_class_count *c, int classes) {
    struct svi_class_averages a = {.commonest = -1};
    double recalls = 0, logarithms = 0;
    int met = 0, labels = 0;
    for (int k = 0; k < classes; k++) {
        const double precision = class_figures_share(svi_class_precision(&c[k])),
                     recall = class_figures_share(svi_class_recall(&c[k])),
                     f1 = class_figures_share(svi_class_f1(&c[k])), support = (double)c[k].support;
        met += c[k].support + c[k].predicted > 0;
        a.n += c[k].support;
        a.hits += c[k].hits;
        a.precision += precision;
        a.recall += recall;
        a.f1 += f1;
        a.weighted_precision += support * precision;
        a.weighted_f1 += support * f1;
        /* What follows averages over classes that were labels. A recall of 0 gives log 0 = -inf and so a
         * G-mean of 0. */
        if (c[k].support == 0)
            continue;
        labels++;
        recalls += recall;
        logarithms += log(recall);
        if (a.commonest < 0 || c[k].support > c[a.commonest].support)
            a.commonest = k;
    }
    const double n = (double)a.n, each = a.n > 0 ? met : 0; /* 0 / 0: every average is NAN */
    a.precision /= each;
    a.recall /= each;
    a.f1 /= each;
    a.weighted_precision /= n;
    a.weighted_f1 /= n;
    a.balanced_accuracy = recalls / labels;
    a.gmean = exp(logarithms / labels);
    return a;
}

/* ---- the confusion matrix */

struct svi_confusion {
    int max_classes;  /* classes that can get a row: min(max_classes, SVI_CONFUSION_MAX) */
    int32_t capacity; /* classes with a row now; the stride of a row */
    int classes;      /* seen so far */
    bool over;        /* a class beyond the capacity was seen: the matrix is incomplete for good */
    int64_t *count;   /* capacity x capacity, rows the truth */
};

enum { CLASSES };

static const struct svi_array arrays[] = {
    SVI_ARRAY_WITH(struct svi_confusion, count, "confusion", SVI_ARRAY_COUNT, 0, SVI_AXIS(CLASSES),
                   SVI_AXIS(CLASSES)),
};
static const struct svi_arrays confusion_arrays = SVI_ARRAYS(arrays, "the confusion matrix");

static int32_t confusion_capacity(int classes) {
    return classes < SVI_CONFUSION_MAX ? classes : SVI_CONFUSION_MAX;
}

svi_confusion *svi_confusion_new(int max_classes, bool grows, svs_error *err) {
    svi_confusion *c = svi_new_plain(sizeof *c, confusion_arrays.what, err);
    if (!c)
        return NULL;
    c->max_classes = confusion_capacity(max_classes);
    if (svi_confusion_reserve(c, grows ? 2 : max_classes, err) != SVS_OK)
        svi_confusion_free(&c);
    return c;
}

svs_code svi_confusion_reserve(svi_confusion *c, int classes, svs_error *err) {
    const int32_t capacity = classes < c->max_classes ? classes : c->max_classes;
    if (capacity <= c->capacity)
        return SVS_OK;
    const svs_code code = svi_arrays_resize(&confusion_arrays, c, &c->capacity, &capacity, err);
    c->capacity = code == SVS_OK ? capacity : c->capacity;
    return code;
}

void svi_confusion_free(svi_confusion **c) {
    if (*c)
        svi_arrays_free(&confusion_arrays, *c);
    svi_free(*c);
    *c = NULL;
}

double svi_confusion_memory(int classes) {
    const int32_t capacity = confusion_capacity(classes);
    return (double)sizeof(struct svi_confusion) + (double)svi_arrays_bytes(&confusion_arrays, &capacity);
}

static int64_t *confusion_row(const svi_confusion *c, int truth) {
    return c->count + (size_t)truth * (size_t)c->capacity;
}

void svi_confusion_fetch(const svi_confusion *c) {
    for (int k = 0; k < c->classes; k++)
        svi_fetch(confusion_row(c, k), (size_t)c->classes * sizeof *c->count);
}

void svi_confusion_reset(svi_confusion *c) {
    memset(c->count, 0, (size_t)c->capacity * (size_t)c->capacity * sizeof *c->count);
    c->classes = 0;
    c->over = false;
}

void svi_confusion_add(svi_confusion *c, int truth, int predicted) {
    const int last = truth > predicted ? truth : predicted;
    /* A partial matrix would not add up to the samples, so one sample out of range ends it. */
    if (last >= c->capacity) {
        c->over = true;
        return;
    }
    c->classes = last >= c->classes ? last + 1 : c->classes;
    if (predicted >= 0)
        confusion_row(c, truth)[predicted]++;
}

bool svi_confusion_matrix(const svi_confusion *c, int classes, int64_t *out) {
    if (c->over || classes > c->capacity)
        return false;
    for (int i = 0; i < classes; i++)
        memcpy(out + (size_t)i * (size_t)classes, confusion_row(c, i), (size_t)classes * sizeof *out);
    return true;
}

void svi_confusion_archive(struct svi_archive *a, svi_confusion *c) {
    if (svi_archive_loading(a))
        svi_confusion_reset(c);
    svi_archive_bool(a, "too many classes", &c->over);
    int32_t classes = c->classes;
    svi_archive_int(a, "confused classes", &classes, 0, c->max_classes);
    if (!svi_archive_ok(a) || svi_confusion_reserve(c, classes, a->err) != SVS_OK)
        return;
    c->classes = classes;
    svi_arrays_archive(a, &confusion_arrays, c, &c->capacity, &classes);
}
