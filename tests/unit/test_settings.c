/* Every row of the settings table, contradictions, and the YAML file with all that can be wrong with it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bank/members.h"
#include "config/class_weights.h"
#include "config/settings.h"

static const struct svi_setting *table;
static int rows;

static int get_table(void **state) {
    (void)state;
    table = svi_settings_table;
    rows = svi_settings_count;
    return 0;
}

static struct svi_settings defaults(void) {
    struct svi_settings s;
    svi_settings_default(&s);
    return s;
}

static void is_set(struct svi_settings *s, const char *key, const char *value) {
    svs_error err = {.text = ""};
    if (svi_settings_set(s, key, value, &err) != SVS_OK)
        fail_msg("%s: %s", key, err.text);
}

/* The refusal says `part`, and nothing is changed. */
static void is_refused(const char *key, const char *value, const char *part) {
    struct svi_settings s = defaults(), before = s;
    svs_error err = {.text = ""};
    assert_int_equal(svi_settings_set(&s, key, value, &err), SVS_SETTING);
    assert_int_equal(err.code, SVS_SETTING);
    if (!strstr(err.text, part))
        fail_msg("'%s' does not say '%s'", err.text, part);
    assert_memory_equal(&s, &before, sizeof s);
}

static void test_keys_are_those_of_the_contract(void **state) {
    static const char *const expected[][2] = {{"in", "tcp://127.0.0.1:5555"},
                                              {"in.mode", "pull"},
                                              {"in.format", "auto"},
                                              {"in.topic", ""},
                                              {"out", "tcp://127.0.0.1:5556"},
                                              {"ctl", "tcp://127.0.0.1:5557"},
                                              {"stream", "default"},
                                              {"task", "classify"},
                                              {"method", "auto"},
                                              {"C", "1"},
                                              {"window", "1000"},
                                              {"window.seconds", "0"},
                                              {"forget", "1"},
                                              {"scale", "standard"},
                                              {"features", ""},
                                              {"label", "label"},
                                              {"id", ""},
                                              {"ts", ""},
                                              {"weight", ""},
                                              {"missing", "auto"},
                                              {"publish.every", "1000"},
                                              {"publish.seconds", "1"},
                                              {"scores", "all"},
                                              {"labels.ttl", "3600"},
                                              {"labels.max", "10000"},
                                              {"ts.ahead", "60"},
                                              {"max.message", "1 MiB"},
                                              {"max.features", "1024"},
                                              {"max.classes", "64"},
                                              {"max.sources", "1024"},
                                              {"threads", "0"}};
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const struct svi_setting *row = svi_settings_row(expected[i][0]);
        assert_non_null(row);
        assert_string_equal(row->value, expected[i][1]);
    }
    assert_non_null(svi_settings_row("seed"));
}

static void test_rows_are_well_formed(void **state) {
    (void)state;
    for (int i = 0; i < rows; i++) {
        assert_true(table[i].key[0] && table[i].text[0] && table[i].unit);
        /* Help joins `text` with range and default; `advice` is a sentence of its own. */
        assert_int_not_equal(table[i].text[strlen(table[i].text) - 1], '.');
        assert_int_equal(table[i].advice[strlen(table[i].advice) - 1], '.');
        assert_true(table[i].offset + table[i].size <= offsetof(struct svi_settings, given));
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(table[i].key, table[k].key);
            bool apart = table[i].offset >= table[k].offset + table[k].size ||
                         table[k].offset >= table[i].offset + table[i].size;
            assert_true(apart);
        }
    }
}

/* Whatever was in the memory before, after the defaults the whole struct is the same: no field was left out.
 */
static void test_default_sets_everything(void **state) {
    struct svi_settings a, b;
    (void)state;
    memset(&a, 0x5a, sizeof a);
    memset(&b, 0xa5, sizeof b);
    svi_settings_default(&a);
    svi_settings_default(&b);
    assert_memory_equal(&a, &b, sizeof a);
    for (int i = 0; i < SVI_SETTING_MAX; i++)
        assert_false(a.given[i]);
    assert_int_equal(a.max_message, 1048576);
    assert_int_equal(a.scores, 1);
    assert_int_equal(svi_settings_check(&a, NULL), SVS_OK);
}

static void test_defaults_are_in_range(void **state) {
    (void)state;
    for (int i = 0; i < rows; i++) {
        struct svi_settings s = defaults();
        char value[256];
        is_set(&s, table[i].key, table[i].value);
        assert_true(svi_settings_given(&s, &table[i]));
        for (int k = 0; k < SVI_SETTING_MAX; k++)
            assert_int_equal(s.given[k], k == i ? SVI_GIVEN : SVI_NOT_GIVEN);
        assert_string_equal(svi_settings_value(&s, &table[i], value, sizeof value), table[i].value);
    }
}

