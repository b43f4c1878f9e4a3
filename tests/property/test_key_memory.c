/* What one key takes, and that its bits do not depend on where it was when: counted at the gate of
 * allocations, when it is in full use, against what is promised and against what svi_key_memory says
 * beforehand. What a thread has for all its keys is taken by the first of them. */

#include "support/engine.h"
#include "support/quick.h"

#include "base/random.h"
#include "engine/engine_internal.h"
#include "fleet/fleet.h"

#define D       10
#define KEYS    4     /* that are counted */
#define STACKED 24000 /* a learner, one of all samples, a stack: with the heap */
#define LEARNER 16960 /* a learner alone, with what the heap adds */

static double held; /* bytes of all blocks */

void *__real_svi_alloc(size_t size);
void *__real_svi_alloc_plain(size_t size);
void *__real_svi_realloc(void *block, size_t old_size, size_t size);
void *__real_svi_realloc_plain(void *block, size_t old_size, size_t size);
void __real_svi_free(void *block);
void *__wrap_svi_alloc(size_t size);
void *__wrap_svi_alloc_plain(size_t size);
void *__wrap_svi_realloc(void *block, size_t old_size, size_t size);
void *__wrap_svi_realloc_plain(void *block, size_t old_size, size_t size);
void __wrap_svi_free(void *block);

/* Blocks by address, and the bytes that were asked for. The heap may give a block up to 16 bytes more, when
 * the rest of a hole is too small to be a block: that depends on what else the process has, so it is not
 * counted. */
#define PLACES (1 << 16)
static struct place {
    const void *block; /* NULL: never used */
    size_t size;
    bool freed;
} places[PLACES];

static struct place *place_of(const void *block, bool new) {
    size_t at = (size_t)block / 16 * 0x9e3779b1U % PLACES;
    for (int i = 0; i < PLACES; i++, at = (at + 1) % PLACES) {
        if (places[at].block == block && !places[at].freed)
            return &places[at];
        if (new && (!places[at].block || places[at].freed))
            return &places[at];
        if (!new && !places[at].block)
            break;
    }
    fail_msg("a block is not known, or there are too many");
    return NULL;
}

/* With what the heap has before a block, and its rounding. */
static double bytes_of(const void *block) {
    if (!block)
        return 0;
    const size_t size = (place_of(block, false)->size + sizeof(size_t) + 15) & ~(size_t)15;
    return size < 32 ? 32 : (double)size;
}

static void *noted(void *block, size_t size) {
    if (block) {
        *place_of(block, true) = (struct place){block, size, false};
        held += bytes_of(block);
    }
    return block;
}

static void forgotten(const void *block) {
    if (block) {
        held -= bytes_of(block);
        place_of(block, false)->freed = true;
    }
}

void *__wrap_svi_alloc(size_t size) {
    return noted(__real_svi_alloc(size), size);
}

void *__wrap_svi_alloc_plain(size_t size) {
    return noted(__real_svi_alloc_plain(size), size);
}

void *__wrap_svi_realloc(void *block, size_t old_size, size_t size) {
    void *more = __real_svi_realloc(block, old_size, size);
    if (more)
        forgotten(block);
    return noted(more, size);
}

void *__wrap_svi_realloc_plain(void *block, size_t old_size, size_t size) {
    void *more = __real_svi_realloc_plain(block, old_size, size);
    if (more)
        forgotten(block);
    return noted(more, size);
}

void __wrap_svi_free(void *block) {
    forgotten(block);
    __real_svi_free(block);
}

