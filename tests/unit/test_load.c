/* Going back to a checkpoint: what comes after it is what came after it the first time, bit for bit; what was
 * given out (numbers of sources, of events, of models) goes on; and a restart comes to the same state,
 * whatever was done before it and between. */
#include "support/life.h"
#include "support/problem.h"
#include "support/quick.h"

#include "engine/engine_internal.h"
#include "state/recovery.h"

static const char *const walks[][16] = {
    {"novelty", "fosvm1", "window", "40", "novelty.warmup", "20", "alert.p", "0.05", NULL},
    {"window", "30", "refit", "dcd", "refit.every", "25", "novelty", "fosvm2", NULL},
    {"method", "falsvm", "window", "0", "forget", "0.99", NULL},
    {"task", "regress", "window", "25", "labels.max", "10", NULL},
    {"window", "20", "missing", "carry", "novelty", "fosvm1", "categories", "c", NULL},
};

static const char *settings_of[24];

static void choose(struct life *l, size_t k, const char *keep) {
    int n = 0;
    for (int i = 0; walks[k][i]; i++)
        settings_of[n++] = walks[k][i];
    settings_of[n++] = "journal.keep";
    settings_of[n++] = "all";
    settings_of[n++] = "checkpoint.keep";
    settings_of[n++] = keep;
    settings_of[n] = NULL;
    l->more = settings_of;
}

static json_t *request(struct life *l, const char *format, ...) {
    struct svi_bytes out = {0};
    struct svi_control control = {
        .stream = l->stream, .settings = &l->s, .started = NOW, .run = 1, .write_ahead = l->keeper};
    va_list arguments;
    va_start(arguments, format);
    speaker_frame(&l->speaker, format, arguments);
    va_end(arguments);
    assert_int_equal(svi_control_handle(&control, l->speaker.frame.data, l->speaker.frame.size, NOW, &out),
                     SVS_OK);
    assert_false(control.failed);
    svi_control_clear(&control);
    return speaker_reply(&out);
}

/* {op: load, model: m}. */
static json_t *request_model(struct life *l, const svs_model *m) {
    struct svi_bytes request = {0}, model = {0}, out = {0};
    struct svi_pack p;
    struct svi_control control = {
        .stream = l->stream, .settings = &l->s, .started = NOW, .run = 1, .write_ahead = l->keeper};
    assert_int_equal(svi_model_encode(m, NULL, 0, &model), SVS_OK);
    svi_pack_begin(&p, &request);
    svi_pack_map(&p, 2);
    svi_put_text(&p, "op", "load");
    svi_pack_key(&p, "model");
    svi_pack_raw(&p, model.data, model.size);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    assert_int_equal(svi_control_handle(&control, request.data, request.size, NOW, &out), SVS_OK);
    assert_false(control.failed);
    svi_bytes_clear(&request);
    svi_bytes_clear(&model);
    return speaker_reply(&out);
}

/* The model as it is now, with its classes exchanged and its features the other way round. */
static json_t *request_turned(struct life *l) {
    svs_model m, t;
    const struct svi_figure *figures;
    int count;
    assert_int_equal(svi_engine_model(svi_stream_root(l->stream), &m, &figures, &count, NULL), SVS_OK);
    t = m;
    double *W = calloc((size_t)m.rows * (size_t)m.d + 1, sizeof *W), b[8];
    const char **names = calloc((size_t)m.d + 1, sizeof *names);
    svs_value classes[8];
    for (int k = 0; k < m.class_count; k++)
        classes[k] = m.classes[m.class_count - 1 - k];
    for (int j = 0; j < m.d; j++)
        names[j] = m.features ? m.features[m.d - 1 - j] : NULL;
    for (int k = 0; k < m.rows; k++) {
        const double sign = m.rows == 1 && m.class_count == 2 ? -1 : 1;
        b[k] = sign * m.b[m.rows - 1 - k];
        for (int j = 0; j < m.d; j++)
            W[k * m.d + j] = sign * m.W[(m.rows - 1 - k) * m.d + (m.features ? m.d - 1 - j : j)];
    }
    t.W = W;
    t.b = b;
    t.classes = classes;
    t.features = m.features ? names : NULL;
    t.schema = NULL;
    json_t *reply = request_model(l, &t);
    free(W);
    free(names);
    return reply;
}

