/* The rule `absent`: no value in rows in which a column usually has one.
 *
 * It goes by rows, for it is rows that come without the value: missing in more than GAP_ROWS rows running and
 * in more than GAP_FACTOR times as many as ever, of a sensor with MIN_VALUES values; or, with seconds given,
 * in a row that much later than the last value. Values missing by chance: 6 K! / (K + 3)! for each of K gaps,
 * 0.003 in all. A column that rows just leave out must have been in half of them. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "alerts/rules_internal.h"

#define GAP_ROWS   8
#define GAP_FACTOR 3
#define MIN_VALUES 30

/* The value is back. */
static void absent_ends(struct svi_rules *r, int j) {
    double *longest = &r->longest_gap[j];
    if (r->gap[j] > 0 && svi_rules_has(r, SVI_RULE_ABSENT, j))
        svi_rules_seen_twice(longest, &r->reported_gap[j], r->gap[j]);
    else
        *longest = fmax(*longest, r->gap[j]);
    r->gap[j] = 0;
}

/* The value is missing in one row more. */
static void absent_goes_on(struct svi_rules *r, int j, double time) {
    const double values = r->seen.values[j], longest = r->longest_gap[j];
    if (r->gap[j] == 0)
        r->gone[j] = r->time;
    const double gap = r->gap[j] += 1, rows = (double)r->rows - r->born[j];
    if (!r->o.on[SVI_RULE_ABSENT] || !(r->kind[j] & SVI_RULES_MISSED) || svi_rules_has(r, SVI_RULE_ABSENT, j))
        return;
    const bool late = values >= MIN_VALUES && gap > fmax(GAP_ROWS, GAP_FACTOR * longest) &&
                      (!r->left_out || 2 * values >= rows - gap);
    if (!(r->o.absent > 0 ? values >= 1 && time - r->gone[j] > r->o.absent : late))
        return;
    struct svi_rules_member *m = svi_rules_add(r, SVI_RULE_ABSENT, j, r->gone[j], time);
    if (m)
        m->high = longest;
}

static void absent_gaps(struct svi_rules *r, const uint8_t *gaps, int d, double time) {
    for (int j = 0; j < d; j++)
        if (gaps && gaps[j])
            absent_goes_on(r, j, time);
        else
            absent_ends(r, j);
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

static double absent_badness(const struct svi_rules *r, const struct svi_rules_member *m, double *value) {
    (void)r;
    (void)m;
    return isnan(*value) ? DBL_MIN : 0;
}

/* Seconds from one value of a column to the next: the mean step of time, by the share of rows that had one.
 */
static double absent_interval(const struct svi_rules *r, int j) {
    const double values = r->seen.values[j], rows = (double)r->rows - r->born[j] - r->gap[j];
    return r->rows > 1 && values > 0 ? (r->time - r->first) / (double)(r->rows - 1) * rows / values : NAN;
}

static void absent_text(char out[SVI_RULE_PART], const struct svi_rule_words *w) {
    char every[SVI_RULE_EVERY];
    snprintf(out, SVI_RULE_PART, "%s absent%s", w->name,
             svi_rule_every(every, "value", absent_interval(w->r, w->m->feature)));
}

const struct svi_rule_kind svi_rule_absent = {.lasts = true,
                                              .valueless = true,
                                              .again = "back",
                                              .text = absent_text,
                                              .gaps = absent_gaps,
                                              .badness = absent_badness};
