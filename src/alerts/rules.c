/* The frame of the plain rules. Parts: arrays and capacity, columns, members and alerts, a row, what to
 * report, the clock, the archive. The conditions and words of a rule are in its file, rule_NAME.c, which the
 * frame calls through its row (rules_internal.h).
 *
 * A row is first checked without a branch a column (linalg/kernels.h: columns_pass). It is almost
 * always within all bounds, and the same call then adds it to what was seen. Otherwise
 * rules_assess_all assesses the columns one by one and lets the rules open alerts. It also removes
 * from a copy of the row what must not count as seen.
 *
 * What is reported is a member: a sensor under a rule. Members of a rule that opened together share an alert.
 * The list of members is short, and only they are assessed again in each row (rules_watch).
 *
 * Invariants: open_rules[j] has bit `rule` if and only if there is exactly one member (rule, j). An
 * alert that is not about to be reported as closed has members. A value beyond its bound never
 * enters the records while its sensor is reported. */
#include "alerts/rules_internal.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"

#define ALERTS       (SVI_RULES * SVI_RULES_ALERTS)
#define MIN_VALUES   64          /* of a sensor, before its range says how far a value lies */
#define UPDATE_EVERY (30 * 60.0) /* seconds between updates of what only became worse */
#define JOIN_EVERY   60.0        /* seconds between updates that name further sensors */

#define X(constant, name, about) [SVI_RULE_##constant] = &svi_rule_##name,
const struct svi_rule_kind *const svi_rule_kinds[SVI_RULES] = {SVI_RULES_ALL(X)};
#undef X

/* ---- what they consist of */

enum { COLUMNS, BLOCKS, PARTS, DIMS };

#define OWNER    struct svi_rules
#define A_COLUMN SVI_AXIS(COLUMNS)
#define A_SIDE   SVI_AXIS(PARTS), SVI_AXIS(COLUMNS)

static const struct svi_array arrays[] = {
    SVI_ARRAY_WITH(OWNER, seen.low, "low", SVI_ARRAY_ANY, -INFINITY, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, seen.high, "high", SVI_ARRAY_ANY, INFINITY, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, seen.last, "last", SVI_ARRAY_ANY, NAN, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, seen.changed_at, "changed at", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, seen.run, "run", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, seen.longest, "longest", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, seen.patient, "patient", SVI_ARRAY_ANY, INFINITY, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, seen.runs, "runs", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, reported_run, "reported run", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, seen.values, "values", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, born, "born", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, gap, "gap", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, longest_gap, "longest gap", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, reported_gap, "reported gap", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, last_value_time, "gone", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, records.most, "most", SVI_ARRAY_ANY, -INFINITY, A_SIDE),
    SVI_ARRAY_WITH(OWNER, records.now, "now", SVI_ARRAY_ANY, -INFINITY, A_SIDE),
    SVI_ARRAY_WITH(OWNER, records.check, "check", SVI_ARRAY_ANY, -INFINITY, A_SIDE),
    SVI_ARRAY_WITH(OWNER, records.suspect, "suspect", SVI_ARRAY_ANY, -INFINITY, A_SIDE),
    SVI_ARRAY_WITH(OWNER, records.blocks, "blocks", SVI_ARRAY_ANY, -INFINITY, A_SIDE, SVI_AXIS(BLOCKS)),
    SVI_ARRAY_WITH(OWNER, row, NULL, SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, counted, NULL, SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, held, "held", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, held_since, "held since", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, hits, "hits", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, kind, "kinds", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, open_rules, NULL, SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, gaps, NULL, SVI_ARRAY_ANY, 0, A_COLUMN),
};
static const struct svi_arrays rules_arrays = SVI_ARRAYS(arrays, "the rules of the features");

struct rules_dims {
    int32_t of[DIMS];
};

static struct rules_dims rules_dims(const struct svi_rules *r) {
    return (struct rules_dims){{r->seen.capacity, r->records.width, r->sides}};
}

/* The size of the arrays for `capacity` columns. Rules that grow take exactly these columns, blocks for the
 * next rows and the sides in use; others take a power of two and everything that may ever be needed. */
static struct rules_dims rules_dims_for(const struct svi_rules *r, int capacity, int sides) {
    int columns = 16;
    if (r->grows)
        return (struct rules_dims){{capacity, r->clock.blocks / 4 * 4 + 4, sides}};
    while (columns < capacity)
        columns *= 2;
    return (struct rules_dims){
        {columns < SVI_RULES_FEATURES ? columns : SVI_RULES_FEATURES, SVI_RECORDS_BLOCKS, SVI_RULES_SIDES}};
}

static svs_code rules_resize(struct svi_rules *r, struct rules_dims to, svs_error *err) {
    const struct rules_dims from = rules_dims(r);
    if (memcmp(&from, &to, sizeof to) == 0)
        return SVS_OK;
    SVI_TRY(svi_arrays_resize(&rules_arrays, r, from.of, to.of, err));
    r->seen.capacity = to.of[COLUMNS];
    r->records.width = to.of[BLOCKS];
    r->sides = to.of[PARTS];
    return SVS_OK;
}

/* ---- life */

/* The list of members is left alone; it must be empty. */
void svi_rules_drop_alerts(struct svi_rules *r) {
    if (r->alerts)
        memset(r->alerts, 0, ALERTS * sizeof *r->alerts);
}

