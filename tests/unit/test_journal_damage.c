/* A crash tears the tail, and it is cut off; anything else that is not as it was written is refused, or
 * passed over on demand with every other record: nothing false is ever read. Each byte of a small journal is
 * cut away and flipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "support/kept.h"
#include "store/journal_internal.h"

#define SEGMENTS 3

static struct kept k;
static struct everything all;

/* A journal of three segments; of the last one the first records are known to be durable, as the fourth last
 * record says. */
static struct small {
    struct content file[SEGMENTS];
    uint64_t first[SEGMENTS + 1]; /* of each segment; the end */
    size_t begin[64];             /* of each record in its segment */
    uint64_t durable[64];
    uint64_t end;
    struct svi_position at[65];
} small;

static uint64_t secret_of(const struct content *segment) {
    struct svi_segment_header h;
    (void)svi_segment_header_read(&h, segment->bytes, segment->size);
    return h.secret;
}

static void commit(svi_journal *j, int records) {
    for (int i = 0; i < records; i++) {
        struct svi_position at = svi_journal_position(j);
        kept_append(j, at.number, record_size(at.number));
        struct svi_position behind = svi_journal_position(j);
        small.at[at.number] = at;
        small.at[behind.number] = behind;
        small.begin[at.number] = behind.offset - 43 - record_size(at.number);
        small.durable[at.number] = svi_journal_durable(j);
    }
    assert_int_equal(svi_journal_commit(j, NULL), SVS_OK);
}

static int setup(void **state) {
    uint64_t *numbers;
    int count;
    (void)state;
    kept_open(&k);
    svi_journal *j = kept_journal(&k, 700, SVI_FSYNC_INTERVAL, NULL);
    while (kept_count(&k, "journal") < SEGMENTS)
        commit(j, 2);
    commit(j, 2);
    assert_int_equal(svi_journal_sync(j, NULL), SVS_OK);
    commit(j, 4);
    small.end = svi_journal_position(j).number;
    svi_journal_free(&j);
    assert_int_equal(svi_state_dir_list(&k.folder, "journal", &numbers, &count, NULL), SVS_OK);
    assert_int_equal(count, SEGMENTS);
    for (int s = 0; s < SEGMENTS; s++) {
        small.first[s] = numbers[s];
        content_read(&small.file[s], &k, "journal", numbers[s]);
    }
    small.first[SEGMENTS] = small.end;
    svi_free(numbers);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (int s = 0; s < SEGMENTS; s++)
        free(small.file[s].bytes);
    kept_remove(&k);
    return 0;
}

static void assert_refused(void) {
    assert_int_equal(all.how, SVI_JOURNAL_FAIL);
    assert_int_equal(all.error.code, SVS_DAMAGED);
    assert_non_null(strstr(all.error.text, k.path));
    assert_non_null(strstr(all.error.text, "/journal-0"));
    assert_non_null(strstr(all.error.text, "--accept-loss"));
}

/* Appending goes on behind what was read, and all of it is there. */
static void assert_goes_on(uint64_t count) {
    uint64_t end = all.found.end.number;
    svi_journal *j = kept_journal(&k, 350, SVI_FSYNC_ALWAYS, &all.found.end);
    kept_append_to(j, end + 12, 3);
    svi_journal_free(&j);
    everything_read(&all, &k, NULL, false, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_END);
    assert_prefix(&all, count + 12);
}

/* The record of a segment to which a byte belongs; -1 = the header. */
static int64_t record_at(int s, size_t offset) {
    int64_t found = -1;
    for (uint64_t n = small.first[s]; n < small.first[s + 1]; n++)
        if (small.begin[n] <= offset)
            found = (int64_t)n;
    return found;
}

/* In bytes. */
static size_t step(void) {
    return getenv("SVMSTREAM_QUICK") ? 5 : 1;
}

