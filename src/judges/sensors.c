/* The judges of single sensors.
 *
 * A row's way: the moment gives the regressors of time (context.h), named columns join them, and forecasts
 * leave residuals (forecast.h). Measured in deviations of the time of day (deviations.h) these go into a
 * ring, from which means are kept; what comes out are the signals, two of each, up and down. Signals that lie
 * beyond most of what was (block_tails.h) make findings. Then everything learns the row.
 *
 * All that is kept of a sensor stands in arrays of d columns, so that loops run along them.
 */
#include "judges/sensors.h"

#include <math.h>
#include <string.h>

#include "judges/block_tails.h"
#include "judges/context.h"
#include "judges/deviations.h"
#include "judges/floats_move.h"
#include "judges/forecast.h"
#include "judges/pace.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/wide.h"

#define MEANS      180   /* rows of the longest mean */
#define STEP_MEANS 30    /* rows of the longest one of BY_STEP */
#define ENOUGH     10    /* times as many rows as a mean has, before it counts */
#define LARGEST    1e4f  /* deviations that a residual counts as at most */
#define ODD        5.0   /* surprise of one series from which on a sensor is not learned */
#define WARM       64    /* rows before residuals count */
#define REFRESH    64    /* rows after which the deviations of a bin are worked out again */
#define FADES      0.999 /* of the moments of successive residuals */
#define FAR        1e3   /* scales that a column of context counts as at most */
#define FEW        1.5   /* a judge of one series tells no surprise below it */
#define NONE       (-1)  /* a place of context whose column has changed hands */
#define TELLING    1.645 /* deviations: 5 % of a normal law lie above */

enum { BY_CONTEXT, BY_STEP, BY_OTHERS, RESIDUALS, VALUE = RESIDUALS };

static const struct {
    enum svi_judge judge;
    int residual; /* or VALUE */
    int over;     /* rows */
} signals[] = {{SVI_JUDGE_VALUE, VALUE, 1},           {SVI_JUDGE_LEVEL, BY_CONTEXT, 1},
               {SVI_JUDGE_LEVEL, BY_CONTEXT, 30},     {SVI_JUDGE_LEVEL, BY_CONTEXT, MEANS},
               {SVI_JUDGE_STEP, BY_STEP, STEP_MEANS}, {SVI_JUDGE_OTHERS, BY_OTHERS, 1},
               {SVI_JUDGE_OTHERS, BY_OTHERS, 30},     {SVI_JUDGE_OTHERS, BY_OTHERS, MEANS}};
#define SIGNALS     ((int)(sizeof signals / sizeof *signals))
#define LEVEL_MEANS 3 /* the longest mean of LEVEL */

struct svi_sensors {
    int d;
    bool with_context;
    int context[SVI_CONTEXT_COLUMNS], contexts; /* columns */
    struct svi_pace pace;
    struct svi_forecast forecast;
    struct svi_deviations deviations; /* RESIDUALS x d */
    struct svi_block_tails tails;     /* SIGNALS x 2 x d */

    double *x;                           /* d: the row, NaN for what is not judged */
    double *by_context, *by_others;      /* d: residuals of the row at hand, in scales of the sensor ... */
    double *origin;                      /* d: what values are measured from */
    double *before;                      /* d: the residual of the row before, 0 for none */
    double *now_before, *before_before;  /* d: moments of successive residuals */
    double *odd_rows;                    /* d: rows in a row, nearly, in which it was odd */
    double *sum;                         /* SIGNALS x d: of the last residuals */
    float *residual;                     /* RESIDUALS x d: ... and 0 for none */
    float *ring;                         /* MEANS x RESIDUALS x d: in deviations */
    float *signal;                       /* SIGNALS x 2 x d */
    float *fresh;                        /* RESIDUALS x d: what goes into the ring */
    float *gate;                         /* 2 x d: -INFINITY where there is no residual, else 0 */
    uint8_t *odd, *category, *unlearned; /* d flags */

    struct svi_shared_room *shared; /* where all of these are, while it is in; NULL: they are its own */
    bool in;
    char *packed;           /* what it holds while it is not in, with room for ... */
    int blocks, bins, used; /* ... that many blocks, bins and columns of context, of which ... */
    int idle_at[SVI_CONTEXT_COLUMNS], idle; /* ... these columns never had anything to be judged */
};

