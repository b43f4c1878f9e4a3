/* Models, replies and values with one thing wrong each, for every key and every word that they are made of:
 * refused with a text, or taken as something that can be used. */
#include "support/problem.h"

#include <sys/mman.h>
#include <unistd.h>

#include <zlib.h>

#include "svmstream/novelty.h"
#include "wire/cursor.h"
#include "wire/decode.h"
#include "wire/json.h"
#include "formats/kernel_model_file.h"
#include "formats/model_file.h"
#include "formats/novelty_file.h"
#include "client/outbox_internal.h"
#include "wire/pack.h"

#define TAIL 9 /* "\xa3crc\xce" and four bytes */

static int taken, refused;

static void count(svs_code code, const svs_error *err) {
    taken += code == SVS_OK;
    refused += code != SVS_OK;
    if (code != SVS_OK)
        assert_true(err->text[0] != '\0' && strlen(err->text) < sizeof err->text);
}

static void begin(void) {
    taken = refused = 0;
}

/* ---- a machine, used in every way */

static void use(struct svi_machine *m) {
    const double zero[1] = {0};
    const svs_rows x = {.n = 1, .d = 1, .dense = zero, .stride = 1};
    assert_true((m->linear != NULL) != (m->kernel != NULL));
    if (m->kernel) {
        double *work = calloc((size_t)m->kernel->support.n + (size_t)m->kernel->support.d + 1, sizeof *work);
        double *scores = calloc((size_t)m->kernel->rows + 1, sizeof *scores);
        svs_kernel_scores(m->kernel, &x, 0, work, scores);
        assert_in_range(svs_kernel_predict(m->kernel, scores), 0, m->kernel->class_count - 1);
        free(work);
        free(scores);
    }
    for (int format = 0; format < 3; format++)
        (void)svi_machine_write(m, "/dev/null", (enum svi_model_format)format, NULL);
    svi_machine_clear(m);
}

static void read_machine(const void *bytes, size_t size) {
    char path[64];
    struct svi_machine m;
    svs_error err = {SVS_OK, ""};
    int fd = memfd_create("model", MFD_CLOEXEC);
    assert_true(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    svs_code code = svi_machine_read(&m, path, &err);
    count(code, &err);
    if (code == SVS_OK)
        use(&m);
    close(fd);
}

/* ---- texts: each word another one, each line gone or twice, cut at each byte */

static void read_with(const char *text, size_t from, size_t to, const char *other) {
    char changed[4096];
    int n = snprintf(changed, sizeof changed, "%.*s%s%s", (int)from, text, other, text + to);
    assert_in_range(n, 0, sizeof changed - 1);
    read_machine(changed, (size_t)n);
}

static void change_words(const char *text) {
    static const char *const others[] = {"",
                                         "x",
                                         "-1",
                                         "0",
                                         "1",
                                         "2",
                                         "1.5",
                                         "1e999",
                                         "nan",
                                         "2147483648",
                                         "99999999999",
                                         "1:",
                                         "0:1",
                                         ":",
                                         "linear",
                                         "polynomial",
                                         "a-word-that-is-longer-than-any-that-is-known"};
    for (size_t at = 0; text[at];) {
        size_t blank = strspn(text + at, " \n"), length = strcspn(text + at + blank, " \n");
        at += blank;
        for (size_t k = 0; length && k < sizeof others / sizeof others[0]; k++)
            read_with(text, at, at + length, others[k]);
        at += length;
    }
}

static void change_lines(const char *text) {
    for (size_t at = 0, behind; text[at]; at = behind) {
        char line[1024];
        behind = at + strcspn(text + at, "\n");
        behind += text[behind] == '\n';
        snprintf(line, sizeof line, "%.*s", (int)(behind - at), text + at);
        read_with(text, at, behind, "");
        read_with(text, at, at, line);
        read_with(text, behind, behind, "prob_a 1 2\n");
        read_with(text, behind, behind, "\n");
    }
    for (size_t n = 0; n <= strlen(text); n++)
        read_machine(text, n);
}

static const char *const texts[] = {
    "solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 1\nw\n1\n2\n3\n",
    "solver_type L2R_LR\nnr_class 3\nlabel 1 2 3\nnr_feature 2\nbias -1\nw\n1 2 3 \n4 5 6 \n",
    "solver_type MCSVM_CS\nnr_class 2\nlabel 4 5\nnr_feature 1\nbias -1\nw\n1 2 \n",
    "solver_type L2R_L2LOSS_SVR\nnr_class 2\nnr_feature 2\nbias -1\nw\n0.5\n-0.25\n",
    "solver_type ONECLASS_SVM\nnr_class 2\nnr_feature 1\nbias -1\nw\n1\n",
    "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.25\nlabel 1 -1\nnr_sv 1 "
    "1\nSV\n1 1:1 2:0.5\n-1 1:2\n",
    "svm_type nu_svc\nkernel_type polynomial\ndegree 2\ngamma 0.5\ncoef0 1\nnr_class 3\ntotal_sv 3\nrho 1 2 "
    "3\nlabel 7 8 9\n"
    "nr_sv 1 1 1\nSV\n1 2 1:1\n-3 4 2:1\n-5 -6 1:2 3:1\n",
    "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0\nlabel 1 2\nnr_sv 1 0\nSV\n1 3:1\n"};

static void test_texts(void **state) {
    (void)state;
    begin();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        change_words(texts[i]);
        change_lines(texts[i]);
    }
    assert_true(taken > 100 && refused > 1000);
}

