/* The run loop: one thread, one zmq_poll, and everything that happens between two of them.
 *
 * A turn: control requests first, then what is queued on the input (within bounds), then a refit that has
 * come back, then the write-ahead. It waits only when there is nothing to do, never to fill a batch. Events
 * leave the engine by the callback `server_sink`, straight to the publisher.
 *
 * The end has an order: what was received is applied, the last model and stats are published, a last
 * checkpoint is written, and sockets close after what is on its way out has left (server_drain,
 * server_finish, server_dismantle).
 *
 * Read server_turn first, then server_serve and server_loop; set-up is at the end of the file. */
#include "server/server.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "server/control.h"
#include "net/access.h"
#include "server/ingest_zmq.h"
#include "server/router.h"
#include "server/ingest_stdin.h"
#include "state/write_ahead.h"
#include "server/score_lines.h"
#include "net/publisher.h"
#include "server/signals.h"
#include "base/worker.h"

#define TURN_REQUESTS 64

#define QUEUE_IN      1000 /* messages a producer may be ahead, and bytes; then it waits */
#define QUEUE_BYTES   (64 * 1024 * 1024)
#define QUEUE_LEAST   16
#define QUEUE_REPLIES 4096  /* of one producer; libzmq counts in halves, and the credit is 1024 */
#define QUEUE_CTL     64    /* requests of one client that may wait, and replies that it does not read */
#define REQUEST_MAX   65536 /* bytes of a control request */
#define LINGER_MS     2000  /* replies on their way out at the end */
#define DRAIN_MS      100   /* at the end: nothing came for so long, so nothing is on its way */
#define DRAIN_SECONDS 3.0   /* at the end: a producer that never stops is not waited for any longer */

struct server {
    struct svi_settings settings; /* `in`, `out`, `ctl` become the real addresses */
    const struct svi_server_hooks *hooks;
    svi_engine *engine;
    svi_write_ahead *write_ahead; /* of the engine's state; NULL = it is not kept */
    struct svi_control control;
    struct svi_ingest_zmq messages;
    void *context, *in, *ctl;
    struct svi_access access; /* of the three */
    svi_publisher *out;
    svi_worker *worker;         /* for refits; NULL = none */
    struct svi_refit *finished; /* a refit that has come back and has not taken effect */
    struct svi_bytes record;
    svi_ingest_stdin *rows; /* `in` is "-" */
    struct svi_score_lines lines;
    struct svi_latency latency;
    int signals;   /* signalfd */
    double worked; /* seconds of the processor that this thread had when the write-ahead's turn came last:
                      waiting is no work, a restart does not wait */
    double stats_due;
    bool stop;
};

/* ---- events ---- */

static void server_sink(void *user, const struct svi_event *e) {
    struct server *p = user;
    if (p->out)
        svi_publisher_publish(p->out, e); /* out of memory: lost, and seen by `seq` */
    if (p->rows && e->topic == SVI_TOPIC_SCORE)
        svi_score_lines_score(&p->lines, e, svi_ingest_stdin_row(p->rows));
    if (p->rows && e->topic == SVI_TOPIC_ALERT && p->hooks->log)
        fprintf(p->hooks->log, "alert: %s\n", e->as.alert.text);
    if (p->rows && e->topic == SVI_TOPIC_ERROR && p->hooks->refused)
        fprintf(p->hooks->refused, "svmstream: %s%s\n", svi_ingest_stdin_place(p->rows), e->as.error.reason);
}

static void report_access(struct server *p, double time) {
    svs_error report;
    if (svi_access_fd(&p->access) < 0)
        return;
    while (svi_access_next_report(&p->access, time, &report))
        svi_write_ahead_refuse(p->write_ahead, p->engine, report.code, report.text, NULL, 0, time);
    svi_engine_set_gauge(p->engine, "handshakes_refused", (double)svi_access_handshakes_refused(&p->access));
    svi_engine_set_gauge(p->engine, "connections", (double)svi_access_connections(&p->access));
}

