/* The errors of the stretch that is kept: the last 32 to 64 one by one (`bits` and the ring `last`), older
 * ones in buckets, oldest first. When a sample arrives with 64 stored, the older half becomes a bucket; where
 * more than SVI_DRIFT_EACH buckets have one size, the two oldest merge. `event` records both, so that the
 * moments of the features can follow.
 *
 * Only a wrong sample can raise the ratio of a rise, so the recent candidates and the small buckets are
 * tested only then; larger buckets when a block is full, and all of them at every fourth block. A few
 * multiplications rule out most candidates, by the chi-square bound kl(a, b) <= (a - b)^2 / (b (1 - b)).
 *
 * Invariants: bucket sizes do not increase from old to new; `all` is the sum of buckets and recent samples;
 * each bucket has a slot that no other has.
 *
 * Read svi_drift_step, drift_search, drift_weigh, then drift_fold; the moments of the features are last. */
#include "quality/drift.h"

#include <math.h>
#include <string.h>

#include "base/arrays.h"
#include "base/statistics.h"

#define MIN_BEFORE 32  /* samples before a change, at least */
#define STEP       8   /* distance of sample counts at which the level changes, from 32 samples on */
#define WRONG      3   /* wrong samples since a rise, at least */
#define SINGLE     12  /* of the last wrong samples, each is tried as the beginning of a rise */
#define FOLDS      4   /* at every FOLDS-th full block all buckets are tested ... */
#define NEAR_FULL  4   /* ... at every other one those of this many sizes ... */
#define NEAR       2   /* ... and at each wrong sample those of this many */
#define TERMS      256 /* terms of a scale after which older ones lose half their weight */
#define MAX_TERM   25. /* limits the weight of a single change in a scale */
#define ABOVE      5.0 /* constants of the threshold (drift.h), by simulation */
#define SLOPE      1.7
#define FLOOR      4.6
#define COMMON     1e-4 /* below this rate threshold and floor rise ... */
#define RARER      1.15 /* ... by this for each factor e */
#define LOG_2      0.69314718055994531
#define LOG_5_4    0.22314355131420976
#define LOG_6_4    0.40546510810816438
#define LOG_7_4    0.55961578793542266
#define DOUBTS     3.  /* standard errors that are deducted from a measured overdispersion */
#define LARGE      0.9 /* quantile beyond which an error of a regression is large */
#define BELOW                                                                                                \
    (1 - 1e-9) /* a bound that is less than this of what it is held against is below it, however             \
                * both were rounded */

/* Threshold and floor of drift.h. `near` holds levels derived from them, so it is invalidated. */
void svi_drift_set_rate(struct svi_drift *d, double rate) {
    const double rarer = rate > 0 && rate < COMMON ? RARER * log(COMMON / rate) : 0;
    d->threshold = rate > 0 ? ABOVE - log(fmax(rate, COMMON)) + rarer : INFINITY;
    d->floor = FLOOR + rarer;
    d->near_until = 0;
}

void svi_drift_renew(struct svi_drift *d) {
    d->all = (struct svi_drift_stretch){0};
    d->bits = 0;
    d->recent = d->recent_wrong = d->buckets = d->sizes = 0;
    d->pushed = d->folds = 0;
    d->event = (struct svi_drift_event){.slot = -1};
    d->near_until = 0;
}

/* The dispersion of a scale is the largest one up to it: bursts of short scales are part of longer ones. */
static void drift_measure(struct svi_drift *d) {
    double most = 1;
    for (int i = 0; i <= SVI_DRIFT_LEVELS; i++)
        d->dispersion[i] = most = d->scale[i].over > most ? d->scale[i].over : most;
}

/* Each term has mean 1 and variance of about 2 for independent errors, so their mean has the standard error
 * sqrt(2 / terms). Dividing by 1 + DOUBTS of these gives a lower bound: chance alone does not raise it above
 * 1, and so does not cost power. */
static void drift_measure_scale(struct svi_drift *d, int i) {
    const double terms = d->scale[i].terms;
    d->scale[i].over = terms > 0 ? d->scale[i].sum / terms / (1 + DOUBTS * sqrt(2 / terms)) : 0;
}

void svi_drift_init(struct svi_drift *d, bool regress, double rate) {
    *d = (struct svi_drift){.regress = regress, .quads = svi_quads_get()};
    svi_drift_set_rate(d, rate);
    svi_drift_renew(d);
    drift_measure(d);
}

double svi_drift_share(const struct svi_drift_stretch *s) {
    return s->n > 0 ? (double)s->wrong / (double)s->n : NAN;
}

/* a without b, which lies at its beginning or its end. time and number stay those of a. Rounding could
 * leave a small negative sum of squares. */
static struct svi_drift_stretch drift_minus(const struct svi_drift_stretch *a,
                                            const struct svi_drift_stretch *b) {
    struct svi_drift_stretch rest = *a;
    rest.n -= b->n;
    rest.wrong -= b->wrong;
    rest.squares -= b->squares;
    rest.squares = rest.squares > 0 ? rest.squares : 0;
    return rest;
}

/* Appends `more` to the end of `s`. */
static void drift_append(struct svi_drift_stretch *s, const struct svi_drift_stretch *more) {
    if (s->n == 0) {
        s->time = more->time;
        s->number = more->number;
    }
    s->n += more->n;
    s->wrong += more->wrong;
    s->squares += more->squares;
}

