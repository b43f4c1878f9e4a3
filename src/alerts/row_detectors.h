/* row_detectors.h: what the p-value of novelty is worth as a reason for an alert: of one row (ROW), and of
 * many that hang together (LASTING, lasting.h).
 *
 * Both p-values hold for rows that are exchangeable. Rows of a machine are not: each morning is a little like
 * nothing before, and small p come in runs. So either measure, as -log10 of its p, is divided by its usual
 * size at that time of day (deviations.h), held against the largest of its own past in blocks of rows
 * (block_tails.h), and what is reported is how often such an episode begins: never more than the p-value
 * says. Before there are SVI_BLOCKS blocks LASTING has hardly a past, and speaks by its p alone. */
#ifndef SVI_ROW_DETECTORS_H
#define SVI_ROW_DETECTORS_H

#include "alerts/block_tails.h"
#include "alerts/context.h"
#include "alerts/deviations.h"
#include "alerts/evidence.h"
#include "alerts/lasting.h"
#include "alerts/pace.h"

struct svi_row_detectors {
    struct svi_lasting lasting;
    struct svi_pace pace;
    struct svi_deviations deviations; /* of two series */
    struct svi_block_tails tails;
};

svs_code svi_row_detectors_init(struct svi_row_detectors *j, svs_error *err);
double svi_row_detectors_memory(void);                     /* bytes besides the struct */
void svi_row_detectors_clear(struct svi_row_detectors *j); /* frees; a cleared or zeroed one is fine */

/* A row's p (with a tail beyond the ranks) and its place among the calibration scores, judged and learned.
 * Fills the evidence of ROW and LASTING. */
void svi_row_detectors_step(struct svi_row_detectors *j, double p, const struct svi_lasting_rank *rank,
                            const struct svi_moment *m, struct svi_evidence *evidence);

void svi_row_detectors_archive(struct svi_archive *a, struct svi_row_detectors *j);

#endif
