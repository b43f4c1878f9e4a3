/* svmstream novelty: one-class models of files, in three verbs.
 *
 *     train   rows -> a model file and its certificate, with options from the settings
 *     score   rows and a model -> novelty, membership and surprise of each row, the features that contribute
 *             most, the agreement with labels, and a plot
 *     show    a model -> its certificate and the normal range of each feature, or the whole file as JSON
 *
 * novelty_rows_read reads the files of the first two: it chooses columns, joins lags and keeps labels out of
 * the features. Novelty is defined as in a stream: 1 - membership, higher = more novel. Rows of a file have
 * no p-value: that needs calibration samples on which the model was not fitted, and only a stream keeps
 * those.
 *
 * Read from the bottom: the command's row, the verbs, their work. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/pool.h"
#include "cli/object.h"
#include "cli/table_in.h"
#include "features/model_schema.h"
#include "report/plot.h"
#include "formats/file_io.h"
#include "formats/novelty_file.h"
#include "linalg/kernels.h"
#include "novelty/lags.h"
#include "novelty/novelty_model.h"
#include "report/novelty_model_report.h"
#include "wire/json.h"
#include "wire/schema_map.h"

#define NAME_BYTES (SVS_NAME_MAX + 16) /* a name with its lag */
#define NAME_SHOWN 60
#define CHUNK      1024 /* rows between two updates of the progress line */
#define PANELS_MAX 3    /* features in a plot */

/* ---- a file as rows: columns chosen, labels normal or anomalous, `lags` samples joined to one row */

/* Rows of joined samples: the newest sample of row i is sample i + skipped of the file. */
struct novelty_rows {
    svs_rows rows;
    int64_t skipped;           /* lags - 1 */
    int8_t *anomaly;           /* per row, by its newest sample: 0 normal, 1 anomalous, -1 not known */
    bool *touched;             /* per row: at least one of its samples is anomalous */
    const double *ts;          /* per row, NAN = no time stamp; NULL = the file has no times */
    const char *const *names;  /* of the features of one sample, NULL = no names */
    int width;                 /* features of one sample */
    int64_t normal, anomalous; /* rows of either kind */
    struct svi_table table;
    struct svi_row_memory memory;   /* limit of the table and `joined` together */
    struct svi_model_schema schema; /* of the model */
    double *joined;                 /* owned copy of the rows; NULL: `rows` is a view of the table */
};

/* Columns are interpreted by the model's schema, or by the names of its features, or by the settings. */
static svs_code novelty_rows_read_table(const struct cli_args *a, const char *path,
                                        const svs_novelty_model *model, struct svi_progress *progress,
                                        struct novelty_rows *r, svs_error *err) {
    struct svi_schema_options schema;
    struct svi_table_options o = cli_table_options(a, &schema, progress);
    o.memory = r->memory = cli_table_memory(a);
    o.task = SVS_CLASSIFY;
    o.unlabelled = o.exact = o.keep_missing = true;
    o.reader.placed = false; /* a label column must be named: by position it could be a feature */
    if (model && model->schema) {
        const uint8_t *at = model->schema;
        if (svi_schema_decode(&r->schema, model->features, model->d / model->lags, at,
                              at + model->schema_size, err) != SVS_OK)
            return err->code;
        o.model = &r->schema.schema;
        o.exact = false;
        o.features = model->d / model->lags;
    } else if (model) {
        o.names = model->features;
        o.features = o.name_count = model->d / model->lags;
    } else {
        o.fixed = a->settings.features;
    }
    return svi_table_read(&r->table, path, &o, err);
}

/* 0: the label is 0; 1: any other number or word; -1: no label. */
static int8_t novelty_rows_anomaly(const svs_examples *e, int64_t i) {
    if (e->label[i] < 0)
        return -1;
    const svs_value y = e->classes[e->label[i]];
    return y.kind != SVS_INT || y.as.i != 0;
}

/* Row r joins the samples r .. i = r + skipped, so it is touched if the newest anomalous one is at least r.
 */
