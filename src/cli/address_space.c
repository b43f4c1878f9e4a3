#include "cli/address_space.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fail.h"
#include "cli/blas_begin.h"

#define MIB         ((size_t)1 << 20)
#define BUFFER      (128 * MIB) /* of OpenBLAS on x86-64, for each thread that computes at the same time */
#define STACK       (8 * MIB)   /* of each thread of OpenBLAS */
#define CALLERS     2           /* threads that call BLAS at once: the stream and the refit */
#define REST        (128 * MIB) /* program, libraries, and the memory of a start */
#define MAX_THREADS 64          /* upper bound of OpenBLAS's threads */
#define DEPTH       (512 << 10) /* bytes of the main thread's stack, more than it ever uses */
#define PAGE        4096

/* Not in a header of OpenBLAS, but exported by its library; absent in another BLAS. */
extern void *blas_memory_alloc(int procpos) __attribute__((weak));
extern void blas_memory_free(void *buffer) __attribute__((weak));

/* Threads that OpenBLAS will start while it is loaded, the main one included, by OpenBLAS's own rules. */
BEFORE_SANITIZERS static int loaded_threads(char **environment) {
    static const char key[] = "OPENBLAS_NUM_THREADS=";
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    for (char **e = environment; e && *e; e++)
        if (strncmp(*e, key, sizeof key - 1) == 0 && atoi(*e + sizeof key - 1) > 0)
            count = atoi(*e + sizeof key - 1);
    return count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : count;
}

/* The main thread's stack grows page by page, and each page counts towards the limit. A page that cannot be
 * had later ends the process by a signal and without a word, so all of them are taken now. */
BEFORE_SANITIZERS __attribute__((noinline)) static void take_stack(void) {
    char stack[DEPTH];
    volatile char *const touched = stack;
    for (size_t at = DEPTH; at > 0; at -= PAGE)
        touched[at - 1] = 0;
}

/* Runs before the constructors of the libraries: OpenBLAS's own would hang, and cannot be stopped. */
BEFORE_SANITIZERS static void check_limit(int argc, char **argv, char **environment) {
    struct rlimit limit;
    char text[400];
    (void)argc;
    svi_blas_begin(argv, environment); /* first: it decides how many threads OpenBLAS starts */
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return;
    const int threads = loaded_threads(environment);
    const size_t need = (size_t)(threads - 1) * (BUFFER + STACK) + CALLERS * BUFFER + REST;
    if (limit.rlim_cur >= need) {
        if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur >= 2 * DEPTH) /* ulimit -s */
            take_stack();
        return;
    }
    const int length = snprintf(
        text, sizeof text,
        "svmstream: the address space is limited to %zu MiB (ulimit -v), but OpenBLAS with %d thread%s needs "
        "%zu MiB: raise the limit%s, or limit the memory itself (systemd: MemoryMax)\n",
        (size_t)limit.rlim_cur / MIB, threads, threads > 1 ? "s" : "", need / MIB,
        threads > 1 ? ", set OPENBLAS_NUM_THREADS=1" : "");
    /* write, because stdio is not initialised yet. */
    if (write(STDERR_FILENO, text, (size_t)length) != length)
        _exit(1);
    _exit(1);
}

__attribute__((section(".preinit_array"), used)) static void (*const check_first)(int, char **,
                                                                                  char **) = check_limit;

/* Tests by a mapping that is removed at once: the limit alone does not show how much is already used. */
static bool address_space_holds(int callers, int threads) {
    const size_t need = (size_t)callers * BUFFER + (size_t)threads * (BUFFER + STACK);
    void *scratch = mmap(NULL, need, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (scratch != MAP_FAILED)
        munmap(scratch, need);
    return scratch != MAP_FAILED;
}

svs_code svi_take_buffers(int threads, int64_t *second, svs_error *err) {
    struct rlimit limit;
    void *taken[CALLERS + 1];
    int callers = CALLERS;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || !blas_memory_alloc ||
        !blas_memory_free)
        return SVS_OK;
    if (*second == 0)
        *second = !address_space_holds(CALLERS + 2, threads); /* one more for its stack and a margin */
    callers += *second != 1;
    const size_t need = (size_t)callers * BUFFER + (size_t)threads * (BUFFER + STACK);
    if (!address_space_holds(callers, threads))
        return svi_fail(err, SVS_NO_MEMORY,
                        "the address space is limited to %zu MiB (ulimit -v), which is too little for "
                        "OpenBLAS's buffers (%zu MiB for threads %d): raise the limit, or lower threads",
                        (size_t)limit.rlim_cur / MIB, need / MIB, threads);
    /* OpenBLAS keeps freed buffers for reuse. All are taken before the first is freed, or it would hand out
     * the same one again. */
    for (int i = 0; i < callers; i++)
        taken[i] = blas_memory_alloc(0);
    for (int i = 0; i < callers; i++)
        blas_memory_free(taken[i]);
    return SVS_OK;
}
