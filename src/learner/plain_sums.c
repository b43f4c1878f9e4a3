/* Plain sums of many models (plain_sums.h): the prior's sums without center and bounds, the number of rows,
 * and the names of the features.
 *
 * The rows lie as far from 0 as they come. Sums have about 32 digits. The center is taken out in
 * twice the precision when the numbers are read (svi_plain_sums_window). This costs twice the
 * digits of the mean over the deviation. At a mean of 1e8 deviations 16 digits are left, all that a
 * double shows.
 *
 * A name is a block of its own. It is stated with each place that a feature gets, so a feature that
 * is in the sums has its name. The walk over all keys that makes the sums again also states the
 * names again.
 *
 * Read svi_plain_sums_add first, then svi_plain_sums_move and svi_plain_sums_window. */
#include "learner/plain_sums.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

void svi_plain_sums_init(struct svi_plain_sums *s, bool regress) {
    *s = (struct svi_plain_sums){0};
    svi_prior_sums_init(&s->sums, regress);
}

void svi_plain_sums_clear(struct svi_plain_sums *s) {
    for (int j = 0; j < s->capacity; j++)
        svi_free(s->name[j]);
    svi_free(s->name);
    svi_free(s->unscaled);
    svi_prior_sums_clear(&s->sums);
    svi_plain_sums_init(s, s->sums.regress);
}

void svi_plain_sums_empty(struct svi_plain_sums *s) {
    svi_prior_sums_empty(&s->sums);
    s->rows = 0;
    s->target_square = (struct svi_dd){0, 0};
}

/* Both arrays have the capacity that the smaller of them reached, should the second fail. */
static svs_code plain_reserve(struct svi_plain_sums *s, int n, svs_error *err) {
    const int capacity = n > 2 * s->capacity ? n : 2 * s->capacity;
    if (n <= s->capacity)
        return SVS_OK;
    char **name = svi_realloc(s->name, (size_t)s->capacity * sizeof *name, (size_t)capacity * sizeof *name);
    s->name = name ? name : s->name;
    bool *unscaled = name ? svi_realloc(s->unscaled, (size_t)s->capacity, (size_t)capacity) : NULL;
    s->unscaled = unscaled ? unscaled : s->unscaled;
    if (!unscaled)
        return svi_fail_memory(err, "the names of features");
    for (int j = s->capacity; j < capacity; j++) {
        s->name[j] = NULL;
        s->unscaled[j] = false;
    }
    s->capacity = capacity;
    return SVS_OK;
}

/* Sets the name of a coordinate, unless it has it already. */
static svs_code plain_name(struct svi_plain_sums *s, int at, const char *name, bool unscaled,
                           svs_error *err) {
    SVI_TRY(plain_reserve(s, at + 1, err));
    s->unscaled[at] = unscaled;
    if (!name || (s->name[at] && strcmp(s->name[at], name) == 0))
        return SVS_OK;
    const size_t size = strlen(name) + 1;
    char *copy = svi_alloc(size);
    if (!copy)
        return svi_fail_memory(err, "the name of a feature");
    svi_free(s->name[at]);
    s->name[at] = memcpy(copy, name, size);
    return SVS_OK;
}

svs_code svi_plain_sums_feature(struct svi_plain_sums *s, const struct svi_prior_sums *of, uint16_t place,
                                const char *name, bool unscaled, svs_error *err) {
    SVI_TRY(svi_prior_sums_follow(&s->sums, of, err));
    s->crowded = s->crowded || place == SVI_PRIOR_NONE;
    return place == SVI_PRIOR_NONE ? SVS_OK : plain_name(s, place, name, unscaled, err);
}

void svi_plain_sums_add(struct svi_plain_sums *s, const struct svi_kernels *k,
                        const struct svi_prior_trait *trait, int d, const double *x, double weight,
                        uint16_t label, double target) {
    s->crowded = s->crowded || label == SVI_PRIOR_NONE;
    if (!svi_prior_sums_add_plain(&s->sums, k, trait, d, x, weight, label, target))
        return;
    s->rows += weight < 0 ? -1 : 1;
    if (s->sums.regress)
        s->target_square =
            svi_dd_add(s->target_square, svi_dd_times(svi_two_product(target, target), weight));
}

svs_code svi_plain_sums_move(struct svi_plain_sums *to, struct svi_plain_sums *from, svs_error *err) {
    uint16_t place;
    to->crowded = to->crowded || from->crowded;
    if (!from->sums.touched)
        return SVS_OK;
    for (int j = 1; j < from->sums.n; j++) {
        SVI_TRY(svi_prior_sums_feature(&to->sums, from->sums.identity[j], j, &place, err));
        to->crowded = to->crowded || place == SVI_PRIOR_NONE;
        if (place != SVI_PRIOR_NONE && j < from->capacity)
            SVI_TRY(plain_name(to, place, from->name[j], from->unscaled[j], err));
    }
    SVI_TRY(svi_prior_sums_move(&to->sums, &from->sums, err));
    for (int k = 0; k < from->sums.labels; k++)
        to->crowded = to->crowded || svi_prior_sums_find(&to->sums, from->sums.label[k], k) == SVI_PRIOR_NONE;
    to->rows += from->rows;
    to->target_square = svi_dd_add(to->target_square, from->target_square);
    from->rows = 0;
    from->target_square = (struct svi_dd){0, 0};
    return SVS_OK;
}

