/* CSV: a header line, then one cell a column.
 *
 * The header decides what each column is (`roles`): a feature's place in x, the label, id, time stamp or
 * weight, or nothing. It also gives the shape its names: with fixed names the columns must be there and
 * others are ignored.
 *
 * A row is read cell by cell. A feature that is simply a number, nearly every cell, is read where it stands;
 * only a cell that is something else is cut out, unquoted and looked at (missing, a label, an error). A row
 * with too few or too many cells is refused as that, whatever else is wrong with it.
 *
 * Order: cells, the header, rows. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/cell.h"
#include "data/reader_internal.h"
#include "data/number.h"

#define CSV_TEXT (2 * SVS_NAME_MAX) /* longest label or id while its quotes are doubled */
#define LIST_MAX 150                /* bytes of an error text that list the columns */

/* What a column is; 0 and above: the feature's place in x. */
enum { CSV_IGNORED = -1, CSV_LABEL = -2, CSV_ID = -3, CSV_TS = -4, CSV_WEIGHT = -5 };

struct csv {
    int columns, d;                               /* cells a row, features among them */
    char delimiter;                               /* comma, semicolon or tab */
    int32_t *roles;                               /* by column */
    struct svi_span *names;                       /* by column; in `text` */
    char *text;                                   /* copy of the line, its doubled quotes undone */
    char note[SVS_ERROR_TEXT];                    /* there is no label; "": there is */
    char label_text[CSV_TEXT], id_text[CSV_TEXT]; /* of the present row */
};

/* ---- cells */

static bool csv_is_space(const struct csv *h, char c) {
    return c == ' ' || (c == '\t' && h->delimiter != '\t');
}

/* A quoted cell; `p` is after the opening quote. */
static const char *csv_cut_quoted(const struct csv *h, const char *p, const char *end,
                                  struct svi_span *cell) {
    cell->at = p;
    for (; p < end; p++)
        if (*p == '"' && (p + 1 == end || p[1] != '"'))
            break;
        else if (*p == '"')
            p++;
    if (p >= end)
        return NULL;
    cell->end = p++;
    while (p < end && csv_is_space(h, *p))
        p++;
    return p == end || *p == h->delimiter ? p : NULL;
}

/* The cell that starts at `p`, blanks and quotes around it dropped, doubled quotes left. Returns the
 * separator after it or `end`; NULL when its quote does not close properly. */
static const char *csv_cut(const struct csv *h, const char *p, const char *end, struct svi_span *cell) {
    while (p < end && csv_is_space(h, *p))
        p++;
    if (p < end && *p == '"')
        return csv_cut_quoted(h, p + 1, end, cell);
    const char *stop = memchr(p, h->delimiter, (size_t)(end - p));
    if (!stop)
        stop = end;
    *cell = svi_trim((struct svi_span){p, stop});
    return stop;
}

/* Undoes doubled quotes; `out` has the length of the cell at least and may be the cell itself. */
static struct svi_span csv_unquote(struct svi_span cell, char *out) {
    char *to = out;
    for (const char *p = cell.at; p < cell.end; p++) {
        *to++ = *p;
        p += *p == '"';
    }
    return (struct svi_span){out, to};
}

/* ---- the header */

/* The separator that is there most often outside of quotes; comma when there is none. */
static char csv_guess_delimiter(struct svi_span line, int *count) {
    static const char candidates[] = ",;\t";
    int counts[3] = {0}, best = 0;
    bool quoted = false;
    for (const char *p = line.at; p < line.end; p++) {
        quoted ^= *p == '"';
        const char *which = memchr(candidates, *p, 3);
        if (which && !quoted)
            counts[which - candidates]++;
    }
    for (int i = 1; i < 3; i++)
        if (counts[i] > counts[best])
            best = i;
    *count = counts[best];
    return candidates[best];
}

