#include "wire/columns.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

void svi_columns_init(struct svi_columns *c, int max_features) {
    *c = (struct svi_columns){.capacity = max_features};
}

static svs_code columns_reserve(struct svi_columns *c, svs_error *err) {
    if (!c->place)
        c->place = svi_alloc_array((size_t)c->capacity, sizeof *c->place);
    if (!c->row)
        c->row = svi_alloc_array((size_t)c->capacity, sizeof *c->row);
    return c->place && c->row ? SVS_OK : svi_fail_memory(err, "the order of columns");
}

void svi_columns_clear(struct svi_columns *c) {
    svi_bytes_clear(&c->list);
    svi_free(c->place);
    svi_free(c->row);
    *c = (struct svi_columns){.capacity = c->capacity};
}

void svi_columns_forget(struct svi_columns *c) {
    c->list.size = 0;
}

/* ---- error texts: names separated by commas, as many as fit */

/* Lists the first `known` columns of the stream. */
static const char *columns_list_stream(const struct svi_schema *s, int known, char *list) {
    bool fits = true;
    list[0] = '\0';
    for (int j = 0; fits && j < known; j++)
        fits = svi_list_add(list, SVI_LIST_PAIR, svi_schema_column_name(s, j),
                            strlen(svi_schema_column_name(s, j)));
    return list;
}

/* Lists the names of a message's `columns`, an array. */
static const char *columns_list_sent(const uint8_t *value, char *list) {
    struct svi_item head, name;
    const uint8_t *at = svi_item_read(value, &head);
    bool fits = true;
    list[0] = '\0';
    for (uint32_t i = 0; fits && i < head.length; i++) {
        const uint8_t *next = svi_item_read(at, &name);
        fits = name.type == SVI_STRING &&
               svi_list_add(list, SVI_LIST_PAIR, (const char *)name.body, name.length);
        at = next;
    }
    return list;
}

/* ---- matching */

static svs_code columns_refuse(const struct svi_schema *s, const uint8_t *value, int known, svs_error *err) {
    char sent[SVI_LIST_PAIR], have[SVI_LIST_PAIR];
    columns_list_sent(value, sent);
    if (s->shape.kind == SVI_SPARSE)
        return svi_fail(err, SVS_WRONG_COLUMNS,
                        "the columns are %s, but those of this stream have numbers (sparse)", sent);
    if (known == 0)
        return svi_fail(err, SVS_WRONG_COLUMNS, "the columns are %s, but this stream has %d without names",
                        sent, s->shape.d);
    return svi_fail(err, SVS_WRONG_COLUMNS, "the columns are %s, but this stream has %s", sent,
                    columns_list_stream(s, known, have));
}

/* The column of one name. `known`: number of names that the stream had before the message: with 0, names are
 * added. -1: err has a text; without a text the name is unknown, and the caller reports both lists. */
static int columns_place_of(struct svi_schema *s, const struct svi_item *name, int known, int guess,
                            svs_error *err) {
    const char *text = (const char *)name->body;
    char shown[80];
    err->code = SVS_WRONG_COLUMNS;
    if (name->type != SVI_STRING) {
        svi_fail(err, SVS_WRONG_COLUMNS, "columns holds %s: it must be an array of names",
                 svi_item_name(name));
        return -1;
    }
    int place = known > 0 ? svi_schema_find(s, text, name->length, guess) : -1;
    if (place < 0 && known == 0)
        place = svi_schema_column(s, NULL, text, name->length, guess, err);
    /* The marks of the row (svi_shape_begin_row) find duplicates: two names may not fill one column. */
    if (place < 0 || svi_shape_mark(&s->shape, place))
        return place;
    svi_fail(err, SVS_WRONG_COLUMNS, "columns names \"%s\" twice",
             svi_escape(shown, sizeof shown, text, name->length));
    return -1;
}

/* `columns` is true: the columns of the stream in their order. */
static svs_code columns_match_own(struct svi_columns *c, const struct svi_schema *s, svs_error *err) {
    c->count = svi_schema_columns(s);
    c->in_order = true;
    if (c->count == 0)
        return svi_fail(err, SVS_WRONG_COLUMNS,
                        "columns is true, but this stream has no names of columns yet");
    for (int i = 0; i < c->count; i++)
        c->place[i] = i;
    return SVS_OK;
}

