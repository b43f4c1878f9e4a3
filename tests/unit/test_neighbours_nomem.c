/* The nearest neighbours among the last rows, against a search in double precision through all rows: at
 * random moments of a walk with equal rows, rows that are taken out, new and renewed columns, an emptied ring
 * and a reloaded one, by every instruction set. Allocations fail where they can. Linked with --wrap. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/nomem.h"

#include "bank/neighbours.h"
#include "base/random.h"
#include "support/archived.h"

#define MOST 128 /* columns */
#define ROOM 4096

static const svs_isa isas[] = {SVS_ISA_GENERIC, SVS_ISA_AVX2, SVS_ISA_AVX512, SVS_ISA_BEST};

struct truth {
    struct svi_neighbours n;
    float rows[ROOM][MOST];
    bool live[ROOM];
    int64_t oldest, pushed;
    struct svi_random random;
    bool alike; /* values are 1 / 128 of that: hundreds of rows share a sketch */
    int grid;   /* values are multiples of 1 / grid, so that distances are often equal, and exact */
};

static struct truth t;

static float some_value(void) {
    const int span = 6 * t.grid;
    const float far = (svi_random_below(&t.random, 50) == 0 ? 3.0F : 1.0F) / (t.alike ? 128.0F : 1.0F);
    return far * ((float)svi_random_below(&t.random, (uint32_t)span + 1) - (float)span / 2) / (float)t.grid;
}

static void some_row(float *z, int d) {
    memset(z, 0, MOST * sizeof *z);
    if (t.pushed > 0 && svi_random_below(&t.random, 4) == 0) { /* near one that was */
        const uint32_t back = svi_random_below(&t.random, t.pushed < 300 ? (uint32_t)t.pushed : 300);
        memcpy(z, t.rows[t.pushed - 1 - back], MOST * sizeof *z);
        if (d > 0 && svi_random_below(&t.random, 2))
            z[svi_random_below(&t.random, (uint32_t)d)] = some_value();
        return;
    }
    for (int j = 0; j < d; j++)
        z[j] = some_value();
}

static void push(const float *z) {
    assert_int_equal(svi_neighbours_reserve(&t.n, NULL), SVS_OK);
    memcpy(t.rows[t.pushed], z, MOST * sizeof *z);
    t.live[t.pushed] = true;
    assert_int_equal(svi_neighbours_push(&t.n, z, (int)(t.pushed % 7), 0.5 * (double)t.pushed), t.pushed);
    t.pushed++;
    if (t.pushed - t.oldest > t.n.capacity)
        t.oldest++;
}

/* The next best after `after` by (distance, newest first), by looking at all. */
static int64_t next_best(const float *z, int64_t low, double *distance, int64_t after) {
    int64_t best = -1;
    double least = HUGE_VAL, before = *distance;
    for (int64_t i = t.pushed - 1; i >= low; i--) {
        double sum = 0;
        for (int j = 0; t.live[i] && j < MOST; j++)
            sum += ((double)z[j] - t.rows[i][j]) * ((double)z[j] - t.rows[i][j]);
        const bool later = sum > before || (sum == before && i < after);
        if (t.live[i] && later && sum < least) {
            least = sum;
            best = i;
        }
    }
    *distance = least;
    return best;
}

static void expect(const float *z, int recent, int k, const struct svi_neighbour *out, int count) {
    const int64_t low = t.pushed - recent > t.oldest ? t.pushed - recent : t.oldest;
    double distance = -1;
    int64_t number = INT64_MAX;
    for (int i = 0; i < k; i++) {
        number = next_best(z, low, &distance, number);
        assert_int_equal(i < count, number >= 0);
        if (number < 0)
            return;
        assert_int_equal(out[i].number, number);
        assert_true(out[i].distance == (float)distance); /* few bits: sums are exact */
        assert_int_equal(out[i].label, number % 7);
        assert_true(out[i].target == 0.5 * (double)number);
    }
    assert_int_equal(count, k);
}

