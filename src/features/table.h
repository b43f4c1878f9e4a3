/* table.h: a whole file in memory as labelled rows: what train, predict, novelty and cross-validation read.
 *
 * LIBSVM, CSV, JSON lines, VW text; plain or .gz. Columns become features by a schema (schema.h), the file's
 * own or that of a model. Rows are kept once: as CSR while the file is read, and turned into padded dense
 * rows at the end when that is faster for the solvers (a density of SVI_TABLE_DENSE at least). Classes are
 * sorted (integers ascending, then strings), unless `known` fixes them.
 *
 * MISSING VALUES are dealt with as the schema's policy says: `mean` is the mean of the values that the whole
 * file gives of that column, each row counting alike (that of the model, where the schema is a model's);
 * `carry` is the value of the row before; rows are dropped, refused, or 0 is put. */
#ifndef SVI_TABLE_H
#define SVI_TABLE_H

#include "data/reader.h"
#include "features/schema.h"
#include "svmstream/train.h"

#define SVI_TABLE_DENSE 0.2

/* What rows may take of memory, while they are read and after. */
struct svi_row_memory {
    double most;    /* bytes; 0 = no limit */
    const char *of; /* three quarters of whose memory that is ("this machine has"); NULL = an option's */
};

struct svi_table_options {
    struct svi_reader_options reader;
    const struct svi_schema_options *schema; /* what the columns are; NULL = numbers and words as they come.
                                                Its max_features and features are not looked at */
    struct svi_schema *model; /* the closed schema of a model, by which the rows go instead; NULL = none */
    const double *means;      /* of its features, NAN where it has none; NULL = none */
    svs_task task;
    bool unlabelled;   /* rows without a label are taken (label -1, target NAN), otherwise refused */
    bool keep_missing; /* a missing number stays NAN, where the policy is mean */
    bool no_means;     /* rows are for a model that knows no means: one that needs them is refused */
    int max_features;  /* 1 to 1,000,000 */
    int features; /* columns that there must be room for at least (a model's d); 0 = as many as the file has
                   */
    const svs_value
        *known; /* classes of a model, in its order: other labels get index -1 and are counted in `strange` */
    int known_count;          /* 0 = classes come from the file */
    const char *const *names; /* features by name, of a model: those of the file are put into this order; NULL
                                 = file's order */
    int name_count;
    const char *fixed; /* columns by name, as in the setting `features`; NULL or "" = file's order */
    bool exact; /* `names` are all the features there are: a CSV must have them and its other columns are
                   passed over; without names there must be `features` columns (sparse rows may have fewer) */
    struct svi_row_memory memory;
    void (*progress)(void *user, int64_t rows, int64_t position,
                     int64_t size); /* now and then; NULL = none */
    void *user;
};

struct svi_table {
    svs_examples examples; /* points into what follows; weight is NULL when the file has none; without rows
                              where they were given away */
    int64_t strange;       /* labels that are none of `known` */
    int64_t dropped;       /* rows that the policy `drop` left out */
    int64_t filled;        /* values that were missing */
    double bytes;          /* of memory that the rows take */
    bool zeros;            /* names that rows of JSON lack are 0, as `missing zero` says, or as they name few
                              of many */
    const double *ts;      /* time stamp of each row, NAN where there is none; NULL when no row has one */
    const struct svi_schema *schema; /* by which the rows went */
    const double *means;             /* by feature: of the values given; NULL when no row asked for means */
    void *owned;                     /* private */
};

/* Reads all of `path` ("-" = standard input). The first bad row ends it with its line number in the text:
 * codes of the reader and of the schema, SVS_BAD_LABEL (regression: not a number; a missing label),
 * SVS_MISSING_VALUE, SVS_WRONG_COLUMNS (a model's schema: both lists), SVS_LIMIT (columns, memory), SVS_EMPTY
 * (no row), SVS_SETTING and SVS_WRONG_DIMENSION (`exact`), SVS_NO_MEMORY. svi_table_clear in any case. */
svs_code svi_table_read(struct svi_table *t, const char *path, const struct svi_table_options *o,
                        svs_error *err);

/* Gets row i of the examples, which are valid during the call. */
typedef void svi_table_row(void *user, const svs_examples *e, int64_t i);

/* The same for the rows of a model (`known`), without `exact`: gives each row away as it is read, and keeps
 * none; the table has no rows then. Where missing values wait for the means of the file the table is kept,
 * and its rows are given when all is read. */
svs_code svi_table_each(struct svi_table *t, const char *path, const struct svi_table_options *o,
                        svi_table_row *row, void *user, svs_error *err);

/* Do rows of that many bytes fit into the memory that they may take? SVS_LIMIT: with what to do. */
svs_code svi_table_fits(struct svi_row_memory limit, double bytes, svs_error *err);
void svi_table_clear(struct svi_table *t);

#endif
