/* Probabilities in the engine: what score events, models, replies and figures say of them, when labels come
 * late, when classes come later, when decisions have prices, when a refit serves; that cutting messages
 * changes nothing, and that what is kept goes on. */
#include "support/engine.h"
#include "support/problem.h"
#include "store/checkpoint_file.h"

#include "config/settings_record.h"
#include "engine/engine_internal.h"
#include "fleet/fleet.h"

static const char *const plain[] = {"window", "200",           "novelty", "none", "refit",
                                    "none",   "publish.every", "0",       NULL};

/* Three classes from sample `third` on; about 1 in 8 of class b. */
static int draw(uint64_t *seed, double *x, int i, int third) {
    const int y = i >= third && i % 5 == 0 ? 2 : test_random(seed) % 8 == 0;
    x[0] = test_normal(seed) + 1.5 * (y == 1);
    x[1] = test_normal(seed) + 2.5 * (y == 2);
    return y;
}

static const char *const names[] = {"a", "b", "c"};

static void tell(struct speaker *f, uint64_t *seed, int i, int third) {
    double x[2];
    const int y = draw(seed, x, i, third);
    assert_int_equal(say(f, "{'x': [%.17g, %.17g], 'y': '%s'}", x[0], x[1], names[y]), SVS_OK);
}

static const json_t *proba_of(const struct speaker *f) {
    return json_object_get(f->last[SVI_TOPIC_SCORE], "proba");
}

static void events_have_probabilities(void **unused) {
    (void)unused;
    struct speaker f;
    uint64_t seed = 1;
    speaker_open(&f, plain);
    int seen_classes = 0;
    double loss = 0, brier = 0;
    int counted = 0;
    bool met[3] = {false};
    for (int i = 0; i < 600; i++) {
        double x[2];
        const int y = draw(&seed, x, i, 400);
        say(&f, "{'x': [%.17g, %.17g], 'y': '%s'}", x[0], x[1], names[y]);
        const json_t *p = proba_of(&f);
        const size_t count = json_array_size(p);
        assert_true(seen_classes < 2 ? p == NULL : count == (size_t)seen_classes);
        double sum = 0;
        for (size_t k = 0; k < count; k++)
            sum += json_number_value(json_array_get(p, k));
        assert_true(count == 0 || fabs(sum - 1) < 1e-12);
        if (count > 0) {
            const double mine = y < (int)count ? json_number_value(json_array_get(p, (size_t)y)) : 1e-15;
            loss -= log(mine);
            brier += count == 2 && y < 2 ? pow(1 - mine, 2) : 0;
            counted++;
        }
        seen_classes += !met[y];
        met[y] = true;
    }
    assert_int_equal(seen_classes, 3);
    assert_true(fabs(stat(&f, "logloss") - loss / counted) < 1e-6);
    assert_true(stat(&f, "brier") > 0 && stat(&f, "brier") >= brier / counted - 1e-6);
    assert_true(stat(&f, "ece") < 0.2 && stat(&f, "ece.w") >= 0 && stat(&f, "logloss.w") > 0);
    json_t *reply = ask(&f, "{'op': 'score', 'sample': {'x': [1, 1]}}");
    assert_int_equal(json_array_size(json_object_get(reply, "proba")), 3);
    json_decref(reply);
    speaker_close(&f);
}

/* The model that is published gives the probabilities that the next sample has. */
static void models_carry_the_calibration(void **unused) {
    (void)unused;
    for (int third = 300; third <= 10000; third += 9700) {
        struct speaker f;
        uint64_t seed = 2;
        speaker_open(&f, plain);
        for (int i = 0; i < 700; i++) {
            const svs_model *m = NULL;
            double scores[3], p[3], x[2];
            svs_error err = {0};
            if (i % 97 == 96) {
                svi_engine_publish_model(svi_stream_root(f.e), true);
                m = svs_model_decode(f.event.data, f.event.size, &err);
                if (!m)
                    fail_msg("%s", err.text);
            }
            const int y = draw(&seed, x, i, third);
            say(&f, "{'x': [%.17g, %.17g], 'y': '%s'}", x[0], x[1], names[y]);
            if (!m)
                continue;
            svs_model_scores(m, x, scores);
            assert_true(svs_model_probabilities(m, scores, p));
            for (int k = 0; k < m->class_count; k++)
                assert_true(fabs(json_number_value(json_array_get(proba_of(&f), (size_t)k)) - p[k]) < 1e-9);
            svs_model_free((svs_model **)(uintptr_t)&m);
        }
        speaker_close(&f);
    }
}

