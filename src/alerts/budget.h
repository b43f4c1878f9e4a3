/* budget.h: how surprising a sample must be for an alert, so that a stream in which nothing is wrong has at
 * most `a_day` alerts a day.
 *
 * Each detector (evidence.h) has a level of its own, so that one whose surprises are heavy raises its own
 * alone. The level is the larger of two:
 *
 * PROMISE. With R rows a day, p <= SVI_BUDGET_PROMISE x a_day / SVI_DETECTORS / R: were the rows exchangeable
 * and the detectors' p-values honest, they would reach it that many times as often as the budget allows.
 *
 * A stream of its first hours would hardly ever say anything so, least of all one of many rows a day. So p up
 * to SVI_BUDGET_EARLY / n / SVI_DETECTORS is enough at row n, if that is more: which exchangeable rows use
 * SVI_BUDGET_EARLY log(b / a) times between row a and row b.
 *
 * PAST. Rows hang together, and p-values of forecasts are estimates: so what the detector has said so far
 * counts. Its excursions are listed by their peaks: one begins when the surprise exceeds SVI_BUDGET_BASE and
 * ends when it has stayed below half of the excursion's peak for SVI_BUDGET_APART samples, so that what lasts
 * counts once. In T days of past SVI_BUDGET_SPENT x a_day x T may have exceeded the levels, m of each
 * detector: what one does not need, because fewer reached the level of the promise, is shared by the others.
 * A level lies above the peak of rank m, rounded down, and above all while m < 2: a record. While m <
 * SVI_BUDGET_MIN_EXCURSIONS the peaks are extrapolated besides, by an exponential law: with u(h) and u(k) the
 * peaks of rank h = k / 4 and k = min(count, 16),
 *
 *     u(h) + s ln(h / m),   s = (u(h) - u(k)) / ln(k / h)
 *
 * which the h - 1 largest do not move. The past reaches back SVI_BUDGET_MEMORY days, or so far that
 * SVI_BUDGET_PEAKS / 2 may have exceeded. An excursion that a person called true leaves the list.
 *
 * Levels are set again at fixed numbers of samples. Days are engine time, of which a gap counts as
 * SVI_BUDGET_GAP mean intervals: while no row comes there is neither a false alert nor a past without one.
 * Rows without a time of their own count as `interval` seconds, if that is not 0. Where several policies
 * share a budget, each takes its part of `a_day` and of what young streams may have besides. A function of
 * the calls alone.
 *
 * FLEET. Where several policies share a budget (svi_budget_share), each sets its levels as if it were alone,
 * and then higher by a factor: the one that the past of all of them asks for; before that is known, and in
 * its first 1024 rows, by as much as the floor of its share is above its own. For that it reports what it
 * would have found alone: an excursion of any detectors, by the largest surprise over level.
 *
 * POOL. Each policy alone would find `a_day` alerts a day, several together a multiple of their budget. In T
 * days of past SVI_BUDGET_SPENT x a_day x T findings of all of them may have been alerts: m. The factor lies
 * above the finding of rank m, rounded down; while m < SVI_BUDGET_MIN_EXCURSIONS it is extrapolated besides,
 * as levels are. So it is set by what the keys of this stream have shown, not by a worst case, and what one
 * key does not need is for the others. Before m is 1 it is not known. What comes within a twentieth of the
 * time of one alert (72 minutes at 1 a day) counts as one, the largest: else one disturbance of all keys at
 * once would raise the factor for weeks; independent findings that matter are far more rare than that. */
#ifndef SVI_BUDGET_H
#define SVI_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "alerts/evidence.h"
#include "base/archive.h"
#include "svmstream/error.h"

/* What may be tuned. */
#define SVI_BUDGET_PROMISE 1.5 /* times the budget that exchangeable rows would use, without a past */
#define SVI_BUDGET_EARLY                                                                                     \
    0.3 /* alerts that rows may have besides, each time that they are e times as many                        \
         */
#define SVI_BUDGET_SPENT          0.75 /* part of the budget that the past may have used */
#define SVI_BUDGET_BASE           1.0  /* surprise at which an excursion begins */
#define SVI_BUDGET_APART          50   /* samples: of a record, and of calm that ends an excursion */
#define SVI_BUDGET_MIN_EXCURSIONS 4.0  /* excursions that may exceed, below which peaks are extrapolated */
#define SVI_BUDGET_ABOVE          0.01 /* the level lies so far above a peak */
#define SVI_BUDGET_MIN_LEVEL      2.0  /* no level is below it */
#define SVI_BUDGET_MEMORY         28.0 /* days */
#define SVI_BUDGET_PEAKS          64   /* excursions kept for each detector, the largest */
#define SVI_BUDGET_GAP            20   /* mean intervals that one interval counts as at most */

#define SVI_BUDGET_WINDOW 64 /* places; a power of 2 above SVI_BUDGET_APART */

