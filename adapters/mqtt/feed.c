/* Samples on their way to svmstream. The outbox of the client library keeps them until they are
 * acknowledged, and sends them again when svmstream was restarted; here they are made of the values of a
 * join, refusals and silence are reported, and the counters filled. */
#include "feed.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "data/message.h"
#include "log.h"

#define WINDOW    256  /* samples under way, if svmstream gives as much credit */
#define PATIENCE  5.0  /* seconds without an answer before it is reported */
#define PAUSE_MAX 5.0  /* longest pause after a passing refusal */
#define STRANGER  1.0  /* seconds for which a peer that is not svmstream is left alone */
#define LINGER_MS 1500 /* --no-ack: for what ZeroMQ holds at the end */

/* What a person can do about a refusal, where the reason is not enough. */
static const char *mqtt_feed_hint(const char *code) {
    return strcmp(code, svs_code_name(SVS_BAD_KEY)) == 0 ? ": --key needs `svmstream run --key`" : "";
}

/* What the outbox reports. */
static void mqtt_feed_receive(void *user, const svs_outbox_event *e) {
    struct feed *f = user;
    f->answered = true;
    if (e->kind == SVS_OUTBOX_REFUSED) {
        char key[4 * SVS_KEY_MAX + 1];
        struct join *j = mqtt_joins_find(f->joins, e->key);
        mqtt_log_few(++f->refusals, "svmstream refuses a sample%s%s: %s (%s)%s", e->key[0] ? " of key " : "",
                     svi_escape(key, sizeof key, e->key, strlen(e->key)), e->reason, e->code,
                     mqtt_feed_hint(e->code));
        /* svmstream carries an absent value over from an earlier one, and has none for a feature: the
         * features that the reason names are left out until they have a value, or every further sample would
         * be refused. */
        if (j && strstr(e->reason, SVI_NOTHING_TO_CARRY))
            mqtt_join_leave_out(j, e->reason);
    } else if (e->kind == SVS_OUTBOX_LATER) {
        mqtt_log_few(++f->complaints, "svmstream takes nothing for now: %s (%s)", e->reason, e->code);
    } else if (e->kind == SVS_OUTBOX_RESTARTED) {
        mqtt_log("svmstream was restarted: %" PRId64 " samples that it has not acknowledged go to it",
                 mqtt_feed_waiting(f));
        if (e->count > 0)
            mqtt_log("%" PRId64 " samples that it had acknowledged are lost: %s", e->count, e->reason);
    }
}

int mqtt_feed_open(struct feed *f, const struct options *o, struct counters *c, struct joins *j) {
    svs_outbox_options box;
    svs_error err;
    *f = (struct feed){.options = o, .counters = c, .joins = j, .last_answer = svi_monotonic()};
    svs_outbox_defaults(&box);
    box.src = o->client_id;
    box.release = o->no_ack ? SVS_OUTBOX_SENT : SVS_OUTBOX_TAKEN;
    box.samples = o->buffer;
    box.bytes = INT64_C(1) << 40; /* --buffer is the bound */
    box.window = (int)fmin(WINDOW, (double)o->buffer - 1);
    box.timeout = PATIENCE;
    box.pause_max = PAUSE_MAX;
    box.notify = mqtt_feed_receive;
    box.user = f;
    if (link_open(&f->link, o->in, &o->identity, &box, o->no_ack ? LINGER_MS : 0, &err) == SVS_OK)
        return 0;
    mqtt_log("--in %s: %s", o->in, err.text);
    return 1;
}

/* One sample with the values of now. A feature that never had a value is left out unless it is listed
 * (mqtt_join_takes); one whose value is missing or stale is NAN. */
