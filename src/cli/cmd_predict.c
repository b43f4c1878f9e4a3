/* svmstream predict: a file and a model -> predictions and, where the file has labels, their quality.
 *
 * The model is read first, because it defines the meaning of the file's columns and classes: its classes keep
 * their order, and a label unknown to it counts as wrong. Each row is predicted as it is read, written, and
 * counted in the confusion matrix, from which all figures of classes follow: no row is kept, and a file of
 * any length needs constant memory.
 *
 * Read from the bottom: cmd_predict_work, cmd_predict_all, cmd_predict_row. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/table_in.h"
#include "formats/file_io.h"
#include "formats/model_file.h"
#include "report/class_report.h"
#include "solver/predictor.h"
#include "quality/decision.h"
#include "wire/schema_map.h"

struct predict {
    const struct cli_args *args;
    struct svi_machine machine;
    struct svi_table table;
    struct svi_model_schema schema; /* of the model */
    bool schemed;                   /* rows are read by the model's schema */
    bool zeros;                     /* features that a row does not name are 0 */
    struct svi_progress progress;
    FILE *out;
    bool begun; /* the header, if any, was written */
    svs_task task;
    int class_count, rows, d;
    const svs_value *classes;
    struct svi_predictor predictor;
    struct svi_decision decision;
    double *proba;      /* by class; NULL: not needed */
    int64_t *confusion; /* true class x predicted class */
    struct svi_class_count *counts;
    int64_t labelled, right;
    double squares, sum, sum2;
};

static void know_model(struct predict *p) {
    const svs_model *l = p->machine.linear;
    const svs_kernel_model *k = p->machine.kernel;
    p->task = l ? l->task : SVS_CLASSIFY;
    p->class_count = l ? l->class_count : k->class_count;
    p->classes = l ? l->classes : k->classes;
    p->rows = l ? l->rows : k->rows;
    p->d = l ? l->d : k->support.d;
}

/* True when all columns are numbers that are 0 in rows which do not name them. Then an unknown name has the
 * weight 0, so rows can be read by the names of the features alone, without the schema. */
static bool cmd_predict_zeros(const struct svi_schema *s) {
    bool zeros = s->o.missing == SVI_MISSING_ZERO && !s->calendar_day && !s->calendar_week;
    for (int c = 0; c < svi_schema_columns(s) && zeros; c++)
        zeros = svi_schema_kind(s, c) != SVI_COLUMN_CATEGORY;
    return zeros;
}

/* Decodes the model's schema. A given setting `missing` overrides the model's rule for missing values. */
static svs_code cmd_predict_know_columns(struct predict *p, svs_error *err) {
    const svs_model *l = p->machine.linear;
    const svs_kernel_model *k = p->machine.kernel;
    const uint8_t *at = l ? l->schema : k->schema;
    if (!at)
        return SVS_OK;
    svs_code code = svi_schema_decode(&p->schema, l ? l->features : k->features, p->d, at,
                                      at + (l ? l->schema_size : k->schema_size), err);
    p->zeros = code == SVS_OK && cmd_predict_zeros(&p->schema.schema);
    p->schemed = code == SVS_OK && !p->zeros;
    if (p->schemed && cli_given(p->args, "missing"))
        p->schema.schema.o.missing = (enum svi_missing)p->args->settings.missing;
    return code;
}

static void write_label(FILE *to, svs_value v) {
    if (v.kind == SVS_STR)
        cli_put_text(to, v.as.s, v.length);
    else
        fprintf(to, "%" PRId64, v.as.i);
}

/* With two classes: a positive one-vs-one score means the first class (LIBSVM), any other the second. */
static bool second_is_positive(const struct predict *p) {
    return !p->machine.kernel || p->machine.kernel->decision != SVS_ONE_VS_ONE;
}

/* A model of two classes has one score. It is written for both, with opposite signs, so that each stands
 * below the name of its class. */
