/* Columns and their rules, then the line of an alert, then its event. Each rule brings its own words
 * (rules_internal.h: text, again). What all lines have in common is here: the stream, several sensors, how
 * long, since when.
 *
 * A limit of the settings may be about a column of all keys, or of the keys that match a pattern.
 * Which one holds is decided once for each column of an engine (report_limit), and again when its
 * columns or the settings have changed. */
#include "alerts/rule_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "alerts/rules_internal.h"
#include "base/text.h"
#include "data/cell.h"

#define LINE_SENSORS 3 /* most sensors named in a line */

/* ---- columns */

static bool report_has_name(const struct svi_schema *schema, int j, const char *name, size_t length) {
    char number[16];
    const char *own = svi_schema_name(schema, j);
    snprintf(number, sizeof number, "%d", j);
    own = own ? own : number;
    return strlen(own) == length && memcmp(own, name, length) == 0;
}

static bool report_has_column(const void *user, const char *name, size_t length) {
    const struct svi_schema *schema = user;
    for (int j = 0; j < schema->shape.d; j++)
        if (report_has_name(schema, j, name, length))
            return true;
    return false;
}

/* How specific an entry is to a key: 0: to none; the key itself is more than a pattern, a longer pattern more
 * than a shorter one. -1: it is of other keys. */
static int limit_rank(const struct svi_limit *limit, size_t column, const char *key) {
    if (column == 0)
        return 0;
    if (!svi_text_matches(limit->column, column - 1, key))
        return -1;
    return memchr(limit->column, '*', column - 1) ? (int)column : INT32_MAX;
}

/* The limit of column j in the setting, by name, or by number for a column without one: the most specific one
 * to the key (NULL: the stream has none). False: none. */
static bool report_limit(const struct svi_settings *s, const struct svi_schema *schema, int j,
                         const char *key, struct svi_limit *limit) {
    const bool keyed = svi_settings_keyed(s);
    const char *limits = s->limits, *name = svi_schema_name(schema, j);
    char number[16];
    struct svi_limit one;
    int best = -1;
    snprintf(number, sizeof number, "%d", j);
    name = name ? name : number;
    const size_t length = strlen(name);
    while (svi_limit_next(&limits, &one)) {
        /* The end of the entry first: all columns are asked only of the few entries that have the name there.
         */
        const size_t column = one.length - length;
        if (one.length < length || (!keyed && column > 0) || memcmp(one.column + column, name, length) != 0 ||
            svi_limit_column(&one, keyed, report_has_column, schema) != column)
            continue;
        const int rank = limit_rank(&one, column, key ? key : "");
        if (rank <= best)
            continue;
        best = rank;
        *limit = one;
    }
    return best >= 0;
}

/* Decides the rules of column j. Order matters: the more specific statement comes last. A context column is
 * not judged; a sparse row cannot lack a value; a given limit holds in spite of both; derived columns (one of
 * a category's, the calendar's) have no rule at all. */
static void report_bind(struct svi_rules *r, const struct svi_settings *s, const struct svi_schema *schema,
                        const char *key, int j) {
    const char *name = svi_schema_name(schema, j);
    struct svi_limit limit = {0};
    const bool context = name && svi_span_listed((struct svi_span){name, name + strlen(name)}, s->context);
    int kind = context ? SVI_RULES_MISSED : SVI_RULES_MISSED | SVI_RULES_JUDGED;
    if (schema->shape.kind == SVI_SPARSE)
        kind = 0;
    if (report_limit(s, schema, j, key, &limit))
        kind |= SVI_RULES_LIMITED;
    if (schema->columns && (schema->one_hot[j] || schema->owner[j] < 0))
        kind = 0;
    svi_rules_bind(r, j, kind, limit.low, limit.high);
}

void svi_rules_follow(struct svi_rules *r, const struct svi_settings *s, const struct svi_schema *schema,
                      const char *key, int d) {
    const int columns = d < SVI_RULES_FEATURES ? d : SVI_RULES_FEATURES;
    for (int j = 0; j < columns; j++)
        report_bind(r, s, schema, key, j);
    svi_rules_bound(r, columns);
}

