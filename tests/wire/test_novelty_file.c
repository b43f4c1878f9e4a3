/* Files of one-class models: bit for bit back, and nothing that is damaged or lies taken for a model. */
#include "support/oneclass.h"

#include <unistd.h>

#include <zlib.h>

#include "base/alloc.h"
#include "formats/model_file.h"
#include "formats/novelty_file.h"
#include "wire/pack.h"

static char path[64];

static int set_path(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/test_novelty_file_%d", getpid());
    return 0;
}

static int remove_path(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

static size_t slurp(uint8_t *bytes, size_t capacity) {
    FILE *f = fopen(path, "rb");
    size_t n = fread(bytes, 1, capacity, f);
    fclose(f);
    return n;
}

static void spill(const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    fwrite(bytes, 1, n, f);
    fclose(f);
}

static void compare(const svs_novelty_model *a, const svs_novelty_model *b) {
    assert_true(a->d == b->d && a->stride == b->stride && a->lags == b->lags &&
                a->differences == b->differences && a->kernel == b->kernel);
    assert_true(a->degree == b->degree && a->fosvm == b->fosvm && a->theta == b->theta);
    assert_true(a->trained == b->trained && a->trimmed == b->trimmed && a->members == b->members);
    for (int j = 0; j < a->d; j++) {
        assert_string_equal(a->features[j], b->features[j]);
        assert_true(!a->center == !b->center);
        assert_true(!a->center || (a->center[j] == b->center[j] && a->inverse[j] == b->inverse[j]));
    }
    for (int e = 0; e < a->members; e++) {
        const svs_novelty_member *p = &a->member[e], *q = &b->member[e];
        const size_t n = (size_t)p->count;
        assert_int_equal(p->count, q->count);
        assert_memory_equal(p->support, q->support, n * (size_t)a->stride * sizeof(double));
        assert_memory_equal(p->z, q->z, n * sizeof(double));
        assert_memory_equal(p->norm2, q->norm2, n * sizeof(double));
        assert_true(p->gamma == q->gamma && p->share == q->share && p->rho == q->rho && p->worst == q->worst);
        assert_true(p->violation == q->violation && p->rounds == q->rounds && p->outside == q->outside);
    }
}

static void test_round_trip(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++)
        for (int scale = 0; scale < 2; scale++) {
            struct test_oneclass t;
            double before[150], after[150];
            test_oneclass_make(&t, 150, 6, (svs_novelty_kernel)k, SVS_GAMMA_AUTO, scale);
            t.model->lags = 3, t.model->differences = true;
            assert_int_equal(svi_novelty_file_write(t.model, path, NULL), SVS_OK);
            svs_novelty_model *back = svi_novelty_file_read(path, NULL);
            assert_non_null(back);
            compare(t.model, back);
            svs_novelty_score(t.model, &t.rows, 0, 150, before, NULL, NULL);
            svs_novelty_score(back, &t.rows, 0, 150, after, NULL, NULL);
            assert_memory_equal(before, after, sizeof before);
            svs_novelty_free(&back);
            test_oneclass_free(&t);
        }
}

/* Every byte changed, every end cut off: an error, never another model. */
static void test_damage(void **state) {
    (void)state;
    static uint8_t bytes[60000];
    struct test_oneclass t;
    test_oneclass_make(&t, 60, 2, SVS_NOVELTY_RBF, SVS_GAMMA_GIVEN, true);
    assert_int_equal(svi_novelty_file_write(t.model, path, NULL), SVS_OK);
    const size_t n = slurp(bytes, sizeof bytes);
    assert_true(n > 200 && n < sizeof bytes);
    for (size_t i = 0; i < n; i++) {
        svs_error err = {0};
        bytes[i] ^= (uint8_t)(1 << i % 8);
        assert_null(svi_novelty_file_decode(bytes, n, &err));
        assert_true(err.code != SVS_OK && err.text[0]);
        bytes[i] ^= (uint8_t)(1 << i % 8);
        uint8_t *cut = malloc(i + 1); /* so that a sanitizer sees a read beyond the end */
        memcpy(cut, bytes, i);
        assert_null(svi_novelty_file_decode(cut, i, &err));
        free(cut);
    }
    test_oneclass_free(&t);
}

