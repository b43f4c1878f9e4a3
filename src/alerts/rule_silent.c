/* The rule `silent`: no row arrives at all, by the clock of arrival.
 *
 * It is the only rule that opens by the passing of time: svi_rules_deadline returns the time, and
 * svi_rules_pass opens the alert when it has come. The silence must be longer than MIN_SECONDS, MEAN_FACTOR
 * times the mean interval and PAUSE_FACTOR times the longest one, of at least MIN_INTERVALS; or longer than
 * the given seconds. A start of the process restarts the wait, because no row could arrive while it
 * was down. */
#include <math.h>
#include <stdio.h>

#include "alerts/rules_internal.h"

#define MIN_SECONDS   60.0
#define MIN_INTERVALS 30
#define MEAN_FACTOR   8
#define PAUSE_FACTOR  3

/* The member of a reported silence; NULL: none. Its `bad` is 0 while the silence lasts, and 1 once a row has
 * ended it. */
static struct svi_rules_member *silent_member(const struct svi_rules *r) {
    return svi_rules_member(r, SVI_RULE_SILENT, -1);
}

static double silent_mean(const struct svi_rules *r) {
    return r->spent / (double)r->intervals;
}

void svi_rules_arrive(struct svi_rules *r, double arrival) {
    const double gap = arrival - r->arrived, pause = r->pause, silence = r->silence;
    /* A reported silence is left out of the mean and raises the longest pause only when one as long was
     * reported before: a fault must not make the rule patient. */
    if (r->waits && gap >= 0) {
        struct svi_rules_member *m = silent_member(r);
        if (m && m->well == 0 && m->bad == 0) {
            svi_rules_seen_twice(&r->pause, &r->silence, gap);
            m->bad = 1; /* the silence has ended; rows now count towards its close */
        } else {
            r->pause = gap > r->pause ? gap : r->pause;
            r->spent += gap;
            r->intervals++;
        }
    }
    if (r->unlearned && r->unlearned->all) {
        r->pause = pause;
        r->silence = silence;
    }
    r->arrived = arrival;
    r->waits = true;
}

double svi_rules_quiet(const struct svi_rules *r) {
    if (r->o.absent > 0)
        return r->o.absent;
    if (r->intervals < MIN_INTERVALS)
        return INFINITY;
    return fmax(MIN_SECONDS, fmax(MEAN_FACTOR * silent_mean(r), PAUSE_FACTOR * r->pause));
}

double svi_rules_deadline(const struct svi_rules *r) {
    const struct svi_rules_member *m = silent_member(r);
    if (!r->any || !r->o.on[SVI_RULE_SILENT] || !r->waits || r->seen.capacity == 0 || (m && m->bad == 0))
        return INFINITY;
    return r->arrived + svi_rules_quiet(r);
}

void svi_rules_pass(struct svi_rules *r, double now) {
    if (!(now >= svi_rules_deadline(r)))
        return;
    struct svi_rules_member *m = silent_member(r);
    /* A member that exists has ended but not closed yet: the new silence continues its alert. */
    if (!m)
        m = svi_rules_add(r, SVI_RULE_SILENT, -1, r->arrived, now);
    if (!m)
        return;
    m->well = m->bad = 0;
    struct svi_rules_alert *a = m->alert >= 0 ? &r->alerts[m->alert] : NULL;
    if (a)
        a->severity = svi_rules_severity(r, a, now);
}

double svi_rules_arrived(const struct svi_rules *r) {
    return r->waits ? r->arrived : -INFINITY;
}

void svi_rules_begin(struct svi_rules *r, double now) {
    if (r->waits && now > r->arrived)
        r->arrived = now;
}

void svi_rules_pause(struct svi_rules *r) {
    r->waits = false;
}

void svi_rules_silence_archive(struct svi_archive *a, struct svi_rules *r) {
    svi_archive_bool(a, "waits", &r->waits);
    svi_archive_int64(a, "intervals", &r->intervals, 0, INT64_MAX / 4);
    svi_archive_double(a, "arrived", &r->arrived);
    svi_archive_double(a, "spent", &r->spent);
    svi_archive_double(a, "pause", &r->pause);
    svi_archive_double(a, "silence", &r->silence);
}

static void silent_text(char out[SVI_RULE_PART], const struct svi_rule_words *w) {
    svi_rule_every(out, false, w->r->intervals > 0 ? silent_mean(w->r) : NAN);
}

const struct svi_rule_kind svi_rule_silent = {.of_stream = true,
                                              .missing = "rows",
                                              .again = "sending rows again",
                                              .of_key = "absent",
                                              .text = silent_text};
