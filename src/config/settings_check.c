/* The settings as a whole: contradictions between them, and values that follow from several.
 *
 * First all settings are set, each checked alone (settings.c). Then the functions that "settle"
 * replace defaults that do not suit other given settings; they never replace a chosen value. Then
 * the checks refuse what is left. The last part derives the options of reader, schema, learner and
 * novelty model. It relies on settings that were settled and checked.
 *
 * Each check covers one subject and reports both settings and what to change. All settings pass
 * svi_settings_check, also after a change while the stream runs (settings_record.c). Those of one
 * start (sockets, delivery, state) are known before a kept state is read: svi_settings_check_start.
 * Processes that bind addresses use svi_settings_check_security.
 *
 * Many checks ask whether a value was given or chosen: read enum svi_given and svi_settings_chosen
 * in settings.h first. */
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/machine_memory.h"
#include "svmstream/solver.h"
#include "quality/decision.h"
#include "config/rule_settings.h"
#include "config/settings.h"
#include "features/calendar.h"

#define KEYS_SHARE 0.25   /* share of the machine's memory for the entries of keys on disk */
#define MIN_GAMMA  1e-100 /* usable whatever the distances are */
#define MAX_GAMMA  1e100

static bool settings_from_stdin(const struct svi_settings *s) {
    return strcmp(s->in, "-") == 0;
}

#define X(constant, name, word, binds, replies, text) {constant, binds, replies},
static const struct svi_intake_mode in_modes[] = {SVI_INTAKES(X)};
#undef X

/* `in` decides before in.mode: standard input has no word of in.mode, whose default then means nothing. */
struct svi_intake_mode svi_settings_intake(const struct svi_settings *s) {
    return in_modes[settings_from_stdin(s) ? SVI_IN_STDIN : s->in_mode];
}

/* auto: as strong as possible without an fsync for each acknowledgement. */
enum svi_delivery svi_settings_delivery(const struct svi_settings *s) {
    if (s->delivery != SVI_DELIVERY_AUTO)
        return (enum svi_delivery)s->delivery;
    if (!in_modes[s->in_mode].replies)
        return SVI_AT_MOST_ONCE;
    return s->state_dir[0] ? SVI_AT_LEAST_ONCE : SVI_ACKED;
}

/* Only from durable on does an acknowledgement promise the disk. Below it a sync at intervals bounds what a
 * power cut can lose. */
enum svi_fsync svi_settings_fsync(const struct svi_settings *s) {
    if (s->journal_fsync != SVI_FSYNC_AUTO)
        return (enum svi_fsync)s->journal_fsync;
    return svi_settings_delivery(s) >= SVI_DURABLE ? SVI_FSYNC_ALWAYS : SVI_FSYNC_INTERVAL;
}

/* The levels are compared as numbers, since they are ordered from weak to strong. Standard input needs no
 * case of its own: svi_settings_check_start has refused any in.mode but pull with it, and pull does not
 * reply. */
static svs_code settings_check_delivery(const struct svi_settings *s, svs_error *err) {
    static const char *const kept[] = {"journal.fsync", "journal.interval",   "journal.segment",
                                       "journal.keep",  "checkpoint.seconds", "checkpoint.keep",
                                       "accept-loss"};
    /* `auto` resolves to a level that fits, so the errors below concern a level that was given. */
    enum svi_delivery level = svi_settings_delivery(s);
    const char *name = svi_settings_word("delivery", (int)level);
    /* Compared with the default, not with "given": a file that lists all settings must pass. */
    for (size_t i = 0; i < sizeof kept / sizeof kept[0] && !s->state_dir[0]; i++)
        if (!svi_settings_is_default(s, svi_settings_row(kept[i])))
            return svi_fail(err, SVS_SETTING, "%s applies to a kept state only: set state.dir too", kept[i]);
    /* The intake and the level must agree in both directions: a peer would wait for an acknowledgement that
     * nobody sends, or get one that promises nothing. */
    if (level > SVI_AT_MOST_ONCE && !in_modes[s->in_mode].replies)
        return svi_fail(err, SVS_SETTING,
                        "delivery %s acknowledges each message, but in.mode %s does not: set in.mode router",
                        name, svi_settings_word("in.mode", s->in_mode));
    if (level == SVI_AT_MOST_ONCE && in_modes[s->in_mode].replies)
        return svi_fail(err, SVS_SETTING,
                        "in.mode %s acknowledges each message, at-most-once does not: set delivery acked or "
                        "stronger, or in.mode pull",
                        svi_settings_word("in.mode", s->in_mode));
    /* What survives the process is in state.dir, and what survives a power cut is synced there as well. */
    if (level >= SVI_AT_LEAST_ONCE && !s->state_dir[0])
        return svi_fail(err, SVS_SETTING, "delivery %s keeps samples on disk: set state.dir too", name);
    if (level >= SVI_DURABLE && svi_settings_fsync(s) != SVI_FSYNC_ALWAYS)
        return svi_fail(
            err, SVS_SETTING,
            "delivery %s syncs before each acknowledgement: set journal.fsync always, or delivery "
            "at-least-once",
            name);
    return SVS_OK;
}