/* ---- files that lie, with a right checksum */

static struct {
    const char *kernel;
    int64_t d, lags, fosvm, version;
    double theta, gamma, share, rho, z[2], center, inverse;
    int z_count, support_count, center_count, members, names;
    double support;
} lie;

static void honest(void) {
    lie.kernel = "rbf";
    lie.d = 2;
    lie.lags = lie.fosvm = lie.version = lie.members = 1;
    lie.theta = 0.05;
    lie.gamma = lie.share = lie.inverse = lie.support = 1;
    lie.rho = 0.5;
    lie.z[0] = lie.z[1] = 1;
    lie.center = 0;
    lie.z_count = lie.center_count = lie.names = 2;
    lie.support_count = 4;
}

static void number(struct svi_pack *p, const char *key, double value) {
    svi_pack_key(p, key);
    svi_pack_real(p, value);
}

static void integer(struct svi_pack *p, const char *key, int64_t value) {
    svi_pack_key(p, key);
    svi_pack_int(p, value);
}

static void repeated(struct svi_pack *p, const char *key, double value, int count) {
    double v[64];
    for (int i = 0; i < count; i++)
        v[i] = value;
    svi_pack_key(p, key);
    svi_pack_doubles(p, v, (size_t)count);
}

static void member(struct svi_pack *p) {
    svi_pack_map(p, 9);
    number(p, "gamma", lie.gamma);
    number(p, "share", lie.share);
    number(p, "rho", lie.rho);
    number(p, "worst", 0.96);
    number(p, "violation", 0);
    integer(p, "rounds", 3);
    integer(p, "outside", 0);
    svi_pack_key(p, "z");
    svi_pack_doubles(p, lie.z, (size_t)lie.z_count);
    repeated(p, "support", lie.support, lie.support_count);
}

static size_t make(uint8_t *out) {
    struct svi_bytes bytes = {0};
    struct svi_pack p;
    svi_pack_begin(&p, &bytes);
    svi_pack_map(&p, 16);
    svi_pack_key(&p, "format");
    svi_pack_text(&p, "svmstream-novelty");
    integer(&p, "v", lie.version);
    integer(&p, "d", lie.d);
    integer(&p, "lags", lie.lags);
    integer(&p, "differences", 0);
    svi_pack_key(&p, "kernel");
    svi_pack_text(&p, lie.kernel);
    integer(&p, "degree", 3);
    integer(&p, "fosvm", lie.fosvm);
    number(&p, "theta", lie.theta);
    integer(&p, "trained", 10);
    integer(&p, "trimmed", 1);
    svi_pack_key(&p, "features");
    svi_pack_array(&p, (size_t)lie.names);
    for (int j = 0; j < lie.names; j++)
        svi_pack_text(&p, "name");
    repeated(&p, "center", lie.center, lie.center_count);
    repeated(&p, "inverse", lie.inverse, 2);
    svi_pack_key(&p, "members");
    svi_pack_array(&p, (size_t)lie.members);
    for (int e = 0; e < lie.members; e++)
        member(&p);
    const uint32_t crc = (uint32_t)crc32(0, bytes.data, (uInt)bytes.size);
    svi_pack_key(&p, "crc");
    svi_pack_uint(&p, crc);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    const size_t size = bytes.size;
    memcpy(out, bytes.data, size);
    svi_bytes_clear(&bytes);
    return size;
}

static void refused(svs_code code, const char *part) {
    uint8_t bytes[4096];
    svs_error err = {0};
    const size_t size = make(bytes);
    svs_novelty_model *m = svi_novelty_file_decode(bytes, size, &err);
    if (m || err.code != code || !strstr(err.text, part))
        fail_msg("expected '%s', got %s: %s", part, svs_code_name(err.code), err.text);
    honest();
}

