#include "wire/novelty_file.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "linalg/pass.h"
#include "novelty/lags.h"
#include "novelty/model.h"
#include "wire/decode.h"
#include "wire/envelope.h"
#include "wire/fields.h"

#define FORMAT       "svmstream-novelty"
#define VERSION      1
#define FEATURES_MAX 10000000
#define COUNT_MAX    100000000 /* support vectors */
#define NAME_MAX_LAG (SVS_NAME_MAX + 16)
#define ROUNDING     1e-9

static const char *const kernels[] = {[SVS_NOVELTY_RBF] = "rbf",
                                      [SVS_NOVELTY_LAPLACIAN] = "laplacian",
                                      [SVS_NOVELTY_POLYNOMIAL] = "polynomial"};

/* ---- writing */

static void put_number(struct svi_pack *p, const char *key, double value) {
    svi_pack_key(p, key);
    svi_pack_real(p, value);
}

static void put_integer(struct svi_pack *p, const char *key, int64_t value) {
    svi_pack_key(p, key);
    svi_pack_int(p, value);
}

static void put_doubles(struct svi_pack *p, const char *key, const double *v, int count) {
    svi_pack_key(p, key);
    if (v)
        svi_pack_doubles(p, v, (size_t)count);
    else
        svi_pack_nil(p);
}

static svs_code put_member(struct svi_pack *p, const svs_novelty_model *m, const svs_novelty_member *e) {
    const size_t d = (size_t)m->d, count = (size_t)e->count;
    double *support = svi_alloc_array(count, d * sizeof *support);
    if (!support)
        return SVS_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        memcpy(support + i * d, e->support + i * (size_t)m->stride, d * sizeof *support);
    svi_pack_map(p, 9);
    put_number(p, "gamma", e->gamma);
    put_number(p, "share", e->share);
    put_number(p, "rho", e->rho);
    put_number(p, "worst", e->worst);
    put_number(p, "violation", e->violation);
    put_integer(p, "rounds", e->rounds);
    put_integer(p, "outside", e->outside);
    svi_pack_key(p, "z");
    svi_pack_doubles(p, e->z, count);
    svi_pack_key(p, "support");
    svi_pack_doubles(p, support, count * d);
    svi_free(support);
    return SVS_OK;
}

static void put_names(struct svi_pack *p, const svs_novelty_model *m) {
    svi_pack_key(p, "features");
    if (!m->features) {
        svi_pack_nil(p);
        return;
    }
    svi_pack_array(p, (size_t)m->d);
    for (int j = 0; j < m->d; j++)
        svi_pack_text(p, m->features[j]);
}

static svs_code encode(const svs_novelty_model *m, struct svi_bytes *out) {
    struct svi_pack p;
    svs_code code = SVS_OK;
    svi_envelope_begin(&p, out, FORMAT, VERSION, 13);
    put_integer(&p, "d", m->d);
    put_integer(&p, "lags", m->lags > 1 ? m->lags : 1);
    put_integer(&p, "differences", m->differences);
    svi_pack_key(&p, "kernel");
    svi_pack_text(&p, kernels[m->kernel]);
    put_integer(&p, "degree", m->degree);
    put_integer(&p, "fosvm", m->fosvm);
    put_number(&p, "theta", m->theta);
    put_integer(&p, "trained", m->trained);
    put_integer(&p, "trimmed", m->trimmed);
    put_names(&p, m);
    put_doubles(&p, "center", m->center, m->d);
    put_doubles(&p, "inverse", m->inverse, m->d);
    svi_pack_key(&p, "members");
    svi_pack_array(&p, (size_t)m->members);
    for (int e = 0; e < m->members && code == SVS_OK; e++)
        code = put_member(&p, m, &m->member[e]);
    svs_code end = svi_envelope_end(&p);
    return code == SVS_OK ? end : code;
}

static svs_code write_bytes(void *user, FILE *to, svs_error *err) {
    const struct svi_bytes *bytes = user;
    return fwrite(bytes->data, 1, bytes->size, to) == bytes->size
               ? SVS_OK
               : svi_fail(err, SVS_IO, "the model could not be written: is the disk full?");
}

svs_code svi_novelty_write(const svs_novelty_model *m, const char *path, svs_error *err) {
    struct svi_bytes bytes = {0};
    svs_code code = encode(m, &bytes);
    code = code == SVS_OK ? svi_file_write(path, write_bytes, &bytes, err)
                          : svi_fail_memory(err, "a model file");
    svi_bytes_clear(&bytes);
    return code;
}

