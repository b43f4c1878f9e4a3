/* The rule `beyond`: a value beyond all earlier ones of the sensor. The rule `rate`: the same for steps.
 *
 * A value beyond the bound of the tail (records.h) is reported at once. That margin can exceed the
 * range of the sensor, so values a part of the range outside (beyond_share) are gross as well. They
 * are held back, do not count as seen, and are reported when HITS of the last WINDOW were gross.
 *
 * A young sensor has not shown all its states, and only the range counts. New states are not
 * reported, but count as seen. They are a fall towards zero, a jump of a sensor that rarely
 * changes, and jumps of several sensors. A jump to REST_FACTOR times all earlier values is one too
 * if it lasts and moves (the code of an error does not move). What is left is one sensor that jumps
 * alone. A later stop is a notice.
 *
 * What is reported does not count as seen, so that one fault does not mask the next. It does once
 * it was reported or held back twice (a stop: once), or has lasted ROWS_UNTIL_NORMAL rows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "alerts/rules_internal.h"

#define ROWS_UNTIL_NORMAL 1000
#define FEWEST            64   /* values before the range of a sensor says anything */
#define SURE              3.0  /* ranges outside: one value is enough */
#define SPIKE             5.0  /* times the margin, and SURE: a spike of the first day */
#define FLOOR             0.01 /* least margin, in ranges */
#define STEPS             2    /* least margin, in steps of the resolution */
#define HITS              3    /* gross values that are reported */
#define WINDOW            5    /* values among which they are counted: the bits 0 to 4 of hits[] */
#define RARE              20   /* a sensor that changes less than once in this many values is a switch */
#define TOGETHER          60   /* rows for which a jump belongs to the new state of another sensor */
#define REST_FACTOR       20   /* times its largest magnitude: the jump of a machine that starts */
#define REST_HITS         0x7f /* hits[] after which such a jump lasts */
#define BOTH              0x80 /* a flag of hits[]: above and below the range, as in no state of a machine */
#define LEVEL_SLACK       0.1  /* ranges below zero that are still a fall to zero */

/* The margin in ranges after n >= FEWEST values: linear in log n between the points, constant after
 * the last. */
static double beyond_share(double n) {
    static const struct {
        double rows, share;
    } points[] = {{FEWEST, 2}, {128, 1}, {512, 0.6}, {SVI_RULES_OLD, 0.5}, {20000, 1.0 / 3}};
    const int last = (int)(sizeof points / sizeof *points) - 1;
    int i = 1;
    while (i < last && n > points[i].rows)
        i++;
    const double from = points[i - 1].rows, to = fmin(n, points[i].rows);
    return points[i - 1].share +
           (points[i].share - points[i - 1].share) * log(to / from) / log(points[i].rows / from);
}

/* By how much a value exceeds the record of its side; negative: it lies within both. */
static double beyond_excess(const struct svi_rules *r, int j, double v) {
    return fmax(v - svi_rules_most(r, SVI_RULES_UP, j), -v - svi_rules_most(r, SVI_RULES_DOWN, j));
}

static enum svi_rules_side beyond_side(const struct svi_rules *r, int j, double v) {
    return v > svi_rules_most(r, SVI_RULES_UP, j) ? SVI_RULES_UP : SVI_RULES_DOWN;
}

/* Does v fall towards zero, as when a machine stops? */
static bool beyond_falls(const struct svi_rules *r, int j, double v) {
    const double low = -svi_rules_most(r, SVI_RULES_DOWN, j);
    return v < low && low > 0 && v >= -LEVEL_SLACK * svi_rules_range(r, j);
}

/* Is that fall a stop: to rest, or together with another sensor? */
static bool beyond_stops(const struct svi_rules *r, int j, double v) {
    bool others = svi_rules_rests(r, j, v);
    for (int k = 0; !others && k < r->d; k++) {
        const struct svi_rules_member *m =
            k != j && svi_rules_has(r, SVI_RULE_BEYOND, k) ? svi_rules_member(r, SVI_RULE_BEYOND, k) : NULL;
        others = (m && m->rest) || (k != j && r->hits[k] && beyond_falls(r, k, r->held[k]));
    }
    return others && beyond_falls(r, j, v);
}

