/* The frame of the plain rules: members, alerts, what is reported next, the archive, the pass over a row.
 * What a rule looks for and says is in its file, rule_NAME.c, and reaches the frame by its row
 * (rules_internal.h).
 *
 * A row is looked at without a branch a column (linalg/kernels.h: columns_pass); it is almost always within
 * all bounds, and is then made part of what was seen by the same call. Otherwise rules_look_all goes through
 * the columns one by one, lets the rules open what there is to open and takes out of a copy of the row what
 * must not count as seen.
 *
 * What is reported is a member: a sensor under a rule. Members of a rule that opened together share an alert.
 * The list of members is short, and only they are looked at again in each row (rules_watch).
 *
 * Invariants: told[j] has bit `rule` if and only if there is one member (rule, j); an alert is open if and
 * only if it has members; what is beyond is never part of the records while its sensor is reported. */
#include "alerts/rules_internal.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"

#define ALERTS (SVI_RULES * SVI_RULES_ALERTS)

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
    SVI_ARRAY_WITH(OWNER, gone, "gone", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, records.most, "most", SVI_ARRAY_ANY, -INFINITY, A_SIDE),
    SVI_ARRAY_WITH(OWNER, records.now, "now", SVI_ARRAY_ANY, -INFINITY, A_SIDE),
    SVI_ARRAY_WITH(OWNER, records.check, "check", SVI_ARRAY_ANY, -INFINITY, A_SIDE),
    SVI_ARRAY_WITH(OWNER, records.suspect, "suspect", SVI_ARRAY_ANY, -INFINITY, A_SIDE),
    SVI_ARRAY_WITH(OWNER, records.blocks, "blocks", SVI_ARRAY_ANY, -INFINITY, A_SIDE, SVI_AXIS(BLOCKS)),
    SVI_ARRAY_WITH(OWNER, row, NULL, SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, kind, "kinds", SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, told, NULL, SVI_ARRAY_ANY, 0, A_COLUMN),
    SVI_ARRAY_WITH(OWNER, gaps, NULL, SVI_ARRAY_ANY, 0, A_COLUMN),
};
static const struct svi_arrays rules_arrays = SVI_ARRAYS(arrays, "the rules of the features");

struct rules_dims {
    int32_t of[DIMS];
};

static struct rules_dims rules_dims(const struct svi_rules *r) {
    return (struct rules_dims){{r->seen.capacity, r->records.width, r->sides}};
}

/* Of `room` columns or a few more. Rules that grow have blocks for the next rows and the sides that are
 * needed, the others all that there may be. */
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
    r->open_capacity = 0;
}

void svi_rules_clear(struct svi_rules *r) {
    svi_arrays_free(&rules_arrays, r);
    rules_free_open(r);
    r->seen.capacity = r->records.width = r->sides = 0;
    rules_forget(r);
}

/* Room for that many members, and for alerts. */
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
    if (!r->grows && wanted <= r->seen.capacity && r->alerts &&
        r->open_capacity >= rules_most_members(r->seen.capacity))
        return SVS_OK; /* at nearly every row: those have all sides */
    const int sides = r->steps || r->sides == SVI_RULES_SIDES ? SVI_RULES_SIDES : SVI_RULES_STEP;
    const struct rules_dims to =
        rules_dims_for(r, wanted > r->seen.capacity ? wanted : r->seen.capacity, sides);
    if (!r->any || to.of[COLUMNS] < 1)
        return SVS_OK;
    if (r->grows && r->alerts && rules_none_open(r))
        rules_free_open(r);
    if (!r->grows && !rules_reserve_open(r, rules_most_members(to.of[COLUMNS])))
        return svi_fail_memory(err, rules_arrays.what);
    return rules_resize(r, to, err);
}

