/* Marked incidents: reading the file, and assigning alerts to them.
 *
 * The file is read whole and sorted, so that a list with the newest first is accepted too. Two incidents of a
 * key that overlap are refused, because an alert would belong to both. Whether a column of numbers counts
 * seconds, milliseconds or smaller units is decided by the first number, as in a ts column.
 *
 * Alerts arrive one by one and are assigned by binary search: the cost of an alert does not grow with the
 * number of incidents, and nothing is stored of it except its effect on its incident. An alert before the
 * start of an incident counts for it only if it is still open at the start, which is known when it closes, or
 * at the end. */
#include "report/incidents.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/time_text.h"
#include "formats/file_io.h"

enum { START, END, NAME, KEY, COLUMNS };
#define CELLS_MAX 64 /* most columns of a file */

struct incidents_file {
    struct svi_incidents *in;
    const char *path;
    char separator;
    int column[CELLS_MAX]; /* START ... KEY; COLUMNS = ignored */
    int columns;
    int64_t line, capacity;
    bool decided; /* the kind of times (text or numbers) is known */
    enum svi_time_unit unit;
};

struct incident_cell {
    const char *at;
    size_t length;
};

/* ---- the file */

/* Splits a line [at, end) into cells, without surrounding blanks and quotes. Returns how many. */
static int incidents_split(const struct incidents_file *f, const char *at, const char *end,
                           struct incident_cell *cells) {
    int count = 0;
    while (count < CELLS_MAX) {
        const bool quoted = at < end && *at == '"';
        const char *from = quoted ? at + 1 : at, *to = from;
        /* Up to the closing quote or the separator; what follows a closing quote is skipped. */
        while (to < end && *to != (quoted ? '"' : f->separator))
            to++;
        const char *next = to;
        while (next < end && *next != f->separator)
            next++;
        while (from < to && (*from == ' ' || *from == '\t'))
            from++;
        while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
            to--;
        cells[count++] = (struct incident_cell){from, (size_t)(to - from)};
        if (next >= end)
            break;
        at = next + 1;
    }
    return count;
}

static svs_code incidents_read_header(struct incidents_file *f, const char *at, const char *end,
                                      svs_error *err) {
    static const char *const names[] = {"start", "end", "name", "key"};
    struct incident_cell cells[CELLS_MAX];
    bool have[COLUMNS] = {false};
    const size_t length = (size_t)(end - at);
    /* The separator is the first of comma, semicolon and tab that occurs in the header. */
    f->separator = memchr(at, ',', length) ? ',' : memchr(at, ';', length) ? ';' : '\t';
    f->columns = incidents_split(f, at, end, cells);
    for (int j = 0; j < f->columns; j++) {
        f->column[j] = COLUMNS;
        /* The first column of a name counts; a second one of the same name is ignored. */
        for (int k = 0; k < COLUMNS; k++)
            if (!have[k] && cells[j].length == strlen(names[k]) &&
                strncasecmp(cells[j].at, names[k], cells[j].length) == 0) {
                f->column[j] = k;
                have[k] = true;
                break;
            }
    }
    f->in->keyed = have[KEY];
    if (have[START] && have[END])
        return SVS_OK;
    return svi_fail(err, SVS_SETTING,
                    "%.150s, line %" PRId64 ": there is no column %s: the first line names the columns, "
                    "start,end or start,end,name (and key, in a "
                    "stream with keys)",
                    f->path, f->line, have[START] ? "end" : "start");
}

