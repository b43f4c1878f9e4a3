/* What OpenBLAS is to read stands in places that other variables lend, and they get them back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/blas_begin.h"

#define COUNT 6

/* What constructors find is in now, which main finds as `environ`. */
static void begin(char **now, char *const *before) {
    char *argv[] = {"svmstream", NULL};
    memcpy(now, before, (COUNT + 1) * sizeof *now);
    svi_blas_begin(argv, now);
    environ = now; /* as the C library takes it */
}

static void same(char **now, char *const *before) {
    for (int i = 0; i <= COUNT; i++)
        assert_ptr_equal(now[i], before[i]);
}

static void test_lent_and_given_back(void **state) {
    char *before[COUNT + 1] = {"A=1", "PATH=/bin", "HOME=/root", "PWD=/", "LANG=C", "B=2", NULL},
                         *now[COUNT + 1];
    char **own = environ;
    (void)state;
    begin(now, before);
    assert_string_equal(getenv("OPENBLAS_NUM_THREADS"), "1");
    assert_string_equal(getenv("A"), "1");
    assert_string_equal(getenv("B"), "2");
    assert_string_equal(getenv("PATH"), "/bin"); /* there are others */
    svi_blas_begun();
    same(now, before);
    svi_blas_begun(); /* of which nothing is left to do */
    same(now, before);
    environ = own;
}

static void test_what_is_set_stays(void **state) {
    char *before[COUNT + 1] = {"OPENBLAS_NUM_THREADS=3", "PATH=/bin", "HOME=/root", "PWD=/",
                               "OPENBLAS_CORETYPE=Zen",  "LANG=C",    NULL},
                         *now[COUNT + 1];
    char **own = environ;
    (void)state;
    begin(now, before);
    same(now, before);
    svi_blas_begun();
    same(now, before);
    environ = own;
}

/* A variable of our name that comes from elsewhere is no loan. */
static void test_foreign_mark(void **state) {
    char *before[COUNT + 1] =
        {"SVMSTREAM_BLAS_SET=__", "PATH=/bin", "HOME=/root", "PWD=/", "LANG=C", "B=2", NULL},
                         *now[COUNT + 1];
    char **own = environ;
    (void)state;
    begin(now, before);
    same(now, before);
    svi_blas_begun();
    assert_null(getenv("SVMSTREAM_BLAS_SET"));
    assert_string_equal(getenv("PATH"), "/bin");
    environ = own;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lent_and_given_back),
                                       cmocka_unit_test(test_what_is_set_stays),
                                       cmocka_unit_test(test_foreign_mark)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
