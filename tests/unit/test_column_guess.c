/* What columns are taken for: the line for a person, on small logs of many kinds. */
#include <fcntl.h>

#include "data/cell.h"
#include "support/feed.h"

#define ROWS 60

/* What is written for row i, into `to`. */
typedef void row_writer(FILE *to, int i);

static char *write_rows(const char *header, row_writer *row, int rows) {
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (header)
        fprintf(to, "%s\n", header);
    for (int i = 0; i < rows; i++) {
        row(to, i);
        fputc('\n', to);
    }
    fclose(to);
    return text;
}

static void expect_note(char *text, struct svi_reader_options o, const char *expected, int rows) {
    struct feed f;
    svs_error err = {0};
    o.format = o.format ? o.format : "auto";
    feed_open(&f, text, strlen(text), &o, NULL);
    assert_int_equal(svi_reader_settle(f.reader, &err), SVS_OK);
    assert_string_equal(svi_reader_note(f.reader), expected);
    struct svi_message m;
    int count = 0;
    for (enum svi_read what; (what = svi_reader_row(f.reader, &m, &err)) != SVI_READ_END; count++)
        if (what != SVI_READ_ROW)
            fail_msg("%s", err.text);
    assert_int_equal(count, rows);
    feed_close(&f);
    free(text);
}

static void log_row(FILE *to, int i) {
    static const char *const shifts[] = {"early", "late", "night"};
    fprintf(to, "%d,2026-11-22T%02d:%02d:00Z,plant,press-%02d,%s,%d.5,%d,%s", i + 1, i / 60, i % 60,
            i * 7 % 8, shifts[i % 3], i * 37 % 23, i * i % 17, i % 5 ? "ok" : "fail");
}

static void a_real_log(void **state) {
    (void)state;
    static const char header[] = "row,timestamp,site,machine,shift,temp,load,status";
    expect_note(
        write_rows(header, log_row, ROWS), (struct svi_reader_options){0},
        "label status (fail, ok) · time timestamp (ISO 8601) · 2 numbers · 2 categories: machine 8, shift "
        "3 · ignored: row (row numbers), site (constant)",
        ROWS);
    /* what is constant in the first rows may change */
    expect_note(
        write_rows(header, log_row, 1200),
        (struct svi_reader_options){.label = "shift", .label_required = true},
        "label shift (early, late, night) · time timestamp (ISO 8601) · 2 numbers · 3 categories: site 1, "
        "machine 8, status 2 · ignored: row (row numbers) · constant so far: site",
        1200);
    expect_note(
        write_rows(header, log_row, ROWS),
        (struct svi_reader_options){.id = "row",
                                    .ignore = "machine, timestamp",
                                    .categories = "load,site",
                                    .numbers = "temp",
                                    .unlabelled = true},
        "id row · 1 number · 4 categories: site 1, shift 3, load 9, status 2 · ignored: timestamp, machine "
        "· constant so far: site",
        ROWS);
}

static void flat_json_row(FILE *to, int i) {
    fprintf(to,
            "{\"at\":%lld,\"order_id\":\"o-%d\",\"price\":%d.25,\"kind\":\"%c\",\"open\":%s,\"meta\":{\"a\":"
            "1,\"to\":{\"b\":%d}},\"list\":[1]}",
            1795341930000LL + 500 * i, i, i % 40, 'a' + i % 4, i % 2 ? "true" : "false", i * 7 % 31);
}

static void flat_json(void **state) {
    (void)state;
    expect_note(
        write_rows(NULL, flat_json_row, ROWS), (struct svi_reader_options){0},
        "no label: rows are scored, not learned; --label may be open, kind · time at (milliseconds since "
        "1970) · id order_id · 3 numbers · 1 category: kind 4 · ignored: meta.a (constant), list (no single "
        "values)",
        ROWS);
    expect_note(
        write_rows(NULL, flat_json_row, ROWS),
        (struct svi_reader_options){.label = "price", .label_required = true},
        "label price (many different numbers: learned with --task regress) · time at (milliseconds since "
        "1970) · id order_id · 2 numbers · 1 category: kind 4 · ignored: meta.a (constant), list (no "
        "single values)",
        ROWS);
}

static void european_row(FILE *to, int i) {
    fprintf(to, "%02d.11.2026 10:%02d;%d,5;%05d;Bericht Nummer %d von der Anlage im Werk;%s;%d", 1 + i % 28,
            i % 60, i % 30, 1000 + i % 9, i, i % 3 ? "ja" : "nein", i % 2);
}

static void decimal_commas_dates_codes_and_text(void **state) {
    (void)state;
    expect_note(
        write_rows("zeit;wert;plz;text;gut;class", european_row, ROWS), (struct svi_reader_options){0},
        "label class (0, 1) · time zeit (day first) · 1 number (with decimal commas) · 2 categories: plz 9, "
        "gut 2 · ignored: text (text, --categories or --hash reads it)",
        ROWS);
}