/* ---- margins */

/* The margins of a record: values beyond `gross` are held back, beyond `sure` reported at once. */
struct beyond_margins {
    double gross, sure;
};

static struct beyond_margins beyond_margins(struct svi_rules *r, enum svi_rules_side side, int j,
                                            double excess) {
    const int series = svi_rules_series(r, side, j);
    const double range = svi_rules_range(r, j), record = svi_rules_most(r, side, j);
    const double share = beyond_share(r->seen.values[j]) * range, least = FLOOR * range;
    struct beyond_margins m = {share, INFINITY};
    if (!svi_rules_young(r, j)) {
        /* The false reports are shared by all series of the rule: values have two sides. */
        const double tail = svi_records_bound(&r->records, &r->clock, series, 2 * r->judged) - record;
        m.sure = fmax(least, fmin(tail, SURE * range));
        m.gross = fmin(m.sure, share);
    }
    m.gross = fmax(least, m.gross);
    if (!(excess > m.gross))
        return m; /* the resolution takes a sort, and can only widen the margin */
    const double steps =
        STEPS * svi_records_step(&r->records, &r->clock, svi_rules_series(r, SVI_RULES_UP, j),
                                 svi_rules_series(r, SVI_RULES_DOWN, j));
    return (struct beyond_margins){fmax(steps, m.gross), fmax(steps, m.sure)};
}

/* ---- opening */

/* A value or step of a member, on the side of a series whose record it exceeds by `excess`. NULL: no place.
 */
static struct svi_rules_member *beyond_add(struct svi_rules *r, enum svi_rules_side side, int j, double shown,
                                           double excess, double since, double time) {
    const bool step = side == SVI_RULES_STEP;
    struct svi_rules_member *m = svi_rules_add(r, step ? SVI_RULE_RATE : SVI_RULE_BEYOND, j, since, time);
    if (!m)
        return NULL;
    m->low = step ? 0 : -svi_rules_most(r, SVI_RULES_DOWN, j);
    m->high = svi_rules_most(r, step ? SVI_RULES_STEP : SVI_RULES_UP, j);
    m->rest = !step && beyond_stops(r, j, shown);
    svi_rules_bad(r, m, shown, excess);
    return m;
}

/* A height counts as seen, on the side on which it is a record. */
static void beyond_take(struct svi_rules *r, int j, double v) {
    const enum svi_rules_side side = beyond_side(r, j, v);
    if (beyond_excess(r, j, v) > 0)
        svi_records_take(&r->records, svi_rules_series(r, side, j), side == SVI_RULES_DOWN ? -v : v);
}

/* How many values ago, of the last ones, the oldest gross value was; 0: none. */
static int beyond_ago(const struct svi_rules *r, int j) {
    const unsigned hits = r->hits[j] & REST_HITS;
    return hits ? 31 - __builtin_clz(hits) : 0;
}

static void beyond_release(struct svi_rules *r, int j) {
    r->holding -= r->hits[j] != 0;
    r->hits[j] = 0;
}

/* The member begins with the oldest gross value, `ago` rows before this one; then nothing is held back. */
static void beyond_report(struct svi_rules *r, struct svi_rules_member *m, int ago) {
    svi_rules_began(r, m, ago);
    beyond_release(r, m->feature);
}

/* ---- states of a machine */

/* Is a gross value of a young sensor a new state of a machine at sight? */
static bool beyond_is_state(const struct svi_rules *r, int j, double v) {
    return beyond_falls(r, j, v) || RARE * r->seen.runs[j] < r->seen.values[j];
}