/* ---- set-up */

static size_t sensors_doubles(int d) {
    return (size_t)(8 + SIGNALS) * (size_t)d;
}

static size_t sensors_floats(int d) {
    return (size_t)(RESIDUALS + MEANS * RESIDUALS + 2 * SIGNALS + RESIDUALS + 2) * (size_t)d;
}

static size_t sensors_bytes(int d) {
    return sensors_doubles(d) * sizeof(double) + sensors_floats(d) * sizeof(float) + 3 * (size_t)d;
}

static int sensors_regressors(bool context) {
    return SVI_CONTEXT_TIME + (context ? SVI_CONTEXT_COLUMNS : 0);
}

static void sensors_place(struct svi_sensors *s) {
    double **const doubles[] = {&s->by_context, &s->by_others,     &s->origin,   &s->before,
                                &s->now_before, &s->before_before, &s->odd_rows, &s->sum};
    double *at = s->x;
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
        *doubles[i] = at += s->d;
    s->residual = (float *)(s->x + sensors_doubles(s->d));
    s->ring = s->residual + (size_t)RESIDUALS * (size_t)s->d;
    s->signal = s->ring + (size_t)MEANS * RESIDUALS * (size_t)s->d;
    s->gate = s->signal + (size_t)2 * (size_t)SIGNALS * (size_t)s->d;
    s->fresh = s->gate + (size_t)2 * (size_t)s->d;
    s->odd = (uint8_t *)(s->fresh + (size_t)RESIDUALS * (size_t)s->d);
    s->category = s->odd + s->d;
    s->unlearned = s->category + s->d;
}

svi_sensors *svi_sensors_new(int d, bool context, svs_error *err) {
    struct svi_sensors *s = svi_alloc(sizeof *s);
    if (!s) {
        svi_fail_memory(err, "the judges of the sensors");
        return NULL;
    }
    *s = (struct svi_sensors){.d = d, .with_context = context};
    s->x = svi_alloc(sensors_bytes(d));
    if (!s->x)
        svi_fail_memory(err, "the judges of the sensors");
    if (!s->x ||
        svi_forecast_init(&s->forecast, sensors_regressors(context), d, SVI_PACE_LEAST, err) != SVS_OK ||
        svi_deviations_init(&s->deviations, RESIDUALS * d, err) != SVS_OK ||
        svi_block_tails_init(&s->tails, SIGNALS * 2 * d, log10(2.0 * d) + FEW, err) != SVS_OK) {
        svi_sensors_free(&s);
        return NULL;
    }
    svi_pace_init(&s->pace);
    sensors_place(s);
    return s;
}

void svi_sensors_free(svi_sensors **sensors) {
    struct svi_sensors *s = *sensors;
    if (!s)
        return;
    *sensors = NULL;
    if (s->shared) {
        if (s->in)
            svi_shared_room_leave(s->shared, s);
        svi_free(s->packed);
        svi_free(s);
        return;
    }
    svi_forecast_clear(&s->forecast);
    svi_deviations_clear(&s->deviations);
    svi_block_tails_clear(&s->tails);
    svi_free(s->x);
    svi_free(s);
}

/* ---- in a shared room */

static size_t sensors_part_size(size_t bytes) {
    return (bytes + 63) / 64 * 8; /* doubles */
}

static size_t sensors_block(const struct svi_sensors *s) {
    return sensors_part_size(sensors_bytes(s->d)) +
           sensors_part_size(svi_forecast_room(s->forecast.k, s->d) * sizeof(double)) +
           sensors_part_size(svi_deviations_room(RESIDUALS * s->d) * sizeof(float)) +
           sensors_part_size(svi_block_tails_room(SIGNALS * 2 * s->d) * sizeof(float));
}

/* Where everything lies, all of it 0. */
static void sensors_place_all(struct svi_sensors *s) {
    double *at = s->shared->at;
    memset(at, 0, sensors_block(s) * sizeof *at);
    s->x = at;
    sensors_place(s);
    at += sensors_part_size(sensors_bytes(s->d));
    svi_forecast_place(&s->forecast, at);
    at += sensors_part_size(svi_forecast_room(s->forecast.k, s->d) * sizeof(double));
    svi_deviations_place(&s->deviations, (float *)at);
    at += sensors_part_size(svi_deviations_room(RESIDUALS * s->d) * sizeof(float));
    svi_block_tails_place(&s->tails, (float *)at);
}

