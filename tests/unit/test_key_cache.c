/* The cache of keys that are out of memory: what was put comes back, a disk without room is an error that
 * passes, and damage is seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/random.h"
#include "fleet/key_cache.h"
#include "support/folder.h"

#define NUMBERS 500
#define MOST    3000 /* bytes */

static uint8_t bytes[16 * MOST];

/* What is put for a number the n-th time. */
static size_t make_value(uint8_t *out, uint64_t number, int n) {
    struct svi_random random = {number * 1000 + (uint64_t)n + 1};
    const size_t size = 1 + svi_random_below(&random, MOST);
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)svi_random_below(&random, 256);
    return size;
}

static void assert_value(svi_key_cache *c, uint64_t number, int n) {
    uint8_t wanted[MOST];
    const uint8_t *got;
    size_t size;
    svs_error err = {0};
    assert_int_equal(svi_key_cache_get(c, number, &got, &size, &err), SVS_OK);
    assert_int_equal(size, make_value(wanted, number, n));
    assert_memory_equal(got, wanted, size);
}

static svs_code put_some(svi_key_cache *c, const uint64_t *number, const int *n, int count, svs_error *err) {
    struct svi_key_bytes items[16];
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        const size_t size = make_value(bytes + at, number[i], n[i]);
        items[i] = (struct svi_key_bytes){number[i], at, size};
        at += size;
    }
    return svi_key_cache_put(c, items, count, bytes, err);
}

static void test_comes_back(void **unused) {
    (void)unused;
    struct svi_random random = {5};
    int puts[NUMBERS] = {0};
    char path[200];
    svs_error err = {0};
    assert_non_null(test_folder(path));
    svi_key_cache *c = svi_key_cache_new(path, &err);
    assert_non_null(c);
    for (int round = 0; round < 2000; round++) {
        uint64_t number[16];
        int n[16], count = 0;
        for (int i = 0; i < 16; i++) {
            const uint64_t one = svi_random_below(&random, NUMBERS);
            bool again = false;
            for (int j = 0; j < count; j++)
                again = again || number[j] == one;
            if (again)
                continue;
            number[count] = one;
            n[count++] = ++puts[one];
        }
        const uint64_t gone = svi_random_below(&random, NUMBERS); /* before the next put, which may have it */
        svi_key_cache_drop(c, gone);
        puts[gone] = puts[gone] > 0 ? -puts[gone] : puts[gone];
        for (int i = 0; i < count; i++)
            if (number[i] == gone)
                puts[gone] = n[i];
        assert_int_equal(put_some(c, number, n, count, &err), SVS_OK);
        for (int i = 0; i < NUMBERS; i++)
            puts[i] = puts[i] < 0 ? 0 : puts[i];
        for (int i = 0; i < 5; i++) {
            const uint64_t one = svi_random_below(&random, NUMBERS);
            const uint8_t *got;
            size_t size;
            if (puts[one] > 0)
                assert_value(c, one, puts[one]);
            else
                assert_int_equal(svi_key_cache_get(c, one, &got, &size, &err), SVS_IO);
        }
    }
    test_folder_remove(path); /* the file has no name */
    svi_key_cache_free(&c);
}

