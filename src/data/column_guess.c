/* The use of each column, guessed from the first rows.
 *
 * The first rows leave counts in each column. They are how many values are numbers, words or times,
 * and how often a number rose, and by exactly one. A hash of every value gives the number of
 * different ones. Of the values themselves only a few examples are kept.
 *
 * Decisions go from certain to uncertain. First are the settings, what the stream already knows,
 * and the label (one column, by its name and its values). Time and id follow, then the label by its
 * position if no name decided. All others are decided by what they hold. Each step only takes
 * columns that are still open (SVI_USE_OPEN), so a later one never overrules an earlier one. Where
 * a mistake would lose data the guess is careful. For example, a column of one value is used unless
 * the whole file was seen.
 *
 * Order: values, what a column holds, the settings, the label by its name, time and id, the label by its
 * position, all others, the line for people. */
#include "data/column_guess.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/cell.h"
#include "data/quantity.h"
#include "data/reader_internal.h"

#define EXAMPLES           4    /* values of the label that are shown */
#define EXAMPLE_TEXT       24   /* bytes of one, with its NUL */
#define NOTE_TEXT          1024 /* bytes of the line */
#define NAME_TEXT          100  /* bytes of a name in it */
#define SHOWN              8    /* columns of one kind in it */
#define MIN_ROWS           20   /* fewer rows are weak evidence */
#define MAX_CLASSES        50   /* a label with more different values is not a class */
#define MAX_CLASS_INTEGERS 20   /* above it, integers may be the target of a regression */
#define TEXT_SHARE         0.8  /* above this share of different values, words are free text */

struct guessed {
    struct svi_column_use is;
    char name[SVS_NAME_MAX + 1];
    const char *reason; /* why it is not used, for the line; NULL: the settings */
    int seen;           /* values that are not missing; of these: */
    int numbers, integers, times;
    int zeros, nothings;             /* numbers like 007; numbers equal to 0 */
    int quantities, united, foreign; /* by unit: none, the column's, another */
    int commas, points;              /* decimal marks beyond doubt: 33,4 and 4.604,35; 33.4 and 1,234.5 */
    int dates, clocks;               /* dates other than ISO 8601; times of day without a date */
    int same_order;                  /* dates that are the same day in both orders */
    int day_first, month_first;      /* dates that are valid in this order alone */
    int day_rises, month_rises;      /* dates not below the one before, read in this order */
    double day_last, month_last;     /* likewise */
    bool has_clock;                  /* a time includes the time of day */
    int dotted;                      /* 1.234, which is 1234 where the decimal mark is a comma */
    int european;                    /* of the commas, those with a unit or with points between thousands */
    int marked;                      /* quantities with a decimal mark or marks between thousands */
    int steps, rises, ones; /* numbers and times after the first one; those not below, and those exactly one
                               above, their predecessor */
    double last, low;
    size_t length;    /* bytes of all words together */
    uint64_t *hashes; /* one a value, `seen` of them; owned; sorted by count_different */
    size_t capacity;
    int different;
    char examples[EXAMPLES][EXAMPLE_TEXT];
    uint64_t example_hashes[EXAMPLES];
    int example_count;
    bool plus, nested, asked; /* asked: one of several candidates for the label */
    char first_unit[SVI_UNIT_MAX + 1], other_unit[SVI_UNIT_MAX + 1];
};

struct svi_guess {
    const struct svi_reader_options *o;
    struct guessed *columns;
    size_t capacity;
    int count, rows;
    bool closed, commas, nameless, whole, decided, regress;
    struct svi_missing_words missing;
    bool begun;    /* the stream already knows columns of this file */
    bool by_place; /* the label was found by its position */
    char note[NOTE_TEXT];
};

/* ---- values */

svi_guess *svi_guess_new(const struct svi_reader_options *o) {
    svi_guess *g = svi_alloc(sizeof *g);
    if (!g)
        return NULL;
    g->o = o;
    svi_missing_words_init(&g->missing, o->missing);
    return g;
}

void svi_guess_free(svi_guess **guess) {
    svi_guess *g = *guess;
    if (!g)
        return;
    for (int i = 0; i < g->count; i++)
        svi_free(g->columns[i].hashes);
    svi_free(g->columns);
    svi_free(g);
    *guess = NULL;
}

void svi_guess_closed(svi_guess *g, bool commas) {
    g->closed = true;
    g->commas = commas;
}

void svi_guess_nameless(svi_guess *g) {
    g->nameless = true;
}

svs_code svi_guess_column(svi_guess *g, struct svi_span name, svs_error *err) {
    if (!svi_row_reserve((void **)&g->columns, &g->capacity, (size_t)g->count + 1, sizeof *g->columns))
        return svi_fail_memory(err, "the columns of a file");
    svi_guess_rename(g, g->count++, name);
    return SVS_OK;
}

void svi_guess_rename(svi_guess *g, int column, struct svi_span name) {
    struct guessed *c = &g->columns[column];
    size_t length = (size_t)(name.end - name.at);
    length = length < SVS_NAME_MAX ? length : SVS_NAME_MAX;
    memcpy(c->name, name.at, length);
    c->name[length] = 0;
}

/* Counts the decimal point of a plain number: 1.234, with three digits after the point and at most three
 * before, could also be 1234 with a mark between thousands. */
static void guess_point(struct guessed *c, struct svi_span s) {
    const char *point = memchr(s.at, '.', (size_t)(s.end - s.at));
    s.at += *s.at == '-' || *s.at == '+';
    if (!point)
        return;
    const bool dotted = point > s.at && point - s.at <= 3 && *s.at != '0' && s.end - point == 4 &&
                        isdigit((unsigned char)point[1]) && isdigit((unsigned char)point[2]) &&
                        isdigit((unsigned char)point[3]);
    c->dotted += dotted;
    c->points += !dotted;
}

static void guess_step(struct guessed *c, double v) {
    /* The caller has counted v already, so 1 means that v is the first. */
    if (c->numbers + c->times > 1) {
        c->steps++;
        c->rises += v >= c->last;
        c->ones += v == c->last + 1;
    } else {
        c->low = v;
    }
    c->low = v < c->low ? v : c->low;
    c->last = v;
}

static void guess_number(struct guessed *c, struct svi_span value, double v) {
    c->numbers++;
    c->nothings += v == 0;
    /* 2^63 bounds what an int64 class or id can hold. */
    c->integers += v == trunc(v) && fabs(v) < 0x1p63;
    if (c->points == 0) /* else the meaning of points is settled */
        guess_point(c, value);
    /* Until a unit is decided each number may decide it. */
    if (c->is.unit == SVI_TIME_UNKNOWN)
        svi_time_of_number(v, &c->is.unit);
    guess_step(c, v);
}

/* Counts a unit. The first one becomes the column's; all others are foreign. */
static void guess_unit(struct guessed *c, struct svi_span unit) {
    char text[SVI_UNIT_MAX + 1] = "";
    memcpy(text, unit.at, (size_t)(unit.end - unit.at));
    if (!c->first_unit[0])
        memcpy(c->first_unit, text, sizeof text);
    if (strcmp(c->first_unit, text) == 0) {
        c->united++;
        return;
    }
    c->foreign++;
    memcpy(c->other_unit, text, sizeof text);
}

