#include "novelty/detector.h"

#include <math.h>
#include <string.h>

#include <cblas.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "novelty/detector_state.h"
#include "novelty/explain.h"

#define FIRST_RENEWAL 32
#define FAINT         1e-280 /* memberships below this are worked out from the distances */

void svi_detector_free(svi_detector **detector) {
    struct svi_detector *d = *detector;
    if (!d)
        return;
    svi_coordinates_clear(&d->coordinates);
    svi_calibration_clear(&d->calibration);
    for (int g = 0; g < d->members; g++)
        svi_hull_clear(&d->hull[g]);
    void *const blocks[] = {d->raw, d->at,     d->norm2, d->born,  d->rows,      d->x,    d->u,
                            d->gap, d->kernel, d->work,  d->novel, d->candidate, d->held, d->used};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        svi_free(blocks[i]);
    svi_free(d);
    *detector = NULL;
}

static bool take_room(struct svi_detector *d) {
    const size_t most = (size_t)d->o.model.max, features = (size_t)d->o.d, stride = (size_t)d->stride;
    d->raw = svi_alloc_array(most, features * sizeof(double));
    d->at = svi_alloc_array(most, stride * sizeof(double));
    d->norm2 = svi_alloc_array(most, sizeof(double));
    d->born = svi_alloc_array(most, sizeof *d->born);
    d->used = svi_alloc_array(most, sizeof *d->used);
    d->rows = svi_alloc_array((size_t)d->o.calibration, features * sizeof(double));
    d->held = svi_alloc_array((size_t)d->o.confirm, features * sizeof(double));
    d->x = svi_alloc_array(features, sizeof(double));
    d->candidate = svi_alloc_array(features, sizeof(double));
    d->u = svi_alloc_array(stride, sizeof(double));
    d->gap = svi_alloc_array(most + 1, sizeof(double));
    d->kernel = svi_alloc_array(most + 1, sizeof(double));
    d->work = svi_alloc_array(svi_detector_work(&d->o, d->stride), sizeof(double));
    d->novel_room = d->o.persist + d->o.persist / 4;
    d->novel = svi_alloc_array((size_t)d->novel_room + 1, sizeof *d->novel);
    return d->held && d->used && d->raw && d->at && d->norm2 && d->born && d->rows && d->x && d->candidate &&
           d->u && d->gap && d->kernel && d->work && d->novel;
}

svi_detector *svi_detector_new(const struct svi_detector_options *o, svs_error *err) {
    double multiples[SVS_MEMBERS_MAX];
    struct svi_detector *d = svi_alloc(sizeof *d);
    if (!d) {
        svi_fail_memory(err, "the novelty detector");
        return NULL;
    }
    d->o = *o;
    if (d->o.model.m == 0)
        d->o.model.m = (int64_t)ceil(log(20) / d->o.model.epsilon);
    d->members = svi_gamma_multiples(&o->model, multiples);
    d->similarity = (struct svi_similarity){o->model.kernel, o->model.degree, svi_kernels_get(SVS_ISA_BEST)};
    d->stride = svi_round_up(o->d, 8);
    svs_code code = svi_coordinates_init(&d->coordinates, o->d, o->model.scale, err);
    if (code == SVS_OK)
        code = svi_calibration_init(&d->calibration, o->calibration, err);
    for (int g = 0; g < d->members && code == SVS_OK; g++)
        code = svi_hull_init(&d->hull[g], o->model.max, err);
    if (code == SVS_OK && !take_room(d))
        code = svi_fail_memory(err, "the novelty detector");
    if (code != SVS_OK)
        svi_detector_free(&d);
    else
        svi_detector_reset(d);
    return d;
}

void svi_detector_reset(svi_detector *d) {
    svi_calibration_empty(&d->calibration);
    for (int g = 0; g < d->members; g++)
        svi_hull_empty(&d->hull[g]);
    d->ready = false;
    d->points = 0;
    d->seen = d->learned = d->joined = d->left = d->renewals = d->held_out = 0;
    d->held_count = 0;
    d->run = 0;
    d->run_novel = false;
    d->candidates = d->novel_count = d->novel_sum = 0;
    d->last_join = INT64_MIN / 2;
    d->next_renewal = FIRST_RENEWAL;
    d->next_check = d->o.calibration;
    d->random.state = d->o.model.seed;
    d->judgement = (struct svi_judgement){.membership = 1, .p = 1, .tail = 1};
}

