/* budget.h: how surprising a sample must be for an alert, so that a stream in which nothing is wrong has at
 * most `a_day` alerts a day.
 *
 * Each detector (evidence.h) has its own level, so that one with heavy-tailed surprises raises only its own.
 * The level is the larger of two:
 *
 * PROMISE. A p that exchangeable rows with honest p-values would reach SVI_BUDGET_PROMISE times as often as
 * the budget allows. With R rows a day, at row n:
 *
 *     p <= max(SVI_BUDGET_PROMISE x a_day / R, SVI_BUDGET_EARLY / (n + 1)) / SVI_DETECTORS             (1)
 *
 * The second term lets a young stream report at all, above all one of many rows a day. Exchangeable rows use
 * it SVI_BUDGET_EARLY ln(b / a) times between row a and row b.
 *
 * PAST. Rows are autocorrelated and p-values of forecasts are estimates, so the past of the detector counts
 * too. It is a list of excursions by their peaks. An excursion begins when the surprise reaches
 * SVI_BUDGET_BASE and ends when it has stayed below half its peak for SVI_BUDGET_APART samples, so that what
 * lasts counts once. In T days, SVI_BUDGET_SPENT x a_day x T excursions may have exceeded the levels, m of
 * each detector; what one does not need, because fewer of its excursions reached the promise, is shared by
 * the others. A level lies above the peak of rank m, rounded down, and above all peaks while m < 2 (a
 * record). While m < SVI_BUDGET_MIN_EXCURSIONS, it also lies above an extrapolation by an exponential law.
 * With u(i) the peak of rank i, k = min(count, 16) and h = k / 4, that is
 *
 *     u(h) + s ln(h / m),   s = (u(h) - u(k)) / ln(k / h)                                              (2)
 *
 * which does not depend on the h - 1 largest peaks. The past reaches back SVI_BUDGET_MEMORY days, or as far
 * as SVI_BUDGET_PEAKS / 2 excursions may have exceeded. An excursion that a person marked true leaves the
 * list.
 *
 * TIME. Levels are set at fixed numbers of samples. Days are engine time, in which a gap counts as
 * SVI_BUDGET_GAP mean intervals at most: while no row arrives there is neither a false alert nor a quiet
 * past. Rows without their own time count as `interval` seconds, if that is not 0. Everything depends on the
 * calls alone.
 *
 * FLEET. Where several policies share a budget (svi_budget_share), each sets its levels as if it were alone
 * and then multiplies them by a factor: the one that the pool asks for. Before that is known, and in its
 * first 1024 rows, the factor is the promise of its share over that of the whole budget. To feed the pool,
 * each policy reports its findings, the excursions that it would have reported alone, by their largest
 * surprise over level.
 *
 * POOL. Each policy alone would report `a_day` alerts a day, several together a multiple of the budget. In T
 * days, m = SVI_BUDGET_SPENT x a_day x T findings of all policies may have been alerts. The factor lies above
 * the finding of rank m, rounded down, and while m < SVI_BUDGET_MIN_EXCURSIONS also above an extrapolation by
 * (2). It is thus set by what the keys of this stream have shown, not by a worst case, and what one key does
 * not need is left to the others. It is unknown while m < 1. Findings within a twentieth of the time of one
 * alert (72 minutes at 1 a day) count as one, the largest: otherwise one disturbance of all keys would raise
 * the factor for weeks. Independent findings that matter are far rarer than that. */
#ifndef SVI_BUDGET_H
#define SVI_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "alerts/evidence.h"
#include "base/archive.h"
#include "svmstream/error.h"

/* Tuning. */
#define SVI_BUDGET_PROMISE        1.5  /* multiple of the budget that exchangeable rows would use, see (1) */
#define SVI_BUDGET_EARLY          0.3  /* further alerts each time that the number of rows grows e-fold */
#define SVI_BUDGET_SPENT          0.75 /* part of the budget that the past may have used */
#define SVI_BUDGET_BASE           1.0  /* surprise at which an excursion begins */
#define SVI_BUDGET_APART          50   /* samples that a record spans, and quiet ones that end an excursion */
#define SVI_BUDGET_MIN_EXCURSIONS 4.0  /* m below which peaks are extrapolated */
#define SVI_BUDGET_ABOVE          0.01 /* distance of a level from the peak below it */
#define SVI_BUDGET_MIN_LEVEL      2.0  /* smallest level */
#define SVI_BUDGET_MEMORY         28.0 /* days of the past that count */
#define SVI_BUDGET_PEAKS          64   /* excursions kept for each detector, the largest */
#define SVI_BUDGET_GAP            20   /* mean intervals that a gap counts as at most */

#define SVI_BUDGET_WINDOW 64 /* places; a power of 2 above SVI_BUDGET_APART */

struct svi_budget_peak {
    double surprise; /* -log10 p */
    double at;       /* day of the peak (svi_budget.days) */
    int64_t episode; /* the alert that it was part of; 0: none */
};

struct svi_budget_recent {
    double surprise;
    int64_t number; /* of the sample */
};

