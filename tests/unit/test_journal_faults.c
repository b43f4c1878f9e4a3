/* A disk that is full refuses and recovers; one that fails ends the journal for good. Full: a limit on the
 * size of files, which is the same to a writer; failing: descriptors closed behind the journal's back. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "support/kept.h"
#include "store/io.h"

static struct kept k;
static struct everything all;

static int setup(void **state) {
    (void)state;
    kept_open(&k);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    kept_remove(&k);
    return 0;
}

static void limit(rlim_t bytes) {
    struct rlimit l;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &l), 0);
    l.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static void assert_full(svs_code code, const svs_error *e, const char *name) {
    assert_int_equal(code, SVS_DISK_FULL);
    assert_int_equal(e->code, SVS_DISK_FULL);
    assert_non_null(strstr(e->text, name));
    assert_non_null(strstr(e->text, "raise ulimit -f"));
}

/* For every room there can be: nothing of the commit stays, and the journal goes on when there is room. */
static void test_full_anywhere(void **state) {
    svs_error e;
    struct content c;
    (void)state;
    for (rlim_t capacity = 0; capacity < 400; capacity += 7) {
        svi_journal *j = kept_journal(&k, 4096, SVI_FSYNC_ALWAYS, NULL);
        kept_append_to(j, 3, 1);
        struct svi_position at = svi_journal_position(j);
        for (int i = 0; i < 2; i++) {
            for (uint64_t n = 3; n < 12; n++)
                kept_append(j, n, record_size(n));
            limit(at.offset + capacity);
            svs_code code = svi_journal_commit(j, &e);
            limit(RLIM_INFINITY);
            assert_full(code, &e, "journal-0000000000000000");
            assert_position(svi_journal_position(j), at);
            content_read(&c, &k, "journal", 0);
            assert_int_equal(c.size, at.offset);
            free(c.bytes);
        }
        assert_int_equal(svi_journal_commit(j, &e), SVS_OK);
        kept_append_to(j, 20, 3);
        svi_journal_free(&j);
        everything_read(&all, &k, NULL, false, NULL);
        assert_int_equal(all.how, SVI_JOURNAL_END);
        assert_int_equal(all.count, 20);
        kept_empty(&k);
    }
}

/* The header of a new segment finds no room: no trace of it, and the next commit tries again. */
static void test_full_at_a_new_segment(void **state) {
    svs_error e;
    (void)state;
    rlim_t header = 1;
    for (rlim_t capacity = 0; capacity < header; capacity += 20) {
        svi_journal *j = kept_journal(&k, 200, SVI_FSYNC_NEVER, NULL);
        header = svi_journal_position(j).offset;
        kept_append_to(j, 5, 5);
        struct svi_position at = svi_journal_position(j);
        assert_true(at.offset >= 200);
        for (int i = 0; i < 3; i++) {
            kept_append(j, 5, record_size(5));
            assert_int_equal(svi_journal_position(j).segment, 5);
            limit(capacity);
            svs_code code = svi_journal_commit(j, &e);
            limit(RLIM_INFINITY);
            assert_full(code, &e, "journal-0000000000000005");
            assert_position(svi_journal_position(j), at);
            assert_int_equal(kept_count(&k, "journal"), 1);
        }
        kept_append_to(j, 30, 2);
        svi_journal_free(&j);
        everything_read(&all, &k, NULL, false, NULL);
        assert_int_equal(all.count, 30);
        kept_empty(&k);
    }
}

/* The header fits, its first records do not: an empty segment stays, and goes on. */
static void test_full_behind_a_header(void **state) {
    svs_error e;
    (void)state;
    svi_journal *j = kept_journal(&k, 200, SVI_FSYNC_ALWAYS, NULL);
    size_t header = svi_journal_position(j).offset;
    kept_append_to(j, 5, 5);
    for (int i = 0; i < 2; i++) {
        for (uint64_t n = 5; n < 9; n++)
            kept_append(j, n, record_size(n));
        limit(header + 20);
        svs_code code = svi_journal_commit(j, &e);
        limit(RLIM_INFINITY);
        assert_full(code, &e, "journal-0000000000000005");
        assert_int_equal(svi_journal_position(j).number, 5);
        assert_int_equal(svi_journal_position(j).segment, 5);
        assert_int_equal(svi_journal_position(j).offset, header);
    }
    svi_journal_free(&j);
    everything_read(&all, &k, NULL, false, NULL);
    assert_int_equal(all.count, 5);
    assert_int_equal(all.found.end.segment, 5);
    j = kept_journal(&k, 200, SVI_FSYNC_ALWAYS, &all.found.end);
    kept_append_to(j, 9, 2);
    svi_journal_free(&j);
    everything_read(&all, &k, NULL, false, NULL);
    assert_int_equal(all.count, 9);
}