double svi_detector_memory(const struct svi_detector_options *o) {
    double multiples[SVS_MEMBERS_MAX];
    const double most = o->model.max, d = o->d, stride = svi_round_up(o->d, 8),
                 rows = o->calibration + o->confirm;
    const double hull = 2 * most * most + 6 * most;
    return sizeof(struct svi_detector) +
           sizeof(double) *
               (most * (d + stride + 5) + rows * (d + 2) + hull * svi_gamma_multiples(&o->model, multiples) +
                (double)svi_detector_work(o, (int)stride) + 5 * stride) +
           1.25 * (double)o->persist;
}

/* ---- judging */

static double member_score(struct svi_detector *d, int g, const double *u) {
    const struct svi_hull *h = &d->hull[g];
    const double gamma = d->view.member[g].gamma;
    const bool polynomial = d->similarity.kernel == SVS_NOVELTY_POLYNOMIAL;
    double membership;
    const double own = polynomial ? d->similarity.pass->dot(u, u, d->stride) : 0;
    svi_similarity_of_gap(&d->similarity, gamma, d->gap, d->norm2, own, d->points, d->kernel);
    membership = d->points > 0 ? cblas_ddot(d->points, h->z, 1, d->kernel, 1) : 0;
    if (membership > FAINT || polynomial)
        return -log(fmax(membership, FAINT));
    return svi_similarity_surprise(gamma, d->gap, h->z, d->points);
}

double svi_detector_score(struct svi_detector *d, const double *u, double *member_surprise) {
    const struct svi_points points = {d->at, d->stride, d->points};
    double surprise = 0;
    svi_similarity_gap(&d->similarity, &points, 0, d->points, u, d->gap);
    for (int g = 0; g < d->members; g++) {
        member_surprise[g] = member_score(d, g, u);
        surprise += d->view.member[g].share * member_surprise[g];
    }
    return svi_detector_round(surprise);
}

void svi_detector_judge(svi_detector *d, const double *x, struct svi_judgement *out) {
    struct svi_judgement *j = &d->judgement;
    memcpy(d->x, x, (size_t)d->o.d * sizeof *x);
    *j = (struct svi_judgement){.membership = 1, .p = 1, .tail = 1, .calibrates = d->seen % 2 == 1};
    if (d->ready) {
        svi_coordinates_apply(&d->coordinates, d->x, d->u);
        j->surprise = svi_detector_score(d, d->u, d->member_surprise);
        j->membership = exp(-j->surprise);
        j->novelty = -expm1(-j->surprise);
        j->p = svi_calibration_p(&d->calibration, j->surprise);
        j->tail = svi_calibration_tail(&d->calibration, j->surprise);
        j->novel = j->p <= d->o.p;
    }
    *out = *j;
}

bool svi_detector_peek(svi_detector *d, const double *x, double *novelty, double *p) {
    if (!d->ready)
        return false;
    svi_coordinates_apply(&d->coordinates, x, d->u);
    const double surprise = svi_detector_score(d, d->u, d->member_surprise);
    *novelty = -expm1(-surprise);
    *p = svi_calibration_p(&d->calibration, surprise);
    return true;
}

/* ---- learning */

static void leave(struct svi_detector *d, int i) {
    const int last = --d->points;
    const size_t features = (size_t)d->o.d, stride = (size_t)d->stride;
    for (int g = 0; g < d->members && d->ready; g++)
        svi_hull_remove(&d->hull[g], i);
    d->left++;
    if (i == last)
        return;
    memcpy(d->raw + (size_t)i * features, d->raw + (size_t)last * features, features * sizeof *d->raw);
    memcpy(d->at + (size_t)i * stride, d->at + (size_t)last * stride, stride * sizeof *d->at);
    d->norm2[i] = d->norm2[last];
    d->born[i] = d->born[last];
    d->used[i] = d->used[last];
}

