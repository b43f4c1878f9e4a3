/* Text files as messages: what each form means, and every refusal with its code and its words. */
#include "support/feed.h"

static char *read_text(const char *text, const struct svi_reader_options *o, const char *fixed) {
    struct feed f;
    feed_open(&f, text, strlen(text), o, fixed);
    char *said = feed_read(&f, false);
    feed_close(&f);
    return said;
}

static void expect(const char *format, const char *text, const char *expected) {
    struct svi_reader_options o = {.format = format, .id = "id", .ts = "ts", .weight = "w"};
    if (!strstr(text, "id") && strcmp(format, "jsonl") != 0)
        o.id = o.ts = o.weight = NULL;
    char *said = read_text(text, &o, NULL);
    assert_string_equal(said, expected);
    free(said);
}

static void csv_means(void **state) {
    (void)state;
    expect("csv", "a,b,label\n1,2.5,1\n-3,1e2,-1\n",
           "op0 kind1 d2 missing0 0:1 1:2.5 y=1\nop0 kind1 d2 missing0 0:-3 1:100 y=-1\n");
    /* CRLF, no last line end, blank lines, a byte order mark, spaces */
    expect("csv",
           "\xef\xbb\xbf"
           "a,b,label\r\n\r\n1,2,0\r\n   \r\n 3 , 4 , 1 ",
           "op0 kind1 d2 missing0 0:1 1:2 y=0\nop0 kind1 d2 missing0 0:3 1:4 y=1\n");
    /* separators, and the label in front */
    expect("csv", "label;a;b\nup;1;2\n", "op0 kind1 d2 missing0 0:1 1:2 y='up'\n");
    expect("csv", "a\tlabel\tb\n1\t\t2\n", "op0 kind1 d2 missing0 0:1 1:2\n");
    /* quotes */
    expect("csv", "\"a\",\"b \"\"c\"\", d\",label\n\"1\", \"2\" ,\"big \"\"one\"\", here\"\n",
           "op0 kind1 d2 missing0 0:1 1:2 y='big \"one\", here'\n");
    /* labels: integers, integral and other reals, text, none */
    expect(
        "csv", "a,label\n1,+1\n1,2.0\n1,0.5\n1,1e300\n1,x1\n1,\n1,NaN\n1,99999999999999999999\n",
        "op0 kind1 d1 missing0 0:1 y=1\nop0 kind1 d1 missing0 0:1 y=2\nop0 kind1 d1 missing0 0:1 y=0x1p-1\n"
        "op0 kind1 d1 missing0 0:1 y=0x1.7e43c8800759cp+996\nop0 kind1 d1 missing0 0:1 y='x1'\n"
        "op0 kind1 d1 missing0 0:1\nop0 kind1 d1 missing0 0:1\n"
        "op0 kind1 d1 missing0 0:1 y=0x1.5af1d78b58c4p+66\n");
    /* one column; no label column at all */
    expect("csv", "a\n5\n", "op0 kind1 d1 missing0 0:5\n");
}

static void csv_has_other_columns(void **state) {
    (void)state;
    expect("csv", "id,ts,w,a\n7,100.5,2,1\nab,,,1\n007,1,1,1\n99999999999999999999,1,1,1\n",
           "op0 kind1 d1 missing0 0:1 id=7 ts=100.5 w=2\nop0 kind1 d1 missing0 0:1 id='ab'\n"
           "op0 kind1 d1 missing0 0:1 id=7 ts=1\nop0 kind1 d1 missing0 0:1 id='99999999999999999999' ts=1\n");
}

static void csv_knows_missing(void **state) {
    (void)state;
    expect("csv", "a,b,c,d,e,f,label\n,NA,nan,NULL,?,\"\",1\n",
           "op0 kind1 d6 missing6 0:nan 1:nan 2:nan 3:nan 4:nan 5:nan y=1\n");
}