/* ---- reading */

enum key {
    D,
    LAGS,
    DIFFERENCES,
    KERNEL,
    DEGREE,
    FOSVM,
    THETA,
    TRAINED,
    TRIMMED,
    FEATURES,
    CENTER,
    INVERSE,
    MEMBERS,
    KEYS
};

static const char *const key_names[KEYS] = {"d",      "lags",    "differences", "kernel",  "degree",
                                            "fosvm",  "theta",   "trained",     "trimmed", "features",
                                            "center", "inverse", "members"};

enum member_key { GAMMA, SHARE, RHO, WORST, VIOLATION, ROUNDS, OUTSIDE, Z, SUPPORT, MEMBER_KEYS };

static const char *const member_names[MEMBER_KEYS] = {"gamma",  "share",   "rho", "worst",  "violation",
                                                      "rounds", "outside", "z",   "support"};

/* The scalars of the file. */
struct parts {
    int64_t d, lags, differences, degree, fosvm, trained, trimmed;
    int kernel;
    double theta;
};

static svs_code take_scalars(struct svi_fields *f, struct parts *p) {
    const struct {
        int key;
        int64_t low, high, *out;
    } integers[] = {{D, 1, FEATURES_MAX, &p->d},
                    {LAGS, 1, SVI_LAGS_MAX, &p->lags},
                    {DIFFERENCES, 0, 1, &p->differences},
                    {DEGREE, 0, 20, &p->degree},
                    {FOSVM, 1, 2, &p->fosvm},
                    {TRAINED, 0, INT64_MAX, &p->trained},
                    {TRIMMED, 0, INT64_MAX, &p->trimmed}};
    svs_code code = svi_field_word(f, KERNEL, kernels, 3, &p->kernel);
    if (code == SVS_OK)
        code = svi_field_number(f, THETA, DBL_MIN, 1 - DBL_EPSILON / 2, &p->theta);
    for (size_t i = 0; i < sizeof integers / sizeof *integers && code == SVS_OK; i++)
        code = svi_field_integer(f, integers[i].key, integers[i].low, integers[i].high, integers[i].out);
    if (code == SVS_OK && (p->d % p->lags != 0 || p->trimmed > p->trained ||
                           (p->kernel == SVS_NOVELTY_POLYNOMIAL && p->degree < 1)))
        return svi_fail(f->err, SVS_WRONG_TYPE, "the %s's numbers contradict each other", f->what);
    return code;
}

/* Names as C strings, cut from the file's text. */
struct names {
    char *text;
    const char **name; /* NULL = there are none */
};

static svs_code copy_names(struct svi_fields *f, const uint8_t *at, int64_t d, struct names *n) {
    size_t room = 0;
    struct svi_item item;
    const uint8_t *next = at;
    for (int64_t j = 0; j < d; j++) {
        next = svi_item_read(next, &item);
        if (item.type != SVI_STRING || item.length > NAME_MAX_LAG || memchr(item.body, 0, item.length) ||
            !svi_utf8_valid((const char *)item.body, item.length))
            return svi_fail(f->err, SVS_WRONG_TYPE, "features[%lld] of the %s is no name", (long long)j,
                            f->what);
        room += item.length + 1;
    }
    n->name = svi_alloc_array((size_t)d, sizeof *n->name);
    char *to = n->text = svi_alloc(room);
    if (!n->name || !n->text)
        return svi_fail_memory(f->err, "the names of a model");
    for (int64_t j = 0; j < d; j++, to += item.length + 1) {
        at = svi_item_read(at, &item);
        memcpy(to, item.body, item.length);
        n->name[j] = to;
    }
    return SVS_OK;
}

static svs_code take_names(struct svi_fields *f, int64_t d, struct names *n) {
    struct svi_item array;
    const uint8_t *at = svi_item_read(f->at[FEATURES], &array);
    if (array.type == SVI_NIL)
        return SVS_OK;
    if (array.type != SVI_ARRAY || array.length != d)
        return svi_fail(f->err, SVS_WRONG_TYPE, "the %s's features must be nil or an array of d names",
                        f->what);
    return copy_names(f, at, d, n);
}

static bool is_nil(const struct svi_fields *f, int k) {
    struct svi_item item;
    svi_item_read(f->at[k], &item);
    return item.type == SVI_NIL;
}

