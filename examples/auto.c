/* auto.c: the bank of `method auto` inside a program: raw rows with words and missing values, predicted one
 * by one before they are learned, then saved and loaded.
 *
 *     cc examples/auto.c $(pkg-config --cflags --libs svmstream) -o auto && ./auto
 *
 * The rows are made here: what a machine uses depends on its speed, its material and whether it is warm. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "svmstream/auto.h"

#define ROWS    2000
#define COLUMNS 3

static const char *const names[COLUMNS] = {"speed", "warm", "material"};

/* Row i, with its class; every tenth speed is not known. */
static void make_row(int i, double *x, const char **words, svs_value *y) {
    static const char *const materials[] = {"steel", "brass", "oak"};
    const int kind = rand() % 3;
    const double speed = rand() / (double)RAND_MAX, warm = rand() % 2;
    x[0] = i % 10 == 0 ? NAN : speed;
    x[1] = warm;
    x[2] = 0;
    words[0] = words[1] = NULL;
    words[2] = materials[kind];
    *y = svs_str(speed * (kind == 2 ? 0.5 : 1) > (warm > 0 ? 0.3 : 0.5) ? "high" : "low");
}

int main(void) {
    svs_error err;
    svs_auto *a = svs_auto_new(NULL, 0, &err);
    int right = 0;
    for (int i = 0; a && i < ROWS; i++) {
        double x[COLUMNS];
        const char *words[COLUMNS];
        svs_row row = {.x = x, .d = COLUMNS, .names = names, .words = words, .all = true};
        svs_outcome out;
        make_row(i, x, words, &row.y);
        if (svs_stream_step(a, &row, &out, &err) != SVS_OK)
            break;
        right += svs_value_equal(out.prediction.y, row.y);
    }
    if (!a || svs_stream_seen(a) < ROWS) {
        fprintf(stderr, "%s\n", err.text);
        svs_stream_free(&a);
        return 1;
    }
    printf("accuracy %.3f over %d rows, before each was learned\n", (double)right / ROWS, ROWS);

    /* The loaded stream continues where this one is. */
    void *bytes;
    size_t size;
    svs_auto *same = NULL;
    if (svs_stream_save(a, &bytes, &size, &err) == SVS_OK)
        same = svs_stream_load(bytes, size, &err);
    svs_bytes_free(&bytes);
    char one[33], other[33];
    if (!same || svs_stream_hash(a, one, &err) != SVS_OK || svs_stream_hash(same, other, &err) != SVS_OK) {
        fprintf(stderr, "%s\n", err.text);
        svs_stream_free(&a);
        svs_stream_free(&same);
        return 1;
    }
    printf("saved %zu bytes; fingerprints %.8s and %.8s\n", size, one, other);

    const double x[] = {0.9, 1, 0};
    const char *const words[] = {NULL, NULL, "steel"};
    const svs_row row = {.x = x, .d = COLUMNS, .names = names, .words = words};
    svs_outcome out;
    char text[SVS_NAME_MAX];
    if (svs_stream_score(same, &row, &out, &err) == SVS_OK && out.prediction.proba)
        printf("fast, warm, steel: %s, probability %.3f\n",
               svs_value_text(out.prediction.y, text, sizeof text),
               out.prediction.proba[out.prediction.predicted]);
    svs_stream_free(&a);
    svs_stream_free(&same);
    return 0;
}
