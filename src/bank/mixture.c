/* The mixture of experts by log loss. A row is scored from the combination's probabilities and the members'
 * scores; every expert's probabilities stay until its label is known, and all learn from those.
 *
 * The base odds that the logistic stacks start from are the rates over all samples. With more than two
 * classes no expert but the recent rate depends on the order of the labels, and that one only slowly: a
 * stream may have labels that follow each other in a pattern, which says nothing about rows.
 *
 * Two classes and more are different problems to the logistic stacks, whose scores are of one row or of one a
 * class: they start again when the third class is scored for the first time. */
#include "bank/mixture.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "learner/probability.h"

#define ETA        0.5 /* of the share over experts */
#define ALPHA      0.001
#define RIDGE      10.0
#define RATE_FIRST 0.5   /* samples that each class begins with in a base rate */
#define RATE_KEEP  0.998 /* of the recent base rate, a sample */
#define MIN_PROBA  1e-6  /* of an expert, in its loss */
#define MAX_WEIGHT 1e6   /* of a sample */
#define MIN_WEIGHT 1e-6
#define MAX_NORMAL 10.0   /* of a sample's weight in units of the mean */
#define UNIT_KEEP  0.9998 /* of the mean weight */

static const double mixture_keep[SVI_MIXTURE_STACKS] = {0.9998, 0.998};

enum { CLASSES, DIMS };

struct svi_mixture {
    struct svi_mixture_options o;
    int32_t dims[DIMS];
    int classes;       /* of the row scored last; 0: none yet */
    int known;         /* classes counted: the highest one, plus 1 */
    double weights[2]; /* faded sums of weights and of their squares */
    svi_logistic *stacks;
    struct svi_share shares;
    double *all, *recent; /* by class: samples, weighted; the second fades */
    double *logit, *base; /* scratch by class */
    double *proba;        /* experts x classes, of the current row */
};

static const struct svi_array table[] = {
#define OWNER svi_mixture
    SVI_ARRAY(struct OWNER, all, "rates", SVI_AXIS(CLASSES)),
    SVI_ARRAY(struct OWNER, recent, "recent rates", SVI_AXIS(CLASSES)),
    SVI_ARRAY(struct OWNER, logit, NULL, SVI_AXIS(CLASSES)),
    SVI_ARRAY(struct OWNER, base, NULL, SVI_AXIS(CLASSES)),
    SVI_ARRAY(struct OWNER, proba, NULL, SVI_AXIS_LENGTH(SVI_MIXTURE_EXPERTS), SVI_AXIS(CLASSES)),
#undef OWNER
};
static const struct svi_arrays mixture_arrays = SVI_ARRAYS_ALIGNED(table, "the mixture of a bank");

static struct svi_logistic_options mixture_stacks(const struct svi_mixture_options *o) {
    struct svi_logistic_options stacks = {.members = o->members,
                                          .rows_max = o->max_classes > 2 ? o->max_classes : 1,
                                          .count = SVI_MIXTURE_STACKS,
                                          .ridge = RIDGE,
                                          .isa = o->isa};
    memcpy(stacks.keep, mixture_keep, sizeof mixture_keep);
    return stacks;
}

svi_mixture *svi_mixture_new(const struct svi_mixture_options *o, svs_error *err) {
    const struct svi_logistic_options stacks = mixture_stacks(o);
    svi_mixture *m = svi_new(sizeof *m, "the mixture of a bank", err);
    if (!m)
        return NULL;
    m->o = *o;
    m->dims[CLASSES] = o->max_classes;
    if (svi_arrays_alloc(&mixture_arrays, m, m->dims, err) != SVS_OK ||
        !(m->stacks = svi_logistic_new(&stacks, err))) {
        svi_mixture_free(&m);
        return NULL;
    }
    svi_mixture_reset(m);
    return m;
}

void svi_mixture_free(svi_mixture **pm) {
    svi_mixture *m = *pm;
    if (!m)
        return;
    svi_logistic_free(&m->stacks);
    svi_arrays_free(&mixture_arrays, m);
    svi_free(m);
    *pm = NULL;
}

void svi_mixture_reset(svi_mixture *m) {
    m->classes = m->known = 0;
    m->weights[0] = m->weights[1] = 0;
    svi_logistic_reset(m->stacks);
    svi_share_init(&m->shares, SVI_MIXTURE_EXPERTS, ETA, ALPHA);
    for (int k = 0; k < m->o.max_classes; k++)
        m->all[k] = m->recent[k] = RATE_FIRST;
}

/* ---- the answer */

static double *mixture_proba(const svi_mixture *m, int expert) {
    return m->proba + (size_t)expert * (size_t)m->o.max_classes;
}

const double *svi_mixture_counts(const svi_mixture *m, int which) {
    return which == 0 ? m->all : m->recent;
}

static void mixture_rates(const svi_mixture *m, int which, int classes, double *rates) {
    const double *count = svi_mixture_counts(m, which);
    double sum = 0;
    for (int k = 0; k < classes; k++)
        sum += count[k];
    for (int k = 0; k < classes; k++)
        rates[k] = count[k] / sum;
}

