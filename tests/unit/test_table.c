/* Tables: the same rows from every kind of file, classes in order, columns by name, dense or sparse, and what
 * is refused in which line. */
#include "support/table.h"

static const struct svi_table_options plain;

static void read_good(struct svi_table *t, const char *name, const char *text, struct svi_table_options o) {
    svs_error err = {0};
    if (table_read(t, name, text, o, &err) != SVS_OK)
        fail_msg("%s: %s", name, err.text);
}

static double at(const struct svi_table *t, int64_t i, int j) {
    double row[1000];
    svs_rows_copy(&t->examples.rows, i, row);
    return row[j];
}

static void assert_same_class(const svs_examples *a, const svs_examples *b, int k) {
    assert_int_equal(a->classes[k].kind, b->classes[k].kind);
    assert_int_equal(a->classes[k].as.i, b->classes[k].as.i);
}

/* The first of four spellings against the others, each plain and packed. */
static void every_format_gives_the_same_table(void **state) {
    (void)state;
    static const char *const files[][2] = {
        {"a.csv", "u,v,label,w\n0.5,0,3,1\n-2,1e2,-1,2.5\n0,7,3,1\n"},
        {"b.csv", "\"u\";w;v;label\r\n0.5;1;0;3\r\n-2;2.5;100;-1\r\n\r\n0;1;7;3"},
        {"c.jsonl", "{\"u\":0.5,\"v\":0,\"label\":3,\"w\":1}\n{\"label\":-1,\"w\":2.5,\"v\":100,\"u\":-2}\n"
                    "{\"u\":0,\"v\":7,\"label\":3}\n"},
        {"d.jsonl", "{\"x\":[0.5,0],\"y\":3}\n{\"x\":[-2,100],\"y\":-1,\"w\":2.5}\n{\"x\":[0,7],\"y\":3}\n"},
        {"e.svm", "3 1:0.5 # note\n-1 1:-2 2:100\n3 2:7\n"}};
    struct svi_table first, t;
    struct svi_table_options o = {.reader = {.weight = "w"}};
    read_good(&first, "a.csv", files[0][1], o);
    for (int i = 0; i < 10; i++) {
        const int file = i / 2;
        char name[32];
        snprintf(name, sizeof name, "%s%s", files[file][0], i % 2 ? ".gz" : "");
        read_good(&t, name, files[file][1], o);
        assert_int_equal(t.examples.rows.n, 3);
        assert_int_equal(t.examples.rows.d, 2);
        assert_int_equal(t.examples.class_count, 2);
        for (int k = 0; k < 2; k++)
            assert_same_class(&first.examples, &t.examples, k);
        for (int64_t row = 0; row < 3; row++) {
            assert_int_equal(first.examples.label[row], t.examples.label[row]);
            assert_true(at(&first, row, 0) == at(&t, row, 0) && at(&first, row, 1) == at(&t, row, 1));
        }
        if (file == 4) /* LIBSVM's has no weights */
            assert_null(t.examples.weight);
        else
            assert_true(t.examples.weight[0] == 1 && t.examples.weight[1] == 2.5);
        if (file < 3) {
            assert_string_equal(t.examples.features[0], "u");
            assert_string_equal(t.examples.features[1], "v");
        } else {
            assert_null(t.examples.features);
        }
        svi_table_clear(&t);
    }
    svi_table_clear(&first);
}

/* Ten columns, `stored` values in ten rows. */
static char *sparse_text(int stored, char *out) {
    int length = 0;
    for (int i = 0; i < 10; i++) {
        length += sprintf(out + length, "%d", i % 2);
        for (int j = 0; j < 10; j++)
            if (10 * j + i < stored || (i == 9 && j == 9))
                length += sprintf(out + length, " %d:%d", j + 1, 100 * i + j);
        length += sprintf(out + length, "\n");
    }
    return out;
}

static void density_decides(void **state) {
    (void)state;
    char text[4000];
    for (int stored = 0; stored < 100; stored++) {
        struct svi_table t;
        read_good(&t, "a.svm", sparse_text(stored, text), plain);
        const svs_rows *r = &t.examples.rows;
        const int kept =
            stored + 1 - (stored > 0); /* value 0 at row 0, column 0; the last one is always there */
        assert_int_equal(r->d, 10);
        assert_int_equal(r->dense != NULL, kept >= 20);
        if (r->dense) {
            assert_true(r->padded && r->stride == 16 && (uintptr_t)r->dense % 64 == 0);
            for (int64_t i = 0; i < 10 * r->stride; i++)
                assert_true(i % r->stride < r->d || r->dense[i] == 0);
        } else {
            assert_int_equal(svs_rows_stored(r), kept);
        }
        for (int i = 0; i < 10; i++)
            for (int j = 0; j < 10; j++)
                assert_true(at(&t, i, j) == (10 * j + i < stored || (i == 9 && j == 9) ? 100 * i + j : 0));
        assert_int_equal(svs_rows_check(r, NULL), SVS_OK);
        svi_table_clear(&t);
    }
}

