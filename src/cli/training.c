#include "cli/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/nearest.h"

static int unknown_word(const struct cli_args *a, const char *option, const char *value,
                        const char *const *words) {
    const char *nearest = svi_nearest(value, words);
    return cli_usage(a, "--%s %s is not known; %s%s", option, value,
                     nearest ? "the nearest known one is " : "", nearest ? nearest : "see --help");
}

static int take_solver(struct cli_training *t) {
    const char *names[SVS_SOLVER_COUNT + 1] = {NULL};
    const char *name = cli_value(t->a, "solver");
    t->train.solve.solver = svs_solver_find(name);
    for (int s = 0; s < SVS_SOLVER_COUNT; s++)
        names[s] = svs_solver_name((svs_solver)s);
    return t->train.solve.solver == SVS_SOLVER_COUNT ? unknown_word(t->a, "solver", name, names) : CLI_OK;
}

static int take_kernel(struct cli_training *t) {
    static const char *const names[] = {"linear", "polynomial", "rbf", NULL};
    const char *name = cli_value(t->a, "kernel");
    int kind = 0;
    while (names[kind] && strcmp(names[kind], name) != 0 && !(name[0] == '0' + kind && !name[1]))
        kind++;
    if (!names[kind])
        return unknown_word(t->a, "kernel", name, names);
    int64_t degree;
    t->train.kernel.kind = (svs_kernel_kind)kind;
    if (!cli_number(t->a, "gamma", 0, 1e300, &t->train.kernel.gamma) ||
        !cli_number(t->a, "coef0", -1e300, 1e300, &t->train.kernel.coef0) ||
        !cli_integer(t->a, "degree", 1, 20, &degree))
        return CLI_USAGE;
    t->train.kernel.degree = (int)degree;
    return CLI_OK;
}