double svi_rules_memory(const struct svi_settings *s, int d) {
    struct svi_rules r;
    svi_rules_init(&r, svi_settings_keyed(s));
    svi_rules_configure(&r, s);
    r.clock.blocks = SVI_RECORDS_BLOCKS - 1;
    const struct rules_dims most = rules_dims_for(&r, d < SVI_RULES_FEATURES ? d : SVI_RULES_FEATURES,
                                                  r.steps ? SVI_RULES_SIDES : SVI_RULES_STEP);
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

struct svi_rules_member *svi_rules_member(const struct svi_rules *r, int rule, int feature) {
    for (int i = 0; i < r->open_count; i++)
        if (r->open[i].rule == rule && r->open[i].feature == feature)
            return &r->open[i];
    return NULL;
}

/* Whether steps are looked at; room for them comes with a row. */
static bool rules_has_steps(const struct svi_rules *r) {
    return r->steps && r->sides == SVI_RULES_SIDES;
}

static void rules_change(struct svi_rules *r, struct svi_rules_alert *a, enum svi_alert_change change) {
    a->change = change == SVI_ALERT_CLOSE || a->change == SVI_ALERT_NONE ? change : a->change;
    r->changed = true;
}

/* A member is removed; with the last one its alert closes. */
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
    if (!r->any || feature >= r->seen.capacity)
        return;
    for (int rule = 0; rule < SVI_RULES; rule++) {
        struct svi_rules_member *m = svi_rules_member(r, rule, feature);
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
    r->any = r->steps = false;
    for (int rule = 0; rule < SVI_RULES; rule++) {
        r->any = r->any || r->o.on[rule];
        r->steps = r->steps || (r->o.on[rule] && svi_rule_kinds[rule]->step);
    }
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

struct svi_rules_member *svi_rules_add(struct svi_rules *r, int rule, int feature, double since,
                                       double time) {
    const int capacity = r->open_count < r->open_capacity ? r->open_capacity : 2 * r->open_count + 2;
    const int at = rules_reserve_open(r, capacity) ? rules_alert(r, rule, time) : -1;
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

void svi_rules_bad(struct svi_rules *r, struct svi_rules_member *m, double value, double excess) {
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

/* ---- a row */

/* One column of a row that stirs. Returns its value where it counts as seen, else NAN. */
static double rules_look(struct svi_rules *r, int j, double v, double time) {
    bool out = false;
    for (int rule = 0; rule < SVI_RULES; rule++) {
        const struct svi_rule_kind *k = svi_rule_kinds[rule];
        if (k->look)
            out = k->look(r, j, v, time) || out;
    }
    return out ? NAN : v;
}

/* The members that were added before this row: worse, or well for long enough. It runs before the row is
 * looked at, so that a value which ends one alert can open the next. */
static void rules_watch(struct svi_rules *r, const double *x, double time) {
    for (int i = r->open_count - 1; i >= 0; i--) { /* from the end: a member may leave the list */
        struct svi_rules_member *m = &r->open[i];
        const struct svi_rule_kind *k = svi_rule_kinds[m->rule];
        double value = m->feature < 0 ? 0 : x[m->feature];
        const double bad = k->badness ? k->badness(r, m, &value) : 0;
        if (bad > 0 && k->lasts) {
            m->rows++;
            m->well = 0;
        } else if (bad > 0) {
            svi_rules_bad(r, m, value, bad);
            if (k->normal_after == 0 || m->bad < k->normal_after)
                continue;
            r->alerts[m->alert].settled = true;
            k->leaves(r, m, true);
            rules_leave(r, m);
        } else if (bad == 0) { /* NAN: the row says nothing of it */
            if (k->recovers && m->well == 0)
                k->recovers(r, m);
            if (!rules_is_well(m, time))
                continue;
            if (k->leaves)
                k->leaves(r, m, false);
            rules_leave(r, m);
        }
    }
}

/* Is there anything for rules_look? */
static bool rules_stirs(const struct svi_rules *r, int j, double v) {
    const struct svi_column_seen *c = &r->seen;
    const double *most = r->records.most;
    return v > most[j] || -v > most[svi_rules_series(r, SVI_RULES_DOWN, j)] || v < c->low[j] ||
           v > c->high[j] || (v == c->last[j] && c->run[j] >= c->patient[j]);
}

/* Opens what there is to open, and leaves in r->row the row without what must not count as seen. The steps of
 * a row are looked at in each of its columns, for rules_stirs does not see them. */
static void rules_look_all(struct svi_rules *r, const double *x, int d, double time) {
    const bool steps = rules_has_steps(r);
    for (int j = 0; j < d; j++) {
        for (int rule = 0; steps && rule < SVI_RULES; rule++)
            if (r->o.on[rule] && svi_rule_kinds[rule]->step)
                svi_rule_kinds[rule]->step(r, j, fabs(x[j] - r->seen.last[j]), time);
        r->row[j] = rules_stirs(r, j, x[j]) ? rules_look(r, j, x[j], time) : x[j];
    }
}

/* The rules first, while records.now still has the block; then the records; the clock last, for the records
 * go by where it stood. */
static void rules_end_block(struct svi_rules *r) {
    for (int rule = 0; rule < SVI_RULES; rule++)
        if (svi_rule_kinds[rule]->block)
            svi_rule_kinds[rule]->block(r);
    for (int side = SVI_RULES_UP; side < (rules_has_steps(r) ? SVI_RULES_SIDES : SVI_RULES_STEP); side++)
        svi_records_end_block(&r->records, &r->clock, svi_rules_series(r, side, 0), r->d);
    for (int j = 0; j < r->d; j++)
        for (int side = SVI_RULES_UP; !(r->kind[j] & SVI_RULES_JUDGED) && side < r->sides; side++)
            r->records.check[svi_rules_series(r, side, j)] = INFINITY; /* nothing is looked at */
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
    }
    for (int rule = 0; rule < SVI_RULES; rule++)
        if (svi_rule_kinds[rule]->gaps)
            svi_rule_kinds[rule]->gaps(r, gaps, d, time);
    return r->row;
}

/* Nearly every row: nothing is beyond, all of it counts as seen. While something is reported that takes more:
 * no value is above its record, so that rules_look would do nothing for any column, and its members alone are
 * looked at. */
static bool rules_passes(struct svi_rules *r, const double *x, int d, double time) {
    const double *beyond = r->open_count > 0 ? r->records.most : r->records.check;
    if (r->open_count > 0)
        rules_watch(r, x, time);
    return r->kernels->columns_pass(&r->seen, beyond, r->records.now, x, time, d,
                                    rules_has_steps(r) ? SVI_RULES_SIDES : SVI_RULES_STEP);
}

void svi_rules_row(struct svi_rules *r, const double *x, const uint8_t *gaps, int d, double time,
                   double arrival) {
    if (!r->any)
        return;
    d = d < r->d ? d : r->d;
    svi_rules_arrive(r, arrival);
    if (r->rows++ == 0)
        r->first = r->time = time;
    x = rules_gaps(r, x, gaps, d, time);
    if (!rules_passes(r, x, d, time)) {
        rules_look_all(r, x, d, time);
        /* Two sides: steps that count as seen are in their records by now. */
        r->kernels->columns_seen(&r->seen, r->records.now, r->row, x, time, d, SVI_RULES_STEP);
    }
    r->time = time;
    if (svi_records_clock_row(&r->clock))
        rules_end_block(r);
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
    if (!svi_archive_ok(a)) /* the number of its rule may be any */
        return;
    const struct svi_rule_kind *k = svi_rule_kinds[m->rule];
    svi_archive_check(a, (m->feature < 0) == k->of_stream, "a rule is of something else");
    svi_archive_check(a, !k->step || r->sides == SVI_RULES_SIDES, "a step is of no record");
}

static void rules_archive_alert(struct svi_archive *a, struct svi_rules *r, struct svi_rules_alert *alert) {
    svi_archive_bool(a, "open", &alert->open);
    if (!alert->open)
        return;
    svi_archive_int64(a, "number", &alert->number, 1, SVI_COUNT_MAX);
    svi_archive_double(a, "since", &alert->since);
    svi_archive_double(a, "opened", &alert->opened);
    svi_archive_int(a, "members", &alert->members, 1, r->d + 1);
    svi_archive_int(a, "total", &alert->total, 1, INT32_MAX / 2);
    svi_archive_int(a, "first", &alert->first, -1, r->d - 1);
}

static bool rules_archive_reserve_open(struct svi_archive *a, struct svi_rules *r, int count) {
    if (!rules_reserve_open(r, count))
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the alerts of rules");
    return svi_archive_ok(a);
}

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
    svi_archive_int(a, "sensors", &count, 0, rules_most_members(r->seen.capacity));
    if (svi_archive_ok(a) && svi_archive_loading(a) && count > 0)
        (void)rules_archive_reserve_open(a, r, count);
    r->open_count = svi_archive_ok(a) ? count : 0;
    for (int i = 0; i < r->open_count && svi_archive_ok(a); i++) {
        const struct svi_rules_member *m = &r->open[i];
        rules_archive_member(a, r, &r->open[i]);
        if (!svi_archive_ok(a))
            return;
        of[m->alert]++;
        if (!svi_archive_loading(a))
            continue;
        silent += m->feature < 0;
        const bool twice = m->feature < 0 ? silent > 1 : svi_rules_has(r, m->rule, m->feature);
        if (svi_archive_check(a, !twice, "a rule is of a sensor twice") && m->feature >= 0)
            r->told[m->feature] |= (uint8_t)(1U << m->rule);
    }
    for (int i = 0; i < ALERTS && svi_archive_ok(a); i++)
        svi_archive_check(a, of[i] == (r->alerts && r->alerts[i].open ? r->alerts[i].members : 0),
                          "the sensors of an alert are others");
}

/* Room for what is archived: no more sides than those, so that it is archived again as it was. */
static bool rules_archive_reserve(struct svi_archive *a, struct svi_rules *r, struct rules_dims used) {
    const int64_t values = (int64_t)(svi_arrays_bytes(&rules_arrays, used.of) / sizeof(double));
    if (!svi_archive_check(a, used.of[PARTS] >= SVI_RULES_STEP || r->d == 0, "the columns have no records") ||
        !svi_archive_check(a, r->rows > 0 || r->d == 0, "there are columns without a row") ||
        !svi_archive_check(a, values <= svi_archive_left(a), "the columns are truncated"))
        return false;
    const struct rules_dims to = rules_dims_for(r, r->d, used.of[PARTS]);
    if (r->rows == 0 || to.of[COLUMNS] < 1)
        return true;
    return (r->grows || rules_archive_reserve_open(a, r, rules_most_members(to.of[COLUMNS]))) &&
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
    svi_archive_double(a, "missing now", &r->gap_count);
    svi_archive_bool(a, "left out", &r->left_out);
    svi_records_clock_archive(a, &r->clock);
    if (!svi_archive_ok(a))
        return;
    const struct rules_dims used = {{r->d, r->clock.blocks, sides}};
    if (svi_archive_loading(a) && !rules_archive_reserve(a, r, used))
        return;
    svi_arrays_archive(a, &rules_arrays, r, rules_dims(r).of, used.of);
    svi_archive_int(a, "judged", &r->judged, 0, r->d);
    if (svi_archive_ok(a))
        rules_archive_open(a, r);
}
