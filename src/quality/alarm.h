/* drift_stage.h: the quality alarm as the engine sees it: an alert of kind `quality` opens when the
 * prequential error has risen beyond chance (quality/drift.h), and closes when it is back near what it was, or
 * has stayed where it is for SVI_DRIFT_STAGE_SETTLED samples. A function of the judged samples alone. And the
 * numbers of the episodes of all alerts. */
#ifndef SVI_DRIFT_STAGE_H
#define SVI_DRIFT_STAGE_H

#include "base/archive.h"
#include "config/settings.h"
#include "alerts/novelty_report.h"
#include "quality/drift_moments.h"

#define SVI_DRIFT_STAGE_SETTLED 10000 /* samples without a change, after which a level is the usual one */
#define SVI_DRIFT_STAGE_KEPT    32 /* samples that `shrink` leaves at least, or 2 (d + 1) if that is more */

/* Each alert that opens gets the next number; so do its updates and its close. */
struct svi_episodes {
    int64_t count;            /* so far */
    int64_t novelty, quality; /* the last ones */
};

struct svi_drift_stage {
    bool on;
    bool regress;
    double rate;              /* the setting */
    struct svi_drift *errors; /* NULL: none yet */
    struct svi_drift_moments moments;
    struct svi_episodes episodes;
    bool open, adapted;          /* an alert is; it closed because the stream has settled */
    int64_t opened;              /* so far */
    double share, worst_share;   /* of wrong samples: before, and the highest since */
    double before, after, worst; /* the figure shown: share or rmse */
    double since;                /* time of the first sample after the change */
    int64_t number;              /* of the last one before it */
    int64_t span;                /* judged samples from the change to the one that showed it */
    struct svi_drift_shift *top; /* of the last rise; made with `errors` */
    int count;
};

void svi_drift_stage_new(struct svi_drift_stage *s, const struct svi_settings *settings);
void svi_drift_stage_free(struct svi_drift_stage *s);
void svi_drift_stage_reset(struct svi_drift_stage *s); /* as new, but for the counters and episodes */
void svi_drift_stage_configure(struct svi_drift_stage *s, const struct svi_settings *settings);

/* Features were dropped: their moments go, and the errors with which they belong together. */
void svi_drift_stage_prune(struct svi_drift_stage *s);

/* A feature changes hands, between two samples. */
void svi_drift_stage_renew(struct svi_drift_stage *s, int feature);

/* The errors, of which there are none. SVS_NO_MEMORY. */
svs_code svi_drift_stage_make(struct svi_drift_stage *s, svs_error *err);

/* Room for the row of a sample. SVS_NO_MEMORY: nothing has changed. */
static inline svs_code svi_drift_stage_reserve(struct svi_drift_stage *s, int d, svs_error *err) {
    if (s->on && !s->errors && svi_drift_stage_make(s, err) != SVS_OK)
        return SVS_NO_MEMORY;
    return s->on && d > s->moments.room ? svi_drift_moments_reserve(&s->moments, d, err) : SVS_OK;
}

/* A judged sample: `wrong`, or the error of a regression; its row (NULL: not known), for which there is room;
 * time in seconds, number in the stream. Returns what it did to the alert. */
enum svi_alert_change svi_drift_stage_judge(struct svi_drift_stage *s, double error, const double *x, int d,
                                            double time, int64_t number);

/* The report of that change; ts: of the sample. */
void svi_drift_stage_report(const struct svi_drift_stage *s, svs_value id, const struct svi_schema *schema,
                            const char *stream, double ts, enum svi_alert_change change,
                            struct svi_alert_report *out);

/* An open alert ends without a sample. False: none was open. */
bool svi_drift_stage_end(struct svi_drift_stage *s, const char *stream, const char *why,
                         struct svi_alert_report *out);

void svi_drift_stage_move_times(struct svi_drift_stage *s, double from, double step);

/* Between two samples; loading goes into one from svi_drift_stage_new. */
void svi_drift_stage_archive(struct svi_archive *a, struct svi_drift_stage *s);

double svi_drift_stage_memory(const struct svi_settings *settings, int d); /* bytes besides the struct */

#endif