static void publish_stats(struct server *p, double time) {
    const struct svi_latency *l = &p->latency;
    p->stats_due = time + p->settings.publish_seconds;
    report_access(p, time);
    if (!p->out)
        return;
    svi_engine_set_gauge(p->engine, "latency_p50", svi_latency_quantile(l, 0.5));
    svi_engine_set_gauge(p->engine, "latency_p99", svi_latency_quantile(l, 0.99));
    svi_engine_set_gauge(p->engine, "turn_mean", l->turns ? (double)l->messages / (double)l->turns : NAN);
    svi_engine_set_gauge(p->engine, "turn_max", (double)l->largest);
    svi_ingest_zmq_figures(&p->messages);
    p->latency = (struct svi_latency){0};
    if (p->write_ahead) /* a full disk does not keep stats back */
        (void)svi_write_ahead_write(p->write_ahead, SVI_RECORD_STATS, time, NULL, 0, NULL);
    svi_engine_publish_stats(p->engine, time);
}

/* ---- input ---- */

/* Answers one control request. False: none is waiting. */
static bool server_answer(struct server *p) {
    static const svs_error forbidden = {SVS_NOT_ALLOWED,
                                        "this key, or its role, was removed from the allow file"};
    struct svi_request r;
    if (!p->ctl || !svi_request_receive(p->ctl, &r))
        return false;
    const void *body = zmq_msg_data(&r.body);
    const size_t length = zmq_msg_size(&r.body);
    svs_code code = svi_access_admits(&p->access, SVI_ROLE_CONTROL, &r.body)
                        ? svi_control_handle(&p->control, body, length, svi_wall_clock(), &p->messages.reply)
                        : svi_router_decline(&p->control, NULL, &forbidden, &p->messages.reply);
    svi_ingest_zmq_reply(&p->messages, p->ctl, &r, code);
    svi_request_close(&r);
    return true;
}

static svs_code server_take_rows(struct server *p, bool fill, svs_error *err) {
    double start = svi_wall_clock();
    int64_t before = svi_ingest_stdin_row(p->rows);
    bool ended = false;
    svs_code code = svi_ingest_stdin_turn(p->rows, fill, start, &ended, err);
    svi_latency_add(&p->latency, svi_wall_clock() - start, svi_ingest_stdin_row(p->rows) - before);
    p->stop = p->stop || ended;
    svs_error trouble;
    svs_code written = svi_score_lines_flush(&p->lines, p->signals, &trouble);
    p->stop = p->stop || p->lines.closed;
    if (code == SVS_OK && written != SVS_OK)
        return svi_fail(err, written, "%s", trouble.text);
    return code;
}

/* ---- the loop ---- */

enum { ITEM_SIGNALS, ITEM_IN, ITEM_CTL, ITEM_OUT, ITEM_ACCESS, ITEM_WORKER, ITEM_WRITE_AHEAD, ITEM_COUNT };

static void poll_items(const struct server *p, zmq_pollitem_t *items) {
    memset(items, 0, ITEM_COUNT * sizeof *items);
    for (int i = 0; i < ITEM_COUNT; i++) {
        items[i].events = ZMQ_POLLIN;
        items[i].fd = p->signals; /* stands in where there is nothing to wait for */
    }
    if (isinf(svi_ingest_zmq_wait(&p->messages, 0))) /* else what was taken waits for room */
        items[ITEM_IN].socket = p->in;
    if (p->rows)
        items[ITEM_IN].fd = svi_ingest_stdin_fd(p->rows);
    items[ITEM_CTL].socket = p->ctl;
    items[ITEM_OUT].socket = p->out ? svi_publisher_socket(p->out) : NULL;
    if (svi_access_fd(&p->access) >= 0)
        items[ITEM_ACCESS].fd = svi_access_fd(&p->access);
    if (p->worker)
        items[ITEM_WORKER].fd = svi_worker_fd(p->worker);
    if (p->write_ahead)
        items[ITEM_WRITE_AHEAD].fd = svi_write_ahead_fd(p->write_ahead);
}

