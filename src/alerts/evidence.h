/* evidence.h: what the detectors of a stream find in one sample, and what a detector is.
 *
 * A detector looks at each sample in its own way and reports how surprising it is, by a p-value: the
 * probability that a sample of a stream that goes on as before surprises as much. Detectors differ in what
 * they compare with (all that was, the time of day, the sample before, the other sensors) and over how many
 * samples, so that what lasts or stays within its range is found as well as what stands out.
 *
 * A detector is a row of SVI_DETECTOR_LIST and belongs to an engine, one struct svi_detector_engine in a file
 * of its own, which may serve several detectors. The rows are in the order of the states that are kept; of
 * two that are equally far above their level the earlier one leads an alert. */
#ifndef SVI_EVIDENCE_H
#define SVI_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/archive.h"
#include "svmstream/error.h"

/* constant, name in events, engine, what a line begins with that it leads (NULL: nothing of its own). */
#define SVI_DETECTOR_LIST(X)                                                                                 \
    X(ROW, "row", svi_row_detectors, NULL)                                                                   \
    X(VALUE, "value", svi_sensor_detectors, NULL)                                                            \
    X(LEVEL, "level", svi_sensor_detectors, NULL)                                                            \
    X(STEP, "step", svi_sensor_detectors, NULL)                                                              \
    X(OTHERS, "others", svi_sensor_detectors, NULL)                                                          \
    X(LASTING, "lasting", svi_row_detectors, "unusual for a while")

#define X(constant, name, engine, opening) SVI_DETECTOR_##constant,
enum svi_alert_detector { SVI_DETECTOR_LIST(X) SVI_DETECTORS };
#undef X

/* One detector's, of one sample: of the feature that surprises most. */
struct svi_evidence {
    double surprise;  /* -log10 of p, for the detector as a whole (its features are paid for); 0: nothing, or
                         not known yet */
    int feature;      /* column of the sample; -1: the row */
    int over;         /* samples that were judged together, the last ones; >= 1 */
    double value;     /* of the sample, or the mean of these */
    double expected;  /* in its context; NAN: there is no forecast */
    double low, high; /* usual in its context (5 % and 95 %), NAN: not known */
    int with;         /* the feature that its forecast owes most to; -1: none */
};

struct svi_moment;
struct svi_judgement;
struct svi_alert_fact;

/* The sample as detectors see it. */
struct svi_detector_sample {
    const double *x;                 /* its values, NAN where one is missing */
    const struct svi_moment *moment; /* when it came */
    const struct svi_judgement *row; /* what novelty makes of the row; NULL: not known yet */
};

/* What an engine is to have capacity for. */
struct svi_detector_shape {
    int columns;
    int contexts; /* columns of context that may come, 0: none */
    bool grows;   /* capacity comes as it is needed; else all is there at once */
};

/* What a line says after the value of a feature: " (0.1 to 0.3 expected there)". `range`: what is usual, ""
 * where that is not known; `dated`: times have a time of day. False: nothing but that range. */
typedef bool svi_detector_text(char *out, size_t size, const struct svi_alert_fact *fact, const char *range,
                               bool dated);

/* An engine of detectors. Its state is its own: *state is NULL until the first reserve, and may stay so. */
struct svi_detector_engine {
    enum svi_alert_detector first; /* of its detectors */
    bool of_rows;                  /* it looks at rows that novelty has judged; else at each sample, before */
    const char *kept_as;           /* the name of its size in archives ... */
    int max_size;                  /* ... which is at most that: columns, 1 where it has none */

    /* Before a sample: it has capacity for that shape, and for what the next row may bring. SVS_NO_MEMORY:
     * nothing has changed. */
    svs_code (*reserve)(void **state, const struct svi_detector_shape *shape, svs_error *err);
    bool (*is_full)(const void *state); /* the next row may need a reserve; NULL: it never does */
    int (*size)(const void *state);
    /* Judges and learns the sample. `evidence`: of all detectors, without surprise before. */
    void (*look)(void *state, const struct svi_detector_sample *sample, struct svi_evidence *evidence);
    void (*archive)(struct svi_archive *a, void *state); /* loading goes into one of the same size */
    void (*drop)(void *state);
    double (*bytes)(const struct svi_detector_shape *shape);

    /* NULL: it has no columns. A column begins anew; one belongs to a value of a category. */
    void (*forget)(void *state, int column);
    void (*set_category)(void *state, int column);
    svi_detector_text *text; /* NULL: the usual range */
};

#define X(constant, name, engine, opening) extern const struct svi_detector_engine engine;
SVI_DETECTOR_LIST(X)
#undef X

#endif
