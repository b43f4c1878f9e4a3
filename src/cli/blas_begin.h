/* blas_begin.h: with what OpenBLAS begins. */
#ifndef SVI_BLAS_BEGIN_H
#define SVI_BLAS_BEGIN_H

/* Of functions that run before the sanitizers have begun. */
#if defined(__clang__)
#define BEFORE_SANITIZERS __attribute__((no_sanitize("address", "undefined", "thread")))
#else
#define BEFORE_SANITIZERS __attribute__((no_sanitize_address, no_sanitize_undefined, no_sanitize_thread))
#endif

/* Before the constructors of the libraries: begins the program again with one thread for OpenBLAS and the
 * kernels of this processor, unless OPENBLAS_NUM_THREADS and OPENBLAS_CORETYPE say otherwise. Returns when
 * there is nothing to set, or it cannot. */
void svi_blas_begin(char **argv, char **environment);

/* In main: programs that this one starts do not see what was set. */
void svi_blas_begun(void);

#endif
