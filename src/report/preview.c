/* The passes over the rows, and their output.
 *
 * The first pass prints alerts as they occur, then the summary. Each further pass runs with another budget
 * for one row of the table; the budget of the settings is not run again. Incidents hold the results of one
 * pass only, so they are printed before the next.
 *
 * Times are those of the samples. If these have none, row numbers stand for times in the lines, incidents and
 * delays; rates are then per 1,000 rows, unless the duration of a row is given. */
#include "report/preview.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/human.h"

#define DAY        86400.0
#define RATE_ROWS  1000.0
#define KEYS_SHOWN 10 /* keys listed in the line "by key" */
#define EACH_SHOWN 50 /* incidents listed in the table */

/* ---- beginning */

static svs_code preview_add_budget(struct svi_preview *l, const char *word, size_t length, bool named,
                                   const struct svi_settings *s, svs_error *err) {
    struct svi_settings with;
    char text[SVI_PREVIEW_BUDGET], shown[60];
    svs_error why;
    if (l->budget_count == SVI_PREVIEW_BUDGETS_MAX)
        return svi_fail(err, SVS_SETTING, "--budgets: more than %d budgets: leave some out",
                        SVI_PREVIEW_BUDGETS_MAX);
    if (length == 0 || length >= sizeof text)
        return svi_fail(err, SVS_SETTING,
                        "--budgets: '%s' is not a budget: write a list such as 1/week,1/day, or none",
                        svi_escape(shown, sizeof shown, word, length));
    snprintf(text, sizeof text, "%.*s", (int)length, word);
    if (s)
        with = *s;
    else
        svi_settings_default(&with);
    /* Checked as a setting would be, so that the error is the same; against the whole settings once they are
     * known. */
    svs_code code = svi_settings_set(&with, "alert.budget", text, &why);
    if (code == SVS_OK && s)
        code = svi_settings_check(&with, &why);
    if (code != SVS_OK && !named) /* default budgets that contradict the settings are dropped silently */
        return SVS_OK;
    if (code != SVS_OK)
        return svi_fail(err, code, "--budgets %s: %.200s", svi_escape(shown, sizeof shown, word, length),
                        why.text);
    memcpy(l->budgets[l->budget_count++], text, sizeof text);
    return SVS_OK;
}

/* Without incidents the table is printed only on request: it costs a pass for each budget. */
static svs_code preview_take_budgets(struct svi_preview *l, const struct svi_settings *s, svs_error *err) {
    const bool named = l->o.budgets != NULL;
    const char *at = named ? l->o.budgets : l->o.incidents ? SVI_PREVIEW_BUDGETS : "none";
    svs_code code = SVS_OK;
    if (strcmp(at, "none") == 0)
        return SVS_OK;
    if (l->o.once && named)
        return svi_fail(err, SVS_SETTING,
                        "--budgets reads the rows once for each budget, but standard input can be read only "
                        "once: give a file");
    /* The default table is left out silently: nobody asked for it. */
    if (l->o.once)
        return SVS_OK;
    while (code == SVS_OK) {
        const size_t length = strcspn(at, ",");
        code = preview_add_budget(l, at, length, named, s, err);
        if (!at[length])
            break;
        at += length + 1;
    }
    return code;
}

/* Replaces the plots by `count` empty ones. */
static svs_code preview_make_plots(struct svi_preview *l, int count, svs_error *err) {
    svi_free(l->plots);
    l->plots = svi_alloc_array((size_t)count, sizeof *l->plots);
    l->plot_count = l->plots ? count : 0;
    return l->plots ? SVS_OK : svi_fail_memory(err, "the plot");
}

