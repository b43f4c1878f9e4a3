/* The outbox by random walks: a process that dies with and without its state, power cuts, connections that
 * break and bring old messages late, lost and doubled messages, refusals for good and for now, a process that
 * forgets the producer after a long silence. Whatever
 * happens, each sample changes a state at most once, in order; none is released before it may be; and what a
 * state lacks in the end is exactly what the outbox says is lost. */
#include "support/outbox.h"

#include "base/random.h"

#define IDS 4000

struct walk {
    struct bench b;
    struct svi_random random;
    uint8_t taken[IDS];   /* in some life */
    uint8_t settled[IDS]; /* released before this life began */
    bool replay;
    bool leaves; /* the folder of the state can go, too */
    bool left;   /* it did */
};

static int returned; /* producers that were forgotten, in all walks */

static uint32_t below(struct walk *w, uint32_t n) {
    return svi_random_below(&w->random, n);
}

static void on_taken(void *user, int64_t id) {
    struct walk *w = user;
    assert_true(id >= 0 && id < IDS);
    /* What was acknowledged is never sent to a later process. A kept state may get it from a copy that was on
     * the way before a power cut: that is as good. */
    assert_false(w->settled[id] && !w->replay && !w->b.r.keeps);
    w->taken[id] = 1;
}

/* Nothing may be released before it is on disk. A process that does not tell its level may be taken for one
 * that keeps nothing, until its numbers tell otherwise. */
static bool is_safe(const struct walk *w) {
    return w->b.box->o.release != SVS_OUTBOX_TAKEN && !w->replay && w->b.r.keeps && w->b.r.level && !w->left;
}

static void on_event(void *user, const svs_outbox_event *e) {
    struct walk *w = user;
    hark(&w->b, e);
    if (e->kind == SVS_OUTBOX_ACKED || e->kind == SVS_OUTBOX_REFUSED)
        for (int64_t i = e->first; i <= e->last; i++)
            assert_true(w->taken[i]); /* nothing is acknowledged that no process has taken */
    if (e->kind == SVS_OUTBOX_ACKED && is_safe(w))
        assert_true(e->last < w->b.r.synced && w->b.r.log[e->last] == e->last); /* nor is not on disk */
}

static void crash(struct walk *w) {
    struct receiver *r = &w->b.r;
    const svs_outbox *box = w->b.box;
    const int lost = (int)below(w, (uint32_t)r->in.count + 1),
              unheard = (int)below(w, (uint32_t)r->out.count + 1);
    const bool leaves = !r->keeps || (w->leaves && below(w, 4) == 0);
    w->left = w->left || leaves;
    if (leaves)
        receiver_die(r, 0, lost, unheard);
    else /* killed, or a power cut */
        receiver_fall(r, below(w, 2) ? r->next : r->synced + below(w, (uint32_t)(r->next - r->synced) + 1),
                      lost, unheard);
    for (int64_t i = 0; i < box->first; i++)
        w->settled[i] = 1;
    if (below(w, 2))
        svs_outbox_broken(w->b.box, w->b.now);
}

/* Nothing is on the way, and everything is answered for: the process may have been silent for a week. */
static void forget(struct walk *w) {
    struct receiver *r = &w->b.r;
    const svs_outbox *box = w->b.box;
    r->forgotten =
        r->forgotten || (r->run > 0 && box->run == r->run && box->met && box->phase == SVI_LIVE &&
                         box->sent == box->taken && box->first + box->taken == r->next + box->shift &&
                         r->next > 0 && r->in.count + r->out.count + r->late.count == 0);
}

static void put_some(struct walk *w) {
    int64_t wanted = svs_outbox_wanted(w->b.box);
    for (uint32_t i = below(w, 20); i > 0 && wanted >= 0 && wanted < IDS; i--)
        if (put_id(&w->b, wanted, below(w, 100)) == SVS_OK)
            wanted++;
}

static void send_some(struct walk *w) {
    const void *bytes;
    size_t size;
    for (uint32_t i = below(w, 30); i > 0 && svs_outbox_frame(w->b.box, w->b.now, &bytes, &size); i--)
        if (below(w, 10) && w->b.r.in.count < PIPE - 10) { /* else the socket takes nothing */
            way_add(&w->b.r.in, bytes, size);
            svs_outbox_sent(w->b.box, w->b.now);
        }
}

static void receive_some(struct walk *w) {
    for (uint32_t i = below(w, 30); i > 0 && w->b.r.in.count > 0 && w->b.r.out.count < PIPE - 10; i--)
        if (w->b.r.late.count > 0 && below(w, 3) == 0)
            receiver_turn_late(&w->b.r);
        else
            receiver_turn(&w->b.r, below(w, 40) == 0);
}

static void hear_some(struct walk *w) {
    for (uint32_t i = below(w, 30); i > 0 && w->b.r.out.count > 0; i--)
        hear_one(&w->b);
}