/* ---- maps: each key gone, twice, or with another value */

struct odd {
    const char *bytes;
    size_t size;
};
#define ODD(text)                                                                                            \
    { text, sizeof text - 1 }

static const struct odd odds[] = {
    ODD("\xc0"),
    ODD("\xc3"),
    ODD("\x00"),
    ODD("\x01"),
    ODD("\x7f"),
    ODD("\xff"),
    ODD("\xd3\x80\0\0\0\0\0\0\0"),
    ODD("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"),
    ODD("\xcb\x7f\xf8\0\0\0\0\0\0"),
    ODD("\xcb\x7f\xf0\0\0\0\0\0\0"),
    ODD("\xcb\x3f\xe0\0\0\0\0\0\0"),
    ODD("\xcb\xc0\x59\0\0\0\0\0\0"),
    ODD("\xca\x7f\x80\0\0"),
    ODD("\xa0"),
    ODD("\xa3"
        "rbf"),
    ODD("\xa6"
        "kernel"),
    ODD("\xa2\xff\xfe"),
    ODD("\xc4\x00"),
    ODD("\xc4\x02"
        "ab"),
    ODD("\xd4\x02"
        "a"),
    ODD("\xc7\x00\x02"),
    ODD("\xd7\x02\0\0\0\0\0\0\xf0\x3f"),
    ODD("\xd8\x02\0\0\0\0\0\0\xf8\x7f\0\0\0\0\0\0\xf0\x7f"),
    ODD("\xd8\x02\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\x59\xc0"),
    ODD("\xd6\x01\0\0\x80\x3f"),
    ODD("\xd7\x05\0\0\0\0\0\0\0\0"),
    ODD("\x90"),
    ODD("\x91\xc0"),
    ODD("\x92\x01\x02"),
    ODD("\x92\xa1"
        "a\xa1"
        "b"),
    ODD("\x93\x01\x02\x03"),
    ODD("\x92\x90\x91\x01"),
    ODD("\x80"),
    ODD("\x81\xa1"
        "a\x01"),
};
#define ODDS (sizeof odds / sizeof odds[0])

typedef void reader(const uint8_t *bytes, size_t size);

/* The map without the pair from..to, with `other` in place of to - from bytes, and so many pairs more. */
static void read_changed(reader *read, const uint8_t *bytes, size_t size, size_t from, size_t to,
                         const struct odd *other, int more) {
    struct svi_bytes made = {0};
    struct svi_item map;
    const size_t first = (size_t)(svi_item_read(bytes, &map) - bytes);
    const uint32_t pairs = htobe32(map.length + (uint32_t)more);
    svi_bytes_append(&made, "\xdf", 1);
    svi_bytes_append(&made, &pairs, sizeof pairs);
    svi_bytes_append(&made, bytes + first, from - first);
    svi_bytes_append(&made, other->bytes, other->size);
    assert_int_equal(svi_bytes_append(&made, bytes + to, size - to), SVS_OK);
    read(made.data, made.size);
    svi_bytes_clear(&made);
}

