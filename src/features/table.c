/* A table grows row by row in CSR form while the file is read: start, column, value, and label or target,
 * weight and time stamp of each row. What needs the whole file is done at the end, in this order: missing
 * values get their means, classes are sorted, columns are moved to the places that a model's names give them,
 * the width is checked, and rows that are dense enough become padded dense rows.
 *
 * `exact` (or `fixed`) names go into the schema before the first row, and a CSV without them is refused;
 * names that are not exact are matched afterwards, and features that are not found are 0. The rows of a
 * model's schema come out as the model wants them.
 *
 * A missing value that waits for its mean stands as NAN among the values. What rows of names lack, by
 * columns that come later too, is put in at the end (`lazy`), or is 0 where they name few of many.
 *
 * Order: room, labels, missing values, rows, columns by names, rows that are not kept (but until the next
 * one comes), reading, what is done when all is read. */
#include "features/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/limits.h"
#include "data/feature_names.h"
#include "features/cells.h"

#define FIRST_ROWS    1024
#define FIRST_ENTRIES 16384
#define FIRST_CLASSES 16
#define FIRST_MOVED   64
#define REPORT_ROWS   4096
#define SPARSE_ONE_IN                                                                                        \
    16            /* a row that sets at most one feature in SPARSE_ONE_IN is read by those that it set */
#define WIDE 1000 /* columns, from which on rows may name few of them */

#define ROW_BYTES                                                                                            \
    (sizeof(int64_t) + sizeof(int32_t) + 3 * sizeof(double)) /* start, label, target, weight, ts */
#define ENTRY_BYTES (sizeof(int32_t) + sizeof(double))       /* column, value */

struct class_label {
    svs_value value;
    char text[SVS_NAME_MAX];
    int place; /* after sorting */
};

struct table_rows {
    const struct svi_table_options *o;
    const char *path;
    svi_table_row *each;                      /* NULL: rows are kept */
    void *user;                               /* of it */
    struct svi_schema own, *schema;           /* by which the rows go: its own, or that of a model */
    bool checked;                             /* the columns of a CSV are all there that must be */
    int64_t n, rows_capacity, entry_capacity; /* rows that are held */
    int64_t taken;                            /* rows in all: those that went to `each` are not held */
    int64_t *start;
    int32_t *column;
    double *value, *dense;
    int32_t *label;
    double *target, *weight, *ts;
    bool weighted, timed;
    int d;
    double *carried; /* by feature: the value of the row before; NULL until one is missing */
    bool by_mean;    /* rows ask for means: */
    int known;       /* features that have come */
    bool lazy;       /* rows hold all that they name, zeros too: what they do not name is missing */
    bool zeros;      /* it is 0 */
    double *means;
    struct class_label *found; /* in order of first sight */
    int class_count, class_capacity, last;
    svs_value *classes;
    const char **names;
    int32_t *map;              /* column of the file -> column of the table, -1 = dropped; NULL = as it is */
    int mapped;                /* columns of the file that are in it */
    uint64_t changes;          /* of the file's names then */
    int32_t *sorted;           /* the places of o->names in the order of the names */
    struct table_entry *moved; /* a row, while its columns are moved */
    int64_t moved_capacity;
};

struct table_entry {
    int32_t column;
    double value;
};

/* ---- room */

static bool table_grow(void **block, size_t element, int64_t old, int64_t capacity) {
    void *more = svi_realloc_plain(*block, (size_t)old * element, (size_t)capacity * element);
    if (more)
        *block = more;
    return more != NULL;
}

static svs_code table_reserve_row(struct table_rows *t, svs_error *err) {
    if (t->n + 1 < t->rows_capacity)
        return SVS_OK;
    const int64_t capacity = t->rows_capacity ? 2 * t->rows_capacity : FIRST_ROWS;
    if (!table_grow((void **)&t->start, sizeof *t->start, t->rows_capacity, capacity) ||
        !table_grow((void **)&t->label, sizeof *t->label, t->rows_capacity, capacity) ||
        !table_grow((void **)&t->target, sizeof *t->target, t->rows_capacity, capacity) ||
        !table_grow((void **)&t->weight, sizeof *t->weight, t->rows_capacity, capacity) ||
        !table_grow((void **)&t->ts, sizeof *t->ts, t->rows_capacity, capacity))
        return svi_fail_memory(err, "the rows of a file");
    if (t->n == 0)
        t->start[0] = 0;
    t->rows_capacity = capacity;
    return SVS_OK;
}

