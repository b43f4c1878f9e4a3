/* The run loop of a merge: one thread, one zmq_poll.
 *
 * A turn has a fixed order: control requests first, so that a busy input cannot delay them for ever; then records,
 * for at most TURN_SECONDS; then the model, when one is due; then figures. Records are absolute, so any of
 * them may be lost: queues are short, and nothing is acknowledged or kept on disk. A merge that starts again
 * gets the retained record of each publisher, and its model is the same to the last bit.
 *
 * The input is a SUB socket that is connected to every address, or standard input: payloads one after
 * another, which has no frames, so what is no record ends it. */
#include "server/merger.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "server/merger_control.h"
#include "server/signals.h"
#include "wire/cursor.h"
#include "wire/json.h"

#define TURN_REQUESTS 64
#define TURN_SECONDS  0.05
#define QUEUE_CTL     64
#define QUEUE_BYTES   (256 << 20) /* of records that wait, of one publisher */
#define QUEUE         64          /* records, of one publisher */
#define MIN_QUEUE     2
#define MIN_MESSAGE   (64 << 20) /* largest record, unless max.message is given */
#define READ_BYTES    (256 << 10)
#define LINGER_MS     2000
#define MARK_SECONDS  1.0 /* how often silence is looked for */
#define FREE_SECONDS  2.0
#define HINT_SECONDS  10.0 /* without any sums, until that is reported */
#define TOPIC         "sums."

struct merger {
    struct svi_settings settings; /* `out` and `ctl` are replaced by the addresses in use */
    const struct svi_merger_hooks *hooks;
    struct svi_merger_state state;
    struct svi_merger_control control;
    void *context, *sub, *ctl;
    struct svi_access access;
    struct svi_signals signals;
    struct svi_bytes reply, text; /* of a request, and its JSON form */
    struct svi_bytes read;        /* of standard input: what is not taken yet */
    int64_t read_before;          /* bytes that were taken */
    bool rows;                    /* records come from standard input */
    const char *server_keys;    /* the setting curve.server: one key, or one for each address, with commas */
    struct svi_request stopper; /* the request `stop`, answered last */
    bool stopped, stop, ended, hinted;
    double stats_at, mark_at; /* monotonic: when they were done last */
};

/* ---- records */

static int merger_queue(const struct svi_settings *s) {
    const int64_t queue = QUEUE_BYTES / s->max_message;
    return queue > QUEUE ? QUEUE : queue < MIN_QUEUE ? MIN_QUEUE : (int)queue;
}

/* An event is two frames: topic and payload. Other messages are not ours and are passed over. */
static bool merger_receive(struct merger *p) {
    zmq_msg_t m;
    struct svi_frames frames = {0};
    zmq_msg_init(&m);
    const bool got = svi_last_frame(p->sub, &m, &frames);
    if (got && svi_access_takes(&p->access, SVI_ROLE_INGEST, &m, &frames) && frames.count == 2)
        svi_merger_take(&p->state, zmq_msg_data(&m), frames.last);
    zmq_msg_close(&m);
    return got;
}

/* The object at the beginning of what was read: its size. 0: it is not complete yet. */
static svs_code merger_next(struct merger *p, const uint8_t *from, size_t left, size_t *size,
                            svs_error *err) {
    const uint8_t *at = from;
    const svs_code code = svi_walk(&at, from + left, SVI_DEPTH_MAX);
    *size = code == SVS_OK ? (size_t)(at - from) : 0;
    const bool waits = code == SVS_TRUNCATED && !p->ended,
               large = (waits ? left : *size) > (size_t)p->settings.max_message;
    if ((code == SVS_OK || waits) && !large)
        return SVS_OK;
    const long long place = (long long)p->read_before + (from - p->read.data);
    if (large)
        return svi_fail(err, SVS_TOO_LARGE,
                        "the record at byte %lld of standard input is larger than max.message = %lld", place,
                        (long long)p->settings.max_message);
    return svi_fail(
        err, code,
        code == SVS_TRUNCATED
            ? "standard input ends within the record that begins at byte %lld: the rest is missing"
            : "standard input has no sums record at byte %lld: send msgpack maps, one after another",
        place);
}

