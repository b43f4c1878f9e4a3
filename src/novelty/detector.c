/* A detector holds one pool of points (raw values, coordinates) and, for each member, the small problem over
 * them (active_set.h). A sample passes in two calls: svi_detector_assess scores it and takes its p-value from
 * the calibration; svi_detector_learn counts it, then lets it join the pool, calibrate, or neither.
 *
 * Invariants: point i is the same in every member's problem; row i of `rows` is the sample whose score has
 * place i in the calibration's ring; `view` is a model (novelty_model.h) whose pointers lead into the
 * detector. While there is no model (`ready` is false) nothing is suspicious, and every p is 1.
 *
 * Coordinates, gammas, shares and scores are frozen until a refresh derives them from the calibration rows.
 * Nothing reads a clock, and no sample allocates: svi_detector_reserve does so before it. The arrays that a
 * sample works on lie in one block, owned or in shared scratch. Archives store matrices and factors as they
 * are, because their last bits depend on the order in which points joined.
 *
 * Order: memory, assessment, points, refreshes, learning, queries, more and renewed features, archive. */
#include "novelty/detector.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cblas.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "base/statistics.h"
#include "novelty/lags.h"
#include "novelty/novelty_model.h"

#define FIRST_REFRESH 32
#define PAIRS         512  /* pairs of calibration rows for the median distance */
#define MIN_ROWS      8    /* calibration rows that a model needs */
#define CHECK_ROWS    64   /* newest calibration rows that decide whether a refresh is due */
#define AWAY          10.0 /* deviations from the center at which a value has left its coordinates */
#define SHRINK        0.8  /* least factor by which a refresh may shrink a feature's scale */
#define TRIM_ONE_IN   4    /* at most one point in TRIM_ONE_IN */

/* ---- slices of a refresh: how many of each kind, in this order */

enum slice_kind {
    SLICE_FEATURES,
    SLICE_GAMMA,
    SLICE_POINTS,
    SLICE_SOLVE,
    SLICE_ROWS,
    SLICE_TAKE,
    SLICE_KINDS
};

/* The work of one slice. A solution takes little more than one step per point. */
#define FEATURE_SLICES                                                                                       \
    16 /* whatever the number of columns, so that spare ones do not change the schedule                      \
        */
#define POINTS_A_SLICE 64
#define STEPS_A_SLICE  16
#define ROWS_A_SLICE   128
#define AT_ONCE        64 /* up to this many calibration rows a refresh runs in one piece */

/* Slices of one member's solution; the last one runs to its end. */
static int detector_solve_slices(int points) {
    return (points + points / 4) / STEPS_A_SLICE + 2;
}

/* Slices of one kind; the gamma and the final shares are a single slice each. */
static int64_t detector_slices_of(enum slice_kind kind, int members, int points, int64_t rows) {
    switch (kind) {
    case SLICE_FEATURES:
        return FEATURE_SLICES;
    case SLICE_POINTS:
        return (points + POINTS_A_SLICE - 1) / POINTS_A_SLICE;
    case SLICE_SOLVE:
        return (int64_t)members * detector_solve_slices(points);
    case SLICE_ROWS:
        return (rows + ROWS_A_SLICE - 1) / ROWS_A_SLICE;
    default:
        return 1;
    }
}

static int64_t detector_slices(int members, int points, int64_t rows) {
    int64_t sum = 0;
    for (int kind = 0; kind < SLICE_KINDS; kind++)
        sum += detector_slices_of((enum slice_kind)kind, members, points, rows);
    return sum;
}

static bool detector_renewing(const struct svi_detector *d) {
    return d->renewal && d->renewal->on;
}

/* Calibration rows that can change during a refresh, at most: one per two samples, and those of a run that
 * were held back before it and within it. */
static int detector_changes(const struct svi_detector_options *o, int members) {
    const int64_t slices = detector_slices(members, o->model.max, o->calibration);
    const int64_t most = slices / 2 + 2 + 2 * (int64_t)o->confirm;
    return (int)(most < o->calibration ? most : o->calibration);
}

/* ---- arrays, by lifetime: points and rows grow, the run follows confirm and persist, the others form a
 * block */

enum { POINTS, ROWS, LAGS, FEATURES, STRIDE, FULL, CONFIRM, FLAGS, PACKED, WORK, MEMBERS, CHANGES, DIMS };

#define A_ROW SVI_AXIS(LAGS), SVI_AXIS(FEATURES)

static const struct svi_array of_points[] = {
    SVI_ARRAY(struct svi_detector, raw, NULL, SVI_AXIS(POINTS), A_ROW),
    SVI_ARRAY(struct svi_detector, packed, NULL, SVI_AXIS(PACKED)),
    SVI_ARRAY(struct svi_detector, born, NULL, SVI_AXIS(POINTS)),
    SVI_ARRAY(struct svi_detector, used, NULL, SVI_AXIS(POINTS)),
    SVI_ARRAY(struct svi_detector, candidate, NULL, A_ROW),
    SVI_ARRAY(struct svi_detector, category, NULL, A_ROW),
};
static const struct svi_array of_rows[] = {
    SVI_ARRAY(struct svi_detector, rows, NULL, SVI_AXIS(ROWS), A_ROW),
};
static const struct svi_array of_run[] = {
    SVI_ARRAY(struct svi_detector_prepared, held, NULL, SVI_AXIS(CONFIRM), A_ROW),
    SVI_ARRAY(struct svi_detector_prepared, novel, NULL, SVI_AXIS(FLAGS)),
};
static const struct svi_array of_model[] = {
    SVI_ARRAY(struct svi_detector_model, at, NULL, SVI_AXIS(FULL), SVI_AXIS(STRIDE)),
    SVI_ARRAY(struct svi_detector_model, norm2, NULL, SVI_AXIS(FULL)),
};
static const struct svi_array of_sample[] = {
    SVI_ARRAY(struct svi_detector, gap, NULL, SVI_AXIS_PLUS(FULL, 1)),
    SVI_ARRAY(struct svi_detector, kernel, NULL, SVI_AXIS_PLUS(FULL, 1)),
    SVI_ARRAY(struct svi_detector, u, NULL, SVI_AXIS(STRIDE)),
    SVI_ARRAY(struct svi_detector, x, NULL, A_ROW),
    SVI_ARRAY(struct svi_detector, work, NULL, SVI_AXIS(WORK)),
};
static const struct svi_array of_renewal[] = {
    SVI_ARRAY(struct svi_renewal, surprise, NULL, SVI_AXIS(MEMBERS), SVI_AXIS(ROWS)),
    SVI_ARRAY(struct svi_renewal, old, NULL, SVI_AXIS(CHANGES), A_ROW),
    SVI_ARRAY(struct svi_renewal, place, NULL, SVI_AXIS(CHANGES)),
};
static const struct svi_arrays points_arrays = SVI_ARRAYS(of_points, "the novelty detector"),
                               rows_arrays = SVI_ARRAYS(of_rows, "the novelty detector"),
                               run_arrays = SVI_ARRAYS(of_run, "the novelty detector"),
                               model_arrays = SVI_ARRAYS_ALIGNED(of_model, "the novelty detector"),
                               sample_arrays = SVI_ARRAYS_ALIGNED(of_sample, "the novelty detector"),
                               renewal_arrays = SVI_ARRAYS_ALIGNED(of_renewal, "the novelty detector");

struct detector_dims {
    int32_t of[DIMS];
};

/* Doubles in `work`: the larger need of an explanation and of a refresh. */
static int detector_work(const struct svi_detector_options *o, int stride) {
    const int rows = o->calibration > PAIRS ? o->calibration : PAIRS;
    const int explain = 3 * stride + o->model.max + 8;
    const int renew = rows * (SVS_MEMBERS_MAX + 2) + 2 * stride;
    return explain > renew ? explain : renew;
}

/* Capacity of the ring of flags for `persistent`. */
static int64_t detector_flags(const struct svi_detector_options *o) {
    return o->persist + o->persist / 4;
}

/* Doubles in `packed`: the set of each member, then the squared lengths. */
static int detector_packed(int members, int points) {
    return members * (int)svi_active_set_packed(points) + points;
}

/* Lengths of all arrays, for a number of points and rows that have capacity. `lags` only matters when rows
 * are copied to wider ones: FEATURES is the width of one part. */
static struct detector_dims detector_dims(const struct svi_detector_options *o, int points, int rows,
                                          int lags) {
    double multiples[SVS_MEMBERS_MAX];
    const int members = svi_gamma_multiples(&o->model, multiples), stride = svi_round_up(o->d, 8);
    return (struct detector_dims){{[POINTS] = points,
                                   [ROWS] = rows,
                                   [LAGS] = lags,
                                   [FEATURES] = o->d / lags,
                                   [STRIDE] = stride,
                                   [FULL] = o->model.max,
                                   [CONFIRM] = o->confirm,
                                   [FLAGS] = (int32_t)detector_flags(o) + 1,
                                   [PACKED] = o->shared ? detector_packed(members, points) : 0,
                                   [WORK] = detector_work(o, stride),
                                   [MEMBERS] = members,
                                   [CHANGES] = detector_changes(o, members)}};
}

/* ---- the block of working arrays: owned, or in shared scratch
 *
 * Only one detector's arrays can be in a shared scratch. The state of the former one is packed when another
 * claims it; what can be recomputed bit for bit (coordinates of points) is not packed. */

