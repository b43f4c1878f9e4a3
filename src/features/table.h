/* table.h: a whole file in memory as labelled rows: the input of train, predict, novelty and
 * cross-validation.
 *
 * LIBSVM, CSV, JSON lines, VW text; plain or .gz. Columns become features by a schema (schema.h),
 * the file's own or that of a model. Rows are stored once, as CSR while the file is read. At the
 * end they are converted to padded dense rows where that is faster for the solvers (a density of at
 * least SVI_TABLE_DENSE). Classes are sorted (integers ascending, then strings), unless `known`
 * fixes them.
 *
 * MISSING VALUES follow the schema's policy. `mean` is the mean of the values that the whole file
 * gives in that column, each row counting alike. It is the model's mean where the schema is a
 * model's. `carry` is the value of the row before. Otherwise rows are dropped or refused, or the
 * value is 0. */
#ifndef SVI_TABLE_H
#define SVI_TABLE_H

#include "data/reader.h"
#include "features/schema.h"
#include "svmstream/train.h"

#define SVI_TABLE_DENSE 0.2

/* The limit of the memory of rows, while they are read and after. */
struct svi_row_memory {
    double most;    /* bytes; 0 = no limit */
    const char *of; /* "this machine has": its three quarters; NULL = by an option */
};

struct svi_table_options {
    struct svi_reader_options reader;
    const struct svi_schema_options *schema; /* options of the file's schema; NULL = numbers and words as they
                                                appear. Its max_features and features are not used */
    struct svi_schema *model;                /* the closed schema of a model, used instead; NULL = none */
    const double *means;                     /* of the model's features, NAN where it has none; NULL = none */
    svs_task task;
    bool unlabelled;          /* rows without a label are accepted (label -1, target NAN), else refused */
    bool keep_missing;        /* under the policy mean, missing numbers stay NAN */
    bool no_means;            /* the rows are for a model without means: a row that needs one is refused */
    int max_features;         /* 1 to 1,000,000 */
    int features;             /* minimum number of columns (a model's d); 0 = those of the file */
    const svs_value *known;   /* classes of a model: other labels get index -1, counted in `strange` */
    int known_count;          /* 0 = the classes are those of the file */
    const char *const *names; /* names of a model's features: those of the file are put into this order; NULL
                                 = the file's order */
    int name_count;
    const char *fixed; /* names of columns, as in the setting `features`; NULL or "" = the file's order */
    bool exact; /* `names` are all features: a CSV must have them, and its other columns are ignored; without
                   names the file must have `features` columns (sparse rows may have fewer) */
    struct svi_row_memory memory;
    void (*progress)(void *user, int64_t rows, int64_t position,
                     int64_t size); /* every few thousand rows; NULL = no reports */
    void *user;
};

struct svi_table {
    svs_examples examples; /* views of what this owns; weight is NULL when the file has none; no rows where
                              they were given away */
    int64_t strange;       /* labels that are not among `known` */
    int64_t dropped;       /* rows left out by the policy drop */
    int64_t filled;        /* missing values that were replaced or kept as NAN */
    double bytes;          /* memory of the rows */
    bool zeros; /* names that a row of JSON lacks are 0: by `missing zero`, or because rows name few of many
                   columns */
    const double *ts; /* time of each row in seconds since 1970, NAN = none; NULL when no row has one */
    const struct svi_schema *schema; /* the schema of the rows */
    const double *means; /* by feature: means of the values given; NULL when no row asked for means */
    void *owned;         /* private */
};

/* Reads all of `path` ("-" = standard input). The first bad row ends it, with its line number in the text.
 * Codes of the reader and the schema; SVS_BAD_LABEL (regression: not a number; a missing label),
 * SVS_MISSING_VALUE, SVS_WRONG_COLUMNS (a model's schema: both lists), SVS_LIMIT (columns, memory), SVS_EMPTY
 * (no row), SVS_SETTING and SVS_WRONG_DIMENSION (`exact`), SVS_NO_MEMORY. Call svi_table_clear in any case.
 */
svs_code svi_table_read(struct svi_table *t, const char *path, const struct svi_table_options *o,
                        svs_error *err);

/* Receives row i of the examples, which are valid during the call. */
typedef void svi_table_row(void *user, const svs_examples *e, int64_t i);

/* The same for the rows of a model (`known`), without `exact`: hands each row over as it is read and keeps
 * none. Only where missing values wait for the means of the file are all rows kept, and handed over at the
 * end. */
svs_code svi_table_each(struct svi_table *t, const char *path, const struct svi_table_options *o,
                        svi_table_row *row, void *user, svs_error *err);

/* Do rows of `bytes` bytes fit the limit? SVS_LIMIT, with advice. */
svs_code svi_table_fits(struct svi_row_memory limit, double bytes, svs_error *err);
void svi_table_clear(struct svi_table *t);

#endif
