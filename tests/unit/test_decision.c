/* Decisions by price: how prices are written, and the least expected one by brute force. */
#include "support/problem.h"

#include "config/settings.h"
#include "quality/decision.h"

static svs_code parse(const char *text, svs_error *err) {
    static struct svi_decision_cost c;
    err->code = SVS_OK;
    return svi_decision_cost_parse(&c, text, err);
}

static void prices_are_read(void **unused) {
    (void)unused;
    static const char *const good[] = {"none",   "",      "1=20", "ok=1,fail=20", " ok = 1 , ok > fail = 0.5",
                                       "-1>1=3", "a=b=2", "0=0"};
    static const struct {
        const char *text, *why;
    } bad[] = {{"1", "has no price"},           {"1=x", "not a number from 0"},
               {"1=-2", "not a number from 0"}, {"1=nan", "not a number from 0"},
               {"=3", "names no class"},        {"a>=3", "names no class"},
               {"a>a=3", "costs nothing"},      {"a=3,a=4", "is a duplicate"},
               {"a=3,,b=4", "has no price"},    {"a=3,", "has no price"},
               {"0.5=3", "cannot be a label"}};
    svs_error err;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (parse(good[i], &err) != SVS_OK)
            fail_msg("%s: %s", good[i], err.text);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(parse(bad[i].text, &err), SVS_SETTING);
        if (!strstr(err.text, bad[i].why) || !strstr(err.text, "decision.cost"))
            fail_msg("%s: %s", bad[i].text, err.text);
    }
    char many[SVI_TEXT_MAX] = "0=1";
    for (int i = 1; i <= SVI_PRICES_MAX; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), ",%d=1", i);
    assert_int_equal(parse(many, &err), SVS_SETTING);
    assert_non_null(strstr(err.text, "more than 128"));
}

/* The settings of a process are checked as a whole. */
static void settings_are_checked(void **unused) {
    (void)unused;
    struct svi_settings s;
    svs_error err = {0};
    svi_settings_default(&s);
    assert_int_equal(svi_settings_set(&s, "decision.cost", "1=20", &err), SVS_OK);
    assert_int_equal(svi_settings_check(&s, &err), SVS_OK);
    s.task = SVS_REGRESS;
    assert_int_equal(svi_settings_check(&s, &err), SVS_SETTING);
    svi_settings_default(&s);
    strcpy(s.decision_cost, "1:20");
    assert_int_equal(svi_settings_check(&s, &err), SVS_SETTING);
}

static const svs_value *classes_of_test(void) {
    static svs_value v[4];
    v[0] = svs_int(7);
    v[1] = svs_str("fail");
    v[2] = svs_str("3"); /* text that looks like a number: the setting means it all the same */
    v[3] = svs_int(-1);
    return v;
}

/* 7=2, fail=20, 3>fail=0.25, 3>7=5, -1: 1 */
static double price(int truth, int decision) {
    static const double missed[] = {2, 20, 1, 1};
    if (truth == decision)
        return 0;
    return truth == 2 && decision == 1 ? 0.25 : truth == 2 && decision == 0 ? 5 : missed[truth];
}

static void least_expected_price(void **unused) {
    (void)unused;
    struct svi_decision d = {0};
    uint64_t seed = 8;
    int other = 0;
    assert_int_equal(svi_decision_new(&d, 6, NULL), SVS_OK);
    svi_decision_set(&d, "7=2,fail=20,3>fail=0.25,3>7=5,never=1000,never>7=3");
    for (int k = 0; k < 4; k++)
        svi_decision_know(&d, classes_of_test()[k]);
    for (int i = 0; i < 20000; i++) {
        double p[4], sum = 0, best = INFINITY;
        int count = 2 + i % 3, least = -1, most = 0;
        for (int k = 0; k < count; k++)
            sum += p[k] = -log(test_uniform(&seed));
        for (int k = 0; k < count; k++) {
            p[k] /= sum;
            most = p[k] > p[most] ? k : most;
        }
        for (int j = 0; j < count; j++) {
            double expected = 0;
            for (int k = 0; k < count; k++)
                expected += p[k] * price(k, j);
            if (expected < best) {
                best = expected;
                least = j;
            }
        }
        assert_int_equal(svi_decision_of(&d, p, count, most), least);
        other += least != most;
    }
    assert_true(other > 2000);
    svi_decision_set(&d, "fail=3");
    for (int k = 0; k < 4; k++)
        svi_decision_know(&d, classes_of_test()[k]);
    const double even[2] = {0.75, 0.25}; /* both cost the same: what the score says */
    for (int usual = 0; usual < 2; usual++)
        assert_int_equal(svi_decision_of(&d, even, 2, usual), usual);
    svi_decision_set(&d, "none");
    assert_false(svi_decision_set_up(&d));
    svi_decision_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prices_are_read),
        cmocka_unit_test(settings_are_checked),
        cmocka_unit_test(least_expected_price),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
