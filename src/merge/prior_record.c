/* Sums of a prior as msgpack (prior_record.h): a worker's sums and bounds become one map, and
 * such a map becomes sums and bounds again.
 *
 * Features go by their identities, which are made of their names alone, so each receiver finds its own.
 * Triangles and tables are sent packed, without the padding that they have in memory. Each number is two
 * doubles: the second is what the first has rounded off. What is not known of the bounds is -1,
 * because packed numbers are finite.
 *
 * The difficulty is that a map may be from anybody. Decoding trusts nothing: the form is checked first, then
 * every array against the number of features and labels, then each number. Whether the sums are of any
 * samples at all (is the matrix positive definite?) is asked by those that use them
 * (learner/prior_agree.h).
 *
 * Read svi_prior_record_encode for the form, then record_read for the order of the checks. */
#include "merge/prior_record.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "wire/fields.h"
#include "wire/pack.h"

#define WHAT    "prior of keys"
#define LARGEST 1e270 /* of a sum: those of all parts together are still finite */

void svi_prior_record_clear(struct svi_prior_record *r) {
    svi_prior_sums_clear(&r->sums);
    svi_prior_bounds_clear(&r->bounds);
    *r = (struct svi_prior_record){0};
}

/* ---- writing */

/* A packed array that is filled row by row. */
struct record_array {
    double *v;
    size_t count;
};

/* The pack copies the numbers, so the memory serves the next array: the count starts again at 0. */
static void array_put(struct svi_pack *p, const char *name, struct record_array *a) {
    svi_put_doubles(p, name, a->v, a->count);
    a->count = 0;
}

/* Normalised, so that the second number is the rounding of the first. */
static void array_add(struct record_array *high, struct record_array *low, struct svi_prior_row row, int n) {
    for (int j = 0; j < n; j++) {
        const struct svi_dd one = svi_two_sum(row.high[j], row.low[j]);
        high->v[high->count++] = one.high;
        low->v[low->count++] = one.low;
    }
}

/* The rows of the high and of the low halves are collected in one pass: normalising needs both, but each half
 * is an array of its own. Each has `most` values of scratch. */
static void record_put_sums(struct svi_pack *p, const struct svi_prior_sums *s, double *scratch,
                            size_t most) {
    struct record_array high = {scratch, 0}, low = {scratch + most, 0};
    for (int i = 0; i < s->n; i++)
        array_add(&high, &low, svi_prior_sums_products(s, i), i + 1);
    array_put(p, "products", &high);
    array_put(p, "products_low", &low);
    for (int k = 0; k < s->labels; k++)
        array_add(&high, &low, svi_prior_sums_of_label(s, k), s->n);
    array_put(p, "by_label", &high);
    array_put(p, "by_label_low", &low);
    for (int k = 0; k < SVI_PRIOR_OF_KEYS; k++)
        array_add(&high, &low, svi_prior_sums_of_keys(s, k), s->n);
    array_put(p, "by_key", &high);
    array_put(p, "by_key_low", &low);
}

/* Bounds may have fewer coordinates than the sums: what they do not cover is not known. */
static double bound_out(const struct svi_prior_bounds *b, const double *v, int j) {
    return j < b->n && isfinite(v[j]) ? v[j] : -1;
}

/* A middle may be negative, so it has no value for `not known`: without its `apart` it means nothing, and 0
 * stands for it. */
static void record_put_bounds(struct svi_pack *p, const struct svi_prior_bounds *b, int n, double *scratch) {
    struct record_array a = {scratch, 0};
    for (int j = 0; j < n; j++)
        a.v[a.count++] = bound_out(b, b->usual, j);
    array_put(p, "spread", &a);
    for (int j = 0; j < n; j++)
        a.v[a.count++] = j < b->n ? b->middle[j] : 0;
    array_put(p, "middle", &a);
    for (int j = 0; j < n; j++)
        a.v[a.count++] = bound_out(b, b->apart, j);
    array_put(p, "apart", &a);
    svi_put_real(p, "row_weight", b->n > 0 && isfinite(b->weight) ? b->weight : -1);
}