/* The names of the columns; `length`: of the line. */
static svs_code csv_cut_names(struct csv *h, size_t length, svs_error *err) {
    char *p = h->text, *end = h->text + length;
    bool numbers = true;
    double v;
    for (int i = 0; i < h->columns; i++) {
        h->roles[i] = CSV_IGNORED;
        struct svi_span name;
        const char *stop = csv_cut(h, p, end, &name);
        if (!stop || (stop == end) != (i == h->columns - 1))
            return svi_fail(err, SVS_SETTING, "column %d of the header: its quotes are wrong", i + 1);
        /* The span lies in our own copy. */
        h->names[i] = csv_unquote(name, h->text + (name.at - h->text));
        if (name.at == name.end)
            return svi_fail(err, SVS_BAD_COLUMN, "column %d of the header has no name", i + 1);
        numbers = numbers && svi_cell_number(h->names[i], &v);
        p = h->text + (stop - h->text) + 1;
    }
    if (!numbers)
        return SVS_OK;
    return svi_fail(err, SVS_SETTING,
                    "the first line is numbers; a CSV needs a header line with the column names");
}

static svs_code csv_fail_columns(struct svi_span line, const char *name, const char *what, svs_error *err) {
    char list[LIST_MAX];
    return svi_fail(err, SVS_SETTING, "there is no %s \"%.60s\"; the columns are %s", what, name,
                    svi_span_text(line, list, sizeof list));
}

static svs_code csv_assign_wanted(struct csv *h, const struct svi_reader_options *o, struct svi_span line,
                                  svs_error *err) {
    const struct {
        const char *name, *what;
        int32_t role;
        bool required;
    } all[] = {
        {o->label ? o->label : "label", "label column", CSV_LABEL, o->label_required},
        {o->id, "id column", CSV_ID, o->id != NULL},
        {o->ts, "ts column", CSV_TS, o->ts != NULL},
        {o->weight, "weight column", CSV_WEIGHT, o->weight != NULL},
    };
    for (int k = 0; k < 4; k++) {
        int found = 0;
        for (int i = 0; all[k].name && i < h->columns; i++)
            if (svi_span_is(h->names[i], all[k].name)) {
                h->roles[i] = all[k].role;
                found++;
            }
        if (found == 0 && all[k].required)
            return csv_fail_columns(line, all[k].name, all[k].what, err);
        if (found > 1)
            return svi_fail(err, SVS_SETTING, "the header has the column \"%.60s\" %d times", all[k].name,
                            found);
    }
    return SVS_OK;
}

/* The columns of a stream that has begun are these: a header with others belongs to other data. */
static svs_code csv_fail_other(const struct csv *h, const struct svi_shape *s, svs_error *err) {
    char sent[SVI_LIST_PAIR] = "", have[SVI_LIST_PAIR] = "";
    bool room = true;
    for (int i = 0; room && i < h->columns; i++)
        if (h->roles[i] >= 0)
            room =
                svi_list_add(sent, sizeof sent, h->names[i].at, (size_t)(h->names[i].end - h->names[i].at));
    room = true;
    for (int j = 0; room && j < s->names_kept; j++)
        room = svi_list_add(have, sizeof have, svs_features_name(s->names, j),
                            strlen(svs_features_name(s->names, j)));
    return svi_fail(err, SVS_OTHER_COLUMNS, "the columns are %s, but this stream has %s", sent, have);
}

/* The place in x of the column, which becomes a feature unless the names are fixed and this is none of them.
 */
static svs_code csv_assign_feature(struct csv *h, struct svi_shape *s, int column, svs_error *err) {
    struct svi_span name = h->names[column];
    size_t length = (size_t)(name.end - name.at);
    int place = svs_features_find(s->names, name.at, length);
    if (place < 0 && s->fixed_names)
        return SVS_OK;
    svs_error why = {0};
    if (place < 0)
        place = svs_features_add(s->names, name.at, length, &why);
    if (place < 0)
        return svi_fail(err, why.code, "column %d of the header: %.200s", column + 1, why.text);
    if (!svi_shape_mark(s, place)) {
        char text[80];
        return svi_fail(err, SVS_SETTING, "the header has the column \"%s\" twice",
                        svi_span_text(name, text, sizeof text));
    }
    h->roles[column] = place;
    return SVS_OK;
}

static svs_code csv_assign_features(struct csv *h, struct svi_shape *s, struct svi_span line,
                                    svs_error *err) {
    const bool begun = s->names_kept > 0 && !s->fixed_names;
    svi_shape_begin_row(s);
    for (int i = 0; i < h->columns; i++) {
        svs_code code = h->roles[i] == CSV_IGNORED ? csv_assign_feature(h, s, i, err) : SVS_OK;
        if (code != SVS_OK)
            return code;
    }
    h->d = svs_features_count(s->names);
    if (begun && h->d > s->names_kept)
        return csv_fail_other(h, s, err);
    for (int j = 0; j < h->d; j++)
        if (svi_shape_mark(s, j)) /* no column has claimed it */
            return begun ? csv_fail_other(h, s, err)
                         : csv_fail_columns(line, svs_features_name(s->names, j), "feature column", err);
    return h->d > 0 ? SVS_OK : svi_fail(err, SVS_SETTING, "the header names no feature column");
}

