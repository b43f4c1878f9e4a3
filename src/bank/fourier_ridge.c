/* Least squares on Fourier features, with the solution spread over samples.
 *
 * G + nu I = L L' is factored row by row. Each sample learned after the one that started it factors
 * at least MIN_ROWS rows. Then the right-hand sides, copied at the start, are solved. w changes
 * with the last of these steps, at a sample number that follows from the shape (ridge_steps). G
 * must not change meanwhile, so new samples wait in the block of learner/gram.h. The static
 * assertion below guarantees that the solution is done before the block is full and is flushed into
 * G. Therefore an archive holds only the right-hand sides and the samples since the start. The rows
 * of L follow from G by the same steps, to the last bit.
 *
 * A helper gets a full block, and all steps of a solution that starts with it, as one task. The
 * result is adopted at the same sample number. The sums and their order are the same, so the bits
 * do not depend on the thread. An archive joins the task first and therefore does not show it.
 *
 * Order: arrays, solving (ridge_step), the task, features and classes, samples, the archive. */
#include "bank/fourier_ridge.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "linalg/cholesky.h"

#define NU               0.5
#define FIRST_SOLVE      16
#define MIN_ROWS         32  /* rows of the factor in a step: 0.1 ms at 256 features */
#define MAX_FACTOR_STEPS 32  /* samples over which the factor is spread */
#define MAX_SOLVE_STEPS  16  /* samples over which the right-hand sides are spread */
#define PAGE_DOUBLES     512 /* doubles in the smallest page */
#define MAX_WEIGHT                                                                                           \
    1e6 /* cap of a sample's weight, so that rounding of the sums leaves G + nu I positive definite */

enum { ROWS, DIM, NEXT };
static const struct svi_array ridge_table[] = {
#define OWNER struct svi_fourier_ridge
    SVI_ARRAY(OWNER, w, "w", SVI_AXIS(ROWS), SVI_AXIS(DIM)),
    SVI_ARRAY(OWNER, sides, "sides", SVI_AXIS(NEXT), SVI_AXIS(DIM)),
    SVI_ARRAY(OWNER, next, NULL, SVI_AXIS(ROWS), SVI_AXIS(DIM)),
    SVI_ARRAY(OWNER, factor, NULL, SVI_AXIS(DIM), SVI_AXIS(DIM)),
    SVI_ARRAY(OWNER, triangle, NULL, SVI_AXIS_TRIANGLE(DIM)),
    SVI_ARRAY(OWNER, f, NULL, SVI_AXIS(DIM)),
#undef OWNER
};
static const struct svi_arrays ridge_arrays =
    SVI_ARRAYS_ALIGNED(ridge_table, "least squares on Fourier features");

static int ridge_rows_of(svs_task task, int classes) {
    return task == SVS_REGRESS || classes < 3 ? 1 : classes;
}

static int ridge_rows(const struct svi_fourier_ridge *r) {
    return ridge_rows_of(r->task, r->classes);
}

svs_code svi_fourier_ridge_init(struct svi_fourier_ridge *r, svs_task task, int features, int classes,
                                svs_isa isa, svs_error *err) {
    *r = (struct svi_fourier_ridge){.task = task,
                                    .kernels = svi_kernels_get(isa),
                                    .dim = features + 1,
                                    .row_capacity = ridge_rows_of(task, classes)};
    const int32_t dims[] = {r->row_capacity, r->dim, r->row_capacity};
    svs_code code = svi_gram_init(&r->gram, r->dim, task == SVS_REGRESS ? 1 : classes, err);
    if (code == SVS_OK)
        code = svi_arrays_alloc(&ridge_arrays, r, dims, err);
    if (code != SVS_OK)
        svi_fourier_ridge_clear(r);
    return code;
}

void svi_fourier_ridge_clear(struct svi_fourier_ridge *r) {
    svi_fourier_ridge_join(r);
    svi_gram_clear(&r->gram);
    svi_arrays_free(&ridge_arrays, r);
    svi_free(r->detached);
    *r = (struct svi_fourier_ridge){0};
}

void svi_fourier_ridge_empty(struct svi_fourier_ridge *r) {
    svi_fourier_ridge_join(r);
    svi_gram_zero(&r->gram);
    /* Until the first solution all scores are 0. */
    memset(r->w, 0, (size_t)r->row_capacity * (size_t)r->dim * sizeof *r->w);
    r->learned = r->solved = 0;
    r->solving = false;
}

/* ---- solving */

_Static_assert(MAX_FACTOR_STEPS + MAX_SOLVE_STEPS < SVI_GRAM_BLOCK, "G stays as it is until it is solved");

