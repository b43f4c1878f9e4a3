/* How much memory the machine, or the cgroup of the process, has: both versions of cgroups, limits above the
 * group, names of another name space, and what is no limit. */
#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/machine_memory.h"
#include "support/folder.h"

/* A file with its folders. */
static void write_file(const char *root, const char *name, const char *text) {
    char path[500];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *c = path + strlen(root) + 1; *c; c++)
        if (*c == '/') {
            *c = '\0';
            mkdir(path, 0700);
            *c = '/';
        }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at) {
    (void)s, (void)kind, (void)at;
    return remove(path);
}

static double memory_of(const char *const *files) {
    char root[200];
    assert_non_null(test_folder(root));
    for (; files[0]; files += 2)
        write_file(root, files[0], files[1]);
    const double bytes = svi_cgroup_memory(root);
    assert_int_equal(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    return bytes;
}

#define MEMORY(...) memory_of((const char *const[]){__VA_ARGS__, NULL})

static void test_cgroups(void **unused) {
    (void)unused;
    assert_true(isinf(MEMORY("/proc/self/none", "")));
    assert_true(isinf(MEMORY("/proc/self/cgroup", "0::/a/b\n")));
    assert_true(MEMORY("/proc/self/cgroup", "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max", "1000\n") == 1000);
    assert_true(MEMORY("/proc/self/cgroup", "0::/\n", "/sys/fs/cgroup/memory.max", "1000\n") == 1000);
    /* the one above has less; "max" is no limit; memory.high holds the process up before it is killed */
    assert_true(MEMORY("/proc/self/cgroup", "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max", "max\n",
                       "/sys/fs/cgroup/a/memory.max", "3000\n", "/sys/fs/cgroup/memory.max",
                       "4000\n") == 3000);
    assert_true(MEMORY("/proc/self/cgroup", "0::/a\n", "/sys/fs/cgroup/a/memory.max", "3000\n",
                       "/sys/fs/cgroup/a/memory.high", "2000\n") == 2000);
    assert_true(isinf(MEMORY("/proc/self/cgroup", "0::/a\n", "/sys/fs/cgroup/a/memory.max", "max\n")));
    /* another group whose name begins alike is none of it */
    assert_true(isinf(MEMORY("/proc/self/cgroup", "0::/ab\n", "/sys/fs/cgroup/a/memory.max", "3000\n")));
    /* version 1, memory among other controllers; in a container the path is one of the host */
    assert_true(MEMORY("/proc/self/cgroup", "5:cpu,memory:/a\n0::/\n",
                       "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000\n") == 5000);
    assert_true(MEMORY("/proc/self/cgroup", "4:memory:/docker/123\n",
                       "/sys/fs/cgroup/memory/memory.limit_in_bytes", "6000\n") == 6000);
    assert_true(isinf(MEMORY("/proc/self/cgroup", "4:memoryless:/a\n",
                             "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "6000\n")));
}

static void test_this_process(void **unused) {
    (void)unused;
    struct svi_machine_memory m = svi_machine_memory();
    assert_true(m.bytes >= 64 << 20 &&
                m.bytes <= (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE));
    struct rlimit before, lower;
    getrlimit(RLIMIT_AS, &before);
    lower = before;
    lower.rlim_cur = 48 << 20;
    assert_int_equal(setrlimit(RLIMIT_AS, &lower), 0);
    m = svi_machine_memory();
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_true(m.bytes == 48 << 20);
    assert_string_equal(m.of, "ulimit -v allows");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cgroups), cmocka_unit_test(test_this_process)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
