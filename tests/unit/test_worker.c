/* A worker's bell is rung outside its lock: this program's own write() keeps a ring back until it may come.
 */
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/worker.h"

static sem_t about_to_ring, may_ring;

ssize_t write(int fd, const void *bytes, size_t n) {
    if (n == sizeof(uint64_t)) {
        sem_post(&about_to_ring);
        sem_wait(&may_ring);
    }
    return syscall(SYS_write, fd, bytes, n);
}

static void count(void *job) {
    ++*(int *)job;
}

static const struct svi_worker_task trades[] = {{"prompt", count, NULL, true}, {"idle", count, NULL, false}};

static bool rings(const svi_worker *w, int ms) {
    struct pollfd bell = {svi_worker_fd(w), POLLIN, 0};
    return poll(&bell, 1, ms) > 0;
}

/* Who took a job before its ring would be woken by that for ever after. */
static void test_job_comes_with_its_ring(void **state) {
    const struct svi_worker_task *trade = *state;
    int jobs = 0;
    svs_error e;
    svi_worker *w = svi_worker_new(trade, &e);
    assert_non_null(w);
    assert_null(svi_worker_collect(w));
    assert_null(svi_worker_wait(w)); /* not busy */
    for (int n = 1; n <= 3; n++) {
        svi_worker_submit(w, &jobs);
        sem_wait(&about_to_ring);
        assert_null(svi_worker_collect(w));
        assert_true(svi_worker_busy(w));
        sem_post(&may_ring);
        assert_true(rings(w, -1));
        assert_ptr_equal(n < 3 ? svi_worker_collect(w) : svi_worker_wait(w), &jobs);
        assert_int_equal(jobs, n);
        assert_false(svi_worker_busy(w));
        assert_false(rings(w, 0));
    }
    svi_worker_submit(w, &jobs);
    sem_post(&may_ring);
    svi_worker_free(&w); /* while it is at it, or has not begun */
    assert_null(w);
}

static int prepare(void **state) {
    (void)state;
    return sem_init(&about_to_ring, 0, 0) || sem_init(&may_ring, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate_setup_teardown(
                                           test_job_comes_with_its_ring, prepare, NULL, (void *)&trades[0]),
                                       cmocka_unit_test_prestate_setup_teardown(
                                           test_job_comes_with_its_ring, prepare, NULL, (void *)&trades[1])};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
