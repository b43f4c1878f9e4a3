/* schema_internal.h: the structure of a schema; schema.h describes its behaviour. */
#ifndef SVI_SCHEMA_INTERNAL_H
#define SVI_SCHEMA_INTERNAL_H

#include "data/message.h"
#include "features/units.h"

struct svi_schema_options {
    int max_features;
    const char *features;                      /* names of columns, as svi_shape_init */
    const char *categories, *numbers, *ignore; /* comma-separated names of columns; NULL or "" = none */
    const char *unscaled;                      /* likewise */
    int categories_max;                        /* features of values a column, 1 or more */
    int hash;                          /* bits of the buckets for further values, 0 to 20; 0 = one (other) */
    const char *calendar;              /* NULL or "", or day and week, separated by a comma */
    const char *zone;                  /* NULL: UTC; see calendar.h */
    bool refuse_new;                   /* no further columns after the first accepted row */
    enum svi_missing missing;          /* the setting `missing` */
    struct svi_shape_scratch *scratch; /* shared row of max_features columns; NULL: the schema owns one */
    struct svi_units *units;           /* where units of columns are kept; NULL: nowhere */
    int64_t held_rows;                 /* a feature may change hands after this many rows without its value */
};

enum svi_column_kind { SVI_COLUMN_OPEN = 0, SVI_COLUMN_NUMBER, SVI_COLUMN_CATEGORY, SVI_COLUMN_IGNORED };

/* The state of a column that a row may change, so that it can be undone. */
struct svi_column_state {
    enum svi_column_kind kind;
    int32_t feature; /* number, open: its feature, -1 = none yet; category: -1, or the feature from before its
                        first word */
    int32_t values;  /* category: number of values with a feature */
};

struct svi_column {
    struct svi_column_state now, kept;
    int32_t *value; /* category: the features of its values; owned, NULL = none yet */
    int capacity;   /* of value */
};

/* How many samples have ever entered the window and the queue of those that wait for labels, and the number
 * of the oldest one still in it; the latter stays 0 where nothing leaves. */
struct svi_held {
    int64_t window, window_oldest, waiting, waiting_oldest;
};

struct svi_handover {
    int32_t feature;
    char *before; /* its former name; owned */
    uint8_t one_hot;
};

struct svi_schema {
    struct svi_shape shape;
    struct svi_schema_options o;                             /* its texts are set to NULL after set-up */
    svs_features *categories, *numbers, *ignored, *unscaled; /* names of the settings; NULL = none; owned */
    bool calendar_day, calendar_week;
    char zone[SVS_NAME_MAX + 1]; /* of the calendar; "" = UTC */
    int calendar;                /* the first feature of the calendar, -1 = none yet */
    int calendar_kept;

    /* Only of a mixed stream; NULL before. */
    svs_features *columns;
    struct svi_column *column; /* by column; capacity max_features */
    int columns_kept;          /* columns of accepted samples; those after it belong to the current row */
    int32_t *owner;            /* by feature: its column, -1 = the calendar */
    uint8_t *one_hot;          /* by feature: not 0 = a category's value */
    int64_t *seen[3];          /* by feature: the counts of (window, waiting, rows) when it was last 1 */
    int64_t *missing;          /* by column: values missing in accepted rows; NULL = none so far */
    int32_t *absent;           /* categories without a value in this row */
    int absent_count;
    bool dirty;  /* the row changed something that must be committed or undone */
    bool closed; /* of a model (model_schema.h): columns, features and values stay unchanged; a new column is
                    refused, a new value is one of the shared ones, or no feature */
    bool mixed_now;          /* the current row made the stream mixed */
    uint64_t changes_before; /* changes of registries that were replaced by others */
    int32_t *hot;            /* features of values in the current row */
    int hot_count;
    struct svi_handover *renewed; /* features that are moved in the current row; owned */
    int renewed_count;
    int64_t renewed_capacity;
    /* The columns of listed cells, looked up once because the list stays the same in each row. */
    const struct svi_cell *list;
    const char *list_name; /* of the first cell at the lookup: tells apart lists at the same address */
    int list_count;
    uint64_t list_changes;
    bool list_known;      /* every cell has a column */
    int32_t *list_column; /* owned; NULL = none yet */
    /* The features that the current row has set, for callers whose rows name few of many columns: only those
     * are cleared before the next row. NULL: nobody asked. */
    int32_t *set;
    int set_count;
    bool all_set;    /* the row may have set anything: clear all of it */
    bool named_only; /* columns that a row does not name stay unset under every policy: the caller recognises
                        them by `set` */
    struct svi_held held; /* set by the caller after each sample */
    int64_t rows;         /* rows accepted */
};

#endif
