/* The detectors of single sensors. Parts: set-up, columns, residuals and signals of a row, evidence,
 * learning, archive, the engine.
 *
 * The way of a row (sensors_assess): the moment gives the regressors of time (context.h), columns of context
 * join them, and forecasts leave residuals (forecast.h). In deviations of the time of day (deviations.h)
 * these enter fading means. Signals are the values, the residuals and these means, each in two directions, up
 * and down. A signal beyond its tail (block_tails.h) is evidence, and so is a sensor far from its last rows
 * (steps.h). Then everything learns the row, so no row is assessed by a past that contains it.
 *
 * Layout: everything kept of a sensor is in arrays of d columns, so that loops run along the sensors.
 * `signal` has 2 x SIGNALS rows of d: signal i up at row 2 i, down at row 2 i + 1. -INFINITY marks a signal
 * that does not exist. */
#include "alerts/sensors.h"

#include <math.h>
#include <string.h>

#include "alerts/alert_text.h"
#include "alerts/block_tails.h"
#include "alerts/context.h"
#include "alerts/deviations.h"
#include "alerts/forecast.h"
#include "alerts/mutes.h"
#include "alerts/steps.h"
#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "base/wide.h"

#define LEVEL_ROWS           30    /* rows of the mean of LEVEL */
#define SPREAD_ROWS          30    /* rows of the mean of squares */
#define MIN_MEANS            10    /* a mean counts once the past has this many times its rows */
#define LARGEST              1e4f  /* deviations that a residual counts as at most */
#define MIN_SQUARE           1e-4f /* mean square below which a spread counts as 0 */
#define ALLOWANCE            0.5f  /* deviations: residuals below this are no change */
#define MAX_DATED            1e6f  /* rows: a longer change begins again */
#define COUNTS               8.0f  /* deviations that a residual counts as at most in a mean */
#define MAX_LEARNED_SURPRISE 5.0   /* surprise of one series above which its sensor is not learned */
#define WARM                 64    /* rows before residuals count */
#define REFRESH              64    /* rows after which the deviations of a bin are computed again */
#define CONTEXT_CLIP         1e3   /* scales that a column of context counts as at most */
#define MIN_SURPRISE         1.5   /* smallest surprise that a detector reports */
#define NONE                 (-1)  /* a place of context whose column was reused for something else */
#define MIN_STEP_SURPRISE    1.0   /* smallest surprise that STEP reports */
#define TELLING              1.645 /* deviations: 5 % of a normal law lie above */

/* Residuals: after time and context; after all that is known before and next to the value (forecast.h). */
enum { BY_CONTEXT, BY_ALL, RESIDUALS, VALUE = RESIDUALS };

static const struct {
    enum svi_alert_detector detector;
    int residual; /* or VALUE */
    int over;     /* rows of the mean */
} signals[] = {{SVI_DETECTOR_VALUE, VALUE, 1},
               {SVI_DETECTOR_LEVEL, BY_CONTEXT, LEVEL_ROWS},
               {SVI_DETECTOR_FORECAST, BY_ALL, 1},
               {SVI_DETECTOR_FORECAST, BY_ALL, 10},
               {SVI_DETECTOR_FORECAST, BY_ALL, 60},
               {SVI_DETECTOR_FORECAST, BY_ALL, 360},
               {SVI_DETECTOR_SPREAD, BY_ALL, SPREAD_ROWS}};
#define SIGNALS     ((int)(sizeof signals / sizeof *signals))
#define DATES       (4 * RESIDUALS)
#define LEVEL_MEANS 1 /* index of the mean of LEVEL */

struct svi_sensors {
    int d;
    bool with_context, grows;
    int context[SVI_CONTEXT_COLUMNS], contexts; /* columns or NONE, in the order of the regressors */
    struct svi_pace pace;
    struct svi_forecast forecast;
    struct svi_deviations deviations; /* RESIDUALS x d */
    struct svi_block_tails tails;     /* SIGNALS x 2 x d */
    struct svi_steps steps;
    struct svi_block_tails step_tails; /* of the largest distance of the row, by its logarithm */

    double *origin;    /* d: what values are measured from; fixed once there is a scale */
    double *odd_rows;  /* d: odd rows, less the others since */
    float *mean;       /* SIGNALS x d: fading means of residuals, or squares, in deviations */
    float *date;       /* DATES x d: of each residual, up and down, a cumulative sum and its rows */
    uint8_t *category; /* d flags: the column is a value of a category, and not assessed */

    /* Of the current row. */
    double *x;                   /* d: the row, NaN for columns of context */
    double *by_context, *by_all; /* d: residuals, in scales of the sensor; NaN for none */
    float *residual;             /* RESIDUALS x d: the same; 0 for none */
    float *fresh;                /* RESIDUALS x d: in deviations; 0 before WARM */
    float *signal;               /* SIGNALS x 2 x d */
    float *gate;                 /* 2 x d, by context and by all: -INFINITY without a residual, else 0 */
    uint8_t *odd, *unlearned;    /* d flags: surprising now; not learned in this row */

    int judged; /* sensors that `price` was computed for */
    double
        price[SVI_DETECTORS]; /* log10 of the number of series of a detector, a correction of its surprise */
};

