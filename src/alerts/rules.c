/* A row is looked at without a branch a column (linalg/kernels.h: columns_pass); it is almost always within
 * all bounds, and is then made part of what was seen by the same call. Otherwise rules_look goes through the
 * columns one by one, opens what there is to open and takes out of a copy of the row what must not count as
 * seen.
 *
 * Who is reported is a member: a sensor under a rule. Members of a rule that opened together share an alert.
 * The list of members is short, and only they are looked at again in each row (rules_watch).
 *
 * Invariants: told[j] has bit `rule` if and only if there is one member (rule, j); an alert is open if and
 * only if it has members; what is beyond is never part of the records while its sensor is reported. */
#include "alerts/rules.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"

#define STUCK_ROWS    16
#define STUCK_RUNS    200
#define STUCK_TIMES   8  /* as long as ever */
#define STUCK_RESTING 20 /* of what mostly rests */
#define GAP_ROWS      8
#define GAP_TIMES     3
#define GAP_VALUES    30
#define SILENT_LEAST  60.0 /* seconds */
#define SILENT_MEANS  8
#define SILENT_TIMES  3
#define SILENT_COUNT  30
#define SETTLED       1000 /* rows beyond what was seen, after which that is usual */
#define COUNT_MOST    (INT64_MAX / 4)
#define ALERTS        (SVI_RULES * SVI_RULES_ALERTS)

/* ---- what they consist of */

enum side { UP, DOWN, STEP, SIDES }; /* of the records; STEP: there only for the rule `rate` */
enum { COLUMNS, BLOCKS, PARTS, DIMS };

#define ROW(member, called, unused, ...)                                                                     \
    SVI_ARRAY_WITH(struct svi_rules, member, called, SVI_ARRAY_ANY, unused, __VA_ARGS__)
#define A_COLUMN SVI_AXIS(COLUMNS)
#define A_SIDE   SVI_AXIS(PARTS), SVI_AXIS(COLUMNS)

static const struct svi_array arrays[] = {
    ROW(seen.low, "low", -INFINITY, A_COLUMN),
    ROW(seen.high, "high", INFINITY, A_COLUMN),
    ROW(seen.last, "last", NAN, A_COLUMN),
    ROW(seen.changed_at, "changed at", 0, A_COLUMN),
    ROW(seen.run, "run", 0, A_COLUMN),
    ROW(seen.longest, "longest", 0, A_COLUMN),
    ROW(seen.patient, "patient", INFINITY, A_COLUMN),
    ROW(seen.runs, "runs", 0, A_COLUMN),
    ROW(reported_run, "reported run", 0, A_COLUMN),
    ROW(seen.values, "values", 0, A_COLUMN),
    ROW(born, "born", 0, A_COLUMN),
    ROW(gap, "gap", 0, A_COLUMN),
    ROW(longest_gap, "longest gap", 0, A_COLUMN),
    ROW(reported_gap, "reported gap", 0, A_COLUMN),
    ROW(gone, "gone", 0, A_COLUMN),
    ROW(records.most, "most", -INFINITY, A_SIDE),
    ROW(records.now, "now", -INFINITY, A_SIDE),
    ROW(records.check, "check", -INFINITY, A_SIDE),
    ROW(records.suspect, "suspect", -INFINITY, A_SIDE),
    ROW(records.blocks, "blocks", -INFINITY, A_SIDE, SVI_AXIS(BLOCKS)),
    ROW(row, NULL, 0, A_COLUMN),
    ROW(kind, "kinds", 0, A_COLUMN),
    ROW(told, NULL, 0, A_COLUMN),
    ROW(gaps, NULL, 0, A_COLUMN),
};
static const struct svi_arrays rules_arrays = SVI_ARRAYS(arrays, "the rules of the features");

struct rules_dims {
    int32_t of[DIMS];
};

static struct rules_dims rules_dims(const struct svi_rules *r) {
    return (struct rules_dims){{r->seen.room, r->records.width, r->sides}};
}

/* Of `room` columns or a few more. Rules that grow have blocks for the next rows and the sides that are
 * needed, the others all that there may be. */
static struct rules_dims rules_dims_for(const struct svi_rules *r, int room, int sides) {
    int columns = 16;
    if (r->grows)
        return (struct rules_dims){{room, r->clock.blocks / 4 * 4 + 4, sides}};
    while (columns < room)
        columns *= 2;
    return (struct rules_dims){
        {columns < SVI_RULES_FEATURES ? columns : SVI_RULES_FEATURES, SVI_RECORDS_BLOCKS, SIDES}};
}

static svs_code rules_resize(struct svi_rules *r, struct rules_dims to, svs_error *err) {
    const struct rules_dims from = rules_dims(r);
    if (memcmp(&from, &to, sizeof to) == 0)
        return SVS_OK;
    SVI_TRY(svi_arrays_resize(&rules_arrays, r, from.of, to.of, err));
    r->seen.room = to.of[COLUMNS];
    r->records.width = to.of[BLOCKS];
    r->sides = to.of[PARTS];
    return SVS_OK;
}

/* ---- life */

