/* Many rows at once. A block takes the way of single rows, row by row, but names are matched once, results go
 * straight to the caller's arrays, and nothing is allocated for a row.
 *
 * A block is checked as a whole before its first row is learned (library_check_block): values, labels,
 * weights, ids and times. What depends on the rows before, such as an outlier, can still be refused
 * later; then the rows before it are learned, and the caller is given the number of the row. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/text.h"
#include "data/cell.h"
#include "library/library_internal.h"

/* ---- one row of a block */

static const double *library_block_x(svs_stream *s, const svs_block *b, int64_t i) {
    if (b->x)
        return b->x + i * b->stride;
    const float *x = b->x32 + i * b->stride;
    for (int j = 0; j < b->d; j++)
        s->wide[j] = x[j];
    return s->wide;
}

static const char *const *library_block_words(const svs_block *b, int64_t i) {
    return b->words ? b->words + i * b->d : NULL;
}

/* The row without its values. */
static svs_row library_block_row(const svs_block *b, int64_t i) {
    svs_row row = {.d = b->d, .names = b->names, .all = b->all, .words = library_block_words(b, i)};
    if (b->y_index && b->y_index[i] >= 0)
        row.y = b->labels[b->y_index[i]];
    if (b->y && !isnan(b->y[i]))
        row.y = svs_real(b->y[i]);
    if (b->weight)
        row.weight = b->weight[i];
    if (b->ids)
        row.id = b->ids[i];
    row.has_ts = b->ts && !isnan(b->ts[i]);
    row.ts = row.has_ts ? b->ts[i] : 0;
    return row;
}

static bool library_passes_over(const svs_block *b, int64_t i) {
    return b->weight && b->weight[i] == 0;
}

/* ---- checks */

static svs_code library_check_form(svs_stream *s, const svs_block *b, const svs_results *out,
                                   svs_error *err) {
    if (b->n < 0 || b->stride < b->d)
        return svi_fail(err, SVS_INVALID, "a block has n >= 0 rows at a stride of at least d values");
    if (b->words && !b->names)
        return svi_fail(err, SVS_INVALID, "words need the names of their columns");
    if (b->n > 0 && !b->x == !b->x32)
        return svi_fail(err, SVS_INVALID, "a block has either x or x32");
    if (b->y_index && (b->y || (b->label_count > 0 && !b->labels)))
        return svi_fail(err, SVS_INVALID, "a block has its labels in y_index with labels, or in y");
    if (out && ((out->scores && out->rows < 1) || (out->proba && out->classes < 1)))
        return svi_fail(err, SVS_INVALID, "scores and proba need their widths, rows and classes");
    if (b->d > s->wide_capacity && b->x32) {
        double *wide = svi_alloc_array((size_t)b->d, sizeof *wide);
        if (!wide)
            return svi_fail_memory(err, "a row of a block");
        svi_free(s->wide);
        s->wide = wide;
        s->wide_capacity = b->d;
    }
    return SVS_OK;
}

static svs_code library_check_label(const svs_stream *s, svs_value y, svs_error *err) {
    const bool regress = svi_stream_settings(s->stream)->task == SVS_REGRESS;
    char shown[80];
    svs_value label;
    SVI_TRY(svi_library_label(y, &label, err));
    if (label.kind == (regress ? SVS_STR : SVS_REAL))
        return svi_fail(err, SVS_BAD_LABEL, "y is %s: %s", svs_value_text(label, shown, sizeof shown),
                        regress ? "a regression needs a number (task regress)"
                                : "a class is an integer or a string (for numbers: task regress)");
    if (label.kind == SVS_REAL && !(fabs(label.as.r) <= SVI_VALUE_MAX))
        return svi_fail(err, SVS_BAD_LABEL, "the target of a regression is a finite number of at most 1e100");
    return SVS_OK;
}

