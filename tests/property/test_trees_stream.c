/* Boosted trees in a long stream: a million rows through a bank, whose classes change places after 900,000.
 * The windowed member follows within some thousand rows, fits keep their spacing, and memory does not grow.
 * Where memory errors are looked for, a fifteenth of that does; memory is that of the sanitizer there. */
#include "support/quick.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bank/bank.h"
#include "bank/members.h"
#include "base/random.h"
#include "config/settings.h"
#include "learner/learner_held.h"

enum { D = 3, BLOCK = 1000 };
#define BUDGET 4.5 /* microseconds: not all members, the trees among them */

struct long_stream {
    int rows, change; /* in total; until the classes change places */
    svs_learner *host;
    svi_bank *bank;
    struct svi_random random;
    int recent, all;             /* places of the members */
    int wrong_recent, wrong_all; /* in this block */
};

static double stream_uniform(struct long_stream *s) {
    return (double)(svi_random_next(&s->random) >> 11) * 0x1p-53 - 0.5;
}

/* Learns row i: the class is whether two values have the same sign, and after the change whether not. */
static void stream_row(struct long_stream *s, int i) {
    const double x[D] = {stream_uniform(s), stream_uniform(s), stream_uniform(s)};
    const int label = ((x[0] > 0) == (x[1] > 0)) != (i >= s->change);
    const svs_sample sample = {.x = x, .d = D, .y = svs_int(label), .weight = 1};
    svs_step step;
    struct svi_bank_scored scored;
    struct svi_held_sample held;
    assert_int_equal(svs_learner_step(s->host, &sample, i, &step, NULL), SVS_OK);
    svi_bank_score(s->bank, x, step.scores, step.rows, step.class_count, &scored);
    assert_true(svi_learner_newest_sample(s->host, &held)); /* its class is an index, in order of sight */
    s->wrong_recent += (svi_bank_member_scores(s->bank, s->recent, NULL, NULL)[0] > 0) != (held.label == 1);
    s->wrong_all += (svi_bank_member_scores(s->bank, s->all, NULL, NULL)[0] > 0) != (held.label == 1);
    assert_int_equal(svi_bank_learn(s->bank, s->host, &sample, &held, i, NULL), SVS_OK);
}

static long stream_resident(void) {
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

static int member_place(const char *name) {
    for (int i = 0; i < svi_member_count; i++)
        if (strcmp(svi_members[i].name, name) == 0)
            return i;
    fail_msg("no member %s", name);
    return 0;
}

static void a_million_rows(void **state) {
    (void)state;
    svs_options o;
    svs_options_default(&o);
    o.window = SVI_AUTO_WINDOW;
    o.labels_ttl = 0;
    const struct svi_bank_options options = {.host = o, .seed = 1, .budget = BUDGET};
    struct long_stream s = {.rows = often(1000000, 65000),
                            .change = often(900000, 45000),
                            .host = svs_learner_new(&o, D, NULL),
                            .bank = svi_bank_new(&options, D, NULL),
                            .random = {7},
                            .recent = member_place("trees-5000"),
                            .all = member_place("trees-all")};
    assert_non_null(s.host);
    assert_non_null(s.bank);
    svi_learner_relax(s.host, true);
    long resident = 0;
    int recovered = 0, recovered_all = 0;
    int64_t fits = 0;
    const int settled = often(200, 20) * BLOCK; /* all is as large as it will be */
    for (int i = 0; i < s.rows; i++) {
        if (i % BLOCK == 0)
            s.wrong_recent = s.wrong_all = 0;
        stream_row(&s, i);
        if (i % BLOCK != BLOCK - 1)
            continue;
        /* Two bounds cut at zero: 95 of 100 rows right are easy for trees, and half of them for others. */
        if (i < s.change && i > 10 * BLOCK)
            assert_true(s.wrong_recent < BLOCK / 20 && s.wrong_all < BLOCK / 20);
        if (i >= s.change && !recovered && s.wrong_recent < BLOCK / 20)
            recovered = i + 1 - s.change;
        if (i >= s.change && !recovered_all && s.wrong_all < BLOCK / 20)
            recovered_all = i + 1 - s.change;
        if (i == settled - 1) {
            resident = stream_resident();
            fits = svi_bank_tree_waits(s.bank).fits;
        }
    }
    print_message("# recovered after %d rows, all after %d; waits %ld of %ld fits, %.2f s, longest %.4f s\n",
                  recovered, recovered_all, (long)svi_bank_tree_waits(s.bank).count,
                  (long)svi_bank_tree_waits(s.bank).fits, svi_bank_tree_waits(s.bank).seconds,
                  svi_bank_tree_waits(s.bank).longest);
    assert_in_range(recovered, 1, 16 * BLOCK);
    /* Every 5000 and every 20,000 rows at most, and not fewer than half as many. */
    fits = svi_bank_tree_waits(s.bank).fits - fits;
    assert_in_range(fits, (s.rows - settled) / 5000 * 9 / 16, (s.rows - settled) / 4000);
    if (!quick()) {
        assert_in_range(recovered_all, recovered, 80 * BLOCK);
        assert_in_range(stream_resident(), 0, resident + (4 << 20));
    }
    svi_bank_free(&s.bank);
    svs_learner_free(&s.host);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_million_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
