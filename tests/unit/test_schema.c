/* Columns of words, missing values and the calendar, through the engine: rows under names against the same
 * rows turned into columns of 0 and 1 by hand. */
#include "support/archived.h"
#include "support/engine.h"

#include "base/random.h"
#include "store/checkpoint_file.h"

static double schema_uniform(struct svi_random *r) {
    return (double)(svi_random_next(r) >> 11) * 0x1p-53;
}

static const char *const plain[] = {"novelty", "none", "refit", "none", NULL};

static void says(struct speaker *f, const char *text) {
    f->error = SVS_OK;
    if (say(f, "%s", text) != SVS_OK || f->error != SVS_OK)
        fail_msg("%s: %s", text, text_of(f->last[SVI_TOPIC_ERROR], "reason"));
}

/* Refused with this code and part of a reason, and nothing stays of it. */
static void refuses(struct speaker *f, const char *text, svs_code code, const char *part) {
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    assert_int_equal(svi_stream_hash(f->e, before, NULL), SVS_OK);
    f->error = SVS_OK;
    say(f, "%s", text);
    if (f->error != code || !strstr(text_of(f->last[SVI_TOPIC_ERROR], "reason"), part))
        fail_msg("%s: %s (%s)", text, text_of(f->last[SVI_TOPIC_ERROR], "reason"), svs_code_name(f->error));
    assert_int_equal(svi_stream_hash(f->e, after, NULL), SVS_OK);
    assert_string_equal(before, after);
}

static void model_of(struct speaker *f, svs_model *m) {
    const struct svi_figure *quality;
    int count;
    assert_int_equal(svi_engine_model(svi_stream_root(f->e), m, &quality, &count, NULL), SVS_OK);
}

static double weight_of(const svs_model *m, const char *name) {
    for (int j = 0; m->features && j < m->d; j++)
        if (strcmp(m->features[j], name) == 0)
            return m->W[j];
    return NAN;
}

static int feature_of(struct speaker *f, const char *name) {
    const svs_features *names = svi_engine_schema(svi_stream_root(f->e))->shape.names;
    return svs_features_find(names, name, strlen(name));
}

/* ---- a category is its columns of 0 and 1 */

#define ROWS 400

struct logged {
    double t, v;
    int m, s, y;
};

static struct logged row_of(struct svi_random *r) {
    struct logged l = {.t = schema_uniform(r) * 10, .v = schema_uniform(r) - 0.5};
    l.m = (int)(schema_uniform(r) * 5);
    l.s = (int)(schema_uniform(r) * 3);
    l.y = l.t + 3 * (l.m == 2) - 2 * (l.s == 1) + 4 * l.v > 5.5;
    return l;
}

static void as_map(char *out, size_t size, const struct logged *l) {
    snprintf(out, size, "{'x':{'t':%.17g,'m':'m%d','v':%.17g,'s':'s%d'},'y':%d}", l->t, l->m, l->v, l->s,
             l->y);
}

static void as_array(char *out, size_t size, const struct logged *l) {
    snprintf(out, size, "{'columns':['t','m','v','s'],'x':[%.17g,'m%d',%.17g,'s%d'],'y':%d}", l->t, l->m,
             l->v, l->s, l->y);
}

static void as_turned(char *out, size_t size, const struct logged *l) {
    snprintf(out, size, "{'x':['s%d',%.17g,%.17g,'m%d'],'y':%d,'columns':['s','v','t','m']}", l->s, l->v,
             l->t, l->m, l->y);
}

/* With the columns in the order in which the values came. */
static void as_one_hot(char *out, size_t size, const struct logged *l, const svs_features *order) {
    char hot[2][16];
    size_t at = (size_t)snprintf(out, size, "{'y':%d,'x':{", l->y);
    snprintf(hot[0], sizeof hot[0], "m=m%d", l->m);
    snprintf(hot[1], sizeof hot[1], "s=s%d", l->s);
    for (int j = 0; j < svs_features_count(order); j++) {
        const char *name = svs_features_name(order, j);
        const double x = strcmp(name, "t") == 0   ? l->t
                         : strcmp(name, "v") == 0 ? l->v
                                                  : strcmp(name, hot[0]) == 0 || strcmp(name, hot[1]) == 0;
        at += (size_t)snprintf(out + at, size - at, "%s'%s':%.17g", j ? "," : "", name, x);
    }
    snprintf(out + at, size - at, "}}");
}

static void same_models(struct speaker *one, struct speaker *other, double tolerance) {
    svs_model a, b;
    model_of(one, &a);
    model_of(other, &b);
    assert_int_equal(a.d, b.d);
    if (!(fabs(a.b[0] - b.b[0]) <= tolerance))
        fail_msg("b: %.17g, %.17g", a.b[0], b.b[0]);
    for (int j = 0; j < a.d; j++) {
        assert_string_equal(a.features[j], b.features[j]);
        if (!(fabs(a.W[j] - b.W[j]) <= tolerance))
            fail_msg("%s: %.17g, %.17g", a.features[j], a.W[j], b.W[j]);
    }
}

