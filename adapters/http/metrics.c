/* GET /metrics: the streams by their last status, then the adapter itself. Nothing is asked of a stream here:
 * a status arrives once a second whether anybody scrapes or not. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <svmstream/svmstream.h>

#include "alert_list.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "exposition.h"
#include "figures.h"
#include "handlers.h"
#include "process_figures.h"
#include "streams.h"
#include "summary.h"

#define ADAPTER(name, unit, type, text)                                                                      \
    { "svmstream_http", name, unit, type, false, text }

/* ---- the adapter */

static void metrics_one(struct http_exposition *x, const struct http_family *family, double value) {
    http_exposition_family(x, family);
    http_exposition_sample(x, NULL, 0, value);
}

static void metrics_requests(struct http_exposition *x, const struct http_tally *t) {
    static const struct http_family family =
        ADAPTER("requests", NULL, HTTP_COUNTER, "Answered requests by method and status");
    char code[12];
    http_exposition_family(x, &family);
    for (int method = 0; method < HTTP_TALLY_METHOD_COUNT; method++)
        for (int i = 0; i < HTTP_TALLY_CODES; i++) {
            snprintf(code, sizeof code, "%d", HTTP_TALLY_FIRST + i);
            const struct http_label labels[] = {{"method", http_tally_methods[method]}, {"code", code}};
            if (t->requests[method][i] > 0)
                http_exposition_sample(x, labels, 2, (double)t->requests[method][i]);
        }
}

static void metrics_adapter(struct http_exposition *x, const struct http_tally *t) {
    static const struct {
        struct http_family family;
        size_t offset;
    } rows[] = {
        {ADAPTER("connections", NULL, HTTP_GAUGE, "Connections of clients that are open now"),
         offsetof(struct http_tally, connections)},
        {ADAPTER("connections_refused", NULL, HTTP_COUNTER, "Connections that a limit turned away"),
         offsetof(struct http_tally, refused)},
        {ADAPTER("event_readers", NULL, HTTP_GAUGE, "Readers of /events now"),
         offsetof(struct http_tally, event_readers)},
        {ADAPTER("events_sent", NULL, HTTP_COUNTER, "Events written to readers of /events"),
         offsetof(struct http_tally, events_sent)},
        {ADAPTER("events_lost", NULL, HTTP_COUNTER, "Events that a reader of /events was too slow for"),
         offsetof(struct http_tally, events_lost)},
        {ADAPTER("history_errors", NULL, HTTP_COUNTER, "Failed reads and writes of the history"),
         offsetof(struct http_tally, history_errors)},
    };
    static const struct http_family build =
        ADAPTER("build", NULL, HTTP_INFO, "Version of the adapter that serves these metrics");
    const struct http_label version = {"version", svs_version()};
    http_exposition_family(x, &build);
    http_exposition_sample(x, &version, 1, 1);
    metrics_requests(x, t);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        metrics_one(x, &rows[i].family, (double)*(const int64_t *)((const char *)t + rows[i].offset));
    http_process_figures_write(x);
}

/* ---- the streams */

/* What /metrics knows of a stream besides its status. */
struct metrics_stream {
    const struct http_stream *stream;
    char label[HTTP_LABEL_BYTES]; /* its name as it is written */
    struct http_figures figures;
};

/* Fills what is shown of a stream. A stream that is silent keeps its name and loses its figures. */
static void metrics_show(struct metrics_stream *m, struct http_shown *shown) {
    const struct http_stream *s = m->stream;
    *shown = (struct http_shown){.stream = m->label,
                                 .up = s->state == HTTP_STREAM_LIVE,
                                 .age = s->status.size > 0 ? svi_monotonic() - s->answered : NAN};
    if (shown->up && http_figures_read(&m->figures, s->status.data, s->status.size))
        shown->figures = &m->figures;
}

/* Fills the list of streams and returns their number. Two streams with one label would be one series twice:
 * of such, which only the same address given twice or a forged name can be, the first is shown. */
