/* merge_parts.h: sums records of the rows of merge_rows.h, as parts named shard-0, shard-1, ... publish them.
 */
#ifndef TEST_SUPPORT_MERGE_PARTS_H
#define TEST_SUPPORT_MERGE_PARTS_H

#include "merge/sums.h"
#include "support/merge_rows.h"
#include "wire/pack.h"

static const svs_value part_labels[] = {
    {.kind = SVS_INT, .as.i = 0}, {.kind = SVS_INT, .as.i = 1}, {.kind = SVS_INT, .as.i = 2}};

static inline void part_name(struct svi_sums *s, int part) {
    snprintf(s->part, sizeof s->part, "shard-%d", part);
}

/* Fills task, classes and numbers from rows first, first + step, ... below `end`. */
static inline void part_of_rows(struct svi_sums *s, const struct rows *r, int first, int end, int step) {
    s->task = r->classes ? SVS_CLASSIFY : SVS_REGRESS;
    s->window = 1000;
    s->classes = part_labels;
    rows_sums(r, first, end, step, &s->sums);
}

/* The payload of an event: 40 dense rows of 2 features and classes 0 and 1. */
static inline void part_event(struct svi_bytes *out, const char *part, uint64_t part_epoch, int64_t offset,
                              uint64_t epoch, uint64_t seq, double C) {
    struct svi_sums s = {.part_epoch = part_epoch, .offset = offset, .C = C, .scale = SVS_SCALE_STANDARD};
    struct svi_pack p;
    struct rows r;
    out->size = 0;
    rows_make(&r, 40, 2, 2, 10, false, 1);
    part_of_rows(&s, &r, 0, 40, 1);
    snprintf(s.part, sizeof s.part, "%s", part);
    svi_pack_begin(&p, out);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_int(&p, "v", 1);
    svi_put_text(&p, "stream", "s");
    svi_put_uint(&p, "epoch", epoch);
    svi_put_uint(&p, "seq", seq);
    svi_put_real(&p, "ts", 0);
    svi_sums_put(&p, &s);
    svi_pack_close(&p, map);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    svi_window_sums_clear(&s.sums);
    rows_free(&r);
}

#endif
