/* Runs every file of tests/wire/cases through the decoder. A case is lines of `key: value`:
 *
 *   max: 4             at most so many features (default 64)
 *   features: a,b      the setting `features`
 *   first: HEX         a message that is accepted before (fixes the shape)
 *   bytes: HEX         the frame; several lines are joined. Words: 0a (a byte), 0a*99 (99 of them), 'text'
 * (without blanks) open: CODE         what the frame as a whole gives (default ok) element: CODE | ok MESSAGE
 * one line for each element, MESSAGE as `render` writes it reason: TEXT       part of the last error's text
 *
 * Lines that begin with # are for people. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/schema.h"
#include "wire/decode.h"
#include "wire/event.h"

#define CASES_DEFAULT "tests/wire/cases"
#define ELEMENTS_MAX  8

struct wire_case {
    char name[600];
    int max;
    char features[200];
    struct svi_bytes first, bytes;
    char open[40], reason[200];
    char element[ELEMENTS_MAX][400];
    int elements;
};

static void add_word(struct svi_bytes *out, const char *word) {
    if (word[0] == '\'') {
        svi_bytes_append(out, word + 1, strlen(word) - 2);
        return;
    }
    char *rest;
    uint8_t byte = (uint8_t)strtoul(word, &rest, 16);
    assert_true(rest == word + 2);
    long times = *rest == '*' ? atol(rest + 1) : 1;
    while (times-- > 0)
        svi_bytes_append(out, &byte, 1);
}

static void add_words(struct svi_bytes *out, char *text) {
    char *state = NULL;
    for (char *w = strtok_r(text, " ", &state); w; w = strtok_r(NULL, " ", &state))
        add_word(out, w);
}

static void set_line(struct wire_case *c, const char *key, char *value) {
    if (strcmp(key, "max") == 0)
        c->max = atoi(value);
    else if (strcmp(key, "features") == 0)
        snprintf(c->features, sizeof c->features, "%s", value);
    else if (strcmp(key, "first") == 0)
        add_words(&c->first, value);
    else if (strcmp(key, "bytes") == 0)
        add_words(&c->bytes, value);
    else if (strcmp(key, "open") == 0)
        snprintf(c->open, sizeof c->open, "%s", value);
    else if (strcmp(key, "reason") == 0)
        snprintf(c->reason, sizeof c->reason, "%s", value);
    else if (strcmp(key, "element") == 0 && c->elements < ELEMENTS_MAX)
        snprintf(c->element[c->elements++], sizeof c->element[0], "%s", value);
    else
        fail_msg("%s: unknown line %s", c->name, key);
}

static void read_case(struct wire_case *c, const char *path) {
    char line[2000];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    snprintf(c->name, sizeof c->name, "%s", path);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *colon = strstr(line, ":");
        if (line[0] == '#' || !colon)
            continue;
        *colon = '\0';
        set_line(c, line, colon + 1 + (colon[1] == ' '));
    }
    fclose(f);
}

static void render_value(char *out, size_t size, const char *key, svs_value v) {
    char text[300];
    size_t n = strlen(out);
    if (v.kind == SVS_STR)
        snprintf(out + n, size - n, " %s=\"%s\"", key, svs_value_text(v, text, sizeof text));
    else if (v.kind == SVS_REAL)
        snprintf(out + n, size - n, " %s=%s(real)", key, svs_value_text(v, text, sizeof text));
    else if (v.kind == SVS_INT)
        snprintf(out + n, size - n, " %s=%s", key, svs_value_text(v, text, sizeof text));
}

static void render_x(char *out, size_t size, const struct svi_message *m, const struct svi_schema *s) {
    static const char *const kinds[] = {"unset", "dense", "sparse", "named"};
    size_t n = strlen(out);
    n += (size_t)snprintf(out + n, size - n, " %s[", kinds[m->kind]);
    int missing = 0;
    for (int j = 0; j < m->d; j++) {
        missing += isnan(m->x[j]);
        const char *name = m->kind == SVI_NAMED ? svs_features_name(s->shape.names, j) : NULL;
        n += (size_t)snprintf(out + n, size - n, "%s%s%s", j ? " " : "", name ? name : "", name ? "=" : "");
        n += (size_t)snprintf(out + n, size - n, isnan(m->x[j]) ? "nil" : "%.17g", m->x[j]);
    }
    snprintf(out + n, size - n, "]");
    assert_int_equal(missing, m->missing);
}

/* "learn dense[1 2 nil] y=1 id="a" ts=.. w=.. stream=.. src=.. n=.." */
static void render(char *out, size_t size, const struct svi_message *m, const struct svi_schema *s) {
    static const char *const ops[] = {"learn", "label", "forget"};
    snprintf(out, size, "%s", ops[m->op]);
    if (m->has_x)
        render_x(out, size, m, s);
    render_value(out, size, "y", m->y);
    render_value(out, size, "id", m->id);
    render_value(out, size, "ts", isnan(m->ts) ? svs_none() : svs_real(m->ts));
    render_value(out, size, "w", m->weight == 1 ? svs_none() : svs_real(m->weight));
    render_value(out, size, "stream", m->stream);
    render_value(out, size, "src", m->src);
    render_value(out, size, "n", m->n < 0 ? svs_none() : svs_int(m->n));
}