/* Softmax of logits, cut at SVI_LOGIT_MAX below the largest; for two classes of the second's one logit. */
static void mixture_probabilities(const double *logit, int classes, double *p) {
    if (classes == 2) {
        const double e = exp(-svi_bounded(fabs(*logit), SVI_LOGIT_MAX));
        p[*logit > 0] = 1 / (1 + e);
        p[!(*logit > 0)] = e / (1 + e);
        return;
    }
    double most = logit[0], sum = 0;
    for (int k = 1; k < classes; k++)
        most = logit[k] > most ? logit[k] : most;
    for (int k = 0; k < classes; k++)
        sum += p[k] = exp(fmax(logit[k] - most, -SVI_LOGIT_MAX));
    for (int k = 0; k < classes; k++)
        p[k] /= sum;
}

/* The logistic stacks: base odds of the rates over all, plus what each makes of the members. */
static void mixture_score_stacks(svi_mixture *m, const double *scores, int classes) {
    const int rows = classes > 2 ? classes : 1;
    const double *all = mixture_proba(m, SVI_MIXTURE_RATES);
    for (int k = 0; k < rows; k++)
        m->base[k] = rows == 1 ? log(all[1] / all[0]) : log(all[k]);
    svi_logistic_row(m->stacks, scores, rows);
    for (int i = 0; i < SVI_MIXTURE_STACKS; i++) {
        svi_logistic_score(m->stacks, i, m->logit);
        for (int r = 0; r < rows; r++)
            m->logit[r] += m->base[r];
        mixture_probabilities(m->logit, classes, mixture_proba(m, SVI_MIXTURE_LOGISTIC + i));
    }
}

void svi_mixture_score(svi_mixture *m, const double *scores, const double *combined, int classes,
                       double *proba) {
    if (classes > 2 && m->classes == 2)
        svi_logistic_reset(m->stacks);
    m->classes = classes;
    for (int i = 0; i < 2; i++)
        mixture_rates(m, i, classes, mixture_proba(m, SVI_MIXTURE_RATES + i));
    memcpy(mixture_proba(m, SVI_MIXTURE_COMBINED), combined, (size_t)classes * sizeof *combined);
    mixture_score_stacks(m, scores, classes);
    memset(proba, 0, (size_t)classes * sizeof *proba);
    for (int i = 0; i < SVI_MIXTURE_EXPERTS; i++)
        for (int k = 0; k < classes; k++)
            proba[k] += m->shares.w[i] * mixture_proba(m, i)[k];
}

/* ---- learning */

double svi_mixture_weigh(svi_mixture *m, double weight) {
    const double c = fmin(fmax(weight, MIN_WEIGHT), MAX_WEIGHT);
    m->weights[0] = UNIT_KEEP * m->weights[0] + c;
    m->weights[1] = UNIT_KEEP * m->weights[1] + c * c;
    return fmin(c * m->weights[0] / m->weights[1], MAX_NORMAL);
}

void svi_mixture_count(svi_mixture *m, int truth, double c) {
    m->known = truth < m->known ? m->known : truth + 1;
    for (int k = 0; k < m->known; k++)
        m->recent[k] = RATE_FIRST + RATE_KEEP * (m->recent[k] - RATE_FIRST);
    m->recent[truth] += c;
    m->all[truth] += c;
}

void svi_mixture_learn(svi_mixture *m, int truth, double c) {
    double loss[SVI_MIXTURE_EXPERTS];
    for (int i = 0; i < SVI_MIXTURE_EXPERTS; i++)
        loss[i] = -c * log(fmax(mixture_proba(m, i)[truth], MIN_PROBA));
    svi_share_learn(&m->shares, loss);
    for (int i = 0; i < SVI_MIXTURE_STACKS; i++)
        svi_logistic_learn(m->stacks, i, mixture_proba(m, SVI_MIXTURE_LOGISTIC + i), truth, c);
    svi_logistic_end(m->stacks);
    svi_mixture_count(m, truth, c);
}

/* ---- what is published */

const struct svi_share *svi_mixture_shares(const svi_mixture *m) {
    return &m->shares;
}

const svi_logistic *svi_mixture_logistic(const svi_mixture *m) {
    return m->stacks;
}

double svi_mixture_keep(int stack) {
    return mixture_keep[stack];
}

/* ---- the archive */

void svi_mixture_archive(struct svi_archive *a, svi_mixture *m) {
    svi_archive_int(a, "classes", &m->classes, 0, m->o.max_classes);
    svi_archive_int(a, "known", &m->known, 0, m->o.max_classes);
    svi_archive_finite(a, "weights", m->weights, 2);
    if (!svi_archive_ok(a))
        return;
    /* Of the classes counted: max_classes may be another when it is loaded. */
    const int32_t known = m->known;
    svi_arrays_archive(a, &mixture_arrays, m, m->dims, &known);
    bool sound = m->weights[0] >= 0 && m->weights[1] >= 0;
    for (int k = 0; k < m->o.max_classes && svi_archive_ok(a); k++)
        sound &= m->all[k] >= RATE_FIRST && m->recent[k] >= RATE_FIRST;
    svi_archive_check(a, sound, "what is known of the classes is out of range");
    svi_share_archive(a, &m->shares);
    if (svi_archive_ok(a))
        svi_logistic_archive(a, m->stacks);
}

double svi_mixture_memory(const struct svi_mixture_options *o) {
    const struct svi_logistic_options stacks = mixture_stacks(o);
    const int32_t classes = o->max_classes;
    return (double)sizeof(svi_mixture) + (double)svi_arrays_bytes(&mixture_arrays, &classes) +
           svi_logistic_memory(&stacks);
}
