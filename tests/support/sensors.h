/* sensors.h: the detectors of single sensors by their engine, for tests of theirs alone. */
#ifndef SVI_TEST_SENSORS_H
#define SVI_TEST_SENSORS_H

#include "alerts/context.h"
#include "alerts/sensors.h"

/* NULL: SVS_NO_MEMORY. */
static inline svi_sensors *sensors_open(int d, int contexts, bool grows, svs_error *err) {
    const struct svi_detector_shape shape = {d, contexts, grows};
    void *state = NULL;
    (void)svi_sensor_detectors.reserve(&state, &shape, err);
    return state;
}

static inline void sensors_close(svi_sensors *s) {
    svi_sensor_detectors.drop(s);
}

static inline svs_code sensors_widen(svi_sensors **s, int d, svs_error *err) {
    const struct svi_detector_shape shape = {.columns = d};
    void *state = *s;
    const svs_code code = svi_sensor_detectors.reserve(&state, &shape, err);
    *s = state;
    return code;
}

static inline void sensors_step(svi_sensors *s, const double *x, const struct svi_moment *at,
                                struct svi_evidence *evidence) {
    const struct svi_detector_sample sample = {.x = x, .moment = at};
    svi_sensor_detectors.assess(s, &sample, evidence);
}

static inline double sensors_memory(int d, int contexts) {
    const struct svi_detector_shape shape = {d, contexts, false};
    return svi_sensor_detectors.bytes(&shape);
}

#endif
