/* alert_stage.h: novelty and its alerts, of one stream. Each accepted sample is assessed by all detectors,
 * the alert may change, and the sample may be learned; all of it depends on the samples alone.
 *
 * The stage takes values and returns structs. It knows no settings, messages, column names or events.
 *
 * A sample: svi_alert_stage_has_capacity (else svi_alert_stage_reserve), svi_alert_stage_assess,
 * svi_alert_stage_scores, svi_alert_stage_learn. */
#ifndef SVI_ALERT_STAGE_H
#define SVI_ALERT_STAGE_H

#include "alerts/alert.h"
#include "alerts/alert_policy.h"
#include "alerts/alert_verdict.h"
#include "alerts/anomaly.h"
#include "alerts/detectors.h"
#include "alerts/history.h"
#include "base/archive.h"
#include "novelty/detector.h"
#include "novelty/lags.h"

#define SVI_ALERT_STAGE_COLUMNS 4096 /* largest features x lags */

struct svi_unlearned;

struct svi_alert_stage_options {
    bool on; /* false: the other members are ignored */
    struct svi_detector_options novelty;
    int lags;          /* samples in a row, >= 1 */
    bool differences;  /* lags are differences from the sample before */
    bool with_context; /* columns of context may be named */
    const char *zone;  /* of the time of day, see features/calendar.h; copied */
    struct svi_alert_options alert;
    struct svi_alert_policy_options policy;
};

/* An accepted sample. */
struct svi_alert_sample {
    const double *x;     /* d values */
    const uint8_t *gaps; /* d flags: not 0 where x stands in for a missing value; NULL: none is missing */
    int d;               /* features */
    int64_t number;      /* of the sample in the stream, from 1; 0: unknown */
    double time;         /* engine time, seconds */
    bool timed;          /* the sample brought its own time */
    bool labelled;       /* the sample has a label */
    const struct svi_unlearned *unlearned; /* columns that are not learned (mutes.h); NULL: none */
};

/* One sample of d features, and its lags. */
struct svi_alert_stage_rows {
    int d;                   /* features, spare ones included */
    struct svi_lags history; /* the last samples */
    double *x;               /* d: the sample, widened by zeros; owns one block with the next two */
    double *row;             /* d x lags: what novelty assesses */
    double *adds;            /* d x lags: each column's contribution to the surprise */
};

/* The part of an assessed sample that is written to its score event. */
struct svi_alert_scores {
    bool judged; /* the sample was assessed; else the rest is of an earlier one */
    double novelty, p;
    double alarm;    /* an alert may open from 1 on */
    double surprise; /* largest -log10 p of the detectors; with a budget see alert_policy.h, SURPRISE */
    double anomaly;  /* of the row and of the sensors together, in [0, 1]: see anomaly.h */
};

struct svi_alert_stage {
    bool on;
    int capacity; /* while on: columns that all parts have capacity for; -1: unknown, ask the parts */
    struct svi_detector_options options; /* shared: the scratch of the thread; NULL: the parts own theirs */
    int lags;                            /* 0: the stage is without novelty */
    bool differences;
    svi_detector *detector; /* NULL before the first sample */
    struct svi_alert_stage_rows rows;
    struct svi_alert alert;
    struct svi_alert_policy policy; /* used only with a budget, like the next three */
    struct svi_history history;     /* the last samples, that of svi_alert_stage_assess included */
    struct svi_verdicts verdicts;
    struct svi_detectors detectors; /* besides novelty; above SVI_SENSORS_MAX columns only those of rows */
    int context_d, context_names; /* columns that the engine has searched for context, and their names then */
    bool with_context;
    char zone[SVS_NAME_MAX + 1];
    struct svi_anomaly anomaly; /* the past of strengths; empty without a budget */

    /* Of the last sample. */
    bool judged; /* it was assessed */
    struct svi_judgement judgement;
    struct svi_evidence evidence[SVI_DETECTORS]; /* by detector */
    double grade;
    double alarm, surprise, score; /* see struct svi_alert_scores; score: its `anomaly` */

    int64_t refused;             /* samples that novelty refused to learn */
    char reason[SVS_ERROR_TEXT]; /* why novelty was switched off; "" = it was not */
};

/* Allocates nothing: memory is taken with the first sample. */
void svi_alert_stage_init(struct svi_alert_stage *s, const struct svi_alert_stage_options *o);
void svi_alert_stage_free(struct svi_alert_stage *s);

/* For streams that share a thread: the parts of the stage work in the thread's scratch, from the start
 * (share_scratch) or from now on, between two samples (use_scratch). SVS_NO_MEMORY: nothing has changed. */
void svi_alert_stage_share_scratch(struct svi_alert_stage *s, struct svi_shared_scratch *scratch);
svs_code svi_alert_stage_use_scratch(struct svi_alert_stage *s, struct svi_shared_scratch *scratch,
                                     svs_error *err);

