/* Renewals of the detector: what is frozen between them is made anew from the calibration rows. */
#include <math.h>
#include <string.h>

#include "base/statistics.h"
#include "novelty/alert_text.h"
#include "novelty/detector_state.h"
#include "novelty/explain.h"

#define USUAL 200  /* calibration rows that tell what is usual of a feature, spread evenly */
#define PAIRS 512  /* of calibration rows, for the median distance */
#define LEAST 8    /* calibration rows, before there can be a model */
#define LOOK  64   /* calibration rows by which a renewal is found to be due */
#define AWAY  10.0 /* deviations from the center: when most of these rows lie further out, in one feature */

size_t svi_detector_work(const struct svi_detector_options *o, int stride) {
    const size_t rows = (size_t)o->calibration > PAIRS ? (size_t)o->calibration : PAIRS;
    const size_t explain = 3 * (size_t)stride + (size_t)o->model.max + 8;
    const size_t renew = rows * (SVS_MEMBERS_MAX + 2) + 2 * (size_t)stride;
    return explain > renew ? explain : renew;
}

static const double *row(const struct svi_detector *d, int place) {
    return d->rows + (size_t)place * (size_t)d->o.d;
}

/* Over pairs of calibration rows; equal ones are passed over. */
static double median_gamma(struct svi_detector *d) {
    const uint32_t count = (uint32_t)d->calibration.count;
    double *a = d->work, *b = a + d->stride, *gaps = b + d->stride;
    int found = 0;
    for (int i = 0; i < PAIRS; i++) {
        svi_coordinates_apply(&d->coordinates, row(d, (int)svi_random_below(&d->random, count)), a);
        svi_coordinates_apply(&d->coordinates, row(d, (int)svi_random_below(&d->random, count)), b);
        const struct svi_points p = {a, d->stride, 1};
        svi_similarity_gap(&d->similarity, &p, 0, 1, b, &gaps[found]);
        found += gaps[found] > 0;
    }
    return svi_gamma_of_gaps(gaps, found);
}

static double scale_gamma(struct svi_detector *d) {
    struct svi_moments m = {0};
    double *u = d->work;
    for (int i = 0; i < d->calibration.count && i < PAIRS; i++) {
        svi_coordinates_apply(&d->coordinates, row(d, i), u);
        for (int j = 0; j < d->o.d; j++)
            svi_moments_add(&m, u[j]);
    }
    return svi_gamma_of_spread(&m, d->o.d);
}

static double base_gamma(struct svi_detector *d) {
    const svs_novelty_options *o = &d->o.model;
    if (o->gamma_rule == SVS_GAMMA_GIVEN)
        return o->gamma;
    if (o->gamma_rule == SVS_GAMMA_SCALE || o->kernel == SVS_NOVELTY_POLYNOMIAL)
        return scale_gamma(d);
    return median_gamma(d);
}

void svi_detector_place(struct svi_detector *d) {
    for (int i = 0; i < d->points; i++) {
        double *at = d->at + (size_t)i * (size_t)d->stride;
        svi_coordinates_apply(&d->coordinates, d->raw + (size_t)i * (size_t)d->o.d, at);
        d->norm2[i] = d->similarity.pass->dot(at, at, d->stride);
    }
}

static void solve_member(struct svi_detector *d, int g) {
    struct svi_hull *h = &d->hull[g];
    svi_hull_empty(h);
    for (int i = 0; i < d->points; i++) {
        const struct svi_points before = {d->at, d->stride, i};
        svi_similarity_gap(&d->similarity, &before, 0, i, d->at + (size_t)i * (size_t)d->stride, d->gap);
        svi_similarity_of_gap(&d->similarity, d->view.member[g].gamma, d->gap, d->norm2, d->norm2[i], i,
                              d->kernel);
        d->kernel[i] = 1;
        svi_hull_add(h, d->kernel);
    }
    svi_hull_solve(h);
}