/* Doubles that arrays take in the block, rounded up to 64 bytes so that what follows is aligned. */
static size_t detector_part(const struct svi_arrays *a, const struct detector_dims *dims) {
    return (svi_arrays_bytes(a, dims->of) + 63) / 64 * 8;
}

static size_t detector_model_part(const struct detector_dims *dims) {
    return detector_part(&model_arrays, dims) +
           (size_t)dims->of[MEMBERS] * svi_active_set_block(dims->of[FULL]);
}

/* Doubles in the block. Shared scratch has no part for a refresh in slices: such detectors refresh at
 * once. */
static size_t detector_block(const struct svi_detector_options *o) {
    const struct detector_dims dims = detector_dims(o, o->model.max, o->calibration, 1);
    const size_t sample = detector_model_part(&dims) + detector_part(&sample_arrays, &dims);
    return o->shared ? sample : sample + detector_model_part(&dims) + detector_part(&renewal_arrays, &dims);
}

/* Lays a model out at `block`; returns what follows it. */
static double *detector_place_model(struct svi_detector_model *m, const struct detector_dims *dims,
                                    double *block) {
    svi_arrays_place(&model_arrays, m, block, dims->of);
    block += detector_part(&model_arrays, dims);
    for (int g = 0; g < dims->of[MEMBERS]; g++, block += svi_active_set_block(dims->of[FULL]))
        svi_active_set_place(&m->set[g], dims->of[FULL], block);
    return block;
}

/* Sets every pointer into the block. */
static void detector_lay_out(struct svi_detector *d, double *block) {
    const struct detector_dims dims = detector_dims(&d->o, d->o.model.max, d->o.calibration, 1);
    block = detector_place_model(&d->m, &dims, block);
    svi_arrays_place(&sample_arrays, d, block, dims.of);
    if (!d->renewal)
        return;
    block = detector_place_model(&d->renewal->next, &dims, block + detector_part(&sample_arrays, &dims));
    svi_arrays_place(&renewal_arrays, d->renewal, block, dims.of);
}

/* Called when another detector claims the scratch: packs what cannot be recomputed. Without a model there is
 * nothing to keep. */
static void detector_pack(void *detector) {
    struct svi_detector *d = detector;
    double *to = d->packed;
    d->in = false;
    if (!d->ready)
        return;
    for (int g = 0; g < d->members; g++, to += svi_active_set_packed(d->now.points))
        svi_active_set_pack(&d->m.set[g], to, false);
    memcpy(to, d->m.norm2, (size_t)d->now.points * sizeof *to);
}

static void detector_show_model(struct svi_detector *d);

/* Brings the arrays into place. Claiming makes the former user pack its state into its own memory; then the
 * pointers are set and this detector's state is unpacked. */
void svi_detector_claim_scratch(svi_detector *d) {
    double *from = d->packed;
    /* Already in place: the common case, as a detector usually works on many samples in a row. */
    if (d->in)
        return;
    if (!d->own)
        (void)svi_shared_scratch_claim(d->o.shared, d, detector_pack);
    d->in = true;
    double *block = d->own ? d->own : d->o.shared->at;
    const bool elsewhere =
        d->m.at != block; /* sizes never change, so the same address means the same layout */
    if (elsewhere)
        detector_lay_out(d, block);
    if (!d->ready)
        return;
    /* The order of detector_pack: sets, then squared lengths. Coordinates are recomputed from the raw
     * points. */
    for (int g = 0; g < d->members; g++, from += svi_active_set_packed(d->now.points))
        svi_active_set_pack(&d->m.set[g], from, true);
    for (int i = 0; i < d->now.points; i++)
        svi_coordinates_apply(&d->m.coordinates, d->raw + (size_t)i * (size_t)d->o.d,
                              d->m.at + (size_t)i * (size_t)d->stride);
    memcpy(d->m.norm2, from, (size_t)d->now.points * sizeof *from);
    if (elsewhere)
        detector_show_model(d);
}

void svi_detector_release_scratch(svi_detector *d) {
    if (d->in && !d->own)
        svi_shared_scratch_release(d->o.shared);
}

/* The new scratch is reserved before the old one is given up, so that a failure changes nothing. */
svs_code svi_detector_use_scratch(svi_detector *d, struct svi_shared_scratch *scratch, svs_error *err) {
    if (d->own || d->o.shared == scratch)
        return SVS_OK;
    SVI_TRY(svi_shared_scratch_reserve(scratch, detector_block(&d->o), err));
    svi_detector_release_scratch(d);
    d->o.shared = scratch;
    return SVS_OK;
}

/* ---- life */

/* The shared scratch is not owned: it only forgets the detector. */
void svi_detector_free(svi_detector **detector) {
    struct svi_detector *d = *detector;
    if (!d)
        return;
    svi_coordinates_clear(&d->m.coordinates);
    svi_calibration_clear(&d->calibration);
    svi_range_clear(&d->range);
    svi_arrays_free(&points_arrays, d);
    svi_arrays_free(&rows_arrays, d);
    svi_arrays_free(&run_arrays, &d->run);
    if (d->renewal)
        svi_coordinates_clear(&d->renewal->next.coordinates);
    svi_free(d->renewal);
    if (d->in && !d->own)
        svi_shared_scratch_disown(d->o.shared, d);
    svi_free(d->own);
    svi_free(d);
    *detector = NULL;
}

/* Capacity for that many points and calibration rows, up to what the options allow. Points grow in steps of
 * 8; rows by a quarter, so that a growing calibration is not copied for every sample. After a failure
 * everything has at least its former capacity. */
static svs_code detector_reserve(struct svi_detector *d, int points, int rows, svs_error *err) {
    const int grown = d->rows_capacity + d->rows_capacity / 4 + 8, rounded = (points + 7) / 8 * 8;
    points = rounded < d->o.model.max ? rounded : d->o.model.max;
    points = points > d->point_capacity ? points : d->point_capacity;
    rows = rows <= d->rows_capacity ? d->rows_capacity : rows > grown ? rows : grown;
    rows = rows < d->o.calibration ? rows : d->o.calibration;
    if (points == d->point_capacity && rows == d->rows_capacity)
        return SVS_OK;
    const struct detector_dims from = detector_dims(&d->o, d->point_capacity, d->rows_capacity, 1),
                               to = detector_dims(&d->o, points, rows, 1);
    /* The capacity of points is updated at once: if a later part fails, what has grown is known. */
    svs_code code = svi_arrays_resize(&points_arrays, d, from.of, to.of, err);
    if (code != SVS_OK)
        return code;
    d->point_capacity = points;
    d->m.coordinates.category = d->m.coordinates.category ? d->category : NULL; /* the array has moved */
    code = svi_calibration_reserve(&d->calibration, rows, err);
    if (code == SVS_OK)
        code = svi_range_reserve(&d->range, rows, err);
    if (code == SVS_OK)
        code = svi_arrays_resize(&rows_arrays, d, from.of, to.of, err);
    d->rows_capacity = code == SVS_OK ? rows : d->rows_capacity;
    return code;
}

/* The next sample may add one point, or one calibration row besides those that are held back. */
bool svi_detector_is_full(const svi_detector *d) {
    return (d->now.points >= d->point_capacity && d->point_capacity < d->o.model.max) ||
           (d->calibration.ring.filled + d->now.held_count >= d->rows_capacity &&
            d->rows_capacity < d->o.calibration);
}

svs_code svi_detector_reserve(svi_detector *d, int more, svs_error *err) {
    return detector_reserve(d, d->now.points + more + 1,
                            d->calibration.ring.filled + d->now.held_count + more + 1, err);
}

/* Allocates an own block and everything that a refresh in slices needs. */
static svs_code detector_alloc_own(struct svi_detector *d, svs_error *err) {
    d->own = svi_alloc_array(detector_block(&d->o), sizeof *d->own);
    d->renewal = svi_alloc(sizeof *d->renewal);
    if (!d->own || !d->renewal)
        return svi_fail_memory(err, "the novelty detector");
    d->renewal->capacity = detector_changes(&d->o, d->members);
    return svi_coordinates_init(&d->renewal->next.coordinates, d->o.d, d->o.model.scale, err);
}

/* Rows that a range covers at least. Every second sample is learned and every second calibrates, hence 2. */
static int64_t detector_span(const struct svi_detector_options *o) {
    const int64_t most = 2 * (o->window > o->calibration ? o->window : o->calibration);
    return o->window == 0 ? 0 : most < SVI_RANGE_ROWS ? SVI_RANGE_ROWS : most;
}

/* Without shared scratch everything has its final size at once; otherwise points and rows start small and
 * grow. */