static svs_code library_check_values(svs_stream *s, const svs_block *b, int64_t i, bool refuse,
                                     svs_error *err) {
    const double *x = library_block_x(s, b, i);
    const char *const *words = library_block_words(b, i);
    for (int j = 0; j < b->d; j++) {
        if (words && words[j])
            continue;
        if (fabs(x[j]) <= SVI_VALUE_MAX || (isnan(x[j]) && !refuse))
            continue;
        if (isnan(x[j]))
            return svi_fail(err, SVS_MISSING_VALUE,
                            "x[%d] is missing (NaN): the setting missing says how to replace it", j);
        if (isinf(x[j]))
            return svi_fail(err, SVS_NOT_FINITE, "x[%d] is %g: values are finite", j, x[j]);
        return svi_fail(err, SVS_TOO_LARGE, "x[%d] is %g; values beyond 1e100 cannot be computed with", j,
                        x[j]);
    }
    return SVS_OK;
}

/* Does a column take numbers alone, as its first value or the settings have decided? */
enum library_kind { LIBRARY_OPEN, LIBRARY_NUMBERS, LIBRARY_ANY };

static enum library_kind library_kind_of(svs_stream *s, const struct svi_cell *cell) {
    const struct svi_settings *settings = svi_stream_settings(s->stream);
    const struct svi_schema *schema = svi_engine_schema(svi_stream_root(s->stream));
    const struct svi_span name = {cell->name, cell->name + cell->name_length};
    const int column = svi_schema_find(schema, cell->name, cell->name_length, 0);
    if (svi_schema_ignores(schema, cell->name, cell->name_length) ||
        (settings->features[0] && !svi_span_listed(name, settings->features)))
        return LIBRARY_ANY;
    if (svi_span_listed(name, settings->numbers))
        return LIBRARY_NUMBERS;
    if (svi_span_listed(name, settings->categories))
        return LIBRARY_ANY; /* numbers are words there */
    const enum svi_column_kind kind = column >= 0 ? svi_schema_kind(schema, column) : SVI_COLUMN_OPEN;
    return kind == SVI_COLUMN_NUMBER ? LIBRARY_NUMBERS : kind == SVI_COLUMN_OPEN ? LIBRARY_OPEN : LIBRARY_ANY;
}

static svs_code library_check_word(const struct svi_cell *cell, const char *word, unsigned char *kind,
                                   svs_error *err) {
    char name[80], shown[80];
    const size_t length = strlen(word);
    svi_escape(name, sizeof name, cell->name, cell->name_length);
    if (length == 0)
        return svi_fail(err, SVS_WRONG_TYPE, "x[\"%s\"] is an empty string: NaN stands for a missing value",
                        name);
    if (!svi_utf8_valid(word, length))
        return svi_fail(err, SVS_BAD_COLUMN, "x[\"%s\"] is not valid UTF-8", name);
    if (*kind == LIBRARY_NUMBERS)
        return svi_fail(err, SVS_WRONG_TYPE,
                        "x[\"%s\"] is the word \"%s\": the column holds numbers (a column of names from the "
                        "start: the setting categories)",
                        name, svi_escape(shown, sizeof shown, word, length));
    *kind = *kind == LIBRARY_OPEN ? LIBRARY_ANY : *kind;
    return SVS_OK;
}

/* Words of all rows, column by column as the schema would decide. */
static svs_code library_check_words(svs_stream *s, const svs_block *b, int64_t *row, svs_error *err) {
    unsigned char *kind = svi_alloc_array((size_t)b->d, sizeof *kind);
    svs_code code = kind ? SVS_OK : svi_fail_memory(err, "the columns of a block");
    for (int j = 0; kind && j < b->d; j++)
        kind[j] = (unsigned char)library_kind_of(s, &s->columns.now[j]);
    for (*row = 0; code == SVS_OK && *row < b->n; ++*row) {
        const char *const *words = library_block_words(b, *row);
        const double *x = library_passes_over(b, *row) ? NULL : library_block_x(s, b, *row);
        for (int j = 0; x && code == SVS_OK && j < b->d; j++) {
            if (words[j])
                code = library_check_word(&s->columns.now[j], words[j], &kind[j], err);
            else if (!isnan(x[j]) && kind[j] == LIBRARY_OPEN)
                kind[j] = LIBRARY_NUMBERS;
        }
        if (code != SVS_OK)
            break;
    }
    svi_free(kind);
    return code;
}

