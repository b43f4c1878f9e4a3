/* VW's text: `[label] [weight] [base] ['tag]|ns[:factor] name[:value] ... |ns ...`.
 *
 * Before the first bar: the label, a number or a word; a weight; a base, which is ignored; and the tag, the
 * id of the row, which begins with ' or is adjacent to the bar. After a bar, without a blank: the name of a
 * namespace and a factor of all its numbers. Then features: `a:1`; `a`, which is 1; `machine=press-03`, a
 * word in the column machine; `a:NA`, a missing value. A name in a namespace becomes `ns^name`. What a row
 * does not name is 0.
 *
 * Not supported: labels with several costs (`1:2 3:1`), and hashed or weighted words (`machine=press-03:2`).
 *
 * Cells and joined names grow with the row and may move; pointers into the names are therefore set at the end
 * (vw_place_names).
 *
 * Order: words, before the first bar, after it, the row, recognising the format. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/cell.h"
#include "data/number.h"
#include "data/reader_internal.h"

struct vw {
    struct svi_missing_words missing;
    struct svi_cell *cells; /* of the current row; owned */
    size_t cell_capacity;
    char *names; /* joined names of the current row, one after the other; owned */
    size_t name_capacity;
};

/* The line being read. */
struct vw_row {
    struct vw *state;
    struct svi_message *m;
    svs_error *err;
    struct svi_span space; /* current namespace; empty: none */
    double factor;
    size_t used; /* bytes of joined names so far */
};

/* The next word before `end`; a bar ends it too. *p moves past it. Empty: no more words. */
static struct svi_span vw_next(const char **p, const char *end) {
    while (*p < end && svi_is_blank(**p))
        (*p)++;
    struct svi_span word = {*p, *p};
    while (word.end < end && !svi_is_blank(*word.end) && *word.end != '|')
        word.end++;
    *p = word.end;
    return word;
}

static const char *vw_find(struct svi_span s, char c) {
    const char *found = memchr(s.at, c, (size_t)(s.end - s.at));
    return found ? found : s.end;
}