static void guess_quantity(struct guessed *c, struct svi_span value) {
    struct svi_quantity with_point, with_comma;
    /* Both notations are tried: a value that reads in only one of them settles the decimal mark of the
     * column. */
    const bool point = svi_quantity_read(value, false, &with_point);
    const bool comma = svi_quantity_read(value, true, &with_comma);
    const struct svi_quantity *q = point ? &with_point : &with_comma;
    if (!point && !comma)
        return;
    c->marked += q->grouped || q->fraction;
    c->commas += !point;
    c->points += !comma;
    /* 1.234 reads in both: as a fraction, and as 1234. */
    c->dotted += point && comma && with_comma.grouped;
    if (q->unit.at < q->unit.end)
        guess_unit(c, q->unit);
    else
        c->quantities++;
    c->european += !point && (q->grouped || q->unit.at < q->unit.end);
}

/* Is it a time in the format of the settings, or ISO 8601? */
static bool guess_is_time(const svi_guess *g, struct svi_span value, double *t) {
    const size_t length = (size_t)(value.end - value.at);
    const char *format = g->o->ts_format;
    return (format && *format && svi_time_of_format(value.at, length, format, 0, t)) ||
           svi_time_of_text(value.at, length, 0, t);
}

/* Counts a date under both orders of day and month, or a time of day. decide_order picks one order when all
 * values are in. */
static void guess_date(struct guessed *c, struct svi_span value) {
    const size_t length = (size_t)(value.end - value.at);
    double by_day = c->day_last, by_month = c->month_last, unused;
    bool clock = false;
    const bool day = svi_time_of_date(value.at, length, 0, SVI_TIME_DAY_FIRST, &by_day, &clock);
    const bool month = svi_time_of_date(value.at, length, 0, SVI_TIME_MONTH_FIRST, &by_month, &clock);
    c->clocks += svi_time_of_clock(value.at, length, &unused);
    if (!day && !month)
        return;
    c->day_rises += c->dates > 0 && by_day >= c->day_last;
    c->month_rises += c->dates > 0 && by_month >= c->month_last;
    c->dates++;
    c->day_first += !month;
    c->month_first += !day;
    c->same_order += day && month && by_day == by_month;
    c->has_clock = c->has_clock || clock;
    c->day_last = by_day;
    c->month_last = by_month;
}

static void guess_word(const svi_guess *g, struct guessed *c, struct svi_span value) {
    double t;
    const size_t length = (size_t)(value.end - value.at);
    c->length += length;
    c->plus = c->plus || svi_span_is(value, "+");
    if (guess_is_time(g, value, &t)) {
        c->times++;
        /* 2026-11-22 has ten bytes: anything longer has a time of day. */
        c->has_clock = c->has_clock || length > 10;
        guess_step(c, t);
        return;
    }
    guess_date(c, value);
    guess_quantity(c, value);
}

/* Keeps the value as an example if it is among the first few different ones. */
static void guess_example(struct guessed *c, struct svi_span value, uint64_t hash) {
    char text[EXAMPLE_TEXT];
    if (c->example_count == EXAMPLES)
        return;
    for (int k = 0; k < c->example_count; k++)
        if (c->example_hashes[k] == hash) /* the common case in a column of few values */
            return;
    /* Different values may look the same once they are cut: compare what is shown. */
    svi_span_text(value, text, sizeof text);
    for (int k = 0; k < c->example_count; k++)
        if (strcmp(c->examples[k], text) == 0)
            return;
    c->example_hashes[c->example_count] = hash;
    memcpy(c->examples[c->example_count++], text, sizeof text);
}

static uint64_t guess_hash(struct svi_span value) {
    return XXH3_64bits(value.at, (size_t)(value.end - value.at));
}

/* Is a missing word a value here? "-" is where "+" was seen, and None where the column may be a label of
 * words: by its name or by its position at either end. */
static bool guess_keeps(const svi_guess *g, struct guessed *c, struct svi_span value) {
    /* The last column is only known as such in a closed set; in JSON it is the last one so far. */
    const bool placed = c == g->columns || c == g->columns + g->count - 1;
    const bool none =
        value.at < value.end && c->numbers == 0 && svi_cell_none(value) &&
        (placed || svi_label_rank(c->name) > 0 || (g->o->label && strcmp(c->name, g->o->label) == 0));
    c->is.none = c->is.none || none;
    return none || (c->plus && svi_span_is(value, "-"));
}

svs_code svi_guess_value(svi_guess *g, int column, struct svi_span value, svs_error *err) {
    struct guessed *c = &g->columns[column];
    double v;
    /* Missing values are not counted, so every share below is one of the values that are there. A missing
     * word can only be a number if one of the words is. */
    const bool number = svi_cell_number(value, &v);
    if ((!number || g->missing.numbers) && svi_cell_missing(&g->missing, value) && !guess_keeps(g, c, value))
        return SVS_OK;
    if (!svi_row_reserve((void **)&c->hashes, &c->capacity, (size_t)c->seen + 1, sizeof *c->hashes))
        return svi_fail_memory(err, "the first rows of a file");
    const uint64_t hash = guess_hash(value);
    c->hashes[c->seen++] = hash;
    /* 007 names something; as a number it would lose its zeros. */
    c->zeros += value.end - value.at > 1 && value.at[0] == '0' && isdigit((unsigned char)value.at[1]);
    if (number)
        guess_number(c, value, v);
    else if (svi_cell_infinite(value)) /* a number, although its row will be refused */
        c->numbers++;
    else
        guess_word(g, c, value);
    guess_example(c, value, hash);
    return SVS_OK;
}

void svi_guess_nested(svi_guess *g, int column) {
    g->columns[column].nested = true;
}

void svi_guess_row(svi_guess *g) {
    g->rows++;
}

int svi_guess_rows(const svi_guess *g) {
    return g->rows;
}

/* ---- what a column holds */

/* Are `count` of the values most of them? Up to 5 % of others, or a single one among at least four, are taken
 * for mistakes; more are values in their own right. */
static bool are_most(const struct guessed *c, int count) {
    const int others = c->seen - count;
    return count > 0 && (others * 20 <= c->seen || (others == 1 && c->seen >= 4));
}

static bool holds_numbers(const struct guessed *c) {
    return are_most(c, c->numbers);
}

static bool holds_times(const struct guessed *c) {
    return are_most(c, c->times);
}

/* Numbers without a unit. */
static int count_plain(const struct guessed *c) {
    return c->numbers + c->quantities;
}

/* Do all values but a few have the same unit? A sign of money, and a plain 0, may omit it, but 12 among 12%
 * is not 12%. */
static bool holds_unit(const struct guessed *c) {
    const int plain = svi_unit_is_money(c->first_unit) ? count_plain(c) : c->nothings;
    return c->united > 0 && are_most(c, c->united + plain);
}

static bool holds_quantities(const svi_guess *g, const struct guessed *c) {
    return g->closed && (are_most(c, count_plain(c)) || holds_unit(c));
}

