/* The nearest of the last 200 and of the last 5000 rows: one ring of rows, and two ways to ask it.
 *
 * A class gets the share of the neighbours that are of it; a regression the mean of their targets, the first
 * member of three neighbours, the second of five. Rows are standardised as they were when they came. */
#include "bank/member_nearest.h"

#include "bank/neighbours.h"
#include "base/fail.h"

#define ROWS      5000 /* that are held */
#define RECENT    200  /* rows that the first member asks of two or more classes */
#define NEAREST   5
#define MAX_VOTES 3

struct nearest {
    struct svi_neighbours ring;
    int64_t from; /* a row's number with the host, less that in the ring */
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

/* What `count` neighbours say: their share of each class, as a score of a model; of a regression their mean.
 */
static void nearest_poll(const struct svi_member_context *c, const struct svi_neighbour *n, int count,
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

static void nearest_score(const struct svi_member_part *p, double *scores) {
    struct nearest *n = p->self;
    struct svi_neighbour last, of[NEAREST];
    const int found = svi_neighbours_find_both(&n->ring, p->c->z, RECENT, &last, NEAREST, of);
    if (p->c->regress)
        nearest_poll(p->c, of, found < MAX_VOTES ? found : MAX_VOTES, scores);
    else
        nearest_poll(p->c, &last, last.number >= 0, scores);
    nearest_poll(p->c, of, found, scores + p->c->stride);
}

/* Numbers of the host that no row came with, as those of samples that it had let go before the bank was made
 * again, are numbers in the ring all the same, so that the two differ by a constant. */
static svs_code nearest_align(struct nearest *n, const float *z, int64_t number, svs_error *err) {
    int64_t lacking = number - n->from - n->ring.pushed;
    if (n->ring.oldest < n->ring.pushed && (lacking < 0 || lacking > n->ring.capacity))
        svi_neighbours_empty(&n->ring);
    for (; n->ring.oldest < n->ring.pushed && lacking > 0; lacking--) {
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

/* `from` is in the state of every bank. */
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
            return "a sample that the host has let go is found among the neighbours";
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
