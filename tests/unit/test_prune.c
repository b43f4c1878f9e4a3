/* Features and classes that no held sample has leave the stream: the model stays the exact one of what is
 * held, and what comes later is the same whether the state was taken up again or not. */
#include "support/engine.h"
#include "support/problem.h"

#include "engine/engine_internal.h"
#include "learner/learner_archive.h"
#include "learner/learner_internal.h"
#include "learner/learner_prune.h"
#include "store/checkpoint_file.h"
#include "support/archived.h"
#include "support/ring.h"

enum { D = 12, CLASSES = 6, WINDOW = 60 };

static void archive_learner(struct svi_archive *a, void *l) {
    svi_learner_archive(a, l);
}

struct life {
    svs_learner *l;
    uint64_t seed;
    int number;
};

/* One sparse sample of some features and one class; every third waits for its label first. */
static void live(struct life *a, int features, int classes) {
    double x[2 * D] = {0};
    char id[16];
    svs_step step;
    const int k = (int)(test_random(&a->seed) % (uint64_t)classes), d = svs_learner_dimension(a->l);
    for (int j = 0; j < features; j++)
        x[j] = test_random(&a->seed) % 3 ? 0 : (1 + j) * (test_normal(&a->seed) + k);
    snprintf(id, sizeof id, "s%d", a->number);
    const bool late = a->number++ % 3 == 0;
    const svs_value y = a->l->o.task == SVS_REGRESS ? svs_real(x[0] + x[1])
                        : k % 2                     ? svs_int(k)
                                                    : svs_str((const char *[]){"a", "b", "c", "d"}[k / 2]);
    const svs_sample s = {.x = x, .d = d, .id = svs_str(id), .y = late ? svs_none() : y, .weight = 1};
    assert_int_equal(svs_learner_step(a->l, &s, a->number, &step, NULL), SVS_OK);
    snprintf(id, sizeof id, "s%d", a->number - 6);
    if (late && a->number % 2)
        svs_learner_label(a->l, svs_str(id), y, a->number, &step, NULL);
}

static int count_of(const bool *flags, int n) {
    int count = 0;
    for (int i = 0; i < n; i++)
        count += flags[i];
    return count;
}

static void prune(svs_learner *l, int *features, int *classes) {
    bool feature[2 * D], class[2 * CLASSES], any;
    assert_int_equal(svi_learner_held(l, feature, class, &any, NULL), SVS_OK);
    *features = count_of(feature, l->d);
    *classes = count_of(class, l->class_count);
    assert_int_equal(svi_learner_prune(l, feature, class, NULL), SVS_OK);
    assert_int_equal(svs_learner_dimension(l), *features);
    assert_int_equal(svs_learner_class_count(l), *classes);
    assert_null(ring_check(&l->window));
    assert_null(ring_check(&l->waiting));
}

static void check_life(svs_options o, int classes, uint64_t seed) {
    struct life a = {.seed = seed}, b;
    struct svi_bytes one = {0}, other = {0};
    svs_error err;
    double x[D] = {3, -2}, before[CLASSES], after[CLASSES];
    int features, left;
    assert_non_null(a.l = svs_learner_new(&o, D, NULL));
    for (int i = 0; i < 3 * WINDOW; i++)
        live(&a, D, classes);
    for (int i = 0; i < 2 * WINDOW; i++) /* the window is full of these, and others have left it */
        live(&a, 2, classes < 3 ? classes : 3);
    svs_learner_scores(a.l, x, before);
    const int rows = svs_learner_rows(a.l), was = svs_learner_class_count(a.l);
    prune(a.l, &features, &left);
    assert_true(features < D && (classes < 4 || left < classes));
    assert_true(svs_learner_check(a.l) < 1e-10);
    svs_learner_scores(a.l, x, after);
    /* The same problem: but a rebuild scales again, and the rule of a ridge that fades depends on d. */
    const bool comparable = o.scale == SVS_SCALE_NONE && o.forget == 1 && left == was;
    for (int k = 0; comparable && k < rows; k++)
        assert_true(fabs(after[k] - before[k]) <= 1e-9 * (1 + fabs(before[k])));
    assert_int_equal(archived_save(archive_learner, a.l, &one, &err), SVS_OK);
    b = a;
    assert_non_null(b.l = svs_learner_new(&o, 0, NULL));
    assert_int_equal(archived_load(archive_learner, b.l, one.data, one.size, &err), SVS_OK);
    for (int i = 0; i < 4 * WINDOW; i++) { /* others come, and the window slides over planned rebuilds */
        if (i == 20)
            assert_true(svs_learner_grow(a.l, D, NULL) == SVS_OK && svs_learner_grow(b.l, D, NULL) == SVS_OK);
        live(&a, svs_learner_dimension(a.l), i < 40 ? 2 : classes);
        live(&b, svs_learner_dimension(b.l), i < 40 ? 2 : classes);
        assert_true(i % 20 || svs_learner_check(a.l) < 1e-10);
    }
    one.size = 0;
    assert_int_equal(archived_save(archive_learner, a.l, &one, &err), SVS_OK);
    assert_int_equal(archived_save(archive_learner, b.l, &other, &err), SVS_OK);
    assert_true(archived_same(&one, &other));
    svi_bytes_clear(&one);
    svi_bytes_clear(&other);
    svs_learner_free(&a.l);
    svs_learner_free(&b.l);
}

