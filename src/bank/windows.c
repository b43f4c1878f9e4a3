/* Learners of the same stream as the host, each with its own window.
 *
 * They get what the host got, in its order. Classes and features keep the host's indices even where
 * a member could not take a sample. The sample may be too large for the member's window, or memory
 * may run out. windows_catch_up adds what such a member lacks before it learns again. A skipped
 * sample costs a member one sample, but a skipped class would shift all later indices.
 *
 * Read windows_learn first, then windows_catch_up; the rest are single loops over the members. */
#include "bank/windows.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "learner/learner_archive.h"
#include "learner/learner_held.h"
#include "learner/learner_renew.h"

#define FADING 0.99 /* recursive least squares with a memory of about 100 samples */

static const struct svi_windows_options windows_of_bank = {
    .count = {6, 5}, /* FALSVM, the last one, has no regression */
    .all = 3,
    .kind = {{50, SVS_ALSVM, 1},
             {200, SVS_ALSVM, 1},
             {1000, SVS_ALSVM, 1},
             {0, SVS_ALSVM, 1},
             {0, SVS_ALSVM, FADING},
             {0, SVS_FALSVM, 1}}};

static const struct svi_windows_options *windows_kinds(const struct svi_member_part *p) {
    return p->ops->options;
}

static svs_options windows_options(const struct svi_member_part *p, int i) {
    const struct svi_window_kind *kind = &windows_kinds(p)->kind[i];
    /* All but window, rule and forgetting are the host's: C, scaling, class weights. */
    svs_options o = *p->c->host;
    o.window = kind->window;
    o.rule = kind->rule;
    o.forget = kind->forget;
    /* Only the host keeps samples that wait for a label; members get them when it is known. */
    o.labels_ttl = 0;
    return o;
}

static svs_code windows_init(const struct svi_member_part *p, int d, svs_error *err) {
    struct svi_windows *w = p->self;
    *w = (struct svi_windows){.count = windows_kinds(p)->count[p->c->regress]};
    for (int i = 0; i < w->count; i++) {
        const svs_options o = windows_options(p, i);
        /* A member that does not run stays NULL and is skipped everywhere. */
        if (p->on >> i & 1 && !(w->of[i] = svs_learner_new(&o, d, err)))
            return SVS_NO_MEMORY;
        if (w->of[i])
            svi_learner_relax(w->of[i], true);
    }
    return SVS_OK;
}

static void windows_clear(const struct svi_member_part *p) {
    struct svi_windows *w = p->self;
    for (int i = 0; i < w->count; i++)
        if (!(p->on >> i & 1))
            svs_learner_free(&w->of[i]);
}

static void windows_reset(const struct svi_member_part *p) {
    svs_learner *l;
    for (int i = 0; (l = svi_windows_next(p->self, &i));)
        svs_learner_reset(l);
}

static svs_code windows_grow(const struct svi_member_part *p, int d, svs_error *err) {
    svs_learner *l;
    for (int i = 0; (l = svi_windows_next(p->self, &i));)
        if (d > svs_learner_dimension(l))
            SVI_TRY(svs_learner_grow(l, d, err));
    return SVS_OK;
}

static void windows_renew(const struct svi_member_part *p, int feature) {
    svs_learner *l;
    for (int i = 0; (l = svi_windows_next(p->self, &i));)
        svi_learner_renew(l, feature);
}

/* A member that lacks the newest classes, for want of memory, has scores of another shape: 0 for all. */
static void windows_score(const struct svi_member_part *p, double *scores) {
    const struct svi_windows *w = p->self;
    for (int i = 0; i < w->count; i++) {
        double *own = scores + (size_t)i * (size_t)p->c->stride;
        if (w->of[i] && svs_learner_rows(w->of[i]) == p->c->rows)
            svs_learner_scores(w->of[i], p->c->x, own);
        else
            memset(own, 0, (size_t)p->c->rows * sizeof *own);
    }
}

