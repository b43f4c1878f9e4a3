/* svmstream train: a file of examples -> a model file, cross-validation, or a search for C.
 *
 * cmd_train_run, near the end, is the course of the command; read it first. It previews the file, checks the
 * options (take_options) and only then reads the whole file, because that may be long. Only the factors of
 * --weights and class.weight wait for the file, which has the labels (cmd_train_weights). cmd_train_work then
 * runs one of train_model, cross_validate and cmd_train_search. All of them end the progress line before they
 * print.
 *
 * The order of the options matters: the default loss depends on the solver, the default bias on the loss. An
 * option without effect is refused, since silence would suggest that it worked.
 *
 * With a model, standard error gets a line about the data, one for each problem with its certificate, and the
 * quality on the examples. Results of cross-validation go to standard output, as they are the result. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/table_in.h"
#include "config/class_weights.h"
#include "formats/model_file.h"
#include "learner/owned_model.h"
#include "solver/predictor.h"
#include "quality/calibrator.h"
#include "wire/schema_map.h"

#define LABEL_TEXT  (4 * SVS_NAME_MAX + 4)
#define PROBA_FOLDS 5 /* as LIBSVM does */

struct train {
    const struct cli_args *args;
    svs_train_options o;
    enum svi_model_format format;
    int64_t folds; /* 0 = no cross-validation */
    bool search;   /* for C, doubled from `from` to `to` */
    double from, to;
    struct svi_table table;
    struct svi_class_weights weights; /* of the setting class.weight */
    double *class_weight;             /* of --weights or class.weight, by class of the file */
    uint8_t *unscaled;                /* by column: not 0 = not standardised */
    struct svi_bytes schema;          /* of the columns, for the model; empty: not needed */
    struct svi_progress progress;
    double first_gap, first_time; /* first known gap of the current solver, and its time, for the ETA */
    svs_solver at_work;           /* the current solver */
};

/* ---- options */

/* The solver and loss of a method given by LIBLINEAR's number; NULL: it is not one of these. */
static const struct liblinear { const char *number, *name, *loss; } * liblinear_solver(const char *number) {
    static const struct liblinear all[] = {{"1", "dcd", "l2"}, {"2", "newton", "l2"}, {"3", "dcd", "l1"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].number, number) == 0)
            return &all[i];
    return NULL;
}

/* The default loss: the one that the solver is made for. */
static const char *normal_loss(const struct train *t) {
    const struct liblinear *method = liblinear_solver(cli_value(t->args, "solver"));
    /* The task precedes the solver: a regression has one loss with every solver. */
    if (t->args->settings.task == SVS_REGRESS)
        return "squared";
    if (method)
        return method->loss;
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

/* As with LIBLINEAR's -s, a solver implies a loss, which --loss overrides. */
static int take_loss(struct train *t) {
    const char *word = cli_has(t->args, "loss") ? cli_value(t->args, "loss") : normal_loss(t);
    char *end = "";
    /* `end` stays "" for words, and so only a number is checked for a rest. */
    t->o.loss = strcmp(word, "squared") == 0 ? SVS_SQUARED : SVS_HINGE;
    t->o.p = t->o.loss == SVS_SQUARED || strcmp(word, "l2") == 0 ? 2
             : strcmp(word, "l1") == 0                           ? 1
                                                                 : strtod(word, &end);
    if (end == word || *end || !(t->o.p >= 1 && t->o.p <= 2))
        return cli_usage(
            t->args, "--loss: '%s' is not an allowed value (l1, l2, squared, or a number from 1 to 2)", word);
    /* Only an explicit --loss gets here: the default of a regression is squared. */
    if (t->args->settings.task == SVS_REGRESS && t->o.loss != SVS_SQUARED)
        return cli_usage(
            t->args, "--loss %s applies to classes only: leave it out, --task regress always uses squared",
            word);
    return CLI_OK;
}

/* Appended: one more feature, whose weight is penalised (LIBLINEAR's -B). Free: the bias is not penalised, as
 * in LIBSVM; the default of alfpgm and of kernels with a hinge loss. */
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
        return cli_usage(
            t->args, "--bias: '%s' is not an allowed value (a number, 0 or less for no bias, or free)", bias);
    t->o.bias = t->o.bias_value > 0 ? SVS_BIAS_APPENDED : SVS_BIAS_NONE;
    return CLI_OK;
}

