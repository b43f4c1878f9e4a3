/* Models: encoded and decoded, scored, refused when their parts do not agree, written as JSON and for
 * liblinear-predict. */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "svmstream/model.h"
#include "wire/decode.h"
#include "wire/event.h"
#include "wire/pack.h"

#define D 3

static const double weights[] = {1, -2, 0.1, 4, 5, -6, 0.5, 0.25, 1.0 / 3};
static const double intercepts[] = {0.5, -0.25, 1e-3};
static const svs_value labels[] = {
    {.kind = SVS_INT, .as.i = -1}, {.kind = SVS_INT, .as.i = 7}, {.kind = SVS_INT, .as.i = 3}};
static const char *const names[] = {"temp", "hum", "p"};

static svs_model model_of(int classes) {
    return (svs_model){.version = UINT64_MAX,
                       .method = "falsvm",
                       .task = classes ? SVS_CLASSIFY : SVS_REGRESS,
                       .d = D,
                       .rows = classes >= 3 ? classes : 1,
                       .class_count = classes,
                       .W = weights,
                       .b = intercepts,
                       .classes = labels,
                       .features = names,
                       .C = 0.1,
                       .window = 1000,
                       .seen = 50,
                       .learned = 40};
}

static void assert_same_model(const svs_model *a, const svs_model *b) {
    assert_true(a->version == b->version && a->task == b->task && a->d == b->d && a->rows == b->rows);
    assert_true(a->class_count == b->class_count && a->C == b->C && a->window == b->window);
    assert_true(a->seen == b->seen && a->learned == b->learned);
    assert_string_equal(a->method, b->method);
    assert_memory_equal(a->W, b->W, (size_t)a->rows * (size_t)a->d * sizeof(double));
    assert_memory_equal(a->b, b->b, (size_t)a->rows * sizeof(double));
    for (int k = 0; k < a->class_count; k++)
        assert_true(svs_value_equal(a->classes[k], b->classes[k]));
    assert_int_equal(!a->features, !b->features);
    for (int j = 0; a->features && j < a->d; j++)
        assert_string_equal(a->features[j], b->features[j]);
}

static void test_round_trip(void **state) {
    (void)state;
    const svs_value strings[] = {svs_str("spam"), svs_str("7"), svs_int(7)};
    const struct svi_figure quality[] = {{"accuracy", SVI_NUMBER, {.number = 0.5}}};
    for (int classes = 0; classes <= 3; classes++) {
        struct svi_bytes b = {0};
        svs_model m = model_of(classes);
        m.classes = classes & 1 ? strings : labels;
        m.features = classes & 2 ? names : NULL;
        assert_int_equal(svi_model_encode(&m, quality, 1, &b), SVS_OK);
        svs_model *got = svs_model_decode(b.data, b.size, NULL);
        svi_bytes_clear(&b); /* nothing of the model may point there */
        assert_non_null(got);
        assert_same_model(&m, got);
        svs_model_free(&got);
        assert_null(got);
    }
    svs_model *none = NULL;
    svs_model_free(&none);
}

static void test_cut_anywhere_is_refused(void **state) {
    (void)state;
    struct svi_bytes b = {0};
    svs_model m = model_of(3);
    svi_model_encode(&m, NULL, 0, &b);
    for (size_t n = 0; n < b.size; n++) {
        svs_error e = {0};
        uint8_t *copy = malloc(n + 1);
        memcpy(copy, b.data, n);
        assert_null(svs_model_decode(copy, n, &e));
        assert_int_equal(e.code, n ? SVS_TRUNCATED : SVS_EMPTY);
        free(copy);
    }
    svi_bytes_clear(&b);
}

/* What a bad model says for one of its keys. */
enum lie {
    NOTHING,
    ABSENT,
    NIL,
    TEXT,
    NUMBER,
    MINUS,
    FRACTION,
    HUGE_D,
    ARRAY_OF_MAPS,
    SHORT_EXT,
    ODD_EXT,
    NAN_EXT,
    NAN_NUMBER,
    TWO_TEXTS,
    TWICE
};

static void put_lie(struct svi_pack *p, enum lie lie) {
    const double bad[D] = {1, NAN, 2};
    switch (lie) {
    case TEXT:
        svi_pack_text(p, "text");
        break;
    case NUMBER:
        svi_pack_int(p, 2);
        break;
    case MINUS:
        svi_pack_int(p, -2);
        break;
    case FRACTION:
        svi_pack_real(p, 2.5);
        break;
    case HUGE_D:
        svi_pack_int(p, 1000001);
        break;
    case ARRAY_OF_MAPS:
        svi_pack_array(p, 1);
        svi_pack_map(p, 0);
        break;
    case SHORT_EXT:
        svi_pack_doubles(p, weights, D - 1);
        break;
    case ODD_EXT:
        msgpack_pack_ext_with_body(&p->packer, "12345", 5, 2);
        break;
    case NAN_EXT:
        svi_pack_doubles(p, bad, D);
        break;
    case NAN_NUMBER:
        msgpack_pack_double(&p->packer, NAN);
        break;
    case TWO_TEXTS:
        svi_pack_array(p, 2);
        svi_pack_text(p, "a");
        svi_pack_text(p, "b");
        break;
    default:
        svi_pack_nil(p);
    }
}

