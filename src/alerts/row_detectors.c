#include "alerts/row_detectors.h"

#include <math.h>

#define FEW      1.0  /* no smaller surprise is reported */
#define WARM     64   /* rows before anything is */
#define REFRESH  64   /* rows after which the usual size of a time of day is worked out again */
#define GREATEST 300  /* -log10 p: beyond any p */
#define LEAST    0.3f /* the usual size is no smaller: that of -log10 p is 0.6 on exchangeable rows */

enum { ROW, LASTING, SERIES };

svs_code svi_row_detectors_init(struct svi_row_detectors *j, svs_error *err) {
    *j = (struct svi_row_detectors){0}; /* to be cleared, whichever part finds no room */
    svi_lasting_init(&j->lasting);
    svi_pace_init(&j->pace);
    if (svi_deviations_init(&j->deviations, SERIES, 1, SVI_CONTEXT_BINS, err) == SVS_OK &&
        svi_block_tails_init(&j->tails, SERIES, 1, false, FEW, err) == SVS_OK)
        return SVS_OK;
    svi_row_detectors_clear(j);
    return SVS_NO_MEMORY;
}

double svi_row_detectors_memory(void) {
    return svi_deviations_memory(SERIES, 1, SVI_CONTEXT_BINS) + svi_block_tails_memory(SERIES, 1, false);
}

void svi_row_detectors_clear(struct svi_row_detectors *j) {
    svi_deviations_clear(&j->deviations);
    svi_block_tails_clear(&j->tails);
}

void svi_row_detectors_step(struct svi_row_detectors *j, double p, const struct svi_lasting_rank *rank,
                            const struct svi_moment *m, struct svi_evidence *evidence) {
    static const enum svi_alert_detector detector[SERIES] = {SVI_DETECTOR_ROW, SVI_DETECTOR_LASTING};
    float u[SERIES];
    if (m->bin != j->deviations.bin || j->pace.rows % REFRESH == 0)
        svi_deviations_turn_to(&j->deviations, m->bin);
    svi_lasting_add(&j->lasting, rank);
    const bool early = j->pace.rows < SVI_BLOCKS * SVI_BLOCK_LEAST;
    const float v[SERIES] = {(float)fmin(-log10(p), GREATEST), (float)svi_lasting_surprise(&j->lasting)};
    for (int i = 0; i < SERIES; i++) {
        u[i] = j->pace.rows < WARM ? 0 : v[i] / fmaxf(j->deviations.now[i], LEAST);
        const double episode = svi_block_tails_surprise(&j->tails, i, u[i], 0);
        evidence[detector[i]].surprise = early && i == LASTING ? v[i] : fmin(v[i], episode);
    }
    evidence[SVI_DETECTOR_LASTING].over = svi_lasting_over(&j->lasting);
    svi_block_tails_add(&j->tails, u);
    svi_deviations_learn(&j->deviations, m->bin, v,
                         (float)fmax(1 / (double)(j->pace.rows + 1), 1 / j->pace.memory));
    if (svi_pace_row(&j->pace, m->time))
        j->tails.longest = svi_pace_block(&j->pace);
}

void svi_row_detectors_archive(struct svi_archive *a, struct svi_row_detectors *j) {
    svi_lasting_archive(a, &j->lasting);
    svi_pace_archive(a, &j->pace);
    svi_deviations_archive(a, &j->deviations);
    svi_block_tails_archive(a, &j->tails);
}