static void write_scores(const struct predict *p) {
    const double *s = p->predictor.scores;
    if (p->rows == 1 && p->class_count == 2)
        fprintf(p->out, " %.17g %.17g", second_is_positive(p) ? 0 - s[0] : s[0],
                second_is_positive(p) ? s[0] : 0 - s[0]);
    for (int k = 0; k < p->rows && (p->rows > 1 || p->class_count != 2); k++)
        fprintf(p->out, " %.17g", s[k]);
}

/* True when the option was given and means something: a regression's only score is the prediction itself. */
static bool cmd_predict_shows(const struct predict *p, const char *option) {
    return cli_has(p->args, option) && p->task == SVS_CLASSIFY;
}

/* The class by the score, or by probabilities and the costs of wrong decisions (decision.cost). */
static int cmd_predict_decide(struct predict *p, int by_score) {
    if (!p->proba || !svs_model_probabilities(p->machine.linear, p->predictor.scores, p->proba) ||
        !svi_decision_set_up(&p->decision))
        return by_score;
    return svi_decision_of(&p->decision, p->proba, p->class_count, by_score);
}

/* Writes a line: the prediction ("?": the model knows no class), then the columns of the given options. */
static void write_prediction(const struct predict *p, int predicted) {
    if (p->task == SVS_REGRESS)
        fprintf(p->out, "%.17g", p->predictor.scores[0]);
    else if (predicted < 0)
        fputc('?', p->out);
    else
        write_label(p->out, p->classes[predicted]);
    for (int k = 0; k < p->class_count && cmd_predict_shows(p, "proba"); k++)
        fprintf(p->out, " %.17g", p->proba[k]);
    if (cmd_predict_shows(p, "scores-out"))
        write_scores(p);
    fputc('\n', p->out);
}

/* Sums for the quality. A label unknown to the model has index -1 here; the table has counted it as
 * `strange`, and it is wrong in the accuracy. */
static void cmd_predict_count(struct predict *p, const svs_examples *e, int64_t i, int predicted) {
    if (p->task == SVS_REGRESS) {
        if (isnan(e->target[i]))
            return;
        p->labelled++;
        p->squares += (e->target[i] - p->predictor.scores[0]) * (e->target[i] - p->predictor.scores[0]);
        p->sum += e->target[i];
        p->sum2 += e->target[i] * e->target[i];
    } else if (e->label[i] >= 0) {
        p->labelled++;
        if (p->class_count == 0) /* the model knows no class: label indices are those of the file */
            return;
        p->right += e->label[i] == predicted;
        p->counts[e->label[i]].support++;
        p->counts[e->label[i]].hits += e->label[i] == predicted;
        if (predicted < 0)
            return;
        p->counts[predicted].predicted++;
        p->confusion[e->label[i] * p->class_count + predicted]++;
    }
}

/* The header, "prediction proba:A proba:B score:A score:B". */
static void cmd_predict_write_header(const struct predict *p) {
    const bool pairs = p->rows > 1 && !second_is_positive(p);
    fputs("prediction", p->out);
    for (int k = 0; k < p->class_count && cmd_predict_shows(p, "proba"); k++) {
        fputs(" proba:", p->out);
        write_label(p->out, p->classes[k]);
    }
    for (int k = 0; cmd_predict_shows(p, "scores-out") && k < (pairs ? p->rows : p->class_count); k++) {
        if (pairs) {
            fprintf(p->out, " pair:%d", k);
            continue;
        }
        fputs(" score:", p->out);
        write_label(p->out, p->classes[k]);
    }
    fputc('\n', p->out);
}

static void cmd_predict_row(void *user, const svs_examples *e, int64_t i) {
    struct predict *p = user;
    const int predicted = cmd_predict_decide(p, svi_predictor_row(&p->predictor, &e->rows, i));
    if (!p->begun && (cmd_predict_shows(p, "scores-out") || cmd_predict_shows(p, "proba")))
        cmd_predict_write_header(p);
    p->begun = true;
    write_prediction(p, predicted);
    cmd_predict_count(p, e, i, predicted);
}

