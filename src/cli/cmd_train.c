/* svmstream train: a file of examples -> a model file, cross-validation, or a search for C. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/nearest.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "data/table.h"
#include "wire/model_file.h"

struct train {
    const struct cli_args *args;
    svs_train_options o;
    struct svi_table table;
    double *class_weight;
    struct cli_progress progress;
    double first_gap, first_time; /* of the solver at work, for the ETA */
    svs_solver at_work;
    int64_t folds;
};

/* ---- options */

static int unknown_word(const struct cli_args *a, const char *option, const char *value,
                        const char *const *words) {
    const char *nearest = svi_nearest(value, words);
    return cli_usage(a, "--%s %s is not known; %s%s", option, value,
                     nearest ? "the nearest known one is " : "", nearest ? nearest : "see --help");
}

static int take_solver(struct train *t) {
    const char *names[SVS_SOLVER_COUNT + 1] = {NULL};
    const char *name = cli_value(t->args, "solver");
    t->o.solve.solver = svs_solver_find(name);
    for (int s = 0; s < SVS_SOLVER_COUNT; s++)
        names[s] = svs_solver_name((svs_solver)s);
    return t->o.solve.solver == SVS_SOLVER_COUNT ? unknown_word(t->args, "solver", name, names) : CLI_OK;
}

static int take_kernel(struct train *t) {
    static const char *const names[] = {"linear", "polynomial", "rbf", NULL};
    const char *name = cli_value(t->args, "kernel");
    int kind = 0;
    while (names[kind] && strcmp(names[kind], name) != 0 && !(name[0] == '0' + kind && !name[1]))
        kind++;
    if (!names[kind])
        return unknown_word(t->args, "kernel", name, names);
    int64_t degree;
    t->o.kernel.kind = (svs_kernel_kind)kind;
    if (!cli_number(t->args, "gamma", 0, 1e300, &t->o.kernel.gamma) ||
        !cli_number(t->args, "coef0", -1e300, 1e300, &t->o.kernel.coef0) ||
        !cli_integer(t->args, "degree", 1, 20, &degree))
        return CLI_USAGE;
    t->o.kernel.degree = (int)degree;
    return CLI_OK;
}

/* The loss that a solver is for, unless one is named. */
static const char *usual_loss(const struct train *t) {
    switch (t->o.solve.solver) {
    case SVS_SOLVER_ALSVM:
    case SVS_SOLVER_FALSVM:
    case SVS_SOLVER_SGD_LSSVM:
        return "squared";
    case SVS_SOLVER_NESVM:
    case SVS_SOLVER_ALFPGM:
        return "l1";
    default:
        return t->o.kernel.kind == SVS_LINEAR && t->o.penalty == SVS_L2 ? "l2" : "l1";
    }
}

/* l1, l2, squared, or a number from 1 to 2. */
static bool read_loss(const char *word, svs_loss *loss, double *p) {
    char *end;
    bool squared = strcmp(word, "squared") == 0;
    *loss = squared ? SVS_SQUARED : SVS_HINGE;
    if (squared || strcmp(word, "l1") == 0 || strcmp(word, "l2") == 0) {
        *p = strcmp(word, "l1") == 0 ? 1 : 2;
        return true;
    }
    *p = strtod(word, &end);
    return end != word && !*end && *p >= 1 && *p <= 2;
}

static int take_loss(struct train *t) {
    const struct cli_args *a = t->args;
    const bool regress = a->settings.task == SVS_REGRESS;
    const char *loss = cli_has(a, "loss") ? cli_value(a, "loss") : regress ? "squared" : usual_loss(t);
    if (!read_loss(loss, &t->o.loss, &t->o.p))
        return cli_usage(a, "--loss is l1, l2, squared or a number from 1 to 2, not %s", loss);
    if (regress && t->o.loss != SVS_SQUARED)
        return cli_usage(a, "--loss %s is for classes: with --task regress it is squared", loss);
    return CLI_OK;
}