static const struct svi_drift_sample *drift_recent(const struct svi_drift *d, int from_last) {
    return &d->last[(d->pushed - 1 - from_last) & (SVI_DRIFT_RECENT - 1)];
}

/* Sums the recent samples from the `from`-th last to the `to`-th last; 1 is the last. */
static struct svi_drift_stretch drift_sum(const struct svi_drift *d, int from, int to) {
    struct svi_drift_stretch s = {0};
    if (from < to)
        return s;
    const struct svi_drift_sample *first = drift_recent(d, from - 1);
    s.n = from - to + 1;
    s.wrong = __builtin_popcountll(d->bits >> (to - 1) & (~0ull >> (64 - s.n)));
    s.time = first->time;
    s.number = first->number;
    for (int i = from; i >= to && d->regress; i--) {
        const struct svi_drift_sample *p = drift_recent(d, i - 1);
        s.squares += p->size * p->size;
    }
    return s;
}

/* ---- the ratio */

/* a ln(a / b) */
static double drift_term(double a, double b) {
    return a > 0 ? a * log(a / b) : 0;
}

/* The dispersion at the largest scale 16 << i that is not above n. */
static double drift_dispersion(const struct svi_drift *d, int64_t n) {
    const int scale = 63 - __builtin_clzll((uint64_t)n | 16) - 4;
    return d->dispersion[scale < SVI_DRIFT_LEVELS ? scale : SVI_DRIFT_LEVELS];
}

/* One search: what its candidates have in common, and the best one so far. */
struct drift_candidates {
    const struct svi_drift *d;
    int64_t n, wrong; /* of all samples kept */
    double bound;     /* wrong (n - wrong) / n */
    double least;     /* bound times the lowest threshold */
    double ratio;     /* best candidate: ratio over dispersion, less its threshold; -1: none */
    bool rise;
    int bucket, recent; /* of the best candidate, as in svi_drift_found */
};

/* Rules a candidate out without logarithms: kl(a, b) <= log(1 + c) <= c / sqrt(1 + c), with c = (a - b)^2 /
 * (b (1 - b)). With apart = w2 n - w n2, c of either part is apart^2 / (n bound n_i^2). */
static bool drift_is_short(const struct drift_candidates *l, int64_t n1, int64_t n2, int64_t w2,
                           double threshold) {
    const double one = (double)n1, two = (double)n2, apart = (double)(w2 * l->n - l->wrong * n2);
    const double both = apart * apart / ((double)l->n * l->bound);
    const double c1 = both / (one * one), c2 = both / (two * two);
    return one * c1 / sqrt(1 + c1) + two * c2 / sqrt(1 + c2) < BELOW * threshold;
}

/* Computes the ratio of a change before the last n2 samples, of which w2 are wrong, and keeps the candidate
 * if it is further beyond its threshold than the best one so far. */
static void drift_weigh(struct drift_candidates *l, int64_t n2, int64_t w2, double threshold, int bucket,
                        int recent) {
    const int64_t n1 = l->n - n2, w1 = l->wrong - w2;
    const bool rise = w2 * l->n > l->wrong * n2;
    const double p = (double)l->wrong / (double)l->n, q = 1 - p;
    const double dispersion = drift_dispersion(l->d, n2);
    /* A rise needs WRONG wrong samples to be more than bad luck; a fall has few or none, so it needs length
     * instead. */
    if (n1 < MIN_BEFORE || (rise ? w2 < WRONG : n2 < MIN_BEFORE) ||
        drift_is_short(l, n1, n2, w2, threshold * dispersion))
        return;
    /* n1 kl(p1, p) + n2 kl(p2, p), written with counts: w1 log(w1 / (n1 p)) and so on. */
    double ratio = drift_term((double)w1, (double)n1 * p) + drift_term((double)(n1 - w1), (double)n1 * q) +
                   drift_term((double)w2, (double)n2 * p) + drift_term((double)(n2 - w2), (double)n2 * q);
    /* The dispersion is at least 1, so a ratio below the threshold needs no division. */
    if (ratio < threshold)
        return;
    ratio /= dispersion;
    if (ratio < threshold || ratio - threshold <= l->ratio)
        return;
    l->ratio = ratio - threshold;
    l->rise = rise;
    l->bucket = bucket;
    l->recent = recent;
}

/* ---- candidates */

/* The threshold for n samples in the shorter part. The logarithm of n is rounded down to quarter octaves,
 * which costs no call and can only raise the threshold. */
static inline double drift_level(const struct svi_drift *d, int64_t n) {
    static const double quarter[] = {0, LOG_5_4, LOG_6_4, LOG_7_4};
    const int k = 63 - __builtin_clzll((uint64_t)n | 1); /* n lies in [2^k, 2^(k + 1)) */
    const double level = d->threshold - SLOPE * (LOG_2 * k + quarter[((uint64_t)n << 2 >> k) & 3]);
    return level > d->floor ? level : d->floor;
}

double svi_drift_ratio(const struct svi_drift *d, double n1, double p1, double n2, double p2, double fewer) {
    const double p = (n1 * p1 + n2 * p2) / (n1 + n2), q = 1 - p;
    const double need = drift_level(d, (int64_t)fmin(n1, n2)) + fewer;
    if (!(p2 > p1) || !(n1 >= 1) || !(need < INFINITY))
        return 0;
    const double ratio =
        n1 * (drift_term(p1, p) + drift_term(1 - p1, q)) + n2 * (drift_term(p2, p) + drift_term(1 - p2, q));
    return ratio / drift_dispersion(d, (int64_t)n2) / need;
}

