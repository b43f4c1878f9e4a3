/* The keys of a stream as a table of quality.
 *
 * Each key's engine is asked once for its figures, in the order of the names. Then the lines are
 * sorted, worst first, by the lower bound of how much their error exceeds that of "the same as
 * before". With the lower bound, keys with few rows do not lead. Keys without figures (no labels,
 * or too few) are last, those with most alerts first. Samples without a key have a line too, with
 * the name ''.
 *
 * "The same as before" is compared over the same samples. For all keys together it is the sum over
 * the keys. It is not the comparison in file order, where consecutive labels belong to different
 * keys. */
#include "report/key_quality.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/human.h"
#include "base/text.h"
#include "fleet/key_list.h"
#include "fleet/fleet.h"
#include "report/key_report.h"
#include "report/verdict.h"
#include "wire/pack.h"

struct key_line {
    const char *name; /* owned by the stream */
    int64_t rows, alerts, open;
    double quality, same; /* NAN: not known */
    double worse;         /* quality/baseline.h */
    int64_t compared;     /* samples compared for `same` */
    bool better;          /* better than `same`, or too few samples to say */
};

struct svi_key_quality {
    struct svi_quality_report report;
    bool regress;
    int64_t count;
    double same; /* over all keys */
    struct key_line *lines;
};

/* collecting */

/* Fills the figures of a line from the engine of the key, or from the stream's for ''. */
static void key_line_fill(const struct svi_key_quality *k, svi_engine *e, struct key_line *l) {
    const struct svi_figure *f;
    struct svi_engine_standing standing;
    svi_engine_standing(e, &standing);
    const struct svi_advantage same = standing.baseline.same;
    const int count = svi_stream_figures(k->report.stream, e, k->report.now, &f);
    l->quality = svi_figure_value(f, count, k->regress ? "rmse" : "accuracy");
    l->same = svi_figure_value(f, count, k->regress ? "rmse_no_change" : "accuracy_no_change");
    l->worse = standing.worse;
    l->compared = same.n;
    /* Too few rows count as better: no blame without evidence. */
    l->better = same.by > 0 || same.n < SVI_VERDICT_ROWS;
}

/* Samples without a key are in the stream's own engine, whose alerts are counted by kind. */
static void key_line_fill_unkeyed(const struct svi_key_quality *k, struct key_line *l) {
    static const char *const alerts[] = {"alerts", "quality_alerts", "rule_alerts"};
    const struct svi_figure *f;
    *l = (struct key_line){.name = "", .rows = svi_stream_unkeyed(k->report.stream)};
    key_line_fill(k, svi_stream_root(k->report.stream), l);
    const int count = svi_stream_figures(k->report.stream, NULL, k->report.now, &f);
    for (int i = 0; i < 3; i++)
        l->alerts += (int64_t)fmax(0, svi_figure_value(f, count, alerts[i]));
}

/* The order of the table. Ties continue with quality, then alerts, then the name, so that it is the same on
 * every run. */
static int compare_lines(const void *x, const void *y, void *regress) {
    const struct key_line *a = x, *b = y;
    const bool larger = *(const bool *)regress;
    const int unknown = isnan(a->quality) - isnan(b->quality);
    if (unknown != 0)
        return unknown;
    const double above = isnan(a->worse) ? -INFINITY : a->worse,
                 other = isnan(b->worse) ? -INFINITY : b->worse;
    if (above != other)
        return above < other ? 1 : -1;
    if (a->quality != b->quality && !isnan(a->quality))
        return (a->quality < b->quality) == larger ? 1 : -1;
    if (a->alerts != b->alerts)
        return a->alerts < b->alerts ? 1 : -1;
    return strcmp(a->name, b->name);
}

/* "The same as before" over all keys, as if each sample were compared with the one before it of its own key:
 * mean of accuracies, or root of the mean of squares, weighted by samples. */
static double key_lines_same(const struct svi_key_quality *k) {
    double sum = 0, n = 0;
    for (int64_t i = 0; i < k->count; i++) {
        const struct key_line *l = &k->lines[i];
        if (isnan(l->same))
            continue;
        /* Squares add up for the rmse, hits for the accuracy. */
        sum += (double)l->compared * (k->regress ? l->same * l->same : l->same);
        n += (double)l->compared;
    }
    return k->regress ? sqrt(sum / n) : sum / n; /* 0 / 0 = NAN: not known */
}

static svs_code key_lines_ask(struct svi_key_quality *k, const struct svi_key_entry **entries, int count,
                              svs_error *err) {
    for (int i = 0; i < count; i++) {
        /* Loads the key if it is on disk: each is asked only once, since loading it may evict another. */
        svi_engine *e = svi_stream_engine(k->report.stream, entries[i]->name, err);
        if (!e)
            return err->code;
        struct key_line *l = &k->lines[k->count++];
        *l = (struct key_line){.name = entries[i]->name,
                               .rows = entries[i]->last.rows,
                               .alerts = entries[i]->last.alerts,
                               .open = entries[i]->last.open};
        key_line_fill(k, e, l);
    }
    if (svi_stream_unkeyed(k->report.stream) > 0)
        key_line_fill_unkeyed(k, &k->lines[k->count++]);
    qsort_r(k->lines, (size_t)k->count, sizeof *k->lines, compare_lines, &k->regress);
    k->same = key_lines_same(k);
    return SVS_OK;
}

