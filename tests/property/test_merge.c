/* One model of many parts: it is that of all their rows, at most ten times as far off as a central float64
 * solution, whatever happened to the records on their way; its bits do not depend on their order; a part that
 * is dropped was never there; parts that do not fit are left out with both lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/merge_rows.h"
#include "support/merge_parts.h"
#include "support/sums_record.h"
#include "merge/merge_solve.h"
#include "merge/union_solve.h"
#include "svmstream/raw_rows.h"

#define PARTS   8
#define RECORDS 12 /* of a part, one after another */

static const struct svi_merge_options plain = {.max_features = 1024, .max_classes = 64, .max_bytes = 1e9};

static void take(struct svi_merge *m, const struct svi_bytes *b, enum svi_merge_taken wanted) {
    enum svi_merge_taken taken = SVI_TAKEN_OLD;
    svs_error err = {0};
    if (svi_merge_take(m, b->data, b->size, 0, &taken, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(taken, wanted);
}

static void solve(struct svi_merge *m) {
    if (svi_merge_solve(m) != SVS_OK)
        fail_msg("%s", m->failure.text);
}

static enum svi_part_state state_of(const struct svi_merge *m, const char *name) {
    for (int64_t i = 0; i < m->count; i++)
        if (strcmp(m->part[i]->record.part, name) == 0)
            return svi_part_state(m->part[i]);
    fail_msg("no part %s", name);
    return SVI_PART_STATE_COUNT;
}

/* ---- the bar */

/* A part has learned rows part, part + PARTS, ...: after record r the first (r + 1) / RECORDS of them, of
 * which the last half are held. */
static void record_range(const struct rows *r, int part, int record, int *first, int *end) {
    const int own = (r->n - part + PARTS - 1) / PARTS, seen = own * (record + 1) / RECORDS;
    *first = part + PARTS * (seen / 2);
    *end = part + PARTS * seen;
    *end = *end > r->n ? r->n : *end;
}

/* Sends record `record` of the part in its epoch, some times; notes it if it is the newest so far. */
static void send_record(struct svi_merge *m, const struct rows *r, int part, uint64_t epoch, int record,
                        int times, int newest[PARTS], uint64_t epochs[PARTS], svs_scale scale) {
    struct svi_bytes b = {0};
    struct svi_sums s = {.part_epoch = epoch, .offset = record + 1, .C = 100, .scale = scale};
    int first, end;
    record_range(r, part, record, &first, &end);
    part_name(&s, part);
    part_of_rows(&s, r, first, end, PARTS);
    assert_int_equal(svi_sums_encode(&s, &b), SVS_OK);
    const bool newer = epoch > epochs[part] || (epoch == epochs[part] && record > newest[part]);
    const bool again = epoch == epochs[part] && record == newest[part];
    take(m, &b, newer ? SVI_TAKEN_NEW : again ? SVI_TAKEN_AGAIN : SVI_TAKEN_OLD);
    for (int i = 1; i < times; i++)
        take(m, &b, newer || again ? SVI_TAKEN_AGAIN : SVI_TAKEN_OLD);
    if (newer) {
        newest[part] = record;
        epochs[part] = epoch;
    }
    svi_bytes_clear(&b);
    svi_window_sums_clear(&s.sums);
}

/* 10 % lost, 30 % twice, old ones once more, and one part killed in the middle, whose rows another process
 * repeats from the beginning in a later epoch while records of the first are still on their way. */
static void deliver(struct svi_merge *m, const struct rows *r, svs_scale scale, int newest[PARTS],
                    uint64_t *seed) {
    uint64_t epochs[PARTS] = {0};
    for (int p = 0; p < PARTS; p++)
        newest[p] = -1;
    for (int record = 0; record < RECORDS; record++)
        for (int p = 0; p < PARTS; p++) {
            const double u = ref_uniform(seed);
            const bool killed = p == 3 && record >= RECORDS / 2;
            if (u >= .1 || record == 0)
                send_record(m, r, p, killed ? 9 : 5, killed ? record - 3 : record, u < .4 ? 2 : 1, newest,
                            epochs, scale);
            if (ref_uniform(seed) < .2)
                send_record(m, r, p, 5, (int)(ref_uniform(seed) * (record + 1)), 1, newest, epochs, scale);
        }
}

/* The rows that the newest records hold. */
static void rows_held(const struct rows *r, const int newest[PARTS], struct rows *held) {
    *held = *r;
    held->n = 0;
    held->x = malloc(sizeof(double) * (size_t)r->n * (size_t)r->d);
    held->t = malloc(sizeof(double) * (size_t)r->n);
    held->w = malloc(sizeof(double) * (size_t)r->n);
    for (int p = 0; p < PARTS; p++) {
        int first, end;
        record_range(r, p, newest[p], &first, &end);
        for (int i = first; i < end; i += PARTS, held->n++) {
            memcpy(held->x + (size_t)held->n * (size_t)r->d, r->x + (size_t)i * (size_t)r->d,
                   sizeof(double) * (size_t)r->d);
            held->t[held->n] = r->t[i];
            held->w[held->n] = r->w[i];
        }
    }
}

/* Classes of the union stand in the order in which the parts have them: labels are their indices here. */
static void model_numbers(const svs_model *m, double *out) {
    for (int k = 0; k < m->rows; k++) {
        const int to = m->rows > 1 ? (int)m->classes[k].as.i : 0;
        const double sign = m->class_count == 2 && m->classes[1].as.i == 0 ? -1 : 1;
        for (int j = 0; j < m->d; j++)
            out[to * m->d + j] = sign * m->W[k * m->d + j];
        out[m->rows * m->d + to] = sign * m->b[k];
    }
}

static void check_bar(int n, int d, int classes, double cond, bool weighted, svs_scale scale, uint64_t seed) {
    struct svi_merge m = {0};
    struct rows r, held;
    int newest[PARTS];
    const int rows = classes > 2 ? classes : 1;
    rows_make(&r, n, d, classes, cond, weighted, seed);
    svi_merge_init(&m, &plain);
    deliver(&m, &r, scale, newest, &seed);
    solve(&m);
    rows_held(&r, newest, &held);
    assert_int_equal(m.model->learned, held.n);
    assert_int_equal(m.model->rows, rows);
    long double *truth = calloc((size_t)rows * (size_t)(d + 1), sizeof *truth);
    double *central = calloc((size_t)rows * (size_t)(d + 1), sizeof *central),
           *got = calloc((size_t)rows * (size_t)(d + 1), sizeof *got);
    rows_truth(&held, 100, scale, truth);
    rows_central(&held, 100, scale, central);
    model_numbers(m.model, got);
    const double of_merged = rows_error(&held, got, truth), of_central = rows_error(&held, central, truth);
    if (!(of_merged <= 10 * of_central))
        fail_msg("d %d, %d classes, condition %g: merged %.2g, central %.2g", d, classes, cond, of_merged,
                 of_central);
    free(truth), free(central), free(got);
    rows_free(&held);
    rows_free(&r);
    svi_merge_clear(&m);
}

static void test_the_bar(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int d = 10; d <= 54; d += 44)
        for (int classes = 0; classes < 4; classes += classes ? 1 : 2)
            for (double cond = 10; cond < 2e5; cond *= 100)
                for (int scale = 0; scale < 2; scale++, seed++)
                    check_bar(2400, d, classes, cond, seed % 2, scale ? SVS_SCALE_STANDARD : SVS_SCALE_NONE,
                              seed);
    check_bar(2400, 500, 3, 1e3, true, SVS_SCALE_STANDARD, seed);
}

/* ---- bits */

static bool models_equal(const svs_model *a, const svs_model *b) {
    return a->d == b->d && a->rows == b->rows && a->class_count == b->class_count &&
           memcmp(a->W, b->W, sizeof(double) * (size_t)a->rows * (size_t)a->d) == 0 &&
           memcmp(a->b, b->b, sizeof(double) * (size_t)a->rows) == 0 && a->schema_size == b->schema_size &&
           (!a->schema || memcmp(a->schema, b->schema, a->schema_size) == 0);
}

static void test_order_does_not_matter(void **state) {
    (void)state;
    struct svi_merge m[2];
    memset(m, 0, sizeof m);
    struct rows r;
    int newest[PARTS], other[PARTS];
    uint64_t seed = 77, epochs[PARTS] = {0};
    rows_make(&r, 1200, 10, 3, 100, true, 4);
    svi_merge_init(&m[0], &plain);
    svi_merge_init(&m[1], &plain);
    deliver(&m[0], &r, SVS_SCALE_STANDARD, newest, &seed);
    solve(&m[0]);
    /* The newest records alone, from the last part to the first, with solutions between. */
    for (int p = 0; p < PARTS; p++)
        other[p] = -1;
    for (int p = PARTS - 1; p >= 0; p--) {
        send_record(&m[1], &r, p, p == 3 ? 9 : 5, newest[p], 1, other, epochs, SVS_SCALE_STANDARD);
        solve(&m[1]);
    }
    assert_true(models_equal(m[0].model, m[1].model));
    assert_int_equal(m[1].model->version, PARTS);
    svi_merge_clear(&m[0]);
    svi_merge_clear(&m[1]);
    rows_free(&r);
}

/* Dropped is never there, to the last bit; restored is never dropped. A dropped part goes on sending. */
static void test_drop_and_restore(void **state) {
    (void)state;
    struct svi_merge with = {0}, without = {0};
    struct rows r;
    svs_error err;
    int newest[2][PARTS];
    uint64_t epochs[2][PARTS] = {{0}};
    rows_make(&r, 900, 10, 2, 1e4, false, 8);
    svi_merge_init(&with, &plain);
    svi_merge_init(&without, &plain);
    memset(newest, -1, sizeof newest);
    for (int p = 0; p < PARTS; p++) {
        send_record(&with, &r, p, 5, 3, 1, newest[0], epochs[0], SVS_SCALE_NONE);
        if (p != 2)
            send_record(&without, &r, p, 5, 3, 1, newest[1], epochs[1], SVS_SCALE_NONE);
    }
    solve(&with);
    solve(&without);
    assert_false(models_equal(with.model, without.model));
    assert_int_equal(svi_merge_drop(&with, "shard-2", &err), SVS_OK);
    assert_int_equal(svi_merge_drop(&with, "shard-2", &err), SVS_UNAVAILABLE);
    assert_int_equal(svi_merge_drop(&with, "shard-9", &err), SVS_UNKNOWN_ID);
    assert_non_null(strstr(err.text, "shard-9"));
    send_record(&with, &r, 2, 5, 4, 1, newest[0], epochs[0], SVS_SCALE_NONE);
    solve(&with);
    assert_true(models_equal(with.model, without.model));
    assert_int_equal(state_of(&with, "shard-2"), SVI_PART_DROPPED);
    assert_int_equal(svi_merge_restore(&with, "shard-2", &err), SVS_OK);
    assert_int_equal(svi_merge_restore(&with, "shard-2", &err), SVS_UNAVAILABLE);
    send_record(&without, &r, 2, 5, 4, 1, newest[1], epochs[1], SVS_SCALE_NONE);
    solve(&with);
    solve(&without);
    assert_true(models_equal(with.model, without.model));
    svi_merge_clear(&with);
    svi_merge_clear(&without);
    rows_free(&r);
}

/* At the same offset the later event holds: something was forgotten, or a setting changed. */
static void test_later_event_at_the_same_offset(void **state) {
    (void)state;
    struct svi_merge m = {0};
    svi_merge_init(&m, &plain);
    struct svi_bytes early = {0}, late = {0};
    part_event(&early, "a", 5, 10, 100, 3, 1.0);
    part_event(&late, "a", 5, 10, 100, 4, 2.0);
    take(&m, &early, SVI_TAKEN_NEW);
    take(&m, &late, SVI_TAKEN_NEW);
    take(&m, &early, SVI_TAKEN_OLD);
    take(&m, &late, SVI_TAKEN_AGAIN);
    assert_true(m.part[0]->record.C == 2.0);
    /* The same again in a later event is a sign of life, and nothing new. */
    solve(&m);
    part_event(&late, "a", 5, 10, 100, 9, 2.0);
    take(&m, &late, SVI_TAKEN_AGAIN);
    assert_false(m.changed);
    part_event(&late, "a", 5, 10, 101, 0, 3.0); /* of the next process */
    take(&m, &late, SVI_TAKEN_NEW);
    svi_bytes_clear(&early);
    svi_bytes_clear(&late);
    svi_merge_clear(&m);
}

/* Two processes of one part differ from late records: of one that has ended nothing beyond its last comes. */
static void test_two_processes_of_one_part(void **state) {
    (void)state;
    struct svi_merge m = {0};
    struct svi_bytes b = {0};
    svs_error err;
    enum svi_merge_taken taken;
    svi_merge_init(&m, &plain);
    const struct {
        uint64_t part_epoch, epoch, seq;
        int64_t offset;
        bool contested;
    } step[] = {{1, 10, 5, 50, false}, {1, 20, 0, 60, false}, {1, 10, 3, 30, false}, {1, 10, 4, 40, false},
                {1, 10, 5, 50, false}, {1, 20, 1, 70, false}, /* late ones of a process that was replaced */
                {1, 10, 6, 80, false}, {1, 20, 2, 90, false}, {1, 10, 7, 95, false}, {1, 20, 3, 96, false},
                {1, 10, 8, 97, true}, /* it lives, and both count in turn */
                {2, 30, 0, 1, false}, /* another one takes over */
                {1, 20, 4, 98, false}, {1, 20, 5, 99, false}, {1, 20, 6, 100, true}};
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) {
        part_event(&b, "a", step[i].part_epoch, step[i].offset, step[i].epoch, step[i].seq, 1);
        assert_int_equal(svi_merge_take(&m, b.data, b.size, 0, &taken, &err), SVS_OK);
        if (svi_part_contested(m.part[0]) != step[i].contested)
            fail_msg("step %zu", i);
    }
    svi_bytes_clear(&b);
    svi_merge_clear(&m);
}