/* Parses a time: text if the first start was text, otherwise numbers of one unit. */
static svs_code incidents_read_time(struct incidents_file *f, struct incident_cell cell, const char *column,
                                    double *t, svs_error *err) {
    char shown[60], copy[60], *rest = copy;
    const bool text = svi_time_of_text(cell.at, cell.length, 0, t);
    double v = NAN;
    if (!text && cell.length > 0 && cell.length < sizeof copy) {
        snprintf(copy, sizeof copy, "%.*s", (int)cell.length, cell.at);
        v = strtod(copy, &rest);
    }
    /* The whole cell must be a finite number. */
    const bool number = !text && rest > copy && !*rest && isfinite(v);
    svi_escape(shown, sizeof shown, cell.at, cell.length);
    if (!text && !number)
        return svi_fail(err, SVS_INVALID,
                        "%.150s, line %" PRId64
                        ": %s '%s' is not a time: write 2026-11-22 10:05:30, seconds since 1970 or, where "
                        "the log has no times, the number of a row",
                        f->path, f->line, column, shown);
    /* Mixed kinds cannot be compared: row numbers and seconds would both look valid. */
    if (f->decided && text != f->in->text)
        return svi_fail(err, SVS_INVALID,
                        "%.150s, line %" PRId64
                        ": %s '%s' is %s, but the lines before have %s: use the same form in all lines",
                        f->path, f->line, column, shown, text ? "a date" : "a number",
                        text ? "numbers" : "dates");
    f->decided = true;
    f->in->text = text;
    if (number)
        *t = svi_time_of_number(v, &f->unit);
    return SVS_OK;
}

static svs_code incidents_read_row(struct incidents_file *f, const char *at, const char *end,
                                   struct svi_incident *one, svs_error *err) {
    struct incident_cell cells[CELLS_MAX], of[COLUMNS] = {{"", 0}, {"", 0}, {"", 0}, {"", 0}};
    const int count = incidents_split(f, at, end, cells);
    for (int j = 0; j < count && j < f->columns; j++)
        if (f->column[j] < COLUMNS)
            of[f->column[j]] = cells[j];
    /* A missing end stays NAN: incidents_settle decides whether that is allowed. */
    *one = (struct svi_incident){.end = NAN, .line = f->line};
    svi_escape(one->name, sizeof one->name, of[NAME].at, of[NAME].length);
    if (of[KEY].length > SVS_KEY_MAX)
        return svi_fail(err, SVS_INVALID, "%.150s, line %" PRId64 ": a key has at most %d bytes", f->path,
                        f->line, SVS_KEY_MAX);
    snprintf(one->key, sizeof one->key, "%.*s", (int)of[KEY].length, of[KEY].at);
    if (of[START].length == 0)
        return svi_fail(err, SVS_INVALID,
                        "%.150s, line %" PRId64 ": the start is empty: give the start of the incident",
                        f->path, f->line);
    SVI_TRY(incidents_read_time(f, of[START], "start", &one->start, err));
    if (of[END].length > 0)
        SVI_TRY(incidents_read_time(f, of[END], "end", &one->end, err));
    if (one->end < one->start)
        return svi_fail(err, SVS_INVALID,
                        "%.150s, line %" PRId64 ": the end is before the start: correct them", f->path,
                        f->line);
    return SVS_OK;
}

static svs_code incidents_add(struct incidents_file *f, const struct svi_incident *one, svs_error *err) {
    struct svi_incidents *in = f->in;
    if (in->count == SVI_INCIDENTS_MAX)
        return svi_fail(err, SVS_TOO_LARGE, "%.150s has more than %d incidents: split the file", f->path,
                        SVI_INCIDENTS_MAX);
    if (!svi_grow(&in->of, in->count, &f->capacity, 64, sizeof *in->of))
        return svi_fail_memory(err, "the incidents");
    in->of[in->count++] = *one;
    return SVS_OK;
}

