/* The form of a stream's samples. Its names are a registry (feature_names.c), in which those from names_kept
 * on belong to the current row and are dropped when it is refused.
 *
 * The row that decoders write into, and the marks of its columns, are owned by the shape or shared by all
 * shapes that one thread serves in turn. Marks are never cleared: each row has a new round number, counted by
 * no matter which shape owns the memory, so marks of another shape's row never match.
 *
 * Invariant: names_kept <= the number of names <= max_features, and marks hold no round above the current
 * one.
 *
 * Order: set-up, rows, fewer columns, the archive. */
#include "data/shape.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/feature_names.h"

#define FEATURES_MAX   1000000
#define LINE           64 /* bytes of a cache line, on which the row begins */
#define OTHER_FEATURES "the setting `features` was different"

/* Adds the fixed name in [from, to), without the blanks around it. */
static svs_code shape_add_fixed(struct svi_shape *s, const char *from, const char *to, svs_error *err) {
    while (from < to && isspace((unsigned char)*from))
        from++;
    while (to > from && isspace((unsigned char)to[-1]))
        to--;
    /* An added name raises the count; a duplicate does not. */
    int before = svs_features_count(s->names);
    svs_error why = {0};
    if (svs_features_add(s->names, from, (size_t)(to - from), &why) < 0)
        return svi_fail(err, why.code == SVS_NO_MEMORY ? SVS_NO_MEMORY : SVS_SETTING, "features: %.220s",
                        why.text);
    if (svs_features_count(s->names) == before)
        return svi_fail(err, SVS_SETTING, "features: name %d (%.*s) is a duplicate", before + 1,
                        (int)(to - from), from);
    return SVS_OK;
}

/* One block for both. Pages that no row reaches take no memory, which matters because a stream may have far
 * fewer columns than its limit. */
svs_code svi_shape_scratch_init(struct svi_shape_scratch *r, int columns, svs_error *err) {
    const size_t count = (size_t)columns;
    *r = (struct svi_shape_scratch){.columns = columns};
    r->block = svi_alloc_plain(count * (sizeof *r->row + sizeof *r->marks) + LINE);
    if (!r->block)
        return svi_fail_memory(err, "the row of a sample");
    r->row = (double *)((char *)r->block + LINE - (uintptr_t)r->block % LINE);
    r->marks = (uint32_t *)(r->row + count);
    return SVS_OK;
}

void svi_shape_scratch_clear(struct svi_shape_scratch *r) {
    svi_free(r->block);
    *r = (struct svi_shape_scratch){0};
}

void svi_shape_use_scratch(struct svi_shape *s, struct svi_shape_scratch *scratch) {
    s->scratch = scratch;
    s->row = scratch->row;
    s->marks = scratch->marks;
    s->round = scratch->round;
}

static svs_code shape_reserve(struct svi_shape *s, struct svi_shape_scratch *scratch, svs_error *err) {
    struct svi_shape_scratch own;
    if (scratch) {
        svi_shape_use_scratch(s, scratch);
        return SVS_OK;
    }
    svs_code code = svi_shape_scratch_init(&own, s->max_features, err);
    s->row = own.row;
    s->marks = own.marks;
    s->block = own.block;
    return code;
}

static svs_code shape_fill(struct svi_shape *s, const char *fixed, struct svi_shape_scratch *scratch,
                           svs_error *err) {
    /* The registry is made even without names: named rows may follow. */
    s->names = svs_features_new(s->max_features, err);
    if (shape_reserve(s, scratch, err) != SVS_OK || !s->names)
        return svi_fail_memory(err, "the row of a sample");
    if (!fixed || !*fixed)
        return SVS_OK;
    s->fixed_names = true;
    svs_code code = SVS_OK;
    for (const char *at = fixed, *end; at && code == SVS_OK; at = *end ? end + 1 : NULL) {
        end = strchrnul(at, ',');
        code = shape_add_fixed(s, at, end, err);
    }
    s->d = s->names_kept = svs_features_count(s->names);
    return code;
}

svs_code svi_shape_init_in(struct svi_shape *s, int max_features, const char *fixed,
                           struct svi_shape_scratch *scratch, svs_error *err) {
    *s = (struct svi_shape){.max_features = max_features};
    if (max_features < 1 || max_features > FEATURES_MAX)
        return svi_fail(err, SVS_SETTING, "max.features is 1 to %d, not %d", FEATURES_MAX, max_features);
    svs_code code = shape_fill(s, fixed, scratch, err);
    if (code != SVS_OK)
        svi_shape_clear(s);
    return code;
}

svs_code svi_shape_init(struct svi_shape *s, int max_features, const char *fixed, svs_error *err) {
    return svi_shape_init_in(s, max_features, fixed, NULL, err);
}