/* Of the lower part of a member's surprises, those that trimming would leave. */
static double spread(double *scratch, const double *values, int count, double trim) {
    const int kept = count - (int)(trim * count);
    memcpy(scratch, values, (size_t)count * sizeof *values);
    svi_select_rank(scratch, count, kept - 1);
    return fmax(svi_deviation(scratch, kept), 1e-6);
}

/* Scores every calibration row afresh; the members' shares come from the same scores. */
static void rescore(struct svi_detector *d) {
    const int count = d->calibration.count;
    double *u = d->work, *surprise = u + d->stride, *scratch = surprise + (size_t)d->members * (size_t)count;
    double each[SVS_MEMBERS_MAX], sum = 0;
    for (int i = 0; i < count; i++) {
        svi_coordinates_apply(&d->coordinates, row(d, i), u);
        svi_detector_score(d, u, each);
        for (int g = 0; g < d->members; g++)
            surprise[(size_t)g * (size_t)count + (size_t)i] = each[g];
    }
    for (int g = 0; g < d->members; g++) {
        double *share = &d->view.member[g].share;
        *share = 1 / spread(scratch, surprise + (size_t)g * (size_t)count, count, d->o.model.trim);
        sum += *share;
    }
    for (int g = 0; g < d->members; g++)
        d->view.member[g].share /= sum;
    for (int i = 0; i < count; i++) {
        scratch[i] = 0;
        for (int g = 0; g < d->members; g++)
            scratch[i] += d->view.member[g].share * surprise[(size_t)g * (size_t)count + (size_t)i];
        scratch[i] = svi_detector_round(scratch[i]);
    }
    svi_calibration_replace(&d->calibration, scratch);
}

void svi_detector_show(struct svi_detector *d) {
    svs_novelty_model *v = &d->view;
    v->d = d->o.d;
    v->stride = d->stride;
    v->center = d->coordinates.center;
    v->inverse = d->coordinates.inverse;
    v->kernel = d->o.model.kernel;
    v->degree = d->o.model.degree;
    v->fosvm = d->o.model.fosvm;
    v->theta = d->o.model.theta;
    v->members = d->members;
    for (int g = 0; g < d->members; g++) {
        v->member[g].count = d->points;
        v->member[g].support = d->at;
        v->member[g].norm2 = d->norm2;
        v->member[g].z = d->hull[g].z;
        v->member[g].rho = svi_hull_rho(&d->hull[g]);
    }
}

void svi_detector_renew(struct svi_detector *d) {
    double multiples[SVS_MEMBERS_MAX];
    if (d->calibration.count < LEAST || d->points < 2)
        return;
    svi_coordinates_fit(&d->coordinates, d->rows, d->o.d, d->calibration.count, d->work);
    const double gamma = base_gamma(d);
    svi_gamma_multiples(&d->o.model, multiples);
    svi_detector_place(d);
    for (int g = 0; g < d->members; g++) {
        d->view.member[g].gamma = gamma * multiples[g];
        d->view.member[g].share = 1.0 / d->members;
        solve_member(d, g);
    }
    svi_detector_show(d);
    rescore(d);
    d->ready = true;
    d->renewals++;
}

bool svi_detector_outgrown(struct svi_detector *d) {
    const struct svi_coordinates *c = &d->coordinates;
    if (!d->ready || !c->center || d->calibration.count < LOOK)
        return false;
    for (int j = 0; j < d->o.d; j++) {
        int away = 0;
        for (int i = 0; i < LOOK; i++) { /* the newest ones */
            const int place = (d->calibration.at - 1 - i + d->calibration.room) % d->calibration.room;
            away += fabs(row(d, place)[j] - c->center[j]) * c->inverse[j] > AWAY;
        }
        if (2 * away > LOOK)
            return true;
    }
    return false;
}

void svi_detector_usual(svi_detector *d, int feature, double *low, double *high) {
    const int held = d->calibration.count, count = held < USUAL ? held : USUAL;
    for (int i = 0; i < count; i++)
        d->work[i] = row(d, (int)((int64_t)i * held / count))[feature];
    svi_usual_range(d->work, count, low, high);
}
