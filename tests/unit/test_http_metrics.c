/* /metrics: each counter and figure of a stream has a row and a valid name, what is written is valid in both
 * formats whatever a stream calls its classes, and the manual's page shows the table. */
#include "support/engine.h"
#include "support/exposition_check.h"

#include "../../adapters/http/figures.h"
#include "engine/counters.h"

static const struct http_figure *row_named(const char *key) {
    for (const struct http_figure *row = http_figures_table; row->key; row++)
        if (strcmp(row->key, key) == 0)
            return row;
    return NULL;
}

static bool is_other(const char *key) {
    for (const char *const *other = http_figures_others; *other; other++)
        if (strcmp(*other, key) == 0)
            return true;
    return false;
}

/* A new counter without a row fails here. */
static void test_counters(void **unused) {
    (void)unused;
    for (int i = 0; i < SVI_COUNTER_COUNT; i++)
        if (!row_named(svi_counter_table[i].name))
            fail_msg("the counter %s has no metric", svi_counter_table[i].name);
}

static bool ends_in(const char *text, const char *ending) {
    return svi_ends_with(text, strlen(text), ending);
}

static void name_holds(const struct http_figure *row) {
    const struct http_family *f = &row->family;
    char name[HTTP_FAMILY_BYTES];
    http_exposition_name(f, name);
    if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(name) || strstr(name, "__") ||
        strlen(name) > 80)
        fail_msg("%s is no good name", name);
    if (ends_in(name, "_total") != (f->type == HTTP_COUNTER))
        fail_msg("%s: only a counter ends in _total", name);
    if (strpbrk(f->help, "\\\"\n") || !f->help[0] || f->help[strlen(f->help) - 1] == '.')
        fail_msg("%s: the help must need no escape and is no sentence", name);
    if (f->unit && strcmp(f->unit, "seconds") != 0 && strcmp(f->unit, "bytes") != 0 &&
        strcmp(f->unit, "ratio") != 0)
        fail_msg("%s has the unit %s", name, f->unit);
    if (ends_in(row->key, ".w") != f->window)
        fail_msg("%s: a key that ends in .w is of the window", row->key);
}

static void test_names(void **unused) {
    (void)unused;
    char one[HTTP_FAMILY_BYTES], two[HTTP_FAMILY_BYTES];
    for (const struct http_figure *row = http_figures_classes; row->key; row++)
        name_holds(row);
    for (const struct http_figure *row = http_figures_table; row->key; row++) {
        name_holds(row);
        for (const struct http_figure *next = row + 1; next->key; next++)
            if (strcmp(row->key, next->key) == 0 || strcmp(http_exposition_name(&row->family, one),
                                                           http_exposition_name(&next->family, two)) == 0)
                fail_msg("%s or %s twice", row->key, http_exposition_name(&next->family, two));
    }
}

/* ---- the manual */

static char *file_text(const char *path) {
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *text = calloc(1, 1 << 18);
    assert_true(fread(text, 1, (1 << 18) - 1, f) > 0);
    fclose(f);
    return text;
}

/* Calls `each` for the first cell of each row of the tables of a section. */
static int rows_of_section(const char *text, const char *heading, void (*each)(const char *key)) {
    char key[80];
    int rows = 0;
    const char *at = strstr(text, heading);
    if (!at)
        fail_msg("no section %s", heading);
    for (at = strchr(at, '\n') + 1; at && *at && *at != '#'; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : 0)
        if (sscanf(at, "| `%79[^`]`", key) == 1) {
            each(key);
            rows++;
        }
    return rows;
}

static void stats_key(const char *key) {
    if (strcmp(key, "refused.CODE") != 0 && !row_named(key) && !is_other(key))
        fail_msg("stats or status has %s, for which there is no metric", key);
}

static void class_key(const char *key) {
    const struct http_figure *row = http_figures_classes;
    while (row->key && strcmp(row->key, key) != 0)
        row++;
    if (!row->key && strcmp(key, "class") != 0)
        fail_msg("by_class has %s, for which there is no metric", key);
}

