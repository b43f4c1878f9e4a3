#include "data/csv_header.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/cell.h"

#define LIST_MAX 150 /* bytes of an error text that list the columns */

/* The separator that is there most often outside of quotes; comma when there is none. */
static char guess_delimiter(struct svi_span line, int *count) {
    static const char candidates[] = ",;\t";
    int counts[3] = {0}, best = 0;
    bool quoted = false;
    for (const char *p = line.at; p < line.end; p++) {
        quoted ^= *p == '"';
        const char *which = memchr(candidates, *p, 3);
        if (which && !quoted)
            counts[which - candidates]++;
    }
    for (int i = 1; i < 3; i++)
        if (counts[i] > counts[best])
            best = i;
    *count = counts[best];
    return candidates[best];
}

static svs_code allocate(struct svi_csv_header *h, struct svi_span line, svs_error *err) {
    size_t length = (size_t)(line.end - line.at), columns = (size_t)h->columns;
    h->text = svi_alloc(length + SVI_CSV_TEXT); /* numbers are looked for in it: padding as behind a line */
    h->roles = svi_alloc_array(columns, sizeof *h->roles);
    h->names = svi_alloc_array(columns, sizeof *h->names);
    if (!h->text || !h->roles || !h->names)
        return svi_fail_memory(err, "the columns of the header");
    memcpy(h->text, line.at, length);
    return SVS_OK;
}

static svs_code cut_names(struct svi_csv_header *h, size_t length, svs_error *err) {
    char *p = h->text, *end = h->text + length;
    for (int i = 0; i < h->columns; i++) {
        struct svi_span name;
        const char *stop = svi_csv_cut(h, p, end, &name);
        if (!stop || (stop == end) != (i == h->columns - 1))
            return svi_fail(err, SVS_SETTING, "column %d of the header: its quotes are wrong", i + 1);
        /* The span lies in our own copy. */
        h->names[i] = svi_csv_unquote(name, h->text + (name.at - h->text));
        if (name.at == name.end)
            return svi_fail(err, SVS_BAD_COLUMN, "column %d of the header has no name", i + 1);
        p = h->text + (stop - h->text) + 1;
    }
    return SVS_OK;
}

static bool all_numbers(const struct svi_csv_header *h) {
    double v;
    for (int i = 0; i < h->columns; i++)
        if (!svi_cell_number(h->names[i], &v))
            return false;
    return true;
}

struct wanted {
    const char *name, *what;
    int32_t role;
    bool required;
};

static svs_code fail_columns(struct svi_span line, const char *name, const char *what, svs_error *err) {
    char list[LIST_MAX];
    return svi_fail(err, SVS_SETTING, "there is no %s \"%.60s\"; the columns are %s", what, name,
                    svi_span_text(line, list, sizeof list));
}

static svs_code assign(struct svi_csv_header *h, const struct wanted *w, struct svi_span line,
                       svs_error *err) {
    int found = 0;
    for (int i = 0; w->name && i < h->columns; i++)
        if (svi_span_is(h->names[i], w->name)) {
            h->roles[i] = w->role;
            found++;
        }
    if (found == 0 && w->required)
        return fail_columns(line, w->name, w->what, err);
    if (found > 1)
        return svi_fail(err, SVS_SETTING, "the header has the column \"%.60s\" %d times", w->name, found);
    return SVS_OK;
}

static svs_code assign_wanted(struct svi_csv_header *h, const struct svi_reader_options *o,
                              struct svi_span line, svs_error *err) {
    const struct wanted all[] = {
        {o->label ? o->label : "label", "label column", SVI_CSV_LABEL, o->label_required},
        {o->id, "id column", SVI_CSV_ID, o->id != NULL},
        {o->ts, "ts column", SVI_CSV_TS, o->ts != NULL},
        {o->weight, "weight column", SVI_CSV_WEIGHT, o->weight != NULL},
    };
    svs_code code = SVS_OK;
    for (int i = 0; i < 4 && code == SVS_OK; i++)
        code = assign(h, &all[i], line, err);
    return code;
}

/* The place in x of the column, which becomes a feature unless the names are fixed and this is none of them.
 */
static svs_code assign_feature(struct svi_csv_header *h, struct svi_shape *s, int column, svs_error *err) {
    struct svi_span name = h->names[column];
    size_t length = (size_t)(name.end - name.at);
    int place = svs_features_find(s->names, name.at, length);
    if (place < 0 && s->fixed_names)
        return SVS_OK;
    svs_error why = {0};
    if (place < 0)
        place = svs_features_add(s->names, name.at, length, &why);
    if (place < 0)
        return svi_fail(err, why.code, "column %d of the header: %.200s", column + 1, why.text);
    if (!svi_shape_mark(s, place)) {
        char text[80];
        return svi_fail(err, SVS_SETTING, "the header has the column \"%s\" twice",
                        svi_span_text(name, text, sizeof text));
    }
    h->roles[column] = place;
    return SVS_OK;
}

static svs_code assign_features(struct svi_csv_header *h, struct svi_shape *s, struct svi_span line,
                                svs_error *err) {
    svs_code code = SVS_OK;
    svi_shape_begin_row(s);
    for (int i = 0; i < h->columns && code == SVS_OK; i++)
        if (h->roles[i] == SVI_CSV_IGNORED)
            code = assign_feature(h, s, i, err);
    h->d = svs_features_count(s->names);
    for (int j = 0; j < h->d && code == SVS_OK; j++)
        if (svi_shape_mark(s, j)) /* no column has claimed it */
            code = fail_columns(line, svs_features_name(s->names, j), "feature column", err);
    if (code == SVS_OK && h->d == 0)
        code = svi_fail(err, SVS_SETTING, "the header names no feature column");
    return code;
}

static svs_code read_header(struct svi_csv_header *h, const struct svi_reader_options *o,
                            struct svi_shape *shape, struct svi_span line, svs_error *err) {
    h->delimiter = guess_delimiter(line, &h->columns);
    h->columns++;
    svs_code code = allocate(h, line, err);
    if (code == SVS_OK)
        code = cut_names(h, (size_t)(line.end - line.at), err);
    if (code != SVS_OK)
        return code;
    if (all_numbers(h))
        return svi_fail(err, SVS_SETTING,
                        "the first line is numbers; a CSV needs a header line with the column names");
    for (int i = 0; i < h->columns; i++)
        h->roles[i] = SVI_CSV_IGNORED;
    code = assign_wanted(h, o, line, err);
    return code == SVS_OK ? assign_features(h, shape, line, err) : code;
}

struct svi_csv_header *svi_csv_header_new(const struct svi_reader_options *o, struct svi_shape *shape,
                                          struct svi_span line, svs_error *err) {
    struct svi_csv_header *h = svi_alloc(sizeof *h);
    if (!h) {
        svi_fail_memory(err, "the columns of the header");
        return NULL;
    }
    if (read_header(h, o, shape, line, err) == SVS_OK) {
        shape->names_kept = svs_features_count(shape->names);
        return h;
    }
    svi_shape_restore(shape);
    svi_csv_header_free(h);
    return NULL;
}

void svi_csv_header_free(struct svi_csv_header *h) {
    if (!h)
        return;
    svi_free(h->text);
    svi_free(h->roles);
    svi_free(h->names);
    svi_free(h);
}
