/* Random walks over streams that `method auto` learns: labels at once and late, samples that are forgotten,
 * new features and classes, words that change hands, weights, resets, prune, other settings, a clock that is
 * moved, states that are gone back to. A second engine gets the same samples one by one where the first gets
 * them in batches, and is saved and taken up again on the way: both say the same, bit for bit. In between the
 * bank is held to what it promises (svi_bank_check). */
#include "support/engine.h"
#include "support/quick.h"

#include "base/random.h"
#include "engine/engine_internal.h"
#include "learner/learner_held.h"
#include "store/checkpoint_file.h"

#define CLOSE 1e-8 /* members refine their weights at every 16th sample only */

enum { IDS = 40, NUMBERS_MAX = 80, TEXT = 4000 };

struct walk {
    struct speaker live, copy;
    struct svi_random random;
    char batch[TEXT]; /* what the copy has got and the live one has not yet */
    int rows, features, most, classes, first_word;
    bool words, wild, at_once;
    bool constant; /* some features never change */
    int checks;
    bool late;            /* fits of trees in the live engine are slow: it waits for each */
    const svi_bank *slow; /* the bank whose fits are */
    int64_t fits;         /* times that the live bank was seen with one taken up */
};

static int walk_pick(struct walk *w, int n) {
    return (int)(svi_random_next(&w->random) % (uint64_t)n);
}

static double walk_uniform(struct walk *w) {
    return (double)(svi_random_next(&w->random) >> 11) * 0x1p-53;
}

/* ---- both engines */

/* A bank that was made since takes its time over fits, too. */
static void slow_down(struct walk *w) {
    svi_bank *bank = svi_stream_root(w->live.e)->bank;
    w->fits += bank && svi_bank_tree_waits(bank).fits > 0;
    if (!w->late || bank == w->slow)
        return;
    w->slow = bank;
    if (bank)
        svi_bank_delay_fits(bank, 3000);
}

static void flush(struct walk *w) {
    slow_down(w);
    if (w->batch[0])
        say(&w->live, "[%s]", w->batch);
    w->batch[0] = '\0';
}

static void put(struct walk *w, const char *text) {
    if (strlen(w->batch) + strlen(text) + 4 > TEXT || walk_pick(w, 4) == 0)
        flush(w);
    if (w->batch[0])
        strcat(w->batch, ",");
    strcat(w->batch, text);
    w->copy.error = SVS_OK;
    say(&w->copy, "%s", text);
    if (w->at_once)
        flush(w);
}

static void command(struct walk *w, const char *text, bool good) {
    flush(w);
    json_t *one = ask(&w->live, "%s", text), *other = ask(&w->copy, "%s", text);
    assert_true(json_is_true(json_object_get(one, "ok")) == json_is_true(json_object_get(other, "ok")));
    if (good && !json_is_true(json_object_get(one, "ok")))
        fail_msg("%s: %s", text, text_of(one, "error"));
    json_decref(one);
    json_decref(other);
}

/* ---- what comes in */

static double value(struct walk *w, int j, int k) {
    if (w->constant && j % 3 == 1)
        return j;
    if (w->wild && walk_pick(w, 60) == 0)
        return walk_pick(w, 2) ? 1e100 : -1e90;
    const double scale = j % 7 == 3 ? 1e6 : 1;
    return scale * (floor(40 * (walk_uniform(w) + walk_uniform(w))) / 8 + (j % 3 == 0) * k);
}

static void put_label(struct walk *w, char *text, size_t size, int k) {
    static const char *const names[] = {"'red'", "7", "'green'", "-3", "'blue'"};
    if (w->live.s.task == SVS_REGRESS)
        snprintf(text, size, walk_pick(w, 5) ? "%.6g" : "%.0f", 3.0 * k + walk_uniform(w));
    else if (k < 5)
        snprintf(text, size, "%s", names[k]);
    else
        snprintf(text, size, "%d", 1000 + k);
}

static void learn(struct walk *w) {
    char text[TEXT / 2], label[40];
    const int k = walk_pick(w, w->classes);
    size_t at = (size_t)snprintf(text, sizeof text, "{");
    if (w->features < w->most && walk_pick(w, 25) == 0)
        w->features += 1 + walk_pick(w, 3) * (w->most > 30) * 4;
    w->features = w->features < w->most ? w->features : w->most;
    if (walk_pick(w, 4))
        at += (size_t)snprintf(text + at, sizeof text - at, "'id':%d,", walk_pick(w, IDS));
    put_label(w, label, sizeof label, k);
    if (walk_pick(w, 5))
        at += (size_t)snprintf(text + at, sizeof text - at, "'y':%s,", label);
    if (walk_pick(w, 3) == 0)
        at += (size_t)snprintf(text + at, sizeof text - at, "'w':%g,",
                               w->wild && walk_pick(w, 9) == 0 ? 1e100 : 0.1 + walk_uniform(w));
    at += (size_t)snprintf(text + at, sizeof text - at, "'x':{");
    const char *between = "";
    if (w->words) {
        w->first_word += walk_pick(w, 15) == 0;
        at += (size_t)snprintf(text + at, sizeof text - at, "'word':'v%d'", w->first_word + walk_pick(w, 3));
        between = ",";
    }
    for (int j = 0; j < w->features; j++) {
        if (w->words || walk_pick(w, 6) == 0)
            if (walk_pick(w, 3) && j > 2)
                continue;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s'f%d':%.9g", between, j, value(w, j, k));
        between = ",";
    }
    snprintf(text + at, sizeof text - at, "}%s}", w->words ? ",'missing':'zero'" : "");
    put(w, text);
    w->rows++;
}

