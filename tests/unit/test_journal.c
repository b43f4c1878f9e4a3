/* What is written into a journal is read back, over any number of segments, from any place; what was not
 * committed is not there; syncs come when the policy says so. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "support/kept.h"
#include "store/journal_internal.h"
#include "wire/cursor.h"

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

/* Every record from `first` on, and nothing torn or lost. */
static void assert_all(uint64_t first, uint64_t end) {
    if (all.how != SVI_JOURNAL_END)
        fail_msg("%s", all.error.text);
    assert_int_equal(all.count, end - first);
    for (int i = 0; i < all.count; i++) {
        assert_int_equal(all.number[i], first + (uint64_t)i);
        assert_false(all.lost[i]);
    }
    assert_int_equal(all.found.end.number, end);
    assert_int_equal(all.found.torn, 0);
    assert_int_equal(all.found.lost_records, 0);
    assert_int_equal(all.found.lost_bytes, 0);
    assert_false(all.found.lost);
}

static void test_nothing(void **state) {
    (void)state;
    everything_read(&all, &k, NULL, false, NULL);
    assert_all(0, 0);
    assert_int_equal(all.found.epoch, 0);
    assert_int_equal(all.found.segments, 0);
    svi_journal *j = kept_journal(&k, 4096, SVI_FSYNC_ALWAYS, NULL);
    assert_int_equal(svi_journal_commit(j, NULL), SVS_OK);
    assert_int_equal(svi_journal_sync(j, NULL), SVS_OK);
    assert_int_equal(svi_journal_syncs(j), 0);
    struct svi_position at = svi_journal_position(j);
    assert_int_equal(at.number, 0);
    assert_true(at.offset > 0);
    svi_journal_free(&j);
    svi_journal_free(&j);
    everything_read(&all, &k, NULL, false, NULL);
    assert_all(0, 0);
    assert_int_equal(all.found.epoch, KEPT_EPOCH);
    assert_position(all.found.end, at);
}

static void test_round_trips(void **state) {
    static const int64_t segments[] = {1, 200, 4096, 10000, 1 << 30};
    static const int batches[] = {1, 3, 50, 1000};
    (void)state;
    for (size_t s = 0; s < 5; s++)
        for (size_t b = 0; b < 4; b++) {
            svi_journal *j = kept_journal(&k, segments[s], SVI_FSYNC_NEVER, NULL);
            kept_append_to(j, 500, batches[b]);
            struct svi_position end = svi_journal_position(j);
            uint64_t durable = svi_journal_durable(j);
            svi_journal_free(&j);
            everything_read(&all, &k, NULL, false, NULL);
            assert_all(0, 500);
            assert_position(all.found.end, end);
            assert_int_equal(all.found.segments, kept_count(&k, "journal"));
            assert_int_equal(durable, end.segment); /* each is synced before the next begins */
            kept_empty(&k);
        }
}

static size_t large_size(uint64_t number) {
    return number % 3 == 0 ? 0 : number % 3 == 1 ? 300000 + number : 262144 - 43 * (number % 2);
}

static void test_large_records(void **state) {
    (void)state;
    svi_journal *j = kept_journal(&k, 1 << 20, SVI_FSYNC_NEVER, NULL);
    for (uint64_t n = 0; n < 20; n++) {
        kept_append(j, n, large_size(n));
        assert_int_equal(svi_journal_commit(j, NULL), SVS_OK);
    }
    assert_true(svi_journal_bytes(j) > 20 * 180000);
    svi_journal_free(&j);
    everything_read(&all, &k, NULL, false, large_size);
    assert_all(0, 20);
}

/* From the place behind each record, and, by number alone, from each record. */
static void test_from_anywhere(void **state) {
    (void)state;
    struct svi_position at[101];
    svi_journal *j = kept_journal(&k, 700, SVI_FSYNC_NEVER, NULL);
    for (uint64_t n = 0; n < 100; n++) {
        at[n] = svi_journal_position(j);
        kept_append_to(j, n + 1, 1);
    }
    at[100] = svi_journal_position(j);
    svi_journal_free(&j);
    assert_true(kept_count(&k, "journal") > 4);
    for (uint64_t n = 0; n <= 100; n++) {
        everything_read(&all, &k, &at[n], false, NULL);
        assert_all(n, 100);
        assert_position(all.found.end, at[100]);
        struct svi_position number = {.number = n};
        everything_read(&all, &k, &number, false, NULL);
        assert_all(n, 100);
        assert_position(all.found.end, at[100]);
    }
    struct svi_position beyond = {.number = 200, .chain = 7}, new_one = {200, 200, 0, 7, 0};
    everything_read(&all, &k, &beyond, false, NULL);
    assert_all(200, 200);
    assert_position(all.found.end, new_one);
}

