/* Compares two linear models: matching, then the rows, then output.
 *
 * Everything is computed first (diff_match, diff_rows) and packed as one msgpack map, which is the JSON
 * output; the table for people is printed from the same structure, so the two cannot contradict each other.
 * The largest changes of a row are kept in a short list sorted by size; of equal ones the feature that comes
 * first in the first model wins. */
#include "report/model_diff.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/human.h"
#include "svmstream/features.h"
#include "wire/event.h"
#include "wire/fields.h"
#include "wire/json.h"
#include "wire/pack.h"

#define NAME_SIZE (4 * SVS_NAME_MAX + 8)
#define LISTED    20 /* features of only one model that the table lists */

struct diff_weight {
    int column[2]; /* in each model; -1: it does not have the feature */
    double w[2];
};

struct diff_row {
    int row[2];
    double sign; /* of the second model's row: -1 if its classes are swapped */
    svs_value class;
    double cosine, bias[2], change; /* cosine NAN: a vector is 0; change: |w2 - w1| */
    struct diff_weight *top;        /* `count` entries */
    int count;
};

struct diff {
    const struct svi_model_side *side;
    bool named;    /* match features by name */
    int *other[2]; /* for each feature of a model: its column in the other; -1 = none */
    struct diff_row *row;
    int rows;
    bool same;
    int64_t top;
};

static const svs_model *diff_model(const struct diff *d, int i) {
    return d->side[i].model;
}

/* matching */

/* Looks up every name of the first model in a table of the second's: the table's index is the column, so
 * names must be unique. */
static svs_code diff_match_names(struct diff *d, svs_error *err) {
    svs_features *known = svs_features_new(diff_model(d, 1)->d + 1, err);
    if (!known)
        return err->code;
    const svs_model *a = diff_model(d, 0), *b = diff_model(d, 1);
    svs_code code = SVS_OK;
    for (int j = 0; j < b->d && code == SVS_OK; j++)
        if (svs_features_add(known, b->features[j], strlen(b->features[j]), err) != j)
            code = svi_fail(err, SVS_WRONG_TYPE, "%.150s has a duplicate or an invalid feature name",
                            d->side[1].name);
    for (int j = 0; j < a->d && code == SVS_OK; j++) {
        const int k = svs_features_find(known, a->features[j], strlen(a->features[j]));
        d->other[0][j] = k;
        /* Both directions, so that either side can list what only it has. */
        if (k >= 0)
            d->other[1][k] = j;
    }
    svs_features_free(&known);
    return code;
}

/* Fills `other` in both directions: by column, or by name if both models have names. */
static svs_code diff_match(struct diff *d, svs_error *err) {
    d->named = diff_model(d, 0)->features && diff_model(d, 1)->features;
    for (int i = 0; i < 2; i++) {
        const int width = diff_model(d, i)->d, opposite = diff_model(d, 1 - i)->d;
        if (!(d->other[i] = svi_alloc_array((size_t)width + 1, sizeof *d->other[i])))
            return svi_fail_memory(err, "the features of a model");
        for (int j = 0; j < width; j++)
            d->other[i][j] = !d->named && j < opposite ? j : -1;
    }
    return d->named ? diff_match_names(d, err) : SVS_OK;
}

static int diff_class(const svs_model *m, svs_value y) {
    for (int k = 0; k < m->class_count; k++)
        if (svs_value_equal(m->classes[k], y))
            return k;
    return -1;
}

/* ---- one row */

/* Inserts a changed weight into the list of the largest changes, which is sorted and holds at most `top`.
 * Strict comparison keeps the earlier feature of equal ones. */
static void diff_keep(struct diff_row *r, int64_t top, const struct diff_weight *w) {
    const double size = fabs(w->w[1] - w->w[0]);
    int at = r->count;
    while (at > 0 && fabs(r->top[at - 1].w[1] - r->top[at - 1].w[0]) < size)
        at--;
    /* Too small for a full list, or no change at all. */
    if (at >= top || size == 0)
        return;
    r->count += r->count < top;
    memmove(r->top + at + 1, r->top + at, (size_t)(r->count - 1 - at) * sizeof *r->top);
    r->top[at] = *w;
}