/* Exactly one result: a model, the quality of K folds, or a search over C. */
static int check_job(struct train *t) {
    const struct cli_args *a = t->args;
    if (t->folds == 1)
        return cli_usage(a, "--folds must be at least 2");
    if (t->search && t->to < t->from)
        return cli_usage(a, "--to %g is below --from %g", t->to, t->from);
    /* A name for a model that is never written suggests a misunderstanding that would cost a long run. */
    if (a->positional_count > 1 && (t->folds > 0 || t->search))
        return cli_usage(a, "%s makes no model: leave out %s", t->folds > 0 ? "--folds" : "--search-C",
                         a->positional[1]);
    return CLI_OK;
}

/* Reads the first "LABEL:WEIGHT" of a list. Returns the length of the label and the rest of the list; 0: it
 * is malformed, or the weight is not above 0. */
static size_t read_weight(const char *list, double *weight, const char **rest) {
    size_t length = strcspn(list, ",");
    char *end = NULL;
    const char *colon = memchr(list, ':', length);
    for (const char *next = colon; next; next = memchr(next + 1, ':', length - (size_t)(next + 1 - list)))
        colon = next; /* the last colon: a label may contain others */
    *weight = colon ? strtod(colon + 1, &end) : 0;
    *rest = list + length + (list[length] == ',');
    return end == list + length && *weight > 0 && isfinite(*weight) ? (size_t)(colon - list) : 0;
}