/* Items inside of a value, one after another. */
static void change_inside(reader *read, const uint8_t *bytes, size_t size, size_t from, size_t to) {
    struct svi_item item;
    const uint8_t *at = svi_item_read(bytes + from, &item), *end = bytes + size;
    const uint32_t inside = item.type == SVI_ARRAY ? item.length : item.type == SVI_MAP ? 2 * item.length : 0;
    for (uint32_t i = 0; i < inside && i < 40 && at < bytes + to; i++) {
        const uint8_t *behind = at;
        assert_int_equal(svi_walk(&behind, end, SVI_WALK_MAX), SVS_OK);
        for (size_t k = 0; k < ODDS; k++)
            read_changed(read, bytes, size, (size_t)(at - bytes), (size_t)(behind - bytes), &odds[k], 0);
        change_inside(read, bytes, size, (size_t)(at - bytes), (size_t)(behind - bytes));
        at = behind;
    }
}

static void change_map(reader *read, const uint8_t *bytes, size_t size) {
    static const struct odd nothing = {"", 0};
    struct svi_item map;
    const uint8_t *at = svi_item_read(bytes, &map), *end = bytes + size;
    for (uint32_t i = 0; i < map.length; i++) {
        const uint8_t *key = at, *value = at;
        assert_int_equal(svi_walk(&value, end, SVI_WALK_MAX), SVS_OK);
        at = value;
        assert_int_equal(svi_walk(&at, end, SVI_WALK_MAX), SVS_OK);
        const size_t k0 = (size_t)(key - bytes), v0 = (size_t)(value - bytes), v1 = (size_t)(at - bytes);
        const struct odd same = {(const char *)key, v1 - k0};
        read_changed(read, bytes, size, k0, v1, &nothing, -1);
        read_changed(read, bytes, size, k0, k0, &same, 1);
        for (size_t k = 0; k < ODDS; k++) {
            read_changed(read, bytes, size, v0, v1, &odds[k], 0);
            read_changed(read, bytes, size, k0, v0, &odds[k], 0);
        }
        change_inside(read, bytes, size, v0, v1);
    }
    for (size_t n = 0; n < size; n++)
        read(bytes, n);
    for (size_t k = 0; k < ODDS; k++)
        read((const uint8_t *)odds[k].bytes, odds[k].size);
    read(bytes, size);
}

/* ---- models in msgpack */

static void train(svs_kernel_kind kind, bool named, svs_trained *out) {
    static const svs_value classes[] = {{.kind = SVS_INT, .as.i = -3},
                                        {.kind = SVS_STR, .length = 4, .as.s = "spam"}};
    static const char *const names[] = {"a", "b", "c"};
    struct test_data t = test_data_make(14, 3, 0.7, 0.1, 3);
    int32_t label[14];
    svs_train_options o;
    for (int i = 0; i < 14; i++)
        label[i] = t.y[i] > 0;
    svs_examples e = {.rows = test_rows(&t, false),
                      .label = label,
                      .class_count = 2,
                      .classes = classes,
                      .features = named ? names : NULL};
    svs_train_options_default(&o);
    o.kernel = (svs_kernel){.kind = kind, .gamma = 0.3, .coef0 = 1, .degree = 2};
    if (kind != SVS_LINEAR) {
        o.p = 1;
        o.bias = SVS_BIAS_FREE;
    }
    assert_int_equal(svs_train(&e, &o, NULL, out, NULL), SVS_OK);
    test_data_free(&t);
}