static void novelty_rows_take_labels(struct novelty_rows *r) {
    const svs_examples *e = &r->table.examples;
    int64_t last = -1; /* the newest anomalous sample */
    for (int64_t i = 0; i < e->rows.n; i++) {
        const int8_t anomaly = novelty_rows_anomaly(e, i);
        const int64_t row = i - r->skipped;
        last = anomaly == 1 ? i : last;
        if (row < 0)
            continue;
        r->anomaly[row] = anomaly;
        r->touched[row] = last >= row;
        r->normal += anomaly == 0;
        r->anomalous += anomaly == 1;
    }
}

/* Fails unless the memory limit allows a dense copy of all rows in addition to what is held. */
static svs_code novelty_rows_fit(const struct novelty_rows *r, int64_t stride, svs_error *err) {
    const double held =
        r->table.bytes + (r->joined ? (double)r->rows.n * (double)r->rows.stride * sizeof *r->joined : 0);
    return svi_table_fits(r->memory, held + (double)r->rows.n * (double)stride * sizeof *r->joined, err);
}

/* Joins `lags` samples to one row each, dense and padded. The first lags - 1 samples give no row. */
static svs_code novelty_rows_join(struct novelty_rows *r, int lags, bool differences, svs_error *err) {
    const svs_rows *in = &r->table.examples.rows;
    struct svi_lags l = {0};
    const int d = in->d * lags, stride = svi_round_up(d, 8);
    if (novelty_rows_fit(r, stride, err) != SVS_OK)
        return err->code;
    double *x = svi_alloc_array((size_t)in->d, sizeof *x);
    r->joined = svi_alloc_array((size_t)r->rows.n, (size_t)stride * sizeof *r->joined);
    svs_code code = x && r->joined ? svi_lags_init(&l, in->d, lags, differences, err)
                                   : svi_fail_memory(err, "the joined rows");
    double *to = r->joined;
    for (int64_t i = 0; i < in->n && code == SVS_OK; i++) {
        svs_rows_copy(in, i, x);
        if (svi_lags_push(&l, x, to))
            to += stride;
    }
    r->rows = (svs_rows){.n = r->rows.n, .d = d, .dense = r->joined, .stride = stride, .padded = true};
    svi_lags_clear(&l);
    svi_free(x);
    return code;
}

static svs_code novelty_rows_prepare(struct novelty_rows *r, const char *path, int lags, bool differences,
                                     svs_error *err) {
    const svs_examples *e = &r->table.examples;
    if (e->rows.n < lags)
        return svi_fail(err, SVS_WRONG_DIMENSION,
                        "%.100s has %lld samples, fewer than novelty.lags %d: lower novelty.lags", path,
                        (long long)e->rows.n, lags);
    r->skipped = lags - 1;
    r->rows = e->rows;
    r->rows.n = e->rows.n - r->skipped;
    r->width = e->rows.d;
    r->ts = r->table.ts ? r->table.ts + r->skipped : NULL;
    r->anomaly = svi_alloc_array((size_t)r->rows.n, sizeof *r->anomaly);
    r->touched = svi_alloc_array((size_t)r->rows.n, sizeof *r->touched);
    if (!r->anomaly || !r->touched)
        return svi_fail_memory(err, "the rows of a file");
    novelty_rows_take_labels(r);
    return lags > 1 ? novelty_rows_join(r, lags, differences, err) : SVS_OK;
}

/* Reads FILE with the settings label, ts, features, in.format. `model`: selects its columns; NULL: those of
 * the setting `features`, or all. SVS_WRONG_DIMENSION (fewer samples than lags); codes of svi_table_read. The
 * caller calls novelty_rows_clear in any case. */
static svs_code novelty_rows_read(const struct cli_args *a, const char *path, const svs_novelty_model *model,
                                  int lags, bool differences, struct svi_progress *progress,
                                  struct novelty_rows *out, svs_error *err) {
    *out = (struct novelty_rows){0};
    svs_code code = novelty_rows_read_table(a, path, model, progress, out, err);
    out->names = model ? model->features : out->table.examples.features;
    return code == SVS_OK ? novelty_rows_prepare(out, path, lags, differences, err) : code;
}

static void novelty_rows_clear(struct novelty_rows *r) {
    svi_free(r->joined);
    svi_free(r->anomaly);
    svi_free(r->touched);
    svi_table_clear(&r->table);
    svi_model_schema_clear(&r->schema);
}