static void iris_row(FILE *to, int i) {
    fprintf(to, "%d.1,%d.5,%s", 4 + i % 3, 2 + i % 2, i % 3 ? "setosa" : "virginica");
}

static void number_row(FILE *to, int i) {
    fprintf(to, "%d,%d,%d", i * i % 13, i % 4, i % 2);
}

static void letter_row(FILE *to, int i) {
    fprintf(to, "%c,%c,%c", "xyz"[i % 3], 'a' + i % 5, "uag"[i % 3]);
}

static void no_header(void **state) {
    (void)state;
    expect_note(
        write_rows(NULL, iris_row, ROWS), (struct svi_reader_options){0},
        "no header: columns are c1 to c3 · no label: rows are scored, not learned; --label may be c3, c2, "
        "c1 · 2 numbers · 1 category: c3 2",
        ROWS);
    expect_note(
        write_rows(NULL, letter_row, ROWS), (struct svi_reader_options){.placed = true},
        "no header: columns are c1 to c3 · label c3 (a, g, u; by its place, --label says otherwise) · 2 "
        "categories: c1 3, c2 5",
        ROWS);
    expect_note(write_rows(NULL, number_row, ROWS),
                (struct svi_reader_options){.label = "c3", .label_required = true},
                "no header: columns are c1 to c3 · label c3 (0, 1) · 2 numbers", ROWS);
    expect_note(write_rows(NULL, iris_row, ROWS),
                (struct svi_reader_options){.columns = "length, width,kind", .label = "kind"},
                "label kind (virginica, setosa) · 2 numbers", ROWS);
    /* years as names are a header all the same */
    expect_note(write_rows("2024,2025,kind", iris_row, ROWS), (struct svi_reader_options){.label = "kind"},
                "label kind (virginica, setosa) · 2 numbers", ROWS);
}

static void equal_row(FILE *to, int i) {
    fprintf(to, "%d,%d,%d.5", i % 2, i % 3, i * 7 % 50);
}

static void placed_row(FILE *to, int i) {
    fprintf(to, "2026-11-22T10:%02d:00Z,%d.5,press-%d,%s", i % 60, i * 7 % 23, i % 3,
            i % 4 ? "gut" : "schlecht");
}

static void front_row(FILE *to, int i) {
    fprintf(to, "%d,press-%d,%d.5", i % 2, i % 3, i * 7 % 23);
}

static enum svi_cell_kind known_place(const void *stream, const char *name, size_t length) {
    (void)stream;
    (void)length;
    return *name == 'a' ? SVI_CELL_NUMBER : *name == 'b' ? SVI_CELL_WORD : SVI_CELL_MISSING;
}

/* The last column, else the first one, of two values: where no name tells it, and 20 rows do. */
static void a_label_by_its_place(void **state) {
    (void)state;
    const struct svi_reader_options placed = {.placed = true};
    expect_note(
        write_rows("t,a,b,c", placed_row, ROWS), placed,
        "label c (schlecht, gut; by its place, --label says otherwise) · time t (ISO 8601) · 1 number · 1 "
        "category: b 3",
        ROWS);
    expect_note(write_rows("v,b,a", front_row, ROWS), placed,
                "label v (0, 1; by its place, --label says otherwise) · 1 number · 1 category: b 3", ROWS);
    expect_note(
        write_rows("t,a,b,c", placed_row, 19), placed,
        "no label: rows are scored, not learned; --label may be c, b, a · time t (ISO 8601) · 1 number · 2 "
        "categories: b 3, c 2",
        19);
    expect_note(
        write_rows("t,a,b,c", placed_row, ROWS), (struct svi_reader_options){0},
        "no label: rows are scored, not learned; --label may be c, b · time t (ISO 8601) · 1 number · 2 "
        "categories: b 3, c 2",
        ROWS);
    /* a name that tells goes before; of several that do, none */
    expect_note(write_rows("v,result,a", front_row, ROWS), placed,
                "no label: rows are scored, not learned; --label may be result, v · 2 numbers · 1 category: "
                "result 3",
                ROWS);
    expect_note(write_rows("class,target,a", equal_row, ROWS), placed,
                "no label: rows are scored, not learned; --label may be target, class · 3 numbers", ROWS);
    /* a stream that has begun knows its features: the label of a few further rows is what is new in its place
     */
    expect_note(
        write_rows("t,a,b,c", placed_row, 2),
        (struct svi_reader_options){.placed = true, .known = known_place},
        "label c (schlecht, gut; by its place, --label says otherwise) · time t (ISO 8601) · 1 number · 1 "
        "category: b 2",
        2);
}

