/* The errors of the stretch that is held: the last 32 to 63 one by one (`bits` and the ring `last`), older
 * ones in buckets, oldest first. When there are 64, the older half becomes a bucket, and where there are more
 * than SVI_DRIFT_EACH of a size the two oldest become one; both is noted in `event`, so that the moments of
 * the features follow.
 *
 * A wrong sample is the only one that can raise the ratio of a rise, so only then the recent candidates and
 * the small buckets are looked at; the larger ones when a block is full, and all at each fourth. Most
 * candidates are done with after a few multiplications: kl is at most its chi-square bound, kl(a, b) <= (a -
 * b)^2 / (b (1 - b)).
 *
 * Read svi_drift_step, drift_search, drift_weigh, then drift_fold; the moments come last. */
#include "quality/drift.h"

#include <math.h>
#include <string.h>

#include "base/arrays.h"
#include "base/statistics.h"

#define MIN_BEFORE 32 /* samples before a change */
#define STEP       8  /* of the numbers of samples at which the level changes, from MIN_BEFORE on */
#define WRONG      3  /* of the samples since a rise are wrong at least */
#define SINGLE     12 /* of the last wrong samples are tried as beginning of a rise */
#define FOLDS      4  /* full blocks after which all buckets are looked at ... */
#define NEAR_FULL  4  /* ... and this many sizes with each other one ... */
#define NEAR       2  /* ... and with each wrong sample */
#define TERMS      256
#define MAX_TERM   25. /* a single change counts for no more */
#define ABOVE      5.0 /* of the threshold: by simulation */
#define SLOPE      1.7
#define FLOOR      4.6
#define COMMON     1e-4 /* for a rate below it both rise ... */
#define RARER      1.15 /* ... by this for each e-th part */
#define LOG_2      0.69314718055994531
#define LOG_5_4    0.22314355131420976
#define LOG_6_4    0.40546510810816438
#define LOG_7_4    0.55961578793542266
#define DOUBTS     3. /* standard errors by which overdispersion must be beyond 1 */
#define LARGE      0.9
#define BELOW                                                                                                \
    (1 - 1e-9) /* a bound that is less than this of what it is held against is below it, however             \
                * both were rounded */

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

/* How many times the variance of the errors is that of independent ones, at time scales up to each. */
static void drift_measure(struct svi_drift *d) {
    double most = 1;
    for (int i = 0; i <= SVI_DRIFT_LEVELS; i++)
        d->dispersion[i] = most = d->scale[i].over > most ? d->scale[i].over : most;
}

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

static struct svi_drift_stretch drift_minus(const struct svi_drift_stretch *a,
                                            const struct svi_drift_stretch *b) {
    struct svi_drift_stretch rest = *a;
    rest.n -= b->n;
    rest.wrong -= b->wrong;
    rest.squares -= b->squares;
    rest.squares = rest.squares > 0 ? rest.squares : 0;
    return rest;
}

/* `s` comes before `more`. */
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

/* The recent samples from the `from`-th last to the `to`-th last, oldest first; 1 is the last. */
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

/* At those up to n samples. */
static double drift_dispersion(const struct svi_drift *d, int64_t n) {
    const int scale = 63 - __builtin_clzll((uint64_t)n | 16) - 4;
    return d->dispersion[scale < SVI_DRIFT_LEVELS ? scale : SVI_DRIFT_LEVELS];
}

/* What the candidates of one look have in common. */
struct drift_look {
    const struct svi_drift *d;
    int64_t n, wrong; /* of all */
    double bound;     /* w (n - w) / n */
    double least;     /* bound times the lowest threshold */
    double ratio; /* the largest so far, over its overdispersion: by how much it is beyond the threshold */
    bool rise;
    int bucket, recent; /* of that one */
};

/* Is the ratio below the threshold by a bound that costs no logarithm? kl(a, b) <= log(1 + c) <= c / sqrt(1 +
 * c), c = (a - b)^2 / (b (1 - b)). */
static bool drift_is_short(const struct drift_look *l, int64_t n1, int64_t n2, int64_t w2, double threshold) {
    const double one = (double)n1, two = (double)n2, apart = (double)(w2 * l->n - l->wrong * n2);
    const double both = apart * apart / ((double)l->n * l->bound);
    const double c1 = both / (one * one), c2 = both / (two * two);
    return one * c1 / sqrt(1 + c1) + two * c2 / sqrt(1 + c2) < BELOW * threshold;
}

/* Is the ratio of a change before the last n2 samples, of which w2 are wrong, the largest one beyond the
 * threshold? */
