/* replay_report.h: what a repeated journal comes to: where it began, its figures, the fingerprints of model
 * and state. */
#ifndef SVI_REPLAY_REPORT_H
#define SVI_REPLAY_REPORT_H

#include "state/recovery.h"

/* On standard output. SVS_NO_MEMORY. */
svs_code svi_replay_report(const struct svi_recovery *r, svs_error *err);

#endif
