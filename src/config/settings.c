/* The settings table, and the conversion of values from and to text.
 *
 * A row defines a setting completely: a new setting takes a field in struct svi_settings and a row
 * here (a new word also a constant). Each type has one setter, which parses the text and refuses
 * values that the row does not allow. svi_settings_value is its inverse. A written value reads back
 * as the same bits, because a kept state and a settings file must restore it exactly.
 *
 * What happens at a start: the defaults are set, then the values of the file, then those of flags, all by
 * svi_settings_set. Each of them is checked alone. settings_check.c settles and checks them together later.
 * `given` records where a value is from; settling, checks and a kept state depend on that.
 *
 * The order of rows is the order of the help; nothing stored refers to their numbers. The classes of change
 * are explained in settings.h (enum svi_change_class), which is the part to read first. Reading order: the
 * table, then the setters. */
#include "config/settings.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/limits.h"
#include "base/text.h"
#include "config/rule_settings.h"
#include "data/cell.h"
#include "novelty/detector.h"
#include "svmstream/solver.h"

/* ---- the table */

#define FOREVER 1e9 /* seconds, 31 years */

/* The columns of a row: key, field, default, when it may change, allowed words or range, unit, what it does,
 * when to change it. Help shows what it does, with range and unit; the manual and the file of `config
 * default` also say when to change it. Offset and size follow from the field. The default is text, as a user
 * would write it, and passes the same setter. */
#define ROW(name, kind, field, initial, when, list, lowest, highest, of, does, change_it)                    \
    {                                                                                                        \
        .key = name, .type = SVI_SET_##kind, .change = SVI_CHANGE_##when, .value = initial, .words = list,   \
        .low = lowest, .high = highest, .unit = of, .text = does, .advice = change_it,                       \
        .offset = offsetof(struct svi_settings, field), .size = sizeof(((struct svi_settings *)0)->field)    \
    }
#define TEXT(key, field, initial, when, does, change_it)                                                     \
    ROW(key, TEXT, field, initial, when, NULL, 0, 0, "", does, change_it)
#define WORD(key, field, initial, when, words, does, change_it)                                              \
    ROW(key, CHOICE, field, initial, when, words, 0, 0, "", does, change_it)
#define INTEGER(key, field, initial, when, low, high, unit, does, change_it)                                 \
    ROW(key, INTEGER, field, initial, when, NULL, low, high, unit, does, change_it)
#define NUMBER(key, field, initial, when, low, high, unit, does, change_it)                                  \
    ROW(key, NUMBER, field, initial, when, NULL, low, high, unit, does, change_it)
#define BYTES(key, field, initial, when, low, high, unit, does, change_it)                                   \
    ROW(key, BYTES, field, initial, when, NULL, low, high, unit, does, change_it)

/* The words of a row; `value` is of no use where the field is text. */
#define WORDS(...) ((const struct svi_word[]){__VA_ARGS__, {NULL, 0}})

static const struct svi_word no_yes[] = {{"no", false}, {"yes", true}, {NULL, 0}};

/* The last one has no word, which ends the list. */
#define X(constant, name, word, binds, replies, text) {word, constant},
static const struct svi_word in_modes[] = {SVI_INTAKES(X)};
#undef X
#define X(constant, name, word, binds, replies, text) text