svi_detector *svi_detector_new(const struct svi_detector_options *o, svs_error *err) {
    double multiples[SVS_MEMBERS_MAX];
    struct svi_detector *d = svi_alloc(sizeof *d);
    if (!d) {
        svi_fail_memory(err, "the novelty detector");
        return NULL;
    }
    d->o = *o;
    /* m samples miss the worst epsilon part with probability e^(-m epsilon) = 5 %. */
    if (d->o.model.m == 0)
        d->o.model.m = (int64_t)ceil(log(20) / d->o.model.epsilon);
    d->members = svi_gamma_multiples(&o->model, multiples);
    d->m.similarity = svi_similarity_of(o->model.kernel, o->model.degree, o->d);
    d->stride = svi_round_up(o->d, 8);
    const struct detector_dims dims = detector_dims(o, 0, 0, 1);
    const int points = o->shared ? 1 : o->model.max, rows = o->shared ? 1 : o->calibration;
    if (svi_coordinates_init(&d->m.coordinates, o->d, o->model.scale, err) != SVS_OK ||
        svi_arrays_alloc(&run_arrays, &d->run, dims.of, err) != SVS_OK ||
        svi_calibration_init(&d->calibration, o->calibration, 0, err) != SVS_OK ||
        svi_range_init(&d->range, o->d, 1, detector_span(o), err) != SVS_OK ||
        detector_reserve(d, points, rows, err) != SVS_OK ||
        (o->shared ? svi_shared_scratch_reserve(o->shared, detector_block(o), err)
                   : detector_alloc_own(d, err)) != SVS_OK) {
        svi_detector_free(&d);
        return NULL;
    }
    d->m.coordinates.fill = o->model.kernel == SVS_NOVELTY_POLYNOMIAL;
    svi_detector_reset(d);
    return d;
}

void svi_detector_reset(svi_detector *d) {
    svi_detector_claim_scratch(d);
    svi_calibration_empty(&d->calibration);
    svi_range_empty(&d->range);
    for (int g = 0; g < d->members; g++)
        svi_active_set_empty(&d->m.set[g]);
    memset(d->category, 0, (size_t)d->o.d * sizeof *d->category);
    d->m.coordinates.category = NULL;
    d->ready = false;
    if (d->renewal)
        d->renewal->on = false;
    d->m.lacking = 0;
    /* A last join in the distant past lets the first point join a full pool at once; half of INT64_MIN, so
     * that differences cannot overflow. */
    d->now = (struct svi_detector_state){.last_join = INT64_MIN / 2,
                                         .next_refresh = FIRST_REFRESH,
                                         .next_check = d->o.calibration,
                                         .random = {d->o.model.seed}};
    d->judgement = (struct svi_judgement){.membership = 1, .p = 1, .tail = 1, .extreme = 1};
}

double svi_detector_memory(const struct svi_detector_options *o) {
    const struct detector_dims dims = detector_dims(o, o->model.max, o->calibration, 1);
    const double coordinates = svi_coordinates_memory(o->d);
    const double bytes =
        sizeof(struct svi_detector) + coordinates + svi_calibration_memory(o->calibration) +
        svi_range_memory(o->d, o->calibration) +
        (double)(svi_arrays_bytes(&points_arrays, dims.of) + svi_arrays_bytes(&rows_arrays, dims.of) +
                 svi_arrays_bytes(&run_arrays, dims.of));
    return o->shared ? bytes
                     : bytes + sizeof(struct svi_renewal) + coordinates +
                           (double)detector_block(o) * sizeof(double);
}

/* ---- assessment */

/* Is the present run a disturbance? It contains a novel sample and has lasted `confirm` samples. Once it has
 * lasted as many samples as the calibration holds, it is the new normal. */
static bool detector_in_disturbance(const struct svi_detector *d) {
    return d->now.run_novel && d->now.run >= d->o.confirm && d->now.run <= d->o.calibration;
}

/* Rounds a surprise to 2^-30, about 1e-9, and never to -0. Where states repeat, scores that differ by
 * rounding of the last solution would not tie, and a common state could get a small p. NaN becomes infinite:
 * a score that cannot be computed counts as surprising. */
static double detector_round(double surprise) {
    return isnan(surprise) ? INFINITY : rint(surprise * 0x1p30) * 0x1p-30 + 0.0;
}

/* The number of members from g on whose gammas grow by factors of 4. Their kernel values are fourth powers of
 * the ones before, so one pass with one exponential serves all of them. */
static int detector_powers(const struct svi_detector *d, int g) {
    const svs_novelty_member *m = d->m.view.member;
    int count = 1;
    while (g + count < d->members && count < SVI_DECAY_MAX &&
           m[g + count].gamma == 4 * m[g + count - 1].gamma)
        count++;
    return count;
}

/* Surprises of `count` members from g on: -log of the membership, or from distances where that underflows. */
static void detector_member_scores(struct svi_detector *d, int g, int count, double *surprise) {
    const double *z[SVI_DECAY_MAX];
    double membership[SVI_DECAY_MAX];
    for (int i = 0; i < count; i++)
        z[i] = d->m.set[g + i].z;
    d->m.similarity.pass->decay_dots(d->gap, d->m.view.member[g].gamma, d->now.points, z, count, membership);
    for (int i = 0; i < count; i++)
        surprise[i] = membership[i] > SVI_FAINT ? -log(membership[i])
                                                : svi_similarity_surprise(d->m.view.member[g + i].gamma,
                                                                          d->gap, z[i], d->now.points);
}

/* The surprise of the only member of a polynomial model. d->gap holds products here. */
static double detector_polynomial_score(struct svi_detector *d, const double *u) {
    const struct svi_active_set *h = &d->m.set[0];
    const double own = d->m.similarity.pass->dot(u, u, d->stride);
    svi_similarity_of_gap(&d->m.similarity, d->m.view.member[0].gamma, d->gap, d->m.norm2, own, d->now.points,
                          d->kernel);
    return -log(fmax(d->now.points > 0 ? cblas_ddot(d->now.points, h->z, 1, d->kernel, 1) : 0, SVI_FAINT));
}

/* Scores raw values: fills member_surprise, and as a side effect d->u (coordinates), d->gap and for
 * polynomials d->kernel, which learning reads. Returns the weighted mean, rounded. */
static double detector_score(struct svi_detector *d, const double *raw, double *member_surprise) {
    const struct svi_points points = {d->m.at, d->stride, d->now.points, d->m.lacking > 0};
    double surprise = 0;
    /* Gaps once for all members; the members' kernels differ in gamma alone. */
    svi_coordinates_apply(&d->m.coordinates, raw, d->u);
    svi_similarity_gap(&d->m.similarity, &points, 0, d->now.points, d->u, d->gap);
    if (d->m.similarity.kernel == SVS_NOVELTY_POLYNOMIAL)
        member_surprise[0] = detector_polynomial_score(d, d->u);
    else
        for (int g = 0, count = 0; g < d->members; g += count) {
            count = detector_powers(d, g);
            detector_member_scores(d, g, count, member_surprise + g);
        }
    for (int g = 0; g < d->members; g++)
        surprise += d->m.view.member[g].share * member_surprise[g];
    return detector_round(surprise);
}

/* Are all values of the sample missing? Spare columns are 0 and do not count. */
static bool detector_is_unknown(const struct svi_detector *d, const double *x) {
    const int missing = svi_count_missing(x, d->o.d);
    return missing > 0 && missing == d->m.similarity.columns;
}

void svi_detector_set_columns(svi_detector *d, int columns) {
    d->m.similarity.columns = columns;
}

void svi_detector_assess(svi_detector *d, const double *x, struct svi_judgement *out) {
    struct svi_judgement *j = &d->judgement;
    svi_detector_claim_scratch(d);
    /* The row is copied: learning, which follows, works on it. */
    memcpy(d->x, x, (size_t)d->o.d * sizeof *x);
    *j = (struct svi_judgement){.membership = 1,
                                .p = 1,
                                .tail = 1,
                                .extreme = 1,
                                .unknown = detector_is_unknown(d, x),
                                .calibrates = d->now.seen % 2 == 1};
    if (d->ready && !j->unknown) {
        j->surprise = detector_score(d, d->x, d->member_surprise);
        j->membership = exp(-j->surprise);
        j->novelty = -expm1(-j->surprise);
        /* p orders by excess first, so the excess is needed before the place among the calibration rows. */
        j->excess = svi_range_excess(&d->range, d->x, &j->feature);
        j->p = svi_range_place(&d->range, &d->calibration, d->rows, d->x, j->surprise, j->excess, &j->above);
        j->scores = d->calibration.ring.filled;
        j->disturbed = detector_in_disturbance(d);
        /* Both estimates continue p below 1 / (1 + count); `extreme` also with fewer than SVI_TAIL_MIN_SCORES
         * scores. */
        j->tail = fmin(j->p, svi_calibration_tail(&d->calibration, j->surprise));
        j->extreme = d->calibration.ring.filled >= SVI_TAIL_MIN_SCORES
                         ? j->tail
                         : fmin(j->p, svi_calibration_tail_early(&d->calibration, j->surprise));
        j->novel = j->p <= d->o.p;
    }
    *out = *j;
}

/* Scores like svi_detector_assess but leaves d->judgement and d->x alone. It overwrites member_surprise and
 * the gaps, which learning reads, so it must not be called between svi_detector_assess and
 * svi_detector_learn. */
bool svi_detector_peek(svi_detector *d, const double *x, double *novelty, double *p) {
    if (!d->ready)
        return false;
    svi_detector_claim_scratch(d);
    *novelty = 0;
    *p = 1;
    if (detector_is_unknown(d, x))
        return true;
    const double surprise = detector_score(d, x, d->member_surprise);
    *novelty = -expm1(-surprise);
    *p = svi_range_place(&d->range, &d->calibration, d->rows, x, surprise,
                         svi_range_excess(&d->range, x, NULL), NULL);
    return true;
}

/* ---- points, and the model that they form */

