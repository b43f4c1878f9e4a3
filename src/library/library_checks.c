/* A block is checked as a whole before its first row is learned: values, words, labels, classes, weights, ids
 * and times, each as the engine would find them when the row is learned.
 *
 * What a value may be depends on its column, and what a column holds may be decided by the rows before: a
 * column is open until its first value, which makes it one of numbers or of names (library_note_kinds). Rows
 * that will be dropped for a missing value decide nothing, and add no class.
 *
 * Left to the engine is what all rows of a block share, such as names and their number, so that its first row
 * is refused; and what depends on the learned rows: outliers, and capacity for novel words. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/text.h"
#include "data/cell.h"
#include "library/library_internal.h"

/* ---- values */

/* What the schema makes of a column. Open: its first value decides. */
enum library_kind { LIBRARY_OPEN, LIBRARY_NUMBERS, LIBRARY_NAMES, LIBRARY_IGNORED };

struct library_check {
    svs_stream *s;
    const svs_block *b;
    bool learns, refuses, drops; /* the last two: rows with missing numbers */
    bool kept_open;              /* columns stay open until their first value, as in a stream with words */
    unsigned char *kind;         /* of columns; owned. NULL: not needed yet, or no names */
    bool *seen;                  /* labels whose class is known; owned. NULL: there is capacity for all */
    int64_t free;                /* classes that may be added */
    double now;                  /* arrival of the block, at the earliest */
};

static enum library_kind library_kind_of(svs_stream *s, const struct svi_cell *cell) {
    const struct svi_settings *settings = svi_stream_settings(s->stream);
    const struct svi_schema *schema = svi_engine_schema(svi_stream_root(s->stream));
    const struct svi_span name = {cell->name, cell->name + cell->name_length};
    const int column = svi_schema_find(schema, cell->name, cell->name_length, 0);
    const enum svi_column_kind kind = column >= 0 ? svi_schema_kind(schema, column) : SVI_COLUMN_OPEN;
    if (svi_schema_ignores(schema, cell->name, cell->name_length) ||
        (settings->features[0] && !svi_span_listed(name, settings->features)))
        return LIBRARY_IGNORED;
    if (svi_span_listed(name, settings->categories))
        return LIBRARY_NAMES; /* numbers are words there */
    if (kind == SVI_COLUMN_OPEN)
        return svi_span_listed(name, settings->numbers) ? LIBRARY_NUMBERS : LIBRARY_OPEN;
    return kind == SVI_COLUMN_NUMBER     ? LIBRARY_NUMBERS
           : kind == SVI_COLUMN_CATEGORY ? LIBRARY_NAMES
                                         : LIBRARY_IGNORED;
}

/* The kinds of columns with names, once a value is at hand that depends on them: blocks of plain numbers need
 * none. */
static svs_code library_check_kinds(struct library_check *k, svs_error *err) {
    const struct svi_settings *settings = svi_stream_settings(k->s->stream);
    if (k->kind || !k->b->names)
        return SVS_OK;
    k->kind = svi_alloc_array((size_t)k->b->d, sizeof *k->kind);
    if (!k->kind)
        return svi_fail_memory(err, "the columns of a block");
    k->kept_open =
        svi_engine_schema(svi_stream_root(k->s->stream))->shape.mixed || settings->calendar[0] != '\0';
    for (int j = 0; j < k->b->d; j++) {
        const struct svi_cell *cell = &k->s->columns.now[j];
        const struct svi_span name = {cell->name, cell->name + cell->name_length};
        k->kind[j] = (unsigned char)library_kind_of(k->s, cell);
        k->kept_open = k->kept_open || k->kind[j] == LIBRARY_NAMES || svi_span_listed(name, settings->ignore);
    }
    return SVS_OK;
}