/* The weight of a column in model i, 0 if it lacks the column, with the sign that makes both rows point the
 * same way. */
static double diff_weight_of(const struct diff *d, const struct diff_row *r, int i, int column) {
    const svs_model *m = diff_model(d, i);
    const double w = column < 0 ? 0 : m->W[(size_t)r->row[i] * (size_t)m->d + (size_t)column];
    return i == 1 ? r->sign * w : w;
}

/* Compares two rows over the union of their features: all of the first model, then those of the second alone.
 */
static svs_code diff_compare(struct diff *d, struct diff_row *r, svs_error *err) {
    double product = 0, square[2] = {0, 0}, change = 0;
    const int widest = diff_model(d, 0)->d + diff_model(d, 1)->d;
    const int64_t top = d->top < widest ? d->top : widest;
    if (!(r->top = svi_alloc_array((size_t)top + 1, sizeof *r->top)))
        return svi_fail_memory(err, "the weights that differ");
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < diff_model(d, i)->d; j++) {
            const int other = d->other[i][j];
            if (i == 1 && other >= 0) /* seen with the first model */
                continue;
            /* Both columns of the feature; -1 where a model lacks it. */
            struct diff_weight w = {.column = {i == 0 ? j : -1, i == 0 ? other : j}};
            for (int k = 0; k < 2; k++) {
                w.w[k] = diff_weight_of(d, r, k, w.column[k]);
                square[k] += w.w[k] * w.w[k];
            }
            product += w.w[0] * w.w[1];
            change += (w.w[1] - w.w[0]) * (w.w[1] - w.w[0]);
            diff_keep(r, top, &w);
        }
    /* cos = a.b / |a| / |b|; divided one by one, as the product of the norms might overflow. */
    r->cosine = square[0] > 0 && square[1] > 0 ? product / sqrt(square[0]) / sqrt(square[1]) : NAN;
    r->change = sqrt(change);
    r->bias[0] = diff_model(d, 0)->b[r->row[0]];
    r->bias[1] = r->sign * diff_model(d, 1)->b[r->row[1]];
    /* A list of 0 entries (top = 0) would hide changes, so the sum is checked as well. */
    d->same = d->same && r->count == 0 && change == 0 && r->bias[0] == r->bias[1];
    return SVS_OK;
}

/* Finds the row of the second model for row k of the first. False: it has none. */
static bool diff_pair(const struct diff *d, int k, struct diff_row *r) {
    const svs_model *a = diff_model(d, 0), *b = diff_model(d, 1);
    *r = (struct diff_row){.row = {k, 0}, .sign = 1};
    if (a->task == SVS_REGRESS)
        return true;
    if ((a->rows == 1) != (b->rows == 1))
        return false;
    if (a->class_count < 2 || b->class_count < 2) /* not trained: a row of zeros */
        return a->class_count == b->class_count && (a->class_count < 1 || diff_class(b, a->classes[0]) == 0);
    r->class = a->classes[a->rows == 1 ? 1 : k];
    if (a->rows > 1) {
        r->row[1] = diff_class(b, r->class);
        return r->row[1] >= 0;
    }
    /* Two classes share one row, whose positive scores mean the second class: swapped classes swap the sign.
     */
    const int first = diff_class(b, a->classes[0]), second = diff_class(b, r->class);
    r->sign = second == 0 ? -1 : 1;
    return first >= 0 && second >= 0;
}

/* Are raw rows turned into the same features? Schemas are compared byte by byte. */
static bool diff_same_schema(const svs_model *a, const svs_model *b) {
    return a->schema_size == b->schema_size &&
           (a->schema_size == 0 || memcmp(a->schema, b->schema, a->schema_size) == 0);
}