static void test_full_from_the_beginning(void **state) {
    static const struct svi_position zero;
    struct svi_journal_options o = {NULL, 1, 200, SVI_FSYNC_ALWAYS, 0};
    svs_error e;
    (void)state;
    limit(10);
    assert_null(svi_journal_new(&k.folder, &o, &zero, &e));
    limit(RLIM_INFINITY);
    assert_full(e.code, &e, "journal-0000000000000000");
    assert_int_equal(kept_count(&k, "journal"), 0);
}

static void test_full_for_a_checkpoint(void **state) {
    struct svi_checkpoint c = {.program = "1", .position.number = 3}, d = {0};
    int64_t size = 0;
    svs_error e;
    (void)state;
    assert_int_equal(svi_checkpoint_write(&k.folder, &c, &size, &e), SVS_OK);
    for (rlim_t capacity = 0; capacity < (rlim_t)size; capacity += 11) {
        limit(capacity);
        c.position.number = 3 + capacity % 2; /* also over an old one */
        svs_code code = svi_checkpoint_write(&k.folder, &c, &size, &e);
        limit(RLIM_INFINITY);
        assert_full(code, &e, ".tmp");
        assert_int_equal(kept_count(&k, "checkpoint"), 1);
        assert_int_equal(faccessat(k.folder.fd, "checkpoint-0000000000000003.tmp", F_OK, 0), -1);
    }
    assert_int_equal(svi_checkpoint_read(&k.folder, 3, &d, &e), SVS_OK);
    svi_checkpoint_clear(&d);
}

/* Peers can use up the descriptors of the process: it goes on when there are some again. */
static void test_no_descriptor(void **state) {
    struct svi_checkpoint c = {.position.number = 3};
    struct svi_journal_sync s;
    struct rlimit before, none;
    uint64_t *numbers;
    int count;
    svs_error e[3];
    svs_code code[4];
    (void)state;
    svi_journal *j = kept_journal(&k, 200, SVI_FSYNC_INTERVAL, NULL);
    kept_append_to(j, 8, 8); /* the next commit begins a segment */
    kept_append(j, 8, 10);
    const int lowest = dup(0);
    close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){(rlim_t)lowest, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    code[0] = svi_journal_sync_begin(j, &s, NULL);
    code[1] = svi_journal_commit(j, &e[0]);
    code[2] = svi_checkpoint_write(&k.folder, &c, NULL, &e[1]);
    code[3] = svi_state_dir_list(&k.folder, "journal", &numbers, &count, &e[2]);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(code[0], SVS_OK);
    assert_int_equal(s.fd, -1);
    assert_int_equal(svi_journal_durable(j), 8); /* by the descriptor that there is */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(code[1 + i], SVS_DISK_FULL);
        assert_non_null(strstr(e[i].text, "raise that limit"));
    }
    svi_journal_sync_run(&s);
    assert_int_equal(svi_journal_sync_end(j, &s, NULL), SVS_OK);
    kept_append_to(j, 12, 1);
    svi_journal_free(&j);
    everything_read(&all, &k, NULL, false, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_END);
    assert_int_equal(all.count, 12);
    assert_true(kept_count(&k, "journal") > 1);
}

static void test_checkpoint_fails(void **state) {
    struct svi_checkpoint c = {.position.number = 3};
    struct svi_state_dir closed = {.fd = 1000000, .lock = -1, .path = k.path};
    char path[128];
    svs_error e;
    (void)state;
    assert_int_equal(svi_checkpoint_write(&closed, &c, NULL, &e), SVS_IO);
    assert_non_null(strstr(e.text, "cannot be written"));
    snprintf(path, sizeof path, "%s/checkpoint-%016x", k.path, 3);
    assert_int_equal(mkdir(path, 0700), 0); /* a folder cannot be renamed over */
    assert_int_equal(svi_checkpoint_write(&k.folder, &c, NULL, &e), SVS_IO);
    assert_non_null(strstr(e.text, "cannot be renamed"));
    assert_int_equal(faccessat(k.folder.fd, "checkpoint-0000000000000003.tmp", F_OK, 0), -1);
    rmdir(path);
    c.sections = 1;
    c.section[0] = (struct svi_section){.name = "large", .size = (size_t)1 << 38};
    assert_int_equal(svi_checkpoint_write(&k.folder, &c, NULL, &e), SVS_TOO_LARGE);
}

/* ---- failing for good */

/* Closes the descriptor of this file of ours. */
static void close_file(const char *name) {
    char link[64], target[256];
    for (int fd = 3; fd < 1000; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, target, sizeof target - 1);
        if (n < 0)
            continue;
        target[n] = '\0';
        char *end = strrchr(target, '/');
        if (end && strncmp(target, k.path, strlen(k.path)) == 0 && strcmp(end + 1, name) == 0) {
            close(fd);
            return;
        }
    }
    fail_msg("%s is not open", name);
}

