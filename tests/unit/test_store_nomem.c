/* Every allocation of the store fails, once and from then on: each time the call says SVS_NO_MEMORY, nothing
 * of it stays in a file, and what was there is read as before. Linked with --wrap for svi_alloc,
 * svi_realloc and svi_realloc_plain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "support/kept.h"
#include "support/nomem.h"
#include "store/journal_internal.h"

static struct kept k;

static int setup(void **state) {
    from_then_on = *state != NULL;
    kept_open(&k);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    kept_remove(&k);
    return 0;
}

/* Runs `attempt` with the first, second, ... allocation failing until none of its own is left to fail.
 * Returns how often it failed. */
static int fail_each(svs_code (*attempt)(svs_error *err)) {
    for (int n = 0; n < 10000; n++) {
        svs_error e = {0};
        left = n;
        failed = false;
        svs_code code = attempt(&e);
        left = -1;
        assert_int_equal(code, failed ? SVS_NO_MEMORY : SVS_OK);
        if (!failed)
            return n;
        assert_int_equal(e.code, SVS_NO_MEMORY);
        assert_true(e.text[0]);
    }
    fail_msg("it never succeeds");
    return -1;
}

static svs_code open_folder(svs_error *err) {
    struct svi_state_dir f;
    svs_code code = svi_state_dir_open(&f, k.path, false, err);
    svi_state_dir_close(&f);
    return code;
}

static svs_code list(svs_error *err) {
    uint64_t *numbers;
    int count;
    svs_code code = svi_state_dir_list(&k.folder, "journal", &numbers, &count, err);
    if (code != SVS_OK)
        assert_true(!numbers && count == 0);
    svi_free(numbers);
    return code;
}

static const struct svi_position zero;
static svi_journal *journal;

static svs_code begin(svs_error *err) {
    struct svi_journal_options o = {"s", KEPT_EPOCH, 300, SVI_FSYNC_NEVER, 0};
    journal = svi_journal_new(&k.folder, &o, &zero, err);
    svs_code code = journal ? SVS_OK : err->code;
    svi_journal_free(&journal);
    return code;
}

/* Fills the journal over several segments; whoever fails leaves it as it was, and it goes on. */
static svs_code append_large(svs_error *err) {
    static uint8_t payload[9000];
    uint64_t n = svi_journal_position(journal).number;
    record_payload(n, payload, sizeof payload);
    svs_code code = svi_journal_append(journal, (int)(n % 128), (double)n / 2, payload, sizeof payload, err);
    if (code == SVS_OK)
        return svi_journal_commit(journal, err);
    assert_int_equal(svi_journal_position(journal).number, n);
    return code;
}

static size_t large(uint64_t number) {
    (void)number;
    return 9000;
}

static struct everything all;

static void test_journal(void **state) {
    (void)state;
    assert_true(fail_each(open_folder) >= 1);
    assert_true(fail_each(begin) >= 2);
    kept_empty(&k);
    journal = kept_journal(&k, 300, SVI_FSYNC_NEVER, NULL);
    assert_int_equal(fail_each(append_large), 1); /* its room */
    for (int i = 0; i < 40; i++)
        assert_int_equal(fail_each(append_large), 0); /* it keeps its room */
    svi_journal_free(&journal);
    assert_true(fail_each(list) >= 2);
    everything_read(&all, &k, NULL, false, large);
    assert_int_equal(all.count, 41);
    assert_int_equal(kept_count(&k, "journal"), 41);
}

/* Reads all there is. */
static svs_code read_all(svs_error *err) {
    struct svi_journal_reader_options o = {0, 1 << 20, true};
    struct svi_record r;
    svi_journal_reader *reader = svi_journal_reader_new(&k.folder, &zero, &o, err);
    if (!reader)
        return err->code;
    enum svi_journal_read how;
    while ((how = svi_journal_read(reader, &r, err)) == SVI_JOURNAL_RECORD)
        ;
    svi_journal_reader_free(&reader);
    return how == SVI_JOURNAL_END ? SVS_OK : err->code;
}

static struct content segment;

static svs_code read_memory(svs_error *err) {
    struct svi_journal_reader_options o = {0, 1 << 20, true};
    svi_journal_reader *reader = svi_journal_reader_memory(segment.bytes, segment.size, 0, &o, err);
    svs_code code = reader ? SVS_OK : err->code;
    svi_journal_reader_free(&reader);
    return code;
}

/* Records that do not fit into the first buffer, sound, damaged in their check, or in the header. */
static void test_reading(void **state) {
    (void)state;
    svi_journal *j = kept_journal(&k, 1 << 30, SVI_FSYNC_ALWAYS, NULL);
    for (uint64_t n = 0; n < 4; n++) {
        kept_append(j, n, 400000);
        assert_int_equal(svi_journal_commit(j, NULL), SVS_OK);
    }
    size_t first = svi_journal_position(j).offset - 4 * 400043;
    svi_journal_free(&j);
    assert_true(fail_each(read_all) >= 4);
    content_read(&segment, &k, "journal", 0);
    assert_true(fail_each(read_memory) >= 2);
    const size_t flips[] = {20, first + 400042, first + 50, first + 400043 + 33};
    for (size_t i = 0; i < sizeof flips / sizeof *flips; i++) {
        segment.bytes[flips[i]] ^= 1;
        content_write(&segment, segment.size);
        assert_true(fail_each(read_all) >= 4);
        segment.bytes[flips[i]] ^= 1;
    }
    free(segment.bytes);
}

static struct svi_checkpoint written;

static svs_code write_checkpoint(svs_error *err) {
    svs_code code = svi_checkpoint_write(&k.folder, &written, NULL, err);
    left = -1; /* the counting allocates too */
    assert_int_equal(kept_count(&k, "checkpoint"), code == SVS_OK);
    assert_int_equal(faccessat(k.folder.fd, "checkpoint-0000000000000000.tmp", F_OK, 0), -1);
    return code;
}

static svs_code read_checkpoint(svs_error *err) {
    struct svi_checkpoint c = {0};
    svs_code code = svi_checkpoint_read(&k.folder, 0, &c, err);
    assert_int_equal(c.sections, code == SVS_OK ? 2 : 0);
    svi_checkpoint_clear(&c);
    return code;
}

static void test_checkpoint(void **state) {
    static uint8_t settings[3000], body[500000];
    (void)state;
    written = (struct svi_checkpoint){.program = "1", .sections = 2};
    written.section[0] = (struct svi_section){"one", true, 0, 1000};
    written.section[1] = (struct svi_section){"two", false, 1000, sizeof body - 1000};
    memset(settings, 'x', sizeof settings);
    assert_int_equal(svi_bytes_append(&written.settings, settings, sizeof settings), SVS_OK);
    assert_int_equal(svi_bytes_append(&written.bodies, body, sizeof body), SVS_OK);
    assert_true(fail_each(write_checkpoint) >= 1);
    assert_true(fail_each(read_checkpoint) >= 3);
    svi_checkpoint_clear(&written);
}

#define TEST(name, from_then_on)                                                                                  \
    { #name, name, setup, teardown, from_then_on }

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_journal, NULL),    TEST(test_journal, &k),
                                       TEST(test_reading, NULL),    TEST(test_reading, &k),
                                       TEST(test_checkpoint, NULL), TEST(test_checkpoint, &k)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
