/* look.h: what alerts would have been, before they are switched on: the lines, a summary, how they do against
 * marked incidents, a table over budgets, a picture.
 *
 * The rows are the caller's: it gives a function that runs an engine over all of them with the alerts of one
 * budget, which is called once for the alerts as they are set and once for each budget of the table. */
#ifndef SVI_PREVIEW_H
#define SVI_PREVIEW_H

#include "config/settings.h"
#include "fleet/stream.h"
#include "report/alert_log.h"

#define SVI_LOOK_BUDGETS     "1/week,3/week,1/day,3/day" /* of the table, where none are named */
#define SVI_LOOK_BUDGETS_MAX 32
#define SVI_LOOK_BUDGET      32 /* bytes of one */

struct svi_preview_options {
    const char *incidents; /* a file (incidents.h), NULL = none */
    double tolerance;      /* seconds or rows; NAN: none was given */
    const char *budgets;   /* separated by commas, or none; NULL: the usual ones where there are incidents */
    const char *plot;      /* a file, NULL = none */
    double row_seconds;    /* from row to row where samples have no times; NAN: none was given */
    bool json, quiet;
    bool once; /* the rows come only once: there is no table */
};

/* Runs the stream over all rows, with this budget instead of that of the settings (NULL: with that), and
 * gives every event to svi_alert_log_take. Before the first one, where samples have no times,
 * svi_preview_without_times is called; after the last one svi_preview_end_pass. */
typedef svs_code svi_preview_pass(void *user, const char *budget, struct svi_alert_log *log, svs_error *err);

/* What became of one pass. */
struct svi_preview_result {
    char budget[SVI_LOOK_BUDGET];
    int64_t alerts, outside; /* outside: false ones, in no incident */
    double rate, false_rate; /* a day or, where days are not known, per 1,000 rows; NAN = none */
    double precision;        /* share of the alerts that are not false; NAN = there are none */
    struct svi_incident_figures incidents;
};

/* Zero-initialised is empty. */
struct svi_preview {
    struct svi_preview_options o;
    struct svi_incidents incidents;
    char budgets[SVI_LOOK_BUDGETS_MAX][SVI_LOOK_BUDGET];
    int budget_count;
    char set[SVI_LOOK_BUDGET]; /* of the settings, where they were known: it is not run twice; else "" */
    struct svi_preview_result result[1 + SVI_LOOK_BUDGETS_MAX]; /* as it is set, then by budget */
    struct svi_alert_log log;                                   /* of the first pass, then of the others */
    struct svi_alert_plot *plot;
    struct svi_bytes json;
};

/* Reads the incidents and takes the budgets apart. `s`: the settings that they will be part of, and are held
 * against, NULL: not yet. SVS_SETTING, codes of svi_incidents_read. */
svs_code svi_preview_begin(struct svi_preview *l, const struct svi_preview_options *o,
                           const struct svi_settings *s, svs_error *err);

/* All passes. Prints on standard output or, with `json`, leaves one map of msgpack in l->json. SVS_INVALID:
 * no incident lies where rows are; SVS_NO_MEMORY, codes of svi_alert_plot_write and of the passes. */
svs_code svi_preview_run(struct svi_preview *l, svi_preview_pass *pass, void *user,
                         struct svi_progress *progress, svs_error *err);
void svi_preview_clear(struct svi_preview *l);

/* For passes. SVS_SETTING: the incidents have times. */
svs_code svi_preview_without_times(struct svi_alert_log *log, svs_error *err);
void svi_preview_end_pass(struct svi_alert_log *log, svi_stream *stream);

#endif