/* ---- joining by name */

/* A part with named features that hold `n` rows of the given numbers; `schema` may be NULL. */
static void send_named(struct svi_merge *m, const char *part, enum svi_sums_kind kind,
                       const char *const *names, int d, const struct svi_bytes *schema, uint64_t seed) {
    struct svi_bytes b = {0};
    struct svi_sums s = {
        .part_epoch = 1, .offset = 40, .C = 10, .scale = SVS_SCALE_STANDARD, .features = names};
    struct rows r;
    rows_make(&r, 40, d, 2, 10, false, seed);
    part_of_rows(&s, &r, 0, 40, 1);
    s.kind = kind;
    snprintf(s.part, sizeof s.part, "%s", part);
    if (schema) {
        s.schema = schema->data;
        s.schema_size = schema->size;
    }
    assert_int_equal(svi_sums_encode(&s, &b), SVS_OK);
    take(m, &b, SVI_TAKEN_NEW);
    svi_bytes_clear(&b);
    svi_window_sums_clear(&s.sums);
    rows_free(&r);
}

/* The same rows with columns in another order, and a feature that one part does not have: the model is that
 * of all rows with 0 in it. */
static void test_features_by_name(void **state) {
    (void)state;
    static const char *const abc[] = {"a", "b", "c"}, *const cb[] = {"c", "b"};
    struct svi_merge m = {0};
    struct rows wide, narrow, all;
    struct svi_sums s = {.part_epoch = 1, .offset = 1, .C = 100, .scale = SVS_SCALE_STANDARD};
    struct svi_bytes b = {0};
    svi_merge_init(&m, &plain);
    rows_make(&wide, 60, 3, 2, 10, false, 3);
    rows_make(&narrow, 50, 2, 2, 10, false, 4);
    rows_make(&all, 110, 3, 2, 10, false, 5);
    for (int i = 0; i < 110; i++) {
        const double *x = i < 60 ? wide.x + 3 * i : narrow.x + 2 * (i - 60);
        const double row[3] = {i < 60 ? x[0] : 0, x[1], i < 60 ? x[2] : x[0]};
        memcpy(all.x + 3 * i, row, sizeof row);
        all.t[i] = i < 60 ? wide.t[i] : narrow.t[i - 60];
    }
    for (int k = 0; k < 2; k++) {
        snprintf(s.part, sizeof s.part, "part%d", k);
        s.features = k ? cb : abc;
        part_of_rows(&s, k ? &narrow : &wide, 0, k ? 50 : 60, 1);
        s.kind = SVI_SUMS_NAMED;
        b.size = 0;
        assert_int_equal(svi_sums_encode(&s, &b), SVS_OK);
        take(&m, &b, SVI_TAKEN_NEW);
    }
    solve(&m);
    long double truth[4];
    double central[4], got[4];
    rows_truth(&all, 100, SVS_SCALE_STANDARD, truth);
    rows_central(&all, 100, SVS_SCALE_STANDARD, central);
    model_numbers(m.model, got);
    assert_int_equal(m.model->d, 3);
    assert_string_equal(m.model->features[2], "c");
    assert_true(rows_error(&all, got, truth) <= 10 * rows_error(&all, central, truth));
    svi_bytes_clear(&b);
    svi_window_sums_clear(&s.sums);
    rows_free(&wide), rows_free(&narrow), rows_free(&all);
    svi_merge_clear(&m);
}

