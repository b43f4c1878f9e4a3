#include "data/message.h"

#include "base/fail.h"

void svi_shape_commit(struct svi_shape *s, const struct svi_message *m) {
    if (!m->has_x)
        return;
    s->kind = m->kind;
    /* d never shrinks: a row that names fewer columns leaves the others 0. */
    if (m->d > s->d)
        s->d = m->d;
    s->names_kept = svs_features_count(s->names);
}

svs_code svi_shape_compare(const struct svi_shape *s, const struct svi_message *m, svs_error *err) {
    static const char *const kinds[] = {"unset", "dense (an array or packed numbers)",
                                        "sparse (a map of columns)", "named (a map of names)"};
    if (!m->has_x || (m->kind == SVI_NAMED && s->kind == SVI_NAMED && m->d == s->d))
        return SVS_OK; /* the common case of named rows */
    /* Rows under names fit a dense stream whose columns all have names. */
    const bool named = m->kind == SVI_NAMED && s->kind == SVI_DENSE && s->names_kept >= s->d;
    /* From the form to the width: each text assumes that the tests before it passed. */
    if (s->kind != SVI_UNSET && m->kind != s->kind && !named)
        return svi_fail(err, SVS_WRONG_KIND,
                        "x is %s, but the stream's first sample was %s: send all in that form",
                        kinds[m->kind], kinds[s->kind]);
    bool dense = m->kind == SVI_DENSE && !s->mixed;
    /* An array has no names, so its width must be that of the stream, or of the names that it was given. */
    if (dense && (s->kind == SVI_DENSE || s->fixed_names) && m->d != s->d)
        return svi_fail(err, SVS_WRONG_DIMENSION, "x has %d features, but this stream has %d", m->d, s->d);
    if (dense && s->kind == SVI_UNSET && s->names_kept > 0 && m->d != s->names_kept)
        return svi_fail(err, SVS_WRONG_DIMENSION,
                        "x has %d features, but this stream's columns have %d names", m->d, s->names_kept);
    if (dense && m->d < 1)
        return svi_fail(err, SVS_WRONG_DIMENSION, "x is empty: a dense sample has 1 feature or more");
    if (s->fixed_names && m->d > s->d && !s->mixed)
        return svi_fail(err, SVS_BAD_COLUMN, "x has column %d, but the setting `features` names %d", m->d - 1,
                        s->d);
    if (m->d > s->max_features)
        return svi_fail(err, SVS_LIMIT, "x has %d features, at most %d are allowed: raise max.features", m->d,
                        s->max_features);
    return SVS_OK;
}