/* Several ranges in one call, in any order, some with the same k. */
static void ask(void) {
    float z[MOST];
    struct svi_neighbours_query of[4];
    const int same = 1 + (int)svi_random_below(&t.random, 8);
    some_row(z, t.n.d);
    for (int i = 0; i < 4; i++) {
        of[i].recent = svi_random_below(&t.random, 3) ? (int)svi_random_below(&t.random, 400) : -1;
        of[i].k = svi_random_below(&t.random, 3) ? same : 1 + (int)svi_random_below(&t.random, 8);
    }
    svi_neighbours_find(&t.n, z, of, 4);
    for (int i = 0; i < 4; i++)
        expect(z, of[i].recent < 0 ? INT32_MAX : of[i].recent, of[i].k, of[i].row, of[i].found);
}

static void archive(struct svi_archive *a, void *n) {
    svi_neighbours_archive(a, n, 7);
}

static void reload(svs_isa isa) {
    struct svi_bytes bytes = {0}, again = {0};
    struct svi_neighbours other;
    svs_error err;
    assert_int_equal(archived_save(archive, &t.n, &bytes, &err), SVS_OK);
    assert_int_equal(svi_neighbours_init(&other, t.n.capacity, 0, isa, &err), SVS_OK);
    if (archived_load(archive, &other, bytes.data, bytes.size, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(archived_save(archive, &other, &again, &err), SVS_OK);
    assert_true(archived_same(&bytes, &again));
    svi_neighbours_clear(&t.n);
    t.n = other;
    svi_bytes_clear(&bytes);
    svi_bytes_clear(&again);
}

static void one_step(svs_isa isa) {
    float z[MOST];
    some_row(z, t.n.d);
    push(z);
    const uint32_t what = svi_random_below(&t.random, 400);
    if (what < 40) {
        const int64_t number = t.pushed - (int64_t)svi_random_below(&t.random, 500);
        svi_neighbours_remove(&t.n, number);
        if (number >= 0 && number < t.pushed)
            t.live[number] = false;
    } else if (what < 44 && t.n.d < MOST) {
        const int more = t.n.d + 1 + (int)svi_random_below(&t.random, 9);
        assert_int_equal(svi_neighbours_grow(&t.n, more < MOST ? more : MOST, NULL), SVS_OK);
    } else if (what < 46 && t.n.d > 0) {
        const uint32_t j = svi_random_below(&t.random, (uint32_t)t.n.d);
        svi_neighbours_renew(&t.n, (int)j);
        for (int64_t i = 0; i < t.pushed; i++)
            t.rows[i][j] = 0;
    } else if (what < 47) {
        svi_neighbours_empty(&t.n);
        t.oldest = t.pushed;
    } else if (what < 50)
        reload(isa);
    else if (what < 52) { /* takes a number and nothing else */
        z[0] = what == 50 ? NAN : HUGE_VALF;
        push(z);
        t.live[t.pushed - 1] = t.n.d == 0;
        t.rows[t.pushed - 1][0] = 0;
    }
}

static void finds_what_a_search_through_all_rows_finds(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        for (int kind = 0; kind < 8; kind++) {
            static const int d[] = {0, 3, 8, 27, 54, 70, 8, 27},
                             capacity[] = {50, 64, 700, 1000, 130, 300, 1000, 1000};
            static const int grid[] = {1, 1, 64, 16, 1, 8, 8, 8};
            t = (struct truth){.random = {100 + (uint64_t)kind}, .alike = kind >= 6, .grid = grid[kind]};
            if (svi_neighbours_init(&t.n, capacity[kind], d[kind], isas[i], NULL) != SVS_OK)
                continue;
            while (t.pushed < 1500) {
                one_step(isas[i]);
                if (svi_random_below(&t.random, 16) == 0)
                    ask();
            }
            svi_neighbours_clear(&t.n);
        }
}

static void a_query_that_is_not_finite_finds_nothing(void **unused) {
    (void)unused;
    float z[MOST] = {0};
    struct svi_neighbours_query of[] = {{.recent = 10, .k = 1}, {.recent = -1, .k = 5}};
    t = (struct truth){.grid = 1};
    assert_int_equal(svi_neighbours_init(&t.n, 100, 3, SVS_ISA_BEST, NULL), SVS_OK);
    of[0].found = of[1].found = 1;
    svi_neighbours_find(&t.n, z, of, 2);
    assert_int_equal(of[0].found + of[1].found, 0);
    push(z);
    z[2] = NAN;
    svi_neighbours_find(&t.n, z, of, 2);
    assert_int_equal(of[0].found + of[1].found, 0);
    z[2] = 0;
    svi_neighbours_find(&t.n, z, of, 2);
    assert_int_equal(of[0].found, 1);
    assert_int_equal(of[1].found, 1);
    svi_neighbours_clear(&t.n);
}

/* Each call that takes memory, its n-th allocation failing: nothing has changed, and it can be made again. */
static void failing_allocations_change_nothing(void **unused) {
    (void)unused;
    struct svi_bytes before = {0}, after = {0};
    svs_error err;
    float z[MOST] = {1, 2};
    t = (struct truth){.grid = 1};
    for (long nth = 0, whole = 0; !whole; nth++) {
        left = nth;
        const svs_code code = svi_neighbours_init(&t.n, 500, 2, SVS_ISA_BEST, &err);
        whole = left >= 0;
        left = -1;
        assert_int_equal(code, whole ? SVS_OK : SVS_NO_MEMORY);
    }
    for (int i = 0; i < 64; i++)
        push(z);
    for (int kind = 0; kind < 2; kind++)
        for (long nth = 0, whole = 0; !whole; nth++) {
            assert_int_equal(archived_save(archive, &t.n, &before, &err), SVS_OK);
            left = nth;
            const svs_code code =
                kind ? svi_neighbours_grow(&t.n, 40, &err) : svi_neighbours_reserve(&t.n, &err);
            whole = left >= 0;
            left = -1;
            assert_int_equal(code, whole ? SVS_OK : SVS_NO_MEMORY);
            assert_int_equal(archived_save(archive, &t.n, &after, &err), SVS_OK);
            assert_true((kind && whole) || archived_same(&before, &after));
        }
    for (long nth = 0, whole = 0; !whole; nth++) {
        struct svi_neighbours other;
        assert_int_equal(svi_neighbours_init(&other, 500, 2, SVS_ISA_BEST, &err), SVS_OK);
        left = nth;
        const svs_code code = archived_load(archive, &other, after.data, after.size, &err);
        whole = left >= 0;
        left = -1;
        assert_int_equal(code, whole ? SVS_OK : SVS_NO_MEMORY);
        svi_neighbours_clear(&other);
    }
    svi_neighbours_clear(&t.n);
    svi_bytes_clear(&before);
    svi_bytes_clear(&after);
}

/* Any byte of an archive changed: it loads or it is refused, and what is loaded can be asked. */
static void damaged_archives_do_no_harm(void **unused) {
    (void)unused;
    struct svi_bytes bytes = {0};
    svs_error err;
    float z[MOST] = {1, 2};
    t = (struct truth){.grid = 1};
    assert_int_equal(svi_neighbours_init(&t.n, 100, 2, SVS_ISA_BEST, NULL), SVS_OK);
    for (int i = 0; i < 20; i++)
        push(z);
    assert_int_equal(archived_save(archive, &t.n, &bytes, &err), SVS_OK);
    for (size_t at = 0; at < bytes.size; at++)
        for (int value = 0x7f; value < 0x101; value += 0x80) {
            struct svi_neighbours other;
            struct svi_neighbours_query of = {.recent = -1, .k = 5};
            const uint8_t was = bytes.data[at];
            bytes.data[at] = (uint8_t)(was ^ value);
            assert_int_equal(svi_neighbours_init(&other, 100, 2, SVS_ISA_BEST, NULL), SVS_OK);
            if (archived_load(archive, &other, bytes.data, bytes.size, &err) == SVS_OK)
                svi_neighbours_find(&other, t.rows[0], &of, 1);
            svi_neighbours_clear(&other);
            bytes.data[at] = was;
        }
    svi_neighbours_clear(&t.n);
    svi_bytes_clear(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_a_search_through_all_rows_finds),
        cmocka_unit_test(a_query_that_is_not_finite_finds_nothing),
        cmocka_unit_test(failing_allocations_change_nothing),
        cmocka_unit_test(damaged_archives_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
