/* svmstream predict: a file and a model -> predictions and, where labels are there, their quality. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "data/table.h"
#include "wire/model_file.h"

struct predict {
    const struct cli_args *args;
    struct svi_machine machine;
    struct svi_table table;
    struct cli_progress progress;
    FILE *out; /* NULL = predictions are not wanted */
    svs_task task;
    int class_count, rows, d;
    const svs_value *classes;
    double *row, *work, *scores;
    int64_t *confusion; /* true class x predicted class */
    int64_t labelled, right;
    double squares, sum, sum2;
};

static void show_reading(void *user, int64_t rows, int64_t position, int64_t size) {
    struct predict *p = user;
    cli_progress_show(&p->progress, rows, (double)position, (double)size, "reading");
}

static void know_model(struct predict *p) {
    const svs_model *l = p->machine.linear;
    const svs_kernel_model *k = p->machine.kernel;
    p->task = l ? l->task : SVS_CLASSIFY;
    p->class_count = l ? l->class_count : k->class_count;
    p->classes = l ? l->classes : k->classes;
    p->rows = l ? l->rows : k->rows;
    p->d = l ? l->d : k->support.d;
}

static svs_code read_rows(struct predict *p, svs_error *err) {
    const struct svi_settings *s = &p->args->settings;
    const svs_model *l = p->machine.linear;
    const struct svi_table_options o = {.reader = {.format = s->in_format,
                                                   .label = s->label,
                                                   .weight = s->weight[0] ? s->weight : NULL,
                                                   .id = s->id[0] ? s->id : NULL,
                                                   .ts = s->ts[0] ? s->ts : NULL},
                                        .task = p->task,
                                        .unlabelled = true,
                                        .max_features = 1000000,
                                        .features = p->d,
                                        .known = p->classes,
                                        .known_count = p->class_count,
                                        .names = l && l->features ? l->features : NULL,
                                        .name_count = p->d,
                                        .progress = show_reading,
                                        .user = p};
    return svi_table_read(&p->table, p->args->positional[0], &o, err);
}

static svs_code reserve(struct predict *p, svs_error *err) {
    const int64_t vectors = p->machine.kernel ? p->machine.kernel->support.n : 0;
    const size_t k = (size_t)p->class_count + 1;
    p->row = svi_alloc_array((size_t)p->table.examples.rows.d, sizeof *p->row);
    p->work = svi_alloc_array((size_t)vectors + (size_t)p->d, sizeof *p->work);
    p->scores = svi_alloc_array((size_t)p->rows + 1, sizeof *p->scores);
    p->confusion = svi_alloc_array(k * k, sizeof *p->confusion);
    return p->row && p->work && p->scores && p->confusion ? SVS_OK : svi_fail_memory(err, "the predictions");
}

static int predict_row(struct predict *p, int64_t i) {
    const svs_rows *rows = &p->table.examples.rows;
    if (p->machine.kernel) {
        svs_kernel_scores(p->machine.kernel, rows, i, p->work, p->scores);
        return svs_kernel_predict(p->machine.kernel, p->scores);
    }
    svs_rows_copy(rows, i, p->row);
    svs_model_scores(p->machine.linear, p->row, p->scores);
    return svs_model_predict(p->machine.linear, p->scores);
}

static void write_label(FILE *to, svs_value v) {
    if (v.kind == SVS_STR)
        fprintf(to, "%.*s", (int)v.length, v.as.s);
    else
        fprintf(to, "%" PRId64, v.as.i);
}

static void write_prediction(const struct predict *p, int predicted) {
    if (p->task == SVS_REGRESS)
        fprintf(p->out, "%.17g", p->scores[0]);
    else if (predicted < 0)
        fputc('?', p->out);
    else
        write_label(p->out, p->classes[predicted]);
    for (int k = 0; k < p->rows && cli_has(p->args, "scores-out") && p->task == SVS_CLASSIFY; k++)
        fprintf(p->out, " %.17g", p->scores[k]);
    fputc('\n', p->out);
}