const struct svi_setting svi_settings_table[] = {
    /* Addresses of this process. They are START rows, which a kept state does not record: each start gives
     * them again. `in` alone has the word `-`, which is no address. */
    ROW("in", ADDRESS, in, "tcp://127.0.0.1:5555", START, WORDS({"-", 0}), 0, 0, "",
        "address of the samples; - is standard input",
        "Change the port when it is taken; use - for files and pipes."),
    WORD("in.mode", in_mode, "pull", START, in_modes, "type of the input socket: " SVI_INTAKES(X),
         "Set router when no sample may be lost, and sub when the source publishes."),
#undef X
    ROW("in.format", TEXT, in_format, "auto", START,
        WORDS({"auto", 0}, {"csv", 0}, {"libsvm", 0}, {"jsonl", 0}, {"vw", 0}, {"msgpack", 0}), 0, 0, "",
        "format of text input; auto decides by the file name and the first line",
        "Set it when auto reads a file as the wrong format."),
    TEXT("in.topic", in_topic, "", START,
         "prefix of the topics to subscribe to with in.mode sub; empty is all",
         "Set it when the publisher sends other topics too."),
    ROW("out", ADDRESS, out, "tcp://127.0.0.1:5556", START, NULL, 0, 0, "",
        "address that publishes models, scores, alerts, stats and errors",
        "Change it when the port is taken, or when subscribers are on other machines."),
    ROW("ctl", ADDRESS, ctl, "tcp://127.0.0.1:5557", START, NULL, 0, 0, "", "address of control requests",
        "Change it when the port is taken, or when requests come from other machines."),
    /* A name and not a text: it is a part of topics, where a dot would separate two parts. */
    ROW("stream", NAME, stream, SVI_STREAM_UNNAMED, MODEL, NULL, 0, 0, "",
        "name of the stream, part of every topic", "Set it when subscribers receive several streams."),
    /* Protection of the sockets. curve is a text and no choice, since it can name a file.
     * svi_settings_check_security decides which addresses need it. */
    TEXT("curve", curve, "off", START,
         "encryption of all sockets, which then admit known keys only: off, on (key file svmstream.key in "
         "the current directory) or a key file",
         "Set it before other machines can reach an address."),
    TEXT("curve.server", curve_server, "", START,
         "public key of the process to connect to, or a file that holds it",
         "Set it in every client of a process that runs with curve."),
    TEXT("curve.allow", curve_allow, "svmstream.allow", START,
         "file of the admitted keys and their roles; changes take effect at once",
         "Change it when processes in one directory admit different keys."),
    WORD("insecure", insecure, "no", START, no_yes,
         "allows addresses that other machines can reach without curve: anybody there can feed, read and "
         "stop the process",
         "Leave it off unless you trust every machine of the network."),
    /* The kept state. These rows describe how it is written, and no model depends on them. `auto` is stored
     * as it is: what it stands for depends on other settings (svi_settings_delivery, svi_settings_fsync). */
    TEXT("state.dir", state_dir, "", START,
         "directory of the kept state: every input is written there before it takes effect, and a restart "
         "continues where the last run ended; empty keeps no state",
         "Set it when the model must survive a restart."),
    WORD("delivery", delivery, "auto", START,
         WORDS({"auto", SVI_DELIVERY_AUTO}, {"at-most-once", SVI_AT_MOST_ONCE}, {"acked", SVI_ACKED},
               {"at-least-once", SVI_AT_LEAST_ONCE}, {"durable", SVI_DURABLE},
               {"exactly-once", SVI_EXACTLY_ONCE}),
         "promise of an acknowledgement: acked is in memory, at-least-once survives the process, durable a "
         "power cut, exactly-once takes numbered samples only; auto is at-most-once without in.mode router, "
         "at-least-once with state.dir, else acked",
         "Set durable when a power cut may lose nothing."),
    WORD("journal.fsync", journal_fsync, "auto", START,
         WORDS({"auto", SVI_FSYNC_AUTO}, {"always", SVI_FSYNC_ALWAYS}, {"interval", SVI_FSYNC_INTERVAL},
               {"never", SVI_FSYNC_NEVER}),
         "when the journal is synced to disk: before each acknowledgement, at intervals, or when the system "
         "does it; auto is always from delivery durable on, else interval",
         "Set never when the input can be sent again."),
    NUMBER("journal.interval", journal_interval, "0.2", START, 1e-3, 3600, "seconds",
           "with journal.fsync interval, the most input that a power cut can lose",
           "Lower it to lose less; raise it when the disk is slow."),
    BYTES("journal.segment", journal_segment, "16 MiB", START, 4096, 1LL << 40, "bytes",
          "size at which the journal continues in a new file",
          "Lower it when old records should free their disk space sooner."),
    WORD("journal.keep", journal_keep, "needed", START,
         WORDS({"needed", SVI_JOURNAL_KEEP_NEEDED}, {"all", SVI_JOURNAL_KEEP_ALL}),
         "records that the journal keeps: those that a restart needs, or all, so that `svmstream replay` can "
         "start at the first sample",
         "Set all for audits and trials over the whole past, and watch the disk."),
    NUMBER("checkpoint.seconds", checkpoint_seconds, "0.25", START, 0, 1e6, "seconds",
           "processor time between checkpoints, which a restart may have to repeat; 0 writes one at the end "
           "and after each 64 MiB of journal",
           "Raise it when checkpoints cost too much; lower it for faster restarts."),
    /* Two at least: if the newest checkpoint is damaged, a start takes the one before it. */
    INTEGER("checkpoint.keep", checkpoint_keep, "5", START, 2, 1000, "checkpoints",
            "number of checkpoints kept for `svmstream ctl load`: the newest two, and older ones, thinned "
            "out with age",
            "Raise it to go back further."),
    WORD("accept-loss", accept_loss, "no", START, no_yes, "starts with the undamaged part of a damaged state",
         "Use it for one start, when there is no intact copy of the state."),
    /* The model. Another task would make another model; the RELEARN rows below keep the samples held, from
     * which the model is rebuilt. */
    WORD("task", task, "classify", MODEL, WORDS({"classify", SVS_CLASSIFY}, {"regress", SVS_REGRESS}),
         "type of the target: a class or a number", "Set regress when the label is a quantity."),
    WORD("method", method, "auto", RELEARN,
         WORDS({"auto", SVI_METHOD_AUTO}, {"alsvm", SVI_METHOD_ALSVM}, {"falsvm", SVI_METHOD_FALSVM},
               {"none", SVI_METHOD_NONE}),
         "auto is an ensemble weighted by past predictions, alsvm one exact linear model of all labelled "
         "samples, falsvm one of those that it gets wrong, none only novelty",
         "Set alsvm for a model of few weights, none without labels."),
    NUMBER("auto.budget", auto_budget, "0", RELEARN, 0, 1e6, "microseconds",
           "CPU budget per sample, by a built-in cost table, for the members of method auto; 0 is 10 up to "
           "10 features, 25 with 54, times half the number of classes from three on",
           "Raise it for accuracy, lower it for speed."),
    NUMBER("C", C, "1", RELEARN, 1e-9, 1e12, "", "penalty of the squared errors; larger fits closer",
           "Change it when `svmstream ctl tune` finds a better one."),
    /* 0 switches off the window, and not the learning: it then holds no samples, and most RELEARN rows can no
     * longer change. */
    INTEGER("window", window, "1000", RELEARN, 0, 1e8, "samples",
            "number of labelled samples that the model is computed from; older ones are removed exactly, and "
            "0 forgets nothing",
            "Lower it when the relation changes often; raise it when it is stable."),
    NUMBER("window.seconds", window_seconds, "0", RELEARN, 0, FOREVER, "seconds",
           "age at which samples leave the window too; 0 is no limit",
           "Set it when samples arrive irregularly and old ones mislead."),
    NUMBER("forget", forget, "1", RELEARN, 1e-3, 1, "",
           "factor by which the weight of a learned sample falls with every later sample; 1 is no decay",
           "Lower it slightly, as to 0.999, when recent samples count more."),
    WORD("scale", scale, "standard", RELEARN,
         WORDS({"none", SVS_SCALE_NONE}, {"standard", SVS_SCALE_STANDARD}),
         "standard scales features to mean 0 and deviation 1 inside; published weights are always in raw "
         "units",
         "Set none when the features already share one scale."),
    /* Texts with a grammar of their own. The setter sees only bytes; class_weights.c and quality/decision.h
     * parse them, by way of the checks. Weights shape what is learned (RELEARN), prices only what is decided
     * (LIVE). */
    TEXT("class.weight", class_weight, "none", RELEARN,
         "weight of the samples of a class: none (all equal), balanced (inverse class frequency in the "
         "window), or CLASS=WEIGHT for some, separated by commas",
         "Set balanced when a rare class is missed."),
    TEXT("decision.cost", decision_cost, "none", LIVE,
         "prices of wrong decisions, so that the least expected price decides: CLASS=PRICE of missing that "
         "class, or TRUTH>DECISION=PRICE, separated by commas; others cost 1; none decides by the score",
         "Set it when one error costs more than another."),
    NUMBER("interval", interval, "0.9", LIVE, 0, 0.999, "",
           "coverage of the published prediction interval of a regression, as a fraction; 0 is no interval",
           "Raise it when a value outside the interval is costly."),
    NUMBER("drift.rate", drift_rate, "0.0001", LIVE, 0, 1, "per sample",
           "maximum rate of false quality alarms, per labelled sample, while the quality does not change; 0 "
           "is no alarm",
           "Raise it to detect changes sooner; lower it for fewer false alarms."),
    WORD("drift.action", drift_action, "none", LIVE,
         WORDS({"none", SVI_DRIFT_NONE}, {"shrink", SVI_DRIFT_SHRINK}, {"refit", SVI_DRIFT_REFIT}),
         "further action of a quality alarm: none, remove the samples before the change from the window, or "
         "start a refit",
         "Set shrink when the samples before a change mislead."),
    /* The columns. Rows about the text (label, id, ts, ...) are START rows: they belong to the reader
     * (svi_settings_reader), and the next text may be written in another way. Rows about the features are
     * MODEL rows: they belong to the schema (svi_settings_schema), on which the model depends. */
    TEXT("features", features, "", MODEL,
         "names of the features in column order, separated by commas; others are then refused",
         "Set it when a sample with other columns is an error."),
    TEXT("label", label, "label", START,
         "column of the label in CSV and JSON lines; guessed if this is not set and no column is called "
         "label; '' is no label",
         "Set it when the guess is wrong."),
    TEXT("id", id, "", START,
         "column of the id; empty guesses a column named like an id whose values all differ",
         "Set it when labels arrive later than their samples."),
    TEXT("ts", ts, "", START,
         "column of the time stamp: ISO 8601, or seconds, milliseconds, microseconds or nanoseconds since "
         "1970 by their size; empty guesses it",
         "Set it when the guess is wrong."),
    TEXT("ts.format", ts_format, "", START,
         "strptime format of times in text, with %f for a fraction: %d.%m.%Y %H:%M:%S.%f; empty is ISO 8601, "
         "or a date whose order of day and month follows from the first rows",
         "Set it for any other form."),
    TEXT("weight", weight, "", START, "column of the sample weight; empty weighs all samples alike",
         "Set it when some samples count more than others."),
    TEXT("columns", columns, "", START,
         "names of the columns of a CSV without a header line, separated by commas",
         "Set it when the file has no header and you want names."),
    WORD("no-header", no_header, "no", START, no_yes,
         "the first line of a CSV is a row; a first line of numbers always is",
         "Set it when a file without a header begins with a word."),
    TEXT("categories", categories, "", MODEL,
         "columns whose values are names, even if they look like numbers, separated by commas",
         "Set it for codes, such as postcodes or error numbers."),
    TEXT("numbers", numbers, "", MODEL,
         "columns whose values are numbers, separated by commas; a word in them is refused",
         "Set it when a word in these columns is an error."),
    TEXT("ignore", ignore, "", MODEL, "columns that are not features, separated by commas",
         "Set it for columns that give the label away or carry no information."),
    TEXT("unscaled", unscaled, "", MODEL,
         "columns of numbers that scale standard leaves unscaled, separated by commas; those of categories "
         "always are",
         "Set it for numbers that are already on a common scale."),
    INTEGER("categories.max", categories_max, "100", MODEL, 1, 32768, "values",
            "maximum number of values of one category with their own column; further ones share one until "
            "the column of a value that no held sample has is free",
            "Raise it when rarer values matter; each costs a feature."),
    INTEGER("hash", hash, "0", MODEL, 0, 20, "bits",
            "the values beyond categories.max share 2^BITS columns instead of one",
            "Set it when a category has more values than you can give columns."),
    TEXT("calendar", calendar, "", MODEL,
         "features made of the time stamp: day (sine and cosine of the time of day), week (of the time of "
         "the week, and weekend), separated by commas",
         "Set it when the target follows the hour or the weekday."),
    TEXT("zone", zone, "UTC", MODEL, "time zone of alerts and of the calendar: UTC, +01:00 or Europe/Berlin",
         "Set it when people or daylight drive the process."),
    /* What to do with unusual samples. ONWARD: a change applies from the next sample on, and what was learned
     * stays. missing.words between them belongs to the reader. */
    WORD("columns.new", columns_new, "add", ONWARD,
         WORDS({"add", SVI_COLUMNS_ADD}, {"refuse", SVI_COLUMNS_REFUSE}),
         "a new name after the first sample adds a column, or its sample is refused",
         "Set refuse when a new name is an error of the producer."),
    WORD("missing", missing, "auto", ONWARD,
         WORDS({"auto", SVI_MISSING_AUTO}, {"refuse", SVI_MISSING_REFUSE}, {"carry", SVI_MISSING_CARRY},
               {"drop", SVI_MISSING_DROP}, {"mean", SVI_MISSING_MEAN}, {"zero", SVI_MISSING_ZERO}),
         "for a missing number: refuse the sample with an error, carry the last value, drop the sample "
         "silently, the mean of held samples, or zero; auto is mean for CSV and JSON, zero for VW text, else "
         "refuse",
         "Set carry for sensors that report changes only."),
    TEXT("missing.words", missing_words, SVI_MISSING_WORDS, START,
         "words of a text that stand for a missing value, in upper or lower case; an empty cell always does",
         "Set it when your files use another word, or one of these as a value."),
    WORD("outlier", outlier, "clip", ONWARD,
         WORDS({"clip", SVI_OUTLIER_CLIP}, {"refuse", SVI_OUTLIER_REFUSE}, {"take", SVI_OUTLIER_TAKE}),
         "for numbers beyond a million robust deviations of their column: clip to the normal range before "
         "learning, refuse the sample with an error, or take unchanged; with keys always taken",
         "Set take when such numbers are real."),
    /* The refit. What a refit computes is ONWARD and holds from the next one; when one begins is LIVE.
     * refit.loss is a text because it is a word or a number; svi_settings_loss reads it. */
    WORD("refit", refit, "auto", ONWARD,
         WORDS({"none", SVI_REFIT_NONE}, {"alm", SVS_SOLVER_ALM}, {"alm-inexact", SVS_SOLVER_ALM_INEXACT},
               {"dcd", SVS_SOLVER_DCD}, {"nesvm", SVS_SOLVER_NESVM}, {"auto", SVS_SOLVER_AUTO}),
         "solver that fits the window to the support vector optimum in the background; auto picks one",
         "Set none to save CPU time; leave auto unless you compare solvers."),
    INTEGER("refit.every", refit_every, "0", LIVE, 0, 1e9, "samples",
            "number of samples between refits; 0 is the size of the window",
            "Lower it when the refit falls behind a changing stream."),
    NUMBER("refit.seconds", refit_seconds, "0", LIVE, 0, FOREVER, "seconds",
           "engine time after which a refit also begins; 0 is never", "Set it when samples are rare."),
    TEXT("refit.loss", refit_loss, "l2", ONWARD,
         "loss of the refit: l1 (hinge), l2 (its square) or a number from 1 to 2 between them",
         "Lower it towards 1 when some labels are wrong."),
    NUMBER("refit.tol", refit_tol, "0.001", ONWARD, 1e-12, 1, "",
           "fraction of the objective at which the duality gap ends a refit",
           "Lower it for a solution closer to the optimum, at more CPU time."),
    /* Which model answers. A merged model has the place of the refit (svi_settings_refits). settings_check.c
     * refuses `merged` without a merger, and `linear` without method auto. */
    WORD("serve", serve, "online", LIVE,
         WORDS({"online", SVI_SERVE_ONLINE}, {"refit", SVI_SERVE_REFIT}, {"best", SVI_SERVE_BEST},
               {"linear", SVI_SERVE_LINEAR}, {"merged", SVI_SERVE_MERGED}),
         "model that scores: online, the last refit, the merged model of merge.from, best (the one that was "
         "better recently), or linear (the best linear member of method auto)",
         "Set linear when published weights must explain the scores."),
    ROW("merge.from", ADDRESS, merge_from, "none", ONWARD, WORDS({"none", 0}), 0, 0, "",
        "`out` of a merger (svmstream merge): its merged models replace the refit, score next to the online "
        "model, and serve with serve merged or best; with keys they are the prior of new keys",
        "Set it when processes learn the same relation."),
    /* Novelty. The RENEW rows define the model and what calibrates it: another value starts it from nothing.
     * The ONWARD rows between them apply to the present model. */
    WORD("novelty", novelty, "fosvm1", RENEW,
         WORDS({"none", SVI_NOVELTY_NONE}, {"fosvm1", SVI_NOVELTY_FOSVM1}, {"fosvm2", SVI_NOVELTY_FOSVM2}),
         "one-class model that scores the novelty of each sample; of samples that lie outside, fosvm1 makes "
         "each a support vector, fosvm2 the worst of each novelty.m",
         "Set none when you need predictions only."),
    WORD("novelty.kernel", novelty_kernel, "laplacian", RENEW,
         WORDS({"rbf", SVS_NOVELTY_RBF}, {"laplacian", SVS_NOVELTY_LAPLACIAN},
               {"polynomial", SVS_NOVELTY_POLYNOMIAL}),
         "kernel of the novelty model",
         "Change it when a trial with `svmstream eval --alerts` shows that another one is better."),
    TEXT("novelty.gamma", novelty_gamma, "auto", RENEW,
         "width of the kernel: auto (several together), median, scale, or a number",
         "Leave auto unless a trial shows that one width is better."),
    NUMBER("novelty.theta", novelty_theta, "0.05", RENEW, 1e-9, 0.999, "",
           "tolerance of the border: a sample lies outside when its membership is below 1 - theta",
           "Raise it for fewer support vectors, lower it for a closer border."),
    NUMBER("novelty.epsilon", novelty_epsilon, "0.05", RENEW, 1e-6, 0.999, "",
           "fraction of samples that fosvm2 may leave outside",
           "Raise it when the data contains more outliers."),
    INTEGER("novelty.m", novelty_m, "0", RENEW, 0, 1e6, "samples",
            "fosvm2 takes the worst of this many samples; 0 is ln(20) / epsilon",
            "Leave 0 unless you compare algorithms."),
    INTEGER("novelty.max", novelty_max, "200", RENEW, 2, 5000, "samples",
            "maximum number of support vectors; the cost of a sample grows with it",
            "Raise it when normal operation has many modes."),
    INTEGER("novelty.window", novelty_window, "10000", RENEW, 0, 1e12, "samples",
            "number of learned samples after which a support vector is removed; 0 is never",
            "Lower it when what is normal changes with time."),
    INTEGER("novelty.lags", novelty_lags, "1", RENEW, 1, 1024, "samples",
            "number of last samples that are evaluated as one",
            "Raise it for a single sensor, to give it a shape over time."),
    WORD("novelty.differences", novelty_differences, "no", RENEW, no_yes,
         "with novelty.lags, evaluates the newest sample and the steps before it instead of the samples",
         "Set it when a fault shows in the steps rather than in the level."),
    WORD("novelty.learn", novelty_learn, "normal", ONWARD,
         WORDS({"normal", SVI_LEARN_NORMAL}, {"all", SVI_LEARN_ALL}, {"labelled", SVI_LEARN_LABELLED},
               {"persistent", SVI_LEARN_PERSISTENT}),
         "samples that the novelty model may learn: those that are not novel, all, those with a label, or "
         "also a lasting change",
         "Set persistent when a lasting change becomes normal."),
    NUMBER("novelty.trim", novelty_trim, "0.2", ONWARD, 0, 0.5, "",
           "fraction of the least normal samples that normal and persistent leave out too",
           "Raise it when undetected faults are among the samples."),
    INTEGER("novelty.persist", novelty_persist, "100", ONWARD, 1, 1e6, "samples",
            "with persistent, a change is learned once N of the last 5/4 N samples were novel",
            "Raise it when faults last long."),
    INTEGER("novelty.calibration", novelty_calibration, "2000", RENEW, 1, 1e6, "samples",
            "number of past scores that p compares with; every second sample is kept out of the model for "
            "them",
            "Raise it for smaller p-values: the smallest is 1 / (1 + N)."),
    INTEGER("novelty.confirm", novelty_confirm, "10", ONWARD, 1, 1e4, "samples",
            "number of consecutive samples with p up to alert.clear that are a disturbance, which does not "
            "calibrate",
            "Lower it when faults are short."),
    INTEGER("novelty.warmup", novelty_warmup, "100", ONWARD, 0, 1e9, "samples",
            "number of samples before the first alert",
            "Raise it when the first samples are not typical, as after a start of the machine."),
    /* Alerts. The smallest p-value is 1 / (1 + novelty.calibration), so the lowest alert.p, 1e-6, can just be
     * met with the highest calibration. Only one of alert.budget, alert.fdr and alert.p decides when an alert
     * opens; svi_settings_settle_alerts finds out which. */
    NUMBER("alert.p", alert_p, "0.001", LIVE, 1e-6, 0.999, "",
           "without alert.budget an alert opens at p-values up to this: the fraction of false alarms among "
           "normal samples; setting it turns the budget off",
           "Set it for a fixed false alarm rate per sample."),
    NUMBER("alert.clear", alert_clear, "0.05", LIVE, 1e-6, 0.999, "",
           "an alert closes at p-values above this; under alert.budget such p-values do not keep an alert "
           "open",
           "Lower it when alerts close too late."),
    NUMBER("alert.cooldown", alert_cooldown, "60", LIVE, 0, FOREVER, "seconds",
           "time after an alert closes during which no other opens; not used with alert.budget",
           "Raise it when one cause opens several alerts."),
    NUMBER("alert.fdr", alert_fdr, "0", ONWARD, 0, 0.999, "",
           "open alerts so that only this fraction of them is false, instead of by alert.p; 0 uses alert.p",
           "Set it when each alert starts costly work."),
    TEXT("alert.budget", alert_budget, "1/day", ONWARD,
         "maximum rate of novelty alerts while nothing is wrong: N/hour, N/day or N/week; the stream's own "
         "past sets the level at which one opens; none uses alert.p or alert.fdr",
         "Lower it when there are too many false alerts."),
    NUMBER("alert.interval", alert_interval, "0", ONWARD, 0, FOREVER, "seconds",
           "time that a row without ts counts for in alert.budget; 0 uses its arrival; rows from a file or "
           "standard input count 60 by default",
           "Set it to the interval of your rows."),
    NUMBER("alert.group", alert_group, "60", LIVE, 0, FOREVER, "seconds",
           "alerts of one cause that open within this time of each other are one alert; 0 keeps them apart",
           "Raise it when a fault moves slowly from sensor to sensor."),
    INTEGER("alert.keep", alert_keep, "10000", LIVE, 0, 100000, "events",
            "number of alert events kept with the state, for `svmstream ctl alerts`; each takes 1 kB or "
            "less, and each of the newest 256 that open an alert 4 kB more",
            "Raise it for a longer record."),
#define X(constant, name, about) #name " (" about "), "
    /* Rules, delays and limits: texts that rule_settings.c parses. */
    TEXT("alert.rules", alert_rules, "beyond,stuck,absent", ONWARD,
         "rules that open alerts of kind rule, for each feature: " SVI_RULES_CHOSEN(X) "or none",
         "Add rate when a jump is a fault; remove a rule whose alerts do not help."),
#undef X
    TEXT("alert.absent", alert_absent, "auto", ONWARD,
         "time without a value after which a feature, or the stream, is absent: seconds, auto (many times "
         "its normal interval) or none",
         "Set it when you know the longest normal gap."),
    TEXT("alert.ondelay", alert_ondelay, "none", ONWARD,
         "RULE:TIME, separated by commas, or none: time for which the condition of a rule must hold before "
         "its alert opens: limits:30s, stuck:10min, or limits:3rows",
         "Set it when short excursions are harmless."),
    TEXT("alert.offdelay", alert_offdelay, "none", ONWARD,
         "RULE:TIME, separated by commas, or none: time for which a sensor must be well before the alert of "
         "a rule closes, in place of 10 rows and a minute",
         "Raise it when an alert closes and opens again."),
    TEXT("limits", limits, "", ONWARD,
         "COLUMN:LOW..HIGH, separated by commas: a value outside opens an alert of kind rule; one side may "
         "be left out; with keys also KEYS.COLUMN:LOW..HIGH, of keys that match: press-*.temp:0..90",
         "Set it for values with a known safe range."),
    TEXT("context", context, "", RENEW,
         "columns that determine what is normal for the others and are not monitored themselves, separated "
         "by commas: load,shift",
         "Set it when the load, the product or the shift decides what is normal."),
    /* What is published. All of it is LIVE: no model depends on it. */
    INTEGER("publish.every", publish_every, "1000", LIVE, 0, 1e9, "samples",
            "number of samples after which the model is published; 0 is never",
            "Lower it when subscribers need fresher models."),
    NUMBER("publish.seconds", publish_seconds, "1", LIVE, 0, FOREVER, "seconds",
           "interval of the clock at which the stats, and the model if it changed, are published; 0 is never",
           "Raise it when subscribers need fewer events."),
    NUMBER("publish.sums", publish_sums, "0", LIVE, 0, FOREVER, "seconds",
           "interval at which the sums over the window are published, of which svmstream merge makes one "
           "model of many processes; also with ctl publish; 0 is never",
           "Set it in every process that a merger joins."),
    /* A word of an integer row is stored as a number. `own` is below the range, so that no number of samples
     * is taken for it. */
    ROW("merge.window", INTEGER, merge_window, "own", LIVE, WORDS({"own", SVI_MERGE_WINDOW_OWN}), 0, 1e9,
        "samples",
        "with publish.sums, window of the published sums: 0 is all samples; method auto has 50, 200, 1000, "
        "5000 and 0; own is that of the learner, 5000 with method auto",
        "Set it when the merged model should forget sooner or later."),
    TEXT("merge.part", merge_part, "", LIVE,
         "with publish.sums: name of this process among the parts of the merged model; empty is the name of "
         "the stream",
         "Set it when processes have the same stream name."),
    /* `all` is every first score: 1 and `all` are one value, which is written back as the word. Likewise 0 is
     * `none`. */
    ROW("scores", INTEGER, scores, "all", LIVE, WORDS({"all", SVI_SCORES_ALL}, {"none", SVI_SCORES_NONE}), 0,
        1e9, "samples", "scores to publish: all, none, or every N-th",
        "Set none or a larger N when scores fill the network."),
    WORD("score.members", score_members, "no", LIVE, no_yes,
         "with method auto: publishes the scores of each member of the bank too",
         "Set it to compare the members, not in normal operation."),
    /* Bounds on memory and on what peers may send. A LIMIT row can only be raised on a kept state
     * (svi_settings_merge); the recovered stream is then made wider. */
    NUMBER("labels.ttl", labels_ttl, "3600", ONWARD, 0, FOREVER, "seconds",
           "how long a sample with an id waits for its label; 0 does not wait",
           "Raise it when labels arrive later than this."),
    INTEGER("labels.max", labels_max, "10000", LIMIT, 1, 1e8, "samples",
            "maximum number of samples that wait for a label; the oldest is dropped when full",
            "Raise it to at least the number of samples in labels.ttl."),
    NUMBER("ts.ahead", ts_ahead, "60", LIVE, 0, 1e12, "seconds",
           "maximum time by which a time stamp may be ahead of the clock; a later one is refused",
           "Raise it when clocks of producers differ more."),
    BYTES("max.message", max_message, "1 MiB", START, 64, 1 << 30, "bytes",
          "largest message, all its frames together; a peer that sends a larger one is disconnected",
          "Raise it for large batches or samples of many features."),
    INTEGER("max.features", max_features, "1024", LIMIT, 1, 32768, "features",
            "maximum number of features; memory grows with its square",
            "Raise it when samples have more; lower it to bound the memory."),
    INTEGER("max.classes", max_classes, "64", MODEL, 2, 4096, "classes", "maximum number of classes",
            "Raise it when the labels have more; lower it to bound the memory."),
    INTEGER("max.sources", max_sources, "1024", LIMIT, 1, 1e6, "sources",
            "maximum number of sources whose sequence numbers are kept, for acknowledged input",
            "Raise it when more producers send at the same time."),
    NUMBER("sources.idle", sources_idle, "604800", LIVE, 0, FOREVER, "seconds",
           "with max.sources sources, a new one replaces the one that has been silent longest, if longer "
           "than this; 0 is never",
           "Raise it when producers pause longer than this."),
    INTEGER("sources.quota", sources_quota, "0", START, 0, 1e6, "sources",
            "maximum number of sources, without silent ones, of one CURVE key or else one connection; 0 is "
            "half of max.sources",
            "Lower it when one client must not use the sources of others."),
    INTEGER("max.connections", max_connections, "1000", START, 1, 10000, "connections",
            "maximum number of connections to all sockets together; beyond it, idle ones are closed",
            "Raise it when more clients stay connected."),
    /* Keys. The defaults here are those of a stream without them: svi_settings_settle_method lowers several
     * others when `key` is set. keys.memory is a START row, because it depends on the machine and no result
     * depends on it. */
    TEXT("key", key, "", MODEL,
         "column of text rows that holds the key, for a model of each key (messages have it as `key`; --key "
         "alone is --key key); empty is one model for all",
         "Set it when one stream carries many machines."),
    INTEGER("keys.max", keys_max, "1000000", LIMIT, 1, 1e9, "keys",
            "maximum number of keys; samples of further keys are refused; the default is lower if a quarter "
            "of the machine's memory holds fewer keys that are on disk",
            "Lower it when unexpected keys are an error."),
    INTEGER("keys.memory", keys_memory, "0", START, 0, 1e9, "keys",
            "maximum number of keys with their models in memory; those unused longest are on disk; 0 is the "
            "number that fits half of the memory of the machine or the process's cgroup",
            "Lower it when other programs need memory."),
    NUMBER("keys.idle", keys_idle, "0", LIVE, 0, FOREVER, "seconds",
           "time without a sample after which a key is forgotten, with its model; 0 is never",
           "Set it when keys do not return, such as sessions or orders."),
    INTEGER("keys.quota", keys_quota, "0", ONWARD, 0, 1e9, "keys",
            "maximum number of keys begun by one source, or by all messages without src; 0 shares nine "
            "tenths of keys.max, divides the rest among max.sources, and allows messages without src 100,000 "
            "(standard input keys.max)",
            "Lower it when one source must not take all."),
    NUMBER("key.prior", key_prior, "10", MODEL, 0, 1e6, "samples",
           "number of its own samples that count as much as the model of all keys with which a new key "
           "starts; 0 starts from nothing",
           "Lower it when keys differ; raise it when they are alike."),
    WORD("key.shared", key_shared, "yes", MODEL, no_yes,
         "with method auto and keys: one bank learns the rows of all keys, and is a member of each key's "
         "small stack; no gives each key a bank of its own",
         "Set no for few keys with long histories."),
    /* Both affect the bits of results, so both are MODEL rows. Of threads a kept state records only the part
     * that does (settings_record.c), so 0 and 1 may change. A seed ends where doubles no longer hold every
     * integer, because the range is compared in doubles. */
    INTEGER("threads", threads, "0", MODEL, 0, 64, "threads",
            "0 evaluates novelty on a second thread, 1 does not, with the same results (either at any "
            "start); from 2 on computations also use this many threads, and sums differ in the last bits",
            "Raise it for hundreds of features."),
    INTEGER("seed", seed, "1", MODEL, 0, SVI_EXACT_MAX, "", "seed of the random numbers",
            "Change it to see how much a result depends on chance."),
    /* Of svmstream merge alone: START rows, since a merger keeps no state. */
    NUMBER("merge.stale", merge_stale, "60", START, 0, FOREVER, "seconds",
           "svmstream merge: silence after which a part is marked as stale, and stays in the model; 0 is "
           "never",
           "Raise it above the longest publish.sums of the parts."),
    BYTES("merge.memory", merge_memory, "1 GiB", START, 4096, 1LL << 40, "bytes",
          "svmstream merge: limit of the records of all parts together; records beyond it are refused",
          "Raise it when the parts have many features or classes."),
    {.key = NULL},
};

