/* The level of each detector from its own past. Parts: several policies, capacity, time, the record,
 * excursions, levels, archive, and the pool of several policies.
 *
 * Three things are kept of a detector:
 *   - the recent surprises that may still be the largest of the last SVI_BUDGET_APART, in a ring. They
 * descend, so the first one is the record, and a row costs about one comparison;
 *   - the excursion that is under way;
 *   - the largest peaks of excursions that have ended, descending.
 *
 * Levels are computed from that last list alone, at fixed numbers of rows, so that a replay of the same rows
 * sets the same levels. All formulas are in budget.h. */
#include "alerts/budget.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

/* EARLY: up to this row levels are set more often, and the factor of the pool does not apply yet. RANKS: more
 * ranks would fit the bulk of the peaks, not their tail. FIRST_CAPACITY and its doublings divide
 * SVI_BUDGET_WINDOW; the ring relies on that. */
#define EARLIEST       64 /* rows from which budget_total counts the early part of the promise */
#define DAY            86400.0
#define MAX_ROWS_A_DAY 1e9 /* also where no time has passed */
#define EARLY          1024
#define LEFT_OUT       (-1) /* episode of an excursion that ends after a person called it true */
#define FIRST_CAPACITY 4
#define RANKS          16   /* largest peaks that are extrapolated from */
#define FARTHEST       2.0  /* limit of an extrapolation, as a multiple of the largest peak */
#define TOGETHER       0.05 /* findings within this part of the time of one alert count as one */

void svi_budget_init(struct svi_budget *b, double a_day, double interval) {
    *b = (struct svi_budget){.a_day = a_day, .interval = interval, .last = -DBL_MAX, .share.factor = 1};
    for (int i = 0; i < SVI_DETECTORS; i++)
        b->detector[i].level = INFINITY;
}

/* ---- several policies */

void svi_budget_share(struct svi_budget *b, double policies, double asked) {
    /* Levels do not change before this stream next sets them: no result depends on when the others report. */
    b->share.policies = policies;
    b->share.asked = asked;
}

/* One policy's part of `of_all`. */
static double budget_part(const struct svi_budget *b, double of_all) {
    return b->share.policies > 1 ? of_all / b->share.policies : of_all;
}

