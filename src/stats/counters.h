/* counters.h: what the engine counts, as one list: the stats topic, `ctl status`, the README's table and the
 * tests all come from it. */
#ifndef SVI_COUNTERS_H
#define SVI_COUNTERS_H

#include "svmstream/error.h"
#include "wire/event.h"

/* X(CONSTANT, name, kind, "unit", "sentence"); kind COUNT: a whole number in as.count; NUMBER: as.number, NAN
 * = not known. */
#define SVI_COUNTERS(X)                                                                                      \
    X(SEEN, seen, COUNT, "samples", "accepted and scored, labelled or not")                                  \
    X(LABELLED, labelled, COUNT, "samples", "whose label was known at once or came late")                    \
    X(LEARNED, learned, COUNT, "samples", "added to the model so far, never lowered")                        \
    X(HELD, held, COUNT, "samples", "labelled ones in the window now")                                       \
    X(WAITING, waiting, COUNT, "samples", "that wait for a label now")                                       \
    X(LABELS_JOINED, labels_joined, COUNT, "labels", "that came late and found their sample")                \
    X(LABELS_EXPIRED, labels_expired, COUNT, "samples", "whose label did not come in time")                  \
    X(LABELS_EVICTED, labels_evicted, COUNT, "samples",                                                      \
      "that stopped waiting because labels.max was reached")                                                 \
    X(FORGOTTEN, forgotten, COUNT, "samples", "taken out by their id")                                       \
    X(REBUILDS, rebuilds, COUNT, "rebuilds", "of the inverse from the window, planned or not")               \
    X(ALARMS, alarms, COUNT, "rebuilds", "of these unplanned: rounding had to be stopped")                   \
    X(RESIDUAL, residual, NUMBER, "", "of the inverse just before the last planned rebuild")                 \
    X(CONDITION, condition, NUMBER, "", "estimate of the Gram matrix' condition after the last rebuild")     \
    X(REFUSED, refused, COUNT, "elements",                                                                   \
      "refused, with an error event each; refused.CODE tells the cause")                                     \
    X(DUPLICATES, duplicates, COUNT, "elements", "sent again by a source and not applied again")             \
    X(DROPPED_MISSING, dropped_missing, COUNT, "samples",                                                    \
      "left out because a value was missing (missing: drop)")                                                \
    X(CARRIED_MISSING, carried_missing, COUNT, "values",                                                     \
      "that were missing and taken from the sample before (missing: carry)")                                 \
    X(ALERTS, alerts, COUNT, "alerts", "opened so far")                                                      \
    X(ALERTS_SUPPRESSED, alerts_suppressed, COUNT, "samples", "that alert.cooldown kept from opening one")   \
    X(ALERT_OPEN, alert_open, COUNT, "alerts", "open now: 0 or 1")                                           \
    X(NOVELTY_POINTS, novelty_points, COUNT, "samples", "in the novelty model's active set now")             \
    X(NOVELTY_JOINED, novelty_joined, COUNT, "samples", "that joined it so far")                             \
    X(NOVELTY_REFUSED, novelty_refused, COUNT, "samples", "that novelty.learn kept out of the model")        \
    X(NOVELTY_HELD_OUT, novelty_held_out, COUNT, "samples",                                                  \
      "that did not calibrate because an alert had lasted")                                                  \
    X(NOVELTY_CALIBRATION, novelty_calibration, COUNT, "scores", "that p-values compare with now")           \
    X(NOVELTY_RENEWALS, novelty_renewals, COUNT, "renewals", "of the novelty model's scales and widths")     \
    X(NOVELTY_LEVEL, novelty_level, NUMBER, "", "novelty above which p is at most alert.p")                  \
    X(D, d, COUNT, "features", "columns of the model")                                                       \
    X(CLASSES, classes, COUNT, "classes", "seen so far")                                                     \
    X(SOURCES, sources, COUNT, "sources", "producers whose sequence numbers are kept")                       \
    X(MODEL_VERSION, model_version, COUNT, "changes", "of the weights so far")                               \
    X(PUBLISHED_MODELS, published_models, COUNT, "events", "on the model topic")                             \
    X(PUBLISHED_SCORES, published_scores, COUNT, "events", "on the score topic")                             \
    X(REFITS, refits, COUNT, "refits", "of the window that took effect")                                     \
    X(REFITS_FAILED, refits_failed, COUNT, "refits", "that failed; refit_error tells why the last one did")  \
    X(REFITS_SKIPPED, refits_skipped, COUNT, "refits", "that were due while one ran, or with nothing to do") \
    X(REFITS_OVERTAKEN, refits_overtaken, COUNT, "refits",                                                   \
      "given up because the classes or the stream changed")                                                  \
    X(REFIT_AT, refit_at, COUNT, "samples", "after which the last refit took effect")                        \
    X(REFIT_ITERATIONS, refit_iterations, COUNT, "", "of the last refit's solver")                           \
    X(REFIT_OBJECTIVE, refit_objective, NUMBER, "", "of the last refit")                                     \
    X(REFIT_GAP, refit_gap, NUMBER, "", "that the last refit's certificate leaves")                          \
    X(REFIT_MILLISECONDS, refit_milliseconds, NUMBER, "ms", "that the last refit's solver took")             \
    X(ACCURACY_ONLINE, accuracy_online, NUMBER, "", "of the online model over samples that both scored")     \
    X(ACCURACY_REFIT, accuracy_refit, NUMBER, "", "of the refit over the same samples")                      \
    X(RATE, rate, NUMBER, "samples/s", "accepted lately")                                                    \
    X(UPTIME, uptime, NUMBER, "s", "since the first call")                                                   \
    X(MEMORY_PREDICTED, memory_predicted, NUMBER, "bytes", "that the engine holds at most at these sizes")

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
    (SVI_COUNTER_COUNT + SVS_CODE_COUNT) /* room that svi_counters_figures needs at most */

/* All counters in the order of the list, then refused.CODE for each code that occurred. Returns how many. */
int svi_counters_figures(const struct svi_counters *c, struct svi_figure *out);

#endif