/* Rows of the factor, or right-hand sides, in a step; and the steps of a solution. */
static int ridge_factor_rows(const struct svi_fourier_ridge *r) {
    const int per_step = (r->dim + MAX_FACTOR_STEPS - 1) / MAX_FACTOR_STEPS;
    return per_step > MIN_ROWS ? per_step : MIN_ROWS;
}

static int ridge_sides(const struct svi_fourier_ridge *r) {
    return (ridge_rows(r) + MAX_SOLVE_STEPS - 1) / MAX_SOLVE_STEPS;
}

static int ridge_steps(const struct svi_fourier_ridge *r) {
    const int factor = ridge_factor_rows(r), sides = ridge_sides(r);
    return (r->dim + factor - 1) / factor + (ridge_rows(r) + sides - 1) / sides;
}

/* The start of a solution at this sample, in two parts: the sums by class, which the next sample changes,
 * and what needs all samples so far to be in G. The first column of G is the sum over all classes. */
static void ridge_note_sums(struct svi_fourier_ridge *r) {
    const size_t n = (size_t)r->dim;
    const bool regress = r->task == SVS_REGRESS;
    for (size_t k = 0; k < (size_t)ridge_rows(r); k++) {
        const double *own = r->gram.sums + (regress ? 0 : ridge_rows(r) == 1 ? 1 : k) * n;
        for (size_t j = 0; j < n; j++)
            r->sides[k * n + j] = regress ? own[j] : 2 * own[j];
    }
    r->solving = true;
    r->singular = false;
    r->begun = r->learned;
    r->progress = 0;
}

static void ridge_note_totals(struct svi_fourier_ridge *r) {
    const size_t n = (size_t)r->dim, rows = (size_t)ridge_rows(r);
    for (size_t i = 0; r->task != SVS_REGRESS && i < rows * n; i++)
        r->sides[i] -= r->gram.g[i % n * n];
    memcpy(r->next, r->sides, rows * n * sizeof *r->next);
}

static void ridge_solve_begin(struct svi_fourier_ridge *r) {
    /* All samples so far into G; the block is empty then, and its capacity is the time limit of the
     * solution. */
    svi_gram_flush(&r->gram, r->kernels);
    ridge_note_sums(r);
    ridge_note_totals(r);
}

/* Factors the next rows of G + nu I. False: a pivot is not positive; with bounded weights rounding would
 * need 1e16 samples for that. */
static bool ridge_factor_step(struct svi_fourier_ridge *r) {
    const int n = r->dim, from = r->progress, count = ridge_factor_rows(r),
              to = from + count < n ? from + count : n;
    for (int i = from; i < to; i++) {
        double *row = r->factor + (size_t)i * (size_t)n;
        memcpy(row, r->gram.g + (size_t)i * (size_t)n, (size_t)(i + 1) * sizeof *row);
        row[i] += NU;
    }
    r->progress = to;
    return svi_factor_rows(r->factor, n, from, to);
}

/* One step of the solution: rows of the factor, or right-hand sides. None when there is no more to do. */
static void ridge_step(struct svi_fourier_ridge *r) {
    const int n = r->dim, end = n + ridge_rows(r), count = ridge_sides(r);
    if (r->singular)
        return;
    if (r->progress < n) {
        r->singular = !ridge_factor_step(r);
        return;
    }
    for (int i = 0; i < count && r->progress < end; i++, r->progress++)
        svi_solve_factor(r->factor, n, r->next + (size_t)(r->progress - n) * (size_t)n);
}

static void ridge_solve(struct svi_fourier_ridge *r) {
    while (r->progress < r->dim + ridge_rows(r) && !r->singular)
        ridge_step(r);
}

/* Ends the solution. w changes at once, so a score never mixes two solutions. */
static void ridge_finish(struct svi_fourier_ridge *r) {
    svi_fourier_ridge_join(r);
    if (!r->solving)
        return;
    ridge_solve(r);
    r->solving = false;
    if (r->singular)
        return;
    memcpy(r->w, r->next, (size_t)ridge_rows(r) * (size_t)r->dim * sizeof *r->w);
    r->solved = r->begun;
}

/* ---- the task */

static void ridge_task(void *user) {
    struct svi_fourier_ridge *r = user;
    svi_gram_add_detached(&r->gram, r->detached, r->detached_count);
    if (!r->begins)
        return;
    ridge_note_totals(r);
    ridge_solve(r);
}

/* Hands the gathered samples to the helper, with the solution that begins with them. False: not worth it, or
 * no memory for them, which is no failure. */