static int64_t whole(const json_t *map, const char *key) {
    const json_t *j = json_object_get(map, key);
    if (!json_is_integer(j))
        fail_msg("no %s: %s", key, text_of(map, "error"));
    return json_integer_value(j);
}

/* Message i of a source; every third is labelled late, by a command in the stream. */
static void send_one(struct life *l, const char *src, int i) {
    struct svi_receipt r;
    const bool regress = l->s.task == SVS_REGRESS;
    const int n = (int)svi_entry_next(svi_stream_entry(l->stream), src);
    uint64_t seed = 1000 + (uint64_t)i;
    const double a = test_normal(&seed), b = test_normal(&seed) + i % 3;
    char y[40], x[200];
    snprintf(y, sizeof y, regress ? "%.3f" : "%.0f", regress ? a + b : i % 3 + 0.0);
    snprintf(x, sizeof x, "{'a': %.6f, 'b': %.6f, 'd%d': 1, 'c': %s}", a, b, i / 40,
             i % 2 ? (l->s.categories[0] ? "'u'" : "2") : (l->s.categories[0] ? "'v'" : "1"));
    if (i % 3)
        speaker_build(&l->speaker, "{'x': %s, 'y': %s, 'src': '%s', 'n': %d, 'ts': %d, 'id': %d}", x, y, src,
                      n, i + 1, i);
    else if (i % 2)
        speaker_build(&l->speaker, "{'x': %s, 'src': '%s', 'n': %d, 'ts': %d, 'id': %d}", x, src, n, i + 1,
                      i);
    else
        speaker_build(&l->speaker, "{'op': 'label', 'id': %d, 'y': %s, 'src': '%s', 'n': %d}", i - 3, y, src,
                      n);
    const struct svi_bytes *f = &l->speaker.frame;
    assert_int_equal(svi_write_ahead_write(l->keeper, SVI_RECORD_SOURCED, NOW + i, f->data, f->size, NULL),
                     SVS_OK);
    apply_bytes(l->stream, f->data, f->size, NOW + i, true, &r);
    assert_int_equal(r.n, n);
}

static void send_some(struct life *l, const char *src, int from, int to) {
    for (int i = from; i < to; i++)
        send_one(l, src, i);
}

static void assert_hash(svi_stream *e, const char *expected) {
    char hash[SVI_HASH_TEXT];
    assert_int_equal(svi_stream_hash(e, hash, NULL), SVS_OK);
    assert_string_equal(hash, expected);
}

/* The same samples after the same checkpoint: the weights are the same bits. */
static void weights_are_the_same(void **state) {
    struct life *l = *state;
    for (size_t k = 0; k < sizeof walks / sizeof *walks; k++) {
        if (k == 1) /* a refit comes when it comes */
            continue;
        struct svi_bytes kept = {0};
        svs_model m;
        const struct svi_figure *figures;
        int count;
        choose(l, k, "5");
        assert_begins(l, false);
        send_some(l, "a", 0, 100);
        json_t *reply = request(l, "{'op': 'save'}");
        const int64_t record = whole(reply, "record");
        json_decref(reply);
        double novelty[2] = {0};
        for (int round = 0; round < 2; round++) {
            send_some(l, "a", 100, 160);
            novelty[round] = svi_stream_root(l->stream)->novelty->judgement.novelty;
            assert_int_equal(svi_engine_model(svi_stream_root(l->stream), &m, &figures, &count, NULL),
                             SVS_OK);
            const size_t size = (size_t)m.rows * (size_t)m.d * sizeof(double);
            if (round == 0) {
                assert_int_equal(svi_bytes_append(&kept, m.W, size), SVS_OK);
                send_some(l, "a", 300, 370);
                const int64_t next = svi_entry_next(svi_stream_entry(l->stream), "a");
                json_decref(request(l, "{'op': 'reset', 'yes': true}"));
                send_some(l, "a", 400, 420);
                const uint64_t version = svi_engine_version(svi_stream_root(l->stream));
                const int64_t samples = seen(l);
                reply = request(l, "{'op': 'load', 'checkpoint': %d}", (int)record);
                assert_true(json_is_true(json_object_get(reply, "ok")));
                assert_true((uint64_t)whole(reply, "version") > version);
                json_decref(reply);
                assert_int_equal(svi_entry_next(svi_stream_entry(l->stream), "a"), next + 20);
                assert_int_equal(seen(l), samples);
                assert_int_equal(svi_engine_refusals(svi_stream_root(l->stream))[SVS_STATE_LOADED], 1);
            } else {
                assert_int_equal(kept.size, size);
                assert_memory_equal(kept.data, m.W, size);
                assert_memory_equal(&novelty[0], &novelty[1], sizeof(double));
            }
        }
        svi_bytes_clear(&kept);
        end(l);
        test_folder_empty(l->path);
    }
}

