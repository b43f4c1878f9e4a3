/* The rounds of a fit (boost.h).
 *
 * A round computes gradient and curvature of each row at the current scores, rounds them to whole numbers,
 * grows one tree a score, and adds its leaves to the scores of their rows, which the growth has left in runs.
 * Trees are kept in scratch as doubles until the last one; then the unit of the forest follows from their
 * largest values, and the forest is written. Only then is the old one freed: a failure leaves it unchanged.
 *
 * A regression is fitted to (target - mean) / deviation, so that ridge and stopping have one meaning. Weights
 * are divided by their mean. The fit ends early when no tree of a round could be split. */
#include "trees/boost.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "trees/boost_internal.h"

#define G_SUM         0x1p30 /* sum of |gradient| in units */
#define H_SUM         0x1p31 /* sum of curvature in units */
#define SCORE_MAX     30.0   /* of a log odds, in probabilities */
#define STEP_MAX      10.0   /* of a leaf, in log odds or deviations */
#define MIN_CURVATURE 1e-12  /* of a curvature */
#define MIN_GRADIENT  1e-9   /* mean |gradient| below which nothing is left to learn */

/* A round of K classes costs K trees, and shares their probabilities: many classes need fewer rounds. */
struct svi_boost_options svi_boost_defaults(svs_task task, int classes) {
    return (struct svi_boost_options){.task = task,
                                      .classes = classes,
                                      .rounds = task == SVS_CLASSIFY && classes > 4 ? 20 : 30,
                                      .leaves = 16,
                                      .bins = 64,
                                      .rate = 0.3,
                                      .ridge = 3,
                                      .min_hessian = 1e-3,
                                      .min_rows = 5};
}

static int boost_scores(const struct svi_boost_options *o) {
    return o->task == SVS_REGRESS || o->classes <= 2 ? 1 : o->classes;
}

/* ---- the state of a fit */

struct boost_fit {
    const struct svi_boost_options *o;
    const struct svi_boost_rows *r;
    struct svi_boost_binned rows;
    struct svi_boost_tree tree;
    int scores;
    double mean, deviation; /* of a regression's target */
    const struct svi_boost_loops *loops;
    struct svi_boost_slopes slopes;
    /* Rows in whole eights, zero after the last. */
    double *score; /* scores x rows */
    double *p;     /* scores x rows: probabilities of several classes */
    double *w, *y; /* rows; y: target or label */
    uint64_t *pair;
    double *base;
    struct svi_forest_node *node; /* written nodes; values of leaves are in `value` */
    double *value, *largest;      /* by node; by score: sum of the largest values of its trees */
    int32_t *first;
    int trees, count;
};

static svs_code boost_check(const struct svi_boost_options *o, const struct svi_boost_rows *r,
                            svs_error *err) {
    const bool options = o->rounds >= 1 && o->rounds <= SVI_BOOST_ROUNDS_MAX && o->leaves >= 2 &&
                         o->leaves <= SVI_BOOST_LEAVES_MAX && o->bins >= 2 && o->bins <= SVI_BOOST_BINS_MAX &&
                         o->rate > 0 && o->rate <= 1 && o->ridge > 0 && o->ridge <= 1e12 &&
                         o->min_hessian >= 0 && o->min_hessian <= 1e12 && o->min_rows >= 0 &&
                         o->min_rows <= SVI_BOOST_ROWS_MAX && o->classes >= 0 &&
                         o->classes <= SVI_FOREST_ROWS_MAX;
    if (!options)
        return svi_fail(err, SVS_LIMIT, "trees: an option is out of range");
    if (boost_scores(o) * (double)o->rounds * (2.0 * o->leaves - 1) > SVI_FOREST_NODES_MAX)
        return svi_fail(err, SVS_LIMIT, "trees: %d rounds of %d leaves for %d classes are more than %d nodes",
                        o->rounds, o->leaves, o->classes, SVI_FOREST_NODES_MAX);
    if (r->d < 0 || r->d > SVI_BOOST_COLUMNS_MAX || r->stride < r->d || r->count < 0 ||
        r->count > SVI_BOOST_ROWS_MAX || r->count > r->capacity || r->first < 0 ||
        (r->first >= r->capacity && r->count > 0) || r->capacity > INT32_MAX)
        return svi_fail(err, SVS_LIMIT, "trees: %lld rows of %d columns are more than %d of %d",
                        (long long)r->count, r->d, SVI_BOOST_ROWS_MAX, SVI_BOOST_COLUMNS_MAX);
    return SVS_OK;
}

