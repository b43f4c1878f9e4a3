/* merge_link.h: from the merger's socket to the engine.
 *
 * Only the newest model matters, so that of all that arrive one is kept (link_receive). It takes effect when
 * it is due: the engine decides first, without a change, whether it fits; then the record is written; then
 * the engine takes it (link_apply), so a restart repeats it at the same place among the samples.
 *
 * What is refused costs no record. It is counted, and reported once for each reason; an older or repeated
 * model is no refusal, since a merger sends its last model again to each new subscriber. */
#include "server/merge_link.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/fnv.h"
#include "fleet/fleet.h"
#include "wire/cursor.h"
#include "wire/fields.h"

#define QUEUE          4                  /* models that libzmq keeps for us: the newest is enough */
#define TURN_MODELS    16                 /* received in one turn, so that a flood cannot hold up samples */
#define MIN_MODEL      ((int64_t)4 << 20) /* bytes of a message that is received, whatever the limits */
#define NAME_BYTES     80                 /* of a feature in a message, with what describes it */
#define RECONNECT_MS   1000
#define BYTES_A_SECOND 1e6  /* of models that take effect: their records are part of the journal */
#define LOOK_SECONDS   0.05 /* after a model that was refused; and the share of a large one */
#define BYTES_LOOKED   2e7
#define RETRY          1.0 /* seconds between two attempts at what a full disk postponed */

/* What is read of a prior event. */
struct link_prior {
    uint64_t epoch, seq;
    const uint8_t *prior;
};

/* A model within max.features and max.classes, with its names and its parts. */
static int64_t link_largest(const struct svi_settings *s) {
    const int64_t largest = s->max_features * (s->max_classes * 8 + NAME_BYTES) + MIN_MODEL;
    return largest < (1 << 30) ? largest : 1 << 30;
}

static svs_code link_open(struct svi_merge_link *l, const struct svi_settings *s, svs_error *err) {
    const struct svi_socket_plan plan = {"merge.from", ZMQ_SUB, false, QUEUE, 0, link_largest(s), 0};
    const char *topic = svi_topic_name(l->keyed ? SVI_TOPIC_PRIOR : SVI_TOPIC_MODEL);
    const int again = RECONNECT_MS;
    if (!(l->socket = svi_access_socket(l->access, &plan, err)))
        return err->code;
    if (zmq_setsockopt(l->socket, ZMQ_RECONNECT_IVL, &again, sizeof again) != 0 ||
        zmq_setsockopt(l->socket, ZMQ_SUBSCRIBE, topic, strlen(topic)) != 0)
        return svi_fail(err, SVS_IO, "cannot subscribe to merge.from: %s", zmq_strerror(zmq_errno()));
    return SVS_OK;
}

svs_code svi_merge_link_follow(struct svi_merge_link *l, struct svi_access *access,
                               const struct svi_settings *s, svs_error *err) {
    const char *wanted = svi_settings_merges(s) ? s->merge_from : "";
    const struct svi_socket_plan plan = {.setting = "merge.from", .type = ZMQ_SUB};
    if (strcmp(l->address, wanted) == 0)
        return SVS_OK;
    l->access = access;
    l->keyed = svi_settings_keyed(s);
    if (!l->socket)
        SVI_TRY(link_open(l, s, err));
    /* The socket stays, since it is watched until the end of the process; what waits is of the old merger. */
    if (l->address[0])
        (void)zmq_disconnect(l->socket, l->address);
    l->waiting.size = 0;
    l->taken_at = l->due = 0;
    l->from = (struct svi_merged_from){0};
    l->received = false;
    memset(l->reported, 0, sizeof l->reported);
    strcpy(l->address, wanted);
    return wanted[0] ? svi_socket_attach(l->socket, &plan, wanted, NULL, err) : SVS_OK;
}

void svi_merge_link_close(struct svi_merge_link *l) {
    svi_socket_close(&l->socket);
    svi_bytes_clear(&l->waiting);
}