/* The last row has no key and is not counted. `given` and the arrays of other modules are indexed by row; the
 * assertion keeps them large enough. No index is ever stored: a state and a file identify a row by its
 * key. */
#define ROWS (sizeof svi_settings_table / sizeof svi_settings_table[0] - 1)
_Static_assert(ROWS <= SVI_SETTING_MAX, "`given` holds every row");
const int svi_settings_count = (int)ROWS;

const struct svi_setting *svi_settings_row(const char *key) {
    for (const struct svi_setting *row = svi_settings_table; row->key; row++)
        if (strcmp(row->key, key) == 0)
            return row;
    return NULL;
}

bool svi_settings_given(const struct svi_settings *s, const struct svi_setting *row) {
    return s->given[row - svi_settings_table] != SVI_NOT_GIVEN;
}

/* Three states, two questions. A file that states a default has given it and not chosen it: the
 * defaults of keys do not replace it (settings_settle_keys), and it requests nothing. */
bool svi_settings_chosen(const struct svi_settings *s, const char *key) {
    return s->given[svi_settings_row(key) - svi_settings_table] == SVI_GIVEN;
}

/* By the list itself, so that a choice with other words for yes and no is no switch. */
bool svi_settings_switch(const struct svi_setting *row) {
    return row->words == no_yes;
}