static void test_torn_anywhere(void **state) {
    struct content *last = &small.file[SEGMENTS - 1];
    (void)state;
    for (size_t size = 0; size < last->size; size += step()) {
        uint64_t whole = small.first[SEGMENTS - 1];
        while (whole < small.end && small.at[whole + 1].offset <= size)
            whole++;
        content_write(last, size);
        everything_read(&all, &k, NULL, false, NULL);
        if (all.how != SVI_JOURNAL_END)
            fail_msg("%zu bytes: %s", size, all.error.text);
        assert_prefix(&all, whole);
        assert_int_equal(all.found.end.number, whole);
        bool header = all.found.end.segment == small.first[SEGMENTS - 1];
        assert_int_equal(all.found.torn, header ? size - all.found.end.offset : size);
        assert_goes_on(whole);
        assert_int_equal(svi_state_dir_remove(&k.folder, "journal", all.found.end.segment, NULL), SVS_OK);
        kept_empty(&k);
        for (int s = 0; s < SEGMENTS; s++)
            content_write(&small.file[s], small.file[s].size);
    }
}

static void test_cut_in_the_middle(void **state) {
    (void)state;
    for (int s = 0; s < SEGMENTS - 1; s++) {
        for (size_t size = 0; size < small.file[s].size; size += step()) {
            content_write(&small.file[s], size);
            everything_read(&all, &k, NULL, false, NULL);
            assert_refused();
            int whole = all.count;
            assert_prefix(&all, (uint64_t)whole);
            everything_read(&all, &k, NULL, true, NULL);
            assert_int_equal(all.how, SVI_JOURNAL_END);
            assert_int_equal(all.count + (int)all.found.lost_records, small.end);
            assert_int_equal(all.number[whole], small.first[s + 1]);
            assert_true(all.lost[whole]);
        }
        content_write(&small.file[s], small.file[s].size);
    }
}

/* A record behind it says that it was durable. */
static bool is_proved(uint64_t number) {
    for (uint64_t n = number + 1; n < small.end; n++)
        if (small.durable[n] > number)
            return true;
    return false;
}

/* Without it: all that is before. With --accept-loss: all others. */
static void check_damage(int s, int64_t bad) {
    bool tail = s == SEGMENTS - 1 && bad >= 0 && !is_proved((uint64_t)bad);
    everything_read(&all, &k, NULL, false, NULL);
    assert_prefix(&all, bad < 0 ? small.first[s] : (uint64_t)bad);
    if (tail) {
        assert_int_equal(all.how, SVI_JOURNAL_END);
        assert_position(all.found.end, small.at[bad]);
        assert_int_equal(all.found.torn, small.file[s].size - small.at[bad].offset);
        return;
    }
    assert_refused();
    everything_read(&all, &k, NULL, true, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_END);
    assert_int_equal(all.count, small.end - (bad >= 0));
    assert_int_equal(all.found.lost_records, bad >= 0);
    assert_true(all.found.lost_bytes > 0);
    for (int i = 0; i < all.count; i++) {
        assert_int_equal(all.number[i], i + (bad >= 0 && i >= bad));
        assert_int_equal(all.lost[i], i == (bad >= 0 ? bad : (int64_t)small.first[s]));
    }
}

static void test_flipped_anywhere(void **state) {
    static const uint8_t flips[] = {0x01, 0x80, 0xff};
    (void)state;
    for (int s = 0; s < SEGMENTS; s++) {
        struct content *c = &small.file[s];
        for (size_t i = 0; i < c->size * 3; i += step()) {
            c->bytes[i / 3] ^= flips[i % 3];
            content_write(c, c->size);
            check_damage(s, record_at(s, i / 3));
            c->bytes[i / 3] ^= flips[i % 3];
        }
        content_write(c, c->size);
    }
}

/* The last header's check flipped, one record behind it: the record tells that the header was whole. */
static void test_header_before_one_record(void **state) {
    struct content *c = &small.file[SEGMENTS - 1];
    (void)state;
    uint64_t first = small.first[SEGMENTS - 1];
    c->bytes[small.begin[first] - 1] ^= 1;
    content_write(c, small.begin[first + 1]);
    everything_read(&all, &k, NULL, false, NULL);
    assert_refused();
    everything_read(&all, &k, NULL, true, NULL);
    assert_int_equal(all.count, first + 1);
}

