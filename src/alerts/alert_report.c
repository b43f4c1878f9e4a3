/* The event of a novelty alert: its top features with their normal ranges, and the line for a person.
 *
 * The event of any alert lists the features that add most to the surprise of the row (find_top). The line
 * depends on the budget:
 *
 *   without one (write_line)   the same features, in another order: the one beyond its earlier range first,
 *                              then by how far they lie outside their normal range;
 *   with one (write_episode)   the facts that the detectors found, the leading one first
 * (add_detector_facts), then of the row the features outside their normal range or, if there are not any, the
 * two that are anomalous together (add_row_facts).
 *
 * Columns of a row are lag x d + feature. `rows.x` and `rows.adds` serve as scratch once the row is assessed.
 */
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
    const int ago = column / s->rows.d;
    const bool step = s->differences && ago > 0; /* the first of them is the step to the sample itself */
    struct svi_contribution c = {.feature = svi_schema_name(schema, column % s->rows.d),
                                 .column = column % s->rows.d,
                                 .value = s->rows.row[column],
                                 .ago = ago - (step ? 1 : 0),
                                 .step = step,
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

/* Is the column one value of a category, as "shift=day" is? */
static bool is_category(const struct svi_schema *schema, int column) {
    return schema->columns && column >= 0 && column < schema->shape.d && schema->one_hot[column];
}

/* The line without a budget: the feature beyond its earlier range first, then by distance from the normal
 * range; features within it keep their order, by contribution. */
static void write_line(const struct svi_alert_stage *s, const struct svi_alert_sample *sample,
                       const struct svi_alert_subject *of, enum svi_alert_change change,
                       struct svi_alert_report *out) {
    const bool by_rows = svi_alert_stage_counts_rows(s, sample);
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
                                                 .category = is_category(of->schema, c[i].column),
                                                 .ago = c[i].ago,
                                                 .step = c[i].step,
                                                 .value = c[i].value,
                                                 .low = c[i].low,
                                                 .high = c[i].high};
    if (first)
        features[0].beyond = svi_detector_range(s->detector, s->judgement.feature, &features[0].earlier_low,
                                                &features[0].earlier_high);
    const struct svi_alert_line line = {.state = change,
                                        .stream = of->stream,
                                        .zone = of->schema->zone,
                                        .top = features,
                                        .count = shown,
                                        .novelty = out->event.novelty,
                                        .p = out->event.p,
                                        .by_rows = by_rows,
                                        .since = by_rows ? (double)s->alert.begin_row : s->alert.begin,
                                        .time = by_rows ? (double)sample->number : of->ts};
    svi_alert_text(out->text, &line);
}

/* ---- under a budget: what the detectors found */

/* A feature is named if it lies at least this part as far outside as the farthest one. */
#define PLAINLY 0.25

#define CLEARLY 2.0 /* factor between what two features explain, from which one alone deviates */
#define BEFORE  5   /* rows before a change that a feature's move is measured from */

/* How much of the row's surprise a feature explains: what is lost when the row is assessed without it, in all
 * of its lags. A feature that is only the context in which another one is wrong leaves the row as novel as it
 * was. */
static double explained_by(struct svi_alert_stage *s, int feature) {
    struct svi_judgement without, again;
    double *row = s->rows.row, *kept = s->rows.adds; /* scratch: the contributions have been read */
    const size_t size = (size_t)s->rows.d * (size_t)s->lags * sizeof *row;
    memcpy(kept, row, size);
    for (int l = 0; l < s->lags; l++)
        row[l * s->rows.d + feature] = NAN;
    svi_detector_assess(s->detector, row, &without);
    memcpy(row, kept, size);
    /* What the detector holds of the sample assessed last is that of the row again: learning needs it. */
    svi_detector_assess(s->detector, row, &again);
    const double left = without.unknown ? 0 : without.surprise + without.excess;
    return again.surprise + again.excess - left;
}

/* How far the last `rows` of a column are from the BEFORE rows before them, in widths of its normal range.
 * NAN: the history has none before. */
