/* OpenBLAS reads two things while it is loaded, before main: how many threads to start, which then wait for
 * work in a loop that takes a core, and the kernels, of which the version of 2022 picks those of 2013 for
 * every processor that it does not know. The C library takes the environment as it came, so the program
 * begins again with another one, before any constructor has run: a millisecond. Sanitizers have not begun by
 * then: nothing may allocate. */
#include "server/blas_begin.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 4000 /* variables; with more of them nothing is set */

#define ONE_THREAD   "OPENBLAS_NUM_THREADS=1"
#define WIDE_KERNELS "OPENBLAS_CORETYPE=SkylakeX"
#define MARK         "SVMSTREAM_BLAS_SET=" /* what was set, for the program that begins again: t, k or both */

#if defined(__clang__)
#define BEFORE_SANITIZERS __attribute__((no_sanitize("address", "undefined", "thread")))
#else
#define BEFORE_SANITIZERS __attribute__((no_sanitize_address, no_sanitize_undefined, no_sanitize_thread))
#endif

/* Is the variable of `assignment` among them? */
BEFORE_SANITIZERS static bool is_set(char **environment, const char *assignment) {
    for (char **e = environment; *e; e++) {
        int i = 0;
        while (assignment[i] != '=' && (*e)[i] == assignment[i])
            i++;
        if (assignment[i] == '=' && (*e)[i] == '=')
            return true;
    }
    return false;
}

/* AVX-512 as those kernels use it. */
BEFORE_SANITIZERS static bool has_wide_vectors(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

BEFORE_SANITIZERS void svi_blas_begin(char **argv, char **environment) {
    char *variables[MOST + 4], program[4096], one_thread[] = ONE_THREAD, wide_kernels[] = WIDE_KERNELS,
                                              mark[] = MARK "__";
    int count = 0;
    if (!environment)
        return;
    while (environment[count])
        if (++count > MOST)
            return;
    if (is_set(environment, MARK))
        return;
    const bool threads = !is_set(environment, ONE_THREAD),
               kernels = !is_set(environment, WIDE_KERNELS) && has_wide_vectors();
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (!(threads || kernels) || length <= 0)
        return;
    for (int i = 0; i < count; i++)
        variables[i] = environment[i];
    if (threads)
        variables[count++] = one_thread;
    if (kernels)
        variables[count++] = wide_kernels;
    mark[sizeof MARK - 1] = threads ? 't' : '_';
    mark[sizeof MARK] = kernels ? 'k' : '_';
    variables[count++] = mark;
    variables[count] = NULL;
    program[length] = 0;
    execve(program, argv, variables); /* else it goes on as it is */
}

void svi_blas_begun(void) {
    const char *set = getenv("SVMSTREAM_BLAS_SET");
    if (!set || strlen(set) != 2)
        return;
    if (set[0] == 't')
        unsetenv("OPENBLAS_NUM_THREADS");
    if (set[1] == 'k')
        unsetenv("OPENBLAS_CORETYPE");
    unsetenv("SVMSTREAM_BLAS_SET");
}
