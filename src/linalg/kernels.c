#include <stdlib.h>
#include <string.h>

#include "linalg/pass.h"

static bool machine_has(svs_isa isa) {
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

static bool wanted(const struct svi_kernels *k, svs_isa isa, const char *name) {
    if (isa != SVS_ISA_BEST)
        return k->isa == isa;
    return !name || strcmp(k->name, name) == 0;
}

const struct svi_kernels *svi_kernels_get(svs_isa isa) {
    const char *name = getenv("SVMSTREAM_ISA");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (wanted(all[i], isa, name) && machine_has(all[i]->isa))
            return all[i];
    return NULL;
}