/* Does the column hold numbers of several units? They cannot be read as one quantity. */
static bool mixes_units(const svi_guess *g, const struct guessed *c) {
    return !holds_quantities(g, c) && c->united > 0 && are_most(c, count_plain(c) + c->united + c->foreign);
}

/* Does the column use decimal commas? Where commas separate cells, a quoted cell with a comma may as well
 * hold 1,234; only a unit or points between thousands prove the decimal comma then. */
static bool holds_commas(const svi_guess *g, const struct guessed *c) {
    return holds_quantities(g, c) && (g->commas ? c->european : c->commas) > 0;
}

/* Chooses the decimal mark of a column. One whose values leave it open (no certain decimal point) follows the
 * others of the file: with `elsewhere`, 1,234 is 1.234 and 1.234 is 1234. */
static void decide_marks(const svi_guess *g, struct guessed *c, bool elsewhere) {
    c->is.comma = holds_commas(g, c) || (elsewhere && holds_quantities(g, c) && c->points == 0);
    c->is.amount = !c->is.comma && holds_quantities(g, c) && c->quantities + c->united > 0;
    if (g->closed && holds_unit(c))
        memcpy(c->is.measure, c->first_unit, sizeof c->is.measure);
}

bool svi_guess_continues(const svi_guess *g, int column, struct svi_span text) {
    const struct guessed *c = &g->columns[column];
    struct svi_quantity q;
    /* Both notations count, because the decimal mark is not decided yet. */
    const bool quantity =
        holds_quantities(g, c) && (svi_quantity_read(text, false, &q) || svi_quantity_read(text, true, &q));
    return quantity || ((holds_numbers(c) || holds_times(c)) && svi_cell_measures(text));
}

bool svi_guess_differs(const svi_guess *g, int column, struct svi_span text) {
    const struct guessed *c = &g->columns[column];
    return (holds_numbers(c) || holds_quantities(g, c) || holds_times(c)) && !svi_cell_measures(text) &&
           !svi_guess_continues(g, column, text) && !svi_cell_missing(&g->missing, text);
}

bool svi_guess_repeats(const svi_guess *g, int column, struct svi_span text) {
    const struct guessed *c = &g->columns[column];
    const uint64_t hash = guess_hash(text);
    for (int i = 0; i < c->seen; i++)
        /* A repeated number does not make the line a row: svi_guess_continues counts those. */
        if (c->hashes[i] == hash)
            return !holds_numbers(c) && !holds_quantities(g, c);
    return false;
}

static int compare_hashes(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the hashes, which nothing needs in their order, and counts the runs. Equal hashes of different values
 * are possible, but only at a chance of 2^-64 a pair. */
static void count_different(struct guessed *c) {
    if (c->seen > 0)
        qsort(c->hashes, (size_t)c->seen, sizeof *c->hashes, compare_hashes);
    c->different = c->seen > 0;
    for (int i = 1; i < c->seen; i++)
        c->different += c->hashes[i] != c->hashes[i - 1];
}

/* Does the name imply the word? 2: it is the word; 1: its last part is: ..._word, ...-word, ...Word; 0: no.
 */
static int name_implies(const char *name, const char *word) {
    const size_t length = strlen(name), n = strlen(word);
    if (length < n || strcasecmp(name + length - n, word) != 0)
        return 0;
    if (length == n)
        return 2;
    const char before = name[length - n - 1], first = name[length - n];
    return before == '_' || before == '-' || before == '.' || before == ' ' ||
           (islower((unsigned char)before) && isupper((unsigned char)first));
}

static int name_implies_one(const char *name, const char *const *words) {
    int most = 0;
    for (; *words; words++) {
        const int says = name_implies(name, *words);
        most = says > most ? says : most;
    }
    return most;
}

/* No step has decided the column yet. */
static bool is_free(const struct guessed *c) {
    return c->is.use == SVI_USE_OPEN;
}

/* The first column of that use, or NULL. */
static const struct guessed *guess_find(const svi_guess *g, enum svi_use use) {
    for (int i = 0; i < g->count; i++)
        if (g->columns[i].is.use == use)
            return &g->columns[i];
    return NULL;
}

/* Marks the column as not used. */
static void guess_drop(struct guessed *c, const char *reason) {
    c->is.use = SVI_USE_NONE;
    c->reason = reason;
}

/* ---- the settings */

/* The column that a misspelt name probably means: at most half of its letters differ. NULL: none. */
static const char *guess_nearest(const svi_guess *g, const char *name) {
    const char *nearest = NULL;
    int least = (int)strlen(name) / 2 + 1;
    for (int i = 0; i < g->count; i++) {
        const char *column = g->columns[i].name;
        const int steps = strcasecmp(name, column) == 0 ? 0 : svi_edit_distance(name, column, least);
        if (steps < least) {
            least = steps;
            nearest = column;
        }
    }
    return nearest;
}

/* Gives the column of that name its use. An open set of columns (JSON) may still get the column later, so
 * only a closed one lacks it. */
static svs_code guess_assign(svi_guess *g, const char *name, const char *what, enum svi_use use,
                             bool required, svs_error *err) {
    char list[SVI_LIST_PAIR] = "";
    if (!name || !*name)
        return SVS_OK;
    for (int i = 0; i < g->count; i++)
        /* A column has one use: the second setting that names it is an error, not an override. */
        if (strcmp(g->columns[i].name, name) == 0) {
            if (!is_free(&g->columns[i]))
                return svi_fail(err, SVS_SETTING, "the column \"%.60s\" cannot be the %s and something else",
                                name, what);
            g->columns[i].is.use = use;
            return SVS_OK;
        }
    if (!required || !g->closed)
        return SVS_OK;
    for (int i = 0; i < g->count; i++)
        if (!svi_list_add(list, sizeof list, g->columns[i].name, strlen(g->columns[i].name)))
            break;
    const char *nearest = guess_nearest(g, name);
    if (nearest)
        return svi_fail(err, SVS_SETTING,
                        "there is no %s column \"%.60s\": did you mean \"%.60s\"? The columns are %s", what,
                        name, nearest, list);
    return svi_fail(err, SVS_SETTING, "there is no %s column \"%.60s\"; the columns are %s", what, name,
                    list);
}

enum svi_use svi_use_of(const struct svi_reader_options *o, struct svi_span name) {
    const struct {
        const char *name;
        enum svi_use use;
    } all[] = {{o->label ? o->label : "label", SVI_USE_LABEL},
               {o->id, SVI_USE_ID},
               {o->ts, SVI_USE_TIME},
               {o->weight, SVI_USE_WEIGHT},
               {o->key, SVI_USE_KEY}};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (all[k].name && *all[k].name && svi_span_is(name, all[k].name))
            return all[k].use;
    if (svi_span_listed(name, o->ignore))
        return SVI_USE_NONE;
    if (svi_span_listed(name, o->categories))
        return SVI_USE_WORD;
    if (svi_span_listed(name, o->numbers))
        return SVI_USE_NUMBER;
    /* With the setting `features` all columns that it does not name are ignored. */
    const bool passed_over = o->features && *o->features && !svi_span_listed(name, o->features);
    return passed_over ? SVI_USE_NONE : SVI_USE_OPEN;
}

enum svi_use svi_guess_late(const svi_guess *g, struct svi_span name) {
    const struct svi_reader_options *o = g->o;
    const enum svi_use use = svi_use_of(o, name);
    if (use != SVI_USE_OPEN || !o->known)
        return use;
    const enum svi_cell_kind known = o->known(o->stream, name.at, (size_t)(name.end - name.at));
    return known == SVI_CELL_NUMBER ? SVI_USE_NUMBER : known == SVI_CELL_WORD ? SVI_USE_WORD : SVI_USE_OPEN;
}

static svs_code apply_settings(svi_guess *g, svs_error *err) {
    const struct svi_reader_options *o = g->o;
    const struct {
        const char *name, *what;
        enum svi_use use;
        bool required;
    } all[] = {{o->label_required ? o->label : NULL, "label", SVI_USE_LABEL, true},
               {o->id, "id", SVI_USE_ID, true},
               {o->ts, "ts", SVI_USE_TIME, true},
               {o->weight, "weight", SVI_USE_WEIGHT, true},
               {o->key, "key", SVI_USE_KEY, !o->key_spare}};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        /* Named columns first: a column of two uses is found here, before the lists give uses away. */
        svs_code code = guess_assign(g, all[k].name, all[k].what, all[k].use, all[k].required, err);
        if (code != SVS_OK)
            return code;
    }
    for (int i = 0; i < g->count; i++) {
        struct guessed *c = &g->columns[i];
        const struct svi_span name = {c->name, c->name + strlen(c->name)};
        if (!is_free(c) || (o->label && strcmp(c->name, o->label) == 0))
            continue;
        /* Then what lists and stream say about the others; the label's column waits for the label's own step.
         */
        c->is.use = svi_guess_late(g, name);
        /* A use beyond the settings comes from the stream: it has seen this file's columns before. */
        g->begun = g->begun || c->is.use != svi_use_of(o, name);
    }
    return SVS_OK;
}