/* A word begins with 'l', which no number does. A text that is neither becomes NaN, so the one comparison
 * below refuses it together with numbers out of range. */
svs_code svi_settings_loss(const struct svi_settings *s, double *p, svs_error *err) {
    char *end;
    *p = strcmp(s->refit_loss, "l1") == 0   ? 1
         : strcmp(s->refit_loss, "l2") == 0 ? 2
                                            : strtod(s->refit_loss, &end);
    if (s->refit_loss[0] != 'l' && (end == s->refit_loss || *end)) /* `end` is set only if strtod ran */
        *p = NAN;
    if (*p >= 1 && *p <= 2)
        return SVS_OK;
    return svi_fail(err, SVS_SETTING,
                    "refit.loss: '%.40s' is not an allowed value (l1, l2, or a number from 1 to 2)",
                    s->refit_loss);
}

/* The text is parsed for its error; svi_settings_learning parses it again for its use. */
static svs_code settings_check_classes(const struct svi_settings *s, svs_error *err) {
    struct svi_class_weights w;
    SVI_TRY(svi_class_weights_read(s->class_weight, &w, err));
    if (w.rule != SVS_CLASSES_ALIKE && s->task == SVS_REGRESS)
        return svi_fail(
            err, SVS_SETTING,
            "class.weight applies to classes, but task is regress: set class.weight none, or task classify");
    return SVS_OK;
}

/* Settings that only a single linear model has: giving one of them without a method selects alsvm. */
static const char *const settings_of_alsvm[] = {
    "window",      "window.seconds", "C",          "forget",    "scale",       "refit",
    "refit.every", "refit.seconds",  "refit.loss", "refit.tol", "drift.action"};

/* The first setting of alsvm that was chosen; NULL: none was. Chosen, not given: a file that lists all
 * settings with their defaults must not select a method. `serve` and merge.from count only with values that
 * need one linear model. */
static const char *settings_chosen_of_alsvm(const struct svi_settings *s) {
    for (size_t i = 0; i < sizeof settings_of_alsvm / sizeof settings_of_alsvm[0]; i++)
        if (svi_settings_chosen(s, settings_of_alsvm[i]))
            return settings_of_alsvm[i];
    if (svi_settings_merges(s) && svi_settings_chosen(s, "merge.from"))
        return "merge.from";
    const bool second =
        s->serve == SVI_SERVE_REFIT || s->serve == SVI_SERVE_BEST || s->serve == SVI_SERVE_MERGED;
    return second && svi_settings_chosen(s, "serve") ? "serve" : NULL;
}

/* The first setting that excludes a prior from all keys (key.prior), whose sums are over windows of equally
 * weighted samples; NULL: none does. */
static const char *settings_without_prior(const struct svi_settings *s) {
    struct svi_class_weights w;
    /* With key.shared the first member of each key is an ALSVM, which can have a prior. Banks of single keys
     * cannot. */
    if (s->method != SVI_METHOD_ALSVM && s->method != SVI_METHOD_FALSVM && !svi_settings_stacked(s))
        return "method";
    if (s->window == 0)
        return "window";
    if (s->forget < 1)
        return "forget";
    /* An invalid class.weight is reported by its own check. */
    return svi_class_weights_read(s->class_weight, &w, NULL) == SVS_OK && w.rule != SVS_CLASSES_ALIKE
               ? "class.weight"
               : NULL;
}

/* The same for the bank of all keys (key.shared), which concerns method auto alone. */
static const char *settings_without_shared(const struct svi_settings *s) {
    struct svi_class_weights w;
    return s->method == SVI_METHOD_AUTO && svi_class_weights_read(s->class_weight, &w, NULL) == SVS_OK &&
                   w.rule != SVS_CLASSES_ALIKE
               ? "class.weight"
               : NULL;
}

/* The number of keys that fit into memory, at most `limit`: the name and the place of a key stay in memory
 * even if its state is on disk. */
static int64_t settings_keys_fit(int64_t limit) {
    const double fit = KEYS_SHARE * svi_machine_memory().bytes / SVI_KEY_ENTRY;
    /* 0 bytes mean that the memory is not known: the limit then stays as it is. */
    return fit > 0 && fit < (double)limit ? (int64_t)fmax(1, fit) : limit;
}

/* Sets the defaults of a stream with keys: its many models are small by default. The order matters:
 * keys.quota follows keys.max, key.shared follows the method, and key.prior follows both. Given values stay,
 * also those that a file states as defaults. The manual lists these defaults (src/manual/settings.md,
 * keys.md). */