/* Of three parts one has another column: it is left out, with both lists, and joins when it is right. */
static void test_other_columns_are_refused(void **state) {
    (void)state;
    static const char *const ab[] = {"a", "b"}, *const ba[] = {"b", "a"}, *const ac[] = {"a", "humidity"};
    struct svi_merge m = {0};
    svi_merge_init(&m, &plain);
    send_named(&m, "1", SVI_SUMS_DENSE, ac, 2, NULL, 1); /* the first by name, but alone */
    send_named(&m, "2", SVI_SUMS_DENSE, ab, 2, NULL, 2);
    send_named(&m, "3", SVI_SUMS_DENSE, ba, 2, NULL, 3);
    solve(&m);
    assert_int_equal(state_of(&m, "1"), SVI_PART_REFUSED);
    assert_int_equal(state_of(&m, "3"), SVI_PART_JOINED);
    assert_int_equal(m.part[0]->why.code, SVS_WRONG_COLUMNS);
    assert_non_null(strstr(m.part[0]->why.text, "humidity, a"));
    assert_non_null(strstr(m.part[0]->why.text, "b, a"));
    assert_int_equal(m.model->learned, 80);
    assert_int_equal(m.model->d, 2);
    send_named(&m, "4", SVI_SUMS_SPARSE, NULL, 2, NULL, 4);
    solve(&m);
    assert_int_equal(m.part[3]->why.code, SVS_WRONG_KIND);
    struct svi_bytes b = {0};
    part_event(&b, "1", 1, 41, 1, 1, 10);
    take(&m, &b, SVI_TAKEN_NEW); /* dense without names */
    solve(&m);
    assert_non_null(strstr(m.part[0]->why.text, "no names"));
    svi_bytes_clear(&b);
    svi_merge_clear(&m);
}

