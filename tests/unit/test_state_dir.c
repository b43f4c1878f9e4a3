/* The folder of a kept state: one process at a time, its own files and no others. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "support/kept.h"
#include "store/io.h"

static struct kept k;

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

static void touch(const char *name) {
    int fd = openat(k.folder.fd, name, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static bool is_there(const char *name) {
    return faccessat(k.folder.fd, name, F_OK, 0) == 0;
}

/* Who else can write in it could put another state in its place. */
static void test_not_open_to_others(void **state) {
    static const mode_t modes[] = {0720, 0702, 01777};
    struct svi_state_dir f;
    char path[96];
    svs_error e;
    (void)state;
    snprintf(path, sizeof path, "%s/open", k.path);
    assert_int_equal(mkdir(path, 0700), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_int_equal(svi_state_dir_open(&f, path, true, &e), SVS_IO);
        assert_non_null(strstr(e.text, "writable by other users: chmod go-w it"));
        assert_int_equal(svi_state_dir_open(&f, path, false, &e), SVS_OK); /* to look at it harms nothing */
        svi_state_dir_close(&f);
    }
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(svi_state_dir_open(&f, path, true, &e), SVS_OK);
    svi_state_dir_close(&f);
    snprintf(path, sizeof path, "%s/open/lock", k.path);
    unlink(path);
    snprintf(path, sizeof path, "%s/open", k.path);
    assert_int_equal(rmdir(path), 0);
}

/* Nor does root write in another user's, whom nothing keeps from putting links there. */
static void test_not_another_users(void **state) {
    struct svi_state_dir f;
    char path[96];
    svs_error e;
    (void)state;
    if (geteuid() != 0)
        skip(); /* nobody else can give a directory away */
    snprintf(path, sizeof path, "%s/theirs", k.path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_int_equal(svi_state_dir_open(&f, path, true, &e), SVS_IO);
    assert_non_null(strstr(e.text, "owned by another user"));
    assert_int_equal(svi_state_dir_open(&f, path, false, &e), SVS_OK);
    svi_state_dir_close(&f);
    assert_int_equal(rmdir(path), 0);
}

static void test_makes_one_level(void **state) {
    struct svi_state_dir f;
    struct stat s;
    char path[96];
    svs_error e;
    (void)state;
    snprintf(path, sizeof path, "%s/checkpoints", k.path);
    assert_int_equal(svi_state_dir_open(&f, path, false, &e), SVS_IO); /* reading makes nothing */
    assert_non_null(strstr(e.text, path));
    assert_int_equal(svi_state_dir_open(&f, path, true, &e), SVS_OK);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0700);
    svi_state_dir_close(&f);
    assert_int_equal(f.fd, -1);
    assert_int_equal(svi_state_dir_open(&f, path, true, &e), SVS_OK); /* it is there already */
    svi_state_dir_close(&f);
    snprintf(path, sizeof path, "%s/checkpoints/lock", k.path);
    unlink(path);
    assert_int_equal(svi_state_dir_open(&f, path, true, &e), SVS_OK);
    svi_state_dir_close(&f);
    snprintf(path, sizeof path, "%s/checkpoints/lock/lock", k.path);
    unlink(path);
    snprintf(path, sizeof path, "%s/checkpoints/lock", k.path);
    rmdir(path);
    snprintf(path, sizeof path, "%s/checkpoints", k.path);
    rmdir(path);
    snprintf(path, sizeof path, "%s/a/b", k.path);
    assert_int_equal(svi_state_dir_open(&f, path, true, &e), SVS_IO);
    assert_non_null(strstr(e.text, "parent directory does not exist"));
    assert_null(f.path);
    touch("file");
    snprintf(path, sizeof path, "%s/file", k.path);
    assert_int_equal(svi_state_dir_open(&f, path, true, &e), SVS_IO);
    assert_int_equal(mkdirat(k.folder.fd, "sub", 0700), 0);
    assert_int_equal(mkdirat(k.folder.fd, "sub/lock", 0700), 0);
    snprintf(path, sizeof path, "%s/sub", k.path);
    assert_int_equal(svi_state_dir_open(&f, path, true, &e), SVS_IO); /* the lock is a folder */
    unlinkat(k.folder.fd, "sub/lock", AT_REMOVEDIR);
    unlinkat(k.folder.fd, "sub", AT_REMOVEDIR);
}