static void classes_are_sorted(void **state) {
    (void)state;
    char text[4000] = "a,label\n";
    struct svi_table t;
    for (int k = 39; k >= 0; k--) /* more than the room for classes at first, words of one beginning */
        sprintf(text + strlen(text), k % 2 ? "%d,%d\n" : "%d,w%02d\n", k, k - 20);
    strcat(text, "50,-19\n51,w\n");
    read_good(&t, "a.csv", text, plain);
    assert_int_equal(t.examples.class_count, 41);
    for (int k = 1; k < 41; k++) {
        const svs_value a = t.examples.classes[k - 1], b = t.examples.classes[k];
        assert_true(a.kind != SVS_STR || b.kind == SVS_STR); /* integers first */
        if (a.kind == SVS_INT && b.kind == SVS_INT)
            assert_true(a.as.i < b.as.i);
        if (a.kind == SVS_STR) {
            int order = memcmp(a.as.s, b.as.s, a.length < b.length ? a.length : b.length);
            assert_true(order < 0 || (order == 0 && a.length < b.length));
        }
    }
    for (int64_t i = 0; i < 40; i++) { /* row i holds k = 39 - i, and its label says so */
        const int k = 39 - (int)i;
        const svs_value y = t.examples.classes[t.examples.label[i]];
        char word[16];
        snprintf(word, sizeof word, "w%02d", k - 20);
        if (k % 2)
            assert_true(y.kind == SVS_INT && y.as.i == k - 20);
        else
            assert_true(y.kind == SVS_STR && y.length == strlen(word) && !memcmp(y.as.s, word, y.length));
    }
    assert_int_equal(t.examples.label[40], t.examples.label[38]);
    svi_table_clear(&t);
}

/* A model's classes stay in its order; others are strange; labels may lack where that is allowed. */
static void classes_of_a_model(void **state) {
    (void)state;
    const svs_value known[] = {svs_int(5), svs_int(1)};
    struct svi_table_options o = {.known = known, .known_count = 2, .unlabelled = true};
    struct svi_table t;
    read_good(&t, "a.csv", "a,label\n1,1\n2,7\n3,\n4,5\n5,red\n", o);
    static const int32_t expected[] = {1, -1, -1, 0, -1};
    assert_int_equal(t.examples.class_count, 2);
    assert_int_equal(t.examples.classes[0].as.i, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(t.examples.label[i], expected[i]);
    assert_int_equal(t.strange, 2); /* the one that lacks is not strange */
    svi_table_clear(&t);
}

/* Columns by name, in the model's order, from files that have them in another and further ones. */
static void columns_of_a_model(void **state) {
    (void)state;
    static const char *const
        names[] = {"b", "c", "a"},
        *const files[][2] = {
            {"a.csv", "a,b,z,label\n1,2,9,0\n3,4,9,1\n"},
            {"a.jsonl", "{\"z\":9,\"a\":1,\"label\":0,\"b\":2}\n{\"b\":4,\"a\":3,\"z\":9,\"label\":1}\n"}};
    struct svi_table_options o = {.names = names, .name_count = 3, .features = 3};
    struct svi_table t;
    for (int file = 0; file < 2; file++) {
        read_good(&t, files[file][0], files[file][1], o);
        assert_int_equal(t.examples.rows.d, 3);
        for (int i = 0; i < 2; i++)
            assert_true(at(&t, i, 0) == 2 * i + 2 && at(&t, i, 1) == 0 && at(&t, i, 2) == 2 * i + 1);
        svi_table_clear(&t);
    }
    char text[4000] = "c000", wide[32][8]; /* sparse rows: a random order of 30 columns */
    const char *wanted[30];
    for (int j = 0; j < 30; j++) {
        snprintf(wide[j], sizeof wide[j], "c%03d", j);
        wanted[j] = wide[j];
        if (j)
            sprintf(text + strlen(text), ",c%03d", (7 * j) % 30);
    }
    strcat(text, ",label\n");
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 30; j++)
            strcat(text, j == i || j == 29 - i ? "5," : "0,");
        strcat(text, i % 2 ? "1\n" : "0\n");
    }
    o = (struct svi_table_options){.names = wanted, .name_count = 30, .features = 30};
    read_good(&t, "b.csv", text, o);
    assert_null(t.examples.rows.dense);
    assert_int_equal(svs_rows_check(&t.examples.rows, NULL), SVS_OK); /* columns ascend again */
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 30; j++)
            assert_true(at(&t, i, (7 * j) % 30) == (j == i || j == 29 - i ? 5 : 0));
    svi_table_clear(&t);
    read_good(&t, "c.svm", "0 2:4\n1 1:3\n",
              (struct svi_table_options){.names = names, .name_count = 3, .features = 3});
    assert_int_equal(t.examples.rows.d, 3); /* no names: columns as they are, room for the model's */
    assert_true(at(&t, 0, 1) == 4 && at(&t, 1, 0) == 3);
    svi_table_clear(&t);
}