static void test_the_model_stays_exact(void **unused) {
    (void)unused;
    for (int scale = 0; scale < 2; scale++)
        for (int classes = 1; classes <= CLASSES; classes++)
            for (int kind = 0; kind < 4; kind++) {
                svs_options o;
                svs_options_default(&o);
                o.window = WINDOW;
                o.max_features = 2 * D;
                o.max_classes = CLASSES;
                o.scale = (svs_scale)scale;
                o.labels_max = 20;
                o.forget = kind == 1 ? 0.99 : 1;
                o.rule = kind == 2 ? SVS_FALSVM : SVS_ALSVM;
                o.task = kind == 3 ? SVS_REGRESS : SVS_CLASSIFY;
                check_life(o, classes, (uint64_t)(100 * scale + 10 * classes + kind + 1));
            }
}

/* A learner whose window has become empty. */
static void test_nothing_is_held(void **unused) {
    (void)unused;
    svs_options o;
    svs_step step;
    int features, classes;
    const double x[] = {1, 2, 3};
    for (int scale = 0; scale < 2; scale++) {
        svs_options_default(&o);
        o.scale = (svs_scale)scale;
        svs_learner *l = svs_learner_new(&o, 3, NULL);
        for (int i = 0; i < 20; i++) {
            const svs_sample s = {.x = x, .d = 3, .id = svs_int(7), .y = svs_int(i % 4), .weight = 1};
            assert_int_equal(svs_learner_step(l, &s, i, &step, NULL), SVS_OK);
        }
        assert_int_equal(svs_learner_forget(l, svs_int(7), 20, NULL, NULL), SVS_OK);
        prune(l, &features, &classes);
        assert_true(features == 0 && classes == 0);
        assert_int_equal(svs_learner_grow(l, 2, NULL), SVS_OK);
        for (int i = 0; i < 50; i++) {
            const svs_sample s = {.x = x, .d = 2, .id = svs_none(), .y = svs_int(10 + i % 3), .weight = 1};
            assert_int_equal(svs_learner_step(l, &s, 30 + i, &step, NULL), SVS_OK);
        }
        assert_true(svs_learner_check(l) < 1e-10);
        svs_learner_free(&l);
    }
}

/* ---- the stream */

static void refused(struct speaker *f, const char *message, svs_code code) {
    const int before = f->count[SVI_TOPIC_ERROR];
    say(f, "%s", message);
    assert_int_equal(f->count[SVI_TOPIC_ERROR], before + 1);
    assert_int_equal(f->error, code);
}

static void taken(struct speaker *f, const char *message) {
    const int64_t seen = svi_stream_seen(f->e);
    say(f, "%s", message);
    assert_int_equal(svi_stream_seen(f->e), seen + 1);
}

