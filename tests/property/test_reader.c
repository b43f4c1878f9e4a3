/* Text files as messages, whatever the form, the packing and the pieces they come in; and real files against
 * strtod. */
#include <limits.h>

#include "support/feed.h"
#include "support/quick.h"

#include "../../adapters/http/csv_rows.h"
#include "base/bytes.h"
#include "data/json_in.h"

#define ROWS    200
#define COLUMNS 5

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int below(uint64_t *state, int n) {
    return (int)((next_random(state) >> 16) % (uint64_t)n);
}

/* The same rows in one form; the value and the label are 0 now and then. */
static char *write_form(int form, uint64_t seed) {
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (form == 0)
        fputs("c0,c1,label,c2,c3,c4\n", to);
    for (int i = 0; i < ROWS; i++) {
        double x[COLUMNS];
        for (int j = 0; j < COLUMNS; j++)
            x[j] = below(&seed, 3) ? ldexp((double)(next_random(&seed) >> 11), below(&seed, 200) - 150) - 0.5
                                   : 0;
        int y = below(&seed, 4);
        if (form == 0)
            fprintf(to, "%.17g,%.17g,%d,%.17g,%.17g,%.17g\n", x[0], x[1], y, x[2], x[3], x[4]);
        else if (form == 1)
            fprintf(to, "%d", y);
        else if (form == 4)
            fprintf(to, "%d | c0:%.17g c1:%.17g c2:%.17g |  c3:%.17g c4:%.17g\n", y, x[0], x[1], x[2], x[3],
                    x[4]);
        else if (form == 2)
            fprintf(to, "{\"y\":%d,\"x\":[%.17g,%.17g,%.17g,%.17g,%.17g]}\n", y, x[0], x[1], x[2], x[3],
                    x[4]);
        else
            fprintf(to, "{\"c0\":%.17g,\"c1\":%.17g,\"c2\":%.17g,\"c3\":%.17g,\"label\":%d,\"c4\":%.17g}\n",
                    x[0], x[1], x[2], x[3], y, x[4]);
        for (int j = 0; form == 1 && j < COLUMNS; j++)
            if (x[j] != 0)
                fprintf(to, " %d:%.17g", j + 1, x[j]);
        if (form == 1)
            fputc('\n', to);
    }
    fclose(to);
    return text;
}

static char *read_bytes(const void *bytes, size_t length, bool nonzero) {
    struct svi_reader_options o = {.format = "auto"};
    struct feed f;
    feed_open(&f, bytes, length, &o, NULL);
    char *said = feed_read(&f, nonzero);
    feed_close(&f);
    return said;
}

static void all_forms_say_the_same(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < (uint64_t)often(20, 5); seed++) {
        char *expected = NULL;
        for (int form = 0; form < 5; form++) {
            char *text = write_form(form, seed * 0x9e3779b97f4a7c15U);
            unsigned char *packed;
            size_t length = feed_gzip(text, strlen(text), 1 + (int)(seed % 3), &packed);
            char *plain = read_bytes(text, strlen(text), true), *unpacked = read_bytes(packed, length, true);
            if (!expected)
                expected = strdup(plain);
            assert_string_equal(plain, expected);
            assert_string_equal(unpacked, expected);
            free(plain);
            free(unpacked);
            free(packed);
            free(text);
        }
        assert_non_null(strstr(expected, "y="));
        assert_null(strstr(expected, "BAD"));
        free(expected);
    }
}

/* Lines of one form, good and bad, of all line ends. */
static char *write_mixture(uint64_t *random, int form) {
    static const char *const pieces[5][8] = {
        {"1,2,0", "3,,1", "x,1,1", "1,2", "1,2,3,4", "", "\"5\",6.25e-3,\"a\"\"b\"", "1,1e999,0"},
        {"1 1:2 3:4.5", "-1 2:1", "1 x:2", "# note", "", "+1", "1 2:1 1:2", "0.5 1:0.1234567890123456789"},
        {"{\"a\":1,\"b\":2}", "{\"b\":null,\"label\":\"\\u00fc\"}", "{\"a\":", "", "{\"c\":1,\"c\":1}", "[]",
         "{\"op\":\"forget\",\"id\":\"k\\n\"}", "{\"x\":{\"d\":1e-3},\"ts\":5}"},
        {"1 |a b c:2", "|", "-1 2 't |n:2 x:1 y=z", "# x", "", "yes |a \xff", "1 1 1 1 |a", "|a b:NA |c d"},
        {"1,x,0.5", "2,y,NA", ",,", "3,x,\"\"", "x", "", "\"a\"\"b\",z,1", "1,x,1e5"}};
    static const char *const first[5] = {"a,b,label", "1 1:1", "{\"a\":0.5}", "1 | a", "5,x,7"};
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    fputs(first[form], to);
    for (int lines = below(random, 60); lines > 0; lines--)
        fprintf(to, "%s%s", below(random, 3) ? "\n" : "\r\n", pieces[form][below(random, 8)]);
    if (below(random, 2))
        fputc('\n', to);
    fclose(to);
    return text;
}