svs_code svi_prior_record_encode(const struct svi_prior_sums *s, const struct svi_prior_bounds *bounds,
                                 int64_t keys, struct svi_bytes *out, svs_error *err) {
    /* Scratch for the largest of the arrays: the triangle, or a table by label or by key. There are
     * SVI_PRIOR_OF_KEYS rows by key. */
    const size_t n = (size_t)s->n, triangle = n * (n + 1) / 2, table = n * (size_t)(s->labels + 4),
                 most = triangle > table ? triangle : table;
    double *scratch = svi_alloc_array(2 * most, sizeof *scratch);
    if (!scratch)
        return svi_fail_memory(err, "the " WHAT);
    struct svi_pack p;
    svi_pack_begin(&p, out);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_int(&p, "keys", keys);
    /* Coordinate 0 is the constant 1 in every record, so it has no identity and is not sent. */
    svi_put_array(&p, "ids", n - 1);
    for (int j = 1; j < s->n; j++)
        svi_pack_uint(&p, s->identity[j]);
    /* A regression has one row by label and no value for it: the list is empty, and the reader knows of the
     * row from `regress`. */
    svi_put_array(&p, "labels", s->regress ? 0 : (size_t)s->labels);
    for (int k = 0; k < s->labels && !s->regress; k++)
        svi_pack_value(&p, s->label[k]);
    svi_put_bool(&p, "regress", s->regress);
    record_put_sums(&p, s, scratch, most);
    record_put_bounds(&p, bounds, s->n, scratch);
    svi_pack_close(&p, map);
    /* A failed append is kept in the pack: one test at the end covers all of them. */
    svi_free(scratch);
    return svi_pack_end(&p) == SVS_OK ? SVS_OK : svi_fail_memory(err, "the " WHAT);
}

/* ---- reading */

/* The map as it was received: pointers into its bytes and nothing copied. Memory is taken only after the
 * sizes are known to be allowed. */
struct record_parts {
    int64_t keys;
    double row_weight;
    const uint8_t *ids, *labels, *regress;
    struct svi_doubles products, products_low, by_label, by_label_low, by_key, by_key_low, spread, middle,
        apart;
};

#define OWNER struct record_parts

/* All keys are required. Lists and the boolean are ANY, because no type of field fits them: record_words and
 * record_read check them. */
static const struct svi_field record_fields[] = {
    SVI_FIELD(OWNER, keys, INTEGER, 0, 1e15),
    SVI_FIELD(OWNER, row_weight, REAL, -1, 1e300),
    SVI_FIELD(OWNER, ids, ANY, 0, 0),
    SVI_FIELD(OWNER, labels, ANY, 0, 0),
    SVI_FIELD(OWNER, regress, ANY, 0, 0),
    SVI_FIELD(OWNER, products, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, products_low, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, by_label, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, by_label_low, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, by_key, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, by_key_low, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, spread, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, middle, DOUBLES, 0, 0),
    SVI_FIELD(OWNER, apart, DOUBLES, 0, 0),
};

/* Gives the sums their features and labels, so that all sizes follow from them. A place that is not the next
 * one shows a duplicate: two rows would fall on one. */