static long server_wait_ms(const struct server *p) {
    const double time = svi_wall_clock();
    double left = svi_ingest_zmq_wait(&p->messages, time);
    if (p->out && p->settings.publish_seconds > 0)
        left = fmin(left, p->stats_due - time);
    if (p->write_ahead)
        left = fmin(left, svi_write_ahead_wait(p->write_ahead));
    if (isinf(left))
        return -1;
    return left <= 0 ? 0 : left > 60 ? 60000 : (long)(1000 * left) + 1;
}

static void server_serve(struct server *p, const zmq_pollitem_t *items) {
    if (items[ITEM_CTL].revents || items[ITEM_ACCESS].revents) /* `status` reports what access counts */
        report_access(p, svi_wall_clock());
    if (items[ITEM_CTL].revents) {
        svi_ingest_zmq_figures(&p->messages);
        for (int i = 0; i < TURN_REQUESTS && server_answer(p); i++)
            ;
    }
    if (items[ITEM_OUT].revents && p->out)
        svi_publisher_subscriptions(p->out);
    double time = svi_wall_clock();
    if (p->settings.publish_seconds > 0 && time >= p->stats_due)
        publish_stats(p, time);
}

/* It takes effect when it is written down; with a full disk it waits. */
static svs_code give_refit(struct server *p, svs_error *err) {
    svs_code code = SVS_OK;
    p->record.size = 0;
    if (p->write_ahead && (code = svi_refit_pack(p->finished, &p->record)) == SVS_OK)
        code = svi_write_ahead_write(p->write_ahead, SVI_RECORD_REFIT, svi_wall_clock(), p->record.data,
                                     p->record.size, err);
    if (code == SVS_DISK_FULL || code == SVS_NO_MEMORY)
        return SVS_OK;
    if (code == SVS_OK) {
        svi_engine_refit_give(p->engine);
        p->finished = NULL;
    }
    return code;
}

/* A finished refit takes effect between two samples; one that is due goes to the worker. */
static svs_code exchange_refits(struct server *p, svs_error *err) {
    svs_code code = SVS_OK;
    if (!p->worker)
        return code;
    if (svi_worker_busy(p->worker))
        p->finished = svi_worker_collect(p->worker);
    if (p->finished)
        code = give_refit(p, err);
    struct svi_refit *job =
        svi_worker_busy(p->worker) || p->finished ? NULL : svi_engine_refit_take(p->engine);
    if (job)
        svi_worker_submit(p->worker, job);
    return code;
}

static svs_code server_keep(struct server *p, svs_error *err) {
    if (p->control.failed)
        return svi_fail(err, p->control.failure.code, "%s", p->control.failure.text);
    if (!p->write_ahead)
        return SVS_OK;
    if (svi_engine_out_of_memory(p->engine))
        return svi_fail(err, SVS_NO_MEMORY,
                        "memory ran out for what was written down already: a restart takes it");
    const double before = p->worked;
    p->worked = svi_clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    return svi_write_ahead_turn(p->write_ahead, p->worked - before, err);
}

static svs_code server_turn(struct server *p, svs_error *err) {
    zmq_pollitem_t items[ITEM_COUNT];
    svs_code code = SVS_OK;
    bool took;
    poll_items(p, items);
    if (zmq_poll(items, ITEM_COUNT, server_wait_ms(p)) < 0)
        return zmq_errno() == EINTR ? SVS_OK
                                    : svi_fail(err, SVS_IO, "waiting failed: %s", zmq_strerror(zmq_errno()));
    server_serve(p, items); /* first: control goes before samples */
    if (items[ITEM_SIGNALS].revents)
        p->stop = true;
    else if (items[ITEM_IN].revents && p->rows)
        code = server_take_rows(p, true, err);
    else if (!p->rows && p->in)
        code = svi_ingest_zmq_turn(&p->messages, svi_wall_clock(), &took, err);
    if (code == SVS_OK)
        code = exchange_refits(p, err);
    if (code == SVS_OK)
        code = server_keep(p, err);
    p->stop = p->stop || p->control.stop;
    return code;
}

