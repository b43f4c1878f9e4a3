/* Every allocation of a reader fails once: it says so, and nothing is leaked or left half done. Linked with
 * --wrap for svi_alloc and svi_realloc. */
#include "support/feed.h"
#include "support/nomem.h"

/* Reads the whole file; SVS_OK, or the code of the first call that failed. *rows: how many came. */
static svs_code read_file(struct feed *f, const struct svi_reader_options *o, int *rows) {
    svs_error err = {0};
    svs_code code = SVS_OK;
    *rows = 0;
    f->reader = svi_reader_open(f->path, o, &f->shape, &err);
    for (enum svi_read what = SVI_READ_ROW; f->reader && what != SVI_READ_END && code == SVS_OK;) {
        struct svi_message m;
        what = svi_reader_row(f->reader, &m, &err);
        *rows += what == SVI_READ_ROW;
        code = what == SVI_READ_BAD || what == SVI_READ_FAIL ? err.code : SVS_OK;
    }
    code = f->reader ? code : err.code;
    svi_reader_close(&f->reader);
    svi_shape_restore(&f->shape);
    return code;
}

/* With the n-th allocation failing, for every n. */
static void fail_each(const void *bytes, size_t length, const char *format) {
    struct svi_reader_options o = {.format = format};
    struct feed f;
    int rows = 0, n = 0;
    feed_memory(&f, bytes, length);
    assert_int_equal(svi_shape_init(&f.shape, FEED_FEATURES, NULL, NULL), SVS_OK);
    for (svs_code code = SVS_NO_MEMORY; code != SVS_OK; n++) {
        assert_true(n < 1000);
        left = n;
        code = read_file(&f, &o, &rows);
        bool used = left < 0;
        left = -1;
        assert_int_equal(code, used ? SVS_NO_MEMORY : SVS_OK);
        assert_int_equal(svs_features_count(f.shape.names), used ? 0 : f.shape.names_kept);
    }
    assert_int_equal(rows, 2);
    assert_true(n > 2);
    svi_shape_clear(&f.shape);
    close(f.fd);
}

static void no_memory_is_said(void **state) {
    (void)state;
    static const char *const texts[][2] = {{"csv", "a,b,label\n1,2,0\n3,4,1\n"},
                                           {"libsvm", "1 1:1\n1 2:1\n"},
                                           {"jsonl", "{\"a\":1}\n{\"a\":1,\"b\":2}\n"},
                                           {"auto", "{\"x\":[1]}\n{\"x\":[2]}\n"}};
    for (int i = 0; i < 4; i++) {
        unsigned char *packed;
        size_t length = feed_gzip(texts[i][1], strlen(texts[i][1]), 2, &packed);
        fail_each(texts[i][1], strlen(texts[i][1]), texts[i][0]);
        fail_each(packed, length, texts[i][0]);
        free(packed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_memory_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
