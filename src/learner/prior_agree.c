/* The verdict on a prior of other machines (prior_agree.h).
 *
 * The model u of the prior is solved from the prior's own sums. It is scored on the sums that the
 * keys here hold, which needs none of their rows. With z relative to the mean of the samples, the
 * mean loss of u differs from that of the best constant by u'Su - 2 u'c + (a - t)^2. S and c are
 * the covariances here, a is what u predicts at the mean, and t is the mean target. If u is worse
 * than a constant by more than chance, other machines have another law, or one of them lies. Keys
 * here then begin better with what is known here.
 *
 * A feature whose spread is many times that of the keys here would outweigh what a new key learns
 * itself, by the square. Such a prior is refused whatever its model predicts.
 *
 * Read svi_prior_assess first. */
#include "learner/prior_agree.h"

#include <math.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/cholesky.h"
#include "linalg/kernels.h"

#define RIDGE        1e-9 /* of each variance: features that repeat others are allowed */
#define MIN_WEIGHT   8    /* typical rows that say anything of a model */
#define CHANCE       2    /* standard errors by which a worse loss may be chance */
#define MIN_MULTIPLE (1.0 / SVI_PRIOR_MAX_MULTIPLE)

static double agree_spread(const struct svi_prior *p, int i, int j) {
    const int a = i > j ? i : j, b = i + j - a;
    return p->spread[svi_triangle(a) + b];
}

/* The factor of S / N with unit diagonal; *deviation of each feature, 0: it does not vary. False: it is not
 * positive definite, or not finite. */
static bool agree_factor(const struct svi_prior *p, double *factor, double *deviation) {
    const int d = p->d;
    bool good = isfinite(p->total) && p->total > 0;
    for (int i = 0; i < d && good; i++) {
        const double variance = agree_spread(p, i, i) / p->total;
        good = isfinite(variance) && isfinite(p->mean[i]) && isfinite(p->level[i]);
        deviation[i] = variance > 0 ? sqrt(variance) : 0;
    }
    for (int i = 0; i < d && good; i++)
        for (int j = 0; j <= i; j++) {
            const double scale = deviation[i] * deviation[j];
            factor[(size_t)i * (size_t)d + (size_t)j] = i == j      ? 1 + RIDGE
                                                        : scale > 0 ? agree_spread(p, i, j) / p->total / scale
                                                                    : 0;
        }
    return good && (d == 0 || svi_factor_spd(factor, d));
}

struct agree_memory {
    double *factor, *deviation, *u;
};

static svs_code agree_alloc(struct agree_memory *m, int d, svs_error *err) {
    const size_t n = (size_t)d;
    m->factor = svi_alloc_array(n * n + 2 * n + 1, sizeof *m->factor);
    if (!m->factor)
        return svi_fail_memory(err, "the model of other machines");
    m->deviation = m->factor + n * n;
    m->u = m->deviation + n;
    return SVS_OK;
}

svs_code svi_prior_sound(const struct svi_prior *p, bool *sound, svs_error *err) {
    struct agree_memory m;
    SVI_TRY(agree_alloc(&m, p->d, err));
    *sound = agree_factor(p, m.factor, m.deviation);
    svi_free(m.factor);
    return SVS_OK;
}

/* sum s t, or at a feature sum s t (x - m), of label k: t is 2 (is it k?) - 1, or the target. */
static double agree_target(const struct svi_prior *p, int k, int at) {
    const double own = k < 0 ? 0 : at < 0 ? p->weight[k] : p->sum[(size_t)k * (size_t)p->d + (size_t)at];
    return p->regress ? own : 2 * own - (at < 0 ? p->total : p->off[at]);
}

/* Excess of the mean loss of u over that of the best constant, on what `own` holds; *chance: its standard
 * error. `at`: the feature of `own` that is feature j. */
