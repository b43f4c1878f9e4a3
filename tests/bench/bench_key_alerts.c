/* Alerts of a fleet in which nothing is wrong but in one of its keys: false ones a day of all keys together
 * against alert.budget, and how soon the fault is reported.
 *
 *   bench_key_alerts [KEYS [DAYS [BUDGET [FAULT]]]]   50, 7, 1/day, 8; a row a minute of each key */
#include "bench/bench.h"
#include "fleet/fleet.h"
#include "wire/event.h"
#include "wire/pack.h"

#define D      3
#define MINUTE 60.0
#define DAY    1440 /* minutes */
#define FAULTY 7    /* the key that has a fault, of FAULT deviations of one sensor ... */
#define LASTS  120  /* ... for that many minutes, 12 hours before the end */

struct fleet {
    svi_stream *e;
    double now, fault;
    int64_t opened, rules, grouped,
        found; /* false ones of novelty, of rules; keys that were named with others */
    double delay, deviations;
};

static void fleet_event(void *user, const struct svi_event *event) {
    struct fleet *f = user;
    char name[16];
    if (event->topic == SVI_TOPIC_ERROR)
        bench_die(event->as.error.reason);
    if (event->topic != SVI_TOPIC_ALERT || strcmp(event->as.alert.state, "open") != 0)
        return;
    snprintf(name, sizeof name, "m%d", FAULTY);
    const bool there = strcmp(event->key, name) == 0 && event->ts >= f->fault;
    if (!there) {
        *(event->as.alert.rule ? &f->rules : &f->opened) += 1;
    } else if (f->found++ == 0) {
        f->delay = event->ts - f->fault;
        printf("%s\n", event->as.alert.text);
    }
}

static void fleet_begin(struct fleet *f, const char *budget) {
    struct svi_settings s;
    svs_error err = {0};
    const char *const given[] = {
        "key",          "key",  "threads",         "2", "method",   "none", "scores", "0",
        "alert.budget", budget, "publish.seconds", "0", "ts.ahead", "1e9",  NULL};
    svi_settings_default(&s);
    for (int i = 0; given[i]; i += 2)
        if (svi_settings_set(&s, given[i], given[i + 1], &err) != SVS_OK)
            bench_die(err.text);
    f->e = svi_stream_new(&s, 1, fleet_event, f, &err);
    if (!f->e)
        bench_die(err.text);
    svi_stream_use_threads(f->e);
    svi_stream_leave_open(f->e, true);
}

/* A row of each key. */
static void fleet_minute(struct fleet *f, int keys, uint64_t *seed, struct svi_bytes *frame) {
    struct svi_envelope env;
    struct svi_pack p;
    const bool fault = f->now >= f->fault && f->now < f->fault + LASTS * MINUTE;
    frame->size = 0;
    svi_pack_begin(&p, frame);
    svi_pack_array(&p, (size_t)keys);
    if (svi_pack_end(&p) != SVS_OK)
        bench_die("out of memory");
    for (int k = 0; k < keys; k++) {
        double x[D];
        char key[16];
        snprintf(key, sizeof key, "m%d", k);
        for (int j = 0; j < D; j++)
            x[j] = k + bench_gauss(seed);
        x[1] += fault && k == FAULTY ? f->deviations : 0;
        const struct svi_message m = {.has_x = true,
                                      .kind = SVI_DENSE,
                                      .d = D,
                                      .x = x,
                                      .ts = f->now,
                                      .weight = 1,
                                      .n = -1,
                                      .key = svs_str(key)};
        svi_message_encode(&m, NULL, false, frame);
    }
    if (svi_envelope_read(&env, frame->data, frame->size) != SVS_OK)
        bench_die("a message is none");
    svi_stream_apply_later(f->e, &env, f->now, false, NULL);
    svi_stream_settle(f->e);
}

int main(int argc, char **argv) {
    const int keys = argc > 1 ? atoi(argv[1]) : bench_pick(12, 50, 50),
              days = argc > 2 ? atoi(argv[2]) : bench_pick(1, 7, 7);
    const char *budget = argc > 3 ? argv[3] : "1/day";
    struct fleet f = {.now = 1.7e9, .deviations = argc > 4 ? atof(argv[4]) : 8};
    struct svi_bytes frame = {0};
    uint64_t seed = 11;
    f.fault = f.now + (days - 0.5) * DAY * MINUTE;
    fleet_begin(&f, budget);
    for (int64_t i = 0; i < (int64_t)days * DAY; i++, f.now += MINUTE) {
        fleet_minute(&f, keys, &seed, &frame);
        if (i % DAY == DAY - 1)
            printf("day %lld  false %lld  rules %lld\n", (long long)(i / DAY + 1), (long long)f.opened,
                   (long long)f.rules);
    }
    printf("%d keys, %d days, %s: %lld false alerts, %.2f a day; %lld of rules; the fault %s", keys, days,
           budget, (long long)f.opened, (double)f.opened / days, (long long)f.rules,
           f.found ? "" : "was not reported\n");
    if (f.found)
        printf("was reported after %.0f minutes, in %lld alerts\n", f.delay / MINUTE, (long long)f.found);
    bench_row((struct bench_row){.ours = (double)f.opened / days,
                                 .bar = argc == 1 && !bench_quick() ? "<= 1" : NULL,
                                 .exact = true},
              "fleet of %d keys, %d days, budget 1/day: false alerts a day", keys, days);
    bench_row(
        (struct bench_row){
            .ours = f.found ? f.delay / MINUTE : NAN, .unit = "min", .bar = "<= 60", .exact = true},
        "fleet of %d keys: a fault of one key is reported after", keys);
    svi_stream_free(&f.e);
    svi_bytes_clear(&frame);
    return bench_end();
}
