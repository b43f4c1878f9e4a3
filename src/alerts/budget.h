/* budget.h: how surprising a sample must be for an alert, so that a stream in which nothing is wrong has at
 * most `a_day` alerts a day.
 *
 * Each detector (evidence.h) has its own level, so that one with heavy-tailed surprises raises only its own.
 * It is the product of a base, which is the detector's own, and a factor, which all of them share.
 *
 * PAST. What the past would have reported is counted, not guessed. For each detector, and for all
 * together, the alerts are counted that each of SVI_BUDGET_LEVELS levels would have opened. A count
 * opens at a sample that reaches its level. It closes when the samples have stayed below
 * SVI_BUDGET_CLEAR of the level for `apart` samples. What lasts thus counts once, like an alert.
 * Counts fade with a memory of SVI_BUDGET_MEMORY days, or of SVI_BUDGET_PERIODS alerts of the
 * budget if that is longer. An alert that a person marked true is taken from them.
 *
 * LEVEL OF THE PAST. In T days, as counted, m = SVI_BUDGET_SPENT x a_day x T alerts may have been
 * opened. The level is the lowest from which on no higher one has opened more than m, by linear
 * interpolation of the logarithm of counts. Where fewer than SVI_BUDGET_MIN_OPENED may have been
 * opened, single alerts say little. There the logarithm is extrapolated from the levels that opened
 * SVI_BUDGET_MIN_OPENED and SVI_BUDGET_MAX_OPENED. The level is unknown while no level has opened
 * that many.
 *
 * BASE. The level of a detector's own past, but at least the surprise that exchangeable rows with honest
 * p-values reach SVI_BUDGET_PROMISE times as often as the budget allows. With R rows a day:
 *
 *     p <= SVI_BUDGET_PROMISE x a_day / R / SVI_DETECTORS                                              (1)
 *
 * A stream of more than SVI_BUDGET_FAST rows a day would be silent for hours by that. In its row n,
 * p may also be SVI_BUDGET_EARLY / (n + 1) / SVI_DETECTORS. Exchangeable rows reach that
 * SVI_BUDGET_EARLY ln(b / a) times between row a and row b.
 *
 * FACTOR. The size of a sample is the largest surprise over base of its detectors. The factor is
 * the level of the sizes of the past. Detectors that surprise together therefore count once, and
 * the budget limits what all of them use together. It may fall below 1 as the past becomes long
 * enough to be due an alert; a past that is short grants nothing below (1).
 *
 * BALANCE. The past is not the future of a stream that drifts. Therefore the factor is also
 * multiplied by exp(balance). The balance rises by SVI_BUDGET_STEP with each alert. It falls evenly
 * by what SVI_BUDGET_TARGET x a_day alerts would raise it. In the long run that many alerts are
 * reported, whatever the law of the stream, as long as the balance is within its bounds. This is
 * adaptive conformal inference (Gibbs, Candes 2021, eq. 2). An alert makes the next one harder for
 * about the time of one alert.
 *
 * TIME. Levels are set at fixed numbers of samples. Days are engine time, in which a gap counts as
 * SVI_BUDGET_GAP mean intervals at most. While no row arrives there is neither a false alert nor a
 * quiet past. Rows without their own time count as `interval` seconds, if that is not 0. Everything
 * depends on the calls alone.
 *
 * FLEET. Several policies may share a budget (svi_budget_share). Each then sets its levels as if it
 * were alone and multiplies them by the factor that the pool asks for. Before that is known, and in
 * its first 1024 rows, the factor is (1) of its share over that of the whole budget. To feed the
 * pool, each policy reports the excursions that it would have reported alone, by their largest
 * surprise over level. The balance is that of the pool.
 *
 * POOL. Each policy alone would report `a_day` alerts a day, several together a multiple of the
 * budget. In T days, m = SVI_BUDGET_SPENT x a_day x T excursions of all policies may have been
 * alerts. The factor lies above the excursion of rank m, rounded down. While m <
 * SVI_BUDGET_MIN_EXCURSIONS it is extrapolated by an exponential law of the largest k = min(count,
 * 16), with h = k / 4:
 *
 *     u(h) + s ln(h / m),   s = (u(h) - u(k)) / ln(k / h)                                              (2)
 *
 * The keys of this stream thus set it by what they have shown, not by a worst case. What one key
 * does not need is left to the others. It is unknown while m < 1. Excursions within a twentieth of
 * the time of one alert (72 minutes at 1 a day) count as one, the largest. Otherwise one
 * disturbance of all keys would raise the factor for weeks. Independent excursions that matter are
 * far rarer than that. */
