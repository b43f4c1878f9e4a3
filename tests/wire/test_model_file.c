/* Model files: bit for bit back, and no damaged one taken for a model. */
#include "support/problem.h"

#include <unistd.h>

#include "formats/model_file.h"

static char path[64];

static int set_path(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/test_model_file_%d", getpid());
    return 0;
}

static int remove_path(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

static void train(svs_kernel_kind kind, svs_trained *out) {
    static const svs_value classes[] = {{.kind = SVS_INT, .as.i = -3},
                                        {.kind = SVS_STR, .length = 4, .as.s = "spam"}};
    static const char *const names[] = {"a", "b", "c"};
    struct test_data t = test_data_make(80, 3, 0.7, 0.1, 3);
    int32_t label[80];
    svs_train_options o;
    for (int i = 0; i < 80; i++)
        label[i] = t.y[i] > 0;
    svs_examples e = {.rows = test_rows(&t, false),
                      .label = label,
                      .class_count = 2,
                      .classes = classes,
                      .features = names};
    svs_train_options_default(&o);
    o.kernel = (svs_kernel){.kind = kind, .gamma = 0.3, .coef0 = 1, .degree = 2};
    if (kind != SVS_LINEAR) {
        o.p = 1;
        o.bias = SVS_BIAS_FREE;
    }
    assert_int_equal(svs_train(&e, &o, NULL, out, NULL), SVS_OK);
    test_data_free(&t);
}

static size_t slurp(uint8_t *bytes, size_t capacity) {
    FILE *f = fopen(path, "rb");
    size_t n = fread(bytes, 1, capacity, f);
    fclose(f);
    return n;
}

static void spill(const uint8_t *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    fwrite(bytes, 1, n, f);
    fclose(f);
}

static void test_round_trip(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        svs_trained m;
        struct svi_machine back;
        train((svs_kernel_kind)kind, &m);
        const struct svi_machine machine = {m.linear, m.kernel};
        assert_int_equal(svi_machine_write(&machine, path, SVI_FORMAT_OWN, NULL), SVS_OK);
        assert_int_equal(svi_machine_read(&back, path, NULL), SVS_OK);
        if (m.linear) {
            assert_memory_equal(back.linear->W, m.linear->W, 3 * sizeof(double));
            assert_true(back.linear->b[0] == m.linear->b[0]);
            assert_string_equal(back.linear->features[2], "c");
            assert_true(svs_value_equal(back.linear->classes[1], m.linear->classes[1]));
        } else {
            const size_t n = (size_t)m.kernel->support.n;
            assert_int_equal(back.kernel->support.n, n);
            assert_memory_equal(back.kernel->coef, m.kernel->coef, n * sizeof(double));
            assert_memory_equal(back.kernel->norm2, m.kernel->norm2, n * sizeof(double));
            assert_memory_equal(back.kernel->support.start, m.kernel->support.start,
                                (n + 1) * sizeof(int64_t));
            assert_true(back.kernel->kernel.gamma == 0.3 &&
                        back.kernel->kernel.kind == (svs_kernel_kind)kind);
            assert_string_equal(back.kernel->method, "alfpgm");
            assert_true(svs_value_equal(back.kernel->classes[1], m.kernel->classes[1]));
        }
        svi_machine_clear(&back);
        svs_trained_clear(&m);
    }
}

/* Every bit turned, every end cut off: an error, never another model. */
static void test_damage(void **state) {
    (void)state;
    static uint8_t bytes[20000];
    for (int kind = 0; kind < 3; kind += 2) {
        svs_trained m;
        struct svi_machine back;
        train((svs_kernel_kind)kind, &m);
        const struct svi_machine machine = {m.linear, m.kernel};
        assert_int_equal(svi_machine_write(&machine, path, SVI_FORMAT_OWN, NULL), SVS_OK);
        size_t n = slurp(bytes, sizeof bytes), step = n / 150 + 1;
        assert_true(n < sizeof bytes);
        for (size_t i = 0; i < n; i += step) {
            bytes[i] ^= (uint8_t)(1 << (i % 8));
            spill(bytes, n);
            assert_int_not_equal(svi_machine_read(&back, path, NULL), SVS_OK);
            bytes[i] ^= (uint8_t)(1 << (i % 8));
            spill(bytes, i);
            assert_int_not_equal(svi_machine_read(&back, path, NULL), SVS_OK);
        }
        svs_trained_clear(&m);
    }
}

