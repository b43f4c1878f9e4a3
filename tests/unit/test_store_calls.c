/* Each system call of the store fails: the n-th, for all n of a short life, once and from then on, in several
 * ways. Whatever happens, what was acknowledged is read back afterwards, nothing else is, and a next life
 * goes on behind it. This program's own calls take the place of the C library's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "support/kept.h"

enum call {
    OPENAT,
    WRITE,
    PREAD,
    FDATASYNC,
    FSYNC,
    FTRUNCATE,
    RENAMEAT,
    UNLINKAT,
    FLOCK,
    MKDIR,
    GETRANDOM,
    SYNCFS,
    CALLS
};

static enum call failing = CALLS;
static long left = -1; /* calls until one fails; -1 = none fails */
static bool forever, halves, failed;
static int reason;
static char trace[64]; /* the calls that were made, a letter each */
static size_t traced;

static bool fails(enum call c) {
    if (traced < sizeof trace - 1)
        trace[traced++] = "owpDFTRUlmgS"[c];
    if (c != failing || left < 0)
        return false;
    bool now = left == 0;
    if (left > 0 || !forever)
        left--;
    failed = failed || now;
    if (now)
        errno = reason;
    return now;
}

static long result(long r) {
    return r;
}

ssize_t write(int fd, const void *bytes, size_t n) {
    if (halves && n > 1)
        n /= 2;
    return fails(WRITE) ? -1 : result(syscall(SYS_write, fd, bytes, n));
}

/* Sectors that the disk has lost, from here to there. */
static off_t lost_from, lost_to;

ssize_t pread(int fd, void *bytes, size_t n, off_t at) {
    if (at < lost_to && at + (off_t)n > lost_from) {
        if (at >= lost_from) {
            errno = EIO;
            return -1;
        }
        n = (size_t)(lost_from - at); /* what can be read comes first */
    }
    if (halves && n > 1)
        n /= 2;
    return fails(PREAD) ? -1 : result(syscall(SYS_pread64, fd, bytes, n, at));
}

int openat(int fd, const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    return fails(OPENAT) ? -1 : (int)syscall(SYS_openat, fd, path, flags, mode);
}

int fdatasync(int fd) {
    return fails(FDATASYNC) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd) {
    return fails(FSYNC) ? -1 : (int)syscall(SYS_fsync, fd);
}