/* The state of a life is that of its journal, from the start and from whatever checkpoint. */
static void assert_repeats(struct life *l, const char *hash) {
    struct svi_state_dir f;
    assert_int_equal(svi_state_dir_open(&f, l->path, false, NULL), SVS_OK);
    for (int from = SVI_FROM_NEWEST; from <= SVI_FROM_START; from++) {
        const struct svi_recovery_options o = {.from = (enum svi_recovery_from)from, .until = UINT64_MAX};
        struct svi_recovery *r = svi_recovery_new(&f, &o, &l->error);
        if (!r)
            fail_msg("%s", l->error.text);
        assert_hash(r->stream, hash);
        svi_recovery_free(&r);
    }
    svi_state_dir_close(&f);
}

static int64_t any_checkpoint(struct life *l, uint64_t *seed) {
    uint64_t *numbers = NULL;
    const int count = list(l, "checkpoint", &numbers);
    const int64_t chosen = count ? (int64_t)numbers[test_random(seed) % (uint64_t)count] : -1;
    svi_free(numbers);
    return chosen;
}

static void finish_refit(struct life *l) {
    struct svi_refit *job = svi_engine_refit_take(svi_stream_root(l->stream));
    struct svi_bytes record = {0};
    if (!job)
        return;
    svi_refit_run(job);
    assert_int_equal(svi_refit_pack(job, &record), SVS_OK);
    assert_int_equal(svi_write_ahead_write(l->keeper, SVI_RECORD_REFIT, NOW, record.data, record.size, NULL),
                     SVS_OK);
    svi_engine_refit_give(svi_stream_root(l->stream));
    svi_bytes_clear(&record);
}

static int models;

static int walk_one(struct life *l, uint64_t *seed, int *i) {
    int64_t chosen;
    json_t *reply = NULL;
    int loads = 0;
    switch (test_random(seed) % 13) {
    case 0:
        reply = request(l, "{'op': 'save'}");
        break;
    case 1:
    case 2:
        chosen = any_checkpoint(l, seed);
        reply = request(l, "{'op': 'load', 'checkpoint': %d}", (int)chosen);
        loads = chosen >= 0;
        assert_true(chosen < 0 || json_is_true(json_object_get(reply, "ok")));
        break;
    case 3:
        chosen = any_checkpoint(l, seed);
        reply = request(l, "{'op': 'load', 'checkpoint': %d, 'relearn': true, 'without': 'b'}", (int)chosen);
        loads = chosen >= 0;
        assert_true(chosen < 0 || json_is_true(json_object_get(reply, "ok")));
        break;
    case 4:
        reply = request(l, test_random(seed) % 3 ? "{'op': 'prune'}" : "{'op': 'reset', 'yes': true}");
        break;
    case 5:
        reply = request(l, "{'op': 'forget', 'id': %d}", *i - 4);
        break;
    case 6:
        reply = request(l, "{'op': 'config', 'set': {'alert.cooldown': %d}}", *i % 7);
        break;
    case 7:
        finish_refit(l);
        break;
    case 8:
        reply = request_turned(l);
        models += json_is_true(json_object_get(reply, "ok"));
        break;
    default:
        for (int n = 0; n < 15; n++, ++*i)
            send_one(l, *i % 5 ? "a" : "b", *i);
    }
    json_decref(reply);
    return loads;
}

