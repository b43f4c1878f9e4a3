/* JSON as msgpack: the values are those that jansson reads, forms are what the header says, and a row means
 * what the reader of JSON lines makes of it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "data/reader.h"
#include "support/quick.h"
#include "wire/envelope.h"
#include "wire/event.h"
#include "wire/json.h"
#include "wire/json_message.h"

static uint64_t random_state = 0x9e3779b97f4a7c15U;

static int below(int n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (int)((random_state >> 16) % (uint64_t)n);
}

/* The message as a tree, all numbers as doubles; NULL with the code. */
static json_t *tree_of(const struct svi_bytes *message) {
    struct svi_bytes text = {0};
    svs_error err;
    assert_int_equal(svi_json_msgpack(&text, message->data, message->size, &err), SVS_OK);
    json_t *tree = json_loadb((char *)text.data, text.size, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
    assert_non_null(tree);
    svi_bytes_clear(&text);
    return tree;
}

static svs_code convert(struct svi_json_input *in, const char *text, struct svi_bytes *out, svs_error *err) {
    out->size = 0;
    svs_code code = svi_json_message(in, text, strlen(text), out, err);
    assert_int_equal(code == SVS_OK ? SVS_OK : err->code, code);
    if (code == SVS_OK) {
        assert_int_equal(svi_msgpack_check(out->data, out->size, SVI_WALK_MAX, err), SVS_OK);
        assert_true(out->size <= SVI_JSON_GROWTH * strlen(text));
    } else
        assert_int_equal(out->size, 0);
    return code;
}

/* ---- forms */

static const struct {
    const char *text, *message; /* or the code */
} forms[] = {
    {"{\"x\":[1,2.5,true,null]}", "{\"x\":[1,2.5,1,null],\"missing\":\"mean\"}"},
    {" {\"x\":{\"a\":false,\"b\":\"w\"},\"missing\":\"zero\"}\n",
     "{\"x\":{\"a\":0,\"b\":\"w\"},\"missing\":\"zero\"}"},
    {"{\"y\":true,\"x\":{},\"ts\":\"1970-01-02\"}",
     "{\"y\":true,\"x\":{},\"ts\":86400,\"missing\":\"mean\"}"},
    {"{\"op\":\"hello\",\"src\":\"a\"}", "{\"op\":\"hello\",\"src\":\"a\"}"},
    {"{\"columns\":[\"a\"]}", "{\"columns\":[\"a\"]}"},
    {"{\"columns\":1}", "{\"x\":{\"columns\":1},\"missing\":\"mean\"}"},
    {"{}", "{\"x\":{},\"missing\":\"mean\"}"},
    {"[]", "[]"},
    {"[{},7,[{}]]", "[{\"x\":{},\"missing\":\"mean\"},7,[{}]]"},
    {"{\"op\":\"score\",\"sample\":{\"a\":true}}",
     "{\"op\":\"score\",\"sample\":{\"x\":{\"a\":1},\"missing\":\"mean\"}}"},
    {"{\"op\":\"score\",\"sample\":[{\"a\":true,\"cls\":1},{\"x\":[true]},7]}",
     "{\"op\":\"score\",\"sample\":[{\"x\":{\"a\":1},\"y\":1,\"missing\":\"mean\"},"
     "{\"x\":[1],\"missing\":\"mean\"},7]}"},
    {"{\"\":{\"cls\":1,\"\":{\"key\":2}},\"key\":3}",
     "{\"x\":{\"\":{\"cls\":1,\"\":{\"key\":2}}},\"id\":3,\"missing\":\"mean\"}"},
    {"{\"op\":\"score\",\"x\":{\"a\":true}}", "{\"op\":\"score\",\"x\":{\"a\":1},\"missing\":\"mean\"}"},
    {"{\"x\":{\"s\":{\"a\":true,\"b\":\"\",\"c\":{\"d\":NaN}},\"e\":{}}}",
     "{\"x\":{\"s\":{\"a\":1,\"b\":null,\"c\":{\"d\":null}},\"e\":{}},\"missing\":\"mean\"}"},
    {"{\"s\":{\"a\":true,\"key\":1,\"id\":\"na\",\"c\":2},\"no\":{\"a\":1},\"t\":{\"when\":\"1970-01-02\"}}",
     "{\"x\":{\"s\":{\"a\":1,\"key\":1,\"id\":null,\"c\":2},\"t\":{}},\"missing\":\"mean\"}"},
    {"{\"op\":\"config\",\"set\":{\"a\":true}}", "{\"op\":\"config\",\"set\":{\"a\":true}}"},
    {"{\"b\":1,\"cls\":\"u\",\"a\":null,\"key\":5,\"when\":1500,\"heavy\":2,\"no\":3,\"nor\":4}",
     "{\"x\":{\"b\":1,\"a\":null},\"y\":\"u\",\"id\":5,\"ts\":1500,\"w\":2,\"missing\":\"mean\"}"},
    {"{\"when\":1500000000500}", "{\"x\":{},\"ts\":1500000000.5,\"missing\":\"mean\"}"},
    {"{\"when\":\"1970-01-01T00:01Z\",\"k\":\"1970-01-01T00:01Z\",\"c\":\"1970-01-01\"}",
     "{\"x\":{\"c\":\"1970-01-01\"},\"ts\":60,\"missing\":\"mean\"}"},
    {"{\"when\":\"soon\",\"cls\":1,\"cls\":null}",
     "{\"x\":{},\"ts\":\"soon\",\"y\":1,\"y\":null,\"missing\":\"mean\"}"},
    {"{\"\\u0061\\n\":\"\\ud83d\\ude00\"}", "{\"x\":{\"a\\n\":\"\xf0\x9f\x98\x80\"},\"missing\":\"mean\"}"},
    {"{\"n\":9223372036854775807,\"m\":9223372036854775808}",
     "{\"x\":{\"n\":9223372036854775807,\"m\":9.2233720368547758e+18},\"missing\":\"mean\"}"},
    {"{\"a\":NaN,\"b\":\"na\",\"cls\":\"?\",\"c\":1.50,\"d\":\"2.5\",\"e\":\"2.5\"}",
     "{\"x\":{\"a\":null,\"b\":null,\"c\":\"1.50\",\"d\":2.5,\"e\":\"2.5\"},\"y\":null,\"missing\":"
     "\"mean\"}"},
    {"{\"x\":{\"a\":\"\",\"b\":\"NA\",\"c\":true,\"d\":\"2.5\"}}",
     "{\"x\":{\"a\":null,\"b\":\"NA\",\"c\":1,\"d\":\"2.5\"},\"missing\":\"mean\"}"},
    {"{\"a\":-0}", "{\"x\":{\"a\":-0},\"missing\":\"mean\"}"},
    {"{\"whose\":\"m 7\",\"a\":1}", "{\"x\":{\"a\":1},\"key\":\"m 7\",\"missing\":\"mean\"}"},
    {"{\"a\":1,\"whose\":7}", "{\"x\":{\"a\":1},\"key\":7,\"missing\":\"mean\"}"},
    {"{\"a\":1,\"whose\":\"NA\"}", "{\"x\":{\"a\":1},\"key\":null,\"missing\":\"mean\"}"},
    {"{\"x\":[1],\"key\":\"a\",\"whose\":\"b\"}",
     "{\"x\":[1],\"key\":\"a\",\"whose\":\"b\",\"missing\":\"mean\"}"},
    {"", "not_json"},
    {" null", "not_json"},
    {"[", "truncated"},
    {"{\"a\":1,}", "not_json"},
    {"{\"a\":\"\xc0\x80\"}", "not_json"},
    {"{\"a\":\"\\ud83d\"}", "not_json"},
    {"[[[[[[[[[]]]]]]]]]", "too_deep"},
    {"{} {}", "trailing"},
};

static void forms_are_what_the_header_says(void **state) {
    (void)state;
    struct svi_json_input in = {.columns = {.label = "cls",
                                            .id = "key",
                                            .ts = "when",
                                            .weight = "heavy",
                                            .key = "whose",
                                            .ignore = "no, nor",
                                            .categories = "c",
                                            .numbers = "d"}};
    struct svi_bytes out = {0}, text = {0};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        svs_error err = {0};
        svs_code code = convert(&in, forms[i].text, &out, &err);
        text.size = 0;
        if (code == SVS_OK)
            assert_int_equal(svi_json_msgpack(&text, out.data, out.size, &err), SVS_OK);
        else
            svi_json_text(&text, svs_code_name(code));
        svi_bytes_append(&text, "", 1);
        if (strcmp((char *)text.data, forms[i].message) != 0)
            fail_msg("%s: %s (%s), not %s", forms[i].text, (char *)text.data, err.text, forms[i].message);
    }
    svi_bytes_clear(&out);
    svi_bytes_clear(&text);
    svi_json_input_clear(&in);
}