static void test_words_are_columns_of_0_and_1(void **state) {
    static const char *const unscaled[] = {
        "novelty", "none", "refit", "none", "unscaled", "m=m0,m=m1,m=m2,m=m3,m=m4,s=s0,s=s1,s=s2", NULL};
    (void)state;
    struct speaker map, array, turned, hand;
    struct svi_random r = {7};
    speaker_open(&map, plain);
    speaker_open(&array, plain);
    speaker_open(&turned, plain);
    speaker_open(&hand, unscaled);
    struct logged rows[ROWS];
    char text[1024];
    for (int i = 0; i < ROWS; i++) {
        rows[i] = row_of(&r);
        as_map(text, sizeof text, &rows[i]);
        says(&map, text);
        as_array(text, sizeof text, &rows[i]);
        says(&array, text);
        (i ? as_turned : as_array)(text, sizeof text, &rows[i]);
        says(&turned, text);
    }
    for (int i = 0; i < ROWS; i++) {
        as_one_hot(text, sizeof text, &rows[i], svi_engine_schema(svi_stream_root(map.e))->shape.names);
        says(&hand, text);
    }
    same_models(&map, &array, 0);
    svs_model a, b; /* new values of two columns in one row have got their features the other way round */
    model_of(&map, &a);
    model_of(&turned, &b);
    for (int j = 0; j < a.d; j++)
        assert_true(fabs(a.W[j] - weight_of(&b, a.features[j])) < 1e-12);
    same_models(&map, &hand, 0);
    char one[SVI_HASH_TEXT], other[SVI_HASH_TEXT];
    svi_stream_hash(map.e, one, NULL);
    svi_stream_hash(array.e, other, NULL);
    assert_string_equal(one, other);
    speaker_close(&map);
    speaker_close(&array);
    speaker_close(&turned);
    speaker_close(&hand);
}

/* ---- values come and go */

/* With room for few values each new one takes the place of one that no held sample has; the scores are those
 * of an engine that has room for all. */
static void test_values_give_their_feature_back(void **state) {
    static const char *const few[] = {"novelty", "none",           "refit", "none", "window",
                                      "40",      "categories.max", "60",    NULL},
                             *const many[] = {"novelty", "none",           "refit", "none", "window",
                                              "40",      "categories.max", "1000",  NULL};
    (void)state;
    struct speaker small, large;
    struct svi_random r = {3};
    speaker_open(&small, few);
    speaker_open(&large, many);
    char text[200];
    double worst = 0;
    for (int i = 0; i < 1500; i++) {
        const int value = i / 4 + (int)(schema_uniform(&r) * 9);
        const double v = schema_uniform(&r);
        snprintf(text, sizeof text, "{'x':{'k':'v%d','u':%.17g},'y':%d,'id':%d}", value, v,
                 (value % 3 == 0) != (v > 0.8), i);
        says(&small, text);
        says(&large, text);
        const double a = json_number_value(
                         json_array_get(json_object_get(small.last[SVI_TOPIC_SCORE], "scores"), 0)),
                     b = json_number_value(
                         json_array_get(json_object_get(large.last[SVI_TOPIC_SCORE], "scores"), 0));
        worst = fmax(worst, fabs(a - b));
    }
    assert_true(worst < 1e-9);
    svs_model m;
    model_of(&small, &m);
    assert_in_range(m.d, 50, 61);
    assert_int_equal(feature_of(&small, "k=(other)"), -1);
    assert_int_equal(feature_of(&small, "k=v1"), -1);
    speaker_close(&small);
    speaker_close(&large);
}

static void test_values_beyond_the_most_share_one(void **state) {
    static const char *const few[] = {"novelty", "none", "categories.max", "2", NULL},
                             *const hashed[] = {"novelty", "none", "categories.max", "2", "hash", "2", NULL};
    (void)state;
    struct speaker f;
    char text[100];
    speaker_open(&f, few);
    for (int i = 0; i < 50; i++) {
        snprintf(text, sizeof text, "{'x':{'k':'v%d'},'y':%d}", i, i % 2);
        says(&f, text);
    }
    assert_int_equal(svi_engine_schema(svi_stream_root(f.e))->shape.d, 3);
    assert_true(feature_of(&f, "k=(other)") == 2);
    speaker_close(&f);
    speaker_open(&f, hashed);
    for (int i = 0; i < 50; i++) {
        snprintf(text, sizeof text, "{'x':{'k':'v%d'},'y':%d}", i, i % 2);
        says(&f, text);
    }
    assert_int_equal(svi_engine_schema(svi_stream_root(f.e))->shape.d, 6);
    assert_true(feature_of(&f, "k=#3") >= 2);
    speaker_close(&f);
}