static void settings_settle_keys(struct svi_settings *s) {
    if (!svi_settings_given(s, svi_settings_row("keys.max")))
        s->keys_max = settings_keys_fit(s->keys_max);
    if (settings_from_stdin(s) && !svi_settings_given(s, svi_settings_row("keys.quota")))
        s->keys_quota = s->keys_max; /* standard input has one producer: its quota is the whole */
    if (!svi_settings_given(s, svi_settings_row("method")))
        s->method = SVI_METHOD_ALSVM;
    /* What would be refused if it were set is off by default: with class.weight, key.shared, and below
     * key.prior with any setting that excludes it. */
    if (!svi_settings_given(s, svi_settings_row("key.shared")) && settings_without_shared(s))
        s->key_shared = false;
    if (!svi_settings_given(s, svi_settings_row("refit")))
        s->refit = SVI_REFIT_NONE;
    if (!svi_settings_given(s, svi_settings_row("max.classes")))
        s->max_classes = 8;
    if (!svi_settings_given(s, svi_settings_row("max.features")))
        s->max_features = 64;
    if (!svi_settings_given(s, svi_settings_row("drift.rate")))
        s->drift_rate = 0;
    if (!svi_settings_given(s, svi_settings_row("key.prior")) && settings_without_prior(s))
        s->key_prior = 0;
    if (!svi_settings_given(s, svi_settings_row("novelty.max")))
        s->novelty_max = 24;
    /* Under a budget 200 scores are enough. A level of p needs the default of 2000, because the calibration
     * bounds how small a p-value can be (settings_check_novelty). */
    const bool by_p = strcmp(s->alert_budget, "none") == 0 ||
                      svi_settings_given(s, svi_settings_row("alert.p")) ||
                      svi_settings_given(s, svi_settings_row("alert.fdr"));
    if (!by_p && !svi_settings_given(s, svi_settings_row("novelty.calibration")))
        s->novelty_calibration = 200; /* what the fit of the tail to the highest scores needs */
}

/* Keys come first: they set a method, so that the rule for alsvm below finds nothing left to do. */
const char *svi_settings_settle_method(struct svi_settings *s) {
    if (svi_settings_keyed(s))
        settings_settle_keys(s);
    /* Given, not chosen: `method: auto` in a file counts although it states the default. It is then not
     * replaced, and a setting that it would ignore is refused (settings_check_auto). */
    const char *key = s->method == SVI_METHOD_AUTO && !svi_settings_given(s, svi_settings_row("method"))
                          ? settings_chosen_of_alsvm(s)
                          : NULL;
    if (key)
        s->method = SVI_METHOD_ALSVM;
    return key;
}

svs_code svi_settings_settle_alerts(struct svi_settings *s, const char **key, svs_error *err) {
    const struct svi_setting *row = svi_settings_row("alert.budget");
    const char *by = svi_settings_chosen(s, "alert.p") ? "alert.p" : "alert.fdr";
    *key = NULL;
    /* The arrival times of a file's rows mean nothing: without ts, a fixed interval counts for the budget. */
    if (settings_from_stdin(s) && !svi_settings_given(s, svi_settings_row("alert.interval")))
        s->alert_interval = SVI_FILE_INTERVAL;
    /* A budget that is only the default gives way to a level that was chosen. Two choices contradict each
     * other. */
    if (!svi_settings_chosen(s, by) || strcmp(s->alert_budget, "none") == 0)
        return SVS_OK;
    if (svi_settings_chosen(s, row->key))
        return svi_fail(err, SVS_SETTING, "alert.budget %.40s and %s exclude each other: remove one of them",
                        s->alert_budget, by);
    strcpy(s->alert_budget, "none");
    s->given[row - svi_settings_table] = SVI_GIVEN_AS_DEFAULT; /* so that it also replaces a kept state's */
    *key = by;
    return SVS_OK;
}

/* method auto chooses the settings of its members itself: a setting that it would ignore is refused. */
static svs_code settings_check_auto(const struct svi_settings *s, svs_error *err) {
    const char *key = settings_chosen_of_alsvm(s);
    if (s->method == SVI_METHOD_AUTO && key)
        return svi_fail(err, SVS_SETTING, "method auto does not use %s: remove %s, or set method alsvm", key,
                        key);
    /* The same the other way round: what only method auto has. */
    if (s->method != SVI_METHOD_AUTO && svi_settings_chosen(s, "auto.budget"))
        return svi_fail(err, SVS_SETTING,
                        "auto.budget applies to method auto only: remove it, or set method auto");
    if (s->method != SVI_METHOD_AUTO && s->serve == SVI_SERVE_LINEAR)
        return svi_fail(
            err, SVS_SETTING,
            "serve linear applies to method auto only; method %s is linear already: set serve online",
            svi_settings_word("method", s->method));
    return SVS_OK;
}

