#include <stdlib.h>
#include <string.h>

#include "linalg/kernels.h"

static bool kernels_machine_has(svs_isa isa) {
    if (isa == SVS_ISA_GENERIC)
        return true;
#if defined(__x86_64__)
    if (isa == SVS_ISA_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
    if (isa == SVS_ISA_AVX2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return false;
}

/* Best first. */
static const struct svi_kernels *const all[] = {
#if defined(__x86_64__)
    &svi_kernels_avx512, &svi_kernels_avx2,
#endif
    &svi_kernels_generic};

const struct svi_kernels *svi_kernels_get(svs_isa isa) {
    const char *name = getenv("SVMSTREAM_ISA");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const bool wanted =
            isa != SVS_ISA_BEST ? all[i]->isa == isa : !name || strcmp(all[i]->name, name) == 0;
        if (wanted && kernels_machine_has(all[i]->isa))
            return all[i];
    }
    return NULL;
}
