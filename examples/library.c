/* A program that uses the library alone, no sockets: it reads a CSV file whose last column is a 0/1 label,
 * predicts each row before it learns it, takes one row out again, and prints the model.
 *
 *     zcat examples/occupancy.csv.gz | build/examples/library
 *
 * Build: cc library.c $(pkg-config --cflags --libs svmstream) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <svmstream/svmstream.h>

enum { COLUMNS = 64 };

/* The numbers of one CSV line; returns how many. */
static int numbers(char *line, double *out) {
    int count = 0;
    for (char *cell = strtok(line, ",\n"); cell && count < COLUMNS; cell = strtok(NULL, ",\n"))
        out[count++] = strtod(cell, NULL);
    return count;
}

/* Feeds standard input to the learner, every row with its number as id; returns the rows, or -1. */
static long learn_all(svs_learner **learner, long *right, svs_error *err) {
    char line[4096];
    double cell[COLUMNS];
    long rows = 0;
    if (!fgets(line, sizeof line, stdin)) /* the names of the columns */
        return 0;
    while (fgets(line, sizeof line, stdin)) {
        int columns = numbers(line, cell);
        if (!*learner) {
            svs_options options;
            svs_options_default(&options);
            if (!(*learner = svs_learner_new(&options, columns - 1, err)))
                return -1;
        }
        svs_sample sample = {.x = cell,
                             .d = columns - 1,
                             .id = svs_int(rows),
                             .y = svs_int((int64_t)cell[columns - 1]),
                             .weight = 1};
        svs_step step;
        if (svs_learner_step(*learner, &sample, (double)rows, &step, err) != SVS_OK)
            return -1;
        *right += step.predicted == step.label;
        rows++;
    }
    return rows;
}

static int show(svs_learner *learner, svs_error *err) {
    svs_model model;
    if (svs_learner_model(learner, &model, err) != SVS_OK)
        return 1;
    printf("model %llu: bias %.6g, weights", (unsigned long long)model.version, model.b[0]);
    for (int j = 0; j < model.d; j++)
        printf(" %.6g", model.W[j]);
    printf("\n");
    return 0;
}

static int story(svs_learner **learner, svs_error *err) {
    long right = 0, rows = learn_all(learner, &right, err);
    if (rows < 1)
        return 1;
    printf("accuracy %.4f over %ld rows, each predicted before it was learned\n",
           (double)right / (double)rows, rows);
    if (show(*learner, err) != 0)
        return 1;
    int count = 0;
    if (svs_learner_forget(*learner, svs_int(rows - 10), (double)rows, &count, err) != SVS_OK)
        return 1;
    printf("forgot row %ld: %d sample taken out; the model is as if it had never been there\n", rows - 10,
           count);
    if (show(*learner, err) != 0)
        return 1;
    double off = svs_learner_check(*learner);
    printf("difference to a fresh solve on what is held: %s\n",
           off >= 0 && off <= 1e-8 ? "below 1e-8" : "TOO LARGE");
    return off >= 0 && off <= 1e-8 ? 0 : 1;
}

int main(void) {
    svs_learner *learner = NULL;
    svs_error err = {.code = SVS_OK};
    int status = story(&learner, &err);
    if (err.code != SVS_OK)
        fprintf(stderr, "library: %s\n", err.text);
    else if (!learner)
        fprintf(stderr, "library: no rows on standard input\n");
    svs_learner_free(&learner);
    return status;
}
