/* column_guess.h: what the columns of a text file are, by the settings and else guessed from the first rows.
 *
 * Names and values of the first rows go in; svi_guess_decide then gives each column its use, and all of it
 * one line for a person. What is guessed:
 *
 *  - the LABEL by its name (label, class, target, y, outcome; then ..._class; then failure, churn and the
 * like; then status, result and the like) and few different values, or numbers that call for a regression;
 * only when one column is clearly the best. Where no name tells it and the option `placed` allows it: the
 * last column, else the first one, if it is of exactly two words or integers in 20 rows or more (words in the
 * first one only without names); without names also words of a few classes in the last one
 *  - the TIME: ISO 8601 text, other dates, whose order of day and month the whole sample tells, or numbers of
 * the size of times since 1970 that mostly rise in a column that is named like one; in CSV also a date and a
 * time of day in two columns; further such columns are not used
 *  - the ID: named like one (id, uuid, order_id), every value a different one
 *  - a NUMBER: all values but a few; in CSV also with decimal commas, with marks between thousands, and with
 * a unit that all share
 *  - a WORD (a category): words, numbers with leading zeros, numbers that name things (machine_id)
 *  - not used: row numbers, text whose values nearly all differ, empty columns, and a column of one value
 * where the whole file was seen. */
#ifndef SVI_COLUMN_GUESS_H
#define SVI_COLUMN_GUESS_H

#include "data/text_options.h"
#include "data/quantity.h"
#include "data/span.h"
#include "base/time_text.h"

enum svi_use {
    SVI_USE_OPEN = 0, /* a feature that had no value yet: what comes first tells */
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
    bool comma;                     /* numbers are quantities (quantity.h) with a decimal comma */
    bool amount;                    /* they are quantities with a decimal point */
    bool dash;                      /* of a label: "-" is a class, with "+" for the other one */
    bool none;                      /* of a label: None is a class */
    char measure[SVI_UNIT_MAX + 1]; /* the unit that the quantities share; "" = none */
    enum svi_time_unit unit;        /* of a time in numbers */
    enum svi_time_order order;      /* of a time in text that is not ISO 8601 */
    bool clock;                     /* a time: that of the day, which belongs to the date of another column */
};

typedef struct svi_guess svi_guess;

/* Options must outlive it. NULL: no memory. Owner: the caller. */
svi_guess *svi_guess_new(const struct svi_reader_options *o);
void svi_guess_free(svi_guess **g);

/* All columns are known when it decides: those of the settings must be among them. Commas: they part cells,
 * so they are in no number. */
void svi_guess_closed(svi_guess *g, bool commas);

/* The columns have no names but their places, which tell nothing. */
void svi_guess_nameless(svi_guess *g);

/* The next column, of 1 to SVS_NAME_MAX bytes. SVS_NO_MEMORY. */
svs_code svi_guess_column(svi_guess *g, struct svi_span name, svs_error *err);

/* A column gets another name, before it decides. */
void svi_guess_rename(svi_guess *g, int column, struct svi_span name);

/* One value, which stands as text that can be read as a number is (number.h). SVS_NO_MEMORY. */
svs_code svi_guess_value(svi_guess *g, int column, struct svi_span value, svs_error *err);

/* The column has a value that is no single one (an object, an array): it is not used unless the settings say
 * so. */
void svi_guess_nested(svi_guess *g, int column);

/* The end of a row. */
void svi_guess_row(svi_guess *g);
int svi_guess_rows(const svi_guess *g);

/* Has the column mostly numbers or times so far, and is this text one? For the question whether the first
 * line is a header. */
bool svi_guess_continues(const svi_guess *g, int column, struct svi_span text);

/* Does the column have mostly words so far, this one among them? */
bool svi_guess_repeats(const svi_guess *g, int column, struct svi_span text);

/* Does the column have mostly numbers or times so far, and is this text none? */
bool svi_guess_differs(const svi_guess *g, int column, struct svi_span text);

/* `whole`: the rows were all there are. `about`: what else the line shall say, NULL = nothing. SVS_SETTING: a
 * column of the settings is not there, or would be two things at once. */
svs_code svi_guess_decide(svi_guess *g, bool whole, const char *about, svs_error *err);

/* After that: the column's use. */
const struct svi_column_use *svi_guess_of(const svi_guess *g, int column);

/* The columns that are not used, one a call from *at = 0 on; NULL: no more. `taken`: those of ids, times and
 * weights, too. Valid while the guess is. */
const char *svi_guess_unused(const svi_guess *g, bool taken, int *at);

/* The columns of numbers that share a unit, likewise; *unit is valid as the name is. */
const char *svi_guess_united(const svi_guess *g, const char **unit, int *at);

/* How much a name is that of a label: 1 most, 0 not at all. */
int svi_label_rank(const char *name);

/* What the settings say of a column, by its name. */
enum svi_use svi_use_of(const struct svi_reader_options *o, struct svi_span name);

/* The same of a column that comes later, and what the stream has already. */
enum svi_use svi_guess_late(const svi_guess *g, struct svi_span name);

/* The line for a person; "" before it was decided. */
const char *svi_guess_note(const svi_guess *g);

/* Is the label's column one of many different numbers? */
bool svi_guess_regress(const svi_guess *g);

#endif
