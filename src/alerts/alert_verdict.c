/* What a person says of an alert, and what that teaches.
 *
 * The last episodes are kept with their rows and the peaks of their surprises. A verdict names an episode by
 * the number of its alert. Episodes that joined the alert of a rule share that number, and the newest one
 * counts. Read verdict_episode, svi_verdicts_number, then verdict_apply and svi_verdicts_give.
 */
#include "alerts/alert_verdict.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

static void verdicts_free_rows(struct svi_verdicts *v) {
    for (int i = 0; i < SVI_VERDICT_EPISODES; i++) {
        svi_free(v->rows[i]);
        v->rows[i] = NULL;
    }
}

/* Rows of another width cannot be learned by the widened detector, so they are dropped; peaks stay. */
void svi_verdicts_set_columns(struct svi_verdicts *v, int columns) {
    if (v->columns == columns)
        return;
    verdicts_free_rows(v);
    svi_verdicts_renew(v);
    v->columns = columns;
}

void svi_verdicts_clear(struct svi_verdicts *v) {
    const int64_t marked_true = v->marked_true, marked_false = v->marked_false;
    verdicts_free_rows(v);
    *v = (struct svi_verdicts){.marked_true = marked_true, .marked_false = marked_false};
}

/* The episode of that tag. Places are a ring by tag: a new tag replaces the episode SVI_VERDICT_EPISODES
 * before it, whose allocated rows it reuses. */
static struct svi_verdict_episode *verdict_episode(struct svi_verdicts *v, int64_t tag) {
    struct svi_verdict_episode *e = &v->of[tag % SVI_VERDICT_EPISODES];
    if (e->tag != tag)
        *e = (struct svi_verdict_episode){.tag = tag, .stride = 1};
    return e;
}

/* The rows of that episode, allocated at the first one. NULL: out of memory; the rows are not kept, and a
 * verdict still has the peaks. */
static double *verdict_rows(struct svi_verdicts *v, const struct svi_verdict_episode *e) {
    double **rows = &v->rows[e - v->of];
    if (!*rows)
        *rows = svi_alloc_plain_array(SVI_VERDICT_ROWS, (size_t)v->columns * sizeof **rows);
    return *rows;
}

void svi_verdicts_row(struct svi_verdicts *v, int64_t tag, const double *row) {
    /* `met` counts every row, kept or not: which rows are kept depends on their numbers alone. */
    struct svi_verdict_episode *e = verdict_episode(v, tag);
    const size_t columns = (size_t)v->columns;
    if (tag < 1 || columns < 1 || e->met++ % e->stride != 0)
        return;
    double *rows = verdict_rows(v, e);
    if (!rows)
        return;
    /* Full: every second row goes and the stride doubles, so that the rows kept stay evenly spread over an
     * episode of any length. The first row always stays. */
    if (e->rows == SVI_VERDICT_ROWS) {
        for (int i = 1; i < SVI_VERDICT_ROWS / 2; i++)
            memcpy(rows + (size_t)i * columns, rows + 2 * (size_t)i * columns, columns * sizeof *rows);
        e->rows /= 2;
        e->stride *= 2;
    }
    memcpy(rows + (size_t)e->rows++ * columns, row, columns * sizeof *rows);
}

void svi_verdicts_peak(struct svi_verdicts *v, int64_t tag, enum svi_alert_detector detector, int feature,
                       double surprise) {
    /* One peak for each detector and feature. A full list ignores new pairs: the first ones matter most,
     * since they opened the alert. */
    struct svi_verdict_episode *e = verdict_episode(v, tag);
    int i = 0;
    if (tag < 1)
        return;
    while (i < e->count && (e->peaks[i].detector != (int)detector || e->peaks[i].feature != feature))
        i++;
    if (i == SVI_VERDICT_PEAKS)
        return;
    if (i == e->count)
        e->peaks[e->count++] = (struct svi_verdict_peak){(int)detector, feature, 0};
    e->peaks[i].surprise = fmax(e->peaks[i].surprise, surprise);
}

void svi_verdicts_number(struct svi_verdicts *v, int64_t tag, int64_t number) {
    verdict_episode(v, tag)->number = number;
}

/* The newest of that number: episodes that belong to the alert of a rule share its number. */
static const struct svi_verdict_episode *verdict_newest(const struct svi_verdicts *v, int64_t number) {
    const struct svi_verdict_episode *newest = NULL;
    for (int i = 0; i < SVI_VERDICT_EPISODES; i++)
        if (v->of[i].tag > 0 && v->of[i].number == number && (!newest || v->of[i].tag > newest->tag))
            newest = &v->of[i];
    return newest;
}

static struct svi_verdict_episode *verdict_find(struct svi_verdicts *v, int64_t number) {
    const struct svi_verdict_episode *newest = verdict_newest(v, number);
    return newest ? &v->of[newest - v->of] : NULL;
}

int64_t svi_verdicts_last(const struct svi_verdicts *v) {
    const struct svi_verdict_episode *last = NULL;
    for (int i = 0; i < SVI_VERDICT_EPISODES; i++)
        if (v->of[i].number > 0 && v->of[i].verdict == SVI_VERDICT_NONE &&
            (!last || v->of[i].tag > last->tag) && verdict_newest(v, v->of[i].number) == &v->of[i])
            last = &v->of[i];
    return last ? last->number : 0;
}