static svs_code merger_take_read(struct merger *p, svs_error *err) {
    size_t at = 0, size = 1;
    while (at < p->read.size && size > 0) {
        SVI_TRY(merger_next(p, p->read.data + at, p->read.size - at, &size, err));
        if (size > 0)
            svi_merger_take(&p->state, p->read.data + at, size);
        at += size;
    }
    memmove(p->read.data, p->read.data + at, p->read.size - at);
    p->read.size -= at;
    p->read_before += (int64_t)at;
    return SVS_OK;
}

static svs_code merger_read(struct merger *p, svs_error *err) {
    if (svi_bytes_reserve(&p->read, READ_BYTES) != SVS_OK)
        return svi_fail_memory(err, "what standard input has");
    const ssize_t n = read(STDIN_FILENO, p->read.data + p->read.size, READ_BYTES);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return SVS_OK;
    if (n < 0)
        return svi_fail(err, SVS_IO, "cannot read standard input: %s", strerror(errno));
    p->ended = n == 0;
    p->read.size += (size_t)n;
    return p->read.size > 0 ? merger_take_read(p, err) : SVS_OK;
}

static svs_code merger_take_records(struct merger *p, bool ready, svs_error *err) {
    const double end = svi_monotonic() + TURN_SECONDS;
    if (p->rows)
        return ready && !p->ended ? merger_read(p, err) : SVS_OK;
    while (ready && merger_receive(p) && svi_monotonic() < end)
        ;
    return SVS_OK;
}

/* ---- requests */

static void merger_reply(struct merger *p, struct svi_request *r, svs_code code) {
    const void *reply = p->reply.data;
    size_t size = p->reply.size;
    if (code == SVS_OK && svi_json_begins(zmq_msg_data(&r->body), r->frames.last))
        code = svi_json_reply(&p->text, &reply, &size);
    if (code == SVS_OK)
        (void)svi_request_reply(p->ctl, r, reply, size); /* a client that has left gets none */
}

/* False: none is waiting. An accepted `stop` is kept, and answered when the addresses are free. */
static bool merger_answer(struct merger *p) {
    static const svs_error forbidden = {SVS_NOT_ALLOWED,
                                        "this key, or its role, was removed from the allow file"},
                           ending = {SVS_UNAVAILABLE, "the process is stopping"};
    struct svi_request r;
    if (!p->ctl || !svi_request_receive(p->ctl, &r))
        return false;
    if (svi_access_takes(&p->access, SVI_ROLE_CONTROL, &r.body, &r.frames)) {
        const struct svi_sender from = {.user = svi_message_user(&r.body),
                                        .connection = svi_message_connection(&r.body)};
        const bool admitted = svi_access_admits(&p->access, SVI_ROLE_CONTROL, &from), late = p->stopped;
        const svs_code code =
            admitted && !late
                ? svi_merger_control_handle(&p->control, zmq_msg_data(&r.body), r.frames.last, &p->reply)
                : svi_merger_control_refuse(admitted ? &ending : &forbidden, &p->reply);
        if (p->control.stop && !late) {
            p->stopper = r; /* owns the frames now */
            p->stopped = true;
            return true;
        }
        merger_reply(p, &r, code);
    }
    svi_request_close(&r);
    return true;
}

/* Peers that were cut or refused are counted and published, as in a stream. */
static void merger_report_access(struct merger *p) {
    svs_error report;
    if (svi_access_fd(&p->access) < 0)
        return;
    while (svi_access_next_report(&p->access, svi_wall_clock(), &report))
        svi_merger_refuse(&p->state, &report, NULL, 0);
    p->state.handshakes_refused = (double)svi_peer_watch_refused(p->access.peers);
    p->state.connections = (double)svi_peer_watch_connected(p->access.peers);
}

/* ---- the loop */

static void merger_log(const struct merger *p, const char *what, const char *address) {
    if (!p->hooks->log)
        return;
    fprintf(p->hooks->log, "%s %s\n", what, address);
    fflush(p->hooks->log);
}

enum merger_item { ITEM_END, ITEM_RELOAD, ITEM_IN, ITEM_CTL, ITEM_OUT, ITEM_ACCESS, ITEM_COUNT };