static void drift_weigh(struct drift_look *l, int64_t n2, int64_t w2, double threshold, int bucket,
                        int recent) {
    const int64_t n1 = l->n - n2, w1 = l->wrong - w2;
    const bool rise = w2 * l->n > l->wrong * n2;
    const double p = (double)l->wrong / (double)l->n, q = 1 - p;
    const double dispersion = drift_dispersion(l->d, n2);
    if (n1 < MIN_BEFORE || (rise ? w2 < WRONG : n2 < MIN_BEFORE) ||
        drift_is_short(l, n1, n2, w2, threshold * dispersion))
        return;
    double ratio = drift_term((double)w1, (double)n1 * p) + drift_term((double)(n1 - w1), (double)n1 * q) +
                   drift_term((double)w2, (double)n2 * p) + drift_term((double)(n2 - w2), (double)n2 * q);
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

/* The threshold for n samples since a change. */
static inline double drift_level(const struct svi_drift *d, int64_t n) {
    static const double quarter[] = {0, LOG_5_4, LOG_6_4, LOG_7_4};
    const int k = 63 - __builtin_clzll((uint64_t)n | 1); /* n lies in [2^k, 2^(k + 1)) */
    const double level = d->threshold - SLOPE * (LOG_2 * k + quarter[((uint64_t)n << 2 >> k) & 3]);
    return level > d->floor ? level : d->floor;
}

/* By the bound alone most are done with. */
static inline void drift_try(struct drift_look *l, int64_t n2, int64_t w2, int bucket, int recent) {
    const int64_t n1 = l->n - n2;
    const double apart = (double)(w2 * l->n - l->wrong * n2);
    if (apart * apart < l->least * (double)n2 * (double)n1 || n1 == 0 || n2 == 0)
        return;
    const double threshold = drift_level(l->d, n2 < n1 ? n2 : n1);
    const double beyond = BELOW * threshold * drift_dispersion(l->d, n2);
    if (apart * apart >= beyond * l->bound * (double)n2 * (double)n1)
        drift_weigh(l, n2, w2, threshold, bucket, recent);
}

/* Those after which the buckets of a level below `levels` come, newest first. */
static void drift_try_buckets(struct drift_look *l, int levels) {
    const struct svi_drift *d = l->d;
    int64_t n = d->recent, wrong = d->recent_wrong;
    drift_try(l, n, wrong, d->buckets, d->recent);
    for (int i = d->buckets - 1; i > 0 && d->bucket[i].level < levels; i--) {
        n += d->bucket[i].of.n;
        wrong += d->bucket[i].of.wrong;
        drift_try(l, n, wrong, i, d->recent);
    }
}

/* A rise that begins with the lowest of these wrong samples. */
static inline void drift_try_rise(struct drift_look *l, uint64_t bits, int wrong) {
    const int n = __builtin_ctzll(bits) + 1;
    if (wrong * l->n > l->wrong * n)
        drift_try(l, n, wrong, l->d->buckets, n);
}

/* A rise begins with a wrong sample: the last ones of the recent, from SINGLE on each fourth. */
static inline void drift_try_recent(struct drift_look *l) {
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

static void drift_describe(const struct svi_drift *d, int bucket, int recent, struct svi_drift_found *out) {
    struct svi_drift_stretch after = {0};
    for (int i = bucket; i < d->buckets; i++)
        drift_append(&after, &d->bucket[i].of);
    const struct svi_drift_stretch rest = drift_sum(d, recent, 1);
    drift_append(&after, &rest);
    *out = (struct svi_drift_found){drift_minus(&d->all, &after), after, bucket, recent};
}

/* ---- is there one at all? */

/* Buckets after which a change may be near: what drift_try_buckets looks at with NEAR levels. From 32 samples
 * on the level changes at multiples of STEP, so it holds until there are more recent ones than near_until. */
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

/* SLOPE times the logarithm of drift_level, of 1 to 64 samples. */
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

/* The wrong samples that drift_try_recent looks at and that its first bound leaves: since which of the recent
 * samples, how many of them are wrong, and the level there. Returns how many. */
static inline int drift_rises(const struct svi_drift *d, const struct svi_cuts *c, double *n, double *wrong,
                              double *level) {
    uint64_t bits = d->bits & (d->bits - 1);
    int count = 0;
    bits &= bits - 1;
    for (int w = WRONG; w <= d->recent_wrong; w++, bits &= bits - 1) {
        if (w > SINGLE && (w - SINGLE) % 4)
            continue;
        const int since = __builtin_ctzll(bits) + 1;
        const double usual = d->threshold - drift_slope[since], apart = w * c->n - c->wrong * since;
        const double most = BELOW * (usual > d->floor ? usual : d->floor) * d->dispersion[since >> 5];
        if (apart <= 0 || apart * apart < most * c->bound * since * (c->n - since))
            continue;
        n[count] = since;
        wrong[count] = w;
        level[count++] = most;
    }
    return count;
}

/* Is no change near, by bounds of all that drift_search would look at after a wrong sample? Most often that
 * is all there is to do. */
static inline bool drift_is_quiet(struct svi_drift *d) {
    double n[SVI_DRIFT_RECENT], wrong[SVI_DRIFT_RECENT], level[SVI_DRIFT_RECENT];
    struct svi_cuts c = {.n = (double)d->all.n, .wrong = (double)d->all.wrong, .fewest = MIN_BEFORE};
    if (d->recent > d->near_until)
        drift_find_near(d);
    c.bound = c.wrong * (c.n - c.wrong) / c.n;
    const int rises = drift_rises(d, &c, n, wrong, level);
    if (rises > 0 && d->quads->cut(&c, n, wrong, level, rises))
        return false;
    c.more_n = d->recent;
    c.more_wrong = d->recent_wrong;
    c.least = -INFINITY;
    return !d->quads->cut(&c, d->near_n, d->near_wrong, d->near_level, d->near);
}

static enum svi_drift_change drift_search(struct svi_drift *d, bool wrong, bool full, bool again) {
    const double w = (double)d->all.wrong, n = (double)d->all.n;
    struct drift_look l = {
        .d = d, .n = d->all.n, .wrong = d->all.wrong, .bound = w * (n - w) / n, .ratio = -1};
    l.least = BELOW * d->floor * l.bound;
    if (d->all.n <= MIN_BEFORE || d->all.wrong < WRONG || !(d->threshold < INFINITY))
        return SVI_DRIFT_SAME;
    if (wrong)
        drift_try_recent(&l);
    drift_try_buckets(&l, !full ? NEAR : !again && d->folds % FOLDS ? NEAR_FULL : SVI_DRIFT_LEVELS);
    if (l.ratio < 0)
        return SVI_DRIFT_SAME;
    if (l.rise) /* where did it begin? */
        drift_try_buckets(&l, SVI_DRIFT_LEVELS);
    if (l.rise || !again)
        drift_describe(d, l.bucket, l.recent, &d->found);
    return l.rise ? SVI_DRIFT_RISE : SVI_DRIFT_FALL;
}

/* ---- buckets */

/* The first one that no bucket has. */
static int drift_free_slot(const struct svi_drift *d) {
    uint64_t taken[SVI_DRIFT_BUCKETS / 64 + 1] = {0};
    int at = 0;
    for (int i = 0; i < d->buckets; i++)
        taken[d->bucket[i].slot >> 6] |= 1ull << (d->bucket[i].slot & 63);
    while (taken[at] == UINT64_MAX)
        at++;
    return 64 * at + __builtin_ctzll(~taken[at]);
}

static void drift_drop_buckets(struct svi_drift *d, int count) {
    d->buckets -= count;
    d->near_until = 0;
    memmove(d->bucket, d->bucket + count, (size_t)d->buckets * sizeof *d->bucket);
}

/* Two neighbours of 16 << i samples: given both together, the difference has this variance when errors are
 * independent. */
static void drift_compare(struct svi_drift *d, int i, double n, double one, double other) {
    const double both = one + other, right = 2 * n - both;
    if (both == 0 || right == 0)
        return;
    const double gap = one - other, term = gap * gap * (2 * n - 1) / (both * right);
    if (d->scale[i].terms >= TERMS) {
        d->scale[i].sum /= 2;
        d->scale[i].terms /= 2;
    }
    d->scale[i].sum += term < MAX_TERM ? term : MAX_TERM;
    d->scale[i].terms++;
    drift_measure_scale(d, i);
}

/* Where a level has too many buckets, its two oldest become one of the next. */
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
        drift_compare(d, level + 1, (double)a->of.n, (double)a->of.wrong, (double)b->of.wrong);
        drift_append(&a->of, &b->of);
        a->level++;
        d->buckets--;
        memmove(b, b + 1, (size_t)(d->buckets - first - 1) * sizeof *b);
        end = first + 1;
    }
}

