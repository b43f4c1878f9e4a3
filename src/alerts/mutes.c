/* The mutes of a stream, and the alert events that they hold back.
 *
 * In the order of reading: the list, what a mute covers, holding back (svi_mutes_hold), the end of a mute
 * (svi_mutes_line, svi_mutes_release), the archive.
 *
 * An alert is known by its key and number. While it is held back it has one entry, with its last event: an
 * update replaces the one before. `published` tells whether clients know the alert, which decides about what
 * they get at the end. An alert that they do not know and that has closed needs no entry: the mute has
 * counted it, and has its line if it was one of the first.
 *
 * Invariants: entries are of mutes that have not ended, but for the calls of svi_mutes_release after an end;
 * no two entries have the same key and number; ids ascend in the list. */
#include "alerts/mutes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"

#define TOP  5  /* features kept of an event */
#define WORD 16 /* bytes of a kind, a rule, a severity */

struct muted_feature {
    char name[SVS_NAME_MAX + 1];
    bool named;
    int column;
    double value, low, high, adds;
};

/* An alert, and all of its last event that clients may see. A text that is empty is absent. */
struct svi_muted_alert {
    int64_t mute; /* its id */
    bool published, open;
    char key[SVS_KEY_MAX + 1];
    bool keyed; /* the stream has keys */
    int64_t alert;
    uint64_t epoch;
    double ts;
    char kind[WORD], judge[WORD], severity[WORD], measure[WORD], rule[WORD], lead[SVS_NAME_MAX + 1];
    double novelty, membership, p, grade, surprise, expected, since, before, after;
    int over, sensors, count;
    bool several;
    struct muted_feature top[TOP];
    char text[SVI_ALERT_TEXT];
    struct svi_contribution shown[TOP]; /* `top` as an event has it; filled in when it is published */
};

/* ---- the list */

struct svi_mutes *svi_mutes_new(svs_error *err) {
    struct svi_mutes *m = svi_alloc(sizeof *m);
    if (!m)
        svi_fail_memory(err, "the mutes");
    else
        m->time = -INFINITY;
    return m;
}

void svi_mutes_free(struct svi_mutes **m) {
    for (int i = 0; *m && i < (*m)->count; i++)
        svi_free((*m)->at[i]);
    for (int i = 0; *m && i < (*m)->held_count; i++)
        svi_free((*m)->held[i]);
    svi_free(*m);
    *m = NULL;
}

/* Memory first: a mute that cannot be kept takes no id, so ids have no holes and a replay gives the same
 * ones. */
struct svi_mute *svi_mutes_add(struct svi_mutes *m, const struct svi_mute *mute, svs_error *err) {
    if (m->count == SVI_MUTES_MAX) {
        svi_fail(err, SVS_LIMIT,
                 "there are %d mutes, the most at once: end one (unmute), or make one of several "
                 "by a pattern of keys",
                 SVI_MUTES_MAX);
        return NULL;
    }
    struct svi_mute *added = svi_alloc(sizeof *added);
    if (!added) {
        svi_fail_memory(err, "a mute");
        return NULL;
    }
    *added = *mute;
    added->id = ++m->begun;
    return m->at[m->count++] = added;
}

struct svi_mute *svi_mutes_find(struct svi_mutes *m, int64_t id) {
    for (int i = 0; i < m->count; i++)
        if (m->at[i]->id == id && !m->at[i]->ended)
            return m->at[i];
    return NULL;
}

int svi_mutes_active(const struct svi_mutes *m) {
    int active = 0;
    for (int i = 0; i < m->count; i++)
        active += !m->at[i]->ended;
    return active;
}

/* Ended mutes stay in the list until here: their line and what they held back are published first, and both
 * are read from them. */
void svi_mutes_tidy(struct svi_mutes *m) {
    int kept = 0;
    for (int i = 0; i < m->count; i++)
        if (m->at[i]->ended)
            svi_free(m->at[i]);
        else
            m->at[kept++] = m->at[i];
    m->count = kept;
}