/* Settings about keys without keys, and settings that a stream with keys does not support. */
static svs_code settings_check_keys(const struct svi_settings *s, svs_error *err) {
    static const char *const of_keys[] = {"keys.max",   "keys.memory", "keys.idle",
                                          "keys.quota", "key.prior",   "key.shared"};
    for (size_t i = 0; !svi_settings_keyed(s) && i < sizeof of_keys / sizeof of_keys[0]; i++)
        if (svi_settings_chosen(s, of_keys[i]) && !svi_settings_is_default(s, svi_settings_row(of_keys[i])))
            return svi_fail(err, SVS_SETTING, "%s applies to a stream with keys: set key too, or remove it",
                            of_keys[i]);
    /* From here on the stream has keys. settle_keys has set refit none unless another was given. */
    if (!svi_settings_keyed(s))
        return SVS_OK;
    if (s->refit != SVI_REFIT_NONE)
        return svi_fail(err, SVS_SETTING,
                        "refit does not apply to a stream with keys, whose models are exact at any time: set "
                        "refit none, or remove key");
    /* Three cases of a prior that cannot be. With method auto and no class.weight, each key has a bank of its
     * own: settings_check_auto has refused window and forget. With class.weight, that is what to leave out,
     * since it also switches key.shared off by default. With other methods the setting in the way is named.
     */
    const char *without = s->key_prior > 0 ? settings_without_prior(s) : NULL;
    if (without && s->method == SVI_METHOD_AUTO && !settings_without_shared(s))
        return svi_fail(
            err, SVS_SETTING,
            "key.prior does not apply to a bank for each key: set key.prior 0, or key.shared yes");
    if (without && s->method == SVI_METHOD_AUTO)
        without = "class.weight";
    if (without)
        return svi_fail(err, SVS_SETTING,
                        "key.prior needs method alsvm or falsvm (or auto with key.shared), a window, forget "
                        "1 and no class.weight: set key.prior 0, or remove %s",
                        without);
    /* "no" may wait for a change to method auto while the stream runs; "yes" would never have an effect. */
    if (s->method != SVI_METHOD_AUTO && s->key_shared && svi_settings_chosen(s, "key.shared"))
        return svi_fail(err, SVS_SETTING,
                        "key.shared applies to method auto only: remove it, or set method auto");
    if (s->key_shared && settings_without_shared(s))
        return svi_fail(err, SVS_SETTING,
                        "key.shared weighs all classes alike: set key.shared no, or remove class.weight");
    /* The default clip is no request: with keys it has no effect, and only a chosen one is refused. */
    if (svi_settings_chosen(s, "outlier") && s->outlier != SVI_OUTLIER_TAKE)
        return svi_fail(err, SVS_SETTING,
                        "outlier %s does not apply to a stream with keys, which takes all values unchanged: "
                        "set outlier take, or remove outlier or key",
                        svi_settings_word("outlier", s->outlier));
    if (s->keys_quota > s->keys_max)
        return svi_fail(
            err, SVS_SETTING,
            "keys.quota %lld is above keys.max %lld and has no effect: lower keys.quota, or raise keys.max",
            (long long)s->keys_quota, (long long)s->keys_max);
    return SVS_OK;
}

/* The learner and its refit: actions need what they act on, and each solver has its losses. */
static svs_code settings_check_learner(const struct svi_settings *s, svs_error *err) {
    double p;
    if (s->method == SVI_METHOD_FALSVM && s->task == SVS_REGRESS)
        return svi_fail(err, SVS_SETTING,
                        "method falsvm learns classes only: set task classify or method alsvm");
    if (s->drift_action == SVI_DRIFT_SHRINK && s->window == 0)
        return svi_fail(
            err, SVS_SETTING,
            "drift.action shrink needs a window, but window is 0: set window, or drift.action none");
    /* With merge.from the same contradiction has another cause and another remedy: settings_check_merge
     * reports it. */
    if (s->drift_action == SVI_DRIFT_REFIT && s->refit == SVI_REFIT_NONE && !svi_settings_merges(s))
        return svi_fail(
            err, SVS_SETTING,
            "drift.action refit needs a refit: set refit, or drift.action none");
    /* A time bounds no memory: the samples of a time are held in a window, which needs a largest number. */
    if (s->window_seconds > 0 && s->window == 0)
        return svi_fail(
            err, SVS_SETTING,
            "window.seconds needs a window, but window is 0: set window to the largest number of samples");
    /* The solver last, since it needs the exponent. Only nesvm and dcd restrict the loss. */
    SVI_TRY(svi_settings_loss(s, &p, err));
    if (s->refit == SVS_SOLVER_NESVM && p != 1)
        return svi_fail(err, SVS_SETTING,
                        "refit nesvm supports refit.loss l1 only: set refit.loss l1, or refit auto");
    if (s->refit == SVS_SOLVER_DCD && p != 1 && p != 2)
        return svi_fail(err, SVS_SETTING,
                        "refit dcd supports refit.loss l1 and l2 only: set one of these, or refit auto");
    return SVS_OK;
}

/* Keys take the merged prior, and no merged model. */
static svs_code settings_check_merged_keys(const struct svi_settings *s, svs_error *err) {
    if (!(s->key_prior > 0))
        return svi_fail(err, SVS_SETTING,
                        "with keys, merge.from supplies the prior of new keys, but key.prior is 0: set "
                        "key.prior above 0 (it needs a window, and class.weight none), or merge.from none");
    if (s->serve == SVI_SERVE_MERGED)
        return svi_fail(err, SVS_SETTING,
                        "serve merged does not apply to a stream with keys, which has a model for each: "
                        "remove key, or set serve online");
    return SVS_OK;
}

