/* drift.h: has the prequential error risen beyond chance?
 *
 * One-sided change-point detection on the sequence of errors, 0 or 1 each: right or wrong for classes; for a
 * regression, whether the error is beyond the 90 % quantile of the first SVI_DRIFT_SIZES ones of the stretch
 * (so that no single large error counts for more than another). For each candidate change point k of the
 * stretch that is held, the generalised likelihood ratio of "one rate before k, a higher one since" against
 * "one rate all along",
 *
 *     n1 kl(p1, p) + n2 kl(p2, p),   kl(a, b) = a ln(a/b) + (1 - a) ln((1 - a)/(1 - b)),
 *
 * p1, p2, p the shares of wrong ones before, since and over all: no rate need be known. A rise is reported
 * when the largest of them reaches its threshold,
 *
 *     max(log(1 / rate) + 5 - 1.7 log m, 4.6),   m the smaller one of n1 and n2
 *
 * (both rise by 1.15 log(1e-4 / rate) for a rate below 1e-4): the longer the shorter part, the fewer
 * independent looks there are in a stretch of samples. The constants
 * are by simulation: while the errors are independent and of one rate, at least 1 / rate samples pass between
 * two reports, on average (tests/property/test_drift.c: error rates from 0.001 to 0.7). Where errors come in
 * bursts the ratio is divided by their overdispersion, which is measured at each time scale by comparing
 * neighbouring stretches. At a fall the oldest buckets are dropped without a word until there is none any
 * more: what is learned makes fewer errors, and only a rise over the low level counts.
 *
 * Candidates: some of the last 64 samples, and the ends of buckets that double in size with their age, 4 or 5
 * of a size, as in ADWIN (Bifet & Gavalda 2007). A sample costs 12 to 35 ns at error rates from 0.01 to 0.4.
 */
#ifndef SVI_DRIFT_H
#define SVI_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "linalg/quads.h"
#include "svmstream/error.h"

#define SVI_DRIFT_BLOCK   32 /* samples of the smallest bucket */
#define SVI_DRIFT_RECENT  64 /* samples that are in none */
#define SVI_DRIFT_EACH    4  /* buckets of a size stay at least */
#define SVI_DRIFT_LEVELS  16 /* sizes: up to 2^20 samples, 5 million in all; older ones are dropped */
#define SVI_DRIFT_BUCKETS (SVI_DRIFT_LEVELS * (SVI_DRIFT_EACH + 1) + 1)
#define SVI_DRIFT_NEAR    12  /* buckets of the two smallest sizes, and the recent samples; whole quads */
#define SVI_DRIFT_SIZES   200 /* errors of a regression by which "large" is set */

/* A judged sample. */
struct svi_drift_sample {
    double size;    /* of the error, >= 0: 0 or 1 for classes, |y - yhat| for a regression */
    double time;    /* seconds */
    int64_t number; /* in the stream */
};

struct svi_drift_stretch {
    int64_t n, wrong;
    double squares; /* sum of squared sizes */
    double time;    /* of its first sample */
    int64_t number;
};

struct svi_drift_bucket {
    struct svi_drift_stretch of;
    int level; /* its size is SVI_DRIFT_BLOCK << level */
    int slot;  /* where other figures of it are kept, 0 .. SVI_DRIFT_BUCKETS - 1 */
};

/* What the moments of features have to do when a block is full. */
struct svi_drift_event {
    int slot; /* the oldest SVI_DRIFT_BLOCK of the recent samples are now in this one; -1: none are */
    int merges;
    struct {
        int into, from;         /* slots: the samples of `from` are now in `into` too */
        int64_t n_into, n_from; /* before */
    } merge[SVI_DRIFT_LEVELS];
};

enum svi_drift_change { SVI_DRIFT_SAME, SVI_DRIFT_RISE, SVI_DRIFT_FALL };

/* A change: it began after `before`. */
struct svi_drift_found {
    struct svi_drift_stretch before, after;
    int bucket; /* the first one of after */
    int recent; /* samples of after that are in no bucket */
};

