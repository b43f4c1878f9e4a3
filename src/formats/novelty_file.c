/* One-class models as files: writing first, then reading.
 *
 * Nothing in a file is trusted, whatever its checksum. Each map is read by a table of its fields
 * (wire/fields.h) into plain parts that point into the bytes. Lengths are compared with each other
 * before memory is allocated. Only then is the model built. A failure anywhere frees what exists,
 * so a partial model is never returned.
 *
 * Read svi_novelty_file_decode at the end first: scalars, names, coordinates, members, columns. */
#include "formats/novelty_file.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "formats/checked_file.h"
#include "formats/file_io.h"
#include "formats/schema_text.h"
#include "linalg/kernels.h"
#include "novelty/lags.h"
#include "novelty/novelty_model.h"
#include "wire/decode.h"

#define FORMAT       "svmstream-novelty"
#define VERSION      1
#define WHAT         "novelty model"
#define FEATURES_MAX 10000000
#define COUNT_MAX    100000000 /* support vectors */
#define NAME_MAX_LAG (SVS_NAME_MAX + 16)
#define ROUNDING     1e-9

/* ---- writing */

static svs_code put_member(struct svi_pack *p, const svs_novelty_model *m, const svs_novelty_member *e) {
    const size_t d = (size_t)m->d, count = (size_t)e->count;
    double *support = svi_alloc_array(count, d * sizeof *support);
    if (!support)
        return SVS_NO_MEMORY;
    /* In memory vectors are `stride` apart, in the file d. */
    for (size_t i = 0; i < count; i++)
        memcpy(support + i * d, e->support + i * (size_t)m->stride, d * sizeof *support);
    const struct svi_open_map map = svi_pack_open(p);
    svi_put_real(p, "gamma", e->gamma);
    svi_put_real(p, "share", e->share);
    svi_put_real(p, "rho", e->rho);
    svi_put_real(p, "worst", e->worst);
    svi_put_real(p, "violation", e->violation);
    svi_put_int(p, "rounds", e->rounds);
    svi_put_int(p, "outside", e->outside);
    svi_put_doubles(p, "z", e->z, count);
    svi_put_doubles(p, "support", support, count * d);
    svi_pack_close(p, map);
    svi_free(support);
    return SVS_OK;
}

static svs_code novelty_encode(const svs_novelty_model *m, struct svi_bytes *out) {
    struct svi_pack p;
    svs_code code = SVS_OK;
    const struct svi_open_map map = svi_checked_file_begin(&p, out, FORMAT, VERSION);
    /* Once packing has failed, further calls do nothing: only put_member can fail by itself. */
    svi_put_int(&p, "d", m->d);
    svi_put_int(&p, "lags", m->lags > 1 ? m->lags : 1);
    svi_put_int(&p, "differences", m->differences);
    svi_put_text(&p, "kernel", svi_novelty_kernels[m->kernel]);
    svi_put_int(&p, "degree", m->degree);
    svi_put_int(&p, "fosvm", m->fosvm);
    svi_put_real(&p, "theta", m->theta);
    svi_put_int(&p, "trained", m->trained);
    svi_put_int(&p, "trimmed", m->trimmed);
    svi_pack_key(&p, "features");
    svi_pack_names(&p, m->features, m->d);
    svi_put_doubles(&p, "center", m->center, (size_t)m->d);
    svi_put_doubles(&p, "inverse", m->inverse, (size_t)m->d);
    if (m->schema) {
        svi_pack_key(&p, "schema");
        svi_pack_raw(&p, m->schema, m->schema_size);
    }
    svi_pack_key(&p, "members");
    svi_pack_array(&p, (size_t)m->members);
    for (int e = 0; e < m->members && code == SVS_OK; e++)
        code = put_member(&p, m, &m->member[e]);
    svs_code end = svi_checked_file_end(&p, map);
    return code == SVS_OK ? end : code;
}

svs_code svi_novelty_file_write(const svs_novelty_model *m, const char *path, svs_error *err) {
    struct svi_bytes bytes = {0};
    svs_code code = novelty_encode(m, &bytes);
    code = code == SVS_OK ? svi_file_write_bytes(path, &bytes, err) : svi_fail_memory(err, "a model file");
    svi_bytes_clear(&bytes);
    return code;
}

/* ---- reading: members */

