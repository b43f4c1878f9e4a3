/* The event of a novelty alert: its top features with their normal ranges, and the line for a person.
 *
 * The event of any alert lists the features that add most to the surprise of the row (find_top). The line
 * depends on the budget:
 *
 *   without one (write_line)   the same features, in another order: the one beyond its earlier range first,
 *                              then by how far they lie outside their normal range;
 *   with one (write_episode)   the facts that the detectors found, the leading one first
 * (add_detector_facts), then of the row the features outside their normal range or, if there are none, the
 * two that are anomalous together (add_row_facts).
 *
 * Columns of a row are lag x d + feature. `rows.x` serves as scratch once the row is assessed. */
#include "alerts/alert_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "features/calendar.h"

/* Adds up the contributions of all lags of each feature into `sums` (d). Returns the sum of their absolute
 * values, which normalises them. */
static double add_lags(struct svi_alert_stage *s, int d, double *sums) {
    const double *adds = s->rows.adds;
    double sum = 0;
    svi_detector_explain(s->detector, s->rows.adds);
    for (int j = 0; j < d; j++) {
        sums[j] = 0;
        for (int l = 0; l < s->lags; l++)
            sums[j] += adds[(size_t)l * (size_t)s->rows.d + (size_t)j];
        sum += fabs(sums[j]);
    }
    return sum;
}

/* Index of the largest absolute value among n values with the stride `apart`; the first of equals. */
static int alert_report_largest(const double *v, int n, int apart) {
    int at = 0;
    for (int j = 1; j < n; j++)
        at = fabs(v[j * apart]) > fabs(v[at * apart]) ? j : at;
    return at;
}

/* column: of the row, so value and range are those of the lag that explains most. */
static struct svi_contribution contribution_of(struct svi_alert_stage *s, const struct svi_schema *schema,
                                               int column, double adds) {
    struct svi_contribution c = {.feature = svi_schema_name(schema, column % s->rows.d),
                                 .column = column % s->rows.d,
                                 .value = s->rows.row[column],
                                 .adds = adds};
    svi_detector_normal_range(s->detector, column, &c.low, &c.high);
    return c;
}

/* Fills `top` with the features that add most, SVI_ALERT_TOP_MAX at most, after the one that lies beyond its
 * earlier range. Returns their number. */
static int find_top(struct svi_alert_stage *s, const struct svi_alert_sample *sample,
                    const struct svi_schema *schema, struct svi_contribution *top) {
    double *sums = s->rows.x; /* scratch: the sample has been copied into its row */
    const double sum = add_lags(s, sample->d, sums);
    int count = 0;
    if (s->judgement.excess > 0) {
        double *adds = &sums[s->judgement.feature % s->rows.d];
        top[count++] = contribution_of(s, schema, s->judgement.feature, sum > 0 ? *adds / sum : 0);
        *adds = 0;
    }
    /* A feature that is listed is zeroed, so that the next search finds the next largest. The rest of the
     * list stays empty when only zeros are left: a feature that adds nothing explains nothing. */
    for (; count < SVI_ALERT_TOP_MAX && count < sample->d && sum > 0; count++) {
        const int largest = alert_report_largest(sums, sample->d, 1);
        const int lag = alert_report_largest(s->rows.adds + largest, s->lags, s->rows.d);
        if (sums[largest] == 0)
            break;
        top[count] = contribution_of(s, schema, lag * s->rows.d + largest, sums[largest] / sum);
        sums[largest] = 0;
    }
    return count;
}

/* How far a value lies outside its normal range, in widths of the range; 0 within. The floor keeps a range of
 * width 0 from dividing by it. NaN bounds give 0. */
static double alert_report_excess(const struct svi_contribution *c) {
    const double width = c->high - c->low, beyond = fmax(c->value - c->high, c->low - c->value);
    return beyond > 0 ? beyond / fmax(width, 1e-9 * fabs(c->value)) : 0;
}

