/* novelty_rows.h: a file as rows for `svmstream novelty`: columns chosen, labels taken as normal or
 * anomalous, `lags` samples joined to one row. */
#ifndef SVI_NOVELTY_ROWS_H
#define SVI_NOVELTY_ROWS_H

#include "cli/table_in.h"
#include "features/model_schema.h"
#include "svmstream/novelty.h"

/* Row i ends with sample i + skipped of the file. */
struct cli_novelty_rows {
    svs_rows rows;
    int64_t skipped;           /* lags - 1 */
    int8_t *anomaly;           /* of each row, by its newest sample: 0 normal, 1 anomalous, -1 not known */
    bool *touched;             /* of each row: one of its samples is anomalous */
    const double *ts;          /* of each row, NAN where there is none; NULL = no times */
    const char *const *names;  /* of the features of one sample, NULL = none */
    int width;                 /* features of one sample */
    int64_t normal, anomalous; /* rows of either kind */
    struct svi_table table;
    struct svi_row_memory memory;   /* what it and `joined` may take */
    struct svi_model_schema schema; /* of the model */
    double *joined;                 /* rows that are not the table's own; NULL = they are */
};

/* Reads FILE with the settings label, ts, features, in.format. `model`: its columns are wanted, and its lags
 * (NULL: those of the setting `features`, or all). SVS_WRONG_DIMENSION (fewer samples than lags); codes of
 * svi_table_read. cli_novelty_clear in any case. */
svs_code cli_novelty_read(const struct cli_args *a, const char *path, const svs_novelty_model *model,
                          int lags, bool differences, struct svi_progress *progress,
                          struct cli_novelty_rows *out, svs_error *err);
void cli_novelty_clear(struct cli_novelty_rows *r);

/* Leaves out the rows with an anomalous sample. SVS_INVALID (fewer than two are left), SVS_NO_MEMORY. */
svs_code cli_novelty_keep_normal(struct cli_novelty_rows *r, svs_error *err);

/* How well the surprise orders the labelled rows, of which there are normal and anomalous ones: the area
 * under the ROC curve, ties by half, and the average precision, ties as one step. SVS_NO_MEMORY. */
svs_code cli_novelty_quality(const struct cli_novelty_rows *r, const double *surprise, double *auc,
                             double *precision);

#endif
