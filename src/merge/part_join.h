/* part_join.h: the features, columns and classes of a union of parts, by name.
 *
 * Parts are added one after another. A feature has the place of its first appearance, and so has a class and
 * a column. A part that contradicts those before it adds nothing: a column of numbers here that is a category
 * there, another calendar, more features than allowed. */
#ifndef SVI_PART_JOIN_H
#define SVI_PART_JOIN_H

#include "features/model_schema.h"
#include "merge/part.h"
#include "svmstream/features.h"

struct svi_join_column {
    enum svi_column_kind kind;
};

/* Of the last group. Begin with svi_join_begin. */
struct svi_join {
    int max_features, max_classes;
    bool named;                     /* features have names */
    int d;                          /* features so far */
    int classes;                    /* classes so far */
    svs_features *names;            /* of the features; NULL: none */
    svs_features *columns;          /* names of the columns */
    struct svi_join_column *column; /* [count of columns] */
    int32_t *owner;                 /* [max_features] column of each feature; -1 = the calendar, -2 = none */
    bool *exempt;                   /* [max_features] not standardised */
    double *mean, *rows; /* [max_features] sums of the parts' means times their samples, and of these */
    svs_value *label;    /* [max_classes] classes; their text belongs to the parts' records */
    bool mixed;          /* a part has a schema: so has the union */
    int missing, hash;   /* of the first part that has a schema */
    bool day, week;      /* the calendar of the first part; none: both false */
    char zone[SVS_NAME_MAX + 1];
    int calendar; /* its first feature, -1 = none */
    bool begun;   /* a part has been added */
};

/* Begins an empty union. SVS_NO_MEMORY. svi_join_clear in any case. */
svs_code svi_join_begin(struct svi_join *j, bool named, int max_features, int max_classes, svs_error *err);
void svi_join_clear(struct svi_join *j);

/* Adds a part and sets its `feature` and `label`. SVS_WRONG_COLUMNS, SVS_LIMIT and codes of
 * svi_schema_decode: nothing was added; SVS_NO_MEMORY: the union cannot be used. */
svs_code svi_join_add(struct svi_join *j, struct svi_part *p, svs_error *err);

/* Why part `p` does not belong to the parts that are like `lead`: task, kind of rows, names of dense columns.
 * Always fails, with both lists where names differ. */
svs_code svi_join_refuse(const struct svi_part *p, const struct svi_part *lead, svs_error *err);

/* Appends the schema of the union, if it has one. SVS_NO_MEMORY and others of svi_model_schema_init. */
svs_code svi_join_schema(const struct svi_join *j, struct svi_bytes *out, svs_error *err);

/* The names of the features, [d], in an array that the caller frees; NULL: they have none, or no memory. */
const char **svi_join_feature_names(const struct svi_join *j);

#endif
