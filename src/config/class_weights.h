/* class_weights.h: the setting class.weight, read: none, balanced, or LABEL=WEIGHT,... */
#ifndef SVI_CLASS_WEIGHTS_H
#define SVI_CLASS_WEIGHTS_H

#include "svmstream/learner.h"

/* Entries at most; a label that reads as an integer stands for two: the integer and the string. */
#define SVI_CLASS_WEIGHTS_MAX 512

struct svi_class_weights {
    svs_class_rule rule;
    int count;                                  /* given */
    svs_class_weight of[SVI_CLASS_WEIGHTS_MAX]; /* labels that are strings point into the text */
};

/* The last '=' of an entry ends its label, of 1 to SVS_NAME_MAX bytes without a comma; a weight is above 0
 * and at most 1e100. SVS_SETTING: which entry is not one, comes twice,
 * or is one too many. */
svs_code svi_class_weights_read(const char *text, struct svi_class_weights *out, svs_error *err);

/* Given weights as one factor for each of `count` classes, 1 for those without one. SVS_SETTING: a label that
 * is none of them. */
svs_code svi_class_weights_factors(const struct svi_class_weights *w, const svs_value *classes, int count,
                                   double *factors, svs_error *err);

#endif
