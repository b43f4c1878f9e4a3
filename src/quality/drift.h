/* drift.h: has the prequential error risen beyond chance?
 *
 * One-sided change-point detection on a sequence of errors, 0 or 1 each. For classes: right or wrong. For a
 * regression: whether the error exceeds the 90 % quantile of the first SVI_DRIFT_SIZES errors of the stretch,
 * so that no single large error outweighs another. For each candidate change point k of the stretch that is
 * kept, the generalised likelihood ratio of "one rate before k, a higher one since" against "one rate
 * throughout" is
 *
 *     n1 kl(p1, p) + n2 kl(p2, p),   kl(a, b) = a ln(a/b) + (1 - a) ln((1 - a)/(1 - b)),
 *
 * with p1, p2, p the shares of wrong samples before, since and overall: no rate has to be known. A rise is
 * reported when the largest ratio reaches its threshold,
 *
 *     max(log(1 / rate) + 5 - 1.7 log m, 4.6),   m the smaller of n1 and n2
 *
 * (both terms rise by 1.15 log(1e-4 / rate) for a rate below 1e-4). The longer the shorter part, the fewer
 * independent tests fit into a stretch of samples, hence the log m. The constants come from simulation: while
 * errors are independent with one rate, at least 1 / rate samples pass between two reports on average
 * (tests/property/test_drift.c: error rates from 0.001 to 0.7). Where errors arrive in bursts the ratio is
 * divided by their overdispersion, which is measured at each time scale by comparing neighbouring stretches.
 * At a fall the oldest buckets are dropped, without a report, until no fall is found any more: learning makes
 * errors rarer, and only a rise above the low level matters.
 *
 * Candidates: some of the last 64 samples, and the ends of buckets that double in size with their age, 4 or 5
 * of a size, as in ADWIN (Bifet & Gavalda 2007). A sample costs 12 to 35 ns at error rates from 0.01 to
 * 0.4. */
#ifndef SVI_DRIFT_H
#define SVI_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "linalg/quads.h"
#include "svmstream/error.h"

#define SVI_DRIFT_BLOCK   32 /* samples of the smallest bucket */
#define SVI_DRIFT_RECENT  64 /* capacity for samples that are in no bucket yet */
#define SVI_DRIFT_EACH    4  /* buckets of one size that are kept; a further one causes a merge */
#define SVI_DRIFT_LEVELS  16 /* bucket sizes: up to 2^20 samples, 5 million in all; older ones are dropped */
#define SVI_DRIFT_BUCKETS (SVI_DRIFT_LEVELS * (SVI_DRIFT_EACH + 1) + 1)
#define SVI_DRIFT_NEAR    12  /* buckets of the two smallest sizes, and the recent samples; whole quads */
#define SVI_DRIFT_SIZES   200 /* errors of a regression by which "large" is set */

/* A scored sample. */
struct svi_drift_sample {
    double size;    /* size of the error, >= 0: 0 or 1 for classes, |y - yhat| for a regression */
    double time;    /* seconds */
    int64_t number; /* in the stream */
};

/* Consecutive samples. time and number are those of the first one. */
struct svi_drift_stretch {
    int64_t n, wrong; /* samples; wrong ones (of a regression: with a large error) */
    double squares;   /* sum of squared sizes */
    double time;
    int64_t number;
};

struct svi_drift_bucket {
    struct svi_drift_stretch of;
    int level; /* its size is SVI_DRIFT_BLOCK << level */
    int slot;  /* index of its moments of features, 0 .. SVI_DRIFT_BUCKETS - 1; stays while buckets move */
};

/* The bucket operations of the last step, which the moments of features have to repeat. */
struct svi_drift_event {
    int slot; /* slot that took the oldest SVI_DRIFT_BLOCK recent samples; -1: no operation */
    int merges;
    struct {
        int into, from;         /* slots: `into` now holds the samples of both */
        int64_t n_into, n_from; /* samples of each before the merge */
    } merge[SVI_DRIFT_LEVELS];
};

enum svi_drift_change { SVI_DRIFT_SAME, SVI_DRIFT_RISE, SVI_DRIFT_FALL };

/* A change between `before` and `after`. */
struct svi_drift_found {
    struct svi_drift_stretch before, after;
    int bucket; /* index of the first bucket of `after`; `buckets` where it has none */
    int recent; /* samples of `after` that are in no bucket */
};