/* ---- set-up */

enum { COLUMNS, DIMS };

#define OF_SENSOR SVI_AXIS(COLUMNS)
#define OWNER     struct svi_sensors

static const struct svi_array arrays[] = {
    SVI_ARRAY(OWNER, origin, "origin", OF_SENSOR),
    SVI_ARRAY(OWNER, odd_rows, "odd rows", OF_SENSOR),
    SVI_ARRAY(OWNER, x, NULL, OF_SENSOR),
    SVI_ARRAY(OWNER, by_context, NULL, OF_SENSOR),
    SVI_ARRAY(OWNER, by_all, NULL, OF_SENSOR),
    SVI_ARRAY(OWNER, mean, "means", SVI_AXIS_LENGTH(SIGNALS), OF_SENSOR),
    SVI_ARRAY(OWNER, date, "dates", SVI_AXIS_LENGTH(DATES), OF_SENSOR),
    SVI_ARRAY(OWNER, residual, NULL, SVI_AXIS_LENGTH(RESIDUALS), OF_SENSOR),
    SVI_ARRAY(OWNER, fresh, NULL, SVI_AXIS_LENGTH(RESIDUALS), OF_SENSOR),
    SVI_ARRAY(OWNER, signal, NULL, SVI_AXIS_LENGTH(2 * SIGNALS), OF_SENSOR),
    SVI_ARRAY(OWNER, gate, NULL, SVI_AXIS_LENGTH(2), OF_SENSOR),
    SVI_ARRAY(OWNER, category, "categories", OF_SENSOR),
    SVI_ARRAY(OWNER, odd, NULL, OF_SENSOR),
    SVI_ARRAY(OWNER, unlearned, NULL, OF_SENSOR),
};
static const struct svi_arrays sensors_arrays = SVI_ARRAYS(arrays, "the detectors of the sensors");

static int sensors_regressors(int contexts) {
    return SVI_CONTEXT_TIME + contexts;
}

static void sensors_drop(void *state) {
    svi_sensors *s = state;
    svi_forecast_clear(&s->forecast);
    svi_deviations_clear(&s->deviations);
    svi_block_tails_clear(&s->tails);
    svi_steps_clear(&s->steps);
    svi_block_tails_clear(&s->step_tails);
    svi_arrays_free(&sensors_arrays, s);
    svi_free(s);
}

/* Capacity for whatever the next row may need. SVS_NO_MEMORY: nothing has changed. */
static svs_code sensors_reserve(svi_sensors *s, svs_error *err) {
    if (!s->grows) /* all capacity exists; and another thread may be working on it */
        return SVS_OK;
    SVI_TRY(svi_deviations_reserve(&s->deviations, err));
    SVI_TRY(svi_block_tails_reserve(&s->step_tails, err));
    return svi_block_tails_reserve(&s->tails, err);
}

/* d columns, 1 to SVI_SENSORS_MAX; context: some may become context. grows: capacity for blocks of rows,
 * times of day and columns of context is taken as needed; else all at once, and a row never needs memory.
 * NULL: SVS_NO_MEMORY in `err`. */
static svi_sensors *sensors_new(int d, bool context, bool grows, svs_error *err) {
    const int32_t dims[DIMS] = {d};
    struct svi_sensors *s = svi_alloc_plain(sizeof *s);
    if (!s) {
        svi_fail_memory(err, sensors_arrays.what);
        return NULL;
    }
    *s = (struct svi_sensors){.d = d, .with_context = context, .grows = grows};
    const int k = sensors_regressors(0), bins = grows ? 0 : SVI_CONTEXT_BINS;
    if (svi_arrays_alloc(&sensors_arrays, s, dims, err) != SVS_OK ||
        svi_forecast_init(&s->forecast, k, d, SVI_PACE_MIN, err) != SVS_OK ||
        svi_deviations_init(&s->deviations, RESIDUALS, d, bins, err) != SVS_OK ||
        svi_block_tails_init(&s->tails, SIGNALS * 2, d, grows, log10(2.0 * d) + MIN_SURPRISE, err) !=
            SVS_OK ||
        svi_steps_init(&s->steps, d, err) != SVS_OK ||
        svi_block_tails_init(&s->step_tails, 1, 1, grows, MIN_STEP_SURPRISE, err) != SVS_OK ||
        sensors_reserve(s, err) != SVS_OK) {
        sensors_drop(s);
        return NULL;
    }
    svi_pace_init(&s->pace);
    return s;
}

svs_code svi_sensors_reserve_context(svi_sensors *s, svs_error *err) {
    const int k = sensors_regressors(s->contexts);
    return k > s->forecast.k ? svi_forecast_grow(&s->forecast, k, err) : SVS_OK;
}

static double sensors_bytes(const struct svi_detector_shape *shape) {
    const int32_t dims[DIMS] = {shape->columns};
    if (shape->columns < 1 || shape->columns > SVI_SENSORS_MAX)
        return 0;
    return (double)sizeof(struct svi_sensors) + (double)svi_arrays_bytes(&sensors_arrays, dims) +
           svi_forecast_memory(sensors_regressors(shape->contexts), shape->columns) +
           svi_deviations_memory(RESIDUALS, shape->columns, SVI_CONTEXT_BINS) +
           svi_block_tails_memory(SIGNALS * 2, shape->columns, shape->grows) +
           svi_steps_memory(shape->columns) + svi_block_tails_memory(1, 1, shape->grows);
}