svs_code svi_settings_unknown(const char *key, svs_error *err) {
    /* The list ends with a NULL, for which there is one place more than rows. */
    const char *keys[SVI_SETTING_MAX + 1] = {NULL};
    char shown[80];
    for (int i = 0; svi_settings_table[i].key; i++)
        keys[i] = svi_settings_table[i].key;
    const char *nearest = svi_nearest(key, keys);
    svi_escape(shown, sizeof shown, key, strlen(key));
    if (!nearest)
        return svi_fail(err, SVS_SETTING, "unknown setting '%s'", shown);
    return svi_fail(err, SVS_SETTING, "unknown setting '%s', the nearest known one is '%s'", shown, nearest);
}

/* ---- allowed values */

/* Words are compared exactly, in lower case as they are listed: a file and a flag have one spelling. */
static const struct svi_word *settings_find_word(const struct svi_setting *row, const char *text) {
    for (const struct svi_word *w = row->words; w && w->word; w++)
        if (strcmp(w->word, text) == 0)
            return w;
    return NULL;
}

/* The list ends with a NULL word, which is also the answer for an unknown constant. */
const char *svi_settings_word(const char *key, int value) {
    const struct svi_word *w = svi_settings_row(key)->words;
    while (w->word && w->value != value)
        w++;
    return w->word;
}