/* Regressors that were ever other than 0. */
static int sensors_used(const struct svi_sensors *s, int contexts) {
    return SVI_CONTEXT_TIME + (s->with_context ? contexts : 0);
}

static void sensors_part(char **at, void *array, size_t size, bool out) {
    memcpy(out ? (void *)*at : array, out ? array : (void *)*at, size);
    *at += size;
}

/* Rows of the ring that a residual is still needed of: `over`, up to the last one. */
static void sensors_move_ring(struct svi_sensors *s, int residual, int over, const uint8_t *skip, char **at,
                              bool out) {
    const int64_t rows = s->pace.rows < over ? s->pace.rows : over;
    for (int64_t i = s->pace.rows - rows; i < s->pace.rows; i++)
        svi_floats_move(s->ring + ((size_t)(i % MEANS) * RESIDUALS + (size_t)residual) * (size_t)s->d, s->d,
                        skip, at, out);
}

/* Flags of the series of idle columns; NULL: there are none. */
static const uint8_t *sensors_skip(const struct svi_sensors *s, uint8_t *flags) {
    memset(flags, 0, (size_t)(2 * SIGNALS) * (size_t)s->d);
    for (int i = 0; i < s->idle; i++)
        for (int part = 0; part < 2 * SIGNALS; part++)
            flags[part * s->d + s->idle_at[i]] = 1;
    return s->idle > 0 ? flags : NULL;
}

/* Into `packed`, or from there into arrays of zeros. */
static void sensors_move(struct svi_sensors *s, char *at, bool out) {
    const size_t d = (size_t)s->d;
    uint8_t flags[2 * SIGNALS * SVI_SENSORS_MAX];
    const uint8_t *skip = sensors_skip(s, flags);
    sensors_part(&at, s->origin, (5 + SIGNALS) * d * sizeof *s->origin, out);
    sensors_part(&at, s->category, d, out);
    sensors_move_ring(s, BY_CONTEXT, MEANS, skip, &at, out);
    sensors_move_ring(s, BY_STEP, STEP_MEANS, skip, &at, out);
    sensors_move_ring(s, BY_OTHERS, MEANS, skip, &at, out);
    svi_forecast_move(&s->forecast, sensors_used(s, s->used), &at, out);
    svi_deviations_move(&s->deviations, skip, &at, out);
    svi_block_tails_move(&s->tails, skip, &at, out);
}

static size_t sensors_packed(const struct svi_sensors *s, int blocks, int bins, int contexts, int idle) {
    const int judged = s->d - idle;
    return ((5 + SIGNALS) * sizeof(double) + 1) * (size_t)s->d +
           (2 * MEANS + STEP_MEANS) * sizeof(float) * (size_t)judged +
           svi_forecast_packed(s->forecast.k, s->d, sensors_used(s, contexts)) +
           svi_deviations_packed(RESIDUALS * judged, bins) +
           svi_block_tails_packed(SIGNALS * 2 * judged, blocks);
}

/* Has the column, of context, never had anything to be judged? Then it never will. */
static bool sensors_is_idle(const struct svi_sensors *s, int column) {
    bool idle = column != NONE;
    for (int j = column; idle && j < s->tails.series; j += s->d)
        idle = svi_block_tails_empty(&s->tails, j);
    for (int j = column; idle && j < s->deviations.series; j += s->d)
        idle = s->deviations.overall[j] == 0;
    for (size_t i = 0; idle && i < (size_t)MEANS * RESIDUALS; i++)
        idle = s->ring[i * (size_t)s->d + (size_t)column] == 0;
    return idle;
}

/* Are those still of context? One that has changed hands is empty, but not for long. */
static bool sensors_stay_idle(const struct svi_sensors *s) {
    bool idle = true;
    for (int i = 0; i < s->idle; i++)
        idle = idle && svi_sensors_is_context(s, s->idle_at[i]);
    return idle;
}

static void sensors_put_out(void *sensors) {
    struct svi_sensors *s = sensors;
    s->in = false;
    sensors_move(s, s->packed, true);
}

static void sensors_enter(struct svi_sensors *s) {
    if (!s->shared || s->in)
        return;
    (void)svi_shared_room_enter(s->shared, s, sensors_put_out);
    s->in = true;
    sensors_place_all(s);
    sensors_move(s, s->packed, false);
}