static int oldest(const struct svi_detector *d) {
    int oldest = 0;
    for (int i = 1; i < d->points; i++)
        if (d->born[i] < d->born[oldest])
            oldest = i;
    return oldest;
}

static void show_points(struct svi_detector *d) {
    for (int g = 0; g < d->members; g++) {
        d->view.member[g].count = d->points;
        d->view.member[g].rho = svi_hull_rho(&d->hull[g]);
    }
}

static void solve(struct svi_detector *d) {
    for (int g = 0; g < d->members && d->ready; g++)
        svi_hull_solve(&d->hull[g]);
    show_points(d);
}

/* Points that no learned sample was nearest to for a whole window leave. */
static bool drop_aged(struct svi_detector *d) {
    const int before = d->points;
    for (int i = d->points - 1; i >= 0 && d->o.window > 0; i--)
        if (d->learned - d->used[i] >= d->o.window)
            leave(d, i);
    return d->points < before;
}

/* A point that joins: its kernel values with all others, member by member. */
static void join(struct svi_detector *d, const double *raw) {
    const int n = d->points;
    double *at = d->at + (size_t)n * (size_t)d->stride;
    const struct svi_points points = {d->at, d->stride, n};
    memcpy(d->raw + (size_t)n * (size_t)d->o.d, raw, (size_t)d->o.d * sizeof *raw);
    d->born[n] = d->used[n] = d->learned;
    d->points = n + 1;
    d->joined++;
    d->last_join = d->learned;
    if (!d->ready)
        return;
    svi_coordinates_apply(&d->coordinates, raw, at);
    d->norm2[n] = d->similarity.pass->dot(at, at, d->stride);
    svi_similarity_gap(&d->similarity, &points, 0, n, at, d->gap);
    for (int g = 0; g < d->members; g++) {
        svi_similarity_of_gap(&d->similarity, d->view.member[g].gamma, d->gap, d->norm2, d->norm2[n], n,
                              d->kernel);
        d->kernel[n] = 1;
        svi_hull_add(&d->hull[g], d->kernel);
    }
}

/* Learned samples between two that join a full pool: so many that points live one window. */
static int64_t interval(const struct svi_detector *d) {
    const int64_t window = d->o.window > 0 ? d->o.window : d->learned;
    return window / d->o.model.max > 1 ? window / d->o.model.max : 1;
}

static enum svi_lesson admit(struct svi_detector *d, const double *raw) {
    if (d->points == d->o.model.max) {
        if (d->learned - d->last_join < interval(d))
            return SVI_LESSON_WAITS;
        leave(d, oldest(d));
    }
    join(d, raw);
    return SVI_LESSON_JOINED;
}

/* FOSVM2: of each m samples the one that lies furthest outside. */
static enum svi_lesson admit_drawn(struct svi_detector *d, double membership) {
    if (d->candidates == 0 || membership < d->candidate_membership) {
        memcpy(d->candidate, d->x, (size_t)d->o.d * sizeof *d->x);
        d->candidate_membership = membership;
    }
    if (++d->candidates < d->o.model.m)
        return SVI_LESSON_WAITS;
    d->candidates = 0;
    return d->candidate_membership < 1 - d->o.model.theta ? admit(d, d->candidate) : SVI_LESSON_INSIDE;
}

/* Polynomial kernels are compared themselves: their gaps are products, which favour long vectors. */
static int nearest(const struct svi_detector *d) {
    const bool polynomial = d->similarity.kernel == SVS_NOVELTY_POLYNOMIAL; /* one member: `kernel` is its */
    int nearest = 0;
    for (int i = 1; i < d->points; i++)
        if (polynomial ? d->kernel[i] > d->kernel[nearest] : d->gap[i] < d->gap[nearest])
            nearest = i;
    return nearest;
}

/* What aged points held may lie outside without them: the sample is looked at again. */
static void age(struct svi_detector *d) {
    if (!drop_aged(d))
        return;
    solve(d);
    if (d->ready)
        svi_detector_score(d, d->u, d->member_surprise);
}

