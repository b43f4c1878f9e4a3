/* svmstream novelty score: the rows of a file held against a one-class model. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/novelty.h"
#include "novelty/explain.h"
#include "novelty/lags.h"
#include "wire/envelope.h"
#include "wire/json.h"
#include "wire/novelty_file.h"

#define CHUNK 1024 /* rows between two looks at the progress line */

struct score {
    const struct cli_args *args;
    int64_t top, terms; /* features named a row; Fourier features, 0 = none */
    double threshold;   /* novelty above which a row is marked in the plot */
    svs_novelty_model *model;
    svs_fourier *fourier;
    struct cli_novelty_rows rows;
    struct cli_progress progress;
    double *novelty, *surprise;
    double *x, *adds, *work; /* of --top */
    struct svi_bytes text;   /* scratch */
    double seconds;          /* for the scores alone */
};

/* ---- scores */

static svs_code reserve(struct score *s, svs_error *err) {
    const size_t n = (size_t)s->rows.rows.n, d = (size_t)s->model->d;
    s->novelty = svi_alloc_array(n, sizeof *s->novelty);
    s->surprise = svi_alloc_array(n, sizeof *s->surprise);
    s->x = svi_alloc_array(d, sizeof *s->x);
    s->adds = svi_alloc_array(d, sizeof *s->adds);
    s->work = svi_alloc_array(svi_explain_room(s->model), sizeof *s->work);
    return s->novelty && s->surprise && s->x && s->adds && s->work ? SVS_OK
                                                                   : svi_fail_memory(err, "the scores");
}

static svs_code score_chunk(struct score *s, int64_t first, int64_t count, svs_error *err) {
    double *novelty = s->novelty + first, *surprise = s->surprise + first;
    if (s->fourier)
        return svs_fourier_score(s->fourier, &s->rows.rows, first, count, novelty, surprise, err);
    return svs_novelty_score(s->model, &s->rows.rows, first, count, novelty, surprise, err);
}

static svs_code score_all(struct score *s, svs_error *err) {
    const int64_t n = s->rows.rows.n;
    svs_code code = SVS_OK;
    if (s->terms > 0)
        code = svs_fourier_new(s->model, (int)s->terms, (uint64_t)s->args->settings.seed, &s->fourier, err);
    const double start = cli_clock();
    for (int64_t first = 0; first < n && code == SVS_OK; first += CHUNK) {
        code = score_chunk(s, first, n - first < CHUNK ? n - first : CHUNK, err);
        cli_progress_show(&s->progress, first, (double)first, (double)n, "scoring");
    }
    s->seconds = cli_clock() - start;
    return code;
}

/* ---- output */

/* The feature whose share of the surprise is largest in size among those not yet named. */
static int next_feature(const double *adds, int d, const bool *named) {
    int best = -1;
    for (int j = 0; j < d; j++)
        if (!named[j] && (best < 0 || fabs(adds[j]) > fabs(adds[best])))
            best = j;
    return best;
}

static const char *feature_name(const struct score *s, int j, char *room, size_t size) {
    return s->model->features ? s->model->features[j]
                              : svi_lags_name(NULL, s->rows.width, s->model->differences, j, room, size);
}

