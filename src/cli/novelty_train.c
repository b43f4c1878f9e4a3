/* svmstream novelty train: rows -> a one-class model with its certificate. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/novelty.h"
#include "novelty/lags.h"
#include "wire/novelty_file.h"

#define NAME_ROOM (SVS_NAME_MAX + 16) /* a name with its lag */

int cli_novelty_options(const struct cli_args *a, svs_novelty_options *o) {
    svs_error err;
    int64_t degree;
    if (svi_settings_novelty(&a->settings, o, &err) != SVS_OK)
        return cli_usage(a, "%s", err.text);
    if (!a->settings.novelty)
        return cli_usage(a, "--novelty none makes no model: fosvm1 and fosvm2 do");
    if (!cli_integer(a, "degree", 1, 20, &degree))
        return CLI_USAGE;
    o->degree = (int)degree;
    o->scale = a->settings.scale == SVS_SCALE_STANDARD;
    return CLI_OK;
}

const char *cli_novelty_kernel(svs_novelty_kernel kernel) {
    static const char *const names[] = {[SVS_NOVELTY_RBF] = "rbf",
                                        [SVS_NOVELTY_LAPLACIAN] = "laplacian",
                                        [SVS_NOVELTY_POLYNOMIAL] = "polynomial"};
    return names[kernel];
}

/* ---- the work */

struct train {
    const struct cli_args *args;
    svs_novelty_options options;
    int lags;
    bool differences;
    struct cli_novelty_rows rows;
    struct cli_progress progress;
    svs_novelty_model *model;
    int64_t left_out; /* rows with anomalous samples */
    double seconds;
};

static void show_progress(void *user, int member, int members, int points, double worst) {
    struct train *t = user;
    char line[120];
    snprintf(line, sizeof line, "member %d of %d  %d points  smallest membership %.4f (goal %.4f)  %.1f s",
             member + 1, members, points, worst, 1 - t->options.theta, cli_clock() - t->progress.start);
    cli_progress_line(&t->progress, line);
}

/* Takes the rows with an anomalous sample out; what is left is dense then. */
static svs_code keep_normal(struct train *t, svs_error *err) {
    struct cli_novelty_rows *r = &t->rows;
    const int64_t stride = (r->rows.d + 7) / 8 * 8;
    double *kept = svi_alloc_array((size_t)r->rows.n, (size_t)stride * sizeof *kept);
    if (!kept)
        return svi_fail_memory(err, "the normal rows");
    int64_t n = 0;
    for (int64_t i = 0; i < r->rows.n; i++)
        if (!r->touched[i])
            svs_rows_copy(&r->rows, i, kept + n++ * stride);
    t->left_out = r->rows.n - n;
    r->rows = (svs_rows){.n = n, .d = r->rows.d, .dense = kept, .stride = stride, .padded = true};
    svi_free(r->joined);
    r->joined = kept;
    return n >= 2 ? SVS_OK
                  : svi_fail(err, SVS_INVALID,
                             "%lld of %lld rows are labelled 0 throughout: --normals-only needs two at least",
                             (long long)n, (long long)(n + t->left_out));
}

static svs_code fit(struct train *t, svs_error *err) {
    const struct cli_novelty_rows *r = &t->rows;
    const double start = cli_clock();
    const char **names = NULL;
    char *text = NULL;
    const int d = r->rows.d;
    if (r->names) {
        names = svi_alloc_array((size_t)d, sizeof *names);
        text = svi_alloc_array((size_t)d, NAME_ROOM);
        if (!names || !text) {
            svi_free(names);
            svi_free(text);
            return svi_fail_memory(err, "the names of the features");
        }
        for (int j = 0; j < d; j++)
            names[j] =
                svi_lags_name(r->names, r->width, t->differences, j, text + (size_t)j * NAME_ROOM, NAME_ROOM);
    }
    svs_code code = svs_novelty_train(&r->rows, names, &t->options, &t->model, err);
    t->seconds = cli_clock() - start;
    if (code == SVS_OK) {
        t->model->lags = t->lags;
        t->model->differences = t->differences;
    }
    svi_free(names);
    svi_free(text);
    return code;
}

