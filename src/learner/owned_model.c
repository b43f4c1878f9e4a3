/* Models that own what they point to, and how a model scores: the same sums wherever it is used (learner,
 * bank, model files, other programs), so that a score has the same bits. */
#include "svmstream/model.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/owned_model.h"
#include "learner/probability.h"

/* Four sums at a time: they do not wait for each other, and their order is fixed, so that a score has the
 * same bits wherever this is compiled without fused arithmetic. */
static double model_dot(const double *a, const double *b, int n) {
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
        scores[k] = model_dot(m->W + (size_t)k * (size_t)m->d, x, m->d) + m->b[k];
}

/* The sums of model_dot, to which columns that are 0 add nothing: none of them is ever -0. */
static double model_dot_sparse(const double *a, int n, const int32_t *column, const double *value,
                               int64_t count) {
    const int whole = n / 4 * 4;
    double s[4] = {0};
    for (int64_t k = 0; k < count && column[k] < n; k++)
        s[column[k] < whole ? column[k] % 4 : 0] += a[column[k]] * value[k];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

void svi_model_scores_sparse(const svs_model *m, const int32_t *column, const double *value, int64_t count,
                             double *scores) {
    for (int k = 0; k < m->rows; k++)
        scores[k] = model_dot_sparse(m->W + (size_t)k * (size_t)m->d, m->d, column, value, count) + m->b[k];
}

/* Linear: classes are few, and the guess (the class of the last sample) is mostly right. */
int svi_class_search(const svs_value *classes, int count, svs_value y, int guess) {
    if (guess >= 0 && guess < count && svs_value_equal(classes[guess], y))
        return guess;
    for (int k = 0; k < count; k++)
        if (svs_value_equal(classes[k], y))
            return k;
    return -1;
}

/* On a tie the class that was seen first. Written without branches: scores of good models are hard to
 * predict for a processor. */
int svi_largest_score(int class_count, const double *scores) {
    int best = 0;
    double most = scores[0];
    for (int k = 1; k < class_count; k++) {
        const bool better = scores[k] > most;
        best = better ? k : best;
        most = better ? scores[k] : most;
    }
    return best;
}

int svs_model_predict(const svs_model *m, const double *scores) {
    return svi_predicted(m->task, m->class_count, scores);
}

bool svs_model_probabilities(const svs_model *m, const double *scores, double *proba) {
    if (m->task == SVS_REGRESS || m->class_count < 2 || !(m->calibration.a > 0))
        return false;
    svi_probabilities(&m->calibration, scores, m->rows, proba);
    return true;
}

size_t svi_classes_text(const svs_value *classes, int count) {
    size_t size = 1;
    for (int k = 0; k < count; k++)
        size += classes[k].kind == SVS_STR ? classes[k].length : 0;
    return size;
}

char *svi_classes_copy(svs_value *to, const svs_value *classes, int count, char *text) {
    for (int k = 0; k < count; k++) {
        to[k] = classes[k];
        if (classes[k].kind != SVS_STR)
            continue;
        to[k].as.s = memcpy(text, classes[k].as.s, classes[k].length);
        text += classes[k].length;
    }
    return text;
}

/* One block holds all names, of classes and features: text, one after the other. */
struct svi_owned_model *svi_model_new(svs_task task, int d, int rows, const svs_value *classes,
                                      int class_count, const char *const *features, svs_error *err) {
    struct svi_owned_model *o = svi_alloc(sizeof *o);
    size_t size = svi_classes_text(classes, class_count);
    for (int j = 0; features && j < d; j++)
        size += strlen(features[j]) + 1;
    if (o) {
        o->model = (svs_model){.method = "", .task = task, .d = d, .rows = rows, .class_count = class_count};
        o->text = svi_alloc(size);
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
    char *at = svi_classes_copy(o->classes, classes, class_count, o->text);
    for (int j = 0; features && j < d; j++) {
        size_t length = strlen(features[j]) + 1;
        o->features[j] = memcpy(at, features[j], length);
        at += length;
    }
    o->model.W = o->W;
    o->model.b = o->b;
    o->model.classes = o->classes;
    o->model.features = o->features;
    return o;
}

/* One block: an offset for each row, and behind them the curve, if there is to be one. */
double *svi_model_calibrate(svs_model *owned, bool curved, svs_error *err) {
    struct svi_owned_model *o = (struct svi_owned_model *)owned;
    svi_free(o->calibration);
    o->calibration = svi_alloc_array((size_t)owned->rows + SVS_CURVE, sizeof *o->calibration);
    owned->calibration = (svs_calibration){.b = o->calibration};
    if (!o->calibration)
        return svi_fail_memory(err, "the calibration of a model"), NULL;
    owned->calibration.curve = curved ? o->calibration + owned->rows : NULL;
    return o->calibration;
}

/* The model is the first member of its owner (svi_owned_model), so their addresses are the same. */
void svs_model_free(svs_model **m) {
    struct svi_owned_model *o = (struct svi_owned_model *)*m;
    if (!o)
        return;
    void *const all[] = {o->text, o->W, o->b, o->calibration, o->classes, o->features};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    svi_free(o);
    *m = NULL;
}
