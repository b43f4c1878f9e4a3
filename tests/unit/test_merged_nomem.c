/* Merged models in an engine: whatever classes and features the model and the stream have, in whatever order,
 * the scores are W x + b by names; a state that is saved and loaded has the same; and no failing allocation
 * does harm. Linked with --wrap. */
#include "support/engine.h"
#include "support/nomem.h"
#include "support/problem.h"

#include "engine/engine_internal.h"

#define NAMES  6
#define LABELS 5
#define TRIALS 300

static const char *const settings[] = {"method", "alsvm",      "novelty",     "none",  "alert.rules",
                                       "none",   "merge.from", "ipc://none",  "serve", "merged",
                                       "window", "50",         "max.classes", "8",     "publish.seconds",
                                       "0",      NULL};
static const char *const names[NAMES] = {"a", "b", "c", "d", "e", "f"};
static const char *const labels[LABELS] = {"p", "q", "r", "s", "t"};

/* A model over some of the names and labels, in an order of its own. */
struct model {
    int d, classes;
    int name[NAMES], label[LABELS];
    double W[LABELS * NAMES], b[LABELS];
};

static int pick(uint64_t *random, int below) {
    return (int)(test_random(random) % (uint64_t)below);
}

/* The first `count` of a shuffled 0 ... all - 1. */
static void choose(uint64_t *random, int *out, int all, int count) {
    int order[NAMES];
    for (int i = 0; i < all; i++)
        order[i] = i;
    for (int i = 0; i < count; i++) {
        const int j = i + pick(random, all - i), swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
        out[i] = order[i];
    }
}

static struct model make_model(uint64_t *random) {
    struct model m = {.d = 1 + pick(random, NAMES), .classes = 2 + pick(random, LABELS - 1)};
    choose(random, m.name, NAMES, m.d);
    choose(random, m.label, LABELS, m.classes);
    for (int i = 0; i < LABELS * NAMES; i++)
        m.W[i] = test_normal(random);
    for (int k = 0; k < LABELS; k++)
        m.b[k] = test_normal(random);
    return m;
}

static int rows_of(int classes) {
    return classes < 3 ? 1 : classes;
}

static void encode(const struct model *m, uint64_t version, struct svi_bytes *out) {
    struct svi_pack p;
    const char *features[NAMES];
    for (int j = 0; j < m->d; j++)
        features[j] = names[m->name[j]];
    out->size = 0;
    svi_pack_begin(&p, out);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_uint(&p, "epoch", 1);
    svi_put_uint(&p, "version", version);
    svi_put_text(&p, "method", "merged");
    svi_put_text(&p, "task", m->classes ? "classify" : "regress");
    svi_put_int(&p, "d", m->d);
    svi_pack_key(&p, "features");
    svi_pack_names(&p, features, m->d);
    svi_put_array(&p, "classes", (size_t)m->classes);
    for (int k = 0; k < m->classes; k++)
        svi_pack_text(&p, labels[m->label[k]]);
    svi_put_doubles(&p, "W", m->W, (size_t)rows_of(m->classes) * (size_t)m->d);
    if (m->classes < 3)
        svi_put_real(&p, "b", m->b[0]);
    else
        svi_put_doubles(&p, "b", m->b, (size_t)m->classes);
    svi_put_array(&p, "parts", 0);
    svi_pack_close(&p, map);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
}

/* The score that the model gives a label, by its definition: of two classes the second has the row. */
static double hoped(const struct model *m, const double *x, const char *label) {
    for (int k = 0; k < m->classes; k++) {
        if (strcmp(labels[m->label[k]], label) != 0)
            continue;
        const int row = m->classes == 2 ? 0 : k;
        double s = m->b[row];
        for (int j = 0; j < m->d; j++)
            s += m->W[row * m->d + j] * x[m->name[j]];
        return m->classes == 2 && k == 0 ? -s : s;
    }
    return -1;
}

