/* Delivery of samples to one process with blocking calls: see delivery.h.
 *
 * Every call that waits is a loop over delivery_turn: send, poll, receive, then check the progress
 * (delivery_check). Progress means any sample settled, or nothing to wait for. Without progress for `timeout`
 * seconds the call fails, and delivery_give_up derives the likely reason from how far the connection got.
 * Events of the outbox are stored for the command by delivery_receive. */
#include "client/delivery.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "net/transport.h"

#define CHUNK_MS  1000   /* longest single poll */
#define REMIND    60     /* seconds between two warnings about the same trouble */
#define LINGER_MS 120000 /* time granted to a slow process for the last messages */

/* ---- what the outbox reports */

static void keep_refusal(struct delivery *d, const svs_outbox_event *e) {
    d->refused += e->count;
    d->reasons[svi_code_by_name(e->code)] += e->count;
    if (d->shown == DELIVERY_SHOWN)
        return;
    /* Rows are numbered from 1 for people, samples from 0 in the outbox. */
    svs_error *r = &d->refusal[d->shown++];
    const char *open = e->code[0] ? " (" : "", *shut = e->code[0] ? ")" : "";
    if (e->first == e->last)
        svi_fail(r, svi_code_by_name(e->code), "row %" PRId64 ": %s%s%s%s", e->first + 1, e->reason, open,
                 e->code, shut);
    else
        svi_fail(r, svi_code_by_name(e->code), "%" PRId64 " of the rows %" PRId64 " to %" PRId64 ": %s%s%s%s",
                 e->count, e->first + 1, e->last + 1, e->reason, open, e->code, shut);
}

/* A temporary refusal, which a person may have to resolve: warns, at most once in REMIND seconds. Two kinds
 * never end by themselves and make the delivery fail (`hopeless`). */
static void keep_trouble(struct delivery *d, const svs_outbox_event *e) {
    const double now = svi_monotonic();
    const bool known = d->warned > 0 && now - d->warned < REMIND;
    const bool others = strcmp(e->code, svs_code_name(SVS_WRONG_COLUMNS)) == 0;
    svi_fail(&d->later, svi_code_by_name(e->code), others ? "%s" : "%s (%s)", e->reason, e->code);
    d->hopeless = others || strcmp(e->code, "not_durable") == 0;
    if (d->warn && !known && !d->hopeless) {
        char text[SVS_ERROR_TEXT + 20];
        snprintf(text, sizeof text, "waiting: %s", d->later.text);
        d->warned = now;
        d->warn(d->user, text);
    }
}

static void delivery_receive(void *user, const svs_outbox_event *e) {
    struct delivery *d = user;
    const bool cut = strcmp(e->code, "power_cut") == 0;
    if (e->kind == SVS_OUTBOX_ACKED) {
        d->later.code = SVS_OK;
    } else if (e->kind == SVS_OUTBOX_REFUSED) {
        keep_refusal(d, e);
    } else if (e->kind == SVS_OUTBOX_LATER) {
        keep_trouble(d, e);
    } else {
        /* A power cut is reported separately: the process kept its state, but not the last of it. */
        d->restarts += !cut;
        d->forgotten[cut] += e->count;
    }
}

/* ---- waiting */

/* The likely reason for no progress, from the stage that the connection reached: nobody listens, handshake or
 * greeting failed, temporarily refused, or silent. */
/* In the order of the stages that a connection passes; the first one missing is the reason. */
static svs_code delivery_give_up(const struct delivery *d, const svs_outbox_figures *f, svs_error *err) {
    const char *address = d->address;
    const struct link *l = &d->link;
    if (l->push && !d->met)
        return svi_fail(err, SVS_IO,
                        "no process takes samples at %.60s: check that `svmstream run` runs with this "
                        "`in`%s; if its in.mode is router, feed with --ack",
                        address, d->curve ? ", and that its allow file has your key" : " and without CURVE");
    if (l->push)
        return svi_fail(err, SVS_IO,
                        "%s has stopped taking samples: it has ended, or did not respond for %g seconds",
                        address, d->timeout);
    if (!l->accepted)
        return svi_fail(
            err, SVS_IO,
            "no process listens at %.80s: check that `svmstream run --in.mode router` runs with this `in`",
            address);
    if (!l->introduced)
        return svi_fail(err, SVS_IO, "%.60s %s", address,
                        d->curve
                            ? "refused the connection: check that curve.server is its key, that its allow "
                              "file has your key with the role ingest, and that it runs with in.mode router"
                            : "accepts connections but does not answer: check that it runs with in.mode "
                              "router (else feed without --ack), without CURVE (else give --curve and "
                              "--curve.server), and is not stuck");
    if (d->later.code != SVS_OK)
        return svi_fail(err, d->later.code, "%.60s refuses samples for now: %.150s", address, d->later.text);
    return svi_fail(err, SVS_IO,
                    "%.60s %s: no acknowledgement for %g s, %" PRId64
                    " rows wait; restart the process, or raise --timeout",
                    address, l->connected ? "does not answer" : "has disconnected", d->timeout, f->kept);
}

