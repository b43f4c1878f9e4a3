/* wide.h: loops along rows of numbers, compiled for the vectors of several machines: the one that fits is
 * taken when the program starts. Each number is computed by the same operations in the same order whatever
 * the width (C11 without contraction), so results are the same on all of them. For static functions: of
 * another one the library would export what chooses. */
#ifndef SVI_WIDE_H
#define SVI_WIDE_H

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&                 \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SVI_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SVI_WIDE
#endif

#endif