static void test_missing_segments(void **state) {
    (void)state;
    for (int s = 0; s < SEGMENTS; s++) {
        unlink(small.file[s].path);
        everything_read(&all, &k, NULL, false, NULL);
        assert_prefix(&all, small.first[s]);
        assert_refused();
        everything_read(&all, &k, NULL, true, NULL);
        assert_int_equal(all.how, SVI_JOURNAL_END);
        assert_int_equal(all.count, small.end - (small.first[s + 1] - small.first[s]));
        content_write(&small.file[s], small.file[s].size);
    }
}

static void mark_name(char path[128], uint64_t segment) {
    char name[SVI_FILE_NAME];
    snprintf(path, 128, "%s/%s", k.path, svi_state_dir_name(name, "begun", segment));
}

/* The newest one, or all of them: known by the mark alone, which is of no use to a directory that never had
 * one. */
static void test_the_newest_is_missing(void **state) {
    char mark[128], other[128];
    (void)state;
    mark_name(mark, small.first[SEGMENTS - 1]);
    mark_name(other, small.first[SEGMENTS - 2]);
    for (int s = SEGMENTS - 1; s >= 0; s--) {
        unlink(small.file[s].path);
        everything_read(&all, &k, NULL, false, NULL);
        assert_prefix(&all, small.first[s]);
        assert_refused();
        everything_read(&all, &k, NULL, true, NULL);
        assert_int_equal(all.how, SVI_JOURNAL_END);
        assert_prefix(&all, small.first[s]);
        assert_true(all.found.lost && all.found.damages == 1);
        assert_int_equal(rename(mark, other), 0); /* the newer one had just begun */
        if (s == SEGMENTS - 1) {
            everything_read(&all, &k, NULL, false, NULL);
            assert_int_equal(all.how, SVI_JOURNAL_END);
        }
        assert_int_equal(unlink(other), 0);
        everything_read(&all, &k, NULL, false, NULL);
        assert_int_equal(all.how, SVI_JOURNAL_END);
        assert_prefix(&all, small.first[s]);
        fclose(fopen(mark, "w"));
    }
    for (int s = 0; s < SEGMENTS; s++)
        content_write(&small.file[s], small.file[s].size);
}

/* Once it was accepted that it is gone the journal goes on where it ends, and needs no flag again; a torn end
 * of the segment before is no crash's. */
static void test_goes_on_without_the_newest(void **state) {
    char mark[128];
    (void)state;
    struct content *before = &small.file[SEGMENTS - 2];
    unlink(small.file[SEGMENTS - 1].path);
    content_write(before, before->size - 1);
    everything_read(&all, &k, NULL, false, NULL);
    assert_refused();
    assert_non_null(strstr(all.error.text, "is damaged at byte"));
    content_write(before, before->size);
    everything_read(&all, &k, NULL, true, NULL);
    const uint64_t end = all.found.end.number;
    assert_int_equal(end, small.first[SEGMENTS - 1]);
    svi_journal *j = kept_journal(&k, 1 << 20, SVI_FSYNC_ALWAYS, &all.found.end);
    mark_name(mark, small.first[SEGMENTS - 1]);
    assert_int_not_equal(access(mark, F_OK), 0);
    mark_name(mark, small.first[SEGMENTS - 2]);
    assert_int_equal(access(mark, F_OK), 0);
    svi_journal_free(&j);
    everything_read(&all, &k, NULL, false, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_END);
    assert_prefix(&all, end);
    assert_goes_on(end);
    kept_empty(&k);
    for (int s = 0; s < SEGMENTS; s++)
        content_write(&small.file[s], small.file[s].size);
    mark_name(mark, small.first[SEGMENTS - 1]);
    fclose(fopen(mark, "w"));
}

