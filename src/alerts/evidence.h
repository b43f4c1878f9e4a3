/* evidence.h: detectors, and the evidence that they find in one sample.
 *
 * A detector assesses each sample in its own way and reports how surprising it is, by a p-value: the
 * probability that a sample of an unchanged stream is as surprising. Detectors differ in what they compare
 * with (all past values, the time of day, the sample before, the other sensors) and in the number of samples.
 * Together they find values that stand out as well as deviations that persist or stay within the normal
 * range.
 *
 * A detector is a row of SVI_DETECTOR_LIST. It belongs to an engine, a struct svi_detector_engine in a
 * separate file, which may serve several detectors. The order of the rows is the order of archived states; of
 * two detectors equally far above their level, the earlier one leads an alert. */
#ifndef SVI_EVIDENCE_H
#define SVI_EVIDENCE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/archive.h"
#include "svmstream/error.h"

/* Constant, name in events, engine, adjective in the lines that it leads (NULL: none). */
#define SVI_DETECTOR_LIST(X)                                                                                 \
    X(ROW, "row", svi_row_detectors, NULL)                                                                   \
    X(VALUE, "value", svi_sensor_detectors, NULL)                                                            \
    X(LEVEL, "level", svi_sensor_detectors, NULL)                                                            \
    X(STEP, "step", svi_sensor_detectors, NULL)                                                              \
    X(FORECAST, "forecast", svi_sensor_detectors, NULL)                                                      \
    X(SPREAD, "spread", svi_sensor_detectors, NULL)                                                          \
    X(LASTING, "lasting", svi_row_detectors, "persistent")

#define X(constant, name, engine, opening) SVI_DETECTOR_##constant,
enum svi_alert_detector { SVI_DETECTOR_LIST(X) SVI_DETECTORS };
#undef X

/* What one detector found in one sample, at the most surprising feature. */
struct svi_evidence {
    double surprise;  /* -log10 p of the detector as a whole, corrected for the number of its features; 0:
                         nothing found, or not known yet */
    bool early;       /* the past is too short to report it; it counts as past all the same */
    int feature;      /* column of the sample; -1: the row */
    int over;         /* the last samples that were assessed together, >= 1 */
    int since;        /* of these, the last ones that the change itself covers: 1 to over; 1 until it is
                         dated (svi_detectors_date) */
    double value;     /* of the sample */
    double expected;  /* its forecast in its context; NAN: none */
    double residual;  /* value less forecast, the mean over the last `since` samples; NAN: no forecast */
    double low, high; /* normal range in its context (5 % and 95 %); NAN: unknown */
    int with;         /* the feature that contributes most to the forecast; -1: none */
    int other;        /* the most surprising feature that is no part of the open alert; -1: none */
    double other_surprise; /* its surprise; 0 while no alert is open */
    double strength;       /* the largest signal of its engine in this sample, whether surprising or not
                              (anomaly.h); 0: none, or another detector of the engine has it */
};

/* A surprise as far as a past of that many rows can know it. p = 1 / (10 rows) is the limit, because a tail
 * that was fitted to n values says little beyond ten times as many. Larger surprises keep their order, but
 * count only by the logarithm of what exceeds the limit: an extrapolation is no proof, a gross value still
 * is. */
static inline double svi_evidence_known(double surprise, int64_t rows) {
    if (surprise <= 1) /* the limit is at least 1, and most rows have no surprise */
        return surprise;
    const double limit = 1 + log10((double)rows + 1);
    return surprise <= limit ? surprise : limit + log10(1 + surprise - limit);
}

struct svi_moment;
struct svi_judgement;
struct svi_alert_fact;
struct svi_unlearned;

/* A sample as detectors see it. All of it belongs to the caller. */
struct svi_detector_sample {
    const double *x;                 /* its values, NAN where one is missing */
    const struct svi_moment *moment; /* its time */
    const struct svi_judgement *row; /* novelty's judgement of the row; NULL: not known yet */
    const int *known; /* features of the open alert, `known_count` of them: what else is surprising is news */
    int known_count;
    const struct svi_unlearned *unlearned; /* columns that leave no trace in the past (mutes.h); NULL: none */
};

/* What an engine reserves capacity for. */
struct svi_detector_shape {
    int columns;  /* of a sample */
    int contexts; /* most columns of context that may be named; 0: none */
    bool grows;   /* capacity is taken as needed; else all at once, and a row never needs memory */
};

/* What a forecast rests on, as it ends a line: " there", " at this time of day". `dated`: times have a time
 * of day. NULL: the fact has no forecast. */
typedef const char *svi_detector_basis(const struct svi_alert_fact *fact, bool dated);

/* An engine of detectors. It alone knows its state; *state is NULL until the first reserve, and may stay
 * NULL. */
struct svi_detector_engine {
    enum svi_alert_detector first; /* its first detector, whose place holds the state */
    bool of_rows;        /* it assesses rows that novelty has judged; else each sample, before that */
    const char *kept_as; /* name of its size in archives */
    int max_size;        /* largest size: columns; 1 for an engine without columns */

    /* Reserves capacity for a sample of that shape, and for whatever its row may need. SVS_NO_MEMORY: nothing
     * has changed. */
    svs_code (*reserve)(void **state, const struct svi_detector_shape *shape, svs_error *err);
    bool (*is_full)(const void *state); /* the next row may need a reserve; NULL: it never does */
    int (*size)(const void *state);
    /* Assesses and then learns the sample. `evidence`: by detector; the engine fills in its own detectors,
     * whose surprise is 0 before. */
    void (*assess)(void *state, const struct svi_detector_sample *sample, struct svi_evidence *evidence);
    void (*archive)(struct svi_archive *a, void *state);     /* loads into a new state of the same size */
    void (*drop)(void *state);                               /* frees the state */
    double (*bytes)(const struct svi_detector_shape *shape); /* largest size in memory */

    /* NULL: it has no columns. forget: the column starts again. set_category: it is a value of a category. */
    void (*forget)(void *state, int column);
    void (*set_category)(void *state, int column);
    /* Dates the change in the evidence of one of its detectors about the last sample: sets since and
     * residual. NULL: both are set already. */
    void (*date)(const void *state, enum svi_alert_detector detector, struct svi_evidence *f);
    svi_detector_basis *basis; /* NULL: it makes no forecast */
};

#define X(constant, name, engine, opening) extern const struct svi_detector_engine engine;
SVI_DETECTOR_LIST(X)
#undef X

#endif
