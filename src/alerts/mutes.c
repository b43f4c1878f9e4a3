/* The mutes of a stream, and the alert events that they hold back.
 *
 * In the order of reading: the list, what a mute covers, holding back (svi_mutes_hold), the end of a mute
 * (svi_mutes_line, svi_mutes_release), the archive.
 *
 * An alert is known by its key and number. While it is held back it has one entry, with its last event: an
 * update replaces the one before. `published` shows whether clients know the alert, which decides about what
 * they get at the end. An alert that they do not know and that has closed needs no entry: the mute has
 * counted it, and has its line if it was one of the first.
 *
 * Invariants: entries are of mutes that have not ended, but for the calls of svi_mutes_release after an end;
 * no two entries have the same key and number; ids ascend in the list. */
#include "alerts/mutes.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"

#define TOP  5  /* features kept of an event */
#define WORD 16 /* bytes of a kind, a rule, a severity */

/* Copies of the texts of an event. One that is empty is absent. */
struct muted_texts {
    char kind[WORD], judge[WORD], severity[WORD], measure[WORD], rule[WORD], lead[SVS_NAME_MAX + 1],
        text[SVI_ALERT_TEXT];
};

/* Each text of an alert event: its pointer there, its copy, and the name of the copy in the archive. */
static const struct {
    const char *name;
    size_t at, copy, size;
} muted_text[] = {
#define TEXT(FIELD)                                                                                          \
    {                                                                                                        \
#FIELD, offsetof(struct svi_alert_event, FIELD), offsetof(struct muted_texts, FIELD),                \
            sizeof((struct muted_texts *)0)->FIELD                                                           \
    }
    TEXT(kind), TEXT(judge), TEXT(severity), TEXT(measure), TEXT(rule), TEXT(lead), TEXT(text),
#undef TEXT
};
#define TEXTS (sizeof muted_text / sizeof *muted_text)

/* An alert, and all of its last event that clients may see. */
struct svi_muted_alert {
    int64_t mute; /* its id */
    bool published, open;
    bool keyed;             /* the stream has keys */
    struct svi_event event; /* points into the fields below (muted_point) */
    char key[SVS_KEY_MAX + 1];
    struct muted_texts texts;
    struct svi_contribution top[TOP];
    bool named[TOP]; /* a feature without a name is known by its column */
    char name[TOP][SVS_NAME_MAX + 1];
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
                 "there are %d mutes, the maximum: end one (unmute), or replace several by a pattern of keys",
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

/* By the clock of arrival: a mute ends on time even where no row arrives and moves engine time. */
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

/* The mute that holds an event back; NULL: none. No time is asked: what is due was ended before. */
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
    while (i < m->held_count &&
           !(m->held[i]->event.as.alert.alert == alert && strcmp(m->held[i]->key, key ? key : "") == 0))
        i++;
    return i < m->held_count ? i : -1;
}

static void mutes_remove(struct svi_mutes *m, int i) {
    svi_free(m->held[i]);
    memmove(&m->held[i], &m->held[i + 1], (size_t)(m->held_count - i - 1) * sizeof *m->held);
    m->held_count--;
}

/* Where the copy of a text is, and where the event points to it. */
static char *muted_copy(struct svi_muted_alert *h, size_t i) {
    return (char *)&h->texts + muted_text[i].copy;
}

static const char **muted_pointer(struct svi_alert_event *a, size_t i) {
    return (const char **)(void *)((char *)a + muted_text[i].at);
}

/* Sets all pointers of the event to what the entry holds itself. */
static void muted_point(struct svi_muted_alert *h) {
    struct svi_alert_event *a = &h->event.as.alert;
    for (size_t i = 0; i < TEXTS; i++)
        *muted_pointer(a, i) = *muted_copy(h, i) ? muted_copy(h, i) : NULL;
    for (int i = 0; i < a->count; i++)
        h->top[i].feature = h->named[i] ? h->name[i] : NULL;
    a->top = h->top;
    h->event.key = h->keyed ? h->key : NULL;
}

