/* The schema of a model: what a subscriber makes of raw rows with it has the scores of the engine;
 * what is no schema is refused; the public schema. */
#include "support/engine.h"

#include "svmstream/raw_rows.h"

static uint64_t draw(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* A row as a producer writes it, and put into a schema; NULL and NAN: missing. */
struct raw {
    const char *machine, *shift;
    double temp, load, ts;
};

#define LONG_NAME "a very long name of a machine, longer than a name of a feature is allowed to be"

static struct raw raw_draw(uint64_t *seed, int i) {
    static const char *const machines[] = {"a", "b", "press-03", "d", "e", LONG_NAME};
    static const char *const shifts[] = {"early", "late", "7"};
    const unsigned r = (unsigned)draw(seed);
    return (struct raw){.machine = r % 11 == 0 ? NULL : machines[r / 11 % 6],
                        .shift = r % 7 == 0 ? NULL : shifts[r / 77 % 3],
                        .temp = r % 5 == 0 ? NAN : (double)(r / 231 % 1000) / 7,
                        .load = r % 13 == 0 ? NAN : (double)(r / 911 % 100) / 3,
                        .ts = 1e6 + 5000.25 * i};
}

static void put_word(char *text, const char *name, const char *word) {
    sprintf(text + strlen(text), word ? "'%s': '%s', " : "'%s': null, ", name, word);
}

static void put_number(char *text, const char *name, double v) {
    if (isnan(v))
        sprintf(text + strlen(text), "'%s': null, ", name);
    else
        sprintf(text + strlen(text), "'%s': %.17e, ", name, v);
}

static svs_code raw_say(struct speaker *f, const struct raw *r, int y) {
    char text[500] = "";
    put_word(text, "machine", r->machine);
    put_number(text, "temp", r->temp);
    put_word(text, "shift", r->shift);
    put_number(text, "load", r->load);
    return say(f, "{'x': {%s 'junk': 1}, 'y': %d, 'ts': %.17e}", text, y, r->ts);
}

/* In another order, what is missing left out or said. */
static const double *raw_apply(svs_schema *s, const struct raw *r, int *d) {
    const double *x = NULL;
    svs_error err = {0};
    svs_code code = svs_schema_begin(s, &err);
    svs_schema_time(s, r->ts);
    if (code == SVS_OK && r->shift)
        code = svs_schema_word(s, "shift", r->shift, &err);
    if (code == SVS_OK && !isnan(r->load))
        code = svs_schema_number(s, "load", r->load, &err);
    if (code == SVS_OK)
        code = isnan(r->temp) ? svs_schema_missing(s, "temp", &err)
                              : svs_schema_number(s, "temp", r->temp, &err);
    if (code == SVS_OK && r->machine)
        code = svs_schema_word(s, "machine", r->machine, &err);
    if (code == SVS_OK)
        code = svs_schema_end(s, &x, d, &err);
    if (code != SVS_OK)
        fail_msg("%s", err.text);
    return x;
}

static svs_model *last_model(struct speaker *f) {
    svs_error err = {0};
    const struct svi_bytes *bytes = svi_engine_last_model(svi_stream_root(f->e));
    svs_model *m = svs_model_decode(bytes->data, bytes->size, &err);
    if (!m)
        fail_msg("%s", err.text);
    return m;
}

static double expected_score(const svs_model *m, const struct raw *r) {
    svs_error err = {0};
    svs_schema *s = svs_schema_of_model(m, &err);
    double score[1];
    int d = 0;
    if (!s)
        fail_msg("%s", err.text);
    const double *x = raw_apply(s, r, &d);
    assert_int_equal(d, m->d);
    svs_model_scores(m, x, score);
    svs_schema_free(&s);
    assert_null(s);
    return score[0];
}

/* Two passes: the values that are too many share one feature, or four. */
static void the_engines_scores(void **state) {
    (void)state;
    for (int hash = 0; hash < 2; hash++) {
        const char *settings[] = {"publish.every",
                                  "1",
                                  "scores",
                                  "1",
                                  "window",
                                  "500",
                                  "missing",
                                  "mean",
                                  "hash",
                                  hash ? "2" : "0",
                                  "categories.max",
                                  "3",
                                  "ignore",
                                  "junk",
                                  "calendar",
                                  "day,week",
                                  "zone",
                                  "+01:00",
                                  "refit",
                                  "none",
                                  NULL};
        struct speaker f;
        uint64_t seed = 5;
        int compared = 0;
        speaker_open(&f, settings);
        svi_engine_keep_model(svi_stream_root(f.e));
        f.now = 1e7;
        for (int i = 0; i < 300; i++) {
            const struct raw r = raw_draw(&seed, i);
            svs_model *m = i > 20 ? last_model(&f) : NULL;
            assert_int_equal(raw_say(&f, &r, (int)(draw(&seed) % 2)), SVS_OK);
            if (!m)
                continue;
            assert_non_null(m->schema);
            const double ours = expected_score(m, &r);
            const json_t *s = f.last[SVI_TOPIC_SCORE];
            assert_int_equal(number(s, "model"), (double)m->version);
            const double theirs = json_real_value(json_array_get(json_object_get(s, "scores"), 0));
            if (!(fabs(ours - theirs) <= 1e-11 * (1 + fabs(theirs)))) /* the engine scores in its own units */
                fail_msg("row %d: %.17g is not %.17g", i, ours, theirs);
            svs_model_free(&m);
            compared++;
        }
        assert_int_equal(compared, 279);
        const json_t *columns =
            json_object_get(json_object_get(f.last[SVI_TOPIC_MODEL], "schema"), "columns");
        assert_int_equal(json_array_size(columns), 5);
        assert_string_equal(text_of(json_array_get(columns, 0), "kind"), "category");
        assert_int_equal(json_is_integer(json_object_get(json_array_get(columns, 0), "other")), !hash);
        assert_string_equal(text_of(json_array_get(columns, 4), "kind"), "ignored");
        speaker_close(&f);
    }
}

/* Numbers alone, nothing filled: models are as they were. */
static void numbers_need_none(void **state) {
    (void)state;
    struct speaker f;
    speaker_open(&f, (const char *const[]){"publish.every", "1", NULL});
    say(&f, "{'x': {'a': 1, 'b': 2}, 'y': 0}");
    say(&f, "{'x': {'a': 2, 'b': 1}, 'y': 1}");
    assert_null(json_object_get(f.last[SVI_TOPIC_MODEL], "schema"));
    say(&f, "{'x': {'a': null, 'b': 1}, 'y': 1, 'missing': 'mean'}");
    const json_t *s = json_object_get(f.last[SVI_TOPIC_MODEL], "schema");
    assert_string_equal(text_of(s, "missing"), "auto");
    assert_true(number(json_array_get(json_object_get(s, "columns"), 0), "mean") == 1.5);
    speaker_close(&f);
}

static svs_model *with_schema(struct speaker *f, const char *schema, svs_error *err) {
    static const char *const features[] = {"a", "m=u", "m=v", "day.sin", "day.cos"};
    const svs_value classes[] = {svs_int(0), svs_int(1)};
    svs_model m = {.method = "alsvm",
                   .d = 5,
                   .rows = 1,
                   .class_count = 2,
                   .W = (const double[]){1, 2, 4, 8, 16},
                   .b = (const double[]){0.5},
                   .classes = classes,
                   .features = features};
    struct svi_bytes bytes = {0};
    speaker_build(f, "%s", schema);
    m.schema = f->frame.data;
    m.schema_size = f->frame.size;
    assert_int_equal(svi_model_encode(&m, NULL, 0, &bytes), SVS_OK);
    svs_model *out = svs_model_decode(bytes.data, bytes.size, err);
    if (out) { /* as it came */
        assert_int_equal(out->schema_size, f->frame.size);
        assert_memory_equal(out->schema, f->frame.data, f->frame.size);
    }
    svi_bytes_clear(&bytes);
    return out;
}

#define SCHEMA(columns, rest) "{'missing': 'mean', 'columns': [" columns "]" rest "}"
#define NUMBERS               "{'name': 'a', 'kind': 'number', 'feature': 0, 'mean': 7.5}"
#define WORDS                 "{'name': 'm', 'kind': 'category', 'features': [1, 2]}"

static void malformed_schemas(void **state) {
    (void)state;
    static const struct {
        const char *schema, *part;
    } cases[] = {
        {"7", "must be a map"},
        {"{'missing': 'mean'}", "has no columns"},
        {"{'missing': 'never', 'columns': []}", "missing"},
        {"{'missing': 'mean', 'columns': 3}", "must be an array"},
        {SCHEMA("4", ""), "must be a map"},
        {SCHEMA("{'name': 'a', 'kind': 'colour'}", ""), "kind"},
        {SCHEMA("{'name': '', 'kind': 'open'}", ""), "column 0"},
        {SCHEMA(NUMBERS "," NUMBERS, ""), "duplicate"},
        {SCHEMA("{'name': 'a', 'kind': 'number', 'feature': 5}", ""), "feature 5 of 5"},
        {SCHEMA("{'name': 'a', 'kind': 'number', 'feature': -1}", ""), "feature"},
        {SCHEMA(NUMBERS ",{'name': 'b', 'kind': 'number', 'feature': 0}", ""), "two columns"},
        {SCHEMA("{'name': 'm', 'kind': 'category', 'features': 1}", ""), "must be an array"},
        {SCHEMA("{'name': 'm', 'kind': 'category', 'features': ['u']}", ""), "numbers of features"},
        {SCHEMA("{'name': 'm', 'kind': 'category', 'features': [1], 'other': 2}", ""),
         "must be one of its features"},
        {SCHEMA(NUMBERS, ", 'hash': 70"), "hash"},
        {SCHEMA(NUMBERS, ", 'calendar': {'parts': 'day', 'zone': 'UTC', 'feature': 4}"), "feature 5 of 5"},
        {SCHEMA(NUMBERS, ", 'calendar': {'parts': 'day', 'zone': 'UTC', 'feature': 0}"), "two columns"},
        {SCHEMA(NUMBERS, ", 'calendar': {'parts': 'year', 'zone': 'UTC', 'feature': 3}"), "year"}};
    struct speaker f = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        svs_error err = {0};
        svs_model *m = with_schema(&f, cases[i].schema, NULL); /* nobody wants to know why */
        assert_null(m);
        m = with_schema(&f, cases[i].schema, &err);
        if (m || !strstr(err.text, cases[i].part))
            fail_msg("%s: %s", cases[i].schema, m ? "taken" : err.text);
    }
    svi_bytes_clear(&f.frame);
}

