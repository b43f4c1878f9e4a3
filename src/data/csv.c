/* CSV: an optional header, then one cell a column.
 *
 * The use of each column (`is`) is known after the first rows were sampled (column_guess.h). The same rows
 * help to decide whether the first line is a header: it is a row when it holds only numbers, when numbers
 * stand above numbers and words repeat below, or when most of its words repeat below.
 *
 * Nearly every cell is a plain number. Runs of such features (`numbers`) are parsed in place by one tight
 * loop (csv_take_numbers); any other cell is cut out, unquoted and read by its use. A row with too many or
 * too few cells is refused as that, whatever else is wrong with it.
 *
 * Invariant: names point into `text`, words of the current row into the line or `unescaped`; none of them
 * moves while the row is in use.
 *
 * csv_cells.h cuts cells. Order: the first line, the columns, rows. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/cell.h"
#include "data/csv_cells.h"
#include "data/number.h"
#include "data/quantity.h"
#include "data/reader_internal.h"

enum csv_header { CSV_NO_HEADER, CSV_HEADER, CSV_MAYBE_HEADER };

/* How a cell is parsed in place, before the general path is tried. */
enum csv_quick { CSV_SLOW, CSV_NUMBER, CSV_INTEGER };

/* How a column is read, and where its value goes. */
struct csv_column {
    struct svi_cell *cell; /* of a feature, in `cells`; NULL: not a feature */
    int numbers;           /* CSV_NUMBER columns from this one on, without the row's last column */
    enum csv_quick quick;
};

struct csv {
    const struct svi_reader_options *o;
    struct svi_missing_words missing;
    svi_guess *guess;
    int count;      /* cells of a row */
    char delimiter; /* comma, semicolon, tab or bar */
    enum csv_header header;
    struct svi_span first;      /* the first line; in `text` */
    struct svi_span *names;     /* by column; in `text`, or in the setting */
    struct csv_column *columns; /* by column, after csv_decide */
    struct svi_column_use *is;  /* by column, after csv_decide */
    struct svi_cell *cells;     /* one a feature, in the order of the columns */
    int cell_count;
    char *text;      /* the first line, its unquoted copy, 12 bytes a numbered name; owned */
    char *unescaped; /* words of the current row after their doubled quotes were undone */
    size_t scratch_size, used;
    int64_t headers; /* repeated header lines */
    bool begun;      /* the first line was offered as a row */
    bool hashes;     /* a sampled row began with #, so such lines are not comments */
    bool two;        /* the time is split over two columns, date and time of day, */
    int half_column; /* of which this is the first */
    double half;     /* its value in the current row; NAN: missing */
};

/* ---- the first line */

static int csv_count_marks(struct svi_span line, char mark) {
    int count = 0;
    for (const char *p = line.at; p < line.end; p++)
        count += *p == mark;
    return count;
}

bool svi_csv_heads(struct svi_span line, struct svi_span below) {
    int count;
    const char delimiter = svi_csv_delimiter(below, &count);
    return count > 0 && csv_count_marks(line, delimiter) == count;
}

/* A commented header: "# time,temp" names the column time. A lone # and #1 are names. */
static struct svi_span csv_first_name(struct svi_span name) {
    if (name.end - name.at < 2 || *name.at != '#' ||
        !(svi_is_blank(name.at[1]) || isalpha((unsigned char)name.at[1])))
        return name;
    name.at++;
    return svi_trim(name);
}

/* Cuts the copy of the first line into names, unquoting them in place. */
static svs_code csv_cut_first(struct csv *h, char *p, char *end, svs_error *err) {
    for (int i = 0; i < h->count; i++) {
        struct svi_span name;
        const char *stop = svi_csv_cut(p, end, h->delimiter, &name);
        /* svi_csv_delimiter counted the cells with a simpler rule for quotes; where both disagree the
         * quotes are malformed. */
        if (!stop || (stop == end) != (i == h->count - 1))
            return svi_fail(err, SVS_SETTING, "column %d of the header: its quotes are wrong", i + 1);
        p += stop - p;
        h->names[i] = svi_csv_unquote(name, (char *)h->text + (name.at - h->text));
        if (i == 0)
            h->names[i] = csv_first_name(h->names[i]);
        p++;
    }
    return SVS_OK;
}