struct svi_mute *svi_mutes_due(struct svi_mutes *m, double time) {
    for (int i = 0; i < m->count; i++)
        if (!m->at[i]->ended && m->at[i]->until <= time)
            return m->at[i];
    return NULL;
}

/* By the clock of arrival: a mute ends on time even where no row comes to say what engine time it is. */
double svi_mutes_deadline(const struct svi_mutes *m) {
    double due = INFINITY;
    for (int i = 0; i < m->count; i++)
        due = m->at[i]->ended ? due : fmin(due, m->at[i]->due);
    return due;
}

void svi_mutes_move_clock(struct svi_mutes *m, double step, double now) {
    for (int i = 0; i < m->count; i++) {
        m->at[i]->due += step;
        m->at[i]->since += m->at[i]->by_arrival ? step : 0;
        m->at[i]->until += m->at[i]->by_arrival ? step : 0;
    }
    m->arrived += step;
    m->time = fmin(m->time, now); /* a time ahead of the clock would put off the end of the next mutes */
}

/* ---- what a mute covers */

/* `since` is not asked: a key whose rows are behind those of the others is muted at once too. */
static bool mute_covers_key(const struct svi_mute *m, const char *key, double time) {
    return time < m->until && (!m->key[0] || svi_text_matches(m->key, strlen(m->key), key ? key : ""));
}

static bool mute_names(const struct svi_mute *m, const char *name, int column) {
    char number[16];
    snprintf(number, sizeof number, "%d", column);
    return strcmp(m->sensor, name ? name : number) == 0;
}

/* An alert of a rule is of the mute's sensor if all its sensors are; one of novelty, if the sensor leads; one
 * of quality is of no sensor. */
static bool mute_covers_sensor(const struct svi_mute *m, const struct svi_alert_event *a) {
    if (!m->sensor[0])
        return true;
    if (a->measure || a->several || a->count == 0)
        return false;
    if (!a->rule)
        return a->lead ? strcmp(m->sensor, a->lead) == 0 : mute_names(m, a->top[0].feature, a->top[0].column);
    for (int i = 0; i < a->count; i++)
        if (!mute_names(m, a->top[i].feature, a->top[i].column))
            return false;
    return a->sensors <= a->count;
}

/* Nothing that engines change is read here, so that they may ask on other threads. */
bool svi_mutes_cover(const struct svi_mutes *m, const char *key, double time) {
    for (int i = 0; i < m->count; i++)
        if (mute_covers_key(m->at[i], key, time))
            return true;
    return false;
}

bool svi_mutes_unlearned(const struct svi_mutes *m, const char *key, double time, int d,
                         const char *(*name)(const void *user, int column), const void *user,
                         struct svi_unlearned *out) {
    *out = (struct svi_unlearned){0};
    /* One mute of the whole key leaves out all columns; the others add theirs. A sensor that the stream does
     * not have (yet) adds none. */
    for (int i = 0; i < m->count; i++) {
        const struct svi_mute *mute = m->at[i];
        if (mute->learn || !mute_covers_key(mute, key, time))
            continue;
        out->all = out->all || !mute->sensor[0];
        int j = mute->sensor[0] ? 0 : d;
        while (j < d && !mute_names(mute, name(user, j), j))
            j++;
        if (j < d)
            out->column[out->count++] = j;
    }
    return out->all || out->count > 0;
}

/* The mute that holds an event back; NULL: there is none. No time is asked: what is due was ended before. */
static struct svi_mute *mutes_of(const struct svi_mutes *m, const struct svi_event *e) {
    for (int i = 0; i < m->count; i++)
        if (!m->at[i]->ended && mute_covers_key(m->at[i], e->key, -INFINITY) &&
            mute_covers_sensor(m->at[i], &e->as.alert))
            return m->at[i];
    return NULL;
}

/* ---- holding back */

static int mutes_held(const struct svi_mutes *m, const char *key, int64_t alert) {
    int i = 0;
    while (i < m->held_count && !(m->held[i]->alert == alert && strcmp(m->held[i]->key, key ? key : "") == 0))
        i++;
    return i < m->held_count ? i : -1;
}