static double agree_excess(const struct svi_prior *other, const struct svi_prior *own, const uint16_t *at,
                           const double *u, int k, double rows, double *chance) {
    const int label = other->regress ? 0 : svi_prior_label(own, other->label[k], k);
    const double mean = agree_target(own, label, -1) / own->total;
    double says = agree_target(other, k, -1) / other->total, quadratic = 0, linear = 0;
    for (int i = 0; i < other->d; i++) {
        /* A feature that keys here do not have lies at its center in all of their rows. */
        says += u[i] * ((at[i] == SVI_PRIOR_NONE ? 0 : own->mean[at[i]]) - other->mean[i]);
        if (at[i] == SVI_PRIOR_NONE)
            continue;
        const double target = agree_target(own, label, at[i]) - mean * own->off[at[i]];
        linear += u[i] * target / own->total;
        for (int j = 0; j < other->d; j++)
            if (at[j] != SVI_PRIOR_NONE)
                quadratic += u[i] * u[j] * agree_spread(own, at[i], at[j]) / own->total;
    }
    const double off = says - mean, moved = quadratic + off * off;
    const double target = own->bounds.usual[0];
    const double variance = !own->regress       ? fmax(0, 1 - mean * mean)
                            : target < INFINITY ? target * target
                                                : 0;
    *chance = sqrt(4 * moved * variance / rows);
    return quadratic - 2 * linear + off * off;
}

/* Over all labels that both know: a class that is few everywhere says little, and weighs little. */
static bool agree_on(const struct svi_prior *other, const struct svi_prior *own, const struct agree_memory *m,
                     double rows) {
    uint16_t at[SVI_PRIOR_FEATURES];
    double excess = 0, chance = 0;
    for (int j = 0; j < other->d; j++)
        at[j] = svi_prior_feature(own, other->identity[j], j);
    for (int k = 0; k < other->labels; k++) {
        double one;
        if (!other->regress && svi_prior_label(own, other->label[k], k) < 0)
            continue;
        const double mean = agree_target(other, k, -1) / other->total;
        for (int i = 0; i < other->d; i++) {
            const double target = agree_target(other, k, i) - mean * other->off[i];
            m->u[i] = m->deviation[i] > 0 ? target / other->total / m->deviation[i] : 0;
        }
        if (other->d > 0)
            svi_solve_factor(m->factor, other->d, m->u);
        for (int i = 0; i < other->d; i++)
            m->u[i] = m->deviation[i] > 0 ? m->u[i] / m->deviation[i] : 0;
        excess += agree_excess(other, own, at, m->u, k, rows, &one);
        chance += one;
    }
    return excess <= CHANCE * chance; /* false also for a NAN */
}

static bool agree_spreads(const struct svi_prior *other, const struct svi_prior *own,
                          const double *deviation) {
    for (int j = 0; j < own->d; j++) {
        const double usual = own->bounds.usual[j + 1];
        const uint16_t at = svi_prior_feature(other, own->identity[j], j);
        if (!(usual > 0 && usual < INFINITY) || at == SVI_PRIOR_NONE || deviation[at] == 0)
            continue;
        const double times = deviation[at] / usual;
        if (times > SVI_PRIOR_MAX_SPREAD || times < MIN_MULTIPLE)
            return false;
    }
    return true;
}

svs_code svi_prior_assess(const struct svi_prior *other, const struct svi_prior *own,
                          enum svi_prior_verdict *verdict, svs_error *err) {
    struct agree_memory m;
    SVI_TRY(agree_alloc(&m, other->d, err));
    const double typical =
        own && own->bounds.weight < INFINITY && own->bounds.weight > 0 ? own->bounds.weight : 1;
    const double rows = own ? own->total / typical : 0;
    *verdict = !agree_factor(other, m.factor, m.deviation)             ? SVI_PRIOR_UNSOUND
               : own && !agree_spreads(other, own, m.deviation)        ? SVI_PRIOR_SPREAD
               : rows >= MIN_WEIGHT && !agree_on(other, own, &m, rows) ? SVI_PRIOR_DISAGREES
                                                                       : SVI_PRIOR_GOOD;
    svi_free(m.factor);
    return SVS_OK;
}