/* Keeps only the rows without any anomalous sample. SVS_INVALID (fewer than two remain), SVS_NO_MEMORY. */
static svs_code novelty_rows_keep_normal(struct novelty_rows *r, svs_error *err) {
    const int64_t all = r->rows.n, stride = svi_round_up(r->rows.d, 8);
    if (novelty_rows_fit(r, stride, err) != SVS_OK)
        return err->code;
    double *kept = svi_alloc_array((size_t)all, (size_t)stride * sizeof *kept);
    int64_t n = 0;
    if (!kept)
        return svi_fail_memory(err, "the normal rows");
    for (int64_t i = 0; i < all; i++)
        if (!r->touched[i])
            svs_rows_copy(&r->rows, i, kept + n++ * stride);
    r->rows = (svs_rows){.n = n, .d = r->rows.d, .dense = kept, .stride = stride, .padded = true};
    svi_free(r->joined);
    r->joined = kept;
    return n >= 2 ? SVS_OK
                  : svi_fail(err, SVS_INVALID,
                             "%lld of %lld rows are labelled 0: --normals-only needs at least 2",
                             (long long)n, (long long)all);
}

/* ---- how well scores separate anomalous rows from normal ones */

struct labelled {
    double surprise;
    bool anomalous;
};

static int novelty_rows_falling(const void *a, const void *b) {
    const double x = ((const struct labelled *)a)->surprise, y = ((const struct labelled *)b)->surprise;
    return (x < y) - (x > y);
}

/* One walk from the highest score down, equal scores together: each normal row adds the anomalous rows above
 * it to the area (ties half), each anomalous one the precision at its score. */
static void novelty_rows_walk(const struct labelled *l, int64_t n, double normal, double anomalous,
                              double *auc, double *precision) {
    double found = 0, taken = 0;
    *auc = *precision = 0;
    for (int64_t i = 0; i < n;) {
        double hits = 0, misses = 0;
        const double level = l[i].surprise;
        for (; i < n && l[i].surprise == level; i++)
            if (l[i].anomalous)
                hits++;
            else
                misses++;
        *auc += misses * (found + hits / 2);
        found += hits;
        taken += hits + misses;
        *precision += hits * found / taken;
    }
    *auc /= normal * anomalous;
    *precision /= anomalous;
}

/* The area under the ROC curve (ties count half) and the average precision (ties are one step) of the
 * surprise over the labelled rows, which must include normal and anomalous ones. SVS_NO_MEMORY. */
static svs_code novelty_rows_quality(const struct novelty_rows *r, const double *surprise, double *auc,
                                     double *precision) {
    struct labelled *l = svi_alloc_array((size_t)(r->normal + r->anomalous), sizeof *l);
    int64_t n = 0;
    if (!l)
        return SVS_NO_MEMORY;
    for (int64_t i = 0; i < r->rows.n; i++)
        if (r->anomaly[i] >= 0)
            l[n++] = (struct labelled){surprise[i], r->anomaly[i] == 1};
    qsort(l, (size_t)n, sizeof *l, novelty_rows_falling);
    novelty_rows_walk(l, n, (double)r->normal, (double)r->anomalous, auc, precision);
    svi_free(l);
    return SVS_OK;
}

/* ---- train */

static int novelty_train_options(const struct cli_args *a, svs_novelty_options *o) {
    svs_error err;
    if (svi_settings_novelty(&a->settings, o, &err) != SVS_OK)
        return cli_usage(a, "%s", err.text);
    if (a->settings.novelty == SVI_NOVELTY_NONE)
        return cli_usage(a, "--novelty none makes no model: set it to fosvm1 or fosvm2");
    o->degree = (int)cli_integer(a, "degree");
    o->scale = a->settings.scale == SVS_SCALE_STANDARD;
    return CLI_OK;
}

struct novelty_train {
    const struct cli_args *args;
    svs_novelty_options options;
    int lags;
    bool differences;
    struct novelty_rows rows;
    struct svi_progress progress;
    svs_novelty_model *model;
    int64_t left_out; /* rows excluded for anomalous samples */
    double seconds;
};

static void novelty_train_show_progress(void *user, int member, int members, int points, double worst) {
    struct novelty_train *t = user;
    char line[120];
    snprintf(line, sizeof line, "member %d of %d  %d points  smallest membership %.4f (goal %.4f)  %.1f s",
             member + 1, members, points, worst, 1 - t->options.theta, svi_monotonic() - t->progress.start);
    svi_progress_line(&t->progress, line);
}