static int metrics_list(struct http_streams *all, struct metrics_stream *list, struct http_shown *shown) {
    int count = 0;
    for (int i = 0; i < http_streams_count(all); i++) {
        struct metrics_stream *m = &list[count];
        bool twice = false;
        m->stream = http_streams_at(all, i);
        svi_escape(m->label, sizeof m->label, m->stream->name, strlen(m->stream->name));
        for (int k = 0; k < count; k++)
            twice = twice || strcmp(list[k].label, m->label) == 0;
        if (!twice)
            metrics_show(m, &shown[count++]);
    }
    return count;
}

/* As GET /readyz, which has the reasons. */
static void metrics_ready(struct http_exposition *x, const struct http_app *app,
                          const struct metrics_stream *list, int count) {
    static const struct http_family family = {"svmstream",
                                              "ready",
                                              NULL,
                                              HTTP_GAUGE,
                                              false,
                                              "1 if the stream is ready, else 0: it does not answer, its "
                                              "disk is full, its journal is not synced, or "
                                              "no sample arrives"};
    char reasons[200];
    http_exposition_family(x, &family);
    for (int i = 0; i < count; i++)
        http_exposition_sample(x, &(struct http_label){"stream", list[i].label}, 1,
                               http_ready_stream(app, list[i].stream, reasons, sizeof reasons));
}

/* Events of a stream that did not reach the adapter. */
static void metrics_losses(struct http_exposition *x, const struct metrics_stream *list, int count) {
    static const struct http_family family = {
        "svmstream", "stream_events_lost",
        NULL,        HTTP_COUNTER,
        false,       "Events of the stream that did not arrive at the adapter"};
    http_exposition_family(x, &family);
    for (int i = 0; i < count; i++)
        http_exposition_sample(x, &(struct http_label){"stream", list[i].label}, 1,
                               (double)list[i].stream->lost);
}

/* Open alerts by severity, which stats do not count. */
static void metrics_alerts(struct http_exposition *x, const struct http_alerts *alerts,
                           const struct metrics_stream *list, int count) {
    static const char *const ranks[] = {"none", "notice", "warning", "serious"};
    static const struct http_family family = {
        "svmstream", "alerts_open", NULL,
        HTTP_GAUGE,  false,         "Alerts that are open now in all keys, by severity"};
    enum { RANKS = sizeof ranks / sizeof *ranks };
    http_exposition_family(x, &family);
    for (int i = 0; i < count; i++) {
        const struct http_alert_list *of = http_alerts_of(alerts, list[i].stream);
        int64_t open[RANKS] = {0};
        if (!of || !of->known || list[i].stream->state != HTTP_STREAM_LIVE)
            continue;
        for (int64_t k = 0; k < of->count; k++)
            open[http_alert_rank(of->list[k]->severity)] += of->list[k]->open;
        for (int rank = 0; rank < RANKS; rank++) {
            const struct http_label labels[] = {{"stream", list[i].label}, {"severity", ranks[rank]}};
            http_exposition_sample(x, labels, 2, (double)open[rank]);
        }
    }
}

/* False: no memory. */
static bool metrics_write(struct http_app *app, struct http_exposition *x) {
    const size_t most = (size_t)http_streams_count(app->streams) + 1;
    struct http_shown *shown = svi_alloc_plain(most * sizeof *shown);
    struct metrics_stream *list = svi_alloc_plain(most * sizeof *list);
    const bool good = shown && list;
    if (good) {
        const int count = metrics_list(app->streams, list, shown);
        http_figures_write(x, shown, count);
        metrics_ready(x, app, list, count);
        metrics_alerts(x, app->alerts, list, count);
        metrics_losses(x, list, count);
        metrics_adapter(x, &app->tally);
    }
    svi_free(shown);
    svi_free(list);
    return http_exposition_end(x) == SVS_OK && good;
}

void http_metrics_answer(struct exchange *x, struct http_app *app) {
    const bool openmetrics = http_exposition_negotiate(http_exchange_header(x, "Accept"));
    struct svi_bytes text = {0};
    struct http_exposition out;
    http_exposition_begin(&out, openmetrics, &text);
    if (metrics_write(app, &out)) {
        http_exchange_add(x, "Vary", "Accept");
        http_exchange_answer(x, 200, http_exposition_type(openmetrics), text.data, text.size);
    } else {
        http_exchange_problem(x, 503, "no_memory", "no memory for the metrics; try again");
    }
    svi_bytes_clear(&text);
}