/* Computes the coordinates and squared length of point i from its raw values; NaN lengths are counted. */
static void detector_place_point(struct svi_detector *d, int i) {
    double *at = d->m.at + (size_t)i * (size_t)d->stride;
    svi_coordinates_apply(&d->m.coordinates, d->raw + (size_t)i * (size_t)d->o.d, at);
    d->m.norm2[i] = d->m.similarity.pass->dot(at, at, d->stride);
    d->m.lacking += isnan(d->m.norm2[i]) != 0;
}

/* Adds point i to every member's small problem, whose points are 0 .. i - 1. It stays idle until the next
 * solve. Gaps are computed once, kernel values per member. */
static void detector_insert(struct svi_detector *d, int i) {
    detector_place_point(d, i);
    const struct svi_points before = {d->m.at, d->stride, i, d->m.lacking > 0};
    svi_similarity_gap(&d->m.similarity, &before, 0, i, d->m.at + (size_t)i * (size_t)d->stride, d->gap);
    for (int g = 0; g < d->members; g++) {
        svi_similarity_of_gap(&d->m.similarity, d->m.view.member[g].gamma, d->gap, d->m.norm2, d->m.norm2[i],
                              i, d->kernel);
        d->kernel[i] = 1;
        svi_active_set_add(&d->m.set[g], d->kernel);
    }
}

/* Points the view of a member to its arrays. */
static void detector_show_member(struct svi_detector *d, int g) {
    svs_novelty_member *m = &d->m.view.member[g];
    m->count = d->now.points;
    m->support = d->m.at;
    m->norm2 = d->m.norm2;
    m->z = d->m.set[g].z;
}

/* Solves every member's small problem. */
/* Solves every member's small problem and updates the view, whose number of points may have changed. */
static void detector_solve(struct svi_detector *d) {
    for (int g = 0; g < d->members; g++) {
        svi_active_set_solve(&d->m.set[g]);
        detector_show_member(d, g);
    }
}

/* Points the whole view to the present model. */
static void detector_show_model(struct svi_detector *d) {
    svs_novelty_model *v = &d->m.view;
    d->m.similarity.nothing = svi_gap_of_nothing(d->o.model.kernel, d->members, v->member[0].gamma);
    v->d = d->o.d;
    v->stride = d->stride;
    v->center = d->m.coordinates.center;
    v->inverse = d->m.coordinates.inverse;
    v->kernel = d->o.model.kernel;
    v->degree = d->o.model.degree;
    v->members = d->members;
    for (int g = 0; g < d->members; g++)
        detector_show_member(d, g);
}

/* ---- refreshes: rebuild what is frozen in between from the calibration rows */

/* The raw row whose score has this place in the calibration's ring. */
static const double *detector_calibration_row(const struct svi_detector *d, int place) {
    return d->rows + (size_t)place * (size_t)d->o.d;
}

/* 1 over the median distance of random pairs of calibration rows; equal rows are skipped, since repeated
 * states would make the median 0. */
static double detector_median_gamma(struct svi_detector *d) {
    const uint32_t count = (uint32_t)d->calibration.ring.filled;
    double *a = d->work, *b = a + d->stride, *gaps = b + d->stride;
    int found = 0;
    d->m.similarity.nothing = 0; /* so pairs without a common coordinate have gap 0 and are skipped too */
    /* The generator is part of the state, so the pairs are the same after a restart. */
    for (int i = 0; i < PAIRS; i++) {
        svi_coordinates_apply(&d->m.coordinates,
                              detector_calibration_row(d, (int)svi_random_below(&d->now.random, count)), a);
        svi_coordinates_apply(&d->m.coordinates,
                              detector_calibration_row(d, (int)svi_random_below(&d->now.random, count)), b);
        const struct svi_points p = {a, d->stride, 1, svi_count_missing(a, d->o.d) > 0};
        svi_similarity_gap(&d->m.similarity, &p, 0, 1, b, &gaps[found]);
        found += gaps[found] > 0;
    }
    return svi_gamma_of_gaps(gaps, found);
}

/* The gamma that the rule gives, before the members' multiples (svs_gamma_rule). */
static double detector_base_gamma(struct svi_detector *d) {
    const svs_novelty_options *o = &d->o.model;
    struct svi_moments m = {0};
    double *u = d->work;
    if (o->gamma_rule == SVS_GAMMA_GIVEN)
        return o->gamma;
    if (o->gamma_rule != SVS_GAMMA_SCALE && o->kernel != SVS_NOVELTY_POLYNOMIAL)
        return detector_median_gamma(d);
    /* The variance of all coordinates, over as many rows as pairs are drawn otherwise. */
    for (int i = 0; i < d->calibration.ring.filled && i < PAIRS; i++) {
        svi_coordinates_apply(&d->m.coordinates, detector_calibration_row(d, i), u);
        for (int j = 0; j < d->o.d; j++)
            if (!isnan(u[j]))
                svi_moments_add(&m, u[j]);
    }
    return svi_gamma_of_spread(&m, d->o.d);
}

/* Surprises of each member for the calibration rows first .. end - 1; surprise: members x count. */
static void detector_score_rows(struct svi_detector *d, double *surprise, int first, int end, int count) {
    double each[SVS_MEMBERS_MAX];
    for (int i = first; i < end; i++) {
        detector_score(d, detector_calibration_row(d, i), each);
        for (int g = 0; g < d->members; g++)
            surprise[(size_t)g * (size_t)count + (size_t)i] = each[g];
    }
}

/* Sets the members' shares to 1 / the deviation of their lower scores, those that trimming would keep, so
 * that no member dominates. Fills scores[count] with the weighted means. */
static void detector_share(struct svi_detector *d, const double *surprise, int count, double *scores) {
    const int kept = count - (int)(d->o.model.trim * count);
    double sum = 0;
    for (int g = 0; g < d->members; g++) {
        memcpy(scores, surprise + (size_t)g * (size_t)count, (size_t)count * sizeof *scores);
        /* Selection moves the `kept` lowest scores to the front, in any order. */
        svi_select_rank(scores, count, kept - 1);
        sum += d->m.view.member[g].share = 1 / fmax(svi_deviation(scores, kept), 1e-6);
    }
    for (int g = 0; g < d->members; g++)
        d->m.view.member[g].share /= sum;
    for (int i = 0; i < count; i++) {
        scores[i] = 0;
        for (int g = 0; g < d->members; g++)
            scores[i] += d->m.view.member[g].share * surprise[(size_t)g * (size_t)count + (size_t)i];
        scores[i] = detector_round(scores[i]);
    }
}

/* Rescores every calibration row with the new model. */
static void detector_rescore(struct svi_detector *d) {
    const int count = d->calibration.ring.filled;
    double *surprise = d->work, *scores = surprise + (size_t)d->members * (size_t)count;
    detector_score_rows(d, surprise, 0, count, count);
    detector_share(d, surprise, count, scores);
    svi_calibration_replace(&d->calibration, scores);
}

/* Starts a model: gammas from the present coordinates, equal shares, no points. */
static void detector_begin_model(struct svi_detector *d) {
    double multiples[SVS_MEMBERS_MAX];
    const double gamma = detector_base_gamma(d);
    svi_gamma_multiples(&d->o.model, multiples);
    for (int g = 0; g < d->members; g++) {
        d->m.view.member[g].gamma = gamma * multiples[g];
        d->m.view.member[g].share = 1.0 / d->members;
        svi_active_set_empty(&d->m.set[g]);
    }
    detector_show_model(d);
    d->m.lacking = 0;
}

/* Scales need some rows, and a median distance needs two points. */
static bool detector_may_refresh(const struct svi_detector *d) {
    return d->calibration.ring.filled >= MIN_ROWS && d->now.points >= 2;
}

/* The order is fixed: coordinates, then gammas that are measured in them, then points and solutions, then
 * scores and shares. The first refresh has no scales to preserve. */
static void detector_refresh(struct svi_detector *d) {
    if (!detector_may_refresh(d))
        return;
    d->m.coordinates.shrink = d->ready ? SHRINK : 0;
    svi_coordinates_fit(&d->m.coordinates, d->rows, d->o.d, d->calibration.ring.filled, d->work, 0, d->o.d);
    detector_begin_model(d);
    for (int i = 0; i < d->now.points; i++)
        detector_insert(d, i);
    detector_solve(d);
    detector_rescore(d);
    d->ready = true;
    d->now.refreshes++;
}

/* ---- a refresh in slices (struct svi_renewal) */

/* Exchanges the present model and rows with the next model and the rows of the refresh's beginning. Called in
 * pairs around slices, which can then use the same functions as a refresh at once. */
static void renewal_swap(struct svi_detector *d) {
    struct svi_renewal *r = d->renewal;
    const struct svi_detector_model model = d->m;
    const int count = d->calibration.ring.filled;
    d->m = r->next;
    r->next = model;
    d->calibration.ring.filled = r->count;
    r->count = count;
    /* Rows that were added since have places from r->count on; swapping them does no harm, as `filled` hides
     * them. */
    for (int i = 0; i < r->changed; i++) {
        double *row = d->rows + (size_t)r->place[i] * (size_t)d->o.d,
               *old = r->old + (size_t)i * (size_t)d->o.d;
        for (int j = 0; j < d->o.d; j++) {
            const double value = row[j];
            row[j] = old[j];
            old[j] = value;
        }
    }
}

/* Slice k of the solution of member g. */
static void renewal_solve(struct svi_detector *d, int g, int k) {
    struct svi_active_set *h = &d->m.set[g];
    const int last = detector_solve_slices(d->now.points) - 1;
    if (k == 0)
        svi_active_set_begin(h);
    svi_active_set_go_on(h, k < last ? STEPS_A_SLICE : svi_active_set_most_steps(h));
    detector_show_member(d, g);
}