/* Writes the bytes to a pipe, in random pieces, whenever the reader wants more; it may want none when a piece
 * is waiting. */
static char *read_in_pieces(const unsigned char *bytes, size_t length, uint64_t *random, int largest) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct feed f = {.fd = ends[0]};
    struct svi_reader_options o = {.format = "auto"};
    svs_error err = {0};
    snprintf(f.path, sizeof f.path, "/proc/self/fd/%d", ends[0]);
    assert_int_equal(svi_shape_init(&f.shape, FEED_FEATURES, NULL, &err), SVS_OK);
    f.reader = svi_reader_open(f.path, &o, &f.shape, &err);
    assert_non_null(f.reader);
    char *text = NULL;
    size_t size = 0, sent = 0;
    FILE *to = open_memstream(&text, &size);
    for (enum svi_read what = SVI_READ_MORE; what != SVI_READ_END && what != SVI_READ_FAIL;) {
        struct svi_message m;
        what = svi_reader_next(f.reader, &m, &err);
        if (what == SVI_READ_MORE) {
            size_t n = 1 + (size_t)below(random, largest);
            n = n < length - sent ? n : length - sent;
            assert_int_equal(write(ends[1], bytes + sent, n), (ssize_t)n);
            sent += n;
            if (n == 0)
                close(ends[1]);
            if (svi_reader_fill(f.reader, &err) != SVS_OK)
                what = SVI_READ_FAIL;
        } else if (what != SVI_READ_END) {
            feed_report(to, &f, what, &m, &err, false);
        }
    }
    fclose(to);
    int64_t total, taken = svi_reader_position(f.reader, &total);
    assert_int_equal(taken, length);
    assert_int_equal(total, -1);
    feed_close(&f);
    return text;
}

static void pieces_change_nothing(void **state) {
    (void)state;
    uint64_t random = 0x853c49e6748fea9bU;
    for (int i = 0; i < often(600, 120); i++) {
        char *text = write_mixture(&random, i % 5);
        char *whole = read_bytes(text, strlen(text), false);
        unsigned char *packed;
        size_t length = feed_gzip(text, strlen(text), 1 + i % 4, &packed);
        int largest = i % 5 == 0 ? 1 : i % 5 == 1 ? 3 : 100;
        char *plain = read_in_pieces((unsigned char *)text, strlen(text), &random, largest);
        char *unpacked = read_in_pieces(packed, length, &random, largest);
        assert_string_equal(plain, whole);
        assert_string_equal(unpacked, whole);
        free(plain);
        free(unpacked);
        free(whole);
        free(packed);
        free(text);
    }
}

/* Much text from little gzip: rows must come without further reads. */
static void unpacking_needs_no_reads(void **state) {
    (void)state;
    size_t rows = (size_t)often(400000, 40000), length = 2 + rows * 2;
    char *text = malloc(length + 1);
    memcpy(text, "a\n", 2);
    for (size_t i = 0; i < rows; i++)
        memcpy(text + 2 + 2 * i, "7\n", 2);
    unsigned char *packed;
    size_t n = feed_gzip(text, length, 1, &packed);
    assert_true(n < 10000);
    struct feed f;
    struct svi_reader_options o = {.format = "csv"};
    feed_open(&f, packed, n, &o, NULL);
    struct svi_message m;
    svs_error err = {0};
    assert_int_equal(svi_reader_next(f.reader, &m, &err), SVI_READ_MORE);
    assert_int_equal(svi_reader_fill(f.reader, &err), SVS_OK);
    for (size_t i = 0; i < rows; i++)
        assert_int_equal(svi_reader_next(f.reader, &m, &err), SVI_READ_ROW);
    assert_int_equal(svi_reader_next(f.reader, &m, &err), SVI_READ_MORE);
    assert_int_equal(svi_reader_fill(f.reader, &err), SVS_OK);
    assert_int_equal(svi_reader_next(f.reader, &m, &err), SVI_READ_END);
    int64_t size;
    assert_int_equal(svi_reader_position(f.reader, &size), n);
    assert_int_equal(size, n);
    feed_close(&f);
    free(packed);
    free(text);
}