static void merger_items(const struct merger *p, zmq_pollitem_t *items) {
    for (int i = 0; i < ITEM_COUNT; i++)
        items[i] = (zmq_pollitem_t){NULL, -1, ZMQ_POLLIN, 0};
    items[ITEM_END].fd = p->signals.end;
    items[ITEM_RELOAD].fd = p->signals.reload;
    items[ITEM_IN].socket = p->sub;
    items[ITEM_IN].fd = p->rows && !p->ended ? STDIN_FILENO : -1;
    items[ITEM_CTL].socket = p->ctl;
    items[ITEM_OUT].socket = p->state.out ? svi_publisher_socket(p->state.out) : NULL;
    items[ITEM_ACCESS].fd = svi_access_fd(&p->access);
}

static double merger_stats_due(const struct merger *p) {
    return p->state.out && p->settings.publish_seconds > 0 ? p->stats_at + p->settings.publish_seconds
                                                           : INFINITY;
}

static double merger_mark_due(const struct merger *p) {
    return p->state.merge.count > 0 && !p->rows ? p->mark_at + MARK_SECONDS : INFINITY;
}

/* A SUB socket never fails: a wrong address, or workers without publish.sums, look like silence. */
static double merger_hint_due(const struct merger *p) {
    const double stale = p->settings.merge_stale;
    return p->rows || p->hinted || p->state.merge.count > 0
               ? INFINITY
               : p->state.started + (stale > 0 ? fmin(stale, HINT_SECONDS) : HINT_SECONDS);
}

/* Where nobody can see a model before the end of the input, there is one solution: the last. */
static double merger_solve_due(const struct merger *p) {
    return p->rows && !p->context ? INFINITY : svi_merger_due(&p->state);
}

static long merger_wait_ms(const struct merger *p) {
    const double left =
        fmin(fmin(merger_solve_due(p), merger_hint_due(p)), fmin(merger_stats_due(p), merger_mark_due(p))) -
        svi_monotonic();
    /* Rounded up, so that the loop does not spin before a deadline. */
    return isinf(left) ? -1 : left <= 0 ? 0 : left > 60 ? 60000 : (long)(1000 * left) + 1;
}

static void merger_timers(struct merger *p) {
    const double now = svi_monotonic();
    bool marked = false;
    if (now >= merger_hint_due(p)) {
        p->hinted = true;
        merger_log(p, "no sums yet:", SVI_MERGER_SILENCE);
    }
    if (now >= merger_mark_due(p)) {
        p->mark_at = now;
        marked = svi_merger_mark(&p->state);
    }
    if ((now >= merger_solve_due(p) && svi_merger_solve(&p->state)) || marked)
        svi_merger_publish_model(&p->state);
    if (now >= merger_stats_due(p)) {
        p->stats_at = now;
        merger_report_access(p);
        svi_merger_publish_stats(&p->state);
    }
}

static svs_code merger_turn(struct merger *p, svs_error *err) {
    zmq_pollitem_t items[ITEM_COUNT];
    merger_items(p, items);
    if (zmq_poll(items, ITEM_COUNT, merger_wait_ms(p)) < 0)
        return zmq_errno() == EINTR ? SVS_OK
                                    : svi_fail(err, SVS_IO, "waiting failed: %s", zmq_strerror(zmq_errno()));
    if (items[ITEM_CTL].revents || items[ITEM_ACCESS].revents)
        merger_report_access(p);
    for (int i = 0; items[ITEM_CTL].revents && i < TURN_REQUESTS && merger_answer(p); i++)
        ;
    if (items[ITEM_OUT].revents)
        svi_publisher_subscriptions(p->state.out);
    if (items[ITEM_RELOAD].revents)
        (void)svi_signals_pending(p->signals.reload); /* the authenticator follows the allow file by itself */
    SVI_TRY(merger_take_records(p, items[ITEM_IN].revents, err));
    merger_timers(p);
    p->stop = p->stop || items[ITEM_END].revents || p->control.stop || p->ended;
    return SVS_OK;
}

