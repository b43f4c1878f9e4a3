/* Any calls of the library's stream, as the bytes say: rows with names, words and gaps, labels and removals
 * that come late, blocks, scores. Refused or not, a refusal leaves the fingerprint as it was; now and then
 * the stream is saved and loaded, and the copy has the same fingerprint. With an odd first byte the rest is a
 * saved stream: refused with a text, or one that can be used. */
#include "fuzz/target.h"

#include <math.h>

#include "svmstream/auto.h"
#include "svmstream/monitor.h"

#define MAX_COLUMNS 4
#define MAX_CALLS   60

static const char *const fuzz_names[] = {"a", "b", "c", "a", "", "long name", NULL};
static const char *const fuzz_words[] = {"x", "y", "", "\xff", "1"};
static const double fuzz_numbers[] = {0, 1, -1, 0.5, 3, 1e99, 1e101, INFINITY, NAN, -0.0};

static svs_value fuzz_value(unsigned pick) {
    const svs_value values[] = {svs_none(),   svs_int(0),  svs_int(1),    svs_real(0.5), svs_real(2),
                                svs_str("p"), svs_str(""), svs_real(NAN), {.kind = 9}};
    return values[pick % (sizeof values / sizeof values[0])];
}

static void fuzz_same(svs_stream *s, const char *before) {
    char hash[33];
    svs_error err;
    must(svs_stream_hash(s, hash, &err) == SVS_OK && strcmp(hash, before) == 0);
}

static svs_stream *fuzz_new(unsigned pick) {
    static const svs_setting small = {"max.features", "8"};
    static const svs_setting sets[][5] = {{{"method", "alsvm"},
                                           {"window", "8"},
                                           {"novelty", "none"},
                                           {"max.features", "8"},
                                           {"max.classes", "3"}},
                                          {{"task", "regress"},
                                           {"method", "alsvm"},
                                           {"missing", "mean"},
                                           {"interval", "0.5"},
                                           {"max.features", "8"}},
                                          {{"key", "k"},
                                           {"max.features", "8"},
                                           {"keys.max", "3"},
                                           {"missing", "zero"},
                                           {"alert.interval", "60"}}};
    svs_error err;
    svs_stream *s =
        pick % 4 == 3 ? svs_monitor_new(&small, 1, &err) : svs_stream_new(sets[pick % 4], 5, &err);
    must(s != NULL);
    return s;
}

/* One row; returns whether it was refused. */
static svs_code fuzz_row(struct input *in, svs_stream *s, bool score, svs_error *err) {
    double x[MAX_COLUMNS];
    const char *names[MAX_COLUMNS], *words[MAX_COLUMNS];
    const unsigned form = (unsigned)input_take(in, 1);
    svs_outcome out;
    svs_row row = {.x = x, .d = (int)(form % (MAX_COLUMNS + 1)), .all = form & 64};
    for (int j = 0; j < row.d; j++) {
        const unsigned pick = (unsigned)input_take(in, 1);
        x[j] = fuzz_numbers[pick % (sizeof fuzz_numbers / sizeof fuzz_numbers[0])];
        names[j] =
            fuzz_names[(form & 32 ? (unsigned)j : pick / 16) % (sizeof fuzz_names / sizeof fuzz_names[0])];
        words[j] = pick > 200 ? fuzz_words[pick % (sizeof fuzz_words / sizeof fuzz_words[0])] : NULL;
    }
    const unsigned rest = (unsigned)input_take(in, 1);
    row.names = form & 8 ? names : NULL;
    row.words = form & 16 ? words : NULL;
    row.y = fuzz_value(rest);
    row.id = fuzz_value(rest / 8);
    row.key = form & 128 ? fuzz_words[rest % 5] : NULL;
    row.has_ts = true;
    row.ts = rest == 77 ? NAN : 1e9 + rest;
    return (score ? svs_stream_score : svs_stream_step)(s, &row, &out, err);
}

static svs_code fuzz_block(struct input *in, svs_stream *s, svs_error *err) {
    float x[3 * MAX_COLUMNS];
    int32_t index[3], predicted[3];
    const svs_value labels[] = {fuzz_value((unsigned)input_take(in, 1)), svs_int(1)};
    int64_t row;
    for (int i = 0; i < 3 * MAX_COLUMNS; i++)
        x[i] = (float)fuzz_numbers[input_take(in, 1) % 10];
    for (int i = 0; i < 3; i++)
        index[i] = (int32_t)(input_take(in, 1) % 4) - 1;
    const svs_block b = {.n = 3,
                         .d = MAX_COLUMNS,
                         .x32 = x,
                         .stride = MAX_COLUMNS,
                         .labels = labels,
                         .label_count = 2,
                         .y_index = index};
    svs_results r = {.predicted = predicted};
    const svs_code code = svs_stream_learn_block(s, &b, &r, &row, err);
    must(code == SVS_OK || (row >= 0 && row < 3));
    return code;
}

static svs_code fuzz_call(struct input *in, svs_stream *s, bool *whole, svs_error *err) {
    const unsigned pick = (unsigned)input_take(in, 1), of = (unsigned)input_take(in, 1);
    int count;
    *whole = true;
    switch (pick % 8) {
    case 0:
        *whole = false; /* samples whose time is over stop waiting all the same */
        return svs_stream_label(s, fuzz_value(of), fuzz_value(of / 8), of & 64 ? "x" : NULL, NAN, err);
    case 1:
        *whole = false;
        return svs_stream_forget(s, fuzz_value(of), of & 64 ? "x" : NULL, of & 128 ? 1e9 + of : NAN, &count,
                                 err);
    case 2:
        *whole = false; /* rows before the refused one may be learned */
        return fuzz_block(in, s, err);
    case 3:
        return fuzz_row(in, s, true, err);
    default:
        return fuzz_row(in, s, false, err);
    }
}

static void fuzz_copy(svs_stream **s) {
    char before[33];
    void *bytes;
    size_t size;
    svs_error err;
    must(svs_stream_save(*s, &bytes, &size, &err) == SVS_OK);
    must(svs_stream_hash(*s, before, &err) == SVS_OK);
    svs_stream_free(s);
    *s = svs_stream_load(bytes, size, &err);
    must(*s != NULL);
    fuzz_same(*s, before);
    svs_bytes_free(&bytes);
}

static void fuzz_calls(struct input *in) {
    svs_stream *s = fuzz_new((unsigned)input_take(in, 1));
    for (int i = 0; i < MAX_CALLS && input_left(in) > 0; i++) {
        char before[33];
        bool whole;
        svs_error err = {0};
        must(svs_stream_hash(s, before, &err) == SVS_OK);
        const svs_code code = fuzz_call(in, s, &whole, &err);
        must(code == SVS_OK || (err.code == code && err.text[0] && strlen(err.text) < sizeof err.text));
        /* A refused row counts as use of its key, which has its place in the order of keys. */
        if (code != SVS_OK && whole && !svs_stream_setting(s, "key")[0])
            fuzz_same(s, before);
        if (i % 20 == 19)
            fuzz_copy(&s);
    }
    svs_stream_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input in = {data, data + size};
    svs_error err = {0};
    if (input_take(&in, 1) % 2 == 0) {
        fuzz_calls(&in);
        return 0;
    }
    svs_stream *s = svs_stream_load(in.at, input_left(&in), &err);
    must(s || (err.code != SVS_OK && err.text[0]));
    svs_stream_free(&s);
    return 0;
}