struct svi_key_quality *svi_key_quality_new(const struct svi_quality_report *r, svs_error *err) {
    struct svi_key_quality *k = svi_alloc(sizeof *k);
    const struct svi_key_query all = {.order = SVI_KEYS_BY_NAME,
                                      .limit = (int)svi_stream_key_count(r->stream)};
    const struct svi_key_entry **entries = svi_alloc_array((size_t)all.limit + 1, sizeof *entries);
    int64_t matching;
    if (k) {
        k->report = *r;
        k->regress = svi_stream_settings(r->stream)->task == SVS_REGRESS;
        k->lines = svi_alloc_array((size_t)all.limit + 1, sizeof *k->lines);
    }
    svs_code code = k && k->lines && entries ? SVS_OK : svi_fail_memory(err, "the table of keys");
    /* `lines` has one entry more than there are keys, for ''. */
    if (code == SVS_OK)
        code = key_lines_ask(k, entries, svi_stream_keys(r->stream, &all, entries, &matching), err);
    svi_free(entries);
    if (code != SVS_OK)
        svi_key_quality_free(&k);
    return k;
}

void svi_key_quality_free(struct svi_key_quality **k) {
    if (*k)
        svi_free((*k)->lines);
    svi_free(*k);
    *k = NULL;
}

/* output */

static void key_quality_number(const struct svi_key_quality *k, double value) {
    char text[SVI_HUMAN];
    printf(" %10s", k->regress ? svi_human_digits(text, value, 4) : svi_human_places(text, value, 4));
}

static void key_quality_line(const struct svi_key_quality *k, const struct key_line *l) {
    char name[4 * SVS_KEY_MAX + 4];
    svi_escape(name, sizeof name, l->name, strlen(l->name));
    printf("%-*s %10" PRId64, svi_key_width(name), name[0] ? name : "''", l->rows);
    key_quality_number(k, l->quality);
    key_quality_number(k, l->same);
    printf(" %8" PRId64, l->alerts);
    if (l->open > 0)
        printf(", %" PRId64 " open", l->open);
    puts(l->better ? "" : "   no better");
}

static int64_t key_lines_of(const struct svi_key_quality *k, int64_t rows) {
    int64_t count = 0;
    for (int64_t i = 0; i < k->count; i++)
        count += k->lines[i].rows >= rows;
    return count;
}

void svi_key_quality_print(const struct svi_key_quality *k, int64_t limit, int64_t rows) {
    const struct svi_quality_report *r = &k->report;
    const char *name = k->regress ? "rmse" : "accuracy";
    const struct svi_figure *f;
    svi_quality_report_print_head(r, stdout);
    printf("%-18s %" PRId64 "\n", "keys", svi_stream_key_count(r->stream));
    if (k->count > 0 && limit > 0)
        printf("%-*s %10s %10s %10s %8s\n", svi_key_width("key"), "key", "rows", name, "same", "alerts");
    /* Keys below `rows` rows are skipped without counting towards the limit. */
    const int64_t wanted = key_lines_of(k, rows);
    for (int64_t i = 0, shown = 0; i < k->count && shown < limit; i++)
        if (k->lines[i].rows >= rows && ++shown)
            key_quality_line(k, &k->lines[i]);
    if (wanted > limit)
        printf("and %" PRId64 " more: --limit shows more\n", wanted - limit);
    if (wanted < k->count)
        printf("and %" PRId64 " with fewer than %" PRId64 " rows\n", k->count - wanted, rows);
    const int count = svi_stream_figures(r->stream, NULL, r->now, &f);
    const double quality = svi_figure_value(f, count, k->regress ? "keys_rmse" : "keys_accuracy");
    printf("%-18s %.0f\n", "alerts", svi_figure_value(f, count, "keys_alerts"));
    if (!isnan(k->same))
        printf("%s_no_change%*s %.4f\n", name, 18 - (int)strlen(name) - 10, "", k->same);
    if (!isnan(quality))
        printf("%s %.3f\n", name, quality);
}

void svi_key_quality_verdict(const struct svi_key_quality *k, FILE *to) {
    int64_t compared = 0, bare = 0;
    for (int64_t i = 0; i < k->count; i++) {
        compared += k->lines[i].compared >= SVI_VERDICT_ROWS;
        bare += !k->lines[i].better;
    }
    if (bare > 0)
        fprintf(to, "%" PRId64 " of %" PRId64 " keys are no better than \"the same as before\"\n", bare,
                compared);
}

static void key_quality_put(struct svi_pack *p, const struct svi_key_quality *k, const struct key_line *l) {
    const struct svi_open_map map = svi_pack_open(p);
    svi_put_text(p, "key", l->name);
    svi_put_int(p, "rows", l->rows);
    svi_put_real(p, k->regress ? "rmse" : "accuracy", l->quality);
    svi_put_real(p, k->regress ? "rmse_no_change" : "accuracy_no_change", l->same);
    svi_put_real(p, "excess_error", l->worse);
    svi_put_int(p, "alerts", l->alerts);
    svi_put_int(p, "open", l->open);
    svi_pack_close(p, map);
}

svs_code svi_key_quality_pack(const struct svi_key_quality *k, int64_t rows, struct svi_bytes *out,
                              svs_error *err) {
    struct svi_pack p;
    svi_pack_begin(&p, out);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_quality_report_put_head(&k->report, &p);
    svi_put_real(&p, k->regress ? "keys_rmse_no_change" : "keys_accuracy_no_change", k->same);
    svi_put_array(&p, "by_key", (size_t)key_lines_of(k, rows));
    for (int64_t i = 0; i < k->count; i++)
        if (k->lines[i].rows >= rows)
            key_quality_put(&p, k, &k->lines[i]);
    svi_pack_close(&p, map);
    return svi_pack_end(&p) == SVS_OK ? SVS_OK : svi_fail_memory(err, "the result");
}
