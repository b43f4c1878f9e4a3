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
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrival_clock.h"
#include "base/clock.h"
#include "base/fail.h"
#include "fleet/fleet.h"
#include "server/control.h"
#include "server/run_log.h"
#include "report/live_figures.h"
#include "net/access.h"
#include "server/intake.h"
#include "net/vacancy.h"
#include "server/reload.h"
#include "server/router.h"
#include "server/intake_stdin.h"
#include "server/process_memory.h"
#include "state/write_ahead.h"
#include "server/score_lines.h"
#include "net/publisher.h"
#include "server/signals.h"
#include "report/verdict.h"
#include "base/worker.h"

#define TURN_REQUESTS 64
#define PASS_AGAIN    1.0 /* seconds until what a full disk kept back is tried again */

#define QUEUED        128  /* bytes of a message in a queue besides its own */
#define QUEUE_REPLIES 4096 /* of one producer; libzmq counts in halves, and the credit is 1024 */
#define QUEUE_CTL     64   /* requests of one client that may wait, and replies that it does not read */
#define LINGER_MS     2000 /* replies on their way out at the end */
#define DRAIN_MS      100  /* at the end: nothing came for so long, so nothing is on its way */
#define FREE_SECONDS  2.0  /* at the end: an address that does not become free is not waited for any longer */
#define DRAIN_SECONDS 3.0  /* at the end: a producer that never stops is not waited for any longer */
#define KIB           1024.0
#define GIB           (1024 * 1024 * KIB)
#define SHOWN         5 /* refused rows of standard input reported in full; the others are counted */

/* Bytes that a stream of eight features takes until its window is full, and one of more with its first
 * samples; with the bank, and without. */
#define AHEAD_BANK    ((size_t)6 << 20)
#define AHEAD_LEARNER ((size_t)3 << 20)

struct server {
    struct svi_settings settings; /* `in`, `out`, `ctl` become the real addresses */
    const struct svi_server_hooks *hooks;
    svi_stream *stream;
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
    struct svi_event_log log;     /* of sockets */
    bool label_said;              /* of flat rows */
    struct svi_live_figures live; /* of rows */
    struct svi_latency latency;
    struct svi_signals signals;
    struct svi_reload reload;
    struct svi_request stopper; /* the request that asked for the end */
    bool stopped;               /* there is one: it is answered last */
    double worked; /* seconds of the processor that this thread had when the write-ahead's turn came last:
                      waiting is no work, a restart does not wait */
    struct svi_arrival_clock clock;
    double pass_at;  /* monotonic: not before, after a failure */
    double stats_at; /* monotonic: when they were published last */
    bool stop;
    int64_t seen, errors; /* of the engine when it began */
    int told;             /* refused rows that were reported as text */
    int twins;            /* classes, likewise */
};

/* ---- the clock ---- */

static double server_now(const struct server *p) {
    return svi_arrival_clock_now(&p->clock);
}

/* The times that the engine holds move with the clock, which is written down first. */
static svs_code move_times_held(struct server *p, double step, double now, svs_error *err) {
    svs_code code = SVS_OK;
    p->record.size = 0;
    if (p->write_ahead && (code = svi_record_pack_clock(step, &p->record)) == SVS_OK)
        code =
            svi_write_ahead_write(p->write_ahead, SVI_RECORD_CLOCK, now, p->record.data, p->record.size, err);
    if (code == SVS_OK)
        svi_stream_move_clock(p->stream, step, now);
    return code;
}

/* The wall clock was set, or has drifted far enough. With a full disk arrival times go on as before. */
static svs_code follow_clock(struct server *p, svs_error *err) {
    const double step = svi_arrival_clock_offset(&p->clock);
    svs_code code = step == 0 ? SVS_OK : move_times_held(p, step, server_now(p) + step, err);
    if (code == SVS_DISK_FULL || code == SVS_NO_MEMORY)
        return SVS_OK;
    if (code == SVS_OK) {
        svi_arrival_clock_move(&p->clock, step);
        p->control.started += step;
    }
    return code;
}

/* A state that was kept under a clock that was ahead goes on under one that is not. */
static svs_code begin_clock(struct server *p, svs_error *err) {
    const double now = server_now(p);
    double step;
    return svi_stream_ahead(p->stream, now, &step) ? move_times_held(p, step, now, err) : SVS_OK;
}