/* Of a row besides its values. `now`: its arrival, at the earliest. */
static svs_code library_check_row(const svs_stream *s, const svs_block *b, int64_t i, double now,
                                  svs_error *err) {
    const struct svi_settings *settings = svi_stream_settings(s->stream);
    if (b->y_index && b->y_index[i] >= b->label_count)
        return svi_fail(err, SVS_INVALID, "y_index is %d, and there are %d labels", b->y_index[i],
                        b->label_count);
    const svs_row row = library_block_row(b, i);
    SVI_TRY(library_check_label(s, row.y, err));
    if (row.id.kind != SVS_NONE)
        SVI_TRY(svi_library_id(row.id, err));
    if (b->weight)
        SVI_TRY(svi_check_weight(b->weight[i], err));
    if (!row.has_ts)
        return SVS_OK;
    if (isinf(row.ts))
        return svi_fail(err, SVS_NOT_FINITE, "ts is not finite: NaN stands for an unknown time");
    return row.ts <= now + settings->ts_ahead
               ? SVS_OK
               : svi_fail(err, SVS_TS_AHEAD,
                          "ts %.3f lies %.3f s ahead of the clock, ts.ahead allows %g: is it in seconds?",
                          row.ts, row.ts - now, settings->ts_ahead);
}

/* Classes that the block adds, in the order of its rows: the row with one too many is refused. */
static svs_code library_check_classes(svs_stream *s, const svs_block *b, int64_t *row, svs_error *err) {
    const struct svi_settings *settings = svi_stream_settings(s->stream);
    const int known = svs_stream_class_count(s);
    int64_t free = settings->max_classes - known;
    if (!b->y_index || settings->task == SVS_REGRESS || settings->method == SVI_METHOD_NONE ||
        b->label_count <= free)
        return SVS_OK;
    bool *seen = svi_alloc_array((size_t)b->label_count, sizeof *seen);
    if (!seen)
        return svi_fail_memory(err, "the classes of a block");
    for (int k = 0; k < b->label_count; k++)
        for (int c = 0; c < known && !seen[k]; c++)
            seen[k] = svs_value_equal(b->labels[k], svs_stream_class(s, c));
    svs_code code = SVS_OK;
    for (int64_t i = 0; i < b->n && code == SVS_OK; i++) {
        const int32_t k = b->y_index[i];
        if (k < 0 || seen[k] || library_passes_over(b, i))
            continue;
        seen[k] = true;
        *row = i;
        if (--free < 0)
            code = svi_fail(err, SVS_LIMIT, "y is one class more than max.classes (%d)",
                            (int)settings->max_classes);
    }
    svi_free(seen);
    return code;
}

/* *row: of a refusal. */
static svs_code library_check_block(svs_stream *s, const svs_block *b, bool learns, int64_t *row,
                                    svs_error *err) {
    const struct svi_settings *settings = svi_stream_settings(s->stream);
    const bool refuse = settings->missing == SVI_MISSING_REFUSE ||
                        (settings->missing == SVI_MISSING_AUTO && !(b->names && b->all));
    const double now = svi_arrival_clock_now(&s->clock);
    svs_code code = SVS_OK;
    for (*row = 0; *row < b->n; ++*row) {
        if (learns && library_passes_over(b, *row))
            continue;
        code = library_check_values(s, b, *row, refuse, err);
        if (code == SVS_OK && learns)
            code = library_check_row(s, b, *row, now, err);
        if (code != SVS_OK)
            return code;
    }
    if (b->words)
        SVI_TRY(library_check_words(s, b, row, err));
    *row = 0;
    return learns ? library_check_classes(s, b, row, err) : SVS_OK;
}