static void assert_dead(svi_journal *j, const char *text) {
    svs_error e = {0}, first;
    double due;
    assert_int_equal(svi_journal_append(j, 1, 0, "", 0, &first), SVS_IO);
    assert_non_null(strstr(first.text, k.path));
    if (!strstr(first.text, text))
        fail_msg("%s", first.text);
    assert_int_equal(svi_journal_commit(j, &e), SVS_IO);
    assert_string_equal(e.text, first.text);
    assert_int_equal(svi_journal_sync(j, &e), SVS_IO);
    assert_true(svi_journal_due(j, 2e9, &due)); /* so that whoever syncs beside the stream is told */
    assert_int_equal(svi_journal_commit(j, NULL), SVS_IO);
}

static void test_write_fails(void **state) {
    svs_error e;
    (void)state;
    svi_journal *j = kept_journal(&k, 4096, SVI_FSYNC_ALWAYS, NULL);
    kept_append_to(j, 3, 1);
    kept_append(j, 3, 10);
    close_file("journal-0000000000000000");
    assert_int_equal(svi_journal_commit(j, &e), SVS_IO);
    assert_non_null(strstr(e.text, "restart the process"));
    assert_dead(j, "cannot be written");
    assert_int_equal(svi_journal_durable(j), 3);
    svi_journal_free(&j);
}

static void test_sync_fails(void **state) {
    svs_error e;
    double due;
    (void)state;
    svi_journal *j = kept_journal(&k, 4096, SVI_FSYNC_INTERVAL, NULL);
    kept_append_to(j, 3, 1);
    close_file("journal-0000000000000000");
    assert_int_equal(kept_tick(j, 1, &due, &e), SVS_OK);
    assert_int_equal(kept_tick(j, 2, &due, &e), SVS_IO);
    assert_dead(j, "cannot be made durable");
    assert_int_equal(svi_journal_durable(j), 0);
    svi_journal_free(&j);

    j = kept_journal(&k, 4096, SVI_FSYNC_NEVER, NULL);
    kept_append_to(j, 3, 1);
    close_file("journal-0000000000000000");
    assert_int_equal(svi_journal_sync(j, &e), SVS_IO);
    assert_dead(j, "cannot be made durable");
    svi_journal_free(&j);
}

static void test_sync_beside_fails(void **state) {
    struct svi_journal_sync s;
    svs_error e;
    (void)state;
    svi_journal *j = kept_journal(&k, 4096, SVI_FSYNC_INTERVAL, NULL);
    kept_append_to(j, 3, 1);
    assert_int_equal(svi_journal_sync_begin(j, &s, &e), SVS_OK);
    close(s.fd);
    svi_journal_sync_run(&s);
    assert_int_equal(s.error, EBADF);
    assert_int_equal(svi_journal_sync_end(j, &s, &e), SVS_IO);
    assert_dead(j, "cannot be made durable");
    assert_int_equal(svi_journal_durable(j), 0);
    assert_int_equal(svi_journal_sync_begin(j, &s, &e), SVS_IO);
    assert_int_equal(s.fd, -1);
    assert_int_equal(svi_journal_sync_end(j, &s, &e), SVS_IO);
    svi_journal_free(&j);

    j = kept_journal(&k, 4096, SVI_FSYNC_INTERVAL, NULL);
    kept_append_to(j, 3, 1);
    assert_int_equal(renameat(k.folder.fd, "journal-0000000000000000", k.folder.fd, "moved"), 0);
    assert_int_equal(svi_journal_sync_begin(j, &s, &e), SVS_IO);
    assert_dead(j, "cannot be opened");
    svi_journal_free(&j);
}

static void test_rotation_fails(void **state) {
    svs_error e;
    (void)state;
    svi_journal *j = kept_journal(&k, 200, SVI_FSYNC_NEVER, NULL);
    kept_append_to(j, 5, 5);
    kept_append(j, 5, 10);
    close_file("journal-0000000000000000"); /* the old segment cannot be synced */
    assert_int_equal(svi_journal_commit(j, &e), SVS_IO);
    assert_dead(j, "cannot be made durable");
    assert_int_equal(kept_count(&k, "journal"), 1);
    svi_journal_free(&j);
    kept_empty(&k);

    j = kept_journal(&k, 200, SVI_FSYNC_NEVER, NULL);
    kept_append_to(j, 5, 5);
    kept_append(j, 5, 10);
    char path[128];
    snprintf(path, sizeof path, "%s/journal-%016x", k.path, 5);
    assert_int_equal(mkdir(path, 0700), 0); /* in the way */
    assert_int_equal(svi_journal_commit(j, &e), SVS_IO);
    assert_dead(j, "cannot be begun");
    svi_journal_free(&j);
    rmdir(path);
}