/* ---- what is said at the end */

static void print_data(const struct train *t) {
    const svs_novelty_model *m = t->model;
    fprintf(stderr, "%" PRId64 " rows of %d feature%s", m->trained, m->d, m->d == 1 ? "" : "s");
    if (t->lags > 1)
        fprintf(stderr, " (%d in %d samples; the first %d make no row)", t->rows.width, t->lags, t->lags - 1);
    if (t->left_out > 0)
        fprintf(stderr, ", %" PRId64 " with anomalous samples left out", t->left_out);
    if (m->trimmed > 0)
        fprintf(stderr, ", %" PRId64 " of lowest density trimmed", m->trimmed);
    fprintf(stderr, "\nfosvm%d, %s kernel, theta %g, %.3f s\n", m->fosvm, cli_novelty_kernel(m->kernel),
            m->theta, t->seconds);
}

/* The limit was met before all rows were inside: a matter of speed against sharpness, not a failure. */
static void tell_limit(const struct train *t) {
    const svs_novelty_model *m = t->model;
    int64_t outside = 0;
    for (int e = 0; e < m->members; e++)
        outside = m->member[e].outside > outside ? m->member[e].outside : outside;
    if (outside > 0 && m->fosvm == 1)
        fprintf(stderr,
                "novelty.max %d was met: up to %" PRId64
                " rows lie outside a member; a larger novelty.max, .theta or .trim takes them in\n",
                t->options.max, outside);
}

static void warn_of_label(const struct train *t) {
    for (int j = 0; t->rows.names && j < t->rows.width; j++)
        if (strcmp(t->rows.names[j], "is_anomaly") == 0)
            fprintf(stderr,
                    "svmstream novelty: the column is_anomaly is taken for a feature: if it is the label, "
                    "say --label is_anomaly\n");
}

static svs_code work(struct train *t, svs_error *err) {
    const struct cli_args *a = t->args;
    char path[4096];
    svs_code code =
        cli_novelty_read(a, a->positional[1], NULL, t->lags, t->differences, &t->progress, &t->rows, err);
    if (code == SVS_OK && cli_has(a, "normals-only"))
        code = keep_normal(t, err);
    if (code == SVS_OK)
        code = fit(t, err);
    cli_progress_end(&t->progress);
    if (code != SVS_OK)
        return code;
    if (a->positional_count > 2)
        snprintf(path, sizeof path, "%s", a->positional[2]);
    else
        cli_default_name(a->positional[1], ".novelty", path, sizeof path);
    code = svi_novelty_write(t->model, path, err);
    if (code != SVS_OK || a->quiet)
        return code;
    print_data(t);
    cli_novelty_members(t->model, stderr);
    fprintf(stderr, "model %s\n", path);
    tell_limit(t);
    warn_of_label(t);
    return code;
}

int cli_novelty_train(const struct cli_args *a) {
    struct train t = {.args = a};
    svs_error err = {0};
    int usage = cli_novelty_options(a, &t.options);
    if (usage == CLI_OK && cli_has(a, "normals-only") && a->settings.label[0] == '\0')
        usage = cli_usage(a, "--normals-only needs labels: name their column with --label");
    if (usage != CLI_OK)
        return usage;
    t.lags = (int)a->settings.novelty_lags;
    t.differences = a->settings.novelty_differences;
    t.options.progress = show_progress;
    t.options.user = &t;
    cli_progress_begin(&t.progress, a->quiet);
    svs_code code = work(&t, &err);
    cli_progress_end(&t.progress);
    svs_novelty_free(&t.model);
    cli_novelty_clear(&t.rows);
    return code == SVS_OK ? CLI_OK : cli_error(a, &err);
}