svs_code svi_sensors_reserve(svi_sensors *s, svs_error *err) {
    if (!s->shared) /* nothing is packed; and another thread may judge */
        return SVS_OK;
    const int blocks = svi_block_tails_blocks(&s->tails) + 1, bins = svi_deviations_bins(&s->deviations) + 1;
    if (s->packed && blocks <= s->blocks && bins <= s->bins && s->contexts <= s->used && sensors_stay_idle(s))
        return SVS_OK;
    int more = (blocks + 1) / 2 * 2, wider = (bins + 1) / 2 * 2;
    more = more < SVI_BLOCKS ? more : SVI_BLOCKS;
    wider = wider < SVI_CONTEXT_BINS ? wider : SVI_CONTEXT_BINS;
    sensors_enter(s); /* what is packed is not needed then */
    int idle_at[SVI_CONTEXT_COLUMNS], idle = 0;
    for (int i = 0; i < s->contexts; i++)
        if (sensors_is_idle(s, s->context[i]))
            idle_at[idle++] = s->context[i];
    char *packed = svi_alloc_plain(sensors_packed(s, more, wider, s->contexts, idle));
    if (!packed)
        return svi_fail_memory(err, "the judges of the sensors");
    memcpy(s->idle_at, idle_at, sizeof idle_at);
    s->idle = idle;
    svi_free(s->packed);
    s->packed = packed;
    s->blocks = more;
    s->bins = wider;
    s->used = s->contexts;
    return SVS_OK;
}

svi_sensors *svi_sensors_new_in(struct svi_shared_room *room, int d, bool context, svs_error *err) {
    struct svi_sensors *s = svi_alloc_plain(sizeof *s);
    if (!s) {
        svi_fail_memory(err, "the judges of the sensors");
        return NULL;
    }
    *s = (struct svi_sensors){.d = d, .with_context = context, .shared = room};
    svi_forecast_begin(&s->forecast, sensors_regressors(context), d, SVI_PACE_LEAST);
    s->deviations.series = RESIDUALS * d;
    s->deviations.bin = -1;
    svi_block_tails_begin(&s->tails, SIGNALS * 2 * d, log10(2.0 * d) + FEW, NULL);
    svi_pace_init(&s->pace);
    if (svi_shared_room_reserve(room, sensors_block(s), err) == SVS_OK) {
        (void)svi_shared_room_enter(room, s, sensors_put_out);
        s->in = true;
        sensors_place_all(s);
        svi_block_tails_begin(&s->tails, SIGNALS * 2 * d, log10(2.0 * d) + FEW, s->tails.maxima);
        if (svi_sensors_reserve(s, err) == SVS_OK)
            return s;
    }
    svi_sensors_free(&s);
    return NULL;
}

void svi_sensors_rest(svi_sensors *s) {
    if (s->in)
        svi_shared_room_rest(s->shared);
}

svs_code svi_sensors_use_room(svi_sensors *s, struct svi_shared_room *room, svs_error *err) {
    if (!s->shared || s->shared == room)
        return SVS_OK;
    if (svi_shared_room_reserve(room, sensors_block(s), err) != SVS_OK)
        return SVS_NO_MEMORY;
    svi_sensors_rest(s);
    s->shared = room;
    return SVS_OK;
}

double svi_sensors_bytes(const svi_sensors *s) {
    return s->shared ? (double)(sizeof *s + sensors_packed(s, s->blocks, s->bins, s->used, s->idle))
                     : svi_sensors_memory(s->d, s->with_context);
}

double svi_sensors_lean_memory(int d, int contexts, bool context) {
    struct svi_sensors s = {.d = d, .with_context = context};
    svi_forecast_begin(&s.forecast, sensors_regressors(context), d, 0);
    return (double)(sizeof s + sensors_packed(&s, SVI_BLOCKS, SVI_CONTEXT_BINS, contexts, contexts));
}

