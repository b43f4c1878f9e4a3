/* The table of the settings. */
#include "engine/settings.h"

#include <stddef.h>
#include <string.h>

#include "base/fail.h"
#include "base/nearest.h"

#define ADDRESS_IN  "tcp://127.0.0.1:5555"
#define ADDRESS_OUT "tcp://127.0.0.1:5556"
#define ADDRESS_CTL "tcp://127.0.0.1:5557"
#define FOREVER     1e9                /* seconds, 31 years */
#define EXACT       9007199254740992.0 /* 2^53: integers above it are no longer exact as low and high */

#define FIELD(f) offsetof(struct svi_settings, f), sizeof(((struct svi_settings *)0)->f)

/* key, type, default, choices, low, high, unit, sentence, field */
static const struct svi_setting table[] = {
    {"in", SVI_SET_ADDRESS, ADDRESS_IN, "-", 0, 0, "", "where samples come from; - is standard input",
     FIELD(in)},
    {"in.mode", SVI_SET_CHOICE, "pull", "pull|router|sub", 0, 0, "",
     "kind of input socket: pull takes what is pushed, router acknowledges each message, sub connects to a "
     "publisher",
     FIELD(in_mode)},
    {"in.format", SVI_SET_TEXT, "auto", "auto|csv|libsvm|jsonl|msgpack", 0, 0, "",
     "format of text input; auto looks at the file name and the first line", FIELD(in_format)},
    {"in.topic", SVI_SET_TEXT, "", NULL, 0, 0, "",
     "prefix of the topics to subscribe to, with in.mode sub; empty is all", FIELD(in_topic)},
    {"out", SVI_SET_ADDRESS, ADDRESS_OUT, NULL, 0, 0, "",
     "where models, scores, stats and errors are published", FIELD(out)},
    {"ctl", SVI_SET_ADDRESS, ADDRESS_CTL, NULL, 0, 0, "", "where control requests are answered", FIELD(ctl)},
    {"stream", SVI_SET_NAME, "default", NULL, 0, 0, "", "name of the stream, part of every topic",
     FIELD(stream)},
    {"curve", SVI_SET_TEXT, "off", NULL, 0, 0, "",
     "encrypt all sockets and let in known keys only: off, on (the key file is svmstream.key in the present "
     "folder) or a key file",
     FIELD(curve)},
    {"curve.server", SVI_SET_TEXT, "", NULL, 0, 0, "",
     "public key of the process to connect to, or the file that holds it", FIELD(curve_server)},
    {"curve.allow", SVI_SET_TEXT, "svmstream.allow", NULL, 0, 0, "",
     "file of the keys that are let in, with their roles; changes take effect at once", FIELD(curve_allow)},
    {"insecure", SVI_SET_CHOICE, "no", "no|yes", 0, 0, "",
     "bind addresses that other machines reach without curve: anybody there may feed, read and stop it",
     FIELD(insecure)},
    {"state.dir", SVI_SET_TEXT, "", NULL, 0, 0, "",
     "folder that the state is kept in: every input is written there before it takes effect, and a restart "
     "goes on where the last run ended; empty keeps nothing",
     FIELD(state_dir)},
    {"delivery", SVI_SET_CHOICE, "auto", "auto|at-most-once|acked|at-least-once|durable|exactly-once", 0, 0,
     "",
     "what an acknowledgement promises: acked is in memory, at-least-once survives the process, durable a "
     "power cut too, exactly-once takes numbered samples only; auto is at-most-once without in.mode router, "
     "at-least-once with state.dir, else acked",
     FIELD(delivery)},
    {"journal.fsync", SVI_SET_CHOICE, "auto", "auto|always|interval|never", 0, 0, "",
     "when the journal is forced to disk: before each acknowledgement, at intervals, or when the system "
     "likes; auto is always from delivery durable on, else interval",
     FIELD(journal_fsync)},
    {"journal.interval", SVI_SET_NUMBER, "0.2", NULL, 1e-3, 3600, "seconds",
     "a power cut loses at most so much with journal.fsync interval", FIELD(journal_interval)},
    {"journal.segment", SVI_SET_BYTES, "16 MiB", NULL, 4096, 1LL << 40, "bytes",
     "the journal goes on in a new file after so much", FIELD(journal_segment)},
    {"journal.keep", SVI_SET_CHOICE, "needed", "needed|all", 0, 0, "",
     "keep what a restart needs, or all, so that `svmstream replay` can begin at the first sample",
     FIELD(journal_keep)},
    {"checkpoint.seconds", SVI_SET_NUMBER, "0.25", NULL, 0, 1e6, "seconds",
     "work of the processor after which the state is written, and which a restart may have to repeat; 0 "
     "writes it at the end and after each 64 MiB of journal",
     FIELD(checkpoint_seconds)},
    {"accept-loss", SVI_SET_CHOICE, "no", "no|yes", 0, 0, "",
     "start although a part of the kept state is damaged, with what is left of it", FIELD(accept_loss)},
    {"task", SVI_SET_CHOICE, "classify", "classify|regress", 0, 0, "", "what is learned: a class or a number",
     FIELD(task)},
    {"method", SVI_SET_CHOICE, "alsvm", "alsvm|falsvm|none", 0, 0, "",
     "alsvm learns every labelled sample, falsvm only those that the model gets wrong, none has no "
     "classifier: novelty alone",
     FIELD(method)},
    {"C", SVI_SET_NUMBER, "1", NULL, 1e-9, 1e12, "", "penalty of the squared errors; larger fits closer",
     FIELD(C)},
    {"window", SVI_SET_INTEGER, "1000", NULL, 0, 1e8, "samples",
     "labelled samples that the model rests on; older ones are removed exactly; 0 keeps none and forgets "
     "nothing",
     FIELD(window)},
    {"window.seconds", SVI_SET_NUMBER, "0", NULL, 0, FOREVER, "seconds",
     "samples older than this leave the window too; 0 is no limit", FIELD(window_seconds)},
    {"forget", SVI_SET_NUMBER, "1", NULL, 1e-3, 1, "",
     "factor by which a learned sample counts less with every sample learned after it; 1 is no decay",
     FIELD(forget)},
    {"scale", SVI_SET_CHOICE, "standard", "none|standard", 0, 0, "",
     "standard brings features to mean 0 and deviation 1 inside; published weights are always in raw units",
     FIELD(scale)},
    {"features", SVI_SET_TEXT, "", NULL, 0, 0, "",
     "names of the features in column order, separated by commas; no others are taken then", FIELD(features)},
    {"label", SVI_SET_TEXT, "label", NULL, 0, 0, "", "column of the label in CSV and JSON lines",
     FIELD(label)},
    {"id", SVI_SET_TEXT, "", NULL, 0, 0, "", "column of the id; empty is none", FIELD(id)},
    {"ts", SVI_SET_TEXT, "", NULL, 0, 0, "", "column of the time stamp, in seconds since 1970; empty is none",
     FIELD(ts)},
    {"weight", SVI_SET_TEXT, "", NULL, 0, 0, "", "column of the sample weight; empty is none", FIELD(weight)},
    {"missing", SVI_SET_CHOICE, "refuse", "refuse|carry|drop", 0, 0, "",
     "a missing feature value: refuse the sample with an error, carry the last value over, drop the sample "
     "quietly",
     FIELD(missing)},
    {"refit", SVI_SET_CHOICE, "auto", "none|alm|alm-inexact|dcd|nesvm|auto", 0, 0, "",
     "solver that fits the window to the support vector optimum beside the online model; auto picks one",
     FIELD(refit)},
    {"refit.every", SVI_SET_INTEGER, "0", NULL, 0, 1e9, "samples",
     "refit after so many samples; 0 is as many as the window holds", FIELD(refit_every)},
    {"refit.seconds", SVI_SET_NUMBER, "0", NULL, 0, FOREVER, "seconds",
     "refit after so much engine time too; 0 does not", FIELD(refit_seconds)},
    {"refit.loss", SVI_SET_TEXT, "l2", NULL, 0, 0, "",
     "loss of the refit: l1 (hinge), l2 (its square) or a number from 1 to 2 between them",
     FIELD(refit_loss)},
    {"refit.tol", SVI_SET_NUMBER, "0.001", NULL, 1e-12, 1, "",
     "a refit ends when its duality gap is this share of its objective", FIELD(refit_tol)},
    {"serve", SVI_SET_CHOICE, "online", "online|refit|best", 0, 0, "",
     "whose scores are published: the online model's, the last refit's, or those of the better one lately",
     FIELD(serve)},
    {"novelty", SVI_SET_CHOICE, "fosvm1", "none|fosvm1|fosvm2", 0, 0, "",
     "one-class model that judges how new each sample is; of samples that lie outside, fosvm1 takes each as "
     "a "
     "support vector, fosvm2 the worst of each novelty.m",
     FIELD(novelty)},
    {"novelty.kernel", SVI_SET_CHOICE, "laplacian", "rbf|laplacian|polynomial", 0, 0, "",
     "kernel of the novelty model", FIELD(novelty_kernel)},
    {"novelty.gamma", SVI_SET_TEXT, "auto", NULL, 0, 0, "",
     "width of the kernel: auto (several together), median, scale, or a number", FIELD(novelty_gamma)},
    {"novelty.theta", SVI_SET_NUMBER, "0.05", NULL, 1e-9, 0.999, "",
     "a sample lies outside when its membership is below 1 - theta", FIELD(novelty_theta)},
    {"novelty.epsilon", SVI_SET_NUMBER, "0.05", NULL, 1e-6, 0.999, "",
     "share of samples that fosvm2 may leave outside", FIELD(novelty_epsilon)},
    {"novelty.m", SVI_SET_INTEGER, "0", NULL, 0, 1e6, "samples",
     "of so many samples fosvm2 takes the worst; 0 is ln(20) / epsilon", FIELD(novelty_m)},
    {"novelty.max", SVI_SET_INTEGER, "200", NULL, 2, 5000, "samples",
     "support vectors at most; the price of a sample grows with it", FIELD(novelty_max)},
    {"novelty.window", SVI_SET_INTEGER, "10000", NULL, 0, 1e12, "samples",
     "learned samples that a support vector stays; 0 is no limit", FIELD(novelty_window)},
    {"novelty.lags", SVI_SET_INTEGER, "1", NULL, 1, 1024, "samples",
     "the last so many samples are judged as one, so that a single sensor has a shape", FIELD(novelty_lags)},
    {"novelty.differences", SVI_SET_CHOICE, "no", "no|yes", 0, 0, "",
     "with novelty.lags, judge the newest sample and the steps that led to it, instead of the samples",
     FIELD(novelty_differences)},
    {"novelty.learn", SVI_SET_CHOICE, "normal", "normal|all|labelled|persistent", 0, 0, "",
     "which samples the novelty model may learn: those that are not novel, all, those with a label, or a "
     "change too that lasts",
     FIELD(novelty_learn)},
    {"novelty.trim", SVI_SET_NUMBER, "0.2", NULL, 0, 0.5, "",
     "share of the least usual samples that normal and persistent leave out all the same",
     FIELD(novelty_trim)},
    {"novelty.persist", SVI_SET_INTEGER, "100", NULL, 1, 1e6, "samples",
     "with persistent, a change is learned once so many of the last 5/4 as many were novel",
     FIELD(novelty_persist)},
    {"novelty.calibration", SVI_SET_INTEGER, "2000", NULL, 1, 1e6, "samples",
     "every second sample is kept out of the model; p compares with the scores of the last so many of them",
     FIELD(novelty_calibration)},
    {"novelty.confirm", SVI_SET_INTEGER, "10", NULL, 1, 1e4, "samples",
     "so many samples on end with p up to alert.clear are believed to be no chance: they do not calibrate",
     FIELD(novelty_confirm)},
    {"novelty.warmup", SVI_SET_INTEGER, "100", NULL, 0, 1e9, "samples", "no alert before so many samples",
     FIELD(novelty_warmup)},
    {"alert.p", SVI_SET_NUMBER, "0.001", NULL, 1e-6, 0.999, "",
     "an alert opens at p-values up to this: the share of false alarms among normal samples", FIELD(alert_p)},
    {"alert.clear", SVI_SET_NUMBER, "0.05", NULL, 1e-6, 0.999, "", "an alert closes at p-values above this",
     FIELD(alert_clear)},
    {"alert.cooldown", SVI_SET_NUMBER, "60", NULL, 0, FOREVER, "seconds",
     "after an alert closed, no other opens for so long", FIELD(alert_cooldown)},
    {"alert.fdr", SVI_SET_NUMBER, "0", NULL, 0, 0.999, "",
     "open alerts so that only this share of them is false, instead of by alert.p; 0 does not",
     FIELD(alert_fdr)},
    {"publish.every", SVI_SET_INTEGER, "1000", NULL, 0, 1e9, "samples",
     "publish the model after so many samples; 0 does not", FIELD(publish_every)},
    {"publish.seconds", SVI_SET_NUMBER, "1", NULL, 0, FOREVER, "seconds",
     "publish model and stats after so much time; 0 does not", FIELD(publish_seconds)},
    {"scores", SVI_SET_SCORES, "all", NULL, 0, 1e9, "samples",
     "which scores are published: all, none, or a number N for every N-th", FIELD(scores)},
    {"labels.ttl", SVI_SET_NUMBER, "3600", NULL, 0, FOREVER, "seconds",
     "how long a sample with an id waits for its label; 0 does not wait", FIELD(labels_ttl)},
    {"labels.max", SVI_SET_INTEGER, "10000", NULL, 1, 1e8, "samples",
     "samples that wait for a label at most; the oldest leaves when full", FIELD(labels_max)},
    {"ts.ahead", SVI_SET_NUMBER, "60", NULL, 0, 1e12, "seconds",
     "a time stamp further than this ahead of the clock is refused", FIELD(ts_ahead)},
    {"max.message", SVI_SET_BYTES, "1 MiB", NULL, 64, 1 << 30, "bytes",
     "largest message; a peer that sends a larger one is cut off", FIELD(max_message)},
    {"max.features", SVI_SET_INTEGER, "1024", NULL, 1, 32768, "features",
     "features at most; memory grows with its square", FIELD(max_features)},
    {"max.classes", SVI_SET_INTEGER, "64", NULL, 2, 4096, "classes", "classes at most", FIELD(max_classes)},
    {"max.sources", SVI_SET_INTEGER, "1024", NULL, 1, 1e6, "sources",
     "producers whose sequence numbers are kept, for acknowledged input", FIELD(max_sources)},
    {"max.connections", SVI_SET_INTEGER, "1000", NULL, 1, 10000, "connections",
     "connections to all sockets together; beyond it those that do not speak make room",
     FIELD(max_connections)},
    {"threads", SVI_SET_INTEGER, "1", NULL, 1, 64, "threads",
     "threads of one computation; sums that several share have other last bits", FIELD(threads)},
    {"seed", SVI_SET_INTEGER, "1", NULL, 0, EXACT, "", "start of the random numbers", FIELD(seed)},
};

