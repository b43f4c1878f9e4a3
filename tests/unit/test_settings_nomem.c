/* Reading a settings file while the n-th allocation fails, for every n: an error, no leak, nothing changed.
 * The parser is libyaml, whose allocations do not go through our gate: its own functions for them are
 * replaced here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "config/settings.h"
#include "support/nomem.h"

/* These take the place of libyaml's (yaml_private.h). */
__attribute__((visibility("default"))) void *yaml_malloc(size_t size);
__attribute__((visibility("default"))) void *yaml_realloc(void *block, size_t size);
__attribute__((visibility("default"))) unsigned char *yaml_strdup(const unsigned char *text);

void *yaml_malloc(size_t size) {
    return !fails() ? malloc(size ? size : 1) : NULL;
}

void *yaml_realloc(void *block, size_t size) {
    return !fails() ? realloc(block, size ? size : 1) : NULL;
}

unsigned char *yaml_strdup(const unsigned char *text) {
    return !fails() ? (unsigned char *)strdup((const char *)text) : NULL;
}

static void test_each_allocation_may_fail(void **state) {
    static const char text[] = "window: 5\nlabel: y\nin.topic: \"a\"\nC: 2\n";
    int failures = 0;
    (void)state;
    for (;;) {
        struct svi_settings s, before;
        svs_error err = {.text = ""};
        svi_settings_default(&s);
        before = s;
        left = failures;
        svs_code code = svi_settings_read(&s, "test.yaml", text, strlen(text), &err);
        left = -1;
        if (code == SVS_OK)
            break;
        assert_int_equal(code, SVS_NO_MEMORY);
        assert_memory_equal(&s, &before, sizeof s);
        failures++;
        assert_true(failures < 1000);
    }
    assert_true(failures > 8); /* at least the keys and the values */
}

static void test_the_file_buffer_may_fail(void **state) {
    struct svi_settings s;
    svs_error err = {.text = ""};
    (void)state;
    svi_settings_default(&s);
    left = 0;
    svs_code code = svi_settings_load(&s, "/dev/null", &err);
    left = -1;
    assert_int_equal(code, SVS_NO_MEMORY);
    assert_int_equal(svi_settings_load(&s, "/dev/null", &err), SVS_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_allocation_may_fail),
        cmocka_unit_test(test_the_file_buffer_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