static void test_resume(void **state) {
    (void)state;
    for (uint64_t n = 0; n < 60; n += 10) {
        everything_read(&all, &k, NULL, false, NULL);
        assert_all(0, n);
        svi_journal *j = kept_journal(&k, 500, SVI_FSYNC_ALWAYS, &all.found.end);
        assert_int_equal(svi_journal_durable(j), n);
        kept_append_to(j, n + 10, 4);
        assert_int_equal(svi_journal_durable(j), n + 10);
        kept_append(j, n + 10, 5); /* not committed: never there */
        svi_journal_free(&j);
    }
}

/* A journal may begin anywhere; what is there from that number on goes away. */
static void test_begin_again(void **state) {
    (void)state;
    svi_journal *j = kept_journal(&k, 500, SVI_FSYNC_NEVER, NULL);
    kept_append_to(j, 60, 5);
    svi_journal_free(&j);
    struct svi_position at = {1000, 1000, 0, 99, 0};
    j = kept_journal(&k, 500, SVI_FSYNC_NEVER, &at);
    kept_append_to(j, 1010, 5);
    svi_journal_free(&j);
    everything_read(&all, &k, &at, false, NULL);
    assert_all(1000, 1010);
    everything_read(&all, &k, NULL, false, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_FAIL);
    assert_non_null(strstr(all.error.text, "the records 60 to 999 before it are missing"));
    struct svi_position zero = {0};
    j = kept_journal(&k, 500, SVI_FSYNC_NEVER, &zero);
    svi_journal_free(&j);
    assert_int_equal(kept_count(&k, "journal"), 1);
    everything_read(&all, &k, NULL, false, NULL);
    assert_all(0, 0);
}

/* The last segment that can be: nothing is behind it, and nothing before it is removed. */
static void test_last_number(void **state) {
    struct svi_position at = {.number = 5};
    (void)state;
    svi_journal *j = kept_journal(&k, 4096, SVI_FSYNC_NEVER, &at);
    svi_journal_free(&j);
    at = (struct svi_position){.number = UINT64_MAX};
    j = kept_journal(&k, 4096, SVI_FSYNC_NEVER, &at);
    at = svi_journal_position(j);
    svi_journal_free(&j);
    assert_true(at.segment == UINT64_MAX && at.offset > 0);
    j = kept_journal(&k, 4096, SVI_FSYNC_NEVER, &at);
    svi_journal_free(&j);
    assert_int_equal(kept_count(&k, "journal"), 2);
}

static void test_drop(void **state) {
    (void)state;
    svi_journal *j = kept_journal(&k, 1, SVI_FSYNC_NEVER, NULL);
    struct svi_position at = svi_journal_position(j);
    kept_append(j, 0, 10);
    assert_int_equal(svi_journal_position(j).number, 1);
    svi_journal_abort(j);
    assert_position(svi_journal_position(j), at);
    kept_append_to(j, 3, 1);
    svi_journal_free(&j);
    everything_read(&all, &k, NULL, false, NULL);
    assert_all(0, 3);
}