static void names_go_to_the_shape(void **state) {
    (void)state;
    const char *text = "b,label,c,a\n1,0,2,3\nx,0,2,3\n4,0,5,6\n";
    struct svi_reader_options o = {.format = "csv"};
    struct feed f;
    feed_open(&f, text, strlen(text), &o, NULL);
    char *said = feed_read(&f, false);
    assert_string_equal(said, "op0 kind1 d3 missing0 0:1 1:2 2:3 y=0\n"
                              "BAD wrong_type: line 3: column \"b\": \"x\" is not a number\n"
                              "op0 kind1 d3 missing0 0:4 1:5 2:6 y=0\n");
    free(said);
    assert_int_equal(svs_features_count(f.shape.names), 3);
    assert_string_equal(svs_features_name(f.shape.names, 2), "a");
    feed_close(&f);
    /* only the fixed ones, in their order; others need not be numbers */
    said = read_text("b,label,c,a\n1,0,red,3\n", &o, "a, b");
    assert_string_equal(said, "op0 kind1 d2 missing0 0:3 1:1 y=0\n");
    free(said);
}

static void names_outlive_a_refused_first_row(void **state) {
    (void)state;
    expect("csv", "a,b\nx,1\n1,2\n",
           "BAD wrong_type: line 2: column \"a\": \"x\" is not a number\nop0 kind1 d2 missing0 0:1 1:2\n");
}

static void libsvm_means(void **state) {
    (void)state;
    expect(
        "libsvm", "+1 1:0.5 3:2 # comment\n\n# all\n-1 2:1e-1\n 2:7\t4:8 \n3\r\n0.25 1:1#x\n",
        "op0 kind2 d3 missing0 0:0.5 1:0 2:2 y=1\nop0 kind2 d3 missing0 0:0 1:0.10000000000000001 2:0 y=-1\n"
        "op0 kind2 d4 missing0 0:0 1:7 2:0 3:8\nop0 kind2 d4 missing0 0:0 1:0 2:0 3:0 y=3\n"
        "op0 kind2 d4 missing0 0:1 1:0 2:0 3:0 y=0x1p-2\n");
}

static void json_means(void **state) {
    (void)state;
    expect("jsonl",
           "{\"x\": [1, -2.5e0, null], \"y\": true, \"id\": \"q\\u00e9\\n\", \"ts\": 9, \"w\": 2, \"zz\": "
           "[{}]}\n",
           "op0 kind1 d3 missing1 0:1 1:-2.5 2:nan y=1 id='q\xc3\xa9\n' ts=9 w=2\n");
    expect(
        "jsonl",
        "{\"x\":{\"a\":1,\"b\\\"\":2},\"y\":\"s\",\"stream\":\"m\",\"src\":\"p\",\"n\":3}\n{\"x\":{\"c\":5}}",
        "op0 kind3 d2 missing0 0:1 1:2 y='s' stream='m' src='p' n=3\nop0 kind3 d3 missing0 0:0 1:0 2:5\n");
    expect("jsonl",
           "{\"op\":\"label\",\"id\":7,\"y\":-1.0}\n{\"op\":\"forget\",\"id\":\"\\ud83d\\ude00\",\"x\":null}",
           "op1 y=-1 id=7\nop2 id='\xf0\x9f\x98\x80'\n");
    expect("jsonl", " {\"a\":1,\"label\":0.5,\"id\":3,\"b\":null,\"ts\":1,\"w\":4}\r\n\n{\"b\":2}\n{}",
           "op0 kind3 d2 missing1 0:1 1:nan y=0x1p-1 id=3 ts=1 w=4\nop0 kind3 d2 missing0 0:0 1:2\n"
           "op0 kind3 d2 missing0 0:0 1:0\n");
}

static void json_flat_maps_take_fixed_names_only(void **state) {
    (void)state;
    struct svi_reader_options o = {.format = "jsonl"};
    char *said = read_text("{\"b\":1,\"c\":\"red\",\"a\":2,\"label\":\"k\"}\n{\"x\":{\"c\":1}}\n", &o, "a,b");
    assert_string_equal(said, "op0 kind3 d2 missing0 0:2 1:1 y='k'\n"
                              "BAD bad_column: line 2: \"c\" is not a name in the setting `features`\n");
    free(said);
}

struct refusal {
    const char *format, *text, *code, *words; /* words: somewhere in the text */
};

