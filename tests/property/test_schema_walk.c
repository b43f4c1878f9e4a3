/* Random walks over rows under names: words that come and go, numbers, missing values, late labels, samples
 * that are forgotten, prune, reset. The stream is held against its own copy, which is kept and taken up again
 * on the way and never sees what is refused; against the rows as they were sent; and against what a schema
 * promises. */
#include "support/engine.h"

#include "base/random.h"
#include "data/feature_names.h"
#include "engine/engine_internal.h"
#include "learner/learner_internal.h"
#include "store/checkpoint_file.h"

enum { STEPS = 700, NUMBERS = 3, WORDS = 2, COLUMNS = NUMBERS + WORDS, MOST = 2 * STEPS };

static const char *const names[COLUMNS] = {"a", "k", "b", "j=x", "c"};
static const bool is_word[COLUMNS] = {false, true, false, true, false};

/* A row as it was sent. */
struct sent {
    double number[COLUMNS]; /* NAN: it had none */
    int word[COLUMNS];      /* -1: it had none */
};

struct walk {
    struct speaker live, copy;
    struct svi_random random;
    struct sent sent[MOST]; /* by id */
    int rows, first_value;
    bool columns_named;
};

static int walk_pick(struct walk *w, int n) {
    return (int)(svi_random_next(&w->random) % (uint64_t)n);
}

/* ---- messages */

static void put_cell(char *text, size_t size, const struct sent *s, int c) {
    if (is_word[c] && s->word[c] >= 0)
        snprintf(text, size, "'v%d'", s->word[c]);
    else if (!is_word[c] && !isnan(s->number[c]))
        snprintf(text, size, "%.17g", s->number[c]);
    else
        snprintf(text, size, "null");
}

/* A row, in one of the forms that mean the same. */
static void put_row(struct walk *w, char *text, size_t size, const struct sent *s, int form) {
    char cell[40];
    size_t at = (size_t)snprintf(text, size, "'missing':'mean','x':%s", form == 0 ? "{" : "[");
    bool any = false;
    for (int c = 0; c < COLUMNS; c++) {
        const bool none = is_word[c] ? s->word[c] < 0 : isnan(s->number[c]);
        if (form == 0 && none && walk_pick(w, 2))
            continue;
        put_cell(cell, sizeof cell, s, c);
        at += (size_t)snprintf(text + at, size - at, form == 0 ? "%s'%s':%s" : "%s%.0s%s", any ? "," : "",
                               names[c], cell);
        any = true;
    }
    snprintf(text + at, size - at, form == 0 ? "}" : "],'columns':['a','k','b','j=x','c']");
}

static struct sent random_row(struct walk *w) {
    struct sent s;
    w->first_value += walk_pick(w, 12) == 0;
    for (int c = 0; c < COLUMNS; c++) {
        s.number[c] = walk_pick(w, 9) == 0 ? NAN : walk_pick(w, 100) / 7.0;
        s.word[c] = walk_pick(w, 9) == 0 ? -1 : w->first_value + walk_pick(w, 3 + c);
    }
    return s;
}

static void both(struct walk *w, const char *text) {
    struct speaker *const each[] = {&w->live, &w->copy};
    for (int i = 0; i < 2; i++) {
        each[i]->error = SVS_OK;
        say(each[i], "%s", text);
    }
    assert_int_equal(w->live.error, w->copy.error);
}

static void learn(struct walk *w) {
    char row[400], text[600], label[30] = "";
    struct sent s = random_row(w);
    const bool named = svi_schema_columns(svi_engine_schema(svi_stream_root(w->live.e))) == COLUMNS;
    put_row(w, row, sizeof row, &s, named && walk_pick(w, 2) ? 1 : 0);
    if (walk_pick(w, 5))
        snprintf(label, sizeof label, ",'y':%d",
                 w->live.s.task == SVS_REGRESS ? walk_pick(w, 50) : walk_pick(w, 3));
    snprintf(text, sizeof text, "{'id':%d%s,%s}", w->rows, label, row);
    both(w, text);
    if (w->live.error == SVS_LIMIT && w->live.s.max_features < 20) /* which is refused by both */
        return;
    if (w->live.error != SVS_OK)
        fail_msg("%s: %s", text, text_of(w->live.last[SVI_TOPIC_ERROR], "reason"));
    w->sent[w->rows++] = s;
}

