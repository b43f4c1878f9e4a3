/* LIBSVM text as the columns that its rows name: the same rows, refusals, tables and scores, to the last bit,
 * as by vectors that have a value for each column. */
#include "support/feed.h"
#include "support/quick.h"
#include "support/table.h"

#include "base/random.h"
#include "learner/owned_model.h"
#include "solver/kernel_model.h"

#define ROWS    40
#define COLUMNS 200

/* A number of any size, often 0. */
static double draw_value(struct svi_random *r) {
    return svi_random_below(r, 4)
               ? ldexp((double)svi_random_below(r, 1u << 30) - 5e8, (int)svi_random_below(r, 60) - 60)
               : 0;
}

/* A row of text; some are no rows, or wrong ones. */
static void write_row(FILE *to, struct svi_random *r, int widest, bool wrong) {
    static const char *const others[] = {"",          "# note",    "1 0:1",   "1 2:1 1:1", "-1 3:1 3:1",
                                         "1 5:inf",   "1 5:nan",   "1 999:1", "x 1:1",     "1 7",
                                         "1 1:2 # c", "2 4:1e999", "3:1 4:2", "1 -1:1"};
    if (wrong && svi_random_below(r, 3) == 0) {
        fprintf(to, "%s\n", others[svi_random_below(r, sizeof others / sizeof *others)]);
        return;
    }
    fprintf(to, "%d", (int)svi_random_below(r, 3));
    for (int j = 1; j <= widest; j++)
        if (svi_random_below(r, 8) == 0)
            fprintf(to, " %d:%.17g", j, draw_value(r));
    fputc('\n', to);
}

static char *draw_text(struct svi_random *r, bool wrong) {
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    for (int i = 0; i < ROWS; i++)
        write_row(to, r, 1 + (int)svi_random_below(r, COLUMNS), wrong && i > 0);
    fclose(to);
    return text;
}

static void rows_are_the_same(void **state) {
    (void)state;
    struct svi_random r = {7};
    int bad = 0;
    for (int round = 0; round < often(300, 40); round++) {
        char *text = draw_text(&r, true), *said[2];
        const char *fixed = round % 5 == 0 ? "a,b,c,d,e,f,g" : NULL;
        for (int sparse = 0; sparse < 2; sparse++) {
            const struct svi_reader_options o = {.format = "libsvm", .sparse = sparse};
            struct feed f;
            feed_open(&f, text, strlen(text), &o, fixed);
            said[sparse] = feed_read(&f, false);
            feed_close(&f);
        }
        assert_string_equal(said[0], said[1]);
        bad += strstr(said[0], "BAD") != NULL;
        free(said[0]);
        free(said[1]);
        free(text);
    }
    assert_true(bad > 20);
}

/* The vectors of a reader, one after another, against the rows of a table; returns how many there were. */
static int64_t check_rows(struct feed *f, const svs_rows *rows) {
    double row[COLUMNS + 1];
    int64_t i = 0;
    struct svi_message m;
    svs_error err;
    for (; svi_reader_row(f->reader, &m, &err) == SVI_READ_ROW; i++) {
        assert_true(i < rows->n && m.d <= rows->d && rows->d <= COLUMNS);
        svs_rows_copy(rows, i, row);
        for (int j = 0; j < rows->d; j++)
            assert_true(row[j] == (j < m.d ? m.x[j] : 0));
        svi_shape_commit(&f->shape, &m);
    }
    return i;
}

static void tables_are_the_same(void **state) {
    (void)state;
    struct svi_random r = {8};
    int sparse = 0;
    for (int round = 0; round < often(100, 20); round++) {
        const struct svi_reader_options o = {.format = "libsvm"};
        char *text = draw_text(&r, false);
        struct svi_table t;
        svs_error err;
        struct feed f;
        assert_int_equal(table_read(&t, "a.svm", text, (struct svi_table_options){0}, &err), SVS_OK);
        feed_open(&f, text, strlen(text), &o, NULL);
        assert_int_equal(check_rows(&f, &t.examples.rows), t.examples.rows.n);
        assert_int_equal(t.examples.rows.n, ROWS);
        sparse += !t.examples.rows.dense;
        for (int64_t k = 0; !t.examples.rows.dense && k < svs_rows_stored(&t.examples.rows); k++)
            assert_true(t.examples.rows.value[k] != 0);
        feed_close(&f);
        svi_table_clear(&t);
        free(text);
    }
    assert_true(sparse > 5);
}

