/* Learners of the same stream as the host, each with a window of its own.
 *
 * They get what the host got, in its order. Classes and features have the same indices as the host's, also
 * where a member could not take a sample: it was too large for what the member's window holds, or memory ran
 * out. windows_catch_up gives such a member what it lacks before it learns again.
 *
 * To read: svi_windows_learn. */
#include "bank/windows.h"

#include "base/fail.h"
#include <math.h>
#include <string.h>

#include "learner/learner_archive.h"
#include "learner/learner_held.h"

static svs_options windows_options(const svs_options *host, const struct svi_window_kind *kind) {
    svs_options o = *host;
    o.window = kind->window;
    o.rule = kind->rule;
    o.forget = kind->forget;
    o.labels_ttl = 0;
    return o;
}

svs_code svi_windows_init(struct svi_windows *w, const svs_options *host, const struct svi_window_kind *kinds,
                          int count, uint32_t on, int d, svs_error *err) {
    *w = (struct svi_windows){.count = count};
    for (int i = 0; i < count; i++) {
        const svs_options o = windows_options(host, &kinds[i]);
        if (on >> i & 1 && !(w->of[i] = svs_learner_new(&o, d, err)))
            return err->code;
        if (w->of[i])
            svi_learner_relax(w->of[i], true);
    }
    return SVS_OK;
}

void svi_windows_keep(struct svi_windows *w, uint32_t on) {
    for (int i = 0; i < w->count; i++)
        if (!(on >> i & 1))
            svs_learner_free(&w->of[i]);
}

void svi_windows_reset(struct svi_windows *w) {
    for (int i = 0; i < w->count; i++)
        if (w->of[i])
            svs_learner_reset(w->of[i]);
}

svs_code svi_windows_grow(struct svi_windows *w, int d, svs_error *err) {
    for (int i = 0; i < w->count; i++)
        if (w->of[i] && d > svs_learner_dimension(w->of[i]))
            SVI_TRY(svs_learner_grow(w->of[i], d, err));
    return SVS_OK;
}

void svi_windows_score(struct svi_windows *w, const double *x, double *scores, int stride, int rows) {
    for (int i = 0; i < w->count; i++) {
        double *own = scores + (size_t)i * (size_t)stride;
        if (w->of[i] && svs_learner_rows(w->of[i]) == rows)
            svs_learner_scores(w->of[i], x, own);
        else
            memset(own, 0, (size_t)rows * sizeof *own);
    }
}

/* The first `count` classes of the host, which the member lacks where memory did or where it refused their
 * sample. Classes have the same indices everywhere, so that none may be left out. */
static svs_code windows_catch_up(svs_learner *l, const svs_learner *host, int count, svs_error *err) {
    svs_code code = SVS_OK;
    const int d = svs_learner_dimension(host);
    for (int k = svs_learner_class_count(l); k < count && code == SVS_OK; k++)
        code = svi_learner_meet_class(l, svs_learner_class(host, k), err);
    return code == SVS_OK && d > svs_learner_dimension(l) ? svs_learner_grow(l, d, err) : code;
}

static svs_code windows_learn_one(svs_learner *l, const svs_learner *host, const svs_sample *s, double time,
                                  svs_step *step, svs_error *err) {
    const int count = svs_learner_class_count(host);
    const bool newest = count > 0 && svs_value_equal(svs_learner_class(host, count - 1), s->y);
    *step = (svs_step){0};
    if (windows_catch_up(l, host, newest ? count - 1 : count, err) != SVS_OK ||
        svs_learner_step(l, s, time, step, err) == SVS_NO_MEMORY)
        return SVS_NO_MEMORY;
    return windows_catch_up(l, host, count, err);
}

svs_code svi_windows_learn(struct svi_windows *w, const svs_learner *host, const svs_sample *s, double time,
                           svs_error *err) {
    svs_code worst = SVS_OK;
    for (int i = 0; i < w->count; i++)
        if (w->of[i] && windows_learn_one(w->of[i], host, s, time, &w->step[i], err) != SVS_OK)
            worst = SVS_NO_MEMORY;
    return worst;
}

void svi_windows_forget(struct svi_windows *w, svs_value id, double time) {
    for (int i = 0; i < w->count; i++)
        if (w->of[i])
            svs_learner_forget(w->of[i], id, time, NULL, NULL);
}

void svi_windows_archive(struct svi_archive *a, struct svi_windows *w) {
    for (int i = 0; i < w->count && svi_archive_ok(a); i++)
        if (w->of[i])
            svi_learner_archive(a, w->of[i]);
}

/* The next older row that is held, from the i-th oldest on. */
static const double *windows_older(const svs_learner *l, int64_t *i) {
    const double *row = NULL;
    int64_t number;
    while (!row && *i >= 0)
        svi_learner_held_row(l, (*i)--, &row, &number);
    return row;
}

static int64_t windows_slots(const svs_learner *l) {
    const double *row;
    int64_t count = 0, number;
    while (svi_learner_held_row(l, count, &row, &number))
        count++;
    return count;
}

/* The rows of a member are rows of the host, in its order. */
static bool windows_held(const svs_learner *l, const svs_learner *host) {
    int64_t i = windows_slots(l) - 1, j = windows_slots(host) - 1;
    const size_t size = (size_t)svs_learner_dimension(host) * sizeof(double);
    for (const double *own; (own = windows_older(l, &i));) {
        const double *row = windows_older(host, &j);
        while (row && size && memcmp(own, row, size) != 0)
            row = windows_older(host, &j);
        if (!row)
            return false;
    }
    return true;
}

static const char *windows_check_one(svs_learner *l, const svs_learner *host, double error) {
    double worst = 0;
    if (svs_learner_dimension(l) != svs_learner_dimension(host))
        return "a member has other features than the host";
    if (svs_learner_class_count(l) != svs_learner_class_count(host))
        return "a member has other classes than the host";
    for (int k = 0; k < svs_learner_class_count(l); k++)
        if (!svs_value_equal(svs_learner_class(l, k), svs_learner_class(host, k)))
            return "a class has another index in a member";
    if (!windows_held(l, host))
        return "a member holds a row that the host does not";
    return isinf(error) || (svi_learner_verify(l, &worst, NULL) == SVS_OK && worst <= error)
               ? NULL
               : "a member is not what follows from what it holds";
}

const char *svi_windows_check(struct svi_windows *w, const svs_learner *host, double error) {
    const char *wrong = NULL;
    for (int i = 0; i < w->count && !wrong; i++)
        wrong = w->of[i] ? windows_check_one(w->of[i], host, error) : NULL;
    return wrong;
}

double svi_windows_memory(const svs_options *host, const struct svi_window_kind *kinds, int count,
                          uint32_t on, int d, int classes) {
    double bytes = 0;
    for (int i = 0; i < count; i++) {
        if (!(on >> i & 1))
            continue;
        const svs_options o = windows_options(host, &kinds[i]);
        bytes += svs_learner_memory(&o, d, classes);
    }
    return bytes;
}