/* A row that is refused is for one alone: it leaves nothing behind. */
static void be_refused(struct walk *w) {
    char row[400], text[600];
    static const char *const wrong[] = {"'y':[1]", "'w':-1,'y':1", "'y':1,'ts':1e300",
                                        "'y':1,'stream':'other'"};
    struct sent s = random_row(w);
    s.word[1] = 100000 + w->rows; /* new values */
    s.word[3] = 100000 + w->rows;
    s.number[0] = walk_pick(w, 4) ? s.number[0] : 1e200;
    put_row(w, row, sizeof row, &s, 0);
    snprintf(text, sizeof text, "{%s,%s,'id':%d}", row,
             s.number[0] == 1e200 ? "'y':1" : wrong[walk_pick(w, 4)], w->rows);
    w->live.error = SVS_OK;
    say(&w->live, "%s", text);
    if (w->live.error == SVS_OK)
        fail_msg("%s was taken", text);
}

static void command(struct walk *w, const char *op) {
    char text[100];
    snprintf(text, sizeof text, "{'op':'%s'}", op);
    json_decref(ask(&w->live, "%s", text));
    json_decref(ask(&w->copy, "%s", text));
}

static void of_one(struct walk *w, const char *op, const char *more) {
    char text[100];
    const int id = w->rows - 1 - walk_pick(w, w->rows < 25 ? w->rows : 25);
    snprintf(text, sizeof text, "{'op':'%s','id':%d%s}", op, id, more);
    both(w, text); /* which may have left already */
}

/* ---- what holds */

static void check_schema(const struct svi_schema *s) {
    assert_true(svi_feature_names_check(s->shape.names));
    assert_int_equal(s->shape.names_kept, svs_features_count(s->shape.names));
    if (!s->columns)
        return;
    assert_true(svi_feature_names_check(s->columns));
    assert_true(!s->dirty && !s->mixed_now && s->hot_count == 0 && s->renewed_count == 0);
    int listed = 0, own = 0, shared = 0, hot = 0;
    for (int c = 0; c < s->columns_kept; c++) {
        const struct svi_column *column = &s->column[c];
        assert_memory_equal(&column->now, &column->kept, sizeof column->now);
        assert_in_range(column->now.values, 0, s->o.categories_max);
        for (int i = 0; i < column->now.values; i++) {
            assert_int_equal(s->owner[column->value[i]], c);
            assert_true(s->one_hot[column->value[i]]);
            listed++;
        }
        if (column->now.feature >= 0) {
            own++;
            assert_int_equal(s->owner[column->now.feature], c);
            assert_string_equal(svs_features_name(s->shape.names, column->now.feature),
                                svs_features_name(s->columns, c));
        }
    }
    for (int j = 0; j < s->shape.d; j++) {
        const char *name = svs_features_name(s->shape.names, j);
        hot += s->one_hot[j];
        shared += s->one_hot[j] && (strstr(name, "=(other)") || strstr(name, "=#"));
        if (!s->one_hot[j])
            continue;
        const char *column = svs_features_name(s->columns, s->owner[j]);
        assert_int_equal(strncmp(name, column, strlen(column)), 0);
        assert_true(name[strlen(column)] == '=');
    }
    assert_int_equal(hot, listed + shared);
}

/* Of each sample held: each word is one feature, of that word or of several; each number is its column's. */
static void check_row(const struct walk *w, const double *x, int id) {
    const struct svi_schema *s = svi_engine_schema(svi_stream_root(w->live.e));
    for (int c = 0; c < COLUMNS; c++) {
        const struct sent *sent = &w->sent[id];
        const int column = svi_schema_find(s, names[c], strlen(names[c]), c);
        char key[40];
        int set = -1, count = 0;
        for (int j = 0; column >= 0 && s->columns && j < s->shape.d; j++)
            if (s->owner[j] == column && s->one_hot[j] && x[j] != 0) {
                set = j;
                count++;
            }
        if (!is_word[c])
            continue;
        assert_int_equal(count, sent->word[c] >= 0);
        if (count == 0)
            continue;
        assert_true(x[set] == 1);
        const char *name = svs_features_name(s->shape.names, set);
        snprintf(key, sizeof key, "%s=v%d", names[c], sent->word[c]);
        if (!strstr(name, "=(other)") && !strstr(name, "=#"))
            assert_string_equal(name, key);
    }
}

static void check_numbers(const struct walk *w, const double *x, int id) {
    const struct svi_schema *s = svi_engine_schema(svi_stream_root(w->live.e));
    for (int c = 0; c < COLUMNS; c++) {
        const int column = svi_schema_find(s, names[c], strlen(names[c]), c);
        if (is_word[c] || isnan(w->sent[id].number[c]))
            continue;
        const int feature = column < 0 || !s->columns ? column : s->column[column].now.feature;
        const double v = feature < 0 ? 0 : x[feature];
        assert_true(v == w->sent[id].number[c]);
    }
}