static void step(struct walk *w) {
    switch (below(w, 12)) {
    case 0:
        if (below(w, 8) == 0)
            crash(w);
        break;
    case 1:
        w->b.r.busy = below(w, 10) == 0 ? "disk_full" : NULL;
        w->b.r.credit = below(w, 4) ? below(w, 40) : 1000;
        break;
    case 2:
        w->b.now += below(w, 3) ? 0.05 : 1.1;
        w->b.r.synced = below(w, 2) ? w->b.r.next : w->b.r.synced;
        break;
    case 3: /* the connection breaks, the process lives on */
        if (below(w, 4) == 0)
            forget(w);
        else if (below(w, 20) == 0 && w->b.r.next + w->b.box->shift >= w->b.box->first)
            receiver_reconnect(&w->b.r); /* while numbers stay: else no message may be late (outbox.h) */
        else if (below(w, 10) == 0)
            way_lose(&w->b.r.in, (int)below(w, (uint32_t)w->b.r.in.count + 1));
        break;
    case 4:
    case 5:
        put_some(w);
        break;
    case 6:
    case 7:
        send_some(w);
        break;
    case 8:
    case 9:
        receive_some(w);
        break;
    default:
        hear_some(w);
    }
    assert_true(svi_outbox_check(w->b.box));
}

/* The faults end: everything must come through. */
static void calm_down(struct walk *w) {
    w->b.r.busy = NULL;
    w->b.r.always = true;
    svs_outbox_broken(w->b.box, w->b.now); /* perhaps it died last, and nobody knows */
    while (w->b.r.late.count > 0)
        receiver_turn_late(&w->b.r);
    w->b.r.credit = 100;
    for (int i = 0; i < 2000; i++) {
        int64_t wanted = svs_outbox_wanted(w->b.box);
        while (w->replay && wanted >= 0 && wanted < w->b.put && put_id(&w->b, wanted, 3) == SVS_OK)
            wanted++;
        settle_down(&w->b);
        w->b.r.synced = w->b.r.next;
        if (svs_outbox_done(w->b.box) && svs_outbox_wanted(w->b.box) >= w->b.put)
            return;
        double wait = svs_outbox_wait(w->b.box, w->b.now);
        w->b.now += wait < 100 ? wait : 0.1;
    }
    fail_msg("it does not come to an end");
}

/* The state that is there in the end: each sample once, in order, and all that were not lost. */
static void check_state(const struct walk *w, const svs_outbox_figures *f) {
    const struct receiver *r = &w->b.r;
    int64_t last = -1;
    for (int64_t n = 0; n < r->next; n++) {
        assert_true(r->log[n] > last || r->log[n] == -1);
        last = r->log[n] == -1 ? last : r->log[n];
    }
    assert_int_equal(r->next, w->b.put - f->lost);
    assert_true(w->replay ? f->lost == 0 : f->acked + f->refused == w->b.put && f->dropped == 0);
    if (is_safe(w))
        assert_int_equal(f->lost, 0);
}

static void random_walk(uint64_t seed) {
    static struct walk w;
    memset(&w, 0, sizeof w);
    w.random.state = seed;
    w.replay = below(&w, 2);
    const bool keeps = below(&w, 3) > 0;
    w.leaves = below(&w, 3) == 0;
    svs_outbox_options o = defaults();
    o.release = (svs_outbox_release)below(&w, keeps && !w.leaves ? 3 : 2);
    o.replay = w.replay;
    o.samples = 1 + below(&w, 300);
    o.bytes = 1024 + below(&w, 20000);
    o.message = 256 + below(&w, 1000);
    o.batch = 1 + (int)below(&w, 10);
    o.window = 1 + (int)below(&w, 50);
    o.timeout = 1;
    begin(&w.b, o);
    w.b.box->o.notify = on_event;
    w.b.box->o.user = &w;
    w.b.r.keeps = keeps;
    w.b.r.level = keeps && (o.release == SVS_OUTBOX_DURABLE || below(&w, 3)) ? "at-least-once" : NULL;
    w.b.r.always = keeps && below(&w, 4) == 0;
    w.b.r.run = below(&w, 3) ? 1 : 0;
    w.b.r.skips = true; /* the log is looked at in the end */
    w.b.r.took = on_taken;
    w.b.r.user = &w;
    w.b.r.refuse_every = below(&w, 2) ? 0 : 2 + (int)below(&w, 20);
    for (int i = 0; i < 3000; i++) {
        step(&w);
        int64_t wanted = svs_outbox_wanted(w.b.box);
        w.b.put = wanted > w.b.put ? wanted : w.b.put;
    }
    calm_down(&w);
    returned += w.b.r.returned;
    if (below(&w, 2)) {
        svs_outbox_leave(w.b.box);
        assert_false(svs_outbox_done(w.b.box));
        settle_down(&w.b);
        assert_true(w.b.r.bye && svs_outbox_done(w.b.box));
    }
    svs_outbox_figures f = status(&w.b);
    assert_int_equal(w.b.r.repeated, 0);
    for (int64_t i = 0; i < w.b.put; i++)
        assert_true(w.taken[i]);
    assert_true(f.under_way == 0 && f.kept == 0);
    check_state(&w, &f);
    end(&w.b);
}

static void test_walks(void **unused) {
    (void)unused;
    const int count = getenv("SVMSTREAM_QUICK") ? 60 : 400;
    for (int i = 0; i < count; i++)
        random_walk(1000 + (uint64_t)i);
    assert_true(returned > count / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_walks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
