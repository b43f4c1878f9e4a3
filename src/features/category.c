/* The features of a category's values. A value is found by the name of its feature, `column=word`, cut where
 * that would be too long; no other index of words is kept.
 *
 * A new value gets the first of these features that is available:
 *  - the column's own one, from the time when all its values were missing (svi_category_feature);
 *  - a new one, while the limits allow it (category_new_value);
 *  - that of the value that was not seen for the longest time, if no held sample has it
 *    (category_find_free);
 *  - one that it shares with further values (category_other).
 * A closed schema changes nothing: svi_category_known looks up in the same order.
 *
 * Invariant: a feature gets another value only while no held sample has its old one. Those samples
 * would otherwise be learned again, or removed, as ones of the new value.
 *
 * Order: names, lookups, new and shared features, the public functions. */
#include "features/category.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/fnv.h"
#include "base/text.h"
#include "data/feature_names.h"

#define CUT_MARK 9 /* bytes of ~ and eight hexadecimal digits */

/* A hash of the word that is the same on every machine and in every version: names in states and models
 * contain it. */
static uint64_t category_hash(uint64_t seed, const char *word, size_t length) {
    return svi_fnv_fold(svi_fnv(seed, word, length));
}

/* Writes the name of the feature, `column=word`, and returns its length. A name that is too long is cut
 * between two characters and ends in ~ and a hash of the whole word, so that words with a common beginning
 * stay apart. */
static size_t category_key(char key[SVS_NAME_MAX + 1], const char *column, const char *word, size_t length) {
    const size_t name = strlen(column);
    if (name + 1 + length <= SVS_NAME_MAX) {
        memcpy(key, column, name);
        key[name] = '=';
        memcpy(key + name + 1, word, length);
        key[name + 1 + length] = '\0';
        return name + 1 + length;
    }
    /* Only the part that can survive the cut is copied; the hash covers the rest. */
    char whole[2 * SVS_NAME_MAX + 2];
    const size_t taken = length < SVS_NAME_MAX ? length : SVS_NAME_MAX;
    memcpy(whole, column, name);
    whole[name] = '=';
    memcpy(whole + name + 1, word, taken);
    size_t cut = SVS_NAME_MAX - CUT_MARK;
    /* 10xxxxxx continues a character of UTF-8: the cut moves back to its first byte. */
    while (cut > 0 && ((unsigned char)whole[cut] & 0xc0) == 0x80)
        cut--;
    memcpy(key, whole, cut);
    /* If the cut falls into the column's name, the rest of that name must count as well. */
    const uint64_t seed = name > cut ? category_hash(SVI_FNV_SEED, column, name) : SVI_FNV_SEED,
                   hash = category_hash(seed, word, length);
    snprintf(key + cut, CUT_MARK + 1, "~%08x", (unsigned)(hash & 0xffffffffu));
    return cut + CUT_MARK;
}

/* The feature of that name, if it is a value of the column, else -1. A column of numbers may have the same
 * name. */
static int category_find(const struct svi_schema *s, int column, const char *key, size_t size) {
    const int feature = svs_features_find(s->shape.names, key, size);
    return feature >= 0 && s->owner[feature] == column && s->one_hot[feature] ? feature : -1;
}

/* Refuses a name that a feature of another column has. */
static svs_code category_check(const struct svi_schema *s, int column, const char *key, size_t size,
                               svs_error *err) {
    const int feature = svs_features_find(s->shape.names, key, size);
    if (feature < 0 || s->owner[feature] == column)
        return SVS_OK;
    return svi_fail(err, SVS_BAD_COLUMN, "the feature \"%s\" is both a column and a value of another one",
                    key);
}

/* Appends a feature of the column; it disappears with the names of the row if the row is refused. */
static int category_add_feature(struct svi_schema *s, int column, const char *key, size_t length,
                                svs_error *err) {
    const int feature = svs_features_add(s->shape.names, key, length, err);
    if (feature < 0)
        return -1;
    s->owner[feature] = column;
    s->one_hot[feature] = 1;
    s->dirty = true;
    return feature;
}

/* May the feature change hands? Its last 1 must be older than everything that is held: the window, the
 * samples that wait for a label, and the last held_rows rows. */
static bool category_is_free(const struct svi_schema *s, int feature) {
    return s->seen[0][feature] <= s->held.window_oldest && s->seen[1][feature] <= s->held.waiting_oldest &&
           s->rows - s->seen[2][feature] >= s->o.held_rows;
}

/* Among the free features of the column, the one that was not seen for the longest time; -1: none. Features
 * that are new in this row (not kept yet) stay. */
static int category_find_free(const struct svi_schema *s, const struct svi_column *c) {
    int best = -1;
    for (int i = 0; i < c->now.values; i++) {
        const int f = c->value[i];
        if (f < s->shape.names_kept && category_is_free(s, f) &&
            (best < 0 || s->seen[2][f] < s->seen[2][best]))
            best = f;
    }
    /* A feature that this row has set is in use, although `seen` does not know it yet. */
    for (int i = 0; i < s->hot_count; i++)
        best = s->hot[i] == best ? -1 : best;
    return best;
}

/* Reserves a note of a former name before the feature is renamed, which must not fail halfway. */
static svs_code category_reserve(struct svi_schema *s, svs_error *err) {
    if (!svi_grow(&s->renewed, s->renewed_count, &s->renewed_capacity, 16, sizeof *s->renewed))
        return svi_fail_memory(err, "features that are moved");
    return SVS_OK;
}

