/* What a person says of rows afterwards. */
#include <string.h>

#include "novelty/detector.h"

/* As a sample that is usual: neither its surprise nor the run that is under way keeps it out. */
void svi_detector_teach(svi_detector *d, const double *x, bool calibrates) {
    struct svi_judgement j;
    const struct svi_detector_state before = d->now;
    const enum svi_novelty_learn learn = d->o.learn;
    svi_detector_assess(d, x, &j);
    if (j.unknown)
        return;
    d->o.learn = SVI_LEARN_ALL;
    d->judgement.p = 1;
    d->judgement.novel = false;
    d->judgement.calibrates = calibrates;
    d->now.run = d->now.held_count = 0;
    (void)svi_detector_learn(d, true);
    d->o.learn = learn;
    d->now.run = before.run;
    d->now.run_novel = before.run_novel;
    d->now.held_count = before.held_count;
}

void svi_detector_withdraw(svi_detector *d, const double *x) {
    struct svi_calibration *c = &d->calibration;
    const size_t size = (size_t)d->o.d * sizeof *d->rows;
    const double *middle = NULL;
    double score = 0;
    bool any = false;
    svi_detector_claim_scratch(d);
    svi_detector_finish_renewal(d); /* which goes by the rows of now */
    for (int i = 0; i < c->ring.filled && !middle; i++)
        if (c->scores[i] == c->sorted[c->ring.filled / 2]) {
            middle = d->rows + (size_t)i * (size_t)d->o.d;
            score = c->scores[i];
        }
    for (int i = 0; i < c->ring.filled; i++) {
        double *row = d->rows + (size_t)i * (size_t)d->o.d;
        const bool it = row != middle && memcmp(row, x, size) == 0;
        d->work[i] = it ? score : c->scores[i];
        if (it)
            memcpy(row, middle, size);
        any = any || it;
    }
    if (any)
        svi_calibration_replace(c, d->work);
}