static void check_held(const struct walk *w) {
    const svs_learner *l = svi_stream_root(w->live.e)->learner;
    const struct svi_ring *const rings[] = {&l->window, &l->waiting};
    for (int r = 0; r < 2; r++)
        for (int32_t i = 0; i < rings[r]->count; i++) {
            const int32_t slot = svi_ring_at(rings[r], i);
            if (!svi_ring_live(rings[r], slot))
                continue;
            const int id = (int)svi_ring_id(rings[r], slot).as.i;
            check_row(w, svi_ring_row(rings[r], slot), id);
            check_numbers(w, svi_ring_row(rings[r], slot), id);
        }
}

static void check_same(struct walk *w) {
    char one[SVI_HASH_TEXT], other[SVI_HASH_TEXT];
    svi_stream_hash(w->live.e, one, NULL);
    svi_stream_hash(w->copy.e, other, NULL);
    assert_string_equal(one, other);
}

static void take_up_again(struct walk *w) {
    speaker_take_up_again(&w->copy);
}

static void widen(struct walk *w) {
    svs_error err = {0};
    struct speaker *f = &w->copy;
    if (svi_stream_widen(&f->e, &f->s, &err) != SVS_OK)
        fail_msg("%s", err.text);
    f->control.stream = f->e;
}

static void walk(const char *const *settings, uint64_t seed) {
    static struct walk w;
    w = (struct walk){.random = {seed}};
    speaker_open(&w.live, settings);
    speaker_open(&w.copy, settings);
    const bool holds = w.live.s.method != SVI_METHOD_NONE;
    for (int i = 0; i < STEPS; i++) {
        const int what = walk_pick(&w, 100);
        w.live.now = w.copy.now = NOW + i;
        if (what < 70 || w.rows == 0)
            learn(&w);
        else if (what < 80)
            be_refused(&w);
        else if (what < 86)
            of_one(&w, "label", w.live.s.task == SVS_REGRESS ? ",'y':2.5" : ",'y':1");
        else if (what < 91)
            of_one(&w, "forget", "");
        else if (what < 93 && holds)
            command(&w, "prune");
        else if (what < 94)
            command(&w, "reset");
        else if (what < 97)
            take_up_again(&w);
        else if (what < 98)
            widen(&w);
        check_schema(svi_engine_schema(svi_stream_root(w.live.e)));
        if (i % 8)
            continue;
        check_same(&w);
        if (holds)
            check_held(&w);
    }
    double difference;
    if (holds && w.live.s.window > 0 && w.live.s.method == SVI_METHOD_ALSVM) {
        assert_int_equal(svi_stream_verify(w.live.e, &difference, NULL), SVS_OK);
        assert_true(difference < 1e-9);
    }
    speaker_close(&w.live);
    speaker_close(&w.copy);
}

#define SEEDS 3

#define WALK(name, ...)                                                                                      \
    static void name(void **state) {                                                                         \
        static const char *const settings[] = {__VA_ARGS__, NULL};                                           \
        (void)state;                                                                                         \
        for (uint64_t seed = 1; seed <= SEEDS; seed++)                                                       \
            walk(settings, seed);                                                                            \
    }

WALK(test_window, "novelty", "none", "window", "20", "categories.max", "5", "labels.ttl", "15")
WALK(test_without_a_window, "novelty", "none", "window", "0", "categories.max", "6", "hash", "2")
WALK(test_calendar_and_refits, "novelty", "none", "window", "30", "categories.max", "4", "calendar",
     "day,week", "refit", "auto")
WALK(test_falsvm, "novelty", "none", "method", "falsvm", "window", "25", "categories.max", "4")
WALK(test_novelty_alone, "method", "none", "novelty", "fosvm1", "novelty.calibration", "20", "categories.max",
     "5")
WALK(test_novelty_with_lags, "novelty", "fosvm1", "novelty.lags", "3", "novelty.calibration", "20", "window",
     "25", "categories.max", "5")
WALK(test_regression_by_time, "novelty", "none", "task", "regress", "window.seconds", "40", "window", "30",
     "categories.max", "4", "categories", "k")
WALK(test_few_features, "novelty", "none", "window", "10", "max.features", "16", "calendar", "day")

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_without_a_window),
        cmocka_unit_test(test_calendar_and_refits),
        cmocka_unit_test(test_falsvm),
        cmocka_unit_test(test_novelty_alone),
        cmocka_unit_test(test_novelty_with_lags),
        cmocka_unit_test(test_regression_by_time),
        cmocka_unit_test(test_few_features),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
