/* The level of each detector from its own past.
 *
 * Three things are kept of a detector: the last surprises that may still be the largest of the last
 * SVI_BUDGET_APART (descending, so that the first is the record: a row costs one comparison on average), the
 * excursion that is under way, and the list of the largest peaks of those that have ended. Levels are made of
 * that list alone, at fixed numbers of rows. Read in order: the row's time, the record, excursions, levels.
 */
#include "alerts/budget.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

/* EARLY: up to this row levels are set more often, and the factor of the pool does not count yet. RANKS: more
 * ranks would fit the bulk of the peaks, not their tail. FIRST_CAPACITY and its doublings divide
 * SVI_BUDGET_WINDOW; the ring relies on that. */
#define EARLIEST       64 /* rows: before that nothing is reported */
#define DAY            86400.0
#define MAX_ROWS_A_DAY 1e9 /* a day: where no time has gone by */
#define EARLY          1024
#define LEFT_OUT       (-1) /* episode of an excursion that ends after a person called it true */
#define FIRST_CAPACITY 4
#define RANKS          16   /* from which peaks are extrapolated */
#define FARTHEST       2.0  /* extrapolated at most, times the largest seen */
#define TOGETHER       0.05 /* of the time of one alert: findings that count as one */

void svi_budget_init(struct svi_budget *b, double a_day, double interval) {
    *b = (struct svi_budget){.a_day = a_day, .interval = interval, .last = -DBL_MAX, .share.factor = 1};
    for (int i = 0; i < SVI_DETECTORS; i++)
        b->detector[i].level = INFINITY;
}

/* ---- several policies */

void svi_budget_share(struct svi_budget *b, double policies, double asked) {
    /* Levels stay as they are until this stream sets them: no result depends on when the others report. */
    b->share.policies = policies;
    b->share.asked = asked;
}

/* Of `of_all`, one policy's. */
static double budget_part(const struct svi_budget *b, double of_all) {
    return b->share.policies > 1 ? of_all / b->share.policies : of_all;
}

/* What it would have found alone, at the end of a row. */
static void budget_find(struct svi_budget *b) {
    struct svi_budget_share *s = &b->share;
    /* 1 is the level without the factor. With the factor, a high one would hide the very finds that it is
     * made of, and would then fall for want of them. */
    if (s->most >= 1) {
        s->reached = fmax(s->reached, s->most);
        s->calm = 0;
    } else if (s->reached > 0 && ++s->calm >= SVI_BUDGET_APART) {
        s->found = s->reached;
        s->count++;
        s->reached = 0;
        s->calm = 0;
    }
}

double svi_budget_memory(void) {
    return SVI_DETECTORS * (SVI_BUDGET_PEAKS / 2 * (double)sizeof(struct svi_budget_peak) +
                            SVI_BUDGET_WINDOW / 4 * (double)sizeof(struct svi_budget_recent));
}

void svi_budget_clear(struct svi_budget *b) {
    for (int i = 0; i < SVI_DETECTORS; i++) {
        svi_free(b->detector[i].peaks);
        svi_free(b->detector[i].recent);
    }
    svi_budget_init(b, b->a_day, b->interval);
}

/* Places for `count` where there are `room`: twice as many, until they do. */
static int budget_places(int capacity, int count) {
    capacity = capacity > 0 ? capacity : FIRST_CAPACITY;
    while (capacity < count)
        capacity *= 2;
    return capacity;
}

/* Capacity for `count` peaks; false: out of memory. */
static bool budget_reserve_peaks(struct svi_budget_detector *j, int count) {
    const int capacity = budget_places(j->peak_capacity, count);
    if (count <= j->peak_capacity || j->peak_capacity == SVI_BUDGET_PEAKS)
        return true;
    struct svi_budget_peak *peaks = svi_alloc_plain_array((size_t)capacity, sizeof *peaks);
    for (int i = 0; peaks && i < j->count; i++)
        peaks[i] = j->peaks[i];
    if (!peaks)
        return false;
    svi_free(j->peaks);
    j->peaks = peaks;
    j->peak_capacity = capacity;
    return true;
}

/* The same of surprises: each keeps its place in the ring. */
static bool budget_reserve_recent(struct svi_budget_detector *j, int count) {
    if (count <= j->window || j->window == SVI_BUDGET_WINDOW)
        return true;
    const int window = budget_places(j->window, count);
    struct svi_budget_recent *recent = svi_alloc_plain_array((size_t)window, sizeof *recent);
    for (int k = 0; recent && k < j->held; k++)
        recent[(j->first + k) % window] = j->recent[(j->first + k) % j->window];
    if (!recent)
        return false;
    svi_free(j->recent);
    j->recent = recent;
    j->window = window;
    return true;
}