/* What it has with the queues of producers that are ahead, as large as messages have been. */
static void predict_memory(struct server *p) {
    const int64_t peers = svi_access_fd(&p->access) < 0 ? 1 : svi_peer_watch_connected(p->access.peers);
    const double each = (double)svi_ingest_zmq_queue(&p->settings) * (double)(p->messages.largest + QUEUED);
    const double queues = p->in ? (double)(peers > 1 ? peers : 1) * each : 0;
    svi_server_predict_memory(&p->settings, p->stream, queues + svi_ingest_zmq_converted(&p->messages));
}

/* ---- events ---- */

static void server_sink(void *user, const struct svi_event *e) {
    struct server *p = user;
    if (p->out)
        svi_publisher_publish(p->out, e); /* out of memory: lost, and seen by `seq` */
    if (p->rows && e->topic == SVI_TOPIC_SCORE)
        svi_score_lines_score(&p->lines, e, e->as.score.mark);
    if (p->rows && e->topic == SVI_TOPIC_ALERT && p->hooks->log)
        fprintf(p->hooks->log, "alert: %s\n", e->as.alert.text);
    const svs_code code = e->topic == SVI_TOPIC_ERROR ? e->as.error.code : SVS_OK;
    const char *what = code == SVS_CLOCK_MOVED                                    ? "clock"
                       : code == SVS_CONFIG_CHANGED || code == SVS_UNKNOWN_COLUMN ? "config"
                       : code == SVS_TWIN_CLASSES                                 ? "label"
                       : code == SVS_STATE_LOADED                                 ? "state"
                                                  : NULL; /* no sample was refused */
    if (what && p->hooks->log && !(code == SVS_TWIN_CLASSES && p->twins++ >= SHOWN)) { /* of each key */
        fprintf(p->hooks->log, "%s: %s\n", what, e->as.error.reason);
        fflush(p->hooks->log);
    }
    if (what)
        return;
    svi_event_log_count(&p->log, e);
    if (p->rows && e->topic == SVI_TOPIC_ERROR && p->hooks->refused && p->told++ < SHOWN)
        fprintf(p->hooks->refused, "svmstream: %s%s\n", svi_ingest_stdin_place(p->rows), e->as.error.reason);
}

static void report_access(struct server *p, double time) {
    svs_error report;
    if (svi_access_fd(&p->access) < 0)
        return;
    while (svi_access_next_report(&p->access, time, &report))
        svi_write_ahead_refuse(p->write_ahead, p->stream, report.code, report.text, NULL, 0, time);
    svi_stream_set_gauge(p->stream, "handshakes_refused", (double)svi_peer_watch_refused(p->access.peers));
    svi_stream_set_gauge(p->stream, "connections", (double)svi_peer_watch_connected(p->access.peers));
}

/* Stats, and with `due` (publish.seconds are over) the model before them. A full disk does not keep stats
 * back; a model waits, for its number must be the same after a restart. */
static void publish_stats(struct server *p, bool due) {
    const struct svi_latency *l = &p->latency;
    const double time = server_now(p);
    svs_code written = SVS_OK;
    p->stats_at = svi_monotonic();
    report_access(p, time);
    if (!p->out)
        return;
    svi_stream_set_gauge(p->stream, "latency_p50", svi_latency_quantile(l, 0.5));
    svi_stream_set_gauge(p->stream, "latency_p99", svi_latency_quantile(l, 0.99));
    svi_stream_set_gauge(p->stream, "turn_mean", l->turns ? (double)l->messages / (double)l->turns : NAN);
    svi_stream_set_gauge(p->stream, "turn_max", (double)l->largest);
    svi_ingest_zmq_figures(&p->messages);
    predict_memory(p);
    p->latency = (struct svi_latency){0};
    if (p->write_ahead)
        written = svi_write_ahead_write(p->write_ahead, due ? SVI_RECORD_PUBLISH : SVI_RECORD_STATS, time,
                                        NULL, 0, NULL);
    if (due && written == SVS_OK)
        svi_stream_publish_due(p->stream, time);
    else
        svi_stream_publish_stats(p->stream, NULL, time);
}

/* ---- input ---- */

