/* owned_model.h: an svs_model that owns all it points to, for the code that makes one: svs_train, readers
 * of models. */
#ifndef SVI_OWNED_MODEL_H
#define SVI_OWNED_MODEL_H

#include "svmstream/error.h"
#include "svmstream/model.h"

struct svi_owned_model {
    svs_model model; /* first: svs_model_free takes the model's address for the owner's */
    void *text;      /* bytes that strings of the model lie in */
    double *W, *b;
    double *calibration; /* rows offsets, and a curve where there is one */
    svs_value *classes;
    const char **features;
};

/* Room for W, b and classes, which are copied from `classes` (may be NULL when there are none), and for the
 * names of `features` (NULL = none). The other keys are 0, method "". NULL: SVS_NO_MEMORY. Freed by
 * svs_model_free. */
struct svi_owned_model *svi_model_new(svs_task task, int d, int rows, const svs_value *classes,
                                      int class_count, const char *const *features, svs_error *err);

/* Gives the model room for a calibration, with a curve or without: returns `rows` offsets, and after them
 * SVS_CURVE values, to be filled. The model has it once calibration.a is above 0. NULL: SVS_NO_MEMORY. */
double *svi_model_calibrate(svs_model *owned, bool curved, svs_error *err);

/* svs_model_scores of a row that has `count` values, in ascending columns, and is 0 elsewhere: the same bits.
 * What lies beyond the model's columns is passed over. */
void svi_model_scores_sparse(const svs_model *m, const int32_t *column, const double *value, int64_t count,
                             double *scores);

/* The index of the first one of the largest. */
int svi_largest_score(int class_count, const double *scores);

/* svs_model_predict of a model with `class_count` classes. */
static inline int svi_predicted(svs_task task, int class_count, const double *scores) {
    if (task == SVS_REGRESS || class_count == 0)
        return -1;
    if (class_count < 3) /* positive = classes[1]; a score of 0 falls to classes[0], as in LIBLINEAR */
        return class_count == 2 && scores[0] > 0;
    return svi_largest_score(class_count, scores);
}

/* svi_class_index of a class that is no integer. */
int svi_class_search(const svs_value *classes, int count, svs_value y, int guess);

/* The index of a class, or -1; `guess` is looked at first. */
static inline int svi_class_index(const svs_value *classes, int count, svs_value y, int guess) {
    if (y.kind != SVS_INT)
        return svi_class_search(classes, count, y, guess);
    if (guess >= 0 && guess < count && classes[guess].kind == SVS_INT && classes[guess].as.i == y.as.i)
        return guess;
    for (int k = 0; k < count; k++)
        if (classes[k].kind == SVS_INT && classes[k].as.i == y.as.i)
            return k;
    return -1;
}

/* Bytes of the strings among the classes, and one more. */
size_t svi_classes_text(const svs_value *classes, int count);

/* Copies classes, their strings to `text` one after the other; returns the end of these. */
char *svi_classes_copy(svs_value *to, const svs_value *classes, int count, char *text);

#endif