static void rules_forget(struct svi_rules *r) {
    svi_records_clock_begin(&r->clock);
    r->d = r->judged = r->open_count = 0;
    r->rows = r->intervals = r->state_row = 0;
    r->holding = 0;
    r->first = r->time = r->gap_count = r->elapsed = 0;
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
    r->open_capacity = 0;
}

void svi_rules_clear(struct svi_rules *r) {
    svi_arrays_free(&rules_arrays, r);
    rules_free_open(r);
    r->seen.capacity = r->records.width = r->sides = 0;
    rules_forget(r);
}

/* Capacity for `count` members, and for all alerts. False: out of memory. Pointers to members
 * become invalid. */
static bool rules_reserve_open(struct svi_rules *r, int count) {
    if (!r->alerts && !(r->alerts = svi_alloc_plain_array(ALERTS, sizeof *r->alerts)))
        return false;
    if (count <= r->open_capacity)
        return true;
    struct svi_rules_member *open = svi_alloc_plain_array((size_t)count, sizeof *open);
    if (!open)
        return false;
    if (r->open_count > 0)
        memcpy(open, r->open, (size_t)r->open_count * sizeof *open);
    svi_free(r->open);
    r->open = open;
    r->open_capacity = count;
    return true;
}

/* Is nothing open and nothing left to report? */
static bool rules_all_closed(const struct svi_rules *r) {
    bool none = r->open_count == 0;
    for (int i = 0; none && i < ALERTS; i++)
        none = !r->alerts[i].open && r->alerts[i].change == SVI_ALERT_NONE;
    return none;
}

/* The most members there can be: one a rule and column, and one of the stream. */
static int rules_max_members(int columns) {
    return columns * SVI_RULES + 1;
}

svs_code svi_rules_reserve(struct svi_rules *r, int d, svs_error *err) {
    const int wanted = d < SVI_RULES_FEATURES ? d : SVI_RULES_FEATURES;
    if (!r->grows && wanted <= r->seen.capacity && r->alerts &&
        r->open_capacity >= rules_max_members(r->seen.capacity))
        return SVS_OK; /* nearly always: rules that do not grow have all sides from the start */
    const int sides = r->steps || r->sides == SVI_RULES_SIDES ? SVI_RULES_SIDES : SVI_RULES_STEP;
    const struct rules_dims to =
        rules_dims_for(r, wanted > r->seen.capacity ? wanted : r->seen.capacity, sides);
    if (!r->any || to.of[COLUMNS] < 1)
        return SVS_OK;
    /* One of many streams gives back what its alerts took once all are closed. Members of a stream that grows
     * are allocated when one opens (svi_rules_add); others are reserved here, so that opening cannot fail. */
    if (r->grows && r->alerts && rules_all_closed(r))
        rules_free_open(r);
    if (!r->grows && !rules_reserve_open(r, rules_max_members(to.of[COLUMNS])))
        return svi_fail_memory(err, rules_arrays.what);
    return rules_resize(r, to, err);
}

double svi_rules_memory(const struct svi_settings *s, int d) {
    /* The same computation as a reserve, on an empty object with the largest number of blocks. */
    struct svi_rules r;
    svi_rules_init(&r, svi_settings_keyed(s));
    svi_rules_configure(&r, s);
    r.clock.blocks = SVI_RECORDS_BLOCKS - 1;
    const struct rules_dims most = rules_dims_for(&r, d < SVI_RULES_FEATURES ? d : SVI_RULES_FEATURES,
                                                  r.steps ? SVI_RULES_SIDES : SVI_RULES_STEP);
    const double open = r.grows ? 0
                                : rules_max_members(most.of[COLUMNS]) * (double)sizeof *r.open +
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
    /* Shares of rows that had a value count from the row in which a column was added. */
    d = d < SVI_RULES_FEATURES ? d : SVI_RULES_FEATURES;
    for (int j = r->d; j < d; j++)
        r->born[j] = (double)r->rows;
    r->d = d;
    r->judged = 0;
    for (int j = 0; j < r->d; j++)
        r->judged += (r->kind[j] & SVI_RULES_JUDGED) != 0;
}

struct svi_rules_member *svi_rules_member(const struct svi_rules *r, int rule, int feature) {
    for (int i = 0; i < r->open_count; i++)
        if (r->open[i].rule == rule && r->open[i].feature == feature)
            return &r->open[i];
    return NULL;
}

/* Are steps assessed? A rule that was switched on gets capacity for them with the next row. */
static bool rules_has_steps(const struct svi_rules *r) {
    return r->steps && r->sides == SVI_RULES_SIDES;
}

/* Notes a change to report. A close overrides any other; an open that was not reported yet stays an open. */
static void rules_change(struct svi_rules *r, struct svi_rules_alert *a, enum svi_alert_change change) {
    a->change = change == SVI_ALERT_CLOSE || a->change == SVI_ALERT_NONE ? change : a->change;
    r->changed = true;
}

/* An update that is due now. */
static void rules_update(struct svi_rules *r, struct svi_rules_alert *a) {
    a->reported_at = r->elapsed;
    rules_change(r, a, SVI_ALERT_UPDATE);
}