/* Do equal scores give equal probabilities? */
static bool diff_same_law(const svs_model *a, const svs_model *b) {
    const svs_calibration *one = &a->calibration, *other = &b->calibration;
    if (!(one->a > 0) || !(other->a > 0))
        return !(one->a > 0) && !(other->a > 0);
    bool same = one->a == other->a && a->rows == b->rows && (one->curve == NULL) == (other->curve == NULL);
    for (int k = 0; same && k < a->rows; k++)
        same = one->b[k] == other->b[k];
    return same && (!one->curve || memcmp(one->curve, other->curve, SVS_CURVE * sizeof *one->curve) == 0);
}

static svs_code diff_rows(struct diff *d, svs_error *err) {
    const svs_model *a = diff_model(d, 0), *b = diff_model(d, 1);
    svs_code code = SVS_OK;
    /* The cheap conditions first; rows can only make it false. */
    d->same = a->task == b->task && a->class_count == b->class_count && a->rows == b->rows;
    if (!(d->row = svi_alloc_array((size_t)a->rows + 1, sizeof *d->row)))
        return svi_fail_memory(err, "the rows of a model");
    for (int k = 0; k < a->rows && a->task == b->task && code == SVS_OK; k++) {
        if (diff_pair(d, k, &d->row[d->rows]))
            code = diff_compare(d, &d->row[d->rows++], err);
        else
            d->same = false;
    }
    /* Classes without a row of their own (two classes share one) must match as well. */
    for (int k = 0; k < a->class_count; k++)
        d->same = d->same && diff_class(b, a->classes[k]) >= 0;
    d->same = d->same && diff_same_schema(a, b);
    return code;
}

/* ---- figures */

struct diff_quality {
    const uint8_t *quality;
};

/* Returns the first pair of the map `quality` of a model and its number of pairs. NULL: there is no such map.
 */
static const uint8_t *quality_of(const struct svi_model_side *s, uint32_t *count) {
    static const struct svi_field fields[] = {SVI_FIELD_OPTIONAL(struct diff_quality, quality, ANY, 0, 0)};
    struct diff_quality found = {0};
    struct svi_item map;
    *count = 0;
    if (s->bytes.size == 0 ||
        svi_fields_read("model", SVI_FIELDS(fields), s->bytes.data, s->bytes.data + s->bytes.size, &found,
                        NULL) != SVS_OK ||
        !found.quality)
        return NULL;
    const uint8_t *at = svi_item_read(found.quality, &map);
    *count = map.type == SVI_MAP ? map.length : 0;
    return at;
}

/* The figure of this name; NAN = it is missing or not a number. */
static double quality_value(const struct svi_model_side *s, const struct svi_item *name) {
    uint32_t count;
    const uint8_t *at = quality_of(s, &count), *end = s->bytes.data + s->bytes.size;
    for (uint32_t i = 0; i < count; i++) {
        struct svi_item key, value;
        double number;
        svi_item_read(at, &key);
        svi_walk(&at, end, SVI_WALK_MAX);
        svi_item_read(at, &value);
        svi_walk(&at, end, SVI_WALK_MAX);
        if (key.type == SVI_STRING && name->type == SVI_STRING && key.length == name->length &&
            memcmp(key.body, name->body, key.length) == 0)
            return svi_item_number(&value, &number) ? number : NAN;
    }
    return NAN;
}

typedef void diff_figure(void *user, const struct svi_item *name, double a, double b);

