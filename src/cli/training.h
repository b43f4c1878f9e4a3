/* training.h: the options of `svmstream train`, read and checked before a file is opened. */
#ifndef SVI_CLI_TRAINING_H
#define SVI_CLI_TRAINING_H

#include "cli/command.h"
#include "svmstream/train.h"
#include "wire/model_file.h"

struct cli_training {
    const struct cli_args *a;
    svs_train_options train;      /* class_weight still NULL: labels are known only when the file was read */
    enum svi_model_format format; /* of the model */
    int64_t folds;                /* 0 = no cross-validation asked for */
    bool search;                  /* a search for C, doubled from `from` to `to` */
    double from, to;
};

/* CLI_OK, or CLI_USAGE after saying on stderr what is wrong. */
int cli_training(const struct cli_args *a, struct cli_training *t);

/* The factors of --weights, one for each class of the examples, to be freed with svi_free in any case; *out
 * is left alone without that option. SVS_INVALID (a label that the examples do not have), SVS_NO_MEMORY. */
svs_code cli_class_weights(const struct cli_args *a, const svs_examples *e, double **out, svs_error *err);

#endif
