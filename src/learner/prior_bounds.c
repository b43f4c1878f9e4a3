/* What is normal among the keys of a stream (prior_bounds.h).
 *
 * The normal spread is the median over the keys in which the feature varies: a hostile key is one of them,
 * and moves it by one rank. While too few keys have rows enough for a spread (fewer than a quarter of them,
 * or than SVI_PRIOR_MIN_KEYS) the distances between their first rows take its place: these are larger, by
 * what lies between keys, and known at once. Fewer than SVI_PRIOR_MIN_KEYS keys, or SVI_PRIOR_EARLY of first
 * rows, have nothing in common, and nothing is bounded.
 *
 * The values of a coordinate are gathered from all keys, one coordinate after the other: a pass over the
 * keys that counts them, and one that files them (bounds_file), as a counting sort does.
 *
 * Read svi_prior_bounds_make first, then bounds_fit; the verdicts (svi_prior_limit to svi_prior_outdated)
 * are what learners ask. */
#include "learner/prior_bounds.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "base/statistics.h"

#define SVI_PRIOR_EARLY 8      /* keys whose first rows say what is normal */
#define NORMAL          1.4826 /* of a normal law: the deviation over the median distance from the median */
#define LEVELS          3 /* typical distances between levels, and spreads, beyond which one does not count */
#define FACTOR          (1.0 / 4096)

static const struct svi_array bounds_table[] = {
#define OWNER struct svi_prior_bounds
    SVI_ARRAY_WITH(OWNER, usual, "usual spread", SVI_ARRAY_NUMBER, 0, SVI_AXIS(0)),
    SVI_ARRAY_WITH(OWNER, middle, "middle", SVI_ARRAY_NUMBER, 0, SVI_AXIS(0)),
    SVI_ARRAY_WITH(OWNER, apart, "apart", SVI_ARRAY_NUMBER, 0, SVI_AXIS(0)),
#undef OWNER
};
static const struct svi_arrays bounds_arrays = SVI_ARRAYS(bounds_table, "the bounds of all keys");

/* ---- verdicts */

double svi_prior_limit(const struct svi_prior_bounds *b, int coordinate) {
    return coordinate < b->n ? SVI_PRIOR_MAX_MULTIPLE * b->usual[coordinate] : INFINITY;
}

double svi_prior_most(const struct svi_prior_bounds *b) {
    return b->n > 0 ? SVI_PRIOR_MAX_MULTIPLE * b->weight : INFINITY;
}

bool svi_prior_near(const struct svi_prior_bounds *b, int coordinate, double level) {
    return coordinate >= b->n || fabs(level - b->middle[coordinate]) <= b->apart[coordinate];
}

/* The square: a key's rows enter a sum of squares, and so does their excess. */
double svi_prior_excess(const struct svi_prior_bounds *b, int coordinate, double spread) {
    const double usual = coordinate < b->n ? b->usual[coordinate] : INFINITY;
    const double times = usual > 0 ? spread / usual : 0;
    return times > 0 ? times * times : 0;
}

/* What the key weighs among others, by the weight of its rows and the energy of its spread, is brought down
 * to SVI_PRIOR_MAX_KEY_WEIGHT by powers of 4, which are exact in floating point: what leaves later is what
 * entered. */
double svi_prior_factor(const struct svi_prior_bounds *b, double excess, double weight) {
    const double heavy = b->n > 0 ? weight / b->weight : 0, all = heavy * fmax(1, excess);
    double factor = 1;
    while (all * factor > SVI_PRIOR_MAX_KEY_WEIGHT && factor >= FACTOR)
        factor /= 4;
    return factor >= FACTOR ? factor : 0;
}

/* Rows are held by a limit that exists no more, or is more than 4 times another. Within that factor keys
 * keep their verdicts: judging again reads all rows of a key. */
static bool bounds_moved(double was, double is) {
    return is < INFINITY && (was == INFINITY || (is > 0 && was > 4 * is) || (was > 0 && is > 4 * was));
}

/* Its coordinate. */
static int bounds_at(const struct svi_prior_trait *t, const uint16_t *up) {
    const bool bounded = t->place != SVI_PRIOR_NONE && !(t->flags & SVI_PRIOR_FREE);
    return bounded ? up[t->place] : SVI_PRIOR_NONE;
}