static void damaged_gzip_fails(void **state) {
    (void)state;
    char *text = write_form(0, 7);
    unsigned char *packed;
    size_t length = feed_gzip(text, strlen(text), 2, &packed);
    packed = realloc(packed, length + 100);
    char *whole = read_bytes(packed, length, false);
    for (size_t cut = 2; cut < length; cut += 1 + cut / 10) {
        char *said = read_bytes(packed, cut, false);
        assert_non_null(strstr(said, "FAIL io: "));
        assert_non_null(strstr(said, "the file is truncated"));
        free(said);
    }
    memset(packed + length, 0, 100);
    char *said = read_bytes(packed, length + 100, false);
    assert_string_equal(said, whole);
    free(said);
    packed[length] = 'x';
    said = read_bytes(packed, length + 100, false);
    assert_non_null(strstr(said, "followed by bytes that are not gzip"));
    free(said);
    packed[length / 4] ^= 0x55;
    said = read_bytes(packed, length, false);
    assert_non_null(strstr(said, "damaged gzip data"));
    free(said);
    free(whole);
    free(packed);
    free(text);
}

struct real_file {
    const char *name;
    int rows, d;
    const char *label; /* this one is there `count` times */
    int count;
};

/* Row and class counts are published with the files. */
static const struct real_file real_files[] = {
    {"elec2.csv.gz", 45312, 8, "1", 19237},  {"weather.csv.gz", 18159, 8, "1", 5698},
    {"rialto.csv.gz", 82250, 27, "3", 8225}, {"occupancy.csv.gz", 20560, 5, "1", 4750},
    {"a9a.svm.gz", 32561, 123, "1", 7841},   {"ijcnn1.svm.gz", 49990, 22, "1", 4853},
};

/* One line with strtod: all cells but the last, which is the label; or label and pairs. */
static double parse_plainly(char *line, bool csv, double *x, int d) {
    double label = 0;
    memset(x, 0, (size_t)d * sizeof *x);
    int column = -1;
    for (char *at = strtok(line, csv ? ",\n" : " \n"); at; at = strtok(NULL, csv ? ",\n" : " \n")) {
        column++;
        char *colon = strchr(at, ':');
        if (csv && column < d)
            x[column] = strtod(at, NULL);
        else if (colon)
            x[atoi(at) - 1] = strtod(colon + 1, NULL);
        else
            label = strtod(at, NULL);
    }
    return label;
}

static void compare_file(const struct real_file *file, const char *path) {
    static char line[65536];
    double expected[FEED_FEATURES];
    struct feed f = {.fd = dup(0)};
    struct svi_reader_options o = {.format = "auto"};
    svs_error err = {0};
    bool csv = strstr(path, ".csv") != NULL;
    gzFile plain = gzopen(path, "rb");
    assert_non_null(plain);
    assert_int_equal(svi_shape_init(&f.shape, FEED_FEATURES, NULL, &err), SVS_OK);
    f.reader = svi_reader_open(path, &o, &f.shape, &err);
    assert_non_null(f.reader);
    if (csv)
        assert_non_null(gzgets(plain, line, sizeof line));
    int rows = 0, count = 0;
    struct svi_message m;
    const int most = often(INT_MAX, 3000); /* their beginning, where it takes long */
    while (rows < most && gzgets(plain, line, sizeof line)) {
        assert_int_equal(svi_reader_row(f.reader, &m, &err), SVI_READ_ROW);
        if (!m.cells)
            svi_shape_commit(&f.shape, &m);
        double y = parse_plainly(line, csv, expected, file->d);
        assert_true(m.d <= file->d && m.missing == 0 && m.cell_count == (csv ? file->d : 0));
        for (int j = 0; j < m.cell_count; j++) {
            assert_int_equal(m.cells[j].kind, SVI_CELL_NUMBER);
            m.x[j] = m.cells[j].number;
        }
        assert_memory_equal(m.x, expected, (size_t)(csv ? m.cell_count : m.d) * sizeof *expected);
        assert_true(m.y.kind == SVS_INT && (double)m.y.as.i == y);
        rows++;
        count += m.y.as.i == atoi(file->label);
    }
    if (rows < most) {
        assert_int_equal(svi_reader_row(f.reader, &m, &err), SVI_READ_END);
        assert_int_equal(rows, file->rows);
        assert_int_equal(count, file->count);
        assert_int_equal(f.shape.d, csv ? 0 : file->d);
    }
    gzclose(plain);
    feed_close(&f);
}

static void real_files_are_read_exactly(void **state) {
    (void)state;
    const char *folder = getenv("SVMSTREAM_DATA");
    int missing = 0;
    for (size_t i = 0; i < sizeof real_files / sizeof *real_files; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder ? folder : "data", real_files[i].name);
        if (access(path, R_OK) != 0) {
            print_message("SKIPPED: %s is not there\n", path);
            missing++;
            continue;
        }
        compare_file(&real_files[i], path);
    }
    if (missing == sizeof real_files / sizeof *real_files)
        skip();
}

/* ---- a CSV that is posted */

