/* OpenBLAS reads two things while it is loaded, before main: how many threads to start, which then wait for
 * work in a loop that takes a core, and the kernels, of which the version of 2022 picks those of 2013 for
 * every processor that it does not know. The C library takes the environment as it came, an array between
 * others, which cannot grow. So before any constructor has run a few of its entries, of names that no
 * constructor asks for, lend their places to what OpenBLAS is to read, and main gives them back. Where there
 * are too few of these the program begins again with a longer environment, which costs all that the dynamic
 * linker did: a third of a short command. Sanitizers have not begun by then: nothing may allocate, and calls
 * that they intercept are made without them. */
#include "cli/blas_begin.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_VARIABLES 4000 /* variables; with more of them nothing is set */

#define ONE_THREAD   "OPENBLAS_NUM_THREADS=1"
#define WIDE_KERNELS "OPENBLAS_CORETYPE=SkylakeX"
#define MARK         "SVMSTREAM_BLAS_SET=" /* what was set, for the program that begins again: t, k or both */

#define PAGE  4096 /* a loan begins with one */
#define LOANS 3

/* Entries of the environment in the places of others, on a page of its own: the first is MARK, by whose
 * address main finds it. */
struct loan {
    char entry[LOANS][32];
    char *lent[LOANS]; /* what stood in their places */
    const struct loan *self;
};

/* The place of a variable among them, by "NAME="; NULL: it is not set. */
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

/* What is to be read, a NULL after it. */
struct wanted {
    const char *entry[LOANS + 1];
};

/* False: there are too few places, or there is no page. */
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
    execve(program, argv, variables); /* else it goes on as it is */
}

BEFORE_SANITIZERS void svi_blas_begin(char **argv, char **environment) {
    char mark[] = MARK "__";
    struct wanted w = {{mark}};
    int count = 1;
    if (!environment || blas_place_of(environment, MARK))
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

/* Gives back what was lent. False: nothing was, MARK is one of the program that began again. */
static bool give_back(char **mark) {
    struct loan *loan = (struct loan *)*mark;
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
