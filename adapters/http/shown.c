/* GET /streams, GET /readyz, GET /errors: what this program knows of the streams without asking them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <svmstream/svmstream.h>

#include "alert_list.h"
#include "base/fail.h"
#include "handlers.h"
#include "http_history.h"
#include "relay.h"
#include "summary.h"
#include "wire/pack.h"

#define READY_BYTES 2000

/* ---- GET /streams */

static void shown_put_summary(struct svi_pack *p, const struct http_summary *summary) {
    svi_put_text(p, "level", http_level_names[summary->level]);
    svi_put_text(p, "sentence", summary->text);
    svi_put_real(p, "since", summary->since);
    svi_put_text(p, "since_text", summary->since_text);
}

/* Classification, regression or none, by the figures of the status: the settings may say `auto`. */
static const char *shown_task(struct svi_view status) {
    return svi_view_key(status, "rmse").at       ? "regress"
           : svi_view_key(status, "accuracy").at ? "classify"
                                                 : "none";
}

static void shown_put_stream(struct svi_pack *p, const struct http_app *app, const struct http_stream *s,
                             const struct http_summary *summary) {
    static const char *const states[] = {"waiting", "live", "silent"};
    const struct svi_view status = http_stream_status(s),
                          config = svi_view_key(http_stream_config(s), "config");
    char method[20];
    const struct svi_open_map map = svi_pack_open(p);
    svi_put_text(p, "stream", s->name);
    svi_put_text(p, "state", states[s->state]);
    shown_put_summary(p, summary);
    svi_pack_key(p, "task");
    if (status.at)
        svi_pack_text(p, shown_task(status));
    else
        svi_pack_nil(p);
    svi_put_text(p, "method", svi_view_text(config, "method", method, sizeof method));
    svi_put_bool(p, "keys", svi_view_key(status, "keys").at);
    svi_put_text(p, "address", s->option->ctl);
    svi_put_text(p, "samples",
                 s->in_mode == HTTP_IN_ROUTER ? "router"
                 : s->in_mode == HTTP_IN_PULL ? "pull"
                                              : "none");
    svi_put_real(p, "answered", s->state == HTTP_STREAM_WAITING ? NAN : s->status_time);
    svi_put_int(p, "alerts_open", http_alerts_of(app->alerts, s)->open);
    svi_pack_close(p, map);
}

/* What is wrong with the history stands in the sentence, so that a reader of nothing else sees it. */
static void shown_add_history(struct http_summary *all, const struct history_state *history) {
    const size_t length = strlen(all->text);
    if (history->ok)
        return;
    snprintf(all->text + length, sizeof all->text - length, "; history: %s", history->reason);
    if (all->level == HTTP_LEVEL_OK)
        all->level = HTTP_LEVEL_NOTICE;
}

static void shown_put_history(struct svi_pack *p, const struct history_state *history) {
    svi_put_map(p, "history", 2);
    svi_put_bool(p, "ok", history->ok);
    svi_put_text(p, "reason", history->reason);
}

/* One stream speaks for itself; of several, the worst does, and the others are counted. */
static void shown_put_all(struct svi_pack *p, const struct http_summary *worst, int count, int good,
                          const struct history_state *history) {
    struct http_summary all = *worst;
    if (count > 1 && good == count)
        snprintf(all.text, sizeof all.text, "all %d streams are well", count);
    else if (count > 1) {
        const size_t length = strlen(all.text);
        snprintf(all.text + length, sizeof all.text - length, "; %d of %d streams are well", good, count);
    }
    shown_add_history(&all, history);
    const struct svi_open_map map = svi_pack_open(p);
    shown_put_summary(p, &all);
    svi_pack_close(p, map);
}

void http_shown_streams(struct exchange *x, struct http_app *app) {
    const int count = http_streams_count(app->streams);
    struct svi_bytes out = {0};
    struct svi_pack p;
    struct http_summary worst = {0}, summary;
    struct history_state history;
    int good = 0;
    http_history_state(app->history, &history);
    svi_pack_begin(&p, &out);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_text(&p, "version", svs_version());
    svi_put_array(&p, "streams", (size_t)count);
    for (int i = 0; i < count; i++) {
        const struct http_stream *s = http_streams_at(app->streams, i);
        http_summary_of(app, s, &summary);
        shown_put_stream(&p, app, s, &summary);
        good += summary.level == HTTP_LEVEL_OK;
        if (i == 0 || summary.level > worst.level)
            worst = summary;
    }
    svi_pack_key(&p, "all");
    shown_put_all(&p, &worst, count, good, &history);
    shown_put_history(&p, &history);
    svi_pack_close(&p, map);
    http_relay_packed(x, &p, &out);
}

/* ---- GET /readyz */

void http_shown_ready(struct exchange *x, struct http_app *app) {
    char all[READY_BYTES] = "", reasons[500];
    size_t n = 0;
    for (int i = 0; i < http_streams_count(app->streams); i++) {
        const struct http_stream *s = http_streams_at(app->streams, i);
        if (!http_ready_stream(app, s, reasons, sizeof reasons) && n < sizeof all)
            n += (size_t)snprintf(all + n, sizeof all - n, "%s%s: %s", n > 0 ? "\n" : "", s->name, reasons);
    }
    if (n == 0) {
        http_exchange_answer(x, 200, "text/plain", "ready\n", 6);
        return;
    }
    http_exchange_add(x, "Retry-After", "5");
    http_exchange_problem(x, 503, "not_ready", "%s", all);
}

/* ---- GET /errors */

/* The codes that have occurred, with the newest reason and time that this program has seen; counts are those
 * of the stream since its start. */
void http_shown_errors(struct exchange *x, struct http_app *app) {
    const struct http_stream *s = http_relay_stream(x, app->streams, false);
    struct svi_bytes out = {0};
    struct svi_pack p;
    size_t shown = 0;
    if (!s)
        return;
    svi_pack_begin(&p, &out);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_text(&p, "stream", s->name);
    svi_pack_key(&p, "errors");
    const size_t hole = svi_pack_hole(&p);
    for (int code = 1; code < SVS_CODE_COUNT; code++) {
        char key[60];
        const struct http_last_error *last = &s->errors[code];
        snprintf(key, sizeof key, "refused.%s", svs_code_name((svs_code)code));
        const int64_t counted = svi_view_integer(http_stream_status(s), key, 0),
                      count = counted > last->count ? counted : last->count;
        if (count == 0)
            continue;
        const struct svi_open_map entry = svi_pack_open(&p);
        svi_put_text(&p, "code", svs_code_name((svs_code)code));
        svi_put_int(&p, "count", count);
        svi_put_text(&p, "reason", *last->reason ? last->reason : svs_code_text((svs_code)code));
        svi_put_real(&p, "ts", last->ts > 0 ? last->ts : NAN);
        svi_put_bool(&p, "notice", svi_code_is_notice((svs_code)code));
        svi_pack_close(&p, entry);
        shown++;
    }
    svi_pack_fill(&p, hole, shown, false);
    svi_pack_close(&p, map);
    http_relay_packed(x, &p, &out);
}