static void dropped(struct speaker *f, int features, int classes) {
    json_t *reply = ask(f, "{'op': 'prune'}");
    assert_true(json_is_true(json_object_get(reply, "ok")));
    assert_int_equal(number(reply, "features"), features);
    assert_int_equal(number(reply, "classes"), classes);
    json_decref(reply);
}

static const char *const narrow[] = {"max.features", "4",     "max.classes", "3", "window", "6",
                                     "missing",      "carry", NULL};

static void fill(struct speaker *f) {
    taken(f, "{'x': {'a': 1, 'b': 2, 'c': 3, 'd': 4}, 'y': 'k'}");
    taken(f, "{'x': {'a': 1}, 'y': 'l'}");
    taken(f, "{'x': {'d': 1}, 'id': 5}"); /* waits */
    for (int i = 0; i < 8; i++)
        taken(f, i % 2 ? "{'x': {'b': 2}, 'y': 'l'}" : "{'x': {'b': 1.5, 'd': 0}, 'y': 'm'}");
    refused(f, "{'x': {'e': 1}}", SVS_LIMIT);
    refused(f, "{'x': {'a': 1}, 'y': 'n'}", SVS_LIMIT);
}

static void test_room_for_others(void **unused) {
    (void)unused;
    struct speaker f, g;
    struct svi_checkpoint c = {0};
    svs_error err;
    char one[SVI_HASH_TEXT], other[SVI_HASH_TEXT];
    speaker_open(&f, narrow);
    fill(&f);
    dropped(&f, 2, 1); /* a and c; k */
    dropped(&f, 0, 0);
    json_t *reply = ask(&f, "{'op': 'model'}");
    json_t *model = json_object_get(reply, "model");
    char *text = json_dumps(json_object_get(model, "features"), JSON_COMPACT);
    assert_string_equal(text, "[\"b\",\"d\"]");
    free(text);
    text = json_dumps(json_object_get(model, "classes"), JSON_COMPACT);
    assert_string_equal(text, "[\"l\",\"m\"]");
    free(text);
    json_decref(reply);
    assert_int_equal(svi_stream_save(f.e, &c, &err), SVS_OK);
    speaker_open(&g, narrow);
    assert_int_equal(svi_stream_load(g.e, &c, &err), SVS_OK);
    memcpy(g.count, f.count, sizeof g.count);
    f.deeds.size = 0;
    struct speaker *both[] = {&f, &g};
    for (int i = 0; i < 2; i++) {
        struct speaker *s = both[i];
        refused(s, "{'x': {'e': null, 'b': 1}}", SVS_MISSING_VALUE); /* no value of a is carried over */
        taken(s, "{'x': {'e': 1, 'b': null, 'f': 2}, 'y': 'n'}");
        say(s, "{'op': 'label', 'id': 5, 'y': 'l'}");
        for (int k = 0; k < 40; k++)
            taken(s, k % 3 ? "{'x': {'b': 2, 'f': 1}, 'y': 'l'}" : "{'x': {'b': 1, 'd': 3}, 'y': 'n'}");
        refused(s, "{'x': {'a': 1}}", SVS_LIMIT);
    }
    assert_int_equal(stat(&f, "labels_joined"), 1);
    assert_true(f.deeds.size == g.deeds.size && memcmp(f.deeds.data, g.deeds.data, f.deeds.size) == 0);
    assert_int_equal(svi_stream_hash(f.e, one, &err), SVS_OK);
    assert_int_equal(svi_stream_hash(g.e, other, &err), SVS_OK);
    assert_string_equal(one, other);
    svi_checkpoint_clear(&c);
    speaker_close(&f);
    speaker_close(&g);
}

static void test_reset_opens_the_stream(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, narrow);
    fill(&f);
    json_decref(ask(&f, "{'op': 'reset'}"));
    assert_true(stat(&f, "d") == 0 && stat(&f, "classes") == 0);
    for (int i = 0; i < 20; i++)
        taken(&f, i % 2 ? "{'x': [1, 2, 3], 'y': 'n'}" : "{'x': [2, 2, 3], 'y': 'o'}");
    refused(&f, "{'x': {'a': 1}}", SVS_WRONG_KIND);
    json_decref(ask(&f, "{'op': 'reset'}"));
    taken(&f, "{'x': {'7': 1, 'z': 1}, 'y': 3}");
    speaker_close(&f);
}

