#include "svmstream/model.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/model_owned.h"

/* Four sums at a time: they do not wait for each other, and their order is fixed, so that a score has the
 * same bits wherever this is compiled without fused arithmetic. */
static double dot(const double *a, const double *b, int n) {
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        s0 += a[i] * b[i];
        s1 += a[i + 1] * b[i + 1];
        s2 += a[i + 2] * b[i + 2];
        s3 += a[i + 3] * b[i + 3];
    }
    for (; i < n; i++)
        s0 += a[i] * b[i];
    return (s0 + s1) + (s2 + s3);
}

void svs_model_scores(const svs_model *m, const double *x, double *scores) {
    for (int k = 0; k < m->rows; k++)
        scores[k] = dot(m->W + (size_t)k * (size_t)m->d, x, m->d) + m->b[k];
}

int svs_model_predict(const svs_model *m, const double *scores) {
    if (m->task == SVS_REGRESS || m->class_count == 0)
        return -1;
    if (m->class_count == 1)
        return 0;
    if (m->class_count == 2)
        return scores[0] > 0; /* positive = classes[1]; a score of 0 falls to classes[0], as in LIBLINEAR */
    int best = 0;
    for (int k = 1; k < m->class_count; k++)
        if (scores[k] > scores[best])
            best = k;
    return best;
}

static size_t text_size(const svs_value *classes, int class_count, const char *const *features, int d) {
    size_t size = 1;
    for (int k = 0; k < class_count; k++)
        size += classes[k].kind == SVS_STR ? classes[k].length : 0;
    for (int j = 0; features && j < d; j++)
        size += strlen(features[j]) + 1;
    return size;
}

static void copy_text(struct svi_owned_model *o, const svs_value *classes, const char *const *features) {
    char *at = o->text;
    for (int k = 0; k < o->model.class_count; k++) {
        o->classes[k] = classes[k];
        if (classes[k].kind != SVS_STR)
            continue;
        memcpy(at, classes[k].as.s, classes[k].length);
        o->classes[k].as.s = at;
        at += classes[k].length;
    }
    for (int j = 0; features && j < o->model.d; j++) {
        size_t length = strlen(features[j]) + 1;
        o->features[j] = memcpy(at, features[j], length);
        at += length;
    }
}

struct svi_owned_model *svi_model_new(svs_task task, int d, int rows, const svs_value *classes, int class_count,
                                      const char *const *features, svs_error *err) {
    struct svi_owned_model *o = svi_alloc(sizeof *o);
    if (o) {
        o->model = (svs_model){.method = "", .task = task, .d = d, .rows = rows, .class_count = class_count};
        o->text = svi_alloc(text_size(classes, class_count, features, d));
        o->W = svi_alloc_array((size_t)rows * (size_t)d + 1, sizeof *o->W);
        o->b = svi_alloc_array((size_t)rows, sizeof *o->b);
        o->classes = svi_alloc_array((size_t)class_count + 1, sizeof *o->classes);
        o->features = features ? svi_alloc_array((size_t)d + 1, sizeof *o->features) : NULL;
    }
    if (!o || !o->text || !o->W || !o->b || !o->classes || (features && !o->features)) {
        svs_model *m = o ? &o->model : NULL;
        svs_model_free(&m);
        svi_fail_memory(err, "a model");
        return NULL;
    }
    copy_text(o, classes, features);
    o->model.W = o->W;
    o->model.b = o->b;
    o->model.classes = o->classes;
    o->model.features = o->features;
    return o;
}

void svs_model_free(svs_model **m) {
    struct svi_owned_model *o = (struct svi_owned_model *)*m;
    if (!o)
        return;
    svi_free(o->text);
    svi_free(o->W);
    svi_free(o->b);
    svi_free(o->classes);
    svi_free(o->features);
    svi_free(o);
    *m = NULL;
}