/* ---- the line */

void svi_rule_every(char out[SVI_RULE_PART], bool by_rows, double interval) {
    char every[SVI_HUMAN];
    out[0] = '\0';
    if (by_rows && interval < 1.5)
        snprintf(out, SVI_RULE_PART, " (usually one in every row)");
    else if (!by_rows && interval < 0.1)
        snprintf(out, SVI_RULE_PART, " (usually more than 10 a second)");
    else if (isfinite(interval))
        snprintf(out, SVI_RULE_PART, " (usually one every %s)", svi_human_span(every, by_rows, interval));
}

/* When an alert began: seconds, or the number of its first row in the stream. The rules also count rows that
 * the stream left out, so they only show how many rows ago that was. A silence is of no row. */
static double report_since(const struct svi_rules *r, const struct svi_rules_alert *a, bool by_rows,
                           const struct svi_rule_about *about) {
    return by_rows ? (double)(about->row - (r->rows - a->since_row)) : a->since;
}

/* Appends " temp and 2 more within limits again after 12 min". */
static size_t report_close(char *out, size_t at, const struct svi_schema *schema,
                           const struct svi_rules_alert *a, const struct svi_rule_kind *k,
                           const char *lasted) {
    char part[SVI_RULE_PART], name[SVI_ALERT_NAME] = "", more[SVI_HUMAN] = "";
    if (a->first >= 0) /* else it is about the stream, with which the line begins */
        svi_alert_name(name, svi_schema_name(schema, a->first), a->first);
    if (a->total > 1)
        snprintf(more, sizeof more, " and %d more", a->total - 1);
    snprintf(part, sizeof part, "%s%s%s %s after %s", name[0] ? " " : "", name, more,
             a->settled ? "accepted as normal" : k->again, lasted);
    return svi_alert_append(out, at, part, 0);
}

/* The words of a member's text. */
static struct svi_rule_words report_words(const struct svi_rules *r, const struct svi_schema *schema,
                                          const struct svi_rules_member *m,
                                          const struct svi_rule_about *about) {
    struct svi_rule_words w = {.r = r, .m = m, .time = about->ts, .by_rows = about->row > 0};
    const char *name = m->feature < 0 ? NULL : svi_schema_name(schema, m->feature);
    svi_alert_name(w.name, name, m->feature);
    svi_human_unit(w.unit, name ? svi_schema_unit(schema, m->feature) : NULL);
    return w;
}

/* Appends " temp 93 above its limit 90, flow 0.2 below its limit 1 and 3 more", or of what is missing only
 * the names. `reserved` bytes stay free after each sensor, for " and 3 more" and the end. */
static size_t report_sensors(char *out, size_t at, const struct svi_rules *r, const struct svi_schema *schema,
                             const struct svi_rules_alert *a, const struct svi_rules_member *const *top,
                             int count, const struct svi_rule_about *about, size_t reserved) {
    char part[SVI_RULE_PART], more[SVI_HUMAN];
    int shown = 0;
    for (; shown < count && shown < LINE_SENSORS; shown++) {
        const struct svi_rule_kind *k = svi_rule_kinds[top[shown]->rule];
        const struct svi_rule_words w = report_words(r, schema, top[shown], about);
        if (!k->missing)
            k->text(part, &w);
        at = svi_alert_append(out, at, shown > 0 ? ", " : " ", 0);
        at = svi_alert_append(out, at, k->missing ? w.name : part, reserved);
    }
    snprintf(more, sizeof more, " and %d more", a->members - shown);
    return svi_alert_append(out, at, a->members > shown ? more : "", 0);
}