/* Each row as JSON, and the message that it becomes. */
static void assert_messages(struct svi_json_input *in, const char *const (*rows)[2], size_t count) {
    struct svi_bytes out = {0}, text = {0};
    svs_error err;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(convert(in, rows[i][0], &out, &err), SVS_OK);
        text.size = 0;
        assert_int_equal(svi_json_msgpack(&text, out.data, out.size, &err), SVS_OK);
        svi_bytes_append(&text, "", 1);
        assert_string_equal((char *)text.data, rows[i][1]);
    }
    svi_bytes_clear(&out);
    svi_bytes_clear(&text);
}

static void the_first_time_stays_the_time(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"{\"a\":\"b\",\"k\":1}", "{\"x\":{\"a\":\"b\",\"k\":1},\"missing\":\"mean\"}"},
        {"{\"began\":\"1970-01-02\",\"ended\":\"1970-01-03\",\"k\":1}",
         "{\"x\":{\"k\":1},\"ts\":86400,\"missing\":\"mean\"}"},
        {"{\"ended\":\"1970-01-03\",\"began\":\"1970-01-02\"}",
         "{\"x\":{},\"ts\":86400,\"missing\":\"mean\"}"},
        {"{\"ended\":\"1970-01-03\",\"began\":null}", "{\"x\":{},\"ts\":null,\"missing\":\"mean\"}"},
        {"{\"ended\":\"1970-01-03\"}", "{\"x\":{},\"missing\":\"mean\"}"},
        {"{\"began\":172800000000}", "{\"x\":{},\"ts\":172800000,\"missing\":\"mean\"}"},
    };
    struct svi_json_input in = {0};
    assert_messages(&in, rows, sizeof rows / sizeof *rows);
    assert_string_equal(in.time, "began");
    svi_json_input_clear(&in);
}

