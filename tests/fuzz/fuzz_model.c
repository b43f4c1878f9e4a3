/* Any bytes as a model: refused, or a model that scores, is encoded and comes back the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "svmstream/model.h"
#include "wire/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void score_zero(const svs_model *m) {
    double *x = calloc((size_t)m->d + 1, sizeof *x), *scores = calloc((size_t)m->rows + 1, sizeof *scores);
    svs_model_scores(m, x, scores);
    for (int k = 0; k < m->rows; k++)
        if (scores[k] != m->b[k])
            abort();
    if (svs_model_predict(m, scores) >= (m->class_count ? m->class_count : 1))
        abort();
    free(x);
    free(scores);
}

static void write_texts(const svs_model *m) {
    FILE *to = fopen("/dev/null", "w");
    svs_model_write_json(m, to, NULL);
    svs_model_write_liblinear(m, to, NULL);
    fclose(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    svs_model *m = svs_model_decode(data, size, NULL), *again;
    struct svi_bytes bytes = {0};
    if (!m)
        return 0;
    score_zero(m);
    write_texts(m);
    if (svi_model_encode(m, NULL, 0, &bytes) != SVS_OK)
        abort();
    again = svs_model_decode(bytes.data, bytes.size, NULL);
    if (!again || again->d != m->d || again->rows != m->rows || again->class_count != m->class_count)
        abort();
    if (m->d > 0 && memcmp(again->W, m->W, (size_t)m->rows * (size_t)m->d * sizeof *m->W) != 0)
        abort();
    svs_model_free(&again);
    svs_model_free(&m);
    svi_bytes_clear(&bytes);
    return 0;
}