int ftruncate(int fd, off_t size) {
    return fails(FTRUNCATE) ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

int renameat(int from, const char *old, int to, const char *new) {
    return fails(RENAMEAT) ? -1 : (int)syscall(SYS_renameat2, from, old, to, new, 0);
}

int unlinkat(int fd, const char *path, int flags) {
    return fails(UNLINKAT) ? -1 : (int)syscall(SYS_unlinkat, fd, path, flags);
}

static const struct svi_state_dir *hasty; /* its first segment goes between a reader's opening and its lock */

int flock(int fd, int how) {
    const struct svi_state_dir *f = how & LOCK_SH ? hasty : NULL;
    hasty = how & LOCK_SH ? NULL : hasty;
    if (f)
        assert_int_equal(svi_state_dir_clear(f, "journal", (uint64_t[]){0}, 1, NULL), SVS_OK);
    return fails(FLOCK) ? -1 : (int)syscall(SYS_flock, fd, how);
}

int mkdir(const char *path, mode_t mode) {
    return fails(MKDIR) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

ssize_t getrandom(void *bytes, size_t n, unsigned flags) {
    return fails(GETRANDOM) ? -1 : result(syscall(SYS_getrandom, bytes, n, flags));
}

int syncfs(int fd) {
    return fails(SYNCFS) ? -1 : (int)syscall(SYS_syncfs, fd);
}

/* ---- a life */

static struct kept outer, k; /* k: a folder in it that each life makes */
static struct everything all;

struct life {
    svs_code code; /* of the first failure */
    svs_error error;
    uint64_t acked;     /* records that were committed */
    uint64_t durable;   /* of them, known to be on disk */
    int64_t checkpoint; /* number of the last that was written; -1 = none */
};

static bool good(struct life *l, svs_code code, const svs_error *e) {
    if (code != SVS_OK && l->code == SVS_OK) {
        l->code = code;
        l->error = *e;
    }
    return code == SVS_OK;
}

/* A commit that finds no room is repeated; a dead journal ends the life. */
static void append(struct life *l, svi_journal *j, uint64_t end) {
    svs_error e = {0};
    double due;
    for (int tries = 0; svi_journal_position(j).number < end && tries < 60; tries++) {
        uint64_t n = svi_journal_position(j).number;
        for (uint64_t i = n; i < n + 3; i++) {
            uint8_t payload[64];
            record_payload(i, payload, record_size(i));
            if (!good(l, svi_journal_append(j, (int)i, (double)i / 2, payload, record_size(i), &e), &e))
                return;
        }
        if (good(l, svi_journal_commit(j, &e), &e))
            l->acked = svi_journal_position(j).number;
        if (l->code == SVS_IO || !good(l, kept_tick(j, (double)tries, &due, &e), &e))
            return;
        l->durable = svi_journal_durable(j);
    }
}

static void checkpoint(struct life *l, const struct svi_state_dir *f, svi_journal *j) {
    svs_error e = {0};
    struct svi_checkpoint c = {.program = "1", .position = svi_journal_position(j)}, d = {0};
    if (good(l, svi_checkpoint_write(f, &c, NULL, &e), &e)) {
        l->checkpoint = (int64_t)c.position.number;
        if (good(l, svi_checkpoint_read(f, c.position.number, &d, &e), &e))
            assert_int_equal(d.position.number, c.position.number);
    }
    svi_checkpoint_clear(&d);
}

static void read_back(struct life *l, const struct svi_state_dir *f, struct svi_position *end) {
    static const struct svi_position zero;
    struct svi_journal_reader_options o = {0, 1000, false};
    struct svi_journal_found found;
    struct svi_record r;
    svs_error e = {0};
    svi_journal_reader *reader = svi_journal_reader_new(f, &zero, &o, &e);
    if (!reader) {
        good(l, e.code, &e);
        return;
    }
    enum svi_journal_read how;
    uint64_t n = 0;
    while ((how = svi_journal_read(reader, &r, &e)) == SVI_JOURNAL_RECORD)
        assert_int_equal(r.number, n++);
    svi_journal_reader_found(reader, &found);
    *end = found.end;
    if (how == SVI_JOURNAL_FAIL)
        good(l, e.code, &e);
    svi_journal_reader_free(&reader);
}

/* Opens, reads what is there, goes on with it, writes a checkpoint, sets a file aside and leaves. */
static void live(struct life *l, enum svi_fsync fsync) {
    struct svi_state_dir f;
    struct svi_position at = {0};
    struct svi_journal_options o = {"s", KEPT_EPOCH, 300, fsync, 2};
    svs_error e = {0};
    *l = (struct life){.checkpoint = -1};
    if (!good(l, svi_state_dir_open(&f, k.path, true, &e), &e))
        return;
    read_back(l, &f, &at);
    svi_journal *j = l->code == SVS_OK ? svi_journal_new(&f, &o, &at, &e) : NULL;
    if (j) {
        append(l, j, at.number + 15);
        checkpoint(l, &f, j);
        svi_state_dir_set_aside(&f, "checkpoint", 999, NULL);
        append(l, j, at.number + 24);
    } else
        good(l, e.code, &e);
    svi_journal_free(&j);
    svi_state_dir_close(&f);
}

/* What a crash leaves: half a record, and a file that never got its name. */
static void leave_rests(void) {
    char path[160], name[SVI_FILE_NAME];
    uint64_t *numbers;
    int count;
    assert_int_equal(svi_state_dir_list(&k.folder, "journal", &numbers, &count, NULL), SVS_OK);
    snprintf(path, sizeof path, "%s/%s", k.path, svi_state_dir_name(name, "journal", numbers[count - 1]));
    int fd = open(path, O_WRONLY | O_APPEND);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "torn", 4), 4);
    close(fd);
    fd = openat(k.folder.fd, "checkpoint-0000000000000001.tmp", O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
    svi_free(numbers);
}

/* Nothing fails any more: at least what was acknowledged is there, and a next life goes on. */
static void check_after(const struct life *l, enum svi_fsync fsync) {
    struct life next;
    everything_read(&all, &k, NULL, false, NULL);
    if (all.how != SVI_JOURNAL_END)
        fail_msg("%s", all.error.text);
    assert_true((uint64_t)all.count >= l->acked && l->durable <= l->acked);
    for (int i = 0; i < all.count; i++)
        assert_int_equal(all.number[i], i);
    if (l->checkpoint >= 0) {
        struct svi_checkpoint c = {0};
        assert_int_equal(svi_checkpoint_read(&k.folder, (uint64_t)l->checkpoint, &c, NULL), SVS_OK);
        svi_checkpoint_clear(&c);
    }
    uint64_t before = (uint64_t)all.count;
    live(&next, fsync);
    if (next.code != SVS_OK)
        fail_msg("%s", next.error.text);
    assert_int_equal(next.acked, before + 24);
}

static void begin_place(void) {
    kept_open(&outer);
    size_t n = strlen(outer.path);
    memcpy(k.path, outer.path, n);
    memcpy(k.path + n, "/sub", 5);
}

static void remove_place(void) {
    kept_empty(&k);
    svi_state_dir_close(&k.folder);
    unlinkat(outer.folder.fd, "sub/lock", 0);
    unlinkat(outer.folder.fd, "sub", AT_REMOVEDIR);
}

/* The n-th call of a life fails, its first or its second one, which begins with a torn tail. Returns whether
 * there was such a call. */
static bool one(enum call call, long n, bool second) {
    struct life l, before = {0};
    enum svi_fsync fsync = n % 2 ? SVI_FSYNC_ALWAYS : SVI_FSYNC_INTERVAL;
    if (second) {
        live(&before, fsync);
        assert_int_equal(svi_state_dir_open(&k.folder, k.path, false, NULL), SVS_OK);
        leave_rests();
        svi_state_dir_close(&k.folder);
    }
    failing = call;
    failed = false;
    left = n;
    live(&l, fsync);
    left = -1;
    bool there = failed;
    if (l.code != SVS_OK)
        assert_true(there && l.error.text[0]);
    if (there && call == FDATASYNC && reason != EINTR)
        assert_int_equal(l.code, SVS_IO); /* never full, never overlooked */
    if (reason == EINTR && !forever && ((call >= WRITE && call <= FTRUNCATE) || call == GETRANDOM))
        assert_int_equal(l.code, SVS_OK);
    if (l.acked < before.acked)
        l.acked = before.acked;
    if (svi_state_dir_open(&k.folder, k.path, false, NULL) == SVS_OK) {
        check_after(&l, fsync);
        remove_place();
    } else
        assert_int_equal(l.code, SVS_IO);
    return there;
}

/* How often each call fails in a life: each is made, or the test would show nothing. */
static void test_each_call(void **state) {
    static const int reasons[] = {EIO, ENOSPC, EINTR};
    int step = getenv("SVMSTREAM_QUICK") ? 3 : 1;
    (void)state;
    begin_place();
    for (int call = 0; call < SYNCFS; call++)
        for (int variant = 0; variant < 12; variant++) {
            long n = 0;
            reason = reasons[variant / 4];
            forever = variant & 1;
            while (one((enum call)call, n, variant & 2))
                n += step;
            if (variant & 2)
                assert_true(n > 0);
        }
    kept_remove(&outer);
}

/* ---- the order of things */

static void assert_trace(const char *expected) {
    trace[traced] = '\0';
    assert_string_equal(trace, expected);
    traced = 0;
}

/* A record is appended and committed. */
static void trace_commit(svi_journal *j) {
    kept_append(j, svi_journal_position(j).number, 100);
    traced = 0;
    assert_int_equal(svi_journal_commit(j, NULL), SVS_OK);
}

/* D fdatasync, F fsync, T truncate, R rename: what must be on disk before what. */
static void test_order(void **state) {
    (void)state;
    kept_open(&k);
    svi_journal *j = kept_journal(&k, 200, SVI_FSYNC_ALWAYS, NULL);
    trace_commit(j);
    assert_trace("wD");
    trace_commit(j); /* a new segment is there, with its name, before its first record */
    assert_trace("owDFRFwD");
    struct svi_position at = svi_journal_position(j);
    svi_journal_free(&j);
    at.offset -= 1;
    traced = 0;
    j = kept_journal(&k, 200, SVI_FSYNC_NEVER, &at); /* names first, then the tail */
    assert_trace("gooFoTD");
    svi_journal_free(&j);
    at = (struct svi_position){0};
    j = kept_journal(&k, 200, SVI_FSYNC_NEVER, &at);
    assert_trace("goUFoUUFowDFoF"); /* all that is in the way, the mark first, then from the newest on */
    trace_commit(j);
    assert_trace("w");
    trace_commit(j); /* the old segment is whole before a new one is there */
    assert_trace("DowDFRFw");
    svi_journal_free(&j);
    struct svi_checkpoint c = {.program = "1"};
    traced = 0;
    assert_int_equal(svi_checkpoint_write(&k.folder, &c, NULL, NULL), SVS_OK);
    assert_trace("owwFRF");
    kept_remove(&k);
}

/* The folder's name is on disk before anything in the folder is, whoever made it: a process that was killed
 * behind its mkdir has synced nothing. A parent that may not be read costs a sync of all; what cannot be
 * synced is no reason to refuse. */
static void test_parent(void **state) {
    static const struct {
        enum call call;
        int reason;
        const char *trace;
        svs_code code;
    } rows[] = {{CALLS, 0, "moFlolTwo", SVS_OK},       {CALLS, 0, "moFlolTwo", SVS_OK},
                {OPENAT, EACCES, "moSlolTwo", SVS_OK}, {FSYNC, EINVAL, "moFlolTwo", SVS_OK},
                {FSYNC, EROFS, "moFlolTwo", SVS_OK},   {FSYNC, EIO, "moF", SVS_IO},
                {OPENAT, EMFILE, "mo", SVS_IO}};
    svs_error e;
    (void)state;
    begin_place();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        failing = rows[i].call;
        reason = rows[i].reason;
        forever = false;
        left = traced = 0;
        assert_int_equal(svi_state_dir_open(&k.folder, k.path, true, &e), rows[i].code);
        left = -1;
        assert_trace(rows[i].trace);
        svi_state_dir_close(&k.folder);
    }
    assert_non_null(strstr(e.text, k.path));
    assert_int_equal(svi_state_dir_open(&k.folder, k.path, false, &e), SVS_OK);
    assert_trace(""); /* who only looks changes nothing */
    remove_place();
    kept_remove(&outer);
}