/* Writes the line: valid UTF-8, terminated by NUL. Sensors that do not fit are left out whole. */
static void report_text(char out[SVI_ALERT_TEXT], const struct svi_rules *r, const struct svi_schema *schema,
                        const struct svi_rules_alert *a, enum svi_rule rule,
                        const struct svi_rules_member *const *top, int count,
                        const struct svi_rule_about *about) {
    char all[SVI_RULE_PART], end[SVI_RULE_PART + 2 * SVI_HUMAN], every[SVI_RULE_PART] = "";
    char moment[SVI_CALENDAR_MOMENT], lasted[SVI_HUMAN];
    const struct svi_rule_kind *k = svi_rule_kinds[rule];
    const bool by_rows = about->row > 0 && !k->of_stream;
    const double since = report_since(r, a, by_rows, about);
    svi_human_span(lasted, by_rows, fmax(0, (by_rows ? (double)about->row : about->ts) - since));
    svi_alert_since(moment, schema->zone, by_rows, since, about->ts);
    if (k->missing && a->members == 1 && count == 1) {
        const struct svi_rule_words w = report_words(r, schema, top[0], about);
        k->text(every, &w);
    }
    if (a->change == SVI_ALERT_CLOSE)
        snprintf(end, sizeof end, " (began at %s)", moment);
    else if (k->missing)
        snprintf(end, sizeof end, ": no %s since %s%s", k->missing, moment, every);
    else
        snprintf(end, sizeof end, ", since %s", moment);
    size_t at = svi_alert_begin(out, about->name);
    if (a->change == SVI_ALERT_CLOSE) {
        at = report_close(out, at, schema, a, k, lasted);
    } else if (k->lasts && a->members > 1 && a->members >= r->judged) {
        /* All sensors missing or stuck at once is one fault of the stream; a list of three would
         * hide that. */
        snprintf(all, sizeof all, " all %d sensors%s%s", a->members, k->missing ? "" : " ",
                 k->missing ? "" : svi_rule_name(rule));
        at = svi_alert_append(out, at, all, 0);
    } else if (!k->of_stream) {
        at = report_sensors(out, at, r, schema, a, top, count, about, 2 * SVI_HUMAN + strlen(end));
    }
    svi_alert_append(out, at, end, 0);
}

/* ---- events */

/* A member as a contribution of the event. Where `high` counts rows (stuck, absent) there is no
 * normal range. */
static struct svi_contribution report_sensor(const struct svi_schema *schema,
                                             const struct svi_rules_member *m) {
    const struct svi_rule_kind *k = svi_rule_kinds[m->rule];
    return (struct svi_contribution){.feature = m->feature < 0 ? NULL : svi_schema_name(schema, m->feature),
                                     .column = m->feature,
                                     .value = k->valueless ? NAN : m->value,
                                     .low = k->lasts ? NAN : m->low,
                                     .high = k->lasts ? NAN : m->high,
                                     .adds = NAN};
}

bool svi_rule_report(struct svi_rules *r, const struct svi_schema *schema, const struct svi_rule_about *about,
                     int64_t *count, struct svi_rule_report *out) {
    const struct svi_rules_member *top[SVI_RULES_TOP];
    enum svi_rule rule;
    int shown;
    struct svi_rules_alert *a = svi_rules_next(r, &rule, top, &shown);
    if (!a)
        return false;
    const struct svi_rule_kind *k = svi_rule_kinds[rule];
    const bool closes = a->change == SVI_ALERT_CLOSE;
    /* Numbers are given only to alerts that are reported, so they have no holes. */
    if (a->number == 0)
        a->number = ++*count;
    for (int i = 0; i < shown; i++)
        out->top[i] = report_sensor(schema, top[i]);
    if (closes && about->ended)
        svi_alert_ended(out->text, about->name, "alert", about->ended);
    else
        report_text(out->text, r, schema, a, rule, top, shown, about);
    out->event = (struct svi_alert_event){.kind = "rule",
                                          .alert = a->number,
                                          .state = svi_alert_change_name(a->change),
                                          .id = about->id,
                                          .rule = about->key && k->of_key ? k->of_key : svi_rule_name(rule),
                                          .severity = svi_alert_severity_name(a->severity),
                                          .sensors = closes ? a->total : a->members,
                                          .since = a->since,
                                          .top = out->top,
                                          .count = k->of_stream ? 0 : shown,
                                          .text = out->text};
    /* Last: it clears an alert that has closed, which the text above still reads. */
    svi_rules_reported(a);
    return true;
}
