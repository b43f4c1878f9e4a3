/* The engine of `run` on a file, with what it says of each row next to it, for alerts.py.
 *
 * usage: bench_alerts FILE scores|alerts|judges [NAME=VALUE...]  (settings; method none and no label are
 * given)
 *
 * Prints a line for each row, `S ROW {score event}` (with `scores`), or `J ROW SURPRISE/LEVEL ...` of each
 * judge (evidence.h, with `judges`), and for each alert event `A ROW {event}`, ROW from 1: the row after
 * which it came. A row arrives at the time that it bears, as it would live: what goes by arrival is judged
 * so. */
#include <inttypes.h>
#include <math.h>

#include "bench/bench.h"

#include "engine/engine_internal.h"
#include "fleet/fleet.h"
#include "data/reader.h"
#include "wire/json.h"
#include "wire/pack.h"

struct played {
    svi_stream *stream;
    svi_reader *reader;
    struct svi_bytes map, text;
    bool scores, judges;
    int64_t row;
    double now;
};

static void say(struct played *p, char what) {
    p->text.size = 0;
    if (svi_json_msgpack(&p->text, p->map.data, p->map.size, NULL) != SVS_OK)
        bench_die("out of memory");
    printf("%c %" PRId64 " %.*s\n", what, p->row, (int)p->text.size, (const char *)p->text.data);
}

static void played_event(void *user, const struct svi_event *event) {
    struct played *p = user;
    p->map.size = 0;
    if (event->topic == SVI_TOPIC_ERROR)
        fprintf(stderr, "row %" PRId64 ": %s\n", p->row, event->as.error.reason);
    if (event->topic == SVI_TOPIC_ALERT) {
        if (svi_event_encode(event, &p->map) != SVS_OK)
            bench_die("out of memory");
        say(p, 'A');
    }
    if (event->topic == SVI_TOPIC_SCORE && p->scores) {
        struct svi_pack pack;
        svi_pack_begin(&pack, &p->map);
        const struct svi_open_map map = svi_pack_open(&pack);
        svi_put_score(&pack, event, NULL);
        svi_pack_close(&pack, map);
        if (svi_pack_end(&pack) != SVS_OK)
            bench_die("out of memory");
        say(p, 'S');
    }
}

/* The surprise of each judge at the row, next to the level that opens an alert. */
static void played_judges(struct played *p) {
    const struct svi_alert_stage *s = svi_stream_root(p->stream)->novelty;
    printf("J %" PRId64, p->row);
    for (int i = 0; i < SVI_DETECTORS; i++)
        printf(" %.3g/%.3g", s->evidence[i].surprise, s->policy.budget.detector[i].level);
    printf(" %.3g\n", s->policy.alarm);
}

static void played_open(struct played *p, const char *file, char **settings) {
    struct svi_settings s;
    svs_error err = {0};
    svi_settings_default(&s);
    svs_code code = svi_settings_set(&s, "method", "none", &err);
    if (code == SVS_OK)
        code = svi_settings_set(&s, "label", "", &err);
    for (; code == SVS_OK && *settings; settings++) {
        char name[200];
        snprintf(name, sizeof name, "%s", *settings);
        char *value = strchr(name, '=');
        if (!value)
            bench_die("a setting is NAME=VALUE");
        *value = 0;
        code = svi_settings_set(&s, name, value + 1, &err);
    }
    s.publish_every = 0;
    s.publish_seconds = 0;
    s.scores = p->scores ? SVI_SCORES_ALL : SVI_SCORES_NONE;
    if (code != SVS_OK)
        bench_die(err.text);
    const struct svi_reader_options o = svi_settings_reader(&s);
    p->reader = svi_reader_open(file, &o, NULL, &err);
    if (!p->reader || svi_reader_settle(p->reader, &err) != SVS_OK)
        bench_die(err.text);
    p->stream = svi_stream_new(&s, 0, played_event, p, &err);
    if (!p->stream)
        bench_die(err.text);
    svi_reader_shape(p->reader, &svi_engine_schema(svi_stream_root(p->stream))->shape);
}

/* Until the next row comes: what passing time brings about falls due. */
static void played_until(struct played *p, double now) {
    for (double due = svi_stream_deadline(p->stream); due < now;) {
        svi_stream_pass(p->stream, due);
        const double next = svi_stream_deadline(p->stream);
        due = next > due ? next : INFINITY;
    }
    p->now = now;
}

static void played_rows(struct played *p) {
    struct svi_message m;
    const char *bytes;
    size_t length;
    svs_error why = {0};
    for (;;) {
        const enum svi_read what = svi_reader_row(p->reader, &m, &why);
        if (what == SVI_READ_END)
            return;
        if (what != SVI_READ_ROW)
            bench_die(why.text);
        p->row++;
        const double now = isnan(m.ts) ? p->now + 1 : m.ts;
        if (p->row == 1)
            svi_stream_begin(p->stream, now);
        played_until(p, now);
        svi_reader_line(p->reader, &bytes, &length);
        svi_stream_message(p->stream, &m, bytes, length, now, &why);
        if (p->judges)
            played_judges(p);
    }
}

int main(int argc, char **argv) {
    struct played p = {.row = 0};
    if (argc < 3)
        bench_die("usage: bench_alerts FILE scores|alerts [NAME=VALUE...]");
    p.scores = strcmp(argv[2], "scores") == 0;
    p.judges = strcmp(argv[2], "judges") == 0;
    played_open(&p, argv[1], argv + 3);
    played_rows(&p);
    svi_stream_free(&p.stream);
    svi_reader_close(&p.reader);
    svi_bytes_clear(&p.map);
    svi_bytes_clear(&p.text);
    return 0;
}