/* Counts a refusal, and publishes it unless it was among the last reasons that were. */
static void link_refuse(struct svi_merge_link *l, svi_stream *stream, svi_write_ahead *w,
                        const svs_error *why, double now) {
    char reason[SVS_ERROR_TEXT + 64];
    const uint64_t hash = svi_fnv(SVI_FNV_SEED, why->text, strlen(why->text));
    l->refused++;
    for (int i = 0; i < SVI_MERGE_REASONS; i++)
        if (l->reported[i] == hash)
            return;
    l->reported[l->reports++ % SVI_MERGE_REASONS] = hash;
    snprintf(reason, sizeof reason, "a %s from merge.from was refused: %s", l->keyed ? "prior" : "model",
             why->text);
    svi_write_ahead_refuse(w, stream, why->code, reason, NULL, 0, now);
}

/* One merger has an address at a time, so this one is the later one, whatever the clocks say. It is not
 * followed, because the order of models must be the same in a replay; but nor is that silent. */
static svs_code link_fail_earlier(svs_error *err) {
    return svi_fail(err, SVS_UNAVAILABLE,
                    "the clock of this merger is slower than that of the one followed so far: correct it and "
                    "restart the merger, or set merge.from none and then its address");
}

/* Keeps the payload if it is a merged model newer than the one that waits and the one that the engine has. */
static svs_code link_offer(struct svi_merge_link *l, svi_stream *stream, const void *bytes, size_t size,
                           svs_error *err) {
    struct svi_merged_from from;
    SVI_TRY(svi_merged_read(&from, bytes, size, err));
    if (from.epoch < svi_engine_merged_epoch(svi_stream_root(stream)))
        return link_fail_earlier(err);
    const struct svi_merged_from *last = &l->from;
    const bool later = l->waiting.size == 0 || from.epoch > last->epoch ||
                       (from.epoch == last->epoch && from.version > last->version);
    if (!later || !svi_engine_wants_merged(svi_stream_root(stream), &from))
        return SVS_OK;
    l->waiting.size = 0;
    l->from = from;
    if (svi_bytes_append(&l->waiting, bytes, size) == SVS_OK)
        return SVS_OK;
    l->waiting.size = 0;
    return svi_fail_memory(err, "a merged model");
}

/* The same for the map of a prior event, whose seq stands for a version. */
static svs_code link_offer_prior(struct svi_merge_link *l, svi_stream *stream, const void *bytes, size_t size,
                                 svs_error *err) {
    static const struct svi_field fields[] = {SVI_FIELD(struct link_prior, epoch, UINT, 0, 0),
                                              SVI_FIELD(struct link_prior, seq, UINT, 0, 0),
                                              SVI_FIELD(struct link_prior, prior, ANY, 0, 0)};
    const uint8_t *end = (const uint8_t *)bytes + size, *after;
    struct link_prior p = {0};
    bool again = false;
    SVI_TRY(svi_msgpack_check(bytes, size, SVI_DEPTH_MAX, err));
    SVI_TRY(svi_fields_read("prior event", SVI_FIELDS(fields), bytes, end, &p, err));
    after = p.prior;
    svi_walk(&after, end, SVI_DEPTH_MAX);
    const struct svi_merged_from *last = &l->from;
    if (p.epoch < last->epoch)
        return link_fail_earlier(err);
    if (p.epoch == last->epoch && l->received && p.seq <= last->version)
        return SVS_OK;
    l->from.epoch = p.epoch;
    l->from.version = p.seq;
    l->received = true;
    l->waiting.size = 0;
    SVI_TRY(svi_fleet_merged_check(stream, p.prior, (size_t)(after - p.prior), &again, err));
    if (!again && svi_bytes_append(&l->waiting, p.prior, (size_t)(after - p.prior)) != SVS_OK)
        return svi_fail_memory(err, "a merged prior");
    return SVS_OK;
}