static bool ridge_hand_over(struct svi_fourier_ridge *r, svi_follower *helper, bool begins) {
    if (!helper || r->gram.filled == 0)
        return false;
    svi_fourier_ridge_join(r);
    if (!r->detached)
        r->detached = svi_alloc_array((size_t)SVI_GRAM_BLOCK * (size_t)r->dim, sizeof *r->detached);
    r->detached_count = r->detached ? svi_gram_detach(&r->gram, r->detached) : 0;
    if (r->detached_count == 0)
        return false;
    if (begins)
        ridge_note_sums(r);
    r->begins = begins;
    r->helper = helper;
    svi_follower_post(helper, ridge_task, r);
    return true;
}

void svi_fourier_ridge_join(struct svi_fourier_ridge *r) {
    if (r->helper)
        svi_follower_finish(r->helper);
    r->helper = NULL;
}

/* ---- features and classes */

/* An unused ridge is allocated again without a copy, because most of its pages have never been touched. */
svs_code svi_fourier_ridge_grow(struct svi_fourier_ridge *r, int features, svs_error *err) {
    struct svi_gram wider;
    const bool unused =
        r->learned == 0 &&
        r->classes < 3; /* from three classes on w holds constants (svi_fourier_ridge_classes) */
    const int32_t from[] = {r->row_capacity, unused ? 0 : r->dim, r->row_capacity},
                  to[] = {r->row_capacity, features + 1, r->row_capacity};
    if (features + 1 <= r->dim)
        return SVS_OK;
    /* The factor belongs to the old dimension. */
    ridge_finish(r);
    svs_code code = svi_gram_init_wider(&wider, features + 1, r->gram.groups, &r->gram, err);
    if (code != SVS_OK)
        return code;
    /* The new sums are ready before the arrays change: a failure of either leaves the dimension as it was. */
    code = svi_arrays_resize(&ridge_arrays, r, from, to, err);
    if (code != SVS_OK) {
        svi_gram_clear(&wider);
        return code;
    }
    /* Empty sums change places; others are copied into the wider ones. */
    if (unused) {
        svi_gram_clear(&r->gram);
        r->gram = wider;
    } else {
        svi_gram_adopt(&r->gram, &wider);
    }
    r->dim = features + 1;
    svi_free(r->detached);
    r->detached = NULL;
    return SVS_OK;
}

void svi_fourier_ridge_forget_feature(struct svi_fourier_ridge *r, int j) {
    ridge_finish(r);
    svi_gram_clear_coordinate(&r->gram, r->kernels, 1 + j);
    for (int k = 0; k < ridge_rows(r); k++)
        r->w[(size_t)k * (size_t)r->dim + 1 + (size_t)j] = 0;
}

/* Two classes share one row, which is for the second. With the third class they become two rows: w for the
 * second and -w for the first. A new class gets the row that least squares gives a class without samples:
 * target -1 everywhere, about w = (-1, 0, ...). */
void svi_fourier_ridge_classes(struct svi_fourier_ridge *r, int classes) {
    const size_t n = (size_t)r->dim;
    if (classes <= r->classes)
        return;
    ridge_finish(r);
    if (r->task == SVS_CLASSIFY && r->classes < 3 && classes >= 3) {
        memcpy(r->w + n, r->w, n * sizeof *r->w);
        for (size_t j = 0; j < n; j++)
            r->w[j] = -r->w[j];
    }
    /* Rows of the classes that are new, and only where rows are one a class. */
    for (int k = r->classes < 3 ? 2 : r->classes; r->task == SVS_CLASSIFY && k < classes && classes >= 3;
         k++) {
        memset(r->w + (size_t)k * n, 0, n * sizeof *r->w);
        r->w[(size_t)k * n] = -1;
    }
    r->classes = classes;
}

/* ---- samples */

static void ridge_insert(struct svi_fourier_ridge *r, const float *phi) {
    /* f = (1, phi), in double precision for sums over all samples. */
    r->f[0] = 1;
    for (int j = 1; j < r->dim; j++)
        r->f[j] = (double)phi[j - 1];
}

void svi_fourier_ridge_score(struct svi_fourier_ridge *r, const float *phi, double *scores) {
    ridge_insert(r, phi);
    for (int k = 0; k < ridge_rows(r); k++)
        r->kernels->rows_dot(r->w + (size_t)k * (size_t)r->dim, (size_t)r->dim, 1, r->dim, r->f, &scores[k]);
}

void svi_fourier_ridge_touch(struct svi_fourier_ridge *r, int part, int parts) {
    const size_t count = (size_t)r->dim * (size_t)r->dim, from = count * (size_t)part / (size_t)parts,
                 to = count * (size_t)(part + 1) / (size_t)parts;
    for (size_t i = from; i < to; i += PAGE_DOUBLES) {
        /* A write of the same value: volatile, or the compiler drops it. */
        volatile double *g = r->gram.g + i, *factor = r->factor + i;
        *g = *g;
        *factor = *factor;
    }
}

