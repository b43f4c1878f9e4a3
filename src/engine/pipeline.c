#include "engine/pipeline.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "engine/control.h"
#include "engine/door.h"
#include "engine/inlet.h"
#include "engine/intake.h"
#include "engine/keeper.h"
#include "engine/lines.h"
#include "engine/publisher.h"
#include "engine/signals.h"
#include "engine/summary.h"
#include "engine/worker.h"

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

struct pipeline {
    struct svi_settings settings; /* `in`, `out`, `ctl` become the real addresses */
    const struct svi_pipeline_hooks *hooks;
    svi_engine *engine;
    svi_keeper *keeper; /* of the engine's state; NULL = it is not kept */
    struct svi_control control;
    struct svi_inlet inlet;
    void *context, *in, *ctl;
    struct svi_door door; /* of the three */
    svi_publisher *out;
    svi_worker *worker;         /* for refits; NULL = none */
    struct svi_refit *finished; /* a refit that has come back and has not taken effect */
    struct svi_bytes record;
    svi_intake *intake; /* `in` is "-" */
    struct svi_lines lines;
    struct svi_latency latency;
    int signals;   /* signalfd */
    double worked; /* seconds of the processor that this thread had had when the keeper's turn came last */
    double stats_due;
    bool stop;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of this thread. Waiting is no work, neither for the disk nor for the processor: a restart does not wait. */
static double processor_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- events ---- */

static void tell_refusal(struct pipeline *p, const struct svi_event *e) {
    if (p->hooks->refused)
        fprintf(p->hooks->refused, "svmstream: %s%s\n", svi_intake_place(p->intake), e->as.error.reason);
}

static void sink(void *user, const struct svi_event *e) {
    struct pipeline *p = user;
    if (p->out)
        svi_publisher_publish(p->out, e); /* out of memory: lost, and seen by `seq` */
    if (p->intake && e->topic == SVI_TOPIC_SCORE)
        svi_lines_score(&p->lines, e, svi_intake_row(p->intake));
    if (p->intake && e->topic == SVI_TOPIC_ALERT && p->hooks->log)
        fprintf(p->hooks->log, "alert: %s\n", e->as.alert.text);
    if (p->intake && e->topic == SVI_TOPIC_ERROR)
        tell_refusal(p, e);
}

static void note_gauges(struct pipeline *p) {
    const struct svi_latency *l = &p->latency;
    svi_engine_note(p->engine, "latency_p50", svi_latency_quantile(l, 0.5));
    svi_engine_note(p->engine, "latency_p99", svi_latency_quantile(l, 0.99));
    svi_engine_note(p->engine, "turn_mean", l->turns ? (double)l->messages / (double)l->turns : NAN);
    svi_engine_note(p->engine, "turn_max", (double)l->largest);
    svi_inlet_figures(&p->inlet);
    svi_latency_reset(&p->latency);
}

static void tell_door(struct pipeline *p, double time) {
    svi_door_tell(&p->door, p->engine, p->keeper, p->settings.max_message, time);
}

static void publish_stats(struct pipeline *p, double time) {
    p->stats_due = time + p->settings.publish_seconds;
    tell_door(p, time);
    if (!p->out)
        return;
    note_gauges(p);
    if (p->keeper) /* a full disk does not keep stats back */
        (void)svi_keeper_write(p->keeper, SVI_RECORD_STATS, time, NULL, 0, NULL);
    svi_engine_publish_stats(p->engine, time);
}

/* ---- input ---- */

/* Answers one control request. False: none is waiting. */
static bool answer(struct pipeline *p) {
    static const svs_error forbidden = {SVS_NOT_ALLOWED,
                                        "this key was taken from the allow file, or its role was"};
    struct svi_request r;
    if (!p->ctl || !svi_request_receive(p->ctl, &r))
        return false;
    const void *body = zmq_msg_data(&r.body);
    const size_t length = zmq_msg_size(&r.body);
    svs_code code = svi_door_admits(&p->door, SVI_ROLE_CONTROL, &r.body)
                        ? svi_control_handle(&p->control, body, length, now(), &p->inlet.reply)
                        : svi_router_decline(&p->control, NULL, 0, &forbidden, &p->inlet.reply);
    svi_inlet_reply(&p->inlet, p->ctl, &r, code);
    svi_request_close(&r);
    return true;
}

static svs_code take_messages(struct pipeline *p, bool *took, svs_error *err) {
    return svi_inlet_turn(&p->inlet, now(), took, err);
}

static svs_code take_rows(struct pipeline *p, bool fill, svs_error *err) {
    double start = now();
    int64_t before = svi_intake_row(p->intake);
    bool ended = false;
    svs_code code = svi_intake_turn(p->intake, fill, start, &ended, err);
    svi_latency_add(&p->latency, now() - start, svi_intake_row(p->intake) - before);
    p->stop = p->stop || ended;
    svs_error trouble;
    svs_code written = svi_lines_flush(&p->lines, p->signals, &trouble);
    p->stop = p->stop || p->lines.closed;
    if (code == SVS_OK && written != SVS_OK)
        return svi_fail(err, written, "%s", trouble.text);
    return code;
}

/* ---- the loop ---- */

enum { ITEM_SIGNALS, ITEM_IN, ITEM_CTL, ITEM_OUT, ITEM_DOOR, ITEM_WORKER, ITEM_KEEPER, ITEM_COUNT };

static int poll_items(const struct pipeline *p, zmq_pollitem_t *items) {
    memset(items, 0, ITEM_COUNT * sizeof *items);
    for (int i = 0; i < ITEM_COUNT; i++) {
        items[i].events = ZMQ_POLLIN;
        items[i].fd = p->signals; /* stands in where there is nothing to wait for */
    }
    if (isinf(svi_inlet_wait(&p->inlet, 0))) /* else what was taken waits for room */
        items[ITEM_IN].socket = p->in;
    if (p->intake)
        items[ITEM_IN].fd = svi_intake_fd(p->intake);
    items[ITEM_CTL].socket = p->ctl;
    items[ITEM_OUT].socket = p->out ? svi_publisher_socket(p->out) : NULL;
    if (svi_door_fd(&p->door) >= 0)
        items[ITEM_DOOR].fd = svi_door_fd(&p->door);
    if (p->worker)
        items[ITEM_WORKER].fd = svi_worker_fd(p->worker);
    if (p->keeper)
        items[ITEM_KEEPER].fd = svi_keeper_fd(p->keeper);
    return ITEM_COUNT;
}

static long wait_ms(const struct pipeline *p) {
    const double time = now();
    double left = svi_inlet_wait(&p->inlet, time);
    if (p->out && p->settings.publish_seconds > 0)
        left = fmin(left, p->stats_due - time);
    if (p->keeper)
        left = fmin(left, svi_keeper_wait(p->keeper));
    if (isinf(left))
        return -1;
    return left <= 0 ? 0 : left > 60 ? 60000 : (long)(1000 * left) + 1;
}

static void serve(struct pipeline *p, const zmq_pollitem_t *items) {
    if (items[ITEM_CTL].revents || items[ITEM_DOOR].revents) /* `status` tells what the door counts */
        tell_door(p, now());
    if (items[ITEM_CTL].revents)
        svi_inlet_figures(&p->inlet);
    if (items[ITEM_CTL].revents)
        for (int i = 0; i < TURN_REQUESTS && answer(p); i++)
            ;
    if (items[ITEM_OUT].revents && p->out)
        svi_publisher_subscriptions(p->out);
    double time = now();
    if (p->settings.publish_seconds > 0 && time >= p->stats_due)
        publish_stats(p, time);
}

/* It takes effect when it is written down; with a full disk it waits. */
static svs_code give_refit(struct pipeline *p, svs_error *err) {
    svs_code code = SVS_OK;
    p->record.size = 0;
    if (p->keeper && (code = svi_refit_pack(p->finished, &p->record)) == SVS_OK)
        code = svi_keeper_write(p->keeper, SVI_RECORD_REFIT, now(), p->record.data, p->record.size, err);
    if (code == SVS_DISK_FULL || code == SVS_NO_MEMORY)
        return SVS_OK;
    if (code == SVS_OK) {
        svi_engine_refit_give(p->engine);
        p->finished = NULL;
    }
    return code;
}

/* A finished refit takes effect between two samples; one that is due goes to the worker. */
static svs_code exchange_refits(struct pipeline *p, svs_error *err) {
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

static svs_code keep(struct pipeline *p, svs_error *err) {
    if (p->control.failed)
        return svi_fail(err, p->control.failure.code, "%s", p->control.failure.text);
    if (p->keeper && svi_engine_starved(p->engine))
        return svi_fail(err, SVS_NO_MEMORY,
                        "memory ran out for what was written down already: a restart takes it");
    if (!p->keeper)
        return SVS_OK;
    const double before = p->worked;
    p->worked = processor_time();
    return svi_keeper_turn(p->keeper, p->worked - before, err);
}

static svs_code turn(struct pipeline *p, svs_error *err) {
    zmq_pollitem_t items[ITEM_COUNT];
    svs_code code = SVS_OK;
    bool took;
    if (zmq_poll(items, poll_items(p, items), wait_ms(p)) < 0)
        return zmq_errno() == EINTR ? SVS_OK
                                    : svi_fail(err, SVS_IO, "waiting failed: %s", zmq_strerror(zmq_errno()));
    serve(p, items); /* first: control goes before samples */
    if (items[ITEM_SIGNALS].revents)
        p->stop = true;
    else if (items[ITEM_IN].revents && p->intake)
        code = take_rows(p, true, err);
    else if (!p->intake && p->in)
        code = take_messages(p, &took, err);
    if (code == SVS_OK)
        code = exchange_refits(p, err);
    if (code == SVS_OK)
        code = keep(p, err);
    p->stop = p->stop || p->control.stop;
    return code;
}

/* What producers had handed over before the end is still on its way through the kernel and libzmq's thread.
 */
static svs_code drain(struct pipeline *p, svs_error *err) {
    zmq_pollitem_t item = {p->in, 0, ZMQ_POLLIN, 0};
    double end = now() + DRAIN_SECONDS;
    svs_code code = SVS_OK;
    bool took = true;
    while (p->in && code == SVS_OK && took && now() < end && zmq_poll(&item, 1, DRAIN_MS) > 0)
        code = take_messages(p, &took, err);
    if (p->inlet.held && p->hooks->log)
        fprintf(p->hooks->log, "state: %d messages had come and could not be written down; they are lost\n",
                p->inlet.first->count);
    tell_door(p, now());
    if (p->out)
        svi_publisher_subscriptions(p->out);
    return code;
}

/* The last words: a model, stats, and the state as it is now. */
static svs_code finish(struct pipeline *p, svs_error *err) {
    svs_code code = SVS_OK;
    if (p->keeper)
        code = svi_keeper_write(p->keeper, SVI_RECORD_STOP, now(), NULL, 0, err);
    if (code == SVS_OK)
        svi_engine_publish_model(p->engine, true);
    publish_stats(p, now());
    if (code == SVS_OK && p->keeper)
        code = svi_keeper_save(p->keeper, NULL, NULL, err);
    if (code == SVS_DISK_FULL && p->hooks->log)
        fprintf(p->hooks->log, "state: no last checkpoint, the journal has it all: %s\n", err->text);
    return code == SVS_DISK_FULL ? SVS_OK : code;
}

static svs_code loop(struct pipeline *p, svs_error *err) {
    p->stats_due = now() + p->settings.publish_seconds;
    p->worked = processor_time(); /* the keeper knows what a restart repeated */
    svs_code code = p->intake ? take_rows(p, false, err) : SVS_OK; /* what the format was told by */
    while (!p->stop && code == SVS_OK)
        code = turn(p, err);
    if (code == SVS_OK)
        code = drain(p, err);
    svs_error trouble;
    /* What is in memory may not be what is written down. */
    const bool doubtful = p->keeper && (code == SVS_IO || code == SVS_NO_MEMORY);
    svs_code last = doubtful ? SVS_OK : finish(p, &trouble);
    if (code == SVS_OK && last != SVS_OK)
        code = svi_fail(err, last, "%s", trouble.text);
    return code;
}

/* ---- start and end ---- */

static void say(const struct pipeline *p, const char *what, const char *address, const char *kind) {
    if (p->hooks->log) {
        fprintf(p->hooks->log, "%s %s%s%s%s\n", what, address, kind ? " (" : "", kind ? kind : "",
                kind ? ")" : "");
        fflush(p->hooks->log);
    }
}

static svs_code open_sub(struct pipeline *p, svs_error *err) {
    const char *topic = p->settings.in_topic;
    if (zmq_setsockopt(p->in, ZMQ_SUBSCRIBE, topic, strlen(topic)) == 0)
        return SVS_OK;
    return svi_fail(err, SVS_IO, "cannot subscribe to in.topic: %s", zmq_strerror(zmq_errno()));
}

/* libzmq counts messages alone. */
static int input_queue(const struct svi_settings *s) {
    const int64_t n = QUEUE_BYTES / s->max_message;
    return n > QUEUE_IN ? QUEUE_IN : n < QUEUE_LEAST ? QUEUE_LEAST : (int)n;
}

static svs_code open_input(struct pipeline *p, svs_error *err) {
    static const struct {
        int type;
        bool bind;
        const char *name;
    } modes[] = {{ZMQ_PULL, true, "pull"}, {ZMQ_ROUTER, true, "router"}, {ZMQ_SUB, false, "sub"}};
    struct svi_settings *s = &p->settings;
    struct svi_socket_plan plan = {"in",      modes[s->in_mode].type, modes[s->in_mode].bind, input_queue(s),
                                   LINGER_MS, s->max_message};
    const int replies = QUEUE_REPLIES;
    if (!(p->in = svi_door_socket(&p->door, &plan, err)))
        return err->code;
    if (s->in_mode == SVI_IN_ROUTER && zmq_setsockopt(p->in, ZMQ_SNDHWM, &replies, sizeof replies) != 0)
        return svi_fail(err, SVS_IO, "no room for replies: %s", zmq_strerror(zmq_errno()));
    if (s->in_mode == SVI_IN_SUB && open_sub(p, err) != SVS_OK)
        return err->code;
    if (svi_socket_attach(p->in, &plan, s->in, s->in, err) != SVS_OK)
        return err->code;
    p->inlet.socket = p->in;
    say(p, "in", s->in, modes[s->in_mode].name);
    return SVS_OK;
}

static svs_code open_stdin(struct pipeline *p, bool out, svs_error *err) {
    if (p->hooks->scores && !out)
        p->lines.fd = fileno(p->hooks->scores);
    p->intake = svi_intake_new(&p->settings, p->engine, p->keeper, err);
    return p->intake ? SVS_OK : err->code;
}

static bool wants(const struct svi_settings *s, const char *key, const char *address) {
    bool standard_input = strcmp(s->in, "-") == 0;
    return address[0] && (!standard_input || svi_settings_given(s, svi_settings_row(key)));
}

static svs_code open_control(struct pipeline *p, svs_error *err) {
    struct svi_settings *s = &p->settings;
    int64_t most = s->max_message < REQUEST_MAX ? s->max_message : REQUEST_MAX;
    const struct svi_socket_plan plan = {"ctl", ZMQ_ROUTER, true, QUEUE_CTL, LINGER_MS, most};
    if (!(p->ctl = svi_door_socket(&p->door, &plan, err)))
        return err->code;
    return svi_socket_attach(p->ctl, &plan, s->ctl, s->ctl, err);
}

/* Who subscribes now gets the model that a former process published last, as it did. */
static void retain_model(struct pipeline *p) {
    const struct svi_bytes *last = svi_engine_last_model(p->engine);
    if (last->size > 0) /* without memory they wait for the next */
        (void)svi_publisher_retain(p->out, SVI_TOPIC_MODEL, last->data, last->size);
}

static svs_code open_sockets(struct pipeline *p, svs_error *err) {
    struct svi_settings *s = &p->settings;
    bool standard_input = strcmp(s->in, "-") == 0, out = wants(s, "out", s->out),
         ctl = wants(s, "ctl", s->ctl);
    if ((!standard_input || out || ctl) && !(p->context = zmq_ctx_new()))
        return svi_fail(err, SVS_IO, "ZeroMQ cannot start: %s", zmq_strerror(zmq_errno()));
    if (p->context && svi_door_open(&p->door, s, p->context, err) != SVS_OK)
        return err->code;
    if (out && !(p->out = svi_publisher_new(&p->door, s->out, s->stream, s->out, err)))
        return err->code;
    if (out)
        retain_model(p);
    if (out)
        say(p, "out", s->out, NULL);
    if (ctl && open_control(p, err) != SVS_OK)
        return err->code;
    if (ctl)
        say(p, "ctl", s->ctl, NULL);
    return standard_input ? open_stdin(p, out, err)
                          : open_input(p, err); /* last: who sees it may send at once */
}

static svs_code build(struct pipeline *p, svs_error *err) {
    double time = now();
    if (p->settings.state_dir[0])
        p->keeper = svi_keeper_open(&p->settings, sink, p, p->hooks->log, &p->engine, err);
    else
        p->engine = svi_engine_new(&p->settings, (uint64_t)(1e6 * time), sink, p, err);
    if (!p->engine)
        return err->code;
    p->control = (struct svi_control){
        .engine = p->engine, .settings = &p->settings, .started = time, .keeper = p->keeper};
    p->inlet = (struct svi_inlet){.settings = &p->settings,
                                  .control = &p->control,
                                  .door = &p->door,
                                  .latency = &p->latency,
                                  .log = p->hooks->log};
    if (svi_inlet_new(&p->inlet, err) != SVS_OK)
        return err->code;
    if (p->settings.refit != 0 && !(p->worker = svi_worker_new(&svi_refit_trade, err)))
        return err->code;
    return open_sockets(p, err);
}

static void dismantle(struct pipeline *p) {
    svi_worker_free(&p->worker); /* before the engine, whose job it may have */
    svi_keeper_free(&p->keeper);
    svi_inlet_free(&p->inlet);
    svi_door_leave(&p->door);
    svi_socket_close(&p->in);
    svi_socket_close(&p->ctl);
    svi_publisher_free(&p->out);
    svi_door_close(&p->door);
    svi_intake_free(&p->intake);
    if (p->context)
        while (zmq_ctx_term(p->context) != 0 && zmq_errno() == EINTR)
            ; /* waits for what is on its way out, as long as the sockets linger */
    svi_engine_free(&p->engine);
    svi_bytes_clear(&p->record);
    svi_bytes_clear(&p->lines.text);
}

static svs_code run(struct pipeline *p, svs_error *err) {
    svs_code code = build(p, err);
    if (code == SVS_OK) {
        code = loop(p, err);
        svi_summary_write(p->hooks->log, p->engine, &p->settings, p->intake != NULL, now());
    }
    dismantle(p);
    return code;
}

svs_code svi_pipeline_run(const struct svi_settings *s, const struct svi_pipeline_hooks *hooks,
                          svs_error *err) {
    struct pipeline *p = svi_alloc(sizeof *p);
    struct svi_signals before;
    svs_error local;
    if (!p)
        return svi_fail_memory(err, "the pipeline");
    err = err ? err : &local;
    p->settings = *s;
    p->hooks = hooks;
    p->lines.fd = -1;
    p->signals = svi_signals_take(&before);
    svs_code code = p->signals >= 0
                        ? run(p, err)
                        : svi_fail(err, SVS_IO, "signals cannot be waited for: %s", strerror(errno));
    svi_signals_give_back(&before, p->signals);
    svi_free(p);
    return code;
}