/* Rules most candidates out by the chi-square bound: the ratio is at most apart^2 / (bound n1 n2). First
 * against the lowest threshold of all, which is precomputed; then against the candidate's own. */
static inline void drift_try(struct drift_candidates *l, int64_t n2, int64_t w2, int bucket, int recent) {
    const int64_t n1 = l->n - n2;
    const double apart = (double)(w2 * l->n - l->wrong * n2);
    if (apart * apart < l->least * (double)n2 * (double)n1 || n1 == 0 || n2 == 0)
        return;
    const double threshold = drift_level(l->d, n2 < n1 ? n2 : n1);
    const double beyond = BELOW * threshold * drift_dispersion(l->d, n2);
    if (apart * apart >= beyond * l->bound * (double)n2 * (double)n1)
        drift_weigh(l, n2, w2, threshold, bucket, recent);
}

/* Tries the boundaries of the buckets whose level is below `levels`, newest first, beginning with the one
 * between the buckets and the recent samples. The oldest bucket has no boundary before it. */
static void drift_try_buckets(struct drift_candidates *l, int levels) {
    const struct svi_drift *d = l->d;
    int64_t n = d->recent, wrong = d->recent_wrong;
    drift_try(l, n, wrong, d->buckets, d->recent);
    for (int i = d->buckets - 1; i > 0 && d->bucket[i].level < levels; i--) {
        n += d->bucket[i].of.n;
        wrong += d->bucket[i].of.wrong;
        drift_try(l, n, wrong, i, d->recent);
    }
}

/* Tries a rise that begins with the newest of the wrong samples in `bits`; `wrong` are wrong since then. */
static inline void drift_try_rise(struct drift_candidates *l, uint64_t bits, int wrong) {
    const int n = __builtin_ctzll(bits) + 1;
    if (wrong * l->n > l->wrong * n)
        drift_try(l, n, wrong, l->d->buckets, n);
}

/* The ratio of a rise is largest when it begins with a wrong sample, so only these are candidates: of the
 * recent ones each up to SINGLE, then every fourth. The first WRONG - 1 have too few wrong samples after
 * them. */
static inline void drift_try_recent(struct drift_candidates *l) {
    const struct svi_drift *d = l->d;
    uint64_t bits = d->bits & (d->bits - 1);
    bits &= bits - 1;
    int wrong = WRONG;
    for (; bits && wrong < SINGLE; wrong++, bits &= bits - 1)
        drift_try_rise(l, bits, wrong);
    for (; bits; wrong += 4) {
        drift_try_rise(l, bits, wrong);
        for (int i = 0; i < 4; i++)
            bits &= bits - 1;
    }
}

/* Sums both sides of a change. */
static void drift_describe(const struct svi_drift *d, int bucket, int recent, struct svi_drift_found *out) {
    struct svi_drift_stretch after = {0};
    for (int i = bucket; i < d->buckets; i++)
        drift_append(&after, &d->bucket[i].of);
    const struct svi_drift_stretch rest = drift_sum(d, recent, 1);
    drift_append(&after, &rest);
    *out = (struct svi_drift_found){drift_minus(&d->all, &after), after, bucket, recent};
}

/* ---- is there a change at all?
 *
 * The same candidates as drift_try_recent and drift_try_buckets with NEAR levels, tested together by a vector
 * routine. It must never rule out one that these would find; it may pass too many. */

/* Collects the boundaries near the end. Levels fall with the number of samples, so each is taken at the
 * largest number for which it is to hold, n + near_until: a lower bound until then. From 32 samples on levels
 * change at multiples of STEP only, so the bound is tight. Dispersions grow, so the present one is a lower
 * bound too. */
static __attribute__((noinline)) void drift_find_near(struct svi_drift *d) {
    int64_t n = 0, wrong = 0;
    d->near = 0;
    d->near_until = d->recent | (STEP - 1);
    for (int i = d->buckets;; i--) {
        d->near_n[d->near] = (double)n;
        d->near_wrong[d->near] = (double)wrong;
        d->near_level[d->near++] =
            BELOW * drift_level(d, n + d->near_until) * drift_dispersion(d, n + d->recent);
        if (i < 2 || d->bucket[i - 1].level >= NEAR)
            return;
        n += d->bucket[i - 1].of.n;
        wrong += d->bucket[i - 1].of.wrong;
    }
}

/* SLOPE times the rounded logarithm of drift_level, for 1 to 64 samples: a table, because drift_rises needs
 * it for every wrong sample. */
#define OF(k, quarter) (SLOPE * (LOG_2 * (k) + (quarter)))
#define FOUR(k, times) times(OF(k, 0)), times(OF(k, LOG_5_4)), times(OF(k, LOG_6_4)), times(OF(k, LOG_7_4))
#define ONCE(x)        x
#define TWICE(x)       x, x
#define TIMES4(x)      TWICE(x), TWICE(x)
#define TIMES8(x)      TIMES4(x), TIMES4(x)
static const double drift_slope[SVI_DRIFT_RECENT + 1] = {0,
                                                         OF(0, 0),
                                                         OF(1, 0),
                                                         OF(1, LOG_6_4),
                                                         FOUR(2, ONCE),
                                                         FOUR(3, TWICE),
                                                         FOUR(4, TIMES4),
                                                         FOUR(5, TIMES8),
                                                         OF(6, 0)};