static svs_code decode_next(struct svi_envelope *f, struct svi_schema *s, char *out, size_t size,
                            svs_error *err) {
    struct svi_message m;
    svs_code code = svi_envelope_next(f, s, &m, err);
    if (code == SVS_OK)
        code = svi_shape_fits(&s->shape, &m, err);
    snprintf(out, size, "%s", svs_code_name(code));
    if (code != SVS_OK) {
        svi_schema_restore(s);
        return code;
    }
    strcat(out, " ");
    render(out + 3, size - 3, &m, s);
    svi_schema_commit(s, &m);
    return code;
}

static void accept_first(struct wire_case *c, struct svi_schema *s) {
    struct svi_envelope f;
    svs_error err;
    char text[600];
    if (c->first.size == 0)
        return;
    assert_int_equal(svi_envelope_read(&f, c->first.data, c->first.size), SVS_OK);
    assert_int_equal(decode_next(&f, s, text, sizeof text, &err), SVS_OK);
}

/* A copy of exactly `size` bytes, so that a sanitizer sees every byte read beyond. */
static uint8_t *exact_copy(const uint8_t *bytes, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

static svs_code open_copy(const struct wire_case *c, size_t size) {
    struct svi_envelope f;
    uint8_t *copy = exact_copy(c->bytes.data, size);
    svs_code code = svi_envelope_read(&f, copy, size);
    free(copy);
    return code;
}

/* Every proper beginning of a complete object is truncated; one byte more trails. */
static void check_cuts(struct wire_case *c) {
    for (size_t n = 0; n < c->bytes.size; n++)
        assert_int_equal(open_copy(c, n), n == 0 ? SVS_EMPTY : SVS_TRUNCATED);
    uint8_t nil = 0xc0;
    svi_bytes_append(&c->bytes, &nil, 1);
    assert_int_equal(open_copy(c, c->bytes.size), SVS_TRAILING);
}

static void check_elements(struct wire_case *c, struct svi_envelope *f, struct svi_schema *s,
                           svs_error *err) {
    char text[600];
    const uint8_t *at = f->left > 0 ? f->first.at : f->bytes + f->size;
    assert_int_equal(f->left, c->elements);
    for (int i = 0; i < c->elements; i++) {
        decode_next(f, s, text, sizeof text, err);
        if (strcmp(text, c->element[i]) != 0)
            fail_msg("%s: element %d is\n  %s (%s), not\n  %s", c->name, i, text, err->text, c->element[i]);
        assert_ptr_equal(f->element, at);
        at = f->next;
        assert_ptr_equal(f->element + f->element_size, at);
    }
    assert_int_equal(f->left, 0);
    assert_ptr_equal(at, f->bytes + f->size);
}

static void run_case(struct wire_case *c) {
    struct svi_schema s;
    struct svi_envelope f;
    svs_error err = {0};
    assert_int_equal(schema_open(&s, c->max, c->features, NULL), SVS_OK);
    accept_first(c, &s);
    uint8_t *copy = exact_copy(c->bytes.data, c->bytes.size);
    svs_code code = svi_envelope_read(&f, copy, c->bytes.size);
    err = f.form;
    if (strcmp(svs_code_name(code), c->open) != 0)
        fail_msg("%s: the frame gives %s (%s), not %s", c->name, svs_code_name(code), err.text, c->open);
    if (code == SVS_OK)
        check_elements(c, &f, &s, &err);
    if (!strstr(err.text, c->reason))
        fail_msg("%s: the reason is \"%s\", without \"%s\"", c->name, err.text, c->reason);
    if (code == SVS_OK && c->bytes.size < 2000)
        check_cuts(c);
    free(copy);
    svi_schema_clear(&s);
}

static void test_all_cases(void **state) {
    (void)state;
    const char *folder = getenv("WIRE_CASES") ? getenv("WIRE_CASES") : CASES_DEFAULT;
    DIR *dir = opendir(folder);
    if (!dir)
        fail_msg("no folder %s: run from the top of the repository or set WIRE_CASES", folder);
    int count = 0;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        if (e->d_name[0] == '.')
            continue;
        char path[600];
        struct wire_case c = {.max = 64, .open = "ok"};
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        read_case(&c, path);
        run_case(&c);
        svi_bytes_clear(&c.first);
        svi_bytes_clear(&c.bytes);
        count++;
    }
    closedir(dir);
    print_message("%d wire cases\n", count);
    assert_true(count > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