static void mutes_remove(struct svi_mutes *m, int i) {
    svi_free(m->held[i]);
    memmove(&m->held[i], &m->held[i + 1], (size_t)(m->held_count - i - 1) * sizeof *m->held);
    m->held_count--;
}

static void muted_text(char *to, size_t size, const char *from) {
    snprintf(to, size, "%s", from ? from : "");
}

/* Keeps an event: all that svi_mutes_release needs to make it again, but for the id of a sample, which was of
 * another time. */
static void muted_keep(struct svi_muted_alert *h, const struct svi_event *e) {
    const struct svi_alert_event *a = &e->as.alert;
    h->keyed = e->key;
    muted_text(h->key, sizeof h->key, e->key);
    h->alert = a->alert;
    h->epoch = e->epoch;
    h->ts = e->ts;
    muted_text(h->kind, sizeof h->kind, a->kind);
    muted_text(h->judge, sizeof h->judge, a->judge);
    muted_text(h->severity, sizeof h->severity, a->severity);
    muted_text(h->measure, sizeof h->measure, a->measure);
    muted_text(h->rule, sizeof h->rule, a->rule);
    muted_text(h->lead, sizeof h->lead, a->lead);
    muted_text(h->text, sizeof h->text, a->text);
    h->novelty = a->novelty;
    h->membership = a->membership;
    h->p = a->p;
    h->grade = a->grade;
    h->surprise = a->surprise;
    h->expected = a->expected;
    h->since = a->since;
    h->before = a->before;
    h->after = a->after;
    h->over = a->over;
    h->sensors = a->sensors;
    h->several = a->several;
    h->count = a->count < TOP ? a->count : TOP;
    for (int i = 0; i < h->count; i++) {
        const struct svi_contribution *c = &a->top[i];
        struct muted_feature *f = &h->top[i];
        *f = (struct muted_feature){.named = c->feature,
                                    .column = c->column,
                                    .value = c->value,
                                    .low = c->low,
                                    .high = c->high,
                                    .adds = c->adds};
        muted_text(f->name, sizeof f->name, c->feature);
    }
}

/* The event that an entry stands for; it points into the entry. */
static void muted_event(struct svi_muted_alert *h, struct svi_event *e) {
    for (int i = 0; i < h->count; i++) {
        const struct muted_feature *f = &h->top[i];
        h->shown[i] = (struct svi_contribution){.feature = f->named ? f->name : NULL,
                                                .column = f->column,
                                                .value = f->value,
                                                .low = f->low,
                                                .high = f->high,
                                                .adds = f->adds};
    }
    *e = (struct svi_event){
        .topic = SVI_TOPIC_ALERT, .epoch = h->epoch, .key = h->keyed ? h->key : NULL, .ts = h->ts};
    e->as.alert = (struct svi_alert_event){.kind = h->kind,
                                           .alert = h->alert,
                                           .state = !h->open       ? "close"
                                                    : h->published ? "update"
                                                                   : "open",
                                           .id = svs_none(),
                                           .novelty = h->novelty,
                                           .membership = h->membership,
                                           .p = h->p,
                                           .grade = h->grade,
                                           .judge = h->judge[0] ? h->judge : NULL,
                                           .severity = h->severity[0] ? h->severity : NULL,
                                           .surprise = h->surprise,
                                           .expected = h->expected,
                                           .over = h->over,
                                           .since = h->since,
                                           .measure = h->measure[0] ? h->measure : NULL,
                                           .before = h->before,
                                           .after = h->after,
                                           .rule = h->rule[0] ? h->rule : NULL,
                                           .sensors = h->sensors,
                                           .top = h->shown,
                                           .count = h->count,
                                           .lead = h->lead[0] ? h->lead : NULL,
                                           .several = h->several,
                                           .text = h->text};
}

/* The text of an alert without the name of the stream, which the line of the end has. */
static const char *mute_rest(const struct svi_event *e) {
    const size_t length = strlen(e->stream);
    const char *text = e->as.alert.text;
    return strncmp(text, e->stream, length) == 0 && text[length] == ' ' ? text + length + 1 : text;
}

