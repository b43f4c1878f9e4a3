/* A table grows row by row in CSR form while the file is read: start, column, value, and label or target,
 * weight and time of each row. What needs the whole file follows in this order (table_finish): missing values
 * get their means, classes are sorted, columns move to the places of a model's names, the width is checked,
 * and dense enough rows become padded dense rows.
 *
 * `exact` (or `fixed`) names enter the schema before the first row, and a CSV without them is refused; other
 * names are matched afterwards, and features that the file lacks are 0.
 *
 * Invariant: start[n] is the number of stored entries; columns ascend within a row; NAN is a missing value
 * that waits for its mean. What rows of names lack, in columns that appear later too, is added at the end
 * (`lazy`).
 *
 * Order: memory, labels, missing values, rows, columns by a model's names, rows that are not kept, the end,
 * the public functions. */
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
/* A row that sets at most one feature in this many is stored from the list of those that it set. */
#define SPARSE_ONE_IN 16
#define WIDE          1000 /* columns from which on rows may name few of many */

#define ROW_BYTES                                                                                            \
    (sizeof(int64_t) + sizeof(int32_t) + 3 * sizeof(double)) /* start, label, target, weight, ts */
#define ENTRY_BYTES (sizeof(int32_t) + sizeof(double))       /* column, value */

struct class_label {
    svs_value value;
    char text[SVS_NAME_MAX];
    int place; /* index after sorting */
};

struct table_rows {
    const struct svi_table_options *o;
    const char *path;
    svi_table_row *each;                      /* receives each row; NULL: rows are kept */
    void *user;                               /* argument of `each` */
    struct svi_schema own, *schema;           /* own: the file's; schema: the one in use, own or a model's */
    bool checked;                             /* the columns of a CSV were compared with the fixed names */
    int64_t n, rows_capacity, entry_capacity; /* rows in memory, and capacities */
    int64_t taken;                            /* rows accepted, including those handed to `each` */
    int64_t *start;                           /* n + 1: row i has the entries start[i] to start[i + 1] - 1 */
    int32_t *column;                          /* by entry */
    double *value, *dense;        /* by entry; n rows of table_stride, in place of entries; NULL = sparse */
    int32_t *label;               /* by row: index into found, after the end into classes; -1 = none */
    double *target, *weight, *ts; /* by row */
    bool weighted, timed;         /* a row has a weight other than 1, a time */
    int d;                        /* columns of the widest row so far */
    double *carried;              /* by feature: the value of the row before; NULL until one is missing */
    bool by_mean;                 /* a row asked for means */
    int known;                    /* features seen so far */
    bool lazy;     /* rows of names: zeros are stored, and a feature that is not stored is missing */
    bool zeros;    /* what such rows lack is 0 instead: reported to the caller */
    double *means; /* by feature; NULL until the end */
    struct class_label *found;             /* in the order of their first rows */
    int class_count, class_capacity, last; /* last: the class of the row before */
    svs_value *classes;                    /* sorted; views of found */
    const char **names;                    /* by column; views of the schema */
    int32_t *map;              /* column of the file -> column of the table, -1 = dropped; NULL = as it is */
    int mapped;                /* columns of the file that `map` covers */
    uint64_t changes;          /* svi_feature_names_changes when `map` was made */
    int32_t *sorted;           /* indices of o->names, sorted by name */
    struct table_entry *moved; /* scratch: one row while its columns move */
    int64_t moved_capacity;
};

struct table_entry {
    int32_t column;
    double value;
};

/* ---- memory */

/* Plain blocks: pages after the content cost nothing until they are written. */
static bool table_grow(void **block, size_t element, int64_t old, int64_t capacity) {
    void *more = svi_realloc_plain(*block, (size_t)old * element, (size_t)capacity * element);
    if (more)
        *block = more;
    return more != NULL;
}