/* Stores the schema of the columns in the model, where it holds more than the names. */
static svs_code novelty_train_describe(const struct novelty_train *t, svs_error *err) {
    const struct svi_schema *s = t->rows.table.schema;
    struct svi_bytes bytes = {0};
    if (!t->rows.names || !svi_schema_matters(s, false))
        return SVS_OK;
    svs_code code = svi_schema_encode(s, t->rows.width, NULL, t->args->settings.zone, &bytes);
    if (code == SVS_OK)
        code = svi_novelty_model_describe(t->model, bytes.data, bytes.size, err);
    else
        svi_fail_memory(err, "the columns of the file");
    svi_bytes_clear(&bytes);
    return code;
}

static svs_code novelty_train_fit(struct novelty_train *t, svs_error *err) {
    const struct novelty_rows *r = &t->rows;
    const double start = svi_monotonic();
    const int d = r->rows.d;
    struct svi_pool pool = {NULL, false};
    const char **names = r->names ? svi_pool_take(&pool, (size_t)d, sizeof *names) : NULL;
    char *text = r->names ? svi_pool_take(&pool, (size_t)d, NAME_BYTES) : NULL;
    svs_code code = svi_pool_code(&pool, "the names of the features", err);
    for (int j = 0; names && text && j < d; j++)
        names[j] =
            svi_lags_name(r->names, r->width, t->differences, j, text + (size_t)j * NAME_BYTES, NAME_BYTES);
    if (code == SVS_OK)
        code = svs_novelty_train(&r->rows, names, &t->options, &t->model, err);
    t->seconds = svi_monotonic() - start;
    if (code == SVS_OK) {
        t->model->lags = t->lags;
        t->model->differences = t->differences;
    }
    svi_pool_free(&pool);
    return code == SVS_OK ? novelty_train_describe(t, err) : code;
}

static void novelty_train_print_data(const struct novelty_train *t) {
    const svs_novelty_model *m = t->model;
    fprintf(stderr, "%" PRId64 " rows of %d feature%s", m->trained, m->d, m->d == 1 ? "" : "s");
    if (t->lags > 1)
        fprintf(stderr, " (%d in %d samples; the first %d make no row)", t->rows.width, t->lags, t->lags - 1);
    if (t->left_out > 0)
        fprintf(stderr, ", %" PRId64 " with anomalous samples left out", t->left_out);
    if (m->trimmed > 0)
        fprintf(stderr, ", %" PRId64 " of lowest density trimmed", m->trimmed);
    fprintf(stderr, "\nfosvm%d, %s kernel, theta %g, %.3f s\n", m->fosvm, svi_novelty_kernels[m->kernel],
            m->theta, t->seconds);
}

/* Reports that the limit novelty.max ended training before all rows were inside: a trade of speed against
 * sharpness, not a failure. */
static void novelty_train_print_limit(const struct novelty_train *t) {
    const svs_novelty_model *m = t->model;
    int64_t outside = 0;
    for (int e = 0; e < m->members; e++)
        outside = m->member[e].outside > outside ? m->member[e].outside : outside;
    if (outside > 0 && m->fosvm == 1)
        fprintf(
            stderr,
            "novelty.max %d was reached: up to %" PRId64
            " rows lie outside a member; a larger novelty.max, novelty.theta or novelty.trim includes them\n",
            t->options.max, outside);
}

static void novelty_train_warn_label(const struct novelty_train *t) {
    for (int j = 0; t->rows.names && j < t->rows.width; j++)
        if (strcmp(t->rows.names[j], "is_anomaly") == 0)
            fprintf(stderr,
                    "svmstream novelty: the column is_anomaly is used as a feature; if it is the label, "
                    "add --label is_anomaly\n");
}