/* Runs slice k of a kind; the detector is swapped. */
static void renewal_slice(struct svi_detector *d, enum slice_kind kind, int k) {
    struct svi_renewal *r = d->renewal;
    const int rows = d->calibration.ring.filled, points = d->now.points;
    const int features = (d->o.d + FEATURE_SLICES - 1) / FEATURE_SLICES;
    const int from = k * (kind == SLICE_FEATURES ? features
                          : kind == SLICE_POINTS ? POINTS_A_SLICE
                                                 : ROWS_A_SLICE);
    const int each = detector_solve_slices(points);
    switch (kind) {
    case SLICE_FEATURES:
        if (from < d->o.d)
            svi_coordinates_fit(&d->m.coordinates, d->rows, d->o.d, rows, d->work, from,
                                from + features < d->o.d ? from + features : d->o.d);
        break;
    case SLICE_GAMMA:
        /* The random state of the beginning, whose draws must not depend on when the slice runs. */
        d->now.random = r->random;
        detector_begin_model(d);
        break;
    case SLICE_POINTS:
        for (int i = from; i < points && i < from + POINTS_A_SLICE; i++)
            detector_insert(d, i);
        break;
    case SLICE_SOLVE:
        renewal_solve(d, k / each, k % each);
        break;
    case SLICE_ROWS:
        detector_score_rows(d, r->surprise, from, from + ROWS_A_SLICE < rows ? from + ROWS_A_SLICE : rows,
                            rows);
        break;
    default:
        detector_share(d, r->surprise, rows, d->work);
    }
}

/* The next model takes over. Scores of the last slice belong to the rows of the beginning; rows that changed
 * since are scored here, so that every score is of the new model. */
static void renewal_take(struct svi_detector *d) {
    struct svi_renewal *r = d->renewal;
    double *scores = d->work, each[SVS_MEMBERS_MAX]; /* filled by the last slice */
    const struct svi_detector_model before = d->m;
    d->m = r->next;
    r->next = before;
    for (int i = 0; i < r->changed; i++)
        scores[r->place[i]] = detector_score(d, detector_calibration_row(d, r->place[i]), each);
    svi_calibration_replace(&d->calibration, scores);
    r->on = false;
    d->now.refreshes++;
}

/* Runs the slices that are due, and takes the model over after the last one. */
static void renewal_continue(struct svi_detector *d) {
    struct svi_renewal *r = d->renewal;
    if (r->done == r->due)
        return;
    /* The next model starts from the present scales, which limit how far the new ones may shrink. */
    if (r->done == 0) {
        r->next.similarity = d->m.similarity;
        r->next.similarity.columns = r->columns;
        if (d->m.coordinates.center) {
            memcpy(r->next.coordinates.center, d->m.coordinates.center, (size_t)d->o.d * sizeof(double));
            memcpy(r->next.coordinates.inverse, d->m.coordinates.inverse, (size_t)d->o.d * sizeof(double));
        }
        r->next.coordinates.category = d->m.coordinates.category;
        r->next.coordinates.fill = d->m.coordinates.fill;
        r->next.coordinates.shrink = SHRINK;
        r->next.view = d->m.view;
    }
    renewal_swap(d);
    for (; r->done < r->due; r->done++) {
        /* Finds the kind of slice number `done`, and its number within the kind. */
        int k = r->done;
        enum slice_kind kind = SLICE_FEATURES;
        for (; k >= detector_slices_of(kind, d->members, d->now.points, d->calibration.ring.filled); kind++)
            k -= (int)detector_slices_of(kind, d->members, d->now.points, d->calibration.ring.filled);
        renewal_slice(d, kind, k);
    }
    renewal_swap(d);
    if (r->done == r->slices)
        renewal_take(d);
}

void svi_detector_finish_renewal(struct svi_detector *d) {
    if (!detector_renewing(d))
        return;
    d->renewal->due = d->renewal->slices;
    renewal_continue(d);
}

/* Begins a refresh. It runs at once while it is little work, and under policies that learn changes, whose
 * points must not wait for its end. */
static void renewal_begin(struct svi_detector *d) {
    struct svi_renewal *r = d->renewal;
    const bool waits = r && d->o.learn == SVI_LEARN_NORMAL;
    if (!waits || !d->ready || !detector_may_refresh(d) || d->calibration.ring.filled <= AT_ONCE) {
        detector_refresh(d);
        return;
    }
    /* What the slices depend on is recorded now: rows, columns, random state. Points stay as they are while
     * `on`. */
    r->on = true;
    r->due = r->done = r->changed = 0;
    r->count = d->calibration.ring.filled;
    r->columns = d->m.similarity.columns;
    r->random = d->now.random;
    r->slices = (int)detector_slices(d->members, d->now.points, r->count);
}

/* The calibration row at this place is about to change: keeps its former value, the first time. */
static void renewal_keep_row(struct svi_detector *d, int place) {
    struct svi_renewal *r = d->renewal;
    for (int i = 0; i < r->changed; i++)
        if (r->place[i] == place)
            return;
    if (r->changed == r->capacity) { /* possible after novelty.confirm was raised */
        svi_detector_finish_renewal(d);
        return;
    }
    r->place[r->changed] = place;
    memcpy(r->old + (size_t)r->changed++ * (size_t)d->o.d, detector_calibration_row(d, place),
           (size_t)d->o.d * sizeof *r->old);
}

/* Has a feature left its coordinates? At least half of its known values among the newest calibration rows,
 * and more than an eighth of the rows, are more than AWAY deviations from the center. */
static bool detector_outgrown(struct svi_detector *d) {
    const struct svi_coordinates *c = &d->m.coordinates;
    const struct svi_stat_ring *ring = &d->calibration.ring;
    if (!d->ready || !c->center || ring->filled < CHECK_ROWS)
        return false;
    for (int j = 0; j < d->o.d; j++) {
        int away = 0, known = 0;
        for (int i = 0; i < CHECK_ROWS; i++) { /* newest first */
            const int place = (int)((ring->slot - 1 - i + ring->window) % ring->window);
            const double gap = fabs(detector_calibration_row(d, place)[j] - c->center[j]) * c->inverse[j];
            known += !isnan(gap);
            away += gap > AWAY;
        }
        if (2 * away > known && 8 * away > CHECK_ROWS)
            return true;
    }
    return false;
}

/* ---- learning */

/* Removes point i; the last point takes its index everywhere, as in svi_active_set_remove. The problems must
 * be solved afterwards. */
static void detector_remove_point(struct svi_detector *d, int i) {
    const int last = --d->now.points;
    const size_t features = (size_t)d->o.d, stride = (size_t)d->stride;
    /* Without a model there are no problems yet, only raw rows. */
    for (int g = 0; g < d->members && d->ready; g++)
        svi_active_set_remove(&d->m.set[g], i);
    d->now.left++;
    d->m.lacking -= d->ready && isnan(d->m.norm2[i]);
    if (i == last)
        return;
    memcpy(d->raw + (size_t)i * features, d->raw + (size_t)last * features, features * sizeof *d->raw);
    memcpy(d->m.at + (size_t)i * stride, d->m.at + (size_t)last * stride, stride * sizeof *d->m.at);
    d->m.norm2[i] = d->m.norm2[last];
    d->born[i] = d->born[last];
    d->used[i] = d->used[last];
}

/* Keeps the sample as the candidate if it is further outside than the one that waits. */
static void detector_keep_candidate(struct svi_detector *d, const double *raw) {
    const double surprise = d->judgement.surprise;
    if (d->now.candidates > 0 && surprise <= d->now.candidate_membership)
        return;
    memcpy(d->candidate, raw, (size_t)d->o.d * sizeof *raw);
    d->now.candidate_membership = surprise;
    d->now.candidates = 1;
}

/* Adds a sample to the pool, if that may change now. A full pool takes at most one sample per window / max
 * learned ones, in place of its oldest point, so that points live one window. */
static enum svi_learn_result detector_admit(struct svi_detector *d, const double *raw) {
    const bool worst = d->o.model.fosvm == 1 && d->o.learn == SVI_LEARN_NORMAL;
    /* A refresh relies on the points of its beginning. The worst sample waits for its end. */
    if (detector_renewing(d)) {
        if (worst)
            detector_keep_candidate(d, raw);
        return SVI_LEARN_RESULT_WAITS;
    }
    if (d->now.points == d->o.model.max) {
        const int64_t window = d->o.window > 0 ? d->o.window : d->now.learned;
        const int64_t since = d->now.learned - d->now.last_join;
        int oldest = 0;
        if (worst)
            detector_keep_candidate(d, raw);
        if (since < 1 || since < window / d->o.model.max)
            return SVI_LEARN_RESULT_WAITS;
        /* The worst of the samples that waited, the present one included, joins instead of the newest. */
        if (worst) {
            raw = d->candidate;
            d->now.candidates = 0;
        }
        for (int i = 1; i < d->now.points; i++)
            if (d->born[i] < d->born[oldest])
                oldest = i;
        detector_remove_point(d, oldest);
    }
    const int n = d->now.points++;
    memcpy(d->raw + (size_t)n * (size_t)d->o.d, raw, (size_t)d->o.d * sizeof *raw);
    d->born[n] = d->used[n] = d->now.learned;
    d->now.joined++;
    d->now.last_join = d->now.learned;
    /* Without a model the point waits for the first refresh. */
    if (d->ready)
        detector_insert(d, n);
    return SVI_LEARN_RESULT_JOINED;
}