/* Grows all arrays by row together, by doubling. */
static svs_code table_reserve_row(struct table_rows *t, svs_error *err) {
    /* One more than the rows: start has n + 1 entries. */
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

/* Grows both arrays by entry for `count` more entries. */
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

/* Dense rows are padded to 8 doubles, one cache line. */
static int64_t table_stride(const struct table_rows *t) {
    return (t->d + 7) / 8 * 8;
}

/* Bytes of the rows by their content, not by capacity: untouched pages take no memory. */
static double table_bytes(const struct table_rows *t) {
    return (double)ROW_BYTES * (double)t->n + (t->dense
                                                   ? (double)t->n * (double)table_stride(t) * sizeof *t->dense
                                                   : (double)ENTRY_BYTES * (double)t->start[t->n]);
}

svs_code svi_table_fits(struct svi_row_memory limit, double bytes, svs_error *err) {
    if (limit.most == 0 || bytes <= limit.most)
        return SVS_OK;
    return svi_fail(err, SVS_LIMIT,
                    "the rows take more than %.0f MiB of memory%s%s: use fewer rows, or a larger --memory",
                    limit.most / (1 << 20), limit.of ? ", three quarters of what " : "",
                    limit.of ? limit.of : "");
}

/* ---- labels */

/* The class of a label, first comparing with the previous row's: files are often sorted by class. -1: new. */
static int table_find_class(struct table_rows *t, svs_value y) {
    if (t->last < t->class_count && svs_value_equal(t->found[t->last].value, y))
        return t->last;
    for (int k = 0; k < t->class_count; k++)
        if (svs_value_equal(t->found[k].value, y))
            return t->last = k;
    return -1;
}

/* Adds a class, with a copy of its text: the label is a view of a line. */
static svs_code table_add_class(struct table_rows *t, svs_value y, int *index, svs_error *err) {
    *index = t->class_count;
    if (t->class_count == t->class_capacity) {
        int capacity = t->class_capacity ? 2 * t->class_capacity : FIRST_CLASSES;
        /* Text of a class lies in the class itself, so the views move with the array. */
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

/* Stores the label of the row as a class (`label`) or a number (`target`); the other one marks it as
 * absent. */
static svs_code table_take_label(struct table_rows *t, struct svi_table *table, svs_value y, svs_error *err) {
    int *label = &t->label[t->n];
    t->target[t->n] = NAN;
    *label = -1;
    if (y.kind == SVS_NONE)
        return t->o->unlabelled ? SVS_OK
                                : svi_fail(err, SVS_BAD_LABEL,
                                           "the row has no label: name the column with --label, or leave out "
                                           "rows without a value in "
                                           "it");
    /* Everything but a classification needs a number. */
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
    /* A fraction as a class would make nearly every row a class of its own. */
    if (y.kind == SVS_REAL)
        return svi_fail(
            err, SVS_BAD_LABEL,
            "the label %g is not a whole number: classes are integers or words (or use --task regress)",
            y.as.r);
    *label = table_find_class(t, y);
    if (*label < 0 && t->o->known_count == 0)
        return table_add_class(t, y, label, err);
    /* Classes are fixed by the model: an unknown label is counted and scored, not added. */
    table->strange += *label < 0;
    return SVS_OK;
}

/* ---- missing values */

/* Refuses a missing value by the name of its feature; LIBSVM text has only numbers of features. */
static svs_code table_refuse_missing(const struct table_rows *t, int feature, const char *why,
                                     svs_error *err) {
    char shown[80];
    const char *name = svs_features_name(t->schema->shape.names, feature);
    if (name)
        return svi_fail(err, SVS_MISSING_VALUE, "the value of %s is missing%s",
                        svi_escape(shown, sizeof shown, name, strlen(name)), why);
    return svi_fail(err, SVS_MISSING_VALUE, "the value of feature %d is missing%s", feature, why);
}

/* Under the policy mean: do missing values wait for the means of the file, or stay NAN? */
static bool table_takes_means(const struct table_rows *t) {
    return t->o->keep_missing || !(t->o->model || t->o->no_means);
}

/* Replaces a missing value by the policy; NAN: it waits for the end of the file. */
static svs_code table_replace(struct table_rows *t, enum svi_missing policy, int feature, double *x,
                              svs_error *err) {
    switch (policy) {
    case SVI_MISSING_ZERO:
        *x = 0;
        return SVS_OK;
    case SVI_MISSING_CARRY:
        /* A feature beyond `known` is new in this row, and has nothing to carry. */
        if (t->carried && feature < t->known)
            *x = t->carried[feature];
        return isnan(*x) ? table_refuse_missing(t, feature, " and " SVI_NOTHING_TO_CARRY, err) : SVS_OK;
    case SVI_MISSING_MEAN:
        if (table_takes_means(t))
            return SVS_OK;
        *x = t->o->means ? t->o->means[feature] : NAN;
        return isnan(*x) ? table_refuse_missing(t, feature,
                                                ", and the model has no mean to replace it: fill it in, or "
                                                "choose another setting missing",
                                                err)
                         : SVS_OK;
    default:
        return table_refuse_missing(
            t, feature, ": fill it in, leave the row out, or choose another setting missing", err);
    }
}

/* Remembers what later rows need: the values to carry over, the number of features, whether means are wanted.
 */
static svs_code table_remember(struct table_rows *t, const struct svi_message *m, enum svi_missing policy,
                               svs_error *err) {
    const size_t capacity = (size_t)t->schema->shape.max_features;
    if (policy == SVI_MISSING_CARRY && !t->carried &&
        !(t->carried = svi_alloc_array(capacity, sizeof *t->carried)))
        return svi_fail_memory(err, "the row before");
    if (policy == SVI_MISSING_CARRY && !m->column) /* an absent column of LIBSVM text is 0, never missing */
        memcpy(t->carried, m->x, (size_t)m->d * sizeof *m->x);
    t->known = t->known > m->d ? t->known : m->d;
    t->by_mean = t->by_mean || policy == SVI_MISSING_MEAN;
    return SVS_OK;
}

/* Is a feature missing in a row that lacks it? Those of categories and of the calendar are 0 instead. */
static bool table_is_number(const struct table_rows *t, int feature) {
    const struct svi_schema *s = t->schema;
    return !s->columns || (!s->one_hot[feature] && s->owner[feature] >= 0);
}

/* Computes the mean of the values given in each column, with Neumaier's compensated sum: `rest` collects the
 * rounding errors. lacking[j]: rows without a value of feature j. */
static svs_code table_measure(struct table_rows *t, int64_t *lacking, svs_error *err) {
    double *rest = svi_alloc_array((size_t)t->d + 1, sizeof *rest);
    if (!rest)
        return svi_fail_memory(err, "the means of a file");
    for (int j = 0; j < t->d; j++)
        /* Rows that precede the first one of the column lack it too. */
        lacking[j] = t->lazy && table_is_number(t, j) ? t->n : 0;
    for (int64_t k = 0; k < t->start[t->n]; k++) {
        const int j = t->column[k];
        const double v = t->value[k], sum = t->means[j] + v;
        /* In lazy rows every row lacks the feature at first, and each value given takes one off; else NANs
         * are counted. */
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

/* Rebuilds lazy rows as ordinary ones: NAN is stored for what a row lacks, and zeros are not stored any more.
 */
static svs_code table_add_absent(struct table_rows *t, svs_error *err) {
    int32_t *column = t->column;
    double *value = t->value;
    const int64_t stored = t->start[t->n];
    int64_t given = 0, numbers = 0, at = 0;
    /* The new size is known before anything is allocated: all numbers in every row, and the entries of
     * categories. */
    for (int j = 0; j < t->d; j++)
        numbers += table_is_number(t, j);
    for (int64_t k = 0; k < stored; k++)
        given += !table_is_number(t, column[k]);
    const double more = (double)(given + t->n * numbers) * ENTRY_BYTES;
    if (svi_table_fits(t->o->memory, table_bytes(t) + more, err) != SVS_OK)
        return err->code;
    /* The old arrays are read while new ones are written; start[] is overwritten only up to the row being
     * read. */
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
            /* NAN is not 0, so it is stored. */
            at += x != 0;
        }
    }
    t->start[t->n] = code == SVS_OK ? at : 0;
    svi_free(column);
    svi_free(value);
    return code;
}

/* Do rows of names name few of many columns, while no setting says what the others are? Then those are 0, as
 * in counts of words: the mean of the rows that have a word would claim that every row has it. */
static bool table_is_wide(const struct table_rows *t) {
    return t->lazy && !t->o->keep_missing && t->schema->o.missing == SVI_MISSING_AUTO && t->d >= WIDE &&
           t->start[t->n] <= t->n * t->d / SPARSE_ONE_IN;
}

/* Makes what rows lack 0: drops stored zeros and NANs in place, and sets the policy to zero. */
static void table_take_zeros(struct table_rows *t) {
    int64_t at = 0;
    for (int64_t i = 0, k = 0; i < t->n; i++) {
        t->start[i] = at;
        /* `at` never passes k, so the rows shrink in place. */
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

/* Replaces missing values by means, unless they are to stay NAN. A value that was missing in a column that
 * turned out to be a category is 0: it has no value. */
static svs_code table_fill_means(struct table_rows *t, struct svi_table *table, svs_error *err) {
    if (!t->by_mean || t->o->model || !table_takes_means(t))
        return SVS_OK;
    if (table_is_wide(t))
        return table_take_zeros(t), SVS_OK;
    /* First the means, from what rows name; then lazy rows get their NANs; then all NANs are replaced. */
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

/* Refuses a list of columns that lacks one of the fixed names. */
static svs_code table_check_columns(struct table_rows *t, const struct svi_message *m, svs_error *err) {
    const struct svi_shape *s = &t->schema->shape;
    char list[SVI_LIST_PAIR] = "";
    bool fits = true;
    for (int j = 0; j < s->names_kept; j++) {
        const char *name = svs_features_name(s->names, j);
        int i = 0;
        /* Quadratic in the columns, but once a file. */
        while (i < m->cell_count && !(m->cells[i].name_length == strlen(name) &&
                                      memcmp(m->cells[i].name, name, m->cells[i].name_length) == 0))
            i++;
        for (int k = 0; i == m->cell_count && fits && k < m->cell_count; k++)
            fits = svi_list_add(list, sizeof list, m->cells[k].name, m->cells[k].name_length);
        if (i == m->cell_count)
            return svi_fail(err, SVS_SETTING, "there is no feature column \"%.60s\"; the columns are %s",
                            name, list);
    }
    return SVS_OK;
}

/* Detects rows of names, in which an absent name is missing. Later rows may add columns, so what earlier ones
 * lack is only known at the end. */
static void table_await_names(struct table_rows *t, const struct svi_message *m) {
    /* A listed row has a cell for every column, so it lacks none. */
    const bool names = m->cells && !m->listed && m->absent != SVI_MISSING_AUTO;
    const enum svi_missing policy = svi_schema_policy(t->schema, m);
    t->schema->named_only = names && policy == SVI_MISSING_MEAN && table_takes_means(t);
    t->lazy = t->lazy || t->schema->named_only;
    t->zeros = t->zeros || (names && policy == SVI_MISSING_ZERO && m->absent == SVI_MISSING_MEAN);
}

/* Makes the row a vector in which NAN is a missing value. */
static svs_code table_make_row(struct table_rows *t, struct svi_message *m, svs_error *err) {
    struct svi_schema *s = t->schema;
    svs_code code = SVS_OK;
    if (m->op != SVI_LEARN || !m->has_x)
        return svi_fail(err, SVS_MISSING_X, "the row has no features");
    /* Order: columns, the row, its time, then the fit of the whole against the stream's form. */
    if (m->cells && m->listed && s->shape.fixed_names && !t->checked)
        code = table_check_columns(t, m, err);
    /* Once a file: the list of columns does not change. */
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

/* Replaces the missing values of one row, as far as that can be done now. */
static svs_code table_fill_row(struct table_rows *t, struct svi_table *table, struct svi_message *m,
                               enum svi_missing policy, svs_error *err) {
    /* Values that wait for their mean are filled, and counted, by table_fill_means. */
    const bool later = policy == SVI_MISSING_MEAN && table_takes_means(t);
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

/* The features that may differ from 0, ascending, where they are few of many; NULL: look at all. */
static const int32_t *table_set_features(struct table_rows *t, const struct svi_message *m, int *count) {
    int32_t *set = m->cells && !m->listed ? svi_schema_set(t->schema, count) : NULL;
    /* Sorting a long list costs more than a scan of the row. Lazy rows need the list: it has their zeros. */
    if (!set || (*count > m->d / SPARSE_ONE_IN && !t->lazy))
        return NULL;
    qsort(set, (size_t)*count, sizeof *set, table_compare_features);
    return set;
}

/* Appends the row's entries from one of three sources: sparse columns, set features, or the whole of x. Zeros
 * are skipped by not advancing; returns the new end. */
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

/* Appends the row. Its vector has no missing value left but those that wait for a mean. */
static svs_code table_store_row(struct table_rows *t, struct svi_table *table, const struct svi_message *m,
                                svs_error *err) {
    /* The exact count comes first, because the limit of memory is checked before anything grows. */
    int count = 0;
    const int32_t *set = table_set_features(t, m, &count);
    count = m->column ? m->count : set ? count : 0;
    for (int j = 0; !m->column && !set && j < m->d; j++)
        count += m->x[j] != 0;
    const double more = ROW_BYTES + (double)count * ENTRY_BYTES;
    /* The row counts only at the end (n++), so a failure leaves the table without it. */
    if (svi_table_fits(t->o->memory, table_bytes(t) + more, err) != SVS_OK ||
        table_reserve_row(t, err) != SVS_OK || table_take_label(t, table, m->y, err) != SVS_OK ||
        table_reserve_entries(t, count, err) != SVS_OK)
        return err->code;
    /* Nothing below can fail. */
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
    /* The row is committed last: until then a failure or a drop undoes its columns. */
    const enum svi_missing policy = svi_schema_policy(t->schema, m);
    if (code == SVS_OK && m->missing > 0 && policy == SVI_MISSING_DROP) {
        /* A dropped row adds no columns either. */
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
    /* No row ever leaves a table, so no value may hand over its feature. */
    t->schema->held = (struct svi_held){.window = t->taken};
    svi_schema_used(t->schema);
    return SVS_OK;
}

/* ---- columns by the names of a model */

/* Do the file's columns move to those of the model with the same names? */
static bool table_moves(const struct table_rows *t) {
    return t->o->names && !t->o->exact && !t->o->model && svs_features_count(t->schema->shape.names) > 0;
}

/* Equal names by index, so that the order is total: qsort_r is not stable. */
static int table_compare_names(const void *a, const void *b, void *names) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    const int order = strcmp(((const char *const *)names)[x], ((const char *const *)names)[y]);
    return order ? order : (x > y) - (x < y);
}

/* Sorts the model's names once, for the binary search of every column. */
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

/* The index of a name among those of the model, by binary search; -1: not among them. Of duplicates the last
 * one is found. */
static int32_t table_find_name(const struct table_rows *t, const char *name) {
    int low = 0, high = t->o->name_count;
    while (low < high) { /* invariant: names before `low` are not after the name; names from `high` on are */
        const int middle = low + (high - low) / 2;
        if (strcmp(t->o->names[t->sorted[middle]], name) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && strcmp(t->o->names[t->sorted[low - 1]], name) == 0 ? t->sorted[low - 1] : -1;
}

/* Extends the map to the columns seen so far. Without renames the registry's count grows by one a column; any
 * other growth means that a feature changed hands, and all names are looked up again. */
static svs_code table_map_columns(struct table_rows *t, svs_error *err) {
    const svs_features *names = t->schema->shape.names;
    const uint64_t changes = svi_feature_names_changes(names);
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

/* By column; a row has each column once. */
static int table_compare_entries(const void *a, const void *b) {
    const struct table_entry *x = a, *y = b;
    return (x->column > y->column) - (x->column < y->column);
}

/* Scratch memory for a row of `count` entries. */
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

/* Renumbers the columns of the rows in memory, drops those that the model lacks, and restores the ascending
 * order. In place: a row never grows, so `at` never passes the row being read. */
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
        /* Through scratch memory, since the new order may differ from the old one. */
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

/* Are rows handed over as they are read? Not where they wait for the means of the whole file. */
static bool table_gives_rows(const struct table_rows *t) {
    return t->each && !table_takes_means(t);
}

/* Columns of the rows after they have moved. */
static int table_width(const struct table_rows *t) {
    return table_moves(t) ? t->o->name_count : t->d;
}

/* A view of the rows in their current form. */
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

/* Hands over the row in memory, unless it was dropped, and empties the table for the next one. */
static svs_code table_give_row(struct table_rows *t, svs_error *err) {
    if (t->n == 0)
        return SVS_OK;
    if (table_move_columns(t, err) != SVS_OK)
        return err->code;
    /* One row, whose arrays are those of the table: valid only during the call. */
    svs_examples row = {.rows = table_rows_of(t), .task = t->o->task, .label = t->label, .target = t->target};
    row.rows.d = table_width(t);
    t->each(t->user, &row, 0);
    t->n = 0;
    return SVS_OK;
}

static svs_code table_read_rows(struct table_rows *t, struct svi_table *table, svi_reader *r,
                                svs_error *err) {
    /* Rows until the end of the file or the first error, which is reported with file and line. */
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
        if (what == SVI_READ_FAIL || what == SVI_READ_BAD) /* the reader's text has the line number */
            return svi_fail(err, why.code, "%.60s: %.190s", path, why.text);
        if (code != SVS_OK)
            return svi_fail(err, code, "%.60s, line %lld: %.175s", path,
                            (long long)svi_reader_line(r, &bytes, &length), why.text);
        /* Reports by rows, not by time, so that they are the same in every run. */
        int64_t size, position = svi_reader_position(r, &size);
        if (t->o->progress && t->taken % REPORT_ROWS == 0)
            t->o->progress(t->o->user, t->taken, position, size);
    }
}

/* ---- the end of the file */

/* Integers ascending, then strings by their bytes, a prefix first. */
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

/* Sorts the classes and translates the labels of all rows. */
static svs_code table_sort_classes(struct table_rows *t, svs_error *err) {
    struct class_label **sorted = svi_alloc_array((size_t)t->class_count + 1, sizeof(struct class_label *));
    t->classes = svi_alloc_array((size_t)t->class_count + 1, sizeof *t->classes);
    if (!sorted || !t->classes) {
        svi_free(sorted);
        return svi_fail_memory(err, "the classes of a file");
    }
    for (int k = 0; k < t->class_count; k++)
        sorted[k] = &t->found[k];
    /* Pointers are sorted, not classes: labels hold indices into `found`, which are translated below. */
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

/* Converts CSR to dense rows; what is not stored is 0. */
static svs_code table_make_dense(struct table_rows *t, svs_error *err) {
    const int64_t stride = table_stride(t);
    /* Both forms exist during the conversion, so the limit must hold for their sum. */
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

/* Turns what was read into the table: the steps that need the whole file. */
static svs_code table_finish(struct table_rows *t, struct svi_table *table, svs_error *err) {
    /* The means go by the file's columns, so they come before the columns move. t->d stays the file's width
     * until the check below, and becomes the table's after it. */
    if (table_fill_means(t, table, err) != SVS_OK || table_sort_classes(t, err) != SVS_OK ||
        table_move_columns(t, err) != SVS_OK)
        return err->code;
    /* A stream of arrays must have exactly the model's width; sparse rows may end early. */
    const int wanted = t->o->exact && !t->schema->shape.fixed_names ? t->o->features : 0;
    if (wanted > 0 && (t->d > wanted || (t->d < wanted && t->schema->shape.kind == SVI_DENSE)))
        return svi_fail(err, SVS_WRONG_DIMENSION, "%.100s has %d features, not %d", t->path, t->d, wanted);
    /* Names only where every column has one; with a model's names the caller has them already. */
    const int have = table_moves(t) ? 0 : svs_features_count(t->schema->shape.names);
    t->d = table_width(t);
    if (have > 0 && have >= t->d) {
        t->names = svi_alloc_array((size_t)t->d, sizeof *t->names);
        if (!t->names)
            return svi_fail_memory(err, "the names of the columns");
        for (int j = 0; j < t->d; j++)
            t->names[j] = svs_features_name(t->schema->shape.names, j);
    }
    /* A model's d columns, even if the file's last ones are all 0; at least one, so that no array is empty.
     */
    t->d = t->d > t->o->features ? t->d : t->o->features;
    t->d = t->d > 0 ? t->d : 1;
    /* Dense rows pay from a density of SVI_TABLE_DENSE on, measured with the final width. */
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
    /* Rows that had to wait for the means. */
    for (int64_t i = 0; t->each && i < t->n; i++)
        t->each(t->user, &table->examples, i);
    return SVS_OK;
}

/* Fixes the columns to `names`, in their order (`exact`). */
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

/* Chooses the schema of the rows, and fixes its names where they are exact. */
static svs_code table_begin(struct table_rows *t, svs_error *err) {
    const struct svi_table_options *o = t->o;
    struct svi_schema_options schema = {.categories_max = 100, .missing = SVI_MISSING_AUTO};
    /* A model's schema is borrowed and closed; the file's own one starts from the options. */
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

/* What a column holds, as the reader's options ask: by the schema, else by the model's names: `name` is a
 * number, `name=value` makes it words. */
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
    /* Each step runs only while `mine` has no error; the reader is closed, and the table handed to the
     * caller, in any case. */
    svs_code code = table_begin(t, &mine);
    if (code == SVS_OK)
        code = svi_schema_follow(t->schema, &mine);
    /* Known classes come first, so that their indices are the model's. */
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
    /* Whatever the table owns, at any point of reading. */
    void *const all[] = {t->start,   t->column, t->value,  t->dense,   t->label, t->target,
                         t->weight,  t->ts,     t->found,  t->classes, t->names, t->map,
                         t->carried, t->means,  t->sorted, t->moved};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    svi_schema_clear(&t->own);
    svi_free(t);
    *table = (struct svi_table){0};
}