void svi_verdicts_renew(struct svi_verdicts *v) {
    for (int i = 0; i < SVI_VERDICT_EPISODES; i++)
        v->of[i].rows = 0;
}

/* Carries out a verdict. The caller has reserved memory for it (svi_alert_stage_verdict).
 *
 * False: the rows are normal, so the detector learns them, every second one as a calibration score; and the
 * surprise of each feature is marked normal in the policy. True: the rows leave the calibration and the
 * excursions leave the past of the budget, so that neither takes the fault for normal. */
static void verdict_apply(struct svi_verdicts *v, const struct svi_verdict_episode *e,
                          struct svi_alert_policy *d, svi_detector *detector) {
    const bool is_true = e->verdict == SVI_VERDICT_TRUE;
    for (int i = 0; i < e->rows && detector; i++) {
        const double *row = verdict_rows(v, e) + (size_t)i * (size_t)v->columns;
        if (is_true)
            svi_detector_withdraw(detector, row);
        else
            svi_detector_teach(detector, row, i % 2 == 0);
    }
    for (int i = 0; i < e->count && !is_true; i++)
        if (e->peaks[i].feature >= 0) /* -1 is the row as a whole, which has just been learned */
            svi_alert_policy_mark_normal(d, (enum svi_alert_detector)e->peaks[i].detector,
                                         e->peaks[i].feature, e->peaks[i].surprise);
    if (is_true)
        svi_budget_leave_out(&d->budget, e->tag);
}

svs_code svi_verdicts_give(struct svi_verdicts *v, struct svi_alert_policy *d, svi_detector *detector,
                           int64_t number, bool is_true, svs_error *err) {
    struct svi_verdict_episode *e = verdict_find(v, number);
    if (!e)
        return svi_fail(
            err, SVS_UNAVAILABLE,
            "alert %lld takes no verdict: it does not exist (its number is `alert` of its events; "
            "with keys, give its key too), or is not among the last %d of kind novelty (those of "
            "quality and of rules learn from no verdict)",
            (long long)number, SVI_VERDICT_EPISODES);
    if (e->verdict != SVI_VERDICT_NONE)
        return svi_fail(err, SVS_UNAVAILABLE, "alert %lld has the verdict %s already: a verdict is final",
                        (long long)number, e->verdict == SVI_VERDICT_TRUE ? "true" : "false");
    /* Recorded before it is carried out: a second verdict would learn or withdraw the same rows twice. */
    e->verdict = is_true ? SVI_VERDICT_TRUE : SVI_VERDICT_FALSE;
    v->marked_true += is_true;
    v->marked_false += !is_true;
    verdict_apply(v, e, d, detector);
    return SVS_OK;
}

double svi_verdicts_precision(const struct svi_verdicts *v) {
    const int64_t all = v->marked_true + v->marked_false;
    return all > 0 ? (double)v->marked_true / (double)all : NAN;
}

double svi_verdicts_memory(int columns) {
    return (double)SVI_VERDICT_EPISODES * SVI_VERDICT_ROWS * columns * sizeof(double);
}

/* ---- archive */

static void verdict_episode_archive(struct svi_archive *a, struct svi_verdicts *v,
                                    struct svi_verdict_episode *e) {
    svi_archive_int64(a, "tag", &e->tag, 0, SVI_COUNT_MAX);
    if (!svi_archive_ok(a) || e->tag == 0)
        return;
    /* An episode in another place than its tag's would be replaced at once by the next call. */
    svi_archive_check(a, &v->of[e->tag % SVI_VERDICT_EPISODES] == e, "an episode is out of order");
    svi_archive_int64(a, "number", &e->number, 0, SVI_COUNT_MAX);
    svi_archive_int(a, "verdict", &e->verdict, SVI_VERDICT_NONE, SVI_VERDICT_TRUE);
    svi_archive_int64(a, "met", &e->met, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "stride", &e->stride, 1, SVI_COUNT_MAX);
    svi_archive_int(a, "peaks", &e->count, 0, SVI_VERDICT_PEAKS);
    for (int i = 0; i < e->count && svi_archive_ok(a); i++) {
        svi_archive_int(a, "judge", &e->peaks[i].detector, 0, SVI_DETECTORS - 1);
        svi_archive_int(a, "feature", &e->peaks[i].feature, -1, INT32_MAX / 2);
        svi_archive_finite(a, "surprise", &e->peaks[i].surprise, 1);
    }
    svi_archive_int(a, "rows", &e->rows, 0, SVI_VERDICT_ROWS);
    if (!svi_archive_check(a, e->rows == 0 || v->columns > 0, "there is no capacity for rows") ||
        e->rows == 0)
        return;
    /* Loading allocates only for episodes that have rows. */
    if (verdict_rows(v, e))
        svi_archive_known(a, "row", verdict_rows(v, e), (int64_t)e->rows * v->columns);
    else
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the rows of alerts");
}

void svi_verdicts_archive(struct svi_archive *a, struct svi_verdicts *v) {
    svi_archive_int64(a, "said true", &v->marked_true, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "said false", &v->marked_false, 0, SVI_COUNT_MAX);
    for (int i = 0; i < SVI_VERDICT_EPISODES && svi_archive_ok(a); i++)
        verdict_episode_archive(a, v, &v->of[i]);
}
