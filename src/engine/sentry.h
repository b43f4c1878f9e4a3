/* sentry.h: the novelty model and its alerts as the engine sees them: each accepted sample is judged, an
 * alert may change, and the sample is perhaps learned; all of it a function of the samples alone. */
#ifndef SVI_SENTRY_H
#define SVI_SENTRY_H

#include "base/archive.h"
#include "data/message.h"
#include "engine/settings.h"
#include "novelty/alert.h"
#include "novelty/detector.h"
#include "novelty/lags.h"

#define SVI_SENTRY_COLUMNS 4096 /* features x lags at most */

/* Room for one sample of d features and its lags. */
struct svi_sentry_rows {
    int d;                   /* features, those to come included */
    struct svi_lags history; /* the last samples */
    double *x;               /* d: the sample, widened by zeros */
    double *row;             /* d x lags: what is judged */
    double *adds;            /* d x lags: what each column adds to the surprise */
};

struct svi_sentry {
    bool on;
    struct svi_detector_options options;
    int lags;
    bool differences;
    svi_detector *detector; /* NULL before the first sample */
    struct svi_sentry_rows rows;
    struct svi_alert alert;
    bool judged;                    /* the last sample was */
    struct svi_judgement judgement; /* of it */
    double grade;
    int64_t refused;
    char reason[SVS_ERROR_TEXT]; /* why it went off; "" = it did not */
};

struct svi_engine;

/* What the settings say about the detector; d: columns, lags included. SVS_SETTING. */
svs_code svi_sentry_options(const struct svi_settings *settings, int d, struct svi_detector_options *o,
                            svs_error *err);

svs_code svi_sentry_new(struct svi_sentry *s, const struct svi_settings *settings, svs_error *err);
void svi_sentry_free(struct svi_sentry *s);
void svi_sentry_configure(struct svi_sentry *s, const struct svi_settings *settings); /* alert.* of now */
void svi_sentry_reset(struct svi_sentry *s); /* as new, but for the counters */

/* Makes room for a sample's columns, before anything is done with it. A stream of too many columns goes on
 * without novelty, and the stats say why. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_sentry_reserve(struct svi_sentry *s, const struct svi_message *m, svs_error *err);

/* A detector for d features, d x lags <= SVI_SENTRY_COLUMNS: a new one, or the old one with more columns.
 * SVS_NO_MEMORY: nothing has changed. */
svs_code svi_sentry_build(struct svi_sentry *s, int d, svs_error *err);

/* Between two samples; loading goes into one from svi_sentry_new. */
void svi_sentry_archive(struct svi_archive *a, struct svi_sentry *s);

/* A sample was left out: what comes next does not follow on what came before. */
void svi_sentry_gap(struct svi_sentry *s);

/* An alert that is open ends without a sample, and says why: reset, or no novelty any more. */
void svi_sentry_end(struct svi_engine *e, const char *why);

/* Judges an accepted sample for which there is room. Returns what it did to the alert. */
enum svi_alert_change svi_sentry_judge(struct svi_sentry *s, const struct svi_message *m, double time);

/* Sends the event of that change, if there is one. */
void svi_sentry_tell(struct svi_engine *e, const struct svi_message *m, enum svi_alert_change change);

/* Lets the sample be learned, after it was judged and told. */
void svi_sentry_learn(struct svi_sentry *s, const struct svi_message *m);

/* Bytes at most for d features; where columns may still come, up to twice as many (16 at least) have room. */
double svi_sentry_memory(const struct svi_settings *s, int d);

#endif
