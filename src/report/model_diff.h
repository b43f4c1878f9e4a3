/* model_diff.h: compares two linear models: what only one of them has, and the weights that differ.
 *
 * Features are matched by name if both models have names, otherwise by column; classes by label.
 * What a model does not have counts with weight 0. Rows are compared if both models have one for
 * the same class against the same others. Regressions always have. Models of the same two classes
 * have, and a row with the classes swapped counts with the opposite sign. Among three or more, a
 * class common to both counts. */
#ifndef SVI_MODEL_DIFF_H
#define SVI_MODEL_DIFF_H

#include <stdio.h>

#include "base/bytes.h"
#include "svmstream/model.h"

struct svi_model_side {
    const char *name;       /* name in the output */
    struct svi_bytes bytes; /* payload of a model event, whose key `quality` is used; may be empty */
    svs_model *model;
};

/* Prints the first lines of a report of a model: version, method, task, features, C, window, seen and
 * learned. */
void svi_model_report(const svs_model *m, FILE *to);

/* Writes the difference as a table, or with `json` as one line; at most `top` weights of each row. *same:
 * both models give every sample the same scores under the same labels. SVS_NO_MEMORY. */
svs_code svi_model_diff(const struct svi_model_side side[2], int64_t top, bool json, FILE *to, bool *same,
                        svs_error *err);

#endif