/* The line without a budget: the feature beyond its earlier range first, then by distance from the normal
 * range; features within it keep their order, by contribution. */
static void write_line(const struct svi_alert_stage *s, const struct svi_alert_subject *of,
                       enum svi_alert_change change, struct svi_alert_report *out) {
    struct svi_alert_feature features[SVI_ALERT_TOP];
    struct svi_contribution c[SVI_ALERT_TOP_MAX];
    const int count = out->event.count, shown = count < SVI_ALERT_TOP ? count : SVI_ALERT_TOP;
    const int first = count > 0 && s->judgement.excess > 0; /* 1: place 0 is not sorted */
    memcpy(c, out->top, (size_t)count * sizeof *c);
    /* Insertion sort, stable: five features at most. The event keeps its own order, so a copy is sorted. */
    for (int i = 1; i < count; i++)
        for (int k = i; k > first && alert_report_excess(&c[k]) > alert_report_excess(&c[k - 1]); k--) {
            const struct svi_contribution t = c[k];
            c[k] = c[k - 1];
            c[k - 1] = t;
        }
    for (int i = 0; i < shown; i++)
        features[i] = (struct svi_alert_feature){.name = c[i].feature,
                                                 .column = c[i].column,
                                                 .unit = svi_schema_unit(of->schema, c[i].column),
                                                 .value = c[i].value,
                                                 .low = c[i].low,
                                                 .high = c[i].high};
    if (first)
        features[0].beyond = svi_detector_range(s->detector, s->judgement.feature, &features[0].earlier_low,
                                                &features[0].earlier_high);
    const struct svi_alert_line line = {.state = change,
                                        .stream = of->stream,
                                        .top = features,
                                        .count = shown,
                                        .novelty = out->event.novelty,
                                        .p = out->event.p,
                                        .grade = s->alert.worst,
                                        .since = s->alert.since,
                                        .time = of->ts};
    svi_alert_text(out->text, &line);
}

/* ---- under a budget: what the detectors found */

/* A feature is named if it lies at least this part as far outside as the farthest one. */
#define PLAINLY 0.25

/* The detector's evidence as a person reads it. Strings belong to the schema and are valid for
 * this report. */
static struct svi_alert_fact fact_of(const struct svi_alert_stage *s, const struct svi_alert_sample *sample,
                                     const struct svi_schema *schema, enum svi_alert_detector detector) {
    const struct svi_evidence *f = &s->evidence[detector];
    const bool with = f->with >= 0 && f->with < sample->d;
    const double interval = 86400 / svi_budget_rows_a_day(&s->policy.budget);
    double low = f->low, high = f->high;
    if (isnan(low)) /* a detector without a forecast compares with all past values */
        svi_detector_normal_range(s->detector, f->feature, &low, &high);
    return (struct svi_alert_fact){.detector = detector,
                                   .text = svi_detector_row(detector)->engine->text,
                                   .name = svi_schema_name(schema, f->feature),
                                   .column = f->feature,
                                   .unit = svi_schema_unit(schema, f->feature),
                                   .value = f->value,
                                   .expected = f->expected,
                                   .low = low,
                                   .high = high,
                                   .seconds = f->over > 1 ? f->over * interval : 0,
                                   .with = with ? f->with : -1,
                                   .with_name = with ? svi_schema_name(schema, f->with) : NULL,
                                   .with_unit = with ? svi_schema_unit(schema, f->with) : NULL,
                                   .with_value = with ? sample->x[f->with] : NAN};
}

/* A fact of the row itself: no forecast, no other feature, no detector of sensors behind it. */
static struct svi_alert_fact fact_of_row(const struct svi_schema *schema, const struct svi_contribution *c) {
    return (struct svi_alert_fact){.name = c->feature,
                                   .column = c->column,
                                   .unit = svi_schema_unit(schema, c->column),
                                   .value = c->value,
                                   .expected = NAN,
                                   .low = c->low,
                                   .high = c->high,
                                   .with = -1};
}