/* With a high price of missing class b it is decided for wherever p of it is above 1 / (1 + price). */
static void decisions_follow_prices(void **unused) {
    (void)unused;
    static const char *const priced[] = {
        "window",        "200", "novelty",       "none",         "refit", "none",
        "publish.every", "0",   "decision.cost", "b=9,nobody=5", NULL};
    struct speaker f;
    uint64_t seed = 3;
    int otherwise = 0;
    speaker_open(&f, priced);
    for (int i = 0; i < 800; i++) {
        tell(&f, &seed, i, 10000);
        const json_t *p = proba_of(&f);
        if (!p)
            continue;
        const json_t *last = f.last[SVI_TOPIC_SCORE];
        const double b = json_number_value(json_array_get(p, 1)), /* the second that came, or the first */
            score = json_number_value(json_array_get(json_object_get(last, "scores"), 0));
        const bool b_second = strcmp(names[1], "b") == 0;
        assert_true(b_second);
        assert_string_equal(text_of(last, "yhat"), b > 0.1 ? "b" : "a");
        otherwise += (b > 0.1) != (score > 0);
    }
    assert_true(otherwise > 50);
    json_t *reply = ask(&f, "{'op': 'config', 'set': {'decision.cost': 'none'}}");
    assert_true(json_is_true(json_object_get(reply, "ok")));
    json_decref(reply);
    for (int i = 0; i < 100; i++) {
        tell(&f, &seed, i, 10000);
        const json_t *last = f.last[SVI_TOPIC_SCORE];
        const double score = json_number_value(json_array_get(json_object_get(last, "scores"), 0));
        assert_string_equal(text_of(last, "yhat"), score > 0 ? "b" : "a");
    }
    reply = ask(&f, "{'op': 'config', 'set': {'decision.cost': 'b:9'}}");
    assert_false(json_is_true(json_object_get(reply, "ok")));
    json_decref(reply);
    speaker_close(&f);
}

/* The whole state, and the bytes of all events, after the same samples in pieces of `piece`. */
static void run_in_pieces(struct speaker *f, const char *const *settings, int piece, int samples) {
    uint64_t seed = 4;
    speaker_open(f, settings);
    for (int i = 0; i < samples;) {
        char text[4000] = "[";
        for (int k = 0; k < piece && i < samples; k++, i++) {
            double x[2];
            const int y = draw(&seed, x, i, samples / 2);
            char label[40] = "";
            if (i % 4 != 3)
                snprintf(label, sizeof label, ", 'y': '%s'", names[y]);
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s{'x': [%.17g, %.17g], 'id': %d%s}",
                     k ? "," : "", x[0], x[1], i, label);
            if (i % 4 == 3 && ++k) /* the label comes late */
                snprintf(text + strlen(text), sizeof text - strlen(text),
                         ",{'op': 'label', 'id': %d, 'y': '%s'}", i, names[y]);
        }
        assert_int_equal(say(f, "%s]", text), SVS_OK);
    }
    assert_int_equal(f->count[SVI_TOPIC_ERROR], 0);
}

static void pieces_change_nothing(void **unused) {
    (void)unused;
    char hash[2][SVI_HASH_TEXT];
    struct speaker f[2];
    for (int w = 0; w < 2; w++) {
        run_in_pieces(&f[w], plain, w ? 17 : 1, 600);
        assert_int_equal(svi_stream_hash(f[w].e, hash[w], NULL), SVS_OK);
    }
    assert_string_equal(hash[0], hash[1]);
    assert_int_equal(f[0].deeds.size, f[1].deeds.size);
    assert_memory_equal(f[0].deeds.data, f[1].deeds.data, f[0].deeds.size);
    assert_true(stat(&f[0], "labels_joined") == 150 && stat(&f[0], "logloss") < 1);
    speaker_close(&f[0]);
    speaker_close(&f[1]);
}