static double fact_moved(const struct svi_alert_stage *s, int column, int rows) {
    const struct svi_history_span both = svi_history_over(&s->history, column, rows + BEFORE),
                                  last = svi_history_over(&s->history, column, rows);
    double low, high;
    if (both.values == last.values)
        return NAN;
    svi_detector_normal_range(s->detector, column, &low, &high);
    const double before = (both.mean * both.values - last.mean * last.values) / (both.values - last.values);
    return (last.mean - before) / fmax(high - low, 1e-9 * fabs(before));
}

/* Is the evidence of a feature whose forecast is wrong because the one that it depends on deviates? Not the
 * ampere meter of a machine at rest, but the vibration that rose. That one deviates if it explains clearly
 * more of the row than the feature does. Where neither does, as between two features alone, the one that
 * moved when the change began: the feature stayed if less than half of its residual is its own move. */
static bool fact_is_of_other(struct svi_alert_stage *s, const struct svi_evidence *f, int rows) {
    double low, high;
    if (f->with < 0 || !isfinite(f->residual))
        return false;
    const double own = fmax(0, explained_by(s, f->feature)), with = fmax(0, explained_by(s, f->with));
    if (with > CLEARLY * own || own > CLEARLY * with)
        return with > own;
    svi_detector_normal_range(s->detector, f->feature, &low, &high);
    const double moved = fact_moved(s, f->feature, rows), other = fact_moved(s, f->with, rows);
    return moved / (f->residual / fmax(high - low, 1e-9 * fabs(f->value))) < 0.5 && fabs(other) > fabs(moved);
}

/* The forecast of a mean. Two estimates: that of the present row, exact if it was the same in all of the
 * rows; and the mean less the mean residual, which is known in deviations that may have grown since. The one
 * nearer to the mean is taken, so the difference is never overstated. */
static double fact_forecast(const struct svi_evidence *f, double mean) {
    const double now = mean - f->expected;
    return now * f->residual > 0 && fabs(now) < fabs(f->residual) ? f->expected : mean - f->residual;
}

/* The detector's evidence as a person reads it: readings over the time since the change. Strings belong to
 * the schema and are valid for this report. */
static struct svi_alert_fact fact_of(struct svi_alert_stage *s, const struct svi_alert_sample *sample,
                                     const struct svi_schema *schema, enum svi_alert_detector detector) {
    const struct svi_evidence *f = &s->evidence[detector];
    const bool with = f->with >= 0 && f->with < sample->d;
    const struct svi_history_span span = svi_history_over(&s->history, f->feature, f->since),
                                  beside = svi_history_over(&s->history, with ? f->with : -1, f->since);
    const bool several = span.rows > 1 && span.values > 1, by_rows = svi_alert_stage_counts_rows(s, sample);
    const double value = several ? span.mean : f->value;
    const double moved = several ? fact_forecast(f, value) - f->expected : 0;
    struct svi_alert_fact fact = {
        .detector = detector,
        .basis = svi_detector_row(detector)->engine->basis,
        .name = svi_schema_name(schema, f->feature),
        .column = f->feature,
        .unit = svi_schema_unit(schema, f->feature),
        .category = is_category(schema, f->feature),
        .with_category = with && is_category(schema, f->with),
        .value = value,
        .expected = f->expected + moved,
        .low = f->low + moved,
        .high = f->high + moved,
        /* The first row's own interval counts, too: 30 rows a minute apart are 30 minutes. */
        .span = !several  ? 0
                : by_rows ? span.rows
                          : (span.end - span.begin) * span.rows / (span.rows - 1),
        .with = with ? f->with : -1,
        .with_name = with ? svi_schema_name(schema, f->with) : NULL,
        .with_unit = with ? svi_schema_unit(schema, f->with) : NULL,
        .with_value = !with                          ? NAN
                      : several && beside.values > 0 ? beside.mean
                                                     : sample->x[f->with]};
    if (isnan(f->residual)) { /* no forecast: all past values are the measure */
        fact.expected = NAN;
        svi_detector_normal_range(s->detector, f->feature, &fact.low, &fact.high);
    }
    if (detector == SVI_DETECTOR_SPREAD && several) {
        fact.deviates = SVI_DEVIATES_SPREAD;
        fact.low = span.least;
        fact.high = span.most;
    }
    if (detector == SVI_DETECTOR_FORECAST && with && (value > fact.high || value < fact.low) &&
        fact_is_of_other(s, f, span.rows)) {
        const struct svi_alert_fact of = fact;
        fact.deviates = SVI_DEVIATES_OTHER;
        fact.column = of.with;
        fact.name = of.with_name;
        fact.unit = of.with_unit;
        fact.value = of.with_value;
        fact.with = of.column;
        fact.with_name = of.name;
        fact.with_unit = of.unit;
        fact.with_value = of.value;
        fact.category = of.with_category;
        fact.with_category = of.category;
    }
    return fact;
}