static void test_long_values_are_told_apart(void **state) {
    (void)state;
    struct speaker f;
    char text[700], word[400];
    memset(word, 'a', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    speaker_open(&f, plain);
    for (int i = 0; i < 6; i++) {
        word[300] = (char)('a' + i % 3);
        snprintf(text, sizeof text, "{'x':{'k':'%s'},'y':%d}", word, i % 2);
        says(&f, text);
    }
    assert_int_equal(svi_engine_schema(svi_stream_root(f.e))->shape.d, 3);
    speaker_close(&f);
}

/* ---- what is refused, and what stays of it */

static void test_refused_rows_leave_nothing(void **state) {
    static const char *const strict[] = {"novelty", "none", "columns.new", "refuse", NULL}, *const fixed[] = {
                                                                                                "novelty",
                                                                                                "none",
                                                                                                "features",
                                                                                                "a,k", NULL};
    (void)state;
    struct speaker f;
    speaker_open(&f, plain);
    refuses(&f, "{'x':{'a':1,'k':'one','b':[]},'y':1}", SVS_WRONG_TYPE, "b");
    says(&f, "{'x':{'a':1,'k':'one'},'y':1}");
    refuses(&f, "{'x':{'a':'word','k':'two'},'y':1}", SVS_WRONG_TYPE, "holds numbers");
    refuses(&f, "{'x':{'k':'three','n':'new','a':2},'y':1.5}", SVS_BAD_LABEL, "1.5");
    refuses(&f, "{'x':{'k':'','a':2},'y':1}", SVS_WRONG_TYPE, "empty");
    refuses(&f, "{'x':{'k':'one','k':'two'},'y':1,'ts':'never'}", SVS_WRONG_TYPE, "ts");
    says(&f, "{'x':{'k':'two','a':2},'y':0}");
    assert_int_equal(feature_of(&f, "k=two"), 2);
    assert_int_equal(feature_of(&f, "k=three"), -1);
    speaker_close(&f);
    speaker_open(&f, strict);
    says(&f, "{'x':{'a':1,'k':'one'},'y':1}");
    says(&f, "{'x':{'a':1,'k':'two'},'y':1}");
    refuses(&f, "{'x':{'a':1,'c':3},'y':1}", SVS_BAD_COLUMN, "columns.new");
    speaker_close(&f);
    speaker_open(&f, fixed);
    says(&f, "{'x':{'a':1,'k':'one'},'y':1}");
    says(&f, "{'x':{'a':1,'k':'two'},'y':0}");
    refuses(&f, "{'x':{'a':1,'c':3},'y':1}", SVS_BAD_COLUMN, "features");
    assert_int_equal(svi_engine_schema(svi_stream_root(f.e))->shape.d, 3);
    speaker_close(&f);
}

static void test_settings_of_columns(void **state) {
    static const char *const settings[] = {"novelty",   "none",    "categories", "zip", "ignore",
                                           "row, site", "numbers", "n",          NULL};
    (void)state;
    struct speaker f;
    speaker_open(&f, settings);
    says(&f, "{'x':{'row':1,'zip':8001,'n':2,'site':'here'},'y':1}");
    says(&f, "{'x':{'row':2,'zip':8002.5,'n':3,'site':'there'},'y':0}");
    assert_int_equal(svi_engine_schema(svi_stream_root(f.e))->shape.d, 3);
    assert_int_equal(feature_of(&f, "zip=8001"), 0);
    assert_int_equal(feature_of(&f, "n"), 1);
    assert_int_equal(feature_of(&f, "zip=8002.5"), 2);
    refuses(&f, "{'x':{'n':'word'},'y':1}", SVS_WRONG_TYPE, "numbers");
    speaker_close(&f);
}

/* ---- missing values */

static double last_score(struct speaker *f) {
    return json_number_value(json_array_get(json_object_get(f->last[SVI_TOPIC_SCORE], "scores"), 0));
}

static void test_means_of_the_held_samples(void **state) {
    static const char *const three[] = {"novelty", "none",    "refit", "none", "window",
                                        "3",       "missing", "mean",  NULL};
    (void)state;
    struct speaker f, given;
    speaker_open(&f, three);
    speaker_open(&given, three);
    static const char *const rows[][2] = {
        {"{'x':{'a':null,'b':2},'y':1}", "{'x':{'a':0,'b':2},'y':1}"},
        {"{'x':{'a':6,'b':3},'y':0}", "{'x':{'a':6,'b':3},'y':0}"},
        {"{'x':{'a':null,'b':1},'y':1}", "{'x':{'a':3,'b':1},'y':1}"},
        {"{'x':{'a':9,'b':1},'y':1}", "{'x':{'a':9,'b':1},'y':1}"},
        {"{'x':{'a':null,'b':null},'y':0}", "{'x':{'a':6,'b':1.6666666666666667},'y':0}"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        says(&f, rows[i][0]);
        says(&given, rows[i][1]);
    }
    same_models(&f, &given, 1e-12);
    assert_true(stat(&f, "filled_missing") == 4);
    speaker_close(&f);
    speaker_close(&given);
}

static void test_policies(void **state) {
    static const char *const drop[] = {"novelty", "none", "missing", "drop", NULL}, *const carry[] = {
                                                                                        "novelty", "none",
                                                                                        "missing", "carry",
                                                                                        NULL};
    (void)state;
    struct speaker f;
    speaker_open(&f, plain);
    says(&f, "{'x':{'a':1,'k':'one'},'y':1}");
    refuses(&f, "{'x':{'a':null,'k':'one'},'y':1}", SVS_MISSING_VALUE, "a");
    says(&f, "{'x':{'a':null,'k':'one'},'y':1,'missing':'zero'}");
    says(&f, "{'x':{'k':'two'},'y':0}"); /* absent is 0 */
    says(&f, "{'x':{'k':'two'},'y':0,'missing':'mean'}");
    says(&f, "{'missing':'mean','x':{'a':3,'k':null},'y':0}");
    assert_true(stat(&f, "filled_missing") == 2);
    assert_true(stat(&f, "seen") == 5);
    refuses(&f, "{'x':{'a':1},'y':0,'missing':'guess'}", SVS_WRONG_TYPE, "missing");
    speaker_close(&f);
    speaker_open(&f, drop);
    says(&f, "{'x':{'a':1,'k':'one'},'y':1}");
    says(&f, "{'x':{'a':null,'k':'new'},'y':1}");
    assert_true(stat(&f, "seen") == 1 && stat(&f, "dropped_missing") == 1);
    assert_int_equal(feature_of(&f, "k=new"), -1);
    speaker_close(&f);
    speaker_open(&f, carry);
    says(&f, "{'x':{'a':1,'k':'one'},'y':1}");
    says(&f, "{'x':{'a':null,'k':'two'},'y':0}");
    assert_true(stat(&f, "carried_missing") == 1);
    speaker_close(&f);
}

/* A column whose first values are missing is what its first value says, at its place. */
static void test_columns_that_begin_without_a_value(void **state) {
    static const char *const mean[] = {"novelty", "none", "missing", "mean", NULL};
    (void)state;
    struct speaker map, array;
    speaker_open(&map, mean);
    speaker_open(&array, mean);
    says(&map, "{'x':{'k':null,'a':1,'n':null},'y':1,'missing':'mean'}");
    says(&map, "{'x':{'k':'one','a':2,'n':4},'y':0,'missing':'mean'}");
    says(&map, "{'x':{'k':'two','a':2,'n':4},'y':1,'missing':'mean'}");
    says(&array, "{'columns':['k','a','n'],'x':[null,1,null],'y':1,'missing':'mean'}");
    says(&array, "{'columns':['n','a','k'],'x':[4,2,'one'],'y':0,'missing':'mean'}");
    says(&array, "{'columns':true,'x':['two',2,4],'y':1,'missing':'mean'}");
    assert_int_equal(feature_of(&map, "k=one"), 0);
    assert_int_equal(feature_of(&map, "n"), 2);
    same_models(&map, &array, 0);
    speaker_close(&map);
    speaker_close(&array);
}

static void test_lists_may_leave_columns_out(void **state) {
    (void)state;
    struct speaker f;
    speaker_open(&f, plain);
    says(&f, "{'columns':['a','b'],'x':[1,2],'y':1}");
    says(&f, "{'columns':['a','b'],'x':[3,1],'y':0}");
    refuses(&f, "{'columns':['b'],'x':[2],'y':1}", SVS_WRONG_COLUMNS, "a, b");
    refuses(&f, "{'columns':['b','c'],'x':[2,3],'y':1,'missing':'mean'}", SVS_WRONG_COLUMNS, "b, c");
    says(&f, "{'columns':['b'],'x':[2],'y':1,'missing':'mean'}");
    says(&f, "{'x':[3,1],'y':0}"); /* arrays go on */
    says(&f, "{'x':{'b':1,'a':4},'y':1}");
    says(&f, "{'x':{'b':1,'a':4,'k':'word'},'y':1}");
    refuses(&f, "{'x':[3,1],'y':0}", SVS_WRONG_KIND, "named");
    assert_true(stat(&f, "seen") == 6);
    speaker_close(&f);
}

/* ---- the calendar */

static void test_calendar(void **state) {
    static const char *const settings[] = {"novelty", "none", "calendar", "day,week", "zone", "+02:00", NULL};
    (void)state;
    struct speaker f;
    speaker_open(&f, settings);
    f.now = 1800000000;
    says(&f, "{'x':{'a':1},'y':1,'ts':1763850600}"); /* 2025-11-22 22:30 UTC, a Sunday 00:30 there */
    const struct svi_schema *s = svi_engine_schema(svi_stream_root(f.e));
    assert_int_equal(s->shape.d, 6);
    assert_int_equal(feature_of(&f, "weekend"), 5);
    says(&f, "{'x':{'a':2},'y':0,'ts':1763872200}"); /* six hours later */
    refuses(&f, "{'x':{'a':2,'day.sin':1},'y':0}", SVS_BAD_COLUMN, "day.sin");
    speaker_close(&f);
    speaker_open(&f, settings);
    f.now = 1800000000;
    refuses(&f, "{'x':[1,2],'y':1}", SVS_NOT_SUPPORTED, "names");
    speaker_close(&f);
}

/* ---- kept */

static void reopen(struct speaker *f) {
    struct svi_checkpoint c = {0};
    svs_error err = {0};
    char one[SVI_HASH_TEXT], other[SVI_HASH_TEXT];
    assert_int_equal(svi_stream_save(f->e, &c, &err), SVS_OK);
    svi_stream *again = svi_stream_new(&f->s, 77, speaker_sink, f, &err);
    assert_non_null(again);
    if (svi_stream_load(again, &c, &err) != SVS_OK)
        fail_msg("%s", err.text);
    svi_stream_hash(f->e, one, NULL);
    svi_stream_hash(again, other, NULL);
    assert_string_equal(one, other);
    svi_stream_free(&f->e);
    f->e = f->control.stream = again;
    svi_checkpoint_clear(&c);
}

static void test_kept_as_it_was(void **state) {
    static const char *const settings[] = {"window",   "50",  "categories.max", "12",   "missing", "mean",
                                           "calendar", "day", "labels.ttl",     "1000", NULL};
    (void)state;
    struct speaker whole, half;
    struct svi_random r = {11};
    char text[300], one[SVI_HASH_TEXT], other[SVI_HASH_TEXT];
    speaker_open(&whole, settings);
    speaker_open(&half, settings);
    for (int i = 0; i < 1200; i++) {
        const int value = i / 20 + (int)(schema_uniform(&r) * 6);
        const bool late = schema_uniform(&r) < 0.1;
        snprintf(text, sizeof text, "{'x':{'k':'v%d','u':%.17g,'w':%s},'id':%d,'ts':%d%s}", value,
                 schema_uniform(&r), schema_uniform(&r) < 0.1 ? "null" : "3", i, 900000 + i,
                 late    ? ""
                 : i % 2 ? ",'y':1"
                         : ",'y':0");
        whole.now = half.now = 1000000 + i;
        whole.error = half.error = SVS_OK;
        say(&whole, "%s", text);
        say(&half, "%s", text);
        assert_int_equal(whole.error, half.error);
        if (late)
            continue;
        snprintf(text, sizeof text, "{'op':'label','id':%d,'y':1}", i - 9);
        say(&whole, "%s", text);
        say(&half, "%s", text);
        if (i % 100 != 57)
            continue;
        reopen(&half);
        svi_stream_hash(whole.e, one, NULL);
        svi_stream_hash(half.e, other, NULL);
        assert_string_equal(one, other);
    }
    same_models(&whole, &half, 0);
    assert_true(last_score(&whole) == last_score(&half));
    speaker_close(&whole);
    speaker_close(&half);
}

static void test_kept_with_fixed_columns(void **state) {
    static const char *const settings[] = {"features", "k,a,j", "missing", "mean", "calendar", "day", NULL};
    (void)state;
    struct speaker f;
    speaker_open(&f, settings);
    reopen(&f);
    says(&f, "{'x':{'a':1},'y':1,'missing':'mean','ts':5}");
    reopen(&f);
    for (int i = 0; i < 30; i++) {
        char text[200];
        snprintf(text, sizeof text, "{'x':{'k':'v%d','a':%d,'j':'%030d%030d%030d'},'y':%d}", i % 5, i, i % 3,
                 7, 9, i % 2);
        says(&f, text);
        if (i % 7 == 0)
            reopen(&f);
    }
    assert_int_equal(feature_of(&f, "k=v0"), 0);
    assert_int_equal(svi_engine_schema(svi_stream_root(f.e))->shape.d, 1 + 2 + 5 + 3);
    speaker_close(&f);
}

/* Columns that were named before there was a row. */
static void test_kept_without_a_row(void **state) {
    static const char *const settings[] = {"novelty", "none", "categories", "k", NULL};
    (void)state;
    struct speaker f;
    speaker_open(&f, settings);
    says(&f, "{'columns':['a','k','b']}");
    reopen(&f);
    says(&f, "{'columns':true,'x':[1,'one',2],'y':1}");
    assert_int_equal(feature_of(&f, "k=one"), 1);
    speaker_close(&f);
    speaker_open(&f, settings);
    says(&f, "{'columns':['a','k','b']}");
    json_decref(ask(&f, "{'op':'prune'}"));
    says(&f, "{'x':{'k':'one'},'y':1}");
    assert_int_equal(feature_of(&f, "k=one"), 0);
    speaker_close(&f);
}

static void archive_units(struct svi_archive *a, void *units) {
    svi_units_archive(a, units, 9);
}

static const char *schema_unit(struct speaker *f, const char *name) {
    return svi_schema_unit(svi_engine_schema(svi_stream_root(f->e)), feature_of(f, name));
}

/* The stream keeps units by names, whatever comes of its columns and of itself. */
static void test_units_are_kept(void **state) {
    (void)state;
    struct speaker f;
    struct svi_checkpoint c = {0};
    svs_error err;
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    speaker_open(&f, plain);
    says(&f, "{'x':{'k':'one','temp':20,'flow':1},'y':1}");
    reopen(&f);
    assert_null(schema_unit(&f, "temp"));
    svi_stream_hash(f.e, before, NULL);
    struct svi_units *units = svi_engine_schema(svi_stream_root(f.e))->o.units;
    assert_int_equal(svi_units_set(units, "temp", "\u00b0C", 3, &err), SVS_OK);
    assert_int_equal(svi_units_set(units, "one", "%", 3, &err), SVS_OK);
    assert_int_equal(svi_units_set(units, "two", "$", 3, &err), SVS_OK);
    assert_int_equal(svi_units_set(units, "three", "m", 3, &err), SVS_LIMIT);
    svi_stream_hash(f.e, after, NULL);
    assert_string_equal(before, after);
    assert_int_equal(svi_stream_save(f.e, &c, &err), SVS_OK);
    reopen(&f);
    assert_string_equal(schema_unit(&f, "temp"), "\u00b0C");
    assert_null(schema_unit(&f, "flow"));
    assert_null(schema_unit(&f, "k=one"));
    units = svi_engine_schema(svi_stream_root(f.e))->o.units;
    assert_int_equal(svi_units_set(units, "temp", "K", 3, &err), SVS_OK);
    svi_stream *then = svi_stream_then(f.e, &c, &err);
    assert_non_null(then);
    svi_stream_go_back(f.e, &then, "back", 0);
    assert_string_equal(schema_unit(&f, "temp"), "K"); /* as the input has it now */
    svi_checkpoint_clear(&c);
    speaker_close(&f);
}

static void test_damaged_units_are_refused(void **state) {
    (void)state;
    struct svi_units units = {0}, loaded = {0};
    struct svi_bytes bytes = {0};
    svs_error err;
    assert_int_equal(svi_units_set(&units, "temp", "\u00b0C", 9, &err), SVS_OK);
    assert_int_equal(svi_units_set(&units, "tamp", "bar", 9, &err), SVS_OK);
    assert_int_equal(archived_save(archive_units, &units, &bytes, &err), SVS_OK);
    assert_int_equal(archived_load(archive_units, &loaded, bytes.data, bytes.size, &err), SVS_OK);
    assert_string_equal(svi_units_find(&loaded, "tamp"), "bar");
    for (size_t i = 0; i + 4 <= bytes.size; i++)
        if (memcmp(bytes.data + i, "tamp", 4) == 0)
            bytes.data[i + 1] = 'e';
    assert_int_equal(archived_load(archive_units, &loaded, bytes.data, bytes.size, &err), SVS_DAMAGED);
    assert_non_null(strstr(err.text, "duplicate"));
    svi_units_clear(&units);
    svi_units_clear(&loaded);
    svi_bytes_clear(&bytes);
}

static void test_kept_before_all_have_a_value(void **state) {
    static const char *const fixed[] = {"features", "site,temp,alarm", "novelty", "none", NULL},
                             *const unscaled[] = {"features", "a,b,c", "unscaled", "a",
                                                  "novelty",  "none",  NULL};
    (void)state;
    struct speaker f;
    speaker_open(&f, fixed);
    says(&f, "{'x':{'site':'here','temp':20,'alarm':0},'y':1}");
    reopen(&f);
    says(&f, "{'x':{'site':'there','temp':21,'alarm':0},'y':0}");
    reopen(&f);
    says(&f, "{'x':{'site':'there','temp':21,'alarm':1},'y':0}");
    reopen(&f);
    speaker_close(&f);
    speaker_open(&f, unscaled);
    says(&f, "{'x':{'a':1000,'b':20,'c':0},'y':1}");
    reopen(&f);
    for (int i = 0; i < 40; i++) {
        char text[100];
        snprintf(text, sizeof text, "{'x':{'a':%d,'b':%d,'c':0},'y':%d}", i * i % 7, i % 5, i % 2);
        says(&f, text);
    }
    reopen(&f);
    speaker_close(&f);
}

/* What a scored row would change is gone when the next model goes out. */
static void test_scores_keep_no_names(void **state) {
    static const char *const zero[] = {"missing", "zero", "novelty", "none", "refit", "none", NULL};
    (void)state;
    struct speaker f;
    svs_model m;
    speaker_open(&f, zero);
    says(&f, "{'x':{'a':1,'c':null},'y':1,'missing':'zero'}");
    json_decref(ask(&f, "{'op':'score','sample':{'x':{'a':1,'c':'word'}}}"));
    says(&f, "{'x':{'a':2,'c':null},'y':0,'missing':'zero'}");
    model_of(&f, &m);
    assert_string_equal(m.features[1], "c");
    speaker_close(&f);
}

static void test_prune(void **state) {
    static const char *const settings[] = {"novelty", "none", "refit", "none", "window", "10", NULL};
    (void)state;
    struct speaker f;
    svs_model m;
    char text[200];
    speaker_open(&f, settings);
    for (int i = 0; i < 60; i++) {
        snprintf(text, sizeof text, "{'x':{'k':'v%d','%s':1,'j':'w%d'},'y':%d}", i / 10, i < 20 ? "a" : "b",
                 i % 2, i % 2);
        says(&f, text);
    }
    json_decref(ask(&f, "{'op':'prune'}"));
    model_of(&f, &m);
    assert_int_equal(m.d, 4);
    assert_true(!isnan(weight_of(&m, "k=v5")) && !isnan(weight_of(&m, "b")) && !isnan(weight_of(&m, "j=w1")));
    for (int i = 0; i < 60; i++) {
        snprintf(text, sizeof text, "{'x':{'j':'w%d','a':1,'k':'v%d'},'y':%d}", i % 3, i / 10, i % 2);
        says(&f, text);
    }
    model_of(&f, &m);
    assert_int_equal(m.d, 4 + 5 + 2);
    speaker_close(&f);
}

/* ---- what holds rows and the columns beside it */

/* A number of the row in which the first word comes is one for good. */
static void test_numbers_before_the_first_word(void **state) {
    (void)state;
    struct speaker f;
    speaker_open(&f, plain);
    says(&f, "{'x':{'a':5,'k':'one'},'y':1}");
    refuses(&f, "{'x':{'a':'word','k':'one'},'y':0}", SVS_WRONG_TYPE, "holds numbers");
    speaker_close(&f);
    speaker_open(&f, plain);
    says(&f, "{'columns':['a','b'],'x':[5,null],'missing':'mean','y':1}");
    refuses(&f, "{'x':{'a':'word','b':1},'y':0}", SVS_WRONG_TYPE, "holds numbers");
    speaker_close(&f);
}

/* What is refused after a feature was to change hands. */
static void test_refused_values_change_no_hands(void **state) {
    static const char *const few[] = {"novelty",        "none", "refit",       "none", "window", "2",
                                      "categories.max", "2",    "max.classes", "2",    NULL};
    (void)state;
    struct speaker f;
    char text[100];
    speaker_open(&f, few);
    for (int i = 0; i < 8; i++) {
        snprintf(text, sizeof text, "{'x':{'k':'v%d','a':1},'y':%d}", i / 4, i % 2);
        says(&f, text);
    }
    assert_int_equal(feature_of(&f, "k=v0"), 0);
    refuses(&f, "{'x':{'k':'new','a':1},'y':7}", SVS_LIMIT, "max.classes");
    refuses(&f, "{'x':{'k':'new','a':1e200},'y':1}", SVS_TOO_LARGE, "1e+200");
    assert_int_equal(feature_of(&f, "k=v0"), 0);
    assert_int_equal(feature_of(&f, "k=new"), -1);
    says(&f, "{'x':{'k':'new','a':1},'y':1}");
    assert_int_equal(feature_of(&f, "k=new"), 0);
    speaker_close(&f);
}

/* A word that is refused leaves a stream of arrays what it was. */
static void test_refused_words_make_no_columns(void **state) {
    (void)state;
    struct speaker f;
    speaker_open(&f, plain);
    says(&f, "{'columns':['a','b'],'x':[1,2],'y':1}");
    refuses(&f, "{'x':{'a':1,'b':'word'},'y':1}", SVS_WRONG_TYPE, "holds numbers");
    refuses(&f, "{'x':{'a':1,'k':'word'},'y':1.5}", SVS_BAD_LABEL, "1.5");
    says(&f, "{'x':{'a':1,'b':2},'y':1}");
    says(&f, "{'x':[3,1],'y':0}");
    refuses(&f, "{'columns':['p','q'],'x':['v','w'],'y':1}", SVS_WRONG_COLUMNS, "p, q");
    speaker_close(&f);
    speaker_open(&f, plain);
    refuses(&f, "{'columns':['p','q'],'x':['v',1],'y':1.5}", SVS_BAD_LABEL, "1.5");
    says(&f, "{'x':{'q':1,'p':'v'},'y':1}");
    says(&f, "{'columns':['p','q'],'x':['v',2],'y':0}");
    assert_int_equal(svi_engine_schema(svi_stream_root(f.e))->shape.d, 2);
    speaker_close(&f);
}

static void test_refused_words_of_fixed_columns(void **state) {
    static const char *const fixed[] = {"novelty", "none", "features", "a,k", NULL};
    (void)state;
    struct speaker f;
    speaker_open(&f, fixed);
    refuses(&f, "{'x':{'a':1,'k':'word'},'y':1.5}", SVS_BAD_LABEL, "1.5");
    says(&f, "{'x':[3,1],'y':0}");
    speaker_close(&f);
}

/* Packed numbers are values of columns too. */
static void test_packed_numbers_of_columns(void **state) {
    static const char *const settings[] = {"novelty", "none", "categories", "k", NULL};
    (void)state;
    struct speaker f;
    const double values[] = {7, 2};
    speaker_open(&f, settings);
    says(&f, "{'x':{'a':1,'k':'one'},'y':1}");
    struct svi_pack p;
    f.frame.size = 0;
    svi_pack_begin(&p, &f.frame);
    svi_pack_map(&p, 3);
    svi_pack_key(&p, "columns");
    svi_pack_array(&p, 2);
    svi_pack_text(&p, "k");
    svi_pack_text(&p, "a");
    svi_put_doubles(&p, "x", values, 2);
    svi_put_int(&p, "y", 0);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    struct svi_receipt r;
    apply_bytes(f.e, f.frame.data, f.frame.size, f.now, false, &r);
    assert_int_equal(r.accepted, 1);
    assert_int_equal(feature_of(&f, "k=7"), 2);
    speaker_close(&f);
}

/* A row that names no column at all. */
static void test_rows_without_a_column(void **state) {
    (void)state;
    struct speaker f, given;
    speaker_open(&f, plain);
    speaker_open(&given, plain);
    for (int i = 0; i < 2; i++) {
        says(i ? &given : &f, "{'x':{'a':4,'k':'one'},'y':1}");
        says(i ? &given : &f, "{'x':{'a':2,'k':'two'},'y':0}");
    }
    says(&f, "{'missing':'mean','x':{},'y':1}");
    says(&given, "{'missing':'mean','x':{'a':null,'k':null},'y':1}");
    same_models(&f, &given, 0);
    assert_true(stat(&f, "filled_missing") == 1);
    speaker_close(&f);
    speaker_close(&given);
}

/* Columns whose names look like those of values. */
static void test_columns_named_like_values(void **state) {
    static const char *const few[] = {"novelty", "none", "categories.max", "1", NULL};
    (void)state;
    struct speaker f;
    speaker_open(&f, few);
    says(&f, "{'x':{'k':'one','k=(other)':5},'y':1}");
    refuses(&f, "{'x':{'k':'two','k=(other)':4},'y':0}", SVS_BAD_COLUMN, "both");
    says(&f, "{'x':{'k':'one','k=(other)':3},'y':0}");
    refuses(&f, "{'x':{'k':'one','k=one':3},'y':0}", SVS_BAD_COLUMN, "both");
    speaker_close(&f);
    speaker_open(&f, plain);
    says(&f, "{'x':{'k':'(other)','j':'#3'},'y':1}");
    refuses(&f, "{'x':{'k':'one','':1},'y':1}", SVS_BAD_COLUMN, "64 bytes");
    speaker_close(&f);
}

static void test_long_columns_are_told_apart(void **state) {
    (void)state;
    struct speaker f;
    char text[300], column[65];
    memset(column, 'c', 64);
    column[64] = '\0';
    speaker_open(&f, plain);
    snprintf(text, sizeof text, "{'x':{'%s':'yes','%.63sd':'yes'},'y':1}", column, column);
    says(&f, text);
    assert_int_equal(svi_engine_schema(svi_stream_root(f.e))->shape.d, 2);
    speaker_close(&f);
}

/* Prune keeps a column of which the shared value alone is held. */
static void test_prune_keeps_shared_values(void **state) {
    static const char *const few[] = {"novelty", "none",           "refit", "none", "window",
                                      "4",       "categories.max", "1",     NULL};
    (void)state;
    struct speaker f;
    char text[100];
    speaker_open(&f, few);
    for (int i = 0; i < 8; i++) {
        snprintf(text, sizeof text, "{'x':{'k':'%s','j':'w%d'},'y':%d}",
                 i == 0   ? "one"
                 : i == 3 ? "one"
                          : "two",
                 i % 2, i % 2);
        says(&f, text);
    }
    json_decref(ask(&f, "{'op':'prune'}"));
    assert_true(feature_of(&f, "k=(other)") >= 0);
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "{'x':{'k':'%s','j':'w%d'},'y':%d}", i % 2 ? "two" : "three", i % 2,
                 i % 2);
        says(&f, text);
    }
    speaker_close(&f);
}

