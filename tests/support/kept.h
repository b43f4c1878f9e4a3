/* kept.h: a folder of a test's own with a journal of known records in it, whole files in and out, and all of
 * a journal read at once. */
#ifndef TEST_SUPPORT_KEPT_H
#define TEST_SUPPORT_KEPT_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/checkpoint_file.h"
#include "store/journal.h"

#define KEPT_MAX   4096 /* records read at once */
#define KEPT_EPOCH 0xfedcba9876543210u

struct kept {
    char path[64];
    struct svi_state_dir folder;
};

__attribute__((unused)) static void kept_open(struct kept *k) {
    svs_error e = {0};
    /* Where syncs cost nothing, if there is such a place. */
    const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(k->path, sizeof k->path, "%s/svmstream-kept-XXXXXX", where);
    assert_non_null(mkdtemp(k->path));
    if (svi_state_dir_open(&k->folder, k->path, true, &e) != SVS_OK)
        fail_msg("%s", e.text);
}

/* Removes every file. */
__attribute__((unused)) static void kept_empty(const struct kept *k) {
    DIR *d = opendir(k->path);
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d));)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "lock") != 0)
            unlinkat(dirfd(d), entry->d_name, 0);
    closedir(d);
}

__attribute__((unused)) static void kept_remove(struct kept *k) {
    svi_state_dir_close(&k->folder);
    kept_empty(k);
    char lock[80];
    snprintf(lock, sizeof lock, "%s/lock", k->path);
    unlink(lock);
    assert_int_equal(rmdir(k->path), 0);
}

__attribute__((unused)) static int kept_count(const struct kept *k, const char *prefix) {
    uint64_t *numbers;
    int count;
    assert_int_equal(svi_state_dir_list(&k->folder, prefix, &numbers, &count, NULL), SVS_OK);
    svi_free(numbers);
    return count;
}

/* ---- whole files */

struct content {
    char path[128];
    uint8_t *bytes;
    size_t size;
};

__attribute__((unused)) static void content_read(struct content *c, const struct kept *k, const char *prefix,
                                                 uint64_t number) {
    char name[SVI_FILE_NAME];
    struct stat s;
    snprintf(c->path, sizeof c->path, "%s/%s", k->path, svi_state_dir_name(name, prefix, number));
    int fd = open(c->path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &s) == 0);
    c->size = (size_t)s.st_size;
    c->bytes = malloc(c->size + 1);
    assert_int_equal(read(fd, c->bytes, c->size), s.st_size);
    close(fd);
}

__attribute__((unused)) static void content_write(const struct content *c, size_t size) {
    int fd = open(c->path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, c->bytes, size), (ssize_t)size);
    close(fd);
}

/* ---- known records */

__attribute__((unused)) static size_t record_size(uint64_t number) {
    return number % 7 == 3 ? 0 : number * 37 % 61;
}

__attribute__((unused)) static void record_payload(uint64_t number, uint8_t *out, size_t size) {
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(number * 31 + i * 7);
}

__attribute__((unused)) static void kept_append(svi_journal *j, uint64_t number, size_t size) {
    svs_error e = {0};
    uint8_t *payload = malloc(size + 1);
    record_payload(number, payload, size);
    if (svi_journal_append(j, (int)(number % 128), (double)number / 2, payload, size, &e) != SVS_OK)
        fail_msg("%s", e.text);
    free(payload);
}

/* Records up to `end`, `batch` in a commit. */
__attribute__((unused)) static void kept_append_to(svi_journal *j, uint64_t end, int batch) {
    svs_error e = {0};
    for (uint64_t n = svi_journal_position(j).number; n < end; n++) {
        kept_append(j, n, record_size(n));
        if ((n + 1) % (uint64_t)batch == 0 || n + 1 == end)
            if (svi_journal_commit(j, &e) != SVS_OK)
                fail_msg("%s", e.text);
    }
}

__attribute__((unused)) static svi_journal *
kept_journal(const struct kept *k, int64_t segment, enum svi_fsync fsync, const struct svi_position *at) {
    static const struct svi_position zero;
    struct svi_journal_options o = {"s", KEPT_EPOCH, segment, fsync, 0.2};
    svs_error e = {0};
    svi_journal *j = svi_journal_new(&k->folder, &o, at ? at : &zero, &e);
    if (!j)
        fail_msg("%s", e.text);
    return j;
}

/* As the policy interval wants it: syncs what is due. */
__attribute__((unused)) static svs_code kept_tick(svi_journal *j, double time, double *due, svs_error *err) {
    return svi_journal_due(j, time, due) ? svi_journal_sync(j, err) : SVS_OK;
}

__attribute__((unused)) static svs_code kept_trim(const struct kept *k, const svi_journal *j,
                                                  uint64_t number) {
    return svi_journal_trim(&k->folder, number, svi_journal_position(j).segment, NULL);
}

/* ---- reading */

struct everything {
    enum svi_journal_read how; /* END or FAIL */
    svs_error error;
    struct svi_journal_found found;
    int count;
    uint64_t number[KEPT_MAX], durable[KEPT_MAX];
    bool lost[KEPT_MAX]; /* something was passed over before this one */
};

/* Each record must be as it was written. */
__attribute__((unused)) static void everything_read(struct everything *a, const struct kept *k,
                                                    const struct svi_position *from, bool accept_loss,
                                                    size_t (*size_of)(uint64_t number)) {
    static const struct svi_position zero;
    static uint8_t expected[1 << 20];
    struct svi_journal_reader_options o = {0, sizeof expected, accept_loss};
    struct svi_record r;
    memset(a, 0, sizeof *a);
    a->how = SVI_JOURNAL_FAIL;
    svi_journal_reader *reader = svi_journal_reader_new(&k->folder, from ? from : &zero, &o, &a->error);
    if (!reader)
        return;
    while ((a->how = svi_journal_read(reader, &r, &a->error)) == SVI_JOURNAL_RECORD) {
        assert_true(a->count < KEPT_MAX);
        assert_int_equal(r.kind, r.number % 128);
        assert_true(r.now == (double)r.number / 2);
        assert_int_equal(r.size, (size_of ? size_of : record_size)(r.number));
        record_payload(r.number, expected, r.size);
        assert_memory_equal(r.payload, expected, r.size);
        svi_journal_reader_found(reader, &a->found);
        a->lost[a->count] = a->found.lost;
        a->number[a->count] = r.number;
        a->durable[a->count++] = r.durable;
    }
    svi_journal_reader_found(reader, &a->found);
    assert_int_equal(a->found.records, a->count);
    if (a->how == SVI_JOURNAL_FAIL) {
        svs_error again = {0};
        assert_int_equal(svi_journal_read(reader, &r, &again), SVI_JOURNAL_FAIL);
        assert_string_equal(again.text, a->error.text);
    } else
        assert_int_equal(svi_journal_read(reader, &r, NULL), SVI_JOURNAL_END);
    svi_journal_reader_free(&reader);
}

/* The records 0 to n - 1 and no other. */
__attribute__((unused)) static void assert_prefix(const struct everything *a, uint64_t n) {
    assert_int_equal(a->count, n);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(a->number[i], i);
}

__attribute__((unused)) static void assert_position(struct svi_position a, struct svi_position b) {
    assert_int_equal(a.number, b.number);
    assert_int_equal(a.segment, b.segment);
    assert_int_equal(a.offset, b.offset);
    assert_int_equal(a.chain, b.chain);
    assert_int_equal(a.secret, b.secret);
}

#endif