static svs_code novelty_train_work(struct novelty_train *t, svs_error *err) {
    const struct cli_args *a = t->args;
    char path[4096];
    svs_code code =
        novelty_rows_read(a, a->positional[1], NULL, t->lags, t->differences, &t->progress, &t->rows, err);
    const int64_t all = t->rows.rows.n;
    if (code == SVS_OK && cli_has(a, "normals-only"))
        code = novelty_rows_keep_normal(&t->rows, err);
    t->left_out = all - t->rows.rows.n;
    if (code == SVS_OK)
        code = novelty_train_fit(t, err);
    svi_progress_end(&t->progress);
    if (code != SVS_OK)
        return code;
    cli_output_name(a, 2, 1, ".novelty", path, sizeof path);
    code = svi_novelty_file_write(t->model, path, err);
    if (code != SVS_OK || a->quiet)
        return code;
    novelty_train_print_data(t);
    svi_novelty_model_report_members(t->model, stderr);
    fprintf(stderr, "model %s\n", path);
    novelty_train_print_limit(t);
    novelty_train_warn_label(t);
    return code;
}

static int novelty_train_run(const struct cli_args *a) {
    struct novelty_train t = {.args = a};
    svs_error err = {0};
    int usage = novelty_train_options(a, &t.options);
    if (usage == CLI_OK && cli_has(a, "normals-only") && a->settings.label[0] == '\0')
        usage = cli_usage(a, "--normals-only needs labels: name their column with --label");
    if (usage != CLI_OK)
        return usage;
    /* The lags are applied here, by joining rows, and stored in the model: scoring must join alike. */
    t.lags = (int)a->settings.novelty_lags;
    t.differences = a->settings.novelty_differences;
    t.options.progress = novelty_train_show_progress;
    t.options.user = &t;
    svi_progress_begin(&t.progress, a->quiet);
    svs_code code = novelty_train_work(&t, &err);
    svs_novelty_free(&t.model);
    novelty_rows_clear(&t.rows);
    return cli_end(a, code, &err);
}

/* ---- score */

struct novelty_score {
    const struct cli_args *args;
    int64_t top; /* features named a row */
    svs_novelty_model *model;
    struct novelty_rows rows;
    struct svi_progress progress;
    struct svi_pool pool;
    double *novelty, *surprise;
    double *x, *adds, *work; /* for --top: a row, the features' contributions, scratch */
    bool *named;             /* features of the row that are already written */
    struct svi_bytes text;   /* scratch */
    double seconds;          /* of scoring alone, without reading and writing */
};

static svs_code novelty_score_reserve(struct novelty_score *s, svs_error *err) {
    const size_t n = (size_t)s->rows.rows.n, d = (size_t)s->model->d;
    SVI_POOL_DOUBLES(&s->pool, n, &s->novelty, &s->surprise);
    SVI_POOL_DOUBLES(&s->pool, d, &s->x, &s->adds);
    s->named = svi_pool_take(&s->pool, d, sizeof *s->named);
    s->work = svi_pool_doubles(&s->pool, svi_explain_doubles(s->model));
    return svi_pool_code(&s->pool, "the scores", err);
}

static svs_code novelty_score_rows(struct novelty_score *s, svs_error *err) {
    const int64_t n = s->rows.rows.n;
    const double start = svi_monotonic();
    svs_code code = SVS_OK;
    for (int64_t first = 0; first < n && code == SVS_OK; first += CHUNK) {
        code = svs_novelty_score(s->model, &s->rows.rows, first, n - first < CHUNK ? n - first : CHUNK,
                                 s->novelty + first, s->surprise + first, err);
        svi_progress_show(&s->progress, first, (double)first, (double)n, "scoring");
    }
    s->seconds = svi_monotonic() - start;
    return code;
}

/* The feature with the largest contribution to the surprise, in size, among those not yet written. */
static int novelty_next_feature(const struct novelty_score *s) {
    int best = -1;
    for (int j = 0; j < s->model->d; j++)
        if (!s->named[j] && (best < 0 || fabs(s->adds[j]) > fabs(s->adds[best])))
            best = j;
    return best;
}

static const char *novelty_feature_name(const struct novelty_score *s, int j, char *scratch, size_t size) {
    return s->model->features ? s->model->features[j]
                              : svi_lags_name(NULL, s->rows.width, s->model->differences, j, scratch, size);
}

