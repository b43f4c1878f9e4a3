/* evidence.h: what the detectors of a stream say of one sample, as the policy that opens alerts takes it.
 *
 * A detector looks at each sample in its own way and tells how surprising it is, by a p-value: the
 * probability that a sample which goes on as the stream did surprises as much. Judges differ in what they
 * compare with (all that was, the time of day, the sample before, the other sensors) and over how many
 * samples, so that one that lasts or one that stays within its range is found as well as one that stands out.
 */
#ifndef SVI_EVIDENCE_H
#define SVI_EVIDENCE_H

enum svi_alert_detector {
    SVI_DETECTOR_ROW,    /* all features together: the p of novelty */
    SVI_DETECTOR_VALUE,  /* one feature against all its earlier values, high or low */
    SVI_DETECTOR_LEVEL,  /* the mean of one feature's last samples against its forecast from time and context
                          */
    SVI_DETECTOR_STEP,   /* the same with the sample before: what time, context and the last value do not tell
                          */
    SVI_DETECTOR_OTHERS, /* one feature against its forecast from the other features, time and context */
    SVI_DETECTOR_LASTING, /* small p of the row that do not end: evidence that adds up */
    SVI_DETECTORS
};

/* One detector's, of one sample: of the feature that surprises most. */
struct svi_evidence {
    double surprise;  /* -log10 of p, for the detector as a whole (its features are paid for); 0: nothing, or
                         not  known yet */
    int feature;      /* column of the message; -1: the row */
    int over;         /* samples that were judged together, the last ones; >= 1 */
    double value;     /* of the sample, or the mean of these */
    double expected;  /* in its context; NAN: there is no forecast */
    double low, high; /* usual in its context (5 % and 95 %), NAN: not known */
    int with;         /* the feature that its forecast owes most to; -1: none */
};

#endif