static svs_code record_words(struct svi_prior_record *r, const struct record_parts *p, svs_error *err) {
    struct svi_item ids, labels, item;
    uint16_t place;
    svi_item_read(p->ids, &ids);
    svi_item_read(p->labels, &labels);
    if (ids.type != SVI_ARRAY || labels.type != SVI_ARRAY)
        return svi_fail(err, SVS_WRONG_TYPE, "ids and labels of the " WHAT " must be arrays");
    /* Before the first is added: the sums would ignore those beyond the limit without an error. */
    if (ids.length > SVI_PRIOR_FEATURES || labels.length > SVI_PRIOR_LABELS)
        return svi_fail(err, SVS_LIMIT,
                        "the " WHAT " has %u features and %u labels, at most %d and %d are taken", ids.length,
                        labels.length, SVI_PRIOR_FEATURES, SVI_PRIOR_LABELS);
    const uint8_t *at = ids.body;
    for (uint32_t j = 0; j < ids.length; j++) {
        at = svi_item_read(at, &item);
        /* The identity of a named feature has its top bit set: it does not fit an int64_t. */
        if (item.type != SVI_HUGE_INT && (item.type != SVI_INT || item.i < 0))
            return svi_fail(err, SVS_WRONG_TYPE, "ids[%u] of the " WHAT " is %s: it must be an integer", j,
                            svi_item_name(&item));
        SVI_TRY(svi_prior_sums_feature(&r->sums, (uint64_t)item.i, -1, &place, err));
        if (place != j + 1)
            return svi_fail(err, SVS_WRONG_TYPE, "the " WHAT " has a feature twice");
    }
    at = labels.body;
    for (uint32_t k = 0; k < labels.length; k++) {
        svs_value label;
        at = svi_item_read(at, &item);
        if (!svi_item_label(&item, &label) || label.length > SVS_NAME_MAX || r->sums.regress)
            return svi_fail(err, SVS_WRONG_TYPE, "labels[%u] of the " WHAT " is no label", k);
        SVI_TRY(svi_prior_sums_label(&r->sums, label, -1, &place, err));
        if (place != k)
            return svi_fail(err, SVS_WRONG_TYPE, "the " WHAT " has a label twice");
    }
    /* A map without features and labels has made no arrays so far, but it still has the constant 1. */
    return svi_prior_sums_ready(&r->sums, err);
}

/* One row from the packed arrays. A sender may have split a number otherwise; normalised again, the halves
 * are as in sums of our own. */
static svs_code record_row(const struct svi_doubles *high, const struct svi_doubles *low, int64_t from,
                           struct svi_prior_row row, int n, const char *name, svs_error *err) {
    SVI_TRY(svi_doubles_copy(high, from, n, row.high, WHAT, name, err));
    SVI_TRY(svi_doubles_copy(low, from, n, row.low, WHAT, name, err));
    for (int j = 0; j < n; j++) {
        /* Two finite halves may add up to infinity, so the bound holds for their sum. */
        const struct svi_dd one = svi_two_sum(row.high[j], row.low[j]);
        if (!(fabs(one.high) <= LARGEST))
            return svi_fail(err, SVS_TOO_LARGE, "%s of the " WHAT " has %g: at most %g is allowed", name,
                            row.high[j], LARGEST);
        row.high[j] = one.high;
        row.low[j] = one.low;
    }
    return SVS_OK;
}

/* Row i of the triangle has i + 1 values, and rows lie packed: `at` moves by one more each time. */
static svs_code record_sums(struct svi_prior_record *r, const struct record_parts *p, svs_error *err) {
    struct svi_prior_sums *s = &r->sums;
    int64_t at = 0;
    for (int i = 0; i < s->n; at += ++i)
        SVI_TRY(record_row(&p->products, &p->products_low, at, svi_prior_sums_products(s, i), i + 1,
                           "products", err));
    for (int k = 0; k < s->labels; k++)
        SVI_TRY(record_row(&p->by_label, &p->by_label_low, (int64_t)k * s->n, svi_prior_sums_of_label(s, k),
                           s->n, "by_label", err));
    for (int k = 0; k < SVI_PRIOR_OF_KEYS; k++)
        SVI_TRY(record_row(&p->by_key, &p->by_key_low, (int64_t)k * s->n, svi_prior_sums_of_keys(s, k), s->n,
                           "by_key", err));
    for (int i = 0; i < s->n; i++)
        /* A cheap part of the question whether these are sums of samples: no square and no count of keys is
         * below 0. */
        if (svi_prior_sums_at(s, i, i).high < 0 || svi_prior_sums_of_keys(s, SVI_PRIOR_KEYS).high[i] < 0)
            return svi_fail(err, SVS_WRONG_TYPE, "a square of the " WHAT " is negative");
    /* The first product is the sum of all weights: without it there were no samples. */
    s->touched = svi_prior_sums_at(s, 0, 0).high > 0;
    return SVS_OK;
}