/* No feature is named twice in a line, even if two detectors found it. */
static bool fact_is_new(const struct svi_alert_fact *facts, int count, int column) {
    for (int i = 0; i < count; i++)
        if (facts[i].column == column)
            return false;
    return true;
}

/* Facts of the detectors of sensors: the leading one first, then those at their level, by their ratio.
 * Returns their number, SVI_ALERT_TOP at most. */
static int add_detector_facts(const struct svi_alert_stage *s, const struct svi_alert_sample *sample,
                              const struct svi_schema *schema, struct svi_alert_fact *facts) {
    bool taken[SVI_DETECTORS] = {false};
    int count = 0;
    for (int n = 0; n < SVI_DETECTORS && count < SVI_ALERT_TOP; n++) {
        /* Selection by hand: at most SVI_DETECTORS passes. The leading detector wins even with a smaller
         * ratio, because it may be the only record among them. */
        int best = -1;
        for (int i = 0; i < SVI_DETECTORS; i++)
            if (!taken[i] && s->evidence[i].feature >= 0 && s->evidence[i].feature < sample->d &&
                (i == (int)s->policy.lead || s->policy.ratio[i] >= 1) &&
                (best < 0 || i == (int)s->policy.lead ||
                 (best != (int)s->policy.lead && s->policy.ratio[i] > s->policy.ratio[best])))
                best = i;
        if (best < 0)
            break;
        taken[best] = true;
        if (fact_is_new(facts, count, s->evidence[best].feature))
            facts[count++] = fact_of(s, sample, schema, (enum svi_alert_detector)best);
    }
    return count;
}

/* Facts of a row that is anomalous as a whole: the features outside their normal range; if there are none,
 * the two that add most, as a combination. `count`: facts so far; returns the new number. */
static int add_row_facts(const struct svi_alert_report *out, const struct svi_schema *schema,
                         struct svi_alert_fact *facts, int count, bool *combination) {
    const struct svi_contribution *top = out->top;
    double farthest = 0;
    for (int i = 0; i < out->event.count; i++)
        farthest = fmax(farthest, alert_report_excess(&top[i]));
    for (int i = 0; i < out->event.count && count < SVI_ALERT_TOP; i++)
        if (farthest > 0 && alert_report_excess(&top[i]) >= PLAINLY * farthest &&
            fact_is_new(facts, count, top[i].column))
            facts[count++] = fact_of_row(schema, &top[i]);
    /* Only as a last resort: a detector's fact explains more than "unusual combination". */
    *combination = count == 0 && out->event.count >= 2;
    for (int i = 0; i < 2 && *combination; i++)
        facts[count++] = fact_of_row(schema, &top[i]);
    return count;
}

static void write_episode(const struct svi_alert_stage *s, const struct svi_alert_sample *sample,
                          const struct svi_alert_subject *of, enum svi_alert_change change,
                          struct svi_alert_report *out) {
    const struct svi_alert_policy *d = &s->policy;
    struct svi_alert_fact facts[SVI_ALERT_TOP];
    struct svi_episode_line line = {.state = change,
                                    .news = d->news,
                                    .severity = d->severity,
                                    .stream = of->stream,
                                    .facts = facts,
                                    .surprise = out->event.surprise,
                                    .since = s->alert.since,
                                    .time = of->ts,
                                    .lasted = 86400 * (d->budget.days - d->began)};
    const struct svi_detector_row *lead = svi_detector_row(d->lead);
    svs_error err;
    /* Rows are explained only if a detector of rows leads or ROW is at its level: otherwise a sensor is the
     * reason, and further features would distract. */
    line.opening = lead->opening;
    if (change != SVI_ALERT_CLOSE) {
        line.count = add_detector_facts(s, sample, of->schema, facts);
        if (lead->engine->of_rows || d->ratio[SVI_DETECTOR_ROW] >= 1)
            line.count = add_row_facts(out, of->schema, facts, line.count, &line.combination);
    }
    (void)svi_calendar_set_zone(of->schema->zone, &err); /* unknown zone: times are in UTC */
    svi_episode_text(out->text, &line);
}