static bool boost_reserve(struct boost_fit *f, struct svi_boost_scratch *s) {
    const size_t n = (size_t)svi_boost_lanes_up(f->rows.n), k = (size_t)f->scores,
                 leaves = (size_t)f->o->leaves;
    const size_t trees = k * (size_t)f->o->rounds, nodes = trees * (2 * leaves - 1);
    f->tree.sums = svi_boost_block(s, SVI_BOOST_SUMS, leaves * ((size_t)f->rows.bins + 1) * sizeof(uint64_t));
    f->tree.order = svi_boost_block(s, SVI_BOOST_ORDER, (n + 1) * sizeof(int32_t));
    f->tree.spare = svi_boost_block(s, SVI_BOOST_SPARE, (n + 1) * sizeof(int32_t));
    f->tree.leaves = svi_boost_block(s, SVI_BOOST_LEAVES, leaves * svi_boost_leaf_size());
    f->tree.node = svi_boost_block(s, SVI_BOOST_GROWN, 2 * leaves * sizeof *f->tree.node);
    f->pair = svi_boost_block(s, SVI_BOOST_PAIRS, (n + 1) * sizeof *f->pair);
    f->w = svi_boost_block(s, SVI_BOOST_SLOPES, (n * (4 + 2 * k) + 2 * k) * sizeof *f->w);
    f->value = svi_boost_block(s, SVI_BOOST_NODES,
                               nodes * (sizeof *f->value + sizeof *f->node) + (trees + 1) * sizeof *f->first);
    if (!f->tree.sums || !f->tree.order || !f->tree.spare || !f->tree.leaves || !f->tree.node || !f->pair ||
        !f->w || !f->value)
        return false;
    memset(f->w, 0, (n * (4 + 2 * k) + 2 * k) * sizeof *f->w);
    f->y = f->w + n;
    f->score = f->y + n;
    f->p = f->score + n * k;
    f->slopes = (struct svi_boost_slopes){.n = (int64_t)n,
                                          .w = f->w,
                                          .y = f->y,
                                          .g = f->p + n * k,
                                          .h = f->p + n * k + n,
                                          .least = MIN_CURVATURE};
    f->base = f->slopes.h + n;
    f->largest = f->base + k;
    f->node = (struct svi_forest_node *)(f->value + nodes);
    f->first = (int32_t *)(f->node + nodes);
    f->tree.o = f->o;
    f->tree.rows = &f->rows;
    f->tree.pair = f->pair;
    f->loops = f->tree.loops = svi_boost_loops_get();
    return true;
}

/* ---- the start */

static void boost_start_weights(struct boost_fit *f) {
    double sum = 0;
    for (int32_t i = 0; i < f->rows.n; i++)
        sum += f->w[i] = f->r->weight ? (double)f->r->weight[f->rows.index[i]] : 1;
    for (int32_t i = 0; i < f->rows.n; i++)
        f->w[i] *= f->rows.n / sum;
}

static void boost_start_regression(struct boost_fit *f) {
    const int32_t n = f->rows.n;
    double sum = 0, square = 0, largest = 0;
    for (int32_t i = 0; i < n; i++) {
        f->y[i] = (double)f->r->target[f->rows.index[i]];
        sum += f->w[i] * f->y[i];
        largest = fmax(largest, fabs(f->y[i]));
    }
    f->mean = sum / n;
    for (int32_t i = 0; i < n; i++)
        square += f->w[i] * (f->y[i] - f->mean) * (f->y[i] - f->mean);
    f->deviation = sqrt(square / n);
    if (!(f->deviation > 1e-12 * largest))
        f->deviation = 0; /* constant but for rounding */
    for (int32_t i = 0; i < n; i++)
        f->y[i] = f->deviation > 0 ? (f->y[i] - f->mean) / f->deviation : 0;
    f->base[0] = f->mean;
}