void mqtt_feed_push(void *feed, const struct join *j, double ts, const struct sample_id *id) {
    struct feed *f = feed;
    double x[FEATURES_MAX];
    const char *names[FEATURES_MAX];
    svs_error err;
    int d = 0;
    for (int i = 0; i < j->sensors; i++) {
        if (!mqtt_join_takes(j, &j->sensor[i]))
            continue;
        names[d] = j->sensor[i].name;
        if (!mqtt_join_current(j, &j->sensor[i], ts, &x[d]))
            x[d] = NAN;
        d++;
    }
    if (d == 0) /* there has been no value yet */
        return;
    const svs_outbox_sample sample = {
        .x = x, .d = d, .names = names, .id = id->value, .ts = ts, .has_ts = true, .key = j->key};
    svs_code code = svs_outbox_pack(f->link.box, &sample, &err);
    /* A full buffer gives up its oldest sample: the newest values say more about now. */
    if (code == SVS_LIMIT && svs_outbox_drop(f->link.box)) {
        mqtt_log_few(++f->counters->dropped,
                     "the buffer is full (--buffer %" PRId64 "): the oldest sample is dropped",
                     f->options->buffer);
        code = svs_outbox_pack(f->link.box, &sample, &err);
    }
    if (code != SVS_OK)
        mqtt_log_few(++f->failed, "a sample is dropped: %s", err.text);
    f->counters->samples++;
}

/* Samples that svmstream has not confirmed: those under way and those that wait. */
int64_t mqtt_feed_waiting(const struct feed *f) {
    svs_outbox_figures now;
    svs_outbox_status(f->link.box, &now);
    return now.kept;
}

double mqtt_feed_wait(const struct feed *f) {
    /* Silence is reported after PATIENCE seconds without a sign of life, and once: `silent` holds until the
     * next one. */
    const double left = f->silent ? HUGE_VAL : f->last_answer + PATIENCE - svi_monotonic();
    const double pause = f->again - svi_monotonic();
    return fmax(0, fmin(left, pause > 0 ? pause : link_wait(&f->link)));
}

/* During the pause after a peer that is not svmstream nothing of the link is polled. */
int mqtt_feed_items(const struct feed *f, zmq_pollitem_t *items) {
    return svi_monotonic() < f->again ? 0 : link_items(&f->link, items);
}

/* One turn: the link sends and receives, then figures become counters and signs of life. */
void mqtt_feed_turn(struct feed *f) {
    const struct options *o = f->options;
    const svs_outbox_figures *now = &f->figures;
    svs_error err;
    /* A peer that does not speak our protocol is left alone for a while: trying again at once would fill the
     * log and the processor. */
    if (svi_monotonic() >= f->again && link_turn(&f->link, &err) != SVS_OK) {
        mqtt_log_few(++f->complaints, "%s", err.text);
        f->again = svi_monotonic() + STRANGER;
    }
    svs_outbox_status(f->link.box, &f->figures);
    f->counters->sent = now->sent;
    f->counters->acked = o->no_ack ? 0 : now->acked;
    f->counters->refused = now->refused;
    f->counters->dropped = now->dropped + f->failed;
    f->counters->restarts = now->restarts;
    if (now->greeted && !f->met && !o->no_ack)
        mqtt_log("svmstream answers at %s", o->in);
    /* An acknowledgement, a refusal or a first greeting is an answer. With nothing to send silence is no
     * fault. */
    const int64_t settled = now->acked + now->refused;
    const bool answered = f->answered || settled != f->settled || (now->greeted && !f->met);
    if (answered && f->silent)
        mqtt_log("svmstream answers again");
    f->met = f->met || now->greeted;
    f->silent = f->silent && !answered;
    f->settled = settled;
    f->answered = false;
    if (answered || (now->greeted && now->kept == 0))
        f->last_answer = svi_monotonic();
    else if (!f->silent && svi_monotonic() - f->last_answer >= PATIENCE) {
        f->silent = true;
        mqtt_log("no answer from %s for %g s: is `svmstream run --in %s --in.mode %s` running%s? %" PRId64
                 " of %" PRId64 " places in the buffer are taken",
                 o->in, PATIENCE, o->in, o->no_ack ? "pull" : "router",
                 o->identity.on ? ", and is our key in its allow file with the role ingest"
                                : ", without CURVE (else give --curve and --curve.server)",
                 now->kept, o->buffer);
    }
}
