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
    expect("csv", "a,b,label\n1,2.5,1\n-3,1e2,-1\n", "op0 a=1 b=2.5 y=1\nop0 a=-3 b=100 y=-1\n");
    /* CRLF, no last line end, blank lines, a byte order mark, spaces */
    expect("csv",
           "\xef\xbb\xbf"
           "a,b,label\r\n\r\n1,2,0\r\n   \r\n 3 , 4 , 1 ",
           "op0 a=1 b=2 y=0\nop0 a=3 b=4 y=1\n");
    /* separators, and the label in front */
    expect("csv", "label;a;b\nup;1;2\n", "op0 a=1 b=2 y='up'\n");
    expect("csv", "a\tlabel\tb\n1\t\t2\n", "op0 a=1 b=2\n");
    /* quotes */
    expect("csv", "\"a\",\"b \"\"c\"\", d\",label\n\"1\", \"2\" ,\"big \"\"one\"\", here\"\n",
           "op0 a=1 b \"c\", d=2 y='big \"one\", here'\n");
    /* labels: integers, integral and other reals, text, none */
    expect("csv", "a,label\n1,+1\n1,2.0\n1,0.5\n1,1e300\n1,x1\n1,\n1,NaN\n1,99999999999999999999\n",
           "op0 a=1 y=1\nop0 a=1 y=2\nop0 a=1 y=0x1p-1\n"
           "op0 a=1 y=0x1.7e43c8800759cp+996\nop0 a=1 y='x1'\n"
           "op0 a=1\nop0 a=1\n"
           "op0 a=1 y=0x1.5af1d78b58c4p+66\n");
    /* one column; no label column at all */
    expect("csv", "a\n5\n", "op0 a=5\n");
}

static void csv_has_other_columns(void **state) {
    (void)state;
    expect("csv", "id,ts,w,a\n7,100.5,2,1\nab,,,1\n007,1,1,1\n99999999999999999999,1,1,1\n",
           "op0 a=1 id=7 ts=100.5 w=2\nop0 a=1 id='ab'\n"
           "op0 a=1 id=7 ts=1\nop0 a=1 id='99999999999999999999' ts=1\n");
}

static void csv_knows_missing(void **state) {
    (void)state;
    expect("csv", "a,b,c,d,e,f,g,label\n,NA,nan,NULL,?,\"\",-,1\n", "op0 a= b= c= d= e= f= g= y=1\n");
    struct svi_reader_options o = {.format = "csv", .missing = "none, n/a"};
    char *said = read_text("a,b,label\n1,N/A,1\n2,-,none\n", &o, NULL);
    assert_string_equal(said, "op0 a=1 b= y=1\nop0 a=2 b=\"-\"\n");
    free(said);
    /* a class of that name, where there is its opposite */
    expect("csv", "a,label\n1,+\n2,-\n", "op0 a=1 y='+'\nop0 a=2 y='-'\n");
}

/* At first, or all of it. */
/* The whole sample tells what a mark in a number is. */
static void csv_reads_quantities(void **state) {
    (void)state;
    expect("csv", "a;b;label\n1,5;1.499;0\n2,25;233;1\n1.204,5;12.000;1\n",
           "op0 a=1.5 b=1499 y=0\nop0 a=2.25 b=233 y=1\nop0 a=1204.5 b=12000 y=1\n");
    expect("csv", "a;b;label\n1,5;1.499;0\n2,25;0.233;1\n",
           "op0 a=1.5 b=1.4990000000000001 y=0\nop0 a=2.25 b=0.23300000000000001 y=1\n");
    expect("csv",
           "t,m,p,label\n23.5 \xc2\xb0"
           "C,73.1MB,\"$1,234.50\",0\n-4 \xc2\xb0"
           "C,5 MB,$7,1\n0,6 MB,8,1\n21,1 GB,8,1\n",
           "op0 t=23.5 m=73.099999999999994 p=1234.5 y=0\nop0 t=-4 m=5 p=7 y=1\nop0 t=0 m=6 p=8 y=1\n"
           "BAD wrong_type: line 5: column \"t\": \"21\" is not a number in \xc2\xb0"
           "C\n");
    expect("csv", "p,h,label\n\"4.604,35 \xe2\x82\xac\",\"33,4 %\",1\n\"12,00 \xe2\x82\xac\",\"7 %\",0\n",
           "op0 p=4604.3500000000004 h=33.399999999999999 y=1\nop0 p=12 h=7 y=0\n");
}