static void mute_count(struct svi_mute *mute, const struct svi_event *e) {
    if (mute->found < SVI_MUTE_LISTED)
        snprintf(mute->line[mute->found], sizeof mute->line[0], "%s", mute_rest(e));
    mute->found++;
}

/* An alert of which nothing was held back so far. The mute's figures change only if it is held back. */
static bool mutes_begin(struct svi_mutes *m, struct svi_mute *mute, const struct svi_event *e, bool opens,
                        bool closes) {
    struct svi_muted_alert *h = m->held_count < SVI_MUTES_HELD ? svi_alloc(sizeof *h) : NULL;
    if (!h)
        return false;
    muted_keep(h, e);
    h->mute = mute->id;
    h->published = !opens;
    h->open = !closes;
    m->held[m->held_count++] = h;
    mute->held++;
    if (opens)
        mute_count(mute, e);
    return true;
}

/* The next event of an alert that is held back. */
static bool mutes_continue(struct svi_mutes *m, int i, struct svi_mute *mute, struct svi_event *e,
                           bool closes) {
    struct svi_muted_alert *h = m->held[i];
    struct svi_mute *own = svi_mutes_find(m, h->mute);
    if (!closes && !mute) {
        /* Another sensor has taken the lead or joined, which no mute covers: clients get to know it now. */
        e->as.alert.state = h->published ? "update" : "open";
        mutes_remove(m, i);
        return false;
    }
    if (own)
        own->held++;
    /* Clients never knew it and have nothing to do: the mute has counted it, and its line says so. */
    if (closes && !h->published) {
        mutes_remove(m, i);
        return true;
    }
    muted_keep(h, e);
    h->open = !closes;
    return true;
}

bool svi_mutes_hold(struct svi_mutes *m, struct svi_event *event) {
    const struct svi_alert_event *a = &event->as.alert;
    const bool opens = strcmp(a->state, "open") == 0, closes = strcmp(a->state, "close") == 0;
    /* What is already held back decides first: an alert goes on being held although it has changed its
     * sensor, or is let go because it has. Only a new one asks for a mute. */
    const int i = mutes_held(m, event->key, a->alert);
    struct svi_mute *mute = mutes_of(m, event);
    if (i >= 0)
        return mutes_continue(m, i, mute, event, closes);
    return mute && mutes_begin(m, mute, event, opens, closes);
}

/* ---- the end */

static size_t mute_append(char *out, size_t at, size_t size, const char *text) {
    const int n = snprintf(out + at, size - at, "%s", text);
    return at + (size_t)n < size ? at + (size_t)n : size - 1;
}

int64_t svi_mutes_line(const struct svi_mutes *m, const struct svi_mute *mute, const char *stream,
                       double time, char out[SVI_MUTE_LISTED * SVI_ALERT_TEXT + SVI_ALERT_TEXT]) {
    const size_t size = SVI_MUTE_LISTED * SVI_ALERT_TEXT + SVI_ALERT_TEXT;
    char part[2 * SVI_ALERT_TEXT], lasted[SVI_HUMAN], count[SVI_HUMAN];
    /* Counted before anything is released: those that are still open follow this line as `open` events. */
    int64_t open = 0;
    for (int i = 0; i < m->held_count; i++)
        open += m->held[i]->mute == mute->id && !m->held[i]->published;
    size_t at = mute_append(out, 0, size, stream);
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? mute->key : mute->sensor;
        svi_escape(part, sizeof part, name, strlen(name));
        at = mute_append(out, at, size, part[0] ? " " : "");
        at = mute_append(out, at, size, part);
    }
    svi_escape(part, sizeof part, mute->reason, strlen(mute->reason));
    at = mute_append(out, at, size, " mute ended after ");
    at = mute_append(out, at, size, svi_human_duration(lasted, fmax(0, time - mute->since)));
    if (part[0]) {
        at = mute_append(out, at, size, " (");
        at = mute_append(out, at, size, part);
        at = mute_append(out, at, size, ")");
    }
    if (mute->found == 0)
        snprintf(part, sizeof part, ": no alert while muted");
    else
        snprintf(part, sizeof part, ": %s alert%s while muted: ", svi_human_count(count, mute->found),
                 mute->found == 1 ? "" : "s");
    at = mute_append(out, at, size, part);
    for (int i = 0; i < SVI_MUTE_LISTED && i < mute->found; i++) {
        at = mute_append(out, at, size, i > 0 ? "; " : "");
        at = mute_append(out, at, size, mute->line[i]);
    }
    if (mute->found > SVI_MUTE_LISTED) {
        snprintf(part, sizeof part, "; and %s more", svi_human_count(count, mute->found - SVI_MUTE_LISTED));
        mute_append(out, at, size, part);
    }
    return open;
}