/* Answers one control request. False: none is waiting. */
static bool server_answer(struct server *p) {
    static const svs_error forbidden = {SVS_NOT_ALLOWED,
                                        "this key, or its role, was removed from the allow file"},
                           ending = {SVS_UNAVAILABLE, "the process is stopping"};
    struct svi_request r;
    if (!p->ctl || !svi_request_receive(p->ctl, &r))
        return false;
    const void *body = zmq_msg_data(&r.body);
    const size_t length = zmq_msg_size(&r.body);
    if (svi_access_takes(&p->access, SVI_ROLE_CONTROL, &r.body, &r.frames)) {
        const bool admitted = svi_access_admits(&p->access, SVI_ROLE_CONTROL, &r.body), late = p->stopped;
        svs_code code =
            admitted && !late
                ? svi_control_handle(&p->control, body, length, server_now(p), &p->messages.reply)
                : svi_router_decline(&p->control, NULL, admitted ? &ending : &forbidden, &p->messages.reply);
        if (p->control.stop && !late) {
            p->stopper = r;
            p->stopped = true;
            return true;
        }
        svi_ingest_zmq_reply(&p->messages, p->ctl, &r, code);
    }
    svi_request_close(&r);
    return true;
}

static void server_log_note(struct server *p) {
    const char *note = p->settings.method == SVI_METHOD_NONE ? NULL : svi_ingest_stdin_note(p->rows);
    if (note && p->hooks->log)
        fprintf(p->hooks->log, "%s\n", note);
}

/* The label of flat rows of JSON was found by its name. */
static void server_log_label(struct server *p) {
    if (p->label_said || !p->control.json.label[0])
        return;
    p->label_said = true;
    if (p->hooks->log)
        fprintf(p->hooks->log,
                "flat rows of JSON: label %s, by its name (--label says otherwise, '' is none)\n",
                p->control.json.label);
}

/* What there is to say of the columns comes before the first figures. */
static void server_row_taken(void *user, int64_t row) {
    struct server *p = user;
    if (!svi_live_figures_due(&p->live, row))
        return;
    server_log_note(p);
    svi_live_figures_show(&p->live);
}

static svs_code server_take_rows(struct server *p, bool fill, svs_error *err) {
    double start = svi_monotonic();
    int64_t before = svi_ingest_stdin_row(p->rows);
    bool ended = false;
    /* Of a key's score a line needs the names of classes, which its engine has as long as the row is in hand.
     */
    svi_stream_leave_open(p->stream, !svi_settings_keyed(&p->settings));
    svs_code code = svi_ingest_stdin_turn(p->rows, fill, server_now(p), &ended, err);
    svi_stream_leave_open(p->stream, false);
    svi_latency_add(&p->latency, svi_monotonic() - start, svi_ingest_stdin_row(p->rows) - before);
    server_log_note(p);
    p->stop = p->stop || ended;
    svs_error trouble;
    svs_code written = svi_score_lines_flush(&p->lines, p->signals.end, &trouble);
    p->stop = p->stop || p->lines.closed;
    if (code == SVS_OK && written != SVS_OK)
        return svi_fail(err, written, "%s", trouble.text);
    return code;
}

/* ---- the loop ---- */

enum {
    ITEM_END,
    ITEM_RELOAD,
    ITEM_IN,
    ITEM_CTL,
    ITEM_OUT,
    ITEM_ACCESS,
    ITEM_WORKER,
    ITEM_WRITE_AHEAD,
    ITEM_COUNT
};

