/* A program that applies a published model to rows of its own: rows with words, as name=value cells, one row
 * a line. A cell that does not come is missing.
 *
 *     svmstream eval --model-out m.msgpack log.csv
 *     echo "machine=press-03 temperature=21.5" | build/examples/apply m.msgpack
 *
 * Build: cc apply.c $(pkg-config --cflags --libs svmstream) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <svmstream/svmstream.h>

static svs_model *read_model(const char *path, svs_error *err) {
    static char bytes[1 << 20];
    FILE *from = fopen(path, "rb");
    if (!from) {
        perror(path);
        return NULL;
    }
    size_t size = fread(bytes, 1, sizeof bytes, from);
    fclose(from);
    return svs_model_decode(bytes, size, err);
}

/* What reads as a number is one; a column of words takes it as a word all the same. */
static svs_code put_cell(svs_schema *schema, char *cell, svs_error *err) {
    char *value = strchr(cell, '='), *end;
    if (!value)
        return svs_schema_missing(schema, cell, err);
    *value++ = '\0';
    double number = strtod(value, &end);
    return end > value && *end == '\0' ? svs_schema_number(schema, cell, number, err)
                                       : svs_schema_word(schema, cell, value, err);
}

static svs_code put_row(svs_schema *schema, char *line, const double **x, svs_error *err) {
    int d;
    svs_code code = svs_schema_begin(schema, err);
    for (char *cell = strtok(line, " \n"); cell && code == SVS_OK; cell = strtok(NULL, " \n"))
        code = put_cell(schema, cell, err);
    return code == SVS_OK ? svs_schema_end(schema, x, &d, err) : code;
}

static void show(const svs_model *model, const double *x) {
    double *scores = calloc((size_t)model->rows, sizeof *scores);
    char text[256] = "?";
    if (!scores)
        return;
    svs_model_scores(model, x, scores);
    int class = svs_model_predict(model, scores);
    printf("%s %.6f\n", class < 0 ? "-" : svs_value_text(model->classes[class], text, sizeof text),
           scores[0]);
    free(scores);
}

int main(int count, char **words) {
    svs_error err = {.code = SVS_OK};
    char line[4096];
    const double *x = NULL;
    svs_model *model = count == 2 ? read_model(words[1], &err) : NULL;
    svs_schema *schema = model ? svs_schema_of_model(model, &err) : NULL;
    while (schema && fgets(line, sizeof line, stdin)) {
        if (put_row(schema, line, &x, &err) == SVS_OK)
            show(model, x);
        else
            printf("refused: %s\n", err.text);
    }
    if (!schema)
        fprintf(stderr, "apply: %s\n",
                err.code ? err.text : "which model? (a file of svmstream eval --model-out)");
    int status = schema ? 0 : 1;
    svs_schema_free(&schema);
    svs_model_free(&model);
    return status;
}
