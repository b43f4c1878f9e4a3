/* table.h: a whole file in memory as labelled rows: what train, predict and cross-validation read.
 *
 * LIBSVM, CSV with a header, JSON lines; plain or .gz. Rows are kept once: as CSR while the file is read, and
 * turned into padded dense rows at the end when that is faster for the solvers (a density of SVI_TABLE_DENSE
 * at least). Classes are sorted (integers ascending, then strings), unless `known` fixes them. */
#ifndef SVI_TABLE_H
#define SVI_TABLE_H

#include "data/reader.h"
#include "svmstream/train.h"

#define SVI_TABLE_DENSE 0.2

struct svi_table_options {
    struct svi_reader_options reader;
    svs_task task;
    bool unlabelled;  /* rows without a label are taken (label -1, target NAN), otherwise refused */
    int max_features; /* 1 to 1,000,000 */
    int features; /* columns that there must be room for at least (a model's d); 0 = as many as the file has
                   */
    const svs_value
        *known; /* classes of a model, in its order: other labels get index -1 and are counted in `strange` */
    int known_count;          /* 0 = classes come from the file */
    const char *const *names; /* columns by name, of a model: a CSV's or JSON's columns are put into this
                                 order; NULL = file's order */
    int name_count;
    const char *fixed; /* columns by name, as in the setting `features`; NULL or "" = file's order */
    bool exact; /* `names` are all the features there are: a CSV must have them and its other columns are
                   passed over; without names there must be `features` columns (sparse rows may have fewer) */
    void (*progress)(void *user, int64_t rows, int64_t position,
                     int64_t size); /* now and then; NULL = none */
    void *user;
};

struct svi_table {
    svs_examples examples; /* points into what follows; weight is NULL when the file has none */
    int64_t strange;       /* labels that are none of `known` */
    const double *ts;      /* time stamp of each row, NAN where there is none; NULL when no row has one */
    void *owned;           /* private */
};

/* Reads all of `path` ("-" = standard input). The first bad row ends it with its line number in the text:
 * codes of the reader, SVS_BAD_LABEL (regression: not a number; a missing label), SVS_LIMIT, SVS_EMPTY (no
 * row), SVS_SETTING and SVS_WRONG_DIMENSION (`exact`), SVS_NO_MEMORY. svi_table_clear in any case. */
svs_code svi_table_read(struct svi_table *t, const char *path, const struct svi_table_options *o,
                        svs_error *err);
void svi_table_clear(struct svi_table *t);

#endif