/* Would the key reach other verdicts by these bounds? Decided by its traits alone, as the key may be on
 * disk. */
bool svi_prior_outdated(const struct svi_prior_bounds *b, const struct svi_prior_key *key,
                        const uint16_t *up) {
    double excess = 0;
    bool judged = false;
    for (int i = 0; i < key->count; i++) {
        const struct svi_prior_trait *t = &key->trait[i];
        const int at = bounds_at(t, up);
        if (at == SVI_PRIOR_NONE)
            continue;
        const double limit = svi_prior_limit(b, at);
        if (bounds_moved((double)t->limit, limit))
            return true;
        if (t->spread < 0)
            continue;
        judged = true;
        if (at > 0 && ((t->spread > 0 && (t->limit == 0) != (limit == 0)) ||
                       ((t->flags & SVI_PRIOR_LEVEL) != 0) != svi_prior_near(b, at, (double)t->mean)))
            return true;
        excess = fmax(excess, svi_prior_excess(b, at, (double)t->spread));
    }
    return bounds_moved((double)key->most, svi_prior_most(b)) ||
           (judged && (float)svi_prior_factor(b, excess, (double)key->weight) != key->factor);
}

/* ---- of all keys */

/* Values of one coordinate, of `count` keys. */
struct bounds_values {
    double *mean, *spread, *scratch;
    int64_t count;
};

/* The median distance from the median, as a deviation. Where most values are the same it is that of the
 * others, if they are enough. Destroys v. */
static double bounds_scatter(double *v, int64_t n, double *middle) {
    int64_t others = 0;
    *middle = svi_quantile(v, n, 0.5);
    for (int64_t i = 0; i < n; i++)
        v[i] = fabs(v[i] - *middle);
    const double usual = svi_quantile(v, n, 0.5);
    if (usual > 0)
        return NORMAL * usual;
    for (int64_t i = 0; i < n; i++)
        if (v[i] > 0)
            v[others++] = v[i];
    return others >= SVI_PRIOR_MIN_KEYS ? NORMAL * svi_quantile(v, others, 0.5) : 0;
}

/* The median spread of the keys in which it varies. */
static double bounds_normal(const struct bounds_values *v) {
    int64_t varies = 0;
    for (int64_t i = 0; i < v->count; i++)
        if (v->spread[i] > 0)
            v->scratch[varies++] = v->spread[i];
    return varies >= SVI_PRIOR_MIN_KEYS ? svi_quantile(v->scratch, varies, 0.5) : 0;
}

/* What is normal in one coordinate. `spreads`: by the spreads within keys; else, `early`, by the first rows.
 */
static void bounds_fit(struct svi_prior_bounds *b, int at, const struct bounds_values *v, bool spreads,
                       bool early) {
    double middle = 0;
    b->usual[at] = b->apart[at] = INFINITY;
    b->middle[at] = 0;
    if (!spreads && !early)
        return;
    const double scatter = v->count > 0 ? bounds_scatter(v->mean, v->count, &middle) : 0;
    const double within = spreads ? bounds_normal(v) : scatter;
    b->usual[at] = within;
    b->middle[at] = middle;
    b->apart[at] = LEVELS * (scatter + within);
    /* Coordinate 0 is the target, which has no center by key: its limit must also cover the scatter between
     * keys, and it is never "not in common". */
    if (at > 0)
        return;
    b->usual[at] += spreads ? scatter : 0; /* targets have no center by key */
    if (!(b->usual[at] > 0))
        b->usual[at] = b->apart[at] = INFINITY;
}

/* Where the values of each coordinate begin, in first[0 .. n]. */
static void bounds_count(const struct svi_prior_key *const *key, const uint16_t *const *up, int64_t count,
                         bool spreads, int n, int64_t *first) {
    for (int64_t k = 0; k < count; k++)
        for (int i = 0; i < key[k]->count; i++) {
            const int at = bounds_at(&key[k]->trait[i], up[k]);
            if (at < n && (!spreads || key[k]->trait[i].spread >= 0))
                first[at + 1]++;
        }
    for (int j = 0; j < n; j++)
        first[j + 1] += first[j];
}

