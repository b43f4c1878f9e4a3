/* The run loop: one thread, one zmq_poll, and everything that happens between two of them.
 *
 * A turn (server_turn) has a fixed order. Control requests first, so that a busy input cannot delay them for ever;
 * then what is queued on the input, within bounds; then timers, refits, and the state on disk. It waits only
 * when idle, never to fill a batch. Events leave the engine through the callback `server_sink`.
 *
 * Two invariants: nothing that changes the state takes effect before its journal record is written, so a
 * restart repeats it; and a full disk (or exhausted memory) postpones such a change instead of ending the
 * process.
 *
 * Shutdown: apply what was received, publish the last model and stats, write a checkpoint, close the sockets
 * (server_drain, server_finish, server_dismantle). Read server_turn first; set-up is at the end. */
#include "server/server.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrival_clock.h"
#include "base/clock.h"
#include "base/fail.h"
#include "server/control.h"
#include "server/gauges.h"
#include "server/intake.h"
#include "server/merge_link.h"
#include "server/reload.h"
#include "server/router.h"
#include "server/run_log.h"
#include "server/sums_publisher.h"
#include "state/write_ahead.h"
#include "net/publisher.h"
#include "server/signals.h"
#include "wire/json.h"
#include "base/worker.h"

#define TURN_REQUESTS 64
#define TIMERS_RETRY  1.0 /* seconds between two attempts at what a full disk postponed */

#define QUEUE_CTL     64   /* queue per client: waiting requests, and replies that it does not read */
#define LINGER_MS     2000 /* how long closing waits for replies that are still being sent */
#define DRAIN_MS      100  /* at the end: no message for this long means that none is in flight */
#define FREE_SECONDS  2.0  /* at the end: longest wait for an address to become free */
#define DRAIN_SECONDS 3.0  /* at the end: longest time spent on a producer that never stops */

/* Memory of the process that does not depend on the stream, and, for each feature, of the matrix panels that
 * OpenBLAS packs in the stream and in a refit. Measured on x86-64 with Debian 12 and rounded up; other
 * systems differ by a few MiB. */
#define PROCESS_BYTES (14.0 * 1024 * 1024)
#define CALLERS       2 /* threads that call OpenBLAS: the stream's and the refit's */
#define PACKED_BYTES  (1.0 * 1024 * 1024)
#define PACKED_COLUMN 3072.0

/* Bytes that a stream of eight features allocates until its window is full, and a wider one with its first
 * samples: with the bank, and without. Their pages are touched ahead (svi_alloc_ahead), so that the first
 * samples are as fast as later ones. */
#define AHEAD_BANK    ((size_t)6 << 20)
#define AHEAD_LEARNER ((size_t)3 << 20)

struct server {
    struct svi_settings settings; /* `in`, `out`, `ctl` are replaced by the addresses in use */
    const struct svi_server_hooks *hooks;
    svi_stream *stream;
    svi_write_ahead *write_ahead; /* keeps the stream's state on disk; NULL = the state is not kept */
    struct svi_control control;
    struct svi_intake intake;
    void *context, *ctl;
    struct svi_access access; /* shared by the three sockets */
    svi_publisher *out;
    struct svi_merge_link merge; /* to the merger of merge.from */
    svi_worker *worker;          /* runs refits in the background; NULL = none */
    struct svi_refit *finished;  /* a finished refit that has not taken effect yet */
    struct svi_bytes record;
    struct svi_bytes reply, text; /* reply to a request, and its JSON form */
    struct svi_run_log log;
    struct svi_latency latency;
    struct svi_gauges gauges;
    struct svi_sums_publisher sums;
    struct svi_signals signals;
    struct svi_reload reload;
    struct svi_request stopper; /* the request `stop`, once `stopped` is set */
    bool stopped;               /* `stop` was requested; it is answered last, in answer_stop */
    double worked; /* CPU seconds of this thread at the last turn of the write-ahead: idle time does not
                      count, because a restart replays work, not waiting */
    struct svi_arrival_clock clock;
    double pass_at;  /* monotonic: no earlier attempt, after a failure */
    double stats_at; /* monotonic: when stats were last published */
    bool stop;
};

/* ---- the clock ---- */

static double server_now(const struct server *p) {
    return svi_arrival_clock_now(&p->clock);
}

/* Shifts all times that the stream holds by `step` seconds. The journal record comes first: a replay must
 * shift at the same place in the order of samples. */
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