/* ---- columns */

/* A copy with d columns, more than there are. NULL: SVS_NO_MEMORY in `err`; the original is unchanged. */
static svi_sensors *sensors_widened(const svi_sensors *s, int d, svs_error *err) {
    const int32_t narrow[DIMS] = {s->d}, wide[DIMS] = {d};
    struct svi_sensors *w = sensors_new(d, s->with_context, s->grows, err);
    if (!w)
        return NULL;
    memcpy(w->context, s->context, sizeof w->context);
    w->contexts = s->contexts;
    w->pace = s->pace;
    /* All that may fail comes first. The forecast needs the regressors of context before it can take the old
     * one. */
    svs_code code = svi_forecast_grow(&w->forecast, s->forecast.k, err);
    if (code == SVS_OK)
        code = svi_deviations_widen(&w->deviations, &s->deviations, err);
    if (code == SVS_OK)
        code = svi_block_tails_widen(&w->tails, &s->tails, err);
    if (code == SVS_OK)
        code = svi_block_tails_widen(&w->step_tails, &s->step_tails, err);
    if (code == SVS_OK)
        code = sensors_reserve(w, err);
    if (code != SVS_OK) {
        sensors_drop(w);
        return NULL;
    }
    svi_forecast_widen(&w->forecast, &s->forecast);
    svi_steps_widen(&w->steps, &s->steps);
    svi_arrays_copy(&sensors_arrays, w, wide, s, narrow);
    return w;
}

static int sensors_columns(const void *state) {
    const svi_sensors *s = state;
    return s->d;
}

bool svi_sensors_is_context(const svi_sensors *s, int column) {
    for (int i = 0; i < s->contexts; i++)
        if (s->context[i] == column)
            return true;
    return false;
}

bool svi_sensors_set_context(svi_sensors *s, int column) {
    if (!s->with_context || s->contexts == SVI_CONTEXT_COLUMNS || svi_sensors_is_context(s, column))
        return false;
    s->context[s->contexts++] = column;
    return true;
}

static void sensors_set_category(void *state, int column) {
    svi_sensors *s = state;
    s->category[column] = 1;
}

static void sensors_forget(void *state, int column) {
    svi_sensors *s = state;
    const int32_t dims[DIMS] = {s->d};
    for (int i = 0; i < s->contexts; i++) /* the place stays empty: coefficients of forecasts belong to it */
        s->context[i] = s->context[i] == column ? NONE : s->context[i];
    svi_forecast_forget(&s->forecast, column);
    svi_deviations_forget(&s->deviations, column);
    svi_steps_forget(&s->steps, column);
    for (int j = column; j < s->tails.series; j += s->d)
        svi_block_tails_forget(&s->tails, j);
    svi_arrays_forget(&sensors_arrays, s, dims, COLUMNS, column);
}

/* ---- one row: residuals and signals */

/* Appends the columns of context to the regressors c, in scales. An unknown scale or a missing value counts
 * as 0, the level. The clip keeps one wild context value from dominating the moments. */
static void sensors_regress(const struct svi_sensors *s, const double *x, double *c) {
    for (int i = 0; i < s->contexts; i++) {
        const int j = s->context[i];
        if (j == NONE)
            continue;
        const double far =
            s->forecast.scale[j] > 0 ? (x[j] - s->forecast.level[j]) / s->forecast.scale[j] : 0;
        c[SVI_CONTEXT_TIME + i] = isnan(far) ? 0 : fmax(-CONTEXT_CLIP, fmin(far, CONTEXT_CLIP));
    }
}

/* Limited so that its square is a finite float. */
static inline float sensors_float(double r) {
    return (float)(r > SVI_FORECAST_MAX ? SVI_FORECAST_MAX : r < -SVI_FORECAST_MAX ? -SVI_FORECAST_MAX : r);
}

/* Fills in `residual` and `gate` from the residuals of the forecast. r == r is false for NaN alone, and keeps
 * the loop without branches. */
SVI_WIDE
static void sensors_store_residuals(struct svi_sensors *s) {
    const int d = s->d;
    const double *residuals[RESIDUALS] = {[BY_CONTEXT] = s->by_context, [BY_ALL] = s->by_all};
    for (int i = 0; i < RESIDUALS; i++) {
        const double *restrict from = residuals[i];
        float *restrict to = s->residual + i * d, *restrict gate = s->gate + i * d;
        for (int j = 0; j < d; j++) {
            const double r = from[j];
            to[j] = r == r ? sensors_float(r) : 0;
            gate[j] = r == r ? 0 : -INFINITY;
        }
    }
}

