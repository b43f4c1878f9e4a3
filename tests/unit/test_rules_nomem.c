/* Plain rules when memory runs out: more columns are refused and nothing has changed; and how much they take.
 * Linked with --wrap for svi_alloc and svi_realloc. */
#include "support/archived.h"
#include "support/problem.h"

#include "alerts/rules.h"
#include "support/nomem.h"

static void rules_begin(struct svi_rules *r, struct svi_settings *s, int d) {
    svi_settings_default(s);
    svi_rules_init(r, false);
    svi_rules_configure(r, s);
    assert_int_equal(svi_rules_reserve(r, d, NULL), SVS_OK);
    for (int j = 0; j < d; j++)
        svi_rules_bind(r, j, SVI_RULES_JUDGED | SVI_RULES_MISSED, 0, 0);
    svi_rules_bound(r, d);
}

static void archive_rules(struct svi_archive *a, void *of) {
    svi_rules_archive(a, of);
}

static void a_refusal_changes_nothing(void **state) {
    (void)state;
    struct svi_rules r;
    struct svi_settings s;
    struct svi_bytes before = {0}, after = {0};
    svs_error err;
    int refused = 0;
    rules_begin(&r, &s, 3);
    for (int i = 0; i < 700; i++) {
        const double x[3] = {i % 7, i % 5, i % 2};
        svi_rules_row(&r, x, NULL, 3, i, i);
    }
    assert_int_equal(archived_save(archive_rules, &r, &before, &err), SVS_OK);
    for (;; refused++) {
        left = refused;
        const svs_code code = svi_rules_reserve(&r, 40, &err);
        left = -1;
        assert_int_equal(archived_save(archive_rules, &r, &after, &err), SVS_OK);
        assert_true(archived_same(&before, &after));
        if (code == SVS_OK)
            break;
        assert_int_equal(code, SVS_NO_MEMORY);
        assert_int_equal(r.seen.capacity, 16);
    }
    assert_int_equal(refused, 2); /* room for members, once found, stays */
    svi_bytes_clear(&before);
    svi_bytes_clear(&after);
    svi_rules_clear(&r);
}

static void memory_is_as_stated(void **state) {
    (void)state;
    static const int widths[] = {1, 16, 17, 300, 4096, 100000};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        struct svi_rules r;
        struct svi_settings s;
        taken = 0;
        rules_begin(&r, &s, widths[i] < SVI_RULES_FEATURES ? widths[i] : SVI_RULES_FEATURES);
        const double most = svi_rules_memory(&s, widths[i]);
        assert_true(taken <= most + sizeof(struct svi_rules_member) && taken >= 0.9 * most);
        svi_rules_clear(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_changes_nothing),
        cmocka_unit_test(memory_is_as_stated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