static int take_penalty(struct train *t) {
    const char *penalty = cli_value(t->args, "penalty");
    if (strcmp(penalty, "l1") != 0 && strcmp(penalty, "l2") != 0)
        return cli_usage(t->args, "--penalty is l1 or l2, not %s", penalty);
    t->o.penalty = strcmp(penalty, "l1") == 0 ? SVS_L1 : SVS_L2;
    return CLI_OK;
}

static int take_bias(struct train *t) {
    const char *bias = cli_value(t->args, "bias");
    const bool wants_free =
        t->o.solve.solver == SVS_SOLVER_ALFPGM || (t->o.kernel.kind != SVS_LINEAR && t->o.loss == SVS_HINGE);
    char *end;
    if (strcmp(bias, "free") == 0 || (!cli_has(t->args, "bias") && wants_free)) {
        t->o.bias = SVS_BIAS_FREE;
        return CLI_OK;
    }
    t->o.bias_value = strtod(bias, &end);
    if (end == bias || *end || !isfinite(t->o.bias_value))
        return cli_usage(t->args, "--bias is a number (0 or less: none) or free, not %s", bias);
    t->o.bias = t->o.bias_value > 0 ? SVS_BIAS_APPENDED : SVS_BIAS_NONE;
    return CLI_OK;
}

static int take_numbers(struct train *t) {
    const struct cli_args *a = t->args;
    int64_t pairs, iterations;
    t->o.C = a->settings.C;
    if (cli_has(a, "cost") && !cli_number(a, "cost", 1e-300, 1e300, &t->o.C))
        return CLI_USAGE;
    if (!cli_number(a, "tol", 1e-15, 1, &t->o.solve.tol) ||
        !cli_number(a, "cache", 1, 1e9, &t->o.solve.cache_mib) ||
        !cli_number(a, "max-seconds", 0, 1e9, &t->o.solve.max_seconds) ||
        !cli_number(a, "mu", 0, 1e300, &t->o.solve.mu) ||
        !cli_integer(a, "max-iterations", 0, INT64_MAX, &iterations) ||
        !cli_integer(a, "pairs", 1, 5000, &pairs) || !cli_integer(a, "folds", 0, 1000000, &t->folds))
        return CLI_USAGE;
    t->o.solve.max_iterations = iterations;
    t->o.solve.pairs = (int)pairs;
    t->o.solve.limiter = cli_has(a, "limiter");
    t->o.solve.finish = !cli_has(a, "no-finish");
    t->o.solve.seed = (uint64_t)a->settings.seed;
    t->o.scale = cli_given(a, "scale") && a->settings.scale == SVS_SCALE_STANDARD;
    return CLI_OK;
}

static int take_options(struct train *t) {
    svs_train_options_default(&t->o);
    int code = take_solver(t);
    if (code == CLI_OK)
        code = take_penalty(t);
    if (code == CLI_OK)
        code = take_kernel(t);
    if (code == CLI_OK)
        code = take_loss(t);
    if (code == CLI_OK)
        code = take_bias(t);
    return code == CLI_OK ? take_numbers(t) : code;
}

static int take_format(const struct cli_args *a, enum svi_model_format *format) {
    static const char *const names[] = {"own", "liblinear", "libsvm", NULL};
    const char *name = cli_value(a, "format");
    for (int f = 0; names[f]; f++)
        if (strcmp(names[f], name) == 0) {
            *format = (enum svi_model_format)f;
            return CLI_OK;
        }
    return unknown_word(a, "format", name, names);
}

/* The first "LABEL:WEIGHT" of a list: the length of the label, and the rest of the list. 0: it is none. */
static size_t read_weight(const char *list, double *weight, const char **rest) {
    size_t length = strcspn(list, ",");
    char *end = NULL;
    const char *colon = memchr(list, ':', length);
    for (const char *next = colon; next; next = memchr(next + 1, ':', length - (size_t)(next + 1 - list)))
        colon = next; /* the last one: a label may hold colons itself */
    *weight = colon ? strtod(colon + 1, &end) : 0;
    *rest = list + length + (list[length] == ',');
    return end == list + length && *weight > 0 && isfinite(*weight) ? (size_t)(colon - list) : 0;
}