static bool numeric(const struct svi_setting *row) {
    return row->type >= SVI_SET_INTEGER;
}

static void test_every_row_refuses_bad_values(void **state) {
    static const char *const no_number[] = {"",     "abc", "1x",  "1 2", " 1",   "1 ",  "nan",
                                            "-nan", "inf", "0x1", "1,5", "1e9e", "1e+", "--1"};
    char range[128];
    (void)state;
    for (int i = 0; i < rows; i++) {
        svi_settings_range(&table[i], range, sizeof range);
        for (size_t k = 0; numeric(&table[i]) && k < sizeof no_number / sizeof no_number[0]; k++)
            is_refused(table[i].key, no_number[k], range);
        if (table[i].words)
            is_refused(table[i].key, "bogus", range);
        if (!numeric(&table[i]))
            is_refused(table[i].key, "a\nb", range);
        is_refused(table[i].key, "\xff", range);
    }
}

static void test_ranges_are_inclusive(void **state) {
    (void)state;
    for (int i = 0; i < rows; i++) {
        const struct svi_setting *row = &table[i];
        struct svi_settings s = defaults();
        char text[64], beyond[64];
        if (!numeric(row))
            continue;
        for (int side = 0; side < 2; side++) {
            double bound = side ? row->high : row->low;
            double next = row->type == SVI_SET_NUMBER ? nextafter(bound, side ? INFINITY : -INFINITY)
                                                      : bound + (side ? 2 : -1);
            snprintf(text, sizeof text, "%.17g", bound);
            snprintf(beyond, sizeof beyond, "%.17g", next);
            is_set(&s, row->key, text);
            is_refused(row->key, beyond, "out of range");
        }
        is_refused(row->key, row->type == SVI_SET_NUMBER ? "1e999" : "99999999999999999999", "out of range");
    }
}

static void round_trip(const struct svi_setting *row, const char *text) {
    struct svi_settings a = defaults(), b = a;
    char value[sizeof a.features], again[sizeof a.features];
    is_set(&a, row->key, text);
    svi_settings_value(&a, row, value, sizeof value);
    is_set(&b, row->key, value);
    assert_memory_equal(&a, &b, sizeof a);
    assert_string_equal(svi_settings_value(&b, row, again, sizeof again), value);
}

static void test_values_survive_text(void **state) {
    static const char *const samples[][5] = {
        [SVI_SET_TEXT] = {"a", "a b", "na\xc3\xafve,\"\\ '", "", "# : -"},
        [SVI_SET_NAME] = {"a", "A-Z_09", "-", "0", "null"},
        [SVI_SET_ADDRESS] = {"ipc:///tmp/a b", "tcp://*:1", "inproc://x", "tcp://[::1]:5", "tcp://h:*"},
        [SVI_SET_INTEGER] = {"2", "+3", "17", "19", "20"},
        [SVI_SET_NUMBER] = {"0.1", "1e-3", "0.3333333333333333", "0.25", "0.0072973525693"},
        [SVI_SET_BYTES] = {"4096", "65537", "1025 KiB", "64KiB", "3 MiB"},
    };
    (void)state;
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < 5 && table[i].type != SVI_SET_CHOICE && (!table[i].words || numeric(&table[i]));
             k++)
            round_trip(&table[i], samples[table[i].type][k]);
}

static void test_choices_survive_text(void **state) {
    (void)state;
    for (int i = 0; i < rows; i++)
        for (const struct svi_word *w = table[i].words; w && w->word; w++) {
            round_trip(&table[i], w->word);
            if (table[i].type == SVI_SET_CHOICE)
                assert_string_equal(svi_settings_word(table[i].key, w->value), w->word);
        }
    assert_null(svi_settings_word("in.mode", 99));
}

static void test_bytes_in_all_spellings(void **state) {
    static const char *const same[] = {"1048576", "1048576B", "1024KiB", "1024 KiB", "1MiB", "1 MiB"};
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        struct svi_settings s = defaults();
        s.max_message = 0;
        is_set(&s, "max.message", same[i]);
        assert_int_equal(s.max_message, 1048576);
    }
    is_refused("max.message", "1 MB", "KiB, MiB or GiB");
    is_refused("max.message", "1  MiB", "KiB, MiB or GiB");
    is_refused("max.message", "1 ", "KiB, MiB or GiB");
    is_refused("max.message", "9999999999999 GiB", "out of range");
    is_refused("max.message", "-1 MiB", "out of range");
}