/* Bytes of files that are resident in this process. */
static double resident_files(void) {
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long pages;
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*u %*u %lu", &pages), 1);
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* A file several times as large as the bound: written, overwritten and read, in order and at random, it takes
 * no more memory than the cache reports, and all values come back. */
static void test_resident(void **unused) {
    (void)unused;
    enum { FILLED = 240000, READS = 20000 };
    struct svi_random random = {8};
    static int puts[FILLED];
    char path[200];
    svs_error err = {0};
    assert_non_null(test_folder(path));
    svi_key_cache *c = svi_key_cache_new(path, &err);
    assert_non_null(c);
    const double before = resident_files();
    double most = 0;
    assert_true(svi_key_cache_memory(c) < 1 << 20);
    for (int i = 0; i < FILLED + READS; i += 16) {
        uint64_t number[16];
        int n[16];
        for (int j = 0; j < 16; j++) {
            number[j] =
                i < FILLED ? (uint64_t)(i + j) : (svi_random_below(&random, FILLED / 16) * 16 + (uint64_t)j);
            n[j] = ++puts[number[j]];
        }
        if (i < FILLED || i % 64 == 0)
            assert_int_equal(put_some(c, number, n, 16, &err), SVS_OK);
        else
            for (int j = 0; j < 16; j++)
                puts[number[j]]--;
        if (i >= FILLED)
            for (int j = 0; j < 16; j++) {
                const uint64_t read = svi_random_below(&random, FILLED);
                assert_value(c, read, puts[read]);
            }
        most = fmax(most, resident_files() - before);
    }
    assert_true(svi_key_cache_memory(c) == SVI_KEY_CACHE_RESIDENT);
    if (most > svi_key_cache_memory(c))
        fail_msg("%.1f MiB of the file are resident", most / (1 << 20));
    svi_key_cache_free(&c);
    test_folder_remove(path);
}

static void test_no_room(void **unused) {
    (void)unused;
    const struct rlimit little = {1 << 19, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};
    uint64_t number = 0;
    const int first = 1;
    char path[200];
    svs_error err = {0};
    svs_code code = SVS_OK;
    assert_non_null(test_folder(path));
    svi_key_cache *c = svi_key_cache_new(path, &err);
    assert_non_null(c);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    for (; number < 1000 && code == SVS_OK; number++)
        code = put_some(c, &number, &first, 1, &err);
    assert_int_equal(code, SVS_DISK_FULL);
    assert_non_null(strstr(err.text, path));
    assert_true(number > 20);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    for (uint64_t i = 0; i + 1 < number; i++)
        assert_value(c, i, 1);
    number--;
    assert_int_equal(put_some(c, &number, &first, 1, &err), SVS_OK);
    assert_value(c, number, 1);
    svi_key_cache_free(&c);
    test_folder_remove(path);
}

static double address_space(void) {
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long pages;
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &pages), 1);
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* Where the map cannot grow, the file stays readable, and is written again as soon as it can. */
static void test_no_addresses(void **unused) {
    (void)unused;
    enum { LARGE = 8 << 20 };
    static uint8_t large[LARGE];
    const struct svi_key_bytes item = {1000, 0, LARGE};
    const uint8_t *got;
    uint64_t number = 0;
    const int first = 1;
    size_t size;
    char path[200];
    struct rlimit before, lower;
    svs_error err = {0};
    if (address_space() > 1e12) /* of a sanitizer, which needs more of it at any moment */
        skip();
    assert_non_null(test_folder(path));
    svi_key_cache *c = svi_key_cache_new(path, &err);
    assert_non_null(c);
    assert_int_equal(put_some(c, &number, &first, 1, &err), SVS_OK);
    getrlimit(RLIMIT_AS, &before);
    lower = before;
    lower.rlim_cur = (rlim_t)(address_space() + (100 << 20));
    assert_int_equal(setrlimit(RLIMIT_AS, &lower), 0);
    struct svi_key_bytes next = item;
    svs_code code = SVS_OK;
    for (; next.number < 1100 && code == SVS_OK; next.number++)
        code = svi_key_cache_put(c, &next, 1, large, &err);
    next.number--;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(code, SVS_NO_MEMORY);
        assert_non_null(strstr(err.text, path));
        assert_value(c, number, 1);
        code = svi_key_cache_put(c, &next, 1, large, &err);
    }
    assert_int_equal(svi_key_cache_get(c, item.number, &got, &size, &err), SVS_OK);
    assert_int_equal(size, LARGE);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(svi_key_cache_put(c, &next, 1, large, &err), SVS_OK);
    assert_value(c, number, 1);
    svi_key_cache_free(&c);
    test_folder_remove(path);
}

/* The descriptor of the file, which has no name any more. */
static int cache_descriptor(const char *folder) {
    char name[64], file[512];
    for (int fd = 3; fd < 100; fd++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        const ssize_t length = readlink(name, file, sizeof file - 1);
        if (length > 0 && strncmp(file, folder, strlen(folder)) == 0)
            return fd;
    }
    fail_msg("the file of the cache is not open");
    return -1;
}

static void test_damage(void **unused) {
    (void)unused;
    const int first = 1;
    const uint64_t number = 3, other = 4;
    uint8_t wanted[MOST], page[4096];
    const uint8_t *got;
    size_t size;
    char path[200];
    svs_error err = {0};
    bool found = false;
    assert_non_null(test_folder(path));
    svi_key_cache *c = svi_key_cache_new(path, &err);
    assert_non_null(c);
    assert_int_equal(put_some(c, &number, &first, 1, &err), SVS_OK);
    assert_int_equal(put_some(c, &other, &first, 1, &err), SVS_OK);
    const size_t length = make_value(wanted, number, 1);
    const int fd = cache_descriptor(path);
    for (off_t at = 0; pread(fd, page, sizeof page, at) == (ssize_t)sizeof page; at += (off_t)sizeof page)
        for (size_t i = 0; i + 16 < sizeof page && length >= 16; i++)
            if (memcmp(page + i, wanted, 16) == 0) {
                const uint8_t wrong = (uint8_t)(wanted[7] ^ 4);
                assert_int_equal(pwrite(fd, &wrong, 1, at + (off_t)i + 7), 1);
                found = true;
            }
    assert_true(found);
    assert_int_equal(svi_key_cache_get(c, number, &got, &size, &err), SVS_DAMAGED);
    assert_non_null(strstr(err.text, "damaged"));
    assert_value(c, other, 1);
    svi_key_cache_free(&c);
    test_folder_remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_comes_back), cmocka_unit_test(test_resident),
                                       cmocka_unit_test(test_no_room), cmocka_unit_test(test_no_addresses),
                                       cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