static void random_walks(void **state) {
    struct life *l = *state;
    int loads = 0;
    for (int k = 0; k < often(20, 5); k++) {
        uint64_t seed = 500 + (uint64_t)k;
        int i = 0;
        choose(l, (size_t)k % (sizeof walks / sizeof *walks), k % 2 ? "3" : "6");
        for (int life = 0; life < 4; life++) {
            char hash[SVI_HASH_TEXT];
            assert_begins(l, false);
            for (int step = 0; step < 12; step++)
                loads += walk_one(l, &seed, &i);
            assert_int_equal(svi_stream_hash(l->stream, hash, NULL), SVS_OK);
            end(l); /* as if it had been killed: nothing is written at the end */
            assert_repeats(l, hash);
        }
        test_folder_empty(l->path);
    }
    assert_true(loads > often(60, 12) && models > often(4, 0));
}

/* What was learned, forgotten by a slip and learned again is as if the slip had not been; so is what a source
 * sent that is left out. */
static void learned_again(void **state) {
    struct life *l = *state;
    struct svi_bytes kept = {0};
    for (int without = 0; without < 2; without++) {
        for (int slip = 0; slip < 2; slip++) {
            svs_model m;
            const struct svi_figure *figures;
            int count;
            choose(l, 0, "5");
            assert_begins(l, false);
            send_some(l, "a", 0, 60);
            json_t *reply = request(l, "{'op': 'save'}");
            const int64_t record = whole(reply, "record");
            json_decref(reply);
            send_some(l, "a", 60, 100);
            if (slip && without)
                send_some(l, "b", 400, 450);
            if (slip)
                json_decref(request(l, "{'op': 'reset', 'yes': true}"));
            send_some(l, "a", 100, 130);
            if (slip) {
                reply = without
                            ? request(l, "{'op': 'load', 'checkpoint': %d, 'relearn': true, 'without': 'b'}",
                                      (int)record)
                            : request(l, "{'op': 'load', 'checkpoint': %d, 'relearn': true}", (int)record);
                assert_true(whole(reply, "relearned") > 50);
                json_decref(reply);
                assert_int_equal(svi_entry_next(svi_stream_entry(l->stream), "b"), without ? 50 : 0);
            }
            send_some(l, "a", 130, 150);
            assert_int_equal(svi_engine_model(svi_stream_root(l->stream), &m, &figures, &count, NULL),
                             SVS_OK);
            const size_t size = (size_t)m.rows * (size_t)m.d * sizeof(double);
            if (slip) {
                assert_int_equal(kept.size, size);
                assert_memory_equal(kept.data, m.W, size);
            }
            kept.size = 0;
            assert_int_equal(svi_bytes_append(&kept, m.W, size), SVS_OK);
            end(l);
            test_folder_empty(l->path);
        }
    }
    svi_bytes_clear(&kept);
}

static void assert_refused(struct life *l, const char *code, const char *says, const char *ask) {
    char hash[SVI_HASH_TEXT];
    assert_int_equal(svi_stream_hash(l->stream, hash, NULL), SVS_OK);
    json_t *reply = request(l, "%s", ask);
    assert_string_equal(text_of(reply, "code"), code);
    if (!strstr(text_of(reply, "error"), says))
        fail_msg("%s: %s", ask, text_of(reply, "error"));
    json_decref(reply);
    assert_hash(l->stream, hash);
}