static void bounds_file(const struct svi_prior_key *const *key, const uint16_t *const *up, int64_t count,
                        bool spreads, int n, int64_t *next, double *mean, double *spread) {
    for (int64_t k = 0; k < count; k++)
        for (int i = 0; i < key[k]->count; i++) {
            const struct svi_prior_trait *t = &key[k]->trait[i];
            const int at = bounds_at(t, up[k]);
            if (at >= n || (spreads && t->spread < 0))
                continue;
            mean[next[at]] = (double)t->mean;
            spread[next[at]++] = (double)t->spread;
        }
}

static bool bounds_known(const struct svi_prior_key *key) {
    for (int i = 0; i < key->count; i++)
        if (key->trait[i].place > 0 && key->trait[i].spread >= 0)
            return true;
    return false;
}

/* One array of values for all coordinates, filed by coordinate: memory is that of the traits, whatever n. */
svs_code svi_prior_bounds_make(struct svi_prior_bounds *b, int n, const struct svi_prior_key *const *key,
                               const uint16_t *const *up, int64_t count, svs_error *err) {
    const int32_t dims = n;
    int64_t known = 0, total = 0;
    for (int64_t k = 0; k < count; k++) {
        known += bounds_known(key[k]);
        total += key[k]->count;
    }
    const bool spreads = known >= SVI_PRIOR_MIN_KEYS && 4 * known >= count, early = count >= SVI_PRIOR_EARLY;
    const size_t capacity = (size_t)(total > count ? total : count);
    int64_t *first = svi_alloc_array((size_t)n + 2, sizeof *first);
    double *values = svi_alloc_array(3 * capacity + 1, sizeof *values);
    *b = (struct svi_prior_bounds){0};
    svs_code code = first && values ? svi_arrays_alloc(&bounds_arrays, b, &dims, err)
                                    : svi_fail_memory(err, bounds_arrays.what);
    if (code == SVS_OK) {
        b->n = n;
        double *mean = values, *spread = values + capacity, *spare = values + 2 * capacity;
        for (int64_t k = 0; k < count; k++)
            spare[k] = (double)key[k]->weight;
        b->weight = spreads || early ? svi_quantile(spare, count, 0.5) : INFINITY;
        /* first[j] is where the values of j begin; bounds_file moves it to their end, where those of j + 1
         * begin. */
        bounds_count(key, up, count, spreads, n, first);
        bounds_file(key, up, count, spreads, n, first, mean, spread); /* now each ends where it began */
        for (int j = 0; j < n; j++) {
            const int64_t from = j > 0 ? first[j - 1] : 0;
            const struct bounds_values v = {mean + from, spread + from, spare, first[j] - from};
            bounds_fit(b, j, &v, spreads, early);
        }
    }
    svi_free(first);
    svi_free(values);
    return code;
}

void svi_prior_bounds_archive(struct svi_archive *a, struct svi_prior_bounds *b) {
    int32_t n = b->n;
    svi_archive_int(a, "bounds", &b->n, 0, SVI_PRIOR_FEATURES + 1);
    const bool fits = b->n <= svi_archive_left(a) / 24;
    if (!svi_archive_check(a, fits, "the bounds of all keys are truncated"))
        return;
    if (svi_archive_loading(a)) {
        n = b->n;
        if (svi_arrays_alloc(&bounds_arrays, b, &n, a->err) != SVS_OK)
            return;
    }
    svi_archive_double(a, "usual weight", &b->weight);
    svi_archive_check(a, !(b->weight < 0) && !isnan(b->weight), "a weight is below 0");
    svi_arrays_archive(a, &bounds_arrays, b, &n, &n);
}

svs_code svi_prior_bounds_unknown(struct svi_prior_bounds *b, int n, svs_error *err) {
    const int32_t dims = n;
    *b = (struct svi_prior_bounds){.weight = INFINITY};
    SVI_TRY(svi_arrays_alloc(&bounds_arrays, b, &dims, err));
    b->n = n;
    for (int j = 0; j < n; j++)
        b->usual[j] = b->apart[j] = INFINITY;
    return SVS_OK;
}

