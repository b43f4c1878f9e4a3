/* detectors.h: all detectors of a stream (evidence.h) as one object: the list, and the states of their
 * engines. Adding one is a row of SVI_DETECTOR_LIST and the engine that it names, or a row of that engine. */
#ifndef SVI_DETECTORS_H
#define SVI_DETECTORS_H

#include "alerts/evidence.h"

/* A row of the list. */
struct svi_detector_row {
    const char *name; /* in events */
    const struct svi_detector_engine *engine;
    const char *opening; /* of a line that it leads; NULL: none */
};

const struct svi_detector_row *svi_detector_row(enum svi_alert_detector detector);

/* Zero-initialised: nothing is held. */
struct svi_detectors {
    void *state[SVI_DETECTORS]; /* of the engine whose first detector it is; NULL elsewhere */
};

/* Before a sample of so many columns. *fresh: an engine by columns holds something now that did not before,
 * and knows no category. SVS_NO_MEMORY: what was held is as it was. */
svs_code svi_detectors_reserve(struct svi_detectors *s, const struct svi_detector_shape *shape, bool *fresh,
                               svs_error *err);
bool svi_detectors_are_full(const struct svi_detectors *s); /* a reserve is due before the next sample */

/* Columns that engines by columns have capacity for; -1: none holds anything. */
int svi_detectors_columns(const struct svi_detectors *s);
void svi_detectors_clear(struct svi_detectors *s); /* frees */

/* A sample, first by its values (row NULL), which begins the evidence, then by what novelty makes of it. */
void svi_detectors_look(struct svi_detectors *s, const struct svi_detector_sample *sample,
                        struct svi_evidence evidence[SVI_DETECTORS]);

/* A column begins anew, belongs to a category, becomes context, is context; columns without capacity are
 * passed over. After a context: capacity for what it brings. */
void svi_detectors_forget(struct svi_detectors *s, int column);
void svi_detectors_set_category(struct svi_detectors *s, int column);
bool svi_detectors_set_context(struct svi_detectors *s, int column);
bool svi_detectors_is_context(const struct svi_detectors *s, int column);
svs_code svi_detectors_reserve_context(struct svi_detectors *s, svs_error *err);

/* Loading goes into an empty set; shape.columns: those that a row has. */
void svi_detectors_archive(struct svi_archive *a, struct svi_detectors *s,
                           const struct svi_detector_shape *shape);

double svi_detectors_memory(const struct svi_detector_shape *shape); /* bytes at most */

#endif