static const char *const keys[] = {"version", "method", "task", "d",      "features", "classes",
                                   "W",       "b",      "C",    "window", "seen",     "learned"};
#define KEYS (sizeof keys / sizeof *keys)

static void put_truth(struct svi_pack *p, const char *key) {
    if (strcmp(key, "task") == 0)
        svi_pack_text(p, "classify");
    else if (strcmp(key, "method") == 0)
        svi_pack_text(p, "alsvm");
    else if (strcmp(key, "W") == 0)
        svi_pack_doubles(p, weights, D);
    else if (strcmp(key, "features") == 0)
        svi_pack_nil(p);
    else if (strcmp(key, "classes") == 0)
        svi_pack_array(p, 0);
    else
        svi_pack_int(p, strcmp(key, "d") == 0 ? D : 1);
}

/* A model that is right but for one key. */
static svs_code decode_lie(const char *key, enum lie lie, svs_error *e) {
    struct svi_bytes b = {0};
    struct svi_pack p;
    svi_pack_begin(&p, &b);
    svi_pack_map(&p, KEYS - (lie == ABSENT) + (lie == TWICE));
    for (size_t i = 0; i < KEYS; i++) {
        bool lying = strcmp(keys[i], key) == 0;
        for (int times = lying && lie == ABSENT ? 0 : lying && lie == TWICE ? 2 : 1; times > 0; times--) {
            svi_pack_text(&p, keys[i]);
            if (lying && lie != TWICE)
                put_lie(&p, lie);
            else
                put_truth(&p, keys[i]);
        }
    }
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    e->code = SVS_OK;
    svs_model *m = svs_model_decode(b.data, b.size, e);
    assert_int_equal(m == NULL, e->code != SVS_OK);
    svs_model_free(&m);
    svi_bytes_clear(&b);
    return e->code;
}

