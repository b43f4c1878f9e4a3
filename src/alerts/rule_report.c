#include "alerts/rule_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- columns */

static bool report_listed(const char *list, const char *name, size_t length) {
    for (const char *at = list; *at; at += *at == ',') {
        const size_t size = strcspn(at, ",");
        if (size == length && memcmp(at, name, length) == 0)
            return true;
        at += size;
    }
    return false;
}

static bool report_limit(const char *limits, int feature, const char *name, struct svi_limit *limit) {
    char number[16];
    const char *shown = name ? name : number;
    snprintf(number, sizeof number, "%d", feature);
    while (svi_limit_next(&limits, limit))
        if (limit->length == strlen(shown) && memcmp(limit->column, shown, limit->length) == 0)
            return true;
    return false;
}

static void report_bind(struct svi_rules *r, const struct svi_settings *s, const struct svi_schema *schema,
                        int j) {
    const char *name = svi_schema_name(schema, j);
    struct svi_limit limit = {0};
    const bool context = name && report_listed(s->context, name, strlen(name));
    int kind = context ? SVI_RULES_MISSED : SVI_RULES_MISSED | SVI_RULES_JUDGED;
    if (schema->shape.kind == SVI_SPARSE)
        kind = 0;
    if (report_limit(s->limits, j, name, &limit))
        kind |= SVI_RULES_LIMITED;
    if (schema->columns && (schema->one_hot[j] || schema->owner[j] < 0))
        kind = 0;
    svi_rules_bind(r, j, kind, limit.low, limit.high);
}

void svi_rules_follow(struct svi_rules *r, const struct svi_settings *s, const struct svi_schema *schema,
                      int d) {
    const int most = d < SVI_RULES_FEATURES ? d : SVI_RULES_FEATURES;
    for (int j = 0; j < most; j++)
        report_bind(r, s, schema, j);
    svi_rules_bound(r, most);
}

/* ---- events */

static void report_sensor(const struct svi_rules *r, const struct svi_schema *schema,
                          const struct svi_rules_member *m, struct svi_rule_sensor *sensor,
                          struct svi_contribution *shown) {
    const bool gone = m->rule == SVI_RULE_ABSENT, ranged = !gone && m->rule != SVI_RULE_STUCK;
    const char *name = m->feature < 0 ? NULL : svi_schema_name(schema, m->feature);
    *sensor = (struct svi_rule_sensor){.name = name,
                                       .column = m->feature,
                                       .unit = name ? svi_schema_unit(schema, m->feature) : NULL,
                                       .value = m->value,
                                       .low = m->low,
                                       .high = m->high,
                                       .rows = m->rows,
                                       .since = m->since,
                                       .usual = svi_rules_usual(r, m->feature)};
    *shown = (struct svi_contribution){.feature = name,
                                       .column = m->feature,
                                       .value = gone ? NAN : m->value,
                                       .low = ranged ? m->low : NAN,
                                       .high = ranged ? m->high : NAN,
                                       .adds = NAN};
}

static void report_text(const struct svi_rules *r, const struct svi_rules_alert *a, enum svi_rule rule,
                        const struct svi_rule_about *about, const struct svi_rule_sensor *sensors, int count,
                        char *text) {
    const bool closes = a->change == SVI_ALERT_CLOSE;
    const struct svi_rule_line line = {.rule = rule,
                                       .state = a->change,
                                       .settled = a->settled,
                                       .stream = about->name,
                                       .key = about->key,
                                       .top = sensors,
                                       .count = count,
                                       .members = closes ? a->total : a->members,
                                       .sensors = r->judged,
                                       .since = a->since,
                                       .time = about->ts};
    svi_rule_text(text, &line);
}

bool svi_rule_report(struct svi_rules *r, const struct svi_schema *schema, const struct svi_rule_about *about,
                     int64_t *count, struct svi_rule_report *out) {
    const struct svi_rules_member *top[SVI_RULES_TOP];
    struct svi_rule_sensor sensors[SVI_RULES_TOP] = {0};
    enum svi_rule rule;
    int shown;
    struct svi_rules_alert *a = svi_rules_next(r, &rule, top, &shown);
    if (!a)
        return false;
    const bool closes = a->change == SVI_ALERT_CLOSE;
    if (a->number == 0)
        a->number = ++*count;
    for (int i = 0; i < shown; i++)
        report_sensor(r, schema, top[i], &sensors[i], &out->top[i]);
    if (closes && a->first >= 0)
        sensors[0] = (struct svi_rule_sensor){.name = svi_schema_name(schema, a->first), .column = a->first};
    if (closes && about->ended)
        snprintf(out->text, sizeof out->text, "%s alert ended: %s", about->name, about->ended);
    else
        report_text(r, a, rule, about, sensors, closes ? a->first >= 0 : shown, out->text);
    out->event = (struct svi_alert_event){
        .kind = "rule",
        .alert = a->number,
        .state = svi_alert_change_name(a->change),
        .id = about->id,
        .rule = svi_rule_name(about->key && rule == SVI_RULE_SILENT ? SVI_RULE_ABSENT : rule),
        .sensors = closes ? a->total : a->members,
        .since = a->since,
        .top = out->top,
        .count = rule == SVI_RULE_SILENT ? 0 : shown,
        .text = out->text};
    svi_rules_reported(a);
    return true;
}