/* One with arrays of its own that holds the same; NULL: no memory. */
static svi_sensors *sensors_copy(const struct svi_sensors *s, svs_error *err) {
    svi_sensors *copy = svi_sensors_new(s->d, s->with_context, err);
    if (!copy)
        return NULL;
    struct svi_sensors arrays = *copy;
    *copy = *s;
    copy->shared = NULL;
    copy->in = false;
    copy->packed = NULL;
    copy->x = arrays.x;
    sensors_place(copy);
    svi_forecast_place(&copy->forecast, arrays.forecast.level);
    svi_deviations_place(&copy->deviations, arrays.deviations.square);
    svi_block_tails_place(&copy->tails, arrays.tails.maxima);
    copy->tails.mixtures = arrays.tails.mixtures;
    sensors_move(copy, s->packed, false);
    return copy;
}

double svi_sensors_memory(int d, bool context) {
    return (double)sensors_bytes(d) + sizeof(struct svi_sensors) +
           svi_forecast_memory(sensors_regressors(context), d) + svi_deviations_memory(RESIDUALS * d) +
           svi_block_tails_memory(SIGNALS * 2 * d);
}

/* ---- columns */

static svi_sensors *sensors_widened(const svi_sensors *s, int d, struct svi_shared_room *room,
                                    svs_error *err) {
    const size_t narrow = (size_t)s->d, wide = (size_t)d;
    struct svi_sensors *w =
        room ? svi_sensors_new_in(room, d, s->with_context, err) : svi_sensors_new(d, s->with_context, err);
    if (!w)
        return NULL;
    memcpy(w->context, s->context, sizeof w->context);
    w->contexts = s->contexts;
    w->pace = s->pace;
    svi_forecast_widen(&w->forecast, &s->forecast);
    svi_deviations_widen(&w->deviations, &s->deviations, RESIDUALS);
    svi_block_tails_widen(&w->tails, &s->tails, SIGNALS * 2);
    for (size_t i = 0; i < sensors_doubles(1); i++)
        memcpy(w->x + i * wide, s->x + i * narrow, narrow * sizeof *w->x);
    for (size_t i = 0; i < sensors_floats(1); i++)
        memcpy(w->residual + i * wide, s->residual + i * narrow, narrow * sizeof *w->residual);
    memcpy(w->category, s->category, narrow);
    memcpy(w->unlearned, s->unlearned, narrow);
    if (svi_sensors_reserve(w, err) != SVS_OK)
        svi_sensors_free(&w);
    return w;
}

svi_sensors *svi_sensors_widened(const svi_sensors *s, int d, svs_error *err) {
    if (!s->shared)
        return sensors_widened(s, d, NULL, err);
    svi_shared_room_rest(s->shared); /* s, or another one */
    svi_sensors *copy = sensors_copy(s, err), *wide = copy ? sensors_widened(copy, d, s->shared, err) : NULL;
    svi_sensors_free(&copy);
    return wide;
}