/* A quoted cell may have line ends; a quote that nothing closes spoils its own line alone. */
static void csv_rows_of_several_lines(void **state) {
    (void)state;
    expect("csv", "t,a,label\n\"x\ny, \"\"z\"\"\",1,0\r\n\"p\r\n\n\n\",2,1\nq,3,\"0\n\"",
           "op0 t=\"x\ny, \"z\"\" a=1 y=0\nop0 t=\"p\r\n\n\n\" a=2 y=1\nop0 t=\"q\" a=3 y='0\n'\n");
    expect("csv", "t,a,label\nx,1,0\n\"y,2,0\nz,3,1\n\"u,4,1\nw,5,0\n",
           "op0 t=\"x\" a=1 y=0\nBAD wrong_type: line 3: cell 1: a quote is not closed, or text follows it\n"
           "op0 t=\"z\" a=3 y=1\nBAD wrong_type: line 5: cell 1: a quote is not closed, or text follows it\n"
           "op0 t=\"w\" a=5 y=0\n");
    expect("csv", "t,a,label\n\"x\ny\",1\n\"u\nv\",2,1\nw,inf,1\n",
           "BAD wrong_type: line 2: cell 1: a quote is not closed, or text follows it\n"
           "BAD wrong_dimension: line 3: the row has 2 cells, the header 3 columns\n"
           "op0 t=\"u\nv\" a=2 y=1\n"
           "BAD not_finite: line 6: column \"a\": \"inf\" is not finite\n");
}

/* The same rows, however the bytes of a pipe come. */
static void csv_rows_of_several_lines_come_in_pieces(void **state) {
    (void)state;
    static const char text[] = "t,a,label\nx,1,0\ny,2,1\n\"p\nq\",3,1\n\"r\n\ns\n\",4,0\n\"open,5,1\nz,6,1\n";
    for (size_t step = 1; step < 24; step++) {
        int ends[2];
        struct svi_reader_options o = {.format = "csv"};
        struct feed f = {0};
        struct svi_message m;
        svs_error err = {0};
        char said[400] = "";
        assert_int_equal(pipe(ends), 0);
        snprintf(f.path, sizeof f.path, "/proc/self/fd/%d", f.fd = ends[0]);
        assert_int_equal(svi_shape_init(&f.shape, FEED_FEATURES, NULL, &err), SVS_OK);
        f.reader = svi_reader_open(f.path, &o, &f.shape, &err);
        for (size_t at = 0, open = true; open;) {
            const size_t left = sizeof text - 1 - at, n = left < step ? left : step;
            if (n > 0)
                assert_int_equal(write(ends[1], text + at, n), n);
            else
                close(ends[1]);
            at += n;
            assert_int_equal(svi_reader_fill(f.reader, &err), SVS_OK);
            enum svi_read what;
            while ((what = svi_reader_next(f.reader, &m, &err)) == SVI_READ_ROW || what == SVI_READ_BAD)
                snprintf(said + strlen(said), sizeof said - strlen(said), "%s%.0f ",
                         what == SVI_READ_BAD ? "bad" : "", what == SVI_READ_BAD ? 0 : m.cells[1].number);
            open = what != SVI_READ_END;
        }
        assert_string_equal(said, "1 2 3 4 bad0 6 ");
        feed_close(&f);
    }
}