/* A sample of the stream: its first `d` names, one of its first `classes` labels. */
static void say_row(struct speaker *f, const double *x, int d, const char *label) {
    char text[500];
    int at = snprintf(text, sizeof text, "{'x': {");
    for (int j = 0; j < d; j++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s'%s': %.17g", j ? ", " : "", names[j], x[j]);
    snprintf(text + at, sizeof text - (size_t)at, label ? "}, 'y': '%s'}" : "}}", label);
    assert_int_equal(say(f, "%s", text), SVS_OK);
}

static void fill(struct speaker *f, uint64_t *random, int d, int classes) {
    double x[NAMES] = {0};
    for (int i = 0; i < 3 * classes; i++) {
        for (int j = 0; j < d; j++)
            x[j] = test_normal(random);
        say_row(f, x, d, labels[i % classes]);
    }
}

/* Scores a row; its scores must be those of the model, by label. */
static void check_scores(struct speaker *f, const struct model *m, uint64_t *random, int d) {
    double x[NAMES] = {0};
    for (int j = 0; j < d; j++)
        x[j] = test_normal(random);
    say_row(f, x, d, NULL);
    const json_t *event = f->last[SVI_TOPIC_SCORE];
    const json_t *scores = json_object_get(event, "scores"), *known = json_object_get(event, "classes");
    assert_true(json_is_true(json_object_get(event, "merged")));
    const size_t rows = json_array_size(scores), classes = json_array_size(known);
    assert_int_equal(rows, rows_of((int)classes));
    for (size_t k = 0; k < classes; k++) {
        const char *label = json_string_value(json_array_get(known, k));
        const double one = json_number_value(json_array_get(scores, rows == 1 ? 0 : k));
        const double shown = rows == 1 && k == 0 ? -one : one, wanted = hoped(m, x, label);
        if (fabs(shown - wanted) > 1e-12 * (1 + fabs(wanted)))
            fail_msg("%s: %.17g instead of %.17g", label, shown, wanted);
    }
}

static bool shares_a_name(const struct model *m, int d) {
    for (int j = 0; j < m->d; j++)
        if (m->name[j] < d)
            return true;
    return false;
}

static void test_names(void **unused) {
    (void)unused;
    uint64_t random = 20;
    int taken = 0, refused = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        struct speaker f;
        struct svi_bytes bytes = {0};
        svs_error err;
        const int d = 1 + pick(&random, NAMES), classes = 1 + pick(&random, LABELS);
        speaker_open(&f, settings);
        fill(&f, &random, d, classes);
        for (uint64_t version = 1; version <= 3; version++) {
            const struct model m = make_model(&random);
            encode(&m, version, &bytes);
            svi_engine *e = svi_stream_root(f.e);
            const bool fits = shares_a_name(&m, d);
            assert_int_equal(svi_engine_check_merged(e, bytes.data, bytes.size, &err),
                             fits ? SVI_MERGED_FITS : SVI_MERGED_REFUSED);
            assert_int_equal(svi_engine_take_merged(e, bytes.data, bytes.size, &err),
                             fits ? SVS_OK : SVS_WRONG_COLUMNS);
            taken += fits;
            refused += !fits;
            if (!fits)
                continue;
            check_scores(&f, &m, &random, d);
            speaker_take_up_again(&f);
            check_scores(&f, &m, &random, d);
            assert_int_equal(svi_engine_check_merged(svi_stream_root(f.e), bytes.data, bytes.size, &err),
                             SVI_MERGED_OLD);
        }
        svi_bytes_clear(&bytes);
        speaker_close(&f);
    }
    assert_true(taken > TRIALS && refused > 0);
}

/* A class that is new in the stream, and a reset, end the model; a renewed window and another C do not. */
static void test_ends(void **unused) {
    (void)unused;
    uint64_t random = 3;
    struct speaker f;
    struct svi_bytes bytes = {0};
    const struct model m = {2, 3, {0, 1}, {0, 1, 2}, {1, 2, 3, 4, 5, 6}, {1, 0, -1}};
    speaker_open(&f, settings);
    fill(&f, &random, 2, 2);
    encode(&m, 1, &bytes);
    assert_int_equal(svi_engine_take_merged(svi_stream_root(f.e), bytes.data, bytes.size, NULL), SVS_OK);
    check_scores(&f, &m, &random, 2);
    json_decref(ask(&f, "{'op': 'config', 'set': {'C': 5, 'window': 20}}"));
    check_scores(&f, &m, &random, 2);
    fill(&f, &random, 2, 4);
    say_row(&f, m.W, 2, NULL);
    assert_null(json_object_get(f.last[SVI_TOPIC_SCORE], "merged"));
    encode(&m, 2, &bytes);
    assert_int_equal(svi_engine_take_merged(svi_stream_root(f.e), bytes.data, bytes.size, NULL), SVS_OK);
    check_scores(&f, &m, &random, 2);
    json_decref(ask(&f, "{'op': 'reset'}"));
    say_row(&f, m.W, 2, NULL);
    assert_null(json_object_get(f.last[SVI_TOPIC_SCORE], "merged"));
    assert_int_equal(stat(&f, "merged_models"), 2);
    svi_bytes_clear(&bytes);
    speaker_close(&f);
}

