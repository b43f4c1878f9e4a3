/* A person's verdict on past rows: normal, or not normal. */
#include <string.h>

#include "novelty/detector.h"

/* Runs the row through svi_detector_learn as a normal sample: with p = 1, under the policy `all` and outside
 * of any run, so that neither its surprise nor the present run excludes it. The run is restored
 * afterwards. */
void svi_detector_teach(svi_detector *d, const double *x, bool calibrates) {
    struct svi_judgement j;
    const struct svi_detector_state before = d->now;
    const enum svi_novelty_learn learn = d->o.learn;
    /* The assessment fills d->judgement, which svi_detector_learn reads. */
    svi_detector_assess(d, x, &j);
    if (j.unknown)
        return;
    d->o.learn = SVI_LEARN_ALL;
    d->judgement.p = 1;
    d->judgement.novel = false;
    d->judgement.calibrates = calibrates;
    /* With held rows still counted, following the run would release them into the calibration. */
    d->now.run = d->now.held_count = 0;
    (void)svi_detector_learn(d, true);
    d->o.learn = learn;
    d->now.run = before.run;
    d->now.run_novel = before.run_novel;
    d->now.held_count = before.held_count;
}

/* Rows are replaced rather than removed, because the ring of the calibration has no holes. */
void svi_detector_withdraw(svi_detector *d, const double *x) {
    struct svi_calibration *c = &d->calibration;
    const size_t size = (size_t)d->o.d * sizeof *d->rows;
    const double *middle = NULL;
    double score = 0;
    bool any = false;
    svi_detector_claim_scratch(d);
    svi_detector_finish_renewal(d); /* its result depends on the rows as they are */
    /* A row of median score is normal and carries no information about the tail. */
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