/* merge.from: what takes merged models, and what their place excludes. */
static svs_code settings_check_merge(const struct svi_settings *s, svs_error *err) {
    if (!svi_settings_merges(s))
        return s->serve == SVI_SERVE_MERGED ? svi_fail(err, SVS_SETTING,
                                                       "serve merged needs a merger: set merge.from to the "
                                                       "`out` of svmstream merge, or set serve online")
                                            : SVS_OK;
    /* Keys first: they take a prior and no model, so none of the rest concerns them. */
    if (svi_settings_keyed(s))
        return settings_check_merged_keys(s, err);
    if (s->method == SVI_METHOD_AUTO || s->method == SVI_METHOD_NONE)
        return svi_fail(err, SVS_SETTING,
                        "merge.from needs a linear model, which method %s does not have: set method alsvm, "
                        "or merge.from none",
                        svi_settings_word("method", s->method));
    /* merge.from implies refit none (svi_settings_refits). The default refit is therefore no contradiction,
     * and a chosen one is. */
    if (s->refit != SVI_REFIT_NONE && svi_settings_chosen(s, "refit"))
        return svi_fail(
            err, SVS_SETTING,
            "the merged model of merge.from replaces the refit: set refit none, or merge.from none");
    if (s->drift_action == SVI_DRIFT_REFIT)
        return svi_fail(err, SVS_SETTING,
                        "drift.action refit needs a refit, which merge.from replaces: set drift.action none, "
                        "or merge.from none");
    if (s->serve == SVI_SERVE_REFIT)
        return svi_fail(err, SVS_SETTING,
                        "merge.from replaces the refit, which serve needs: set serve merged, best or online");
    return SVS_OK;
}

/* Novelty and the levels of its alerts. With novelty none the levels have no effect and are not checked. */
static svs_code settings_check_novelty(const struct svi_settings *s, svs_error *err) {
    svs_novelty_options o;
    svs_code code = svi_settings_novelty(s, &o, err);
    /* The p-value of a score above all n calibration scores is 1 / (n + 1): none can be smaller. */
    const double smallest_p = 1 / (1 + (double)s->novelty_calibration);
    double budget;
    /* The width of the kernel was checked above whatever the novelty is. With novelty none all else ends
     * here. */
    if (code == SVS_OK && s->novelty == SVI_NOVELTY_NONE && s->method == SVI_METHOD_NONE)
        return svi_fail(
            err, SVS_SETTING,
            "method none and novelty none leave nothing to do: set method alsvm or novelty fosvm1");
    if (code != SVS_OK || s->novelty == SVI_NOVELTY_NONE)
        return code;
    code = svi_settings_alert_budget_read(s->alert_budget, &budget, err);
    if (code != SVS_OK)
        return code;
    /* alert.p decides only without a budget and without alert.fdr. A level that no score can reach would be a
     * stream without alerts, which looks like a healthy one. */
    if (budget == 0 && s->alert_fdr == 0 && s->alert_p < smallest_p)
        return svi_fail(err, SVS_SETTING,
                        "novelty.calibration %lld allows no p-value below %.3g, so alert.p %g is never "
                        "reached: set novelty.calibration to %.0f or more",
                        (long long)s->novelty_calibration, smallest_p, s->alert_p, ceil(1 / s->alert_p) - 1);
    if (s->alert_clear < s->alert_p)
        return svi_fail(err, SVS_SETTING,
                        "alert.clear %g is below alert.p %g, which would close an alert at once: set "
                        "alert.clear to %g or more",
                        s->alert_clear, s->alert_p, s->alert_p);
    return SVS_OK;
}

int svi_settings_feature_count(const struct svi_settings *s) {
    int count = s->features[0] ? 1 : 0;
    for (const char *at = s->features; *at; at++)
        count += *at == ',';
    return count;
}

/* START rows only. With a kept state this is the whole check before the state is read, so nothing here may
 * depend on a row that the state records. */
svs_code svi_settings_check_start(const struct svi_settings *s, svs_error *err) {
    const struct {
        const char *key_a, *a, *key_b, *b;
    } pairs[] = {{"in", s->in, "out", s->out}, {"in", s->in, "ctl", s->ctl}, {"out", s->out, "ctl", s->ctl}};
    for (int i = 0; i < 3; i++) {
        const char *a = pairs[i].a;
        const size_t n = strlen(a); /* a port that the system chooses (* or 0) differs for each socket */
        bool any_port = n > 2 && (strcmp(a + n - 2, ":*") == 0 || strcmp(a + n - 2, ":0") == 0);
        if (strcmp(a, pairs[i].b) == 0 && !any_port)
            return svi_fail(err, SVS_SETTING, "%s and %s have the same address %.100s: change one of them",
                            pairs[i].key_a, pairs[i].key_b, a);
    }
    /* Standard input reads while in.mode is pull, its default. settings_check_delivery relies on that, and
     * comes last. */
    if (settings_from_stdin(s) && s->in_mode != SVI_IN_PULL)
        return svi_fail(err, SVS_SETTING,
                        "in.mode %s needs a socket, but in is - (standard input): set in to an address",
                        svi_settings_word("in.mode", s->in_mode));
    if (s->in_topic[0] && s->in_mode != SVI_IN_SUB)
        return svi_fail(err, SVS_SETTING,
                        "in.topic applies to subscribers only: set in.mode sub, or remove in.topic");
    return settings_check_delivery(s, err);
}