/* What the first line alone shows: only numbers, times and empty cells are a row; anything else may be a
 * header. */
static enum csv_header csv_look_at_first(const struct csv *h) {
    int values = 0, empty = 0;
    if (h->o->no_header || (h->o->columns && *h->o->columns))
        return CSV_NO_HEADER;
    for (int i = 0; i < h->count; i++) {
        values += svi_cell_measures(h->names[i]);
        empty += svi_cell_missing(&h->missing, h->names[i]);
    }
    return values + empty == h->count ? CSV_NO_HEADER : CSV_MAYBE_HEADER;
}

/* Decides with the rows below. One word above numbers makes a header at once. Otherwise the line is a row if
 * it continues numbers and some word repeats (or it has no words), or, without numbers, if at least two words
 * and two thirds of them repeat. */
static enum csv_header csv_look_below(const struct csv *h) {
    int continues = 0, repeats = 0, words = 0;
    for (int i = 0; i < h->count; i++) {
        if (svi_guess_differs(h->guess, i, h->names[i]))
            return CSV_HEADER;
        continues += svi_guess_continues(h->guess, i, h->names[i]);
        words += !svi_guess_continues(h->guess, i, h->names[i]) && !svi_cell_measures(h->names[i]) &&
                 !svi_cell_missing(&h->missing, h->names[i]);
        repeats += svi_guess_repeats(h->guess, i, h->names[i]);
    }
    const bool again = continues > 0 ? words == 0 || repeats > 0 : repeats >= 2 && repeats * 3 >= words * 2;
    return again ? CSV_NO_HEADER : CSV_HEADER;
}

/* ---- the columns */

/* The name c1, c2, ... of a column without a name. `to` has 12 bytes: c, ten digits, NUL. */
static struct svi_span csv_number_name(char *to, int column) {
    return (struct svi_span){to, to + snprintf(to, 12, "c%d", column + 1)};
}

/* Takes the names of the setting `columns`, which must be as many as the first line has cells. */
static svs_code csv_take_columns(struct csv *h, svs_error *err) {
    int count = 0;
    for (const char *p = h->o->columns; p; count++) {
        const char *end = strchrnul(p, ',');
        if (count < h->count)
            h->names[count] = svi_trim((struct svi_span){p, end});
        p = *end ? end + 1 : NULL;
    }
    return count == h->count
               ? SVS_OK
               : svi_fail(err, SVS_SETTING, "`columns` has %d names, but the first line has %d cells", count,
                          h->count);
}

/* Refuses names that no feature could have, and duplicates: a registry of their own finds both. */
static svs_code csv_check_names(const struct csv *h, svs_error *err) {
    svs_features *names = svs_features_new(1000000, err);
    svs_code code = names ? SVS_OK : err->code;
    for (int i = 0; i < h->count && code == SVS_OK; i++) {
        svs_error why = {0};
        char text[80];
        const int place =
            svs_features_add(names, h->names[i].at, (size_t)(h->names[i].end - h->names[i].at), &why);
        /* svs_features_add returns the column of an existing name: a place before i is a duplicate. */
        if (place < 0)
            code = svi_fail(err, why.code, "column %d of the header: %.200s", i + 1, why.text);
        else if (place < i)
            code = svi_fail(err, SVS_SETTING, "the header has the column \"%s\" twice: rename one of them",
                            svi_span_text(h->names[i], text, sizeof text));
    }
    svs_features_free(&names);
    return code;
}

/* Gives the columns their final names: those of the header or of the settings, else c1, c2, ... A header's
 * empty names are numbered too. */