static svs_code library_check_word(struct library_check *k, int j, const char *word, svs_error *err) {
    char name[80], shown[80];
    const size_t length = strlen(word);
    const struct svi_cell *cell = &k->s->columns.now[j];
    SVI_TRY(library_check_kinds(k, err));
    if (k->kind[j] == LIBRARY_IGNORED)
        return SVS_OK;
    svi_escape(name, sizeof name, cell->name, cell->name_length);
    if (k->kind[j] == LIBRARY_NUMBERS)
        return svi_fail(err, SVS_WRONG_TYPE,
                        "x[\"%s\"] is the word \"%s\": the column holds numbers (to read words from the "
                        "start, list it in the setting categories)",
                        name, svi_escape(shown, sizeof shown, word, length));
    if (length == 0)
        return svi_fail(err, SVS_WRONG_TYPE, "x[\"%s\"] is an empty string: NaN stands for a missing value",
                        name);
    if (!svi_utf8_valid(word, length))
        return svi_fail(err, SVS_BAD_COLUMN, "x[\"%s\"] is not valid UTF-8", name);
    return SVS_OK;
}

/* A number that is not plain. *missing is set if it is a missing one, *large to its column if it is too
 * large. */
static svs_code library_check_odd(struct library_check *k, int j, double v, bool *missing, int *large,
                                  svs_error *err) {
    if (isinf(v))
        return svi_fail(err, SVS_NOT_FINITE, "x[%d] is %g: values are finite", j, v);
    SVI_TRY(library_check_kinds(k, err));
    if (k->kind && (k->kind[j] == LIBRARY_NAMES || k->kind[j] == LIBRARY_IGNORED))
        return SVS_OK; /* no number there */
    *missing = *missing || isnan(v);
    *large = isnan(v) ? *large : j;
    return isnan(v) && k->refuses
               ? svi_fail(err, SVS_MISSING_VALUE,
                          "x[%d] is missing (NaN): the setting missing says how to replace it", j)
               : SVS_OK;
}

/* What the columns are after the row. Rows that are dropped decide nothing. */
static void library_note_kinds(struct library_check *k, const double *x, const char *const *words) {
    for (int j = 0; j < k->b->d && !k->kept_open; j++)
        k->kept_open = (words[j] && k->kind[j] != LIBRARY_IGNORED) || (isnan(x[j]) && k->b->all);
    for (int j = 0; j < k->b->d; j++) {
        if (k->kind[j] != LIBRARY_OPEN)
            continue;
        if (words[j])
            k->kind[j] = LIBRARY_NAMES;
        else if (!isnan(x[j]) || !k->kept_open)
            k->kind[j] = LIBRARY_NUMBERS;
    }
}

/* *dropped: the row will be dropped for a missing value. */
static svs_code library_check_values(struct library_check *k, int64_t i, bool *dropped, svs_error *err) {
    const double *x = svi_library_block_x(k->s, k->b, i);
    const char *const *words = svi_library_block_words(k->b, i);
    bool missing = false;
    int large = -1;
    for (int j = 0; j < k->b->d; j++) {
        if (words && words[j])
            SVI_TRY(library_check_word(k, j, words[j], err));
        else if (!(fabs(x[j]) <= SVI_VALUE_MAX))
            SVI_TRY(library_check_odd(k, j, x[j], &missing, &large, err));
    }
    *dropped = missing && k->drops;
    if (large >= 0 && !*dropped)
        return svi_fail(err, SVS_TOO_LARGE, "x[%d] is %g; values beyond 1e100 are too large to compute with",
                        large, x[large]);
    if (words && k->learns && !*dropped)
        library_note_kinds(k, x, words);
    return SVS_OK;
}

/* Of a row besides its values. */
static svs_code library_check_row(const struct library_check *k, const svs_row *row, svs_error *err) {
    svs_value unread;
    SVI_TRY(svi_library_label(row->y, &unread, err));
    SVI_TRY(svi_library_id(row->id, err));
    if (k->b->weight)
        SVI_TRY(svi_check_weight(row->weight, err));
    if (!row->has_ts)
        return svi_library_untimed(k->s, err);
    if (isinf(row->ts))
        return svi_fail(err, SVS_NOT_FINITE, "ts is not finite: NaN stands for an unknown time");
    const double allowed = svi_stream_settings(k->s->stream)->ts_ahead;
    return row->ts <= k->now + allowed
               ? SVS_OK
               : svi_fail(err, SVS_TS_AHEAD,
                          "ts %.3f lies %.3f s ahead of the clock, ts.ahead allows %g: is it in seconds, and "
                          "the clock of its sender right?",
                          row->ts, row->ts - k->now, allowed);
}

