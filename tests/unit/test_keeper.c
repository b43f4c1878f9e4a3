/* The keeper at its rare moments: a process that ended before its first record, what --accept-loss passes
 * over. */
#include "support/engine.h"
#include "support/folder.h"

#include <fcntl.h>

#include "base/alloc.h"
#include "engine/keeper.h"
#include "store/segment.h"

struct life {
    char path[200], log[4096];
    struct svi_settings s;
    svi_keeper *keeper;
    svi_engine *engine;
    svs_error error;
    struct speaker speaker; /* its frames alone */
};

static void sink(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

static void set(struct life *l, const char *name, const char *value) {
    if (svi_settings_set(&l->s, name, value, &l->error) != SVS_OK)
        fail_msg("%s", l->error.text);
}

static int setup(void **state) {
    struct life *l = calloc(1, sizeof *l);
    assert_non_null(l);
    assert_non_null(test_folder(l->path));
    l->speaker.now = NOW;
    *state = l;
    return 0;
}

static int teardown(void **state) {
    struct life *l = *state;
    test_folder_remove(l->path);
    svi_bytes_clear(&l->speaker.frame);
    free(l);
    return 0;
}

/* What it says while it starts is in l->log. */
static svs_code begin(struct life *l, bool accept_loss) {
    FILE *log = fmemopen(l->log, sizeof l->log, "w");
    assert_non_null(log);
    svi_settings_default(&l->s);
    set(l, "in.mode", "router");
    set(l, "state.dir", l->path);
    set(l, "refit", "none");
    set(l, "novelty", "none");
    set(l, "journal.segment", "4096");
    l->s.accept_loss = accept_loss;
    l->keeper = svi_keeper_open(&l->s, sink, NULL, log, &l->engine, &l->error);
    fclose(log);
    return l->keeper ? SVS_OK : l->error.code;
}

static void assert_begins(struct life *l, bool accept_loss) {
    if (begin(l, accept_loss) != SVS_OK)
        fail_msg("%s", l->error.text);
}

static void end(struct life *l) {
    svi_keeper_free(&l->keeper);
    svi_engine_free(&l->engine);
}

static void feed(struct life *l, int count) {
    struct svi_receipt r;
    for (int i = 0; i < count; i++) {
        const int n = (int)svi_engine_source_next(l->engine, "a");
        speaker_build(&l->speaker, "{'x': [%d, %d], 'y': %d, 'src': 'a', 'n': %d, 'ts': %d}", n % 5, n % 3,
                      n % 2, n, n + 1);
        const struct svi_bytes *f = &l->speaker.frame;
        assert_int_equal(svi_keeper_write(l->keeper, SVI_RECORD_SOURCED, NOW, f->data, f->size, NULL),
                         SVS_OK);
        svi_engine_frame(l->engine, f->data, f->size, NOW, true, &r);
        assert_int_equal(r.n, n);
    }
}

static void save(struct life *l) {
    if (svi_keeper_save(l->keeper, NULL, NULL, &l->error) != SVS_OK)
        fail_msg("%s", l->error.text);
}

static int64_t seen(const struct life *l) {
    return svi_engine_seen(l->engine);
}

static void path_of(const struct life *l, const char *prefix, uint64_t number, char out[300]) {
    char name[SVI_FILE_NAME];
    snprintf(out, 300, "%s/%s", l->path, svi_folder_name(name, prefix, number));
}

/* The numbers of its files of this kind; how many. */
static int list(const struct life *l, const char *prefix, uint64_t **numbers) {
    struct svi_folder f;
    int count;
    assert_int_equal(svi_folder_open(&f, l->path, false, NULL), SVS_OK);
    assert_int_equal(svi_folder_list(&f, prefix, numbers, &count, NULL), SVS_OK);
    svi_folder_close(&f);
    return count;
}

static void remove_file(const struct life *l, const char *prefix, uint64_t number) {
    char path[300];
    path_of(l, prefix, number, path);
    assert_int_equal(unlink(path), 0);
}

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
        assert_int_equal(svi_segment_header_read(&h, head, sizeof head), SVI_HEAD_SOUND);
        assert_int_equal(truncate(path, (off_t)h.size + (torn ? 20 : 0)), 0);

        assert_begins(l, false);
        assert_int_equal(svi_engine_epoch(l->engine), h.epoch);
        feed(l, 5);
        end(l);
        assert_begins(l, false);
        assert_int_equal(svi_engine_epoch(l->engine), h.epoch);
        assert_int_equal(seen(l), 5);
        feed(l, 5);
        save(l);
        end(l);
        assert_begins(l, false); /* from the checkpoint */
        assert_int_equal(svi_engine_epoch(l->engine), h.epoch);
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
    assert_begins(l, false); /* a new life */
    feed(l, 5);
    save(l);
    end(l);
    assert_int_equal(list(l, "journal", &numbers), 1);
    svi_free(numbers);
    assert_int_equal(rename(other, path), 0);
    assert_passed_over(l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_ended_before_its_first_record),
        TEST(test_a_segment_is_missing),
        TEST(test_the_last_segment_is_missing),
        TEST(test_the_beginning_is_missing),
        TEST(test_a_foreign_segment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