static const struct refusal refusals[] = {
    {"csv", "a,b,label\n1,2\n", "wrong_dimension", "line 2: the row has 2 cells, the header 3 columns"},
    {"csv", "a,b,label\n1,2,3,4\n", "wrong_dimension", "4 cells, the header 3"},
    {"csv", "a,b,label\nfoo\n", "wrong_dimension", "1 cells"},
    {"csv", "a,b,label\nfoo,1,2,3\n", "wrong_dimension", "4 cells"},
    {"csv", "a,b,label\n1,f\x01o,0\n", "wrong_type", "line 2: column \"b\": \"f\\x01o\" is not a number"},
    {"csv", "a,b,label\n1,0x10,0\n", "wrong_type", "0x10"},
    {"csv", "a,b,label\n1,1 2,0\n", "wrong_type", "\"1 2\""},
    {"csv", "a,b,label\n1,1e999,0\n", "not_finite", "1e999"},
    {"csv", "a,b,label\n1,-inf,0\n", "not_finite", "column \"b\": \"-inf\""},
    {"csv", "a,b,label\n1,Infinity,0\n", "not_finite", "Infinity"},
    {"csv", "a,b,label\n1,1,1e999\n", "not_finite", "label"},
    {"csv", "a,b,label\n1,\"2,0\n", "wrong_type", "quote"},
    {"csv", "a,b,label\n1,\"2\"x,0\n", "wrong_type", "quote"},
    {"csv", "a,b,label\n1,1,aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggg\n", "too_large",
     "65 bytes"},
    {"csv", "a,b,label\n1,1,\xff\n", "bad_label", "UTF-8"},
    {"csv", "id,ts,w,a\naaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggg,1,1,1\n", "bad_id",
     "65 bytes"},
    {"csv", "id,ts,w,a\n\xc3,1,1,1\n", "bad_id", "UTF-8"},
    {"csv", "id,ts,w,a\n1,2020-01-01,1,1\n", "wrong_type", "a time in seconds since 1970"},
    {"csv", "id,ts,w,a\n1,inf,1,1\n", "not_finite", "ts"},
    {"csv", "id,ts,w,a\n1,1,0,1\n", "bad_weight", "the weight is 0"},
    {"csv", "id,ts,w,a\n1,1,-2,1\n", "bad_weight", "-2"},
    {"csv", "id,ts,w,a\n1,1,x,1\n", "wrong_type", "a weight"},
    {"libsvm", "1 0:1\n", "bad_column", "line 1: index 0"},
    {"libsvm", "1 2:1 2:1\n", "duplicate_key", "index 2"},
    {"libsvm", "1 3:1 2:1\n", "bad_column", "ascend"},
    {"libsvm", "1 301:1\n", "limit", "300"},
    {"libsvm", "1 99999999999999999999:1\n", "wrong_type", "index:value"},
    {"libsvm", "1 1:x\n", "wrong_type", "\"1:x\""},
    {"libsvm", "1 1\n", "wrong_type", "index:value"},
    {"libsvm", "1 qid:3 1:2\n", "wrong_type", "qid"},
    {"libsvm", "1 1:nan\n", "not_finite", "1:nan"},
    {"libsvm", "1 1:inf\n", "not_finite", "1:inf"},
    {"libsvm", "1 1:1e999\n", "not_finite", "index 1"},
    {"libsvm", "spam 1:1\n", "bad_label", "spam"},
    {"libsvm", "1e999 1:1\n", "not_finite", "label"},
    {"jsonl", "[1]\n", "wrong_type", "an array"},
    {"jsonl", "{\"x\":[1,2]", "truncated", "ends too early"},
    {"jsonl", "{\"x\":[1,2", "truncated", "ends too early"},
    {"jsonl", "{\"x", "truncated", "quote"},
    {"jsonl", "{\"x\":[1]} {}\n", "trailing", "before byte 11"},
    {"jsonl", "{x:1}\n", "not_msgpack", "a string expected at byte 2"},
    {"jsonl", "{\"x\" 1}\n", "not_msgpack", "a colon"},
    {"jsonl", "{\"x\":[1 2]}\n", "not_msgpack", "a comma or ]"},
    {"jsonl", "{\"x\":[01]}\n", "not_msgpack", "a value"},
    {"jsonl", "{\"x\":[+1]}\n", "not_msgpack", "a value"},
    {"jsonl", "{\"x\":[.5]}\n", "not_msgpack", "a value"},
    {"jsonl", "{\"x\":[5.]}\n", "not_msgpack", "digits after its point"},
    {"jsonl", "{\"x\":[1,]}\n", "not_msgpack", "a value"},
    {"jsonl", "{\"a\\q\":1}\n", "not_msgpack", "an escape"},
    {"jsonl", "{\"a\\ud800\":1}\n", "not_msgpack", "hexadecimal"},
    {"jsonl", "{\"a\\u0000\":1}\n", "not_msgpack", "NUL"},
    {"jsonl", "{\"a\tb\":1}\n", "not_msgpack", "control"},
    {"jsonl", "{\"q\":[[[[[[[[1]]]]]]]]}\n", "too_deep", "8 deep"},
    {"jsonl", "{\"x\":[NaN]}\n", "not_finite", "x[0]"},
    {"jsonl", "{\"x\":[1,-Infinity]}\n", "not_finite", "x[1]"},
    {"jsonl", "{\"x\":[1,1e999]}\n", "not_finite", "x[1]"},
    {"jsonl", "{\"x\":[1,\"2\"]}\n", "wrong_type", "\"x[1]\" is a string"},
    {"jsonl", "{\"x\":5}\n", "wrong_type", "\"x\" is a number"},
    {"jsonl", "{\"x\":{\"a\":[]}}\n", "wrong_type", "\"a\" is an array"},
    {"jsonl", "{\"x\":{\"a\":1,\"a\":2}}\n", "duplicate_key", "\"a\""},
    {"jsonl", "{\"x\":{\"\":1}}\n", "bad_column", "1 to 64"},
    {"jsonl", "{\"x\":[]}\n", "wrong_dimension", "empty"},
    {"jsonl", "{\"x\":[1],\"x\":[1]}\n", "duplicate_key", "\"x\""},
    {"jsonl", "{\"x\":null}\n", "missing_x", "no x"},
    {"jsonl", "{\"x\":[1],\"y\":[]}\n", "wrong_type", "\"y\" is an array"},
    {"jsonl", "{\"x\":[1],\"y\":\"\"}\n", "bad_label", "empty"},
    {"jsonl", "{\"x\":[1],\"y\":\"\xff\"}\n", "bad_label", "UTF-8"},
    {"jsonl", "{\"x\":[1],\"y\":1e999}\n", "not_finite", "\"y\""},
    {"jsonl", "{\"x\":[1],\"id\":1.5}\n", "bad_id", "integer"},
    {"jsonl", "{\"x\":[1],\"id\":99999999999999999999}\n", "bad_id", "2^63"},
    {"jsonl", "{\"x\":[1],\"ts\":\"now\"}\n", "wrong_type", "seconds since 1970"},
    {"jsonl", "{\"x\":[1],\"w\":0}\n", "bad_weight", "0"},
    {"jsonl", "{\"x\":[1],\"stream\":1}\n", "wrong_type", "\"stream\""},
    {"jsonl", "{\"x\":[1],\"n\":-1}\n", "wrong_type", "an integer from 0"},
    {"jsonl", "{\"x\":[1],\"op\":1}\n", "wrong_type", "\"op\""},
    {"jsonl", "{\"op\":\"learm\",\"id\":1}\n", "unknown_op", "learm"},
    {"jsonl", "{\"op\":\"learn\"}\n", "missing_x", "no x"},
    {"jsonl", "{\"op\":\"forget\"}\n", "bad_id", "needs an id"},
    {"jsonl", "{\"op\":\"label\",\"id\":1}\n", "bad_label", "needs a y"},
    {"jsonl", "{\"a\":\"red\"}\n", "wrong_type", "\"a\" is a string"},
    {"jsonl", "{\"a\":1,\"a\":1}\n", "duplicate_key", "\"a\""},
    {"jsonl", "{\"a\":1,\"label\":1,\"label\":1}\n", "duplicate_key", "label"},
    {"jsonl", "{\"a\":[true]}\n", "wrong_type", "array"},
};

