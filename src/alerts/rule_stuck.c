/* The rule `stuck`: a value unchanged for longer than ever.
 *
 * A sensor that has changed MIN_RUNS times is stuck when its value is unchanged for MIN_ROWS rows and for
 * RUN_FACTOR times the longest run so far. The factor is RESTING_FACTOR where more than half of the values
 * only repeat the one before: flags, set points, machines that rest at night. For exchangeable values the
 * lengths of runs are geometric, and K lengths are exceeded 8 times over with probability 8! K! / (K + 8)! at
 * most, 1e-12 at K = 100.
 *
 * A machine that stops for the first time leaves sensors at zero. While a sensor is young, that is not
 * reported but seen. Later it is reported once, as a notice, and not by both `beyond` and this rule. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "alerts/rules_internal.h"

#define MIN_ROWS       16
#define MIN_RUNS       100
#define RUN_FACTOR     8
#define RESTING_FACTOR 20

/* Rows after which a column is stuck; INFINITY: unknown, or the rule does not apply. */
static double stuck_patience(const struct svi_rules *r, int j) {
    const double runs = r->seen.runs[j];
    if (runs < MIN_RUNS || !r->o.on[SVI_RULE_STUCK] || !(r->kind[j] & SVI_RULES_JUDGED))
        return INFINITY;
    const bool rests = 2 * runs < r->seen.values[j];
    return fmax(MIN_ROWS, (rests ? RESTING_FACTOR : RUN_FACTOR) * r->seen.longest[j]);
}

/* Once a block: the pass over a row only compares a run with `patient`, and needs neither settings nor
 * counts. */
static void stuck_block(struct svi_rules *r) {
    for (int j = 0; j < r->d; j++)
        r->seen.patient[j] = stuck_patience(r, j);
}

static bool stuck_assess(struct svi_rules *r, int j, double v, double time) {
    if (v != r->seen.last[j] || !(r->seen.run[j] >= r->seen.patient[j]) || !(r->kind[j] & SVI_RULES_JUDGED) ||
        svi_rules_has(r, SVI_RULE_STUCK, j))
        return false;
    /* The patience is as of the last block; the column may have had a longer run since, so compute
     * it again. */
    r->seen.patient[j] = stuck_patience(r, j);
    if (!(r->seen.run[j] >= r->seen.patient[j]))
        return false;
    const bool rest = svi_rules_rests(r, j, v);
    const struct svi_rules_member *stop = rest ? svi_rules_member(r, SVI_RULE_BEYOND, j) : NULL;
    if (rest && (svi_rules_young(r, j) || (stop && stop->rest))) {
        r->seen.patient[j] = INFINITY; /* until the next block */
        return false;
    }
    struct svi_rules_member *m = svi_rules_add(r, SVI_RULE_STUCK, j, r->seen.changed_at[j], time);
    if (!m)
        return false;
    /* The run started where the value last changed: the alert is dated back to there. +1: this row,
     * which the run does not include yet. */
    m->high = r->seen.longest[j];
    m->rows = r->seen.run[j] + 1;
    m->value = v;
    svi_rules_began(r, m, r->seen.run[j]);
    m->rest = rest;
    return false;
}

static double stuck_badness(const struct svi_rules *r, const struct svi_rules_member *m, double *value) {
    (void)r;
    return isnan(*value) ? NAN : *value == m->value ? DBL_MIN : 0;
}

/* The value moves. The run is cleared here, so that the pass over the row does not enter it as the longest
 * seen: a reported run counts only if one as long was reported before. */
static void stuck_recovers(struct svi_rules *r, struct svi_rules_member *m) {
    const int j = m->feature;
    svi_rules_seen_twice(&r->seen.longest[j], &r->reported_run[j], r->seen.run[j]);
    if (m->rest)
        r->seen.longest[j] = fmax(r->seen.longest[j], r->seen.run[j]);
    r->seen.run[j] = 0;
}

static void stuck_text(char out[SVI_RULE_PART], const struct svi_rule_words *w) {
    char v[SVI_HUMAN], lasts[SVI_HUMAN], rows[SVI_HUMAN + 8] = "";
    const struct svi_rules_member *m = w->m;
    if (!w->by_rows)
        snprintf(rows, sizeof rows, "%.0f rows, ", m->rows);
    svi_human_span(lasts, w->by_rows, w->by_rows ? m->rows : fmax(0, w->time - m->since));
    snprintf(out, SVI_RULE_PART, "%s stuck at %s%s for %s (%snever more than %.0f before)", w->name,
             svi_human_number(v, m->value, 0, 3), w->unit, lasts, rows, m->high);
}

const struct svi_rule_kind svi_rule_stuck = {.lasts = true,
                                             .again = "moving again",
                                             .text = stuck_text,
                                             .assess = stuck_assess,
                                             .block = stuck_block,
                                             .badness = stuck_badness,
                                             .recovers = stuck_recovers};