#define ROWS ((int)(sizeof table / sizeof table[0]))
_Static_assert(sizeof table / sizeof table[0] <= SVI_SETTING_MAX, "`given` has room for every row");

const struct svi_setting *svi_settings_table(int *count) {
    *count = ROWS;
    return table;
}

const struct svi_setting *svi_settings_row(const char *key) {
    for (int i = 0; i < ROWS; i++)
        if (strcmp(table[i].key, key) == 0)
            return &table[i];
    return NULL;
}

int svi_settings_place(const struct svi_setting *row) {
    return (int)(row - table);
}

bool svi_settings_given(const struct svi_settings *s, const struct svi_setting *row) {
    return s->given[row - table];
}

svs_code svi_settings_unknown(const char *key, svs_error *err) {
    const char *keys[ROWS + 1];
    char shown[80];
    for (int i = 0; i < ROWS; i++)
        keys[i] = table[i].key;
    keys[ROWS] = NULL;
    const char *nearest = svi_nearest(key, keys);
    svi_escape(shown, sizeof shown, key, strlen(key));
    if (!nearest)
        return svi_fail(err, SVS_SETTING, "unknown setting '%s'", shown);
    return svi_fail(err, SVS_SETTING, "unknown setting '%s', the nearest known one is '%s'", shown, nearest);
}

