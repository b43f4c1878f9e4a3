/* The members that are boosted trees (trees/boost.h): one fitted to the last 5000 labelled rows, and one to
 * all that are kept, at most 20000.
 *
 * The stream's thread only keeps the rows and scores with the forests at hand. A fit runs on a worker and is
 * taken up between two samples, at a sample number that was fixed when it began (tree_schedule.h). If it is
 * not ready then, the stream waits. Whatever rewrites rows (new columns, a renewed one, a reset) and the
 * archive wait for the running fit too; waiting never changes a result.
 *
 * In a regression column 0 is the last target before the row, and the columns of the stream follow.
 *
 * A sample that is taken back is left out from the next fit on. A forest keeps the classes and columns that
 * it was fitted with until the next one; a renewed column counts as 0 in it, as in the rows. */
#include "bank/member_trees.h"

#include <math.h>
#include <string.h>

#include "bank/half_logits.h"
#include "base/alloc.h"
#include "base/fail.h"

#define RECENT_ROWS        5000
#define MAX_LEAVES         31  /* of a fit to more rows than RECENT_ROWS */
#define LEAVES_MAX_CLASSES 4   /* of a stream whose fits have them */
#define SURE               3.0 /* limit of a score: half the log odds */

/* A forest in use. */
struct trees_forest {
    struct svi_forest of; /* `rows` 0: none yet */
    int64_t version;      /* the labelled sample after which its fit began; 0: none */
    uint8_t *masked;      /* by column: renewed since the fit began, so that it counts as 0 */
    bool masks;           /* one of them is set */
};

enum { PENDING = SVI_TREES_KINDS, FORESTS }; /* the pending one has masks and a version only */

struct trees {
    struct svi_tree_rows rows;
    struct svi_tree_schedule schedule;
    struct svi_tree_fits fits;
    struct trees_forest forest[FORESTS];
    float *row;      /* columns: the row at hand */
    float *masked;   /* columns: a copy without the masked values */
    double *softmax; /* max_classes */
    double last;     /* the last target as the row at hand was scored */
};

static int trees_columns(const struct svi_member_context *c) {
    return c->host->max_features + c->regress;
}

/* ---- memory */

static svs_code trees_init(const struct svi_member_part *p, int d, svs_error *err) {
    struct trees *t = p->self;
    const size_t columns = (size_t)trees_columns(p->c);
    const size_t classes = (size_t)(p->c->regress ? 1 : p->c->host->max_classes);
    bool good = (t->row = svi_alloc_array(columns, sizeof *t->row)) &&
                (t->masked = svi_alloc_array(columns, sizeof *t->masked)) &&
                (t->softmax = svi_alloc_array(classes, sizeof *t->softmax));
    for (int k = 0; k < FORESTS && good; k++)
        good = (t->forest[k].masked = svi_alloc_array(columns, 1));
    return good ? svi_tree_rows_grow(&t->rows, d + p->c->regress, err)
                : svi_fail_memory(err, "the boosted trees");
}

static void trees_clear(const struct svi_member_part *p) {
    struct trees *t = p->self;
    if (p->on)
        return;
    svi_tree_fits_clear(&t->fits);
    svi_tree_rows_clear(&t->rows);
    for (int k = 0; k < FORESTS; k++) {
        svi_forest_clear(&t->forest[k].of);
        svi_free(t->forest[k].masked);
    }
    svi_free(t->row);
    svi_free(t->masked);
    svi_free(t->softmax);
    *t = (struct trees){0};
}

static void trees_unmask(struct trees *t, int k) {
    if (t->forest[k].masks)
        memset(t->forest[k].masked, 0, (size_t)t->rows.d);
    t->forest[k].masks = false;
}

static void trees_reset(const struct svi_member_part *p) {
    struct trees *t = p->self;
    svi_tree_fits_abandon(&t->fits);
    for (int k = 0; k < FORESTS; k++) {
        svi_forest_clear(&t->forest[k].of);
        t->forest[k].version = 0;
        trees_unmask(t, k);
    }
    svi_tree_rows_empty(&t->rows);
    t->schedule = (struct svi_tree_schedule){0};
    t->last = 0;
}