/* A sensor joins an open alert: reported at once, or together with others at the end of JOIN_EVERY. */
static void rules_join(struct svi_rules *r, struct svi_rules_alert *a) {
    a->waits = r->elapsed - a->joined_at < JOIN_EVERY;
    if (a->waits)
        return;
    a->joined_at = r->elapsed;
    rules_update(r, a);
}

/* Iterator over the open alerts that have members, in the order of their first members. It walks
 * the members, because few are open at a time but each alert of each rule has a place. *seen: 0
 * before the first call. Returns NULL at the end. */
static struct svi_rules_alert *rules_next_open(const struct svi_rules *r, int *member, uint64_t *seen) {
    _Static_assert(ALERTS <= 64, "an alert has a bit");
    while (*member < r->open_count) {
        const int at = r->open[(*member)++].alert;
        if (at < 0 || *seen >> at & 1)
            continue;
        *seen |= (uint64_t)1 << at;
        if (r->alerts[at].open)
            return &r->alerts[at];
    }
    return NULL;
}

/* Removes a member; with the last one its alert closes. The members after it move down by one place, so loops
 * that remove run from the end. */
static void rules_remove(struct svi_rules *r, struct svi_rules_member *m) {
    struct svi_rules_alert *a = m->alert >= 0 ? &r->alerts[m->alert] : NULL;
    if (m->feature >= 0)
        r->open_rules[m->feature] &= (uint8_t) ~(1U << m->rule);
    if (a && --a->members == 0)
        rules_change(r, a, SVI_ALERT_CLOSE);
    const size_t at = (size_t)(m - r->open);
    memmove(m, m + 1, ((size_t)r->open_count - at - 1) * sizeof *m);
    r->open_count--;
}

void svi_rules_renew(struct svi_rules *r, int feature) {
    if (!r->any || feature >= r->seen.capacity)
        return;
    for (int rule = 0; rule < SVI_RULES; rule++) {
        struct svi_rules_member *m = svi_rules_member(r, rule, feature);
        if (m)
            rules_remove(r, m);
        if (svi_rule_kinds[rule]->forget)
            svi_rule_kinds[rule]->forget(r, feature);
    }
    /* Its rules are a matter of settings and stay; all that was seen goes. */
    const uint8_t kind = r->kind[feature];
    svi_arrays_forget(&rules_arrays, r, rules_dims(r).of, COLUMNS, feature);
    r->born[feature] = (double)r->rows;
    r->kind[feature] = kind;
}

void svi_rules_configure(struct svi_rules *r, const struct svi_settings *s) {
    (void)svi_rule_settings_read(s->alert_rules, s->alert_absent, s->limits, &r->o,
                                 NULL); /* the settings were checked before */
    (void)svi_rule_delays_read(s->alert_ondelay, false, r->o.on_delay, NULL);
    (void)svi_rule_delays_read(s->alert_offdelay, true, r->o.off_delay, NULL);
    r->group = s->alert_group;
    const bool before = r->any;
    r->any = r->steps = false;
    for (int rule = 0; rule < SVI_RULES; rule++) {
        r->any = r->any || r->o.on[rule];
        r->steps = r->steps || (r->o.on[rule] && svi_rule_kinds[rule]->step);
    }
    for (int i = r->open_count - 1; i >= 0; i--)
        if (!r->o.on[r->open[i].rule])
            rules_remove(r, &r->open[i]);
    for (int rule = 0; rule < SVI_RULES; rule++)
        if (!r->o.on[rule] && svi_rule_kinds[rule]->off)
            svi_rule_kinds[rule]->off(r);
    if (before && !r->any) {
        struct svi_rules_alert *ended = r->alerts; /* their closes are still to be reported */
        r->alerts = NULL;
        svi_rules_clear(r);
        r->alerts = ended;
    }
}

void svi_rules_end(struct svi_rules *r) {
    while (r->open_count > 0)
        rules_remove(r, &r->open[r->open_count - 1]);
}

/* ---- members and alerts */

/* Index of the alert for a new member: one of its rule that opened within `group` seconds, else an empty
 * place, else the newest one. -1: all places hold closes that are not reported yet. */
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

/* A member joins an alert, or opens one. False: there is no place for an alert in this row. */
static bool rules_enter(struct svi_rules *r, struct svi_rules_member *m, double time) {
    const int at = rules_alert(r, m->rule, time);
    if (at < 0)
        return false;
    struct svi_rules_alert *a = &r->alerts[at];
    if (!a->open) {
        *a = (struct svi_rules_alert){.open = true,
                                      .since = m->since,
                                      .since_row = m->since_row,
                                      .opened = time,
                                      .first = m->feature,
                                      .reported_at = r->elapsed};
        a->joined_at = r->elapsed - JOIN_EVERY; /* the first sensor that joins does not wait */
        r->opened++;
        rules_change(r, a, SVI_ALERT_OPEN);
    } else if (a->change == SVI_ALERT_NONE) { /* an open that is not reported yet will name it */
        rules_join(r, a);
    }
    /* The alert is dated back to the earliest start of its members. */
    a->since = m->since < a->since ? m->since : a->since;
    a->since_row = m->since_row < a->since_row ? m->since_row : a->since_row;
    a->members++;
    a->total++;
    m->alert = at;
    m->shown = m->excess;
    return true;
}

