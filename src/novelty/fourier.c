/* Random Fourier features (Rahimi and Recht 2007): a kernel k(x - y) of k(0) = 1 is the mean of cos(w'(x -
 * y)) over frequencies w drawn from its spectrum: normal with variance 2 gamma for rbf, Cauchy with scale
 * gamma in each coordinate for laplacian. With one set of `count` draws
 *
 *     sum_i z_i k(x - x_i) ~ 1/count sum_k Re( e^(i w_k'x) conj(sum_i z_i e^(i w_k'x_i)) ) = sum_k a_k
 * cos(w_k'x + b_k),
 *
 * so that sine and cosine of a draw are both used, at the price of one cosine. Frequencies of the members
 * differ by a factor alone: they share one product W x. Angles are counted in turns. */
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/random.h"
#include "linalg/pass.h"
#include "novelty/model.h"
#include "svmstream/novelty.h"

#define PI         3.14159265358979323846
#define TERMS_MAX  10000000
#define LANES      8
#define TILE_ROWS  32
#define TILE_TERMS 256

struct waves {
    double share;
    double stretch;       /* of the frequencies */
    double *height, *lag; /* terms: a_k, b_k in turns */
    double noise; /* deviation of the sum far from all support vectors: nothing below it has a meaning */
};

struct svs_fourier {
    int d, stride, members;
    int terms; /* count rounded up to LANES, the last ones of height 0 */
    struct svi_coordinates coordinates;
    double *frequency; /* terms x stride, in turns a unit */
    struct waves waves[SVS_MEMBERS_MAX];
};

void svs_fourier_free(svs_fourier **fourier) {
    svs_fourier *f = *fourier;
    if (!f)
        return;
    for (int e = 0; e < f->members; e++) {
        svi_free(f->waves[e].height);
        svi_free(f->waves[e].lag);
    }
    svi_coordinates_clear(&f->coordinates);
    svi_free(f->frequency);
    svi_free(f);
    *fourier = NULL;
}

/* ---- building */

/* In (0, 1). */
static double uniform(struct svi_random *r) {
    return ((double)(svi_random_next(r) >> 11) + 0.5) * 0x1p-53;
}

static double draw(svs_novelty_kernel kernel, struct svi_random *r) {
    if (kernel == SVS_NOVELTY_LAPLACIAN)
        return tan(PI * (uniform(r) - 0.5));
    double radius = sqrt(-2 * log(uniform(r)));
    return radius * cos(2 * PI * uniform(r));
}

static svs_code reserve(svs_fourier *f, svs_error *err) {
    const size_t terms = (size_t)f->terms;
    f->frequency = svi_alloc_array(terms, (size_t)f->stride * sizeof *f->frequency);
    bool got = f->frequency;
    for (int e = 0; e < f->members; e++) {
        f->waves[e].height = svi_alloc_array(terms, sizeof *f->waves[e].height);
        f->waves[e].lag = svi_alloc_array(terms, sizeof *f->waves[e].lag);
        got = got && f->waves[e].height && f->waves[e].lag;
    }
    return got ? SVS_OK : svi_fail_memory(err, "random Fourier features");
}

/* Height and lag of one term: the member's support vectors as one wave. */
static void merge(const svs_fourier *f, const svs_novelty_member *member, struct waves *w, int term,
                  int count) {
    const double *frequency = f->frequency + (size_t)term * (size_t)f->stride;
    double cosine = 0, sine = 0;
    for (int i = 0; i < member->count; i++) {
        const double *x = member->support + (size_t)i * (size_t)f->stride;
        double turns = 0;
        for (int j = 0; j < f->d; j++)
            turns += frequency[j] * x[j];
        turns *= w->stretch;
        turns -= rint(turns);
        cosine += member->z[i] * cos(2 * PI * turns);
        sine += member->z[i] * sin(2 * PI * turns);
    }
    w->height[term] = hypot(cosine, sine) / count;
    w->lag[term] = -atan2(sine, cosine) / (2 * PI);
}

static void build(svs_fourier *f, const svs_novelty_model *m, int count, uint64_t seed) {
    struct svi_random random = {seed};
    for (int j = 0; j < f->d && m->center; j++) {
        f->coordinates.center[j] = m->center[j];
        f->coordinates.inverse[j] = m->inverse[j];
    }
    for (int k = 0; k < count; k++)
        for (int j = 0; j < f->d; j++)
            f->frequency[(size_t)k * (size_t)f->stride + (size_t)j] = draw(m->kernel, &random) / (2 * PI);
    for (int e = 0; e < f->members; e++) {
        struct waves *w = &f->waves[e];
        const double gamma = m->member[e].gamma;
        double squares = 0;
        w->share = m->member[e].share;
        w->stretch = m->kernel == SVS_NOVELTY_RBF ? sqrt(2 * gamma) : gamma;
        for (int k = 0; k < count; k++) {
            merge(f, &m->member[e], w, k, count);
            squares += w->height[k] * w->height[k];
        }
        w->noise = sqrt(squares / 2);
    }
}