void svi_rules_drop_alerts(struct svi_rules *r) {
    if (r->alerts)
        memset(r->alerts, 0, ALERTS * sizeof *r->alerts);
}

static void rules_forget(struct svi_rules *r) {
    svi_records_clock_begin(&r->clock);
    r->d = r->judged = r->open_count = 0;
    r->rows = r->intervals = 0;
    r->first = r->time = r->gap_count = 0;
    r->arrived = r->spent = r->pause = r->silence = 0;
    r->waits = r->left_out = false;
    svi_rules_drop_alerts(r);
}

void svi_rules_init(struct svi_rules *r, bool grows) {
    *r = (struct svi_rules){.grows = grows, .kernels = svi_kernels_get(SVS_ISA_BEST)};
    rules_forget(r);
}

static void rules_free_open(struct svi_rules *r) {
    svi_free(r->open);
    svi_free(r->alerts);
    r->open = NULL;
    r->alerts = NULL;
    r->open_room = 0;
}

void svi_rules_clear(struct svi_rules *r) {
    svi_arrays_free(&rules_arrays, r);
    rules_free_open(r);
    r->seen.room = r->records.width = r->sides = 0;
    rules_forget(r);
}

/* Room for that many members, and for alerts. */
static bool rules_open_room(struct svi_rules *r, int count) {
    if (!r->alerts && !(r->alerts = svi_alloc_plain_array(ALERTS, sizeof *r->alerts)))
        return false;
    if (count <= r->open_room)
        return true;
    struct svi_rules_member *open = svi_alloc_plain_array((size_t)count, sizeof *open);
    if (!open)
        return false;
    if (r->open_count > 0)
        memcpy(open, r->open, (size_t)r->open_count * sizeof *open);
    svi_free(r->open);
    r->open = open;
    r->open_room = count;
    return true;
}

static bool rules_none_open(const struct svi_rules *r) {
    bool none = r->open_count == 0;
    for (int i = 0; none && i < ALERTS; i++)
        none = !r->alerts[i].open && r->alerts[i].change == SVI_ALERT_NONE;
    return none;
}

/* The alerts that all rules can have open: one a rule and column, and one of the stream. */
static int rules_most_members(int columns) {
    return columns * SVI_RULES + 1;
}

svs_code svi_rules_reserve(struct svi_rules *r, int d, svs_error *err) {
    const int wanted = d < SVI_RULES_FEATURES ? d : SVI_RULES_FEATURES;
    if (!r->grows && wanted <= r->seen.room && r->alerts && r->open_room >= rules_most_members(r->seen.room))
        return SVS_OK; /* at nearly every row: those have all sides */
    const int sides = r->o.on[SVI_RULE_RATE] || r->sides == SIDES ? SIDES : STEP;
    const struct rules_dims to = rules_dims_for(r, wanted > r->seen.room ? wanted : r->seen.room, sides);
    if (!r->any || to.of[COLUMNS] < 1)
        return SVS_OK;
    if (r->grows && r->alerts && rules_none_open(r))
        rules_free_open(r);
    if (!r->grows && !rules_open_room(r, rules_most_members(to.of[COLUMNS])))
        return svi_fail_memory(err, rules_arrays.what);
    return rules_resize(r, to, err);
}

double svi_rules_memory(const struct svi_settings *s, int d) {
    struct svi_rules r;
    svi_rules_init(&r, svi_settings_keyed(s));
    svi_rules_configure(&r, s);
    r.clock.blocks = SVI_RECORDS_BLOCKS - 1;
    const int sides = r.o.on[SVI_RULE_RATE] ? SIDES : STEP;
    const struct rules_dims most = rules_dims_for(&r, d < SVI_RULES_FEATURES ? d : SVI_RULES_FEATURES, sides);
    const double open = r.grows ? 0
                                : rules_most_members(most.of[COLUMNS]) * (double)sizeof *r.open +
                                      ALERTS * (double)sizeof *r.alerts;
    return r.any ? (double)svi_arrays_bytes(&rules_arrays, most.of) + open : 0;
}

/* ---- columns */

void svi_rules_bind(struct svi_rules *r, int feature, int kind, double low, double high) {
    r->kind[feature] = (uint8_t)kind;
    r->seen.low[feature] = kind & SVI_RULES_LIMITED ? low : -INFINITY;
    r->seen.high[feature] = kind & SVI_RULES_LIMITED ? high : INFINITY;
}

void svi_rules_bound(struct svi_rules *r, int d) {
    d = d < SVI_RULES_FEATURES ? d : SVI_RULES_FEATURES;
    for (int j = r->d; j < d; j++)
        r->born[j] = (double)r->rows;
    r->d = d;
    r->judged = 0;
    for (int j = 0; j < r->d; j++)
        r->judged += (r->kind[j] & SVI_RULES_JUDGED) != 0;
}

static struct svi_rules_member *rules_member(const struct svi_rules *r, int rule, int feature) {
    for (int i = 0; i < r->open_count; i++)
        if (r->open[i].rule == rule && r->open[i].feature == feature)
            return &r->open[i];
    return NULL;
}

/* The series of a column on a side. */
static int rules_at(const struct svi_rules *r, enum side side, int j) {
    return (int)side * r->seen.room + j;
}

