/* The plain rules (alerts/rules.h) in the engine. They run on the stream's thread, whichever thread assesses
 * novelty; their alerts share the numbers of the others, so the queue is settled before one is published. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "alerts/alarm_report.h"
#include "alerts/alert_text.h"
#include "alerts/rule_report.h"
#include "engine/engine_internal.h"

const char *svi_subject(const char *stream, const char *label, char out[SVI_SUBJECT]) {
    const char *name = svi_alert_stream(stream);
    if (!label || !label[0])
        return name; /* asked for each sample: nothing is copied where one of the two is empty */
    if (!name[0])
        return label;
    stpcpy(stpcpy(stpcpy(out, name), " "), label); /* both have their limits, of which `out` is the sum */
    return out;
}

const char *svi_engine_subject(const struct svi_engine *e, char out[SVI_SUBJECT]) {
    return svi_subject(e->s->stream, e->label, out);
}

int64_t svi_engine_row_in_lines(const struct svi_engine *e) {
    return e->by_arrival && e->s->alert_interval > 0 ? e->kept[SVI_KEPT_SEEN] : 0;
}

/* Publishes all pending changes of the rules' alerts. `ended`: as in svi_rule_about. */
static void rules_report_all(struct svi_engine *e, svs_value id, double ts, const char *ended) {
    struct svi_rule_report report;
    char subject[SVI_SUBJECT];
    struct svi_event event = {.topic = SVI_TOPIC_ALERT, .ts = ts};
    svi_engine_settle(e); /* queued samples may open alerts, whose numbers come first */
    const struct svi_rule_about about = {
        svi_engine_subject(e, subject), e->label && e->label[0], id, ts, svi_engine_row_in_lines(e), ended};
    while (svi_rule_report(e->rules, &e->schema, &about, &e->episodes.count, &report)) {
        event.as.alert = report.event;
        if (svi_engine_case_rule(e, &event.as.alert))
            svi_publish(e, &event);
    }
}

static inline void rules_report(struct svi_engine *e, svs_value id, double ts, const char *ended) {
    if (svi_rules_pending(e->rules))
        rules_report_all(e, id, ts, ended);
}

void svi_engine_end_drift(struct svi_engine *e, const char *why) {
    struct svi_alert_report report;
    char subject[SVI_SUBJECT];
    if (svi_alarm_report_end(&e->quality_stage.alarm, svi_engine_subject(e, subject), why, &report))
        svi_publish_alert(e, &report, e->event_ts);
}

void svi_engine_end_novelty(struct svi_engine *e, const char *why) {
    struct svi_alert_report report;
    char subject[SVI_SUBJECT];
    if (svi_alert_report_end(e->novelty, svi_engine_subject(e, subject), why, &report))
        svi_publish_alert(e, &report, e->event_ts);
}

void svi_engine_end_alerts(struct svi_engine *e, const char *why) {
    svi_engine_end_drift(e, why);
    svi_engine_end_novelty(e, why);
    if (!svi_engine_has_rules(e))
        return;
    svi_rules_end(e->rules);
    rules_report(e, svs_none(), e->event_ts, why);
}

/* Flags of the columns where the row at hand has no value of its own: a replacement is not a value, and
 * neither is the 0 of a feature that a map leaves out. NULL: all have one. */
static const uint8_t *rules_gaps_of(struct svi_engine *e, const struct svi_message *m) {
    const struct svi_shape *shape = &e->schema.shape;
    const uint8_t *missing = m->missing > 0 ? e->gaps : NULL;
    if (m->kind != SVI_NAMED || m->cells || e->schema.columns)
        return missing;
    return svi_rules_left_out(e->rules, shape->marks, shape->round, missing, m->d);
}

void svi_engine_rules_row(struct svi_engine *e, const struct svi_message *m, double now) {
    struct svi_rules *r = e->rules;
    if (!r->any)
        return;
    if (!e->rules_follow || m->d != e->rules_d || e->rules_names != e->schema.shape.names_kept) {
        svi_rules_follow(r, e->s, &e->schema, e->label, m->d); /* names may arrive after their columns */
        e->rules_d = m->d;
        e->rules_names = e->schema.shape.names_kept;
        e->rules_follow = true;
    }
    struct svi_unlearned unlearned;
    r->row_seconds = isnan(m->ts) ? e->s->alert_interval : 0;
    r->unlearned = svi_engine_unlearned(e, m->d, &unlearned);
    svi_rules_row(r, m->x, rules_gaps_of(e, m), m->d, e->time, now);
    r->unlearned = NULL;
}

void svi_engine_rules_report(struct svi_engine *e, svs_value id) {
    rules_report(e, id, e->event_ts, NULL);
}

void svi_engine_rules_dropped(struct svi_engine *e, const struct svi_message *m, double now) {
    struct svi_rules *r = e->rules;
    const double own = isnan(m->ts) ? now : m->ts;
    if (!r->any || r->d == 0) /* before the first accepted row no column is known */
        return;
    if (!e->rules_follow)
        svi_rules_follow(r, e->s, &e->schema, e->label, r->d);
    r->row_seconds = isnan(m->ts) ? e->s->alert_interval : 0;
    /* Engine time does not move, since the row is not accepted; the rules see the time it would have. */
    struct svi_unlearned unlearned;
    r->unlearned = svi_engine_unlearned(e, m->d, &unlearned);
    svi_rules_row(r, m->x, svi_rules_holes(r, m->x, m->d), m->d, fmax(e->time, own), now);
    r->unlearned = NULL;
    rules_report(e, m->id, own, NULL);
}

void svi_engine_rules_renew(struct svi_engine *e, int feature) {
    svi_rules_renew(e->rules, feature);
    e->rules_follow = false;
}

void svi_engine_rules_configure(struct svi_engine *e) {
    svi_rules_configure(e->rules, e->s);
    e->rules_follow = false;
    rules_report(e, svs_none(), e->event_ts, NULL);
}

void svi_engine_rules_forget(struct svi_engine *e) {
    svi_rules_end(e->rules);
    rules_report(e, svs_none(), e->event_ts, NULL); /* before clear, which drops what the reports need */
    svi_rules_clear(e->rules);
    e->rules_follow = false;
}

double svi_engine_deadline(const svi_engine *e) {
    return svi_rules_deadline(e->rules);
}

void svi_engine_pass(svi_engine *e, double now) {
    svi_engine_settle(e);
    svi_rules_pass(e->rules, now);
    rules_report(e, svs_none(), now, NULL);
}
