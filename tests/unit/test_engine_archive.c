/* Quality, shape, sources and refits that are kept and taken up again: what comes after is the same, equal
 * states are equal bytes, and what cannot be is refused. */
#include "support/engine.h"
#include "support/archived.h"
#include "support/metrics.h"
#include "support/problem.h"
#include "support/quick.h"

#include "data/shape.h"
#include "engine/engine_internal.h"

static void save(archived_by *archive, void *object, struct svi_bytes *out) {
    svs_error err;
    if (archived_save(archive, object, out, &err) != SVS_OK)
        fail_msg("%s", err.text);
}

static void load(archived_by *archive, void *object, const struct svi_bytes *from) {
    svs_error err;
    if (archived_load(archive, object, from->data, from->size, &err) != SVS_OK)
        fail_msg("%s", err.text);
}

static void assert_same(archived_by *archive, void *a, void *b) {
    struct svi_bytes one = {0}, other = {0};
    save(archive, a, &one);
    save(archive, b, &other);
    assert_true(archived_same(&one, &other));
    svi_bytes_clear(&one);
    svi_bytes_clear(&other);
}

/* A few bits of a copy are turned over. */
static uint8_t *damaged(const struct svi_bytes *b, uint64_t *seed) {
    uint8_t *bad = malloc(b->size);
    memcpy(bad, b->data, b->size);
    for (uint64_t i = test_random(seed) % 3 + 1; i > 0; i--)
        bad[test_random(seed) % b->size] ^= (uint8_t)(1u << test_random(seed) % 8);
    return bad;
}

/* ---- quality */

static void archive_metrics(struct svi_archive *a, void *m) {
    svi_metrics_archive(a, m);
}

static void feed(svi_metrics *m, svs_task task, uint64_t *seed, int classes) {
    double scores[6];
    for (int k = 0; k < 6; k++)
        scores[k] = test_normal(seed);
    const int truth = (int)(test_random(seed) % (uint64_t)classes), rows = classes < 3 ? 1 : classes;
    const int predicted = (int)(test_random(seed) % (uint64_t)(classes + 1)) - 1;
    if (task == SVS_REGRESS)
        svi_metrics_value(m, 1e3 * scores[0], scores[1]);
    else
        svi_metrics_class(m, truth, predicted, scores, rows);
}

static void assert_same_figures(svi_metrics *a, svi_metrics *b) {
    struct svi_figure one[SVI_METRICS_FIGURES], other[SVI_METRICS_FIGURES];
    const int count = svi_metrics_figures(a, one);
    assert_int_equal(svi_metrics_figures(b, other), count);
    for (int i = 0; i < count; i++)
        assert_memory_equal(&one[i].as.number, &other[i].as.number, sizeof(double));
}

/* With capacity for two classes at first. */
static svi_metrics *growing(svs_task task, int64_t window) {
    struct svi_metrics_options o = metrics_whole(task, window, 6);
    o.grows = true;
    return svi_metrics_new(&o, NULL);
}

/* A second one, which grows, is replaced by what is loaded of it, now and then: at every phase of the ring.
 */
static void quality_goes_on(void **state) {
    (void)state;
    for (int k = 0; k < often(12, 6); k++) {
        const svs_task task = k % 4 == 3 ? SVS_REGRESS : SVS_CLASSIFY;
        const int64_t window = k % 3 ? 1 + 37 * k : 1;
        uint64_t seed = 10 + (uint64_t)k;
        struct svi_bytes kept = {0};
        svi_metrics *a = metrics_open(task, window, 6, NULL), *b = growing(task, window);
        for (int t = 0; t < often(900, 450); t++) {
            const int classes = t < often(300, 150) ? 2 : 2 + t / often(300, 150) + k % 2;
            if (t == 0 || test_random(&seed) % 23 == 0) {
                save(archive_metrics, b, &kept);
                svi_metrics_free(&b);
                b = growing(task, window);
                load(archive_metrics, b, &kept);
                assert_same(archive_metrics, a, b);
            }
            uint64_t again = seed;
            assert_int_equal(svi_metrics_reserve(b, classes, NULL), SVS_OK);
            feed(a, task, &seed, classes);
            feed(b, task, &again, classes);
            assert_same_figures(a, b);
        }
        assert_same(archive_metrics, a, b);
        svi_metrics_reset(a);
        svi_metrics_free(&b);
        b = metrics_open(task, window, 6, NULL);
        assert_same(archive_metrics, a, b); /* what was forgotten leaves no trace */
        svi_metrics_free(&a);
        svi_metrics_free(&b);
        svi_bytes_clear(&kept);
    }
}