/* Everything else shapes what is learned. */
static const char *const outside[] = {
    "in",
    "in.mode",
    "in.format",
    "in.topic",
    "out",
    "ctl",
    "curve",
    "curve.server",
    "curve.allow",
    "insecure",
    "state.dir",
    "delivery",
    "journal.fsync",
    "journal.interval",
    "journal.segment",
    "journal.keep",
    "checkpoint.seconds",
    "accept-loss",
    "label",
    "id",
    "ts",
    "weight",
    "max.message",
    "max.connections",
};
static const char *const live[] = {
    "refit.every",    "refit.seconds", "serve",           "alert.p", "alert.clear",
    "alert.cooldown", "publish.every", "publish.seconds", "scores",  "ts.ahead",
};

static const char *const limits[] = {"max.features", "max.sources", "labels.max"};

static bool among(const char *key, const char *const *keys, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

enum svi_setting_nature svi_settings_nature(const struct svi_setting *row) {
    if (among(row->key, outside, sizeof outside / sizeof outside[0]))
        return SVI_NATURE_OUTSIDE;
    if (among(row->key, limits, sizeof limits / sizeof limits[0]))
        return SVI_NATURE_LIMIT;
    return among(row->key, live, sizeof live / sizeof live[0]) ? SVI_NATURE_LIVE : SVI_NATURE_MODEL;
}