/* The last model, and what the caller does with it. An input that has ended must have given one. */
static svs_code merger_finish(struct merger *p, svs_error *err) {
    const struct svi_merge *m = &p->state.merge;
    const bool ended = p->rows && p->ended;
    p->state.ended = ended;
    svi_merger_solve(&p->state);
    svi_merger_summary(&p->state);
    if (m->model)
        svi_merger_publish_model(&p->state);
    svi_merger_publish_stats(&p->state);
    if (ended && m->failure.code != SVS_OK)
        return svi_fail(err, m->failure.code, "%s", m->failure.text);
    if (ended && !m->model)
        return svi_fail(err, SVS_EMPTY, "standard input had no sums record: send those of `sums` events");
    if (!m->model)
        return SVS_OK;
    SVI_TRY(p->hooks->done ? p->hooks->done(p->hooks->user, m->model, err) : SVS_OK);
    svi_merger_end(&p->state, p->hooks->end);
    return SVS_OK;
}

/* ---- start and end */

/* The i-th of the keys in a list with commas, and how many there are; *out: SVI_TEXT_MAX bytes. Keys have no
 * commas. */
static int merger_key_item(const char *list, int i, char *out) {
    int count = 1;
    *out = 0;
    for (const char *at = list;; count++) {
        const size_t length = strcspn(at, ",");
        if (count - 1 == i)
            snprintf(out, SVI_TEXT_MAX, "%.*s", (int)length, at);
        if (!at[length])
            return count;
        at += length + 1;
    }
}

/* Connects to address i, with its own key where each publisher has one: libzmq takes the keys of the socket
 * as they are when it connects. */
static svs_code merger_connect(struct merger *p, const struct svi_socket_plan *plan, int i, svs_error *err) {
    char item[SVI_TEXT_MAX];
    struct svi_identity id = p->access.identity;
    svs_error why;
    svs_code code = SVS_OK;
    if (id.on && id.server_key[0]) {
        const int count = merger_key_item(p->server_keys, i, item);
        if (count > 1 && count != p->hooks->count)
            code = svi_fail(
                err, SVS_SETTING,
                "curve.server has %d keys for %d addresses: give one for all, or one for each, in the same "
                "order",
                count, p->hooks->count);
        else if (count > 1 && svi_key_resolve(item, id.server_key, &why) != SVS_OK)
            code = svi_fail(err, SVS_SETTING, "curve.server, key %d: %s", i + 1, why.text);
        else if (count > 1 && !svi_identity_connect(&id, p->sub))
            code = svi_fail(err, SVS_IO, "cannot set up CURVE for address %d: %s", i + 1,
                            zmq_strerror(zmq_errno()));
    }
    svi_identity_wipe(&id);
    return code == SVS_OK ? svi_socket_attach(p->sub, plan, p->hooks->addresses[i], NULL, err) : code;
}

static svs_code merger_open_input(struct merger *p, svs_error *err) {
    struct svi_settings *s = &p->settings;
    const struct svi_socket_plan plan = {"in", ZMQ_SUB, false, merger_queue(s), 0, s->max_message, 0};
    if (p->rows)
        return SVS_OK;
    if (!(p->sub = svi_access_socket(&p->access, &plan, err)))
        return err->code;
    if (zmq_setsockopt(p->sub, ZMQ_SUBSCRIBE, TOPIC, strlen(TOPIC)) != 0)
        return svi_fail(err, SVS_IO, "cannot subscribe to " TOPIC ": %s", zmq_strerror(zmq_errno()));
    for (int i = 0; i < p->hooks->count; i++) {
        SVI_TRY(merger_connect(p, &plan, i, err));
        merger_log(p, "from", p->hooks->addresses[i]);
    }
    return SVS_OK;
}

