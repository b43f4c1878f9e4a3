/* A checkpoint's room is made beside the stream, which only copies. Linked with --wrap for svi_alloc,
 * svi_realloc and svi_realloc_plain. */
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "support/life.h"
#include "server/server.h"
#include "support/apply.h"

#define AT_ONCE 400000 /* bytes; a state is gathered in pieces of less, and is a multiple of it */

void *__real_svi_alloc(size_t size);
void *__real_svi_alloc_plain(size_t size);
void *__real_svi_realloc(void *block, size_t old_size, size_t size);
void *__real_svi_realloc_plain(void *block, size_t old_size, size_t size);
void *__wrap_svi_alloc(size_t size);
void *__wrap_svi_alloc_plain(size_t size);
void *__wrap_svi_realloc(void *block, size_t old_size, size_t size);
void *__wrap_svi_realloc_plain(void *block, size_t old_size, size_t size);

static pthread_t owner;
static size_t largest;         /* that the owner asked for */
static atomic_int beside_fail; /* so many that others ask for fail */

static bool fails(size_t size) {
    if (!pthread_equal(pthread_self(), owner))
        return atomic_fetch_sub(&beside_fail, 1) > 0;
    largest = size > largest ? size : largest;
    return false;
}

void *__wrap_svi_alloc(size_t size) {
    return fails(size) ? NULL : __real_svi_alloc(size);
}

void *__wrap_svi_alloc_plain(size_t size) {
    return fails(size) ? NULL : __real_svi_alloc_plain(size);
}

void *__wrap_svi_realloc(void *block, size_t old_size, size_t size) {
    return fails(size) ? NULL : __real_svi_realloc(block, old_size, size);
}

void *__wrap_svi_realloc_plain(void *block, size_t old_size, size_t size) {
    return fails(size) ? NULL : __real_svi_realloc_plain(block, old_size, size);
}

static void wide_samples(struct life *l, int count) {
    struct svi_bytes *f = &l->speaker.frame;
    for (int i = 0; i < count; i++) {
        struct svi_pack p;
        f->size = 0;
        svi_pack_begin(&p, f);
        svi_pack_map(&p, 2);
        svi_pack_text(&p, "x");
        svi_pack_array(&p, 50);
        for (int j = 0; j < 50; j++)
            svi_pack_real(&p, (double)((i * 31 + j * 17) % 101));
        svi_pack_text(&p, "y");
        svi_pack_int(&p, i % 2);
        assert_int_equal(svi_pack_end(&p), SVS_OK);
        assert_int_equal(svi_write_ahead_append(l->keeper, SVI_RECORD_FRAME, NOW, f->data, f->size, NULL),
                         SVS_OK);
        apply_bytes(l->stream, f->data, f->size, NOW, false, NULL);
    }
    assert_int_equal(svi_write_ahead_commit(l->keeper, NULL), SVS_OK);
}

static void turn(struct life *l, double work) {
    struct pollfd p = {svi_write_ahead_fd(l->keeper), POLLIN, 0};
    poll(&p, 1, 1);
    if (svi_write_ahead_turn(l->keeper, work, &l->error) != SVS_OK)
        fail_msg("%s", l->error.text);
}

static double figure(struct life *l, const char *name) {
    const struct svi_figure *f;
    svi_write_ahead_figures(l->keeper);
    const int count = svi_stream_figures(l->stream, NULL, NOW, &f);
    for (int i = 0; i < count; i++)
        if (strcmp(f[i].name, name) == 0)
            return f[i].as.number;
    fail_msg("there is no %s", name);
    return 0;
}

static void await(struct life *l, const char *name, double value) {
    turn(l, 1000);
    while (figure(l, name) < value)
        turn(l, 0);
}

static const char *const wide[] = {"window", "6000", "checkpoint.seconds", "100", NULL};

static void test_the_stream_only_copies(void **state) {
    struct life *l = *state;
    owner = pthread_self();
    l->more = wide;
    assert_begins(l, false);
    for (int i = 1; i <= 3; i++) { /* it grows, and it stays as it is */
        wide_samples(l, 2500);
        largest = 0;
        await(l, "checkpoints", i);
        if (largest > AT_ONCE)
            fail_msg("checkpoint %d: %zu bytes at once", i, largest);
    }
    end(l);
    assert_begins(l, false);
    assert_int_equal(seen(l), 7500);
    largest = 0;
    wide_samples(l, 1);
    await(l, "checkpoints", 1);
    assert_true(largest <= AT_ONCE);
    end(l);
}

static double in_use(void) {
    const struct mallinfo2 m = mallinfo2();
    return (double)m.uordblks + (double)m.hblkhd;
}

static void test_its_memory_is_predicted(void **state) {
    struct life *l = *state;
    const double before = in_use();
    owner = pthread_self();
    l->more = wide;
    assert_begins(l, false);
    for (int i = 1; i <= 12; i++)
        wide_samples(l, 600);
    await(l, "checkpoints", 1);
    svi_server_predict_memory(&l->s, l->stream, 0);
    const double used = in_use() - before, predicted = svi_server_memory(&l->s, 50, 2);
    if (used > predicted || figure(l, "memory_predicted") != predicted)
        fail_msg("%.0f bytes in use, %.0f predicted", used, predicted);
    l->s.state_dir[0] = '\0';
    assert_true(svi_server_memory(&l->s, 50, 2) < predicted - 6000 * 50 * sizeof(double));
    end(l);
}

/* Without memory for it there is no checkpoint, which is counted; the stream goes on, and so does the next.
 */
static void test_no_room(void **state) {
    struct life *l = *state;
    owner = pthread_self();
    l->more = wide;
    assert_begins(l, false);
    wide_samples(l, 100);
    atomic_store(&beside_fail, 1);
    turn(l, 1000);
    while (atomic_load(&beside_fail) > 0)
        turn(l, 0);
    await(l, "checkpoints", 1); /* the stream makes the room then */
    wide_samples(l, 1000);
    turn(l, 1000);
    save(l); /* asked for while room is made, or after */
    end(l);
    assert_begins(l, false);
    assert_int_equal(seen(l), 1100);
    end(l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_the_stream_only_copies),
        TEST(test_no_room),
        TEST(test_its_memory_is_predicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