#ifndef SVI_BUDGET_H
#define SVI_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "alerts/evidence.h"
#include "base/archive.h"
#include "svmstream/error.h"

/* Tuning. */
#define SVI_BUDGET_PROMISE        1.5 /* multiple of the budget that exchangeable rows would use, see (1) */
#define SVI_BUDGET_EARLY          0.6 /* alerts of a fast stream each time that its rows grow e-fold */
#define SVI_BUDGET_FAST           20000.0 /* rows a day of a fast stream */
#define SVI_BUDGET_SPENT          .9      /* part of the budget that the past may have used */
#define SVI_BUDGET_TARGET         .95     /* part of the budget that the balance settles at */
#define SVI_BUDGET_STEP           0.06    /* rise of the balance, the logarithm of a factor, with an alert */
#define SVI_BUDGET_LOWEST         (-0.7)
#define SVI_BUDGET_HIGHEST        1.5 /* bounds of the balance */
#define SVI_BUDGET_APART          50  /* most samples that a record spans */
#define SVI_BUDGET_CLEAR          0.6 /* part of a level below which a sample is quiet */
#define SVI_BUDGET_LEVELS         24  /* levels that are counted */
#define SVI_BUDGET_MIN_OPENED     0.75
#define SVI_BUDGET_MAX_OPENED     8.0
#define SVI_BUDGET_MIN_EXCURSIONS 4.0  /* m below which excursions are extrapolated */
#define SVI_BUDGET_ABOVE          0.01 /* distance of a factor from the excursion below it */
#define SVI_BUDGET_MIN_LEVEL      1.0  /* smallest level */
#define SVI_BUDGET_MEMORY         28.0 /* days of the past that count, at least ... */
#define SVI_BUDGET_PERIODS        8.0  /* ... this many times the time of one alert */
#define SVI_BUDGET_GAP            20   /* mean intervals that a gap counts as at most */

#define SVI_BUDGET_WINDOW 64 /* places; a power of 2 above SVI_BUDGET_APART */

/* Alerts that each level would have opened. */
struct svi_budget_counts {
    float opened[SVI_BUDGET_LEVELS];  /* fading */
    int16_t quiet[SVI_BUDGET_LEVELS]; /* quiet samples of the open one; -1: none is open */
    bool open;                        /* one of them is */
};

/* The largest size within an alert, for a verdict. */
struct svi_budget_alert {
    int64_t episode; /* 0: none */
    double size, at; /* and its day */
    float surprise[SVI_DETECTORS];
};
#define SVI_BUDGET_ALERTS 8 /* alerts that are remembered, the last ones */

struct svi_budget_recent {
    double surprise;
    int64_t number; /* of the sample */
};

/* One detector. Its array grows as needed; zero-initialised it has none. */
struct svi_budget_detector {
    double base, level;               /* INFINITY until they are first set */
    struct svi_budget_counts counts;  /* by levels of surprise */
    struct svi_budget_recent *recent; /* surprises that may still be the largest of the last `apart`,
                                         descending, owned; position i is at i % window */
    int first, held;                  /* position of the first one, below SVI_BUDGET_WINDOW; their number */
    int window;                       /* allocated places: 0, or a power of 2 up to SVI_BUDGET_WINDOW */
};

/* A policy's relation to those that it shares a budget with. */
struct svi_budget_share {
    double policies; /* policies that share the budget; 0: this one has it alone */
    double asked;    /* factor that the pool asks for; 0: unknown */
    double factor;   /* factor in the present levels, > 0 */
    double most;     /* of the current row: largest surprise over level without the factor */
    double reached;  /* largest such ratio of the excursion under way; 0: none */
    int quiet_rows;  /* rows since it was at its level */
    double found;    /* largest ratio of the last excursion that ended */
    int64_t count;   /* excursions that have ended */
    double days;     /* days in which excursions were counted */
};

