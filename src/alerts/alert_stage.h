/* alert_stage.h: novelty and its alerts, of one stream: each accepted sample is judged by all detectors, an
 * alert may change, and the sample is perhaps learned; all of it a function of the samples alone.
 *
 * What goes in are values, what comes out are structs: the stage knows neither settings nor messages, neither
 * names of columns nor events. Before a sample there is one question, svi_alert_stage_has_capacity, and
 * svi_alert_stage_reserve only where it has none. */
#ifndef SVI_ALERT_STAGE_H
#define SVI_ALERT_STAGE_H

#include "alerts/alert.h"
#include "alerts/alert_policy.h"
#include "alerts/alert_verdict.h"
#include "alerts/detectors.h"
#include "base/archive.h"
#include "novelty/detector.h"
#include "novelty/lags.h"

#define SVI_ALERT_STAGE_COLUMNS 4096 /* features x lags at most */

struct svi_alert_stage_options {
    bool on; /* false: the rest says nothing */
    struct svi_detector_options novelty;
    int lags; /* >= 1 */
    bool differences;
    bool with_context; /* there may be columns of context */
    struct svi_alert_options alert;
    struct svi_alert_policy_options policy;
};

/* An accepted sample. */
struct svi_alert_sample {
    const double *x;
    const uint8_t *gaps; /* by column: not 0 where x only took the place of a value; NULL: nowhere */
    int d;
    double time;   /* of the engine, in seconds */
    bool timed;    /* it has a time of its own */
    bool labelled; /* it has a label */
};

/* Capacity for one sample of d features and its lags. */
struct svi_alert_stage_rows {
    int d;                   /* features, those to come included */
    struct svi_lags history; /* the last samples */
    double *x;               /* d: the sample, widened by zeros; one block with the next two */
    double *row;             /* d x lags: what is judged */
    double *adds;            /* d x lags: what each column adds to the surprise */
};

/* What of a judged sample goes into its score event. */
struct svi_alert_scores {
    bool judged;
    double novelty, p;
    double alarm;    /* 1 is where an alert may open */
    double surprise; /* -log10 p, of the detector that it surprises most */
};

struct svi_alert_stage {
    bool on;
    int capacity; /* while it is on: columns of the next sample that all parts have agreed to; -1: ask them */
    struct svi_detector_options options; /* shared: the room of the thread; NULL: its parts have their own */
    int lags;                            /* 0: it was never on */
    bool differences;
    svi_detector *detector; /* NULL before the first sample */
    struct svi_alert_stage_rows rows;
    struct svi_alert alert;
    struct svi_alert_policy policy; /* with a budget */
    struct svi_verdicts verdicts;   /* likewise */
    struct svi_detectors detectors; /* likewise, those beside novelty; too many columns: only those of rows */
    int context_d, context_names;   /* columns that were looked at for context, and names that they had */
    bool with_context;
    bool judged;                                 /* the last sample was */
    struct svi_judgement judgement;              /* of it */
    struct svi_evidence evidence[SVI_DETECTORS]; /* of it, by detector */
    double grade;
    double alarm, surprise; /* of it: see struct svi_alert_scores */
    int64_t refused;
    char reason[SVS_ERROR_TEXT]; /* why it went off; "" = it did not */
};

/* Takes no memory: that comes with the first sample. */
void svi_alert_stage_init(struct svi_alert_stage *s, const struct svi_alert_stage_options *o);
void svi_alert_stage_free(struct svi_alert_stage *s);

/* A stage of one of many streams that a thread works on in turns: from the start, or from then on (between
 * two samples), its parts work in the room of that thread. SVS_NO_MEMORY: they stay where they were. */
void svi_alert_stage_share_scratch(struct svi_alert_stage *s, struct svi_shared_scratch *scratch);
svs_code svi_alert_stage_use_scratch(struct svi_alert_stage *s, struct svi_shared_scratch *scratch,
                                     svs_error *err);
void svi_alert_stage_release_scratch(
    struct svi_alert_stage *s); /* nothing of it is in a room until its next call */