static svs_code table_reserve_entries(struct table_rows *t, int64_t count, svs_error *err) {
    int64_t capacity = t->entry_capacity ? t->entry_capacity : FIRST_ENTRIES;
    while (capacity < t->start[t->n] + count)
        capacity *= 2;
    if (capacity == t->entry_capacity)
        return SVS_OK;
    if (!table_grow((void **)&t->column, sizeof *t->column, t->entry_capacity, capacity) ||
        !table_grow((void **)&t->value, sizeof *t->value, t->entry_capacity, capacity))
        return svi_fail_memory(err, "the values of a file");
    t->entry_capacity = capacity;
    return SVS_OK;
}

static int64_t table_stride(const struct table_rows *t) {
    return (t->d + 7) / 8 * 8;
}

static double table_bytes(const struct table_rows *t) {
    return (double)ROW_BYTES * (double)t->n + (t->dense
                                                   ? (double)t->n * (double)table_stride(t) * sizeof *t->dense
                                                   : (double)ENTRY_BYTES * (double)t->start[t->n]);
}

svs_code svi_table_fits(struct svi_row_memory limit, double bytes, svs_error *err) {
    if (limit.most == 0 || bytes <= limit.most)
        return SVS_OK;
    return svi_fail(err, SVS_LIMIT,
                    "the rows take more than %.0f MiB of memory%s%s: take fewer of them, or give a larger "
                    "--memory",
                    limit.most / (1 << 20), limit.of ? ", three quarters of what " : "",
                    limit.of ? limit.of : "");
}

/* ---- labels */

static int table_find_class(struct table_rows *t, svs_value y) {
    if (t->last < t->class_count && svs_value_equal(t->found[t->last].value, y))
        return t->last;
    for (int k = 0; k < t->class_count; k++)
        if (svs_value_equal(t->found[k].value, y))
            return t->last = k;
    return -1;
}