/* ---- the label */

/* Does the name begin with "is" or the like, before a word of the list (NULL: any): is_bot, isFraud,
 * was-late? */
static bool asks_for(const char *name, const char *const *words) {
    static const char *const begins[] = {"is", "was", "has", "had", "did", "will", NULL};
    for (const char *const *b = begins; *b; b++) {
        const size_t n = strlen(*b);
        if (strncasecmp(name, *b, n) != 0)
            continue;
        const char *rest = name + n;
        const bool parted = *rest && strchr("_-. ", *rest), humped = isupper((unsigned char)*rest);
        if ((parted || humped) && (!words || name_implies_one(rest + parted, words) == 2))
            return true;
    }
    return false;
}

/* Does the name ask for yes or no: is_..., has_..., or a past participle? */
static bool asks_yes_or_no(const char *name) {
    const size_t length = strlen(name);
    return asks_for(name, NULL) || (length >= 5 && strcasecmp(name + length - 2, "ed") == 0);
}

/* How well the name fits a label: 1 best, 0 not at all. Ranks 1 and 2 name a label outright (the whole name,
 * its last part); 3 and 4 name outcomes; 5 and 6 are words that many features have too. */
int svi_label_rank(const char *name) {
    static const char *const strong[] = {"label",    "class",  "target",   "y",     "outcome",  "labels",
                                         "klasse",   "classe", "clase",    "klass", "zielwert", "etikett",
                                         "etiqueta", "cible",  "objetivo", NULL};
    static const char *const outcomes[] = {
        "diagnosis", "failure", "failed",    "fail",       "fault",    "faulty",     "anomaly",
        "anomalous", "alarm",   "churn",     "churned",    "fraud",    "fraudulent", "defect",
        "defective", "success", "spam",      "survived",   "attack",   "approved",   "converted",
        "attrition", "clicked", "click",     "returned",   "canceled", "cancelled",  "subscribed",
        "purchased", "exited",  "defaulted", "readmitted", "bot",      NULL};
    static const char *const weak[] = {"status",   "result",      "verdict",   "decision",  "species",
                                       "ergebnis", "resultat",    "resultado", "risultato", "esito",
                                       "wynik",    "status_code", NULL};
    static const char *const whole[] = {"category", "state", "default", "passed", "pass", NULL};
    /* The full name ranks before its last part, in each list. */
    const int first = name_implies_one(name, strong), second = name_implies_one(name, outcomes),
              third = name_implies_one(name, weak);
    if (first > 0)
        return first == 2 ? 1 : 2;
    if (second > 0)
        return second == 2 || asks_for(name, outcomes) ? 3 : 4;
    return third == 2 || name_implies_one(name, whole) == 2 ? 5 : third ? 6 : 0;
}

/* Are the numbers a target rather than classes: fractions, or many different integers? */
static bool calls_for_regression(const struct guessed *c) {
    return (holds_numbers(c) || c->is.comma || c->is.amount) &&
           (c->integers < c->numbers || c->marked > 0 ||
            (c->different > MAX_CLASS_INTEGERS && c->different * 20 > c->seen));
}

/* Is y a coordinate? It is in a file with a column x, unless it is the first or last column. */
static bool is_coordinate(const svi_guess *g, const struct guessed *c) {
    if (strcasecmp(c->name, "y") != 0 || c == g->columns || c == g->columns + g->count - 1)
        return false;
    for (int i = 0; i < g->count; i++)
        if (strcasecmp(g->columns[i].name, "x") == 0)
            return true;
    return false;
}

/* The rank of the column as a label; 0: it cannot be one. A column of one value may be the
 * beginning of a sorted file, or of one in which the other class is rare. It keeps its rank where
 * the name is plain or the rows are few. Otherwise it ranks after all others, and it has no rank
 * once the whole file was seen. */
static int rank_label(const svi_guess *g, const struct guessed *c) {
    const int rank = svi_label_rank(c->name);
    if (!is_free(c) || rank == 0 || holds_times(c) || is_coordinate(g, c))
        return 0;
    /* A target of a regression only by a name that says so: many features are numbers called status. */
    if (calls_for_regression(c))
        return rank <= 2 ? rank : 0;
    /* Too many classes, unless the name is beyond doubt and each occurs twice on average. */
    if (c->different > MAX_CLASSES)
        return rank == 1 && c->different * 2 <= c->seen ? rank : 0;
    if (c->different > 1 || rank == 1 || c->seen < MIN_ROWS)
        return rank;
    return g->whole || c->seen == 0 ? 0 : rank + 6;
}

static int guess_find_place(const svi_guess *g);
static bool has_two_values(const svi_guess *g, const struct guessed *c);

/* Does column i contest the best rank? A column in the label's position with two values does. So
 * does one with the name of an outcome next to a class (which may be the class of a ticket). Next
 * to a weak name, a column with two values and a name that asks for yes or no does too. */
static bool guess_opposes(const svi_guess *g, int i, int place, int rank) {
    const struct guessed *c = &g->columns[i];
    if (rank_label(g, c) == rank || !is_free(c))
        return false;
    return i == place || (rank <= 2 && rank_label(g, c) == 3) ||
           (rank >= 4 && has_two_values(g, c) && asks_yes_or_no(c->name));
}