/* The candidates of drift_try_recent that the chi-square bound does not rule out: samples since each, wrong
 * ones among them, and the level there. Returns how many. */
static inline int drift_rises(const struct svi_drift *d, const struct svi_cuts *c, double *n, double *wrong,
                              double *level) {
    uint64_t bits = d->bits & (d->bits - 1);
    int count = 0;
    bits &= bits - 1;
    for (int w = WRONG; w <= d->recent_wrong; w++, bits &= bits - 1) {
        /* The same selection as in drift_try_recent. */
        if (w > SINGLE && (w - SINGLE) % 4)
            continue;
        const int since = __builtin_ctzll(bits) + 1;
        const double threshold = d->threshold - drift_slope[since], apart = w * c->n - c->wrong * since;
        const double most = BELOW * (threshold > d->floor ? threshold : d->floor) * d->dispersion[since >> 5];
        if (apart <= 0 || apart * apart < most * c->bound * since * (c->n - since))
            continue;
        n[count] = since;
        wrong[count] = w;
        level[count++] = most;
    }
    return count;
}

/* Can drift_search after a wrong sample find nothing, by bounds of all its candidates? Usually this is all
 * the work of a sample. */
static inline bool drift_is_quiet(struct svi_drift *d) {
    double n[SVI_DRIFT_RECENT], wrong[SVI_DRIFT_RECENT], level[SVI_DRIFT_RECENT];
    struct svi_cuts c = {.n = (double)d->all.n, .wrong = (double)d->all.wrong, .fewest = MIN_BEFORE};
    if (d->recent > d->near_until)
        drift_find_near(d);
    c.bound = c.wrong * (c.n - c.wrong) / c.n;
    const int rises = drift_rises(d, &c, n, wrong, level);
    if (rises > 0 && d->quads->cut(&c, n, wrong, level, rises))
        return false;
    /* Boundaries of buckets were stored without the recent samples, which are added to each here. A fall
     * counts there too, so `apart` may be negative. */
    c.more_n = d->recent;
    c.more_wrong = d->recent_wrong;
    c.least = -INFINITY;
    return !d->quads->cut(&c, d->near_n, d->near_wrong, d->near_level, d->near);
}

/* The largest change beyond its threshold. wrong: also try recent samples as the beginning of a rise; full: a
 * block is full, so try larger buckets too; again: part of drift_follow, all buckets, and a fall leaves
 * d->found alone. */
static enum svi_drift_change drift_search(struct svi_drift *d, bool wrong, bool full, bool again) {
    const double w = (double)d->all.wrong, n = (double)d->all.n;
    struct drift_candidates l = {
        .d = d, .n = d->all.n, .wrong = d->all.wrong, .bound = w * (n - w) / n, .ratio = -1};
    l.least = BELOW * d->floor * l.bound;
    if (d->all.n <= MIN_BEFORE || d->all.wrong < WRONG || !(d->threshold < INFINITY))
        return SVI_DRIFT_SAME;
    if (wrong)
        drift_try_recent(&l);
    drift_try_buckets(&l, !full ? NEAR : !again && d->folds % FOLDS ? NEAR_FULL : SVI_DRIFT_LEVELS);
    if (l.ratio < 0)
        return SVI_DRIFT_SAME;
    /* A rise that shows at one candidate may be larger at an older one: its beginning is the best of all. */
    if (l.rise)
        drift_try_buckets(&l, SVI_DRIFT_LEVELS);
    if (l.rise || !again)
        drift_describe(d, l.bucket, l.recent, &d->found);
    return l.rise ? SVI_DRIFT_RISE : SVI_DRIFT_FALL;
}

/* ---- buckets */

/* The lowest slot that no bucket has. */
static int drift_free_slot(const struct svi_drift *d) {
    uint64_t taken[SVI_DRIFT_BUCKETS / 64 + 1] = {0};
    int at = 0;
    for (int i = 0; i < d->buckets; i++)
        taken[d->bucket[i].slot >> 6] |= 1ull << (d->bucket[i].slot & 63);
    while (taken[at] == UINT64_MAX)
        at++;
    return 64 * at + __builtin_ctzll(~taken[at]);
}

/* Removes the oldest `count` buckets; their slots become free. The caller adjusts `all`. */
static void drift_drop_buckets(struct svi_drift *d, int count) {
    d->buckets -= count;
    d->near_until = 0;
    memmove(d->bucket, d->bucket + count, (size_t)d->buckets * sizeof *d->bucket);
}

/* Compares two neighbours of n = 16 << i samples each. Given their sum K, the difference of independent
 * errors has the (hypergeometric) variance K (2n - K) / (2n - 1), so a term has mean 1. */
static void drift_compare(struct svi_drift *d, int i, double n, double one, double other) {
    const double both = one + other, right = 2 * n - both;
    /* Without both outcomes there is no variance to compare with. */
    if (both == 0 || right == 0)
        return;
    const double gap = one - other, term = gap * gap * (2 * n - 1) / (both * right);
    /* Halving keeps the measure recent: bursts of the distant past fade. */
    if (d->scale[i].terms >= TERMS) {
        d->scale[i].sum /= 2;
        d->scale[i].terms /= 2;
    }
    d->scale[i].sum += term < MAX_TERM ? term : MAX_TERM;
    d->scale[i].terms++;
    drift_measure_scale(d, i);
}

