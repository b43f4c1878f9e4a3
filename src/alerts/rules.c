/* A row is looked at in one pass without a branch a column; it is almost always within all bounds, and then a
 * second pass makes it part of what was seen. Otherwise rules_look goes through the columns one by one, opens
 * what there is to open and takes out of a copy of the row what must not count as seen.
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

/* ---- life */

static void rules_forget(struct svi_rules *r) {
    svi_records_clock_begin(&r->clock);
    r->d = r->judged = r->open_count = 0;
    r->rows = r->intervals = 0;
    r->first = r->time = r->gap_count = 0;
    r->arrived = r->spent = r->pause = r->silence = 0;
    r->waits = r->left_out = false;
    if (r->alerts)
        memset(r->alerts, 0, ALERTS * sizeof *r->alerts);
}

void svi_rules_init(struct svi_rules *r) {
    *r = (struct svi_rules){0};
    rules_forget(r);
}

void svi_rules_init_lean(struct svi_rules *r) {
    svi_rules_init(r);
    r->lean = true;
}

void svi_rules_drop_alerts(struct svi_rules *r) {
    if (r->alerts)
        memset(r->alerts, 0, ALERTS * sizeof *r->alerts);
}

static void rules_free(struct svi_rules *r) {
    svi_free(r->of[0]);
    svi_free(r->kind);
    svi_free(r->open);
    svi_free(r->alerts);
    r->alerts = NULL;
    svi_records_clear(&r->up);
    svi_records_clear(&r->down);
    svi_records_clear(&r->steps);
    memset(r->of, 0, sizeof r->of);
    r->row = NULL;
    r->kind = r->told = r->gaps = NULL;
    r->open = NULL;
    r->room = r->open_room = 0;
}

void svi_rules_clear(struct svi_rules *r) {
    rules_free(r);
    rules_forget(r);
}

static void rules_begin_column(struct svi_rules *r, int j) {
    for (int k = 0; k < SVI_RULES_PARTS; k++)
        r->of[k][j] = 0;
    r->of[SVI_RULES_LAST][j] = NAN;
    r->of[SVI_RULES_LOW][j] = -INFINITY;
    r->of[SVI_RULES_HIGH][j] = r->of[SVI_RULES_PATIENT][j] = INFINITY;
    r->of[SVI_RULES_BORN][j] = (double)r->rows;
    r->kind[j] = r->told[j] = 0;
}

/* Into *fresh, which has room for it. */
static void rules_move(struct svi_rules *r, struct svi_rules *fresh, int room) {
    double *const block = fresh->of[0];
    for (int k = 0; k < SVI_RULES_PARTS; k++) {
        fresh->of[k] = block + (size_t)k * (size_t)room;
        if (r->room > 0)
            memcpy(fresh->of[k], r->of[k], (size_t)r->room * sizeof *block);
    }
    fresh->row = block + (size_t)SVI_RULES_PARTS * (size_t)room;
    fresh->told = fresh->kind + room;
    r->gaps = fresh->told + room;
    if (r->room > 0) {
        memcpy(fresh->kind, r->kind, (size_t)r->room);
        memcpy(fresh->told, r->told, (size_t)r->room);
    }
    svi_free(r->of[0]);
    svi_free(r->kind);
    const int before = r->room;
    memcpy(r->of, fresh->of, sizeof r->of);
    r->row = fresh->row;
    r->kind = fresh->kind;
    r->told = fresh->told;
    r->room = room;
    for (int j = before; j < room; j++)
        rules_begin_column(r, j);
}