void svi_shape_clear(struct svi_shape *s) {
    svs_features_free(&s->names);
    svi_free(s->block);
    *s = (struct svi_shape){0};
}

void svi_shape_begin_row(struct svi_shape *s) {
    const int columns = s->scratch ? s->scratch->columns : s->max_features;
    /* Other shapes may have used the scratch row since: go on from its count. */
    if (s->scratch)
        s->round = s->scratch->round;
    if (++s->round == 0) { /* the count wrapped: old marks would match, and 0 is the mark of a fresh block */
        memset(s->marks, 0, (size_t)columns * sizeof *s->marks);
        s->round = 1;
    }
    if (s->scratch)
        s->scratch->round = s->round;
}

void svi_shape_restore(struct svi_shape *s) {
    svs_features_truncate(s->names, s->names_kept);
}

svs_features *svi_shape_kept_names(const struct svi_shape *s, const bool *keep, svs_error *err) {
    svs_features *names = svs_features_new(s->max_features, err);
    for (int j = 0; names && j < s->names_kept && j < s->d; j++) {
        const char *name = svs_features_name(s->names, j);
        if (keep[j] && svs_features_add(names, name, strlen(name), err) < 0)
            svs_features_free(&names);
    }
    return names;
}

void svi_shape_keep(struct svi_shape *s, const bool *keep, svs_features *names) {
    /* Columns without names count as well: kept may exceed the number of names. */
    int kept = 0;
    for (int j = 0; j < s->d; j++)
        kept += keep[j];
    svs_features_free(&s->names);
    s->names = names;
    s->names_kept = svs_features_count(names);
    s->d = kept;
    s->kind = kept > 0 ? s->kind : SVI_UNSET;
}

const char *svi_shape_name(const struct svi_shape *s, int column) {
    return column < s->names_kept ? svs_features_name(s->names, column) : NULL;
}

/* Does the feature belong to the fixed column? It has the column's name, or is one of its values:
 * `name=value`, which may have been cut. */
static bool shape_is_of(const char *fixed, const char *name) {
    const size_t length = strlen(fixed), uncut = SVS_NAME_MAX - 10;
    return strcmp(fixed, name) == 0 || (strncmp(fixed, name, length < uncut ? length : uncut) == 0 &&
                                        (length >= uncut || name[length] == '='));
}

/* Loads a fixed column whose feature has become that of a value (it was open when the first word arrived). */
static bool shape_take_value(struct svi_archive *a, struct svi_shape *s, int column, const char *name) {
    const char *fixed = svs_features_name(s->names, column);
    /* The same name needs no change; a name of another column is refused. */
    if (strcmp(fixed, name) == 0 || !svi_archive_check(a, shape_is_of(fixed, name), OTHER_FEATURES))
        return svi_archive_ok(a);
    char *block = svi_feature_names_new_name(s->names, name, strlen(name), a->err);
    if (block)
        svi_free(svi_feature_names_rename(s->names, column, block));
    else if (a->err->code != SVS_NO_MEMORY)
        svi_archive_check(a, false, "a column's name is malformed or a duplicate");
    return svi_archive_ok(a);
}

/* Archives one name. On loading it must get the same column again; fixed names are there already. */
static void shape_archive_name(struct svi_archive *a, struct svi_shape *s, int column) {
    char key[SVI_KEY_MAX], name[SVS_NAME_MAX + 1] = "";
    svs_error err = {0};
    if (!svi_archive_loading(a))
        snprintf(name, sizeof name, "%s", svs_features_name(s->names, column));
    svi_archive_text(a, svi_archive_key(key, "name", column), name, sizeof name);
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    /* Fixed names were added by svi_shape_init; the archive must agree with them. */
    if (column < s->names_kept && !shape_take_value(a, s, column, name))
        return;
    const int place = svs_features_add(s->names, name, strlen(name), &err);
    if (place < 0 && err.code == SVS_NO_MEMORY)
        svi_archive_fail(a, SVS_NO_MEMORY, err.text);
    else
        svi_archive_check(a, place == column, "a column's name is malformed or a duplicate");
}

void svi_shape_archive(struct svi_archive *a, struct svi_shape *s) {
    int kind = (int)s->kind, names = s->names_kept;
    svi_archive_int(a, "kind", &kind, SVI_UNSET, SVI_NAMED);
    svi_archive_int(a, "columns", &s->d, s->fixed_names ? s->d : 0, s->max_features);
    svi_archive_int(a, "names", &names, 0, s->max_features);
    /* A stream with fixed names has had all of them from the beginning. */
    svi_archive_check(a, names >= s->names_kept, OTHER_FEATURES);
    for (int column = 0; column < names && svi_archive_ok(a); column++)
        shape_archive_name(a, s, column);
    if (!svi_archive_ok(a))
        return;
    s->kind = (enum svi_kind)kind;
    s->names_kept = names;
}
