/* column_guess.h: the use of each column of a text file, by the settings and otherwise guessed from its first
 * rows.
 *
 * Names and values of the first rows go in; svi_guess_decide then gives each column its use and writes one
 * line for people. What is guessed:
 *
 *  - the LABEL by its name and few different values, or numbers that call for a regression. The
 *    names are, in this order: label, class, target, y, outcome; ..._class; failure, churn and the
 *    like; status, result and the like. A name decides only when one column is clearly the best.
 *
 *    Where no name decides and the option `placed` allows it, the position does. That is the last
 *    column, else the first one, if it has exactly two words or integers in 20 rows or more. Words
 *    in the first column count only without names. Without names, words of a few classes in the
 *    last column count too.
 *
 *  - the TIME: ISO 8601 text, or other dates if all sampled values together decide the order of day
 *    and month. Numbers count if they have the size of times since 1970, mostly rise, and stand in
 *    a column with the name of a time. In CSV also a date and a time of day in two columns. Further
 *    columns of this kind are not used.
 *  - the ID: a name like id, uuid or order_id, and every value different.
 *  - a NUMBER: all values but a few are numbers. In CSV also with decimal commas, with marks
 *    between thousands, and with a unit that all share.
 *  - a WORD (a category): words, numbers with leading zeros, numbers that name things (machine_id).
 *  - not used: row numbers, text whose values nearly all differ, empty columns, and, where the
 *    whole file was seen, a column of one value. */
#ifndef SVI_COLUMN_GUESS_H
#define SVI_COLUMN_GUESS_H

#include "data/text_options.h"
#include "data/quantity.h"
#include "data/span.h"
#include "base/time_text.h"

enum svi_use {
    SVI_USE_OPEN = 0, /* a feature without a value so far: its first value decides */
    SVI_USE_NUMBER,
    SVI_USE_WORD,
    SVI_USE_LABEL,
    SVI_USE_ID,
    SVI_USE_TIME,
    SVI_USE_WEIGHT,
    SVI_USE_KEY,
    SVI_USE_NONE
};

struct svi_column_use {
    enum svi_use use;
    bool comma;                     /* its numbers are quantities (quantity.h) with a decimal comma */
    bool amount;                    /* its numbers are quantities with a decimal point */
    bool dash;                      /* label: "-" is a class, next to "+" */
    bool none;                      /* label: None is a class */
    char measure[SVI_UNIT_MAX + 1]; /* the unit that the quantities share; "" = none */
    enum svi_time_unit unit;        /* times as numbers */
    enum svi_time_order order;      /* times as text other than ISO 8601 */
    bool clock;                     /* a time of day, added to the date of another column */
};

typedef struct svi_guess svi_guess;

/* A guess without columns. `o` must outlive it. NULL: no memory. Owner: the caller. */
svi_guess *svi_guess_new(const struct svi_reader_options *o);
void svi_guess_free(svi_guess **g);

/* All columns are known before svi_guess_decide: those of the settings must be among them. `commas`: commas
 * separate cells, so an unquoted number has none. */
void svi_guess_closed(svi_guess *g, bool commas);

/* The columns are named by position only, so names are no evidence. */
void svi_guess_nameless(svi_guess *g);

/* Adds a column with a name of 1 to SVS_NAME_MAX bytes. SVS_NO_MEMORY. */
svs_code svi_guess_column(svi_guess *g, struct svi_span name, svs_error *err);

/* Renames a column; only before svi_guess_decide. */
void svi_guess_rename(svi_guess *g, int column, struct svi_span name);

/* Adds a value of the current row. The span ends as svi_number needs it (number.h). SVS_NO_MEMORY. */
svs_code svi_guess_value(svi_guess *g, int column, struct svi_span value, svs_error *err);

/* Notes an object or an array in the column. A column that has nothing else is not used unless the settings
 * say so. */
void svi_guess_nested(svi_guess *g, int column);

/* Ends the current row; svi_guess_rows counts the ended ones. */
void svi_guess_row(svi_guess *g);
int svi_guess_rows(const svi_guess *g);

/* Does the column hold mostly numbers or times so far, and is this text one too? These three ask whether the
 * first line is a row rather than a header. */
bool svi_guess_continues(const svi_guess *g, int column, struct svi_span text);

/* Does the column hold mostly words so far, this text among them? */
bool svi_guess_repeats(const svi_guess *g, int column, struct svi_span text);

/* Does the column hold mostly numbers or times so far, and is this text neither, nor missing? */
bool svi_guess_differs(const svi_guess *g, int column, struct svi_span text);

/* Decides the use of each column. `whole`: the sampled rows are the whole file. `about`: text that begins the
 * line for people, NULL = none. SVS_SETTING: a column of the settings does not exist, or would have two uses.
 */
svs_code svi_guess_decide(svi_guess *g, bool whole, const char *about, svs_error *err);

/* The use of the column, after svi_guess_decide. */
const struct svi_column_use *svi_guess_of(const svi_guess *g, int column);

/* The columns that are not used, one a call from *at = 0 on; NULL: no more. `taken`: also those of ids,
 * times, weights and keys. Valid while the guess lives. */
const char *svi_guess_unused(const svi_guess *g, bool taken, int *at);

/* The columns of numbers with a common unit, likewise; *unit is valid as long as the name. */
const char *svi_guess_united(const svi_guess *g, const char **unit, int *at);

/* How well a name fits a label: 1 best, larger numbers less so; 0 not at all. */
int svi_label_rank(const char *name);

bool svi_is_id_name(const char *name); /* plainly that of an identifier: id, uuid or guid, in any case */

/* The use that the settings give a column of this name; SVI_USE_OPEN where they do not name it. */
enum svi_use svi_use_of(const struct svi_reader_options *o, struct svi_span name);

/* The same for a column that first appears after the guess, with what the stream already knows about it. */
enum svi_use svi_guess_late(const svi_guess *g, struct svi_span name);

/* The line for people; "" before svi_guess_decide. */
const char *svi_guess_note(const svi_guess *g);

/* Does the label have many different numbers, so that a regression is called for? */
bool svi_guess_regress(const svi_guess *g);

#endif