/* What a model makes of rows; unknown keys of its schema are passed over. */
static void rows_of_a_model(void **state) {
    (void)state;
    struct speaker f = {0};
    svs_error err = {0};
    int d = 0;
    const double *x = NULL;
    svs_model *m = with_schema(
        &f, SCHEMA(NUMBERS "," WORDS ",{'name': 'n', 'kind': 'ignored', 'why': [1]}", ", 'more': {'a': 1}"),
        &err);
    if (!m)
        fail_msg("%s", err.text);
    svs_schema *s = svs_schema_of_model(m, &err);
    assert_non_null(s);
    assert_int_equal(svs_schema_dimension(s), 5);
    assert_string_equal(svs_schema_feature(s, 2), "m=v");
    assert_null(svs_schema_feature(s, 5));
    assert_true(svs_schema_is_word(s, 1) && !svs_schema_is_word(s, 0));
    assert_int_equal(svs_schema_begin(s, &err), SVS_OK);
    assert_int_equal(svs_schema_word(s, "m", "v", &err), SVS_OK);
    assert_int_equal(svs_schema_word(s, "n", "whatever", &err), SVS_OK);
    assert_int_equal(svs_schema_end(s, &x, &d, &err), SVS_OK);
    assert_true(d == 5 && x[0] == 7.5 && x[1] == 0 && x[2] == 1 && x[3] == 0);
    assert_int_equal(svs_schema_begin(s, &err), SVS_OK); /* a word that no sample had */
    assert_int_equal(svs_schema_word(s, "m", "w", &err), SVS_OK);
    assert_int_equal(svs_schema_number(s, "a", -1, &err), SVS_OK);
    assert_int_equal(svs_schema_end(s, &x, &d, &err), SVS_OK);
    assert_true(x[0] == -1 && x[1] == 0 && x[2] == 0);
    const svs_code wrong[] = {SVS_WRONG_COLUMNS, SVS_WRONG_TYPE, SVS_NOT_FINITE, SVS_DUPLICATE_KEY};
    for (int i = 0; i < 4; i++) {
        svs_schema_begin(s, &err);
        svs_schema_number(s, "m", 1, &err);
        svs_code code = i == 0   ? svs_schema_number(s, "z", 1, &err)
                        : i == 1 ? svs_schema_word(s, "a", "hot", &err)
                        : i == 2 ? svs_schema_number(s, "a", INFINITY, &err)
                                 : svs_schema_word(s, "m", "u", &err);
        assert_int_equal(code, wrong[i]);
        assert_int_equal(svs_schema_end(s, &x, &d, &err), SVS_INVALID); /* the row is void */
    }
    svs_schema_free(&s);
    svs_model_free(&m);
    svi_bytes_clear(&f.frame);
}