/* Follows a wall clock that was set, or has drifted beyond the tolerance. If the record cannot be written,
 * arrival times continue on the old clock and the next turn tries again. The anchor moves last, so that clock
 * and held times never disagree. */
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

/* A restored state may carry times later than the current clock; it is shifted back once. */
static svs_code begin_clock(struct server *p, svs_error *err) {
    const double now = server_now(p);
    double step;
    return svi_stream_ahead(p->stream, now, &step) ? move_times_held(p, step, now, err) : SVS_OK;
}

/* ---- memory ---- */

double svi_server_process_memory(int d) {
    return PROCESS_BYTES + CALLERS * (PACKED_BYTES + PACKED_COLUMN * (double)d);
}

/* Memory outside the engine: `share` of the size of its state (buffers of a checkpoint), plus `fixed` bytes.
 */
static void server_surrounding_memory(const struct svi_settings *s, int d, int classes, double *share,
                                      double *fixed) {
    *share = *fixed = 0;
    if (s->state_dir[0])
        svi_write_ahead_memory(svi_intake_batch_memory(s), share, fixed);
    *fixed += svi_intake_memory(s) + svi_server_process_memory(d) +
              svi_sums_publisher_memory(s, d, s->task == SVS_REGRESS ? 0 : classes);
}

double svi_server_memory(const struct svi_settings *s, int d, int classes) {
    double share, fixed;
    server_surrounding_memory(s, d, classes, &share, &fixed);
    return svi_engine_memory(s, d, classes) + share * svi_engine_state_memory(s, d, classes) + fixed;
}

void svi_server_predict_memory(const struct svi_settings *s, svi_stream *stream, double queues) {
    double share, fixed;
    const svi_engine *root = svi_stream_root(stream);
    /* The features are those of the stream so far: the prediction grows with them. */
    server_surrounding_memory(s, svi_engine_features(root), svi_engine_classes(root), &share, &fixed);
    svi_stream_set_kept_memory(stream, share, fixed + queues);
}

static void server_update_figures(struct server *p, bool stats) {
    const bool watched = svi_access_fd(&p->access) >= 0;
    /* Gauges that cost something to compute are set only when somebody is about to read them. */
    svi_intake_figures(&p->intake);
    svi_gauges_set(&p->gauges, p->stream, svi_monotonic(), stats);
    svi_merge_link_figures(&p->merge, p->stream);
    /* Without a peer watch (no sockets) the number of producers is unknown; one is assumed. */
    svi_server_predict_memory(
        &p->settings, p->stream,
        svi_intake_waiting(&p->intake, watched ? svi_peer_watch_connected(p->access.peers) : 1));
}

/* ---- events ---- */

static void server_sink(void *user, const struct svi_event *e) {
    struct server *p = user;
    svi_gauges_event(&p->gauges, e);
    if (p->out)
        /* out of memory: the event is lost, which subscribers detect by `seq` */
        svi_publisher_publish(p->out, e);
    if (!svi_run_log_notice(&p->log, e))
        svi_intake_event(&p->intake, e);
}

static void report_access(struct server *p, double time) {
    svs_error report;
    if (svi_access_fd(&p->access) < 0)
        return;
    /* Refusals by the network layer pass through the journal like any other: the count of errors is part of
     * the state and must be the same after a replay. */
    while (svi_access_next_report(&p->access, time, &report))
        svi_write_ahead_refuse(p->write_ahead, p->stream, report.code, report.text, NULL, 0, time);
    svi_stream_set_gauge(p->stream, "handshakes_refused", (double)svi_peer_watch_refused(p->access.peers));
    svi_stream_set_gauge(p->stream, "connections", (double)svi_peer_watch_connected(p->access.peers));
}

/* Publishes the stats and, when `due` (publish.seconds have elapsed), the model before them. Stats are
 * published even if their record cannot be written; a model is not, because its version must be the same
 * after a restart. */
