/* A file as rows for `svmstream novelty`: columns chosen, labels as normal and anomalous, samples joined. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/novelty.h"
#include "novelty/lags.h"

/* The names of the setting `features`. */
static svs_code cut_names(struct cli_novelty_rows *r, const char *features, svs_error *err) {
    const size_t bytes = strlen(features) + 1;
    int commas = 0;
    for (const char *c = features; *c; c++)
        commas += *c == ',';
    r->wanted = svi_alloc_array((size_t)commas + 1, sizeof *r->wanted);
    r->wanted_text = svi_alloc(bytes);
    if (!r->wanted || !r->wanted_text)
        return svi_fail_memory(err, "the names of the features");
    memcpy(r->wanted_text, features, bytes);
    char *rest = r->wanted_text;
    for (char *name; (name = strsep(&rest, ","));) {
        name += strspn(name, " ");
        for (size_t n = strlen(name); n > 0 && name[n - 1] == ' '; n--)
            name[n - 1] = '\0';
        r->wanted[r->wanted_count++] = name;
    }
    return SVS_OK;
}

static void show_reading(void *user, int64_t rows, int64_t position, int64_t size) {
    cli_progress_show(user, rows, (double)position, (double)size, "reading");
}

static int width_of(const svs_novelty_model *m) {
    return m->lags > 1 ? m->d / m->lags : m->d;
}

static svs_code read_table(const struct cli_args *a, const char *path, const svs_novelty_model *model,
                           struct cli_progress *progress, struct cli_novelty_rows *r, svs_error *err) {
    const struct svi_settings *s = &a->settings;
    struct svi_table_options o = {.reader = {.format = s->in_format,
                                             .label = s->label,
                                             .label_required = cli_given(a, "label"),
                                             .weight = s->weight[0] ? s->weight : NULL,
                                             .id = s->id[0] ? s->id : NULL,
                                             .ts = s->ts[0] ? s->ts : NULL},
                                  .task = SVS_CLASSIFY,
                                  .unlabelled = true,
                                  .max_features =
                                      cli_given(a, "max.features") ? (int)s->max_features : 1000000,
                                  .exact = true,
                                  .progress = show_reading,
                                  .user = progress};
    if (model) {
        o.names = model->features;
        o.features = o.name_count = width_of(model);
    } else if (s->features[0]) {
        svs_code code = cut_names(r, s->features, err);
        if (code != SVS_OK)
            return code;
        o.names = r->wanted;
        o.features = o.name_count = r->wanted_count;
    }
    return svi_table_read(&r->table, path, &o, err);
}

/* 0: a label of 0; 1: any other number or word; -1: no label. */
static int8_t anomaly_of(const svs_examples *e, int64_t i) {
    if (e->label[i] < 0)
        return -1;
    const svs_value y = e->classes[e->label[i]];
    return y.kind != SVS_INT || y.as.i != 0;
}

static void take_labels(struct cli_novelty_rows *r) {
    const svs_examples *e = &r->table.examples;
    int64_t last = -1; /* the newest anomalous sample */
    for (int64_t i = 0; i < e->rows.n; i++) {
        const int8_t anomaly = anomaly_of(e, i);
        const int64_t row = i - r->skipped;
        last = anomaly == 1 ? i : last;
        if (row < 0)
            continue;
        r->own_anomaly[row] = anomaly;
        r->own_touched[row] = last >= row;
        r->normal += anomaly == 0;
        r->anomalous += anomaly == 1;
    }
    r->anomaly = r->own_anomaly;
    r->touched = r->own_touched;
}

/* Rows of `lags` samples, padded and dense. */
static svs_code join(struct cli_novelty_rows *r, int lags, bool differences, svs_error *err) {
    const svs_rows *in = &r->table.examples.rows;
    struct svi_lags l = {0};
    const int d = in->d * lags, stride = (d + 7) / 8 * 8;
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

static svs_code prepare(struct cli_novelty_rows *r, const char *path, int lags, bool differences,
                        svs_error *err) {
    const svs_examples *e = &r->table.examples;
    if (e->rows.n < lags)
        return svi_fail(err, SVS_WRONG_DIMENSION, "%.100s has %lld samples: fewer than the %d lags", path,
                        (long long)e->rows.n, lags);
    r->skipped = lags - 1;
    r->rows = e->rows;
    r->rows.n = e->rows.n - r->skipped;
    r->width = e->rows.d;
    r->ts = r->table.ts ? r->table.ts + r->skipped : NULL;
    r->own_anomaly = svi_alloc_array((size_t)r->rows.n, sizeof *r->own_anomaly);
    r->own_touched = svi_alloc_array((size_t)r->rows.n, sizeof *r->own_touched);
    if (!r->own_anomaly || !r->own_touched)
        return svi_fail_memory(err, "the rows of a file");
    take_labels(r);
    return lags > 1 ? join(r, lags, differences, err) : SVS_OK;
}

svs_code cli_novelty_read(const struct cli_args *a, const char *path, const svs_novelty_model *model,
                          int lags, bool differences, struct cli_progress *progress,
                          struct cli_novelty_rows *out, svs_error *err) {
    *out = (struct cli_novelty_rows){0};
    svs_code code = read_table(a, path, model, progress, out, err);
    out->names = model ? model->features : out->wanted ? out->wanted : out->table.examples.features;
    return code == SVS_OK ? prepare(out, path, lags, differences, err) : code;
}

void cli_novelty_clear(struct cli_novelty_rows *r) {
    svi_free(r->joined);
    svi_free(r->own_anomaly);
    svi_free(r->own_touched);
    svi_free(r->wanted);
    svi_free(r->wanted_text);
    svi_table_clear(&r->table);
}