static void test_protocol(void **unused) {
    (void)unused;
    char *text = file_text("src/manual/protocol.md");
    assert_true(rows_of_section(text, "### Event stats\n", stats_key) > 20);
    assert_true(rows_of_section(text, "### Quality\n", stats_key) > 40);
    assert_true(rows_of_section(text, "### Reply to status\n", stats_key) > 4);
    assert_true(rows_of_section(text, "### Entries of by_class\n", class_key) > 9);
    free(text);
}

static void page_has(const char *text, const struct http_figure *row) {
    char name[HTTP_FAMILY_BYTES], line[600];
    snprintf(line, sizeof line, "\n| `%s` | `%s` | %s |\n", row->key,
             http_exposition_name(&row->family, name) + strlen("svmstream_"), row->family.help);
    if (!strstr(text, line))
        fail_msg("src/manual/metrics.md lacks%s", line);
}

static void test_page(void **unused) {
    (void)unused;
    char *text = file_text("src/manual/metrics.md");
    for (const struct http_figure *row = http_figures_table; row->key; row++)
        page_has(text, row);
    for (const struct http_figure *row = http_figures_classes; row->key; row++)
        page_has(text, row);
    free(text);
}

/* ---- what engines say */

struct page {
    struct svi_bytes text;
    struct exposition_check check;
};

static void page_write(struct page *p, bool openmetrics, const struct http_shown *shown, int count) {
    struct http_exposition x;
    http_exposition_begin(&x, openmetrics, &p->text);
    http_figures_write(&x, shown, count);
    assert_int_equal(http_exposition_end(&x), SVS_OK);
    if (!exposition_check(&p->check, openmetrics, (const char *)p->text.data, p->text.size))
        fail_msg("%s", p->check.why);
    assert_int_equal(svi_bytes_append(&p->text, "", 1), SVS_OK);
}

/* Is there a line of these beginnings and this value? */
static void page_says(const struct page *p, const char *series, double value) {
    const char *at = strstr((const char *)p->text.data, series);
    if (!at)
        fail_msg("%s is not there", series);
    assert_true(at == (const char *)p->text.data || at[-1] == '\n');
    if (strtod(at + strlen(series), NULL) != value)
        fail_msg("%s is %.40s, not %g", series, at + strlen(series), value);
}

static void engine_shown(const char *const *settings, const char *sample, int samples, struct page *p) {
    struct speaker f;
    struct http_figures figures;
    struct svi_bytes out = {0};
    speaker_open(&f, settings);
    for (int i = 0; i < samples; i++)
        say(&f, sample, i % 5 + i % 7 * 0.5, i % 3, i % 2, i % 4);
    say(&f, "{'y': 1}");
    assert_int_equal(svi_control_handle(&f.control, "\x81\xa2op\xa6status", 11, NOW, &out), SVS_OK);
    assert_true(http_figures_read(&figures, out.data, out.size));
    assert_int_equal(figures.unknown, 0);
    const struct http_shown shown = {.stream = "default", .up = true, .age = 0.25, .figures = &figures};
    page_write(p, false, &shown, 1);
    page_says(p, "svmstream_seen_samples_total{stream=\"default\"} ", samples);
    page_says(p, "svmstream_refusals_total{stream=\"default\",code=\"missing_x\"} ", 1);
    page_write(p, true, &shown, 1);
    page_says(p, "svmstream_status_age_seconds{stream=\"default\"} ", 0.25);
    svi_bytes_clear(&out);
    speaker_close(&f);
}

#define SAMPLE "{'x': [%g, %d], 'y': %d, 'id': %d}"

static void test_engines(void **unused) {
    (void)unused;
    struct page p = {0};
    engine_shown((const char *[]){"novelty", "fosvm1", NULL}, SAMPLE, 300, &p);
    assert_non_null(strstr((char *)p.text.data, "task=\"classify\""));
    page_says(&p, "svmstream_class_samples_total{stream=\"default\",class=\"1\"} ", 150);
    page_says(&p, "svmstream_class_samples_window{stream=\"default\",class=\"1\"} ", 150);
    engine_shown((const char *[]){"method", "auto", NULL}, SAMPLE, 300, &p);
    assert_non_null(strstr((char *)p.text.data, "serving=\"bank\""));
    engine_shown((const char *[]){"task", "regress", NULL}, SAMPLE, 60, &p);
    assert_non_null(strstr((char *)p.text.data, "\nsvmstream_rmse_no_change{"));
    engine_shown((const char *[]){"key", "key", NULL}, "{'x': [%g, %d], 'y': %d, 'key': 'press-%d'}", 60, &p);
    page_says(&p, "svmstream_keys{stream=\"default\"} ", 4);
    assert_null(strstr((char *)p.text.data, "press-"));
    svi_bytes_clear(&p.text);
}