/* Merges the two oldest buckets of each level that has too many, from small to large: a merge may make the
 * next level too full. At the last level the oldest bucket is dropped instead. */
static void drift_merge(struct svi_drift *d) {
    for (int level = 0, end = d->buckets; level < SVI_DRIFT_LEVELS; level++) {
        int first = end;
        while (first > 0 && d->bucket[first - 1].level == level)
            first--;
        if (end - first <= SVI_DRIFT_EACH)
            return;
        if (level == SVI_DRIFT_LEVELS - 1) {
            d->all = drift_minus(&d->all, &d->bucket[0].of);
            drift_drop_buckets(d, 1);
            return;
        }
        struct svi_drift_bucket *a = &d->bucket[first], *b = a + 1;
        d->event.merge[d->event.merges].into = a->slot;
        d->event.merge[d->event.merges].from = b->slot;
        d->event.merge[d->event.merges].n_into = a->of.n;
        d->event.merge[d->event.merges++].n_from = b->of.n;
        /* Before the counts are added, while both halves are still known. */
        drift_compare(d, level + 1, (double)a->of.n, (double)a->of.wrong, (double)b->of.wrong);
        drift_append(&a->of, &b->of);
        /* The merged bucket keeps the first slot and becomes the newest of the next level. */
        a->level++;
        d->buckets--;
        memmove(b, b + 1, (size_t)(d->buckets - first - 1) * sizeof *b);
        end = first + 1;
    }
}

/* Turns the older half of the recent samples into a bucket. The two halves of that block are the pair of the
 * shortest scale. */
static void drift_fold(struct svi_drift *d) {
    /* A new bucket is the newest, hence the last; the array has one spare place for it until drift_merge
     * ran. */
    struct svi_drift_bucket *b = &d->bucket[d->buckets];
    const uint64_t old = d->bits >> SVI_DRIFT_BLOCK;
    const int slot = drift_free_slot(d);
    *b = (struct svi_drift_bucket){.of = drift_sum(d, SVI_DRIFT_RECENT, SVI_DRIFT_BLOCK + 1), .slot = slot};
    d->buckets++;
    d->near_until = 0;
    d->folds++;
    d->event.slot = slot;
    d->recent -= SVI_DRIFT_BLOCK;
    d->bits &= (1ull << SVI_DRIFT_BLOCK) - 1;
    d->recent_wrong = __builtin_popcountll(d->bits);
    drift_compare(d, 0, SVI_DRIFT_BLOCK / 2, __builtin_popcountll(old >> SVI_DRIFT_BLOCK / 2),
                  __builtin_popcountll(old & ((1u << SVI_DRIFT_BLOCK / 2) - 1)));
    drift_merge(d);
    drift_measure(d);
}

/* After a fall, drops the oldest buckets one by one until no fall is found. Cutting at the best candidate
 * instead would select the stretch with the lowest share, and the next normal samples would look like a
 * rise. */
static void drift_follow(struct svi_drift *d) {
    do {
        d->all = drift_minus(&d->all, &d->bucket[0].of);
        drift_drop_buckets(d, 1);
    } while (d->buckets > 0 && drift_search(d, false, true, true) == SVI_DRIFT_FALL);
}

/* Keeps `after` alone: its buckets, and its recent samples where the change lies among these. */
void svi_drift_cut(struct svi_drift *d, const struct svi_drift_found *f) {
    drift_drop_buckets(d, f->bucket);
    d->all = f->after;
    d->recent = f->recent;
    if (f->recent < SVI_DRIFT_RECENT)
        d->bits &= (1ull << f->recent) - 1;
    d->recent_wrong = __builtin_popcountll(d->bits);
}

/* ---- one sample */

/* Is the error of a regression large? Sets *known to false while the limit is not known: the first
 * SVI_DRIFT_SIZES errors of a stretch only set it. */
static bool drift_is_large(struct svi_drift *d, double size, bool *known) {
    *known = d->sizes == SVI_DRIFT_SIZES;
    if (*known)
        return size > d->large;
    d->size[d->sizes++] = size;
    if (d->sizes == SVI_DRIFT_SIZES)
        d->large = svi_quantile(d->size, SVI_DRIFT_SIZES, LARGE);
    return false;
}

enum svi_drift_change svi_drift_step(struct svi_drift *d, const struct svi_drift_sample *s) {
    bool known = true;
    const bool wrong = d->regress ? drift_is_large(d, s->size, &known) : s->size > 0;
    d->event.slot = -1;
    d->event.merges = 0;
    /* A sample that only sets the limit is not part of the stretch: d->pushed stays as it was. */
    if (!known)
        return SVI_DRIFT_SAME;
    /* Folding waits for the next sample, so that a search at a full block sees all 64 one by one. */
    if (d->recent == SVI_DRIFT_RECENT)
        drift_fold(d);
    d->last[d->pushed++ & (SVI_DRIFT_RECENT - 1)] = *s;
    d->bits = d->bits << 1 | wrong;
    d->recent++;
    d->recent_wrong += wrong;
    d->all.n++;
    d->all.wrong += wrong;
    if (d->regress)
        d->all.squares += s->size * s->size;
    const bool full = d->recent == SVI_DRIFT_RECENT;
    enum svi_drift_change change = SVI_DRIFT_SAME;
    /* A full block is always searched, because falls need no wrong sample. In between only a wrong sample can
     * make a difference, and only if bounds do not exclude it. */
    if (full || (wrong && !drift_is_quiet(d)))
        change = drift_search(d, wrong, full, false);
    /* A regression at a lower level needs another limit for large errors, so it restarts. */
    if (change == SVI_DRIFT_FALL && d->regress)
        svi_drift_renew(d);
    else if (change == SVI_DRIFT_FALL)
        drift_follow(d);
    return change;
}