/* A column inside an object is what the settings say of its whole name. */
static void settings_name_columns_of_objects(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"{\"a\":{\"y\":1,\"t\":1500000000500,\"b\":{\"id\":7,\"c\":\"u\"}},\"q\":{\"r\":3}}",
         "{\"x\":{\"a\":{\"b\":{\"c\":\"u\"}}},\"y\":1,\"ts\":1500000000.5,\"id\":7,\"missing\":\"mean\"}"},
        {"{\"a\":{\"b\":{\"c\":3,\"d\":\"4\",\"e\":{\"f\":1}},\"y\":\"?\"},\"y\":2}",
         "{\"x\":{\"a\":{\"b\":{\"c\":\"3\",\"d\":4}},\"y\":2},\"y\":null,\"missing\":\"mean\"}"},
    };
    struct svi_json_input in = {.columns = {.label = "a.y",
                                            .ts = "a.t",
                                            .id = "a.b.id",
                                            .ignore = "a.b.e,q",
                                            .categories = "a.b.c",
                                            .numbers = "a.b.d"}};
    assert_messages(&in, rows, sizeof rows / sizeof *rows);
    svi_json_input_clear(&in);
}

/* ---- values */

static const char *const values[] = {"0",
                                     "-1",
                                     "12.50",
                                     "1e5",
                                     "-0.1E-2",
                                     "null",
                                     "true",
                                     "\"\"",
                                     "false",
                                     "3",
                                     "9007199254740993",
                                     "\"a b\"",
                                     "\"\\u00e9\\n\\\"\\\\\"",
                                     "\"\\ud83d\\ude00\"",
                                     "1.7e308",
                                     "5e-324",
                                     "0.1",
                                     "123456789012345678901234567890",
                                     "127",
                                     "-129",
                                     "65536",
                                     "-2147483649"};