static void money_row(FILE *to, int i) {
    fprintf(to, "\"$%d,%03d\",%d.5%%,\"%d,000\",store-%d,%d", 1 + i % 9, i * 37 % 1000, i % 30,
            1 + i * 7 % 23, i % 3, 1 + i % 7);
}

static void thousandth_row(FILE *to, int i) {
    fprintf(to, "%d,%03d;%d,5;%d", 1 + i % 9, i * 37 % 1000, i % 30, i % 2);
}

static void amounts_are_numbers(void **state) {
    (void)state;
    expect_note(write_rows("loan,rate,income,shop_name,zip", money_row, ROWS),
                (struct svi_reader_options){.unlabelled = true},
                "3 numbers (loan in $, rate in %; some written as 1,200) · 2 categories: shop_name 3, zip 7",
                ROWS);
    expect_note(write_rows("a;b;label", thousandth_row, ROWS), (struct svi_reader_options){0},
                "label label (0, 1) · 2 numbers (with decimal commas)", ROWS);
}

static void unit_row(FILE *to, int i) {
    fprintf(to,
            "%d,%d Â°"
            "C;%d MB;%d.%03d;%s;%d",
            20 + i % 9, i % 10, 70 + i * 7 % 23, 1 + i % 4, i * 37 % 1000, i % 2 ? "5 kB" : "3 MB", i % 2);
}

static void units_are_said(void **state) {
    (void)state;
    expect_note(write_rows("temp;mem;price;size;label", unit_row, ROWS), (struct svi_reader_options){0},
                "label label (0, 1) · 3 numbers (temp in Â°"
                "C, mem in MB; decimal commas, 1.234 is 1234) · 1 category: size 2 · numbers of several "
                "units, so not read as numbers: size (MB, kB)",
                ROWS);
}

static void none_row(FILE *to, int i) {
    fprintf(to, "%d,%s,%s", i * 7 % 23, i % 3 ? "None" : i % 2 ? "dos" : "probe", i % 4 ? "none" : "fault");
}

/* None stands for a missing value, but not where it is a class of the label. */
static void none_may_be_a_class(void **state) {
    (void)state;
    char *text = write_rows("a,kind,label", none_row, ROWS);
    struct svi_reader_options o = {.format = "csv"};
    struct feed f;
    feed_open(&f, text, strlen(text), &o, NULL);
    char *said = feed_read(&f, false);
    assert_string_equal(svi_reader_note(f.reader),
                        "label label (fault, none) · 1 number · 1 category: kind 2");
    assert_non_null(strstr(said, "op0 a=7 kind= y='none'\n"));
    free(said);
    free(text);
    feed_close(&f);
}

static void german_row(FILE *to, int i) {
    fprintf(to, "%d.%03d,%02d;%d;%d", 1 + i % 9, i * 37 % 1000, i % 30, i * 7 % 23, i % 2);
}

static void names_of_no_column_are_said(void **state) {
    (void)state;
    expect_note(write_rows("sep=;\na;b;label", german_row, ROWS),
                (struct svi_reader_options){.ignore = "d, b", .categories = "B"},
                "label label (0, 1) · 1 number (with decimal commas) · ignored: b · no such column: d, B",
                ROWS);
    expect_note(write_rows("sep=;\na;b;label", german_row, ROWS),
                (struct svi_reader_options){.features = "b,c"},
                "label label (0, 1) · 1 number · ignored: a · no such column: c", ROWS);
}

static void odd_row(FILE *to, int i) {
    fprintf(to, "%s,%d,%s", i == 30 ? "broken" : "1.5", i % 7, i % 10 == 3 ? "12%" : "0.5");
}

/* One odd word among numbers refuses its row; some make it a column of words. */
static void odd_words(void **state) {
    (void)state;
    char *text = write_rows("a,y,c", odd_row, ROWS);
    struct svi_reader_options o = {.format = "csv"};
    struct feed f;
    feed_open(&f, text, strlen(text), &o, NULL);
    char *said = feed_read(&f, false);
    assert_string_equal(svi_reader_note(f.reader),
                        "label y (7 classes) · 1 number · 1 category: c 2 · numbers of several units, so not "
                        "read as numbers: c (% and none)");
    assert_non_null(
        strstr(said, "BAD wrong_type: line 32: column \"a\": \"broken\" is not a number (--categories a"));
    free(said);
    free(text);
    feed_close(&f);
}

static void header_row(FILE *to, int i) {
    if (i % 20 == 10)
        fputs("a,b,label", to);
    else
        fprintf(to, "%d,%s,%d", i % 7, i % 2 ? "x" : "y", i % 2);
}