/* Calls `visit` for each figure that either model has; those of the first model come first, in its order. */
static void each_figure(const struct diff *d, diff_figure *visit, void *user) {
    for (int i = 0; i < 2; i++) {
        uint32_t count;
        const struct svi_model_side *s = &d->side[i];
        const uint8_t *at = quality_of(s, &count), *end = s->bytes.data + s->bytes.size;
        for (uint32_t k = 0; k < count; k++) {
            struct svi_item key;
            svi_item_read(at, &key);
            svi_walk(&at, end, SVI_WALK_MAX);
            svi_walk(&at, end, SVI_WALK_MAX);
            const double a = quality_value(&d->side[0], &key), b = quality_value(&d->side[1], &key);
            /* The second round adds only what the first model lacks. */
            if ((i == 0 && !isnan(a)) || (i == 1 && isnan(a) && !isnan(b)))
                visit(user, &key, a, b);
        }
    }
}

/* ---- as a map */

static void pack_feature(const struct diff *d, struct svi_pack *p, int i, int column) {
    const svs_model *m = diff_model(d, i);
    if (m->features)
        svi_pack_text(p, m->features[column]);
    else
        svi_pack_int(p, column);
}

struct model_figure {
    const char *name, *title; /* names in the map and in tables; no title: shown in differences only */
    svs_value value;
};

#define MODEL_FIGURES 9

/* The properties of a model, in the order used by every report. */
static void model_figures(const svs_model *m, struct model_figure out[MODEL_FIGURES]) {
    const struct model_figure all[MODEL_FIGURES] = {
        {"version", "version", svs_int((int64_t)m->version)},
        {"method", "method", svs_str(m->method)},
        {"task", "task", svs_str(m->task == SVS_REGRESS ? "regress" : "classify")},
        {"d", "features", svs_int(m->d)},
        {"classes", NULL, svs_int(m->class_count)},
        {"C", "C", svs_real(m->C)},
        {"window", "window", svs_int(m->window)},
        {"seen", "seen", svs_int(m->seen)},
        {"learned", "learned", svs_int(m->learned)}};
    memcpy(out, all, sizeof all);
}

static void pack_side(const struct diff *d, struct svi_pack *p, int i) {
    struct model_figure f[MODEL_FIGURES];
    const struct svi_open_map map = svi_pack_open(p);
    model_figures(diff_model(d, i), f);
    svi_put_text(p, "file", d->side[i].name);
    for (int k = 0; k < MODEL_FIGURES; k++)
        svi_put_value(p, f[k].name, f[k].value);
    svi_pack_close(p, map);
}

static int count_alone(const struct diff *d, int i) {
    int count = 0;
    for (int j = 0; j < diff_model(d, i)->d; j++)
        count += d->other[i][j] < 0;
    return count;
}

static int count_classes_alone(const struct diff *d, int i) {
    int count = 0;
    for (int k = 0; k < diff_model(d, i)->class_count; k++)
        count += diff_class(diff_model(d, 1 - i), diff_model(d, i)->classes[k]) < 0;
    return count;
}

/* What only one model has, under keys that name the side: classes_a, features_a and so on. */
static void pack_alone(const struct diff *d, struct svi_pack *p, int i) {
    const svs_model *m = diff_model(d, i);
    svi_pack_key(p, i ? "classes_b" : "classes_a");
    svi_pack_array(p, (size_t)count_classes_alone(d, i));
    for (int k = 0; k < m->class_count; k++)
        if (diff_class(diff_model(d, 1 - i), m->classes[k]) < 0)
            svi_pack_value(p, m->classes[k]);
    svi_pack_key(p, i ? "features_b" : "features_a");
    svi_pack_array(p, (size_t)count_alone(d, i));
    for (int j = 0; j < m->d; j++)
        if (d->other[i][j] < 0)
            pack_feature(d, p, i, j);
}

static void pack_diff_row(const struct diff *d, struct svi_pack *p, const struct diff_row *r) {
    svi_pack_map(p, 5);
    svi_put_value(p, "class", r->class);
    svi_put_real(p, "cosine", r->cosine);
    svi_put_real(p, "change", r->change);
    svi_put_reals(p, "bias", r->bias, 2);
    svi_pack_key(p, "weights");
    svi_pack_array(p, (size_t)r->count);
    for (int i = 0; i < r->count; i++) {
        const struct diff_weight *w = &r->top[i];
        /* A feature is named by the model that has it. */
        const int side = w->column[0] < 0;
        svi_pack_map(p, 3);
        svi_pack_key(p, "feature");
        pack_feature(d, p, side, w->column[side]);
        svi_put_real(p, "a", w->w[0]);
        svi_put_real(p, "b", w->w[1]);
    }
}

