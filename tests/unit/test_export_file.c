/* A kept state as one stream of bytes: what was written is read, and nothing else. Each truncation, each
 * turned bit, pieces left out, repeated or moved are refused, and content that is no state is refused
 * although all checks are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state/state_copy.h"
#include "store/export_file.h"
#include "store/key_files.h"

#define BYTES 3000

static uint8_t content[3 * SVI_EXPORT_PIECE];

/* A descriptor to read these bytes from. */
static int opened(const void *bytes, size_t size) {
    const int fd = memfd_create("state", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

/* Two files of keys and a checkpoint of `size` bytes each; returns the stream, for free. */
static uint8_t *written(size_t size, size_t *total) {
    struct svi_export_writer w = {.fd = memfd_create("state", MFD_CLOEXEC)};
    assert_int_equal(svi_export_writer_begin(&w, NULL), SVS_OK);
    assert_int_equal(svi_export_writer_put(&w, SVI_KEYS, 3, content, size, NULL), SVS_OK);
    assert_int_equal(svi_export_writer_put(&w, SVI_KEYS, 9, content, size / 2, NULL), SVS_OK);
    assert_int_equal(svi_export_writer_put(&w, SVI_CHECKPOINT, 77, content, size, NULL), SVS_OK);
    assert_int_equal(svi_export_writer_end(&w, NULL), SVS_OK);
    *total = (size_t)w.bytes;
    uint8_t *bytes = malloc(*total);
    assert_int_equal(pread(w.fd, bytes, *total, 0), (ssize_t)*total);
    close(w.fd);
    svi_bytes_clear(&w.object);
    return bytes;
}

/* Reads all of it. *bodies: their bytes; *held: memory that it took. */
static svs_code read_all(const uint8_t *bytes, size_t size, size_t *bodies, size_t *held, svs_error *err) {
    struct svi_export_reader r = {.fd = opened(bytes, size)};
    struct svi_export_piece piece = {.end = false};
    svs_code code = svi_export_reader_begin(&r, err);
    *bodies = 0;
    while (code == SVS_OK && !piece.end) {
        code = svi_export_reader_next(&r, &piece, err);
        if (code == SVS_OK && !piece.end) {
            assert_true(piece.keys ? piece.number == 3 || piece.number == 9 : piece.number == 77);
            *bodies += piece.size;
        }
    }
    *held = r.buffer.capacity;
    close(r.fd);
    svi_bytes_clear(&r.buffer);
    return code;
}

static void test_round_trip(void **state) {
    static const size_t sizes[] = {1, 2, BYTES, SVI_EXPORT_PIECE, SVI_EXPORT_PIECE + 1, 3 * SVI_EXPORT_PIECE};
    (void)state;
    for (size_t i = 0; i < sizeof content; i++)
        content[i] = (uint8_t)(i * 131 >> 3);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t total, bodies, held;
        svs_error err;
        uint8_t *bytes = written(sizes[i], &total);
        assert_int_equal(read_all(bytes, total, &bodies, &held, &err), SVS_OK);
        assert_true(bodies == 2 * sizes[i] + sizes[i] / 2);
        assert_true(held < 3 * SVI_EXPORT_PIECE); /* a piece at a time, however long the stream is */
        free(bytes);
    }
}

static void test_damage(void **state) {
    size_t total, bodies, held;
    svs_error err;
    (void)state;
    uint8_t *bytes = written(BYTES, &total);
    for (size_t i = 0; i < total; i++) { /* cut off */
        const svs_code code = read_all(bytes, i, &bodies, &held, &err);
        assert_int_equal(code, i == 0 ? SVS_EMPTY : SVS_DAMAGED);
        assert_true(strlen(err.text) > 20);
    }
    for (size_t i = 0; i < total; i++) { /* a bit turned: never taken */
        bytes[i] ^= (uint8_t)(1 << i % 8);
        const svs_code code = read_all(bytes, total, &bodies, &held, &err);
        assert_true(code == SVS_DAMAGED || code == SVS_UNAVAILABLE);
        assert_true(held < 3 * SVI_EXPORT_PIECE);
        bytes[i] ^= (uint8_t)(1 << i % 8);
    }
    uint8_t *more = malloc(2 * total);
    memcpy(more, bytes, total);
    memcpy(more + total, bytes, total);
    assert_int_equal(read_all(more, total + 1, &bodies, &held, &err), SVS_DAMAGED);
    assert_int_equal(read_all(more, 2 * total, &bodies, &held, &err), SVS_DAMAGED);
    assert_non_null(strstr(err.text, "bytes follow the end"));
    /* The second piece again; then without the first. Both begin with an array of four. */
    const uint8_t *first = memmem(bytes, total, "\x94\xa4keys\x03", 7),
                  *second = memmem(bytes, total, "\x94\xa4keys\x09", 7),
                  *third = memmem(bytes, total,
                                  "\x94\xaa"
                                  "checkpoint",
                                  12);
    const size_t head = (size_t)(first - bytes), one = (size_t)(second - first),
                 two = (size_t)(third - second);
    memcpy(more, bytes, head + one + two);
    memcpy(more + head + one + two, second, total - head - one);
    assert_int_equal(read_all(more, total + two, &bodies, &held, &err), SVS_DAMAGED);
    memcpy(more + head, second, total - head - one);
    assert_int_equal(read_all(more, total - one, &bodies, &held, &err), SVS_DAMAGED);
    assert_non_null(strstr(err.text, "checksum of a piece"));
    free(more);
    free(bytes);
}

/* A stream whose checks are right: pieces are numbers of files of keys, -1 ends them, then a checkpoint. */
static void refused(const int64_t *keys, int checkpoints, const char *text) {
    char folder[] = "/tmp/import-XXXXXX", command[60], path[40];
    struct svi_export_writer w = {.fd = memfd_create("state", MFD_CLOEXEC)};
    struct svi_state_copied copied;
    struct svi_state_dir dir;
    struct svi_state_dir_ends ends;
    svs_error err;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/d", folder);
    assert_int_equal(svi_export_writer_begin(&w, NULL), SVS_OK);
    for (; *keys >= 0; keys++)
        assert_int_equal(svi_export_writer_put(&w, SVI_KEYS, (uint64_t)*keys, content, 100, NULL), SVS_OK);
    for (int i = 0; i < checkpoints; i++)
        assert_int_equal(svi_export_writer_put(&w, SVI_CHECKPOINT, (uint64_t)i, content, 100, NULL), SVS_OK);
    assert_int_equal(svi_export_writer_end(&w, NULL), SVS_OK);
    lseek(w.fd, 0, SEEK_SET);
    assert_int_equal(svi_state_import(path, w.fd, &copied, &err), SVS_DAMAGED);
    if (!strstr(err.text, text))
        fail_msg("%s, not %s", err.text, text);
    close(w.fd);
    svi_bytes_clear(&w.object);
    /* Nothing that a start could take is left. */
    assert_int_equal(svi_state_dir_open(&dir, path, false, &err), SVS_OK);
    static const char *const kinds[] = {SVI_CHECKPOINT, SVI_KEYS, SVI_JOURNAL};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(svi_state_dir_find(&dir, kinds[i], &ends, &err), SVS_OK);
        assert_false(ends.any);
    }
    svi_state_dir_close(&dir);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void test_no_state(void **state) {
    (void)state;
    refused((const int64_t[]){-1}, 0, "is damaged");
    refused((const int64_t[]){-1}, 1, "the header is missing");
    refused((const int64_t[]){-1}, 2, "two checkpoints");
    refused((const int64_t[]){1, 2, -1}, 1, "the header is missing");
    refused((const int64_t[]){2, 1, -1}, 1, "out of order");
    refused((const int64_t[]){0, -1}, 1, "out of order");
    refused((const int64_t[]){INT64_C(1) << 32, -1}, 1, "out of order");
    int64_t many[SVI_KEY_FILES_MAX + 2];
    for (int i = 0; i <= SVI_KEY_FILES_MAX; i++)
        many[i] = i + 1;
    many[SVI_KEY_FILES_MAX + 1] = -1;
    refused(many, 1, "too many key files");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damage),
                                       cmocka_unit_test(test_no_state)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
