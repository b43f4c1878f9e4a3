#include "quality/reliability.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/exponential.h"
#include "base/stat_ring.h"

#define BINS       SVI_RELIABILITY_BINS
#define LOSS_MAX   34.538776394910684 /* -log(1e-15) */
#define LOSS_UNIT  0x1p26             /* LOSS_MAX is below 2^32 of it */
#define BRIER_UNIT 0x1p30             /* 2 is below 2^32 of it */
#define P_UNIT     0x1p30
#define P_BITS     30
#define TRUE_BIT   SVI_PAIR_TRUE
#define COUNT_MAX  (INT64_MAX / 8)

/* One sample, in integer units: rounding happens once, here, and never in a windowed sum. */
struct outcome {
    uint32_t loss, brier, p;
}; /* p has the bit TRUE_BIT set if the outcome it is the probability of was true */

/* Sums over a stretch in integers, so that removing a sample undoes adding it exactly. */
struct totals {
    int64_t n, loss, brier;
    struct {
        int64_t hits, p;
    } bin[BINS];
};

struct svi_reliability {
    struct svi_stat_ring places;
    struct totals recent;
    double n, loss, brier, bin[BINS][3]; /* totals: samples; sums. By bin: samples, true ones, sum of p */
    struct outcome ring[];               /* the samples of the window */
};

static size_t reliability_bytes(int64_t window) {
    return sizeof(svi_reliability) + (size_t)window * sizeof(struct outcome);
}

svi_reliability *svi_reliability_new(int64_t window, svs_error *err) {
    svi_reliability *r = svi_new(reliability_bytes(window), "the figures of probabilities", err);
    if (!r)
        return NULL;
    r->places.window = window;
    return r;
}

void svi_reliability_free(svi_reliability **r) {
    svi_free(*r);
    *r = NULL;
}

void svi_reliability_reset(svi_reliability *r) {
    *r = (svi_reliability){.places.window = r->places.window};
}

/* Copies the totals; the ring stays *r's own, so the windowed sums restart. */
void svi_reliability_take_over(svi_reliability *r, const svi_reliability *of) {
    const struct svi_stat_ring places = r->places;
    *r = *of;
    r->places = places;
    r->recent = (struct totals){0};
}

/* The bin of a probability in units; p = 1 belongs to the last one. */
static inline int reliability_bin(uint32_t p) {
    const int bin = (int)(((uint64_t)p * BINS) >> P_BITS);
    return bin < BINS ? bin : BINS - 1;
}

/* Adds an outcome to the sums (direction 1) or removes it (-1). */
static inline void reliability_count(struct totals *t, struct outcome j, int direction) {
    const uint32_t p = j.p & ~TRUE_BIT;
    const int bin = reliability_bin(p);
    t->n += direction;
    t->loss += direction * (int64_t)j.loss;
    t->brier += direction * (int64_t)j.brier;
    t->bin[bin].hits += direction * (int64_t)(j.p >> 31); /* TRUE_BIT */
    t->bin[bin].p += direction * (int64_t)p;
}

/* The figures of one sample. Two classes: the squared error of the second class's probability alone, which is
 * half the sum over both classes; `top` is the second class then. */
static struct outcome reliability_update(const double *proba, int class_count, int truth) {
    /* A class without a probability has p = 0: the largest loss, and 1 for its squared error. */
    double loss = truth < class_count ? -svi_log(proba[truth]) : LOSS_MAX, brier = truth >= class_count;
    int top = 1;
    for (int k = 0; k < class_count && class_count > 2; k++) {
        const double off = proba[k] - (k == truth);
        brier += off * off;
        top = proba[k] > proba[top] ? k : top;
    }
    if (class_count == 2)
        brier = (proba[1] - (truth == 1)) * (proba[1] - (truth == 1));
    loss = loss < LOSS_MAX ? loss : LOSS_MAX;
    return (struct outcome){(uint32_t)(loss * LOSS_UNIT + 0.5), (uint32_t)(brier * BRIER_UNIT + 0.5),
                            (uint32_t)(proba[top] * P_UNIT + 0.5) | (top == truth ? TRUE_BIT : 0)};
}

