/* stage.h: the stage of novelty and its alerts by settings, as an engine makes and asks it. */
#ifndef SVI_TEST_STAGE_H
#define SVI_TEST_STAGE_H

#include "support/problem.h"

#include "alerts/alert_stage.h"
#include "engine/alert_options.h"

static inline void stage_open(struct svi_alert_stage *s, const struct svi_settings *settings) {
    struct svi_alert_stage_options o;
    assert_int_equal(svi_engine_alert_options(settings, &o, NULL), SVS_OK);
    svi_alert_stage_init(s, &o);
}

/* Of the model of rows alone, which has d features. */
static inline struct svi_detector_options stage_novelty(const struct svi_settings *settings, int d) {
    struct svi_alert_stage_options o;
    assert_int_equal(svi_engine_alert_options(settings, &o, NULL), SVS_OK);
    o.novelty.d = d;
    return o.novelty;
}

static inline enum svi_alert_change stage_judge(struct svi_alert_stage *s,
                                                const struct svi_alert_sample *sample, bool more_may_come) {
    svs_error err = {0};
    if (!svi_alert_stage_has_capacity(s, sample->d) &&
        svi_alert_stage_reserve(s, sample->d, more_may_come, &err) != SVS_OK)
        fail_msg("%s", err.text);
    return svi_alert_stage_assess(s, sample);
}

#endif