/* Places that a checkpoint knows of: the segment gone, or shorter. */
static void test_places_that_are_gone(void **state) {
    uint64_t first = small.first[SEGMENTS - 1];
    struct svi_position at = small.at[first + 2], fresh = {at.number, at.number, 0, at.chain, 0};
    struct content *last = &small.file[SEGMENTS - 1];
    (void)state;
    content_write(last, at.offset - 1); /* an older copy: what follows the checkpoint may be lost */
    everything_read(&all, &k, &at, false, NULL);
    assert_refused();
    everything_read(&all, &k, &at, true, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_END);
    assert_true(all.found.lost && all.found.damages == 1);
    assert_position(all.found.end, fresh);
    svi_journal *j = kept_journal(&k, 350, SVI_FSYNC_ALWAYS, &fresh);
    kept_append_to(j, at.number + 3, 1);
    svi_journal_free(&j);
    everything_read(&all, &k, &at, false, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_END);
    assert_int_equal(all.count, 3);

    unlink(last->path);
    unlink(small.file[SEGMENTS - 2].path);
    svi_state_dir_remove(&k.folder, "journal", at.number, NULL);
    everything_read(&all, &k, &at, false, NULL);
    assert_refused();
    everything_read(&all, &k, &at, true, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_END);
    assert_position(all.found.end, fresh);
    assert_true(all.found.lost);

    unlink(small.file[0].path);
    everything_read(&all, &k, &at, false, NULL);
    assert_refused();
    everything_read(&all, &k, NULL, false, NULL);
    assert_refused();
    kept_empty(&k); /* the mark too */
    everything_read(&all, &k, NULL, false, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_END);
}

/* A place in a segment that ends before it, and there is a later one that begins elsewhere. */
static void test_short_before_another(void **state) {
    uint64_t first = small.first[1];
    struct svi_position at = small.at[first + 2];
    (void)state;
    content_write(&small.file[1], at.offset - 1);
    everything_read(&all, &k, &at, false, NULL);
    assert_refused();
    everything_read(&all, &k, &at, true, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_END);
    assert_int_equal(all.number[0], small.first[2]);
    assert_int_equal(all.found.lost_records, small.first[2] - at.number);
    everything_read(&all, &k, &small.at[small.first[2]], false, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_END);
    assert_int_equal(all.number[0], small.first[2]);
}

/* A damaged header before the place does no harm any more. */
static void test_header_before_the_place(void **state) {
    struct content *last = &small.file[SEGMENTS - 1];
    uint64_t first = small.first[SEGMENTS - 1];
    (void)state;
    last->bytes[20] ^= 1;
    content_write(last, last->size);
    everything_read(&all, &k, &small.at[first + 1], false, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_END);
    assert_int_equal(all.count, small.end - first - 1);
}

/* ---- headers that are sound but do not belong here */

static void put_segment(uint64_t name, struct svi_segment_header h) {
    struct svi_bytes b = {0};
    struct content c;
    char text[SVI_FILE_NAME];
    assert_int_equal(svi_segment_header_write(&h, &b), SVS_OK);
    snprintf(c.path, sizeof c.path, "%s/%s", k.path, svi_state_dir_name(text, "journal", name));
    c.bytes = b.data;
    content_write(&c, b.size);
    svi_bytes_clear(&b);
}

