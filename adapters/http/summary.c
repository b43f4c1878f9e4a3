/* The sentence about a stream, and whether it is ready. Both are made of its last status, its settings and
 * its open alerts; nothing is asked for.
 *
 * The sentence names what needs somebody first: no answer, a reason why the stream is not ready, open alerts;
 * then what it does: its rate, its quality next to "the same as before", its disk. */
#include "summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "alert_list.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/human.h"
#include "http_options.h"

#define DECLINED_FOR   60.0      /* seconds for which a declined message counts as a full disk */
#define DISK_LEFT      (1 << 20) /* bytes below which a disk counts as full */
#define SYNC_INTERVALS 10.0      /* of journal.interval, after which its journal is late, ... */
#define PAUSE          5.0       /* seconds without a sample after which a rate says nothing any more */
#define MIN_SYNC       2.0       /* ... but at least this many seconds */
#define NAME           (4 * SVS_KEY_MAX + 4)

const char *const http_level_names[] = {"ok", "notice", "bad"};

/* A text of limited size that grows by parts. */
struct summary_text {
    char *out;
    size_t size, length;
    const char *separator; /* before the next part */
};

__attribute__((format(printf, 2, 3))) static void summary_add(struct summary_text *t, const char *format,
                                                              ...) {
    va_list arguments;
    if (t->length + 1 >= t->size)
        return;
    t->length += (size_t)snprintf(t->out + t->length, t->size - t->length, "%s", t->separator);
    if (t->length + 1 >= t->size) {
        t->length = t->size - 1;
        return;
    }
    va_start(arguments, format);
    const int n = vsnprintf(t->out + t->length, t->size - t->length, format, arguments);
    va_end(arguments);
    t->length = t->length + (size_t)n < t->size ? t->length + (size_t)n : t->size - 1;
    t->separator = "; ";
}

/* ---- ready? */

/* Seconds since the last sample; NAN: not known. Without a sample, since the start. */
static double summary_idle(const struct http_stream *s) {
    const struct svi_view status = http_stream_status(s);
    const double idle = svi_view_number(status, "idle", svi_view_number(status, "uptime", NAN));
    return svi_view_key(status, "idle").at ? idle + svi_monotonic() - s->answered : NAN;
}

static void summary_add_silence(struct summary_text *t, const struct http_stream *s) {
    char text[SVI_HUMAN];
    const char *refused =
        s->ctl.refused
            ? ": it refuses the key of this program (is it in the allow file, with the role control?)"
            : "";
    if (s->state == HTTP_STREAM_WAITING && s->ctl.refused)
        summary_add(t, "no answer yet%s", refused);
    else if (s->state == HTTP_STREAM_WAITING)
        summary_add(t, "no stream answers here yet"); /* its name is still its address */
    else
        summary_add(t, "no answer since %s%s", svi_human_since(text, s->silent_since, svi_wall_clock()),
                    refused);
}

static void summary_add_journal(struct summary_text *t, const struct http_stream *s) {
    const struct svi_view status = http_stream_status(s),
                          config = svi_view_key(http_stream_config(s), "config");
    const double age = svi_view_number(status, "journal_age", 0),
                 interval = svi_view_number(config, "journal.interval", 0.2),
                 late = fmax(MIN_SYNC, SYNC_INTERVALS * interval);
    char text[SVI_HUMAN];
    if (age > late && !svi_view_is(config, "journal.fsync", "never"))
        summary_add(t, "the journal is not synced: its oldest record has waited for %s",
                    svi_human_duration(text, age));
}

bool http_ready_stream(const struct http_app *app, const struct http_stream *s, char *reasons, size_t size) {
    struct summary_text t = {reasons, size, 0, ""};
    const struct svi_view status = http_stream_status(s);
    const double now = svi_monotonic(), stale = app->options->stale,
                 left = svi_view_number(status, "disk_free", INFINITY), idle = summary_idle(s);
    char text[SVI_HUMAN];
    reasons[0] = '\0';
    if (s->state != HTTP_STREAM_LIVE) {
        summary_add_silence(&t, s);
        return false;
    }
    if (left < DISK_LEFT)
        summary_add(&t, "the disk is full: %.0f bytes are left", left);
    else if (s->declined_at > 0 && now - s->declined_at < DECLINED_FOR)
        summary_add(&t, "messages were declined in the last minute, as disk or memory was full");
    summary_add_journal(&t, s);
    if (stale > 0 && idle > stale)
        summary_add(&t, "no sample for %s", svi_human_duration(text, idle));
    return t.length == 0;
}

/* ---- the sentence */

/* "2 alerts open, press-07 serious since 10:50 UTC". Returns the level. */
static enum http_level summary_add_alerts(struct summary_text *t, const struct http_app *app,
                                          const struct http_stream *s, struct http_summary *out) {
    const struct http_alert_list *log = http_alerts_of(app->alerts, s);
    const struct http_alert *worst = http_alerts_worst(log);
    char name[NAME];
    if (!log->known)
        return HTTP_LEVEL_OK;
    if (!worst) {
        summary_add(t, "no alert open");
        return HTTP_LEVEL_OK;
    }
    const struct svi_view event = svi_view_of(worst->event, worst->size);
    const double since = svi_view_number(event, "since", worst->opened);
    char kind[20];
    svi_escape(name, sizeof name, worst->key, strlen(worst->key));
    svi_view_text(event, "kind", kind, sizeof kind);
    if (isfinite(since)) {
        svi_human_since(out->since_text, since, svi_wall_clock());
        out->since = since;
    }
    summary_add(t, "%" PRId64 " alert%s open, %s%s%s%s%s", log->open, log->open == 1 ? "" : "s", name,
                *name ? " " : "", *worst->severity ? worst->severity : kind,
                *out->since_text ? " since " : "", out->since_text);
    return http_alert_rank(worst->severity) >= 3 ? HTTP_LEVEL_BAD : HTTP_LEVEL_NOTICE;
}

