/* detectors.h: all detectors of a stream (evidence.h) as one object: their list and the states of their
 * engines. To add a detector, add a row to SVI_DETECTOR_LIST and the engine that it names. */
#ifndef SVI_DETECTORS_H
#define SVI_DETECTORS_H

#include "alerts/evidence.h"

/* A row of the list. */
struct svi_detector_row {
    const char *name; /* in events */
    const struct svi_detector_engine *engine;
    const char *opening; /* adjective in the lines that it leads; NULL: none */
};

const struct svi_detector_row *svi_detector_row(enum svi_alert_detector detector);

/* Zero-initialised, it is empty. */
struct svi_detectors {
    void *state[SVI_DETECTORS]; /* state of an engine, at the place of its first detector; NULL elsewhere */
};

/* Reserves capacity for a sample of that shape. *fresh: an engine with columns was created and knows no
 * categories yet. SVS_NO_MEMORY: engines are unchanged, or have more capacity. */
svs_code svi_detectors_reserve(struct svi_detectors *s, const struct svi_detector_shape *shape, bool *fresh,
                               svs_error *err);
bool svi_detectors_are_full(const struct svi_detectors *s); /* a reserve is due before the next sample */

/* Columns that all engines with columns have capacity for; -1: there is no such engine. */
int svi_detectors_columns(const struct svi_detectors *s);
void svi_detectors_clear(struct svi_detectors *s); /* frees */

/* Assesses and learns a sample: first with its values (row NULL), which clears the evidence, then with the
 * judgement of novelty. */
void svi_detectors_assess(struct svi_detectors *s, const struct svi_detector_sample *sample,
                          struct svi_evidence evidence[SVI_DETECTORS]);

/* Dates the changes in the evidence of the last sample, which costs more than to find them: for those that
 * are reported. */
void svi_detectors_date(const struct svi_detectors *s, struct svi_evidence evidence[SVI_DETECTORS]);

/* A column starts again; is a value of a category; becomes context (false: it cannot, or it already is); is
 * it context? Columns without capacity are ignored. After set_context, reserve_context is due before the next
 * sample. */
void svi_detectors_forget(struct svi_detectors *s, int column);
void svi_detectors_set_category(struct svi_detectors *s, int column);
bool svi_detectors_set_context(struct svi_detectors *s, int column);
bool svi_detectors_is_context(const struct svi_detectors *s, int column);
svs_code svi_detectors_reserve_context(struct svi_detectors *s, svs_error *err);

/* Load into an empty object. shape.columns: columns of a row, which bound those of an archive. */
void svi_detectors_archive(struct svi_archive *a, struct svi_detectors *s,
                           const struct svi_detector_shape *shape);

double svi_detectors_memory(const struct svi_detector_shape *shape); /* largest number of bytes */

#endif