/* The windows of the least-squares members of method auto that forget nothing (bank/members.c). */
static const int64_t windows_of_auto[] = {50, 200, 1000, SVI_AUTO_WINDOW, 0};

/* merge.window names a learner. That of method auto is one of several. */
static svs_code settings_check_merge_window(const struct svi_settings *s, svs_error *err) {
    const long long wanted = s->merge_window;
    bool known = s->merge_window == SVI_MERGE_WINDOW_OWN;
    if (s->method != SVI_METHOD_AUTO && !known && s->merge_window != s->window)
        return svi_fail(
            err, SVS_SETTING,
            "merge.window %lld: method alsvm has one window, %lld: set merge.window own, or window "
            "%lld",
            wanted, (long long)s->window, wanted);
    /* 0 is a window as well: the member that holds all samples. */
    for (size_t i = 0; i < sizeof windows_of_auto / sizeof *windows_of_auto; i++)
        known |= s->merge_window == windows_of_auto[i];
    if (s->method == SVI_METHOD_AUTO && !known)
        return svi_fail(err, SVS_SETTING,
                        "merge.window %lld: method auto has no least-squares member with this window: set "
                        "50, 200, 1000, 5000, or 0 for all samples",
                        wanted);
    return SVS_OK;
}

/* Alerts take an unknown zone for UTC, so that a kept state also starts on a machine without time zones. A
 * zone that was given here must be known. */
static svs_code settings_check_zone(const struct svi_settings *s, svs_error *err) {
    return svi_settings_given(s, svi_settings_row("zone")) ? svi_calendar_set_zone(s->zone, err) : SVS_OK;
}

/* Sums are published where they add up: of least squares, in which each sample counts for as long as it is
 * held. */
static svs_code settings_check_sums(const struct svi_settings *s, svs_error *err) {
    if (s->publish_sums == 0)
        return SVS_OK;
    if (s->method == SVI_METHOD_NONE || s->method == SVI_METHOD_FALSVM)
        return svi_fail(err, SVS_SETTING,
                        "publish.sums needs a least-squares model, which method %s does not have: set method "
                        "alsvm or auto, or publish.sums 0",
                        svi_settings_word("method", s->method));
    if (s->method == SVI_METHOD_ALSVM && s->forget < 1)
        return svi_fail(err, SVS_SETTING,
                        "publish.sums needs samples of constant weight, but forget %g fades them: set forget "
                        "1, or publish.sums 0",
                        s->forget);
    /* With keys the sums are of the windows of all keys. They are kept with those of the prior, and
     * merge.window has nothing to choose. */
    if (svi_settings_keyed(s) && !(s->key_prior > 0))
        return svi_fail(err, SVS_SETTING,
                        "publish.sums of a stream with keys needs the sums of key.prior: set key.prior above "
                        "0 (it needs a window, and class.weight none), or publish.sums 0");
    if (svi_settings_keyed(s) && s->method == SVI_METHOD_AUTO && s->merge_window != SVI_MERGE_WINDOW_OWN)
        return svi_fail(err, SVS_SETTING,
                        "merge.window %lld: a stream with keys publishes the sums of the keys' own windows: "
                        "set merge.window own",
                        (long long)s->merge_window);
    return settings_check_merge_window(s, err);
}

/* A price is weighed with the probability of a class: it needs classes, and a method that has
 * probabilities. */
static svs_code settings_check_decision(const struct svi_settings *s, svs_error *err) {
    struct svi_decision_cost cost;
    SVI_TRY(svi_decision_cost_parse(&cost, s->decision_cost, err));
    if (cost.count > 0 && s->task == SVS_REGRESS)
        return svi_fail(err, SVS_SETTING,
                        "decision.cost applies to classes only: remove it, or set task classify");
    if (cost.count > 0 && s->method == SVI_METHOD_NONE)
        return svi_fail(
            err, SVS_SETTING,
            "decision.cost needs probabilities, which method none does not have: set method alsvm");
    return SVS_OK;
}