/* ---- hostile statuses */

/* A map with one class a label, refusals by the codes, and a histogram. */
static void status_pack(struct svi_bytes *out, const char *const *labels, const size_t *lengths, int count) {
    struct svi_pack p;
    out->size = 0;
    svi_pack_begin(&p, out);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_text(&p, "version", "1\"\n\\");
    svi_put_int(&p, "seen", 5);
    svi_put_int(&p, "learned", -1); /* not a count */
    svi_put_real(&p, "rate", INFINITY);
    svi_put_text(&p, "alerts", "many");
    svi_put_int(&p, "no_such_figure", 1);
    svi_put_int(&p, "refused.not_finite", 2);
    svi_put_int(&p, "refused.\"} 1\n", 3);
    svi_put_array(&p, "by_class", (size_t)count + 1);
    for (int i = 0; i <= count; i++) {
        const struct svi_open_map class = svi_pack_open(&p);
        svi_pack_key(&p, "class");
        if (i < count)
            svi_pack_string(&p, labels[i], lengths[i]);
        else
            svi_pack_int(&p, 1);
        svi_put_int(&p, "support", i);
        svi_put_real(&p, "recall", NAN);
        svi_pack_close(&p, class);
    }
    svi_pack_close(&p, map);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
}

static void test_hostile(void **unused) {
    (void)unused;
    static const char *const labels[] = {"1",  "1 (2)", "a\"b",       "a\\b", "new\nline",    "\xff\xfe",
                                         "\0", "",      "</script>}", "a\"b", "\xe2\x80\xae", "# EOF"};
    enum { LABELS = sizeof labels / sizeof *labels };
    size_t lengths[LABELS];
    struct svi_bytes out = {0};
    struct http_figures figures;
    struct page p = {0};
    for (int i = 0; i < LABELS; i++)
        lengths[i] = i == 6 ? 1 : strlen(labels[i]);
    status_pack(&out, labels, lengths, LABELS);
    assert_true(http_figures_read(&figures, out.data, out.size));
    assert_int_equal(figures.class_count, LABELS + 1);
    assert_int_equal(figures.unknown, 3); /* learned, alerts, no_such_figure */
    for (int open = 0; open < 2; open++) {
        const struct http_shown shown[] = {
            {.stream = "a\"} 1\nb\\\x01\xff", .up = true, .age = 1, .figures = &figures},
            {.stream = "tcp://a:1", .up = true, .age = 1, .figures = &figures},
            {.stream = "tcp://a:2", .age = NAN}};
        page_write(&p, open, shown, 3);
        page_says(&p, "svmstream_up{stream=\"tcp://a:1\"} ", 1);
        page_says(&p, "svmstream_up{stream=\"tcp://a:2\"} ", 0);
        page_says(&p, "svmstream_up{stream=\"a\\\"} 1\\\\x0ab\\\\\\\\x01\\\\xff\"} ", 1);
        page_says(&p, "svmstream_refusals_total{stream=\"tcp://a:1\",code=\"other\"} ", 3);
        page_says(&p, "svmstream_samples_per_second{stream=\"tcp://a:1\"} ", INFINITY);
        assert_null(strstr((char *)p.text.data, "svmstream_learned"));
        assert_null(strstr((char *)p.text.data, "svmstream_class_recall"));
    }
    assert_false(http_figures_read(&figures, out.data, out.size - 1));
    assert_false(http_figures_read(&figures, "\x91\x01", 2));
    svi_bytes_clear(&out);
    svi_bytes_clear(&p.text);
}

/* ---- the histogram */