static void refusals(void **state) {
    struct life *l = *state;
    static const char *const few[] = {"window", "10", "checkpoint.keep", "4", NULL};
    l->more = few;
    assert_begins(l, false);
    send_some(l, "a", 0, 10);
    assert_refused(l, "unavailable", "there are none", "{'op': 'load', 'checkpoint': 3}");
    assert_refused(l, "wrong_type", "state show", "{'op': 'load'}");
    assert_refused(l, "wrong_type", "state show", "{'op': 'load', 'checkpoint': -1}");
    for (int i = 0; i < 6; i++) {
        send_some(l, "a", 10 + 100 * i, 110 + 100 * i);
        save(l);
    }
    assert_refused(l, "unavailable", "there are 111, ", "{'op': 'load', 'checkpoint': 3}");
    assert_refused(l, "unavailable", "journal.keep all",
                   "{'op': 'load', 'checkpoint': 111, 'relearn': true}");
    assert_refused(l, "wrong_type", "relearn: true", "{'op': 'load', 'checkpoint': 111, 'without': 'a'}");
    char path[300];
    path_of(l, "checkpoint", 111, path);
    assert_int_equal(truncate(path, 500), 0);
    assert_refused(l, "damaged", "checkpoint-", "{'op': 'load', 'checkpoint': 111}");
    end(l);
    test_folder_empty(l->path);
}

/* As many as are asked for, the newest ones close together, the oldest of all among them, and a restart never
 * lacks the journal that it needs. */
static void kept_ones_thin_out(void **state) {
    struct life *l = *state;
    static const char *const few[] = {"window", "10", "checkpoint.keep", "6", NULL};
    uint64_t *numbers = NULL;
    l->more = few;
    assert_begins(l, false);
    for (int i = 0; i < 64; i++) {
        feed(l, 10);
        save(l);
    }
    const int64_t samples = seen(l);
    end(l);
    assert_int_equal(list(l, "checkpoint", &numbers), 6);
    assert_int_equal(numbers[0], 11);
    assert_int_equal(numbers[5], 641);
    assert_int_equal(numbers[4], 631);
    for (int i = 1; i < 4; i++)
        assert_true(numbers[i + 1] - numbers[i] <= numbers[i] - numbers[i - 1]);
    svi_free(numbers);
    assert_begins(l, false);
    assert_int_equal(seen(l), samples);
    end(l);
}

static void scores_of(struct life *l, double out[4]) {
    struct svi_scored scored;
    struct svi_envelope env;
    speaker_build(&l->speaker, "{'x': {'a': 0.3, 'b': -1.7, 'd1': 1}}");
    const struct svi_bytes *f = &l->speaker.frame;
    assert_int_equal(svi_envelope_read(&env, f->data, f->size), SVS_OK);
    assert_int_equal(svi_stream_score(l->stream, "", &env, &scored, &l->error), SVS_OK);
    assert_in_range(scored.rows, 1, 4);
    memcpy(out, scored.scores, (size_t)scored.rows * sizeof *out);
    svi_scored_clear(&scored);
}

static const char *serving(struct life *l) {
    const struct svi_figure *f;
    const int count = svi_stream_figures(l->stream, NULL, NOW, &f);
    return svi_figure_find(f, count, "serving")->as.text;
}

/* A model of a file, in whatever order its classes and features are: it serves what it says, until another is
 * asked for; no refit takes its place by itself, and a restart goes on with it. */
