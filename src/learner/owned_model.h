/* owned_model.h: an svs_model that owns all it points to, for code that makes one (svs_train, readers of
 * models), and operations on scores and classes. */
#ifndef SVI_OWNED_MODEL_H
#define SVI_OWNED_MODEL_H

#include "svmstream/error.h"
#include "svmstream/model.h"

struct svi_owned_model {
    svs_model model; /* must be first: svs_model_free converts its address to the owner's */
    void *text;      /* bytes of all strings of the model */
    double *W, *b;
    double *calibration; /* `rows` offsets, then the curve if there is one */
    svs_value *classes;
    const char **features;
};

/* Allocates a model with W and b of zeros and copies of the classes (NULL: none) and of the names
 * `features` (NULL = none). Its other members are 0, method "". NULL: SVS_NO_MEMORY. Freed by svs_model_free.
 */
struct svi_owned_model *svi_model_new(svs_task task, int d, int rows, const svs_value *classes,
                                      int class_count, const char *const *features, svs_error *err);

/* Allocates a calibration for the model: returns `rows` offsets, followed by SVS_CURVE values if `curved`,
 * for the caller to fill in. It takes effect when calibration.a is above 0. NULL: SVS_NO_MEMORY. */
double *svi_model_calibrate(svs_model *owned, bool curved, svs_error *err);

/* svs_model_scores, with the same bits, for a sparse row: `count` values in ascending columns, 0 elsewhere.
 * Columns beyond those of the model are ignored. */
void svi_model_scores_sparse(const svs_model *m, const int32_t *column, const double *value, int64_t count,
                             double *scores);

/* Index of the largest score, the first of equal ones. */
int svi_largest_score(int class_count, const double *scores);

/* svs_model_predict of a model with `class_count` classes. */
static inline int svi_predicted(svs_task task, int class_count, const double *scores) {
    if (task == SVS_REGRESS || class_count == 0)
        return -1;
    if (class_count < 3) /* positive = classes[1]; a score of 0 falls to classes[0], as in LIBLINEAR */
        return class_count == 2 && scores[0] > 0;
    return svi_largest_score(class_count, scores);
}

/* svi_class_index for a class that is not an integer. */
int svi_class_search(const svs_value *classes, int count, svs_value y, int guess);

/* The index of a class, or -1. `guess` (any value) is tried first. */
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

/* Bytes of all strings among the classes, plus 1. */
size_t svi_classes_text(const svs_value *classes, int count);

/* Copies classes, and their strings one after the other to `text`; returns the end of the strings. */
char *svi_classes_copy(svs_value *to, const svs_value *classes, int count, char *text);

#endif