/* FOSVM2: of each m samples, admits the one furthest outside. The best of them may be inside. */
static enum svi_learn_result detector_admit_drawn(struct svi_detector *d, double membership) {
    if (d->now.candidates == 0 || membership < d->now.candidate_membership) {
        memcpy(d->candidate, d->x, (size_t)d->o.d * sizeof *d->x);
        d->now.candidate_membership = membership;
    }
    if (++d->now.candidates < d->o.model.m)
        return SVI_LEARN_RESULT_WAITS;
    d->now.candidates = 0;
    return d->now.candidate_membership < 1 - d->o.model.theta ? detector_admit(d, d->candidate)
                                                              : SVI_LEARN_RESULT_INSIDE;
}

/* The point nearest to the sample scored last. For polynomial kernels the gaps are products, which favour
 * long vectors, so kernel values are compared instead. */
static int detector_nearest(const struct svi_detector *d) {
    const bool polynomial =
        d->m.similarity.kernel == SVS_NOVELTY_POLYNOMIAL; /* one member: `kernel` is its */
    int nearest = 0;
    for (int i = 1; i < d->now.points; i++)
        if (polynomial ? d->kernel[i] > d->kernel[nearest] : d->gap[i] < d->gap[nearest])
            nearest = i;
    return nearest;
}

/* Removes points that were nearest to no learned sample for a whole window. The sample may lie outside
 * without them, so it is scored again. */
static void detector_age(struct svi_detector *d) {
    const int before = d->now.points;
    for (int i = d->now.points - 1; i >= 0 && d->o.window > 0 && !detector_renewing(d); i--)
        if (d->now.learned - d->used[i] >= d->o.window)
            detector_remove_point(d, i);
    /* Without a removal the solution is still exact, and nothing has to be scored again. */
    if (d->now.points == before || !d->ready)
        return;
    detector_solve(d);
    detector_score(d, d->x, d->member_surprise);
}

/* Learns the sample: ages the points, then decides by the largest surprise of any member, since a sample must
 * be inside for all of them. Inside, m >= 1 - theta, it refreshes its nearest point. */
static enum svi_learn_result detector_fit_sample(struct svi_detector *d) {
    double most = 0;
    d->now.learned++;
    detector_age(d);
    enum svi_learn_result result = SVI_LEARN_RESULT_INSIDE;
    for (int g = 0; g < d->members && d->ready; g++)
        most = fmax(most, d->member_surprise[g]);
    /* The surprise of membership 1 - theta: -log(1 - theta). */
    const bool inside = d->ready && most <= -log1p(-d->o.model.theta);
    if (inside)
        d->used[detector_nearest(d)] = d->now.learned;
    if (!d->ready)
        result = d->now.points < d->o.model.max ? detector_admit(d, d->x) : SVI_LEARN_RESULT_WAITS;
    else if (d->o.model.fosvm == 2 && d->now.points > 0)
        result = detector_admit_drawn(d, exp(-most));
    else if (!inside)
        result = detector_admit(d, d->x);
    /* Solving once, after ageing and joining are done. */
    if (result == SVI_LEARN_RESULT_JOINED && d->ready)
        detector_solve(d);
    return result;
}

/* Counts the present sample; true while `persist` of the last 5/4 persist samples were novel. */
static bool detector_change_lasts(struct svi_detector *d) {
    const int64_t capacity = detector_flags(&d->o);
    if (capacity == 0)
        return false;
    /* The flag that is overwritten leaves the sum only once the ring is full. */
    uint8_t *flag = &d->run.novel[d->now.novel_count++ % capacity];
    d->now.novel_sum += d->judgement.novel - (d->now.novel_count > capacity ? *flag : 0);
    *flag = d->judgement.novel;
    return d->now.novel_sum >= d->o.persist;
}

/* Does the policy allow learning the sample? `normal` needs p above o.p, and above `trim` too once max / 2
 * samples were learned (detector.h, RULES). detector_change_lasts must count every sample, so it is evaluated
 * first. */
static bool detector_may_learn(struct svi_detector *d, bool labelled) {
    const struct svi_judgement *j = &d->judgement;
    const bool few = d->now.learned < d->o.model.max / 2;
    const bool normal = j->p > (few ? d->o.p : fmax(d->o.p, d->o.model.trim)) || !d->ready;
    if (d->o.learn == SVI_LEARN_ALL || d->o.learn == SVI_LEARN_LABELLED)
        return labelled || d->o.learn == SVI_LEARN_ALL;
    return (d->o.learn == SVI_LEARN_PERSISTENT && detector_change_lasts(d)) || normal;
}

/* Adds a row to the calibration; its place is the same in scores, rows and ranges. */
static void detector_add_score(struct svi_detector *d, double surprise, const double *raw) {
    if (detector_renewing(d))
        renewal_keep_row(d, d->calibration.ring.slot);
    const int place = svi_calibration_add(&d->calibration, surprise);
    memcpy(d->rows + (size_t)place * (size_t)d->o.d, raw, (size_t)d->o.d * sizeof *raw);
    svi_range_put(&d->range, d->rows, place);
}

/* The run was too short for a disturbance: adds its rows to the calibration, scored by the present model,
 * which may have changed since they arrived. */
static void detector_release(struct svi_detector *d) {
    double each[SVS_MEMBERS_MAX];
    for (int i = 0; i < d->now.held_count; i++) {
        const double *raw = d->run.held + (size_t)i * (size_t)d->o.d;
        detector_add_score(d, detector_score(d, raw, each), raw);
    }
    d->now.held_count = 0;
    svi_range_release(&d->range);
}

/* Drops the rows held back if the run is a disturbance; otherwise releases them unless they should wait. */
static void detector_settle_held(struct svi_detector *d, bool wait) {
    if (detector_in_disturbance(d)) {
        d->now.held_out += d->now.held_count;
        d->now.held_count = 0;
        svi_range_drop(&d->range);
    } else if (!wait) {
        detector_release(d);
    }
}

/* Updates the run of suspicious samples with the present one. A run that has filled its buffer without
 * becoming a disturbance (no sample was novel) is released. */
static void detector_follow_run(struct svi_detector *d) {
    const bool suspicious = d->ready && d->judgement.p <= d->o.clear;
    d->now.run = suspicious ? d->now.run + 1 : 0;
    d->now.run_novel = suspicious && (d->now.run_novel || d->judgement.novel);
    detector_settle_held(d, suspicious && d->now.held_count < d->o.confirm);
}

/* Adds the sample to the calibration, or holds it back while a run lasts. detector_follow_run has left
 * capacity for one more row. */
static enum svi_learn_result detector_calibrate(struct svi_detector *d) {
    if (detector_in_disturbance(d)) {
        d->now.held_out++;
        return SVI_LEARN_RESULT_HELD_OUT;
    }
    /* A suspicious sample waits for the end of its run. */
    if (d->now.run > 0)
        memcpy(d->run.held + (size_t)d->now.held_count++ * (size_t)d->o.d, d->x,
               (size_t)d->o.d * sizeof *d->x);
    else
        detector_add_score(d, d->judgement.surprise, d->x);
    return SVI_LEARN_RESULT_CALIBRATED;
}

/* Extends the ranges by the sample, or holds it back with its run. What may be learned counts as normal, so
 * policies that learn changes also extend ranges at once. */
static void detector_follow_range(struct svi_detector *d, bool may) {
    if (d->now.run == 0 || may)
        svi_range_add(&d->range, d->x);
    else if (!detector_in_disturbance(d))
        svi_range_hold(&d->range, d->x);
    svi_range_forget(&d->range, d->rows, d->calibration.ring.filled, d->work);
}

/* Schedules refreshes by number of sample alone: at doubling numbers and, every o.calibration samples, where
 * a feature has left its coordinates. While one is running, each sample makes one more slice due. */
static void detector_refresh_when_due(struct svi_detector *d) {
    const bool due = d->now.seen == d->now.next_refresh, check = d->now.seen == d->now.next_check;
    if (due) /* without points there is no model: try again soon */
        d->now.next_refresh += d->ready || d->now.points >= 2 ? d->now.next_refresh : FIRST_REFRESH;
    if (check)
        d->now.next_check += d->o.calibration;
    if (detector_renewing(d)) {
        d->renewal->due++;
        renewal_continue(d);
    } else if (due || (check && detector_outgrown(d))) {
        renewal_begin(d);
    }
    if (due || check)
        svi_range_renew(&d->range, d->rows, d->calibration.ring.filled, d->work);
}

enum svi_learn_result svi_detector_learn(svi_detector *d, bool labelled) {
    svi_detector_claim_scratch(d);
    if (d->judgement.unknown) { /* neither normal nor suspicious: the run is not interrupted */
        d->now.seen++;
        detector_refresh_when_due(d);
        return d->judgement.calibrates ? SVI_LEARN_RESULT_HELD_OUT : SVI_LEARN_RESULT_REFUSED;
    }
    const bool may = detector_may_learn(d, labelled);
    enum svi_learn_result result = SVI_LEARN_RESULT_REFUSED;
    d->now.seen++;
    if (!d->judgement.calibrates && may)
        result = detector_fit_sample(d); /* while d->gap and member_surprise are still this sample's */
    detector_follow_run(d);
    /* After the run was updated, which decides whether the sample is held back. */
    if (d->judgement.calibrates)
        result = detector_calibrate(d);
    detector_follow_range(d, may);
    detector_refresh_when_due(d);
    return result;
}