svs_code svi_preview_begin(struct svi_preview *l, const struct svi_preview_options *o,
                           const struct svi_settings *s, svs_error *err) {
    l->o = *o;
    svs_code code = SVS_OK;
    if (s)
        snprintf(l->set, sizeof l->set, "%.*s", (int)sizeof l->set - 1, s->alert_budget);
    if (o->incidents)
        code = svi_incidents_read(&l->incidents, o->incidents, o->tolerance, err);
    if (code == SVS_OK)
        code = preview_take_budgets(l, s, err);
    if (code == SVS_OK && o->plot && o->once && s && svi_settings_keyed(s))
        code = svi_fail(
            err, SVS_SETTING,
            "--plot with keys reads the rows twice, but standard input can be read only once: give a file");
    return code == SVS_OK && o->plot ? preview_make_plots(l, 1, err) : code;
}

void svi_preview_clear(struct svi_preview *l) {
    svi_incidents_clear(&l->incidents);
    svi_alert_log_clear(&l->log);
    svi_bytes_clear(&l->json);
    svi_free(l->plots);
    l->plots = NULL;
    l->plot_count = 0;
}

/* ---- for passes */

svs_code svi_preview_without_times(struct svi_alert_log *log, svs_error *err) {
    log->by_rows = true;
    if (log->incidents && log->incidents->text)
        return svi_fail(err, SVS_SETTING,
                        "the incidents have times, but the rows have none: name the column of the times with "
                        "--ts, or write row numbers, from 1, as start and end");
    return SVS_OK;
}

void svi_preview_end_pass(struct svi_alert_log *log, svi_stream *stream) {
    /* The budget in effect: the settings may have been those of a kept state. */
    snprintf(log->budget, sizeof log->budget, "%.*s", (int)sizeof log->budget - 1,
             svi_stream_settings(stream)->alert_budget);
    svi_alert_log_end(log);
    if (log->progress)
        svi_progress_clear(log->progress);
    for (int i = 0; i < log->plot_count; i++) {
        /* Each key has its own columns; the root has none of them. */
        svs_error none;
        svi_engine *of = log->plots[i].keyed ? svi_stream_engine(stream, log->plots[i].key, &none) : NULL;
        of = of ? of : svi_stream_root(stream);
        svi_alert_plot_names(&log->plots[i], &svi_engine_schema(of)->shape);
    }
}

/* ---- figures */

/* Duration of the rows in days; NAN: not known. */
static double preview_days(const struct svi_preview *l) {
    const struct svi_alert_log *log = &l->log;
    if (!log->by_rows)
        return log->last > log->first ? (log->last - log->first) / DAY : NAN;
    return isnan(l->o.row_seconds) || log->rows == 0 ? NAN : (double)log->rows * l->o.row_seconds / DAY;
}

static double preview_row_rate(const struct svi_preview *l, int64_t count) {
    return l->log.rows > 0 ? (double)count * RATE_ROWS / (double)l->log.rows : NAN;
}

static double preview_rate(const struct svi_preview *l, int64_t count) {
    const double days = preview_days(l);
    return isnan(days) ? preview_row_rate(l, count) : (double)count / days;
}

static const char *preview_rate_unit(const struct svi_preview *l) {
    return isnan(preview_days(l)) ? "per 1,000 rows" : "a day";
}

/* Results of the pass that has just ended. An alert that belongs to an incident is true, every other is
 * false. */
static svs_code preview_settle(struct svi_preview *l, const char *budget, struct svi_preview_result *r,
                               svs_error *err) {
    const struct svi_alert_log *log = &l->log;
    /* Copied out of the log, which the next pass clears. */
    *r = (struct svi_preview_result){
        .alerts = log->alerts,
        .outside = log->outside,
        .rate = preview_rate(l, log->alerts),
        .false_rate = preview_rate(l, log->outside),
        .precision = log->alerts > 0 ? (double)(log->alerts - log->outside) / (double)log->alerts : NAN};
    snprintf(r->budget, sizeof r->budget, "%s", budget ? budget : log->budget);
    if (log->failed)
        return svi_fail_memory(err, "the alerts");
    return svi_incidents_figures(&l->incidents, log->first, log->last, &r->incidents, err);
}