static svs_code trees_grow(const struct svi_member_part *p, int d, svs_error *err) {
    struct trees *t = p->self;
    if (d + p->c->regress == t->rows.d)
        return SVS_OK;
    svi_tree_fits_settle(&t->fits);
    return svi_tree_rows_grow(&t->rows, d + p->c->regress, err);
}

static void trees_renew(const struct svi_member_part *p, int feature) {
    struct trees *t = p->self;
    const int column = feature + p->c->regress;
    if (column >= t->rows.known)
        return;
    svi_tree_fits_settle(&t->fits);
    svi_tree_rows_renew(&t->rows, column);
    for (int k = 0; k < FORESTS; k++) {
        t->forest[k].masked[column] = 1;
        t->forest[k].masks = true;
    }
}

/* ---- scores */

static double trees_bounded(double v) {
    return fmin(fmax(v, -SURE), SURE);
}

/* Scores of one forest. Its classes are the first of those known now. */
static void trees_score_one(const struct svi_member_part *p, const struct trees_forest *f, double *scores) {
    struct trees *t = p->self;
    const struct svi_member_context *c = p->c;
    const float *x = t->row;
    if (f->of.rows == 0) {
        for (int r = 0; r < c->rows; r++)
            scores[r] = c->regress ? c->center : 0;
        return;
    }
    if (f->masks) {
        memcpy(t->masked, x, (size_t)t->rows.d * sizeof *x);
        for (int j = 0; j < t->rows.d; j++)
            if (f->masked[j])
                t->masked[j] = 0;
        x = t->masked;
    }
    svi_forest_score(&f->of, x, t->softmax);
    if (c->regress)
        scores[0] = t->softmax[0] + t->rows.target_origin;
    else if (f->of.rows == 1 && c->rows == 1)
        scores[0] = trees_bounded(0.5 * t->softmax[0]);
    else if (f->of.rows == 1) {
        /* Two classes at the fit, more now: the odds of class 1 against class 0. */
        const double f1 = trees_bounded(0.5 * t->softmax[0]);
        for (int r = 0; r < c->rows; r++)
            scores[r] = r > 1 ? -SURE : r == 1 ? f1 : -f1;
    } else
        svi_half_logits(t->softmax, f->of.rows, c->rows, SURE, scores);
}

static void trees_score(const struct svi_member_part *p, double *scores) {
    struct trees *t = p->self;
    double *const all = scores + p->c->stride;
    /* Columns without an origin are not in any forest. */
    t->last = p->c->last;
    svi_tree_rows_convert(&t->rows, p->c->regress ? &t->last : NULL, p->c->x, t->row);
    trees_score_one(p, &t->forest[SVI_TREES_RECENT], scores);
    /* Until there are more rows than the first member takes, both would be fitted to the same. */
    if (t->forest[SVI_TREES_ALL].of.rows)
        trees_score_one(p, &t->forest[SVI_TREES_ALL], all);
    else
        memcpy(all, scores, (size_t)p->c->rows * sizeof *all);
}

/* ---- learning */

/* Options of a fit to `rows` rows, of which a leaf has min_rows at least: more leaves would count as work
 * that is never done. */
static struct svi_boost_options trees_options(const struct svi_member_context *c, int64_t rows) {
    struct svi_boost_options o = svi_boost_defaults(c->host->task, c->regress ? 0 : c->classes);
    const double most = fmax(2, (double)rows / o.min_rows);
    /* With many classes a row is scored by a tree of each: larger ones would cost the stream too much. */
    o.leaves = rows > RECENT_ROWS && c->classes <= LEAVES_MAX_CLASSES ? MAX_LEAVES : o.leaves;
    o.leaves = most < o.leaves ? (int)most : o.leaves;
    return o;
}