/* ---- read */

/* sum s (x - c), given sum s x and sum s. */
static struct svi_dd plain_about(struct svi_dd sum, struct svi_dd weight, double center) {
    return svi_dd_add(sum, svi_dd_minus(svi_dd_times(weight, center)));
}

static struct svi_dd plain_of_label(const struct svi_prior_sums *s, int k, int i) {
    const size_t at = (size_t)k * (size_t)s->capacity + (size_t)i;
    return svi_two_sum(s->by_label[at], s->by_low[at]);
}

/* sum s (x_i - c_i) (x_j - c_j) = sum s x_i (x_j - c_j) - c_i sum s (x_j - c_j), in twice the precision. */
static void plain_products(const struct svi_prior_sums *s, struct svi_window_sums *out) {
    const struct svi_dd total = svi_prior_sums_at(s, 0, 0);
    size_t at = 0;
    for (int i = 0; i < out->d; i++)
        for (int j = 0; j <= i; j++) {
            const struct svi_dd off = plain_about(svi_prior_sums_at(s, j + 1, 0), total, out->center[j]);
            const struct svi_dd half = plain_about(svi_prior_sums_at(s, i + 1, j + 1),
                                                   svi_prior_sums_at(s, i + 1, 0), out->center[j]);
            const double square = plain_about(half, off, out->center[i]).high;
            out->square[at++] = i == j && square < 0 ? 0 : square;
        }
}

static void plain_classes(const struct svi_prior_sums *s, struct svi_window_sums *out) {
    for (int k = 0; k < out->classes; k++) {
        const struct svi_dd weight = plain_of_label(s, k, 0);
        out->class_weight[k] = weight.high > 0 ? weight.high : 0;
        for (int j = 0; j < out->d; j++)
            out->class_sum[(size_t)k * (size_t)out->d + (size_t)j] =
                plain_about(plain_of_label(s, k, j + 1), weight, out->center[j]).high;
    }
}

svs_code svi_plain_sums_window(const struct svi_plain_sums *of, struct svi_window_sums *out, svs_error *err) {
    const struct svi_prior_sums *s = &of->sums;
    SVI_TRY(svi_window_sums_shape(out, s->n - 1, s->regress ? 0 : s->labels, err));
    if (!s->touched || of->rows <= 0) /* nothing is held: all are 0 */
        return SVS_OK;
    const struct svi_dd total = svi_prior_sums_at(s, 0, 0);
    out->n = of->rows;
    out->weight = total.high;
    for (int j = 0; j < out->d; j++) {
        const struct svi_dd sum = svi_prior_sums_at(s, j + 1, 0);
        out->center[j] = total.high > 0 ? sum.high / total.high : 0;
        out->sum[j] = plain_about(sum, total, out->center[j]).high;
    }
    plain_products(s, out);
    plain_classes(s, out);
    if (!s->regress)
        return SVS_OK;
    const struct svi_dd target = plain_of_label(s, 0, 0);
    out->target_weight = target.high;
    out->target_square = of->target_square.high > 0 ? of->target_square.high : 0;
    for (int j = 0; j < out->d; j++)
        out->target_sum[j] = plain_about(plain_of_label(s, 0, j + 1), target, out->center[j]).high;
    return SVS_OK;
}

/* ---- the archive */

static void plain_archive_name(struct svi_archive *a, struct svi_plain_sums *s, int at) {
    char name[SVS_NAME_MAX + 1] = "";
    bool unscaled = at < s->capacity && s->unscaled[at];
    if (!svi_archive_loading(a) && at < s->capacity && s->name[at])
        memcpy(name, s->name[at], strlen(s->name[at]) + 1);
    svi_archive_text(a, "name", name, sizeof name);
    svi_archive_bool(a, "unscaled", &unscaled);
    if (svi_archive_loading(a) && svi_archive_ok(a))
        plain_name(s, at, *name ? name : NULL, unscaled, a->err);
}

void svi_plain_sums_archive(struct svi_archive *a, struct svi_plain_sums *s) {
    svi_prior_sums_archive(a, &s->sums);
    svi_archive_int64(a, "rows", &s->rows, INT64_MIN / 4, INT64_MAX / 4);
    svi_archive_double(a, "squared targets", &s->target_square.high);
    svi_archive_double(a, "their rest", &s->target_square.low);
    svi_archive_bool(a, "crowded", &s->crowded);
    for (int j = 1; j < s->sums.n && svi_archive_ok(a); j++)
        plain_archive_name(a, s, j);
}
