/* blas_begin.h: sets the environment that OpenBLAS reads while it is loaded. */
#ifndef SVI_BLAS_BEGIN_H
#define SVI_BLAS_BEGIN_H

/* For functions that run before the sanitizers are initialised. */
#if defined(__clang__)
#define BEFORE_SANITIZERS __attribute__((no_sanitize("address", "undefined", "thread")))
#else
#define BEFORE_SANITIZERS __attribute__((no_sanitize_address, no_sanitize_undefined, no_sanitize_thread))
#endif

/* To be called before the constructors of the libraries: makes OpenBLAS start with one thread and with the
 * kernels of this processor, unless OPENBLAS_NUM_THREADS and OPENBLAS_CORETYPE are set. It changes entries of
 * the environment, or restarts the program with a longer one; then it does not return. Failures are ignored:
 * OpenBLAS starts with its defaults. */
void svi_blas_begin(char **argv, char **environment);

/* To be called first in main: restores the environment, so that programs started by this one do not inherit
 * the change. */
void svi_blas_begun(void);

#endif
