/* alert_options.h: translates settings into the options of the novelty and alert stage, which does not know
 * settings. */
#ifndef SVI_ALERT_OPTIONS_H
#define SVI_ALERT_OPTIONS_H

#include "alerts/alert_stage.h"
#include "config/settings.h"

/* Fills in *o. SVS_SETTING, which cannot occur with checked settings. */
svs_code svi_engine_alert_options(const struct svi_settings *s, struct svi_alert_stage_options *o,
                                  svs_error *err);

#endif