static svs_code csv_name_columns(struct csv *h, svs_error *err) {
    char *numbered = h->text + 2 * (h->first.end - h->first.at);
    const bool given = h->header == CSV_NO_HEADER && h->o->columns && *h->o->columns;
    svs_code code = given ? csv_take_columns(h, err) : SVS_OK;
    for (int i = 0; i < h->count; i++)
        if (!given && (h->header == CSV_NO_HEADER || h->names[i].at == h->names[i].end))
            h->names[i] = csv_number_name(numbered + 12 * (ptrdiff_t)i, i);
    if (code == SVS_OK)
        code = csv_check_names(h, err);
    /* The guess knows the columns by the cells of the first line so far. */
    for (int i = 0; i < h->count && code == SVS_OK; i++)
        svi_guess_rename(h->guess, i, h->names[i]);
    return code;
}

static svs_code csv_read_first(struct csv *h, struct svi_span line, svs_error *err) {
    const size_t length = (size_t)(line.end - line.at);
    h->delimiter = svi_csv_delimiter(line, &h->count);
    h->count++;
    /* The layout: the line, its unquoted copy, the numbered names, and the padding that parsing numbers
     * needs. */
    h->text = svi_alloc(2 * length + 12 * (size_t)h->count + SVI_NUMBER_PAD + 1);
    h->names = svi_alloc_array((size_t)h->count, sizeof *h->names);
    h->columns = svi_alloc_array((size_t)h->count, sizeof *h->columns);
    h->cells = svi_alloc_array((size_t)h->count, sizeof *h->cells);
    h->is = svi_alloc_array((size_t)h->count, sizeof *h->is);
    /* All of them or none: csv_end frees what was made. */
    if (!h->text || !h->names || !h->columns || !h->cells || !h->is)
        return svi_fail_memory(err, "the columns of the header");
    memcpy(h->text, line.at, length);
    memcpy(h->text + length, line.at, length);
    h->first = (struct svi_span){h->text, h->text + length};
    SVI_TRY(csv_cut_first(h, h->text + length, h->text + 2 * length, err));
    for (int i = 0; i < h->count; i++)
        SVI_TRY(svi_guess_column(h->guess, h->names[i], err));
    h->header = csv_look_at_first(h);
    /* Where commas separate cells, a comma inside a quoted one is weak evidence of a decimal comma. */
    svi_guess_closed(h->guess, h->delimiter == ',');
    /* A line that is a row for certain gets its final names now; an open question waits for csv_decide. */
    return h->header == CSV_MAYBE_HEADER ? SVS_OK : csv_name_columns(h, err);
}

static void csv_end(void *state) {
    struct csv *h = state;
    svi_free(h->text);
    svi_free(h->names);
    svi_free(h->columns);
    svi_free(h->is);
    svi_free(h->cells);
    svi_free(h->unescaped);
    svi_free(h);
}

static void *csv_begin(const struct svi_reader_options *o, svi_guess *guess, struct svi_span line,
                       svs_error *err) {
    struct csv *h = svi_alloc(sizeof *h);
    if (!h) {
        svi_fail_memory(err, "the columns of the header");
        return NULL;
    }
    h->o = o;
    svi_missing_words_init(&h->missing, o->missing);
    h->guess = guess;
    /* csv_end frees a partly built state. */
    if (csv_read_first(h, line, err) == SVS_OK)
        return h;
    csv_end(h);
    return NULL;
}

/* The number of cells in the line; everything after an unclosed quote is one cell. */
static int csv_count_cells(const struct csv *h, struct svi_span line) {
    int count = 0;
    for (const char *p = line.at; p; p++) {
        struct svi_span cell;
        count++;
        p = svi_csv_cut(p, line.end, h->delimiter, &cell);
        if (!p || p == line.end)
            break;
    }
    return count;
}