#define VALUES (int)(sizeof values / sizeof *values)

static char *write_value(char *at, int depth) {
    int kind = depth > 0 ? below(4) : 0;
    if (kind < 2)
        return at + sprintf(at, "%s", values[below(VALUES)]);
    bool object = kind == 2;
    *at++ = object ? '{' : '[';
    for (int i = 0, n = below(depth > 2 ? 20 : 4); i < n; i++) {
        at += sprintf(at, "%s%s", i ? "," : "", below(3) ? "" : " ");
        if (object)
            at += sprintf(at, below(9) ? "\"k%d\" : " : "\"\\u006b%d\":", i);
        at = write_value(at, depth - 1);
    }
    return at + sprintf(at, "%s%c", below(3) ? "" : "\t", object ? '}' : ']');
}

static void values_are_those_of_jansson(void **state) {
    (void)state;
    static char text[1 << 16];
    struct svi_json_input in = {0};
    struct svi_bytes out = {0};
    svs_error err;
    for (int i = 0; i < often(10000, 2000); i++) {
        sprintf(write_value(text + sprintf(text, "{\"op\":\"any\",\"k\":"), 4), "}");
        json_t *expected = json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);
        assert_non_null(expected);
        assert_int_equal(convert(&in, text, &out, &err), SVS_OK);
        json_t *tree = tree_of(&out);
        if (!json_equal(tree, expected))
            fail_msg("%s is another message", text);
        json_decref(tree);
        json_decref(expected);
    }
    svi_bytes_clear(&out);
    svi_json_input_clear(&in);
}

/* Heads of containers of every width, and strings whose escapes need room. */
static void long_ones_are_whole(void **state) {
    (void)state;
    static const int counts[] = {15, 16, 65535, 65536, 70000};
    struct svi_json_input in = {0};
    struct svi_bytes out = {0};
    svs_error err;
    char *text = malloc(1 << 20);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        for (int form = 0; form < 3; form++) {
            char *at = text + sprintf(text, "{\"x\":%c", form == 0 ? '[' : form == 1 ? '{' : '"');
            for (int i = 0; i < counts[k]; i++)
                at += sprintf(at,
                              form == 0   ? "%s1"
                              : form == 1 ? "%s\"%x\":2"
                                          : "\\n",
                              i && form < 2 ? "," : "", i);
            sprintf(at, "%c}", form == 0 ? ']' : form == 1 ? '}' : '"');
            assert_int_equal(convert(&in, text, &out, &err), SVS_OK);
            json_t *tree = tree_of(&out), *x = json_object_get(tree, "x");
            assert_int_equal(json_is_array(x)    ? json_array_size(x)
                             : json_is_object(x) ? json_object_size(x)
                                                 : json_string_length(x),
                             counts[k]);
            json_decref(tree);
        }
    for (int i = 0; i < 3 * (SVI_BATCH_MAX + 1); i += 3)
        memcpy(text + i, "{},", 3);
    text[0] = '[';
    text[1] = '1';
    for (int more = 1; more >= 0; more--) {
        strcpy(text + 3 * (SVI_BATCH_MAX + more) - 1, "]");
        assert_int_equal(convert(&in, text, &out, &err), more ? SVS_TOO_LARGE : SVS_OK);
    }
    free(text);
    svi_bytes_clear(&out);
    svi_json_input_clear(&in);
}