/* Has a sensor entered a new state a short while ago? */
static bool beyond_settling(const struct svi_rules *r) {
    return r->state_row > 0 && r->rows - r->state_row < TOGETHER;
}

/* Is another sensor jumping as well, or in a state that is new? */
static bool beyond_together(const struct svi_rules *r, int j) {
    bool others = beyond_settling(r);
    for (int k = 0; !others && k < r->d; k++)
        others = k != j && r->hits[k] != 0;
    return others;
}

/* A sensor is in a new state; under a mute that teaches nothing. */
static void beyond_enters_state(struct svi_rules *r, int j) {
    if (!svi_unlearned_has(r->unlearned, j))
        r->state_row = r->rows;
}

/* All sensors whose values are held back are in a new state; j is the one at hand. */
static void beyond_settle_all(struct svi_rules *r, int j) {
    beyond_enters_state(r, j);
    for (int k = 0; k < r->d; k++)
        if (r->hits[k]) {
            if (!svi_unlearned_has(r->unlearned, k))
                beyond_take(r, k, r->held[k]);
            beyond_release(r, k);
        }
}

/* Does v exceed all that a young sensor has shown by far, as when a machine at rest starts? */
static bool beyond_starts(const struct svi_rules *r, int j, double v) {
    const double low = -svi_rules_most(r, SVI_RULES_DOWN, j), high = svi_rules_most(r, SVI_RULES_UP, j);
    return fabs(v) > REST_FACTOR * fmax(fabs(low), fabs(high));
}

/* ---- values that are held back */

static int beyond_hits(const struct svi_rules *r, int j) {
    return __builtin_popcount(r->hits[j] & ((1U << WINDOW) - 1));
}

/* Holds a gross value back, and reports the sensor with the last of HITS. False: it counts as seen after
 * all. */
static bool beyond_hold(struct svi_rules *r, int j, double v, double time) {
    if (!r->hits[j]) {
        r->holding++;
        r->held[j] = v;
        r->held_since[j] = time;
    }
    r->hits[j] |= beyond_side(r, j, v) == beyond_side(r, j, r->held[j]) ? 1 : 1 | BOTH;
    if (beyond_excess(r, j, v) > beyond_excess(r, j, r->held[j]))
        r->held[j] = v;
    if (beyond_hits(r, j) < HITS)
        return true;
    const double held = r->held[j];
    if (svi_rules_young(r, j) && !(r->hits[j] & BOTH)) {
        const bool starts = beyond_starts(r, j, held);
        const bool lasts = r->hits[j] == REST_HITS, moves = r->seen.run[j] < WINDOW;
        if (beyond_together(r, j) || (starts && lasts && moves)) {
            beyond_settle_all(r, j);
            return false;
        }
        if (starts && !lasts)
            return true;
    }
    struct svi_rules_member *m =
        beyond_add(r, beyond_side(r, j, held), j, held, beyond_excess(r, j, held), r->held_since[j], time);
    if (m)
        beyond_report(r, m, beyond_ago(r, j));
    return true;
}

/* No value among the last ones was gross. A spike that no tail explains is reported after all. Any other one
 * counts as seen when it has occurred twice, and at once while a machine is in a new state. Several sensors
 * that leave their range for a row or two have no new state: the row is wrong. */
static void beyond_drained(struct svi_rules *r, int j, double time) {
    const double held = r->held[j], excess = beyond_excess(r, j, held);
    const enum svi_rules_side side = beyond_side(r, j, held);
    const bool young = svi_rules_young(r, j), state = young && beyond_settling(r);
    const double spike = young ? fmax(SURE, SPIKE * beyond_share(r->seen.values[j])) * svi_rules_range(r, j)
                               : beyond_margins(r, side, j, excess).sure;
    const int ago = beyond_ago(r, j) + 1; /* bit 0 is the row before this one */
    beyond_release(r, j);
    const bool learned = !svi_unlearned_has(r->unlearned, j);
    if (state) {
        if (learned)
            beyond_take(r, j, held);
        return;
    }
    struct svi_rules_member *m =
        excess > spike ? beyond_add(r, side, j, held, excess, r->held_since[j], time) : NULL;
    if (m)
        svi_rules_began(r, m, ago);
    else if (learned)
        svi_records_end_reported(&r->records, svi_rules_series(r, side, j),
                                 side == SVI_RULES_DOWN ? -held : held);
}