/* Renames the feature to the new value and notes the former name, which svi_schema_restore puts back if the
 * row is refused. */
static int category_take_over(struct svi_schema *s, int feature, const char *key, size_t length,
                              svs_error *err) {
    char *name = category_reserve(s, err) == SVS_OK
                     ? svi_feature_names_new_name(s->shape.names, key, length, err)
                     : NULL;
    if (!name)
        return -1;
    s->renewed[s->renewed_count++] = (struct svi_handover){
        feature, svi_feature_names_rename(s->shape.names, feature, name), s->one_hot[feature]};
    s->dirty = true;
    return feature;
}

/* Writes the name that further values share: (other), or with `hash` one of 2^hash buckets. */
static size_t category_shared_key(const struct svi_schema *s, char key[SVS_NAME_MAX + 1], int column,
                                  const char *word, size_t length) {
    char share[16] = "(other)";
    if (s->o.hash > 0)
        snprintf(share, sizeof share, "#%u",
                 (unsigned)(category_hash(SVI_FNV_SEED, word, length) & ((UINT64_C(1) << s->o.hash) - 1)));
    return category_key(key, svs_features_name(s->columns, column), share, strlen(share));
}

/* The shared feature, made on its first use. */
static int category_other(struct svi_schema *s, int column, const char *word, size_t length, svs_error *err) {
    char key[SVS_NAME_MAX + 1];
    const size_t size = category_shared_key(s, key, column, word, length);
    const int feature = category_find(s, column, key, size);
    if (feature >= 0)
        return feature;
    return category_check(s, column, key, size, err) == SVS_OK
               ? category_add_feature(s, column, key, size, err)
               : -1;
}

int svi_category_shared(const struct svi_schema *s, int column, const char *word, size_t length) {
    char key[SVS_NAME_MAX + 1];
    const size_t size = category_shared_key(s, key, column, word, length);
    return category_find(s, column, key, size);
}

int svi_category_known(const struct svi_schema *s, int column, const char *word, size_t length) {
    char key[SVS_NAME_MAX + 1];
    const size_t size = category_key(key, svs_features_name(s->columns, column), word, length);
    const int feature = category_find(s, column, key, size);
    return feature >= 0 ? feature : svi_category_shared(s, column, word, length);
}

/* A feature for a new value. `count + 1` leaves one for the values that will have to share. */
static int category_new_value(struct svi_schema *s, int column, const char *key, size_t size,
                              const char *word, size_t length, svs_error *err) {
    struct svi_column *c = &s->column[column];
    const int count = svs_features_count(s->shape.names);
    if (c->now.values < s->o.categories_max && count + 1 < s->shape.max_features) {
        if (svi_category_reserve(c, c->now.values + 1, err) != SVS_OK)
            return -1;
        const int feature = category_add_feature(s, column, key, size, err);
        if (feature >= 0)
            c->value[c->now.values++] = feature;
        return feature;
    }
    /* The column is full, or the stream is: reuse before sharing. */
    const int vacant = category_find_free(s, c);
    return vacant >= 0 ? category_take_over(s, vacant, key, size, err)
                       : category_other(s, column, word, length, err);
}

int svi_category_feature(struct svi_schema *s, int column, const char *word, size_t length, svs_error *err) {
    struct svi_column *c = &s->column[column];
    char key[SVS_NAME_MAX + 1], shown[80];
    const char *name = svs_features_name(s->columns, column);
    /* Names of features are C strings of UTF-8. */
    if (!svi_utf8_valid(word, length) || memchr(word, 0, length)) {
        svi_fail(err, SVS_BAD_COLUMN, "the value \"%s\" of column \"%s\" is not valid UTF-8 text",
                 svi_escape(shown, sizeof shown, word, length), name);
        return -1;
    }
    /* A known value, nearly always; then the errors; then the three ways to a feature. */
    const size_t size = category_key(key, name, word, length);
    int feature = category_find(s, column, key, size);
    if (feature >= 0)
        return feature;
    if (category_check(s, column, key, size, err) != SVS_OK)
        return -1;
    if (c->now.feature < 0)
        return category_new_value(s, column, key, size, word, length, err);
    /* The column has a feature from rows in which its value was missing; the first word takes it over, so
     * that features keep the order of the columns. */
    feature = c->now.feature;
    if (category_take_over(s, feature, key, size, err) < 0)
        return -1;
    s->one_hot[feature] = 1;
    s->dirty = true;
    /* From here on the feature is one of the values; the column itself has no feature. */
    c->value[c->now.values++] = feature;
    c->now.feature = -1;
    return feature;
}

svs_code svi_category_reserve(struct svi_column *c, int count, svs_error *err) {
    if (count <= c->capacity)
        return SVS_OK;
    const int capacity = count > 2 * c->capacity ? count : 2 * c->capacity;
    int32_t *value =
        svi_realloc(c->value, (size_t)c->capacity * sizeof *value, (size_t)capacity * sizeof *value);
    if (!value)
        return svi_fail_memory(err, "the values of a category");
    c->value = value;
    c->capacity = capacity;
    return SVS_OK;
}

svs_code svi_category_begin(struct svi_schema *s, int column, svs_error *err) {
    struct svi_column *c = &s->column[column];
    if (svi_category_reserve(c, 8, err) != SVS_OK)
        return err->code;
    c->now.kind = SVI_COLUMN_CATEGORY;
    s->dirty = true;
    return SVS_OK;
}
