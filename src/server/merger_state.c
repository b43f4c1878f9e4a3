/* What a merge makes of its records: the model event, the figures, and lines for people.
 *
 * A part is reported when what became of it changes: once when it joins, once when it is refused, with the
 * reason, and again when that is over. The same goes for a union that cannot be solved. So a part that sends
 * a record each second with the wrong columns costs one line and one `error` event, and `ctl parts` shows it
 * as long as it lasts.
 *
 * Solving again costs the more the more parts there are, and the loop stands still meanwhile: the time that
 * the last solution took decides when the next one is due. */
#include "server/merger_state.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "merge/merge_solve.h"
#include "merge/twins.h"
#include "server/merger_prior.h"

#define SHARE       4.0 /* times the last solution takes, between two of them */
#define MAX_LINES   10  /* about parts that have joined, after one solution */
#define MAX_LEFT    100 /* about parts that are left out, after one solution of a merge that continues */
#define FIRST_LINES 5   /* refusals that are printed at once; after them one a second */
#define SAMPLE_MAX  64  /* bytes of a refused record in its event */

static void merger_line(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void merger_line(FILE *to, const char *format, ...) {
    va_list args;
    if (!to)
        return;
    va_start(args, format);
    vfprintf(to, format, args);
    va_end(args);
    fflush(to);
}

static struct svi_event merger_event(struct svi_merger_state *s, enum svi_topic topic) {
    return (struct svi_event){.topic = topic,
                              .stream = s->settings->stream,
                              .epoch = s->epoch,
                              .seq = s->seq[topic]++,
                              .ts = svi_wall_clock()};
}

/* ---- records */

/* A publisher that sends rubbish without a pause must not fill the log. */
static void merger_print_refusal(struct svi_merger_state *s, const svs_error *why) {
    const double now = svi_monotonic();
    if (!s->errors)
        return;
    if (s->lines >= FIRST_LINES && now < s->line_at + 1) {
        s->silent++;
        return;
    }
    s->lines++;
    s->line_at = now;
    merger_line(s->errors, "refused: %s (%s)\n", why->text, svs_code_name(why->code));
    if (s->silent > 0)
        merger_line(s->errors, "and %lld refusals before it\n", (long long)s->silent);
    s->silent = 0;
}

void svi_merger_summary(const struct svi_merger_state *s) {
    char counts[SVS_ERROR_TEXT];
    if (s->lines > 0 || s->left > 0)
        merger_line(s->errors, "refused in all: %s\n",
                    svi_code_counts(s->refused, counts, sizeof counts, NULL));
}

/* Counts a refusal and publishes it. */
static void merger_count_refusal(struct svi_merger_state *s, const svs_error *why, const void *sample,
                                 size_t size) {
    s->refused[why->code]++;
    struct svi_event e = merger_event(s, SVI_TOPIC_ERROR);
    e.as.error.code = why->code;
    e.as.error.reason = why->text;
    e.as.error.count = s->refused[why->code];
    e.as.error.sample = sample;
    e.as.error.sample_size = size > SAMPLE_MAX ? SAMPLE_MAX : size;
    if (s->out)
        (void)svi_publisher_publish(s->out, &e); /* without memory it is lost, which subscribers see by seq */
}

void svi_merger_refuse(struct svi_merger_state *s, const svs_error *why, const void *sample, size_t size) {
    merger_count_refusal(s, why, sample, size);
    merger_print_refusal(s, why);
}

void svi_merger_take(struct svi_merger_state *s, const void *payload, size_t size) {
    enum svi_merge_taken taken;
    svs_error err = {0};
    if (svi_merge_take(&s->merge, payload, size, svi_monotonic(), &taken, &err) != SVS_OK)
        svi_merger_refuse(s, &err, payload, size);
}

/* ---- solving */

double svi_merger_due(const struct svi_merger_state *s) {
    if (!s->merge.changed || !(s->settings->publish_seconds > 0))
        return INFINITY;
    return s->solved_at + fmax(s->settings->publish_seconds, SHARE * s->solve_seconds);
}

static void report_part(struct svi_merger_state *s, const struct svi_part *p) {
    char name[SVI_PART_MAX * 4 + 1];
    svs_error err;
    svi_escape(name, sizeof name, p->record.part, strlen(p->record.part));
    if (svi_part_contested(p)) {
        if (p->rival < p->epoch)
            svi_fail(&err, SVS_SETTING,
                     "two processes publish the part %.60s, and the model has the samples of only one: give "
                     "each its own name (setting merge.part)",
                     name);
        else
            svi_fail(&err, SVS_SETTING,
                     "a process that started later publishes the part %.60s from before sample %lld: restart "
                     "the merge if it continues an older state, or give each process its own name (setting "
                     "merge.part)",
                     name, (long long)p->record.offset);
        svi_merger_refuse(s, &err, NULL, 0);
    }
    if (svi_part_state(p) != SVI_PART_REFUSED) {
        merger_line(svi_part_state(p) == SVI_PART_DROPPED && s->ended ? s->errors : s->log,
                    "part %s %s, %lld rows held\n", name, svi_part_state_name(svi_part_state(p)),
                    (long long)p->record.sums.n);
        return;
    }
    /* A line for each: the limit on rubbish that is sent without a pause must not hide what the model lacks.
     */
    svi_fail(&err, p->why.code, "part %.60s: %.190s", name, p->why.text);
    merger_count_refusal(s, &err, NULL, 0);
    merger_line(s->errors, "refused: %s (%s)\n", err.text, svs_code_name(err.code));
    s->left++;
}

/* Lines for parts whose state is another than at the last report. Those that are refused have a limit of
 * their own: many that join must not hide them. */
static void report_parts(struct svi_merger_state *s) {
    const int64_t most = s->ended ? s->merge.count : MAX_LEFT; /* no request can ask after the end */
    int64_t joined = 0, refused = 0;
    for (int64_t i = 0; i < s->merge.count; i++) {
        struct svi_part *p = s->merge.part[i];
        const bool good = svi_part_state(p) != SVI_PART_REFUSED && !svi_part_contested(p);
        const int now = (int)svi_part_state(p) + 1 + (svi_part_contested(p) ? SVI_PART_STATE_COUNT : 0);
        if (p->reported == now)
            continue;
        p->reported = now;
        if (good ? joined++ < MAX_LINES : refused++ < most)
            report_part(s, p);
        else if (svi_part_state(p) == SVI_PART_REFUSED)
            s->refused[p->why.code]++;
    }
    if (joined > MAX_LINES)
        merger_line(s->log, "and %lld more parts: svmstream ctl parts\n", (long long)joined - MAX_LINES);
    if (refused > most)
        merger_line(s->errors, "and %lld more parts that are refused: svmstream ctl parts\n",
                    (long long)(refused - most));
}

void svi_merger_end(const struct svi_merger_state *s, FILE *to) {
    int64_t state[SVI_PART_STATE_COUNT];
    svi_merge_states(&s->merge, state);
    merger_line(to, "merged %lld of %lld parts, %lld rows\n",
                (long long)(state[SVI_PART_JOINED] + state[SVI_PART_STALE]), (long long)s->merge.count,
                (long long)s->merge.model->learned);
}

/* Once for each pair, when the number of classes has changed. */
static void report_twins(struct svi_merger_state *s) {
    svs_error why;
    if (s->classes == s->merge.model->class_count)
        return;
    s->classes = s->merge.model->class_count;
    for (int at = 0; (at = svi_merge_twins(&s->merge, at, &why)) > 0;)
        svi_merger_refuse(s, &why, NULL, 0);
}

/* A union that cannot be solved is reported once, until the reason is another one. No samples yet are no
 * failure. */
static void report_failure(struct svi_merger_state *s) {
    const svs_error *now = &s->merge.failure;
    const bool same =
        s->failure.code == now->code && (now->code == SVS_OK || strcmp(s->failure.text, now->text) == 0);
    s->failure = *now;
    if (same || now->code == SVS_OK || now->code == SVS_EMPTY)
        return;
    FILE *const errors = s->errors;
    if (s->ended)
        s->errors = NULL; /* it is the result, which the caller reports */
    svi_merger_refuse(s, now, NULL, 0);
    s->errors = errors;
}

/* The last one is retained: it is published again only when it has changed. */
static void merger_publish_prior(struct svi_merger_state *s) {
    struct svi_bytes pairs = {0};
    svs_error err = {0};
    const bool made = s->out && svi_merger_prior(&s->merge, &pairs, &err) == SVS_OK;
    if (!made || (pairs.size == s->prior.size && memcmp(pairs.data, s->prior.data, pairs.size) == 0)) {
        svi_bytes_clear(&pairs);
        return;
    }
    struct svi_event e = merger_event(s, SVI_TOPIC_PRIOR);
    e.as.sums.bytes = pairs.data;
    e.as.sums.size = pairs.size;
    e.as.sums.pairs = SVI_MERGER_PRIOR_PAIRS;
    (void)svi_publisher_publish(s->out, &e); /* without memory it is lost, which the next one makes up for */
    svi_bytes_clear(&s->prior);
    s->prior = pairs;
}

bool svi_merger_solve(struct svi_merger_state *s) {
    if (!s->merge.changed)
        return false;
    const double begun = svi_monotonic();
    const svs_code code = svi_merge_solve(&s->merge);
    s->solved_at = svi_monotonic();
    s->solve_seconds = s->solved_at - begun;
    report_parts(s);
    report_failure(s);
    if (code == SVS_OK) {
        report_twins(s);
        merger_publish_prior(s);
    }
    return code == SVS_OK;
}

bool svi_merger_mark(struct svi_merger_state *s) {
    const bool changed = svi_merge_mark(&s->merge, svi_monotonic());
    report_parts(s);
    return changed;
}

/* ---- events */

static svs_code merger_model_event(struct svi_merger_state *s, struct svi_event *e) {
    struct svi_pack p;
    s->parts.size = 0;
    svi_pack_begin(&p, &s->parts);
    svi_merge_put_parts(&s->merge, svi_monotonic(), false, &p);
    e->as.model.model = s->merge.model;
    e->as.model.parts = &s->parts;
    return svi_pack_end(&p);
}

void svi_merger_publish_model(struct svi_merger_state *s) {
    if (!s->merge.model || !s->out)
        return;
    struct svi_event e = merger_event(s, SVI_TOPIC_MODEL);
    if (merger_model_event(s, &e) == SVS_OK)
        (void)svi_publisher_publish(s->out, &e);
}

svs_code svi_merger_encode_model(struct svi_merger_state *s, struct svi_bytes *out, svs_error *err) {
    if (!s->merge.model)
        return svi_fail(err, SVS_UNAVAILABLE, "there is no merged model yet: %s",
                        s->merge.failure.code != SVS_OK ? s->merge.failure.text
                                                        : "no part has sent its sums: " SVI_MERGER_SILENCE);
    /* The number of the event that was published last; a reply is not an event. */
    struct svi_event e = merger_event(s, SVI_TOPIC_MODEL);
    s->seq[SVI_TOPIC_MODEL]--;
    e.seq = s->seq[SVI_TOPIC_MODEL] > 0 ? s->seq[SVI_TOPIC_MODEL] - 1 : 0;
    svs_code code = merger_model_event(s, &e);
    if (code == SVS_OK)
        code = svi_event_encode(&e, out);
    return code == SVS_OK ? code : svi_fail_memory(err, "the bytes of the model");
}

static void figure_count(struct svi_merger_figures *f, const char *name, int64_t count) {
    f->figure[f->count++] = (struct svi_figure){name, SVI_COUNT, {.count = count}};
}

static void figure_number(struct svi_merger_figures *f, const char *name, double number) {
    f->figure[f->count++] = (struct svi_figure){name, SVI_NUMBER, {.number = number}};
}

/* The parts that are not simply joined, and why. */
static void figure_parts(struct svi_merger_state *s, struct svi_merger_figures *f) {
    struct svi_pack p;
    s->parts.size = 0;
    svi_pack_begin(&p, &s->parts);
    svi_merge_put_others(&s->merge, svi_monotonic(), SVI_MERGER_PARTS_SHOWN, &p);
    if (svi_pack_end(&p) == SVS_OK)
        f->figure[f->count++] =
            (struct svi_figure){"parts", SVI_PACKED, {.packed = {s->parts.data, s->parts.size}}};
}

static void figure_refused(const struct svi_merger_state *s, struct svi_merger_figures *f) {
    for (int c = 1; c < SVS_CODE_COUNT; c++) {
        if (s->refused[c] == 0)
            continue;
        snprintf(f->code[c], sizeof f->code[c], "refused.%s", svs_code_name((svs_code)c));
        figure_count(f, f->code[c], s->refused[c]);
    }
}

void svi_merger_figures(struct svi_merger_state *s, struct svi_merger_figures *f) {
    const struct svi_merge *m = &s->merge;
    const svs_model *model = m->model;
    int64_t state[SVI_PART_STATE_COUNT];
    svi_merge_states(m, state);
    f->count = 0;
    figure_number(f, "uptime", svi_monotonic() - s->started);
    figure_count(f, "parts_joined", state[SVI_PART_JOINED]);
    figure_count(f, "parts_stale", state[SVI_PART_STALE]);
    figure_count(f, "parts_refused", state[SVI_PART_REFUSED]);
    figure_count(f, "parts_dropped", state[SVI_PART_DROPPED]);
    figure_count(f, "records", m->counts.taken);
    figure_count(f, "records_repeated", m->counts.again);
    figure_count(f, "records_late", m->counts.old);
    figure_count(f, "records_refused", m->counts.refused);
    figure_number(f, "records_bytes", m->bytes);
    figure_count(f, "model", (int64_t)m->version);
    figure_count(f, "seen", model ? model->seen : 0);
    figure_count(f, "held", model ? model->learned : 0);
    figure_count(f, "features", model ? model->d : 0);
    figure_count(f, "classes", model ? model->class_count : 0);
    figure_number(f, "solve_milliseconds", 1e3 * s->solve_seconds);
    if (m->failure.code != SVS_OK)
        f->figure[f->count++] = (struct svi_figure){"merge_error", SVI_TEXT, {.text = m->failure.text}};
    figure_number(f, "handshakes_refused", s->handshakes_refused);
    figure_number(f, "connections", s->connections);
    figure_parts(s, f);
    figure_refused(s, f);
}

void svi_merger_publish_stats(struct svi_merger_state *s) {
    struct svi_merger_figures f;
    if (!s->out)
        return;
    struct svi_event e = merger_event(s, SVI_TOPIC_STATS);
    svi_merger_figures(s, &f);
    e.as.stats.figures = f.figure;
    e.as.stats.count = f.count;
    (void)svi_publisher_publish(s->out, &e);
}

void svi_merger_put_parts(const struct svi_merger_state *s, struct svi_pack *p) {
    svi_merge_put_parts(&s->merge, svi_monotonic(), true, p);
}

void svi_merger_clear(struct svi_merger_state *s) {
    svi_merge_clear(&s->merge);
    svi_bytes_clear(&s->parts);
    svi_bytes_clear(&s->prior);
}
