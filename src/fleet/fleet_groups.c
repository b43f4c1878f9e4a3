/* Alerts of one cause in many keys are one alert that names them.
 *
 * All alert events of a stream with keys get their numbers here, in the order of the elements,
 * whatever thread they are from. The first alert of a cause is published as it is. An alert that
 * opens in another key within `alert.group` seconds of it, or of the last that joined, is part of
 * it. The first is then updated, at once if the severity rises. Otherwise the update waits for
 * further keys, and the wait grows (group_await). It closes when the last of its alerts does.
 *
 * A CAUSE is a feature whose values are unusual, by novelty or rules, or another rule and its feature. Slow
 * keys fall silent late: the window is at least an eighth of their silence (alerts/rules.h).
 *
 * A group is published in the name of its first key, the leader. When the leader is dropped, the
 * next key leads, with an event that opens its own alert. Numbers of events (entry->head.published)
 * and groups are part of the state. Read svi_fleet_publish_alert first, then group_open,
 * group_close and svi_fleet_groups_drop. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "alerts/alert_policy.h"
#include "alerts/alert_text.h"
#include "base/fail.h"
#include "base/human.h"
#include "fleet/fleet_internal.h"
#include "fleet/key_word.h"

#define GROUP_WAIT   5.0 /* seconds from a key that joins to its report, at least */
#define GROUP_SILENT 8   /* part of a silence that keys may fall silent apart */
#define GROUP_LISTED 3   /* keys in a line */
#define GROUP_NAME   SVI_ALERT_SUBJECT
#define GROUP_LINE   (SVI_ALERT_TEXT + 4 * GROUP_NAME + 80)

static uint64_t group_key(const struct svi_key_entry *entry) {
    return entry ? entry->head.number : UINT64_MAX; /* the samples without one */
}

/* ---- what an event is about */

static bool group_is(const struct svi_event *event, const char *state) {
    return strcmp(event->as.alert.state, state) == 0;
}

/* No row arrived at all. The rules "silent" and "absent" differ by what the key had shown before; for a group
 * they are one cause. */
static bool group_is_silence(const struct svi_alert_event *a) {
    return a->rule && a->count == 0 &&
           (strcmp(a->rule, svi_rule_name(SVI_RULE_SILENT)) == 0 ||
            strcmp(a->rule, svi_rule_name(SVI_RULE_ABSENT)) == 0);
}

/* What kind of statement an alert makes about its feature: novelty, limits, beyond and rate all say that its
 * values are unusual. */
static const char *group_statement(const struct svi_alert_event *a) {
    const bool values = a->rule && (strcmp(a->rule, svi_rule_name(SVI_RULE_LIMITS)) == 0 ||
                                    strcmp(a->rule, svi_rule_name(SVI_RULE_BEYOND)) == 0 ||
                                    strcmp(a->rule, svi_rule_name(SVI_RULE_RATE)) == 0);
    return a->measure            ? a->kind
           : group_is_silence(a) ? svi_rule_name(SVI_RULE_SILENT)
           : a->rule && !values  ? a->rule
                                 : "values";
}

/* A hash of statement and the i-th feature: that of the leading detector, which the line is about, comes
 * before those of the row. An alert about a measure of quality, or about silence, blames no feature. A column
 * without a name follows its number, behind a second slash. */
static uint64_t group_cause(const struct svi_alert_event *a, int i) {
    char cause[3 * SVI_GROUP_WORD + SVS_NAME_MAX];
    const int at = i - (a->lead != NULL);
    const struct svi_contribution *top = a->measure || at < 0 || at >= a->count ? NULL : &a->top[at];
    int length = snprintf(cause, sizeof cause, "%s/", group_statement(a));
    if (at < 0)
        length += snprintf(cause + length, sizeof cause - (size_t)length, "%s", a->lead);
    else if (top && top->feature)
        length += snprintf(cause + length, sizeof cause - (size_t)length, "%s", top->feature);
    else if (top)
        length += snprintf(cause + length, sizeof cause - (size_t)length, "/%d", top->column);
    return XXH3_64bits(cause, (size_t)length < sizeof cause ? (size_t)length : sizeof cause - 1);
}

/* The alert's `since` is where the silence began. */
static double group_window(const struct svi_fleet *f, const struct svi_event *event) {
    const double window = f->stream.root->s->alert_group;
    if (!(window > 0) || !group_is_silence(&event->as.alert))
        return window;
    return fmax(window, (event->ts - event->as.alert.since) / GROUP_SILENT);
}