/* Refuses options that have no effect together with the others: silence would suggest that they worked. */
static int check_useful(struct train *t) {
    const struct cli_args *a = t->args;
    const svs_solver s = t->o.solve.solver;
    /* `auto` may choose a solver that has the option, so the option may be useful there. */
    const bool chosen = s == SVS_SOLVER_AUTO, kernel = t->o.kernel.kind != SVS_LINEAR;
    const bool pairs = s == SVS_SOLVER_ALFPGM || (chosen && kernel);
    const struct {
        const char *name;
        bool useful;
        const char *where;
    } all[] = {
        {"gamma", kernel, "a kernel (--kernel)"},
        {"coef0", t->o.kernel.kind == SVS_POLYNOMIAL, "--kernel polynomial"},
        {"degree", t->o.kernel.kind == SVS_POLYNOMIAL, "--kernel polynomial"},
        {"cache", pairs || kernel, "a kernel, or --solver alfpgm"},
        {"pairs", pairs, "--solver alfpgm"},
        {"limiter", pairs, "--solver alfpgm"},
        {"no-finish", chosen || s == SVS_SOLVER_ALM || s == SVS_SOLVER_SGD_LSSVM, "alm and sgd-lssvm"},
        {"mu", s == SVS_SOLVER_ALM || s == SVS_SOLVER_ALM_INEXACT || s == SVS_SOLVER_NESVM || chosen,
         "alm, alm-inexact and nesvm"},
        {"from", t->search, "--search-C"},
        {"to", t->search, "--search-C"},
        {"cost", !t->search, "a model of one C, without --search-C"},
        {"proba", !t->search && t->folds == 0, "a model, without --search-C and --folds"},
        {"format", !t->search && t->folds == 0, "a model, without --search-C and --folds"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (cli_has(a, all[i].name) && !all[i].useful)
            return cli_usage(a, "--%s has no effect here, it needs %s: leave it out", all[i].name,
                             all[i].where);
    /* A number of LIBLINEAR states solver and loss at once, so a different loss contradicts it. */
    const struct liblinear *method = liblinear_solver(cli_value(a, "solver"));
    if (method && cli_has(a, "loss") && strcmp(cli_value(a, "loss"), method->loss) != 0)
        return cli_usage(a, "--solver %s has the loss %s: leave out --loss, or set --solver %s",
                         method->number, method->loss, method->name);
    if (cli_has(a, "cost") && cli_flagged(a, "C"))
        return cli_usage(a, "--cost and --C mean the same: leave one of them out");
    return CLI_OK;
}

/* Checks the setting class.weight; `weights`: the value of --weights, or NULL. */
static int check_class_weight(struct train *t, const char *weights) {
    const struct cli_args *a = t->args;
    svs_error err;
    if (svi_class_weights_read(a->settings.class_weight, &t->weights, &err) != SVS_OK)
        return cli_usage(a, "%s", err.text);
    /* Balanced factors need the counts of the classes, which the library has; given ones follow after the
     * file. */
    t->o.balanced = t->weights.rule == SVS_CLASSES_BALANCED;
    if (t->weights.rule != SVS_CLASSES_ALIKE && a->settings.task == SVS_REGRESS)
        return cli_usage(a, "--class.weight applies to classes only: leave it out with --task regress");
    if (t->weights.rule != SVS_CLASSES_ALIKE && weights)
        return cli_usage(a, "--weights and --class.weight mean the same: leave one of them out");
    return CLI_OK;
}

/* Probabilities need a linear classifier and a file format that can hold the calibration. */
static int check_proba(struct train *t) {
    const struct cli_args *a = t->args;
    if (!cli_has(a, "proba"))
        return CLI_OK;
    if (a->settings.task == SVS_REGRESS)
        return cli_usage(a, "--proba applies to classes only: leave it out with --task regress");
    if (t->o.kernel.kind != SVS_LINEAR || t->o.solve.solver == SVS_SOLVER_ALFPGM)
        return cli_usage(a, "--proba applies to linear models only: leave out --kernel and --solver alfpgm");
    if (t->format != SVI_FORMAT_OWN)
        return cli_usage(a, "--proba needs --format own: the other formats cannot store the calibration");
    return CLI_OK;
}

static int check_weights(struct train *t) {
    const struct cli_args *a = t->args;
    const char *at = cli_value(a, "weights");
    double weight;
    if (at && a->settings.task == SVS_REGRESS)
        return cli_usage(a, "--weights applies to classes only: leave it out with --task regress");
    if (at && !*at)
        return cli_usage(a, "--weights takes LABEL:WEIGHT,...");
    /* The syntax is checked now and the labels after the file is read: a typing error must not cost that
     * time. */
    for (const char *rest; at && *at; at = rest)
        if (read_weight(at, &weight, &rest) == 0)
            return cli_usage(a, "--weights: '%.60s' is not of the form LABEL:WEIGHT,... with weights above 0",
                             at);
    return check_class_weight(t, at);
}

/* The class whose label prints as this text, or -1: on the command line 1 and "1" look alike. */
static int find_label(const svs_examples *e, const char *label, size_t length) {
    char text[LABEL_TEXT];
    for (int k = 0; k < e->class_count; k++) {
        svs_value_text(e->classes[k], text, sizeof text);
        if (strlen(text) == length && memcmp(text, label, length) == 0)
            return k;
    }
    return -1;
}

static void take_values(struct train *t) {
    const struct cli_args *a = t->args;
    svs_train_options *o = &t->o;
    /* Everything that no option overwrites keeps the library's default. */
    svs_train_options_default(o);
    const char *solver = cli_value(a, "solver");
    o->solve.solver = svs_solver_find(liblinear_solver(solver) ? liblinear_solver(solver)->name : solver);
    o->solve.tol = cli_number(a, "tol");
    o->solve.cache_mib = cli_number(a, "cache");
    o->solve.max_seconds = cli_number(a, "max-seconds");
    o->solve.max_iterations = cli_integer(a, "max-iterations");
    o->solve.mu = cli_number(a, "mu");
    o->solve.pairs = (int)cli_integer(a, "pairs");
    o->solve.limiter = cli_has(a, "limiter");
    o->solve.finish = !cli_has(a, "no-finish");
    o->solve.seed = (uint64_t)a->settings.seed;
    /* The words are the three names, then LIBSVM's three numbers in the same order. */
    o->kernel.kind = (svs_kernel_kind)(cli_word(a, "kernel") % 3);
    o->kernel.gamma = cli_number(a, "gamma");
    o->kernel.coef0 = cli_number(a, "coef0");
    o->kernel.degree = (int)cli_integer(a, "degree");
    o->penalty = (svs_penalty)cli_word(a, "penalty");
    o->C = cli_has(a, "cost") ? cli_number(a, "cost") : a->settings.C;
    /* The setting's own default is for streams: a file is scaled only where this was asked for. */
    o->scale = cli_given(a, "scale") && a->settings.scale == SVS_SCALE_STANDARD;
    t->format = (enum svi_model_format)cli_word(a, "format");
    t->folds = cli_integer(a, "folds");
    t->search = cli_has(a, "search-C");
    t->from = cli_number(a, "from");
    t->to = cli_number(a, "to");
}

static int take_options(struct train *t) {
    /* Each step may rely on those before it: the bias on the loss, the checks on all values. */
    static int (*const steps[])(struct train *) = {take_loss,    take_bias,   check_job,
                                                   check_useful, check_proba, check_weights};
    int code = CLI_OK;
    take_values(t);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && code == CLI_OK; i++)
        code = steps[i](t);
    return code;
}

/* The factors of --weights or class.weight, one for each class of the examples. */
static svs_code cmd_train_weights(struct train *t, svs_error *err) {
    const svs_examples *e = &t->table.examples;
    const char *at = cli_value(t->args, "weights");
    double weight;
    /* Equal and balanced classes need no factors from here. */
    if (!at && t->weights.rule != SVS_CLASSES_GIVEN)
        return SVS_OK;
    if (!(t->class_weight = svi_alloc_array((size_t)e->class_count + 1, sizeof *t->class_weight)))
        return svi_fail_memory(err, "the class weights");
    if (!at)
        return svi_class_weights_factors(&t->weights, e->classes, e->class_count, t->class_weight, err);
    for (int k = 0; k < e->class_count; k++)
        /* Labels that --weights does not name keep C as it is. */
        t->class_weight[k] = 1;
    for (const char *rest; *at; at = rest) {
        const size_t length = read_weight(at, &weight, &rest);
        /* The list was checked before the file was read, so its length cannot be 0 here. */
        const int k = find_label(e, at, length);
        if (k < 0)
            return svi_fail(err, SVS_INVALID,
                            "--weights names the label %.*s, but the file has no such label", (int)length,
                            at);
        t->class_weight[k] = weight;
    }
    return SVS_OK;
}

/* ---- progress */

/* The ETA assumes that the logarithm of the gap falls linearly in time, from the first known gap of the
 * current solver to tol times the objective. A new solver (auto may change it) starts the measurement again.
 */
static bool cmd_train_show_progress(void *user, const svs_progress *p) {
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
    /* An unknown gap makes these NaN, every comparison fails, and the line has no ETA. */
    double goal = t->o.solve.tol * p->objective, done = log(t->first_gap / p->gap), left = log(p->gap / goal);
    if (p->gap > 0 && done > 0 && left > 0)
        snprintf(eta, sizeof eta, "  ETA %.1f s", (p->seconds - t->first_time) * left / done);
    snprintf(line, sizeof line, "%s  iteration %" PRId64 "  objective %.8g  gap %.2g  %.1f s%s",
             svs_solver_name(p->solver), p->iteration, p->objective, p->gap / p->objective, p->seconds, eta);
    svi_progress_line(&t->progress, line);
    return true;
}

/* ---- the work */

static svs_code read_examples(struct train *t, svs_error *err) {
    struct svi_schema_options schema;
    struct svi_table_options o = cli_table_options(t->args, &schema, &t->progress);
    o.memory = cli_table_memory(t->args);
    o.reader.label_needed = true;
    o.task = (svs_task)t->args->settings.task;
    const svs_code code = svi_table_read(&t->table, t->args->positional[0], &o, err);
    /* Reported on failure too: rows that were dropped may be why too few are left. */
    cli_report_dropped(t->args, &t->table);
    if (code == SVS_OK && t->table.zeros && schema.missing == SVI_MISSING_AUTO && !t->args->quiet) {
        /* The note would otherwise be written into the progress line, which continues afterwards. */
        svi_progress_clear(&t->progress);
        fprintf(stderr,
                "rows name few of the %d columns: missing columns are taken as 0 (--missing mean uses their "
                "means)\n",
                t->table.examples.rows.d);
    }
    return code;
}

/* The quality on the training examples: how well they are fitted, not how well others would be predicted. */
static svs_code training_quality(const struct train *t, const svs_trained *m, double *quality,
                                 svs_error *err) {
    const svs_examples *e = &t->table.examples;
    struct svi_predictor p;
    double right = 0, squares = 0;
    svs_code code = svi_predictor_init(&p, m->linear, m->kernel, err);
    for (int64_t i = 0; i < e->rows.n && code == SVS_OK; i++) {
        const int predicted = svi_predictor_row(&p, &e->rows, i);
        if (e->task == SVS_REGRESS)
            squares += (p.scores[0] - e->target[i]) * (p.scores[0] - e->target[i]);
        else
            right += predicted == e->label[i];
    }
    svi_predictor_clear(&p);
    *quality = e->task == SVS_REGRESS ? sqrt(squares / (double)e->rows.n) : right / (double)e->rows.n;
    return code;
}

static void print_solution(const struct train *t, const svs_trained *m, int k) {
    const svs_solution *s = &m->solutions[k];
    char label[LABEL_TEXT] = "";
    if (m->count > 1)
        svs_value_text(t->table.examples.classes[k], label, sizeof label);
    fprintf(stderr, "%s%s%s: objective %.9g  gap %.2g  iterations %" PRId64 "  %.3f s  %s\n",
            svs_solver_name(s->solver), m->count > 1 ? " " : "", label, s->objective,
            isfinite(s->gap) ? s->gap / s->objective : NAN, s->iterations, s->seconds,
            svs_stop_text(s->stop));
    /* The problems of one model usually share the note, so it is printed once, and again for those that
     * failed. */
    if (s->note[0] && (k == 0 || !s->converged))
        fprintf(stderr, "  %s\n", s->note);
}

static void cmd_train_print_data(const svs_examples *e) {
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

static void cmd_train_print_summary(const struct train *t, const svs_trained *m, double quality) {
    const svs_examples *e = &t->table.examples;
    cmd_train_print_data(e);
    for (int k = 0; k < m->count; k++)
        print_solution(t, m, k);
    if (m->kernel)
        fprintf(stderr, "support vectors %" PRId64 "\n", m->kernel->support.n);
    if (e->task == SVS_REGRESS)
        fprintf(stderr, "training rmse %.4g\n", quality);
    else
        fprintf(stderr, "training accuracy %.4f\n", quality);
}

static const char *cmd_train_advice(const svs_solution *s, bool kernel) {
    if (s->stop == SVS_STOP_ITERATIONS)
        return "raise --max-iterations or --tol";
    if (s->stop == SVS_STOP_SECONDS)
        return "raise --max-seconds or --tol";
    return kernel ? "scale the data, or raise --tol" : "try --scale standard or -s newton, or raise --tol";
}

static void cmd_train_warn(const struct train *t, const svs_trained *m) {
    const svs_solution *worst = NULL;
    int open = 0;
    for (int k = 0; k < m->count; k++) {
        const svs_solution *s = &m->solutions[k];
        open += !s->converged;
        /* The worst gap stands for all: its cure is usually that of the others. */
        if (!s->converged && (!worst || s->gap / s->objective > worst->gap / worst->objective))
            worst = s;
    }
    if (worst)
        cli_fail(t->args,
                 "WARNING: %d of %d problems did not converge to --tol %g (gap %.2g of the "
                 "objective); the model is written anyway: %s",
                 open, m->count, t->o.solve.tol, worst->gap / worst->objective,
                 cmd_train_advice(worst, m->kernel));
}

/* Encodes the schema of the columns for the model, where it holds more than the names. */
static svs_code cmd_train_describe(struct train *t, svs_error *err) {
    const svs_examples *e = &t->table.examples;
    const struct svi_schema *s = t->table.schema;
    /* The schema may know fewer columns than the rows have: the rest stays 0, and so is scaled. */
    if (svi_schema_columns(s) > 0 && !(t->unscaled = svi_alloc((size_t)e->rows.d)))
        return svi_fail_memory(err, "the columns of the file");
    for (int j = 0; t->unscaled && j < e->rows.d && j < s->shape.d; j++)
        t->unscaled[j] = svi_schema_unscaled(s, j);
    if (e->features && svi_schema_matters(s, t->table.filled > 0 || t->table.zeros) &&
        svi_schema_encode(s, e->rows.d, t->table.means, t->args->settings.zone, &t->schema) != SVS_OK)
        return svi_fail_memory(err, "the columns of the file");
    return SVS_OK;
}

static void cmd_train_add_schema(const struct train *t, const svs_trained *m) {
    if (m->kernel) /* linear models already have the names */
        m->kernel->features = t->table.examples.features;
    if (t->schema.size == 0)
        return;
    /* The model borrows the schema. It is written before cmd_train_run frees it. */
    if (m->linear) {
        m->linear->schema = t->schema.data;
        m->linear->schema_size = t->schema.size;
    } else {
        m->kernel->schema = t->schema.data;
        m->kernel->schema_size = t->schema.size;
    }
}

/* Fits probabilities to held-out scores: those of the training rows themselves are too good, and the
 * probabilities would be too extreme. */
static svs_code cmd_train_calibrate(struct train *t, svs_model *m, svs_error *err) {
    const svs_examples *e = &t->table.examples;
    double *scores = svi_alloc_array((size_t)e->rows.n, (size_t)m->rows * sizeof *scores);
    double *b = svi_model_calibrate(m, false, err), a = 0;
    svs_code code = scores && b ? SVS_OK : svi_fail_memory(err, "the probabilities");
    if (code == SVS_OK)
        code = svs_cross_scores(e, &t->o, PROBA_FOLDS, scores, err);
    if (code == SVS_OK)
        code = svi_calibrator_fit(scores, e->label, e->rows.n, m->rows, m->class_count, &a, b, err);
    /* svi_model_calibrate has given the block of `b` to the model; the factor is all that is left to set. */
    m->calibration.a = a;
    svi_free(scores);
    return code;
}

static svs_code train_model(struct train *t, svs_error *err) {
    svs_trained m = {0};
    char path[4096];
    svs_code code = svs_train(&t->table.examples, &t->o, NULL, &m, err);
    /* Before the progress line ends: calibration trains another PROBA_FOLDS models. */
    if (code == SVS_OK && cli_has(t->args, "proba"))
        code = cmd_train_calibrate(t, m.linear, err);
    svi_progress_end(&t->progress);
    if (code != SVS_OK) {
        svs_trained_clear(&m);
        return code;
    }
    /* From here on no solver runs, so lines may be printed. */
    cli_output_name(t->args, 1, 0, ".model", path, sizeof path);
    const struct svi_machine machine = {m.linear, m.kernel};
    double quality = 0;
    for (int k = 0; k < m.count; k++) { /* the model has the weights; writing it needs as much memory again */
        svi_free(m.solutions[k].w);
        m.solutions[k].w = NULL;
    }
    cmd_train_add_schema(t, &m);
    if (!t->args->quiet)
        code = training_quality(t, &m, &quality, err);
    /* The summary follows the writing: it must not announce a model that does not exist. */
    if (code == SVS_OK)
        code = svi_machine_write(&machine, path, t->format, err);
    if (code == SVS_OK && !t->args->quiet) {
        cmd_train_print_summary(t, &m, quality);
        fprintf(stderr, "model %s\n", path);
    }
    /* Warnings are the last lines and appear with --quiet too: they decide whether the model can be used. */
    if (code == SVS_OK)
        cmd_train_warn(t, &m);
    if (code == SVS_OK && t->schema.size > 0 && t->format != SVI_FORMAT_OWN)
        cli_fail(t->args,
                 "WARNING: this format does not store the kinds of columns (words, times, means): %s accepts "
                 "only rows of the same %d numbers; use --format own to keep them",
                 path, t->table.examples.rows.d);
    svs_trained_clear(&m);
    return code;
}

/* Each row is predicted by a model that was trained without its fold. */
static svs_code cross_validate(struct train *t, svs_error *err) {
    svs_quality q;
    svs_code code = svs_cross_validate(&t->table.examples, &t->o, (int)t->folds, &q, err);
    svi_progress_end(&t->progress);
    if (code == SVS_OK && t->table.examples.task == SVS_REGRESS)
        printf("Cross Validation RMSE = %g\n", q.rmse);
    else if (code == SVS_OK)
        printf("Cross Validation Accuracy = %g%%\n", 100 * q.accuracy);
    return code;
}

static void print_point(void *user, const svs_path_point *p) {
    struct train *t = user;
    bool regress = t->table.examples.task == SVS_REGRESS;
    printf("C %-12g %s %-10.5g iterations %-8" PRId64 " %.3f s\n", p->C, regress ? "rmse" : "accuracy",
           regress ? p->quality.rmse : p->quality.accuracy, p->iterations, p->seconds);
}

/* Doubles C along a path, each solution being the start of the next, and reports the best by
 * cross-validation.
 */
static svs_code cmd_train_search(struct train *t, svs_error *err) {
    svs_path_point best = {0};
    svs_code code = svs_search_C(&t->table.examples, &t->o, t->folds > 0 ? (int)t->folds : 5, t->from, t->to,
                                 print_point, t, &best, err);
    svi_progress_end(&t->progress);
    if (code != SVS_OK)
        return code;
    if (t->table.examples.task == SVS_REGRESS)
        printf("Best C = %g  CV RMSE = %g\n", best.C, best.quality.rmse);
    else
        printf("Best C = %g  CV accuracy = %g%%\n", best.C, 100 * best.quality.accuracy);
    return code;
}

static svs_code cmd_train_work(struct train *t, svs_error *err) {
    SVI_TRY(read_examples(t, err));
    SVI_TRY(cmd_train_weights(t, err));
    SVI_TRY(cmd_train_describe(t, err));
    t->o.unscaled = t->unscaled;
    t->o.class_weight = t->class_weight;
    t->o.solve.progress = cmd_train_show_progress;
    t->o.solve.user = t;
    return t->search ? cmd_train_search(t, err) : t->folds > 0 ? cross_validate(t, err) : train_model(t, err);
}

static int cmd_train_run(const struct cli_args *given) {
    struct cli_args mine = *given;
    const struct cli_args *a = &mine;
    struct train t = {.args = a, .first_gap = NAN};
    svs_error err = {0};
    /* The rows of a file and the work of a solver are large blocks one after another; freed ones return at
     * once. */
    svi_large_blocks_apart();
    /* The preview comes before the options: it may make the task a regression, on which their checks depend.
     * It changes this copy of the arguments only. */
    cli_preview_table(&mine, mine.positional[0]);
    const int wrong = take_options(&t);
    if (wrong != CLI_OK)
        return wrong;
    svi_progress_begin(&t.progress, a->quiet);
    /* A failure may leave the progress line open, so it is ended again; a second end does nothing. */
    svs_code code = cmd_train_work(&t, &err);
    svi_progress_end(&t.progress);
    svi_table_clear(&t.table);
    svi_free(t.class_weight);
    svi_free(t.unscaled);
    svi_bytes_clear(&t.schema);
    return cli_end(a, code, &err);
}

/* The tables below are the help, the man page and the completion of this command (help.c). */
static const struct cli_option options[] = {
    CLI_OPTION("solver", 's', "auto|newton|alm|alm-inexact|dcd|nesvm|alsvm|falsvm|alfpgm|sgd-lssvm|1|2|3",
               "auto",
               "method; auto chooses by the data. LIBLINEAR's numbers: 1 is dcd with loss l2, 2 newton with "
               "l2, 3 dcd with l1"),
    CLI_NUMBER("cost", 'c', "N", NULL, 1e-300, 1e300, "penalty C; the same as --C"),
    CLI_NUMBER("tol", 'e', "N", "0.001", 1e-15, 1,
               "stop when the duality gap is at most this share of the objective"),
    CLI_OPTION("loss", 0, "WORD", NULL,
               "l1 (hinge), l2 (its square), a number from 1 to 2 between them, or squared"),
    CLI_OPTION("penalty", 0, "l2|l1", "l2", "l1 selects few features (nesvm)"),
    CLI_OPTION("bias", 'B', "N", "1",
               "constant appended to each row and penalised like a feature; 0 or less for none, free for a "
               "bias that is not penalised"),
    CLI_OPTION("kernel", 't', "linear|polynomial|rbf|0|1|2", "linear",
               "kernel, by name or by LIBSVM's number"),
    CLI_NUMBER("gamma", 'g', "N", "0", 0, 1e300, "gamma of the kernel; 0 is 1/features"),
    CLI_NUMBER("coef0", 'r', "N", "0", -1e300, 1e300, "constant term of the polynomial kernel"),
    CLI_INTEGER("degree", 'd', "N", "3", 1, 20, "degree of the polynomial kernel"),
    CLI_OPTION("weights", 'w', "L:W,...", NULL, "class weights: factors of C by label, as 1:10,-1:0.5"),
    CLI_INTEGER("folds", 'v', "K", "0", 0, 1000000, "cross-validate in K folds instead of training a model"),
    CLI_SWITCH("search-C", 'C', "cross-validate for C = --from, doubled up to --to, each warm-started"),
    CLI_NUMBER("from", 0, "N", "0.0009765625", 1e-300, 1e300, "first C of --search-C"),
    CLI_NUMBER("to", 0, "N", "1024", 1e-300, 1e300, "last C of --search-C"),
    CLI_OPTION("proba", 'b', CLI_0_1, NULL,
               "fit probabilities to the scores of 5 folds, for predict -b 1 (linear models)"),
    CLI_OPTION("format", 0, "own|liblinear|libsvm", "own", "format of the model file"),
    CLI_NUMBER("cache", 'm', "MIB", "256", 1, 1e9, "memory for kernel rows"),
    CLI_NUMBER("memory", 0, "MIB", "0", 0, 1e9,
               "memory for the rows of the file; a larger file is refused. 0 is three quarters of what the "
               "machine, or the process's cgroup, has"),
    CLI_INTEGER("max-iterations", 0, "N", "0", 0, CLI_UNLIMITED,
                "limit of the solver's iterations; 0 is its default"),
    CLI_NUMBER("max-seconds", 0, "N", "0", 0, 1e9, "time for one problem; 0 is no limit"),
    CLI_NUMBER("mu", 0, "N", "0", 0, 1e300, "penalty of alm, smoothing of nesvm; 0 is the solver's choice"),
    CLI_INTEGER("pairs", 0, "N", "50", 1, 5000, "alfpgm: pairs in its working set"),
    CLI_SWITCH("limiter", 0, "alfpgm: use the paper's MinMaxLimiter"),
    CLI_SWITCH("no-finish", 0, "alm without final Newton steps, sgd-lssvm without conjugate gradients"),
    CLI_END};

const struct cli_command cli_train = {
    .name = "train",
    .text = "train a model from a file of examples, or cross-validate",
    .usage = "FILE [MODEL]",
    .help =
        "Reads LIBSVM, CSV with a header or JSON lines, plain or .gz. Writes MODEL (default: FILE.model\n"
        "in the current directory; - is standard output). Every model has a certificate: the duality gap,\n"
        "computed from scratch, bounds its distance from the optimum. Columns are used unscaled; --scale\n"
        "standard standardises them for the solver, and the weights stay in raw units.\n"
        "\n"
        "Examples:\n"
        "  svmstream train -c 1 a9a.svm a9a.model\n"
        "  svmstream train -t rbf -g 0.5 --loss l1 --format libsvm data.svm data.model\n"
        "  svmstream train -v 5 weather.csv.gz\n"
        "  svmstream train --search-C a9a.svm",
    .keys =
        "C task label id ts ts.format weight columns no-header categories numbers ignore missing "
        "missing.words "
        "categories.max hash calendar zone unscaled scale class.weight in.format max.features seed threads",
    .options = options,
    .unchecked = true,
    .run = cmd_train_run};
