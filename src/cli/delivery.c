#include "cli/delivery.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "cli/progress.h"
#include "engine/transport.h"

#define QUEUE    1000 /* ZeroMQ's own */
#define CHUNK_MS 1000 /* the longest wait at a time */
#define REMIND   60   /* seconds between two warnings */
#define BEAT_MS  5000 /* between signs of life, so that a vanished host is noticed */

/* ---- what the outbox tells */

static svs_code code_by_name(const char *name) {
    for (int c = 1; c < SVS_CODE_COUNT; c++)
        if (strcmp(name, svs_code_name((svs_code)c)) == 0)
            return (svs_code)c;
    return SVS_INVALID;
}

static void keep_refusal(struct delivery *d, const svs_outbox_event *e) {
    d->refused += e->count;
    if (d->told == DELIVERY_TOLD)
        return;
    svs_error *r = &d->refusal[d->told++];
    const char *open = e->code[0] ? " (" : "", *shut = e->code[0] ? ")" : "";
    if (e->first == e->last)
        svi_fail(r, code_by_name(e->code), "row %" PRId64 ": %s%s%s%s", e->first + 1, e->reason, open,
                 e->code, shut);
    else
        svi_fail(r, code_by_name(e->code), "%" PRId64 " of the rows %" PRId64 " to %" PRId64 ": %s%s%s%s",
                 e->count, e->first + 1, e->last + 1, e->reason, open, e->code, shut);
}

/* It will pass, but somebody may have to help. */
static void keep_trouble(struct delivery *d, const svs_outbox_event *e) {
    const double now = cli_clock();
    const bool known = d->warned > 0 && now - d->warned < REMIND;
    svi_fail(&d->later, code_by_name(e->code), "%s (%s)", e->reason, e->code);
    d->hopeless = strcmp(e->code, "not_durable") == 0;
    if (d->warn && !known && !d->hopeless) {
        d->warned = now;
        d->warn(d->user, d->later.text);
    }
}

static void hear(void *user, const svs_outbox_event *e) {
    struct delivery *d = user;
    const bool cut = strcmp(e->code, "power_cut") == 0;
    if (e->kind == SVS_OUTBOX_ACKED) {
        d->later.code = SVS_OK;
    } else if (e->kind == SVS_OUTBOX_REFUSED) {
        keep_refusal(d, e);
    } else if (e->kind == SVS_OUTBOX_LATER) {
        keep_trouble(d, e);
    } else {
        d->restarts += !cut;
        d->forgotten[cut] += e->count;
    }
}

/* ---- the socket */

static bool watch(struct delivery *d) {
    const char *address = "inproc://delivery";
    const int events = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED;
    if (zmq_socket_monitor(d->socket, address, events) != 0)
        return false;
    d->monitor = zmq_socket(d->context, ZMQ_PAIR);
    return d->monitor && zmq_connect(d->monitor, address) == 0;
}

static svs_code connect_socket(struct delivery *d, svs_error *err) {
    const struct svi_socket_plan plan = {"in", ZMQ_DEALER, false, QUEUE, 0, -1};
    const int options[][2] = {
        {ZMQ_RECONNECT_IVL, 50}, {ZMQ_RECONNECT_IVL_MAX, 1000}, {ZMQ_HEARTBEAT_IVL, BEAT_MS}};
    if (!(d->context = zmq_ctx_new()))
        return svi_fail(err, SVS_IO, "ZeroMQ cannot start: %s", zmq_strerror(errno));
    if (!(d->socket = svi_socket_new(d->context, &plan, err)))
        return err->code;
    for (int i = 0; i < 3; i++)
        zmq_setsockopt(d->socket, options[i][0], &options[i][1], sizeof(int));
    if (!watch(d))
        return svi_fail(err, SVS_IO, "the connection cannot be watched: %s", zmq_strerror(errno));
    if (svi_socket_secure(d->socket, &plan, d->identity, err) != SVS_OK)
        return err->code;
    return svi_socket_attach(d->socket, &plan, d->address, NULL, err);
}