struct member_parts {
    double gamma, share, rho, worst, violation;
    int64_t rounds, outside;
    struct svi_doubles z, support;
};

#define MEMBER_PARTS struct member_parts

static const struct svi_field member_fields[] = {
    SVI_FIELD(MEMBER_PARTS, gamma, REAL, DBL_MIN, DBL_MAX),
    SVI_FIELD(MEMBER_PARTS, share, REAL, DBL_MIN, 1),
    SVI_FIELD(MEMBER_PARTS, rho, REAL, DBL_MIN, DBL_MAX),
    SVI_FIELD(MEMBER_PARTS, worst, REAL, -HUGE_VAL, HUGE_VAL),
    SVI_FIELD(MEMBER_PARTS, violation, REAL, 0, DBL_MAX),
    SVI_FIELD(MEMBER_PARTS, rounds, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD(MEMBER_PARTS, outside, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD(MEMBER_PARTS, z, DOUBLES, 0, 0),
    SVI_FIELD(MEMBER_PARTS, support, DOUBLES, 0, 0),
};

/* Copies vector i. NaN is a missing coordinate, which polynomial kernels do not allow. */
static svs_code take_vector(const struct member_parts *p, const svs_novelty_model *m, int i, double *x,
                            svs_error *err) {
    for (int j = 0; j < m->d; j++) {
        const int64_t at = (int64_t)i * m->d + j;
        x[j] = svi_doubles_get(&p->support, at);
        if (isinf(x[j]) || (isnan(x[j]) && m->kernel == SVS_NOVELTY_POLYNOMIAL))
            return svi_fail(err, SVS_NOT_FINITE, "support[%lld] of the member is not finite", (long long)at);
    }
    return SVS_OK;
}

static svs_code take_vectors(const struct member_parts *p, const svs_novelty_model *m, int count,
                             const struct svi_member_slot *slot, svs_error *err) {
    const struct svi_kernels *pass = svi_kernels_get(SVS_ISA_BEST);
    double sum = 0;
    svs_code code = svi_doubles_copy(&p->z, 0, count, slot->z, "member", "z", err);
    for (int i = 0; i < count && code == SVS_OK; i++) {
        double *x = slot->support + (size_t)i * (size_t)m->stride;
        code = take_vector(p, m, i, x, err);
        /* |x|^2 is not in the file: polynomial kernels score with it. */
        slot->norm2[i] = m->kernel == SVS_NOVELTY_POLYNOMIAL ? pass->dot(x, x, m->stride) : 0;
        if (code == SVS_OK && !(slot->z[i] > 0))
            code = svi_fail(err, SVS_WRONG_TYPE, "z[%d] of the member is not positive", i);
        sum += slot->z[i];
    }
    /* After all vectors are there; also after a failure, when the model is freed anyway. */
    svi_novelty_model_mark(m, slot, count);
    /* rho = 1 / sum z (ALGORITHMS 7): both are in the file, and must agree. */
    if (code == SVS_OK && !(fabs(p->rho * sum - 1) < ROUNDING))
        code = svi_fail(err, SVS_WRONG_TYPE, "rho of the member is not 1 / sum of z");
    return code;
}

static svs_code take_member(const uint8_t *at, const uint8_t *end, svs_novelty_model *m, svs_error *err) {
    struct member_parts p;
    struct svi_member_slot slot;
    SVI_TRY(svi_fields_read("member", SVI_FIELDS(member_fields), at, end, &p, err));
    /* Before svi_novelty_model_member, which allocates by these lengths. */
    if (p.z.count < 1 || p.z.count > COUNT_MAX || p.support.count != p.z.count * m->d)
        return svi_fail(err, SVS_WRONG_TYPE, "the lengths of z and support contradict each other");
    SVI_TRY(svi_novelty_model_member(m, (int)p.z.count, &slot, err));
    svs_novelty_member *e = &m->member[m->members - 1];
    e->gamma = p.gamma;
    e->share = p.share;
    e->rho = p.rho;
    e->worst = p.worst;
    e->violation = p.violation;
    e->rounds = p.rounds;
    e->outside = p.outside;
    return take_vectors(&p, m, e->count, &slot, err);
}

static svs_code take_members(const uint8_t *at, const uint8_t *end, svs_novelty_model *m, svs_error *err) {
    struct svi_item array;
    svs_code code = SVS_OK;
    /* Scores of the members are mixed by their shares, which must add up to 1. */
    double shares = 0;
    at = svi_item_read(at, &array);
    if (array.type != SVI_ARRAY || array.length < 1 || array.length > SVS_MEMBERS_MAX)
        return svi_fail(err, SVS_WRONG_TYPE, "the " WHAT "'s members must be an array of 1 to %d",
                        SVS_MEMBERS_MAX);
    for (uint32_t e = 0; e < array.length && code == SVS_OK; e++) {
        code = take_member(at, end, m, err);
        /* To the next member: its map was read by name, so `at` is still at its start. */
        svi_walk(&at, end, SVI_DEPTH_MAX);
        shares += code == SVS_OK ? m->member[e].share : 0;
    }
    if (code == SVS_OK && fabs(shares - 1) > ROUNDING)
        return svi_fail(err, SVS_WRONG_TYPE, "the shares of the members add up to %.9g, not to 1", shares);
    return code;
}

/* ---- reading: the whole */

struct novelty_parts {
    int64_t d, lags, differences, degree, fosvm, trained, trimmed;
    int kernel;
    double theta;
    const uint8_t *features, *members, *schema; /* schema: NULL = absent */
    struct svi_doubles center, inverse;         /* body NULL: not scaled */
    char *text;                                 /* names as C strings, one after the other */
    const char **name;                          /* NULL: they are absent */
};

#define PARTS struct novelty_parts

static const struct svi_field novelty_fields[] = {
    SVI_FIELD(PARTS, d, INTEGER, 1, FEATURES_MAX),
    SVI_FIELD(PARTS, lags, INTEGER, 1, SVI_LAGS_MAX),
    SVI_FIELD(PARTS, differences, INTEGER, 0, 1),
    SVI_FIELD(PARTS, degree, INTEGER, 0, 20),
    SVI_FIELD(PARTS, fosvm, INTEGER, 1, 2),
    SVI_FIELD(PARTS, trained, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD(PARTS, trimmed, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD(PARTS, theta, REAL, DBL_MIN, 1 - DBL_EPSILON / 2),
    SVI_FIELD(PARTS, features, ANY, 0, 0),
    SVI_FIELD(PARTS, members, ANY, 0, 0),
    SVI_FIELD_OPTIONAL(PARTS, schema, ANY, 0, 0),
    SVI_FIELD_WORDS(PARTS, kernel, svi_novelty_kernels),
    SVI_FIELD_OPTIONAL(PARTS, center, DOUBLES, 0, 0),
    SVI_FIELD_OPTIONAL(PARTS, inverse, DOUBLES, 0, 0),
};

static svs_code take_names(struct novelty_parts *p, svs_error *err) {
    size_t capacity = 0;
    struct svi_item array, item;
    const uint8_t *at = svi_item_read(p->features, &array), *next = at;
    if (array.type == SVI_NIL)
        return SVS_OK;
    if (array.type != SVI_ARRAY || array.length != p->d)
        return svi_fail(err, SVS_WRONG_TYPE, "the " WHAT "'s features must be nil or an array of d names");
    for (int64_t j = 0; j < p->d; j++) {
        next = svi_item_read(next, &item);
        if (item.type != SVI_STRING || item.length > NAME_MAX_LAG || memchr(item.body, 0, item.length) ||
            !svi_utf8_valid((const char *)item.body, item.length))
            return svi_fail(err, SVS_WRONG_TYPE, "features[%lld] of the " WHAT " is not a name",
                            (long long)j);
        capacity += item.length + 1;
    }
    /* Two passes over the names: the first has checked them and measured their text. */
    p->name = svi_alloc_array((size_t)p->d, sizeof *p->name);
    char *to = p->text = svi_alloc(capacity);
    if (!p->name || !p->text)
        return svi_fail_memory(err, "the names of a model");
    for (int64_t j = 0; j < p->d; j++, to += item.length + 1) {
        at = svi_item_read(at, &item);
        memcpy(to, item.body, item.length);
        p->name[j] = to;
    }
    return SVS_OK;
}

/* Checks that hold before memory is allocated for a model of d features. */
static svs_code check_parts(const struct novelty_parts *p, svs_error *err) {
    const struct svi_doubles *const columns[] = {&p->center, &p->inverse};
    if (p->d % p->lags != 0 || p->trimmed > p->trained ||
        (p->kernel == SVS_NOVELTY_POLYNOMIAL && p->degree < 1))
        return svi_fail(err, SVS_WRONG_TYPE, "the " WHAT "'s numbers contradict each other");
    /* center and inverse: both, or neither. */
    for (int i = 0; i < 2 && (p->center.body || p->inverse.body); i++)
        if (columns[i]->count != p->d)
            return svi_fail(err, SVS_WRONG_TYPE, "the " WHAT " has %lld values of %s for %lld features",
                            (long long)columns[i]->count, i ? "inverse" : "center", (long long)p->d);
    return SVS_OK;
}

static svs_code take_coordinates(const struct novelty_parts *p, svs_novelty_model *m, svs_error *err) {
    if (!m->center)
        return SVS_OK;
    SVI_TRY(svi_doubles_copy(&p->center, 0, m->d, (double *)m->center, WHAT, "center", err));
    SVI_TRY(svi_doubles_copy(&p->inverse, 0, m->d, (double *)m->inverse, WHAT, "inverse", err));
    /* A scale of 0 or less would hide a feature or turn it round. */
    for (int j = 0; j < m->d; j++)
        if (!(m->inverse[j] > 0))
            return svi_fail(err, SVS_WRONG_TYPE, "inverse[%d] of the " WHAT " is not positive", j);
    return SVS_OK;
}

static svs_novelty_model *new_model(const struct novelty_parts *p, svs_error *err) {
    svs_novelty_model *m = svi_novelty_model_new((int)p->d, p->center.body != NULL, p->name, err);
    if (!m)
        return NULL;
    m->lags = (int)p->lags;
    m->differences = p->differences;
    m->kernel = (svs_novelty_kernel)p->kernel;
    m->degree = (int)p->degree;
    m->fosvm = (int)p->fosvm;
    m->theta = p->theta;
    m->trained = p->trained;
    m->trimmed = p->trimmed;
    return m;
}

/* The schema describes one sample, so d / lags features. */
static svs_code take_columns(const struct novelty_parts *p, const uint8_t *end, svs_novelty_model *m,
                             svs_error *err) {
    size_t size;
    if (!p->schema)
        return SVS_OK;
    svs_code code = svi_schema_measure(p->name, m->d / m->lags, p->schema, end, &size, err);
    return code == SVS_OK ? svi_novelty_model_describe(m, p->schema, size, err) : code;
}

svs_novelty_model *svi_novelty_file_decode(const void *bytes, size_t size, svs_error *err) {
    struct svi_checked_file file;
    struct novelty_parts p = {0};
    svs_novelty_model *m = NULL;
    svs_code code = svi_checked_file_open(&file, bytes, size, err);
    if (code == SVS_OK && strcmp(file.format, FORMAT) != 0)
        code =
            svi_fail(err, SVS_WRONG_TYPE, "the file is not a " WHAT ": `svmstream novelty train` makes one");
    if (code == SVS_OK)
        code = svi_checked_file_read(&file, VERSION, WHAT, SVI_FIELDS(novelty_fields), &p, err);
    /* Names and lengths before the model is made, for it is made of them; then its content. */
    const bool good = code == SVS_OK && take_names(&p, err) == SVS_OK && check_parts(&p, err) == SVS_OK &&
                      (m = new_model(&p, err)) && take_coordinates(&p, m, err) == SVS_OK &&
                      take_members(p.members, file.end, m, err) == SVS_OK &&
                      take_columns(&p, file.end, m, err) == SVS_OK;
    if (!good)
        svs_novelty_free(&m);
    svi_free(p.name);
    svi_free(p.text);
    return m;
}

svs_novelty_model *svi_novelty_file_read(const char *path, svs_error *err) {
    char *bytes;
    size_t size = 0;
    svs_error mine = {0};
    svs_novelty_model *m = NULL;
    svs_code code = svi_file_read(path, &bytes, &size, &mine);
    if (code == SVS_OK)
        m = svi_novelty_file_decode(bytes, size, &mine);
    svi_free(bytes);
    if (!m)
        svi_fail(err, mine.code, "%.100s: %.150s", path, mine.text);
    return m;
}