static void beyond_follow(struct svi_rules *r, const double *x, int d, double time) {
    for (int j = 0; j < d; j++) {
        if (!(r->kind[j] & SVI_RULES_JUDGED))
            beyond_release(r, j); /* a setting has made it a column of the context */
        if (!r->hits[j] || isnan(x[j]))
            continue;
        /* Bit 0 is for the value of this row, which is assessed later. */
        if (r->hits[j] & ((1U << WINDOW) - 1))
            r->hits[j] = (uint8_t)((r->hits[j] & BOTH) | ((r->hits[j] << 1) & REST_HITS));
        else
            beyond_drained(r, j, time);
    }
}

static void beyond_off(struct svi_rules *r) {
    for (int j = 0; r->holding > 0 && j < r->d; j++)
        beyond_release(r, j);
}

/* ---- a value */

/* The value counts as seen, and values up to `bound` need no check again. */
static bool beyond_passes(struct svi_rules *r, enum svi_rules_side side, int j, double bound) {
    if (!svi_unlearned_has(r->unlearned, j))
        r->records.check[svi_rules_series(r, side, j)] = bound;
    return false;
}

static bool beyond_assess(struct svi_rules *r, int j, double v, double time) {
    const double excess = beyond_excess(r, j, v);
    if (!(r->kind[j] & SVI_RULES_JUDGED) || !r->o.on[SVI_RULE_BEYOND] || !(excess > 0))
        return false;
    /* While the sensor is reported, any value above the record stays out, with or without a margin. */
    if (svi_rules_has(r, SVI_RULE_BEYOND, j))
        return true;
    const enum svi_rules_side side = beyond_side(r, j, v);
    const double height = side == SVI_RULES_DOWN ? -v : v, range = svi_rules_range(r, j);
    if (r->seen.values[j] < FEWEST)
        return beyond_passes(r, side, j, height);
    if (!(range > 0)) {
        beyond_enters_state(r, j); /* the first change of a constant */
        return beyond_passes(r, side, j, height);
    }
    const bool young = svi_rules_young(r, j);
    const struct beyond_margins margin = beyond_margins(r, side, j, excess);
    const double record = height - excess;
    if (!(excess > margin.gross)) {
        /* A young sensor's margin falls with each value, but to no less than that of an old one. */
        const double bound =
            record + (young ? fmin(margin.gross, beyond_share(SVI_RULES_OLD) * range) : margin.gross);
        return beyond_passes(r, side, j, fmax(height, bound));
    }
    if (young && beyond_is_state(r, j, v)) {
        beyond_enters_state(r, j);
        return beyond_passes(r, side, j, height);
    }
    /* A fall waits, so that all sensors of a machine that stops are known when the first is reported. */
    if (!(excess > margin.sure) || beyond_falls(r, j, v))
        return beyond_hold(r, j, v, time);
    struct svi_rules_member *m =
        beyond_add(r, side, j, v, excess, r->hits[j] ? r->held_since[j] : time, time);
    if (m)
        beyond_report(r, m, beyond_ago(r, j));
    return true;
}

static double beyond_badness(const struct svi_rules *r, const struct svi_rules_member *m, double *value) {
    return isnan(*value) ? NAN : fmax(0, beyond_excess(r, m->feature, *value));
}