/* ---- for people */

/* "0.071", "13.2", "140": at most three digits, two below 1. */
static const char *preview_number(char out[SVI_HUMAN], double v) {
    return v >= 100 || v == 0 ? svi_human_places(out, v, 0) : svi_human_digits(out, v, v >= 1 ? 3 : 2);
}

/* "0.36 a day"; for less than a day "in 21 min", as a rate would extrapolate. */
static const char *preview_rate_text(const struct svi_preview *l, char out[2 * SVI_HUMAN], double rate) {
    char a[SVI_HUMAN];
    const double days = preview_days(l);
    if (days < 1)
        snprintf(out, 2 * SVI_HUMAN, "in %s", svi_human_span(a, false, days * DAY));
    else
        snprintf(out, 2 * SVI_HUMAN, "%s %s", preview_number(a, rate), preview_rate_unit(l));
    return out;
}

/* A delay or a duration: seconds, or rows. */
static const char *preview_span(const struct svi_preview *l, char out[SVI_HUMAN], double span) {
    return svi_human_span(out, l->log.by_rows, span);
}

static const char *preview_moment(const struct svi_preview *l, char out[SVI_HUMAN], double at) {
    return svi_human_place(out, l->log.by_rows, at);
}

/* "novelty 9, quality 2". */
static void preview_print_kinds(const char *title, const struct svi_alert_kind *kinds) {
    for (int i = 0; i < SVI_ALERT_LOG_KINDS && kinds[i].count; i++) {
        if (i == 0)
            printf("  %-16s ", title);
        printf("%s%s %" PRId64, i > 0 ? ", " : "", kinds[i].name, kinds[i].count);
    }
    if (kinds[0].count)
        putchar('\n');
}

/* The next key in descending order of alerts, of equals the first reported. No sorted copy is needed for a
 * few keys. */
static const struct svi_alert_key *preview_next_key(const struct svi_alert_log *log,
                                                    const struct svi_alert_key *before) {
    const struct svi_alert_key *best = NULL;
    /* The largest count after that of the previous key; the order of the array breaks ties. */
    for (const struct svi_alert_key *k = log->keys; k < log->keys + log->key_count; k++)
        if ((!before || k->count < before->count || (k->count == before->count && k > before)) &&
            (!best || k->count > best->count))
            best = k;
    return best;
}

/* A line of the keys with most alerts; the rest is a number. */
static void preview_print_keys(const struct svi_alert_log *log) {
    char shown[2 * SVS_KEY_MAX];
    const struct svi_alert_key *k = NULL;
    if (log->key_count == 0)
        return;
    printf("  %-16s ", "by key");
    for (int i = 0; i < KEYS_SHOWN && (k = preview_next_key(log, k)); i++)
        printf("%s%s %" PRId64, i > 0 ? ", " : "",
               k->name[0] ? svi_escape(shown, sizeof shown, k->name, strlen(k->name)) : "''", k->count);
    if (log->key_count > KEYS_SHOWN)
        printf(" and %" PRId64 " keys more", log->key_count - KEYS_SHOWN);
    putchar('\n');
}

static void preview_print_alerts(const struct svi_preview *l) {
    const struct svi_alert_log *log = &l->log;
    char a[SVI_HUMAN], b[SVI_HUMAN], rate[2 * SVI_HUMAN];
    const double days = preview_days(l);
    printf("%-18s %" PRId64 "\n", "rows", log->rows);
    /* Three cases: times of the samples; rows of a known duration; rows alone, without a line. */
    if (log->rows > 0 && !log->by_rows)
        printf("%-18s %s to %s UTC, %s\n", "time", svi_human_moment(a, log->first),
               svi_human_moment(b, log->last),
               svi_human_span((char[SVI_HUMAN]){0}, false, log->last - log->first));
    else if (!isnan(days))
        printf("%-18s %s, at %g s a row\n", "time", svi_human_span(a, false, days * DAY), l->o.row_seconds);
    printf("%-18s %" PRId64 "  (%s)\n", "alerts", log->alerts, preview_rate_text(l, rate, l->result[0].rate));
    preview_print_kinds("by kind", log->kinds);
    preview_print_kinds("by detector/rule", log->judges);
    preview_print_keys(log);
    if (log->updates > 0)
        printf("%-18s %" PRId64 "\n", "updates", log->updates);
    if (log->open_count > 0)
        printf("%-18s %" PRId64 "\n", "open at the end", log->open_count);
    if (log->closed > 0)
        printf("%-18s %s on average, %s at most\n", "lasted",
               preview_span(l, a, log->lasted / (double)log->closed), preview_span(l, b, log->longest));
}