static void publish_stats(struct server *p, bool due) {
    const struct svi_latency *l = &p->latency;
    const double time = server_now(p);
    svs_code written = SVS_OK;
    p->stats_at = svi_monotonic();
    report_access(p, time);
    /* Without an output socket nobody receives stats. */
    if (!p->out)
        return;
    svi_stream_set_gauge(p->stream, "latency_p50", svi_latency_quantile(l, 0.5));
    svi_stream_set_gauge(p->stream, "latency_p99", svi_latency_quantile(l, 0.99));
    svi_stream_set_gauge(p->stream, "turn_mean", l->turns ? (double)l->messages / (double)l->turns : NAN);
    svi_stream_set_gauge(p->stream, "turn_max", (double)l->largest);
    server_update_figures(p, true);
    /* The latency histogram covers one period between two stats, so it is cleared here. */
    p->latency = (struct svi_latency){0};
    if (p->write_ahead)
        written = svi_write_ahead_write(p->write_ahead, due ? SVI_RECORD_PUBLISH : SVI_RECORD_STATS, time,
                                        NULL, 0, NULL);
    if (due && written == SVS_OK)
        svi_stream_publish_due(p->stream, time);
    else
        svi_stream_publish_stats(p->stream, NULL, time);
}

/* Without an output socket nobody receives sums. */
static void publish_sums(struct server *p) {
    if (p->out)
        svi_sums_publisher_publish(&p->sums, p->out, server_now(p));
}

/* ---- control requests ---- */

/* Replies in the format of the request: JSON to JSON, else msgpack. */
static void server_reply(struct server *p, struct svi_request *r, svs_code code) {
    const void *reply = p->reply.data;
    size_t size = p->reply.size;
    if (code == SVS_OK && svi_json_begins(zmq_msg_data(&r->body), r->frames.last))
        code = svi_json_reply(&p->text, &reply, &size);
    p->intake.replies_lost += code != SVS_OK || !svi_request_reply(p->ctl, r, reply, size);
}

/* Answers one control request. False: none is waiting.
 *
 * Rights are checked for each request, because they may have been revoked after the handshake. An accepted
 * `stop` gets no answer here: its frames are kept in `stopper`, and answer_stop replies when the addresses
 * are free. Requests after it are declined. */
static bool server_answer(struct server *p) {
    static const svs_error forbidden = {SVS_NOT_ALLOWED,
                                        "this key, or its role, was removed from the allow file"},
                           ending = {SVS_UNAVAILABLE, "the process is stopping"};
    struct svi_request r;
    if (!p->ctl || !svi_request_receive(p->ctl, &r))
        return false;
    const void *body = zmq_msg_data(&r.body);
    const size_t length = zmq_msg_size(&r.body);
    /* A message beyond the limits is dropped without a reply; its peer is disconnected. */
    if (svi_access_takes(&p->access, SVI_ROLE_CONTROL, &r.body, &r.frames)) {
        const struct svi_sender from = {.user = svi_message_user(&r.body),
                                        .connection = svi_message_connection(&r.body)};
        const bool admitted = svi_access_admits(&p->access, SVI_ROLE_CONTROL, &from), late = p->stopped;
        svs_code code =
            admitted && !late
                ? svi_control_handle(&p->control, body, length, server_now(p), &p->reply)
                : svi_router_decline(&p->control, NULL, admitted ? &ending : &forbidden, &p->reply);
        if (p->control.published) /* before the reply, as model and stats are */
            publish_sums(p);
        p->control.published = false;
        /* `r` is not closed: `stopper` owns its frames now. */
        if (p->control.stop && !late) {
            p->stopper = r;
            p->stopped = true;
            return true;
        }
        server_reply(p, &r, code);
    }
    svi_request_close(&r);
    return true;
}

/* ---- the loop ---- */

enum {
    ITEM_END,
    ITEM_RELOAD,
    ITEM_IN,
    ITEM_CTL,
    ITEM_OUT,
    ITEM_ACCESS,
    ITEM_MERGE,
    ITEM_WORKER,
    ITEM_WRITE_AHEAD,
    ITEM_COUNT
};

static void poll_items(const struct server *p, zmq_pollitem_t *items) {
    memset(items, 0, ITEM_COUNT * sizeof *items);
    for (int i = 0; i < ITEM_COUNT; i++) {
        items[i].events = ZMQ_POLLIN;
        /* placeholder for entries without a descriptor or socket of their own */
        items[i].fd = p->signals.end;
    }
    items[ITEM_RELOAD].fd = p->signals.reload;
    /* Control, subscriptions and signals are served even while a batch is held. */
    if (!p->intake.held) /* else nothing more is taken until the held batch is written */
        p->intake.ops->poll(&p->intake, &items[ITEM_IN]);
    items[ITEM_CTL].socket = p->ctl;
    items[ITEM_OUT].socket = p->out ? svi_publisher_socket(p->out) : NULL;
    if (svi_access_fd(&p->access) >= 0)
        items[ITEM_ACCESS].fd = svi_access_fd(&p->access);
    items[ITEM_MERGE].socket = p->merge.socket;
    if (p->worker)
        items[ITEM_WORKER].fd = svi_worker_fd(p->worker);
    if (p->write_ahead)
        items[ITEM_WRITE_AHEAD].fd = svi_write_ahead_fd(p->write_ahead);
}

