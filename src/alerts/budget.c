/* The levels of the detectors from the past of their stream. Parts: several policies, capacity, time, the
 * record, counts, levels, archive, and the pool of several policies.
 *
 * Two things are kept of the past:
 *   - of each detector, the recent surprises that may still be the largest of the last SVI_BUDGET_APART, in a
 *     ring. They descend, so the first one is the record, and a row costs about one comparison;
 *   - counts of the alerts that each of some levels would have opened, of each detector and of all together.
 *
 * Levels are computed from the counts and the balance alone, at fixed numbers of rows, so that a replay of
 * the same rows sets the same levels. All formulas are in budget.h. */
#include "alerts/budget.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/wide.h"

/* EARLY: up to this row levels are set more often, and the factor of the pool does not apply yet. RANKS: more
 * ranks would fit the bulk of the peaks, not their tail. FIRST_CAPACITY and its doublings divide
 * SVI_BUDGET_WINDOW; the ring relies on that. */
#define DAY            86400.0
#define MAX_ROWS_A_DAY 1e9 /* also where no time has passed */
#define EARLY          1024
#define FIRST_CAPACITY 4
#define RANKS          16   /* largest excursions that are extrapolated from */
#define FARTHEST       2.0  /* limit of an extrapolation, as a multiple of the largest excursion */
#define TOGETHER       0.05 /* excursions within this part of the time of one alert count as one */
#define MIN_APART      8    /* fewest samples that a record spans */
#define APARTS         8    /* records span at most this part of the samples that one alert takes */
#define LOWEST_FACTOR  0.5
#define DUE_FROM       0.3 /* alerts that are due when the factor may begin to fall below 1, and ... */
#define DUE_TO         3.0 /* ... when it may fall as far as it ever may */
#define LOWEST_LEVEL   1.0 /* of surprises that are counted; the others follow by LEVEL_STEP */
#define LEVEL_STEP     1.12

#define FIRST_STEPS 6.0 /* the first alerts move the balance by this many steps more */
#define BEGINS      0.6 /* size from which an excursion of a key counts */
#define SLOPE       0.1 /* rise of a level that opens fewer by a factor of e, as a part of it, where unknown */
#define SIZE_STEP   1.08 /* sizes that are counted begin at LOWEST_FACTOR */
#define LEVELS      SVI_BUDGET_LEVELS
#define MAX_QUIET   INT16_MAX

void svi_budget_init(struct svi_budget *b, double a_day, double interval) {
    *b = (struct svi_budget){
        .a_day = a_day, .interval = interval, .last = -DBL_MAX, .share.factor = 1, .apart = SVI_BUDGET_APART};
    for (int i = 0; i < SVI_DETECTORS; i++)
        b->detector[i] = (struct svi_budget_detector){.base = INFINITY, .level = INFINITY};
    for (int i = 0; i < SVI_DETECTORS; i++)
        memset(b->detector[i].counts.quiet, 0xff, sizeof b->detector[i].counts.quiet);
    memset(b->counts.quiet, 0xff, sizeof b->counts.quiet); /* -1 */
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
    /* `most` 1 is the level without the factor, and the factor may be below 1. Measured with it, a high
     * factor would hide the very excursions that it is computed from, and would then fall for want of them.
     */
    if (s->most >= BEGINS) {
        s->reached = fmax(s->reached, s->most);
        s->quiet_rows = 0;
    } else if (s->reached > 0 && ++s->quiet_rows >= b->apart) {
        s->found = s->reached;
        s->count++;
        s->reached = 0;
        s->quiet_rows = 0;
    }
}

/* A past of some days fills a quarter of the windows. */
double svi_budget_memory(void) {
    return SVI_DETECTORS * (SVI_BUDGET_WINDOW / 4 * (double)sizeof(struct svi_budget_recent));
}

void svi_budget_clear(struct svi_budget *b) {
    for (int i = 0; i < SVI_DETECTORS; i++)
        svi_free(b->detector[i].recent);
    const double group = b->group;
    svi_budget_init(b, b->a_day, b->interval);
    b->group = group;
}