/* A regression: one row, no classes; kept like the others. */
static void test_values(void **unused) {
    (void)unused;
    static const char *const regress[] = {"task",   "regress",    "novelty",    "none",  "alert.rules",
                                          "none",   "merge.from", "ipc://none", "serve", "merged",
                                          "window", "0",          NULL};
    struct speaker f;
    struct svi_bytes bytes = {0};
    const struct model m = {2, 0, {1, 0}, {0}, {3, -2}, {0.5}};
    speaker_open(&f, regress);
    for (int i = 0; i < 5; i++)
        assert_int_equal(say(&f, "{'x': {'a': %d, 'b': %d}, 'y': %d}", i, i * i, i), SVS_OK);
    encode(&m, 1, &bytes);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(svi_engine_take_merged(svi_stream_root(f.e), bytes.data, bytes.size, NULL), SVS_OK);
        assert_int_equal(say(&f, "{'x': {'a': 10, 'b': 100}, 'y': 280.4}"), SVS_OK);
        assert_true(json_is_true(json_object_get(f.last[SVI_TOPIC_SCORE], "merged")));
        assert_true(fabs(number(f.last[SVI_TOPIC_SCORE], "yhat") - 280.5) < 1e-9);
        assert_true(stat(&f, "accuracy_refit") > stat(&f, "accuracy_online"));
        speaker_take_up_again(&f);
    }
    assert_int_equal(stat(&f, "merged_models"), 1);
    svi_bytes_clear(&bytes);
    speaker_close(&f);
}

/* Bytes that somebody has changed: what the check lets through can be taken, and the stream learns on. */
static void test_hostile(void **unused) {
    (void)unused;
    uint64_t random = 77;
    struct speaker f;
    struct svi_bytes bytes = {0};
    int fits = 0, refused = 0;
    speaker_open(&f, settings);
    fill(&f, &random, 3, 3);
    for (uint64_t i = 1; i <= 2000; i++) {
        const struct model m = make_model(&random);
        svs_error err;
        encode(&m, i, &bytes);
        for (int k = pick(&random, 4); k > 0; k--)
            bytes.data[pick(&random, (int)bytes.size)] = (uint8_t)test_random(&random);
        /* A block of exactly that size, so that a sanitizer sees every byte that is read behind it. */
        const size_t size = pick(&random, 4) ? bytes.size : (size_t)pick(&random, (int)bytes.size) + 1;
        void *exact = malloc(size);
        memcpy(exact, bytes.data, size);
        svi_engine *e = svi_stream_root(f.e);
        err.text[0] = '\0';
        const enum svi_merged what = svi_engine_check_merged(e, exact, size, &err);
        const svs_code code = svi_engine_take_merged(e, exact, size, &err);
        assert_true((code == SVS_OK) == (what != SVI_MERGED_REFUSED));
        assert_true(code == SVS_OK || err.text[0]);
        fits += what == SVI_MERGED_FITS;
        refused += what == SVI_MERGED_REFUSED;
        free(exact);
        e->refit->from = (struct svi_merged_from){0}; /* the numbers may have been changed to the largest */
        if (i % 50 == 0)
            fill(&f, &random, 3, 3);
    }
    assert_true(fits > 200 && refused > 200);
    speaker_take_up_again(&f);
    fill(&f, &random, 3, 3);
    svi_bytes_clear(&bytes);
    speaker_close(&f);
}

static void test_memory(void **unused) {
    (void)unused;
    const struct model first = {2, 2, {0, 1}, {1, 0}, {1, 2}, {0.5}};
    const struct model m = {
        3, 5, {1, 4, 0}, {4, 0, 3, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3}, {1, 2, 3, 4, 5}};
    bool whole = false;
    int failures = 0;
    for (long n = 0; n < 1000 && !whole; n++) {
        struct speaker f;
        struct svi_bytes bytes = {0}, before = {0};
        svs_error err = {0};
        uint64_t random = 9;
        speaker_open(&f, settings);
        fill(&f, &random, 2, 2);
        encode(&first, 1, &before);
        encode(&m, 2, &bytes);
        svi_engine *e = svi_stream_root(f.e);
        assert_int_equal(svi_engine_take_merged(e, before.data, before.size, &err), SVS_OK);
        svi_stream_mute(f.e, true); /* the sink allocates too */
        left = n;
        failed = false;
        svs_code code = svi_engine_take_merged(e, bytes.data, bytes.size, &err);
        left = -1;
        whole = !failed;
        /* Without memory for its event a model is there all the same. */
        if (code != SVS_OK) {
            failures++;
            assert_int_equal(code, SVS_NO_MEMORY);
            assert_int_equal(svi_engine_take_merged(e, bytes.data, bytes.size, &err), SVS_OK);
        }
        svi_stream_mute(f.e, false);
        check_scores(&f, &m, &random, 2);
        svi_bytes_clear(&bytes);
        svi_bytes_clear(&before);
        speaker_close(&f);
    }
    assert_true(whole && failures > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_ends),
                                       cmocka_unit_test(test_values), cmocka_unit_test(test_hostile),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