/* Another process removes what is being read: it stays whole for the reader, and what had gone already when
 * it was locked does not pass for a journal that ends early. */
static void test_removed_while_read(void **state) {
    static const struct svi_position zero;
    const struct svi_journal_reader_options o = {0, 1000000, false};
    struct svi_record r;
    svs_error e;
    (void)state;
    for (int how = 0; how < 2; how++) {
        kept_open(&k);
        svi_journal *j = kept_journal(&k, 1 << 20, SVI_FSYNC_NEVER, NULL);
        for (uint64_t n = 0; n < 5; n++)
            kept_append(j, n, 100000);
        assert_int_equal(svi_journal_commit(j, NULL), SVS_OK);
        svi_journal_free(&j);
        hasty = how ? &k.folder : NULL;
        svi_journal_reader *reader = svi_journal_reader_new(&k.folder, &zero, &o, &e);
        assert_true(how ? !reader && e.code == SVS_IO : !!reader);
        if (reader) {
            uint64_t n = 0;
            assert_int_equal(svi_state_dir_clear(&k.folder, "journal", (uint64_t[]){0}, 1, NULL), SVS_OK);
            while (svi_journal_read(reader, &r, &e) == SVI_JOURNAL_RECORD)
                assert_int_equal(r.number, n++);
            assert_int_equal(n, 5);
        }
        assert_int_equal(kept_count(&k, "journal"), 0);
        svi_journal_reader_free(&reader);
        kept_remove(&k);
    }
}