/* The capacity for `count` entries: the present one, doubled until it is enough. */
static int budget_places(int capacity, int count) {
    capacity = capacity > 0 ? capacity : FIRST_CAPACITY;
    while (capacity < count)
        capacity *= 2;
    return capacity;
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
    for (int i = 0; i < SVI_DETECTORS && b->a_day > 0; i++)
        if (b->detector[i].held >= b->detector[i].window && b->detector[i].window < SVI_BUDGET_WINDOW)
            return true;
    return false;
}

svs_code svi_budget_reserve(struct svi_budget *b, svs_error *err) {
    for (int i = 0; i < SVI_DETECTORS && b->a_day > 0; i++)
        if (!budget_reserve_recent(&b->detector[i], b->detector[i].held + 1))
            return svi_fail_memory(err, "the past of the alerts");
    return SVS_OK;
}

/* ---- time */

/* How far an alert moves the balance after that many days: farther in a short past, whose counts say less. */
static double budget_step(double days, double a_day) {
    return SVI_BUDGET_STEP * (1 + FIRST_STEPS / (1 + a_day * days));
}

/* The balance falls while time passes without an alert (budget.h, BALANCE) ... */
static void budget_pass(double *balance, double passed, double days, double a_day) {
    const double step = budget_step(days, a_day) * SVI_BUDGET_TARGET * a_day * passed;
    *balance = fmax(SVI_BUDGET_LOWEST, *balance - step);
}

/* ... and rises with an alert; it is taken back if a person marks that one true. */
static void budget_spend(double *balance, double days, double a_day, int alerts) {
    const double to = *balance + alerts * budget_step(days, a_day);
    *balance = fmax(SVI_BUDGET_LOWEST, fmin(SVI_BUDGET_HIGHEST, to));
}