/* A quote that runs to the end of the line may close on a later line; a misplaced one never can. */
static enum svi_row_end csv_ends(const void *state, struct svi_span line) {
    const struct csv *h = state;
    int count = 0;
    for (const char *p = line.at; p; p++) {
        /* svi_csv_cut sets cell.end to the line's end only if the quote never closed; otherwise the quotes
         * are malformed. */
        struct svi_span cell = {line.at, line.end};
        const char *stop = svi_csv_cut(p, line.end, h->delimiter, &cell);
        count++;
        if (!stop)
            return cell.end == line.end ? SVI_ENDS_OPEN : SVI_ENDS_WRONG;
        if (stop == line.end)
            break;
        p = stop;
    }
    return count == h->count ? SVI_ENDS_WHOLE : SVI_ENDS_WRONG;
}

/* A repeated header is the same line byte by byte. */
static bool csv_is_first(const struct csv *h, struct svi_span line) {
    const size_t length = (size_t)(h->first.end - h->first.at);
    return (size_t)(line.end - line.at) == length && memcmp(line.at, h->first.at, length) == 0;
}

static svs_code csv_sample(void *state, struct svi_span line, bool *enough, svs_error *err) {
    struct csv *h = state;
    const char *p = line.at;
    *enough = false;
    /* Rows of the wrong width do not describe columns; they are refused later, when they arrive as rows. */
    if (svi_csv_is_blank(line, h->delimiter) || (h->header != CSV_NO_HEADER && csv_is_first(h, line)) ||
        csv_count_cells(h, line) != h->count)
        return SVS_OK;
    for (int i = 0; i < h->count; i++) {
        struct svi_span cell;
        p = svi_csv_cut(p, line.end, h->delimiter, &cell);
        if (!p)
            return SVS_OK;
        svs_code code = svi_guess_value(h->guess, i, cell, err);
        if (code != SVS_OK)
            return code;
        p++;
    }
    h->hashes = h->hashes || *line.at == '#';
    svi_guess_row(h->guess);
    return SVS_OK;
}

/* The fast parser that is safe for a column. None is where a number may mean missing (-999), or where cells
 * carry a unit; decimal commas need the general path too. */
static enum csv_quick csv_quick_of(const struct csv *h, const struct svi_column_use *is) {
    if (h->missing.numbers || is->measure[0])
        return CSV_SLOW;
    return is->use == SVI_USE_NUMBER && !is->comma ? CSV_NUMBER
           : is->use == SVI_USE_LABEL              ? CSV_INTEGER
                                                   : CSV_SLOW;
}

/* Recomputes the runs of plain numbers, from the right. Call it whenever the use of a column changes. The
 * last column never belongs to a run: the loop relies on a delimiter after each cell. */
static void csv_count_numbers(struct csv *h) {
    int numbers = 0;
    for (int i = h->count - 1; i >= 0; i--) {
        struct csv_column *c = &h->columns[i];
        c->quick = csv_quick_of(h, &h->is[i]);
        c->numbers = i < h->count - 1 && c->quick == CSV_NUMBER ? numbers + 1 : 0;
        numbers = c->numbers;
    }
}

static svs_code csv_decide(void *state, bool whole, svs_error *err) {
    struct csv *h = state;
    char about[80] = "";
    svs_code code = SVS_OK;
    int times = 0;
    if (h->header == CSV_MAYBE_HEADER) {
        /* The header comes first: names must be final before the guess looks for a label, a time or an id
         * among them. */
        h->header = csv_look_below(h);
        code = csv_name_columns(h, err);
    }
    if (h->header == CSV_NO_HEADER && !(h->o->columns && *h->o->columns)) {
        svi_guess_nameless(h->guess);
        snprintf(about, sizeof about, "no header: columns are c1 to c%d", h->count);
    }
    if (code == SVS_OK)
        code = svi_guess_decide(h->guess, whole, about[0] ? about : NULL, err);
    for (int i = 0; i < h->count && code == SVS_OK; i++) {
        struct csv_column *c = &h->columns[i];
        h->is[i] = *svi_guess_of(h->guess, i);
        /* The guess marks a date and its time of day both as times; the columns may stand in either order. */
        if (h->is[i].use == SVI_USE_TIME && times++ == 0)
            h->half_column = i;
        h->two = times == 2;
        if (h->is[i].use > SVI_USE_WORD)
            continue;
        c->cell = &h->cells[h->cell_count++];
        /* The list of cells, with these names, stays the same for the whole file: the schema caches it
         * (svi_message.listed). */
        c->cell->name = h->names[i].at;
        c->cell->name_length = (uint32_t)(h->names[i].end - h->names[i].at);
    }
    csv_count_numbers(h);
    if (code == SVS_OK && h->cell_count == 0 && h->count == 1)
        return svi_fail(err, SVS_SETTING,
                        "there is no feature column: the first line has one cell; separate cells by commas, "
                        "semicolons, tabs or bars");
    if (code == SVS_OK && h->cell_count == 0)
        return svi_fail(err, SVS_SETTING, "there is no feature column: %.200s", svi_guess_note(h->guess));
    return code;
}