static int rules_room(const struct svi_rules *r, int d) {
    int room = 16;
    if (r->lean)
        return d;
    while (room < d)
        room *= 2;
    return room < SVI_RULES_FEATURES ? room : SVI_RULES_FEATURES;
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

/* Blocks that records have room for, and are to have. */
static int rules_width(const struct svi_rules *r) {
    const int wanted = (r->clock.blocks + 1 + 3) / 4 * 4;
    if (!r->lean || wanted > SVI_RECORDS_BLOCKS)
        return SVI_RECORDS_BLOCKS;
    return wanted > r->up.width ? wanted : r->up.width;
}

/* The records of the columns that are there already are only moved; those beyond begin. */
static svs_code rules_reserve_records(struct svi_rules *r, int room, int width, svs_error *err) {
    const bool steps = !r->lean || r->o.on[SVI_RULE_RATE] || r->steps.blocks;
    svs_code code = svi_records_reserve(&r->up, r->up.blocks ? r->room : 0, room, width, err);
    if (code == SVS_OK)
        code = svi_records_reserve(&r->down, r->down.blocks ? r->room : 0, room, width, err);
    if (code == SVS_OK && steps)
        code = svi_records_reserve(&r->steps, r->steps.blocks ? r->room : 0, room, width, err);
    return code;
}

/* Room for more rows of the columns that there are. */
static svs_code rules_reserve_rows(struct svi_rules *r, svs_error *err) {
    if (!r->lean)
        return SVS_OK;
    if (r->alerts && rules_none_open(r)) {
        svi_free(r->alerts);
        svi_free(r->open);
        r->alerts = NULL;
        r->open = NULL;
        r->open_room = 0;
    }
    const int width = rules_width(r);
    const bool steps = r->steps.blocks ? width <= r->steps.width : !r->o.on[SVI_RULE_RATE];
    const bool fits = width <= r->up.width && width <= r->down.width && steps;
    return fits ? SVS_OK : rules_reserve_records(r, r->room, width, err);
}

svs_code svi_rules_reserve(struct svi_rules *r, int d, svs_error *err) {
    struct svi_rules fresh = {0};
    const int wanted = d < SVI_RULES_FEATURES ? d : SVI_RULES_FEATURES, room = rules_room(r, wanted);
    if (!r->any || room < 1)
        return SVS_OK;
    if (wanted <= r->room && r->room > 0)
        return rules_reserve_rows(r, err);
    fresh.of[0] = svi_alloc_plain_array((size_t)room * (SVI_RULES_PARTS + 1), sizeof *fresh.row);
    fresh.kind = svi_alloc_plain(3 * (size_t)room);
    svs_code code = fresh.of[0] && fresh.kind && (r->lean || rules_open_room(r, room * SVI_RULES + 1))
                        ? rules_reserve_records(r, room, rules_width(r), err)
                        : svi_fail_memory(err, "the rules of the features");
    if (code == SVS_OK) {
        rules_move(r, &fresh, room);
        return SVS_OK;
    }
    svi_free(fresh.of[0]);
    svi_free(fresh.kind);
    return code;
}

double svi_rules_bytes(const struct svi_rules *r) {
    return (double)r->room * ((SVI_RULES_PARTS + 1) * sizeof(double) + 3) +
           r->open_room * (double)sizeof(struct svi_rules_member) +
           (r->alerts ? ALERTS * (double)sizeof *r->alerts : 0) +
           (2 + (r->steps.blocks != NULL)) * svi_records_memory(r->room, r->up.width);
}

double svi_rules_memory(const struct svi_settings *s, int d) {
    struct svi_rules r = {.lean = svi_settings_keyed(s)};
    svi_rules_configure(&r, s);
    const int room = rules_room(&r, d < SVI_RULES_FEATURES ? d : SVI_RULES_FEATURES);
    if (!r.any)
        return 0;
    const double open =
        ALERTS * (double)sizeof *r.alerts + (room * SVI_RULES + 1) * sizeof(struct svi_rules_member);
    return (double)room * ((SVI_RULES_PARTS + 1) * sizeof(double) + 3) + (r.lean ? 0 : open) +
           (r.lean && !r.o.on[SVI_RULE_RATE] ? 2 : 3) * svi_records_memory(room, SVI_RECORDS_BLOCKS);
}

/* ---- columns */

void svi_rules_bind(struct svi_rules *r, int feature, int kind, double low, double high) {
    r->kind[feature] = (uint8_t)kind;
    r->of[SVI_RULES_LOW][feature] = kind & SVI_RULES_LIMITED ? low : -INFINITY;
    r->of[SVI_RULES_HIGH][feature] = kind & SVI_RULES_LIMITED ? high : INFINITY;
}

void svi_rules_bound(struct svi_rules *r, int d) {
    d = d < SVI_RULES_FEATURES ? d : SVI_RULES_FEATURES;
    for (int j = r->d; j < d; j++)
        r->of[SVI_RULES_BORN][j] = (double)r->rows;
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
    if (!r->any || feature >= r->room)
        return;
    for (int rule = 0; rule < SVI_RULES; rule++) {
        struct svi_rules_member *m = rules_member(r, rule, feature);
        if (m)
            rules_leave(r, m);
    }
    const int kind = r->kind[feature];
    rules_begin_column(r, feature);
    r->kind[feature] = (uint8_t)kind;
    svi_records_begin(&r->up, feature);
    svi_records_begin(&r->down, feature);
    if (r->steps.blocks)
        svi_records_begin(&r->steps, feature);
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
    const double runs = r->of[SVI_RULES_RUNS][j], longest = r->of[SVI_RULES_LONGEST][j];
    const double values = r->of[SVI_RULES_VALUES][j];
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
    rules_seen(&r->of[SVI_RULES_LONGEST][j], &r->of[SVI_RULES_RESTED][j], r->of[SVI_RULES_RUN][j]);
    r->of[SVI_RULES_RUN][j] = 0;
}

/* The value of a column is missing, or there. */
static void rules_gap(struct svi_rules *r, int j, bool missing, double time) {
    double *gap = &r->of[SVI_RULES_GAP][j], *longest = &r->of[SVI_RULES_GAPS][j];
    const double values = r->of[SVI_RULES_VALUES][j];
    if (!missing) {
        if (*gap > 0 && rules_told(r, SVI_RULE_ABSENT, j))
            rules_seen(longest, &r->of[SVI_RULES_MISSING][j], *gap);
        else
            *longest = fmax(*longest, *gap);
        *gap = 0;
        return;
    }
    if (*gap == 0)
        r->of[SVI_RULES_GONE][j] = r->time;
    *gap += 1;
    if (!r->o.on[SVI_RULE_ABSENT] || !(r->kind[j] & SVI_RULES_MISSED) || rules_told(r, SVI_RULE_ABSENT, j))
        return;
    const double gone = r->of[SVI_RULES_GONE][j], rows = (double)r->rows - r->of[SVI_RULES_BORN][j];
    const bool late = values >= GAP_VALUES && *gap > fmax(GAP_ROWS, GAP_TIMES * *longest) &&
                      (!r->left_out || 2 * values >= rows - *gap);
    if (!(r->o.absent > 0 ? values >= 1 && time - gone > r->o.absent : late))
        return;
    struct svi_rules_member *m = rules_open(r, SVI_RULE_ABSENT, j, gone, time);
    if (m)
        m->high = *longest;
}

/* ---- a row */

/* Is anything of it to be looked at? */
static bool rules_stirs(const struct svi_rules *r, const double *x, int d) {
    const double *up = r->up.of[SVI_RECORD_CHECK], *down = r->down.of[SVI_RECORD_CHECK];
    const double *low = r->of[SVI_RULES_LOW], *high = r->of[SVI_RULES_HIGH];
    const double *last = r->of[SVI_RULES_LAST], *run = r->of[SVI_RULES_RUN];
    const double *patient = r->of[SVI_RULES_PATIENT], *steps = r->steps.of[SVI_RECORD_CHECK];
    int any = 0;
    for (int j = 0; j < d; j++) {
        const double v = x[j];
        any |= (v > up[j]) | (-v > down[j]) | (v < low[j]) | (v > high[j]);
        any |= (v == last[j]) & (run[j] >= patient[j]);
    }
    for (int j = 0; r->o.on[SVI_RULE_RATE] && j < d; j++)
        any |= fabs(x[j] - last[j]) > steps[j];
    return any;
}

/* The row counts as seen; NAN does not. */
static void rules_learn(struct svi_rules *r, const double *restrict x, int d) {
    double *restrict up = r->up.of[SVI_RECORD_NOW], *restrict down = r->down.of[SVI_RECORD_NOW];
    for (int j = 0; j < d; j++) {
        const double v = x[j];
        up[j] = v > up[j] ? v : up[j];
        down[j] = -v > down[j] ? -v : down[j];
    }
}

static void rules_learn_steps(struct svi_rules *r, const double *restrict x, int d) {
    double *restrict now = r->steps.of[SVI_RECORD_NOW];
    const double *restrict last = r->of[SVI_RULES_LAST];
    for (int j = 0; j < d; j++) {
        const double step = fabs(x[j] - last[j]);
        now[j] = step > now[j] ? step : now[j];
    }
}

/* Runs of the same value. */
static void rules_learn_runs(struct svi_rules *r, const double *restrict x, int d, double time) {
    double *restrict last = r->of[SVI_RULES_LAST], *restrict run = r->of[SVI_RULES_RUN];
    double *restrict changed = r->of[SVI_RULES_CHANGED], *restrict longest = r->of[SVI_RULES_LONGEST];
    double *restrict runs = r->of[SVI_RULES_RUNS], *restrict values = r->of[SVI_RULES_VALUES];
    for (int j = 0; j < d; j++) {
        const double v = x[j], known = v == v ? 1.0 : 0.0, other = v == v && v != last[j] ? 1.0 : 0.0;
        const double ended = other * run[j];
        longest[j] = ended > longest[j] ? ended : longest[j];
        run[j] = (1 - other) * run[j] + known;
        changed[j] = other > 0 ? time : changed[j];
        last[j] = known > 0 ? v : last[j];
        runs[j] += other;
        values[j] += known;
    }
}

/* Above what was seen; `shown`: the value that v stands for. Returns whether v must not count as seen. */
static bool rules_look_beyond(struct svi_rules *r, struct svi_records *of, int rule, int j, double v,
                              double shown, double time) {
    const double most = svi_records_most(of, j);
    if (!(v > most) || !r->o.on[rule] || rules_told(r, rule, j))
        return false;
    const double bound =
        svi_records_bound(of, &r->clock, j, rule == SVI_RULE_RATE ? r->judged : 2 * r->judged);
    of->of[SVI_RECORD_CHECK][j] = bound;
    if (!(v > bound))
        return false;
    struct svi_rules_member *m = rules_open(r, rule, j, time, time);
    if (!m)
        return true;
    m->low = rule == SVI_RULE_RATE ? 0 : -svi_records_most(&r->down, j);
    m->high = svi_records_most(rule == SVI_RULE_RATE ? of : &r->up, j);
    rules_bad(r, m, shown, v - most);
    return true;
}

static double rules_outside(const struct svi_rules *r, int j, double v) {
    return fmax(v - r->of[SVI_RULES_HIGH][j], r->of[SVI_RULES_LOW][j] - v);
}

static void rules_open_limits(struct svi_rules *r, int j, double v, double time) {
    struct svi_rules_member *m = rules_open(r, SVI_RULE_LIMITS, j, time, time);
    if (!m)
        return;
    m->low = r->of[SVI_RULES_LOW][j];
    m->high = r->of[SVI_RULES_HIGH][j];
    rules_bad(r, m, v, rules_outside(r, j, v));
}

static void rules_open_stuck(struct svi_rules *r, int j, double v, double time) {
    r->of[SVI_RULES_PATIENT][j] = rules_patience(r, j);
    if (!(r->of[SVI_RULES_RUN][j] >= r->of[SVI_RULES_PATIENT][j]))
        return;
    struct svi_rules_member *m = rules_open(r, SVI_RULE_STUCK, j, r->of[SVI_RULES_CHANGED][j], time);
    if (!m)
        return;
    m->high = r->of[SVI_RULES_LONGEST][j];
    m->rows = r->of[SVI_RULES_RUN][j] + 1;
    m->value = v;
}

/* One column of a row that stirs. Returns its value where it counts as seen, else NAN. */
static double rules_look(struct svi_rules *r, int j, double v, double time) {
    const double last = r->of[SVI_RULES_LAST][j];
    bool out = false;
    if (rules_outside(r, j, v) > 0 && !rules_told(r, SVI_RULE_LIMITS, j))
        rules_open_limits(r, j, v, time);
    if (!(r->kind[j] & SVI_RULES_JUDGED))
        return v;
    if (v == last && r->of[SVI_RULES_RUN][j] >= r->of[SVI_RULES_PATIENT][j] &&
        !rules_told(r, SVI_RULE_STUCK, j))
        rules_open_stuck(r, j, v, time);
    out = rules_look_beyond(r, &r->up, SVI_RULE_BEYOND, j, v, v, time);
    out = rules_look_beyond(r, &r->down, SVI_RULE_BEYOND, j, -v, v, time) || out;
    if (rules_told(r, SVI_RULE_BEYOND, j))
        out = v > svi_records_most(&r->up, j) || -v > svi_records_most(&r->down, j);
    return out ? NAN : v;
}

/* The same of its step. Returns whether the step must not count as seen. */
static bool rules_look_step(struct svi_rules *r, int j, double v, double time) {
    const double step = fabs(v - r->of[SVI_RULES_LAST][j]);
    if (!(r->kind[j] & SVI_RULES_JUDGED) || !r->o.on[SVI_RULE_RATE])
        return false;
    const bool out = rules_look_beyond(r, &r->steps, SVI_RULE_RATE, j, step, step, time);
    return out || (rules_told(r, SVI_RULE_RATE, j) && step > svi_records_most(&r->steps, j));
}

/* ---- those that are reported */

static void rules_settle(struct svi_rules *r, struct svi_rules_member *m) {
    const int j = m->feature;
    if (m->rule == SVI_RULE_RATE)
        svi_records_settle(&r->steps, &r->clock, j, m->value);
    else if (m->value > m->high)
        svi_records_settle(&r->up, &r->clock, j, m->value);
    else
        svi_records_settle(&r->down, &r->clock, j, -m->value);
    r->alerts[m->alert].settled = true;
    rules_leave(r, m);
}

static void rules_recover(struct svi_rules *r, struct svi_rules_member *m) {
    const int j = m->feature;
    if (m->rule == SVI_RULE_BEYOND && m->value > m->high)
        svi_records_told(&r->up, j, m->value);
    else if (m->rule == SVI_RULE_BEYOND)
        svi_records_told(&r->down, j, -m->value);
    else if (m->rule == SVI_RULE_RATE)
        svi_records_told(&r->steps, j, m->value);
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
        return isnan(v) ? v
                        : fmax(0, fmax(v - svi_records_most(&r->up, j), -v - svi_records_most(&r->down, j)));
    case SVI_RULE_STUCK:
        return isnan(v) ? v : v == m->value ? DBL_MIN : 0;
    case SVI_RULE_RATE:
        *value = fabs(v - r->of[SVI_RULES_LAST][j]);
        return isnan(*value) ? *value : fmax(0, *value - svi_records_most(&r->steps, j));
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

/* The row without what must not count as seen, in r->row; what there is to open is. */
static void rules_look_all(struct svi_rules *r, const double *x, int d, double time) {
    double *seen = r->row;
    if (r->open_count > 0)
        rules_watch(r, x, time);
    for (int j = 0; j < d; j++) {
        const bool step = rules_look_step(r, j, x[j], time);
        seen[j] = isnan(x[j]) ? NAN : rules_look(r, j, x[j], time);
        if (r->o.on[SVI_RULE_RATE] && !step) {
            const double size = fabs(x[j] - r->of[SVI_RULES_LAST][j]);
            double *now = &r->steps.of[SVI_RECORD_NOW][j];
            *now = size > *now ? size : *now;
        }
    }
}

static void rules_end_block(struct svi_rules *r) {
    svi_records_end_block(&r->up, &r->clock, r->d);
    svi_records_end_block(&r->down, &r->clock, r->d);
    if (r->o.on[SVI_RULE_RATE])
        svi_records_end_block(&r->steps, &r->clock, r->d);
    for (int j = 0; j < r->d; j++) {
        r->of[SVI_RULES_PATIENT][j] = rules_patience(r, j);
        if (r->kind[j] & SVI_RULES_JUDGED)
            continue;
        r->up.of[SVI_RECORD_CHECK][j] = r->down.of[SVI_RECORD_CHECK][j] = INFINITY; /* nothing is looked at */
        if (r->steps.blocks)
            r->steps.of[SVI_RECORD_CHECK][j] = INFINITY;
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
            r->pause = fmax(r->pause, gap);
            r->spent += gap;
            r->intervals++;
        }
    }
    r->arrived = arrival;
    r->waits = true;
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
    if (r->open_count > 0 || rules_stirs(r, x, d)) {
        rules_look_all(r, x, d, time);
        rules_learn(r, r->row, d);
        rules_learn_runs(r, x, d, time);
    } else {
        rules_learn(r, x, d);
        if (r->o.on[SVI_RULE_RATE])
            rules_learn_steps(r, x, d);
        rules_learn_runs(r, x, d, time);
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
    if (!r->any || !r->o.on[SVI_RULE_SILENT] || !r->waits || r->room == 0 || (m && m->bad == 0))
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

void svi_rules_begin(struct svi_rules *r, double now) {
    if (r->waits && now > r->arrived)
        r->arrived = now;
}

void svi_rules_rest(struct svi_rules *r) {
    r->waits = false;
}

/* ---- what there is to report */

bool svi_rules_pending(const struct svi_rules *r) {
    return r->changed;
}

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

void svi_rules_reported(struct svi_rules *r, struct svi_rules_alert *a) {
    (void)r;
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
    const double values = r->of[SVI_RULES_VALUES][feature];
    const double rows = (double)r->rows - r->of[SVI_RULES_BORN][feature] - r->of[SVI_RULES_GAP][feature];
    return r->rows > 1 && values > 0 ? (r->time - r->first) / (double)(r->rows - 1) * rows / values : NAN;
}

/* ---- the clock */

static void rules_shift(double *time, double from, double step) {
    if (*time > from)
        *time += step;
}

void svi_rules_move_times(struct svi_rules *r, double from, double step) {
    rules_shift(&r->first, from, step);
    rules_shift(&r->time, from, step);
    for (int j = 0; j < r->d; j++) {
        rules_shift(&r->of[SVI_RULES_CHANGED][j], from, step);
        rules_shift(&r->of[SVI_RULES_GONE][j], from, step);
    }
    for (int i = 0; i < r->open_count; i++) {
        rules_shift(&r->open[i].well_since, from, step);
        if (r->open[i].feature >= 0)
            rules_shift(&r->open[i].since, from, step);
    }
    for (int i = 0; r->alerts && i < SVI_RULE_SILENT * SVI_RULES_ALERTS; i++) {
        rules_shift(&r->alerts[i].since, from, step);
        rules_shift(&r->alerts[i].opened, from, step);
    }
}

void svi_rules_move_arrival(struct svi_rules *r, double step) {
    r->arrived += step;
    for (int i = 0; i < r->open_count; i++)
        if (r->open[i].feature < 0)
            r->open[i].since += step;
    for (int i = SVI_RULE_SILENT * SVI_RULES_ALERTS; r->alerts && i < ALERTS; i++) {
        r->alerts[i].since += step;
        r->alerts[i].opened += step;
    }
}

/* ---- archive */

static void rules_archive_member(struct svi_archive *a, struct svi_rules *r, struct svi_rules_member *m) {
    const int alerts = ALERTS;
    svi_archive_int(a, "rule", &m->rule, 0, SVI_RULES - 1);
    svi_archive_int(a, "feature", &m->feature, -1, r->d - 1);
    svi_archive_int(a, "place", &m->alert, 0, alerts - 1);
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

static void rules_archive_open(struct svi_archive *a, struct svi_rules *r) {
    int members = 0, silent = 0, of[ALERTS] = {0}, count = r->open_count;
    static const struct svi_rules_alert none = {0};
    for (int i = 0; i < ALERTS && svi_archive_ok(a); i++) {
        struct svi_rules_alert alert = r->alerts ? r->alerts[i] : none;
        rules_archive_alert(a, r, &alert);
        if (!svi_archive_loading(a) || !alert.open || !svi_archive_ok(a))
            continue;
        if (!rules_open_room(r, r->open_room))
            svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the alerts of rules");
        else
            r->alerts[i] = alert;
    }
    svi_archive_int(a, "sensors", &count, 0, r->room * SVI_RULES + 1);
    if (svi_archive_ok(a) && svi_archive_loading(a) && count > 0 && !rules_open_room(r, count))
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the alerts of rules");
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

void svi_rules_archive(struct svi_archive *a, struct svi_rules *r) {
    char key[SVI_KEY_MAX];
    svi_archive_int(a, "columns", &r->d, 0, SVI_RULES_FEATURES);
    svi_archive_int64(a, "opened", &r->opened, 0, COUNT_MOST);
    svi_archive_int64(a, "rows", &r->rows, 0, COUNT_MOST);
    svi_archive_double(a, "first", &r->first);
    svi_archive_double(a, "time", &r->time);
    svi_archive_double(a, "missing now", &r->gap_count);
    svi_archive_bool(a, "left out", &r->left_out);
    svi_records_clock_archive(a, &r->clock);
    if (!svi_archive_ok(a))
        return;
    const int blocks = r->lean ? r->clock.blocks : SVI_RECORDS_BLOCKS;
    bool steps = r->steps.blocks;
    const int64_t values = (int64_t)r->d * (SVI_RULES_PARTS + (r->lean ? 2 : 3) * blocks);
    svi_archive_check(a, r->rows > 0 || r->d == 0, "there are columns without a row");
    if (svi_archive_loading(a) && r->rows > 0 &&
        (!svi_archive_check(a, values <= svi_archive_left(a), "the columns are truncated") ||
         svi_rules_reserve(r, r->d, a->err) != SVS_OK))
        return;
    for (int k = 0; k < SVI_RULES_PARTS; k++)
        svi_archive_doubles(a, svi_archive_key(key, "part", k), r->of[k], r->d);
    svi_archive_bytes(a, "kinds", r->kind, r->d);
    svi_records_archive(a, "up", &r->up, r->d, blocks);
    svi_records_archive(a, "down", &r->down, r->d, blocks);
    if (r->lean)
        svi_archive_bool(a, "has steps", &steps);
    if (svi_archive_loading(a) && svi_archive_ok(a) && steps && r->d > 0 && !r->steps.blocks &&
        svi_records_reserve(&r->steps, 0, r->room, r->up.width, a->err) != SVS_OK)
        return;
    if (!r->lean || steps)
        svi_records_archive(a, "steps", &r->steps, r->d, blocks);
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
