/* From a row of the caller to a message: values into the row of the schema, or cells under their names.
 *
 * Rows under names come with all their names each time. Those of the first row that is accepted are copied
 * and stay (svi_library_adopt), so that the schema looks them up once and later rows cost one comparison a
 * name (library_is_first). Rows with another list, as of dictionaries that lack a key, are looked up name by
 * name.
 *
 * What can be seen from the row alone is refused here, in the words of the wire's decoder; the engine refuses
 * what does not fit the stream. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/cell.h"
#include "library/library_internal.h"

/* ---- names */

static bool library_is_first(const struct svi_library_columns *c, const char *const *names, int d) {
    if (d != c->first_count)
        return false;
    for (int i = 0; i < d; i++)
        if (!names[i] || strcmp(names[i], c->first[i].name) != 0)
            return false;
    return true;
}

void svi_library_adopt(svs_stream *s) {
    struct svi_library_columns *c = &s->columns;
    size_t size = 0;
    if (!c->now || c->first_count > 0)
        return;
    for (int i = 0; i < c->count; i++)
        size += c->now[i].name_length + 1;
    struct svi_cell *cells = svi_alloc_plain_array((size_t)c->count, sizeof *cells);
    char *text = cells ? svi_alloc_plain(size) : NULL;
    if (!text) { /* a later row may have the memory */
        svi_free(cells);
        return;
    }
    c->text = text;
    for (int i = 0; i < c->count; i++) {
        cells[i] = c->now[i];
        cells[i].name = memcpy(text, c->now[i].name, c->now[i].name_length + 1);
        text += c->now[i].name_length + 1;
    }
    c->now = c->first = cells;
    c->first_count = c->count;
    c->listed = true;
}

static svs_code library_other_names(struct svi_library_columns *c, const char *const *names, int d,
                                    svs_error *err) {
    if (d > c->other_capacity) {
        struct svi_cell *wider = svi_alloc_plain_array((size_t)d, sizeof *wider);
        if (!wider)
            return svi_fail_memory(err, "the names of the columns");
        svi_free(c->other);
        c->other = wider;
        c->other_capacity = d;
    }
    for (int i = 0; i < d; i++) {
        if (!names[i])
            return svi_fail(err, SVS_INVALID, "column %d has no name", i);
        c->other[i].name = names[i];
        c->other[i].name_length = (uint32_t)strlen(names[i]);
    }
    return SVS_OK;
}

svs_code svi_library_name(svs_stream *s, const char *const *names, int d, svs_error *err) {
    struct svi_library_columns *c = &s->columns;
    c->now = NULL;
    c->count = names ? d : 0;
    if (d < 1)
        return svi_fail(err, SVS_MISSING_X, "the row has no columns");
    if (!names)
        return SVS_OK;
    c->listed = library_is_first(c, names, d);
    if (!c->listed)
        SVI_TRY(library_other_names(c, names, d, err));
    c->now = c->listed ? c->first : c->other;
    return SVS_OK;
}

/* ---- values */

static svs_code library_refuse_infinite(const svs_stream *s, int column, double v, svs_error *err) {
    char shown[80];
    const struct svi_cell *cell = s->columns.now ? &s->columns.now[column] : NULL;
    if (cell)
        return svi_fail(err, SVS_NOT_FINITE, "x[\"%s\"] is %g: values are finite",
                        svi_escape(shown, sizeof shown, cell->name, cell->name_length), v);
    return svi_fail(err, SVS_NOT_FINITE, "x[%d] is %g: values are finite", column, v);
}

static svs_code library_dense(svs_stream *s, const svs_row *row, struct svi_message *m, svs_error *err) {
    const struct svi_shape *shape = &svi_engine_schema(svi_stream_root(s->stream))->shape;
    int missing = 0, bad = -1;
    if (row->words)
        return svi_fail(err, SVS_INVALID, "words need the names of their columns");
    if (row->d > shape->max_features)
        return svi_fail(err, SVS_LIMIT, "the row has %d columns, the setting max.features allows %d", row->d,
                        shape->max_features);
    svi_message_begin(m, shape->row);
    for (int i = 0; i < row->d; i++) {
        const double v = row->x[i];
        m->x[i] = v;
        if (!(fabs(v) <= DBL_MAX)) {
            missing += isnan(v);
            bad = isnan(v) ? bad : i;
        }
    }
    m->has_x = true;
    m->kind = SVI_DENSE;
    m->d = row->d;
    m->missing = missing;
    return bad < 0 ? SVS_OK : library_refuse_infinite(s, bad, row->x[bad], err);
}