int svi_sensors_columns(const svi_sensors *s) {
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

void svi_sensors_set_category(svi_sensors *s, int column) {
    sensors_enter(s);
    s->category[column] = 1;
}

void svi_sensors_forget(svi_sensors *s, int column) {
    sensors_enter(s);
    for (int i = 0; i < s->contexts; i++) /* its place is not given to another: forecasts know it */
        s->context[i] = s->context[i] == column ? NONE : s->context[i];
    svi_forecast_forget(&s->forecast, column);
    svi_deviations_forget(&s->deviations, RESIDUALS, column);
    for (int j = column; j < s->tails.series; j += s->d)
        svi_block_tails_forget(&s->tails, j);
    for (size_t i = 0; i < sensors_doubles(1); i++)
        s->x[i * (size_t)s->d + (size_t)column] = 0;
    for (size_t i = 0; i < sensors_floats(1); i++)
        s->residual[i * (size_t)s->d + (size_t)column] = 0;
    s->category[column] = 0;
}

/* ---- one row: residuals and signals */

/* The regressors: those of the moment, then the columns of context, in their deviations. */
static void sensors_regress(const struct svi_sensors *s, const double *x, double *c) {
    for (int i = 0; i < s->contexts; i++) {
        const int j = s->context[i];
        if (j == NONE)
            continue;
        const double far =
            s->forecast.scale[j] > 0 ? (x[j] - s->forecast.level[j]) / s->forecast.scale[j] : 0;
        c[SVI_CONTEXT_TIME + i] = isnan(far) ? 0 : fmax(-FAR, fmin(far, FAR));
    }
}

/* Its square is a float. */
static inline float sensors_float(double r) {
    return (float)(r > SVI_FORECAST_MOST    ? SVI_FORECAST_MOST
                   : r < -SVI_FORECAST_MOST ? -SVI_FORECAST_MOST
                                            : r);
}

/* What of residuals the rows before do not tell; as floats, 0 for none. */
SVI_WIDE
static void sensors_take(struct svi_sensors *s) {
    const int d = s->d;
    const double *restrict by_context = s->by_context, *restrict by_others = s->by_others,
                           *restrict before = s->before, *restrict now_before = s->now_before,
                           *restrict last = s->before_before;
    float *restrict to = s->residual, *restrict step = to + BY_STEP * d,
                    *restrict others = to + BY_OTHERS * d;
    float *restrict gate = s->gate, *restrict far = gate + d;
    for (int j = 0; j < d; j++) {
        const double share = now_before[j] / (last[j] > 0 ? last[j] : 1), r = by_context[j];
        const double left = r - (last[j] > 0 ? share : 0) * before[j];
        to[j] = r == r ? sensors_float(r) : 0;
        step[j] = r == r ? sensors_float(left) : 0;
        gate[j] = r == r ? 0 : -INFINITY;
    }
    for (int j = 0; j < d; j++) {
        const double r = by_others[j];
        others[j] = r == r ? sensors_float(r) : 0;
        far[j] = r == r ? 0 : -INFINITY;
    }
}

static void sensors_residuals(struct svi_sensors *s, const double *x, const double *c) {
    memcpy(s->x, x, (size_t)s->d * sizeof *x);
    for (int i = 0; i < s->contexts; i++)
        if (s->context[i] != NONE)
            s->x[s->context[i]] = NAN;
    svi_forecast_residuals(&s->forecast, c, s->x,
                           s->pace.rows < WARM ? NULL : s->deviations.now + BY_CONTEXT * s->d, s->by_context,
                           s->by_others);
    sensors_take(s);
    for (int j = 0; j < s->d; j++)
        if (s->category[j])
            s->gate[j] = s->gate[s->d + j] = -INFINITY;
}

/* Residuals in deviations. */
SVI_WIDE
static void sensors_measure(float *restrict u, const float *restrict residual,
                            const float *restrict deviation, int n) {
    for (int j = 0; j < n; j++) {
        float v = residual[j] / deviation[j];
        v = v > LARGEST ? LARGEST : v < -LARGEST ? -LARGEST : v;
        u[j] = v == v ? v : 0;
    }
}

/* The sum of the last residuals goes on; up and down are their mean. */
SVI_WIDE
static void sensors_slide(double *restrict sum, const float *restrict old, const float *restrict now,
                          double share, const float *restrict gate, float *restrict up, int d) {
    float *restrict down = up + d;
    for (int j = 0; j < d; j++) {
        sum[j] = sum[j] - (double)old[j] + (double)now[j];
        const float v = (float)(sum[j] * share);
        up[j] = v + gate[j];
        down[j] = gate[j] - v;
    }
}

SVI_WIDE
static void sensors_values(const double *restrict x, const double *restrict origin,
                           const double *restrict scale, const uint8_t *restrict category, float *restrict up,
                           int d) {
    float *restrict down = up + d;
    for (int j = 0; j < d; j++) {
        double v = (x[j] - origin[j]) / (scale[j] > 0 ? scale[j] : NAN);
        v = v > SVI_FORECAST_MOST ? SVI_FORECAST_MOST : v < -SVI_FORECAST_MOST ? -SVI_FORECAST_MOST : v;
        const bool none = v != v || category[j];
        up[j] = none ? -INFINITY : (float)v;
        down[j] = none ? -INFINITY : (float)-v;
    }
}

/* Into the ring, the means, and what of each signal there is. */
static void sensors_signals(struct svi_sensors *s) {
    const int d = s->d, at = (int)(s->pace.rows % MEANS);
    const size_t row = (size_t)RESIDUALS * (size_t)d;
    float *now = s->fresh; /* its place in the ring still holds the oldest one */
    for (int j = 0; j < d; j++)
        if (!(s->forecast.scale[j] > 0)) /* not known yet, however late that is */
            s->origin[j] = s->forecast.level[j];
    memset(now, 0, row * sizeof *now);
    if (s->pace.rows >= WARM)
        sensors_measure(now, s->residual, s->deviations.now, (int)row);
    for (int i = 0; i < SIGNALS; i++) {
        const int r = signals[i].residual, over = signals[i].over;
        float *up = s->signal + (size_t)(2 * i) * (size_t)d;
        if (r == VALUE) {
            sensors_values(s->x, s->origin, s->forecast.scale, s->category, up, d);
            continue;
        }
        const float *old = s->ring + (size_t)((at - over + MEANS) % MEANS) * row + (size_t)r * (size_t)d;
        sensors_slide(s->sum + (size_t)i * (size_t)d, old, now + (size_t)r * (size_t)d, 1.0 / over,
                      r == BY_OTHERS ? s->gate + d : s->gate, up, d);
        for (int j = 0; j < 2 * d && s->pace.rows < WARM + over; j++)
            up[j] = -INFINITY;
    }
    memcpy(s->ring + (size_t)at * row, now, row * sizeof *now);
}

/* ---- findings */

static struct svi_finding sensors_finding(const struct svi_sensors *s, int i, int j, double surprise) {
    struct svi_finding f = {.surprise = surprise,
                            .feature = j,
                            .over = signals[i].over,
                            .value = s->x[j],
                            .expected = NAN,
                            .low = NAN,
                            .high = NAN,
                            .with = -1};
    const int r = signals[i].residual;
    if (r == VALUE)
        return f;
    const double scale = s->forecast.scale[j], deviation = s->deviations.now[r * s->d + j];
    const double residual = r == BY_OTHERS ? s->by_others[j] : s->by_context[j];
    const double left = r == BY_STEP ? s->residual[BY_STEP * s->d + j] : residual;
    f.expected = s->x[j] - left * scale;
    f.low = f.expected - TELLING * deviation * scale;
    f.high = f.expected + TELLING * deviation * scale;
    if (f.over > 1)
        f.value = f.expected + s->sum[i * s->d + j] / f.over * deviation * scale;
    f.with = r == BY_OTHERS ? svi_forecast_owes(&s->forecast, j) : -1;
    return f;
}

/* Those that can surprise at all: room for columns that may come, and a column that never varied, cost
 * nothing. */
static int sensors_judged(const struct svi_sensors *s) {
    int count = 0;
    for (int j = 0; j < s->d; j++)
        count += s->forecast.scale[j] > 0 && !s->category[j];
    for (int i = 0; i < s->contexts; i++)
        count -= s->context[i] != NONE && s->forecast.scale[s->context[i]] > 0 && !s->category[s->context[i]];
    return count > 0 ? count : 1;
}

/* Is any value above what tells something? Mostly none is. */
SVI_WIDE
static bool sensors_beyond(const float *restrict v, const float *restrict telling, int n) {
    int beyond = 0;
    for (int k = 0; k < n; k++)
        beyond |= v[k] > telling[k];
    return beyond != 0;
}

static void sensors_find(struct svi_sensors *s, struct svi_finding *findings) {
    const int d = s->d;
    if (!sensors_beyond(s->signal, s->tails.telling, 2 * SIGNALS * d))
        return;
    const int judged = sensors_judged(s);
    double series[SVI_JUDGES] = {0};
    for (int i = 0; i < SIGNALS; i++)
        series[signals[i].judge] += 2 * judged;
    for (int i = 0; i < SIGNALS; i++) {
        struct svi_finding *f = &findings[signals[i].judge];
        const double price = log10(series[signals[i].judge]);
        if (s->tails.shape.count * s->tails.shape.length < ENOUGH * signals[i].over ||
            !sensors_beyond(s->signal + 2 * i * d, s->tails.telling + 2 * i * d, 2 * d))
            continue;
        for (int k = 2 * i * d; k < 2 * (i + 1) * d; k++) {
            if (!(s->signal[k] > s->tails.telling[k]))
                continue;
            if (svi_block_tails_held(&s->tails, k) * s->tails.shape.length < ENOUGH * signals[i].over)
                continue;                            /* it came late */
            const double over = f->surprise + price; /* or odd */
            const double surprise = svi_block_tails_surprise(&s->tails, k, s->signal[k],
                                                             over < ODD || s->odd[k % d] ? over : ODD);
            if (surprise > ODD)
                s->odd[k % d] = 1;
            if (surprise - price > f->surprise)
                *f = sensors_finding(s, i, k % d, surprise - price);
        }
    }
}

/* ---- learning */

SVI_WIDE
static bool sensors_odd(const uint8_t *restrict odd, const double *restrict rows, int d) {
    int some = 0;
    for (int j = 0; j < d; j++)
        some |= odd[j];
    for (int j = 0; j < d; j++)
        some |= rows[j] > 0;
    return some != 0;
}

/* A sensor that has been odd for long: its level is the usual one from now on. */
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
        s->forecast.level[j] += s->sum[LEVEL_MEANS * s->d + j] / MEANS *
                                s->deviations.now[BY_CONTEXT * s->d + j] * s->forecast.scale[j];
        s->odd_rows[j] = 0;
        s->unlearned[j] = 0;
    }
}