static double rules_most(const struct svi_rules *r, enum side side, int j) {
    return svi_records_most(&r->records, rules_at(r, side, j));
}

/* Whether steps are looked at; room for them comes with a row. */
static bool rules_has_steps(const struct svi_rules *r) {
    return r->o.on[SVI_RULE_RATE] && r->sides == SIDES;
}

static bool rules_told(const struct svi_rules *r, int rule, int feature) {
    return r->told[feature] >> rule & 1;
}

static void rules_change(struct svi_rules *r, struct svi_rules_alert *a, enum svi_alert_change change) {
    a->change = change == SVI_ALERT_CLOSE || a->change == SVI_ALERT_NONE ? change : a->change;
    r->changed = true;
}

/* The member is one no more. */
static void rules_leave(struct svi_rules *r, struct svi_rules_member *m) {
    struct svi_rules_alert *a = &r->alerts[m->alert];
    if (m->feature >= 0)
        r->told[m->feature] &= (uint8_t) ~(1U << m->rule);
    if (--a->members == 0)
        rules_change(r, a, SVI_ALERT_CLOSE);
    const size_t at = (size_t)(m - r->open);
    memmove(m, m + 1, ((size_t)r->open_count - at - 1) * sizeof *m);
    r->open_count--;
}

void svi_rules_renew(struct svi_rules *r, int feature) {
    if (!r->any || feature >= r->seen.room)
        return;
    for (int rule = 0; rule < SVI_RULES; rule++) {
        struct svi_rules_member *m = rules_member(r, rule, feature);
        if (m)
            rules_leave(r, m);
    }
    const uint8_t kind = r->kind[feature];
    svi_arrays_forget(&rules_arrays, r, rules_dims(r).of, COLUMNS, feature);
    r->born[feature] = (double)r->rows;
    r->kind[feature] = kind;
}

void svi_rules_configure(struct svi_rules *r, const struct svi_settings *s) {
    (void)svi_rule_settings_read(s->alert_rules, s->alert_absent, s->limits, &r->o,
                                 NULL); /* they were checked */
    r->group = s->alert_group;
    const bool before = r->any;
    r->any = false;
    for (int rule = 0; rule < SVI_RULES; rule++)
        r->any = r->any || r->o.on[rule];
    for (int i = r->open_count - 1; i >= 0; i--)
        if (!r->o.on[r->open[i].rule])
            rules_leave(r, &r->open[i]);
    if (before && !r->any) {
        struct svi_rules_alert *ended = r->alerts; /* they have not been reported yet */
        r->alerts = NULL;
        svi_rules_clear(r);
        r->alerts = ended;
    }
}

void svi_rules_end(struct svi_rules *r) {
    while (r->open_count > 0)
        rules_leave(r, &r->open[r->open_count - 1]);
}

/* ---- members and alerts */

/* Where a new member belongs: an alert of its rule that opened just now, else a new one, else the last. */
static int rules_alert(struct svi_rules *r, int rule, double time) {
    int newest = -1, empty = -1;
    for (int i = rule * SVI_RULES_ALERTS; i < (rule + 1) * SVI_RULES_ALERTS; i++) {
        const struct svi_rules_alert *a = &r->alerts[i];
        if (!a->open)
            empty = empty < 0 ? i : empty;
        else if (a->members > 0 && (newest < 0 || a->opened > r->alerts[newest].opened))
            newest = i;
    }
    if (newest >= 0 && (time - r->alerts[newest].opened <= r->group || empty < 0))
        return newest;
    return empty;
}

/* A place whose close has not been reported is not empty, so that there may be none, nor may there be
 * memory: NULL, and it opens with the next row. */
static struct svi_rules_member *rules_open(struct svi_rules *r, int rule, int feature, double since,
                                           double time) {
    const int room = r->open_count < r->open_room ? r->open_room : 2 * r->open_count + 2;
    const int at = rules_open_room(r, room) ? rules_alert(r, rule, time) : -1;
    if (at < 0)
        return NULL;
    struct svi_rules_alert *a = &r->alerts[at];
    if (!a->open) {
        *a = (struct svi_rules_alert){
            .open = true, .change = SVI_ALERT_OPEN, .since = since, .opened = time, .first = feature};
        r->opened++;
    }
    rules_change(r, a, SVI_ALERT_UPDATE);
    a->since = since < a->since ? since : a->since;
    a->members++;
    a->total++;
    struct svi_rules_member *m = &r->open[r->open_count++];
    *m = (struct svi_rules_member){.rule = rule, .feature = feature, .alert = at, .since = since};
    if (feature >= 0)
        r->told[feature] |= (uint8_t)(1U << rule);
    return m;
}

/* A bad row of a member: how bad. */
static void rules_bad(struct svi_rules *r, struct svi_rules_member *m, double value, double excess) {
    m->bad++;
    m->well = 0;
    if (!(m->bad == 1 || excess > m->excess))
        return;
    m->value = value;
    m->excess = excess;
    if (m->bad > 1 && excess < 2 * m->shown)
        return;
    m->shown = excess;
    rules_change(r, &r->alerts[m->alert], SVI_ALERT_UPDATE);
}