static void take_changes(struct delivery *d) {
    zmq_msg_t m;
    zmq_msg_init(&m);
    while (zmq_msg_recv(&m, d->monitor, ZMQ_DONTWAIT) >= 0) {
        uint16_t event = 0;
        if (!zmq_msg_more(&m)) /* its second frame: the address */
            continue;
        memcpy(&event, zmq_msg_data(&m), sizeof event);
        d->listened = d->listened || event == ZMQ_EVENT_CONNECTED;
        d->spoke = d->spoke || event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
        if (event == ZMQ_EVENT_DISCONNECTED && d->here)
            svs_outbox_broken(d->box, cli_clock());
        d->here = event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED || (d->here && event != ZMQ_EVENT_DISCONNECTED);
    }
    zmq_msg_close(&m);
}

/* ---- there and back */

static void send_all(struct delivery *d, double now) {
    const void *bytes;
    size_t size;
    d->blocked = false;
    while (!d->blocked && svs_outbox_frame(d->box, now, &bytes, &size))
        if (zmq_send(d->socket, bytes, size, ZMQ_DONTWAIT) >= 0)
            svs_outbox_sent(d->box, now);
        else
            d->blocked = true;
}

static svs_code take_replies(struct delivery *d, svs_error *err) {
    zmq_msg_t m;
    svs_code code = SVS_OK;
    zmq_msg_init(&m);
    while (code == SVS_OK && svi_last_frame(d->socket, &m))
        code = svs_outbox_reply(d->box, zmq_msg_data(&m), zmq_msg_size(&m), cli_clock(), err);
    zmq_msg_close(&m);
    return code == SVS_OK ? SVS_OK
                          : svi_fail(err, SVS_IO, "%.100s: what answers there is not svmstream", d->address);
}

static svs_code give_up(const struct delivery *d, const svs_outbox_figures *f, svs_error *err) {
    const char *address = d->address;
    if (!d->listened)
        return svi_fail(
            err, SVS_IO,
            "nobody listens at %.80s: is `svmstream run --in.mode router` running with this `in`?", address);
    if (!d->spoke && d->curve)
        return svi_fail(
            err, SVS_IO,
            "%.60s does not let us in: is this its key (curve.server), and ours in its allow file with the "
            "role ingest? Is it running with in.mode router?",
            address);
    if (!d->spoke)
        return svi_fail(
            err, SVS_IO,
            "%.60s does not answer, but a process listens there: is it running with in.mode router (else "
            "feed "
            "without --ack), with CURVE (then give --curve and --curve.server), or does it stand still?",
            address);
    if (d->later.code != SVS_OK)
        return svi_fail(err, d->later.code, "%.60s takes nothing for now: %.150s", address, d->later.text);
    return svi_fail(err, SVS_IO, "%.60s %s: nothing was acknowledged for %g s, %" PRId64 " rows wait",
                    address, d->here ? "does not answer" : "is gone", d->timeout, f->kept);
}

/* All is answered for, but not on disk. */
static svs_code give_up_disk(const struct delivery *d, svs_error *err) {
    return svi_fail(err, SVS_IO,
                    "%.60s has taken all rows, but %g s later not all are on its disk: does it run with "
                    "journal.fsync never?",
                    d->address, d->timeout);
}

/* What can be done without waiting and without a system call of our own. */
static svs_code pump(struct delivery *d, svs_error *err) {
    send_all(d, cli_clock());
    return take_replies(d, err);
}

/* Has something moved, or is there nothing to wait for? */
static svs_code check_progress(struct delivery *d, double now, svs_error *err) {
    svs_outbox_figures f;
    svs_outbox_status(d->box, &f);
    int64_t settled = f.acked + f.refused + f.dropped + f.taken + f.durable;
    const bool all_taken = f.kept == f.taken;
    const bool idle = d->met && f.kept == 0 && !d->finishing; /* whoever is away is not missed */
    if (settled != d->settled || idle ||
        (f.greeted && all_taken && (!d->finishing || svs_outbox_done(d->box))))
        d->moved = now;
    d->settled = settled;
    if (d->hopeless && d->later.code != SVS_OK)
        return svi_fail(err, SVS_UNAVAILABLE, "%.60s cannot promise that: %.150s", d->address, d->later.text);
    if (now - d->moved <= d->timeout)
        return SVS_OK;
    return all_taken && f.greeted ? give_up_disk(d, err) : give_up(d, &f, err);
}