/* A close is attributed to the detector that was reported last, with the largest surprise of the episode: the
 * closing sample itself is normal. */
static void add_detector(const struct svi_alert_stage *s, enum svi_alert_change change,
                         struct svi_alert_event *e) {
    const struct svi_evidence *f = &s->evidence[s->policy.detector];
    const bool closes = change == SVI_ALERT_CLOSE;
    e->judge = svi_detector_row(s->policy.detector)->name;
    e->severity = svi_alert_severity_name(s->policy.severity);
    e->surprise = closes ? s->policy.surprise : f->surprise;
    e->expected = closes ? NAN : f->expected;
    e->over = closes ? 1 : f->over;
}

/* Which feature the alert is about, for mutes of a sensor: that of the leading detector, if it has one, and
 * whether the episode has found others too. */
static void report_lead(const struct svi_alert_stage *s, const struct svi_schema *schema,
                        struct svi_alert_event *event) {
    const struct svi_alert_policy *d = &s->policy;
    const int lead = s->evidence[d->lead].feature;
    const int own = lead >= 0 ? lead : event->count > 0 ? event->top[0].column : -1;
    event->lead = lead >= 0 ? svi_schema_name(schema, lead) : NULL;
    for (int i = 0; i < d->feature_count; i++)
        event->several = event->several || (d->features[i] >= 0 && d->features[i] != own);
}

bool svi_alert_report_change(struct svi_alert_stage *s, const struct svi_alert_sample *sample,
                             const struct svi_alert_subject *of, enum svi_alert_change change,
                             struct svi_alert_report *out) {
    /* Novelty was switched off by this sample (too many columns): an alert must not stay open for ever. */
    if (!s->on)
        return svi_alert_report_end(s, of->stream, s->reason, out);
    if (change == SVI_ALERT_NONE)
        return false;
    const bool closes = change == SVI_ALERT_CLOSE; /* a normal sample has no features to list */
    out->event = (struct svi_alert_event){.state = svi_alert_change_name(change),
                                          .id = of->id,
                                          .novelty = s->judgement.novelty,
                                          .membership = s->judgement.membership,
                                          .p = s->judgement.p,
                                          .grade = closes ? s->alert.worst : s->grade,
                                          .since = s->alert.since,
                                          .top = out->top,
                                          .count = closes ? 0 : find_top(s, sample, of->schema, out->top),
                                          .text = out->text};
    if (svi_alert_policy_is_on(&s->policy)) {
        add_detector(s, change, &out->event);
        report_lead(s, of->schema, &out->event);
        write_episode(s, sample, of, change, out);
    } else {
        write_line(s, of, change, out);
    }
    return true;
}

bool svi_alert_report_end(struct svi_alert_stage *s, const char *stream, const char *why,
                          struct svi_alert_report *out) {
    if (!s->alert.open)
        return false;
    /* Neither `closed` nor the cool-down is set: what follows is a new start, not the next disturbance. */
    s->alert.open = false;
    out->event = (struct svi_alert_event){.state = "close",
                                          .id = svs_none(),
                                          .novelty = NAN,
                                          .membership = NAN,
                                          .p = NAN,
                                          .grade = s->alert.worst,
                                          .since = s->alert.since,
                                          .top = out->top,
                                          .text = out->text};
    if (svi_alert_policy_is_on(&s->policy))
        add_detector(s, SVI_ALERT_CLOSE, &out->event);
    snprintf(out->text, sizeof out->text, "%s alert ended: %s", stream, why);
    return true;
}
