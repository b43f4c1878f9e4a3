/* class_weights.h: parses the setting class.weight: none, balanced, or LABEL=WEIGHT,... */
#ifndef SVI_CLASS_WEIGHTS_H
#define SVI_CLASS_WEIGHTS_H

#include "svmstream/learner.h"

/* Most entries. A label that reads as an integer takes two of them, the integer and the string, because it is
 * not known yet which of the two producers send. */
#define SVI_CLASS_WEIGHTS_MAX 512

struct svi_class_weights {
    svs_class_rule rule;
    int count;                                  /* of entries; 0 unless the rule is SVS_CLASSES_GIVEN */
    svs_class_weight of[SVI_CLASS_WEIGHTS_MAX]; /* string labels point into the text of the setting */
};

/* Parses the setting. The last '=' of an entry ends its label (1 to SVS_NAME_MAX bytes, no comma); a weight
 * is above 0 and at most 1e100. `text` must outlive *out. SVS_SETTING: which entry is invalid, a duplicate or
 * one too many. */
svs_code svi_class_weights_read(const char *text, struct svi_class_weights *out, svs_error *err);

/* Sets factors[count] to the given weight of each class, 1 for a class without one. SVS_SETTING: an entry
 * names no class of these. */
svs_code svi_class_weights_factors(const struct svi_class_weights *w, const svs_value *classes, int count,
                                   double *factors, svs_error *err);

#endif
