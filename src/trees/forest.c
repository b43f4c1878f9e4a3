/* The nodes of a forest (forest.h): checks, archive, scores.
 *
 * Nothing about a loaded forest is trusted. Preorder makes the check one pass: a stack holds where each open
 * right subtree begins; an inner node pushes its right child, a leaf must be followed by the node on top of
 * the stack. So every node is reached exactly once, and a descent moves forward: it ends.
 *
 * Sums of values are exact, because each is a whole multiple of the unit and the largest absolute values of
 * the trees of a score add up to less than 2^31 units. */
#include "trees/forest.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "trees/forest_internal.h"

#define EXPONENT_LOW  (-1000)
#define EXPONENT_HIGH 200
#define UNITS_MAX     2147483647.0 /* sum of the largest values of the trees of a score */

void svi_forest_clear(struct svi_forest *f) {
    svi_free(f->base);
    svi_free(f->first);
    svi_free(f->node);
    svi_forest_masks_free(&f->masks);
    *f = (struct svi_forest){0};
}

svs_code svi_forest_alloc(struct svi_forest *f, int rows, int trees, int count, svs_error *err) {
    struct svi_forest made = {.rows = rows, .trees = trees, .count = count};
    made.base = svi_alloc_array((size_t)rows, sizeof *made.base);
    made.first = svi_alloc_array((size_t)trees + 1, sizeof *made.first);
    made.node = svi_alloc_array((size_t)count, sizeof *made.node);
    if ((rows > 0 && !made.base) || !made.first || (count > 0 && !made.node)) {
        svi_forest_clear(&made);
        return svi_fail_memory(err, "the trees");
    }
    *f = made;
    return SVS_OK;
}

/* ---- checks */

/* The largest |value| of a tree in units; -1: it is no tree. `open` has a place for each of its nodes. */
static double forest_check_tree(const struct svi_forest *f, int tree, int32_t *open) {
    const double scale = ldexp(1, -f->exponent);
    const int32_t begin = f->first[tree], end = f->first[tree + 1];
    double largest = 0;
    int depth = 0;
    for (int32_t i = begin; i < end; i++) {
        const struct svi_forest_node *n = &f->node[i];
        if (!isfinite(n->value))
            return -1;
        if (!(n->word & SVI_FOREST_LEAF)) {
            if (n->right < 2 || n->right >= (uint32_t)(end - i))
                return -1;
            open[depth++] = i + (int32_t)n->right;
            continue;
        }
        const double units = n->value * scale;
        if (n->word != SVI_FOREST_LEAF || n->right != 0 || !(fabs(units) < UNITS_MAX) ||
            units != (double)(int32_t)units)
            return -1;
        largest = fmax(largest, fabs(units));
        /* After a leaf comes the youngest open right child, or the tree ends. */
        if (depth == 0 ? i + 1 != end : open[--depth] != i + 1)
            return -1;
    }
    return depth == 0 && end > begin ? largest : -1;
}

static bool forest_check_sizes(const struct svi_forest *f) {
    if (f->rows < 1 || f->rows > SVI_FOREST_ROWS_MAX || f->trees < 0 || f->trees % f->rows != 0 ||
        f->exponent < EXPONENT_LOW || f->exponent > EXPONENT_HIGH || f->first[0] != 0 ||
        f->first[f->trees] != f->count)
        return false;
    for (int t = 0; t < f->trees; t++)
        if (f->first[t] < 0 || f->first[t] >= f->first[t + 1] || f->first[t + 1] > f->count)
            return false;
    for (int r = 0; r < f->rows; r++)
        if (!isfinite(f->base[r]) || fabs(f->base[r]) > 1e300)
            return false;
    return true;
}

svs_code svi_forest_finish(struct svi_forest *f, svs_error *err) {
    if (!forest_check_sizes(f))
        return svi_fail(err, SVS_DAMAGED, "trees: sizes do not fit together");
    int32_t *open = svi_alloc_array((size_t)f->count + 1, sizeof *open);
    double *sum = svi_alloc_array((size_t)f->rows, sizeof *sum);
    svs_code code = open && sum ? SVS_OK : svi_fail_memory(err, "the trees");
    f->columns = 0;
    for (int t = 0; t < f->trees && code == SVS_OK; t++) {
        const double largest = forest_check_tree(f, t, open);
        sum[t % f->rows] += largest;
        if (largest < 0 || sum[t % f->rows] > UNITS_MAX)
            code = svi_fail(err, SVS_DAMAGED, "trees: the nodes of tree %d form no tree", t);
    }
    for (int32_t i = 0; i < f->count && code == SVS_OK; i++) {
        const int32_t column = (int32_t)(f->node[i].word & SVI_FOREST_COLUMN);
        if (!(f->node[i].word & SVI_FOREST_LEAF) && column >= f->columns)
            f->columns = column + 1;
    }
    svi_free(open);
    svi_free(sum);
    return code == SVS_OK ? svi_forest_masks_make(f, err) : code;
}