static svs_code library_begin_block(svs_stream *s, const svs_block *b, const svs_results *out, bool learns,
                                    int64_t *row, svs_error *err) {
    *row = 0;
    SVI_TRY(library_check_form(s, b, out, err));
    SVI_TRY(svi_library_name(s, b->names, b->d, err));
    SVI_TRY(library_check_block(s, b, learns, row, err));
    for (int64_t i = 0; out && i < b->n; i++)
        svi_library_clear_row(out, i);
    *row = 0;
    return SVS_OK;
}

/* ---- learn and score */

static svs_code library_learn_rows(svs_stream *s, const svs_block *b, int64_t *row, svs_error *err) {
    svi_engine *alone =
        svi_settings_keyed(svi_stream_settings(s->stream)) ? NULL : svi_stream_root(s->stream);
    double clock = svi_arrival_clock_now(&s->clock);
    for (*row = 0; *row < b->n; ++*row) {
        struct svi_message m;
        if (library_passes_over(b, *row))
            continue;
        svs_row r = library_block_row(b, *row);
        r.x = library_block_x(s, b, *row);
        SVI_TRY(svi_library_message(s, &r, &m, err));
        /* A block arrives at one time. */
        const double now = s->interval > 0 ? svi_library_time(s, &m) : clock;
        svi_stream_mark(s->stream, *row);
        SVI_TRY(svi_stream_message(s->stream, &m, NULL, 0, now, err));
        svi_library_took(s, &m, now);
        svi_engine_refit_here(alone ? alone : svi_stream_root(s->stream));
    }
    return SVS_OK;
}

svs_code svs_stream_learn_block(svs_stream *s, const svs_block *b, svs_results *out, int64_t *row,
                                svs_error *err) {
    svs_error local;
    int64_t at;
    err = err ? err : &local;
    row = row ? row : &at;
    svi_library_changed(s);
    svs_code code = library_begin_block(s, b, out, true, row, err);
    if (code != SVS_OK) {
        if (code != SVS_NO_MEMORY)
            svi_stream_refuse(s->stream, code, err->text, NULL, 0, svi_arrival_clock_now(&s->clock));
        return code;
    }
    svi_library_adopt(s);
    s->results.block = out;
    svi_stream_score_all(s->stream, out != NULL);
    svi_stream_leave_open(s->stream, true);
    code = library_learn_rows(s, b, row, err);
    svi_stream_leave_open(s->stream, false);
    svi_stream_score_all(s->stream, false);
    svi_stream_mark(s->stream, 0);
    s->results.block = NULL;
    return code;
}

svs_code svs_stream_score_block(svs_stream *s, const svs_block *b, svs_results *out, int64_t *row,
                                svs_error *err) {
    svs_error local;
    int64_t at;
    err = err ? err : &local;
    row = row ? row : &at;
    svs_code code = library_begin_block(s, b, out, false, row, err);
    for (; code == SVS_OK && *row < b->n; ++*row) {
        struct svi_message m;
        struct svi_scored scored = {0};
        svs_row r = {.d = b->d,
                     .names = b->names,
                     .all = b->all,
                     .words = library_block_words(b, *row),
                     .x = library_block_x(s, b, *row)};
        r.has_ts = b->ts && !isnan(b->ts[*row]);
        r.ts = r.has_ts ? b->ts[*row] : 0;
        code = svi_library_message(s, &r, &m, err);
        if (code == SVS_OK)
            code = svi_stream_score_row(s->stream, "", &m, &s->scoring, &scored, err);
        if (code != SVS_OK)
            break;
        svi_library_scored(s, &scored);
        if (out)
            svi_library_put_row(out, *row, &s->results.at_hand, &s->results.evidence);
    }
    return code;
}