static svs_code incidents_read_lines(struct incidents_file *f, const char *at, const char *end,
                                     svs_error *err) {
    struct svi_incident one;
    svs_code code = SVS_OK;
    /* A byte order mark, as spreadsheets write it. */
    if (end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    while (at < end && code == SVS_OK) {
        const char *stop = memchr(at, '\n', (size_t)(end - at)), *last = stop ? stop : end;
        const char *next = stop ? stop + 1 : end;
        while (last > at && (last[-1] == '\r' || last[-1] == ' '))
            last--;
        f->line++;
        if (last > at && f->columns == 0)
            code = incidents_read_header(f, at, last, err);
        else if (last > at && (code = incidents_read_row(f, at, last, &one, err)) == SVS_OK)
            code = incidents_add(f, &one, err);
        at = next;
    }
    return code;
}

static int incidents_compare(const void *a, const void *b) {
    const struct svi_incident *x = a, *y = b;
    const int keys = strcmp(x->key, y->key);
    /* Lines last, so that the order does not depend on qsort. */
    return keys != 0              ? keys
           : x->start != y->start ? (x->start > y->start) - (x->start < y->start)
                                  : (x->line > y->line) - (x->line < y->line);
}

static double incident_end(const struct svi_incident *i) {
    return isnan(i->end) ? i->start : i->end;
}

/* Sorts the incidents and checks them: no two of a key overlap, and each has an end, or the tolerance defines
 * how long an alert still belongs to it. */
static svs_code incidents_settle(struct svi_incidents *in, const char *path, double tolerance,
                                 svs_error *err) {
    if (in->count == 0)
        return svi_fail(err, SVS_EMPTY,
                        "%.150s has no incidents: write one a line, after the line start,end,name", path);
    qsort(in->of, (size_t)in->count, sizeof *in->of, incidents_compare);
    /* Sorted, so an overlap shows between neighbours. Two with the same start overlap even if they have no
     * end. */
    for (int64_t i = 1; i < in->count; i++)
        if (strcmp(in->of[i].key, in->of[i - 1].key) == 0 &&
            (in->of[i].start < incident_end(&in->of[i - 1]) || in->of[i].start == in->of[i - 1].start))
            return svi_fail(err, SVS_INVALID,
                            "%.150s: the incidents of lines %" PRId64 " and %" PRId64
                            " overlap, and an alert would belong to both: join them",
                            path, in->of[i - 1].line, in->of[i].line);
    /* Without an end and without a tolerance no alert could be in time. */
    for (int64_t i = 0; i < in->count && !(tolerance > 0); i++)
        if (isnan(in->of[i].end))
            return svi_fail(err, SVS_SETTING,
                            "%.150s, line %" PRId64
                            ": the end is empty: give --tolerance, the time after its start at which an "
                            "alert still belongs to it (3600 is an hour)",
                            path, in->of[i].line);
    in->tolerance = isnan(tolerance) ? 0 : tolerance;
    svi_incidents_reset(in);
    return SVS_OK;
}

svs_code svi_incidents_read(struct svi_incidents *in, const char *path, double tolerance, svs_error *err) {
    struct incidents_file f = {.in = in, .path = path};
    char *bytes = NULL;
    size_t size = 0;
    *in = (struct svi_incidents){0};
    svs_error why;
    /* An error of reading gets the option's name; errors of content name the line. */
    svs_code code = svi_file_read(path, &bytes, &size, &why);
    if (code != SVS_OK)
        svi_fail(err, code, "--incidents %.150s: %.120s", path, why.text);
    else
        code = incidents_read_lines(&f, bytes, bytes + size, err);
    if (code == SVS_OK)
        code = incidents_settle(in, path, tolerance, err);
    svi_free(bytes);
    if (code != SVS_OK)
        svi_incidents_clear(in);
    return code;
}

void svi_incidents_clear(struct svi_incidents *in) {
    svi_free(in->of);
    *in = (struct svi_incidents){0};
}

/* assigning alerts */

void svi_incidents_reset(struct svi_incidents *in) {
    for (int64_t i = 0; i < in->count; i++) {
        /* Only the results; the file's fields stay. */
        in->of[i].first = NAN;
        in->of[i].alerts = in->of[i].early = 0;
        in->of[i].during = false;
    }
}

/* Binary search in [low, high): the first incident that begins after `at` and, unless `key` is NULL, is of
 * this key or a later one. With at = -INFINITY it is the first of the key, with INFINITY the first of the
 * next key. */
static int64_t incidents_after(const struct svi_incidents *in, int64_t low, int64_t high, const char *key,
                               double at) {
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = key ? strcmp(in->of[middle].key, key) : 0;
        if (order < 0 || (order == 0 && in->of[middle].start <= at))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The range [*first, *end) of incidents that an alert of this key may belong to. */
static void incidents_of(const struct svi_incidents *in, const char *key, int64_t *first, int64_t *end) {
    *first = in->keyed ? incidents_after(in, 0, in->count, key ? key : "", -INFINITY) : 0;
    *end = in->keyed ? incidents_after(in, 0, in->count, key ? key : "", INFINITY) : in->count;
}

/* Assigns a report to the last incident that has begun, unless that ended more than the tolerance ago;
 * otherwise to the next one, if it begins within the tolerance. Between the two the earlier one has
 * precedence: its fault may have caused the alert. */
bool svi_incidents_report(struct svi_incidents *in, const char *key, double at, bool opened,
                          int64_t *before) {
    int64_t first, end;
    incidents_of(in, key, &first, &end);
    const int64_t begun = incidents_after(in, first, end, NULL, at);
    *before = -1;
    if (begun > first && at <= incident_end(&in->of[begun - 1]) + in->tolerance) {
        struct svi_incident *i = &in->of[begun - 1];
        i->first = fmin(i->first, at);
        i->alerts += opened;
        return true;
    }
    /* Neither: a false alert. */
    if (begun == end || at < in->of[begun].start - in->tolerance)
        return false;
    in->of[begun].alerts += opened;
    in->of[begun].early++;
    *before = begun;
    return true;
}

void svi_incidents_close(struct svi_incidents *in, int64_t place, double at) {
    if (place < 0)
        return;
    struct svi_incident *i = &in->of[place];
    /* The alert was still open at the start: the incident was found with no delay. */
    i->early--;
    if (at >= i->start)
        i->first = i->start;
}

void svi_incidents_during(struct svi_incidents *in, const char *key, double opened, double closed) {
    int64_t first, end;
    incidents_of(in, key, &first, &end);
    /* The first incident after the opening, then all up to the close. */
    for (int64_t i = incidents_after(in, first, end, NULL, opened); i < end && in->of[i].start <= closed; i++)
        in->of[i].during = true;
}

bool svi_incident_inside(const struct svi_incident *i, double first, double last) {
    return i->start <= last && incident_end(i) >= first;
}

double svi_incident_delay(const struct svi_incident *i, double first) {
    /* An alert reported before and never closed is open at the start: no delay. */
    return i->early > 0 ? 0 : isnan(i->first) ? NAN : fmax(0, i->first - fmax(i->start, first));
}

static int incidents_compare_delays(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

svs_code svi_incidents_figures(const struct svi_incidents *in, double first, double last,
                               struct svi_incident_figures *f, svs_error *err) {
    double *delays = svi_alloc_array((size_t)in->count, sizeof *delays);
    *f = (struct svi_incident_figures){.median_delay = NAN};
    if (in->count > 0 && !delays)
        return svi_fail_memory(err, "the delays of the incidents");
    for (int64_t i = 0; i < in->count; i++) {
        const double delay = svi_incident_delay(&in->of[i], first);
        const bool inside = svi_incident_inside(&in->of[i], first, last);
        f->count += inside;
        if (inside && !isnan(delay))
            delays[f->found++] = delay;
        /* Counted only if missed: a found incident needs no excuse. */
        f->during += inside && isnan(delay) && in->of[i].during;
    }
    f->outside = in->count - f->count;
    if (f->found > 0) {
        qsort(delays, (size_t)f->found, sizeof *delays, incidents_compare_delays);
        f->median_delay = (delays[(f->found - 1) / 2] + delays[f->found / 2]) / 2;
    }
    svi_free(delays);
    return SVS_OK;
}

bool svi_incidents_cover(const struct svi_incidents *in, const char *key, double from, double to) {
    /* incidents of different keys may overlap, so the search below does not apply */
    for (int64_t i = 0; i < in->count && in->keyed; i++)
        if ((!key || strcmp(in->of[i].key, key) == 0) && in->of[i].start <= to &&
            incident_end(&in->of[i]) >= from)
            return true;
    const int64_t begun = in->keyed ? 0 : incidents_after(in, 0, in->count, NULL, to);
    return begun > 0 && incident_end(&in->of[begun - 1]) >= from;
}
