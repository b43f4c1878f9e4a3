/* novelty_model_report.h: a one-class model of a file, for people. */
#ifndef SVI_NOVELTY_MODEL_REPORT_H
#define SVI_NOVELTY_MODEL_REPORT_H

#include <stdio.h>

#include "novelty/novelty_model.h"

/* Its members and their certificates; and the whole model, with what is usual of each feature. */
void svi_novelty_model_report_members(const svs_novelty_model *m, FILE *to);
void svi_novelty_model_report(const svs_novelty_model *m, FILE *to);

#endif