static void a_model_serves(void **state) {
    struct life *l = *state;
    static const char *const beside[] = {"window", "50", "refit", "dcd", "refit.every", "20", NULL};
    static const char *const types[] = {"{'x': {'a': %d, 'b': %d, 'd1': 1}, 'y': %d, 'src': 'a', 'n': %d}"};
    double before[4], after[4];
    char hash[SVI_HASH_TEXT];
    for (int classes = 2; classes < 4; classes++) {
        struct svi_receipt r;
        l->more = beside;
        assert_begins(l, false);
        for (int i = 0; i < 150; i++) {
            if (i == 100) {
                scores_of(l, before);
                json_t *reply = request_turned(l);
                assert_true(json_is_true(json_object_get(reply, "ok")));
                json_decref(reply);
                assert_string_equal(serving(l), "loaded");
                reply = request(l, "{'op': 'status'}");
                assert_string_equal(text_of(reply, "serving"), "loaded");
                json_decref(reply);
            }
            speaker_build(&l->speaker, types[0], i % 7, i % 5, i % classes, i);
            const struct svi_bytes *f = &l->speaker.frame;
            assert_int_equal(
                svi_write_ahead_write(l->keeper, SVI_RECORD_SOURCED, NOW, f->data, f->size, NULL), SVS_OK);
            apply_bytes(l->stream, f->data, f->size, NOW, true, &r);
            if (i >= 100)
                assert_null(svi_engine_refit_take(svi_stream_root(l->stream)));
            finish_refit(l);
        }
        scores_of(l, after);
        assert_memory_equal(before, after, (classes < 3 ? 1 : 3) * sizeof(double));
        assert_int_equal(l->s.serve, SVI_SERVE_REFIT);
        assert_int_equal(svi_stream_hash(l->stream, hash, NULL), SVS_OK);
        end(l);
        assert_repeats(l, hash);
        assert_begins(l, false);
        assert_string_equal(serving(l), "loaded");
        save(l);
        end(l);
        assert_begins(l, false); /* from a checkpoint */
        assert_string_equal(serving(l), "loaded");
        scores_of(l, after);
        assert_memory_equal(before, after, (classes < 3 ? 1 : 3) * sizeof(double));
        json_decref(request(l, "{'op': 'refit'}"));
        finish_refit(l);
        assert_string_equal(serving(l), "refit");
        json_decref(request_turned(l));
        assert_string_equal(serving(l), "loaded");
        json_decref(request(l, "{'op': 'config', 'set': {'serve': 'online'}}"));
        send_one(l, "b", 1);
        assert_string_equal(serving(l), "online");
        end(l);
        test_folder_empty(l->path);
    }
}

static void assert_model_refused(struct life *l, const svs_model *m, const char *code, const char *says) {
    char hash[SVI_HASH_TEXT];
    assert_int_equal(svi_stream_hash(l->stream, hash, NULL), SVS_OK);
    json_t *reply = request_model(l, m);
    assert_string_equal(text_of(reply, "code"), code);
    if (!strstr(text_of(reply, "error"), says))
        fail_msg("%s", text_of(reply, "error"));
    json_decref(reply);
    assert_hash(l->stream, hash);
}

static void send_words(struct life *l, int from, int to) {
    struct svi_receipt r;
    for (int i = from; i < to; i++) {
        const int n = (int)svi_entry_next(svi_stream_entry(l->stream), "a");
        speaker_build(&l->speaker, "{'x': [%d, %d], 'y': '%s', 'src': 'a', 'n': %d}", i % 7, i % 5,
                      i % 3 ? "ok" : "fail", n);
        const struct svi_bytes *f = &l->speaker.frame;
        assert_int_equal(svi_write_ahead_write(l->keeper, SVI_RECORD_SOURCED, NOW, f->data, f->size, NULL),
                         SVS_OK);
        apply_bytes(l->stream, f->data, f->size, NOW, true, &r);
        assert_int_equal(r.accepted, 1);
    }
}