bool svi_budget_is_full(const struct svi_budget *b) {
    for (int i = 0; i < SVI_DETECTORS && b->a_day > 0; i++) {
        const struct svi_budget_detector *j = &b->detector[i];
        if ((j->count >= j->peak_capacity && j->peak_capacity < SVI_BUDGET_PEAKS) ||
            (j->held >= j->window && j->window < SVI_BUDGET_WINDOW))
            return true;
    }
    return false;
}

svs_code svi_budget_reserve(struct svi_budget *b, svs_error *err) {
    for (int i = 0; i < SVI_DETECTORS && b->a_day > 0; i++) {
        struct svi_budget_detector *j = &b->detector[i];
        if (!budget_reserve_peaks(j, j->count + 1) || !budget_reserve_recent(j, j->held + 1))
            return svi_fail_memory(err, "the past of the alerts");
    }
    return SVS_OK;
}

/* ---- time */

void svi_budget_row(struct svi_budget *b, double time, bool timed) {
    const double mean = b->rows > 1 ? b->days * DAY / (double)(b->rows - 1) : 0;
    double seconds = b->last > -DBL_MAX ? fmax(0, time - b->last) : 0;
    if (!timed && b->interval > 0)
        seconds = b->interval;
    if (b->rows > SVI_BUDGET_GAP && mean > 0)
        seconds = fmin(seconds, SVI_BUDGET_GAP * mean);
    b->last = time;
    b->share.most = 0;
    b->rows++;
    b->days += b->rows > 1 ? seconds / DAY : 0;
    /* Exactly the rows in which svi_budget_end looks for finds: the pool sets these against those. */
    b->share.days += b->share.policies > 0 && b->rows > EARLY ? seconds / DAY : 0;
}

double svi_budget_rows_a_day(const struct svi_budget *b) {
    return b->days > 0 ? fmin(MAX_ROWS_A_DAY, (double)b->rows / b->days) : MAX_ROWS_A_DAY;
}

void svi_budget_move_times(struct svi_budget *b, double from, double step) {
    if (b->last > from && b->last > -DBL_MAX)
        b->last += step;
}

/* ---- the record */

/* The k-th of those held. */
static struct svi_budget_recent *budget_recent(const struct svi_budget_detector *j, int k) {
    return &j->recent[(j->first + k) % j->window];
}

static void budget_drop_first(struct svi_budget_detector *j) {
    /* Modulo the largest window, not the one of now: every window divides it, so a place survives growth and
     * an archive loads into a ring of any size. */
    j->first = (j->first + 1) % SVI_BUDGET_WINDOW;
    j->held--;
}

static bool budget_is_record(struct svi_budget_detector *j, int64_t number, double surprise) {
    /* A smaller one that is older too can never be the largest again, so it goes. What remains descends and
     * each row enters and leaves once. */
    while (j->held > 0 && budget_recent(j, j->held - 1)->surprise <= surprise)
        j->held--;
    while (j->held > 0 && budget_recent(j, 0)->number <= number - SVI_BUDGET_APART)
        budget_drop_first(j);
    if (!budget_reserve_recent(j, j->held + 1)) { /* svi_budget_reserve was not called */
        if (j->held == 0)
            return true;
        budget_drop_first(j);
    }
    *budget_recent(j, j->held++) = (struct svi_budget_recent){surprise, number};
    return j->held == 1;
}

/* ---- excursions */

static void budget_peak_keep(struct svi_budget_peak *peaks, int *count, int capacity,
                             struct svi_budget_peak peak) {
    /* Among equals the earlier peak stays in front, and stays at all in a full list. */
    const bool full = *count == capacity;
    if (full && (capacity == 0 || peaks[capacity - 1].surprise >= peak.surprise))
        return;
    int at = full ? capacity - 1 : (*count)++;
    for (; at > 0 && peaks[at - 1].surprise < peak.surprise; at--)
        peaks[at] = peaks[at - 1];
    peaks[at] = peak;
}