SVI_WIDE
static void sensors_learn_steps(struct svi_sensors *s) {
    const double *restrict by_context = s->by_context;
    double *restrict before = s->before, *restrict now_before = s->now_before,
                     *restrict before_before = s->before_before;
    for (int j = 0; j < s->d; j++) {
        const double now = by_context[j] == by_context[j] ? by_context[j] : 0, last = before[j];
        const bool known = by_context[j] == by_context[j];
        now_before[j] = known ? FADES * now_before[j] + now * last : now_before[j];
        before_before[j] = known ? FADES * before_before[j] + last * last : before_before[j];
        before[j] = now;
    }
}

void svi_sensors_step(svi_sensors *s, const double *x, double time, struct svi_finding *findings) {
    double c[SVI_CONTEXT_MAX] = {0};
    struct svi_moment m;
    sensors_enter(s);
    svi_context_moment(time, &m);
    memcpy(c, m.values, sizeof m.values);
    sensors_regress(s, x, c);
    if (m.bin != s->deviations.bin || s->pace.rows % REFRESH == 0)
        svi_deviations_turn_to(&s->deviations, m.bin);
    sensors_residuals(s, x, c);
    sensors_signals(s);
    memset(s->odd, 0, (size_t)s->d);
    sensors_find(s, findings);
    sensors_settle(s);
    svi_block_tails_add(&s->tails, s->signal);
    svi_deviations_learn(&s->deviations, m.bin, s->residual,
                         (float)fmax(1 / (double)(s->pace.rows + 1), 1 / s->pace.memory));
    svi_forecast_learn(&s->forecast, x, s->by_context, s->unlearned);
    sensors_learn_steps(s);
    if (!svi_pace_row(&s->pace, time))
        return;
    s->forecast.memory = s->pace.memory;
    s->tails.longest = svi_pace_block(&s->pace);
}