struct svi_drift {
    bool regress;
    double threshold, floor;                           /* INFINITY: nothing is reported */
    struct svi_drift_stretch all;                      /* what is held */
    uint64_t bits;                                     /* of the recent samples, the last one lowest: wrong */
    int recent, recent_wrong;                          /* how many, and of these wrong */
    struct svi_drift_sample last[SVI_DRIFT_RECENT];    /* sample i of the stretch at i modulo that */
    int64_t pushed, folds;                             /* samples; blocks of them that became buckets */
    struct svi_drift_bucket bucket[SVI_DRIFT_BUCKETS]; /* oldest first */
    int buckets;
    struct {
        double sum; /* of squared differences of neighbours over their variance */
        double terms;
        double over;               /* the overdispersion that is beyond doubt, 0: none; made of them */
    } scale[SVI_DRIFT_LEVELS + 1]; /* of neighbours of 16 << i samples */
    double dispersion[SVI_DRIFT_LEVELS + 1]; /* what they say up to that one; made again from them */
    double size[SVI_DRIFT_SIZES];            /* of a regression, until `large` is known */
    int sizes;
    double large;
    /* The newest buckets, made again from them when they have changed: samples since each, wrong ones, and
     * the least level of a change before it. */
    int near, near_until; /* their number, and the number of recent samples that they hold at most */
    double near_n[SVI_DRIFT_NEAR], near_wrong[SVI_DRIFT_NEAR], near_level[SVI_DRIFT_NEAR];
    const struct svi_quads *quads;
    struct svi_drift_event event; /* of the last step */
    struct svi_drift_found found;
};

void svi_drift_init(struct svi_drift *d, bool regress, double rate);

/* False alarms per sample at most, 0 to 1; 0: nothing is reported. */
void svi_drift_set_rate(struct svi_drift *d, double rate);

/* Nothing is held; what is known of bursts stays. */
void svi_drift_renew(struct svi_drift *d);

/* One more sample. RISE: d->found tells what, and all is still held, for svi_drift_cut to drop what was
 * before it. FALL: what was before it is dropped already (a regression begins again). */
enum svi_drift_change svi_drift_step(struct svi_drift *d, const struct svi_drift_sample *s);
void svi_drift_cut(struct svi_drift *d, const struct svi_drift_found *found);

/* Share of wrong ones; NAN when empty. */
double svi_drift_share(const struct svi_drift_stretch *s);

/* The clock that times were read from was moved: those after `from` move by `step`. */
void svi_drift_move_times(struct svi_drift *d, double from, double step);

/* Loading goes into one from svi_drift_init with the same task. */
void svi_drift_archive(struct svi_archive *a, struct svi_drift *d);

/* ---- what moved: mean and deviation of each feature over the same stretches as the errors, so that what
 * moved most between before and after a change can be named */

#define SVI_DRIFT_FEATURES 4096 /* a sample of more features tells nothing of them */

/* Zero-initialised is empty. */
struct svi_drift_moments {
    bool off;         /* there were too many features */
    int d;            /* features so far */
    int32_t capacity; /* features that there is capacity for */
    double *bucket;   /* SVI_DRIFT_BUCKETS x 2 x room: means, then sums of squared deviations, by slot */
    double *recent;   /* SVI_DRIFT_RECENT x room: raw rows, by their place in svi_drift's `last` */
    const struct svi_quads *quads; /* set with the room */
};

/* What a feature did: its mean moved by `shift` deviations. */
struct svi_drift_shift {
    int feature;
    double before, after, deviation; /* means; deviation before */
    double shift;
};

/* Makes room for d features; more than SVI_DRIFT_FEATURES: all is dropped, and stays so. SVS_NO_MEMORY:
 * nothing has changed. */
svs_code svi_drift_moments_reserve(struct svi_drift_moments *m, int d, svs_error *err);
void svi_drift_moments_free(struct svi_drift_moments *m);

/* After svi_drift_step took the sample of this row, for which there is room; NULL: the one before stands for
 * it. Where d->pushed is 0 the sample was not taken. */
void svi_drift_moments_step(struct svi_drift_moments *m, const struct svi_drift *d, const double *x,
                            int features);

/* The feature becomes a new one, which was 0 so far. */
void svi_drift_moments_clear(struct svi_drift_moments *m, int feature);

/* The features whose means moved most, at most `most` of them, and none that moved no more than chance moves
 * the most of that many; largest shift first. Returns how many. */
int svi_drift_moments_top(const struct svi_drift_moments *m, const struct svi_drift *d,
                          const struct svi_drift_found *found, int most, struct svi_drift_shift *out);

/* Bit for bit; after svi_drift_archive of d. Loading goes into an empty one. */
void svi_drift_moments_archive(struct svi_archive *a, struct svi_drift_moments *m, const struct svi_drift *d);

double svi_drift_moments_memory(int d); /* bytes */

#endif