bool svi_budget_surprise(struct svi_budget *b, enum svi_alert_detector detector, double surprise) {
    struct svi_budget_detector *j = &b->detector[detector];
    const bool runs = j->now.surprise > 0;
    /* Here `level` already has the factor in it; times the factor, the ratio is that of this stream alone. */
    const double alone = surprise / j->level * b->share.factor;
    b->share.most = alone > b->share.most ? alone : b->share.most;
    /* It goes on above half its peak, not above the base: surprises that hover around the base would keep a
     * large one under way for ever, and it would never enter the list. */
    if (runs ? surprise > j->now.surprise : surprise >= SVI_BUDGET_BASE) {
        j->now.surprise = surprise;
        j->now.at = b->days;
        j->calm = 0;
    } else if (runs && 2 * surprise >= j->now.surprise) {
        j->calm = 0;
    } else if (runs && ++j->calm >= SVI_BUDGET_APART) {
        /* Only now does it enter the past: while it ran it could not raise the level against itself. */
        if (j->now.episode != LEFT_OUT) {
            (void)budget_reserve_peaks(j, j->count + 1); /* without memory the least makes room */
            budget_peak_keep(j->peaks, &j->count, j->peak_capacity, j->now);
        }
        j->now = (struct svi_budget_peak){0};
        j->calm = 0;
    }
    return budget_is_record(j, b->rows, surprise);
}

void svi_budget_mark(struct svi_budget *b, int64_t episode) {
    for (int i = 0; i < SVI_DETECTORS; i++)
        /* `calm` 0: the row takes part in the excursion. One that only waits for its end had nothing to do
         * with an alert that opens now. */
        if (b->detector[i].now.surprise > 0 && b->detector[i].calm == 0 &&
            b->detector[i].now.episode != LEFT_OUT)
            b->detector[i].now.episode = episode;
}

static int budget_peak_drop(struct svi_budget_peak *peaks, int count, double before, int64_t episode) {
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (peaks[i].at >= before && (episode == 0 || peaks[i].episode != episode))
            peaks[kept++] = peaks[i];
    return kept;
}

static void budget_drop(struct svi_budget_detector *j, double before, int64_t episode) {
    j->count = budget_peak_drop(j->peaks, j->count, before, episode);
}

/* ---- levels */

/* With the whole budget, or its share. */
static double budget_promise(const struct svi_budget *b, bool shared) {
    const double a_day = shared ? budget_part(b, b->a_day) : b->a_day;
    /* budget.h, PROMISE: the larger p wins, and the detectors share it. At one alert a day the early term is
     * the larger one up to row R / 5, with R rows a day. */
    const double lasting = SVI_BUDGET_PROMISE * a_day / svi_budget_rows_a_day(b);
    const double few = shared ? budget_part(b, SVI_BUDGET_EARLY) : SVI_BUDGET_EARLY;
    const double early = few / (double)(b->rows + 1);
    return fmax(SVI_BUDGET_MIN_LEVEL, -log10(fmin(1, fmax(lasting, early) / SVI_DETECTORS)));
}

static double budget_factor(const struct svi_budget *b, double promise) {
    /* The pool knows nothing of this stream before its row EARLY. Until then, the floor of its share against
     * its own: the worst case of as many independent streams. */
    if (b->share.asked > 0 && b->rows > EARLY)
        return fmax(1, b->share.asked);
    return b->share.policies > 1 ? fmax(1, budget_promise(b, true) / promise) : 1;
}

/* Alerts that the past may have had. */
static double budget_total(const struct svi_budget *b, double days) {
    /* The days earn the budget, and the logarithm is about the sum, from row EARLIEST on, of what
     * budget_promise grants young rows besides. */
    return SVI_BUDGET_SPENT * (b->a_day * days + SVI_BUDGET_EARLY * log1p((double)b->rows / EARLIEST));
}

static double budget_peak_extrapolate(const struct svi_budget_peak *peaks, int count, double m) {
    /* budget.h, PAST: u(h) + s ln(h / m). Fewer than 4 peaks give no h. */
    const int k = count < RANKS ? count : RANKS, h = k / 4;
    if (h < 1)
        return 0;
    const double high = peaks[h - 1].surprise, low = peaks[k - 1].surprise;
    return high + (high - low) / log((double)k / h) * log(h / m);
}

static double budget_past(const struct svi_budget_detector *j, double m, double promise) {
    const double most = j->count > 0 ? j->peaks[0].surprise : 0;
    const int rank = m < 2 ? 1 : (int)m;
    /* Fewer excursions than may exceed: the past asks for nothing, and the promise decides alone. */
    const double order = rank <= j->count ? j->peaks[rank - 1].surprise + SVI_BUDGET_ABOVE : 0;
    if (!(m < SVI_BUDGET_MIN_EXCURSIONS))
        return order;
    /* So few excursions say little by their order, so the law of the tail counts besides. The cap guards
     * against a steep slope, which would put the level out of reach for long. */
    return fmax(order, fmin(budget_peak_extrapolate(j->peaks, j->count, m), FARTHEST * fmax(most, promise)));
}