/* Back from -1 to what memory has for `not known`. */
static svs_code record_bounds(struct svi_prior_record *r, const struct record_parts *p, svs_error *err) {
    struct svi_prior_bounds *b = &r->bounds;
    SVI_TRY(svi_prior_bounds_unknown(b, r->sums.n, err));
    SVI_TRY(svi_doubles_copy(&p->spread, 0, b->n, b->usual, WHAT, "spread", err));
    SVI_TRY(svi_doubles_copy(&p->middle, 0, b->n, b->middle, WHAT, "middle", err));
    SVI_TRY(svi_doubles_copy(&p->apart, 0, b->n, b->apart, WHAT, "apart", err));
    for (int j = 0; j < b->n; j++) {
        b->usual[j] = b->usual[j] < 0 ? INFINITY : b->usual[j];
        b->apart[j] = b->apart[j] < 0 ? INFINITY : b->apart[j];
    }
    b->weight = p->row_weight > 0 ? p->row_weight : INFINITY;
    return SVS_OK;
}

/* Must run before any row is copied: svi_doubles_copy reads as many values as it is asked for. */
static svs_code record_check_sizes(const struct svi_prior_record *r, const struct record_parts *p,
                                   svs_error *err) {
    const int64_t n = r->sums.n, triangle = n * (n + 1) / 2, labels = r->sums.labels;
    const struct {
        const char *name;
        int64_t is, must;
    } size[] = {{"products", p->products.count, triangle},
                {"products_low", p->products_low.count, triangle},
                {"by_label", p->by_label.count, labels * n},
                {"by_label_low", p->by_label_low.count, labels * n},
                {"by_key", p->by_key.count, SVI_PRIOR_OF_KEYS * n},
                {"by_key_low", p->by_key_low.count, SVI_PRIOR_OF_KEYS * n},
                {"spread", p->spread.count, n},
                {"middle", p->middle.count, n},
                {"apart", p->apart.count, n}};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        if (size[i].is != size[i].must)
            return svi_fail(err, SVS_WRONG_TYPE, "%s of the " WHAT " has %lld values, not %lld", size[i].name,
                            (long long)size[i].is, (long long)size[i].must);
    return SVS_OK;
}

static svs_code record_read(struct svi_prior_record *r, bool regress, const uint8_t *map, const uint8_t *end,
                            svs_error *err) {
    struct record_parts p = {0};
    struct svi_item item;
    SVI_TRY(svi_fields_read(WHAT, SVI_FIELDS(record_fields), map, end, &p, err));
    /* The task is first: with another one the labels and the sums by label mean other things. */
    svi_item_read(p.regress, &item);
    if (item.type != SVI_BOOL || (item.i != 0) != regress)
        return svi_fail(err, SVS_WRONG_TYPE, "the " WHAT " is of another task: it must be of a %s",
                        regress ? "regression" : "classification");
    /* In this order: words give the sizes, and sizes make the copies safe. */
    SVI_TRY(record_words(r, &p, err));
    SVI_TRY(record_check_sizes(r, &p, err));
    SVI_TRY(record_sums(r, &p, err));
    /* A figure that decides nothing here; the table of fields has bounded it. */
    r->keys = p.keys;
    return record_bounds(r, &p, err);
}

svs_code svi_prior_record_decode(struct svi_prior_record *r, bool regress, const void *map, size_t size,
                                 svs_error *err) {
    /* The task is set before anything is read: a regression begins with one row by label, which the sizes
     * count. */
    svi_prior_record_clear(r);
    svi_prior_sums_init(&r->sums, regress);
    /* The walk over the whole map is first: svi_item_read does not test for the end of the bytes. */
    svs_code code = svi_msgpack_check(map, size, SVI_DEPTH_MAX, err);
    if (code == SVS_OK)
        code = record_read(r, regress, map, (const uint8_t *)map + size, err);
    if (code != SVS_OK)
        svi_prior_record_clear(r);
    return code;
}