/* ---- checks of labels */

static svs_code library_check_label(const struct library_check *k, svs_value y, svs_error *err) {
    const bool regress = svi_stream_settings(k->s->stream)->task == SVS_REGRESS;
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

/* Marks the labels that are the class y. */
static void library_mark_class(const struct library_check *k, svs_value y) {
    svs_value label;
    svs_error unread;
    for (int c = 0; c < k->b->label_count; c++)
        k->seen[c] = k->seen[c] || (svi_library_label(k->b->labels[c], &label, &unread) == SVS_OK &&
                                    svs_value_equal(label, y));
}

/* Classes are counted where the labels may be more than fit. */
static svs_code library_check_classes(struct library_check *k, svs_error *err) {
    const struct svi_settings *settings = svi_stream_settings(k->s->stream);
    const int known = svs_stream_class_count(k->s);
    k->free = settings->max_classes - known;
    if (!k->learns || !k->b->y_index || settings->task == SVS_REGRESS ||
        settings->method == SVI_METHOD_NONE || k->b->label_count <= k->free)
        return SVS_OK;
    k->seen = svi_alloc_array((size_t)k->b->label_count, sizeof *k->seen);
    if (!k->seen)
        return svi_fail_memory(err, "the classes of a block");
    library_mark_class(k, svs_none());
    for (int c = 0; c < known; c++)
        library_mark_class(k, svs_stream_class(k->s, c));
    return SVS_OK;
}

static svs_code library_check_class(struct library_check *k, int32_t index, svs_error *err) {
    svs_value label;
    if (!k->seen || index < 0 || k->seen[index])
        return SVS_OK;
    SVI_TRY(svi_library_label(k->b->labels[index], &label, err));
    library_mark_class(k, label);
    return --k->free >= 0
               ? SVS_OK
               : svi_fail(err, SVS_LIMIT, "y would be one class more than max.classes (%d): raise it",
                          (int)svi_stream_settings(k->s->stream)->max_classes);
}

/* ---- a block as a whole */

static svs_code library_check_one(struct library_check *k, int64_t i, svs_error *err) {
    const int32_t index = k->learns && k->b->y_index ? k->b->y_index[i] : -1;
    bool dropped;
    if (index >= k->b->label_count)
        return svi_fail(err, SVS_INVALID, "y_index is %d, and there are %d labels", index, k->b->label_count);
    SVI_TRY(library_check_values(k, i, &dropped, err));
    if (!k->learns)
        return SVS_OK;
    const svs_row row = svi_library_block_row(k->b, i);
    SVI_TRY(library_check_row(k, &row, err));
    if (dropped)
        return SVS_OK;
    SVI_TRY(library_check_label(k, row.y, err));
    return library_check_class(k, index, err);
}

static svs_code library_check_rows(struct library_check *k, int64_t *row, svs_error *err) {
    SVI_TRY(library_check_classes(k, err));
    if (k->b->words)
        SVI_TRY(library_check_kinds(k, err));
    for (; *row < k->b->n; ++*row)
        if (!(k->learns && svi_library_passes_over(k->b, *row)))
            SVI_TRY(library_check_one(k, *row, err));
    return SVS_OK;
}

svs_code svi_library_check_block(svs_stream *s, const svs_block *b, bool learns, int64_t *row,
                                 svs_error *err) {
    const int missing = svi_stream_settings(s->stream)->missing;
    struct library_check k = {.s = s,
                              .b = b,
                              .learns = learns,
                              .drops = learns && missing == SVI_MISSING_DROP,
                              .now = svi_arrival_clock_now(&s->clock)};
    k.refuses = missing == SVI_MISSING_REFUSE || (!learns && missing == SVI_MISSING_DROP) ||
                (missing == SVI_MISSING_AUTO && !(b->names && b->all));
    *row = 0;
    const svs_code code = library_check_rows(&k, row, err);
    svi_free(k.kind);
    svi_free(k.seen);
    return code;
}