/* The loss that a solver is for, unless one is named. */
static const char *usual_loss(const struct cli_training *t) {
    switch (t->train.solve.solver) {
    case SVS_SOLVER_ALSVM:
    case SVS_SOLVER_FALSVM:
    case SVS_SOLVER_SGD_LSSVM:
        return "squared";
    case SVS_SOLVER_NESVM:
    case SVS_SOLVER_ALFPGM:
        return "l1";
    default:
        return t->train.kernel.kind == SVS_LINEAR && t->train.penalty == SVS_L2 ? "l2" : "l1";
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

static int take_loss(struct cli_training *t) {
    const struct cli_args *a = t->a;
    const bool regress = a->settings.task == SVS_REGRESS;
    const char *loss = cli_has(a, "loss") ? cli_value(a, "loss") : regress ? "squared" : usual_loss(t);
    if (!read_loss(loss, &t->train.loss, &t->train.p))
        return cli_usage(a, "--loss is l1, l2, squared or a number from 1 to 2, not %s", loss);
    if (regress && t->train.loss != SVS_SQUARED)
        return cli_usage(a, "--loss %s is for classes: with --task regress it is squared", loss);
    return CLI_OK;
}

static int take_penalty(struct cli_training *t) {
    const char *penalty = cli_value(t->a, "penalty");
    if (strcmp(penalty, "l1") != 0 && strcmp(penalty, "l2") != 0)
        return cli_usage(t->a, "--penalty is l1 or l2, not %s", penalty);
    t->train.penalty = strcmp(penalty, "l1") == 0 ? SVS_L1 : SVS_L2;
    return CLI_OK;
}

static int take_bias(struct cli_training *t) {
    const char *bias = cli_value(t->a, "bias");
    const bool wants_free = t->train.solve.solver == SVS_SOLVER_ALFPGM ||
                            (t->train.kernel.kind != SVS_LINEAR && t->train.loss == SVS_HINGE);
    char *end;
    if (strcmp(bias, "free") == 0 || (!cli_has(t->a, "bias") && wants_free)) {
        t->train.bias = SVS_BIAS_FREE;
        return CLI_OK;
    }
    t->train.bias_value = strtod(bias, &end);
    if (end == bias || *end || !isfinite(t->train.bias_value))
        return cli_usage(t->a, "--bias is a number (0 or less: none) or free, not %s", bias);
    t->train.bias = t->train.bias_value > 0 ? SVS_BIAS_APPENDED : SVS_BIAS_NONE;
    return CLI_OK;
}

static int take_numbers(struct cli_training *t) {
    const struct cli_args *a = t->a;
    int64_t pairs, iterations;
    t->train.C = a->settings.C;
    if (cli_has(a, "cost") && !cli_number(a, "cost", 1e-300, 1e300, &t->train.C))
        return CLI_USAGE;
    if (!cli_number(a, "tol", 1e-15, 1, &t->train.solve.tol) ||
        !cli_number(a, "cache", 1, 1e9, &t->train.solve.cache_mib) ||
        !cli_number(a, "max-seconds", 0, 1e9, &t->train.solve.max_seconds) ||
        !cli_number(a, "mu", 0, 1e300, &t->train.solve.mu) ||
        !cli_integer(a, "max-iterations", 0, INT64_MAX, &iterations) ||
        !cli_integer(a, "pairs", 1, 5000, &pairs))
        return CLI_USAGE;
    t->train.solve.max_iterations = iterations;
    t->train.solve.pairs = (int)pairs;
    t->train.solve.limiter = cli_has(a, "limiter");
    t->train.solve.finish = !cli_has(a, "no-finish");
    t->train.solve.seed = (uint64_t)a->settings.seed;
    t->train.scale = cli_given(a, "scale") && a->settings.scale == SVS_SCALE_STANDARD;
    return CLI_OK;
}

static int take_format(struct cli_training *t) {
    static const char *const names[] = {"own", "liblinear", "libsvm", NULL};
    const char *name = cli_value(t->a, "format");
    for (int f = 0; names[f]; f++)
        if (strcmp(names[f], name) == 0) {
            t->format = (enum svi_model_format)f;
            return CLI_OK;
        }
    return unknown_word(t->a, "format", name, names);
}

/* What is made: a model, the quality of K folds, or a path of C. */
static int take_job(struct cli_training *t) {
    const struct cli_args *a = t->a;
    t->search = cli_has(a, "search-C");
    if (!cli_integer(a, "folds", 0, 1000000, &t->folds) || !cli_number(a, "from", 1e-300, 1e300, &t->from) ||
        !cli_number(a, "to", 1e-300, 1e300, &t->to))
        return CLI_USAGE;
    if (t->folds == 1)
        return cli_usage(a, "--folds needs 2 at least");
    if (t->search && t->to < t->from)
        return cli_usage(a, "--to %g lies below --from %g", t->to, t->from);
    if (a->positional_count > 1 && (t->folds > 0 || t->search))
        return cli_usage(a, "%s makes no model: leave %s out", t->folds > 0 ? "--folds" : "--search-C",
                         a->positional[1]);
    return CLI_OK;
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
    if (at && a->settings.task == SVS_REGRESS)
        return cli_usage(a, "--weights is for classes, not for --task regress");
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

int cli_training(const struct cli_args *a, struct cli_training *t) {
    static int (*const steps[])(struct cli_training *) = {take_solver, take_penalty, take_kernel, take_loss,
                                                          take_bias,   take_numbers, take_format, take_job};
    *t = (struct cli_training){.a = a};
    svs_train_options_default(&t->train);
    int code = CLI_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && code == CLI_OK; i++)
        code =
            steps[i](t); /* in this order: the usual loss hangs on the solver, the usual bias on the loss */
    return code == CLI_OK ? check_weights(a) : code;
}

svs_code cli_class_weights(const struct cli_args *a, const svs_examples *e, double **out, svs_error *err) {
    const char *at = cli_value(a, "weights");
    if (!at)
        return SVS_OK;
    double *factor = *out = svi_alloc_array((size_t)e->class_count + 1, sizeof *factor);
    if (!factor)
        return svi_fail_memory(err, "the class weights");
    for (int k = 0; k < e->class_count; k++)
        factor[k] = 1;
    for (const char *rest; *at; at = rest) {
        double weight;
        size_t length = read_weight(at, &weight, &rest);
        int k = find_label(e, at, length);
        if (k < 0)
            return svi_fail(err, SVS_INVALID, "--weights names the label %.*s, which the file does not have",
                            (int)length, at);
        factor[k] = weight;
    }
    return SVS_OK;
}