static void test_policies(void **state) {
    double due;
    (void)state;
    svi_journal *j = kept_journal(&k, 1 << 20, SVI_FSYNC_INTERVAL, NULL);
    assert_int_equal(kept_tick(j, 10, &due, NULL), SVS_OK);
    assert_true(isinf(due));
    kept_append_to(j, 2, 1);
    assert_int_equal(svi_journal_durable(j), 0);
    assert_int_equal(kept_tick(j, 10, &due, NULL), SVS_OK);
    assert_true(fabs(due - 10.2) < 1e-9);
    kept_append_to(j, 4, 1);
    assert_int_equal(kept_tick(j, 10.1, &due, NULL), SVS_OK);
    assert_true(fabs(due - 10.2) < 1e-9);
    assert_int_equal(svi_journal_durable(j), 0);
    assert_int_equal(kept_tick(j, 10.25, &due, NULL), SVS_OK);
    assert_false(svi_journal_due(j, 10.25, &due));
    assert_true(isinf(due));
    assert_int_equal(svi_journal_durable(j), 4);
    assert_int_equal(svi_journal_syncs(j), 1);
    kept_append_to(j, 5, 1);
    assert_int_equal(svi_journal_sync(j, NULL), SVS_OK);
    assert_int_equal(svi_journal_syncs(j), 2);
    kept_append_to(j, 6, 1);
    svi_journal_free(&j);
    everything_read(&all, &k, NULL, false, NULL);
    static const uint64_t durable[] = {0, 0, 0, 0, 4, 5};
    for (int i = 0; i < 6; i++)
        assert_int_equal(all.durable[i], durable[i]);

    j = kept_journal(&k, 300, SVI_FSYNC_NEVER, &all.found.end);
    kept_append_to(j, 40, 1);
    assert_int_equal(kept_tick(j, 1e9, &due, NULL), SVS_OK);
    assert_true(isinf(due));
    assert_true(svi_journal_durable(j) > 6 && svi_journal_durable(j) < 40); /* where segments ended */
    svi_journal_free(&j);
    everything_read(&all, &k, NULL, false, NULL);
    assert_all(0, 40);
}

/* A sync beside the stream keeps what was committed when it began, also when a segment ends meanwhile. */
static void test_sync_beside(void **state) {
    struct svi_journal_sync s;
    double due;
    (void)state;
    svi_journal *j = kept_journal(&k, 300, SVI_FSYNC_INTERVAL, NULL);
    assert_int_equal(svi_journal_sync_begin(j, &s, NULL), SVS_OK);
    assert_int_equal(s.fd, -1);
    svi_journal_sync_run(&s);
    assert_int_equal(svi_journal_sync_end(j, &s, NULL), SVS_OK);
    assert_int_equal(svi_journal_syncs(j), 0);

    kept_append_to(j, 2, 1);
    assert_false(svi_journal_due(j, 5, &due));
    assert_true(svi_journal_due(j, 5.5, &due));
    assert_int_equal(svi_journal_sync_begin(j, &s, NULL), SVS_OK);
    assert_true(s.fd >= 0);
    kept_append_to(j, 3, 1);
    assert_false(svi_journal_due(j, 6, &due)); /* what came since has its own time */
    svi_journal_sync_run(&s);
    assert_int_equal(svi_journal_durable(j), 0);
    assert_int_equal(svi_journal_sync_end(j, &s, NULL), SVS_OK);
    assert_int_equal(s.fd, -1);
    assert_int_equal(svi_journal_durable(j), 2);
    assert_true(svi_journal_due(j, 6.5, &due));

    assert_int_equal(svi_journal_sync_begin(j, &s, NULL), SVS_OK);
    kept_append_to(j, 30, 1);
    const uint64_t durable = svi_journal_durable(j);
    assert_true(durable > 3); /* segments that ended are on disk */
    svi_journal_sync_run(&s);
    assert_int_equal(svi_journal_sync_end(j, &s, NULL), SVS_OK);
    assert_int_equal(svi_journal_durable(j), durable);
    assert_int_equal(svi_journal_sync_end(j, &s, NULL), SVS_OK);
    svi_journal_free(&j);
    everything_read(&all, &k, NULL, false, NULL);
    assert_all(0, 30);
}

static void test_trim(void **state) {
    (void)state;
    svi_journal *j = kept_journal(&k, 400, SVI_FSYNC_NEVER, NULL);
    kept_append_to(j, 40, 1);
    struct svi_position at = svi_journal_position(j);
    int before = kept_count(&k, "journal");
    assert_int_equal(kept_trim(&k, j, 0), SVS_OK);
    assert_int_equal(kept_count(&k, "journal"), before);
    assert_int_equal(kept_trim(&k, j, 20), SVS_OK);
    struct svi_position from = {.number = 20};
    everything_read(&all, &k, &from, false, NULL);
    assert_all(20, 40);
    everything_read(&all, &k, NULL, false, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_FAIL);
    assert_int_equal(all.error.code, SVS_DAMAGED);
    assert_int_equal(kept_trim(&k, j, UINT64_MAX), SVS_OK);
    assert_int_equal(kept_count(&k, "journal"), 1);
    kept_append_to(j, 60, 1);
    assert_int_equal(kept_trim(&k, j, 60), SVS_OK);
    svi_journal_free(&j);
    /* The segment in which `at` stands is gone; where the next begins just there, nothing is missing. */
    everything_read(&all, &k, &at, false, NULL);
    assert_true(all.how == SVI_JOURNAL_FAIL);
    assert_non_null(strstr(all.error.text, "missing"));
}