/* Decides between the best column by name, one of `equals` columns of that rank, and all others. A weak name
 * like smoking_status gives way to the only rival; otherwise, where two columns may be the label, neither is:
 * the line names both. -1: undecided. */
static int guess_weigh(svi_guess *g, int best, int rank, int equals) {
    static const char *const classes[] = {"class", "klasse", "classe", "clase", "klass", NULL};
    const int place = guess_find_place(g);
    const bool edge = best == 0 || best == g->count - 1;
    const bool clear = rank <= 2 && !name_implies_one(g->columns[best].name, classes);
    int others = 0, other = -1;
    /* No rival is looked for where positions do not count, where the name is beyond doubt, or where position
     * and name agree. */
    if (!g->o->placed || clear || best == place || (edge && rank <= 3))
        return equals == 1 ? best : -1;
    for (int i = 0; i < g->count; i++)
        if (guess_opposes(g, i, place, rank)) {
            g->columns[i].asked = true;
            other = i;
            others++;
        }
    if (others == 0)
        return equals == 1 ? best : -1;
    /* Whether the line says that the position decided. */
    g->by_place = rank == 6 && others == 1 && other == place;
    if (rank == 6 && others == 1)
        return other;
    /* The columns of the best rank are candidates too. */
    for (int i = 0; i < g->count; i++)
        g->columns[i].asked = g->columns[i].asked || rank_label(g, &g->columns[i]) == rank;
    return -1;
}

/* The column of the setting, else the one with clearly the best name; -1: none. A column with the label's
 * name wins at once, whatever it holds. */
static int guess_find_label(svi_guess *g) {
    const char *name = g->o->label ? g->o->label : "label";
    int best = -1, best_rank = 0, equals = 0;
    for (int i = 0; i < g->count; i++) {
        const struct guessed *c = &g->columns[i];
        const int rank = rank_label(g, c);
        if (c->is.use == SVI_USE_LABEL || (is_free(c) && strcmp(c->name, name) == 0))
            return i;
        if (g->o->unlabelled || g->o->label_required || rank == 0)
            continue;
        if (best < 0 || rank < best_rank) {
            best = i;
            best_rank = rank;
            equals = 0;
        }
        /* Ties are counted, because two columns of the best rank mean that neither is clear. */
        equals += rank == best_rank;
    }
    return best < 0 ? -1 : guess_weigh(g, best, best_rank, equals);
}

/* Makes column i the label (-1 = none). Returns whether it did. */
static bool guess_make_label(svi_guess *g, int i) {
    if (i < 0)
        return false;
    struct guessed *c = &g->columns[i];
    c->is.use = SVI_USE_LABEL;
    c->is.dash = c->plus;
    g->regress = calls_for_regression(c);
    if (!g->regress) { /* classes keep their texts: as quantities, 1a and 1 would be the same */
        c->is.comma = c->is.amount = false;
        memset(c->is.measure, 0, sizeof c->is.measure);
    }
    return true;
}

/* ---- time and id */

static bool named_like_time(const char *name) {
    static const char *const words[] = {
        "time",  "timestamp", "ts",    "date",    "datetime", "at",   "when",  "t",    "epoch", "unix",
        "stamp", "zeit",      "datum", "uhrzeit", "fecha",    "hora", "heure", "hour", NULL};
    return name_implies_one(name, words) > 0;
}

/* May the column be the time of the rows? Text that is a time rises in 90 % of the steps or has the name of a
 * time; numbers need both, and at least 1e8: seconds since 1973. */
static bool may_be_time(const struct guessed *c) {
    const bool rises = c->rises * 10 >= c->steps * 9, named = named_like_time(c->name);
    if (holds_times(c))
        return rises || named;
    return named && rises && holds_numbers(c) && c->low >= 1e8 && c->numbers == c->seen;
}

/* Does the column hold times of day? 10.05.26 may also be a date, so the majority or the name decides. */
static bool holds_clocks(const struct guessed *c) {
    static const char *const words[] = {"time", "uhrzeit", "zeit", "hora", "heure", "hour", NULL};
    return are_most(c, c->clocks) && (c->clocks > c->dates || name_implies_one(c->name, words) > 0);
}

/* Chooses the order of day and month for a column of dates other than ISO 8601, if nearly all of them are
 * valid in it. Evidence in this order: numbers above 12, then the order in which the dates rise more often,
 * then day first. The column counts as one of times from then on. */
static void decide_order(struct guessed *c) {
    const bool month =
        c->month_first > c->day_first || (c->month_first == c->day_first && c->month_rises > c->day_rises);
    if (holds_clocks(c) || !are_most(c, c->dates - (month ? c->day_first : c->month_first)))
        return;
    c->is.order = month ? SVI_TIME_MONTH_FIRST : SVI_TIME_DAY_FIRST;
    c->times = c->dates;
    c->steps = c->dates - 1;
    /* may_be_time reads these as if the dates had been ISO 8601. */
    c->rises = month ? c->month_rises : c->day_rises;
}

/* Finds the time of day that belongs to a column of dates: in an adjacent column, or in one with the name of
 * a time. */
static void decide_clock(svi_guess *g, int date) {
    const struct guessed *d = &g->columns[date];
    /* Only where the dates lack a time of day, in a file with a fixed set of columns. */
    if (!g->closed || d->has_clock || !holds_times(d))
        return;
    for (int i = 0; i < g->count; i++) {
        struct guessed *c = &g->columns[i];
        if (!is_free(c) || !holds_clocks(c) || (abs(i - date) > 1 && !named_like_time(c->name)))
            continue;
        c->is.use = SVI_USE_TIME;
        c->is.clock = true;
        return;
    }
}

static void decide_time(svi_guess *g) {
    /* One time at most: that of the settings, else the first column that may be one. Other columns of times
     * are dropped, not used as features. */
    bool found = guess_find(g, SVI_USE_TIME);
    for (int i = 0; i < g->count; i++) {
        struct guessed *c = &g->columns[i];
        if (!is_free(c) || (!may_be_time(c) && !holds_times(c)))
            continue;
        if (found || !may_be_time(c))
            guess_drop(c, found ? "another time" : "times that do not rise");
        else
            c->is.use = SVI_USE_TIME;
        found = found || c->is.use == SVI_USE_TIME;
    }
    for (int i = 0; i < g->count; i++)
        if (g->columns[i].is.use == SVI_USE_TIME && !g->columns[i].is.clock) {
            decide_clock(g, i);
            return;
        }
}

/* Is it a name under which numbers are codes? A larger code is not more of anything, so they are words. */
static bool named_like_code(const char *name) {
    static const char *const words[] = {"code",       "zip",   "zipcode", "postcode", "postalcode",
                                        "plz",        "store", "shop",    "branch",   "filiale",
                                        "department", "dept",  NULL};
    return name_implies_one(name, words) > 0;
}

static bool named_like_id(const char *name, bool *plain) {
    static const char *const words[] = {"id", "uuid", "guid", NULL};
    const int says = name_implies_one(name, words);
    *plain = says == 2;
    return says > 0;
}

bool svi_is_id_name(const char *name) {
    bool plain;
    return named_like_id(name, &plain) && plain;
}