/* What rows are given away, against a table that kept them. */
struct given {
    const struct svi_table *kept;
    int64_t rows;
};

static void take_given(void *user, const svs_examples *e, int64_t i) {
    struct given *g = user;
    const svs_examples *kept = &g->kept->examples;
    double row[1000], same[1000];
    assert_true(g->rows < kept->rows.n);
    assert_true(e->rows.d <= kept->rows.d);
    svs_rows_copy(&e->rows, i, row);
    svs_rows_copy(&kept->rows, g->rows, same);
    for (int j = 0; j < kept->rows.d; j++)
        assert_true((j < e->rows.d ? row[j] : 0) == same[j]);
    assert_int_equal(e->label[i], kept->label[g->rows]);
    assert_memory_equal(&e->target[i], &kept->target[g->rows], sizeof *e->target);
    g->rows++;
}

static void pass_over(void *user, const svs_examples *e, int64_t i) {
    (void)user, (void)e, (void)i;
}

/* As a model's rows are read: classes, names and what is missing. */
static void rows_given_away_are_those_of_the_table(void **state) {
    (void)state;
    static const char *const
        names[] = {"b", "m=y", "a", "t"},
        *const files[][2] = {
            {"a.svm", "1 2:4 # n\n7 1:3 9:1\n5\n1:2\n"},
            {"a.csv", "a,m,b,z,label\n1,,2,9,5\n3,y,0,9,1\n4,x,,9,2\n,y,6,9,1\n"},
            {"a.jsonl",
             "{\"a\":1,\"t\":null,\"label\":5}\n{\"b\":4,\"a\":3,\"label\":1}\n{\"t\":2,\"m\":\"y\"}\n"},
            {"b.jsonl", "{\"x\":{\"a\":1,\"m\":null},\"y\":1}\n{\"x\":{\"m\":\"y\",\"b\":3},\"y\":8}\n"},
            {"c.jsonl", "{\"x\":[1,null],\"y\":1}\n{\"x\":[2,3],\"y\":5}\n"},
            {"a.vw", "1 |a b:2 t:NA\n5 | t m=y b:-1\n1 | q\n"}};
    const svs_value known[] = {svs_int(5), svs_int(1)};
    struct svi_schema_options schema = {.categories_max = 100};
    int64_t seen = 0, later = 0;
    for (int i = 0; i < (int)(sizeof files / sizeof *files) * 12; i++) {
        const int file = i / 12, policy = i % 6;
        struct svi_table_options o = {.schema = &schema,
                                      .known = known,
                                      .known_count = 2,
                                      .unlabelled = true,
                                      .features = 4,
                                      .name_count = i / 6 % 2 ? 4 : 0,
                                      .names = i / 6 % 2 ? names : NULL,
                                      .no_means = policy != SVI_MISSING_MEAN && policy != SVI_MISSING_AUTO};
        struct svi_table kept, t;
        struct given g = {.kept = &kept};
        svs_error err = {0}, same = {0};
        schema.missing = (enum svi_missing)policy;
        const svs_code code = table_read(&kept, files[file][0], files[file][1], o, &err);
        assert_int_equal(table_each(&t, files[file][0], files[file][1], o,
                                    code == SVS_OK ? take_given : pass_over, &g, &same),
                         code);
        assert_string_equal(err.text, same.text);
        if (code == SVS_OK) {
            assert_int_equal(g.rows, kept.examples.rows.n);
            assert_int_equal(t.examples.rows.d, kept.examples.rows.d);
            assert_int_equal(t.examples.rows.n, o.no_means ? 0 : g.rows);
            assert_true(t.strange == kept.strange && t.dropped == kept.dropped && t.filled == kept.filled);
            *(o.no_means ? &seen : &later) += g.rows;
        }
        svi_table_clear(&kept);
        svi_table_clear(&t);
    }
    assert_true(seen > 50 && later > 20);
}

