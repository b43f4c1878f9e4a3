/* A block is refused as its rows would be, one by one: for the same rows the code and the number of the first
 * refused row are equal, and nothing of the block was learned, unless the reason lies in its earlier rows.
 * Blocks that no row of which is refused are taken, and leave the same fingerprint as the rows. */
#include "support/quick.h"

#include "support/problem.h"

#include "svmstream/stream.h"

enum { D = 4, N = 6, LABELS = 6, BLOCKS = 8, NAMED_1 = 4, NAMED_2 = 5 };

static const char *const refusal_names[D] = {"a", "b", "c", "d"};

struct refusal_case {
    double x[N * D], weight[N], ts[N], y[N];
    const char *words[N * D];
    int32_t index[N];
    svs_value ids[N];
    svs_block b;
};

/* Numbers beyond 1e100 are refused in blocks, whatever would become of them as outliers. */
static const svs_setting refusal_settings[][6] = {
    {{"method", "alsvm"}, {"outlier", "take"}, {"novelty", "none"}, {"max.classes", "3"}},
    {{"method", "alsvm"}, {"outlier", "take"}, {"missing", "refuse"}, {"ignore", "c"}, {"categories", "d"}},
    {{"method", "alsvm"},
     {"outlier", "take"},
     {"missing", "drop"},
     {"novelty", "none"},
     {"max.classes", "4"}},
    {{"method", "alsvm"}, {"outlier", "take"}, {"missing", "mean"}, {"numbers", "b"}, {"max.features", "40"}},
    {{"method", "alsvm"}, {"outlier", "take"}, {"missing", "carry"}, {"features", "a,b,c"}},
    {{"method", "alsvm"},
     {"outlier", "take"},
     {"missing", "mean"},
     {"calendar", "day"},
     {"alert.interval", "60"}},
    {{"method", "alsvm"}, {"outlier", "take"}, {"task", "regress"}, {"missing", "zero"}},
    {{"method", "none"}, {"outlier", "take"}, {"missing", "mean"}, {"max.classes", "2"}},
};

static bool one_in(uint64_t *seed, int n) {
    return test_random(seed) % (uint64_t)n == 0;
}

static void refusal_make(struct refusal_case *c, uint64_t *seed, bool named, bool regress) {
    static const double odd[] = {NAN, NAN, NAN, INFINITY, 1e200, -0.0};
    static const char *const odd_words[] = {"Ulm", "Bonn", "7", "", "\xff"};
    static const svs_value labels[LABELS] = {
        {.kind = SVS_INT, .as.i = 0}, {.kind = SVS_INT, .as.i = 1},      {.kind = SVS_REAL, .as.r = 1},
        {.kind = SVS_NONE},           {.kind = SVS_STR, 1, .as.s = "p"}, {.kind = SVS_REAL, .as.r = 0.5}};
    const bool words = named && one_in(seed, 2), many = one_in(seed, 4);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < D; j++) {
            const int at = i * D + j;
            c->x[at] = round(100 * test_normal(seed)) / 100;
            c->words[at] = words && j >= 2 && one_in(seed, 2) ? odd_words[test_random(seed) % 2] : NULL;
            if (one_in(seed, many ? 8 : 40))
                c->x[at] = odd[test_random(seed) % 6];
            if (words && one_in(seed, many ? 8 : 40))
                c->words[at] = odd_words[test_random(seed) % 5];
        }
        c->weight[i] = one_in(seed, 9) ? 0 : one_in(seed, 60) ? -1 : 1;
        c->ts[i] = one_in(seed, 40) ? 4e9 : 1.7e9 + 30 * i;
        c->index[i] = (int32_t)(test_random(seed) % (one_in(seed, 20) ? LABELS : 4)) - (int)one_in(seed, 4);
        c->y[i] = one_in(seed, 5) ? NAN : one_in(seed, 60) ? INFINITY : (double)(test_random(seed) % 3);
        c->ids[i] = one_in(seed, 60) ? svs_real(0.5) : svs_int(i);
    }
    c->b = (svs_block){.n = N, .d = D, .x = c->x, .stride = D, .ts = c->ts, .ids = c->ids};
    c->b.names = named ? refusal_names : NULL;
    c->b.all = one_in(seed, 2);
    c->b.words = words ? c->words : NULL;
    c->b.weight = one_in(seed, 2) ? c->weight : NULL;
    if (regress || one_in(seed, 3)) {
        c->b.y = c->y;
    } else {
        c->b.labels = labels;
        c->b.label_count = LABELS;
        c->b.y_index = c->index;
    }
}

