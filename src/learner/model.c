#include "svmstream/model.h"

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