static void test_continuing_fails(void **state) {
    struct svi_journal_options o = {"s", KEPT_EPOCH, 200, SVI_FSYNC_ALWAYS, 0};
    struct svi_position at = {5, 5, 100, 1, 0};
    svs_error e;
    (void)state;
    assert_null(svi_journal_new(&k.folder, &o, &at, &e));
    assert_int_equal(e.code, SVS_IO);
    svi_journal *j = kept_journal(&k, 200, SVI_FSYNC_ALWAYS, NULL);
    kept_append_to(j, 2, 1);
    at = svi_journal_position(j);
    svi_journal_free(&j);
    at.offset += 1000;
    assert_null(svi_journal_new(&k.folder, &o, &at, &e));
    assert_int_equal(e.code, SVS_DAMAGED);
    char path[128];
    snprintf(path, sizeof path, "%s/journal-%016x", k.path, 9);
    assert_int_equal(mkdir(path, 0700), 0); /* cannot be unlinked */
    assert_null(svi_journal_new(&k.folder, &o, &at, &e));
    assert_int_equal(e.code, SVS_IO);
    rmdir(path);
    struct svi_state_dir closed = {.fd = 1000000, .lock = -1, .path = k.path};
    assert_null(svi_journal_new(&closed, &o, &at, &e));
    assert_int_equal(e.code, SVS_IO);
    struct svi_journal_reader_options ro = {0, 1000, false};
    assert_null(svi_journal_reader_new(&closed, &at, &ro, &e));
    assert_int_equal(e.code, SVS_IO);
}

static void test_reading_fails(void **state) {
    struct svi_journal_reader_options o = {0, 1000, false};
    static const struct svi_position zero;
    struct svi_record r;
    svs_error e;
    (void)state;
    svi_journal *j = kept_journal(&k, 200, SVI_FSYNC_NEVER, NULL);
    kept_append_to(j, 20, 5);
    svi_journal_free(&j);
    svi_journal_reader *reader = svi_journal_reader_new(&k.folder, &zero, &o, &e);
    assert_non_null(reader);
    svi_state_dir_remove(&k.folder, "journal", 5, NULL); /* trimmed while it was being read */
    enum svi_journal_read how;
    while ((how = svi_journal_read(reader, &r, &e)) == SVI_JOURNAL_RECORD)
        assert_true(r.number < 5);
    assert_int_equal(how, SVI_JOURNAL_FAIL);
    assert_int_equal(e.code, SVS_IO);
    svi_journal_reader_free(&reader);
    svi_journal_reader_free(&reader);
}

/* A file that becomes shorter, or a descriptor that goes, while a large one is being read. */
static void test_reading_fails_in_the_middle(void **state) {
    struct svi_journal_reader_options o = {0, 1000000, false};
    static const struct svi_position zero;
    char path[128];
    struct svi_record r;
    svs_error e;
    (void)state;
    for (int how = 0; how < 2; how++) {
        svi_journal *j = kept_journal(&k, 1 << 30, SVI_FSYNC_NEVER, NULL);
        for (uint64_t n = 0; n < 10; n++) {
            kept_append(j, n, 200000);
            assert_int_equal(svi_journal_commit(j, NULL), SVS_OK);
        }
        svi_journal_free(&j);
        svi_journal_reader *reader = svi_journal_reader_new(&k.folder, &zero, &o, &e);
        assert_int_equal(svi_journal_read(reader, &r, &e), SVI_JOURNAL_RECORD);
        snprintf(path, sizeof path, "%s/journal-%016x", k.path, 0);
        if (how == 0)
            assert_int_equal(truncate(path, 700000), 0);
        else
            close_file("journal-0000000000000000");
        enum svi_journal_read read;
        while ((read = svi_journal_read(reader, &r, &e)) == SVI_JOURNAL_RECORD)
            assert_true(r.number < 5);
        assert_int_equal(read, SVI_JOURNAL_FAIL);
        assert_int_equal(e.code, SVS_IO);
        svi_journal_reader_free(&reader);
        kept_empty(&k);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_full_anywhere),
                                       TEST(test_full_at_a_new_segment),
                                       TEST(test_full_behind_a_header),
                                       TEST(test_full_from_the_beginning),
                                       TEST(test_full_for_a_checkpoint),
                                       TEST(test_no_descriptor),
                                       TEST(test_checkpoint_fails),
                                       TEST(test_write_fails),
                                       TEST(test_sync_fails),
                                       TEST(test_sync_beside_fails),
                                       TEST(test_rotation_fails),
                                       TEST(test_continuing_fails),
                                       TEST(test_reading_fails),
                                       TEST(test_reading_fails_in_the_middle)};
    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