/* A word that begins like no number, with all that needs quotes. */
static void write_word(FILE *to, uint64_t *random, char delimiter) {
    static const char *const pieces[] = {"b", "7", "\xc3\xa9", "\"\"", "\n", "\r\n",
                                         ",", ";", "\t",       "|",    "  ", "#"};
    char word[100] = "w";
    for (int n = below(random, 6); n > 0; n--)
        strcat(word, pieces[below(random, below(random, 2) ? 3 : 12)]);
    const char *const ends = word + strlen(word) - 1;
    const bool quotes = strpbrk(word, "\"\n") || strchr(word, delimiter) || *ends == ' ' || *ends == '\t' ||
                        !below(random, 4);
    fprintf(to, quotes ? "\"%s\"" : "%s", word);
}

static void write_number(FILE *to, uint64_t *random) {
    static const char *const forms[] = {"%d",   "-%d",   "+%d",   "%d.",     ".%d",
                                        "-.%d", "%d.25", "%de-3", "%d.5E+2", "0.%d"};
    char text[40];
    snprintf(text, sizeof text, forms[below(random, 10)], 1 + below(random, 1000));
    fprintf(to, below(random, 4) ? "%s" : "\"%s\"", text);
}

/* Columns n0, w1, n2, w3, ... of numbers and words. */
static char *write_posted(uint64_t *random, char delimiter, int columns) {
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    fputs(below(random, 4) ? "" : "\xef\xbb\xbf", to);
    for (int line = 0, lines = 2 + below(random, 30); line < lines; line++) {
        for (int i = 0; i < columns; i++) {
            /* Tabs in the first line may count as separators. */
            const char *const blanks = below(random, 4) ? "" : delimiter == '\t' || line == 0 ? " " : " \t";
            if (i > 0)
                fputc(delimiter, to);
            fputs(blanks, to);
            if (line == 0)
                fprintf(to, below(random, 3) ? "%c%d" : "\"%c%d\"", i % 2 ? 'w' : 'n', i);
            else if (i > 0 && !below(random, 6))
                fputs(below(random, 2) ? "" : "\"\"", to);
            else if (i % 2)
                write_word(to, random, delimiter);
            else
                write_number(to, random);
            fputs(blanks, to);
        }
        if (line < lines - 1 || below(random, 2))
            fputs(below(random, 3) ? "\n" : "\r\n", to);
        if (line < lines - 1 && !below(random, 8))
            fputs(below(random, 2) ? "\r\n" : delimiter == '\t' ? " \n" : "\t \n", to);
    }
    fclose(to);
    return text;
}

static char *read_as(const char *format, const void *bytes, size_t length) {
    struct svi_reader_options o = {
        .format = format, .unlabelled = true, .numbers = "n0,n2,n4", .categories = "w1,w3,w5"};
    struct feed f;
    feed_open(&f, bytes, length, &o, NULL);
    char *said = feed_read(&f, false);
    feed_close(&f);
    return said;
}

/* What a POST of the text becomes, as JSON lines. */
static struct svi_bytes post_lines(const char *text, int64_t *count) {
    struct svi_bytes rows = {0}, lines = {0};
    svs_error err = {0};
    if (http_csv_rows(&rows, text, strlen(text), 1000, count, &err) != SVS_OK)
        fail_msg("%s\n%s", err.text, text);
    assert_int_equal(svi_bytes_append(&rows, "\0", 1), SVS_OK);
    for (const char *p = (const char *)rows.data; *p;) {
        const char *end = svi_json_skip(p);
        assert_int_equal(svi_bytes_append(&lines, p, (size_t)(end - p)), SVS_OK);
        assert_int_equal(svi_bytes_append(&lines, "\n", 1), SVS_OK);
        p = end + (*end == ',');
    }
    svi_bytes_clear(&rows);
    return lines;
}

static void posted_rows_have_the_values_of_the_file(void **state) {
    (void)state;
    uint64_t random = 88172645463325252U;
    for (int round = 0; round < often(2000, 200); round++) {
        char *const text = write_posted(&random, ",;\t|"[round % 4], 2 + below(&random, 5));
        int64_t count = 0, lines = 0;
        struct svi_bytes posted = post_lines(text, &count);
        char *const file = read_as("csv", text, strlen(text));
        char *const rows = read_as("jsonl", posted.data, posted.size);
        if (strcmp(file, rows) != 0 || strstr(file, "BAD"))
            fail_msg("%s\n-- the file\n%s\n-- the POST\n%s", text, file, rows);
        for (const char *p = file; (p = strstr(p, "op0 n0=")); p++)
            lines++;
        assert_int_equal(count, lines);
        free(file);
        free(rows);
        free(text);
        svi_bytes_clear(&posted);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_forms_say_the_same),
        cmocka_unit_test(pieces_change_nothing),
        cmocka_unit_test(unpacking_needs_no_reads),
        cmocka_unit_test(damaged_gzip_fails),
        cmocka_unit_test(real_files_are_read_exactly),
        cmocka_unit_test(posted_rows_have_the_values_of_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
