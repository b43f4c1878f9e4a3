/* Every allocation of a block and of the standardised rows fails once: it says so, and what was there goes on
 * as if nothing had been asked. Linked with --wrap. */
#include "support/block.h"

#include "support/nomem.h"

static void standard_archive(struct svi_archive *a, void *s) {
    svi_standardiser_archive(a, s, ROW_MAX);
}

static void a_block_that_cannot_grow_is_as_it_was(void **unused) {
    (void)unused;
    EACH_BLOCK(kind, task) {
        const struct svi_block_options o = block_options(kind, task);
        struct svi_block a = block_new(&o, 5);
        struct svi_bytes before = {0}, after = {0};
        svs_error err;
        double s[SCORES_MAX];
        for (int i = 0; i < 230; i++)
            block_step(&a, i, 5, 3, s);
        archived_save(block_archive, &a, &before, &err);
        left = 0;
        assert_int_equal(svi_block_grow(&a, 30, &err), SVS_NO_MEMORY);
        if (task == SVS_CLASSIFY) {
            left = 0;
            assert_int_equal(svi_block_reserve_classes(&a, 30, &err), SVS_NO_MEMORY);
        }
        left = 0;
        struct svi_block b;
        assert_int_equal(svi_block_init(&b, &o, &err), SVS_NO_MEMORY);
        left = -1;
        svi_block_clear(&b);
        archived_save(block_archive, &a, &after, &err);
        assert_true(archived_same(&before, &after));
        assert_int_equal(svi_block_grow(&a, 30, &err), SVS_OK);
        svi_block_clear(&a);
        svi_bytes_clear(&before);
        svi_bytes_clear(&after);
    }
}

/* With room for the classes reserved and features announced no step takes memory. */
static void a_step_takes_no_memory(void **unused) {
    (void)unused;
    EACH_BLOCK(kind, task) {
        const struct svi_block_options o = block_options(kind, task);
        struct svi_block a = block_new(&o, 5);
        double s[SCORES_MAX];
        assert_int_equal(svi_block_reserve_classes(&a, 9, NULL), SVS_OK);
        left = 0;
        for (int i = 0; i < 230; i++)
            block_step(&a, i, 5, 9, s);
        left = -1;
        svi_block_clear(&a);
    }
}

static void loading_without_memory_says_so(void **unused) {
    (void)unused;
    EACH_BLOCK(kind, task) {
        const struct svi_block_options o = block_options(kind, task);
        struct svi_block a = block_new(&o, 20);
        struct svi_bytes bytes = {0};
        svs_error err;
        double s[SCORES_MAX];
        for (int i = 0; i < 230; i++)
            block_step(&a, i, 20, 5, s);
        assert_int_equal(archived_save(block_archive, &a, &bytes, &err), SVS_OK);
        struct svi_block b = block_new(&o, 0);
        left = 0;
        assert_int_equal(archived_load(block_archive, &b, bytes.data, bytes.size, &err), SVS_NO_MEMORY);
        left = -1;
        svi_block_clear(&a);
        svi_block_clear(&b);
        svi_bytes_clear(&bytes);
    }
}

static void standardised_rows_without_memory(void **unused) {
    (void)unused;
    struct svi_standardiser s, t;
    struct svi_bytes before = {0}, after = {0};
    svs_error err;
    double x[40] = {3, 4, 5};
    assert_int_equal(svi_standardiser_init(&s, SVS_ISA_BEST, &err), SVS_OK);
    assert_int_equal(svi_standardiser_grow(&s, 3, &err), SVS_OK);
    svi_standardiser_take(&s, x);
    archived_save(standard_archive, &s, &before, &err);
    left = 0;
    assert_int_equal(svi_standardiser_grow(&s, 40, &err), SVS_NO_MEMORY);
    left = -1;
    archived_save(standard_archive, &s, &after, &err);
    assert_true(archived_same(&before, &after));
    assert_int_equal(svi_standardiser_init(&t, SVS_ISA_BEST, &err), SVS_OK);
    left = 0;
    assert_int_equal(archived_load(standard_archive, &t, before.data, before.size, &err), SVS_NO_MEMORY);
    left = -1;
    svi_standardiser_clear(&t);
    svi_standardiser_clear(&s);
    svi_bytes_clear(&before);
    svi_bytes_clear(&after);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_that_cannot_grow_is_as_it_was),
        cmocka_unit_test(a_step_takes_no_memory),
        cmocka_unit_test(loading_without_memory_says_so),
        cmocka_unit_test(standardised_rows_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
