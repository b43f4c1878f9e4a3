#include "linalg/quads.h"

#include "linalg/kernels.h"

const struct svi_quads *svi_quads_get(void) {
#if defined(__x86_64__)
    const struct svi_kernels *best = svi_kernels_get(SVS_ISA_BEST);
    if (best && best->isa != SVS_ISA_GENERIC)
        return &svi_quads_avx2;
#endif
    return &svi_quads_generic;
}
