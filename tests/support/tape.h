/* tape.h: an engine fed with made samples, and its scores, alerts and models, in order. Samples are
 * a function of their number alone, so they are the same however they are framed. */
#ifndef TEST_SUPPORT_TAPE_H
#define TEST_SUPPORT_TAPE_H

#include "support/problem.h"

#include "base/alloc.h"
#include "fleet/fleet.h"
#include "alerts/alert_text.h"
#include "wire/pack.h"
#include "support/apply.h"

#define CLOCK        2e9          /* arrival */
#define START        1700000000.0 /* ts of the first sample; one a second */
#define PUMP         3            /* features of the pump */
#define COLUMNS      64           /* of a row at most */
#define SAMPLES_MAX  40000
#define ALERTS_MAX   4000
#define CONTRIBUTORS 5

/* One element of a frame. */
struct row {
    const char *op;           /* NULL = a sample */
    double x[COLUMNS];        /* NAN = missing */
    int d;                    /* of them are sent */
    const char *const *names; /* x is a map by these; NULL = an array */
    int y;                    /* -1 = none */
    int id;                   /* -1 = none */
    double ts;
};

/* One alert event. */
struct told {
    const char *kind, *measure; /* NULL: none */
    int64_t alert;
    double before, after;
    const char *state;
    int at; /* number of its sample among the scores */
    double ts, novelty, membership, p, grade, since;
    int count;
    struct svi_contribution top[CONTRIBUTORS];
    char name[CONTRIBUTORS][32]; /* "" = none */
    char text[SVI_ALERT_TEXT];
};

struct tape {
    struct svi_settings s;
    svi_stream *e;
    struct svi_bytes deeds, models; /* every score and alert; every model */
    struct svi_bytes event, frame;
    double *p, *novelty; /* of each score event; NAN = not told */
    uint64_t *version;
    int count[SVI_TOPIC_COUNT];
    struct told *told;
    svs_code error;
    char reason[SVS_ERROR_TEXT];
};

static inline void tape_alert(struct tape *t, const struct svi_event *e) {
    struct told *a = &t->told[t->count[SVI_TOPIC_ALERT]];
    assert_true(t->count[SVI_TOPIC_ALERT] < ALERTS_MAX);
    assert_in_range(e->as.alert.count, 0, CONTRIBUTORS);
    *a = (struct told){.kind = e->as.alert.kind,
                       .measure = e->as.alert.measure,
                       .alert = e->as.alert.alert,
                       .before = e->as.alert.before,
                       .after = e->as.alert.after,
                       .state = e->as.alert.state,
                       .at = t->count[SVI_TOPIC_SCORE] - 1,
                       .ts = e->ts,
                       .novelty = e->as.alert.novelty,
                       .membership = e->as.alert.membership,
                       .p = e->as.alert.p,
                       .grade = e->as.alert.grade,
                       .since = e->as.alert.since,
                       .count = e->as.alert.count};
    for (int i = 0; i < a->count; i++) {
        a->top[i] = e->as.alert.top[i];
        snprintf(a->name[i], sizeof a->name[i], "%s", a->top[i].feature ? a->top[i].feature : "");
    }
    strcpy(a->text, e->as.alert.text);
}

static inline void tape_sink(void *user, const struct svi_event *e) {
    struct tape *t = user;
    const int n = t->count[e->topic];
    struct svi_bytes *to = e->topic == SVI_TOPIC_MODEL ? &t->models : &t->deeds;
    assert_int_equal(e->seq, n);
    assert_int_equal(svi_event_encode(e, &t->event), SVS_OK);
    if (e->topic == SVI_TOPIC_MODEL || e->topic == SVI_TOPIC_SCORE || e->topic == SVI_TOPIC_ALERT)
        assert_int_equal(svi_bytes_append(to, t->event.data, t->event.size), SVS_OK);
    if (e->topic == SVI_TOPIC_SCORE) {
        assert_true(n < SAMPLES_MAX);
        t->p[n] = e->as.score.judged ? e->as.score.p : NAN;
        t->novelty[n] = e->as.score.judged ? e->as.score.novelty : NAN;
        t->version[n] = e->as.score.version;
    } else if (e->topic == SVI_TOPIC_ALERT) {
        tape_alert(t, e);
    } else if (e->topic == SVI_TOPIC_ERROR) {
        t->error = e->as.error.code;
        snprintf(t->reason, sizeof t->reason, "%s", e->as.error.reason);
    }
    t->count[e->topic]++;
}