/* Before a long file is read for nothing. */
static int check_weights(const struct cli_args *a) {
    const char *at = cli_value(a, "weights");
    double weight;
    if (at && !*at)
        return cli_usage(a, "--weights takes LABEL:WEIGHT,...");
    for (const char *rest; at && *at; at = rest)
        if (read_weight(at, &weight, &rest) == 0)
            return cli_usage(a, "--weights takes LABEL:WEIGHT,... with weights above 0, not '%.60s'", at);
    return CLI_OK;
}

static int find_label(const svs_examples *e, const char *label, size_t length) {
    char text[4 * SVS_NAME_MAX + 4];
    for (int k = 0; k < e->class_count; k++) {
        svs_value_text(e->classes[k], text, sizeof text);
        if (strlen(text) == length && memcmp(text, label, length) == 0)
            return k;
    }
    return -1;
}

/* The labels are known only when the file was read. */
static svs_code take_weights(struct train *t, svs_error *err) {
    const svs_examples *e = &t->table.examples;
    const char *at = cli_value(t->args, "weights");
    if (!at)
        return SVS_OK;
    t->class_weight = svi_alloc_array((size_t)e->class_count + 1, sizeof *t->class_weight);
    if (!t->class_weight)
        return svi_fail_memory(err, "the class weights");
    for (int k = 0; k < e->class_count; k++)
        t->class_weight[k] = 1;
    for (const char *rest; *at; at = rest) {
        double weight;
        size_t length = read_weight(at, &weight, &rest);
        int k = find_label(e, at, length);
        if (k < 0)
            return svi_fail(err, SVS_INVALID, "--weights names the label %.*s, which the file does not have",
                            (int)length, at);
        t->class_weight[k] = weight;
    }
    t->o.class_weight = t->class_weight;
    return SVS_OK;
}

/* ---- progress */

static bool show_progress(void *user, const svs_progress *p) {
    struct train *t = user;
    char line[160], eta[32] = "";
    if (!t->progress.on)
        return true;
    if (p->iteration <= 1 || p->solver != t->at_work) {
        t->at_work = p->solver;
        t->first_gap = NAN;
    }
    if (!isnan(p->gap) && isnan(t->first_gap)) {
        t->first_gap = p->gap;
        t->first_time = p->seconds;
    }
    double goal = t->o.solve.tol * p->objective, done = log(t->first_gap / p->gap), left = log(p->gap / goal);
    if (p->gap > 0 && done > 0 && left > 0)
        snprintf(eta, sizeof eta, "  ETA %.1f s", (p->seconds - t->first_time) * left / done);
    snprintf(line, sizeof line, "%s  iteration %" PRId64 "  objective %.8g  gap %.2g  %.1f s%s",
             svs_solver_name(p->solver), p->iteration, p->objective, p->gap / p->objective, p->seconds, eta);
    cli_progress_line(&t->progress, line);
    return true;
}

static void show_reading(void *user, int64_t rows, int64_t position, int64_t size) {
    struct train *t = user;
    cli_progress_show(&t->progress, rows, (double)position, (double)size, "reading");
}

/* ---- the work */

static svs_code read_examples(struct train *t, svs_error *err) {
    const struct svi_settings *s = &t->args->settings;
    const struct svi_table_options o = {
        .reader = {.format = s->in_format,
                   .label = s->label,
                   .label_required = true,
                   .weight = s->weight[0] ? s->weight : NULL,
                   .id = s->id[0] ? s->id : NULL,
                   .ts = s->ts[0] ? s->ts : NULL},
        .task = (svs_task)s->task,
        .max_features = cli_given(t->args, "max.features") ? (int)s->max_features : 1000000,
        .progress = show_reading,
        .user = t};
    return svi_table_read(&t->table, t->args->positional[0], &o, err);
}