/* Reads the rows and predicts each. Three ways to interpret columns: by the model's schema; by the names of
 * its features; by position, when it has no names. */
static svs_code cmd_predict_all(void *user, FILE *to, svs_error *err) {
    struct predict *p = user;
    const svs_model *l = p->machine.linear;
    struct svi_schema_options schema;
    p->out = to;
    struct svi_table_options o = cli_table_options(p->args, &schema, &p->progress);
    o.task = p->task;
    o.unlabelled = true;
    o.reader.label_required = false;
    o.max_features = 1000000;
    o.features = o.name_count = p->d;
    o.known = p->classes;
    o.known_count = p->class_count;
    o.names = l ? l->features : p->machine.kernel->features;
    o.reader.positional = !o.names;
    if (p->schemed) {
        o.model = &p->schema.schema;
        o.means = p->schema.mean;
    } else {
        const bool given = cli_given(p->args, "missing");
        if (p->zeros && !given)
            schema.missing = SVI_MISSING_ZERO;
        o.no_means = !given || (schema.missing != SVI_MISSING_MEAN && schema.missing != SVI_MISSING_AUTO);
    }
    const svs_code code = svi_table_each(&p->table, p->args->positional[0], &o, cmd_predict_row, p, err);
    svi_progress_end(&p->progress);
    cli_report_dropped(p->args, &p->table);
    return code;
}

/* ---- the report at the end */

static void cmd_predict_print_quality(const struct predict *p, FILE *to) {
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
    const struct svi_class_table classes = {
        .count = p->class_count, .classes = p->classes, .all = p->counts, .confusion = p->confusion};
    svi_class_report_write(to, &classes, -1);
    if (cli_has(p->args, "confusion"))
        svi_class_report_confusion(to, &classes);
}

static void report_differences(const struct predict *p) {
    if (p->table.strange > 0)
        cli_fail(p->args,
                 "%" PRId64 " rows have a label that the model does not know; they count as wrong in the "
                 "accuracy, and are not in the table",
                 p->table.strange);
    if (p->table.examples.rows.d > p->d)
        cli_fail(p->args,
                 "the file has %d features and the model %d: features that only one of them has are ignored",
                 p->table.examples.rows.d, p->d);
}

/* Prepares probabilities if --proba or decision.cost needs them. */
static svs_code cmd_predict_know_probabilities(struct predict *p, svs_error *err) {
    struct svi_decision_cost cost;
    const char *prices = p->args->settings.decision_cost;
    svs_code code = svi_decision_cost_parse(&cost, prices, err);
    const char *needed_by = cost.count > 0 ? "decision.cost" : "proba";
    if (code != SVS_OK || (cost.count == 0 && !cli_has(p->args, "proba")))
        return code;
    if (p->task == SVS_REGRESS)
        return svi_fail(err, SVS_SETTING, "the model is a regression: --%s is for classes", needed_by);
    if (!p->machine.linear || !(p->machine.linear->calibration.a > 0))
        return svi_fail(
            err, SVS_UNAVAILABLE,
            "--%s needs probabilities, which this model lacks: train it with `svmstream train -b 1`, use a "
            "model of `svmstream run` or `eval`, or write decision values with --scores-out",
            needed_by);
    p->proba = svi_alloc_array((size_t)p->class_count, sizeof *p->proba);
    code = p->proba ? svi_decision_new(&p->decision, p->class_count, err)
                    : svi_fail_memory(err, "probabilities");
    if (code != SVS_OK)
        return code;
    svi_decision_set(&p->decision, prices);
    for (int k = 0; k < p->class_count; k++)
        svi_decision_know(&p->decision, p->classes[k]);
    return SVS_OK;
}