static void test_text(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
        svs_code code;
    } bad[] = {
        {"solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 1\nw\n1\n2\n", "weight",
         SVS_INVALID},
        {"solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 1\nw\n1\nx\n3\n", "line 8",
         SVS_INVALID},
        {"solver_type L2R_L2LOSS_SVC\nnr_feature 90000000\nw\n1\n", "missing", SVS_INVALID},
        {"solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel 1 -1\nnr_feature 90000000\nbias 1\nw\n1\n",
         "too short", SVS_INVALID},
        {"solver_type MCSVM_CS\nnr_class 3\nlabel 1 2 3\nnr_feature 9\nbias -1\nw\n1 2 3\n4 5 6\n",
         "too short", SVS_INVALID},
        {"solver_type MCSVM_CS\nnr_class 2\nlabel 1 2\nnr_class 3\nnr_feature 1\nbias -1\nw\n1 2 3\n",
         "not a line", SVS_INVALID},
        {"solver_type ONECLASS_SVM\nnr_class 2\nnr_feature 1\nbias -1\nw\n1\n", "one-class", SVS_UNAVAILABLE},
        {"svm_type one_class\n", "one_class", SVS_UNAVAILABLE},
        {"svm_type c_svc\nkernel_type sigmoid\n", "sigmoid", SVS_UNAVAILABLE},
        {"svm_type c_svc\nkernel_type rbf\ngamma 1\nnr_class 2\ntotal_sv 1\nrho 0\nlabel 1 2\nnr_sv 1 "
         "1\nSV\n1 1:1\n",
         "contradict", SVS_INVALID},
        {"svm_type c_svc\nkernel_type rbf\ngamma 1\nnr_class 2\ntotal_sv 1\nrho 0\nlabel 1 2\nnr_sv 1 "
         "0\nSV\n1 2:1 1:1\n",
         "ascending", SVS_INVALID},
        {"svm_type c_svc\nkernel_type rbf\ngamma 1\nnr_class 888\nSV\n", "label", SVS_INVALID},
        {"svm_type c_svc\nkernel_type rbf\ngamma 1\nnr_class 2\ntotal_sv 0\nlabel 1 2\nnr_sv 0 0\nSV\n",
         "rho", SVS_INVALID},
        {"hello", "not a model file", SVS_WRONG_TYPE},
        {"", "empty", SVS_EMPTY}};
    struct svi_machine m;
    svs_error e;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        spill((const uint8_t *)bad[i].text, strlen(bad[i].text));
        e.text[0] = 0;
        svs_code code = svi_machine_read(&m, path, &e);
        if (code != bad[i].code || !strstr(e.text, bad[i].part))
            fail_msg("%zu: %s: %s", i, svs_code_name(code), e.text);
    }
    const char *good = "svm_type nu_svc\nkernel_type polynomial\ndegree 2\ngamma 0.5\ncoef0 1\nnr_class "
                       "3\ntotal_sv 3\nrho 1 2 3\nlabel 7 8 9\n"
                       "nr_sv 1 1 1\nSV\n1 2 1:1\n-3 4 2:1\n-5 -6 1:2 3:1\n";
    spill((const uint8_t *)good, strlen(good));
    assert_int_equal(svi_machine_read(&m, path, &e), SVS_OK);
    static const double coef[] = {1, -3, 0, 2, 0, -5, 0, 4, -6}; /* pairs (7,8), (7,9), (8,9) by vectors */
    for (int i = 0; i < 9; i++)
        assert_true(m.kernel->coef[i] == coef[i]);
    assert_true(m.kernel->b[2] == -3 && m.kernel->decision == SVS_ONE_VS_ONE && m.kernel->support.d == 3);
    svi_machine_clear(&m);
}

/* Each machine of a pair counts for one of its two classes; of those with the most votes the first wins. */
static void test_votes(void **state) {
    (void)state;
    enum { CLASSES = 5, PAIRS = CLASSES * (CLASSES - 1) / 2 };
    const svs_kernel_model m = {.decision = SVS_ONE_VS_ONE, .class_count = CLASSES, .rows = PAIRS};
    for (unsigned signs = 0; signs < 1u << PAIRS; signs++) {
        double scores[PAIRS];
        int votes[CLASSES] = {0}, row = 0, best = 0;
        for (int i = 0; i < CLASSES; i++)
            for (int j = i + 1; j < CLASSES; j++, row++) {
                scores[row] = signs >> row & 1 ? 1 : -1;
                votes[signs >> row & 1 ? i : j]++;
            }
        for (int k = 1; k < CLASSES; k++)
            best = votes[k] > votes[best] ? k : best;
        assert_int_equal(svs_kernel_predict(&m, scores), best);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damage),
                                       cmocka_unit_test(test_text), cmocka_unit_test(test_votes)};
    return cmocka_run_group_tests(tests, set_path, remove_path);
}