static int64_t csv_headers(const void *state) {
    return ((const struct csv *)state)->headers;
}

/* ---- rows */

/* Refuses a row by its number of cells; a comment among the rows is skipped instead, unless rows of this file
 * begin with #. */
static svs_code csv_refuse_count(const struct csv *h, struct svi_span line, svs_error *err) {
    if (*line.at == '#' && !h->hashes)
        return SVS_EMPTY;
    const int cells = csv_count_cells(h, line);
    return svi_fail(err, SVS_WRONG_DIMENSION, "the row has %d cell%s, the header %d columns", cells,
                    cells == 1 ? "" : "s", h->count);
}

/* The row being read. */
struct csv_row {
    struct csv *h;
    struct svi_span line;
    struct svi_message *m;
    svs_error *err;
};

/* Refuses a cell. The width of the row is tested first: with a misplaced separator every later cell is in the
 * wrong column, and its error would mislead. */
static svs_code csv_refuse_cell(const struct csv_row *r, int column, struct svi_span cell,
                                const char *wanted) {
    char name[60], text[60];
    double v = 0;
    if (csv_count_cells(r->h, r->line) != r->h->count)
        return csv_refuse_count(r->h, r->line, r->err);
    svi_span_text(r->h->names[column], name, sizeof name);
    svi_span_text(cell, text, sizeof text);
    if (svi_cell_infinite(cell) || (svi_cell_number(cell, &v) && !isfinite(v)))
        return svi_fail(r->err, SVS_NOT_FINITE, "column \"%s\": \"%s\" is not finite", name, text);
    const struct svi_column_use *is = &r->h->is[column];
    /* From the most specific reason to the general one. */
    if (is->use == SVI_USE_NUMBER && is->measure[0])
        return svi_fail(r->err, SVS_WRONG_TYPE, "column \"%s\": \"%s\" is not a number in %s", name, text,
                        is->measure);
    if (is->use == SVI_USE_NUMBER)
        return svi_fail(r->err, SVS_WRONG_TYPE,
                        "column \"%s\": \"%s\" is not a number (--categories %s reads words, missing.words "
                        "lists those for a missing value)",
                        name, text, name);
    return svi_fail(r->err, SVS_WRONG_TYPE, "column \"%s\": \"%s\" is not %s", name, text, wanted);
}

/* Reads a number in the notation of its column. With decimal commas 1.234 is 1234, so the quantity is tried
 * before the plain number, which then only takes what has no other reading, like 1.5. */
static bool csv_read_number(const struct svi_column_use *is, struct svi_span cell, double *value) {
    struct svi_quantity q;
    const bool plain = !is->comma && !is->measure[0];
    if (plain && svi_cell_number(cell, value))
        return true;
    if ((is->comma || is->amount) && svi_quantity_read(cell, is->comma, &q)) {
        /* A different unit is another quantity: 5 km among values in miles must not become a 5. */
        *value = q.value;
        return svi_quantity_has_unit(&q, is->measure);
    }
    return is->comma && svi_cell_number(cell, value); /* 1.5 */
}