/* What points into the engine, and what a worker has, outlive the state that goes. */
static void prices_and_a_refit_that_is_away(void **state) {
    struct life *l = *state;
    char hash[SVI_HASH_TEXT];
    l->more =
        (const char *const[]){"window",        "50",           "refit",        "dcd", "refit.every", "1000",
                              "decision.cost", "ok=2,fail=20", "journal.keep", "all", NULL};
    assert_begins(l, false);
    send_words(l, 0, 60);
    json_t *reply = request(l, "{'op': 'save'}");
    const int64_t record = whole(reply, "record");
    json_decref(reply);
    send_words(l, 60, 80);
    json_decref(request(l, "{'op': 'refit'}"));
    struct svi_refit *job = svi_engine_refit_take(svi_stream_root(l->stream));
    assert_non_null(job);
    json_decref(request(l, "{'op': 'config', 'set': {'C': 5}}"));
    reply = request(l, "{'op': 'load', 'checkpoint': %d}", (int)record);
    if (!json_is_true(json_object_get(reply, "ok")))
        fail_msg("%s", text_of(reply, "error"));
    json_decref(reply);
    send_words(l, 80, 90); /* by prices, and a class of its own for each is asked for again */
    assert_int_equal(svi_stream_root(l->stream)->quality_stage.prices->known, 2);
    svi_refit_run(job);
    assert_true(svi_engine_refit_left(svi_stream_root(l->stream), job));
    send_words(l, 90, 100);
    assert_int_equal(svi_stream_hash(l->stream, hash, NULL), SVS_OK);
    end(l);
    assert_repeats(l, hash);
}

static void models_that_do_not_fit(void **state) {
    struct life *l = *state;
    static const char *const beside[] = {"refit", "dcd", NULL};
    static const double W[9] = {1, 2, 3}, b[3] = {0};
    static const char *const names[] = {"a", "b", "zz"};
    const svs_value classes[] = {svs_int(0), svs_int(1), svs_int(2)}, others[] = {svs_int(0), svs_str("new")};
    svs_model m = {
        .method = "alsvm", .d = 3, .rows = 1, .class_count = 2, .W = W, .b = b, .classes = classes};
    l->more = beside;
    assert_begins(l, false);
    assert_model_refused(l, &m, "unavailable", "has not seen two classes yet");
    for (int i = 0; i < 4; i++) {
        speaker_build(&l->speaker, "{'x': {'a': %d, 'b': 1, 'c': 2}, 'y': %d}", i, i % 2);
        const struct svi_bytes *f = &l->speaker.frame;
        assert_int_equal(svi_write_ahead_write(l->keeper, SVI_RECORD_FRAME, NOW, f->data, f->size, NULL),
                         SVS_OK);
        apply_bytes(l->stream, f->data, f->size, NOW, false, NULL);
    }
    m.features = names;
    assert_model_refused(l, &m, "wrong_columns", "the feature zz");
    m.features = NULL;
    m.d = 2;
    assert_model_refused(l, &m, "wrong_dimension", "2 features, the stream has 3");
    m.d = 3;
    m.classes = others;
    assert_model_refused(l, &m, "bad_label", "new");
    m.classes = classes;
    m.class_count = m.rows = 3;
    assert_model_refused(l, &m, "bad_label", "2 classes");
    m.class_count = 0;
    m.rows = 1;
    m.task = SVS_REGRESS;
    assert_model_refused(l, &m, "unavailable", "task regress");
    end(l);
    test_folder_empty(l->path);
    l->more = NULL; /* refit none */
    assert_begins(l, false);
    feed(l, 10);
    m = (svs_model){
        .method = "alsvm", .d = 2, .rows = 1, .class_count = 2, .W = W, .b = b, .classes = classes};
    assert_model_refused(l, &m, "unavailable", "refits are off");
    end(l);
}

/* What a later version wrote is not taken for damage. */
static void records_of_a_later_version(void **state) {
    struct life *l = *state;
    assert_begins(l, false);
    const struct svi_record r = {.number = 1, .kind = SVI_RECORD_KINDS, .payload = (const uint8_t *)""};
    assert_int_equal(svi_record_apply(&l->stream, &l->s, &r, NULL, &l->error), SVS_UNAVAILABLE);
    assert_non_null(strstr(l->error.text, "the later version that wrote it"));
    end(l);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(weights_are_the_same),
                                       TEST(random_walks),
                                       TEST(learned_again),
                                       TEST(refusals),
                                       TEST(kept_ones_thin_out),
                                       TEST(a_model_serves),
                                       TEST(prices_and_a_refit_that_is_away),
                                       TEST(models_that_do_not_fit),
                                       TEST(records_of_a_later_version)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