static enum svi_lesson learn(struct svi_detector *d) {
    double most = 0;
    d->learned++;
    age(d);
    enum svi_lesson lesson = SVI_LESSON_INSIDE;
    for (int g = 0; g < d->members && d->ready; g++)
        most = fmax(most, d->member_surprise[g]);
    const bool inside = d->ready && most <= -log1p(-d->o.model.theta);
    if (inside)
        d->used[nearest(d)] = d->learned;
    if (!d->ready)
        lesson = d->points < d->o.model.max ? admit(d, d->x) : SVI_LESSON_WAITS;
    else if (d->o.model.fosvm == 2 && d->points > 0)
        lesson = admit_drawn(d, exp(-most));
    else if (!inside)
        lesson = admit(d, d->x);
    if (lesson == SVI_LESSON_JOINED)
        solve(d);
    return lesson;
}

/* The share of novel ones among the last; counts the present one. */
static bool change_lasts(struct svi_detector *d) {
    if (d->novel_room == 0)
        return false;
    uint8_t *flag = &d->novel[d->novel_count++ % d->novel_room];
    d->novel_sum += d->judgement.novel - (d->novel_count > d->novel_room ? *flag : 0);
    *flag = d->judgement.novel;
    return d->novel_sum >= d->o.persist;
}

static bool may_learn(struct svi_detector *d, bool labelled) {
    const struct svi_judgement *j = &d->judgement;
    const bool normal = j->p > fmax(d->o.p, d->o.model.trim) || !d->ready;
    switch (d->o.learn) {
    case SVI_LEARN_ALL:
        return true;
    case SVI_LEARN_LABELLED:
        return labelled;
    case SVI_LEARN_PERSISTENT:
        return change_lasts(d) || normal;
    default:
        return normal;
    }
}

static void add_score(struct svi_detector *d, double surprise, const double *raw) {
    const int place = svi_calibration_add(&d->calibration, surprise);
    memcpy(d->rows + (size_t)place * (size_t)d->o.d, raw, (size_t)d->o.d * sizeof *raw);
}

/* The run was too short for a disturbance: what was held back counts, by the present model. */
static void release(struct svi_detector *d) {
    double each[SVS_MEMBERS_MAX];
    for (int i = 0; i < d->held_count; i++) {
        const double *raw = d->held + (size_t)i * (size_t)d->o.d;
        svi_coordinates_apply(&d->coordinates, raw, d->u);
        add_score(d, svi_detector_score(d, d->u, each), raw);
    }
    d->held_count = 0;
}

/* Is the present run no chance any more? A disturbance holds a novel sample and has lasted `confirm` samples;
 * when it has lasted as many as calibrate, it is what is usual now. */
static bool is_disturbance(const struct svi_detector *d) {
    return d->run_novel && d->run >= d->o.confirm && d->run <= d->o.calibration;
}

/* Follows the run of suspicious samples; those held back count when it was none, or are dropped. */
static void follow_run(struct svi_detector *d) {
    const bool suspicious = d->ready && d->judgement.p <= d->o.clear;
    d->run = suspicious ? d->run + 1 : 0;
    d->run_novel = suspicious && (d->run_novel || d->judgement.novel);
    if (is_disturbance(d)) {
        d->held_out += d->held_count;
        d->held_count = 0;
    } else if (d->held_count > 0 && (!suspicious || d->held_count == d->o.confirm)) {
        release(d);
    }
}

static enum svi_lesson calibrate(struct svi_detector *d) {
    if (is_disturbance(d)) {
        d->held_out++;
        return SVI_LESSON_HELD_OUT;
    }
    if (d->run > 0)
        memcpy(d->held + (size_t)d->held_count++ * (size_t)d->o.d, d->x, (size_t)d->o.d * sizeof *d->x);
    else
        add_score(d, d->judgement.surprise, d->x);
    return SVI_LESSON_CALIBRATED;
}

