/* The keeper at its rare moments: a process that ended before its first record, what --accept-loss passes
 * over. */
#include <fcntl.h>

#include "support/life.h"

/* Killed when the first segment has its header and no record yet, or a torn one: the journal has an epoch
 * then, and the checkpoints to come must have the same. */
static void test_ended_before_its_first_record(void **state) {
    struct life *l = *state;
    char path[300];
    uint8_t head[SVI_HEADER_MAX];
    struct svi_segment_header h;
    for (int torn = 0; torn < 2; torn++) {
        assert_begins(l, false);
        end(l);
        path_of(l, "journal", 0, path);
        int fd = open(path, O_RDONLY);
        assert_true(fd >= 0 && read(fd, head, sizeof head) > 0);
        close(fd);
        assert_int_equal(svi_segment_header_read(&h, head, sizeof head), SVI_HEADER_SOUND);
        assert_int_equal(truncate(path, (off_t)h.size + (torn ? 20 : 0)), 0);

        assert_begins(l, false);
        assert_int_equal(svi_stream_epoch(l->stream), h.epoch);
        feed(l, 5);
        end(l);
        assert_begins(l, false);
        assert_int_equal(svi_stream_epoch(l->stream), h.epoch);
        assert_int_equal(seen(l), 5);
        feed(l, 5);
        save(l);
        end(l);
        assert_begins(l, false); /* from the checkpoint */
        assert_int_equal(svi_stream_epoch(l->stream), h.epoch);
        assert_int_equal(seen(l), 10);
        end(l);
        test_folder_empty(l->path);
    }
}

/* What was passed over once is told, and a checkpoint behind it spares the next start the question. */
static void assert_passed_over(struct life *l) {
    assert_int_equal(begin(l, false), SVS_DAMAGED);
    assert_non_null(strstr(l->error.text, "--accept-loss"));
    assert_begins(l, true);
    assert_non_null(strstr(l->log, "LOST"));
    feed(l, 3);
    const int64_t there = seen(l);
    end(l);
    for (int i = 0; i < 2; i++) {
        if (begin(l, false) != SVS_OK)
            fail_msg("still damaged: %s", l->error.text);
        assert_int_equal(seen(l), there);
        assert_null(strstr(l->log, "LOST"));
        end(l);
    }
}

static void test_a_segment_is_missing(void **state) {
    struct life *l = *state;
    uint64_t *numbers;
    assert_begins(l, false);
    feed(l, 20);
    save(l);
    feed(l, 200);
    end(l);
    int count = list(l, "journal", &numbers);
    assert_true(count > 3);
    remove_file(l, "journal", numbers[count - 2]);
    svi_free(numbers);
    assert_passed_over(l);
}

/* The one that the checkpoint points into, and there is none behind it. */
static void test_the_last_segment_is_missing(void **state) {
    struct life *l = *state;
    uint64_t *numbers;
    assert_begins(l, false);
    feed(l, 100);
    save(l);
    feed(l, 1);
    end(l);
    int count = list(l, "journal", &numbers);
    remove_file(l, "journal", numbers[count - 1]);
    svi_free(numbers);
    assert_passed_over(l);
}

/* The one after that which the checkpoint points into: nothing but the mark tells of it. */
static void test_the_newest_segment_is_missing(void **state) {
    struct life *l = *state;
    uint64_t *numbers;
    assert_begins(l, false);
    feed(l, 100);
    save(l);
    int before = list(l, "journal", &numbers), count = before;
    svi_free(numbers);
    while (count == before) {
        feed(l, 1);
        count = list(l, "journal", &numbers);
        svi_free(numbers);
    }
    feed(l, 3);
    end(l);
    count = list(l, "journal", &numbers);
    remove_file(l, "journal", numbers[count - 1]);
    svi_free(numbers);
    assert_passed_over(l);
}

/* Or an older copy of it is in its place, shorter than what a checkpoint saw. */
static void test_the_newest_segment_is_an_old_copy(void **state) {
    struct life *l = *state;
    char path[300];
    assert_begins(l, false);
    feed(l, 3);
    path_of(l, "journal", 0, path);
    const int fd = open(path, O_RDONLY);
    const off_t size = lseek(fd, 0, SEEK_END);
    assert_true(size > 0 && close(fd) == 0);
    feed(l, 10);
    save(l);
    feed(l, 5);
    end(l);
    assert_int_equal(truncate(path, size), 0);
    assert_passed_over(l);
}

/* Without a checkpoint, and without what came first. */
static void test_the_beginning_is_missing(void **state) {
    struct life *l = *state;
    uint64_t *numbers;
    assert_begins(l, false);
    feed(l, 200);
    end(l);
    assert_true(list(l, "journal", &numbers) > 2);
    remove_file(l, "journal", numbers[0]);
    svi_free(numbers);
    assert_passed_over(l);
}

/* A segment of another life under the name that the checkpoint wants. */
static void test_a_foreign_segment(void **state) {
    struct life *l = *state;
    uint64_t *numbers;
    char path[300], other[310];
    assert_begins(l, false);
    feed(l, 10);
    end(l);
    path_of(l, "journal", 0, path);
    snprintf(other, sizeof other, "%s.damaged", path);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(begin(l, false), SVS_DAMAGED); /* acknowledged samples were in it */
    assert_non_null(strstr(l->error.text, "journal-0000000000000000 is missing"));
    assert_begins(l, true); /* a new life */
    assert_non_null(strstr(l->log, "LOST"));
    feed(l, 5);
    save(l);
    end(l);
    assert_int_equal(list(l, "journal", &numbers), 1);
    svi_free(numbers);
    assert_int_equal(rename(other, path), 0);
    assert_passed_over(l);
}

static void assert_last_model(const struct life *l) {
    const struct svi_bytes *last = svi_engine_last_model(svi_stream_root(l->stream));
    assert_int_equal(last->size, l->model.size);
    assert_true(last->size == 0 || memcmp(last->data, l->model.data, last->size) == 0);
}

/* Whatever came behind it, and whether a checkpoint or the journal has it. */
static void test_the_last_model_is_told_as_it_was(void **state) {
    struct life *l = *state;
    const char *const models[] = {"publish.every", "10", "publish.seconds", "0", NULL};
    l->more = models;
    assert_begins(l, false);
    assert_int_equal(svi_engine_last_model(svi_stream_root(l->stream))->size, 0);
    feed(l, 7);
    end(l);
    assert_begins(l, false); /* none was published yet */
    assert_int_equal(svi_engine_last_model(svi_stream_root(l->stream))->size, 0);
    feed(l, 5);
    assert_true(l->model.size > 0);
    end(l);
    assert_begins(l, false); /* by the journal */
    assert_last_model(l);
    feed(l, 3);
    save(l);
    feed(l, 2);
    end(l);
    assert_begins(l, false); /* by the checkpoint */
    assert_last_model(l);
    feed(l, 4);
    end(l);
    const char *const wider[] = {"publish.every", "10", "publish.seconds", "0", "max.features", "2000", NULL};
    l->more = wider;
    assert_begins(l, false); /* and in an engine with other limits */
    assert_last_model(l);
    svi_engine_publish_model(svi_stream_root(l->stream), true);
    assert_last_model(l);
    end(l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_ended_before_its_first_record),
        TEST(test_a_segment_is_missing),
        TEST(test_the_last_segment_is_missing),
        TEST(test_the_newest_segment_is_missing),
        TEST(test_the_newest_segment_is_an_old_copy),
        TEST(test_the_beginning_is_missing),
        TEST(test_a_foreign_segment),
        TEST(test_the_last_model_is_told_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