/* Sectors in the middle of a journal that the disk cannot read: damage like any other, with the place and
 * what to do, and --accept-loss passes over no more than what is in them. */
static void test_lost_sectors(void **state) {
    static const off_t lost[][2] = {{8192, 12288}, {4096, 4097}, {0, 4096}, {0, 1 << 20}, {20480, 1 << 20}};
    struct svi_position zero = {0};
    (void)state;
    kept_open(&k);
    svi_journal *j = kept_journal(&k, 1 << 20, SVI_FSYNC_ALWAYS, NULL);
    kept_append_to(j, 400, 1);
    assert_true(svi_journal_position(j).offset > 20480);
    svi_journal_free(&j);
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        lost_from = lost[i][0];
        lost_to = lost[i][1];
        everything_read(&all, &k, &zero, false, NULL);
        assert_int_equal(all.how, SVI_JOURNAL_FAIL);
        assert_int_equal(all.error.code, SVS_DAMAGED);
        assert_non_null(strstr(all.error.text, "--accept-loss"));
        assert_non_null(strstr(all.error.text, "/journal-0"));
        const int before = all.count;
        everything_read(&all, &k, &zero, true, NULL);
        assert_int_equal(all.how, SVI_JOURNAL_END);
        assert_true(all.found.damages > 0 && all.count >= before);
        const off_t hidden = lost_to > 1 << 15 ? 0 : (lost_to - lost_from + 4095) / 4096 * 4096;
        if (hidden && lost_from) { /* a record has 43 bytes at least */
            assert_true(all.found.lost_records > 0 && all.found.lost_records <= (uint64_t)hidden / 43 + 2);
            assert_int_equal(all.count + (int)all.found.lost_records, 400);
        }
        lost_from = lost_to = 0;
    }
    kept_remove(&k);
}

/* Half of what was asked for, each time. */
static void test_halves(void **state) {
    struct life l;
    (void)state;
    begin_place();
    halves = true;
    live(&l, SVI_FSYNC_ALWAYS);
    assert_int_equal(l.acked, 24);
    live(&l, SVI_FSYNC_ALWAYS);
    assert_int_equal(l.acked, 48);
    halves = false;
    assert_int_equal(svi_state_dir_open(&k.folder, k.path, false, NULL), SVS_OK);
    everything_read(&all, &k, NULL, false, NULL);
    assert_int_equal(all.count, 48);
    remove_place();
    kept_remove(&outer);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_parent),
                                       cmocka_unit_test(test_removed_while_read),
                                       cmocka_unit_test(test_lost_sectors),
                                       cmocka_unit_test(test_halves),
                                       cmocka_unit_test(test_each_call)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