static void damaged_quality(void **state) {
    (void)state;
    int refused = 0;
    for (int k = 0; k < often(400, 100); k++) {
        const svs_task task = k % 4 == 3 ? SVS_REGRESS : SVS_CLASSIFY;
        uint64_t seed = 100 + (uint64_t)k;
        struct svi_figure figures[SVI_METRICS_FIGURES];
        struct svi_bytes kept = {0};
        svs_error err;
        svi_metrics *m = metrics_open(task, 20, 6, NULL);
        for (int t = 0; t < 10 + k % 50; t++)
            feed(m, task, &seed, 2 + k % 3);
        save(archive_metrics, m, &kept);
        svi_metrics_free(&m);
        m = k % 2 ? growing(task, 20) : metrics_open(task, 20, 6, NULL);
        uint8_t *bad = damaged(&kept, &seed);
        const svs_code code = archived_load(archive_metrics, m, bad, kept.size, &err);
        assert_true(code == SVS_OK || (code == SVS_DAMAGED && strlen(err.text) > 10));
        refused += code != SVS_OK;
        for (int t = 0; t < 60 && code == SVS_OK; t++)
            feed(m, task, &seed, 5);
        svi_metrics_figures(m, figures);
        svi_metrics_free(&m);
        free(bad);
        svi_bytes_clear(&kept);
    }
    assert_true(refused > often(100, 25));
}

/* ---- shape */

static void archive_shape(struct svi_archive *a, void *s) {
    svi_shape_archive(a, s);
}

static void shape_goes_on(void **state) {
    (void)state;
    struct svi_shape s, t;
    struct svi_bytes kept = {0};
    struct svi_message m = {.has_x = true, .kind = SVI_NAMED, .d = 3};
    svs_error err = {0};
    svi_shape_init(&s, 8, NULL, NULL);
    const char *const names[] = {"flow", "p\xc3\xa9rim\xc3\xa8tre", "x"};
    for (int j = 0; j < 3; j++)
        assert_int_equal(svs_features_add(s.names, names[j], strlen(names[j]), NULL), j);
    svi_shape_commit(&s, &m);
    svs_features_add(s.names, "of a refused one", 16, NULL);
    save(archive_shape, &s, &kept);
    svi_shape_init(&t, 8, NULL, NULL);
    load(archive_shape, &t, &kept);
    assert_true(t.kind == SVI_NAMED && t.d == 3 && t.names_kept == 3 && svs_features_count(t.names) == 3);
    for (int j = 0; j < 3; j++)
        assert_string_equal(svs_features_name(t.names, j), names[j]);
    svi_shape_restore(&s);
    assert_same(archive_shape, &s, &t);
    svi_shape_clear(&t);
    const char *const fixed[] = {"flow,x", "flow,p\xc3\xa9rim\xc3\xa8tre,y", "a,b,c,d"};
    for (int k = 0; k < 4; k++) { /* other settings; the last: too few columns */
        assert_int_equal(svi_shape_init(&t, k < 3 ? 8 : 2, k < 3 ? fixed[k] : NULL, &err), SVS_OK);
        assert_int_equal(archived_load(archive_shape, &t, kept.data, kept.size, &err), SVS_DAMAGED);
        svi_shape_clear(&t);
    }
    svi_shape_clear(&s);
    svi_bytes_clear(&kept);
}

static void fixed_names(void **state) {
    (void)state;
    struct svi_shape s, t;
    struct svi_bytes kept = {0};
    svs_error err;
    svi_shape_init(&s, 8, "a,b,c", NULL);
    svi_shape_init(&t, 8, "a,b,c", NULL);
    svi_shape_commit(&s, &(struct svi_message){.has_x = true, .kind = SVI_DENSE, .d = 3});
    save(archive_shape, &s, &kept);
    load(archive_shape, &t, &kept);
    assert_true(t.kind == SVI_DENSE && t.d == 3);
    svi_shape_clear(&t);
    svi_shape_init(&t, 8, "a,c,b", NULL);
    assert_int_equal(archived_load(archive_shape, &t, kept.data, kept.size, &err), SVS_DAMAGED);
    svi_shape_clear(&t);
    svi_shape_clear(&s);
    svi_bytes_clear(&kept);
}

