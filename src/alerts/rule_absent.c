/* The rule `absent`: rows arrive without a value that a column normally has.
 *
 * It counts rows, not time, because only a row can lack a value. A sensor with at least MIN_VALUES
 * values is absent when its value is missing in a run of rows. The run must be longer than GAP_ROWS
 * and than GAP_FACTOR times the longest gap so far. With seconds given, these decide instead: a row
 * is that much later than the last value. If values are missing at random, each of K gaps is
 * reported with probability 6 K! / (K + 3)!, 0.003 in all. A column that rows leave out (instead of
 * marking it as missing) must have been in half of them. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "alerts/rules_internal.h"

#define GAP_ROWS   8
#define GAP_FACTOR 3
#define MIN_VALUES 30

/* The row has a value. A gap that was reported counts as seen only if one as long was reported before; any
 * other one raises the longest gap at once. */
static void absent_present(struct svi_rules *r, int j) {
    double *longest = &r->longest_gap[j];
    if (r->gap[j] > 0 && svi_rules_has(r, SVI_RULE_ABSENT, j))
        svi_rules_seen_twice(longest, &r->reported_gap[j], r->gap[j]);
    else
        *longest = fmax(*longest, r->gap[j]);
    r->gap[j] = 0;
}

/* One more row without a value. */
static void absent_missing(struct svi_rules *r, int j, double time) {
    const double values = r->seen.values[j], longest = r->longest_gap[j];
    if (r->gap[j] == 0)
        r->last_value_time[j] = r->time;
    /* The gap is counted even with the rule off, so that it can be switched on at any time.
     * `last_value_time` is the time of the row before: r->time still has it. */
    const double gap = r->gap[j] += 1, rows = (double)r->rows - r->born[j];
    if (!r->o.on[SVI_RULE_ABSENT] || !(r->kind[j] & SVI_RULES_MISSED) || svi_rules_has(r, SVI_RULE_ABSENT, j))
        return;
    const bool late = values >= MIN_VALUES && gap > fmax(GAP_ROWS, GAP_FACTOR * longest) &&
                      (!r->left_out || 2 * values >= rows - gap);
    if (!(r->o.absent > 0 ? values >= 1 && time - r->last_value_time[j] > r->o.absent : late))
        return;
    struct svi_rules_member *m = svi_rules_add(r, SVI_RULE_ABSENT, j, r->last_value_time[j], time);
    if (!m)
        return;
    m->high = longest;
    svi_rules_began(r, m, gap - 1); /* the first row without a value */
}

static void absent_gaps(struct svi_rules *r, const uint8_t *gaps, int d, double time) {
    for (int j = 0; j < d; j++)
        if (gaps && gaps[j])
            absent_missing(r, j, time);
        else
            absent_present(r, j);
}

/* `out` decides about r->left_out for good: from then on absent columns must have been in half of
 * the rows. */
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

/* A value that is still missing is bad by the smallest amount: the rule counts rows, not badness. */
static double absent_badness(const struct svi_rules *r, const struct svi_rules_member *m, double *value) {
    (void)r;
    (void)m;
    return isnan(*value) ? DBL_MIN : 0;
}

/* Mean rows, or seconds, between two values of a column: over the share of rows that had a value, the present
 * gap left out. NaN: unknown. */
static double absent_interval(const struct svi_rules *r, int j, bool by_rows) {
    const double values = r->seen.values[j], rows = (double)r->rows - r->born[j] - r->gap[j];
    const double step = by_rows ? 1 : (r->time - r->first) / (double)(r->rows - 1);
    return r->rows > 1 && values > 0 ? step * rows / values : NAN;
}

static void absent_text(char out[SVI_RULE_PART], const struct svi_rule_words *w) {
    svi_rule_every(out, w->by_rows, absent_interval(w->r, w->m->feature, w->by_rows));
}

const struct svi_rule_kind svi_rule_absent = {.lasts = true,
                                              .valueless = true,
                                              .missing = "values",
                                              .again = "sending values again",
                                              .text = absent_text,
                                              .gaps = absent_gaps,
                                              .badness = absent_badness};