/* A place at the end of a full segment that was trimmed since: reading goes on with the next one. */
static void test_trimmed_behind_a_checkpoint(void **state) {
    (void)state;
    svi_journal *j = kept_journal(&k, 100, SVI_FSYNC_NEVER, NULL);
    kept_append_to(j, 10, 10);
    struct svi_position at = svi_journal_position(j);
    kept_append_to(j, 20, 10);
    assert_int_equal(kept_trim(&k, j, 10), SVS_OK);
    assert_int_equal(kept_count(&k, "journal"), 1);
    svi_journal_free(&j);
    everything_read(&all, &k, &at, false, NULL);
    assert_all(10, 20);
}

static void test_refused_records(void **state) {
    svs_error e;
    (void)state;
    svi_journal *j = kept_journal(&k, 4096, SVI_FSYNC_NEVER, NULL);
    assert_int_equal(svi_journal_append(j, -1, 0, NULL, 0, &e), SVS_INVALID);
    assert_int_equal(svi_journal_append(j, 128, 0, NULL, 0, &e), SVS_INVALID);
    assert_int_equal(svi_journal_append(j, 1, 0, "", (size_t)1 << 40, &e), SVS_TOO_LARGE);
    assert_int_equal(svi_journal_position(j).number, 0);
    svi_journal_free(&j);
}

/* A segment is nothing but msgpack: the cursor walks through it. */
static void test_is_msgpack(void **state) {
    struct content c;
    struct svi_item item;
    (void)state;
    svi_journal *j = kept_journal(&k, 4096, SVI_FSYNC_NEVER, NULL);
    kept_append_to(j, 20, 7);
    svi_journal_free(&j);
    content_read(&c, &k, "journal", 0);
    const uint8_t *at = c.bytes, *end = c.bytes + c.size;
    svi_item_read(at, &item);
    assert_int_equal(item.type, SVI_MAP);
    assert_int_equal(item.length, 10);
    assert_int_equal(svi_walk(&at, end, 1), SVS_OK);
    for (int n = 0; n < 20; n++) {
        const uint8_t *inside = svi_item_read(at, &item);
        assert_int_equal(item.type, SVI_ARRAY);
        assert_int_equal(item.length, 6);
        svi_item_read(inside, &item);
        assert_int_equal(item.i, n);
        assert_int_equal(svi_walk(&at, end, 1), SVS_OK);
    }
    assert_ptr_equal(at, end);
    free(c.bytes);
}

static void test_from_memory(void **state) {
    struct content c;
    struct svi_record r;
    struct svi_journal_found found;
    struct svi_journal_reader_options o = {0, 1000, false};
    (void)state;
    svi_journal *j = kept_journal(&k, 4096, SVI_FSYNC_NEVER, NULL);
    kept_append_to(j, 20, 7);
    svi_journal_free(&j);
    content_read(&c, &k, "journal", 0);
    for (size_t size = 0; size <= c.size; size++) {
        uint8_t *copy = malloc(size + 1); /* so that reading beyond is found */
        memcpy(copy, c.bytes, size);
        svi_journal_reader *reader = svi_journal_reader_memory(copy, size, 0, &o, NULL);
        int n = 0;
        while (svi_journal_read(reader, &r, NULL) == SVI_JOURNAL_RECORD)
            assert_int_equal(r.number, n++);
        svi_journal_reader_found(reader, &found);
        assert_int_equal(found.end.offset + found.torn, size);
        if (size == c.size)
            assert_int_equal(n, 20);
        svi_journal_reader_free(&reader);
        free(copy);
    }
    free(c.bytes);
}

