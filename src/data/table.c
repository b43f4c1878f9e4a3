#include "data/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

#define FIRST_ROWS    1024
#define FIRST_ENTRIES 16384
#define FIRST_CLASSES 16
#define TELL_ROWS     4096

struct class_label {
    svs_value value;
    char text[SVS_NAME_MAX];
    int place; /* after sorting */
};

struct owned {
    const struct svi_table_options *o;
    const char *path;
    struct svi_shape shape;
    int64_t n, row_room, entry_room;
    int64_t *start;
    int32_t *column;
    double *value, *dense;
    int32_t *label;
    double *target, *weight, *ts;
    bool weighted, timed;
    int d;
    struct class_label *found; /* in order of first sight */
    int class_count, class_room, last;
    svs_value *classes;
    const char **names;
    int32_t *map; /* column of the file -> column of the table, -1 = dropped; NULL = as it is */
};

/* ---- room */

static bool grow(void **block, size_t element, int64_t old, int64_t room) {
    void *more = *block ? svi_realloc(*block, (size_t)old * element, (size_t)room * element)
                        : svi_alloc_array((size_t)room, element);
    if (more)
        *block = more;
    return more != NULL;
}

static svs_code room_for_row(struct owned *t, svs_error *err) {
    if (t->n + 1 < t->row_room)
        return SVS_OK;
    int64_t room = t->row_room ? 2 * t->row_room : FIRST_ROWS;
    bool got = grow((void **)&t->start, sizeof *t->start, t->row_room, room) &&
               grow((void **)&t->label, sizeof *t->label, t->row_room, room) &&
               grow((void **)&t->target, sizeof *t->target, t->row_room, room) &&
               grow((void **)&t->weight, sizeof *t->weight, t->row_room, room) &&
               grow((void **)&t->ts, sizeof *t->ts, t->row_room, room);
    if (!got)
        return svi_fail_memory(err, "the rows of a file");
    t->row_room = room;
    return SVS_OK;
}

static svs_code room_for_entries(struct owned *t, int64_t count, svs_error *err) {
    int64_t room = t->entry_room ? t->entry_room : FIRST_ENTRIES;
    while (room < t->start[t->n] + count)
        room *= 2;
    if (room == t->entry_room)
        return SVS_OK;
    if (!grow((void **)&t->column, sizeof *t->column, t->entry_room, room) ||
        !grow((void **)&t->value, sizeof *t->value, t->entry_room, room))
        return svi_fail_memory(err, "the values of a file");
    t->entry_room = room;
    return SVS_OK;
}

/* ---- labels */

static int find_class(struct owned *t, svs_value y) {
    if (t->last < t->class_count && svs_value_equal(t->found[t->last].value, y))
        return t->last;
    for (int k = 0; k < t->class_count; k++)
        if (svs_value_equal(t->found[k].value, y))
            return t->last = k;
    return -1;
}

static svs_code add_class(struct owned *t, svs_value y, int *index, svs_error *err) {
    *index = t->class_count;
    if (t->class_count == t->class_room) {
        int room = t->class_room ? 2 * t->class_room : FIRST_CLASSES;
        struct class_label *before = t->found;
        if (!grow((void **)&t->found, sizeof *t->found, t->class_room, room))
            return svi_fail_memory(err, "the classes of a file");
        for (int k = 0; before && k < t->class_count; k++)
            if (t->found[k].value.kind == SVS_STR)
                t->found[k].value.as.s = t->found[k].text;
        t->class_room = room;
    }
    struct class_label *c = &t->found[t->class_count++];
    c->value = y;
    if (y.kind == SVS_STR) {
        if (y.length > SVS_NAME_MAX)
            return svi_fail(err, SVS_BAD_LABEL, "a label is longer than %d bytes", SVS_NAME_MAX);
        memcpy(c->text, y.as.s, y.length);
        c->value.as.s = c->text;
    }
    return SVS_OK;
}