/* Who calls it has seen that it is a map. */
static void read_kernel(const uint8_t *bytes, size_t size) {
    svs_error err = {SVS_OK, ""};
    struct svi_item map;
    if (svi_msgpack_check(bytes, size, SVI_DEPTH_MAX, NULL) != SVS_OK)
        return;
    svi_item_read(bytes, &map);
    if (map.type != SVI_MAP)
        return;
    struct svi_machine machine = {.kernel = svi_kernel_decode(bytes, size, &err)};
    count(machine.kernel ? SVS_OK : SVS_INVALID, &err);
    if (machine.kernel)
        use(&machine);
}

static void read_linear(const uint8_t *bytes, size_t size) {
    svs_error err = {SVS_OK, ""};
    struct svi_machine machine = {.linear = svs_model_decode(bytes, size, &err)};
    count(machine.linear ? SVS_OK : err.code, &err);
    if (machine.linear)
        use(&machine);
}

static void test_models(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        svs_trained t;
        struct svi_bytes b = {0};
        begin();
        train((svs_kernel_kind)kind, kind == 0, &t);
        if (t.linear)
            assert_int_equal(svi_model_encode(t.linear, NULL, 0, &b), SVS_OK);
        else
            assert_int_equal(svi_kernel_encode(t.kernel, &b), SVS_OK);
        change_map(t.linear ? read_linear : read_kernel, b.data, b.size);
        assert_true(taken > 0 && refused > 100);
        svi_bytes_clear(&b);
        svs_trained_clear(&t);
    }
}

/* ---- files: the checksum is put right */

static void mend(uint8_t *bytes, size_t size) {
    if (size < TAIL || memcmp(bytes + size - TAIL,
                              "\xa3"
                              "crc\xce",
                              5) != 0)
        return;
    const uint32_t crc = htobe32((uint32_t)crc32(0, bytes, (uInt)(size - TAIL)));
    memcpy(bytes + size - 4, &crc, sizeof crc);
}

static void read_file(const uint8_t *bytes, size_t size) {
    uint8_t *mended = malloc(size + 1);
    memcpy(mended, bytes, size);
    mend(mended, size);
    read_machine(mended, size);
    free(mended);
}

static void read_novelty(const uint8_t *bytes, size_t size) {
    svs_error err = {SVS_OK, ""};
    uint8_t *mended = malloc(size + 1);
    memcpy(mended, bytes, size);
    mend(mended, size);
    svs_novelty_model *m = svi_novelty_file_decode(mended, size, &err);
    count(m ? SVS_OK : err.code, &err);
    free(mended);
    svs_novelty_free(&m);
}

static size_t slurp(const char *path, uint8_t *bytes, size_t capacity) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, capacity, f);
    fclose(f);
    return n;
}

static void test_files(void **state) {
    static uint8_t bytes[1 << 16];
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "/tmp/test_malformed_%d", getpid());
    for (int kind = 0; kind < 3; kind += 2) {
        svs_trained t;
        train((svs_kernel_kind)kind, false, &t);
        struct svi_machine m = {t.linear, t.kernel};
        assert_int_equal(svi_machine_write(&m, path, SVI_FORMAT_OWN, NULL), SVS_OK);
        svs_trained_clear(&t);
        begin();
        change_map(read_file, bytes, slurp(path, bytes, sizeof bytes));
        assert_true(taken > 0 && refused > 100);
    }
    unlink(path);
}

static svs_novelty_model *train_novelty(svs_novelty_kernel kernel, bool named) {
    static const char *const names[] = {"a", "b", "c"};
    struct test_data t = test_data_make(40, 3, 0.7, 0.1, 3);
    const svs_rows rows = test_rows(&t, false);
    svs_novelty_options o;
    svs_novelty_model *m;
    svs_novelty_options_default(&o);
    o.kernel = kernel;
    assert_int_equal(svs_novelty_train(&rows, named ? names : NULL, &o, &m, NULL), SVS_OK);
    test_data_free(&t);
    return m;
}