static void test_foreign_headers(void **state) {
    uint64_t end = small.end, chain = small.at[end].chain;
    const struct {
        uint64_t name;
        struct svi_segment_header h;
        const char *text;
    } rows[] = {{end, {.epoch = 7, .first = end, .chain = chain}, "epoch"},
                {end, {.epoch = KEPT_EPOCH, .first = 3, .chain = chain}, "segment 3"},
                {end, {.epoch = KEPT_EPOCH, .first = end, .chain = 1}, "does not continue"},
                {end + 5, {.epoch = KEPT_EPOCH, .first = end + 5, .chain = chain}, "missing"},
                {end - 1, {.epoch = KEPT_EPOCH, .first = end - 1, .chain = chain}, "begins before"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_segment(rows[i].name, rows[i].h);
        everything_read(&all, &k, NULL, false, NULL);
        assert_refused();
        if (!strstr(all.error.text, rows[i].text))
            fail_msg("%s", all.error.text);
        assert_prefix(&all, end);
        everything_read(&all, &k, NULL, true, NULL);
        assert_int_equal(all.how, SVI_JOURNAL_END);
        assert_prefix(&all, end);
        assert_true(all.found.lost);
        svi_state_dir_remove(&k.folder, "journal", rows[i].name, NULL);
    }
    struct svi_position at = small.at[end];
    struct svi_journal_reader_options o = {8, 1000, false};
    svs_error e;
    assert_null(svi_journal_reader_new(&k.folder, &at, &o, &e));
    assert_int_equal(e.code, SVS_DAMAGED);
    o.accept_loss = true;
    svi_journal_reader *r = svi_journal_reader_new(&k.folder, &at, &o, &e);
    assert_non_null(r);
    svi_journal_reader_free(&r);
}

/* A record that is sound but larger than what is taken now must not be cut off as if it were torn. */
static void test_too_large(void **state) {
    struct svi_journal_reader_options o = {0, 40, false};
    struct svi_position zero = {0};
    struct svi_record record;
    svs_error e;
    (void)state;
    svi_journal_reader *r = svi_journal_reader_new(&k.folder, &zero, &o, &e);
    assert_non_null(r);
    enum svi_journal_read how;
    while ((how = svi_journal_read(r, &record, &e)) == SVI_JOURNAL_RECORD)
        assert_true(record.size <= 40);
    assert_int_equal(how, SVI_JOURNAL_FAIL);
    assert_int_equal(e.code, SVS_TOO_LARGE);
    assert_non_null(strstr(e.text, "raise it again"));
    svi_journal_reader_free(&r);
    everything_read(&all, &k, NULL, false, NULL);
    assert_prefix(&all, small.end);
}

/* Bytes that all look like records: the search ends in time, and the file is refused. */
static void test_hostile(void **state) {
    enum { SIZE = 1 << 20, STEP = 44 };
    uint8_t record[43];
    uint64_t chain = 1;
    struct svi_record r = {0};
    (void)state;
    struct content *last = &small.file[SEGMENTS - 1];
    free(last->bytes);
    last->bytes = calloc(SIZE, 1);
    for (size_t i = 8; i + STEP < SIZE; i += STEP) {
        r.number = small.first[SEGMENTS - 1] + 1;
        svi_record_write(record, &r, secret_of(last), &chain);
        memcpy(last->bytes + i, record, sizeof record);
        last->bytes[i + 30] = 0;
        last->bytes[i + 31] = 0xf; /* a payload of a megabyte */
    }
    content_write(last, SIZE);
    everything_read(&all, &k, NULL, false, NULL);
    assert_refused();
    everything_read(&all, &k, NULL, true, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_END);
    assert_prefix(&all, small.first[SEGMENTS - 1]);
    last->size = SIZE;
}

/* What the disk held before may turn up behind a torn tail: records that are sound in themselves but cannot
 * stand there say nothing. */
static void test_stale_records(void **state) {
    struct content *last = &small.file[SEGMENTS - 1];
    uint64_t n = small.end, chain;
    size_t size = last->size + 300, at = last->size + 100;
    (void)state;
    const struct {
        uint64_t number, durable;
        bool damage;
    } rows[] = {{n + 1, n + 1, true},    {n + 1, n, false},    {n - 1, n - 1, false},
                {n + 50, n + 50, false}, {n + 3, n + 3, true}, {n + 4, n + 4, false}};
    last->bytes = realloc(last->bytes, size + 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct svi_record r = {.number = rows[i].number, .durable = rows[i].durable};
        memset(last->bytes + last->size, 0, 300);
        chain = 0;
        svi_record_write(last->bytes + at, &r, secret_of(last), &chain);
        content_write(last, size);
        everything_read(&all, &k, NULL, false, NULL);
        assert_prefix(&all, n);
        if (rows[i].damage)
            assert_refused();
        else
            assert_int_equal(all.how, SVI_JOURNAL_END);
    }
}

/* A payload with a whole record in it, in a record that is damaged: the one behind it tells that only this
 * one is, and what it holds is not believed, even if its maker knew the secret. */
static void test_made_up_record(void **state) {
    static const enum svi_fsync policies[] = {SVI_FSYNC_NEVER, SVI_FSYNC_ALWAYS};
    uint8_t payload[8 + 43 + 5] = {1, 2, 3};
    uint64_t chain;
    const struct svi_record forged = {.number = 4, .kind = 100, .durable = 4};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct content c;
        kept_empty(&k);
        svi_journal *j = kept_journal(&k, 4096, policies[i], NULL);
        kept_append_to(j, 3, 1);
        const size_t at = svi_journal_position(j).offset;
        chain = svi_load64(payload);
        svi_record_write(payload + 8, &forged, svi_journal_position(j).secret, &chain);
        assert_int_equal(svi_journal_append(j, 1, 0, payload, sizeof payload, NULL), SVS_OK);
        assert_int_equal(svi_journal_commit(j, NULL), SVS_OK);
        kept_append_to(j, 6, 1);
        svi_journal_free(&j);
        content_read(&c, &k, "journal", 0);
        c.bytes[at + 34 + sizeof payload - 1] ^= 1;
        content_write(&c, c.size);
        free(c.bytes);
        everything_read(&all, &k, NULL, false, NULL);
        assert_prefix(&all, 3);
        if (policies[i] == SVI_FSYNC_NEVER) { /* nobody was told that any of it is durable */
            assert_int_equal(all.how, SVI_JOURNAL_END);
            continue;
        }
        assert_refused();
        everything_read(&all, &k, NULL, true, NULL);
        assert_int_equal(all.how, SVI_JOURNAL_END);
        assert_int_equal(all.count, 5);
        assert_int_equal(all.number[3], 4);
        assert_int_equal(all.found.lost_records, 1);
        assert_int_equal(all.found.end.number, 6);
    }
}