/* ---- clock, archive */

static void drift_move(double *time, double from, double step) {
    if (*time > from)
        *time += step;
}

void svi_drift_move_times(struct svi_drift *d, double from, double step) {
    drift_move(&d->all.time, from, step);
    for (int i = 0; i < d->buckets; i++)
        drift_move(&d->bucket[i].of.time, from, step);
    for (int i = 0; i < d->recent; i++)
        drift_move(&d->last[(d->pushed - 1 - i) & (SVI_DRIFT_RECENT - 1)].time, from, step);
}

static void drift_archive_stretch(struct svi_archive *a, struct svi_drift_stretch *s) {
    svi_archive_int64(a, "samples", &s->n, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "wrong", &s->wrong, 0, s->n);
    svi_archive_finite(a, "squares", &s->squares, 1);
    svi_archive_finite(a, "time", &s->time, 1);
    svi_archive_int64(a, "number", &s->number, 0, SVI_COUNT_MAX);
}

/* Loading checks the invariants of buckets: distinct slots, sizes, order, number of each, and the totals. */
static void drift_archive_buckets(struct svi_archive *a, struct svi_drift *d) {
    bool taken[SVI_DRIFT_BUCKETS] = {false};
    int level[SVI_DRIFT_LEVELS] = {0};
    int64_t n = d->recent, wrong = d->recent_wrong;
    for (int i = 0; i < d->buckets && svi_archive_ok(a); i++) {
        struct svi_drift_bucket *b = &d->bucket[i];
        svi_archive_int(a, "level", &b->level, 0, SVI_DRIFT_LEVELS - 1);
        svi_archive_int(a, "slot", &b->slot, 0, SVI_DRIFT_BUCKETS - 1);
        drift_archive_stretch(a, &b->of);
        if (!svi_archive_ok(a))
            return;
        svi_archive_check(a,
                          !taken[b->slot] && b->of.n == (int64_t)SVI_DRIFT_BLOCK << b->level &&
                              (i == 0 || b->level <= b[-1].level) && ++level[b->level] <= SVI_DRIFT_EACH,
                          "the buckets of errors do not fit together");
        taken[b->slot] = true;
        n += b->of.n;
        wrong += b->of.wrong;
    }
    svi_archive_check(a, n == d->all.n && wrong == d->all.wrong, "the buckets of errors are not all");
}

/* Order: task and large errors, dispersions, recent samples, buckets. The totals come before what they are
 * checked against. */
void svi_drift_archive(struct svi_archive *a, struct svi_drift *d) {
    bool regress = d->regress;
    svi_archive_bool(a, "regress", &regress);
    svi_archive_int(a, "sizes", &d->sizes, 0, SVI_DRIFT_SIZES);
    if (!svi_archive_check(a, regress == d->regress && (regress || d->sizes == 0), "the task was different"))
        return;
    svi_archive_finite(a, "size", d->size, d->sizes);
    svi_archive_finite(a, "large", &d->large, 1);
    /* Derived values are rebuilt rather than stored: dispersions here, `near` with the next sample. */
    for (int i = 0; i <= SVI_DRIFT_LEVELS; i++) {
        svi_archive_finite(a, "scale sum", &d->scale[i].sum, 1);
        svi_archive_finite(a, "scale terms", &d->scale[i].terms, 1);
        drift_measure_scale(d, i);
    }
    drift_measure(d);
    d->near_until = 0;
    drift_archive_stretch(a, &d->all);
    svi_archive_uint64(a, "bits", &d->bits);
    svi_archive_int(a, "recent", &d->recent, 0, SVI_DRIFT_RECENT);
    svi_archive_int64(a, "pushed", &d->pushed, d->recent, SVI_COUNT_MAX);
    svi_archive_int64(a, "folds", &d->folds, 0, SVI_COUNT_MAX);
    if (!svi_archive_ok(a))
        return;
    svi_archive_check(a, d->recent == SVI_DRIFT_RECENT || d->bits >> d->recent == 0,
                      "more samples are wrong than there are");
    /* The ring is stored by age, oldest first; its places follow from `pushed`. */
    d->recent_wrong = __builtin_popcountll(d->bits);
    for (int i = d->recent - 1; i >= 0; i--) {
        struct svi_drift_sample *s = &d->last[(d->pushed - 1 - i) & (SVI_DRIFT_RECENT - 1)];
        svi_archive_finite(a, "error", &s->size, 1);
        svi_archive_finite(a, "time", &s->time, 1);
        svi_archive_int64(a, "number", &s->number, 0, SVI_COUNT_MAX);
    }
    svi_archive_int(a, "buckets", &d->buckets, 0, SVI_DRIFT_BUCKETS - 1);
    if (svi_archive_ok(a))
        drift_archive_buckets(a, d);
}

