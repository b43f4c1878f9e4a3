/* The sums of a union: windows moved to one center and added, in double double.
 *
 * A window's sums S about its center c become, about the common center m with e = c - m,
 *
 *     sum w (x - m)            = S + W e
 *     sum w (x - m) (x - m)'   = Q + S e' + e S' + W e e' = Q + A e' + e A',   A = S + W e / 2.
 *
 * e is exact as a double double (two doubles subtracted), and so are all products up to 2^-104. The
 * model needs that, because it depends on differences of these sums. Where features are nearly
 * collinear, or the parts lie far apart, most digits cancel. A feature that a part does not have is
 * 0 in its samples: c = 0, S = 0, Q = 0, which the same formula moves to m.
 *
 * The center may be any number near the mean. It is the mean, rounded to double, over the parts in
 * the order in which they are given. So the bits follow from the parts and their order alone. */
#include "merge/union_sums.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "merge/dd.h"

svs_code svi_union_shape(struct svi_union_sums *u, svs_task task, int d, int classes, svs_error *err) {
    const size_t n = (size_t)d, k = (size_t)classes;
    const size_t pairs = 4 * n + svi_sums_packed(d) + k + k * n,
                 bytes = pairs * sizeof(struct svi_dd) + n * sizeof(double);
    if (bytes > u->capacity || !u->block) {
        svi_free(u->block);
        *u = (struct svi_union_sums){0};
        if (!(u->block = svi_alloc(bytes + 1)))
            return svi_fail_memory(err, "the sums of all parts");
        u->capacity = bytes;
    }
    memset(u->block, 0, bytes);
    struct svi_dd *at = u->block;
    u->d = d;
    u->classes = classes;
    u->task = task;
    u->weight = u->target_weight = (struct svi_dd){0, 0};
    u->sum = at;
    u->target_sum = at += n;
    u->shift = at += n;
    u->moved = at += n;
    u->square = at += n;
    u->class_weight = at += svi_sums_packed(d);
    u->class_sum = at += k;
    u->center = (double *)(at + k * n);
    return SVS_OK;
}

void svi_union_clear(struct svi_union_sums *u) {
    svi_free(u->block);
    *u = (struct svi_union_sums){0};
}

void svi_union_center(struct svi_union_sums *u, const struct svi_union_part *part, int count) {
    struct svi_dd weight = {0, 0};
    for (int j = 0; j < u->d; j++)
        u->shift[j] = (struct svi_dd){0, 0};
    for (int p = 0; p < count; p++) {
        const struct svi_window_sums *s = part[p].sums;
        weight = svi_dd_plus(weight, s->weight);
        for (int i = 0; i < s->d; i++) {
            struct svi_dd *to = &u->shift[part[p].feature[i]];
            *to = svi_dd_plus(svi_dd_add(*to, svi_two_product(s->weight, s->center[i])), s->sum[i]);
        }
    }
    for (int j = 0; j < u->d; j++)
        u->center[j] = weight.high > 0 ? u->shift[j].high / weight.high : 0;
}

/* to += a b' + b a' over the lower triangle. Almost all of the time of a merge is spent here. */
static void union_add_pair(int d, const struct svi_dd *a, const struct svi_dd *b, struct svi_dd *to) {
    for (int i = 0; i < d; i++, to += i)
        for (int j = 0; j <= i; j++)
            to[j] = svi_dd_add(to[j], svi_dd_add(svi_dd_product(a[i], b[j]), svi_dd_product(b[i], a[j])));
}

/* Where the entry of two features is in the packed triangle. */
static size_t union_place(int32_t i, int32_t j) {
    return i > j ? svi_sums_packed(i) + (size_t)j : svi_sums_packed(j) + (size_t)i;
}

/* to[j] += sum[i] + weight e_j, of the features of the part and of those that it does not have. */
static void union_add_first(const struct svi_union_sums *u, const struct svi_union_part *part,
                            const double *sum, double weight, struct svi_dd *to) {
    for (int i = 0; i < part->sums->d; i++)
        to[part->feature[i]] = svi_dd_plus(to[part->feature[i]], sum[i]);
    for (int j = 0; j < u->d; j++)
        to[j] = svi_dd_add(to[j], svi_dd_times(u->shift[j], weight));
}

void svi_union_add(struct svi_union_sums *u, const struct svi_union_part *part) {
    const struct svi_window_sums *s = part->sums;
    const double *square = s->square;
    for (int j = 0; j < u->d; j++) {
        u->shift[j] = (struct svi_dd){-u->center[j], 0};
        u->moved[j] = (struct svi_dd){0, 0};
    }
    for (int i = 0; i < s->d; i++) {
        const int32_t j = part->feature[i];
        u->shift[j] = svi_two_sum(s->center[i], -u->center[j]);
    }
    union_add_first(u, part, s->sum, s->weight, u->sum);
    union_add_first(u, part, s->sum, 0.5 * s->weight, u->moved); /* A: half of an exact number is exact */
    union_add_pair(u->d, u->moved, u->shift, u->square);
    for (int i = 0; i < s->d; i++)
        for (int j = 0; j <= i; j++) {
            struct svi_dd *to = &u->square[union_place(part->feature[i], part->feature[j])];
            *to = svi_dd_plus(*to, *square++);
        }
    u->weight = svi_dd_plus(u->weight, s->weight);
    for (int k = 0; k < s->classes; k++) {
        const size_t to = (size_t)part->label[k];
        u->class_weight[to] = svi_dd_plus(u->class_weight[to], s->class_weight[k]);
        union_add_first(u, part, s->class_sum + (size_t)k * (size_t)s->d, s->class_weight[k],
                        u->class_sum + to * (size_t)u->d);
    }
    if (u->task != SVS_REGRESS)
        return;
    u->target_weight = svi_dd_plus(u->target_weight, s->target_weight);
    union_add_first(u, part, s->target_sum, s->target_weight, u->target_sum);
}