/* A fact of the row itself: no forecast, no other feature, no detector of sensors behind it. */
static struct svi_alert_fact fact_of_row(const struct svi_schema *schema, const struct svi_contribution *c) {
    return (struct svi_alert_fact){.name = c->feature,
                                   .column = c->column,
                                   .unit = svi_schema_unit(schema, c->column),
                                   .category = is_category(schema, c->column),
                                   .ago = c->ago,
                                   .step = c->step,
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
static int add_detector_facts(struct svi_alert_stage *s, const struct svi_alert_sample *sample,
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
        facts[count] = fact_of(s, sample, schema, (enum svi_alert_detector)best);
        count += fact_is_new(facts, count, facts[count].column);
    }
    return count;
}

/* Sorts the features of a row by how much of it each explains. Of equals, the one that adds most stays first.
 */
static void sort_by_explanation(struct svi_alert_stage *s, struct svi_contribution *top, int count) {
    double explains[SVI_ALERT_TOP_MAX];
    for (int i = 0; i < count; i++)
        explains[i] = explained_by(s, top[i].column);
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && explains[k] > explains[k - 1]; k--) {
            const struct svi_contribution t = top[k];
            const double most = explains[k];
            top[k] = top[k - 1];
            top[k - 1] = t;
            explains[k] = explains[k - 1];
            explains[k - 1] = most;
        }
}

/* The detector with a forecast that finds this feature most surprising, if nearly at its level; else
 * SVI_DETECTORS. Where the row itself leads, a change that began before it is another matter. */
static int forecast_of(const struct svi_alert_stage *s, int feature) {
    int best = SVI_DETECTORS;
    for (int i = 0; i < SVI_DETECTORS; i++)
        if (s->evidence[i].feature == feature && isfinite(s->evidence[i].residual) &&
            (s->policy.lead != SVI_DETECTOR_ROW || s->evidence[i].since == 1) &&
            s->policy.ratio[i] >= SVI_POLICY_CLEAR &&
            (best == SVI_DETECTORS || s->policy.ratio[i] > s->policy.ratio[best]))
            best = i;
    return best;
}

/* Facts of a row that is anomalous as a whole: the feature that explains most, if a forecast says how it
 * deviates; the features outside their normal range; without any,
 * the two that add most, as a combination. `count`: facts so far; returns the new number. */