/* ---- what moved
 *
 * Buckets are managed above: drift_fold records in `event` which slot took the oldest rows and which slots
 * were merged, and svi_drift_moments_step repeats it here. Squared deviations are about the mean of their own
 * stretch, so that a feature like a time stamp, whose mean is a billion deviations, keeps its digits. The
 * features that moved are computed at an alarm only. */

#define TOGETHER      8    /* columns that quads process together; the capacity is a multiple of it */
#define MIN_DEVIATION 1e-9 /* of the mean's size: a smaller deviation is rounding */

enum { FEATURES };

static const struct svi_array arrays[] = {
    SVI_ARRAY(struct svi_drift_moments, bucket, NULL, SVI_AXIS_LENGTH(2 * SVI_DRIFT_BUCKETS),
              SVI_AXIS(FEATURES)),
    SVI_ARRAY(struct svi_drift_moments, recent, NULL, SVI_AXIS_LENGTH(SVI_DRIFT_RECENT), SVI_AXIS(FEATURES)),
};
static const struct svi_arrays drift_moments_arrays = SVI_ARRAYS(arrays, "the moments of the features");

static double *drift_moments_of(const struct svi_drift_moments *m, int slot) {
    return m->bucket + (size_t)slot * 2 * (size_t)m->capacity;
}

static double *drift_moments_row(const struct svi_drift_moments *m, int64_t place) {
    return m->recent + (size_t)(place & (SVI_DRIFT_RECENT - 1)) * (size_t)m->capacity;
}

void svi_drift_moments_free(struct svi_drift_moments *m) {
    svi_arrays_free(&drift_moments_arrays, m);
    *m = (struct svi_drift_moments){0};
}

static int32_t drift_moments_capacity(int d) {
    int capacity = TOGETHER;
    while (capacity < d)
        capacity *= 2;
    return capacity < SVI_DRIFT_FEATURES ? capacity : SVI_DRIFT_FEATURES;
}

/* At SVI_DRIFT_FEATURES the moments take 7 MB per stream; beyond that nothing is kept. */
svs_code svi_drift_moments_reserve(struct svi_drift_moments *m, int d, svs_error *err) {
    const int32_t capacity = drift_moments_capacity(d);
    if (d <= m->capacity || m->off)
        return SVS_OK;
    if (d > SVI_DRIFT_FEATURES) {
        svi_drift_moments_free(m);
        m->off = true;
        return SVS_OK;
    }
    const svs_code code = svi_arrays_resize(&drift_moments_arrays, m, &m->capacity, &capacity, err);
    m->capacity = code == SVS_OK ? capacity : m->capacity;
    m->quads = m->quads ? m->quads : svi_quads_get();
    return code;
}

/* Computes the moments of the block of rows that begins at `place`, into a slot. */
static void drift_moments_fold(struct svi_drift_moments *m, int slot, int64_t place) {
    double *mean = drift_moments_of(m, slot), *squares = mean + m->capacity;
    const int columns = (m->d + TOGETHER - 1) / TOGETHER * TOGETHER;
    memset(mean, 0, 2 * (size_t)m->capacity * sizeof *mean);
    m->quads->moments(m->recent, SVI_DRIFT_RECENT, place, SVI_DRIFT_BLOCK, m->capacity, columns, mean,
                      squares);
}

/* Merges slot `from` into slot `into`: mean += gap n_from / n, squares += gap^2 n_into n_from / n. */
static void drift_moments_join(struct svi_drift_moments *m, int into, int64_t n_into, int from,
                               int64_t n_from) {
    double *mean = drift_moments_of(m, into), *squares = mean + m->capacity;
    const double *mean_from = drift_moments_of(m, from), *squares_from = mean_from + m->capacity;
    const double share = (double)n_from / (double)(n_into + n_from), both = (double)n_into * share;
    for (int j = 0; j < m->d; j++) {
        const double gap = mean_from[j] - mean[j];
        mean[j] += gap * share;
        squares[j] += squares_from[j] + gap * gap * both;
    }
}

/* Repeats the bucket operations of the last step, in their order. Not inlined, because few samples have
 * any. */
static __attribute__((noinline)) void drift_moments_follow(struct svi_drift_moments *m,
                                                           const struct svi_drift *d) {
    const struct svi_drift_event *e = &d->event;
    if (e->slot >= 0)
        drift_moments_fold(m, e->slot, d->pushed - 1 - SVI_DRIFT_RECENT);
    for (int i = 0; i < e->merges; i++)
        drift_moments_join(m, e->merge[i].into, e->merge[i].n_into, e->merge[i].from, e->merge[i].n_from);
}

/* One row. The number of features may grow; rows and buckets before have 0 for new ones. A short row is
 * filled up with 0, a missing one repeats the row before. */