/* What producers had handed over before the end is still on its way through the kernel and libzmq's thread.
 */
static svs_code server_drain(struct server *p, svs_error *err) {
    zmq_pollitem_t item = {p->in, 0, ZMQ_POLLIN, 0};
    double end = svi_wall_clock() + DRAIN_SECONDS;
    svs_code code = SVS_OK;
    bool took = true;
    while (p->in && code == SVS_OK && took && svi_wall_clock() < end && zmq_poll(&item, 1, DRAIN_MS) > 0)
        code = svi_ingest_zmq_turn(&p->messages, svi_wall_clock(), &took, err);
    if (p->messages.held && p->hooks->log)
        fprintf(p->hooks->log, "state: %d received messages could not be written and are lost\n",
                p->messages.first->count);
    report_access(p, svi_wall_clock());
    if (p->out)
        svi_publisher_subscriptions(p->out);
    return code;
}

/* The last words: a model, stats, and the state as it is now. */
static svs_code server_finish(struct server *p, svs_error *err) {
    svs_code code = SVS_OK;
    if (p->write_ahead)
        code = svi_write_ahead_write(p->write_ahead, SVI_RECORD_STOP, svi_wall_clock(), NULL, 0, err);
    if (code == SVS_OK)
        svi_engine_publish_model(p->engine, true);
    publish_stats(p, svi_wall_clock());
    if (code == SVS_OK && p->write_ahead)
        code = svi_write_ahead_save(p->write_ahead, NULL, NULL, err);
    if (code == SVS_DISK_FULL && p->hooks->log)
        fprintf(p->hooks->log, "state: final checkpoint skipped; journal is complete: %s\n", err->text);
    return code == SVS_DISK_FULL ? SVS_OK : code;
}

static svs_code server_loop(struct server *p, svs_error *err) {
    p->stats_due = svi_wall_clock() + p->settings.publish_seconds;
    p->worked = svi_clock_seconds(CLOCK_THREAD_CPUTIME_ID); /* the write-ahead knows what a restart applied */
    svs_code code =
        p->rows ? server_take_rows(p, false, err) : SVS_OK; /* rows that were read to find the format */
    while (!p->stop && code == SVS_OK)
        code = server_turn(p, err);
    if (code == SVS_OK)
        code = server_drain(p, err);
    svs_error trouble;
    /* What is in memory may not be what is written down. */
    const bool doubtful = p->write_ahead && (code == SVS_IO || code == SVS_NO_MEMORY);
    svs_code last = doubtful ? SVS_OK : server_finish(p, &trouble);
    if (code == SVS_OK && last != SVS_OK)
        code = svi_fail(err, last, "%s", trouble.text);
    return code;
}

/* ---- start and end ---- */

static void log_address(const struct server *p, const char *what, const char *address, const char *kind) {
    if (p->hooks->log) {
        fprintf(p->hooks->log, "%s %s%s%s%s\n", what, address, kind ? " (" : "", kind ? kind : "",
                kind ? ")" : "");
        fflush(p->hooks->log);
    }
}

static svs_code open_input(struct server *p, svs_error *err) {
    struct svi_settings *s = &p->settings;
    const struct svi_input_mode *mode = svi_input_mode(s);
    const int64_t queue = QUEUE_BYTES / s->max_message; /* libzmq counts messages alone */
    const int limit = queue > QUEUE_IN ? QUEUE_IN : queue < QUEUE_LEAST ? QUEUE_LEAST : (int)queue;
    struct svi_socket_plan plan = {"in", mode->type, mode->bind, limit, LINGER_MS, s->max_message};
    const int replies = QUEUE_REPLIES;
    if (!(p->in = svi_access_socket(&p->access, &plan, err)))
        return err->code;
    if (mode->replies && zmq_setsockopt(p->in, ZMQ_SNDHWM, &replies, sizeof replies) != 0)
        return svi_fail(err, SVS_IO, "no room for replies: %s", zmq_strerror(zmq_errno()));
    if (mode->type == ZMQ_SUB && zmq_setsockopt(p->in, ZMQ_SUBSCRIBE, s->in_topic, strlen(s->in_topic)) != 0)
        return svi_fail(err, SVS_IO, "cannot subscribe to in.topic: %s", zmq_strerror(zmq_errno()));
    if (svi_socket_attach(p->in, &plan, s->in, s->in, err) != SVS_OK)
        return err->code;
    p->messages.socket = p->in;
    log_address(p, "in", s->in, svi_settings_word("in.mode", s->in_mode));
    return SVS_OK;
}

