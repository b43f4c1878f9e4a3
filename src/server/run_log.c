/* The log of a run, in chronological order: addresses and limits; refusals and alerts; the summary.
 *
 * On sockets nobody could read a line for each refusal: the first is logged at once, those within a second
 * after it are counted and become one line. Rows of standard input are reported individually where they are
 * read (intake_stdin.c), so nothing is counted for them. The accuracy is the last line of the summary, where
 * programs look for it. */
#include "server/run_log.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "fleet/fleet.h"
#include "report/verdict.h"

#define BETWEEN 1.0 /* seconds between two lines */
#define SHOWN   5   /* notices about labels (new ones; 7 and "7") that are logged */
#define KIB     1024.0
#define GIB     (1024 * 1024 * KIB)

/* ---- the start */

void svi_run_log_line(const struct svi_run_log *l, const char *format, ...) {
    va_list args;
    if (!l->to)
        return;
    va_start(args, format);
    vfprintf(l->to, format, args);
    va_end(args);
    fflush(l->to);
}

/* How many keys fit into memory, and which setting or limit decides. */
static void run_log_keys(const struct svi_run_log *l) {
    const struct svi_settings *s = l->settings;
    const int d = svi_keys_features(s);
    struct svi_keys_memory m;
    if (!svi_settings_keyed(s) || svi_settings_intake(s).mode == SVI_IN_STDIN)
        return;
    svi_keys_memory(s, d, 2, &m);
    fprintf(l->to, "keys: at most %lld in memory (", (long long)m.most);
    if (s->keys_memory > 0)
        fprintf(l->to, "keys.memory; with %d features up to %.2f GiB, %s %.2f GiB", d,
                (double)m.most * m.each / GIB, m.of, m.machine / GIB);
    else
        fprintf(l->to, "%.2f GiB, half of what %s; each up to %.0f KiB with %d features", m.share / GIB, m.of,
                m.each / KIB, d);
    fprintf(l->to, "), the others on disk\n");
}

void svi_run_log_stream(const struct svi_run_log *l) {
    char text[SVS_ERROR_TEXT];
    if (!l->to)
        return;
    run_log_keys(l);
    if (svi_stream_strangers(l->stream, text, sizeof text))
        fprintf(l->to, "config: %s\n", text);
}

/* ---- meanwhile */

/* Counts events for the next line. Only the text of the first refusal and of the latest alert is kept: a
 * flood costs no memory and one line. */
static void run_log_count(struct svi_run_log *l, const struct svi_event *e) {
    if (!l->to || !l->counts)
        return;
    if (e->topic == SVI_TOPIC_ALERT) {
        l->alerts++;
        snprintf(l->alert, sizeof l->alert, "%s", e->as.alert.text);
    } else if (e->topic == SVI_TOPIC_ERROR) {
        l->refused[e->as.error.code]++;
        if (!l->reason[0])
            snprintf(l->reason, sizeof l->reason, "%s", e->as.error.reason);
    }
    l->due = l->due || e->topic == SVI_TOPIC_ALERT || e->topic == SVI_TOPIC_ERROR;
}

/* The subject of an error event that refuses no sample; NULL: it refuses one. */
static const char *run_log_subject(svs_code code) {
    return code == SVS_CLOCK_MOVED                                    ? "clock"
           : code == SVS_CONFIG_CHANGED || code == SVS_UNKNOWN_COLUMN ? "config"
           : code == SVS_AMBIGUOUS_CLASS || code == SVS_NEW_CLASS     ? "label"
           : code == SVS_STATE_LOADED                                 ? "state"
                                                                      : NULL;
}

/* Each key may send its own notice about a label. Each adopts a change of settings when it is next used,
 * which the stream has reported for all of them: a line a key would bury the log. */
static bool run_log_shows(struct svi_run_log *l, const char *subject, const struct svi_event *e) {
    if (strcmp(subject, "label") == 0)
        return l->labels++ < SHOWN;
    return e->as.error.code != SVS_CONFIG_CHANGED || !e->key || !*e->key;
}

bool svi_run_log_notice(struct svi_run_log *l, const struct svi_event *e) {
    const svs_code code = e->topic == SVI_TOPIC_ERROR ? e->as.error.code : SVS_OK;
    const char *subject = run_log_subject(code);
    if (!subject)
        run_log_count(l, e);
    else if (l->to && run_log_shows(l, subject, e))
        svi_run_log_line(l, "%s: %s\n", subject, e->as.error.reason);
    return subject != NULL;
}

double svi_run_log_wait(const struct svi_run_log *l) {
    return l->due ? fmax(0, l->logged + BETWEEN - svi_monotonic()) : INFINITY;
}

static void run_log_refusals(const struct svi_run_log *l) {
    char reasons[SVS_ERROR_TEXT];
    int64_t total = 0;
    for (int code = 0; code < SVS_CODE_COUNT; code++)
        total += l->refused[code];
    /* The first reason in full stands for all of the period. */
    if (total > 0)
        fprintf(l->to, "refused %" PRId64 " (%s): %s%s%s", total,
                svi_code_counts(l->refused, reasons, sizeof reasons, NULL), l->reason,
                total > 1 ? "; ..." : "", l->alerts > 0 ? "; " : "");
}