static double training_quality(const struct train *t, const svs_trained *m, svs_error *err, svs_code *code) {
    const svs_examples *e = &t->table.examples;
    const int64_t vectors = m->kernel ? m->kernel->support.n : 0;
    double *row = svi_alloc_array((size_t)e->rows.d, sizeof *row);
    double *work = svi_alloc_array((size_t)vectors + (size_t)e->rows.d, sizeof *work);
    double *scores = svi_alloc_array((size_t)e->class_count + 1, sizeof *scores), right = 0, squares = 0;
    *code = row && work && scores ? SVS_OK : svi_fail_memory(err, "the predictions");
    for (int64_t i = 0; i < e->rows.n && *code == SVS_OK; i++) {
        if (m->kernel) {
            svs_kernel_scores(m->kernel, &e->rows, i, work, scores);
            right += svs_kernel_predict(m->kernel, scores) == e->label[i];
            continue;
        }
        svs_rows_copy(&e->rows, i, row);
        svs_model_scores(m->linear, row, scores);
        if (e->task == SVS_REGRESS)
            squares += (scores[0] - e->target[i]) * (scores[0] - e->target[i]);
        else
            right += svs_model_predict(m->linear, scores) == e->label[i];
    }
    svi_free(row);
    svi_free(work);
    svi_free(scores);
    return e->task == SVS_REGRESS ? sqrt(squares / (double)e->rows.n) : right / (double)e->rows.n;
}

static void print_solution(const struct train *t, const svs_trained *m, int k) {
    const svs_solution *s = &m->solutions[k];
    char label[4 * SVS_NAME_MAX + 4] = "";
    if (m->count > 1)
        svs_value_text(t->table.examples.classes[k], label, sizeof label);
    fprintf(stderr, "%s%s%s: objective %.9g  gap %.2g  iterations %" PRId64 "  %.3f s  %s\n",
            svs_solver_name(s->solver), m->count > 1 ? " " : "", label, s->objective,
            isfinite(s->gap) ? s->gap / s->objective : NAN, s->iterations, s->seconds,
            svs_stop_text(s->stop));
    if (s->note[0] && (k == 0 || !s->converged))
        fprintf(stderr, "  %s\n", s->note);
}

static void print_data(const svs_examples *e) {
    fprintf(stderr, "%" PRId64 " example%s, %d feature%s, ", e->rows.n, e->rows.n == 1 ? "" : "s", e->rows.d,
            e->rows.d == 1 ? "" : "s");
    if (e->task == SVS_CLASSIFY)
        fprintf(stderr, "%d classes, ", e->class_count);
    if (e->rows.dense)
        fprintf(stderr, "dense\n");
    else
        fprintf(stderr, "sparse: %.3g%% of the values are not 0\n",
                100 * (double)svs_rows_stored(&e->rows) / ((double)e->rows.n * e->rows.d));
}

static void print_summary(const struct train *t, const svs_trained *m, double quality) {
    const svs_examples *e = &t->table.examples;
    print_data(e);
    for (int k = 0; k < m->count; k++)
        print_solution(t, m, k);
    if (m->kernel)
        fprintf(stderr, "support vectors %" PRId64 "\n", m->kernel->support.n);
    if (e->task == SVS_REGRESS)
        fprintf(stderr, "training rmse %.4g\n", quality);
    else
        fprintf(stderr, "training accuracy %.4f\n", quality);
}

static const char *advice(const svs_solution *s, bool kernel) {
    if (s->stop == SVS_STOP_ITERATIONS)
        return "give more --max-iterations, or a larger --tol";
    if (s->stop == SVS_STOP_SECONDS)
        return "give more --max-seconds, or a larger --tol";
    return kernel ? "scale the data, or give a larger --tol"
                  : "try --scale standard, -s newton, or a larger --tol";
}

static void warn(const struct train *t, const svs_trained *m) {
    const svs_solution *worst = NULL;
    int open = 0;
    for (int k = 0; k < m->count; k++) {
        const svs_solution *s = &m->solutions[k];
        open += !s->converged;
        if (!s->converged && (!worst || s->gap / s->objective > worst->gap / worst->objective))
            worst = s;
    }
    if (worst)
        fprintf(stderr,
                "svmstream train: WARNING: %d of %d problems did not converge to --tol %g (gap %.2g of the "
                "objective); the model is written all the same: %s\n",
                open, m->count, t->o.solve.tol, worst->gap / worst->objective, advice(worst, m->kernel));
}