static void sensors_residuals(struct svi_sensors *s, const double *x, const double *c) {
    /* No signal assesses a column of context: as a missing value it has no residual, and its gate is shut. */
    memcpy(s->x, x, (size_t)s->d * sizeof *x);
    for (int i = 0; i < s->contexts; i++)
        if (s->context[i] != NONE)
            s->x[s->context[i]] = NAN;
    /* Deviations mean nothing before WARM rows, so nothing is limited by them. */
    svi_forecast_residuals(&s->forecast, c, s->x,
                           s->pace.rows < WARM ? NULL : s->deviations.now + BY_CONTEXT * s->d, s->by_context,
                           s->by_all);
    sensors_store_residuals(s);
    for (int j = 0; j < s->d; j++)
        if (s->category[j])
            s->gate[j] = s->gate[s->d + j] = -INFINITY;
}

/* Residuals in deviations; 0 for what is not a number. */
SVI_WIDE
static void sensors_measure(float *restrict u, const float *restrict residual,
                            const float *restrict deviation, int n) {
    for (int j = 0; j < n; j++) {
        float v = residual[j] / deviation[j];
        v = v > LARGEST ? LARGEST : v < -LARGEST ? -LARGEST : v;
        u[j] = v == v ? v : 0;
    }
}

/* Moves fading means by one row of residuals, each limited, so that one gross row does not count as many. up
 * and down become the mean and its negative, or -INFINITY where the gate is shut. */
SVI_WIDE
static void sensors_average(float *restrict mean, const float *restrict now, float share,
                            const float *restrict gate, float *restrict up, int d) {
    float *restrict down = up + d;
    for (int j = 0; j < d; j++) {
        const float v = now[j] > COUNTS ? COUNTS : now[j] < -COUNTS ? -COUNTS : now[j];
        mean[j] += (v - mean[j]) * share;
        up[j] = mean[j] + gate[j];
        down[j] = gate[j] - mean[j];
    }
}

/* The same for a single residual. */
SVI_WIDE
static void sensors_single(const float *restrict now, const float *restrict gate, float *restrict up, int d) {
    float *restrict down = up + d;
    for (int j = 0; j < d; j++) {
        up[j] = now[j] + gate[j];
        down[j] = gate[j] - now[j];
    }
}

/* The same for mean squares, by the logarithm to base 2 between its powers, which is monotone: a spread that
 * falls to a tenth is as far from the normal one as one that rises tenfold. */
SVI_WIDE
static void sensors_spread(float *restrict mean, const float *restrict now, float share,
                           const float *restrict gate, float *restrict up, int d) {
    float *restrict down = up + d;
    for (int j = 0; j < d; j++) {
        const float v = now[j] * now[j] < COUNTS * COUNTS ? now[j] * now[j] : COUNTS * COUNTS;
        mean[j] += (v - mean[j]) * share;
        const union {
            float f;
            int32_t i;
        } bits = {mean[j] + MIN_SQUARE};
        const float level = (float)bits.i * 0x1p-23f - 127;
        up[j] = level + gate[j];
        down[j] = -INFINITY;
    }
}

/* Cumulative sums of the residuals of one sign, less an allowance a row, as long as they stay above
 * 0 (Page 1954). The rows of each sum are counted too: where the sum last left 0, a change that
 * continues now most likely began. */
SVI_WIDE
static void sensors_accumulate(float *restrict sum, const float *restrict now, float sign, int d) {
    float *restrict rows = sum + d;
    for (int j = 0; j < d; j++) {
        const float v = sign * now[j], counted = v > COUNTS ? COUNTS : v;
        const float next = sum[j] + counted - ALLOWANCE;
        const bool goes_on = next > 0 && rows[j] < MAX_DATED;
        sum[j] = goes_on ? next : 0;
        rows[j] = goes_on ? rows[j] + 1 : 0;
    }
}

static void sensors_follow_changes(struct svi_sensors *s) {
    for (int r = 0; r < RESIDUALS; r++)
        for (int down = 0; down < 2; down++)
            sensors_accumulate(s->date + (size_t)(4 * r + 2 * down) * (size_t)s->d,
                               s->fresh + (size_t)r * (size_t)s->d, down ? -1 : 1, s->d);
}

/* The signals of VALUE: the value in scales from its origin, and its negative. */
SVI_WIDE
static void sensors_values(const double *restrict x, const double *restrict origin,
                           const double *restrict scale, const uint8_t *restrict category, float *restrict up,
                           int d) {
    float *restrict down = up + d;
    for (int j = 0; j < d; j++) {
        double v = (x[j] - origin[j]) / (scale[j] > 0 ? scale[j] : NAN);
        v = v > SVI_FORECAST_MAX ? SVI_FORECAST_MAX : v < -SVI_FORECAST_MAX ? -SVI_FORECAST_MAX : v;
        const bool none = v != v || category[j];
        up[j] = none ? -INFINITY : (float)v;
        down[j] = none ? -INFINITY : (float)-v;
    }
}