/* Which form a column of times has, and what is said of it. */
static void csv_takes_times(void **state) {
    (void)state;
    static const struct {
        const char *text, *format, *said, *note;
    } files[] = {
        {"when;a\n05.11.2026 10:05;1\n22.11.2026 10:05;2\n", NULL,
         "op0 a=1 ts=1793873100\nop0 a=2 ts=1795341900\n", "time when (day first)"},
        {"when,a\n11/05/2026 10:04 PM,1\n11/22/2026 10:05 AM,2\n", NULL,
         "op0 a=1 ts=1793916240\nop0 a=2 ts=1795341900\n", "time when (month first)"},
        /* no number above 12: the order in which they rise */
        {"when,a\n03/01/2026,1\n03/02/2026,2\n03/03/2026,3\n04/01/2026,4\n", NULL,
         "op0 a=1 ts=1772323200\nop0 a=2 ts=1772409600\nop0 a=3 ts=1772496000\nop0 a=4 ts=1775001600\n",
         "time when (month first)"},
        {"when,a\n03/02/2026,1\n03/02/2026,2\n", NULL, "op0 a=1 ts=1770076800\nop0 a=2 ts=1770076800\n",
         "time when (day first, a guess: --ts.format overrides it)"},
        {"when,a\n03/02/2026,1\n03/02/2026,2\n", "%m/%d/%Y", "op0 a=1 ts=1772409600\nop0 a=2 ts=1772409600\n",
         "time when (%m/%d/%Y)"},
        {"when a|b\n22/Nov/2026:10:05:00 +0000|1\n", NULL, "op0 b=1 ts=1795341900\n", "time when a"},
        {"Date;Time;a\n22/11/2026;10.05.00;1\n22/11/2026;10.05.30;2\n22/11/2026;;3\n;10.06.00;4\n", NULL,
         "op0 a=1 ts=1795341900\nop0 a=2 ts=1795341930\nop0 a=3\nop0 a=4\n", "time Date + Time (day first)"},
        {"Time,a,Date\n10:05 AM,1,2026-11-22\n10:05 PM,2,2026-11-22\n", NULL,
         "op0 a=1 ts=1795341900\nop0 a=2 ts=1795385100\n", "time Date + Time (ISO 8601)"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct feed f;
        struct svi_reader_options o = {.format = "csv", .ts_format = files[i].format, .unlabelled = true};
        feed_open(&f, files[i].text, strlen(files[i].text), &o, NULL);
        char *said = feed_read(&f, false);
        if (strcmp(said, files[i].said) != 0 || !strstr(svi_reader_note(f.reader), files[i].note))
            fail_msg("%s: %s%s", files[i].text, said, svi_reader_note(f.reader));
        free(said);
        feed_close(&f);
    }
    struct svi_reader_options o = {.format = "jsonl", .ts = "when", .ts_format = "%d.%m.%Y"};
    char *said = read_text("{\"when\":\"22.11.2026\",\"a\":1}\n", &o, NULL);
    assert_string_equal(said, "op0 a=1 ts=1795305600\n");
    free(said);
    o.ts_format = NULL;
    said = read_text("{\"when\":\"22.11.2026 10:05\",\"a\":1}\n", &o, NULL);
    assert_string_equal(said, "op0 a=1 ts=1795341900\n");
    free(said);
}

/* Lines that begin with # above the header and among rows; but # may name a column, or begin its values. */
static void csv_passes_comments_over(void **state) {
    (void)state;
    expect("csv", "# made by x, y\n#\n\na,b,label\n1,2,0\n# pause\n3,4,1\n#end",
           "op0 a=1 b=2 y=0\nop0 a=3 b=4 y=1\n");
    expect("auto", "# made\n# a, b, label\n1,2,0\n3,4,1\n", "op0 a=1 b=2 y=0\nop0 a=3 b=4 y=1\n");
    expect("csv", "#,name,label\n5,x,0\n2,y,1\n", "op0 #=5 name=\"x\" y=0\nop0 #=2 name=\"y\" y=1\n");
    expect("csv", "tag,b,label\n#5,2,0\n#7,3,1\n#7,3\n",
           "op0 tag=\"#5\" b=2 y=0\nop0 tag=\"#7\" b=3 y=1\n"
           "BAD wrong_dimension: line 4: the row has 2 cells, the header 3 columns\n");
    expect("auto", "# sparse\n1 2:3\n", "op0 kind2 d2 missing0 0:0 1:3 y=1\n");
    expect("csv", "#a,b\n", "");
}

/* A number among the words for a missing value is one however it is written, in each format. */
static void missing_words_may_be_numbers(void **state) {
    (void)state;
    static const char *const texts[][3] = {
        {"csv", "a,b,label\n-999,1,0\n2,-999.0,1\n3,-99,-999\n",
         "op0 a= b=1 y=0\nop0 a=2 b= y=1\nop0 a=3 b=-99\n"},
        {"jsonl", "{\"a\":-999,\"b\":1}\n{\"a\":2,\"b\":-9.99e2,\"label\":-999}\n",
         "op0 a= b=1\nop0 a=2 b=\n"},
        {"vw", "1 | a:-999 b:2\n", "op0 a= b=2 y=1\n"},
    };
    for (int i = 0; i < 3; i++) {
        struct svi_reader_options o = {.format = texts[i][0], .missing = "NA, -999"};
        char *said = read_text(texts[i][1], &o, NULL);
        assert_string_equal(said, texts[i][2]);
        free(said);
    }
}

/* Those of pandas, and what spreadsheets write. */
static void missing_words_of_others(void **state) {
    (void)state;
    expect("csv",
           "a,b,label\nN/A,1,0\n#N/A,n/a,1\nNone,<NA>,0\n-,NULL,1\n#NA,-nan,0\n1.#IND,-1.#QNAN,1\n#N/A "
           "N/A,2,1\n",
           "op0 a= b=1 y=0\nop0 a= b= y=1\nop0 a= b= y=0\nop0 a= b= y=1\nop0 a= b= y=0\nop0 a= b= "
           "y=1\nop0 a= b=2 y=1\n");
}

static void csv_columns_may_be_empty(void **state) {
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    fputs("a,b,c\n", to);
    for (int i = 0; i < 1100; i++)
        fprintf(to, "%d,%s,%d\n", i % 7, i < 50 ? "x" : "", i % 3);
    fclose(to);
    struct svi_reader_options o = {.format = "csv", .numbers = "a"};
    char *said = read_text(text, &o, NULL);
    assert_non_null(strstr(said, "op0 a=0 b=\"x\" c=0\n"));
    free(said);
    free(text);
    expect("csv", "a,b\n1,\n2,\n3,\n4,\n5,\n",
           "op0 a=1 b=\nop0 a=2 b=\nop0 a=3 b=\nop0 a=4 b=\nop0 a=5 b=\n");
}

static void csv_gives_cells_in_the_order_of_the_header(void **state) {
    (void)state;
    const char *text = "b,label,c,a\n1,0,2,3\nx,0,2,3\n4,0,5,6\n";
    struct svi_reader_options o = {.format = "csv", .numbers = "b"};
    char *said = read_text(text, &o, NULL);
    assert_string_equal(said,
                        "op0 b=1 c=2 a=3 y=0\n"
                        "BAD wrong_type: line 3: column \"b\": \"x\" is not a number (--categories b reads "
                        "words, missing.words lists those for a missing value)\n"
                        "op0 b=4 c=5 a=6 y=0\n");
    free(said);
    o.numbers = NULL; /* a word among few rows makes it one of words */
    said = read_text(text, &o, NULL);
    assert_string_equal(said, "op0 b=\"1\" c=2 a=3 y=0\nop0 b=\"x\" c=2 a=3 y=0\nop0 b=\"4\" c=5 a=6 y=0\n");
    free(said);
    o.features = "a, b";
    said = read_text("b,label,c,a\n1,0,red,3\n", &o, NULL);
    assert_string_equal(said, "op0 b=1 a=3 y=0\n");
    free(said);
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
        "op0 a=1 b\"=2 y='s' stream='m' src='p' n=3\nop0 c=5\n");
    expect("jsonl",
           "{\"op\":\"label\",\"id\":7,\"y\":-1.0}\n{\"op\":\"forget\",\"id\":\"\\ud83d\\ude00\",\"x\":null}",
           "op1 y=-1 id=7\nop2 id='\xf0\x9f\x98\x80'\n");
    expect("jsonl", " {\"a\":1,\"label\":0.5,\"id\":3,\"b\":null,\"ts\":1,\"w\":4}\r\n\n{\"b\":2}\n{}",
           "op0 a=1 b= y=0x1p-1 id=3 ts=1 w=4\nop0 b=2\nop0\n");
    expect("jsonl",
           "{\"a\":\"red\",\"b\":\"7\",\"c\":true,\"d\":\"NA\",\"e\":NaN}\n{\"x\":{\"a\":\"\\u00e9\",\"b\":"
           "\"7\",\"c\":\"\"}}",
           "op0 a=\"red\" b=7 c=1 d= e=\nop0 a=\"\xc3\xa9\" b=\"7\" c=\n");
    expect("jsonl", "{\"ts\":\"2026-11-22T10:05:30+01:00\",\"a\":1}\n{\"ts\":1795338330,\"a\":{}}\n",
           "op0 a=1 ts=1795338330\nBAD wrong_type: line 2: \"a\" is an object: it must be a number, a "
           "string, true "
           "or false, or null when it is missing\n");
}