/* Peaks at the level that the p-values promise, or above. */
static int budget_wanted(const struct svi_budget_detector *j, double promise) {
    int n = 0;
    while (n < j->count && j->peaks[n].surprise >= promise)
        n++;
    return n;
}

/* How many excursions each detector may have had above its level where all together may have had `total`:
 * what one does not need is for the others. */
static double budget_share_out(const struct svi_budget *b, double promise, double total) {
    bool served[SVI_DETECTORS] = {false};
    /* The most modest detector first: what it leaves raises the part of all that follow. Taken in any other
     * order, a detector could be cut while one after it leaves room. */
    double left = total;
    for (int detectors = SVI_DETECTORS; detectors > 0; detectors--) {
        int least = -1, wanted = 0;
        for (int i = 0; i < SVI_DETECTORS; i++) {
            const int n = served[i] ? 0 : budget_wanted(&b->detector[i], promise);
            if (!served[i] && (least < 0 || n < wanted)) {
                least = i;
                wanted = n;
            }
        }
        /* If the most modest one wants more than its part, all that remain do: they get equal parts. */
        if (wanted > left / detectors)
            return left / detectors;
        served[least] = true;
        left -= wanted;
    }
    return total;
}

static void budget_levels(struct svi_budget *b) {
    /* The second bound keeps m below the peaks that are kept: rank m is in the list if it exists. */
    const double memory = fmin(SVI_BUDGET_MEMORY, SVI_BUDGET_PEAKS / 2 / b->a_day);
    const double promise = budget_promise(b, false);
    for (int i = 0; i < SVI_DETECTORS; i++)
        budget_drop(&b->detector[i], b->days - memory, 0);
    /* Before the first row the total is 0; DBL_MIN keeps the logarithm of the extrapolation finite. */
    const double m = fmax(DBL_MIN, budget_share_out(b, promise, budget_total(b, fmin(b->days, memory))));
    b->share.factor = budget_factor(b, promise);
    for (int i = 0; i < SVI_DETECTORS; i++)
        b->detector[i].level = b->share.factor * fmax(promise, budget_past(&b->detector[i], m, promise));
}

void svi_budget_leave_out(struct svi_budget *b, int64_t episode) {
    for (int i = 0; i < SVI_DETECTORS && episode > 0; i++) {
        budget_drop(&b->detector[i], -DBL_MAX, episode);
        if (b->detector[i].now.episode == episode)
            b->detector[i].now.episode = LEFT_OUT;
    }
    budget_levels(b);
}

void svi_budget_end(struct svi_budget *b) {
    if (b->share.policies > 0 && b->rows > EARLY)
        budget_find(b);
    /* Young levels move fast, so they are set more often. Row numbers, not clock times: a replay of the same
     * rows sets the same levels. */
    if (b->rows % (b->rows <= EARLY ? 16 : 64) == 0)
        budget_levels(b);
}

void svi_budget_set(struct svi_budget *b, double a_day, double interval) {
    const bool other = a_day != b->a_day;
    b->a_day = a_day;
    b->interval = interval;
    if (other && a_day > 0 && b->rows > 0)
        budget_levels(b);
}

/* ---- archive */

static void budget_peak_archive(struct svi_archive *a, struct svi_budget_peak *p) {
    svi_archive_finite(a, "peak", &p->surprise, 1);
    svi_archive_finite(a, "peak at", &p->at, 1);
    svi_archive_int64(a, "peak of", &p->episode, LEFT_OUT, SVI_COUNT_MAX);
}

static void budget_detector_archive(struct svi_archive *a, struct svi_budget_detector *j) {
    /* Not _finite: a level is INFINITY until it has been set. */
    svi_archive_double(a, "level", &j->level);
    svi_archive_check(a, j->level > 0, "a level is none");
    int count = j->count, held = j->held;
    svi_archive_int(a, "peaks", &count, 0, SVI_BUDGET_PEAKS);
    if (!budget_reserve_peaks(j, count))
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the past of the alerts");
    j->count = svi_archive_ok(a) ? count : 0;
    for (int i = 0; i < j->count && svi_archive_ok(a); i++)
        budget_peak_archive(a, &j->peaks[i]);
    budget_peak_archive(a, &j->now);
    svi_archive_int(a, "calm", &j->calm, 0, SVI_BUDGET_APART);
    svi_archive_int(a, "first", &j->first, 0, SVI_BUDGET_WINDOW - 1);
    svi_archive_int(a, "held", &held, 0, SVI_BUDGET_APART);
    if (svi_archive_loading(a) && !budget_reserve_recent(j, held))
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the past of the alerts");
    j->held = svi_archive_ok(a) ? held : 0;
    for (int k = 0; k < j->held && svi_archive_ok(a); k++) {
        svi_archive_finite(a, "recent", &budget_recent(j, k)->surprise, 1);
        svi_archive_int64(a, "number", &budget_recent(j, k)->number, 0, SVI_COUNT_MAX);
    }
}