static void test_scores(void **state) {
    struct svi_settings s = defaults();
    (void)state;
    is_set(&s, "scores", "none");
    assert_int_equal(s.scores, 0);
    is_set(&s, "scores", "all");
    assert_int_equal(s.scores, 1);
    is_set(&s, "scores", "10");
    assert_int_equal(s.scores, 10);
    round_trip(svi_settings_row("scores"), "1");
    round_trip(svi_settings_row("scores"), "0");
    round_trip(svi_settings_row("scores"), "10");
    is_refused("scores", "some", "all, none, or 0 to");
    is_refused("scores", "-1", "out of range");
}

static void test_texts_have_limits(void **state) {
    char name[66], address[SVI_TEXT_MAX + 1];
    struct svi_settings s = defaults();
    (void)state;
    memset(name, 'a', 65);
    name[65] = '\0';
    is_refused("stream", name, "1 to 64");
    name[64] = '\0';
    is_set(&s, "stream", name);
    is_refused("stream", "", "empty");
    is_refused("stream", "a.b", "character");
    is_refused("stream", "\xc3\xa4", "character");
    memset(address, 'a', SVI_TEXT_MAX);
    address[SVI_TEXT_MAX] = '\0';
    is_refused("label", address, "too long");
    address[SVI_TEXT_MAX - 1] = '\0';
    is_set(&s, "label", address);
    is_refused("in", "file.csv", "not an address");
    is_refused("in", "tcp://", "not an address");
    is_refused("in", "://a", "not an address");
    is_refused("out", "-", "not an address");
    is_refused("in", "tcp://127.0.0.1:65536", "port from 0 to 65535");
    is_refused("in", "tcp://127.0.0.1:5555x", "port from");
    is_refused("in", "tcp://127.0.0.1:", "port from");
    is_refused("in", "tcp://127.0.0.1", "port from");
    is_set(&s, "in", "-");
    is_refused("label", "a\xe2\x80\xa8", "control");
    is_refused("label", "a\xc2\x85", "control");
}