static svs_code link_take_event(struct svi_merge_link *l, svi_stream *stream, const void *bytes, size_t size,
                                svs_error *err) {
    return l->keyed ? link_offer_prior(l, stream, bytes, size, err) : link_offer(l, stream, bytes, size, err);
}

static void link_receive(struct svi_merge_link *l, svi_stream *stream, svi_write_ahead *w, double now) {
    struct svi_frames frames;
    svs_error err;
    for (int i = 0; i < TURN_MODELS; i++) {
        zmq_msg_t m;
        zmq_msg_init(&m);
        const bool any = svi_last_frame(l->socket, &m, &frames);
        const bool whole = any && svi_access_takes(l->access, SVI_SOCKET_MERGER, &m, &frames);
        if (whole && link_take_event(l, stream, zmq_msg_data(&m), zmq_msg_size(&m), &err) != SVS_OK)
            link_refuse(l, stream, w, &err, now);
        zmq_msg_close(&m);
        if (!any)
            return;
    }
}

/* The record first, then the effect. If memory runs out between them, a restart takes what this process could
 * not: it must end. */
static svs_code link_apply(struct svi_merge_link *l, svi_stream *stream, svi_write_ahead *w, double now,
                           svs_error *err) {
    const void *bytes = l->waiting.data;
    const size_t size = l->waiting.size;
    const int kind = l->keyed ? SVI_RECORD_PRIOR : SVI_RECORD_MERGED;
    svs_code code = w ? svi_write_ahead_write(w, kind, now, bytes, size, err) : SVS_OK;
    const bool written = code == SVS_OK;
    if (written && l->keyed)
        code = svi_fleet_merged_take(stream, bytes, size, err);
    else if (written)
        code = svi_engine_take_merged(svi_stream_root(stream), bytes, size, err);
    if (code == SVS_DISK_FULL || (code == SVS_NO_MEMORY && (!written || !w))) {
        l->due = svi_monotonic() + RETRY;
        return SVS_OK;
    }
    l->waiting.size = 0;
    l->taken_at = svi_monotonic();
    l->due = l->taken_at + (l->keyed ? SVI_MERGE_PRIOR_SECONDS : SVI_MERGE_SECONDS) +
             (double)size / BYTES_A_SECOND;
    return code;
}

svs_code svi_merge_link_turn(struct svi_merge_link *l, svi_stream *stream, svi_write_ahead *w, double now,
                             svs_error *err) {
    if (!l->address[0])
        return SVS_OK;
    link_receive(l, stream, w, now);
    if (l->waiting.size == 0 || svi_monotonic() < l->due)
        return SVS_OK;
    if (l->keyed)
        return link_apply(l, stream, w, now, err);
    switch (svi_engine_check_merged(svi_stream_root(stream), l->waiting.data, l->waiting.size, err)) {
    case SVI_MERGED_FITS:
        return link_apply(l, stream, w, now, err);
    case SVI_MERGED_EARLY: /* it waits for the first row, and is looked at again */
        l->due = svi_monotonic() + SVI_MERGE_SECONDS;
        return SVS_OK;
    case SVI_MERGED_REFUSED:
        link_refuse(l, stream, w, err, now);
        break;
    case SVI_MERGED_OLD:
        break;
    }
    /* Looking at a model takes time too. */
    l->due = svi_monotonic() + LOOK_SECONDS + (double)l->waiting.size / BYTES_LOOKED;
    l->waiting.size = 0;
    return SVS_OK;
}

double svi_merge_link_due(const struct svi_merge_link *l) {
    return l->waiting.size > 0 ? l->due : INFINITY;
}

void svi_merge_link_figures(const struct svi_merge_link *l, svi_stream *stream) {
    if (!l->address[0])
        return;
    svi_stream_set_gauge(stream, "merged_refused", (double)l->refused);
    svi_stream_set_gauge(stream, "merged_age", l->taken_at > 0 ? svi_monotonic() - l->taken_at : NAN);
}