static double ridge_weight(double weight) {
    return weight < MAX_WEIGHT ? weight : MAX_WEIGHT;
}

/* Does a solution begin at sample n? Every 2^k samples at the start, when each sample changes much. */
static bool ridge_begins(int64_t n) {
    return n % (n <= SVI_FOURIER_RIDGE_LARGE ? SVI_FOURIER_RIDGE_EVERY : SVI_FOURIER_RIDGE_SELDOM) == 0 ||
           (n >= FIRST_SOLVE && n < SVI_FOURIER_RIDGE_EVERY && (n & (n - 1)) == 0);
}

void svi_fourier_ridge_learn(struct svi_fourier_ridge *r, const float *phi, int label, double target,
                             double weight, svi_follower *helper) {
    ridge_insert(r, phi);
    svi_gram_gather(&r->gram, r->kernels, r->f, ridge_weight(weight), label, target);
    r->learned++;
    /* First a step of the solution in progress, then perhaps a new one. */
    if (r->solving && !r->helper)
        ridge_step(r);
    if (r->solving && r->learned - r->begun >= ridge_steps(r))
        ridge_finish(r);
    const bool begins = ridge_begins(r->learned);
    if (!begins && r->gram.filled < SVI_GRAM_BLOCK)
        return;
    if (ridge_hand_over(r, helper, begins))
        return;
    svi_fourier_ridge_join(r);
    if (begins)
        ridge_solve_begin(r);
    else
        svi_gram_flush(&r->gram, r->kernels);
}

void svi_fourier_ridge_take_back(struct svi_fourier_ridge *r, const float *phi, int label, double target,
                                 double weight) {
    svi_fourier_ridge_join(r);
    ridge_insert(r, phi);
    svi_gram_take(&r->gram, r->kernels, r->f, ridge_weight(weight), label, target);
    /* At once: a sample that is forgotten must not remain in w until the next solution. */
    ridge_solve_begin(r);
    ridge_finish(r);
}

/* ---- the archive */

/* Loading: repeats the steps that were done; their bits follow from G and the right-hand sides. */
static void ridge_resume(struct svi_archive *a, struct svi_fourier_ridge *r) {
    const int64_t steps = r->learned - r->begun;
    r->progress = 0;
    r->singular = false;
    memcpy(r->next, r->sides, (size_t)ridge_rows(r) * (size_t)r->dim * sizeof *r->next);
    for (int64_t i = 0; i < steps && steps < ridge_steps(r); i++)
        ridge_step(r);
    r->solving =
        svi_archive_check(a, steps < ridge_steps(r) && !r->singular, "what is being solved has no solution");
}

void svi_fourier_ridge_archive(struct svi_archive *a, struct svi_fourier_ridge *r) {
    svi_fourier_ridge_join(r);
    /* `solving` is read into a local: the object is solving only when ridge_resume has its factor again. */
    bool solving = r->solving;
    svi_archive_int(a, "classes", &r->classes, 0, r->task == SVS_REGRESS ? 0 : r->gram.groups);
    svi_archive_int64(a, "learned", &r->learned, 0, INT64_MAX / 2);
    svi_archive_int64(a, "solved", &r->solved, 0, INT64_MAX / 2);
    svi_archive_check(a, r->solved <= r->learned, "more samples are solved for than learned");
    svi_archive_bool(a, "solving", &solving);
    if (!svi_archive_ok(a))
        return;
    if (solving)
        svi_archive_int64(a, "begun", &r->begun, 0, r->learned);
    /* The right-hand sides are saved only while a solution is in progress. */
    const int32_t dims[] = {r->row_capacity, r->dim, r->row_capacity},
                  used[] = {ridge_rows(r), r->dim, solving ? ridge_rows(r) : 0};
    svi_arrays_archive(a, &ridge_arrays, r, dims, used);
    svi_gram_archive(a, &r->gram, r->task == SVS_REGRESS ? 1 : r->classes, r->triangle);
    if (solving && svi_archive_loading(a) && svi_archive_ok(a))
        ridge_resume(a, r);
}

double svi_fourier_ridge_memory(svs_task task, int features, int classes) {
    const int rows = ridge_rows_of(task, classes);
    const int32_t dims[] = {rows, features + 1, rows};
    return svi_gram_memory(features + 1, task == SVS_REGRESS ? 1 : classes) +
           (double)SVI_GRAM_BLOCK * (features + 1) * (double)sizeof(double) +
           (double)svi_arrays_bytes(&ridge_arrays, dims);
}
