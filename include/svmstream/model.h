/* model.h: a linear model in the units of the raw input, as published on the `model.` topic.
 *
 *     score_k = W_k x + b_k
 *
 * Binary problems have one row, positive = classes[1]; with three classes or more row k is "class k against
 * the rest"; regression has one row. A model can score without the process that learned it. */
#ifndef SVMSTREAM_MODEL_H
#define SVMSTREAM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "svmstream/value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum svs_task { SVS_CLASSIFY = 0, SVS_REGRESS } svs_task;

#define SVS_CURVE 17 /* values of a calibration's curve */

/* The map from scores to probabilities (svs_model_probabilities). a = 0: the model has none. */
typedef struct svs_calibration {
    double a;            /* > 0 */
    const double *b;     /* `rows` offsets */
    const double *curve; /* SVS_CURVE ascending values; NULL = a straight line */
} svs_calibration;

typedef struct svs_model {
    uint64_t version;   /* counts every change of the weights */
    const char *method; /* "alsvm", "falsvm", ...; static or owned by the model */
    svs_task task;
    int d;                       /* features */
    int rows;                    /* of W: 1, or the number of classes when that is 3 or more */
    int class_count;             /* 0 for regression */
    const double *W;             /* rows x d, row-major, raw input units */
    const double *b;             /* rows */
    const svs_value *classes;    /* class_count, in order of first appearance; SVS_INT or SVS_STR */
    const char *const *features; /* d names, or NULL */
    double C;                    /* penalty */
    int64_t window;              /* samples; 0 = none */
    int64_t seen;                /* samples accepted and scored */
    int64_t learned;             /* samples added so far */
    bool serves;                 /* the stream publishes this model's scores */
    bool elsewhere;   /* with `serves`: a bank of learners (method auto) gives the published scores, which
                         differ from those of these weights. Key `reproduces` is serves and not this */
    bool refit;       /* a batch solution of the window: the next five members are set */
    double objective; /* summed over the rows */
    double gap;       /* of the certificate, summed over the rows */
    int64_t iterations;
    double milliseconds; /* of the solver */
    int64_t at;          /* number (from 1) of the sample after which it took effect */
    const void *schema;  /* the map from columns of raw rows to features, as msgpack, for raw_rows.h; NULL =
                            the columns are the features */
    size_t schema_size;  /* bytes */
    svs_calibration calibration;
} svs_model;

/* scores[k] = W_k x + b_k; x: d raw values. */
SVS_API void svs_model_scores(const svs_model *m, const double *x, double *scores);

/* The index of the predicted class for the given scores; -1 when no class is known yet or the task is
 * regression. */
SVS_API int svs_model_predict(const svs_model *m, const double *scores);

/* proba[k] = the probability of class k for the given scores; class_count values, each in (0, 1). With z_k
 * the curve at a s_k + b_k (protocol page of the manual): 1 / (1 + exp(-z)) for the second of two classes;
 * for more classes, exp(z_k) over their sum. False: the model has no calibration, and proba is unchanged. */
SVS_API bool svs_model_probabilities(const svs_model *m, const double *scores, double *proba);

/* Reads the payload of a `model.` event (msgpack). NULL on failure: SVS_EMPTY, SVS_NOT_MSGPACK,
 * SVS_TRUNCATED, SVS_TRAILING, SVS_TOO_DEEP, SVS_WRONG_TYPE (also a missing key, or sizes that contradict
 * each other), SVS_DUPLICATE_KEY, SVS_NOT_FINITE, SVS_LIMIT, SVS_NO_MEMORY. The model owns all its arrays.
 * Owner: the caller. */
SVS_API svs_model *svs_model_decode(const void *payload, size_t length, svs_error *err);

/* Frees a model from svs_model_decode and sets *m to NULL. */
SVS_API void svs_model_free(svs_model **m);

/* Writes the model as one line of JSON (W an array of rows, b a number for one row), or as a LIBLINEAR model
 * file. A LIBLINEAR file has bias 1. The labels of two classes are in LIBLINEAR's order, the positive one
 * first, and a regression is L2R_L2LOSS_SVR. SVS_IO, SVS_NO_MEMORY; SVS_UNAVAILABLE when LIBLINEAR's format
 * cannot hold the model (labels that are not 32-bit integers, no class known yet). */
SVS_API svs_code svs_model_write_json(const svs_model *m, FILE *to, svs_error *err);
SVS_API svs_code svs_model_write_liblinear(const svs_model *m, FILE *to, svs_error *err);

#ifdef __cplusplus
}
#endif
#endif