static bool rules_is_well(struct svi_rules_member *m, double time) {
    if (m->well++ == 0)
        m->well_since = time;
    const double lasts = time - m->well_since;
    return (m->well >= 10 && lasts >= 60) || (m->well >= 3 && lasts >= 3600) || m->well >= 1000;
}

/* ---- stuck and absent: how long is longer than ever */

static double rules_patience(const struct svi_rules *r, int j) {
    const double runs = r->seen.runs[j], longest = r->seen.longest[j];
    const double values = r->seen.values[j];
    if (runs < STUCK_RUNS || !r->o.on[SVI_RULE_STUCK] || !(r->kind[j] & SVI_RULES_JUDGED))
        return INFINITY;
    return fmax(STUCK_ROWS, (2 * runs >= values ? STUCK_TIMES : STUCK_RESTING) * longest);
}

/* What was told of has ended after n rows: what has come twice counts as seen. */
static void rules_seen(double *longest, double *told, double n) {
    const double twice = fmin(n, *told);
    *told = fmax(n, *told);
    *longest = fmax(*longest, twice);
}

static void rules_unstick(struct svi_rules *r, int j) {
    rules_seen(&r->seen.longest[j], &r->reported_run[j], r->seen.run[j]);
    r->seen.run[j] = 0;
}

/* The value of a column is missing, or there. */
static void rules_gap(struct svi_rules *r, int j, bool missing, double time) {
    double *gap = &r->gap[j], *longest = &r->longest_gap[j];
    const double values = r->seen.values[j];
    if (!missing) {
        if (*gap > 0 && rules_told(r, SVI_RULE_ABSENT, j))
            rules_seen(longest, &r->reported_gap[j], *gap);
        else
            *longest = fmax(*longest, *gap);
        *gap = 0;
        return;
    }
    if (*gap == 0)
        r->gone[j] = r->time;
    *gap += 1;
    if (!r->o.on[SVI_RULE_ABSENT] || !(r->kind[j] & SVI_RULES_MISSED) || rules_told(r, SVI_RULE_ABSENT, j))
        return;
    const double gone = r->gone[j], rows = (double)r->rows - r->born[j];
    const bool late = values >= GAP_VALUES && *gap > fmax(GAP_ROWS, GAP_TIMES * *longest) &&
                      (!r->left_out || 2 * values >= rows - *gap);
    if (!(r->o.absent > 0 ? values >= 1 && time - gone > r->o.absent : late))
        return;
    struct svi_rules_member *m = rules_open(r, SVI_RULE_ABSENT, j, gone, time);
    if (m)
        m->high = *longest;
}

/* ---- a row */

/* Above what was seen; `shown`: the value that v stands for. Returns whether v must not count as seen. */
static bool rules_look_beyond(struct svi_rules *r, enum side side, int j, double v, double shown,
                              double time) {
    const bool steps = side == STEP;
    const int rule = steps ? SVI_RULE_RATE : SVI_RULE_BEYOND, series = rules_at(r, side, j);
    const double most = rules_most(r, side, j);
    if (!(v > most) || !r->o.on[rule] || rules_told(r, rule, j))
        return false;
    const double bound = svi_records_bound(&r->records, &r->clock, series, steps ? r->judged : 2 * r->judged);
    r->records.check[series] = bound;
    if (!(v > bound))
        return false;
    struct svi_rules_member *m = rules_open(r, rule, j, time, time);
    if (!m)
        return true;
    m->low = steps ? 0 : -rules_most(r, DOWN, j);
    m->high = rules_most(r, steps ? STEP : UP, j);
    rules_bad(r, m, shown, v - most);
    return true;
}

static double rules_outside(const struct svi_rules *r, int j, double v) {
    return fmax(v - r->seen.high[j], r->seen.low[j] - v);
}

static void rules_open_limits(struct svi_rules *r, int j, double v, double time) {
    struct svi_rules_member *m = rules_open(r, SVI_RULE_LIMITS, j, time, time);
    if (!m)
        return;
    m->low = r->seen.low[j];
    m->high = r->seen.high[j];
    rules_bad(r, m, v, rules_outside(r, j, v));
}

static void rules_open_stuck(struct svi_rules *r, int j, double v, double time) {
    r->seen.patient[j] = rules_patience(r, j);
    if (!(r->seen.run[j] >= r->seen.patient[j]))
        return;
    struct svi_rules_member *m = rules_open(r, SVI_RULE_STUCK, j, r->seen.changed_at[j], time);
    if (!m)
        return;
    m->high = r->seen.longest[j];
    m->rows = r->seen.run[j] + 1;
    m->value = v;
}

/* One column of a row that stirs. Returns its value where it counts as seen, else NAN. */
static double rules_look(struct svi_rules *r, int j, double v, double time) {
    const double last = r->seen.last[j];
    bool out = false;
    if (rules_outside(r, j, v) > 0 && !rules_told(r, SVI_RULE_LIMITS, j))
        rules_open_limits(r, j, v, time);
    if (!(r->kind[j] & SVI_RULES_JUDGED))
        return v;
    if (v == last && r->seen.run[j] >= r->seen.patient[j] && !rules_told(r, SVI_RULE_STUCK, j))
        rules_open_stuck(r, j, v, time);
    out = rules_look_beyond(r, UP, j, v, v, time);
    out = rules_look_beyond(r, DOWN, j, -v, v, time) || out;
    if (rules_told(r, SVI_RULE_BEYOND, j))
        out = v > rules_most(r, UP, j) || -v > rules_most(r, DOWN, j);
    return out ? NAN : v;
}