/* Pages of the file that are in memory. */
static int resident(const char *path) {
    static unsigned char in_memory[4096];
    struct stat s;
    int fd = open(path, O_RDONLY), pages = 0;
    assert_true(fd >= 0 && fstat(fd, &s) == 0);
    void *content = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(content != MAP_FAILED && s.st_size < 4096 * (off_t)sizeof in_memory);
    assert_int_equal(mincore(content, (size_t)s.st_size, in_memory), 0);
    for (off_t i = 0; i < (s.st_size + 4095) / 4096; i++)
        pages += in_memory[i] & 1;
    munmap(content, (size_t)s.st_size);
    close(fd);
    return pages;
}

/* Are files kept anywhere else than in memory here? */
static bool has_disk(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0 && write(fd, path, strlen(path)) > 0 && fdatasync(fd) == 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    const bool gone = resident(path) == 0;
    close(fd);
    unlink(path);
    return gone;
}

/* What a failed sync left in memory is not what is on disk: a start reads the last segment from there. */
static void test_forget(void **state) {
    char path[128];
    svs_error e = {0};
    (void)state;
    snprintf(k.path, sizeof k.path, "/var/tmp/svmstream-kept-XXXXXX");
    assert_non_null(mkdtemp(k.path));
    assert_int_equal(svi_state_dir_open(&k.folder, k.path, true, &e), SVS_OK);
    assert_int_equal(svi_journal_forget(&k.folder, &e), SVS_OK); /* nothing is there */
    snprintf(path, sizeof path, "%s/other", k.path);
    const bool disk = has_disk(path);
    svi_journal *j = kept_journal(&k, 1 << 20, SVI_FSYNC_NEVER, NULL);
    kept_append_to(j, 2000, 100);
    svi_journal_free(&j);
    snprintf(path, sizeof path, "%s/journal-%016d", k.path, 0);
    assert_true(resident(path) > 20);
    assert_int_equal(svi_journal_forget(&k.folder, &e), SVS_OK);
    if (disk)
        assert_int_equal(resident(path), 0);
    everything_read(&all, &k, NULL, false, NULL);
    assert_all(0, 2000);
    kept_remove(&k);
}

/* Written and synced into nowhere: no such sync succeeds, whoever asks for it. */
static void test_removed_meanwhile(void **state) {
    static const enum svi_fsync policies[] = {SVI_FSYNC_ALWAYS, SVI_FSYNC_INTERVAL};
    struct svi_journal_sync s;
    char name[SVI_FILE_NAME];
    svs_error e;
    (void)state;
    for (int i = 0; i < 3; i++) {
        svi_journal *j = kept_journal(&k, 1 << 20, policies[i > 0], NULL);
        kept_append_to(j, 3, 1);
        assert_int_equal(svi_journal_sync(j, &e), SVS_OK);
        assert_int_equal(unlinkat(k.folder.fd, svi_state_dir_name(name, "journal", 0), 0), 0);
        if (i == 2) /* another file has its name */
            close(openat(k.folder.fd, name, O_WRONLY | O_CREAT, 0600));
        kept_append(j, 3, 10);
        const svs_code written = svi_journal_commit(j, &e);
        assert_int_equal(written, i == 0 ? SVS_IO : SVS_OK);
        if (i == 1)
            assert_int_equal(svi_journal_sync(j, &e), SVS_IO);
        if (i == 2)
            assert_int_equal(svi_journal_sync_begin(j, &s, &e), SVS_IO);
        assert_non_null(strstr(e.text, "journal-0000000000000000 was removed while in use"));
        assert_int_equal(svi_journal_durable(j), 3);
        assert_int_equal(svi_journal_append(j, 1, 0, "x", 1, &e), SVS_IO);
        svi_journal_free(&j);
        kept_empty(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_round_trips, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_records, setup, teardown),
        cmocka_unit_test_setup_teardown(test_from_anywhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_resume, setup, teardown),
        cmocka_unit_test_setup_teardown(test_begin_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_last_number, setup, teardown),
        cmocka_unit_test_setup_teardown(test_drop, setup, teardown),
        cmocka_unit_test_setup_teardown(test_policies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sync_beside, setup, teardown),
        cmocka_unit_test_setup_teardown(test_trim, setup, teardown),
        cmocka_unit_test_setup_teardown(test_trimmed_behind_a_checkpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused_records, setup, teardown),
        cmocka_unit_test_setup_teardown(test_is_msgpack, setup, teardown),
        cmocka_unit_test_setup_teardown(test_from_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_removed_meanwhile, setup, teardown),
        cmocka_unit_test(test_forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