static void targets_of_regression(void **state) {
    (void)state;
    struct svi_table t;
    svs_error err;
    struct svi_table_options o = {.task = SVS_REGRESS};
    read_good(&t, "a.csv", "a,label\n1,0.25\n2,-3\n", o);
    assert_true(t.examples.target[0] == 0.25 && t.examples.target[1] == -3);
    assert_int_equal(t.examples.class_count, 0);
    svi_table_clear(&t);
    assert_int_equal(table_read(&t, "a.csv", "a,label\n1,0.25\n2,red\n", o, &err), SVS_BAD_LABEL);
    assert_non_null(strstr(err.text, "line 3"));
    svi_table_clear(&t);
    o.unlabelled = true;
    read_good(&t, "a.csv", "a,label\n1,\n", o);
    assert_true(isnan(t.examples.target[0]));
    svi_table_clear(&t);
}

/* A CSV with words, a missing number in the first row, and what each policy makes of it. */
static void missing_values(void **state) {
    (void)state;
    static const char *text = "m,t,label\na,,1\nb,4,2\na,1,1\n,NA,2\n";
    struct svi_schema_options schema = {.categories_max = 100, .missing = SVI_MISSING_AUTO};
    struct svi_table_options o = {.schema = &schema, .reader.categories = "m", .reader.numbers = "t"};
    struct svi_table t;
    svs_error err;
    read_good(&t, "a.csv", text, o); /* the mean, 2.5; a category that lacks is none of its values */
    static const double expected[4][3] = {{1, 2.5, 0}, {0, 4, 1}, {1, 1, 0}, {0, 2.5, 0}};
    assert_int_equal(t.examples.rows.d, 3);
    assert_string_equal(t.examples.features[0], "m=a");
    assert_string_equal(t.examples.features[1], "t");
    assert_string_equal(t.examples.features[2], "m=b");
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++)
            assert_true(at(&t, i, j) == expected[i][j]);
    assert_true(t.means[1] == 2.5 && t.filled == 2);
    svi_table_clear(&t);
    o.keep_missing = true;
    read_good(&t, "a.csv", text, o);
    assert_true(isnan(at(&t, 0, 1)) && at(&t, 1, 1) == 4 && isnan(at(&t, 3, 1)) && at(&t, 3, 0) == 0);
    svi_table_clear(&t);
    o.keep_missing = false;
    schema.missing = SVI_MISSING_DROP;
    read_good(&t, "a.csv", text, o);
    assert_int_equal(t.examples.rows.n, 2);
    assert_int_equal(t.dropped, 2);
    svi_table_clear(&t);
    schema.missing = SVI_MISSING_ZERO;
    read_good(&t, "a.csv", text, o);
    assert_true(at(&t, 0, 1) == 0 && t.filled == 2);
    svi_table_clear(&t);
    schema.missing = SVI_MISSING_CARRY;
    assert_int_equal(table_read(&t, "a.csv", text, o, &err), SVS_MISSING_VALUE);
    if (!strstr(err.text, "line 2: the value of t is missing"))
        fail_msg("%s", err.text);
    svi_table_clear(&t);
    read_good(&t, "a.csv", "m,t,label\na,3,1\nb,,2\na,1,1\nb,,2\n", o);
    assert_true(at(&t, 1, 1) == 3 && at(&t, 3, 1) == 1);
    svi_table_clear(&t);
    schema.missing = SVI_MISSING_REFUSE;
    assert_int_equal(table_read(&t, "a.csv", text, o, &err), SVS_MISSING_VALUE);
    svi_table_clear(&t);
}

/* A key of JSON that comes late is missing in the rows before it; a word that comes late is not. */
static void late_columns(void **state) {
    (void)state;
    static const char *text = "{\"x\":{\"a\":1},\"y\":1}\n{\"x\":{\"a\":0,\"b\":6,\"m\":\"u\"},\"y\":2}\n"
                              "{\"x\":{\"b\":2},\"y\":1}\n";
    struct svi_table t;
    read_good(&t, "a.jsonl", text, plain);
    static const double expected[3][3] = {{1, 4, 0}, {0, 6, 1}, {0.5, 2, 0}};
    assert_int_equal(t.examples.rows.d, 3);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            assert_true(at(&t, i, j) == expected[i][j]);
    assert_int_equal(svs_rows_check(&t.examples.rows, NULL), SVS_OK);
    svi_table_clear(&t);
}