/* The same of its step. Returns whether the step must not count as seen. */
static bool rules_look_step(struct svi_rules *r, int j, double v, double time) {
    const double step = fabs(v - r->seen.last[j]);
    if (!(r->kind[j] & SVI_RULES_JUDGED))
        return false;
    const bool out = rules_look_beyond(r, STEP, j, step, step, time);
    return out || (rules_told(r, SVI_RULE_RATE, j) && step > rules_most(r, STEP, j));
}

/* ---- those that are reported */

/* The value that a member of beyond or rate has at its worst is of this side. */
static enum side rules_side(const struct svi_rules_member *m) {
    return m->rule == SVI_RULE_RATE ? STEP : m->value > m->high ? UP : DOWN;
}

static void rules_settle(struct svi_rules *r, struct svi_rules_member *m) {
    const enum side side = rules_side(m);
    svi_records_settle(&r->records, &r->clock, rules_at(r, side, m->feature),
                       side == DOWN ? -m->value : m->value);
    r->alerts[m->alert].settled = true;
    rules_leave(r, m);
}

static void rules_recover(struct svi_rules *r, struct svi_rules_member *m) {
    const enum side side = rules_side(m);
    if (m->rule == SVI_RULE_BEYOND || m->rule == SVI_RULE_RATE)
        svi_records_told(&r->records, rules_at(r, side, m->feature), side == DOWN ? -m->value : m->value);
    rules_leave(r, m);
}

/* How bad the row is for a member: above 0; well: 0; NAN: it tells nothing. */
static double rules_badness(const struct svi_rules *r, const struct svi_rules_member *m, const double *x,
                            double *value) {
    const int j = m->feature;
    const double v = j < 0 ? 0 : x[j];
    *value = v;
    switch (m->rule) {
    case SVI_RULE_LIMITS:
        return isnan(v) ? v : fmax(0, rules_outside(r, j, v));
    case SVI_RULE_BEYOND:
        return isnan(v) ? v : fmax(0, fmax(v - rules_most(r, UP, j), -v - rules_most(r, DOWN, j)));
    case SVI_RULE_STUCK:
        return isnan(v) ? v : v == m->value ? DBL_MIN : 0;
    case SVI_RULE_RATE:
        *value = fabs(v - r->seen.last[j]);
        return isnan(*value) ? *value : fmax(0, *value - rules_most(r, STEP, j));
    case SVI_RULE_ABSENT:
        *value = 0;
        return isnan(v) ? DBL_MIN : 0;
    default:
        return 0;
    }
}

/* Those that were told of before this row: worse, or well for long enough. */
static void rules_watch(struct svi_rules *r, const double *x, double time) {
    for (int i = r->open_count - 1; i >= 0; i--) {
        struct svi_rules_member *m = &r->open[i];
        double value;
        const double bad = rules_badness(r, m, x, &value);
        if (m->rule == SVI_RULE_STUCK || m->rule == SVI_RULE_ABSENT)
            m->rows += bad > 0;
        if (bad > 0 && m->rule != SVI_RULE_STUCK && m->rule != SVI_RULE_ABSENT) {
            rules_bad(r, m, value, bad);
            if (m->bad >= SETTLED && (m->rule == SVI_RULE_BEYOND || m->rule == SVI_RULE_RATE))
                rules_settle(r, m);
        } else if (bad > 0) {
            m->well = 0;
        } else if (bad == 0) {
            if (m->rule == SVI_RULE_STUCK && m->well == 0)
                rules_unstick(r, m->feature);
            if (rules_is_well(m, time))
                rules_recover(r, m);
        }
    }
}

/* Is there anything for rules_look? */
static bool rules_stirs(const struct svi_rules *r, int j, double v) {
    const struct svi_column_seen *c = &r->seen;
    const double *most = r->records.most;
    return v > most[j] || -v > most[rules_at(r, DOWN, j)] || v < c->low[j] || v > c->high[j] ||
           (v == c->last[j] && c->run[j] >= c->patient[j]);
}

/* The row without what must not count as seen, in r->row; what there is to open is. */
static void rules_look_all(struct svi_rules *r, const double *x, int d, double time) {
    const bool steps = rules_has_steps(r);
    double *seen = r->row;
    for (int j = 0; j < d; j++) {
        const bool step = steps && rules_look_step(r, j, x[j], time);
        seen[j] = rules_stirs(r, j, x[j]) ? rules_look(r, j, x[j], time) : x[j];
        if (steps && !step) {
            const double size = fabs(x[j] - r->seen.last[j]);
            double *now = &r->records.now[rules_at(r, STEP, j)];
            *now = size > *now ? size : *now;
        }
    }
}