/* Keeps an event: all that svi_mutes_release needs to publish it again, which is what the archive has too.
 * What was of its time is left out: number, seq, the id of the sample and the history; and so are the keys
 * of a common cause, as their texts belong to the caller. */
static void muted_keep(struct svi_muted_alert *h, const struct svi_event *e) {
    struct svi_alert_event a = e->as.alert;
    h->keyed = e->key;
    snprintf(h->key, sizeof h->key, "%s", e->key ? e->key : "");
    for (size_t i = 0; i < TEXTS; i++) {
        const char *text = *muted_pointer(&a, i);
        snprintf(muted_copy(h, i), muted_text[i].size, "%s", text ? text : "");
    }
    a.count = a.count < TOP ? a.count : TOP;
    for (int i = 0; i < a.count; i++) {
        h->top[i] = a.top[i];
        h->top[i].ago = 0;
        h->top[i].step = false;
        h->named[i] = a.top[i].feature;
        snprintf(h->name[i], sizeof h->name[i], "%s", h->named[i] ? a.top[i].feature : "");
    }
    a.number = 0;
    a.id = svs_none();
    a.by = a.reason = NULL;
    a.history = NULL;
    a.history_count = 0;
    a.keys = 0;
    a.named = NULL;
    a.alerts = NULL;
    a.named_count = 0;
    h->event = (struct svi_event){.topic = SVI_TOPIC_ALERT, .epoch = e->epoch, .ts = e->ts, .as.alert = a};
    muted_point(h);
}

/* The event that an entry stands for; it points into the entry. */
static void muted_event(struct svi_muted_alert *h, struct svi_event *e) {
    *e = h->event;
    e->as.alert.state = !h->open ? "close" : h->published ? "update" : "open";
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
    /* What is already held back decides first: an alert stays held although it has changed its
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
    size_t at = mute_append(out, 0, size, svi_alert_stream(stream));
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? mute->key : mute->sensor;
        svi_escape(part, sizeof part, name, strlen(name));
        at = mute_append(out, at, size, part[0] && at > 0 ? " " : "");
        at = mute_append(out, at, size, part);
    }
    svi_escape(part, sizeof part, mute->reason, strlen(mute->reason));
    at = mute_append(out, at, size, at > 0 ? " mute ended after " : "mute ended after ");
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
        /* A close names no sensor: only a mute of the whole key still holds it back. */
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
    struct svi_alert_event *e = &h->event.as.alert;
    double *const reals[] = {&h->event.ts, &e->novelty,  &e->membership, &e->p,      &e->grade,
                             &e->surprise, &e->expected, &e->since,      &e->before, &e->after};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        svi_archive_double(a, "figure", reals[i]);
    for (size_t i = 0; i < TEXTS; i++)
        svi_archive_text(a, muted_text[i].name, muted_copy(h, i), muted_text[i].size);
    svi_archive_int(a, "over", &e->over, 0, INT32_MAX / 2);
    svi_archive_int(a, "sensors", &e->sensors, 0, INT32_MAX / 2);
    svi_archive_bool(a, "several", &e->several);
    svi_archive_int(a, "count", &e->count, 0, TOP);
    for (int i = 0; i < e->count && svi_archive_ok(a); i++) {
        struct svi_contribution *f = &h->top[i];
        svi_archive_bool(a, "named", &h->named[i]);
        svi_archive_text(a, "name", h->name[i], sizeof h->name[i]);
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
    svi_archive_int64(a, "alert", &h->event.as.alert.alert, 0, SVI_COUNT_MAX);
    svi_archive_uint64(a, "epoch", &h->event.epoch);
    muted_archive_event(a, h);
    svi_archive_check(a, h->published || h->open, "a closed alert is held back");
    if (svi_archive_loading(a) && svi_archive_ok(a)) {
        h->event.topic = SVI_TOPIC_ALERT;
        h->event.as.alert.id = svs_none();
        muted_point(h);
    }
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
        svi_archive_check(a, i == 0 || m->at[i - 1]->id < m->at[i]->id, "mutes are out of order");
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
    svi_archive_check(a, !isnan(m->time) && isfinite(m->arrived), "a time is not valid");
}