/* Computes all signals of the row. */
static void sensors_signals(struct svi_sensors *s) {
    const int d = s->d;
    const size_t row = (size_t)RESIDUALS * (size_t)d;
    for (int j = 0; j < d; j++)
        if (!(s->forecast.scale[j] >
              0)) /* follows the level until there is a scale, and then stays for good */
            s->origin[j] = s->forecast.level[j];
    memset(s->fresh, 0, row * sizeof *s->fresh);
    if (s->pace.rows >= WARM)
        sensors_measure(s->fresh, s->residual, s->deviations.now, (int)row);
    for (int i = 0; i < SIGNALS; i++) {
        const int r = signals[i].residual, over = signals[i].over;
        float *up = s->signal + (size_t)(2 * i) * (size_t)d, *mean = s->mean + (size_t)i * (size_t)d;
        const float *now = s->fresh + (size_t)r * (size_t)d, *gate = r == BY_ALL ? s->gate + d : s->gate;
        if (r == VALUE)
            sensors_values(s->x, s->origin, s->forecast.scale, s->category, up, d);
        else if (signals[i].detector == SVI_DETECTOR_SPREAD)
            sensors_spread(mean, now, 1.0f / (float)over, gate, up, d);
        else if (over > 1)
            sensors_average(mean, now, 1.0f / (float)over, gate, up, d);
        else
            sensors_single(now, gate, up, d);
        /* A mean exists once it holds enough residuals, which are 0 before WARM. */
        for (int j = 0; j < 2 * d && r != VALUE && s->pace.rows < WARM + over; j++)
            up[j] = -INFINITY;
    }
}

/* ---- evidence */

/* The evidence of signal i at sensor j, in the units of the sensor. */
static struct svi_evidence sensors_evidence(const struct svi_sensors *s, int i, int j, double surprise) {
    struct svi_evidence f = {.surprise = surprise,
                             .feature = j,
                             .over = signals[i].over,
                             .since = 1,
                             .value = s->x[j],
                             .expected = NAN,
                             .residual = NAN,
                             .low = NAN,
                             .high = NAN,
                             .with = -1,
                             .other = -1};
    const int r = signals[i].residual;
    if (r == VALUE)
        return f;
    /* expected = value - residual. The normal range is that of a normal law of the deviation at this time of
     * day. */
    const double scale = s->forecast.scale[j], deviation = s->deviations.now[r * s->d + j];
    const double residual = r == BY_ALL ? s->by_all[j] : s->by_context[j];
    f.expected = s->x[j] - residual * scale;
    f.low = f.expected - TELLING * deviation * scale;
    f.high = f.expected + TELLING * deviation * scale;
    f.residual = residual * scale;
    f.with = r == BY_ALL ? svi_forecast_owes(&s->forecast, j) : -1;
    return f;
}

/* Number of sensors that can surprise at all, at least 1: a spare column, one that never varied, a category
 * or a column of context costs the others nothing. */
static int sensors_judged(const struct svi_sensors *s) {
    int count = 0;
    for (int j = 0; j < s->d; j++)
        count += s->forecast.scale[j] > 0 && !s->category[j];
    for (int i = 0; i < s->contexts; i++)
        count -= s->context[i] != NONE && s->forecast.scale[s->context[i]] > 0 && !s->category[s->context[i]];
    return count > 0 ? count : 1;
}

/* Sets the price of each detector: log10 of its series (signals x 2 directions x sensors), by which its
 * smallest p is corrected (Bonferroni). Recomputed only when the number of sensors has changed. */
static void sensors_set_price(struct svi_sensors *s) {
    const int judged = sensors_judged(s);
    double series[SVI_DETECTORS] = {0};
    if (judged == s->judged)
        return;
    s->judged = judged;
    for (int i = 0; i < SIGNALS; i++)
        series[signals[i].detector] += 2 * judged;
    for (int i = 0; i < SIGNALS; i++)
        s->price[signals[i].detector] = log10(series[signals[i].detector]);
}

/* Is any value above its `telling`? Almost never, so one pass without branches saves all the rest. */
SVI_WIDE
static bool sensors_beyond(const float *restrict v, const float *restrict telling, int n) {
    int beyond = 0;
    for (int k = 0; k < n; k++)
        beyond |= v[k] > telling[k];
    return beyond != 0;
}

/* Is the sensor part of the open alert? */
static bool sensors_is_known(const struct svi_detector_sample *sample, int j) {
    for (int i = 0; i < sample->known_count; i++)
        if (sample->known[i] == j)
            return true;
    return false;
}

/* Fills in the evidence of the detectors of sensors, and marks sensors as odd. Filters go from cheap to dear:
 * all signals at once, one signal, one series, and only then a tail. */
static void sensors_find(struct svi_sensors *s, const struct svi_detector_sample *sample,
                         struct svi_evidence *evidence) {
    const int d = s->d;
    if (!sensors_beyond(s->signal, s->tails.telling, 2 * SIGNALS * d))
        return;
    sensors_set_price(s);
    for (int i = 0; i < SIGNALS; i++) {
        struct svi_evidence *f = &evidence[signals[i].detector];
        const double price = s->price[signals[i].detector];
        if (signals[i].detector == SVI_DETECTOR_SPREAD && s->judged < 2)
            continue;
        if (s->tails.shape.count * s->tails.shape.length < MIN_MEANS * signals[i].over ||
            !sensors_beyond(s->signal + 2 * i * d, s->tails.telling + 2 * i * d, 2 * d))
            continue;
        for (int k = 2 * i * d; k < 2 * (i + 1) * d; k++) {
            if (!(s->signal[k] > s->tails.telling[k]))
                continue;
            if (svi_block_tails_held(&s->tails, k) * s->tails.shape.length < MIN_MEANS * signals[i].over)
                continue; /* the sensor started late: too short a past for this mean */
            /* Only a surprise above the best one so far matters, or one that makes the sensor odd, if it is
             * not; of a sensor that no open alert names also one above the best of those. */
            const bool other = sample->known_count > 0 && !sensors_is_known(sample, k % d);
            const double best = other ? f->other_surprise : f->surprise, over = best + price;
            const double surprise = svi_block_tails_surprise(
                &s->tails, k, s->signal[k],
                over < MAX_LEARNED_SURPRISE || s->odd[k % d] ? over : MAX_LEARNED_SURPRISE);
            if (surprise > MAX_LEARNED_SURPRISE)
                s->odd[k % d] = 1;
            if (other && surprise - price > f->other_surprise) {
                f->other_surprise = surprise - price;
                f->other = k % d;
            }
            if (surprise - price > f->surprise) {
                const struct svi_evidence kept = *f;
                *f = sensors_evidence(s, i, k % d, surprise - price);
                f->other = kept.other;
                f->other_surprise = kept.other_surprise;
            }
        }
    }
}