/* Outputs first: a subscriber or a client that finds them gets the first model. */
static svs_code merger_open(struct merger *p, svs_error *err) {
    struct svi_settings *s = &p->settings;
    const struct svi_socket_plan plan = {"ctl", ZMQ_ROUTER, true, QUEUE_CTL, LINGER_MS, s->max_message, 0};
    const bool out = svi_settings_binds(s, "out", s->out), ctl = svi_settings_binds(s, "ctl", s->ctl);
    if (p->rows && !out && !ctl)
        return SVS_OK;
    if (!(p->context = zmq_ctx_new()))
        return svi_fail(err, SVS_IO, "ZeroMQ cannot start: %s", zmq_strerror(zmq_errno()));
    SVI_TRY(svi_access_open(&p->access, s, p->context, err));
    if (out) {
        if (!(p->state.out = svi_publisher_new(&p->access, s->out, s->stream, s->out, err)))
            return err->code;
        merger_log(p, "out", s->out);
    }
    if (ctl) {
        if (!(p->ctl = svi_access_socket(&p->access, &plan, err)))
            return err->code;
        SVI_TRY(svi_socket_attach(p->ctl, &plan, s->ctl, s->ctl, err));
        merger_log(p, "ctl", s->ctl);
    }
    return merger_open_input(p, err);
}

/* Answers the kept `stop` last: `out` is free by then, `ctl` when its connection ends. */
static void merger_close(struct merger *p, svs_code code, const svs_error *err) {
    const bool out = p->state.out;
    svi_access_leave(&p->access);
    svi_socket_close(&p->sub);
    svi_publisher_free(&p->state.out);
    if (p->stopped) {
        if (out)
            svi_address_await_free(p->settings.out, FREE_SECONDS);
        if (code == SVS_OK)
            code = svi_merger_control_handle(&p->control, zmq_msg_data(&p->stopper.body),
                                             p->stopper.frames.last, &p->reply);
        else
            code = svi_merger_control_refuse(err, &p->reply);
        merger_reply(p, &p->stopper, code);
        svi_request_close(&p->stopper);
    }
    svi_socket_close(&p->ctl);
    svi_access_close(&p->access);
    if (p->context)
        while (zmq_ctx_term(p->context) != 0 && zmq_errno() == EINTR)
            ;
    svi_merger_control_clear(&p->control);
    svi_merger_clear(&p->state);
    svi_bytes_clear(&p->reply);
    svi_bytes_clear(&p->text);
    svi_bytes_clear(&p->read);
}

/* The rows of the settings that mean something else for a stream. */
static void merger_settle(struct merger *p, const struct svi_settings *given) {
    struct svi_settings *s = &p->settings;
    *s = *given;
    p->rows = strcmp(p->hooks->addresses[0], "-") == 0;
    s->in_mode = SVI_IN_SUB;
    snprintf(s->in, sizeof s->in, "%s", p->hooks->addresses[0]);
    p->server_keys = given->curve_server;
    (void)merger_key_item(p->server_keys, 0, s->curve_server);
    if (!svi_settings_chosen(s, "max.message"))
        s->max_message = MIN_MESSAGE; /* the sums of 500 features take 1 MB, of 4,000 64 MB */
}

svs_code svi_merger_run(const struct svi_settings *s, const struct svi_merger_hooks *hooks, svs_error *err) {
    struct merger *p = svi_new(sizeof *p, "the merge", err);
    if (!p)
        return SVS_NO_MEMORY;
    p->hooks = hooks;
    merger_settle(p, s);
    p->state = (struct svi_merger_state){.settings = &p->settings,
                                         .log = hooks->log,
                                         .errors = hooks->errors,
                                         .epoch = (uint64_t)(1e6 * svi_wall_clock()),
                                         .started = svi_monotonic(),
                                         .solved_at = -INFINITY};
    p->control.state = &p->state;
    const struct svi_merge_options o = {.C = hooks->has_C ? s->C : 0,
                                        .scaled = hooks->has_scale,
                                        .scale = (svs_scale)s->scale,
                                        .max_features = (int)s->max_features,
                                        .max_classes = (int)s->max_classes,
                                        .max_bytes = (double)s->merge_memory,
                                        .stale = s->merge_stale,
                                        .dropped = hooks->dropped};
    svi_merge_init(&p->state.merge, &o);
    svs_code code = svi_signals_take(&p->signals)
                        ? merger_open(p, err)
                        : svi_fail(err, SVS_IO, "cannot wait for signals: %s", strerror(errno));
    while (code == SVS_OK && !p->stop)
        code = merger_turn(p, err);
    if (code == SVS_OK)
        code = merger_finish(p, err);
    merger_close(p, code, err);
    svi_signals_give_back(&p->signals);
    svi_free(p);
    return code;
}