/* Counted work of a fit in nanoseconds. */
static double trees_work(const struct svi_member_context *c, const struct svi_boost_options *o, int64_t rows,
                         int d) {
    const double trees = (double)o->rounds * (c->regress || c->classes <= 2 ? 1 : c->classes);
    return SVI_TREE_UPDATE * (double)svi_boost_cost(o, rows, d) + SVI_TREE_ROW * trees * (double)rows;
}

/* Takes up the fit that is due after sample n, and begins the next one. */
static svs_code trees_follow(const struct svi_member_part *p, svs_error *err) {
    struct trees *t = p->self;
    struct svi_tree_schedule *s = &t->schedule;
    const int64_t n = t->rows.pushed;
    const int64_t rows[] = {t->rows.kept < RECENT_ROWS ? t->rows.kept : RECENT_ROWS, t->rows.kept};
    svs_code code = SVS_OK;
    if (s->due > 0 && n >= s->due) {
        struct trees_forest *f = &t->forest[s->kind], *pending = &t->forest[PENDING];
        code = svi_tree_fits_take(&t->fits, &f->of, err);
        if (code == SVS_OK) {
            /* Columns that were renewed while it ran are masked in the new forest. */
            const struct trees_forest before = *f;
            f->masked = pending->masked;
            f->masks = pending->masks;
            f->version = s->last[s->kind];
            pending->masked = before.masked;
            pending->masks = before.masks;
            trees_unmask(t, PENDING);
        }
        svi_tree_schedule_end(s);
    }
    const int kind = p->c->regress || p->c->classes > 1 ? svi_tree_schedule_next(s, n, rows) : -1;
    if (kind < 0)
        return code;
    const int64_t count = n - t->rows.oldest < rows[kind] ? n - t->rows.oldest : rows[kind];
    const struct svi_boost_options o = trees_options(p->c, count);
    trees_unmask(t, PENDING);
    svi_tree_schedule_begin(s, kind, n, trees_work(p->c, &o, count, t->rows.d), p->c->cost);
    if (svi_tree_fits_begin(&t->fits, &o, &t->rows, rows[kind], p->c->threads, err) != SVS_OK) {
        svi_tree_schedule_end(s); /* it has not begun; its turn is over */
        return SVS_NO_MEMORY;
    }
    return code;
}

static svs_code trees_learn(const struct svi_member_part *p, const struct svi_member_lesson *l,
                            svs_error *err) {
    struct trees *t = p->self;
    const struct svi_held_sample *s = l->held;
    /* The place of the new row may be one that the running fit reads, where fits are long and samples fast.
     */
    if (svi_tree_rows_rewrites(&t->rows) || svi_tree_fits_reads_next(&t->fits, &t->rows))
        svi_tree_fits_settle(&t->fits);
    svi_tree_rows_push(&t->rows, &(struct svi_tree_row){.first = p->c->regress ? &t->last : NULL,
                                                        .x = l->sample->x,
                                                        .number = s->number,
                                                        .target = p->c->regress ? s->target : 0,
                                                        .weight = s->weight,
                                                        .label = p->c->regress ? -1 : s->label});
    return trees_follow(p, err);
}

static void trees_take_back(const struct svi_member_part *p, const struct svi_held_sample *s) {
    struct trees *t = p->self;
    svi_tree_rows_remove(&t->rows, s->number);
}

/* ---- the archive */

static void trees_archive_forest(struct svi_archive *a, const struct svi_member_part *p, int k,
                                 struct svi_forest *of) {
    struct trees *t = p->self;
    struct trees_forest *f = &t->forest[k];
    int rows = of->rows;
    svi_archive_int(a, "scores", &rows, 0, p->c->regress ? 1 : p->c->host->max_classes);
    svi_archive_int64(a, "version", &f->version, 0, SVI_COUNT_MAX);
    if (!svi_archive_ok(a))
        return;
    svi_forest_archive(a, of, rows, t->rows.known);
    svi_archive_bool(a, "masks", &f->masks);
    if (f->masks)
        svi_archive_bytes(a, "masked", f->masked, t->rows.d);
}

