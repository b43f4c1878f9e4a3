/* novelty.h: what the verbs of `svmstream novelty` share: train, score, show. */
#ifndef SVI_CLI_NOVELTY_H
#define SVI_CLI_NOVELTY_H

#include "cli/command.h"
#include "cli/progress.h"
#include "data/table.h"
#include "svmstream/novelty.h"

/* The rows of a file, `lags` samples joined to one: row i ends with sample i + skipped of the file. */
struct cli_novelty_rows {
    svs_rows rows;
    int64_t skipped;           /* lags - 1 */
    const int8_t *anomaly;     /* of each row, by its newest sample: 0 normal, 1 anomalous, -1 not known */
    const bool *touched;       /* of each row: one of its samples is anomalous */
    const double *ts;          /* of each row, NAN where there is none; NULL = no times */
    const char *const *names;  /* of the features of one sample, NULL = none */
    int width;                 /* features of one sample */
    int64_t normal, anomalous; /* rows of either kind */
    struct svi_table table;
    double *joined;
    int8_t *own_anomaly;
    bool *own_touched;
    const char **wanted; /* names of the setting `features` */
    char *wanted_text;
    int wanted_count;
};

/* Reads FILE with the settings label, ts, features, in.format. `model`: its columns are wanted, and its lags
 * (NULL: those of the setting `features`, or all). SVS_WRONG_DIMENSION (fewer samples than lags); codes of
 * svi_table_read. cli_novelty_clear in any case. */
svs_code cli_novelty_read(const struct cli_args *a, const char *path, const svs_novelty_model *model,
                          int lags, bool differences, struct cli_progress *progress, struct cli_novelty_rows *out,
                          svs_error *err);
void cli_novelty_clear(struct cli_novelty_rows *r);

/* The options of train from settings and flags, checked before a file is read: CLI_OK, or CLI_USAGE after
 * saying on stderr what is wrong. */
int cli_novelty_options(const struct cli_args *a, svs_novelty_options *o);

/* How well the surprise orders the labelled rows, of which there are normal and anomalous ones: the area
 * under the ROC curve, ties by half, and the average precision, ties as one step. SVS_NO_MEMORY. */
svs_code cli_novelty_quality(const struct cli_novelty_rows *r, const double *surprise, double *auc,
                             double *precision);

/* Draws the feed (its first features), the novelty of its rows, the threshold and the rows above it with
 * gnuplot into PATH, an SVG or PNG by its ending. SVS_UNAVAILABLE (no gnuplot), SVS_IO. */
svs_code cli_novelty_plot(const char *path, const struct cli_novelty_rows *r, const double *novelty,
                          double threshold, svs_error *err);
bool cli_novelty_plots(const char *path); /* does the ending tell a format? */

/* The verbs: exit codes. */
int cli_novelty_train(const struct cli_args *a);
int cli_novelty_score(const struct cli_args *a);
int cli_novelty_show(const struct cli_args *a);

/* A line for each member: its figures and its certificate. */
void cli_novelty_members(const svs_novelty_model *m, FILE *to);

const char *cli_novelty_kernel(svs_novelty_kernel kernel); /* "rbf" */

#endif