/* Totals are sums of doubles but exact as long as they stay below 2^53 units, since terms are whole units. */
static inline void reliability_take(svi_reliability *r, struct outcome j) {
    /* The oldest sample of a full window is subtracted before its slot is overwritten. */
    const uint32_t p = j.p & ~TRUE_BIT;
    double *bin = r->bin[reliability_bin(p)];
    if (svi_stat_ring_full(&r->places))
        reliability_count(&r->recent, r->ring[r->places.slot], -1);
    r->ring[r->places.slot] = j;
    svi_stat_ring_advance(&r->places);
    reliability_count(&r->recent, j, 1);
    r->n++;
    r->loss += j.loss / LOSS_UNIT; /* terms of at least 2^-26: no sum of less than 2^53 of them rounds */
    r->brier += j.brier / BRIER_UNIT;
    bin[0]++;
    bin[1] += j.p >> 31; /* TRUE_BIT */
    bin[2] += p / P_UNIT;
}

void svi_reliability_add(svi_reliability *r, const double *proba, int class_count, int truth) {
    reliability_take(r, reliability_update(proba, class_count, truth));
}

/* A vector form of reliability_update with the same bits. */
void svi_reliability_add_pairs(svi_reliability *r, const struct svi_quads *quads, const double *first,
                               const double *second, const double *y, int n) {
    static const struct svi_pair_units units = {LOSS_MAX, LOSS_UNIT, BRIER_UNIT, P_UNIT};
    struct svi_pair_judgement j;
    quads->judge(&units, first, second, y, &j);
    for (int i = 0; i < n; i++)
        reliability_take(r, (struct outcome){j.loss[i], j.brier[i], j.p[i]});
}

void svi_reliability_figures(const svi_reliability *r, struct svi_figure *out) {
    static const char *const names[SVI_RELIABILITY_FIGURES] = {"logloss",   "brier",   "ece",
                                                               "logloss.w", "brier.w", "ece.w"};
    const struct totals *t = &r->recent;
    double ece = 0, recent = 0;
    /* |true outcomes - sum of p| of a bin, over n: samples of the bin times the gap between its share and its
     * mean p. */
    for (int b = 0; b < BINS; b++) {
        ece += fabs(r->bin[b][1] - r->bin[b][2]);
        recent += fabs((double)t->bin[b].hits - (double)t->bin[b].p / P_UNIT);
    }
    const double n = (double)t->n, value[SVI_RELIABILITY_FIGURES] = {r->loss / r->n,
                                                                     r->brier / r->n,
                                                                     ece / r->n,
                                                                     (double)t->loss / LOSS_UNIT / n,
                                                                     (double)t->brier / BRIER_UNIT / n,
                                                                     recent / n}; /* 0 samples: NAN */
    for (int i = 0; i < SVI_RELIABILITY_FIGURES; i++)
        out[i] = (struct svi_figure){.name = names[i], .type = SVI_NUMBER, .as.number = value[i]};
}

double svi_reliability_memory(int64_t window) {
    return (double)reliability_bytes(window);
}

/* ---- archive */

_Static_assert(sizeof(struct outcome) == 12, "a ring of them is bytes without gaps");

void svi_reliability_archive(struct svi_archive *a, svi_reliability *r) {
    if (svi_archive_loading(a))
        svi_reliability_reset(r);
    if (!svi_stat_ring_archive(a, &r->places))
        return;
    svi_archive_finite(a, "judged", &r->n, 1);
    svi_archive_finite(a, "loss", &r->loss, 1);
    svi_archive_finite(a, "brier", &r->brier, 1);
    svi_archive_finite(a, "bins", r->bin[0], 3 * BINS);
    svi_archive_bytes(a, "probabilities", r->ring, r->places.filled * (int64_t)sizeof *r->ring);
    /* The windowed sums are not archived: they are exact, so the samples give them back. */
    for (int64_t i = 0; i < r->places.filled && svi_archive_loading(a) && svi_archive_ok(a); i++)
        if (svi_archive_check(a, (r->ring[i].p & ~TRUE_BIT) <= (uint32_t)P_UNIT, "a probability is above 1"))
            reliability_count(&r->recent, r->ring[i], 1);
}