/* Seconds until stats are due. */
static double stats_wait(const struct server *p) {
    return p->stats_at + p->settings.publish_seconds - svi_monotonic();
}

/* Applies what becomes due by the mere passing of time. Its record is written first; if that fails on a full
 * disk, it is tried again after TIMERS_RETRY seconds. */
static svs_code server_apply_timers(struct server *p, svs_error *err) {
    const double now = server_now(p);
    svs_code code = SVS_OK;
    if (now < svi_stream_deadline(p->stream) || svi_monotonic() < p->pass_at)
        return SVS_OK;
    if (p->write_ahead)
        code = svi_write_ahead_write(p->write_ahead, SVI_RECORD_TIME, now, NULL, 0, err);
    if (code == SVS_OK)
        svi_stream_pass(p->stream, now);
    p->pass_at = code == SVS_OK ? 0 : svi_monotonic() + TIMERS_RETRY;
    return code == SVS_DISK_FULL || code == SVS_NO_MEMORY ? SVS_OK : code;
}

static double timers_wait(const struct server *p) {
    return fmax(svi_stream_deadline(p->stream) - server_now(p), p->pass_at - svi_monotonic());
}

static long server_wait_ms(const struct server *p) {
    double left = fmin(svi_intake_wait(&p->intake), fmin(svi_run_log_wait(&p->log), timers_wait(p)));
    left = fmin(left, svi_merge_link_due(&p->merge) - svi_monotonic());
    if (p->out && p->settings.publish_seconds > 0)
        left = fmin(left, stats_wait(p));
    if (p->out)
        left = fmin(left, svi_sums_publisher_wait(&p->sums));
    if (p->write_ahead)
        left = fmin(left, svi_write_ahead_wait(p->write_ahead));
    /* Rounded up by 1 ms: rounding down would wake the loop just before a deadline and spin until it. The
     * bound of 60 s covers a wall clock that is set while the loop sleeps. */
    if (isinf(left))
        return -1;
    return left <= 0 ? 0 : left > 60 ? 60000 : (long)(1000 * left) + 1;
}

/* Informs the threads of keys which topics have subscribers: they encode only those events. */
static void encode_wanted(const struct server *p) {
    unsigned wanted = 0;
    for (int t = 0; p->out && t < SVI_TOPIC_COUNT; t++)
        wanted |= (unsigned)svi_publisher_wanted(p->out, (enum svi_topic)t) << t;
    svi_stream_encode(p->stream, wanted);
}

/* Everything that must not wait behind samples: control, subscriptions, periodic stats. At most TURN_REQUESTS
 * requests a turn, so that a client in a loop cannot delay the input for ever. */
static void server_serve(struct server *p, const zmq_pollitem_t *items) {
    if (items[ITEM_CTL].revents || items[ITEM_ACCESS].revents) /* first: `status` shows these counts */
        report_access(p, server_now(p));
    if (items[ITEM_CTL].revents) {
        server_update_figures(p, false);
        for (int i = 0; i < TURN_REQUESTS && server_answer(p); i++)
            ;
    }
    if (items[ITEM_OUT].revents && p->out)
        svi_publisher_subscriptions(p->out);
    if (p->settings.publish_seconds > 0 && stats_wait(p) <= 0)
        publish_stats(p, true);
    if (svi_sums_publisher_wait(&p->sums) <= 0)
        publish_sums(p);
}

/* Puts a finished refit into effect once its result is in the journal. A replay then uses the recorded result
 * at the same sample instead of solving again. On a full disk `finished` stays set, and the next turn tries
 * again. */