/* ---- scores */

static float forest_descend(const struct svi_forest_node *n, const float *x) {
    while (!(n->word & SVI_FOREST_LEAF)) {
        const float v = x[n->word & SVI_FOREST_COLUMN];
        const bool right = v > n->value || (v != v && !(n->word & SVI_FOREST_LEFT));
        n += right ? n->right : 1;
    }
    return n->value;
}

void svi_forest_score(const struct svi_forest *f, const float *x, double *scores) {
    if (f->masks) {
        svi_forest_masks_score(f, x, scores);
        return;
    }
    for (int r = 0; r < f->rows; r++) {
        double sum = 0; /* exact */
        for (int t = r; t < f->trees; t += f->rows)
            sum += forest_descend(f->node + f->first[t], x);
        scores[r] = f->base[r] + sum;
    }
}

/* ---- archive, packed form */

static void forest_archive_arrays(struct svi_archive *a, struct svi_forest *f) {
    const bool loading = svi_archive_loading(a);
    int32_t *word = svi_alloc_array((size_t)f->count + 1, sizeof *word);
    float *value = svi_alloc_array((size_t)f->count + 1, sizeof *value);
    int32_t *right = svi_alloc_array((size_t)f->count + 1, sizeof *right);
    if (word && value && right) {
        for (int32_t i = 0; i < f->count && !loading; i++) {
            word[i] = (int32_t)f->node[i].word;
            value[i] = f->node[i].value;
            right[i] = (int32_t)f->node[i].right;
        }
        svi_archive_finite(a, "base", f->base, f->rows);
        svi_archive_ints(a, "first", f->first, (int64_t)f->trees + 1, 0, f->count);
        svi_archive_ints(a, "word", word, f->count, INT32_MIN, INT32_MAX);
        svi_archive_floats(a, "value", value, f->count);
        svi_archive_ints(a, "right", right, f->count, 0, f->count);
        for (int32_t i = 0; i < f->count && loading && svi_archive_ok(a); i++)
            f->node[i] = (struct svi_forest_node){(uint32_t)word[i], value[i], (uint32_t)right[i]};
    } else {
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the trees");
    }
    svi_free(word);
    svi_free(value);
    svi_free(right);
}

void svi_forest_archive(struct svi_archive *a, struct svi_forest *f, int rows, int columns) {
    const bool loading = svi_archive_loading(a);
    int made = f->rows, trees = f->trees, count = f->count, exponent = f->exponent;
    svi_archive_int(a, "rows", &made, 0, rows);
    svi_archive_int(a, "trees", &trees, 0, SVI_FOREST_NODES_MAX);
    svi_archive_int(a, "nodes", &count, 0, SVI_FOREST_NODES_MAX);
    svi_archive_int(a, "exponent", &exponent, EXPONENT_LOW, EXPONENT_HIGH);
    if (!loading) {
        if (made > 0)
            forest_archive_arrays(a, f);
        return;
    }
    svi_forest_clear(f);
    if (!svi_archive_check(a, made == 0 ? trees == 0 && count == 0 : made == rows && count >= trees,
                           "the trees have the wrong sizes") ||
        !svi_archive_check(a, 9 * (int64_t)count <= svi_archive_left(a), "more nodes than bytes") ||
        made == 0)
        return;
    if (svi_forest_alloc(f, made, trees, count, a->err) != SVS_OK)
        return;
    f->exponent = exponent;
    forest_archive_arrays(a, f);
    if (svi_archive_ok(a) && svi_forest_finish(f, a->err) == SVS_OK)
        svi_archive_check(a, f->columns <= columns, "the trees have more columns than the rows");
}

static void forest_pack_word(uint8_t *out, uint32_t v) {
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(v >> (8 * i));
}

void svi_forest_pack(const struct svi_forest *f, uint8_t *out) {
    for (int32_t i = 0; i < f->count; i++, out += SVI_FOREST_NODE) {
        uint32_t bits;
        memcpy(&bits, &f->node[i].value, sizeof bits);
        forest_pack_word(out, f->node[i].word);
        forest_pack_word(out + 4, bits);
        forest_pack_word(out + 8, f->node[i].right);
    }
}

double svi_forest_memory(const struct svi_forest *f) {
    return 8.0 * f->rows + 4.0 * (f->trees + 1) + 12.0 * f->count + svi_forest_masks_memory(f);
}