/* Opens an alert if a step is above its bound. True: it is, and must not count as seen. */
static bool rate_open(struct svi_rules *r, int j, double step, double time) {
    const int series = svi_rules_series(r, SVI_RULES_STEP, j);
    const double record = svi_rules_most(r, SVI_RULES_STEP, j);
    if (!(step > record) || !r->o.on[SVI_RULE_RATE] || svi_rules_has(r, SVI_RULE_RATE, j))
        return false;
    const double bound = svi_records_bound(&r->records, &r->clock, series, r->judged);
    r->records.check[series] = bound; /* steps up to it need no check again */
    if (step > bound)
        (void)beyond_add(r, SVI_RULES_STEP, j, step, step - record, time, time);
    return step > bound;
}

/* A step that counts as seen enters its record here: the pass over the row (columns_seen) leaves steps to the
 * rule. A NaN step, with one of the two values missing, compares as false throughout. */
static void rate_step(struct svi_rules *r, int j, double step, double time) {
    double *now = &r->records.now[svi_rules_series(r, SVI_RULES_STEP, j)];
    bool out = false;
    if (r->kind[j] & SVI_RULES_JUDGED) {
        out = rate_open(r, j, step, time);
        out = out || (svi_rules_has(r, SVI_RULE_RATE, j) && step > svi_rules_most(r, SVI_RULES_STEP, j));
    }
    if (!out)
        *now = step > *now ? step : *now;
}

/* The step becomes the value that is reported. */
static double rate_badness(const struct svi_rules *r, const struct svi_rules_member *m, double *value) {
    *value = fabs(*value - r->seen.last[m->feature]);
    return isnan(*value) ? NAN : fmax(0, *value - svi_rules_most(r, SVI_RULES_STEP, m->feature));
}

/* The worst value goes to the records of its side: as part of the past if it became normal, else
 * as reported. */
static void beyond_removed(struct svi_rules *r, struct svi_rules_member *m, bool normal) {
    const bool step = m->rule == SVI_RULE_RATE, up = m->value > m->high;
    const enum svi_rules_side side = step ? SVI_RULES_STEP : up ? SVI_RULES_UP : SVI_RULES_DOWN;
    const int series = svi_rules_series(r, side, m->feature);
    const double v = side == SVI_RULES_DOWN ? -m->value : m->value;
    if (normal)
        svi_records_settle(&r->records, &r->clock, series, v);
    else
        svi_records_end_reported(&r->records, series, v);
    /* A first stop is as good as reported twice. */
    if (m->rest)
        svi_records_end_reported(&r->records, series, v);
}

static void beyond_text(char out[SVI_RULE_PART], const struct svi_rule_words *w) {
    const struct svi_rules_member *m = w->m;
    const struct svi_alert_numbers n = svi_alert_numbers_of(m->value, m->low, m->high, 3);
    snprintf(out, SVI_RULE_PART, "%s %s%s %s (%s)", w->name, n.value, w->unit,
             m->value > m->high ? "above its highest so far" : "below its lowest so far",
             m->value > m->high ? n.high : n.low);
}

static void rate_text(char out[SVI_RULE_PART], const struct svi_rule_words *w) {
    const struct svi_rules_member *m = w->m;
    const struct svi_alert_numbers n = svi_alert_numbers_of(m->value, 0, m->high, 3);
    snprintf(out, SVI_RULE_PART, "%s moved by %s%s in one row (never more than %s before)", w->name, n.value,
             w->unit, n.high);
}

const struct svi_rule_kind svi_rule_beyond = {.normal_after = ROWS_UNTIL_NORMAL,
                                              .again = "within its earlier range again",
                                              .text = beyond_text,
                                              .assess = beyond_assess,
                                              .follow = beyond_follow,
                                              .off = beyond_off,
                                              .forget = beyond_release,
                                              .badness = beyond_badness,
                                              .removed = beyond_removed};

const struct svi_rule_kind svi_rule_rate = {.normal_after = ROWS_UNTIL_NORMAL,
                                            .again = "without jumps again",
                                            .text = rate_text,
                                            .step = rate_step,
                                            .badness = rate_badness,
                                            .removed = beyond_removed};