static void renew_when_due(struct svi_detector *d) {
    const bool due = d->seen == d->next_renewal, look = d->seen == d->next_check;
    if (due) /* without a model nothing is judged: it is tried again soon */
        d->next_renewal += d->ready || d->points >= 2 ? d->next_renewal : FIRST_RENEWAL;
    if (look)
        d->next_check += d->o.calibration;
    if (due || (look && svi_detector_outgrown(d))) {
        svi_detector_renew(d);
        show_points(d);
    }
}

enum svi_lesson svi_detector_learn(svi_detector *d, bool labelled) {
    const bool may = may_learn(d, labelled);
    enum svi_lesson lesson = SVI_LESSON_REFUSED;
    d->seen++;
    if (!d->judgement.calibrates && may)
        lesson = learn(d); /* before scores of other samples take the place of this one's */
    follow_run(d);
    if (d->judgement.calibrates)
        lesson = calibrate(d);
    renew_when_due(d);
    return lesson;
}

/* ---- what others ask */

void svi_detector_explain(svi_detector *d, double *adds) {
    if (d->ready)
        svi_explain(&d->view, d->x, d->work, NULL, adds);
    else
        memset(adds, 0, (size_t)d->o.d * sizeof *adds);
}

double svi_detector_level(const svi_detector *d) {
    return d->ready ? -expm1(-svi_calibration_level(&d->calibration, d->o.p)) : 1;
}

void svi_detector_health(svi_detector *d, struct svi_detector_health *out) {
    *out = (struct svi_detector_health){.seen = d->seen,
                                        .joined = d->joined,
                                        .left = d->left,
                                        .renewals = d->renewals,
                                        .held_out = d->held_out,
                                        .points = d->points,
                                        .calibration = d->calibration.count,
                                        .members = d->members};
    for (int g = 0; g < d->members && d->ready; g++)
        out->violation = fmax(out->violation, svi_hull_violation(&d->hull[g]));
}

/* ---- more features */

static void spread(double *to, int wide, const double *from, int narrow, int lags, int64_t rows) {
    for (int64_t part = 0; part < rows * lags; part++)
        memcpy(to + part * wide, from + part * narrow, (size_t)narrow * sizeof *to);
}

svs_code svi_detector_widen(svi_detector **detector, int lags, int features, svs_error *err) {
    struct svi_detector *d = *detector;
    struct svi_detector_options o = d->o;
    const int narrow = d->o.d / lags;
    o.d = lags * features;
    struct svi_detector *w = svi_detector_new(&o, err);
    if (!w)
        return SVS_NO_MEMORY;
    const struct svi_calibration empty = w->calibration;
    w->calibration = d->calibration;
    d->calibration = empty;
    spread(w->rows, features, d->rows, narrow, lags, w->calibration.count);
    spread(w->raw, features, d->raw, narrow, lags, d->points);
    spread(w->held, features, d->held, narrow, lags, d->held_count);
    spread(w->candidate, features, d->candidate, narrow, lags, 1);
    memcpy(w->born, d->born, (size_t)d->points * sizeof *w->born);
    memcpy(w->used, d->used, (size_t)d->points * sizeof *w->used);
    memcpy(w->novel, d->novel, (size_t)d->novel_room);
    w->points = d->points;
    w->candidates = d->candidates;
    w->candidate_membership = d->candidate_membership;
    w->novel_count = d->novel_count;
    w->novel_sum = d->novel_sum;
    w->seen = d->seen;
    w->learned = d->learned;
    w->joined = d->joined;
    w->left = d->left;
    w->renewals = d->renewals;
    w->held_out = d->held_out;
    w->held_count = d->held_count;
    w->run = d->run;
    w->run_novel = d->run_novel;
    w->next_renewal = d->next_renewal;
    w->next_check = d->next_check;
    w->last_join = d->last_join;
    w->random = d->random;
    if (d->ready)
        svi_detector_renew(w);
    if (!w->ready) { /* so few points that there is no model: nothing is suspicious, either */
        w->held_count = 0;
        w->run = 0;
        w->run_novel = false;
    }
    svi_detector_free(detector);
    *detector = w;
    return SVS_OK;
}

void svi_detector_set_levels(svi_detector *d, double p, double clear) {
    d->o.p = p;
    d->o.clear = clear;
}