/* A budget of one a day keeps quiet in a file of a few hours, whatever happens there. One an hour, the
 * advice, is no more than a budget of 24 a day. */
static void preview_advise(const struct svi_preview *l) {
    const struct svi_alert_log *log = &l->log;
    const double days = preview_days(l);
    char span[SVI_HUMAN];
    const double daily = strstr(log->budget, "/day")    ? atof(log->budget)
                         : strstr(log->budget, "/week") ? atof(log->budget) / 7
                                                        : INFINITY;
    if (log->alerts == 0 && log->rows > 0 && days < 1 && daily < 24)
        fprintf(stderr, "no alert in %s at the budget of %s: --alert.budget 1/hour shows more\n",
                svi_human_span(span, false, days * DAY), log->budget);
}

static void preview_print_incidents(const struct svi_preview *l) {
    const struct svi_preview_result *r = &l->result[0];
    char a[SVI_HUMAN], b[SVI_HUMAN], rate[2 * SVI_HUMAN];
    printf("%-18s %" PRId64, "incidents", r->incidents.count);
    if (r->incidents.outside > 0)
        printf("  (%" PRId64 " more lie outside of the rows)", r->incidents.outside);
    printf("\n%-18s %" PRId64 " of %" PRId64, "found", r->incidents.found, r->incidents.count);
    if (r->incidents.during > 0)
        printf("  (%" PRId64 " of the others began while an alert was open)", r->incidents.during);
    putchar('\n');
    printf("%-18s %s\n", "median delay", preview_span(l, a, r->incidents.median_delay));
    printf("%-18s %" PRId64 "  (%s; in no incident, tolerance %s)\n", "false alerts", r->outside,
           preview_rate_text(l, rate, r->false_rate), preview_span(l, b, l->incidents.tolerance));
    printf("%-18s %s\n", "precision", preview_number(a, r->precision));
}

/* A line for each incident that overlaps the rows, sorted by key and start. One without a name shows its line
 * in the file. */
static void preview_print_each(const struct svi_preview *l) {
    char a[SVI_HUMAN], b[SVI_HUMAN];
    int64_t shown = 0;
    printf("\n%s%-20s %-23s %-14s %s\n", l->incidents.keyed ? "key          " : "", "incident", "start",
           "found after", "alerts");
    for (int64_t i = 0; i < l->incidents.count && shown < EACH_SHOWN; i++) {
        const struct svi_incident *one = &l->incidents.of[i];
        const double delay = svi_incident_delay(one, l->log.first);
        if (!svi_incident_inside(one, l->log.first, l->log.last))
            continue;
        char place[SVI_HUMAN], key[2 * SVS_KEY_MAX];
        snprintf(place, sizeof place, "line %" PRId64, one->line);
        if (l->incidents.keyed)
            printf("%-12s ", one->key[0] ? svi_escape(key, sizeof key, one->key, strlen(one->key)) : "''");
        printf("%-20s %-23s %-14s %" PRId64 "\n", one->name[0] ? one->name : place,
               preview_moment(l, a, one->start),
               !isnan(delay) ? preview_span(l, b, delay)
               : one->during ? "missed (open)"
                             : "missed",
               one->alerts);
        shown++;
    }
    if (l->result[0].incidents.count > shown)
        printf("and %" PRId64 " more: --json has them all\n", l->result[0].incidents.count - shown);
}

