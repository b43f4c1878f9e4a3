/* Values that no sample can hold, reported by topic (missing.h). What is reported is bounded in time (one
 * line a second), in length (MAX_TOPICS_SHOWN topics a line) and in memory (MISSING_PLACES topics). */
#include "missing.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "log.h"

#define BETWEEN          1.0    /* seconds between two lines at least */
#define PAUSE_MAX        3600.0 /* without news */
#define MAX_TOPICS_SHOWN 5      /* topics in a line */
#define LINE             900

/* A linear search: such values are rare, and there are MISSING_PLACES at most. */
static struct missing_place *mqtt_missing_find(struct missing *m, const char *topic) {
    for (int i = 0; i < m->places; i++)
        if (strcmp(m->place[i].topic, topic) == 0)
            return &m->place[i];
    if (m->places == MISSING_PLACES)
        return NULL;
    m->news = true;
    return strcpy(m->place[m->places].topic, topic), &m->place[m->places++];
}

/* Counted under topic and member, escaped: the name goes to a terminal. */
void mqtt_missing_note(struct missing *m, const char *topic, const struct field *f) {
    char name[sizeof m->place[0].topic], key[50] = "";
    svi_escape(name, sizeof name - sizeof key, topic, strlen(topic));
    if (f->key[0])
        snprintf(name + strlen(name), sizeof key, " %s",
                 svi_escape(key, sizeof key - 1, f->key, strlen(f->key)));
    struct missing_place *p = mqtt_missing_find(m, name);
    if (!p) {
        m->others++;
        return;
    }
    p->count++;
    snprintf(p->last, sizeof p->last, isnan(f->value) ? "no value" : "%g", f->value);
}

/* The place with the most values that were not reported yet; NULL: none. */
static struct missing_place *most_unreported(struct missing *m) {
    struct missing_place *most = m->place;
    for (int i = 1; i < m->places; i++)
        if (m->place[i].count - m->place[i].reported > most->count - most->reported)
            most = &m->place[i];
    return most->count > most->reported ? most : NULL;
}

/* The first line comes at once, one with a new topic after BETWEEN; without news the pause doubles, so a
 * sensor that is broken for a week takes about a hundred lines. */
void mqtt_missing_turn(struct missing *m, double now) {
    char line[LINE];
    const double pause = m->last_line == 0 ? 0 : m->news ? BETWEEN : m->pause;
    struct missing_place *p;
    int length = 0, left = 0;
    if (now < m->last_line + pause || !(p = most_unreported(m)))
        return;
    for (int i = 0; p && i < MAX_TOPICS_SHOWN; i++, p = most_unreported(m)) {
        length += snprintf(line + length, sizeof line - (size_t)length, "%s%s %" PRId64 " (%s)",
                           i > 0 ? ", " : "", p->topic, p->count, p->last);
        p->reported = p->count;
    }
    /* What did not fit counts as reported, by the words "and others": else it would come up again and again.
     */
    for (int i = 0; i < m->places; i++) {
        left += m->place[i].count > m->place[i].reported;
        m->place[i].reported = m->place[i].count;
    }
    if (left > 0 || m->others > 0)
        snprintf(line + length, sizeof line - (size_t)length, ", and others");
    mqtt_log("values counted as missing, by topic (the last one): %s", line);
    m->others = 0;
    m->news = false;
    m->last_line = now;
    m->pause = fmin(fmax(BETWEEN, 2 * m->pause), PAUSE_MAX);
}