/* Saved in the middle, with a refit that serves; the copy goes on as the original (until the next refit,
 * whose solver begins elsewhere). */
static void what_is_kept_goes_on(void **unused) {
    (void)unused;
    static const char *const settings[] = {
        "window", "100",   "novelty", "none",          "refit.every", "300", "publish.every",
        "50",     "serve", "refit",   "decision.cost", "b=3",         NULL};
    struct speaker f, g;
    struct svi_checkpoint c = {0};
    char one[SVI_HASH_TEXT], other[SVI_HASH_TEXT];
    uint64_t seed = 5;
    svs_error err = {0};
    speaker_open(&f, settings);
    for (int i = 0; i < 331; i++) {
        tell(&f, &seed, i, 10000);
        svi_engine_refit_here(svi_stream_root(f.e));
    }
    assert_true(svi_stream_root(f.e)->refit->serves);
    assert_int_equal(svi_stream_save(f.e, &c, &err), SVS_OK);
    assert_non_null(svi_checkpoint_find(&c, "quality"));
    speaker_open(&g, settings);
    if (svi_stream_load(g.e, &c, &err) != SVS_OK)
        fail_msg("%s", err.text);
    memcpy(g.count, f.count, sizeof g.count);
    f.deeds.size = 0;
    for (int i = 331; i < 590; i++) {
        uint64_t again = seed;
        tell(&f, &seed, i, 550);
        tell(&g, &again, i, 550);
        svi_engine_refit_here(svi_stream_root(f.e));
        svi_engine_refit_here(svi_stream_root(g.e));
    }
    svi_stream_hash(f.e, one, NULL);
    svi_stream_hash(g.e, other, NULL);
    assert_string_equal(one, other);
    svi_checkpoint_clear(&c);
    speaker_close(&f);
    speaker_close(&g);
}

/* The calibration of the refit is of its own scores: a refit's are other than the online model's. */
static void a_refit_has_its_own(void **unused) {
    (void)unused;
    static const char *const settings[] = {"window", "200",   "novelty", "none",          "refit.every",
                                           "100",    "C",     "0.01",    "publish.every", "0",
                                           "serve",  "refit", NULL};
    struct speaker f;
    uint64_t seed = 6;
    speaker_open(&f, settings);
    for (int i = 0; i < 3000; i++) {
        tell(&f, &seed, i, 10000);
        svi_engine_refit_here(svi_stream_root(f.e));
    }
    const svs_calibration online = svi_calibrator_law(svi_stream_root(f.e)->quality_stage.calibrator[0], 2),
                          refit = svi_calibrator_law(svi_stream_root(f.e)->quality_stage.calibrator[1], 2);
    assert_true(svi_stream_root(f.e)->refit->serves && fabs(online.a - refit.a) > 0.01);
    assert_true(stat(&f, "ece") < 0.05);
    speaker_close(&f);
}

/* A regression, and a stream that learns nothing, have none. */
static void where_there_are_none(void **unused) {
    (void)unused;
    static const char *const others[][5] = {{"task", "regress", NULL}, {"method", "none", NULL}};
    for (int k = 0; k < 2; k++) {
        struct speaker f;
        speaker_open(&f, others[k]);
        for (int i = 0; i < 50; i++)
            say(&f, "{'x': [%d, %d], 'y': %d}", i % 7, i % 3, i % 2);
        assert_null(proba_of(&f));
        assert_true(isnan(stat(&f, "brier")));
        speaker_close(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_have_probabilities), cmocka_unit_test(models_carry_the_calibration),
        cmocka_unit_test(decisions_follow_prices),   cmocka_unit_test(pieces_change_nothing),
        cmocka_unit_test(what_is_kept_goes_on),      cmocka_unit_test(a_refit_has_its_own),
        cmocka_unit_test(where_there_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