/* A row for each budget. With incidents it also has the columns that a person weighs against each other:
 * found and delay against false alerts. */
static void preview_print_budgets(const struct svi_preview *l) {
    char a[SVI_HUMAN], b[SVI_HUMAN];
    const char *const unit = preview_rate_unit(l);
    const bool marked = l->o.incidents;
    printf("\n%-12s %8s %15s", "budget", "alerts", unit);
    if (marked)
        printf(" %10s %14s %20s %10s", "found", "median delay",
               isnan(preview_days(l)) ? "false per 1,000 rows" : "false a day", "precision");
    putchar('\n');
    for (int i = 0; i < l->budget_count; i++) {
        const struct svi_preview_result *r = &l->result[1 + i];
        printf("%-12s %8" PRId64 " %15s", r->budget, r->alerts, preview_number(a, r->rate));
        if (marked) {
            char found[SVI_HUMAN];
            snprintf(found, sizeof found, "%" PRId64 "/%" PRId64, r->incidents.found, r->incidents.count);
            printf(" %10s %14s", found, preview_span(l, a, r->incidents.median_delay));
            printf(" %20s %10s", preview_number(a, r->false_rate), preview_number(b, r->precision));
        }
        putchar('\n');
    }
}

/* ---- for programs */

/* Rates are per day or per 1,000 rows; the one that does not apply is nil. */
static void preview_put_result(const struct svi_preview *l, struct svi_pack *p,
                               const struct svi_preview_result *r) {
    const bool days = !isnan(preview_days(l));
    svi_put_int(p, "alerts", r->alerts);
    svi_put_real(p, "alerts_per_day", days ? r->rate : NAN);
    svi_put_real(p, "alerts_per_1000_rows", preview_row_rate(l, r->alerts));
    svi_put_text(p, "budget", r->budget);
    if (!l->o.incidents)
        return;
    svi_put_int(p, "incidents", r->incidents.count);
    svi_put_int(p, "found", r->incidents.found);
    svi_put_int(p, "missed_while_open", r->incidents.during);
    svi_put_real(p, "median_delay", r->incidents.median_delay);
    svi_put_int(p, "false_alerts", r->outside);
    svi_put_real(p, "false_alerts_per_day", days ? r->false_rate : NAN);
    svi_put_real(p, "false_per_1000_rows", preview_row_rate(l, r->outside));
    svi_put_real(p, "precision", r->precision);
}

static void preview_put_each(const struct svi_preview *l, struct svi_pack *p) {
    svi_put_array(p, "each", (size_t)l->result[0].incidents.count);
    for (int64_t i = 0; i < l->incidents.count; i++) {
        const struct svi_incident *one = &l->incidents.of[i];
        /* Those outside of the rows are only counted. */
        if (!svi_incident_inside(one, l->log.first, l->log.last))
            continue;
        const double delay = svi_incident_delay(one, l->log.first);
        const struct svi_open_map map = svi_pack_open(p);
        if (l->incidents.keyed)
            svi_put_text(p, "key", one->key);
        svi_put_text(p, "name", one->name);
        svi_put_real(p, "start", one->start);
        svi_put_real(p, "end", one->end);
        svi_put_bool(p, "found", !isnan(delay));
        svi_put_real(p, "delay", delay);
        svi_put_bool(p, "during", one->during);
        svi_put_int(p, "alerts", one->alerts);
        svi_pack_close(p, map);
    }
}

static void preview_put_kinds(struct svi_pack *p, const char *key, const struct svi_alert_kind *kinds) {
    svi_pack_key(p, key);
    const struct svi_open_map map = svi_pack_open(p);
    for (int i = 0; i < SVI_ALERT_LOG_KINDS && kinds[i].count; i++)
        svi_put_int(p, kinds[i].name, kinds[i].count);
    svi_pack_close(p, map);
}