static void of_one(struct walk *w, const char *op) {
    char text[200], label[40];
    put_label(w, label, sizeof label, walk_pick(w, w->classes));
    if (strcmp(op, "label") == 0)
        snprintf(text, sizeof text, "{'op':'label','id':%d,'y':%s}", walk_pick(w, IDS), label);
    else
        snprintf(text, sizeof text, "{'op':'forget','id':%d}", walk_pick(w, IDS));
    put(w, text);
}

static void configure(struct walk *w) {
    static const char *const classify[] = {"'method':'alsvm','refit':'none'",
                                           "'method':'auto','refit':'auto'",
                                           "'method':'auto','refit':'auto','class.weight':'balanced'",
                                           "'class.weight':'red=5,7=0.5'",
                                           "'class.weight':'none'",
                                           "'method':'auto','refit':'auto','auto.budget':3",
                                           "'method':'auto','refit':'auto','auto.budget':0",
                                           "'method':'auto','refit':'auto','serve':'linear'",
                                           "'serve':'online'",
                                           "'decision.cost':'red>7=3'"};
    static const char *const regress[] = {"'method':'alsvm','refit':'none'", "'method':'auto','refit':'auto'",
                                          "'method':'auto','refit':'auto','auto.budget':3"};
    char text[200];
    const char *set = w->live.s.task == SVS_REGRESS ? regress[walk_pick(w, 3)] : classify[walk_pick(w, 10)];
    snprintf(text, sizeof text, "{'op':'config','set':{%s}}", set);
    command(w, text, false); /* auto.budget stays set where the method changes: refused, by both */
}

/* ---- saved and taken up again */

static void take_up_again(struct walk *w) {
    speaker_take_up_again(&w->copy);
}

static void widen(struct walk *w) {
    struct speaker *const each[] = {&w->live, &w->copy};
    svs_error err = {0};
    flush(w);
    for (int i = 0; i < 2; i++) {
        each[i]->s.max_features += 1;
        each[i]->s.max_classes += 1;
        if (svi_stream_widen(&each[i]->e, &each[i]->s, &err) != SVS_OK)
            fail_msg("%s", err.text);
        each[i]->control.stream = each[i]->e;
    }
}

static void move_clock(struct walk *w) {
    flush(w);
    svi_engine_move_times(svi_stream_root(w->live.e), NOW + 5, -3);
    svi_engine_move_times(svi_stream_root(w->copy.e), NOW + 5, -3);
}

static void go_back(struct walk *w, const struct svi_checkpoint *c) {
    struct speaker *const each[] = {&w->live, &w->copy};
    svs_error err = {0};
    flush(w);
    for (int i = 0; i < 2; i++) {
        svi_stream *then = svi_stream_then(each[i]->e, c, &err);
        if (!then)
            fail_msg("%s", err.text);
        svi_stream_go_back(each[i]->e, &then, "test", NOW);
        each[i]->s = *svi_stream_root(each[i]->e)->s;
    }
}

/* ---- what holds */

/* Names the section that differs, if one does. */
static void check_same(struct walk *w) {
    struct svi_checkpoint one = {.sections = 0}, other = {.sections = 0};
    assert_int_equal(svi_stream_save(w->live.e, &one, NULL), SVS_OK);
    assert_int_equal(svi_stream_save(w->copy.e, &other, NULL), SVS_OK);
    assert_int_equal(one.sections, other.sections);
    for (int i = 0; i < one.sections; i++) {
        const struct svi_section *s = &one.section[i], *t = &other.section[i];
        if (s->hashed && (s->size != t->size ||
                          memcmp(one.bodies.data + s->offset, other.bodies.data + t->offset, s->size) != 0))
            fail_msg("after %d rows: section %s differs", w->rows, s->name);
    }
    svi_checkpoint_clear(&one);
    svi_checkpoint_clear(&other);
    assert_int_equal(w->live.deeds.size, w->copy.deeds.size);
    assert_memory_equal(w->live.deeds.data, w->copy.deeds.data, w->live.deeds.size);
    w->live.deeds.size = w->copy.deeds.size = 0;
}

static void check(struct walk *w) {
    flush(w);
    check_same(w);
    const char *wrong = svi_stream_root(w->live.e)->bank
                            ? svi_bank_check(svi_stream_root(w->live.e)->bank,
                                             svi_stream_root(w->live.e)->learner, w->wild ? INFINITY : CLOSE)
                            : NULL;
    if (wrong)
        fail_msg("after %d rows: %s", w->rows, wrong);
    assert_false(svi_stream_out_of_memory(w->live.e));
    w->checks++;
}

