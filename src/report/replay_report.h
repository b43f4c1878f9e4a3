/* replay_report.h: the result of replaying a journal: where it began, its figures, the fingerprints of model
 * and state. */
#ifndef SVI_REPLAY_REPORT_H
#define SVI_REPLAY_REPORT_H

#include "state/recovery.h"

/* Prints it on standard output. SVS_NO_MEMORY. */
svs_code svi_replay_report(const struct svi_recovery *r, svs_error *err);

#endif