/* A sparse row, and the same as a vector of `d` values. */
struct both {
    int64_t start[2];
    int32_t column[COLUMNS];
    double value[COLUMNS], x[COLUMNS];
};

static svs_rows draw_both(struct both *b, struct svi_random *r, int d) {
    int64_t count = 0;
    memset(b->x, 0, sizeof b->x);
    for (int j = 0; j < d; j++)
        if (svi_random_below(r, 3) == 0) {
            b->column[count] = j;
            b->value[count++] = b->x[j] = draw_value(r);
        }
    b->start[1] = b->start[0] + count;
    return (svs_rows){.n = 1, .d = d, .stride = 1, .start = b->start, .column = b->column, .value = b->value};
}

static void scores_have_the_same_bits(void **state) {
    (void)state;
    struct svi_random r = {9};
    for (int round = 0; round < often(3000, 300); round++) {
        const int d = 1 + (int)svi_random_below(&r, 70), rows = 1 + (int)svi_random_below(&r, 5);
        struct both b = {0};
        double dense[5], sparse[5];
        struct svi_owned_model *o = svi_model_new(SVS_REGRESS, d, rows, NULL, 0, NULL, NULL);
        svs_model *m = &o->model;
        for (int k = 0; k < rows * d; k++)
            o->W[k] = draw_value(&r);
        for (int k = 0; k < rows; k++)
            o->b[k] = draw_value(&r);
        draw_both(&b, &r,
                  d + (int)svi_random_below(&r, 20)); /* what the model does not know is passed over */
        svs_model_scores(m, b.x, dense);
        svi_model_scores_sparse(m, b.column, b.value, b.start[1], sparse);
        assert_memory_equal(dense, sparse, (size_t)rows * sizeof *dense);
        svs_model_free(&m);
    }
}

static void kernel_scores_leave_no_trace(void **state) {
    (void)state;
    struct svi_random r = {10};
    const svs_value classes[] = {svs_int(0), svs_int(1)};
    enum { N = 6, D = 30 };
    struct both b = {0};
    struct svi_owned_kernel *o = svi_kernel_model_new(1, N, D, N * D, classes, 2, NULL);
    svs_kernel_model *m = &o->model;
    for (int i = 0; i < N; i++) {
        const svs_rows s = draw_both(&b, &r, D);
        memcpy(o->column + o->start[i], s.column, (size_t)b.start[1] * sizeof *s.column);
        memcpy(o->value + o->start[i], s.value, (size_t)b.start[1] * sizeof *s.value);
        o->start[i + 1] = o->start[i] + b.start[1];
        o->coef[i] = draw_value(&r);
    }
    svi_kernel_model_norms(o);
    m->kernel = (svs_kernel){.kind = SVS_POLYNOMIAL, .gamma = 0.5, .coef0 = 1, .degree = 2};
    double kept[N + D] = {0}, fresh[N + D], scores[2];
    for (int round = 0; round < 100; round++) {
        const svs_rows x = draw_both(&b, &r, round % 3 ? D : D + 9);
        memset(fresh, 0xff, sizeof fresh);
        svi_kernel_scores(m, &x, 0, kept, &scores[0]);
        svs_kernel_scores(m, &x, 0, fresh, &scores[1]);
        assert_memory_equal(&scores[0], &scores[1], sizeof *scores);
        for (int j = 0; j < D; j++)
            assert_true(kept[N + j] == 0);
    }
    svs_kernel_model_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_same), cmocka_unit_test(tables_are_the_same),
        cmocka_unit_test(scores_have_the_same_bits), cmocka_unit_test(kernel_scores_leave_no_trace)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