static svs_code csv_take_number(const struct csv_row *r, int column, struct svi_span cell, double *value,
                                const char *wanted) {
    const struct svi_column_use *is = &r->h->is[column];
    if (!csv_read_number(is, cell, value) || !isfinite(*value))
        return csv_refuse_cell(r, column, cell, wanted);
    return SVS_OK;
}

/* Reads a time of day in seconds, or a time in seconds since 1970: text first, then a number in the unit of
 * the column. */
static svs_code csv_read_time(const struct csv_row *r, int column, struct svi_span cell, double *time) {
    struct svi_column_use *is = &r->h->is[column];
    double v;
    if (is->clock)
        return svi_time_of_clock(cell.at, (size_t)(cell.end - cell.at), time)
                   ? SVS_OK
                   : csv_refuse_cell(r, column, cell, "a time of day as 10:05:00 or 10:05 PM");
    if (svi_cell_time(cell, r->h->o->ts_format, is->order, time))
        return SVS_OK;
    SVI_TRY(csv_take_number(r, column, cell, &v,
                            "a time: seconds (or milliseconds ...) since 1970, or 2026-11-22T10:00:00Z"));
    *time = svi_time_of_number(v, &is->unit);
    return SVS_OK;
}

/* Takes a time. Of a date and a time of day in two columns the first one waits in h->half and the second one
 * adds to it; NAN propagates, so a row that lacks one of them has no time. */
static svs_code csv_take_time(const struct csv_row *r, int column, struct svi_span cell, bool missing) {
    struct csv *h = r->h;
    double time = NAN;
    SVI_TRY(missing ? SVS_OK : csv_read_time(r, column, cell, &time));
    if (!h->two)
        r->m->ts = time;
    else if (column == h->half_column)
        h->half = time;
    else
        r->m->ts = h->half + time;
    return SVS_OK;
}

/* Undoes the doubled quotes of a cell in scratch memory that is reserved once a row, for the whole line: a
 * later cell must not move the words of earlier ones. */
static svs_code csv_plain_text(const struct csv_row *r, struct svi_span *cell) {
    struct csv *h = r->h;
    const size_t length = (size_t)(cell->end - cell->at), whole = (size_t)(r->line.end - r->line.at);
    if (!memchr(cell->at, '"', length))
        return SVS_OK;
    if (h->used == 0 && !svi_row_reserve((void **)&h->unescaped, &h->scratch_size, whole + SVI_NUMBER_PAD, 1))
        return svi_fail_memory(r->err, "a row");
    *cell = svi_csv_unquote(*cell, h->unescaped + h->used);
    h->used += length;
    /* Ends the text as a line ends. Two quotes became one, so this byte is within `length`. */
    h->unescaped[h->used++] = 0;
    return SVS_OK;
}

static svs_code csv_take_feature(const struct csv_row *r, int column, struct svi_span cell, bool missing) {
    struct csv_column *c = &r->h->columns[column];
    struct svi_column_use *is = &r->h->is[column];
    double v;
    c->cell->kind = SVI_CELL_MISSING;
    if (missing)
        return SVS_OK;
    /* The first value decides an open column for the rest of the file, and with it the fast path. */
    if (is->use == SVI_USE_OPEN) {
        is->use = svi_cell_number(cell, &v) ? SVI_USE_NUMBER : SVI_USE_WORD;
        csv_count_numbers(r->h);
    }
    if (is->use == SVI_USE_WORD)
        return svi_cell_word(c->cell, cell) ? SVS_OK
                                            : csv_refuse_cell(r, column, cell, "valid UTF-8: " SVI_LATIN1);
    svs_code code = csv_take_number(r, column, cell, &c->cell->number, "a number");
    c->cell->kind = code == SVS_OK ? SVI_CELL_NUMBER : SVI_CELL_MISSING;
    return code;
}