static void test_novelty(void **state) {
    static const svs_novelty_kernel kinds[] = {SVS_NOVELTY_RBF, SVS_NOVELTY_POLYNOMIAL};
    static uint8_t bytes[1 << 16];
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "/tmp/test_malformed_%d", getpid());
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        svs_novelty_model *m = train_novelty(kinds[i], i == 0);
        assert_int_equal(svi_novelty_file_write(m, path, NULL), SVS_OK);
        svs_novelty_free(&m);
        begin();
        change_map(read_novelty, bytes, slurp(path, bytes, sizeof bytes));
        assert_true(taken > 0 && refused > 100);
    }
    unlink(path);
}

static void test_places(void **state) {
    struct svi_machine m;
    svs_trained t;
    svs_error err;
    char longer[5000];
    (void)state;
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    train(SVS_LINEAR, false, &t);
    m = (struct svi_machine){t.linear, t.kernel};
    assert_int_equal(svi_machine_write(&m, longer, SVI_FORMAT_OWN, &err), SVS_IO);
    assert_int_equal(svi_machine_write(&m, "/nowhere/at/all", SVI_FORMAT_OWN, &err), SVS_IO);
    assert_int_equal(svi_machine_write(&m, "/proc/self", SVI_FORMAT_OWN, &err), SVS_IO);
    assert_int_equal(svi_machine_write(&m, "/dev/full", SVI_FORMAT_OWN, &err), SVS_IO);
    assert_int_equal(svi_machine_write(&m, "/dev/null", SVI_FORMAT_OWN, &err), SVS_OK);
    svs_trained_clear(&t);
    assert_int_equal(svi_machine_read(&m, "/nowhere/at/all", &err), SVS_IO);
    assert_int_equal(svi_machine_read(&m, "/proc/self", &err), SVS_IO);
    assert_int_equal(svi_machine_read(&m, "/dev/null", &err), SVS_EMPTY);
}

/* ---- replies to a producer, values as JSON */

static void read_reply(const uint8_t *bytes, size_t size) {
    struct svi_answer a;
    svs_error err = {SVS_OK, ""};
    svs_code code = svi_answer_read(&a, bytes, size, &err);
    count(code, &err);
    if (code == SVS_OK)
        assert_true(a.final >= -1 && a.final <= 1 && a.n >= -1 && a.next >= -1 && a.credit >= -1 &&
                    a.refused >= 0);
}

static void test_replies(void **state) {
    static const char full[] = "\x8b\xa2"
                               "ok\xc3\xa5"
                               "final\xc2\xa1n\x05\xa4"
                               "next\x06\xa6"
                               "credit\x07\xa7"
                               "durable\xff\xa7"
                               "applied\x05\xa7"
                               "refused\x01\xa5"
                               "epoch\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xa4"
                               "code\xa3"
                               "gap\xa5"
                               "error\xa2"
                               "no";
    (void)state;
    begin();
    change_map(read_reply, (const uint8_t *)full, sizeof full - 1);
    assert_true(taken > 100 && refused > 40);
}

static void read_json(const uint8_t *bytes, size_t size) {
    struct svi_bytes out = {0};
    svs_error err = {SVS_OK, ""};
    svs_code code = svi_json_msgpack(&out, bytes, size, &err);
    count(code, &err);
    if (code == SVS_OK)
        assert_true(out.size > 0);
    svi_bytes_clear(&out);
}

static void test_json(void **state) {
    static const char all[] = "\x86\xa1"
                              "a\x93\x01\xc0\xa1\x01\x02\xcb\x7f\xf8\0\0\0\0\0\0\xc3\x81\xa2\xff\"\xa2\n\\"
                              "\xff\xd7\x01\0\0\x80\x3f\0\0\x80\x3f"
                              "\xc0\xc4\x02\x80"
                              "b\xa1"
                              "e\xd4\x09z";
    (void)state;
    begin();
    read_json((const uint8_t *)all, sizeof all - 1);
    assert_int_equal(taken, 1);
    change_map(read_json, (const uint8_t *)all, sizeof all - 1);
    assert_true(taken > 100 && refused > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts),  cmocka_unit_test(test_models),
                                       cmocka_unit_test(test_files),  cmocka_unit_test(test_novelty),
                                       cmocka_unit_test(test_places), cmocka_unit_test(test_replies),
                                       cmocka_unit_test(test_json)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