static int add_row_facts(struct svi_alert_stage *s, const struct svi_alert_sample *sample,
                         const struct svi_alert_report *out, const struct svi_schema *schema,
                         struct svi_alert_fact *facts, int count, bool *combination) {
    struct svi_contribution top[SVI_ALERT_TOP_MAX]; /* the event keeps its own order */
    double farthest = 0;
    memcpy(top, out->top, (size_t)out->event.count * sizeof *top);
    sort_by_explanation(s, top, out->event.count);
    const int best = out->event.count > 0 ? forecast_of(s, top[0].column) : SVI_DETECTORS;
    if (best < SVI_DETECTORS && count < SVI_ALERT_TOP) {
        facts[count] = fact_of(s, sample, schema, (enum svi_alert_detector)best);
        count += fact_is_new(facts, count, facts[count].column);
    }
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

/* Facts of the features that joined while no report was due, and are not named yet: their values now. */
static int add_joined_facts(const struct svi_alert_stage *s, const struct svi_alert_sample *sample,
                            const struct svi_schema *schema, struct svi_alert_fact *facts, int count) {
    const struct svi_alert_policy *d = &s->policy;
    for (int i = d->features_before; i < d->feature_count && count < SVI_ALERT_TOP; i++) {
        const int j = d->features[i];
        if (j < 0 || j >= sample->d || !fact_is_new(facts, count, j))
            continue;
        struct svi_contribution c = {.feature = svi_schema_name(schema, j),
                                     .column = j,
                                     .value = sample->x[j],
                                     .low = NAN,
                                     .high = NAN};
        svi_detector_normal_range(s->detector, j, &c.low, &c.high);
        facts[count++] = fact_of_row(schema, &c);
    }
    return count;
}

/* Where rows are what is surprising, the feature that explains most of this one leads. */
static void facts_sort(struct svi_alert_stage *s, struct svi_alert_fact *facts, int count) {
    int first = 0;
    double most = -INFINITY;
    for (int i = 0; i < count && count > 1; i++) {
        const double explains = explained_by(s, facts[i].column);
        first = explains > most ? i : first;
        most = fmax(most, explains);
    }
    const struct svi_alert_fact leads = facts[first];
    memmove(facts + 1, facts, (size_t)first * sizeof *facts);
    facts[0] = leads;
}

/* Returns the column of the feature that the line is about; -1: it names none. */
static int write_episode(struct svi_alert_stage *s, const struct svi_alert_sample *sample,
                         const struct svi_alert_subject *of, enum svi_alert_change change,
                         struct svi_alert_report *out) {
    const struct svi_alert_policy *d = &s->policy;
    const bool by_rows = svi_alert_stage_counts_rows(s, sample);
    struct svi_alert_fact facts[SVI_ALERT_TOP];
    struct svi_episode_line line = {
        .state = change,
        .news = d->news,
        .severity = d->severity,
        .stream = of->stream,
        .zone = of->schema->zone,
        .facts = facts,
        /* Of an alert that only lasts, the present row may be hardly surprising. */
        .surprise = fmax(out->event.surprise, d->surprise),
        .rows = (double)s->alert.seen,
        .rows_a_day = svi_budget_rows_a_day(&d->budget),
        .by_rows = by_rows,
        .since = by_rows ? (double)s->alert.begin_row : s->alert.begin,
        .time = by_rows ? (double)sample->number : of->ts};
    const struct svi_detector_row *lead = svi_detector_row(d->lead);
    /* Rows are explained only if a detector of rows leads or ROW is at its level: otherwise a sensor is the
     * reason, and further features would distract. */
    line.opening = lead->opening;
    if (change != SVI_ALERT_CLOSE) {
        line.count = add_detector_facts(s, sample, of->schema, facts);
        if (lead->engine->of_rows && line.count > 1)
            facts_sort(s, facts, line.count);
        if (change == SVI_ALERT_UPDATE)
            line.count = add_joined_facts(s, sample, of->schema, facts, line.count);
        if (lead->engine->of_rows || d->ratio[SVI_DETECTOR_ROW] >= 1)
            line.count = add_row_facts(s, sample, out, of->schema, facts, line.count, &line.combination);
    }
    svi_episode_text(out->text, &line);
    return line.count > 0 ? facts[0].column : -1;
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

/* Which feature the alert is about, for mutes of a sensor and for groups: that of the leading detector, or of
 * a row the one that its line begins with; and whether the episode has found others too. */
static void report_lead(const struct svi_alert_stage *s, const struct svi_schema *schema, int shown,
                        struct svi_alert_event *event) {
    const struct svi_alert_policy *d = &s->policy;
    const int found = s->evidence[d->lead].feature, lead = found >= 0 ? found : shown;
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
        report_lead(s, of->schema, write_episode(s, sample, of, change, out), &out->event);
    } else {
        write_line(s, sample, of, change, out);
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
    svi_alert_ended(out->text, stream, "alert", why);
    return true;
}