static int group_severity(const struct svi_alert_event *a) {
    int s = SVI_SEVERITY_SERIOUS;
    while (s > 0 && !(a->severity && strcmp(a->severity, svi_alert_severity_name((enum svi_severity)s)) == 0))
        s--;
    return s;
}

/* The text without its subject (stream and key), which the list of keys replaces. A text that does not begin
 * with it is kept whole. */
static const char *group_remainder(const struct svi_fleet *f, const char *key, const char *text) {
    char subject[SVI_SUBJECT], shown[GROUP_NAME];
    const char *of = svi_subject(f->stream.root->s->stream, key, subject);
    svi_escape(shown, sizeof shown, of, strlen(of));
    const size_t length = strlen(shown);
    if (length == 0 || strncmp(text, shown, length) != 0 || (text[length] != ' ' && text[length] != ':'))
        return text;
    return text + length + (text[length] == ' ');
}

/* Copies what the first alert reported: its engine may be out of memory, or the key removed, when the group
 * is reported again. */
static void group_keep(struct svi_group_first *f, const char *rest, const struct svi_alert_event *a) {
    snprintf(f->kind, sizeof f->kind, "%s", a->kind);
    snprintf(f->rule, sizeof f->rule, "%s", a->rule ? a->rule : "");
    snprintf(f->measure, sizeof f->measure, "%s", a->measure ? a->measure : "");
    snprintf(f->judge, sizeof f->judge, "%s", a->judge ? a->judge : "");
    snprintf(f->text, sizeof f->text, "%s", rest);
    f->novelty = a->novelty;
    f->membership = a->membership;
    f->p = a->p;
    f->grade = a->grade;
    f->surprise = a->surprise;
    f->expected = a->expected;
    f->before = a->before;
    f->after = a->after;
    f->since = a->since;
    f->over = a->over;
    f->sensors = a->sensors;
}

/* ---- what is sent */

/* "plant 12 keys: m01, m02, m03 and 9 more: temp 93 above its limit 90, since 10:42 UTC". What is missing
 * begins with its own colon: "... and 9 more: no rows since 10:42 UTC (...)". */
static void group_line(const struct svi_fleet *f, const struct svi_alert_group *g, const char *rest,
                       char *out) {
    char name[GROUP_NAME], subject[SVI_SUBJECT];
    const char *stream = svi_alert_stream(f->stream.root->s->stream);
    if (g->keys == 1) { /* the others are no more */
        const char *of = svi_subject(stream, g->name[0], subject);
        svi_escape(name, sizeof name, of, strlen(of));
        const bool colon = rest[0] == ':';
        snprintf(out, GROUP_LINE, "%s%s%s", name, name[0] && !colon ? " " : "",
                 rest + (name[0] || !colon ? 0 : 2));
        return;
    }
    svi_escape(name, sizeof name, stream, strlen(stream));
    char word[SVI_KEY_WORD];
    const char *named[SVI_GROUP_NAMES];
    for (int i = 0; i < g->named; i++)
        named[i] = g->name[i];
    int at = snprintf(out, GROUP_LINE, "%s%s%lld %s: ", name, name[0] ? " " : "", (long long)g->keys,
                      svi_key_word(word, f->stream.root->s->key, named, g->named));
    int listed = 0;
    for (; listed < g->named && listed < GROUP_LISTED; listed++) {
        svi_escape(name, sizeof name, g->name[listed], strlen(g->name[listed]));
        at += snprintf(out + at, GROUP_LINE - (size_t)at, "%s%s", listed ? ", " : "", name[0] ? name : "''");
    }
    if (g->keys > listed)
        at += snprintf(out + at, GROUP_LINE - (size_t)at, " and %lld more", (long long)g->keys - listed);
    snprintf(out + at, GROUP_LINE - (size_t)at, "%s%s", rest[0] == ':' ? "" : ": ", rest);
}

/* Numbered, in the name of a key (NULL: of the samples without one). */
static void group_send(struct svi_fleet *f, struct svi_key_entry *entry, struct svi_event *event) {
    event->seq = entry ? entry->head.published++ : f->stream.root->seq[SVI_TOPIC_ALERT]++;
    svi_stream_send(&f->stream, event);
}

/* Publishes an event of the group, with the keys that it is about, and remembers what consumers know by now:
 * `reported` keys, the severity, and that nothing is due. */