/* The past of one detector. Its arrays grow as needed; zero-initialised it has none. */
struct svi_budget_detector {
    double level;                     /* INFINITY until it is first set */
    struct svi_budget_peak *peaks;    /* of ended excursions, descending, owned */
    int count, peak_capacity;         /* peaks held; allocated, SVI_BUDGET_PEAKS at most */
    struct svi_budget_peak now;       /* of the excursion under way; surprise 0: none */
    int calm;                         /* samples since the surprise was at half that peak or above */
    struct svi_budget_recent *recent; /* surprises that may still be the largest of the last SVI_BUDGET_APART,
                                         descending, owned; position i is at i % window */
    int first, held;                  /* position of the first one, below SVI_BUDGET_WINDOW; their number */
    int window;                       /* allocated places: 0, or a power of 2 up to SVI_BUDGET_WINDOW */
};

/* A policy's relation to those that it shares a budget with. */
struct svi_budget_share {
    double policies; /* policies that share the budget; 0: this one has it alone */
    double asked;    /* factor that the pool asks for; 0: unknown */
    double factor;   /* factor in the present levels, >= 1 */
    double most;     /* of the current row: largest surprise over level without the factor */
    double reached;  /* largest such ratio of the excursion under way; 0: none */
    int calm;        /* rows since it was at its level */
    double found;    /* largest ratio of the last excursion that ended */
    int64_t count;   /* excursions that have ended, the findings */
    double days;     /* days in which findings were counted */
};

struct svi_budget {
    double a_day; /* alerts a day; 0 = no budget */
    struct svi_budget_share share;
    double interval; /* seconds that a row without its own time counts as; 0: by its arrival */
    int64_t rows;
    double days; /* so far */
    double last; /* engine time of the last row, seconds; -DBL_MAX before the first */
    struct svi_budget_detector detector[SVI_DETECTORS];
};

void svi_budget_init(struct svi_budget *b, double a_day, double interval);

/* Full: the next row may need more capacity, which _reserve takes. SVS_NO_MEMORY: nothing has changed. */
bool svi_budget_is_full(const struct svi_budget *b);
svs_code svi_budget_reserve(struct svi_budget *b, svs_error *err);
double svi_budget_memory(void);              /* bytes besides the struct, after some days */
void svi_budget_clear(struct svi_budget *b); /* frees; keeps only the budget and the interval */

/* Sets another budget. Levels follow at once from the past. */
void svi_budget_set(struct svi_budget *b, double a_day, double interval);

/* The budget is shared by that many policies, and the pool asks for that factor (0: unknown). Takes effect
 * when levels are next set. */
void svi_budget_share(struct svi_budget *b, double policies, double asked);

/* ---- one row: svi_budget_row, svi_budget_surprise of each detector, svi_budget_mark in an alert,
 * svi_budget_end */

/* Begins a row at that engine time in seconds; `timed`: the row has its own time. */
void svi_budget_row(struct svi_budget *b, double time, bool timed);

/* Adds the surprise of a detector, finite and >= 0. True: it is a record over the last
 * SVI_BUDGET_APART rows. */
bool svi_budget_surprise(struct svi_budget *b, enum svi_alert_detector detector, double surprise);

/* The row belongs to that alert (> 0), and so do the excursions that it is part of. */
void svi_budget_mark(struct svi_budget *b, int64_t episode);

/* Ends a row; at fixed numbers of rows the levels are set. */
void svi_budget_end(struct svi_budget *b);

/* After the end of a row that must not raise levels: the excursions under way are dropped, so that neither
 * the past nor the pool gets to know them. */
void svi_budget_pass_over(struct svi_budget *b);

/* That alert was a true one: its excursions leave the past, and levels are set. */
void svi_budget_leave_out(struct svi_budget *b, int64_t episode);

double svi_budget_rows_a_day(const struct svi_budget *b); /* 1e9 at most, and where no time has passed */

/* Follows a shift of the clock: times after `from` move by `step`. Seconds. */
void svi_budget_move_times(struct svi_budget *b, double from, double step);

/* For a policy that shares a budget, in addition to svi_budget_archive. Includes neither the number of
 * policies nor the factor that the pool asks for. */
void svi_budget_share_archive(struct svi_archive *a, struct svi_budget *b);

/* Does not include the budget itself. */
void svi_budget_archive(struct svi_archive *a, struct svi_budget *b);

/* ---- the pool: findings of all policies that share a budget */

#define SVI_BUDGET_POOL 128 /* findings kept, the largest */

struct svi_budget_pool {
    double days;                                   /* so far, of one policy (the sum over their number) */
    struct svi_budget_peak peaks[SVI_BUDGET_POOL]; /* descending; `surprise` holds a surprise over level */
    int count;
    double now;   /* largest finding of the group that counts as one and is not in the list yet; 0: none */
    double since; /* day of the first finding of that group */
};

/* One of `policies` has advanced by that many days; one has found this surprise over level. */
void svi_budget_pool_pass(struct svi_budget_pool *p, double days, double policies);
void svi_budget_pool_find(struct svi_budget_pool *p, double found, double a_day);

/* The factor, at least 1; 0: unknown. Removes findings that are too old. */
double svi_budget_pool_factor(struct svi_budget_pool *p, double a_day);

void svi_budget_pool_archive(struct svi_archive *a, struct svi_budget_pool *p);

#endif
