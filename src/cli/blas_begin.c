/* OpenBLAS reads two variables while it is loaded, before main. One sets the number of threads,
 * which otherwise wait for work in a loop that occupies a core. The other chooses the kernels: the
 * version of 2022 takes those of 2013 on every processor that it does not know.
 *
 * The C library uses the environment in place. It is an array between others and cannot grow. So
 * before any constructor runs, a few entries with names that no constructor reads lend their slots
 * to OpenBLAS's variables, and main restores them. When there are too few such entries, the program
 * restarts itself with a longer environment. That repeats the work of the dynamic linker, a third
 * of a short command.
 *
 * Sanitizers are not initialised by then. So nothing may allocate, and calls that they intercept
 * are avoided or made as plain system calls. */
#include "cli/blas_begin.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_VARIABLES 4000 /* variables of the environment; with more, nothing is set */

#define ONE_THREAD   "OPENBLAS_NUM_THREADS=1"
#define WIDE_KERNELS "OPENBLAS_CORETYPE=SkylakeX"
#define MARK         "SVMSTREAM_BLAS_SET=" /* followed by what was set: t (threads), k (kernels) or both */

#define PAGE  4096 /* a loan starts at a page */
#define LOANS 3

/* Entries that take the slots of others, on a separate page. The first is MARK: main finds the page by its
 * address. */
struct loan {
    char entry[LOANS][32];
    char *lent[LOANS];       /* the entries that were in their slots */
    const struct loan *self; /* identifies the page as a loan */
};

/* The slot of a variable in the environment, by "NAME="; NULL: it is not set. */
BEFORE_SANITIZERS static char **blas_place_of(char **environment, const char *name) {
    for (char **e = environment; *e; e++) {
        int i = 0;
        while (name[i] != '=' && (*e)[i] == name[i])
            i++;
        if (name[i] == '=' && (*e)[i] == '=')
            return e;
    }
    return NULL;
}

/* True for the parts of AVX-512 that OpenBLAS's SkylakeX kernels use. */
BEFORE_SANITIZERS static bool has_wide_vectors(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

/* The entries that OpenBLAS shall read, MARK first; ends in NULL. */
struct wanted {
    const char *entry[LOANS + 1];
};

/* Puts the entries into borrowed slots. False, with nothing changed: too few slots, or no page. */
BEFORE_SANITIZERS static bool begin_borrowed(char **environment, const struct wanted *w) {
    static const char names[][12] = {"_=",    "OLDPWD=", "SHLVL=", "PWD=",   "HOSTNAME=", "LOGNAME=", "USER=",
                                     "MAIL=", "TERM=",   "LANG=",  "SHELL=", "HOME=",     "PATH="};
    char **places[LOANS];
    int wanted = 0, count = 0;
    while (w->entry[wanted])
        wanted++;
    for (size_t i = 0; count < wanted && i < sizeof names / sizeof *names; i++)
        if ((places[count] = blas_place_of(environment, names[i])))
            count++;
    /* A system call and copying by hand: sanitizers intercept mmap and memcpy. */
    const long page = count < wanted ? -1
                                     : syscall(SYS_mmap, NULL, (size_t)PAGE, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, (off_t)0);
    if (page == -1)
        return false;
    struct loan *loan = (struct loan *)page;
    for (int i = 0; i < wanted; i++) {
        for (int at = 0; w->entry[i][at]; at++)
            loan->entry[i][at] = w->entry[i][at];
        loan->lent[i] = *places[i];
        *places[i] = loan->entry[i];
    }
    loan->self = loan;
    return true;
}

BEFORE_SANITIZERS static void begin_again(char **argv, char **environment, const struct wanted *w) {
    char *variables[MAX_VARIABLES + LOANS + 1], program[4096], entry[LOANS][32] = {0};
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    int count = 0;
    for (; environment[count]; count++) {
        if (count == MAX_VARIABLES)
            return;
        variables[count] = environment[count];
    }
    for (int i = 0; w->entry[i]; i++) {
        for (int at = 0; w->entry[i][at]; at++)
            entry[i][at] = w->entry[i][at];
        variables[count++] = entry[i];
    }
    variables[count] = NULL;
    if (length <= 0)
        return;
    program[length] = 0;
    execve(program, argv, variables); /* returns only on failure: the program continues unchanged */
}

BEFORE_SANITIZERS void svi_blas_begin(char **argv, char **environment) {
    char mark[] = MARK "__";
    struct wanted w = {{mark}};
    int count = 1;
    if (!environment || blas_place_of(environment, MARK)) /* the mark: this is the restarted program */
        return;
    if (!blas_place_of(environment, ONE_THREAD)) {
        w.entry[count++] = ONE_THREAD;
        mark[sizeof MARK - 1] = 't';
    }
    if (!blas_place_of(environment, WIDE_KERNELS) && has_wide_vectors()) {
        w.entry[count++] = WIDE_KERNELS;
        mark[sizeof MARK] = 'k';
    }
    if (count > 1 && !begin_borrowed(environment, &w))
        begin_again(argv, environment, &w);
}

/* Restores the borrowed slots. False: nothing was borrowed; the mark is an entry of the longer environment of
 * a restarted program. */
static bool give_back(char **mark) {
    struct loan *loan = (struct loan *)*mark; /* `entry` is the first member */
    if ((uintptr_t)loan % PAGE != 0 || loan->self != loan)
        return false;
    for (char **e = environ; *e; e++)
        for (int i = 0; i < LOANS; i++)
            if (*e == loan->entry[i])
                *e = loan->lent[i];
    munmap(loan, PAGE);
    return true;
}

void svi_blas_begun(void) {
    char **mark = environ ? blas_place_of(environ, MARK) : NULL;
    const char *set = mark ? *mark + sizeof MARK - 1 : "";
    if (strlen(set) != 2 || give_back(mark))
        return;
    if (set[0] == 't')
        unsetenv("OPENBLAS_NUM_THREADS");
    if (set[1] == 'k')
        unsetenv("OPENBLAS_CORETYPE");
    unsetenv("SVMSTREAM_BLAS_SET");
}