__attribute__((format(printf, 4, 5))) static svs_code
vw_refuse(const struct vw_row *r, svs_code code, struct svi_span word, const char *format, ...) {
    char text[60], what[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return svi_fail(r->err, code, "\"%s\": %s", svi_span_text(word, text, sizeof text), what);
}

/* ---- before the first bar */

static svs_code vw_take_tag(struct vw_row *r, struct svi_span word) {
    word.at += word.at < word.end && *word.at == '\'';
    return word.at == word.end ? SVS_OK : svi_cell_id(word, NULL, &r->m->id, r->err);
}

static svs_code vw_take_number(const struct vw_row *r, struct svi_span word, const char *what,
                               double *value) {
    if (!svi_cell_number(word, value))
        return vw_refuse(r, SVS_WRONG_TYPE, word, "the %s is not a number", what);
    return isfinite(*value) ? SVS_OK : vw_refuse(r, SVS_NOT_FINITE, word, "the %s is not finite", what);
}

/* Reads word number k before the bar, tags not counted. */
static svs_code vw_take_front(struct vw_row *r, int k, struct svi_span word) {
    double base;
    svs_code code;
    /* 1:2 3:1 would otherwise be read as a class named 1:2. */
    if (k == 0 && vw_find(word, ':') != word.end)
        return vw_refuse(r, SVS_BAD_LABEL, word,
                         "a label with several costs is not supported: give the class alone");
    switch (k) {
    case 0:
        return svi_cell_label(word, svi_cell_none(word) ? NULL : &r->state->missing, &r->m->y, r->err);
    case 1:
        code = vw_take_number(r, word, "weight", &r->m->weight);
        return code == SVS_OK ? svi_check_weight(r->m->weight, r->err) : code;
    case 2:
        return vw_take_number(r, word, "base", &base);
    default:
        return vw_refuse(r, SVS_WRONG_TYPE, word, "only label, weight, base and 'tag may precede the bar");
    }
}

static svs_code vw_take_fronts(struct vw_row *r, const char **p, const char *bar) {
    svs_code code = SVS_OK;
    for (int k = 0; code == SVS_OK;) {
        const struct svi_span word = vw_next(p, bar);
        if (word.at == word.end)
            break;
        /* A word adjacent to the bar is a tag by VW's rule, even without the quote. */
        const bool tag = *word.at == '\'' || word.end == bar;
        code = tag ? vw_take_tag(r, word) : vw_take_front(r, k, word);
        k += !tag;
    }
    return code;
}

/* ---- after it */

/* Reads what follows a bar: `ns`, `ns:2` or nothing. */
static svs_code vw_take_space(struct vw_row *r, const char **p, const char *end) {
    r->space = (struct svi_span){*p, *p};
    /* A bar resets both, also one without a name. */
    r->factor = 1;
    if (*p == end || svi_is_blank(**p))
        return SVS_OK;
    const struct svi_span word = vw_next(p, end);
    const char *colon = vw_find(word, ':');
    r->space = (struct svi_span){word.at, colon};
    return colon == word.end ? SVS_OK
                             : vw_take_number(r, (struct svi_span){colon + 1, word.end},
                                              "factor of a namespace", &r->factor);
}

/* Reads the name of a column. A name in a namespace is joined in memory that may still move, so it gets its
 * address at the end of the row; NULL marks it until then. */
static svs_code vw_take_name(struct vw_row *r, struct svi_span name, struct svi_cell *cell) {
    struct vw *h = r->state;
    const size_t space = (size_t)(r->space.end - r->space.at), length = (size_t)(name.end - name.at);
    /* ns^name, or the name alone. */
    const size_t whole = space > 0 ? space + 1 + length : length;
    if (length == 0 || whole > SVS_NAME_MAX || !svi_utf8_valid(name.at, length) ||
        !svi_utf8_valid(r->space.at, space))
        return vw_refuse(r, SVS_BAD_COLUMN, name, "a name is 1 to %d bytes of UTF-8, its namespace included",
                         SVS_NAME_MAX);
    *cell = (struct svi_cell){.name = space > 0 ? NULL : name.at, .name_length = (uint32_t)whole};
    if (space == 0)
        return SVS_OK;
    if (!svi_row_reserve((void **)&h->names, &h->name_capacity, r->used + whole, 1))
        return svi_fail_memory(r->err, "a row");
    memcpy(h->names + r->used, r->space.at, space);
    h->names[r->used + space] = '^';
    memcpy(h->names + r->used + space + 1, name.at, length);
    r->used += whole;
    return SVS_OK;
}

static svs_code vw_take_value(const struct vw_row *r, struct svi_span value, struct svi_cell *cell) {
    const struct svi_missing_words *missing = &r->state->missing;
    const bool number = svi_cell_number(value, &cell->number);
    if ((!number || missing->numbers) && svi_cell_missing(missing, value))
        return SVS_OK;
    svs_code code = vw_take_number(r, value, "value of a feature", &cell->number);
    /* The factor may overflow a finite value, so the product is tested too. */
    cell->number *= r->factor;
    cell->kind = code == SVS_OK ? SVI_CELL_NUMBER : SVI_CELL_MISSING;
    return code == SVS_OK && !isfinite(cell->number)
               ? vw_refuse(r, SVS_NOT_FINITE, value, "the value with its namespace's factor is not finite")
               : code;
}

static svs_code vw_take_feature(struct vw_row *r, struct svi_span word) {
    struct vw *h = r->state;
    const char *colon = vw_find(word, ':'), *equals = vw_find((struct svi_span){word.at, colon}, '=');
    /* An = after the colon belongs to the value. */
    const bool category = equals < colon;
    /* The array may move: cells are only pointed to until the next feature. */
    if (!svi_row_reserve((void **)&h->cells, &h->cell_capacity, (size_t)r->m->cell_count + 1,
                         sizeof *h->cells))
        return svi_fail_memory(r->err, "a row");
    r->m->cells = h->cells;
    struct svi_cell *cell = &h->cells[r->m->cell_count];
    if (category && colon < word.end)
        return vw_refuse(r, SVS_WRONG_TYPE, word, "column=word takes no value: remove it");
    /* The cell counts once it has a name; until a value follows it is missing. */
    SVI_TRY(vw_take_name(r, (struct svi_span){word.at, equals}, cell));
    r->m->cell_count++;
    if (colon < word.end)
        return vw_take_value(r, (struct svi_span){colon + 1, word.end}, cell);
    if (!category) {
        cell->kind = SVI_CELL_NUMBER;
        cell->number = r->factor;
        return SVS_OK;
    }
    const struct svi_span value = {equals + 1, word.end};
    if (svi_cell_missing(&r->state->missing, value))
        return SVS_OK;
    return svi_cell_word(cell, value) ? SVS_OK
                                      : vw_refuse(r, SVS_WRONG_TYPE, word, "the word is not valid UTF-8");
}

/* Gives the joined names their addresses, in the order in which they were made. */
static void vw_place_names(const struct vw_row *r) {
    const char *at = r->state->names;
    for (int i = 0; i < r->m->cell_count; i++) {
        struct svi_cell *c = &r->state->cells[i];
        if (c->name)
            continue;
        c->name = at;
        at += c->name_length;
    }
}

static svs_code vw_row(void *state, struct svi_shape *shape, struct svi_span line, struct svi_message *m,
                       svs_error *err) {
    struct vw *h = state;
    struct vw_row r = {.state = h, .m = m, .err = err};
    (void)shape;
    line = svi_trim(line);
    const char *p = line.at, *bar = vw_find(line, '|');
    if (line.at == line.end)
        return SVS_EMPTY;
    if (bar == line.end)
        return svi_fail(err, SVS_WRONG_TYPE,
                        "the bar is missing: a row is `label |namespace name:value ...`");
    svs_code code = vw_take_fronts(&r, &p, bar);
    m->has_x = true;
    m->kind = SVI_NAMED;
    m->absent = SVI_MISSING_ZERO;
    if (!svi_row_reserve((void **)&h->cells, &h->cell_capacity, 1, sizeof *h->cells))
        return svi_fail_memory(err, "a row");
    m->cells = h->cells; /* not NULL even without features: NULL means that x is a vector */
    for (p = bar; code == SVS_OK && p < line.end;) {
        /* An empty word means a bar, or the end of the line. */
        const struct svi_span word = *p == '|' ? (struct svi_span){p, p} : vw_next(&p, line.end);
        if (word.at < word.end) {
            code = vw_take_feature(&r, word);
        } else if (p < line.end) {
            p++;
            code = vw_take_space(&r, &p, line.end);
        }
    }
    vw_place_names(&r);
    return code;
}

static void vw_end(void *state) {
    struct vw *h = state;
    svi_free(h->cells);
    svi_free(h->names);
    svi_free(h);
}

static void *vw_begin(const struct svi_reader_options *o, svi_guess *guess, struct svi_span line,
                      svs_error *err) {
    (void)guess, (void)line;
    struct vw *h = svi_alloc(sizeof *h);
    if (h)
        svi_missing_words_init(&h->missing, o->missing);
    else
        svi_fail_memory(err, "the reader of VW text");
    return h;
}

bool svi_vw_looks(struct svi_span line) {
    const char *p = line.at, *bar = vw_find(line, '|');
    double v;
    /* A bar adjacent to a word is a cell separator of CSV unless a tag begins before it. */
    if (bar == line.end ||
        (bar > line.at && !svi_is_blank(bar[-1]) && !memchr(line.at, '\'', (size_t)(bar - line.at))))
        return false;
    const struct svi_span word = vw_next(&p, bar);
    return word.at == word.end || *word.at == '\'' || svi_cell_number(word, &v);
}

const struct svi_format svi_vw = {.name = "vw", .begin = vw_begin, .row = vw_row, .end = vw_end};