static void say_nothing(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

static svi_stream *begin(const char *const *given) {
    struct svi_settings s;
    svs_error err = {0};
    svi_settings_default(&s);
    svi_settings_set(&s, "key", "key", &err);
    for (int i = 0; given[i]; i += 2)
        assert_int_equal(svi_settings_set(&s, given[i], given[i + 1], &err), SVS_OK);
    svi_settings_settle_method(&s);
    if (svi_settings_check(&s, &err) != SVS_OK)
        fail_msg("%s", err.text);
    svi_stream *e = svi_stream_new(&s, 1, say_nothing, NULL, &err);
    assert_non_null(e);
    return e;
}

static void learn(svi_stream *e, int key, double now, struct svi_random *random, struct svi_bytes *frame) {
    double x[D], sum = 0;
    char name[16];
    snprintf(name, sizeof name, "k%d", key);
    for (int j = 0; j < D; j++) {
        x[j] = 0;
        for (int i = 0; i < 6; i++)
            x[j] += svi_random_below(random, 20001) / 10000.0 - 1;
        sum += j < D / 2 ? x[j] : 0;
    }
    const struct svi_message m = {.has_x = true,
                                  .kind = SVI_DENSE,
                                  .d = D,
                                  .x = x,
                                  .y = svs_int(sum > 0),
                                  .ts = NAN,
                                  .weight = 1,
                                  .n = -1,
                                  .key = svs_str(name)};
    struct svi_envelope env;
    struct svi_receipt receipt;
    frame->size = 0;
    assert_int_equal(svi_message_encode(&m, NULL, false, frame), SVS_OK);
    assert_int_equal(svi_envelope_read(&env, frame->data, frame->size), SVS_OK);
    svi_stream_apply(e, &env, now, false, &receipt);
    assert_int_equal(receipt.accepted, 1);
}

/* Bytes after that many rows of each of `keys` keys, which come in turns, `step` seconds apart. */
static double bytes_after(const char *const *given, int keys, int rows, double step, int contexts,
                          double *told) {
    svi_stream *e = begin(given);
    struct svi_random random = {7};
    struct svi_bytes frame = {0};
    double now = NOW;
    for (int i = 0; i < rows; i++, now += step)
        for (int key = 0; key < keys; key++)
            learn(e, key, now, &random, &frame);
    const double bytes = held - bytes_of(frame.data);
    *told = svi_key_memory(svi_stream_settings(e), D, contexts, 2);
    svi_bytes_clear(&frame);
    svi_stream_free(&e);
    assert_true(held == 0);
    return bytes;
}

/* Of each key but the first two, which with as many rows fill what all keys share: a single one would have
 * no more than its share of that. */
static double measure_stacks(const char *const *given, int rows, double *told) {
    const double two = bytes_after(given, 2, rows * (2 + KEYS) / 2, 1, 0, told),
                 all = bytes_after(given, 2 + KEYS, rows, 1, 0, told), each = (all - two) / KEYS;
    print_message("# %d rows: %.0f bytes a key, told %.0f\n", rows, each, *told);
    return each;
}

/* Of each key but the first. */
static double measure(const char *const *given, int rows, double step, int contexts, double *told) {
    const double one = bytes_after(given, 1, rows, step, contexts, told),
                 all = bytes_after(given, 1 + KEYS, rows, step, contexts, told), each = (all - one) / KEYS;
    print_message("# %d rows: %.0f bytes a key, told %.0f\n", rows, each, *told);
    return each;
}

static void assert_told(double each, double told) {
    assert_true(fabs(each / told - 1) <= 0.1);
}

static void a_learner_is_small(void **state) {
    (void)state;
    double told;
    const char *const given[] = {"window", "100", "novelty", "none", "alert.rules", "none", NULL};
    const char *const lone[] = {"window", "100",       "novelty", "none", "alert.rules",
                                "none",   "key.prior", "0",       NULL};
    double each = measure(given, 300, 1, 0, &told);
    assert_true(each <= LEARNER);
    assert_told(each, told);
    each = measure(lone, 300, 1, 0, &told);
    assert_true(each <= LEARNER);
    assert_told(each, told);
}

static void with_novelty_context_and_rules(void **state) {
    (void)state;
    double told, each;
    /* Without the log of alerts, which is the stream's. */
    const char *const given[] = {"window", "100", "context", "0,1", "alert.keep", "0", NULL};
    assert_true(measure(given, 300, 1, 2, &told) <= 125000);
    each = measure(given, 1500, 1800, 2, &told); /* half an hour apart: a month, all times of day */
    assert_told(each, told);
}

static void without_what_is_off(void **state) {
    (void)state;
    double told, each;
    const char *const rules[] = {"window", "100", "novelty", "none", NULL};
    each = measure(rules, 2000, 1800, 0, &told); /* before 128 blocks become 64 */
    assert_told(each, told);
    const char *const novelty[] = {"window", "100",         "alert.rules", "none", "alert.budget",
                                   "none",   "novelty.max", "10",          NULL};
    each = measure(novelty, 4200, 1, 0, &told);
    assert_told(each, told);
}

static void a_bank_is_told(void **state) {
    (void)state;
    double told, each;
    const char *const given[] = {"method", "auto",        "key.shared", "no", "novelty",
                                 "none",   "alert.rules", "none",       NULL};
    each = measure(given, often(5200, 600), 1, 0, &told);
    assert_true(each <= told); /* at most: with ids, weights and labels to come */
}

/* With one bank for all keys. */
static void a_stack_is_small(void **state) {
    (void)state;
    double told;
    /* The bank without members whose size depends on what the rows are, as that of trees does. */
    const char *const given[] = {"method", "auto",        "auto.budget", "1", "novelty",
                                 "none",   "alert.rules", "none",        NULL};
    const double each = measure_stacks(given, 2500, &told); /* its window is full, too */
    assert_told(each, told);
    svi_stream *e = begin(given);
    print_message("# with 8 features: %.0f\n", svi_key_memory(svi_stream_settings(e), 8, 0, 2));
    assert_true(svi_key_memory(svi_stream_settings(e), 8, 0, 2) <= STACKED);
    svi_stream_free(&e);
}

/* Each key has its own rows, which come at the same times. */
static void feed(svi_stream *e, int key, int row, struct svi_random *random, struct svi_bytes *frame) {
    learn(e, key, NOW + row * 600.0, &random[key], frame);
}

static void pack(svi_stream *e, int key, struct svi_bytes *out) {
    char name[16];
    size_t hashed;
    svs_error err;
    snprintf(name, sizeof name, "k%d", key);
    svi_engine *of = svi_stream_engine(e, name, &err);
    assert_non_null(of);
    assert_int_equal(svi_engine_pack(of, out, &hashed, &err), SVS_OK);
}

/* Whoever works where, and however often it is put out: for so long that blocks of rows have become longer.
 */
static void turns_change_nothing(void **state) {
    (void)state;
    const char *const given[] = {
        "window",      "60",         "context",     "3,1", /* nothing that couples them */
        "alert.rules", "stuck,rate", "novelty.max", "12",  "key.prior", "0", "alert.budget", "none", NULL};
    struct svi_random one[3] = {{1}, {2}, {3}}, other[3] = {{1}, {2}, {3}};
    struct svi_bytes frame = {0}, a = {0}, b = {0};
    svi_stream *turns = begin(given), *alone = begin(given);
    for (int i = 0; i < 2300; i++)
        for (int key = 0; key < 3; key++)
            feed(turns, key, i, one, &frame);
    for (int key = 0; key < 3; key++)
        for (int i = 0; i < 2300; i++)
            feed(alone, key, i, other, &frame);
    for (int key = 0; key < 3; key++) {
        a.size = b.size = 0;
        pack(turns, key, &a);
        pack(alone, key, &b);
        assert_int_equal(a.size, b.size);
        assert_memory_equal(a.data, b.data, a.size);
    }
    svi_bytes_clear(&frame);
    svi_bytes_clear(&a);
    svi_bytes_clear(&b);
    svi_stream_free(&turns);
    svi_stream_free(&alone);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_is_small),
        cmocka_unit_test(a_learner_is_small),
        cmocka_unit_test(with_novelty_context_and_rules),
        cmocka_unit_test(without_what_is_off),
        cmocka_unit_test(a_bank_is_told),
        cmocka_unit_test(turns_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