/* One more row in which the condition of a member held, the first one included. Once its on-delay is over, it
 * joins an alert. */
static void rules_hold_on(struct svi_rules *r, struct svi_rules_member *m, double time) {
    const struct svi_rule_delay *delay = &r->o.on_delay[m->rule];
    if (m->alert < 0 && ++m->held >= delay->rows && time - m->held_since >= delay->seconds)
        (void)rules_enter(r, m, time); /* without a place, with the next row */
}

struct svi_rules_member *svi_rules_add(struct svi_rules *r, int rule, int feature, double since,
                                       double time) {
    /* Memory first: without it nothing changes, and the rule tries again with the next row. */
    const int capacity = r->open_count < r->open_capacity ? r->open_capacity : 2 * r->open_count + 2;
    if (!rules_reserve_open(r, capacity))
        return NULL;
    struct svi_rules_member *m = &r->open[r->open_count];
    *m = (struct svi_rules_member){.rule = rule,
                                   .feature = feature,
                                   .alert = -1,
                                   .since = since,
                                   .since_row = r->rows,
                                   .held_since = time};
    rules_hold_on(r, m, time);
    if (m->alert < 0 && !r->o.on_delay[rule].given)
        return NULL;
    r->open_count++;
    if (feature >= 0)
        r->open_rules[feature] |= (uint8_t)(1U << rule);
    return m;
}

void svi_rules_began(struct svi_rules *r, struct svi_rules_member *m, double rows) {
    struct svi_rules_alert *a = m->alert >= 0 ? &r->alerts[m->alert] : NULL;
    m->since_row = r->rows - (int64_t)rows;
    if (a && m->since_row < a->since_row)
        a->since_row = m->since_row;
}

/* NOTHING FLAPS (rules.h): the first value is reported, then what has become more severe (rules_grade), and
 * after UPDATE_EVERY an excess that has doubled. Any other one only replaces the worst value. */
void svi_rules_bad(struct svi_rules *r, struct svi_rules_member *m, double value, double excess) {
    struct svi_rules_alert *a = m->alert >= 0 ? &r->alerts[m->alert] : NULL;
    m->bad++;
    m->well = 0;
    if (m->bad == 1 || excess > m->excess) {
        m->value = value;
        m->excess = excess;
    }
    if (m->bad == 1) { /* a new member has been reported by svi_rules_add */
        m->shown = excess;
    } else if (a && m->excess >= 2 * m->shown && r->elapsed - a->reported_at >= UPDATE_EVERY) {
        m->shown = m->excess;
        rules_update(r, a);
    }
}

/* One more well row of a member. True: it has been well for long enough to be removed: in rows and time, so
 * that neither a fast nor a slow stream flaps, and by rows alone where no time passes. */
static bool rules_is_well(const struct svi_rules *r, struct svi_rules_member *m, double time) {
    const struct svi_rule_delay *delay = &r->o.off_delay[m->rule];
    if (m->well++ == 0)
        m->well_since = time;
    const double lasts = time - m->well_since;
    if (m->alert < 0) /* its condition did not hold for the on-delay */
        return true;
    if (delay->given)
        return m->well >= delay->rows && lasts >= delay->seconds;
    return (m->well >= 10 && lasts >= 60) || (m->well >= 3 && lasts >= 3600) || m->well >= 1000;
}

/* ---- a row */

/* Lets all rules assess column j of a row. Returns v if it counts as seen, else NaN. `assess` stands on the
 * left: every rule must see the value. */
static double rules_assess(struct svi_rules *r, int j, double v, double time) {
    bool out = false;
    for (int rule = 0; rule < SVI_RULES; rule++) {
        const struct svi_rule_kind *k = svi_rule_kinds[rule];
        if (k->assess)
            out = k->assess(r, j, v, time) || out;
    }
    return out ? NAN : v;
}

/* Assesses this row for the members that earlier rows added: worse, or well for long enough. It runs before
 * the row is searched for new ones, so that a value which ends one alert can open the next. */
static void rules_watch(struct svi_rules *r, const double *x, double time) {
    struct svi_rules_alert *a;
    uint64_t seen = 0;
    for (int i = 0; (a = rules_next_open(r, &i, &seen));)
        if (a->waits) /* sensors that have waited to be named */
            rules_join(r, a);
    for (int i = r->open_count - 1; i >= 0; i--) { /* from the end: a member may be removed */
        struct svi_rules_member *m = &r->open[i];
        const struct svi_rule_kind *k = svi_rule_kinds[m->rule];
        const bool learned = !svi_unlearned_has(r->unlearned, m->feature);
        double value = m->feature < 0 ? 0 : x[m->feature];
        const double bad = k->badness ? k->badness(r, m, &value) : 0;
        if (bad > 0)
            rules_hold_on(r, m, time);
        if (bad > 0 && k->lasts) {
            m->rows++;
            m->well = 0;
        } else if (bad > 0) {
            svi_rules_bad(r, m, value, bad);
            if (k->normal_after == 0 || m->bad < k->normal_after || !learned)
                continue;
            /* The rule enters the value into its records before the member, which holds it, is removed. */
            if (m->alert >= 0)
                r->alerts[m->alert].settled = true;
            k->removed(r, m, true);
            rules_remove(r, m);
        } else if (bad == 0) { /* NaN: no evidence in this row, and the count of well rows stays */
            if (k->recovers && m->well == 0 && learned)
                k->recovers(r, m);
            if (!rules_is_well(r, m, time))
                continue;
            if (k->removed && learned)
                k->removed(r, m, false);
            rules_remove(r, m);
        }
    }
}