#define LONG_KEY "a234567890b234567890c234567890d234567890e234567890f234567890" /* 60 bytes */

/* An object in a flat map is more columns; what comes later in one, too. A name too long for a column is left
 * out. */
static void json_has_objects(void **state) {
    (void)state;
    expect("jsonl", "{\"load\":{\"cpu\":3,\"disk\":{\"sda\":\"busy\"}},\"label\":{\"a\":1},\"b\":2}\n",
           "BAD wrong_type: line 1: \"label\" is an object: it must be a number, a bool or a string\n");
    expect("jsonl",
           "{\"load\":{\"cpu\":3,\"disk\":{\"sda\":\"busy\"}},\"l\\u00e9\":{\"\\\"\":1,\"e\":[1]},\"b\":2,"
           "\"n\":null}\n"
           "{\"load\":{\"disk\":{\"sda\":\"idle\",\"sdb\":\"n\\new\"},\"x\":1},\"n\":{\"m\":5},\"z\":{}}\n",
           "op0 load.cpu=3 load.disk.sda=\"busy\" l\xc3\xa9.\"=1 b=2 n=\n"
           "op0 load.disk.sda=\"idle\" load.disk.sdb=\"n\new\" load.x=1 n.m=5\n");
    expect("jsonl", "{\"" LONG_KEY "\":{\"abc\":1,\"abcd\":2},\"b\":3}\n", "op0 " LONG_KEY ".abc=1 b=3\n");
}