static void decide_id(svi_guess *g) {
    bool found = guess_find(g, SVI_USE_ID), plain;
    for (int i = 0; i < g->count; i++) {
        struct guessed *c = &g->columns[i];
        const bool named = named_like_id(c->name, &plain), fraction = c->integers < c->numbers;
        /* Few enough values to be categories: each occurs twice on average. */
        const bool several = c->seen >= MIN_ROWS && c->different > 2 && c->different * 2 <= c->seen;
        if (!is_free(c) || fraction || c->seen == 0)
            continue;
        if (!named && several && named_like_code(c->name))
            c->is.use = SVI_USE_WORD;
        if (!named)
            continue;
        /* Every value different, and at most half the longest id on average. */
        const bool unique = c->different == c->seen && c->length <= (size_t)c->seen * SVS_NAME_MAX / 2;
        /* A plain name (id) convinces with any number of rows, a suffix (order_id) only with ten. */
        if (unique && !found && (plain || c->seen >= MIN_ROWS / 2)) {
            c->is.use = SVI_USE_ID;
            found = true;
        } else if (c->seen >= MIN_ROWS && c->different > TEXT_SHARE * c->seen) {
            guess_drop(c, "ids");
        } else if (c->seen >= MIN_ROWS && c->different * 2 <= c->seen) {
            c->is.use = SVI_USE_WORD; /* its numbers name things: machine_id */
        }
    }
}

/* ---- the label by its place */

/* Does the column number the rows: 1, 2, 3, ... without a gap? */
static bool counts_rows(const struct guessed *c, int rows) {
    return c->seen == rows && c->integers == rows && rows >= MIN_ROWS / 2 && c->ones == rows - 1;
}

/* Are all values 0, 1 or -1, the common numeric labels? */
static bool has_signs(const struct guessed *c) {
    for (int k = 0; k < c->example_count; k++)
        if (strcmp(c->examples[k], "0") != 0 && strcmp(c->examples[k], "1") != 0 &&
            strcmp(c->examples[k], "-1") != 0)
            return false;
    return true;
}

/* Does the column have two words or two integers, in 20 rows or more? Where the stream has begun its features
 * are known: a further column in the label's position is the label, however few rows there are. */
static bool has_two_values(const svi_guess *g, const struct guessed *c) {
    if (!is_free(c) || c->integers < c->numbers || c->nested || holds_times(c))
        return false;
    if (c->different == 2 && g->rows >= MIN_ROWS)
        return true;
    return g->begun && c->different > 0 && c->different <= 2 && (c->numbers == 0 || has_signs(c));
}

/* Does the column hold classes as words? Data sets without a header put the classes last. A time means a log,
 * which has none. */
static bool has_classes(const svi_guess *g, const struct guessed *c) {
    return !guess_find(g, SVI_USE_TIME) && g->nameless && is_free(c) && g->rows >= MIN_ROWS &&
           c->numbers == 0 && c->different > 2 && c->different <= MAX_CLASS_INTEGERS &&
           c->different * 5 <= c->seen;
}

/* Is there a feature other than column i to learn the label from? */
static bool has_others(const svi_guess *g, int i) {
    for (int k = 0; k < g->count; k++) {
        const struct guessed *c = &g->columns[k];
        if (k != i && c->is.use <= SVI_USE_WORD && c->different > 1 && !counts_rows(c, g->rows))
            return true;
    }
    return false;
}

/* May the first column be the label? With names, words there are mostly a category: the sex, the site. */
static bool is_sure_first(const svi_guess *g, int first) {
    return g->nameless || g->begun || g->columns[first].numbers > 0;
}

/* The column in the position of a label: the last one, else the first one, of those with values; -1: neither.
 * Two values are preferred over several classes. */
static int guess_find_place(const svi_guess *g) {
    int first = 0, last = g->count - 1;
    while (first < last && g->columns[first].seen == 0)
        first++;
    while (last > first && g->columns[last].seen == 0)
        last--;
    if (last <= first)
        return -1;
    /* From the strongest evidence to the weakest. */
    const int i = has_two_values(g, &g->columns[last])                               ? last
                  : has_two_values(g, &g->columns[first]) && is_sure_first(g, first) ? first
                  : has_classes(g, &g->columns[last])                                ? last
                                                                                     : -1;
    return i >= 0 && has_others(g, i) ? i : -1;
}

/* Finds the label by its position, only where names left no candidate. */
static void decide_place(svi_guess *g) {
    for (int i = 0; i < g->count; i++)
        if (!g->o->placed || g->columns[i].asked ||
            (is_free(&g->columns[i]) && rank_label(g, &g->columns[i]) > 0))
            return;
    /* guess_find_place relies on times and ids: they are decided by now. */
    g->by_place = guess_make_label(g, guess_find_place(g));
}

/* ---- all others */

static void decide_words(const svi_guess *g, struct guessed *c) {
    c->is.use = SVI_USE_WORD;
    if (g->o->hash || c->seen < MIN_ROWS || c->different < MIN_ROWS)
        return;
    /* Many different times as categories would be as useless as text, but the advice differs. Words that come
     * again and again are a category whatever the name of their column: hours like h0 to h23. */
    const bool many = c->different > TEXT_SHARE * c->seen;
    if (are_most(c, c->dates) || are_most(c, c->clocks) || (many && named_like_time(c->name)))
        guess_drop(c, "times of an unknown form: --ts with --ts.format reads them");
    else if (many)
        guess_drop(c, c->length > 24 * (size_t)c->seen
                          ? "text, --categories or --hash reads it"
                          : "nearly all values differ, --categories or --hash reads it");
}

static void decide_feature(const svi_guess *g, struct guessed *c, bool constants) {
    /* The order matters: row numbers and constants are numbers too, so they are dropped before numbers are
     * recognised. */
    if (c->nested && c->seen == 0)
        guess_drop(c, "no single values");
    else if (c->seen == 0 && g->rows >= (g->whole ? MIN_ROWS : 5 * MIN_ROWS))
        guess_drop(c, "empty");
    else if (c->seen == 0)
        return; /* stays open: its first value decides */
    else if (counts_rows(c, g->rows))
        guess_drop(c, "row numbers");
    else if (!constants && c->different == 1 && g->whole && c->seen >= MIN_ROWS)
        guess_drop(c, "constant");
    else if ((holds_numbers(c) || c->is.comma || c->is.amount) && c->zeros == 0)
        c->is.use = SVI_USE_NUMBER;
    else
        decide_words(g, c);
}

/* Decides all columns that are still open. Columns of one value are used after all where no other feature is
 * left: better than none. */
static void decide_features(svi_guess *g) {
    int features = 0;
    for (int i = 0; i < g->count; i++) {
        if (is_free(&g->columns[i]))
            decide_feature(g, &g->columns[i], false);
        features += g->columns[i].is.use <= SVI_USE_WORD;
    }
    /* No feature at all: take back what was dropped only for being constant. */
    for (int i = 0; i < g->count && features == 0; i++) {
        struct guessed *c = &g->columns[i];
        if (c->is.use == SVI_USE_NONE && c->reason && c->different == 1) {
            c->reason = NULL;
            decide_feature(g, c, true);
        }
    }
}