char *svi_settings_words(const struct svi_setting *row, const char *separator, char *out, size_t size) {
    size_t at = 0;
    for (const struct svi_word *w = row->words; w->word && at < size; w++)
        at += (size_t)snprintf(out + at, size - at, "%s%s", w == row->words ? "" : separator, w->word);
    return out;
}

/* Writes 1e9 and 1e-9 instead of long rows of zeros, but not for integers, whose setter accepts digits
 * only. */
static char *settings_write_bound(const struct svi_setting *row, double bound, char *out, size_t size) {
    double power = bound > 0 && row->type == SVI_SET_NUMBER ? log10(bound) : 0;
    bool round = fabs(power - rint(power)) < 1e-9;
    if (round && (power > 5.5 || power < -3.5))
        snprintf(out, size, "1e%d", (int)rint(power));
    else
        snprintf(out, size, "%.16g", bound);
    return out;
}

/* What a user reads after a refused value, and in the help. A row with words lists them instead of a range,
 * unless numbers are allowed too. */
char *svi_settings_range(const struct svi_setting *row, char *out, size_t size) {
    char low[32], high[32], words[32];
    if (row->type == SVI_SET_ADDRESS)
        snprintf(out, size, "an address such as tcp://127.0.0.1:5555%s%s", row->words ? ", or " : "",
                 row->words ? row->words->word : "");
    else if (row->words && row->type <= SVI_SET_CHOICE)
        svi_settings_words(row, ", ", out, size);
    else if (row->type == SVI_SET_TEXT)
        snprintf(out, size, "up to %zu bytes of text", row->size - 1);
    else if (row->type == SVI_SET_NAME)
        snprintf(out, size, "1 to %zu letters, digits, _ or -", row->size - 1);
    else
        snprintf(out, size, "%s%s%s to %s%s%s",
                 row->words ? svi_settings_words(row, ", ", words, sizeof words) : "",
                 row->words ? ", or " : "", settings_write_bound(row, row->low, low, sizeof low),
                 settings_write_bound(row, row->high, high, sizeof high), row->unit[0] ? " " : "", row->unit);
    return out;
}