static void latency_pack(struct svi_bytes *out, const double *bounds, const double *counts, int n,
                         double sum) {
    struct svi_pack p;
    out->size = 0;
    svi_pack_begin(&p, out);
    svi_pack_map(&p, 1);
    svi_put_map(&p, "latency_buckets", 3);
    svi_put_reals(&p, "bounds", bounds, n);
    svi_put_reals(&p, "counts", counts, n + 1);
    svi_put_real(&p, "sum", sum);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
}

static void test_latency(void **unused) {
    (void)unused;
    struct svi_bytes out = {0};
    struct http_figures f;
    struct page p = {0};
    const double bounds[] = {1e-5, 0.001, 1, 2}, wrong[] = {1, 1, 2, 3};
    const double counts[] = {0, 7, 9, 9, 10}, fall[] = {0, 7, 6, 9, 10};
    const struct http_shown shown = {.stream = "s", .up = true, .age = NAN, .figures = &f};
    latency_pack(&out, bounds, counts, 4, 12.5);
    assert_true(http_figures_read(&f, out.data, out.size));
    assert_int_equal(f.unknown, 0);
    page_write(&p, true, &shown, 1);
    page_says(&p, "svmstream_latency_seconds_bucket{stream=\"s\",le=\"1e-05\"} ", 0);
    page_says(&p, "svmstream_latency_seconds_bucket{stream=\"s\",le=\"1.0\"} ", 9);
    page_says(&p, "svmstream_latency_seconds_bucket{stream=\"s\",le=\"+Inf\"} ", 10);
    page_says(&p, "svmstream_latency_seconds_count{stream=\"s\"} ", 10);
    page_says(&p, "svmstream_latency_seconds_sum{stream=\"s\"} ", 12.5);
    page_write(&p, false, &shown, 1);
    page_says(&p, "svmstream_latency_seconds_bucket{stream=\"s\",le=\"1\"} ", 9);
    for (int i = 0; i < 3; i++) {
        latency_pack(&out, i == 0 ? wrong : bounds, i == 1 ? fall : counts, 4, i == 2 ? NAN : 1);
        assert_true(http_figures_read(&f, out.data, out.size));
        assert_int_equal(f.unknown, 1);
        assert_int_equal(f.latency.bounds_count, 0);
    }
    svi_bytes_clear(&out);
    svi_bytes_clear(&p.text);
}

/* ---- the format */

static void test_negotiation(void **unused) {
    (void)unused;
    static const struct {
        const char *accept;
        bool open;
    } rows[] = {
        {NULL, false},
        {"", false},
        {"*/*", false},
        {"text/plain", false},
        {"text/html,application/xhtml+xml,*/*;q=0.8", false},
        {"application/openmetrics-text", true},
        {"application/openmetrics-text; version=1.0.0; charset=utf-8", true},
        {"Application/OpenMetrics-Text;Version=\"1.0.0\"", true},
        {"application/openmetrics-text;version=0.0.1", false},
        {"application/openmetrics-text;q=0", false},
        {"text/plain;q=0.5,application/openmetrics-text;version=1.0.0", true},
        {"text/plain, application/openmetrics-text;q=0.9", false},
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         true},
        {";;;,,,q=,application/openmetrics-text", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (http_exposition_negotiate(rows[i].accept) != rows[i].open)
            fail_msg("Accept: %s", rows[i].accept);
}

static void test_numbers(void **unused) {
    (void)unused;
    static const double numbers[] = {0, 1, -1, 0.1, 1.0 / 3, 1e300, 5e-324, 1795748348649921, 123456789.5};
    char text[HTTP_NUMBER_BYTES];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_true(strtod(http_exposition_number(numbers[i], text), NULL) == numbers[i]);
    assert_string_equal(http_exposition_number(0.1, text), "0.1");
    assert_string_equal(http_exposition_number(INFINITY, text), "+Inf");
    assert_string_equal(http_exposition_number(-INFINITY, text), "-Inf");
    assert_string_equal(http_exposition_number(NAN, text), "NaN");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters), cmocka_unit_test(test_names),   cmocka_unit_test(test_protocol),
        cmocka_unit_test(test_page),     cmocka_unit_test(test_engines), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_latency),  cmocka_unit_test(test_numbers), cmocka_unit_test(test_negotiation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