/* The log odds of each class by its weight and half a row. */
static void boost_start_classes(struct boost_fit *f) {
    const int32_t n = f->rows.n;
    const int k = f->scores;
    double own[2] = {0}, *weight = k > 1 ? f->base : own;
    for (int32_t i = 0; i < n; i++) {
        const int label = f->r->label[f->rows.index[i]];
        f->y[i] = label;
        weight[label] += f->w[i];
    }
    if (k == 1)
        f->base[0] = log((own[1] + 0.5) / (own[0] + 0.5));
    for (int c = 0; c < k && k > 1; c++)
        f->base[c] = log((weight[c] + 0.5) / (n + 0.5 * k));
    for (int c = 0; c < k; c++)
        for (int64_t i = 0; i < f->slopes.n; i++)
            f->score[c * f->slopes.n + i] = f->base[c];
}

/* ---- gradients */

/* Gradients and curvatures for the trees of a score, rounded to units. False: no gradient is left. */
static bool boost_pack(struct boost_fit *f, int score) {
    const size_t from = (size_t)score * (size_t)f->slopes.n;
    struct svi_boost_slopes *s = &f->slopes;
    s->score = f->score + from;
    if (f->o->task == SVS_REGRESS) {
        f->loops->squares(s);
    } else if (f->scores == 1) {
        f->loops->logistic(s);
    } else {
        s->score = f->p + from;
        f->loops->shares(s, score, (double)f->scores / (f->scores - 1.0));
    }
    if (!(s->g_sum > MIN_GRADIENT * f->rows.n))
        return false;
    const double to_g = G_SUM / s->g_sum, to_h = H_SUM / s->h_sum;
    f->loops->pack(s, to_g, to_h, f->pair);
    f->tree.g_unit = s->g_sum / G_SUM;
    f->tree.h_unit = s->h_sum / H_SUM;
    f->tree.ridge = f->o->ridge * to_h;
    f->tree.min_hessian = f->o->min_hessian * to_h;
    return true;
}

/* ---- trees */

/* Appends the grown tree in preorder and adds its leaves to the scores. */
static void boost_write(struct boost_fit *f, int at, int score, double *largest) {
    const struct svi_boost_grown *n = &f->tree.node[at];
    const int own = f->count++;
    if (n->column >= 0) {
        f->node[own].word = (uint32_t)n->column | (n->missing_left ? SVI_FOREST_LEFT : 0);
        f->node[own].value = n->threshold;
        boost_write(f, n->left, score, largest);
        f->node[own].right = (uint32_t)(f->count - own);
        boost_write(f, n->right, score, largest);
        return;
    }
    double *scores = f->score + (size_t)score * (size_t)f->slopes.n;
    const double step = f->o->rate * fmax(-STEP_MAX, fmin(STEP_MAX, n->value));
    f->node[own] = (struct svi_forest_node){.word = SVI_FOREST_LEAF};
    f->value[own] = step * f->deviation;
    *largest = fmax(*largest, fabs(f->value[own]));
    for (int32_t i = n->begin; i < n->begin + n->count; i++)
        scores[f->tree.order[i]] += step;
}

/* One tree for a score; false: a constant. */
static bool boost_tree(struct boost_fit *f, int score) {
    double largest = 0;
    f->first[f->trees++] = f->count;
    if (f->rows.bins > 0 && boost_pack(f, score)) {
        svi_boost_grow(&f->tree);
        if (f->tree.count > 1) {
            boost_write(f, 0, score, &largest);
            f->largest[score] += largest;
            return true;
        }
    }
    f->node[f->count] = (struct svi_forest_node){.word = SVI_FOREST_LEAF};
    f->value[f->count++] = 0;
    return false;
}

static void boost_rounds(struct boost_fit *f) {
    for (int round = 0; round < f->o->rounds; round++) {
        const int trees = f->trees, count = f->count;
        bool grown = false;
        if (f->scores > 1)
            f->loops->softmax(f->score, f->slopes.n, f->scores, f->p);
        for (int k = 0; k < f->scores; k++)
            grown = boost_tree(f, k) || grown;
        if (!grown) {
            f->trees = trees;
            f->count = count;
            break;
        }
    }
    f->first[f->trees] = f->count;
}