static svs_code csv_take_label(const struct csv_row *r, int column, struct svi_span cell) {
    const struct svi_column_use *is = &r->h->is[column];
    double v;
    const bool missing = svi_cell_missing(&r->h->missing, cell);
    /* A target of a regression is a quantity (1,234.5); classes never have these flags and keep their texts.
     */
    if (!missing && (is->comma || is->amount) && csv_read_number(is, cell, &v) && isfinite(v))
        return r->m->y = svi_label_number(v), SVS_OK;
    /* - next to + and None among words are classes, although both are missing words by default. */
    const bool is_class = (is->dash && svi_span_is(cell, "-")) || (is->none && svi_cell_none(cell));
    return svi_cell_label(cell, is_class ? NULL : &r->h->missing, &r->m->y, r->err);
}

/* The general path: a cell that the fast parsers left, by the use of its column. */
static svs_code csv_take_cell(const struct csv_row *r, int column, struct svi_span cell) {
    const enum svi_use use = r->h->is[column].use;
    struct svi_message *m = r->m;
    /* By use, unused columns first: they are not even unquoted. Words that mean missing apply to all others,
     * but label, id and key treat them themselves. */
    if (use == SVI_USE_NONE)
        return SVS_OK;
    SVI_TRY(csv_plain_text(r, &cell));
    if (use == SVI_USE_LABEL)
        return csv_take_label(r, column, cell);
    if (use == SVI_USE_ID)
        return svi_cell_id(cell, &r->h->missing, &m->id, r->err);
    if (use == SVI_USE_KEY)
        return svi_cell_key(cell, &r->h->missing, &m->key, r->err);
    const bool missing = svi_cell_missing(&r->h->missing, cell);
    if (use <= SVI_USE_WORD)
        return csv_take_feature(r, column, cell, missing);
    if (use == SVI_USE_TIME)
        return csv_take_time(r, column, cell, missing);
    /* A missing weight is 1, the default. */
    if (missing)
        return SVS_OK;
    SVI_TRY(csv_take_number(r, column, cell, &m->weight, "a weight"));
    return svi_check_weight(m->weight, r->err);
}

/* Blank lines and the header are not rows. The header's first appearance is expected; every later one counts
 * as a repetition. */
static bool csv_is_no_row(struct csv *h, struct svi_span line) {
    if (svi_csv_is_blank(line, h->delimiter))
        return true;
    /* One byte rejects nearly every row before the comparison of the whole line. */
    if (h->header == CSV_NO_HEADER || *line.at != *h->first.at || !csv_is_first(h, line))
        return false;
    h->headers += h->begun;
    h->begun = true;
    return true;
}

/* Where csv_take_numbers stopped. Returned by value, so that both stay in registers. */
struct csv_stop {
    const char *at;
    int64_t column;
};

/* Reads short numbers from `p` into the cells *at to `end`. It calls nothing, so that its whole state stays
 * in registers. Returns where it stopped in the line, with the cell of that place in *at. */
static inline const char *csv_take_short(const char *p, char delimiter, struct svi_cell **at,
                                         const struct svi_cell *end) {
    struct svi_cell *cell = *at;
    const char *q;
    for (; cell < end; cell++, p = q + 1) {
        double v;
        q = svi_number_short(p, &v);
        if (!q || *q != delimiter)
            break;
        cell->kind = SVI_CELL_NUMBER;
        cell->number = v;
    }
    *at = cell;
    return p;
}

/* Reads the run of plain numbers that begins in column i. Short numbers, the common case, are read by the
 * inner loop; one that it leaves is tried as a long number before the run continues. Stops at the first cell
 * that is not a number, or after the run: at most at the last column, which the caller reads with its own
 * test for the end of the line. */
static __attribute__((noinline)) struct csv_stop csv_take_numbers(const struct csv *h, int i, const char *p) {
    const char delimiter = h->delimiter;
    const struct csv_column *c = &h->columns[i];
    struct svi_cell *cell = c->cell, *const end = cell + c->numbers;
    for (;; cell++) {
        double v;
        p = csv_take_short(p, delimiter, &cell, end);
        const char *q = cell < end ? svi_number_long(p, &v) : p;
        /* Overflows are refused by the general path, which has the error text. */
        if (q == p || *q != delimiter || !(fabs(v) < INFINITY))
            break;
        cell->kind = SVI_CELL_NUMBER;
        cell->number = v;
        p = q + 1;
    }
    return (struct csv_stop){p, i + (cell - c->cell)};
}