/* Key k holds d doubles: before room is made for so many. */
static svs_code find_column(struct svi_fields *f, int k, int64_t d, const uint8_t **body) {
    const int64_t count = svi_field_packed(f, k, body);
    if (count < 0)
        return SVS_WRONG_TYPE;
    if (count != d)
        return svi_fail(f->err, SVS_WRONG_TYPE, "the %s has %lld values of %s for %lld features", f->what,
                        (long long)count, f->names[k], (long long)d);
    return SVS_OK;
}

/* center and inverse; NULL in both for a model that is not scaled. */
static svs_code find_coordinates(struct svi_fields *f, int64_t d, const uint8_t **center,
                                 const uint8_t **inverse) {
    *center = *inverse = NULL;
    if (is_nil(f, CENTER) && is_nil(f, INVERSE))
        return SVS_OK;
    svs_code code = find_column(f, CENTER, d, center);
    return code == SVS_OK ? find_column(f, INVERSE, d, inverse) : code;
}

static svs_code take_coordinates(struct svi_fields *f, const uint8_t *center, const uint8_t *inverse,
                                 svs_novelty_model *m) {
    if (!center)
        return SVS_OK;
    svs_code code = svi_field_doubles(f, CENTER, center, m->d, (double *)m->center);
    if (code == SVS_OK)
        code = svi_field_doubles(f, INVERSE, inverse, m->d, (double *)m->inverse);
    for (int j = 0; j < m->d && code == SVS_OK; j++)
        if (!(m->inverse[j] > 0))
            code = svi_fail(f->err, SVS_WRONG_TYPE, "inverse[%d] of the %s is not positive", j, f->what);
    return code;
}

/* ---- members */

static svs_code take_figures(struct svi_fields *f, svs_novelty_member *e) {
    const struct {
        int key;
        double low, high, *out;
    } numbers[] = {{GAMMA, DBL_MIN, DBL_MAX, &e->gamma},
                   {SHARE, DBL_MIN, 1, &e->share},
                   {RHO, DBL_MIN, DBL_MAX, &e->rho},
                   {WORST, -DBL_MAX, DBL_MAX, &e->worst},
                   {VIOLATION, 0, DBL_MAX, &e->violation}};
    svs_code code = SVS_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && code == SVS_OK; i++)
        code = svi_field_number(f, numbers[i].key, numbers[i].low, numbers[i].high, numbers[i].out);
    if (code == SVS_OK)
        code = svi_field_integer(f, ROUNDS, 0, INT64_MAX, &e->rounds);
    return code == SVS_OK ? svi_field_integer(f, OUTSIDE, 0, INT64_MAX, &e->outside) : code;
}

static svs_code take_vectors(struct svi_fields *f, const svs_novelty_model *m, svs_novelty_member *e,
                             const struct svi_member_room *room, const uint8_t *z, const uint8_t *support) {
    const struct svi_kernels *pass = svi_kernels_get(SVS_ISA_BEST);
    double sum = 0;
    svs_code code = svi_field_doubles(f, Z, z, e->count, room->z);
    for (int i = 0; i < e->count && code == SVS_OK; i++) {
        double *x = room->support + (size_t)i * (size_t)m->stride;
        code = svi_field_doubles(f, SUPPORT, support + 8 * (size_t)i * (size_t)m->d, m->d, x);
        room->norm2[i] = m->kernel == SVS_NOVELTY_POLYNOMIAL ? pass->dot(x, x, m->stride) : 0;
        if (code == SVS_OK && !(room->z[i] > 0))
            code = svi_fail(f->err, SVS_WRONG_TYPE, "z[%d] of the %s is not positive", i, f->what);
        sum += room->z[i];
    }
    if (code == SVS_OK && !(fabs(e->rho * sum - 1) < ROUNDING))
        code = svi_fail(f->err, SVS_WRONG_TYPE, "rho of the %s is not 1 / sum of z", f->what);
    return code;
}

static svs_code take_member(const uint8_t *at, const uint8_t *end, svs_novelty_model *m, svs_error *err) {
    struct svi_fields f = {.what = "member", .names = member_names, .count = MEMBER_KEYS, .err = err};
    struct svi_member_room room;
    svs_novelty_member figures = {0};
    const uint8_t *z, *support;
    svs_code code = svi_fields_find(&f, at, end);
    if (code == SVS_OK)
        code = take_figures(&f, &figures);
    if (code != SVS_OK)
        return code;
    const int64_t count = svi_field_packed(&f, Z, &z), values = svi_field_packed(&f, SUPPORT, &support);
    if (count < 0 || values < 0)
        return SVS_WRONG_TYPE;
    if (count < 1 || count > COUNT_MAX || values != count * m->d)
        return svi_fail(err, SVS_WRONG_TYPE, "the lengths of z and support contradict each other");
    code = svi_novelty_model_member(m, (int)count, &room, err);
    if (code != SVS_OK)
        return code;
    svs_novelty_member *e = &m->member[m->members - 1];
    figures.count = e->count;
    figures.support = e->support;
    figures.norm2 = e->norm2;
    figures.z = e->z;
    *e = figures;
    return take_vectors(&f, m, e, &room, z, support);
}