static void group_send_named(struct svi_fleet *f, struct svi_alert_group *g, struct svi_key_entry *entry,
                             struct svi_event *event, const char *rest) {
    const char *named[SVI_GROUP_NAMES];
    char line[GROUP_LINE];
    for (int i = 0; i < g->named; i++)
        named[i] = g->name[i];
    group_line(f, g, rest, line);
    event->as.alert.text = line;
    event->as.alert.keys = g->keys > 1 ? g->keys : 0;
    event->as.alert.named = named;
    event->as.alert.alerts = g->alerts;
    event->as.alert.named_count = g->named;
    g->updates += g->keys > g->reported;
    g->reported = g->keys;
    g->severity_reported = g->severity;
    g->due = g->due_at = INFINITY;
    g->updated = f->stream.arrival;
    g->updated_at = event->ts;
    group_send(f, entry, event);
}

/* Finds the key that leads the group, and notes that it is going to change (its number of events grows).
 * False: it cannot be brought back from the disk, and the event is lost, as svi_fleet_lose reports. */
static bool group_speaker(struct svi_fleet *f, const struct svi_alert_group *g,
                          struct svi_key_entry **entry) {
    svs_error err;
    *entry = NULL;
    if (g->leader == UINT64_MAX)
        return true;
    if (svi_fleet_find(f, g->name[0], false, 0, entry, &err) && *entry &&
        svi_fleet_change(f, *entry, &err) == SVS_OK)
        return true;
    f->stream.root->out_of_memory = f->stream.root->out_of_memory || err.code == SVS_NO_MEMORY;
    svi_fleet_lose(f, *entry, &err);
    return false;
}

/* Publishes an event that no engine sent: an update or the close of the group, from what the first alert
 * left (g->first). */
static void group_publish(struct svi_fleet *f, struct svi_alert_group *g, const char *state, double ts) {
    const struct svi_group_first *first = &g->first;
    const char *rest = first->text;
    char lasted[SVI_HUMAN], moment[SVI_CALENDAR_MOMENT], end[3 * SVI_HUMAN];
    const bool closes = strcmp(state, "close") == 0;
    struct svi_key_entry *entry;
    /* This may bring the leader's engine into memory. Only its entry is used below. */
    if (!group_speaker(f, g, &entry))
        return;
    /* The close says how long the whole group has lasted; anything else repeats the first text. Where lines
     * count rows (svi_engine_row_in_lines), each key counts its own, and a time would be that of reading. */
    if (closes && g->by_arrival && f->stream.root->s->alert_interval > 0)
        rest = "ended";
    else if (closes) {
        snprintf(end, sizeof end, "ended after %s (began at %s)",
                 svi_human_duration(lasted, ts - first->since),
                 svi_alert_since(moment, f->stream.root->s->zone, false, first->since, ts));
        rest = end;
    }
    /* The epoch of a key is larger by the keys removed before it began, since its events count from 0
     * (`again`). */
    struct svi_event event = {.topic = SVI_TOPIC_ALERT,
                              .stream = f->stream.root->s->stream,
                              .epoch = f->stream.epoch + (entry ? entry->head.again : 0),
                              .key = entry ? entry->name : "",
                              .ts = ts};
    /* No row stands behind this event: it has no id, and the numbers are those of the first alert. */
    event.as.alert =
        (struct svi_alert_event){.kind = first->kind,
                                 .alert = g->alert,
                                 .state = state,
                                 .id = svs_none(),
                                 .novelty = first->novelty,
                                 .membership = first->membership,
                                 .p = first->p,
                                 .grade = first->grade,
                                 .judge = first->judge[0] ? first->judge : NULL,
                                 .severity = svi_alert_severity_name((enum svi_severity)g->severity),
                                 .surprise = first->surprise,
                                 .expected = first->expected,
                                 .over = first->over,
                                 .since = first->since,
                                 .measure = first->measure[0] ? first->measure : NULL,
                                 .before = first->before,
                                 .after = first->after,
                                 .rule = first->rule[0] ? first->rule : NULL,
                                 .sensors = first->sensors};
    group_send_named(f, g, entry, &event, rest);
}

/* ---- what comes */

/* Keys have joined that are not reported: the report is due after a wait, by the clock of arrival or by the
 * times of events, whichever is first (rows may be older than the moment, and arrive faster). The waits grow,
 * so a disturbance that runs through a fleet is reported a few times, and no key later than half an hour. */