/* Waits for the running fit: its result is saved as one that is ready, and is taken up at its number. */
static void trees_archive(struct svi_archive *a, const struct svi_member_part *p) {
    struct trees *t = p->self;
    if (!p->on || (a->loading && trees_grow(p, p->c->d, a->err) != SVS_OK))
        return;
    svi_tree_fits_settle(&t->fits);
    int failure = t->fits.ready ? (int)t->fits.error.code : SVS_OK;
    svi_tree_rows_archive(a, &t->rows, p->c->regress ? 0 : p->c->host->max_classes);
    svi_tree_schedule_archive(a, &t->schedule);
    for (int k = 0; k < SVI_TREES_KINDS && svi_archive_ok(a); k++)
        trees_archive_forest(a, p, k, &t->forest[k].of);
    svi_archive_bool(a, "fitted", &t->fits.ready);
    svi_archive_int(a, "failure", &failure, 0, SVS_CODE_COUNT - 1);
    trees_archive_forest(a, p, PENDING, &t->fits.out);
    if (a->loading && svi_archive_ok(a))
        t->fits.error.code = (svs_code)failure;
    svi_archive_check(a, t->fits.ready == (t->schedule.due > 0), "a fit of trees is due, but did not run");
}

static bool trees_fits(const struct svi_member_part *p) {
    const struct trees *t = p->self;
    return t->rows.d == p->c->d + p->c->regress;
}

static const char *trees_check(const struct svi_member_part *p, const svs_learner *host, double error) {
    const struct trees *t = p->self;
    const double *row;
    int64_t number;
    (void)error;
    for (int64_t i = 0; svi_learner_held_row(host, i, &row, &number); i++)
        if (!row && svi_tree_rows_live(&t->rows, number))
            return "the rows of the trees hold a sample that the host has dropped";
    return NULL;
}

/* svi_boost_memory covers one fit and its forest; two more are in use. */
static double trees_bytes(const struct svi_member_part *p) {
    const int d = p->c->d + p->c->regress;
    const int64_t rows = svi_tree_rows_kept(d);
    const struct svi_boost_options o = trees_options(p->c, rows);
    const double trees = (double)o.rounds * (p->c->regress || p->c->classes <= 2 ? 1 : p->c->classes);
    return svi_tree_rows_memory(d) + (double)(rows + svi_tree_rows_slack(d)) + 12.0 * trees_columns(p->c) +
           svi_boost_memory(&o, rows, d) +
           SVI_TREES_KINDS * trees * (64.0 * o.leaves + 512); /* of a tree: nodes and masks */
}

const struct svi_member_ops svi_member_trees = {
    .size = sizeof(struct trees),
    .init = trees_init,
    .clear = trees_clear,
    .reset = trees_reset,
    .grow = trees_grow,
    .renew = trees_renew,
    .score = trees_score,
    .learn = trees_learn,
    .take_back = trees_take_back,
    .archive = trees_archive,
    .fits = trees_fits,
    .check = trees_check,
    .bytes = trees_bytes,
};

void svi_member_trees_forest(const struct svi_member_context *c, int kind, struct svi_member_forest *out) {
    const struct trees *t = svi_member_part_of(c, &svi_member_trees)->self;
    const struct trees_forest *f = &t->forest[kind];
    *out = (struct svi_member_forest){.of = &f->of,
                                      .version = f->version,
                                      .masked = f->masks ? f->masked : NULL,
                                      .origin = t->rows.origin,
                                      .columns = t->rows.d,
                                      .origins = t->rows.known,
                                      .target_origin = t->rows.target_origin,
                                      .sure = SURE};
}

struct svi_tree_waits svi_member_trees_waits(const struct svi_member_context *c) {
    const struct svi_member_part *p = svi_member_part_of(c, &svi_member_trees);
    const struct trees *t = p->self;
    return t->fits.waits;
}

void svi_member_trees_delay(const struct svi_member_context *c, int microseconds) {
    struct trees *t = svi_member_part_of(c, &svi_member_trees)->self;
    svi_tree_fits_settle(&t->fits);
    t->fits.delay = microseconds;
}