static void test_bad_models(void **state) {
    (void)state;
    static const struct {
        const char *key;
        enum lie lie;
        svs_code code;
        const char *text;
    } rows[] = {
        {"none", NOTHING, SVS_OK, ""},
        {"version", TEXT, SVS_WRONG_TYPE, "version is a string"},
        {"version", MINUS, SVS_WRONG_TYPE, "from 0"},
        {"version", TWICE, SVS_DUPLICATE_KEY, "version"},
        {"version", ABSENT, SVS_OK, ""},
        {"method", NUMBER, SVS_WRONG_TYPE, "method"},
        {"method", NIL, SVS_OK, ""},
        {"task", TEXT, SVS_WRONG_TYPE, "one of classify, regress"},
        {"task", NUMBER, SVS_WRONG_TYPE, "one of classify, regress"},
        {"task", ABSENT, SVS_WRONG_TYPE, "no task"},
        {"d", ABSENT, SVS_WRONG_TYPE, "no d"},
        {"d", NIL, SVS_WRONG_TYPE, "no d"},
        {"d", FRACTION, SVS_WRONG_TYPE, "d is a float"},
        {"d", HUGE_D, SVS_LIMIT, "1000001"},
        {"d", NUMBER, SVS_WRONG_TYPE, "W has 3 values, not 1 x 2"},
        {"features", NUMBER, SVS_WRONG_TYPE, "array of names"},
        {"features", ARRAY_OF_MAPS, SVS_WRONG_TYPE, "features[0]"},
        {"features", TWO_TEXTS, SVS_WRONG_TYPE, "names 2 features"},
        {"classes", ABSENT, SVS_WRONG_TYPE, "no classes"},
        {"classes", TEXT, SVS_WRONG_TYPE, "array of labels"},
        {"classes", ARRAY_OF_MAPS, SVS_WRONG_TYPE, "classes[0]"},
        {"classes", TWO_TEXTS, SVS_OK, ""},
        {"W", ABSENT, SVS_WRONG_TYPE, "no W"},
        {"W", NUMBER, SVS_WRONG_TYPE, "packed float64"},
        {"W", SHORT_EXT, SVS_WRONG_TYPE, "W has 2 values"},
        {"W", ODD_EXT, SVS_WRONG_TYPE, "packed float64"},
        {"W", NAN_EXT, SVS_NOT_FINITE, "W[1]"},
        {"W", TWICE, SVS_DUPLICATE_KEY, "W"},
        {"b", ABSENT, SVS_WRONG_TYPE, "no b"},
        {"b", SHORT_EXT, SVS_WRONG_TYPE, "2 rows for 0 classes"},
        {"b", NAN_NUMBER, SVS_NOT_FINITE, "b of"},
        {"b", TEXT, SVS_WRONG_TYPE, "packed float64"},
        {"C", TEXT, SVS_WRONG_TYPE, "C is"},
        {"C", NAN_NUMBER, SVS_WRONG_TYPE, "finite"},
        {"window", TEXT, SVS_WRONG_TYPE, "window"},
        {"seen", MINUS, SVS_WRONG_TYPE, "seen"},
        {"learned", FRACTION, SVS_WRONG_TYPE, "learned"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        svs_error e = {0};
        svs_code code = decode_lie(rows[i].key, rows[i].lie, &e);
        if (code != rows[i].code || !strstr(e.text, rows[i].text))
            fail_msg("%s, lie %d: %s (%s)", rows[i].key, (int)rows[i].lie, svs_code_name(code), e.text);
    }
}

static void test_no_model_at_all(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        svs_code code;
    } rows[] = {{"\x90", 1, SVS_WRONG_TYPE},         {"\x80", 1, SVS_WRONG_TYPE},
                {"\xc1", 1, SVS_NOT_MSGPACK},        {"\x80\x80", 2, SVS_TRAILING},
                {"\x81\x01\x02", 3, SVS_WRONG_TYPE}, {"\x81\xa1q\x91\xc0", 5, SVS_WRONG_TYPE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        svs_error e = {0};
        assert_null(svs_model_decode(rows[i].bytes, rows[i].length, &e));
        assert_int_equal(e.code, rows[i].code);
    }
}

static void test_scores_and_predictions(void **state) {
    (void)state;
    const double x[] = {2, 1, -10};
    double s[3];
    svs_model m = model_of(3);
    svs_model_scores(&m, x, s);
    for (int k = 0; k < 3; k++)
        assert_true(fabs(s[k] - (weights[3 * k] * 2 + weights[3 * k + 1] - 10 * weights[3 * k + 2] +
                                 intercepts[k])) < 1e-12);
    assert_int_equal(svs_model_predict(&m, s), 1);
    const double ties[] = {1, 1, 0};
    assert_int_equal(svs_model_predict(&m, ties), 0);
    m = model_of(2);
    const double positive = 0.1, zero = 0, negative = -0.1;
    assert_int_equal(svs_model_predict(&m, &positive), 1);
    assert_int_equal(svs_model_predict(&m, &zero), 0);
    assert_int_equal(svs_model_predict(&m, &negative), 0);
    m = model_of(1);
    assert_int_equal(svs_model_predict(&m, &positive), 0);
    m = model_of(0);
    assert_int_equal(svs_model_predict(&m, &positive), -1);
    m.task = SVS_CLASSIFY;
    assert_int_equal(svs_model_predict(&m, &positive), -1);
}

/* Long rows: every length around the unrolling. */
static void test_scores_of_any_length(void **state) {
    (void)state;
    double w[40], x[40], s, b = 0.5;
    for (int d = 0; d < 40; d++) {
        svs_model m = {.d = d, .rows = 1, .W = w, .b = &b};
        double sum = b;
        for (int j = 0; j < d; j++)
            sum += (w[j] = j - 7) * (x[j] = 0.25 * j);
        svs_model_scores(&m, x, &s);
        assert_true(s == sum); /* all terms are small multiples of 1/4: exact in any order */
    }
}

static void test_json(void **state) {
    (void)state;
    FILE *f = tmpfile();
    svs_model m = model_of(3);
    assert_int_equal(svs_model_write_json(&m, f, NULL), SVS_OK);
    rewind(f);
    json_t *o = json_loadf(f, 0, NULL);
    assert_non_null(o);
    assert_int_equal(json_object_size(o), 12);
    assert_string_equal(json_string_value(json_object_get(o, "task")), "classify");
    assert_string_equal(json_string_value(json_array_get(json_object_get(o, "features"), 2)), "p");
    for (int k = 0; k < 3; k++) {
        assert_true(json_number_value(json_array_get(json_object_get(o, "b"), (size_t)k)) == intercepts[k]);
        assert_int_equal(json_integer_value(json_array_get(json_object_get(o, "classes"), (size_t)k)),
                         labels[k].as.i);
        json_t *row = json_array_get(json_object_get(o, "W"), (size_t)k);
        for (int j = 0; j < D; j++)
            assert_true(json_number_value(json_array_get(row, (size_t)j)) == weights[3 * k + j]);
    }
    json_decref(o);
    fclose(f);
    f = tmpfile();
    m = model_of(0);
    m.features = NULL;
    m.C = NAN;
    assert_int_equal(svs_model_write_json(&m, f, NULL), SVS_OK);
    rewind(f);
    o = json_loadf(f, 0, NULL);
    assert_true(json_is_number(json_object_get(o, "b")));
    assert_true(json_is_null(json_object_get(o, "features")));
    assert_true(json_is_null(json_object_get(o, "C")));
    json_decref(o);
    fclose(f);
}

static void test_full_disk(void **state) {
    (void)state;
    svs_error e = {0};
    svs_model m = model_of(2);
    FILE *f = fopen("/dev/full", "w");
    assert_int_equal(svs_model_write_liblinear(&m, f, &e), SVS_IO);
    assert_non_null(strstr(e.text, "disk full"));
    fclose(f);
    f = fopen("/dev/full", "w");
    assert_int_equal(svs_model_write_json(&m, f, NULL), SVS_IO);
    fclose(f);
}

static void test_liblinear_text(void **state) {
    (void)state;
    char text[1000] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    svs_model m = model_of(2);
    assert_int_equal(svs_model_write_liblinear(&m, f, NULL), SVS_OK);
    fclose(f);
    assert_string_equal(text, "solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel 7 -1\nnr_feature 3\nbias 1\nw\n"
                              "1 \n-2 \n0.10000000000000001 \n0.5 \n");
}

static void test_liblinear_cannot_hold(void **state) {
    (void)state;
    const svs_value strings[] = {svs_int(1), svs_str("spam")}, wide[] = {svs_int(1), svs_int(1LL << 40)};
    svs_error e;
    svs_model m = model_of(2);
    m.classes = strings;
    assert_int_equal(svs_model_write_liblinear(&m, stdout, &e), SVS_UNAVAILABLE);
    assert_non_null(strstr(e.text, "spam"));
    m.classes = wide;
    assert_int_equal(svs_model_write_liblinear(&m, stdout, &e), SVS_UNAVAILABLE);
    m.class_count = 0;
    assert_int_equal(svs_model_write_liblinear(&m, stdout, &e), SVS_UNAVAILABLE);
    assert_non_null(strstr(e.text, "no class"));
}

/* Rows for liblinear-predict (which wants a label in front), and what we say of each. */
static void write_rows(const svs_model *m, FILE *f, double *expected, int count) {
    uint32_t r = 5;
    for (int i = 0; i < count; i++) {
        double x[D], s[3];
        fprintf(f, "1");
        for (int j = 0; j < D; j++) {
            r = r * 1664525u + 1013904223u;
            x[j] = (double)(r >> 8) / (1 << 22) - 2;
            fprintf(f, " %d:%.17g", j + 1, x[j]);
        }
        fprintf(f, "\n");
        svs_model_scores(m, x, s);
        int k = svs_model_predict(m, s);
        expected[i] = k < 0 ? s[0] : (double)m->classes[k].as.i;
    }
}

static void predict_like_liblinear(const svs_model *m) {
    enum { ROWS = 200 };
    char folder[] = "/tmp/svmstream-model-XXXXXX", path[100], command[400];
    double expected[ROWS], got;
    int distinct = 0;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/model", folder);
    FILE *f = fopen(path, "w");
    assert_int_equal(svs_model_write_liblinear(m, f, NULL), SVS_OK);
    fclose(f);
    snprintf(path, sizeof path, "%s/rows", folder);
    f = fopen(path, "w");
    write_rows(m, f, expected, ROWS);
    fclose(f);
    snprintf(command, sizeof command, "liblinear-predict %s/rows %s/model %s/out > /dev/null", folder, folder,
             folder);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s/out", folder);
    f = fopen(path, "r");
    for (int i = 0; i < ROWS; i++) {
        assert_int_equal(fscanf(f, "%lf", &got), 1);
        assert_true(fabs(got - expected[i]) <=
                    1e-5 * (1 + fabs(expected[i]))); /* it prints regression with 6 digits */
        distinct += i > 0 && expected[i] != expected[i - 1];
    }
    fclose(f);
    assert_true(m->class_count == 1 || distinct > 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void test_liblinear_predict_agrees(void **state) {
    (void)state;
    if (access("/usr/bin/liblinear-predict", X_OK) != 0) {
        print_message("SKIPPED: liblinear-predict (package liblinear-tools) is not installed\n");
        skip();
    }
    for (int classes = 0; classes <= 3; classes++) {
        svs_model m = model_of(classes);
        predict_like_liblinear(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_cut_anywhere_is_refused),
        cmocka_unit_test(test_bad_models),
        cmocka_unit_test(test_no_model_at_all),
        cmocka_unit_test(test_scores_and_predictions),
        cmocka_unit_test(test_scores_of_any_length),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_liblinear_text),
        cmocka_unit_test(test_liblinear_cannot_hold),
        cmocka_unit_test(test_liblinear_predict_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