/* Does column j need rules_assess: above a record, outside its limits, or unchanged for too long? */
static bool rules_stirs(const struct svi_rules *r, int j, double v) {
    const struct svi_column_seen *c = &r->seen;
    const double *record = r->records.most;
    return v > record[j] || -v > record[svi_rules_series(r, SVI_RULES_DOWN, j)] || v < c->low[j] ||
           v > c->high[j] || (v == c->last[j] && c->run[j] >= c->patient[j]);
}

/* Opens the alerts of this row, and leaves in r->counted the row without the values that must not count as
 * seen. Steps are assessed in all columns, because rules_stirs does not see them. */
static void rules_assess_all(struct svi_rules *r, const double *x, int d, double time) {
    const bool steps = rules_has_steps(r);
    for (int j = 0; j < d; j++) {
        for (int rule = 0; steps && rule < SVI_RULES; rule++)
            if (r->o.on[rule] && svi_rule_kinds[rule]->step)
                svi_rule_kinds[rule]->step(r, j, fabs(x[j] - r->seen.last[j]), time);
        r->counted[j] = rules_stirs(r, j, x[j]) ? rules_assess(r, j, x[j], time) : x[j];
    }
}

/* Ends a block. Order: the rules first, while records.now still has the block; then the records, which read
 * the clock; the clock last. */
static void rules_end_block(struct svi_rules *r) {
    for (int rule = 0; rule < SVI_RULES; rule++)
        if (svi_rule_kinds[rule]->block)
            svi_rule_kinds[rule]->block(r);
    for (int side = SVI_RULES_UP; side < (rules_has_steps(r) ? SVI_RULES_SIDES : SVI_RULES_STEP); side++)
        svi_records_end_block(&r->records, &r->clock, svi_rules_series(r, side, 0), r->d);
    for (int j = 0; j < r->d; j++)
        for (int side = SVI_RULES_UP; !(r->kind[j] & SVI_RULES_JUDGED) && side < r->sides; side++)
            r->records.check[svi_rules_series(r, side, j)] = INFINITY; /* not judged: never needs a check */
    svi_records_clock_turn(&r->clock);
}

/* Writes gaps as NaN into r->row and updates their lengths. Returns the row to continue with: x itself if
 * neither this row nor the last has a gap. The row after a gap must come here too, since that is where the
 * gap ends. */
static const double *rules_gaps(struct svi_rules *r, const double *x, const uint8_t *gaps, int d,
                                double time) {
    if (!gaps && r->gap_count == 0)
        return x;
    r->gap_count = 0;
    for (int j = 0; r->unlearned && j < d; j++)
        if (!(gaps && gaps[j]) && svi_unlearned_has(r->unlearned, j))
            r->gap[j] = 0; /* the end of a gap that does not count as seen */
    for (int j = 0; j < d; j++) {
        const bool missing = gaps && gaps[j];
        r->row[j] = missing ? NAN : x[j];
        r->gap_count += missing;
    }
    for (int rule = 0; rule < SVI_RULES; rule++)
        if (svi_rule_kinds[rule]->gaps)
            svi_rule_kinds[rule]->gaps(r, gaps, d, time);
    return r->row;
}

/* How far out the worst value of a member is: in widths of the limits or of the earlier range, and in widths
 * of all that was seen, if it lies beyond that. A value beyond both a limit and its range is thus one thing.
 * An open side of the limits leaves the range of the sensor as the measure. */
static double rules_ranges(const struct svi_rules *r, const struct svi_rules_member *m) {
    const double width = m->high - m->low, range = svi_rules_range(r, m->feature);
    const double ranges = m->excess / (isfinite(width) && width > 0 ? width : range);
    if (svi_rule_kinds[m->rule]->step || r->seen.values[m->feature] < MIN_VALUES || !(range > 0))
        return ranges;
    const double up = svi_rules_most(r, SVI_RULES_UP, m->feature);
    const double down = svi_rules_most(r, SVI_RULES_DOWN, m->feature);
    return fmax(ranges, fmax(m->value - up, -m->value - down) / range);
}

enum svi_severity svi_rules_severity(const struct svi_rules *r, const struct svi_rules_alert *a,
                                     double time) {
    enum svi_severity highest = a->severity;
    for (int i = 0; i < r->open_count; i++) {
        const struct svi_rules_member *m = &r->open[i];
        const struct svi_rule_kind *k = svi_rule_kinds[m->rule];
        const bool timed = k->lasts || k->of_stream;
        if (m->alert < 0 || &r->alerts[m->alert] != a || (timed && m->well > 0))
            continue;
        if (m->rest)
            return a->severity;
        const enum svi_severity of = timed ? svi_alert_severity_of_seconds(time - m->since)
                                           : svi_alert_severity_of_ranges(rules_ranges(r, m));
        highest = of > highest ? of : highest;
    }
    return highest;
}

