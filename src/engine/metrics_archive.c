/* The prequential quality as it is kept. Whole numbers over the window are counted again; sums are kept: the
 * order in which their terms came is in their last bits. */
#include <stdio.h>
#include <string.h>

#include "engine/metrics_state.h"

#define MOST   (INT64_MAX / 8) /* of what is counted */
#define BLOCKS (SVI_RANK_BINS / SVI_RANK_BLOCK)

_Static_assert(sizeof(struct svi_judged) == 4 * sizeof(uint16_t), "a ring of them is bytes without gaps");
_Static_assert(sizeof(struct svi_errors) == 5 * sizeof(double), "a ring of them is doubles");

static void archive_sum(struct svi_archive *a, const char *name, struct svi_sum *s) {
    double v[2] = {s->sum, s->lost};
    svi_archive_doubles(a, name, v, 2);
    *s = (struct svi_sum){v[0], v[1]};
}

static void archive_spread(struct svi_archive *a, const char *name, struct svi_spread *s) {
    double v[3] = {s->n, s->mean, s->squares};
    svi_archive_doubles(a, name, v, 3);
    *s = (struct svi_spread){v[0], v[1], v[2]};
}

/* The ring as it lies: where a round ends decides which sums are made when. */
static void archive_places(struct svi_archive *a, svi_metrics *m) {
    svi_archive_int64(a, "filled", &m->filled, 0, m->window);
    svi_archive_int64(a, "slot", &m->slot, 0, m->window - 1);
    svi_archive_check(a, m->filled == m->window || m->slot == m->filled, "a ring has a hole");
}

/* ---- classes */

/* Classes that were counted at all, so that what could still come takes no room. */
static int counted(const struct svi_counts *c, int max_classes) {
    int n = max_classes;
    while (n > 0 && c->of[n - 1].truth == 0 && c->of[n - 1].predicted == 0)
        n--;
    return n;
}

static void archive_class_counts(struct svi_archive *a, struct svi_counts *c, int max_classes) {
    int n = counted(c, max_classes);
    svi_archive_int(a, "counted classes", &n, 0, max_classes);
    for (int k = 0; k < n && svi_archive_ok(a); k++) {
        char name[32];
        int64_t v[3] = {c->of[k].truth, c->of[k].predicted, c->of[k].hits};
        snprintf(name, sizeof name, "class %d", k);
        svi_archive_int64s(a, name, v, 3, 0, MOST);
        c->of[k] = (struct svi_class_count){v[0], v[1], v[2]};
    }
    svi_archive_int64(a, "nothing predicted", &c->of[max_classes].predicted, 0, MOST);
}

/* `n` samples at most have a rank. */
static void archive_rank(struct svi_archive *a, struct svi_rank *r, int64_t n) {
    uint8_t used[BLOCKS] = {0};
    for (int bin = 0; bin < SVI_RANK_BINS; bin++)
        used[bin / SVI_RANK_BLOCK] |= r->count[bin][0] != 0 || r->count[bin][1] != 0;
    svi_archive_bytes(a, "ranks", used, BLOCKS);
    for (int block = 0; block < BLOCKS && svi_archive_ok(a); block++) {
        char name[32];
        if (!used[block])
            continue;
        snprintf(name, sizeof name, "ranks %d", block);
        r->touched[block] = 1;
        int64_t *count = r->count[block * SVI_RANK_BLOCK];
        svi_archive_int64s(a, name, count, 2 * SVI_RANK_BLOCK, 0, n);
        for (int i = 0; i < 2 * SVI_RANK_BLOCK && svi_archive_ok(a); i++)
            svi_archive_check(a, (n -= count[i]) >= 0, "more samples have a rank than there were");
    }
}

static bool can_be(const struct svi_judged *j, int max_classes) {
    const bool ranks = j->bin < SVI_RANK_BINS && j->truth <= 1;
    return j->truth < max_classes && j->predicted <= max_classes && j->same <= 1 &&
           (j->bin == SVI_NO_BIN || ranks);
}

/* The counts of the window, from its samples. */
static void count_again(struct svi_archive *a, svi_metrics *m) {
    for (int64_t i = 0; i < m->filled; i++) {
        const struct svi_judged j = m->judged[i];
        if (!svi_archive_check(a, can_be(&j, m->max_classes),
                               "a sample's classes are beyond those there are"))
            return;
        svi_counts_add(&m->recent, j, 1);
        if (j.bin != SVI_NO_BIN)
            m->recent.rank->touched[j.bin / SVI_RANK_BLOCK] = 1;
    }
}

static void archive_classes(struct svi_archive *a, svi_metrics *m) {
    svi_archive_int(a, "classes", &m->classes, 0, m->max_classes);
    svi_archive_int(a, "last class", &m->last, -1, m->max_classes - 1);
    svi_archive_int64(a, "samples", &m->all.n, 0, MOST);
    svi_archive_int64(a, "hits", &m->all.hits, 0, MOST);
    svi_archive_int64(a, "same as before", &m->all.same, 0, MOST);
    archive_class_counts(a, &m->all, m->max_classes);
    archive_rank(a, m->all.rank, m->all.n);
    archive_sum(a, "loss", &m->loss);
    svi_archive_double(a, "fresh loss", &m->fresh_loss);
    svi_archive_bytes(a, "judged", m->judged, m->filled * (int64_t)sizeof *m->judged);
    svi_archive_doubles(a, "losses", m->losses, m->filled);
    if (svi_archive_loading(a) && svi_archive_ok(a))
        count_again(a, m);
}

/* ---- values */

static void archive_values(struct svi_archive *a, svi_metrics *m) {
    archive_sum(a, "absolute", &m->absolute);
    archive_sum(a, "square", &m->square);
    archive_spread(a, "truth", &m->truth);
    svi_archive_double(a, "fresh absolute", &m->fresh.absolute);
    svi_archive_double(a, "fresh square", &m->fresh.square);
    archive_spread(a, "fresh truth", &m->fresh.truth);
    svi_archive_doubles(a, "errors", (double *)m->errors, 5 * m->filled);
}

void svi_metrics_archive(struct svi_archive *a, svi_metrics *m) {
    if (svi_archive_loading(a))
        svi_metrics_reset(m);
    archive_places(a, m);
    if (!svi_archive_ok(a))
        return;
    if (m->task == SVS_REGRESS)
        archive_values(a, m);
    else
        archive_classes(a, m);
}