static svs_code open_control(struct server *p, svs_error *err) {
    struct svi_settings *s = &p->settings;
    int64_t most = s->max_message < REQUEST_MAX ? s->max_message : REQUEST_MAX;
    const struct svi_socket_plan plan = {"ctl", ZMQ_ROUTER, true, QUEUE_CTL, LINGER_MS, most};
    if (!(p->ctl = svi_access_socket(&p->access, &plan, err)) ||
        svi_socket_attach(p->ctl, &plan, s->ctl, s->ctl, err) != SVS_OK)
        return err->code;
    log_address(p, "ctl", s->ctl, NULL);
    return SVS_OK;
}

static svs_code open_output(struct server *p, svs_error *err) {
    struct svi_settings *s = &p->settings;
    const struct svi_bytes *last = svi_engine_last_model(p->engine);
    if (!(p->out = svi_publisher_new(&p->access, s->out, s->stream, s->out, err)))
        return err->code;
    /* A new subscriber gets the model that a former process published last; without memory it waits for the
     * next. */
    if (last->size > 0)
        (void)svi_publisher_retain(p->out, SVI_TOPIC_MODEL, last->data, last->size);
    log_address(p, "out", s->out, NULL);
    return SVS_OK;
}

static svs_code open_sockets(struct server *p, svs_error *err) {
    struct svi_settings *s = &p->settings;
    bool standard_input = strcmp(s->in, "-") == 0, out = svi_settings_binds(s, "out", s->out),
         ctl = svi_settings_binds(s, "ctl", s->ctl);
    if ((!standard_input || out || ctl) && !(p->context = zmq_ctx_new()))
        return svi_fail(err, SVS_IO, "ZeroMQ cannot start: %s", zmq_strerror(zmq_errno()));
    if (p->context && svi_access_open(&p->access, s, p->context, err) != SVS_OK)
        return err->code;
    if ((out && open_output(p, err) != SVS_OK) || (ctl && open_control(p, err) != SVS_OK))
        return err->code;
    if (!standard_input)
        return open_input(p, err); /* last: a producer that sees it may send at once */
    if (p->hooks->scores && !out)
        p->lines.fd = fileno(p->hooks->scores);
    p->rows = svi_ingest_stdin_new(s, p->engine, p->write_ahead, err);
    return p->rows ? SVS_OK : err->code;
}

/* What keeps the state has, besides the engine: a share of the size of its state, and a fixed number of
 * bytes. */
static void kept_memory(const struct svi_settings *s, double *share, double *fixed) {
    *share = *fixed = 0;
    if (!s->state_dir[0])
        return;
    svi_write_ahead_memory(svi_ingest_zmq_batch_memory(s), share, fixed);
    *fixed += svi_ingest_zmq_memory(s);
}

double svi_server_memory(const struct svi_settings *s, int d, int classes) {
    double share, fixed;
    kept_memory(s, &share, &fixed);
    return svi_engine_memory(s, d, classes) + share * svi_engine_state_memory(s, d, classes) + fixed;
}

void svi_server_predict_memory(const struct svi_settings *s, svi_engine *e) {
    double share, fixed;
    kept_memory(s, &share, &fixed);
    svi_engine_set_kept_memory(e, share, fixed);
}

