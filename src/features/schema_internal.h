/* schema_internal.h: what a schema consists of; schema.h says what it is. */
#ifndef SVI_SCHEMA_INTERNAL_H
#define SVI_SCHEMA_INTERNAL_H

#include "data/message.h"
#include "features/units.h"

struct svi_schema_options {
    int max_features;
    const char *features;                      /* as svi_shape_init; names of columns */
    const char *categories, *numbers, *ignore; /* names, separated by commas; NULL or "" = none */
    const char *unscaled;                      /* likewise */
    int categories_max;                        /* 1 at least */
    int hash;                                  /* bits, 0 to 20; 0 = none */
    const char *calendar;                      /* NULL or "", or day and week, separated by a comma */
    const char *zone;                          /* NULL: UTC; see calendar.h */
    bool refuse_new;                           /* once a row was taken, no further columns */
    enum svi_missing missing;                  /* the setting */
    struct svi_shape_scratch
        *scratch;            /* of max_features columns, for the row in hand; NULL: one of its own */
    struct svi_units *units; /* of the columns; NULL: none are kept */
    int64_t held_rows; /* a feature changes hands after at least this number of rows without its value */
};

enum svi_column_kind { SVI_COLUMN_OPEN = 0, SVI_COLUMN_NUMBER, SVI_COLUMN_CATEGORY, SVI_COLUMN_IGNORED };

/* What may change in a row of a column. */
struct svi_column_state {
    enum svi_column_kind kind;
    int32_t feature; /* number, open: its feature; -1 = none yet, or a category */
    int32_t values;  /* category: values that have a feature */
};

struct svi_column {
    struct svi_column_state now, kept;
    int32_t *value; /* category: their features; owned, NULL = none yet */
    int capacity;   /* of these */
};

/* How many samples have entered what holds samples, and the number of the oldest that is held; the latter is
 * 0 for ever where nothing leaves. */
struct svi_held {
    int64_t window, window_oldest, waiting, waiting_oldest;
};

struct svi_handover {
    int32_t feature;
    char *before; /* its name; owned */
    uint8_t one_hot;
};

struct svi_schema {
    struct svi_shape shape;
    struct svi_schema_options o;                             /* its texts are not kept: NULL */
    svs_features *categories, *numbers, *ignored, *unscaled; /* names of the settings; NULL = none */
    bool calendar_day, calendar_week;
    char zone[SVS_NAME_MAX + 1]; /* of the calendar; "" = UTC */
    int calendar;                /* the first feature of the calendar, -1 = none yet */
    int calendar_kept;

    /* Of a mixed stream; NULL before. */
    svs_features *columns;
    struct svi_column *column; /* room for max_features */
    int columns_kept;          /* names of accepted samples */
    int32_t *owner;            /* by feature: its column, -1 = the calendar */
    uint8_t *one_hot;          /* by feature: not 0 = of a category's value */
    int64_t *seen[3]; /* by feature: how many had entered (window, waiting, rows) when it was last 1 */
    int64_t *missing; /* by column: values that were missing in accepted rows; NULL = none was */
    int32_t *absent;  /* columns of words that have no value in this row */
    int absent_count;
    bool dirty;  /* something to be kept or taken back */
    bool closed; /* of a model (model_schema.h): columns, features and values stay as they are. A new column
                    is refused, a new value is one of the shared ones, or none */
    bool mixed_now;          /* it is a mixed stream by the present row alone */
    uint64_t changes_before; /* of names and columns that have given way to others */
    int32_t *hot;            /* features of values of the present row */
    int hot_count;
    struct svi_handover *renewed; /* features that change hands in the present row */
    int renewed_count;
    int64_t renewed_room;
    /* The columns of listed cells, which stay the same in each row: found once. */
    const struct svi_cell *list;
    const char *list_name; /* of the first cell, when they were found */
    int list_count;
    uint64_t list_changes;
    bool list_known;      /* each of them is a column */
    int32_t *list_column; /* owned; NULL = none yet */
    /* What the row in hand has set, for who reads rows of names that name few of many columns: then only that
     * is cleared before the next one. NULL: nobody asked. */
    int32_t *set;
    int set_count;
    bool all_set;    /* the row may hold anything */
    bool named_only; /* a column that a row does not name stays unset, whatever is missing then: who reads
                        such rows knows it by what they set */
    struct svi_held held; /* the caller's to set after each sample */
    int64_t rows;         /* accepted */
};

#endif
