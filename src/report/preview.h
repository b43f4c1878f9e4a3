/* preview.h: shows what alerts there would have been, before they are switched on: the alerts line by line, a
 * summary, results against marked incidents, a table over budgets, a plot.
 *
 * The caller owns the rows: it supplies a function that runs a stream over all of them with the alerts of one
 * budget. That is called once with the settings as they are, and once for each budget of the table. */
#ifndef SVI_PREVIEW_H
#define SVI_PREVIEW_H

#include "config/settings.h"
#include "fleet/stream.h"
#include "report/alert_log.h"

#define SVI_PREVIEW_BUDGETS     "1/week,3/week,1/day,3/day" /* default budgets of the table */
#define SVI_PREVIEW_BUDGETS_MAX 32
#define SVI_PREVIEW_BUDGET      32 /* bytes of one budget, with the NUL */

struct svi_preview_options {
    const char *incidents; /* a file (incidents.h); NULL = none */
    double tolerance;      /* seconds or rows; NAN: not given */
    const char *budgets;   /* comma-separated, or "none"; NULL: the default ones if there are incidents */
    const char *plot;      /* a file, NULL = none */
    double row_seconds;    /* seconds a row if samples have no times; NAN: not given */
    bool json, quiet;
    bool once; /* the rows can be read only once: no table */
};

/* Runs the stream over all rows with this budget (NULL: that of the settings), and passes every event to
 * svi_alert_log_take. Where log->silent, the same rows come again, and what was reported of them is not
 * repeated. Must call svi_preview_without_times before the first event if samples have no times,
 * and svi_preview_end_pass after the last one. */
typedef svs_code svi_preview_pass(void *user, const char *budget, struct svi_alert_log *log, svs_error *err);

/* The result of one pass. */
struct svi_preview_result {
    char budget[SVI_PREVIEW_BUDGET];
    int64_t alerts, outside; /* outside: false alerts, in no incident */
    double rate, false_rate; /* a day or, if the duration is not known, per 1,000 rows; NAN = none */
    double precision;        /* share of alerts that are not false; NAN = no alerts */
    struct svi_incident_figures incidents;
};

/* Zero-initialised is empty. */
struct svi_preview {
    struct svi_preview_options o;
    struct svi_incidents incidents;
    char budgets[SVI_PREVIEW_BUDGETS_MAX][SVI_PREVIEW_BUDGET];
    int budget_count;
    char set[SVI_PREVIEW_BUDGET]; /* budget of the settings, if known: not run twice; else "" */
    struct svi_preview_result result[1 + SVI_PREVIEW_BUDGETS_MAX]; /* by the settings, then by each budget */
    struct svi_alert_log log;                                      /* reused by all passes */
    struct svi_alert_plot *plots;                                  /* [plot_count] */
    int plot_count;
    struct svi_bytes json;
};

/* Reads the incidents and parses the budgets. `s`: the settings against which budgets are checked; NULL: not
 * known yet. SVS_SETTING, codes of svi_incidents_read. */
svs_code svi_preview_begin(struct svi_preview *l, const struct svi_preview_options *o,
                           const struct svi_settings *s, svs_error *err);

/* Runs all passes. Prints on standard output or, with `json`, leaves one msgpack map in l->json. SVS_INVALID:
 * no incident overlaps the rows; SVS_NO_MEMORY, codes of svi_alert_plot_write and of the passes. */
svs_code svi_preview_run(struct svi_preview *l, svi_preview_pass *pass, void *user,
                         struct svi_progress *progress, svs_error *err);
void svi_preview_clear(struct svi_preview *l);

/* For passes, see svi_preview_pass. SVS_SETTING: the incidents have times, but the rows have none. */
svs_code svi_preview_without_times(struct svi_alert_log *log, svs_error *err);
void svi_preview_end_pass(struct svi_alert_log *log, svi_stream *stream);

#endif