static void damaged_shape(void **state) {
    (void)state;
    uint64_t seed = 3;
    struct svi_shape s, t;
    struct svi_bytes kept = {0};
    svs_error err;
    svi_shape_init(&s, 100, NULL, NULL);
    for (int j = 0; j < 20; j++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", j);
        svs_features_add(s.names, name, strlen(name), NULL);
    }
    svi_shape_commit(&s, &(struct svi_message){.has_x = true, .kind = SVI_NAMED, .d = 20});
    save(archive_shape, &s, &kept);
    for (int k = 0; k < often(2000, 400); k++) {
        uint8_t *bad = damaged(&kept, &seed);
        svi_shape_init(&t, 100, NULL, NULL);
        const svs_code code = archived_load(archive_shape, &t, bad, kept.size, &err);
        assert_true(code == SVS_DAMAGED || (code == SVS_OK && t.d <= 100));
        svi_shape_clear(&t);
        free(bad);
    }
    svi_shape_clear(&s);
    svi_bytes_clear(&kept);
}

/* ---- sources */

static void archive_sources(struct svi_archive *a, void *p) {
    svi_sources_archive(a, p);
}

static void sources_go_on(void **state) {
    (void)state;
    struct svi_bytes kept = {0};
    uint64_t seed = 9;
    svs_error err;
    svi_sources *p = svi_sources_new(200, NULL), *q = svi_sources_new(200, NULL);
    for (int i = 0; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "pump %d", i * 7919 % 1000);
        struct svi_source *of = svi_sources_add(p, name, strlen(name), 0, 0, NULL);
        svi_source_take(of, (int64_t)i << 40, 5);
    }
    save(archive_sources, p, &kept);
    load(archive_sources, q, &kept);
    assert_int_equal(svi_sources_count(q), 100);
    const struct svi_source *of = svi_sources_find(q, "pump 919", 8);
    assert_non_null(of);
    assert_int_equal(of->next, svi_sources_find(p, "pump 919", 8)->next);
    assert_int_equal(svi_source_durable(of, 0), of->next - 1);
    assert_int_equal(svi_source_durable(of, 3), of->next - 1);
    assert_same(archive_sources, p, q);
    svi_sources_free(&q);
    q = svi_sources_new(99, NULL);
    assert_int_equal(archived_load(archive_sources, q, kept.data, kept.size, &err), SVS_DAMAGED);
    svi_sources_free(&q);
    for (int k = 0; k < often(1000, 200); k++) {
        uint8_t *bad = damaged(&kept, &seed);
        q = svi_sources_new(200, NULL);
        const svs_code code = archived_load(archive_sources, q, bad, kept.size, &err);
        assert_true(code == SVS_DAMAGED || code == SVS_OK);
        svi_sources_free(&q);
        free(bad);
    }
    svi_sources_free(&p);
    svi_bytes_clear(&kept);
}

/* The same name twice: the second one's samples would count for the first. */
static void archive_twice(struct svi_archive *a, void *unused) {
    int64_t count = 2, next = 4, at_size = 0;
    char name[8] = "a";
    (void)unused;
    svi_archive_int64(a, "count", &count, 0, 9);
    svi_archive_text(a, "source 0", name, sizeof name);
    svi_archive_int64(a, "next 0", &next, 0, 9);
    svi_archive_int64(a, "at size 0", &at_size, 0, 9);
    svi_archive_text(a, "source 1", name, sizeof name);
    svi_archive_int64(a, "next 1", &next, 0, 9);
}

static void a_source_twice(void **state) {
    (void)state;
    struct svi_bytes kept = {0};
    svs_error err;
    svi_sources *p = svi_sources_new(5, NULL);
    save(archive_twice, NULL, &kept);
    assert_int_equal(archived_load(archive_sources, p, kept.data, kept.size, &err), SVS_DAMAGED);
    assert_non_null(strstr(err.text, "duplicate"));
    svi_sources_free(&p);
    svi_bytes_clear(&kept);
}

/* ---- refits */

static void archive_beside(struct svi_archive *a, void *b) {
    svi_refit_policy_archive(a, b);
}

static void archive_tallies(struct svi_archive *a, void *b) {
    svi_refit_policy_tallies_archive(a, b);
}

static const char *const refits[] = {
    "window", "100",   "refit.every", "150", "publish.every", "0", "publish.seconds",
    "0",      "serve", "best",        NULL};

struct stream {
    struct speaker f;
    uint64_t random;
};