/* ---- archive */

/* Nothing but what would be packed: so it does not show when it was. */
static void sensors_tidy(struct svi_sensors *s) {
    const size_t row = (size_t)RESIDUALS * (size_t)s->d;
    for (int64_t i = 0; i < MEANS; i++) {
        const int64_t ago = (s->pace.rows - 1 - i + MEANS * (MEANS + 1)) % MEANS; /* of place i */
        float *step = s->ring + (size_t)i * row + (size_t)BY_STEP * (size_t)s->d;
        if (ago >= STEP_MEANS)
            memset(step, 0, (size_t)s->d * sizeof *step);
    }
    svi_block_tails_tidy(&s->tails);
}

void svi_sensors_archive(struct svi_archive *a, svi_sensors *s) {
    const int64_t d = s->d;
    int32_t context[SVI_CONTEXT_COLUMNS];
    sensors_enter(s);
    if (s->shared && !svi_archive_loading(a))
        sensors_tidy(s);
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
    svi_archive_finite(a, "origin", s->origin, d);
    svi_archive_finite(a, "before", s->before, d);
    svi_archive_finite(a, "now before", s->now_before, d);
    svi_archive_finite(a, "before before", s->before_before, d);
    svi_archive_finite(a, "odd rows", s->odd_rows, d);
    svi_archive_finite(a, "sums", s->sum, SIGNALS * d);
    svi_archive_floats(a, "ring", s->ring, (int64_t)MEANS * RESIDUALS * d);
    svi_archive_bytes(a, "categories", s->category, d);
    if (svi_archive_loading(a) && svi_archive_ok(a) && svi_sensors_reserve(s, a->err) != SVS_OK)
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the judges of the sensors");
}
