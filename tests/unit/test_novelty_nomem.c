/* Every allocation of a one-class model's life, and that of Fourier features, fails once: it says so, nothing
 * is leaked, and no file is left half written. Linked with --wrap. */
#include "support/oneclass.h"
#include "support/nomem.h"

#include <unistd.h>

#include "formats/novelty_file.h"
#include "svmstream/fourier.h"

static char path[64];
static struct test_oneclass oneclass;
static svs_code train(svs_error *err) {
    static const char *const names[] = {"a", "b", "c"};
    svs_novelty_model *m = NULL;
    svs_code code = svs_novelty_train(&oneclass.rows, names, &oneclass.options, &m, err);
    assert_true((code == SVS_OK) == (m != NULL));
    svs_novelty_free(&m);
    return code;
}

static svs_code write_file(svs_error *err) {
    unlink(path);
    svs_code code = svi_novelty_file_write(oneclass.model, path, err);
    assert_true((code == SVS_OK) == (access(path, F_OK) == 0));
    return code;
}

static svs_code read_file(svs_error *err) {
    svs_novelty_model *m = svi_novelty_file_read(path, err);
    svs_code code = m ? SVS_OK : err->code;
    svs_novelty_free(&m);
    return code;
}

static svs_code explain(svs_error *err) {
    double adds[3];
    return svs_novelty_explain(oneclass.model, oneclass.x, adds, err);
}

static svs_code score(svs_error *err) {
    double novelty[50];
    return svs_novelty_score(oneclass.model, &oneclass.rows, 0, 50, novelty, NULL, err);
}

static svs_code fourier(svs_error *err) {
    svs_fourier *f = NULL;
    svs_code code = svs_fourier_new(SVS_FOURIER_RBF, 1, 3, 50, 1, &f, err);
    assert_true((code == SVS_OK) == (f != NULL));
    svs_fourier_free(&f);
    return code;
}

/* The n-th allocation fails, for every n until there is no n-th. */
static void test_each_allocation(void **state) {
    (void)state;
    static svs_code (*const steps[])(svs_error *) = {train, write_file, read_file, explain, score, fourier};
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        svs_code code = SVS_NO_MEMORY;
        int n = 0;
        for (; code != SVS_OK; n++) {
            svs_error err = {0};
            assert_true(n < 500);
            left = n;
            code = steps[s](&err);
            const bool used = left < 0;
            left = -1;
            if (code != (used ? SVS_NO_MEMORY : SVS_OK) || (used && !err.text[0]))
                fail_msg("step %zu, allocation %d: %s: %s", s, n, svs_code_name(code), err.text);
        }
        assert_true(n > 1);
    }
}

static int begin(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/test_novelty_nomem_%d", getpid());
    test_oneclass_make(&oneclass, 50, 3, SVS_NOVELTY_LAPLACIAN, SVS_GAMMA_AUTO, true);
    return 0;
}

static int end(void **state) {
    (void)state;
    unlink(path);
    test_oneclass_free(&oneclass);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation)};
    return cmocka_run_group_tests(tests, begin, end);
}
