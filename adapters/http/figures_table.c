/* The table of metrics: each key of stats and status that holds a number. src/manual/http.md shows it, and
 * tests hold it against the counters, the quality figures and the manual.
 *
 * The name is the key, in most rows with what is counted behind it (seen: svmstream_seen_samples_total), with
 * base units: milliseconds become seconds. A figure that a verdict, or a key that is removed, may lower is a
 * gauge: a counter that falls is taken for a restart and counted from 0 again. */
#include "figures.h"

#define ROW(key, name, kind, unit, in_window, scale, text)                                                   \
    {                                                                                                        \
        key, scale, {                                                                                        \
            "svmstream", name, unit, HTTP_##kind, in_window, text                                            \
        }                                                                                                    \
    }
#define COUNTER(key, name, text)        ROW(key, name, COUNTER, NULL, false, 1, text)
#define GAUGE(key, name, text)          ROW(key, name, GAUGE, NULL, false, 1, text)
#define RATIO(key, name, text)          ROW(key, name, GAUGE, "ratio", false, 1, text)
#define BYTES(key, name, text)          ROW(key, name, GAUGE, "bytes", false, 1, text)
#define SECONDS(key, name, scale, text) ROW(key, name, GAUGE, "seconds", false, scale, text)

/* A figure of all samples and the same of the window. */
#define BOTH(key, unit, text)                                                                                \
    ROW(key, key, GAUGE, unit, false, 1, text ", over all labelled samples"),                                \
        ROW(key ".w", key, GAUGE, unit, true, 1, text ", over the window")