/* A row names 10 of `columns`, one of them with a 0, and the last row has one that is null. */
static char *wide_text(int columns, int rows) {
    char *text = malloc((size_t)rows * 200 + 1), *to = text;
    for (int i = 0; i < rows; i++) {
        to += sprintf(to, "{\"x\":{");
        for (int k = 0; k < 10; k++)
            to += sprintf(to, "%s\"n%d\":%d", k ? "," : "", (10 * i + k) % columns, k);
        to += sprintf(to, "%s},\"y\":%d}\n", i + 1 == rows ? ",\"n0\":null" : "", i % 2);
    }
    return text;
}

/* Rows that name few of many columns are sparse: what they do not name is 0, unless means are asked for. */
static void names_of_few_columns(void **state) {
    (void)state;
    enum { ROWS = 150 };
    struct svi_schema_options schema = {.categories_max = 100, .missing = SVI_MISSING_AUTO};
    struct svi_table_options o = {.schema = &schema};
    for (int i = 0; i < 5; i++) {
        const int columns = i == 1 ? 990 : 1000;
        const bool zeros = i == 0 || i == 3;
        char *text = wide_text(columns, ROWS);
        struct svi_table t;
        schema.missing = i == 2 ? SVI_MISSING_MEAN : i == 3 ? SVI_MISSING_ZERO : SVI_MISSING_AUTO;
        o.keep_missing = i == 4;
        read_good(&t, "a.jsonl", text, o);
        assert_int_equal(t.examples.rows.d, columns);
        assert_int_equal(t.zeros, zeros);
        assert_int_equal(t.examples.rows.dense == NULL, zeros);
        assert_int_equal(t.means == NULL, zeros);
        assert_true(at(&t, 1, 19) == 9 && at(&t, 1, 10) == 0);
        for (int j = 0; j < columns; j++) { /* column j has j % 10 in all rows that name it */
            const double x = at(&t, 3, j), last = at(&t, ROWS - 1, 0);
            assert_true(j / 10 == 3 || (o.keep_missing ? isnan(x) : x == (zeros ? 0 : j % 10)));
            assert_true(o.keep_missing ? isnan(last) : last == 0);
        }
        if (zeros)
            assert_int_equal(svs_rows_stored(&t.examples.rows), 9 * ROWS);
        svi_table_clear(&t);
        free(text);
    }
}

