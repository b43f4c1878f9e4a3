#include "trees/boost_loops.h"

#include "linalg/kernels.h"

const struct svi_boost_loops *svi_boost_loops_get(void) {
#if defined(__x86_64__)
    const struct svi_kernels *best = svi_kernels_get(SVS_ISA_BEST);
    if (best && best->isa == SVS_ISA_AVX512)
        return &svi_boost_loops_avx512;
    if (best && best->isa == SVS_ISA_AVX2)
        return &svi_boost_loops_avx2;
#endif
    return &svi_boost_loops_generic;
}