/* A sample that was forgotten or reset gives its value back at once, whether the state was kept in between or
 * not. */
static void test_forgotten_values_are_free(void **state) {
    static const char *const few[] = {"novelty", "none",           "refit", "none", "window",
                                      "9",       "categories.max", "2",     NULL};
    (void)state;
    for (int kept = 0; kept < 2; kept++)
        for (int how = 0; how < 2; how++) {
            struct speaker f;
            speaker_open(&f, few);
            says(&f, "{'x':{'k':'v0','a':1},'y':1,'id':1}");
            for (int i = 0; i < 3; i++)
                says(&f, "{'x':{'k':'v1','a':2},'y':0,'id':2}");
            if (how == 0)
                says(&f, "{'op':'forget','id':1}");
            else
                svi_engine_reset(svi_stream_root(f.e));
            if (kept)
                reopen(&f);
            says(&f, "{'x':{'k':'new','a':1},'y':1}");
            assert_int_equal(feature_of(&f, "k=new"), 0);
            speaker_close(&f);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_are_columns_of_0_and_1),
        cmocka_unit_test(test_values_give_their_feature_back),
        cmocka_unit_test(test_values_beyond_the_most_share_one),
        cmocka_unit_test(test_long_values_are_told_apart),
        cmocka_unit_test(test_refused_rows_leave_nothing),
        cmocka_unit_test(test_settings_of_columns),
        cmocka_unit_test(test_means_of_the_held_samples),
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_columns_that_begin_without_a_value),
        cmocka_unit_test(test_lists_may_leave_columns_out),
        cmocka_unit_test(test_calendar),
        cmocka_unit_test(test_kept_as_it_was),
        cmocka_unit_test(test_kept_with_fixed_columns),
        cmocka_unit_test(test_kept_without_a_row),
        cmocka_unit_test(test_units_are_kept),
        cmocka_unit_test(test_damaged_units_are_refused),
        cmocka_unit_test(test_kept_before_all_have_a_value),
        cmocka_unit_test(test_scores_keep_no_names),
        cmocka_unit_test(test_prune),
        cmocka_unit_test(test_numbers_before_the_first_word),
        cmocka_unit_test(test_refused_values_change_no_hands),
        cmocka_unit_test(test_refused_words_make_no_columns),
        cmocka_unit_test(test_refused_words_of_fixed_columns),
        cmocka_unit_test(test_packed_numbers_of_columns),
        cmocka_unit_test(test_rows_without_a_column),
        cmocka_unit_test(test_columns_named_like_values),
        cmocka_unit_test(test_long_columns_are_told_apart),
        cmocka_unit_test(test_prune_keeps_shared_values),
        cmocka_unit_test(test_forgotten_values_are_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