static svs_code library_cells(svs_stream *s, const svs_row *row, struct svi_message *m, svs_error *err) {
    struct svi_cell *cell = s->columns.now;
    bool plain = true;
    svi_message_begin(m, svi_engine_schema(svi_stream_root(s->stream))->shape.row);
    for (int i = 0; i < row->d; i++, cell++) {
        const char *word = row->words ? row->words[i] : NULL;
        const double v = word ? 0 : row->x[i];
        if (!word && fabs(v) <= DBL_MAX) {
            cell->kind = SVI_CELL_NUMBER;
            cell->number = v;
            continue;
        }
        plain = false;
        cell->kind = word ? SVI_CELL_WORD : SVI_CELL_MISSING;
        cell->word = word;
        cell->length = word ? (uint32_t)strlen(word) : 0;
        if (!word && !isnan(v))
            return library_refuse_infinite(s, i, v, err);
    }
    m->has_x = true;
    m->cells = s->columns.now;
    m->cell_count = row->d;
    m->listed = s->columns.listed;
    m->plain = plain;
    m->absent = row->all ? SVI_MISSING_MEAN : SVI_MISSING_AUTO;
    return SVS_OK;
}

/* ---- what comes with them */

static bool library_text_good(svs_value v) {
    return v.kind == SVS_STR && v.as.s && v.length >= 1 && v.length <= SVS_NAME_MAX &&
           svi_utf8_valid(v.as.s, v.length);
}

svs_code svi_library_label(svs_value y, svs_value *out, svs_error *err) {
    *out = y;
    if (y.kind == SVS_REAL && !isfinite(y.as.r))
        return svi_fail(err, SVS_NOT_FINITE, "y is %g: a label is finite", y.as.r);
    if (y.kind == SVS_REAL)
        *out = svi_label_number(y.as.r);
    if (y.kind > SVS_STR || (y.kind == SVS_STR && !library_text_good(y)))
        return svi_fail(err, SVS_BAD_LABEL, "y is neither a number nor a string of 1 to %d bytes of UTF-8",
                        SVS_NAME_MAX);
    return SVS_OK;
}

svs_code svi_library_id(svs_value id, svs_error *err) {
    return id.kind == SVS_NONE || id.kind == SVS_INT || library_text_good(id)
               ? SVS_OK
               : svi_fail(err, SVS_BAD_ID, "an id is an integer or a string of 1 to %d bytes of UTF-8",
                          SVS_NAME_MAX);
}

svs_code svi_library_key(const svs_stream *s, const char *key, svs_value *out, svs_error *err) {
    const size_t length = key ? strlen(key) : 0;
    if (length > 0 && !svi_settings_keyed(svi_stream_settings(s->stream)))
        return svi_fail(err, SVS_BAD_KEY, "this stream has no keys: give it the setting key");
    if (length > SVS_KEY_MAX)
        return svi_fail(err, SVS_BAD_KEY, "the key has %zu bytes: at most %d are allowed", length,
                        SVS_KEY_MAX);
    if (!svi_utf8_valid(key ? key : "", length))
        return svi_fail(err, SVS_BAD_KEY, "the key is not valid UTF-8");
    *out = length > 0 ? (svs_value){.kind = SVS_STR, .length = (uint32_t)length, .as.s = key} : svs_none();
    return SVS_OK;
}

svs_code svi_library_untimed(const svs_stream *s, svs_error *err) {
    return s->interval > 0 && svi_stream_settings(s->stream)->calendar[0]
               ? svi_fail(err, SVS_SETTING, "the setting calendar needs the row's time: give it a ts")
               : SVS_OK;
}

svs_code svi_library_message(svs_stream *s, const svs_row *row, struct svi_message *m, svs_error *err) {
    SVI_TRY(s->columns.now ? library_cells(s, row, m, err) : library_dense(s, row, m, err));
    SVI_TRY(svi_library_label(row->y, &m->y, err));
    SVI_TRY(svi_library_id(row->id, err));
    m->id = row->id;
    SVI_TRY(svi_library_key(s, row->key, &m->key, err));
    if (row->weight != 0) {
        m->weight = row->weight;
        SVI_TRY(svi_check_weight(row->weight, err));
    }
    if (row->has_ts && !isfinite(row->ts))
        return svi_fail(err, SVS_NOT_FINITE, "ts is not finite: leave it out if the time is not known");
    m->ts = row->has_ts ? row->ts : NAN;
    return row->has_ts ? SVS_OK : svi_library_untimed(s, err);
}

/* ---- time */

double svi_library_time(const svs_stream *s, const struct svi_message *m) {
    return s->interval > 0 && isnan(m->ts) ? s->latest + s->interval : svi_arrival_clock_now(&s->clock);
}

void svi_library_took(svs_stream *s, const struct svi_message *m, double now) {
    if (s->interval > 0)
        s->latest = isnan(m->ts) ? now : fmax(s->latest, m->ts);
}