/* The forest in units whose sums fit 31 bits with a margin for rounding. */
static svs_code boost_finish(struct boost_fit *f, struct svi_forest *out, svs_error *err) {
    struct svi_forest made;
    double largest = 0;
    int exponent = 0;
    SVI_TRY(svi_forest_alloc(&made, f->scores, f->trees, f->count, err));
    for (int k = 0; k < f->scores; k++)
        largest = fmax(largest, f->largest[k]);
    frexp(largest, &exponent);
    made.exponent = largest > 0 ? exponent - 30 : 0;
    memcpy(made.base, f->base, (size_t)f->scores * sizeof *made.base);
    memcpy(made.first, f->first, ((size_t)f->trees + 1) * sizeof *made.first);
    const double unit = ldexp(1, made.exponent), scale = ldexp(1, -made.exponent);
    for (int i = 0; i < f->count; i++) {
        made.node[i] = f->node[i];
        if (f->node[i].word & SVI_FOREST_LEAF) {
            const double v = (double)(float)(unit * nearbyint(f->value[i] * scale));
            made.node[i].value = (float)fmax(-0x1p127, fmin(0x1p127, v));
        }
    }
    const svs_code code = svi_forest_finish(&made, err);
    if (code != SVS_OK) {
        svi_forest_clear(&made);
        return code;
    }
    svi_forest_clear(out);
    *out = made;
    return SVS_OK;
}

svs_code svi_boost_fit(const struct svi_boost_options *o, const struct svi_boost_rows *r,
                       struct svi_boost_scratch *s, struct svi_forest *out, svs_error *err) {
    struct boost_fit f = {.o = o, .r = r, .scores = boost_scores(o), .deviation = 1};
    SVI_TRY(boost_check(o, r, err));
    int32_t *index = svi_boost_block(s, SVI_BOOST_INDEX, ((size_t)r->count + 1) * sizeof *index);
    if (!index)
        return svi_fail_memory(err, "the rows of the trees");
    f.rows.index = index;
    f.rows.n = svi_boost_take(o, r, index);
    SVI_TRY(svi_boost_bin(o, r, s, &f.rows, err));
    if (!boost_reserve(&f, s))
        return svi_fail_memory(err, "the fit of the trees");
    if (f.rows.n == 0) {
        f.first[0] = 0;
        return boost_finish(&f, out, err);
    }
    boost_start_weights(&f);
    if (o->task == SVS_REGRESS)
        boost_start_regression(&f);
    else
        boost_start_classes(&f);
    boost_rounds(&f);
    return boost_finish(&f, out, err);
}

/* ---- cost, memory */

int64_t svi_boost_cost(const struct svi_boost_options *o, int64_t rows, int d) {
    /* Children that are counted hold half of their parents' rows at most: log2(leaves) / 2 passes after the
     * root. Each of two leaves a split is scanned once, and binning a value costs about ten updates. */
    double passes = 1;
    for (int leaves = o->leaves; leaves > 1; leaves /= 2)
        passes += 0.5;
    const double bins = rows < o->bins ? (double)rows : o->bins;
    const double tree = (double)d * (passes * (double)rows + 2.0 * o->leaves * bins);
    const double cost = boost_scores(o) * (double)o->rounds * tree + 10.0 * d * (double)rows;
    return cost < 0x1p62 ? (int64_t)cost : INT64_C(1) << 62;
}

double svi_boost_memory(const struct svi_boost_options *o, int64_t rows, int d) {
    const double n = (double)rows + 1, k = boost_scores(o), trees = k * o->rounds,
                 nodes = trees * 2 * o->leaves;
    const double fit = n * (4 + 16 + 64 + 3.0 * d + 4 + 4 + 8 + 8 * (4 + 2 * k)) +
                       (d + 1.0) * (sizeof(struct svi_boost_column) + sizeof(struct svi_boost_group)) +
                       8 * (n + 2) * (1 + d * (o->bins + 1.0) / (SVI_BOOST_GROUP_BINS - 256)) +
                       (d + 1.0) * o->bins * sizeof(float) + o->leaves * (d * (o->bins + 1.0) + 1) * 8 +
                       o->leaves * (double)(svi_boost_leaf_size() + 2 * sizeof(struct svi_boost_grown));
    return fit + nodes * (8 + 12) + trees * (4 + 4 + 260) + nodes * 12 + 24 * k + 4096;
}