static long milliseconds(const struct delivery *d, double seconds, double now) {
    double wait = fmin(seconds, svs_outbox_wait(d->box, now));
    if (d->blocked)
        wait = seconds;
    wait = fmin(wait, d->moved + d->timeout - now + 0.001);
    return wait <= 0 ? 0 : (long)ceil(fmin(1000 * wait, CHUNK_MS));
}

/* One round of sending, waiting up to `seconds` and listening. *readable: `fd` can be read. */
static svs_code turn(struct delivery *d, double seconds, int fd, bool *readable, svs_error *err) {
    double now = cli_clock();
    send_all(d, now);
    zmq_pollitem_t items[] = {{d->socket, 0, (short)(ZMQ_POLLIN | (d->blocked ? ZMQ_POLLOUT : 0)), 0},
                              {d->monitor, 0, ZMQ_POLLIN, 0},
                              {NULL, fd, ZMQ_POLLIN, 0}};
    if (zmq_poll(items, fd >= 0 ? 3 : 2, milliseconds(d, seconds, now)) < 0 && zmq_errno() != EINTR)
        return svi_fail(err, SVS_IO, "waiting failed: %s", zmq_strerror(zmq_errno()));
    *readable = fd >= 0 && items[2].revents != 0;
    svs_code code = take_replies(d, err); /* before the news that the connection is broken */
    take_changes(d);
    return code == SVS_OK ? check_progress(d, cli_clock(), err) : code;
}

svs_code delivery_open(struct delivery *d, svs_outbox_options *o, svs_error *err) {
    o->tell = hear;
    o->user = d;
    d->later.code = SVS_OK;
    d->curve = d->identity->on;
    d->moved = cli_clock();
    if (!(d->box = svs_outbox_new(o, err)))
        return err->code;
    svs_code code = connect_socket(d, err);
    svs_outbox_figures f = {.greeted = false};
    bool readable;
    while (code == SVS_OK && !f.greeted) {
        code = turn(d, d->timeout, -1, &readable, err);
        svs_outbox_status(d->box, &f);
    }
    d->met = f.greeted;
    return code;
}

svs_code delivery_put(struct delivery *d, const void *bytes, size_t length, int batch, svs_error *err) {
    const int64_t row = svs_outbox_wanted(d->box);
    svs_outbox_figures f;
    svs_code code = SVS_LIMIT;
    bool readable;
    while (svs_outbox_wanted(d->box) == row &&
           (code = svs_outbox_put(d->box, bytes, length, err)) == SVS_LIMIT) {
        d->finishing = true; /* it may be full of what is taken, and waits for the disk */
        code = turn(d, d->timeout, -1, &readable, err);
        d->finishing = false;
        if (code != SVS_OK)
            return code;
    }
    svs_outbox_status(d->box, &f);
    if (code != SVS_OK || f.unsent < batch)
        return code;
    return pump(d, err);
}

svs_code delivery_wait(struct delivery *d, double seconds, int fd, svs_error *err) {
    double end = cli_clock() + seconds, left;
    bool readable = false;
    svs_code code = SVS_OK;
    while (code == SVS_OK && !readable && (left = end - cli_clock()) > 0)
        code = turn(d, left, fd, &readable, err);
    return code;
}

svs_code delivery_finish(struct delivery *d, svs_error *err) {
    const int64_t row = svs_outbox_wanted(d->box);
    svs_code code = SVS_OK;
    bool readable;
    d->finishing = true;
    d->moved = cli_clock();
    while (code == SVS_OK && svs_outbox_wanted(d->box) >= row && !svs_outbox_done(d->box))
        code = turn(d, d->timeout, -1, &readable, err);
    d->finishing = false;
    return code;
}

void delivery_close(struct delivery *d) {
    if (d->monitor)
        zmq_socket_monitor(d->socket, NULL, 0);
    svi_socket_close(&d->monitor);
    svi_socket_close(&d->socket);
    if (d->context)
        while (zmq_ctx_term(d->context) != 0 && zmq_errno() == EINTR)
            ;
    d->context = NULL;
    svs_outbox_free(&d->box);
}