void svi_drift_moments_step(struct svi_drift_moments *m, const struct svi_drift *d, const double *x,
                            int features) {
    if (features > m->capacity || m->capacity == 0 || d->pushed == 0)
        return;
    m->d = features > m->d ? features : m->d;
    /* The block begins 64 samples before the newest one, whose row will overwrite the block's first: fold it
     * now. */
    if (d->event.slot >= 0) /* a merge never happens without a fold */
        drift_moments_follow(m, d);
    double *row = drift_moments_row(m, d->pushed - 1);
    if (!x && m->d > 0 && d->pushed == 1) /* no row before it */
        memset(row, 0, (size_t)m->d * sizeof *row);
    else if (!x && m->d > 0)
        memcpy(row, drift_moments_row(m, d->pushed + SVI_DRIFT_RECENT - 2), (size_t)m->d * sizeof *row);
    if (!x)
        return;
    memcpy(row, x, (size_t)features * sizeof *x);
    if (features < m->d)
        memset(row + features, 0, (size_t)(m->d - features) * sizeof *x);
}

void svi_drift_moments_clear(struct svi_drift_moments *m, int feature) {
    if (feature < m->d)
        svi_arrays_forget(&drift_moments_arrays, m, &m->capacity, FEATURES, feature);
}

/* ---- what moved */

/* Moments of feature j over the buckets from .. to - 1 and `count` recent samples, of which the newest has
 * `newest` samples after it. */
static struct svi_moments drift_moments_sum(const struct svi_drift_moments *m, const struct svi_drift *d,
                                            int j, int from, int to, int newest, int count) {
    struct svi_moments sum = {0};
    for (int i = from; i < to; i++) {
        const double *of = drift_moments_of(m, d->bucket[i].slot);
        svi_moments_merge(&sum, (struct svi_moments){(double)d->bucket[i].of.n, of[j], of[m->capacity + j]});
    }
    for (int i = newest + count - 1; i >= newest; i--)
        svi_moments_add(&sum, drift_moments_row(m, d->pushed - 1 - i)[j]);
    return sum;
}

/* The shift of feature j at a change, in pooled deviations. A difference of means that rounding explains
 * counts as 0. */
static struct svi_drift_shift drift_moments_shift(const struct svi_drift_moments *m,
                                                  const struct svi_drift *d, const struct svi_drift_found *f,
                                                  int j) {
    const struct svi_moments b = drift_moments_sum(m, d, j, 0, f->bucket, f->recent,
                                                   f->bucket < d->buckets ? 0 : d->recent - f->recent);
    const struct svi_moments a = drift_moments_sum(m, d, j, f->bucket, d->buckets, 0, f->recent);
    const double pooled = sqrt((b.squares + a.squares) / (b.n + a.n)), gap = a.mean - b.mean,
                 least = MIN_DEVIATION * fmax(fabs(a.mean), fabs(b.mean));
    return (struct svi_drift_shift){.feature = j,
                                    .before = b.mean,
                                    .after = a.mean,
                                    .deviation = sqrt(b.squares / b.n),
                                    .shift = fabs(gap) > least ? gap / fmax(pooled, least) : 0};
}

int svi_drift_moments_top(const struct svi_drift_moments *m, const struct svi_drift *d,
                          const struct svi_drift_found *found, int most, struct svi_drift_shift *out) {
    int count = 0;
    if (found->before.n < 1 || found->after.n < 1)
        return 0;
    /* The largest of d standard normal values is about sqrt(2 log d); two more deviations make it
     * unlikely. */
    const double chance =
        (sqrt(2 * log(fmax(1, m->d))) + 2) * sqrt(1 / (double)found->before.n + 1 / (double)found->after.n);
    for (int j = 0; j < m->d; j++) {
        const struct svi_drift_shift s = drift_moments_shift(m, d, found, j);
        int at = count;
        if (!(fabs(s.shift) > chance))
            continue;
        /* Insertion into a short sorted list; the smallest falls off its end. */
        while (at > 0 && fabs(s.shift) > fabs(out[at - 1].shift))
            at--;
        if (at == most)
            continue;
        count += count < most;
        memmove(out + at + 1, out + at, (size_t)(count - 1 - at) * sizeof *out);
        out[at] = s;
    }
    return count;
}

void svi_drift_moments_archive(struct svi_archive *a, struct svi_drift_moments *m,
                               const struct svi_drift *d) {
    int features = m->d;
    svi_archive_bool(a, "too many features", &m->off);
    svi_archive_int(a, "features", &features, 0, SVI_DRIFT_FEATURES);
    if (!svi_archive_check(a, !m->off || features == 0, "moments of too many features") || features == 0)
        return;
    /* A damaged number of features must not make a huge allocation: the archive has to hold that many
     * values. */
    if (svi_archive_loading(a)) {
        const int64_t values = (int64_t)features * (2 * d->buckets + d->recent);
        if (!svi_archive_check(a, values <= svi_archive_left(a) / (int64_t)sizeof(double),
                               "the moments of the features are truncated") ||
            svi_drift_moments_reserve(m, features, a->err) != SVS_OK)
            return;
        m->d = features;
    }
    for (int i = 0; i < d->buckets; i++) {
        svi_archive_known(a, "means", drift_moments_of(m, d->bucket[i].slot), m->d);
        svi_archive_known(a, "squares", drift_moments_of(m, d->bucket[i].slot) + m->capacity, m->d);
    }
    for (int i = d->recent - 1; i >= 0; i--)
        svi_archive_finite(a, "row", drift_moments_row(m, d->pushed - 1 - i), m->d);
}

double svi_drift_moments_memory(int d) {
    const int32_t capacity = drift_moments_capacity(d);
    return d > SVI_DRIFT_FEATURES ? 0 : (double)svi_arrays_bytes(&drift_moments_arrays, &capacity);
}
