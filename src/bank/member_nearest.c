/* The nearest of the last 200, 1000 and 5000 rows: one ring of rows, and three ways to query it.
 *
 * A class scores by its share of the neighbours; a regression takes the mean of their targets, of three
 * neighbours for the first member and of five for the others. Rows are standardised as they were when they
 * were learned. */
#include "bank/member_nearest.h"

#include "bank/neighbours.h"
#include "base/fail.h"

#define MEMBERS   3
#define ROWS      5000 /* capacity of the ring */
#define RECENT    200  /* rows that the first member searches, with classes */
#define SHORT     1000 /* rows that the second member searches */
#define NEAREST   5    /* neighbours of the second and third member */
#define MAX_VOTES 3    /* neighbours of the first member in a regression */

struct nearest {
    struct svi_neighbours ring;
    int64_t from; /* a row's number at the host minus its number in the ring */
};

static svs_code nearest_init(const struct svi_member_part *p, int d, svs_error *err) {
    struct nearest *n = p->self;
    return svi_neighbours_init(&n->ring, ROWS, d, p->c->host->isa, err);
}

static void nearest_clear(const struct svi_member_part *p) {
    struct nearest *n = p->self;
    if (!p->on)
        svi_neighbours_clear(&n->ring);
}

static void nearest_reset(const struct svi_member_part *p) {
    struct nearest *n = p->self;
    svi_neighbours_empty(&n->ring);
}

static svs_code nearest_grow(const struct svi_member_part *p, int d, svs_error *err) {
    struct nearest *n = p->self;
    return svi_neighbours_grow(&n->ring, d, err);
}

static void nearest_renew(const struct svi_member_part *p, int feature) {
    struct nearest *n = p->self;
    svi_neighbours_renew(&n->ring, feature);
}

/* Scores of `count` neighbours: 2 share - 1 for each class (one score for class 1 of two), or the mean
 * target. Without neighbours 0, or the mean of all targets. */
static void nearest_vote(const struct svi_member_context *c, const struct svi_neighbour *n, int count,
                         double *scores) {
    if (c->regress) {
        double sum = 0;
        for (int i = 0; i < count; i++)
            sum += n[i].target;
        scores[0] = count ? sum / count : c->center;
        return;
    }
    for (int r = 0; r < c->rows; r++) {
        const int class = c->rows == 1 ? 1 : r;
        int votes = 0;
        for (int i = 0; i < count; i++)
            votes += n[i].label == class;
        scores[r] = count ? 2.0 * votes / count - 1 : 0;
    }
}

/* One search serves all members. The first: with targets the mean of three of all rows, because one
 * neighbour's target is too noisy; with classes the nearest recent row. */
static void nearest_score(const struct svi_member_part *p, double *scores) {
    struct nearest *n = p->self;
    struct svi_neighbours_query of[MEMBERS] = {
        {.recent = p->c->regress ? -1 : RECENT, .k = p->c->regress ? MAX_VOTES : 1},
        {.recent = SHORT, .k = NEAREST},
        {.recent = -1, .k = NEAREST}};
    svi_neighbours_find(&n->ring, p->c->z, of, MEMBERS);
    for (int m = 0; m < MEMBERS; m++)
        nearest_vote(p->c, of[m].row, of[m].found, scores + (size_t)m * (size_t)p->c->stride);
}

/* Keeps numbers of host and ring a constant apart. The host may skip numbers, for example those of samples
 * that it removed before the bank was made: the ring gets rows under them that are never found. Gaps
 * beyond the capacity, or numbers that went back, empty the ring instead, after which `from` is set again. */
static svs_code nearest_align(struct nearest *n, const float *z, int64_t number, svs_error *err) {
    int64_t missing = number - n->from - n->ring.pushed;
    if (n->ring.oldest < n->ring.pushed && (missing < 0 || missing > n->ring.capacity))
        svi_neighbours_empty(&n->ring);
    for (; n->ring.oldest < n->ring.pushed && missing > 0; missing--) {
        SVI_TRY(svi_neighbours_reserve(&n->ring, err));
        svi_neighbours_remove(&n->ring, svi_neighbours_push(&n->ring, z, -1, 0));
    }
    return svi_neighbours_reserve(&n->ring, err);
}

static svs_code nearest_learn(const struct svi_member_part *p, const struct svi_member_lesson *l,
                              svs_error *err) {
    struct nearest *n = p->self;
    const struct svi_held_sample *s = l->held;
    SVI_TRY(nearest_align(n, p->c->z, s->number, err));
    n->from = s->number - svi_neighbours_push(&n->ring, p->c->z, s->label, s->target);
    return SVS_OK;
}

static void nearest_take_back(const struct svi_member_part *p, const struct svi_held_sample *s) {
    struct nearest *n = p->self;
    svi_neighbours_remove(&n->ring, s->number - n->from);
}

/* `from` is saved even where no member runs: the archive's layout does not depend on it. */
static void nearest_archive(struct svi_archive *a, const struct svi_member_part *p) {
    struct nearest *n = p->self;
    svi_archive_int64(a, "neighbours from", &n->from, INT64_MIN / 2, INT64_MAX / 2);
    if (p->on)
        svi_neighbours_archive(a, &n->ring, p->c->regress ? 0 : p->c->host->max_classes);
}

static bool nearest_fits(const struct svi_member_part *p) {
    const struct nearest *n = p->self;
    return n->ring.d == p->c->d;
}

static const char *nearest_check(const struct svi_member_part *p, const svs_learner *host, double error) {
    const struct nearest *n = p->self;
    const double *row;
    int64_t number;
    (void)error;
    for (int64_t i = 0; svi_learner_held_row(host, i, &row, &number); i++)
        if (!row && svi_neighbours_row(&n->ring, number - n->from))
            return "the neighbours hold a sample that the host has dropped";
    return NULL;
}

static double nearest_bytes(const struct svi_member_part *p) {
    return svi_neighbours_memory(ROWS, p->c->d);
}

const struct svi_member_ops svi_member_nearest = {
    .size = sizeof(struct nearest),
    .init = nearest_init,
    .clear = nearest_clear,
    .reset = nearest_reset,
    .grow = nearest_grow,
    .renew = nearest_renew,
    .score = nearest_score,
    .learn = nearest_learn,
    .take_back = nearest_take_back,
    .archive = nearest_archive,
    .fits = nearest_fits,
    .check = nearest_check,
    .bytes = nearest_bytes,
};

const float *svi_member_nearest_row(const struct svi_member_context *c, int64_t number) {
    const struct nearest *n = svi_member_part_of(c, &svi_member_nearest)->self;
    return svi_neighbours_row(&n->ring, number - n->from);
}