static void group_await(struct svi_fleet *f, struct svi_alert_group *g, double ts) {
    static const double waits[] = {GROUP_WAIT, 60, 300, 1800}; /* seconds since the last report */
    const int last = (int)(sizeof waits / sizeof *waits) - 1;
    const double wait = waits[g->updates < last ? g->updates : last];
    if (isfinite(g->due))
        return;
    g->due = fmax(f->stream.arrival + GROUP_WAIT, g->updated + wait);
    g->due_at = fmax(ts + GROUP_WAIT, g->updated_at + wait);
    f->groups_due_at = fmin(f->groups_due_at, g->due_at);
}

/* An alert opens. False: it is sent as it is. */
/* The first alert of a group returns false: it is sent as its engine wrote it, and the group keeps what it
 * needs to speak again. `reported` 0 tells a new group from one that has been reported. */
static bool group_open(struct svi_fleet *f, struct svi_key_entry *entry, const struct svi_event *event) {
    const struct svi_alert_event *a = &event->as.alert;
    const double window = group_window(f, event);
    struct svi_group_alert one = {.key = group_key(entry),
                                  .name = event->key,
                                  .alert = a->alert,
                                  .cause = group_cause(a, 0),
                                  .time = event->ts};
    while (!a->rule && !a->measure && one.other_count < SVI_GROUP_CAUSES - 1 &&
           one.other_count + 1 < a->count + (a->lead != NULL)) {
        one.others[one.other_count] = group_cause(a, one.other_count + 1);
        one.other_count++;
    }
    struct svi_alert_group *g = window > 0 ? svi_alert_groups_open(f->groups, &one, window) : NULL;
    if (!g)
        return false;
    const int severity = group_severity(a);
    g->severity = severity > g->severity ? severity : g->severity;
    if (g->reported == 0) {
        group_keep(&g->first, group_remainder(f, event->key, a->text), a);
        g->by_arrival = event->ts == f->stream.arrival;
        g->reported = 1;
        g->severity_reported = g->severity;
        g->updated = f->stream.arrival;
        g->updated_at = event->ts;
        return false;
    }
    if (g->severity > g->severity_reported)
        group_publish(f, g, "update", event->ts);
    else if (g->keys > g->reported)
        group_await(f, g, event->ts);
    return true;
}

/* Only the leader's updates are passed on, with the list of keys. Those of the other keys are dropped unless
 * they raise the severity: consumers have never seen these alerts open. */
static bool group_update(struct svi_fleet *f, struct svi_key_entry *entry, struct svi_event *event) {
    const struct svi_alert_event *a = &event->as.alert;
    struct svi_alert_group *g = svi_alert_groups_of(f->groups, group_key(entry), a->alert);
    if (!g || g->keys == 1)
        return false;
    const int severity = group_severity(a);
    const bool leads = g->leader == group_key(entry) && g->alert == a->alert;
    g->severity = severity > g->severity ? severity : g->severity;
    if (leads)
        group_send_named(f, g, entry, event, group_remainder(f, event->key, a->text));
    else if (g->severity > g->severity_reported)
        group_publish(f, g, "update", event->ts);
    return true;
}

/* The alert of a key closes. While others of the group are open nothing is published. A group of one key
 * closes with that key's own event; a larger one with an event of the group, even if the last to close was
 * not the leader. */
static bool group_close(struct svi_fleet *f, struct svi_key_entry *entry, const struct svi_event *event) {
    svi_alert_groups *groups = f->groups;
    const int64_t alert = event->as.alert.alert;
    struct svi_alert_group *g = svi_alert_groups_of(groups, group_key(entry), alert);
    if (!g)
        return false;
    const bool alone = g->keys == 1;
    svi_alert_groups_close(groups, g, group_key(entry), alert);
    if (g->open > 0)
        return true;
    if (!alone)
        group_publish(f, g, "close", event->ts);
    svi_alert_groups_end(groups, g);
    return !alone;
}

void svi_fleet_publish_alert(svi_stream *s, struct svi_event *event, bool alone) {
    struct svi_fleet *f = svi_fleet_of(s);
    struct svi_key_entry *entry =
        event->key[0] ? svi_key_table_find(f->table, event->key, strlen(event->key)) : NULL;
    const bool taken = alone                       ? false
                       : group_is(event, "open")   ? group_open(f, entry, event)
                       : group_is(event, "update") ? group_update(f, entry, event)
                                                   : group_close(f, entry, event);
    if (!taken)
        group_send(f, entry, event);
}

/* ---- by itself */