/* So is one in x, where no row is taken without its value. */
static void json_has_objects_in_x(void **state) {
    (void)state;
    expect(
        "jsonl",
        "{\"x\":{\"load\":{\"cpu\":3,\"disk\":{\"s\\u00e9\":\"busy\"}},\"z\":{},\"b\":2},\"y\":{\"a\":1}}\n"
        "{\"y\":1,\"x\":{\"load\":{\"cpu\":null,\"up\":true,\"id\":7}},\"id\":3}\n"
        "{\"x\":{\"" LONG_KEY "\":{\"abc\":1}}}\n"
        "{\"x\":{\"" LONG_KEY "\":{\"abcd\":1}}}\n"
        "{\"x\":{\"load\":{\"cpu\":[1]}}}\n",
        "BAD wrong_type: line 1: \"y\" is an object: it must be a number, a bool or a string\n"
        "op0 load.cpu= load.up=1 load.id=7 y=1 id=3\n"
        "op0 " LONG_KEY ".abc=1\n"
        "BAD bad_column: line 4: \"abcd\" has, with the name of its object, more than 64 bytes\n"
        "BAD wrong_type: line 5: \"load.cpu\" is an array: it must be a number, a string, true or false, or "
        "null when it is missing\n");
    expect("jsonl", "{\"x\":{\"load\":{\"cpu\":3,\"disk\":{\"s\\u00e9\":\"bu\\nsy\"}},\"z\":{},\"b\":2}}\n",
           "op0 load.cpu=3 load.disk.s\xc3\xa9=\"bu\nsy\" b=2\n");
}

static void json_flat_maps_take_the_features_only(void **state) {
    (void)state;
    struct svi_reader_options o = {.format = "jsonl", .features = "a,b", .ignore = "q"};
    char *said =
        read_text("{\"b\":1,\"c\":\"red\",\"a\":2,\"label\":\"k\",\"q\":[1]}\n{\"x\":{\"c\":1}}\n", &o, NULL);
    assert_string_equal(said, "op0 b=1 a=2 y='k'\nop0 c=1\n");
    free(said);
}

