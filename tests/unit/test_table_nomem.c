/* Every allocation of a table fails once: it says so, and nothing is leaked. Linked with --wrap. */
#include "support/table.h"
#include "support/nomem.h"

static void pass_over(void *user, const svs_examples *e, int64_t i) {
    (void)user, (void)e, (void)i;
}

static void fail_away(const char *name, const char *text, struct svi_table_options o, svi_table_row *row,
                      int64_t rows) {
    char path[256];
    int without = 0; /* what makes rows quicker is done without */
    table_file(name, text, path);
    o.reader = (struct svi_reader_options){.format = "auto", .label = "label"};
    o.max_features = 100;
    int n = 0;
    for (bool used = true; used; n++) {
        struct svi_table t;
        svs_error err = {0};
        assert_true(n < 400);
        left = n;
        svs_code code = svi_table_each(&t, path, &o, row, NULL, &err);
        used = left < 0;
        left = -1;
        without += used && code == SVS_OK;
        assert_true(code == SVS_OK ? without <= 1 : used && code == SVS_NO_MEMORY);
        assert_int_equal(err.code, code);
        if (code == SVS_OK)
            assert_int_equal(t.examples.rows.n, rows);
        svi_table_clear(&t);
        assert_null(t.owned);
    }
    assert_true(n > 10);
    unlink(path);
}

static void fail_each(const char *name, const char *text, struct svi_table_options o, int64_t rows) {
    fail_away(name, text, o, NULL, rows);
}

/* More rows, values and classes than there is room for at first. */
static void no_memory_is_said(void **state) {
    (void)state;
    enum { ROWS = 1500, COLUMNS = 12 };
    static const char *const names[] = {"c3", "c1"};
    char *text = malloc(ROWS * COLUMNS * 8), *to = text;
    for (int j = 0; j < COLUMNS; j++)
        to += sprintf(to, "c%d,", j);
    to += sprintf(to, "label\n");
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++)
            to += sprintf(to, "%d,", (7 * i + j) % 1000 + 1);
        to += sprintf(to, "k%d\n", i % 20);
    }
    fail_each("a.csv", text, (struct svi_table_options){0}, ROWS);
    fail_each("a.csv.gz", text, (struct svi_table_options){.names = names, .name_count = 2}, ROWS);
    free(text);
    fail_each("a.svm",
              "1 1:1 90:2\n-1 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1 10:1 11:1 12:1 13:1 14:1 15:1 16:1 17:1\n",
              (struct svi_table_options){.unlabelled = true}, 2);
    const svs_value known[] = {svs_int(1), svs_int(-1)};
    fail_each("b.jsonl", "{\"a\":1,\"label\":1}\n{\"a\":2,\"label\":5}\n",
              (struct svi_table_options){.known = known, .known_count = 2}, 2);
    fail_away("b.csv", "c1,c3,label\n1,2,1\n",
              (struct svi_table_options){
                  .names = names, .name_count = 2, .known = known, .known_count = 2, .no_means = true},
              pass_over, 0);
    fail_each("c.csv", "m,t,label\na,1,1\nb,NA,2\na,3,1\n", (struct svi_table_options){0}, 3);
    fail_each("d.jsonl", "{\"a\":1,\"label\":1}\n{\"a\":2,\"b\":7,\"label\":5}\n",
              (struct svi_table_options){0}, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_memory_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
