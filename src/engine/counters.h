/* counters.h: the counters of an engine as one list, from which the stats topic, `ctl status`, the manual's
 * protocol page and the tests are generated. */
#ifndef SVI_COUNTERS_H
#define SVI_COUNTERS_H

#include "base/figure.h"
#include "svmstream/error.h"

/* X(CONSTANT, name, kind, "unit", "sentence"); kind COUNT: a whole number in as.count; NUMBER: as.number, NAN
 * = not known. */
#define SVI_COUNTERS(X)                                                                                      \
    X(SEEN, seen, COUNT, "samples", "accepted and scored, labelled or not")                                  \
    X(LABELLED, labelled, COUNT, "samples", "of these with a label, known at once or late")                  \
    X(LEARNED, learned, COUNT, "samples", "added to the model so far; removals do not lower it")             \
    X(HELD, held, COUNT, "samples", "in the window now")                                                     \
    X(WAITING, waiting, COUNT, "samples", "waiting for a label now")                                         \
    X(LABELS_JOINED, labels_joined, COUNT, "labels", "late labels that found their sample")                  \
    X(LABELS_EXPIRED, labels_expired, COUNT, "samples", "whose label did not come within labels.ttl")        \
    X(LABELS_EVICTED, labels_evicted, COUNT, "samples",                                                      \
      "that stopped waiting because labels.max was reached")                                                 \
    X(FORGOTTEN, forgotten, COUNT, "samples", "removed by their id")                                         \
    X(REBUILDS, rebuilds, COUNT, "rebuilds", "of the inverse matrix from the window, planned or not")        \
    X(REBUILDS_UNPLANNED, rebuilds_unplanned, COUNT, "rebuilds",                                             \
      "of these unplanned, because rounding errors grew")                                                    \
    X(WINDOW_READS, window_reads, COUNT, "passes",                                                           \
      "over the window to see how exact the weights are, and to correct them")                               \
    X(RESIDUAL, residual, NUMBER, "",                                                                        \
      "relative error of the inverse matrix just before the last planned rebuild, |G P v - v| / |v| for a "  \
      "fixed v")                                                                                             \
    X(CONDITION, condition, NUMBER, "",                                                                      \
      "estimate of the condition number of the Gram matrix after the last rebuild")                          \
    X(REFUSED, refused, COUNT, "elements",                                                                   \
      "refused, with an error event each; refused.CODE has the number for each cause")                       \
    X(DUPLICATES, duplicates, COUNT, "elements", "sent again by a source and not applied again")             \
    X(DROPPED_MISSING, dropped_missing, COUNT, "samples",                                                    \
      "left out because a value was missing (missing: drop)")                                                \
    X(CARRIED_MISSING, carried_missing, COUNT, "values",                                                     \
      "missing and taken from the sample before (missing: carry)")                                           \
    X(FILLED_MISSING, filled_missing, COUNT, "values",                                                       \
      "missing and replaced by the mean of the held samples or by 0 (missing: mean, zero)")                  \
    X(CLIPPED, clipped, COUNT, "samples", "in which a number was clipped for the model (outlier: clip)")     \
    X(ALERTS, alerts, COUNT, "alerts", "opened so far")                                                      \
    X(ALERTS_SUPPRESSED, alerts_suppressed, COUNT, "samples",                                                \
      "that alert.cooldown kept from opening an alert")                                                      \
    X(ALERT_OPEN, alert_open, COUNT, "alerts", "open now: 0 or 1")                                           \
    X(ALERTS_TRUE, alerts_true, COUNT, "alerts", "that a person called true")                                \
    X(ALERTS_FALSE, alerts_false, COUNT, "alerts", "that a person called false")                             \
    X(ALERT_PRECISION, alert_precision, NUMBER, "share, 0 to 1", "true ones of those with a verdict")        \
    X(ALERT_BUDGET, alert_budget, NUMBER, "alerts/day", "that alert.budget allows; 0: none")                 \
    X(ALERTS_PER_DAY, alerts_per_day, NUMBER, "alerts/day",                                                  \
      "opened so far, by the time that alert.budget uses")                                                   \
    X(ALERT_LEVEL, alert_level, NUMBER, "-log10 p",                                                          \
      "with which a whole row opens an alert under alert.budget")                                            \
    X(SMALLEST_P_LEVEL, smallest_p_level, NUMBER, "p",                                                       \
      "at which a row opens an alert: 10^-alert_level under alert.budget, else alert.p")                     \
    X(QUALITY_ALERTS, quality_alerts, COUNT, "alerts", "of quality, opened so far")                          \
    X(QUALITY_ALERT_OPEN, quality_alert_open, COUNT, "alerts", "of quality, open now: 0 or 1")               \
    X(RULE_ALERTS, rule_alerts, COUNT, "alerts", "of rules, opened so far")                                  \
    X(RULE_ALERTS_OPEN, rule_alerts_open, COUNT, "alerts", "of rules, open now")                             \
    X(NOVELTY_POINTS, novelty_points, COUNT, "samples", "in the active set of the novelty model now")        \
    X(NOVELTY_ADDED, novelty_added, COUNT, "samples", "that joined the active set so far")                   \
    X(NOVELTY_REFUSED, novelty_refused, COUNT, "samples",                                                    \
      "that novelty.learn kept out of the novelty model")                                                    \
    X(NOVELTY_HELD_OUT, novelty_held_out, COUNT, "samples",                                                  \
      "that were not used for calibration because an alert had lasted")                                      \
    X(NOVELTY_CALIBRATION, novelty_calibration, COUNT, "scores", "that p-values are compared with now")      \
    X(NOVELTY_REFRESHES, novelty_refreshes, COUNT, "refreshes",                                              \
      "of the scales and kernel widths of the novelty model")                                                \
    X(NOVELTY_LEVEL, novelty_level, NUMBER, "", "novelty above which p is at most alert.p")                  \
    X(D, d, COUNT, "features", "columns of the model")                                                       \
    X(CLASSES, classes, COUNT, "classes", "seen so far")                                                     \
    X(SOURCES, sources, COUNT, "sources", "producers whose sequence numbers are kept")                       \
    X(MODEL_VERSION, model_version, COUNT, "changes",                                                        \
      "of the weights so far: the version of the online model")                                              \
    X(PUBLISHED_MODELS, published_models, COUNT, "events", "on the model topic")                             \
    X(PUBLISHED_SCORES, published_scores, COUNT, "events", "on the score topic")                             \
    X(REFITS, refits, COUNT, "refits", "of the window that took effect")                                     \
    X(REFITS_FAILED, refits_failed, COUNT, "refits",                                                         \
      "that failed; refit_error has the reason of the last one")                                             \
    X(REFITS_SKIPPED, refits_skipped, COUNT, "refits", "that were due while one ran, or with nothing to do") \
    X(REFITS_DISCARDED, refits_discarded, COUNT, "refits",                                                   \
      "discarded because a new class arrived or the stream was reset")                                       \
    X(REFIT_AT, refit_at, COUNT, "samples",                                                                  \
      "number of the sample after which the last refit, or merged model, took effect; 0 = none")             \
    X(REFIT_ITERATIONS, refit_iterations, COUNT, "iterations", "of the solver in the last refit")            \
    X(REFIT_OBJECTIVE, refit_objective, NUMBER, "", "training objective of the last refit")                  \
    X(REFIT_GAP, refit_gap, NUMBER, "", "duality gap of the last refit, in units of its objective")          \
    X(REFIT_MILLISECONDS, refit_milliseconds, NUMBER, "ms", "time of the solver in the last refit")          \
    X(MERGED_MODELS, merged_models, COUNT, "models", "of merge.from that took the place of the refit")       \
    X(ACCURACY_ONLINE, accuracy_online, NUMBER, "share, 0 to 1",                                             \
      "accuracy of the online model over the last samples that both models scored, up to 1000")              \
    X(ACCURACY_REFIT, accuracy_refit, NUMBER, "share, 0 to 1",                                               \
      "accuracy of the refit, or the merged model, over the same samples; of values the share of "           \
      "samples in which it was at least as close")                                                           \
    X(TREE_FITS, tree_fits, COUNT, "fits", "of boosted trees that were taken up (method auto)")              \
    X(TREE_WAITS, tree_waits, COUNT, "fits", "of these that were not ready in time: the stream waited")      \
    X(TREE_WAIT_SECONDS, tree_wait_seconds, NUMBER, "s", "that the stream waited for them in total")         \
    X(TREE_WAIT_LONGEST, tree_wait_longest, NUMBER, "s", "that it waited at most at once")                   \
    X(RATE, rate, NUMBER, "samples/s", "accepted recently, smoothed")                                        \
    X(UPTIME, uptime, NUMBER, "s", "since the first stats or status")                                        \
    X(MEMORY_PREDICTED, memory_predicted, NUMBER, "bytes",                                                   \
      "that the process needs at most at its current sizes: engine, checkpoint, turn, and the queues of "    \
      "producers with the largest message so far")

enum svi_counter {
#define X(constant, name, kind, unit, text) SVI_COUNTER_##constant,
    SVI_COUNTERS(X)
#undef X
        SVI_COUNTER_COUNT
};

/* One row of the list, for help and tests. */
struct svi_counter_row {
    const char *name;
    int kind; /* SVI_COUNT or SVI_NUMBER */
    const char *unit, *text;
};

extern const struct svi_counter_row svi_counter_table[SVI_COUNTER_COUNT];

union svi_amount {
    int64_t count;
    double number;
};

/* Zero-initialised is empty. */
struct svi_counters {
    union svi_amount of[SVI_COUNTER_COUNT];
    int64_t refused[SVS_CODE_COUNT];
};

#define SVI_COUNTERS_FIGURES                                                                                 \
    (SVI_COUNTER_COUNT + SVS_CODE_COUNT) /* largest result of svi_counters_figures                           \
                                          */

/* Writes all counters in the order of the list, then refused.CODE for each code that occurred, to `out`
 * (SVI_COUNTERS_FIGURES long). Returns their number. */
int svi_counters_figures(const struct svi_counters *c, struct svi_figure *out);

#endif