/* ---- rows, and the reader of JSON lines */

/* An object, some of whose keys mean something by their whole names; in a sample the decoder looks at them.
 */
static int write_nested(char *at, bool sample, bool after, const char *const *some) {
    static const char *const form[] = {"%s\"n\":{\"b\":%s,\"k\":%s,\"m\":{\"s\":%s}}",
                                       "%s\"n\":{\"w\":1,\"id\":3,\"y\":%s}",
                                       "%s\"e\":{},\"n\":{\"e\":{},\"\\u0064\":%s}",
                                       "%s\"n\":{\"l\":{\"z\":%s},\"x\":%s}", "%s\"l\":{\"b\":%s}"};
    return sprintf(at, form[below(sample ? 3 : 5)], after ? "," : "", some[below(8)], some[below(8)],
                   some[below(8)]);
}

/* Without what a reader guesses: text of a time stands in the column of times alone, numbers in quotes where
 * the settings say what the column is. */
static void write_row(char *at) {
    static const char *const names[] = {"a",    "b",     "b c", "\\u0064", "label", "number",
                                        "when", "heavy", "k",   "l",       "m"};
    static const char *const some[] = {"1",    "2.5", "-0",    "null",  "true", "false",  "\"mill\"", "1e9",
                                       "7e-3", "4",   "\"b\"", "0.125", "NaN",  "\"na\"", "1.50"};
    const bool sample = below(3) == 0;
    at += sprintf(at, sample ? "{\"y\":%d,\"x\":{" : "{", below(2));
    for (int i = 0, k = below(3), n = below(6); i < n && k < 11; i++, k += 1 + below(3)) {
        const bool time = k == 6 && below(2), digits = (k == 1 || k == 8) && below(4) == 0;
        at += sprintf(at, "%s\"%s\":%s", i ? "," : "", names[k],
                      time     ? "\"2026-11-22T10:05:30.25Z\""
                      : digits ? "\"2.5\""
                               : some[below(below(6) ? 8 : 15)]);
    }
    if (below(2))
        at += write_nested(at, sample, at[-1] != '{', some);
    sprintf(at, sample ? "},\"id\":%d}" : "}", below(5));
}

/* A feature with the name of an identifier is found in the first flat row, unless a setting names the id or
 * the column. It stays a feature. */
static void a_feature_named_like_an_id_is_found(void **state) {
    (void)state;
    static const struct {
        const char *row, *id, *ignore, *found;
    } cases[] = {{"{\"a\":1,\"id\":7}", NULL, "", "id"},      {"{\"UUID\":\"x\",\"id\":7}", NULL, "", "UUID"},
                 {"{\"a\":1,\"id\":7}", "id", "", ""},        {"{\"a\":1,\"id\":7}", "number", "", ""},
                 {"{\"a\":1,\"id\":7}", NULL, "id", ""},      {"{\"machine_id\":7}", NULL, "", ""},
                 {"{\"x\":{\"id\":1},\"id\":7}", NULL, "", ""}, {"{\"\":1}", NULL, "", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct svi_json_input in = {
            .columns = {.label = "label", .id = cases[i].id, .ignore = cases[i].ignore}};
        struct svi_bytes out = {0}, text = {0};
        svs_error err;
        assert_int_equal(convert(&in, cases[i].row, &out, &err), SVS_OK);
        assert_string_equal(in.id, cases[i].found);
        assert_int_equal(svi_json_msgpack(&text, out.data, out.size, &err), SVS_OK);
        svi_bytes_append(&text, "", 1);
        if (in.id[0])
            assert_non_null(strstr(strstr((char *)text.data, "\"x\""), in.id));
        svi_bytes_clear(&out);
        svi_bytes_clear(&text);
        svi_json_input_clear(&in);
    }
}

static const struct svi_reader_options options = {.format = "jsonl",
                                                  .label = "label",
                                                  .label_required = true,
                                                  .id = "number",
                                                  .ts = "when",
                                                  .weight = "heavy",
                                                  .ignore = "l,b c,n.l",
                                                  .categories = "k,n.k",
                                                  .numbers = "b,n.b"};

/* The message of the reader, false: it refuses the row. */
static bool read_row(const char *line, struct svi_bytes *out) {
    struct svi_shape shape;
    struct svi_message m;
    svs_error err;
    char path[40];
    const int fd = memfd_create("rows", 0);
    assert_int_equal(write(fd, line, strlen(line)), strlen(line));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(svi_shape_init(&shape, 32, NULL, &err), SVS_OK);
    svi_reader *reader = svi_reader_open(path, &options, &shape, &err);
    assert_non_null(reader);
    const bool good = svi_reader_row(reader, &m, &err) == SVI_READ_ROW;
    out->size = 0;
    if (good)
        assert_int_equal(svi_message_encode(&m, shape.names, false, out), SVS_OK);
    svi_reader_close(&reader);
    svi_shape_clear(&shape);
    close(fd);
    return good;
}

/* The pairs of `from`, those of its objects under joined names, into `to`. */
static void flatten(const json_t *from, const char *before, json_t *to) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)from, key, value) {
        char name[80];
        snprintf(name, sizeof name, "%s%s%s", before, *before ? "." : "", key);
        if (json_is_object(value))
            flatten(value, name, to);
        else
            json_object_set(to, name, value);
    }
}