svs_code svi_settings_check(const struct svi_settings *s, svs_error *err) {
    /* The parsed rules are not used here: the modules that apply them parse the texts again. */
    struct svi_rule_settings rules;
    const int count = svi_settings_feature_count(s);
    /* Only the first contradiction is reported, so the general ones come first. */
    svs_code code = svi_settings_check_start(s, err);
    code = code == SVS_OK ? settings_check_auto(s, err) : code;
    code = code == SVS_OK ? settings_check_learner(s, err) : code;
    /* Keys after auto, on whose refusals the text about key.prior relies. Sums after keys, whose prior they
     * need. */
    code = code == SVS_OK ? settings_check_keys(s, err) : code;
    code = code == SVS_OK ? settings_check_merge(s, err) : code;
    code = code == SVS_OK ? settings_check_sums(s, err) : code;
    code = code == SVS_OK ? settings_check_classes(s, err) : code;
    code = code == SVS_OK ? settings_check_novelty(s, err) : code;
    code = code == SVS_OK ? svi_rule_settings_read(s->alert_rules, s->alert_absent, s->limits, &rules, err)
                          : code;
    code = code == SVS_OK ? svi_rule_delays_read(s->alert_ondelay, false, rules.on_delay, err) : code;
    code = code == SVS_OK ? svi_rule_delays_read(s->alert_offdelay, true, rules.off_delay, err) : code;
    code = code == SVS_OK ? svi_limits_check(s->limits, s->features, svi_settings_keyed(s), err) : code;
    code = code == SVS_OK ? settings_check_decision(s, err) : code;
    code = code == SVS_OK ? settings_check_zone(s, err) : code;
    /* The number of names last, once every text is known to be right: beyond max.features some of them could
     * not become a feature. */
    if (code != SVS_OK || count <= s->max_features)
        return code;
    return svi_fail(err, SVS_SETTING,
                    "features names %d features, but max.features is %lld: raise max.features", count,
                    (long long)s->max_features);
}

/* Is the address reachable from this machine only? ipc, inproc, 127.0.0.0/8, ::1, localhost and the interface
 * lo are. Anything not recognised counts as reachable: in doubt, protection is demanded. */
static bool settings_is_local(const char *address) {
    char host[64];
    struct in_addr v4;
    struct in6_addr v6;
    /* begin is used only after the prefix "tcp://", so it is inside; the last ':' precedes the port, also of
     * an IPv6 address in brackets. */
    const char *begin = address + 6, *colon = strrchr(address, ':');
    /* A file or a name within the process: no network reaches it. */
    if (strncmp(address, "ipc://", 6) == 0 || strncmp(address, "inproc://", 9) == 0)
        return true;
    if (strncmp(address, "tcp://", 6) != 0 || colon < begin || (size_t)(colon - begin) >= sizeof host)
        return false;
    snprintf(host, sizeof host, "%.*s", (int)(colon - begin), begin);
    size_t n = strlen(host);
    /* Numbers are compared as numbers: ::1 has several spellings, and all of 127.0.0.0/8 is local. Names are
     * not resolved. */
    if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
        host[n - 1] = '\0';
        return inet_pton(AF_INET6, host + 1, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
    }
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return strcmp(host, "lo") == 0 || strcasecmp(host, "localhost") == 0;
}

/* Subscribers (in.mode sub) connect instead of binding; with standard input only chosen sockets open. */
bool svi_settings_binds(const struct svi_settings *s, const char *key, const char *address) {
    if (strcmp(key, "in") == 0)
        return svi_settings_intake(s).binds;
    return address[0] && (!settings_from_stdin(s) || svi_settings_chosen(s, key));
}

svs_code svi_settings_check_security(const struct svi_settings *s, svs_error *err) {
    const struct { const char *key, *address; } sockets[] = {{"in", s->in}, {"out", s->out}, {"ctl", s->ctl}};
    /* A bound socket is protected by its own key, but a subscriber must know the publisher's to trust it. */
    bool off = strcmp(s->curve, "off") == 0, sub = !settings_from_stdin(s) && s->in_mode == SVI_IN_SUB;
    const bool merges = svi_settings_merges(s);
    /* Empty would be neither off nor a file, so it is refused before anything is concluded from `off`. */
    if (!s->curve[0] || !s->curve_allow[0])
        return svi_fail(err, SVS_SETTING,
                        "curve and curve.allow must not be empty: set curve to off, on or a key file, and "
                        "curve.allow to a file");
    /* With CURVE on, the side that connects must know which key to trust. `insecure` waives both refusals
     * below. */
    if (!off && (sub || merges) && !s->curve_server[0] && !s->insecure)
        return svi_fail(err, SVS_SETTING,
                        "%s with curve needs the publisher's public key: set --curve.server KEY, or "
                        "--insecure if the publisher does not use curve",
                        sub ? "in.mode sub" : "merge.from");
    for (int i = 0; i < 3 && off && !s->insecure; i++)
        if (svi_settings_binds(s, sockets[i].key, sockets[i].address) &&
            !settings_is_local(sockets[i].address))
            return svi_fail(
                err, SVS_SETTING,
                "%s %.60s is reachable from other machines without protection: create a key with `svmstream "
                "curve new` and set --curve on, or set --insecure to let anybody there feed, read and stop "
                "it",
                sockets[i].key, sockets[i].address);
    return SVS_OK;
}

/* A label that was chosen must exist as a column; one chosen as "" means that rows have none. Without a
 * choice the reader may guess the label by its place, unless a regression was asked for. */