const struct http_figure http_figures_table[] = {
    GAUGE("epoch", "epoch", "Number of the life of the stream: it changes when the state was not kept"),
    /* samples and labels */
    COUNTER("seen", "seen_samples", "Samples accepted and scored, labelled or not"),
    COUNTER("labelled", "labelled_samples", "Samples with a label, known at once or late"),
    COUNTER("learned", "learned_samples", "Samples added to the model"),
    GAUGE("held", "held_samples", "Samples in the window now"),
    GAUGE("waiting", "waiting_samples", "Samples that wait for a label now"),
    COUNTER("labels_joined", "labels_joined", "Late labels that found their sample"),
    COUNTER("labels_expired", "labels_expired", "Samples whose label did not come within labels.ttl"),
    COUNTER("labels_evicted", "labels_evicted", "Samples that stopped waiting because of labels.max"),
    COUNTER("forgotten", "forgotten_samples", "Samples removed by their id"),
    COUNTER("refused", "refused_elements", "Elements of messages that were refused"),
    COUNTER("duplicates", "duplicate_elements", "Elements sent again by a source and not applied again"),
    COUNTER("dropped_missing", "dropped_missing_samples", "Samples left out because a value was missing"),
    COUNTER("carried_missing", "carried_missing_values",
            "Missing values taken from the sample before (missing: carry)"),
    COUNTER("filled_missing", "filled_missing_values", "Missing values replaced by a mean or by 0"),
    COUNTER("clipped", "clipped_samples", "Samples in which a number was clipped for the model"),
    GAUGE("sources", "sources", "Producers whose sequence numbers are kept"),
    GAUGE("rate", "samples_per_second", "Samples accepted recently, smoothed"),
    SECONDS("idle", "idle", 1, "Time since the last sample"),
    SECONDS("uptime", "uptime", 1, "Time since the process started"),
    /* the model */
    GAUGE("d", "features", "Columns of the model"),
    GAUGE("classes", "classes", "Classes seen so far"),
    COUNTER("model_version", "model_changes", "Changes of the weights: the version of the online model"),
    COUNTER("rebuilds", "rebuilds", "Rebuilds of the inverse matrix from the window"),
    COUNTER("rebuilds_unplanned", "rebuilds_unplanned", "Rebuilds because rounding errors grew"),
    COUNTER("window_reads", "window_reads", "Passes over the window that check and correct the weights"),
    RATIO("residual", "residual", "Relative error of the inverse matrix before the last planned rebuild"),
    GAUGE("condition", "condition_number", "Condition number of the Gram matrix, estimated at a rebuild"),
    COUNTER("published_models", "published_models", "Events on the model topic"),
    COUNTER("published_scores", "published_scores", "Events on the score topic"),
    COUNTER("refits", "refits", "Refits of the window that took effect"),
    COUNTER("refits_failed", "refits_failed", "Refits that failed"),
    COUNTER("refits_skipped", "refits_skipped", "Refits that were due while one ran, or had nothing to do"),
    COUNTER("refits_discarded", "refits_discarded", "Refits discarded because of a new class or a reset"),
    GAUGE("refit_at", "refit_at_sample", "Number of the sample after which the last refit took effect"),
    GAUGE("refit_iterations", "refit_iterations", "Iterations of the solver in the last refit"),
    GAUGE("refit_objective", "refit_objective", "Training objective of the last refit"),
    GAUGE("refit_gap", "refit_gap", "Duality gap of the last refit, in units of its objective"),
    SECONDS("refit_milliseconds", "refit_duration", 1e-3, "Time of the solver in the last refit"),
    COUNTER("merged_models", "merged_models", "Models of a merge that took the place of the refit"),
    COUNTER("merged_refused", "merged_refused", "Merged models that were refused since the process began"),
    SECONDS("merged_age", "merged_age", 1, "Since the last merged model took effect"),
    RATIO("accuracy_online", "accuracy_online", "Accuracy of the online model where a refit was scored too"),
    RATIO("accuracy_refit", "accuracy_refit", "Accuracy of the refit over the same samples"),
    COUNTER("tree_fits", "tree_fits", "Fits of boosted trees that were taken up"),
    COUNTER("tree_waits", "tree_waits", "Fits of boosted trees that the stream waited for"),
    ROW("tree_wait_seconds", "tree_wait", COUNTER, "seconds", false, 1,
        "Time that the stream waited for fits of boosted trees"),
    SECONDS("tree_wait_longest", "tree_wait_longest", 1, "Longest wait for a fit of boosted trees"),
    /* alerts */
    COUNTER("alerts", "alerts", "Alerts of novelty that were opened"),
    COUNTER("alerts_suppressed", "alerts_suppressed_samples",
            "Samples that alert.cooldown kept from opening an alert"),
    GAUGE("alert_open", "alert_open", "Alerts of novelty that are open now, 0 or 1"),
    GAUGE("alerts_true", "alerts_true", "Alerts that a person called true"),
    GAUGE("alerts_false", "alerts_false", "Alerts that a person called false"),
    RATIO("alert_precision", "alert_precision", "True alerts of those with a verdict"),
    GAUGE("alert_budget", "alert_budget_per_day", "Alerts a day that alert.budget allows, 0: no limit"),
    GAUGE("alerts_per_day", "alerts_per_day", "Alerts opened a day so far"),
    GAUGE("alert_level", "alert_level", "-log10 of the p with which a whole row opens an alert"),
    COUNTER("quality_alerts", "quality_alerts", "Alerts of quality that were opened"),
    GAUGE("quality_alert_open", "quality_alert_open", "Alerts of quality that are open now, 0 or 1"),
    COUNTER("rule_alerts", "rule_alerts", "Alerts of rules that were opened"),
    GAUGE("rule_alerts_open", "rule_alerts_open", "Alerts of rules that are open now"),
    GAUGE("novelty_points", "novelty_points", "Samples in the active set of the novelty model now"),
    COUNTER("novelty_added", "novelty_added_samples", "Samples that joined the active set"),
    COUNTER("novelty_refused", "novelty_refused_samples",
            "Samples that novelty.learn kept out of the novelty model"),
    COUNTER("novelty_held_out", "novelty_held_out_samples",
            "Samples not used for calibration because an alert had lasted"),
    GAUGE("novelty_calibration", "novelty_calibration_scores", "Scores that p-values are compared with now"),
    COUNTER("novelty_refreshes", "novelty_refreshes", "Refreshes of the scales of the novelty model"),
    GAUGE("novelty_level", "novelty_level", "Novelty above which p is at most alert.p"),
    GAUGE("smallest_p", "smallest_p", "Smallest p of a sample since the previous stats"),
    GAUGE("smallest_p_level", "smallest_p_level", "The p with which a whole row opens an alert now"),
    /* streams with keys */
    GAUGE("keys", "keys", "Keys of the stream now"),
    GAUGE("keys_in_memory", "keys_in_memory", "Keys whose models are in memory"),
    COUNTER("keys_alerts", "keys_alerts", "Alerts that were opened in all keys"),
    GAUGE("keys_alerts_open", "keys_alerts_open", "Alerts that are open now in all keys"),
    RATIO("keys_accuracy", "keys_accuracy", "Samples of all keys that were predicted correctly"),
    GAUGE("keys_rmse", "keys_rmse", "Root of the mean squared error over the samples of all keys"),
    GAUGE("prior_keys_excluded", "prior_keys_excluded", "Keys too far from all others for the shared model"),
    GAUGE("prior_rows_excluded", "prior_excluded_samples", "Samples held that are not in the shared model"),
    GAUGE("prior_merged", "prior_is_merged", "1: new keys begin with what the keys of all machines hold"),
    /* the process */
    BYTES("memory_predicted", "memory_predicted",
          "Memory that the process needs at most at its present sizes"),
    COUNTER("handshakes_refused", "handshakes_refused", "Connections that were refused"),
    GAUGE("connections", "connections", "Connections of all sockets that are open now"),
    SECONDS("latency_p50", "latency_p50", 1,
            "Median time from a message to its events, since the previous stats"),
    SECONDS("latency_p99", "latency_p99", 1, "99th percentile of that time"),
    GAUGE("turn_mean", "turn_mean_messages", "Mean number of messages in a turn, since the previous stats"),
    GAUGE("turn_max", "turn_max_messages", "Largest number of messages in a turn, since the previous stats"),
    COUNTER("replies_lost", "replies_lost", "Replies that could not be delivered"),
    COUNTER("declined", "declined_messages", "Messages to be sent again because disk or memory was full"),
    COUNTER("journal_records", "journal_records", "Records written to the journal"),
    BYTES("journal_bytes", "journal", "Bytes written to the journal since the process started"),
    GAUGE("journal_undurable", "journal_undurable_records", "Records written and not on disk yet"),
    SECONDS("journal_age", "journal_age", 1, "Age of the oldest record that is not on disk, 0: all are"),
    COUNTER("checkpoints", "checkpoints", "Checkpoints written by this process"),
    COUNTER("checkpoints_failed", "checkpoints_failed", "Checkpoints that could not be written"),
    GAUGE("checkpoint_age", "checkpoint_age_records", "Records after the last checkpoint"),
    SECONDS("checkpoint_milliseconds", "checkpoint_pause", 1e-3,
            "How long the last checkpoint held up the stream"),
    SECONDS("sums_milliseconds", "sums_pause", 1e-3,
            "How long the last sums of the window held up the stream"),
    BYTES("disk_free", "disk_free", "Free space where the state is kept"),
    BYTES("disk_size", "disk_size", "Size of the file system where the state is kept"),
    /* quality of a classifier */
    BOTH("accuracy", "ratio", "Samples predicted correctly"),
    BOTH("accuracy_majority", "ratio", "Accuracy of always answering the commonest class"),
    BOTH("accuracy_no_change", "ratio", "Accuracy of repeating the previous label"),
    BOTH("balanced_accuracy", "ratio", "Mean recall of the classes"),
    BOTH("precision_macro", "ratio", "Mean precision of the classes"),
    BOTH("recall_macro", "ratio", "Mean recall of the classes, an unknown one as 0"),
    BOTH("precision_weighted", "ratio", "Precision of the classes weighted by their frequency"),
    BOTH("kappa", NULL, "Cohen's kappa"),
    BOTH("kappa_t", NULL, "Kappa against repeating the previous label"),
    BOTH("f1", NULL, "Mean F1 score of the classes"),
    BOTH("f1_weighted", NULL, "F1 score of the classes weighted by their frequency"),
    BOTH("gmean", NULL, "Geometric mean of the recalls"),
    BOTH("auc", NULL, "Area under the ROC curve, with two classes"),
    BOTH("ap", NULL, "Average precision, with two classes"),
    BOTH("logloss", NULL, "Mean of -ln of the probability of the true class, in nats"),
    BOTH("brier", NULL, "Brier score of the probabilities"),
    BOTH("ece", NULL, "Expected calibration error of the probabilities"),
    /* quality of a regression, in the unit of the target */
    BOTH("mae", NULL, "Mean absolute error"),
    BOTH("rmse", NULL, "Root of the mean squared error"),
    BOTH("rmse_no_change", NULL, "RMSE of repeating the previous target"),
    BOTH("rmse_mean", NULL, "RMSE of the mean of the targets so far"),
    BOTH("r2", NULL, "Coefficient of determination"),
    BOTH("coverage", "ratio", "Targets inside their interval"),
    GAUGE("interval_width", "interval_width", "Mean width of the intervals"),
    {.key = NULL},
};

