/* Columns in groups for the histograms (boost_internal.h).
 *
 * A group's histogram fits the fastest cache. Its rows are stored whole: a row touches one place of each
 * column's histogram, so neighbouring additions do not wait for each other. What is stored is the position in
 * the histogram of the group, which saves adding an offset.
 *
 * Columns in which most rows share a bin (words, flags, counts) are kept without it: a row lists the others
 * only, and the common bin follows from the sum of the leaf, exactly, because sums are integers. A table of a
 * hundred flags with fourteen set costs fourteen additions a row. Since the length of such a list is not
 * known ahead of it, this pays only from some saved additions on. */
#include "base/fail.h"
#include "trees/boost_internal.h"

#define TURN_ROWS 64 /* rows whose codes are turned together */
#define MIN_SAVED 12 /* additions a row, less than which lists cost more */

struct boost_groups_work {
    struct svi_boost_binned *b;
    struct svi_boost_column *column;
    struct svi_boost_group *group;
    uint16_t *codes;
    int64_t *start;
};

/* How many additions a row lists save, about. */
static double boost_groups_saved(const struct boost_groups_work *w) {
    double saved = 0;
    for (int32_t k = 0; k < w->b->columns; k++)
        saved += 0.8 * (w->column[k].common >= 0);
    return saved;
}

static void boost_groups_assign(struct boost_groups_work *w) {
    const bool lists = boost_groups_saved(w) >= MIN_SAVED;
    int32_t open[2] = {-1, -1}, listed = 0;
    int64_t codes = 0;
    for (int32_t k = 0; k < w->b->columns; k++) {
        struct svi_boost_column *c = &w->column[k];
        const bool list = lists && c->common >= 0;
        int32_t *at = &open[list];
        if (*at < 0 || w->group[*at].bins + c->bins + c->missing > SVI_BOOST_GROUP_BINS) {
            *at = w->b->groups++;
            w->group[*at] = (struct svi_boost_group){.list = list ? listed++ : -1};
        }
        c->group = *at;
        c->base = w->group[*at].bins;
        w->group[*at].columns++;
        w->group[*at].bins += c->bins + c->missing;
    }
    for (int32_t g = 0; g < w->b->groups; g++) {
        w->group[g].sums = w->b->bins;
        w->group[g].codes = codes;
        w->b->bins += w->group[g].bins;
        codes += (int64_t)w->b->n * w->group[g].columns;
    }
    w->b->lists = listed;
}

/* Whole rows. */
static void boost_groups_turn(const struct boost_groups_work *w, int32_t group) {
    const struct svi_boost_group *g = &w->group[group];
    const size_t n = (size_t)w->b->n, width = (size_t)g->columns;
    for (size_t at = 0; at < n; at += TURN_ROWS) {
        const size_t end = n - at < TURN_ROWS ? n : at + TURN_ROWS;
        uint16_t *codes = w->codes + g->codes;
        for (int32_t k = 0; k < w->b->columns; k++) {
            if (w->column[k].group != group)
                continue;
            const uint8_t *tall = w->b->tall + (size_t)k * n;
            for (size_t i = at; i < end; i++)
                codes[i * width] = (uint16_t)(w->column[k].base + tall[i]);
            codes++;
        }
    }
}

/* Lists: start[i] to start[i + 1] are the places of row i in the codes of the group. */
static void boost_groups_list(const struct boost_groups_work *w, int32_t group) {
    const struct svi_boost_group *g = &w->group[group];
    const size_t n = (size_t)w->b->n;
    int64_t *start = w->start + (size_t)g->list * (n + 2);
    uint16_t *codes = w->codes + g->codes;
    for (size_t i = 0; i < n + 2; i++)
        start[i] = 0;
    /* Lengths are counted two places on, so that after summing, writing row i moves start[i + 1] from the
     * beginning of row i to its end. */
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t k = 0; k < w->b->columns; k++) {
            if (w->column[k].group != group)
                continue;
            const uint8_t *tall = w->b->tall + (size_t)k * n;
            const int common = w->column[k].common;
            for (size_t i = 0; i < n; i++) {
                if (tall[i] == common)
                    continue;
                if (pass == 0)
                    start[i + 2]++;
                else
                    codes[start[i + 1]++] = (uint16_t)(w->column[k].base + tall[i]);
            }
        }
        for (size_t i = 2; i < n + 2 && pass == 0; i++)
            start[i] += start[i - 1];
    }
}

svs_code svi_boost_group(struct svi_boost_scratch *s, struct svi_boost_binned *b,
                         struct svi_boost_column *column, svs_error *err) {
    const size_t n = (size_t)b->n, d = (size_t)b->columns;
    struct boost_groups_work w = {.b = b, .column = column};
    w.group = svi_boost_block(s, SVI_BOOST_GROUPS, (d + 1) * sizeof *w.group);
    w.codes = svi_boost_block(s, SVI_BOOST_CODES, (n * d + 1) * sizeof *w.codes);
    if (!w.group || !w.codes)
        return svi_fail_memory(err, "the bins of the trees");
    boost_groups_assign(&w);
    w.start = svi_boost_block(s, SVI_BOOST_STARTS, (size_t)b->lists * (n + 2) * sizeof *w.start + 1);
    if (!w.start)
        return svi_fail_memory(err, "the bins of the trees");
    for (int32_t g = 0; g < b->groups; g++)
        if (w.group[g].list >= 0)
            boost_groups_list(&w, g);
        else
            boost_groups_turn(&w, g);
    b->group = w.group;
    b->codes = w.codes;
    b->start = w.start;
    return SVS_OK;
}