/* ---- the line for a person */

__attribute__((format(printf, 2, 3))) static void note_add(svi_guess *g, const char *format, ...) {
    va_list arguments;
    const size_t used = strlen(g->note);
    va_start(arguments, format);
    vsnprintf(g->note + used, sizeof g->note - used, format, arguments);
    va_end(arguments);
}

/* Separates the next part of the line from the one before. */
static void note_part(svi_guess *g) {
    if (g->note[0])
        note_add(g, " · ");
}

/* Adds an item to a list; the first one is preceded by the title. */
static void note_item(svi_guess *g, bool first, const char *title, const char *item) {
    if (first)
        note_part(g);
    note_add(g, "%s %s", first ? title : ",", item);
}

/* Ends a list of `count` items, of which at most SHOWN are named. */
static void note_remainder(svi_guess *g, int count) {
    if (count > SHOWN)
        note_add(g, " and %d more", count - SHOWN);
}

/* The name, escaped and cut: it goes to a terminal. */
static const char *shown_name(const struct guessed *c, char text[NAME_TEXT]) {
    return svi_escape(text, NAME_TEXT, c->name, strlen(c->name));
}

/* The label with its classes, or with the task that its numbers call for, and how to overrule the guess. */
static void note_label(svi_guess *g, const struct guessed *c) {
    const char *place = g->by_place ? "; by its place, --label says otherwise" : "";
    char name[NAME_TEXT];
    note_part(g);
    note_add(g, "label %s", shown_name(c, name));
    if (g->regress && g->o->task_given)
        note_add(g, " (numbers)");
    else if (g->regress)
        note_add(g, " (many different numbers: %s)",
                 g->o->task_follows ? "a regression, unless --task says classify"
                                    : "learned with --task regress");
    else if (c->different > EXAMPLES)
        note_add(g, " (%d classes%s)", c->different, place);
    else
        for (int k = 0; k < c->example_count; k++)
            note_add(g, "%s%s%s%s", k == 0 ? " (" : ", ", c->examples[k],
                     k == c->example_count - 1 ? place : "", k == c->example_count - 1 ? ")" : "");
}

/* Is the column a candidate in this pass? Pass 0: the rivals of the decision; 1: names that fit a label; 2:
 * few values; 3: all. */
static bool is_candidate(const struct guessed *c, int pass) {
    if (c->is.use > SVI_USE_WORD)
        return false;
    if (pass == 0)
        return c->asked;
    if (pass == 1)
        return svi_label_rank(c->name) > 0;
    return pass == 3 || (c->different >= 2 && c->different <= MAX_CLASS_INTEGERS);
}

static bool has_candidates(const svi_guess *g, int pass) {
    for (int i = 0; i < g->count; i++)
        if (is_candidate(&g->columns[i], pass))
            return true;
    return false;
}

/* Names the columns that may be the label, of the first pass that has any. From the last column, the most
 * frequent position of a label; in pass 2 the last column is named whatever it holds. */
static void note_candidates(svi_guess *g) {
    char name[NAME_TEXT];
    note_part(g);
    /* A setting that named a missing column is reported first; a guess that found nothing only says so. */
    if (g->o->label_required)
        note_add(g, "no column \"%s\"", svi_escape(name, sizeof name, g->o->label, strlen(g->o->label)));
    else
        note_add(g, g->o->label_needed ? "no column is clearly the label" : "no label");
    if (!g->o->label_needed)
        note_add(g, ": rows are scored, not learned");
    int pass = 0, found = 0;
    while (pass < 3 && !has_candidates(g, pass))
        pass++;
    for (int i = g->count - 1; i >= 0 && found < SHOWN; i--)
        if (is_candidate(&g->columns[i], pass) ||
            (pass == 2 && i == g->count - 1 && is_candidate(&g->columns[i], 3)))
            note_add(g, "%s%s", found++ ? ", " : "; --label may be ", shown_name(&g->columns[i], name));
}

/* Adds how times are read: the order of day and month for dates that are ambiguous, the format, or the unit.
 */
static void note_time(svi_guess *g, const struct guessed *c) {
    /* Neither a number above 12 nor the order of the dates decided: the order is a guess. */
    const bool known = c->day_first + c->month_first > 0 || c->day_rises != c->month_rises;
    char name[NAME_TEXT];
    for (int i = 0; i < g->count; i++)
        if (g->columns[i].is.clock)
            note_add(g, " + %s", shown_name(&g->columns[i], name));
    const char *order = c->is.order == SVI_TIME_MONTH_FIRST ? "month first" : "day first";
    if (c->is.order != SVI_TIME_ISO && c->same_order < c->dates)
        note_add(g, " (%s%s)", order, known ? "" : ", a guess: --ts.format overrides it");
    else if (holds_times(c) && c->is.order == SVI_TIME_ISO)
        note_add(g, " (%s)", g->o->ts_format && *g->o->ts_format ? g->o->ts_format : "ISO 8601");
    else if (!holds_times(c) && c->is.unit != SVI_TIME_UNKNOWN)
        note_add(g, " (%s since 1970)", svi_time_unit_name(c->is.unit));
}

static void note_special(svi_guess *g) {
    static const struct {
        enum svi_use use;
        const char *word;
    } all[] = {{SVI_USE_TIME, "time"}, {SVI_USE_ID, "id"}, {SVI_USE_WEIGHT, "weight"}, {SVI_USE_KEY, "key"}};
    char name[NAME_TEXT];
    /* In the order of uses, not of columns, so that the line always reads the same way. A time of day is
     * named with its date. */
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (int i = 0; i < g->count; i++) {
            const struct guessed *c = &g->columns[i];
            if (c->is.use != all[k].use || c->is.clock)
                continue;
            note_part(g);
            note_add(g, "%s %s", all[k].word, shown_name(c, name));
            if (c->is.use == SVI_USE_KEY)
                note_add(g, " (%d)", c->different);
            if (c->is.use == SVI_USE_TIME)
                note_time(g, c);
        }
}

/* Adds what a reader should know about the numbers: their units, and decimal marks that could be read another
 * way. */
static void note_numbers(svi_guess *g) {
    int commas = 0, amounts = 0, dotted = 0, shown = 0;
    char name[NAME_TEXT];
    for (int i = 0; i < g->count; i++) {
        const struct guessed *c = &g->columns[i];
        if (c->is.use != SVI_USE_NUMBER)
            continue;
        /* Flags of a column count only if its values really have such marks: `comma` may come from other
         * columns. */
        commas += c->is.comma && c->commas > 0;
        amounts += c->is.amount && c->quantities > 0;
        dotted += c->is.comma && c->dotted > 0;
        if (c->is.measure[0] && shown++ < SHOWN)
            note_add(g, "%s%s in %s", shown > 1 ? ", " : " (", shown_name(c, name), c->is.measure);
    }
    note_remainder(g, shown);
    /* The strongest remark alone: a changed meaning of 1.234 matters most. */
    const char *marks = dotted    ? "decimal commas, 1.234 is 1234"
                        : commas  ? "with decimal commas"
                        : amounts ? "some written as 1,200"
                                  : NULL;
    if (marks)
        note_add(g, "%s%s", shown > 0 ? "; " : " (", marks);
    if (marks || shown > 0)
        note_add(g, ")");
}