/* Capacity for other options, taken before anything changes (svi_detector_prepared_clear). SVS_NO_MEMORY. */
svs_code svi_alert_stage_prepare(const struct svi_alert_stage *s, const struct svi_alert_stage_options *o,
                                 struct svi_detector_prepared *scratch, svs_error *err);

/* The options of now; those that svi_alert_stage_replace is for have not changed. The room is used up. */
void svi_alert_stage_configure(struct svi_alert_stage *s, const struct svi_alert_stage_options *o,
                               struct svi_detector_prepared *prepared);

/* Options with which everything starts again: a new stage, of which the counters alone are the old ones. An
 * open alert has been ended. */
void svi_alert_stage_replace(struct svi_alert_stage *s, const struct svi_alert_stage_options *o);

void svi_alert_stage_reset(struct svi_alert_stage *s); /* as new, but for the counters */

/* Can a sample of that many columns be judged without a look at the parts? */
static inline bool svi_alert_stage_has_capacity(const struct svi_alert_stage *s, int d) {
    return d <= s->capacity || !s->on;
}

/* Where it cannot: capacity for such a sample, before anything is done with it. `more_may_come`: columns. A
 * stream of too many columns goes on without novelty, and the stats say why. SVS_NO_MEMORY: nothing has
 * changed. */
svs_code svi_alert_stage_reserve(struct svi_alert_stage *s, int d, bool more_may_come, svs_error *err);

/* Columns that a sample may have, whatever else it brings, while nobody may look at the stage. */
int svi_alert_stage_columns(const struct svi_alert_stage *s);

/* Between two samples; loading goes into one from svi_alert_stage_init. With a budget the policy and the
 * detectors beside novelty are sections of their own. */
void svi_alert_stage_archive(struct svi_archive *a, struct svi_alert_stage *s);
bool svi_alert_stage_has_policy(const struct svi_alert_stage *s);
void svi_alert_stage_policy_archive(struct svi_archive *a, struct svi_alert_stage *s);
void svi_alert_stage_detectors_archive(struct svi_archive *a, struct svi_alert_stage *s);

/* A person says whether the alert of that number was a true one. SVS_UNAVAILABLE: why nothing can be said of
 * it (any more). */
svs_code svi_alert_stage_verdict(struct svi_alert_stage *s, int64_t number, bool is_true, svs_error *err);

/* A sample was left out: what comes next does not follow on what came before. */
void svi_alert_stage_gap(struct svi_alert_stage *s);

/* A feature that there is capacity for belongs to a value of a category: told once or more, between two
 * samples. Is that known, or nobody there to know it? */
void svi_alert_stage_category(struct svi_alert_stage *s, int feature);
bool svi_alert_stage_knows_category(const struct svi_alert_stage *s, int feature);

/* A feature changes hands, between two samples: what is held, the last samples included, has 0 there, as if
 * it had never shown anything. */
void svi_alert_stage_renew(struct svi_alert_stage *s, int feature);

/* Judges an accepted sample that there is capacity for. Returns what it did to the alert. */
enum svi_alert_change svi_alert_stage_assess(struct svi_alert_stage *s,
                                             const struct svi_alert_sample *sample);

/* Novelty is off, and nothing of it is left to be reported. */
static inline bool svi_alert_stage_idle(const struct svi_alert_stage *s) {
    return !s->on && !s->judged && !s->alert.open;
}

/* Of the sample that was judged last. */
struct svi_alert_scores svi_alert_stage_scores(const struct svi_alert_stage *s);

/* Lets the sample be learned, after it was judged and reported. */
void svi_alert_stage_learn(struct svi_alert_stage *s, const struct svi_alert_sample *sample);

/* Bytes at most for d features; where columns may still come, up to twice as many (16 at least) have room.
 * contexts: columns of context. shared: of one of the keys of a stream, with its struct: bytes about, once
 * all is full. */
double svi_alert_stage_memory(const struct svi_alert_stage_options *o, int d, int contexts, bool shared);

#endif