static svs_code take_class(struct owned *t, struct svi_table *table, svs_value y, svs_error *err) {
    int index = -1;
    if (y.kind == SVS_REAL)
        return svi_fail(
            err, SVS_BAD_LABEL,
            "the label %g is no whole number: classes are integers or words (or use --task regress)", y.as.r);
    if (y.kind != SVS_NONE)
        index = find_class(t, y);
    if (y.kind != SVS_NONE && index < 0 && t->o->known_count > 0)
        table->strange++;
    else if (y.kind != SVS_NONE && index < 0) {
        svs_code code = add_class(t, y, &index, err);
        if (code != SVS_OK)
            return code;
    }
    t->label[t->n] = index;
    return SVS_OK;
}

static svs_code take_label(struct owned *t, struct svi_table *table, svs_value y, svs_error *err) {
    t->target[t->n] = NAN;
    t->label[t->n] = -1;
    if (y.kind == SVS_NONE)
        return t->o->unlabelled ? SVS_OK : svi_fail(err, SVS_BAD_LABEL, "the row has no label");
    if (t->o->task == SVS_CLASSIFY)
        return take_class(t, table, y, err);
    if (y.kind == SVS_STR)
        return svi_fail(err, SVS_BAD_LABEL, "the target is no number");
    t->target[t->n] = y.kind == SVS_INT ? (double)y.as.i : y.as.r;
    return SVS_OK;
}

/* ---- rows */

static svs_code take_values(struct owned *t, const struct svi_message *m, svs_error *err) {
    int count = 0;
    for (int j = 0; j < m->d; j++)
        count += m->x[j] != 0;
    svs_code code = room_for_entries(t, count, err);
    if (code != SVS_OK)
        return code;
    int64_t at = t->start[t->n];
    for (int j = 0; j < m->d; j++)
        if (m->x[j] != 0) {
            t->column[at] = j;
            t->value[at++] = m->x[j];
        }
    t->start[t->n + 1] = at;
    t->d = m->d > t->d ? m->d : t->d;
    return SVS_OK;
}

static svs_code take_row(struct owned *t, struct svi_table *table, const struct svi_message *m,
                         svs_error *err) {
    if (m->op != SVI_LEARN || !m->has_x)
        return svi_fail(err, SVS_MISSING_X, "the row has no features");
    if (m->missing > 0)
        return svi_fail(err, SVS_MISSING_VALUE,
                        "a feature value is missing: fill it in or leave the row out");
    svs_code code = room_for_row(t, err);
    if (code == SVS_OK)
        code = take_label(t, table, m->y, err);
    if (code == SVS_OK)
        code = take_values(t, m, err);
    if (code != SVS_OK)
        return code;
    svi_shape_commit(&t->shape, m);
    t->weight[t->n] = m->weight;
    t->weighted = t->weighted || m->weight != 1;
    t->ts[t->n] = m->ts;
    t->timed = t->timed || !isnan(m->ts);
    t->n++;
    return SVS_OK;
}

static void tell(const struct owned *t, const svi_reader *r) {
    int64_t size, position = svi_reader_position(r, &size);
    if (t->o->progress && t->n % TELL_ROWS == 0)
        t->o->progress(t->o->user, t->n, position, size);
}

static svs_code read_rows(struct owned *t, struct svi_table *table, const char *path, svi_reader *r,
                          svs_error *err) {
    struct svi_message m;
    svs_error why = {0};
    const char *bytes;
    size_t length;
    for (;;) {
        enum svi_read what = svi_reader_row(r, &m, &why);
        svs_code code = what == SVI_READ_ROW ? take_row(t, table, &m, &why) : why.code;
        if (what == SVI_READ_END)
            return t->n > 0 ? SVS_OK : svi_fail(err, SVS_EMPTY, "%.150s has no rows", path);
        if (what == SVI_READ_FAIL || what == SVI_READ_BAD) /* the reader tells the line itself */
            return svi_fail(err, why.code, "%.100s: %.150s", path, why.text);
        if (code != SVS_OK)
            return svi_fail(err, code, "%.100s, line %lld: %.120s", path,
                            (long long)svi_reader_line(r, &bytes, &length), why.text);
        tell(t, r);
    }
}

/* ---- what is done when all is read */

static int compare_classes(const void *a, const void *b) {
    const svs_value x = (*(const struct class_label *const *)a)->value,
                    y = (*(const struct class_label *const *)b)->value;
    if (x.kind != y.kind)
        return x.kind == SVS_INT ? -1 : 1;
    if (x.kind == SVS_INT)
        return (x.as.i > y.as.i) - (x.as.i < y.as.i);
    uint32_t shorter = x.length < y.length ? x.length : y.length;
    int order = memcmp(x.as.s, y.as.s, shorter);
    return order ? order : (x.length > y.length) - (x.length < y.length);
}