/* C and scale must agree, unless they are given. */
static void test_settings_must_agree(void **state) {
    (void)state;
    struct svi_merge m = {0};
    struct svi_bytes b = {0};
    svi_merge_init(&m, &plain);
    part_event(&b, "a", 1, 1, 1, 1, 10);
    take(&m, &b, SVI_TAKEN_NEW);
    part_event(&b, "b", 1, 1, 1, 1, 1);
    take(&m, &b, SVI_TAKEN_NEW);
    assert_int_equal(svi_merge_solve(&m), SVS_SETTING);
    assert_non_null(strstr(m.failure.text, "C is 10 in part a, but 1 in part b: set --C"));
    assert_null(m.model);
    m.o.C = 3;
    solve(&m);
    assert_true(m.model->C == 3);
    svi_bytes_clear(&b);
    svi_merge_clear(&m);
}

static void test_bounds(void **state) {
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d"};
    struct svi_merge_options small = plain;
    struct svi_merge m = {0};
    struct svi_bytes b = {0};
    svs_error err;
    enum svi_merge_taken taken;
    small.max_features = 3;
    svi_merge_init(&m, &small);
    send_named(&m, "1", SVI_SUMS_NAMED, names, 2, NULL, 1);
    send_named(&m, "2", SVI_SUMS_NAMED, names, 4, NULL, 2);
    send_named(&m, "3", SVI_SUMS_NAMED, names, 3, NULL, 3);
    solve(&m);
    assert_int_equal(m.part[1]->why.code, SVS_LIMIT);
    assert_int_equal(m.model->d, 3);
    m.o.max_bytes = m.bytes + 10;
    part_event(&b, "4", 1, 1, 1, 1, 10);
    assert_int_equal(svi_merge_take(&m, b.data, b.size, 0, &taken, &err), SVS_LIMIT);
    assert_int_equal(m.count, 3);
    assert_int_equal(m.counts.refused, 1);
    svi_bytes_clear(&b);
    svi_merge_clear(&m);
}