static svs_code apply_refit(struct server *p, svs_error *err) {
    svs_code code = SVS_OK;
    /* A solution whose window has been reset or replaced meanwhile is dropped. */
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

/* One step of the exchange with the refit worker: collect a finished job, put it into effect between two
 * samples, submit the next one that is due. At most one job is with the worker or waiting in `finished`. */
static svs_code exchange_refits(struct server *p, svs_error *err) {
    svs_code code = SVS_OK;
    if (!p->worker && !svi_settings_refits(&p->settings))
        return code;
    if (!p->worker && !(p->worker = svi_worker_new(&svi_refit_task, err))) /* `config` has turned refits on */
        return err->code;
    if (svi_worker_busy(p->worker))
        p->finished = svi_worker_collect(p->worker);
    if (p->finished)
        code = apply_refit(p, err);
    struct svi_refit *job =
        svi_worker_busy(p->worker) || p->finished ? NULL : svi_engine_refit_take(svi_stream_root(p->stream));
    if (job)
        svi_worker_submit(p->worker, job);
    return code;
}

/* Takes what the merger has sent. An address that `config` has set and that cannot be connected to is
 * reported; the link is without a merger then. */
static svs_code take_merged(struct server *p, svs_error *err) {
    svs_error why;
    if (svi_merge_link_follow(&p->merge, &p->access, &p->settings, &why) != SVS_OK)
        svi_write_ahead_refuse(p->write_ahead, p->stream, why.code, why.text, NULL, 0, server_now(p));
    return svi_merge_link_turn(&p->merge, p->stream, p->write_ahead, server_now(p), err);
}

/* Ends the process when memory and journal may have diverged: the journal has a record whose effect is
 * missing here. Stopping is safe, since a restart applies it. Otherwise gives the write-ahead its turn (sync,
 * checkpoint), with the CPU time spent since the last one. */
static svs_code server_keep_state(struct server *p, svs_error *err) {
    if (p->control.failed)
        return svi_fail(err, p->control.failure.code, "%s", p->control.failure.text);
    if (!p->write_ahead)
        return SVS_OK;
    if (svi_stream_lost_key(p->stream, err) != SVS_OK)
        return err->code;
    if (svi_stream_out_of_memory(p->stream))
        return svi_fail(err, SVS_NO_MEMORY,
                        "out of memory for records that are already in the journal: restart the process, "
                        "which then applies them");
    const double before = p->worked;
    p->worked = svi_clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    return svi_write_ahead_turn(p->write_ahead, p->worked - before, err);
}

static svs_code server_take(struct server *p, bool ready, bool *took, svs_error *err) {
    const svs_code code = svi_intake_turn(&p->intake, ready, server_now(p), took, err);
    p->stop = p->stop || p->intake.ended;
    return code;
}

/* One turn of the loop. The order matters: the clock is corrected before any arrival time is read; control
 * comes before samples; timers come after the samples that arrived before them; the write-ahead comes last,
 * because it may checkpoint everything that this turn has applied. */
static svs_code server_turn(struct server *p, svs_error *err) {
    zmq_pollitem_t items[ITEM_COUNT];
    svs_code code = SVS_OK;
    bool took;
    poll_items(p, items);
    /* A handler (signals.c) interrupts the poll; the next turn sees the signal's descriptor. */
    if (zmq_poll(items, ITEM_COUNT, server_wait_ms(p)) < 0)
        return zmq_errno() == EINTR ? SVS_OK
                                    : svi_fail(err, SVS_IO, "waiting failed: %s", zmq_strerror(zmq_errno()));
    SVI_TRY(follow_clock(p, err));
    server_serve(p, items); /* before samples */
    encode_wanted(p);
    if (items[ITEM_RELOAD].revents && svi_signals_pending(p->signals.reload))
        svi_reload(&p->reload, &p->control, &p->access, server_now(p));
    /* After a signal nothing more is taken here; server_drain takes what was sent before. */
    if (items[ITEM_END].revents)
        p->stop = true;
    else
        code = server_take(p, items[ITEM_IN].revents, &took, err);
    if (code == SVS_OK)
        svi_gauges_turn(&p->gauges, p->stream, svi_monotonic());
    if (code == SVS_OK)
        code = server_apply_timers(p, err);
    if (code == SVS_OK)
        code = exchange_refits(p, err);
    if (code == SVS_OK)
        code = take_merged(p, err);
    if (code == SVS_OK)
        code = server_keep_state(p, err);
    svi_run_log_turn(&p->log, false);
    p->stop = p->stop || p->control.stop;
    return code;
}

/* Takes the messages that producers had sent before the end and that are still in the kernel or in libzmq's
 * thread. Stops after DRAIN_MS without a message, or after DRAIN_SECONDS. */
static svs_code server_drain(struct server *p, svs_error *err) {
    zmq_pollitem_t item = {NULL, 0, ZMQ_POLLIN, 0};
    double end = svi_monotonic() + DRAIN_SECONDS;
    svs_code code = SVS_OK;
    bool took = p->intake.ops->take != NULL; /* standard input has no messages in flight */
    p->intake.ops->poll(&p->intake, &item);
    while (code == SVS_OK && took && svi_monotonic() < end && zmq_poll(&item, 1, DRAIN_MS) > 0)
        code = server_take(p, true, &took, err);
    if (svi_intake_stranded(&p->intake) > 0)
        svi_run_log_line(&p->log, "state: LOST: %d received messages could not be written\n",
                         svi_intake_stranded(&p->intake));
    report_access(p, server_now(p));
    if (p->out)
        svi_publisher_subscriptions(p->out);
    return code;
}

/* Publishes the last model and stats, then writes a final checkpoint. The journal alone is complete, so a
 * checkpoint that does not fit on the disk is reported and skipped. */
static svs_code server_finish(struct server *p, svs_error *err) {
    svs_code code = SVS_OK;
    if (p->write_ahead)
        code = svi_write_ahead_write(p->write_ahead, SVI_RECORD_STOP, server_now(p), NULL, 0, err);
    if (code == SVS_OK)
        svi_engine_publish_model(svi_stream_root(p->stream), true);
    publish_sums(p);
    publish_stats(p, false);
    if (code == SVS_OK && p->write_ahead)
        code = svi_write_ahead_save(p->write_ahead, NULL, NULL, err);
    if (code == SVS_DISK_FULL)
        svi_run_log_line(&p->log, "state: final checkpoint skipped; journal is complete: %s\n", err->text);
    return code == SVS_DISK_FULL ? SVS_OK : code;
}

static svs_code server_loop(struct server *p, svs_error *err) {
    p->stats_at = svi_monotonic();
    /* CPU time of the recovery is already known to the write-ahead */
    p->worked = svi_clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    bool took;
    /* Rows that were read to detect the format are in the buffer already: the descriptor need not become
     * readable again. */
    svs_code code = p->intake.ops->turn ? server_take(p, false, &took, err) : SVS_OK;
    while (!p->stop && code == SVS_OK)
        code = server_turn(p, err);
    if (code == SVS_OK)
        code = server_drain(p, err);
    svs_error trouble;
    /* After these errors memory may differ from the journal; a final checkpoint would make the difference
     * permanent. */
    const bool doubtful = p->write_ahead && (code == SVS_IO || code == SVS_NO_MEMORY);
    svs_code last = doubtful ? SVS_OK : server_finish(p, &trouble);
    if (code == SVS_OK && last != SVS_OK)
        code = svi_fail(err, last, "%s", trouble.text);
    return code;
}

/* ---- start and end ---- */

static svs_code open_control(struct server *p, svs_error *err) {
    struct svi_settings *s = &p->settings;
    const struct svi_socket_plan plan = {"ctl", ZMQ_ROUTER, true, QUEUE_CTL, LINGER_MS, s->max_message, 0};
    if (!(p->ctl = svi_access_socket(&p->access, &plan, err)) ||
        svi_socket_attach(p->ctl, &plan, s->ctl, s->ctl, err) != SVS_OK)
        return err->code;
    svi_run_log_line(&p->log, "ctl %s\n", s->ctl);
    return SVS_OK;
}

/* Retains the description of the bank for subscribers that arrive before this process publishes its first
 * model. If memory runs out, they wait for that model. */
static void retain_bank(struct server *p) {
    struct svi_bank_description description;
    struct svi_event event;
    struct svi_bytes bytes = {0};
    if (svi_stream_bank_event(p->stream, "", &description, &event, NULL) == SVS_OK &&
        svi_event_encode(&event, &bytes) == SVS_OK)
        (void)svi_publisher_retain(p->out, SVI_TOPIC_BANK, bytes.data, bytes.size);
    svi_bytes_clear(&bytes);
}

/* Callback of the publisher: the current model or bank of one key, for a client that subscribes to that key.
 */
static svs_code server_present(void *user, enum svi_topic topic, const char *key, struct svi_bytes *out) {
    struct server *p = user;
    union {
        svs_model model;
        struct svi_bank_description bank;
    } description;
    struct svi_event event;
    svs_error err;
    svs_code code = SVS_UNAVAILABLE;
    if (topic == SVI_TOPIC_MODEL)
        code = svi_stream_model_event(p->stream, key, &description.model, &event, &err);
    else if (topic == SVI_TOPIC_BANK)
        code = svi_stream_bank_event(p->stream, key, &description.bank, &event, &err);
    return code == SVS_OK ? svi_event_encode(&event, out) : code;
}

static svs_code open_output(struct server *p, svs_error *err) {
    struct svi_settings *s = &p->settings;
    const struct svi_bytes *last = svi_engine_last_model(svi_stream_root(p->stream));
    if (!(p->out = svi_publisher_new(&p->access, s->out, s->stream, s->out, err)))
        return err->code;
    if (svi_settings_keyed(s))
        svi_publisher_show_keys(p->out, server_present, p);
    /* New subscribers get the model that the previous process published last. Without memory they wait for
     * the next one. */
    if (last->size > 0) {
        (void)svi_publisher_retain(p->out, SVI_TOPIC_MODEL, last->data, last->size);
        retain_bank(p);
    }
    publish_sums(p);
    svi_run_log_line(&p->log, "out %s\n", s->out);
    return SVS_OK;
}

/* The limit of file descriptors may allow fewer connections than max.connections. */
static void server_log_connections(const struct server *p) {
    int descriptors;
    const int limit = p->access.peers ? svi_peer_watch_limit(p->access.peers, &descriptors) : INT_MAX;
    if (limit < p->settings.max_connections)
        svi_run_log_line(&p->log,
                         "connections: at most %d, because `ulimit -n` is %d and each takes two descriptors "
                         "(max.connections %lld)\n",
                         limit, descriptors, (long long)p->settings.max_connections);
}

static svs_code open_sockets(struct server *p, svs_error *err) {
    struct svi_settings *s = &p->settings;
    const struct svi_intake_mode mode = svi_settings_intake(s);
    const bool rows = mode.mode == SVI_IN_STDIN, out = svi_settings_binds(s, "out", s->out),
               ctl = svi_settings_binds(s, "ctl", s->ctl);
    /* Reading standard input without sockets starts no thread of libzmq. */
    if ((!rows || out || ctl || svi_settings_merges(s)) && !(p->context = zmq_ctx_new()))
        return svi_fail(err, SVS_IO, "cannot start ZeroMQ: %s", zmq_strerror(zmq_errno()));
    if (p->context)
        SVI_TRY(svi_access_open(&p->access, s, p->context, err));
    server_log_connections(p);
    if (out)
        SVI_TRY(open_output(p, err));
    else if (s->publish_sums > 0)
        svi_run_log_line(&p->log, "sums: not published, because the process has no output socket: set out\n");
    if (ctl)
        SVI_TRY(open_control(p, err));
    SVI_TRY(svi_merge_link_follow(&p->merge, &p->access, s, err));
    p->intake.scores = out ? NULL : p->hooks->scores;
    /* last: a producer that finds this address may send at once */
    SVI_TRY(p->intake.ops->open(&p->intake, err));
    if (!rows)
        svi_run_log_line(&p->log, "in %s (%s)\n", s->in, svi_settings_word("in.mode", (int)mode.mode));
    return SVS_OK;
}

/* Builds everything in the order of dependence: stream (restored from the state directory if there is one),
 * clock, control, intake, worker, sockets. Sockets come last, because peers may connect as soon as they are
 * bound. server_dismantle undoes any part of it. */
static svs_code server_build(struct server *p, svs_error *err) {
    if (p->settings.state_dir[0])
        p->write_ahead = svi_write_ahead_open(&p->settings, server_sink, p, p->hooks->log, &p->stream, err);
    else
        p->stream = svi_stream_new(&p->settings, (uint64_t)(1e6 * svi_wall_clock()), server_sink, p, err);
    if (!p->stream)
        return err->code;
    if (svi_settings_two_threads(&p->settings))
        svi_stream_use_threads(p->stream);
    svi_gauges_begin(&p->gauges, p->stream, svi_monotonic());
    svi_sums_publisher_begin(&p->sums, p->stream, &p->settings, &p->log, svi_wall_clock());
    svi_arrival_clock_start(&p->clock);
    SVI_TRY(begin_clock(p, err));
    svi_server_predict_memory(&p->settings, p->stream, 0);
    /* `run` differs from that of every earlier start, as it is the wall clock in microseconds. */
    p->control = (struct svi_control){.stream = p->stream,
                                      .settings = &p->settings,
                                      .started = server_now(p),
                                      .run = (uint64_t)(1e6 * svi_wall_clock()),
                                      .write_ahead = p->write_ahead,
                                      .text_rows = svi_settings_intake(&p->settings).mode == SVI_IN_STDIN &&
                                                   strcmp(p->settings.in_format, "msgpack") != 0,
                                      .json.columns = svi_settings_reader(&p->settings)};
    p->intake = (struct svi_intake){.settings = &p->settings,
                                    .control = &p->control,
                                    .access = &p->access,
                                    .latency = &p->latency,
                                    .buckets = &p->gauges.latency,
                                    .log = p->hooks->log,
                                    .refused = p->hooks->refused,
                                    .every = p->hooks->every,
                                    .stop = p->signals.end};
    SVI_TRY(svi_intake_new(&p->intake, err));
    if (!svi_settings_keyed(&p->settings)) /* with keys the heap grows in large pages anyway */
        svi_alloc_ahead(p->settings.method == SVI_METHOD_AUTO ? AHEAD_BANK : AHEAD_LEARNER);
    if (svi_settings_refits(&p->settings) && !(p->worker = svi_worker_new(&svi_refit_task, err)))
        return err->code;
    p->log.stream = p->stream;
    svi_run_log_stream(&p->log);
    return open_sockets(p, err);
}

/* Answers the kept request `stop` once everything that a successor needs is free. Only `ctl` itself is still
 * bound, since the answer leaves through it: it is free when the client sees the connection end. `in`, `out`:
 * the address was bound. */
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
                                  server_now(p), &p->reply);
    else
        code = svi_router_decline(&p->control, NULL, err, &p->reply);
    server_reply(p, &p->stopper, code);
    svi_request_close(&p->stopper);
}