_Static_assert(sizeof http_figures_table / sizeof *http_figures_table <= HTTP_FIGURES_MAX + 1,
               "raise HTTP_FIGURES_MAX");

#define CLASS_BOTH(key, name, unit, text)                                                                    \
    ROW(key, name, GAUGE, unit, false, 1, text ", over all labelled samples"),                               \
        ROW(key ".w", name, GAUGE, unit, true, 1, text ", over the window")

const struct http_figure http_figures_classes[] = {
    ROW("support", "class_samples", COUNTER, NULL, false, 1, "Samples with this label"),
    ROW("support.w", "class_samples", GAUGE, NULL, true, 1, "Samples with this label in the window"),
    ROW("predicted", "class_predicted_samples", COUNTER, NULL, false, 1, "Samples decided for this class"),
    ROW("predicted.w", "class_predicted_samples", GAUGE, NULL, true, 1,
        "Samples of the window decided for this class"),
    CLASS_BOTH("precision", "class_precision", "ratio", "Decisions for the class that were right"),
    CLASS_BOTH("recall", "class_recall", "ratio", "Samples of the class that were found"),
    CLASS_BOTH("f1", "class_f1", NULL, "Harmonic mean of precision and recall of the class"),
    {.key = NULL},
};

_Static_assert(sizeof http_figures_classes / sizeof *http_figures_classes <= HTTP_CLASS_FIGURES_MAX + 1,
               "raise HTTP_CLASS_FIGURES_MAX");

/* Read by name in figures.c, or no figure: errors repeats refused, and the confusion matrices, of which stats
 * have none, grow with the square of the classes. */
const char *const http_figures_others[] = {"ok",        "v",           "stream",          "seq",
                                           "ts",        "key",         "version",         "errors",
                                           "serving",   "refit_error", "novelty_error",   "by_class",
                                           "confusion", "confusion.w", "latency_buckets", "addresses",
                                           "curve",     NULL};

const struct http_family http_figures_latency = {
    .prefix = "svmstream",
    .name = "latency",
    .unit = "seconds",
    .type = HTTP_HISTOGRAM,
    .help = "Time from the receipt of a message to its events",
};