/* An alert that has become more severe is reported again, once, with all that waited. */
static void rules_grade(struct svi_rules *r, double time) {
    struct svi_rules_alert *a;
    uint64_t seen = 0;
    for (int i = 0; (a = rules_next_open(r, &i, &seen));) {
        const enum svi_severity now = svi_rules_severity(r, a, time);
        if (now <= a->severity)
            continue;
        a->severity = now;
        a->joined_at = a->waits ? r->elapsed : a->joined_at;
        a->waits = false;
        rules_update(r, a);
        for (int k = 0; k < r->open_count; k++)
            if (r->open[k].alert >= 0 && &r->alerts[r->open[k].alert] == a)
                r->open[k].shown = r->open[k].excess;
    }
}

/* Takes what a row must not teach out of it: its values, and the ends of runs and gaps, which would count as
 * the longest ones seen. To be called before the row is counted. */
static void rules_pass_over(struct svi_rules *r, const double *x, int d) {
    for (int j = 0; j < d; j++) {
        if (!svi_unlearned_has(r->unlearned, j))
            continue;
        r->seen.run[j] = x[j] == x[j] && x[j] != r->seen.last[j] ? 0 : r->seen.run[j];
        r->counted[j] = NAN;
    }
}

/* True: nothing is beyond a bound, and the row has been added to what was seen. Nearly every row
 * passes. While something is reported or held back, a stricter condition applies: no value may be
 * above its record (`most`, not `check`). Then no column has any work for rules_assess, and a value
 * above the record of a reported sensor stays out. */
static bool rules_passes(struct svi_rules *r, const double *x, int d, double time) {
    for (int rule = 0; r->holding > 0 && rule < SVI_RULES; rule++)
        if (svi_rule_kinds[rule]->follow)
            svi_rule_kinds[rule]->follow(r, x, d, time);
    const double *beyond = r->open_count + r->holding > 0 ? r->records.most : r->records.check;
    if (r->open_count > 0)
        rules_watch(r, x, time);
    if (r->unlearned)
        return false;
    return r->kernels->columns_pass(&r->seen, beyond, r->records.now, x, time, d,
                                    rules_has_steps(r) ? SVI_RULES_SIDES : SVI_RULES_STEP);
}

void svi_rules_row(struct svi_rules *r, const double *x, const uint8_t *gaps, int d, double time,
                   double arrival) {
    if (!r->any)
        return;
    /* The arrival first: it may end a silence, whose member rules_watch then counts as well. */
    d = d < r->d ? d : r->d;
    svi_rules_arrive(r, arrival);
    if (r->rows++ == 0)
        r->first = r->time = time;
    r->elapsed += r->row_seconds > 0 ? r->row_seconds : fmax(0, time - r->time);
    x = rules_gaps(r, x, gaps, d, time);
    if (!rules_passes(r, x, d, time)) {
        rules_assess_all(r, x, d, time);
        if (r->unlearned)
            rules_pass_over(r, x, d);
        /* SVI_RULES_STEP sides, up and down: the rule has already entered the steps that count as seen. */
        r->kernels->columns_seen(&r->seen, r->records.now, r->counted, x, time, d, SVI_RULES_STEP);
    }
    if (r->open_count > 0)
        rules_grade(r, time);
    /* Until here r->time was the time of the row before, which gaps are dated by. */
    r->time = time;
    if (svi_records_clock_row(&r->clock))
        rules_end_block(r);
}

/* ---- what to report */

/* The first alert with a change, among closes or among all others; *rule: its rule, from the place. */
static struct svi_rules_alert *rules_pending(struct svi_rules *r, bool closes, enum svi_rule *rule) {
    for (int i = 0; r->alerts && i < ALERTS; i++) {
        struct svi_rules_alert *a = &r->alerts[i];
        if (a->change == SVI_ALERT_NONE || (a->change == SVI_ALERT_CLOSE) != closes)
            continue;
        *rule = (enum svi_rule)(i / SVI_RULES_ALERTS);
        if (!closes || a->number > 0)
            return a;
        *a = (struct svi_rules_alert){0}; /* opened and closed without a report in between: never reported */
    }
    return NULL;
}

struct svi_rules_alert *svi_rules_next(struct svi_rules *r, enum svi_rule *rule,
                                       const struct svi_rules_member *top[SVI_RULES_TOP], int *count) {
    /* Closes first: each frees a place, and the line of an open does not precede the close of the fault
     * before it. */
    struct svi_rules_alert *a = r->changed ? rules_pending(r, true, rule) : NULL;
    *count = 0;
    if (!a && r->changed)
        a = rules_pending(r, false, rule);
    r->changed = a != NULL;
    for (int i = 0; a && i < r->open_count && *count < SVI_RULES_TOP; i++)
        if (r->open[i].alert >= 0 && &r->alerts[r->open[i].alert] == a)
            top[(*count)++] = &r->open[i];
    for (int i = 0; a && i < SVI_RULES_TOP; i++)
        a->features[i] = i < *count ? top[i]->feature : -1;
    if (a)
        a->reported = a->severity;
    return a;
}