static svs_code server_build(struct server *p, svs_error *err) {
    double time = svi_wall_clock();
    if (p->settings.state_dir[0])
        p->write_ahead = svi_write_ahead_open(&p->settings, server_sink, p, p->hooks->log, &p->engine, err);
    else
        p->engine = svi_engine_new(&p->settings, (uint64_t)(1e6 * time), server_sink, p, err);
    if (!p->engine)
        return err->code;
    svi_server_predict_memory(&p->settings, p->engine);
    p->control = (struct svi_control){.engine = p->engine,
                                      .settings = &p->settings,
                                      .started = time,
                                      .write_ahead = p->write_ahead,
                                      .text_rows = strcmp(p->settings.in, "-") == 0 &&
                                                   strcmp(p->settings.in_format, "msgpack") != 0};
    p->messages = (struct svi_ingest_zmq){.settings = &p->settings,
                                          .control = &p->control,
                                          .access = &p->access,
                                          .latency = &p->latency,
                                          .log = p->hooks->log};
    if (svi_ingest_zmq_new(&p->messages, err) != SVS_OK)
        return err->code;
    if (p->settings.refit != SVI_REFIT_NONE && !(p->worker = svi_worker_new(&svi_refit_task, err)))
        return err->code;
    return open_sockets(p, err);
}

static void server_dismantle(struct server *p) {
    svi_worker_free(&p->worker); /* before the engine, whose job it may have */
    svi_write_ahead_free(&p->write_ahead);
    svi_ingest_zmq_free(&p->messages);
    svi_access_leave(&p->access);
    svi_socket_close(&p->in);
    svi_socket_close(&p->ctl);
    svi_publisher_free(&p->out);
    svi_access_close(&p->access);
    svi_ingest_stdin_free(&p->rows);
    if (p->context)
        while (zmq_ctx_term(p->context) != 0 && zmq_errno() == EINTR)
            ; /* waits for what is on its way out, as long as the sockets linger */
    svi_engine_free(&p->engine);
    svi_bytes_clear(&p->record);
    svi_bytes_clear(&p->lines.text);
    svi_bytes_clear(&p->lines.event);
}

/* What the run came to, for people: the last lines of the log. */
static void write_summary(const struct server *p) {
    const struct svi_settings *s = &p->settings;
    const struct svi_figure *f;
    const char *name = s->task == SVS_REGRESS ? "rmse" : "accuracy";
    FILE *to = p->hooks->log;
    if (!to)
        return;
    const int count = svi_engine_figures(p->engine, svi_wall_clock(), &f);
    const double quality = svi_figure_value(f, count, name),
                 suppressed = svi_figure_value(f, count, "alerts_suppressed");
    fprintf(to, "seen %" PRId64 "\nrefused %" PRId64 "\n", svi_engine_seen(p->engine),
            svi_engine_errors(p->engine));
    if (s->novelty != SVI_NOVELTY_NONE)
        fprintf(to, "alerts %.0f\n", svi_figure_value(f, count, "alerts"));
    if (suppressed > 0 && p->rows && !s->ts[0]) /* the whole file takes less than the cooldown */
        fprintf(
            to,
            "%.0f more were suppressed by alert.cooldown, which uses the clock when there is no column of "
            "times: name it with --ts\n",
            suppressed);
    if (!isnan(quality))
        fprintf(to, "%s %.3f\n", name, quality);
    fflush(to);
}

svs_code svi_server_run(const struct svi_settings *s, const struct svi_server_hooks *hooks, svs_error *err) {
    struct server *p = svi_alloc(sizeof *p);
    struct svi_signals before;
    svs_error local;
    if (!p)
        return svi_fail_memory(err, "the server");
    err = err ? err : &local;
    p->settings = *s;
    p->hooks = hooks;
    p->lines.fd = -1;
    p->signals = svi_signals_take(&before);
    svs_code code = p->signals < 0
                        ? svi_fail(err, SVS_IO, "signals cannot be waited for: %s", strerror(errno))
                        : server_build(p, err);
    if (code == SVS_OK) {
        code = server_loop(p, err);
        write_summary(p);
    }
    server_dismantle(p);
    svi_signals_give_back(&before, p->signals);
    svi_free(p);
    return code;
}