double svi_fleet_groups_due(const struct svi_fleet *f) {
    double due = INFINITY;
    for (int i = 0; i < svi_alert_groups_count(f->groups); i++)
        due = fmin(due, svi_alert_groups_at(f->groups, i)->due);
    return due;
}

void svi_fleet_groups_pass(struct svi_fleet *f, double now) {
    svi_alert_groups *groups = f->groups;
    for (int i = 0; i < svi_alert_groups_count(groups); i++) {
        struct svi_alert_group *g = svi_alert_groups_at(groups, i);
        if (g->due <= now) {
            g->due = g->due_at = INFINITY;
            group_publish(f, g, "update", g->last);
        }
    }
}

void svi_fleet_groups_time(struct svi_fleet *f, double ts) {
    svi_alert_groups *groups = f->groups;
    if (!(ts >= f->groups_due_at))
        return;
    f->groups_due_at = INFINITY;
    for (int i = 0; i < svi_alert_groups_count(groups); i++) {
        struct svi_alert_group *g = svi_alert_groups_at(groups, i);
        if (g->due_at <= ts) {
            g->due = g->due_at = INFINITY;
            group_publish(f, g, "update", g->last);
        }
        f->groups_due_at = fmin(f->groups_due_at, g->due_at);
    }
}

/* The arrival clock was moved. `due` is an arrival and moves along. `last` and `since` may be time stamps of
 * producers: those stay, unless they would lie further ahead than ts_ahead allows. */
void svi_fleet_groups_move(struct svi_fleet *f, double step, double now) {
    const struct svi_engine *root = f->stream.root;
    for (int i = 0; i < svi_alert_groups_count(f->groups); i++) {
        struct svi_alert_group *g = svi_alert_groups_at(f->groups, i);
        double moved = g->by_arrival ? step : 0;
        if (g->last + moved > now + root->s->ts_ahead)
            moved = now - g->last;
        /* INFINITY stays INFINITY. */
        g->due += step;
        g->updated += step;
        g->due_at += moved;
        g->updated_at += moved;
        g->last += moved;
        g->first.since += moved;
    }
    f->groups_due_at = 0; /* the next sample computes it */
}

/* The oldest alert that is still open leads from now on. Its entry is found by a walk over all keys: entries
 * are found by name, the group has the number, and this happens only when a leading key is removed. Number
 * UINT64_MAX is the samples without a key, which have no entry and an empty name. */
static void group_hand_over(struct svi_fleet *f, struct svi_alert_group *g) {
    struct svi_group_alert next = {.name = ""};
    const struct svi_key_entry *entry = svi_key_table_first(f->table);
    svi_alert_groups_oldest(f->groups, g, &next.key, &next.alert);
    while (entry && entry->head.number != next.key)
        entry = entry->after;
    if (entry)
        next.name = entry->name;
    svi_alert_groups_set_leader(g, &next);
    group_publish(f, g, "open", g->last);
}

/* A key is removed, and with it the alerts that are open in its groups. Each call of svi_alert_groups_drop
 * closes one of them, so the loop ends. */
void svi_fleet_groups_drop(struct svi_fleet *f, struct svi_key_entry *entry) {
    svi_alert_groups *groups = f->groups;
    for (struct svi_alert_group *g; (g = svi_alert_groups_drop(groups, entry->head.number));) {
        /* A group that consumers know by the alert of another key is closed in the name of that key. */
        const bool withheld = g->keys > 1 && g->leader != entry->head.number;
        svi_alert_groups_forget(g, entry->name);
        if (g->open == 0 && withheld)
            group_publish(f, g, "close", g->last);
        if (g->open == 0)
            svi_alert_groups_end(groups, g);
        else if (g->leader == entry->head.number)
            group_hand_over(f, g);
    }
    for (int i = 0; i < svi_alert_groups_count(groups); i++) { /* whose own alert had closed */
        struct svi_alert_group *g = svi_alert_groups_at(groups, i);
        if (g->leader != entry->head.number)
            continue;
        svi_alert_groups_forget(g, entry->name);
        group_hand_over(f, g);
    }
}

/* Alerts end while the key still exists: their events need its name and number. */
svs_code svi_fleet_end_alerts(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err) {
    struct svi_key_entry *found;
    if (entry->last.open == 0)
        return SVS_OK;
    if (!svi_fleet_find(f, entry->name, false, 0, &found, err))
        return err->code;
    svi_engine_end_alerts(entry->engine, "the key is no more");
    return SVS_OK;
}
