/* alert_stage.h: the novelty model and its alerts as the engine sees them: each accepted sample is judged,
 * an alert may change, and the sample is perhaps learned; all of it a function of the samples alone. */
#ifndef SVI_ALERT_STAGE_H
#define SVI_ALERT_STAGE_H

#include "base/archive.h"
#include "data/message.h"
#include "features/schema.h"
#include "config/settings.h"
#include "alerts/alert.h"
#include "alerts/alert_policy.h"
#include "alerts/evidence.h"
#include "alerts/row_detectors.h"
#include "alerts/sensors.h"
#include "alerts/alert_text.h"
#include "alerts/alert_verdict.h"
#include "novelty/detector.h"
#include "novelty/lags.h"
#include "wire/event.h"

#define SVI_ALERT_STAGE_COLUMNS 4096 /* features x lags at most */

/* Room for one sample of d features and its lags. */
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
    struct svi_detector_options options; /* shared: the room of the thread; NULL: its parts have their own */
    int lags;
    bool differences;
    svi_detector *detector; /* NULL before the first sample */
    struct svi_alert_stage_rows rows;
    struct svi_alert alert;
    struct svi_alert_policy policy;         /* with a budget */
    struct svi_verdicts verdicts;           /* likewise */
    struct svi_row_detectors row_detectors; /* with a budget, from the first row on */
    svi_sensors *sensors; /* with a budget, from the first column on; NULL: too many columns, or none */
    int context_d, context_names;   /* columns that were looked at for context, and names that they had */
    bool with_context;              /* there may be columns of context */
    bool judged;                    /* the last sample was */
    struct svi_judgement judgement; /* of it */
    struct svi_evidence evidence[SVI_DETECTORS]; /* of it, by detector */
    double grade;
    double alarm, surprise; /* of it: see struct svi_alert_scores */
    int64_t refused;
    char reason[SVS_ERROR_TEXT]; /* why it went off; "" = it did not */
};

/* What the settings say about the detector; d: columns, lags included. SVS_SETTING. */
svs_code svi_alert_stage_options(const struct svi_settings *settings, int d, struct svi_detector_options *o,
                                 svs_error *err);

svs_code svi_alert_stage_new(struct svi_alert_stage *s, const struct svi_settings *settings, svs_error *err);
void svi_alert_stage_free(struct svi_alert_stage *s);

/* A stage of one of many streams that a thread works on in turns: from the start, or from then on (between
 * two samples), its parts work in the room of that thread. SVS_NO_MEMORY: they stay where they were. */
void svi_alert_stage_share_room(struct svi_alert_stage *s, struct svi_shared_room *room);
svs_code svi_alert_stage_use_room(struct svi_alert_stage *s, struct svi_shared_room *room, svs_error *err);
void svi_alert_stage_rest(struct svi_alert_stage *s); /* nothing of it is in a room until its next call */

/* Room for other settings, taken before anything changes (svi_detector_clear_room). SVS_NO_MEMORY. */
svs_code svi_alert_stage_make_room(const struct svi_alert_stage *s, const struct svi_settings *settings,
                                   struct svi_detector_room *room, svs_error *err);

/* The settings of now; those of SVI_CHANGE_RENEW have not changed. The room is used up. */
void svi_alert_stage_configure(struct svi_alert_stage *s, const struct svi_settings *settings,
                               struct svi_detector_room *room);

/* One of SVI_CHANGE_RENEW has: a new stage, of which the counters alone are the old ones. An open alert has
 * been ended. */
void svi_alert_stage_replace(struct svi_alert_stage *s, const struct svi_settings *settings);

void svi_alert_stage_reset(struct svi_alert_stage *s); /* as new, but for the counters */

/* Makes room for a sample's columns, before anything is done with it. A stream of too many columns goes on
 * without novelty, and the stats say why. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_alert_stage_reserve(struct svi_alert_stage *s, const struct svi_message *m, svs_error *err);

/* Columns that a sample may have without a look at rooms and judges before it is judged. */
int svi_alert_stage_columns(const struct svi_alert_stage *s);

/* A detector for d features, d x lags <= SVI_ALERT_STAGE_COLUMNS: a new one, or the old one with more
 * columns. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_alert_stage_build(struct svi_alert_stage *s, int d, svs_error *err);

/* Between two samples; loading goes into one from svi_alert_stage_new. */
void svi_alert_stage_archive(struct svi_archive *a, struct svi_alert_stage *s);

/* A person says whether the alert of that number was a true one. SVS_UNAVAILABLE: why nothing can be said of
 * it (any more). */
svs_code svi_alert_stage_verdict(struct svi_alert_stage *s, int64_t number, bool is_true, svs_error *err);

/* What the policy holds: only where there is a budget. */
bool svi_alert_stage_has_policy(const struct svi_alert_stage *s);
void svi_alert_stage_policy_archive(struct svi_archive *a, struct svi_alert_stage *s);

/* With a policy: the detectors beside the detector. */
void svi_alert_stage_detectors_archive(struct svi_archive *a, struct svi_alert_stage *s);

/* A sample was left out: what comes next does not follow on what came before. */
void svi_alert_stage_gap(struct svi_alert_stage *s);

/* A feature for which there is room belongs to a value of a category: told once or more, between two samples.
 */
void svi_alert_stage_category(struct svi_alert_stage *s, int feature);
bool svi_alert_stage_knows_category(const struct svi_alert_stage *s,
                                    int feature); /* or there is no room for it */

/* A feature for which there is room is context (svi_sensors_set_context), between two samples. False: it is
 * already, or cannot be. */
bool svi_alert_stage_set_context(struct svi_alert_stage *s, int feature);

/* After that: room for what columns of context bring. SVS_NO_MEMORY. */
svs_code svi_alert_stage_reserve_context(struct svi_alert_stage *s, svs_error *err);

/* A feature changes hands, between two samples: what is held, the last samples included, has 0 there, as if
 * it had never shown anything. */
void svi_alert_stage_renew(struct svi_alert_stage *s, int feature);

/* Judges an accepted sample for which there is room. Returns what it did to the alert. */
enum svi_alert_change svi_alert_stage_judge(struct svi_alert_stage *s, const struct svi_message *m,
                                            double time);

/* Novelty is off, and nothing of it is left to be said. */
static inline bool svi_alert_stage_idle(const struct svi_alert_stage *s) {
    return !s->on && !s->judged && !s->alert.open;
}

/* Of the sample that was judged last. */
struct svi_alert_scores svi_alert_stage_scores(const struct svi_alert_stage *s);

/* Lets the sample be learned, after it was judged and reported. */
void svi_alert_stage_learn(struct svi_alert_stage *s, const struct svi_message *m);

/* Bytes at most for d features; where columns may still come, up to twice as many (16 at least) have room.
 * contexts: columns of context. shared: of one of the keys of a stream, with its struct: bytes about, once
 * all is full. */
double svi_alert_stage_memory(const struct svi_settings *s, int d, int contexts, bool shared);

#endif