static void count(struct predict *p, int64_t i, int predicted) {
    const svs_examples *e = &p->table.examples;
    if (p->task == SVS_REGRESS) {
        if (isnan(e->target[i]))
            return;
        p->labelled++;
        p->squares += (e->target[i] - p->scores[0]) * (e->target[i] - p->scores[0]);
        p->sum += e->target[i];
        p->sum2 += e->target[i] * e->target[i];
    } else if (e->label[i] >= 0) {
        p->labelled++;
        p->right += e->label[i] == predicted;
        p->confusion[e->label[i] * p->class_count + (predicted < 0 ? 0 : predicted)]++;
    }
}

/* "scores A B": what the columns behind a prediction are. A single one is positive for the class that it
 * names. */
static void write_header(const struct predict *p) {
    const svs_kernel_model *k = p->machine.kernel;
    fputs("prediction", p->out);
    if (p->rows == 1) {
        fputs(" score:", p->out);
        write_label(p->out, p->classes[k && k->decision == SVS_ONE_VS_ONE ? 0 : p->class_count - 1]);
    } else {
        for (int r = 0; r < p->rows; r++) {
            if (k && k->decision == SVS_ONE_VS_ONE) {
                fprintf(p->out, " pair:%d", r);
                continue;
            }
            fputs(" score:", p->out);
            write_label(p->out, p->classes[r]);
        }
    }
    fputc('\n', p->out);
}

/* ---- what is said at the end */

static void print_class(const struct predict *p, FILE *to, int k) {
    int64_t support = 0, predicted = 0, hit = p->confusion[k * p->class_count + k];
    char label[4 * SVS_NAME_MAX + 4];
    for (int j = 0; j < p->class_count; j++) {
        support += p->confusion[k * p->class_count + j];
        predicted += p->confusion[j * p->class_count + k];
    }
    double precision = predicted ? (double)hit / (double)predicted : 0,
           recall = support ? (double)hit / (double)support : 0;
    fprintf(to, "%-16s %9.4f %9.4f %9.4f %10" PRId64 "\n", svs_value_text(p->classes[k], label, sizeof label),
            precision, recall, precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0,
            support);
}

static void print_confusion(const struct predict *p, FILE *to) {
    char label[4 * SVS_NAME_MAX + 4];
    fprintf(to, "%-16s", "true \\ predicted");
    for (int k = 0; k < p->class_count; k++)
        fprintf(to, " %10.10s", svs_value_text(p->classes[k], label, sizeof label));
    fputc('\n', to);
    for (int k = 0; k < p->class_count; k++) {
        fprintf(to, "%-16s", svs_value_text(p->classes[k], label, sizeof label));
        for (int j = 0; j < p->class_count; j++)
            fprintf(to, " %10" PRId64, p->confusion[k * p->class_count + j]);
        fputc('\n', to);
    }
}

static void print_quality(const struct predict *p, FILE *to) {
    if (p->labelled == 0)
        return;
    if (p->task == SVS_REGRESS) {
        double n = (double)p->labelled, spread = p->sum2 - p->sum * p->sum / n;
        fprintf(to, "rmse = %g  r2 = %g (%" PRId64 " rows)\n", sqrt(p->squares / n),
                spread > 0 ? 1 - p->squares / spread : NAN, p->labelled);
        return;
    }
    int64_t all = p->labelled + p->table.strange;
    fprintf(to, "Accuracy = %g%% (%" PRId64 "/%" PRId64 ")\n", 100 * (double)p->right / (double)all, p->right,
            all);
    fprintf(to, "%-16s %9s %9s %9s %10s\n", "class", "precision", "recall", "f1", "rows");
    for (int k = 0; k < p->class_count; k++)
        print_class(p, to, k);
    if (cli_has(p->args, "confusion"))
        print_confusion(p, to);
}

