/* library.h: rows of several kinds for tests of the library's stream, and the streams that take them. */
#ifndef TEST_SUPPORT_LIBRARY_H
#define TEST_SUPPORT_LIBRARY_H

#include "support/problem.h"

#include "svmstream/auto.h"
#include "svmstream/monitor.h"

#define LIB_COLUMNS  5
#define LIB_SETTINGS 12

/* One kind of stream and of its rows. */
struct lib_case {
    const char *name;
    svs_setting settings[LIB_SETTINGS]; /* ends at a key NULL */
    int classes;                        /* 0: a regression; 1: no labels */
    bool words, missing, waits, keyed, untimed, steps;
    int rows;
};

static const struct lib_case lib_cases[] = {
    {"alsvm",
     {{"method", "alsvm"}, {"window", "200"}, {"novelty", "none"}, {"threads", "1"}},
     2,
     .waits = true,
     .rows = 900},
    {"two threads",
     {{"method", "alsvm"}, {"window", "150"}, {"novelty.window", "100"}},
     3,
     .missing = true,
     .waits = true,
     .rows = 900},
    {"falsvm", {{"method", "falsvm"}, {"novelty", "none"}, {"threads", "1"}}, 3, .rows = 600},
    {"prices",
     {{"method", "alsvm"}, {"decision.cost", "c1=20,c0=1"}, {"novelty", "none"}, {"threads", "1"}},
     2,
     .words = true,
     .rows = 900},
    {"refits",
     {{"method", "alsvm"},
      {"window", "200"},
      {"refit", "auto"},
      {"refit.every", "150"},
      {"serve", "best"},
      {"threads", "1"}},
     2,
     .rows = 600},
    {"auto",
     {{"method", "auto"}, {"novelty", "none"}, {"missing", "mean"}, {"threads", "1"}},
     3,
     .words = true,
     .missing = true,
     .waits = true,
     .rows = 700},
    {"auto, regression",
     {{"method", "auto"}, {"task", "regress"}, {"interval", "0.9"}, {"missing", "mean"}, {"threads", "1"}},
     0,
     .missing = true,
     .rows = 500},
    {"monitor",
     {{"method", "none"},
      {"novelty", "fosvm1"},
      {"missing", "mean"},
      {"threads", "1"},
      {"alert.budget", "4/day"},
      {"limits", "a:-6..6"},
      {"novelty.warmup", "100"}},
     1,
     .missing = true,
     .steps = true,
     .rows = 1500},
    {"monitor without times",
     {{"method", "none"},
      {"threads", "1"},
      {"alert.budget", "1/hour"},
      {"alert.interval", "60"},
      {"limits", "a:-6..6"},
      {"novelty.warmup", "100"}},
     1,
     .untimed = true,
     .steps = true,
     .rows = 1200},
    {"keys",
     {{"key", "key"}, {"alert.interval", "60"}, {"threads", "1"}, {"limits", "a:-6..6"}},
     2,
     .keyed = true,
     .untimed = true,
     .waits = true,
     .steps = true,
     .rows = 1200},
    {"keys share a bank",
     {{"key", "key"}, {"alert.interval", "60"}, {"method", "auto"}, {"novelty", "none"}, {"threads", "1"}},
     2,
     .keyed = true,
     .untimed = true,
     .words = true,
     .missing = true,
     .rows = 500},
};
#define LIB_CASES ((int)(sizeof lib_cases / sizeof lib_cases[0]))

static const char *const lib_names[LIB_COLUMNS] = {"a", "b", "c", "d", "place"};

struct lib_row {
    double x[LIB_COLUMNS];
    const char *words[LIB_COLUMNS];
    svs_row row; /* points into this struct */
    char id[16], label[8], key[8];
};

static inline int lib_setting_count(const struct lib_case *c) {
    int count = 0;
    while (count < LIB_SETTINGS && c->settings[count].key)
        count++;
    return count;
}

/* Row i: numbers of two decimals, so that a text file holds them. */
static inline void lib_make_row(const struct lib_case *c, int i, struct lib_row *r) {
    static const char *const places[] = {"Ulm", "Bonn", "Jena", "Kiel"};
    uint64_t seed = 77 + 1009 * (uint64_t)i;
    double score = 0;
    memset(r, 0, sizeof *r);
    for (int j = 0; j < LIB_COLUMNS; j++) {
        r->x[j] = round(100 * (test_normal(&seed) + sin(i / 40.0 + j))) / 100;
        score += (j - 1.5) * r->x[j];
    }
    if (c->steps && i > 600 && i % 400 > 380)
        r->x[0] += 9;
    if (c->missing && i % 11 == 3)
        r->x[i % 4] = NAN;
    if (c->words) {
        const int place = (int)(test_random(&seed) % 4);
        r->words[4] = places[place];
        score += place == 2 ? 3 : 0;
    }
    const int class = score > 1 ? 1 : c->classes > 2 && score < -2 ? 2 : 0;
    snprintf(r->label, sizeof r->label, "c%d", class);
    snprintf(r->id, sizeof r->id, "r%d", i);
    snprintf(r->key, sizeof r->key, "k%d", (int)(test_random(&seed) % 5));
    r->row = (svs_row){.x = r->x, .d = LIB_COLUMNS, .names = lib_names, .all = true, .id = svs_str(r->id)};
    r->row.words = c->words ? r->words : NULL;
    if (c->classes != 1 && !(c->waits && i % 7 == 2))
        r->row.y = c->classes == 0 ? svs_real(round(1000 * score) / 1000 + 0.0005) : svs_str(r->label);
    r->row.key = c->keyed ? r->key : NULL;
    r->row.has_ts = !c->untimed;
    r->row.ts = r->row.has_ts ? 1.7e9 + 30.0 * i : 0;
}

static inline svs_stream *lib_stream(const struct lib_case *c) {
    svs_error err = {0};
    svs_stream *s = svs_stream_new(c->settings, lib_setting_count(c), &err);
    if (!s)
        print_error("%s: %s\n", c->name, err.text);
    assert_non_null(s);
    return s;
}

#endif