void svi_prior_bounds_clear(struct svi_prior_bounds *b) {
    svi_arrays_free(&bounds_arrays, b);
    *b = (struct svi_prior_bounds){0};
}

/* ---- of one key */

svs_code svi_prior_key_reserve(struct svi_prior_key *key, int count, svs_error *err) {
    if (count <= key->capacity)
        return SVS_OK;
    struct svi_prior_trait *more =
        svi_realloc(key->trait, key->capacity * sizeof *more, (size_t)count * sizeof *more);
    if (!more)
        return svi_fail_memory(err, "what a key has in common with others");
    key->trait = more;
    key->capacity = (uint16_t)count;
    return SVS_OK;
}

void svi_prior_key_clear(struct svi_prior_key *key) {
    svi_free(key->trait);
    *key = (struct svi_prior_key){0};
}

static bool key_is_good(const struct svi_prior_key *key) {
    bool good =
        isfinite(key->middle) && key->weight >= 0 && key->most >= 0 && key->factor >= 0 && key->factor <= 1;
    for (int i = 0; i < key->count; i++) {
        const struct svi_prior_trait *t = &key->trait[i];
        good = good && isfinite(t->mean) && !isnan(t->spread) && t->limit >= 0 &&
               (t->place <= SVI_PRIOR_FEATURES || t->place == SVI_PRIOR_NONE);
    }
    return good;
}

/* A key that has learned nothing packs to nothing. */
svs_code svi_prior_key_pack(const struct svi_prior_key *key, struct svi_bytes *out) {
    const float head[] = {key->weight, key->most, key->factor, key->middle};
    if (key->weight == 0)
        return SVS_OK;
    const svs_code code = svi_bytes_append(out, head, sizeof head);
    return code == SVS_OK && key->count > 0
               ? svi_bytes_append(out, key->trait, key->count * sizeof *key->trait)
               : code;
}

svs_code svi_prior_key_unpack(struct svi_prior_key *key, const uint8_t *bytes, size_t size, svs_error *err) {
    float head[4] = {0};
    key->count = 0;
    key->weight = 0;
    if (size == 0)
        return SVS_OK;
    const size_t rest = size - sizeof head, count = rest / sizeof *key->trait;
    if (size < sizeof head || rest % sizeof *key->trait != 0 || count > UINT16_MAX)
        return svi_fail(err, SVS_DAMAGED, "what a key has in common with others has another length");
    if (svi_prior_key_reserve(key, (int)count, err) != SVS_OK)
        return SVS_NO_MEMORY;
    memcpy(head, bytes, sizeof head);
    svi_array_copy(key->trait, bytes + sizeof head, rest);
    key->weight = head[0];
    key->most = head[1];
    key->factor = head[2];
    key->middle = head[3];
    key->count = (uint16_t)count;
    return key_is_good(key) ? SVS_OK
                            : svi_fail(err, SVS_DAMAGED, "what a key has in common with others is damaged");
}

void svi_prior_key_archive(struct svi_archive *a, struct svi_prior_key *key) {
    int count = key->count;
    svi_archive_int(a, "traits", &count, 0, UINT16_MAX);
    if (!svi_archive_check(a, count <= svi_archive_left(a) / (int)sizeof *key->trait,
                           "traits are truncated") ||
        (svi_archive_loading(a) && svi_prior_key_reserve(key, count, a->err) != SVS_OK))
        return;
    key->count = (uint16_t)count;
    svi_archive_floats(a, "weight", &key->weight, 1);
    svi_archive_bytes(a, "largest weight", &key->most, sizeof key->most); /* may be infinite */
    svi_archive_floats(a, "factor", &key->factor, 1);
    svi_archive_floats(a, "middle", &key->middle, 1);
    int64_t out = key->out;
    svi_archive_int64(a, "rows left out", &out, 0, UINT32_MAX);
    key->out = (uint32_t)out;
    svi_archive_bytes(a, "of features", key->trait, count * (int64_t)sizeof *key->trait);
    if (svi_archive_loading(a) && svi_archive_ok(a))
        svi_archive_check(a, key_is_good(key), "what a key has in common with others is damaged");
}