/* The older half of the recent samples becomes a bucket. */
static void drift_fold(struct svi_drift *d) {
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

/* After a fall the oldest buckets go, until there is none any more: of what comes after the most telling
 * change the level would be too low, and the next sample as usual a rise. */
static void drift_follow(struct svi_drift *d) {
    do {
        d->all = drift_minus(&d->all, &d->bucket[0].of);
        drift_drop_buckets(d, 1);
    } while (d->buckets > 0 && drift_search(d, false, true, true) == SVI_DRIFT_FALL);
}

void svi_drift_cut(struct svi_drift *d, const struct svi_drift_found *f) {
    drift_drop_buckets(d, f->bucket);
    d->all = f->after;
    d->recent = f->recent;
    if (f->recent < SVI_DRIFT_RECENT)
        d->bits &= (1ull << f->recent) - 1;
    d->recent_wrong = __builtin_popcountll(d->bits);
}

/* ---- one sample */

/* Is the error of a regression a large one? False in *known while that is not known. */
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
    if (!known)
        return SVI_DRIFT_SAME;
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
    if (full || (wrong && !drift_is_quiet(d)))
        change = drift_search(d, wrong, full, false);
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

void svi_drift_archive(struct svi_archive *a, struct svi_drift *d) {
    bool regress = d->regress;
    svi_archive_bool(a, "regress", &regress);
    svi_archive_int(a, "sizes", &d->sizes, 0, SVI_DRIFT_SIZES);
    if (!svi_archive_check(a, regress == d->regress && (regress || d->sizes == 0), "the task was another"))
        return;
    svi_archive_finite(a, "size", d->size, d->sizes);
    svi_archive_finite(a, "large", &d->large, 1);
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
 * What happens to the buckets is not decided here: drift_fold notes in its event which slot took the oldest
 * rows and which slots became one, and this follows (svi_drift_moments_step). Squared deviations are about
 * the mean of their own stretch, so that a feature like a time stamp, whose mean is a billion deviations,
 * keeps its digits. What moved is looked for at an alarm only. */

#define TOGETHER      8    /* columns, as quads take them; room is a multiple of it */
#define MIN_DEVIATION 1e-9 /* of the mean's size: below it is rounding */

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

static int32_t drift_moments_reserve(int d) {
    int capacity = TOGETHER;
    while (capacity < d)
        capacity *= 2;
    return capacity < SVI_DRIFT_FEATURES ? capacity : SVI_DRIFT_FEATURES;
}

svs_code svi_drift_moments_reserve(struct svi_drift_moments *m, int d, svs_error *err) {
    const int32_t capacity = drift_moments_reserve(d);
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

/* The block of rows that begins at `place` into a slot. */
static void drift_moments_fold(struct svi_drift_moments *m, int slot, int64_t place) {
    double *mean = drift_moments_of(m, slot), *squares = mean + m->capacity;
    const int columns = (m->d + TOGETHER - 1) / TOGETHER * TOGETHER;
    memset(mean, 0, 2 * (size_t)m->capacity * sizeof *mean);
    m->quads->moments(m->recent, SVI_DRIFT_RECENT, place, SVI_DRIFT_BLOCK, m->capacity, columns, mean,
                      squares);
}

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

/* Rows that went into buckets, and buckets that became one. On its own: few samples have any. */
static __attribute__((noinline)) void drift_moments_follow(struct svi_drift_moments *m,
                                                           const struct svi_drift *d) {
    const struct svi_drift_event *e = &d->event;
    if (e->slot >= 0)
        drift_moments_fold(m, e->slot, d->pushed - 1 - SVI_DRIFT_RECENT);
    for (int i = 0; i < e->merges; i++)
        drift_moments_join(m, e->merge[i].into, e->merge[i].n_into, e->merge[i].from, e->merge[i].n_from);
}

void svi_drift_moments_step(struct svi_drift_moments *m, const struct svi_drift *d, const double *x,
                            int features) {
    if (features > m->capacity || m->capacity == 0 || d->pushed == 0)
        return;
    m->d = features > m->d ? features : m->d;
    if (d->event.slot >= 0) /* merges come with a slot alone */
        drift_moments_follow(m, d);
    double *row = drift_moments_row(m, d->pushed - 1);
    if (!x && m->d > 0 && d->pushed == 1) /* there is no row before */
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

/* Feature j over buckets from .. to - 1 and the recent samples from the `newest` + `count` -th last on. */
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
    /* the largest of d normal values, and two more of their deviations */
    const double chance =
        (sqrt(2 * log(fmax(1, m->d))) + 2) * sqrt(1 / (double)found->before.n + 1 / (double)found->after.n);
    for (int j = 0; j < m->d; j++) {
        const struct svi_drift_shift s = drift_moments_shift(m, d, found, j);
        int at = count;
        if (!(fabs(s.shift) > chance))
            continue;
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
    const int32_t capacity = drift_moments_reserve(d);
    return d > SVI_DRIFT_FEATURES ? 0 : (double)svi_arrays_bytes(&drift_moments_arrays, &capacity);
}