/* Names the columns that would be numbers if all values had one unit. */
static void note_mixed(svi_guess *g) {
    char name[NAME_TEXT];
    int shown = 0;
    for (int i = 0; i < g->count; i++) {
        const struct guessed *c = &g->columns[i];
        if ((c->is.use != SVI_USE_WORD && c->is.use != SVI_USE_NONE) || !mixes_units(g, c) ||
            shown++ >= SHOWN)
            continue;
        note_item(g, shown == 1, "numbers of several units, so not read as numbers:", shown_name(c, name));
        note_add(g, " (%s%s%s)", c->first_unit, c->other_unit[0] ? ", " : " and none", c->other_unit);
    }
    note_remainder(g, shown);
}

/* Lists the features. Categories are named with their number of values ("3 categories: machine 8, ...");
 * numbers only where note_numbers has something to add. */
static void note_features(svi_guess *g) {
    char name[NAME_TEXT];
    int numbers = 0, words = 0, shown = 0;
    for (int i = 0; i < g->count; i++) {
        const struct svi_column_use *c = &g->columns[i].is;
        numbers += c->use == SVI_USE_NUMBER || c->use == SVI_USE_OPEN;
        words += c->use == SVI_USE_WORD;
    }
    if (numbers > 0) {
        note_part(g);
        note_add(g, "%d number%s", numbers, numbers > 1 ? "s" : "");
        note_numbers(g);
    }
    if (words == 0)
        return;
    note_part(g);
    note_add(g, "%d categor%s:", words, words > 1 ? "ies" : "y");
    for (int i = 0; i < g->count; i++)
        if (g->columns[i].is.use == SVI_USE_WORD && shown++ < SHOWN)
            note_add(g, "%s %s %d", shown > 1 ? "," : "", shown_name(&g->columns[i], name),
                     g->columns[i].different);
    note_remainder(g, shown);
}

static void note_others(svi_guess *g) {
    char name[NAME_TEXT];
    int shown = 0, constant = 0;
    for (int i = 0; i < g->count; i++) {
        const struct guessed *c = &g->columns[i];
        /* Counts all of them, names the first SHOWN. */
        if (c->is.use != SVI_USE_NONE || shown++ >= SHOWN)
            continue;
        note_item(g, shown == 1, "ignored:", shown_name(c, name));
        if (c->reason)
            note_add(g, " (%s)", c->reason);
    }
    note_remainder(g, shown);
    /* Used although constant: more rows may bring another value. With few rows that is no news. */
    for (int i = 0; i < g->count && g->rows >= MIN_ROWS; i++) {
        const struct guessed *c = &g->columns[i];
        if (c->is.use > SVI_USE_WORD || c->different > 1 || constant++ >= SHOWN)
            continue;
        note_item(g, constant == 1, "constant so far:", shown_name(c, name));
    }
    note_remainder(g, constant);
}

/* Names of the settings that no column has. Only a closed set of columns shows that. */
static void note_strangers(svi_guess *g) {
    const char *const lists[] = {g->o->ignore, g->o->categories, g->o->numbers, g->o->features};
    int shown = 0;
    /* A misspelt name in a setting would otherwise have no effect and no message. */
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (const char *p = lists[k]; g->closed && p && *p;) {
            /* Empty names of a list (a trailing comma) are accepted. */
            const char *end = strchrnul(p, ',');
            const struct svi_span name = svi_trim((struct svi_span){p, end});
            char text[NAME_TEXT];
            bool there = name.at == name.end;
            for (int i = 0; i < g->count && !there; i++)
                there = svi_span_is(name, g->columns[i].name);
            if (!there)
                note_item(g, shown++ == 0, "no such column:", svi_span_text(name, text, sizeof text));
            p = *end ? end + 1 : end;
        }
}

static void write_note(svi_guess *g, const char *about) {
    const struct guessed *label = guess_find(g, SVI_USE_LABEL);
    if (about)
        note_add(g, "%s", about);
    if (label)
        note_label(g, label);
    else if (g->o->label_needed || !g->o->unlabelled)
        note_candidates(g);
    note_special(g);
    note_features(g);
    note_others(g);
    note_mixed(g);
    note_strangers(g);
    /* A guess from few rows says so, unless they are the whole file or the stream confirmed it. */
    if (g->whole || g->begun || g->rows >= MIN_ROWS)
        return;
    note_part(g);
    note_add(g, "guessed from %d row%s", g->rows, g->rows == 1 ? "" : "s");
}

svs_code svi_guess_decide(svi_guess *g, bool whole, const char *about, svs_error *err) {
    /* The order of the steps is the order of certainty (top of the file). */
    bool labelled = false, commas = false; /* commas: of any column */
    g->whole = whole;
    for (int i = 0; i < g->count; i++) {
        count_different(&g->columns[i]);
        commas = commas || (!g->commas && holds_commas(g, &g->columns[i]));
    }
    /* Decimal marks and orders of dates come first: whether a column holds numbers or times depends on them.
     */
    for (int i = 0; i < g->count; i++)
        decide_marks(g, &g->columns[i], commas);
    for (int i = 0; i < g->count; i++)
        if (!holds_times(&g->columns[i]) && g->columns[i].dates > 0)
            decide_order(&g->columns[i]);
    SVI_TRY(apply_settings(g, err));
    labelled = guess_make_label(g, guess_find_label(g));
    /* Positional columns are features by their places; nothing is guessed beyond the label. */
    if (!g->o->positional) {
        decide_time(g);
        decide_id(g);
        if (!labelled)
            decide_place(g);
        decide_features(g);
    }
    write_note(g, about);
    /* The line already names the candidates, so it is the error text. */
    if (g->o->label_needed && !labelled && !g->by_place)
        return svi_fail(err, SVS_SETTING, "%.240s", g->note);
    g->decided = true;
    for (int i = 0; i < g->count; i++) {
        svi_free(g->columns[i].hashes);
        g->columns[i].hashes = NULL;
    }
    return SVS_OK;
}

const struct svi_column_use *svi_guess_of(const svi_guess *g, int column) {
    return &g->columns[column].is;
}

const char *svi_guess_note(const svi_guess *g) {
    return g->note;
}

bool svi_guess_regress(const svi_guess *g) {
    return g->regress;
}

const char *svi_guess_unused(const svi_guess *g, bool taken, int *at) {
    while (g->decided && *at < g->count) {
        const struct guessed *c = &g->columns[(*at)++];
        if (taken ? c->is.use >= SVI_USE_ID : c->is.use == SVI_USE_NONE)
            return c->name;
    }
    return NULL;
}

const char *svi_guess_united(const svi_guess *g, const char **unit, int *at) {
    while (g->decided && *at < g->count) {
        const struct guessed *c = &g->columns[(*at)++];
        if (c->is.use == SVI_USE_NUMBER && c->is.measure[0]) {
            *unit = c->is.measure;
            return c->name;
        }
    }
    return NULL;
}