static void test_locked_out(void **state) {
    struct svi_state_dir f;
    svs_error e;
    char id[32];
    (void)state;
    snprintf(id, sizeof id, "process %ld", (long)getpid());
    assert_int_equal(svi_state_dir_open(&f, k.path, true, &e), SVS_IO); /* another description of the file */
    assert_non_null(strstr(e.text, id));
    assert_int_equal(ftruncate(k.folder.lock, 0), 0);
    assert_int_equal(svi_state_dir_open(&f, k.path, true, &e), SVS_IO);
    assert_non_null(strstr(e.text, "another process"));
    assert_int_equal(svi_state_dir_open(&f, k.path, false, &e), SVS_OK); /* looking is no obstacle */
    svi_state_dir_close(&f);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        svs_code code = svi_state_dir_open(&f, k.path, true, NULL);
        _exit(code == SVS_IO ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(pipes[0]);
    close(pipes[1]);
}

/* Whoever is killed holds no lock. */
/* The directory itself is locked. */
static void test_without_the_lock_file(void **state) {
    struct svi_state_dir f;
    char path[80];
    svs_error e;
    (void)state;
    snprintf(path, sizeof path, "%s/lock", k.path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(svi_state_dir_open(&f, k.path, true, &e), SVS_IO);
    assert_non_null(strstr(e.text, "is in use by another process"));
    assert_int_not_equal(access(path, F_OK), 0);
    svi_state_dir_close(&k.folder);
    assert_int_equal(svi_state_dir_open(&k.folder, k.path, true, &e), SVS_OK);
}

static void test_lock_ends_with_the_process(void **state) {
    struct svi_state_dir f;
    char byte;
    int pipes[2], status;
    svs_error e;
    (void)state;
    svi_state_dir_close(&k.folder);
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        svs_code code = svi_state_dir_open(&f, k.path, true, NULL);
        if (code != SVS_OK || write(pipes[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    assert_int_equal(svi_state_dir_open(&f, k.path, true, &e), SVS_IO);
    char id[32];
    snprintf(id, sizeof id, "process %ld", (long)child);
    assert_non_null(strstr(e.text, id));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(pipes[0]);
    close(pipes[1]);
    assert_int_equal(svi_state_dir_open(&k.folder, k.path, true, &e), SVS_OK);
}

static void test_only_our_files(void **state) {
    static const char *const foreign[] = {"journal",
                                          "journal-",
                                          "journal-000000000000000",
                                          "journal-000000000000000G",
                                          "journal-00000000000000000",
                                          "journal-000000000000000A",
                                          "journalx0000000000000000",
                                          "journal-0000000000000001.damaged",
                                          "notes.tmp",
                                          "checkpoint-1.tmp",
                                          "lock.tmp"};
    uint64_t *numbers;
    int count;
    svs_error e;
    (void)state;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        touch(foreign[i]);
    assert_int_equal(svi_state_dir_list(&k.folder, "journal", &numbers, &count, &e), SVS_OK);
    assert_int_equal(count, 0);
    assert_null(numbers);
    char name[SVI_FILE_NAME];
    for (uint64_t n = 40; n > 0; n--)
        touch(svi_state_dir_name(name, "journal", n * 0x123456789abcdef % 977 + (n << 57)));
    touch("journal-ffffffffffffffff");
    touch("checkpoint-0000000000000005");
    assert_int_equal(svi_state_dir_list(&k.folder, "journal", &numbers, &count, &e), SVS_OK);
    assert_int_equal(count, 41);
    for (int i = 1; i < count; i++)
        assert_true(numbers[i - 1] < numbers[i]);
    assert_true(numbers[40] == UINT64_MAX);
    svi_free(numbers);
    assert_int_equal(svi_state_dir_list(&k.folder, "checkpoint", &numbers, &count, &e), SVS_OK);
    assert_int_equal(count, 1);
    assert_int_equal(numbers[0], 5);
    svi_free(numbers);
    touch("journal-0000000000000001.tmp");
    touch("checkpoint-00000000000000ff.tmp");
    svi_state_dir_close(&k.folder);
    assert_int_equal(svi_state_dir_open(&k.folder, k.path, false, &e), SVS_OK);
    assert_true(is_there("checkpoint-00000000000000ff.tmp"));
    svi_state_dir_close(&k.folder);
    assert_int_equal(svi_state_dir_open(&k.folder, k.path, true, &e), SVS_OK);
    assert_false(is_there("journal-0000000000000001.tmp"));
    assert_false(is_there("checkpoint-00000000000000ff.tmp"));
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        assert_true(is_there(foreign[i]));
    svi_state_dir_close(&k.folder);
    assert_int_equal(svi_state_dir_open(&k.folder, k.path, false, &e), SVS_OK);
    touch("journal-0000000000000002.tmp");
    svi_state_dir_close(&k.folder);
    char path[96];
    snprintf(path, sizeof path, "%s/journal-0000000000000002.tmp", k.path);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0); /* cannot be unlinked */
    assert_int_equal(svi_state_dir_open(&k.folder, k.path, true, &e), SVS_IO);
    assert_non_null(strstr(e.text, "cannot be removed"));
    rmdir(path);
    assert_int_equal(svi_state_dir_open(&k.folder, k.path, true, &e), SVS_OK);
}

static void test_clear(void **state) {
    const uint64_t numbers[] = {7, 8, 9};
    svs_error e;
    (void)state;
    touch("journal-0000000000000007");
    touch("journal-0000000000000009");
    touch("checkpoint-0000000000000007");
    int fd = openat(k.folder.fd, "journal-0000000000000009", O_WRONLY);
    assert_int_equal(ftruncate(fd, 1000001), 0);
    close(fd);
    assert_int_equal(svi_state_dir_clear(&k.folder, "journal", numbers, 0, &e), SVS_OK);
    assert_int_equal(svi_state_dir_clear(&k.folder, "journal", numbers, -1, &e), SVS_OK);
    assert_true(is_there("journal-0000000000000007"));
    assert_int_equal(svi_state_dir_clear(&k.folder, "journal", numbers, 3, &e), SVS_OK); /* 8 is not there */
    static const char *const gone[] = {"journal-0000000000000007", "journal-0000000000000009",
                                       "journal-0000000000000007.tmp", "journal-0000000000000009.tmp"};
    for (int i = 0; i < 4; i++)
        assert_false(is_there(gone[i]));
    assert_true(is_there("checkpoint-0000000000000007"));
    unlinkat(k.folder.fd, "checkpoint-0000000000000007", 0);
    /* what has another name, as in a copy by links, stays whole there */
    touch("journal-0000000000000007");
    fd = openat(k.folder.fd, "journal-0000000000000007", O_WRONLY);
    assert_int_equal(ftruncate(fd, 1000001), 0);
    assert_int_equal(linkat(k.folder.fd, "journal-0000000000000007", k.folder.fd, "copy", 0), 0);
    assert_int_equal(svi_state_dir_clear(&k.folder, "journal", numbers, 1, &e), SVS_OK);
    assert_int_equal(lseek(fd, 0, SEEK_END), 1000001);
    close(fd);
    unlinkat(k.folder.fd, "copy", 0);
    /* what another program put in the way is named */
    touch("journal-0000000000000007");
    assert_int_equal(mkdirat(k.folder.fd, "journal-0000000000000007.tmp", 0700), 0);
    assert_int_equal(svi_state_dir_clear(&k.folder, "journal", numbers, 1, &e), SVS_IO);
    assert_non_null(strstr(e.text, "journal-0000000000000007"));
    unlinkat(k.folder.fd, "journal-0000000000000007", 0);
    unlinkat(k.folder.fd, "journal-0000000000000007.tmp", AT_REMOVEDIR);
}

static void test_remove_and_set_aside(void **state) {
    svs_error e;
    (void)state;
    touch("journal-0000000000000007");
    assert_int_equal(svi_state_dir_set_aside(&k.folder, "journal", 7, &e), SVS_OK);
    assert_true(is_there("journal-0000000000000007.damaged"));
    assert_false(is_there("journal-0000000000000007"));
    assert_int_equal(svi_state_dir_set_aside(&k.folder, "journal", 7, &e), SVS_OK);
    assert_int_equal(svi_state_dir_remove(&k.folder, "journal", 7, &e), SVS_OK);
    touch("journal-0000000000000007");
    assert_int_equal(svi_state_dir_remove(&k.folder, "journal", 7, &e), SVS_OK);
    assert_false(is_there("journal-0000000000000007"));
    assert_int_equal(mkdirat(k.folder.fd, "journal-0000000000000008", 0700), 0);
    assert_int_equal(svi_state_dir_remove(&k.folder, "journal", 8, &e), SVS_IO);
    touch("journal-0000000000000008.damaged");
    assert_int_equal(svi_state_dir_set_aside(&k.folder, "journal", 8, &e), SVS_IO);
    unlinkat(k.folder.fd, "journal-0000000000000008", AT_REMOVEDIR);
    assert_true(svi_free_bytes(k.folder.path) > 0);
    assert_int_equal(svi_state_dir_sync(&k.folder, &e), SVS_OK);
}

/* The directory closed behind its back. */
static void test_bad_descriptor(void **state) {
    struct svi_state_dir f = {.fd = 1000000, .lock = -1, .path = k.path};
    uint64_t *numbers;
    int count;
    svs_error e;
    (void)state;
    assert_int_equal(svi_state_dir_sync(&f, &e), SVS_IO);
    assert_int_equal(svi_state_dir_list(&f, "journal", &numbers, &count, &e), SVS_IO);
    assert_null(numbers);
    assert_int_equal(svi_free_bytes("no such directory"), -1);
    assert_int_equal(svi_free_bytes(NULL), -1);
}

/* After a failed sync the system would call the next one a success. */
static void test_failed_sync_stays(void **state) {
    const int fd = k.folder.fd;
    svs_error e;
    (void)state;
    assert_int_equal(svi_state_dir_sync(&k.folder, &e), SVS_OK);
    k.folder.fd = 1000000;
    assert_int_equal(svi_state_dir_sync(&k.folder, &e), SVS_IO);
    k.folder.fd = fd;
    assert_int_equal(svi_state_dir_sync(&k.folder, &e), SVS_IO);
    assert_int_not_equal(svi_state_dir_flush(&k.folder), 0);
}

static void test_long_paths_and_texts(void **state) {
    char path[400];
    struct svi_state_dir f;
    svs_error e;
    (void)state;
    memset(path, 'x', sizeof path);
    path[1] = '\n';
    path[399] = '\0';
    assert_int_equal(svi_state_dir_open(&f, path, true, &e), SVS_IO); /* the name is too long */
    assert_non_null(strstr(e.text, "too long"));
    assert_null(strchr(e.text, '\n'));
    assert_string_equal(svi_errno_text(987654), "unknown reason");
    assert_true(svi_no_space(ENOSPC) && svi_no_space(EDQUOT) && svi_no_space(EFBIG) && !svi_no_space(EIO));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_not_another_users),     TEST(test_makes_one_level),
        TEST(test_not_open_to_others),    TEST(test_locked_out),
        TEST(test_without_the_lock_file), TEST(test_lock_ends_with_the_process),
        TEST(test_only_our_files),        TEST(test_clear),
        TEST(test_remove_and_set_aside),  TEST(test_bad_descriptor),
        TEST(test_failed_sync_stays),     TEST(test_long_paths_and_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