static void pack_figure(void *user, const struct svi_item *name, double a, double b) {
    const double both[2] = {a, b};
    svi_pack_name(user, name->body, (size_t)name->length);
    svi_pack_array(user, 2);
    for (int i = 0; i < 2; i++)
        svi_pack_real(user, both[i]);
}

static svs_code diff_json(const struct diff *d, FILE *to, svs_error *err) {
    struct svi_bytes map = {0}, text = {0};
    struct svi_pack p;
    svi_pack_begin(&p, &map);
    const struct svi_open_map whole = svi_pack_open(&p);
    svi_put_bool(&p, "same", d->same);
    svi_pack_key(&p, "a");
    pack_side(d, &p, 0);
    svi_pack_key(&p, "b");
    pack_side(d, &p, 1);
    svi_pack_key(&p, "quality");
    /* The number of figures is not known in advance: the head of the map is filled in at its end. */
    const struct svi_open_map figures = svi_pack_open(&p);
    each_figure(d, pack_figure, &p);
    svi_pack_close(&p, figures);
    pack_alone(d, &p, 0);
    pack_alone(d, &p, 1);
    svi_pack_key(&p, "rows");
    svi_pack_array(&p, (size_t)d->rows);
    for (int k = 0; k < d->rows; k++)
        pack_diff_row(d, &p, &d->row[k]);
    svi_pack_close(&p, whole);
    svs_code code = svi_pack_end(&p);
    if (code == SVS_OK)
        code = svi_json_msgpack(&text, map.data, map.size, err);
    if (code == SVS_OK)
        fprintf(to, "%.*s\n", (int)text.size, (const char *)text.data);
    else
        svi_fail_memory(err, "the difference");
    svi_bytes_clear(&map);
    svi_bytes_clear(&text);
    return code;
}

/* ---- as a table */

static const char *diff_name(const struct diff *d, int i, int column, char *out) {
    const svs_model *m = diff_model(d, i);
    if (m->features)
        svi_escape(out, NAME_SIZE, m->features[column], strlen(m->features[column]));
    else
        snprintf(out, NAME_SIZE, "%d", column);
    return out;
}

static void print_figure(void *user, const struct svi_item *name, double a, double b) {
    char shown[NAME_SIZE], one[SVI_HUMAN], other[SVI_HUMAN];
    fprintf(user, "%-12s  %-20s  %-20s\n",
            svi_escape(shown, sizeof shown, (const char *)name->body, name->length),
            svi_human_digits(one, a, 6), svi_human_digits(other, b, 6));
}

/* Real numbers with six digits: a report is for reading. */
static const char *model_figure_text(const struct model_figure *f, char out[NAME_SIZE]) {
    return f->value.kind == SVS_REAL ? svi_human_digits(out, f->value.as.r, 6)
                                     : svs_value_text(f->value, out, NAME_SIZE);
}

void svi_model_report(const svs_model *m, FILE *to) {
    struct model_figure f[MODEL_FIGURES];
    char text[NAME_SIZE];
    model_figures(m, f);
    for (int k = 0; k < MODEL_FIGURES; k++)
        if (f[k].title)
            fprintf(to, "%s %s\n", f[k].title, model_figure_text(&f[k], text));
}

