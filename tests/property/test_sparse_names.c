/* VW text as the columns that its rows name: the values that stand in the text, in the places of the names in
 * the order of their first sight, to the last bit. */
#include "support/quick.h"
#include "support/table.h"

#include "base/random.h"

enum { ROWS = 60, COLUMNS = 400, MOST = 24 };

struct expected {
    double value[ROWS][COLUMNS]; /* by place */
    int place[COLUMNS];          /* of a name, -1 = not seen yet */
    int seen;
};

/* A value for each of some names, in any order; some are 0. */
static void write_row(FILE *to, struct svi_random *r, struct expected *e, int row, int most) {
    bool named[COLUMNS] = {false};
    fprintf(to, "%d |", (int)svi_random_below(r, 2));
    for (int k = (int)svi_random_below(r, (uint32_t)most); k > 0; k--) {
        const int name = (int)svi_random_below(r, COLUMNS);
        const double v = svi_random_below(r, 5) ? ldexp((double)svi_random_below(r, 1u << 30) - 5e8, -20) : 0;
        if (named[name])
            continue;
        named[name] = true;
        if (e->place[name] < 0)
            e->place[name] = e->seen++;
        e->value[row][e->place[name]] = v;
        fprintf(to, " f%d:%.17g", name, v);
    }
    fputc('\n', to);
}

static double table_value(const svs_rows *x, int64_t i, int j) {
    double v = 0;
    if (x->dense)
        return x->dense[i * x->stride + j];
    for (int64_t k = x->start[i]; k < x->start[i + 1]; k++) {
        assert_true(k == x->start[i] || x->column[k] > x->column[k - 1]);
        assert_true(x->value[k] != 0);
        v = x->column[k] == j ? x->value[k] : v;
    }
    return v;
}

/* Rows that name few columns, and some that name many. */
static void values_are_those_of_the_text(void **state) {
    static struct expected e;
    struct svi_random r = {11};
    (void)state;
    for (int round = 0; round < often(100, 10); round++) {
        struct svi_table t;
        svs_error err;
        char *text = NULL;
        size_t size = 0;
        FILE *to = open_memstream(&text, &size);
        memset(&e, 0, sizeof e);
        memset(e.place, -1, sizeof e.place);
        for (int i = 0; i < ROWS; i++)
            write_row(to, &r, &e, i, svi_random_below(&r, 8) ? MOST : COLUMNS);
        fclose(to);
        const struct svi_table_options o = {.reader.format = "vw"};
        if (table_read(&t, "names.vw", text, o, &err) != SVS_OK)
            fail_msg("%s", err.text);
        const svs_rows *x = &t.examples.rows;
        assert_int_equal(x->n, ROWS);
        assert_int_equal(x->d, e.seen);
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < e.seen; j++)
                assert_true(table_value(x, i, j) == e.value[i][j]);
        svi_table_clear(&t);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_are_those_of_the_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