/* ---- from text */

/* Refuses a value: the key, the value, the fault, and what is allowed. */
static svs_code settings_refuse(const struct svi_setting *row, const char *value, const char *fault,
                                svs_error *err) {
    char shown[64], range[96];
    svi_escape(shown, sizeof shown, value, strlen(value));
    return svi_fail(err, SVS_SETTING, "%s: '%s' %s (%s)", row->key, shown, fault,
                    svi_settings_range(row, range, sizeof range));
}

/* A setter checks first and writes last: a refused value leaves the field as it was. It knows its own row
 * only; contradictions between rows are the matter of settings_check.c. */
#define NOT_ALLOWED "is not an allowed value"

/* Does the text contain control characters, line separators or noncharacters? No name or address contains
 * them, and YAML could not store them. */
static bool settings_unprintable(const char *text) {
    static const char *const codes[] = {"\u2028", "\u2029", "\ufeff", "\xef\xbf\xbe", "\xef\xbf\xbf"};
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        if (*at < 0x20 || *at == 0x7f || (at[0] == 0xc2 && at[1] < 0xa0))
            return true;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strstr(text, codes[i]))
            return true;
    return false;
}

/* Sets any row that is text. If a text row has words, only these are allowed; an address may be others
 * too. */
static svs_code settings_set_text(struct svi_settings *s, const struct svi_setting *row, const char *value,
                                  svs_error *err) {
    size_t length = strlen(value);
    if (row->type == SVI_SET_TEXT && row->words && !settings_find_word(row, value))
        return settings_refuse(row, value, NOT_ALLOWED, err);
    if (length >= row->size)
        return settings_refuse(row, value, "is too long", err);
    if (!svi_utf8_valid(value, length))
        return settings_refuse(row, value, "is not valid UTF-8", err);
    if (settings_unprintable(value))
        return settings_refuse(row, value, "contains a control character", err);
    /* Cleared to the end: no rest of a longer text stays in a field, which is copied as bytes. */
    memset(svi_settings_field(s, row), 0, row->size);
    memcpy(svi_settings_field(s, row), value, length);
    return SVS_OK;
}