/* Reads a label that is a whole number; a single digit, the most frequent class, is tried first. Returns the
 * end of the cell, or NULL: the general path decides. */
static inline const char *csv_take_class(const struct csv *h, const char *p, const char *end, svs_value *y) {
    int64_t whole = (unsigned char)(*p - '0');
    const char *q = p + 1;
    if (whole > 9 || (q != end && *q != h->delimiter))
        q = svi_integer(p, &whole);
    if (q == p || (q != end && *q != h->delimiter))
        return NULL;
    *y = (svs_value){.kind = SVS_INT, .as.i = whole};
    return q;
}

/* Reads one cell: by the fast parser of its column, and where that does not reach a separator, by cutting it
 * out. Returns the separator after it, or NULL: *code says why. */
static const char *csv_take_any(const struct csv_row *r, int column, const char *p, svs_code *code) {
    struct csv *h = r->h;
    const struct csv_column *c = &h->columns[column];
    const char *end = r->line.end, *q;
    double v;
    if (c->quick == CSV_INTEGER && (q = csv_take_class(h, p, end, &r->m->y)))
        return q;
    if (c->quick == CSV_NUMBER && (q = svi_number(p, &v)) != p && fabs(v) < INFINITY &&
        (*q == h->delimiter || q == end)) {
        c->cell->kind = SVI_CELL_NUMBER;
        c->cell->number = v;
        return q;
    }
    struct svi_span cell;
    q = svi_csv_cut(p, end, h->delimiter, &cell);
    *code = q ? csv_take_cell(r, column, cell)
              : svi_fail(r->err, SVS_WRONG_TYPE, "cell %d: a quote is not closed, or text follows it",
                         column + 1);
    return *code == SVS_OK ? q : NULL;
}

static svs_code csv_row(void *state, struct svi_shape *shape, struct svi_span line, struct svi_message *m,
                        svs_error *err) {
    struct csv *h = state;
    const struct csv_row r = {.h = h, .line = line, .m = m, .err = err};
    const char *p = line.at, *const end = line.end;
    const int last = h->count - 1;
    svs_code code = SVS_OK;
    (void)shape;
    if (csv_is_no_row(h, line))
        return SVS_EMPTY;
    /* A row is a list of cells under names; a missing one asks for the mean unless the settings say
     * otherwise. */
    h->used = 0;
    m->has_x = true;
    m->kind = SVI_NAMED;
    m->cells = h->cells;
    m->cell_count = h->cell_count;
    m->listed = true;
    m->absent = SVI_MISSING_MEAN;
    m->plain = true;
    for (int i = 0; i <= last; i++) {
        /* A run of numbers in one go; it stops at a cell that the general path reads, then the loop continues
         * after it. */
        if (h->columns[i].numbers > 0) {
            const struct csv_stop stop = csv_take_numbers(h, i, p);
            p = stop.at;
            i = (int)stop.column;
        }
        const char *q = csv_take_any(&r, i, p, &code);
        if (!q)
            return code;
        /* `plain` lets the schema copy the row without looking at kinds. Cells of a run are numbers by
         * construction. */
        if (h->columns[i].cell)
            m->plain = m->plain && h->columns[i].cell->kind == SVI_CELL_NUMBER;
        /* Too few cells: the line ended before the last column. Too many: it continues after it. */
        if ((q == end) != (i == last))
            return csv_refuse_count(h, line, err);
        p = q + 1;
    }
    return SVS_OK;
}

const struct svi_format svi_csv = {.name = "csv",
                                   .begin = csv_begin,
                                   .sample = csv_sample,
                                   .decide = csv_decide,
                                   .row = csv_row,
                                   .ends = csv_ends,
                                   .end = csv_end,
                                   .headers = csv_headers};
