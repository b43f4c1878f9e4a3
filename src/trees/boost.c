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
#include "linalg/exponential.h"
#include "trees/boost_internal.h"

#define G_SUM         0x1p30 /* sum of |gradient| in units */
#define H_SUM         0x1p31 /* sum of curvature in units */
#define SCORE_MAX     30.0   /* of a log odds, in probabilities */
#define STEP_MAX      10.0   /* of a leaf, in log odds or deviations */
#define MIN_CURVATURE 1e-12  /* of a curvature */
#define MIN_GRADIENT  1e-9   /* mean |gradient| below which nothing is left to learn */

struct svi_boost_options svi_boost_defaults(svs_task task, int classes) {
    return (struct svi_boost_options){.task = task,
                                      .classes = classes,
                                      .rounds = 30,
                                      .leaves = 16,
                                      .bins = 64,
                                      .rate = 0.2,
                                      .ridge = 1,
                                      .min_hessian = 1e-3,
                                      .min_rows = 10};
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
    double *score;          /* n x scores */
    double *p;              /* n x scores: probabilities of several classes */
    double *g, *h, *w, *y;  /* n; y: target or label */
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
    const size_t n = (size_t)f->rows.n + 1, k = (size_t)f->scores, leaves = (size_t)f->o->leaves;
    const size_t trees = k * (size_t)f->o->rounds, nodes = trees * (2 * leaves - 1);
    f->tree.sums = svi_boost_block(s, SVI_BOOST_SUMS, leaves * ((size_t)f->rows.bins + 1) * sizeof(uint64_t));
    f->tree.order = svi_boost_block(s, SVI_BOOST_ORDER, n * sizeof(int32_t));
    f->tree.spare = svi_boost_block(s, SVI_BOOST_SPARE, n * sizeof(int32_t));
    f->tree.leaves = svi_boost_block(s, SVI_BOOST_LEAVES, leaves * svi_boost_leaf_size());
    f->tree.node = svi_boost_block(s, SVI_BOOST_GROWN, 2 * leaves * sizeof *f->tree.node);
    f->pair = svi_boost_block(s, SVI_BOOST_PAIRS, n * sizeof *f->pair);
    f->score = svi_boost_block(s, SVI_BOOST_SCORES, n * k * sizeof *f->score);
    f->g = svi_boost_block(s, SVI_BOOST_SLOPES, (n * (4 + k) + 2 * k) * sizeof *f->g);
    f->value = svi_boost_block(s, SVI_BOOST_NODES,
                               nodes * (sizeof *f->value + sizeof *f->node) + (trees + 1) * sizeof *f->first);
    if (!f->tree.sums || !f->tree.order || !f->tree.spare || !f->tree.leaves || !f->tree.node || !f->pair ||
        !f->score || !f->g || !f->value)
        return false;
    f->h = f->g + n;
    f->w = f->h + n;
    f->y = f->w + n;
    f->p = f->y + n;
    f->base = f->p + n * k;
    f->largest = f->base + k;
    memset(f->largest, 0, k * sizeof *f->largest);
    f->node = (struct svi_forest_node *)(f->value + nodes);
    f->first = (int32_t *)(f->node + nodes);
    f->tree.o = f->o;
    f->tree.rows = &f->rows;
    f->tree.pair = f->pair;
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
    memset(f->score, 0, (size_t)n * sizeof *f->score);
}

/* The log odds of each class by its weight and half a row. */
static void boost_start_classes(struct boost_fit *f) {
    const int32_t n = f->rows.n;
    const int k = f->scores;
    double *weight = f->p; /* free until the first round, which begins after this */
    const int classes = k > 1 ? k : 2;
    double own[2] = {0};
    weight = k > 1 ? f->base : own;
    memset(weight, 0, (size_t)classes * sizeof *weight);
    for (int32_t i = 0; i < n; i++) {
        const int label = f->r->label[f->rows.index[i]];
        f->y[i] = label;
        weight[label] += f->w[i];
    }
    if (k == 1)
        f->base[0] = log((own[1] + 0.5) / (own[0] + 0.5));
    for (int c = 0; c < k && k > 1; c++)
        f->base[c] = log((weight[c] + 0.5) / (n + 0.5 * k));
    for (int32_t i = 0; i < n; i++)
        memcpy(f->score + (size_t)i * (size_t)k, f->base, (size_t)k * sizeof *f->score);
}

/* ---- gradients */

static double boost_exp(double x) {
    const double most = 2 * SCORE_MAX;
    x = x < -most ? -most : x > most ? most : x;
    return svi_exp_two(svi_both(x))[0];
}