/* Each is refused with its code and words, its bytes are at hand, and the next row is read. */
static void refusals_have_code_words_and_bytes(void **state) {
    (void)state;
    static const char *const good[] = {"1,1,1\n", "1,1,1,1\n", "1 1:1\n", "{\"op\":\"forget\",\"id\":1}\n"};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *c = &refusals[i];
        bool ids = strncmp(c->text, "id", 2) == 0, csv = strcmp(c->format, "csv") == 0;
        const char *after = csv ? good[ids] : strcmp(c->format, "libsvm") == 0 ? good[2] : good[3];
        struct svi_reader_options o = {.format = c->format};
        if (ids)
            o = (struct svi_reader_options){.format = c->format, .id = "id", .ts = "ts", .weight = "w"};
        char text[400];
        size_t length = strlen(c->text);
        bool cut = c->text[length - 1] != '\n';
        snprintf(text, sizeof text, "%s%s%s", c->text, cut ? "\n" : "", after);
        struct feed f;
        feed_open(&f, text, strlen(text), &o, NULL);
        struct svi_message m;
        svs_error err = {0};
        enum svi_read what = svi_reader_row(f.reader, &m, &err);
        if (what != SVI_READ_BAD || strcmp(svs_code_name(err.code), c->code) != 0 ||
            !strstr(err.text, c->words))
            fail_msg("%s: %d %s '%s' instead of %s '%s'", c->text, what, svs_code_name(err.code), err.text,
                     c->code, c->words);
        const char *bytes;
        size_t n;
        assert_int_equal(svi_reader_line(f.reader, &bytes, &n), csv ? 2 : 1);
        assert_true(n > 0 && strstr(text, c->text) && memmem(text, strlen(text), bytes, n));
        svi_shape_restore(&f.shape);
        assert_int_equal(svs_features_count(f.shape.names), csv ? (ids ? 1 : 2) : 0);
        assert_int_equal(svi_reader_row(f.reader, &m, &err), SVI_READ_ROW);
        assert_int_equal(svi_reader_row(f.reader, &m, &err), SVI_READ_END);
        assert_int_equal(svi_reader_row(f.reader, &m, &err), SVI_READ_END);
        feed_close(&f);
    }
}