static void test_unknown_keys(void **state) {
    char huge[5000];
    (void)state;
    is_refused("windw", "1", "'windw', the nearest known one is 'window'");
    is_refused("c", "1", "'C'");
    is_refused("publish", "1", "'publish.every'");
    is_refused("ttl", "1", "'labels.ttl'");
    is_refused("", "1", "unknown setting ''");
    memset(huge, 'x', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    is_refused(huge, "1", "unknown setting 'xxx");
    is_refused("a\x1b[0m", "1", "\\x1b");
}

static void contradicts(const char *const (*pairs)[2], const char *first, const char *second) {
    struct svi_settings s = defaults();
    svs_error err = {.text = ""};
    for (; (*pairs)[0]; pairs++)
        is_set(&s, (*pairs)[0], (*pairs)[1]);
    svi_settings_settle_method(&s);
    assert_int_equal(svi_settings_check(&s, &err), SVS_SETTING);
    if (!strstr(err.text, first) || !strstr(err.text, second))
        fail_msg("'%s' does not name %s and %s", err.text, first, second);
}

#define CONTRADICTS(first, second, ...)                                                                      \
    contradicts((const char *const[][2]){__VA_ARGS__, {NULL, NULL}}, first, second)

static void test_contradictions(void **state) {
    (void)state;
    CONTRADICTS("falsvm", "task", {"method", "falsvm"}, {"task", "regress"});
    CONTRADICTS("window.seconds", "window is 0", {"window.seconds", "5"}, {"window", "0"});
    CONTRADICTS("method auto does not use window", "alsvm", {"method", "auto"}, {"window", "1000"});
    CONTRADICTS("method auto does not use C", "alsvm", {"C", "2"}, {"method", "auto"});
    CONTRADICTS("method auto does not use serve", "alsvm", {"method", "auto"}, {"serve", "refit"});
    CONTRADICTS("auto.budget", "method auto", {"method", "alsvm"}, {"auto.budget", "5"});
    CONTRADICTS("auto.budget", "method auto", {"window", "500"}, {"auto.budget", "5"});
    CONTRADICTS("serve linear", "method auto", {"method", "alsvm"}, {"serve", "linear"});
    CONTRADICTS("publish.sums", "method falsvm", {"publish.sums", "1"}, {"method", "falsvm"});
    CONTRADICTS("publish.sums", "forget 0.99", {"publish.sums", "1"}, {"forget", "0.99"});
    CONTRADICTS("publish.sums", "key.prior", {"publish.sums", "1"}, {"key", "k"}, {"key.prior", "0"});
    CONTRADICTS("merge.window 50", "keys", {"publish.sums", "1"}, {"merge.window", "50"}, {"key", "k"},
                {"method", "auto"});
    CONTRADICTS("merge.window 50", "window, 1000", {"publish.sums", "1"}, {"merge.window", "50"}, {"C", "2"});
    CONTRADICTS("in ", "out", {"in", "tcp://127.0.0.1:5556"});
    CONTRADICTS("in ", "ctl", {"in", "tcp://127.0.0.1:5557"});
    CONTRADICTS("out", "ctl", {"out", "ipc://a"}, {"ctl", "ipc://a"});
    CONTRADICTS("in.mode sub", "in is -", {"in", "-"}, {"in.mode", "sub"});
    CONTRADICTS("in.mode router", "in is -", {"in", "-"}, {"in.mode", "router"});
    CONTRADICTS("in.topic", "in.mode sub", {"in.topic", "a"});
    CONTRADICTS("class.weight", "regress", {"class.weight", "balanced"}, {"task", "regress"});
    CONTRADICTS("class.weight", "regress", {"class.weight", "1=2"}, {"task", "regress"});
    CONTRADICTS("class.weight", "'bogus'", {"class.weight", "bogus"});
    CONTRADICTS("features", "max.features", {"features", "a,b,c"}, {"max.features", "2"});
}

/* merge.window knows the members whose sums add up: those of the table of members that forget nothing. */
static void test_merge_windows(void **state) {
    struct svi_settings s = defaults();
    (void)state;
    for (int64_t window = 0; window <= 6000; window++) {
        bool member = false;
        for (int i = 0; i < svi_member_count; i++)
            member |= strcmp(svi_members[i].kind[0], "alsvm") == 0 &&
                      !strstr(svi_members[i].name, "fading") && svi_members[i].window[0] == window;
        s.publish_sums = 1;
        s.merge_window = window;
        assert_int_equal(svi_settings_check(&s, NULL), member ? SVS_OK : SVS_SETTING);
        s.publish_sums = 0;
        assert_int_equal(svi_settings_check(&s, NULL), SVS_OK);
    }
}

static void test_no_contradictions(void **state) {
    struct svi_settings s = defaults();
    (void)state;
    is_set(&s, "in.topic", "a");
    is_set(&s, "in.mode", "sub");
    is_set(&s, "publish.every", "0");
    is_set(&s, "publish.seconds", "0");
    is_set(&s, "in", "tcp://127.0.0.1:*");
    is_set(&s, "out", "tcp://127.0.0.1:*");
    is_set(&s, "ctl", "tcp://127.0.0.1:*");
    is_set(&s, "features", "a,b,c");
    is_set(&s, "max.features", "3");
    is_set(&s, "window", "0");
    assert_string_equal(svi_settings_settle_method(&s), "window");
    assert_int_equal(s.method, SVI_METHOD_ALSVM);
    assert_int_equal(svi_settings_check(&s, NULL), SVS_OK);
    s = defaults();
    is_set(&s, "in", "-");
    assert_int_equal(svi_settings_check(&s, NULL), SVS_OK);
}

static void test_learner_options(void **state) {
    struct svi_settings s = defaults();
    svs_options o, usual;
    (void)state;
    svs_options_default(&usual);
    svi_settings_learner(&s, &o); /* the host of a bank */
    assert_true(o.window == SVI_AUTO_WINDOW && o.C == usual.C && o.rule == usual.rule);
    is_set(&s, "method", "alsvm");
    svi_settings_learner(&s, &o);
    assert_true(o.task == usual.task && o.rule == usual.rule && o.scale == usual.scale && o.isa == usual.isa);
    assert_true(o.C == usual.C && o.window == usual.window && o.forget == usual.forget);
    assert_true(o.labels_ttl == usual.labels_ttl && o.labels_max == usual.labels_max);
    assert_true(o.max_features == usual.max_features && o.max_classes == usual.max_classes);
    is_set(&s, "method", "falsvm");
    is_set(&s, "scale", "none");
    is_set(&s, "C", "0.25");
    is_set(&s, "window.seconds", "7");
    svi_settings_learner(&s, &o);
    assert_true(o.rule == SVS_FALSVM && o.scale == SVS_SCALE_NONE && o.C == 0.25 && o.window_seconds == 7);
    is_set(&s, "task", "regress");
    svi_settings_learner(&s, &o);
    assert_int_equal(o.task, SVS_REGRESS);
}

static void test_class_weights(void **state) {
    static struct svi_class_weights w;
    (void)state;
    assert_int_equal(svi_class_weights_read("none", &w, NULL), SVS_OK);
    assert_true(w.rule == SVS_CLASSES_ALIKE && w.count == 0);
    assert_int_equal(svi_class_weights_read("balanced", &w, NULL), SVS_OK);
    assert_true(w.rule == SVS_CLASSES_BALANCED && w.count == 0);
    assert_int_equal(svi_class_weights_read("ok=1,-1=2.5e1,a=b=0.125", &w, NULL), SVS_OK);
    assert_true(w.rule == SVS_CLASSES_GIVEN && w.count == 4);
    const svs_class_weight expected[] = {
        {svs_str("ok"), 1}, {svs_int(-1), 25}, {svs_str("-1"), 25}, {svs_str("a=b"), 0.125}};
    for (int i = 0; i < 4; i++)
        assert_true(svs_value_equal(w.of[i].label, expected[i].label) &&
                    w.of[i].weight == expected[i].weight);
    const struct {
        const char *text, *part;
    } bad[] = {
        {"", "''"},
        {"=1", "'=1'"},
        {"ok", "'ok'"},
        {"ok=1,", "''"},
        {"ok=1,,fail=2", "''"},
        {"ok=", "'ok='"},
        {"ok=x", "'ok=x'"},
        {"ok=1x", "above 0"},
        {"ok= 1", "above 0"},
        {"ok=0x10", "above 0"},
        {"ok=0", "above 0"},
        {"ok=-1", "above 0"},
        {"ok=nan", "above 0"},
        {"ok=1e999", "1e100"},
        {"ok=1e101", "1e100"},
        {"ok=1,fail=2,ok=1", "class ok has two weights"},
        {"1=1,+1=2", "class 1 has two weights, 1 and 2"},
        {"12345678901234567890123456789012345678901234567890123456789012345=1", "64 bytes"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        svs_error err = {.text = ""};
        assert_int_equal(svi_class_weights_read(bad[i].text, &w, &err), SVS_SETTING);
        if (!strstr(err.text, bad[i].part) || !strstr(err.text, "class.weight"))
            fail_msg("'%s' does not say '%s'", err.text, bad[i].part);
    }
}

/* As many entries as a text of the setting can have. */
static void test_class_weights_have_room(void **state) {
    static struct svi_class_weights w;
    char text[SVI_TEXT_MAX] = "";
    size_t at = 0;
    (void)state;
    for (int i = 0; at + 8 < sizeof text; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%d=1", i ? "," : "", i);
    assert_int_equal(svi_class_weights_read(text, &w, NULL), SVS_OK);
    assert_in_range(w.count, 300, SVI_CLASS_WEIGHTS_MAX);
}

static void test_class_weights_of_a_file(void **state) {
    static struct svi_class_weights w;
    const svs_value classes[] = {svs_int(1), svs_str("2"), svs_str("x")};
    double factors[3];
    svs_error err = {.text = ""};
    (void)state;
    assert_int_equal(svi_class_weights_read("2=5,1=0.5", &w, NULL), SVS_OK);
    assert_int_equal(svi_class_weights_factors(&w, classes, 3, factors, NULL), SVS_OK);
    assert_true(factors[0] == 0.5 && factors[1] == 5 && factors[2] == 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(svi_class_weights_read(i ? "1=2,y=3" : "x=2,4=3", &w, NULL), SVS_OK);
        assert_int_equal(svi_class_weights_factors(&w, classes, 3, factors, &err), SVS_SETTING);
        assert_non_null(strstr(err.text, i ? "class y" : "class 4"));
    }
}

static void test_class_weights_of_a_learner(void **state) {
    static struct svi_class_weights w;
    struct svi_settings s = defaults();
    svs_options o;
    (void)state;
    svi_settings_learner(&s, &o);
    is_set(&s, "class.weight", "fail=20");
    assert_int_equal(svi_settings_learning(&s, &w, &o, NULL), SVS_OK);
    assert_true(o.class_rule == SVS_CLASSES_GIVEN && o.class_weight == w.of && o.class_weight_count == 1);
    s = defaults();
    assert_int_equal(svi_settings_learning(&s, &w, &o, NULL), SVS_OK);
    assert_int_equal(o.class_rule, SVS_CLASSES_ALIKE);
}

static svs_code read_yaml(struct svi_settings *s, const char *text, svs_error *err) {
    return svi_settings_read(s, "test.yaml", text, strlen(text), err);
}

static void test_yaml_is_read(void **state) {
    struct svi_settings s = defaults();
    svs_error err = {.text = ""};
    (void)state;
    const char *text =
        "# a comment\nwindow: 50\nin.mode: sub\n\"in.topic\": 'a: #b'\nC: 1e-3\nmax.message: 64 KiB\n"
        "features: \"a,\\\"b\\\",\\u00e4\"\nid: \"\"\nstream: 7\nscores: none\n";
    if (read_yaml(&s, text, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(s.window, 50);
    assert_int_equal(s.in_mode, SVI_IN_SUB);
    assert_string_equal(s.in_topic, "a: #b");
    assert_true(s.C == 1e-3);
    assert_int_equal(s.max_message, 65536);
    assert_string_equal(s.features, "a,\"b\",\xc3\xa4");
    assert_string_equal(s.stream, "7");
    assert_true(svi_settings_given(&s, svi_settings_row("id")));
    assert_false(svi_settings_given(&s, svi_settings_row("label")));
    assert_int_equal(s.labels_max, 10000);
    assert_int_equal(read_yaml(&s, "{window: 9, C: 2}", NULL), SVS_OK);
    assert_int_equal(s.window, 9);
    /* in quotes it is a text; tags, anchors and marks of the one document mean nothing */
    text = "\xef\xbb\xbf%YAML 1.1\n---\nid: \"null\"\nts: '~'\nwindow: !!int &a 8\n? C\n: 3\nlabel: >-\n  "
           "a\n  b\n...\n";
    if (read_yaml(&s, text, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_true(s.window == 8 && s.C == 3);
    assert_string_equal(s.id, "null");
    assert_string_equal(s.ts, "~");
    assert_string_equal(s.label, "a b");
}

static void test_empty_yaml_changes_nothing(void **state) {
    static const char *const empty[] = {"", "\n", "# only a comment\n", "---\n", "{}", "---\n...\n"};
    (void)state;
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        struct svi_settings s = defaults(), before = s;
        svs_error err = {.text = ""};
        svs_code code = read_yaml(&s, empty[i], &err);
        if (code != SVS_OK && strcmp(empty[i], "---\n") != 0 && strcmp(empty[i], "---\n...\n") != 0)
            fail_msg("%s: %s", empty[i], err.text);
        assert_memory_equal(&s, &before, sizeof s);
    }
}

static void test_yaml_faults(void **state) {
    static const struct {
        const char *text, *says[3];
    } cases[] = {
        {"window: 5\nwindw: 1\n",
         {"test.yaml", "unknown setting", "'windw', the nearest known one is 'window'"}},
        {"window: 5\nC: many\n", {"test.yaml", "line 2, column 4: C", "'many' is not a number"}},
        {"window: 5\nwindow: 6\n", {"test.yaml, line 2, column 1", "duplicate setting window", "line 1"}},
        {"in: [a, b]\n", {"line 1, column 5", "in takes one value", "list"}},
        {"window: 5\nin:\n  mode: pull\n", {"line 3, column 3", "in takes one value", "map"}},
        {"label: &x y\nid: *x\n", {"line 2, column 5", "one value", "alias"}},
        {"- window\n", {"test.yaml, line 1, column 1", "flat map", "key: value"}},
        {"window\n", {"test.yaml", "flat map", "key: value"}},
        {"? [a]\n: b\n", {"test.yaml", "flat map", "key: value"}},
        {"window: 5\n---\nC: 2\n", {"line 2, column 1", "more than one YAML document", "---"}},
        {"window: \"5\nC: 2\n", {"line 3, column 1", "invalid YAML", "on line 1"}},
        {"\twindow: 5\n", {"line 1, column 1", "invalid YAML", "character"}},
        {"window: 5\nid: a\nlabel: b\xff\n", {"line 3, column 9", "invalid YAML", "UTF-8"}},
        {"label: \xff\n", {"line 1, column 8", "invalid YAML", "UTF-8"}},
        {"window: 5\nC: [1\n", {"test.yaml", "C", "list"}},
        {"window:\n", {"line 1, column 8", "window", "not a whole number"}},
        {"in.topic: ~\n", {"line 1, column 11", "in.topic is null", "\"\""}},
        {"id: null\n", {"test.yaml", "id is null", "\"\""}},
        {"id: \"a\\nb\"\n", {"test.yaml", "id", "control character"}},
        {"id: \"a\\0b\"\n", {"test.yaml", "line 1, column 5", "NUL"}},
        {"\"id\\0\": a\n", {"test.yaml", "line 1, column 1", "NUL"}},
        {"{window: 5, {a: b}}\n", {"test.yaml", "flat map", "key: value"}},
        {"label: !!str {a: b}\n", {"test.yaml", "label takes one value", "map"}},
        {"!!set {a, b}\n", {"test.yaml", "unknown setting 'a'", "nearest"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct svi_settings s = defaults(), before = s;
        svs_error err = {.text = ""};
        assert_int_equal(read_yaml(&s, cases[i].text, &err), SVS_SETTING);
        for (int k = 0; k < 3; k++)
            if (!strstr(err.text, cases[i].says[k]))
                fail_msg("for <%s>: '%s' does not say '%s'", cases[i].text, err.text, cases[i].says[k]);
        assert_memory_equal(&s, &before, sizeof s); /* not even the rows before the fault */
        assert_int_equal(read_yaml(&s, cases[i].text, NULL), SVS_SETTING);
    }
}

static void test_yaml_depth_and_length(void **state) {
    size_t length = 100000;
    char *text = malloc(length);
    struct svi_settings s = defaults();
    (void)state;
    assert_non_null(text);
    memset(text, '[', length);
    assert_int_equal(svi_settings_read(&s, "deep", text, length, NULL), SVS_SETTING);
    memset(text, 'x', length);
    memcpy(text, "label: ", 7);
    assert_int_equal(svi_settings_read(&s, "long", text, length, NULL), SVS_SETTING);
    memcpy(text + length - 3, ": 1", 3);
    assert_int_equal(svi_settings_read(&s, "long key", text + 7, length - 7, NULL), SVS_SETTING);
    free(text);
}

/* What is written reads back as the same settings, whatever the values. */
static void test_written_is_read(void **state) {
    struct svi_settings a = defaults(), b = a;
    char *text = NULL;
    size_t length;
    svs_error err = {.text = ""};
    (void)state;
    is_set(&a, "in", "-");
    is_set(&a, "in.topic", "  'a\" \\ # : - \xe2\x82\xac ");
    is_set(&a, "stream", "null");
    is_set(&a, "C", "0.1");
    is_set(&a, "max.message", "1000");
    is_set(&a, "scores", "none");
    is_set(&a, "task", "regress");
    FILE *to = open_memstream(&text, &length);
    assert_non_null(to);
    svi_settings_write(&a, to);
    fclose(to);
    if (svi_settings_read(&b, "written", text, length, &err) != SVS_OK)
        fail_msg("%s", err.text);
    for (int i = 0; i < SVI_SETTING_MAX; i++)
        assert_int_equal(b.given[i], i >= rows    ? SVI_NOT_GIVEN
                                     : a.given[i] ? SVI_GIVEN
                                                  : SVI_GIVEN_AS_DEFAULT);
    memcpy(b.given, a.given, sizeof a.given);
    assert_memory_equal(&a, &b, sizeof a);
    free(text);
}

/* Another value than the default. */
static const char *changed_value(const struct svi_setting *row, char *out, size_t size) {
    char usual[SVI_FEATURES_MAX];
    const struct svi_settings s = defaults();
    svi_settings_value(&s, row, usual, sizeof usual);
    if (row->type == SVI_SET_ADDRESS)
        snprintf(out, size, "ipc:///tmp/changed");
    else if (strcmp(row->key, "refit.loss") == 0 || strcmp(row->key, "novelty.gamma") == 0)
        snprintf(out, size, "1.5");
    else if (row->words && !numeric(row))
        snprintf(out, size, "%s", row->words[strcmp(row->words[0].word, usual) == 0].word);
    else if (!numeric(row))
        snprintf(out, size, "changed");
    else
        snprintf(out, size, "%.17g", atof(usual) == row->low ? row->high : row->low);
    return out;
}

static void same_verdict(const struct svi_settings *a, const struct svi_settings *b) {
    svs_error one = {.text = ""}, other = {.text = ""};
    assert_int_equal(svi_settings_check(a, &one), svi_settings_check(b, &other));
    assert_string_equal(one.text, other.text);
    assert_int_equal(svi_settings_check_security(a, &one), svi_settings_check_security(b, &other));
    assert_string_equal(one.text, other.text);
    for (int i = 0; i < rows; i++) { /* which may have followed from another setting, and the file says so */
        const bool followed = !a->given[i] && !svi_settings_is_default(a, &table[i]);
        assert_true(followed || svi_settings_chosen(a, table[i].key) == svi_settings_chosen(b, table[i].key));
    }
}

/* `flags` as a file, the whole of it or the line of one row: the same settings, and the same is said of them.
 */
static void goes_through_a_file(const struct svi_settings *flags, const struct svi_setting *only) {
    struct svi_settings back = defaults();
    char line[SVI_SETTINGS_LINE], *text = NULL;
    size_t length;
    svs_error err = {.text = ""};
    FILE *to = open_memstream(&text, &length);
    assert_non_null(to);
    if (only)
        fwrite(line, 1, svi_settings_line(flags, only, true, line), to);
    else
        svi_settings_write(flags, to);
    fclose(to);
    if (svi_settings_read(&back, "a file", text, length, &err) != SVS_OK)
        fail_msg("%s", err.text);
    svi_settings_settle_method(&back);
    same_verdict(flags, &back);
    memcpy(back.given, flags->given, sizeof back.given);
    assert_memory_equal(&back, flags, sizeof back);
    free(text);
}

static void test_each_row_alone_goes_through_a_file(void **state) {
    char value[64];
    (void)state;
    for (int i = 0; i < rows; i++) {
        struct svi_settings usual = defaults(), changed = usual;
        assert_true(svi_settings_is_default(&usual, &table[i]));
        goes_through_a_file(&usual, &table[i]);
        is_set(&usual, table[i].key, table[i].value); /* a flag at its default contradicts nothing */
        svi_settings_settle_method(&usual);
        assert_int_equal(svi_settings_check(&usual, NULL), SVS_OK);
        is_set(&changed, table[i].key, changed_value(&table[i], value, sizeof value));
        svi_settings_settle_method(&changed);
        assert_false(svi_settings_is_default(&changed, &table[i]));
        goes_through_a_file(&changed, &table[i]);
        goes_through_a_file(&changed, NULL);
    }
}

static void test_files(void **state) {
    struct svi_settings s = defaults();
    svs_error err = {.text = ""};
    const char *folder = getenv("TMPDIR");
    char path[512];
    (void)state;
    snprintf(path, sizeof path, "%s/settings-XXXXXX", folder ? folder : "/tmp");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "window: 77\n", 11), 11);
    close(fd);
    assert_int_equal(svi_settings_load(&s, path, &err), SVS_OK);
    assert_int_equal(s.window, 77);
    assert_int_equal(truncate(path, (1 << 20) + 1), 0);
    assert_int_equal(svi_settings_load(&s, path, &err), SVS_IO);
    assert_non_null(strstr(err.text, "1 MiB"));
    unlink(path);
    assert_int_equal(svi_settings_load(&s, path, &err), SVS_IO);
    assert_non_null(strstr(err.text, "No such file"));
    assert_int_equal(svi_settings_load(&s, "/", &err), SVS_IO);
    assert_non_null(strstr(err.text, "directory"));
    assert_int_equal(svi_settings_load(&s, path, NULL), SVS_IO);
    assert_int_equal(s.window, 77);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_those_of_the_contract),
        cmocka_unit_test(test_rows_are_well_formed),
        cmocka_unit_test(test_default_sets_everything),
        cmocka_unit_test(test_defaults_are_in_range),
        cmocka_unit_test(test_every_row_refuses_bad_values),
        cmocka_unit_test(test_ranges_are_inclusive),
        cmocka_unit_test(test_values_survive_text),
        cmocka_unit_test(test_choices_survive_text),
        cmocka_unit_test(test_bytes_in_all_spellings),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_texts_have_limits),
        cmocka_unit_test(test_unknown_keys),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_merge_windows),
        cmocka_unit_test(test_no_contradictions),
        cmocka_unit_test(test_learner_options),
        cmocka_unit_test(test_class_weights),
        cmocka_unit_test(test_class_weights_have_room),
        cmocka_unit_test(test_class_weights_of_a_file),
        cmocka_unit_test(test_class_weights_of_a_learner),
        cmocka_unit_test(test_yaml_is_read),
        cmocka_unit_test(test_empty_yaml_changes_nothing),
        cmocka_unit_test(test_yaml_faults),
        cmocka_unit_test(test_yaml_depth_and_length),
        cmocka_unit_test(test_written_is_read),
        cmocka_unit_test(test_each_row_alone_goes_through_a_file),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, get_table, NULL);
}