const struct svi_rules_alert *svi_rules_reporting(const struct svi_rules *r, int feature, int64_t but,
                                                  enum svi_rule *rule) {
    for (int i = 0; r->alerts && feature >= 0 && i < ALERTS; i++)
        for (int k = 0; r->alerts[i].number > 0 && r->alerts[i].number != but && k < SVI_RULES_TOP; k++)
            if (r->alerts[i].features[k] == feature) {
                *rule = (enum svi_rule)(i / SVI_RULES_ALERTS);
                return &r->alerts[i];
            }
    return NULL;
}

static struct svi_rules_alert *rules_numbered(const struct svi_rules *r, int64_t number) {
    for (int i = 0; r->alerts && number > 0 && i < ALERTS; i++)
        if (r->alerts[i].number == number)
            return &r->alerts[i];
    return NULL;
}

const struct svi_rules_alert *svi_rules_numbered(const struct svi_rules *r, int64_t number) {
    return rules_numbered(r, number);
}

void svi_rules_renumber(struct svi_rules *r, int64_t number, int64_t to) {
    struct svi_rules_alert *a = rules_numbered(r, number);
    if (a)
        a->number = to;
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

/* ---- the clock */

/* Times at or before `from` were read from another clock and stay. */
static void rules_shift(double *time, double from, double step) {
    if (*time > from)
        *time += step;
}

/* Alerts of silence have arrival times, all others times of rows; the two clocks move separately. */
static void rules_move_alerts(struct svi_rules *r, bool silent, double from, double step) {
    for (int i = 0; i < r->open_count; i++)
        if ((r->open[i].feature < 0) == silent)
            rules_shift(&r->open[i].since, from, step);
    for (int i = 0; r->alerts && i < ALERTS; i++)
        if (svi_rule_kinds[i / SVI_RULES_ALERTS]->of_stream == silent) {
            rules_shift(&r->alerts[i].since, from, step);
            rules_shift(&r->alerts[i].opened, from, step);
        }
}

void svi_rules_move_times(struct svi_rules *r, double from, double step) {
    rules_shift(&r->first, from, step);
    rules_shift(&r->time, from, step);
    for (int j = 0; j < r->d; j++) {
        rules_shift(&r->seen.changed_at[j], from, step);
        rules_shift(&r->last_value_time[j], from, step);
        rules_shift(&r->held_since[j], from, step);
    }
    for (int i = 0; i < r->open_count; i++) {
        rules_shift(&r->open[i].well_since, from, step);
        rules_shift(&r->open[i].held_since, from, step);
    }
    rules_move_alerts(r, false, from, step);
}

void svi_rules_move_arrival(struct svi_rules *r, double step) {
    r->arrived += step;
    rules_move_alerts(r, true, -INFINITY, step);
}

/* ---- archive */

static void rules_archive_severity(struct svi_archive *a, const char *name, enum svi_severity *severity) {
    int value = (int)*severity;
    svi_archive_int(a, name, &value, 0, SVI_SEVERITY_SERIOUS);
    *severity = svi_archive_ok(a) ? (enum svi_severity)value : SVI_SEVERITY_NOTICE;
}

static void rules_archive_member(struct svi_archive *a, struct svi_rules *r, struct svi_rules_member *m) {
    svi_archive_int(a, "rule", &m->rule, 0, SVI_RULES - 1);
    svi_archive_int(a, "feature", &m->feature, -1, r->d - 1);
    svi_archive_int(a, "place", &m->alert, -1, ALERTS - 1);
    svi_archive_int64(a, "held", &m->held, 0, SVI_COUNT_MAX);
    svi_archive_double(a, "held since", &m->held_since);
    svi_archive_int64(a, "since row", &m->since_row, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "bad", &m->bad, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "well", &m->well, 0, SVI_COUNT_MAX);
    svi_archive_double(a, "well since", &m->well_since);
    svi_archive_double(a, "since", &m->since);
    svi_archive_double(a, "value", &m->value);
    svi_archive_double(a, "low", &m->low);
    svi_archive_double(a, "high", &m->high);
    svi_archive_double(a, "excess", &m->excess);
    svi_archive_double(a, "shown", &m->shown);
    svi_archive_double(a, "lasted", &m->rows);
    svi_archive_bool(a, "rest", &m->rest);
    if (!svi_archive_ok(a)) /* then m->rule may be out of range */
        return;
    const struct svi_rule_kind *k = svi_rule_kinds[m->rule];
    svi_archive_check(a, (m->feature < 0) == k->of_stream, "a rule has the wrong subject");
    svi_archive_check(a, !k->step || r->sides == SVI_RULES_SIDES, "a step has no record");
}

static void rules_archive_alert(struct svi_archive *a, struct svi_rules *r, struct svi_rules_alert *alert) {
    svi_archive_bool(a, "open", &alert->open);
    if (!alert->open)
        return;
    svi_archive_int64(a, "number", &alert->number, 1, SVI_COUNT_MAX);
    svi_archive_double(a, "since", &alert->since);
    svi_archive_int64(a, "since row", &alert->since_row, 0, SVI_COUNT_MAX);
    svi_archive_double(a, "opened", &alert->opened);
    svi_archive_finite(a, "reported at", &alert->reported_at, 1);
    svi_archive_finite(a, "joined at", &alert->joined_at, 1);
    svi_archive_bool(a, "waits", &alert->waits);
    rules_archive_severity(a, "severity", &alert->severity);
    rules_archive_severity(a, "severity reported", &alert->reported);
    svi_archive_ints(a, "features", alert->features, SVI_RULES_TOP, -1, SVI_RULES_FEATURES);
    svi_archive_int(a, "members", &alert->members, 1, r->d + 1);
    svi_archive_int(a, "total", &alert->total, 1, INT32_MAX / 2);
    svi_archive_int(a, "first", &alert->first, -1, r->d - 1);
}

static bool rules_archive_reserve_open(struct svi_archive *a, struct svi_rules *r, int count) {
    if (!rules_reserve_open(r, count))
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the alerts of rules");
    return svi_archive_ok(a);
}

/* Alerts, then members. Loading checks what the rest of this file relies on: each member has an open alert,
 * none occurs twice, and `members` of each alert is right. open_rules[] is not archived but rebuilt from the
 * members. */
static void rules_archive_open(struct svi_archive *a, struct svi_rules *r) {
    int silent = 0, of[ALERTS] = {0}, count = r->open_count;
    static const struct svi_rules_alert none = {0};
    for (int i = 0; i < ALERTS && svi_archive_ok(a); i++) {
        struct svi_rules_alert alert = r->alerts ? r->alerts[i] : none;
        rules_archive_alert(a, r, &alert);
        if (!svi_archive_loading(a) || !alert.open || !svi_archive_ok(a))
            continue;
        if (rules_archive_reserve_open(a, r, r->open_capacity))
            r->alerts[i] = alert;
    }
    svi_archive_int(a, "sensors", &count, 0, rules_max_members(r->seen.capacity));
    if (svi_archive_ok(a) && svi_archive_loading(a) && count > 0)
        (void)rules_archive_reserve_open(a, r, count);
    r->open_count = svi_archive_ok(a) ? count : 0;
    for (int i = 0; i < r->open_count && svi_archive_ok(a); i++) {
        const struct svi_rules_member *m = &r->open[i];
        rules_archive_member(a, r, &r->open[i]);
        if (!svi_archive_ok(a))
            return;
        if (m->alert >= 0)
            of[m->alert]++;
        if (!svi_archive_loading(a))
            continue;
        silent += m->feature < 0;
        const bool twice = m->feature < 0 ? silent > 1 : svi_rules_has(r, m->rule, m->feature);
        if (svi_archive_check(a, !twice, "a rule is of a sensor twice") && m->feature >= 0)
            r->open_rules[m->feature] |= (uint8_t)(1U << m->rule);
    }
    for (int i = 0; i < ALERTS && svi_archive_ok(a); i++)
        svi_archive_check(a, of[i] == (r->alerts && r->alerts[i].open ? r->alerts[i].members : 0),
                          "the sensors of an alert do not match");
}

/* Loading: capacity for `used`, after checks that a damaged archive cannot ask for more memory than it has
 * bytes for. Rules that grow take only its sides, so that the next save has the same bytes. */
static bool rules_archive_reserve(struct svi_archive *a, struct svi_rules *r, struct rules_dims used) {
    const int64_t values = (int64_t)(svi_arrays_bytes(&rules_arrays, used.of) / sizeof(double));
    if (!svi_archive_check(a, used.of[PARTS] >= SVI_RULES_STEP || r->d == 0, "the columns have no records") ||
        !svi_archive_check(a, r->rows > 0 || r->d == 0, "there are columns without a row") ||
        !svi_archive_check(a, values <= svi_archive_left(a), "the columns are truncated"))
        return false;
    const struct rules_dims to = rules_dims_for(r, r->d, used.of[PARTS]);
    if (r->rows == 0 || to.of[COLUMNS] < 1)
        return true;
    return (r->grows || rules_archive_reserve_open(a, r, rules_max_members(to.of[COLUMNS]))) &&
           rules_resize(r, to, a->err) == SVS_OK;
}

void svi_rules_archive(struct svi_archive *a, struct svi_rules *r) {
    int sides = r->sides;
    svi_archive_int(a, "columns", &r->d, 0, SVI_RULES_FEATURES);
    svi_archive_int(a, "sides", &sides, 0, SVI_RULES_SIDES);
    svi_archive_int64(a, "opened", &r->opened, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "rows", &r->rows, 0, SVI_COUNT_MAX);
    svi_archive_double(a, "first", &r->first);
    svi_archive_double(a, "time", &r->time);
    svi_archive_finite(a, "elapsed", &r->elapsed, 1);
    svi_archive_double(a, "missing now", &r->gap_count);
    svi_archive_bool(a, "left out", &r->left_out);
    svi_archive_int64(a, "state row", &r->state_row, 0, SVI_COUNT_MAX);
    svi_records_clock_archive(a, &r->clock);
    if (!svi_archive_ok(a))
        return;
    const struct rules_dims used = {{r->d, r->clock.blocks, sides}};
    if (svi_archive_loading(a) && !rules_archive_reserve(a, r, used))
        return;
    svi_arrays_archive(a, &rules_arrays, r, rules_dims(r).of, used.of);
    svi_archive_int(a, "judged", &r->judged, 0, r->d);
    r->holding = 0;
    for (int j = 0; svi_archive_ok(a) && j < r->d; j++)
        r->holding += r->hits[j] != 0;
    if (svi_archive_ok(a))
        rules_archive_open(a, r);
}
