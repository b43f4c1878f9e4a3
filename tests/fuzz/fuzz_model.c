/* Any bytes as a model: refused, or a model that scores, is encoded and comes back the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "svmstream/raw_rows.h"
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

/* A model's schema was read when the model was: rows can be made by it. */
static void make_rows(const svs_model *m) {
    const double *x = NULL;
    svs_error err = {0};
    int d = 0;
    svs_schema *s = svs_schema_of_model(m, &err);
    if (!s && m->schema)
        abort();
    for (int row = 0; s && row < 2; row++) {
        svs_schema_begin(s, &err);
        svs_schema_time(s, 1e9);
        for (int j = 0; j < m->d && j < 3; j++) { /* names of features are often those of columns */
            if (row == 0)
                svs_schema_number(s, m->features[j], 1.5, &err);
            else
                svs_schema_word(s, m->features[j], "a", &err);
        }
        if (svs_schema_end(s, &x, &d, &err) == SVS_OK && d != m->d)
            abort();
        svs_schema_begin(s, &err);
        svs_schema_word(s, "machine", row ? "b" : "new", &err);
        svs_schema_end(s, &x, &d, &err);
    }
    svs_schema_free(&s);
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
    make_rows(m);
    write_texts(m);
    if (svi_model_encode(m, NULL, 0, &bytes) != SVS_OK)
        abort();
    again = svs_model_decode(bytes.data, bytes.size, NULL);
    if (!again || again->d != m->d || again->rows != m->rows || again->class_count != m->class_count)
        abort();
    if (m->d > 0 && memcmp(again->W, m->W, (size_t)m->rows * (size_t)m->d * sizeof *m->W) != 0)
        abort();
    if (again->schema_size != m->schema_size ||
        (m->schema && memcmp(again->schema, m->schema, m->schema_size) != 0))
        abort();
    svs_model_free(&again);
    svs_model_free(&m);
    svi_bytes_clear(&bytes);
    return 0;
}