static void print_sides(const struct diff *d, FILE *to) {
    struct model_figure a[MODEL_FIGURES], b[MODEL_FIGURES];
    char one[NAME_SIZE], other[NAME_SIZE];
    model_figures(diff_model(d, 0), a);
    model_figures(diff_model(d, 1), b);
    fprintf(to, "%-12s  %-20s  %s\n", "", d->side[0].name, d->side[1].name);
    for (int k = 0; k < MODEL_FIGURES; k++)
        fprintf(to, "%-12s  %-20s  %s\n", a[k].title ? a[k].title : a[k].name, model_figure_text(&a[k], one),
                model_figure_text(&b[k], other));
    each_figure(d, print_figure, to);
}

/* The list of features is cut at LISTED; the JSON form has them all. */
static void print_alone(const struct diff *d, int i, FILE *to) {
    const svs_model *m = diff_model(d, i);
    char name[NAME_SIZE];
    int listed = 0;
    if (count_classes_alone(d, i) > 0)
        fprintf(to, "classes of %s alone:", d->side[i].name);
    for (int k = 0; k < m->class_count; k++)
        if (diff_class(diff_model(d, 1 - i), m->classes[k]) < 0)
            fprintf(to, "%s %s", listed++ ? "," : "", svs_value_text(m->classes[k], name, sizeof name));
    fputs(listed ? "\n" : "", to);
    const int alone = count_alone(d, i);
    listed = 0;
    if (alone > 0)
        fprintf(to, "features of %s alone:", d->side[i].name);
    for (int j = 0; j < m->d && listed < LISTED; j++)
        if (d->other[i][j] < 0)
            fprintf(to, "%s %s", listed++ ? "," : "", diff_name(d, i, j, name));
    if (alone > listed)
        fprintf(to, " and %d more", alone - listed);
    fputs(alone > 0 ? "\n" : "", to);
}

static void print_diff_row(const struct diff *d, const struct diff_row *r, FILE *to) {
    char name[NAME_SIZE] = "value", cosine[SVI_HUMAN];
    if (r->class.kind != SVS_NONE)
        svs_value_text(r->class, name, sizeof name);
    fprintf(to, "\n%s  bias %.6g -> %.6g  cosine %s  change %.6g\n", name, r->bias[0], r->bias[1],
            svi_human_places(cosine, r->cosine, 6), r->change);
    for (int i = 0; i < r->count; i++) {
        const struct diff_weight *w = &r->top[i];
        const int side = w->column[0] < 0;
        fprintf(to, "  %14.6g -> %-14.6g  %+.6g  %s\n", w->w[0], w->w[1], w->w[1] - w->w[0],
                diff_name(d, side, w->column[side], name));
    }
}

/* From the general to the details: properties, what one model lacks, rows, and the conclusion as the last
 * line. */
static void diff_table(const struct diff *d, FILE *to) {
    print_sides(d, to);
    for (int i = 0; i < 2; i++)
        print_alone(d, i, to);
    for (int k = 0; k < d->rows; k++)
        print_diff_row(d, &d->row[k], to);
    if (d->rows == 0)
        fputs("the models have no rows in common: no class has the same opponents in both\n", to);
    fputs(d->same ? "\nthe same scores" : "", to);
    fputs(!d->same                                            ? ""
          : diff_same_law(diff_model(d, 0), diff_model(d, 1)) ? "\n"
                                                              : "; other probabilities\n",
          to);
}

svs_code svi_model_diff(const struct svi_model_side side[2], int64_t top, bool json, FILE *to, bool *same,
                        svs_error *err) {
    struct diff d = {.side = side, .top = top};
    svs_code code = diff_match(&d, err);
    if (code == SVS_OK)
        code = diff_rows(&d, err);
    /* Set even on an error, where it means nothing. */
    *same = d.same;
    if (code == SVS_OK && json)
        code = diff_json(&d, to, err);
    else if (code == SVS_OK)
        diff_table(&d, to);
    for (int k = 0; k < d.rows; k++)
        svi_free(d.row[k].top);
    svi_free(d.row);
    for (int i = 0; i < 2; i++)
        svi_free(d.other[i]);
    return code;
}