static const struct refusal failures[] = {
    {"csv", "", "setting", "is empty"},
    {"csv", "\n\n", "setting", "is empty"},
    {"csv", "1,2.5,-3\n1,2,3\n", "setting", "line 1: the first line is numbers; a CSV needs a header line"},
    {"csv", "a,a,label\n", "setting", "\"a\" twice"},
    {"csv", "a,label,label\n", "setting", "2 times"},
    {"csv", "a,,label\n", "bad_column", "column 2 of the header has no name"},
    {"csv", "label\n", "setting", "no feature column"},
    {"csv", "a,\"b,label\n", "setting", "quotes"},
    {"csv", "a,\xff\xfe,label\n", "bad_column", "UTF-8"},
};

static void failures_end_the_file(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        struct svi_reader_options o = {.format = failures[i].format};
        char *said = read_text(failures[i].text, &o, NULL);
        if (strncmp(said, "FAIL ", 5) != 0 || !strstr(said, failures[i].words) ||
            !strstr(said, failures[i].code))
            fail_msg("'%s': %s", failures[i].text, said);
        free(said);
    }
}

static void wanted_columns_must_be_there(void **state) {
    (void)state;
    const struct svi_reader_options wanted[] = {{.format = "csv", .label = "y", .label_required = true},
                                                {.format = "csv", .id = "y"},
                                                {.format = "csv", .ts = "y"},
                                                {.format = "csv", .weight = "y"}};
    for (int i = 0; i < 4; i++) {
        char *said = read_text("a,b,label\n1,2,3\n", &wanted[i], NULL);
        assert_non_null(strstr(said, "FAIL setting"));
        assert_non_null(strstr(said, "column \"y\"; the columns are a,b,label"));
        free(said);
    }
    struct svi_reader_options o = {.format = "csv"};
    char *said = read_text("a,b,label\n1,2,3\n", &o, "a,zz");
    assert_non_null(strstr(said, "feature column \"zz\"; the columns are a,b,label"));
    free(said);
}

static void too_many_features_are_a_limit(void **state) {
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    for (int i = 0; i <= FEED_FEATURES; i++)
        fprintf(to, "c%d,", i);
    fprintf(to, "label\n");
    fclose(to);
    struct svi_reader_options o = {.format = "csv"};
    char *said = read_text(text, &o, NULL);
    assert_non_null(strstr(said, "FAIL limit"));
    free(said);
    free(text);
    to = open_memstream(&text, &size);
    fprintf(to, "{\"x\":[0");
    for (int i = 0; i < FEED_FEATURES; i++)
        fprintf(to, ",%d", i);
    fprintf(to, "]}\n");
    fclose(to);
    o.format = "jsonl";
    said = read_text(text, &o, NULL);
    assert_non_null(strstr(said, "BAD limit: line 1: x has more than 300 features"));
    free(said);
    free(text);
}