void svi_detector_pass_over(svi_detector *d) {
    svi_detector_claim_scratch(d);
    d->now.seen++;
    detector_refresh_when_due(d);
}

/* ---- queries */

void svi_detector_explain(svi_detector *d, double *adds) {
    svi_detector_claim_scratch(d);
    if (d->ready)
        svi_explain(&d->m.view, d->x, d->work, NULL, adds);
    else
        memset(adds, 0, (size_t)d->o.d * sizeof *adds);
}

double svi_detector_level(const svi_detector *d) {
    return d->ready ? -expm1(-svi_calibration_level(&d->calibration, d->o.p)) : 1;
}

void svi_detector_health(svi_detector *d, struct svi_detector_health *out) {
    svi_detector_claim_scratch(d);
    *out = (struct svi_detector_health){.seen = d->now.seen,
                                        .joined = d->now.joined,
                                        .left = d->now.left,
                                        .refreshes = d->now.refreshes,
                                        .held_out = d->now.held_out,
                                        .points = d->now.points,
                                        .calibration = d->calibration.ring.filled,
                                        .members = d->members};
    for (int g = 0; g < d->members && d->ready; g++)
        out->violation = fmax(out->violation, svi_active_set_violation(&d->m.set[g]));
}

/* ---- other options */

void svi_detector_prepared_clear(struct svi_detector_prepared *prepared) {
    svi_arrays_free(&run_arrays, prepared);
}

svs_code svi_detector_prepare(const svi_detector *d, const struct svi_detector_options *o,
                              struct svi_detector_prepared *prepared, svs_error *err) {
    struct svi_detector_options wide = *o;
    wide.d = d->o.d;
    wide.confirm = o->confirm > d->now.held_count ? o->confirm : d->now.held_count;
    return svi_arrays_alloc(&run_arrays, prepared, detector_dims(&wide, 0, 0, 1).of, err);
}

/* Copies the newest flags to their places in a ring of another capacity (number mod capacity), and counts
 * them. */
static void detector_move_flags(struct svi_detector *d, uint8_t *novel, int64_t capacity) {
    const int64_t before = detector_flags(&d->o);
    int64_t last = d->now.novel_count < before ? d->now.novel_count : before;
    last = last < capacity ? last : capacity;
    d->now.novel_sum = 0;
    for (int64_t i = d->now.novel_count - last; i < d->now.novel_count; i++) {
        novel[i % capacity] = d->run.novel[i % before];
        d->now.novel_sum += novel[i % capacity];
    }
}

void svi_detector_configure(svi_detector *d, const struct svi_detector_options *o,
                            struct svi_detector_prepared *prepared) {
    const bool other = o->confirm != d->o.confirm;
    svi_detector_claim_scratch(d);
    d->o.p = o->p;
    d->o.clear = o->clear;
    d->o.learn = o->learn;
    d->o.model.trim = o->model.trim;
    /* The former arrays go back to `prepared`, which is freed at the end. */
    if (prepared->held) {
        const struct svi_detector_prepared before = d->run;
        detector_move_flags(d, prepared->novel, detector_flags(o));
        memcpy(prepared->held, before.held, (size_t)d->now.held_count * (size_t)d->o.d * sizeof *before.held);
        d->run = *prepared;
        *prepared = before;
        d->o.persist = o->persist;
        d->o.confirm = o->confirm;
    }
    /* A smaller `confirm` can make a disturbance of the present run, or leave no capacity for more held
     * rows. */
    if (other)
        detector_settle_held(d, d->now.held_count < d->o.confirm);
    svi_detector_prepared_clear(prepared);
}

void svi_detector_normal_range(svi_detector *d, int feature, double *low, double *high) {
    svi_detector_claim_scratch(d);
    svi_range_normal(d->rows, d->o.d, d->calibration.ring.filled, feature, d->work, low, high);
}

bool svi_detector_range(const svi_detector *d, int feature, double *low, double *high) {
    return svi_range_of(&d->range, feature, low, high);
}

/* ---- more features */

/* Builds a wider detector from the options, copies state and arrays, and refreshes it: distances with
 * additional columns have other scales. The calibration, which has no columns, is handed over. */
svs_code svi_detector_widen(svi_detector **detector, int lags, int features, svs_error *err) {
    struct svi_detector *d = *detector;
    struct svi_detector_options o = d->o;
    o.d = lags * features;
    struct svi_detector *w = svi_detector_new(&o, err);
    if (!w ||
        detector_reserve(w, d->now.points + 1, d->calibration.ring.filled + d->now.held_count + 1, err) !=
            SVS_OK ||
        svi_calibration_reserve(&d->calibration, w->rows_capacity, err) != SVS_OK) {
        svi_detector_free(&w);
        return SVS_NO_MEMORY;
    }
    /* All that can fail is done; from here on *detector is taken apart. */
    svi_detector_finish_renewal(d);
    const struct svi_calibration empty = w->calibration;
    w->calibration = d->calibration;
    d->calibration = empty;
    const struct detector_dims narrow = detector_dims(&d->o, d->point_capacity, d->rows_capacity, lags),
                               wide = detector_dims(&o, w->point_capacity, w->rows_capacity, lags);
    svi_arrays_copy(&points_arrays, w, wide.of, d, narrow.of);
    svi_arrays_copy(&rows_arrays, w, wide.of, d, narrow.of);
    svi_arrays_copy(&run_arrays, &w->run, wide.of, &d->run, narrow.of);
    w->m.coordinates.category = d->m.coordinates.category ? w->category : NULL;
    /* The state counts points and rows, so it is taken over after the arrays. */
    w->now = d->now;
    svi_range_widen(&w->range, &d->range, lags);
    if (d->ready)
        detector_refresh(w);
    if (!w->ready) { /* too few points for a model: nothing is suspicious then */
        w->now.held_count = 0;
        w->now.run = 0;
        w->now.run_novel = false;
    }
    svi_detector_free(detector);
    *detector = w;
    return SVS_OK;
}

/* ---- a column changes its feature */

/* The coordinate that the majority of points share, by majority vote (Boyer and Moore 1981): without one
 * the result is any value. 0 for polynomial kernels, where every other value is part of the products. */
static double detector_common(const struct svi_detector *d, int column) {
    double common = 0;
    int votes = 0;
    for (int i = 0; i < d->now.points && d->m.similarity.kernel != SVS_NOVELTY_POLYNOMIAL; i++) {
        const double u = d->m.at[(size_t)i * (size_t)d->stride + (size_t)column];
        if (isnan(u))
            continue;
        if (votes == 0)
            common = u;
        votes += u == common ? 1 : -1;
    }
    return common;
}

/* Sets differs[i] to 1 for points that differ from the majority in the feature's columns, else 0, and returns
 * how many differ. The coordinates of all points become 0 there; center 0 and scale 1 keep new values in raw
 * units until the next refresh. */
static int detector_level_points(struct svi_detector *d, int lags, int feature, double *differs) {
    int count = 0;
    memset(differs, 0, (size_t)d->now.points * sizeof *differs);
    /* Each part of a row of lags has a column of the feature. Its majority is read before it is cleared. */
    for (int column = feature; column < d->o.d; column += d->o.d / lags) {
        const double common = detector_common(d, column);
        for (int i = 0; i < d->now.points; i++) {
            const double *u = &d->m.at[(size_t)i * (size_t)d->stride + (size_t)column];
            if (isnan(*u) || *u == common || differs[i] != 0)
                continue;
            differs[i] = 1;
            count++;
        }
        svi_lags_renew(d->m.at, d->stride, d->now.points, column);
        if (d->m.coordinates.center) {
            d->m.coordinates.center[column] = 0;
            d->m.coordinates.inverse[column] = 1;
        }
    }
    return count;
}

/* Points with an uncommon value of the old feature would now represent rows that never occurred, so they are
 * removed. If they are many, all points stay and the problems are rebuilt. Equal values do not matter: they
 * cancel in every distance. */
static void detector_renew_points(struct svi_detector *d, int lags, int feature) {
    double *differs = d->work + d->stride; /* the first part of `work` is for a row */
    const int points = d->now.points, count = detector_level_points(d, lags, feature, differs);
    if (count == 0)
        return;
    if (count > points / TRIM_ONE_IN) {
        for (int g = 0; g < d->members; g++)
            svi_active_set_empty(&d->m.set[g]);
        d->m.lacking = 0;
        for (int i = 0; i < points; i++)
            detector_insert(d, i);
    } else {
        for (int i = points - 1; i >= 0;
             i--) /* backwards: the point that takes index i was visited already */
            if (differs[i] != 0)
                detector_remove_point(d, i);
    }
    detector_solve(d);
}

void svi_detector_category(svi_detector *d, int lags, int feature) {
    /* A running refresh reads the flags, so it must end before they change. */
    if (!svi_detector_knows_category(d, lags, feature))
        svi_detector_finish_renewal(d);
    for (int column = feature; column < d->o.d; column += d->o.d / lags)
        d->category[column] = 1;
    d->m.coordinates.category = d->category;
}

bool svi_detector_knows_category(const svi_detector *d, int lags, int feature) {
    bool knows =
        true; /* reads the flags alone, which no refresh writes: safe while one runs on another thread */
    for (int column = feature; column < d->o.d; column += d->o.d / lags)
        knows = knows && d->category[column];
    return knows;
}

