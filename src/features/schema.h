/* schema.h: the floor between rows and vectors: what the columns of a stream are, and how the values under
 * their names become features.
 *
 * A COLUMN has a name and holds numbers, one feature each; or words, a category: each value has a feature
 * `name=value`, which is 1 in its rows and 0 in all others; or it is ignored. What a column is follows from
 * the settings, else from its first value. A column whose first values are missing has a feature already,
 * which the first value takes over, so that features stand in the order of the columns' first sight.
 *
 * A CATEGORY has at most `categories_max` features of values; further values share `name=(other)`, or with
 * `hash` one of 2^hash, `name=#17`. A value that no held sample has gives its feature to the next new one: see
 * svi_schema_used. Values longer than fits a name are cut, and a number of the whole makes them different.
 *
 * While all columns hold numbers there is nothing here but the shape: names of columns are names of features.
 *
 * A ROW is built between svi_schema_begin_row and svi_schema_end_row. What it would change (new columns, new
 * features, features that change hands) takes effect by svi_schema_commit; svi_schema_restore takes it back. */
#ifndef SVI_SCHEMA_H
#define SVI_SCHEMA_H

#include "data/message.h"

#define SVI_SHAPE_PENDING_MAX 64 /* features that change hands in one row, at most */

struct svi_schema_options {
    int max_features;
    const char *features;                     /* as svi_shape_init; names of columns */
    const char *categories, *numbers, *ignore; /* names, separated by commas; NULL or "" = none */
    const char *unscaled;                     /* likewise */
    int categories_max;                       /* 1 at least */
    int hash;                                 /* bits, 0 = none */
    const char *calendar;                     /* "", or day and week, separated by commas */
    const char *zone;                         /* "UTC", "+01:00", "Europe/Berlin" */
    bool refuse_new;                          /* no columns but those of the first committed row */
};

enum svi_column_kind { SVI_COLUMN_OPEN = 0, SVI_COLUMN_NUMBER, SVI_COLUMN_CATEGORY, SVI_COLUMN_IGNORED };

struct svi_schema; /* begins with its shape */

#endif