void svi_budget_share_archive(struct svi_archive *a, struct svi_budget *b) {
    struct svi_budget_share *s = &b->share;
    svi_archive_finite(a, "factor", &s->factor, 1);
    svi_archive_check(a, s->factor >= 1, "a factor of levels is below 1");
    svi_archive_finite(a, "reached", &s->reached, 1);
    svi_archive_int(a, "calm", &s->calm, 0, SVI_BUDGET_APART);
    svi_archive_finite(a, "found", &s->found, 1);
    svi_archive_int64(a, "finds", &s->count, 0, SVI_COUNT_MAX);
    svi_archive_finite(a, "days", &s->days, 1);
}

void svi_budget_archive(struct svi_archive *a, struct svi_budget *b) {
    svi_archive_int64(a, "rows", &b->rows, 0, SVI_COUNT_MAX);
    svi_archive_finite(a, "days", &b->days, 1);
    svi_archive_finite(a, "last", &b->last, 1);
    for (int i = 0; i < SVI_DETECTORS && svi_archive_ok(a); i++) {
        const struct svi_budget_detector *j = &b->detector[i];
        budget_detector_archive(a, &b->detector[i]);
        for (int k = 0; k < j->held && svi_archive_ok(a); k++)
            svi_archive_check(a, budget_recent(j, k)->number <= b->rows, "a surprise is of a row to come");
    }
}

/* ---- several policies: the pool of what they have found */

void svi_budget_pool_pass(struct svi_budget_pool *p, double days, double policies) {
    p->days += days / fmax(1, policies);
}

/* No more are to come that count as one with those of now. */
static void budget_pool_settle(struct svi_budget_pool *p, double a_day) {
    if (!(p->now > 0) || p->days - p->since < TOGETHER / a_day)
        return;
    const struct svi_budget_peak found = {.surprise = p->now, .at = p->since};
    budget_peak_keep(p->peaks, &p->count, SVI_BUDGET_POOL, found);
    p->now = 0;
}

void svi_budget_pool_find(struct svi_budget_pool *p, double found, double a_day) {
    budget_pool_settle(p, a_day);
    if (!(p->now > 0))
        p->since = p->days;
    p->now = fmax(p->now, found);
}

double svi_budget_pool_factor(struct svi_budget_pool *p, double a_day) {
    const double memory = fmin(SVI_BUDGET_MEMORY, SVI_BUDGET_POOL / 2 / a_day);
    const double m = SVI_BUDGET_SPENT * a_day * fmin(p->days, memory);
    budget_pool_settle(p, a_day);
    p->count = budget_peak_drop(p->peaks, p->count, p->days - memory, 0);
    if (!(m >= 1))
        return 0;
    const int rank = (int)fmin(m, SVI_BUDGET_POOL);
    const double order = rank <= p->count ? p->peaks[rank - 1].surprise + SVI_BUDGET_ABOVE : 1;
    const double far = budget_peak_extrapolate(p->peaks, p->count, m);
    const double most = p->count > 0 ? FARTHEST * p->peaks[0].surprise : 0;
    return fmax(1, m < SVI_BUDGET_MIN_EXCURSIONS ? fmax(order, fmin(far, most)) : order);
}

void svi_budget_pool_archive(struct svi_archive *a, struct svi_budget_pool *p) {
    double found[SVI_BUDGET_POOL], at[SVI_BUDGET_POOL];
    for (int i = 0; i < SVI_BUDGET_POOL; i++) {
        found[i] = p->peaks[i].surprise;
        at[i] = p->peaks[i].at;
    }
    svi_archive_finite(a, "pool days", &p->days, 1);
    svi_archive_int(a, "pool", &p->count, 0, SVI_BUDGET_POOL);
    svi_archive_finite(a, "found", found, p->count);
    svi_archive_finite(a, "found at", at, p->count);
    for (int i = 0; svi_archive_ok(a) && i < p->count; i++)
        p->peaks[i] = (struct svi_budget_peak){.surprise = found[i], .at = at[i]};
    svi_archive_finite(a, "found now", &p->now, 1);
    svi_archive_finite(a, "found since", &p->since, 1);
}