/* The sensor that has moved farthest from its last rows, of all or of those that the row teaches; -1: none.
 */
static int sensors_farthest(const struct svi_sensors *s, const struct svi_unlearned *u,
                            const struct svi_detector_sample *but) {
    int at = -1;
    for (int j = 0; j < s->d; j++)
        if (s->steps.distance[j] > (at >= 0 ? s->steps.distance[at] : 0) && !s->category[j] &&
            s->x[j] == s->x[j] && /* of a missing value there is nothing to report */
            !(u && svi_unlearned_has(u, j)) && !(but && sensors_is_known(but, j)))
            at = j;
    return at;
}

/* STEP: the sensor that has moved farthest from its last rows, compared with how far any of them has moved in
 * the past. One series serves all sensors, so its p-value needs no correction for their number. Its tail is
 * that of the logarithm: sizes of steps span powers of ten. */
static void sensors_step(struct svi_sensors *s, const struct svi_detector_sample *sample,
                         struct svi_evidence *evidence) {
    const struct svi_moment *m = sample->moment;
    const struct svi_unlearned *u = sample->unlearned;
    struct svi_steps_column kept[SVI_SENSORS_MAX];
    for (int j = 0; u && j < s->d; j++)
        kept[j] = svi_steps_column(&s->steps, j);
    svi_steps_row(&s->steps, s->x, s->forecast.memory);
    const int at = sensors_farthest(s, NULL, NULL), learned = u ? sensors_farthest(s, u, NULL) : at;
    const bool warm = s->pace.rows >= WARM;
    const float size = at >= 0 && warm ? log2f(s->steps.distance[at]) : -INFINITY,
                taught = learned >= 0 && warm ? log2f(s->steps.distance[learned]) : -INFINITY;
    /* Of a single sensor, FORECAST knows the last rows as well, and the time besides. */
    double surprise = svi_block_tails_surprise(&s->step_tails, 0, size, 0);
    surprise = surprise > 0 && sensors_judged(s) > 1 ? surprise : 0;
    if (surprise > 0) {
        double mean, deviation;
        svi_steps_normal(&s->steps, at, s->x[at], &mean, &deviation);
        evidence[SVI_DETECTOR_STEP] = (struct svi_evidence){.surprise = surprise,
                                                            .early = !svi_pace_knows_a_day(&s->pace, m->time),
                                                            .feature = at,
                                                            .over = 1,
                                                            .since = 1,
                                                            .value = s->x[at],
                                                            .expected = mean,
                                                            .residual = s->x[at] - mean,
                                                            .low = mean - TELLING * deviation,
                                                            .high = mean + TELLING * deviation,
                                                            .with = -1,
                                                            .other = -1};
    }
    const int other = surprise > 0 && sample->known_count > 0 ? sensors_farthest(s, NULL, sample) : -1;
    if (other >= 0) {
        const float far = log2f(s->steps.distance[other]);
        evidence[SVI_DETECTOR_STEP].other = other;
        evidence[SVI_DETECTOR_STEP].other_surprise = svi_block_tails_surprise(&s->step_tails, 0, far, 0);
    }
    svi_block_tails_add(&s->step_tails, &taught);
    for (int j = 0; u && j < s->d; j++)
        if (svi_unlearned_has(u, j))
            svi_steps_restore(&s->steps, j, &kept[j]);
}

/* The largest of n values, 0 if none is above it. Floats above 0 are ordered as their bits are, and those
 * below 0 are negative as integers too. The maximum of integers becomes vector code, that of floats does not.
 */
SVI_WIDE
static float sensors_largest(const float *restrict v, int n) {
    int32_t largest = 0;
    for (int k = 0; k < n; k++) {
        int32_t bits;
        memcpy(&bits, v + k, sizeof bits);
        largest = bits > largest ? bits : largest;
    }
    float value;
    memcpy(&value, &largest, sizeof value);
    return value;
}

/* The strength of the row (anomaly.h): its largest residual or mean of residuals, in deviations. A mean over
 * n rows is n^-1/2 deviations wide where rows are independent, and a whole one where they move together.
 * n^1/4, between the two, makes means comparable with single rows. Values have no forecast, so VALUE is left
 * out: novelty ranks them. A mean counts from the same row on as for evidence. */