/* Updates the time of the last progress, and fails if it is too long ago. */
static svs_code delivery_check(struct delivery *d, svs_error *err) {
    const double now = svi_monotonic();
    svs_outbox_figures f;
    svs_outbox_status(d->link.box, &f);
    d->met = d->met || (d->link.push ? d->link.connected : f.greeted);
    /* Every counter that a reply can raise; their sum changes with any progress. */
    const int64_t settled = f.acked + f.refused + f.dropped + f.taken + f.durable;
    const bool all_taken = f.kept == f.taken;
    /* with nothing to send, an absent process does no harm */
    const bool idle = d->met && f.kept == 0 && !d->finishing;
    if (settled != d->settled || idle ||
        (f.greeted && d->met && all_taken && (!d->finishing || svs_outbox_done(d->link.box))))
        d->moved = now;
    d->settled = settled;
    /* Waiting would not help: the process never accepts these columns, or never keeps anything. */
    if (d->hopeless && d->later.code == SVS_WRONG_COLUMNS)
        return svi_fail(err, SVS_WRONG_COLUMNS, "%s", d->later.text);
    if (d->hopeless && d->later.code != SVS_OK)
        return svi_fail(err, SVS_UNAVAILABLE, "%.60s cannot promise durability: %.150s", d->address,
                        d->later.text);
    if (now - d->moved <= d->timeout)
        return SVS_OK;
    /* Without a greeting or with samples not taken the connection is at fault; otherwise the disk is. */
    if (!all_taken || !f.greeted || !d->met)
        return delivery_give_up(d, &f, err);
    return svi_fail(err, SVS_IO,
                    "%.60s has taken all rows, but after %g s not all are on its disk: check that its "
                    "journal.fsync is not never",
                    d->address, d->timeout);
}

/* One round: send, wait up to `seconds`, receive, check. *readable (may be NULL): `fd` is readable. The poll
 * ends no later than the timeout for progress, so that delivery_check can fail in time. */
static svs_code delivery_turn(struct delivery *d, double seconds, int fd, bool *readable, svs_error *err) {
    zmq_pollitem_t items[LINK_ITEMS + 1];
    link_send(&d->link);
    const int n = link_items(&d->link, items);
    /* `fd` is the last item, and left out of the poll if it is -1. */
    items[n] = (zmq_pollitem_t){NULL, fd, ZMQ_POLLIN, 0};
    const double left = d->moved + d->timeout - svi_monotonic() + 0.001,
                 wait = fmin(fmin(seconds, link_wait(&d->link)), left);
    if (zmq_poll(items, n + (fd >= 0), wait <= 0 ? 0 : (long)ceil(fmin(1000 * wait, CHUNK_MS))) < 0 &&
        zmq_errno() != EINTR)
        return svi_fail(err, SVS_IO, "waiting failed: %s", zmq_strerror(zmq_errno()));
    if (readable)
        *readable = fd >= 0 && items[n].revents != 0;
    svs_code code = link_turn(&d->link, err);
    return code == SVS_OK ? delivery_check(d, err) : code;
}

/* ---- the calls */

svs_code delivery_open(struct delivery *d, svs_outbox_options *o, svs_error *err) {
    o->notify = delivery_receive;
    o->user = d;
    d->later.code = SVS_OK;
    d->curve = d->identity->on;
    d->moved = svi_monotonic();
    /* Unacknowledged messages exist only in the socket: closing has to wait for them. */
    const int linger_ms = o->release == SVS_OUTBOX_SENT ? LINGER_MS : 0;
    svs_code code = link_open(&d->link, d->address, d->identity, o, linger_ms, err);
    const double start = d->moved;
    /* Waits for the first answer. The warning comes once, after SVI_WAITING seconds; until then each turn is
     * cut to that time. */
    for (bool warned = !d->warn; code == SVS_OK && !d->met;) {
        const double left = start + SVI_WAITING - svi_monotonic();
        code = delivery_turn(d, warned ? d->timeout : fmax(left, 0), -1, NULL, err);
        if (code == SVS_OK && !warned && !d->met && left <= 0) {
            char text[SVI_ADDRESS_MAX + 20];
            snprintf(text, sizeof text, "waiting for %.200s", d->address);
            d->warn(d->user, text);
            warned = true;
        }
    }
    return code;
}