/* What a row held before reset is in no column that comes after it. */
static void test_reset_leaves_no_values(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, narrow);
    fill(&f);
    json_decref(ask(&f, "{'op': 'reset'}"));
    taken(&f, "{'x': {'p': 1}, 'y': 'n'}");
    taken(&f, "{'x': {'q': 1}, 'y': 'o'}");
    const struct svi_ring *window = &svi_stream_root(f.e)->learner->window;
    assert_true(svs_learner_dimension(svi_stream_root(f.e)->learner) == 2 && window->count == 2);
    assert_true(svi_ring_row(window, svi_ring_at(window, 0))[1] == 0);
    speaker_close(&f);
}

/* Names of which no row came are dropped, and take no flags of classes for theirs. */
static void test_names_alone(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, narrow);
    speaker_build(&f, "[{'columns': ['a', 'b', 'c']}]");
    apply_bytes(f.e, f.frame.data, f.frame.size, NOW, false, NULL);
    json_decref(ask(&f, "{'op': 'reset'}"));
    speaker_build(&f, "[{'columns': ['v', 'w']}, {'x': [1, 2], 'y': 'n'}]");
    apply_bytes(f.e, f.frame.data, f.frame.size, NOW, false, NULL);
    assert_true(stat(&f, "d") == 2 && stat(&f, "refused") == 0);
    json_decref(ask(&f, "{'op': 'reset'}"));
    speaker_build(&f, "[{'columns': ['a', 'b', 'c', 'e']}, {'x': {'a': 1}, 'y': 'n'}]");
    apply_bytes(f.e, f.frame.data, f.frame.size, NOW, false, NULL);
    assert_true(stat(&f, "d") == 1);
    json_decref(ask(&f, "{'op': 'reset'}"));
    assert_true(stat(&f, "d") == 0);
    taken(&f, "{'x': {'b': 1}, 'y': 'n'}");
    assert_string_equal(svi_shape_name(&svi_stream_root(f.e)->schema.shape, 0), "b");
    speaker_close(&f);
}

/* Where rows of text come in. */
static void test_reset_that_keeps_the_shape(void **unused) {
    (void)unused;
    struct speaker f;
    speaker_open(&f, narrow);
    fill(&f);
    f.control.text_rows = true;
    json_decref(ask(&f, "{'op': 'reset'}"));
    assert_true(stat(&f, "d") == 4 && stat(&f, "classes") == 3);
    json_t *reply = ask(&f, "{'op': 'prune'}");
    assert_string_equal(text_of(reply, "code"), "unavailable");
    json_decref(reply);
    speaker_close(&f);
}

static void test_what_stays(void **unused) {
    (void)unused;
    const struct {
        const char *key, *value, *sample, *code;
    } cases[] = {{"window", "10", "{'x': [0, 0, 1], 'y': 1}", NULL},
                 {"features", "a,b,c", "{'x': {'a': 1}, 'y': 1}", NULL},
                 {"window", "0", "{'x': {'a': 1}, 'y': 1}", "unavailable"},
                 {"method", "none", "{'x': {'a': 1}}", "unavailable"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct speaker f;
        const char *settings[] = {cases[i].key, cases[i].value, NULL};
        speaker_open(&f, settings);
        taken(&f, cases[i].sample);
        const double d = stat(&f, "d");
        json_t *reply = ask(&f, "{'op': 'prune'}");
        assert_string_equal(cases[i].code ? text_of(reply, "code") : "", cases[i].code ? cases[i].code : "");
        assert_true(cases[i].code || number(reply, "features") == 0);
        json_decref(reply);
        assert_true(stat(&f, "d") == d);
        speaker_close(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_model_stays_exact),
        cmocka_unit_test(test_nothing_is_held),
        cmocka_unit_test(test_room_for_others),
        cmocka_unit_test(test_reset_leaves_no_values),
        cmocka_unit_test(test_names_alone),
        cmocka_unit_test(test_reset_opens_the_stream),
        cmocka_unit_test(test_reset_that_keeps_the_shape),
        cmocka_unit_test(test_what_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