static void a_header_that_comes_again_is_no_row(void **state) {
    (void)state;
    char *text = write_rows("a,b,label", header_row, ROWS);
    struct svi_reader_options o = {.format = "csv"};
    struct feed f;
    feed_open(&f, text, strlen(text), &o, NULL);
    char *said = feed_read(&f, false);
    assert_null(strstr(said, "BAD"));
    assert_int_equal(svi_reader_headers(f.reader), 3);
    assert_string_equal(svi_reader_note(f.reader), "label label (0, 1) · 1 number · 1 category: b 2");
    free(said);
    free(text);
    feed_close(&f);
}

static void a_label_is_a_clear_winner_only(void **state) {
    (void)state;
    expect_note(write_rows("class,target,a", equal_row, ROWS), (struct svi_reader_options){0},
                "no label: rows are scored, not learned; --label may be target, class · 3 numbers", ROWS);
    expect_note(write_rows("http_status,test_class,a", equal_row, ROWS), (struct svi_reader_options){0},
                "label test_class (0, 1, 2) · 2 numbers", ROWS);
    expect_note(
        write_rows("a,status,target", equal_row, ROWS), (struct svi_reader_options){.task_follows = true},
        "label target (many different numbers: a regression, unless --task says classify) · 2 numbers", ROWS);
}

/* Rows of a pipe are given when nothing more comes for a while, and from then on at once. */
static void silence_decides(void **state) {
    (void)state;
    int ends[2];
    struct svi_reader_options o = {.format = "csv"};
    struct feed f = {0};
    struct svi_message m;
    svs_error err = {0};
    assert_int_equal(pipe(ends), 0);
    f.fd = ends[0];
    snprintf(f.path, sizeof f.path, "/proc/self/fd/%d", ends[0]);
    assert_int_equal(svi_shape_init(&f.shape, FEED_FEATURES, NULL, &err), SVS_OK);
    f.reader = svi_reader_open(f.path, &o, &f.shape, &err);
    assert_int_equal(write(ends[1], "a,b\n", 4), 4);
    assert_int_equal(svi_reader_fill(f.reader, &err), SVS_OK);
    assert_int_equal(svi_reader_next(f.reader, &m, &err), SVI_READ_MORE);
    assert_true(isinf(svi_reader_wait(f.reader))); /* a header alone tells nothing */
    assert_int_equal(write(ends[1], "1,x\n2,", 6), 6);
    assert_int_equal(svi_reader_fill(f.reader, &err), SVS_OK);
    assert_int_equal(svi_reader_next(f.reader, &m, &err), SVI_READ_MORE);
    assert_true(svi_reader_wait(f.reader) <= 0.25);
    assert_int_equal(svi_reader_row(f.reader, &m, &err), SVI_READ_ROW); /* waits by itself */
    assert_int_equal(m.cell_count, 2);
    assert_true(isinf(svi_reader_wait(f.reader)));
    assert_int_equal(write(ends[1], "y\n", 2), 2);
    assert_int_equal(svi_reader_next(f.reader, &m, &err), SVI_READ_MORE);
    assert_int_equal(svi_reader_fill(f.reader, &err), SVS_OK);
    assert_int_equal(svi_reader_next(f.reader, &m, &err), SVI_READ_ROW);
    assert_true(m.cells[0].number == 2 && *m.cells[1].word == 'y');
    close(ends[1]);
    feed_close(&f);
}

static enum svi_cell_kind known_columns(const void *stream, const char *name, size_t length) {
    (void)stream;
    return length == 1 && *name == 'a' ? SVI_CELL_WORD : length == 3 ? SVI_CELL_NUMBER : SVI_CELL_MISSING;
}

static void one_row(FILE *to, int i) {
    fprintf(to, "%d,7,%d", i + 1, i % 2);
}

/* A stream's columns stay what they are, however little the file shows. */
static void known_columns_stay(void **state) {
    (void)state;
    expect_note(write_rows("row,b,a", one_row, 30),
                (struct svi_reader_options){.known = known_columns, .unlabelled = true},
                "1 number · 1 category: a 2 · ignored: b (constant)", 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_real_log),
        cmocka_unit_test(flat_json),
        cmocka_unit_test(decimal_commas_dates_codes_and_text),
        cmocka_unit_test(no_header),
        cmocka_unit_test(odd_words),
        cmocka_unit_test(a_header_that_comes_again_is_no_row),
        cmocka_unit_test(a_label_is_a_clear_winner_only),
        cmocka_unit_test(a_label_by_its_place),
        cmocka_unit_test(amounts_are_numbers),
        cmocka_unit_test(units_are_said),
        cmocka_unit_test(none_may_be_a_class),
        cmocka_unit_test(names_of_no_column_are_said),
        cmocka_unit_test(silence_decides),
        cmocka_unit_test(known_columns_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
