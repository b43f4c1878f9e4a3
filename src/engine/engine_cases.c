/* One cause in one stream (or key) is one alert, whichever detectors and rules find it.
 *
 * A novelty alert and the alerts of rules that name the same feature are one case: they share a
 * number. The first to open is published. One that joins it opens in silence, unless there is a
 * reason to publish it as an update of the case:
 *  - it is more severe;
 *  - it opened more than half an hour, and more than alert.group, after the one it joins;
 *  - it is about a limit that a person has set, and the one it joins is not;
 *  - it is about a sensor without values that was reported as stuck.
 * Updates of all of them are updates of the case. The case closes with the last of them. The closes
 * of the others are not published, except that of a limit, which is an update. A verdict by the
 * number reaches the novelty alert.
 *
 * All are compared by what they have reported, not by what they hold. On two threads a row may have
 * passed the rules before the novelty of earlier rows is published, but never a report.
 * `alert.group 0` keeps every alert apart. */
#include <math.h>
#include <string.h>

#include "engine/engine_internal.h"

#define NEWS_AFTER (30 * 60.0) /* seconds after which another alert of the same case is news */

/* What a case is compared by. */
struct case_alert {
    int64_t number;
    double opened;
    enum svi_severity severity;
    bool limits, stuck, absent;
};

static enum svi_severity case_severity(const char *name) {
    int s = SVI_SEVERITY_SERIOUS;
    while (s > 0 && !(name && strcmp(name, svi_alert_severity_name((enum svi_severity)s)) == 0))
        s--;
    return (enum svi_severity)s;
}

static bool case_is(const struct svi_alert_event *a, const char *state) {
    return strcmp(a->state, state) == 0;
}

static bool case_is_rule(const struct svi_alert_event *a, enum svi_rule rule) {
    return a->rule && strcmp(a->rule, svi_rule_name(rule)) == 0;
}

static bool case_is_limits(const struct svi_alert_event *a) {
    return case_is_rule(a, SVI_RULE_LIMITS);
}

static struct case_alert case_of_rule(const struct svi_rules_alert *a, enum svi_rule rule) {
    return (struct case_alert){.number = a->number,
                               .opened = a->opened,
                               .severity = a->reported,
                               .limits = rule == SVI_RULE_LIMITS,
                               .stuck = rule == SVI_RULE_STUCK};
}

/* Is this an event to publish? `a` opens while `of` is open: it becomes an update. */
static bool case_joins(const struct svi_engine *e, struct svi_alert_event *a, const struct case_alert *one,
                       const struct case_alert *of) {
    a->state = "update";
    a->alert = of->number;
    /* An adapter that repeats the last value makes a dead sensor stuck first. "No values" corrects that. */
    return one->severity > of->severity || (one->limits && !of->limits) || (one->absent && of->stuck) ||
           one->opened - of->opened > fmax(e->s->alert_group, NEWS_AFTER);
}

/* ---- novelty */

/* The reported alert of a rule about a feature of the open novelty alert; false: none. */
static bool case_of_rules(const struct svi_engine *e, const int *features, int count, struct case_alert *of) {
    enum svi_rule rule;
    for (int i = 0; i < count && e->s->alert_group > 0; i++) {
        const struct svi_rules_alert *a = svi_rules_reporting(e->rules, features[i], 0, &rule);
        if (!a)
            continue;
        *of = case_of_rule(a, rule);
        return true;
    }
    return false;
}

/* The features of the novelty alert that is open: the one that its event names first, and those that have
 * reached a level. */
static int case_features(const struct svi_engine *e, int features[SVI_POLICY_FEATURES + 1]) {
    const struct svi_alert_policy *d = &e->novelty->policy;
    int count = 0;
    if (e->episodes.feature >= 0)
        features[count++] = e->episodes.feature;
    for (int i = 0; svi_alert_policy_is_on(d) && i < d->feature_count; i++)
        if (d->features[i] >= 0)
            features[count++] = d->features[i];
    return count;
}

bool svi_engine_case_novelty(struct svi_engine *e, struct svi_alert_event *a) {
    struct svi_episodes *n = &e->episodes;
    int features[SVI_POLICY_FEATURES + 1];
    struct case_alert of;
    bool publish = true;
    if (case_is(a, "open")) {
        n->feature = a->count > 0 ? a->top[0].column : -1;
        n->open = true;
        const struct case_alert one = {.opened = e->novelty->alert.since,
                                       .severity = case_severity(a->severity)};
        if (case_of_rules(e, features, case_features(e, features), &of)) {
            n->novelty = of.number;
            publish = case_joins(e, a, &one, &of);
        } else {
            n->novelty = ++n->count;
        }
        if (svi_alert_stage_has_policy(e->novelty))
            svi_verdicts_number(&e->novelty->verdicts, e->novelty->alert.opened, n->novelty);
    } else if (case_is(a, "close")) {
        publish = n->open && !svi_rules_numbered(e->rules, n->novelty);
        n->open = false;
    }
    a->alert = n->novelty;
    return publish;
}

/* ---- rules */

/* The open alert, of novelty or of another rule, that names a feature of this one; false: none. */
static bool case_of_any(const struct svi_engine *e, const struct svi_alert_event *a, struct case_alert *of) {
    const struct svi_alert_policy *d = &e->novelty->policy;
    int features[SVI_POLICY_FEATURES + 1];
    const int count = e->episodes.open ? case_features(e, features) : 0;
    enum svi_rule rule;
    for (int k = 0; k < a->count && e->s->alert_group > 0; k++) {
        for (int i = 0; i < count; i++)
            if (features[i] == a->top[k].column) {
                *of = (struct case_alert){.number = e->episodes.novelty,
                                          .opened = e->novelty->alert.since,
                                          .severity =
                                              svi_alert_policy_is_on(d) ? d->severity : SVI_SEVERITY_NOTICE};
                return true;
            }
        const struct svi_rules_alert *other =
            svi_rules_reporting(e->rules, a->top[k].column, a->alert, &rule);
        if (other) {
            *of = case_of_rule(other, rule);
            return true;
        }
    }
    return false;
}

bool svi_engine_case_rule(struct svi_engine *e, struct svi_alert_event *a) {
    const int64_t number = a->alert;
    struct case_alert of;
    if (case_is(a, "close")) {
        /* A novelty alert that closes with the same row does so in silence: the plain statement stands. */
        if (e->episodes.novelty == number && !e->novelty->alert.open)
            e->episodes.open = false;
        const bool novel = e->episodes.open && e->episodes.novelty == number;
        const struct svi_rules_alert *other = svi_rules_numbered(e->rules, number);
        const bool last = !novel && !other, lasts = novel || (other && other->change != SVI_ALERT_CLOSE);
        /* That a limit is kept again is news, even if the sensor is not normal yet. */
        a->state = last ? a->state : "update";
        return last || (lasts && case_is_limits(a));
    }
    if (!case_is(a, "open") || !case_of_any(e, a, &of))
        return true;
    const struct svi_rules_alert *own = svi_rules_numbered(e->rules, number);
    struct case_alert one = case_of_rule(own, SVI_RULES);
    one.limits = case_is_limits(a);
    one.absent = case_is_rule(a, SVI_RULE_ABSENT);
    svi_rules_renumber(e->rules, number, of.number);
    e->episodes.count--; /* it was given to this alert a moment ago, and to no other since */
    return case_joins(e, a, &one, &of);
}