/* Writes a CSV cell, quoted only where necessary. */
static void novelty_put_cell(FILE *to, const char *text) {
    if (!strpbrk(text, ",\"\n\r")) {
        cli_put_text(to, text, strlen(text));
        return;
    }
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

static void novelty_put_top(struct novelty_score *s, FILE *to, int64_t row) {
    const bool json = cli_has(s->args, "json");
    char scratch[32];
    svs_rows_copy(&s->rows.rows, row, s->x);
    svi_explain(s->model, s->x, s->work, NULL, s->adds);
    memset(s->named, 0, (size_t)s->model->d * sizeof *s->named);
    fputs(json ? ",\"top\":[" : "", to);
    for (int64_t k = 0; k < s->top; k++) {
        const int j = novelty_next_feature(s);
        const char *name = novelty_feature_name(s, j, scratch, sizeof scratch);
        s->named[j] = true;
        if (json) {
            s->text.size = 0;
            svi_json_string(&s->text, name, strlen(name));
            fprintf(to, "%s%.*s", k ? ",[" : "[", (int)s->text.size, (const char *)s->text.data);
        } else {
            fputc(',', to);
            novelty_put_cell(to, name);
        }
        fprintf(to, ",%.6g%s", s->adds[j], json ? "]" : "");
    }
    fputs(json ? "]" : "", to);
}

static void novelty_put_row(const struct novelty_score *s, FILE *to, int64_t i) {
    const bool json = cli_has(s->args, "json");
    const double ts = s->rows.ts ? s->rows.ts[i] : NAN;
    fprintf(to, json ? "{\"row\":%" PRId64 : "%" PRId64, i + s->rows.skipped + 1);
    if (!isnan(ts))
        fprintf(to, json ? ",\"ts\":%.15g" : ",%.15g", ts);
    else if (s->rows.ts && !json)
        fputc(',', to);
    fprintf(to, json ? ",\"novelty\":%.9g,\"membership\":%.9g,\"surprise\":%.9g" : ",%.9g,%.9g,%.9g",
            s->novelty[i], exp(-s->surprise[i]), s->surprise[i]);
}

static void novelty_put_header(const struct novelty_score *s, FILE *to) {
    fprintf(to, "row%s,novelty,membership,surprise", s->rows.ts ? ",ts" : "");
    for (int64_t k = 1; k <= s->top; k++)
        fprintf(to, ",feature%" PRId64 ",adds%" PRId64, k, k);
    fputc('\n', to);
}

static svs_code novelty_put_scores(void *user, FILE *to, svs_error *err) {
    struct novelty_score *s = user;
    const bool json = cli_has(s->args, "json");
    (void)err;
    if (!json)
        novelty_put_header(s, to);
    for (int64_t i = 0; i < s->rows.rows.n; i++) {
        novelty_put_row(s, to, i);
        if (s->top > 0)
            novelty_put_top(s, to, i);
        fputs(json ? "}\n" : "\n", to);
    }
    return SVS_OK;
}

/* The columns of row i in a plot: its first features, its novelty, and 1 when its label is anomalous. */
static void novelty_plot_point(const void *user, int64_t i, double *x, double *values) {
    const struct novelty_score *s = user;
    const struct novelty_rows *r = &s->rows;
    const int features = r->width < PANELS_MAX ? r->width : PANELS_MAX;
    svs_rows_copy(&r->rows, i, s->x);
    *x = r->ts ? r->ts[i] : (double)(i + r->skipped + 1);
    memcpy(values, s->x, (size_t)features * sizeof *values);
    values[features] = s->novelty[i];
    values[features + 1] = r->anomaly[i] == 1;
}

static svs_code novelty_plot(const struct novelty_score *s, svs_error *err) {
    const struct novelty_rows *r = &s->rows;
    const int features = r->width < PANELS_MAX ? r->width : PANELS_MAX;
    const bool labelled = r->anomalous > 0;
    const double threshold =
        cli_has(s->args, "threshold") ? cli_number(s->args, "threshold") : s->model->theta;
    char names[PANELS_MAX][16], title[40];
    struct svi_plot_series feature[PANELS_MAX][2];
    struct svi_plot_panel panels[PANELS_MAX + 1];
    snprintf(title, sizeof title, "threshold %.4g", threshold);
    const struct svi_plot_series score[] = {{SVI_PLOT_BAND, features + 1, 0, "labelled"},
                                            {SVI_PLOT_LINE, features, 0, NULL},
                                            {SVI_PLOT_LEVEL, 0, threshold, title},
                                            {SVI_PLOT_MARKS, features, 0, "above it"}};
    for (int j = 0; j < features; j++) {
        snprintf(names[j], sizeof names[j], "x%d", j + 1);
        feature[j][0] = (struct svi_plot_series){SVI_PLOT_LINE, j, 0, NULL};
        feature[j][1] = (struct svi_plot_series){SVI_PLOT_MARKS, j, 0, NULL};
        panels[j] = (struct svi_plot_panel){
            .label = r->names ? r->names[j] : names[j], .series = feature[j], .count = 2};
    }
    panels[features] = (struct svi_plot_panel){
        .label = "novelty", .high = 1.05, .series = score + !labelled, .count = 4 - !labelled};
    const struct svi_plot p = {.n = r->rows.n,
                               .columns = features + 2,
                               .point = novelty_plot_point,
                               .user = s,
                               .times = r->ts,
                               .marked = features,
                               .mark_above = threshold,
                               .panels = panels,
                               .panel_count = features + 1};
    return svi_plot_write(cli_value(s->args, "plot"), &p, err);
}

static void novelty_score_print_quality(const struct novelty_score *s, FILE *to) {
    const struct novelty_rows *r = &s->rows;
    double auc, precision;
    if (r->normal == 0 || r->anomalous == 0 ||
        novelty_rows_quality(r, s->surprise, &auc, &precision) != SVS_OK)
        return;
    fprintf(to, "anomalous %" PRId64 " of %" PRId64 " labelled rows\nauc %.4f\naverage precision %.4f\n",
            r->anomalous, r->normal + r->anomalous, auc, precision);
}

static void novelty_score_print_summary(const struct novelty_score *s, FILE *to) {
    const int64_t n = s->rows.rows.n;
    int64_t outside = 0;
    for (int64_t i = 0; i < n; i++)
        outside += s->novelty[i] > s->model->theta;
    fprintf(to, "rows %" PRId64 "  (%.0f rows/s)\n", n, s->seconds > 0 ? (double)n / s->seconds : 0);
    if (s->rows.skipped > 0)
        fprintf(to, "not scored %" PRId64 ": the first samples, up to %d lags\n", s->rows.skipped,
                s->model->lags);
    fprintf(to, "outside %" PRId64 "  (%.4g%%: novelty above theta %g)\n", outside,
            100 * (double)outside / (double)n, s->model->theta);
    novelty_score_print_quality(s, to);
}

static svs_code novelty_score_work(struct novelty_score *s, svs_error *err) {
    const struct cli_args *a = s->args;
    const bool plots = cli_has(a, "plot"), writes = !plots || a->positional_count > 3;
    const char *output = a->positional_count > 3 ? a->positional[3] : "-";
    s->model = svi_novelty_file_read(a->positional[2], err);
    if (!s->model)
        return err->code;
    s->top = s->top < s->model->d ? s->top : s->model->d;
    svs_code code = novelty_rows_read(a, a->positional[1], s->model, s->model->lags, s->model->differences,
                                      &s->progress, &s->rows, err);
    if (code == SVS_OK)
        code = novelty_score_reserve(s, err);
    if (code == SVS_OK)
        code = novelty_score_rows(s, err);
    svi_progress_end(&s->progress);
    if (code == SVS_OK && writes) /* with --plot and no OUTPUT, numbers would only flood the terminal */
        code = svi_file_write(output, novelty_put_scores, s, err);
    if (code == SVS_OK && plots)
        code = novelty_plot(s, err);
    if (code == SVS_OK && !a->quiet)
        novelty_score_print_summary(s, writes && strcmp(output, "-") == 0 ? stderr : stdout);
    return code;
}

static int novelty_score_options(struct novelty_score *s) {
    const struct cli_args *a = s->args;
    s->top = cli_integer(a, "top");
    if (cli_has(a, "threshold") && !cli_has(a, "plot"))
        return cli_usage(a, "--threshold needs --plot");
    if (cli_has(a, "plot") && !svi_plot_takes(cli_value(a, "plot")))
        return cli_usage(a, "--plot takes a file name that ends in .svg or .png, not %s",
                         cli_value(a, "plot"));
    return CLI_OK;
}

static int novelty_score_run(const struct cli_args *a) {
    struct novelty_score s = {.args = a};
    svs_error err = {0};
    int usage = novelty_score_options(&s);
    if (usage != CLI_OK)
        return usage;
    svi_progress_begin(&s.progress, a->quiet);
    svs_code code = novelty_score_work(&s, &err);
    svi_pool_free(&s.pool);
    svi_bytes_clear(&s.text);
    svs_novelty_free(&s.model);
    novelty_rows_clear(&s.rows);
    return cli_end(a, code, &err);
}

/* ---- show */

static int novelty_show_run(const struct cli_args *a) {
    const char *path = a->positional[1];
    char *bytes;
    size_t size;
    svs_error err = {0};
    svs_novelty_model *m = NULL;
    svs_code code = svi_file_read(path, &bytes, &size, &err);
    if (code == SVS_OK && !(m = svi_novelty_file_decode(bytes, size, &err)))
        code = err.code;
    if (code == SVS_OK && cli_has(a, "json"))
        code = cli_show_json(bytes, size, &err);
    else if (code == SVS_OK)
        svi_novelty_model_report(m, stdout);
    svi_free(bytes);
    svs_novelty_free(&m);
    return code == SVS_OK ? CLI_OK : cli_fail(a, "%.100s: %.150s", path, err.text);
}

/* ---- the command */

static const struct cli_verb verbs[] = {
    {"train", novelty_train_run, "FILE [MODEL]", "degree normals-only memory"},
    {"score", novelty_score_run, "FILE MODEL [OUTPUT]", "json top plot threshold memory"},
    {"show", novelty_show_run, "MODEL", "json"},
    {NULL, NULL, NULL, NULL}};

static const struct cli_option options[] = {
    CLI_INTEGER("degree", 'd', "N", "3", 1, 20, "train: degree of the polynomial kernel"),
    CLI_SWITCH("normals-only", 0, "train: leave out rows whose label is not 0"),
    CLI_NUMBER("memory", 0, "MIB", "0", 0, 1e9,
               "train, score: memory for the rows of the file; a larger file is refused. 0 is three quarters "
               "of what the machine, or the process's cgroup, has"),
    CLI_SWITCH("json", 0, "score, show: print JSON (scores: one line per row)"),
    CLI_INTEGER("top", 'n', "N", "0", 0, 1000, "score: name the N features that contribute most"),
    CLI_OPTION("plot", 0, "FILE", NULL,
               "score: draw rows and scores into FILE.svg or FILE.png (needs gnuplot)"),
    CLI_NUMBER("threshold", 0, "P", NULL, 0, 1,
               "score: the plot marks rows with a novelty above P (default theta)"),
    CLI_END};

const struct cli_command cli_novelty = {
    .name = "novelty",
    .text = "train a one-class model of what is normal, and score how novel rows are",
    .usage = "train FILE [MODEL] | score FILE MODEL [OUTPUT] | show MODEL",
    .help =
        "train learns the region in which the rows of FILE lie (FOSVM, a one-class SVM by active sets).\n"
        "It prints the certificate of every member: the smallest membership of the fitted rows, the\n"
        "violation of the optimality conditions, and the rows left outside. MODEL is FILE.novelty in the\n"
        "current directory by default; - is standard output.\n"
        "\n"
        "score writes one line for each row: novelty (1 - membership, higher is more novel: below 0\n"
        "inside, 0 at the border, towards 1 far away), membership, and surprise (-log membership). Where\n"
        "the file has labels (0 normal, anything else anomalous), it also prints AUC and average\n"
        "precision. Labels are never learned; --normals-only leaves the anomalous rows out. Novelty is\n"
        "the same quantity as in the score events of `svmstream run`. These also have p, the conformal\n"
        "p-value. A file is scored without calibration and gets no p.\n"
        "\n"
        "Examples:\n"
        "  svmstream novelty train --ts t --label is_anomaly --novelty.lags 6 machine.csv machine.novelty\n"
        "  svmstream novelty score --ts t --label is_anomaly machine.csv machine.novelty scores.csv\n"
        "  svmstream novelty score --ts t --label is_anomaly --plot machine.svg machine.csv machine.novelty\n"
        "  svmstream novelty show machine.novelty",
    .keys =
        "novelty novelty.kernel novelty.gamma novelty.theta novelty.epsilon novelty.m novelty.max "
        "novelty.lags novelty.differences novelty.trim label ts ts.format id columns no-header categories "
        "numbers "
        "ignore missing.words categories.max hash calendar zone features scale in.format max.features seed",
    .options = options,
    .verbs = verbs,
    .unchecked = true};
