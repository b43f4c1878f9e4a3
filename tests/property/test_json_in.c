/* What is JSON: the same as jansson says, on texts that nearly are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "data/json_in.h"
#include "data/number.h"
#include "support/quick.h"

static uint64_t random_state = 0x2545f4914f6cdd1dU;

static int below(int n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (int)((random_state >> 16) % (uint64_t)n);
}

static char *write_value(char *at, int depth) {
    static const char *const plain[] = {"0",       "-1",      "12.50",          "1e5",
                                        "-0.1E-2", "null",    "true",           "\"\"",
                                        "false",   "\"a b\"", "\"\\u00e9\\n\"", "\"\\ud83d\\ude00\"",
                                        "3"};
    int kind = depth > 0 ? below(4) : 0;
    if (kind < 2)
        return at + sprintf(at, "%s", plain[below(13)]);
    bool object = kind == 2;
    *at++ = object ? '{' : '[';
    for (int i = 0, n = below(4); i < n; i++) {
        at += sprintf(at, "%s%s", i ? "," : "", below(3) ? "" : " ");
        if (object)
            at += sprintf(at, "\"k%d\" : ", below(9));
        at = write_value(at, depth - 1);
    }
    return at + sprintf(at, "%c", object ? '}' : ']');
}

/* At most three bytes changed, taken out or put in. */
static void damage(char *text) {
    static const char bytes[] = "{}[]:,\"\\ 0123456789eE+-.utnfdDa/b\t";
    for (int i = below(4); i > 0; i--) {
        size_t length = strlen(text), at = 1 + (size_t)below((int)length);
        char byte = bytes[below((int)sizeof bytes - 1)];
        if (at >= length)
            continue;
        switch (below(3)) {
        case 0:
            text[at] = byte;
            break;
        case 1:
            memmove(text + at, text + at + 1, length - at);
            break;
        default:
            memmove(text + at + 1, text + at, length - at + 1);
            text[at] = byte;
        }
    }
}

static void verdicts_are_those_of_jansson(void **state) {
    (void)state;
    const int rounds = often(400000, 40000);
    int accepted = 0, refused = 0;
    for (int i = 0; i < rounds; i++) {
        char text[4096] = "{\"k\":";
        char *end = write_value(text + strlen(text), 4);
        sprintf(end, "}");
        damage(text);
        size_t length = strlen(text);
        json_error_t why;
        json_t *tree = json_loadb(text, length, 0, &why);
        svs_error err = {0};
        svs_code code = svi_json_check((struct svi_span){text, text + length}, &err);
        /* jansson refuses numbers that do not fit; here the value is judged later. */
        bool same = (tree != NULL) == (code == SVS_OK) || code == SVS_TOO_DEEP ||
                    (!tree && strstr(why.text, "overflow")) || (!tree && strstr(why.text, "too big"));
        if (!same)
            fail_msg("%s: jansson %s, we '%s'", text, tree ? "takes it" : why.text, err.text);
        accepted += tree != NULL;
        refused += tree == NULL;
        json_decref(tree);
        tree = json_loadb(text, length, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &why);
        code = svi_json_check_value((struct svi_span){text, text + length}, 2048, &err);
        same = (tree != NULL) == (code == SVS_OK) || (!tree && strstr(why.text, "overflow"));
        if (!same)
            fail_msg("%s: jansson %s, we '%s'", text, tree ? "takes it" : why.text, err.text);
        json_decref(tree);
    }
    assert_true(accepted > rounds / 8 && refused > rounds / 8);
}

/* Compares the value at `p` with jansson's. */
static void compare_value(const char *p, const json_t *tree) {
    double number;
    struct svi_span raw, text;
    char capacity[256];
    switch (json_typeof(tree)) {
    case JSON_STRING:
        assert_int_equal(svi_json_type(p), SVI_JSON_STRING);
        svi_json_string_at(p, &raw);
        assert_true(svi_json_unescape(raw, capacity, sizeof capacity, &text));
        assert_int_equal(text.end - text.at, json_string_length(tree));
        assert_memory_equal(text.at, json_string_value(tree), json_string_length(tree));
        break;
    case JSON_INTEGER:
    case JSON_REAL:
        assert_int_equal(svi_json_type(p), SVI_JSON_NUMBER);
        assert_true(svi_number(p, &number) > p && number == json_number_value(tree));
        break;
    case JSON_ARRAY:
        assert_int_equal(svi_json_type(p), SVI_JSON_ARRAY);
        p = svi_json_first(p);
        for (size_t i = 0; i < json_array_size(tree); i++, p = svi_json_next(svi_json_skip(p)))
            compare_value(p, json_array_get(tree, i));
        assert_null(p);
        break;
    default:
        assert_int_equal(svi_json_type(p), json_is_null(tree)    ? SVI_JSON_NULL
                                           : json_is_true(tree)  ? SVI_JSON_TRUE
                                           : json_is_false(tree) ? SVI_JSON_FALSE
                                                                 : SVI_JSON_OBJECT);
    }
}

static void values_are_those_of_jansson(void **state) {
    (void)state;
    for (int i = 0; i < often(100000, 10000); i++) {
        char text[4096 + SVI_NUMBER_PAD] = "{\"k\":";
        char *end = write_value(text + strlen(text), 4);
        end += sprintf(end, "}");
        json_t *tree = json_loads(text, 0, NULL);
        svs_error err = {0};
        assert_int_equal(svi_json_check((struct svi_span){text, end}, &err), SVS_OK);
        struct svi_span key;
        compare_value(svi_json_key(svi_json_first(text), &key), json_object_get(tree, "k"));
        json_decref(tree);
    }
}

static void long_strings_do_not_fit(void **state) {
    (void)state;
    char capacity[4];
    struct svi_span text;
    const char *const raws[] = {"abcd", "abcde", "ab\\n\\u00e9", "abc\\n\\n", "\\u20ac", "\\u20acxy"};
    const bool fits[] = {true, false, false, false, true, false};
    for (int i = 0; i < 6; i++) {
        struct svi_span raw = {raws[i], raws[i] + strlen(raws[i])};
        assert_int_equal(svi_json_unescape(raw, capacity, sizeof capacity, &text), fits[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_are_those_of_jansson),
        cmocka_unit_test(values_are_those_of_jansson),
        cmocka_unit_test(long_strings_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