static svs_code columns_match_list(struct svi_columns *c, struct svi_schema *s, const uint8_t *value,
                                   bool part, svs_error *err) {
    const int known = svi_schema_columns(s), wanted = known > 0 ? known : s->shape.d;
    struct svi_item list, name;
    svs_error why = {.text = ""};
    const uint8_t *at = svi_item_read(value, &list);
    if (list.type == SVI_BOOL && list.i)
        return columns_match_own(c, s, err);
    if (list.type != SVI_ARRAY || list.length == 0)
        return svi_fail(err, SVS_WRONG_COLUMNS, "columns is %s: it must be an array of names",
                        list.type == SVI_ARRAY ? "empty" : svi_item_name(&list));
    /* A stream without columns accepts any list; otherwise the list is complete, or shorter where the policy
     * fills missing columns. */
    const bool open = s->shape.kind == SVI_UNSET && known == 0;
    const bool fits = open || list.length == (uint32_t)wanted || (part && list.length < (uint32_t)known);
    if (s->shape.kind == SVI_SPARSE || !fits)
        return columns_refuse(s, value, known, err);
    /* The place of a name in the list is the guess for its column: in the common order no search is needed.
     */
    svi_shape_begin_row(&s->shape);
    c->in_order = true;
    for (uint32_t i = 0; i < list.length; i++) {
        at = svi_item_read(at, &name);
        const int place = columns_place_of(s, &name, known, (int)i, &why);
        if (place < 0 && why.text[0])
            return svi_fail(err, why.code, "%s", why.text);
        if (place < 0)
            return columns_refuse(s, value, known, err);
        c->place[i] = place;
        c->in_order = c->in_order && place == (int)i;
    }
    c->count = (int)list.length;
    return SVS_OK;
}

svs_code svi_columns_match(struct svi_columns *c, struct svi_schema *s, const struct svi_envelope *env,
                           bool part, svs_error *err) {
    /* The cached match holds while the stream has the same names and kind. A list that omits columns is valid
     * only with `part`. The bytes of a msgpack object delimit themselves, so a comparison of the prefix
     * suffices. */
    const uint8_t *value = env->columns, *end = env->bytes + env->size, *after = value;
    if (!value || (c->list.size > 0 && c->changes == svi_schema_changes(s) && c->kind == s->shape.kind &&
                   (part || c->count == svi_schema_columns(s)) && (size_t)(end - value) >= c->list.size &&
                   memcmp(value, c->list.data, c->list.size) == 0))
        return SVS_OK;
    c->list.size = 0; /* invalid until the new match is complete */
    SVI_TRY(columns_reserve(c, err));
    SVI_TRY(columns_match_list(c, s, value, part, err));
    svi_walk(&after, end, SVI_DEPTH_MAX); /* finds the end of the list, whose bytes are cached */
    c->changes = svi_schema_changes(s);
    c->kind = s->shape.kind;
    return svi_bytes_append(&c->list, value, (size_t)(after - value)) == SVS_OK
               ? SVS_OK
               : svi_fail_memory(err, "the names of columns");
}

svs_code svi_columns_order(struct svi_columns *c, struct svi_schema *s, const struct svi_envelope *env,
                           struct svi_message *m, svs_error *err) {
    if (!env->columns || !env->array)
        return SVS_OK;
    SVI_TRY(svi_columns_match(c, s, env, false, err));
    if (m->d != c->count)
        return svi_fail(err, SVS_WRONG_DIMENSION, "x has %d values, but columns names %d", m->d, c->count);
    if (c->in_order)
        return SVS_OK;
    /* m->d equals the number of columns here, so every element of x is written. */
    memcpy(c->row, m->x, (size_t)m->d * sizeof *c->row);
    for (int i = 0; i < m->d; i++)
        m->x[c->place[i]] = c->row[i];
    return SVS_OK;
}

void svi_columns_pack(struct svi_pack *p, const char *const *names, int count) {
    svi_pack_key(p, "columns");
    svi_pack_names(p, names, count);
}

void svi_columns_pack_cells(struct svi_pack *p, const struct svi_message *m) {
    svi_put_array(p, "columns", (size_t)m->cell_count);
    for (int i = 0; i < m->cell_count; i++)
        svi_pack_string(p, m->cells[i].name, m->cells[i].name_length);
}