static void tell_differences(const struct predict *p) {
    if (p->table.strange > 0)
        fprintf(stderr,
                "svmstream predict: %" PRId64
                " rows have a label that the model does not know; they count as wrong\n",
                p->table.strange);
    if (p->table.examples.rows.d > p->d)
        fprintf(stderr,
                "svmstream predict: the file has %d features, the model %d; the others count for nothing\n",
                p->table.examples.rows.d, p->d);
}

static svs_code predict_all(struct predict *p, svs_error *err) {
    if (p->out && cli_has(p->args, "scores-out") && p->task == SVS_CLASSIFY)
        write_header(p);
    for (int64_t i = 0; i < p->table.examples.rows.n; i++) {
        int predicted = predict_row(p, i);
        if (p->out)
            write_prediction(p, predicted);
        count(p, i, predicted);
    }
    if (p->out && (fflush(p->out) != 0 || ferror(p->out)))
        return svi_fail(err, SVS_IO, "the predictions could not be written: is the disk full?");
    return SVS_OK;
}

static svs_code open_output(struct predict *p, svs_error *err) {
    const char *path = p->args->positional_count > 2 ? p->args->positional[2] : "-";
    p->out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    return p->out ? SVS_OK : svi_fail(err, SVS_IO, "%.150s: %s", path, strerror(errno));
}

static svs_code work(struct predict *p, svs_error *err) {
    svs_code code = svi_machine_read(&p->machine, p->args->positional[1], err);
    if (code != SVS_OK)
        return code;
    know_model(p);
    code = read_rows(p, err);
    if (code == SVS_OK)
        code = reserve(p, err);
    if (code == SVS_OK)
        code = open_output(p, err);
    cli_progress_end(&p->progress);
    if (code == SVS_OK)
        code = predict_all(p, err);
    if (code == SVS_OK && !p->args->quiet)
        tell_differences(p);
    if (code == SVS_OK && !p->args->quiet)
        print_quality(p, p->out == stdout ? stderr : stdout);
    return code;
}

static int run(const struct cli_args *a) {
    struct predict p = {.args = a};
    svs_error err = {0};
    cli_progress_begin(&p.progress, a->quiet);
    svs_code code = work(&p, &err);
    cli_progress_end(&p.progress);
    if (p.out && p.out != stdout && fclose(p.out) != 0 && code == SVS_OK)
        code = svi_fail(&err, SVS_IO, "%.150s: %s", a->positional[2], strerror(errno));
    svi_free(p.row);
    svi_free(p.work);
    svi_free(p.scores);
    svi_free(p.confusion);
    svi_table_clear(&p.table);
    svi_machine_clear(&p.machine);
    return code == SVS_OK ? CLI_OK : cli_error(a, &err);
}

static const struct cli_option options[] = {
    {"scores-out", 'b', NULL, NULL,
     "write the decision values behind each prediction, under a line that names them"},
    {"confusion", 0, NULL, NULL, "print how often each class was taken for each other"},
    {NULL, 0, NULL, NULL, NULL}};

const struct cli_command cli_predict = {.name = "predict",
                                        .text = "predict the rows of a file with a trained model",
                                        .usage = "FILE MODEL [OUTPUT]",
                                        .help = "Writes one prediction a line to OUTPUT and the quality to "
                                                "standard output; without OUTPUT the predictions go to\n"
                                                "standard output and the quality to standard error. MODEL is "
                                                "a file of `train`, of LIBLINEAR or of LIBSVM, or a\n"
                                                "model event that was saved. Columns are matched by name "
                                                "where file and model have names, by place otherwise.\n"
                                                "\n"
                                                "  svmstream predict a9a.t.svm a9a.model a9a.out\n"
                                                "  svmstream predict -b new.csv weather.model",
                                        .keys = "label in.format",
                                        .options = options,
                                        .positional_min = 2,
                                        .positional_max = 3,
                                        .unchecked = true,
                                        .run = run};