static double sensors_strength(const struct svi_sensors *s) {
    double strength = 0;
    for (int i = 0; i < SIGNALS; i++) {
        if (signals[i].residual == VALUE || s->pace.rows < MIN_MEANS * signals[i].over)
            continue;
        const float largest = sensors_largest(s->signal + (size_t)(2 * i) * (size_t)s->d, 2 * s->d);
        strength = fmax(strength, (double)largest * sqrt(sqrt(signals[i].over)));
    }
    return strength;
}

/* ---- learning */

/* Is a sensor odd, or was one recently? */
SVI_WIDE
static bool sensors_odd(const uint8_t *restrict odd, const double *restrict rows, int d) {
    int some = 0;
    for (int j = 0; j < d; j++)
        some |= odd[j];
    for (int j = 0; j < d; j++)
        some |= rows[j] > 0;
    return some != 0;
}

/* Decides which sensors are learned in this row. An odd one is not; once it has been odd for a quarter of the
 * memory, its new level becomes the normal one. */
static void sensors_settle(struct svi_sensors *s) {
    if (!sensors_odd(s->odd, s->odd_rows, s->d)) {
        memset(s->unlearned, 0, (size_t)s->d);
        return;
    }
    for (int j = 0; j < s->d; j++) {
        s->odd_rows[j] = s->odd[j] ? s->odd_rows[j] + 1 : s->odd_rows[j] > 0 ? s->odd_rows[j] - 1 : 0;
        s->unlearned[j] = s->odd[j];
        if (s->odd_rows[j] <= s->forecast.memory / 4)
            continue;
        /* The level moves by the mean residual of LEVEL, in units of the sensor. Moments stay,
         * as if the past had been at the new level. */
        s->forecast.level[j] += (double)s->mean[LEVEL_MEANS * s->d + j] *
                                s->deviations.now[BY_CONTEXT * s->d + j] * s->forecast.scale[j];
        s->odd_rows[j] = 0;
        s->unlearned[j] = 0;
    }
}

/* Takes columns of the row back out of the means and the dates, which were `kept` before the row, and leaves
 * nothing of them to learn: as if they had had no value. */
static void sensors_pass_over(struct svi_sensors *s, const double *x, const struct svi_unlearned *u,
                              const float *kept) {
    memcpy(s->x, x, (size_t)s->d * sizeof *x);
    for (int j = 0; j < s->d; j++) {
        if (!svi_unlearned_has(u, j))
            continue;
        for (int i = 0; i < SIGNALS; i++) {
            s->mean[i * s->d + j] = kept[i * s->d + j];
            s->signal[2 * i * s->d + j] = s->signal[(2 * i + 1) * s->d + j] = -INFINITY;
        }
        for (int r = 0; r < DATES; r++)
            s->date[r * s->d + j] = kept[(SIGNALS + r) * s->d + j];
        for (int r = 0; r < RESIDUALS; r++)
            /* A residual of the normal size leaves the deviations as they are. */
            s->residual[r * s->d + j] = s->pace.rows < WARM ? 0 : s->deviations.now[r * s->d + j];
        s->x[j] = s->by_context[j] = s->by_all[j] = NAN;
        s->odd[j] = 0;
    }
}

/* One row: residuals, signals, evidence; then the tails, deviations and forecasts learn it, each from the
 * same residuals. */
static void sensors_assess(void *state, const struct svi_detector_sample *sample,
                           struct svi_evidence *evidence) {
    svi_sensors *s = state;
    const double *x = sample->x;
    const struct svi_moment *m = sample->moment;
    double c[SVI_CONTEXT_MAX] = {0};
    memcpy(c, m->values, sizeof m->values);
    sensors_regress(s, x, c);
    if (m->bin != s->deviations.bin || s->pace.rows % REFRESH == 0)
        svi_deviations_turn_to(&s->deviations, m->bin);
    sensors_residuals(s, x, c);
    float kept[(SIGNALS + DATES) * SVI_SENSORS_MAX];
    if (sample->unlearned) {
        memcpy(kept, s->mean, (size_t)(SIGNALS * s->d) * sizeof *kept);
        memcpy(kept + SIGNALS * s->d, s->date, (size_t)(DATES * s->d) * sizeof *kept);
    }
    sensors_signals(s);
    sensors_follow_changes(s);
    memset(s->odd, 0, (size_t)s->d);
    sensors_find(s, sample, evidence);
    sensors_step(s, sample, evidence);
    evidence[svi_sensor_detectors.first].strength = sensors_strength(s);
    if (sample->unlearned) {
        sensors_pass_over(s, x, sample->unlearned, kept);
        x = s->x;
    }
    /* sensors_settle before the forecast learns: it says which sensors that leaves out. */
    sensors_settle(s);
    svi_block_tails_add(&s->tails, s->signal);
    svi_deviations_learn(&s->deviations, m->bin, s->residual,
                         (float)fmax(1 / (double)(s->pace.rows + 1), 1 / s->pace.memory));
    svi_forecast_learn(&s->forecast, x, s->by_context, s->unlearned);
    /* The pace last: WARM follows the number of rows before this one. */
    if (!svi_pace_row(&s->pace, m->time))
        return;
    s->forecast.memory = s->pace.memory;
    s->tails.longest = s->step_tails.longest = svi_pace_block(&s->pace);
}