static void preview_put_keys(struct svi_pack *p, const struct svi_alert_log *log) {
    svi_put_map(p, "keys", (size_t)log->key_count);
    for (int64_t i = 0; i < log->key_count; i++) {
        svi_pack_name(p, log->keys[i].name, strlen(log->keys[i].name));
        svi_pack_int(p, log->keys[i].count);
    }
}

/* Packs the map of the first pass. If there is a table over budgets, its head already counts the pair that
 * preview_pack_budgets appends after the last pass. */
static svs_code preview_pack(struct svi_preview *l, svs_error *err) {
    const struct svi_alert_log *log = &l->log;
    struct svi_pack p;
    svi_pack_begin(&p, &l->json);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_int(&p, "rows", log->rows);
    svi_put_text(&p, "unit", log->by_rows ? "rows" : "seconds");
    svi_put_real(&p, "first", log->first);
    svi_put_real(&p, "last", log->last);
    svi_put_real(&p, "days", preview_days(l));
    preview_put_result(l, &p, &l->result[0]);
    svi_put_int(&p, "updates", log->updates);
    svi_put_int(&p, "closed", log->closed);
    svi_put_int(&p, "open", log->open_count);
    svi_put_real(&p, "mean_lasted", log->closed > 0 ? log->lasted / (double)log->closed : NAN);
    svi_put_real(&p, "longest", log->closed > 0 ? log->longest : NAN);
    preview_put_kinds(&p, "kinds", log->kinds);
    preview_put_kinds(&p, "detectors", log->judges);
    if (log->key_count > 0)
        preview_put_keys(&p, log);
    /* The events were packed as they arrived; their bytes are copied as a whole. */
    svi_put_array(&p, "events", (size_t)log->event_count);
    svi_pack_raw(&p, log->events.data, log->events.size);
    svi_put_int(&p, "events_left_out", log->events_left_out);
    if (l->o.incidents) {
        svi_put_int(&p, "incidents_outside", l->result[0].incidents.outside);
        svi_put_real(&p, "tolerance", l->incidents.tolerance);
        preview_put_each(l, &p);
    }
    svi_pack_promise(&p, l->budget_count > 0);
    svi_pack_close(&p, map);
    return svi_pack_end(&p) == SVS_OK ? SVS_OK : svi_fail_memory(err, "the result");
}

/* Appends the pair promised by preview_pack. */
static svs_code preview_pack_budgets(struct svi_preview *l, svs_error *err) {
    struct svi_pack p;
    svi_pack_begin(&p, &l->json);
    svi_put_array(&p, "budgets", (size_t)l->budget_count);
    for (int i = 0; i < l->budget_count; i++) {
        const struct svi_open_map map = svi_pack_open(&p);
        preview_put_result(l, &p, &l->result[1 + i]);
        svi_pack_close(&p, map);
    }
    return svi_pack_end(&p) == SVS_OK ? SVS_OK : svi_fail_memory(err, "the result");
}

/* ---- the passes */

/* If no incident overlaps the rows, the clock, the time zone or the file is wrong: an error, not "0 found".
 */
static svs_code preview_check_incidents(const struct svi_preview *l, svs_error *err) {
    char a[SVI_HUMAN], b[SVI_HUMAN], c[SVI_HUMAN], d[SVI_HUMAN];
    const struct svi_incidents *in = &l->incidents;
    if (!l->o.incidents || l->result[0].incidents.count > 0 || l->log.rows == 0)
        return SVS_OK;
    return svi_fail(err, SVS_INVALID,
                    "no incident overlaps the rows, which are from %s to %s, the incidents from %s to %s: "
                    "check the file, the time zone (UTC where a time has none) and the unit",
                    preview_moment(l, a, l->log.first), preview_moment(l, b, l->log.last),
                    preview_moment(l, c, in->of[0].start), preview_moment(l, d, in->of[in->count - 1].start));
}