static svs_code take_members(struct svi_fields *f, const uint8_t *end, svs_novelty_model *m) {
    struct svi_item array;
    const uint8_t *at = svi_item_read(f->at[MEMBERS], &array);
    svs_code code = SVS_OK;
    double shares = 0;
    if (array.type != SVI_ARRAY || array.length < 1 || array.length > SVS_MEMBERS_MAX)
        return svi_fail(f->err, SVS_WRONG_TYPE, "the %s's members must be an array of 1 to %d", f->what,
                        SVS_MEMBERS_MAX);
    for (uint32_t e = 0; e < array.length && code == SVS_OK; e++) {
        code = take_member(at, end, m, f->err);
        svi_walk(&at, end, SVI_DEPTH_MAX);
        shares += code == SVS_OK ? m->member[e].share : 0;
    }
    if (code == SVS_OK && fabs(shares - 1) > ROUNDING)
        return svi_fail(f->err, SVS_WRONG_TYPE, "the shares of the members add up to %.9g, not to 1", shares);
    return code;
}

/* ---- the whole */

static void set_scalars(const struct parts *p, svs_novelty_model *m) {
    m->lags = (int)p->lags;
    m->differences = p->differences;
    m->kernel = (svs_novelty_kernel)p->kernel;
    m->degree = (int)p->degree;
    m->fosvm = (int)p->fosvm;
    m->theta = p->theta;
    m->trained = p->trained;
    m->trimmed = p->trimmed;
}

static svs_code build(struct svi_fields *f, const struct parts *p, const struct names *names,
                      const uint8_t *end, svs_novelty_model **out) {
    const uint8_t *center, *inverse;
    svs_code code = find_coordinates(f, p->d, &center, &inverse);
    if (code != SVS_OK)
        return code;
    *out = svi_novelty_model_new((int)p->d, center != NULL, names->name, f->err);
    if (!*out)
        return SVS_NO_MEMORY;
    set_scalars(p, *out);
    code = take_coordinates(f, center, inverse, *out);
    return code == SVS_OK ? take_members(f, end, *out) : code;
}

static svs_code read_fields(const struct svi_envelope *e, svs_novelty_model **out, svs_error *err) {
    struct svi_fields f = {.what = "model of novelty", .names = key_names, .count = KEYS, .err = err};
    struct parts p = {0};
    struct names names = {0};
    svs_code code = svi_fields_find(&f, e->bytes, e->end);
    if (code == SVS_OK)
        code = take_scalars(&f, &p);
    if (code == SVS_OK)
        code = take_names(&f, p.d, &names);
    if (code == SVS_OK)
        code = build(&f, &p, &names, e->end, out);
    svi_free(names.name);
    svi_free(names.text);
    return code;
}

svs_novelty_model *svi_novelty_decode(const void *bytes, size_t size, svs_error *err) {
    struct svi_envelope e;
    svs_novelty_model *m = NULL;
    svs_code code = svi_envelope_open(&e, bytes, size, err);
    if (code == SVS_OK && !svi_item_is(&e.format, FORMAT))
        code = svi_fail(err, SVS_WRONG_TYPE,
                        "the file is no model of novelty: `svmstream novelty train` makes one");
    if (code == SVS_OK)
        code = svi_envelope_check(&e, VERSION, err);
    if (code == SVS_OK)
        code = read_fields(&e, &m, err);
    if (code != SVS_OK)
        svs_novelty_free(&m);
    return m;
}

svs_novelty_model *svi_novelty_read(const char *path, svs_error *err) {
    char *bytes;
    size_t size = 0;
    svs_error mine = {0};
    svs_novelty_model *m = NULL;
    svs_code code = svi_file_read(path, &bytes, &size, &mine);
    if (code == SVS_OK)
        m = svi_novelty_decode(bytes, size, &mine);
    svi_free(bytes);
    if (!m)
        svi_fail(err, mine.code, "%.100s: %.150s", path, mine.text);
    return m;
}