/* ---- archive */

static void sensors_archive(struct svi_archive *a, void *state) {
    svi_sensors *s = state;
    const int32_t dims[DIMS] = {s->d};
    int32_t context[SVI_CONTEXT_COLUMNS];
    for (int i = 0; i < SVI_CONTEXT_COLUMNS; i++)
        context[i] = s->context[i];
    svi_pace_archive(a, &s->pace);
    svi_archive_int(a, "contexts", &s->contexts, 0, s->with_context ? SVI_CONTEXT_COLUMNS : 0);
    svi_archive_ints(a, "context", context, SVI_CONTEXT_COLUMNS, NONE, s->d - 1);
    for (int i = 0; i < SVI_CONTEXT_COLUMNS; i++)
        s->context[i] = context[i];
    svi_forecast_archive(a, &s->forecast);
    svi_deviations_archive(a, &s->deviations);
    svi_block_tails_archive(a, &s->tails);
    svi_steps_archive(a, &s->steps);
    svi_block_tails_archive(a, &s->step_tails);
    svi_arrays_archive(a, &sensors_arrays, s, dims, dims);
    /* After a load a row may follow without a reserve, as after a sample. */
    if (svi_archive_loading(a) && svi_archive_ok(a) && sensors_reserve(s, a->err) == SVS_OK)
        (void)svi_sensors_reserve_context(s, a->err);
}

/* ---- as an engine of detectors */

/* The change began where the cumulative sum of the residuals last left 0 (sensors_follow_changes). */
static void sensors_date(const void *state, enum svi_alert_detector detector, struct svi_evidence *f) {
    const svi_sensors *s = state;
    const int j = f->feature, d = s->d;
    int i = 0;
    while (i < SIGNALS && !(signals[i].detector == detector && signals[i].over == f->over))
        i++;
    if (i == SIGNALS || f->over < 2)
        return;
    const int r = signals[i].residual, down = s->mean[i * d + j] < 0;
    const float *date = s->date + (size_t)(4 * r + 2 * down) * (size_t)d;
    const double rows = (double)date[d + j], unit = s->deviations.now[r * d + j] * s->forecast.scale[j];
    /* A spread has no side; a mean that no sum explains covers its rows. */
    const bool dated = detector != SVI_DETECTOR_SPREAD && rows >= 1;
    f->since = dated && rows < f->over ? (int)rows : f->over;
    if (f->since > 1 && detector != SVI_DETECTOR_SPREAD) {
        const double mean =
            dated ? (double)date[j] / rows + (double)ALLOWANCE : fabs((double)s->mean[i * d + j]);
        f->residual = (down ? -mean : mean) * unit;
    }
}

/* Sensors have exactly the columns of the stream and no spare ones, so that results do not depend on the form
 * in which rows arrive. With too many columns there is no state. */
static svs_code sensors_fit(void **state, const struct svi_detector_shape *shape, svs_error *err) {
    svi_sensors *s = *state;
    const int d = shape->columns;
    if (s && s->d >= d)
        return sensors_reserve(s, err);
    if (d < 1)
        return SVS_OK;
    svi_sensors *wide = NULL;
    if (d <= SVI_SENSORS_MAX &&
        !(wide = s ? sensors_widened(s, d, err) : sensors_new(d, shape->contexts > 0, shape->grows, err)))
        return SVS_NO_MEMORY;
    if (s)
        sensors_drop(s);
    *state = wide;
    return SVS_OK;
}

static bool sensors_is_full(const void *state) {
    const svi_sensors *s = state;
    return s->grows && (svi_deviations_are_full(&s->deviations) || svi_block_tails_are_full(&s->tails) ||
                        svi_block_tails_are_full(&s->step_tails));
}

/* The most specific one: a single feature that explains most comes before the kind of the detector. A clock
 * that does not start in 1970 has no time of day. VALUE compares with all past values.
 * Of a feature that explains most, the line already names the value. */
static const char *sensors_basis(const struct svi_alert_fact *f, bool dated) {
    return f->detector == SVI_DETECTOR_VALUE      ? NULL
           : f->with >= 0                         ? ""
           : f->detector == SVI_DETECTOR_STEP     ? " after the previous rows"
           : f->detector == SVI_DETECTOR_FORECAST ? " from the other sensors"
           : dated                                ? " at this time of day"
                                                  : "";
}

const struct svi_detector_engine svi_sensor_detectors = {.first = SVI_DETECTOR_VALUE,
                                                         .kept_as = "columns",
                                                         .max_size = SVI_SENSORS_MAX,
                                                         .reserve = sensors_fit,
                                                         .is_full = sensors_is_full,
                                                         .size = sensors_columns,
                                                         .assess = sensors_assess,
                                                         .archive = sensors_archive,
                                                         .drop = sensors_drop,
                                                         .bytes = sensors_bytes,
                                                         .forget = sensors_forget,
                                                         .set_category = sensors_set_category,
                                                         .date = sensors_date,
                                                         .basis = sensors_basis};