/* settings: "key value" pairs ended by NULL; `more` too, or NULL. */
static inline void tape_open(struct tape *t, const char *const *settings, const char *const *more) {
    const char *const *const lists[] = {settings, more};
    svs_error err = {0};
    memset(t, 0, sizeof *t);
    svi_settings_default(&t->s);
    svi_settings_set(&t->s, "alert.budget", "none", &err); /* unless it is among them: alerts by alert.p */
    for (int i = 0; i < 2; i++)
        for (const char *const *at = lists[i]; at && at[0]; at += 2)
            if (svi_settings_set(&t->s, at[0], at[1], &err) != SVS_OK)
                fail_msg("%s", err.text);
    svi_settings_settle_method(&t->s);
    if (svi_settings_check(&t->s, &err) != SVS_OK)
        fail_msg("%s", err.text);
    t->p = calloc(SAMPLES_MAX, sizeof *t->p);
    t->novelty = calloc(SAMPLES_MAX, sizeof *t->novelty);
    t->version = calloc(SAMPLES_MAX, sizeof *t->version);
    t->told = calloc(ALERTS_MAX, sizeof *t->told);
    assert_true(t->p && t->novelty && t->version && t->told);
    t->e = svi_stream_new(&t->s, 77, tape_sink, t, &err);
    if (!t->e)
        fail_msg("%s", err.text);
}

static inline void tape_close(struct tape *t) {
    svi_stream_free(&t->e);
    svi_bytes_clear(&t->deeds);
    svi_bytes_clear(&t->models);
    svi_bytes_clear(&t->event);
    svi_bytes_clear(&t->frame);
    free(t->p);
    free(t->novelty);
    free(t->version);
    free(t->told);
}

static inline void tape_features(struct svi_pack *p, const struct row *r) {
    svi_pack_text(p, "x");
    if (r->names)
        svi_pack_map(p, (size_t)r->d);
    else
        svi_pack_array(p, (size_t)r->d);
    for (int j = 0; j < r->d; j++) {
        if (r->names)
            svi_pack_text(p, r->names[j]);
        svi_pack_real(p, r->x[j]); /* NAN: nil */
    }
}

static inline void tape_pack(struct svi_pack *p, const struct row *r) {
    svi_pack_map(p, (size_t)(1 + (r->op != NULL) + (r->d > 0) + (r->y >= 0) + (r->id >= 0)));
    svi_pack_text(p, "ts");
    svi_pack_real(p, r->ts);
    if (r->op) {
        svi_pack_text(p, "op");
        svi_pack_text(p, r->op);
    }
    if (r->d > 0)
        tape_features(p, r);
    if (r->y >= 0) {
        svi_pack_text(p, "y");
        svi_pack_int(p, r->y);
    }
    if (r->id >= 0) {
        svi_pack_text(p, "id");
        svi_pack_int(p, r->id);
    }
}

typedef void tape_draw(int i, struct row *r);

/* Elements from .. to - 1 in frames of `batch`. */
static inline void tape_feed(struct tape *t, tape_draw *draw, int from, int to, int batch) {
    for (int at = from; at < to; at += batch) {
        const int size = at + batch < to ? batch : to - at;
        struct svi_pack p;
        struct row r;
        t->frame.size = 0;
        svi_pack_begin(&p, &t->frame);
        if (batch > 1)
            svi_pack_array(&p, (size_t)size);
        for (int i = at; i < at + size; i++) {
            draw(i, &r);
            tape_pack(&p, &r);
        }
        assert_int_equal(svi_pack_end(&p), SVS_OK);
        assert_int_equal(apply_bytes(t->e, t->frame.data, t->frame.size, CLOCK, false, NULL), SVS_OK);
    }
}

/* One element alone. */
static inline void tape_say(struct tape *t, const struct row *r) {
    struct svi_pack p;
    t->frame.size = 0;
    svi_pack_begin(&p, &t->frame);
    tape_pack(&p, r);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    assert_int_equal(apply_bytes(t->e, t->frame.data, t->frame.size, CLOCK, false, NULL), SVS_OK);
}

static inline const struct svi_figure *tape_figure(struct tape *t, const char *name) {
    const struct svi_figure *figures;
    const int count = svi_stream_figures(t->e, NULL, CLOCK, &figures);
    for (int i = 0; i < count; i++)
        if (strcmp(figures[i].name, name) == 0)
            return &figures[i];
    return NULL;
}

static inline double tape_stat(struct tape *t, const char *name) {
    const struct svi_figure *f = tape_figure(t, name);
    return !f ? NAN : f->type == SVI_COUNT ? (double)f->as.count : f->as.number;
}

/* Share of the scores from .. to - 1 whose p is at most a. */
static inline double tape_share(const struct tape *t, int from, int to, double a) {
    int hits = 0;
    for (int i = from; i < to; i++)
        hits += t->p[i] <= a;
    return (double)hits / (to - from);
}

/* Number k of sample i: normal, and the same whoever asks. */
static inline double tape_noise(int i, int k) {
    uint64_t state = (uint64_t)(i * 16 + k + 1) * 0x9E3779B97F4A7C15u;
    test_random(&state);
    return test_normal(&state);
}

/* A pump in order: temp 60 +- 2, vibration 1.1 +- 0.1, flow 5 +- 0.5, no label, no id. */
static inline void tape_pump(int i, struct row *r) {
    *r = (struct row){.d = PUMP, .y = -1, .id = -1, .ts = START + i};
    r->x[0] = 60 + 2 * tape_noise(i, 0);
    r->x[1] = 1.1 + 0.1 * tape_noise(i, 1);
    r->x[2] = 5 + 0.5 * tape_noise(i, 2);
}

#endif