/* Sets the feature to 0 wherever rows are stored, then repairs what was derived from them. */
void svi_detector_renew(svi_detector *d, int lags, int feature) {
    const int features = d->o.d / lags;
    svi_detector_claim_scratch(d);
    svi_detector_finish_renewal(d);
    svi_lags_renew(d->raw, features, (int64_t)lags * d->now.points, feature);
    svi_lags_renew(d->rows, features, (int64_t)lags * d->calibration.ring.filled, feature);
    svi_lags_renew(d->run.held, features, (int64_t)lags * d->now.held_count, feature);
    svi_lags_renew(d->candidate, features, lags, feature);
    svi_range_renew_feature(&d->range, lags, feature, d->rows);
    if (d->ready)
        detector_renew_points(d, lags, feature);
}

/* ---- archive */

static void detector_archive_counts(struct svi_archive *a, struct svi_detector *d) {
    svi_archive_int64(a, "seen", &d->now.seen, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "learned", &d->now.learned, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "joined", &d->now.joined, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "left", &d->now.left, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "renewals", &d->now.refreshes, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "held out", &d->now.held_out, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "next renewal", &d->now.next_refresh, 1, 2 * SVI_COUNT_MAX);
    svi_archive_int64(a, "next check", &d->now.next_check, 1, 2 * SVI_COUNT_MAX);
    svi_archive_int64(a, "last join", &d->now.last_join, INT64_MIN / 2, SVI_COUNT_MAX);
    svi_archive_uint64(a, "random", &d->now.random.state);
    svi_archive_int(a, "points", &d->now.points, 0, d->o.model.max);
    svi_archive_bool(a, "ready", &d->ready);
    svi_archive_check(a,
                      d->now.learned <= d->now.seen && d->now.last_join <= d->now.learned &&
                          d->now.joined - d->now.left == d->now.points,
                      "the numbers of samples contradict each other");
    svi_archive_check(a,
                      d->now.next_refresh > d->now.seen && d->now.next_check > d->now.seen &&
                          d->now.next_check - d->now.seen <= d->o.calibration,
                      "a refresh is overdue");
}

/* Loading: reserves capacity for the points and rows that follow. */
static bool detector_archive_reserve(struct svi_archive *a, struct svi_detector *d, int rows) {
    if (svi_archive_loading(a) && svi_archive_ok(a) &&
        detector_reserve(d, d->now.points, rows, a->err) != SVS_OK)
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the novelty detector");
    return svi_archive_ok(a);
}

static void detector_archive_samples(struct svi_archive *a, struct svi_detector *d) {
    if (!detector_archive_reserve(a, d, 1))
        return;
    svi_archive_known(a, "raw", d->raw, (int64_t)d->now.points * d->o.d);
    svi_archive_int64s(a, "born", d->born, d->now.points, 0, d->now.learned);
    svi_archive_int64s(a, "used", d->used, d->now.points, 0, d->now.learned);
    svi_calibration_archive(a, &d->calibration);
    if (detector_archive_reserve(a, d, d->calibration.ring.filled))
        svi_archive_known(a, "rows", d->rows, (int64_t)d->calibration.ring.filled * d->o.d);
}

/* The run of suspicious samples; without a model there can be none. */
static void detector_archive_run(struct svi_archive *a, struct svi_detector *d) {
    svi_archive_int64(a, "run", &d->now.run, 0, SVI_COUNT_MAX);
    svi_archive_bool(a, "run novel", &d->now.run_novel);
    svi_archive_int(a, "held count", &d->now.held_count, 0, d->o.confirm);
    if (svi_archive_check(a, d->ready || (d->now.run == 0 && !d->now.run_novel && d->now.held_count == 0),
                          "there is a run without a model"))
        svi_archive_known(a, "held", d->run.held, (int64_t)d->now.held_count * d->o.d);
}

static void detector_archive_candidate(struct svi_archive *a, struct svi_detector *d) {
    svi_archive_int64(a, "candidates", &d->now.candidates, 0, d->o.model.m);
    if (!svi_archive_ok(a) || d->now.candidates == 0)
        return;
    svi_archive_double(a, "candidate membership", &d->now.candidate_membership);
    svi_archive_check(a, !isnan(d->now.candidate_membership), "a membership is not a number");
    svi_archive_known(a, "candidate", d->candidate, d->o.d);
}

/* The flags of `persistent`: their places follow from their number, and their sum is recounted. */
static void detector_archive_change(struct svi_archive *a, struct svi_detector *d) {
    const int64_t capacity = detector_flags(&d->o);
    svi_archive_int64(a, "novel count", &d->now.novel_count, 0, capacity > 0 ? SVI_COUNT_MAX : 0);
    if (!svi_archive_ok(a))
        return;
    const int64_t filled = d->now.novel_count < capacity ? d->now.novel_count : capacity;
    svi_archive_bytes(a, "novel", d->run.novel, filled);
    d->now.novel_sum = 0;
    for (int64_t i = 0; i < filled; i++) {
        svi_archive_check(a, d->run.novel[i] <= 1, "a flag is neither 0 nor 1");
        d->now.novel_sum += d->run.novel[i];
    }
}

/* One member: gamma, share, and its small problem. */
static void detector_archive_member(struct svi_archive *a, struct svi_detector *d, int g) {
    svs_novelty_member *m = &d->m.view.member[g];
    char name[SVI_KEY_MAX], key[64];
    svi_archive_key(name, "member", g + 1);
    snprintf(key, sizeof key, "%s gamma", name);
    svi_archive_double(a, key, &m->gamma);
    snprintf(key, sizeof key, "%s share", name);
    svi_archive_double(a, key, &m->share);
    svi_archive_check(a, m->gamma >= 0 && m->share >= 0 && m->share <= 2, "a member is out of range");
    svi_active_set_archive(a, &d->m.set[g], name, d->now.points);
}

static void detector_archive_model(struct svi_archive *a, struct svi_detector *d) {
    const struct svi_coordinates *c = &d->m.coordinates;
    if (!d->ready)
        return;
    if (c->center) {
        svi_archive_finite(a, "center", c->center, c->d);
        svi_archive_finite(a, "inverse", c->inverse, c->d);
        for (int j = 0; j < c->d; j++)
            svi_archive_check(a, c->inverse[j] > 0, "the scale of a feature is not above 0");
    }
    /* Members need the number of points, which the counts have given. */
    for (int g = 0; g < d->members && svi_archive_ok(a); g++)
        detector_archive_member(a, d, g);
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    /* Coordinates of points are not archived: they follow from raw values and scales, bit for bit. */
    d->m.lacking = 0;
    for (int i = 0; i < d->now.points; i++)
        detector_place_point(d, i);
    detector_show_model(d);
}

/* The beginning of a running refresh, as far as it is not stored elsewhere; its slices run again after
 * loading (struct svi_renewal). */
static void detector_archive_renewal(struct svi_archive *a, struct svi_detector *d) {
    struct svi_renewal *r = d->renewal;
    bool off = false;
    svi_archive_bool(a, "refreshing", r ? &r->on : &off);
    if (!svi_archive_check(a, r || !off, "a refresh in parts, where it is done at once") || !r || !r->on)
        return;
    /* A refresh in slices never begins without a model; the slices would find nothing to work on. */
    svi_archive_check(a, d->ready && detector_may_refresh(d), "a refresh without a model");
    svi_archive_int(a, "refresh due", &r->due, 0, INT32_MAX);
    svi_archive_int(a, "refresh rows", &r->count, MIN_ROWS, d->calibration.ring.filled);
    svi_archive_int(a, "refresh columns", &r->columns, 0, INT32_MAX);
    svi_archive_uint64(a, "refresh random", &r->random.state);
    svi_archive_int(a, "refresh changed", &r->changed, 0, r->capacity);
    if (!svi_archive_ok(a))
        return;
    svi_archive_ints(a, "refresh places", r->place, r->changed, 0, d->calibration.ring.filled - 1);
    svi_archive_known(a, "refresh old", r->old, (int64_t)r->changed * d->o.d);
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    r->slices = (int)detector_slices(d->members, d->now.points, r->count);
    r->done = 0;
    svi_archive_check(a, r->due < r->slices, "a refresh is overdue");
}

/* The ranges, and the flags of categories if there are any. */
static void detector_archive_range(struct svi_archive *a, struct svi_detector *d) {
    bool categories = d->m.coordinates.category;
    svi_range_archive(a, &d->range, d->rows, d->calibration.ring.filled);
    svi_archive_bool(a, "has categories", &categories);
    if (!svi_archive_ok(a) || !categories)
        return;
    svi_archive_bytes(a, "categories", d->category, d->o.d);
    d->m.coordinates.category = d->category;
}

void svi_detector_archive(struct svi_archive *a, svi_detector *d) {
    /* Parts depend on earlier ones: points and `ready` in the counts, rows before the model, the model before
     * its refresh. */
    static void (*const parts[])(struct svi_archive *, struct svi_detector *) = {
        detector_archive_counts,    detector_archive_samples, detector_archive_run,
        detector_archive_candidate, detector_archive_change,  detector_archive_model,
        detector_archive_renewal,   detector_archive_range};
    svi_detector_claim_scratch(d);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && svi_archive_ok(a); i++)
        parts[i](a, d);
}
