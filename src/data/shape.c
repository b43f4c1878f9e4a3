#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/message.h"

#define FEATURES_MAX 1000000

static const char *const kind_names[] = {"unset", "dense (an array or packed numbers)",
                                         "sparse (a map of columns)", "named (a map of names)"};

/* Adds the name in [from, to), blanks around it dropped. */
static svs_code add_fixed(struct svi_shape *s, const char *from, const char *to, svs_error *err) {
    while (from < to && isspace((unsigned char)*from))
        from++;
    while (to > from && isspace((unsigned char)to[-1]))
        to--;
    int before = svs_features_count(s->names);
    svs_error why = {0};
    if (svs_features_add(s->names, from, (size_t)(to - from), &why) < 0)
        return svi_fail(err, why.code == SVS_NO_MEMORY ? SVS_NO_MEMORY : SVS_SETTING, "features: %.220s",
                        why.text);
    if (svs_features_count(s->names) == before)
        return svi_fail(err, SVS_SETTING, "features: the %d. name is there twice", before + 1);
    return SVS_OK;
}

static svs_code add_all_fixed(struct svi_shape *s, const char *fixed, svs_error *err) {
    for (const char *at = fixed;;) {
        const char *comma = strchr(at, ',');
        svs_code code = add_fixed(s, at, comma ? comma : at + strlen(at), err);
        if (code != SVS_OK || !comma)
            return code;
        at = comma + 1;
    }
}

static svs_code fill(struct svi_shape *s, const char *fixed, svs_error *err) {
    s->names = svs_features_new(s->max_features, err);
    s->row = svi_alloc_array((size_t)s->max_features, sizeof *s->row);
    s->marks = svi_alloc_array((size_t)s->max_features, sizeof *s->marks);
    if (!s->names || !s->row || !s->marks)
        return svi_fail_memory(err, "the row of a sample");
    if (!fixed || !*fixed)
        return SVS_OK;
    s->fixed_names = true;
    svs_code code = add_all_fixed(s, fixed, err);
    s->d = s->names_kept = svs_features_count(s->names);
    return code;
}

svs_code svi_shape_init(struct svi_shape *s, int max_features, const char *fixed, svs_error *err) {
    *s = (struct svi_shape){.max_features = max_features};
    if (max_features < 1 || max_features > FEATURES_MAX)
        return svi_fail(err, SVS_SETTING, "max.features is 1 to %d, not %d", FEATURES_MAX, max_features);
    svs_code code = fill(s, fixed, err);
    if (code != SVS_OK)
        svi_shape_clear(s);
    return code;
}

void svi_shape_clear(struct svi_shape *s) {
    svs_features_free(&s->names);
    svi_free(s->row);
    svi_free(s->marks);
    *s = (struct svi_shape){0};
}

void svi_shape_begin_row(struct svi_shape *s) {
    if (++s->round != 0)
        return;
    memset(s->marks, 0,
           (size_t)s->max_features * sizeof *s->marks); /* the count wrapped: old marks would match */
    s->round = 1;
}

void svi_shape_restore(struct svi_shape *s) {
    svs_features_truncate(s->names, s->names_kept);
}

void svi_shape_commit(struct svi_shape *s, const struct svi_message *m) {
    if (!m->has_x)
        return;
    s->kind = m->kind;
    if (m->d > s->d)
        s->d = m->d;
    s->names_kept = svs_features_count(s->names);
}

static svs_code wrong_kind(const struct svi_shape *s, const struct svi_message *m, svs_error *err) {
    return svi_fail(err, SVS_WRONG_KIND,
                    "x is %s, but the stream's first sample was %s: send all in that form",
                    kind_names[m->kind], kind_names[s->kind]);
}

static svs_code wrong_dimension(const struct svi_shape *s, const struct svi_message *m, svs_error *err) {
    return svi_fail(err, SVS_WRONG_DIMENSION, "x has %d features, but this stream has %d", m->d, s->d);
}

svs_code svi_shape_fits(const struct svi_shape *s, const struct svi_message *m, svs_error *err) {
    if (!m->has_x)
        return SVS_OK;
    if (s->kind != SVI_UNSET && m->kind != s->kind)
        return wrong_kind(s, m, err);
    bool dense = m->kind == SVI_DENSE;
    if (dense && (s->kind == SVI_DENSE || s->fixed_names) && m->d != s->d)
        return wrong_dimension(s, m, err);
    if (dense && m->d < 1)
        return svi_fail(err, SVS_WRONG_DIMENSION, "x is empty: a dense sample has 1 feature or more");
    if (s->fixed_names && m->d > s->d)
        return svi_fail(err, SVS_BAD_COLUMN, "x has column %d, but the setting `features` names %d", m->d - 1,
                        s->d);
    if (m->d > s->max_features)
        return svi_fail(err, SVS_LIMIT, "x has %d features, at most %d are taken: raise max.features", m->d,
                        s->max_features);
    return SVS_OK;
}
