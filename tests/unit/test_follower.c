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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces_are_done_once_and_in_order),
                                       cmocka_unit_test(test_free_with_work_before_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