svs_code svs_fourier_new(const svs_novelty_model *m, int count, uint64_t seed, svs_fourier **out,
                         svs_error *err) {
    *out = NULL;
    if (m->kernel == SVS_NOVELTY_POLYNOMIAL)
        return svi_fail(err, SVS_INVALID,
                        "a polynomial kernel has no random Fourier features: score with the model itself");
    if (count < 1 || count > TERMS_MAX)
        return svi_fail(err, SVS_INVALID, "random Fourier features are 1 to %d, not %d", TERMS_MAX, count);
    svs_fourier *f = svi_alloc(sizeof *f);
    if (!f)
        return svi_fail_memory(err, "random Fourier features");
    f->d = m->d;
    f->stride = m->stride;
    f->members = m->members;
    f->terms = svi_round_up(count, LANES);
    svs_code code = svi_coordinates_init(&f->coordinates, m->d, m->center, err);
    if (code == SVS_OK)
        code = reserve(f, err);
    if (code == SVS_OK) {
        build(f, m, count, seed);
        *out = f;
    } else
        svs_fourier_free(&f);
    return code;
}

/* ---- scoring */

/* cos(2 pi t) = 1 - 2 sin(pi r)^2 with r the distance to the nearest whole number; to 1e-11. The constant
 * added and taken away rounds to whole numbers while |t| < 2^51. */
static inline double cosine_of_turns(double t) {
    const double whole = t + 0x1.8p52 - 0x1.8p52;
    const double x = PI * (t - whole), y = x * x;
    double s = -1.0 / 1307674368000;
    s = 1.0 / 6227020800 + y * s;
    s = -1.0 / 39916800 + y * s;
    s = 1.0 / 362880 + y * s;
    s = -1.0 / 5040 + y * s;
    s = 1.0 / 120 + y * s;
    s = -1.0 / 6 + y * s;
    s = x + x * y * s;
    return 1 - 2 * s * s;
}

/* sum_k a_k cos(stretch turns_k + b_k) over terms first .. first + count - 1, count a multiple of LANES. */
static double sum_waves(const struct waves *w, int first, int count, const double *turns) {
    const double *height = w->height + first, *lag = w->lag + first;
    double sum[LANES] = {0}, total = 0;
    for (int k = 0; k < count; k += LANES)
        for (int l = 0; l < LANES; l++)
            sum[l] += height[k + l] * cosine_of_turns(w->stretch * turns[k + l] + lag[k + l]);
    for (int l = 0; l < LANES; l++)
        total += sum[l];
    return total;
}

struct tile {
    double *x;      /* TILE_ROWS x stride: rows in coordinates */
    double *turns;  /* TILE_ROWS x TILE_TERMS */
    double *member; /* TILE_ROWS x members: memberships */
};

static void place_rows(const svs_fourier *f, const svs_rows *rows, int64_t first, int count,
                       const struct tile *t) {
    for (int i = 0; i < count; i++) {
        double *x = t->x + (size_t)i * (size_t)f->stride;
        svs_rows_copy(rows, first + i, x);
        svi_coordinates_apply(&f->coordinates, x, x);
    }
}

static void score_tile(const svs_fourier *f, int count, const struct tile *t) {
    memset(t->member, 0, (size_t)(TILE_ROWS * f->members) * sizeof *t->member);
    for (int first = 0; first < f->terms; first += TILE_TERMS) {
        const int terms = f->terms - first < TILE_TERMS ? f->terms - first : TILE_TERMS;
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, count, terms, f->d, 1, t->x, f->stride,
                    f->frequency + (size_t)first * (size_t)f->stride, f->stride, 0, t->turns, TILE_TERMS);
        for (int e = 0; e < f->members; e++)
            for (int i = 0; i < count; i++)
                t->member[i * f->members + e] +=
                    sum_waves(&f->waves[e], first, terms, t->turns + i * TILE_TERMS);
    }
}

static double mean_surprise(const svs_fourier *f, const double *member) {
    double sum = 0;
    for (int e = 0; e < f->members; e++)
        sum -= f->waves[e].share * log(fmax(member[e], f->waves[e].noise));
    return sum;
}

static void score_all(const svs_fourier *f, const svs_rows *rows, int64_t first, int64_t count,
                      const struct tile *t, double *novelty, double *surprise) {
    for (int64_t at = 0; at < count; at += TILE_ROWS) {
        const int n = count - at < TILE_ROWS ? (int)(count - at) : TILE_ROWS;
        place_rows(f, rows, first + at, n, t);
        score_tile(f, n, t);
        for (int i = 0; i < n; i++) {
            const double s = mean_surprise(f, t->member + i * f->members);
            if (surprise)
                surprise[at + i] = s;
            if (novelty)
                novelty[at + i] = -expm1(-s);
        }
    }
}

svs_code svs_fourier_score(const svs_fourier *f, const svs_rows *rows, int64_t first, int64_t count,
                           double *novelty, double *surprise, svs_error *err) {
    if (rows->d != f->d)
        return svi_fail(err, SVS_WRONG_DIMENSION, "the rows have %d features, the model %d", rows->d, f->d);
    const struct tile t = {.x = svi_alloc_array(TILE_ROWS, (size_t)f->stride * sizeof(double)),
                           .turns = svi_alloc_array(TILE_ROWS * TILE_TERMS, sizeof(double)),
                           .member = svi_alloc_array((size_t)(TILE_ROWS * f->members), sizeof(double))};
    const bool got = t.x && t.turns && t.member;
    if (got)
        score_all(f, rows, first, count, &t, novelty, surprise);
    svi_free(t.x);
    svi_free(t.turns);
    svi_free(t.member);
    return got ? SVS_OK : svi_fail_memory(err, "the scores");
}
