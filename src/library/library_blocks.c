/* Many rows at once. A block takes the way of single rows, row by row, but names are matched once, results go
 * straight to the caller's arrays, and nothing is allocated for a row. It is checked as a whole before its
 * first row is learned (library_checks.c). */
#include <math.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "library/library_internal.h"

/* ---- one row of a block */

const double *svi_library_block_x(svs_stream *s, const svs_block *b, int64_t i) {
    if (b->x)
        return b->x + i * b->stride;
    const float *x = b->x32 + i * b->stride;
    for (int j = 0; j < b->d; j++)
        s->wide[j] = x[j];
    return s->wide;
}

const char *const *svi_library_block_words(const svs_block *b, int64_t i) {
    return b->words ? b->words + i * b->d : NULL;
}

/* The row without its values. */
svs_row svi_library_block_row(const svs_block *b, int64_t i) {
    svs_row row = {.d = b->d, .names = b->names, .all = b->all, .words = svi_library_block_words(b, i)};
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

bool svi_library_passes_over(const svs_block *b, int64_t i) {
    return b->weight && b->weight[i] == 0;
}

/* ---- begin */

static svs_code library_check_form(svs_stream *s, const svs_block *b, const svs_results *out,
                                   svs_error *err) {
    if (b->n < 0 || b->stride < b->d)
        return svi_fail(err, SVS_INVALID, "a block has n >= 0 rows at a stride of at least d values");
    if (b->first < 0 || b->first > b->n || b->count < 0)
        return svi_fail(err, SVS_INVALID, "the part of a block begins at 0 to n, with count >= 0 rows");
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

static svs_code library_begin_block(svs_stream *s, const svs_block *b, const svs_results *out, bool learns,
                                    int64_t *row, svs_error *err) {
    *row = 0;
    SVI_TRY(library_check_form(s, b, out, err));
    SVI_TRY(svi_library_name(s, b->names, b->d, err));
    if (b->first == 0) { /* later parts were checked with the first one */
        SVI_TRY(svi_library_check_block(s, b, learns, row, err));
        for (int64_t i = 0; out && i < b->n; i++)
            svi_library_clear_row(out, i);
    }
    *row = 0;
    return SVS_OK;
}

/* ---- learn and score */

/* The row after the last one of the part. */
static int64_t library_block_end(const svs_block *b) {
    return b->count > 0 && b->count < b->n - b->first ? b->first + b->count : b->n;
}

static svs_code library_learn_rows(svs_stream *s, const svs_block *b, int64_t *row, svs_error *err) {
    svi_engine *alone =
        svi_settings_keyed(svi_stream_settings(s->stream)) ? NULL : svi_stream_root(s->stream);
    double clock = svi_arrival_clock_now(&s->clock);
    const int64_t end = library_block_end(b);
    for (*row = b->first; *row < end; ++*row) {
        struct svi_message m;
        if (svi_library_passes_over(b, *row))
            continue;
        svs_row r = svi_library_block_row(b, *row);
        r.x = svi_library_block_x(s, b, *row);
        const svs_code code = svi_library_message(s, &r, &m, err);
        if (code != SVS_OK) {
            svi_stream_refuse(s->stream, code, err->text, NULL, 0, clock);
            return code;
        }
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
    const int64_t end = library_block_end(b);
    for (*row = code == SVS_OK ? b->first : *row; code == SVS_OK && *row < end; ++*row) {
        struct svi_message m;
        struct svi_scored scored = {0};
        svs_row r = svi_library_block_row(b, *row);
        r.x = svi_library_block_x(s, b, *row);
        r.id = r.y = svs_none();
        r.weight = 0;
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