static void drop_nulls(json_t *tree) {
    const char *key;
    void *next;
    json_t *value;
    json_object_foreach_safe(tree, next, key, value) if (json_is_null(value)) json_object_del(tree, key);
}

/* null is as if the key were not there: in x, too, where both ask for the mean of what is missing. */
static void make_plain(json_t *tree) {
    json_object_del(tree, "missing");
    if (json_is_object(json_object_get(tree, "x"))) {
        json_t *flat = json_object();
        flatten(json_object_get(tree, "x"), "", flat);
        json_object_set_new(tree, "x", flat);
    }
    drop_nulls(tree);
    drop_nulls(json_object_get(tree, "x"));
    if (json_is_boolean(json_object_get(tree, "y")))
        json_object_set_new(tree, "y", json_real(json_is_true(json_object_get(tree, "y"))));
    if (json_real_value(json_object_get(tree, "w")) == 1)
        json_object_del(tree, "w");
}

static void rows_are_those_of_the_reader(void **state) {
    (void)state;
    struct svi_json_input in = {.columns = options};
    struct svi_bytes mine = {0}, other = {0};
    svs_error err;
    const int rounds = often(4000, 1000);
    int compared = 0;
    for (int i = 0; i < rounds; i++) {
        char line[1024];
        write_row(line);
        assert_int_equal(convert(&in, line, &mine, &err), SVS_OK);
        if (!read_row(line, &other))
            continue; /* the decoder refuses it, too: tests/cli/test_json */
        json_t *a = tree_of(&mine), *b = tree_of(&other);
        make_plain(a);
        make_plain(b);
        char *was = json_dumps(a, JSON_SORT_KEYS), *is = json_dumps(b, JSON_SORT_KEYS);
        if (!json_equal(a, b))
            fail_msg("%s: %s, the reader has %s", line, was, is);
        free(was);
        free(is);
        json_decref(a);
        json_decref(b);
        compared++;
    }
    assert_true(compared > rounds / 4);
    svi_bytes_clear(&mine);
    svi_bytes_clear(&other);
    svi_json_input_clear(&in);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_are_what_the_header_says), cmocka_unit_test(the_first_time_stays_the_time),
        cmocka_unit_test(values_are_those_of_jansson),    cmocka_unit_test(long_ones_are_whole),
        cmocka_unit_test(a_feature_named_like_an_id_is_found),
        cmocka_unit_test(rows_are_those_of_the_reader),   cmocka_unit_test(settings_name_columns_of_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