/* A line of 1 MiB is read; one byte more is refused whole, and what follows is read. */
static void long_lines_are_refused_whole(void **state) {
    (void)state;
    size_t mib = (size_t)1 << 20;
    char *text = malloc(3 * mib);
    for (size_t extra = 0; extra < 3; extra++) {
        size_t n = (size_t)sprintf(text, "a\n");
        memset(text + n, ' ', 2 * mib);
        text[n] = '7';
        n += extra == 2 ? 2 * mib : mib + extra;
        n += (size_t)sprintf(text + n, "\n8\n");
        struct feed f;
        struct svi_reader_options o = {.format = "csv"};
        feed_open(&f, text, n, &o, NULL);
        char *said = feed_read(&f, false);
        const char *bad = "BAD too_large: line 2: the line is longer than 1 MiB\n";
        char expected[200];
        snprintf(expected, sizeof expected, "%sop0 kind1 d1 missing0 0:8\n",
                 extra ? bad : "op0 kind1 d1 missing0 0:7\n");
        assert_string_equal(said, expected);
        free(said);
        feed_close(&f);
    }
    free(text);
}

static void open_says_why_not(void **state) {
    (void)state;
    struct svi_shape shape;
    svs_error err = {0};
    struct svi_reader_options o = {.format = "auto"};
    assert_int_equal(svi_shape_init(&shape, 10, NULL, &err), SVS_OK);
    assert_null(svi_reader_open("/nonexistent/x.csv", &o, &shape, &err));
    assert_int_equal(err.code, SVS_IO);
    assert_non_null(strstr(err.text, "/nonexistent/x.csv"));
    assert_null(svi_reader_open("/", &o, &shape, &err));
    assert_non_null(strstr(err.text, "directory"));
    o.format = "arff";
    assert_null(svi_reader_open("/dev/null", &o, &shape, &err));
    assert_int_equal(err.code, SVS_SETTING);
    assert_non_null(strstr(err.text, "arff"));
    svi_shape_clear(&shape);
}

static void format_is_guessed(void **state) {
    (void)state;
    struct svi_reader_options o = {.format = "auto"};
    const char *const texts[][2] = {{"  {\"a\":1}\n", "op0 kind3 d1 missing0 0:1\n"},
                                    {"\n-1 2:3\n", "op0 kind2 d2 missing0 0:0 1:3 y=-1\n"},
                                    {"2:3 4:5\n", "op0 kind2 d4 missing0 0:0 1:3 2:0 3:5\n"},
                                    {"a,label\n1,1\n", "op0 kind1 d1 missing0 0:1 y=1\n"},
                                    {"", ""}};
    for (int i = 0; i < 5; i++) {
        char *said = read_text(texts[i][0], &o, NULL);
        assert_string_equal(said, texts[i][1]);
        free(said);
    }
}

static void mixed_forms_are_refused(void **state) {
    (void)state;
    expect("jsonl", "{\"x\":[1,2]}\n{\"x\":{\"a\":1}}\n{\"x\":[1]}\n{\"a\":1}\n{\"x\":[3,4]}\n",
           "op0 kind1 d2 missing0 0:1 1:2\n"
           "BAD wrong_kind: line 2: x is named (a map of names), but the stream's first sample was dense (an "
           "array or packed "
           "numbers): send all in that form\n"
           "BAD wrong_dimension: line 3: x has 1 features, but this stream has 2\n"
           "BAD wrong_kind: line 4: x is named (a map of names), but the stream's first sample was dense (an "
           "array or packed "
           "numbers): send all in that form\n"
           "op0 kind1 d2 missing0 0:3 1:4\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_means),
        cmocka_unit_test(csv_has_other_columns),
        cmocka_unit_test(csv_knows_missing),
        cmocka_unit_test(names_go_to_the_shape),
        cmocka_unit_test(names_outlive_a_refused_first_row),
        cmocka_unit_test(libsvm_means),
        cmocka_unit_test(json_means),
        cmocka_unit_test(json_flat_maps_take_fixed_names_only),
        cmocka_unit_test(refusals_have_code_words_and_bytes),
        cmocka_unit_test(failures_end_the_file),
        cmocka_unit_test(wanted_columns_must_be_there),
        cmocka_unit_test(too_many_features_are_a_limit),
        cmocka_unit_test(long_lines_are_refused_whole),
        cmocka_unit_test(open_says_why_not),
        cmocka_unit_test(format_is_guessed),
        cmocka_unit_test(mixed_forms_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