/* Adds those of the host's first `count` classes, and its features, that the member lacks, either for want
 * of memory or because it refused their sample. The order is the host's, so none may be skipped. */
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
    /* If the sample is of the host's newest class, the step itself adds that class, as it did at
     * the host. So only the classes before it are caught up with before the step. All are caught up
     * with after it, in case the step refused the sample. */
    const bool newest = count > 0 && svs_value_equal(svs_learner_class(host, count - 1), s->y);
    *step = (svs_step){0};
    if (windows_catch_up(l, host, newest ? count - 1 : count, err) != SVS_OK ||
        svs_learner_step(l, s, time, step, err) == SVS_NO_MEMORY)
        return SVS_NO_MEMORY;
    return windows_catch_up(l, host, count, err);
}

/* A member for whose window the row is too large numerically leaves it out; only memory is an error. */
static svs_code windows_learn(const struct svi_member_part *p, const struct svi_member_lesson *l,
                              svs_error *err) {
    struct svi_windows *w = p->self;
    svs_code worst = SVS_OK;
    for (int i = 0; i < w->count; i++)
        if (w->of[i] && windows_learn_one(w->of[i], l->host, l->sample, l->time, &w->step[i], err) != SVS_OK)
            worst = SVS_NO_MEMORY;
    return worst;
}

void svi_windows_forget(struct svi_windows *w, svs_value id, double time) {
    svs_learner *l;
    for (int i = 0; (l = svi_windows_next(w, &i));)
        svs_learner_forget(l, id, time, NULL, NULL);
}

/* Held bit of the member over all samples. Windows remove a sample by its id instead (svi_windows_forget). */
static bool windows_learned_all(const struct svi_member_part *p) {
    const struct svi_windows *w = p->self;
    const int all = windows_kinds(p)->all;
    return w->of[all] && w->step[all].learned;
}

static void windows_take_back(const struct svi_member_part *p, const struct svi_held_sample *s) {
    const struct svi_windows *w = p->self;
    const int all = windows_kinds(p)->all;
    if (w->of[all])
        svi_learner_take_back(w->of[all], s);
}

static void windows_model(const struct svi_member_part *p, int i, struct svi_member_model *m) {
    const struct svi_windows *w = p->self;
    svs_model model;
    if (w->of[i] && svs_learner_model(w->of[i], &model, NULL) == SVS_OK && model.rows == m->rows &&
        model.d == m->d) {
        m->W = model.W;
        m->b = model.b;
    }
}

static void windows_archive(struct svi_archive *a, const struct svi_member_part *p) {
    svs_learner *l;
    for (int i = 0; svi_archive_ok(a) && (l = svi_windows_next(p->self, &i));)
        svi_learner_archive(a, l);
}

static bool windows_fit(const struct svi_member_part *p) {
    svs_learner *l;
    bool fit = true;
    for (int i = 0; (l = svi_windows_next(p->self, &i));)
        fit &= svs_learner_dimension(l) == p->c->d && svs_learner_class_count(l) == p->c->classes;
    return fit;
}

/* The next row that is still held, going from the i-th oldest to older ones; *i moves on. NULL at the end. */
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

/* Are the rows of a member a subsequence of the host's rows? Both are walked from the newest on. */
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
    /* Cheap comparisons first; the fresh solve of svi_learner_verify only if an error bound is asked for. */
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
               : "a member does not match the samples that it holds";
}

static const char *windows_check(const struct svi_member_part *p, const svs_learner *host, double error) {
    const char *wrong = NULL;
    svs_learner *l;
    for (int i = 0; !wrong && (l = svi_windows_next(p->self, &i));)
        wrong = windows_check_one(l, host, error);
    return wrong;
}

static double windows_bytes(const struct svi_member_part *p) {
    double bytes = 0;
    for (int i = 0; i < windows_kinds(p)->count[p->c->regress]; i++) {
        const svs_options o = windows_options(p, i);
        bytes += svs_learner_memory(&o, p->c->d, p->c->classes);
    }
    return bytes;
}

const struct svi_member_ops svi_member_windows = {
    .size = sizeof(struct svi_windows),
    .options = &windows_of_bank,
    .held_bit = 1,
    .init = windows_init,
    .clear = windows_clear,
    .reset = windows_reset,
    .grow = windows_grow,
    .renew = windows_renew,
    .score = windows_score,
    .learn = windows_learn,
    .held = windows_learned_all,
    .take_back = windows_take_back,
    .model = windows_model,
    .archive = windows_archive,
    .fits = windows_fit,
    .check = windows_check,
    .bytes = windows_bytes,
};