static void next_samples(struct stream *s, int count, int classes) {
    for (int i = 0; i < count; i++) {
        const double x = test_normal(&s->random), y = test_normal(&s->random);
        const int label = (x - 2 * y + 0.5 * test_normal(&s->random) > 0) + (classes > 2 && x > 1);
        assert_int_equal(say(&s->f, "{'x': [%.17g, %.17g], 'y': %d}", x, y, label), SVS_OK);
    }
}

/* Replaces what is kept of refits by what is loaded of it. */
static void take_up(struct stream *s) {
    struct svi_bytes kept = {0}, tallies = {0};
    struct svi_refit_policy *b = svi_stream_root(s->f.e)->refit;
    if (b->job && b->job->snapshot.active)
        svi_snapshot_drop(&b->job->snapshot, svi_stream_root(s->f.e)->learner);
    save(archive_beside, b, &kept);
    save(archive_tallies, b, &tallies);
    svi_refit_policy_free(b);
    assert_int_equal(svi_refit_policy_new(b, &s->f.s, NULL), SVS_OK);
    load(archive_beside, b, &kept);
    load(archive_tallies, b, &tallies);
    svi_bytes_clear(&kept);
    svi_bytes_clear(&tallies);
}

static bool run_job(struct stream *s) {
    struct svi_refit *job = svi_engine_refit_take(svi_stream_root(s->f.e));
    if (!job)
        return false;
    svi_refit_run(job);
    svi_engine_refit_give(svi_stream_root(s->f.e));
    return true;
}

/* Wherever nothing runs, all that is told after is the same. */
static void refits_go_on(void **state) {
    (void)state;
    struct stream a = {.random = 4}, b = {.random = 4};
    speaker_open(&a.f, refits);
    speaker_open(&b.f, refits);
    int served = 0, lost = 0;
    for (int t = 0; t < 1800; t++) {
        const int classes = t < 1200 ? 2 : 3;
        next_samples(&a, 1, classes);
        next_samples(&b, 1, classes);
        const bool ran = run_job(&a);
        assert_int_equal(run_job(&b), ran);
        const struct svi_refit_policy *of = svi_stream_root(b.f.e)->refit;
        served += of->serves;
        lost += of->overtaken > 0;
        if (t % 13 == 0 && of->state == SVI_REFIT_IDLE)
            take_up(&b);
        if (t % 100 == 99) { /* the next one starts cold in both */
            svi_refit_forget(svi_stream_root(a.f.e)->refit->job);
            svi_refit_forget(svi_stream_root(b.f.e)->refit->job);
        }
        assert_same(archive_beside, svi_stream_root(a.f.e)->refit, svi_stream_root(b.f.e)->refit);
    }
    assert_true(svi_stream_root(a.f.e)->refit->done > 5 && served > 0 && lost > 0);
    assert_int_equal(a.f.count[SVI_TOPIC_MODEL], b.f.count[SVI_TOPIC_MODEL]);
    assert_true(svi_stream_root(b.f.e)->refit->model.milliseconds > 0);
    speaker_close(&a.f);
    speaker_close(&b.f);
}

/* A refit that ran is running still, until it is taken up or its result comes. */
static void a_lost_refit(void **state) {
    (void)state;
    for (int how = 0; how < 5; how++) {
        struct stream s = {.random = 4};
        speaker_open(&s.f, refits);
        struct svi_refit_policy *b = svi_stream_root(s.f.e)->refit;
        svs_error err;
        next_samples(&s, 150, 2);
        assert_true(b->state == SVI_REFIT_COPYING || b->state == SVI_REFIT_READY);
        take_up(&s);
        assert_int_equal(b->state, SVI_REFIT_LOST);
        assert_int_equal(b->job->begun, 150);
        assert_null(svi_engine_refit_take(svi_stream_root(s.f.e)));
        assert_int_equal(svi_engine_refit(svi_stream_root(s.f.e), &err), SVS_UNAVAILABLE);
        assert_non_null(strstr(err.text, "running already"));
        next_samples(&s, 160, 2); /* one was due */
        assert_int_equal(b->skipped, 1);
        take_up(&s);
        assert_int_equal(b->state, SVI_REFIT_LOST);
        if (how == 1)
            svi_engine_reset(svi_stream_root(s.f.e));
        if (how == 2) {
            svi_engine_reset(svi_stream_root(s.f.e));
            take_up(&s);
            assert_true(b->stale);
        }
        if (how < 3) {
            svi_engine_refit_restart(svi_stream_root(s.f.e));
            assert_true(b->state == SVI_REFIT_READY || b->state == SVI_REFIT_COPYING);
            next_samples(&s, 5, 2);
            assert_true(run_job(&s));
            assert_int_equal(b->done, how == 0);
            assert_int_equal(b->overtaken, how != 0);
            if (how == 0)
                assert_int_equal(b->model.at, 315);
        } else if (how == 3) { /* there is nothing to refit any more */
            svs_learner_reset(svi_stream_root(s.f.e)->learner);
            svi_engine_refit_restart(svi_stream_root(s.f.e));
            assert_true(run_job(&s));
            assert_true(b->done == 0 && b->failed == 0 && b->skipped == 2);
        } else {
            svi_engine_refit_restart(svi_stream_root(s.f.e));
            svi_engine_refit_restart(svi_stream_root(s.f.e)); /* it runs: nothing to do */
            next_samples(&s, 5, 2);
            assert_true(run_job(&s));
            assert_int_equal(b->done, 1);
        }
        assert_int_equal(b->state, SVI_REFIT_IDLE);
        assert_false(b->stale);
        next_samples(&s, 450, 2);
        assert_true(run_job(&s)); /* and on it goes */
        assert_int_equal(b->done, how == 0 || how == 4 ? 2 : 1);
        speaker_close(&s.f);
    }
}

