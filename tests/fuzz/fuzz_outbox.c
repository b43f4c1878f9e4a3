/* Any bytes as the replies of a process, between what a producer does meanwhile: each step is one byte; a
 * reply is that and two bytes of length. Nothing that comes back may bring the producer's books into
 * disorder. */
#include "fuzz/target.h"

#include "client/outbox_internal.h"

static void notify(void *user, const svs_outbox_event *e) {
    svs_outbox *box = *(svs_outbox **)user;
    svs_outbox_figures f;
    must(e->code && e->reason && e->count >= 0 && e->wait >= 0);
    svs_outbox_status(box, &f);
}

static void put(svs_outbox *box, uint64_t id) {
    uint8_t sample[] = {0x82, 0xa2, 'i', 'd', (uint8_t)(id & 127), 0xa1, 'x', 0x91, 1};
    (void)svs_outbox_put(box, sample, sizeof sample, NULL);
}

static void send_all(svs_outbox *box, double now, uint64_t most) {
    const void *bytes;
    size_t size;
    for (uint64_t i = 0; i < most && svs_outbox_frame(box, now, &bytes, &size); i++) {
        const uint8_t *at = bytes;
        must(svi_walk(&at, at + size, SVI_WALK_MAX) == SVS_OK && at == (const uint8_t *)bytes + size);
        svs_outbox_sent(box, now);
    }
}

static void reply(svs_outbox *box, struct input *in, double now) {
    svs_error err = {SVS_OK, ""};
    size_t length = (size_t)input_take(in, 2), left = input_left(in);
    length = length < left ? length : left;
    svs_code code = svs_outbox_reply(box, in->at, length, now, &err);
    must(code == SVS_OK || err.text[0]);
    in->at += length;
}

static void check(const svs_outbox *box) {
    svs_outbox_figures f;
    must(svi_outbox_check(box));
    svs_outbox_status(box, &f);
    must(f.put == f.acked + f.refused + f.dropped + f.kept && f.kept >= 0 && f.unsent >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input in = {data, data + size};
    svs_outbox *box;
    svs_outbox_options o;
    double now = 0;
    const unsigned how = (unsigned)input_take(&in, 1);
    svs_outbox_defaults(&o);
    o.src = "fuzz";
    o.notify = notify;
    o.user = &box;
    o.replay = how & 1;
    o.batch = how & 2 ? 3 : 1;
    o.samples = how & 4 ? 4 : 40;
    o.window = how & 8 ? 2 : 16;
    box = svs_outbox_new(&o, NULL);
    must(box != NULL);
    for (int i = 0; i < 200 && input_left(&in) > 0; i++) {
        const unsigned step = (unsigned)input_take(&in, 1);
        now += (step >> 4) * 0.1;
        if (step % 4 == 0)
            put(box, (uint64_t)i);
        else if (step % 4 == 1)
            send_all(box, now, 1 + step / 16);
        else if (step % 16 == 2)
            svs_outbox_broken(box, now);
        else
            reply(box, &in, now);
        check(box);
    }
    svs_outbox_free(&box);
    return 0;
}