struct svi_budget_peak {
    double surprise, at; /* day (svi_budget.days) of the peak */
    int64_t episode;     /* alert that it was part of, 0: none */
};

struct svi_budget_recent {
    double surprise;
    int64_t number; /* of the sample */
};

/* One detector's. Its arrays grow: zero-initialised it has none. */
struct svi_budget_detector {
    double level;                     /* INFINITY before the first one */
    struct svi_budget_peak *peaks;    /* descending ... */
    int count, peak_capacity;         /* ... that many, and room for that many, SVI_BUDGET_PEAKS at most */
    struct svi_budget_peak now;       /* of the excursion; surprise 0: there is none */
    int calm;                         /* samples since it was half as surprising */
    struct svi_budget_recent *recent; /* those that may still be the largest of the last SVI_BUDGET_APART,
                                         descending: place i of the ring at i % window */
    int first, held;                  /* of these, in the ring of SVI_BUDGET_WINDOW places */
    int window;                       /* of which there are that many: a power of 2 */
};

/* What a policy among several has to do with the others. */
struct svi_budget_share {
    double policies; /* that share the budget; 0: this one has it alone */
    double asked;    /* what their past asks for; 0: it is not known */
    double factor;   /* of the levels as they are */
    double most;     /* of the row in hand: surprise over the level without the factor */
    double reached;  /* the largest of the excursion; 0: there is none */
    int calm;        /* rows since */
    double found;    /* the largest of the last excursion that has ended, ... */
    int64_t count;   /* ... and how many have */
    double days;     /* in which they did */
};

struct svi_budget {
    double a_day; /* alerts; 0 = there is no budget */
    struct svi_budget_share share;
    double interval; /* seconds of a row without a time, 0: it has that of its arrival */
    int64_t rows;
    double days; /* so far */
    double last; /* engine time of the last row, -DBL_MAX before */
    struct svi_budget_detector detector[SVI_DETECTORS];
};

void svi_budget_init(struct svi_budget *b, double a_day, double interval);

/* May the next row need more capacity than there is? Capacity for it. SVS_NO_MEMORY: nothing has changed. */
bool svi_budget_is_full(const struct svi_budget *b);
svs_code svi_budget_reserve(struct svi_budget *b, svs_error *err);
double svi_budget_memory(void);              /* bytes besides the struct, of a past of some days */
void svi_budget_clear(struct svi_budget *b); /* frees; nothing is kept but the budget */

/* Another budget: levels follow at once from the past that there is. */
void svi_budget_set(struct svi_budget *b, double a_day, double interval);

/* The budget is shared by that many policies, and their past asks for that factor: from the next time on that
 * levels are set. */
void svi_budget_share(struct svi_budget *b, double policies, double asked);

/* A row at that engine time in seconds; `timed`: it has a time of its own. */
void svi_budget_row(struct svi_budget *b, double time, bool timed);

/* What a detector says of that row, once for each. True: a record over the last SVI_BUDGET_APART rows. */
bool svi_budget_surprise(struct svi_budget *b, enum svi_alert_detector detector, double surprise);

/* The row is of an alert: so are the excursions that are under way. */
void svi_budget_mark(struct svi_budget *b, int64_t episode);

/* The end of a row: at fixed numbers of rows the levels are set again. */
void svi_budget_end(struct svi_budget *b);

/* What was an alert was a true one: its excursions are not of the usual past. */
void svi_budget_leave_out(struct svi_budget *b, int64_t episode);

double svi_budget_rows_a_day(const struct svi_budget *b);

/* The clock that times were read from was moved: those after `from` move by `step`. */
void svi_budget_move_times(struct svi_budget *b, double from, double step);

/* Of a policy among several, beside the rest; neither the number of them nor what they ask for. */
void svi_budget_share_archive(struct svi_archive *a, struct svi_budget *b);

/* The budget itself is not part of it. */
void svi_budget_archive(struct svi_archive *a, struct svi_budget *b);

/* ---- what those that share a budget have found so far, all together */

#define SVI_BUDGET_POOL 128 /* evidence kept, the largest */

struct svi_budget_pool {
    double days; /* so far, a policy */
    struct svi_budget_peak peaks[SVI_BUDGET_POOL];
    int count;
    double now;   /* the largest of those that count as one, not in the list yet; 0: none */
    double since; /* the day of the first of them */
};

/* One of `policies` has gone through that many days more; it has found this. */
void svi_budget_pool_pass(struct svi_budget_pool *p, double days, double policies);
void svi_budget_pool_find(struct svi_budget_pool *p, double found, double a_day);

/* At least 1; 0: it is not known yet. What is too old goes. */
double svi_budget_pool_factor(struct svi_budget_pool *p, double a_day);

void svi_budget_pool_archive(struct svi_archive *a, struct svi_budget_pool *p);

#endif