/* The characters are those that the topics of events can carry unchanged. Length and the copy are those of a
 * text. */
static svs_code settings_set_name(struct svi_settings *s, const struct svi_setting *row, const char *value,
                                  svs_error *err) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    if (value[0] == '\0')
        return settings_refuse(row, value, "is empty", err);
    if (value[strspn(value, allowed)] != '\0')
        return settings_refuse(row, value, "contains a character that is not allowed", err);
    return settings_set_text(s, row, value, err);
}

/* Only the form is checked: whether the address can be bound is known when it is. The other transports pass
 * as if their port were *. */
static svs_code settings_set_address(struct svi_settings *s, const struct svi_setting *row, const char *value,
                                     svs_error *err) {
    const char *colon = strstr(value, "://");
    if (!settings_find_word(row, value) && (!colon || colon == value || colon[3] == '\0'))
        return settings_refuse(row, value, "is not an address", err);
    const char *port = strncmp(value, "tcp://", 6) == 0 ? strrchr(value, ':') + 1 : "*";
    const size_t n = strlen(port); /* checked here, because ZeroMQ would read 70001 as 4465 */
    if (strcmp(port, "*") == 0 ||
        (n >= 1 && n <= 5 && strspn(port, "0123456789") == n && strtol(port, NULL, 10) <= 65535))
        return settings_set_text(s, row, value, err);
    return settings_refuse(row, value, "does not end in a port from 0 to 65535", err);
}

/* A choice has no range: what is no word of the list is refused, and the field then always holds a constant
 * of its enumeration. */
static svs_code settings_set_choice(struct svi_settings *s, const struct svi_setting *row, const char *value,
                                    svs_error *err) {
    const struct svi_word *word = settings_find_word(row, value);
    if (!word)
        return settings_refuse(row, value, NOT_ALLOWED, err);
    *(int *)svi_settings_field(s, row) = word->value;
    return SVS_OK;
}