static void walk(const char *const *settings, struct walk with, int steps, uint64_t seed) {
    static struct walk w;
    struct svi_checkpoint kept = {0};
    w = with;
    w.random = (struct svi_random){seed};
    speaker_open(&w.live, settings);
    speaker_open(&w.copy, settings);
    for (int i = 0; i < steps; i++) {
        const int what = walk_pick(&w, 100);
        if (i % 3 == 0)
            flush(&w);
        w.live.now = w.copy.now = NOW + i / 3;
        if (what < 80 || w.rows == 0)
            learn(&w);
        else if (what < 86)
            of_one(&w, "label");
        else if (what < 93)
            of_one(&w, "forget");
        else if (what < 95)
            take_up_again(&w);
        else if (what < 97 && i % 2 && !w.late)
            configure(&w);
        else if (what == 97)
            command(&w, "{'op':'prune'}", true);
        else if (what == 98 && i % 2)
            widen(&w);
        else if (what == 98)
            move_clock(&w);
        else if (what == 99 && i % 4 == 0)
            command(&w, i % 8 ? "{'op':'reset','yes':true}" : "{'op':'reset','yes':true,'shape':'keep'}",
                    false);
        else if (what == 99 && i % 4 == 1 && kept.sections)
            go_back(&w, &kept);
        if (i % 37 == 36)
            check(&w);
        if (i == steps / 3 && w.at_once)
            assert_int_equal(svi_stream_save(w.live.e, &kept, NULL), SVS_OK);
        if (i == steps / 2)
            w.classes += with.classes > 2;
    }
    check(&w);
    if (w.late)
        assert_true(w.fits > 0); /* some were waited for */
    svi_checkpoint_clear(&kept);
    speaker_close(&w.live);
    speaker_close(&w.copy);
}

#define WALK(name, steps, with, ...)                                                                         \
    static void name(void **state) {                                                                         \
        static const char *const settings[] = {"method", "auto", "novelty",   "none",                        \
                                               "scores", "1",    __VA_ARGS__, NULL};                         \
        (void)state;                                                                                         \
        for (uint64_t seed = 1; seed <= SVT_SEEDS; seed++)                                                   \
            walk(settings, (struct walk)with, steps, seed);                                                  \
    }
#define SVT_SEEDS (getenv("SVMSTREAM_QUICK") ? 1u : 2u)
#define WITH(...)                                                                                            \
    { __VA_ARGS__ }

WALK(two_classes, 500, WITH(.features = 2, .most = 9, .classes = 2), "labels.ttl", "40", "publish.every",
     "30")
WALK(more_classes, 500, WITH(.features = 0, .most = 6, .classes = 5, .at_once = true), "labels.ttl", "40")
WALK(words_that_change_hands, 500, WITH(.features = 2, .most = 4, .classes = 3, .words = true),
     "categories.max", "5", "labels.ttl", "40")
WALK(values_of_any_size, 400, WITH(.features = 3, .most = 5, .classes = 2, .wild = true), "labels.ttl", "40")
WALK(many_features, 300, WITH(.features = 40, .most = 75, .classes = 2, .constant = true), "labels.ttl", "40")
WALK(given_weights, 200, WITH(.features = 30, .most = 45, .classes = 3), "class.weight", "1=3,red=2",
     "labels.ttl", "40")
WALK(a_regression, 600, WITH(.features = 2, .most = 5, .classes = 4, .at_once = true), "task", "regress",
     "labels.ttl", "40")
WALK(a_wild_regression, 400, WITH(.features = 2, .most = 5, .classes = 4, .wild = true), "task", "regress",
     "labels.ttl", "40")
WALK(slow_fits, 800, WITH(.features = 3, .most = 7, .classes = 4, .late = true), "labels.ttl", "40",
     "publish.every", "30")
WALK(slow_fits_of_words, 800, WITH(.features = 2, .most = 4, .classes = 2, .words = true, .late = true),
     "categories.max", "5", "labels.ttl", "40")
WALK(slow_fits_of_values, 800, WITH(.features = 2, .most = 5, .classes = 4, .late = true), "task", "regress",
     "labels.ttl", "40")
WALK(one_class_for_long, 200, WITH(.features = 2, .most = 3, .classes = 1), "labels.ttl", "40")
WALK(very_many_classes, 300, WITH(.features = 2, .most = 4, .classes = 90), "max.classes", "100",
     "labels.ttl", "40")

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_classes),
        cmocka_unit_test(more_classes),
        cmocka_unit_test(words_that_change_hands),
        cmocka_unit_test(values_of_any_size),
        cmocka_unit_test(many_features),
        cmocka_unit_test(given_weights),
        cmocka_unit_test(a_regression),
        cmocka_unit_test(a_wild_regression),
        cmocka_unit_test(slow_fits),
        cmocka_unit_test(slow_fits_of_words),
        cmocka_unit_test(slow_fits_of_values),
        cmocka_unit_test(one_class_for_long),
        cmocka_unit_test(very_many_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