/* Silent parts are marked, and stay. */
static void test_stale(void **state) {
    (void)state;
    struct svi_merge m = {0};
    struct svi_bytes b = {0};
    enum svi_merge_taken taken;
    svi_merge_init(&m, &plain);
    m.o.stale = 30;
    part_event(&b, "a", 1, 1, 1, 1, 10);
    assert_int_equal(svi_merge_take(&m, b.data, b.size, 100, &taken, NULL), SVS_OK);
    assert_false(svi_merge_mark(&m, 130));
    assert_true(svi_merge_mark(&m, 130.1));
    solve(&m);
    assert_int_equal(state_of(&m, "a"), SVI_PART_STALE);
    assert_int_equal(m.model->learned, 40);
    assert_int_equal(svi_merge_take(&m, b.data, b.size, 131, &taken, NULL), SVS_OK);
    assert_true(svi_merge_mark(&m, 131));
    assert_int_equal(state_of(&m, "a"), SVI_PART_JOINED);
    svi_bytes_clear(&b);
    svi_merge_clear(&m);
}

/* ---- words */

/* {missing: mean, columns: [{temp: number}, {shift: category of its values}]} for features temp, shift=... */
static void schema_of(struct svi_bytes *out, double mean, const char *kind, int words) {
    struct svi_pack p;
    out->size = 0;
    svi_pack_begin(&p, out);
    svi_pack_map(&p, 2);
    svi_put_text(&p, "missing", "mean");
    svi_put_array(&p, "columns", 2);
    svi_pack_map(&p, 4);
    svi_put_text(&p, "name", "temp");
    svi_put_text(&p, "kind", "number");
    svi_put_int(&p, "feature", 0);
    svi_put_real(&p, "mean", mean);
    svi_pack_map(&p, 3);
    svi_put_text(&p, "name", "shift");
    svi_put_text(&p, "kind", kind);
    if (strcmp(kind, "number") == 0) {
        svi_put_int(&p, "feature", 1);
    } else {
        svi_put_array(&p, "features", (size_t)words);
        for (int i = 0; i < words; i++)
            svi_pack_int(&p, i + 1);
    }
    assert_int_equal(svi_pack_end(&p), SVS_OK);
}