/* What was released last stays in `held`, closed and of no mute, until the next call, because the event
 * points into it. */
static bool mutes_give(struct svi_mutes *m, int i, struct svi_event *event) {
    struct svi_muted_alert *h = m->held[i];
    muted_event(h, event);
    h->mute = 0;
    return true;
}

static void mutes_forget_given(struct svi_mutes *m) {
    for (int i = m->held_count - 1; i >= 0; i--)
        if (m->held[i]->mute == 0)
            mutes_remove(m, i);
}

bool svi_mutes_release(struct svi_mutes *m, int64_t mute, struct svi_event *event) {
    mutes_forget_given(m);
    for (int i = 0; i < m->held_count; i++) {
        struct svi_muted_alert *h = m->held[i];
        if (h->mute != mute)
            continue;
        muted_event(h, event);
        /* A close names no sensor: only a mute of the whole key goes on holding it back. */
        const struct svi_mute *other = mutes_of(m, event);
        if (!other)
            return mutes_give(m, i, event);
        h->mute = other->id;
    }
    return false;
}

/* The key was dropped. Only an alert that clients know as open needs its close; all else is forgotten with
 * it. */
bool svi_mutes_drop(struct svi_mutes *m, const char *key, struct svi_event *event) {
    mutes_forget_given(m);
    for (int i = m->held_count - 1; i >= 0; i--) {
        if (strcmp(m->held[i]->key, key) != 0)
            continue;
        if (m->held[i]->published && !m->held[i]->open)
            return mutes_give(m, i, event);
        mutes_remove(m, i);
    }
    return false;
}

/* ---- archive */

static void mute_archive(struct svi_archive *a, struct svi_mute *m, int64_t begun) {
    svi_archive_int64(a, "id", &m->id, 1, begun);
    svi_archive_text(a, "key", m->key, sizeof m->key);
    svi_archive_text(a, "sensor", m->sensor, sizeof m->sensor);
    svi_archive_finite(a, "since", &m->since, 1);
    svi_archive_finite(a, "until", &m->until, 1);
    svi_archive_finite(a, "due", &m->due, 1);
    svi_archive_bool(a, "by arrival", &m->by_arrival);
    svi_archive_bool(a, "learn", &m->learn);
    svi_archive_text(a, "reason", m->reason, sizeof m->reason);
    svi_archive_text(a, "who", m->who, sizeof m->who);
    svi_archive_bool(a, "ended", &m->ended);
    svi_archive_int64(a, "found", &m->found, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "held", &m->held, 0, SVI_COUNT_MAX);
    for (int i = 0; i < SVI_MUTE_LISTED; i++)
        svi_archive_text(a, "line", m->line[i], sizeof m->line[i]);
}