static svs_code table_add_class(struct table_rows *t, svs_value y, int *index, svs_error *err) {
    *index = t->class_count;
    if (t->class_count == t->class_capacity) {
        int capacity = t->class_capacity ? 2 * t->class_capacity : FIRST_CLASSES;
        struct class_label *before = t->found;
        if (!table_grow((void **)&t->found, sizeof *t->found, t->class_capacity, capacity))
            return svi_fail_memory(err, "the classes of a file");
        for (int k = 0; before && k < t->class_count; k++)
            if (t->found[k].value.kind == SVS_STR)
                t->found[k].value.as.s = t->found[k].text;
        t->class_capacity = capacity;
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

static svs_code table_take_label(struct table_rows *t, struct svi_table *table, svs_value y, svs_error *err) {
    int *label = &t->label[t->n];
    t->target[t->n] = NAN;
    *label = -1;
    if (y.kind == SVS_NONE)
        return t->o->unlabelled
                   ? SVS_OK
                   : svi_fail(err, SVS_BAD_LABEL, "the row has no label: name its column with --label");
    if (t->o->task != SVS_CLASSIFY && y.kind == SVS_STR)
        return svi_fail(err, SVS_BAD_LABEL, "the target is not a number");
    if (t->o->task != SVS_CLASSIFY) {
        t->target[t->n] = y.kind == SVS_INT ? (double)y.as.i : y.as.r;
        return fabs(t->target[t->n]) <= SVI_VALUE_MAX
                   ? SVS_OK
                   : svi_fail(err, SVS_BAD_LABEL,
                              "the target is %g; a regression needs finite numbers of at most 1e100",
                              t->target[t->n]);
    }
    if (y.kind == SVS_REAL)
        return svi_fail(
            err, SVS_BAD_LABEL,
            "the label %g is not a whole number: classes are integers or words (or use --task regress)",
            y.as.r);
    *label = table_find_class(t, y);
    if (*label < 0 && t->o->known_count == 0)
        return table_add_class(t, y, label, err);
    table->strange += *label < 0;
    return SVS_OK;
}

/* ---- missing values */

static svs_code table_refuse_missing(const struct table_rows *t, int feature, const char *why,
                                     svs_error *err) {
    char shown[80];
    const char *name = svs_features_name(t->schema->shape.names, feature);
    if (name)
        return svi_fail(err, SVS_MISSING_VALUE, "the value of %s is missing%s",
                        svi_escape(shown, sizeof shown, name, strlen(name)), why);
    return svi_fail(err, SVS_MISSING_VALUE, "the value of feature %d is missing%s", feature, why);
}

/* Do missing values wait for the means of the file, or stay as they are? */
static bool table_takes_means(const struct table_rows *t) {
    return t->o->keep_missing || !(t->o->model || t->o->no_means);
}

/* What takes the place of a missing value now; NAN: nothing does yet. */
static svs_code table_replace(struct table_rows *t, enum svi_missing policy, int feature, double *x,
                              svs_error *err) {
    switch (policy) {
    case SVI_MISSING_ZERO:
        *x = 0;
        return SVS_OK;
    case SVI_MISSING_CARRY:
        if (t->carried && feature < t->known)
            *x = t->carried[feature];
        return isnan(*x) ? table_refuse_missing(t, feature, " and " SVI_NOTHING_TO_CARRY, err) : SVS_OK;
    case SVI_MISSING_MEAN:
        if (table_takes_means(t))
            return SVS_OK;
        *x = t->o->means ? t->o->means[feature] : NAN;
        return isnan(*x)
                   ? table_refuse_missing(t, feature,
                                          ", and the model has no mean to put there: fill it in, or say what "
                                          "to do (the setting missing)",
                                          err)
                   : SVS_OK;
    default:
        return table_refuse_missing(
            t, feature, ": fill it in, leave the row out, or say what to do (the setting missing)", err);
    }
}

/* What later rows need to know of this one. */
static svs_code table_remember(struct table_rows *t, const struct svi_message *m, enum svi_missing policy,
                               svs_error *err) {
    const size_t capacity = (size_t)t->schema->shape.max_features;
    if (policy == SVI_MISSING_CARRY && !t->carried &&
        !(t->carried = svi_alloc_array(capacity, sizeof *t->carried)))
        return svi_fail_memory(err, "the row before");
    if (policy == SVI_MISSING_CARRY && !m->column) /* LIBSVM text lacks nothing that would be asked for */
        memcpy(t->carried, m->x, (size_t)m->d * sizeof *m->x);
    t->known = t->known > m->d ? t->known : m->d;
    t->by_mean = t->by_mean || policy == SVI_MISSING_MEAN;
    return SVS_OK;
}

/* Is a feature that a row lacks missing there, once it comes? Those of categories and of the calendar are
 * not. */
static bool table_is_number(const struct table_rows *t, int feature) {
    const struct svi_schema *s = t->schema;
    return !s->columns || (!s->one_hot[feature] && s->owner[feature] >= 0);
}

/* Means of the values given, summed with what rounding leaves (Neumaier). */
static svs_code table_measure(struct table_rows *t, int64_t *lacking, svs_error *err) {
    double *rest = svi_alloc_array((size_t)t->d + 1, sizeof *rest);
    if (!rest)
        return svi_fail_memory(err, "the means of a file");
    for (int j = 0; j < t->d; j++)
        lacking[j] = t->lazy && table_is_number(t, j) ? t->n : 0;
    for (int64_t k = 0; k < t->start[t->n]; k++) {
        const int j = t->column[k];
        const double v = t->value[k], sum = t->means[j] + v;
        const bool waits = t->lazy && table_is_number(t, j);
        lacking[j] += isnan(v) && !waits;
        if (isnan(v))
            continue;
        lacking[j] -= waits;
        rest[j] += fabs(t->means[j]) >= fabs(v) ? (t->means[j] - sum) + v : (v - sum) + t->means[j];
        t->means[j] = sum;
    }
    for (int j = 0; j < t->d; j++) {
        const int64_t given = t->n - lacking[j];
        t->means[j] = given > 0 ? (t->means[j] + rest[j]) / (double)given : 0;
    }
    svi_free(rest);
    return SVS_OK;
}

/* What rows of names lack stands in them from now on, and given zeros do not. */
static svs_code table_add_absent(struct table_rows *t, svs_error *err) {
    int32_t *column = t->column;
    double *value = t->value;
    const int64_t stored = t->start[t->n];
    int64_t given = 0, numbers = 0, at = 0;
    for (int j = 0; j < t->d; j++)
        numbers += table_is_number(t, j);
    for (int64_t k = 0; k < stored; k++)
        given += !table_is_number(t, column[k]);
    const double more = (double)(given + t->n * numbers) * ENTRY_BYTES;
    if (svi_table_fits(t->o->memory, table_bytes(t) + more, err) != SVS_OK)
        return err->code;
    t->column = NULL;
    t->value = NULL;
    t->entry_capacity = t->start[t->n] = 0;
    svs_code code = table_reserve_entries(t, given + t->n * numbers, err);
    t->start[t->n] = stored;
    for (int64_t i = 0, k = 0; i < t->n && code == SVS_OK; i++) {
        t->start[i] = at;
        for (int j = 0; j < t->d; j++) {
            const bool named = k < t->start[i + 1] && column[k] == j;
            const double x = named ? value[k++] : table_is_number(t, j) ? NAN : 0;
            t->column[at] = j;
            t->value[at] = x;
            at += x != 0;
        }
    }
    t->start[t->n] = code == SVS_OK ? at : 0;
    svi_free(column);
    svi_free(value);
    return code;
}

/* Do rows of names name few of many columns, and nobody says what is done with the others? Then those are 0,
 * as in text in which words are counted: the mean of those that a row has would say that it has them all. */
static bool table_is_wide(const struct table_rows *t) {
    return t->lazy && !t->o->keep_missing && t->schema->o.missing == SVI_MISSING_AUTO && t->d >= WIDE &&
           t->start[t->n] <= t->n * t->d / SPARSE_ONE_IN;
}

static void table_take_zeros(struct table_rows *t) {
    int64_t at = 0;
    for (int64_t i = 0, k = 0; i < t->n; i++) {
        t->start[i] = at;
        for (; k < t->start[i + 1]; k++) {
            t->column[at] = t->column[k];
            t->value[at] = t->value[k];
            at += t->value[k] != 0 && !isnan(t->value[k]);
        }
    }
    t->start[t->n] = at;
    t->schema->o.missing = SVI_MISSING_ZERO;
    t->zeros = true;
}

/* Puts means where values are missing, but where they are to stay so. What was missing in a column that
 * turned out to be a category is none of its values. */
static svs_code table_fill_means(struct table_rows *t, struct svi_table *table, svs_error *err) {
    if (!t->by_mean || t->o->model || !table_takes_means(t))
        return SVS_OK;
    if (table_is_wide(t))
        return table_take_zeros(t), SVS_OK;
    int64_t *lacking = svi_alloc_array((size_t)t->d + 1, sizeof *lacking);
    t->means = svi_alloc_array((size_t)t->d + 1, sizeof *t->means);
    svs_code code =
        lacking && t->means ? table_measure(t, lacking, err) : svi_fail_memory(err, "the means of a file");
    svi_free(lacking);
    if (code == SVS_OK && t->lazy)
        code = table_add_absent(t, err);
    for (int64_t k = 0; code == SVS_OK && k < t->start[t->n]; k++) {
        const int j = t->column[k];
        if (!isnan(t->value[k]))
            continue;
        table->filled += table_is_number(t, j);
        if (!table_is_number(t, j))
            t->value[k] = 0;
        else if (!t->o->keep_missing)
            t->value[k] = t->means[j];
    }
    return code;
}

/* ---- rows */

/* What is missing in a listed row, of names that must be there. */
static svs_code table_check_columns(struct table_rows *t, const struct svi_message *m, svs_error *err) {
    const struct svi_shape *s = &t->schema->shape;
    char list[SVI_LIST_PAIR] = "";
    bool capacity = true;
    for (int j = 0; j < s->names_kept; j++) {
        const char *name = svs_features_name(s->names, j);
        int i = 0;
        while (i < m->cell_count && !(m->cells[i].name_length == strlen(name) &&
                                      memcmp(m->cells[i].name, name, m->cells[i].name_length) == 0))
            i++;
        for (int k = 0; i == m->cell_count && capacity && k < m->cell_count; k++)
            capacity = svi_list_add(list, sizeof list, m->cells[k].name, m->cells[k].name_length);
        if (i == m->cell_count)
            return svi_fail(err, SVS_SETTING, "there is no feature column \"%.60s\"; the columns are %s",
                            name, list);
    }
    return SVS_OK;
}

/* Does the row name what it has, so that the names which it lacks are missing? Columns come with later rows,
 * so what is done with them waits for the last one. */
static void table_await_names(struct table_rows *t, const struct svi_message *m) {
    const bool names = m->cells && !m->listed && m->absent != SVI_MISSING_AUTO;
    const enum svi_missing policy = svi_schema_policy(t->schema, m);
    t->schema->named_only = names && policy == SVI_MISSING_MEAN && table_takes_means(t);
    t->lazy = t->lazy || t->schema->named_only;
    t->zeros = t->zeros || (names && policy == SVI_MISSING_ZERO && m->absent == SVI_MISSING_MEAN);
}

/* The row as a vector in which NAN stands for what is missing. */
static svs_code table_make_row(struct table_rows *t, struct svi_message *m, svs_error *err) {
    struct svi_schema *s = t->schema;
    svs_code code = SVS_OK;
    if (m->op != SVI_LEARN || !m->has_x)
        return svi_fail(err, SVS_MISSING_X, "the row has no features");
    if (m->cells && m->listed && s->shape.fixed_names && !t->checked)
        code = table_check_columns(t, m, err);
    t->checked = true;
    table_await_names(t, m);
    if (code == SVS_OK && m->cells)
        code = svi_schema_row(s, m, err);
    if (code == SVS_OK && isnan(m->ts) && (s->calendar_day || s->calendar_week))
        return svi_fail(err, SVS_WRONG_TYPE,
                        "the row has no time, and the calendar needs one: name its column with --ts");
    if (code == SVS_OK)
        code = svi_schema_calendar(s, m, m->ts, err);
    return code == SVS_OK ? svi_shape_fits(&s->shape, m, err) : code;
}

/* Missing values of one row. */
static svs_code table_fill_row(struct table_rows *t, struct svi_table *table, struct svi_message *m,
                               enum svi_missing policy, svs_error *err) {
    const bool later = policy == SVI_MISSING_MEAN && table_takes_means(t); /* counted when they are filled */
    for (int j = 0; m->missing > 0 && !later && j < m->d; j++) {
        if (!isnan(m->x[j]))
            continue;
        if (table_replace(t, policy, j, &m->x[j], err) != SVS_OK)
            return err->code;
        table->filled++;
    }
    return SVS_OK;
}

static int table_compare_features(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The features that may be other than 0, where they are few of many, ascending; else NULL. */
static const int32_t *table_set_features(struct table_rows *t, const struct svi_message *m, int *count) {
    int32_t *set = m->cells && !m->listed ? svi_schema_set(t->schema, count) : NULL;
    if (!set || (*count > m->d / SPARSE_ONE_IN && !t->lazy))
        return NULL;
    qsort(set, (size_t)*count, sizeof *set, table_compare_features);
    return set;
}

/* The values of a row that are not 0, in their order, behind those that are there. */
static int64_t table_put_values(struct table_rows *t, const struct svi_message *m, const int32_t *set,
                                int count) {
    int64_t at = t->start[t->n];
    for (int k = 0; m->column && k < m->count; k++) {
        t->column[at] = m->column[k];
        t->value[at] = m->value[k];
        at += m->value[k] != 0;
    }
    for (int k = 0; set && k < count; k++) {
        t->column[at] = set[k];
        t->value[at] = m->x[set[k]];
        at += t->lazy || t->value[at] != 0;
    }
    for (int j = 0; !m->column && !set && j < m->d; j++)
        if (m->x[j] != 0) {
            t->column[at] = j;
            t->value[at++] = m->x[j];
        }
    return at;
}

static svs_code table_store_row(struct table_rows *t, struct svi_table *table, const struct svi_message *m,
                                svs_error *err) {
    int count = 0;
    const int32_t *set = table_set_features(t, m, &count);
    count = m->column ? m->count : set ? count : 0;
    for (int j = 0; !m->column && !set && j < m->d; j++)
        count += m->x[j] != 0;
    const double more = ROW_BYTES + (double)count * ENTRY_BYTES;
    if (svi_table_fits(t->o->memory, table_bytes(t) + more, err) != SVS_OK ||
        table_reserve_row(t, err) != SVS_OK || table_take_label(t, table, m->y, err) != SVS_OK ||
        table_reserve_entries(t, count, err) != SVS_OK)
        return err->code;
    t->start[t->n + 1] = table_put_values(t, m, set, count);
    t->d = m->d > t->d ? m->d : t->d;
    t->weight[t->n] = m->weight;
    t->weighted = t->weighted || m->weight != 1;
    t->ts[t->n] = m->ts;
    t->timed = t->timed || !isnan(m->ts);
    t->n++;
    t->taken++;
    return SVS_OK;
}

static svs_code table_take_row(struct table_rows *t, struct svi_table *table, struct svi_message *m,
                               svs_error *err) {
    svs_code code = table_make_row(t, m, err);
    const enum svi_missing policy = svi_schema_policy(t->schema, m);
    if (code == SVS_OK && m->missing > 0 && policy == SVI_MISSING_DROP) {
        svi_schema_restore(t->schema);
        table->dropped++;
        return SVS_OK;
    }
    if (code == SVS_OK)
        code = table_fill_row(t, table, m, policy, err);
    if (code == SVS_OK)
        code = table_remember(t, m, policy, err);
    if (code == SVS_OK)
        code = table_store_row(t, table, m, err);
    if (code != SVS_OK)
        return code;
    svi_schema_commit(t->schema, m);
    t->schema->held =
        (struct svi_held){.window = t->taken}; /* all rows are held: none is ever the oldest to go */
    svi_schema_used(t->schema);
    return SVS_OK;
}

/* ---- columns by the names of a model */

/* Are the columns of the file moved to those of the model that have their names? */
static bool table_moves(const struct table_rows *t) {
    return t->o->names && !t->o->exact && !t->o->model && svs_features_count(t->schema->shape.names) > 0;
}

static int table_compare_names(const void *a, const void *b, void *names) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    const int order = strcmp(((const char *const *)names)[x], ((const char *const *)names)[y]);
    return order ? order : (x > y) - (x < y);
}

static svs_code table_sort_names(struct table_rows *t, svs_error *err) {
    t->sorted = svi_alloc_plain_array((size_t)t->o->name_count + 1, sizeof *t->sorted);
    t->map = svi_alloc_plain_array((size_t)t->schema->shape.max_features, sizeof *t->map);
    if (!t->sorted || !t->map)
        return svi_fail_memory(err, "the columns of a file");
    for (int k = 0; k < t->o->name_count; k++)
        t->sorted[k] = k;
    qsort_r(t->sorted, (size_t)t->o->name_count, sizeof *t->sorted, table_compare_names, (void *)t->o->names);
    return SVS_OK;
}

/* The place of a name among those of the model, -1: not among them. */
static int32_t table_find_name(const struct table_rows *t, const char *name) {
    int low = 0, high = t->o->name_count;
    while (low < high) { /* the names before `low` are not after it */
        const int middle = low + (high - low) / 2;
        if (strcmp(t->o->names[t->sorted[middle]], name) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && strcmp(t->o->names[t->sorted[low - 1]], name) == 0 ? t->sorted[low - 1] : -1;
}

/* Where the columns go that have come so far. A name that was given up for another changes all of them. */
static svs_code table_map_columns(struct table_rows *t, svs_error *err) {
    const svs_features *names = t->schema->shape.names;
    const uint64_t changes = svi_features_changes(names);
    const int have = svs_features_count(names);
    if (!t->sorted && table_sort_names(t, err) != SVS_OK)
        return err->code;
    if (changes - t->changes != (uint64_t)(have - t->mapped))
        t->mapped = 0;
    for (; t->mapped < have; t->mapped++)
        t->map[t->mapped] = table_find_name(t, svs_features_name(names, t->mapped));
    t->changes = changes;
    return SVS_OK;
}

static int table_compare_entries(const void *a, const void *b) {
    const struct table_entry *x = a, *y = b;
    return (x->column > y->column) - (x->column < y->column);
}

static svs_code table_reserve_move(struct table_rows *t, int64_t count, svs_error *err) {
    int64_t capacity = t->moved_capacity ? t->moved_capacity : FIRST_MOVED;
    while (capacity < count)
        capacity *= 2;
    if (capacity > t->moved_capacity &&
        !table_grow((void **)&t->moved, sizeof *t->moved, t->moved_capacity, capacity))
        return svi_fail_memory(err, "the columns of a file");
    t->moved_capacity = capacity;
    return SVS_OK;
}

/* Moves the columns of the rows that are held, dropping those that the model does not have. */
static svs_code table_move_columns(struct table_rows *t, svs_error *err) {
    if (!table_moves(t))
        return SVS_OK;
    if (table_map_columns(t, err) != SVS_OK)
        return err->code;
    int64_t at = 0;
    for (int64_t i = 0; i < t->n; i++) {
        int64_t from = t->start[i], to = t->start[i + 1];
        int count = 0;
        if (table_reserve_move(t, to - from, err) != SVS_OK)
            return err->code;
        for (int64_t k = from; k < to; k++)
            if (t->column[k] < t->mapped && t->map[t->column[k]] >= 0)
                t->moved[count++] = (struct table_entry){t->map[t->column[k]], t->value[k]};
        if (count > 0)
            qsort(t->moved, (size_t)count, sizeof *t->moved, table_compare_entries);
        t->start[i] = at;
        for (int k = 0; k < count; k++, at++) {
            t->column[at] = t->moved[k].column;
            t->value[at] = t->moved[k].value;
        }
    }
    t->start[t->n] = at;
    return SVS_OK;
}

/* ---- rows that are not kept */

/* Are rows given away as they are read? Not where the means of the whole file are wanted. */
static bool table_gives_rows(const struct table_rows *t) {
    return t->each && !table_takes_means(t);
}

static int table_width(const struct table_rows *t) {
    return table_moves(t) ? t->o->name_count : t->d;
}

static svs_rows table_rows_of(const struct table_rows *t) {
    return (svs_rows){.n = t->n,
                      .d = t->d,
                      .dense = t->dense,
                      .stride = t->dense ? table_stride(t) : 1,
                      .padded = t->dense != NULL,
                      .start = t->start,
                      .column = t->column,
                      .value = t->value};
}

/* The row that is held, unless it was dropped. */
static svs_code table_give_row(struct table_rows *t, svs_error *err) {
    if (t->n == 0)
        return SVS_OK;
    if (table_move_columns(t, err) != SVS_OK)
        return err->code;
    svs_examples row = {.rows = table_rows_of(t), .task = t->o->task, .label = t->label, .target = t->target};
    row.rows.d = table_width(t);
    t->each(t->user, &row, 0);
    t->n = 0;
    return SVS_OK;
}

static svs_code table_read_rows(struct table_rows *t, struct svi_table *table, svi_reader *r,
                                svs_error *err) {
    const char *path = t->path;
    struct svi_message m;
    svs_error why = {0};
    const char *bytes;
    size_t length;
    for (;;) {
        enum svi_read what = svi_reader_row(r, &m, &why);
        svs_code code = what == SVI_READ_ROW ? table_take_row(t, table, &m, &why) : why.code;
        if (what == SVI_READ_ROW && code == SVS_OK && table_gives_rows(t))
            code = table_give_row(t, &why);
        if (what == SVI_READ_END)
            return t->taken > 0 ? SVS_OK : svi_fail(err, SVS_EMPTY, "%.150s has no rows", path);
        if (what == SVI_READ_FAIL || what == SVI_READ_BAD) /* the reader names the line itself */
            return svi_fail(err, why.code, "%.60s: %.190s", path, why.text);
        if (code != SVS_OK)
            return svi_fail(err, code, "%.60s, line %lld: %.175s", path,
                            (long long)svi_reader_line(r, &bytes, &length), why.text);
        int64_t size, position = svi_reader_position(r, &size);
        if (t->o->progress && t->taken % REPORT_ROWS == 0)
            t->o->progress(t->o->user, t->taken, position, size);
    }
}

/* ---- what is done when all is read */

static int table_compare_classes(const void *a, const void *b) {
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

static svs_code table_sort_classes(struct table_rows *t, svs_error *err) {
    struct class_label **sorted = svi_alloc_array((size_t)t->class_count + 1, sizeof(struct class_label *));
    t->classes = svi_alloc_array((size_t)t->class_count + 1, sizeof *t->classes);
    if (!sorted || !t->classes) {
        svi_free(sorted);
        return svi_fail_memory(err, "the classes of a file");
    }
    for (int k = 0; k < t->class_count; k++)
        sorted[k] = &t->found[k];
    if (t->o->known_count == 0)
        qsort(sorted, (size_t)t->class_count, sizeof(struct class_label *), table_compare_classes);
    for (int k = 0; k < t->class_count; k++) {
        sorted[k]->place = k;
        t->classes[k] = sorted[k]->value;
    }
    for (int64_t i = 0; i < t->n; i++)
        t->label[i] = t->label[i] < 0 ? -1 : t->found[t->label[i]].place;
    svi_free(sorted);
    return SVS_OK;
}

static svs_code table_make_dense(struct table_rows *t, svs_error *err) {
    const int64_t stride = table_stride(t);
    const double more = (double)t->n * (double)stride * sizeof *t->dense;
    if (svi_table_fits(t->o->memory, table_bytes(t) + more, err) != SVS_OK)
        return err->code;
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

static svs_code table_finish(struct table_rows *t, struct svi_table *table, svs_error *err) {
    if (table_fill_means(t, table, err) != SVS_OK || table_sort_classes(t, err) != SVS_OK ||
        table_move_columns(t, err) != SVS_OK)
        return err->code;
    const int wanted = t->o->exact && !t->schema->shape.fixed_names ? t->o->features : 0;
    if (wanted > 0 && (t->d > wanted || (t->d < wanted && t->schema->shape.kind == SVI_DENSE)))
        return svi_fail(err, SVS_WRONG_DIMENSION, "%.100s has %d features, not %d", t->path, t->d, wanted);
    const int have = table_moves(t) ? 0 : svs_features_count(t->schema->shape.names);
    t->d = table_width(t);
    if (have > 0 && have >= t->d) {
        t->names = svi_alloc_array((size_t)t->d, sizeof *t->names);
        if (!t->names)
            return svi_fail_memory(err, "the names of the columns");
        for (int j = 0; j < t->d; j++)
            t->names[j] = svs_features_name(t->schema->shape.names, j);
    }
    t->d = t->d > t->o->features ? t->d : t->o->features;
    t->d = t->d > 0 ? t->d : 1;
    const int64_t stored = t->start[t->n];
    if (t->n > 0 && (double)stored >= SVI_TABLE_DENSE * (double)t->n * t->d &&
        table_make_dense(t, err) != SVS_OK)
        return err->code;
    table->examples = (svs_examples){.rows = table_rows_of(t),
                                     .task = t->o->task,
                                     .label = t->label,
                                     .target = t->target,
                                     .weight = t->weighted ? t->weight : NULL,
                                     .class_count = t->class_count,
                                     .classes = t->classes,
                                     .features = t->names};
    table->ts = t->timed ? t->ts : NULL;
    table->schema = t->schema;
    table->means = t->means;
    table->zeros = t->zeros;
    table->bytes = table_bytes(t);
    for (int64_t i = 0; t->each && i < t->n; i++)
        t->each(t->user, &table->examples, i);
    return SVS_OK;
}

/* The columns are those of `names`, in their order. */
static svs_code table_fix_names(struct table_rows *t, svs_error *err) {
    for (int k = 0; k < t->o->name_count; k++) {
        const int column =
            svs_features_add(t->schema->shape.names, t->o->names[k], strlen(t->o->names[k]), err);
        if (column < 0)
            return err->code;
        if (column < k)
            return svi_fail(err, SVS_SETTING, "the feature \"%.80s\" is a duplicate", t->o->names[k]);
    }
    t->schema->shape.fixed_names = true;
    t->schema->shape.d = t->schema->shape.names_kept = t->o->name_count;
    return SVS_OK;
}

static svs_code table_begin(struct table_rows *t, svs_error *err) {
    const struct svi_table_options *o = t->o;
    struct svi_schema_options schema = {.categories_max = 100, .missing = SVI_MISSING_AUTO};
    t->schema = o->model ? o->model : &t->own;
    if (o->model)
        return SVS_OK;
    if (o->schema)
        schema = *o->schema;
    schema.max_features = o->max_features;
    schema.features = o->fixed;
    svs_code code = svi_schema_init(&t->own, &schema, err);
    return code == SVS_OK && o->exact && o->names ? table_fix_names(t, err) : code;
}

/* What a column holds is known of a model: words where the name has features of values. */
static enum svi_cell_kind table_known(const void *rows, const char *name, size_t length) {
    const struct table_rows *t = rows;
    enum svi_cell_kind kind = svi_cells_known(t->schema, name, length);
    for (int k = 0; kind == SVI_CELL_MISSING && t->o->names && k < t->o->name_count; k++)
        if (strncmp(t->o->names[k], name, length) == 0)
            kind = t->o->names[k][length] == '\0'  ? SVI_CELL_NUMBER
                   : t->o->names[k][length] == '=' ? SVI_CELL_WORD
                                                   : kind;
    return kind;
}

svs_code svi_table_read(struct svi_table *table, const char *path, const struct svi_table_options *o,
                        svs_error *err) {
    return svi_table_each(table, path, o, NULL, NULL, err);
}

svs_code svi_table_each(struct svi_table *table, const char *path, const struct svi_table_options *o,
                        svi_table_row *row, void *user, svs_error *err) {
    svs_error mine = {0};
    struct table_rows *t = svi_alloc(sizeof *t);
    *table = (struct svi_table){.owned = t};
    if (!t)
        return svi_fail_memory(err, "a table");
    t->o = o;
    t->path = path;
    t->each = row;
    t->user = user;
    svs_code code = table_begin(t, &mine);
    if (code == SVS_OK)
        code = svi_schema_follow(t->schema, &mine);
    for (int k = 0, index; k < o->known_count && code == SVS_OK; k++)
        code = table_add_class(t, o->known[k], &index, &mine);
    struct svi_reader_options reader = o->reader;
    reader.known = table_known;
    reader.stream = t;
    reader.sparse = true;
    svi_reader *r = code == SVS_OK ? svi_reader_open(path, &reader, &t->schema->shape, &mine) : NULL;
    if (r && table_reserve_row(t, &mine) == SVS_OK && table_reserve_entries(t, 1, &mine) == SVS_OK)
        table_read_rows(t, table, r, &mine);
    if (mine.code == SVS_OK)
        svi_cells_note_unused(t->schema, r, &mine);
    svi_reader_close(&r);
    if (mine.code == SVS_OK)
        table_finish(t, table, &mine);
    if (err && mine.code != SVS_OK)
        *err = mine;
    return mine.code;
}

void svi_table_clear(struct svi_table *table) {
    struct table_rows *t = table->owned;
    if (!t)
        return;
    void *const all[] = {t->start,   t->column, t->value,  t->dense,   t->label, t->target,
                         t->weight,  t->ts,     t->found,  t->classes, t->names, t->map,
                         t->carried, t->means,  t->sorted, t->moved};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    svi_schema_clear(&t->own);
    svi_free(t);
    *table = (struct svi_table){0};
}