/* At the end of a row: the excursions that this policy would have reported alone (budget.h, FLEET). */
static void budget_count_surprises(struct svi_budget *b) {
    struct svi_budget_share *s = &b->share;
    /* `most` 1 is the level without the factor. Measured with it, a high factor would hide the very findings
     * that it is computed from, and would then fall for want of them. */
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

/* A past of some days fills half of the peaks and a quarter of the window. */
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

/* The capacity for `count` entries: the present one, doubled until it is enough. */
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

/* Capacity for `count` recent surprises. Positions are absolute (modulo SVI_BUDGET_WINDOW), so each surprise
 * moves to its own place in the larger ring. False: out of memory. */
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
    /* The mean over the rows so far, in which gaps count only as far as they were counted then. A clock that
     * runs backwards counts as standing still. */
    const double mean = b->rows > 1 ? b->days * DAY / (double)(b->rows - 1) : 0;
    double seconds = b->last > -DBL_MAX ? fmax(0, time - b->last) : 0;
    if (!timed && b->interval > 0)
        seconds = b->interval;
    /* A gap counts as SVI_BUDGET_GAP intervals at most: while no row arrives, no false alert can occur
     * either. */
    if (b->rows > SVI_BUDGET_GAP && mean > 0)
        seconds = fmin(seconds, SVI_BUDGET_GAP * mean);
    b->last = time;
    b->share.most = 0;
    b->rows++;
    b->days += b->rows > 1 ? seconds / DAY : 0;
    /* The same rows in which svi_budget_end looks for findings: the pool divides findings by these days. */
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

/* The k-th of those held, the largest and oldest first. */
static struct svi_budget_recent *budget_recent(const struct svi_budget_detector *j, int k) {
    return &j->recent[(j->first + k) % j->window];
}

static void budget_drop_first(struct svi_budget_detector *j) {
    /* Modulo the largest window, not the present one. Every window divides it, so a position survives growth,
     * and an archive loads into a ring of any size. */
    j->first = (j->first + 1) % SVI_BUDGET_WINDOW;
    j->held--;
}

/* Adds the surprise of row `number`. True: it is the largest of the last SVI_BUDGET_APART rows. */
static bool budget_is_record(struct svi_budget_detector *j, int64_t number, double surprise) {
    /* An older one that is not larger can never be the largest again, so it is removed. What remains
     * descends, and each row enters and leaves once. */
    while (j->held > 0 && budget_recent(j, j->held - 1)->surprise <= surprise)
        j->held--;
    while (j->held > 0 && budget_recent(j, 0)->number <= number - SVI_BUDGET_APART)
        budget_drop_first(j);
    /* Fails only if svi_budget_reserve was not called. Then the oldest one is given up: a record may be
     * claimed too early, which is better than a lost row. */
    if (!budget_reserve_recent(j, j->held + 1)) {
        if (j->held == 0)
            return true;
        budget_drop_first(j);
    }
    *budget_recent(j, j->held++) = (struct svi_budget_recent){surprise, number};
    return j->held == 1;
}

/* ---- excursions */

/* Inserts a peak into a descending list of at most `capacity`; a full list keeps the largest. */
static void budget_peak_keep(struct svi_budget_peak *peaks, int *count, int capacity,
                             struct svi_budget_peak peak) {
    /* Of equal peaks the earlier one stays in front, and in a full list the earlier one stays. */
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
    /* `level` includes the factor of the pool. Multiplied by it, the ratio is that of this stream alone. */
    const double alone = surprise / j->level * b->share.factor;
    b->share.most = alone > b->share.most ? alone : b->share.most;
    /* An excursion continues above half its peak, not above the base: surprises around the base would
     * otherwise keep a large one under way for ever, and it would never enter the list. */
    if (runs ? surprise > j->now.surprise : surprise >= SVI_BUDGET_BASE) {
        j->now.surprise = surprise;
        j->now.at = b->days;
        j->calm = 0;
    } else if (runs && 2 * surprise >= j->now.surprise) {
        j->calm = 0;
    } else if (runs && ++j->calm >= SVI_BUDGET_APART) {
        /* It enters the past only now: while under way it must not raise the level against itself. */
        if (j->now.episode != LEFT_OUT) {
            (void)budget_reserve_peaks(j, j->count + 1); /* out of memory: the smallest peak is replaced */
            budget_peak_keep(j->peaks, &j->count, j->peak_capacity, j->now);
        }
        j->now = (struct svi_budget_peak){0};
        j->calm = 0;
    }
    return budget_is_record(j, b->rows, surprise);
}

void svi_budget_mark(struct svi_budget *b, int64_t episode) {
    for (int i = 0; i < SVI_DETECTORS; i++)
        /* `calm` 0: the row is part of the excursion. One that only waits for its end has nothing to do with
         * an alert that opens now. */
        if (b->detector[i].now.surprise > 0 && b->detector[i].calm == 0 &&
            b->detector[i].now.episode != LEFT_OUT)
            b->detector[i].now.episode = episode;
}

/* Removes the peaks before that day and, unless it is 0, those of that alert; order is kept. Returns how many
 * remain. */
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

/* The level that honest p-values need (budget.h, PROMISE), of the whole budget or of this policy's share. */
static double budget_promise(const struct svi_budget *b, bool shared) {
    const double a_day = shared ? budget_part(b, b->a_day) : b->a_day;
    /* The larger p applies, and the detectors share it. At one alert a day and R rows a day, the early term
     * is the larger one up to row R / 5. */
    const double lasting = SVI_BUDGET_PROMISE * a_day / svi_budget_rows_a_day(b);
    const double grant = shared ? budget_part(b, SVI_BUDGET_EARLY) : SVI_BUDGET_EARLY;
    const double early = grant / (double)(b->rows + 1);
    return fmax(SVI_BUDGET_MIN_LEVEL, -log10(fmin(1, fmax(lasting, early) / SVI_DETECTORS)));
}

/* The factor by which a shared budget raises all levels (budget.h, FLEET); 1 for a policy alone. */
static double budget_factor(const struct svi_budget *b, double promise) {
    /* The pool knows nothing of this stream before its row EARLY. Until then the promise of its share over
     * that of the whole budget applies: the worst case, of that many independent streams. */
    if (b->share.asked > 0 && b->rows > EARLY)
        return fmax(1, b->share.asked);
    return b->share.policies > 1 ? fmax(1, budget_promise(b, true) / promise) : 1;
}

/* Excursions above their levels that the past may have had, of all detectors together. */
static double budget_total(const struct svi_budget *b, double days) {
    /* The days earn the budget. The logarithm approximates the sum, from row EARLIEST on, of what
     * budget_promise grants early rows in addition. */
    return SVI_BUDGET_SPENT * (b->a_day * days + SVI_BUDGET_EARLY * log1p((double)b->rows / EARLIEST));
}

static double budget_peak_extrapolate(const struct svi_budget_peak *peaks, int count, double m) {
    /* budget.h, (2). Fewer than 4 peaks give no h, and no extrapolation. */
    const int k = count < RANKS ? count : RANKS, h = k / 4;
    if (h < 1)
        return 0;
    const double high = peaks[h - 1].surprise, low = peaks[k - 1].surprise;
    return high + (high - low) / log((double)k / h) * log(h / m);
}

/* The level that the past of a detector asks for, where m of its excursions may exceed it; 0: any. */
static double budget_past(const struct svi_budget_detector *j, double m, double promise) {
    const double largest = j->count > 0 ? j->peaks[0].surprise : 0;
    const int rank = m < 2 ? 1 : (int)m;
    /* With fewer excursions than may exceed, the past asks for nothing and the promise decides alone. */
    const double order = rank <= j->count ? j->peaks[rank - 1].surprise + SVI_BUDGET_ABOVE : 0;
    if (!(m < SVI_BUDGET_MIN_EXCURSIONS))
        return order;
    /* For so small an m the order of the peaks is unreliable, so the law of the tail applies too. The cap
     * guards against a steep slope, which would put the level out of reach for a long time. */
    return fmax(order,
                fmin(budget_peak_extrapolate(j->peaks, j->count, m), FARTHEST * fmax(largest, promise)));
}

/* Peaks at or above the promise: the excursions that a detector needs of the budget. */
static int budget_needed(const struct svi_budget_detector *j, double promise) {
    int n = 0;
    while (n < j->count && j->peaks[n].surprise >= promise)
        n++;
    return n;
}

/* m: how many excursions each detector may have had above its level, if all together may have had `total`.
 * What one detector does not need is shared by the others. */
static double budget_share_out(const struct svi_budget *b, double promise, double total) {
    bool served[SVI_DETECTORS] = {false};
    /* The detector that needs smallest is served first: what it leaves raises the part of all that follow. In
     * any other order, one could be cut although a later one leaves something over. */
    double left = total;
    for (int detectors = SVI_DETECTORS; detectors > 0; detectors--) {
        int smallest = -1, needed = 0;
        for (int i = 0; i < SVI_DETECTORS; i++) {
            const int n = served[i] ? 0 : budget_needed(&b->detector[i], promise);
            if (!served[i] && (smallest < 0 || n < needed)) {
                smallest = i;
                needed = n;
            }
        }
        /* If even the smallest need exceeds its part, all remaining ones do, and they get equal parts. */
        if (needed > left / detectors)
            return left / detectors;
        served[smallest] = true;
        left -= needed;
    }
    return total;
}

/* Sets all levels: the past first, then the factor, which depends on the promise. */
static void budget_levels(struct svi_budget *b) {
    /* The second bound keeps m below the number of peaks kept, so that the peak of rank m is in the list if
     * it exists. */
    const double memory = fmin(SVI_BUDGET_MEMORY, SVI_BUDGET_PEAKS / 2 / b->a_day);
    const double promise = budget_promise(b, false);
    for (int i = 0; i < SVI_DETECTORS; i++)
        budget_drop(&b->detector[i], b->days - memory, 0);
    /* Before the first row the total is 0; DBL_MIN keeps the logarithm in the extrapolation finite. */
    const double m = fmax(DBL_MIN, budget_share_out(b, promise, budget_total(b, fmin(b->days, memory))));
    b->share.factor = budget_factor(b, promise);
    for (int i = 0; i < SVI_DETECTORS; i++)
        b->detector[i].level = b->share.factor * fmax(promise, budget_past(&b->detector[i], m, promise));
}

void svi_budget_leave_out(struct svi_budget *b, int64_t episode) {
    for (int i = 0; i < SVI_DETECTORS && episode > 0; i++) {
        /* The excursion that is still under way is only marked: it continues, but will not enter the list. */
        budget_drop(&b->detector[i], -DBL_MAX, episode);
        if (b->detector[i].now.episode == episode)
            b->detector[i].now.episode = LEFT_OUT;
    }
    budget_levels(b);
}

void svi_budget_end(struct svi_budget *b) {
    if (b->share.policies > 0 && b->rows > EARLY)
        budget_count_surprises(b);
    /* Levels of a young stream move fast, so they are set more often. By row numbers, not by the clock: a
     * replay of the same rows sets the same levels. */
    if (b->rows % (b->rows <= EARLY ? 16 : 64) == 0)
        budget_levels(b);
}

void svi_budget_pass_over(struct svi_budget *b) {
    for (int i = 0; i < SVI_DETECTORS; i++)
        b->detector[i].now = (struct svi_budget_peak){0};
    b->share.reached = 0;
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
    /* Not svi_archive_finite: a level is INFINITY until it is first set. */
    svi_archive_double(a, "level", &j->level);
    svi_archive_check(a, j->level > 0, "a level is none");
    /* Counts become valid only when their arrays can hold them: a failed load must leave a state that can be
     * freed. */
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

/* `most` belongs to one row, and `policies` and `asked` come from the others: none of them is state. */
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

/* ---- the pool: findings of several policies */

void svi_budget_pool_pass(struct svi_budget_pool *p, double days, double policies) {
    /* Each policy reports its own days; divided by their number they add up to the days of one. */
    p->days += days / fmax(1, policies);
}

/* Moves the findings that count as one into the list, once no more can join them. */
static void budget_pool_settle(struct svi_budget_pool *p, double a_day) {
    if (!(p->now > 0) || p->days - p->since < TOGETHER / a_day)
        return;
    const struct svi_budget_peak found = {.surprise = p->now, .at = p->since};
    budget_peak_keep(p->peaks, &p->count, SVI_BUDGET_POOL, found);
    p->now = 0;
}

void svi_budget_pool_find(struct svi_budget_pool *p, double found, double a_day) {
    /* The group is dated by its first finding and counts with its largest. */
    budget_pool_settle(p, a_day);
    if (!(p->now > 0))
        p->since = p->days;
    p->now = fmax(p->now, found);
}

double svi_budget_pool_factor(struct svi_budget_pool *p, double a_day) {
    const double memory = fmin(SVI_BUDGET_MEMORY, SVI_BUDGET_POOL / 2 / a_day);
    const double m = SVI_BUDGET_SPENT * a_day * fmin(p->days, memory);
    /* As for levels: m findings may have been alerts, and the factor lies above the one of rank m. */
    budget_pool_settle(p, a_day);
    p->count = budget_peak_drop(p->peaks, p->count, p->days - memory, 0);
    if (!(m >= 1))
        return 0;
    const int rank = (int)fmin(m, SVI_BUDGET_POOL);
    const double order = rank <= p->count ? p->peaks[rank - 1].surprise + SVI_BUDGET_ABOVE : 1;
    const double far = budget_peak_extrapolate(p->peaks, p->count, m);
    const double farthest = p->count > 0 ? FARTHEST * p->peaks[0].surprise : 0;
    return fmax(1, m < SVI_BUDGET_MIN_EXCURSIONS ? fmax(order, fmin(far, farthest)) : order);
}

void svi_budget_pool_archive(struct svi_archive *a, struct svi_budget_pool *p) {
    /* As two columns, because findings have no alert: a peak of the pool leaves `episode` 0. */
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