void svi_budget_row(struct svi_budget *b, double time, bool timed) {
    /* The mean over the rows so far, in which gaps count only as far as they were counted then. A clock that
     * runs backwards counts as standing still. */
    const double mean = b->rows > 1 ? b->days * DAY / (double)(b->rows - 1) : 0;
    double seconds = b->last > -DBL_MAX ? fmax(0, time - b->last) : 0;
    if (!timed && b->interval > 0)
        seconds = b->interval;
    /* A gap counts as SVI_BUDGET_GAP intervals at most: while no row arrives, no false alert can occur
     * either. */
    seconds = fmin(seconds, b->rows > SVI_BUDGET_GAP && mean > 0 ? SVI_BUDGET_GAP * mean : DAY);
    b->last = time;
    b->share.most = 0;
    b->rows++;
    b->days += b->rows > 1 ? seconds / DAY : 0;
    /* Time in an alert is no quiet time: were it counted, levels would fall, and the alert would never end.
     */
    const double quiet = b->rows > 1 && !b->open && !b->passed_over ? seconds / DAY : 0;
    b->passed = b->rows > 1 ? seconds / DAY : 0;
    b->open = false;
    budget_pass(&b->balance, quiet, b->days, b->a_day);
    /* The same rows in which svi_budget_end looks for excursions: the pool divides excursions by these days.
     */
    b->share.days += b->share.policies > 0 && b->rows > EARLY && !b->passed_over ? seconds / DAY : 0;
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

/* Adds the surprise of row `number`. True: it is the largest of the last `apart` rows. */
static bool budget_is_record(struct svi_budget_detector *j, int64_t number, double surprise, int apart) {
    /* An older one that is not larger can never be the largest again, so it is removed. What remains
     * descends, and each row enters and leaves once. */
    while (j->held > 0 && budget_recent(j, j->held - 1)->surprise <= surprise)
        j->held--;
    while (j->held > 0 && budget_recent(j, 0)->number <= number - apart)
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

/* ---- counts */

/* The levels that are counted, ascending, from the lowest one. */
static void budget_grid(float levels[LEVELS], double lowest, double step) {
    double level = lowest;
    for (int k = 0; k < LEVELS; k++, level *= step)
        levels[k] = (float)level;
}

/* One sample of `size`, where some count is open or may open. `hold`: quiet samples after which a count
 * closes. */
SVI_WIDE
static void budget_count(struct svi_budget_counts *c, const float *restrict levels, float size, int hold) {
    bool open = false;
    for (int k = 0; k < LEVELS; k++) {
        const bool reached = size >= levels[k], quiet = size < (float)SVI_BUDGET_CLEAR * levels[k];
        const int was = c->quiet[k], now = was < 0 ? was : quiet ? was + 1 : 0;
        c->opened[k] += reached && was < 0 ? 1 : 0;
        c->quiet[k] = (int16_t)(reached ? 0 : now >= hold ? -1 : now);
        open |= c->quiet[k] >= 0;
    }
    c->open = open;
}

/* Counts of nearly all rows stay as they are: none is open, and the size is below the lowest level. */
static void budget_count_size(struct svi_budget_counts *c, double lowest, double step, float size, int hold) {
    float levels[LEVELS];
    if (!c->open && !((double)size >= lowest))
        return;
    budget_grid(levels, lowest, step);
    budget_count(c, levels, size, hold);
}

bool svi_budget_surprise(struct svi_budget *b, enum svi_alert_detector detector, double surprise) {
    struct svi_budget_detector *j = &b->detector[detector];
    /* `level` includes the factor of the pool. Multiplied by it, the ratio is that of this stream alone. */
    const double alone = surprise / j->level * b->share.factor;
    b->share.most = alone > b->share.most ? alone : b->share.most;
    b->row[detector] = (float)surprise;
    return budget_is_record(j, b->rows, surprise, b->apart);
}

/* Days of the past that count. */
static double budget_horizon(double a_day) {
    return fmax(SVI_BUDGET_MEMORY, SVI_BUDGET_PERIODS / a_day);
}

/* What has passed since the last time fades the counts. Only before levels are set: between two settings
 * nothing reads them, and what they lose within some rows is less than a count. */
static void budget_fade(struct svi_budget *b) {
    const double keep = exp(-b->unfaded / budget_horizon(b->a_day));
    b->counted = b->counted * keep + b->unfaded;
    b->unfaded = 0;
    for (int k = 0; k < LEVELS; k++) {
        b->counts.opened[k] *= (float)keep;
        for (int i = 0; i < SVI_DETECTORS; i++)
            b->detector[i].counts.opened[k] *= (float)keep;
    }
}

/* Counts the row, by detector and by size. */
static void budget_count_row(struct svi_budget *b) {
    float size = 0;
    const double grouped = b->group / DAY * svi_budget_rows_a_day(b);
    const int hold = (int)fmin(MAX_QUIET, fmax(b->apart, grouped));
    b->unfaded += b->passed;
    for (int i = 0; i < SVI_DETECTORS; i++) {
        const float own = (float)(b->row[i] / b->detector[i].base);
        size = own > size ? own : size;
        budget_count_size(&b->detector[i].counts, LOWEST_LEVEL, LEVEL_STEP, b->row[i], hold);
    }
    budget_count_size(&b->counts, LOWEST_FACTOR, SIZE_STEP, size, hold);
    if (!b->open)
        return;
    struct svi_budget_alert *alert = &b->alerts[b->episode % SVI_BUDGET_ALERTS];
    if (alert->episode != b->episode)
        *alert = (struct svi_budget_alert){.episode = b->episode, .at = b->days};
    alert->size = fmax(alert->size, (double)size);
    for (int i = 0; i < SVI_DETECTORS; i++)
        alert->surprise[i] = b->row[i] > alert->surprise[i] ? b->row[i] : alert->surprise[i];
}

void svi_budget_opened(struct svi_budget *b) {
    if (b->passed_over)
        return;
    budget_spend(&b->balance, b->days, b->a_day, 1);
}

void svi_budget_mark(struct svi_budget *b, int64_t episode) {
    b->open = true;
    b->episode = episode;
}

/* ---- levels */

/* The level of the past (budget.h); 0: unknown. m > 0. */
static double budget_level_of(const struct svi_budget_counts *c, double lowest, double step, double m) {
    int most = 0, few = -1, some = -1, within = LEVELS;
    float levels[LEVELS];
    budget_grid(levels, lowest, step);
    /* From the highest level down. Below the one that opened most, alerts merge into one that never ends, and
     * counts fall again: there is no level there. */
    for (int k = LEVELS - 1; k >= 0; k--) {
        const double n = (double)c->opened[k];
        if (k + 1 < LEVELS && n + 0.5 < (double)c->opened[k + 1]) {
            most = k + 1;
            break;
        }
        few = few < 0 && n >= SVI_BUDGET_MIN_OPENED ? k : few;
        some = some < 0 && n >= SVI_BUDGET_MAX_OPENED ? k : some;
        within = n <= m && within == k + 1 ? k : within;
    }
    if (m < SVI_BUDGET_MIN_OPENED && few < 0)
        return 0;
    if (m < SVI_BUDGET_MIN_OPENED) {
        const double a = (double)c->opened[few], b = some >= 0 ? (double)c->opened[some] : 0;
        const double apart = some >= 0 ? (double)levels[few] - (double)levels[some] : 0;
        const double typical = SLOPE * (double)levels[few];
        const double slope = apart > 0 && b > a ? fmin(apart / log(b / a), 2 * typical) : typical;
        return (double)levels[few] + slope * log(a / m);
    }
    if (within == LEVELS || within == most) /* even the highest level opens more, or the lowest does not */
        return (double)levels[within == LEVELS ? LEVELS - 1 : most];
    /* Between the level that opened at most m and the one below it. */
    const double high = fmax(0.5, (double)c->opened[within]);
    const double low = within > 0 ? (double)c->opened[within - 1] : high;
    const double part = low > high ? log(m / high) / log(low / high) : 0;
    return (double)levels[within] -
           fmax(0, fmin(1, part)) * ((double)levels[within] - (double)levels[within > 0 ? within - 1 : 0]);
}

/* The surprise by (1) that each detector may reach, of the whole budget or of this policy's share. */
static double budget_promise(const struct svi_budget *b, bool shared) {
    const double a_day = shared ? budget_part(b, b->a_day) : b->a_day;
    const double rows = svi_budget_rows_a_day(b), lasting = SVI_BUDGET_PROMISE * a_day / rows;
    const double grant = shared ? budget_part(b, SVI_BUDGET_EARLY) : SVI_BUDGET_EARLY;
    const double early = rows > SVI_BUDGET_FAST ? grant / (double)(b->rows + 1) : 0;
    const double p = fmax(lasting, early) / SVI_DETECTORS;
    return fmax(SVI_BUDGET_MIN_LEVEL, -log10(fmin(1, p)));
}

/* The factor of the pool (budget.h, FLEET); 1 for a policy alone. */
static double budget_factor(const struct svi_budget *b, double promise) {
    /* The pool knows nothing of this stream before its row EARLY. Until then the promise of its share over
     * that of the whole budget applies: the worst case, of that many independent streams. */
    if (b->share.asked > 0 && b->rows > EARLY)
        return b->share.asked;
    return b->share.policies > 1 ? fmax(1, budget_promise(b, true) / promise) : 1;
}

/* Sets all levels: bases, then the factor. */
static void budget_levels(struct svi_budget *b) {
    budget_fade(b);
    const double due = SVI_BUDGET_SPENT * b->a_day * b->counted, m = fmax(DBL_MIN, due);
    const double promise = budget_promise(b, false);
    for (int i = 0; i < SVI_DETECTORS; i++)
        b->detector[i].base =
            fmax(promise, budget_level_of(&b->detector[i].counts, LOWEST_LEVEL, LEVEL_STEP, m));
    double factor = budget_level_of(&b->counts, LOWEST_FACTOR, SIZE_STEP, m);
    /* In a fleet the pool keeps the balance. A past that is due no alert yet grants nothing below 1. */
    const double long_enough = fmax(0, fmin(1, (due - DUE_FROM) / (DUE_TO - DUE_FROM)));
    /* Keys are compared by their sizes: each uses the budget by the factor of the pool alone. */
    const double floor = b->share.policies > 1 ? 1 : 1 - (1 - LOWEST_FACTOR) * long_enough;
    /* Where the floor decides, the balance may not fall on: what it saved up there would be spent in one go.
     */
    b->balance = fmax(b->balance, factor > 0 ? fmin(0, log(floor / factor)) : 0);
    /* An unknown level of the past is that of a stream without alerts: the balance alone knows of those that
     * were reported. */
    factor = factor > 0 ? factor : floor;
    factor = fmax(floor, factor * (b->share.policies > 0 ? 1 : exp(b->balance)));
    b->share.factor = budget_factor(b, promise);
    for (int i = 0; i < SVI_DETECTORS; i++) {
        double *level = &b->detector[i].level;
        const double next = fmax(SVI_BUDGET_MIN_LEVEL, b->share.factor * factor * b->detector[i].base);
        *level = b->open && *level < next ? *level : next; /* no alert raises the level that holds it open */
    }
    b->apart = (int)fmax(MIN_APART, fmin(SVI_BUDGET_APART, svi_budget_rows_a_day(b) / b->a_day / APARTS));
}

/* Takes one alert, as far as it has not faded, from the counts of the levels that it reached. */
static void budget_take(struct svi_budget_counts *c, double lowest, double step, double size, double left) {
    float levels[LEVELS];
    int reached = 0;
    budget_grid(levels, lowest, step);
    while (reached < LEVELS && (double)levels[reached] <= size)
        reached++;
    /* No count falls below that of the next higher level: there alerts would seem to merge, and the level of
     * the past would rise. */
    const double above = reached < LEVELS ? (double)c->opened[reached] : 0;
    for (int k = 0; k < reached; k++) {
        const double n = (double)c->opened[k];
        c->opened[k] = (float)fmax(n - left, fmin(n, above));
    }
}

void svi_budget_leave_out(struct svi_budget *b, int64_t episode) {
    struct svi_budget_alert *alert = &b->alerts[episode % SVI_BUDGET_ALERTS];
    budget_fade(b); /* first: what is taken has faded up to now */
    if (episode > 0 && alert->episode == episode) {
        const double left = exp(-(b->days - alert->at) / budget_horizon(b->a_day));
        for (int i = 0; i < SVI_DETECTORS; i++)
            budget_take(&b->detector[i].counts, LOWEST_LEVEL, LEVEL_STEP, (double)alert->surprise[i], left);
        budget_take(&b->counts, LOWEST_FACTOR, SIZE_STEP, alert->size, left);
        budget_spend(&b->balance, b->days, b->a_day, -1);
        alert->episode = 0;
    }
    budget_levels(b);
}

void svi_budget_pass_over(struct svi_budget *b) {
    b->passed_over = true;
}

void svi_budget_end(struct svi_budget *b) {
    if (!b->passed_over)
        budget_count_row(b);
    if (b->share.policies > 0 && b->rows > EARLY && !b->passed_over)
        budget_count_surprises(b);
    b->passed_over = false;
    /* Levels of a young stream move fast, so they are set more often. By row numbers, not by the clock: a
     * replay of the same rows sets the same levels. */
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

static void budget_counts_archive(struct svi_archive *a, struct svi_budget_counts *c) {
    int32_t quiet[LEVELS];
    for (int k = 0; k < LEVELS; k++)
        quiet[k] = c->quiet[k];
    svi_archive_floats(a, "counts", c->opened, LEVELS);
    svi_archive_ints(a, "calm", quiet, LEVELS, -1, MAX_QUIET);
    for (int k = 0; k < LEVELS && svi_archive_ok(a); k++) {
        c->quiet[k] = (int16_t)quiet[k];
        c->open = c->open || quiet[k] >= 0;
        svi_archive_check(a, c->opened[k] >= 0, "a count of alerts is negative");
    }
}

static void budget_alert_archive(struct svi_archive *a, struct svi_budget_alert *alert) {
    svi_archive_int64(a, "alert of", &alert->episode, 0, SVI_COUNT_MAX);
    svi_archive_finite(a, "alert size", &alert->size, 1);
    svi_archive_finite(a, "alert at", &alert->at, 1);
    svi_archive_floats(a, "alert surprise", alert->surprise, SVI_DETECTORS);
}

static void budget_detector_archive(struct svi_archive *a, struct svi_budget_detector *j) {
    /* Not svi_archive_finite: both are INFINITY until they are first set. */
    svi_archive_double(a, "base", &j->base);
    svi_archive_double(a, "level", &j->level);
    svi_archive_check(a, j->level > 0 && j->base > 0, "a level is not valid");
    budget_counts_archive(a, &j->counts);
    /* Counts become valid only when their arrays can hold them: a failed load must leave a state that can be
     * freed. */
    int held = j->held;
    svi_archive_int(a, "first", &j->first, 0, SVI_BUDGET_WINDOW - 1);
    svi_archive_int(a, "held", &held, 0, SVI_BUDGET_APART);
    if (svi_archive_loading(a) && !budget_reserve_recent(j, held))
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the past of the alerts");
    if (svi_archive_loading(a)) /* a failed save changes nothing */
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
    svi_archive_check(a, s->factor >= BEGINS, "a factor of levels is too small");
    svi_archive_finite(a, "reached", &s->reached, 1);
    svi_archive_int(a, "calm", &s->quiet_rows, 0, SVI_BUDGET_APART);
    svi_archive_finite(a, "found", &s->found, 1);
    svi_archive_int64(a, "finds", &s->count, 0, SVI_COUNT_MAX);
    svi_archive_finite(a, "days", &s->days, 1);
}

void svi_budget_archive(struct svi_archive *a, struct svi_budget *b) {
    svi_archive_int64(a, "rows", &b->rows, 0, SVI_COUNT_MAX);
    svi_archive_finite(a, "days", &b->days, 1);
    svi_archive_finite(a, "last", &b->last, 1);
    svi_archive_finite(a, "counted", &b->counted, 1);
    svi_archive_finite(a, "unfaded", &b->unfaded, 1);
    svi_archive_bool(a, "open", &b->open);
    svi_archive_finite(a, "balance", &b->balance, 1);
    svi_archive_check(a, b->balance >= SVI_BUDGET_LOWEST && b->balance <= SVI_BUDGET_HIGHEST,
                      "a balance is out of its range");
    svi_archive_int(a, "apart", &b->apart, MIN_APART, SVI_BUDGET_APART);
    for (int i = 0; i < SVI_DETECTORS && svi_archive_ok(a); i++) {
        const struct svi_budget_detector *j = &b->detector[i];
        budget_detector_archive(a, &b->detector[i]);
        for (int k = 0; k < j->held && svi_archive_ok(a); k++)
            svi_archive_check(a, budget_recent(j, k)->number <= b->rows, "a surprise is of a future row");
    }
    budget_counts_archive(a, &b->counts);
    for (int i = 0; i < SVI_BUDGET_ALERTS; i++)
        budget_alert_archive(a, &b->alerts[i]);
}

/* ---- the pool: excursions of several policies */

void svi_budget_pool_pass(struct svi_budget_pool *p, double days, double policies, double a_day) {
    /* Each policy reports its own days; divided by their number they add up to the days of one. */
    p->days += days / fmax(1, policies);
    budget_pass(&p->balance, days / fmax(1, policies), p->days, a_day);
}

/* Moves the excursions that count as one into the list, once no more can join them. Of equal sizes the
 * earlier one stays in front, and in a full list the earlier one stays. */
static void budget_pool_settle(struct svi_budget_pool *p, double a_day) {
    if (!(p->now > 0) || p->days - p->since < TOGETHER / a_day)
        return;
    const struct svi_budget_excursion found = {p->now, p->since};
    const bool full = p->count == SVI_BUDGET_POOL;
    int at = full ? SVI_BUDGET_POOL : p->count++;
    if (p->now >= p->factor && p->factor > 0) /* it was an alert, as far as the pool can see */
        budget_spend(&p->balance, p->days, a_day, 1);
    p->now = 0;
    for (; at > 0 && p->findings[at - 1].size < found.size; at--)
        if (at < SVI_BUDGET_POOL)
            p->findings[at] = p->findings[at - 1];
    if (at < SVI_BUDGET_POOL)
        p->findings[at] = found;
}

void svi_budget_pool_find(struct svi_budget_pool *p, double found, double a_day) {
    /* The group is dated by its first finding and counts with its largest. */
    budget_pool_settle(p, a_day);
    if (!(p->now > 0))
        p->since = p->days;
    p->now = fmax(p->now, found);
}

/* The size that m excursions may exceed (budget.h, POOL); 0: unknown. Excursions descend. */
static double budget_pool_level(const struct svi_budget_pool *p, double m) {
    const int k = p->count < RANKS ? p->count : RANKS, h = k / 4, rank = (int)fmin(m, SVI_BUDGET_POOL);
    if (m >= SVI_BUDGET_MIN_EXCURSIONS)
        return rank <= p->count ? p->findings[rank - 1].size + SVI_BUDGET_ABOVE : 0;
    if (h < 1) /* too few for a slope */
        return 0;
    const double high = p->findings[h - 1].size, low = p->findings[k - 1].size;
    return fmin(high + (high - low) / log((double)k / h) * log(h / m), FARTHEST * p->findings[0].size);
}

double svi_budget_pool_factor(struct svi_budget_pool *p, double a_day) {
    const double horizon = fmin(budget_horizon(a_day), SVI_BUDGET_POOL / 2 / a_day);
    const double m = SVI_BUDGET_SPENT * a_day * fmin(p->days, horizon);
    int kept = 0;
    budget_pool_settle(p, a_day);
    for (int i = 0; i < p->count; i++)
        if (p->findings[i].at >= p->days - horizon)
            p->findings[kept++] = p->findings[i];
    p->count = kept;
    /* Excursions have a size of BEGINS at least: with fewer of them than are due, lower ones are due too.
     * Below BEGINS there would be alerts that nothing counts, and all keys would report at once. The balance
     * may not fall on where that floor decides, as in budget_levels. */
    const double past = fmax(BEGINS, budget_pool_level(p, m));
    p->balance = fmax(p->balance, m >= 1 ? log(BEGINS / past) : 0); /* nor before it is used */
    p->factor = m >= 1 ? fmax(BEGINS, past * exp(p->balance)) : 0;
    return p->factor;
}

void svi_budget_pool_archive(struct svi_archive *a, struct svi_budget_pool *p) {
    double found[SVI_BUDGET_POOL], at[SVI_BUDGET_POOL];
    for (int i = 0; i < SVI_BUDGET_POOL; i++) {
        found[i] = p->findings[i].size;
        at[i] = p->findings[i].at;
    }
    svi_archive_finite(a, "pool days", &p->days, 1);
    svi_archive_finite(a, "pool factor", &p->factor, 1);
    svi_archive_finite(a, "pool balance", &p->balance, 1);
    svi_archive_check(a,
                      p->balance >= SVI_BUDGET_LOWEST && p->balance <= SVI_BUDGET_HIGHEST &&
                          (p->factor == 0 || p->factor >= BEGINS),
                      "the pool of the alerts contradicts itself");
    svi_archive_int(a, "pool", &p->count, 0, SVI_BUDGET_POOL);
    svi_archive_finite(a, "found", found, p->count);
    svi_archive_finite(a, "found at", at, p->count);
    for (int i = 0; svi_archive_ok(a) && i < p->count; i++)
        p->findings[i] = (struct svi_budget_excursion){found[i], at[i]};
    svi_archive_finite(a, "found now", &p->now, 1);
    svi_archive_finite(a, "found since", &p->since, 1);
}