/* PATH/NAME.svm.gz -> NAME.svm.gz.model, in the working directory as LIBLINEAR does. */
static void default_model(const char *file, char *out, size_t size) {
    const char *slash = strrchr(file, '/'), *name = strcmp(file, "-") == 0 ? "stdin"
                                                    : slash                ? slash + 1
                                                                           : file;
    snprintf(out, size, "%s.model", name);
}

static svs_code train_model(struct train *t, enum svi_model_format format, svs_error *err) {
    svs_trained m = {0};
    char path[4096];
    svs_code code = svs_train(&t->table.examples, &t->o, NULL, &m, err);
    cli_progress_end(&t->progress);
    if (code != SVS_OK)
        return code;
    if (t->args->positional_count > 1)
        snprintf(path, sizeof path, "%s", t->args->positional[1]);
    else
        default_model(t->args->positional[0], path, sizeof path);
    const struct svi_machine machine = {m.linear, m.kernel};
    double quality = t->args->quiet ? 0 : training_quality(t, &m, err, &code);
    if (code == SVS_OK)
        code = svi_machine_write(&machine, path, format, err);
    if (code == SVS_OK && !t->args->quiet) {
        print_summary(t, &m, quality);
        fprintf(stderr, "model %s\n", path);
    }
    if (code == SVS_OK)
        warn(t, &m);
    svs_trained_clear(&m);
    return code;
}

static void print_quality(const struct train *t, const svs_quality *q) {
    if (t->table.examples.task == SVS_REGRESS)
        printf("Cross Validation RMSE = %g\n", q->rmse);
    else
        printf("Cross Validation Accuracy = %g%%\n", 100 * q->accuracy);
}

static svs_code cross_validate(struct train *t, svs_error *err) {
    svs_quality q;
    svs_code code = svs_cross_validate(&t->table.examples, &t->o, (int)t->folds, &q, err);
    cli_progress_end(&t->progress);
    if (code == SVS_OK)
        print_quality(t, &q);
    return code;
}

static void print_point(void *user, const svs_path_point *p) {
    struct train *t = user;
    bool regress = t->table.examples.task == SVS_REGRESS;
    printf("C %-12g %s %-10.5g iterations %-8" PRId64 " %.3f s\n", p->C, regress ? "rmse" : "accuracy",
           regress ? p->quality.rmse : p->quality.accuracy, p->iterations, p->seconds);
}

static svs_code search(struct train *t, double from, double to, svs_error *err) {
    svs_path_point best = {0};
    svs_code code = svs_search_C(&t->table.examples, &t->o, t->folds > 0 ? (int)t->folds : 5, from, to,
                                 print_point, t, &best, err);
    cli_progress_end(&t->progress);
    if (code != SVS_OK)
        return code;
    if (t->table.examples.task == SVS_REGRESS)
        printf("Best C = %g  CV RMSE = %g\n", best.C, best.quality.rmse);
    else
        printf("Best C = %g  CV accuracy = %g%%\n", best.C, 100 * best.quality.accuracy);
    return code;
}

static svs_code work(struct train *t, enum svi_model_format format, double from, double to, svs_error *err) {
    svs_code code = read_examples(t, err);
    if (code == SVS_OK)
        code = take_weights(t, err);
    if (code != SVS_OK)
        return code;
    t->o.solve.progress = show_progress;
    t->o.solve.user = t;
    if (cli_has(t->args, "search-C"))
        return search(t, from, to, err);
    return t->folds > 0 ? cross_validate(t, err) : train_model(t, format, err);
}

