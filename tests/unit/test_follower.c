/* A thread that does numbered pieces behind its owner: each once, in order, by either thread. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/follower.h"
#include "base/random.h"

#define PIECES 20000

struct work {
    uint64_t next, wrong; /* of the thread that is at work; nothing else guards them */
    uint64_t stop_every;
    pthread_t owner;
    uint64_t here, there;
};

static bool do_piece(void *user, uint64_t n) {
    struct work *w = user;
    w->wrong += n != w->next;
    w->next = n + 1;
    if (pthread_equal(pthread_self(), w->owner))
        w->here++;
    else
        w->there++;
    return w->stop_every == 0 || n % w->stop_every != 0;
}

/* What was stopped at was done; the owner only says that it goes on. */
static void go_on(svi_follower *f, struct svi_follower_state s) {
    if (s.stopped)
        svi_follower_resume(f, s.done + 1);
}

static void walk(uint64_t stop_every, uint64_t seed) {
    struct work w = {.stop_every = stop_every, .owner = pthread_self()};
    struct svi_random random = {seed};
    svs_error err;
    svi_follower *f = svi_follower_new("a test", do_piece, &w, &err);
    assert_non_null(f);
    struct svi_follower_state s = {0};
    for (uint64_t end = 0; end < PIECES;) {
        end += 1 + svi_random_below(&random, 50);
        s = svi_follower_offer(f, end);
        assert_true(s.done <= end);
        go_on(f, s);
        if (svi_random_below(&random, 4) == 0) {
            s = svi_follower_wait(f, end - end / 20);
            assert_true(s.stopped || s.done >= end - end / 20);
            go_on(f, s);
        } else if (svi_random_below(&random, 4) == 0) {
            while ((s = svi_follower_halt(f)).stopped) { /* goes on with what it had begun */
                assert_true(s.done == w.next - 1);
                svi_follower_resume(f, s.done + 1);
            }
            assert_true(s.done == w.next);
            for (uint64_t n = w.next; n < end; n++)
                do_piece(&w, n);
            svi_follower_resume(f, end);
            assert_true(svi_follower_wait(f, end).done == end);
        }
    }
    svi_follower_free(&f);
    assert_null(f);
    assert_true(w.wrong == 0 && w.next <= PIECES + 50);
    assert_true(w.here + w.there == w.next);
}

static void test_pieces_are_done_once_and_in_order(void **state) {
    (void)state;
    walk(0, 1);
    walk(7, 2);
    walk(1, 3);
}

/* One that is freed with work before it leaves that undone and ends. */
static void test_free_with_work_before_it(void **state) {
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct work w = {.owner = pthread_self()};
        svi_follower *f = svi_follower_new("a test", do_piece, &w, NULL);
        assert_non_null(f);
        svi_follower_offer(f, (uint64_t)i * 10);
        svi_follower_free(&f);
        assert_true(w.wrong == 0 && w.next <= (uint64_t)i * 10);
    }
}

/* A task that adds up what its owner wrote before it, without a lock. */
struct sum {
    uint64_t value[64], sum, tasks;
    pthread_t owner;
    uint64_t there;
};

static void do_sum(void *user) {
    struct sum *s = user;
    s->sum = 0;
    for (int i = 0; i < 64; i++)
        s->sum += s->value[i];
    s->tasks++;
    s->there += !pthread_equal(pthread_self(), s->owner);
}

/* Each task is done once, by either thread, and its owner reads what it made; pieces go on beside it. */
static void test_tasks_beside_pieces(void **state) {
    struct sum s = {.owner = pthread_self()};
    struct work w = {.owner = pthread_self()};
    svi_follower *f = svi_follower_new("a test", do_piece, &w, NULL);
    uint64_t end = 0, posted = 0;
    (void)state;
    assert_non_null(f);
    svi_follower_finish(f); /* without a task */
    /* Until the thread has had its share; the owner alone would do all of them where it never runs. */
    for (; posted < 200000 && (posted < 5000 || s.there < 100 || s.there == s.tasks); posted++) {
        for (uint64_t i = 0; i < 64; i++)
            s.value[i] = posted + i;
        svi_follower_post(f, do_sum, &s);
        if (posted % 3 == 0)
            svi_follower_offer(f, end += 8);
        if (posted % 50 == 0)
            svi_follower_wait(f, end);
        svi_follower_finish(f);
        assert_int_equal(s.sum, 64 * posted + 64 * 63 / 2);
        svi_follower_finish(f); /* a second time: nothing to do */
    }
    assert_int_equal(s.tasks, posted);
    assert_true(s.there >= 100);
    svi_follower_wait(f, end);
    assert_true(w.wrong == 0 && w.next == end);
    svi_follower_post(f, do_sum,
                      &s); /* not finished: it is done or not when the thread ends, and not after */
    svi_follower_free(&f);
    assert_true(s.tasks == posted || s.tasks == posted + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces_are_done_once_and_in_order),
                                       cmocka_unit_test(test_free_with_work_before_it),
                                       cmocka_unit_test(test_tasks_beside_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
