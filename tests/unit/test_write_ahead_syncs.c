/* What is told to be on disk when the disk loses a write while a checkpoint is made. As with a kernel, a lost
 * write is told once, to who syncs first; who opens the file behind that and syncs hears nothing. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "support/life.h"

static const char *const often[] = {"journal.interval", "0.001", "checkpoint.seconds", "1", NULL};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static pthread_t owner;
static bool armed, held, begun; /* the next sync beside fails, once it is let go; somebody is in it */
static int beside;              /* syncs beside at once, at most */
static int now_beside;

int fdatasync(int fd) {
    const bool ours = pthread_equal(pthread_self(), owner) != 0;
    bool fails;
    if (ours)
        return (int)syscall(SYS_fdatasync, fd);
    pthread_mutex_lock(&lock);
    beside = ++now_beside > beside ? now_beside : beside;
    fails = armed;
    armed = false;
    begun = begun || fails;
    pthread_cond_broadcast(&change);
    while (fails && held)
        pthread_cond_wait(&change, &lock);
    now_beside--;
    pthread_mutex_unlock(&lock);
    errno = EIO;
    return fails ? -1 : (int)syscall(SYS_fdatasync, fd);
}

/* One turn that took this long, and a moment for what is done beside. */
static svs_code turn(struct life *l, double work) {
    struct pollfd p = {svi_write_ahead_fd(l->keeper), POLLIN, 0};
    poll(&p, 1, 1);
    return svi_write_ahead_turn(l->keeper, work, &l->error);
}

static bool is_begun(void) {
    pthread_mutex_lock(&lock);
    const bool is = begun;
    pthread_mutex_unlock(&lock);
    return is;
}

static void test_a_lost_write_is_not_told_as_kept(void **state) {
    struct life *l = *state;
    svs_code code = SVS_OK;
    l->more = often;
    owner = pthread_self();
    assert_begins(l, false);
    feed(l, 3);
    pthread_mutex_lock(&lock);
    armed = held = true;
    begun = false;
    pthread_mutex_unlock(&lock);
    while (!is_begun() && code == SVS_OK)
        code = turn(l, 0);
    assert_int_equal(code, SVS_OK);
    feed(l, 3);
    for (int i = 0; i < 60 && code == SVS_OK; i++) { /* a checkpoint is due */
        code = turn(l, 10);
        assert_int_equal(svi_write_ahead_durable(l->keeper, "a"), -1);
    }
    assert_int_equal(code, SVS_OK);
    pthread_mutex_lock(&lock);
    held = false;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
    while (code == SVS_OK) {
        assert_int_equal(svi_write_ahead_durable(l->keeper, "a"), -1);
        code = turn(l, 0);
    }
    assert_int_equal(code, SVS_IO);
    assert_int_equal(svi_write_ahead_save(l->keeper, NULL, NULL, &l->error), SVS_IO);
    assert_int_equal(beside, 1);
    end(l);
    assert_begins(l, false);
    assert_int_equal(seen(l), 6);
    end(l);
}

static int checkpoints(const struct life *l) {
    uint64_t *numbers;
    const int count = list(l, "checkpoint", &numbers);
    svi_free(numbers);
    return count;
}

/* Whatever the policy, a checkpoint is written when the journal before it is on disk. */
static void test_a_checkpoint_waits_for_its_journal(void **state) {
    struct life *l = *state;
    const char *policies[] = {"always", "interval", "never"};
    owner = pthread_self();
    for (int i = 0; i < 3; i++) {
        const char *more[] = {
            "journal.fsync", policies[i], "journal.interval", "1000", "checkpoint.seconds", "1", NULL};
        l->more = more;
        assert_begins(l, false);
        feed(l, 5);
        assert_int_equal(svi_write_ahead_durable(l->keeper, "a"), i == 0 ? 4 : -1);
        assert_int_equal(turn(l, 2), SVS_OK);
        while (checkpoints(l) == 0)
            assert_int_equal(turn(l, 0), SVS_OK);
        assert_int_equal(svi_write_ahead_durable(l->keeper, "a"), 4);
        feed(l, 2);
        assert_int_equal(svi_write_ahead_durable(l->keeper, "a"), i == 0 ? 6 : 4);
        assert_int_equal(turn(l, 100), SVS_OK); /* and one that is asked for meanwhile */
        save(l);
        assert_int_equal(svi_write_ahead_durable(l->keeper, "a"), 6);
        end(l);
        assert_begins(l, false);
        assert_int_equal(seen(l), 7);
        end(l);
        test_folder_empty(l->path);
    }
}

/* However long taking one holds the stream up (up to 5 % of the work), the next comes after four times
 * checkpoint.seconds at the latest, and not before once. */
static void test_a_checkpoint_comes_in_time(void **state) {
    struct life *l = *state;
    l->more = (const char *const[]){"journal.interval", "0.001", "checkpoint.seconds", "20", NULL};
    owner = pthread_self();
    assert_begins(l, false);
    feed(l, 3);
    assert_int_equal(turn(l, 20), SVS_OK);
    while (checkpoints(l) == 0)
        assert_int_equal(turn(l, 0), SVS_OK);
    feed(l, 3);
    assert_int_equal(turn(l, 19), SVS_OK);
    for (int i = 0; i < 20; i++)
        assert_int_equal(turn(l, 0), SVS_OK);
    assert_int_equal(checkpoints(l), 1);
    assert_int_equal(turn(l, 61), SVS_OK);
    while (checkpoints(l) == 1)
        assert_int_equal(turn(l, 0), SVS_OK);
    end(l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_a_lost_write_is_not_told_as_kept),
        TEST(test_a_checkpoint_waits_for_its_journal),
        TEST(test_a_checkpoint_comes_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