static svs_row refusal_row(const struct refusal_case *c, int i) {
    svs_row r = {.x = c->x + i * D, .d = D, .names = c->b.names, .all = c->b.all, .id = c->ids[i]};
    r.words = c->b.words ? c->words + i * D : NULL;
    r.weight = c->b.weight ? c->weight[i] : 1;
    r.ts = c->ts[i];
    r.has_ts = true;
    if (c->b.y && !isnan(c->y[i]))
        r.y = svs_real(c->y[i]);
    if (c->b.y_index && c->index[i] >= 0)
        r.y = c->b.labels[c->index[i]];
    return r;
}

static svs_stream *refusal_copy(svs_stream *s) {
    void *bytes;
    size_t size;
    svs_error err;
    assert_int_equal(svs_stream_save(s, &bytes, &size, &err), SVS_OK);
    svs_stream *copy = svs_stream_load(bytes, size, &err);
    assert_non_null(copy);
    svs_bytes_free(&bytes);
    return copy;
}

/* The rows one by one, until one is refused: its number, or N. */
static int refusal_steps(svs_stream *s, const struct refusal_case *c, svs_error *err) {
    for (int i = 0; i < N; i++) {
        svs_row r = refusal_row(c, i);
        if (c->b.weight && c->weight[i] == 0)
            continue;
        if (svs_stream_step(s, &r, NULL, err) != SVS_OK)
            return i;
    }
    return N;
}

static void refusal_compare(svs_stream *s, const struct refusal_case *c, int *taken, int *refused) {
    char before[33], after[33], stepped[33];
    svs_error err = {0}, by_row = {0}, by_hash;
    int64_t row = -1;
    svs_stream *copy = refusal_copy(s);
    const int bad = refusal_steps(copy, c, &by_row);
    assert_int_equal(svs_stream_hash(copy, stepped, &err), SVS_OK);
    assert_int_equal(svs_stream_hash(s, before, &err), SVS_OK);
    const svs_code code = svs_stream_learn_block(s, &c->b, NULL, &row, &err);
    assert_int_equal(svs_stream_hash(s, after, &by_hash), SVS_OK);
    if ((bad < N) != (code != SVS_OK) || (code != SVS_OK && row != bad))
        print_error("rows, %d: %s; block, row %d: %s\n", bad, by_row.text, (int)row, err.text);
    assert_int_equal(code == SVS_OK, bad == N);
    /* What is full, or has nothing to carry over, is known when the row is learned: other rows of the block
     * may be refused before. */
    const bool full = bad < N && by_row.code == SVS_LIMIT,
               empty = by_row.code == SVS_MISSING_VALUE && strstr(by_row.text, "to carry");
    if (bad < N && !full && !empty)
        assert_int_equal(row, bad);
    if (code == SVS_OK || (full && code == SVS_LIMIT && strcmp(after, before) != 0))
        assert_string_equal(after, stepped);
    else
        assert_string_equal(after, before);
    *taken += bad == N;
    *refused += bad < N;
    svs_stream_free(&copy);
}

static void test_refused_as_rows(void **state) {
    const int count = sizeof refusal_settings / sizeof refusal_settings[0];
    int taken = 0, refused = 0;
    (void)state;
    for (uint64_t run = 0; run < (uint64_t)often(320, 40); run++) {
        uint64_t seed = 31 + 7919 * run;
        const svs_setting *settings = refusal_settings[run % (uint64_t)count];
        int given = 0;
        svs_error err;
        while (settings[given].key)
            given++;
        const int of = (int)(run % (uint64_t)count);
        const bool named = of == NAMED_1 || of == NAMED_2 || run % 3 > 0;
        svs_stream *s = svs_stream_new(settings, given, &err);
        assert_non_null(s);
        for (int i = 0; i < BLOCKS; i++) {
            struct refusal_case c;
            refusal_make(&c, &seed, named, strcmp(settings[2].value, "regress") == 0);
            refusal_compare(s, &c, &taken, &refused);
        }
        svs_stream_free(&s);
    }
    assert_true(taken > refused / 20 && refused > taken / 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused_as_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