/* Until its next call, the stage holds nothing in a scratch. */
void svi_alert_stage_release_scratch(struct svi_alert_stage *s);

/* Takes the memory that other options need, before anything changes. The caller frees it
 * (svi_detector_prepared_clear). Errors: SVS_NO_MEMORY. */
svs_code svi_alert_stage_prepare(const struct svi_alert_stage *s, const struct svi_alert_stage_options *o,
                                 struct svi_detector_prepared *prepared, svs_error *err);

/* Sets other options; those that need svi_alert_stage_replace must be unchanged. Consumes `prepared`. */
void svi_alert_stage_configure(struct svi_alert_stage *s, const struct svi_alert_stage_options *o,
                               struct svi_detector_prepared *prepared);

/* Sets options that restart the stage: everything but the counters is new. The caller has ended an open
 * alert. */
void svi_alert_stage_replace(struct svi_alert_stage *s, const struct svi_alert_stage_options *o);

void svi_alert_stage_reset(struct svi_alert_stage *s); /* as new, except for the counters */

/* Is there capacity for a sample of d columns? False: svi_alert_stage_reserve is due. */
static inline bool svi_alert_stage_has_capacity(const struct svi_alert_stage *s, int d) {
    return d <= s->capacity || !s->on;
}

/* Reserves capacity for a sample of d columns, before anything is done with it. `more_may_come`: columns may
 * be added later. A stream of too many columns continues without novelty, with the reason in the stats.
 * SVS_NO_MEMORY: nothing has changed. */
svs_code svi_alert_stage_reserve(struct svi_alert_stage *s, int d, bool more_may_come, svs_error *err);

/* Columns of any sample that needs no reserve. For callers that may not touch the stage before the sample. */
int svi_alert_stage_columns(const struct svi_alert_stage *s);

/* Between two samples; loads into a stage from svi_alert_stage_init. With a budget, the policy and the
 * detectors besides novelty are separate sections. */
void svi_alert_stage_archive(struct svi_archive *a, struct svi_alert_stage *s);
bool svi_alert_stage_has_policy(const struct svi_alert_stage *s);
void svi_alert_stage_policy_archive(struct svi_archive *a, struct svi_alert_stage *s);
void svi_alert_stage_detectors_archive(struct svi_archive *a, struct svi_alert_stage *s);

/* A person marks the alert *number true or false; 0: the last one that accepts a verdict, which is written
 * back. SVS_UNAVAILABLE: `err` says why no verdict on it is possible (any more). Other errors:
 * SVS_NO_MEMORY. */
svs_code svi_alert_stage_verdict(struct svi_alert_stage *s, int64_t *number, bool is_true, svs_error *err);

/* A sample was left out: the next one is not the successor of the last one, so the lags start again. */
void svi_alert_stage_gap(struct svi_alert_stage *s);

/* The feature is a value of a category. May be repeated; between two samples; ignored without capacity for
 * the feature. knows_category: true if nothing has to learn it, because it is known or novelty is off. */
void svi_alert_stage_category(struct svi_alert_stage *s, int feature);
bool svi_alert_stage_knows_category(const struct svi_alert_stage *s, int feature);

/* The feature is reused for something else, between two samples: everything held, the last samples included,
 * has 0 there, as if it had never had a value. */
void svi_alert_stage_renew(struct svi_alert_stage *s, int feature);

/* Assesses an accepted sample, for which there is capacity. Returns the change of the alert. */
enum svi_alert_change svi_alert_stage_assess(struct svi_alert_stage *s,
                                             const struct svi_alert_sample *sample);

/* Follows a shift of the clock: times after `from` move by `step`. Seconds. */
void svi_alert_stage_move_times(struct svi_alert_stage *s, double from, double step);

/* Is novelty off, with nothing left to report? */
static inline bool svi_alert_stage_idle(const struct svi_alert_stage *s) {
    return !s->on && !s->judged && !s->alert.open;
}

/* Does a line about the sample count rows? So where rows have no times and their arrival means nothing
 * (alert.interval). */
bool svi_alert_stage_counts_rows(const struct svi_alert_stage *s, const struct svi_alert_sample *sample);

/* The scores of the last sample. */
struct svi_alert_scores svi_alert_stage_scores(const struct svi_alert_stage *s);

/* Learns the sample, after it was assessed and reported. */
void svi_alert_stage_learn(struct svi_alert_stage *s, const struct svi_alert_sample *sample);

/* Largest number of bytes for d features, without the struct. Where columns may be added, the stage reserves
 * up to twice as many, 16 at least. contexts: columns of context. shared: of one key of a stream, the struct
 * included; approximate, once all is full. */
double svi_alert_stage_memory(const struct svi_alert_stage_options *o, int d, int contexts, bool shared);

#endif
