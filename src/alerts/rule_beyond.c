/* The rule `beyond`: a value beyond all earlier values of the sensor, by a margin from its own tail
 * (records.h). The rule `rate`: the same for the steps from one row to the next.
 *
 * What is reported does not count as seen, so that one fault does not mask the next. It counts as seen once
 * it has been reported twice (beyond_removed), or has lasted for ROWS_UNTIL_NORMAL rows. */
#include <math.h>
#include <stdio.h>

#include "alerts/rules_internal.h"

#define ROWS_UNTIL_NORMAL 1000

/* Opens an alert if v, a value on a side (negated for the lower one) or a step, is above its bound. `shown`:
 * what is reported for it. True: it is above the bound, and must not count as seen. */
static bool beyond_open(struct svi_rules *r, enum svi_rules_side side, int j, double v, double shown,
                        double time) {
    const bool step = side == SVI_RULES_STEP;
    const int rule = step ? SVI_RULE_RATE : SVI_RULE_BEYOND, series = svi_rules_series(r, side, j);
    const double record = svi_rules_most(r, side, j);
    if (!(v > record) || !r->o.on[rule] || svi_rules_has(r, rule, j))
        return false;
    /* The false reports are shared by all series of the rule: values have two sides, steps have one. */
    const double bound = svi_records_bound(&r->records, &r->clock, series, step ? r->judged : 2 * r->judged);
    r->records.check[series] = bound; /* values up to it need no check again */
    if (!(v > bound))
        return false;
    struct svi_rules_member *m = svi_rules_add(r, rule, j, time, time);
    if (!m) /* not reported for want of a place, but above the bound all the same */
        return true;
    m->low = step ? 0 : -svi_rules_most(r, SVI_RULES_DOWN, j);
    m->high = svi_rules_most(r, step ? SVI_RULES_STEP : SVI_RULES_UP, j);
    svi_rules_bad(r, m, shown, v - record);
    return true;
}

/* By how much a value exceeds the record of its side; negative: it lies within both. */
static double beyond_excess(const struct svi_rules *r, int j, double v) {
    return fmax(v - svi_rules_most(r, SVI_RULES_UP, j), -v - svi_rules_most(r, SVI_RULES_DOWN, j));
}

static bool beyond_assess(struct svi_rules *r, int j, double v, double time) {
    if (!(r->kind[j] & SVI_RULES_JUDGED))
        return false;
    const bool up = beyond_open(r, SVI_RULES_UP, j, v, v, time);
    const bool down = beyond_open(r, SVI_RULES_DOWN, j, -v, v, time);
    /* While the sensor is reported, any value above the record stays out, with or without a bound. */
    return svi_rules_has(r, SVI_RULE_BEYOND, j) ? beyond_excess(r, j, v) > 0 : up || down;
}

static double beyond_badness(const struct svi_rules *r, const struct svi_rules_member *m, double *value) {
    return isnan(*value) ? NAN : fmax(0, beyond_excess(r, m->feature, *value));
}

/* A step that counts as seen enters its record here: the pass over the row (columns_seen) leaves steps to the
 * rule. A NaN step, with one of the two values missing, compares as false throughout. */
static void rate_step(struct svi_rules *r, int j, double step, double time) {
    double *now = &r->records.now[svi_rules_series(r, SVI_RULES_STEP, j)];
    bool out = false;
    if (r->kind[j] & SVI_RULES_JUDGED) {
        out = beyond_open(r, SVI_RULES_STEP, j, step, step, time);
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
}

static void beyond_text(char out[SVI_RULE_PART], const struct svi_rule_words *w) {
    const struct svi_rules_member *m = w->m;
    const struct svi_alert_numbers n = svi_alert_numbers_of(m->value, m->low, m->high, 3);
    snprintf(out, SVI_RULE_PART, "%s %s%s %s all it ever showed (%s to %s)", w->name, n.value, w->unit,
             m->value > m->high ? "above" : "below", n.low, n.high);
}

static void rate_text(char out[SVI_RULE_PART], const struct svi_rule_words *w) {
    const struct svi_rules_member *m = w->m;
    const struct svi_alert_numbers n = svi_alert_numbers_of(m->value, 0, m->high, 3);
    snprintf(out, SVI_RULE_PART, "%s moved by %s%s in one row (never by more than %s before)", w->name,
             n.value, w->unit, n.high);
}

const struct svi_rule_kind svi_rule_beyond = {.normal_after = ROWS_UNTIL_NORMAL,
                                              .again = "within what was seen before again",
                                              .text = beyond_text,
                                              .assess = beyond_assess,
                                              .badness = beyond_badness,
                                              .removed = beyond_removed};

const struct svi_rule_kind svi_rule_rate = {.normal_after = ROWS_UNTIL_NORMAL,
                                            .again = "moving as before again",
                                            .text = rate_text,
                                            .step = rate_step,
                                            .badness = rate_badness,
                                            .removed = beyond_removed};