static void boost_slopes_logistic(struct boost_fit *f) {
    for (int32_t i = 0; i < f->rows.n; i += 2) {
        const int32_t j = i + 1 < f->rows.n ? i + 1 : i;
        svi_two s = {f->score[i], f->score[j]};
        for (int l = 0; l < 2; l++)
            s[l] = s[l] < -SCORE_MAX ? SCORE_MAX : s[l] > SCORE_MAX ? -SCORE_MAX : -s[l];
        const svi_two p = svi_both(1) / (svi_both(1) + svi_exp_two(s)), w = {f->w[i], f->w[j]},
                      y = {f->y[i], f->y[j]}, g = w * (p - y), h = w * (p * (svi_both(1) - p));
        f->g[i] = g[0];
        f->h[i] = h[0];
        f->g[j] = g[j - i];
        f->h[j] = h[j - i];
    }
}

static void boost_softmax(struct boost_fit *f) {
    const int k = f->scores;
    for (int32_t i = 0; i < f->rows.n; i++) {
        const double *s = f->score + (size_t)i * (size_t)k;
        double *p = f->p + (size_t)i * (size_t)k, sum = 0, top = s[0];
        for (int c = 1; c < k; c++)
            top = s[c] > top ? s[c] : top;
        for (int c = 0; c < k; c++)
            sum += p[c] = boost_exp(s[c] - top);
        for (int c = 0; c < k; c++)
            p[c] /= sum;
    }
}

static void boost_slopes(struct boost_fit *f, int score) {
    const int32_t n = f->rows.n;
    const size_t k = (size_t)f->scores;
    if (f->o->task == SVS_REGRESS) {
        for (int32_t i = 0; i < n; i++) {
            f->g[i] = f->w[i] * (f->score[i] - f->y[i]);
            f->h[i] = f->w[i];
        }
        return;
    }
    if (k == 1) {
        boost_slopes_logistic(f);
        return;
    }
    const double scale = (double)k / ((double)k - 1);
    for (int32_t i = 0; i < n; i++) {
        const double p = f->p[(size_t)i * k + (size_t)score];
        f->g[i] = f->w[i] * (p - (f->y[i] == score));
        f->h[i] = f->w[i] * scale * p * (1 - p);
    }
}

/* Rounds to units. False: no gradient is left. */
static bool boost_pack(struct boost_fit *f) {
    const int32_t n = f->rows.n;
    double g = 0, h = 0;
    for (int32_t i = 0; i < n; i++) {
        f->h[i] = f->h[i] > MIN_CURVATURE ? f->h[i] : MIN_CURVATURE;
        g += fabs(f->g[i]);
        h += f->h[i];
    }
    if (!(g > MIN_GRADIENT * n))
        return false;
    const double to_g = G_SUM / g, to_h = H_SUM / h;
    for (int32_t i = 0; i < n; i++) {
        const double q = f->g[i] * to_g;
        const int32_t whole = (int32_t)(q < 0 ? q - 0.5 : q + 0.5);
        f->pair[i] = ((uint64_t)(uint32_t)whole << 32) + (uint64_t)(f->h[i] * to_h + 0.5);
    }
    f->tree.g_unit = g / G_SUM;
    f->tree.h_unit = h / H_SUM;
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
    const double step = f->o->rate * fmax(-STEP_MAX, fmin(STEP_MAX, n->value));
    f->node[own] = (struct svi_forest_node){.word = SVI_FOREST_LEAF};
    f->value[own] = step * f->deviation;
    *largest = fmax(*largest, fabs(f->value[own]));
    for (int32_t i = n->begin; i < n->begin + n->count; i++)
        f->score[(size_t)f->tree.order[i] * (size_t)f->scores + (size_t)score] += step;
}

/* One tree for a score; false: a constant. */
static bool boost_tree(struct boost_fit *f, int score) {
    double largest = 0;
    f->first[f->trees++] = f->count;
    boost_slopes(f, score);
    if (f->rows.bins > 0 && boost_pack(f)) {
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
            boost_softmax(f);
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

/* The forest in units whose sums fit 31 bits with room for rounding. */
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
        memset(f.base, 0, (size_t)f.scores * sizeof *f.base);
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
     * root. Each of two leaves a split is scanned once, and binning a value costs some ten updates. */
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
    const double wide = d < SVI_BOOST_GROUP_BINS / 2 ? d : SVI_BOOST_GROUP_BINS / 2;
    const double fit = n * (4 + 16 + wide + 2.0 * d + 4 + 4 + 8 + 8 * k + 8 * (4 + k)) +
                       (d + 1.0) * (sizeof(struct svi_boost_column) + sizeof(struct svi_boost_group)) +
                       (d + 1.0) * o->bins * sizeof(float) + o->leaves * (d * (o->bins + 1.0) + 1) * 8 +
                       o->leaves * (double)(svi_boost_leaf_size() + 2 * sizeof(struct svi_boost_grown));
    return fit + nodes * (8 + 12) + trees * (4 + 4 + 260) + nodes * 12 + 24 * k + 4096;
}
