#include "alerts/detectors.h"

#include <math.h>

#include "alerts/sensors.h"
#include "base/fail.h"

/* In the order of enum svi_alert_detector, so that a detector indexes its row. */
#define X(constant, name, engine, opening) {name, &engine, opening},
static const struct svi_detector_row rows[SVI_DETECTORS] = {SVI_DETECTOR_LIST(X)};
#undef X

const struct svi_detector_row *svi_detector_row(enum svi_alert_detector detector) {
    return &rows[detector];
}

/* The engine whose state is at place i. NULL: place i is a further detector of an engine, without a state.
 * Every loop over engines is a loop over places that skips these. */
static const struct svi_detector_engine *detectors_engine(int i) {
    return (int)rows[i].engine->first == i ? rows[i].engine : NULL;
}

svs_code svi_detectors_reserve(struct svi_detectors *s, const struct svi_detector_shape *shape, bool *fresh,
                               svs_error *err) {
    *fresh = false;
    for (int i = 0; i < SVI_DETECTORS; i++) {
        const struct svi_detector_engine *engine = detectors_engine(i);
        const bool had = s->state[i];
        if (!engine)
            continue;
        SVI_TRY(engine->reserve(&s->state[i], shape, err));
        /* Widening keeps categories; only an engine that did not exist before has none. */
        *fresh = *fresh || (engine->set_category && s->state[i] && !had);
    }
    return SVS_OK;
}

bool svi_detectors_are_full(const struct svi_detectors *s) {
    for (int i = 0; i < SVI_DETECTORS; i++)
        if (s->state[i] && rows[i].engine->is_full && rows[i].engine->is_full(s->state[i]))
            return true;
    return false;
}

int svi_detectors_columns(const struct svi_detectors *s) {
    /* The narrowest engine decides: a row may not have more columns than any of them has. */
    int columns = -1;
    for (int i = 0; i < SVI_DETECTORS; i++)
        if (s->state[i] && !rows[i].engine->of_rows) {
            const int own = rows[i].engine->size(s->state[i]);
            columns = columns < 0 || own < columns ? own : columns;
        }
    return columns;
}

void svi_detectors_clear(struct svi_detectors *s) {
    for (int i = 0; i < SVI_DETECTORS; i++)
        if (s->state[i])
            rows[i].engine->drop(s->state[i]);
    *s = (struct svi_detectors){{NULL}};
}

void svi_detectors_assess(struct svi_detectors *s, const struct svi_detector_sample *sample,
                          struct svi_evidence evidence[SVI_DETECTORS]) {
    /* A sample comes here twice: first with its values, then with the judgement of novelty. Only the first
     * call clears, so evidence of sensors survives the second. */
    for (int i = 0; i < SVI_DETECTORS && !sample->row; i++)
        evidence[i] = (struct svi_evidence){.feature = -1,
                                            .over = 1,
                                            .since = 1,
                                            .value = NAN,
                                            .expected = NAN,
                                            .residual = NAN,
                                            .low = NAN,
                                            .high = NAN,
                                            .with = -1,
                                            .other = -1};
    for (int i = 0; i < SVI_DETECTORS; i++)
        if (s->state[i] && rows[i].engine->of_rows == (sample->row != NULL))
            rows[i].engine->assess(s->state[i], sample, evidence);
}

void svi_detectors_date(const struct svi_detectors *s, struct svi_evidence evidence[SVI_DETECTORS]) {
    for (int i = 0; i < SVI_DETECTORS; i++) {
        const void *state = s->state[rows[i].engine->first];
        if (state && rows[i].engine->date && evidence[i].feature >= 0)
            rows[i].engine->date(state, (enum svi_alert_detector)i, &evidence[i]);
    }
}

/* ---- columns */

void svi_detectors_forget(struct svi_detectors *s, int column) {
    for (int i = 0; i < SVI_DETECTORS; i++)
        if (s->state[i] && rows[i].engine->forget && column < rows[i].engine->size(s->state[i]))
            rows[i].engine->forget(s->state[i], column);
}

void svi_detectors_set_category(struct svi_detectors *s, int column) {
    for (int i = 0; i < SVI_DETECTORS; i++)
        if (s->state[i] && rows[i].engine->set_category && column < rows[i].engine->size(s->state[i]))
            rows[i].engine->set_category(s->state[i], column);
}

/* Only the sensors know context: their forecasts depend on it. */
static svi_sensors *detectors_sensors(const struct svi_detectors *s) {
    return s->state[svi_sensor_detectors.first];
}

bool svi_detectors_set_context(struct svi_detectors *s, int column) {
    svi_sensors *sensors = detectors_sensors(s);
    return sensors && column < svi_sensor_detectors.size(sensors) && svi_sensors_set_context(sensors, column);
}

bool svi_detectors_is_context(const struct svi_detectors *s, int column) {
    const svi_sensors *sensors = detectors_sensors(s);
    return sensors && svi_sensors_is_context(sensors, column);
}

svs_code svi_detectors_reserve_context(struct svi_detectors *s, svs_error *err) {
    svi_sensors *sensors = detectors_sensors(s);
    return sensors ? svi_sensors_reserve_context(sensors, err) : SVS_OK;
}

/* ---- archive */

/* The state of the engine at place i, of `size` columns. Loading makes an engine of that size first, which
 * fills an empty place. */
static void detectors_archive_one(struct svi_archive *a, struct svi_detectors *s, int i, int size,
                                  const struct svi_detector_shape *shape) {
    const struct svi_detector_engine *engine = rows[i].engine;
    const struct svi_detector_shape own = {size, shape->contexts, shape->grows};
    if (!engine->of_rows &&
        !svi_archive_check(a, size <= shape->columns, "there are more columns than the rows have"))
        return;
    /* A damaged size must not allocate for 512 sensors: each column takes more than a byte of the archive. */
    if (svi_archive_loading(a) && !engine->of_rows && svi_archive_left(a) < size)
        svi_archive_fail(a, SVS_DAMAGED, "there are fewer bytes than detectors of sensors");
    if (svi_archive_loading(a) && svi_archive_ok(a))
        (void)engine->reserve(&s->state[i], &own, a->err);
    if (svi_archive_ok(a) && s->state[i])
        engine->archive(a, s->state[i]);
}

void svi_detectors_archive(struct svi_archive *a, struct svi_detectors *s,
                           const struct svi_detector_shape *shape) {
    int size[SVI_DETECTORS] = {0};
    /* All sizes come before all states; 0 stands for an engine without a state. */
    for (int i = 0; i < SVI_DETECTORS; i++) {
        const struct svi_detector_engine *engine = detectors_engine(i);
        size[i] = s->state[i] ? rows[i].engine->size(s->state[i]) : 0;
        if (engine)
            svi_archive_int(a, engine->kept_as, &size[i], 0, engine->max_size);
    }
    for (int i = 0; i < SVI_DETECTORS; i++)
        if (size[i] > 0 && svi_archive_ok(a))
            detectors_archive_one(a, s, i, size[i], shape);
}

double svi_detectors_memory(const struct svi_detector_shape *shape) {
    double bytes = 0;
    for (int i = 0; i < SVI_DETECTORS; i++)
        bytes += detectors_engine(i) ? rows[i].engine->bytes(shape) : 0;
    return bytes;
}