static void test_not_a_file(void **state) {
    struct content *last = &small.file[SEGMENTS - 1];
    (void)state;
    unlink(last->path);
    assert_int_equal(mkdir(last->path, 0700), 0);
    everything_read(&all, &k, NULL, false, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_FAIL);
    assert_int_equal(all.error.code, SVS_IO);
    assert_int_equal(svi_journal_forget(&k.folder, NULL), SVS_OK); /* reading tells why */
    rmdir(last->path);
    assert_int_equal(mkfifo(last->path, 0600), 0);
    assert_int_equal(svi_journal_forget(&k.folder, NULL), SVS_OK); /* nobody is waited for at the other end */
    everything_read(&all, &k, NULL, false, NULL);
    assert_int_equal(all.error.code, SVS_IO);
    unlink(last->path);
    assert_int_equal(symlink("/etc/passwd", last->path), 0);
    everything_read(&all, &k, NULL, false, NULL);
    assert_int_equal(all.error.code, SVS_IO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_torn_anywhere),
                                       TEST(test_cut_in_the_middle),
                                       TEST(test_flipped_anywhere),
                                       TEST(test_header_before_one_record),
                                       TEST(test_missing_segments),
                                       TEST(test_the_newest_is_missing),
                                       TEST(test_goes_on_without_the_newest),
                                       TEST(test_places_that_are_gone),
                                       TEST(test_short_before_another),
                                       TEST(test_header_before_the_place),
                                       TEST(test_foreign_headers),
                                       TEST(test_made_up_record),
                                       TEST(test_too_large),
                                       TEST(test_hostile),
                                       TEST(test_stale_records),
                                       TEST(test_not_a_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