/* From the largest unit down: settings_write_integer takes the first that divides a value. No unit means
 * bytes. */
static const struct {
    const char *name;
    int64_t bytes;
} sizes[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {"", 1}};
#define SIZES ((int)(sizeof sizes / sizeof sizes[0]))

/* The factor of a number with this ending; 0: the row does not allow the ending. */
static int64_t settings_unit(const struct svi_setting *row, const char *ending) {
    if (row->type != SVI_SET_BYTES)
        return ending[0] == '\0';
    /* One space before the unit, as the program writes it; a space at the end is no ending. */
    if (ending[0] == ' ' && ending[1] != '\0')
        ending++;
    for (int i = 0; i < SIZES; i++)
        if (strcmp(ending, sizes[i].name) == 0)
            return sizes[i].bytes;
    return 0;
}

/* The first digit is checked because strtoll also takes spaces. */
static svs_code settings_set_integer(struct svi_settings *s, const struct svi_setting *row, const char *value,
                                     svs_error *err) {
    const struct svi_word *word = settings_find_word(row, value);
    const char first = value[value[0] == '-' || value[0] == '+'];
    char *ending;
    errno = 0;
    /* The words come first below: their texts have no digits, and `unit` is then 0, by which nothing may be
     * divided. */
    const int64_t n = strtoll(value, &ending, 10), unit = settings_unit(row, ending);
    if (!word && (first < '0' || first > '9' || unit == 0))
        return settings_refuse(row, value,
                               row->type == SVI_SET_BYTES ? "is not a whole number of bytes, KiB, MiB or GiB"
                                                          : "is not a whole number",
                               err);
    /* n <= INT64_MAX / unit first: n * unit must not overflow below; the range is compared as doubles. */
    const bool fits = word || (errno != ERANGE && n <= INT64_MAX / unit &&
                               (double)n * (double)unit >= row->low && (double)n * (double)unit <= row->high);
    if (!fits)
        return settings_refuse(row, value, "is out of range", err);
    *(int64_t *)svi_settings_field(s, row) = word ? word->value : n * unit;
    return SVS_OK;
}

static svs_code settings_set_number(struct svi_settings *s, const struct svi_setting *row, const char *value,
                                    svs_error *err) {
    char *end = NULL;
    double number = strtod(value, &end);
    /* The characters are checked first because strtod also takes spaces, hexadecimals, NaN and infinities. */
    if (value[0] == '\0' || value[strspn(value, "0123456789+-.eE")] != '\0' || *end != '\0')
        return settings_refuse(row, value, "is not a number", err);
    /* A number that overflows is infinite here, and above every range. */
    if (!(number >= row->low && number <= row->high))
        return settings_refuse(row, value, "is out of range", err);
    *(double *)svi_settings_field(s, row) = number + 0.0; /* -0 becomes 0: one value has one text */
    return SVS_OK;
}

typedef svs_code settings_setter(struct svi_settings *s, const struct svi_setting *row, const char *value,
                                 svs_error *err);

/* By type: a new type is a line here, a setter and a branch in svi_settings_value. Bytes are integers with a
 * unit. */
static settings_setter *const setters[] = {
    [SVI_SET_TEXT] = settings_set_text,       [SVI_SET_NAME] = settings_set_name,
    [SVI_SET_ADDRESS] = settings_set_address, [SVI_SET_CHOICE] = settings_set_choice,
    [SVI_SET_INTEGER] = settings_set_integer, [SVI_SET_NUMBER] = settings_set_number,
    [SVI_SET_BYTES] = settings_set_integer,
};

svs_code svi_settings_set(struct svi_settings *s, const char *key, const char *value, svs_error *err) {
    const struct svi_setting *row = svi_settings_row(key);
    if (!row)
        return svi_settings_unknown(key, err);
    SVI_TRY(setters[row->type](s, row, value, err));
    /* Last, so that a refused value does not count as given. A file lowers this afterwards for values that
     * are defaults (settings_file.c). */
    s->given[row - svi_settings_table] = SVI_GIVEN;
    return SVS_OK;
}

/* Zeroed first, padding and ends of texts included: two structs of defaults are the same bytes. The setters
 * cannot fail, because tests/unit/test_settings checks every default against its row. */
void svi_settings_default(struct svi_settings *s) {
    memset(s, 0, sizeof *s);
    for (const struct svi_setting *row = svi_settings_table; row->key; row++)
        (void)setters[row->type](s, row, row->value, NULL);
}

/* ---- to text */

/* Writes an integer as its word, in the largest unit that divides it, or as digits. */
static void settings_write_integer(const struct svi_setting *row, int64_t n, char *out, size_t size) {
    const char *word = row->words ? svi_settings_word(row->key, (int)n) : NULL;
    int i = 0;
    while (row->type == SVI_SET_BYTES && sizes[i].bytes > 1 &&
           (n < sizes[i].bytes || n % sizes[i].bytes != 0))
        i++;
    if (word)
        snprintf(out, size, "%s", word);
    else if (row->type == SVI_SET_BYTES && sizes[i].bytes > 1)
        snprintf(out, size, "%lld %s", (long long)(n / sizes[i].bytes), sizes[i].name);
    else
        snprintf(out, size, "%lld", (long long)n);
}

/* The types are ordered (settings.h): those up to ADDRESS are text, the one after them is a choice. */
char *svi_settings_value(const struct svi_settings *s, const struct svi_setting *row, char *out,
                         size_t size) {
    const void *at = svi_settings_field(s, row);
    if (row->type <= SVI_SET_ADDRESS)
        snprintf(out, size, "%s", (const char *)at);
    else if (row->type == SVI_SET_CHOICE)
        snprintf(out, size, "%s", svi_settings_word(row->key, *(const int *)at));
    else if (row->type != SVI_SET_NUMBER)
        settings_write_integer(row, *(const int64_t *)at, out, size);
    else /* the shortest form that reads back as the same double */
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(out, size, "%.*g", digits, *(const double *)at);
            if (strtod(out, NULL) == *(const double *)at)
                break;
        }
    return out;
}

/* Compared as text, so the table must state a default in the very form of svi_settings_value: 1 MiB, not 1024
 * KiB. tests/unit/test_settings checks that too. */
bool svi_settings_is_default(const struct svi_settings *s, const struct svi_setting *row) {
    /* The longest field is `features`; any other value fits too. */
    char value[SVI_FEATURES_MAX];
    return strcmp(svi_settings_value(s, row, value, sizeof value), row->value) == 0;
}
