/* The rule `limits`: a value outside the limits that the settings give for its column. */
#include <math.h>
#include <stdio.h>

#include "alerts/rules_internal.h"

/* How far outside its limits a value is; negative: inside. Columns without limits have infinite ones. */
static double limits_outside(const struct svi_rules *r, int j, double v) {
    return fmax(v - r->seen.high[j], r->seen.low[j] - v);
}

/* Returns false: a value outside counts as seen, because limits are given and not learned. */
static bool limits_assess(struct svi_rules *r, int j, double v, double time) {
    const double outside = limits_outside(r, j, v);
    if (!(outside > 0) || svi_rules_has(r, SVI_RULE_LIMITS, j))
        return false;
    struct svi_rules_member *m = svi_rules_add(r, SVI_RULE_LIMITS, j, time, time);
    if (!m)
        return false;
    /* The limits of the opening are kept for the text, even if a setting changes them later. */
    m->low = r->seen.low[j];
    m->high = r->seen.high[j];
    svi_rules_bad(r, m, v, outside);
    return false;
}

static double limits_badness(const struct svi_rules *r, const struct svi_rules_member *m, double *value) {
    return isnan(*value) ? NAN : fmax(0, limits_outside(r, m->feature, *value));
}

static void limits_text(char out[SVI_RULE_PART], const struct svi_rule_words *w) {
    const struct svi_rules_member *m = w->m;
    const struct svi_alert_numbers n = svi_alert_numbers_of(m->value, m->low, m->high, 3);
    const bool above = m->value > m->high;
    snprintf(out, SVI_RULE_PART, "%s %s%s %s its limit %s", w->name, n.value, w->unit,
             above ? "above" : "below", above ? n.high : n.low);
}

const struct svi_rule_kind svi_rule_limits = {
    .again = "within limits again", .text = limits_text, .assess = limits_assess, .badness = limits_badness};