/* ---- a header without the label */

/* Names that labels have, and where they are looked for first. */
static bool csv_sounds_like_label(struct svi_span name) {
    static const char *const words[] = {"label", "class", "target", "y", "outcome", "status", "category"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if ((size_t)(name.end - name.at) == strlen(words[i]) &&
            strncasecmp(name.at, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

/* Those that sound like it; else all, the last one first, where it mostly stands. */
static void csv_list_candidates(const struct csv *h, char *list, size_t size) {
    bool room = true;
    for (int i = 0; room && i < h->columns; i++)
        if (h->roles[i] == CSV_IGNORED && csv_sounds_like_label(h->names[i]))
            room = svi_list_add(list, size, h->names[i].at, (size_t)(h->names[i].end - h->names[i].at));
    const bool none = !list[0];
    for (int i = h->columns - 1; room && none && i >= 0; i--)
        if (h->roles[i] == CSV_IGNORED)
            room = svi_list_add(list, size, h->names[i].at, (size_t)(h->names[i].end - h->names[i].at));
}

static void csv_note_label(struct csv *h, const char *label) {
    char list[LIST_MAX] = "";
    for (int i = 0; i < h->columns; i++)
        if (h->roles[i] == CSV_LABEL)
            return;
    csv_list_candidates(h, list, sizeof list);
    svi_escape(h->note, 64, label, strlen(label));
    char text[sizeof h->note];
    snprintf(text, sizeof text, "no column \"%.40s\": rows are scored, not learned; --label may be %s",
             h->note, list);
    memcpy(h->note, text, sizeof text);
}

static svs_code csv_read_header(struct csv *h, const struct svi_reader_options *o, struct svi_shape *shape,
                                struct svi_span line, svs_error *err) {
    const size_t length = (size_t)(line.end - line.at);
    h->delimiter = csv_guess_delimiter(line, &h->columns);
    h->columns++;
    h->text = svi_alloc(length + CSV_TEXT); /* numbers are looked for in it: padding as after a line */
    h->roles = svi_alloc_array((size_t)h->columns, sizeof *h->roles);
    h->names = svi_alloc_array((size_t)h->columns, sizeof *h->names);
    if (!h->text || !h->roles || !h->names)
        return svi_fail_memory(err, "the columns of the header");
    memcpy(h->text, line.at, length);
    svs_code code = csv_cut_names(h, length, err);
    if (code == SVS_OK)
        code = csv_assign_wanted(h, o, line, err);
    if (code == SVS_OK)
        csv_note_label(h, o->label ? o->label : "label");
    return code == SVS_OK ? csv_assign_features(h, shape, line, err) : code;
}

static void csv_end(void *state) {
    struct csv *h = state;
    svi_free(h->text);
    svi_free(h->roles);
    svi_free(h->names);
    svi_free(h);
}

static void *csv_begin(const struct svi_reader_options *o, struct svi_shape *shape, struct svi_span line,
                       svs_error *err) {
    struct csv *h = svi_alloc(sizeof *h);
    if (!h) {
        svi_fail_memory(err, "the columns of the header");
        return NULL;
    }
    if (csv_read_header(h, o, shape, line, err) == SVS_OK) {
        shape->names_kept = svs_features_count(shape->names);
        return h;
    }
    svi_shape_restore(shape);
    csv_end(h);
    return NULL;
}

static const char *csv_note(const void *state) {
    const struct csv *h = state;
    return h->note[0] ? h->note : NULL;
}

/* ---- rows */

/* How many cells the line has; what follows an open quote is one. */
static int csv_count_cells(const struct csv *h, struct svi_span line) {
    int count = 0;
    for (const char *p = line.at; p; p++) {
        struct svi_span cell;
        count++;
        p = csv_cut(h, p, line.end, &cell);
        if (!p || p == line.end)
            break;
    }
    return count;
}

static svs_code csv_refuse_count(const struct csv *h, struct svi_span line, svs_error *err) {
    return svi_fail(err, SVS_WRONG_DIMENSION, "the row has %d cells, the header %d columns",
                    csv_count_cells(h, line), h->columns);
}

/* The row being read. */
struct csv_row {
    struct csv *h;
    struct svi_span line;
    struct svi_message *m;
    svs_error *err;
};

/* A row with too few or too many cells is called that, whatever else is wrong with it. */
static svs_code csv_refuse_cell(const struct csv_row *r, int column, struct svi_span cell,
                                const char *wanted) {
    char name[80], text[60];
    if (csv_count_cells(r->h, r->line) != r->h->columns)
        return csv_refuse_count(r->h, r->line, r->err);
    svi_span_text(r->h->names[column], name, sizeof name);
    svi_span_text(cell, text, sizeof text);
    double v = 0;
    if (svi_cell_infinite(cell) || (svi_cell_number(cell, &v) && !isfinite(v)))
        return svi_fail(r->err, SVS_NOT_FINITE, "column \"%s\": \"%s\" is not finite", name, text);
    return svi_fail(r->err, SVS_WRONG_TYPE, "column \"%s\": \"%s\" is not %s", name, text, wanted);
}

static svs_code csv_take_number(const struct csv_row *r, int column, struct svi_span cell, double *value,
                                const char *wanted) {
    if (!svi_cell_number(cell, value) || !isfinite(*value))
        return csv_refuse_cell(r, column, cell, wanted);
    return SVS_OK;
}

/* A label or id with doubled quotes is undoubled into `room`, if it is not too long anyway. */
static struct svi_span csv_plain_text(struct svi_span cell, char room[CSV_TEXT]) {
    size_t length = (size_t)(cell.end - cell.at);
    if (length > CSV_TEXT || !memchr(cell.at, '"', length))
        return cell;
    return csv_unquote(cell, room);
}

/* Any cell but a feature that is simply a number. */
static svs_code csv_take_cell(const struct csv_row *r, int column, struct svi_span cell) {
    const int32_t role = r->h->roles[column];
    struct svi_message *m = r->m;
    if (role == CSV_LABEL)
        return svi_cell_label(csv_plain_text(cell, r->h->label_text), &m->y, r->err);
    if (role == CSV_ID)
        return svi_cell_id(csv_plain_text(cell, r->h->id_text), &m->id, r->err);
    const bool missing = svi_cell_missing(cell);
    if (role >= 0 && missing) {
        m->x[role] = NAN;
        m->missing++;
    }
    if (role == CSV_IGNORED || missing)
        return SVS_OK;
    if (role >= 0)
        return csv_take_number(r, column, cell, &m->x[role], "a number");
    if (role == CSV_TS)
        return csv_take_number(r, column, cell, &m->ts, "a time in seconds since 1970");
    svs_code code = csv_take_number(r, column, cell, &m->weight, "a weight");
    return code == SVS_OK ? svi_check_weight(m->weight, r->err) : code;
}

static svs_code csv_row(void *state, struct svi_span line, struct svi_message *m, svs_error *err) {
    const struct csv_row r = {.h = state, .line = line, .m = m, .err = err};
    const struct csv *h = state;
    const char *p = line.at, *end = line.end;
    int last = h->columns - 1;
    if (p == end || (csv_is_space(h, *p) && svi_trim(line).at == end))
        return SVS_EMPTY;
    m->has_x = true;
    m->kind = SVI_DENSE;
    m->d = h->d;
    for (int i = 0; i <= last; i++) {
        double v = INFINITY;
        const char *q = h->roles[i] >= 0 ? svi_number(p, &v) : p;
        if (fabs(v) < INFINITY && (*q == h->delimiter || q == end)) {
            m->x[h->roles[i]] = v;
        } else {
            struct svi_span cell;
            q = csv_cut(h, p, end, &cell);
            svs_code code = q ? csv_take_cell(&r, i, cell)
                              : svi_fail(err, SVS_WRONG_TYPE,
                                         "cell %d: a quote is not closed, or text follows it", i + 1);
            if (code != SVS_OK)
                return code;
        }
        if ((q == end) != (i == last))
            return csv_refuse_count(h, line, err);
        p = q + 1;
    }
    return SVS_OK;
}

const struct svi_format svi_csv = {"csv", true, csv_begin, csv_row, csv_end, csv_note};