struct svi_drift {
    bool regress;
    double threshold, floor;                           /* at m = 1; lowest. INFINITY: nothing is reported */
    struct svi_drift_stretch all;                      /* everything that is kept */
    uint64_t bits;                                     /* 1 = wrong, by recent sample; the newest is bit 0 */
    int recent, recent_wrong;                          /* recent samples; wrong ones among them */
    struct svi_drift_sample last[SVI_DRIFT_RECENT];    /* a ring: the i-th sample pushed is at i mod 64 */
    int64_t pushed, folds;                             /* samples; blocks of them that became buckets */
    struct svi_drift_bucket bucket[SVI_DRIFT_BUCKETS]; /* oldest first */
    int buckets;
    struct {
        double sum;                /* of squared differences of neighbours over their variance */
        double terms;              /* their number */
        double over;               /* lower bound of the overdispersion, derived from both; 0: unknown */
    } scale[SVI_DRIFT_LEVELS + 1]; /* [i]: neighbours of 16 << i samples */
    double dispersion[SVI_DRIFT_LEVELS + 1]; /* largest `over` up to each scale, at least 1; derived */
    double size[SVI_DRIFT_SIZES];            /* regression: sizes of errors, until `large` is known */
    int sizes;
    double large; /* regression: larger errors are wrong */
    /* The boundaries of the newest buckets, rebuilt after these have changed: samples in buckets since each,
     * wrong ones, and a lower bound of the level that a change there has to reach. */
    int near, near_until; /* boundaries; number of recent samples up to which the levels are valid */
    double near_n[SVI_DRIFT_NEAR], near_wrong[SVI_DRIFT_NEAR], near_level[SVI_DRIFT_NEAR];
    const struct svi_quads *quads;
    struct svi_drift_event event; /* of the last step */
    struct svi_drift_found found;
};

void svi_drift_init(struct svi_drift *d, bool regress, double rate);

/* rate: false alarms per sample, at most, 0 to 1; 0: nothing is reported. */
void svi_drift_set_rate(struct svi_drift *d, double rate);

/* Drops all samples; the measured overdispersion is kept. */
void svi_drift_renew(struct svi_drift *d);

/* Takes one sample. RISE: d->found describes it, and all samples are still kept, so that svi_drift_cut can
 * drop those before it. FALL: those before it are dropped already (a regression restarts). */
enum svi_drift_change svi_drift_step(struct svi_drift *d, const struct svi_drift_sample *s);
void svi_drift_cut(struct svi_drift *d, const struct svi_drift_found *found);

/* The ratio of a rise from n1 samples with a share p1 of wrong ones to n2 with p2, over what it has to reach
 * after n2 samples; 0 if p2 is not larger. Above 1 it is beyond chance. `fewer`: the threshold is higher by
 * that, in nats. */
double svi_drift_ratio(const struct svi_drift *d, double n1, double p1, double n2, double p2, double fewer);

/* Share of wrong samples; NAN when empty. */
double svi_drift_share(const struct svi_drift_stretch *s);

/* The clock was set: times after `from` move by `step` seconds. */
void svi_drift_move_times(struct svi_drift *d, double from, double step);

/* Loads into an object from svi_drift_init with the same task. */
void svi_drift_archive(struct svi_archive *a, struct svi_drift *d);

/* ---- what moved: mean and deviation of each feature over the same stretches as the errors, so that the
 * features that moved most at a change can be named */

#define SVI_DRIFT_FEATURES 4096 /* with more features, none are followed */

/* Zero-initialised is empty. */
struct svi_drift_moments {
    bool off;         /* there were too many features: nothing is kept any more */
    int d;            /* features so far */
    int32_t capacity; /* features reserved */
    double *bucket;   /* SVI_DRIFT_BUCKETS x 2 x capacity, by slot: means, then sums of squared deviations */
    double *recent;   /* SVI_DRIFT_RECENT x capacity: raw rows, at the places of svi_drift's `last` */
    const struct svi_quads *quads; /* set by svi_drift_moments_reserve */
};

/* A feature whose mean moved by `shift` deviations. */
struct svi_drift_shift {
    int feature;
    double before, after, deviation; /* means; standard deviation before */
    double shift;                    /* in standard deviations, pooled over both parts; signed */
};

/* Reserves capacity for d features. Beyond SVI_DRIFT_FEATURES everything is dropped, for good. SVS_NO_MEMORY:
 * nothing has changed. */
svs_code svi_drift_moments_reserve(struct svi_drift_moments *m, int d, svs_error *err);
void svi_drift_moments_free(struct svi_drift_moments *m);

/* Call after svi_drift_step, with the row of the same sample, within the reserved capacity; NULL: unknown,
 * the row before is repeated. Where d->pushed is 0 the sample was not taken. */
void svi_drift_moments_step(struct svi_drift_moments *m, const struct svi_drift *d, const double *x,
                            int features);

/* The column now belongs to another feature, which was 0 so far. */
void svi_drift_moments_clear(struct svi_drift_moments *m, int feature);

/* Fills out[] with at most `most` features whose means moved most, largest shift first. A feature must have
 * moved further than chance would move the largest of that many features. Returns how many. */
int svi_drift_moments_top(const struct svi_drift_moments *m, const struct svi_drift *d,
                          const struct svi_drift_found *found, int most, struct svi_drift_shift *out);

/* Bit for bit; call after svi_drift_archive of d. Loads into an empty object. */
void svi_drift_moments_archive(struct svi_archive *a, struct svi_drift_moments *m, const struct svi_drift *d);

double svi_drift_moments_memory(int d); /* bytes */

#endif