static int run(const struct cli_args *a) {
    struct train t = {.args = a, .first_gap = NAN};
    svs_error err = {0};
    enum svi_model_format format = SVI_FORMAT_OWN;
    double from, to;
    int wrong = take_options(&t);
    if (wrong == CLI_OK)
        wrong = take_format(a, &format);
    if (wrong == CLI_OK)
        wrong = check_weights(a);
    if (wrong != CLI_OK || !cli_number(a, "from", 1e-300, 1e300, &from) ||
        !cli_number(a, "to", 1e-300, 1e300, &to))
        return CLI_USAGE;
    if (t.folds == 1)
        return cli_usage(a, "--folds needs 2 at least");
    if (a->positional_count > 1 && (t.folds > 0 || cli_has(a, "search-C")))
        return cli_usage(a, "%s makes no model: leave %s out", t.folds > 0 ? "--folds" : "--search-C",
                         a->positional[1]);
    cli_progress_begin(&t.progress, a->quiet);
    svs_code code = work(&t, format, from, to, &err);
    cli_progress_end(&t.progress);
    svi_table_clear(&t.table);
    svi_free(t.class_weight);
    return code == SVS_OK ? CLI_OK : cli_error(a, &err);
}

static const struct cli_option options[] = {
    {"solver", 's', "NAME", "auto",
     "auto, newton, alm, alm-inexact, dcd, nesvm, alsvm, falsvm, alfpgm or sgd-lssvm"},
    {"cost", 'c', "N", NULL, "the penalty C; the same as --C"},
    {"tol", 'e', "N", "0.001", "ends when the duality gap is this share of the objective"},
    {"loss", 0, "WORD", NULL, "l1 (hinge), l2 (its square), a number from 1 to 2 between them, or squared"},
    {"penalty", 0, "WORD", "l2", "l2, or l1 for few features (nesvm)"},
    {"bias", 'B', "N", "1",
     "constant appended to each row and penalised with it; 0 or less is none, free is not penalised"},
    {"kernel", 't', "WORD", "linear", "linear, polynomial or rbf (or 0, 1, 2)"},
    {"gamma", 'g', "N", "0", "of the kernel; 0 is 1/features"},
    {"coef0", 'r', "N", "0", "of the polynomial kernel"},
    {"degree", 'd', "N", "3", "of the polynomial kernel"},
    {"weights", 'w', "L:W,...", NULL, "factors of C for labels, as 1:10,-1:0.5"},
    {"folds", 'v', "K", "0", "cross-validation in K folds instead of a model"},
    {"search-C", 'C', NULL, NULL, "cross-validation for C = --from, doubled up to --to, each warm-started"},
    {"from", 0, "N", "0.0009765625", "first C of --search-C"},
    {"to", 0, "N", "1024", "last C of --search-C"},
    {"format", 0, "WORD", "own", "of the model file: own, liblinear or libsvm"},
    {"cache", 'm', "MIB", "256", "memory for kernel rows"},
    {"max-iterations", 0, "N", "0", "of the solver's own kind; 0 is its default"},
    {"max-seconds", 0, "N", "0", "time for one problem; 0 is no limit"},
    {"mu", 0, "N", "0", "penalty of alm, smoothing of nesvm; 0 is the solver's choice"},
    {"pairs", 0, "N", "50", "alfpgm: pairs in its working set"},
    {"limiter", 0, NULL, NULL, "alfpgm: the paper's MinMaxLimiter"},
    {"no-finish", 0, NULL, NULL, "alm without Newton steps, sgd-lssvm without conjugate gradients"},
    {NULL, 0, NULL, NULL, NULL}};

const struct cli_command cli_train = {
    .name = "train",
    .text = "train a model from a file of examples, or cross-validate",
    .usage = "FILE [MODEL]",
    .help = "Reads LIBSVM, CSV with a header or JSON lines, plain or .gz, and writes MODEL (default: FILE's "
            "name with .model, in\n"
            "the working directory; - is standard output). Every model comes with a proof: the duality gap, "
            "computed from\n"
            "scratch, bounds how far it is from the best one. Columns are taken as they are; --scale "
            "standard standardises\n"
            "them for the solver, the weights stay in raw units.\n"
            "\n"
            "  svmstream train -c 1 a9a.svm a9a.model\n"
            "  svmstream train -t rbf -g 0.5 --loss l1 --format libsvm data.svm data.model\n"
            "  svmstream train -v 5 weather.csv.gz\n"
            "  svmstream train --search-C a9a.svm",
    .keys = "C task label weight scale in.format max.features seed",
    .options = options,
    .positional_min = 1,
    .positional_max = 2,
    .unchecked = true,
    .run = run};