/* Draws the plot. Which keys are the worst is known only after a pass, and the rows of all keys would not fit
 * into memory, so a stream with keys runs once more for the rows of these. */
static svs_code preview_plot(struct svi_preview *l, svi_preview_pass *pass, void *user, svs_error *err) {
    const char *keys[SVI_ALERT_PLOT_KEYS];
    const int count = svi_alert_log_worst(&l->log, keys, SVI_ALERT_PLOT_KEYS);
    struct svi_alert_log again = {.progress = l->log.progress, .silent = true};
    svs_code code = SVS_OK;
    if (count > 0)
        code = preview_make_plots(l, count, err);
    for (int i = 0; i < count && code == SVS_OK; i++) {
        l->plots[i].keyed = true;
        snprintf(l->plots[i].key, sizeof l->plots[i].key, "%s", keys[i]);
    }
    again.plots = l->plots;
    again.plot_count = l->plot_count;
    if (count > 0 && code == SVS_OK)
        code = pass(user, NULL, &again, err);
    if (code == SVS_OK)
        code =
            svi_alert_plot_write(l->plots, l->plot_count, l->o.plot, l->log.by_rows, l->log.incidents, err);
    svi_alert_log_clear(&again);
    return code;
}

static svs_code preview_first(struct svi_preview *l, svi_preview_pass *pass, void *user, svs_error *err) {
    l->log.lines = l->o.json ? NULL : stdout;
    l->log.keeps = l->o.json;
    l->log.plots = l->plots;
    l->log.plot_count = l->plot_count;
    svs_code code = pass(user, NULL, &l->log, err);
    if (code == SVS_OK)
        code = preview_settle(l, NULL, &l->result[0], err);
    l->log.plots = NULL; /* from here on preview_plot may replace them */
    l->log.plot_count = 0;
    if (code == SVS_OK && l->o.plot)
        code = preview_plot(l, pass, user, err);
    /* Packed now: the further passes reuse the log. */
    if (code == SVS_OK && l->o.json)
        return preview_pack(l, err);
    if (code != SVS_OK)
        return code;
    /* Separates the summary from the lines of alerts above it. */
    if (l->log.alerts > 0)
        putchar('\n');
    preview_print_alerts(l);
    if (!l->o.quiet && !l->o.incidents)
        preview_advise(l);
    if ((code = preview_check_incidents(l, err)) != SVS_OK || !l->o.incidents)
        return code;
    preview_print_incidents(l);
    preview_print_each(l);
    return SVS_OK;
}

svs_code svi_preview_run(struct svi_preview *l, svi_preview_pass *pass, void *user,
                         struct svi_progress *progress, svs_error *err) {
    l->log.incidents = l->o.incidents ? &l->incidents : NULL;
    l->log.progress = progress;
    /* If no incident overlaps the rows, further passes would be as useless. */
    svs_code code = preview_first(l, pass, user, err);
    if (code == SVS_OK)
        code = preview_check_incidents(l, err);
    /* Results of the first pass appear before the others, which may take as long each. */
    fflush(stdout);
    l->log.lines = NULL;
    l->log.keeps = false;
    for (int i = 0; i < l->budget_count && code == SVS_OK; i++) {
        /* The first pass had this budget already. */
        if (strcmp(l->budgets[i], l->set) == 0) {
            l->result[1 + i] = l->result[0];
            continue;
        }
        svi_alert_log_reset(&l->log);
        code = pass(user, l->budgets[i], &l->log, err);
        if (code == SVS_OK)
            code = preview_settle(l, l->budgets[i], &l->result[1 + i], err);
    }
    if (code != SVS_OK || l->budget_count == 0)
        return code;
    if (progress)
        svi_progress_clear(progress);
    if (l->o.json)
        return preview_pack_budgets(l, err);
    preview_print_budgets(l);
    return SVS_OK;
}