static svs_code sort_classes(struct owned *t, svs_error *err) {
    struct class_label **sorted = svi_alloc_array((size_t)t->class_count + 1, sizeof(struct class_label *));
    t->classes = svi_alloc_array((size_t)t->class_count + 1, sizeof *t->classes);
    if (!sorted || !t->classes) {
        svi_free(sorted);
        return svi_fail_memory(err, "the classes of a file");
    }
    for (int k = 0; k < t->class_count; k++)
        sorted[k] = &t->found[k];
    if (t->o->known_count == 0)
        qsort(sorted, (size_t)t->class_count, sizeof(struct class_label *), compare_classes);
    for (int k = 0; k < t->class_count; k++) {
        sorted[k]->place = k;
        t->classes[k] = sorted[k]->value;
    }
    for (int64_t i = 0; i < t->n; i++)
        t->label[i] = t->label[i] < 0 ? -1 : t->found[t->label[i]].place;
    svi_free(sorted);
    return SVS_OK;
}

struct entry {
    int32_t column;
    double value;
};

static int compare_entries(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    return (x->column > y->column) - (x->column < y->column);
}

/* Moves the columns of the file to those of the model that have their names, dropping the others. */
static svs_code rename_columns(struct owned *t, svs_error *err) {
    const int have = svs_features_count(t->shape.names);
    if (!t->o->names || have == 0 || t->o->exact)
        return SVS_OK;
    struct entry *row = svi_alloc_array((size_t)t->d + 1, sizeof *row);
    t->map = svi_alloc_array((size_t)t->d + 1, sizeof *t->map);
    if (!row || !t->map) {
        svi_free(row);
        return svi_fail_memory(err, "the columns of a file");
    }
    for (int j = 0; j < t->d; j++)
        t->map[j] = -1;
    for (int k = 0; k < t->o->name_count; k++) {
        const int j = svs_features_find(t->shape.names, t->o->names[k], strlen(t->o->names[k]));
        if (j >= 0 && j < t->d)
            t->map[j] = k;
    }
    int64_t at = 0;
    for (int64_t i = 0; i < t->n; i++) {
        int64_t from = t->start[i], to = t->start[i + 1];
        int count = 0;
        for (int64_t k = from; k < to; k++)
            if (t->map[t->column[k]] >= 0)
                row[count++] = (struct entry){t->map[t->column[k]], t->value[k]};
        qsort(row, (size_t)count, sizeof *row, compare_entries);
        t->start[i] = at;
        for (int k = 0; k < count; k++, at++) {
            t->column[at] = row[k].column;
            t->value[at] = row[k].value;
        }
    }
    t->start[t->n] = at;
    t->d = t->o->name_count;
    svi_free(row);
    return SVS_OK;
}

static svs_code take_names(struct owned *t, svs_error *err) {
    const int have = svs_features_count(t->shape.names);
    if (t->map || have == 0 || have < t->d)
        return SVS_OK;
    t->names = svi_alloc_array((size_t)t->d, sizeof *t->names);
    if (!t->names)
        return svi_fail_memory(err, "the names of the columns");
    for (int j = 0; j < t->d; j++)
        t->names[j] = svs_features_name(t->shape.names, j);
    return SVS_OK;
}

static svs_code make_dense(struct owned *t, int64_t stride, svs_error *err) {
    t->dense = svi_alloc_array((size_t)t->n, (size_t)stride * sizeof *t->dense);
    if (!t->dense)
        return svi_fail_memory(err, "the rows of a file");
    for (int64_t i = 0; i < t->n; i++)
        for (int64_t k = t->start[i]; k < t->start[i + 1]; k++)
            t->dense[i * stride + t->column[k]] = t->value[k];
    svi_free(t->start);
    svi_free(t->column);
    svi_free(t->value);
    t->start = NULL;
    t->column = NULL;
    t->value = NULL;
    return SVS_OK;
}