/* ".931" */
static const char *summary_share(double v, char out[SVI_HUMAN]) {
    snprintf(out, SVI_HUMAN, "%.3f", v);
    return v < 0.9995 ? out + 1 : out;
}

static void summary_add_quality(struct summary_text *t, struct svi_view status) {
    const double accuracy = svi_view_number(status, "accuracy.w", NAN),
                 same = svi_view_number(status, "accuracy_no_change.w", NAN),
                 rmse = svi_view_number(status, "rmse.w", NAN),
                 rmse_same = svi_view_number(status, "rmse_no_change.w", NAN),
                 keys = svi_view_number(status, "keys_accuracy", NAN);
    char text[2][SVI_HUMAN];
    if (isfinite(accuracy) && isfinite(same))
        summary_add(t, "accuracy %s, 'same as before' %s", summary_share(accuracy, text[0]),
                    summary_share(same, text[1]));
    else if (isfinite(rmse) && isfinite(rmse_same))
        summary_add(t, "error (rmse) %s, 'same as before' %s", svi_human_digits(text[0], rmse, 3),
                    svi_human_digits(text[1], rmse_same, 3));
    else if (isfinite(keys))
        summary_add(t, "accuracy of all keys since the start %s", summary_share(keys, text[0]));
}

/* What the stream does with its samples. It learns once one had a label. */
static const char *summary_verb(const struct http_stream *s) {
    const struct svi_view status = http_stream_status(s),
                          config = svi_view_key(http_stream_config(s), "config");
    return svi_view_is(config, "method", "none") || svi_view_number(status, "labelled", 1) == 0 ? "scoring"
                                                                                                : "learning";
}

static void summary_add_work(struct summary_text *t, const struct http_stream *s) {
    const struct svi_view status = http_stream_status(s),
                          config = svi_view_key(http_stream_config(s), "config");
    const double rate = svi_view_number(status, "rate", NAN), idle = summary_idle(s),
                 left = svi_view_number(status, "disk_free", NAN),
                 size = svi_view_number(status, "disk_size", NAN);
    char text[SVI_HUMAN];
    const double seen = svi_view_number(status, "seen", 0);
    if (seen == 0)
        summary_add(t, "no sample so far");
    else if (isnan(rate))
        summary_add(t, "%s samples so far", svi_human_count(text, (int64_t)seen));
    else if (idle >= PAUSE)
        summary_add(t, "no sample for %s", svi_human_duration(text, idle));
    else if (rate > 0) {
        const char *number =
            rate >= 10 ? svi_human_count(text, (int64_t)(rate + 0.5)) : svi_human_digits(text, rate, 2);
        summary_add(t, "%s %s sample%s/s", summary_verb(s), number, strcmp(number, "1") == 0 ? "" : "s");
    } else
        summary_add(t, "no samples now");
    if (seen > 0 && strcmp(summary_verb(s), "scoring") == 0 && !svi_view_is(config, "method", "none"))
        summary_add(t, "no labels so far");
    summary_add_quality(t, status);
    if (isfinite(left) && size > 0)
        summary_add(t, "disk %.0f %% free", floor(100 * left / size));
}

/* What is broken inside, while the stream continues. Returns the level. */
static enum http_level summary_add_faults(struct summary_text *t, struct svi_view status) {
    static const struct {
        const char *key, *text;
    } faults[] = {{"novelty_error", "no novelty score any more"}, {"refit_error", "the last refit failed"}};
    char why[200];
    bool any = false;
    for (int i = 0; i < 2; i++)
        if (*svi_view_text(status, faults[i].key, why, sizeof why)) {
            summary_add(t, "%s (%s)", faults[i].text, why);
            any = true;
        }
    return any ? HTTP_LEVEL_NOTICE : HTTP_LEVEL_OK;
}

void http_summary_of(const struct http_app *app, const struct http_stream *s, struct http_summary *out) {
    struct summary_text t = {out->text, sizeof out->text, 0, ""};
    enum http_level alerts, faults;
    char reasons[400], name[NAME];
    *out = (struct http_summary){.since = NAN};
    summary_add(&t, "%s", svi_escape(name, sizeof name, s->name, strlen(s->name)));
    t.separator = ": ";
    if (s->state == HTTP_STREAM_WAITING) {
        out->level = HTTP_LEVEL_NOTICE;
        summary_add_silence(&t, s);
        return;
    }
    const bool ready = http_ready_stream(app, s, reasons, sizeof reasons);
    if (!ready)
        summary_add(&t, "%s", reasons);
    if (s->state == HTTP_STREAM_SILENT) {
        out->level = HTTP_LEVEL_BAD;
        out->since = s->silent_since;
        svi_human_since(out->since_text, s->silent_since, svi_wall_clock());
        return;
    }
    alerts = summary_add_alerts(&t, app, s, out);
    faults = summary_add_faults(&t, http_stream_status(s));
    summary_add_work(&t, s);
    out->level = !ready ? HTTP_LEVEL_BAD : alerts > faults ? alerts : faults;
}