/* Raw rows are scored by the merged model: the words of all parts, and the mean over all of them. */
static void test_schema_is_united(void **state) {
    (void)state;
    static const char *const days[] = {"temp", "shift=day", "shift=night"},
                             *const late[] = {"temp", "shift=late"}, *const numbers[] = {"temp", "shift"};
    struct svi_merge m = {0};
    struct svi_bytes schema = {0};
    svi_merge_init(&m, &plain);
    schema_of(&schema, 10, "category", 2);
    send_named(&m, "1", SVI_SUMS_NAMED, days, 3, &schema, 1);
    schema_of(&schema, 40, "category", 1);
    send_named(&m, "2", SVI_SUMS_NAMED, late, 2, &schema, 2);
    schema_of(&schema, 4, "number", 0);
    send_named(&m, "3", SVI_SUMS_NAMED, numbers, 2, &schema, 3);
    solve(&m);
    assert_int_equal(state_of(&m, "3"), SVI_PART_REFUSED);
    assert_non_null(strstr(m.part[2]->why.text, "column shift is numbers here, but a category"));
    assert_int_equal(m.model->d, 4);
    svs_error err;
    svs_schema *s = svs_schema_of_model(m.model, &err);
    if (!s)
        fail_msg("%s", err.text);
    const double *x;
    int d;
    assert_int_equal(svs_schema_begin(s, &err), SVS_OK);
    assert_int_equal(svs_schema_missing(s, "temp", &err), SVS_OK);
    assert_int_equal(svs_schema_word(s, "shift", "late", &err), SVS_OK);
    assert_int_equal(svs_schema_end(s, &x, &d, &err), SVS_OK);
    assert_true(d == 4 && x[0] == 25 && x[1] == 0 && x[2] == 0 && x[3] == 1);
    svs_schema_free(&s);
    svi_bytes_clear(&schema);
    svi_merge_clear(&m);
}

