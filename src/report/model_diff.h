/* model_diff.h: two linear models side by side: what one of them alone knows, and the weights that differ.
 *
 * Features are matched by their names where both have names, else by their columns; classes by their labels.
 * What a model does not know has weight 0 in it. Rows are compared where both have one for the same class
 * against the same others: regressions, the same two classes (a row with the classes exchanged counts with
 * the opposite sign), or a class that both have among three or more. */
#ifndef SVI_MODEL_DIFF_H
#define SVI_MODEL_DIFF_H

#include <stdio.h>

#include "base/bytes.h"
#include "svmstream/model.h"

struct svi_model_side {
    const char *name;       /* for people */
    struct svi_bytes bytes; /* payload of a model event: its key quality is looked for */
    svs_model *model;
};

/* The lines that begin a report of a model: version, method, task, features, C, window, seen and learned. */
void svi_model_report(const svs_model *m, FILE *to);

/* Writes the difference as a table, or with `json` as one line; `top` weights of each row at most. *same:
 * both give every row the same scores under the same labels. SVS_NO_MEMORY. */
svs_code svi_model_diff(const struct svi_model_side side[2], int64_t top, bool json, FILE *to, bool *same,
                        svs_error *err);

#endif