static void test_lies(void **state) {
    (void)state;
    uint8_t bytes[4096];
    honest();
    size_t size = make(bytes);
    svs_novelty_model *m = svi_novelty_file_decode(bytes, size, NULL);
    assert_non_null(m);
    assert_true(m->d == 2 && m->member[0].count == 2 && m->member[0].support[8] == 1 &&
                m->member[0].support[2] == 0);
    svs_novelty_free(&m);
    refused((lie.version = 2, SVS_UNAVAILABLE), "version 2");
    refused((lie.kernel = "sigmoid", SVS_WRONG_TYPE), "kernel");
    refused((lie.d = 0, SVS_WRONG_TYPE), "d is an integer: it must be an integer from 1");
    refused((lie.d = 9000000, SVS_WRONG_TYPE), "features must be");
    refused((lie.lags = 3, SVS_WRONG_TYPE), "contradict");
    refused((lie.fosvm = 3, SVS_WRONG_TYPE), "fosvm");
    refused((lie.theta = 1, SVS_WRONG_TYPE), "theta");
    refused((lie.theta = -0.1, SVS_WRONG_TYPE), "theta");
    refused((lie.gamma = 0, SVS_WRONG_TYPE), "gamma");
    refused((lie.gamma = INFINITY, SVS_WRONG_TYPE), "gamma");
    refused((lie.share = 0.9, SVS_WRONG_TYPE), "add up to 0.9");
    refused((lie.members = 2, SVS_WRONG_TYPE), "add up to 2");
    refused((lie.members = 0, SVS_WRONG_TYPE), "1 to 8");
    refused((lie.members = 9, SVS_WRONG_TYPE), "1 to 8");
    refused((lie.rho = 0.6, SVS_WRONG_TYPE), "rho");
    refused((lie.z[1] = 0, SVS_WRONG_TYPE), "z[1]");
    refused((lie.z[0] = -1, SVS_WRONG_TYPE), "z[0]");
    refused((lie.z[0] = NAN, SVS_NOT_FINITE), "z[0] of the member is not finite");
    refused((lie.z_count = 1, SVS_WRONG_TYPE), "contradict");
    refused((lie.z_count = 0, SVS_WRONG_TYPE), "contradict");
    refused((lie.support_count = 5, SVS_WRONG_TYPE), "contradict");
    refused((lie.support = INFINITY, SVS_NOT_FINITE), "support");
    refused((lie.center = NAN, SVS_NOT_FINITE), "center");
    refused((lie.center_count = 3, SVS_WRONG_TYPE), "3 values of center");
    refused((lie.inverse = 0, SVS_WRONG_TYPE), "inverse[0]");
    refused((lie.names = 3, SVS_WRONG_TYPE), "d names");
}

static void test_other_files(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
        svs_code code;
    } bad[] = {{"", "empty", SVS_EMPTY},
               {"hello", "not a model file", SVS_WRONG_TYPE},
               {"\x81\xa6"
                "format\xa5hello",
                "not a novelty model", SVS_WRONG_TYPE},
               {"\x93\x01\x02\x03", "not a model file", SVS_WRONG_TYPE},
               {"svm_type one_class\n", "not a model file", SVS_WRONG_TYPE}};
    svs_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        spill(bad[i].text, strlen(bad[i].text));
        assert_null(svi_novelty_file_read(path, &err));
        if (err.code != bad[i].code || !strstr(err.text, bad[i].part) || !strstr(err.text, path))
            fail_msg("%zu: %s: %s", i, svs_code_name(err.code), err.text);
    }
    struct test_oneclass t;
    struct svi_machine machine;
    test_oneclass_make(&t, 60, 2, SVS_NOVELTY_RBF, SVS_GAMMA_GIVEN, true);
    assert_int_equal(svi_novelty_file_write(t.model, path, NULL), SVS_OK);
    assert_int_equal(svi_machine_read(&machine, path, &err), SVS_UNAVAILABLE);
    assert_non_null(strstr(err.text, "svmstream novelty"));
    assert_int_equal(svi_novelty_file_write(t.model, "/nowhere/at/all", &err), SVS_IO);
    assert_null(svi_novelty_file_read("/nowhere/at/all", &err));
    assert_int_equal(err.code, SVS_IO);
    test_oneclass_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damage),
                                       cmocka_unit_test(test_lies), cmocka_unit_test(test_other_files)};
    return cmocka_run_group_tests(tests, set_path, remove_path);
}