struct svi_reader_options svi_settings_reader(const struct svi_settings *s) {
    /* A default label is a guess that the rows may correct. `task` counts only if chosen, because its default
     * is classify. */
    const bool chosen = svi_settings_chosen(s, "label"), none = chosen && !*s->label;
    const bool numbers = svi_settings_chosen(s, "task") && s->task == SVS_REGRESS;
    return (struct svi_reader_options){
        .format = s->in_format,
        .label = s->label,
        .label_required = chosen && !none,
        .placed = !chosen && !numbers && s->method != SVI_METHOD_NONE,
        .id = s->id,
        .ts = s->ts,
        .ts_format = s->ts_format,
        .weight = s->weight,
        .key = s->key,
        .ignore = s->ignore,
        .categories = s->categories,
        .numbers = s->numbers,
        .features = s->features,
        .columns = s->columns,
        .no_header = s->no_header,
        .missing = s->missing_words,
        .hash = s->hash > 0,
        .unlabelled = none || s->method == SVI_METHOD_NONE,
        .task_given = svi_settings_chosen(s, "task"),
    };
}

void svi_settings_learner(const struct svi_settings *s, svs_options *o) {
    svs_options_default(o);
    o->task = (svs_task)s->task;
    o->rule = s->method == SVI_METHOD_FALSVM ? SVS_FALSVM : SVS_ALSVM;
    o->C = s->C;
    o->window = s->window;
    o->window_seconds = s->window_seconds;
    o->forget = s->forget;
    o->scale = (svs_scale)s->scale;
    o->max_features = (int)s->max_features;
    o->max_classes = (int)s->max_classes;
    o->labels_ttl = s->labels_ttl;
    o->labels_max = (int)s->labels_max;
    if (s->method != SVI_METHOD_AUTO)
        return;
    const bool stacked = svi_settings_stacked(s);
    /* The learner that holds the samples of a bank has default settings: the members have their own. What
     * concerns task, capacity and late labels stays. */
    const svs_options given = *o;
    svs_options_default(o);
    o->task = given.task;
    o->window = stacked ? SVI_STACK_WINDOW : SVI_AUTO_WINDOW;
    o->max_features = given.max_features;
    o->max_classes = given.max_classes;
    o->labels_ttl = given.labels_ttl;
    o->labels_max = given.labels_max;
}

/* An entry of the text has at least four bytes, "1=2,", and becomes at most two entries. */
_Static_assert(SVI_CLASS_WEIGHTS_MAX >= SVI_TEXT_MAX / 2, "class.weight holds its entries");

svs_code svi_settings_learning(const struct svi_settings *s, struct svi_class_weights *w, svs_options *o,
                               svs_error *err) {
    svi_settings_learner(s, o);
    svs_code code = svi_class_weights_read(s->class_weight, w, err);
    o->class_rule = w->rule;
    o->class_weight = w->of;
    o->class_weight_count = w->count;
    return code;
}

void svi_settings_schema(const struct svi_settings *s, struct svi_schema_options *o) {
    /* A feature is reused only after this many rows without its value: no row held for novelty then has it.
     */
    const int64_t calibrates = s->novelty == SVI_NOVELTY_NONE ? 0 : 2 * s->novelty_calibration;
    *o = (struct svi_schema_options){.max_features = (int)s->max_features,
                                     .features = s->features,
                                     .categories = s->categories,
                                     .numbers = s->numbers,
                                     .ignore = s->ignore,
                                     .unscaled = s->unscaled,
                                     .categories_max = (int)s->categories_max,
                                     .hash = (int)s->hash,
                                     .calendar = s->calendar,
                                     .zone = s->zone,
                                     .refuse_new = s->columns_new == SVI_COLUMNS_REFUSE,
                                     .missing = (enum svi_missing)s->missing,
                                     .held_rows = calibrates};
}

svs_code svi_settings_novelty(const struct svi_settings *s, svs_novelty_options *o, svs_error *err) {
    static const struct svi_word rules[] = {
        {"auto", SVS_GAMMA_AUTO}, {"median", SVS_GAMMA_MEDIAN}, {"scale", SVS_GAMMA_SCALE}};
    const char *text = s->novelty_gamma;
    svs_novelty_options_default(o);
    /* novelty none has the options of fosvm1: they are checked, and not used. */
    o->fosvm = s->novelty == SVI_NOVELTY_FOSVM2 ? SVI_NOVELTY_FOSVM2 : SVI_NOVELTY_FOSVM1;
    o->kernel = (svs_novelty_kernel)s->novelty_kernel;
    o->theta = s->novelty_theta;
    o->epsilon = s->novelty_epsilon;
    o->m = s->novelty_m;
    o->max = (int)s->novelty_max;
    o->trim = s->novelty_trim;
    o->seed = (uint64_t)s->seed;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(text, rules[i].word) == 0) {
            o->gamma_rule = (svs_gamma_rule)rules[i].value;
            return SVS_OK;
        }
    /* No word: it must be a number. The range refuses infinity and NaN, which strtod takes. */
    char *end;
    o->gamma_rule = SVS_GAMMA_GIVEN;
    o->gamma = strtod(text, &end);
    if (end != text && !*end && o->gamma >= MIN_GAMMA && o->gamma <= MAX_GAMMA)
        return SVS_OK;
    return svi_fail(
        err, SVS_SETTING,
        "novelty.gamma: '%.20s' is not an allowed value (auto, median, scale, or a number from %g to %g)",
        text, MIN_GAMMA, MAX_GAMMA);
}