/* ---- what anybody may send */

/* Random records of few names: whatever they say, a merge joins or refuses them, and what it solves is
 * finite. Drops and restores in between. */
static void test_random_records(void **state) {
    (void)state;
    struct svi_random random = {11};
    struct svi_merge m = {0};
    struct svi_sums r = {0};
    struct record_texts texts;
    struct svi_bytes b = {0};
    svs_error err;
    enum svi_merge_taken taken;
    int solved = 0, refused = 0;
    svi_merge_init(&m, &plain);
    m.o.max_classes = 6;
    for (int i = 0; i < 4000; i++) {
        record_random(&r, &texts, &random);
        snprintf(r.part, sizeof r.part, "part %d", (int)svi_random_below(&random, 12));
        r.schema = NULL;
        b.size = 0;
        assert_int_equal(svi_sums_encode(&r, &b), SVS_OK);
        if (svi_random_below(&random, 4) == 0)
            b.data[svi_random_below(&random, (int)b.size)] ^= (uint8_t)(1 << svi_random_below(&random, 8));
        refused += svi_merge_take(&m, b.data, b.size, i, &taken, &err) != SVS_OK;
        if (svi_random_below(&random, 8) == 0)
            (void)svi_merge_drop(&m, r.part, &err);
        if (svi_random_below(&random, 4) == 0)
            (void)svi_merge_restore(&m, r.part, &err);
        m.o.C = svi_random_below(&random, 2) ? 1 : 0;
        m.o.scaled = svi_random_below(&random, 4) > 0;
        const bool good = svi_merge_solve(&m) == SVS_OK;
        solved += good;
        assert_true(good || m.failure.text[0]);
        for (int j = 0; good && j < m.model->d * m.model->rows; j++)
            assert_true(isfinite(m.model->W[j]));
    }
    assert_true(solved > 100 && refused > 100);
    svi_sums_clear(&r);
    svi_bytes_clear(&b);
    svi_merge_clear(&m);
}

/* Features that repeat others, and hardly any ridge: a condition that a factor in double cannot have. The
 * solution fulfils the equations all the same. */
static void test_beyond_double(void **state) {
    (void)state;
    enum { D = 12 };
    int32_t same[D];
    struct svi_union_sums u = {0};
    struct svi_window_sums s = {0};
    struct rows r;
    double W[D], b;
    svs_error err;
    rows_make(&r, 20000, D, 0, 10, false, 3);
    for (int j = 0; j < D; j++)
        same[j] = j;
    for (int i = 0; i < r.n; i++)
        for (int j = 2; j < D; j++)
            r.x[D * i + j] = r.x[D * i + j % 2]; /* exact copies of two */
    rows_sums(&r, 0, r.n, 1, &s);
    const struct svi_union_part part = {&s, same, same};
    assert_int_equal(svi_union_shape(&u, SVS_REGRESS, D, 0, &err), SVS_OK);
    svi_union_center(&u, &part, 1);
    svi_union_add(&u, &part);
    const struct svi_union_options o = {1e12, SVS_SCALE_STANDARD, NULL};
    if (svi_union_solve(&u, &o, W, &b, &err) != SVS_OK)
        fail_msg("%s", err.text);
    /* Copies share the weight equally, which only the ridge decides. */
    for (int j = 2; j < D; j++)
        assert_true(fabs(W[j] - W[j % 2]) <= 1e-6 * fabs(W[j % 2]));
    svi_union_clear(&u);
    svi_window_sums_clear(&s);
    rows_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_bar),
        cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_drop_and_restore),
        cmocka_unit_test(test_later_event_at_the_same_offset),
        cmocka_unit_test(test_two_processes_of_one_part),
        cmocka_unit_test(test_features_by_name),
        cmocka_unit_test(test_other_columns_are_refused),
        cmocka_unit_test(test_settings_must_agree),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_stale),
        cmocka_unit_test(test_schema_is_united),
        cmocka_unit_test(test_random_records),
        cmocka_unit_test(test_beyond_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
