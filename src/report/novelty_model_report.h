/* novelty_model_report.h: a one-class model as text for people. */
#ifndef SVI_NOVELTY_MODEL_REPORT_H
#define SVI_NOVELTY_MODEL_REPORT_H

#include <stdio.h>

#include "novelty/novelty_model.h"

/* Prints the members and their certificates; or the whole model, with the normal range of each feature. */
void svi_novelty_model_report_members(const svs_novelty_model *m, FILE *to);
void svi_novelty_model_report(const svs_novelty_model *m, FILE *to);

#endif