/* A schema that grows with its rows. */
static void rows_to_learn_from(void **state) {
    (void)state;
    svs_schema_options o;
    svs_error err = {0};
    const double *x = NULL;
    int d = 0;
    svs_schema_options_default(&o);
    o.categories_max = 2;
    o.categories = "code";
    svs_schema *s = svs_schema_new(&o, &err);
    assert_non_null(s);
    for (int i = 0; i < 5; i++) {
        char word[] = {(char)('a' + i), 0};
        assert_int_equal(svs_schema_begin(s, &err), SVS_OK);
        assert_int_equal(svs_schema_word(s, "m", word, &err), SVS_OK);
        assert_int_equal(svs_schema_number(s, "code", 100 + i % 2, &err), SVS_OK);
        if (i != 3)
            assert_int_equal(svs_schema_number(s, "t", i, &err), SVS_OK);
        assert_int_equal(svs_schema_end(s, &x, &d, &err), SVS_OK);
    }
    static const char *const names[] = {"m=a", "code=100", "t", "m=b", "code=101", "m=(other)"};
    assert_int_equal(d, 6);
    for (int j = 0; j < 6; j++)
        assert_string_equal(svs_schema_feature(s, j), names[j]);
    assert_true(x[5] == 1 && x[2] == 4 && x[1] == 1 && x[0] == 0);
    assert_int_equal(svs_schema_begin(s, &err), SVS_OK);
    assert_int_equal(svs_schema_end(s, &x, &d, &err), SVS_OK);
    assert_true(isnan(x[2]) && x[5] == 0);
    assert_int_equal(svs_schema_begin(s, &err), SVS_OK);
    assert_int_equal(svs_schema_word(s, "new", "u", &err), SVS_OK);
    assert_int_equal(svs_schema_word(s, "t", "u", &err),
                     SVS_WRONG_TYPE); /* takes the row back, names and all */
    assert_int_equal(svs_schema_dimension(s), 6);
    svs_schema_free(&s);
    o.zone = "Nowhere/Else";
    o.calendar = "day";
    assert_null(svs_schema_new(&o, &err));
    assert_int_equal(err.code, SVS_SETTING);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_engines_scores), cmocka_unit_test(numbers_need_none),
        cmocka_unit_test(malformed_schemas),  cmocka_unit_test(rows_of_a_model),
        cmocka_unit_test(rows_to_learn_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
