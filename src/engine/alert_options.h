/* alert_options.h: what the settings say about the stage of novelty and its alerts, which knows no settings.
 */
#ifndef SVI_ALERT_OPTIONS_H
#define SVI_ALERT_OPTIONS_H

#include "alerts/alert_stage.h"
#include "config/settings.h"

/* SVS_SETTING, which checked settings never are. */
svs_code svi_engine_alert_options(const struct svi_settings *s, struct svi_alert_stage_options *o,
                                  svs_error *err);

#endif