struct svi_budget {
    double a_day; /* alerts a day; 0 = no budget */
    struct svi_budget_share share;
    double interval; /* seconds that a row without its own time counts as; 0: by its arrival */
    int64_t rows;
    double days;              /* so far */
    double last;              /* engine time of the last row, seconds; -DBL_MAX before the first */
    double passed;            /* of the current row: days since the last one */
    bool passed_over;         /* the current row leaves no trace */
    bool open;                /* an alert is open at the current row, or was at the last one */
    int64_t episode;          /* which one */
    double balance;           /* see BALANCE */
    double group;             /* seconds that an alert is held open after its last sample; set by the owner */
    int apart;                /* samples that a record spans */
    float row[SVI_DETECTORS]; /* surprises of the current row */
    struct svi_budget_detector detector[SVI_DETECTORS];
    double counted;                                    /* days that the counts have seen, fading */
    double unfaded;                                    /* days since the counts last faded */
    struct svi_budget_counts counts;                   /* by sizes */
    struct svi_budget_alert alerts[SVI_BUDGET_ALERTS]; /* by episode modulo their number */
};

void svi_budget_init(struct svi_budget *b, double a_day, double interval);

/* Full: the next row may need more capacity, which _reserve takes. SVS_NO_MEMORY: nothing has changed. */
bool svi_budget_is_full(const struct svi_budget *b);
svs_code svi_budget_reserve(struct svi_budget *b, svs_error *err);
double svi_budget_memory(void);              /* bytes besides the struct, after some days */
void svi_budget_clear(struct svi_budget *b); /* frees; keeps only the budget, the interval and the group */

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
 * `apart` rows. */
bool svi_budget_surprise(struct svi_budget *b, enum svi_alert_detector detector, double surprise);

/* An alert opens in this row. */
void svi_budget_opened(struct svi_budget *b);

/* The row belongs to that alert (> 0). */
void svi_budget_mark(struct svi_budget *b, int64_t episode);

/* Ends a row; at fixed numbers of rows the levels are set. */
void svi_budget_end(struct svi_budget *b);

/* Before a row that must leave no trace: neither the counts nor the pool get to know it. */
void svi_budget_pass_over(struct svi_budget *b);

/* That alert was a true one: it leaves the past, and levels are set. Only the last alerts can. */
void svi_budget_leave_out(struct svi_budget *b, int64_t episode);

double svi_budget_rows_a_day(const struct svi_budget *b); /* 1e9 at most, and where no time has passed */

/* Follows a shift of the clock: times after `from` move by `step`. Seconds. */
void svi_budget_move_times(struct svi_budget *b, double from, double step);

/* For a policy that shares a budget, in addition to svi_budget_archive. Includes neither the number of
 * policies nor the factor that the pool asks for. */
void svi_budget_share_archive(struct svi_archive *a, struct svi_budget *b);

/* Does not include the budget itself. */
void svi_budget_archive(struct svi_archive *a, struct svi_budget *b);

/* ---- the pool: excursions of all policies that share a budget */

#define SVI_BUDGET_POOL 128 /* excursions kept, the largest */

struct svi_budget_excursion {
    double size; /* surprise over level */
    double at;   /* day of the pool */
};

struct svi_budget_pool {
    double days; /* so far, of one policy (the sum over their number) */
    struct svi_budget_excursion findings[SVI_BUDGET_POOL]; /* descending by size */
    int count;
    double factor, balance; /* as last asked for; see BALANCE */
    double now;   /* largest excursion of the group that counts as one and is not in the list yet; 0: none */
    double since; /* day of the first finding of that group */
};

/* One of `policies` has advanced by that many days; one has found this surprise over level. */
void svi_budget_pool_pass(struct svi_budget_pool *p, double days, double policies, double a_day);
void svi_budget_pool_find(struct svi_budget_pool *p, double found, double a_day);

/* The factor, at least that of the smallest excursion; 0: unknown. Removes excursions that are too old. */
double svi_budget_pool_factor(struct svi_budget_pool *p, double a_day);

void svi_budget_pool_archive(struct svi_archive *a, struct svi_budget_pool *p);

#endif