/* Whether a worker has the job when the stream is reset is not to be seen: k = 0, its snapshot is being
 * taken; 1, it waits for a worker; 2, it is away. */
static void reset_while_it_runs(void **state) {
    (void)state;
    struct svi_bytes before[3] = {0}, after[3] = {0};
    for (int k = 0; k < 3; k++) {
        struct stream s = {.random = 4};
        struct svi_refit *job = NULL;
        speaker_open(&s.f, refits);
        struct svi_refit_policy *b = svi_stream_root(s.f.e)->refit;
        next_samples(&s, 152, 2);
        if (k == 0) {
            assert_int_equal(b->state, SVI_REFIT_READY);
            b->state = SVI_REFIT_COPYING;
        } else if (k == 2) {
            job = svi_engine_refit_take(svi_stream_root(s.f.e));
        }
        svi_engine_reset(svi_stream_root(s.f.e));
        next_samples(&s, 20, 2);
        job = job ? job : svi_engine_refit_take(svi_stream_root(s.f.e));
        assert_non_null(job);
        save(archive_beside, b, &before[k]);
        svi_refit_run(job);
        svi_engine_refit_give(svi_stream_root(s.f.e));
        assert_true(b->overtaken == 1 && b->failed == 0);
        save(archive_beside, b, &after[k]);
        assert_true(archived_same(&before[0], &before[k]) && archived_same(&after[0], &after[k]));
        next_samples(&s, 140, 2);
        assert_true(run_job(&s));
        assert_int_equal(b->done, 1);
        speaker_close(&s.f);
    }
    for (int k = 0; k < 3; k++) {
        svi_bytes_clear(&before[k]);
        svi_bytes_clear(&after[k]);
    }
}

static void damaged_refits(void **state) {
    (void)state;
    struct stream s = {.random = 4};
    struct svi_bytes kept = {0};
    uint64_t seed = 4;
    int refused = 0;
    speaker_open(&s.f, refits);
    next_samples(&s, 152, 2);
    assert_true(run_job(&s));
    next_samples(&s, 60, 2);
    save(archive_beside, svi_stream_root(s.f.e)->refit, &kept);
    for (int k = 0; k < often(2000, 400); k++) {
        struct svi_refit_policy b;
        svs_error err;
        uint8_t *bad = damaged(&kept, &seed);
        assert_int_equal(svi_refit_policy_new(&b, &s.f.s, NULL), SVS_OK);
        const svs_code code = archived_load(archive_beside, &b, bad, kept.size, &err);
        assert_true(code == SVS_OK || (code == SVS_DAMAGED && strlen(err.text) > 10));
        refused += code != SVS_OK;
        if (code == SVS_OK && b.have && b.model.d <= 1024) {
            double x[1024] = {1, 2}, score = 0;
            struct svi_message m = {.has_x = true, .d = 2, .x = x};
            svs_step step = {.scores = &score, .rows = 1, .label = 1, .class_count = b.model.class_count};
            for (int t = 0; t < 1200; t++)
                svi_refit_policy_score(&b, &m, &step);
        }
        svi_refit_policy_free(&b);
        free(bad);
    }
    assert_true(refused > often(500, 100));
    struct svi_refit_policy off;
    struct svi_settings none = s.f.s;
    svs_error err;
    none.refit = SVI_REFIT_NONE;
    assert_int_equal(svi_refit_policy_new(&off, &none, NULL), SVS_OK);
    assert_int_equal(archived_load(archive_beside, &off, kept.data, kept.size, &err), SVS_DAMAGED);
    svi_refit_policy_free(&off);
    svi_bytes_clear(&kept);
    speaker_close(&s.f);
}