/* The order is fixed. The worker may still hold a job of the stream. The state must be unlocked and the
 * addresses released before answer_stop reports so. Access closes after the last socket that it monitors. The
 * stream is freed late, because the others refer to it. */
static void server_dismantle(struct server *p, svs_code code, const svs_error *err) {
    const bool in = p->intake.own && svi_settings_intake(&p->settings).binds, out = p->out;
    svi_worker_free(&p->worker); /* before the stream, to which the job it may hold belongs */
    svi_write_ahead_free(&p->write_ahead);
    p->control.write_ahead = NULL;
    svi_access_leave(&p->access);
    svi_intake_close(&p->intake);
    svi_publisher_free(&p->out);
    svi_merge_link_close(&p->merge);
    answer_stop(p, in, out, code, err);
    svi_socket_close(&p->ctl);
    svi_intake_free(&p->intake);
    svi_access_close(&p->access);
    if (p->context)
        while (zmq_ctx_term(p->context) != 0 && zmq_errno() == EINTR)
            ; /* waits for pending output, at most as long as the sockets linger */
    svi_stream_free(&p->stream);
    svi_control_clear(&p->control);
    svi_gauges_clear(&p->gauges);
    svi_sums_publisher_clear(&p->sums);
    svi_bytes_clear(&p->record);
    svi_bytes_clear(&p->reply);
    svi_bytes_clear(&p->text);
}