/* Refused in the line that would be too much, or at the end where the rows would be stored another way. */
static void memory_is_bounded(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double most; /* bytes */
        bool fits;
        const char *part;
    } cases[] = {{"a.svm", 100 * (36 + 4 * 12) + 100 * 8 * 8, true, ""},
                 {"a.svm", 100 * (36 + 4 * 12) + 100 * 8 * 8 - 1, false, "the rows take more than 0 MiB"},
                 {"a.svm", 50 * (36 + 4 * 12), false, "line 51: the rows take more than 0 MiB"},
                 {"a.jsonl", 20 * 36 + 40 * 12 + 400 * 12 + 20 * 24 * 8, true, ""},
                 {"a.jsonl", 20 * 36 + 40 * 12 + 400 * 12 - 1, false, "this machine has: use fewer"}};
    char svm[100 * 24] = "", named[20 * 64] = "";
    for (int i = 0; i < 100; i++)
        sprintf(svm + strlen(svm), "%d 1:1 2:1 3:1 4:1\n", i % 2);
    for (int i = 0; i < 20; i++)
        sprintf(named + strlen(named), "{\"x\":{\"a%d\":1,\"b\":2},\"y\":%d}\n", i % 19, i % 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct svi_table t;
        svs_error err = {0};
        const bool names = cases[i].name[2] == 'j';
        const struct svi_table_options o = {
            .memory = {.most = cases[i].most, .of = names ? "this machine has" : NULL}};
        const svs_code code = table_read(&t, cases[i].name, names ? named : svm, o, &err);
        assert_int_equal(code, cases[i].fits ? SVS_OK : SVS_LIMIT);
        if (!strstr(err.text, cases[i].part))
            fail_msg("%s", err.text);
        if (code == SVS_OK && !names)
            assert_true(t.bytes == 100 * (36 + 8 * 8));
        svi_table_clear(&t);
    }
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
        svs_code code;
        const char *part;
    } cases[] = {
        {"a.csv", "a,label\n1,0.5\n", SVS_BAD_LABEL, "--task regress"},
        {"a.csv", "a,label\n1,1\n2,\n", SVS_BAD_LABEL, "line 3: the row has no label"},
        {"a.csv", "a,label\n1,1\n\n2,1,5\n", SVS_CODE_COUNT, "line 4"},
        {"a.csv", "a,label\n1,1\n2,2\n3,1\n2,1\n5,2\n7,1\n2,2\n4,1\nx,2\n", SVS_CODE_COUNT, "line 10"},
        {"a.csv", "a,label\n1,1\ninf,2\n", SVS_CODE_COUNT, "line 3"},
        {"a.csv", "a,label\n", SVS_EMPTY, "no rows"},
        {"a.svm", "1 1:1\n1 0:1\n", SVS_CODE_COUNT, "line 2"},
        {"a.svm", "1 1:1\n1 2:1 2:3\n", SVS_CODE_COUNT, "line 2"},
        {"a.svm", "1 1:1\n-1 1001:1\n", SVS_LIMIT, "line 2"},
        {"a.svm", "1 1:1\n1:3\n", SVS_BAD_LABEL, "line 2"},
        {"a.svm", "", SVS_EMPTY, "no rows"},
        {"a.jsonl", "{\"a\":1,\"label\":1}\n{\"a\":\n", SVS_CODE_COUNT, "line 2"},
        {"a.jsonl", "{\"x\":[1],\"y\":1}\n{\"op\":\"forget\",\"id\":1}\n", SVS_MISSING_X, "line 2"},
        {"a.jsonl", "{\"x\":[1],\"y\":1}\n{\"x\":[1,2],\"y\":1}\n", SVS_WRONG_DIMENSION, "line 2"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct svi_table t;
        svs_error err = {0};
        svs_code code = table_read(&t, cases[i].name, cases[i].text, plain, &err);
        bool as_expected = cases[i].code == SVS_CODE_COUNT ? code != SVS_OK : code == cases[i].code;
        if (!as_expected || err.code != code || !strstr(err.text, cases[i].part))
            fail_msg("case %d: %s: %s", (int)i, svs_code_name(code), err.text);
        svi_table_clear(&t);
        assert_null(t.owned);
        svi_table_clear(&t); /* twice is none too many */
    }
    struct svi_table t;
    svs_error err;
    struct svi_table_options o = {.reader = {.format = "auto", .label = "label"}, .max_features = 10};
    assert_int_equal(svi_table_read(&t, "/nowhere/at/all.csv", &o, &err), SVS_IO);
    assert_non_null(strstr(err.text, "/nowhere/at/all.csv"));
    svi_table_clear(&t);
}

static void count(void *user, int64_t rows, int64_t position, int64_t size) {
    int64_t *last = user;
    assert_true(rows > *last && position > 0 && position <= size);
    *last = rows;
}

/* Long enough that all room grows. */
static void long_files(void **state) {
    (void)state;
    enum { ROWS = 20000 };
    char *text = malloc(ROWS * 24), *to = text + sprintf(text, "a,b,label\n");
    int64_t told = 0;
    struct svi_table t;
    for (int i = 0; i < ROWS; i++)
        to += sprintf(to, "%d,%d,%d\n", i + 1, -i - 1, i % 3);
    read_good(&t, "a.csv", text,
              (struct svi_table_options){.reader.numbers = "a,b", .progress = count, .user = &told});
    assert_true(told > 0 && told <= ROWS);
    assert_int_equal(t.examples.rows.n, ROWS);
    for (int i = 0; i < ROWS; i++) {
        const double *row = t.examples.rows.dense + i * t.examples.rows.stride;
        assert_true(row[0] == i + 1 && row[1] == -i - 1 && t.examples.label[i] == i % 3);
    }
    svi_table_clear(&t);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_gives_the_same_table),
        cmocka_unit_test(density_decides),
        cmocka_unit_test(classes_are_sorted),
        cmocka_unit_test(classes_of_a_model),
        cmocka_unit_test(columns_of_a_model),
        cmocka_unit_test(rows_given_away_are_those_of_the_table),
        cmocka_unit_test(targets_of_regression),
        cmocka_unit_test(missing_values),
        cmocka_unit_test(late_columns),
        cmocka_unit_test(names_of_few_columns),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(refusals),
        cmocka_unit_test(long_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