static void vw_means(void **state) {
    (void)state;
    expect("vw",
           "1 2.5 'tag |a b:2 c machine=press-03 d:NA\n-1|x:2 a:3 |y b|z:0.5 |  q\nspam |a b:-1e2\n|a\n\n1 2 "
           "0.5 t7|a \n",
           "op0 a^b=2 a^c=1 a^machine=\"press-03\" a^d= y=1 id='tag' w=2.5\n"
           "op0 x^a=6 y^b=1 q=1 id=-1\n"
           "op0 a^b=-100 y='spam'\nop0\nop0 y=1 id='t7' w=2\n");
}

struct refusal {
    const char *format, *text, *code, *words; /* words: somewhere in the text */
};

static const struct refusal refusals[] = {
    {"csv", "a,b,label\n1,2\n", "wrong_dimension", "line 2: the row has 2 cells, the header 3 columns"},
    {"csv", "a,b,label\n1,2,3,4\n", "wrong_dimension", "4 cells, the header 3"},
    {"csv", "a,b,label\nfoo\n", "wrong_dimension", "the row has 1 cell, the header 3 columns"},
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
    {"csv", "id,ts,w,a\n1,2020-01-32,1,1\n", "wrong_type", "a time: seconds"},
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
    {"jsonl", "{\"a\":1,\"label\":1,\"label\":1}\n", "duplicate_key", "label"},
    {"jsonl", "{\"x\":{\"a\":[true]}}\n", "wrong_type", "array"},
    {"jsonl", "{\"x\":{\"a\":\"\xff\"}}\n", "wrong_type", "UTF-8"},
    {"vw", "1 a:1\n", "wrong_type", "the bar is missing"},
    {"vw", "1:2 3:1 |a b\n", "bad_label", "several costs"},
    {"vw", "1 x |a b\n", "wrong_type", "the weight is not a number"},
    {"vw", "1 0 |a b\n", "bad_weight", "0"},
    {"vw", "1 1 x |a b\n", "wrong_type", "the base"},
    {"vw", "1 1 1 1 |a b\n", "wrong_type", "label, weight, base"},
    {"vw", "1 |a:x b\n", "wrong_type", "factor of a namespace"},
    {"vw", "1 |a b:x\n", "wrong_type", "\"x\": the value of a feature is not a number"},
    {"vw", "1 |a:1e300 b:1e300\n", "not_finite", "factor"},
    {"vw", "1 |a b:inf\n", "wrong_type", "not a number"},
    {"vw", "1 |a b=c:2\n", "wrong_type", "no value"},
    {"vw", "1 |a :2\n", "bad_column", "1 to 64"},
    {"vw", "1 |\xff b\n", "bad_column", "UTF-8"},
    {"vw", "1 | b=\xff\n", "wrong_type", "UTF-8"},
};

/* Each is refused with its code and words, its bytes are at hand, and the next row is read. */
static void refusals_have_code_words_and_bytes(void **state) {
    (void)state;
    static const char *const good[] = {"1,1,1\n", "1,1,1,1\n", "1 1:1\n", "{\"op\":\"forget\",\"id\":1}\n",
                                       "1 | a\n"};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *c = &refusals[i];
        bool ids = strncmp(c->text, "id", 2) == 0, csv = strcmp(c->format, "csv") == 0;
        const char *after = csv                                ? good[ids]
                            : strcmp(c->format, "libsvm") == 0 ? good[2]
                            : strcmp(c->format, "vw") == 0     ? good[4]
                                                               : good[3];
        struct svi_reader_options o = {.format = c->format, .numbers = "a,b"};
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
        assert_int_equal(svi_reader_row(f.reader, &m, &err), SVI_READ_ROW);
        assert_int_equal(svi_reader_row(f.reader, &m, &err), SVI_READ_END);
        assert_int_equal(svi_reader_row(f.reader, &m, &err), SVI_READ_END);
        feed_close(&f);
    }
}

static const struct refusal failures[] = {
    {"csv", "", "setting", "is empty"},
    {"csv", "\n\n", "setting", "is empty"},
    {"csv", "a,a,label\n", "setting", "\"a\" twice"},
    {"csv", "a,label,label\n", "setting", "\"label\" twice"},
    {"csv", "a,c3,\n", "setting", "\"c3\" twice"},
    {"csv",
     "\xff\xfe"
     "a\0,\0",
     "setting", "convert it with iconv -f UTF-16 -t UTF-8"},
    {"csv", "label\n", "setting", "no feature column"},
    {"csv", "a,label\r1,2\r", "setting", "CR alone"},
    {"auto", "[\n{\"a\":1}]\n", "setting", "jq -c '.[]'"},
    {"jsonl", "{\n\"a\":1\n}\n", "setting", "jq -c ."},
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
        assert_non_null(strstr(said, "column \"y\"; the columns are a, b, label"));
        free(said);
    }
}

