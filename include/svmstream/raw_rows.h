/* raw_rows.h: turns rows of numbers and words, given by the names of their columns, into feature vectors, as
 * the program does. A number is a feature; each value of a column of words is a feature `name=value` that is
 * 1 in its rows.
 *
 *     svs_schema *s = svs_schema_of_model(model, &err);
 *     svs_schema_begin(s, &err);
 *     svs_schema_number(s, "pressure", 2.5, &err);
 *     svs_schema_word(s, "machine", "press-03", &err);
 *     if (svs_schema_end(s, &x, &d, &err) == SVS_OK)
 *         svs_model_scores(model, x, scores);
 *
 * Use a schema from one thread at a time. Names and words are NUL-terminated UTF-8 and are copied. */
#ifndef SVMSTREAM_RAW_ROWS_H
#define SVMSTREAM_RAW_ROWS_H

#include "svmstream/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Columns and their features. */
typedef struct svs_schema svs_schema;

/* Options of a new schema. Lists of names are separated by commas; NULL or "" = none. */
typedef struct svs_schema_options {
    int max_features;       /* limit of features and of columns; 1 to 1,000,000 */
    const char *categories; /* columns of words, even if the words look like numbers */
    const char *numbers;    /* columns of numbers: a word in them is refused */
    const char *ignore;     /* columns that give no feature */
    int categories_max;     /* values of one column with a separate feature; others share `name=(other)` */
    int hash;               /* bits: the others share 2^hash features instead; 0 to 12, 0 = one */
    const char *calendar;   /* "day", "week", or both: features from svs_schema_time */
    const char *zone; /* of the calendar, NULL = UTC: "+01:00", "Europe/Berlin". Applies to the whole process:
                         the C library has only one */
} svs_schema_options;

/* 10,000 features, 100 values, nothing else. */
SVS_API void svs_schema_options_default(svs_schema_options *o);

/* Creates an empty schema. Rows append columns and features, whose numbers never change. A column whose first
 * values are missing has a feature with its name; if its first value is then a word, that feature becomes the
 * word's. NULL on failure: SVS_SETTING, SVS_NO_MEMORY. Owner: the caller. */
SVS_API svs_schema *svs_schema_new(const svs_schema_options *o, svs_error *err);

/* Creates the schema of a model: its vectors are the model's input. Rows append nothing: a word without a
 * feature in the model counts as `(other)` if the model has that, else it sets no feature. A model without a
 * stored schema has one column of numbers for each name of its features. The model may be freed before the
 * schema. NULL on failure: SVS_UNAVAILABLE (the features have no names), SVS_WRONG_TYPE, SVS_SETTING (a time
 * zone unknown on this machine), SVS_NO_MEMORY. Owner: the caller. */
SVS_API svs_schema *svs_schema_of_model(const svs_model *m, svs_error *err);

/* Frees a schema and sets *s to NULL. */
SVS_API void svs_schema_free(svs_schema **s);

/* Begins a row and drops an unfinished one. SVS_NO_MEMORY, SVS_LIMIT. */
SVS_API svs_code svs_schema_begin(svs_schema *s, svs_error *err);

/* Sets the value of a column in this row; columns may be in any order. SVS_NOT_FINITE; SVS_WRONG_TYPE (a word
 * in a column of numbers, an empty word), SVS_DUPLICATE_KEY (the column already has a value), SVS_BAD_COLUMN
 * (an invalid name or word), SVS_WRONG_COLUMNS (the model has no such column), SVS_LIMIT, SVS_NO_MEMORY.
 * After a failure the row is void: begin a new one. */
SVS_API svs_code svs_schema_number(svs_schema *s, const char *name, double value, svs_error *err);
SVS_API svs_code svs_schema_word(svs_schema *s, const char *name, const char *word, svs_error *err);

/* Marks a column as missing in this row, as if it were not named. Codes of svs_schema_number. */
SVS_API svs_code svs_schema_missing(svs_schema *s, const char *name, svs_error *err);

/* Sets the time of the current row, in seconds since 1970; required with a calendar, ignored without. */
SVS_API void svs_schema_time(svs_schema *s, double seconds);

/* Ends the row: *x receives *d values, owned by the schema and valid until the next call on it. A missing
 * number gets the value that the model puts there; NAN in a schema without a model. SVS_MISSING_VALUE (the
 * model refuses missing values), SVS_WRONG_TYPE (a calendar, but no time), SVS_LIMIT, SVS_NO_MEMORY: the row
 * is void. */
SVS_API svs_code svs_schema_end(svs_schema *s, const double **x, int *d, svs_error *err);

/* The number of features of the rows ended so far. */
SVS_API int svs_schema_dimension(const svs_schema *s);

/* The name of a feature: that of a column of numbers, `name=value` for a word, `day.sin` and the like for the
 * calendar. NULL: no such feature. */
SVS_API const char *svs_schema_feature(const svs_schema *s, int feature);

/* True when the feature belongs to a word; such features are not standardised. */
SVS_API bool svs_schema_is_word(const svs_schema *s, int feature);

#ifdef __cplusplus
}
#endif
#endif