static void muted_archive_event(struct svi_archive *a, struct svi_muted_alert *h) {
    double *const reals[] = {&h->ts,       &h->novelty,  &h->membership, &h->p,      &h->grade,
                             &h->surprise, &h->expected, &h->since,      &h->before, &h->after};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        svi_archive_double(a, "figure", reals[i]);
    svi_archive_text(a, "kind", h->kind, sizeof h->kind);
    svi_archive_text(a, "judge", h->judge, sizeof h->judge);
    svi_archive_text(a, "severity", h->severity, sizeof h->severity);
    svi_archive_text(a, "measure", h->measure, sizeof h->measure);
    svi_archive_text(a, "rule", h->rule, sizeof h->rule);
    svi_archive_text(a, "lead", h->lead, sizeof h->lead);
    svi_archive_text(a, "text", h->text, sizeof h->text);
    svi_archive_int(a, "over", &h->over, 0, INT32_MAX / 2);
    svi_archive_int(a, "sensors", &h->sensors, 0, INT32_MAX / 2);
    svi_archive_bool(a, "several", &h->several);
    svi_archive_int(a, "count", &h->count, 0, TOP);
    for (int i = 0; i < h->count && svi_archive_ok(a); i++) {
        struct muted_feature *f = &h->top[i];
        svi_archive_bool(a, "named", &f->named);
        svi_archive_text(a, "name", f->name, sizeof f->name);
        svi_archive_int(a, "column", &f->column, -1, INT32_MAX / 2);
        svi_archive_double(a, "value", &f->value);
        svi_archive_double(a, "low", &f->low);
        svi_archive_double(a, "high", &f->high);
        svi_archive_double(a, "adds", &f->adds);
    }
}

static void muted_archive(struct svi_archive *a, struct svi_mutes *m, struct svi_muted_alert *h) {
    svi_archive_int64(a, "mute", &h->mute, 1, m->begun);
    svi_archive_bool(a, "published", &h->published);
    svi_archive_bool(a, "open", &h->open);
    svi_archive_text(a, "key", h->key, sizeof h->key);
    svi_archive_bool(a, "keyed", &h->keyed);
    svi_archive_int64(a, "alert", &h->alert, 0, SVI_COUNT_MAX);
    svi_archive_uint64(a, "epoch", &h->epoch);
    muted_archive_event(a, h);
    svi_archive_check(a, h->published || h->open, "a closed alert is held back");
}

/* Memory for what is loaded, one object a turn: a damaged count then fails at the first missing field. */
static void *mutes_load(struct svi_archive *a, size_t size) {
    void *p = svi_archive_ok(a) ? svi_alloc(size) : NULL;
    if (!p)
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for mutes");
    return p;
}

void svi_mutes_archive(struct svi_archive *a, struct svi_mutes *m) {
    const bool loading = svi_archive_loading(a);
    int count = m->count, held;
    /* What was given last is no state: with it, a save right after a release would differ from a later one.
     */
    mutes_forget_given(m);
    held = m->held_count;
    svi_archive_int64(a, "begun", &m->begun, 0, SVI_COUNT_MAX);
    svi_archive_int(a, "mutes", &count, 0, SVI_MUTES_MAX);
    for (int i = 0; i < count && svi_archive_ok(a); i++) {
        if (loading && !(m->at[i] = mutes_load(a, sizeof *m->at[i])))
            return;
        m->count = loading ? i + 1 : m->count;
        mute_archive(a, m->at[i], m->begun);
        svi_archive_check(a, i == 0 || m->at[i - 1]->id < m->at[i]->id, "mutes are in another order");
    }
    svi_archive_int(a, "held back", &held, 0, SVI_MUTES_HELD);
    for (int i = 0; i < held && svi_archive_ok(a); i++) {
        if (loading && !(m->held[i] = mutes_load(a, sizeof *m->held[i])))
            return;
        m->held_count = loading ? i + 1 : m->held_count;
        muted_archive(a, m, m->held[i]);
        if (loading && svi_archive_ok(a))
            svi_archive_check(a, svi_mutes_find(m, m->held[i]->mute), "an alert is held back by no mute");
    }
}

void svi_mutes_time_archive(struct svi_archive *a, struct svi_mutes *m) {
    svi_archive_double(a, "time", &m->time);
    svi_archive_double(a, "arrived", &m->arrived);
    svi_archive_check(a, !isnan(m->time) && isfinite(m->arrived), "a time is none");
}