static void misspelt_columns_have_a_nearest(void **state) {
    (void)state;
    const char *names[] = {"latncy ms", "Latency MS", "latency_ms", "latency"};
    for (int i = 0; i < 4; i++) {
        const struct svi_reader_options o = {.format = "csv", .label = names[i], .label_required = true};
        char *said = read_text("a,user agent,latency ms\n1,2,3\n", &o, NULL);
        assert_non_null(
            strstr(said, "\": did you mean \"latency ms\"? The columns are a, user agent, latency ms"));
        free(said);
    }
}

static void too_many_features_are_a_limit(void **state) {
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    struct svi_reader_options o = {.format = "jsonl"};
    fprintf(to, "{\"x\":[0");
    for (int i = 0; i < FEED_FEATURES; i++)
        fprintf(to, ",%d", i);
    fprintf(to, "]}\n");
    fclose(to);
    char *said = read_text(text, &o, NULL);
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
        snprintf(expected, sizeof expected, "%sop0 a=8\n", extra ? bad : "op0 a=7\n");
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
    const char *const texts[][2] = {{"  {\"a\":1}\n", "op0 a=1\n"},
                                    {"\n-1 2:3\n", "op0 kind2 d2 missing0 0:0 1:3 y=-1\n"},
                                    {"2:3 4:5\n", "op0 kind2 d4 missing0 0:0 1:3 2:0 3:5\n"},
                                    {"a,label\n1,1\n", "op0 a=1 y=1\n"},
                                    {"1 |a b\n", "op0 a^b=1 y=1\n"},
                                    {"", ""}};
    for (int i = 0; i < 6; i++) {
        char *said = read_text(texts[i][0], &o, NULL);
        assert_string_equal(said, texts[i][1]);
        free(said);
    }
}

/* Which may go together is the schema's to say. */
static void mixed_forms_come_as_they_are(void **state) {
    (void)state;
    expect("jsonl", "{\"x\":[1,2]}\n{\"x\":{\"a\":1}}\n{\"x\":[1]}\n{\"a\":1}\n{\"x\":[3,4]}\n",
           "op0 kind1 d2 missing0 0:1 1:2\nop0 a=1\n"
           "BAD wrong_dimension: line 3: x has 1 features, but this stream has 2\nop0 a=1\n"
           "op0 kind1 d2 missing0 0:3 1:4\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_means),
        cmocka_unit_test(csv_has_other_columns),
        cmocka_unit_test(csv_knows_missing),
        cmocka_unit_test(csv_reads_quantities),
        cmocka_unit_test(csv_takes_times),
        cmocka_unit_test(csv_passes_comments_over),
        cmocka_unit_test(csv_rows_of_several_lines),
        cmocka_unit_test(csv_rows_of_several_lines_come_in_pieces),
        cmocka_unit_test(missing_words_may_be_numbers),
        cmocka_unit_test(missing_words_of_others),
        cmocka_unit_test(csv_columns_may_be_empty),
        cmocka_unit_test(csv_gives_cells_in_the_order_of_the_header),
        cmocka_unit_test(libsvm_means),
        cmocka_unit_test(json_means),
        cmocka_unit_test(json_has_objects),
        cmocka_unit_test(json_has_objects_in_x),
        cmocka_unit_test(json_flat_maps_take_the_features_only),
        cmocka_unit_test(vw_means),
        cmocka_unit_test(refusals_have_code_words_and_bytes),
        cmocka_unit_test(failures_end_the_file),
        cmocka_unit_test(wanted_columns_must_be_there),
        cmocka_unit_test(misspelt_columns_have_a_nearest),
        cmocka_unit_test(too_many_features_are_a_limit),
        cmocka_unit_test(long_lines_are_refused_whole),
        cmocka_unit_test(open_says_why_not),
        cmocka_unit_test(format_is_guessed),
        cmocka_unit_test(mixed_forms_come_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