static void poll_items(const struct server *p, zmq_pollitem_t *items) {
    memset(items, 0, ITEM_COUNT * sizeof *items);
    for (int i = 0; i < ITEM_COUNT; i++) {
        items[i].events = ZMQ_POLLIN;
        items[i].fd = p->signals.end; /* stands in where there is nothing to wait for */
    }
    items[ITEM_RELOAD].fd = p->signals.reload;
    if (isinf(svi_ingest_zmq_wait(&p->messages))) /* else what was taken waits for room */
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

/* Seconds until stats are due. */
static double stats_wait(const struct server *p) {
    return p->stats_at + p->settings.publish_seconds - svi_monotonic();
}

/* What time brings about is written down first; with a full disk it waits for room. */
static svs_code server_pass(struct server *p, svs_error *err) {
    const double now = server_now(p);
    svs_code code = SVS_OK;
    if (now < svi_stream_deadline(p->stream) || svi_monotonic() < p->pass_at)
        return SVS_OK;
    if (p->write_ahead)
        code = svi_write_ahead_write(p->write_ahead, SVI_RECORD_TIME, now, NULL, 0, err);
    if (code == SVS_OK)
        svi_stream_pass(p->stream, now);
    p->pass_at = code == SVS_OK ? 0 : svi_monotonic() + PASS_AGAIN;
    return code == SVS_DISK_FULL || code == SVS_NO_MEMORY ? SVS_OK : code;
}

static double pass_wait(const struct server *p) {
    return fmax(svi_stream_deadline(p->stream) - server_now(p), p->pass_at - svi_monotonic());
}

static long server_wait_ms(const struct server *p) {
    double left = fmin(svi_ingest_zmq_wait(&p->messages), svi_event_log_wait(&p->log));
    left = fmin(left, fmin(svi_live_figures_wait(&p->live), pass_wait(p)));
    left = fmin(left, svi_ingest_zmq_room_wait(&p->messages));
    if (p->out && p->settings.publish_seconds > 0)
        left = fmin(left, stats_wait(p));
    if (p->write_ahead)
        left = fmin(left, svi_write_ahead_wait(p->write_ahead));
    if (p->rows)
        left = fmin(left, svi_ingest_stdin_wait(p->rows));
    if (isinf(left))
        return -1;
    return left <= 0 ? 0 : left > 60 ? 60000 : (long)(1000 * left) + 1;
}

/* Threads of keys make payloads of what somebody wants to have. */
static void encode_wanted(const struct server *p) {
    unsigned wanted = 0;
    for (int t = 0; p->out && t < SVI_TOPIC_COUNT; t++)
        wanted |= (unsigned)svi_publisher_wanted(p->out, (enum svi_topic)t) << t;
    svi_stream_encode(p->stream, wanted);
}

static void server_serve(struct server *p, const zmq_pollitem_t *items) {
    if (items[ITEM_CTL].revents || items[ITEM_ACCESS].revents) /* `status` reports what access counts */
        report_access(p, server_now(p));
    if (items[ITEM_CTL].revents) {
        svi_ingest_zmq_figures(&p->messages);
        predict_memory(p);
        for (int i = 0; i < TURN_REQUESTS && server_answer(p); i++)
            ;
    }
    if (items[ITEM_OUT].revents && p->out)
        svi_publisher_subscriptions(p->out);
    if (p->settings.publish_seconds > 0 && stats_wait(p) <= 0)
        publish_stats(p, true);
}

/* It takes effect when it is written down; with a full disk it waits. */
static svs_code give_refit(struct server *p, svs_error *err) {
    svs_code code = SVS_OK;
    if (svi_engine_refit_left(svi_stream_root(p->stream), p->finished)) {
        p->finished = NULL;
        return SVS_OK;
    }
    p->record.size = 0;
    if (p->write_ahead && (code = svi_refit_pack(p->finished, &p->record)) == SVS_OK)
        code = svi_write_ahead_write(p->write_ahead, SVI_RECORD_REFIT, server_now(p), p->record.data,
                                     p->record.size, err);
    if (code == SVS_DISK_FULL || code == SVS_NO_MEMORY)
        return SVS_OK;
    if (code == SVS_OK) {
        svi_engine_refit_give(svi_stream_root(p->stream));
        p->finished = NULL;
    }
    return code;
}

/* A finished refit takes effect between two samples; one that is due goes to the worker. */
static svs_code exchange_refits(struct server *p, svs_error *err) {
    svs_code code = SVS_OK;
    if (!p->worker && p->settings.refit == SVI_REFIT_NONE)
        return code;
    if (!p->worker && !(p->worker = svi_worker_new(&svi_refit_task, err))) /* refits were turned on */
        return err->code;
    if (svi_worker_busy(p->worker))
        p->finished = svi_worker_collect(p->worker);
    if (p->finished)
        code = give_refit(p, err);
    struct svi_refit *job =
        svi_worker_busy(p->worker) || p->finished ? NULL : svi_engine_refit_take(svi_stream_root(p->stream));
    if (job)
        svi_worker_submit(p->worker, job);
    return code;
}

static svs_code server_keep(struct server *p, svs_error *err) {
    if (p->control.failed)
        return svi_fail(err, p->control.failure.code, "%s", p->control.failure.text);
    if (!p->write_ahead)
        return SVS_OK;
    if (svi_stream_lost_key(p->stream, err) != SVS_OK)
        return err->code;
    if (svi_stream_out_of_memory(p->stream))
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
    if ((code = follow_clock(p, err)) != SVS_OK)
        return code;
    server_serve(p, items); /* first: control goes before samples */
    encode_wanted(p);
    if (items[ITEM_RELOAD].revents && svi_signals_came(p->signals.reload))
        svi_reload(&p->reload, &p->control, &p->access, server_now(p));
    if (items[ITEM_END].revents)
        p->stop = true;
    else if (p->rows && (items[ITEM_IN].revents || svi_ingest_stdin_wait(p->rows) <= 0))
        code = server_take_rows(p, items[ITEM_IN].revents, err);
    else if (!p->rows && p->in)
        code = svi_ingest_zmq_turn(&p->messages, server_now(p), &took, err);
    server_log_label(p);
    if (code == SVS_OK)
        code = server_pass(p, err);
    if (code == SVS_OK)
        code = exchange_refits(p, err);
    if (code == SVS_OK)
        code = server_keep(p, err);
    svi_event_log_turn(&p->log, false);
    if (svi_live_figures_wait(&p->live) <= 0)
        svi_live_figures_show(&p->live);
    p->stop = p->stop || p->control.stop;
    return code;
}

/* What producers had handed over before the end is still on its way through the kernel and libzmq's thread.
 */
static svs_code server_drain(struct server *p, svs_error *err) {
    zmq_pollitem_t item = {p->in, 0, ZMQ_POLLIN, 0};
    double end = svi_monotonic() + DRAIN_SECONDS;
    svs_code code = SVS_OK;
    bool took = true;
    while (p->in && code == SVS_OK && took && svi_monotonic() < end && zmq_poll(&item, 1, DRAIN_MS) > 0)
        code = svi_ingest_zmq_turn(&p->messages, server_now(p), &took, err);
    if (p->messages.held && p->hooks->log)
        fprintf(p->hooks->log, "state: %d received messages could not be written and are lost\n",
                p->messages.first->count);
    report_access(p, server_now(p));
    if (p->out)
        svi_publisher_subscriptions(p->out);
    return code;
}

/* The last words: a model, stats, and the state as it is now. */
static svs_code server_finish(struct server *p, svs_error *err) {
    svs_code code = SVS_OK;
    if (p->write_ahead)
        code = svi_write_ahead_write(p->write_ahead, SVI_RECORD_STOP, server_now(p), NULL, 0, err);
    if (code == SVS_OK)
        svi_engine_publish_model(svi_stream_root(p->stream), true);
    publish_stats(p, false);
    if (code == SVS_OK && p->write_ahead)
        code = svi_write_ahead_save(p->write_ahead, NULL, NULL, err);
    if (code == SVS_DISK_FULL && p->hooks->log)
        fprintf(p->hooks->log, "state: final checkpoint skipped; journal is complete: %s\n", err->text);
    return code == SVS_DISK_FULL ? SVS_OK : code;
}

static svs_code server_loop(struct server *p, svs_error *err) {
    p->stats_at = svi_monotonic();
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
    struct svi_socket_plan plan = {"in",      mode->type,     mode->bind, svi_ingest_zmq_queue(s),
                                   LINGER_MS, s->max_message, 0};
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
    const struct svi_socket_plan plan = {"ctl", ZMQ_ROUTER, true, QUEUE_CTL, LINGER_MS, s->max_message, 0};
    if (!(p->ctl = svi_access_socket(&p->access, &plan, err)) ||
        svi_socket_attach(p->ctl, &plan, s->ctl, s->ctl, err) != SVS_OK)
        return err->code;
    log_address(p, "ctl", s->ctl, NULL);
    return SVS_OK;
}

/* What a new subscriber gets before the first model of this process: the bank as it is. Without memory it
 * waits. */
static void retain_bank(struct server *p) {
    struct svi_bank_told told;
    struct svi_event event;
    struct svi_bytes bytes = {0};
    if (svi_stream_bank_event(p->stream, "", &told, &event, NULL) == SVS_OK &&
        svi_event_encode(&event, &bytes) == SVS_OK)
        (void)svi_publisher_retain(p->out, SVI_TOPIC_BANK, bytes.data, bytes.size);
    svi_bytes_clear(&bytes);
}

/* What somebody gets who subscribes to one key. */
static svs_code server_present(void *user, enum svi_topic topic, const char *key, struct svi_bytes *out) {
    struct server *p = user;
    union {
        svs_model model;
        struct svi_bank_told bank;
    } told;
    struct svi_event event;
    svs_error err;
    svs_code code = SVS_UNAVAILABLE;
    if (topic == SVI_TOPIC_MODEL)
        code = svi_stream_model_event(p->stream, key, &told.model, &event, &err);
    else if (topic == SVI_TOPIC_BANK)
        code = svi_stream_bank_event(p->stream, key, &told.bank, &event, &err);
    return code == SVS_OK ? svi_event_encode(&event, out) : code;
}

static svs_code open_output(struct server *p, svs_error *err) {
    struct svi_settings *s = &p->settings;
    const struct svi_bytes *last = svi_engine_last_model(svi_stream_root(p->stream));
    if (!(p->out = svi_publisher_new(&p->access, s->out, s->stream, s->out, err)))
        return err->code;
    if (svi_settings_keyed(s))
        svi_publisher_show_keys(p->out, server_present, p);
    /* A new subscriber gets the model that a former process published last; without memory it waits for the
     * next. */
    if (last->size > 0) {
        (void)svi_publisher_retain(p->out, SVI_TOPIC_MODEL, last->data, last->size);
        retain_bank(p);
    }
    log_address(p, "out", s->out, NULL);
    return SVS_OK;
}

/* There may be fewer than the settings say. */
static void log_connections(const struct server *p) {
    int descriptors;
    const int limit = p->access.peers ? svi_peer_watch_limit(p->access.peers, &descriptors) : INT_MAX;
    if (p->hooks->log && limit < p->settings.max_connections)
        fprintf(
            p->hooks->log,
            "connections: at most %d, as `ulimit -n` is %d and each takes two descriptors (max.connections "
            "%lld)\n",
            limit, descriptors, (long long)p->settings.max_connections);
}

static svs_code open_sockets(struct server *p, svs_error *err) {
    struct svi_settings *s = &p->settings;
    bool standard_input = strcmp(s->in, "-") == 0, out = svi_settings_binds(s, "out", s->out),
         ctl = svi_settings_binds(s, "ctl", s->ctl);
    if ((!standard_input || out || ctl) && !(p->context = zmq_ctx_new()))
        return svi_fail(err, SVS_IO, "ZeroMQ cannot start: %s", zmq_strerror(zmq_errno()));
    if (p->context && svi_access_open(&p->access, s, p->context, err) != SVS_OK)
        return err->code;
    log_connections(p);
    if ((out && open_output(p, err) != SVS_OK) || (ctl && open_control(p, err) != SVS_OK))
        return err->code;
    if (!standard_input)
        return open_input(p, err); /* last: a producer that sees it may send at once */
    if (p->hooks->scores && !out)
        p->lines.fd = fileno(p->hooks->scores);
    p->rows = svi_ingest_stdin_new(s, p->stream, p->write_ahead, err);
    if (!p->rows)
        return err->code;
    svi_live_figures_begin(&p->live, p->hooks->log, p->stream, p->hooks->every);
    svi_ingest_stdin_watch(p->rows, server_row_taken, p);
    return SVS_OK;
}

/* How many keys may be in memory, and by what. */
static void log_keys(const struct server *p) {
    const struct svi_settings *s = &p->settings;
    const int d = svi_keys_features(s);
    struct svi_keys_memory m;
    if (!p->hooks->log || !svi_settings_keyed(s) || strcmp(s->in, "-") == 0)
        return;
    svi_keys_memory(s, d, 2, &m);
    fprintf(p->hooks->log, "keys: at most %lld in memory (", (long long)m.most);
    if (s->keys_memory > 0)
        fprintf(p->hooks->log, "keys.memory; with %d features up to %.2f GiB, %s %.2f GiB", d,
                (double)m.most * m.each / GIB, m.of, m.machine / GIB);
    else
        fprintf(p->hooks->log, "%.2f GiB, half of what %s; each up to %.0f KiB with %d features",
                m.share / GIB, m.of, m.each / KIB, d);
    fprintf(p->hooks->log, "), the others on disk\n");
}

/* Of a kept state it is known at once. */
static void log_strangers(const struct server *p) {
    char text[SVS_ERROR_TEXT];
    if (p->hooks->log && svi_stream_strangers(p->stream, text, sizeof text))
        fprintf(p->hooks->log, "config: %s\n", text);
}

static svs_code server_build(struct server *p, svs_error *err) {
    if (p->settings.state_dir[0])
        p->write_ahead = svi_write_ahead_open(&p->settings, server_sink, p, p->hooks->log, &p->stream, err);
    else
        p->stream = svi_stream_new(&p->settings, (uint64_t)(1e6 * svi_wall_clock()), server_sink, p, err);
    if (!p->stream)
        return err->code;
    if (svi_settings_two_threads(&p->settings))
        svi_stream_use_threads(p->stream);
    svi_arrival_clock_start(&p->clock);
    if (begin_clock(p, err) != SVS_OK)
        return err->code;
    svi_server_predict_memory(&p->settings, p->stream, 0);
    p->control = (struct svi_control){.stream = p->stream,
                                      .settings = &p->settings,
                                      .started = server_now(p),
                                      .run = (uint64_t)(1e6 * svi_wall_clock()),
                                      .write_ahead = p->write_ahead,
                                      .text_rows = strcmp(p->settings.in, "-") == 0 &&
                                                   strcmp(p->settings.in_format, "msgpack") != 0,
                                      .json.columns = svi_ingest_stdin_options(&p->settings)};
    p->messages = (struct svi_ingest_zmq){.settings = &p->settings,
                                          .control = &p->control,
                                          .access = &p->access,
                                          .latency = &p->latency,
                                          .log = p->hooks->log};
    if (svi_ingest_zmq_new(&p->messages, err) != SVS_OK)
        return err->code;
    if (!svi_settings_keyed(&p->settings)) /* whose heap grows in large pages */
        svi_alloc_ahead(p->settings.method == SVI_METHOD_AUTO ? AHEAD_BANK : AHEAD_LEARNER);
    if (p->settings.refit != SVI_REFIT_NONE && !(p->worker = svi_worker_new(&svi_refit_task, err)))
        return err->code;
    log_keys(p);
    log_strangers(p);
    return open_sockets(p, err);
}

/* `stop` is answered when all is free that the next process needs, but for the address of the answer itself,
 * which is when the asking side sees the connection end. `in`, `out`: it was bound. */
static void answer_stop(struct server *p, bool in, bool out, svs_code code, const svs_error *err) {
    struct svi_settings *s = &p->settings;
    if (!p->stopped)
        return;
    if (in)
        svi_address_await_free(s->in, FREE_SECONDS);
    if (out)
        svi_address_await_free(s->out, FREE_SECONDS);
    if (code == SVS_OK)
        code = svi_control_handle(&p->control, zmq_msg_data(&p->stopper.body), zmq_msg_size(&p->stopper.body),
                                  server_now(p), &p->messages.reply);
    else
        code = svi_router_decline(&p->control, NULL, err, &p->messages.reply);
    svi_ingest_zmq_reply(&p->messages, p->ctl, &p->stopper, code);
    svi_request_close(&p->stopper);
}

static void server_dismantle(struct server *p, svs_code code, const svs_error *err) {
    const bool in = p->in && svi_input_mode(&p->settings)->bind, out = p->out;
    svi_worker_free(&p->worker); /* before the engine, whose job it may have */
    svi_write_ahead_free(&p->write_ahead);
    p->control.write_ahead = NULL;
    svi_access_leave(&p->access);
    svi_socket_close(&p->in);
    svi_publisher_free(&p->out);
    answer_stop(p, in, out, code, err);
    svi_socket_close(&p->ctl);
    svi_ingest_zmq_free(&p->messages);
    svi_access_close(&p->access);
    svi_ingest_stdin_free(&p->rows);
    if (p->context)
        while (zmq_ctx_term(p->context) != 0 && zmq_errno() == EINTR)
            ; /* waits for what is on its way out, as long as the sockets linger */
    svi_stream_free(&p->stream);
    svi_control_clear(&p->control);
    svi_bytes_clear(&p->record);
    svi_bytes_clear(&p->lines.text);
    svi_bytes_clear(&p->lines.event);
}

/* What was refused, by code; a key counts its own. */
static void summary_of_refusals(const struct server *p, char *reasons, size_t size, svs_code *most) {
    const int64_t *all = svi_engine_refusals(svi_stream_root(p->stream));
    int64_t others = svi_stream_refused(p->stream), refused[SVS_CODE_COUNT];
    for (int code = 0; code < SVS_CODE_COUNT; code++) {
        refused[code] = svi_code_is_notice((svs_code)code) ? 0 : all[code];
        others -= refused[code];
    }
    svi_code_counts(refused, reasons, size, most);
    const size_t at = strlen(reasons);
    if (others > 0)
        snprintf(reasons + at, size - at, "%s%" PRId64 " of keys", at > 0 ? ", " : "", others);
}

static void summary_of_keys(const struct svi_settings *s, const struct svi_figure *f, int count, FILE *to) {
    const bool regress = s->task == SVS_REGRESS;
    const double quality = svi_figure_value(f, count, regress ? "keys_rmse" : "keys_accuracy");
    fprintf(to, "keys %.0f\nalerts %.0f\n", svi_figure_value(f, count, "keys"),
            svi_figure_value(f, count, "keys_alerts"));
    if (!isnan(quality))
        fprintf(to, "%s %.3f\n", regress ? "rmse" : "accuracy", quality);
}

/* What the run came to, for people: the last lines of the log. */
static void write_summary(const struct server *p) {
    const struct svi_settings *s = &p->settings;
    const struct svi_figure *f;
    static const char *const kinds[][2] = {{"quality_alerts", "quality alerts"},
                                           {"rule_alerts", "rule alerts"}};
    const char *name = s->task == SVS_REGRESS ? "rmse" : "accuracy";
    char reasons[SVS_ERROR_TEXT];
    FILE *to = p->hooks->log;
    if (!to)
        return;
    const int count = svi_stream_figures(p->stream, NULL, server_now(p), &f);
    const double quality = svi_figure_value(f, count, name),
                 suppressed = svi_figure_value(f, count, "alerts_suppressed");
    summary_of_refusals(p, reasons, sizeof reasons, NULL);
    fprintf(to, "seen %" PRId64 "\nrefused %" PRId64 "%s%s%s\n", svi_stream_seen(p->stream),
            svi_stream_refused(p->stream), reasons[0] ? " (" : "", reasons, reasons[0] ? ")" : "");
    if (svi_settings_keyed(s)) {
        summary_of_keys(s, f, count, to);
        fflush(to);
        return;
    }
    if (s->novelty != SVI_NOVELTY_NONE)
        fprintf(to, "alerts %.0f\n", svi_figure_value(f, count, "alerts"));
    for (int i = 0; i < 2; i++)
        if (svi_figure_value(f, count, kinds[i][0]) > 0)
            fprintf(to, "%s %.0f\n", kinds[i][1], svi_figure_value(f, count, kinds[i][0]));
    if (suppressed > 0 && p->rows && !s->ts[0]) /* the whole file takes less than the cooldown */
        fprintf(
            to,
            "%.0f more were suppressed by alert.cooldown, which uses the clock when there is no column of "
            "times: name it with --ts\n",
            suppressed);
    svi_verdict_write(p->stream, server_now(p), to);
    if (!isnan(quality))
        fprintf(to, "%s %.3f\n", name, quality);
    fflush(to);
}

/* Rows came, and more than half of them were refused; of more than a tenth a line says so. */
static svs_code check_rows(const struct server *p, svs_error *err) {
    char reasons[SVS_ERROR_TEXT];
    svs_code most;
    const int64_t rows = p->rows ? svi_ingest_stdin_row(p->rows) : 0;
    const int64_t refused = svi_stream_refused(p->stream) - p->errors;
    if (rows == 0 || !svi_refused_many(refused, rows))
        return SVS_OK;
    summary_of_refusals(p, reasons, sizeof reasons, &most);
    most = most == SVS_OK ? SVS_INVALID : most; /* those of keys are not known by code */
    if (svi_stream_seen(p->stream) == p->seen && refused >= rows)
        return svi_fail(err, most, "all %" PRId64 " rows were refused: %.180s", rows, reasons);
    if (svi_refused_most(refused, rows))
        return svi_fail(err, most, "%" PRId64 " of %" PRId64 " rows were refused: %.180s", refused, rows,
                        reasons);
    if (p->hooks->log)
        fprintf(p->hooks->log, "%" PRId64 " of %" PRId64 " rows were refused: %s\n", refused, rows, reasons);
    return SVS_OK;
}

svs_code svi_server_run(const struct svi_settings *s, const struct svi_server_hooks *hooks, svs_error *err) {
    struct server *p = svi_alloc(sizeof *p);
    svs_error local;
    if (!p)
        return svi_fail_memory(err, "the server");
    err = err ? err : &local;
    p->settings = *s;
    p->hooks = hooks;
    p->lines.fd = -1;
    p->reload = (struct svi_reload){.read = hooks->read_again,
                                    .from = hooks->args,
                                    .given = *s,
                                    .log = hooks->log,
                                    .errors = hooks->errors};
    svs_code code = svi_signals_take(&p->signals)
                        ? server_build(p, err)
                        : svi_fail(err, SVS_IO, "signals cannot be waited for: %s", strerror(errno));
    if (code == SVS_OK) {
        p->log.to = p->rows ? NULL : hooks->log; /* rows are reported one by one */
        p->seen = svi_stream_seen(p->stream);
        p->errors = svi_stream_refused(p->stream);
        code = server_loop(p, err);
        svi_event_log_turn(&p->log, true);
        write_summary(p);
        code = code == SVS_OK ? check_rows(p, err) : code;
    }
    server_dismantle(p, code, err);
    svi_signals_give_back(&p->signals);
    svi_free(p);
    return code;
}