svs_code delivery_put(struct delivery *d, const void *bytes, size_t length, int batch, svs_error *err) {
    svs_outbox *box = d->link.box;
    const int64_t row = svs_outbox_wanted(box);
    svs_outbox_figures f;
    svs_code code = SVS_LIMIT;
    /* The process may ask for another sample meanwhile (with replay); then this one is out of turn. */
    while (svs_outbox_wanted(box) == row && (code = svs_outbox_put(box, bytes, length, err)) == SVS_LIMIT) {
        d->finishing = true; /* the outbox may be full of samples that wait only for the disk */
        code = delivery_turn(d, d->timeout, -1, NULL, err);
        d->finishing = false;
        if (code != SVS_OK)
            return code;
    }
    /* Small batches are collected before they are sent: sending for every row would cost a message each. */
    svs_outbox_status(box, &f);
    if (code != SVS_OK || f.unsent < batch)
        return code;
    link_send(&d->link);
    return link_receive(&d->link, err);
}

svs_code delivery_wait(struct delivery *d, double seconds, int fd, svs_error *err) {
    double end = svi_monotonic() + seconds, left;
    bool readable = false;
    svs_code code = SVS_OK;
    while (code == SVS_OK && !readable && (left = end - svi_monotonic()) > 0)
        code = delivery_turn(d, left, fd, &readable, err);
    return code;
}

svs_code delivery_finish(struct delivery *d, svs_error *err) {
    svs_outbox *box = d->link.box;
    const int64_t row = svs_outbox_wanted(box);
    svs_code code = SVS_OK;
    /* Waiting for the disk counts as waiting here, so a process that never syncs is noticed after `timeout`.
     */
    d->finishing = true;
    d->moved = svi_monotonic();
    while (code == SVS_OK && svs_outbox_wanted(box) >= row && !svs_outbox_done(box))
        code = delivery_turn(d, d->timeout, -1, NULL, err);
    d->finishing = false;
    return code;
}

svs_code delivery_close(struct delivery *d, svs_error *err) {
    /* The outbox holds nothing for mode pull; what is left is in the socket. */
    const double start = svi_monotonic();
    link_close(&d->link);
    /* libzmq does not report that the linger time has expired: the elapsed time shows it */
    if (1000 * (svi_monotonic() - start) < LINGER_MS)
        return SVS_OK;
    return svi_fail(err, SVS_IO, "%s did not take the last messages within %d s: up to %d of them are lost",
                    d->address, LINGER_MS / 1000, LINK_QUEUE);
}

/* ---- the names of the columns */

/* Appends the names of a row's cells, each with its NUL. */
static svs_code delivery_list_names(const struct svi_message *row, struct svi_bytes *names) {
    svs_code code = SVS_OK;
    for (int i = 0; i < row->cell_count && code == SVS_OK; i++) {
        code = svi_bytes_append(names, row->cells[i].name, row->cells[i].name_length);
        if (code == SVS_OK)
            code = svi_bytes_append(names, "", 1);
    }
    return code;
}

/* Are these the names that are being sent already? */
static bool delivery_same_names(const struct svi_message *row, const struct svi_bytes *named) {
    size_t at = 0;
    for (int i = 0; i < row->cell_count; i++) {
        const size_t length = row->cells[i].name_length;
        if (named->size - at < length + 1 || memcmp(named->data + at, row->cells[i].name, length) != 0 ||
            named->data[at + length] != '\0')
            return false;
        at += length + 1;
    }
    return at == named->size;
}

svs_code delivery_columns(svs_outbox *box, const struct svi_message *row, struct svi_bytes *named,
                          svs_error *err) {
    if (!row->listed || delivery_same_names(row, named))
        return SVS_OK;
    const int count = row->cell_count;
    const char **names = svi_alloc_array((size_t)count + 1, sizeof *names);
    named->size = 0;
    svs_code code = names ? delivery_list_names(row, named) : SVS_NO_MEMORY;
    /* Only now, since appending may have moved the bytes. */
    const char *at = (const char *)named->data;
    for (int i = 0; code == SVS_OK && i < count; i++, at += strlen(at) + 1)
        names[i] = at;
    code = code == SVS_OK ? svs_outbox_columns(box, names, count, err) : svi_fail_memory(err, "the columns");
    svi_free(names);
    /* Forgotten on failure, so that the next row tries again. */
    named->size = code == SVS_OK ? named->size : 0;
    return code;
}