static void rules_end_block(struct svi_rules *r) {
    for (int side = UP; side < (rules_has_steps(r) ? SIDES : STEP); side++)
        svi_records_end_block(&r->records, &r->clock, rules_at(r, side, 0), r->d);
    for (int j = 0; j < r->d; j++) {
        r->seen.patient[j] = rules_patience(r, j);
        for (int side = UP; !(r->kind[j] & SVI_RULES_JUDGED) && side < r->sides; side++)
            r->records.check[rules_at(r, side, j)] = INFINITY; /* nothing is looked at */
    }
    svi_records_clock_turn(&r->clock);
}

/* Gaps as NAN in r->row, and how long they have lasted. Returns the row to go on with. */
static const double *rules_gaps(struct svi_rules *r, const double *x, const uint8_t *gaps, int d,
                                double time) {
    if (!gaps && r->gap_count == 0)
        return x;
    r->gap_count = 0;
    for (int j = 0; j < d; j++) {
        const bool missing = gaps && gaps[j];
        r->row[j] = missing ? NAN : x[j];
        r->gap_count += missing;
        rules_gap(r, j, missing, time);
    }
    return r->row;
}

const uint8_t *svi_rules_left_out(struct svi_rules *r, const uint32_t *marks, uint32_t round,
                                  const uint8_t *missing, int d) {
    int any = 0, out = 0;
    d = d < r->d ? d : r->d;
    for (int j = 0; j < d; j++) {
        const int left = marks[j] != round, gap = missing && missing[j];
        r->gaps[j] = (uint8_t)(left | gap);
        out |= left;
        any |= left | gap;
    }
    r->left_out = r->left_out || out;
    return any ? r->gaps : NULL;
}

const uint8_t *svi_rules_holes(struct svi_rules *r, const double *x, int d) {
    for (int j = 0; j < d && j < r->d; j++)
        r->gaps[j] = isnan(x[j]);
    return r->gaps;
}

static void rules_arrive(struct svi_rules *r, double arrival) {
    const double gap = arrival - r->arrived;
    if (r->waits && gap >= 0) {
        struct svi_rules_member *m = rules_member(r, SVI_RULE_SILENT, -1);
        if (m && m->well == 0 && m->bad == 0) {
            rules_seen(&r->pause, &r->silence, gap);
            m->bad = 1; /* it has ended */
        } else {
            r->pause = gap > r->pause ? gap : r->pause;
            r->spent += gap;
            r->intervals++;
        }
    }
    r->arrived = arrival;
    r->waits = true;
}

/* Nearly every row: nothing is beyond, all of it counts as seen. While something is reported that takes more:
 * no value is above its record, so that rules_look would do nothing for any column, and its members alone are
 * looked at. */
static bool rules_passes(struct svi_rules *r, const double *x, int d, double time) {
    const double *beyond = r->open_count > 0 ? r->records.most : r->records.check;
    if (r->open_count > 0)
        rules_watch(r, x, time);
    return r->kernels->columns_pass(&r->seen, beyond, r->records.now, x, time, d,
                                    rules_has_steps(r) ? SIDES : STEP);
}

void svi_rules_row(struct svi_rules *r, const double *x, const uint8_t *gaps, int d, double time,
                   double arrival) {
    if (!r->any)
        return;
    d = d < r->d ? d : r->d;
    rules_arrive(r, arrival);
    if (r->rows++ == 0)
        r->first = r->time = time;
    x = rules_gaps(r, x, gaps, d, time);
    if (!rules_passes(r, x, d, time)) {
        rules_look_all(r, x, d, time); /* each step, too */
        r->kernels->columns_seen(&r->seen, r->records.now, r->row, x, time, d, STEP);
    }
    r->time = time;
    if (svi_records_clock_row(&r->clock))
        rules_end_block(r);
}

/* ---- time passes */

double svi_rules_quiet(const struct svi_rules *r) {
    if (r->o.absent > 0)
        return r->o.absent;
    if (r->intervals < SILENT_COUNT)
        return INFINITY;
    const double mean = r->spent / (double)r->intervals;
    return fmax(SILENT_LEAST, fmax(SILENT_MEANS * mean, SILENT_TIMES * r->pause));
}

double svi_rules_deadline(const struct svi_rules *r) {
    const struct svi_rules_member *m = rules_member(r, SVI_RULE_SILENT, -1);
    if (!r->any || !r->o.on[SVI_RULE_SILENT] || !r->waits || r->seen.room == 0 || (m && m->bad == 0))
        return INFINITY;
    return r->arrived + svi_rules_quiet(r);
}

void svi_rules_pass(struct svi_rules *r, double now) {
    if (!(now >= svi_rules_deadline(r)))
        return;
    struct svi_rules_member *m = rules_member(r, SVI_RULE_SILENT, -1);
    if (!m)
        m = rules_open(r, SVI_RULE_SILENT, -1, r->arrived, now);
    if (!m)
        return;
    m->well = m->bad = 0;
}

double svi_rules_arrived(const struct svi_rules *r) {
    return r->waits ? r->arrived : -INFINITY;
}

void svi_rules_begin(struct svi_rules *r, double now) {
    if (r->waits && now > r->arrived)
        r->arrived = now;
}

