/* svmstream train: a file of examples -> a model file, cross-validation, or a search for C. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/progress.h"
#include "cli/training.h"
#include "data/table.h"

struct train {
    const struct cli_args *args;
    struct cli_training wish;
    struct svi_table table;
    double *class_weight;
    struct cli_progress progress;
    double first_gap, first_time; /* of the solver at work, for the ETA */
    svs_solver at_work;
};

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
    double goal = t->wish.train.solve.tol * p->objective, done = log(t->first_gap / p->gap),
           left = log(p->gap / goal);
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
                open, m->count, t->wish.train.solve.tol, worst->gap / worst->objective,
                advice(worst, m->kernel));
}

static svs_code train_model(struct train *t, svs_error *err) {
    svs_trained m = {0};
    char path[4096];
    svs_code code = svs_train(&t->table.examples, &t->wish.train, NULL, &m, err);
    cli_progress_end(&t->progress);
    if (code != SVS_OK)
        return code;
    if (t->args->positional_count > 1)
        snprintf(path, sizeof path, "%s", t->args->positional[1]);
    else
        cli_default_name(t->args->positional[0], ".model", path, sizeof path);
    const struct svi_machine machine = {m.linear, m.kernel};
    double quality = t->args->quiet ? 0 : training_quality(t, &m, err, &code);
    if (code == SVS_OK)
        code = svi_machine_write(&machine, path, t->wish.format, err);
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
    svs_code code = svs_cross_validate(&t->table.examples, &t->wish.train, (int)t->wish.folds, &q, err);
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

static svs_code search(struct train *t, svs_error *err) {
    svs_path_point best = {0};
    svs_code code =
        svs_search_C(&t->table.examples, &t->wish.train, t->wish.folds > 0 ? (int)t->wish.folds : 5,
                     t->wish.from, t->wish.to, print_point, t, &best, err);
    cli_progress_end(&t->progress);
    if (code != SVS_OK)
        return code;
    if (t->table.examples.task == SVS_REGRESS)
        printf("Best C = %g  CV RMSE = %g\n", best.C, best.quality.rmse);
    else
        printf("Best C = %g  CV accuracy = %g%%\n", best.C, 100 * best.quality.accuracy);
    return code;
}

static svs_code work(struct train *t, svs_error *err) {
    svs_code code = read_examples(t, err);
    if (code == SVS_OK)
        code = cli_class_weights(t->args, &t->table.examples, &t->class_weight, err);
    if (code != SVS_OK)
        return code;
    t->wish.train.class_weight = t->class_weight;
    t->wish.train.solve.progress = show_progress;
    t->wish.train.solve.user = t;
    if (t->wish.search)
        return search(t, err);
    return t->wish.folds > 0 ? cross_validate(t, err) : train_model(t, err);
}

static int run(const struct cli_args *a) {
    struct train t = {.args = a, .first_gap = NAN};
    svs_error err = {0};
    int wrong = cli_training(a, &t.wish);
    if (wrong != CLI_OK)
        return wrong;
    cli_progress_begin(&t.progress, a->quiet);
    svs_code code = work(&t, &err);
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