/* ---- the record of a refit */

static void a_record_repeats_the_refit(void **state) {
    (void)state;
    for (int classes = 2; classes <= 3; classes++) {
        struct stream a = {.random = 4}, b = {.random = 4};
        struct svi_bytes record = {0}, again = {0};
        svs_error err = {0};
        speaker_open(&a.f, refits);
        speaker_open(&b.f, refits);
        next_samples(&a, 152, classes);
        next_samples(&b, 152, classes);
        struct svi_refit *job = svi_engine_refit_take(svi_stream_root(a.f.e));
        svi_refit_run(job);
        assert_int_equal(job->error.code, SVS_OK);
        assert_int_equal(svi_refit_pack(job, &record), SVS_OK);
        svi_engine_refit_give(svi_stream_root(a.f.e));
        assert_int_equal(svi_engine_refit_repeat(svi_stream_root(b.f.e), record.data, record.size, &err),
                         SVS_OK);
        assert_int_equal(svi_refit_pack(svi_stream_root(b.f.e)->refit->job, &again), SVS_OK);
        assert_true(archived_same(&record, &again));
        assert_false(svi_stream_root(b.f.e)->refit->job->have);
        next_samples(&a, 40, classes);
        next_samples(&b, 40, classes);
        assert_same(archive_beside, svi_stream_root(a.f.e)->refit, svi_stream_root(b.f.e)->refit);
        assert_true(a.f.deeds.size > 0);
        const size_t written = record.size;
        for (size_t size = 0; size < written; size++)
            assert_int_equal(
                svi_refit_unpack(svi_stream_root(b.f.e)->refit->job, record.data, size, 9, 9, &err),
                SVS_DAMAGED);
        assert_int_equal(
            svi_refit_unpack(svi_stream_root(b.f.e)->refit->job, record.data, written, 1, 9, &err),
            SVS_DAMAGED);
        if (classes > 2)
            assert_int_equal(
                svi_refit_unpack(svi_stream_root(b.f.e)->refit->job, record.data, written, 9, 2, NULL),
                SVS_DAMAGED);
        svi_bytes_clear(&again);
        assert_int_equal(svi_refit_pack(svi_stream_root(b.f.e)->refit->job, &again),
                         SVS_OK); /* unchanged by all that */
        assert_true(archived_same(&record, &again));
        svi_bytes_clear(&record);
        svi_bytes_clear(&again);
        speaker_close(&a.f);
        speaker_close(&b.f);
    }
}

static void a_failure_is_recorded(void **state) {
    (void)state;
    struct stream s = {.random = 4};
    struct svi_bytes record = {0};
    svs_error err = {0};
    speaker_open(&s.f, refits);
    next_samples(&s, 152, 2);
    assert_true(run_job(&s));
    struct svi_refit failed = {.error = {.code = SVS_NOT_CONVERGED, .text = "it did not end"}};
    struct svi_refit *job = svi_stream_root(s.f.e)->refit->job;
    assert_int_equal(svi_refit_pack(&failed, &record), SVS_OK);
    assert_int_equal(svi_engine_refit_repeat(svi_stream_root(s.f.e), record.data, record.size, &err), SVS_OK);
    assert_string_equal(job->error.text, "it did not end");
    assert_int_equal(svi_stream_root(s.f.e)->refit->failed, 1);
    assert_string_equal(svi_stream_root(s.f.e)->refit->reason, "it did not end");
    assert_true(svi_stream_root(s.f.e)->refit->have);
    svi_bytes_clear(&record);
    speaker_close(&s.f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quality_goes_on),       cmocka_unit_test(damaged_quality),
        cmocka_unit_test(shape_goes_on),         cmocka_unit_test(fixed_names),
        cmocka_unit_test(damaged_shape),         cmocka_unit_test(sources_go_on),
        cmocka_unit_test(a_source_twice),        cmocka_unit_test(refits_go_on),
        cmocka_unit_test(a_lost_refit),          cmocka_unit_test(reset_while_it_runs),
        cmocka_unit_test(damaged_refits),        cmocka_unit_test(a_record_repeats_the_refit),
        cmocka_unit_test(a_failure_is_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
