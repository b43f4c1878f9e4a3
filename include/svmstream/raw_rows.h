/* raw_rows.h: rows of numbers and words under the names of their columns, turned into vectors as the program
 * does: a number is a feature, each value of a column of words is a feature `name=value` that is 1 in its
 * rows.
 *
 *     svs_schema *s = svs_schema_of_model(model, &err);
 *     svs_schema_begin(s, &err);
 *     svs_schema_number(s, "pressure", 2.5, &err);
 *     svs_schema_word(s, "machine", "press-03", &err);
 *     if (svs_schema_end(s, &x, &d, &err) == SVS_OK)
 *         svs_model_scores(model, x, scores);
 *
 * A schema is of one thread at a time. Names and words are UTF-8 that ends in a NUL and are copied. */
#ifndef SVMSTREAM_RAW_ROWS_H
#define SVMSTREAM_RAW_ROWS_H

#include "svmstream/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Columns and their features. */
typedef struct svs_schema svs_schema;

/* What is known before the first row. Names are separated by commas; NULL or "" = none. */
typedef struct svs_schema_options {
    int max_features;       /* features and columns at most; 1 to 1,000,000 */
    const char *categories; /* columns that hold words, even where they look like numbers */
    const char *numbers;    /* columns that hold numbers: a word in them is refused */
    const char *ignore;     /* columns that are no features */
    int categories_max;     /* values of one column that have a feature; further ones share `name=(other)` */
    int hash;               /* bits: further ones share 2^hash features instead; 0 to 12, 0 = one */
    const char *calendar;   /* "day", "week", or both: features of svs_schema_time */
    const char *zone; /* of the calendar, NULL = UTC: "+01:00", "Europe/Berlin". It is taken for the whole
                         process: the C library knows only one */
} svs_schema_options;

/* 10,000 features, 100 values, nothing else. */
SVS_API void svs_schema_options_default(svs_schema_options *o);

/* An empty schema: columns and features come with the rows, at the end, and stay where they are. A column
 * whose first values are missing has a feature of its name; if its first value is a word, that feature is the
 * word's. NULL on failure: SVS_SETTING, SVS_NO_MEMORY. Owner: the caller. */
SVS_API svs_schema *svs_schema_new(const svs_schema_options *o, svs_error *err);

/* That of a model: its rows are what the model takes. Nothing is added: a word that the model has no feature
 * for counts as `(other)` where it has that, else as none. A model without a schema has a number under each
 * name of its features. The model may go before the schema. NULL on failure: SVS_UNAVAILABLE (the features
 * have no names), SVS_WRONG_TYPE, SVS_SETTING (a time zone that is not known here), SVS_NO_MEMORY. Owner: the
 * caller. */
SVS_API svs_schema *svs_schema_of_model(const svs_model *m, svs_error *err);

/* Frees a schema and sets *s to NULL. */
SVS_API void svs_schema_free(svs_schema **s);

/* Begins a row; what was begun before and not ended is dropped. SVS_NO_MEMORY, SVS_LIMIT. */
SVS_API svs_code svs_schema_begin(svs_schema *s, svs_error *err);

/* The value of a column in this row, in any order. SVS_NOT_FINITE; SVS_WRONG_TYPE (a word in a column of
 * numbers, an empty word), SVS_DUPLICATE_KEY (the column has its value), SVS_BAD_COLUMN (a name or word that
 * cannot be one), SVS_WRONG_COLUMNS (the model has no such column), SVS_LIMIT, SVS_NO_MEMORY. The row is void
 * then: begin again. */
SVS_API svs_code svs_schema_number(svs_schema *s, const char *name, double value, svs_error *err);
SVS_API svs_code svs_schema_word(svs_schema *s, const char *name, const char *word, svs_error *err);

/* The column has no value in this row, as if it were not named. Codes of svs_schema_number. */
SVS_API svs_code svs_schema_missing(svs_schema *s, const char *name, svs_error *err);

/* When the row that was begun was, in seconds since 1970; needed where there is a calendar, else of no
 * effect. */
SVS_API void svs_schema_time(svs_schema *s, double seconds);

/* Ends the row: *x has *d values, of the schema's until the next call on it. Of a number that is missing it
 * is what the model puts there; NAN in a schema that is no model's. SVS_MISSING_VALUE (the model puts nothing
 * there), SVS_WRONG_TYPE (no time, and there is a calendar), SVS_LIMIT, SVS_NO_MEMORY: the row is void. */
SVS_API svs_code svs_schema_end(svs_schema *s, const double **x, int *d, svs_error *err);

/* Features of the rows that were ended. */
SVS_API int svs_schema_dimension(const svs_schema *s);

/* The name of a feature: of a column of numbers, `name=value` of a word, `day.sin` and the like of the
 * calendar. NULL: there is no such feature. */
SVS_API const char *svs_schema_feature(const svs_schema *s, int feature);

/* Is the feature one of a word's, which is not standardised? */
SVS_API bool svs_schema_is_word(const svs_schema *s, int feature);

#ifdef __cplusplus
}
#endif
#endif
