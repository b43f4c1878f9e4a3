/* Boosted trees in a bank that is saved after any sample and goes on elsewhere: with fits on their way, slow
 * ones on one side, and in place on the other. Both are the same afterwards, byte for byte. */
#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/archived.h"
#include "support/quick.h"

#include "bank/bank.h"
#include "base/random.h"
#include "config/settings.h"
#include "learner/learner_archive.h"
#include "learner/learner_held.h"

enum { D = 4, FROM = 40, TO = 420, ON = 60 };

struct resumed {
    svs_options o;
    svs_learner *host;
    svi_bank *bank;
    int d;
};

static void resumed_open(struct resumed *r, svs_task task, bool in_place, int d) {
    svs_options_default(&r->o);
    r->o.task = task;
    r->o.window = SVI_AUTO_WINDOW;
    r->o.max_features = D + 1;
    r->o.max_classes = 4;
    r->o.labels_ttl = 0;
    const struct svi_bank_options options = {.host = r->o, .seed = 1, .in_place = in_place};
    r->d = d;
    r->host = svs_learner_new(&r->o, d, NULL);
    r->bank = svi_bank_new(&options, d, NULL);
    assert_true(r->host && r->bank);
    svi_learner_relax(r->host, true);
}

static void resumed_close(struct resumed *r) {
    svi_bank_free(&r->bank);
    svs_learner_free(&r->host);
}

static void resumed_archive(struct svi_archive *a, void *user) {
    struct resumed *r = user;
    svi_learner_archive(a, r->host);
    svi_bank_archive(a, r->bank);
}

/* Row i, a function of its number: at times a row is forgotten, a column is new or renewed, and late in the
 * stream there is a third class. */
static void resumed_row(struct resumed *r, int i) {
    struct svi_random random = {(uint64_t)i + 1};
    double x[D + 1];
    svs_step step;
    struct svi_bank_scored scored;
    struct svi_held_sample held;
    for (int j = 0; j <= D; j++)
        x[j] = (double)(svi_random_next(&random) % 1000) / 100 + 1e6 * (j == 1);
    if (i == 150 && r->d == D) {
        r->d = D + 1;
        assert_int_equal(svs_learner_grow(r->host, r->d, NULL), SVS_OK);
        assert_int_equal(svi_bank_grow(r->bank, r->d, NULL), SVS_OK);
    }
    if (i % 97 == 96)
        svi_bank_renew(r->bank, 2);
    if (i % 13 == 12) {
        svi_bank_forget(r->bank, r->host, svs_int(i - 5), i);
        svs_learner_forget(r->host, svs_int(i - 5), i, NULL, NULL);
    }
    const bool high = (x[0] > 5) != (x[2] > 5);
    const svs_value y =
        r->o.task == SVS_REGRESS ? svs_real(1e5 + x[0] * high) : svs_int(i > 200 && x[3] > 8 ? 2 : high);
    const svs_sample s = {.x = x, .d = r->d, .id = svs_int(i), .y = y, .weight = 1};
    assert_int_equal(svs_learner_step(r->host, &s, i, &step, NULL), SVS_OK);
    svi_bank_score(r->bank, x, step.scores, step.rows, step.class_count, &scored);
    assert_true(svi_learner_newest_sample(r->host, &held));
    assert_int_equal(svi_bank_learn(r->bank, r->host, &s, &held, i, NULL), SVS_OK);
}

static void resumed_bytes(struct resumed *r, struct svi_bytes *out) {
    svs_error err = {0};
    out->size = 0;
    if (archived_save(resumed_archive, r, out, &err) != SVS_OK)
        fail_msg("%s", err.text);
}

static struct resumed resumed_from(const struct resumed *live, const struct svi_bytes *bytes, bool in_place,
                                   int i) {
    struct resumed r;
    svs_error err = {0};
    resumed_open(&r, live->o.task, in_place, live->d);
    if (archived_load(resumed_archive, &r, bytes->data, bytes->size, &err) != SVS_OK)
        fail_msg("after %d: %s", i, err.text);
    return r;
}

static void assert_same_bytes(struct resumed *r, const struct svi_bytes *bytes) {
    struct svi_bytes now = {0};
    resumed_bytes(r, &now);
    assert_true(archived_same(&now, bytes));
    svi_bytes_clear(&now);
}

/* After sample i two others go on from the saved state: one that fits in place, and one with slow fits. */
static void goes_on_anywhere(svs_task task) {
    struct resumed live;
    struct svi_bytes bytes = {0};
    resumed_open(&live, task, false, D);
    svi_bank_delay_fits(live.bank, 500);
    for (int i = 0; i < TO; i++) {
        if (i >= FROM && i % often(7, 29) == 0) {
            resumed_bytes(&live, &bytes);
            struct resumed here = resumed_from(&live, &bytes, true, i),
                           slow = resumed_from(&live, &bytes, false, i);
            assert_same_bytes(&here, &bytes);
            svi_bank_delay_fits(slow.bank, 300);
            for (int k = i; k < i + ON; k++) {
                resumed_row(&here, k);
                resumed_row(&slow, k);
            }
            resumed_bytes(&here, &bytes);
            assert_same_bytes(&slow, &bytes);
            const char *wrong = svi_bank_check(here.bank, here.host, INFINITY);
            if (wrong)
                fail_msg("after %d: %s", i, wrong);
            resumed_close(&here);
            resumed_close(&slow);
        }
        resumed_row(&live, i);
    }
    assert_true(svi_bank_tree_waits(live.bank).fits >= 3); /* or nothing was tried */
    svi_bytes_clear(&bytes);
    resumed_close(&live);
}

static void classes_go_on(void **state) {
    (void)state;
    goes_on_anywhere(SVS_CLASSIFY);
}

static void targets_go_on(void **state) {
    (void)state;
    goes_on_anywhere(SVS_REGRESS);
}

/* A whole stream at once, against one that was saved and loaded again and again. */
static void one_life_or_many(void **state) {
    (void)state;
    for (int task = 0; task < 2; task++) {
        struct resumed one, many;
        struct svi_bytes bytes = {0}, other = {0};
        svs_error err = {0};
        resumed_open(&one, (svs_task)task, true, D);
        resumed_open(&many, (svs_task)task, false, D);
        for (int i = 0; i < TO; i++) {
            resumed_row(&one, i);
            if (i >= FROM && i % often(5, 23) == 0) {
                struct resumed next;
                resumed_bytes(&many, &bytes);
                resumed_open(&next, (svs_task)task, i % 2, many.d);
                if (archived_load(resumed_archive, &next, bytes.data, bytes.size, &err) != SVS_OK)
                    fail_msg("after %d: %s", i, err.text);
                resumed_close(&many);
                many = next;
            }
            resumed_row(&many, i);
        }
        resumed_bytes(&one, &bytes);
        resumed_bytes(&many, &other);
        assert_int_equal(bytes.size, other.size);
        assert_memory_equal(bytes.data, other.data, other.size);
        svi_bytes_clear(&bytes);
        svi_bytes_clear(&other);
        resumed_close(&one);
        resumed_close(&many);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(classes_go_on), cmocka_unit_test(targets_go_on),
                                       cmocka_unit_test(one_life_or_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