void svi_run_log_turn(struct svi_run_log *l, bool last) {
    if (!l->due || (!last && svi_run_log_wait(l) > 0))
        return;
    run_log_refusals(l);
    if (l->alerts == 1)
        fprintf(l->to, "alert: %s", l->alert);
    else if (l->alerts > 1)
        fprintf(l->to, "%" PRId64 " messages of alerts, the last one: %s", l->alerts, l->alert);
    fputc('\n', l->to);
    fflush(l->to);
    /* The next period starts empty. */
    memset(l->refused, 0, sizeof l->refused);
    l->alerts = 0;
    l->due = false;
    l->reason[0] = l->alert[0] = 0;
    l->logged = svi_monotonic();
}

/* ---- the end */

/* Refusals by code as text. Keys keep their own counts by code; of those only the sum is known here. */
static void run_log_reasons(const struct svi_run_log *l, char *reasons, size_t size, svs_code *commonest) {
    const int64_t *all = svi_engine_refusals(svi_stream_root(l->stream));
    int64_t others = svi_stream_refused(l->stream), refused[SVS_CODE_COUNT];
    for (int code = 0; code < SVS_CODE_COUNT; code++) {
        refused[code] = svi_code_is_notice((svs_code)code) ? 0 : all[code];
        others -= refused[code];
    }
    svi_code_counts(refused, reasons, size, commonest);
    const size_t at = strlen(reasons);
    if (others > 0)
        snprintf(reasons + at, size - at, "%s%" PRId64 " of keys", at > 0 ? ", " : "", others);
}

/* The summary of a stream with keys: sums over keys, as there is no single model. */
static void run_log_key_figures(const struct svi_settings *s, const struct svi_figure *f, int count,
                                FILE *to) {
    const bool regress = s->task == SVS_REGRESS;
    const double quality = svi_figure_value(f, count, regress ? "keys_rmse" : "keys_accuracy");
    fprintf(to, "keys %.0f\nalerts %.0f\n", svi_figure_value(f, count, "keys"),
            svi_figure_value(f, count, "keys_alerts"));
    if (!isnan(quality))
        fprintf(to, "%s %.3f\n", regress ? "rmse" : "accuracy", quality);
}

void svi_run_log_summary(const struct svi_run_log *l, double now) {
    const struct svi_settings *s = l->settings;
    const struct svi_figure *f;
    static const char *const kinds[][2] = {{"quality_alerts", "quality alerts"},
                                           {"rule_alerts", "rule alerts"}};
    const char *name = s->task == SVS_REGRESS ? "rmse" : "accuracy";
    char reasons[SVS_ERROR_TEXT];
    FILE *to = l->to;
    if (!to)
        return;
    const int count = svi_stream_figures(l->stream, NULL, now, &f);
    const double quality = svi_figure_value(f, count, name),
                 suppressed = svi_figure_value(f, count, "alerts_suppressed");
    /* Counts first, then alerts by kind, then the verdict, and the quality in the last line. */
    run_log_reasons(l, reasons, sizeof reasons, NULL);
    fprintf(to, "seen %" PRId64 "\nrefused %" PRId64 "%s%s%s\n", svi_stream_seen(l->stream),
            svi_stream_refused(l->stream), reasons[0] ? " (" : "", reasons, reasons[0] ? ")" : "");
    if (svi_settings_keyed(s)) {
        run_log_key_figures(s, f, count, to);
        fflush(to);
        return;
    }
    if (s->novelty != SVI_NOVELTY_NONE)
        fprintf(to, "alerts %.0f\n", svi_figure_value(f, count, "alerts"));
    for (int i = 0; i < 2; i++)
        if (svi_figure_value(f, count, kinds[i][0]) > 0)
            fprintf(to, "%s %.0f\n", kinds[i][1], svi_figure_value(f, count, kinds[i][0]));
    /* A whole file is usually read in less time than the cooldown. */
    if (suppressed > 0 && svi_settings_intake(s).mode == SVI_IN_STDIN && !s->ts[0])
        fprintf(
            to,
            "%.0f more were suppressed by alert.cooldown, which uses the clock when there is no column of "
            "times: name it with --ts\n",
            suppressed);
    svi_verdict_write(l->stream, now, to);
    if (!isnan(quality))
        fprintf(to, "%s %.3f\n", name, quality);
    fflush(to);
}

svs_code svi_run_log_check(const struct svi_run_log *l, int64_t rows, svs_error *err) {
    char reasons[SVS_ERROR_TEXT];
    svs_code commonest;
    /* Refusals of this run only: a restored state brings older ones along. */
    const int64_t refused = svi_stream_refused(l->stream) - l->errors;
    if (rows == 0 || !svi_refused_many(refused, rows))
        return SVS_OK;
    run_log_reasons(l, reasons, sizeof reasons, &commonest);
    commonest = commonest == SVS_OK ? SVS_INVALID : commonest; /* refusals of keys are not known by code */
    if (svi_stream_seen(l->stream) == l->seen && refused >= rows)
        return svi_fail(err, commonest, "all %" PRId64 " rows were refused: %.180s", rows, reasons);
    if (svi_refused_most(refused, rows))
        return svi_fail(err, commonest, "%" PRId64 " of %" PRId64 " rows were refused: %.180s", refused, rows,
                        reasons);
    if (l->to)
        fprintf(l->to, "%" PRId64 " of %" PRId64 " rows were refused: %s\n", refused, rows, reasons);
    return SVS_OK;
}