void svi_rules_rest(struct svi_rules *r) {
    r->waits = false;
}

/* ---- what there is to report */

static struct svi_rules_alert *rules_pending(struct svi_rules *r, bool closes, enum svi_rule *rule) {
    for (int i = 0; r->alerts && i < ALERTS; i++) {
        struct svi_rules_alert *a = &r->alerts[i];
        if (a->change == SVI_ALERT_NONE || (a->change == SVI_ALERT_CLOSE) != closes)
            continue;
        *rule = (enum svi_rule)(i / SVI_RULES_ALERTS);
        if (!closes || a->number > 0)
            return a;
        *a = (struct svi_rules_alert){0}; /* nobody heard of it */
    }
    return NULL;
}

struct svi_rules_alert *svi_rules_next(struct svi_rules *r, enum svi_rule *rule,
                                       const struct svi_rules_member *top[SVI_RULES_TOP], int *count) {
    struct svi_rules_alert *a = r->changed ? rules_pending(r, true, rule) : NULL;
    *count = 0;
    if (!a && r->changed)
        a = rules_pending(r, false, rule);
    r->changed = a != NULL;
    for (int i = 0; a && i < r->open_count && *count < SVI_RULES_TOP; i++)
        if (&r->alerts[r->open[i].alert] == a)
            top[(*count)++] = &r->open[i];
    return a;
}

void svi_rules_reported(struct svi_rules_alert *a) {
    if (a->change == SVI_ALERT_CLOSE)
        *a = (struct svi_rules_alert){0};
    a->change = SVI_ALERT_NONE;
}

int svi_rules_open(const struct svi_rules *r) {
    int open = 0;
    for (int i = 0; r->alerts && i < ALERTS; i++)
        open += r->alerts[i].open;
    return open;
}

double svi_rules_usual(const struct svi_rules *r, int feature) {
    if (feature < 0)
        return r->intervals > 0 ? r->spent / (double)r->intervals : NAN;
    const double values = r->seen.values[feature];
    const double rows = (double)r->rows - r->born[feature] - r->gap[feature];
    return r->rows > 1 && values > 0 ? (r->time - r->first) / (double)(r->rows - 1) * rows / values : NAN;
}

/* ---- the clock */

static void rules_shift(double *time, double from, double step) {
    if (*time > from)
        *time += step;
}

/* Alerts of silence have times of arrival, all others those of the stream. */
static void rules_move_alerts(struct svi_rules *r, bool silent, double from, double step) {
    for (int i = 0; i < r->open_count; i++)
        if ((r->open[i].feature < 0) == silent)
            rules_shift(&r->open[i].since, from, step);
    for (int i = 0; r->alerts && i < ALERTS; i++)
        if ((i / SVI_RULES_ALERTS == SVI_RULE_SILENT) == silent) {
            rules_shift(&r->alerts[i].since, from, step);
            rules_shift(&r->alerts[i].opened, from, step);
        }
}

void svi_rules_move_times(struct svi_rules *r, double from, double step) {
    rules_shift(&r->first, from, step);
    rules_shift(&r->time, from, step);
    for (int j = 0; j < r->d; j++) {
        rules_shift(&r->seen.changed_at[j], from, step);
        rules_shift(&r->gone[j], from, step);
    }
    for (int i = 0; i < r->open_count; i++)
        rules_shift(&r->open[i].well_since, from, step);
    rules_move_alerts(r, false, from, step);
}

void svi_rules_move_arrival(struct svi_rules *r, double step) {
    r->arrived += step;
    rules_move_alerts(r, true, -INFINITY, step);
}

/* ---- archive */

static void rules_archive_member(struct svi_archive *a, struct svi_rules *r, struct svi_rules_member *m) {
    svi_archive_int(a, "rule", &m->rule, 0, SVI_RULES - 1);
    svi_archive_int(a, "feature", &m->feature, -1, r->d - 1);
    svi_archive_int(a, "place", &m->alert, 0, ALERTS - 1);
    svi_archive_int64(a, "bad", &m->bad, 0, COUNT_MOST);
    svi_archive_int64(a, "well", &m->well, 0, COUNT_MOST);
    svi_archive_double(a, "well since", &m->well_since);
    svi_archive_double(a, "since", &m->since);
    svi_archive_double(a, "value", &m->value);
    svi_archive_double(a, "low", &m->low);
    svi_archive_double(a, "high", &m->high);
    svi_archive_double(a, "excess", &m->excess);
    svi_archive_double(a, "shown", &m->shown);
    svi_archive_double(a, "lasted", &m->rows);
    svi_archive_check(a, (m->feature < 0) == (m->rule == SVI_RULE_SILENT), "a rule is of something else");
    svi_archive_check(a, m->rule != SVI_RULE_RATE || r->sides == SIDES, "a step is of no record");
}

static void rules_archive_alert(struct svi_archive *a, struct svi_rules *r, struct svi_rules_alert *alert) {
    svi_archive_bool(a, "open", &alert->open);
    if (!alert->open)
        return;
    svi_archive_int64(a, "number", &alert->number, 1, COUNT_MOST);
    svi_archive_double(a, "since", &alert->since);
    svi_archive_double(a, "opened", &alert->opened);
    svi_archive_int(a, "members", &alert->members, 1, r->d + 1);
    svi_archive_int(a, "total", &alert->total, 1, INT32_MAX / 2);
    svi_archive_int(a, "first", &alert->first, -1, r->d - 1);
}