svs_code svi_server_run(const struct svi_settings *s, const struct svi_server_hooks *hooks, svs_error *err) {
    struct server *p = svi_alloc(sizeof *p);
    svs_error local;
    if (!p)
        return svi_fail_memory(err, "the server");
    err = err ? err : &local;
    /* A copy: `config`, SIGHUP and the bound addresses change it during the run. */
    p->settings = *s;
    p->hooks = hooks;
    p->log.to = hooks->log;
    p->log.settings = &p->settings;
    p->reload = (struct svi_reload){.read = hooks->read_again,
                                    .from = hooks->args,
                                    .given = *s,
                                    .log = hooks->log,
                                    .errors = hooks->errors};
    svs_code code = svi_signals_take(&p->signals)
                        ? server_build(p, err)
                        : svi_fail(err, SVS_IO, "cannot wait for signals: %s", strerror(errno));
    if (code == SVS_OK) {
        p->log.counts = !p->intake.ops->turn; /* refused rows are reported individually */
        p->log.seen = svi_stream_seen(p->stream);
        p->log.errors = svi_stream_refused(p->stream);
        code = server_loop(p, err);
        svi_run_log_turn(&p->log, true);
        svi_run_log_summary(&p->log, server_now(p));
        code = code == SVS_OK ? svi_run_log_check(&p->log, p->intake.rows, err) : code;
    }
    server_dismantle(p, code, err);
    svi_signals_give_back(&p->signals);
    svi_free(p);
    return code;
}