static svs_code check_width(const struct owned *t, svs_error *err) {
    const int wanted = t->o->features;
    if (!t->o->exact || t->shape.fixed_names || wanted == 0 || t->d == wanted ||
        (t->d < wanted && t->shape.kind != SVI_DENSE))
        return SVS_OK;
    return svi_fail(err, SVS_WRONG_DIMENSION, "%.100s has %d features, not %d", t->path, t->d, wanted);
}

static svs_code finish(struct owned *t, struct svi_table *table, svs_error *err) {
    svs_code code = sort_classes(t, err);
    if (code == SVS_OK)
        code = rename_columns(t, err);
    if (code == SVS_OK)
        code = check_width(t, err);
    if (code == SVS_OK)
        code = take_names(t, err);
    if (code != SVS_OK)
        return code;
    t->d = t->d > t->o->features ? t->d : t->o->features;
    t->d = t->d > 0 ? t->d : 1;
    const int64_t stride = (t->d + 7) / 8 * 8, stored = t->start[t->n];
    if ((double)stored >= SVI_TABLE_DENSE * (double)t->n * t->d)
        code = make_dense(t, stride, err);
    const svs_rows rows = {.n = t->n,
                           .d = t->d,
                           .dense = t->dense,
                           .stride = t->dense ? stride : 1,
                           .padded = t->dense != NULL,
                           .start = t->start,
                           .column = t->column,
                           .value = t->value};
    table->examples = (svs_examples){.rows = rows,
                                     .task = t->o->task,
                                     .label = t->label,
                                     .target = t->target,
                                     .weight = t->weighted ? t->weight : NULL,
                                     .class_count = t->class_count,
                                     .classes = t->classes,
                                     .features = t->names};
    table->ts = t->timed ? t->ts : NULL;
    return code;
}

/* The columns are those of `names`, in their order, and the reader refuses a file without them. */
static svs_code fix_names(struct owned *t, svs_error *err) {
    for (int k = 0; k < t->o->name_count; k++) {
        const int column = svs_features_add(t->shape.names, t->o->names[k], strlen(t->o->names[k]), err);
        if (column < 0)
            return err->code;
        if (column < k)
            return svi_fail(err, SVS_SETTING, "the feature \"%.80s\" is wanted twice", t->o->names[k]);
    }
    t->shape.fixed_names = true;
    t->shape.d = t->shape.names_kept = t->o->name_count;
    return SVS_OK;
}

static svs_code read_all(struct owned *t, struct svi_table *table, const char *path, svs_error *err) {
    svs_code code = svi_shape_init(&t->shape, t->o->max_features, NULL, err);
    if (code == SVS_OK && t->o->exact && t->o->names)
        code = fix_names(t, err);
    for (int k = 0, index; k < t->o->known_count && code == SVS_OK; k++)
        code = add_class(t, t->o->known[k], &index, err);
    svi_reader *r = code == SVS_OK ? svi_reader_open(path, &t->o->reader, &t->shape, err) : NULL;
    if (code == SVS_OK && !r)
        return err ? err->code : SVS_IO;
    if (code == SVS_OK)
        code = room_for_row(t, err);
    if (code == SVS_OK)
        code = room_for_entries(t, 1, err);
    if (code == SVS_OK)
        code = read_rows(t, table, path, r, err);
    svi_reader_close(&r);
    return code == SVS_OK ? finish(t, table, err) : code;
}

svs_code svi_table_read(struct svi_table *table, const char *path, const struct svi_table_options *o,
                        svs_error *err) {
    svs_error mine = {0};
    struct owned *t = svi_alloc(sizeof *t);
    *table = (struct svi_table){.owned = t};
    if (!t)
        return svi_fail_memory(err, "a table");
    t->o = o;
    t->path = path;
    svs_code code = read_all(t, table, path, &mine);
    if (err && code != SVS_OK)
        *err = mine;
    return code;
}

void svi_table_clear(struct svi_table *table) {
    struct owned *t = table->owned;
    if (!t)
        return;
    void *const all[] = {t->start,  t->column, t->value, t->dense,   t->label, t->target,
                         t->weight, t->ts,     t->found, t->classes, t->names, t->map};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    svi_shape_clear(&t->shape);
    svi_free(t);
    *table = (struct svi_table){0};
}