static bool rules_archive_open_room(struct svi_archive *a, struct svi_rules *r, int count) {
    if (!rules_open_room(r, count))
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the alerts of rules");
    return svi_archive_ok(a);
}

static void rules_archive_open(struct svi_archive *a, struct svi_rules *r) {
    int members = 0, silent = 0, of[ALERTS] = {0}, count = r->open_count;
    static const struct svi_rules_alert none = {0};
    for (int i = 0; i < ALERTS && svi_archive_ok(a); i++) {
        struct svi_rules_alert alert = r->alerts ? r->alerts[i] : none;
        rules_archive_alert(a, r, &alert);
        if (!svi_archive_loading(a) || !alert.open || !svi_archive_ok(a))
            continue;
        if (rules_archive_open_room(a, r, r->open_room))
            r->alerts[i] = alert;
    }
    svi_archive_int(a, "sensors", &count, 0, rules_most_members(r->seen.room));
    if (svi_archive_ok(a) && svi_archive_loading(a) && count > 0)
        (void)rules_archive_open_room(a, r, count);
    r->open_count = svi_archive_ok(a) ? count : 0;
    for (int i = 0; i < r->open_count && svi_archive_ok(a); i++) {
        const struct svi_rules_member *m = &r->open[i];
        rules_archive_member(a, r, &r->open[i]);
        if (!svi_archive_loading(a) || !svi_archive_ok(a))
            continue;
        silent += m->feature < 0;
        const bool twice = m->feature < 0 ? silent > 1 : r->told[m->feature] >> m->rule & 1;
        if (svi_archive_check(a, !twice, "a rule is of a sensor twice") && m->feature >= 0)
            r->told[m->feature] |= (uint8_t)(1U << m->rule);
    }
    for (int i = 0; i < r->open_count && svi_archive_ok(a); i++)
        of[r->open[i].alert]++;
    for (int i = 0; i < ALERTS && svi_archive_ok(a); i++) {
        svi_archive_check(a, of[i] == (r->alerts && r->alerts[i].open ? r->alerts[i].members : 0),
                          "the sensors of an alert are others");
        members += of[i];
    }
    if (svi_archive_ok(a))
        svi_archive_check(a, members == r->open_count, "a rule is of no alert");
}

/* Room for what is archived: no more sides than those, so that it is archived again as it was. */
static bool rules_archive_room(struct svi_archive *a, struct svi_rules *r, struct rules_dims used) {
    const int64_t values = (int64_t)(svi_arrays_bytes(&rules_arrays, used.of) / sizeof(double));
    if (!svi_archive_check(a, used.of[PARTS] >= STEP || r->d == 0, "the columns have no records") ||
        !svi_archive_check(a, r->rows > 0 || r->d == 0, "there are columns without a row") ||
        !svi_archive_check(a, values <= svi_archive_left(a), "the columns are truncated"))
        return false;
    const struct rules_dims to = rules_dims_for(r, r->d, used.of[PARTS]);
    if (r->rows == 0 || to.of[COLUMNS] < 1)
        return true;
    return (r->grows || rules_archive_open_room(a, r, rules_most_members(to.of[COLUMNS]))) &&
           rules_resize(r, to, a->err) == SVS_OK;
}

void svi_rules_archive(struct svi_archive *a, struct svi_rules *r) {
    int sides = r->sides;
    svi_archive_int(a, "columns", &r->d, 0, SVI_RULES_FEATURES);
    svi_archive_int(a, "sides", &sides, 0, SIDES);
    svi_archive_int64(a, "opened", &r->opened, 0, COUNT_MOST);
    svi_archive_int64(a, "rows", &r->rows, 0, COUNT_MOST);
    svi_archive_double(a, "first", &r->first);
    svi_archive_double(a, "time", &r->time);
    svi_archive_double(a, "missing now", &r->gap_count);
    svi_archive_bool(a, "left out", &r->left_out);
    svi_records_clock_archive(a, &r->clock);
    if (!svi_archive_ok(a))
        return;
    const struct rules_dims used = {{r->d, r->clock.blocks, sides}};
    if (svi_archive_loading(a) && !rules_archive_room(a, r, used))
        return;
    svi_arrays_archive(a, &rules_arrays, r, rules_dims(r).of, used.of);
    svi_archive_int(a, "judged", &r->judged, 0, r->d);
    if (svi_archive_ok(a))
        rules_archive_open(a, r);
}

void svi_rules_silence_archive(struct svi_archive *a, struct svi_rules *r) {
    svi_archive_bool(a, "waits", &r->waits);
    svi_archive_int64(a, "intervals", &r->intervals, 0, COUNT_MOST);
    svi_archive_double(a, "arrived", &r->arrived);
    svi_archive_double(a, "spent", &r->spent);
    svi_archive_double(a, "pause", &r->pause);
    svi_archive_double(a, "silence", &r->silence);
}