static const char *cmd_predict_output(const struct cli_args *a) {
    return a->positional_count > 2 ? a->positional[2] : "-";
}

static svs_code cmd_predict_work(struct predict *p, svs_error *err) {
    const char *output = cmd_predict_output(p->args);
    svs_code code = svi_machine_read(&p->machine, p->args->positional[1], err);
    if (code != SVS_OK)
        return code;
    know_model(p);
    if (p->task == SVS_REGRESS && (cli_has(p->args, "scores-out") || cli_has(p->args, "confusion")))
        return svi_fail(err, SVS_SETTING, "the model is a regression: --%s is for classes",
                        cli_has(p->args, "scores-out") ? "scores-out" : "confusion");
    code = cmd_predict_know_probabilities(p, err);
    if (code == SVS_OK)
        code = cmd_predict_know_columns(p, err);
    if (code == SVS_OK)
        code = svi_predictor_init(&p->predictor, p->machine.linear, p->machine.kernel, err);
    const size_t capacity = (size_t)p->class_count + 1;
    if (code == SVS_OK && (!(p->confusion = svi_alloc_array(capacity, capacity * sizeof *p->confusion)) ||
                           !(p->counts = svi_alloc_array(capacity, sizeof *p->counts))))
        code = svi_fail_memory(err, "the predictions");
    if (code == SVS_OK)
        code = svi_file_write(output, cmd_predict_all, p, err);
    if (code == SVS_OK && !p->args->quiet) {
        report_differences(p);
        cmd_predict_print_quality(p, strcmp(output, "-") == 0 ? stderr : stdout);
    }
    return code;
}

static int cmd_predict_run(const struct cli_args *a) {
    const bool shown = strcmp(cmd_predict_output(a), "-") == 0 && isatty(STDOUT_FILENO);
    struct predict p = {.args = a};
    svs_error err = {0};
    svi_large_blocks_apart();
    svi_progress_begin(&p.progress, a->quiet || shown); /* a terminal shows the rows themselves */
    svs_code code = cmd_predict_work(&p, &err);
    svi_predictor_clear(&p.predictor);
    svi_decision_free(&p.decision);
    svi_free(p.proba);
    svi_free(p.confusion);
    svi_free(p.counts);
    svi_table_clear(&p.table);
    svi_model_schema_clear(&p.schema);
    svi_machine_clear(&p.machine);
    return cli_end(a, code, &err);
}

static const struct cli_option options[] = {
    CLI_OPTION("proba", 'b', CLI_0_1, NULL,
               "write the probability of each class after each prediction, below a line that names them; the "
               "model needs a calibration (`train -b 1`, `run`, `eval`)"),
    CLI_OPTION("scores-out", 0, CLI_0_1, NULL,
               "write the decision values after each prediction, below a line that names them"),
    CLI_SWITCH("confusion", 0, "print the confusion matrix"), CLI_END};

const struct cli_command cli_predict = {
    .name = "predict",
    .text = "predict the rows of a file with a trained model",
    .usage = "FILE MODEL [OUTPUT]",
    .help =
        "Writes one prediction per line to OUTPUT, and the quality to standard output. Without OUTPUT the\n"
        "predictions go to standard output, and the quality to standard error. MODEL is a file of\n"
        "`train`, of LIBLINEAR or of LIBSVM, or a saved model event. It matches columns by name where\n"
        "file and model have names, and by position otherwise. It predicts rows as it reads them, and\n"
        "writes no OUTPUT after an invalid row. A model of a log accepts logs, with words, times and\n"
        "missing values (`svmstream help training`).\n"
        "\n"
        "Examples:\n"
        "  svmstream predict a9a.t.svm a9a.model a9a.out\n"
        "  svmstream predict -b 1 new.csv weather.model",
    .keys =
        "decision.cost label id ts ts.format weight columns no-header ignore missing missing.words in.format",
    .options = options,
    .unchecked = true,
    .run = cmd_predict_run};
