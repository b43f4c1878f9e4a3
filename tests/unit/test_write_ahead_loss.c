/* Where each source goes on when a part of the journal is lost: once, where its first message behind the loss
 * says; what was refused when it came is refused again. */
#include "support/life.h"
#include "support/apply.h"

static const char *const exactly_once[] = {"delivery", "exactly-once", NULL};

/* One numbered sample, as the inlet would take it. */
static svs_code put(struct life *l, const char *src, int n) {
    struct svi_receipt r;
    speaker_build(&l->speaker, "{'x': [%d, %d], 'y': %d, 'src': '%s', 'n': %d, 'ts': 1}", n % 5, n % 3, n % 2,
                  src, n);
    const struct svi_bytes *f = &l->speaker.frame;
    assert_int_equal(svi_write_ahead_write(l->keeper, SVI_RECORD_SOURCED, NOW, f->data, f->size, NULL),
                     SVS_OK);
    return apply_bytes(l->stream, f->data, f->size, NOW, true, &r);
}

static void put_all(struct life *l, const char *src, int from, int to) {
    for (int n = from; n <= to; n++)
        assert_int_equal(put(l, src, n), SVS_OK);
}

static int64_t next(const struct life *l, const char *src) {
    return svi_entry_next(svi_stream_entry(l->stream), src);
}

/* Takes the last segment but `back` away. */
static void lose(const struct life *l, int back) {
    uint64_t *numbers;
    int count = list(l, "journal", &numbers);
    assert_true(count > back + 1);
    remove_file(l, "journal", numbers[count - 1 - back]);
    svi_free(numbers);
}

/* Full segments, so that what comes next is in one of its own. */
static void fill_segment(struct life *l, const char *src) {
    uint64_t *numbers;
    const int before = list(l, "journal", &numbers);
    svi_free(numbers);
    for (int count = before; count == before;) {
        assert_int_equal(put(l, src, (int)next(l, src)), SVS_OK);
        count = list(l, "journal", &numbers);
        svi_free(numbers);
    }
}

static void assert_same_again(struct life *l, int64_t a, int64_t b) {
    const int64_t there = seen(l);
    end(l);
    assert_begins(l, false); /* a checkpoint lies behind the damage */
    assert_int_equal(seen(l), there);
    assert_int_equal(next(l, "a"), a);
    assert_int_equal(next(l, "b"), b);
    assert_null(strstr(l->log, "LOST"));
    end(l);
}

static void test_each_source_jumps_once(void **state) {
    struct life *l = *state;
    l->more = exactly_once;
    assert_begins(l, false);
    put_all(l, "a", 0, 4);
    put_all(l, "b", 0, 2);
    fill_segment(l, "a");
    const int64_t whole = seen(l) - 1; /* the last opened the segment that will be lost */
    const int a = (int)next(l, "a") - 1;
    fill_segment(l, "a");
    const int lost_to = (int)next(l, "a") - 1;
    put_all(l, "a", (int)next(l, "a"), lost_to + 5);
    put_all(l, "b", 3, 4); /* nothing of this one is lost */
    assert_int_equal(put(l, "a", 1000), SVS_GAP);
    assert_int_equal(put(l, "b", 7), SVS_GAP);
    assert_int_equal(put(l, "a", 3), SVS_OK); /* sent again */
    put_all(l, "a", lost_to + 6, lost_to + 9);
    put_all(l, "b", 5, 6);
    const int64_t live = seen(l);
    end(l);

    lose(l, 1);
    assert_int_equal(begin(l, false), SVS_DAMAGED);
    assert_begins(l, true);
    assert_int_equal(next(l, "a"), lost_to + 10);
    assert_int_equal(next(l, "b"), 7);
    assert_int_equal(seen(l), live - (lost_to - a));
    assert_true(seen(l) > whole);
    char text[160];
    snprintf(text, sizeof text, "LOST: samples %d to %d of the source a, which continues with %d\n", a,
             lost_to - 1, lost_to);
    if (!strstr(l->log, text))
        fail_msg("%s\nnot in\n%s", text, l->log);
    assert_null(strstr(l->log, "source b"));
    assert_int_equal(put(l, "a", lost_to + 12), SVS_GAP); /* the loss is over */
    assert_int_equal(put(l, "a", lost_to + 10), SVS_OK);
    assert_same_again(l, lost_to + 11, 7);
}

/* A source whose first samples are lost, and whose second loss is another. */
static void test_once_for_each_loss(void **state) {
    struct life *l = *state;
    l->more = exactly_once;
    assert_begins(l, false);
    fill_segment(l, "a");
    put_all(l, "b", 0, 9);
    fill_segment(l, "a");
    assert_int_equal(put(l, "b", 10), SVS_OK);
    assert_int_equal(put(l, "b", 20), SVS_GAP);
    fill_segment(l, "a");
    put_all(l, "b", 11, 19);
    fill_segment(l, "a");
    put_all(l, "b", 20, 21);
    const int64_t a = next(l, "a");
    assert_int_equal(put(l, "a", (int)a), SVS_OK);
    /* new, and refused: it looks like one that lost its beginning */
    assert_int_equal(put(l, "c", 5), SVS_SOURCE_FORGOTTEN);
    end(l);
    lose(l, 3);
    lose(l, 1);
    assert_begins(l, true);
    assert_int_equal(next(l, "b"), 22);
    assert_int_equal(next(l, "a"), a + 1);
    assert_non_null(strstr(l->log, "LOST: samples 0 to 9 of the source b, which continues with 10\n"));
    assert_non_null(strstr(l->log, "LOST: samples 11 to 19 of the source b, which continues with 20\n"));
    assert_same_again(l, a + 1, 22);
}

/* Many are told in short. */
static void test_many_sources(void **state) {
    struct life *l = *state;
    char name[16];
    l->more = exactly_once;
    assert_begins(l, false);
    fill_segment(l, "a");
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "s%d", i);
        put_all(l, name, 0, 1);
    }
    fill_segment(l, "a");
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "s%d", i);
        put_all(l, name, 2, 2);
    }
    end(l);
    uint64_t *numbers;
    int count = list(l, "journal", &numbers);
    for (int i = 1; i < count - 2; i++)
        remove_file(l, "journal", numbers[i]);
    svi_free(numbers);
    assert_begins(l, true);
    int lines = 0;
    for (const char *at = l->log; (at = strstr(at, "which continues with")); at++)
        lines++;
    assert_int_equal(lines, 10);
    assert_non_null(strstr(l->log, "in all, in "));
    end(l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_each_source_jumps_once),
        TEST(test_once_for_each_loss),
        TEST(test_many_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