/* A cell of a CSV: quoted where it must be. */
static void put_cell(FILE *to, const char *text) {
    if (!strpbrk(text, ",\"\n\r")) {
        fputs(text, to);
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

static void put_top(struct score *s, FILE *to, int64_t row, bool *named) {
    const bool json = cli_has(s->args, "json");
    char room[32];
    svs_rows_copy(&s->rows.rows, row, s->x);
    svi_explain(s->model, s->x, s->work, NULL, s->adds);
    memset(named, 0, (size_t)s->model->d * sizeof *named);
    fputs(json ? ",\"top\":[" : "", to);
    for (int64_t k = 0; k < s->top; k++) {
        const int j = next_feature(s->adds, s->model->d, named);
        const char *name = feature_name(s, j, room, sizeof room);
        named[j] = true;
        if (json) {
            s->text.size = 0;
            svi_json_string(&s->text, name, strlen(name));
            fprintf(to, "%s%.*s", k ? ",[" : "[", (int)s->text.size, (const char *)s->text.data);
        } else {
            fputc(',', to);
            put_cell(to, name);
        }
        fprintf(to, ",%.6g%s", s->adds[j], json ? "]" : "");
    }
    fputs(json ? "]" : "", to);
}

static void put_row(const struct score *s, FILE *to, int64_t i) {
    const double ts = s->rows.ts ? s->rows.ts[i] : NAN;
    const long long row = (long long)(i + s->rows.skipped + 1);
    if (cli_has(s->args, "json")) {
        fprintf(to, "{\"row\":%lld", row);
        if (!isnan(ts))
            fprintf(to, ",\"ts\":%.15g", ts);
        fprintf(to, ",\"novelty\":%.9g,\"membership\":%.9g,\"surprise\":%.9g", s->novelty[i],
                exp(-s->surprise[i]), s->surprise[i]);
        return;
    }
    fprintf(to, "%lld", row);
    if (s->rows.ts && isnan(ts))
        fputc(',', to);
    else if (s->rows.ts)
        fprintf(to, ",%.15g", ts);
    fprintf(to, ",%.9g,%.9g,%.9g", s->novelty[i], exp(-s->surprise[i]), s->surprise[i]);
}

static void put_header(const struct score *s, FILE *to) {
    fprintf(to, "row%s,novelty,membership,surprise", s->rows.ts ? ",ts" : "");
    for (int64_t k = 1; k <= s->top; k++)
        fprintf(to, ",feature%" PRId64 ",adds%" PRId64, k, k);
    fputc('\n', to);
}

static svs_code write_scores(void *user, FILE *to, svs_error *err) {
    struct score *s = user;
    const bool json = cli_has(s->args, "json");
    bool *named = svi_alloc_array((size_t)s->model->d, sizeof *named);
    if (!named)
        return svi_fail_memory(err, "the scores");
    if (!json)
        put_header(s, to);
    for (int64_t i = 0; i < s->rows.rows.n; i++) {
        put_row(s, to, i);
        if (s->top > 0)
            put_top(s, to, i, named);
        fputs(json ? "}\n" : "\n", to);
    }
    svi_free(named);
    return ferror(to) ? svi_fail(err, SVS_IO, "the scores could not be written: is the disk full?") : SVS_OK;
}

/* ---- what is said at the end */

static void print_quality(const struct score *s, FILE *to) {
    const struct cli_novelty_rows *r = &s->rows;
    double auc, precision;
    if (r->normal == 0 || r->anomalous == 0 ||
        cli_novelty_quality(r, s->surprise, &auc, &precision) != SVS_OK)
        return;
    fprintf(to, "anomalous %" PRId64 " of %" PRId64 " labelled rows\nauc %.4f\naverage precision %.4f\n",
            r->anomalous, r->normal + r->anomalous, auc, precision);
}

static void print_summary(const struct score *s, FILE *to) {
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
    print_quality(s, to);
}

/* ---- the work */

static svs_code work(struct score *s, svs_error *err) {
    const struct cli_args *a = s->args;
    const char *output = a->positional_count > 3 ? a->positional[3] : "-";
    s->model = svi_novelty_read(a->positional[2], err);
    if (!s->model)
        return err->code;
    s->top = s->top < s->model->d ? s->top : s->model->d;
    svs_code code = cli_novelty_read(a, a->positional[1], s->model, s->model->lags > 1 ? s->model->lags : 1,
                                     s->model->differences, &s->progress, &s->rows, err);
    if (code == SVS_OK)
        code = reserve(s, err);
    if (code == SVS_OK)
        code = score_all(s, err);
    cli_progress_end(&s->progress);
    const bool plots = cli_has(a, "plot");
    if (code == SVS_OK &&
        (!plots || a->positional_count > 3)) /* a plot alone is wanted more than a screenful */
        code = svi_file_write(output, write_scores, s, err);
    if (code == SVS_OK && plots)
        code = cli_novelty_plot(cli_value(a, "plot"), &s->rows, s->novelty,
                                cli_has(a, "threshold") ? s->threshold : s->model->theta, err);
    if (code == SVS_OK && !a->quiet)
        print_summary(s, !plots && strcmp(output, "-") == 0 ? stderr : stdout);
    return code;
}

static int take_options(struct score *s) {
    const struct cli_args *a = s->args;
    if (!cli_integer(a, "top", 0, 1000, &s->top) || !cli_integer(a, "fourier", 0, 10000000, &s->terms) ||
        (cli_has(a, "threshold") && !cli_number(a, "threshold", 0, 1, &s->threshold)))
        return CLI_USAGE;
    if (cli_has(a, "threshold") && !cli_has(a, "plot"))
        return cli_usage(a, "--threshold belongs to --plot");
    if (cli_has(a, "plot") && !cli_novelty_plots(cli_value(a, "plot")))
        return cli_usage(a, "--plot takes a file name that ends in .svg or .png, not %s",
                         cli_value(a, "plot"));
    return CLI_OK;
}

int cli_novelty_score(const struct cli_args *a) {
    struct score s = {.args = a};
    svs_error err = {0};
    int usage = take_options(&s);
    if (usage != CLI_OK)
        return usage;
    cli_progress_begin(&s.progress, a->quiet);
    svs_code code = work(&s, &err);
    cli_progress_end(&s.progress);
    double *const all[] = {s.novelty, s.surprise, s.x, s.adds, s.work};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    svi_bytes_clear(&s.text);
    svs_fourier_free(&s.fourier);
    svs_novelty_free(&s.model);
    cli_novelty_clear(&s.rows);
    return code == SVS_OK ? CLI_OK : cli_error(a, &err);
}
